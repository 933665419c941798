"""Inference: test inversion, draws, resampling, tests in closed form, groups and
segments.
"""
