"""Whole objects of JSON that are no recalibrators: what is written of them, and how it
is set again.

A monitor goes on with the same evidence. Of a `RecalibratedClassifierCV` the
recalibrators come back, without the classifiers.
"""

from array import array

import numpy as np

from skcalib._input.classes import check_classes
from skcalib.decisions import CertifiedThreshold
from skcalib.maps.checks import count, fitted, flag, labels, must_be, within
from skcalib.monitoring import CalibrationMonitor, GroupMonitors
from skcalib.recalibrated_classifier import RecalibratedClassifierCV, RecalibratedModel

_METHODS = ("predict_proba", "decision_function")


def _a(kind):
    """Return the check of a value of exactly this class."""
    return must_be(f"a {kind.__name__}", lambda value: type(value) is kind)


# The check of each attribute that is written.
_ROW = must_be("a row or None", lambda value: value is None or count(value) >= 0)
_EXPONENT = must_be(
    "a positive number or None",
    lambda value: value is None or (type(value) is float and 0 < value < np.inf),
)
_ROUNDED_UP = 1 + 1e-9  # times a limit: an evidence at the limit may be above it
_NUMBERS = {
    "n_rows_": count,
    "e_value_": within(0, np.inf),
    "alarm_": flag,
    "alarm_row_": _ROW,
    "change_row_": _ROW,
}
_BY_BET = dict.fromkeys(
    ("_log_wealth", "_log_detector", "_lowest", "_lowest_end"), _a(np.ndarray)
)
CHECKS = {
    CalibrationMonitor: {**_NUMBERS, **_BY_BET, "_batches": _a(tuple)},
    GroupMonitors: {"monitors_": _a(dict), "_times": _a(dict)},
    RecalibratedClassifierCV: {
        "classes_": labels,
        "calibrated_classifiers_": _a(list),
        "pooling_exponent_": _EXPONENT,
    },
    CertifiedThreshold: {},
}


def parameters_and_attributes(estimator):
    """Return two dicts by name with the parameters and the fitted attributes that are
    written of an object that is no recalibrator, such as a monitor. Of a
    `RecalibratedClassifierCV`, only the recalibrators are written.

    Values are converted to JSON later. Only dates are converted here, to strings.
    """
    if isinstance(estimator, CertifiedThreshold):
        return vars(estimator), {}  # nothing is fitted
    if isinstance(estimator, RecalibratedClassifierCV):
        pairs = _pairs(estimator)  # without the classifiers
        return {}, {
            "classes_": estimator.classes_,
            "calibrated_classifiers_": pairs,
            "pooling_exponent_": estimator.pooling_exponent_,
        }
    attributes = {}
    for name in CHECKS[type(estimator)]:
        if hasattr(estimator, name):  # a monitor that has seen no rows has none
            attributes[name] = getattr(estimator, name)
    if isinstance(estimator, GroupMonitors):
        times = {}
        for group, times_of_group in attributes["_times"].items():
            times[group] = []
            for row, time in times_of_group:
                if not isinstance(time, str | int | float | bool):
                    time = str(time)  # a date
                times[group].append((row, time))
        attributes["_times"] = times
    return estimator.get_params(deep=False), attributes


def _pairs(estimator):
    """Return the pairs (method, recalibrator) of a `RecalibratedClassifierCV`, a list;
    raise a ValueError if recalibrators take features besides the scores.
    """
    pairs = []
    for model in estimator.calibrated_classifiers_:
        if model.feature_keys:
            raise ValueError(
                "RecalibratedClassifierCV cannot be written as JSON: its"
                f" {type(model.recalibrator).__name__} takes features besides the"
                " scores. Write the recalibrator alone:"
                " model.calibrated_classifiers_[0].recalibrator."
            )
        pairs.append((model.response_method, model.recalibrator))
    return pairs


def restore(estimator, written):
    """Set the fitted attributes of a monitor or of a `RecalibratedClassifierCV`, from
    a dict by name. Each was checked alone; raise a ValueError if they are inconsistent.
    """
    if isinstance(estimator, RecalibratedClassifierCV):
        written["calibrated_classifiers_"] = list(
            _models(written["calibrated_classifiers_"], written["classes_"])
        )
    else:
        estimator._reset()  # to a monitor that has seen no rows
        if isinstance(estimator, GroupMonitors):
            _check_groups(written)
        else:
            _check_monitor(estimator, written)
    for name, value in written.items():
        setattr(estimator, name, value)


