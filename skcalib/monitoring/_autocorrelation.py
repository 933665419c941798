"""Whether the errors of samples that follow each other in time are alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from skcalib._inference.results import ResultRecord
from skcalib._input.columns import table_columns
from skcalib._input.groups import check_named_groups
from skcalib._input.scored_labels import check_one_event, check_scored_labels
from skcalib._verdicts import count_words, pvalue_words, rounded
from skcalib.binning import EqualMass, assign_bins
from skcalib.monitoring._times import moments

_LEVEL = 0.05
_LAGS = (1, 2, 3, 4, 5)
_FEWEST_SAMPLES = 100
# Intervals that are too short by a smaller factor than this are harmless.
_HARMLESS_FACTOR = 1.1
_SCORE_BINS = 15
_ROUNDING = 1e-12  # of errors, which are of the order of 1


@dataclass(frozen=True, eq=False, repr=False)
class ErrorAutocorrelation(ResultRecord):
    """Result of `error_autocorrelation`; unpacks in the order of its fields.

    Parameters
    ----------
    estimate : float
        Correlation of the errors of neighbouring samples.
    factor : float
        How many times too short intervals are that take the samples as independent.
    pvalue : float
        One-sided p-value of the hypothesis that this factor is at most 1.1.
    reason : str
        Why the numbers are NaN; empty if they are not.
    """

    estimate: float
    factor: float
    pvalue: float
    reason: str = ""

    def _sentences(self):
        """Say whether consecutive errors are alike, and how much longer intervals must
        be.
        """
        if self.reason:
            return f"No autocorrelation can be estimated: {self.reason}."
        harmless = rounded(_HARMLESS_FACTOR)
        words = pvalue_words(self.pvalue)
        if self.pvalue < _LEVEL:
            return (
                "Consecutive samples have similar errors: intervals that ignore this"
                f" are too short by a factor of about {rounded(self.factor, 2)}"
                f" ({words} for a factor of at most {harmless})."
            )
        return (
            "Consecutive samples do not have detectably similar errors: there is no"
            " sign that intervals are too short by a factor of more than"
            f" {harmless} ({words})."
        )


def error_autocorrelation(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    time: ArrayLike,
    *,
    groups: ArrayLike | Any | None = None,
    pos_label: int | float | bool | str | None = None,
) -> ErrorAutocorrelation:
    """Whether the errors of samples that follow each other in time are alike.

    The error of a sample is its label minus its score. If neighbours have similar
    errors, intervals and tests that take samples as independent are too optimistic:
    pass what the neighbours share (a day, a case) as ``clusters=``.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,) or (n, 2)
        Probabilities of the event, in [0, 1].
    time : array-like of shape (n,)
        Time at which each sample was scored: numbers or dates (``datetime64``,
        `datetime`, text as YYYY-MM-DD or YYYY-MM). Samples of the same time must be in
        their order.
    groups : array-like of shape (n,) or (n, n_columns), dict or DataFrame, default=None
        Group of each sample, such as its period or site, whose mean error is
        subtracted. Each of several columns divides the samples in its own way.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.

    Returns
    -------
    autocorrelation : ErrorAutocorrelation
        `estimate`, `factor`, `pvalue` and `reason`; as text, a sentence. The numbers
        are NaN for fewer than 100 samples, for labels of one class, and if nothing is
        left of the errors.

    Raises
    ------
    ValueError
        If times are not numbers or dates, or if labels, probabilities or groups are
        inconsistent.

    See Also
    --------
    calibration_trend : Whether the bias changes over time.

    Notes
    -----
    Miscalibration is not dependence. Therefore the mean error is subtracted first: that
    of each group, one column after the other, and then that of each of 15 bins of equal
    mass of the scores.

    With the correlation r_k of errors that are k samples apart, the variance of a mean
    is 1 + 2 (r_1 + ... + r_5) times that of independent samples; `factor` is the root.
    Samples further apart are ignored, although they may make it larger. Products of
    independent errors are uncorrelated, so that the root of the sum of their squares is
    the standard error of their sum. `estimate` is r_1.

    References
    ----------
    Bayley and Hammersley (1946), The "effective" number of independent observations in
    an autocorrelated time series.

    Examples
    --------
    Ten samples a day share what the model does not know, such as the weather:

    >>> import numpy as np
    >>> from skcalib.monitoring import error_autocorrelation
    >>> rng = np.random.default_rng(0)
    >>> day = np.repeat(np.arange(200), 10)
    >>> y_proba = rng.uniform(0.2, 0.8, 2000)
    >>> weather = rng.choice([-0.2, 0.2], 200)[day]
    >>> y_true = rng.random(2000) < y_proba + weather
    >>> print(error_autocorrelation(y_true, y_proba, day))
    Consecutive samples have similar errors: intervals that ignore this are too short by a factor of about 1.6 (p < 0.001 for a factor of at most 1.1).
    """  # noqa: E501
    data = check_scored_labels(y_true, y_proba, pos_label=pos_label)
    check_one_event(data, "an autocorrelation")
    n_samples = len(data.scores)
    moment, _ = moments(time, n_samples)
    group_columns = _group_columns(groups, n_samples)
    if n_samples < _FEWEST_SAMPLES:
        return _unknown(
            f"there are {count_words(n_samples)} samples, fewer than"
            f" {count_words(_FEWEST_SAMPLES)}"
        )
    if data.labels.all() or not data.labels.any():
        return _unknown("y_true has one class only")
    scores = data.scores.astype(np.float64)
    score_bin = assign_bins(scores, EqualMass(_SCORE_BINS).bin_edges(scores))
    error = data.labels - scores
    # Errors without the mean error of each group, and of samples with similar scores.
    for code in (*group_columns, score_bin):
        group_size = np.maximum(np.bincount(code), 1)  # a group may have no samples
        error = error - (np.bincount(code, error) / group_size)[code]
    error[np.abs(error) < _ROUNDING] = 0.0
    return _of_errors(error[np.argsort(moment, kind="stable")])


def _group_columns(groups, n_samples):
    """Return a list with the codes of the groups (n_samples,) of each column."""
    if groups is None:
        return []
    columns = groups
    if not isinstance(groups, Mapping):
        columns = table_columns(groups, name="groups")
    codes = []
    for values in columns.values():
        _, code = check_named_groups(values, n_samples, takes_max_bins=False)
        codes.append(code)
    return codes


def _of_errors(error):
    """Return the `ErrorAutocorrelation` of errors (n,) in the order of time."""
    # Products of errors that are 1 to 5 samples apart.
    products = np.concatenate([error[lag:] * error[:-lag] for lag in _LAGS])
    product_root = np.sqrt(np.sum(products**2))
    if product_root == 0:
        return _unknown("no errors are left to compare")
    # Products of independent errors are uncorrelated, so that the sum of the five
    # correlations has the standard error `product_root` over the sum of squares.
    square = np.sum(error**2)
    correlation = products.sum() / square
    # The factor of the standard error is the root of 1 + 2 * correlation.
    largest_harmless = (_HARMLESS_FACTOR**2 - 1) / 2
    z = (correlation - largest_harmless) / (product_root / square)
    neighbours = np.sum(error[1:] * error[:-1]) / square
    factor = np.sqrt(max(1 + 2 * correlation, 0))
    return ErrorAutocorrelation(float(neighbours), float(factor), float(ndtr(-z)))


def _unknown(reason):
    return ErrorAutocorrelation(np.nan, np.nan, np.nan, reason)
