"""Constructors are written out, and a subclass may write its own."""

import inspect
from numbers import Real

import numpy as np
import pytest
from _catalog import every
from sklearn.base import BaseEstimator, clone

import skcalib
from skcalib import (
    HistogramBinning,
    PlattScaling,
    RecalibratedClassifierCV,
    ScalingBinning,
    binning,
    decisions,
    monitoring,
    recalibrators,
)
from skcalib._input.sklearn_private import Interval
from skcalib.binning import EqualMass
from skcalib.recalibrators import BinaryRecalibrator, LogitRecalibrator

ESTIMATORS = {
    name: member
    for room in (skcalib, binning, decisions, monitoring, recalibrators)
    for name, member in ((name, getattr(room, name)) for name in room.__all__)
    if inspect.isclass(member) and issubclass(member, BaseEstimator)
}
every_estimator = every("name", sorted(ESTIMATORS))


def _binary_rows():
    rng = np.random.default_rng(0)
    scores = rng.random(200)
    return scores, rng.random(200) < scores**2


@every_estimator
def test_help_shows_the_parameters_of_the_constructor(name):
    member = ESTIMATORS[name]
    _, *parameters = inspect.signature(member.__init__).parameters.values()
    if member.__init__ is object.__init__:
        parameters = []
    assert list(inspect.signature(member).parameters.values()) == parameters


@every_estimator
def test_constructors_only_assign(name):
    estimator = ESTIMATORS[name]
    parameters = inspect.signature(estimator).parameters
    if not parameters:
        return
    constructor = estimator.__init__
    assert all(
        parameter.annotation is not inspect.Parameter.empty
        for parameter in parameters.values()
    )
    source = inspect.getsource(constructor)
    for parameter in parameters:
        assert source.count(f"self.{parameter} = {parameter}\n") == 1
    assert source.count("self.") == len(parameters)


@every_estimator
def test_constraints_name_parameters(name):
    estimator = ESTIMATORS[name]
    constraints = getattr(estimator, "_parameter_constraints", None)
    if constraints:
        assert sorted(constraints) == estimator._get_param_names()


class Pulled(BinaryRecalibrator):
    """Shift of the log-odds to the base rate, of which a part is taken."""

    _scale = "log_odds"
    _parameter_constraints = {
        **BinaryRecalibrator._parameter_constraints,
        "pull": [Interval(Real, 0, 1, closed="both")],
    }

    offset_: float  # an annotation is no parameter

    def __init__(
        self,
        pull=1.0,
        *,
        multiclass="ovr",
        normalize=True,
        input="probability",
        classes=None,
    ):
        self.pull = pull
        self.multiclass = multiclass
        self.normalize = normalize
        self.input = input
        self.classes = classes

    def _fit_binary(self, log_odds, labels, sample_weight):
        frequency = np.average(labels, weights=sample_weight)
        mean = np.average(log_odds, weights=sample_weight)
        self.offset_ = float(np.log(frequency / (1 - frequency)) - mean)

    def _predict_binary(self, log_odds):
        return 1 / (1 + np.exp(-(log_odds + self.pull * self.offset_)))


class Typed(Pulled):
    """The same; fields below an ordinary constructor leave it alone."""

    pull: float
    note: str = "not a parameter"


FUTURE = """
from __future__ import annotations

from numbers import Real

import numpy as np
from skcalib._input.sklearn_private import Interval
from skcalib.recalibrators import LogitRecalibrator


class Tempered(LogitRecalibrator):
    _parameter_constraints = {
        **LogitRecalibrator._parameter_constraints,
        "temperature": [Interval(Real, 0, None, closed="neither")],
    }

    fitted_: bool

    def __init__(
        self,
        temperature: float = 2.0,
        *,
        input: str = "probability",
        classes: np.ndarray | None = None,
    ):
        self.temperature = temperature
        self.input = input
        self.classes = classes

    def _fit_logits(self, logits, codes, sample_weight):
        self.fitted_ = True

    def _predict_logits(self, logits):
        return logits / self.temperature
"""


def test_a_parameter_of_a_subclass():
    scores, y = _binary_rows()
    model = clone(Pulled(0.0, input="probability")).fit(scores, y)
    np.testing.assert_allclose(model.predict_proba(scores)[:, 1], scores)
    assert repr(Pulled(pull=0.5)) == "Pulled(pull=0.5)"
    assert list(model.get_params()) == [
        "classes",
        "input",
        "multiclass",
        "normalize",
        "pull",
    ]
    with pytest.raises(ValueError, match="'pull' parameter of Pulled must be a float"):
        Pulled(pull=3.0).fit(scores, y)
    with pytest.raises(ValueError, match="'input' parameter of Pulled"):
        Pulled(input="odds").fit(scores, y)
    model.set_params(pull=0.5)
    with pytest.raises(ValueError, match=r"was fitted with pull=0\.0"):
        model.predict_proba(scores)
    assert model.fit(scores, y).provenance_["parameters"]["pull"] == 0.5


def test_annotated_attributes_are_no_parameters():
    scores, y = _binary_rows()
    model = clone(Typed(0.0)).fit(scores, y)
    assert model.pull == 0.0
    assert "note" not in model.get_params()
    assert "offset_" not in model.get_params()
    np.testing.assert_allclose(model.predict_proba(scores)[:, 1], scores)


def test_a_subclass_whose_annotations_are_not_evaluated():
    namespace = {"__name__": "future"}
    exec(FUTURE, namespace)
    tempered = namespace["Tempered"]
    scores, y = _binary_rows()
    model = clone(tempered(4.0)).fit(scores, y)
    expected = 1 / (1 + ((1 - scores) / scores) ** 0.25)
    np.testing.assert_allclose(model.predict_proba(scores)[:, 1], expected)
    assert model.get_params() == {
        "classes": None,
        "input": "probability",
        "temperature": 4.0,
    }
    with pytest.raises(ValueError, match="'temperature' parameter of Tempered"):
        tempered(0.0).fit(scores, y)


def test_a_subclass_that_hands_parameters_to_its_base():
    class Named(LogitRecalibrator):
        def __init__(self, name="", **of_the_base):
            super().__init__(**of_the_base)
            self.name = name

    assert Named("a", input="logit").input == "logit"

    class Gentle(PlattScaling):
        def __init__(self, strength=1.0, *, input="probability", classes=None):
            super().__init__(input=input, classes=classes)
            self.strength = strength

    scores, y = _binary_rows()
    model = clone(Gentle(2.0)).fit(scores, y)
    assert list(model.get_params()) == ["classes", "input", "strength"]
    expected = PlattScaling().fit(scores, y).predict_proba(scores)
    np.testing.assert_array_equal(model.predict_proba(scores), expected)


def test_nested_parameters_of_a_default_object():
    model = HistogramBinning().set_params(binning__n_bins=7)
    assert isinstance(model.binning, EqualMass)
    assert model.binning.n_bins == 7
    both = ScalingBinning().set_params(recalibrator__loss="squared", binning__n_bins=3)
    assert both.recalibrator.loss == "squared"
    assert both.binning.n_bins == 3
    model = RecalibratedClassifierCV().set_params(recalibrator__n_standard_errors=1.0)
    assert model.recalibrator.n_standard_errors == 1.0
