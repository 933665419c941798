"""Doctests are collected where the packages are that they need; elsewhere they could
not run.
"""

from importlib.util import find_spec

_NEEDED = {
    "skcalib/displays/*": ["matplotlib"],
    "skcalib/engines/*": ["narwhals", "duckdb", "pandas"],
}
collect_ignore_glob = [
    folder
    for folder, packages in _NEEDED.items()
    if not all(find_spec(package) for package in packages)
]
