"""Uniform-mass binning without sample splitting, the recalibrator with a
distribution-free certificate.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from skcalib._defaults import ParameterHints, check_fitted, unchanged_if_refused
from skcalib._input.sklearn_private import Interval
from skcalib._input.tensors import as_given
from skcalib._input.warn import warn
from skcalib._intervals.one_probability.bins import bins
from skcalib._rows.keys import check_ids
from skcalib._rows.sorting import sorted_rows
from skcalib.maps import (
    Choice,
    Place,
    RowKey,
    checks,
    just_below,
    step_function,
)
from skcalib.recalibrators._binary import BinaryRecalibrator
from skcalib.recalibrators._certified_mixin import CertifiedMixin

_DEFAULT_N_BINS = 10


class UniformMassBinning(CertifiedMixin, ParameterHints, BinaryRecalibrator):
    """Uniform-mass binning (UMD): histogram binning with a guaranteed maximum error.

    The bins are cut at order statistics of the scores, the samples at the cuts are
    excluded, and each bin predicts the event frequency of the samples strictly inside.
    Given the cuts, these samples are independent, although the cuts come from the same
    data. No sample splitting is needed, and `certificate` guarantees a tolerance for
    every distribution.

    Parameters
    ----------
    n_bins : int, default=None
        Number of bins B. With `epsilon`, None uses the largest number of bins whose
        certificate meets this tolerance; without `epsilon`, None means 10. With fewer
        than 2 B samples, ``n // 2`` bins are used.
    epsilon : float, default=None
        Required tolerance of the conditional certificate, in (0, 1); it can be given
        only with ``n_bins=None``.
    confidence_level : float, default=0.9
        Confidence level of the certificate, at which `epsilon` must hold.
    randomize : bool, default=False
        Whether to break ties between scores with a second, uniform key, in fitting and
        in prediction (the limit delta -> 0 of Algorithm 2 in [1]_). The probability of
        a score on a cut is then random. With False, tied samples share their mean
        label, no certificate is issued, and `fit` issues a warning.
    keep_boundary : bool, default=False
        Whether to also count the sample at each cut, in the bin below it, as in the
        original method of Zadrozny and Elkan [2]_. The guarantee is then weaker by one
        sample per bin.
    random_state : int, RandomState or None, default=None
        Seed for the second key of the training samples and for `salt_`. Predictions
        draw new keys in each call unless ids are passed to `predict_proba`.
    multiclass : {"ovr", "top_label"}, default="ovr"
        For K > 2 classes, whether to calibrate each class against the rest, or only the
        confidence of the predicted class.
    normalize : bool, default=True
        Whether to normalise the K one-vs-rest probabilities to sum to 1. If they are
        normalised, no certificate is available.
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
        Edges of the bins: the lower end of the scale, the cuts, and the upper end.
        Unlike those of other binning methods, the bins are closed on the *left*. For K
        > 2 classes, this and the following attributes are lists with one entry per
        class.
    bin_values_ : ndarray of shape (n_bins,)
        Probability that each bin predicts.
    bin_positives_, bin_counts_ : ndarray of shape (n_bins,)
        Number of events and number of samples that determine the value of each bin.
    n_bins_ : int
        Number of bins.
    salt_ : str
        With ``randomize=True``, the prefix added to a row's id before its key is
        computed.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range. Also
        raised if weights are given, or if `epsilon` cannot be met with so few samples.

    See Also
    --------
    skcalib.HistogramBinning : Predicts the event frequency of each bin.
    skcalib.ScalingBinning : A smooth map whose outputs are then binned.
    skcalib.guarantees.max_n_bins : The largest number of bins for a given tolerance.
    skcalib.guarantees.CalibrationCertificate : The guarantee and its conditions.

    References
    ----------
    .. [1] Gupta and Ramdas (2021), Distribution-free calibration guarantees for
        histogram binning without sample splitting, Algorithms 1 and 2.
    .. [2] Zadrozny and Elkan (2001), Obtaining calibrated probability estimates from
        decision trees and naive Bayesian classifiers.

    Examples
    --------
    Samples with score s are events with probability s^2. With 1,000 samples, 13 is the
    largest number of bins that meets a tolerance of .2:

    >>> import numpy as np
    >>> from skcalib import UniformMassBinning
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(1000)
    >>> y = rng.random(1000) < scores**2
    >>> model = UniformMassBinning(epsilon=0.2).fit(scores, y)
    >>> (
    ...     model.certificate().n_bins,
    ...     model.predict_proba([0.1, 0.5, 0.9])[:, 1].round(2).tolist(),
    ... )
    (13, [0.04, 0.28, 0.79])

    With five samples and two bins, the third sample is the cut, and only the other
    samples are counted.

    >>> from skcalib import UniformMassBinning
    >>> model = UniformMassBinning(2).fit([0.1, 0.2, 0.5, 0.7, 0.9], [0, 1, 0, 1, 1])
    >>> model.bin_edges_.tolist(), model.bin_values_.tolist()
    ([0.0, 0.5, 1.0], [0.5, 1.0])
    """

    _parameter_constraints = {
        **BinaryRecalibrator._parameter_constraints,
        "n_bins": [Interval(Integral, 1, None, closed="left"), None],
        "epsilon": [Interval(Real, 0, 1, closed="neither"), None],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "randomize": ["boolean"],
        "keep_boundary": ["boolean"],
        "random_state": ["random_state"],
    }

    _hints = {"binning": "n_bins=10; other strategies are for HistogramBinning"}
    _needs_classes = "any"
    _scale = "given"
    _is_step_function = True

    _attributes = {"_n_problems": checks.count, "_n_rows": checks.count}
    _part_attributes = {
        **checks.BINS,
        "bin_positives_": checks.amounts,
        "_cut_key_": checks.numbers,
        "_has_ties_": checks.flag,
        "_inside_": checks.counts_inside,
        "salt_": checks.text,
    }

    # for two classes; a list with one entry per class for more
    bin_edges_: np.ndarray
    bin_values_: np.ndarray
    bin_positives_: np.ndarray
    bin_counts_: np.ndarray
    n_bins_: int
    salt_: str

    def __init__(
        self,
        n_bins: int | None = None,
        *,
        epsilon: float | None = None,
        confidence_level: float = 0.9,
        randomize: bool = False,
        keep_boundary: bool = False,
        random_state: int | np.random.RandomState | None = None,
        multiclass: Literal["ovr", "top_label"] = "ovr",
        normalize: bool = True,
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.n_bins = n_bins
        self.epsilon = epsilon
        self.confidence_level = confidence_level
        self.randomize = randomize
        self.keep_boundary = keep_boundary
        self.random_state = random_state
        self.multiclass = multiclass
        self.normalize = normalize
        self.input = input
        self.classes = classes

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        clusters: ArrayLike | None = None,
    ) -> Self:
        """Fit the bins.

        Parameters
        ----------
        X : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
            Scores of a single model that was fitted to other data.
        y : array-like of shape (n,)
            Labels.
        sample_weight : None
            Must be None, because no guarantee is available for weighted samples.
        clusters : array-like of shape (n,), default=None
            Cluster of each sample: dependent samples (from the same patient or match)
            share a value. They matter to `predict_interval` alone.

        Returns
        -------
        self : object
            The fitted recalibrator.

        Raises
        ------
        ValueError
            If weights are given, if `epsilon` cannot be met with so few samples, or if
            scores and labels are inconsistent.
        """
        if sample_weight is not None:
            raise ValueError(
                "UniformMassBinning does not support sample_weight: its guarantee"
                " needs rows of equal weight. HistogramBinning supports weights."
            )
        with unchanged_if_refused(self):
            super().fit(X, y, clusters=clusters)
            if self._ties_forbid_a_certificate():
                warn(
                    "Scores are tied, so no certificate can be issued. With"
                    " randomize=True, ties are broken at random, and the certificate is"
                    " valid."
                )
        return self

    def _fit_scores(self, scores, codes, sample_weight):
        """Fit the bins of each binary problem; set the numbers of rows and of problems,
        on which the guarantee depends.
        """
        self._n_problems = 1
        if len(self.classes_) > 2 and self.multiclass == "ovr":
            self._n_problems = len(self.classes_)
        self._n_rows = len(scores)
        return super()._fit_scores(scores, codes, sample_weight)

    def _fit_binary(self, scores, labels, sample_weight):
        """Fit bins of scores (n,) with boolean labels (n,) by Algorithm 1 of Gupta and
        Ramdas (2021); return the `LimitsMaker`, None with `randomize`.
        """
        n_rows = len(scores)
        n_bins = self._choose_n_bins(n_rows)
        ordered, ordered_labels = sorted_rows(scores, labels)
        # 1. The cuts, for b = 1 ... B - 1: the score of rank ceil(b (n + 1) / B). The
        # rows strictly between two cuts give the value of a bin. `cuts` are places
        # among the ordered scores, counted from 0.
        ranks = -(-np.arange(1, n_bins) * (n_rows + 1) // n_bins)  # rounded up
        cuts = ranks - 1
        # 2. Ties: broken by random keys, or shared. With `randomize`, `_cut_key_` holds
        # the key of the row at each cut. In predictions, the key of a row follows from
        # its id and the text `salt_`.
        self._has_ties_ = bool((ordered[1:] == ordered[:-1]).any())
        self.salt_ = ""
        if self.randomize:
            random = check_random_state(self.random_state)
            keys = random.random_sample(n_rows)
            self.salt_ = f"{random.randint(np.iinfo(np.int32).max):08x}"
            # This also changes `ordered_labels`: tied labels get the order of the keys.
            self._cut_key_ = _order_ties(
                ordered, ordered_labels, cuts, (scores, labels, keys)
            )
        else:
            if self._has_ties_:
                ordered_labels, cuts = _share_ties(ordered, ordered_labels, cuts)
            self._cut_key_ = np.zeros(len(cuts))
        # 3. The values of the bins, and their edges.
        self._set_bin_values(ordered_labels, cuts)
        lowest = 0.0
        highest = 1.0
        if self.input == "logit":
            lowest = -np.inf
            highest = np.inf
        self.bin_edges_ = np.concatenate(
            ([lowest], ordered[cuts], [highest]), dtype=np.float64
        )
        self.n_bins_ = len(cuts) + 1
        if self.randomize:
            return None
        return bins(self._limits_position, self.bin_counts_, self.bin_positives_)

    def _limits_position(self, scores):
        return np.searchsorted(self.bin_edges_[1:-1], scores, side="right")

    def _why_no_limits(self):
        if self.randomize:
            return "with randomize=True, the bin of a tied score is random"
        return super()._why_no_limits()

    def _choose_n_bins(self, n_rows):
        """Return the number of bins: the one given, but at most half the rows, or the
        largest that guarantees `epsilon`.
        """
        if self.n_bins is not None and self.epsilon is not None:
            raise ValueError(
                f"Give n_bins={self.n_bins} or epsilon={self.epsilon}, not both: one"
                " determines the other."
            )
        if self.epsilon is None:
            return max(1, min(self.n_bins or _DEFAULT_N_BINS, n_rows // 2))
        # Imported here, because a fit with `n_bins` does not need it.
        from skcalib.guarantees import max_n_bins

        # With one-vs-rest the guarantee covers every class, by the union bound.
        level = 1 - (1 - self.confidence_level) / self._n_problems
        return max_n_bins(
            n_rows,
            self.epsilon,
            confidence_level=level,
            keep_boundary=self.keep_boundary,
        )

    def _set_bin_values(self, labels, cuts):
        """Set the values of the bins, their numbers of events and rows, and `_inside_`,
        those strictly between two cuts, on which a certificate is based. `labels` (n,)
        are in the order of the scores, means for tied rows; `cuts` (n_bins - 1,) are
        places in it.
        """
        n_rows = len(labels)
        # events_before[k]: the number of events among the first k rows
        events_before = np.concatenate(([0.0], np.cumsum(labels)))
        # A bin has the rows start, ..., end - 1: here those strictly between two cuts.
        start = np.append(0, cuts + 1)
        end = np.append(cuts, n_rows)
        events_inside = events_before[end] - events_before[start]
        self._inside_ = (events_inside, end - start)
        # With `keep_boundary`, the row at a cut counts for the value of the bin below.
        if self.keep_boundary:
            end = np.append(cuts + 1, n_rows)
        # A bin without rows, which only ties make, takes the row at its lower cut.
        start = np.where(start < end, start, np.append(0, cuts))
        self.bin_positives_ = events_before[end] - events_before[start]
        self.bin_counts_ = end - start
        # Sums of mean labels may exceed the number of rows by rounding.
        self.bin_values_ = np.clip(self.bin_positives_ / self.bin_counts_, 0, 1)

    def predict_proba(self, X: ArrayLike, ids: ArrayLike | None = None) -> np.ndarray:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores.
        ids : array-like of shape (n,), default=None
            With ``randomize=True``, the ids of the samples (strings or integers). A
            sample's key is then determined by its id and `salt_`, identically in Python
            and SQL, so that a row is always assigned the same probability. None draws
            new keys in each call, regardless of `random_state`.

        Returns
        -------
        probabilities : ndarray of float64, shape (n, n_classes)
            Calibrated probabilities, with columns in the order of `classes_`.

        Raises
        ------
        ValueError
            If scores are invalid, if their number of columns differs from that in
            `fit`, or if ids have a different type.
        """
        if not self.randomize:
            return super().predict_proba(X)
        check_fitted(self)
        scores, _ = self._read_rows(X)
        if ids is not None:
            ids = check_ids(ids, len(scores))
        return as_given(self._predict_checked(scores, ids), X)

    def transform(self, X: ArrayLike, ids: ArrayLike | None = None) -> np.ndarray:
        """Return what `predict_proba` returns, so that recalibrators can be chained.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores.
        ids : array-like of shape (n,), default=None
            With ``randomize=True``, the ids of the samples: see `predict_proba`.

        Returns
        -------
        probabilities : ndarray of float64, shape (n, n_classes)
            Calibrated probabilities, with columns in the order of `classes_`.
        """
        return self.predict_proba(X, ids)

    def predict(self, X: ArrayLike, ids: ArrayLike | None = None) -> np.ndarray:
        """Return the most probable class or, for top-label, the top-scoring class.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores.
        ids : array-like of shape (n,), default=None
            With ``randomize=True``, the ids of the samples: see `predict_proba`.

        Returns
        -------
        labels : ndarray of shape (n,)
            The first of the classes with the largest probability.
        """
        check_fitted(self)
        if ids is None or self._keeps_decisions:
            return super().predict(X)
        return self.classes_[self.predict_proba(X, ids).argmax(axis=1)]

    def _check_attributes(self):
        """Raise a ValueError unless the fitted attributes, which were read from a JSON
        document, are consistent with each other.
        """
        checks.check_bins(self)
        checks.check_lengths(self, self.n_bins_ - 1, "_cut_key_")
        # the numbers of events and of rows strictly inside each bin
        if {len(numbers) for numbers in self._inside_} != {self.n_bins_}:
            raise ValueError(f"_inside_ must have {self.n_bins_} entries")

    def _map(self, score):
        """Return the map: a step function with a step for each bin. With `randomize`,
        the bin of a score that equals a cut depends on its row's key, which is compared
        with the cut's.
        """
        cuts = self.bin_edges_[1:-1]
        values = self.bin_values_
        if not self.randomize:
            return step_function(score, just_below(cuts), values)
        key = RowKey(self.salt_)
        # Several cuts may have the same score: cuts[first[j]:end[j]] are distinct[j].
        distinct, first = np.unique(cuts, return_index=True)
        end = np.append(first[1:], len(cuts))
        # The nodes in the order of the scores: below the first distinct cut, at it,
        # between it and the next one, and so on. Bin k is below cut k. At a score that
        # is the cuts k, ..., stop - 1, a row is in one of the bins k, ..., stop.
        cases = [step_function(score, [], values[:1])]
        for k, stop in zip(first, end, strict=True):
            cut_keys = just_below(self._cut_key_[k:stop])
            at_cut = step_function(key, cut_keys, values[k : stop + 1])
            above_cut = step_function(score, [], values[stop : stop + 1])
            cases += [at_cut, above_cut]
        # The boundaries between these nodes: just below each distinct cut, and at it.
        boundaries = np.column_stack((just_below(distinct), distinct)).ravel()
        # A node between two equal boundaries, which no float lies between, is left out.
        empty = np.flatnonzero(np.diff(boundaries) <= 0) + 1
        cases = [case for number, case in enumerate(cases) if number not in empty]
        return Choice(Place(score, np.delete(boundaries, empty)), tuple(cases))

    def _ties_forbid_a_certificate(self):
        """Whether a binary problem has tied scores that were not broken at random."""
        if self.randomize:
            return False
        problems = getattr(self, "estimators_", [self])
        return any(problem._has_ties_ for problem in problems)

    def _issue_certificate(self, problems, *, interval, **options):
        """Return the certificate of Gupta and Ramdas (2021) for the fitted binary
        problems, a list; raise a ValueError if their theory does not hold.

        `options` holds the other arguments of `certificate`.
        """
        if self._ties_forbid_a_certificate():
            raise ValueError(
                "No certificate: scores are tied, and the theory needs ties to be"
                " broken at random. Fit with randomize=True and pass the ids of the"
                " rows to predict_proba, or fit HistogramBinning(sample_split=0.5),"
                " which allows ties."
            )
        from skcalib.guarantees import uniform_mass_certificate

        n_bins = self.n_bins
        if n_bins is None:
            n_bins = _DEFAULT_N_BINS
        if self.epsilon is None and self._n_rows < 2 * n_bins:
            raise ValueError(
                f"No certificate: {self._n_rows} rows are fewer than two for each of"
                f" {n_bins} bins."
            )
        events = []
        counts = []
        values = []
        for problem in problems:
            events_inside, rows_inside = problem._inside_
            events.append(events_inside)
            counts.append(rows_inside)
            values.append(problem.bin_values_)
        return uniform_mass_certificate(
            events,
            counts,
            values,
            n_samples=self._n_rows,
            keep_boundary=self.keep_boundary,
            interval=interval,
            **options,
        )


