"""What an editor and a notebook show: signatures as they are written, public names
only, options that are accepted, pages of the reference, and what a fit has found.
"""

import inspect
from importlib import import_module
from typing import get_args, get_type_hints

import numpy as np
import pytest
from _catalog import every
from _signatures import public_callables, public_modules
from sklearn.base import BaseEstimator, clone

import skcalib
from skcalib import displays, metrics, monitoring
from skcalib._described import DescribedEstimator

RNG = np.random.default_rng(0)
SCORES = RNG.beta(1, 2, 300)
Y = (RNG.random(300) < SCORES).astype(int)
# A signature as it is written has about this many characters for each parameter: its
# name, its type and its default.
CHARACTERS_PER_PARAMETER = 75


def test_signatures_are_printed_as_they_are_written():
    long = {}
    for path, public in public_callables().items():
        signature = inspect.signature(public)
        n_parameters = len(signature.parameters) + 1  # and what is returned
        if len(str(signature)) > CHARACTERS_PER_PARAMETER * n_parameters:
            long[path] = len(str(signature))
    assert not long
    assert len(str(inspect.signature(metrics.calibration_error))) < 600


@pytest.mark.parametrize("name", public_modules())
def test_completion_shows_public_names_only(name):
    module = import_module(name)
    shown = {shown for shown in dir(module) if not shown.startswith("__")}
    assert {public for public in module.__all__ if public[0] != "_"} <= shown
    assert not [other for other in shown if other.startswith("_")]
    for other in shown - set(module.__all__):
        assert inspect.ismodule(getattr(module, other))


@pytest.mark.parametrize(
    ("function", "rows"),
    [
        (metrics.calibration_by_group, (Y, SCORES, np.arange(300) % 2)),
        (metrics.calibration_slope_intercept, (Y, SCORES)),
        (monitoring.calibration_change, (Y[:150], SCORES[:150], Y[150:], SCORES[150:])),
    ],
)
def test_types_admit_no_refused_option(function, rows):
    options = get_args(get_type_hints(function)["multiclass"])
    assert "auto" in options
    for option in options:
        function(*rows, multiclass=option)
    with pytest.raises(ValueError, match="marginal"):
        function(*rows, multiclass="marginal")
    assert "marginal" not in options


def _estimators():
    for path, public in public_callables().items():
        if inspect.isclass(public) and issubclass(public, BaseEstimator):
            yield path, public


@every("found", _estimators())
def test_every_estimator_links_to_its_page(found):
    path, estimator = found
    assert issubclass(estimator, DescribedEstimator)
    if path.startswith("skcalib.recalibrators."):
        return  # bases, which are not made
    try:
        made = estimator()
    except TypeError:
        made = object.__new__(estimator)  # with a required argument
    page = f"https://skcalib.github.io/skcalib/_generated/{path}.html"
    assert made._get_doc_link() == page


def test_a_fit_says_what_it_found():
    model = skcalib.PlattScaling()
    assert str(model) == repr(model) == "PlattScaling()"
    fitted = clone(model).fit(SCORES, Y)
    sentence = f"PlattScaling fitted to 300 samples with {Y.sum()} events."
    assert str(fitted) == sentence
    assert repr(fitted) == "PlattScaling()"
    assert fitted._repr_html_().startswith(f"<p><strong>{sentence}</strong></p>")
    html = fitted._repr_mimebundle_()["text/html"]
    assert html.startswith(f"<p><strong>{sentence}</strong></p>")
    measured = skcalib.Recalibrator().fit(SCORES, Y)
    assert "which uses Uncalibrated, fitted to 300 samples" in str(measured)
    assert str(measured.gain_) in str(measured)
    assert measured.gain_.confidence_level == 0.9
    saved = "Reduction in log-loss with recalibration, on held-out data"
    assert measured.gain_.quantity == saved


def test_a_monitor_says_whether_there_is_an_alarm():
    monitor = monitoring.CalibrationMonitor()
    assert str(monitor) == repr(monitor)
    monitor.partial_fit(SCORES, Y)
    assert str(monitor).startswith(
        "No alarm in 300 samples (confidence level 99 %): the evidence"
    )
    low = monitoring.CalibrationMonitor().partial_fit(SCORES / 4, Y)
    assert str(low) == (
        f"Alarm at sample {low.alarm_row_} (confidence level 99 %): scores too low;"
        f" the change lies near sample {low.change_row_}."
    )
    assert repr(low) == "CalibrationMonitor()"
    groups = monitoring.GroupMonitors()
    groups.partial_fit(SCORES / 4, Y, np.where(np.arange(300) % 2, "FR", "IT"))
    assert str(groups).startswith(
        "Alarm in 2 of 2 groups: IT (scores too low, change near sample "
    )
    pytest.importorskip("pandas")
    assert low.to_frame().n_rows.tolist() == [300]


def test_displays_write_their_options_out():
    """`from_estimator` has the options of `from_predictions`, with their defaults; only
    those of `plot` may be passed on together.
    """
    for name in displays.__all__:
        display = getattr(displays, name)
        makers = []
        for maker in ("from_predictions", "from_estimator"):
            # A display of one's own inherits a `from_estimator` that passes all on.
            if maker in vars(display):
                makers.append(inspect.signature(getattr(display, maker)).parameters)
        for parameters in makers:
            for parameter in parameters.values():
                is_variadic = parameter.kind is parameter.VAR_KEYWORD
                assert not is_variadic or parameter.name == "plot_options", name
        if len(makers) == 2:
            of_labels, of_model = makers
            # What a fitted model and its samples give.
            for option in set(of_labels) - {"y_true", "y_proba", "X", "labels"}:
                assert of_model[option].default == of_labels[option].default, name
