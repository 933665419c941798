"""Histogram binning: a piecewise constant calibration map; and the base of the methods
that predict a value per bin.
"""

from __future__ import annotations

from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.utils import check_random_state

from skcalib import maps as nodes
from skcalib._cells.statistics import bin_statistics
from skcalib._cells.tasks import BinaryTask
from skcalib._defaults import ParameterHints
from skcalib._input.sklearn_private import HasMethods, Interval
from skcalib._input.warn import warn
from skcalib._intervals.one_probability.bins import bins
from skcalib._rows.blocks import taken
from skcalib.binning import (
    BaseBinning,
    EqualMass,
    EqualWidth,
    FixedEdges,
    check_binning,
)
from skcalib.binning._base import assign_bins
from skcalib.maps import step_function
from skcalib.maps.checks import BINS, amounts, check_bins, flag
from skcalib.recalibrators._binary import BinaryRecalibrator
from skcalib.recalibrators._certified_mixin import (
    CertifiedMixin,
    certify_independent_bins,
)

BINNING = [HasMethods("bin_edges"), Interval(Real, 1, None, closed="left"), None]
# A difference between the parts' event frequencies beyond this many standard errors
# means rows that are sorted.
_SORTED_Z = 5.0
# The probability at these log-odds is 0 or 1 in float64, and so many halvings of
# [-750, 750] lead to neighbours in float64.
_CERTAIN_LOG_ODDS = 750.0
_HALVINGS = 80


class BinnedRecalibrator(ParameterHints, BinaryRecalibrator):
    """Base of the methods that predict one value per bin.

    `_fit_binary` of a subclass sets `bin_edges_` (n_bins + 1,) and `bin_values_`
    (n_bins,).
    """

    _default_objects = {"binning": lambda: EqualMass(10)}
    _hints = {
        "n_bins": (
            "binning=EqualMass(10) or another strategy of skcalib.binning; binning=10"
            " means the same, and binning__n_bins=10 in set_params and searches"
        ),
        "strategy": (
            'binning=EqualMass(10) for "quantile", binning=EqualWidth(10) for "uniform"'
        ),
    }
    _needs_classes = "any"
    _is_step_function = True

    def _strategy(self):
        return check_binning(self.binning, self._default_objects["binning"]())

    def _split(self, fractions, n_steps, scores, labels, weight):
        """Return the (scores, labels, weights) of each of the `n_steps` steps of a fit:
        all rows, or parts with these `fractions`.
        """
        if fractions is None:
            return [(scores, labels, weight)] * n_steps
        rows_of_steps = []
        for rows in _split_rows(labels, fractions, self.random_state):
            rows_of_steps.append((scores[rows], labels[rows], taken(weight, rows)))
        return rows_of_steps

    def _limits_position(self, scores):
        return assign_bins(scores, self.bin_edges_)

    def _why_no_limits(self):
        if getattr(self, "sample_split", None) is not None:
            return (
                "with sample_split the edges vary, too; without it, the limits are"
                " those of the event frequency in each bin"
            )
        return super()._why_no_limits()

    def _check_attributes(self):
        """Raise a ValueError unless the fitted attributes, which were read from a JSON
        document, are consistent with each other.
        """
        check_bins(self)

    def _map(self, score):
        """Return the map from score to probability as a `Node`: a step function
        with a step for each bin.
        """
        cuts = self.bin_edges_[1:-1]
        # If the score is computed from log-odds, these are compared with log-odds of
        # the cuts: databases and other engines round the exponential differently.
        if isinstance(score, nodes.Expit):
            score = score.of
            cuts = _log_odds_up_to(cuts)
        return step_function(score, cuts, self.bin_values_)


def _log_odds_up_to(probabilities):
    """Return the largest log-odds z (n,) for which ``expit(z)``, in floating point, is
    at most each probability.
    """
    low = np.full(len(probabilities), -_CERTAIN_LOG_ODDS)
    high = np.full(len(probabilities), _CERTAIN_LOG_ODDS)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        does_not_exceed = expit(middle) <= probabilities
        low = np.where(does_not_exceed, middle, low)
        high = np.where(does_not_exceed, high, middle)
    return low


