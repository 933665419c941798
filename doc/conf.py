"""Sphinx configuration: ``python -m sphinx -W -b html doc doc/_build``."""

import inspect
import os
import sys
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import skcalib
from skcalib.displays._style import colors

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "extensions"))
import api_reference
import versions

_HERE = Path(__file__).parent
api_reference.write(_HERE)
_GENERATED = _HERE / "_generated"
_GENERATED.mkdir(exist_ok=True)

project = "skcalib"
author = "The skcalib developers"
copyright = "2026, The skcalib developers"
version = release = skcalib.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.linkcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "break_names",
    "describe_thumbnails",
    "evidence",
    "find_words",
    "link_examples",
    "link_names",
    "mathml",
    "plain_pages",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = [
    "_build",
    "gallery/README.txt",
    "gallery/*.py",
    "evidence/*",
    "shared/*",
    "examples",
    "extensions",
    "**/GALLERY_HEADER.rst",
]
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
default_role = "py:obj"
html_math_renderer = "mathml"
myst_heading_anchors = 3
autosummary_generate = True
autosummary_context = {
    "guide_pages": api_reference.guide_pages(_HERE),
    "provisional": api_reference.provisional(),
    "examples": api_reference.examples_of_names(_HERE),
}
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
# Inherited docstrings of scikit-learn refer to its own guide. Gallery configuration
# holds objects.
suppress_warnings = ["ref.ref", "config.cache"]

# The build works without a network. With SKCALIB_INTERSPHINX=1 names of other projects
# become links.
_PROJECTS = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "sklearn": "https://scikit-learn.org/stable/",
    "pandas": "https://pandas.pydata.org/docs/",
}
online = os.environ.get("SKCALIB_INTERSPHINX") == "1"
intersphinx_mapping = (
    {name: (address, None) for name, address in _PROJECTS.items()} if online else {}
)


def _library_colors(gallery_conf, path):
    """Give pictures that an example draws itself the colours of the displays."""
    matplotlib.rcParams["axes.prop_cycle"] = matplotlib.cycler(color=colors(7))


def _warning_without_path(message, category, *_, **options):
    return f"{category.__name__}: {message}\n"


# Warnings that examples show do not name folders of the machine that built the page.
warnings.formatwarning = _warning_without_path


sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "backreferences_dir": "_generated/backreferences",
    "doc_module": ("skcalib",),
    "filename_pattern": r"plot_",
    "remove_config_comments": True,
    "show_memory": False,
    "capture_repr": ("_repr_html_",),
    "write_computation_times": False,
    "download_all_examples": False,
    "image_srcset": ["2x"],
    "reset_modules": ("matplotlib", _library_colors),
    "within_subsection_order": "FileNameSortKey",
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

# Pages that are made by the build have no source to edit.
_WRITTEN = [
    path.relative_to(_HERE).with_suffix("").as_posix() for path in _HERE.rglob("*.md")
]
_SIDEBARS = {
    "_generated/*": ["page-toc"],
    "auto_gallery/*": ["page-toc"],
    "api": ["page-toc"],
}
_SIDEBARS |= {
    name: ["page-toc", "edit-this-page"] for name in _WRITTEN if name != "index"
} | {"index": []}

html_baseurl = "https://skcalib.github.io/skcalib"
html_theme = "pydata_sphinx_theme"
html_title = f"skcalib {version}"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["skcalib.css"]
html_show_sourcelink = False
html_context = {
    "github_user": "skcalib",
    "github_repo": "skcalib",
    "github_version": "main",
    "doc_path": "doc",
    "default_mode": "auto",
}
html_theme_options = {
    "github_url": "https://github.com/skcalib/skcalib",
    "use_edit_page_button": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "logo": {
        "text": "skcalib",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
        "alt_text": "skcalib, to the first page",
    },
    "navbar_start": ["navbar-logo", "version-switcher"],
    "switcher": {
        "json_url": "_static/switcher.json",
        "version_match": versions.shown(version),
    },
    "footer_start": ["copyright"],
    "secondary_sidebar_items": _SIDEBARS,
}
html_sidebars = {"index": []}


def linkcode_resolve(domain, info):
    """Return the address of the lines that define a name."""
    thing = sys.modules.get(info["module"])
    for part in info["fullname"].split("."):
        thing = getattr(thing, part, None)
    try:
        thing = inspect.unwrap(thing)
        lines, first = inspect.getsourcelines(thing)
        path = Path(inspect.getsourcefile(thing)).relative_to(
            Path(skcalib.__file__).parents[1]
        )
    except (TypeError, ValueError, OSError):
        # properties, and what is inherited from other packages
        return None
    return f"https://github.com/skcalib/skcalib/blob/main/{path.as_posix()}#L{first}-L{first + len(lines) - 1}"  # noqa: E501
