"""A refused fit leaves a fitted object as it was, and a new one unfitted."""

import inspect
import pickle
import sys
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from registry import REGISTRY, RecalibratorEntry, entries_of
from scipy.special import logit
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import skcalib
from skcalib import (
    CrossFittedClassifier,
    GroupwiseRecalibrator,
    HistogramBinning,
    MulticalibratedRecalibrator,
    OnlineRecalibrator,
    PlattScaling,
    RecalibratedClassifierCV,
    Recalibrator,
    StackedRecalibrator,
    TemperatureScaling,
    UniformMassBinning,
)
from skcalib._solvers.online_logistic import ForgettingNewton
from skcalib.decisions import CertifiedThresholdClassifier, ExpectedCostClassifier
from skcalib.metrics import BinStatistics
from skcalib.monitoring import CalibrationMonitor, GroupMonitors

PACKAGE = Path(skcalib.__file__).parent
REFUSED = ValueError  # the messages are tested elsewhere
N = 80
RNG = np.random.default_rng(0)
SCORES = RNG.uniform(0.02, 0.98, N)
Y = (RNG.random(N) < SCORES).astype(int)
X = np.column_stack((logit(SCORES), RNG.normal(size=N)))
NAMED = np.where(Y == 1, "b", "a")
WEIGHT = np.ones(N)
THREE_COLUMNS = RNG.dirichlet(np.ones(3), N)
THREE_CLASSES = np.arange(N) % 3


def _with(values, place, value):
    """Return a copy of an array with one other entry."""
    changed = np.array(values, dtype=float)
    changed[place] = value
    return changed


# What no fit of scores accepts: scores, labels and weights. The labels have other names
# than those of the fit before.
BAD_ROWS = {
    "a weight of NaN": (SCORES, NAMED, _with(WEIGHT, 3, np.nan)),
    "negative weights": (SCORES, NAMED, -WEIGHT),
    "weights of 0": (SCORES, NAMED, 0 * WEIGHT),
    "too few weights": (SCORES, NAMED, WEIGHT[1:]),
    "too few labels": (SCORES, NAMED[1:], None),
    "three columns for two labels": (THREE_COLUMNS, NAMED, None),
    "a score of NaN": (_with(SCORES, 3, np.nan), NAMED, None),
    "a score of 1.5": (_with(SCORES, 3, 1.5), NAMED, None),
    "one class": (SCORES, np.full(N, "a"), None),
    "a missing label": (SCORES, np.where(Y == 1, 1.0, np.nan), None),
    "no rows": (SCORES[:0], NAMED[:0], None),
}


def _recalibrators():
    """Yield the instances of the registry, each kind of parameters once."""
    for entry in entries_of(RecalibratorEntry).values():
        for one in entry.instances:
            if one.input == "probability" and not hasattr(one, "cv"):
                yield pytest.param(one, id=repr(one))
    yield pytest.param(StackedRecalibrator(cv=2), id="StackedRecalibrator(cv=2)")
    gaining = Recalibrator(PlattScaling(), cv=2)
    yield pytest.param(gaining, id="Recalibrator(cv=2)")
    groupwise = GroupwiseRecalibrator(PlattScaling(), min_group_size=5)
    yield pytest.param(groupwise, id="GroupwiseRecalibrator")
    yield pytest.param(OnlineRecalibrator(), id="OnlineRecalibrator")
    multicalibrated = MulticalibratedRecalibrator(
        PlattScaling(), features=_sign, max_rounds=2, cv=2, random_state=0
    )
    yield pytest.param(multicalibrated, id="MulticalibratedRecalibrator")


def _sign(scores):
    """Return a feature that any scores have, (n, 1)."""
    return np.arange(len(scores))[:, None] % 2


def _state(estimator, new):
    """Return the attributes, as they are pickled, and the predictions, as bytes."""
    predicted = []
    for method in ("predict_proba", "predict", "transform"):
        if hasattr(estimator, method):
            predicted.append(getattr(estimator, method)(new))
    return pickle.dumps((predicted, estimator.__getstate__()))


def _fit(estimator, scores, y, weight):
    """Fit, with weights if there are some."""
    if weight is None:
        return estimator.fit(scores, y)
    return estimator.fit(scores, y, sample_weight=weight)


