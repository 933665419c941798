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

_MOST_SEGMENTS = 100  # most segments that get a map each
_FEW_SEGMENTS = 20  # most segments that get a map with more than two parameters
# The map that is tried in segments if that of all rows has a shape.
_SHAPED = {
    "SplineCalibration": "SplineCalibration",
    "IsotonicCalibration": "SplineCalibration",
    "StackedRecalibrator": "SplineCalibration",
    "BetaCalibration": "BetaCalibration",
}
_BEYOND_DOUBT = 0.001  # adjusted p-value of a segment that is clearly off
# A step whose p-value lies between these is decided on more divisions into folds.
_CLOSE_FROM = 0.01
_CLOSE_TO = 0.2
# Fewest rows since a change with which the advice is fitted to them.
_FEWEST_SINCE = 200
_FEWEST_SIDE = 30  # fewest rows of a segment before and after a change
# Fewest expected events there, counted as the sum of p (1 - p).
_FEWEST_EVENTS_OF_SIDE = 10
# Added to the diagonal of an information matrix so that it can be inverted: a constant,
# and a share of its trace.
_TINY = 1e-12
_RIDGE = 1e-9
_FEWEST_ROWS = 50  # fewest rows that a fit is said to need
_LOST = 0.1  # share of the gain that the noise of a fit may cost
_WIDEST_RANGE = 4  # ratio of the numbers of a range that is printed: 400 to 1,600
# The advice to do nothing, with all keys that an advice has.
_NO_ADVICE = {
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
    "n_of_key": None,
}


