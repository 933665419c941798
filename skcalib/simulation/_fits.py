"""Fits of a score distribution and a calibration curve to data, and the ten fits of
Roelofs et al.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.optimize import minimize
from scipy.special import betaln, expit, hyp2f1

from skcalib._inference.results import (
    ResultRecord,
    frame_of,
    html_table,
    text_table,
)
from skcalib._input.classes import encode_labels
from skcalib._input.scalars import check_number
from skcalib._input.scored_labels import check_score_column
from skcalib._input.tensors import as_array
from skcalib._rows.links import clip_probability
from skcalib._verdicts import fixed, rounded, sentences_html
from skcalib.simulation._curves import GlmCurve

# The scales (link, transform) of the paper's candidates.
_CANDIDATES = (
    ("logit", "logit"),
    ("log", "log"),
    ("logflip", "logflip"),
    ("logit", "logflip"),
)


@dataclass(frozen=True, eq=False, repr=False)
class CurveFit(ResultRecord):
    """A fitted candidate curve: see `fit_calibration_curve`."""

    name: str
    curve: GlmCurve
    n_parameters: int
    log_likelihood: float
    aic: float

    def _sentences(self):
        return f"{self.name}: AIC {fixed(self.aic, 1)}, {self.curve!r}."


@dataclass(frozen=True, eq=False, repr=False)
class CurveFits(ResultRecord):
    """The candidates for a calibration curve, in increasing order of AIC, and the curve
    of the first candidate.
    """

    curve: GlmCurve
    table: list[CurveFit]

    def columns(self):
        """Return the table of candidates as a dict of columns.

        Returns
        -------
        columns : dict
            Maps the name of each column to its values, one for each candidate.
        """
        columns = {}
        for field in fields(CurveFit):
            columns[field.name] = [getattr(fit, field.name) for fit in self.table]
        return columns

    def to_frame(self):
        """Return the candidates as a pandas DataFrame.

        Returns
        -------
        frame : pandas.DataFrame
            One row for each candidate, starting with the lowest AIC.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return frame_of(self.columns(), "CurveFits")

    def _sentences(self):
        best = self.table[0]
        return (
            f"{best.name} fits best among {len(self.table)} candidates (AIC"
            f" {fixed(best.aic, 1)}): {self.curve!r}."
        )

    def __str__(self):
        return f"{self._sentences()}\n{text_table(self.columns())}"

    def _repr_html_(self):
        return sentences_html(self._sentences()) + html_table(self.columns())


def fit_score_distribution(
    scores: ArrayLike, *, resolution: float | None = None
) -> Any:
    """Fit a Beta distribution to scores by maximum likelihood.

    Scores that are 0 or 1 in floating-point precision have no density. Such scores are
    treated as censored, that is, as "at most `resolution`" and "at least 1 -
    `resolution`". If a sixth of a network's scores are rounded to 1, the fit agrees
    with the fit to the exact scores up to sampling error.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores in [0, 1].
    resolution : float, default=None
        Distance from 0 and from 1 below which scores are censored. None means half the
        gap between 1 and the float below it: 2^-54 for float64, 2^-25 for float32. Use
        the value for the dtype in which the scores were computed.

    Returns
    -------
    distribution : frozen distribution
        ``scipy.stats.beta(a, b)``.

    Raises
    ------
    ValueError
        If the scores are not numbers in [0, 1], or if they are all the same or all
        censored, because the maximum-likelihood estimate then does not exist.

    See Also
    --------
    skcalib.simulation.fit_calibration_curve : Fits curves to scores and labels.
    skcalib.simulation.CalibrationModel : Scores and labels with a known error.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer (2022), Mitigating bias in calibration error
    estimation, Section 3.

    Examples
    --------
    >>> from scipy import stats
    >>> from skcalib.simulation import fit_score_distribution
    >>> scores = stats.beta(2.8, 0.05).rvs(20_000, random_state=0)
    >>> bool((scores == 1).mean() > 0.1)
    True
    >>> [round(value, 2) for value in fit_score_distribution(scores).args]
    [2.8, 0.05]
    """
    dtype = as_array(scores)[0].dtype
    scores, _, _ = check_score_column(
        scores, labels=None, sample_weight=None, labels_name="y"
    )
    if resolution is None:
        if dtype.kind != "f":
            dtype = np.float64
        resolution = float(np.finfo(dtype).eps) / 4  # the gap below 1 is eps / 2
    check_number(resolution, "resolution", above=0, below=0.5)
    scores = scores.astype(np.float64)
    at_zero = scores <= resolution
    at_one = scores >= 1 - resolution
    inner = scores[~(at_zero | at_one)]
    if len(inner) == 0 or scores.min() == scores.max():
        found = "all are 0 or 1"
        if scores.min() == scores.max():
            found = f"all are {rounded(scores[0], 6)}"
        raise ValueError(
            "scores must not all be equal, and some must lie strictly between 0 and 1,"
            f" for a Beta fit; {found}."
        )
    # Shares of all rows, and sums over the inner ones divided by the number of all.
    share_at_zero = np.mean(at_zero)
    share_at_one = np.mean(at_one)
    log_score = np.log(inner).sum() / len(scores)
    log_complement = np.log1p(-inner).sum() / len(scores)

    def loss(log_parameters):
        """Return the mean negative log-likelihood of a Beta distribution with censored
        ends.
        """
        a, b = np.exp(log_parameters)
        # (a - 1) log s + (b - 1) log(1 - s) - log B(a, b), for the inner scores.
        inner_term = (
            (a - 1) * log_score
            + (b - 1) * log_complement
            - (1 - share_at_zero - share_at_one) * betaln(a, b)
        )
        # Log-probabilities of the censored scores; 1 - S is Beta(b, a).
        lower_tail = share_at_zero * _log_lower_tail(a, b, resolution)
        upper_tail = share_at_one * _log_lower_tail(b, a, resolution)
        return -(inner_term + (lower_tail + upper_tail))

    # Over (log a, log b), which have no bounds.
    options = {"xatol": 1e-9, "fatol": 1e-14, "maxiter": 2000, "maxfev": 4000}
    start = np.log(_moment_start(scores))
    found = minimize(loss, start, method="Nelder-Mead", options=options)
    a, b = np.exp(found.x).tolist()
    return stats.beta(a, b)


