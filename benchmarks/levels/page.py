"""Rows of the table of levels: their file, and the page that is made of them."""

import json
import re
from collections import Counter
from dataclasses import dataclass
from math import isnan

__all__ = ["Row", "read_rows", "reason_of", "verdict_of", "with_tables"]

_BEGIN, _END = (
    "<!-- tables: made by `python -m benchmarks.levels --page` -->\n",
    "<!-- end of the tables -->",
)


@dataclass(frozen=True)
class Row:
    """A promise on a shape of data: how often it was kept, and the standard error of
    that.

    `measured` is the coverage of an interval, the share of calibrated samples that a
    test rejects, or the share of samples whose certified threshold breaks its promise
    on new rows; `accepted` is then the mean share of new rows at or above it. Samples
    that get no answer, which is said, are left out: `decided` is the share of the
    others. The verdict is that of `verdict_of`. `date` is the day of the simulation.
    """

    kind: str
    promise: str
    shape: str
    promised: float
    measured: float
    standard_error: float
    runs: int
    verdict: str
    accepted: float | None = None
    date: str = ""
    decided: float | None = None


def verdict_of(kind, promised, measured, standard_error):
    """Return whether a promise "holds" or "misses", or is "undecided" because no sample
    got an answer: the one rule of the tables, their lead and the searches.

    It misses if what was measured is worse by more than two standard errors.
    """
    if isnan(measured):
        return "undecided"
    shortfall = promised - measured if kind == "coverage" else measured - promised
    return "misses" if shortfall > 2 * standard_error else "holds"


