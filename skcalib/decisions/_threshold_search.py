"""The threshold of a guarantee: an order statistic of the scores of one class, or the
most lenient one that passes a sequence of tests.
"""

from math import ceil, inf, log, log1p

import numpy as np
from scipy.special import bdtr

from skcalib._input.scalars import check_number
from skcalib.decisions._certified import CertifiedThreshold, deciding_scores
from skcalib.decisions._same_rows import OF_CROSS_FITTING, OTHER_ROWS
from skcalib.decisions._search import (
    AcceptedSets,
    Start,
    check_thresholds,
    guided_starts,
    most_errors,
    most_lenient,
    second_start_level,
)
from skcalib.decisions._tests_of_sets import SetTests
from skcalib.guarantees._certificate import INDEPENDENT_ROWS

# Rates that the strictest threshold cannot break: their sequence starts there.
_FROM_STRICTEST = ("answered_and_wrong", "false_positive_rate")
# Rates of sets of rows with the highest scores of one event. (Which class is predicted,
# and which rows are above 1/2, depends on more than their order.)
_OF_ONE_ORDER = {"precision", "recall", "false_positive_rate"}
_ACCURACY_STARTS = 0.5  # the most accurate threshold, if scores are right

MODEL = (
    "The probabilities come from one model that was fitted to other data. A"
    " recalibrator that was fitted to these samples violates this condition, which is"
    " checked only if fitted_on= is given. In simulations of guarantees with 90 %"
    " confidence, a precision of 90 % was not reached in up to 23.2 % of data sets"
    " after Platt scaling fitted to the same samples, and in up to 47.5 % after"
    " isotonic regression; a limit on the error rate of the answers was"
    " exceeded in up to 29.2 % after vector scaling with 27 classes. Fit the"
    " recalibrator to one half of the samples, and find the threshold on the other."
)
FIXED = (
    "The guarantee, its target and the thresholds were fixed before the labels of these"
    " samples were seen."
)
_EXACT = (
    "The guarantee is exact for any number of samples and any distribution: {reason}."
)
_FIXED_START = "the start of the search was fixed beforehand"
_GUIDED_EXACTNESS = (
    "Given the scores, the guarantee is exact for the mean error probability of the"
    " accepted calibration samples. For new samples, it was checked by simulation,"
    " because the start of the search depends on the scores: in six simulated"
    " populations, with 100 to 2,000 samples, a guarantee with 90 % confidence was"
    " violated in at most 9.6 % of data sets. With start=, it is also exact for new"
    " samples."
)
CLUSTERED = (
    "The clusters are independent draws from one distribution, as are future clusters,"
    " and none has more than {most:,} samples, the size of the largest one here."
)
_EXACT_IN_EITHER_ORDER = (
    "The guarantee is exact given the scores before the map is applied: the map keeps"
    " or reverses the order of the samples, and each order is tested at half the"
    " significance level."
)
_NOT_EXACT = (
    "The tests are exact for a map that does not depend on these labels; for a map that"
    " does, nothing is proved."
)


