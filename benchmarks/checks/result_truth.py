"""The truth table of printed results, certificates and titles of displays: how often
each sentence is printed, and how often it is false, in simulated worlds.

``python -m benchmarks.checks.result_truth`` simulates tables in the worlds of
`benchmarks.checks.sentence_truth`, reads what `str` of each result and the title of
each display says, compares its numbers and its claim with the world, and writes
``benchmarks/checks/data/result_truth.csv``: sentence, world, number of rows, number of
tables, and in how many of these it was printed and true, printed and false, and printed
where the world leaves it open.
"""

import argparse
import csv
import re
import warnings
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import expit, xlogy

from benchmarks.checks.bounds import faults
from benchmarks.checks.sentence_truth import MONTHS, SEGMENTS, WORLDS
from skcalib import PlattScaling, UniformMassBinning
from skcalib.decisions import certified_threshold, net_benefit
from skcalib.evaluation import (
    calibration_by_cluster,
    calibration_summary,
    compare,
    validation_sample_size,
)
from skcalib.metrics import (
    brier_decomposition,
    calibration_by_group,
    calibration_error_interval,
    calibration_slope_intercept,
    calibration_test,
    segment_calibration_test,
)
from skcalib.monitoring import (
    CalibrationMonitor,
    calibration_change,
    calibration_trend,
    estimated_performance,
)

FILE = Path(__file__).parent / "data" / "result_truth.csv"
SIZES = {300: 12, 3000: 8, 100: 12, 30: 12, 100_000: 1}  # tables of so many rows
LARGE_FIGURES = 3000  # rows up to which displays are drawn
N_FIGURES = 3  # tables of a size whose displays are drawn
_NUMBER = r"-?[\d,]*\.?\d+"
_SURE_GAIN, _EVEN_GAIN = 40, 2.7  # see `benchmarks.checks.sentence_truth`
_N_CLUSTERS, _BETWEEN = 24, 0.3
_TARGET, _THRESHOLD = 0.25, 0.4
_SMALL = 1e-3


class Sample:
    """A table of a world, what is true of it, and what was said with whether it is
    true.
    """

    def __init__(self, name, n, seed):
        self.seed = seed
        self.world = WORLDS[name]
        self.table = self.world.table(n, 1000 * [*WORLDS].index(name) + 500 + seed)
        self.labels = self.table.labels.astype(int)
        self.scores = self.table.scores["p"]
        self.truth = self.world.population.some
        self.n = n
        self.rng = np.random.default_rng([seed, n, len(name)])
        self.found = {}

    @property
    def is_calibrated(self):
        """Whether nothing is off in this world."""
        return self.truth.error < _SMALL

    @property
    def has_no_miscalibration(self):
        """Whether samples cannot show any: None between."""
        if self.is_calibrated:
            return True
        evidence = 2 * self.n * self.truth.gain
        if evidence > _SURE_GAIN:
            return False
        return True if evidence < _EVEN_GAIN else None

    def say(self, sentence, is_true, text):
        """Note that a sentence is printed, and whether it is true. One in a text that
        breaks a bound is false: see `bounds`.
        """
        is_true = None if is_true is None else bool(is_true)
        if faults(text):
            is_true = False
        known = self.found.get(sentence, is_true)
        self.found[sentence] = False if is_true is False else known


def limits(text):
    """Return the two numbers of the first interval in brackets, and half a unit of
    their last digit.
    """
    pattern = rf"\((?:\d+ %(?: CI| interval)?: )?({_NUMBER}) to ({_NUMBER})\)"
    shown = re.search(pattern, text)
    low, high = (float(limit.replace(",", "")) for limit in shown.groups())
    unit = 10.0 ** -len(shown[1].partition(".")[2])
    return low, high, unit / 2


def covers(text, value, scale=1.0):
    """Return whether the first interval of a text has a value, as it is printed."""
    low, high, half = limits(text)
    return low - half <= scale * value <= high + half


@cache
def _logistic(name):
    """Return the intercept and the slope of the labels on the log-odds in a world."""
    truth = WORLDS[name].population.some
    labels = np.random.default_rng(2).random(len(truth.truth)) < truth.truth
    fitted = PlattScaling(smooth_targets=False).fit(expit(truth.odds), labels)
    odds = np.array([-1.0, 1.0])
    calibrated = fitted.predict_proba(expit(odds))[:, 1]
    at_minus_1, at_1 = np.log(calibrated / (1 - calibrated))
    return (at_minus_1 + at_1) / 2, (at_1 - at_minus_1) / 2


