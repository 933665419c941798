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
from skcalib.recalibrators._base import BaseRecalibrator

# Fitted attributes that only a fit with features has.
_ATTRIBUTES = ("feature_coef_", "feature_mean_", "feature_penalty_")


class FeatureRecalibrator(BaseRecalibrator):
    """Base of the methods with a parameter `features`: columns of X beside the scores
    that enter the log-odds, or the log of the temperature, linearly. It precedes the
    other bases.

    A subclass takes the standardised features, a `SideFeatures`, in its fit, and puts
    `_features_node` into its map. Without features nothing differs.
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
        """Fit to validated scores (n, C) and features (n, d)."""
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
        self._fit_binary(score, codes == 1, sample_weight, side_features)

    def _set_features(self, side_features, coef, strength):
        """Set the attributes of features from the coefficients (d,) of the standardised
        ones, a `SideFeatures`, and the strength of their ridge penalty.
        """
        self.feature_coef_ = coef / side_features.deviation
        self.feature_mean_ = side_features.mean
        self.feature_penalty_ = float(strength)

    def _why_no_limits(self):
        if self.features is None:
            return super()._why_no_limits()
        return (
            "with features, the strength of their ridge penalty was chosen on the same"
            " samples; fit without features"
        )

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
