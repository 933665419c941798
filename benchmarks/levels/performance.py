"""Promises of `estimated_performance`: its intervals hold the figures that the labels
of the new samples give, where what it assumes is so, and where it is not.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.label_free import WORLDS, figures
from benchmarks.levels.promises import Promise
from benchmarks.levels.shapes import SHAPES
from skcalib.monitoring import estimated_performance

__all__ = ["PERFORMANCE", "half_holds"]

_METRICS = ("accuracy", "event_frequency", "log_loss", "brier_score")


class _LabelledAndNew(NamedTuple):
    """Labelled samples, and new ones, of which the labels of some are known."""

    scores: np.ndarray
    truth: np.ndarray
    labels: np.ndarray
    is_new: np.ndarray
    is_known: np.ndarray
    sample_weight: None = None


def _sample(world, known, first_events, new_share, rng):
    """Draw a world of `benchmarks.label_free`.

    `known` new labels are known, events `first_events` times as often as others. With
    `new_share` a feature that the score does not hold moves the frequencies of a group
    by .15: three labelled samples in ten belong to it, and this share of the new ones.
    """
    n_labelled, shape, n_new, new_shape, curve = world
    scores = np.append(rng.beta(*shape, n_labelled), rng.beta(*new_shape, n_new))
    is_new = np.arange(len(scores)) >= n_labelled
    truth = curve(scores)
    if new_share is not None:
        in_group = rng.random(len(scores)) < np.where(is_new, new_share, 0.3)
        truth = np.clip(truth + 0.15 * (in_group - 0.3), 0, 1)
    labels = rng.random(len(scores)) < truth
    chance = known / n_new * np.where(labels, first_events, 1)
    is_known = is_new & (rng.random(len(scores)) < chance)
    return _LabelledAndNew(scores, truth, labels, is_new, is_known)


def _shape(world, known=0, first_events=1.0, new_share=None):
    return partial(_sample, WORLDS[world], known, first_events, new_share)


_WORLDS = tuple(f"label-free, {world}" for world in WORLDS)
SHAPES |= {f"label-free, {world}": _shape(world) for world in WORLDS}
_MIX = "label-free, another mix of features"
_MIX_AND_LABELS = "label-free, another mix of features, 200 labels known"
_EARLY = "label-free, events known twice as early"
_USELESS = (1000, (2, 2), 5000, (2, 2), lambda scores: np.full(len(scores), 0.3))
_RANDOM = {  # known labels of the new samples, and the world
    "50 random labels, same scores": (50, WORLDS["same scores"]),
    "200 random labels, same scores": (200, WORLDS["same scores"]),
    "200 random labels, few labelled": (200, WORLDS["few labelled"]),
    "50 random labels, scores say nothing": (50, _USELESS),
    "200 random labels, rare events": (200, WORLDS["rare events"]),
    "50 random labels, never certain": (50, WORLDS["never certain"]),
}
_RANDOM = {
    f"label-free, {name}": partial(_sample, world, known, 1.0, None)
    for name, (known, world) in _RANDOM.items()
}
SHAPES |= _RANDOM
SHAPES |= {
    _MIX: _shape("lower scores", new_share=0.7),
    _MIX_AND_LABELS: _shape("lower scores", known=200, new_share=0.7),
    _EARLY: _shape("lower scores", known=200, first_events=2.0),
}

_FOUND = {}  # by sample: the promises of all metrics are about the same ones


def _holds(metric, sample, seed):
    key = hash((sample.scores.tobytes(), sample.labels.tobytes()))
    if key not in _FOUND:
        _FOUND[key] = _all_held(sample)
    return _FOUND[key][metric]


def half_holds(metric, world, sample, seed):
    """Return whether the interval of a metric of the second half of a sample, from the
    labels of the first, holds the figure; NaN without an interval.
    """
    is_new = np.arange(len(sample.scores)) >= len(sample.scores) // 2
    split = _LabelledAndNew(
        sample.scores, sample.truth, sample.labels, is_new, np.zeros_like(is_new)
    )
    return _holds(metric, split, seed)


def _all_held(sample):
    """Return by metric whether the interval holds the figure; NaN without one."""
    new_labels = sample.labels[sample.is_new]
    new_scores = sample.scores[sample.is_new]
    options = {}
    if sample.is_known.any():
        known = np.where(sample.is_known, sample.labels, np.nan)[sample.is_new]
        options = {"y_new": known, "missing": "at_random"}
    found = estimated_performance(
        sample.labels[~sample.is_new],
        sample.scores[~sample.is_new],
        new_scores,
        metrics=_METRICS,
        **options,
    )
    truth = figures(new_scores, new_labels)
    held = {}
    for name, low, high in zip(found.metric, found.low, found.high, strict=True):
        if name in truth:
            inside = float(low <= truth[name] <= high)
            held[name] = np.nan if np.isnan(low) else inside
    return held


_SHAPES = {metric: (*_WORLDS, *_RANDOM, _MIX, _MIX_AND_LABELS) for metric in _METRICS}
_SHAPES["event_frequency"] += (_EARLY,)
PERFORMANCE = [
    Promise(
        f"estimated {metric.replace('_', ' ')}", 0.9, partial(_holds, metric), shapes
    )
    for metric, shapes in _SHAPES.items()
]
