"""The first screens of reports of tables of known truth, beside this truth.

``python -m benchmarks.checks.first_screens`` draws ten kinds of tables with four seeds
each, prints what is true and what to do, then the headline, the evidence and the advice
of the report, and counts the screens that lead to the right action: that say what has
to be said, and nothing else that calls for action.
"""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from benchmarks.checks.sentence_truth import MONTHS, quick
from skcalib._report._forecasts import ReportTable
from skcalib._report._numbers import report_numbers
from skcalib._report._sections import comparisons

# Claims that call the scores usable, and claims that call them off.
_USABLE = {"usable"}
_OFF = {
    "do not use",
    "check",
    "do not take at face value",
    "do not use the segment",
    "check the segment",
    "changed",
}


@dataclass(frozen=True)
class Kind:
    """A kind of tables: what is true, what to do, one of the claims (or texts) that
    have to be printed, claims that mislead, and what draws a table.
    """

    truth: str
    needed: set
    misleading: set
    table: Callable


def _table(rng, odds, truth, **columns):
    """Return a table with these log-odds as scores and these true ones."""
    labels = rng.random(len(odds)) < expit(truth)
    return ReportTable("x", "y", "1", labels, {"model": expit(odds)}, **columns)


def _odds(rng, n=2000, centre=-0.5):
    return rng.normal(centre, 1.3, n)


def _shift(rng):
    odds = _odds(rng)
    return _table(rng, odds, odds - 0.6)


def _slope(rng):
    odds = _odds(rng)
    return _table(rng, odds, 0.6 * odds - 0.1)


def _one_group(rng):
    odds = _odds(rng)
    site = rng.choice(["East", "South", "West", "North"], len(odds))
    return _table(
        rng, odds, odds + (site == "West"), segment_name="site", segments=site
    )


def _impossible(rng):
    odds = _odds(rng)
    table = _table(rng, odds, odds)
    table.scores["model"][17] = 0.0
    table.labels[17] = True
    return table


def _weights(rng):
    """Calibrated where weighted: samples with a high score and no event are too few
    among the rows, and weigh more.
    """
    odds = _odds(rng, 6000)
    labels = rng.random(len(odds)) < expit(odds)
    is_kept = labels | (rng.random(len(odds)) < 0.25)
    weight = np.where(labels, 1.0, 4.0)
    return ReportTable(
        "x",
        "y",
        "1",
        labels[is_kept],
        {"model": expit(odds[is_kept])},
        weight=weight[is_kept],
        weight_type="importance",
        weight_name="w",
    )


def _few_events(rng):
    odds = _odds(rng, 1000, centre=-5.5)
    return _table(rng, odds, odds)


def _calibrated(rng):
    odds = _odds(rng, 20_000)
    return _table(rng, odds, odds)


def _drift(rng):
    odds = _odds(rng, 4000)
    day = np.sort(rng.integers(0, 240, len(odds)))
    return _table(
        rng,
        odds,
        odds + 1.2 * (day >= 150),
        time_name="month",
        periods=np.array(MONTHS)[day // 30],
        period_order=MONTHS,
        moments=day,
    )


def _clusters(rng):
    odds = _odds(rng)
    clinic = rng.integers(0, 100, len(odds))
    effect = rng.normal(0, 0.3, 100)[clinic]
    return _table(
        rng, odds, 0.6 * odds - 0.1 + effect, cluster_name="clinic", clusters=clinic
    )


def _three_models(rng):
    odds = _odds(rng)
    table = _table(rng, odds, odds)
    table.scores["too extreme"] = expit(1.8 * odds)
    table.scores["noisy"] = expit(odds + rng.normal(size=len(odds)))
    return table


KINDS = {
    "shift": Kind(
        "all scores are too high: do not use them as they are, shift the base rate",
        {"do not use", "check"},
        _USABLE,
        _shift,
    ),
    "slope": Kind(
        "right on average, but too extreme: recalibrate before use",
        {"do not take at face value", "check the error", "slope"},
        _USABLE,
        _slope,
    ),
    "one group": Kind(
        "events in West are more frequent than predicted: do not use its scores",
        {"do not use the segment", "check the segment"},
        _USABLE,
        _one_group,
    ),
    "impossible event": Kind(
        "calibrated but for one event of probability 0 in row 18: look at this row",
        {"although its predicted probability was 0"},
        {"do not use", "do not take at face value", "slope"},
        _impossible,
    ),
    "weights": Kind(
        "calibrated where weighted: keep the scores",
        {"usable", "right on average", "cannot tell"},
        _OFF,
        _weights,
    ),
    "few events": Kind(
        "calibrated, about ten events: say nothing final, collect more",
        {"few events"},
        _OFF | _USABLE,
        _few_events,
    ),
    "calibrated": Kind(
        "calibrated: use the scores",
        {"usable", "right on average"},
        _OFF,
        _calibrated,
    ),
    "drift": Kind(
        "right until May, too low from June on: look for the cause, then refit",
        {"changed", "trend"},
        _USABLE,
        _drift,
    ),
    "clusters": Kind(
        "too extreme, clinics differ: recalibrate before use",
        {"do not take at face value", "check the error", "slope"},
        _USABLE,
        _clusters,
    ),
    "three models": Kind(
        "the first is calibrated, the last is the worst: keep the first",
        {"worse than the first"},
        {"better than the first"},
        _three_models,
    ),
}


def first_screen(table):
    """Return the names of the claims on the first screen of a report, and its text: the
    notes above the summary, the comparisons, and the summary of the first model.
    """
    numbers = report_numbers(table, seed=0, step=lambda what: None)
    models = numbers["models"]
    compared = comparisons(models) if len(models) > 1 else []
    names = {claim.name for claim in compared} | set(models[0]["claims"])
    return names, "\n".join((*numbers["notes"], *compared, models[0]["summary"]))


def is_right(kind, names, text):
    """Return whether a screen says what has to be said, and does not mislead."""
    says_it = bool(names & kind.needed) or any(words in text for words in kind.needed)
    return says_it and not names & kind.misleading


def main(arguments=None):
    """Print the screens, and count the right ones."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--only", default="", help="kinds whose name contains this")
    given = parser.parse_args(arguments)
    n_right = n_screens = 0
    with quick(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for place, (name, kind) in enumerate(KINDS.items()):
            if given.only not in name:
                continue
            for seed in range(given.seeds):
                table = kind.table(np.random.default_rng([seed, place]))
                names, text = first_screen(table)
                right = is_right(kind, names, text)
                n_right += right
                n_screens += 1
                print(f"== {name}, seed {seed}: {'right' if right else 'WRONG'}")
                print(f"TRUE: {kind.truth}")
                print(text, end="\n\n", flush=True)
    print(f"{n_right} of {n_screens} screens are right.")


if __name__ == "__main__":
    main()