# Why a promise is missed: the first of these expressions that fits "promise, shape".
_REASONS = [
    (
        "^Hosmer-Lemeshow",
        "the expected number of events per bin is too small for the approximation; a"
        " warning is issued",
    ),
    (
        "^intercepts and slopes of all classes",
        "fewer than 5 events are expected; a warning is issued",
    ),
    (
        "^limits of one probability, histogram",
        "the limits are for the mean frequency of the bin, from which the frequency at"
        " the score differs; see the docstring of `predict_interval`",
    ),
    (
        "^limits of one probability, (.*(S-shaped|plateau|p\\^1.5)|temperature.*noise)",
        "no curve of the method's form has this shape; see the docstring of"
        " `predict_interval`",
    ),
    (
        "^limits of one probability(, .*floor| of a world: Platt)",
        "the learned floor is taken as known; see the docstring of `predict_interval`",
    ),
    (
        "^limits of one probability, .*clusters, n = 100$",
        "ten clusters are too few; see the docstring of `predict_interval`",
    ),
    (
        "^limits of one probability, stacked.*clusters, n = 1,000",
        "the weights of the members are taken as known; see the docstring of"
        " `predict_interval`",
    ),
    (
        "^l2, 1 bin, bimodal, high mode",
        "the deviation of a bin is taken to be shared by its samples; here only one of"
        " its two modes deviates",
    ),
    (
        "^limits of one probability, .*rare",
        "two or three events are expected; a warning is issued",
    ),
    (
        "^(rare events: )?Spiegelhalter",
        (
            "the normal approximation is poor if few events or non-events are expected;"
            " a warning is issued"
        ),
    ),
    (
        "^rare events: (Kuiper|Kolmogorov-Smirnov), 0.1",
        (
            "0.1 events are expected: one event, which a tenth of the data sets has, is"
            " significant"
        ),
    ),
    (
        'interval="basic"',
        (
            "resampling adds noise to the label noise; this interval issues a warning"
            " and is not the default"
        ),
    ),
    (
        "^bars without clusters",
        "dependent rows are treated as independent; pass `clusters=`",
    ),
    (
        "^usual t interval",
        "the deviation between hospitals is treated as known; not part of skcalib",
    ),
    (
        "without clusters",
        "dependent rows are treated as independent; the report detects this",
    ),
    (
        "^l1, plugin, 15 bins, one of 15 bins",
        "calibrated bins look miscalibrated by chance; see the docstring of"
        " `calibration_error_interval`",
    ),
    (
        "^naive search",
        "the threshold is chosen on the same rows without a correction; not part of"
        " skcalib",
    ),
    (
        "^(precision|error when answered), .*of the same rows, ",
        "the map was fitted to the rows of the certificate, which states this",
    ),
    ("^(uncertainty-calibration|MAPIE|MCGrad|statsmodels)", "another library"),
    (
        "clusters, rare",
        (
            "at most 39 events are expected, which is too few to estimate the"
            " dependence; a warning is issued"
        ),
    ),
    (
        "^(sampled labels: )?verify, 10 bins, (s|events)",
        "upper limits are approximate if every bin is miscalibrated; see the docstring"
        " of `verify`",
    ),
    ("^(shift|change).*unequal", "one of the two data sets consists of two clusters"),
    (
        "^estimated .*(another mix of features$|known twice as early)",
        (
            "the assumptions are violated: the event frequency at a given score has"
            " changed, or labels are not missing at random"
        ),
    ),
    (
        "^estimated .*few of both",
        "200 labelled samples: the binned curve is imprecise",
    ),
    (
        "^shift between two calibrated samples",
        "27 samples in each data set; see the docstring of `calibration_change`",
    ),
    (
        "^summary of a world: auc",
        "one of the few events occasionally has a low score; see the docstring of"
        " `calibration_summary`",
    ),
    (
        "^net benefit in clusters at a threshold",
        "few clusters of very unequal size; see the docstring of `net_benefit`",
    ),
    (
        "^recalibration gain, .*1 % events",
        "ten events: the distribution of gains is skewed; see the docstring of"
        " `recalibration_gain`",
    ),
    (
        "^standardised net benefit",
        "with few events, the distribution of the ratio to the event frequency is not"
        " close to normal",
    ),
]
_FAMILIES = [  # name, kind, and expression of "promise, shape", the first that fits
    (
        (
            "not recommended: basic bootstrap, naive search, clusters ignored,"
            " standard t interval"
        ),
        "",
        "basic|^naive|without clusters|^usual t",
    ),
    ("other libraries", "", "^(uncertainty-calibration|MAPIE|MCGrad|statsmodels)"),
    (
        "weights that depend on the label, rare events, heavy rows, clusters without"
        " events",
        "coverage",
        "^(sampled labels|rare events|heavy rows|empty clusters|(hidden|censoring)"
        " weights): |^O/E ratio, log scale",
    ),
    (
        "bins, errors with bins, `ScalingBinning.verify`",
        "coverage",
        "^(interval of the|l1|l2|ECE, (15|several)|maximum|worst class|verify)",
    ),
    (
        "errors without bins",
        "coverage",
        "^(sweep|smooth|KDE|neighborhood|Kolmogorov-Smirnov|Kuiper)",
    ),
    (
        "bias of a group, shift between two data sets",
        "coverage",
        "^(bias by group|shift|importance weights: bias)",
    ),
    (
        "slope, `calibration_summary`, `recalibration_gain`",
        "coverage",
        "^(calibration slope|summary|recalibration gain|gain of|mean of squared)",
    ),
    ("net benefit", "coverage", "net benefit"),
    (
        "estimated performance without labels",
        "coverage",
        "^estimated|^event frequency, estimated",
    ),
    (
        "clusters: single clusters, their mean, a new cluster, bins of a diagram",
        "coverage",
        "(of a new|of each|of the median|over|of) hospitals?,|^bars by cluster",
    ),
    (
        "one probability (`predict_interval`), band of a whole curve",
        "coverage",
        "^(limits of one probability|simultaneous band)",
    ),
    ("tests by resampling", "size", "^resampled"),
    (
        "tests in closed form",
        "size",
        "^(importance weights: |Kuiper|Kolmogorov-Smirnov|Spiegelhalter|Hosmer)",
    ),
    ("tests of groups, segments, changes and models", "size", "."),
    ("certified thresholds and routing", "broken", "."),
    ("other intervals", "coverage", "."),
]
_TITLES = {
    "coverage": (
        "Intervals",
        "interval",
        (
            "The tables show coverage. For a calibrated model, an interval can miss the"
            " true error 0 only on one side,\nwhich happens in 5 % of data sets, so"
            " the exact coverage is .95."
        ),
    ),
    "size": (
        "Tests",
        "test",
        (
            "The tables show the share of data sets in which a true null hypothesis is"
            " rejected. The asymptotic Kuiper and\nKolmogorov-Smirnov tests are"
            " conservative with few rows or ties. If the data have clusters or"
            " weights,\nthese are passed to the test."
        ),
    ),
    "broken": (
        "Certified thresholds",
        "guarantee",
        (
            "The tables show the share of data sets whose threshold violates its"
            " guarantee on new rows. The guarantee is an upper\nlimit of .1 or a lower"
            " limit of .9 on a rate, with 90 % confidence, so a share of .100 is"
            " allowed. In the folded tables, the\nsecond number is the mean share of"
            " new rows that are accepted (answered, or predicted to be an event)."
        ),
    ),
}


