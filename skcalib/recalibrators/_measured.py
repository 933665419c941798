"""Base of the recalibrators that measure in their fit what they gain."""

from __future__ import annotations

from typing import Literal, Self

from numpy.typing import ArrayLike

from skcalib._defaults import unchanged_if_refused
from skcalib._fitting.gains import Design
from skcalib._input.label_weights import (
    is_importance,
    label_weights,
    warn_of_counts,
)
from skcalib._intervals.influence import cluster_codes
from skcalib.recalibrators._base import BaseRecalibrator


class MeasuredRecalibrator(BaseRecalibrator):
    """Base of the recalibrators whose fit has a `gain_`.

    A subclass defines ``_fit_measured(scores, codes, design)``, where `design` says
    what weights mean and which samples depend on each other.
    """

    # Whether the fit warns of weights that are no counts.
    _warns_of_weights = True

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        weight_type: Literal["frequency", "importance"] = "frequency",
        clusters: ArrayLike | None = None,
    ) -> Self:
        """Fit the calibration map, and measure its gain on held-out samples.

        Parameters
        ----------
        X : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
            Scores: probabilities or, with ``input="logit"``, log-odds or logits.
            Columns are in the sorted order of the classes.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), default=None
            Weights; see `weight_type`.
        weight_type : {"frequency", "importance"}, default="frequency"
            Meaning of the weights. "frequency": a weight of 2 means two identical
            samples. "importance": each sample was observed once and represents more or
            less than one; multiplying all weights by one factor then changes nothing.
        clusters : array-like of shape (n,), default=None
            Cluster of each sample: dependent samples (from the same patient or match)
            share a value, and lie in the same fold.

        Returns
        -------
        self : object
            The fitted recalibrator.

        Raises
        ------
        ValueError
            If scores, labels, weights or clusters are inconsistent. The message gives
            the reason and the first offending row.

        Warns
        -----
        UserWarning
            If weights are not integers and ``weight_type="frequency"``.
        """
        importance = is_importance(weight_type)
        self._validate_params()
        with unchanged_if_refused(self):
            rows = self._rows_of_fit(X, y, sample_weight, clusters)
            labels = rows.codes
            if len(self.classes_) == 2:
                labels = labels == 1
            weight = rows.sample_weight
            if weight is not None and importance:
                # Scaled so that they add up to the effective number of samples.
                weight = label_weights(labels, weight).row_factor * weight
            elif self._warns_of_weights:
                warn_of_counts(labels, weight)
            cluster = None
            if rows.clusters is not None:
                cluster = cluster_codes(rows.clusters)
            design = Design(weight, importance, cluster)
            maker = self._fit_measured(rows.scores, rows.codes, design)
            self._keep_fit(rows, maker, weight_type)
        return self

    def _fit_scores(self, scores, codes, sample_weight):
        """Fit to validated samples: independent ones, whose weights are counts."""
        return self._fit_measured(scores, codes, Design(sample_weight))
