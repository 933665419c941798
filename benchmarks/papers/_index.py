"""The index of ``doc/evidence/reproductions.md``: each figure, table and
theorem of each paper, and its rows.
"""

import importlib
import pkgutil
import re
from collections import Counter

import benchmarks.papers

__all__ = ["LISTS", "PAPERS", "index_lines", "index_text", "modules"]

PAPERS = {
    "kumar": "Kumar, Liang and Ma (2019), with their draft",
    "roelofs": "Roelofs, Cain, Shlens and Mozer (2022)",
    "gupta": "Gupta and Ramdas (2021)",
    "zhao": "Zhao, Chen and Oymak (2020)",
}


def _list(n_figures, n_tables, *others):
    return (
        [f"Figure {i + 1}" for i in range(n_figures)]
        + [f"Table {i + 1}" for i in range(n_tables)]
        + list(others)
    )


# What each paper has: figures, tables, and its statements in the order of the text.
LISTS = {
    "kumar": _list(
        17,
        0,
        "Section 2.2",
        "Example 3.2",
        "Proposition 3.3",
        "Theorem 4.1",
        "Lemma 4.3",
        "Theorem 5.3",
        "Theorem 5.4",
        *(f"Lemma D.{i}" for i in (2, 3, 5, 6)),
        "Proposition D.4",
        "Appendix E",
        *(f"Lemma F.{i}" for i in (1, 2, 3, 4, 5, 7, 8)),
        "Theorem F.6",
        "Theorem F.9",
        "Draft Proposition 1",
        *(f"Draft Theorem {i}" for i in (1, 2, 3, 4)),
        "Draft Lemma 1",
        "Draft Lemma 2",
    ),
    "roelofs": _list(15, 7, "Eq. 4", "Algorithm 1"),
    "gupta": _list(
        6,
        0,
        "Proposition 1",
        "Example 1",
        "Section 2.1",
        "Section 3",
        "Lemma 1",
        "Lemma 2",
        "Algorithm 1",
        "Algorithm 2",
        "Theorem 3",
        "Corollary 1",
        "Theorem 4",
        "Appendix B",
    ),
    "zhao": _list(
        14,
        2,
        "Theorem 3.1",
        "Lemma 3.3",
        "Algorithm 1",
        "Theorem 4.1",
        "Corollary 4.2",
        "Section 5.4",
        "Theorem B.1",
    ),
}

_IMAGENET = (
    "No data: the figure shows ImageNet ({}), and the outputs of the network are not"
    " published. {} shows the same for CIFAR-10."
)
_TOP_LABEL = "the l1 top-label error with B = 15 and 100"
WITHOUT_ROWS = {
    "kumar": {
        "Figure 1": (
            "No measurement: a drawing of scaling, histogram binning and"
            " scaling-binning."
        ),
        "Figure 5": _IMAGENET.format(
            "the l1 error with equal-mass and equal-width bins", "Figure 6"
        ),
        "Figure 10": (
            "No measurement: a drawing of the two event probabilities behind Figures 8,"
            " 9 and 11."
        ),
        "Figure 12": _IMAGENET.format(_TOP_LABEL, "Figure 13"),
        "Figure 15": _IMAGENET.format(_TOP_LABEL, "Figure 16"),
        "Draft Theorem 1": "Restated as Lemma 4.3; the rows there check it.",
        "Draft Theorem 2": "Restated as Lemma D.2; the rows there check it.",
        "Draft Theorem 4": (
            "Restated as Proposition D.4, but for B up to n log n, which is more than"
            " the proof allows."
        ),
        "Draft Lemma 1": "Restated as Proposition 3.3; the rows there check it.",
    },
    "roelofs": {
        "Figure 3": (
            "No measurement: a drawing of the density of Beta(2.8, 0.05) and of the"
            " curve c^2. Figures 1 and 7 simulate with such curves."
        ),
    },
    "gupta": {},
    "zhao": {
        "Theorem B.1": (
            "Theorem 3.1 with its two halves stated separately; the first guarantees"
            " .95 - 2 exp(-n / 100)."
        ),
    },
}


def modules():
    """Return the reproductions: {name on the command line: module}."""
    names = [
        module.name
        for module in pkgutil.iter_modules(benchmarks.papers.__path__)
        if module.name[0] != "_"
    ]
    return {
        name.replace("_", "-"): importlib.import_module(f"benchmarks.papers.{name}")
        for name in names
    }


def index_lines(paper):
    """Return (label, what was found) of a paper: {command: quantities}, or the reason
    why there is no row.
    """
    found = {}
    for command, module in modules().items():
        if module.PAPER == paper:
            for quantity in module.ROWS:
                for label in _plain_labels(quantity):
                    found.setdefault(label, {}).setdefault(command, []).append(quantity)
    unknown = found.keys() - set(LISTS[paper])
    if unknown or found.keys() & WITHOUT_ROWS[paper].keys():
        raise ValueError(
            f"{paper} has rows that its list does not have, or that have a reason to be"
            f" missing: {unknown}."
        )
    return [
        (label, found.get(label) or WITHOUT_ROWS[paper][label])
        for label in LISTS[paper]
    ]


def index_text(verdicts):
    """Return the index as markdown; `verdicts` are those of the tables in the
    document.
    """
    parts = []
    for paper, title in PAPERS.items():
        parts += [
            f"<details><summary>{title}</summary>",
            "",
            "| | rows | verdicts |",
            "|---|---|---|",
        ]
        for label, rows in index_lines(paper):
            if isinstance(rows, str):
                parts.append(f"| {label} | {rows} | |")
                continue
            named = ", ".join(
                f"`{command}` {len(quantities)}" for command, quantities in rows.items()
            )
            counts = Counter(
                verdicts.get(quantity, "not run")
                for values in rows.values()
                for quantity in values
            )
            summary = ", ".join(
                f"{count} {verdict}" for verdict, count in sorted(counts.items())
            )
            parts.append(f"| {label} | {named} | {summary} |")
        parts += ["", "</details>", ""]
    return "\n".join(parts).rstrip()


def _plain_labels(quantity):
    """Return the labels of a quantity without the letters of panels: "Figure 3a" is in
    Figure 3.
    """
    labels = quantity.partition(":")[0].split(", ")
    return [re.sub(r"^((?:Figure|Table) \d+)[a-z]?$", r"\1", label) for label in labels]
