"""The page of a report as PDF, by Chromium or WeasyPrint."""

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from skcalib._report._error import ReportError

_BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
)
_SWITCHES = (
    "--headless",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
    "--no-pdf-header-footer",
)
_LONGEST = 120  # seconds that a browser may take


def pdf_printer():
    """Return a program that can write a PDF: the path of a browser, "weasyprint" or
    None.
    """
    for browser in _BROWSERS:
        path = shutil.which(browser)
        if path is not None:
            return path
    if find_spec("weasyprint") is not None:
        return "weasyprint"
    return None


def write_pdf(page, path):
    """Write an HTML page as PDF.

    Parameters
    ----------
    page : str
        The HTML, without external files.
    path : Path
        The file to write.

    Raises
    ------
    ReportError
        If the printer fails.
    """
    printer = pdf_printer()
    if printer == "weasyprint":
        from weasyprint import HTML

        HTML(string=page).write_pdf(path)
        return
    with TemporaryDirectory() as folder:
        source = Path(folder, "page.html")
        target = Path(folder, "page.pdf")
        source.write_text(page, encoding="utf-8")
        switches = [*_SWITCHES, f"--user-data-dir={folder}/profile"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            # Chromium has no sandbox for root.
            switches.append("--no-sandbox")
        command = [printer, *switches, f"--print-to-pdf={target}", source.as_uri()]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_LONGEST)
            shutil.copyfile(target, path)
        except (subprocess.SubprocessError, FileNotFoundError) as error:
            raise ReportError(
                f"{printer} could not print the page: {error}. Use -o {path.stem}.html"
                " and print it from a browser."
            ) from error
