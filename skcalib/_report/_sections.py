"""The sections of a report's page: each a table or two with the words that it takes to read them."""

from html import escape

from skcalib._report._advice_sentences import LATE_LABELS, monitor_sentence
from skcalib._report._decisions import BENEFITS
from skcalib._report._html import (
    bias_picture,
    bias_words,
    count,
    figure,
    largest_bias,
    n_shown,
    number,
    percent,
    pvalue_cell,
    table,
    with_interval,
)
from skcalib._report._numbers import SMALL_CLASS, SMALL_SEGMENT
from skcalib._report._recalibration import N_FOLDS, most_rows
from skcalib._report._sentences import (
    SIGNIFICANCE_LEVEL,
    certificate_sentence,
    class_sentence,
    decision_sentence,
    listed,
    nothing_to_gain,
    pvalue_words,
    rest_sentence,
    segment_sentence,
)

_MOST_GROUPS = 50  # that a page shows; the JSON has all
_EXPLAINED = {
    "mean absolute calibration error": "mean gap between score and event frequency, noise taken away; up to 15 bins of "
    "equal mass",
    "root mean square calibration error": "large gaps count more; noise is taken away from the squares, so that it may "
    "come out below the mean absolute error",
    "expected calibration error": "mean absolute gap, 15 bins of equal width; noise makes it too large, so that its "
    "interval, from which that is removed, may lie below it",
    "maximum calibration error": "gap of the worst of 15 bins of equal width; bins with fewer than 50 rows are merged",
    "calibration slope": "1 is right; below 1 the scores are too extreme",
    "calibration in the large": "0 is right; below 0 the scores are too high, in log-odds",
    "Brier score": "mean squared difference of score and event; rewards calibration and sharpness together",
    "log-loss": "minus the mean log-probability of what happened, in nats",
}
_EXPLAINED_CLASSES = {
    "Brier score": "squared difference of score and event, summed over the classes, on average; rewards calibration "
    "and sharpness together",
    "log-loss": "minus the mean log-probability of the true class, in nats",
}
_BIAS_NOTE = (
    "The bias is the mean score minus the event frequency: above 0 the scores are too high. The {} whose bias is least "
    "likely to be chance come first. The p-value of the bias is adjusted for their number."
)
_PLAIN_NUMBERS = {"calibration slope", "calibration in the large", "Brier score", "log-loss"}


def error_table(models):
    """Return a table with a line for each measure and a column for each model."""
    measured = [{part["name"]: part for part in [*model["errors"], *model["proper_scores"]]} for model in models]
    of_classes = "classes" in models[0]
    lines = []
    for name, words in {**_EXPLAINED, **(_EXPLAINED_CLASSES if of_classes else {})}.items():
        if not any(name in parts for parts in measured):
            continue
        shown = number if name in _PLAIN_NUMBERS else percent
        cells = [with_interval(shown, parts[name]) if name in parts else "–" for parts in measured]
        lines.append([f"{name}<small>{escape(words)}</small>", *cells])
    tests = [model["test"] for model in models]
    verdicts = [
        f"{escape(pvalue_words(test['pvalue'], test['smallest_pvalue']))}"
        f"<small>{'calibration rejected' if test['rejects'] else 'calibration not rejected'}</small>"
        for test in tests
    ]
    lines.append([f"test of calibration<small>{escape(tests[0]['name'])}</small>", *verdicts])
    note = ""
    if of_classes:
        note = (
            "<p>The calibration errors and the test are about the predicted class: the score is its probability, and "
            "the event is that it is right. The Brier score and the log-loss are about all classes.</p>"
        )
    return note + table("Errors", ["measure", *(model["name"] for model in models)], lines)


def class_section(numbers, pictures):
    """Return the tables and pictures of the classes, each against the rest; nothing for two classes."""
    if numbers["classes"] is None:
        return ""
    small = any(row["is_small"] for row in numbers["models"][0]["classes"])
    note = (
        "<p>Each class against all others: the probability of the class and how often it is the true one. The classes "
        "whose error is more than noise come first, the largest error ahead. The bias is the mean score minus the "
        "frequency: above 0 the scores are too high. The p-value is of the error, adjusted for the number of classes. "
        "Its test looks closer than the bins of the error, and may see an error whose interval begins at 0.</p>"
    ) + f"<p>Classes marked * have fewer than {SMALL_CLASS} rows.</p>" * small

    def section(model):
        grid = "".join(figure(picture) for picture in pictures.get(("classes", model["name"]), ()))
        words = f"<p>{escape(class_sentence(model['classes']))}</p>"
        captions = "<p>The same classes as diagrams, the frequency of the class against its probability.</p>"
        return words + _group_table(model, "class") + (captions + f'<div class="grid">{grid}</div>' if grid else "")

    return _section("classes", "By class", note + _per_model(numbers, section))


