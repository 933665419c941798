"""What each fitted recalibrator consists of: the names of its fitted attributes and what each must be.

A row of `STATES` for each class. A new recalibrator takes one row, and `to_dict` refuses it by name until it has one.
"""

import copy
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from sklearn.base import BaseEstimator

from skcalib.recalibrators._feature_columns import FeatureColumns

__all__ = ["COMMON", "STATES", "State", "count", "labels", "names"]

_ROUNDING = 1e-6


class State(NamedTuple):
    """The fitted attributes of a class, each with the check of its value.

    `part` are those of one calibration map: with K > 2 classes one-vs-rest or top-label methods hold one set a problem.
    `whole` are those of the recalibrator itself. `check` looks at the attributes of a part (or of a recalibrator that
    has none) together. `derived` are those that follow from others, each with its function: they are not written.
    """

    part: dict = {}
    whole: dict = {}
    check: Callable | None = None
    derived: dict = {}


# Checks of one value: they return it, or raise a ValueError that describes what it must be.


def number(value):
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise ValueError(f"must be a finite number, found {value!r:.60}")
    return float(value)


def _within(low, high):
    def check(value):
        if not low < number(value) < high:
            raise ValueError(f"must lie between {low} and {high}, found {value!r}")
        return float(value)

    return check


def deviation(value):
    return value if value == np.inf else _within(-np.finfo(float).tiny, np.inf)(value)


def count(value):
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"must be a count, found {value!r:.60}")
    return value


def seed(value):
    return None if value is None else count(value)


def flag(value):
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, found {value!r:.60}")
    return value


def _array(kinds="f", ndim=1, low=-np.inf, high=np.inf, finite=True):
    def check(value):
        if not isinstance(value, np.ndarray) or value.ndim != ndim or value.dtype.kind not in kinds:
            raise ValueError(f"must be an array of numbers with {ndim} axes")
        if (finite and not np.isfinite(value).all()) or not ((low <= value) & (value <= high)).all():
            raise ValueError(f"must hold numbers in [{low}, {high}], finite ones")
        return value

    return check


def labels(value):
    if not isinstance(value, np.ndarray) or value.ndim != 1 or len(value) == 0:
        raise ValueError("must be an array of labels")
    items = value.tolist()
    if any(not before < after for before, after in zip(items[:-1], items[1:], strict=True)):
        raise ValueError("must hold labels that are sorted and differ")
    return value


def names(value):
    if not isinstance(value, np.ndarray) or value.ndim != 1 or not all(isinstance(name, str) for name in value):
        raise ValueError("must be an array of names")
    return value.astype(object)


def edges(value):
    value = _array(finite=False)(value)
    if len(value) < 2 or not (value[0] <= value[1] and (np.diff(value)[1:] >= 0).all()):
        raise ValueError("must be at least two edges in increasing order")
    return value


def knots(value):
    value = _array(finite=False)(value)
    if not (np.diff(value[np.isfinite(value)]) > 0).all() or not np.isfinite(value[:-1]).all():
        raise ValueError("must be knots in increasing order")
    return value


def log_odds_range(value):
    if not isinstance(value, tuple) or len(value) != 2 or not number(value[0]) <= number(value[1]):
        raise ValueError("must be two numbers in increasing order")
    return tuple(map(float, value))


def spline(value):
    if type(value) is not CubicSpline:
        raise ValueError("must be a spline")
    return value


def fitted(value):
    if not isinstance(value, BaseEstimator) or not hasattr(value, "classes_"):
        raise ValueError("must be a fitted recalibrator")
    return value


def fitted_list(value):
    if not isinstance(value, list) or not value:
        raise ValueError("must be a list of fitted recalibrators")
    return [fitted(one) for one in value]


def fitted_dict(value):
    if not isinstance(value, dict):
        raise ValueError("must be pairs of a group and a fitted recalibrator")
    return {group: fitted(one) for group, one in value.items()}


def inside(value):
    if not isinstance(value, tuple) or len(value) != 2:
        raise ValueError("must be two arrays")
    return tuple(_array("if", low=0)(one) for one in value)


positive = _within(0, np.inf)
share_array = _array(low=0, high=1)
count_array = _array("iu", low=0)
number_array = _array()
positive_array = _array(low=0)
matrix = _array(ndim=2)


