"""Curves: what the bins say as numbers, and how much of a forecast is within a
tolerance of the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from skcalib._cells.binned import (
    check_rows_or_bins,
    counted_rows,
    refuse_beside_bins,
)
from skcalib._cells.columns import resolve_multiclass
from skcalib._cells.reductions import binary_tasks
from skcalib._cells.statistics import BinStatistics, set_clusters
from skcalib._cells.tasks import weight_of_row
from skcalib._inference.results import ResultTable
from skcalib._input.label_weights import is_importance
from skcalib._input.labels import check_groups
from skcalib._input.scalars import (
    as_numbers,
    check_confidence_level,
    check_option,
    hint_at_keywords,
)
from skcalib._input.scored_labels import check_scored_labels
from skcalib._intervals.influence import cluster_codes
from skcalib._intervals.monotone_band import monotone_band
from skcalib._rows.sorting import first_rows
from skcalib._verdicts import level_words, percent_words, rounded
from skcalib.binning import BaseBinning, EqualMass, UniqueScores, check_binning

_MOST_FORECASTS = 0.9  # the sentence says within which tolerance so many lie


@dataclass(frozen=True, eq=False, repr=False)
class ValidityShares(ResultTable):
    """Result of `validity_curve`; unpacks as ``epsilons, validity``.

    Parameters
    ----------
    epsilons : ndarray of shape (n_epsilons,)
        Tolerances.
    validity : ndarray of shape (n_epsilons,)
        Share of the weight for which the forecast is within each tolerance.
    """

    epsilons: np.ndarray
    validity: np.ndarray

    def _sentences(self):
        """Say within which tolerance most forecasts lie."""
        is_enough = self.validity >= _MOST_FORECASTS
        if not np.any(is_enough):
            share = percent_words(self.validity[-1])
            return (
                f"{share} of the forecasts are within {rounded(self.epsilons[-1])} of"
                " the event frequency, the largest tolerance."
            )
        k = np.argmax(is_enough)
        return (
            f"{percent_words(self.validity[k])} of the forecasts are within"
            f" {rounded(self.epsilons[k])} of the event frequency."
        )

    def __iter__(self):
        return iter((self.epsilons, self.validity))

    def __getitem__(self, place):
        return (self.epsilons, self.validity)[place]


@dataclass(frozen=True, eq=False, repr=False)
class ReliabilityBand(ResultTable):
    """Limits that contain a whole rising calibration curve; returned by
    `reliability_curve` with ``simultaneous=True``.

    Parameters
    ----------
    score : ndarray of shape (m,)
        Distinct scores, increasing.
    low, high : ndarray of shape (m,)
        Limits for the event frequency at each score. Between two scores, the lower
        limit of the first and the upper limit of the second hold.
    confidence_level : float
        Probability that all limits hold.
    """

    _prints_table = False

    score: np.ndarray
    low: np.ndarray
    high: np.ndarray
    confidence_level: float

    def _sentences(self):
        """Say where the band excludes calibrated scores."""
        level = level_words(self.confidence_level)
        if np.any(self.low > self.high):
            return (
                "The calibration curve is not monotone: no non-decreasing curve lies"
                f" entirely inside the simultaneous {level} band."
            )
        findings = self.findings()
        if not findings:
            return (
                "No miscalibration is detectable: the diagonal lies entirely inside the"
                f" simultaneous {level} band."
            )
        return f"The scores are {' and '.join(findings)} ({level} for the whole curve)."

    def findings(self):
        """Return where the band excludes the diagonal.

        Returns
        -------
        findings : list of str
            Such as "too high from 0.6 to 1"; of several ranges on one side the widest.
        """
        sides = {"high": self.high < self.score, "low": self.low > self.score}
        return [
            f"too {word} {place}"
            for word, is_off in sides.items()
            for place in self._places(is_off)
        ]

    def _places(self, is_off):
        """Return the ranges of scores at which `is_off` (m,) is true, as texts: the
        widest one only, if there are several.
        """
        positions = np.flatnonzero(is_off)
        if len(positions) == 0:
            return []
        runs = np.split(positions, np.flatnonzero(np.diff(positions) > 1) + 1)
        widest = max(runs, key=lambda run: self.score[run[-1]] - self.score[run[0]])
        first = rounded(self.score[widest[0]], 2)
        last = rounded(self.score[widest[-1]], 2)
        if first == last:
            return [f"near {first}"]
        return [f"from {first} to {last}"]


@hint_at_keywords
def reliability_curve(
    y_true: ArrayLike | BinStatistics,
    y_proba: ArrayLike | None = None,
    *,
    binning: BaseBinning | int | None = None,
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto",
    sample_weight: ArrayLike | None = None,
    weight_type: Literal["frequency", "importance"] | dict = "frequency",
    clusters: ArrayLike | None = None,
    simultaneous: bool = False,
    confidence_level: float = 0.9,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> Any:
    """Mean score and event frequency per bin: the data of a reliability diagram.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, L), or BinStatistics
        Labels, an indicator matrix of several labels per sample, or bin sums, which
        replace `y_true`, `y_proba`, `binning` and all other per-sample arguments.
    y_proba : array-like of shape (n,), (n, 2), (n, K) or (n, L)
        Probabilities in [0, 1].
    binning : BaseBinning, int or None, default=None
        Binning strategy; an int is the number of equal-mass bins, and None means
        ``EqualMass(15)``.
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`.
    sample_weight : array-like of shape (n,), default=None
        Weights; see `weight_type`.
    weight_type : {"frequency", "importance"} or dict, default="frequency"
        Meaning of the weights. "frequency": a weight of 2 means two identical samples.
        "importance": each sample was observed once and represents more or less than
        one; weights are scaled to sum to ``sum(w)**2 / sum(w**2)``, the effective
        sample size, which determines the width of the intervals.
        A dict gives the weight that each sample would have with each of two labels,
        a number or an array; see `skcalib.evaluation.describe_weights`.
    clusters : array-like of shape (n,), default=None
        Cluster of each sample, such as a hospital or a patient. `interval` allows for
        the dependence within clusters; see Notes.
    simultaneous : bool, default=False
        Whether to return limits that contain the whole calibration curve in place of
        bins. They hold for any sample size, if samples are independent and the event
        frequency rises with the score. Bins, weights and clusters are not supported.
    confidence_level : float, default=0.9
        Probability that the band contains the whole curve, in (0, 1); used with
        `simultaneous` only.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    curve : BinStatistics or list of BinStatistics
        Bins with `edges`, `mean_score`, `event_frequency`, `weight`, `count` and
        `interval(confidence_level)`; for "marginal", a list with one entry per class.
        With `simultaneous`, a `ReliabilityBand` with the fields `score`, `low` and
        `high`, or a list of these.

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], weights are negative or all zero, or there is only
        one cluster.

    See Also
    --------
    skcalib.displays.ReliabilityDisplay : Plots the result.
    skcalib.metrics.BinStatistics : The sums per bin.

    Notes
    -----
    With `clusters`, the effective number of samples in a bin is reduced by its design
    effect; see the Notes of `ReliabilityDisplay.from_predictions`, whose error bars are
    the same intervals.

    The band of `simultaneous` combines Clopper-Pearson limits of blocks of neighbouring
    scores by Bonferroni's inequality, which is valid for every sample size, ties
    included. In simulations with rising curves, it contained the whole curve in .975 or
    more of the data sets at a confidence level of .9.

    References
    ----------
    DeGroot and Fienberg (1983), The comparison and evaluation of forecasters.
    Dimitriadis, Duembgen, Henzi, Puke and Ziegel (2023), Honest calibration assessment
    for binary outcome predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import reliability_curve
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> curve = reliability_curve(y_true, y_proba, binning=4)
    >>> curve.mean_score.round(2).tolist(), curve.event_frequency.round(2).tolist()
    ([0.09, 0.33, 0.64, 0.9], [0.22, 0.43, 0.61, 0.77])
    >>> low, high = curve.interval(confidence_level=0.9)
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.19, 0.39, 0.57, 0.74], [0.25, 0.46, 0.65, 0.8])
    """
    if simultaneous:
        _check_band_arguments(y_true, binning, sample_weight, clusters)
        data = check_scored_labels(y_true, y_proba, pos_label=pos_label, labels=labels)
        level = check_confidence_level(confidence_level)
        bands = []
        for task in binary_tasks(data, multiclass):
            band = monotone_band(task.scores, task.labels, level)
            bands.append(ReliabilityBand(*band, level))
        return _one_or_all(bands, multiclass, data)
    strategy = check_binning(binning, EqualMass(15))
    if clusters is not None and isinstance(y_true, BinStatistics):
        refuse_beside_bins(multiclass="auto", clusters=clusters)
    rows = {"sample_weight": sample_weight, "pos_label": pos_label, "labels": labels}
    # With clusters, rows of weight zero are kept at first: `clusters` has an entry for
    # each row.
    data = check_rows_or_bins(
        y_true,
        y_proba,
        binning=binning,
        multiclass=multiclass,
        multilabel=True,
        drop=clusters is None,
        **rows,
    )
    cluster = None
    if clusters is not None:
        _, codes = check_groups(clusters, len(data.scores), name="clusters")
        cluster = cluster_codes(codes[data.kept])
        data = data.at(data.kept)
    # Importance weights are scaled by one factor, so that their sum is the effective
    # sample size. Frequency weights count rows as they are.
    data = counted_rows(data, weight_type, warns=False)
    curves = []
    # One binary problem or, for "marginal", one for each class.
    for task in binary_tasks(data, multiclass, pooled=True):
        curve = task.statistics(strategy)
        # With importance weights, `curve.interval()` computes the effective sample size
        # of each bin, and must know the meaning of the weights. `BinStatistics` is
        # frozen, and its constructor takes sums alone: hence this way to set it.
        object.__setattr__(curve, "_weight_type", weight_type)
        object.__setattr__(curve, "_weight_of_row", weight_of_row(task, curve))
        if cluster is not None:
            # A pooled problem has each row once for every class.
            cluster_of_task_row = np.repeat(cluster, task.n_columns)
            set_clusters(
                curve,
                task.scores,
                task.labels,
                task.sample_weight,
                cluster_of_task_row,
                importance=is_importance(weight_type),
            )
        curves.append(curve)
    return _one_or_all(curves, multiclass, data)


def _one_or_all(curves, multiclass, data):
    """Return the list of curves of "marginal", else the only one."""
    if resolve_multiclass(multiclass, data, pooled=True) == "marginal":
        return curves
    return curves[0]


def _check_band_arguments(y_true, binning, sample_weight, clusters):
    """Raise for arguments that the proof of the simultaneous band does not cover."""
    refused = {"binning": binning, "sample_weight": sample_weight}
    refused["clusters"] = clusters
    if isinstance(y_true, BinStatistics):
        refused["BinStatistics"] = y_true
    for name, argument in refused.items():
        if argument is not None:
            raise ValueError(
                f"simultaneous=True does not support {name}: the limits hold for"
                " independent samples without weights or bins."
            )


# A gap of .8 - .6 is within .2, whatever float64 says.
_ROUNDING = 1e-12


def validity_curve(
    y_true: ArrayLike | BinStatistics,
    y_proba: ArrayLike | None = None,
    *,
    epsilons: ArrayLike | None = None,
    binning: BaseBinning | int | None = None,
    conditional: bool = False,
    multiclass: Literal["auto", "top_label"] = "auto",
    sample_weight: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> ValidityShares:
    """Share of samples whose score is within each tolerance of the event frequency.

    The event frequency is that of the sample's bin.

    Parameters
    ----------
    y_true : array-like of shape (n,) or BinStatistics
        Labels, or bin sums, which replace `y_true`, `y_proba`, `binning` and all other
        per-sample arguments.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    epsilons : array-like of shape (n_epsilons,), default=None
        Tolerances in increasing order. None means 0 and the points at which the curve
        has steps, which give the exact step function.
    binning : BaseBinning, int or None, default=None
        Binning strategy; an int is the number of equal-mass bins, and None means
        ``UniqueScores()``, which suits binned models.
    conditional : bool, default=False
        Whether to require the tolerance in all bins simultaneously. The curve is then 0
        below the largest gap and 1 from that gap onwards.
    multiclass : {"auto", "top_label"}, default="auto"
        See `calibration_error`.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights: a sample with weight 2 counts twice.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    curve : ValidityShares
        `epsilons` and `validity`, arrays (n_epsilons,), in this order when unpacked:
        ``V(epsilon)`` is the share of the weight in bins with
        ``|event frequency - mean score| <= epsilon``.

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], or weights are negative or all zero.

    See Also
    --------
    skcalib.displays.ValidityDisplay : Plots the result.

    Notes
    -----
    The area above the marginal curve, over [0, 1], is the plugin l1 calibration error.

    References
    ----------
    Gupta and Ramdas (2021), Distribution-free calibration guarantees for histogram
    binning without sample splitting.

    Examples
    --------
    Example 1 of the paper: the forecasts are .2 (nine samples in ten, event frequency
    .3) and .8 (event frequency .6).

    >>> import numpy as np
    >>> from skcalib.metrics import validity_curve
    >>> y_proba = np.repeat([0.2, 0.8], [90, 10])
    >>> y_true = np.concatenate((np.arange(90) < 27, np.arange(10) < 6))
    >>> epsilons, validity = validity_curve(y_true, y_proba)
    >>> epsilons.round(6).tolist(), validity.tolist()
    ([0.0, 0.1, 0.2], [0.0, 0.9, 1.0])
    >>> tolerances = [0.1, 0.2]
    >>> curve = validity_curve(y_true, y_proba, epsilons=tolerances, conditional=True)
    >>> curve.validity.tolist()
    [0.0, 1.0]
    """
    strategy = check_binning(binning, UniqueScores())
    # The curve describes a single event.
    check_option(multiclass, "multiclass", ("auto", "top_label"))
    rows = {"sample_weight": sample_weight, "pos_label": pos_label, "labels": labels}
    data = check_rows_or_bins(
        y_true, y_proba, binning=binning, multiclass=multiclass, **rows
    )
    task = next(binary_tasks(data, multiclass))
    statistics = task.statistics(strategy, moments=1)
    # The gaps of the bins with rows in increasing order, (n_filled,), and the share of
    # the weight in the first k of them, (n_filled + 1,) for k = 0, 1, ...
    is_filled = statistics.weight > 0
    gaps = np.abs(statistics.event_frequency - statistics.mean_score)[is_filled]
    order = np.argsort(gaps)
    gaps = gaps[order]
    shares = statistics.share[is_filled][order]
    share_of_first = np.append(0.0, np.cumsum(shares))
    if epsilons is None:
        # The curve is a step function: it changes at each distinct gap only.
        steps = np.append(0.0, gaps)
        epsilons = steps[first_rows(steps)]
    else:
        epsilons = _check_epsilons(epsilons)
    # The number of gaps within each tolerance.
    n_within = np.searchsorted(gaps, epsilons + _ROUNDING, side="right")
    if conditional:
        validity = (n_within == len(gaps)).astype(np.float64)
    else:
        # The last share is 1 but for rounding.
        share_of_first = np.minimum(share_of_first / share_of_first[-1], 1.0)
        validity = share_of_first[n_within]
    return ValidityShares(epsilons, validity)


def _check_epsilons(epsilons):
    """Return tolerances (k,) as numbers; raise unless they increase from 0 or more."""
    epsilons = as_numbers(epsilons, "epsilons")
    if (
        epsilons.ndim != 1
        or len(epsilons) == 0
        or not np.all(np.diff(epsilons) >= 0)
        or not epsilons[0] >= 0
    ):
        raise ValueError(
            "epsilons must be a vector of non-negative tolerances in increasing order."
        )
    return epsilons
