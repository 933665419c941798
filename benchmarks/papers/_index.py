"""The index of ``doc/reproductions.md``: each figure, table and theorem of each paper, and its rows."""

import importlib
import pkgutil
import re
from collections import Counter

import benchmarks.papers

__all__ = ["LISTS", "PAPERS", "index_lines", "index_text", "modules"]


def _list(n_figures, n_tables=0):
    return [f"Figure {i}" for i in range(1, n_figures + 1)] + [f"Table {i}" for i in range(1, n_tables + 1)]


PAPERS = {
    "kumar": "Kumar, Liang and Ma (2019)",
    "roelofs": "Roelofs, Cain, Shlens and Mozer (2022)",
    "gupta": "Gupta and Ramdas (2021)",
    "zhao": "Zhao, Chen and Oymak (2020)",
}
# What each paper has. Theorems are those that have rows.
LISTS = {"kumar": _list(17), "roelofs": _list(15, 7), "gupta": _list(6), "zhao": _list(14, 2)}

_NOT_STATED = "No row: what it shows is not stated in the sources of this project, which quote the papers in parts."
WITHOUT_ROWS = {
    (
        "kumar",
        "Figure 1",
    ): "No row: it draws scaling, histogram binning and scaling-binning, without a measurement.",
    ("kumar", "Figure 5"): "No row: the figure is Figure 6 for ImageNet, and nobody publishes the network's outputs.",
    ("roelofs", "Figure 3"): (
        "No row: it draws the density of Beta(2.8, 0.05) and the curve c^2 (the authors' published code), without a "
        "measurement. Figure 1 and Figure 7 are simulations with such curves."
    ),
    ("gupta", "Figure 2"): f"{_NOT_STATED} How epsilon falls with n is drawn by `gupta-theory --plot`, see Theorem 3.",
    ("zhao", "Figure 3"): _NOT_STATED,
    ("zhao", "Figure 4"): _NOT_STATED,
    ("zhao", "Table 2"): f"{_NOT_STATED} The sampling experiments that it may sum up have rows: Figure 8, Figure 14.",
}
_SHOWN = 3  # rows that a line names; the others it counts


def modules():
    """Return the reproductions: {name on the command line: module}."""
    names = [module.name for module in pkgutil.iter_modules(benchmarks.papers.__path__) if module.name[0] != "_"]
    return {name.replace("_", "-"): importlib.import_module(f"benchmarks.papers.{name}") for name in names}


def index_lines(paper):
    """Return (label, what was found) of a paper: {command: quantities}, or the reason why there is no row."""
    found = {}
    for command, module in modules().items():
        if module.PAPER == paper:
            for quantity in module.ROWS:
                for label in _plain_labels(quantity):
                    found.setdefault(label, {}).setdefault(command, []).append(quantity)
    others = (found.keys() | {label for key, label in WITHOUT_ROWS if key == paper}) - set(LISTS[paper])
    labels = [*LISTS[paper], *sorted(others, key=_natural)]
    return [(label, found.get(label) or WITHOUT_ROWS[paper, label]) for label in labels]


def index_text(verdicts):
    """Return the index as markdown; `verdicts` are those of the tables in the document."""
    parts = []
    for paper, title in PAPERS.items():
        parts += [f"### {title}", "", "| | rows | verdicts |", "|---|---|---|"]
        for label, rows in index_lines(paper):
            if isinstance(rows, str):
                parts.append(f"| {label} | {rows} | |")
                continue
            named = "; ".join(f"`{command}`: {_names(quantities)}" for command, quantities in rows.items())
            counts = Counter(verdicts.get(quantity, "not run") for values in rows.values() for quantity in values)
            summary = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
            parts.append(f"| {label} | {named} | {summary} |")
        parts.append("")
    return "\n".join(parts).rstrip()


def _names(quantities):
    shown = ", ".join(f"`{quantity}`" for quantity in quantities[:_SHOWN]).replace("|", r"\|")
    more = len(quantities) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _plain_labels(quantity):
    """Return the labels of a quantity without the letters of panels: "Figure 3a" is in Figure 3."""
    labels = quantity.partition(":")[0].split(", ")
    return [re.sub(r"^((?:Figure|Table) \d+)[a-z]?$", r"\1", label) for label in labels]


def _natural(label):
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", label)]