def threshold_by_order(rows, guarantee, fields, level, assumption):
    """Return the `CertifiedThreshold` for recall or the false-positive rate: an order
    statistic of the scores of one class, since these rates depend on it alone.

    Parameters
    ----------
    rows : DecidedRows
        All samples.
    guarantee : Guarantee
        The guarantee, on "recall" or "false_positive_rate".
    fields : dict
        The known fields of the result.
    level : float
        Probability with which the guarantee may fail.
    assumption : str
        The sentence about the model or map.
    """
    scores = rows.scores
    is_recall = guarantee.promise == "recall"
    # To accept a row is an error if it has no event.
    in_class = ~rows.is_error if is_recall else rows.is_error
    name = "events" if is_recall else "rows without the event"
    class_scores = np.sort(scores[in_class])
    if len(class_scores) == 0:
        rate = guarantee.promise.replace("_", " ")
        raise ValueError(
            f"y_true has no {name}: the {rate} cannot be estimated from these rows."
        )
    # How many rows of the class may lie on the wrong side of the threshold; -1 if even
    # 0 would not pass.
    most = most_errors(len(class_scores), guarantee.limit, level).item()
    threshold = inf
    if most >= 0 and is_recall:
        # The `most` events with the lowest scores are missed.
        threshold = float(class_scores[most])
    elif most >= 0:
        # The `most` rows of the class with the highest scores are accepted: the
        # threshold is the lowest score of any row above the next one.
        above = scores[scores > class_scores[-1 - most]]
        threshold = float(above.min(initial=inf))
    accepted = scores >= threshold
    # Events should be accepted, rows without the event should not.
    is_wrong = in_class & (accepted != is_recall)
    reason = None
    n_needed = None
    pvalue = 1.0
    if most < 0:
        reason = "few_rows"
        class_share = len(class_scores) / len(scores)
        # Without an error n rows pass if (1 - limit)^n <= level.
        n_needed = ceil(log(level) / log1p(-guarantee.limit) / class_share)
    elif threshold == inf:
        reason = "rates"
    else:
        pvalue = float(bdtr(most, len(class_scores), guarantee.limit))
    exactness = _EXACT.format(
        reason=f"the threshold is an order statistic of the scores of the {name}"
    )
    if assumption is OF_CROSS_FITTING:
        exactness = _NOT_EXACT
    elif assumption not in (MODEL, OTHER_ROWS):
        # The map was fitted to these rows: it may have reversed their order.
        exactness = _EXACT_IN_EITHER_ORDER
    return CertifiedThreshold(
        **fields,
        threshold=threshold,
        n_accepted=int(np.count_nonzero(accepted)),
        n_wrong=int(np.count_nonzero(is_wrong)),
        pvalue=pvalue,
        n_needed=n_needed,
        reason=reason,
        assumptions=(assumption, INDEPENDENT_ROWS, FIXED, exactness),
    )


def threshold_by_search(
    rows,
    guarantees,
    fields,
    level,
    thresholds,
    start,
    assumption,
    *,
    uses_same_rows=False,
):
    """Return the `CertifiedThreshold` with the most lenient threshold that passes the
    tests of all guarantees.

    Parameters
    ----------
    rows : DecidedRows
        All samples.
    guarantees : list of Guarantee
        The guarantees.
    fields : dict
        The known fields of the result.
    level : float
        Joint error probability of all tests.
    thresholds, start : array-like, float or None
        User arguments: the thresholds, and the start of the search.
    assumption : str
        The sentence about the model or map.
    uses_same_rows : bool, default=False
        Whether the map was fitted to the same rows.
    """
    promises = [guarantee.promise for guarantee in guarantees]
    if uses_same_rows and thresholds is None:
        # With every score as a threshold, the sets of accepted rows are the same for
        # all maps that keep the order of the rows.
        thresholds = rows.scores
    grid = check_thresholds(thresholds)
    if start is not None and _starts_strictest(promises):
        raise ValueError(
            f"with promise={fields['promise']!r}, the search begins at the strictest"
            " threshold: omit start."
        )
    # The tests start at a fixed threshold, or where the scores of other samples say, or
    # those of these samples.
    fixed_start = _fixed_start(start, promises, grid)
    other_scores = None
    if fixed_start is not None:
        # Stricter thresholds are not tested.
        grid = np.union1d(grid[grid < fixed_start], fixed_start)
    elif start is not None:
        other_scores = deciding_scores(start, promises[0], fields.get("column", 1))
    # Whether the scores of these rows decide where the tests start.
    is_guided = (
        start is None and fixed_start is None and not _starts_strictest(promises)
    )
    strict_guarantees, recall_guarantees = _by_direction(guarantees)
    if strict_guarantees and recall_guarantees:
        # Recall is tested in the opposite order: both sequences share the level.
        level /= 2
    tests = SetTests(rows, rows.sets(grid))
    if is_guided and uses_same_rows:
        # The scores must not guide the search, since they depend on the labels of these
        # rows: it starts at the first set that can pass.
        least = tests.pvalue(strict_guarantees, without_errors=True)
        can_pass = np.flatnonzero(least <= level)
        first = int(can_pass[0]) if len(can_pass) > 0 else None
        starts = [Start(first, level)]
    elif is_guided or other_scores is not None:
        starts = _guided(tests, strict_guarantees, level, other_scores)
    else:
        starts = [Start(0, level)]
    in_one_order = thresholds is rows.scores and set(promises) <= _OF_ONE_ORDER
    exactness = _exactness_of_search(
        uses_same_rows, in_one_order, is_guided, assumption
    )
    independent = INDEPENDENT_ROWS
    if rows.clusters is not None:
        independent = CLUSTERED.format(most=rows.clusters.sizes.max())
    fields = fields | {"assumptions": (assumption, independent, FIXED, exactness)}
    return _tested_threshold(tests, guarantees, starts, fields)