class Considered(NamedTuple):
    """The advice for a model, and what it rests on.

    Attributes
    ----------
    advice : dict
        What to do; the keys are those of `_NO_ADVICE`.
    candidates, changes : list of dict
        Rows of tables: the recalibrators that were tried, the best first, and the
        changes over time, the clearest first.
    rows : TrialRows
        The rows that recalibrators were tried on.
    chosen : Trial or None
        What is advised; None where it is about later rows only, or asks for clusters.
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
    """Return the advice for a model (a dict), the candidates and the changes over time
    (lists of dicts, the rows of tables), the best and the clearest first.
    """
    found = considered(table, name, seed, step, tolerance)
    return found.advice, found.candidates, found.changes


def brier_difference_as_advised(first, other):
    """Return how much larger the Brier score of a model is than that of the first, with
    its interval, if both are used as advised (out-of-fold). Both arguments are
    `Considered`.

    None if nothing is advised for either, or if the advice was not tried out-of-fold.
    """
    advised_first = first.advice["recalibrator"]
    advised_other = other.advice["recalibrator"]
    if advised_first is None and advised_other is None:
        return None
    if first.brier is None or other.brier is None:
        return None
    return first.rows.tested.interval(other.brier - first.brier)


def considered(table, name, seed, step=None, tolerance=0.02):
    """Return advice, candidates and changes for a model as `Considered`.

    There are no candidates if fewer than two classes have as many rows as there are
    folds.

    Parameters
    ----------
    table : ReportTable
        The rows.
    name : str
        Name of the model.
    seed : int
        Seeds sample and folds.
    step : callable, default=None
        Called with the name of each recalibrator before it is tried.
    tolerance : float
        Bias that does not matter, as a probability.
    """
    rows = TrialRows.of(table, name, seed)
    nothing = {**_NO_ADVICE}
    if table.repeated_keys:
        nothing["needs_cluster"] = table.repeated_keys[0]
        nothing["n_of_key"] = table.n_of_key
    if rows.folds is None:
        return Considered(nothing, [], [], rows)
    trials = rows.maps(step)
    unchanged = trials[0]
    path, by_segment = _path(rows, trials)
    chosen = path[-1]
    candidates = [rows.row(trial, unchanged) for trial in (*trials, *by_segment)]
    candidates.sort(key=lambda row: row["log_loss"])
    changes = []
    if table.periods is not None:
        changes = _changes(rows, chosen, table.period_order, tolerance)
    if table.repeated_keys:
        # Folds that share a key judge a map by what it has learned about that key.
        return Considered(nothing, candidates, changes, rows)
    advice = _since(rows, chosen, changes, table.period_order, tolerance)
    if advice is not None:
        return Considered(advice, candidates, changes, rows)
    advice = _described(rows, path, tolerance)
    return Considered(advice, candidates, changes, rows, chosen)


def _since(rows, chosen, changes, order, tolerance):
    """Return the advice that is fitted to the rows since the clearest change, if it is
    better on these than the trial `chosen` for all rows; else None.

    `changes` are those of `_changes`, `order` the periods in the order of time.
    """
    if not changes:
        return None
    since = changes[0]["since"]
    is_later = np.isin(rows.rows.periods, order[order.index(since) :])
    later = rows.at(is_later)
    if len(later.codes) < _FEWEST_SINCE or later.folds is None:
        return None
    path, _ = _path(later, later.maps())
    best_of_later = path[-1]
    pvalue = _pvalue_since(rows, chosen, later, best_of_later, is_later)
    if _is_close(pvalue):
        of_all = rows.with_more_divisions(chosen)
        of_later = later.with_more_divisions(best_of_later)
        pvalue = _pvalue_since(rows, of_all, later, of_later, is_later)
    if pvalue >= SIGNIFICANCE_LEVEL:
        return None
    kind = "map_since"
    if len(path) == 1:
        kind = "none"  # no map beats the unchanged scores on the later rows
    return {**_described(later, path, tolerance), "kind": kind, "since": since}


def _pvalue_since(rows, chosen, later, after, is_later):
    """Return the p-value of the gain on the `later` rows of the trial `after`, which is
    fitted to them, over the trial `chosen` for all rows.
    """
    gain = rows.by_row(chosen)[is_later] - later.by_row(after)
    *_, pvalue = later.rows.mean(gain)
    return pvalue


def _described(rows, path, tolerance):
    """Return the advice as a dict: what to do, its gain over the unchanged scores, and
    the error that is left.

    `path` is that of `_path`: a list of trials from the unchanged scores to what is
    advised.
    """
    before = path[0]
    chosen = path[-1]
    if chosen is before:
        return {**_NO_ADVICE}
    simpler = path[-2]
    gain, low, high, _ = rows.gain(before, chosen)
    if chosen.groups:
        kind = "map_by_segment"
    elif chosen.name == "PriorShift":
        kind = "shift"
    else:
        kind = "map"
    fewest, most = _rows_needed(rows, simpler, chosen)
    event_rows = rows.predicted(chosen)
    left = judged_error(event_rows, mean_error(event_rows, rows.seed), tolerance)
    return {
        **_NO_ADVICE,
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
        "simpler": simpler.name,
        "rows_needed": most,
        "rows_needed_low": fewest,
    }


def _rows_needed(rows, simpler, chosen):
    """Return the range (low, high) over the folds of the number of rows with which a
    fit keeps nine tenths of its gain over the next simpler trial; (None, None) if the
    folds do not determine it.

    The noise of a fit to n rows costs c in mean loss, and falls as 1 / n: with m rows
    it costs n c / m. Of the gain without noise, g + c for a gain of g, a tenth may be
    lost, so m = n c / (.1 (g + c)). On the rows of a fold, the fit without them loses
    2 c compared with the fits that have seen them.
    """
    n_needed = []  # by fold
    losses = chosen.losses["log"][:N_FOLDS]
    before = simpler.losses["log"][:N_FOLDS]
    for k, fold in enumerate(rows.folds):
        loss_if_seen = np.delete(losses, k, axis=0).mean(axis=0)
        excess = losses[k] - loss_if_seen
        cost = mean(excess[fold.test], fold.test_weight) / 2
        gain_by_row = before[k] - losses[k]
        gain = mean(gain_by_row[fold.test], fold.test_weight)
        # The formula holds for a positive cost and a positive gain without noise.
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
    """Return a path through trials: a list that begins with the first one, the
    simplest.

    `rows` are the `TrialRows`, `trials` a list of `Trial` in the order of simplicity. A
    trial is appended if its loss is lower than that of every simpler trial, and lower
    beyond chance than that of the last trial of the path.
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
    """Return whether the loss of the trial `after` is lower than that of `before`
    beyond chance.
    """
    *_, pvalue = rows.gain(before, after)
    if _is_close(pvalue):
        *_, pvalue = rows.gain(
            rows.with_more_divisions(before), rows.with_more_divisions(after)
        )
    return pvalue < SIGNIFICANCE_LEVEL


def _is_close(pvalue):
    """Return whether a p-value is so near the level that it depends on which rows share
    a fold: it is then computed again on more divisions into folds.
    """
    return _CLOSE_FROM < pvalue < _CLOSE_TO


def _path(rows, trials):
    """Return the path to the advice, and the trials of maps by segment.

    The path is a list of trials: first the unchanged scores, last what is advised, and
    between them the simpler steps, each better than the one before it beyond chance.

    `rows` are the `TrialRows`, `trials` a list of `Trial` for maps of all rows, which
    begins with the unchanged scores.
    """
    path = _stepwise(rows, trials)
    one_map = path[-1]
    # Other segments keep their scores or share a map. The latter is tried only if a map
    # for all rows was chosen.
    treatments = ["unchanged"]
    if len(path) > 1:
        treatments.append("shared")
    by_segment = []
    for others in treatments:
        for kind, column, segments in _maps_by_segment(rows, trials[0], one_map):
            by_segment.append(rows.trial(kind(), column, segments, others))
    return path[:-1] + _stepwise(rows, [one_map, *by_segment]), by_segment


