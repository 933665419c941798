"""Histogram binning and scaling-binning: piecewise constant calibration maps."""

from numbers import Real

import numpy as np

from skcalib._bin_statistics import BinStatistics
from skcalib._links import expit
from skcalib._validation import HasMethods, Interval
from skcalib.binning import EqualMass, EqualWidth, FixedEdges, assign_bins, check_binning
from skcalib.recalibrators._base import BinaryRecalibrator
from skcalib.recalibrators._certified import CertifiedMixin, certify_independent_bins
from skcalib.recalibrators._scaling import PlattScaling
from skcalib.recalibrators._splitting import split_rows


class BinnedRecalibrator(BinaryRecalibrator):
    """Base of the methods that predict one value a bin."""

    _default_objects = {"binning": lambda: EqualMass(10)}
    _fits_missing_class = True

    _parameter_constraints = {
        **BinaryRecalibrator._parameter_constraints,
        "binning": [HasMethods("bin_edges"), Interval(Real, 1, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    def _strategy(self):
        return check_binning(self.binning, self._default_objects["binning"]())

    def _predict_binary(self, scores):
        return self.bin_values_[assign_bins(scores, self.bin_edges_)]


class HistogramBinning(CertifiedMixin, BinnedRecalibrator):
    """Histogram binning: the calibrated probability is the event frequency of the score's bin.

    Parameters
    ----------
    binning : BaseBinning, int or None, default=None
        Strategy; an int means so many equal-mass bins, None ``EqualMass(10)``.
    sample_split : float, default=None
        Share of the rows that place the bins; the others give the frequencies. None uses all rows for both. 0.5 with
        equal-mass bins is uniform-mass binning with sample splitting (UMS).
    smoothing : float, default=0.0
        Pseudo-counts at the base rate added to each bin, so that log-loss stays finite; 1 is a mild choice.
    random_state : int, RandomState or None, default=None
        Shuffles the rows before a split; None takes them in the order in which they come.
    input : {"probability", "logit"}, default="probability"
        What the scores are. One column of logits is the log-odds of the positive class.
    classes : array-like, default=None
        Labels of the columns, for a calibration set in which a class is missing.
    multiclass : {"ovr", "top_label"}, default="ovr"
        K > 2 classes: each against the rest, or the confidence of the predicted class alone.
    normalize : bool, default=True
        Whether the K one-vs-rest probabilities are made to sum to 1.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    bin_edges_ : ndarray of shape (n_bins + 1,)
        Edges, on the scale of the scores. For K > 2 classes these four are lists with one entry a class.
    bin_values_ : ndarray of shape (n_bins,)
        Probability that each bin predicts; an empty bin predicts its midpoint.
    bin_counts_ : ndarray of int, shape (n_bins,)
        Rows behind each value.
    bin_positives_ : ndarray of shape (n_bins,)
        Events among them (with weights their weight).
    n_bins_ : int
        Number of bins, which may be smaller than asked for: see `EqualMass`.

    References
    ----------
    Zadrozny and Elkan (2001), Obtaining calibrated probability estimates from decision trees and naive Bayesian
    classifiers. Gupta and Ramdas (2021), Distribution-free calibration guarantees for histogram binning without
    sample splitting.

    Examples
    --------
    With one bin the forecast is the base rate.

    >>> from skcalib import HistogramBinning
    >>> HistogramBinning(binning=1).fit([0.1, 0.3, 0.7, 0.9], [0, 0, 1, 0]).predict_proba([0.8]).tolist()
    [[0.75, 0.25]]
    """

    _parameter_constraints = {
        **BinnedRecalibrator._parameter_constraints,
        "sample_split": [Interval(Real, 0, 1, closed="neither"), None],
        "smoothing": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        binning=None,
        *,
        sample_split=None,
        smoothing=0.0,
        random_state=None,
        input="probability",
        classes=None,
        multiclass="ovr",
        normalize=True,
    ):
        self.binning = binning
        self.sample_split = sample_split
        self.smoothing = smoothing
        self.random_state = random_state
        self.input = input
        self.classes = classes
        self.multiclass = multiclass
        self.normalize = normalize

    @property
    def _scale(self):
        return "probability" if self._strategy().needs_unit_interval else "given"

    def _fit_binary(self, scores, labels, sample_weight):
        on_log_odds = self._scale == "given" and self.input == "logit"
        edge_rows, value_rows = self._split(scores, labels, sample_weight)
        support = (-np.inf, np.inf) if on_log_odds else (0.0, 1.0)
        self.bin_edges_ = self._strategy().bin_edges(*edge_rows, support=support)
        statistics = BinStatistics.from_scores(*value_rows[:2], self.bin_edges_, value_rows[2])
        self.bin_values_ = self._bin_values(statistics, expit(self.bin_edges_) if on_log_odds else self.bin_edges_)
        self.bin_counts_, self.bin_positives_ = statistics.count, statistics.weighted_label
        self.n_bins_ = statistics.n_bins
        self._weighted_ = sample_weight is not None

    def _issue_certificate(self, problems, **promise):
        strategy = self._strategy()
        if any(part._weighted_ for part in problems):
            raise ValueError(
                "No certificate: the recalibrator was fitted with sample_weight, which the theory has not."
            )
        if self.smoothing > 0:
            raise ValueError(
                f"No certificate: smoothing={self.smoothing} moves the values off the event frequencies. Fit with "
                "smoothing=0."
            )
        if self.sample_split is not None:
            return certify_independent_bins(problems, "split", **promise)
        if not isinstance(strategy, EqualWidth | FixedEdges):
            raise ValueError(
                f"No certificate: the edges of {strategy} depend on the rows that give the values"
                f"{', even on their labels' if strategy.needs_labels else ''}. Use sample_split=0.5, fixed edges, or "
                "UniformMassBinning."
            )
        return certify_independent_bins(problems, "fixed", **promise)

    def _split(self, scores, labels, sample_weight):
        """Return (scores, labels, weights) of the rows that place the edges and of those that give the values."""
        if self.sample_split is None:
            return [(scores, labels, sample_weight)] * 2
        parts = split_rows(labels, (self.sample_split, 1 - self.sample_split), self.random_state)
        return [take_rows(part, scores, labels, sample_weight) for part in parts]

    def _bin_values(self, statistics, unit_edges):
        base_rate = statistics.weighted_label.sum() / statistics.weight.sum()
        midpoint = (unit_edges[:-1] + unit_edges[1:]) / 2
        weight = statistics.weight + self.smoothing
        events = statistics.weighted_label + self.smoothing * base_rate
        return np.divide(events, weight, out=midpoint, where=weight > 0)


class ScalingBinning(BinnedRecalibrator):
    """Scaling-binning: fit a smooth map, bin its output, predict the mean output of each bin.

    As sample-efficient as the smooth map and, being binned, with an error that can be measured: see
    `calibration_error` with ``UniqueScores``.

    Parameters
    ----------
    scaler : recalibrator, default=None
        The scaling family; None means ``PlattScaling()``, which minimises log-loss as the experiments of [1]_ do.
        ``PlattScaling(loss="squared")`` is step 1 as printed there.
    binning : BaseBinning, int or None, default=None
        Strategy for the scaled scores; an int means so many equal-mass bins, None ``EqualMass(10)``.
    sample_split : tuple of three floats, default=None
        Shares of the rows for the three steps. None uses all rows for each, which works better in practice
        (Appendix E of [1]_).
    random_state : int, RandomState or None, default=None
        Shuffles the rows before a split; None takes them in the order in which they come.
    input : {"probability", "logit"}, default="probability"
        What the scores are. One column of logits is the log-odds of the positive class.
    classes : array-like, default=None
        Labels of the columns, for a calibration set in which a class is missing.
    multiclass : {"ovr", "top_label"}, default="ovr"
        K > 2 classes: each against the rest, or the confidence of the predicted class alone.
    normalize : bool, default=True
        Whether the K one-vs-rest probabilities are made to sum to 1.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    scaler_ : recalibrator
        The fitted smooth map of the positive class. For K > 2 classes this and the following are lists with one
        entry a class.
    bin_edges_ : ndarray of shape (n_bins + 1,)
        Edges of the bins of the scaled scores.
    bin_values_ : ndarray of shape (n_bins,)
        Probability that each bin predicts: the mean scaled score; an empty bin predicts its midpoint.
    bin_counts_ : ndarray of int, shape (n_bins,)
        Rows behind each value.
    n_bins_ : int
        Number of bins, which may be smaller than asked for: see `EqualMass`.

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

    _default_objects = {**BinnedRecalibrator._default_objects, "scaler": PlattScaling}
    _scale = "given"

    _parameter_constraints = {
        **BinnedRecalibrator._parameter_constraints,
        "scaler": [HasMethods(["fit", "predict_proba"]), None],
        "sample_split": [tuple, list, None],
    }

    def __init__(
        self,
        scaler=None,
        binning=None,
        *,
        sample_split=None,
        random_state=None,
        input="probability",
        classes=None,
        multiclass="ovr",
        normalize=True,
    ):
        self.scaler = scaler
        self.binning = binning
        self.sample_split = sample_split
        self.random_state = random_state
        self.input = input
        self.classes = classes
        self.multiclass = multiclass
        self.normalize = normalize

    def _fit_binary(self, scores, labels, sample_weight):
        scale_rows, edge_rows, value_rows = self._split(scores, labels, sample_weight)
        # Step 1: fit the scaling family on T1.
        self.scaler_ = self._resolved("scaler").set_params(input=self.input, classes=[False, True])
        self.scaler_.fit(*scale_rows)
        # Step 2: uniform-mass bins of its output on T2.
        scaled, *rest = self._scaled(edge_rows[0]), *edge_rows[1:]
        self.bin_edges_ = self._strategy().bin_edges(scaled, *rest)
        # Step 3: the value of a bin is the mean of its output, not of the labels, on T3.
        statistics = BinStatistics.from_scores(
            self._scaled(value_rows[0]), value_rows[1], self.bin_edges_, value_rows[2]
        )
        self.bin_values_ = statistics.mean_score
        self.bin_counts_ = statistics.count
        self.n_bins_ = statistics.n_bins

    def _predict_binary(self, scores):
        return super()._predict_binary(self._scaled(scores))

    def _scaled(self, scores):
        return self.scaler_.predict_proba(scores)[:, 1]

    def _split(self, scores, labels, sample_weight):
        """Return (scores, labels, weights) of the rows of the three steps."""
        if self.sample_split is None:
            return [(scores, labels, sample_weight)] * 3
        if len(self.sample_split) != 3:
            raise ValueError(f"sample_split must give three fractions, found {self.sample_split!r}.")
        parts = split_rows(labels, self.sample_split, self.random_state)
        return [take_rows(part, scores, labels, sample_weight) for part in parts]


def take_rows(rows, scores, labels, sample_weight):
    """Return the given rows of scores, labels and weights (which may be None)."""
    return scores[rows], labels[rows], None if sample_weight is None else sample_weight[rows]
