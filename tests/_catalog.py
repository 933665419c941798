"""What the tests of common properties run over: lists that are read from the registry,
and the check of an error message.
"""

import traceback
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
from registry import MetricEntry, RecalibratorEntry, entries_of

import skcalib
from skcalib import recalibrators
from skcalib._inference.results import ResultTable

_ENTRIES = entries_of(RecalibratorEntry).values()

# One or more instances of every public recalibrator.
RECALIBRATORS = [instance for entry in _ENTRIES for instance in entry.instances]
# Those that fit others, several times.
COMPOSED = (recalibrators.Recalibrator, recalibrators.StackedRecalibrator)
# Those whose theory has no weights.
UNWEIGHTED = tuple(
    type(entry.instances[0]) for entry in _ENTRIES if not entry.takes_weights
)
_FIT_MISSING_CLASS = tuple(
    type(entry.instances[0]) for entry in _ENTRIES if entry.fits_missing_class
)


def quick(recalibrators_):
    """Return the first recalibrator of each class, without those that fit others,
    several times, and take as long as all the rest.
    """
    first = {}
    for one in recalibrators_:
        if not isinstance(one, COMPOSED):
            first.setdefault(type(one), one)
    return list(first.values())


def each_of(recalibrators_):
    """Return a test parameter of each recalibrator: the first one of each class is
    tested fast, its other options slowly.
    """
    recalibrators_ = list(recalibrators_)
    fast = quick(recalibrators_)
    return [
        pytest.param(one, marks=[] if one in fast else [pytest.mark.slow], id=repr(one))
        for one in recalibrators_
    ]


def fits_missing_class(recalibrator):
    """Return whether it fits with `classes=` where one of three classes has no row."""
    # The squared loss has no smoothed targets, which hold a class without rows.
    is_unheld = getattr(recalibrator, "loss", None) == "squared"
    return isinstance(recalibrator, _FIT_MISSING_CLASS) and not is_unheld


def public_recalibrators():
    """Return the classes of all public recalibrators."""
    public = (getattr(skcalib, name) for name in skcalib.__all__)
    return {
        one
        for one in public
        if isinstance(one, type) and issubclass(one, recalibrators.BaseRecalibrator)
    }


def metrics_(*needs, many_classes=False):
    """Return test parameters: functions of (y_true, y_proba, **options), those that
    have all the parameters named.

    Functions that need more than labels and probabilities are left out, and with
    `many_classes` those of one event.
    """
    found = []
    for path, entry in entries_of(MetricEntry).items():
        if many_classes and entry.one_event:
            continue
        module, _, name = path.rpartition(".")
        metric = getattr(import_module(module), name)
        if _takes_labels_and_probabilities(metric, needs):
            found.append(pytest.param(_with_options(metric, entry.options), id=name))
    return found


def _takes_labels_and_probabilities(metric, needs):
    parameters = signature(metric).parameters
    names = list(parameters)
    for parameter in list(parameters.values())[2:]:
        is_needed = parameter.default is parameter.empty
        if is_needed and parameter.kind != parameter.VAR_KEYWORD:
            return False
    return names[:2] == ["y_true", "y_proba"] and set(needs) <= set(names)


def random_metrics():
    """Return the names of the metrics that draw."""
    return {
        path.rpartition(".")[2]
        for path, entry in entries_of(MetricEntry).items()
        if entry.is_random
    }


def _with_options(metric, options):
    def call(y_true, y_proba, **more):
        result = metric(y_true, y_proba, **{**options, **more})
        if not isinstance(result, ResultTable):
            return result
        return [
            column
            for column in result.columns().values()
            if np.asarray(column).dtype.kind not in "US"
        ]

    call.__name__ = metric.__name__
    return call


def check_or_fail(check, estimator, expected):
    """Call one of scikit-learn's checks, which must fail if its name is in `expected`.

    Their argument `expected_failed_checks` does the same, but pytest takes half a
    second to format the traceback of each such failure.
    """
    function = check
    while hasattr(function, "func"):
        function = function.func
    if function.__name__ in expected:
        with pytest.raises((ValueError, AssertionError)):
            check(estimator)
    else:
        check(estimator)


@contextmanager
def refused(exception, *words):
    """Expect one exception, raised in our own code, whose message holds all the
    words.
    """
    with pytest.raises(exception) as caught:
        yield
    message = str(caught.value)
    missing = [word for word in words if word not in message]
    assert not missing, f"{missing} is not in: {message}"
    raised_in = traceback.extract_tb(caught.value.__traceback__)[-1].filename
    assert Path(raised_in).is_relative_to(Path(skcalib.__file__).parent), raised_in


def check_each(check, cases):
    """Call `check` with each of many quick cases, and fail with all that fail; skip if
    one skips.

    One test a case would take longer than the case itself.
    """
    failures = []
    skipped = None
    for case in cases:
        try:
            check(case)
        except pytest.skip.Exception as error:
            skipped = error
        except (Exception, pytest.fail.Exception):
            failures.append(f"--- {case!r}\n{traceback.format_exc()}")
    assert not failures, "\n".join([f"{len(failures)} cases fail:", *failures])
    if skipped is not None:
        raise skipped


def every(name, cases):
    """Return a decorator of tests that have a parameter of this name: each of many
    quick cases of it is checked as by `check_each`.

    Cases are values, or those of `pytest.param`, which have an id.
    """
    values = {
        getattr(case, "id", case): getattr(case, "values", (case,))[0] for case in cases
    }

    def decorate(test):
        @wraps(test)
        def all_cases(**others):
            check_each(lambda case: test(**{name: values[case]}, **others), values)

        described = signature(test)
        others = [one for one in described.parameters.values() if one.name != name]
        all_cases.__signature__ = described.replace(parameters=others)
        all_cases.cases = [str(case) for case in values]
        return all_cases

    return decorate
