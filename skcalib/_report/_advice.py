"""What to do about a model's scores: the simplest step whose out-of-fold loss is within
noise of the best.

The steps: nothing, a shift of the base rate, one map, a map by segment; and each of
these on the rows since a change.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from skcalib import recalibrators as catalogue
from skcalib._inference.adjustment import holm
from skcalib._report._judged import judged_error, judged_rows
from skcalib._report._measures import mean_error
from skcalib._report._recalibration import N_FOLDS, TrialRows
from skcalib._report._statistics import SIGNIFICANCE_LEVEL, mean
from skcalib._rows.blocks import weights_or_ones
from skcalib._rows.links import log_odds

_MOST_SEGMENTS = 100  # that get a map of their own
_FEW_SEGMENTS = 20  # that may have a map of more than two numbers
_SHAPED = dict.fromkeys(
    ("SplineCalibration", "IsotonicCalibration", "StackedRecalibrator"),
    "SplineCalibration",
)
_SHAPED["BetaCalibration"] = "BetaCalibration"
_BEYOND_DOUBT = 0.001  # an adjusted p-value
_CLOSE = (0.01, 0.2)  # p-values of a step that is decided on more divisions into folds
_FEWEST_SINCE = 200  # rows, that a change of the advice takes
_FEWEST_SIDE = 30  # rows of a segment on either side of its change
_FEWEST_EVENTS_OF_SIDE = 10  # expected there, as the sum of p (1 - p)
_TINY, _RIDGE = 1e-12, 1e-9
_FEWEST_ROWS = 50  # of a fit
_LOST = 0.1  # share of the gain that the noise of a fit may cost
_WIDEST_RANGE = 4  # of numbers of rows that is printed: from 400 to 1,600
_NONE = {
    "kind": "none",
    "recalibrator": None,
    "column": None,
    "segments": [],
    "others": None,
    "since": None,
    "gain": None,
    "gain_low": None,
    "gain_high": None,
    "log_loss": None,
    "error_left": None,
    "simpler": None,
    "rows_needed": None,
    "rows_needed_low": None,
    "needs_cluster": None,
}


class Considered(NamedTuple):
    """The advice for a model, its candidates as rows of a table, the best first, and
    the changes over time; and what was advised as a trial on rows, None where the
    advice is about later rows only, or asks for clusters.
    """

    advice: dict
    candidates: list
    changes: list
    rows: TrialRows
    chosen: object | None = None

    @property
    def brier(self):
        """The out-of-fold Brier score of each row by what is advised, in the order of
        the folds; None without a trial.
        """
        if self.chosen is None:
            return None
        return self.rows.out_of_fold(self.chosen.losses["brier"])


def advised(table, name, seed, step=None, tolerance=0.02):
    """Return the advice for a model, its candidates as rows of a table, the best first,
    and the changes over time.
    """
    return considered(table, name, seed, step, tolerance)[:3]


def brier_difference_as_advised(first, other):
    """Return how much larger the Brier score of a model is than that of the first, both
    out of fold as is advised, with its interval.

    None where nothing is advised for both, or one was not tried.
    """
    names = [first.advice["recalibrator"], other.advice["recalibrator"]]
    losses = [first.brier, other.brier]
    if names == [None, None] or losses[0] is None or losses[1] is None:
        return None
    return first.rows.tested.interval(losses[1] - losses[0])


def considered(table, name, seed, step=None, tolerance=0.02):
    """Return what a report says about recalibrating a model, as `Considered`.

    Without candidates where a class (of several: all but the most frequent one) has
    fewer rows than there are folds.
    """
    rows = TrialRows.of(table, name, seed)
    if rows.folds is None:
        return Considered({**_NONE}, [], [], rows)
    trials = rows.maps(step)
    path, tried = _path(rows, trials)
    candidates = [rows.row(trial, trials[0]) for trial in (*trials, *tried)]
    candidates.sort(key=lambda row: row["log_loss"])
    changes = []
    if table.periods is not None:
        changes = _changes(rows, path[-1], table.period_order, tolerance)
    if table.repeated_keys:
        # Folds that share a key judge a map by what it has learned about that key.
        advice = {**_NONE, "needs_cluster": table.repeated_keys[0]}
        return Considered(advice, candidates, changes, rows)
    advice = _since(rows, path[-1], changes, table.period_order, tolerance)
    if advice is not None:
        return Considered(advice, candidates, changes, rows)
    advice = _described(rows, path, tolerance)
    return Considered(advice, candidates, changes, rows, path[-1])


def _since(rows, chosen, changes, order, tolerance):
    """Return the advice that fits the rows since the clearest change, if it is better
    on these; else None.
    """
    if not changes:
        return None
    since = changes[0]["since"]
    is_later = np.isin(rows.rows.periods, order[order.index(since) :])
    later = rows.at(is_later)
    if len(later.codes) < _FEWEST_SINCE or later.folds is None:
        return None
    path, _ = _path(later, later.maps())
    pvalue = _pvalue_since(rows, chosen, later, path[-1], is_later)
    if _CLOSE[0] < pvalue < _CLOSE[1]:
        trials = rows.closely(chosen), later.closely(path[-1])
        pvalue = _pvalue_since(rows, trials[0], later, trials[1], is_later)
    if pvalue >= SIGNIFICANCE_LEVEL:
        return None
    kind = "none" if len(path) == 1 else "map_since"
    return {**_described(later, path, tolerance), "kind": kind, "since": since}


def _pvalue_since(rows, chosen, later, after, is_later):
    """Return the p-value of the gain on later rows of a map that is fitted to these."""
    gain = rows.by_row(chosen)[is_later] - later.by_row(after)
    return later.rows.mean(gain)[3]


def _described(rows, path, tolerance):
    """Return what is advised, the last step of a path, what it gains on these rows, and
    which error is left.
    """
    before = path[0]
    chosen = path[-1]
    if chosen is before:
        return {**_NONE}
    gain, low, high, _ = rows.gain(before, chosen)
    if chosen.groups:
        kind = "map_by_segment"
    elif chosen.name == "PriorShift":
        kind = "shift"
    else:
        kind = "map"
    fewest, most = _rows_needed(rows, path[-2], chosen)
    task = rows.predicted(chosen)
    left = judged_error(task, mean_error(task, rows.seed), tolerance)
    return {
        **_NONE,
        "kind": kind,
        "recalibrator": chosen.name,
        "column": chosen.column,
        "segments": list(chosen.groups),
        "others": chosen.others,
        "gain": gain,
        "gain_low": low,
        "gain_high": high,
        "log_loss": mean(rows.by_row(before), rows.rows.sample_weight),
        "error_left": left,
        "simpler": path[-2].name,
        "rows_needed": most,
        "rows_needed_low": fewest,
    }


def _rows_needed(rows, simpler, chosen):
    """Return between which numbers of rows a fit keeps nine tenths of what it gains
    over the next simpler step, over the folds; None twice where the folds do not tell.

    The cost of a fit's noise falls as 1 / n. On the rows left out a fit loses twice
    that cost against the fits that have seen them.
    """
    # 9/10 of the gain, by fold
    n_needed = []
    losses = chosen.losses["log"][:N_FOLDS]
    before = simpler.losses["log"][:N_FOLDS]
    for k, fold in enumerate(rows.folds):
        seen = np.delete(losses, k, axis=0).mean(axis=0)
        cost = mean((losses[k] - seen)[fold.test], fold.test_weight) / 2
        gain = mean((before[k] - losses[k])[fold.test], fold.test_weight)
        # A gain with a perfect fit is larger by the cost of the noise.
        if cost <= 0 or gain + cost <= 0:
            return None, None
        n_needed.append(len(rows.codes) * cost / (_LOST * (gain + cost)))
    fewest = _FEWEST_ROWS * max(len(chosen.groups), 1)
    low = max(int(np.ceil(min(n_needed))), fewest)
    high = max(int(np.ceil(max(n_needed))), fewest)
    if high > _WIDEST_RANGE * low:
        return None, None
    return low, high


def _stepwise(rows, trials):
    """Return the path of steps from the first trial on, in the order of simplicity.

    Each further step is taken where its loss is lower than that of every simpler trial,
    and lower than that of the step before beyond chance.
    """
    path = [trials[0]]
    lowest = rows.loss(trials[0])
    for trial in trials[1:]:
        loss = rows.loss(trial)
        if loss >= lowest:
            continue
        lowest = loss
        if _is_better(rows, path[-1], trial):
            path.append(trial)
    return path


def _is_better(rows, before, after):
    """Return whether a trial's loss is lower than that of another beyond chance.

    A p-value near the level, which depends on who shares a fold with whom, is that of
    more divisions into folds.
    """
    pvalue = rows.gain(before, after)[3]
    if _CLOSE[0] < pvalue < _CLOSE[1]:
        pvalue = rows.gain(rows.closely(before), rows.closely(after))[3]
    return pvalue < SIGNIFICANCE_LEVEL


def _path(rows, trials):
    """Return the steps to the trial that is advised, and the maps by segment that were
    tried for it.
    """
    path = _stepwise(rows, trials)
    tried = []
    # The other segments keep their scores; where all need a map, they share one.
    for others in ("unchanged", "shared")[: len(path)]:
        for kind, column, segments in _maps_by_segment(rows, trials[0], path[-1]):
            tried.append(rows.trial(kind(), column, segments, others))
    return path[:-1] + _stepwise(rows, [path[-1], *tried]), tried


def _maps_by_segment(rows, before, one_map):
    """Return the maps by segment that are tried, the simplest first: the class of the
    map, the column, and the segments with a map of their own.
    """
    if rows.columns.shape[1] == 1:
        simple = catalogue.PlattScaling
    else:
        simple = catalogue.TemperatureScaling
    # Pairs of a column and the segments of it that get a map, the fewest first.
    candidates = []
    for column in rows.segmentations:
        for segments in _owners(rows, column, before, one_map):
            candidates.append((column, segments))
    candidates.sort(key=lambda candidate: len(candidate[1]))
    maps = []
    for kind in (catalogue.PriorShift, simple):
        for column, segments in candidates:
            maps.append((kind, column, segments))
    # A map of the shape that all rows have needs many rows in each segment.
    if one_map.name in _SHAPED:
        kind = getattr(catalogue, _SHAPED[one_map.name])
        for column, segments in candidates:
            if len(segments) <= _FEW_SEGMENTS:
                maps.append((kind, column, segments))
    return maps


def _owners(rows, column, before, one_map):
    """Return the sets of segments of a column that may need a map of their own, the
    smallest first.
    """
    after = _off(rows, one_map, column)
    if not (after.beyond_doubt or after.off or after.together):
        return []
    unchanged = _off(rows, before, column)
    if not after.together:
        owners = [unchanged.beyond_doubt, unchanged.off]
        owners += [after.beyond_doubt, after.off]
    else:
        # All segments where the small differences count together: paired losses are
        # slower to see these.
        owners = [after.together]
        if not unchanged.together:
            # One map for all may have moved segments that were right.
            owners += [unchanged.beyond_doubt, unchanged.off]
    owners = sorted(filter(None, owners), key=len)
    # If all segments but one have maps of their own, the shared map is that one's
    # alone: as with a map for each.
    n_others = len(np.unique(rows.segmentations[column])) - 1
    distinct = {}
    for segments in owners:
        key = frozenset(segments)
        if len(segments) >= n_others:
            key = "all"
        distinct[key] = segments
    return list(distinct.values())


class _Off(NamedTuple):
    """Segments of a column in which a trial's probabilities are off by more than
    noise, each the clearest first.

    Those that are off beyond doubt; those that are off; and all segments, if those that
    are not off by themselves are off together, else none.
    """

    beyond_doubt: tuple
    off: tuple
    together: tuple


def _off(rows, trial, column):
    """Return the segments in which a trial's probabilities are off, as `_Off`."""
    names, segment = np.unique(rows.tested_segments(column), return_inverse=True)
    score, information = _score(rows, trial)
    statistics = _statistics(_sums(score, segment), _sums(information, segment))
    adjusted = holm(chdtrc(2, statistics))
    is_off = adjusted < SIGNIFICANCE_LEVEL
    # Small differences may count together: the sum of independent chi-square statistics
    # has the sum of their degrees.
    others = statistics[~is_off]
    are_off_together = False
    if len(others) > 0:
        pvalue = chdtrc(2 * len(others), others.sum())
        are_off_together = pvalue < SIGNIFICANCE_LEVEL
    clearest_first = np.argsort(-statistics, kind="stable")[:_MOST_SEGMENTS]

    def clearest(is_chosen):
        places = [place for place in clearest_first if is_chosen[place]]
        return tuple(names[places].tolist())

    return _Off(
        clearest(adjusted < _BEYOND_DOUBT),
        clearest(is_off),
        clearest(np.full(len(names), are_off_together)),
    )