def segment_section(numbers):
    """Return the tables of the segments."""
    if numbers["segment"] is None:
        return ""
    note = f"<p>{_BIAS_NOTE.format('segments')}</p>"
    if any(row["is_small"] for row in numbers["models"][0]["segments"]):
        note += f"<p>Segments marked * have fewer than {SMALL_SEGMENT} rows.</p>"

    def section(model):
        return f"<p>{escape(segment_sentence(model['segments']))}</p>" + _group_table(model, "segment")

    return _section("segments", "By segment", note + _per_model(numbers, section))


def _section(key, title, body):
    return f'<section id="{key}">\n<h2>{title}</h2>\n{body}\n</section>'


def _group_table(model, kind):
    rows = model["segments" if kind == "segment" else "classes"]
    shown = rows[: _MOST_GROUPS if kind == "segment" else n_shown(rows)]
    size, plural, frequency = "n_rows", "segments", "event frequency"
    if kind == "class":
        size, plural, frequency = "n_events", "classes", "frequency"
    names = [escape(row[kind]) + " *" * row["is_small"] for row in shown]
    tested = "adjusted_error_pvalue" if kind == "class" else "adjusted_pvalue"
    tests = [(pvalue_cell(row[tested]),) for row in shown]
    rest, more = rows[len(shown) :], ""
    if rest and kind == "class":
        more = f"<p>{escape(rest_sentence(rest))}</p>"
    elif rest:
        more = f"<p>{len(rest)} more {plural} with larger p-values are left out.</p>"
    head = [kind, "error: adjusted p" if kind == "class" else "bias: adjusted p", frequency]
    return _bias_table(f"{plural.capitalize()} of {model['name']}", head, shown, names, tests, size) + more


def _bias_table(caption, head, rows, names, tests, size="n_rows"):
    """Return a table of the bias of segments, classes or periods, with their names and tests as they are shown."""
    widest = largest_bias(rows)
    lines = [
        [
            name,
            bias_words(row),
            bias_picture(row, widest),
            *tested,
            count(row[size]),
            percent(row["mean_score"]),
            percent(row["event_frequency"]),
            with_interval(percent, row),
        ]
        for row, name, tested in zip(rows, names, tests, strict=True)
    ]
    kind, *tested, frequency = head
    counted = "rows of it" if size == "n_events" else "rows"
    return table(caption, [kind, "bias", "", *tested, counted, "mean score", frequency, "error"], lines)


def period_section(numbers):
    """Return the tables of the periods."""
    if numbers["time"] is None and numbers["baseline"] is None:
        return ""
    against = "the first period" if numbers["baseline"] is None else escape(numbers["baseline"])
    note = (
        "<p>Two tests for each period: \u201cthe scores are calibrated in this period\u201d, and \u201cthe calibration "
        f"curve is that of {against}\u201d, whatever the scores did. Both p-values take the number of periods into "
        "account.</p>"
    )
    return _section("time", "Over time", f"{note}<p>{LATE_LABELS}</p>" + _per_model(numbers, _period_part))


def _period_part(model):
    return _period_table(model) + _monitor_part(model["monitors"])


def _monitor_part(rows):
    """Return the sentence and the table of the monitors."""
    if not rows:
        return ""
    words = (
        f"<p>{escape(monitor_sentence(rows))} A monitor (<code>GroupMonitors</code>) reads the rows in the order of "
        "time. While all groups are calibrated, any alarm has a probability of 1 % at most. Evidence is an e-value: "
        "that of a calibrated group exceeds a number x with a probability of 1/x at most.</p>"
    )
    shown = [row for row in rows if row["alarm"]] or rows[:1]
    lines = [
        [
            escape(row["group"]),
            count(row["n_rows"]),
            f"{row['e_value']:.2g}",
            *(escape(row[key] or "–").replace("-", "&#8209;") for key in ("alarm_time", "change_time")),
        ]
        for row in shown[:_MOST_GROUPS]
    ]
    return words + table("Monitors", ["group", "rows", "evidence", "alarm", "change at about"], lines)


def _period_table(model):
    names = [escape(row["period"]).replace("-", "&#8209;") for row in model["periods"]]
    tests = [
        (pvalue_cell(row["adjusted_pvalue"]), _change_words(row["change_adjusted_pvalue"])) for row in model["periods"]
    ]
    head = ["period", "calibrated: adjusted p", "unchanged: adjusted p", "event frequency"]
    return _bias_table(f"Periods of {model['name']}", head, model["periods"], names, tests)


def _change_words(pvalue):
    if pvalue is None:
        return "–"
    words = pvalue_cell(pvalue)
    return f"{words}<small>changed</small>" if pvalue < SIGNIFICANCE_LEVEL else words


def recalibrator_section(numbers):
    """Return the tables of what recalibration would gain."""
    note = (
        f"<p>Each recalibrator was fitted on {N_FOLDS - 1} of {N_FOLDS} parts of the rows and judged on the other, in "
        "turn. The gain is the share of the Brier score and of the log-loss that it saves; where its interval lies "
        "above 0, recalibrating helps. The best of several gains on the same rows is a little too good.</p>"
    )
    most = most_rows(numbers["classes"])
    if numbers["total_weight"] > most:
        note += f"<p>From a random sample of {most:,} rows.</p>"
    return note + _per_model(numbers, _recalibrator_table)


