"""What a headline rests on: errors and tests, classes, segments and time."""

from skcalib._report._claims import claim
from skcalib._report._headline import clearest_changes
from skcalib._report._judged import read_verdict
from skcalib._report._phrases import (
    MOST_WORST,
    OF_ESTIMATES,
    OF_VERDICTS,
    bias_words,
    least,
    listed,
    points_digits,
    points_words,
    series,
    share_of,
    size_words,
    verdict_words,
)
from skcalib._report._statistics import SIGNIFICANCE_LEVEL
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


def evidence(words, first):
    """Return a list of claims that support the headline: the means, the error with its
    test, the direction, and the classes.

    `words` are the `ModelWords`, `first` is the name of the headline's first claim.
    """
    model = words.model
    error = words.error
    test = model["test"]
    claims = [_means(words, first)]
    if first == "repeated key":
        # Intervals and p-values would be those of independent samples.
        estimate = fixed(100 * error.estimate, points_digits(error))
        column = model["advice"]["needs_cluster"]
        known = claim("error of unknown uncertainty", size=estimate, column=column)
        return [*claims, known]
    claims.append(
        claim(
            "error",
            of=" of the predicted class" if words.is_of_classes else "",
            size=points_words(error),
            pvalue=pvalue_words(test["pvalue"], test["smallest_pvalue"]),
        )
    )
    bias = words.bias
    any_segment_off = any(verdict.is_off for _, verdict, _ in words.segments)
    if bias.is_off and not (test["rejects"] or any_segment_off or model["changes"]):
        claims.append(claim("nothing but the shift"))
    confidence = words.over_confidence
    if not words.is_of_classes and not bias.is_off and confidence.is_off:
        name = "too extreme" if confidence.estimate > 0 else "too cautious"
        claims.append(claim(name, size=size_words(confidence)))
    if words.is_of_classes:
        claims.append(classes_off(model["classes"]))
    return claims


def _means(words, first):
    """Return the claim on the mean score and the event frequency, and on their
    difference unless the headline has it.
    """
    model = words.model
    bias = ""
    if words.bias.is_off and first not in ("do not use", "check", "repeated key"):
        bias = f": the scores are {verdict_words(words.bias)} on average"
    # Both have the digits that the samples support.
    digits = percent_decimals(model["event_frequency"], words.bias.n)
    what = "The mean score"
    of = "of the samples have the event"
    if words.is_of_classes:
        what = "The mean probability of the predicted class"
        of = "of these predictions are right"
    return claim(
        "means",
        mean=f"{fixed(100 * model['mean_score'], digits)} %",
        frequency=f"{fixed(100 * model['event_frequency'], digits)} %",
        What=what,
        of=of,
        bias=bias,
    )


def classes_off(rows):
    """Return the claim on the class with the largest error, and on the number of
    classes with an error beyond chance. `rows` are those of the table of classes, in
    which these classes come first, the largest error at the top.
    """
    off = [row for row in rows if row["adjusted_error_pvalue"] < SIGNIFICANCE_LEVEL]
    if not off:
        return claim("no class off", n=f"{len(rows)}")
    first = off[0]
    bias = read_verdict(first["verdict"])
    too = ""
    if bias.is_off:
        too = f"; its probabilities are {verdict_words(bias)} on average"
    size = ""
    if first["estimate"] is not None:
        shown = interval_words(
            first["estimate"],
            first["low"],
            first["high"],
            scale=100,
            unit="points",
            level=OF_ESTIMATES,
        )
        size = f": {shown}, averaged over all samples, also those of other classes"
    names = ""
    if 1 < len(off) < len(rows):
        names = f": {listed([row['class'] for row in off])}"
    return claim(
        "classes off",
        share=share_of(off, rows),
        have="has" if len(off) == 1 else "have",
        names=names,
        first=first["class"],
        size=size,
        bias=too,
    )


def segments_off(words):
    """Return claims, one for each column of segments: how many are off and which most;
    and a claim if the average hides them.
    """
    claims = []
    rows_by_column = {}
    for row in words.model["segments"]:
        rows_by_column.setdefault(row["column"], []).append(row)
    verdicts_off = []
    for column, rows in rows_by_column.items():
        off = [row for row in rows if read_verdict(row["verdict"]).is_off]
        if not off:
            continue
        verdicts_off += [read_verdict(row["verdict"]) for row in off]
        # First those that are off by the most for certain.
        off.sort(key=lambda row: -least(read_verdict(row["verdict"])))
        worst = [
            f"{row['segment']} {bias_words(row['verdict'])}" for row in off[:MOST_WORST]
        ]
        claims.append(
            claim(
                "segments off",
                column=column,
                share=share_of(off, rows),
                are="is" if len(off) == 1 else "are",
                names=f": {series(worst, len(off), '; ')}",
            )
        )
    if _are_hidden(verdicts_off, words.bias.estimate):
        size = fixed(abs(100 * words.bias.estimate), points_digits(words.bias))
        side = "high" if words.bias.estimate > 0 else "low"
        claims.append(claim("average hides", bias=f"{size} points too {side}"))
    return claims


def _are_hidden(verdicts, overall):
    """Return whether the bias of all samples, `overall`, hides a segment that is off:
    it lies outside of the segment's interval, and is much smaller or on the other side.
    """
    for verdict in verdicts:
        if verdict.low <= overall <= verdict.high:
            continue
        if abs(verdict.estimate) > _HIDDEN * abs(overall):
            return True
        if verdict.estimate * overall < 0:
            return True
    return False


def changes(words):
    """Return claims on the clearest changes of calibration: since when, and the bias
    before and after.
    """
    claims = []
    for row in clearest_changes(words.model):
        whose = f"the {words.subject}"
        if row["group"] is not None:
            whose = f"{whose} of {row['group']}"
        claims.append(
            claim(
                "changed",
                since=row["since"],
                whose=whose,
                after=bias_words(row["verdict_after"]),
                before=bias_words(row["verdict_before"]),
            )
        )
    return claims


def over_time(model):
    """Return claims on a trend of the bias, and on errors that depend on the ones
    before them, if they are significant.
    """
    claims = []
    trend = model.get("trend")
    # A line through a step rises by more than the step: one of the two is said.
    is_step_told = any(row["group"] is None for row in clearest_changes(model))
    if trend is not None and trend["is_step"] and is_step_told:
        trend = None
    if trend is not None and trend["pvalue"] < SIGNIFICANCE_LEVEL:
        # "falls by 1 to 3 points": sizes without a sign, which both limits share since
        # the trend is significant.
        limits = (trend["moved_low"], trend["moved_high"])
        low, high = sorted(map(abs, limits))
        size = interval_words(
            abs(trend["moved"]), low, high, scale=100, unit="points", level=OF_VERDICTS
        )
        claims.append(
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
        claims.append(claim("dependent", size=rounded(correlation["estimate"], 2)))
    return claims