def _score(rows, trial):
    """Return each row's score of an intercept and a slope on the log-odds (n, 2), and
    their information (n, 2, 2).

    Of several classes it is about the predicted one. What clusters add to the variance
    is a factor, for all rows one.
    """
    task = rows.predicted(trial)
    odds = log_odds(task.scores)
    features = np.column_stack(
        (np.ones(len(odds)), (odds - odds.mean()) / (odds.std() or 1.0))
    )
    weight = weights_or_ones(task.sample_weight, len(odds))
    score = features * (weight * (task.labels - task.scores))[:, None]
    effect = 1.0
    if task.clusters is not None:
        sums = _sums(score, np.unique(task.clusters, return_inverse=True)[1])
        of_rows = max(np.sum(score[:, 0] ** 2), np.finfo(float).tiny)
        effect = max(np.sum(sums[:, 0] ** 2) / of_rows, 1.0)
    variance = effect * weight * task.scores * (1 - task.scores)
    return score, features[:, :, None] * features[:, None, :] * variance[:, None, None]


def _sums(values, codes, n=0):
    """Return the sums of the rows of an array (n, ...) by code, (n_codes, ...)."""
    flat = values.reshape(len(values), -1)
    columns = [np.bincount(codes, column, minlength=n) for column in flat.T]
    return np.stack(columns, axis=-1).reshape(-1, *values.shape[1:])