def _maps_by_segment(rows, before, one_map):
    """Return the maps by segment to try, the simplest first, as a list of triples:
    class of the map, column, and the segments that get a map each.

    `before` is the trial of the unchanged scores, `one_map` that of all rows.
    """
    if rows.columns.shape[1] == 1:
        simple = catalogue.PlattScaling
    else:
        simple = catalogue.TemperatureScaling
    # Pairs of a column and the segments of it that get a map, the fewest first.
    candidates = []
    for column in rows.segmentations:
        for segments in _sets_of_segments(rows, column, before, one_map):
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


def _sets_of_segments(rows, column, before, one_map):
    """Return the sets of segments of a column that may need a map each, as a list of
    tuples, the smallest first.

    Segments are candidates if their probabilities are off, either unchanged (by the
    trial `before`) or by the best map for all rows (`one_map`).
    """
    after = _segments_off(rows, one_map, column)
    if not (after.beyond_doubt or after.off or after.together):
        return []
    unchanged = _segments_off(rows, before, column)
    if not after.together:
        sets = [unchanged.beyond_doubt, unchanged.off]
        sets += [after.beyond_doubt, after.off]
    else:
        # Small differences in many segments count together, and a comparison of losses
        # would need more rows to show them: all segments are tried.
        sets = [after.together]
        if not unchanged.together:
            # One map for all may have moved segments that were right.
            sets += [unchanged.beyond_doubt, unchanged.off]
    sets = sorted(filter(None, sets), key=len)  # without empty ones
    # If all segments but one have a map each, the shared map is that of the last one:
    # the same as a map for each.
    n_others = len(np.unique(rows.segmentations[column])) - 1
    distinct = {}
    for segments in sets:
        key = frozenset(segments)
        if len(segments) >= n_others:
            key = "all"
        distinct[key] = segments
    return list(distinct.values())


class _SegmentsOff(NamedTuple):
    """Segments of a column in which the probabilities of a trial are off by more than
    noise, the clearest first.

    Attributes
    ----------
    beyond_doubt, off : tuple of str
        Segments with an adjusted p-value below .001, and below .05.
    together : tuple of str
        All segments, if those that are not off by themselves are off as a group; else
        empty.
    """

    beyond_doubt: tuple
    off: tuple
    together: tuple


def _segments_off(rows, trial, column):
    """Return the segments of a column in which a trial's probabilities are off, as
    `_SegmentsOff`.

    The test in each segment is a score test that the log-odds need no intercept and a
    slope of 1, with 2 degrees of freedom; p-values are adjusted by Holm's method.
    """
    names, segment = np.unique(rows.tested_segments(column), return_inverse=True)
    score, information = _score(rows, trial)
    statistics = _score_statistics(_sums(score, segment), _sums(information, segment))
    adjusted = holm(chdtrc(2, statistics))
    is_off = adjusted < SIGNIFICANCE_LEVEL
    # Small differences may count together: the sum of independent chi-square statistics
    # has the sum of their degrees of freedom.
    others = statistics[~is_off]
    are_off_together = False
    if len(others) > 0:
        pvalue = chdtrc(2 * len(others), others.sum())
        are_off_together = pvalue < SIGNIFICANCE_LEVEL
    clearest_first = np.argsort(-statistics, kind="stable")[:_MOST_SEGMENTS]

    def clearest(is_chosen):
        """Return the names of the chosen segments, at most 100, the clearest first."""
        chosen = clearest_first[is_chosen[clearest_first]]
        return tuple(names[chosen].tolist())

    return _SegmentsOff(
        beyond_doubt=clearest(adjusted < _BEYOND_DOUBT),
        off=clearest(is_off),
        together=clearest(np.full(len(names), are_off_together)),
    )


def _score(rows, trial):
    """Return each row's score (gradient of the log-likelihood) for an intercept and a
    slope on the log-odds, (n, 2), and its information matrix, (n, 2, 2).

    With several classes the event is that the predicted class is right. With clusters
    the score varies more than that of independent rows: the information is multiplied
    by the design effect, the ratio of both variances, at least 1.
    """
    event_rows = rows.predicted(trial)
    logits = log_odds(event_rows.scores)
    # The statistic does not depend on the scale, but the matrix is better conditioned.
    standardised = (logits - logits.mean()) / (logits.std() or 1.0)
    features = np.column_stack((np.ones(len(logits)), standardised))
    weight = weights_or_ones(event_rows.sample_weight, len(logits))
    # w (y - p) x for a label y, probability p, weight w and features x. The information
    # is w p (1 - p) x x'.
    score = features * (weight * (event_rows.labels - event_rows.scores))[:, None]
    effect = 1.0
    if event_rows.clusters is not None:
        _, cluster = np.unique(event_rows.clusters, return_inverse=True)
        # Of the intercept's score: squared sums of clusters, and squares of rows, which
        # are kept above 0 for the division.
        cluster_squares = np.sum(_sums(score, cluster)[:, 0] ** 2)
        row_squares = max(np.sum(score[:, 0] ** 2), np.finfo(float).tiny)
        effect = max(cluster_squares / row_squares, 1.0)
    variance = effect * weight * event_rows.scores * (1 - event_rows.scores)
    products = features[:, :, None] * features[:, None, :]  # (n, 2, 2)
    return score, products * variance[:, None, None]


