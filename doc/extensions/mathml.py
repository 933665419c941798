"""Formulas as MathML, made by the build: the pages load nothing from elsewhere."""

from docutils.nodes import SkipNode
from latex2mathml.converter import convert


def _inline(writer, node):
    writer.body.append(convert(node.astext(), display="inline"))
    raise SkipNode


def _block(writer, node):
    writer.body.append(
        f'<div class="formula">{convert(node.astext(), display="block")}</div>\n'
    )
    raise SkipNode


def setup(app):
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