def _sums_from(values, period, n_periods):
    """Return the sums of the rows of an array from each period on."""
    by_period = _sums(values, period, n_periods)
    return by_period[::-1].cumsum(axis=0)[::-1]


def _statistics(score, information):
    """Return the statistics, chi-square with 2 degrees, of scores (..., 2) with their
    information (..., 2, 2).
    """
    size = np.trace(information, axis1=-2, axis2=-1)[..., None, None]
    padded = information + (_TINY + _RIDGE * size) * np.eye(2)
    return np.einsum(
        "...i,...i", score, np.linalg.solve(padded, score[..., None])[..., 0]
    )


def _changes(rows, chosen, order, tolerance):
    """Return when calibration changed, of all rows and each segment: rows of a table,
    the clearest first.

    For each group and each period the score test of "what the recalibrated rows are off
    by is the same before it and from it on"; its p-value is adjusted for the number of
    groups and of periods (Bonferroni).
    """
    tested = rows.tested
    changes = []
    place = {name: k for k, name in enumerate(order)}
    period = np.array([place[name] for name in tested.periods.tolist()])
    groups = [(None, np.ones(len(period), dtype=bool))]
    for column in rows.segmentations:
        segments = rows.tested_segments(column)
        groups += [(str(name), segments == name) for name in np.unique(segments)]
    score, information = _score(rows, chosen)
    n_tests = len(groups) * max(len(order) - 1, 1)
    for name, in_group in groups:
        at, pvalue = _clearest_change(
            score[in_group], information[in_group], period[in_group], len(order)
        )
        adjusted = min(pvalue * n_tests, 1.0)
        if adjusted >= SIGNIFICANCE_LEVEL:
            continue
        row = {"group": name, "since": order[at]}
        for side, is_side in (("before", period < at), ("after", period >= at)):
            task = tested.task.at(in_group & is_side)
            # Any group and any period might have been chosen, on two sides.
            judged = judged_rows(task, tolerance, 2 * n_tests)
            row[f"bias_{side}"] = judged["estimate"]
            row[f"verdict_{side}"] = judged
        row["adjusted_pvalue"] = float(adjusted)
        changes.append(row)
    return sorted(changes, key=lambda row: row["adjusted_pvalue"])


