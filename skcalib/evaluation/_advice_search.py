"""The search behind an advice: candidates on the same folds, the simplest first, each
of which must be significantly better than the last one accepted.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import combine_pvalues

from skcalib import recalibrators as catalogue
from skcalib._rows.blocks import taken
from skcalib.binning import EqualMass
from skcalib.evaluation._cross_validate import (
    UNCALIBRATED,
    cross_validate,
    kinds_to_compare,
)
from skcalib.evaluation._segment_maps import OTHERS, SegmentRecalibrator
from skcalib.metrics import calibration_by_group

LEVEL = 0.05  # of each test
N_FOLDS = 5
# Small sets are divided into folds several times, since otherwise the advice would
# depend on which samples share a fold: up to 3 times, as long as the samples of all
# divisions together are not more than 15,000; more often, 6 times and then 12 times,
# as long as a decision is close.
_MOST_DIVISIONS = 3
_MOST_ROWS_DIVIDED = 15_000
_CLOSE_DIVISIONS = (6, 12)
_CLOSE_FROM = 0.01
_CLOSE_TO = 0.2
STACK = "StackedRecalibrator"
_CURVES = ("SplineCalibration", "IsotonicCalibration")
# The stack is not fitted if the curves beat the simpler maps with a larger p-value.
_NO_CURVE = 0.2
_MOST_SEGMENTS = 100  # most segments that get a map each
_FEW_SEGMENTS = 20  # most segments that get a map with more than two parameters
_BEYOND_DOUBT = 0.001  # adjusted p-value of a segment that is clearly off
# The curve to compare in segments, by the name of the map for all samples if that is a
# curve.
_CURVE_BY_SEGMENT = {
    "SplineCalibration": catalogue.SplineCalibration,
    "IsotonicCalibration": catalogue.SplineCalibration,
    "StackedRecalibrator": catalogue.SplineCalibration,
    "BetaCalibration": catalogue.BetaCalibration,
}
_FEWEST_ROWS = 50  # fewest samples that a map is said to need
_LOST = 0.1  # share of the gain that the noise of a fit may cost
_WIDEST_RANGE = 4  # ratio of the numbers of a range that is told: 400 to 1,600


class Samples(NamedTuple):
    """Validated samples of an advice.

    Attributes
    ----------
    scores : ndarray of shape (n,) or (n, n_classes)
        Probability of the event, or of each class.
    labels : ndarray of shape (n,)
        Whether the event happened, or column indices.
    sample_weight, clusters : ndarray of shape (n,) or None
        Positive weights, and codes of clusters.
    weight_type : {"frequency", "importance"} or dict
        Meaning of the weights. A dict holds those (n,) that the samples would have
        without the event, by False, and with it, by True.
    segmentations : dict of ndarray of str, shape (n,)
        Segment of each sample, by the name of the column.
    period : ndarray of int, shape (n,), or None
        Number of each sample's period, in the order of time.
    seed : int
        Seed of the folds.
    """

    scores: np.ndarray
    labels: np.ndarray
    sample_weight: np.ndarray | None
    clusters: np.ndarray | None
    weight_type: str | dict
    segmentations: dict
    period: np.ndarray | None
    seed: int

    @property
    def n_columns(self):
        """Number of columns of scores: 1 for two classes."""
        return 1 if self.scores.ndim == 1 else self.scores.shape[1]

    @property
    def kinds(self):
        """Classes of recalibrators to compare, the simplest first."""
        return kinds_to_compare(len(self.labels), self.n_columns)

    @property
    def options(self):
        """Arguments of the library's functions for these samples, as a dict."""
        labels = [False, True] if self.n_columns == 1 else list(range(self.n_columns))
        return {
            "sample_weight": self.sample_weight,
            "weight_type": self.weight_type,
            "clusters": self.clusters,
            "labels": labels,
        }

    @property
    def are_enough(self):
        """Whether there are enough samples, and clusters, to divide into folds."""
        counts = np.sort(np.bincount(self.labels.astype(np.intp), minlength=2))
        if counts[-2] < N_FOLDS:  # the second most frequent class
            return False
        return self.clusters is None or len(np.unique(self.clusters)) >= N_FOLDS

    @property
    def n_divisions(self):
        """How often the samples are divided into folds."""
        if self.n_columns > 1 or self.sample_weight is not None:
            return 1
        n_divisions = _MOST_ROWS_DIVIDED // max(len(self.labels), 1)
        return min(max(n_divisions, 1), _MOST_DIVISIONS)

    def at(self, rows):
        """Return the samples of a mask or an array of positions."""
        segmentations = {}
        for column, segments in self.segmentations.items():
            segmentations[column] = segments[rows]
        weight_type = self.weight_type
        if isinstance(weight_type, dict):
            weight_type = {label: weight[rows] for label, weight in weight_type.items()}
        return self._replace(
            scores=self.scores[rows],
            labels=self.labels[rows],
            sample_weight=taken(self.sample_weight, rows),
            clusters=taken(self.clusters, rows),
            weight_type=weight_type,
            segmentations=segmentations,
            period=taken(self.period, rows),
        )

    def cross_validated(self, recalibrators):
        """Return the result of `cross_validate` for a dict of recalibrators."""
        return cross_validate(
            self.labels,
            self.scores,
            recalibrators,
            cv=N_FOLDS,
            n_repeats=self.n_divisions,
            random_state=self.seed,
            **self.options,
        )


