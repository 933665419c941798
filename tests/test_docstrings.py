"""Docstrings of all public names, as numpydoc checks them."""

import inspect
from dataclasses import is_dataclass
from importlib import import_module

import pytest
from _catalog import every

validate = pytest.importorskip("numpydoc.validate").validate

PUBLIC = [
    "skcalib",
    "skcalib.binning",
    "skcalib.decisions",
    "skcalib.displays",
    "skcalib.evaluation",
    "skcalib.guarantees",
    "skcalib.maps",
    "skcalib.metrics",
    "skcalib.model_selection",
    "skcalib.monitoring",
    "skcalib.recalibrators",
    "skcalib.simulation",
]
# A docstring, a summary in one line that ends in a period, every parameter with its
# type and description in order and no other, what is returned.
CODES = {
    "GL01",
    "GL08",
    "SS01",
    "SS02",
    "SS03",
    "SS04",
    "SS06",
    "PR01",
    "PR02",
    "PR03",
    "PR04",
    "PR07",
    "RT01",
    "RT03",
}


def _public_names():
    """Yield each name once: the functions and classes, then the methods that the
    package itself defines.
    """
    seen = set()
    for module in map(import_module, PUBLIC):
        for name in module.__all__:
            value = getattr(module, name)
            if not callable(value) or value in seen or name.startswith("_"):
                continue
            seen.add(value)
            # A result is shown by the function that returns it.
            is_result = inspect.isclass(value) and (
                issubclass(value, tuple) or is_dataclass(value)
            )
            yield f"{module.__name__}.{name}", not is_result
            if inspect.isclass(value):
                for own_name, attribute in vars(value).items():
                    method = getattr(attribute, "__func__", attribute)
                    if inspect.isfunction(method) and not own_name.startswith("_"):
                        yield f"{module.__name__}.{name}.{method.__name__}", False


@every("described", list(_public_names()))
def test_docstring(described):
    name, needs_example = described
    codes = CODES | ({"EX01"} if needs_example else set())
    errors = [
        f"{code}: {text}" for code, text in validate(name)["errors"] if code in codes
    ]
    assert not errors


def test_everything_public_is_exported():
    for module in map(import_module, PUBLIC):
        assert len(set(module.__all__)) == len(module.__all__)
        assert all(hasattr(module, name) for name in module.__all__)


# Parameters that many functions share: how their description begins, one sentence for
# each meaning. A parameter of another meaning gets a sentence here; one of the same
# meaning takes the sentence that is there.
SENTENCES = {
    "confidence_level": (
        "Coverage of each interval, in (0, 1)",
        "Probability with which the guarantee holds, in (0, 1)",
        "Probability that the bound holds, in (0, 1)",
        "Probability that the band contains the whole curve",
        "Probability that a calibrated model stays inside the band",
        "Probability that there is never an alarm",
        "Probability that no group has an alarm",
        "Probability, over both samples, that every bin is within the tolerance",
        "Confidence level of the certificate, at which `epsilon` must hold",
        "Level of the upper bound, in (0.5, 1)",
        (
            "Level of each bin's interval, of the consistency band (at each score) and"
            " of the error's interval"
        ),
    ),
    "n_jobs": (
        (
            "Number of parallel jobs. None means 1 unless a `joblib.parallel_config`"
            " says otherwise; -1 means all processors."
        ),
        "Number of threads",  # of which each docstring says what they do
    ),
    "random_state": (
        "Seed for the random draws.",
        "Seed for the split.",
        "Seed for the folds.",
        "Seed for histogram gradient boosting",
        ("Seed for shuffling the samples before a split; None keeps their order."),
        "Seed for the second key of the training samples",
    ),
}


def test_shared_parameters_are_described_alike():
    docscrape = pytest.importorskip("numpydoc.docscrape")
    for name, _ in _public_names():
        public = max((one for one in PUBLIC if name.startswith(f"{one}.")), key=len)
        value = import_module(public)
        for part in name.removeprefix(f"{public}.").split("."):
            value = getattr(value, part)
        for parameter in docscrape.NumpyDocString(inspect.getdoc(value))["Parameters"]:
            text = " ".join(" ".join(parameter.desc).split())
            begins = [
                one for one in SENTENCES.get(parameter.name, ()) if text.startswith(one)
            ]
            assert begins or parameter.name not in SENTENCES, (
                f"{name}: {parameter.name} : {text}"
            )


def test_what_takes_data_says_what_it_raises():
    silent = []
    # The nodes of maps take numbers and other nodes, no rows.
    for module in map(import_module, set(PUBLIC) - {"skcalib.maps"}):
        for name in module.__all__:
            public = getattr(module, name)
            if name.startswith("_") or not callable(public):
                continue
            if inspect.isclass(public):
                takes_data = hasattr(public, "fit")
            else:
                takes_data = bool(inspect.signature(public).parameters)
            if takes_data and "\nRaises\n------\n" not in inspect.getdoc(public):
                silent.append(name)
    assert not silent