# --- Results --------------------------------------------------------------------------


def say_test(sample, name):
    """A p-value and what it means."""
    text = str(calibration_test(sample.labels, sample.scores, method="kuiper"))
    if "not calibrated" in text:
        sample.say(
            "CalibrationTestResult: not calibrated", not sample.is_calibrated, text
        )
    else:
        is_true = sample.has_no_miscalibration
        sample.say("CalibrationTestResult: not detectable", is_true, text)


def say_trend(sample, name):
    """The slope of the bias by month."""
    month = np.searchsorted(MONTHS, sample.table.periods)
    text = str(calibration_trend(sample.labels, sample.scores, month))
    truth = sample.truth
    slope = np.cov(truth.month, truth.gap)[0, 1] / truth.month.var()
    sample.say("CalibrationTrend", covers(text, slope, 100), text)
    if "p < 0.001" in text:
        sample.say("CalibrationTrend: p < 0.001", abs(slope) > 1e-4, text)


def say_decomposition(sample, name):
    """The parts add up, to the digits that are printed."""
    text = str(brier_decomposition(sample.labels, sample.scores))
    score, lost, gained, base = map(float, re.findall(r"\d+\.\d+|\d+(?= )", text)[:4])
    sample.say("ScoreDecomposition", abs(lost - gained + base - score) < 2e-3, text)


def say_segments(sample, name):
    """The clearest of the segments that a search finds."""
    columns = np.column_stack(
        (
            np.searchsorted(SEGMENTS, sample.table.segments),
            sample.rng.normal(size=sample.n),
        )
    )
    found = segment_calibration_test(
        sample.labels, sample.scores, columns, n_resamples=199, random_state=0
    )
    text = str(found)
    if text.startswith("No miscalibration"):
        sample.say("SegmentTestResult: none", sample.has_no_miscalibration, text)
        return
    is_true = not sample.is_calibrated
    if name == "one segment" and sample.n >= 3000:
        is_true = "x0" in text
    sample.say("SegmentTestResult: not calibrated", is_true, text)


def say_comparison(sample, name):
    """Which of two models is better, and by how much."""
    if sample.world.noise is None:
        return
    text = str(
        compare(
            sample.labels,
            sample.table.scores,
            metrics=("log_loss", "brier_score"),
            n_resamples=199,
            random_state=0,
        )
    )
    small, large = sample.world.noise
    losses = _losses(sample.world)
    for line in text.split("\n"):
        metric = "log_loss" if "log_loss" in line else "brier_score"
        difference = losses["q"][metric] - losses["p"][metric]
        if "does not differ detectably" in line:
            is_true = True if small == large else None
            if small != large and sample.n >= 3000:
                is_true = False
            sample.say("ModelComparison: not seen to differ", is_true, text)
            sample.say("ModelComparison: size", covers(line, difference), text)
        elif "has a lower" in line or "is lower" in line:
            sample.say("ModelComparison: lower", difference < -1e-4, text)
            sample.say("ModelComparison: size", covers(line, -difference), text)
        elif "has a higher" in line or "is higher" in line:
            sample.say("ModelComparison: higher", difference > 1e-4, text)
            sample.say("ModelComparison: size", covers(line, difference), text)


@cache
def _losses(world):
    """Return the expected losses of both models of a world."""
    truth = world.population.some
    rng = np.random.default_rng(3)
    losses = {}
    for name, size in zip("pq", world.noise, strict=True):
        scores = expit(truth.odds + size * rng.normal(size=len(truth.odds)))
        of_events = xlogy(truth.truth, scores)
        log_loss = -np.mean(of_events + xlogy(1 - truth.truth, 1 - scores))
        brier = np.mean((scores - truth.truth) ** 2 + truth.truth * (1 - truth.truth))
        losses[name] = {"log_loss": log_loss, "brier_score": brier}
    return losses


def say_summary(sample, name):
    """The paragraph for a paper: its intervals against the world's numbers."""
    text = str(calibration_summary(sample.labels, sample.scores, n_resamples=9))
    truth = sample.truth
    score = expit(truth.odds)
    brier = np.mean((score - truth.truth) ** 2 + truth.truth * (1 - truth.truth))
    _, slope = _logistic(name)
    expected = {
        "observed to expected events was": truth.truth.mean() / score.mean(),
        "calibration slope": slope,
        "The Brier score was": brier,
    }
    for words, value in expected.items():
        after = text.partition(words)[2]
        if re.match(rf" {_NUMBER} \(", after):
            sample.say(f"CalibrationSummary: {words}", covers(after, value), text)


