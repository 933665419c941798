"""Temperature scaling: one number that divides the logits; and its mixture with the
forecast and the uniform one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from skcalib._fitting.side_features import SideFeatures
from skcalib._input.sklearn_private import StrOptions
from skcalib._input.tensors import as_array, like, namespace_of, widest_dtype
from skcalib._intervals.one_probability.regression import regression
from skcalib._intervals.one_probability.samples import Samples, limits_of_rows
from skcalib._intervals.one_probability.softmax import softmax
from skcalib._intervals.one_probability.softmax_designs import OneFactor
from skcalib._intervals.one_probability.states import LIMITS
from skcalib._rows.links import PROBABILITY_CLIP, row_softmax
from skcalib._rows.namespaces import clipped, row_exponentials, row_shares
from skcalib._solvers.mixture import fit_mixture_weights
from skcalib._solvers.sums import (
    blocks_of,
    cast,
    chosen,
    log_sum_exp,
    true_entries,
    working_dtype,
)
from skcalib._solvers.temperature import fit_brier_temperature, fit_inverse_temperature
from skcalib.maps import (
    Affine,
    Exp,
    Mixture,
    Scaled,
    Times,
    class_probabilities,
    clipped_probability,
    normalized_rows,
)
from skcalib.maps.checks import positive, weights
from skcalib.recalibrators._clipping import ClippedRecalibrator
from skcalib.recalibrators._features import FeatureRecalibrator
from skcalib.recalibrators._logit import LogitRecalibrator

_GRID_ROWS = 20_000  # on which a callable is tried at every point of a grid
_FEW_STEPS = 6  # of the search on all rows then


class TemperatureScaling(FeatureRecalibrator, ClippedRecalibrator, LogitRecalibrator):
    """Temperature scaling: ``softmax(logits / temperature)``.

    Parameters
    ----------
    loss : {"log", "brier"} or callable, default="log"
        Loss to minimise. Log-loss is convex in the inverse temperature, which is found
        by bracketed Halley steps to a relative accuracy of 1e-8. The Brier score may
        have several minima; Newton's method starts from the minima on a grid, and the
        smallest result is used. A metric ``loss(y_true, y_proba)`` (smaller values are
        better; `sample_weight` is passed on if given) is minimised first on a grid,
        over at most 40,000 samples, and then by Brent's method (Algorithm 1 of [2]_).
    features : str, int or list of these, default=None
        Columns of `X`, by name or position, on which the logarithm of the temperature
        depends linearly, such as the length of a text. The other columns are the
        scores. Features are numbers without missing values, and require ``loss="log"``.
        Their coefficients have a ridge penalty, on the scale of standardised features.
        They are means over ten strengths, weighted by the marginal likelihood; if it is
        largest for an infinite one, the features are left out. With 200 samples of two
        classes, ten useless features cost .0015 nats.
    clip : "auto", float or None, default="auto"
        How probabilities are kept away from 0 and 1 before conversion to log-odds.
        "auto" learns a floor f: a probability p becomes
        ``(1 - n_classes * f) * p + f``, which preserves the order of the scores. f is 0
        unless a larger value, up to .1, improves the log-likelihood by more than half a
        nat. With a number, probabilities are clipped to [clip, 1 - clip]; with None, to
        [2^-52, 1 - 2^-52].
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
    clip_ : float
        The learned floor, or the clipping constant.
    floor_ : float
        The learned floor; 0 if there is none.
    temperature_ : float
        Divisor of the logits after the floor is applied. Without a floor (`floor_` is
        0), this is the temperature of Guo et al. [1]_, which is above 1 for an
        overconfident model, even with two classes.
    inverse_temperature_ : float
        ``1 / temperature_``.
    plain_temperature_ : float
        The temperature of Guo et al. without a floor, that is, for the given logits,
        with probabilities clipped only to 2^-52.
    feature_coef_ : ndarray of shape (n_features,)
        Change of the logarithm of the temperature per unit of each feature. This
        attribute and the next two exist only if `features` is given.
    feature_mean_ : ndarray of shape (n_features,)
        Mean of each feature, at which the temperature is `temperature_`.
    feature_penalty_ : float
        The strength of the ridge penalty with the largest marginal likelihood; infinity
        if the features are left out.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range.

    See Also
    --------
    skcalib.ClasswiseTemperatureScaling : One temperature per predicted class.
    skcalib.EnsembleTemperatureScaling : A mixture of three maps, one of which has a
        temperature.
    skcalib.VectorScaling : A slope and an intercept for each class.

    Notes
    -----
    The inverse temperature is always positive, so decisions never change. If every
    sample were classified correctly, the inverse temperature would be infinite, and so
    would the loss of the first misclassified sample. The fit then minimises the
    log-loss for Platt's targets, in which one additional sample of each class (for K >
    2, one sample in total) is misclassified. For a model that is always wrong, the
    inverse temperature would be negative; the fit stops at a bound, which is a
    millionth of the value at which the logits span a range of 1.

    References
    ----------
    .. [1] Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural
        networks.
    .. [2] Zhao, Chen and Oymak (2020), On the role of dataset quality and heterogeneity
        in model confidence.

    Examples
    --------
    A model with log-odds of 2 log(3) is right in 3 of 4 cases. The temperature 2
    reduces its probability from 9/10 to 3/4.

    >>> import numpy as np
    >>> from skcalib import TemperatureScaling
    >>> log_odds = np.full(4, 2 * np.log(3))
    >>> round(
    ...     TemperatureScaling(input="logit").fit(log_odds, [1, 1, 1, 0]).temperature_,
    ...     6,
    ... )
    2.0
    """

    _parameter_constraints = {
        **FeatureRecalibrator._parameter_constraints,
        **ClippedRecalibrator._parameter_constraints,
        **LogitRecalibrator._parameter_constraints,
        "loss": [StrOptions({"log", "brier"}), callable],
    }

    _fits_tensors = True
    _keeps_decisions = True
    _leaves_impossible_out = True
    _needs_classes = "two"
    _takes_shortcuts = True

    _attributes = {
        **ClippedRecalibrator._attributes,
        "inverse_temperature_": positive,
        "temperature_": positive,
    }

    temperature_: float
    inverse_temperature_: float
    plain_temperature_: float

    def __init__(
        self,
        *,
        loss: Literal["log", "brier"] | Callable[..., float] = "log",
        features: str | int | Sequence[str | int] | None = None,
        clip: float | Literal["auto"] | None = "auto",
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.loss = loss
        self.features = features
        self.clip = clip
        self.input = input
        self.classes = classes

    def _fit_scores(self, scores, codes, sample_weight, shortcuts=None):
        """Fit to validated scores (n, C); return the `LimitsMaker`. If `clip` changes
        them, a second fit to the unclipped scores sets `plain_temperature_`, that of
        the model's own logits.
        """
        limits = super()._fit_scores(scores, codes, sample_weight, shortcuts)
        self.plain_temperature_ = self.temperature_
        is_clipped = self.clip_ not in (0, PROBABILITY_CLIP)
        is_needed = shortcuts is None or not shortcuts.only_forecasts
        if is_clipped and is_needed:
            if isinstance(codes, np.ndarray):
                codes = codes.astype(np.intp, copy=False)
            logits = self._logits(scores)
            # Both temperatures are often close, so that few steps are needed.
            inverse = self._inverse_temperature(
                logits, codes, sample_weight, start=self.inverse_temperature_
            )
            self.plain_temperature_ = float(1 / inverse)
        return limits

    def _check_features_allowed(self):
        if self.loss != "log":
            raise ValueError(f"features require loss='log', found loss={self.loss!r}.")

    def _fit_with_features(self, scores, codes, sample_weight, features):
        """Fit a temperature without features (n, d) first, to scores (n, C) of rows
        whose labels have the columns `codes` (n,), then how its logarithm depends on
        the features; return the `LimitsMaker`.
        """
        maker = self._fit_scores(scores, codes, sample_weight)
        logits = self._logits(self._clipped(scores)).astype(np.float64, copy=False)
        side_features = SideFeatures.of(features, sample_weight)
        log_factor, coef, strength = side_features.fit_log_factor(
            logits * self.inverse_temperature_, codes, sample_weight
        )
        self.inverse_temperature_ *= float(np.exp(log_factor))
        self.temperature_ = 1 / self.inverse_temperature_
        # `coef` belongs to the factor of the logits. The temperature divides logits, so
        # that its coefficients have the opposite sign.
        self._set_features(side_features, -coef, strength)
        if not self._keeps_features:
            return maker
        n_classes = logits.shape[1]

        def design_of(columns):
            """Return how calibrated logits depend on the parameters, for columns (n, K
            + d): logits and standardised features.
            """
            logits, side = np.split(columns, [n_classes], axis=1)
            return self._design(logits, side, coef)

        def probabilities_of(columns):
            """Return the calibrated probabilities (n, K) of the same columns."""
            design = design_of(columns)
            is_possible = columns[:, :n_classes] > -np.inf
            return row_softmax(np.where(is_possible, design.scaled, -np.inf))

        maker = softmax(design_of, probabilities_of, self._limits_ridge(1))
        columns = np.hstack((logits, side_features.values))
        return limits_of_rows(
            self._in_given_units(maker, side_features), (columns, codes, sample_weight)
        )

    def _fit_logits(self, logits, codes, sample_weight, shortcuts=None):
        """Set the temperature of least loss for logits (n, K); return the
        `LimitsMaker`.
        """
        start = None
        if shortcuts is not None and shortcuts.near_fit is not None:
            start = shortcuts.near_fit.inverse_temperature_
        inverse = self._inverse_temperature(logits, codes, sample_weight, start=start)
        self.inverse_temperature_ = float(inverse)
        self.temperature_ = float(1 / inverse)
        if logits.shape[1] == 2:
            # Limits of a logistic regression, whose only feature is the log-odds: the
            # difference of the two logits.
            maker = regression(np.atleast_2d, [self.inverse_temperature_])
            # It takes log-odds: those of the two logits are passed on.
            return maker._replace(keep=partial(_kept_of_two_logits, maker.keep))
        return softmax(self._limits_design, self._limits_probabilities)

    def _limits_at(self, level):
        if len(self.classes_) > 2 or self._keeps_features:
            return super()._limits_at(level)
        limits_of = LIMITS["regression"](self._limits.state, level)

        def limits_at(scores, probabilities, **columns):
            """Return the lower and upper limits (n,) at scores (n, C), two classes."""
            logits = self._new_logits(scores)
            log_odds = np.diff(logits.T, axis=0)  # (1, n), the only feature
            return limits_of(log_odds)

        return limits_at

    def _limits_design(self, logits, features=None):
        """Return how calibrated logits depend on the logarithm of the factor of logits
        (n, K), and with features (n, n_features) on their coefficients.
        """
        side = self._centred(features, len(logits))
        coef = -self.feature_coef_ if side.size else np.empty(0)
        return self._design(logits, side, coef)

    def _design(self, logits, side, coef):
        """Return the design of logits (n, K) whose factor depends on deviations (n, d)
        of features, with coefficients (d,).
        """
        factor = self.inverse_temperature_ * np.exp(side @ coef)
        scaled = np.where(logits > -np.inf, logits, 0.0) * factor[:, None]
        return OneFactor(scaled, np.column_stack((np.ones(len(side)), side)))

    def _limits_probabilities(self, logits):
        """Return the probabilities (n, K) of logits (n, K)."""
        return row_softmax(self.inverse_temperature_ * logits)

    def _inverse_temperature(self, logits, codes, sample_weight, start):
        """Return the inverse temperature of least log-loss, Brier score or loss of the
        user, from `start` or the optimum of a sample.
        """
        if self.loss == "brier":
            return fit_brier_temperature(logits, codes, sample_weight)
        of_log_loss = fit_inverse_temperature(logits, codes, sample_weight, start=start)
        if callable(self.loss):
            return self._minimise_user_loss(
                logits, codes, sample_weight, around=of_log_loss
            )
        return of_log_loss

    def _map(self, logits):
        """Return the node of the probabilities from that of the logits."""
        scaled = Scaled(logits, self.inverse_temperature_)
        if self.features is not None:
            # The factor of each row is exp(feature_coef_ @ (feature_mean_ - features)).
            shift = float(self.feature_coef_ @ self.feature_mean_)
            log_factor = Affine(
                self._features_node(), -self.feature_coef_[None], np.array([shift])
            )
            scaled = Times(scaled, Exp(log_factor))
        return class_probabilities(scaled)

    def _check_attributes(self):
        """Raise a ValueError unless the fitted attributes, which were read from a JSON
        document, are consistent with each other.
        """
        super()._check_attributes()
        if abs(self.temperature_ * self.inverse_temperature_ - 1) > 1e-6:
            raise ValueError("inverse_temperature_ must be 1 / temperature_")

    def _minimise_user_loss(self, logits, codes, sample_weight, around):
        """Return the inverse temperature of the user's least loss, within a factor of
        30 of `around`: the best point of a grid, on a sample if there are many rows,
        then refined on all rows between its neighbours.
        """
        step = max(logits.shape[0] // _GRID_ROWS, 1)
        sample = slice(None, None, step)
        on_sample = self._objective(
            chosen(logits, sample), codes[sample], chosen(sample_weight, sample)
        )
        # Logarithms of inverse temperatures, from a 30th to 30 times that of `around`,
        # which is in the middle.
        grid = np.log(around) + np.linspace(-np.log(30), np.log(30), 61)
        middle = len(grid) // 2
        values = [on_sample(point) for point in grid]
        lowest = np.flatnonzero(values == np.min(values))
        # Of several lowest points, take the one nearest to `around`.
        best = lowest[np.argmin(np.abs(lowest - middle))]
        bounds = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
        if step == 1:
            objective = on_sample
            at_best = values[best]
            options = {"xatol": 1e-10}
        else:
            objective = self._objective(logits, codes, sample_weight)
            at_best = objective(grid[best])
            options = {"xatol": 1e-4, "maxiter": _FEW_STEPS}
        refined = minimize_scalar(objective, bounds=bounds, options=options)
        if refined.fun < at_best:
            return np.exp(refined.x)
        return np.exp(grid[best])

    def _labels(self, codes):
        """Return the labels (n,) of class codes (n,) as the user gave them: as a tensor
        if they were one.
        """
        if not getattr(self, "_has_label_tensor", False):
            return self.classes_[as_array(codes)[0]]
        classes = like(codes, self.classes_)
        return namespace_of(codes).take(classes, codes, axis=0)

    def _objective(self, logits, codes, sample_weight):
        """Return the user's loss on these rows, with logits (n, K) and labels in the
        columns `codes` (n,), as a function of the logarithm of the inverse temperature.
        """
        y_true = self._labels(codes)
        # Weights are passed only if there are some: the loss may not take any.
        options = {}
        if sample_weight is not None:
            options["sample_weight"] = sample_weight

        def objective(log_inverse):
            """Return the user's loss at the logarithm of an inverse temperature."""
            y_proba = _softmax(logits, float(np.exp(log_inverse)))
            value = self.loss(y_true, y_proba, **options)
            if not isinstance(value, Real) or np.isnan(value):
                raise ValueError(
                    f"loss must return a number, found {value!r} at the temperature"
                    f" {np.exp(-log_inverse):.6g}."
                )
            return float(value)

        return objective