# Checks of attributes together: functions of the recalibrator or part, and the number of classes.


def _bins(part, _):
    n_bins = part.n_bins_
    for name in ("bin_values_", "bin_counts_"):
        _same_length(name, getattr(part, name), n_bins)
    _same_length("bin_edges_", part.bin_edges_, n_bins + 1)


def _counted_bins(part, n_classes):
    _bins(part, n_classes)
    _same_length("bin_positives_", part.bin_positives_, part.n_bins_)


def _uniform_mass_bins(part, n_classes):
    _counted_bins(part, n_classes)
    _same_length("_cut_key_", part._cut_key_, part.n_bins_ - 1)
    for sums in part._inside_:
        _same_length("_inside_", sums, part.n_bins_)


def _isotonic(part, _):
    _same_length("probability_knots_", part.probability_knots_, len(part.score_knots_))


def _venn_abers(part, _):
    length = len(part.score_knots_) + 1
    for name in ("lower_probability_", "upper_probability_"):
        _same_length(name, getattr(part, name), length)
    if (part.max_n_knots is not None) != bool(len(part.score_knots_) and part.score_knots_[-1] == np.inf):
        raise ValueError("score_knots_ must end with infinity where max_n_knots is given, and only there")


def _temperature(fitted, _):
    if abs(fitted.temperature_ * fitted.inverse_temperature_ - 1) > _ROUNDING:
        raise ValueError("inverse_temperature_ must be 1 / temperature_")


def _ensemble(fitted, n_classes):
    _temperature(fitted, n_classes)
    _weights(fitted.weights_, 3)


def _one_a_class(*attributes):
    def check(fitted, n_classes):
        for name in attributes:
            for length in np.shape(getattr(fitted, name)):
                if length != n_classes:
                    raise ValueError(f"{name} must have one entry a class: {n_classes}, found {length}")

    return check


def _priors(fitted, n_classes):
    _weights(fitted.train_prior_, n_classes)
    _weights(fitted.target_prior_, n_classes)


def _stack(fitted, _):
    _weights(fitted.weights_, len(fitted.recalibrators_))
    for name in ("cv_log_loss_", "seconds_"):
        _same_length(name, getattr(fitted, name), len(fitted.recalibrators_))
    for member in fitted.recalibrators_:
        _same_classes(fitted, member)


def _groups(fitted, _):
    groups = fitted.groups_.tolist()
    for name in ("group_sizes_", "_own_share"):
        _same_length(name, getattr(fitted, name), len(groups))
    if list(fitted.recalibrators_) != groups:
        raise ValueError(f"recalibrators_ must have the groups {groups} as keys, found {list(fitted.recalibrators_)}")
    for member in (fitted.pooled_recalibrator_, *fitted.recalibrators_.values()):
        _same_classes(fitted, member)
    takes_column = not fitted._given_groups and fitted.groups not in (None, "predicted_class")
    width = fitted.pooled_recalibrator_.n_features_in_ + takes_column
    if fitted.n_features_in_ != width:
        raise ValueError(f"n_features_in_ must be {width}, found {fitted.n_features_in_}")


def _names_of_groups(fitted):
    return fitted.groups_.tolist()


def _promised(fitted):
    return copy.deepcopy(fitted._promised_params())


def _global_map(fitted, _):
    _same_classes(fitted, fitted.recalibrator_)
    if fitted.n_rounds_ != 0:
        raise ValueError(f"n_rounds_ must be 0, found {fitted.n_rounds_}")
    n_features = 1 if isinstance(fitted.features, str | int) else len(fitted.features)
    width = fitted.recalibrator_.n_features_in_ + n_features
    if fitted.n_features_in_ != width:
        raise ValueError(f"n_features_in_ must be {width}, found {fitted.n_features_in_}")


def _no_columns(_):
    return FeatureColumns()  # which nothing is asked of where there are no rounds


def _no_rounds(_):
    return []


def _same_length(name, values, length):
    if len(values) != length:
        raise ValueError(f"{name} must have {length} entries, found {len(values)}")


def _weights(weights, length):
    _same_length("weights", weights, length)
    if abs(weights.sum() - 1) > _ROUNDING:
        raise ValueError(f"weights must sum to 1, found {weights.sum()!r}")


