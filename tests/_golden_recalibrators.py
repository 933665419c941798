"""One fitted recalibrator of each kind with scores and their probabilities, in `golden_recalibrators.json`.

``python tests/_golden_recalibrators.py`` fits and writes them anew. That is needed where a fit or the schema changes;
tests that fail without such a change have found a fault.
"""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

import skcalib
from skcalib.export import from_dict, to_dict

PATH = Path(__file__).with_name("golden_recalibrators.json")
# Those that float32 holds (or rounds to 0 or 1), so that both types see the same scores.
SCORES = [
    0.0,
    1e-300,
    2.0**-60,
    2.0**-20,
    0.0625,
    0.25,
    0.3125,
    0.5,
    0.75,
    1 - 2.0**-20,
    1 - 2.0**-53,
    1.0,
]
LOG_ODDS = [-1e4, -40.0, -3.0, -0.125, 0.0, 2.0**-30, 0.5, 2.25, 36.5, 800.0]
PLATT = skcalib.PlattScaling

BINARY = [
    skcalib.BetaCalibration(),
    skcalib.CautiousRecalibrator(PLATT()),
    skcalib.ClasswiseTemperatureScaling(max_deviation=0.5),
    skcalib.DirichletCalibration(0.1),
    skcalib.EnsembleTemperatureScaling(),
    skcalib.HistogramBinning(4),
    skcalib.IsotonicCalibration(),
    skcalib.IsotonicCalibration(centered=True),
    skcalib.MatrixScaling(0.1),
    PLATT(),
    PLATT(clip=0.01),
    skcalib.PriorShift("balanced", 0.125),
    skcalib.QuadraticScaling(),
    skcalib.ScalingBinning(binning=4),
    skcalib.SplineCalibration(5),
    skcalib.StackedRecalibrator(cv=3),
    skcalib.TemperatureScaling(),
    skcalib.UniformMassBinning(4),
    skcalib.VectorScaling(0.1),
    skcalib.VectorScaling(0.1, center=False),
    skcalib.VennAbers(),
    skcalib.VennAbers(max_n_knots=6),
]
ON_LOG_ODDS = [
    PLATT(),
    skcalib.BetaCalibration(),
    skcalib.UniformMassBinning(3),
    skcalib.IsotonicCalibration(),
]
MANY_CLASSES = [
    PLATT(),
    PLATT(multiclass="top_label"),
    skcalib.ClasswiseTemperatureScaling(max_deviation=0.5),
    skcalib.DirichletCalibration(),
    skcalib.EnsembleTemperatureScaling(),
    skcalib.HistogramBinning(4),
    skcalib.HistogramBinning(4, multiclass="top_label"),
    skcalib.HistogramBinning(4, normalize=False),
    skcalib.MatrixScaling(),
    skcalib.PriorShift("balanced"),
    skcalib.StackedRecalibrator(
        [skcalib.TemperatureScaling(), skcalib.MatrixScaling()], cv=2
    ),
    skcalib.TemperatureScaling(),
    skcalib.VectorScaling(),
]


class Golden(NamedTuple):
    """A fitted recalibrator with scores (n, C), their groups and ids or None, and probabilities (n, K)."""

    recalibrator: object
    scores: np.ndarray
    groups: list | None
    ids: list | None
    probabilities: np.ndarray
    document: dict

    @property
    def options(self):
        """What else `predict_proba` takes."""
        given = {"groups": self.groups, "ids": self.ids}
        return {name: values for name, values in given.items() if values is not None}

    @property
    def alone(self):
        """The scores without a column of features."""
        return self.scores[:, : self.recalibrator._score_width]

    def __str__(self):
        return f"{self.recalibrator} for {len(self.recalibrator.classes_)} classes"


def golden_recalibrators():
    """Return all entries of the file."""
    entries = json.loads(PATH.read_text("utf-8"))
    return [
        Golden(
            from_dict(entry["document"]),
            np.array(entry["scores"]),
            entry["groups"],
            entry["ids"],
            np.array(entry["probabilities"]),
            entry["document"],
        )
        for entry in entries
    ]


