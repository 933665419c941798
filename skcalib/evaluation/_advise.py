"""What to do about a model's scores: the simplest step whose out-of-fold loss is within
noise of the best.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from skcalib._cells.binned import counted_rows
from skcalib._cells.columns import top_label
from skcalib._cells.groups import group_codes
from skcalib._inference.results import IntervalEstimate, ResultTable
from skcalib._input.columns import table_columns
from skcalib._input.label_weights import is_importance
from skcalib._input.labels import check_groups
from skcalib._input.scalars import check_number
from skcalib._input.scored_labels import check_scored_labels
from skcalib._verdicts import (
    interval_words,
    joined,
    level_words,
    pvalue_words,
    rounded,
    rounded_up,
    verdict,
)
from skcalib.binning import EqualMass, MinimumMass
from skcalib.evaluation._advice_changes import found_changes
from skcalib.evaluation._advice_code import advice_code
from skcalib.evaluation._advice_default import why_not_the_default
from skcalib.evaluation._advice_search import (
    LEVEL,
    UNCHANGED,
    Samples,
    Search,
)
from skcalib.evaluation._cross_validate import UNCALIBRATED
from skcalib.evaluation._mean import mean_interval
from skcalib.metrics import calibration_error, calibration_error_interval
from skcalib.monitoring._change import shift_words

_CONFIDENCE_LEVEL = 0.9
# Larger sets are sampled: gains are known well enough from this number of samples. With
# many classes the sample has at most the second number of scores, but at least the
# third number of samples.
_MOST_ROWS = 20_000
_MOST_SCORES = 200_000
_FEWEST_ROWS = 4_000
_FEWEST_SINCE = 200  # fewest samples since a change to fit a map to them alone
# The calibration error that is left: mean absolute, in the library's 15 bins, fewer
# where they would hold too few samples for a debiased error.
_ERROR = {"norm": 1, "binning": MinimumMass(EqualMass(15), min_weight=10)}
_N_DRAWS = 1000
_N_CLUSTER_DRAWS = 199  # those of dependent labels take 50 times as long
_TOO_FEW = "There are too few samples of one class to recalibrate."
_TOO_FEW_CLUSTERS = "There are too few clusters to judge a recalibrator."


@dataclass(frozen=True, eq=False, repr=False)
class AdviceStep:
    """One step of an advice, with the evidence for it.

    Parameters
    ----------
    recalibrator : recalibrator
        What to fit, unfitted.
    name : str
        Its name.
    column : str or None
        Column of groups, if it has a map for each of several groups.
    segments : tuple of str
        The groups that get a map of their own.
    others : {"unchanged", "shared"} or None
        What the samples of the other groups get: their scores, or one map together.
    since : object
        First time of the samples to fit it to; None for all samples.
    before : str
        Name of the step before, "uncalibrated" for the scores as they are.
    gain : IntervalEstimate
        How much lower the log-loss on held-out data is than after the step before, in
        nats per sample.
    pvalue : float
        One-sided p-value of "the log-loss is not lower".
    """

    recalibrator: BaseEstimator
    name: str
    column: str | None
    segments: tuple
    others: str | None
    since: object
    before: str
    gain: IntervalEstimate
    pvalue: float


@dataclass(frozen=True, eq=False, repr=False)
class Advice(ResultTable):
    """Result of `advise`, which ``print`` says in words.

    Parameters
    ----------
    kind : {"none", "shift", "map", "map_by_segment", "map_since"}
        Kind of what is advised.
    steps : tuple of AdviceStep
        The steps from the scores as they are to what is advised; the last one is the
        advice. Empty if nothing is to be done.
    gain : IntervalEstimate or None
        How much lower the log-loss on held-out data is than that of the scores as they
        are; None if nothing is to be done.
    error_left : IntervalEstimate or None
        Mean absolute calibration error that the advice leaves on held-out data.
    n_needed : tuple of int or None
        Range of the number of samples with which the advised fit keeps nine tenths of
        its gain over the step before.
    candidates : list of dict
        What was compared, the best first: name, groups, losses and gains with their
        intervals, and the calibration error left.
    changes : list of FoundChange
        Significant changes over time, the clearest first.
    default : str
        One sentence on why the advice differs from what `Recalibrator` would do; empty
        if it does not.
    reason : str
        Why nothing could be compared; else empty.
    log_loss : float or None
        Mean log-loss of the scores as they are, of the samples that the gain is about.
    rows : ndarray of int
        Positions of the samples that were compared.
    probabilities : ndarray or None
        Their out-of-fold probabilities as advised; None for advice on the samples since
        a change, and if nothing was compared.
    tolerance : float
        Error that does not matter, as a probability.
    """

    _prints_table = False

    kind: str
    steps: tuple = ()
    gain: IntervalEstimate | None = None
    error_left: IntervalEstimate | None = None
    n_needed: tuple | None = None
    candidates: list = field(default_factory=list)
    changes: list = field(default_factory=list)
    default: str = ""
    reason: str = ""
    log_loss: float | None = None
    rows: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    tolerance: float = 0.02
    _since: object = None
    _n_samples: float = 0.0
    _arguments: dict = field(default_factory=dict)

    @property
    def since(self):
        """First time of the samples that the advice is fitted to; None for all."""
        return self._since

    def columns(self):
        """Return the steps as a dict of columns.

        Returns
        -------
        columns : dict
            `recalibrator` (its name), `column`, `segments`, `others`, `since`,
            `before`, `gain`, `gain_low`, `gain_high` and `pvalue`.
        """
        columns = {"recalibrator": np.array([step.name for step in self.steps])}
        for name in ("column", "segments", "others", "since", "before"):
            values = np.empty(len(self.steps), dtype=object)
            for k, step in enumerate(self.steps):
                values[k] = getattr(step, name)
            columns[name] = values
        gains = [tuple(step.gain) for step in self.steps]
        gains = np.array(gains, dtype=np.float64).reshape(-1, 3)
        for k, name in enumerate(("gain", "gain_low", "gain_high")):
            columns[name] = gains[:, k]
        columns["pvalue"] = np.array([step.pvalue for step in self.steps])
        return columns

    def code(self) -> str:
        """Return Python code that does what is advised, with public calls only.

        The code takes the arguments of `advise` by their names, such as `y_true`,
        `y_proba` and `groups`, and fits `recalibrator`. Its last line makes
        `calibrated`, the probabilities for `y_proba`; use new scores there.

        Returns
        -------
        code : str
            The code; empty if nothing is to be done.
        """
        if not self.steps:
            return ""
        return advice_code(self.steps[-1], self._arguments)

    def _sentences(self):
        """Say what to do, with the evidence, in a few sentences."""
        if self.reason:
            return self.reason
        lines = [self._first_sentence()]
        if len(self.steps) > 1:  # else the first sentence has its evidence
            lines.extend(map(_step_words, self.steps))
        if self.error_left is not None:
            lines.append(self._error_words())
        if self.n_needed is not None:
            low, high = (rounded_up(number) for number in self.n_needed)
            number = low if low == high else f"{low} to {high}"
            step = " from the last of these steps" if len(self.steps) > 1 else ""
            lines.append(
                f"About {number} labelled samples are needed to achieve nine tenths of"
                f" the possible gain{step}."
            )
        for change in self.changes:
            whose = "the scores"
            if change.group is not None:
                whose = f"the scores of {change.group}"
            lines.append(
                f"From {change.since} on, {whose} are calibrated differently from"
                f" before: {shift_words(change.shift)}, adjusted"
                f" {pvalue_words(change.adjusted_pvalue)}."
            )
        if self.default:
            lines.append(self.default)
        return "\n".join(lines)

    def _first_sentence(self):
        """Return the sentence that says what to do."""
        since = "" if self.since is None else f" on the samples from {self.since} on"
        if not self.steps:
            most = ""
            others = [row for row in self.candidates if row["name"] != UNCALIBRATED]
            if others and not since:
                best = others[0]
                gain = (best["gain"], best["gain_low"], best["gain_high"])
                most = f"; {best['name']}, the best, gains {_gain_words(gain)}"
            return (
                "Leave the scores unchanged: no recalibrator is measurably better"
                f"{since}{most}."
            )
        step = self.steps[-1]
        if not step.segments:
            what = f"Recalibrate with {step.name}()"
            if self.kind == "shift":
                what = "Shift the base rate with PriorShift()"
        elif step.others == "unchanged":
            what = (
                f"Recalibrate {joined(step.segments)} of {step.column} with"
                f" {step.name}; the other samples keep their scores"
            )
        else:
            what = f"Recalibrate by {step.column} with {step.name}"
        fitted = ""
        if self.since is not None:
            fitted = f", fitted to the samples from {self.since} on"
        size = _gain_words(self.gain)
        gained = f"on held-out data, this reduces the log-loss by {size}"
        if len(self.steps) == 1:
            gained = f"{gained}, {pvalue_words(step.pvalue)}"
        return f"{what}{fitted}: {gained}."

    def _error_words(self):
        """Return the sentence on the calibration error that the advice leaves."""
        limits = self.error_left[1:]
        judged = verdict(
            self.error_left[0], limits, self._n_samples, self.tolerance
        ).kind
        # "fine": the limits are within the tolerance; "off": beyond it; else neither
        compared = {
            "fine": "within",
            "off": "more than",
        }.get(judged, "possibly more than")
        size = interval_words(
            *self.error_left,
            scale=100,
            unit="percentage points",
            level=level_words(0.9),
        )
        return (
            f"This leaves a mean absolute calibration error of {size}, {compared} the"
            f" tolerance of {rounded(100 * self.tolerance)} points."
        )


def _gain_words(gain):
    return interval_words(*gain, unit="nats", level=level_words(_CONFIDENCE_LEVEL))


def _step_words(step):
    """Return a sentence on the evidence for a step."""
    return (
        f"{step.name} instead of {step.before}: the log-loss on held-out data is lower"
        f" by {_gain_words(step.gain)}, {pvalue_words(step.pvalue)}."
    )


def advise(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    groups: ArrayLike | Any | None = None,
    time: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    weight_type: Literal["frequency", "importance"] | dict = "frequency",
    tolerance: float = 0.02,
    random_state: int | np.random.RandomState | None = None,
    labels: ArrayLike | None = None,
    pos_label: float | str | None = None,
) -> Advice:
    """What to do about the scores of a model, with the evidence for each step.

    The advice is the simplest of several steps whose log-loss on held-out data is
    within noise of the best: nothing, a shift of the base rate, one map for all
    samples, maps for some groups, or one of these for the samples since a change. It is
    what the command ``python -m skcalib report`` prints.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1] for data to which the model was not fitted.
    groups : array-like of shape (n,) or (n, n_columns), dict or DataFrame, default=None
        Group of each sample, such as its site. Each of several columns divides the
        samples in its own way.
    time : array-like of shape (n,), default=None
        Period of each sample: numbers, dates or texts that are sorted by time.
    clusters : array-like of shape (n,), default=None
        Cluster of each sample: dependent samples (from the same patient or match) share
        a value, and lie in the same fold.
    sample_weight : array-like of shape (n,), default=None
        Weights; see `weight_type`.
    weight_type : {"frequency", "importance"} or dict, default="frequency"
        Meaning of the weights. "frequency": a weight of 2 means two identical samples.
        "importance": each sample was observed once and represents more or less than one
        (to correct for the sampling design).
        A dict gives the weight that each sample would have with each of two labels,
        a number or an array; see `skcalib.evaluation.describe_weights`.
    tolerance : float, default=0.02
        Calibration error that does not matter, as a probability. The text says whether
        what the advice leaves is within it.
    random_state : int, RandomState instance or None, default=None
        Seed for the folds. It also draws the sample of a large data set. None means 0.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.

    Returns
    -------
    advice : Advice
        Frozen result. `kind` is "none", "shift", "map", "map_by_segment" or
        "map_since"; `steps` are the accepted steps, each with its `recalibrator`,
        `gain` and `pvalue`; `code()` is Python code; ``print`` says it in words, and
        `to_frame` gives a row for each step.

    Raises
    ------
    ValueError
        If labels, scores, weights, groups or times are inconsistent.

    Warns
    -----
    UserWarning
        If weights are not integers and ``weight_type="frequency"``.

    See Also
    --------
    cross_validate : Compares recalibrators of your choice.
    skcalib.Recalibrator : The default method, which fits and decides at once.
    skcalib.metrics.calibration_by_group : Bias and error of each group.
    skcalib.monitoring.calibration_change : Compares two periods.

    Notes
    -----
    Candidates are compared by `cross_validate`, the simplest first. One is accepted if
    its log-loss is lower than that of all simpler ones, and if the one-sided p-value of
    its gain over the last accepted one is below .05. If this p-value lies between .01
    and .2, it is computed again with 6 divisions into folds, and if it still does, with
    12. Groups get maps of their own if these are accepted in the same way: those that
    `calibration_by_group` finds off (adjusted p-value below .05, or below .001), or
    all. For changes over time, the clearest period of each group is tested by
    `calibration_change`, adjusted for all groups and periods (Bonferroni); if there is
    one, and at least 200 samples since then, fits to these alone are compared on these
    samples with the fit to all.

    Sets of more than 20,000 samples (with many classes fewer) are sampled at random.

    If the advice differs from what `Recalibrator`, the default of
    `RecalibratedClassifierCV`, does with the same samples, the text says why.

    References
    ----------
    Akaike (1974), A new look at the statistical model identification, for the number of
    samples that a fit needs.

    Examples
    --------
    Overconfident forecasts: the log-odds are twice what they should be.

    >>> import numpy as np
    >>> from skcalib.evaluation import advise
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(600)
    >>> y_true = rng.random(600) < truth
    >>> advice = advise(y_true, truth**2 / (truth**2 + (1 - truth) ** 2))
    >>> advice.kind, advice.steps[-1].name
    ('map', 'TemperatureScaling')
    >>> print(advice.code())
    import numpy as np
    from skcalib import TemperatureScaling
    <BLANKLINE>
    scores = np.asarray(y_proba)
    y = np.asarray(y_true)
    recalibrator = TemperatureScaling().fit(scores, y)
    calibrated = recalibrator.predict_proba(scores)
    """
    tolerance = check_number(tolerance, "tolerance", above=0, below=1)
    data = check_scored_labels(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
        drop=False,
    ).copied()
    counted_rows(data, weight_type)  # for its checks
    n_samples = len(data.scores)
    if isinstance(weight_type, Mapping):
        without_event, with_event = (weight_type[one] for one in data.classes.tolist())
        weight_type = {
            False: np.broadcast_to(without_event, n_samples),
            True: np.broadcast_to(with_event, n_samples),
        }
    columns, expressions = _columns_of_groups(groups, data)
    times, period, cluster = None, None, None
    if time is not None:
        times, period = check_groups(time, n_samples, name="time")
    if clusters is not None:
        _, cluster = check_groups(clusters, n_samples, name="clusters")
    seed = 0
    if isinstance(random_state, Integral):
        seed = int(random_state)
    elif random_state is not None:
        seed = int(check_random_state(random_state).randint(2**31))
    rows = _sampled(data, seed)
    samples = Samples(
        data.scores.astype(np.float64),
        data.labels,
        data.sample_weight,
        cluster,
        weight_type,
        columns,
        period,
        seed,
    ).at(rows)
    if period is not None:
        # Periods without a sample do not count.
        used, period = np.unique(samples.period, return_inverse=True)
        times = times[used]
        samples = samples._replace(period=period)
    arguments = {
        "pos_label": pos_label,
        "is_weighted": sample_weight is not None,
        "groups": expressions,
        "n_columns": 1 if np.ndim(y_proba) == 1 else np.shape(y_proba)[1],
    }
    with warnings.catch_warnings():
        # These concern folds and groups, or have been given above.
        warnings.filterwarnings(
            "ignore",
            r"clusters=|sample_weight contains|\d+ rows? uses? the pooled fit",
            UserWarning,
        )
        found = _advice(samples, times, tolerance)
    return replace(found, rows=rows, _arguments=arguments)


def _columns_of_groups(groups, data):
    """Return the names of the groups of each sample (n,) by column, as texts, and the
    expressions by which code refers to the columns.
    """
    if groups is None:
        return {}, {}
    columns = {}
    expressions = {}
    if isinstance(groups, Mapping):
        given = dict(groups)
        as_code = "groups[{!r}]"
    else:
        given = table_columns(groups, name="groups")
        as_code = "groups[{!r}]"
        if getattr(groups, "ndim", np.ndim(groups)) == 1:
            given = {"groups": next(iter(given.values()))}
            as_code = "groups"
        elif not hasattr(groups, "columns"):
            as_code = None
    for k, (name, values) in enumerate(given.items()):
        names, codes = group_codes(values, data)
        columns[str(name)] = names.astype(str)[codes]
        reference = f"np.asarray(groups)[:, {k}]"
        if as_code is not None:
            reference = f"np.asarray({as_code.format(name)})"
        expressions[str(name)] = f"{reference}.astype(str)"
    return columns, expressions


def _sampled(data, seed):
    """Return the sorted positions of the samples of positive weight, or of a random
    sample of them if they are many.
    """
    rows = np.arange(len(data.scores))[data.kept]
    most = _MOST_ROWS
    if data.scores.ndim == 2:
        most = min(most, max(_MOST_SCORES // data.scores.shape[1], _FEWEST_ROWS))
    if len(rows) <= most:
        return rows
    rng = np.random.default_rng(seed)
    return rows[np.sort(rng.choice(len(rows), most, replace=False))]


def _advice(samples, times, tolerance):
    """Return the `Advice` for validated samples; `times` are the names of the periods,
    in their order, or None.
    """
    if not samples.are_enough:
        counts = np.bincount(samples.labels.astype(np.intp), minlength=2)
        # With 5 samples of two classes it is the clusters that are too few.
        reason = _TOO_FEW_CLUSTERS if np.sort(counts)[-2] >= 5 else _TOO_FEW
        return Advice("none", reason=reason, tolerance=tolerance)
    search = Search(samples).run()
    candidates = [_candidate_row(search, one) for one in search.candidates]
    candidates.sort(key=lambda row: row["log_loss"])
    found = {"candidates": candidates, "tolerance": tolerance}
    if samples.period is not None and samples.period.max() > 0:
        chosen = search.steps[-1]
        changes = found_changes(samples, search.result.probabilities[chosen.key])
        found["changes"] = [
            change._replace(since=times[change.since].item()) for change in changes
        ]
        later = _since_change(search, changes)
        if later is not None:
            since = times[changes[0].since]
            return _advice_of(later, since, found)
    advice = _advice_of(search, None, found)
    chosen = search.steps[-1]
    return replace(advice, probabilities=search.result.probabilities[chosen.key])


def _since_change(search, changes):
    """Return the `Search` among fits to the samples since the clearest change; None
    without one, or if its result is not better on these samples.
    """
    if not changes:
        return None
    is_later = search.samples.period >= changes[0].since
    samples = search.samples.at(is_later)
    if np.count_nonzero(is_later) < _FEWEST_SINCE or not samples.are_enough:
        return None
    later = Search(samples).run()
    chosen = search.steps[-1]
    best = later.steps[-1]

    loss_of_all = search.result.losses["log"][chosen.key][is_later]
    # A one-sided test at the level, by the out-of-fold losses of both fits.
    gain = mean_interval(
        loss_of_all - later.result.losses["log"][best.key],
        confidence_level=1 - 2 * LEVEL,
        sample_weight=samples.sample_weight,
        weight_type="importance" if is_importance(samples.weight_type) else "frequency",
        clusters=samples.clusters,
    )
    return later if gain.low > 0 else None


def _advice_of(search, since, found):
    """Return the `Advice` of the steps of a `Search` among the samples since a time, or
    among all samples (`since` is None). `found` holds the fields of the advice that do
    not depend on the search.
    """
    chosen = search.steps[-1]
    fields = dict(found, _since=since, _n_samples=float(len(search.samples.labels)))
    if since is not None:
        # A date stays NumPy's; another name becomes one of Python's own types.
        since = since if since.dtype.kind == "M" else since.item()
        fields["_since"] = since
    fields["default"] = why_not_the_default(search, chosen, since)
    if chosen is UNCHANGED:
        return Advice("none", **fields)
    steps = []
    for before, after in zip(search.steps[:-1], search.steps[1:], strict=True):
        gain, pvalue = search.evidence(before, after)
        steps.append(
            AdviceStep(
                after.recalibrator,
                after.name,
                after.column,
                after.segments,
                after.others,
                since,
                before.name,
                gain,
                pvalue,
            )
        )
    kind = "map"
    if chosen.segments:
        kind = "map_by_segment"
    elif chosen.name == "PriorShift":
        kind = "shift"
    if since is not None:
        kind = "map_since"
    return Advice(
        kind,
        steps=tuple(steps),
        gain=search.evidence(UNCHANGED, chosen)[0],
        error_left=_error_left(search, chosen),
        n_needed=search.n_needed(search.steps[-2], chosen),
        log_loss=search.result.mean_loss(UNCALIBRATED),
        **fields,
    )


def _event_rows(search, candidate):
    """Return the labels and a candidate's out-of-fold probabilities for one event; with
    several classes it is that the predicted class is right.
    """
    probabilities = search.result.probabilities[candidate.key]
    if probabilities.ndim == 1:
        return search.samples.labels, probabilities
    predicted, confidence = top_label(probabilities)
    return predicted == search.samples.labels, confidence


def _error_left(search, candidate):
    """Return the mean absolute calibration error of the out-of-fold probabilities of a
    candidate with its interval.
    """
    samples = search.samples
    options = {**samples.options, "labels": [False, True]}
    n_draws = _N_DRAWS if samples.clusters is None else _N_CLUSTER_DRAWS
    return calibration_error_interval(
        *_event_rows(search, candidate),
        **_ERROR,
        confidence_level=_CONFIDENCE_LEVEL,
        n_resamples=n_draws,
        random_state=samples.seed,
        **options,
    )


def _candidate_row(search, candidate):
    """Return what cross-validation says of a candidate, as a dict."""
    row = {
        "name": candidate.name,
        "segments": list(candidate.segments),
        "others": candidate.others,
    }
    for loss, loss_key, gain_key in (
        ("log", "log_loss", "gain"),
        ("brier", "brier", "brier_gain"),
    ):
        gain = search.result.gain(UNCALIBRATED, candidate.key, loss)
        row[loss_key] = search.result.mean_loss(candidate.key, loss)
        row[gain_key] = gain.estimate
        row[f"{gain_key}_low"] = gain.low
        row[f"{gain_key}_high"] = gain.high
    row["calibration_error"] = calibration_error(
        *_event_rows(search, candidate),
        **_ERROR,
        labels=[False, True],
        sample_weight=search.samples.sample_weight,
    )
    return row