def _clearest_change(score, information, period, n_periods):
    """Return the period from which on scores differ most clearly from those before,
    and its p-value: 1 where either side has few rows or events.

    `score` (n, 2) and `information` (n, 2, 2) are those of `_score`.
    """
    # Sums of the rows from each period on, (n_periods, ...).
    number = _sums_from(np.ones((len(period), 1)), period, n_periods)[:, 0]
    score_after = _sums_from(score, period, n_periods)
    information_after = _sums_from(information, period, n_periods)
    # If the rows before and after were off by the same, the later ones would have this
    # share of the whole score, and the covariance of what is left would be this.
    share = information_after @ np.linalg.pinv(information_after[0])
    left = score_after - share @ score_after[0]
    covariance = information_after - share @ information_after
    pvalues = chdtrc(2, _statistics(left, covariance))
    smaller_side = np.minimum(number, number[0] - number)
    pvalues[smaller_side < _FEWEST_SIDE] = 1.0
    # With a few rare events on a side the statistic has no chi-square distribution.
    events = information_after[:, 0, 0]
    smaller_events = np.minimum(events, events[0] - events)
    pvalues[smaller_events < _FEWEST_EVENTS_OF_SIDE] = 1.0
    at = int(pvalues.argmin())
    return at, pvalues[at]
