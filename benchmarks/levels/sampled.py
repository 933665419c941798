"""Promises about weights that depend on the label: sampled labels, and weights of
censoring.
"""

from functools import partial

import numpy as np

from benchmarks.levels.promises import Promise
from benchmarks.levels.shapes import SHAPES, Sample
from skcalib import censored_labels
from skcalib.evaluation import calibration_summary
from skcalib.metrics import (
    calibration_by_group,
    calibration_error_interval,
    calibration_test,
    segment_calibration_test,
)

__all__ = ["SAMPLED"]

_POPULATION = 12_000


def _sampled(keep, centre, *, by_score=False, hidden=False, too_high=1.0, n=600):
    """All events of a population and one of `keep` other rows, of which n are seen;
    scores are `too_high` times the probability of the event. The share of other rows
    that is kept also falls with the score where it is `by_score`; weights are `hidden`
    where they vary at random and nothing is known of the other label.
    """

    def sample(rng):
        z = rng.normal(size=_POPULATION)
        scores = 1 / (1 + np.exp(-centre - z))
        labels = rng.random(_POPULATION) < scores / too_high
        share = np.full(_POPULATION, 1 / keep)
        if by_score:
            share = np.minimum(share * np.exp(-z / 2), 1.0)
        rows = np.flatnonzero(labels | (rng.random(_POPULATION) < share))[:n]
        without_event = 1 / share[rows]
        weight = np.where(labels[rows], 1.0, without_event)
        weight_type = "importance"
        if by_score:
            weight_type = {0: without_event, 1: 1.0}
        if hidden:
            weight = weight * rng.uniform(0.7, 1.4, len(rows))
        scores = scores[rows]
        return Sample(
            scores,
            scores / too_high,
            labels[rows].astype(int),
            weight,
            weight_type=weight_type,
        )

    return sample


def _censored(rng):
    """Whether an event happens within one unit of time, with scores that are right;
    times are censored at random, and weights are those of inverse probabilities.
    """
    scores = rng.beta(1.0, 6.0, 800)
    time = rng.exponential(size=800) / -np.log1p(-scores)
    censored = rng.exponential(2.0, 800)
    labels, weight, weight_type = censored_labels(
        np.minimum(time, censored), time <= censored, 1.0
    )
    return Sample(scores, scores, labels, weight, weight_type=weight_type)


_CALIBRATED = {
    "events and 1 of 5 others, n = 600": _sampled(5, -1.5),
    "events and 1 of 20 others, n = 600": _sampled(20, -4.0),
    "events and 1 of 200 others, n = 600": _sampled(200, -6.0, n=150),
    "events and 1 of 20 others by score, n = 600": _sampled(20, -3.0, by_score=True),
    "5 events and 1 of 20 others": _sampled(20, -8.3),
    "weights of the label, hidden, n = 600": _sampled(20, -4.0, hidden=True),
    "weights of censoring, n = 800": _censored,
}
_TOO_HIGH = {
    "scores 1.2 times too high, 1 of 20 others": _sampled(20, -4.0, too_high=1.2),
    "scores 1.2 times too high, hidden weights": _sampled(
        20, -4.0, hidden=True, too_high=1.2
    ),
}
SHAPES.update(_CALIBRATED)
SHAPES.update(_TOO_HIGH)


def _rows(sample):
    return sample.labels, sample.scores


def _weights(sample):
    return {"sample_weight": sample.sample_weight, "weight_type": sample.weight_type}


def _covers_bias(sample, seed):
    table = calibration_by_group(
        *_rows(sample),
        np.zeros(len(sample.scores)),
        labels=[0, 1],
        n_resamples=1,
        random_state=seed,
        **_weights(sample),
    )
    if np.isnan(table.bias_low[0]):
        return np.nan
    return table.bias_low[0] <= 0 <= table.bias_high[0]


def _covers_ratio(sample, seed):
    """The ratio of observed to expected events, at the level of 90 %."""
    found = calibration_summary(
        *_rows(sample),
        confidence_level=0.9,
        n_resamples=1,
        random_state=seed,
        **_weights(sample),
    ).observed_expected
    if np.isnan(found.low):
        return np.nan
    ratio = sample.truth[0] / sample.scores[0]  # the same for all rows
    return found.low <= ratio <= found.high


def _covers_error(sample, seed):
    found = calibration_error_interval(
        *_rows(sample),
        labels=[0, 1],
        n_resamples=199,
        random_state=seed,
        **_weights(sample),
    )
    if np.isnan(found.low):
        return np.nan
    return found.low <= 0


def _rejects(sample, seed, **options):
    pvalue = calibration_test(
        *_rows(sample), labels=[0, 1], **options, **_weights(sample)
    ).pvalue
    if np.isnan(pvalue):
        return np.nan
    return pvalue <= 0.05


def _rejects_by_draws(sample, seed):
    return _rejects(sample, seed, n_resamples=199, random_state=seed)


def _rejects_segments(sample, seed):
    pvalue = segment_calibration_test(
        *_rows(sample),
        np.arange(len(sample.scores))[:, None] % 3,
        labels=[0, 1],
        n_resamples=199,
        random_state=seed,
        **_weights(sample),
    ).pvalue
    if np.isnan(pvalue):
        return np.nan
    return pvalue <= 0.05


_NAMES = tuple(_CALIBRATED)
_METHODS = {
    "Spiegelhalter": "spiegelhalter",
    "Kuiper": "kuiper",
    "Kolmogorov-Smirnov": "kolmogorov_smirnov",
}
SAMPLED = {
    "coverage": [
        Promise("sampled labels: bias", 0.9, _covers_bias, _NAMES),
        Promise(
            "sampled labels: O/E ratio", 0.9, _covers_ratio, _NAMES + tuple(_TOO_HIGH)
        ),
        Promise("sampled labels: l2, 15 bins", 0.9, _covers_error, _NAMES[:4]),
    ],
    "size": [
        *(
            Promise(
                f"sampled labels: {name}",
                0.05,
                partial(_rejects, method=method),
                _NAMES,
            )
            for name, method in _METHODS.items()
        ),
        Promise("sampled labels: resampled sweep", 0.05, _rejects_by_draws, _NAMES),
        Promise("sampled labels: segments", 0.05, _rejects_segments, _NAMES),
    ],
}
