"""What a report advises, of which segments and since when, in sentences."""

from skcalib._report._sentences import SIGNIFICANCE_LEVEL, listed, share_of

_MOST_NAMED = 3
_HIDDEN = 2  # times the bias of all rows, from which the average hides a segment
LATE_LABELS = (
    "Labels that come late make the last periods look wrong: give the report a row only once its label would be known "
    "whatever it is."
)


def advice_words(model, segment=None):
    """Return the two paragraphs that follow the errors: segments and changes; advice, gain and cost."""
    return " ".join([*worst_segments(model, segment), *changes(model)]), " ".join(advice(model, segment))


def worst_segments(model, segment):
    """Return which segments are off, the worst by name, and whether the average hides them."""
    rows = model["segments"]
    off = [row for row in rows if row["adjusted_pvalue"] < SIGNIFICANCE_LEVEL]
    if not off:
        return []
    biased = [row for row in off if row["bias_low"] > 0 or row["bias_high"] < 0]
    biased.sort(key=lambda row: -abs(row["bias"]))
    named = "; ".join(f"{row['segment']} {_bias(row['bias'])}" for row in biased[:_MOST_NAMED])
    worst = ("" if not named else f": {named}") if len(biased) < 2 else f". The worst: {named}"
    verb = "is" if len(off) == 1 else "are"
    words = [f"By {segment}, {share_of(off, rows)} segments {verb} off by more than chance{worst}."]
    overall = model["score_minus_frequency"]["estimate"]
    if biased and (abs(biased[0]["bias"]) > _HIDDEN * abs(overall) or any(row["bias"] * overall < 0 for row in biased)):
        words.append(f"The average of all rows ({100 * overall:+.1f} points) hides how they differ.")
    return words


def changes(model):
    """Return since when the calibration of all rows, or of the segments that changed most clearly, is another one."""
    rows = model["changes"]
    # What changed most clearly: all rows together, or some segments.
    rows = [row for row in rows if row["group"] is not None] if rows and rows[0]["group"] is not None else rows[:1]
    return [
        f"Since {row['since']} {'the scores' if row['group'] is None else 'the scores of ' + row['group']} are "
        f"{_bias(row['bias_after'])} on average; before, they were {_bias(row['bias_before'])}."
        for row in rows[:_MOST_NAMED]
    ]


def advice(model, segment):
    """Return what to do, what it gains and what it costs."""
    found = model["advice"]
    since = f" on the rows since {found['since']}" if found["since"] else ""
    if not model["recalibrators"]:
        return ["There are too few rows of one class to recalibrate."]
    if found["kind"] == "none":
        (before,) = (row for row in model["recalibrators"] if row["name"] == "as it is")
        best = next(row for row in model["recalibrators"] if row is not before)
        most = 100 * max(best["gain_high"], 0.0) / (before["log_loss"] or 1)
        most = "" if since else f" (at most {most:.1g} % of the log-loss)"
        return [f"Leave the scores as they are: no recalibrator gains more than noise{since}{most}."]
    name = found["recalibrator"]
    if name == "PriorShift":
        what = f"Shift the base rate{since}: PriorShift() adds one number to all log-odds"
        what = what if "classes" not in model else f"Shift the class frequencies{since} with PriorShift()"
    elif found["segments"]:
        own = "needs a map of its own" if len(found["segments"]) == 1 else "need maps of their own"
        whose = f"{listed(found['segments'])} {own}; the other segments share one"
        if len(found["segments"]) >= len(model["segments"]) - 1:
            whose = "each segment needs a map of its own"
        what = f"Recalibrate by {segment}{since} with {name}: {whose}"
    else:
        what = f"Recalibrate{since} with {name}()"
    shares = [100 * found[key] / found["log_loss"] for key in ("gain", "gain_low", "gain_high")]
    gain, low, high = (f"{share:.2g}" for share in shares)
    return [
        f"{what}.",
        f"On rows that it was not fitted on, it lowers the log-loss by {gain} % ({low} to {high} %).",
        f"A fit to about {_round(found['rows_needed'])} labelled rows keeps nine tenths of that gain. Fit it again "
        "when the model changes or a monitor (skcalib.monitoring) raises an alarm.",
    ]


def monitor_sentence(rows):
    """Return when monitors raised an alarm, and when the change is likely to have been."""
    off = [row for row in rows if row["alarm"]]
    if not off:
        return "No monitor raised an alarm."
    named = "; ".join(
        f"{row['group']} in {row['alarm_time']}, the change at about {row['change_time']}" for row in off[:_MOST_NAMED]
    )
    more = f"; and {len(off) - _MOST_NAMED} more" * (len(off) > _MOST_NAMED)
    return f"{len(off)} of {len(rows)} monitors raised an alarm: {named}{more}."


def _bias(bias):
    return f"too {'high' if bias > 0 else 'low'} by {100 * abs(bias):.1f} points"


def _round(number):
    """Return a number of rows with two digits."""
    digits = len(str(number)) - 2
    return f"{-(-number // 10**digits) * 10**digits:,}"
