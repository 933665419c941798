"""The truth table of the report's sentences: how often each is printed, and how often
it is false, in simulated worlds.

``python -m benchmarks.checks.sentence_truth`` simulates tables of 30 to 100,000 rows in
each world, judges every sentence of the summary and of the sections by its content (the
segment, the month, the side and the limits that it names) against the world, and writes
``benchmarks/checks/data/sentence_truth.csv``: sentence, world, number of rows, number
of tables, and in how many of these it was printed and true, printed and false, and
printed where the world leaves it open. The sentence "" is the verdict on the bias:
tables in which it cannot tell, against the chance that it tells, in percent.
"""

import argparse
import csv
import re
import warnings
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from unittest.mock import patch

import numpy as np
from scipy.special import expit, softmax, xlogy
from scipy.stats import norm

from benchmarks.checks.bounds import faults
from benchmarks.checks.report_advice import Table, by_advice
from skcalib import (
    PlattScaling,
    PriorShift,
    TemperatureScaling,
    UniformMassBinning,
)
from skcalib._report import _measures, _numbers
from skcalib._report import _sections as say
from skcalib._report._forecasts import ReportTable
from skcalib._report._judged import judge_groups
from skcalib._report._numbers import report_numbers
from skcalib._report._summary import summary
from skcalib.evaluation import _advice_search, _advise, _cross_validate

FILE = Path(__file__).parent / "data" / "sentence_truth.csv"
TOLERANCE = 0.02
MONTHS = [f"2025-{month:02d}" for month in range(1, 9)]
_N_MONTHS = len(MONTHS)
SEGMENTS = ("East", "South", "West")
SIZES = {300: 8, 3000: 4, 100: 8, 30: 8, 100_000: 1}  # tables of so many rows
_SMALL = 1e-3  # a bias that is none
_SURE, _EVEN = 0.95, 0.5  # power
# 2 n times the gain of a map, at which a test of it is nearly sure and at even odds.
_SURE_GAIN, _EVEN_GAIN = 40, 2.7