def _assert_unfitted(estimator, new, y):
    """Check that each public method that needs a fit says so."""
    given = {"X": new, "y": y, "scores": new, "input_features": None}
    given |= {"max_error": 0.1, "groups": None}
    called = []
    for name, method in inspect.getmembers(type(estimator), callable):
        if name.startswith(("_", "fit", "set_", "get_p", "get_metadata", "partial_")):
            continue
        arguments = {}
        for parameter in list(inspect.signature(method).parameters.values())[1:]:
            is_needed = parameter.default is parameter.empty
            if is_needed and parameter.kind is not parameter.VAR_KEYWORD:
                arguments[parameter.name] = given[parameter.name]
        with pytest.raises(NotFittedError):
            getattr(estimator, name)(**arguments)
        called.append(name)
    assert called


@pytest.mark.parametrize("recalibrator", _recalibrators())
def test_refused_rows_change_no_recalibrator(recalibrator):
    fitted = clone(recalibrator).fit(SCORES, Y)
    unfitted = clone(recalibrator)
    before = _state(fitted, SCORES)
    for reason, rows in BAD_ROWS.items():
        for one in (fitted, unfitted):
            with pytest.raises(REFUSED):
                _fit(one, *rows)
        assert _state(fitted, SCORES) == before, reason
        _assert_unfitted(unfitted, SCORES, Y)


@pytest.mark.parametrize("recalibrator", _recalibrators())
def test_refused_parameters_change_no_recalibrator(recalibrator):
    fitted = clone(recalibrator).fit(SCORES, Y)
    before = _state(fitted, SCORES)
    for name in recalibrator.get_params(deep=False):
        if name in ("classes", "random_state", "verbose"):
            continue
        parameter = getattr(fitted, name)
        setattr(fitted, name, b"no such option")
        with pytest.raises((ValueError, TypeError)):
            fitted.fit(SCORES, NAMED)
        setattr(fitted, name, parameter)
        assert _state(fitted, SCORES) == before


@pytest.mark.slow
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("recalibrator", _recalibrators())
def test_a_late_failure_changes_no_recalibrator(recalibrator, error, monkeypatch):
    """The last step of a fit fails, after all arithmetic."""
    fitted = clone(recalibrator).fit(SCORES, Y)
    before = _state(fitted, SCORES)

    def fails(*args):
        raise error

    if isinstance(recalibrator, OnlineRecalibrator):
        monkeypatch.setattr(ForgettingNewton, "learn", fails)
    for name, module in list(sys.modules.items()):
        if name.startswith("skcalib.recalibrators.") and hasattr(module, "provenance"):
            monkeypatch.setattr(module, "provenance", fails)
    unfitted = clone(recalibrator)
    for one in (fitted, unfitted):
        with pytest.raises(error):
            one.fit(THREE_COLUMNS, THREE_CLASSES)
    assert _state(fitted, SCORES) == before
    _assert_unfitted(unfitted, SCORES, Y)


def test_a_failure_of_the_arithmetic_changes_nothing(monkeypatch):
    fitted = PlattScaling(clip=None).fit(SCORES, Y)
    before = _state(fitted, SCORES)

    def fails(self, *rows):
        self.slope_ = np.nan
        raise ValueError("no minimum")

    monkeypatch.setattr(PlattScaling, "_fit_binary", fails)
    with pytest.raises(ValueError, match="no minimum"):
        fitted.fit(SCORES, NAMED)
    assert _state(fitted, SCORES) == before


@pytest.mark.parametrize(
    "refused",
    [
        {"clusters": np.arange(N - 1)},
        {"clusters": np.zeros(N)},
        {"weight_type": "counts", "sample_weight": WEIGHT},
    ],
    ids=lambda refused: " and ".join(refused),
)
def test_refused_clusters_change_no_stack(refused):
    fitted = StackedRecalibrator(cv=2).fit(SCORES, Y)
    before = _state(fitted, SCORES)
    with pytest.raises(REFUSED):
        fitted.fit(SCORES, NAMED, **refused)
    assert _state(fitted, SCORES) == before


@pytest.mark.filterwarnings("error:Scores are tied")
def test_a_warning_made_an_error_changes_nothing():
    fitted = UniformMassBinning(3).fit(SCORES, Y)
    before = _state(fitted, SCORES)
    with pytest.raises(UserWarning, match="Scores are tied"):
        fitted.fit(np.round(2 * SCORES) / 2, NAMED)
    assert _state(fitted, SCORES) == before


