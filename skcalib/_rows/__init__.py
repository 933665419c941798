"""Passes over rows: blocks that fit the cache, scores in order, probabilities as
log-odds.
"""