def _same_classes(whole, member):
    if not np.array_equal(whole.classes_, member.classes_):
        raise ValueError(f"a {type(member).__name__} inside has other classes: {member.classes_.tolist()}")


_below_a_half = _within(-np.finfo(float).tiny, 0.5)
COMMON = {
    "n_features_in_": count,
    "classes_": labels,
    "clip_": _below_a_half,
    "floor_": _below_a_half,
    "feature_names_in_": names,
}

_BINS = {"bin_edges_": edges, "bin_values_": share_array, "bin_counts_": count_array, "n_bins_": count}
_AFFINE = {"alpha_": number, "inverse_temperature_": positive, "intercept_": number_array}
_POOLED = {"class_pooling_": number}
_TEMPERATURE = {"inverse_temperature_": positive, "temperature_": positive}
_ONE_A_CLASS = _one_a_class("coef_", "intercept_")

STATES = {
    "BetaCalibration": State({"a_": number, "b_": number, "c_": number}, _POOLED),
    "ClasswiseTemperatureScaling": State(
        {
            "inverse_temperature_": positive_array,
            "shared_inverse_temperature_": positive,
            "max_deviation_": deviation,
        },
        check=_one_a_class("inverse_temperature_"),
    ),
    "DirichletCalibration": State({**_AFFINE, "coef_": matrix}, check=_ONE_A_CLASS),
    "EnsembleTemperatureScaling": State({**_TEMPERATURE, "weights_": share_array}, check=_ensemble),
    "GroupwiseRecalibrator": State(
        {
            "groups_": labels,
            "group_sizes_": positive_array,
            "pooled_recalibrator_": fitted,
            "recalibrators_": fitted_dict,
            "_given_groups": flag,
            "_own_share": share_array,
        },
        check=_groups,
        derived={"_names": _names_of_groups},
    ),
    "HistogramBinning": State(
        {**_BINS, "bin_positives_": positive_array, "_weighted_": flag},
        check=_counted_bins,
        derived={"_fitted_params_": _promised},
    ),
    "IsotonicCalibration": State({"score_knots_": knots, "probability_knots_": share_array}, check=_isotonic),
    "MatrixScaling": State({**_AFFINE, "coef_": matrix}, check=_ONE_A_CLASS),
    "MulticalibratedRecalibrator": State(
        {
            "gains_": number_array,
            "gain_errors_": number_array,
            "n_rounds_": count,
            "recalibrator_": fitted,
            "_seed": count,
        },
        check=_global_map,
        derived={"_columns": _no_columns, "_rounds": _no_rounds},
    ),
    "PlattScaling": State({"slope_": number, "intercept_": number}, _POOLED),
    "PriorShift": State({"train_prior_": share_array, "target_prior_": share_array}, check=_priors),
    "QuadraticScaling": State(
        {"intercept_": number, "slope_": number, "curvature_": number, "log_odds_range_": log_odds_range}, _POOLED
    ),
    "ScalingBinning": State({**_BINS, "recalibrator_": fitted}, check=_bins),
    "SplineCalibration": State(
        {"knots_": knots, "knot_log_odds_": number_array, "roughness_penalty_": number, "spline_": spline}
    ),
    "StackedRecalibrator": State(
        {
            "recalibrators_": fitted_list,
            "weights_": share_array,
            "cv_log_loss_": number_array,
            "temperature_": positive,
            "seconds_": positive_array,
        },
        check=_stack,
    ),
    "TemperatureScaling": State(_TEMPERATURE, check=_temperature),
    "Uncalibrated": State(),
    "UniformMassBinning": State(
        {
            **_BINS,
            "bin_positives_": positive_array,
            "_cut_key_": number_array,
            "_has_ties_": flag,
            "_inside_": inside,
            "_prediction_seed_": seed,
        },
        {"_n_problems": count, "_n_rows": count},
        check=_uniform_mass_bins,
        derived={"_fitted_params_": _promised},
    ),
    "VectorScaling": State({**_AFFINE, "coef_": number_array}, check=_ONE_A_CLASS),
    "VennAbers": State(
        {"score_knots_": knots, "lower_probability_": share_array, "upper_probability_": share_array},
        check=_venn_abers,
    ),
}