def test_a_named_column_may_not_lack_its_class():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": 1 - SCORES, "b": SCORES})
    fitted = TemperatureScaling().fit(table, NAMED)
    before = _state(fitted, table)
    for y in (np.full(N, "a"), np.full(N, "b")):
        with pytest.raises(ValueError, match="needs rows of two classes"):
            fitted.fit(table, y)
    assert _state(fitted, table) == before


def test_names_of_columns_stay():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"of_a": 1 - SCORES, "of_b": SCORES})
    fitted = HistogramBinning(3).fit(table, NAMED)
    with pytest.raises(REFUSED):
        fitted.fit(SCORES, Y, sample_weight=-WEIGHT)
    assert fitted.feature_names_in_.tolist() == ["of_a", "of_b"]
    assert fitted.n_features_in_ == 2


@pytest.mark.parametrize("reason", BAD_ROWS)
def test_a_refused_batch_changes_no_online_recalibrator(reason):
    scores, y, weight = BAD_ROWS[reason]
    online = OnlineRecalibrator().partial_fit(SCORES, Y)
    before = _state(online, SCORES)
    new = OnlineRecalibrator()
    if reason == "one class":  # of the classes known, a batch may lack one
        y = np.full(N, "c")
    for one in (online, new):
        with pytest.raises(REFUSED):
            one.partial_fit(scores, y, sample_weight=weight)
    assert _state(online, SCORES) == before
    _assert_unfitted(new, SCORES, Y)


def test_a_batch_that_fails_late_changes_no_online_recalibrator(monkeypatch):
    online = OnlineRecalibrator().partial_fit(SCORES, Y)
    before = _state(online, SCORES)

    def fails(*batch):
        raise ValueError("no step")

    monkeypatch.setattr(type(online._forgetting), "learn", fails)
    with pytest.raises(ValueError, match="no step"):
        online.partial_fit(SCORES, Y)
    assert _state(online, SCORES) == before


def test_a_frozen_recalibrator_inside_another_one_stays_as_it_was():
    """Its own certificate, too, which the other one has not."""
    own = GroupwiseRecalibrator(UniformMassBinning(3), min_group_size=10)
    own.fit(SCORES, Y)
    before = pickle.dumps(own)
    StackedRecalibrator([FrozenEstimator(own)], cv=2).fit(SCORES, Y)
    GroupwiseRecalibrator(FrozenEstimator(own), min_group_size=N).fit(SCORES, Y)
    assert pickle.dumps(own) == before
    assert own.certificate().n_bins == (3, 3)


class _Fails(LogisticRegression):
    """A classifier that cannot be fitted to rows with a third feature of 0."""

    def fit(self, X, y, sample_weight=None):
        if X.shape[1] == 3 and (X[:, 2] == 0).any():
            raise ValueError("no minimum")
        return super().fit(X, y, sample_weight)


def _classifiers():
    """Yield the estimators that wrap a classifier."""
    estimator = _Fails()
    yield CrossFittedClassifier(estimator, cv=2)
    yield RecalibratedClassifierCV(estimator, PlattScaling(), cv=2)
    yield RecalibratedClassifierCV(estimator, PlattScaling(), cv=2, ensemble=True)
    yield ExpectedCostClassifier(estimator, [[0, 1], [2, 0]])
    yield CertifiedThresholdClassifier(estimator, target=0.4, random_state=0)


BAD_SAMPLES = {
    "a feature of NaN": (_with(X, (3, 1), np.nan), NAMED, {}),
    "too few labels": (X, NAMED[1:], {}),
    "one class": (X, np.full(N, "a"), {}),
    "numbers without classes": (X, SCORES, {}),
    "too few weights": (X, NAMED, {"sample_weight": WEIGHT[1:]}),
    "weights of NaN": (X, NAMED, {"sample_weight": np.nan * WEIGHT}),
    "no samples": (X[:0], NAMED[:0], {}),
}


@pytest.mark.parametrize("reason", BAD_SAMPLES)
@pytest.mark.parametrize("model", _classifiers(), ids=lambda model: repr(model)[:40])
def test_refused_samples_change_no_classifier(model, reason):
    samples, y, params = BAD_SAMPLES[reason]
    fitted = clone(model).fit(X, Y)
    before = _state(fitted, X)
    unfitted = clone(model)
    for method in ("fit", "fit_transform"):
        if not hasattr(model, method):
            continue
        for one in (fitted, unfitted):
            with pytest.raises(REFUSED):
                getattr(one, method)(samples, y, **params)
    assert _state(fitted, X) == before
    _assert_unfitted(unfitted, X, Y)


