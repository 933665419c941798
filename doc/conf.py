"""Sphinx configuration."""

import skcalib

project = "skcalib"
author = "The skcalib developers"
copyright = "2026, The skcalib developers"
version = release = skcalib.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autosummary_generate = True
numpydoc_show_class_members = False
html_theme = "alabaster"
suppress_warnings = ["ref.ref"]  # inherited scikit-learn docstrings refer to its own guide