def _split_rows(labels, fractions, random_state=None):
    """Return the row indices of consecutive parts with shares `fractions` of the
    samples, first shuffled if `random_state` is given. Each part has at least one row.

    Warn if the boolean labels are sorted, and the samples are not shuffled. Raise a
    ValueError for fractions that are not positive or do not sum to 1, and for fewer
    samples than parts.
    """
    n_rows = len(labels)
    are_positive = all(isinstance(share, Real) and share > 0 for share in fractions)
    if not are_positive or abs(sum(fractions) - 1) > 1e-9:
        raise ValueError(
            "sample_split must give positive fractions that sum to 1, found"
            f" {fractions!r}."
        )
    if n_rows < len(fractions):
        raise ValueError(
            f"A split into {len(fractions)} parts needs at least as many rows, found"
            f" {n_rows}."
        )
    # The ends of all parts but the last, rounded. Each part has at least one row, so
    # that an end leaves enough rows for the parts before and after it.
    n_parts = len(fractions)
    ends = np.rint(np.cumsum(fractions)[:-1] * n_rows).astype(int)
    n_parts_before = np.arange(1, n_parts)
    n_parts_after = np.arange(n_parts - 1, 0, -1)
    ends = np.clip(ends, n_parts_before, n_rows - n_parts_after)
    if random_state is None:
        _warn_if_sorted(labels, ends[0])
        order = np.arange(n_rows)
    else:
        order = check_random_state(random_state).permutation(n_rows)
    return np.split(order, ends)


def _warn_if_sorted(labels, end):
    """Warn if the first `end` rows have another event frequency than the rest, beyond
    chance.
    """
    first = labels[:end].mean()
    rest = labels[end:].mean()
    pooled = labels.mean()
    # The standard error of the difference for rows in a random order.
    standard_error = np.sqrt(
        pooled * (1 - pooled) * (1 / end + 1 / (len(labels) - end))
    )
    if abs(first - rest) > _SORTED_Z * standard_error:
        warn(
            f"The event frequency is {first:.3g} in the first part of the rows and"
            f" {rest:.3g} in the others: they seem to be sorted, which makes a sample"
            " split invalid. Shuffle them, or set random_state to an int."
        )


