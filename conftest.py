"""Doctests of the displays are collected where there is matplotlib; elsewhere they could not run."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("matplotlib") else ["skcalib/displays/*"]