def fit_calibration_curve(scores: ArrayLike, y: ArrayLike) -> CurveFits:
    """Fit the calibration curves of Roelofs et al. and select one by AIC.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores in [0, 1], clipped to [2^-52, 1 - 2^-52].
    y : array-like of shape (n,)
        Labels; the larger one is the event.

    Returns
    -------
    fits : CurveFits
        The `curve` with the lowest AIC, a `GlmCurve`, and the `table` of all candidates
        in increasing order of AIC. The candidates have the link and transform
        logit-logit, log-log, logflip-logflip or logit-logflip, each with only a slope
        (``_b1``) or with intercept and slope (``_b0_b1``); a further candidate is a
        constant (``constant_b0``, the same for every link). Each entry has a `name` (as
        in "logit_log_b0_b1"), `curve`, `n_parameters` (number of free coefficients),
        `log_likelihood` and `aic`.

    Raises
    ------
    ValueError
        If the scores are not numbers in [0, 1] or are all the same, or if `y` does not
        contain exactly two labels.

    See Also
    --------
    skcalib.simulation.fit_score_distribution : Fits a Beta distribution to scores.
    skcalib.simulation.CalibrationModel : Scores and labels with a known error.

    Notes
    -----
    The links log and logflip keep the event probability within [0, 1] only if the
    linear predictor is at most 0. The fit is therefore parametrised by the values of
    the predictor at the smallest and the largest score, each of which is at most 0. The
    log-likelihood is concave in these values and has a single maximum.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer (2022), Mitigating bias in calibration error
    estimation, Table 2.

    Examples
    --------
    >>> from scipy import stats
    >>> from skcalib.simulation import CalibrationModel, GlmCurve, fit_calibration_curve
    >>> model = CalibrationModel(stats.uniform(), GlmCurve("log", "log", -0.3, 1.5))
    >>> fits = fit_calibration_curve(*model.sample(20_000, random_state=0))
    >>> fits.table[0].name
    'log_log_b0_b1'
    >>> round(fits.curve.intercept, 1), round(fits.curve.slope, 1)
    (-0.3, 1.5)
    """
    checked, _, _ = check_score_column(
        scores, labels=None, sample_weight=None, labels_name="y"
    )
    scores = clip_probability(checked)
    y, _ = as_array(y)
    if y.shape != scores.shape:
        raise ValueError(
            f"y must have shape {scores.shape}, one label per score, found {y.shape}."
        )
    _, codes = encode_labels(
        y, n_columns=1, classes=None, name="y", classes_name="labels"
    )
    if codes.min() == codes.max():
        raise ValueError("y has only one label: a calibration curve needs both.")
    if scores.min() == scores.max():
        raise ValueError(
            "scores must not all be equal: no curve can be fitted if all are"
            f" {scores[0]:g}."
        )
    labels = codes == 1
    table = [_constant_fit(labels)]
    for (link, transform), free in product(_CANDIDATES, ("b1", "b0_b1")):
        table.append(_fit_candidate(scores, labels, link, transform, free))
    table.sort(key=lambda fit: fit.aic)
    return CurveFits(table[0].curve, table)


