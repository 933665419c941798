"""What a headline rests on: errors and tests, classes, segments and time."""

from skcalib._report._claims import claim
from skcalib._report._headline import clearest_changes
from skcalib._report._judged import read_verdict
from skcalib._report._phrases import (
    MOST_WORST,
    OF_ESTIMATES,
    OF_VERDICTS,
    bias_words,
    group_words,
    least,
    listed,
    points_digits,
    points_words,
    series,
    share_of,
    size_words,
    verdict_words,
)
from skcalib._report._samples import SIGNIFICANCE_LEVEL
from skcalib._verdicts import (
    fixed,
    interval_words,
    percent_decimals,
    pvalue_words,
    rounded,
)

# The average hides a segment whose bias is larger than this number times that of all
# rows.
_HIDDEN = 2


def evidence(facts, first):
    """Return a list of sentences that support the headline: on mean score and event
    frequency, on the calibration error with its test, on scores that are too extreme or
    too cautious, and on the classes.

    `facts` are the `ModelFacts`, `first` is the name of the headline's first sentence.
    """
    model = facts.model
    error = facts.error
    means = _means(facts, first)
    if first == "repeated key":
        # A column of ids repeats, but was not declared as clusters: intervals and
        # p-values for independent samples would be wrong, and are not printed.
        estimate = fixed(100 * error.estimate, points_digits(error))
        column = model["advice"]["needs_cluster"]
        known = claim("error of unknown uncertainty", size=estimate, column=column)
        return [means, known]
    test = model["test"]
    sentences = [
        means,
        claim(
            "error",
            of=" of the predicted class" if facts.is_of_classes else "",
            size=points_words(error),
            pvalue=pvalue_words(test["pvalue"], test["smallest_pvalue"]),
        ),
    ]
    bias = facts.bias
    is_any_segment_off = any(segment.verdict.is_off for segment in facts.segments)
    is_more_found = test["rejects"] or is_any_segment_off or model["changes"]
    if bias.is_off and not is_more_found:
        sentences.append(claim("nothing but the shift"))
    confidence = facts.over_confidence
    if not facts.is_of_classes and not bias.is_off and confidence.is_off:
        name = "too extreme" if confidence.estimate > 0 else "too cautious"
        sentences.append(claim(name, size=size_words(confidence)))
    if facts.is_of_classes:
        sentences.append(classes_off(model["classes"]))
    return sentences


def _means(facts, first):
    """Return the sentence on the mean score and the event frequency, and on a
    significant difference, unless `first`, the headline's first sentence, has it.
    """
    model = facts.model
    bias = ""
    if facts.bias.is_off and first not in ("do not use", "check", "repeated key"):
        bias = f": the scores are {verdict_words(facts.bias)} on average"
    # Both have the digits that the samples support.
    digits = percent_decimals(model["event_frequency"], facts.bias.n)
    what = "The mean score"
    of = "of the samples have the event"
    if facts.is_of_classes:
        what = "The mean probability of the predicted class"
        of = "of these predictions are correct"
    if facts.is_weighted:
        what = what.replace("The mean", "The weighted mean")
        of = "of the weight is on samples with the event"
        if facts.is_of_classes:
            of = "of the weight is on correct predictions"
    return claim(
        "means",
        mean=f"{fixed(100 * model['mean_score'], digits)} %",
        frequency=f"{fixed(100 * model['event_frequency'], digits)} %",
        What=what,
        of=of,
        bias=bias,
    )


def classes_off(rows):
    """Return the sentence on the classes with a significant calibration error: how many
    there are, and how large the largest error is.

    `rows` are the dicts of the table of classes, which begins with these classes, the
    largest error first.
    """
    off = [row for row in rows if row["adjusted_error_pvalue"] < SIGNIFICANCE_LEVEL]
    if not off:
        return claim("no class off", n=f"{len(rows)}")
    largest = off[0]
    bias = read_verdict(largest["verdict"])
    direction = ""
    if bias.is_off:
        direction = f"; its probabilities are {verdict_words(bias)} on average"
    size = ""
    if largest["estimate"] is not None:
        error = interval_words(
            largest["estimate"],
            largest["low"],
            largest["high"],
            scale=100,
            unit="points",
            level=OF_ESTIMATES,
        )
        size = f": {error}, averaged over all samples, including those of other classes"
    names = ""
    if 1 < len(off) < len(rows):
        names = f": {listed([row['class'] for row in off])}"
    return claim(
        "classes off",
        share=share_of(off, rows),
        have="has" if len(off) == 1 else "have",
        names=names,
        first=largest["class"],
        size=size,
        bias=direction,
    )