def _recalibrator_table(model):
    if model["recalibrators"] and model["advice"]["kind"] == "none" and model["advice"]["since"] is None:
        return f"<p>{escape(nothing_to_gain(model['recalibrators']))}</p>"
    if not model["recalibrators"]:
        if "classes" in model:
            return f"<p>Not possible: it takes {N_FOLDS} rows of two classes at least.</p>"
        return f"<p>Not possible: it takes {N_FOLDS} rows with the event and {N_FOLDS} without.</p>"
    before = next(row for row in model["recalibrators"] if row["name"] == "as it is")
    since = model["advice"]["since"]
    note = f"<p>The advice is for the rows since {escape(since)}. This table is about all rows.</p>" if since else ""
    lines = [
        [
            escape(row["name"])
            + (f"<small>own maps: {escape(listed(row['segments']))}</small>" if row["segments"] else ""),
            "–" if row is before else _gain(row, "brier_gain", before["brier"]),
            "–" if row is before else _gain(row, "gain", before["log_loss"]),
            number(row["brier"]),
            number(row["log_loss"]),
            percent(row["calibration_error"]),
        ]
        for row in model["recalibrators"]
    ]
    head = ["recalibrator", "Brier score saved", "log-loss saved", "Brier score", "log-loss", "calibration error"]
    return note + table(f"Recalibrators of {model['name']}", head, lines)


def _gain(row, key, whole):
    """Return a gain and its interval as shares of the score before."""
    if not whole:
        return "–"
    estimate, low, high = (100 * row[name] / whole for name in (key, f"{key}_low", f"{key}_high"))
    return f"{estimate:+.1f} %<small>{low:+.1f} to {high:+.1f}</small>"


def decision_section(numbers):
    """Return the tables of the decisions at thresholds; nothing without any."""
    if not numbers["thresholds"]:
        return ""
    note = (
        "<p>Rows with a score of the threshold or more are treated. These, false alarms and misses are shares of all "
        "rows. The net benefit weighs true positives against false alarms as the threshold does: at 20 % one true "
        "positive is worth four false alarms. It is counted in true positives in 100 rows. Miscalibration costs what "
        "recalibrated scores (a spline, fitted on other rows) would gain at the same threshold.</p>"
    )

    def section(model):
        words = " ".join(decision_sentence(row) for row in model["decisions"])
        head = ["threshold", "treated", "false alarms", "misses", "net benefit", "against treating all"]
        head.append("miscalibration costs")
        shares = ("treated", "false_alarms", "misses")
        lines = [
            [
                f"{100 * row['threshold']:g} %",
                *(with_interval(percent, row[key]) for key in shares),
                *("–" if row[key] is None else with_interval(_points, row[key]) for key in BENEFITS),
            ]
            for row in model["decisions"]
        ]
        return f"<p>{escape(words)}</p>" + table(f"Decisions of {model['name']}", head, lines)

    return _section("decisions", "Decisions", note + _per_model(numbers, section))


def _points(share):
    return f"{100 * share:+.2f}"


def certificate_section(numbers):
    """Return the table of what could be promised, with how many bins."""
    if numbers["weighted"]:
        return "<p>None: the theory needs rows of equal weight, and these have weights.</p>"
    if numbers["n_clusters"]:
        return "<p>None: the theory needs independent rows, and these have clusters.</p>"
    if not numbers["certificates"]:
        return "<p>None: there are too few rows.</p>"
    of_classes = numbers["classes"] is not None
    words = (
        "<p>A recalibrator that averages the events of equally large bins (<code>UniformMassBinning</code>), fitted to "
        "as many rows as there are here, comes with a promise for any data, at "
        f"{100 * numbers['confidence_level']:g} % confidence. More bins tell more scores apart, fewer bins keep a "
        "tighter promise."
    )
    if of_classes:
        words += (
            " For several classes the promise is about the probability of the predicted class "
            '(<code>multiclass="top_label"</code>).'
        )
    words += (
        " The scores must come from one model that was fitted on other rows, and the number of bins must be fixed "
        "beforehand. Equal scores need <code>randomize=True</code>.</p>"
    )
    example = certificate_sentence(numbers["certificates"], of_classes)
    words += f"<p>{escape(example)}</p>" if example else ""
    lines = [
        [str(row["n_bins"]), *(_tolerance(row[key]) for key in ("conditional", "marginal", "expected_error"))]
        for row in numbers["certificates"]
    ]
    head = ["bins", "all probabilities within", "one row's within", "mean error at most"]
    return words + table("Certificates", head, lines)


def _tolerance(value):
    return "nothing" if value >= 1 else percent(value)


def _per_model(numbers, section):
    """Return a section's part for each model, under its name where there are several."""
    models = numbers["models"]
    heading = "<h3>{}</h3>\n" if len(models) > 1 else ""
    return "\n".join(heading.format(escape(model["name"])) + section(model) for model in models)
