"""Platt scaling: a sigmoid of the log-odds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skcalib._fitting.partial_pooling import PooledMap, slope_unit
from skcalib._input.sklearn_private import StrOptions
from skcalib._solvers.logistic import (
    fit_logistic,
    fit_squared_sigmoid,
    location_scale,
    platt_targets,
)
from skcalib.maps import Expit, Scaled
from skcalib.maps.checks import number
from skcalib.recalibrators._features import FeatureRecalibrator
from skcalib.recalibrators._partially_pooled import PartiallyPooledRecalibrator


class PlattScaling(FeatureRecalibrator, PartiallyPooledRecalibrator):
    """Platt scaling: ``sigmoid(slope * log_odds + intercept)``.

    Parameters
    ----------
    loss : {"log", "squared"}, default="log"
        Loss to minimise. "squared" is step 1 of scaling-binning as published by Kumar
        et al. [2]_.
    smooth_targets : bool, default=True
        Whether to minimise the log-loss for Platt's targets ``(N+ + 1) / (N+ + 2)`` and
        ``1 / (N- + 2)`` instead of 1 and 0. These targets keep the slope finite if the
        classes are separable. The squared loss uses the original labels.
    features : str, int or list of these, default=None
        Columns of `X`, by name or position, that enter the log-odds linearly beside the
        score, such as an age or the length of a text. The other columns are the scores.
        Features are numbers without missing values, and require two classes and ``loss="log"``.
        Their coefficients have a ridge penalty, on the scale of standardised features,
        whose strength maximises the marginal likelihood; it may be infinite, which
        leaves the features out.
    class_pooling : float or "auto", default="auto"
        For K > 2 classes, the strength, at least 0, of the ridge penalty that pulls the
        sigmoid of each class toward a common sigmoid, which is fitted jointly to all K
        one-vs-rest problems. The term
        ``class_pooling * n_classes / 2 * ((slope / slope_all - 1)**2 + (intercept - intercept_all)**2)``
        is added to the log-loss of the class, summed over the samples. 0 fits each
        class separately, as Platt's method is usually understood, and needs several
        hundred samples per class. "auto" lowers it from 1 to .3, .1 and .03, as long as
        this improves the loss on held-out samples: see `QuadraticScaling`. With
        ``loss="squared"``, "auto" means 0, and no other value is allowed.
    clip : "auto", float or None, default="auto"
        How probabilities are kept away from 0 and 1 before conversion to log-odds.
        "auto" learns a floor f: a probability p becomes
        ``(1 - n_classes * f) * p + f``, which preserves the order of the scores. f is 0
        unless a larger value, up to .1, improves the log-likelihood by more than half a
        nat. With a number, probabilities are clipped to [clip, 1 - clip]; with None, to
        [2^-52, 1 - 2^-52].
    multiclass : {"ovr", "top_label"}, default="ovr"
        For K > 2 classes, whether to calibrate each class against the rest, or only the
        confidence of the predicted class.
    normalize : bool, default=True
        Whether to normalise the K one-vs-rest probabilities to sum to 1.
    input : {"probability", "logit"}, default="probability"
        Scale of the scores. A single column of logits is the log-odds of the positive
        class, such as the values of a `decision_function`.
    classes : array-like, default=None
        Labels of the columns; required if a class is missing from the calibration set.

    Attributes
    ----------
    class_pooling_ : float
        Strength of the ridge penalty that was used; 0 for two classes and for top-label
        calibration.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    provenance_ : dict
        Provenance of the fit: method, parameters, number of samples, events per class,
        versions, and a hash of the samples.
    clip_ : float
        The learned floor, or the clipping constant.
    floor_ : float
        The learned floor; 0 if there is none.
    slope_, intercept_ : float
        Parameters of the sigmoid. For K > 2 classes, these are lists with one entry per
        class.
    feature_coef_ : ndarray of shape (n_features,)
        Change of the calibrated log-odds per unit of each feature. This attribute and
        the next two exist only if `features` is given.
    feature_mean_ : ndarray of shape (n_features,)
        Mean of each feature, at which it changes nothing.
    feature_penalty_ : float
        The selected strength of the ridge penalty; infinity if the features are left
        out.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range.

    See Also
    --------
    skcalib.BetaCalibration : Two slopes and an intercept, with a separate slope for
        each end of the map.
    skcalib.QuadraticScaling : A parabola in the log-odds.
    skcalib.TemperatureScaling : One temperature for all logits.
    skcalib.GroupwiseRecalibrator : A separate map for each group.
    skcalib.MulticalibratedRecalibrator : Corrections by trees on any features.

    Notes
    -----
    With ``clip=None``, ``smooth_targets=True`` and ``input="logit"``, the fit to values
    of a `decision_function` is the same as in scikit-learn's
    ``CalibratedClassifierCV(method="sigmoid")``. With a learned floor above 0, the two
    fits differ.

    References
    ----------
    .. [1] Platt (1999), Probabilistic outputs for support vector machines.
    .. [2] Kumar, Liang and Ma (2019), Verified uncertainty calibration.

    Examples
    --------
    For scores whose log-odds are twice as large as they should be, the slope is 1/2.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib import PlattScaling
    >>> log_odds = np.repeat([-2.0, 2.0], 1000)
    >>> y = np.arange(2000) % 1000 < np.repeat(
    ...     [1000 * expit(-1), 1000 * expit(1)], 1000
    ... )
    >>> platt = PlattScaling(input="logit").fit(log_odds, y)
    >>> round(platt.slope_, 2), round(abs(platt.intercept_), 2)
    (0.5, 0.0)

    A model that does not know the age of its patients, whose log-odds of an event rise
    by .05 per year:

    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack((rng.normal(size=5000), rng.uniform(40, 80, 5000)))
    >>> y = rng.random(5000) < expit(X[:, 0] + 0.05 * (X[:, 1] - 60))
    >>> aged = PlattScaling(features=1, input="logit").fit(X, y)
    >>> aged.feature_coef_.round(2).tolist()
    [0.05]
    >>> aged.predict_proba([[0.0, 50], [0.0, 80]])[:, 1].round(1).tolist()
    [0.4, 0.7]
    """  # noqa: E501

    _parameter_constraints = {
        **FeatureRecalibrator._parameter_constraints,
        **PartiallyPooledRecalibrator._parameter_constraints,
        "loss": [StrOptions({"log", "squared"})],
        "smooth_targets": ["boolean"],
    }

    _part_attributes = {"slope_": number, "intercept_": number}

    # for two classes; a list with one entry per class for more
    slope_: float
    intercept_: float

    def __init__(
        self,
        *,
        loss: Literal["log", "squared"] = "log",
        smooth_targets: bool = True,
        features: str | int | Sequence[str | int] | None = None,
        class_pooling: float | Literal["auto"] = "auto",
        clip: float | Literal["auto"] | None = "auto",
        multiclass: Literal["ovr", "top_label"] = "ovr",
        normalize: bool = True,
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.loss = loss
        self.smooth_targets = smooth_targets
        self.features = features
        self.class_pooling = class_pooling
        self.clip = clip
        self.multiclass = multiclass
        self.normalize = normalize
        self.input = input
        self.classes = classes

    @property
    def _needs_classes(self):
        """Which classes must occur in the rows of a fit: "all", any "two", or "any"."""
        # Smoothed targets keep the fit finite, also with rows of one class alone.
        if self._smooths_targets:
            return "any"
        return super()._needs_classes

    @property
    def _pools_classes(self):
        """Whether the maps of several classes are held near a common one."""
        # "auto" pools only what has a log-loss to compare poolings by.
        is_wanted = self.loss == "log" or self.class_pooling != "auto"
        return is_wanted and super()._pools_classes

    @property
    def _smooths_targets(self):
        """Whether Platt's targets take the place of the labels."""
        return self.loss == "log" and self.smooth_targets

    def _check_features_allowed(self):
        if self.loss == "squared":
            raise ValueError("features require loss='log', found loss='squared'.")

    def _fit_binary(self, log_odds, labels, sample_weight, side_features=None):
        """Fit a logistic regression on the log-odds (n,), and on `side_features`, a
        `SideFeatures` or None, to boolean labels (n,); return the `LimitsMaker`.
        """
        # On centred and scaled log-odds both coefficients are of the size of 1.
        centre, scale = location_scale(log_odds, sample_weight)
        position = (log_odds - centre) / scale
        if self.loss == "squared":
            slope, at_centre = fit_squared_sigmoid(position, labels, sample_weight)
        else:
            targets = labels
            if self._smooths_targets:
                targets = platt_targets(labels, sample_weight)

            def features(rows):
                return _affine_features(position[rows])

            samples = (features, targets, sample_weight)
            if side_features is None:
                slope, at_centre = fit_logistic(*samples)
            else:
                fit = side_features.fit_logistic(*samples)
                (slope, at_centre), side_coef, strength = fit
                self._set_features(side_features, side_coef, strength)
        # Slope and intercept for log-odds that are neither centred nor scaled.
        self.slope_ = float(slope / scale)
        self.intercept_ = float(at_centre - slope * centre / scale)
        return self._regression([self.slope_, self.intercept_], side_features)

    def _own_position(self, scores):
        return _affine_features(scores)

    def _fit_pooled(self, problems):
        """Return the `PooledMap`: one logistic regression, fitted to the
        `ClassProblems` of all classes together, to which `class_pooling` pulls the
        coefficients of each.
        """
        if self.loss == "squared":
            raise ValueError(
                "class_pooling > 0 requires log-loss: with loss='squared', use"
                f" class_pooling=0, found {self.class_pooling!r}."
            )
        coef = problems.fit_pooled(_affine_features, self.smooth_targets)
        # The ridge is on |distance @ (coef - pooled coef)|^2: deviations of a slope are
        # divided by the pooled slope, those of an intercept count as they are.
        slope, _ = coef
        distance = np.diag([1 / slope_unit(slope, problems), 1.0])
        return PooledMap(
            _affine_features, coef, distance, smooth_targets=self.smooth_targets
        )

    def _set_map(self, coef):
        self.slope_, self.intercept_ = coef.tolist()

    def _map(self, log_odds):
        """Return the node of the event's probability from that of the score."""
        if self.features is not None:
            slopes = np.array([self.slope_])
            return Expit(self._with_features(log_odds, slopes, self.intercept_))
        return Expit(Scaled(log_odds, self.slope_, self.intercept_))


def _affine_features(log_odds):
    """Return the features of a slope and an intercept, (2, n)."""
    return np.stack((log_odds, np.ones(len(log_odds))))
