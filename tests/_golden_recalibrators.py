"""One fitted recalibrator of each kind with scores and their probabilities, in
`golden_recalibrators.json`.

``python tests/freeze.py`` fits and writes them anew. That is needed where a fit or the
schema changes; tests that fail without such a change have found a fault.
"""

import json
from functools import cache
from typing import NamedTuple

import numpy as np
from _golden_results import agrees
from registry import RecalibratorEntry, entries_of
from registry._rows import FITS_PATH, NEW_LOG_ODDS, NEW_PROBA, NEW_SCORES, fit_rows
from scipy.special import softmax
from sklearn.base import clone

from skcalib.export import from_dict, to_dict


class Golden(NamedTuple):
    """A fitted recalibrator with scores (n, C), their groups and ids or None, and
    probabilities (n, K).
    """

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
    """Return all frozen fits."""
    return [golden for some in golden_by_name().values() for golden in some]


@cache
def golden_by_name():
    """Return the frozen fits of each recalibrator, by its public name."""
    frozen = json.loads(FITS_PATH.read_text("utf-8"))["fits"]
    return {name: [_golden(fit) for fit in fits] for name, fits in frozen.items()}


def _golden(fit):
    return Golden(
        from_dict(fit["document"]),
        np.array(fit["scores"]),
        fit["groups"],
        fit["ids"],
        np.array(fit["probabilities"]),
        fit["document"],
    )


def fits_of(entry, rows):
    """Yield what an entry freezes: a fitted recalibrator, scores, groups and ids."""
    for recalibrator in entry.two_classes:
        fitted = clone(recalibrator).fit(rows.scores, rows.y)
        yield fitted, NEW_SCORES, None, None
    for recalibrator in entry.log_odds:
        fitted = clone(recalibrator).set_params(input="logit")
        fitted.fit(rows.log_odds, rows.y_of_log_odds)
        yield fitted, NEW_LOG_ODDS, None, None
    for recalibrator in entry.three_classes:
        fitted = clone(recalibrator).fit(softmax(rows.logits, axis=1), rows.label)
        yield fitted, NEW_PROBA, None, None
    if entry.more_fits is not None:
        yield from entry.more_fits(rows)


def write():
    """Fit all of them, and write the file. Fits that agree with it keep their digits,
    so that the diff shows what has changed.
    """
    stored = json.loads(FITS_PATH.read_text("utf-8"))
    rows = stored["rows"]
    texts = []
    for name, entry in entries_of(RecalibratorEntry).items():
        frozen = stored["fits"].get(name, [])
        documents = [
            _kept_if_same(_document(*fit), frozen) for fit in fits_of(entry, fit_rows())
        ]
        lines = ",\n".join(
            json.dumps(document, allow_nan=False) for document in documents
        )
        texts.append(f"{json.dumps(name)}: [\n{lines}\n]")
    fits = ",\n".join(texts)
    FITS_PATH.write_text(
        f'{{"rows": {json.dumps(rows)},\n"fits": {{\n{fits}\n}}}}\n', "utf-8"
    )


def _kept_if_same(found, frozen):
    """Return the frozen fit that agrees with one."""
    for fit in frozen:
        if agrees(_without_chance(found), _without_chance(fit)):
            return fit
    return found


# What differs from fit to fit: versions, times, the seed of a fit without one.
_CHANCE = {"provenance_", "seconds_", "_seed"}


def _without_chance(value):
    if isinstance(value, dict):
        return {
            name: _without_chance(inner)
            for name, inner in value.items()
            if name not in _CHANCE
        }
    if isinstance(value, list):
        return [_without_chance(inner) for inner in value]
    return value


def _document(fitted, scores, groups, ids):
    options = Golden(fitted, scores, groups, ids, None, None).options
    return {
        "document": to_dict(fitted),
        "scores": scores.tolist(),
        "groups": groups,
        "ids": ids,
        "probabilities": fitted.predict_proba(scores, **options).tolist(),
    }
