"""Benchmarks and reproductions. Nothing here is installed with the package."""