@dataclass(frozen=True)
class World:
    """Shifts of the log-odds of the event against the scores.

    `shift` for all, `slope` of the log-odds, `curve` the size of a wave that no slope
    and intercept describe, `west` in one segment of three, `east` in another, `late`
    from the fifth of eight months on, `drift` over all months, `shock` the size of what
    all samples of a day have in common. `centre` is the mean of the log-odds, `noise`
    what is added to those of a second model, and `repeats` how many rows share a key
    and a label's chance. With `lone` all rows are of one segment.
    """

    shift: float = 0.0
    slope: float = 1.0
    curve: float = 0.0
    west: float = 0.0
    east: float = 0.0
    late: float = 0.0
    drift: float = 0.0
    shock: float = 0.0
    centre: float = -0.3
    noise: tuple | None = None
    repeats: int = 1
    lone: bool = False
    thresholds: tuple = ()

    def table(self, n, seed):
        """Return simulated rows."""
        rng = np.random.default_rng([seed, n])
        odds, segment, day, truth = self._draw(rng, n)
        order = np.argsort(day, kind="stable")
        labels = rng.random(n) < truth
        scores = {"p": expit(odds)}
        if self.noise is not None:
            scores = {
                name: expit(odds + size * rng.normal(size=n))
                for name, size in zip(("p", "q"), self.noise, strict=True)
            }
        return ReportTable(
            "x",
            "y",
            "1",
            labels[order],
            {name: found[order] for name, found in scores.items()},
            segment_name="region",
            segments=segment[order],
            time_name="month",
            periods=np.array(MONTHS)[day[order] // 30],
            period_order=MONTHS,
            moments=day[order],
            repeated_keys=("candidate",) if self.repeats > 1 else (),
            n_of_key=-(-n // self.repeats),
        )

    def _draw(self, rng, n):
        n_keys = -(-n // self.repeats)
        odds = rng.normal(self.centre, 1.3, n_keys)
        odds = np.repeat(odds, self.repeats)[:n]
        segment = rng.choice(["West", "East", "South"], n)
        if self.lone:
            segment[:] = "South"
        day = rng.integers(0, 240, n)
        shocks = rng.normal(size=240)
        moved = (
            self.shift
            + self.west * (segment == "West")
            + self.east * (segment == "East")
            + self.late * (day >= 120)
            + self.drift * day / 240
            + self.shock * shocks[day]
        )
        moved += self.curve * np.sin(1.5 * odds)
        return odds, segment, day, expit(self.slope * odds + moved)

    @cached_property
    def population(self):
        """What is true, from half a million draws."""
        world = replace(self, shock=0.0, repeats=1)
        odds, segment, day, truth = world._draw(np.random.default_rng(0), 500_000)
        return Population(odds, segment, day // 30, truth)

    @property
    def names(self):
        """The segments that there are."""
        return ("South",) if self.lone else SEGMENTS

    def truths(self):
        """Return what is true of all rows as numbers by name."""
        truth = self.population
        return {
            "bias": abs(truth.bias()),
            "error": truth.error,
            "segments": [abs(truth.bias(name)) for name in self.names],
            "over_confidence": truth.over_confidence,
        }


@dataclass(frozen=True, eq=False)
class Population:
    """Scores as log-odds, segments, months from 0 on, and chances of the event."""

    odds: np.ndarray
    segment: np.ndarray
    month: np.ndarray
    truth: np.ndarray

    def at(self, segment=None, since=0, until=_N_MONTHS):
        """Return which rows belong to a segment and some months."""
        found = (self.month >= since) & (self.month < until)
        return found if segment is None else found & (self.segment == segment)

    def bias(self, segment=None, since=0, until=_N_MONTHS):
        """Return the mean score minus the frequency of the event."""
        return self.gap[self.at(segment, since, until)].mean()

    @cached_property
    def gap(self):
        """Score minus chance of the event."""
        return expit(self.odds) - self.truth

    @cached_property
    def frequency(self):
        """How often the event happens."""
        return self.truth.mean()

    @cached_property
    def error(self):
        """The mean absolute calibration error."""
        return _error(self.odds, self.truth)

    @cached_property
    def some(self):
        """The first fifth of the draws, for what takes long."""
        n = len(self.truth) // 5
        return Population(
            self.odds[:n], self.segment[:n], self.month[:n], self.truth[:n]
        )

    def loss_after(self, advice):
        """Return the log-loss of what is advised, fitted to all draws."""
        labels = np.random.default_rng(1).random(len(self.truth)) < self.truth
        rows = Table(labels, expit(self.odds), self.segment)
        scores = by_advice(rows, rows, advice)
        loss = xlogy(self.truth, scores) + xlogy(1 - self.truth, 1 - scores)
        return -loss.mean()

    def error_after(self, table, advice):
        """Return the mean absolute calibration error of what is advised, fitted to the
        rows of a table: on the rows that it is advised for.
        """
        rows = Table(table.labels, table.scores["p"], table.segments, table.periods)
        months = np.array(MONTHS)[self.month]
        new = Table(self.truth, expit(self.odds), self.segment, months)
        new = new.from_period(advice["since"])
        scores = by_advice(rows, new, advice)
        return _error(np.log(scores / (1 - scores)), new.labels)

    @cached_property
    def over_confidence(self):
        """By how much the likelier outcome happens less often than predicted."""
        return np.where(self.odds > 0, self.gap, -self.gap).mean()

    @cached_property
    def gain(self):
        """How much lower the log-loss of the chances is than that of the scores."""
        score = expit(self.odds)
        lost = xlogy(self.truth, self.truth / score)
        lost += xlogy(1 - self.truth, (1 - self.truth) / (1 - score))
        return lost.mean()

    def power(self, n, segment=None, n_intervals=1, month=None):
        """Return the chance that n samples tell about the bias: that it is not 0, or
        that it is fine.
        """
        z = norm.ppf(1 - 0.025 / n_intervals)
        rows = self.at(segment)
        if segment is not None:
            n = n / len(SEGMENTS)
        if month is not None:
            rows = self.at(None, month, month + 1)
            n = n / _N_MONTHS
        spread = np.mean((self.truth * (1 - self.truth))[rows]) + self.gap[rows].var()
        error = np.sqrt(spread / n)
        bias = self.gap[rows].mean()
        beyond = norm.sf((z * error - bias) / error)
        beyond += norm.cdf((-z * error - bias) / error)
        within = TOLERANCE - z * error
        if within <= 0:
            return beyond
        inside = min(within, z * error)
        fine = norm.cdf((inside - bias) / error) - norm.cdf((-inside - bias) / error)
        return min(beyond + fine, 1.0)

    def net_benefit(self, threshold, treated=None):
        """Return the net benefit of treating by the scores, or of some rows."""
        if treated is None:
            treated = expit(self.odds) >= threshold
        harm = threshold / (1 - threshold)
        return np.mean(treated * (self.truth - harm * (1 - self.truth)))


def _error(odds, truth):
    """Return the mean absolute calibration error of scores with these log-odds."""
    edges = odds.mean() + np.linspace(-4, 4, 60)
    gap = expit(odds) - truth
    cells = np.bincount(np.digitize(odds, edges), gap, minlength=61)
    return np.abs(cells).sum() / len(odds)


WORLDS = {
    "calibrated": World(),
    "at the tolerance": World(shift=-0.107),
    "too high": World(shift=-0.6),
    "too low": World(shift=0.5),
    # The shifts keep the mean score right: only the spread of the scores is wrong.
    "too extreme": World(slope=0.5, shift=-0.0975),
    "too cautious": World(slope=2.0, shift=0.1567),
    "wave": World(curve=1.2),
    "one segment": World(west=1.0),
    "two segments": World(west=1.0, east=-1.0),
    "late": World(late=0.9),
    "drift": World(drift=1.0),
    "days": World(shock=0.8),
    "rare": World(centre=-4.5),
    "lone segment": World(lone=True),
    "repeated keys": World(repeats=5),
    "worse rival": World(noise=(0.3, 1.0)),
    "better rival": World(noise=(1.0, 0.3)),
    "equal rival": World(noise=(0.5, 0.5)),
    "decisions": World(thresholds=(0.003, 0.4)),
    "wrong decisions": World(shift=-2.5, thresholds=(0.4, 0.6)),
}
# How many numbers a map has.
_NUMBERS_OF = {"PriorShift": 1, "TemperatureScaling": 1, "PlattScaling": 2}
# Worlds whose rows depend on each other, or whose scores have noise: only sentences
# about this are judged in them.
ONLY = {
    "days": {"dependent"},
    "repeated keys": {
        "repeated key",
        "cluster first",
        "guarantee",
        "error of unknown uncertainty",
    },
    "lone segment": {"one segment"},
    "worse rival": {
        "not told apart",
        "worse than the first",
        "better than the first",
    },
}
ONLY["better rival"] = ONLY["equal rival"] = ONLY["worse rival"]


class Judge:
    """What a world says about sentences that were printed for a table from it."""

    def __init__(self, name, world, table, model, n):
        self.name, self.world, self.table = name, world, table
        self.model, self.n = model, n
        self.truth = world.population

    def __call__(self, claim):
        """Return whether a sentence is true; None where the world leaves it open. One
        that breaks a bound is false in every world: see `bounds`.
        """
        if faults(claim.text):
            return False
        if claim.name not in ONLY.get(self.name, {claim.name}):
            return None
        rule = getattr(self, "_" + re.sub(r"\W", "_", claim.name), None)
        if rule is None:
            raise KeyError(f"no rule tells whether {claim.name!r} is true")
        found = rule(claim.words, str(claim))
        return None if found is None else bool(found)

    # What the sentences have in common.

    def _is_off(self, segment, words, least):
        """Return whether a segment (None: all rows) is off by more than `least` on the
        side that the words say, since the month that they say.
        """
        bias = self.truth.bias(segment, _since(words))
        side = 1 if "too high" in words else -1
        return side * bias > least

    def _all_are_off(self, words, least, separator):
        parts = [
            (name, part)
            for part in words.split(separator)
            for name in SEGMENTS
            if name in part
        ]
        return all(self._is_off(name, part, least) for name, part in parts)

    def _power(self, segment=None, n_intervals=1):
        return self.truth.power(self.n, segment, n_intervals)

    def _cannot_be_told(self, segments):
        """Return whether the samples cannot tell about segments."""
        powers = [self._power(name, len(SEGMENTS)) for name in segments]
        return _by_power(max(powers))

    def _unclear(self):
        return [
            row["segment"]
            for row in self.model["segments"]
            if row["verdict"]["kind"] == "cannot tell"
        ]

    def _has_no_gain(self):
        """Return whether samples cannot show that a map helps: None between."""
        if self.world.late or self.world.drift:
            return None
        evidence = 2 * self.n * self.truth.gain
        if evidence > _SURE_GAIN:
            return False
        return True if evidence < _EVEN_GAIN else None

    def _covers(self, words, value, slack=0.0):
        """Return whether the interval in brackets, in points, has a value."""
        limits = re.search(r"\((?:\d+ %: )?(-?[\d.,]+) to (-?[\d.,]+)\)", words)
        low, high = (_number(limit) / 100 for limit in limits.groups())
        # as printed: half a unit of the last digit
        slack += 0.005 if "." not in limits[1] else 0.0005
        return low - slack <= value <= high + slack

    # The headline.

    def _do_not_use_the_segment(self, words, text):
        return self._is_off(words["segment"], text, TOLERANCE)

    def _nor_these_segments(self, words, text):
        return self._all_are_off(words["segments"], TOLERANCE, "; ")

    def _check_the_segment(self, words, text):
        return self._is_off(words["segment"], text, _SMALL)

    def _check_more_segments(self, words, text):
        return self._all_are_off(words["segments"], _SMALL, "; ")

    def _others_are_fine(self, words, text):
        limit = _number(words["limit"]) / 100
        changed = {row["group"] for row in self.model["changes"]}
        fine = [
            row["segment"]
            for row in self.model["segments"]
            if row["verdict"]["kind"] == "fine" and row["segment"] not in changed
        ]
        return all(abs(self.truth.bias(name)) <= limit + 5e-4 for name in fine)

    def _others_cannot_be_told(self, words, text):
        return self._cannot_be_told(self._unclear())

    def _segments_cannot_be_told(self, words, text):
        return self._cannot_be_told(self._unclear())

    def _periods_cannot_be_told(self, words, text):
        powers = []
        for row in self.model["periods"]:
            if row["verdict"]["kind"] == "cannot tell":
                month = MONTHS.index(row["period"])
                powers.append(self.truth.power(self.n, None, _N_MONTHS, month))
        return _by_power(max(powers))

    def _do_not_use(self, words, text):
        return self._is_off(None, text, TOLERANCE)

    def _period_off(self, words, text):
        month = MONTHS.index(words["period"])
        bias = self.truth.bias(None, month, month + 1)
        side = 1 if "too high" in text else -1
        return side * bias > TOLERANCE

    def _impossible(self, words, text):
        n = len(self.table.proper_scores.impossible[self.model["name"]])
        return n > 0 and words["happened"].startswith(f"{n:,} outcome")

    def _few_events(self, words, text):
        labels = self.table.labels
        fewer = min(labels.sum(), len(labels) - labels.sum())
        return fewer < 20 and _number(words["number"]) == fewer

    def _check(self, words, text):
        return self._is_off(None, text, _SMALL)

    def _slope(self, words, text):
        """The logistic regression of the world's probabilities on the log-odds."""
        truth = self.truth.some
        rows = {
            "X": np.tile(expit(truth.odds), 2),
            "y": np.repeat([1, 0], len(truth.odds)),
            "sample_weight": np.concatenate((truth.truth, 1 - truth.truth)),
        }
        fitted = PlattScaling(smooth_targets=False).fit(**rows)
        low, high = fitted.predict_proba(expit(np.array([-1.0, 1.0])))[:, 1]
        slope = (np.log(high / (1 - high)) - np.log(low / (1 - low))) / 2
        is_over = "high scores are too high" in text
        return is_over == (slope < 1) and self._covers(words["slope"], slope / 100)

    def _do_not_take_at_face_value(self, words, text):
        right = self.truth.error > TOLERANCE
        if words["direction"]:
            right &= ("extreme" in text) == (self.truth.over_confidence > 0)
        return right

    def _check_the_error(self, words, text):
        low, high = _number(words["low"]) / 100, _number(words["high"]) / 100
        return low - 5e-4 <= self.truth.error <= high + 5e-4

    def _usable(self, words, text):
        bias, error = _number(words["limit"]), _number(words["error"])
        return (
            100 * abs(self.truth.bias()) <= bias + 0.05
            and 100 * self.truth.error <= error + 0.05
        )

    def _right_on_average(self, words, text):
        if 100 * abs(self.truth.bias()) > _number(words["limit"]) + 0.05:
            return False
        error = self.model["verdicts"]["error"]
        return error["low"] <= self.truth.error <= error["high"]

    def _late_labels(self, words, text):
        """It speaks of "such a change"."""
        return bool(self.world.late or self.world.drift)

    def _tolerance_too_large(self, words, text):
        rarer = min(self.truth.frequency, 1 - self.truth.frequency)
        is_right = 100 * abs(self.truth.bias()) <= _number(words["limit"]) + 0.05
        if words["ratio"]:
            ratio = self.truth.frequency / expit(self.truth.odds).mean()
            is_right &= self._covers(words["ratio"], ratio / 100)
        return is_right and rarer < 5 * TOLERANCE

    def _cannot_tell(self, words, text):
        between = re.search(r"([\d.]+) points? too low and ([\d.]+)", words["limits"])
        if between is None:  # the bias has no interval
            return True
        low, high = map(_number, between.groups())
        low = -low
        slack = 0.5 if "." not in between[1] else 0.05
        if not low - slack <= 100 * self.truth.bias() <= high + slack:
            return False
        return _by_power(self._power())

    def _repeated_key(self, words, text):
        if self.world.repeats == 1 or words["column"] != "candidate":
            return False
        return "values" not in words or _number(words["values"]) == self.table.n_of_key

    # The evidence.

    def _means(self, words, text):
        shown = _number(words["frequency"].removesuffix(" %")) / 100
        half = 0.5 * 10 ** -len(words["frequency"].partition(".")[2].rstrip(" %")) / 100
        if abs(shown - self.table.labels.mean()) > half + 1e-9:
            return False
        return not words["bias"] or self._is_off(None, words["bias"], 0.0)

    def _error(self, words, text):
        return self._covers(words["size"], self.truth.error, 0.002)

    def _error_of_unknown_uncertainty(self, words, text):
        """It is no interval, and it is said only where keys repeat."""
        estimate = 100 * self.model["verdicts"]["error"]["estimate"]
        is_right = abs(_number(words["size"]) - estimate) <= 0.5 + 1e-9
        return self._repeated_key({"column": words["column"]}, text) and is_right

    def _nothing_but_the_shift(self, words, text):
        world = self.world
        if world.slope == 1 and not (world.west or world.east or world.drift):
            return None if world.late else True
        return False if self.n >= 3000 else None

    def _below_the_bias(self, words, text):
        verdicts = self.model["verdicts"]
        return verdicts["error"]["estimate"] < abs(verdicts["bias"]["estimate"])

    def _too_extreme(self, words, text):
        size = self.truth.over_confidence
        return size > _SMALL and self._covers(text, size)

    def _too_cautious(self, words, text):
        size = -self.truth.over_confidence
        return size > _SMALL and self._covers(text, size)

    def _segments_off(self, words, text):
        return self._all_are_off(words["names"], _SMALL, "; ")

    def _average_hides(self, words, text):
        return np.ptp([self.truth.bias(name) for name in SEGMENTS]) > _SMALL

    def _changed(self, words, text):
        segment = next((name for name in SEGMENTS if name in words["whose"]), None)
        since = MONTHS.index(words["since"])
        after = self.truth.bias(segment, since)
        return abs(after - self.truth.bias(segment, 0, since)) > _SMALL

    def _trend(self, words, text):
        moved = self.truth.bias(None, 7) - self.truth.bias(None, 0, 1)
        return (moved if words["rises"] == "rises" else -moved) > _SMALL

    def _dependent(self, words, text):
        return self.world.shock != 0

    # The advice.

    def _too_few_to_recalibrate(self, words, text):
        n_events = self.table.labels.sum()
        return min(n_events, self.n - n_events) < _advice_search.N_FOLDS

    def _cluster_first(self, words, text):
        return self._repeated_key(words, text)

    def _leave(self, words, text):
        return self._has_no_gain()

    def _no_recalibrator(self, words, text):
        return self._has_no_gain()

    def _nothing_to_gain(self, words, text):
        return self._has_no_gain()

    def _shift(self, words, text):
        return abs(self.truth.bias(None, _since(text))) > _SMALL

    def _recalibrate(self, words, text):
        return self.truth.gain > 1e-6

    def _recalibrate_segments(self, words, text):
        if self.world.slope != 1 or self.world.curve:
            return True
        since = _since(text)
        named = [name for name in SEGMENTS if name in words["segments"]]
        return all(abs(self.truth.bias(name, since)) > _SMALL for name in named)

    def _recalibrate_by_segment(self, words, text):
        return bool(self.world.west or self.world.east)

    def _gain(self, words, text):
        return self.truth.gain > 1e-6

    def _error_left(self, words, text):
        return self._covers(words["size"], self._left) and self._left > TOLERANCE

    def _error_left_unclear(self, words, text):
        return self._covers(words["size"], self._left)

    def _error_left_fine(self, words, text):
        return 100 * self._left <= _number(words["limit"]) + 0.05

    @cached_property
    def _left(self):
        return self.truth.some.error_after(self.table, self.model["advice"])

    def _samples_needed(self, words, text):
        """A fit of k numbers to N samples costs k / (2 N) of log-loss: it keeps nine
        tenths of a gain G with 5 k / G samples. "About" is a factor of two.
        """
        advice = self.model["advice"]
        is_known = advice["simpler"] in ("as it is", *_NUMBERS_OF)
        if advice["since"] or not is_known:
            return None
        some = self.truth.some
        gain = some.loss_after(_simpler(advice)) - some.loss_after(advice)
        if gain <= 0:
            return False
        name = advice["recalibrator"].removeprefix("GroupwiseRecalibrator(")
        n_maps = max(len(advice["segments"]), 1)
        n_maps += advice["others"] == "shared" and n_maps < len(SEGMENTS)
        n_numbers = n_maps * _NUMBERS_OF[name.removesuffix("())")]
        limits = [_number(limit) for limit in words["number"].split(" to ")]
        needed = max(5 * n_numbers / gain, _advice_search.N_FOLDS)
        return limits[0] / 2 <= needed <= 2 * limits[-1] or limits[-1] <= 50 * n_maps

    # The sections.

    def _not_told_apart(self, words, text):
        if self.world.noise[0] == self.world.noise[1]:
            return True
        return False if self.n >= 3000 else None

    def _worse_than_the_first(self, words, text):
        return self.world.noise[1] > self.world.noise[0]

    def _better_than_the_first(self, words, text):
        return self.world.noise[1] < self.world.noise[0]

    def _one_segment(self, words, text):
        return len(np.unique(self.table.segments)) == 1

    def _segments(self, words, text):
        rows = self.model["segments"]
        biases = [self.truth.bias(row["segment"]) for row in rows]
        return self._are_right(rows, biases)

    def _periods(self, words, text):
        rows = self.model["periods"]
        biases = []
        for row in rows:
            month = MONTHS.index(row["period"])
            biases.append(self.truth.bias(None, month, month + 1))
        return self._are_right(rows, biases)

    def _are_right(self, rows, biases):
        """Return whether no verdict on a group contradicts its true bias."""
        for row, bias in zip(rows, biases, strict=True):
            found = row["verdict"]
            is_zero = abs(bias) < _SMALL
            is_wrong_side = not is_zero and bias * found["estimate"] < 0
            if found["kind"].startswith("off") and (is_zero or is_wrong_side):
                return False
            if found["kind"] == "fine" and abs(bias) > TOLERANCE * 1.0001:
                return False
        return True

    def _benefits(self, words):
        """Return what following the scores brings more than treating all, and none."""
        threshold = _number(words["threshold"]) / 100
        by_scores = self.truth.net_benefit(threshold)
        to_all = self.truth.net_benefit(threshold, np.ones(len(self.truth.odds)))
        best = self.truth.net_benefit(threshold, self.truth.truth >= threshold)
        is_right = True
        if "miscalibration costs" in words["cost"]:
            is_right = best - by_scores > 1e-5
        elif words["cost"] and self.n >= 3000:
            is_right = best - by_scores < 0.01
        return by_scores - to_all, by_scores, is_right

    def _better_than_both(self, words, text):
        against_all, against_none, is_right = self._benefits(words)
        return min(against_all, against_none) > 1e-6 and is_right

    def _worse_than_one(self, words, text):
        against_all, against_none, is_right = self._benefits(words)
        found = against_all if "all" in words["other"] else against_none
        return found < -1e-6 and is_right

    def _not_better_than_one(self, words, text):
        against_all, against_none, is_right = self._benefits(words)
        if not is_right:
            return False
        found = against_all if "all" in words["other"] else against_none
        # At a few thousand rows a difference of a point is seen.
        return False if self.n >= 3000 and abs(found) > 0.01 else True

    def _no_alarm(self, words, text):
        if self.n >= 3000 and self.truth.error > 2 * TOLERANCE:
            return False
        return True if self.n < 3000 or self.truth.error < _SMALL else None

    def _alarm(self, words, text):
        names = [
            row["group"]
            for row in self.model["monitors"]
            if row["alarm"] and row["group"] in SEGMENTS
        ]
        if "all rows" in text and self.truth.error < 2e-3:
            return False
        if self.world.slope != 1:
            return True
        return all(
            max(abs(self.truth.bias(name, k, k + 1)) for k in range(8)) > 5e-3
            for name in names
        )

    def _guarantee(self, words, text):
        """Fit that recalibrator to the rows and compare each probability that it gives
        with the frequency of the event in its bin. Rows that repeat have no guarantee.
        """
        if self.world.repeats > 1:
            return False
        bins = UniformMassBinning(int(words["n_bins"]), randomize=True, random_state=0)
        labels = self.table.labels.astype(int)
        if labels.min() == labels.max():
            return None
        bins.fit(self.table.scores["p"], labels)
        some = self.truth.some
        scores = bins.predict_proba(expit(some.odds))[:, 1]
        values, code = np.unique(scores, return_inverse=True)
        frequency = np.bincount(code, some.truth) / np.bincount(code)
        # as printed: half a unit of the last digit
        within = _number(words["epsilon"]) / 100 + 5e-4
        return np.abs(values - frequency).max() <= within


def _simpler(advice):
    """Return the advice of the next simpler step, a map for all rows or none."""
    name = advice["simpler"]
    kind = "none" if name == "as it is" else "map"
    simpler = {"kind": kind, "recalibrator": name, "since": None}
    return {**simpler, "segments": [], "others": None}


def _since(text):
    """Return the place of the month from which on a sentence speaks, else 0."""
    since = re.search(r"from (2025-\d\d) on", text, re.IGNORECASE)
    return MONTHS.index(since[1]) if since else 0


def _by_power(power):
    if power > _SURE:
        return False
    return True if power < _EVEN else None


def _number(text):
    return float(text.replace(",", ""))


class ClassWorld:
    """Three classes whose logits are too large by a factor, and one of which is rarer
    than predicted.
    """

    thresholds = ()

    def __init__(self, factor=1.0, owl=0.0):
        self.factor, self.owl = factor, owl

    def table(self, n, seed):
        """Return simulated rows."""
        rng = np.random.default_rng([seed, n, 3])
        logits = rng.normal(0, 1.3, (n, 3))
        truth = softmax(logits / self.factor + [0, 0, self.owl], axis=1)
        codes = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
        names = ("cat", "dog", "owl")
        scores = softmax(logits, axis=1)
        columns = {"p": [f"p_{name}" for name in names]}
        return ReportTable(
            "x", "y", "1", codes, {"p": scores}, classes=names, columns=columns
        )


CLASS_WORLDS = {
    "calibrated classes": ClassWorld(),
    "extreme classes": ClassWorld(factor=2.0),
    "rarer class": ClassWorld(owl=-1.0),
}


class ClassJudge:
    """As `Judge`, of classes: only the sentences that are about classes."""

    def __init__(self, name, world, table, model, n):
        self.name, self.world, self.n = name, world, n

    def __call__(self, claim):
        """Return whether a sentence is true; None where it is not about classes."""
        if faults(claim.text):
            return False
        is_calibrated = self.name == "calibrated classes"
        if claim.name in ("shift classes", "recalibrate", "gain", "classes off"):
            return not is_calibrated
        if claim.name in ("no class off", "leave", "no recalibrator"):
            if is_calibrated:
                return True
            return False if self.n >= 3000 else None
        if claim.name in ("do not use", "do not take at face value"):
            return not is_calibrated
        if claim.name == "other classes":
            # Those of other worlds are all off.
            return not is_calibrated or claim.words["off"].startswith("none")
        return None


def sentences(table, world):
    """Yield the numbers of each model of a table and the sentences about it."""
    numbers = report_numbers(
        table, seed=0, step=lambda what: None, thresholds=world.thresholds
    )
    about = {"n_samples": numbers["total_weight"], "tolerance": TOLERANCE}
    models = numbers["models"]
    for model in models:
        found = [each for part in summary(model, about) for each in part]
        if model["segments"]:
            found.append(say.segment_sentence(model["segments"]))
        below = say.error_sentence(model)
        if below is not None:
            found.append(below)
        if len(model["periods"]) > 1:
            found.append(say.period_sentence(model["periods"]))
        if model["monitors"]:
            found.append(say.monitor_sentence(model["monitors"]))
        if model["recalibrators"] and model["advice"]["kind"] == "none":
            found.append(say.nothing_to_gain(model["recalibrators"]))
        found += [say.decision_sentence(row) for row in model.get("decisions", ())]
        if len(model.get("classes", ())) > 2:
            found.append(say.rest_sentence(model["classes"][1:]))
        guarantee = say.certificate_sentence(numbers["certificates"], False)
        if guarantee is not None:
            found.append(guarantee)
        if model is models[-1]:
            found += say.comparisons(models)
        yield model, found


@contextmanager
def quick():
    """Leave out what no sentence rests on, and take fewer draws, fewer divisions into
    folds and fewer recalibrators: sentences rest on them in the same way.
    """
    with ExitStack() as changed:

        def change(module, name, value):
            changed.enter_context(patch.object(module, name, value))

        change(_measures, "N_RESAMPLES", 99)
        change(_measures, "N_DRAWS", 99)
        change(_numbers, "_paper", lambda *_: None)
        change(_numbers, "period_rows", _verdicts_of_periods)
        change(_advice_search, "_MOST_DIVISIONS", 1)
        kinds = (PriorShift, TemperatureScaling, PlattScaling)
        change(_cross_validate, "_OF_TWO_CLASSES", kinds)
        change(_advise, "why_not_the_default", lambda *_: "")
        yield


def _verdicts_of_periods(table, name, baseline, seed, tolerance):
    """Return the rows of the periods with their verdicts alone."""
    if table.periods is None:
        return []
    present = set(table.periods.tolist())
    rows = [{"period": name} for name in table.period_order if name in present]
    judge_groups(rows, "period", table.event_rows(name), table.periods, tolerance)
    return rows


def simulated(name, n, n_tables):
    """Return the rows of the file for one world and one number of rows."""
    world = {**WORLDS, **CLASS_WORLDS}[name]
    judge = ClassJudge if name in CLASS_WORLDS else Judge
    counts, n_unclear = Counter(), 0
    place = [*WORLDS, *CLASS_WORLDS].index(name)
    with quick(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for seed in range(n_tables):
            table = world.table(n, 1000 * place + seed)
            found = {}
            for model, printed in sentences(table, world):
                n_unclear += model["verdicts"]["bias"]["kind"] == "cannot tell"
                told = judge(name, world, table, model, n)
                for each in printed:
                    # One sentence that is printed twice is false if one of them is.
                    is_true = told(each)
                    known = found.setdefault(each.name, is_true)
                    found[each.name] = False if is_true is False else known
            counts.update(found.items())
    names = dict.fromkeys(name for name, _ in counts)
    rows = [
        (each, name, n, n_tables, *(counts[each, kind] for kind in (True, False, None)))
        for each in sorted(names)
    ]
    if name not in ONLY and name not in CLASS_WORLDS:
        power = round(100 * world.population.power(n))
        rows.append(("", name, n, n_tables, n_unclear, power, 0))
    return rows


def read(path=FILE):
    """Return the rows of the file, with numbers."""
    with path.open(newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    return [(*row[:2], *map(int, row[2:])) for row in rows]


def main(arguments=None):
    """Write the file: worlds and numbers of rows that it lacks."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", default="", help="worlds whose name contains this")
    parser.add_argument("--rows", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--again", action="store_true", help="also what the file has")
    parser.add_argument("--output", type=Path, default=FILE)
    given = parser.parse_args(arguments)
    rows = read(given.output) if given.output.exists() else []
    for n in given.rows:
        for name in (*WORLDS, *CLASS_WORLDS):
            is_known = any(row[1:3] == (name, n) for row in rows)
            if given.only not in name or (is_known and not given.again):
                continue
            rows = [row for row in rows if row[1:3] != (name, n)]
            rows += simulated(name, n, SIZES[n])
            rows.sort(key=lambda row: (row[2], row[1], row[0]))
            with given.output.open("w", newline="", encoding="utf-8") as file:
                out = csv.writer(file, lineterminator="\n")
                out.writerow("sentence world rows tables true false open".split())
                out.writerows(rows)
            print(name, n, flush=True)


if __name__ == "__main__":
    main()