# The names of data seed their draws, so rows keep them; the page words them otherwise.
_WORDS = {
    "too sure": "overconfident",
    "sure,": "scores near 0 and 1,",
    "scores say nothing": "uninformative scores",
    "flat at the limit": "constant risk at the limit",
    "one of 15 bins off by": "one of 15 bins wrong by",
    "another mix of features": "changed mix of features",
    "label-free, few labelled": "few labelled rows",
    "label-free, few new": "few new rows",
    "label-free, few of both": "few labelled and few new rows",
    "label-free, never certain": "event frequencies not near 0 or 1",
    "label-free, ": "",
    "alike within": "with correlated rows",
    "twice too low": "scores too low by a factor of 2",
    "other shares": "changed shares",
    "the upper too high": "scores of the upper group too high",
    "and 20,000 of .2": "and 20,000 rows of weight .2",
    "8 labels alike": "8 correlated labels",
    "a third of the others": "a third of the other rows",
}
# The same for the names of promises.
_NAMES = {
    "(truth: of each score)": "(true error at each score)",
    "less treat all": "minus that of treating all",
    "net benefit of one model less another's": (
        "difference in net benefit between two models"
    ),
    "with weights of the score": "with weights that depend on the score",
    "groups mixed": "weights mixed within groups",
    "light and heavy rows apart": "small and large weights in separate groups",
    "interval of the light bin": "interval of the bin with small weights",
    "interval of the heavy bin": "interval of the bin with large weights",
    " of a world": ", searched data",
    "observed expected": "O/E ratio",
    "estimated log loss": "estimated log-loss",
    "brier score": "Brier score",
    ": auc": ": AUC",
    ": ici": ": ICI",
    ": e50": ": E50",
    ": e90": ": E90",
    ": emax": ": Emax",
    "bars by cluster": "bars of a diagram, with clusters",
    "bars without clusters": "bars of a diagram, clusters ignored",
    "Kuiper without clusters": "Kuiper, clusters ignored",
    "Kolmogorov-Smirnov without clusters": "Kolmogorov-Smirnov, clusters ignored",
    "usual t interval of a further hospital's O/E": (
        "standard t interval for O/E of a new hospital"
    ),
    "O/E of": "O/E ratio of",
    "mean O/E over": "mean O/E ratio over",
    "ECE, several labels": "ECE, several labels per row",
    "Platt's map of the same rows": "Platt scaling fitted to the same rows",
    "cross-fitted Platt's map": "cross-fitted Platt scaling",
    "map of the same rows": "map fitted to the same rows",
    "temperature of the same rows": "temperature scaling fitted to the same rows",
    "vector scaling of the same rows": "vector scaling fitted to the same rows",
    "treating from .95 on is better than": "treating from .95 upward is better than",
}


def _worded(shape, names=_WORDS):
    """Return the name of data, or of a promise, as the page shows it."""
    for name, words in names.items():
        shape = shape.replace(name, words)
    return shape


def read_rows(path):
    """Return the rows of a file by promise and shape, of each the last one with the
    most samples.
    """
    rows = {}
    for line in path.read_text().splitlines() if path and path.exists() else ():
        row = Row(**json.loads(line))
        if row.runs >= getattr(rows.get((row.promise, row.shape)), "runs", 0):
            rows[row.promise, row.shape] = row
    return rows


