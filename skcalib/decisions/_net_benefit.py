"""Net benefit: what decisions at a threshold are worth, in true positives a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from skcalib._cells.binned import counted_rows
from skcalib._inference.results import ResultTable
from skcalib._input.label_weights import is_importance, weight_of_event
from skcalib._input.labels import check_groups
from skcalib._input.scalars import (
    check_confidence_level,
    check_int,
    check_number,
    check_option,
)
from skcalib._input.scored_labels import check_one_event, check_scored_labels
from skcalib._intervals.influence import cluster_codes
from skcalib._verdicts import (
    count_words,
    interval_words,
    joined,
    level_words,
    percent_words,
    rounded,
)
from skcalib.decisions._search import check_thresholds
from skcalib.decisions._treatment_cells import (
    TreatmentCells,
    cell_sums,
    critical_values,
    design_effects,
    reasons_for_no_limits,
    treated_weight,
    unit_influences,
)


@dataclass(frozen=True, eq=False, repr=False)
class NetBenefit(ResultTable):
    """Table of the net benefit of a model at each threshold, with its interval.
    ``print`` describes the table in words.

    Parameters
    ----------
    thresholds : ndarray of shape (n_thresholds,)
        The thresholds, in increasing order.
    net_benefit : ndarray of shape (n_thresholds,)
        Net benefit, in true positives per sample or, if standardised, as a share of its
        maximum.
    low, high : ndarray of shape (n_thresholds,)
        Limits of the interval or of the band; NaN if the samples do not determine them.
    interventions_avoided : ndarray of shape (n_thresholds,)
        Net interventions avoided per 100 samples compared with treating everybody: the
        net benefit minus that of treating everybody, times ``100 (1 - t) / t``. NaN at
        a threshold of 0.
    n_treated : ndarray of shape (n_thresholds,)
        Number of samples at or above each threshold; with weights, the sum of their
        weights.
    reason : ndarray of str, shape (n_thresholds,)
        The reason why limits are NaN; an empty string if they are not.
    n_samples : float
        Number of samples, or the sum of their weights.
    event_frequency : float
        Share of the samples that are events.
    reference : {"none", "all", "model"}
        Strategy with which the model is compared: treating nobody, treating everybody,
        or another model.
    standardize : bool
        Whether the net benefit is divided by the event frequency.
    confidence_level : float
        Coverage of each interval, in (0, 1), or of the band.
    simultaneous : bool
        Whether the limits hold at all thresholds simultaneously.
    """

    _prints_table = False

    thresholds: np.ndarray
    net_benefit: np.ndarray
    low: np.ndarray
    high: np.ndarray
    interventions_avoided: np.ndarray
    n_treated: np.ndarray
    reason: np.ndarray
    n_samples: float
    event_frequency: float
    reference: str
    standardize: bool
    confidence_level: float
    simultaneous: bool

    def _sentences(self):
        """Say where the model is better than the reference, and where worse."""
        references = {
            "none": "treating nobody",
            "all": "treating everybody",
            "model": "the other model",
        }
        against = references[self.reference]
        level = f"{level_words(self.confidence_level)} confidence"
        if len(self) > 1:
            together = (
                "all thresholds together" if self.simultaneous else "each threshold"
            )
            level += f" at {together}"
        frequency = percent_words(self.event_frequency, self.n_samples)
        thresholds = "threshold" if len(self) == 1 else "thresholds"
        lines = [
            f"Net benefit compared with {against}: higher {self._where(self.low > 0)},"
            f" lower {self._where(self.high < 0)} ({level}).",
            *self._largest(),
            f"Computed at {len(self)} {thresholds}, from"
            f" {count_words(self.n_samples)} samples, {frequency} of them with the"
            " event.",
        ]
        reasons = self.reason[self.reason != ""].tolist()
        for reason in dict.fromkeys(reasons):
            lines.append(f"No interval {self._where(self.reason == reason)}: {reason}.")
        return "\n".join(lines)

    def _largest(self):
        """Return a list with the sentence on the threshold of the largest net benefit,
        empty if there are no limits.
        """
        if np.all(np.isnan(self.low)):
            return []
        k = np.nanargmax(np.where(np.isnan(self.low), np.nan, self.net_benefit))
        size = interval_words(
            self.net_benefit[k],
            self.low[k],
            self.high[k],
            level=level_words(self.confidence_level),
        )
        lead = "The net benefit" if len(self) == 1 else "The largest net benefit"
        unit = "of its maximum" if self.standardize else "true positives per sample"
        return [
            f"{lead} is {size} {unit}, at a threshold of {rounded(self.thresholds[k])}."
        ]

    def _where(self, mask):
        """Return the ranges of thresholds with True in a mask, as text."""
        if not np.any(mask):
            return "at none"
        if np.all(mask) and len(self) > 1:
            return (
                f"at all {len(self):,} thresholds from {rounded(self.thresholds[0])} to"
                f" {rounded(self.thresholds[-1])}"
            )
        # A range begins and ends where the mask, with False at both ends, changes.
        padded = np.concatenate(([0], mask, [0]))
        changes = np.flatnonzero(np.diff(padded))
        runs = []
        for start, stop in changes.reshape(-1, 2):
            low = self.thresholds[start]
            high = self.thresholds[stop - 1]
            if low == high:
                runs.append(rounded(low))
            else:
                runs.append(f"{rounded(low)} to {rounded(high)}")
        return f"at {joined(runs)}"


def net_benefit(
    y_true: ArrayLike,
    y_proba: ArrayLike | None = None,
    *,
    thresholds: ArrayLike | None = None,
    reference: Literal["none", "all"] | ArrayLike = "none",
    standardize: bool = False,
    harm: float = 0.0,
    prevalence: float | None = None,
    confidence_level: float = 0.9,
    simultaneous: bool = False,
    n_resamples: int = 1000,
    sample_weight: ArrayLike | None = None,
    weight_type: Literal["frequency", "importance"] | dict = "frequency",
    clusters: ArrayLike | None = None,
    pos_label: int | float | bool | str | None = None,
    labels: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> NetBenefit:
    r"""Net benefit of treating at or above a threshold, with confidence intervals.

    The net benefit is the quantity shown in a decision curve. The threshold t expresses
    the cost of a false alarm: treating at t means accepting 1 / t - 1 false alarms per
    event. The net benefit per sample is the number of treated events minus the number
    of treated non-events divided by 1 / t - 1, divided by the number of samples.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,) or (n, 2)
        Probabilities in [0, 1] of a model that was fitted to other data.
    thresholds : array-like of float, default=None
        Thresholds in [0, 1); None means .01, .02, ..., .99. A sample with a probability
        equal to a threshold is treated.
    reference : {"none", "all"} or array-like of shape (n,) or (n, 2), default="none"
        Strategy whose net benefit is subtracted: treating nobody (net benefit 0),
        treating everybody, or another model, given by its probabilities for the same
        samples.
    standardize : bool, default=False
        Whether to divide the net benefit by the event frequency, so that the maximum is
        1.
    harm : float, default=0.0
        Cost of the model itself, in units of net benefit (true positives per sample):
        for example, 1 / 30 if 30 tests are as harmful as one missed event. The cost is
        subtracted at every threshold.
    prevalence : float, default=None
        Event frequency of the population, in (0, 1), if samples were selected by their
        label (a case-control study). None means the event frequency of the samples.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1), or of the band.
    simultaneous : bool, default=False
        Whether the limits hold at all thresholds simultaneously.
    n_resamples : int, default=1000
        Number of draws for a simultaneous band.
    sample_weight : array-like of shape (n,), default=None
        Weights; see `weight_type`.
    weight_type : {"frequency", "importance"} or dict, default="frequency"
        Meaning of the weights. "frequency": a weight of 2 means two identical samples.
        "importance": each sample was observed once and represents more or less than one
        (to correct for the sampling design, for example by the inverse probability of
        selection).
        A dict gives the weight that each sample would have with each of two labels,
        a number or an array; see `skcalib.evaluation.describe_weights`.
    clusters : array-like of shape (n,), default=None
        Cluster of each sample: samples in the same cluster (for example, from one
        patient or centre) may be dependent.
    pos_label : int, float, bool or str, default=None
        The label whose probability is given by a single column of scores.
    labels : array-like of shape (2,), default=None
        The sorted labels of the columns.
    random_state : int, RandomState instance or None, default=None
        Seed for the random draws.

    Returns
    -------
    table : NetBenefit
        Frozen table of arrays
        (`thresholds, net_benefit, low, high, interventions_avoided, n_treated, reason`)
        with ``len`` and ``to_frame()``.

    Raises
    ------
    ValueError
        If labels, probabilities, reference, clusters or parameters are inconsistent, if
        there are more than two classes, if there is only one class and `standardize` or
        `prevalence` requires both, or if there is only one cluster.

    Warns
    -----
    UserWarning
        If weights are not integers and ``weight_type="frequency"``.

    See Also
    --------
    skcalib.displays.DecisionCurveDisplay : Plots the result.
    skcalib.decisions.ExpectedCostClassifier : Decisions for more than two classes or
        actions.
    skcalib.displays.MurphyDisplay : Shows the same losses on a different scale.

    Notes
    -----
    Let w = t / (1 - t) be the cost of a false alarm. A treated event counts as 1, a
    treated non-event as -w, and any other sample as 0; the net benefit is the mean
    [1]_. The interval contains the values that a score test does not reject; the test
    of a value uses the variance of the most likely distribution with that net benefit
    [2]_. The interval is therefore not symmetric, and it is valid even if there are few
    treated non-events, or none: 25 treated events among 500 samples at a threshold of
    .95 do not rule out that treatment is harmful. Importance weights are taken into
    account, approximately, by the effective number of samples in each cell of label and
    decision. If they say nothing of the weight of the other label, the quantiles are
    those of Student's t distribution, with few degrees of freedom if a few samples
    carry the variance, and limits are NaN with fewer than 20 effective events or
    non-events.

    With `clusters`, sample sizes are divided by a design effect: the ratio of the
    jackknife variance of the clusters' sums (CR3) to the variance of independent
    samples or, if it is larger, the design effect implied by the correlation within
    clusters [3]_, because a large cluster may have a dependence that was observed only
    in small clusters. The quantiles are those of Student's t distribution with
    Satterthwaite degrees of freedom. If the effective number of clusters is below
    three, the limits are NaN. For the worst clusters found by a search, the coverage of
    a 90% interval was .89. The limits of the difference between two models are NaN if
    either of them performs better on fewer than 10 samples. With a given `prevalence`,
    the limits of both labels are combined by the "square and add" method.

    For a band, the residuals of each sample or cluster are multiplied by a random
    normal factor (multiplier bootstrap). The quantile of the largest deviation over the
    thresholds, in units of its standard error, replaces the normal quantile. At such
    quantiles, the normal approximation is poor for few samples, so a band also contains
    the values that a likelihood-ratio test does not reject.

    The guide "Do the guarantees hold?" reports the coverage of intervals and bands.

    On the scale of a Murphy diagram, the net benefit is
    ``prevalence - cost(t) / (1 - t)``, where ``cost(t) = t FP / n + (1 - t) FN / n``.

    References
    ----------
    .. [1] Vickers and Elkin (2006), Decision curve analysis: a novel method for
        evaluating prediction models.
    .. [2] Tango (1998), Equivalence test and confidence interval for the difference in
        proportions for the paired-sample design.
    .. [3] Fleiss and Cuzick (1979), The reliability of dichotomous judgments: unequal
        numbers of judges per subject.

    Examples
    --------
    Of 2,000 patients, those with a risk of .2 or more are treated. The risks are
    calibrated.

    >>> import numpy as np
    >>> from skcalib.decisions import net_benefit
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.beta(1, 4, 2000)
    >>> relapse = rng.random(2000) < risk
    >>> found = net_benefit(relapse, risk, thresholds=[0.2])
    >>> (
    ...     found.net_benefit.round(3).tolist(),
    ...     found.low.round(3).tolist(),
    ...     found.high.round(3).tolist(),
    ... )
    ([0.084], [0.07], [0.099])

    The net benefit is the number of treated patients with a relapse, minus a quarter of
    the number of other treated patients, divided by the number of patients:

    >>> treated = risk >= 0.2
    >>> round(
    ...     float((treated & relapse).sum() - (treated & ~relapse).sum() / 4) / 2000, 3
    ... )
    0.084

    Treating everybody has a lower net benefit. The difference corresponds to detecting
    78 fewer relapses, or to 312 unnecessary treatments, per 1,000 patients:

    >>> net_benefit(relapse, risk, thresholds=[0.2], reference="all").net_benefit.round(
    ...     3
    ... ).tolist()
    [0.078]
    >>> found.interventions_avoided.round(1).tolist()
    [31.2]
    """
    level = check_confidence_level(confidence_level)
    harm = check_number(harm, "harm")
    if prevalence is not None:
        prevalence = check_number(prevalence, "prevalence", above=0, below=1)
    if thresholds is None:
        t = np.arange(1, 100) / 100
    else:
        t = check_thresholds(thresholds, below_one=True)
    options = {
        "sample_weight": sample_weight,
        "pos_label": pos_label,
        "labels": labels,
        "drop": False,
    }
    data = check_scored_labels(y_true, y_proba, **options)
    # Weights enter cell by cell: only what they say about the labels is taken here.
    known = counted_rows(data, weight_type).label_weights
    events = data.labels.astype(bool)
    strategies = _strategies(data, t, y_true, reference, options)
    if data.sample_weight is None:
        weight = np.ones(len(events))
    else:
        weight = np.asarray(data.sample_weight, dtype=np.float64)
    importance = is_importance(weight_type)
    # What a row adds to a variance: w copies of it add w, one row that counts w times
    # adds w^2.
    squares = weight**2 if importance else weight
    cluster = None
    if clusters is not None:
        _, codes = check_groups(clusters, len(events), name="clusters")
        cluster = cluster_codes(codes)
    _check_classes(weight @ events, weight.sum(), standardize, prevalence)

    n_reached = (strategies.model_reached, strategies.reference_reached)
    cells = _cells(events, n_reached, weight, squares, t, standardize, prevalence)
    few = "" if known is None else known.reason(events)
    reasons = _reasons(
        cells, weight, importance, cluster, strategies.reference == "model", few
    )
    influences = unit_influences(
        cells,
        events,
        n_reached,
        weight,
        squares,
        cluster,
        has_unknown_weights=_are_unknown(known),
        for_band=simultaneous,
    )
    # The critical values are those of a band if draws are asked for.
    n_draws = None
    rng = None
    if simultaneous:
        n_draws = check_int(n_resamples, "n_resamples")
        rng = check_random_state(random_state)
    z = critical_values(influences, level, n_draws, rng)
    effect = design_effects(cells, influences, cluster)
    # The critical values of a band are so high that the likelihood ratio must reject
    # as well: `cautious`.
    low, high = cells.limits(
        z,
        effect,
        cautious=bool(simultaneous),
        label_decides_weight=known is not None and known.is_known,
        weight_of_event=(
            weight_of_event(weight, events, data.scores) if _are_unknown(known) else 1.0
        ),
    )
    estimate = cells.estimate
    # If model and reference always decide alike, the difference is 0 with certainty,
    # and both limits are 0.
    is_certain = strategies.are_same | ((t == 0) & (strategies.reference == "all"))
    low = np.where(is_certain, estimate, low)
    high = np.where(is_certain, estimate, high)
    reasons = np.where(is_certain, "", reasons)
    low = np.where(reasons == "", low, np.nan)
    high = np.where(reasons == "", high, np.nan)
    frequency = float(np.average(events, weights=weight))
    if prevalence is not None:
        frequency = prevalence
    # What the model itself costs, in the unit of the result.
    loss = harm / frequency if standardize else harm
    (n_treated,) = treated_weight(strategies.model_reached, weight, len(t))
    return NetBenefit(
        thresholds=t,
        net_benefit=estimate - loss,
        low=low - loss,
        high=high - loss,
        interventions_avoided=_interventions_avoided(
            events, strategies.model_reached, weight, t, harm, prevalence
        ),
        n_treated=n_treated,
        reason=reasons.astype(str),
        n_samples=float(weight.sum()),
        event_frequency=frequency,
        reference=strategies.reference,
        standardize=bool(standardize),
        confidence_level=level,
        simultaneous=bool(simultaneous),
    )


def _are_unknown(label_weights):
    """Return whether importance weights say nothing of the other label."""
    return label_weights is not None and not label_weights.is_known


class _Strategies(NamedTuple):
    """What the model and the reference do with n samples at m increasing thresholds.

    Parameters
    ----------
    model_reached, reference_reached : ndarray of int, shape (n,)
        How many thresholds a sample reaches; it is treated at these.
    reference : {"none", "all", "model"}
        The kind of reference.
    are_same : bool
        Whether the reference is a model with the same probabilities.
    """

    model_reached: np.ndarray
    reference_reached: np.ndarray
    reference: str
    are_same: bool


def _strategies(data, thresholds, y_true, reference, options):
    """Return the `_Strategies` of the model and of the user's `reference`; `options`
    are those of `check_scored_labels`.
    """
    model_reached = _n_reached(data, thresholds)
    if isinstance(reference, str):
        kind = check_option(reference, "reference", ("none", "all"))
        # To treat everybody is to reach every threshold, to treat nobody to reach none.
        number = 0 if kind == "none" else len(thresholds)
        reference_reached = np.full(len(model_reached), number)
        return _Strategies(model_reached, reference_reached, kind, are_same=False)
    other = check_scored_labels(y_true, reference, **options)
    return _Strategies(
        model_reached,
        _n_reached(other, thresholds),
        "model",
        are_same=np.array_equal(data.scores, other.scores),
    )


def _n_reached(data, thresholds):
    """Return how many of the increasing thresholds each sample's probability reaches,
    (n,); raise if the labels are not those of one event.
    """
    check_one_event(
        data, "net benefit (ExpectedCostClassifier is for more than two classes)"
    )
    # Compared in the precision of the probabilities.
    thresholds = thresholds.astype(data.scores.dtype)
    return np.searchsorted(thresholds, data.scores, side="right")


def _check_classes(n_events, total, standardize, prevalence):
    """Raise if an option needs events, or rows of both classes, that are missing.
    `n_events` and `total` are weights.
    """
    if standardize and n_events == 0:
        raise ValueError(
            "y_true has no events: the standardised net benefit is the net benefit"
            " divided by the event frequency, which is 0."
        )
    if prevalence is not None and not 0 < n_events < total:
        raise ValueError(
            "y_true has only one class: with prevalence=, the net benefit needs the"
            " treated share of both classes."
        )


def _reasons(cells, weight, importance, cluster, is_against_model, few_events):
    """Return why each threshold has no limits, (m,) of str, "" where it has: too few
    rows, events (`few_events`) or clusters. `cells` are the `TreatmentCells`;
    `is_against_model` says that the reference is another model.
    """
    has_weight = weight > 0
    weight = weight[has_weight]
    reasons = reasons_for_no_limits(cells, weight, importance, None, is_against_model)
    reasons = np.where(reasons == "", few_events, reasons)
    if cluster is None:
        return reasons
    cluster_reasons = reasons_for_no_limits(
        cells, weight, False, cluster[has_weight], is_against_model
    )
    return np.where(reasons == "", cluster_reasons, reasons)


def _cells(events, n_reached, weight, squares, thresholds, standardize, prevalence):
    """Return the `TreatmentCells`: the weight of the samples by label and by what model
    and reference do with them, at each of m thresholds.

    `n_reached` is the pair of the numbers of thresholds (n,) that a sample reaches with
    model and reference. A sample adds `weight` (n,) to a sum and `squares` (n,) to a
    variance. `standardize` divides by the event frequency; `prevalence` is that of the
    population, or None.
    """
    m = len(thresholds)
    # Whether each difference of treatments d = 1, -1, 0 can occur. The model alone (1)
    # cannot treat a sample if the reference treats all, and the reference alone (-1)
    # cannot if it treats none.
    _, reference_reached = n_reached
    possible = np.ones((m, 3), dtype=bool)
    possible[:, 0] = ~np.all(reference_reached == m)
    possible[:, 1] = ~np.all(reference_reached == 0)
    # What treating an event and a non-event is worth, and what each adds to the
    # denominator. A false positive at a threshold t costs t / (1 - t) true positives.
    price = thresholds / (1 - thresholds)
    treatment_value = np.column_stack((np.ones(m), -price))
    denominator = np.array([1.0, 0.0 if standardize else 1.0])
    if prevalence is not None:
        # Means within the labels are weighted by the given shares of the labels.
        treatment_value = treatment_value * np.array([prevalence, 1 - prevalence])
        if standardize:
            treatment_value = treatment_value / prevalence
    cell_weight = cell_sums(events, n_reached, weight, m)
    cell_squares = cell_weight
    if squares is not weight:
        cell_squares = cell_sums(events, n_reached, squares, m)
    return TreatmentCells(
        cell_weight,
        cell_squares,
        possible,
        treatment_value,
        denominator,
        is_stratified=prevalence is not None,
    )


def _interventions_avoided(events, n_reached, weight, thresholds, harm, prevalence):
    """Return the interventions that the model, which costs `harm`, avoids per 100
    samples compared with treating everybody, (m,): the difference of the net benefits,
    times 100 (1 - t) / t at the threshold t; NaN at t = 0.

    `n_reached` (n,) counts the thresholds that a sample reaches; a `prevalence` of None
    is that of the samples.
    """
    m = len(thresholds)
    price = thresholds / (1 - thresholds)
    # Compared with treating everybody, an untreated event is a loss of 1, an untreated
    # non-event a gain of the price.
    event_weight = weight * events
    non_event_weight = weight * ~events
    (treated_events,) = treated_weight(n_reached, event_weight, m)
    (treated_non_events,) = treated_weight(n_reached, non_event_weight, m)
    missed = event_weight.sum() - treated_events
    spared = non_event_weight.sum() - treated_non_events
    if prevalence is None:
        missed = missed / weight.sum()
        spared = spared / weight.sum()
    else:
        missed = prevalence * missed / event_weight.sum()
        spared = (1 - prevalence) * spared / non_event_weight.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        avoided = 100 * (spared * price - missed - harm) / price
    return np.where(price > 0, avoided, np.nan)
