"""On narrow screens a long name in a table goes on in the next line after one of its
underscores, not inside a word.
"""

import re


def with_breaks(html):
    """Return a page in which names in code style may be broken after underscores."""
    names = re.compile(r'(?<=<span class="pre">)[^<]+')
    return names.sub(lambda name: name[0].replace("_", "_<wbr>"), html)


def _break(app, name, template, context, doctree):
    if "body" in context:
        context["body"] = with_breaks(context["body"])


def setup(app):
    """Register the change of a page's HTML."""
    app.connect("html-page-context", _break)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
