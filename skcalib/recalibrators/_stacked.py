"""Stacked recalibrators: a mixture of several, weighted by how well each predicts rows that it has not seen."""

from numbers import Integral, Real

import numpy as np
from joblib import Parallel, delayed
from scipy.special import softmax
from sklearn.base import clone

from skcalib._input.sklearn_private import Interval
from skcalib._rows.links import clip_probability
from skcalib._solvers.mixture import fit_mixture_weights
from skcalib.recalibrators._base import BaseRecalibrator, LogitRecalibrator, check_recalibrator
from skcalib.recalibrators._ensemble_temperature import EnsembleTemperatureScaling
from skcalib.recalibrators._floor import learned_floor
from skcalib.recalibrators._folds import Fold, cross_validation_folds
from skcalib.recalibrators._matrix import MatrixScaling
from skcalib.recalibrators._quadratic import QuadraticScaling
from skcalib.recalibrators._spline import SplineCalibration
from skcalib.recalibrators._temperature import TemperatureScaling
from skcalib.recalibrators._venn_abers import VennAbers

# Alphas of matrix scaling among the default members, the last one nearly free, and where one alpha has to do.
_MATRIX_ALPHAS = (1.0, 0.1, 0.02, 0.001)
_MANY_CLASSES = 50


class StackedRecalibrator(BaseRecalibrator):
    """Mixture of recalibrators and of the uncalibrated scores, weighted by cross-validated likelihood.

    No recalibrator is best everywhere. Each member predicts rows it was not fitted to; the better it does, in
    log-loss, the more its refit on all rows counts. The choice to need nothing at all is a member, too. The default to
    take where the best predictions count and no certificate is needed.

    Parameters
    ----------
    recalibrators : list of recalibrators, default=None
        Members beside the uncalibrated scores. None means, for two classes, `TemperatureScaling`, `QuadraticScaling`,
        `SplineCalibration` and `VennAbers`; for K classes `TemperatureScaling`, `VennAbers` and `MatrixScaling` of the
        alphas 1, .1, .02 and .001; for more than 50 classes that of alpha 1 alone. Those on log-odds
        share the floor that ``clip="auto"`` learns from all rows.
    cv : int, splitter or iterable of (train, test), default=5
        Folds, which must predict every row once. An int makes stratified random folds that depend on the rows alone,
        not on their order. None means 5.
    temper : float, default=0.3
        Share of the cross-validated log-likelihood that counts, in [0, 1]: weights are proportional to
        ``prior * exp(temper * log_likelihood)``. All of it is too sure of itself where there are few rows.
    identity_weight : float, default=0.5
        Prior weight of the uncalibrated scores, in [0, 1); the members share the rest. 0 leaves them out.
    rank_preserving : bool, default=False
        Whether the default members are monotone ones, so that no two scores change their order (they may tie); for
        K > 2 classes the order of the classes in a row. `recalibrators` must then be None.
    n_jobs : int, default=None
        Threads that fit members and folds; None means 1.
    input : {"probability", "logit"}, default="probability"
        What the scores are. One column of logits is the log-odds of the positive class.
    classes : array-like, default=None
        Labels of the columns, for a calibration set in which a class is missing.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    recalibrators_ : list of fitted recalibrators
        The members, refitted on all rows; the uncalibrated scores come first.
    weights_ : ndarray of shape (n_members,)
        Weights of the members, which sum to 1. For K > 2 classes the mean of those above and of the mixture weights of
        greatest cross-validated likelihood.
    cv_log_loss_ : ndarray of shape (n_members,)
        Cross-validated log-loss of each member, in nats a row.

    Notes
    -----
    A fit costs what its members cost, ``cv + 1`` times. With fewer than about 250 rows the mixture can be worse than
    the uncalibrated scores, if hardly by much; with more it hardly ever is.

    A fold whose other rows are all of one class teaches nothing: its rows count as if every member left them as they
    are.

    References
    ----------
    Wolpert (1992), Stacked generalization. Gruenwald and van Ommen (2017), Inconsistency of Bayesian inference for
    misspecified linear models, and a proposal for repairing it: the tempered likelihood.

    Examples
    --------
    Scores that are right as they are mostly stay as they are:

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
        "temper": [Interval(Real, 0, 1, closed="both")],
        "identity_weight": [Interval(Real, 0, 1, closed="left")],
        "rank_preserving": ["boolean"],
        "n_jobs": [Integral, None],
    }
    _needs_classes = "two"

    def __init__(
        self,
        recalibrators=None,
        *,
        cv=5,
        temper=0.3,
        identity_weight=0.5,
        rank_preserving=False,
        n_jobs=None,
        input="probability",
        classes=None,
    ):
        self.recalibrators = recalibrators
        self.cv = cv
        self.temper = temper
        self.identity_weight = identity_weight
        self.rank_preserving = rank_preserving
        self.n_jobs = n_jobs
        self.input = input
        self.classes = classes

    def _fit_scores(self, scores, codes, sample_weight):
        members = self._members(scores, codes, sample_weight)
        folds = cross_validation_folds(self.cv, scores, codes, sample_weight)
        everything = Fold(np.arange(len(codes)), sample_weight, np.arange(0), None)
        fits = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(_fit_and_predict)(member, fold, scores, codes, self.classes_)
            for fold in [everything, *folds]
            for member in members
        )
        n_members = len(members)
        self.recalibrators_ = [refit for refit, _ in fits[:n_members]]
        by_fold = [fits[k : k + n_members] for k in range(n_members, len(fits), n_members)]
        likelihoods = np.concatenate([np.column_stack([p for _, p in fold]) for fold in by_fold])
        weight = None if sample_weight is None else np.concatenate([fold.test_weight for fold in folds])
        self.cv_log_loss_ = -np.average(np.log(likelihoods), axis=0, weights=weight)
        self.weights_ = self._weights(likelihoods, weight)

    def _predict_scores(self, scores):
        used = [(w, member) for w, member in zip(self.weights_, self.recalibrators_, strict=True) if w > 0]
        return sum(weight * member.predict_proba(scores) for weight, member in used)

    def _weights(self, likelihoods, sample_weight):
        n_rows = len(likelihoods) if sample_weight is None else sample_weight.sum()
        others = likelihoods.shape[1] - (self.identity_weight > 0)
        prior = np.full(likelihoods.shape[1], (1 - self.identity_weight) / others)
        if self.identity_weight > 0:
            prior[0] = self.identity_weight
        tempered = softmax(np.log(prior) - self.temper * n_rows * self.cv_log_loss_)
        if len(self.classes_) == 2:
            return tempered
        return (tempered + fit_mixture_weights(likelihoods, sample_weight)) / 2

    def _members(self, scores, codes, sample_weight):
        """Return the unfitted members, which take the scores and labels that the stack was given."""
        shared = {"input": self.input, "classes": self.classes_}
        if self.recalibrators is not None:
            members = self._given_members()
        elif self.rank_preserving:
            members = self._monotone_members()
        else:
            members = self._default_members()
        if self.recalibrators is None:
            floor, _ = learned_floor(scores, codes, sample_weight, self.input)
            for member in members:
                if member._works_on_log_odds:
                    member._shared_floor = floor
        if self.identity_weight > 0:
            members = [Uncalibrated(), *members]
        for member in members:
            taken = member.get_params(deep=False)
            member.set_params(**{name: value for name, value in shared.items() if name in taken})
        return members

    def _given_members(self):
        if self.rank_preserving:
            raise ValueError("rank_preserving=True chooses the members: leave recalibrators=None, or set it to False.")
        if len(self.recalibrators) == 0:
            raise ValueError("recalibrators must name at least one recalibrator, found none. None takes the default.")
        return [check_recalibrator(clone(member), "recalibrators") for member in self.recalibrators]

    def _default_members(self):
        temperature, venn_abers = TemperatureScaling(), VennAbers()
        if len(self.classes_) == 2:
            return [temperature, QuadraticScaling(), SplineCalibration(), venn_abers]
        alphas = _MATRIX_ALPHAS if len(self.classes_) <= _MANY_CLASSES else _MATRIX_ALPHAS[:1]
        return [temperature, venn_abers, *(MatrixScaling(alpha) for alpha in alphas)]

    def _monotone_members(self):
        if len(self.classes_) == 2:
            return [
                TemperatureScaling(),
                QuadraticScaling(monotone=True),
                SplineCalibration(monotone=True),
                VennAbers(),
            ]
        return [TemperatureScaling(), EnsembleTemperatureScaling()]


class Uncalibrated(LogitRecalibrator):
    """The scores as they are, as probabilities.

    Parameters
    ----------
    input : {"probability", "logit"}, default="probability"
        What the scores are.
    classes : array-like, default=None
        Labels of the columns.
    """

    _needs_classes = "any"
    _keeps_decisions = True

    def __init__(self, *, input="probability", classes=None):
        self.input = input
        self.classes = classes

    def _fit_logits(self, logits, codes, sample_weight):
        return self

    def _predict_logits(self, logits):
        return logits


def _fit_and_predict(member, fold, scores, codes, classes):
    """Return a member fitted to a fold's training rows and the probabilities it gives the labels of the test rows."""
    one_class = codes[fold.train].min() == codes[fold.train].max()
    fitted = clone(Uncalibrated(input=member.input, classes=classes) if one_class else member)
    if not one_class and "_shared_floor" in vars(member):  # which a clone does not have
        fitted._shared_floor = member._shared_floor
    fitted.fit(scores[fold.train], classes[codes[fold.train]], sample_weight=fold.train_weight)
    if len(fold.test) == 0:
        return fitted, np.zeros(0)
    probabilities = fitted.predict_proba(scores[fold.test])
    return fitted, clip_probability(probabilities[np.arange(len(fold.test)), codes[fold.test]])
