"""What to do about a model's scores: the simplest step whose out-of-fold loss is within noise of the best.

The steps: nothing, a shift of the base rate, one map, a map by segment; and each of these on the rows since a change.
"""

import numpy as np
from scipy.special import chdtrc

from skcalib import recalibrators as catalogue
from skcalib._inference.adjustment import holm
from skcalib._report._recalibration import TrialRows
from skcalib._report._sentences import SIGNIFICANCE_LEVEL
from skcalib._report._statistics import mean
from skcalib._rows.links import log_odds

_MOST_SEGMENTS = 100  # that get a map of their own
_FEW_SEGMENTS = 20  # that may have a map of more than two numbers
_SHAPED = dict.fromkeys(
    ("SplineCalibration", "IsotonicCalibration", "StackedRecalibrator"),
    "SplineCalibration",
)
_SHAPED["BetaCalibration"] = "BetaCalibration"
_BEYOND_DOUBT = 0.001  # an adjusted p-value
_FEWEST_SINCE = 200  # rows, that a change of the advice takes
_FEWEST_SIDE = 30  # rows of a segment on either side of its change
_TINY, _RIDGE = 1e-12, 1e-9
_FEWEST_ROWS = 50  # of a fit
_LOST = 0.1  # share of the gain that the noise of a fit may cost
_NONE = {
    "kind": "none",
    "recalibrator": None,
    "segments": [],
    "since": None,
    "rows_needed": None,
    "log_loss": None,
}
_NONE |= {"gain": None, "gain_low": None, "gain_high": None}


def advised(table, name, seed, step=None):
    """Return the advice for a model, its candidates as rows of a table, the best first, and the changes over time.

    Without candidates where a class (of several: all but the most frequent one) has fewer rows than there are folds.
    """
    rows = TrialRows.of(table, name, seed)
    if rows.folds is None:
        return {**_NONE}, [], []
    trials = rows.maps(step)
    chosen, tried = _chosen(rows, trials)
    candidates = [rows.row(trial, trials[0]) for trial in (*trials, *tried)]
    advice, changes = _described(rows, trials[0], chosen), []
    if table.periods is not None:
        changes = _changes(rows, chosen, table.period_order)
        advice = _since(rows, chosen, changes, table.period_order) or advice
    return {**advice}, sorted(candidates, key=lambda row: row["log_loss"]), changes


def _since(rows, chosen, changes, order):
    """Return the advice that fits the rows since the clearest change, if it is better on these; else None."""
    if not changes:
        return None
    since = changes[0]["since"]
    kept = np.isin(rows.rows.periods, order[order.index(since) :])
    later = TrialRows(rows.rows.at(kept))
    if len(later.codes) < _FEWEST_SINCE or later.folds is None:
        return None
    trials = later.maps()
    new, _ = _chosen(later, trials)
    if (
        later.rows.mean(rows.by_row(chosen)[kept] - later.by_row(new))[3]
        >= SIGNIFICANCE_LEVEL
    ):
        return None
    advice = _described(later, trials[0], new)
    return {
        **advice,
        "kind": "none" if new is trials[0] else "map_since",
        "since": since,
    }


def _described(rows, before, chosen):
    """Return what is advised, and what it gains on these rows."""
    if chosen is before:
        return _NONE
    gain, low, high, _ = rows.gain(before, chosen)
    kind = (
        "map_by_segment"
        if chosen.groups
        else "shift"
        if chosen.name == "PriorShift"
        else "map"
    )
    advice = {
        **_NONE,
        "kind": kind,
        "recalibrator": chosen.name,
        "segments": list(chosen.groups),
    }
    advice |= {
        "gain": gain,
        "gain_low": low,
        "gain_high": high,
        "rows_needed": _rows_needed(rows, chosen, gain),
    }
    return {**advice, "log_loss": mean(rows.by_row(before), rows.rows.sample_weight)}


def _rows_needed(rows, chosen, gain):
    """Return the rows of a fit whose noise costs a tenth of the gain: the cost falls as 1 / n."""
    fitted = np.array(
        [
            loss[fold.train].mean()
            for loss, fold in zip(chosen.losses["log"], rows.folds, strict=True)
        ]
    )
    # Half of how much lower the loss is on the rows of the fit than on others is the cost of its noise.
    cost = (
        max(mean(rows.out_of_fold(chosen.losses["log"]), None) - fitted.mean(), 0.0) / 2
    )
    fewest = _FEWEST_ROWS * max(len(chosen.groups), 1)
    return (
        max(int(np.ceil(len(rows.codes) * cost / (_LOST * gain))), fewest)
        if gain > 0
        else None
    )


def _simplest(rows, trials):
    """Return the first of the trials, in the order of simplicity, whose loss is within noise of the lowest.

    The first one is where nothing changes; another one must beat it by more than noise.
    """
    best = rows.best(trials)
    for trial in trials:
        within = trial is best or rows.gain(trial, best)[3] >= SIGNIFICANCE_LEVEL
        if within and (
            trial is trials[0] or rows.gain(trials[0], trial)[3] < SIGNIFICANCE_LEVEL
        ):
            return trial
    return trials[0]


