"""Guide pages end with their examples of the gallery; pictures have twice the pixels
that they are shown with.
"""

from pathlib import Path

import api_reference
import imagesize
from docutils import nodes


def _add_examples(app, page, source):
    examples = api_reference.examples_of_pages(app.srcdir).get(page)
    if examples:
        names = "\n   ".join(examples)
        source[0] += (
            "\n\n## In the gallery\n\n```{eval-rst}\n.. minigallery::\n\n  "
            f" {names}\n```\n"
        )


def _show_at_half_size(app, document):
    for image in document.findall(nodes.image):
        if image["uri"].startswith("pictures/") and "width" not in image:
            width, _ = imagesize.get(Path(app.srcdir) / image["uri"])
            image["width"] = f"{width // 2}px"


def setup(app):
    """Register both."""
    app.connect("source-read", _add_examples)
    app.connect("doctree-read", _show_at_half_size)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