def segments_off(facts):
    """Return a sentence for each column of segments, on how many of its segments are
    off and which are the worst; and one more sentence if the bias of all samples hides
    them. `facts` are the `ModelFacts`.
    """
    sentences = []
    rows_by_column = {}
    for row in facts.model["segments"]:
        rows_by_column.setdefault(row["column"], []).append(row)
    verdicts_off = []
    for column, rows in rows_by_column.items():
        off = [row for row in rows if read_verdict(row["verdict"]).is_off]
        if off:
            verdicts_off += [read_verdict(row["verdict"]) for row in off]
            sentences.append(_worst_segments(column, off, rows))
    if _are_hidden(verdicts_off, facts.bias.estimate):
        size = fixed(abs(100 * facts.bias.estimate), points_digits(facts.bias))
        side = "high" if facts.bias.estimate > 0 else "low"
        sentences.append(claim("average hides", bias=f"{size} points too {side}"))
    return sentences


def _worst_segments(column, off, rows):
    """Return the sentence on the segments `off` among those of a column, `rows`, which
    names the worst.
    """
    # The lower limit of the size decides which are the worst.
    ordered = sorted(off, key=lambda row: -least(read_verdict(row["verdict"])))
    worst = []
    for row in ordered[:MOST_WORST]:
        name = group_words(row["segment"], column)
        worst.append(f"{name}, {bias_words(row['verdict'])}")
    return claim(
        "segments off",
        column=column,
        share=share_of(off, rows),
        are="is" if len(off) == 1 else "are",
        names=f": {series(worst, len(off), '; ')}",
    )


def _are_hidden(verdicts, overall_bias):
    """Return whether the overall bias hides that of a miscalibrated segment: the
    overall bias lies outside the interval of the segment's, and is less than half as
    large or has the opposite sign. `verdicts` are on the miscalibrated segments.
    """
    for verdict in verdicts:
        if verdict.low <= overall_bias <= verdict.high:
            continue
        if abs(verdict.estimate) > _HIDDEN * abs(overall_bias):
            return True
        has_opposite_sign = verdict.estimate * overall_bias < 0
        if has_opposite_sign:
            return True
    return False


def changes(facts):
    """Return sentences on the clearest changes of calibration over time: the period of
    the change, and the bias before and after it. `facts` are the `ModelFacts`.
    """
    sentences = []
    for row in clearest_changes(facts.model):
        whose = f"the {facts.subject}"
        if row["group"] is not None:  # a segment; None stands for all samples
            whose = f"{whose} of {row['group']}"
        sentences.append(
            claim(
                "changed",
                since=row["since"],
                whose=whose,
                after=bias_words(row["verdict_after"]),
                before=bias_words(row["verdict_before"]),
            )
        )
    return sentences


def over_time(model):
    """Return sentences on a significant linear trend of the bias, and on errors that
    are alike enough to make intervals too short. `model` is the dict of a model's
    numbers.
    """
    sentences = []
    trend = model.get("trend")
    # If the bias changed in one step, a straight line through it is misleading: the
    # change alone is told, if `changes` tells it.
    is_step_told = any(row["group"] is None for row in clearest_changes(model))
    if trend is not None and trend["is_step"] and is_step_told:
        trend = None
    # With few events the test and the limits may disagree.
    is_told = False
    if trend is not None and trend["pvalue"] < SIGNIFICANCE_LEVEL:
        is_told = not trend["moved_low"] <= 0 <= trend["moved_high"]
    if is_told:
        # "falls by 1 to 3 points": sizes without a sign, which both limits share.
        limits = (trend["moved_low"], trend["moved_high"])
        low, high = sorted(map(abs, limits))
        size = interval_words(
            abs(trend["moved"]), low, high, scale=100, unit="points", level=OF_VERDICTS
        )
        sentences.append(
            claim(
                "trend",
                first=trend["first"],
                last=trend["last"],
                rises="rises" if trend["moved"] > 0 else "falls",
                size=size,
                pvalue=pvalue_words(trend["pvalue"]),
            )
        )
    correlation = model.get("autocorrelation")
    if correlation is not None and correlation["pvalue"] < SIGNIFICANCE_LEVEL:
        sentences.append(claim("dependent", factor=rounded(correlation["factor"], 2)))
    return sentences