def reason_of(row):
    """Return why a row misses its promise; None where nobody has named it."""
    found = (
        reason
        for pattern, reason in _REASONS
        if re.search(pattern, f"{row.promise}, {row.shape}")
    )
    return next(
        found,
        "within three standard errors, so possibly due to chance"
        if _missed_by(row) < 3
        else None,
    )


def with_tables(page, rows):
    """Return the text of the page with tables of these rows between its marks."""
    before, rest = page.split(_BEGIN)
    parts = [
        _lead(rows),
        _summary(rows),
        _misses(rows),
        *(_of_kind(rows, kind) for kind in _TITLES),
    ]
    return f"{before}{_BEGIN}\n" + "\n".join(parts) + f"\n{_END}" + rest.split(_END)[1]


def _lead(rows):
    """Return how many rows hold, and every exception of the tables, by its reason."""
    missed = [row for row in rows if row.verdict == "misses"]
    by_reason = {}  # coverages and shares of errors apart
    for row in sorted(missed, key=_missed_by, reverse=True):
        reason = reason_of(row) or "**not named**"
        by_reason.setdefault((reason, row.kind == "coverage"), []).append(row)
    lines = []
    for (reason, _), some in by_reason.items():
        names = dict.fromkeys(_worded(row.promise, _NAMES) for row in some)
        lines.append(f"| {'; '.join(names)} | {_spread(some)} | {reason} |")
    n_held = sum(row.verdict == "holds" for row in rows)
    return (
        f"**{n_held} of {len(rows)} rows hold.** A row misses if its measured level is"
        " worse than the nominal one by more than two standard\nerrors. These are all"
        " exceptions:\n\n"
        + _table(("method", "measured", "reason"), lines)
        + _unanswered(rows)
    )


def _unanswered(rows):
    """Return in how many data sets methods have limits, or a p-value, where these are
    fewer than nine tenths.
    """
    few = [row for row in rows if row.decided is not None and row.decided < 0.9]
    if not few:
        return ""
    lines = [
        f"| {_worded(row.promise, _NAMES)} | {_worded(row.shape)} |"
        f" {100 * row.decided:.3g} % | {_cell(row)} |"
        for row in sorted(few, key=lambda row: row.decided)
    ]
    return (
        "\nIn these rows, fewer than 90 % of the data sets have an answer; the others"
        " have NaN and a reason. What is measured is\nabout those with an"
        " answer:\n\n"
        + _table(("method", "data", "data sets with an answer", "measured"), lines)
    )


def _missed_by(row):
    """Return by how many standard errors a promise is missed."""
    return (
        (row.measured - row.promised)
        / row.standard_error
        * (-1 if row.kind == "coverage" else 1)
    )


def _table(head, lines):
    return (
        "\n".join((f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines)) + "\n"
    )


def _misses(rows):
    missed = sorted(
        (row for row in rows if row.verdict == "misses"), key=_missed_by, reverse=True
    )
    folded = {}
    for row in missed:
        folded.setdefault(
            (row.promise, row.promised, reason_of(row) or "**not named**"), []
        ).append(row)
    lines = [
        f"| {_worded(promise, _NAMES)} | {_few([_worded(row.shape) for row in some])} |"
        f" {promised:.3g} | {_spread(some)} | {reason} |"
        for (promise, promised, reason), some in folded.items()
    ]
    text = (
        f"## What does not hold\n\n{len(missed)} of {len(rows)} rows miss their nominal"
        " level by more than two standard errors. If the\nlevel were exact, one row in"
        " 44 would do so by chance.\n\n"
    )
    return text + _table(("method", "data", "nominal", "measured", "reason"), lines)


