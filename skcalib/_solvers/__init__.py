"""Solvers that know nothing about calibration: Newton's method, logistic and softmax
regression, mixtures.
"""