class Candidate(NamedTuple):
    """A recalibrator that may be advised.

    Attributes
    ----------
    key : str
        Its name among the cross-validated recalibrators.
    kind : type or None
        Class of the map, or of the map of each segment; None for unchanged scores.
    column : str or None
        Column of segments, if it maps by segment.
    segments : tuple of str
        The segments that have a map of their own.
    others : {"unchanged", "shared"} or None
        What the other segments have: their scores, or one map together.
    """

    key: str
    kind: type | None
    column: str | None = None
    segments: tuple = ()
    others: str | None = None

    @property
    def name(self):
        """What the candidate is called: its class, with that of its maps."""
        if self.kind is None:
            return UNCALIBRATED
        if self.column is None:
            return self.kind.__name__
        return f"GroupwiseRecalibrator({self.kind.__name__}())"

    @property
    def recalibrator(self):
        """The unfitted recalibrator, None for unchanged scores."""
        if self.kind is None:
            return None
        if self.column is None:
            return self.kind()
        return catalogue.GroupwiseRecalibrator(self.kind())

    def fitted_to_folds(self, samples):
        """Return the unfitted recalibrator that is cross-validated, and the group of
        each of the `Samples` or None: its segment, or `OTHERS` without a map of its
        own.
        """
        if self.column is None:
            return self.kind(), None
        segment = samples.segmentations[self.column]
        groups = np.where(np.isin(segment, self.segments), segment, OTHERS)
        if self.others == "unchanged":
            return SegmentRecalibrator(self.kind()), groups
        return self.recalibrator, groups


UNCHANGED = Candidate(UNCALIBRATED, None)


