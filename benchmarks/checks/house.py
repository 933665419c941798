"""The structure of the package and the style of its code.

The module measures imports between packages, public names and four journeys, and the
style of other packages.

``python -m benchmarks.checks.house`` counts and draws; ``--journeys`` follows 100,000
rows through the package; ``--reading`` compares the style of the code with that of
installed packages (scikit-learn, skrub, narwhals). ``--root FOLDER`` reads another
copy, such as the output of ``git archive`` for an older commit. The figures are for
information only: no test limits them. What matters is whether a newcomer understands a
function on first reading.

A line of code is a line of a ``.py`` file of the package that is not blank, not only a
comment, and not part of a docstring of a module, class or function; the template of the
report is not counted. A public name has a page in the reference: it is listed in
``__all__`` of `skcalib`, of a public submodule, or of `skcalib.recalibrators` (which
repeats names of `skcalib` and adds the base classes of recalibrators). Dunder names are
excluded, and each name is counted once.
"""

import argparse
import ast
import importlib
import io
import sys
import tokenize
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

N_ROWS = 100_000
# The packages that the code is compared with, by the name of their import.
ANCHORS = ("sklearn", "skrub", "narwhals")
LONG_LINE = 88
# Names that do not say what a thing is.
GENERIC_NAMES = {
    "data",
    "given",
    "item",
    "items",
    "kept",
    "obj",
    "one",
    "other",
    "others",
    "own",
    "part",
    "parts",
    "res",
    "ret",
    "some",
    "stuff",
    "temp",
    "thing",
    "things",
    "tmp",
    "val",
    "vals",
    "value",
    "values",
    "whole",
}
_DYNAMIC = {"delattr", "getattr", "globals", "locals", "setattr", "vars"}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LAYOUT = (
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
)


def package(root):
    """Return the parsed files of the package below a folder, by their path inside the
    package.
    """
    folder = Path(root) / "skcalib"
    return {
        path.relative_to(folder): path.read_text("utf-8")
        for path in sorted(folder.rglob("*.py"))
    }


def lines_of_code(text):
    """Return the number of lines of code of one file."""
    docstrings = set()
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and ast.get_docstring(node) is not None
        ):
            docstrings.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(
        bool(line) and not line.startswith("#") and number not in docstrings
        for number, line in lines
    )


def comments(text):
    """Return the number of lines that are only a comment."""
    return sum(line.strip().startswith("#") for line in text.splitlines())


def reading(files):
    """Return measures of the style of the code in some files, by name.

    A statement is a Python statement; definitions count, docstrings do not. Tests that
    a package contains are excluded.
    """
    counts = Counter()
    for text in files.values():
        counts += _reading_of_file(text)
    statements = counts["statements"]
    return {
        "statements": statements,
        "tokens per statement": counts["tokens"] / statements,
        "conditional expressions per 1,000 statements": (
            1000 * counts["conditional expressions"] / statements
        ),
        "comprehensions per 1,000 statements": (
            1000 * counts["comprehensions"] / statements
        ),
        "tuple assignments, % of assignments": (
            100 * counts["tuple assignments"] / max(counts["assignments"], 1)
        ),
        "generic names, % of names that are assigned": (
            100 * counts["generic names"] / max(counts["names"], 1)
        ),
        f"lines over {LONG_LINE} columns, %": (
            100 * counts["long lines"] / counts["lines"]
        ),
        "comments per 100 lines of code": (
            100 * counts["comments"] / counts["lines of code"]
        ),
        "dynamic attribute access per 1,000 statements": (
            1000 * counts["dynamic"] / statements
        ),
    }


