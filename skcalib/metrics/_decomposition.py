"""Proper scores taken apart: miscalibration, discrimination, uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlog1py, xlogy

from skcalib._cells.binned import BinnedTask, check_rows_or_bins
from skcalib._cells.device_columns import rows_in_place
from skcalib._cells.reductions import binary_tasks
from skcalib._cells.statistics import BinStatistics
from skcalib._inference.results import ResultRecord
from skcalib._input.device_scores import impossible_rows
from skcalib._input.scalars import check_option
from skcalib._input.tensors import library_of
from skcalib._rows.links import clip_probability
from skcalib._rows.namespaces import as_double, clipped, in_double
from skcalib._verdicts import impossible_words, sum_words
from skcalib.binning import BaseBinning, PoolAdjacentViolators, check_binning

_OF_CLASSES = ", mean over the classes,"


@dataclass(frozen=True, eq=False, repr=False)
class ScoreDecomposition(ResultRecord):
    """Decomposition of a proper score: miscalibration - discrimination + uncertainty.

    It unpacks as these three parts.

    Parameters
    ----------
    miscalibration : float
        Reduction in the score from recalibrating the forecasts to the event frequencies
        of the bins. Smaller values are better. It is non-negative, unless it was
        debiased.
    discrimination : float
        Reduction in the score from predicting these frequencies instead of the base
        rate. Larger values are better. It is non-negative, unless it was debiased.
    uncertainty : float
        Score of always predicting the base rate, which depends only on the labels.
    within_bins : float, default=0.0
        What scores that differ within a bin add to the score. It is 0 unless
        ``method="debiased"``.
    """

    miscalibration: float
    discrimination: float
    uncertainty: float
    within_bins: float = 0.0

    def __iter__(self):
        return iter((self.miscalibration, self.discrimination, self.uncertainty))

    def __len__(self):
        return 3

    # What was decomposed; no field: the result unpacks as three numbers.
    _name = "Score"

    # How many samples happened although their probability was 0.
    _n_impossible = 0

    def _named(self, name, n_impossible=0):
        """Return the result with its score's name and the number of samples whose label
        had probability 0.
        """
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_n_impossible", n_impossible)
        return self

    def _sentences(self):
        """Return the parts as a sum whose rounded terms add up."""
        miscalibration, discrimination, uncertainty, within, score = sum_words(
            self.miscalibration,
            -self.discrimination,
            self.uncertainty,
            self.within_bins,
        )
        inside = ""
        if self.within_bins != 0:
            sign = "-" if within.startswith("-") else "+"
            inside = f" {sign} {within.removeprefix('-')} within bins"
        note = ""
        if self._n_impossible:
            note = f"\n{impossible_words(self._n_impossible)}"
        return (
            f"{self._name} {score} = {miscalibration} miscalibration"
            f" - {discrimination.removeprefix('-')} discrimination + {uncertainty}"
            f" uncertainty{inside}.{note}"
        )

    @property
    def score(self) -> float:
        """The score that was decomposed, the sum of all parts."""
        return (
            self.miscalibration
            - self.discrimination
            + self.uncertainty
            + self.within_bins
        )


def brier_decomposition(
    y_true: ArrayLike | BinStatistics,
    y_proba: ArrayLike | None = None,
    *,
    binning: BaseBinning | int | None = None,
    method: Literal["plugin", "debiased"] = "plugin",
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto",
    sample_weight: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> ScoreDecomposition:
    """Decompose the Brier score as miscalibration - discrimination + uncertainty.

    With isotonic blocks (CORP, the default) and with `UniqueScores`, the parts add up
    to the Brier score of the predictions themselves. With other bins, they add up to
    the Brier score of the bin means.

    The miscalibration and the discrimination of bins are too large on average, since
    the event frequencies of bins are noisy. ``method="debiased"`` corrects the three
    parts, and adds what the scores within a bin contribute, so that the parts add up to
    the Brier score itself.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, L), or BinStatistics
        Labels, an indicator matrix of several labels per sample, or bin sums, which
        replace `y_true`, `y_proba`, `binning` and all other per-sample arguments.
    y_proba : array-like of shape (n,), (n, 2), (n, K) or (n, L)
        Probabilities in [0, 1].
    binning : BaseBinning, int or None, default=None
        Binning strategy; an int is the number of equal-mass bins, and None means
        ``PoolAdjacentViolators()``.
    method : {"plugin", "debiased"}, default="plugin"
        "plugin" is the decomposition as it is published, for any bins. "debiased" takes
        bins that do not depend on the labels, such as ``EqualWidth`` and
        ``UniqueScores``, or bin sums. A bin of one sample is not corrected.
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`. "marginal" is the mean over classes, each against the
        rest; the multiclass Brier score is K times this mean.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights: a sample with weight 2 counts twice.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    decomposition : ScoreDecomposition
        `miscalibration`, `discrimination` and `uncertainty`, in this order when
        unpacked, and the `score` that they add up to.

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], or weights are negative or all zero; or if
        ``method="debiased"`` is asked for with isotonic blocks, as without `binning`.

    See Also
    --------
    skcalib.metrics.log_loss_decomposition : The same decomposition of the log-loss.
    skcalib.evaluation.recalibration_gain : The gain to be expected from recalibration.

    References
    ----------
    Murphy (1973), A new vector partition of the probability score. Dimitriadis,
    Gneiting and Jordan (2021), Stable reliability diagrams for probabilistic
    classifiers. Ferro and Fricker (2012), A bias-corrected decomposition of the Brier
    score. Stephenson, Coelho and Jolliffe (2008), Two extra components in the Brier
    score decomposition.

    Examples
    --------
    Overconfident forecasts: the log-odds are twice what they should be. The score is
    the first part minus the second plus the third; recalibration can remove the first
    part.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import brier_decomposition
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> parts = brier_decomposition(y_true, y_proba)
    >>> [round(part, 3) for part in parts]
    [0.014, 0.048, 0.25]
    >>> round(parts.miscalibration - parts.discrimination + parts.uncertainty, 3)
    0.216

    Ten equally wide bins, corrected for the noise of their frequencies:

    >>> from skcalib.binning import EqualWidth
    >>> parts = brier_decomposition(
    ...     y_true, y_proba, binning=EqualWidth(10), method="debiased"
    ... )
    >>> round(parts.miscalibration, 3), round(parts.within_bins, 4)
    (0.01, 0.0004)
    >>> round(parts.score, 3)
    0.216
    """
    check_option(method, "method", ("plugin", "debiased"))
    rows = {"sample_weight": sample_weight, "pos_label": pos_label, "labels": labels}
    if method == "plugin":
        return _decomposition(
            "Brier score", expected_brier, y_true, y_proba, binning, multiclass, rows
        )
    are_sums = isinstance(y_true, BinStatistics)
    if not are_sums and isinstance(
        check_binning(binning, PoolAdjacentViolators()), PoolAdjacentViolators
    ):
        raise ValueError(
            'method="debiased" needs bins that do not depend on the labels: pass'
            " binning=UniqueScores() if scores repeat, or else, for example,"
            " binning=EqualWidth(10)."
        )
    data = check_rows_or_bins(
        y_true,
        y_proba,
        binning=binning,
        multiclass=multiclass,
        multilabel=True,
        **rows,
    )
    parts = []
    for task in binary_tasks(data, multiclass, pooled=True):
        parts.append(_debiased_parts(task.statistics(check_binning(binning, 10))))
    name = "Brier score" if len(parts) == 1 else f"Brier score{_OF_CLASSES}"
    return ScoreDecomposition(*np.mean(parts, axis=0).tolist())._named(name)


def log_loss_decomposition(
    y_true: ArrayLike | BinStatistics,
    y_proba: ArrayLike | None = None,
    *,
    binning: BaseBinning | int | None = None,
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto",
    sample_weight: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> ScoreDecomposition:
    """Decompose the log-loss as miscalibration - discrimination + uncertainty.

    Miscalibration is the mean Kullback-Leibler divergence of the predictions from the
    event frequencies. The parts add up as in `brier_decomposition`.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, L), or BinStatistics
        Labels, an indicator matrix of several labels per sample, or bin sums, which
        replace `y_true`, `y_proba`, `binning` and all other per-sample arguments.
    y_proba : array-like of shape (n,), (n, 2), (n, K) or (n, L)
        Probabilities in [0, 1], clipped to [2^-52, 1 - 2^-52].
    binning : BaseBinning, int or None, default=None
        Binning strategy; an int is the number of equal-mass bins, and None means
        ``PoolAdjacentViolators()``.
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`. "marginal" is the mean over classes, each against the
        rest.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights: a sample with weight 2 counts twice.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    decomposition : ScoreDecomposition
        Named tuple (miscalibration, discrimination, uncertainty) in nats, with the
        `score` that they add up to.

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], or weights are negative or all zero.

    See Also
    --------
    skcalib.metrics.brier_decomposition : The same decomposition of the Brier score.
    skcalib.evaluation.recalibration_gain : The gain to be expected from recalibration.

    References
    ----------
    Bröcker (2009), Reliability, sufficiency, and the decomposition of proper scores.
    Dimitriadis, Gneiting and Jordan (2021), Stable reliability diagrams for
    probabilistic classifiers.

    Examples
    --------
    Overconfident forecasts: recalibration can remove the first part of the loss.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import log_loss_decomposition
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> parts = log_loss_decomposition(y_true, y_proba)
    >>> [round(part, 3) for part in parts]
    [0.062, 0.104, 0.693]
    >>> round(parts.miscalibration - parts.discrimination + parts.uncertainty, 3)
    0.651
    """
    rows = {"sample_weight": sample_weight, "pos_label": pos_label, "labels": labels}
    return _decomposition(
        "Log-loss", _expected_log_loss, y_true, y_proba, binning, multiclass, rows
    )


def _decomposition(name, expected_score, y_true, y_proba, binning, multiclass, rows):
    """Return the `ScoreDecomposition` of a proper score, averaged over the binary
    problems: one, or with "marginal" one for each class. ``expected_score(frequency,
    forecast)`` is that of a forecast if events have this frequency; `rows` are the
    per-sample arguments.
    """
    strategy = check_binning(binning, PoolAdjacentViolators())
    data = check_rows_or_bins(
        y_true,
        y_proba,
        binning=binning,
        multiclass=multiclass,
        multilabel=True,
        **rows,
    )
    decompositions = []
    is_of_rows = True
    n_impossible = 0
    for task in binary_tasks(data, multiclass, pooled=True):
        is_of_rows = _is_of_rows(strategy, task)
        if name == "Log-loss" and not isinstance(task, BinnedTask):
            n_impossible += impossible_rows(*task.in_place).shape[0]
        decompositions.append(decomposed(expected_score, task, strategy))
    if len(decompositions) > 1:
        name += _OF_CLASSES
    if not is_of_rows:
        name += " of the bin means"
    return ScoreDecomposition(*np.mean(decompositions, axis=0).tolist())._named(
        name, n_impossible
    )


def decomposed(expected_score, task, strategy):
    """Return (miscalibration, discrimination, uncertainty) of a proper score for a
    binary problem, floats. The score is miscalibration - discrimination + uncertainty.

    `task` holds labels, scores and weights, or bin sums; `strategy` forms the bins in
    which event frequencies recalibrate the scores. ``expected_score(frequency,
    forecast)`` is the mean score of a forecast if events have this frequency.
    """
    bins = task.statistics(strategy)
    share = bins.share  # of the weight
    frequency = bins.event_frequency
    base_rate = bins.weighted_label.sum() / bins.weight.sum()
    # The score of the forecasts. With the isotonic fit it is that of the samples; other
    # bins, and bin sums, know the mean score of a bin only.
    if _is_of_rows(strategy, task):
        score = _mean_score(expected_score, rows_in_place(task))
    else:
        score = share @ expected_score(frequency, bins.mean_score)
    # The score after recalibration, and that of the base rate as forecast for all.
    recalibrated = share @ expected_score(frequency, frequency)
    uncertainty = expected_score(base_rate, base_rate)
    # Both differences are negative by rounding only: of all forecasts that are constant
    # on the bins, the event frequencies have the best score.
    miscalibration = max(score - recalibrated, 0.0)
    discrimination = max(uncertainty - recalibrated, 0.0)
    return miscalibration, discrimination, uncertainty


def _mean_score(expected_score, cells):
    """Return the mean score of the samples, for these or for cells of one forecast
    each: the expected score is linear in the event frequency.
    """
    xp = library_of(cells.mean_score)
    forecast = as_double(xp, cells.mean_score)
    scores = expected_score(cells.event_frequency, forecast)
    if xp is np:
        return np.average(scores, weights=cells.weight)
    weight = in_double(xp, cells.weight)
    return float(xp.sum(weight * scores) / xp.sum(weight))


def _debiased_parts(bins):
    """Return the miscalibration, the discrimination, the uncertainty and the part
    within bins of the Brier score.

    The variances of the frequencies are estimated without bias (Ferro and Fricker,
    2012), except in bins of one sample; the part within bins is the variance of the
    scores less twice their covariance with the labels (Stephenson, Coelho and Jolliffe,
    2008).
    """
    share = bins.share
    frequency = bins.event_frequency
    total = bins.weight.sum()
    base_rate = bins.weighted_label.sum() / total

    def variance_of_mean(frequency, weight):
        """Return the unbiased estimate of the variance of the mean of `weight` labels;
        0 for a single label.
        """
        variance = frequency * (1 - frequency)
        return np.where(weight > 1, variance / np.maximum(weight - 1, 1e-300), 0.0)

    noise_of_bins = share @ variance_of_mean(frequency, bins.weight)
    noise_of_base_rate = variance_of_mean(base_rate, total)
    miscalibration = share @ (bins.mean_score - frequency) ** 2 - noise_of_bins
    discrimination = (
        share @ (frequency - base_rate) ** 2 - noise_of_bins + noise_of_base_rate
    )
    uncertainty = base_rate * (1 - base_rate) + noise_of_base_rate
    # Sums of squares and products around the means of the bins.
    squares = bins.weighted_score_squared.sum() / total - share @ bins.mean_score**2
    products = bins.weighted_score_label.sum() / total - share @ (
        bins.mean_score * frequency
    )
    within_bins = squares - 2 * products
    return miscalibration, discrimination, uncertainty, within_bins


def _is_of_rows(strategy, task):
    """Return whether the score is that of the samples, and not of the bin means."""
    return isinstance(strategy, PoolAdjacentViolators) and not isinstance(
        task, BinnedTask
    )


def expected_brier(frequency, forecast):
    """Return the expected Brier score of a forecast for events of this frequency."""
    return (forecast - frequency) ** 2 + frequency * (1 - frequency)


def _expected_log_loss(frequency, forecast):
    """Return the expected log-loss of a forecast for events of this frequency."""
    if isinstance(forecast, np.ndarray | float):
        forecast = clip_probability(forecast)
        return -xlogy(frequency, forecast) - xlog1py(1 - frequency, -forecast)
    xp = library_of(forecast)
    forecast = clipped(xp, forecast)
    return -frequency * xp.log(forecast) - (1 - frequency) * xp.log1p(-forecast)