def _fit_candidate(scores, labels, link, transform, free):
    """Return the `CurveFit` of a generalised linear model of boolean labels and scores
    (n,) strictly inside (0, 1), by maximum likelihood.

    Its parameters in the search are the linear predictor at the lowest and at the
    highest transformed score, or at one of them if the slope alone is `free` ("b1"
    instead of "b0_b1"): bounds on these bound the predictor at every score. `link` and
    `transform` are scales of `GlmCurve`.
    """
    log_score = np.log(scores)
    log_complement = np.log1p(-scores)
    if transform == "log":
        values = log_score
    elif transform == "logflip":
        values = log_complement
    else:
        values = log_score - log_complement
    low = values.min()
    high = values.max()
    # 1. The predictor is parameters @ basis, (n_parameters, n) with entries that are
    # not negative; (intercept, slope) is to_coefficients @ parameters.
    if free == "b0_b1":
        # The line with the values `first` at `low` and `second` at `high`. Its slope is
        # (second - first) / (high - low), and at 0, the intercept, it has the value
        # (high * first - low * second) / (high - low).
        basis = np.stack((high - values, values - low)) / (high - low)
        to_coefficients = np.array([[high, -low], [-1, 1]]) / (high - low)
    else:
        # The line through the origin; the parameter is its value at the end that is
        # farther from 0. The basis is not negative where a bound is needed: logarithms
        # of probabilities have one sign.
        end = high
        if abs(low) > abs(high):
            end = low
        basis = values[None] / end
        to_coefficients = np.array([[0.0], [1 / end]])
    # 2. The search. A predictor that is the logarithm of a probability cannot be
    # positive.
    upper = 0.0
    if link == "logit":
        upper = None
    found = minimize(
        _negative_log_likelihood,
        np.full(len(basis), -1.0),  # a start within all bounds
        (basis, labels, link),
        method="L-BFGS-B",
        jac=True,
        bounds=[(None, upper)] * len(basis),
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000},
    )
    intercept, slope = (to_coefficients @ found.x).tolist()
    curve = GlmCurve(link, transform, intercept, slope)
    log_likelihood = -found.fun * len(labels)
    return _curve_fit(f"{link}_{transform}_{free}", curve, len(basis), log_likelihood)


def _constant_fit(labels):
    """Return the `CurveFit` of a constant event probability, for boolean labels
    (n,).
    """
    frequency = labels.mean()
    log_likelihood = len(labels) * (
        frequency * np.log(frequency) + (1 - frequency) * np.log1p(-frequency)
    )
    log_odds = float(np.log(frequency / (1 - frequency)))
    curve = GlmCurve("logit", "logit", intercept=log_odds, slope=0.0)
    return _curve_fit(
        "constant_b0", curve, n_parameters=1, log_likelihood=log_likelihood
    )


def _curve_fit(name, curve, n_parameters, log_likelihood):
    """Return the `CurveFit` of a curve, with its AIC."""
    aic = 2 * n_parameters - 2 * log_likelihood
    return CurveFit(name, curve, n_parameters, float(log_likelihood), float(aic))


def _negative_log_likelihood(parameters, basis, labels, link):
    """Return the mean negative log-likelihood, and its gradient in the parameters.

    The linear predictor ``parameters @ basis`` is the log-odds of the event for the
    link "logit", the logarithm of P(1) for "log" and that of P(0) for "logflip".
    """
    predictor = parameters @ basis
    if link == "logit":
        loss = np.logaddexp(0, predictor) - labels * predictor
        slope = expit(predictor) - labels  # derivative of the loss of each row
        return loss.mean(), basis @ slope / len(labels)
    # Whether the label is the one whose log-probability is the predictor; the other
    # label has the probability 1 - exp(predictor).
    is_predicted = labels
    if link == "logflip":
        is_predicted = ~labels
    # Kept below 0, where the other label would have probability 0.
    predictor = np.minimum(predictor, -(2.0**-52))
    other_probability = -np.expm1(predictor)
    loss = -np.where(is_predicted, predictor, np.log(other_probability))
    slope = np.where(is_predicted, -1.0, np.exp(predictor) / other_probability)
    return loss.mean(), basis @ slope / len(labels)


def _log_lower_tail(a, b, x):
    """Return log P(S <= x) of Beta(a, b) for a small x, where the probability may
    underflow: x^a / (a B(a, b)) times 2F1(a, 1 - b; a + 1; x).
    """
    log_leading_term = a * np.log(x) - np.log(a) - betaln(a, b)
    return log_leading_term + np.log(hyp2f1(a, 1 - b, a + 1, x))


def _moment_start(scores):
    """Return the parameters (a, b) of the Beta distribution with the scores' mean and
    variance as a start, kept away from 0.
    """
    mean = np.clip(scores.mean(), 1e-3, 1 - 1e-3)
    variance = max(scores.var(), 1e-12)
    # The variance of Beta(a, b) is mean (1 - mean) / (a + b + 1).
    total = max(mean * (1 - mean) / variance - 1, 0.05)  # a + b
    return np.array([mean * total, (1 - mean) * total])