def say_slope(sample, name):
    """The slope with its interval, and what the intervals exclude."""
    found = calibration_slope_intercept(sample.labels, sample.scores)
    text = str(found)
    _, slope = _logistic(name)
    if found.slope.reason:
        return
    sample.say("CalibrationSlopeIntercept", covers(text, slope), text)
    if "extreme" in text:
        is_true = (slope < 1) == ("too extreme" in text) and abs(slope - 1) > _SMALL
        sample.say("CalibrationSlopeIntercept: off", is_true, text)


def say_groups(sample, name):
    """How many segments are off, and the worst of them."""
    found = calibration_by_group(
        sample.labels,
        sample.scores,
        sample.table.segments,
        n_resamples=19,
        random_state=0,
    )
    text = str(found)
    first = text.split("\n")[0]
    if first.startswith("None of"):
        # It is about the mean of each segment.
        largest = max(map(abs, map(sample.world.population.bias, SEGMENTS)))
        is_true = True if largest < _SMALL else None
        if sample.n * largest**2 > _SURE_GAIN:
            is_true = False
        sample.say("GroupCalibration: none", is_true, text)
        return
    sample.say("GroupCalibration: off", not sample.is_calibrated, text)
    worst = re.search(r"worst: (\w+), ", first)
    if worst:
        bias = sample.world.population.bias(worst[1])
        side = 1 if "too high" in first else -1
        sample.say("GroupCalibration: worst", side * bias > 0, text)


def say_change(sample, name):
    """Whether the calibration has changed from the fifth month on."""
    is_late = np.searchsorted(MONTHS, sample.table.periods) >= 4
    if min(is_late.sum(), (~is_late).sum()) < 30:
        return
    rows = []
    for half in (~is_late, is_late):
        rows += [sample.labels[half], sample.scores[half]]
    text = str(calibration_change(*rows, n_resamples=199, random_state=0))
    has_changed = bool(sample.world.late or sample.world.drift)
    if text.startswith("The calibration has changed"):
        sample.say("CalibrationChange: changed", has_changed, text)
    else:
        sample.say("CalibrationChange: not detectable", not has_changed or None, text)
    if not has_changed and "90 %: " in text:
        sample.say("CalibrationChange: shift", covers(text, 0.0), text)


def say_interval(sample, name):
    """The root mean square calibration error with its interval."""
    found = calibration_error_interval(
        sample.labels, sample.scores, n_resamples=99, random_state=0
    )
    text = str(found)
    if "Miscalibrated" in text:
        sample.say("IntervalEstimate: off", not sample.is_calibrated, text)
    else:
        sample.say("IntervalEstimate: none", sample.has_no_miscalibration, text)


def say_sample_size(sample, name):
    """With so many samples the interval of the slope is about as wide as it says, where
    scores are calibrated.
    """
    text = str(validation_sample_size(sample.scores))
    needed = re.search(r"- the calibration slope: ([\d,]+)", text)
    if needed is None or sample.n > LARGE_FIGURES or not sample.is_calibrated:
        return
    n = int(needed[1].replace(",", ""))
    other = type(sample)(name, min(n, 20_000), 77)
    other_text = str(calibration_summary(other.labels, other.scores, n_resamples=9))
    low, high, half = limits(other_text.partition("calibration slope")[2])
    width = 0.2 * np.sqrt(n / other.n)
    sample.say("ValidationSampleSize", high - low - 2 * half <= 1.5 * width, text)


def say_clusters(sample, name):
    """What is pooled over clusters that differ, and what to expect in a new one."""
    if not sample.is_calibrated or sample.n < 300:
        return
    cluster = np.arange(sample.n) % _N_CLUSTERS
    effect = _BETWEEN * sample.rng.normal(size=_N_CLUSTERS + 1)
    odds = np.log(sample.scores / (1 - sample.scores))
    labels = sample.rng.random(sample.n) < expit(odds + effect[cluster])
    text = str(calibration_by_cluster(labels.astype(int), sample.scores, cluster))
    line = re.search(r"- Calibration in the large: (.*)", text)[1]
    if "not pooled" in line:
        return
    sample.say("CalibrationByCluster: on average", covers(line, 0.0), text)
    new = re.search(rf"for a new cluster: ({_NUMBER}) to ({_NUMBER})", line)
    low, high = map(float, new.groups())
    is_inside = low <= effect[-1] <= high
    sample.say("CalibrationByCluster: in a new cluster", is_inside, text)


