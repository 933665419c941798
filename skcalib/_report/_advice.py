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
from skcalib._report._forecasts import brier_difference, compared
from skcalib._report._judged import judged_error, judged_rows
from skcalib._report._measures import mean_error
from skcalib._report._recalibration import N_FOLDS, CrossValidation
from skcalib._report._statistics import SIGNIFICANCE_LEVEL, mean
from skcalib._rows.blocks import weights_or_ones
from skcalib._rows.links import log_odds

_MOST_SEGMENTS = 100  # most segments that get a map each
_FEW_SEGMENTS = 20  # most segments that get a map with more than two parameters
# The curve to compare in segments, by the name of the map chosen for all samples if
# that is a curve.
_CURVE_BY_SEGMENT = {
    "SplineCalibration": catalogue.SplineCalibration,
    "IsotonicCalibration": catalogue.SplineCalibration,
    "StackedRecalibrator": catalogue.SplineCalibration,
    "BetaCalibration": catalogue.BetaCalibration,
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
        Rows of tables: the recalibrators that were compared, the best first, and the
        changes over time, the clearest first.
    cv : CrossValidation
        The samples, and the folds by which recalibrators were compared.
    chosen : Candidate or None
        The advised recalibrator. None if the advice is fitted to later samples only, or
        if the report first asks for the clusters.
    """

    advice: dict
    candidates: list
    changes: list
    cv: CrossValidation
    chosen: object | None = None


def advised(table, name, seed, show_progress=None, tolerance=0.02):
    """Return the advice for a model (a dict), the candidates and the changes over time
    (lists of dicts, the rows of tables), the best and the clearest first.
    """
    found = considered(table, name, seed, show_progress, tolerance)
    return found.advice, found.candidates, found.changes


def brier_difference_as_advised(first, other):
    """Return the mean difference in out-of-fold Brier score between two models, if each
    is recalibrated as the report advises.

    Parameters
    ----------
    first, other : Considered
        The advice for the two models.

    Returns
    -------
    difference : dict or None
        "estimate", "low" and "high" of the score of `other` minus that of `first`. None
        if neither is to be recalibrated, or if out-of-fold scores of one of them as
        advised are not known.
    """
    advised_first = first.advice["recalibrator"]
    advised_other = other.advice["recalibrator"]
    if advised_first is None and advised_other is None:
        return None
    if first.chosen is None or other.chosen is None:
        return None
    scores = {"first": first.chosen.probabilities, "other": other.chosen.probabilities}
    return brier_difference(compared(first.cv.in_fold_order, scores), "other")


def considered(table, name, seed, show_progress=None, tolerance=0.02):
    """Compare the recalibrators for a model by cross-validation, and return the advice
    with what it rests on as `Considered`.

    If there are too few samples for the folds, nothing is compared or advised.

    Parameters
    ----------
    table : ReportTable
        Labels and scores.
    name : str
        Name of the model.
    seed : int
        Seed for the sample of the rows and for the folds.
    show_progress : callable, default=None
        Called with the name of each recalibrator before it is fitted.
    tolerance : float
        Bias that does not matter, as a probability.
    """
    cv = CrossValidation.of(table, name, seed)
    no_advice = {**_NO_ADVICE}
    if table.repeated_keys:
        no_advice["needs_cluster"] = table.repeated_keys[0]
        no_advice["n_of_key"] = table.n_of_key
    if cv.folds is None:
        return Considered(no_advice, [], [], cv)
    candidates = cv.candidates(show_progress)
    unchanged = candidates[0]
    steps, by_segment = _steps_to_advice(cv, candidates)
    chosen = steps[-1]
    table_rows = []
    for candidate in (*candidates, *by_segment):
        table_rows.append(cv.table_row(candidate, unchanged))
    table_rows.sort(key=lambda row: row["log_loss"])
    changes = []
    if table.periods is not None:
        changes = _changes(cv, chosen, table.period_order, tolerance)
    if table.repeated_keys:
        # Samples with one key may be in different folds. If they depend on each other,
        # out-of-fold losses are too low: no advice can rest on them.
        return Considered(no_advice, table_rows, changes, cv)
    advice = _advice_since_change(cv, chosen, changes, table.period_order, tolerance)
    if advice is not None:
        return Considered(advice, table_rows, changes, cv)
    advice = _advice_of_steps(cv, steps, tolerance)
    return Considered(advice, table_rows, changes, cv, chosen)


def _advice_since_change(cv, chosen, changes, period_order, tolerance):
    """Return the advice to fit a recalibrator to the samples since the clearest change
    only, a dict; None if it is not better on these samples than `chosen`, the candidate
    that is fitted to all samples.

    Parameters
    ----------
    cv : CrossValidation
        All samples.
    chosen : Candidate
        What is advised for all samples.
    changes : list of dict
        The changes over time, the clearest first.
    period_order : list of str
        The periods in chronological order.
    tolerance : float
        Bias that does not matter, as a probability.
    """
    if not changes:
        return None
    since = changes[0]["since"]
    later_periods = period_order[period_order.index(since) :]
    is_later = np.isin(cv.rows.periods, later_periods)
    later_cv = cv.at(is_later)
    n_later = np.count_nonzero(is_later)
    if n_later < _FEWEST_SINCE or later_cv.folds is None:
        return None
    steps, _ = _steps_to_advice(later_cv, later_cv.candidates())
    best_of_later = steps[-1]

    def pvalue_of(fitted_to_all, fitted_to_later):
        """Return the one-sided p-value of "on the later samples, the `Candidate` fitted
        to all samples has no larger log-loss than the one fitted to the later ones".
        """
        loss_of_all = cv.log_loss_by_row(fitted_to_all)[is_later]
        gain = loss_of_all - later_cv.log_loss_by_row(fitted_to_later)
        return later_cv.rows.mean(gain).pvalue

    pvalue = pvalue_of(chosen, best_of_later)
    if _is_close(pvalue):
        pvalue = pvalue_of(
            cv.with_more_divisions(chosen), later_cv.with_more_divisions(best_of_later)
        )
    if pvalue >= SIGNIFICANCE_LEVEL:
        return None
    kind = "map_since"
    if len(steps) == 1:
        kind = "none"  # no map beats the unchanged scores on the later samples
    advice = _advice_of_steps(later_cv, steps, tolerance)
    return {**advice, "kind": kind, "since": since}


def _advice_of_steps(cv, steps, tolerance):
    """Return the advice to use the last one of several candidates, as a dict with the
    keys of `_NO_ADVICE`: what to do, its gain over the unchanged scores, and the
    calibration error that is left.

    `steps` are those of `_steps_to_advice`: the first is the unchanged scores.
    """
    unchanged = steps[0]
    chosen = steps[-1]
    if chosen is unchanged:
        return {**_NO_ADVICE}
    simpler = steps[-2]
    gain = cv.gain(unchanged, chosen)
    if chosen.segments:
        kind = "map_by_segment"
    elif chosen.name == "PriorShift":
        kind = "shift"
    else:
        kind = "map"
    fewest, most = _rows_needed(cv, simpler, chosen)
    recalibrated = cv.event_rows(chosen)
    error = mean_error(recalibrated, cv.seed)
    return {
        **_NO_ADVICE,
        "kind": kind,
        "recalibrator": chosen.name,
        "column": chosen.column,
        "segments": list(chosen.segments),
        "others": chosen.others,
        "gain": gain.estimate,
        "gain_low": gain.low,
        "gain_high": gain.high,
        "log_loss": mean(cv.log_loss_by_row(unchanged), cv.rows.sample_weight),
        "error_left": judged_error(recalibrated, error, tolerance),
        "simpler": simpler.name,
        "rows_needed": most,
        "rows_needed_low": fewest,
    }


def _rows_needed(cv, simpler, chosen):
    """Return how many samples a fit of the candidate `chosen` needs to keep nine tenths
    of its gain in log-loss over the candidate `simpler`, as a range (low, high) over
    the folds; (None, None) if the folds disagree too much.

    Let g be the gain on held-out samples of a fit to n samples, and c the loss that
    estimation noise adds to it. The noise falls as 1 / n: with m samples it adds
    n c / m. Without noise the gain would be g + c, of which a tenth may be lost:
    n c / m = .1 (g + c), which is solved for m. A fit is by 2 c worse on samples that
    it has not seen than on those that it was fitted to, as in Akaike's criterion.
    """
    n_needed_by_fold = []
    # (N_FOLDS, n): the loss of each sample under the fit without each fold.
    losses = chosen.losses["log"][:N_FOLDS]
    losses_of_simpler = simpler.losses["log"][:N_FOLDS]
    for k, fold in enumerate(cv.folds):
        loss_if_seen = np.delete(losses, k, axis=0).mean(axis=0)
        excess = losses[k] - loss_if_seen
        cost = mean(excess[fold.test], fold.test_weight) / 2  # c
        gain_by_row = losses_of_simpler[k] - losses[k]
        gain = mean(gain_by_row[fold.test], fold.test_weight)  # g
        # The formula holds for a positive cost and a positive gain without noise.
        if cost <= 0 or gain + cost <= 0:
            return None, None
        n_needed_by_fold.append(len(cv.codes) * cost / (_LOST * (gain + cost)))
    n_maps = max(len(chosen.segments), 1)
    fewest = _FEWEST_ROWS * n_maps
    low = max(int(np.ceil(min(n_needed_by_fold))), fewest)
    high = max(int(np.ceil(max(n_needed_by_fold))), fewest)
    if high > _WIDEST_RANGE * low:
        return None, None
    return low, high


def _significant_steps(cv, candidates):
    """Return the candidates that a forward selection accepts, in their order.

    `candidates` is a list that begins with the simplest one, which is accepted. A later
    one is accepted if its out-of-fold loss is lower than that of every simpler
    candidate, and significantly lower than that of the last accepted one.
    """
    accepted = [candidates[0]]
    lowest = cv.mean_loss(candidates[0])
    for candidate in candidates[1:]:
        loss = cv.mean_loss(candidate)
        if loss >= lowest:
            continue
        lowest = loss
        if _is_better(cv, accepted[-1], candidate):
            accepted.append(candidate)
    return accepted


def _is_better(cv, before, after):
    """Return whether the out-of-fold loss of the candidate `after` is significantly
    lower than that of the candidate `before`.

    If the p-value is close to the level, it depends on which samples share a fold: it
    is then computed again with more divisions into folds.
    """
    pvalue = cv.gain(before, after).pvalue
    if _is_close(pvalue):
        pvalue = cv.gain(
            cv.with_more_divisions(before), cv.with_more_divisions(after)
        ).pvalue
    return pvalue < SIGNIFICANCE_LEVEL


def _is_close(pvalue):
    """Return whether a p-value is so near the level that it depends on which samples
    share a fold: it is then computed again with more divisions into folds.
    """
    return _CLOSE_FROM < pvalue < _CLOSE_TO


def _steps_to_advice(cv, candidates):
    """Return the steps from the unchanged scores to the advised candidate, and all
    candidates with a map by segment that were compared: two lists of `Candidate`.

    The first step is the unchanged scores, the last one is what is advised, and each is
    significantly better than the one before it. First one map for all samples is
    chosen, then it is compared with maps by segment.

    `candidates` are those with one map for all samples, the unchanged scores first.
    """
    steps = _significant_steps(cv, candidates)
    one_map = steps[-1]
    # What happens to the segments without a map of their own: they keep their scores
    # or, if a map for all samples was chosen, share a map.
    treatments = ["unchanged"]
    if len(steps) > 1:
        treatments.append("shared")
    by_segment = []
    for others in treatments:
        for kind, column, segments in _maps_by_segment(cv, candidates[0], one_map):
            by_segment.append(cv.candidate(kind(), column, segments, others))
    # `one_map` is the last step, and the first one of the second selection.
    further_steps = _significant_steps(cv, [one_map, *by_segment])
    return steps[:-1] + further_steps, by_segment


def _maps_by_segment(cv, unchanged, one_map):
    """Return the maps by segment to compare, the simplest first, as a list of triples:
    class of the map, column, and the segments of the column that get a map each.

    `unchanged` is the candidate of the unchanged scores, `one_map` the best one with a
    single map for all samples.
    """
    if cv.columns.shape[1] == 1:
        simple = catalogue.PlattScaling
    else:
        simple = catalogue.TemperatureScaling
    # Pairs of a column and the segments that get a map, the fewest segments first.
    choices = []
    for column in cv.segmentations:
        for segments in _sets_of_segments(cv, column, unchanged, one_map):
            choices.append((column, segments))
    choices.sort(key=lambda choice: len(choice[1]))
    maps = []
    for kind in (catalogue.PriorShift, simple):
        for column, segments in choices:
            maps.append((kind, column, segments))
    # If all samples need a curve rather than a line in log-odds, so may the segments. A
    # curve needs many samples in each of them.
    if one_map.name in _CURVE_BY_SEGMENT:
        kind = _CURVE_BY_SEGMENT[one_map.name]
        for column, segments in choices:
            if len(segments) <= _FEW_SEGMENTS:
                maps.append((kind, column, segments))
    return maps


def _sets_of_segments(cv, column, unchanged, one_map):
    """Return the sets of segments of a column that may need a map of their own, as a
    list of tuples of names, the smallest set first; an empty list if one map for all
    samples leaves no segment off.

    `unchanged` is the candidate of the unchanged scores, `one_map` the best one with a
    single map for all samples.
    """
    off_after = _segments_off(cv, one_map, column)
    if not (off_after.beyond_doubt or off_after.off or off_after.together):
        return []
    off_before = _segments_off(cv, unchanged, column)
    if off_after.together:
        # All segments are off together, though not one by one: all get a map. Or only
        # those that were off before, if one map for all has moved the others.
        sets = [off_after.together]
        if not off_before.together:
            sets += [off_before.beyond_doubt, off_before.off]
    else:
        sets = [off_before.beyond_doubt, off_before.off]
        sets += [off_after.beyond_doubt, off_after.off]
    sets = sorted(filter(None, sets), key=len)  # without empty ones
    # Equal sets are compared once. So are all sets that leave out one segment at most:
    # the map of that one, whether it is shared or its own, is fitted to it alone.
    n_segments = len(np.unique(cv.segmentations[column]))
    distinct = {}
    for segments in sets:
        key = frozenset(segments)
        if len(segments) >= n_segments - 1:
            key = "all"
        distinct[key] = segments
    return list(distinct.values())


class _SegmentsOff(NamedTuple):
    """Segments of a column in which the probabilities of a candidate are significantly
    off, the clearest first.

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


def _segments_off(cv, candidate, column):
    """Test in which segments of a column the probabilities of a candidate are
    miscalibrated, and return these segments as `_SegmentsOff`.

    In each segment a score test with 2 degrees of freedom tests that the log-odds need
    no intercept and a slope of 1; p-values are adjusted by Holm's method.
    """
    segment_of_row = cv.segments_in_fold_order(column)
    names, code = np.unique(segment_of_row, return_inverse=True)
    score, information = _score_and_information(cv, candidate)
    statistics = _score_statistics(_sums(score, code), _sums(information, code))
    adjusted = holm(chdtrc(2, statistics))
    is_off = adjusted < SIGNIFICANCE_LEVEL
    # All segments that are not off by themselves are tested together: a sum of
    # independent chi-square statistics is chi-square, and its degrees of freedom add
    # up.
    others = statistics[~is_off]
    are_off_together = False
    if len(others) > 0:
        pvalue = chdtrc(2 * len(others), others.sum())
        are_off_together = pvalue < SIGNIFICANCE_LEVEL
    clearest_first = np.argsort(-statistics, kind="stable")[:_MOST_SEGMENTS]
    is_beyond_doubt = adjusted < _BEYOND_DOUBT
    beyond_doubt = clearest_first[is_beyond_doubt[clearest_first]]
    off = clearest_first[is_off[clearest_first]]
    together = ()
    if are_off_together:
        together = tuple(names[clearest_first].tolist())
    return _SegmentsOff(
        beyond_doubt=tuple(names[beyond_doubt].tolist()),
        off=tuple(names[off].tolist()),
        together=together,
    )


def _score_and_information(cv, candidate):
    """Return what each sample contributes to a score test of the out-of-fold
    probabilities of a candidate, in the order of ``cv.fold_order``.

    The model that is tested has an intercept and a slope on the log-odds. With several
    classes the event is that the predicted class is right.

    Returns
    -------
    score : ndarray of shape (n, 2)
        Gradient of the log-likelihood in intercept and slope.
    information : ndarray of shape (n, 2, 2)
        Information matrix. With clusters it is multiplied by the design effect.
    """
    event_rows = cv.event_rows(candidate)
    logits = log_odds(event_rows.scores)
    # The statistic does not depend on the scale, but the matrix is better conditioned.
    standardised = (logits - logits.mean()) / (logits.std() or 1.0)
    features = np.column_stack((np.ones(len(logits)), standardised))
    weight = weights_or_ones(event_rows.sample_weight, len(logits))
    # With a label y, a probability p, a weight w and features x, the score is
    # w (y - p) x, and the information w p (1 - p) x x'.
    residual = weight * (event_rows.labels - event_rows.scores)
    score = features * residual[:, None]
    effect = 1.0
    if event_rows.clusters is not None:
        effect = _design_effect(residual, event_rows.clusters)
    variance = effect * weight * event_rows.scores * (1 - event_rows.scores)
    products = features[:, :, None] * features[:, None, :]  # (n, 2, 2)
    return score, products * variance[:, None, None]


def _design_effect(residual, clusters):
    """Return how many times larger the variance of the sum of residuals (n,) is than if
    samples of one cluster were independent, at least 1.
    """
    _, cluster = np.unique(clusters, return_inverse=True)
    cluster_sums = np.bincount(cluster, residual)
    # The sum of squares is kept above 0 for the division.
    row_squares = max(np.sum(residual**2), np.finfo(float).tiny)
    return max(np.sum(cluster_sums**2) / row_squares, 1.0)


def _sums(values, codes, n_codes=0):
    """Sum an array (n, ...) over the samples with each code, and return the sums,
    (n_codes, ...).

    `codes` (n,) are integers from 0 on. There are at least `n_codes` sums; that of a
    code without samples is 0.
    """
    # `bincount` sums one column of numbers at a time.
    flat = values.reshape(len(values), -1)
    columns = [np.bincount(codes, column, minlength=n_codes) for column in flat.T]
    return np.stack(columns, axis=-1).reshape(-1, *values.shape[1:])


def _sums_from(values, period, n_periods):
    """Sum an array (n, ...) over the samples of each period and all later ones, and
    return the sums, (n_periods, ...). `period` (n,) is the number of each sample's
    period, 0 for the earliest.
    """
    by_period = _sums(values, period, n_periods)
    latest_first = by_period[::-1]
    return latest_first.cumsum(axis=0)[::-1]


def _score_statistics(score, information):
    """Return the score statistics u' I^-1 u, chi-square with 2 degrees of freedom, of
    scores u (..., 2) with information matrices I (..., 2, 2).
    """
    # A matrix is singular where all scores are equal: a little is added to its diagonal
    # so that it can be inverted.
    trace = np.trace(information, axis1=-2, axis2=-1)[..., None, None]
    invertible = information + (_TINY + _RIDGE * trace) * np.eye(2)
    solved = np.linalg.solve(invertible, score[..., None])[..., 0]
    return np.sum(score * solved, axis=-1)


def _changes(cv, chosen, period_order, tolerance):
    """Return the significant changes of calibration over time, of all samples and of
    each segment: a list of dicts, the rows of a table, the smallest p-value first.

    For each group and each period, a score test compares the miscalibration that the
    candidate `chosen` leaves before the period with that from it on. P-values are
    adjusted for the number of groups and of periods (Bonferroni). `period_order` holds
    the periods in chronological order.
    """
    in_fold_order = cv.in_fold_order
    number_of = {name: k for k, name in enumerate(period_order)}
    period = np.array([number_of[name] for name in in_fold_order.periods.tolist()])
    # Pairs of a name (None for all samples) and a mask of the group's samples, (n,).
    groups = [(None, np.ones(len(period), dtype=bool))]
    for column in cv.segmentations:
        segments = cv.segments_in_fold_order(column)
        for name in np.unique(segments):
            groups.append((str(name), segments == name))
    score, information = _score_and_information(cv, chosen)
    n_tests = len(groups) * max(len(period_order) - 1, 1)
    changes = []
    for name, in_group in groups:
        since, pvalue = _clearest_change(
            score[in_group],
            information[in_group],
            period[in_group],
            len(period_order),
        )
        adjusted = min(pvalue * n_tests, 1.0)
        if adjusted >= SIGNIFICANCE_LEVEL:
            continue
        # The limits of a verdict hold for each group and period that might have been
        # found, before the change and after it.
        n_intervals = 2 * n_tests
        event_rows = in_fold_order.event_rows
        rows_before = event_rows.at(in_group & (period < since))
        rows_after = event_rows.at(in_group & (period >= since))
        before = judged_rows(rows_before, tolerance, n_intervals)
        after = judged_rows(rows_after, tolerance, n_intervals)
        changes.append(
            {
                "group": name,
                "since": period_order[since],
                "bias_before": before["estimate"],
                "verdict_before": before,
                "bias_after": after["estimate"],
                "verdict_after": after,
                "adjusted_pvalue": float(adjusted),
            }
        )
    return sorted(changes, key=lambda row: row["adjusted_pvalue"])


def _clearest_change(score, information, period, n_periods):
    """Return the number of the period from which on calibration differs most clearly
    from that before, and the p-value of this difference. The p-value is 1 if each
    period leaves too few samples or events before it or after its start.

    `score` (n, 2) and `information` (n, 2, 2) are those of `_score_and_information`;
    `period` (n,) is the number of each sample's period, 0 for the earliest.
    """
    # Sums over the samples from each period on; entry 0 is about all samples.
    ones = np.ones((len(period), 1))
    n_after = _sums_from(ones, period, n_periods)[:, 0]  # (n_periods,)
    score_after = _sums_from(score, period, n_periods)  # (n_periods, 2)
    information_after = _sums_from(information, period, n_periods)  # + (2,)
    # Let U and I be score and information of all samples, and U_1 and I_1 those of the
    # later ones. Without a change, U_1 - I_1 I^-1 U has expectation 0 and covariance
    # I_1 - I_1 I^-1 I_1.
    share = information_after @ np.linalg.pinv(information_after[0])  # I_1 I^-1
    difference = score_after - share @ score_after[0]
    covariance = information_after - share @ information_after
    pvalues = chdtrc(2, _score_statistics(difference, covariance))
    n_smaller_side = np.minimum(n_after, n_after[0] - n_after)
    pvalues[n_smaller_side < _FEWEST_SIDE] = 1.0
    # With a few rare events before or after, the statistic has no chi-square
    # distribution. The information on the intercept is the sum of p (1 - p), the
    # expected number of events where these are rare.
    n_events = information_after[:, 0, 0]
    n_events_smaller_side = np.minimum(n_events, n_events[0] - n_events)
    pvalues[n_events_smaller_side < _FEWEST_EVENTS_OF_SIDE] = 1.0
    clearest = int(pvalues.argmin())
    return clearest, pvalues[clearest]
