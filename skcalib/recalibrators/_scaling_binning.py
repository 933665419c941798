"""Scaling-binning: a smooth calibration map with its output binned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from skcalib._cells.statistics import bin_statistics
from skcalib._defaults import check_fitted
from skcalib._fitting.member_fits import member_node
from skcalib._fitting.wrapped import check_recalibrator
from skcalib._inference.results import ResultRecord
from skcalib._input.classes import encode_labels
from skcalib._input.labels import check_label_vector
from skcalib._input.scalars import check_number
from skcalib._input.sklearn_private import HasMethods
from skcalib._intervals.one_probability.bins import bins
from skcalib._verdicts import level_words, rounded, rounded_outwards
from skcalib.binning import BaseBinning, UniqueScores
from skcalib.maps.checks import BINS, fitted
from skcalib.recalibrators._base import BaseRecalibrator
from skcalib.recalibrators._certified_mixin import forbid_certificates
from skcalib.recalibrators._histogram import BINNING, BinnedRecalibrator
from skcalib.recalibrators._scaling import PlattScaling

_BITS = 40  # of a forecast, by which edges tell it from another one


@dataclass(frozen=True, eq=False, repr=False)
class Verification(ResultRecord):
    """Result of `ScalingBinning.verify`.

    Parameters
    ----------
    estimate : float
        Debiased l2 calibration error.
    upper_bound : float
        One-sided bound on the error at the requested level.
    verified : bool
        Whether the bound is within the limit.
    """

    estimate: float
    upper_bound: float
    verified: bool
    # What was asked; no fields: the result unpacks as three values.
    _limits = (None, None)

    @classmethod
    def _of(cls, estimate, upper_bound, max_error, confidence_level):
        """Return the result for a limit of the error and a level."""
        result = cls(estimate, upper_bound, upper_bound <= max_error)
        object.__setattr__(result, "_limits", (max_error, confidence_level))
        return result

    def _sentences(self):
        finding = "Verified" if self.verified else "Not verified"
        max_error, level = self._limits
        where = (
            "" if max_error is None else f", against a limit of {rounded(max_error)}"
        )
        confidence = "" if level is None else f" with {level_words(level)} confidence"
        return (
            f"{finding}: the calibration error (norm 2) is at most"
            f" {rounded_outwards(self.upper_bound)}{confidence} (estimate:"
            f" {rounded(self.estimate)}){where}."
        )


class ScalingBinning(BinnedRecalibrator):
    """Scaling-binning: fit a smooth map and predict its mean in each bin.

    This method needs only slightly more samples than the smooth map alone. Because its
    predictions are binned, their calibration error can be measured: see
    `calibration_error` with ``UniqueScores``.

    Parameters
    ----------
    recalibrator : recalibrator, default=None
        The smooth map; None means ``PlattScaling()``, which minimises the log-loss as
        in the experiments in [1]_. ``PlattScaling(loss="squared")`` is step 1 as
        published in [1]_.
    binning : BaseBinning, int or None, default=None
        Strategy for the scaled scores; an int is the number of equal-mass bins, and
        None means ``EqualMass(10)``.
    sample_split : tuple of three floats, default=None
        Shares of the samples for the three steps. None uses all samples for each step,
        which works better in practice (Appendix E of [1]_).
    random_state : int, RandomState or None, default=None
        Seed for shuffling the samples before a split; None keeps their order.
    multiclass : {"ovr", "top_label"}, default="ovr"
        For K > 2 classes, whether to calibrate each class against the rest, or only the
        confidence of the predicted class.
    normalize : bool, default=True
        Whether to normalise the K one-vs-rest probabilities to sum to 1.
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
    recalibrator_ : recalibrator
        The fitted smooth map of the positive class. For K > 2 classes, this and the
        following attributes are lists with one entry per class.
    bin_edges_ : ndarray of shape (n_bins + 1,)
        Edges of the bins of the scaled scores.
    bin_values_ : ndarray of shape (n_bins,)
        Probability that each bin predicts: the mean scaled score; an empty bin predicts
        its midpoint.
    bin_counts_ : ndarray of int, shape (n_bins,)
        Number of samples from which each value was estimated.
    n_bins_ : int
        Number of bins, which may be smaller than requested: see `EqualMass`.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range.

    See Also
    --------
    skcalib.HistogramBinning : Predicts the event frequency of each bin.
    skcalib.UniformMassBinning : Bins with a certificate.
    skcalib.binning.InformationPreserving : The bins that lose the least information.

    References
    ----------
    .. [1] Kumar, Liang and Ma (2019), Verified uncertainty calibration.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib import ScalingBinning
    >>> scores = np.linspace(0.01, 0.99, 99)
    >>> model = ScalingBinning(binning=4).fit(scores, scores > 0.4)
    >>> len(np.unique(model.predict_proba(scores)[:, 1])), model.n_bins_
    (4, 4)
    """

    _parameter_constraints = {
        **BinnedRecalibrator._parameter_constraints,
        "recalibrator": [HasMethods(["fit", "predict_proba"]), None],
        "binning": BINNING,
        "sample_split": [tuple, list, None],
        "random_state": ["random_state"],
    }

    _default_objects = {
        **BinnedRecalibrator._default_objects,
        "recalibrator": PlattScaling,
    }
    _scale = "given"
    _is_step_function = False  # of the scores: it is one of the scaled scores

    _part_attributes = {**BINS, "recalibrator_": fitted}

    # for two classes; a list with one entry per class for more
    recalibrator_: BaseRecalibrator
    bin_edges_: np.ndarray
    bin_values_: np.ndarray
    bin_counts_: np.ndarray
    n_bins_: int

    def __init__(
        self,
        recalibrator: BaseEstimator | None = None,
        binning: BaseBinning | int | None = None,
        *,
        sample_split: Sequence[float] | None = None,
        random_state: int | np.random.RandomState | None = None,
        multiclass: Literal["ovr", "top_label"] = "ovr",
        normalize: bool = True,
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.recalibrator = recalibrator
        self.binning = binning
        self.sample_split = sample_split
        self.random_state = random_state
        self.multiclass = multiclass
        self.normalize = normalize
        self.input = input
        self.classes = classes

    def verify(
        self,
        scores: ArrayLike,
        y: ArrayLike,
        max_error: float,
        confidence_level: float = 0.9,
        *,
        n_resamples: int = 1000,
        sample_weight: ArrayLike | None = None,
        weight_type: Literal["frequency", "importance"] = "frequency",
        clusters: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> Verification:
        """Verify on held-out data that the calibration error is below a limit.

        The fit itself gives no guarantee, because the smooth map may be misspecified.
        However, the squared calibration error of a binned model can be estimated
        without bias.

        Parameters
        ----------
        scores : array-like with as many columns as in `fit`
            Scores of samples that were not used for fitting, searching or selecting.
        y : array-like of shape (n,)
            Labels of these samples.
        max_error : float
            Largest acceptable l2 calibration error, in (0, 1].
        confidence_level : float, default=0.9
            Level of the upper bound, in (0.5, 1).
        n_resamples : int, default=1000
            Number of label draws for the bound.
        sample_weight : array-like of shape (n,), default=None
            Weights; see `weight_type`.
        weight_type : {"frequency", "importance"}, default="frequency"
            Meaning of the weights. "frequency": a weight of 2 means two identical
            samples. "importance": each sample was observed once and represents more or
            less than one; in each cell, weights w correspond to an effective sample
            size of ``sum(w)**2 / sum(w**2)``.
        clusters : array-like of shape (n,), default=None
            Cluster of each sample; samples in the same cluster (for example, from one
            patient or match) may be dependent.
        random_state : int, RandomState or None, default=None
            Seed for the random draws.

        Returns
        -------
        verification : Verification
            Named tuple (estimate, upper_bound, verified): the debiased error, its
            one-sided bound by test inversion, and whether this bound is at most
            `max_error`. For K > 2 classes, the error is the top-label error with
            ``multiclass="top_label"``, otherwise the marginal error.

        Raises
        ------
        ValueError
            If one-vs-rest probabilities were normalised to sum to 1 and are therefore
            no longer binned, if an argument is out of range, or if there are too few
            samples for the bins.

        Warns
        -----
        UserWarning
            If weights are not integers and ``weight_type="frequency"``.

        Notes
        -----
        The bound is the upper limit of `calibration_error_interval` with
        ``interval="inverted"``. In simulations with 800 samples at level .9 and an
        error exactly at the limit, 9% to 11% of models with 2, 3 and 10 bins are
        verified. If the event frequency is the score to the power 1.6, the bound for a
        model with ten bins holds in 87% to 88% of the data sets. If all scores of a
        rare event are 1.3 times its frequency, most of the error and of the noise is in
        one bin, and the bound holds in 81% of the data sets.

        References
        ----------
        Kumar, Liang and Ma (2019), Verified uncertainty calibration, Section 5.
        """
        # Imported here, because a fit does not need the metrics.
        from skcalib.metrics import calibration_error_interval

        check_fitted(self)
        check_number(max_error, "max_error", above=0, at_most=1)
        check_number(confidence_level, "confidence_level", above=0.5, below=1)
        # Only the upper limit counts. A two-sided interval of this level has an upper
        # limit that holds at the level asked for.
        interval = calibration_error_interval(
            **self._interval_arguments(scores, y),
            binning=UniqueScores(),
            method="debiased",
            interval="inverted",
            confidence_level=2 * confidence_level - 1,
            n_resamples=n_resamples,
            sample_weight=sample_weight,
            weight_type=weight_type,
            clusters=clusters,
            random_state=random_state,
        )
        return Verification._of(
            interval.estimate, interval.high, max_error, confidence_level
        )

    def _fit_binary(self, scores, labels, sample_weight):
        """Fit a recalibrator to scores (n,) and boolean labels, bins of its output and
        their values (Kumar, Liang and Ma 2019): each on its own part of the rows, or
        all three on all rows.
        """
        if self.sample_split is not None and len(self.sample_split) != 3:
            raise ValueError(
                f"sample_split must give three fractions, found {self.sample_split!r}."
            )
        scale_rows, edge_rows, value_rows = self._split(
            self.sample_split, 3, scores, labels, sample_weight
        )
        # Rows are triples (scores, labels, weights).
        # Step 1: fit the recalibrator to the first part.
        recalibrator = check_recalibrator(self._resolved("recalibrator"))
        recalibrator.set_params(input=self.input, classes=[False, True])
        self.recalibrator_ = recalibrator.fit(*scale_rows)
        forbid_certificates(self.recalibrator_, "its forecasts are binned again.")
        # Step 2: the bins of its output for the second part.
        edge_scores, edge_labels, edge_weight = edge_rows
        scaled = self._scaled(edge_scores)
        strategy = self._strategy()
        self.bin_edges_ = strategy._edges_of(
            _without_last_digits(scaled), edge_labels, edge_weight
        )
        # Step 3: the value of a bin is the mean output of the recalibrator, not the
        # mean label, for the third part.
        value_scores, value_labels, value_weight = value_rows
        if value_scores is not edge_scores:
            scaled = self._scaled(value_scores)
        statistics = bin_statistics(
            scaled, value_labels, self.bin_edges_, value_weight, moments=1
        )
        self.bin_values_ = statistics.mean_score
        self.bin_counts_ = statistics.count
        self.n_bins_ = statistics.n_bins
        if self.sample_split is None:
            events = statistics.weighted_label
            return bins(self._limits_position, self.bin_counts_, events)
        return None

    def _limits_position(self, scores):
        return super()._limits_position(self._scaled(scores))

    def _map(self, score):
        """Return the node of the event's probability from that of the score."""
        return super()._map(member_node(self.recalibrator_, score))

    def _scaled(self, scores):
        """Return the event's probabilities (n,) by the smooth map."""
        return self.recalibrator_.predict_proba(scores)[:, 1]

    def _interval_arguments(self, scores, y):
        """Return the arguments of `calibration_error_interval` for held-out scores and
        labels: labels and binned probabilities. Raise a ValueError if normalisation
        made these take more values than there are bins.
        """
        probabilities = self.predict_proba(scores)
        y = check_label_vector(y, len(probabilities), name="y", scores_name="X")
        _, codes = encode_labels(
            y,
            len(self.classes_),
            self.classes_,
            name="y",
            classes_name="the classes of fit",
        )
        if len(self.classes_) == 2:
            return {"y_true": codes == 1, "y_proba": probabilities[:, 1]}
        if self.multiclass == "top_label":
            predicted = np.searchsorted(self.classes_, self.predict(scores))
            return {
                "y_true": codes == predicted,
                "y_proba": probabilities[np.arange(len(codes)), predicted],
            }
        if self.normalize:
            raise ValueError(
                "One-vs-rest probabilities that were normalised are no longer"
                " binned, and their squared error cannot be measured without bias. Fit"
                " with normalize=False."
            )
        labels = np.arange(len(self.classes_))
        return {
            "y_true": codes,
            "y_proba": probabilities,
            "multiclass": "marginal",
            "labels": labels,
        }


def _without_last_digits(scaled):
    """Return forecasts rounded to 40 binary digits: those by Python and by a database
    are then equal, and no edge lies between.
    """
    mantissa, exponent = np.frexp(scaled)
    digits = np.rint(mantissa * 2.0**_BITS)
    return np.ldexp(digits, exponent - _BITS)