def _fixed_start(start, promises, grid):
    """Return the threshold at which the tests start if it is fixed beforehand, else
    None: the user's `start` if a number; for accuracy alone the largest of the `grid`
    up to 1/2.
    """
    if start is None and promises == ["accuracy"]:
        n_up_to = np.searchsorted(grid, _ACCURACY_STARTS, "right")
        return grid[max(n_up_to - 1, 0)]
    if start is not None and np.ndim(start) == 0:
        return check_number(start, "start", at_least=0, at_most=1)
    return None


def _starts_strictest(promises):
    """Return whether the tests of these guarantees start at the strictest threshold,
    since it cannot violate any but recall.
    """
    return set(promises) <= {*_FROM_STRICTEST, "recall"}


def _exactness_of_search(uses_same_rows, in_one_order, is_guided, assumption):
    """Return a sentence on how exact the confidence level of a search is: whether the
    map was fitted to its rows, the tested sets depend on the order of the scores alone,
    and these rows' scores decide where it starts (`is_guided`).
    """
    if uses_same_rows and in_one_order:
        return _EXACT_IN_EITHER_ORDER
    if uses_same_rows or assumption is OF_CROSS_FITTING:
        return _NOT_EXACT
    if is_guided:
        return _GUIDED_EXACTNESS
    return _EXACT.format(reason=_FIXED_START)


def _guided(tests, guarantees, level, other_scores):
    """Return the two `Start` (a position among the sets, and a level) of sequences of
    tests that the scores, without labels, suggest: those of the samples of the
    `SetTests`, or `other_scores` (n_other,).
    """
    sets = tests.sets
    if other_scores is not None:
        # The sets of the other samples, with the sizes that they predict for these
        # samples.
        no_errors = np.zeros(len(other_scores), dtype=bool)
        increasing = sets.threshold[::-1]
        other_sets = AcceptedSets.from_rows(other_scores, no_errors, increasing)
        share = other_sets.n_rows / len(other_scores)
        n_rows = np.rint(tests.n_all * share).astype(np.int64)
        sets = other_sets._replace(n_rows=n_rows)
    clusters = tests.rows.clusters
    if clusters is None:
        return guided_starts(
            guarantees, sets, tests.n_all, level, of_other_rows=other_scores is not None
        )
    least = tests.pvalue(guarantees, without_errors=True)
    return guided_starts(
        guarantees,
        sets,
        tests.n_all,
        level,
        rows_per_unit=clusters.rows_per_unit,
        can_pass=least <= second_start_level(level),
    )