class HistogramBinning(CertifiedMixin, BinnedRecalibrator):
    """Histogram binning: each bin predicts its event frequency.

    Parameters
    ----------
    binning : BaseBinning, int or None, default=None
        Binning strategy; an int is the number of equal-mass bins, and None means
        ``EqualMass(10)``.
    sample_split : float, default=None
        Share of the samples used to place the bins; the remaining samples are used to
        estimate the frequencies. None uses all samples for both. 0.5 with equal-mass
        bins is uniform-mass binning with sample splitting (UMS).
    smoothing : float, default=0.0
        Number of pseudo-observations, at the base rate, added to each bin so that the
        log-loss remains finite; 1 gives mild smoothing.
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
    bin_edges_ : ndarray of shape (n_bins + 1,)
        Edges, on the scale of the scores. For K > 2 classes, this and the next three
        attributes are lists with one entry per class.
    bin_values_ : ndarray of shape (n_bins,)
        Probability that each bin predicts; an empty bin predicts its midpoint.
    bin_counts_ : ndarray of int, shape (n_bins,)
        Number of samples from which each value was estimated.
    bin_positives_ : ndarray of shape (n_bins,)
        Number of events among these samples (with weights, their total weight).
    n_bins_ : int
        Number of bins, which may be smaller than requested: see `EqualMass`.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range.

    See Also
    --------
    skcalib.UniformMassBinning : Bins with a certificate.
    skcalib.ScalingBinning : A smooth map whose outputs are then binned.
    skcalib.binning.EqualMass : Bins with equal numbers of samples.

    References
    ----------
    Zadrozny and Elkan (2001), Obtaining calibrated probability estimates from decision
    trees and naive Bayesian classifiers. Gupta and Ramdas (2021), Distribution-free
    calibration guarantees for histogram binning without sample splitting.

    Examples
    --------
    Samples with score s are events with probability s^2. The five bins contain 200
    samples each:

    >>> import numpy as np
    >>> from skcalib import HistogramBinning
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(1000)
    >>> y = rng.random(1000) < scores**2
    >>> histogram = HistogramBinning(binning=5).fit(scores, y)
    >>> histogram.predict_proba([0.1, 0.5, 0.9])[:, 1].round(2).tolist()
    [0.03, 0.31, 0.86]
    """

    _parameter_constraints = {
        **BinnedRecalibrator._parameter_constraints,
        "binning": BINNING,
        "sample_split": [Interval(Real, 0, 1, closed="neither"), None],
        "smoothing": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    _part_attributes = {**BINS, "bin_positives_": amounts, "_weighted_": flag}

    # for two classes; a list with one entry per class for more
    bin_edges_: np.ndarray
    bin_values_: np.ndarray
    bin_counts_: np.ndarray
    bin_positives_: np.ndarray
    n_bins_: int

    def __init__(
        self,
        binning: BaseBinning | int | None = None,
        *,
        sample_split: float | None = None,
        smoothing: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        multiclass: Literal["ovr", "top_label"] = "ovr",
        normalize: bool = True,
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.binning = binning
        self.sample_split = sample_split
        self.smoothing = smoothing
        self.random_state = random_state
        self.multiclass = multiclass
        self.normalize = normalize
        self.input = input
        self.classes = classes

    @property
    def _scale(self):
        """The scale of the scores: probabilities if the strategy needs [0, 1]."""
        if self._strategy().needs_unit_interval:
            return "probability"
        return "given"

    def _fit_binary(self, scores, labels, sample_weight):
        """Find the edges of the bins of scores (n,), then the event frequency in each
        bin: from the same rows, or from the two parts of a `sample_split`. Return the
        `LimitsMaker`, None with a split.
        """
        on_log_odds = self._scale == "given" and self.input == "logit"
        fractions = None
        if self.sample_split is not None:
            fractions = (self.sample_split, 1 - self.sample_split)
        edge_rows, value_rows = self._split(fractions, 2, scores, labels, sample_weight)
        support = (0.0, 1.0)
        if on_log_odds:
            support = (-np.inf, np.inf)
        if self.sample_split is None and not on_log_odds:
            # Both steps use the same rows: sorted once, if the strategy needs it.
            edge_rows = BinaryTask(*edge_rows).sorted_for(self._strategy())
            value_rows = edge_rows
        edges = self._strategy()._edges_of(*edge_rows, support=support)
        scores, labels, weight = value_rows
        statistics = bin_statistics(scores, labels, edges, weight, moments=0)
        self._set_bins(
            statistics, weighted=sample_weight is not None, on_log_odds=on_log_odds
        )
        if self.sample_split is None:
            return bins(self._limits_position, self.bin_counts_, self.bin_positives_)
        return None

    def _set_bins(self, statistics, *, weighted, on_log_odds=False):
        """Set the bins and their values, smoothed event frequencies, from
        `BinStatistics`. `weighted` says whether the rows had weights, `on_log_odds`
        that edges are log-odds.
        """
        self.bin_edges_ = statistics.edges
        self.n_bins_ = statistics.n_bins
        self.bin_counts_ = statistics.count
        self.bin_positives_ = statistics.weighted_label
        self._weighted_ = weighted
        # Smoothing adds rows with the event frequency of all rows to each bin.
        base_rate = statistics.weighted_label.sum() / statistics.weight.sum()
        weight = statistics.weight + self.smoothing
        events = statistics.weighted_label + self.smoothing * base_rate
        # A bin without rows predicts its middle.
        edges = statistics.edges
        if on_log_odds:
            edges = expit(edges)
        middle = (edges[:-1] + edges[1:]) / 2
        self.bin_values_ = np.divide(events, weight, out=middle, where=weight > 0)

    def _issue_certificate(self, problems, **options):
        """Return the certificate of the fitted binary problems if their edges do not
        depend on the rows that determine the values; else raise a ValueError. `options`
        holds the arguments of `certificate`.
        """
        strategy = self._strategy()
        if any(problem._weighted_ for problem in problems):
            raise ValueError(
                "No certificate: the recalibrator was fitted with sample_weight, which"
                " the theory does not cover."
            )
        if self.smoothing > 0:
            raise ValueError(
                f"No certificate: smoothing={self.smoothing} makes the values differ"
                " from the event frequencies. Fit with smoothing=0."
            )
        if self.sample_split is not None:
            return certify_independent_bins(problems, "split", **options)
        # Not isinstance: a subclass may look at the rows.
        if type(strategy) not in (EqualWidth, FixedEdges):
            source = "the rows that give the values"
            if strategy.needs_labels:
                source += ", even on their labels"
            raise ValueError(
                f"No certificate: the edges of {strategy} depend on {source}. Use"
                " sample_split=0.5, fixed edges, or UniformMassBinning."
            )
        return certify_independent_bins(problems, "fixed", **options)