def _chosen(rows, trials):
    """Return the trial that is advised, and those of maps by segment that were tried for it."""
    one = _simplest(rows, trials)
    if rows.rows.segments is None:
        return one, []
    after = _off(rows, one)
    if not any(after):
        return one, []
    simple = (
        catalogue.PlattScaling
        if rows.columns.shape[1] == 1
        else catalogue.TemperatureScaling
    )
    # All segments where the small differences count together: paired losses are slower to see these.
    owners = after[2:] if after[2] else (*_off(rows, trials[0])[:2], *after[:2])
    # If all segments but one have maps of their own, the shared map is that one's alone: as with a map for each.
    whole = len(np.unique(rows.rows.segments)) - 1
    owners = {
        frozenset(own) if len(own) < whole else whole: own
        for own in sorted(owners, key=len)
        if own
    }
    owners = list(owners.values())
    kinds = [catalogue.PriorShift, simple]
    if one.name in _SHAPED and len(owners[-1]) <= _FEW_SEGMENTS:
        kinds.append(getattr(catalogue, _SHAPED[one.name]))
    tried = [rows.trial(kind(), own=own) for kind in kinds for own in owners]
    return _simplest(rows, [one, *tried]), tried


def _off(rows, trial):
    """Return the segments in which a trial's probabilities are off by more than noise, the clearest first.

    Before them those that are off beyond doubt; after them all segments, if those that are not off by themselves are
    off together, else none.
    """
    names, segment = np.unique(rows.tested.segments, return_inverse=True)
    statistics = _statistics(*(_sums(part, segment) for part in _score(rows, trial)))
    adjusted = holm(chdtrc(2, statistics))
    order, off = np.argsort(-statistics, kind="stable"), adjusted < SIGNIFICANCE_LEVEL
    together = (
        not off.all()
        and chdtrc(2 * np.sum(~off), statistics[~off].sum()) < SIGNIFICANCE_LEVEL
    )
    chosen = (adjusted < _BEYOND_DOUBT, off, np.full(len(names), together))
    return [
        tuple(names[[i for i in order[:_MOST_SEGMENTS] if own[i]]].tolist())
        for own in chosen
    ]


def _score(rows, trial):
    """Return each row's score of an intercept and a slope on the log-odds (n, 2), and their information (n, 2, 2).

    Of several classes it is about the predicted one. What clusters add to the variance is a factor, for all rows one.
    """
    task = rows.predicted(trial)
    odds = log_odds(task.scores)
    features = np.column_stack(
        (np.ones(len(odds)), (odds - odds.mean()) / (odds.std() or 1.0))
    )
    weight = np.ones(len(odds)) if task.sample_weight is None else task.sample_weight
    score = features * (weight * (task.labels - task.scores))[:, None]
    effect = 1.0
    if task.clusters is not None:
        sums = _sums(score, np.unique(task.clusters, return_inverse=True)[1])
        effect = max(
            np.sum(sums[:, 0] ** 2)
            / max(np.sum(score[:, 0] ** 2), np.finfo(float).tiny),
            1.0,
        )
    variance = effect * weight * task.scores * (1 - task.scores)
    return score, features[:, :, None] * features[:, None, :] * variance[:, None, None]


def _sums(values, codes, n=0):
    """Return the sums of rows of values by code."""
    columns = [
        np.bincount(codes, column, minlength=n)
        for column in values.reshape(len(values), -1).T
    ]
    return np.stack(columns, axis=-1).reshape(-1, *values.shape[1:])


def _statistics(score, information):
    """Return the statistics, chi-square with 2 degrees, of scores (..., 2) with their information (..., 2, 2)."""
    size = np.trace(information, axis1=-2, axis2=-1)[..., None, None]
    padded = information + (_TINY + _RIDGE * size) * np.eye(2)
    return np.einsum(
        "...i,...i", score, np.linalg.solve(padded, score[..., None])[..., 0]
    )


def _changes(rows, chosen, order):
    """Return when calibration changed, of all rows and each segment: rows of a table, the clearest first.

    For each group and each period the score test of "what the recalibrated rows are off by is the same before it and
    from it on"; its p-value is adjusted for the number of groups and of periods (Bonferroni).
    """
    tested, found = rows.tested, []
    period = np.array([order.index(name) for name in tested.periods.tolist()])
    groups = [(None, np.ones(len(period), dtype=bool))]
    if tested.segments is not None:
        groups += [
            (str(name), tested.segments == name) for name in np.unique(tested.segments)
        ]
    score, information = _score(rows, chosen)
    bias, weight = tested.task.scores - tested.task.labels, tested.sample_weight
    for name, own in groups:
        sums = [
            _sums(part[own], period[own], len(order))
            for part in (np.ones((len(period), 1)), score, information)
        ]
        # sums of the rows from each period on
        number, after, known = (part[::-1].cumsum(axis=0)[::-1] for part in sums)
        share = known @ np.linalg.pinv(known[0])
        pvalues = chdtrc(
            2, _statistics(after - share @ after[0], known - share @ known)
        )
        pvalues[
            np.minimum(number[:, 0], number[0, 0] - number[:, 0]) < _FEWEST_SIDE
        ] = 1.0
        at = int(pvalues.argmin())
        adjusted = min(pvalues[at] * len(groups) * max(len(order) - 1, 1), 1.0)
        if adjusted < SIGNIFICANCE_LEVEL:
            sides = [own & (period < at), own & (period >= at)]
            means = [
                mean(bias[side], None if weight is None else weight[side])
                for side in sides
            ]
            row = {
                "group": name,
                "since": order[at],
                "bias_before": means[0],
                "bias_after": means[1],
            }
            found.append({**row, "adjusted_pvalue": float(adjusted)})
    return sorted(found, key=lambda row: row["adjusted_pvalue"])
