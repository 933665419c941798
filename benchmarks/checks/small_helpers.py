"""Private functions of at most three statements that the package names only once.

``python -m benchmarks.checks.small_helpers`` lists them. Such a function is read where
it is used and where it stands: it pays only if its name explains more than its
statements. `LIMIT` is how many there are; it may only fall.
"""

import ast
import re
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "skcalib"
MOST_STATEMENTS = 3
LIMIT = 72


def small_helpers(files):
    """Return the functions as (file, name) in the order of the files.

    A method counts as well, unless another class of the package has one of the same
    name: that is a protocol. Docstrings are no statements.

    Parameters
    ----------
    files : dict
        From a path to the text of a module.

    Returns
    -------
    helpers : list of (path, str)
        The functions.
    """
    trees = {path: ast.parse(text) for path, text in files.items()}
    named = Counter()
    definitions = Counter()
    small = []
    for path, tree in trees.items():
        named.update(_private_names(tree))
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef) or not _is_private(node.name):
                continue
            definitions[node.name] += 1
            if _statements(node) <= MOST_STATEMENTS and not node.decorator_list:
                small.append((path, node.name))
    return [
        (path, name)
        for path, name in small
        if definitions[name] == 1 and named[name] == 2
    ]


def _is_private(name):
    return name.startswith("_") and not name.startswith("__")


def _statements(function):
    """Return the number of statements inside a function, its docstring left out."""
    inner = [node for node in ast.walk(function) if isinstance(node, ast.stmt)]
    return len(inner) - 1 - (ast.get_docstring(function) is not None)


def _private_names(tree):
    """Yield each private name in the code of a module, also those in texts that are no
    docstrings.
    """
    docstrings = set()
    for node in ast.walk(tree):
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
        if isinstance(node, kinds) and ast.get_docstring(node) is not None:
            docstrings.add(node.body[0].value)
        for field in ("id", "attr", "name", "asname", "arg", "module"):
            yield from re.findall(r"\b_\w+", getattr(node, field, None) or "")
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node not in docstrings:
                yield from re.findall(r"\b_\w+", node.value)


def package():
    """Return the texts of the package by path."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {path.relative_to(PACKAGE): path.read_text("utf-8") for path in paths}


def main():
    """Print the functions and their number."""
    helpers = small_helpers(package())
    for path, name in helpers:
        print(f"{path}: {name}")
    print(f"{len(helpers)} functions, at most {LIMIT}")


if __name__ == "__main__":
    main()
