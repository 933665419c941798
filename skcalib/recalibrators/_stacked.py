"""Stacked recalibrators: a mixture of several, weighted by how well each predicts rows
that it has not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.base import BaseEstimator, clone

from skcalib._fitting.floor import learned_floor
from skcalib._fitting.folds import cross_validation_folds
from skcalib._fitting.gains import mean_gain, unfitted_reason
from skcalib._fitting.member_fits import StackFits, is_plain, member_node
from skcalib._fitting.wrapped import check_recalibrator, tell
from skcalib._inference.results import IntervalEstimate
from skcalib._input.annotations import CrossValidation
from skcalib._input.sklearn_private import Interval
from skcalib._intervals.one_probability.lazy import LazyLimits
from skcalib._intervals.one_probability.samples import LimitsMaker, widened_limits
from skcalib._progress import Progress
from skcalib._rows.blocks import taken, weights_or_ones
from skcalib._rows.links import log_probability, row_softmax
from skcalib._solvers.mixture import fit_mixture_weights
from skcalib._solvers.temperature import fit_inverse_temperature, row_derivatives
from skcalib.maps import Log, Mixture, Scaled, Softmax
from skcalib.maps.checks import (
    amounts,
    check_same_classes,
    estimate,
    numbers,
    positive,
    several,
    weights,
)
from skcalib.recalibrators._base import BaseRecalibrator
from skcalib.recalibrators._certified_mixin import forbid_certificates
from skcalib.recalibrators._matrix import DirichletCalibration
from skcalib.recalibrators._measured import MeasuredRecalibrator
from skcalib.recalibrators._spline import SplineCalibration
from skcalib.recalibrators._temperature import (
    EnsembleTemperatureScaling,
    TemperatureScaling,
)
from skcalib.recalibrators._uncalibrated import Uncalibrated
from skcalib.recalibrators._venn_abers import VennAbers

_LEVEL = 0.9
# Alphas of Dirichlet calibration among the default members for K > 2 classes.
_DIRICHLET_ALPHAS = (0.3, 0.03)
# For K > 2 classes: the share of the weights by tempered likelihood. The rest are the
# weights of the mixture of the greatest likelihood.
_TEMPERED_SHARE = 0.25
# Prior for a temperature of 1 of the mixture, in units of Fisher information on its
# logarithm.
_PRIOR_INFORMATION = 10.0
# Relative length of the last step to that temperature, which leaves about its cube.
_LAST_STEP = 1e-2
# Rows that the members are fitted to in a fold, of two classes and of more: others
# hardly change which of them predicts best.
_MOST_TRAIN_ROWS = (10_000, 20_000)
# A default member is fitted to the first fold alone where its forecasts lose there to
# those of the best member by so many standard errors,
_HOPELESS_STANDARD_ERRORS = 3.0
# its tempered weight is below this share of that of the best,
_HOPELESS_WEIGHT = 1e-3
# and, for K > 2 classes, its weight in the mixture of the greatest likelihood is below
# this one.
_HOPELESS_SHARE = 0.03


class StackedRecalibrator(MeasuredRecalibrator):
    """Mixture of recalibrators, weighted by cross-validated likelihood.

    No single recalibrator is best for every data set. Each member predicts samples that
    were not used to fit it. A member with a lower log-loss on these samples receives a
    larger weight; the members are then refitted to all samples. The uncalibrated scores
    are also a member. Use a stack if you want the best probabilities and do not need a
    certificate.

    Parameters
    ----------
    recalibrators : list of recalibrators, default=None
        Members in addition to the uncalibrated scores. None means, for two classes,
        `TemperatureScaling`, `SplineCalibration` and `VennAbers`; for K classes,
        `TemperatureScaling`, `VennAbers` and `DirichletCalibration` with ``alpha=.3``
        and with ``alpha=.03``. Default members that work on log-odds share the floor
        that ``clip="auto"`` learns from all samples.
    cv : int, splitter or iterable of (train, test), default=5
        Folds, in which every sample must be predicted once. An int gives random folds
        that depend only on the samples, not on their order; they are stratified for up
        to 9 classes (see Notes). None means 5.
    likelihood_power : float, default=0.3
        Exponent of the cross-validated likelihood, in [0, 1]: weights are proportional
        to ``prior * exp(likelihood_power * log_likelihood)``. With 1, the weights are
        too extreme with few samples.
    uncalibrated_weight : float, default=0.5
        Prior weight of the uncalibrated scores, in [0, 1); the other members share the
        remaining weight. 0 excludes the uncalibrated scores.
    rank_preserving : bool, default=False
        Whether to use monotone default members, so that the order of the scores is
        preserved (up to ties). For K > 2 classes, the order of the classes within each
        sample is preserved. `recalibrators` must then be None.
    n_jobs : int, default=None
        Number of threads for fitting the members in the folds; None means 1.
    verbose : bool, default=False
        Whether to report to standard error which member is being fitted to all samples
        or to a fold. At least one line is written every nine seconds, and at most one
        every two seconds.
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
    recalibrators_ : list of fitted recalibrators
        The members, refitted to all samples; the uncalibrated scores come first. For
        more than two classes, a default member that is dropped after the first fold is
        kept as fitted in that fold.
    weights_ : ndarray of shape (n_members,)
        Weights of the members, which sum to 1. For K > 2 classes, they are the sum of
        one quarter of the weights given by `likelihood_power` and three quarters of the
        mixture weights that maximise the cross-validated likelihood.
    cv_log_loss_ : ndarray of shape (n_members,)
        Cross-validated log-loss of each member, in nats per sample. For a default
        member that is dropped after the first fold, it is estimated from this fold.
    gain_ : IntervalEstimate
        Reduction in out-of-fold log-loss achieved by the mixture, in nats per sample,
        with an approximate 90% interval. Each fold is predicted with weights from the
        other folds. `gain_` estimates the mean gain over calibration sets of four
        fifths of this size, not the gain of this particular fit.
    temperature_ : float
        Temperature of the mixture for K > 2 classes; 1 for two classes. It is fitted to
        samples that were not used to fit the members, and shrunk toward 1 if there are
        few of them.
    seconds_ : ndarray of shape (n_members,)
        Total fitting time of each member, in seconds.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range.

    See Also
    --------
    skcalib.SplineCalibration : A smooth map without a fixed shape.
    skcalib.DirichletCalibration : A linear map of the log-probabilities.
    skcalib.evaluation.recalibration_gain : The gain to be expected from recalibration.

    Notes
    -----
    Each member is fitted ``cv + 1`` times. In the folds, it keeps the penalty strength
    that was chosen from all samples. A default member whose log-loss is much higher in
    the first fold is not fitted to the other folds, and has weight 0. With fewer than
    about 250 samples, the mixture can be slightly worse than the uncalibrated scores.
    With more samples, this rarely happens.

    Stratified folds all have the same class frequencies, including their noise, and
    therefore reward members that fit this noise. With ten or more classes, an int
    therefore assigns samples to folds regardless of class. In a fold, each member is
    fitted to at most about 10,000 samples with two classes, or 20,000 with more.

    If a fold's training samples have only one class, no member can be fitted to them.
    The samples of this fold are then scored with the uncalibrated probabilities.

    References
    ----------
    Wolpert (1992), Stacked generalization. Gruenwald and van Ommen (2017),
    Inconsistency of Bayesian inference for misspecified linear models, and a proposal
    for repairing it (the tempered likelihood).

    Examples
    --------
    For calibrated scores, the uncalibrated scores have the largest weight:

    >>> import numpy as np
    >>> from skcalib import StackedRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(500)
    >>> stack = StackedRecalibrator().fit(scores, rng.random(500) < scores)
    >>> type(stack.recalibrators_[stack.weights_.argmax()]).__name__
    'Uncalibrated'
    """

    _parameter_constraints = {
        **BaseRecalibrator._parameter_constraints,
        "recalibrators": [list, tuple, None],
        "cv": ["cv_object"],
        "likelihood_power": [Interval(Real, 0, 1, closed="both")],
        "uncalibrated_weight": [Interval(Real, 0, 1, closed="left")],
        "rank_preserving": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    _attributes = {
        "recalibrators_": several(list),
        "weights_": weights,
        "gain_": estimate,
        "cv_log_loss_": numbers,
        "temperature_": positive,
        "seconds_": amounts,
    }
    _needs_classes = "two"

    recalibrators_: list
    weights_: np.ndarray
    cv_log_loss_: np.ndarray
    gain_: IntervalEstimate
    temperature_: float
    seconds_: np.ndarray

    def __init__(
        self,
        recalibrators: Sequence[BaseEstimator] | None = None,
        *,
        cv: CrossValidation | None = 5,
        likelihood_power: float = 0.3,
        uncalibrated_weight: float = 0.5,
        rank_preserving: bool = False,
        n_jobs: int | None = None,
        verbose: bool | int = False,
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.recalibrators = recalibrators
        self.cv = cv
        self.likelihood_power = likelihood_power
        self.uncalibrated_weight = uncalibrated_weight
        self.rank_preserving = rank_preserving
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.input = input
        self.classes = classes

    def _fit_measured(self, scores, codes, design):
        """Fit the members to scores (n, C) and `codes` (n,), the columns of the labels,
        choose the weights by which their forecasts of held-out rows are mixed best, and
        measure the gain of the mixture. `design` holds weights and clusters. Return the
        `LimitsMaker` for two classes.
        """
        sample_weight = design.sample_weight
        members = self._members()
        folds = cross_validation_folds(
            self.cv,
            scores,
            codes,
            sample_weight,
            self.input,
            stratified="auto",
            max_train_rows=self._most_train_rows,
            importance=design.importance,
            cluster=design.cluster,
        )
        # 1. The members, fitted to all rows, and their forecasts of held-out rows: a
        # list of arrays (n, K), None for members that are left out as hopeless.
        uncalibrated = Uncalibrated(input=self.input, classes=self.classes_)
        rows = scores, codes, sample_weight
        floor = None  # members that the user names learn their own
        if self.recalibrators is None:
            floor = learned_floor(*rows, self.input)
        stack_fits = StackFits(
            members,
            uncalibrated,
            rows,
            folds,
            classes=self.classes_,
            floor=floor,
            progress=Progress(type(self).__name__, self.verbose),
        )
        predicted, loss_in_first_fold = self._held_out_forecasts(stack_fits, design)
        self._keep_members(stack_fits)
        contenders = [k for k in range(len(members)) if predicted[k] is not None]
        predicted = [predicted[k] for k in contenders]
        # The held-out rows in the order of the forecasts: one fold after the other.
        held_out = np.concatenate([fold.test for fold in folds])
        held_out_codes = codes[held_out].astype(np.intp)
        held_out_design = design.of_folds(folds)
        weight = held_out_design.sample_weight
        losses = _loss_columns(predicted, held_out_codes)
        # 2. The log-loss of each member. That of a hopeless one is known in the first
        # fold alone: its distance there from the best member is taken for all folds.
        log_loss = np.average(losses, axis=0, weights=weight)
        best = contenders[log_loss.argmin()]
        distance_from_best = loss_in_first_fold - loss_in_first_fold[best]
        self.cv_log_loss_ = log_loss.min() + distance_from_best
        self.cv_log_loss_[contenders] = log_loss
        # 3. The weights of the members, and the temperature of their mixture.
        prior = self._prior(len(members))[contenders]
        weights = self._mixture_weights(losses, weight, prior)
        mixture = _weighted_sum(weights, predicted)
        self.temperature_ = self._mixture_temperature(mixture, held_out_codes, weight)
        self.weights_ = np.zeros(len(members))
        self.weights_[contenders] = weights
        # 4. What the mixture gains over the unchanged scores. For each fold, weights
        # and temperature come from the other folds.
        if self.uncalibrated_weight > 0:
            unchanged = predicted[0]  # by the first member, `Uncalibrated`
        else:
            uncalibrated.fit(scores, self.classes_[codes])
            unchanged = uncalibrated.predict_proba(scores[held_out])
        mixed_losses = self._left_out_losses(
            predicted, losses, held_out_codes, weight, folds, prior
        )
        gains = _losses(unchanged, held_out_codes) - mixed_losses
        gain = mean_gain(gains, held_out_design, reason=unfitted_reason(codes, folds))
        self.gain_ = gain.interval(_LEVEL)
        if len(self.classes_) == 2:
            return LimitsMaker(self._keep_limits_of_members, _state_of_mixture)
        for member in self.recalibrators_:
            vars(member).pop("_maker", None)
        return None  # a stack has limits for two classes only

    def _keep_limits_of_members(self, cluster):
        """Let the members store what their limits are computed from, and return those
        that the mixture uses: the function `keep` of the stack's `LimitsMaker`.
        """
        for member in self.recalibrators_:
            maker = vars(member).pop("_maker", None)
            if maker is not None:
                member._limits = LazyLimits.of_fit(maker, cluster)
        return self._used_members()

    def _used_members(self):
        """Return the list of the members with a weight in the mixture."""
        return [self.recalibrators_[k] for k in np.flatnonzero(self.weights_ > 0)]

    def _why_no_limits(self):
        """Return why the stack has no limits, an empty text if it has some."""
        if len(self.classes_) > 2:
            return "a stack has limits for two classes only"
        if not self._has_limits():
            return "a member that the mixture uses has no limits"
        return ""

    def _why_nan_limits(self):
        members = self._used_members()
        reasons = [m._why_nan_limits() for m in members if m._has_limits()]
        return next(filter(None, reasons), "")

    def _limits_at(self, level):
        # The distance of the stack's limits from its probability is the weighted root
        # mean square of the distances of the members' limits from that probability.
        members = []
        used = self.weights_[self.weights_ > 0]
        for weight, member in zip(used, self._used_members(), strict=True):
            limits_of_member = None  # `Uncalibrated` is certain
            if not isinstance(member, Uncalibrated):
                limits_of_member = member._limits_at(level)
            members.append((weight, member, limits_of_member))

        def limits_at(scores, probabilities):
            """Return the lower and upper limits (n,) of the event's frequency at scores
            (n, C).
            """
            probability = probabilities[:, 1]
            below = np.zeros(len(scores))
            above = np.zeros(len(scores))
            for weight, member, limits_of_member in members:
                calibrated = member._predict_checked(scores)
                low = high = calibrated[:, 1]
                if limits_of_member is not None:
                    limits = limits_of_member(scores, calibrated)
                    # The columns of (n, 2) are the lower and the upper limits.
                    low, high = widened_limits(*limits, calibrated).T
                below += weight * np.maximum(probability - low, 0) ** 2
                above += weight * np.maximum(high - probability, 0) ** 2
            return probability - np.sqrt(below), probability + np.sqrt(above)

        return limits_at

    def _keep_members(self, stack_fits):
        """Set the members fitted to all rows, from a `StackFits`, and the seconds that
        their fits took.
        """
        self.recalibrators_ = stack_fits.fitted
        self.seconds_ = stack_fits.seconds
        forbid_certificates(
            self, "its forecasts are mixed with those of other recalibrators."
        )
        for member in self.recalibrators_:
            if isinstance(member, BaseRecalibrator):
                # The fits to the folds have started from it.
                member._forget_start()
                if self._has_wide_logits:
                    member._read_wide_logits()

    @property
    def _most_train_rows(self):
        """How many rows the members are fitted to in a fold."""
        return _MOST_TRAIN_ROWS[len(self.classes_) > 2]

    def _held_out_forecasts(self, stack_fits, design):
        """Return the members' probabilities (n, K) for the held-out rows, fold by fold,
        and their mean log-losses in the first fold (n_members,). Default members that
        this fold shows to be hopeless are left out of the others, and have None.

        The fits to all rows are kept in the `StackFits`; `design` holds the weights and
        clusters.
        """
        folds = stack_fits.folds
        all_members = np.arange(len(stack_fits.members))
        # 1. The first fold. Mostly the fit to all rows comes before it: members choose
        # their parameters there, which the folds keep. Default members for more than
        # two classes choose nothing. Hopeless ones are then not fitted to all rows at
        # all: with 100,000 rows of 100 classes that takes .8 of the time.
        starts_with_first_fold = self.recalibrators is None and len(self.classes_) > 2
        if starts_with_first_fold:
            fitted_to_first = stack_fits.fit_to_first_fold()
        else:
            stack_fits.fit_to_all(all_members, starts_near=False)
            fitted_to_first = stack_fits.fitted_to_fold(0, all_members)
        first_forecasts = stack_fits.forecasts(0, fitted_to_first)
        _, codes, _ = stack_fits.rows
        first_codes = codes[folds[0].test].astype(np.intp)
        losses = _loss_columns(first_forecasts, first_codes)

        # 2. The members that stay, their indices. A fold of a few clusters is too small
        # to show who is hopeless.
        contenders = all_members
        if self.recalibrators is None and design.cluster is None:
            is_hopeless = self._is_hopeless(losses, design.of_folds(folds[:1]))
            contenders = np.flatnonzero(~is_hopeless)
        if starts_with_first_fold:
            stack_fits.fit_to_all(contenders, starts_near=True)

        # 3. The other folds.
        def forecasts_of_fold(index):
            """Return a list of the contenders' forecasts (n_rows, K) for the held-out
            rows of a fold.
            """
            fitted = stack_fits.fitted_to_fold(index, contenders)
            return stack_fits.forecasts(index, fitted)

        parallel = Parallel(n_jobs=self.n_jobs, prefer="threads")
        forecasts_of_others = parallel(
            delayed(forecasts_of_fold)(index) for index in range(1, len(folds))
        )
        predicted = [None] * len(all_members)
        for place, k in enumerate(contenders):
            forecasts = [first_forecasts[k]]
            forecasts += [of_fold[place] for of_fold in forecasts_of_others]
            predicted[k] = np.concatenate(forecasts)
        loss_in_first_fold = np.average(losses, axis=0, weights=folds[0].test_weight)
        return predicted, loss_in_first_fold

    def _is_hopeless(self, losses, design):
        """Return which members (n_members,) would have next to no weight in the
        mixture, from their log-losses (n, n_members) for the rows of one fold.
        `Uncalibrated`, the first member if it has a prior weight, never is.
        """
        sample_weight = design.sample_weight
        total = _column_sums(losses, sample_weight)
        # 1. The member loses to the best one, by several standard errors.
        excess = losses - losses[:, [total.argmin()]]
        is_hopeless = _is_certainly_positive(excess, design)
        # 2. Its weight by tempered likelihood is small; compared are the logarithms of
        # the ratio of the best member's weight to its own.
        log_weight_of_best = self.likelihood_power * (total - total.min())
        is_hopeless &= log_weight_of_best > -np.log(_HOPELESS_WEIGHT)
        # 3. For more than two classes, its weight in the mixture of the greatest
        # likelihood is small, too.
        if len(self.classes_) > 2:
            weights = fit_mixture_weights(np.exp(-losses), sample_weight)
            is_hopeless &= weights < _HOPELESS_SHARE
        if self.uncalibrated_weight > 0:
            is_hopeless[0] = False
        return is_hopeless

    def _left_out_losses(self, predicted, losses, codes, sample_weight, folds, prior):
        """Return the log-loss of each held-out row (n,) under a mixture whose weights
        and temperature come from the other folds. Rows come fold by fold: `predicted`
        (n, K) by each member, `losses` (n, n_members) and codes (n,).
        """
        left_out = np.empty(len(codes))
        held_out = np.concatenate([fold.test for fold in folds])
        end = 0
        for fold in folds:
            # Positions among the held-out rows: of this fold, and of all other folds.
            inside = slice(end, end + len(fold.test))
            end = inside.stop
            rest = np.delete(np.arange(len(codes)), inside)
            weights = self._mixture_weights(
                losses[rest], taken(sample_weight, rest), prior
            )
            mixture = _weighted_sum(weights, [p[inside] for p in predicted])
            if len(self.classes_) > 2:
                # Many rows take long: the temperature then comes only from those that
                # the fold's members were fitted to.
                if len(rest) > self._most_train_rows:
                    is_trained_on = np.isin(held_out[rest], fold.train)
                    if is_trained_on.any():
                        rest = rest[is_trained_on]
                temperature = self._mixture_temperature(
                    _weighted_sum(weights, [p[rest] for p in predicted]),
                    codes[rest],
                    taken(sample_weight, rest),
                    1 / self.temperature_,
                )
                mixture = row_softmax(log_probability(mixture) / temperature)
            left_out[inside] = _losses(mixture, codes[inside])
        return left_out

    def _prior(self, n_members):
        """Return the weights of the members (n_members,) before any row is seen."""
        if self.uncalibrated_weight == 0:
            return np.full(n_members, 1 / n_members)
        # the first member is `Uncalibrated`
        prior = np.full(n_members, (1 - self.uncalibrated_weight) / (n_members - 1))
        prior[0] = self.uncalibrated_weight
        return prior

    def _mixture_weights(self, losses, sample_weight, prior):
        """Return the weights of the members (n_members,) in the mixture, from their
        held-out log-losses (n, n_members) and `prior` weights.
        """
        total = _column_sums(losses, sample_weight)
        # The posterior weights are in proportion to prior * likelihood^power, with a
        # power below 1 (a tempered likelihood).
        weights = softmax(np.log(prior) - self.likelihood_power * total)
        if len(self.classes_) == 2:
            return weights
        # For more classes they are averaged with the weights of the mixture of greatest
        # likelihood, which count more.
        most_likely = fit_mixture_weights(np.exp(-losses), sample_weight)
        return _TEMPERED_SHARE * weights + (1 - _TEMPERED_SHARE) * most_likely

    def _mixture_temperature(self, mixture, codes, sample_weight, start=None):
        """Return the temperature of a mixture (n, K) of held-out forecasts, 1 for two
        classes; `start` is an inverse one or None.
        """
        if len(self.classes_) == 2:
            return 1.0
        logits = log_probability(mixture)
        return 1 / _shrunken_inverse_temperature(logits, codes, sample_weight, start)

    def _map(self, scores):
        """Return the map from scores to probabilities: the weighted mean of the
        members' maps, for more than two classes with a temperature.
        """
        used = np.flatnonzero(self.weights_ > 0)
        weights = tuple(self.weights_[used].tolist())
        maps = tuple(member_node(self.recalibrators_[k], scores) for k in used)
        mixture = Mixture(weights, maps)
        if len(self.classes_) == 2:
            return mixture
        return Softmax(Scaled(Log(mixture), 1 / self.temperature_))

    def _check_attributes(self):
        """Raise a ValueError unless the fitted attributes, which were read from a JSON
        document, are consistent with each other.
        """
        check_same_classes(self, *self.recalibrators_)

    def _members(self):
        """Return the unfitted members, given by the user or the default ones, with the
        `input` and `classes` of the stack. `Uncalibrated` comes first if it has a prior
        weight.
        """
        if self.recalibrators is not None:
            members = self._given_members()
        elif len(self.classes_) == 2:
            members = [
                TemperatureScaling(),
                SplineCalibration(monotone=self.rank_preserving),
                VennAbers(),
            ]
        elif self.rank_preserving:
            members = [TemperatureScaling(), EnsembleTemperatureScaling()]
        else:
            members = [TemperatureScaling(), VennAbers()]
            members += [DirichletCalibration(alpha) for alpha in _DIRICHLET_ALPHAS]
        if self.uncalibrated_weight > 0:
            members = [Uncalibrated(), *members]
        for member in members:
            tell(member, input=self.input, classes=self.classes_)  # set parameters
            if is_plain(member):
                member._validate_params()
        return members

    def _given_members(self):
        """Return clones of the members that the user has named."""
        if self.rank_preserving:
            raise ValueError(
                "rank_preserving=True chooses the members: use recalibrators=None, or"
                " set rank_preserving to False."
            )
        if len(self.recalibrators) == 0:
            raise ValueError(
                "recalibrators must name at least one recalibrator, found none. None"
                " means the default."
            )
        members = []
        for member in self.recalibrators:
            members.append(check_recalibrator(clone(member), "recalibrators"))
        return members


def _state_of_mixture(members):
    """Return what the limits of a stack depend on besides its members: the least number
    of "events" that a member was fitted to; None if a member that changes the scores
    has no limits.
    """
    events = []
    for member in members:
        if member._has_limits():
            events.append(member._limits.state["events"])
        elif not isinstance(member, Uncalibrated):
            return None
    return {"kind": "mixture", "events": min(events, default=np.inf)}


def _weighted_sum(weights, predicted):
    """Return the mixture (n, K) of probabilities (n, K), given as an iterable of one
    array for each weight.
    """
    return sum(weight * p for weight, p in zip(weights, predicted, strict=True))


def _column_sums(losses, sample_weight):
    """Return the weighted sum of each column of losses (n, n_members)."""
    if sample_weight is None:
        return losses.sum(axis=0)
    return sample_weight @ losses


def _is_certainly_positive(columns, design):
    """Return whether the weighted mean of each column (n, n_columns) is above 0 by more
    than three standard errors, booleans (n_columns,).
    """
    is_positive = []
    for column in columns.T:
        mean, spread = mean_gain(column, design)
        # The comparison is False if there is no standard error (NaN).
        is_positive.append(mean > _HOPELESS_STANDARD_ERRORS * spread.standard_error)
    return np.array(is_positive)


def _losses(probabilities, codes):
    """Return the log-loss of each row (n,), from probabilities (n, K) and the class of
    each row (n,).
    """
    return -log_probability(probabilities[np.arange(len(codes)), codes])


def _loss_columns(predicted, codes):
    """Return the log-losses (n, n_members) of a list of probabilities (n, K)."""
    return np.column_stack([_losses(p, codes) for p in predicted])


def _shrunken_inverse_temperature(logits, codes, sample_weight, start=None):
    """Return the inverse temperature of logits (n, K), shrunken toward 1 where the rows
    say little about it.

    For that of greatest likelihood b, the information on log(b) is the sum of b^2 times
    the variance of the logits under each row's probabilities. The result is exp of the
    posterior mean under a normal prior around log(b) = 0 with the information
    `_PRIOR_INFORMATION`.
    """
    inverse = fit_inverse_temperature(
        logits, codes, sample_weight, start=start, tolerance=_LAST_STEP
    )
    weight = weights_or_ones(sample_weight, len(codes))
    variance = 0
    for rows, _, row_variance in row_derivatives(inverse, logits, codes):
        variance += weight[rows] @ row_variance
    information = inverse**2 * float(variance)
    return float(inverse ** (information / (information + _PRIOR_INFORMATION)))
