"""The tables of evidence beside the site: each ``evidence/*.md`` becomes a plain page
``evidence/*.html`` that the guide links to and that is no page of the guide.
"""

import re
from pathlib import Path

from markdown_it import MarkdownIt
from mdit_py_plugins.anchors import anchors_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

FOLDER = "evidence"
_LINK = re.compile(r"\[([^\]]+)\]\(evidence/(\w+)\.md(#[\w-]+)?\)")
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - skcalib</title>
<link rel="stylesheet" href="../_static/evidence.css">
</head>
<body>
<nav><a href="../index.html">skcalib</a> / <a href="../evidence.html">Evidence</a></nav>
<main>
{body}
</main>
</body>
</html>
"""


def page(text):
    """Return the HTML page of a Markdown text: links to ``page.md`` become links to
    ``page.html``.
    """
    title = re.search(r"^# (.*)$", text, flags=re.M)[1]
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
    markdown.use(anchors_plugin, max_level=3).use(dollarmath_plugin)
    linked = re.sub(r"\]\(((?:\.\./)?\w+)\.md(#[\w-]+)?\)", r"](\1.html\2)", text)
    body = markdown.render(linked)
    # Wide tables scroll by themselves.
    body = body.replace("<table>", '<div class="table" tabindex="0"><table>')
    body = body.replace("</table>", "</table></div>")
    return _PAGE.format(title=title, body=body)


def _link_to_html(app, name, source):
    """Turn links of the guide to ``evidence/name.md`` into links to the HTML page,
    which Sphinx does not know.
    """

    def as_html(match):
        words, target, anchor = match.groups()
        return f'<a href="evidence/{target}.html{anchor or ""}">{words}</a>'

    if "/" not in name:
        source[0] = _LINK.sub(as_html, source[0])


def _write(app, error):
    if error is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir) / FOLDER
    folder.mkdir(exist_ok=True)
    for path in sorted((Path(app.srcdir) / FOLDER).glob("*.md")):
        html = page(path.read_text("utf-8"))
        (folder / f"{path.stem}.html").write_text(html, "utf-8")


def setup(app):
    """Register the writer."""
    app.connect("source-read", _link_to_html)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
