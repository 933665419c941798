"""Pages as Markdown, for readers that are programs: each page's source beside its HTML
(``scores.html.md``), and ``llms.txt``, a list of all pages with their first sentence.
"""

import re
from pathlib import Path


def first_sentence(text):
    """Return the first sentence of the first paragraph below the title, as plain
    text.
    """
    body = re.sub(r"^ *(```|:::).*?^ *\1", "", text, flags=re.S | re.M)
    body = re.sub(r"^(#|\||<!--|:|\().*$", "", body, flags=re.M).strip()
    paragraph = " ".join(body.split("\n\n")[0].split())
    paragraph = re.sub(r"\{\w+\}`([^`]*)`", r"\1", paragraph)
    paragraph = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph).replace("**", "")
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", paragraph)[0]


def with_includes(text, folder):
    """Return the text of a page with the files that it includes."""

    def file(match):
        return (folder / match[1]).read_text("utf-8")

    return re.sub(r"^```\{include\} (\S+)\n```\n", file, text, flags=re.M)


def listing(folder, address, pages):
    """Return the text of ``llms.txt`` for pages of a folder, by name."""
    lines = [
        "# skcalib",
        "",
        "> Calibrated probabilities for scikit-learn: recalibrators, calibration errors"
        " with intervals and tests, certificates, and reports.",
        "",
        "## Pages",
        "",
    ]
    for page in pages:
        text = (folder / f"{page}.md").read_text("utf-8")
        title = re.search(r"^# (.*)$", text, flags=re.M)[1]
        link = f"{address}/{page}.html.md"
        lines.append(f"- [{title}]({link}): {first_sentence(text)}".rstrip(": "))
    return "\n".join(lines) + "\n"


def _write(app, error):
    if error is not None or app.builder.name != "html":
        return
    source, site = Path(app.srcdir), Path(app.outdir)
    pages = sorted(path.stem for path in source.glob("*.md"))
    for page in pages:
        text = (source / f"{page}.md").read_text("utf-8")
        (site / f"{page}.html.md").write_text(with_includes(text, source), "utf-8")
    text = listing(source, app.config.html_baseurl.rstrip("/"), pages)
    (site / "llms.txt").write_text(text, "utf-8")


def setup(app):
    """Register the writer."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