def _order_ties(ordered, ordered_labels, cuts, rows):
    """Put the labels of tied rows in place into the order of random keys where a cut is
    among them, so that chance decides which are below it; return the key at each cut
    (n_cuts,).

    `ordered` (n,) are the increasing scores, `cuts` places among them, and `rows` the
    scores, labels and keys in [0, 1) in the order of the data.
    """
    scores, labels, keys = rows
    cut_scores = np.unique(ordered[cuts])
    if not len(cut_scores):
        return np.zeros(0)
    # 1. The rows whose score is that of a cut, sorted by the score, then by the key:
    # one sort of number + key does both, because keys are in [0, 1).
    number = np.minimum(np.searchsorted(cut_scores, scores), len(cut_scores) - 1)
    tied_rows = np.flatnonzero(cut_scores[number] == scores)
    tied_rows = tied_rows[np.argsort(number[tied_rows] + keys[tied_rows])]
    # 2. Their places among the ordered rows: a range for each of these scores.
    first = np.searchsorted(ordered, cut_scores, side="left")
    end = np.searchsorted(ordered, cut_scores, side="right")
    ranges = [np.arange(start, stop) for start, stop in zip(first, end, strict=True)]
    places = np.concatenate(ranges)
    ordered_labels[places] = labels[tied_rows]
    # 3. The rows that are now at the cuts.
    rows_at_cuts = tied_rows[np.searchsorted(places, cuts)]
    return keys[rows_at_cuts]


def _share_ties(ordered, labels, cuts):
    """Return labels (n,) and cuts that do not depend on the order of tied rows: these
    get their mean label, and a cut among them moves to the first, and is dropped where
    it then equals another or comes first of all.
    """
    # for each distinct score its first place and its number of rows, and for each row
    # the number of its distinct score
    _, first, number, counts = np.unique(
        ordered, return_index=True, return_inverse=True, return_counts=True
    )
    mean_labels = np.bincount(number, weights=labels) / counts
    cuts = np.unique(first[number[cuts]])
    return mean_labels[number], cuts[cuts > 0]