def _summary(rows):
    lines, left = [], list(rows)
    for name, kind, pattern in _FAMILIES:
        some = [
            row
            for row in left
            if kind in row.kind and re.search(pattern, f"{row.promise}, {row.shape}")
        ]
        left = [row for row in left if row not in some]
        if some:
            promised = " or ".join(sorted({f"{row.promised:.3g}" for row in some}))
            held = sum(row.verdict == "holds" for row in some)
            lines.append(
                f"| {name} | {promised} | {_spread(some)} | {len(some)} | {held} |"
                f" {_days(some)} |"
            )
    order = lines[2:] + lines[:2]  # what is ours stands first
    text = (
        "For intervals, the level is the coverage; for tests and thresholds, it is the"
        " share of errors. Rows with an\nearlier date were simulated with the version"
        " of the code at that date.\n\n"
    )
    return f"## Summary\n\n{text}" + _table(
        ("method", "nominal", "measured", "rows", "rows that hold", "simulated"), order
    )


def _few(shapes, most=3):
    left = len(shapes) - most
    return "; ".join(shapes[: most if left > 1 else None]) + (
        f"; {left} others" if left > 1 else ""
    )


def _spread(rows):
    measured = [row.measured for row in rows if row.verdict != "undecided"]
    if not measured:
        return "no answer"
    low, high = (f"{end(measured):.3f}" for end in (min, max))
    return low if low == high else f"{low} to {high}"


def _days(rows):
    """Return the days on which rows were simulated, with the number of rows of each."""
    days = Counter(row.date for row in rows if row.date)
    if len(days) == 1:
        return next(iter(days))
    return ", ".join(f"{day} ({days[day]})" for day in sorted(days))


def _of_kind(rows, kind):
    title, name, text = _TITLES[kind]
    some = [row for row in rows if row.kind == kind]
    text = f"## {title}\n\n{text}\n\n{_by_promise(some, name)}\n"
    crossed = [
        row
        for row in some
        if kind == "broken" or re.search("^summary: |net benefit", row.promise)
    ]
    parts = [_long([row for row in some if row not in crossed], name)] * (
        kind != "broken"
    ) + [_crossed(crossed)]
    tables = "\n".join(part.strip() + "\n" for part in parts if part)
    return (
        f"{text}<details><summary>All {len(some)}"
        f" rows</summary>\n\n{tables}\n</details>\n"
    )


def _by_promise(rows, name):
    """Return a table with one line for each promise: its shapes, how many hold, and the
    range of what was measured.
    """
    folded = {}
    for row in rows:
        folded.setdefault((row.promise, row.promised), []).append(row)
    lines = []
    for (promise, promised), some in folded.items():
        held = sum(row.verdict == "holds" for row in some)
        lines.append(
            f"| {_worded(promise, _NAMES)} | {promised:.3g} | {_spread(some)} |"
            f" {len(some)} | {held} |"
        )
    return _table((name, "nominal", "measured", "rows", "rows that hold"), lines)


def _long(rows, name):
    """Return a line for the shapes of a promise on which the same was measured."""
    folded = {}
    for row in rows:
        same = (
            row.promise,
            row.promised,
            _cell(row),
            f"{row.standard_error:.3f}",
            row.runs,
        )
        folded.setdefault(same, []).append(_worded(row.shape))
    lines = []
    for (promise, promised, measured, error, runs), shapes in folded.items():
        lines.append(
            f"| {_worded(promise, _NAMES)} | {'; '.join(shapes)} | {promised:.3g} |"
            f" {measured} | {error} | {runs:,} |"
        )
    return _table((name, "data", "nominal", "measured", "s.e.", "data sets"), lines)


def _crossed(rows):
    """Return tables of shapes by promises, one for each set of promises that shapes
    share, with their samples.
    """
    by_shape, text = {}, ""
    for row in rows:
        by_shape.setdefault((row.shape, row.runs), {})[row.promise] = row
    for names in dict.fromkeys(tuple(found) for found in by_shape.values()):
        lines = []
        for (shape, runs), found in by_shape.items():
            if tuple(found) == names:
                cells = map(_cell, found.values())
                lines.append(f"| {_worded(shape)} | {' | '.join(cells)} | {runs:,} |")
        heads = [_worded(name, _NAMES) for name in names]
        text += _table(("data", *heads, "data sets"), lines) + "\n"
    return text


def _cell(row):
    if row.verdict == "undecided":
        return "no answer"
    accepted = "" if row.accepted is None else f", {row.accepted:.3g}"
    return f"{row.measured:.3f}{' (misses)' * (row.verdict == 'misses')}{accepted}"