@pytest.mark.parametrize("model", _classifiers(), ids=lambda model: repr(model)[:40])
def test_a_late_failure_changes_no_classifier(model):
    """The first row is one to which the second of two folds is fitted."""
    fitted = clone(model).fit(X, Y)
    before = _state(fitted, X)
    third = np.arange(N)
    if isinstance(model, CertifiedThresholdClassifier):
        third = np.zeros(N)  # its classifier is fitted to half of the rows
    samples = np.column_stack((X, third))
    with pytest.raises(ValueError, match="no minimum"):
        fitted.fit(samples, NAMED)
    assert _state(fitted, X) == before


@pytest.mark.parametrize(
    ("model", "refused"),
    [
        (CrossFittedClassifier(_Fails(), cv=2), {"passthrough": "no such column"}),
        (CrossFittedClassifier(_Fails(), cv=2), {"response_method": "score"}),
        (RecalibratedClassifierCV(_Fails(), PlattScaling(), cv=2), {"cv": 200}),
        (
            RecalibratedClassifierCV(_Fails(), PlattScaling(), cv=2),
            {"recalibrator": GroupwiseRecalibrator(groups="site")},
        ),
        (ExpectedCostClassifier(_Fails(), np.eye(2)), {"cost_matrix": np.eye(3)}),
        (ExpectedCostClassifier(_Fails(), np.eye(2)), {"actions": ["a", "a"]}),
        (
            CertifiedThresholdClassifier(_Fails(), target=0.4, random_state=0),
            {"target": 2.0},
        ),
        (
            CertifiedThresholdClassifier(_Fails(), target=0.4, random_state=0),
            {"abstain_label": "a"},
        ),
    ],
    ids=str,
)
def test_refused_parameters_change_no_classifier(model, refused):
    fitted = clone(model).fit(X, Y)
    before = _state(fitted, X)
    parameters = {name: getattr(fitted, name) for name in refused}
    fitted.set_params(**refused)
    with pytest.raises((ValueError, TypeError)):
        fitted.fit(X, NAMED)
    fitted.set_params(**parameters)
    assert _state(fitted, X) == before


def test_a_certificate_that_is_not_found_changes_nothing_if_warnings_are_errors():
    model = CertifiedThresholdClassifier(_Fails(), target=0.4, random_state=0)
    model.fit(X, Y)
    before = _state(model, X)
    with pytest.raises(UserWarning):
        model.fit(X, RNG.permutation(NAMED))
    assert _state(model, X) == before


WEIGHTED = BinStatistics.from_predictions(Y, SCORES, [0, 0.5, 1], 2 * WEIGHT)
BAD_BATCHES = {
    "a score of NaN": (_with(SCORES, 3, np.nan), Y),
    "a score of 1.5": (_with(SCORES, 3, 1.5), Y),
    "too few labels": (SCORES, Y[1:]),
    "three columns": (THREE_COLUMNS, Y),
    "labels that are no events": (SCORES, NAMED),
    "bins of weighted rows": (WEIGHTED, None),
    "bins and labels": (WEIGHTED, Y),
}


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("reason", BAD_BATCHES)
def test_a_refused_batch_changes_no_monitor(reason, method):
    scores, y = BAD_BATCHES[reason]
    monitor = CalibrationMonitor().partial_fit(SCORES, Y, time="May")
    before = pickle.dumps(monitor)
    new = CalibrationMonitor()
    for one in (monitor, new):
        with pytest.raises(REFUSED):
            getattr(one, method)(scores, y)
    with pytest.raises(REFUSED):
        getattr(monitor, method)(SCORES, Y, time=["May", "June"])
    assert pickle.dumps(monitor) == before
    for name in ("history_", "alarm_time_", "change_time_"):
        with pytest.raises(NotFittedError):
            getattr(new, name)
    assert vars(new) == vars(CalibrationMonitor())


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("reason", BAD_BATCHES)
def test_a_refused_batch_changes_no_monitors_of_groups(reason, method):
    scores, y = BAD_BATCHES[reason]
    site = np.arange(N) % 2
    monitors = GroupMonitors().partial_fit(SCORES, Y, site)
    before = pickle.dumps(monitors)
    new = GroupMonitors()
    arguments = (scores, y, site)
    if isinstance(scores, BinStatistics):
        good = BinStatistics.from_predictions(Y, SCORES, [0, 0.5, 1])
        arguments = ({0: good, 2: scores}, y)
    for one in (monitors, new):
        with pytest.raises(REFUSED):
            getattr(one, method)(*arguments)
    with pytest.raises(REFUSED):
        getattr(monitors, method)(SCORES, Y, site[1:])
    assert pickle.dumps(monitors) == before
    with pytest.raises(NotFittedError):
        new.to_frame()
    assert vars(new) == vars(GroupMonitors())


