"""Limits for the event frequency at one score: how far a calibrated probability may be
off because the map was fitted to few samples.
"""
