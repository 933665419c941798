"""How many samples a validation study needs."""

from __future__ import annotations

from dataclasses import dataclass
from math import asinh, ceil, isnan, nan, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from skcalib._inference.results import ResultTable
from skcalib._input.scalars import check_confidence_level, check_number
from skcalib._input.scores import check_scores
from skcalib._rows.links import clip_probability, log_odds
from skcalib._verdicts import count_words, rounded

_WORDS = {
    "n_oe": "the ratio of observed to expected events",
    "n_slope": "the calibration slope",
    "n_auc": "the area under the ROC curve",
    "n_net_benefit": "the standardised net benefit",
}


@dataclass(frozen=True, eq=False, repr=False)
class ValidationSampleSize(ResultTable):
    """Sample size required for a validation study.

    Parameters
    ----------
    n, n_events : int
        Number of samples required to meet all criteria, and the number of events
        expected among them.
    n_oe, n_slope, n_auc, n_net_benefit : float
        Number of samples required by each criterion; NaN if the criterion was not
        requested or has no solution.
    event_frequency, auc : float
        Assumed mean risk and area under the ROC curve.
    """

    _prints_table = False

    n: int
    n_events: int
    n_oe: float
    n_slope: float
    n_auc: float
    n_net_benefit: float
    event_frequency: float
    auc: float

    def columns(self):
        """Return the criteria as columns.

        Returns
        -------
        columns : dict
            `criterion` and `n`.
        """
        names = list(_WORDS)
        return {
            "criterion": np.array(names, dtype=object),
            "n": np.array([getattr(self, name) for name in names], dtype=object),
        }

    def _sentences(self):
        """Say how many samples are needed, and what each criterion needs."""
        needed = {}
        for name in _WORDS:
            if not isnan(getattr(self, name)):
                needed[name] = getattr(self, name)
        largest = max(needed, key=needed.get)
        lines = [
            f"For the requested precision, {self.n:,} samples with about"
            f" {self.n_events:,} events are needed (event frequency"
            f" {rounded(self.event_frequency)}); {_WORDS[largest]} needs the most.",
        ]
        for name, n in needed.items():
            lines.append(f"- {_WORDS[name]}: {count_words(n)}")
        return "\n".join(lines)


def validation_sample_size(
    y_proba: ArrayLike,
    *,
    oe_width: float = 0.2,
    slope_width: float = 0.2,
    auc_width: float = 0.1,
    auc: float | None = None,
    threshold: float | None = None,
    net_benefit_width: float = 0.2,
    confidence_level: float = 0.95,
) -> ValidationSampleSize:
    """Return the sample size for a validation study with sufficiently narrow intervals.

    Parameters
    ----------
    y_proba : array-like of shape (m,), (m, 1) or (m, 2)
        A representative set of the risks expected in the study: from a pilot study,
        from the development data, or drawn from a distribution.
    oe_width : float, default=0.2
        Desired width of the interval for the ratio of observed to expected events, at a
        ratio of 1.
    slope_width : float, default=0.2
        Desired width of the interval for the calibration slope, at a slope of 1.
    auc_width : float, default=0.1
        Desired width of the interval for the area under the ROC curve.
    auc : float, default=None
        Expected AUC in (0.5, 1); None means the AUC of a calibrated model with these
        risks.
    threshold : float, default=None
        Decision threshold in (0, 1) for the net benefit; None omits it.
    net_benefit_width : float, default=0.2
        Desired width of the interval for the standardised net benefit, which is 1 for a
        perfect model.
    confidence_level : float, default=0.95
        Coverage of each interval, in (0, 1); 0.95 is usual in reports on prediction
        models.

    Returns
    -------
    size : ValidationSampleSize
        Frozen object with the fields `n, n_events, n_oe, n_slope, n_auc,
        n_net_benefit`.

    Raises
    ------
    ValueError
        If risks are outside [0, 1], are all 0 or are all 1, or if widths are not
        positive.

    See Also
    --------
    skcalib.evaluation.calibration_summary : These statistics with their intervals.
    skcalib.guarantees.min_n_samples : Sample size for a guarantee on binned
        probabilities.

    Notes
    -----
    The formulas of Riley et al. [1]_ assume a calibrated model and confidence limits
    based on the normal approximation. Let f be the prevalence, z the normal quantile,
    and LP the log-odds of the risks p:

    * O/E: ``(1 - f) / (f se^2)``, with se = asinh(width / 2) / z.
    * Slope: ``I00 / (se^2 (I00 I11 - I01^2))``, where I_jk is the mean of LP^(j + k) p
      (1 - p).
    * AUC C: the smallest n for which the standard error is small enough; the squared
      standard error is
      ``C (1 - C) (1 + (n/2 - 1) ((1 - C) / (2 - C) + C / (1 + C))) / (n^2 f (1 - f))``.
    * Net benefit: sensitivity and specificity are those of a calibrated model with
      these risks.

    R's `pmvalsampsize` tries a grid of rounded standard errors, and returns 905 in an
    example for which the formula gives 906.

    References
    ----------
    .. [1] Riley et al. (2021), Minimum sample size for external validation of a
        clinical prediction model with a binary outcome.

    Examples
    --------
    Half of the risks are .1 and half are .3:

    >>> from skcalib.evaluation import validation_sample_size
    >>> size = validation_sample_size([0.1, 0.3], oe_width=0.4)
    >>> size.n_oe, size.n_slope, size.n_auc, size.n
    (390.0, 6693.0, 708.0, 6693)

    Computed by hand, with asinh(.2) = .1986901:

    >>> 389 < (1 - 0.2) / 0.2 * (1.959964 / 0.1986901) ** 2 < 390
    True
    """
    level = check_confidence_level(confidence_level)
    z = float(ndtri((1 + level) / 2))
    widths = {
        "oe_width": oe_width,
        "slope_width": slope_width,
        "auc_width": auc_width,
        "net_benefit_width": net_benefit_width,
    }
    for name, width in widths.items():
        check_number(width, name, above=0)
    if auc is not None:
        check_number(auc, "auc", above=0.5, below=1)
    if threshold is not None:
        check_number(threshold, "threshold", above=0, below=1)
    scores = check_scores(y_proba, name="y_proba")
    if scores.shape[1] > 2:
        raise ValueError(
            f"y_proba has {scores.shape[1]} columns, but a risk refers to one event."
        )
    risk = scores[:, -1].astype(np.float64)
    frequency = float(risk.mean())
    if not 0 < frequency < 1:
        raise ValueError(
            f"y_proba must contain risks between 0 and 1, found a mean of"
            f" {rounded(frequency)}."
        )
    area = _expected_area(risk) if auc is None else float(auc)
    needed = {
        "n_oe": _n_oe(frequency, oe_width, z),
        "n_slope": _n_slope(risk, slope_width, z),
        "n_auc": _n_auc(area, frequency, auc_width, z),
        "n_net_benefit": nan,
    }
    if threshold is not None:
        needed["n_net_benefit"] = _n_net_benefit(risk, threshold, net_benefit_width, z)
    needed = {name: _rounded_up(n) for name, n in needed.items()}
    largest = int(np.nanmax(list(needed.values())))
    return ValidationSampleSize(
        n=largest,
        n_events=round(largest * frequency),
        **needed,
        event_frequency=frequency,
        auc=area,
    )


