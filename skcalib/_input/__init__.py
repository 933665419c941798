"""The gate: every score, label, weight, number and column name that a user gives is
checked here.
"""