@dataclass
class Search:
    """Candidates for samples, cross-validated on the same folds.

    Parameters
    ----------
    samples : Samples
        The samples.

    Attributes
    ----------
    result : CrossValidatedRecalibrators
        Their out-of-fold losses.
    candidates : list of Candidate
        All that were compared, the simplest first.
    steps : list of Candidate
        Those that were accepted: the first is the unchanged scores, and each later one
        is significantly better than the one before it.
    """

    samples: Samples

    def run(self):
        """Compare all candidates, and return the search."""
        # 1. One map for all samples, of each kind; a stack of them if it is promising.
        self.candidates = [UNCHANGED]
        self._known_evidence = {}
        self._divided = {}  # results for more divisions into folds, by their number
        found = []
        for kind in self.samples.kinds:
            if kind is not catalogue.StackedRecalibrator:
                found.append(Candidate(kind.__name__, kind))
        self.result = self.samples.cross_validated(
            {candidate.key: candidate.kind() for candidate in found}
        )
        self.candidates += found
        if self._is_worth_a_stack():
            self.add(Candidate(STACK, catalogue.StackedRecalibrator))
        # `steps`: the candidates of which each is a significant gain over the last one
        self.steps = self._accepted(self.candidates)
        # 2. Maps by segment, compared with the best single map.
        one_map = self.steps[-1]
        by_segment = self._candidates_by_segment(one_map)
        for candidate in by_segment:
            self.add(candidate)
        self.steps = self.steps[:-1] + self._accepted([one_map, *by_segment])
        return self

    def add(self, candidate):
        """Cross-validate one more candidate."""
        recalibrator, groups = candidate.fitted_to_folds(self.samples)
        self.result = self.result.extended({candidate.key: recalibrator}, groups=groups)
        self.candidates.append(candidate)

    def loss(self, candidate):
        """Return the mean out-of-fold log-loss of a candidate."""
        return self.result.mean_loss(candidate.key)

    def evidence(self, before, after):
        """Return how much lower the log-loss of the candidate `after` is than that of
        `before`, an `IntervalEstimate`, and the one-sided p-value of "not lower".

        If the p-value is close to the level, it depends on which samples share a fold:
        both are then computed again with more divisions into folds, and with still more
        if it is close even so.
        """
        if (before.key, after.key) in self._known_evidence:
            return self._known_evidence[before.key, after.key]
        result = self.result
        pvalue = result.pvalue(before.key, after.key, alternative="greater")
        is_divided = self.samples.n_columns == 1 and self.samples.sample_weight is None
        if is_divided:
            for n_divisions in _CLOSE_DIVISIONS:
                if not _CLOSE_FROM < pvalue < _CLOSE_TO:
                    break
                result = self.divided_more(n_divisions, result, (before, after))
                pvalue = result.pvalue(before.key, after.key, alternative="greater")
        evidence = result.gain(before.key, after.key), float(pvalue)
        self._known_evidence[before.key, after.key] = evidence
        return evidence

    def divided_more(self, n_divisions, known, candidates):
        """Return the result of some candidates, and of those that were asked for
        before, for `n_divisions` into folds. The fits of `known`, their result for
        fewer divisions, are taken over.
        """
        if n_divisions not in self._divided:
            self._divided[n_divisions] = known._divided(n_divisions, self.samples.seed)
        for candidate in candidates:
            result = self._divided[n_divisions]
            if candidate.key not in result.probabilities:
                recalibrator, groups = candidate.fitted_to_folds(self.samples)
                self._divided[n_divisions] = result._extended(
                    {candidate.key: recalibrator}, groups, known=known
                )
        return self._divided[n_divisions]

    def _is_worth_a_stack(self):
        """Return whether to fit a stack: with several classes, if it can be fitted in
        time; with one event, if the better of two curves shows signs of a gain over the
        best map with fewer parameters.
        """
        if self.samples.n_columns > 1:
            return catalogue.StackedRecalibrator in self.samples.kinds
        simple = []
        curves = []
        for candidate in self.candidates:
            if candidate.name in _CURVES:
                curves.append(candidate)
            else:
                simple.append(candidate)
        if not curves:
            return False
        best_simple = min(simple, key=self.loss)
        best_curve = min(curves, key=self.loss)
        # Of the hypothesis that the curve has no lower loss.
        pvalue = self.result.pvalue(
            best_simple.key, best_curve.key, alternative="greater"
        )
        return pvalue <= _NO_CURVE

    def _accepted(self, candidates):
        """Return the candidates that a forward selection accepts: the first, the
        simplest, and each whose loss is lower than that of every simpler one, and
        significantly lower than that of the last accepted.
        """
        accepted = [candidates[0]]
        lowest = self.loss(candidates[0])
        for candidate in candidates[1:]:
            loss = self.loss(candidate)
            if not loss < lowest:
                continue
            lowest = loss
            _, pvalue = self.evidence(accepted[-1], candidate)
            if pvalue < LEVEL:
                accepted.append(candidate)
        return accepted

    def _candidates_by_segment(self, one_map):
        """Return the maps by segment to compare, the simplest first, as a list of
        `Candidate`. `one_map` is the best candidate with a single map.
        """
        # Pairs of a column and the segments that get a map, the fewest segments first.
        choices = []
        for column in self.samples.segmentations:
            for segments in self._sets_of_segments(column, one_map):
                choices.append((column, segments))
        choices.sort(key=lambda choice: len(choice[1]))
        simple = catalogue.PlattScaling
        if self.samples.n_columns > 1:
            simple = catalogue.TemperatureScaling
        kinds = [(catalogue.PriorShift, _MOST_SEGMENTS), (simple, _MOST_SEGMENTS)]
        # If all samples need a curve rather than a line in log-odds, so may the
        # segments. A curve needs many samples in each of them.
        if one_map.name in _CURVE_BY_SEGMENT:
            kinds.append((_CURVE_BY_SEGMENT[one_map.name], _FEW_SEGMENTS))
        # The segments without a map of their own keep their scores or, if one map for
        # all was chosen, share a map.
        treatments = ["unchanged"]
        if one_map.kind is not None:
            treatments.append("shared")
        found = []
        for others in treatments:
            for kind, most_segments in kinds:
                for column, segments in choices:
                    if len(segments) > most_segments:
                        continue
                    key = f"{kind.__name__} by {column}: {segments}, {others}"
                    found.append(Candidate(key, kind, column, segments, others))
        return found

    def _sets_of_segments(self, column, one_map):
        """Return the sets of segments that may need maps of their own, tuples of names,
        the smallest first: the segments that are miscalibrated at a strict and at the
        usual significance level, before and after one map for all; and all segments.
        """
        names, counts = np.unique(
            self.samples.segmentations[column], return_counts=True
        )
        if len(names) == 1:
            return []
        largest_first = np.argsort(-counts, kind="stable")[:_MOST_SEGMENTS]
        sets = [tuple(names[largest_first].tolist())]
        # The miscalibrated segments, and whether the rest is miscalibrated together:
        # before recalibration, and after one map for all.
        found_before, rest_before = self._miscalibrated_segments(column, UNCHANGED)
        found_after, rest_after = self._miscalibrated_segments(column, one_map)
        # If more segments need a map than can be named, all get one; or only those
        # found before, if one map for all has moved the others.
        if not rest_after:
            sets += found_before + found_after
        elif not rest_before:
            sets += found_before
        # Equal sets are compared once. So are all sets that leave out one segment at
        # most: the map of that one, shared or its own, is fitted to it alone.
        distinct = {}
        for segments in sorted(filter(None, sets), key=len):
            key = frozenset(segments)
            if len(segments) >= len(names) - 1:
                key = "all"
            distinct[key] = segments
        return list(distinct.values())

    def _miscalibrated_segments(self, column, candidate):
        """Return the segments in which a candidate's out-of-fold probabilities are
        miscalibrated, as two tuples (at a strict and at the usual significance level),
        and whether a joint test rejects calibration of the other segments.
        """
        table = calibration_by_group(
            self.samples.labels,
            self.result.probabilities[candidate.key],
            self.samples.segmentations[column],
            norm=1,
            binning=EqualMass(1),
            method="plugin",
            n_resamples=1,
            random_state=0,
            **self.samples.options,
        )
        order = np.argsort(table.adjusted_pvalue, kind="stable")[:_MOST_SEGMENTS]
        sets = []
        for level in (_BEYOND_DOUBT, LEVEL):
            is_rejected = table.adjusted_pvalue[order] < level
            sets.append(tuple(table.group[order][is_rejected].tolist()))
        return sets, _others_are_miscalibrated(table)

    def n_needed(self, simpler, chosen):
        """Return how many samples a fit of the candidate `chosen` needs to keep nine
        tenths of its gain in log-loss over `simpler`, as a range (low, high) over the
        folds; None if the folds disagree too much.

        Let g be the gain on held-out samples of a fit to n samples, and c the loss that
        estimation noise adds to it. The noise falls as 1 / n: with m samples it adds
        n c / m. Without noise the gain would be g + c, of which a tenth may be lost:
        n c / m = .1 (g + c), which is solved for m. A fit is by 2 c worse on samples
        that it has not seen than on those that it was fitted to, as in Akaike's
        criterion.
        """
        losses = self.result.losses_by_fit["log"][chosen.key][:N_FOLDS]
        losses_of_simpler = self.result.losses_by_fit["log"][simpler.key][:N_FOLDS]
        n_samples = losses.shape[1]
        needed = []
        for k, fold in enumerate(self.result.folds[:N_FOLDS]):
            excess = losses[k] - np.delete(losses, k, axis=0).mean(axis=0)
            cost = np.average(excess[fold.test], weights=fold.test_weight) / 2  # c
            gain_by_row = losses_of_simpler[k] - losses[k]
            gain = np.average(gain_by_row[fold.test], weights=fold.test_weight)  # g
            # The formula holds for a positive cost and a positive gain without noise.
            if cost <= 0 or gain + cost <= 0:
                return None
            needed.append(n_samples * cost / (_LOST * (gain + cost)))
        fewest = _FEWEST_ROWS * max(len(chosen.segments), 1)
        low = max(int(np.ceil(min(needed))), fewest)
        high = max(int(np.ceil(max(needed))), fewest)
        if high > _WIDEST_RANGE * low:
            return None
        return low, high


def _others_are_miscalibrated(table):
    """Return whether the groups that are not miscalibrated one by one are so together,
    by Fisher's combination of their p-values. `table` is a `GroupCalibration`.
    """
    others = table.pvalue[table.adjusted_pvalue >= LEVEL]
    if len(others) == 0:
        return False
    together = combine_pvalues(others, method="fisher")
    return bool(together.pvalue < LEVEL)
