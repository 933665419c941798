"""What the library promises: intervals that cover, tests that keep their level. Each is
a function of a sample.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from skcalib import PlattScaling, ScalingBinning
from skcalib.binning import EqualMass, EqualWidth
from skcalib.evaluation import compare, recalibration_gain
from skcalib.metrics import (
    calibration_by_group,
    calibration_error,
    calibration_error_interval,
    calibration_slope_intercept,
    calibration_test,
    expected_calibration_error,
    groupwise_calibration_error,
    kde_calibration_error,
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
    maximum_calibration_error,
    neighborhood_calibration_error,
    segment_calibration_test,
    smooth_calibration_error,
    sweep_calibration_error,
)
from skcalib.monitoring import calibration_change

__all__ = ["INTERVALS", "TESTS", "Promise", "covers"]


class Promise(NamedTuple):
    """A promise and where it is looked at.

    `kept` returns for a sample and a seed whether an interval covers, or whether a test
    rejects.
    """

    name: str
    promised: float
    kept: object
    shapes: tuple


_BINARY = (
    "calibrated, n = 500",
    "calibrated, n = 60",
    "s^1.1, n = 500",
    "s^1.6, n = 200",
    "s^1.6, n = 1500",
    "step, n = 500",
    "rare, calibrated, n = 500",
    "rare, twice too low, n = 500",
    "tied, calibrated, n = 300",
    "tied, s^1.6, n = 300",
)
_SOME = (
    "calibrated, n = 500",
    "s^1.6, n = 200",
    "s^1.6, n = 1500",
    "step, n = 500",
    "rare, calibrated, n = 500",
)
_CALIBRATED = (
    "calibrated, n = 500",
    "calibrated, n = 60",
    "rare, calibrated, n = 500",
    "tied, calibrated, n = 300",
    "sure, calibrated, n = 500",
)
_MODES = ("bimodal, calibrated, n = 500", "bimodal, high mode .90, n = 500")
_HARD = ("three values, n = 300", "1 % events, calibrated, n = 1000")
_MANY_ROWS = ("clusters, equal, 100 of 200", "clusters, s^1.6, 1,000 of 20")
_COPULA = (
    "clusters, equal, 60 of 20",
    "clusters, bimodal, 20 of 20",
    "clusters, unequal, 2 of 150 and 30 of 10",
    "clusters, rare, 60 of 20",
)
_FEW_EXPECTED = (
    "Beta(1, 19), calibrated, n = 200",
    "Beta(1, 999), calibrated, n = 1000",
    "calibrated, n = 20",
    "constant .01, n = 100",
)
_IMPORTANCE = ("importance weights, calibrated, 800 rows",)
_BIASES = (
    "bimodal, bias 0, slope .5, n = 400",
    "1 % events, calibrated, n = 1000",
    "groups of five rows, calibrated",
)
_SHARES = ("two modes, other shares, 1000 + 1000",)
_WEIGHTED = ("weights, s^1.3, 500 rows",)
_CLUSTERED = ("clusters, calibrated, 60 of 20", "clusters, s^1.6, 60 of 20")
_MULTICLASS = ("4 classes, calibrated, n = 600", "4 classes, p^1.5, n = 600")


def without_noise(sample, metric, **options):
    """Return a plugin error of the true probabilities: each row is an event and a
    non-event, weighted by them.
    """
    weight = (
        np.ones(len(sample.scores))
        if sample.sample_weight is None
        else sample.sample_weight
    )
    if sample.scores.ndim == 1:
        chance = np.column_stack((1 - sample.truth, sample.truth))
    else:
        chance = sample.truth
    n_classes = chance.shape[1]
    return metric(
        np.repeat(np.arange(n_classes), len(weight)),
        np.concatenate([sample.scores] * n_classes),
        sample_weight=(chance * weight[:, None]).T.ravel(),
        labels=np.arange(n_classes),
        **options,
    )


def _weight_type(sample):
    counts = sample.sample_weight is None or not np.any(sample.sample_weight % 1)
    return "frequency" if counts else "importance"


def covers(metric, sample, seed, *, plugin=None, **options):
    """Return whether the interval of an error holds its value without noise; `plugin`
    is the metric for that.
    """
    found = calibration_error_interval(
        sample.labels,
        sample.scores,
        metric=metric,
        clusters=sample.clusters,
        sample_weight=sample.sample_weight,
        weight_type=_weight_type(sample),
        labels=np.arange(2 if sample.scores.ndim == 1 else sample.scores.shape[1]),
        n_resamples=300,
        random_state=seed,
        **options,
    )
    calibrated = np.array_equal(sample.scores, sample.truth)
    truth = 0.0 if calibrated else without_noise(sample, plugin or metric, **options)
    return found.low - 1e-12 <= truth <= found.high + 1e-12


def _binned(norm, bins, **options):
    metric = partial(calibration_error, norm=norm, binning=EqualMass(bins), **options)
    plugin = partial(
        calibration_error,
        norm=norm,
        binning=EqualMass(bins),
        **(options | {"method": "plugin"}),
    )
    return partial(covers, metric, plugin=plugin)


def _slope(sample, seed):
    slope = calibration_slope_intercept(sample.labels, sample.scores).slope
    return slope.low <= 1 <= slope.high


def _by_group(sample, seed):
    groups = (
        np.arange(len(sample.scores)) % 5
        if sample.clusters is None
        else sample.clusters % 5
    )
    weights = {
        "sample_weight": sample.sample_weight,
        "weight_type": _weight_type(sample),
    }
    options = {"clusters": sample.clusters, "n_resamples": 19, "random_state": seed}
    return groups, calibration_by_group(
        sample.labels, sample.scores, groups, labels=[0, 1], **weights, **options
    )


def _bias_by_group(sample, seed):
    groups, table = _by_group(sample, seed)
    truth = np.array(
        [np.mean((sample.scores - sample.truth)[groups == group]) for group in range(5)]
    )
    low = np.asarray(table.bias_low)
    has_limits = ~np.isnan(low)
    if not has_limits.any():
        return np.nan  # no limits, which is said
    held = (low <= truth) & (truth <= np.asarray(table.bias_high))
    return float(np.mean(held[has_limits]))


def _change(sample, seed):
    """Return the comparison of both halves of the rows; rows that came in clusters are
    cut between two of them.
    """
    half = len(sample.scores) // 2
    by_row = {"sample_weight": sample.sample_weight, "clusters": sample.clusters}
    options = {
        name: (one[:half], one[half:])
        for name, one in by_row.items()
        if one is not None
    }
    rows = (
        sample.labels[:half],
        sample.scores[:half],
        sample.labels[half:],
        sample.scores[half:],
    )
    options |= {
        "weight_type": _weight_type(sample),
        "n_resamples": 199,
        "random_state": seed,
        "labels": [0, 1],
    }
    return calibration_change(*rows, norm=1, method="plugin", **options)


def _shift(sample, seed):
    shift = _change(sample, seed).shift
    if np.isnan(shift.low):
        return np.nan  # no limits, which is said
    return shift.low <= 0 <= shift.high


def _gain(sample, seed):
    """Return whether the interval of what Platt scaling gains holds its true loss on
    these rows.
    """
    found = recalibration_gain(
        sample.labels, sample.scores, recalibrator=PlattScaling()
    )
    fitted = (
        PlattScaling()
        .fit(sample.scores, sample.labels)
        .predict_proba(sample.scores)[:, 1]
    )
    before, after = (np.clip(p, 1e-15, 1 - 1e-15) for p in (sample.scores, fitted))
    truth = sample.truth
    gain = np.mean(
        truth * np.log(after / before)
        + (1 - truth) * np.log((1 - after) / (1 - before))
    )
    return found.low <= gain <= found.high


def _verified(bins, sample, seed):
    """Return whether the bound holds the error of a binned model on rows from another
    distribution.
    """
    rng = np.random.default_rng([seed, bins])
    fitted = rng.random(4000)
    model = ScalingBinning(binning=bins).fit(fitted, rng.random(4000) < fitted)
    truth = without_noise(
        sample._replace(scores=model.predict_proba(sample.scores)[:, 1]),
        partial(calibration_error, binning=EqualMass(10**6), method="plugin"),
    )
    options = {
        "sample_weight": sample.sample_weight,
        "weight_type": _weight_type(sample),
        "clusters": sample.clusters,
    }
    found = model.verify(
        sample.scores, sample.labels, 1, n_resamples=300, random_state=seed, **options
    )
    return found.upper_bound >= truth


INTERVALS = [
    Promise("l2, 1 bin", 0.9, _binned(2, 1), _BINARY + _MODES + _HARD),
    Promise("l2, 2 bins", 0.9, _binned(2, 2), _BINARY + _MODES + _IMPORTANCE),
    Promise("l2, 15 bins", 0.9, _binned(2, 15),
            _BINARY + _WEIGHTED + _CLUSTERED + _COPULA + _MANY_ROWS + _IMPORTANCE + _MULTICLASS),  # noqa: E501
    Promise("l2, 50 bins", 0.9, _binned(2, 50), ("calibrated, n = 500", "s^1.6, n = 200", "s^1.6, n = 1500")),  # noqa: E501
    Promise("l2, debiased, 15 bins", 0.9, _binned(2, 15, method="debiased"), _SOME),
    Promise("l1, debiased, 15 bins", 0.9, _binned(1, 15), _BINARY + _WEIGHTED + _CLUSTERED),  # noqa: E501
    Promise("l2, marginal, 10 bins", 0.9, _binned(2, 10, multiclass="marginal"), _MULTICLASS),  # noqa: E501
    Promise("ECE, 15 bins", 0.9, partial(covers, expected_calibration_error), _BINARY + _WEIGHTED + _MULTICLASS),  # noqa: E501
    Promise('ECE, 15 bins, interval="basic"', 0.9, partial(covers, expected_calibration_error, interval="basic"),  # noqa: E501
            _CALIBRATED),
    Promise("maximum, 5 bins", 0.9, partial(covers, partial(maximum_calibration_error, binning=EqualWidth(5))), _SOME),  # noqa: E501
    Promise("worst class, 15 bins", 0.9, partial(covers, groupwise_calibration_error), _SOME),  # noqa: E501
    Promise("sweep (truth: of each score)", 0.9, partial(covers, sweep_calibration_error,  # noqa: E501
            plugin=partial(expected_calibration_error, binning=EqualMass(10**6))), _SOME),  # noqa: E501
    Promise("smooth", 0.9, partial(covers, smooth_calibration_error), _SOME),
    Promise("KDE", 0.9, partial(covers, kde_calibration_error), _SOME),
    Promise("neighborhood", 0.9, partial(covers, neighborhood_calibration_error), _SOME),  # noqa: E501
    Promise("Kolmogorov-Smirnov error", 0.9, partial(covers, kolmogorov_smirnov_calibration_error), _SOME + _CLUSTERED),  # noqa: E501
    Promise("Kuiper error", 0.9, partial(covers, kuiper_calibration_error), _SOME),
    Promise("verify, 2 bins", 0.9, partial(_verified, 2), ("s^1.6, n = 200", "s^1.6, n = 1500")),  # noqa: E501
    Promise("verify, 10 bins", 0.9, partial(_verified, 10),
            ("s^1.6, n = 200", "s^1.6, n = 1500", *_CLUSTERED[1:], *_IMPORTANCE)),
    Promise("calibration slope", 0.9, _slope, ("calibrated, n = 500", "calibrated, n = 60")),  # noqa: E501
    Promise("bias by group", 0.9, _bias_by_group, _SOME + _BIASES + _COPULA + _IMPORTANCE),  # noqa: E501
    Promise("shift between two samples", 0.9, _shift,
            _SHARES + _HARD + _BIASES[:1] + _CLUSTERED[:1] + _COPULA + _IMPORTANCE),
    Promise("recalibration gain, Platt scaling", 0.9, _gain, (_SOME[0], *_HARD)),
]  # fmt: skip


def _rejects(sample, seed, level=0.05, **options):
    result = calibration_test(
        sample.labels,
        sample.scores,
        sample_weight=sample.sample_weight,
        weight_type=_weight_type(sample),
        clusters=sample.clusters,
        labels=np.arange(2 if sample.scores.ndim == 1 else sample.scores.shape[1]),
        n_resamples=199,
        random_state=seed,
        **options,
    )
    return result.pvalue <= level


def _segments(sample, seed):
    columns = np.random.default_rng(seed).random((len(sample.scores), 2))
    options = {
        "sample_weight": sample.sample_weight,
        "weight_type": _weight_type(sample),
        "clusters": sample.clusters,
    }
    options |= {"n_resamples": 199, "random_state": seed}
    return (
        segment_calibration_test(
            sample.labels, sample.scores, columns, **options
        ).pvalue
        <= 0.05
    )


def _any_group(sample, seed):
    return np.min(_by_group(sample, seed)[1].adjusted_pvalue) <= 0.05


def _any_bias(sample, seed):
    return np.min(_by_group(sample, seed)[1].adjusted_bias_pvalue) <= 0.05


def _differs(metric, sample, seed):
    models = dict(zip(("first", "second"), sample.scores.T, strict=True))
    options = {"clusters": sample.clusters, "n_resamples": 99, "random_state": seed}
    return compare(sample.labels, models, metrics=metric, **options).pvalue[1] <= 0.05


_PAIRS = (
    "two models, both calibrated",
    "two models, both too sure",
    "two models, one too high, one too low",
    "two models, calibrated and almost equal",
    "two models, both calibrated, 60 clusters of 15",
)
_ONE, _MANY = _CLUSTERED[:1], _MULTICLASS[:1]

TESTS = [
    Promise("resampled sweep", 0.05, _rejects, _CALIBRATED + _ONE + _MANY),
    Promise(
        "resampled l2",
        0.05,
        partial(_rejects, metric=partial(calibration_error, binning=10)),
        _CALIBRATED + _ONE + _HARD + _COPULA + _IMPORTANCE,
    ),
    Promise(
        "resampled Kuiper",
        0.05,
        partial(_rejects, metric=kuiper_calibration_error),
        _CALIBRATED + _ONE + _COPULA,
    ),
    Promise("Kuiper", 0.05, partial(_rejects, method="kuiper"), _CALIBRATED),
    Promise(
        "Kolmogorov-Smirnov",
        0.05,
        partial(_rejects, method="kolmogorov_smirnov"),
        _CALIBRATED,
    ),
    Promise(
        "Spiegelhalter",
        0.05,
        partial(_rejects, method="spiegelhalter"),
        _CALIBRATED + _FEW_EXPECTED,
    ),
    Promise(
        "Hosmer-Lemeshow",
        0.05,
        partial(_rejects, method="hosmer_lemeshow"),
        _CALIBRATED + _FEW_EXPECTED,
    ),
    Promise(
        "intercepts and slopes of all classes",
        0.05,
        partial(_rejects, method="multinomial"),
        _CALIBRATED + _FEW_EXPECTED + _MANY,
    ),
    Promise("worst of 5 groups", 0.05, _any_group, _CALIBRATED + _COPULA + _IMPORTANCE),
    Promise("bias of 5 groups", 0.05, _any_bias, _CALIBRATED + _BIASES[1:] + _COPULA),
    Promise(
        "change",
        0.05,
        lambda sample, seed: _change(sample, seed).pvalue <= 0.05,
        _SHARES + _HARD + _BIASES[:1] + _CLUSTERED[:1] + _COPULA + _IMPORTANCE,
    ),
    Promise(
        "worst segment",
        0.05,
        _segments,
        (*_SOME[:1], *_SOME[4:], *_CLUSTERED[:1], *_IMPORTANCE),
    ),
    *(
        Promise(f"compare, {metric}", 0.05, partial(_differs, metric), _PAIRS)
        for metric in (
            "log_loss",
            "brier_score",
            "squared_calibration_error",
            "expected_calibration_error",
        )
    ),
]