def say_estimated(sample, name):
    """Performance on new scores whose labels are not known."""
    if sample.n < 100:
        return
    truth = sample.truth
    odds = truth.odds[: sample.n] + 0.5
    text = str(
        estimated_performance(
            sample.labels, sample.scores, expit(odds), metrics=("brier_score",)
        )
    )
    line = re.search(r"Brier score (.*)", text)[1]
    if "no interval" in line:
        return
    chance = odds * sample.world.slope + sample.world.shift
    chance = expit(chance + sample.world.curve * np.sin(1.5 * odds))
    brier = np.mean((expit(odds) - chance) ** 2 + chance * (1 - chance))
    sample.say("EstimatedPerformance", covers(line, brier), text)


def say_benefit(sample, name):
    """Whether scores are better than treating everybody, or nobody, at a threshold."""
    truth = sample.truth
    everybody = truth.net_benefit(_THRESHOLD, np.ones(len(truth.odds)))
    for reference, who, benefit in (
        ("all", "everybody", everybody),
        ("none", "nobody", 0.0),
    ):
        text = str(
            net_benefit(
                sample.labels,
                sample.scores,
                thresholds=[_THRESHOLD],
                reference=reference,
            )
        )
        difference = truth.net_benefit(_THRESHOLD) - benefit
        if f"Better than treating {who} at 0.4" in text:
            sample.say(f"NetBenefit: better than {reference}", difference > 1e-6, text)
        if "worse at 0.4" in text:
            sample.say(f"NetBenefit: worse than {reference}", difference < -1e-6, text)


# --- Guarantees -----------------------------------------------------------------------


def say_threshold(sample, name):
    """At most a quarter of the answers at or above the threshold are wrong."""
    found = certified_threshold(
        sample.labels, sample.scores, promise="error_when_answered", target=_TARGET
    )
    truth = sample.truth
    score = expit(truth.odds)
    confidence = np.maximum(score, 1 - score)
    wrong = np.where(score >= 0.5, 1 - truth.truth, truth.truth)
    text = str(found)
    if "No threshold was found" in text:
        # With these scores no threshold would do, or the samples are few.
        best = min(wrong[confidence >= at].mean() for at in (0.5, 0.7, 0.9))
        is_true = best > _TARGET or sample.n <= 300 or None
        sample.say("CertifiedThreshold: not found", is_true, text)
        return
    answered = confidence >= found.threshold
    is_true = not answered.any() or wrong[answered].mean() <= _TARGET
    sample.say("CertifiedThreshold", is_true, text)


def say_certificate(sample, name):
    """Every recalibrated probability is near the event frequency of its bin."""
    if sample.n < 100:
        return
    bins = UniformMassBinning(5, randomize=True, random_state=0)
    bins.fit(sample.scores, sample.labels)
    text = str(bins.certificate())
    within = float(re.search(r"differs by at most ([\d.]+)", text)[1])
    truth = sample.truth
    scores = bins.predict_proba(expit(truth.odds))[:, 1]
    values, code = np.unique(scores, return_inverse=True)
    frequency = np.bincount(code, truth.truth) / np.bincount(code)
    is_true = np.abs(values - frequency).max() <= within + 1e-3
    sample.say("CalibrationCertificate", is_true, text)


# --- Titles ---------------------------------------------------------------------------