def test_refused_parameters_change_no_monitor():
    monitor = CalibrationMonitor().fit(SCORES, Y)
    before = pickle.dumps(monitor)
    monitor.set_params(confidence_level=2.0)
    with pytest.raises(REFUSED):
        monitor.fit(SCORES, Y)
    monitor.set_params(confidence_level=0.99)
    assert pickle.dumps(monitor) == before


def test_a_fit_that_fails_late_changes_no_monitor(monkeypatch):
    monitor = CalibrationMonitor().fit(SCORES, Y, time="May")
    before = pickle.dumps(monitor)

    def fails(*args):
        raise ValueError("no alarm")

    monkeypatch.setattr(CalibrationMonitor, "_look_for_alarm", fails)
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match="no alarm"):
            getattr(monitor, method)(SCORES, Y, time="June")
    assert pickle.dumps(monitor) == before


class _Stopped(KeyboardInterrupt):
    """What stops a fit at some call of a function of the package."""


def _stopped_at(fit, k):
    """Run a fit up to the k-th call; return whether there were so many."""
    calls = count(1)

    def at_call(frame, event, argument):
        code = frame.f_code
        is_ours = str(PACKAGE) in code.co_filename
        # Generators are called where they are closed, too.
        is_counted = is_ours and code.co_name not in ("__exit__", "<genexpr>")
        if is_counted and next(calls) == k:
            sys.settrace(None)
            raise _Stopped

    earlier = sys.gettrace()
    sys.settrace(at_call)
    try:
        fit()
    except _Stopped:
        return True
    finally:
        sys.settrace(earlier)
    return False


@pytest.mark.parametrize(
    ("model", "rows", "other_rows"),
    [
        (PlattScaling(), (SCORES, Y), (THREE_COLUMNS, THREE_CLASSES)),
        (HistogramBinning(3), (SCORES, Y), (THREE_COLUMNS, THREE_CLASSES)),
        (
            GroupwiseRecalibrator(PlattScaling()),
            (SCORES, Y),
            (THREE_COLUMNS, THREE_CLASSES),
        ),
        (OnlineRecalibrator(), (SCORES, Y), (SCORES, NAMED)),
        (CalibrationMonitor(), (SCORES, Y, "May"), (SCORES, Y, "June")),
        (RecalibratedClassifierCV(_Fails(), PlattScaling(), cv=2), (X, Y), (X, NAMED)),
        (ExpectedCostClassifier(_Fails(), np.eye(2)), (X, Y), (X, NAMED)),
    ],
    ids=lambda argument: type(argument).__name__,
)
def test_a_fit_that_is_stopped_anywhere_changes_nothing(model, rows, other_rows):
    fitted = clone(model).fit(*rows)
    before = _state(fitted, rows[0])
    k = 1
    while _stopped_at(partial(fitted.fit, *other_rows), k):
        assert _state(fitted, rows[0]) == before
        k += 29  # not at each of some hundred calls
    assert k > 29


def test_every_estimator_of_the_registry_is_tested_here():
    tested = {type(recalibrator.values[0]) for recalibrator in _recalibrators()}
    tested |= {type(model) for model in _classifiers()}
    tested |= {CalibrationMonitor, GroupMonitors}
    for path in REGISTRY:
        room, _, name = path.rpartition(".")
        found = getattr(import_module(room), name)
        is_estimator = isinstance(found, type) and issubclass(found, BaseEstimator)
        if name == "CautiousRecalibrator":  # the earlier name of one that is tested
            continue
        if is_estimator and hasattr(found, "fit") and not name.startswith("Base"):
            bases = (skcalib.recalibrators.BinaryRecalibrator,)
            bases += (skcalib.recalibrators.LogitRecalibrator,)
            assert found in tested or found in bases, path
