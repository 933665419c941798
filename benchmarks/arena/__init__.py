"""Every recalibrator on many real experiments:
``python -m benchmarks.arena --data DIR``.

An experiment is one classifier on one data set: a calibration part to fit on and a test
part. Scores are means over the test rows; probabilities are clipped to [2^-52, 1 -
2^-52] before the logarithm, for every method alike. The calibration errors of a table
are roots of means of signed debiased squares.
"""
