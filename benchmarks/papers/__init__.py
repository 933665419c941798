"""Reproductions of the papers: ``python -m benchmarks.papers NAME``."""