def _sums(values, codes, n_codes=0):
    """Return the sums by code, (n_codes, ...), of the rows of an array (n, ...).

    `codes` (n,) are integers from 0 on; there are at least `n_codes` sums, also of
    codes without a row.
    """
    flat = values.reshape(len(values), -1)
    columns = [np.bincount(codes, column, minlength=n_codes) for column in flat.T]
    return np.stack(columns, axis=-1).reshape(-1, *values.shape[1:])


def _sums_from(values, period, n_periods):
    """Return the sums, (n_periods, ...), of the rows of an array (n, ...) in each
    period and all later ones.
    """
    by_period = _sums(values, period, n_periods)
    # Reversed before and after: a cumulative sum from the last period back.
    return by_period[::-1].cumsum(axis=0)[::-1]


def _score_statistics(score, information):
    """Return the score statistics u' I^-1 u, chi-square with 2 degrees of freedom, of
    scores u (..., 2) with information matrices I (..., 2, 2).
    """
    # A matrix is singular where all scores are equal: a little is added to its diagonal
    # so that it can be inverted.
    size = np.trace(information, axis1=-2, axis2=-1)[..., None, None]
    invertible = information + (_TINY + _RIDGE * size) * np.eye(2)
    solved = np.linalg.solve(invertible, score[..., None])[..., 0]
    return np.einsum("...i,...i", score, solved)


def _changes(rows, chosen, order, tolerance):
    """Return since when calibration has changed, for all rows and each segment: a list
    of dicts, the rows of a table, the clearest first.

    For each group and each period, a score test compares the miscalibration that is
    left by the trial `chosen` before the period with that from it on. P-values are
    adjusted for the number of groups and of periods (Bonferroni). `order` holds the
    periods in the order of time.
    """
    tested = rows.tested
    changes = []
    position = {name: k for k, name in enumerate(order)}
    period = np.array([position[name] for name in tested.periods.tolist()])
    # Pairs of a name (None for all rows) and the rows of the group, (n,).
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
            event_rows = tested.event_rows.at(in_group & is_side)
            # Any group and any period might have been chosen, on two sides.
            judged = judged_rows(event_rows, tolerance, 2 * n_tests)
            row[f"bias_{side}"] = judged["estimate"]
            row[f"verdict_{side}"] = judged
        row["adjusted_pvalue"] = float(adjusted)
        changes.append(row)
    return sorted(changes, key=lambda row: row["adjusted_pvalue"])


def _clearest_change(score, information, period, n_periods):
    """Return the number of the period since when calibration differs most clearly from
    that before, and the p-value of this difference. The p-value is 1 if each period
    leaves too few rows or events before or after it.

    `score` (n, 2) and `information` (n, 2, 2) are those of `_score`, `period` (n,) is
    the number of each row's period, 0 for the earliest.
    """
    # Numbers of rows, and sums over the rows, from each period on, (n_periods, ...);
    # entry 0 is about all rows.
    n_after = _sums_from(np.ones((len(period), 1)), period, n_periods)[:, 0]
    score_after = _sums_from(score, period, n_periods)
    information_after = _sums_from(information, period, n_periods)
    # If the rows before and after were off by the same amount, the later ones would
    # have this share (n_periods, 2, 2) of the total score. What is left of their score
    # then has expectation 0 and this covariance.
    share = information_after @ np.linalg.pinv(information_after[0])
    left = score_after - share @ score_after[0]
    covariance = information_after - share @ information_after
    pvalues = chdtrc(2, _score_statistics(left, covariance))
    smaller_side = np.minimum(n_after, n_after[0] - n_after)
    pvalues[smaller_side < _FEWEST_SIDE] = 1.0
    # With a few rare events on a side the statistic has no chi-square distribution.
    # The information on the intercept is the sum of p (1 - p), the expected number of
    # events where these are rare.
    events = information_after[:, 0, 0]
    smaller_events = np.minimum(events, events[0] - events)
    pvalues[smaller_events < _FEWEST_EVENTS_OF_SIDE] = 1.0
    at = int(pvalues.argmin())
    return at, pvalues[at]