def _tested_threshold(tests, guarantees, starts, fields):
    """Return the `CertifiedThreshold` with the most lenient threshold that passes the
    `SetTests` for all guarantees, or with the reason why there is none.

    `starts` are the `Start` of each sequence of tests, from strict to lenient
    thresholds; `fields` are the fields of the result that are known before the tests.
    """
    sets = tests.sets
    strict_guarantees, recall_guarantees = _by_direction(guarantees)
    strict_pvalue = tests.pvalue(strict_guarantees)
    recall_pvalue = tests.pvalue(recall_guarantees)
    pvalue = np.maximum(strict_pvalue, recall_pvalue)
    # Positions among the sets: the most lenient one that passes for the guarantees that
    # strict thresholds meet, and the strictest one that passes for recall.
    most_lenient_set = None
    strictest_set = None
    if strict_guarantees:
        most_lenient_set = most_lenient(strict_pvalue, sets.n_rows, starts)
    if recall_guarantees:
        # Recall has one sequence only, which gets the level of all starts.
        recall_level = sum(start.level for start in starts)
        strictest_set = _strictest(recall_pvalue, sets.n_rows, recall_level)
    best = most_lenient_set
    if not strict_guarantees:
        best = strictest_set
    elif recall_guarantees and most_lenient_set is not None:
        # Each of the two sequences of tests was given half of the level. The p-value at
        # the whole level is therefore twice the larger one (Bonferroni).
        pvalue = np.minimum(2 * pvalue, 1.0)
        if strictest_set is None:
            best = None
        elif sets.n_rows[most_lenient_set] < sets.n_rows[strictest_set]:
            # Recall needs more rows than the other guarantees allow: each can be met
            # alone, but no threshold meets all of them together.
            return none_found(fields, guarantees, "together")
    if best is not None:
        n_wrong = [int(tests.n_errors(guarantee)[best]) for guarantee in guarantees]
        return found_at(fields, sets, best, n_wrong, float(pvalue[best]))
    return _no_tested_threshold(tests, guarantees, starts, pvalue, fields)


def _no_tested_threshold(tests, guarantees, starts, pvalue, fields):
    """Return the `CertifiedThreshold` that accepts no sample, with the reason, after
    the `SetTests` of `guarantees` from the `starts` found no threshold. `pvalue`
    (n_sets,) is the largest p-value of each set; `fields` are the other fields of the
    result.
    """
    levels = [start.level for start in starts]
    # The smallest p-value that each set of this size can have: without any error.
    least = tests.pvalue(guarantees, without_errors=True)
    n_needed = tests.n_needed(guarantees, min(levels))
    if least.min() > max(levels):
        return none_found(fields, guarantees, "few_rows", n_needed)
    if (pvalue <= max(levels)).any():
        # A set would pass, but no sequence of tests reaches it.
        reason = "start" if len(starts) > 1 else "sequence"
        return none_found(fields, guarantees, reason)
    # No number is sufficient if the observed rates themselves miss the target.
    reason = "rates" if n_needed is None else "margin"
    return none_found(fields, guarantees, reason, n_needed)


def _by_direction(guarantees):
    """Return the guarantees that are tested from strict to lenient thresholds, and
    those of recall, tested from lenient to strict.
    """
    strict_guarantees = [
        guarantee for guarantee in guarantees if guarantee.promise != "recall"
    ]
    recall_guarantees = [
        guarantee for guarantee in guarantees if guarantee.promise == "recall"
    ]
    return strict_guarantees, recall_guarantees


def _strictest(pvalue, n_rows, level):
    """Return the position of the strictest set that passes, None if there is none. The
    sets are given from strict to lenient, and tested in reverse until one fails.
    """
    failed = np.flatnonzero(pvalue > level)
    if len(failed) == 0:
        last_passed = 0
    else:
        last_passed = failed[-1] + 1
    if last_passed == len(pvalue):
        return None
    # Sets with equally many rows are the same: the strictest of them.
    return int(np.argmax(n_rows == n_rows[last_passed]))


def found_at(fields, sets, best, n_wrong, pvalue):
    """Return the `CertifiedThreshold` at the position `best` among the sets.

    `fields` are the other fields; `n_wrong` is a list with one number per guarantee.
    """
    return CertifiedThreshold(
        **fields,
        threshold=float(sets.threshold[best]),
        n_accepted=int(sets.n_rows[best]),
        n_wrong=tuple(n_wrong) if len(n_wrong) > 1 else n_wrong[0],
        pvalue=pvalue,
    )


def none_found(fields, guarantees, reason, n_needed=None):
    """Return the `CertifiedThreshold` that accepts no row, with the key of the reason
    and, if known, the number of rows that would be sufficient.
    """
    return CertifiedThreshold(
        **fields,
        threshold=inf,
        n_accepted=0,
        n_wrong=(0,) * len(guarantees) if len(guarantees) > 1 else 0,
        pvalue=1.0,
        reason=reason,
        n_needed=n_needed,
    )
