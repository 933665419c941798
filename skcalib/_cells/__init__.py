"""Sums per bin, and many classes as binary problems."""
