"""What an editor and a type checker know of the public names is what there is."""

import ast
import inspect
import os
import re
from importlib import import_module
from pathlib import Path

import _type_check
import pytest

import skcalib

SUBMODULES = [f"skcalib.{name}" for name in skcalib._SUBMODULES]
PUBLIC = [
    (module, name)
    for module in ["skcalib", "skcalib.recalibrators", *SUBMODULES]
    for name in import_module(module).__all__
    if callable(getattr(import_module(module), name))
]

# jedi does not see the fields of a dataclass that its base declares; pyright does.
_FIELDS_OF_A_BASE = {
    "Exp",
    "Largest",
    "Log",
    "LogOdds",
    "LogOddsAgainstRest",
    "LogSides",
    "RowMax",
}


def test_the_package_says_that_it_is_typed():
    assert Path(skcalib.__file__).with_name("py.typed").read_text("utf-8") == ""


@pytest.fixture(scope="module")
def editor(tmp_path_factory):
    """Return a function that makes what jedi knows of a text."""
    jedi = pytest.importorskip("jedi")
    # Processes that share a cache read each other's files half-written.
    jedi.settings.cache_directory = str(tmp_path_factory.mktemp("jedi"))
    project = jedi.Project(Path(skcalib.__file__).parents[1])
    environment = jedi.InterpreterEnvironment()
    return lambda code: jedi.Script(code, project=project, environment=environment)


def _signatures(script, line, name):
    """Return the names of the parameters of each signature that is shown."""
    signatures = script.get_signatures(line, len(name) + 1)
    return [[parameter.name for parameter in each.params] for each in signatures]


@pytest.mark.slow
def test_an_editor_shows_the_signatures(editor):
    """A text for each module calls all of its names. One test has all modules: what
    jedi has read, a process reads once.
    """
    wrong = {}
    for module in sorted({module for module, _ in PUBLIC}):
        names = [name for home, name in PUBLIC if home == module]
        calls = [f"{name}()" for name in names]
        script = editor("\n".join([f"from {module} import {', '.join(names)}", *calls]))
        for line, name in enumerate(names, start=2):
            shown = _signatures(script, line, name)
            if name in _FIELDS_OF_A_BASE and shown == [[]]:
                continue
            public = getattr(import_module(module), name)
            parameters = list(inspect.signature(public).parameters)
            # An overloaded function shows one signature for each type of its result.
            if not shown or any(one != parameters for one in shown):
                wrong[f"{module}.{name}"] = shown
    assert not wrong


def _public_functions():
    """Yield (name, function) of each public function, and of each public method that
    this package defines.
    """
    for module, name in PUBLIC:
        public = getattr(import_module(module), name)
        if not inspect.isclass(public):
            yield f"{module}.{name}", public
            continue
        yield f"{module}.{name}.__init__", public.__init__
        for method in dir(public):
            member = inspect.getattr_static(public, method)
            function = getattr(member, "__func__", member)
            if method.startswith("_") or not inspect.isfunction(function):
                continue
            if inspect.unwrap(function).__module__.startswith("skcalib."):
                yield f"{module}.{name}.{method}", function


def test_parameters_and_results_of_public_functions_are_annotated():
    lacking = []
    for name, function in _public_functions():
        signature = inspect.signature(function)
        for parameter in signature.parameters.values():
            is_variadic = parameter.kind in (
                parameter.VAR_POSITIONAL,
                parameter.VAR_KEYWORD,
            )
            if parameter.name in ("self", "cls") or is_variadic:
                continue
            if parameter.annotation is parameter.empty:
                lacking.append(f"{name}({parameter.name})")
        has_result = signature.return_annotation is not signature.empty
        if not (has_result or name.endswith("__init__")):
            lacking.append(f"{name} -> ?")
    assert not lacking


@pytest.mark.slow
def test_an_editor_completes_the_submodules(editor):
    script = editor("import skcalib\nskcalib.")
    completions = {one.name for one in script.complete(2, len("skcalib."))}
    assert completions >= {*skcalib._SUBMODULES, *skcalib.__all__}


@pytest.mark.slow
def test_samples_are_complete():
    """Each page with code is a sample, and each docstring with an example."""
    names = _type_check.samples()
    for page in _type_check.pages():
        if "\n```python\n" in page.read_text("utf-8"):
            assert f"page_{page.stem}.py" in names
    assert "docstring_displays-_reliability.py" in names
    assert names["docstring_binning-_base.py"].count("def example_") >= 1
    for code in names.values():
        ast.parse(code)


@pytest.mark.slow
def test_pyright_accepts_what_people_copy():
    lacking = _type_check.absent()
    if lacking is not None:
        if os.environ.get("SKCALIB_REQUIRE_PYRIGHT") == "1":
            pytest.fail(f"SKCALIB_REQUIRE_PYRIGHT=1, but there is {lacking}.")
        pytest.skip(f"There is {lacking}.")
    lines = _type_check.errors()
    for guess in _type_check.GUESSES:
        assert any(re.search(guess, line) for line in lines), f"remove {guess}"
    findings = [line for line in lines if not _type_check.is_guess(line)]
    assert not findings, "\n".join(findings)
