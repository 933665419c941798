"""Vector and matrix scaling: an affine map of the logits, held near temperature scaling
by a structured ridge.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skcalib._fitting.ridge_path import (
    AffineProblem,
    fit_path,
    fit_ridge,
)
from skcalib._input.sklearn_private import StrOptions
from skcalib._input.tensors import like, namespace_of, widest_dtype
from skcalib._intervals.one_probability.softmax import softmax
from skcalib._intervals.one_probability.softmax_designs import (
    OwnSlopes,
    SharedFeatures,
)
from skcalib._rows.links import row_log_sum_exp, row_softmax
from skcalib._solvers.affine_maps import DiagonalMap, MatrixMap
from skcalib._solvers.sums import blocks_of, cast, log_sum_exp
from skcalib._solvers.temperature import fit_inverse_temperature
from skcalib.maps import (
    Affine,
    Centred,
    Scaled,
    class_probabilities,
    log_probabilities,
)
from skcalib.maps.checks import matrix, number, numbers, positive
from skcalib.recalibrators._base import RIDGE
from skcalib.recalibrators._clipping import ClippedRecalibrator
from skcalib.recalibrators._logit import LogitRecalibrator

_LARGEST_FEATURE = 1e150  # whose square is a number


class AffineScaling(ClippedRecalibrator, LogitRecalibrator):
    """Base of the methods that fit ``softmax(coef @ features + intercept)``.

    A subclass defines ``_affine_map``, `DiagonalMap` or `MatrixMap`, which defines the
    meaning of its parameters, and ``_penalty(n_classes, alpha)``, the ridge on each
    parameter (n_parameters,). The features are the logits minus ``_reference(logits)``.
    """

    _parameter_constraints = {
        **ClippedRecalibrator._parameter_constraints,
        **LogitRecalibrator._parameter_constraints,
        "alpha": [RIDGE, StrOptions({"auto"})],
        "alpha_intercept": [RIDGE, None],
    }

    _attributes = {
        **ClippedRecalibrator._attributes,
        "alpha_": number,
        "inverse_temperature_": positive,
        "intercept_": numbers,
        "coef_": matrix,
    }
    _auto_alphas = (1.0, 0.3, 0.1, 0.02)
    _leaves_impossible_out = True

    alpha_: float
    coef_: np.ndarray
    intercept_: np.ndarray
    inverse_temperature_: float

    def __init__(
        self,
        alpha: float | Literal["auto"] = "auto",
        *,
        alpha_intercept: float | None = None,
        clip: float | Literal["auto"] | None = "auto",
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.alpha = alpha
        self.alpha_intercept = alpha_intercept
        self.clip = clip
        self.input = input
        self.classes = classes

    @property
    def _needs_classes(self):
        """Which classes must occur in the rows of a fit: "all", any "two", or "any"."""
        # Without a ridge, the log-loss would send the intercept of a class without rows
        # to minus infinity. Which parameters have a ridge does not depend on the number
        # of classes: it is looked up for two.
        weakest_alpha = self._alphas[-1]
        weakest_ridge = self._penalty(2, weakest_alpha)
        if np.all(weakest_ridge > 0):
            return "two"
        return "all"

    @property
    def _alphas(self):
        """The strengths of the ridge that a fit tries, the strongest first."""
        if isinstance(self.alpha, str):
            return self._auto_alphas
        return [self.alpha]

    def _fit_logits(self, logits, codes, sample_weight, shortcuts=None):
        """Fit an affine map of temperature-scaled logits (n, K), with the strength of
        the ridge that predicts best, or the one given; return the `LimitsMaker`.

        `shortcuts` save time and do not change the result. With them, the inverse
        curvature is kept, so that later fits may start from this one.
        """
        n_classes = logits.shape[1]
        near_fit = None
        if shortcuts is not None:
            near_fit = shortcuts.near_fit
        # 1. Temperature scaling, to which the ridge pulls. With another ridge for the
        # same rows it is the same.
        if shortcuts is not None and shortcuts.same_rows_fit is not None:
            inverse_temperature = shortcuts.same_rows_fit.inverse_temperature_
        else:
            inverse_temperature = fit_inverse_temperature(
                logits,
                codes,
                sample_weight,
                start=getattr(near_fit, "inverse_temperature_", None),
            )
        self.inverse_temperature_ = float(inverse_temperature)
        # The reference of each row, such as its mean logit, is subtracted from its
        # logits.
        xp = namespace_of(logits)
        references = []
        for rows in blocks_of(logits, *logits.shape):
            block = logits[rows, ...]
            if xp is not np:
                block = cast(block, widest_dtype(block))
            references.append(self._reference(block))
        reference = xp.concat(references)
        largest = self.inverse_temperature_ * float(xp.max(xp.abs(reference)))
        if largest > _LARGEST_FEATURE:
            raise ValueError(
                "X contains logits that need the temperature"
                f" {1 / self.inverse_temperature_:.0e}, at which their"
                " log-probabilities are out of range: rescale the logits."
            )
        # 2. The affine map.
        problem = AffineProblem(
            self._affine_map,
            logits,
            reference,
            self.inverse_temperature_,
            codes,
            sample_weight,
        )
        penalties = [self._penalty(n_classes, alpha) for alpha in self._alphas]
        if len(penalties) > 1:
            # the index of the best ridge, and the parameters fitted with it
            best, parameters = fit_path(problem, penalties)
        else:
            best = 0
            parameters, curvature = self._fit_ridge(problem, penalties[0], near_fit)
            if shortcuts is not None:
                self._curvature = curvature
        self.alpha_ = float(self._alphas[best])
        # 3. The parameters are for temperature-scaled logits. Coefficients times the
        # inverse temperature are for the logits themselves.
        coef, intercept = self._affine_map.unpacked(parameters)
        self.coef_ = self.inverse_temperature_ * coef
        self.intercept_ = intercept.copy()
        # 4. Limits need the derivatives of the calibrated logits by the parameters (the
        # design), the probabilities, and the second derivatives of the penalty, with
        # the parameters in order of classes.
        ridge = 2 * self._affine_map.by_class(penalties[best])
        return softmax(self._limits_design, self._limits_probabilities, ridge)

    def _limits_design(self, logits):
        """Return how calibrated logits depend on the parameters of each class, for
        logits (n, K).
        """
        features = self.inverse_temperature_ * (
            logits - self._reference(logits)[:, None]
        )
        features[~np.isfinite(features)] = 0.0
        return self._design_of(features)

    def _limits_probabilities(self, logits):
        """Return the calibrated probabilities (n, K) of logits (n, K), computed by the
        design of the limits.
        """
        # The design has temperature-scaled logits, `coef_` is for unscaled ones.
        coef = self.coef_ / self.inverse_temperature_
        parameters = self._affine_map.packed(coef, self.intercept_)
        parameters_by_class = self._affine_map.by_class(parameters)
        calibrated = self._limits_design(logits).logits(parameters_by_class)
        calibrated[logits == -np.inf] = -np.inf  # impossible classes stay impossible
        return row_softmax(calibrated)

    def _fit_ridge(self, problem, penalty, near_fit):
        """Return the parameters fitted to an `AffineProblem` with the ridge `penalty`
        (n_parameters,), and their inverse curvature. `near_fit`, a fit to similar rows
        or None, gives a start and an inverse curvature, which save steps.
        """
        start = None
        if near_fit is not None:
            # `coef_` is for logits, and the problem is stated for scaled ones.
            coef = near_fit.coef_ / problem.inverse_temperature
            start = self._affine_map.packed(coef, near_fit.intercept_)
        curvature = getattr(near_fit, "_curvature", None)
        return fit_ridge(problem, penalty, start, curvature)

    def _forget_start(self):
        vars(self).pop("_curvature", None)

    def _map(self, logits):
        """Return the node of the probabilities from that of the logits."""
        return class_probabilities(Affine(Centred(logits), self.coef_, self.intercept_))

    def _reference(self, logits):
        """Return what is subtracted from each row's logits (n, K): their mean over the
        possible classes, so that a constant added to the row changes nothing.
        """
        xp = namespace_of(logits)
        if xp is np and logits.min() > -np.inf:
            if logits.shape[1] == 2:  # in a tenth of the time of `mean`
                return np.add(logits[:, 0], logits[:, 1], dtype=np.float64) / 2
            return logits.mean(axis=1, dtype=np.float64)
        if xp is np:
            return logits.mean(axis=1, dtype=np.float64, where=logits > -np.inf)
        is_possible = ~xp.isinf(logits)
        n_possible = xp.sum(xp.astype(is_possible, logits.dtype), axis=1)
        possible = xp.where(is_possible, logits, xp.zeros_like(logits))
        return xp.sum(possible, axis=1) / n_possible


def _alpha_or_default(alpha, default):
    """Return `alpha`, the ridge on some of the parameters; `default`, that of the
    others, for None.
    """
    if alpha is None:
        return float(default)
    return float(alpha)


class VectorScaling(AffineScaling):
    """Vector scaling: one slope and one intercept per class, applied to logits.

    ``softmax(coef * logits + intercept)``.

    The fit minimises the log-loss. It starts from temperature scaling, with a ridge
    penalty that pulls the map toward it, so the map does not overfit if there are many
    classes and few samples.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the ridge penalty, at least 0. "auto" lowers it from 1 to .3, .1 and
        .02, as long as this improves the loss on held-out samples. The term ``alpha *
        n_classes * ((coef / inverse_temperature - 1)**2 + intercept**2)``, summed over
        the classes, is added to the log-loss, summed over the samples. The factor
        `n_classes` accounts for the smaller number of samples per class if there are
        more classes. With more samples, the penalty has less influence. 0 gives the
        unpenalised fit.
    center : bool, default=True
        Whether the mean of each sample's logits is subtracted first. A constant added
        to a sample then has no effect. False uses the logits unchanged, which is eq.
        4.5 of [3]_ with ``alpha=0``. The penalty pulls toward the same temperature
        scaling either way. With ``input="probability"``, the logits are the logarithms
        of the probabilities or, for one column, (0, log-odds).
    alpha_intercept : float, default=None
        Strength of the penalty on the intercepts; None means `alpha`.
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
    alpha_ : float
        Strength of the ridge penalty that was used.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    provenance_ : dict
        Provenance of the fit: method, parameters, number of samples, events per class,
        versions, and a hash of the samples.
    clip_ : float
        The learned floor, or the clipping constant.
    floor_ : float
        The learned floor; 0 if there is none.
    coef_ : ndarray of shape (n_classes,)
        Slopes.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts.
    inverse_temperature_ : float
        Inverse temperature at which the fit starts and toward which the penalty pulls.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range.

    See Also
    --------
    MatrixScaling : Allows the logit of each class to affect all others.
    TemperatureScaling : One slope and no intercepts, so decisions never change.

    References
    ----------
    .. [1] Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural
        networks.
    .. [2] Kull et al. (2019), Beyond temperature scaling, for the separate penalty on
        the intercepts.
    .. [3] Zhao, Chen and Oymak (2020), On the role of dataset quality and heterogeneity
        in model confidence.

    Examples
    --------
    Half of the samples belong to the third class, but each class is predicted with
    probability 1/3:

    >>> import numpy as np
    >>> from skcalib import VectorScaling
    >>> scores = np.full((400, 3), 1 / 3)
    >>> y = np.repeat([0, 1, 2, 2], 100)
    >>> VectorScaling(alpha=0).fit(scores, y).predict_proba(scores[:1]).round(
    ...     6
    ... ).tolist()
    [[0.25, 0.25, 0.5]]
    """

    _parameter_constraints = {
        **AffineScaling._parameter_constraints,
        "center": ["boolean"],
    }

    _affine_map = DiagonalMap
    _design_of = OwnSlopes
    _fits_tensors = True
    _takes_shortcuts = True
    _attributes = {**AffineScaling._attributes, "coef_": numbers}

    def __init__(
        self,
        alpha: float | Literal["auto"] = "auto",
        *,
        center: bool = True,
        alpha_intercept: float | None = None,
        clip: float | Literal["auto"] | None = "auto",
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.alpha = alpha
        self.center = center
        self.alpha_intercept = alpha_intercept
        self.clip = clip
        self.input = input
        self.classes = classes

    def _penalty(self, n_classes, alpha):
        """Return the ridge on the slopes and the intercepts, (2 n_classes,)."""
        ridge_of_intercepts = _alpha_or_default(self.alpha_intercept, alpha)
        # Each alpha is multiplied by the number of parameters of its kind: K slopes and
        # K intercepts.
        return n_classes * np.repeat([float(alpha), ridge_of_intercepts], n_classes)

    def _reference(self, logits):
        """Return what is subtracted from the logits (n, K) of each row, as (n,): their
        mean, or 0 without `center`.
        """
        if self.center:
            return super()._reference(logits)
        return like(logits, np.zeros(logits.shape[0]))

    def _map(self, logits):
        """Return the node of the probabilities from that of the logits."""
        if self.center:
            logits = Centred(logits)
        return class_probabilities(Scaled(logits, self.coef_, self.intercept_))

    def _logits_of(self, log_odds):
        """Return the node of two logits, as the fit received them, from their
        difference: 0 and the log-odds with `center` or one column, else, as a constant
        would matter, the logarithms of both probabilities.
        """
        if self.center or self.n_features_in_ == 1:
            return super()._logits_of(log_odds)
        if self.input == "logit":
            raise ValueError(
                "VectorScaling(center=False) with two columns of logits is not a"
                " function of one score: pass both columns."
            )
        return log_probabilities(super()._logits_of(log_odds))


class MatrixScaling(AffineScaling):
    """Matrix scaling: ``softmax(coef @ logits + intercept)`` with a ridge penalty.

    The ridge penalty pulls the map toward temperature scaling.

    Logits are centred in each sample first, because a constant added to a row does not
    change its probabilities. For two classes, the family is that of `PlattScaling`.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the ridge penalty, at least 0, for the parts whose strength is not
        set separately. "auto" lowers it from 1 to .3, .1 and .02, as long as this
        improves the loss on held-out samples: see Notes. Let V be the matrix ``coef /
        inverse_temperature``. The penalty added to the log-loss, which is summed over
        the samples, is the sum of::

            alpha_diagonal     * K           * sum_k      (V_kk - 1)^2
            alpha_off_diagonal * K * (K - 1) * sum_{j!=k} V_jk^2
            alpha_intercept    * K           * sum_k      intercept_k^2

        for K classes. With these factors, the K (K - 1) off-diagonal elements together
        have the same weight as K elements. The factors also account for the smaller
        number of samples per class if there are more classes. With more samples, the
        penalty has less influence. 0 gives the unpenalised fit.
    alpha_diagonal, alpha_off_diagonal, alpha_intercept : float, default=None
        Strengths of the penalty on the parts; None means `alpha`.
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
    alpha_ : float
        Strength of the ridge penalty that was used.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    provenance_ : dict
        Provenance of the fit: method, parameters, number of samples, events per class,
        versions, and a hash of the samples.
    clip_ : float
        The learned floor, or the clipping constant.
    floor_ : float
        The learned floor; 0 if there is none.
    coef_ : ndarray of shape (n_classes, n_classes)
        The matrix: row k gives the logit of class k.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts.
    inverse_temperature_ : float
        Inverse temperature at which the fit starts and toward which the penalty pulls.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range.

    See Also
    --------
    VectorScaling : Restricts the matrix to its diagonal.
    DirichletCalibration : Matrix scaling on log-probabilities.

    Notes
    -----
    ``alpha="auto"`` uses a weaker penalty only if the log-loss summed over held-out
    samples falls by more than 5 nats, and stops when it rises. With up to 16 classes,
    the fit without a given sample is approximated by one Newton step from the fit to
    all samples; with more classes, one of five folds is held out. This takes as long as
    two to eight fits. With fewer than 30 samples per class, alpha is 1.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks.
    Kull et al. (2019), Beyond temperature scaling, for separate ridges on the diagonal,
    the off-diagonal elements and the intercepts.

    Examples
    --------
    A model that mistakes one class for another in half of the cases:

    >>> import numpy as np
    >>> from skcalib import MatrixScaling
    >>> scores = np.repeat(
    ...     [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], 1000, axis=0
    ... )
    >>> y = np.repeat([0, 1, 2, 2], [1000, 500, 500, 1000])
    >>> MatrixScaling().fit(scores, y).predict_proba(scores[[0, 1000]]).round(
    ...     1
    ... ).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]
    """

    _parameter_constraints = {
        **AffineScaling._parameter_constraints,
        "alpha_diagonal": [RIDGE, None],
        "alpha_off_diagonal": [RIDGE, None],
    }

    _affine_map = MatrixMap
    _design_of = SharedFeatures.of_logits
    _fits_tensors = True
    _takes_shortcuts = True

    def __init__(
        self,
        alpha: float | Literal["auto"] = "auto",
        *,
        alpha_diagonal: float | None = None,
        alpha_off_diagonal: float | None = None,
        alpha_intercept: float | None = None,
        clip: float | Literal["auto"] | None = "auto",
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.alpha = alpha
        self.alpha_diagonal = alpha_diagonal
        self.alpha_off_diagonal = alpha_off_diagonal
        self.alpha_intercept = alpha_intercept
        self.clip = clip
        self.input = input
        self.classes = classes

    def _penalty(self, n_classes, alpha):
        """Return the ridge on each parameter (n_classes * (n_classes + 1),): alpha
        times the number of diagonal, off-diagonal or intercept parameters. It grows
        with the number of classes, as there are fewer rows for each parameter.
        """
        diagonal = n_classes * _alpha_or_default(self.alpha_diagonal, alpha)
        intercept = n_classes * _alpha_or_default(self.alpha_intercept, alpha)
        n_off_diagonal = n_classes * (n_classes - 1)
        alpha_off_diagonal = _alpha_or_default(self.alpha_off_diagonal, alpha)
        off_diagonal = n_off_diagonal * alpha_off_diagonal
        ridge = np.full((n_classes, n_classes), off_diagonal)
        np.fill_diagonal(ridge, diagonal)
        return self._affine_map.packed(ridge, np.full(n_classes, intercept))


class DirichletCalibration(MatrixScaling):
    """Dirichlet calibration: matrix scaling on log-probabilities.

    The parameters, solver and attributes are those of `MatrixScaling`, but the map is
    applied to the logarithms of the probabilities instead of centred logits. It
    therefore also depends on how confident the model is. For two classes, the family is
    that of `BetaCalibration`.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the ridge penalty, at least 0, for the parts whose strength is not
        set separately: see `MatrixScaling`. "auto" lowers it from 1 to .1 and .03, as
        long as this improves the loss on held-out samples.
    alpha_diagonal, alpha_off_diagonal, alpha_intercept : float, default=None
        Strengths of the penalty on the parts; None means `alpha`.
    clip : "auto", float or None, default="auto"
        How probabilities are kept away from 0 and 1 before conversion to log-odds.
        "auto" learns a floor f: a probability p becomes
        ``(1 - n_classes * f) * p + f``, which preserves the order of the scores. f is 0
        unless a larger value, up to .1, improves the log-likelihood by more than half a
        nat. With a number, probabilities are clipped to [clip, 1 - clip]; with None, to
        [2^-52, 1 - 2^-52].
    input : {"probability", "logit"}, default="probability"
        Scale of the scores. Logits are normalised to log-probabilities.
    classes : array-like, default=None
        Labels of the columns; required if a class is missing from the calibration set.

    Attributes
    ----------
    alpha_ : float
        Strength of the ridge penalty that was used.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    provenance_ : dict
        Provenance of the fit: method, parameters, number of samples, events per class,
        versions, and a hash of the samples.
    clip_ : float
        The learned floor, or the clipping constant.
    floor_ : float
        The learned floor; 0 if there is none.
    coef_ : ndarray of shape (n_classes, n_classes)
        The matrix: row k gives the logit of class k from the log-probabilities.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts.
    inverse_temperature_ : float
        Inverse temperature at which the fit starts and toward which the penalty pulls.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range.

    See Also
    --------
    skcalib.MatrixScaling : A linear map of the logits.
    skcalib.VectorScaling : A slope and an intercept for each class.
    skcalib.TemperatureScaling : One temperature for all logits.

    References
    ----------
    Kull, Perello-Nieto, Kaengsepp, Silva Filho, Song and Flach (2019), Beyond
    temperature scaling: obtaining well-calibrated multiclass probabilities with
    Dirichlet calibration.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib import DirichletCalibration
    >>> scores = np.full((400, 3), 1 / 3)
    >>> y = np.repeat([0, 1, 2, 2], 100)
    >>> DirichletCalibration(alpha=0).fit(scores, y).predict_proba(scores[:1]).round(
    ...     6
    ... ).tolist()
    [[0.25, 0.25, 0.5]]
    """

    _auto_alphas = (1.0, 0.1, 0.03)
    _fits_tensors = True
    _takes_shortcuts = True

    def _reference(self, logits):
        """Return what is subtracted from the logits of each row, (n,)."""
        # Logits minus their log-sum-exp are log-probabilities.
        if isinstance(logits, np.ndarray):
            return row_log_sum_exp(logits)
        return log_sum_exp(logits, axis=1)

    def _map(self, logits):
        """Return the node of the probabilities from that of the logits."""
        features = log_probabilities(logits)
        return class_probabilities(Affine(features, self.coef_, self.intercept_))
