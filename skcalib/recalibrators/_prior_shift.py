"""Prior shift: the same forecasts for a population in which the classes have other
frequencies.
"""

from __future__ import annotations

from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, ndtri

from skcalib._input.scalars import as_numbers, invalid
from skcalib._input.scores import check_sample_weight, check_scores, drop_zero_weight
from skcalib._input.sklearn_private import Interval, StrOptions
from skcalib._intervals.one_probability.samples import LimitsMaker
from skcalib._rows.blocks import weights_or_ones
from skcalib._rows.links import clip_probability, row_softmax
from skcalib._solvers.mixture import fit_mixture_weights
from skcalib.maps import Scaled, class_probabilities
from skcalib.maps.checks import weights
from skcalib.recalibrators._logit import LogitRecalibrator

_ROUNDING = 1e-6  # frequencies sum to 1 up to it
_LEVEL = 0.9  # of an interval that does not know its own
_MOST_STEPS = 100
_SETTLED = 1e-18  # twice the gain in log-likelihood per row of a last step
_NO_CURVATURE = 1e-12  # added to the curvature, so that it can be inverted
# A step is short enough if the slope at its end is above this share of minus the slope
# at its start.
_FALLS = 0.25


class PriorShift(LogitRecalibrator):
    """Correction for class frequencies that differ between training and deployment.

    Use this correction for models trained on resampled or class-weighted data. Each
    probability is multiplied by the ratio of the target frequency to the training
    frequency of its class, and the probabilities of each sample are renormalised. The
    correction is exact if the feature distribution within each class is the same in
    both populations, that is, if only the class frequencies differ. A prior that is
    None is estimated from the labels given to `fit`. If both are None, the target
    frequencies come from the labels, and the training frequencies are estimated by
    maximum likelihood. The mean probability of each class then equals its frequency in
    the labels. With `target_mean`, the mean probability of the event equals that number
    instead, and labels only name the classes.

    Parameters
    ----------
    train_prior : array-like, dict, float or "balanced", default=None
        Class frequencies of the training data: an array in the order of the sorted
        classes, a dict that maps labels to frequencies, the frequency of the positive
        class if there are two classes, or "balanced" for equal frequencies, as produced
        by ``class_weight="balanced"``.
    target_prior : array-like, dict, float or "balanced", default=None
        Class frequencies in deployment, in the same format; see `estimate_target_prior`
        for unlabelled data.
    target_mean : float or (estimate, low, high), default=None
        Mean of the event's probability over the samples of the fit, in (0, 1), in place
        of both priors and for two classes: a long-run frequency from elsewhere. An
        interval, such as `skcalib.evaluation.mean_interval` returns, gives
        `predict_interval` its limits. One without a level has the level .9.
    input : {"probability", "logit"}, default="probability"
        Scale of the scores. A single column of logits is the log-odds of the positive
        class.
    classes : array-like, default=None
        Labels of the columns; required if a class is missing from the calibration set.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    provenance_ : dict
        Provenance of the fit: method, parameters, number of samples, events per class,
        versions, and a hash of the samples.
    train_prior_, target_prior_ : ndarray of shape (n_classes,)
        The class frequencies used.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range.

    See Also
    --------
    estimate_target_prior : Estimates class frequencies from unlabelled scores.

    References
    ----------
    Saerens, Latinne and Decaestecker (2002), Adjusting the outputs of a classifier to
    new a priori probabilities.

    Examples
    --------
    A model that was trained on equal numbers of frauds and other payments predicts 1/2.
    In deployment, one payment in a thousand is a fraud. Both frequencies are given, so
    `fit` learns only the classes:

    >>> from skcalib import PriorShift
    >>> shift = PriorShift(train_prior="balanced", target_prior=0.001).fit(
    ...     [0.3, 0.6], [0, 1]
    ... )
    >>> shift.predict_proba([0.5]).round(6).tolist()
    [[0.999, 0.001]]

    Probabilities of default for three loans are shifted to the long-run frequency of
    defaults, 2% with limits from 1.5% to 2.6%:

    >>> pd = [0.01, 0.03, 0.11]
    >>> central = PriorShift(target_mean=(0.02, 0.015, 0.026)).fit(pd, [0, 0, 1])
    >>> central.predict_proba(pd)[:, 1].round(3).tolist()
    [0.004, 0.012, 0.045]
    >>> central.predict_interval([0.11]).round(3).tolist()
    [[0.034, 0.058]]
    """

    _parameter_constraints = {
        **LogitRecalibrator._parameter_constraints,
        "train_prior": [
            "array-like",
            dict,
            Interval(Real, 0, 1, closed="both"),
            StrOptions({"balanced"}),
            None,
        ],
        "target_prior": [
            "array-like",
            dict,
            Interval(Real, 0, 1, closed="both"),
            StrOptions({"balanced"}),
            None,
        ],
        "target_mean": [Interval(Real, 0, 1, closed="neither"), "array-like", None],
    }

    _attributes = {"train_prior_": weights, "target_prior_": weights}

    train_prior_: np.ndarray
    target_prior_: np.ndarray

    def __init__(
        self,
        train_prior: ArrayLike | dict | None = None,
        target_prior: ArrayLike | dict | None = None,
        *,
        target_mean: float | ArrayLike | None = None,
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.train_prior = train_prior
        self.target_prior = target_prior
        self.target_mean = target_mean
        self.input = input
        self.classes = classes

    @property
    def _needs_classes(self):
        """Which classes must occur in the rows of a fit: "all", any "two", or "any"."""
        # If one prior is given, the other one is the frequencies of the labels, which
        # must not be 0.
        is_one_given = (self.train_prior is None) != (self.target_prior is None)
        if is_one_given:
            return "all"
        return "any"

    def _fit_logits(self, logits, codes, sample_weight):
        """Set the class frequencies in training and in the target population. If
        neither is given, the target's are the observed frequencies, and those in
        training are such that the mean probabilities equal the target's.
        """
        if self.target_mean is not None:
            return self._fit_mean(logits, sample_weight)
        counts = np.bincount(codes, sample_weight, minlength=len(self.classes_))
        if self.train_prior is None and self.target_prior is None:
            weight = weights_or_ones(sample_weight, len(logits))
            # One more row, which is divided among the classes as the mean forecast is,
            # keeps the intercepts of classes without rows finite.
            mean_forecast = np.average(row_softmax(logits), axis=0, weights=weight)
            target = (counts + mean_forecast) / (1 + counts.sum())
            self._set_shift(target, _intercepts(logits, target, weight))
            return None
        self.train_prior_ = _prior(
            self.train_prior, self.classes_, counts, "train_prior"
        )
        self.target_prior_ = _prior(
            self.target_prior, self.classes_, counts, "target_prior"
        )
        return None

    def _fit_mean(self, logits, sample_weight):
        """Set the class frequencies that give the event, by logits (n, 2), the mean
        probability `target_mean`; return the `LimitsMaker`, or None if the target has
        no limits.
        """
        if self.train_prior is not None or self.target_prior is not None:
            raise ValueError(
                "target_mean replaces both priors: omit train_prior and target_prior."
            )
        if len(self.classes_) > 2:
            raise ValueError(
                f"target_mean is for two classes, found {len(self.classes_)}. Use"
                " target_prior."
            )
        means = _mean_and_limits(self.target_mean)
        weight = weights_or_ones(sample_weight, len(logits))
        shifts = []
        # In reverse order: the estimate comes last, so that `target` and `intercepts`
        # are those of the estimate after the loop.
        for mean in means[::-1]:
            target = np.array([1 - mean, mean])
            intercepts = _intercepts(logits, target, weight)
            shifts.append(float(intercepts[1] - intercepts[0]))
        self._set_shift(target, intercepts)
        if len(means) == 1:
            return None
        high, low, shift = shifts
        level = getattr(self.target_mean, "confidence_level", None) or _LEVEL
        state = {
            "kind": "shift",
            "below": shift - low,
            "above": high - shift,
            "level": float(level),
            "events": np.inf,
        }
        return LimitsMaker(lambda samples: state, dict)  # needs no samples

    def _set_shift(self, target, intercepts):
        """Set the class frequencies from those of the target (n_classes,) and the
        intercepts (n_classes,) that lead to them.
        """
        self.target_prior_ = target
        # The intercepts are log(target / train) up to a constant.
        train = target * np.exp(-intercepts)
        self.train_prior_ = train / train.sum()

    def _why_no_limits(self):
        if self._has_limits():
            return ""
        return "it has limits only with target_mean=(estimate, low, high)"

    def _limits_at(self, level):
        # `fit` stored the distances "below" and "above" from the shift of the log-odds
        # to the shifts for the limits of `target_mean`, and the "level" of these. At
        # another level, distances are in proportion to normal quantiles.
        state = self._limits.state
        ratio = ndtri((1 + level) / 2) / ndtri((1 + state["level"]) / 2)

        def limits_at(scores, probabilities):
            """Return the lower and upper limits (n,) of the probabilities (n, 2)."""
            log_odds = logit(probabilities[:, 1])
            low = expit(log_odds - ratio * state["below"])
            return low, expit(log_odds + ratio * state["above"])

        return limits_at

    def _map(self, logits):
        """Return the node of the probabilities from that of the logits."""
        # a class that the target population lacks has a finite logarithm, far below
        target = np.maximum(self.target_prior_, np.finfo(np.float64).tiny)
        log_ratios = np.log(target) - np.log(self.train_prior_)  # (n_classes,)
        return class_probabilities(Scaled(logits, 1.0, log_ratios))


def _mean_and_limits(target_mean):
    """Return the entries of the parameter `target_mean`, (1,) or (3,): the mean, and
    its limits if they were given.
    """
    values = np.atleast_1d(as_numbers(target_mean, "target_mean"))
    if values.shape == (3,):
        mean, low, high = values
        is_valid = 0 < low <= mean <= high < 1
    else:
        is_valid = values.shape == (1,) and 0 < values[0] < 1
    if not is_valid:
        raise ValueError(
            "target_mean must be a number between 0 and 1, or (estimate, low, high) in"
            f" this range with low <= estimate <= high, found {target_mean!r}."
        )
    return values


def _intercepts(logits, target, weight):
    """Return intercepts (K,) for which the mean of ``softmax(logits + intercepts)``
    over rows with weights (n,) equals the class frequencies `target` (K,), by Newton's
    method.
    """
    share = weight / weight.sum()
    n_classes = logits.shape[1]
    intercepts = np.zeros(n_classes)
    probability = row_softmax(logits)
    # The mean log-likelihood of a multinomial regression with intercepts alone is
    # concave. Its gradient is the target less the mean probability, and its curvature
    # the mean of diag(p) - p p'.
    for _ in range(_MOST_STEPS):
        mean = share @ probability
        gradient = target - mean
        curvature = np.diag(mean + _NO_CURVATURE)
        curvature -= (probability.T * share) @ probability
        # A constant added to all intercepts changes nothing: curvature is added in that
        # direction, and the step has none of it.
        curvature += 1 / n_classes
        step = np.linalg.solve(curvature, gradient)
        slope = gradient @ step
        if slope < _SETTLED:  # nothing more to gain
            break
        # The step is halved until the log-likelihood, at its end, still rises along the
        # step or falls by little: it is then not too long.
        while True:
            probability = row_softmax(logits + (intercepts + step))
            slope_at_end = (target - share @ probability) @ step
            if slope_at_end >= -_FALLS * (gradient @ step):
                break
            step = step / 2
        intercepts = intercepts + step
    return intercepts


def estimate_target_prior(
    y_proba: ArrayLike,
    train_prior: ArrayLike | Literal["balanced"] = "balanced",
    *,
    sample_weight: ArrayLike | None = None,
) -> np.ndarray:
    """Estimate class frequencies from unlabelled scores by maximum likelihood.

    Use this function for a population in which the features have the same distribution
    within each class as in training, but the class frequencies differ. The scores must
    be calibrated for the training frequencies: any miscalibration biases the estimate.

    Parameters
    ----------
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities of unlabelled samples; one column is the probability of the
        positive class.
    train_prior : array-like of shape (K,), float or "balanced", default="balanced"
        Class frequencies of the training data: an array in the order of the columns,
        the frequency of the positive class if there are two classes, or "balanced" for
        equal frequencies. Unlike in `PriorShift.fit`, the frequencies cannot be
        estimated, because no labels are given.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights: a sample with weight 2 counts twice.

    Returns
    -------
    target_prior : ndarray of shape (K,)
        The estimated frequencies, which sum to 1 and can be passed to `PriorShift`.

    Raises
    ------
    ValueError
        If scores are not probabilities, or if the frequencies do not match their
        columns.

    See Also
    --------
    skcalib.PriorShift : Corrects for different class frequencies.

    Notes
    -----
    The likelihood is maximised by a second-order method; its maximum is the limit of
    the expectation-maximisation algorithm of [1]_.

    References
    ----------
    .. [1] Saerens, Latinne and Decaestecker (2002), Adjusting the outputs of a
        classifier to new a priori probabilities.

    Examples
    --------
    A model that was trained on equal class frequencies is applied to unlabelled
    samples, of which a tenth are events.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib import estimate_target_prior
    >>> rng = np.random.default_rng(0)
    >>> is_event = rng.random(5000) < 0.1
    >>> y_proba = expit(2 * rng.normal(np.where(is_event, 1, -1)))
    >>> bool(y_proba.mean() > 0.2)
    True
    >>> estimate_target_prior(y_proba).round(2).tolist()
    [0.89, 0.11]
    """
    scores = check_scores(y_proba, name="y_proba")
    weight = check_sample_weight(sample_weight, len(scores))
    if scores.shape[1] == 1:
        scores = np.column_stack((1 - scores[:, 0], scores[:, 0]))
    scores, weight = drop_zero_weight(weight, scores)
    n_classes = scores.shape[1]
    train_prior = _prior(
        train_prior, np.arange(n_classes), np.ones(n_classes), "train_prior"
    )
    # p(x | k) is in proportion to p(k | x) / train: the prior is what mixes these
    # densities best.
    return fit_mixture_weights(clip_probability(scores) / train_prior, weight)


def _prior(prior, classes, counts, name):
    """Return validated class frequencies (n_classes,).

    `prior` is None for the frequencies of the `counts`, "balanced", a dict with the
    labels in `classes` as keys, an array in their order, or for two classes the
    frequency of the second one.
    """
    if prior is None:
        return counts / counts.sum()
    if isinstance(prior, str):
        if prior != "balanced":
            raise invalid(name, "frequencies, a dict of them or 'balanced'", prior)
        return np.full(len(classes), 1 / len(classes))
    if isinstance(prior, dict):
        if set(prior) != set(classes.tolist()):
            raise ValueError(
                f"{name} must have the labels {classes.tolist()} as keys, found"
                f" {list(prior)}."
            )
        prior = [prior[label] for label in classes.tolist()]
    values = as_numbers(prior, name)
    if values.ndim == 0 and len(classes) == 2:
        # A single number is the frequency of the second class.
        values = np.array([1 - values, values])
    if values.shape != classes.shape:
        raise ValueError(
            f"{name} must contain one frequency for each of {len(classes)} classes,"
            f" found {prior!r}."
        )
    if not np.all(values >= 0) or abs(values.sum() - 1) > _ROUNDING:
        raise ValueError(
            f"{name} must contain non-negative frequencies that sum to 1, found"
            f" {prior!r}."
        )
    if name == "train_prior" and not values.all():
        label = classes[values == 0].tolist()[0]
        raise ValueError(
            f"train_prior is 0 for the class {label!r}: the model cannot have"
            " learned it."
        )
    return values / values.sum()
