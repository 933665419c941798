"""In the prose, `calibration_error` in code style links to its page of the
reference.
"""

import re

from api_reference import SECTIONS, names
from docutils import nodes
from sphinx.addnodes import pending_xref

_PATHS = {
    name: f"{module}.{name}"
    for module, title, *_ in SECTIONS
    for name in names(module, title)
}
_CALL = re.compile(r"(?:skcalib\.)?(?:\w+\.)?(\w+)(?:\(.*\))?", flags=re.S)


def path_of(code):
    """Return the path of the public name that a piece of code is, or None: also of a
    call such as ``EqualMass(15)``.
    """
    match = _CALL.fullmatch(code)
    return _PATHS.get(match[1]) if match else None


def _link(app, document):
    page = (
        app.env.current_document.docname
        if hasattr(app.env, "current_document")
        else app.env.docname
    )
    # of docstrings and the gallery: `EqualMass` without its module
    for link in document.findall(pending_xref):
        if link["reftype"] == "obj" and link["reftarget"] in _PATHS:
            link["reftarget"] = _PATHS[link["reftarget"]]
    if page.startswith("_generated/"):
        return
    for literal in list(document.findall(nodes.literal)):
        path = path_of(literal.astext())
        if path and not isinstance(
            literal.parent, (nodes.reference, nodes.title, pending_xref)
        ):
            link = pending_xref(
                "",
                literal.deepcopy(),
                refdomain="py",
                reftype="obj",
                reftarget=path,
                refexplicit=True,
                refdoc=page,
            )
            literal.replace_self(link)


def setup(app):
    """Register the transformation."""
    app.connect("doctree-read", _link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
