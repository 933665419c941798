"""Net benefit: what decisions at a threshold are worth, in true positives a row."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit
from sklearn.utils import check_random_state

from skcalib._inference.influence import cluster_codes
from skcalib._inference.results import ResultTable
from skcalib._input.labels import check_groups
from skcalib._input.scalars import check_confidence_level, check_int, check_option
from skcalib._input.scored_labels import check_one_event, check_scored_labels
from skcalib.decisions._certified_threshold import check_thresholds


@dataclass(frozen=True, eq=False, repr=False)
class NetBenefit(ResultTable):
    """Net benefit of one model at each threshold, with its interval. Printing it gives sentences.

    Parameters
    ----------
    thresholds : ndarray of shape (n_thresholds,)
        The thresholds, in increasing order.
    net_benefit : ndarray of shape (n_thresholds,)
        Net benefit, in true positives a row; standardised, as a share of the most there is.
    low, high : ndarray of shape (n_thresholds,)
        Limits of the interval, or of the band.
    n_treated : ndarray of shape (n_thresholds,)
        Rows at or above each threshold; with weights their sum.
    n_samples : float
        Number of rows, or the sum of their weights.
    event_frequency : float
        Share of the rows with an event.
    reference : {"none", "all", "model"}
        What the model is compared with: treating nobody, treating everybody, or another model.
    standardize : bool
        Whether the net benefit is divided by the event frequency.
    confidence_level : float
        Coverage of each interval, in (0, 1), or of the band.
    simultaneous : bool
        Whether the limits hold at all thresholds at once.
    """

    thresholds: np.ndarray
    net_benefit: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n_treated: np.ndarray
    n_samples: float
    event_frequency: float
    reference: str
    standardize: bool
    confidence_level: float
    simultaneous: bool

    def __str__(self):
        """Say where the model is better than the reference, and where worse."""
        against = {
            "none": "treating nobody",
            "all": "treating everybody",
            "model": "the other model",
        }[self.reference]
        level = (
            f"{100 * self.confidence_level:.10g} % confidence"
            + ", all at once" * self.simultaneous
        )
        return (
            f"Net benefit against {against} at {len(self)} threshold{'s' * (len(self) > 1)}, from "
            f"{self.n_samples:,.10g} rows with {100 * self.event_frequency:.3g} % events.\n"
            f"Better than {against} ({level}): {self._where(self.low > 0)}.\nWorse: {self._where(self.high < 0)}."
        )

    def _where(self, mask):
        """Return the ranges of thresholds of a mask in words."""
        edges = np.flatnonzero(np.diff(np.concatenate(([0], mask, [0]))))
        ranges = [
            self.thresholds[[start, stop - 1]] for start, stop in edges.reshape(-1, 2)
        ]
        return (
            ", ".join(f"{a:g}" if a == b else f"{a:g} to {b:g}" for a, b in ranges)
            or "at no threshold"
        )


def net_benefit(
    y_true,
    y_proba=None,
    *,
    thresholds=None,
    reference="none",
    standardize=False,
    confidence_level=0.9,
    simultaneous=False,
    n_resamples=1000,
    sample_weight=None,
    clusters=None,
    pos_label=None,
    labels=None,
    random_state=None,
):
    r"""Net benefit of treating rows from a threshold on, with confidence intervals: the numbers of a decision curve.

    The threshold t says what a false alarm costs: who treats from t on takes 1 / t - 1 false alarms for one event. The
    net benefit is the number of treated events, minus the number of other treated rows divided by this price, per row.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,) or (n, 2)
        Probabilities in [0, 1] of a model that was fitted on other rows.
    thresholds : array-like of float, default=None
        Thresholds in [0, 1); None means .01, .02 to .99. A row with a probability equal to a threshold is treated.
    reference : {"none", "all"} or array-like of shape (n,) or (n, 2), default="none"
        What is subtracted: the net benefit of treating nobody (0) or everybody, or that of another model, given as its
        probabilities of the same rows.
    standardize : bool, default=False
        Whether the net benefit is divided by the event frequency, so that 1 is the most there is.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1), or of the band.
    simultaneous : bool, default=False
        Whether the limits are to hold at all thresholds at once.
    n_resamples : int, default=1000
        Number of draws behind a simultaneous band.
    sample_weight : array-like of shape (n,), default=None
        Weights, which count as repeated rows. For weights that are not counts, such as inverse probabilities of
        selection, pass ``clusters=np.arange(n)``.
    clusters : array-like of shape (n,), default=None
        The cluster of each row: rows of one cluster (a patient, a centre) may depend on each other.
    pos_label : int, float, bool or str, default=None
        The label that one column of scores is the probability of.
    labels : array-like of shape (2,), default=None
        The sorted labels of the columns.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    table : NetBenefit
        Frozen table of arrays (`thresholds, net_benefit, low, high, n_treated`) with ``len`` and ``to_frame()``.

    Raises
    ------
    ValueError
        For labels, probabilities, a reference, clusters or parameters that do not fit together, more than two classes,
        one class where `standardize` needs events, and fewer than two clusters.

    See Also
    --------
    skcalib.displays.DecisionCurveDisplay : The picture.
    skcalib.decisions.ExpectedCostClassifier : Decisions for more than two classes or actions.
    skcalib.displays.MurphyDisplay : The same losses on another scale.

    Notes
    -----
    With the weight w = t / (1 - t) of a false alarm, a treated row counts d = 1 with the event and d = -w without,
    others 0, and the net benefit is the mean of d [1]_. Intervals are normal ones around the mean with two rows added,
    d = 1 and d = -w (-1 where w > 1), both with the other sign against treating everybody; the difference of two models
    takes none. With `clusters` the variance is that of the sums of clusters, and quantiles are Student's with one
    degree fewer than clusters. Simulated with 24 to 250 events, intervals of .9 cover .88 to .92, with 30 and 60
    clusters .90 to .93. A band draws a normal factor per row, or per cluster, and takes the quantile of the largest
    deviation over thresholds in units of its standard error.

    On the scale of a Murphy diagram the net benefit is ``prevalence - cost(t) / (1 - t)``, where
    ``cost(t) = t FP / n + (1 - t) FN / n``.

    References
    ----------
    .. [1] Vickers and Elkin (2006), Decision curve analysis: a novel method for evaluating prediction models.

    Examples
    --------
    2,000 patients, of whom those with a risk of .2 or more are treated. The risks are calibrated.

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

    It is the number of treated patients with a relapse, minus a quarter of the other treated patients, per patient:

    >>> treated = risk >= 0.2
    >>> round(
    ...     float((treated & relapse).sum() - (treated & ~relapse).sum() / 4) / 2000, 3
    ... )
    0.084

    Treating everybody is worse, by as much as finding 78 fewer of 1,000 patients with a relapse:

    >>> net_benefit(relapse, risk, thresholds=[0.2], reference="all").net_benefit.round(
    ...     3
    ... ).tolist()
    [0.078]
    """
    level = check_confidence_level(confidence_level)
    t = (
        np.arange(1, 100) / 100
        if thresholds is None
        else check_thresholds(thresholds, below_one=True)
    )
    options = {
        "sample_weight": sample_weight,
        "pos_label": pos_label,
        "labels": labels,
        "drop": False,
    }
    data = check_scored_labels(y_true, y_proba, **options)
    events, places, against = data.labels, [_places(data, t)], "model"
    if isinstance(reference, str):
        against = check_option(reference, "reference", ("none", "all"))
        places += [np.full(len(events), len(t))] * (reference == "all")
    else:
        places.append(_places(check_scored_labels(y_true, reference, **options), t))
    weight = np.ones(len(events)) if data.sample_weight is None else data.sample_weight
    is_clustered = clusters is not None
    if is_clustered:
        unit = cluster_codes(
            check_groups(clusters, len(events), name="clusters")[1],
            "frequency",
            len(events),
        )
    else:  # rows that no threshold tells apart count as one unit with their weight
        unit = np.ravel_multi_index(
            (events.astype(np.intp), *places), (2, *[len(t) + 1] * len(places))
        )
        unit = np.unique(unit, return_inverse=True)[1]
    price = t / (1 - t)
    gain = 0.0
    for sign, place in zip((1, -1), places, strict=False):
        gain = gain + sign * _treated(place, unit, weight * events, len(t))
        gain -= sign * price * _treated(place, unit, weight * ~events, len(t))
    mass, of_events = np.bincount(unit, weight), np.bincount(unit, weight * events)
    if standardize and not of_events.any():
        raise ValueError(
            "y_true has no events: a standardised net benefit divides by their share."
        )
    n_samples, event_frequency = (
        float(weight.sum()),
        float(np.average(events, weights=weight)),
    )
    estimate = gain.sum(axis=0) / n_samples / (event_frequency if standardize else 1.0)
    if (
        against != "model"
    ):  # a row with and one without the event, on which the two strategies differ
        row = weight.mean() if is_clustered else 1.0
        sign = row if against == "none" else -row
        gain = np.vstack((gain, np.full(len(t), sign), -sign * np.minimum(price, 1)))
        mass, of_events = np.append(mass, (row, row)), np.append(of_events, (row, 0))
    centre, error, residual = _moments(gain, mass, of_events, is_clustered, standardize)
    tail = (1 + level) / 2
    width = stdtrit(unit.max(), tail) if is_clustered else ndtri(tail)
    if (
        simultaneous
    ):  # by a normal factor for each unit, in place of the normal quantile
        rng, n_resamples = (
            check_random_state(random_state),
            check_int(n_resamples, "n_resamples"),
        )
        largest = [
            np.abs(rng.standard_normal(len(residual)) @ residual).max()
            for _ in range(n_resamples)
        ]
        width *= np.quantile(largest, level) / ndtri(tail)
    columns = (
        t,
        estimate,
        centre - width * error,
        centre + width * error,
        _treated(places[0], 0, weight, len(t))[0],
    )
    options = against, bool(standardize), level, bool(simultaneous)
    return NetBenefit(*columns, n_samples, event_frequency, *options)


def _places(data, thresholds):
    """Return how many thresholds each row's probability reaches, compared in the precision of the probabilities."""
    check_one_event(
        data, "net benefit (ExpectedCostClassifier decides between more classes)"
    )
    return np.searchsorted(
        thresholds.astype(data.scores.dtype), data.scores, side="right"
    )


def _treated(place, unit, weight, n_thresholds):
    """Return the weight of the rows of each unit that are treated at each threshold, (n_units, n_thresholds)."""
    shape = (int(np.max(unit)) + 1, n_thresholds + 1)
    table = np.bincount(unit * shape[1] + place, weight, shape[0] * shape[1]).reshape(
        shape
    )
    return table[:, :0:-1].cumsum(axis=1)[:, ::-1]


def _moments(gain, mass, of_events, is_clustered, standardize):
    """Return mean, standard error, and the residual of each unit in units of the standard error."""
    total = mass.sum()
    # Standardised it is the ratio of two means.
    share, counted = (
        (of_events.sum() / total, of_events) if standardize else (1.0, mass)
    )
    centre = gain.sum(axis=0) / total / share
    residual = (gain - centre * counted[:, None]) / share
    if is_clustered:
        residual *= np.sqrt(len(mass) / (len(mass) - 1))
    else:  # a unit is as many rows as its weight says
        residual /= np.sqrt(np.where(mass > 0, mass, 1))[:, None]
    error = np.sqrt(np.sum(residual**2, axis=0)) / total
    return centre, error, residual / (np.where(error > 0, error, 1) * total)
