"""Three objects that are added to a copy of the library by the steps of the how-to
pages: what `tests/test_additions.py` and `tests/test_howto.py` share.
"""

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[1]
WRITTEN = ROOT / "tests" / "additions"
NAMES = ("ComplementaryLogLog", "overestimation_error", "BiasDisplay")
PICTURES = ("bias",)

# The entries that the tests ask for: file of the registry, import, entry.
ENTRIES = [
    (
        "recalibrators",
        "from skcalib import ComplementaryLogLog",
        """
    "skcalib.ComplementaryLogLog": RecalibratorEntry(
        job="doc/contributing.md",
        instances=(ComplementaryLogLog(),),
        two_classes=(ComplementaryLogLog(),),
        three_classes=(ComplementaryLogLog(),),
        no_paper="an example",
    ),
""",
    ),
    (
        "metrics",
        "from skcalib.metrics import overestimation_error",
        """
    "skcalib.metrics.overestimation_error": MetricEntry(
        job="doc/contributing.md",
        results=_error(overestimation_error),
        no_paper="an example",
    ),
""",
    ),
    (
        "displays",
        "from skcalib.displays import BiasDisplay",
        """
    "skcalib.displays.BiasDisplay": DisplayEntry(
        job="doc/contributing.md",
        pictures=("bias",),
        no_paper="an example",
        no_finding="its number has no sentence",
    ),
""",
    ),
]


def steps(kind):
    """Return the file and the code of each numbered step that adds a recalibrator, a
    metric, a strategy, a display or an engine to the library.
    """
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    _, text = re.split(rf"^### Add an? {kind} to the library$", page, flags=re.M)
    text = re.split(r"^###? ", text, flags=re.M)[0]
    for step in re.split(r"^\d\. ", text, flags=re.M)[1:]:
        code = re.search(r"```python\n\s*(.*?)\n\s*```", step, flags=re.S)
        yield re.match(r"`([^`]*)`", step).group(1), code and code.group(1)


def edit(path, old, new):
    """Replace what stands in a file once."""
    text = path.read_text("utf-8")
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new), "utf-8")


def export(library, file, code):
    """Add the import of a step to a module, and the name to its `__all__`."""
    name = code.split()[-1]
    edit(library / file, "__all__ = [", f'{code}\n\n__all__ = [\n    "{name}",')


def export_from_the_front(library, file, code):
    """Add the name of a step to `__all__` of the package, and to the import that only
    editors and type checkers see.
    """
    imported, name = code.split(" import ")
    edit(library / file, "__all__ = [", f'__all__ = [\n    "{name}",')
    edit(
        library / file,
        f"    {imported} import (",
        f"    {imported} import (\n        {name},",
    )


def add_row(library, table, names, row):
    """Add an imported metric and its row to the table of metrics."""
    row_class = "\n\n@dataclass(frozen=True"
    imported = f"{names}, OverestimationError\n{row_class}"
    edit(library / table, row_class, imported)
    edit(
        library / table,
        "        Metric(groupwise",
        f"        {row}\n        Metric(groupwise",
    )


def add_objects(library):
    """Take all steps of the pages that add a recalibrator, a metric and a display."""
    (module, _), (room, names), (package, top_names) = steps("recalibrator")
    shutil.copy(WRITTEN / "complementary_log_log.py", library / module)
    export(library, room, names)
    export_from_the_front(library, package, top_names)
    (module, _), (package, names), (table, row) = steps("metric")
    shutil.copy(WRITTEN / "overestimation_error.py", library / module)
    export(library, package, names)
    add_row(library, table, names, row)
    (module, _), (package, names) = steps("display")
    shutil.copy(WRITTEN / "bias_display.py", library / module)
    export(library, package, names)


def add_entries(library):
    """Add the entries of the registry, and the picture that the display's names."""
    for file, imported, entry in ENTRIES:
        path = library / "tests" / "registry" / f"{file}.py"
        edit(path, "ENTRIES = {\n", f"{imported}\n\nENTRIES = {{{entry}")
    book = library / "doc" / "examples" / "look_book.py"
    edit(book, "    BinCountDisplay,\n", "    BiasDisplay,\n    BinCountDisplay,\n")
    picture = '"bias": lambda ax: BiasDisplay.from_predictions(y, two, ax=ax),'
    first = '        "reliability": lambda ax'
    edit(book, first, f"        {picture}\n{first}")
