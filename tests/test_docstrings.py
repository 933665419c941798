"""Docstrings of all public names, as numpydoc checks them."""

import inspect
from dataclasses import is_dataclass
from importlib import import_module

import pytest

validate = pytest.importorskip("numpydoc.validate").validate

PUBLIC = [
    "skcalib",
    "skcalib.binning",
    "skcalib.decisions",
    "skcalib.displays",
    "skcalib.evaluation",
    "skcalib.guarantees",
    "skcalib.metrics",
    "skcalib.model_selection",
    "skcalib.monitoring",
    "skcalib.recalibrators",
    "skcalib.simulation",
]
# A docstring, a summary in one line that ends in a period, every parameter with its type and description in order and
# no other, what is returned.
CODES = {"GL01", "GL08", "SS01", "SS02", "SS03", "SS04", "SS06", "PR01", "PR02", "PR03", "PR04", "PR07", "RT01", "RT03"}


def _public_names():
    """Yield each name once: the functions and classes, then the methods that the package itself defines."""
    seen = set()
    for module in map(import_module, PUBLIC):
        for name in module.__all__:
            value = getattr(module, name)
            if not callable(value) or value in seen or name.startswith("_"):
                continue
            seen.add(value)
            # A result is shown by the function that returns it.
            is_result = inspect.isclass(value) and (issubclass(value, tuple) or is_dataclass(value))
            yield f"{module.__name__}.{name}", not is_result
            if inspect.isclass(value):
                for own_name, attribute in vars(value).items():
                    method = getattr(attribute, "__func__", attribute)
                    if inspect.isfunction(method) and not own_name.startswith("_"):
                        yield f"{module.__name__}.{name}.{method.__name__}", False


@pytest.mark.parametrize(("name", "needs_example"), list(_public_names()), ids=lambda value: str(value))
def test_docstring(name, needs_example):
    codes = CODES | ({"EX01"} if needs_example else set())
    errors = [f"{code}: {text}" for code, text in validate(name)["errors"] if code in codes]
    assert not errors


def test_everything_public_is_exported():
    for module in map(import_module, PUBLIC):
        assert len(set(module.__all__)) == len(module.__all__)
        assert all(hasattr(module, name) for name in module.__all__)