def say_titles(sample, name):
    """The finding in the title of a display."""
    if sample.n > LARGE_FIGURES or sample.seed >= N_FIGURES:
        return
    from matplotlib.figure import Figure

    from skcalib.displays import (
        ChangeDisplay,
        CumulativeDifferenceDisplay,
        GroupDisplay,
        ReliabilityDisplay,
    )

    def title(display, *rows, **options):
        axes = Figure(figsize=(6, 5)).subplots()
        drawn = display.from_predictions(*rows, ax=axes, **options)
        return axes.get_title(loc="left"), drawn

    text, _ = title(ReliabilityDisplay, sample.labels, sample.scores)
    if " to " in text:
        covered = covers(text, _root_mean_square(sample.truth), 100)
        sample.say("ReliabilityDisplay: error", covered, text)
    text, _ = title(CumulativeDifferenceDisplay, sample.labels, sample.scores)
    pvalue = re.search(r"p [<=≤] (0\.\d+)", text)
    if pvalue and float(pvalue[1]) < 0.05:
        is_true = not sample.is_calibrated
        sample.say("CumulativeDifferenceDisplay: p < 0.05", is_true, text)
    is_late = np.searchsorted(MONTHS, sample.table.periods) >= 4
    if min(is_late.sum(), (~is_late).sum()) < 30:
        return
    before, after = ~is_late, is_late
    rows = (sample.labels[before], sample.scores[before])
    rows += (sample.labels[after], sample.scores[after])
    text, _ = title(ChangeDisplay, *rows)
    has_changed = bool(sample.world.late or sample.world.drift)
    pvalue = re.search(r"p [<=≤] (0\.\d+)", text)
    if pvalue and float(pvalue[1]) < 0.05:
        sample.say("ChangeDisplay: p < 0.05", has_changed, text)
    if not has_changed and " to " in text:
        signless = text.replace("+", "")
        sample.say("ChangeDisplay: shift", covers(signless, 0.0), text)
    _, drawn = title(
        GroupDisplay, sample.labels, sample.scores, groups=sample.table.segments
    )
    (table,) = drawn.tables.values()
    if (table.adjusted_pvalue < 0.05).any():
        sample.say("GroupDisplay: adjusted p < 0.05", not sample.is_calibrated, text)


def _root_mean_square(truth):
    """Return the root mean square calibration error, that of the title."""
    cell = np.digitize(truth.odds, truth.odds.mean() + np.linspace(-4, 4, 60))
    rows = np.maximum(np.bincount(cell, minlength=61), 1)
    gaps = np.bincount(cell, truth.gap, minlength=61) / rows
    return np.sqrt(np.sum(rows * gaps**2) / len(cell))


def say_monitor(sample, name):
    """An alarm of a monitor that has read all samples, which its display marks."""
    monitor = CalibrationMonitor()
    monitor.partial_fit(sample.scores, sample.labels)
    text = str(monitor)
    if monitor.alarm_:
        sample.say("MonitorDisplay: alarm", not sample.is_calibrated, text)
    else:
        sample.say("MonitorDisplay: no alarm", sample.has_no_miscalibration, text)


SAYERS = (
    say_slope,
    say_groups,
    say_change,
    say_interval,
    say_test,
    say_trend,
    say_decomposition,
    say_segments,
    say_comparison,
    say_summary,
    say_sample_size,
    say_clusters,
    say_estimated,
    say_benefit,
    say_threshold,
    say_certificate,
    say_titles,
    say_monitor,
)
NAMES = (
    "calibrated",
    "too high",
    "too extreme",
    "one segment",
    "late",
    "drift",
    "wrong decisions",
    "worse rival",
    "better rival",
    "equal rival",
)


def simulated(name, n, n_tables):
    """Return the rows of the file for one world and one number of rows."""
    counts = Counter()
    sayers = SAYERS
    if WORLDS[name].noise is not None:
        sayers = (say_comparison,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(n_tables):
            sample = Sample(name, n, seed)
            for say in sayers:
                try:
                    say(sample, name)
                except ValueError:
                    # too few rows or one class: nothing is printed
                    continue
            counts.update(sample.found.items())
    sentences = sorted({sentence for sentence, _ in counts})
    rows = []
    for sentence in sentences:
        told = [counts[sentence, kind] for kind in (True, False, None)]
        is_drawn = "Display" in sentence and not sentence.startswith("Monitor")
        tables = min(n_tables, N_FIGURES) if is_drawn else n_tables
        rows.append((sentence, name, n, tables, *told))
    return rows


def read(path=FILE):
    """Return the rows of the file, with numbers."""
    with path.open(newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    return [(*row[:2], *map(int, row[2:])) for row in rows]


def main(arguments=None):
    """Write the file, anew for the numbers of rows that are given."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--output", type=Path, default=FILE)
    given = parser.parse_args(arguments)
    known = read(given.output) if given.output.exists() else []
    rows = [row for row in known if row[2] not in given.rows]
    for n in given.rows:
        for name in NAMES:
            rows += simulated(name, n, SIZES[n])
            print(name, n, flush=True)
    with given.output.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow("sentence world rows tables true false open".split())
        out.writerows(sorted(rows, key=lambda row: (row[2], row[1], row[0])))


if __name__ == "__main__":
    main()
