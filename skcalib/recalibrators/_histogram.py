"""Histogram binning: a piecewise constant calibration map."""

from dataclasses import KW_ONLY
from numbers import Real

import numpy as np
from scipy.special import expit

from skcalib._cells.reductions import BinaryTask
from skcalib._cells.statistics import bin_statistics
from skcalib._input.sklearn_private import RANDOM_STATE, Interval
from skcalib.binning import EqualWidth, FixedEdges
from skcalib.recalibrators._attributes import BINS, amounts, flag
from skcalib.recalibrators._binned import BINNING, BinnedRecalibrator
from skcalib.recalibrators._certified import CertifiedMixin, certify_independent_bins


class HistogramBinning(CertifiedMixin, BinnedRecalibrator):
    """Histogram binning: the calibrated probability is the event frequency of the score's bin.

    Parameters
    ----------
    binning : BaseBinning, int or None, default=None
        Strategy; an int is a number of equal-mass bins, None ``EqualMass(10)``.
    sample_split : float, default=None
        Share of the rows that place the bins; the others give the frequencies. None uses all rows for both. 0.5 with
        equal-mass bins is uniform-mass binning with sample splitting (UMS).
    smoothing : float, default=0.0
        Pseudo-counts at the base rate added to each bin, so that log-loss stays finite; 1 is a mild choice.
    random_state : int, RandomState or None, default=None
        Shuffles the rows before a split; None takes them in the order in which they come.
    multiclass : {"ovr", "top_label"}, default="ovr"
        K > 2 classes: each against the rest, or the confidence of the predicted class alone.
    normalize : bool, default=True
        Whether the K one-vs-rest probabilities are made to sum to 1.
    input : {"probability", "logit"}, default="probability"
        What the scores are. One column of logits is the log-odds of the positive class.
    classes : array-like, default=None
        Labels of the columns, for a calibration set in which a class is missing.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    provenance_ : dict
        Where the fit comes from: method, parameters, rows, events by class, versions, and a hash of the rows.
    bin_edges_ : ndarray of shape (n_bins + 1,)
        Edges, on the scale of the scores. For K > 2 classes these four are lists with one entry per class.
    bin_values_ : ndarray of shape (n_bins,)
        Probability that each bin predicts; an empty bin predicts its midpoint.
    bin_counts_ : ndarray of int, shape (n_bins,)
        Rows behind each value.
    bin_positives_ : ndarray of shape (n_bins,)
        Events among them (with weights their weight).
    n_bins_ : int
        Number of bins, which may be smaller than asked for: see `EqualMass`.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or not what `input` says, `y` has another length or only one class, or a
        parameter is out of its range.

    See Also
    --------
    skcalib.UniformMassBinning : Bins with a certificate.
    skcalib.ScalingBinning : A smooth map whose values are then binned.
    skcalib.binning.EqualMass : Bins with equally many rows.

    References
    ----------
    Zadrozny and Elkan (2001), Obtaining calibrated probability estimates from decision trees and naive Bayesian
    classifiers. Gupta and Ramdas (2021), Distribution-free calibration guarantees for histogram binning without
    sample splitting.

    Examples
    --------
    Events of score s happen with probability s^2. Five bins of 200 rows each:

    >>> import numpy as np
    >>> from skcalib import HistogramBinning
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(1000)
    >>> y = rng.random(1000) < scores**2
    >>> histogram = HistogramBinning(binning=5).fit(scores, y)
    >>> histogram.predict_proba([0.1, 0.5, 0.9])[:, 1].round(2).tolist()
    [0.03, 0.31, 0.86]
    """

    binning: BINNING = None
    _: KW_ONLY
    sample_split: [Interval(Real, 0, 1, closed="neither"), None] = None
    smoothing: [Interval(Real, 0, None, closed="left")] = 0.0
    random_state: [RANDOM_STATE] = None

    _part_attributes = {**BINS, "bin_positives_": amounts, "_weighted_": flag}

    @property
    def _scale(self):
        return "probability" if self._strategy().needs_unit_interval else "given"

    def _fit_binary(self, scores, labels, sample_weight):
        on_log_odds = self._scale == "given" and self.input == "logit"
        fractions = None if self.sample_split is None else (self.sample_split, 1 - self.sample_split)
        edge_rows, value_rows = self._split(fractions, 2, scores, labels, sample_weight)
        support = (-np.inf, np.inf) if on_log_odds else (0.0, 1.0)
        if self.sample_split is None and not on_log_odds:
            edge_rows = value_rows = BinaryTask(*edge_rows).sorted_for(self._strategy())
        edges = self._strategy()._edges_of(*edge_rows, support=support)
        statistics = bin_statistics(*value_rows[:2], edges, value_rows[2], moments=0)
        self._set_bins(statistics, weighted=sample_weight is not None, on_log_odds=on_log_odds)

    def _set_bins(self, statistics, *, weighted, on_log_odds=False):
        self.bin_edges_ = edges = statistics.edges
        self.bin_values_ = self._bin_values(statistics, expit(edges) if on_log_odds else edges)
        self.bin_counts_, self.bin_positives_ = statistics.count, statistics.weighted_label
        self.n_bins_ = statistics.n_bins
        self._weighted_ = weighted

    def _issue_certificate(self, problems, **promise):
        strategy = self._strategy()
        if any(part._weighted_ for part in problems):
            raise ValueError(
                "No certificate: the recalibrator was fitted with sample_weight, which the theory does not cover."
            )
        if self.smoothing > 0:
            raise ValueError(
                f"No certificate: smoothing={self.smoothing} moves the values off the event frequencies. Fit with "
                "smoothing=0."
            )
        if self.sample_split is not None:
            return certify_independent_bins(problems, "split", **promise)
        if type(strategy) not in (EqualWidth, FixedEdges):  # a class of one's own may look at the rows
            raise ValueError(
                f"No certificate: the edges of {strategy} depend on the rows that give the values"
                f"{', even on their labels' if strategy.needs_labels else ''}. Use sample_split=0.5, fixed edges, or "
                "UniformMassBinning."
            )
        return certify_independent_bins(problems, "fixed", **promise)

    def _bin_values(self, statistics, unit_edges):
        base_rate = statistics.weighted_label.sum() / statistics.weight.sum()
        midpoint = (unit_edges[:-1] + unit_edges[1:]) / 2
        weight = statistics.weight + self.smoothing
        events = statistics.weighted_label + self.smoothing * base_rate
        return np.divide(events, weight, out=midpoint, where=weight > 0)
