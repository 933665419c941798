"""The calibration report of the command line: columns of a file in, numbers, one HTML
page out.
"""
