"""Recalibrators whose map takes features beside the score."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils.validation import validate_data

from skcalib import maps as nodes
from skcalib._fitting.side_features import SideFeatures
from skcalib._input.columns import (
    column_keys,
    column_positions,
    numeric_columns,
    select_columns,
)
from skcalib._intervals.one_probability.normal import in_units
from skcalib._intervals.one_probability.regression import regression
from skcalib._intervals.one_probability.samples import limits_of_rows
from skcalib.recalibrators._base import BaseRecalibrator

# Fitted attributes that only a fit with features has.
_ATTRIBUTES = ("feature_coef_", "feature_mean_", "feature_penalty_")


class FeatureRecalibrator(BaseRecalibrator):
    """Base of the methods with a parameter `features`: columns of X beside the scores
    that enter the log-odds, or the log of the temperature, linearly. It precedes the
    other bases.

    A subclass takes the standardised features, a `SideFeatures`, in its fit, and puts
    `_features_node` into its map. Without features nothing differs. A logistic
    regression defines ``_own_position(scores)``, the features (d, n) of scores (n,) on
    the method's scale, for its limits.
    """

    _parameter_constraints = {"features": [str, Integral, list, tuple, None]}

    _takes_features = True  # beside the scores, into the map itself

    feature_coef_: np.ndarray
    feature_mean_: np.ndarray
    feature_penalty_: float

    @property
    def _feature_keys(self):
        """The names or positions of the columns of X that are features, a list."""
        if self.features is None:
            return []
        return column_keys(self.features, name="features")

    @property
    def _score_width(self):
        return self.n_features_in_ - len(self._feature_keys)

    @property
    def _takes_validated_rows(self):
        return self.features is None and super()._takes_validated_rows

    @property
    def _predicts_validated_rows(self):
        return self.features is None and super()._predicts_validated_rows

    def _rows_of_fit(self, X, y, sample_weight, clusters):
        """Return the validated rows of a fit, `FitRows`, with the columns of the
        parameter `features` apart from the scores.
        """
        for name in _ATTRIBUTES:
            vars(self).pop(name, None)  # of an earlier fit
        if self.features is None:
            return super()._rows_of_fit(X, y, sample_weight, clusters)
        self._check_features_allowed()
        keys = self._feature_keys
        X, _ = self._in_class_order_with_columns(X, y, keys, "features")
        if not hasattr(X, "shape"):
            X = np.asarray(X, dtype=object)
        positions = column_positions(X, keys, name="features")
        features = numeric_columns(select_columns(X, positions), name="features")
        scores = select_columns(X, self._score_positions(X, keys, "features"))
        rows = super()._rows_of_fit(scores, y, sample_weight, clusters, features)
        # The names and the number of all columns, in place of those of the scores.
        validate_data(self, X, skip_check_array=True, reset=True)
        return rows

    def _check_features_allowed(self):
        """Raise a ValueError if another parameter rules features out."""

    def _fit_with_features(self, scores, codes, sample_weight, features):
        """Fit to validated scores (n, C) and features (n, d), and return the
        `LimitsMaker`.
        """
        n_classes = len(self.classes_)
        if n_classes > 2:
            raise ValueError(
                f"{type(self).__name__}(features=...) is for two classes, found"
                f" {n_classes}. Use TemperatureScaling(features=...) or"
                " MulticalibratedRecalibrator(features=...)."
            )
        scores = self._start_fit(scores, codes, sample_weight, shortcuts=None)
        score = self._binary_scores(scores)  # (n,), of the second class
        side_features = SideFeatures.of(features, sample_weight)  # standardised
        labels = codes == 1
        maker = self._fit_binary(score, labels, sample_weight, side_features)
        if self._keeps_features:
            score = np.column_stack((score, side_features.values))
        return limits_of_rows(maker, (score, labels, sample_weight))

    def _set_features(self, side_features, coef, strength):
        """Set the attributes of features from the coefficients (d,) of the standardised
        ones, a `SideFeatures`, and the strength of their ridge penalty.
        """
        self.feature_coef_ = coef / side_features.deviation
        self.feature_mean_ = side_features.mean
        self.feature_penalty_ = float(strength)

    @property
    def _keeps_features(self):
        """Whether the fit has features, and their coefficients are not 0."""
        return self.features is not None and np.isfinite(self.feature_penalty_)

    def _limits_ridge(self, n_own):
        """Return the strengths of the ridge on the parameters of the limits: `n_own` of
        the map without features, and one for each feature.
        """
        n_side = len(self.feature_coef_)
        return np.repeat([0.0, self.feature_penalty_], [n_own, n_side])

    def _in_given_units(self, maker, side_features):
        """Return the `LimitsMaker` for features as they were given, from that for the
        standardised ones, `SideFeatures`, whose parameters are the last.
        """
        units = 1 / side_features.deviation
        return maker._replace(make=lambda kept: in_units(maker.make(kept), units))

    def _centred(self, features, n_rows):
        """Return features (n, d) less their means, or (n, 0) where the limits depend on
        none.
        """
        if features is None or not self._keeps_features:
            return np.empty((n_rows, 0))
        return features - self.feature_mean_

    def _regression(self, coef, side_features):
        """Return the `LimitsMaker` of a logistic regression. `coef` (d,) are the
        coefficients of the features that `_own_position` makes of a score;
        `side_features`, a `SideFeatures` or None, are those of the user, whose
        coefficients the fit has set.
        """
        if not self._keeps_features:
            return regression(self._own_position, coef)
        # The coefficients of the standardised features. A constant one has an infinite
        # deviation, and the coefficient 0.
        deviation = side_features.deviation
        side_coef = self.feature_coef_ * np.where(np.isinf(deviation), 0.0, deviation)
        ridge = self._limits_ridge(len(coef))
        maker = regression(
            self._joined_position,
            np.append(coef, side_coef),
            np.zeros(len(ridge)),
            np.diag(ridge),
        )
        return self._in_given_units(maker, side_features)

    def _joined_position(self, columns):
        """Return the position (d, n) of columns (n, 1 + n_features): scores on the
        method's scale, and the deviations of features from their means.
        """
        return np.vstack((self._own_position(columns[:, 0]), columns[:, 1:].T))

    def _limits_position(self, scores, features=None):
        """Return the features (d, n) of the regression of the limits at scores (n,),
        with features (n, n_features) of the map.
        """
        side = self._centred(features, len(scores))
        return np.vstack((self._own_position(scores), side.T))

    def _features_node(self):
        return nodes.Features(tuple(self._feature_keys))

    def _with_features(self, node, slopes, intercept):
        """Return the node of ``slopes @ values + intercept + feature_coef_ @ (features
        - feature_mean_)``, for a node of some values.
        """
        inputs = nodes.Columns((node, self._features_node()))
        coef = np.concatenate((slopes, self.feature_coef_))
        shifted = intercept - float(self.feature_coef_ @ self.feature_mean_)
        return nodes.Affine(inputs, coef[None], np.array([shifted]))

    def _read_rows(self, X):
        """Return the validated scores (n, C) of new rows, and their features (n,
        n_features) or None.
        """
        if self.features is None:
            return super()._read_rows(X)
        scores, columns = self._scores_and_columns(
            X, self._feature_keys, "features", reset=False
        )
        return scores, numeric_columns(columns, name="features")

    def _check_attributes(self):
        """Raise a ValueError unless the attributes of features, which were read from a
        JSON document, are those of the parameter `features`.
        """
        super()._check_attributes()
        n_features = len(self._feature_keys)
        if n_features == 0:
            wanted = set()
        else:
            wanted = set(_ATTRIBUTES)
        found = vars(self).keys() & set(_ATTRIBUTES)
        if found != wanted:
            raise ValueError(
                f"a fit with {n_features} features must have the attributes"
                f" {sorted(wanted)}, found {sorted(found)}"
            )
        if wanted:
            lengths = {len(self.feature_coef_), len(self.feature_mean_)}
            if lengths != {n_features}:
                raise ValueError(f"feature_coef_ must have {n_features} entries")