class EnsembleTemperatureScaling(TemperatureScaling):
    """Temperature scaling, mixed with the uncalibrated and uniform predictions.

    ``w1 softmax(logits / temperature) + w2 softmax(logits) + w3 / n_classes``.

    As with temperature scaling, predicted classes do not change. The third term
    reserves some probability for every class. The temperature is fitted first, by
    minimising the log-loss, and then the weights are fitted.

    Parameters
    ----------
    clip : "auto", float or None, default="auto"
        How probabilities are kept away from 0 and 1 before conversion to log-odds.
        "auto" learns a floor f: a probability p becomes
        ``(1 - n_classes * f) * p + f``, which preserves the order of the scores. f is 0
        unless a larger value, up to .1, improves the log-likelihood by more than half a
        nat. With a number, probabilities are clipped to [clip, 1 - clip]; with None, to
        [2^-52, 1 - 2^-52].
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
    clip_ : float
        The learned floor, or the clipping constant.
    floor_ : float
        The learned floor; 0 if there is none.
    temperature_ : float
        Temperature of the first term, for the logits after the floor is applied.
    inverse_temperature_ : float
        ``1 / temperature_``.
    plain_temperature_ : float
        The temperature for the given logits, without a floor.
    weights_ : ndarray of shape (3,)
        Weights of the temperature-scaled, the original and the uniform predictions,
        which sum to 1.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range.

    See Also
    --------
    skcalib.TemperatureScaling : One temperature for all logits.
    skcalib.StackedRecalibrator : A mixture of several recalibrators.

    References
    ----------
    Zhang, Kailkhura and Han (2020), Mix-n-Match: ensemble and compositional methods for
    uncertainty calibration in deep learning, Section 4.1.

    Examples
    --------
    A model whose predictions are all close to 0 or 1, a tenth of which are wrong:

    >>> import numpy as np
    >>> from skcalib import EnsembleTemperatureScaling
    >>> scores = np.repeat([0.001, 0.999], 100)
    >>> y = np.tile(np.arange(100) < 10, 2) ^ (scores > 0.5)
    >>> EnsembleTemperatureScaling().fit(scores, y).predict_proba([0.999]).round(
    ...     3
    ... ).tolist()
    [[0.1, 0.9]]
    """

    loss = "log"  # no parameter here
    _fits_tensors = True
    _takes_shortcuts = True
    _parameter_constraints = {
        **ClippedRecalibrator._parameter_constraints,
        **LogitRecalibrator._parameter_constraints,
    }

    _attributes = {**TemperatureScaling._attributes, "weights_": weights}

    weights_: np.ndarray

    def __init__(
        self,
        *,
        clip: float | Literal["auto"] | None = "auto",
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.clip = clip
        self.input = input
        self.classes = classes

    def _fit_logits(self, logits, codes, sample_weight, shortcuts=None):
        """Fit the temperature to logits (n, K), then the weights of the mixture."""
        super()._fit_logits(logits, codes, sample_weight, shortcuts)
        xp = namespace_of(logits)
        likelihoods = []
        for rows in blocks_of(logits, *logits.shape):
            z = cast(logits[rows, ...], working_dtype(logits))
            # The probability of each row's label, tempered, unchanged and uniform.
            tempered = self._label_likelihoods(
                z * self.inverse_temperature_, codes[rows]
            )
            unchanged = self._label_likelihoods(z, codes[rows])
            uniform = xp.full_like(unchanged, 1 / z.shape[1])
            likelihoods.append(xp.stack((tempered, unchanged, uniform), axis=1))
        self.weights_ = fit_mixture_weights(xp.concat(likelihoods), sample_weight)

    def _why_no_limits(self):
        return "the weights of its mixture vary with the samples, too"

    def _map(self, logits):
        """Return the map from logits to probabilities as a `skcalib.maps.Node`: the
        mixture of tempered, unchanged and uniform forecasts.
        """
        scaled_logits = Scaled(logits, self.inverse_temperature_)
        tempered = class_probabilities(scaled_logits, clip=False)
        unchanged = class_probabilities(logits, clip=False)
        tempered_weight, unchanged_weight, uniform_weight = self.weights_.tolist()
        mixture = Mixture(
            (tempered_weight, unchanged_weight),
            (tempered, unchanged),
            constant=uniform_weight / len(self.classes_),
        )
        # The probabilities are clipped before they become logits, and so is the softmax
        # of these.
        return clipped_probability(normalized_rows(clipped_probability(mixture)))

    @staticmethod
    def _label_likelihoods(logits, codes):
        """Return the probability of each row's label (n,) by logits (n, K)."""
        log_likelihood = true_entries(logits, codes) - log_sum_exp(logits, axis=1)
        likelihood = namespace_of(logits).exp(log_likelihood)
        return cast(likelihood, widest_dtype(likelihood))


def _softmax(logits, inverse_temperature):
    """Return the softmax (n, K) of logits times an inverse temperature, clipped to
    [2^-52, 1 - 2^-52], on the device of the logits.
    """
    if isinstance(logits, np.ndarray):
        return row_softmax(inverse_temperature * logits)
    likelihood = row_exponentials(namespace_of(logits), logits * inverse_temperature)
    shares = row_shares(namespace_of(logits), likelihood, logits.shape[1])
    return clipped(namespace_of(logits), shares)


def _kept_of_two_logits(keep, samples):
    """Return what is kept of `Samples` of two logits: of their log-odds."""
    logits, codes, *others = samples
    return keep(Samples(logits[:, 1] - logits[:, 0], codes == 1, *others))