def _check_monitor(monitor, seen):
    """Raise a ValueError unless the attributes `seen`, a dict by name, can be those of
    a `CalibrationMonitor` after some rows; turn its batches into arrays, in place.

    `monitor` has the same parameters and has seen no rows.
    """
    # These arrays have one number for each of the monitor's bets. -inf, the logarithm
    # of 0, is allowed; NaN and inf fail the comparison.
    for name in _BY_BET:
        array_seen = seen[name]
        expected = getattr(monitor, name)
        is_alike = (
            array_seen.dtype == expected.dtype and array_seen.shape == expected.shape
        )
        if not is_alike or not (array_seen < np.inf).all():
            raise ValueError(f"{name} must hold {len(expected)} numbers")
    n_rows = seen["n_rows_"]
    rows = (seen["alarm_row_"], seen["change_row_"])
    # Both rows are known after an alarm, and only then.
    if any((row is None) == seen["alarm_"] for row in rows):
        raise ValueError("alarm_ must be consistent with alarm_row_ and change_row_")
    if seen["e_value_"] > monitor.threshold_ * _ROUNDED_UP and not seen["alarm_"]:
        raise ValueError(
            f"e_value_ is {seen['e_value_']:.6g}, beyond the limit of"
            f" {monitor.threshold_:.6g}, and alarm_ is false"
        )
    if monitor.classes is not None:
        classes = np.asarray(monitor.classes)
        check_classes(classes, max(classes.size, 2), "classes")
    if seen["alarm_"] and max(rows) > n_rows:
        raise ValueError(f"alarm_row_ must be a row from 0 to {n_rows}")
    # One column per quantity with an entry for each batch; the second column holds the
    # numbers of rows. Python's arrays have the type of those of the empty monitor.
    columns = []
    for empty, entries in zip(monitor._batches, seen["_batches"], strict=True):
        columns.append(array(empty.typecode, entries))
    rows_of_batches = columns[1]
    if len(set(map(len, columns))) > 1 or sum(rows_of_batches) != n_rows:
        raise ValueError(
            f"_batches must be columns of equal length, with {n_rows} rows in total"
        )
    seen["_batches"] = tuple(columns)


def _check_groups(seen):
    """Raise a ValueError unless the attributes `seen` of `GroupMonitors` hold for each
    group a monitor that has seen rows, and a list of pairs (row, time).
    """
    monitors = seen["monitors_"]
    times = seen["_times"]
    for group, monitor in monitors.items():
        if type(monitor) is not CalibrationMonitor or not hasattr(monitor, "n_rows_"):
            raise ValueError(
                "monitors_ must contain a CalibrationMonitor that has processed rows"
                f" for {group!r:.60}"
            )
    check_list = _a(list)
    pairs = []  # of all groups
    for times_of_group in times.values():
        pairs += check_list(times_of_group)
    are_pairs = all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs)
    if times.keys() != monitors.keys() or not are_pairs:
        raise ValueError("_times must contain pairs of a row and a time for each group")
    for row, _ in pairs:
        count(row)  # raises unless it is a number of rows


def _models(written, classes):
    """Yield a `RecalibratedModel` for each pair (method by which the classifier gave
    scores, recalibrator). `GivenScores` takes the place of the classifier, which is not
    written.
    """
    for number, pair in enumerate(written):
        if not isinstance(pair, tuple) or len(pair) != 2 or pair[0] not in _METHODS:
            raise ValueError(
                f"calibrated_classifiers_ must contain pairs of a method, one of"
                f" {_METHODS}, and a recalibrator"
            )
        method = pair[0]
        recalibrator = fitted(pair[1])
        if not set(recalibrator.classes_.tolist()) <= set(classes.tolist()):
            raise ValueError(
                "a recalibrator has different classes:"
                f" {recalibrator.classes_.tolist()}"
            )
        scores = GivenScores(recalibrator.classes_, number, len(written))
        yield RecalibratedModel(scores, recalibrator, classes, method)


class GivenScores:
    """Replacement for a classifier: its rows are already the scores of that classifier.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The class labels of the classifier.
    pair, n_pairs : int
        Index of this classifier and number of classifiers.
    """

    _is_given_scores = True

    def __init__(self, classes, pair, n_pairs):
        self.classes_ = classes
        self.pair = pair
        self.n_pairs = n_pairs

    def predict_proba(self, X):
        """Return the classifier's probabilities (n, n_classes)."""
        columns = self._columns(X)
        if columns.shape[1] == 1:
            return np.hstack((1 - columns, columns))
        return columns

    def decision_function(self, X):
        """Return the classifier's decisions, (n,) for two classes."""
        columns = self._columns(X)
        if columns.shape[1] == 2:
            raise ValueError(
                "X must have one column of decision values for two classes, found 2."
            )
        if columns.shape[1] == 1:
            return columns[:, 0]
        return columns

    def _columns(self, X):
        """Return this classifier's scores (n, C): `X` itself, the same for all, or its
        entry of an array (n_pairs, n, C).
        """
        X = np.asarray(X, dtype=np.float64)
        if X.ndim == 3 and len(X) == self.n_pairs:
            X = X[self.pair]
        if X.ndim == 1:
            X = X.reshape(-1, 1)
        widths = (len(self.classes_),)
        if len(self.classes_) == 2:
            widths = (1, 2)
        if X.ndim != 2 or X.shape[1] not in widths:
            raise ValueError(
                f"X must contain scores instead of features: (n, {widths[-1]}) for all"
                f" classifiers, or ({self.n_pairs}, n, {widths[-1]}) with those of"
                f" each; found shape {X.shape}."
            )
        return X