def _fitted():
    """Yield (fitted recalibrator, scores, groups, ids)."""
    rng = np.random.default_rng(0)
    scores = np.concatenate(
        (np.round(rng.beta(0.5, 0.8, 56) * 256) / 256, [0, 0, 1, 1])
    )
    y = np.where(rng.random(len(scores)) < scores**1.5, "yes", "no")
    for recalibrator in BINARY:
        yield recalibrator.fit(scores, y), np.array(SCORES)[:, None]
    log_odds = np.round(rng.normal(size=60) * 64) / 32
    for recalibrator in ON_LOG_ODDS:
        fitted = recalibrator.set_params(input="logit").fit(
            log_odds, rng.random(60) < 1 / (1 + np.exp(-log_odds))
        )
        yield fitted, np.array(LOG_ODDS)[:, None]
    yield from _of_groups(scores, y)
    logits = rng.normal(size=(80, 3)) * 2
    classes = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    new = np.array(
        [
            [0.5, 0.25, 0.25],
            [0.125, 0.5, 0.375],
            [0, 0, 1],
            [0, 0.5, 0.5],
            [2.0**-20, 2.0**-20, 1 - 2.0**-19],
        ]
    )
    features = np.array([[0.25, 1], [0.75, 0]])
    multicalibrated = skcalib.MulticalibratedRecalibrator(
        PLATT(), features=1, max_rounds=0
    )
    yield (
        multicalibrated.fit(np.column_stack((scores, np.arange(len(y)) % 2)), y),
        features,
    )
    for recalibrator in MANY_CLASSES:
        yield recalibrator.fit(softmax(logits, axis=1), classes), new
    scaled = skcalib.MatrixScaling(input="logit").fit(logits, classes)
    yield (
        scaled,
        np.array([[0.5, -1.25, 3], [0, 0, 0], [90, -90, 0], [1002, 1000, 1001]]),
    )


def _of_groups(scores, y):
    groups = np.array(["north", "o'south", "east"])[np.arange(len(y)) % 3]
    fitted = skcalib.GroupwiseRecalibrator(PLATT(), min_group_size=20, shrinkage=5).fit(
        scores, y, groups=groups
    )
    new = np.repeat([0.125, 0.5, 0.75], 3)[:, None]
    yield fitted, new, np.tile(fitted.groups_, 3).tolist()
    yield (
        skcalib.GroupwiseRecalibrator(min_group_size=5).fit(scores, y),
        np.array(SCORES)[:, None],
    )
    sites = np.array(["a", "b"])[np.arange(len(y)) % 2]
    for inner in (skcalib.IsotonicCalibration(), skcalib.StackedRecalibrator(cv=2)):
        fitted = skcalib.GroupwiseRecalibrator(inner, min_group_size=20).fit(
            scores, y, groups=sites
        )
        yield fitted, new, ["a", "b", "never seen"] * 3
    tied = np.round(scores * 4) / 4
    randomised = skcalib.UniformMassBinning(5, randomize=True, random_state=0).fit(
        tied, y
    )
    on_cuts = np.repeat(np.unique(tied), 4)[:, None]
    yield randomised, on_cuts, None, list(range(len(on_cuts)))
    yield randomised, on_cuts, None, [f"row's {k}" for k in range(len(on_cuts))]


def _write():
    entries = []
    for fitted, scores, *given in _fitted():
        groups, ids = (*given, None, None)[:2]
        options = Golden(fitted, scores, groups, ids, None, None).options
        entries.append(
            {
                "document": to_dict(fitted),
                "scores": scores.tolist(),
                "groups": groups,
                "ids": ids,
                "probabilities": fitted.predict_proba(scores, **options).tolist(),
            }
        )
    lines = ",\n".join(json.dumps(entry, allow_nan=False) for entry in entries)
    PATH.write_text(f"[\n{lines}\n]\n", "utf-8")


if __name__ == "__main__":
    _write()
