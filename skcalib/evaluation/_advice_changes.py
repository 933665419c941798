"""Changes of calibration over time, of all samples and of segments."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from skcalib._cells.columns import top_label
from skcalib._inference.results import IntervalEstimate
from skcalib._rows.blocks import taken, weights_or_ones
from skcalib.binning import EqualMass
from skcalib.evaluation._advice_search import LEVEL
from skcalib.monitoring._change import change_test
from skcalib.monitoring._two_samples import two_samples

_FEWEST_SIDE = 30  # fewest samples of a group before and after a change
# Fewest expected events there, counted as the sum of p (1 - p).
_FEWEST_EVENTS = 10


class FoundChange(NamedTuple):
    """A significant change of calibration.

    Attributes
    ----------
    column, group : str or None
        The column and the segment; None for all samples.
    since : int
        Number of the period from which on calibration differs from that before.
    shift : IntervalEstimate
        How much more frequent the event is from then on, at equal probabilities.
    adjusted_pvalue : float
        P-value of no change, adjusted for all groups and periods (Bonferroni).
    """

    column: str | None
    group: str | None
    since: int
    shift: IntervalEstimate
    adjusted_pvalue: float


def found_changes(samples, probabilities):
    """Return the significant changes of calibration over time, of all samples and of
    each segment, as a list of `FoundChange`, the smallest p-value first.

    Of each group, the start of the period that divides its residuals most clearly is
    tested as in `calibration_change`. `probabilities` are those of the `Samples` after
    recalibration, out of fold. With several classes the event is that the predicted
    class is right.
    """
    scores, labels = probabilities, samples.labels
    if scores.ndim == 2:
        predicted, scores = top_label(probabilities)
        labels = predicted == samples.labels
    samples = samples._replace(scores=scores, labels=labels)
    n_periods = int(samples.period.max()) + 1
    # Triples of a column, a name and a mask of the samples of a group, (n,).
    groups = [(None, None, np.ones(len(labels), dtype=bool))]
    for column, segments in samples.segmentations.items():
        for name in np.unique(segments):
            groups.append((column, str(name), segments == name))
    n_tests = len(groups) * max(n_periods - 1, 1)
    found = []
    for column, name, in_group in groups:
        group_samples = samples.at(in_group)
        since = _clearest_period(group_samples, n_periods)
        if since is None:
            continue
        shift, pvalue = _shift(group_samples, group_samples.period >= since, n_tests)
        if pvalue * n_tests < LEVEL:
            found.append(FoundChange(column, name, since, shift, pvalue * n_tests))
    return sorted(found, key=lambda change: change.adjusted_pvalue)


def _clearest_period(samples, n_periods):
    """Return the period from which on the mean residual (label minus score) differs
    most from that before, in standard errors of independent samples; None if every
    period leaves too few samples or events on a side.
    """
    weight = weights_or_ones(samples.sample_weight, len(samples.labels))
    variance = samples.scores * (1 - samples.scores)
    terms = {
        "n": np.ones(len(weight)),
        "events": variance,
        "weight": weight,
        "residual": weight * (samples.labels - samples.scores),
    }
    # Sums over the samples from each period on; entry 0 is about all samples.
    after = {}
    for name, values in terms.items():
        by_period = np.bincount(samples.period, values, minlength=n_periods)
        after[name] = by_period[::-1].cumsum()[::-1]
    total = {name: sums[0] for name, sums in after.items()}
    # the smaller side: the samples before the period, or from it on
    fewest = {
        name: np.minimum(sums, total[name] - sums) for name, sums in after.items()
    }
    is_possible = (fewest["n"] >= _FEWEST_SIDE) & (fewest["events"] >= _FEWEST_EVENTS)
    if not is_possible.any():
        return None
    weight_after = after["weight"]
    share = weight_after / total["weight"]
    # The sum of the later residuals less their share of the sum of all residuals.
    difference = after["residual"] - share * total["residual"]
    # Its variance is proportional to share (1 - share) if residuals are independent.
    scale = np.maximum(share * (1 - share), np.finfo(float).tiny)
    clearness = np.where(is_possible, difference**2 / scale, -1.0)
    return int(clearness.argmax())


def _shift(samples, is_later, n_tests):
    """Return the change in event frequency at equal scores with its interval, which
    holds for `n_tests` intervals together, and the p-value that agrees with it.
    """
    level = 1 - LEVEL / n_tests
    options = {"weight_type": samples.weight_type}
    for key in ("sample_weight", "clusters"):
        values = getattr(samples, key)
        if values is not None:
            options[key] = (taken(values, ~is_later), taken(values, is_later))
    # The earlier samples and the later ones, validated.
    both_sides = two_samples(
        samples.labels[~is_later],
        samples.scores[~is_later],
        samples.labels[is_later],
        samples.scores[is_later],
        EqualMass(1),  # the bins of errors, which are not used
        labels=[False, True],
        **options,
    )
    # One draw: the p-value of the draws is not used.
    _, _, shift = change_test(
        both_sides,
        samples.weight_type,
        level,
        n_resamples=1,
        random_state=np.random.RandomState(0),
    )
    half_width = (shift.high - shift.low) / 2
    if np.isnan(half_width):
        return shift, 1.0
    if half_width == 0:
        return shift, float(shift.estimate == 0)
    # The normal p-value for which the interval would just reach 0.
    z = ndtri((1 + level) / 2) * abs(shift.estimate) / half_width
    return shift, float(2 * ndtr(-z))