def _reading_of_file(text):
    tree = ast.parse(text)
    docstrings = set(map(id, _docstrings(tree)))
    lines = text.splitlines()
    counts = Counter(
        {
            "lines": len(lines),
            "lines of code": lines_of_code(text),
            "long lines": sum(len(line) > LONG_LINE for line in lines),
        }
    )
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        counts["comments"] += token.type == tokenize.COMMENT
        counts["tokens"] += token.type not in _LAYOUT
    # the tokens of docstrings: one string each
    counts["tokens"] -= len(docstrings)
    for node in ast.walk(tree):
        counts["statements"] += (
            isinstance(node, ast.stmt) and id(node) not in docstrings
        )
        counts["conditional expressions"] += isinstance(node, ast.IfExp)
        counts["comprehensions"] += isinstance(node, _COMPREHENSIONS)
        if isinstance(node, ast.Assign):
            counts["assignments"] += 1
            counts["tuple assignments"] += _pairs_values(node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            counts["names"] += 1
            counts["generic names"] += node.id in GENERIC_NAMES
        if isinstance(node, ast.Call):
            counts["dynamic"] += getattr(node.func, "id", None) in _DYNAMIC
    return counts


def _docstrings(tree):
    """Yield the statements that are docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            if ast.get_docstring(node) is not None:
                yield node.body[0]


def _pairs_values(assignment):
    """Return whether an assignment is ``a, b = x, y``: two statements in one."""
    is_tuple_of_names = any(
        isinstance(target, ast.Tuple) for target in assignment.targets
    )
    return is_tuple_of_names and isinstance(assignment.value, ast.Tuple)


def installed(name):
    """Return the files of an installed package, without its tests; None where it is
    not installed.
    """
    spec = find_spec(name)
    if spec is None:
        return None
    folder = Path(spec.origin).parent
    files = {}
    for path in sorted(folder.rglob("*.py")):
        inside = path.relative_to(folder)
        is_foreign = {"tests", "externals", "_vendor"} & set(inside.parts)
        if not is_foreign and not inside.name.startswith("test_"):
            files[inside] = path.read_text("utf-8")
    return files


def comparison(files):
    """Return the measures as a Markdown table with one column per package."""
    columns = {"skcalib": reading(files)}
    for name in ANCHORS:
        anchor = installed(name)
        if anchor is not None:
            columns[name] = reading(anchor)
    header = " | ".join(columns)
    lines = [f"| | {header} |", "|---" * (len(columns) + 1) + "|"]
    for measure in columns["skcalib"]:
        figures = " | ".join(f"{column[measure]:,.1f}" for column in columns.values())
        lines.append(f"| {measure} | {figures} |")
    return "\n".join(lines).replace(".0 |", " |")


def public_names(files):
    """Return the public names, each as module and name, read from the source."""
    lists = {
        path.with_name(path.stem).as_posix(): _lists(ast.parse(text))
        for path, text in files.items()
    }
    top, found = lists["__init__"], {}
    for name in (None, *top["_SUBMODULES"], "recalibrators"):
        module = top if name is None else lists.get(f"{name}/__init__", lists.get(name))
        found |= {
            one: name
            for one in module["__all__"]
            if one not in found and not one.startswith("__")
        }
    return [
        ".".join(filter(None, ("skcalib", module, name)))
        for name, module in found.items()
    ]


def _lists(tree):
    """Return the lists of names that a module assigns at its top, by the name of the
    list.
    """
    assigned = (node for node in tree.body if isinstance(node, ast.Assign))
    return {
        node.targets[0].id: [
            one.value for one in node.value.elts if isinstance(one, ast.Constant)
        ]
        for node in assigned
        if isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, (ast.List, ast.Tuple))
    }


def arrows(files):
    """Return the packages that each package imports, as sets of names by name. A
    package is a folder or a file at the top level.
    """
    rooms = {path.parts[0].removesuffix(".py") for path in files}
    found = {room: set() for room in rooms}
    for path, text in files.items():
        for module in _imported(ast.parse(text)):
            room = module.split(".")[1] if "." in module else "__init__"
            found[path.parts[0].removesuffix(".py")].add(
                room if room in rooms else "__init__"
            )
    return {room: to - {room} for room, to in found.items()}


def _imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "skcalib":
            # `from skcalib import displays` imports a room,
            # `from skcalib import PlattScaling` the front.
            yield from (
                [f"skcalib.{one.name}" for one in node.names]
                if node.module == "skcalib"
                else [node.module]
            )
        elif isinstance(node, ast.Import):
            yield from (
                one.name for one in node.names if one.name.split(".")[0] == "skcalib"
            )
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", getattr(node.func, "attr", ""))
            == "import_module"
        ):
            # a name in a string, too
            texts = (one.value for one in node.args if isinstance(one, ast.Constant))
            yield from (text for text in texts if text.split(".")[0] == "skcalib")


def in_circles(arrows):
    """Return the packages that are part of an import cycle."""
    reached = {room: set(to) for room, to in arrows.items()}
    for middle in arrows:
        for room in arrows:
            if middle in reached[room]:
                reached[room] |= reached[middle]
    return sorted(room for room in arrows if room in reached[room])


def floors(arrows):
    """Return the packages in order: each after all packages that it imports, and cycles
    last.
    """
    order = []
    while len(order) < len(arrows):
        free = sorted(
            room
            for room, to in arrows.items()
            if room not in order and to <= set(order)
        )
        order += free or sorted(set(arrows) - set(order))
    return order


def table(files):
    """Return the structure as a Markdown table with one row per package, in order of
    imports.
    """
    to = arrows(files)
    rows = ["| room | files | lines of code | imports |", "|---|---|---|---|"]
    for room in floors(to):
        own = [
            text
            for path, text in files.items()
            if path.parts[0].removesuffix(".py") == room
        ]
        names = ", ".join(f"`{name}`" for name in floors(to) if name in to[room])
        rows.append(
            f"| `{room}` | {len(own)} | {sum(map(lines_of_code, own)):,} | {names} |"
        )
    return "\n".join(rows)


def drawing(files):
    """Return the structure as text: one row per package, with an x under the number of
    each package that it imports.
    """
    to = arrows(files)
    order, width = floors(to), max(map(len, to))
    marks = [["x" if room in to[row] else "." for room in order] for row in order]
    numbered = enumerate(zip(order, marks, strict=True), 1)
    head = " " * (width + 5) + "".join(
        f"{number:3}" for number in range(1, len(order) + 1)
    )
    return "\n".join(
        [
            head,
            *(
                f"{k:3}  {room:{width}}" + "".join(f"{x:>3}" for x in row)
                for k, (room, row) in numbered
            ),
        ]
    )


def summary(files):
    """Return the figures of the structure, by name."""
    to = arrows(files)
    names = public_names(files)
    outside = [name for name in names if not name.startswith("skcalib.maps.")]
    return {
        "rooms": len(to),
        "arrows": sum(map(len, to.values())),
        "rooms in circles": len(in_circles(to)),
        "files": len(files),
        "lines of code": sum(map(lines_of_code, files.values())),
        "public names": len(names),
        "public names outside skcalib.maps": len(outside),
        "comments per 100 lines of code": round(
            100
            * sum(map(comments, files.values()))
            / sum(map(lines_of_code, files.values())),
            1,
        ),
    }


def report(files):
    """Return the drawing and the figures as text."""
    return "\n".join(
        [
            drawing(files),
            "",
            *(f"{name}: {figure:,}" for name, figure in summary(files).items()),
            "",
        ]
    )


def follow(function):
    """Return the files whose functions a call runs, with the number of calls, and how
    often the file changes between two calls.

    Only code of the package counts. Resuming a generator also counts as a call.
    """
    folder = str(Path(importlib.import_module("skcalib").__file__).parent)
    files, changes, last = Counter(), 0, None

    def watch(frame, event, _):
        nonlocal changes, last
        if event == "call" and (name := frame.f_code.co_filename).startswith(folder):
            changes += last not in (None, name)
            files[name] += 1
            last = name

    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(None)
    return {
        str(Path(name).relative_to(folder)): count for name, count in files.items()
    }, changes


def journeys():
    """Return the journeys of 100,000 rows: functions without arguments, by name."""
    import numpy as np
    import pandas as pd

    from skcalib import PlattScaling
    from skcalib.binning import EqualMass
    from skcalib.engines import PredictionTable
    from skcalib.metrics import calibration_error, calibration_error_interval

    rng = np.random.default_rng(0)
    scores = rng.beta(2, 3, N_ROWS)
    y = (rng.random(N_ROWS) < scores).astype(int)
    frame = pd.DataFrame({"label": y, "score": scores})

    def of_a_table():
        table = PredictionTable(frame, label="label", score="score")
        return calibration_error(table.bin_statistics(EqualMass(15)))

    return {
        "calibration_error": lambda: calibration_error(y, scores),
        "PlattScaling().fit": lambda: PlattScaling().fit(scores, y),
        "calibration_error_interval": lambda: calibration_error_interval(
            y, scores, random_state=0
        ),
        "calibration_error of a table": of_a_table,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--root",
        default=Path(__file__).parents[2],
        help="folder that holds the package",
    )
    parser.add_argument(
        "--journeys",
        action="store_true",
        help="follow 100,000 rows through the package",
    )
    parser.add_argument(
        "--files",
        action="store_true",
        help="with --journeys: the calls of each file, too",
    )
    parser.add_argument(
        "--reading",
        action="store_true",
        help="compare how the code is written with installed packages",
    )
    options = parser.parse_args()
    files = package(options.root)
    if options.reading:
        print(comparison(files))
        return
    if not options.journeys:
        print(
            table(files),
            drawing(files),
            *(f"{name}: {figure:,}" for name, figure in summary(files).items()),
            sep="\n",
        )
        return
    sys.path.insert(0, str(options.root))
    for name, journey in journeys().items():
        journey()  # imports, and what is kept for the next call
        files, changes = follow(journey)
        print(f"{name}: {len(files)} files, {changes} changes of file")
        if options.files:
            print(*(f"    {count:5} {file}" for file, count in files.items()), sep="\n")


if __name__ == "__main__":
    main()