def _rounded_up(n):
    """Return a number rounded up to a whole number, as a float; NaN stays NaN."""
    if isnan(n):
        return nan
    # A little less, so that rounding of a whole number does not add a sample.
    return float(ceil(n * (1 - 1e-12)))


# In the next functions `width` is the width that an interval may have, `z` the normal
# quantile of its level, and `risk` holds the scores (n,).


def _n_oe(frequency, width, z):
    """Return the samples for this width of the interval of observed over expected
    events (Riley et al. 2021), if the frequency is as expected.
    """
    # On the log scale the interval of O/E = 1 has the width exp(z se) - exp(-z se).
    error = asinh(width / 2) / z
    return (1 - frequency) / (frequency * error**2)


def _n_slope(risk, width, z):
    """Return the samples for this width of the slope's interval (Riley et al. 2021);
    NaN if all risks are equal.
    """
    error = width / (2 * z)
    predictor = log_odds(clip_probability(risk))
    # Fisher's information per sample of a logistic regression on the log-odds.
    information = risk * (1 - risk)
    i00 = information.mean()
    i01 = (predictor * information).mean()
    i11 = (predictor**2 * information).mean()
    determinant = i00 * i11 - i01**2
    if determinant <= 1e-12 * i00 * i11:
        return nan
    # The variance of the slope is the lower right entry of the inverse, over n.
    return i00 / (error**2 * determinant)


def _n_auc(area, frequency, width, z):
    """Return the samples for an interval for the area under the ROC curve of this
    width, found by bisection; NaN for an area below .5 or of 1.
    """
    if not 0.5 <= area < 1:
        return nan

    def is_narrow(n):
        """Return whether n samples make the interval narrow enough."""
        # Newcombe (2006), with n / 2 in place of both numbers of pairs.
        half = n / 2 - 1
        spread = half * (1 - area) / (2 - area) + half * area / (1 + area)
        variance = area * (1 - area) * (1 + spread)
        variance /= n**2 * frequency * (1 - frequency)
        return 2 * z * sqrt(variance) <= width

    # Between low, which is too few, and high, which is enough.
    high = 2
    while not is_narrow(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if is_narrow(middle):
            high = middle
        else:
            low = middle
    return float(high)


def _n_net_benefit(risk, threshold, width, z):
    """Return the samples for this width of the standardised net benefit's interval
    (Riley et al. 2021), if the risks are right.
    """
    error = width / (2 * z)
    frequency = risk.mean()
    positive = risk >= threshold
    sensitivity = risk[positive].sum() / risk.sum()
    specificity = (1 - risk[~positive]).sum() / (1 - risk).sum()
    odds = (1 - frequency) / frequency * threshold / (1 - threshold)
    # n times the variance of sensitivity - odds * (1 - specificity), in which the odds
    # vary with the event frequency
    variance = sensitivity * (1 - sensitivity) / frequency
    variance += odds**2 * specificity * (1 - specificity) / (1 - frequency)
    variance += odds**2 * (1 - specificity) ** 2 / (frequency * (1 - frequency))
    return variance / error**2


def _expected_area(risk):
    """Return the area under the ROC curve if the risks are calibrated: the probability
    that an event has a larger one than a non-event, ties half.
    """
    values, rank, count = np.unique(risk, return_inverse=True, return_counts=True)
    # Expected numbers of events and non-events at each distinct risk.
    events = np.bincount(rank, risk, len(values))
    non_events = count - events
    non_events_below = np.cumsum(non_events) - non_events
    pairs = events @ (non_events_below + non_events / 2)
    return float(pairs / (events.sum() * non_events.sum()))
