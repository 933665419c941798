"""Calibration errors: each is a power of the event frequencies of cells, for values,
draws, tests and tables.
"""
