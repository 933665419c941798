"""The result of a report in sentences that a person can act on."""

SIGNIFICANCE_LEVEL = 0.05
_TIMES_HALF_WIDTH = 1.1915876  # half the width of a 95 % interval in units of half a 90 % one: 1.959964 / 1.644854
_TOO_LOW = 1e-5  # a shift that would be written as 0
_MOST_NAMED, _MOST_WORST = 5, 3
_HIDDEN = 2  # times the bias of all rows, from which the average hides a segment


def summary_sentence(model, n_rows):
    """Return what is wrong with a model's scores, and whether that is more than noise."""
    error, test = model["errors"][0], model["test"]
    shift = _is_sure(model["score_minus_frequency"])
    pvalue = pvalue_words(test["pvalue"], test["smallest_pvalue"])
    of = " of the predicted class" if "classes" in model else ""
    percent = _decimals(error["high"])
    found = "more than noise" if test["rejects"] else "no more than noise can be"
    named = shift or _is_sure(model["over_confidence"])
    apart = "; beyond what the first sentence says, the rows show no miscalibration" * (
        named and not test["rejects"]
    )
    bias = abs(model["score_minus_frequency"]["estimate"])
    below = (
        shift
        and test["rejects"]
        and float(percent(bias)) > float(percent(error["estimate"]))
    )
    words = [
        _direction(model, is_shift=shift),
        f"The mean absolute calibration error{of} is {percent(error['estimate'])} % ({percent(error['low'])} to "
        f"{percent(error['high'])} %), {found} at n = {n_rows:,.0f} ({pvalue}){apart}.",
        "It is below the average because noise is taken away from it."
        if below
        else None,
        class_sentence(model["classes"]) if "classes" in model else None,
    ]
    return " ".join(filter(None, words))


def comparison_sentence(models):
    """Return which of two models has the lower Brier score, and by how much; no words for one model."""
    first, lines = models[0]["name"], []
    for other in models[1:]:
        name, (estimate, low, high) = other["name"], _limits(other["brier_difference"])
        if low <= 0 <= high:
            lines.append(
                f"The rows do not tell the Brier scores of {first} and {name} apart (difference {abs(estimate):.4f}, "
                f"{low:+.4f} to {high:+.4f})."
            )
            continue
        better, worse = (first, name) if estimate > 0 else (name, first)
        low, high = sorted((abs(low), abs(high)))
        lines.append(
            f"{better} has a lower Brier score than {worse}, by {abs(estimate):.4f} ({low:.4f} to {high:.4f})."
        )
    return " ".join(lines)


def segment_sentence(rows):
    """Return how many segments are off, and how many a calibrated model would show by chance."""
    n = len(rows)
    if n == 1:
        return "There is one segment only."
    significant = [row for row in rows if row["adjusted_pvalue"] < SIGNIFICANCE_LEVEL]
    alone = sum(row["pvalue"] < SIGNIFICANCE_LEVEL for row in rows)
    words = (
        f"{alone or 'None'} of {n} segments {'has' if alone < 2 else 'have'} scores that are too high or too low by "
        f"more than chance allows for one segment (p\u00a0<\u00a0.05). By chance alone a calibrated model would have "
        f"about {SIGNIFICANCE_LEVEL * n:.2g} such segments."
    )
    if not alone:
        return words
    if not significant:
        return f"{words} After the adjustment for their number, none is left."
    names = listed([row["segment"] for row in significant])
    remain = "remains" if len(significant) == 1 else "remain"
    return f"{words} After the adjustment for their number, {len(significant)} {remain}: {names}."


def class_sentence(rows):
    """Return which class has the largest error, and how many have one that is more than noise."""
    off = [row for row in rows if row["adjusted_error_pvalue"] < SIGNIFICANCE_LEVEL]
    if not off:
        return f"No class of {len(rows)} has an error that is more than noise."
    first = off[0]
    percent, bias, size = _decimals(first["high"] or 0.0), "", ""
    if first["adjusted_pvalue"] < SIGNIFICANCE_LEVEL:
        side = "high" if first["bias"] > 0 else "low"
        bias = f"; its probabilities are too {side} by {percent(abs(first['bias']))} points on average"
    if first["estimate"] is not None:
        size = f": {percent(first['estimate'])} %, averaged over all rows, also those of other classes"
    has = "has" if len(off) == 1 else "have"
    others = f": {listed([row['class'] for row in off])}" if len(off) > 1 else ""
    return (
        f"{share_of(off, rows).capitalize()} classes {has} an error that is more than noise{others}. The largest is "
        f"that of class {first['class']}{size}{bias}."
    )


def rest_sentence(rows):
    """Return what the classes that a page leaves out have in common."""
    errors = [row["estimate"] for row in rows if row["estimate"] is not None]
    off = sum(row["adjusted_error_pvalue"] < SIGNIFICANCE_LEVEL for row in rows)
    between = (
        f" have errors from {100 * min(errors):.1f} to {100 * max(errors):.1f} %"
        if errors
        else ""
    )
    verb = "is" if off == 1 else "are"
    return f"The other {len(rows)} classes{between}; {off or 'none'} of these {verb} more than noise."


def decision_sentence(row):
    """Return whether scores are of use at a threshold, and what their miscalibration costs there."""
    benefit, against, cost = (
        row[key]
        for key in ("net_benefit", "against_treating_all", "cost_of_miscalibration")
    )
    other = "none" if benefit["estimate"] < against["estimate"] else "all rows"
    if benefit["low"] > 0 and against["low"] > 0:
        words = "the scores are better than treating all rows and than treating none"
    elif benefit["high"] < 0 or against["high"] < 0:
        words = f"treating {other} would be better than following the scores"
    else:
        words = f"the rows do not show that the scores are better than treating {other}"
    words = f"At {100 * row['threshold']:g} % {words}"
    if cost is None:
        return f"{words}."
    if cost["low"] <= 0:
        return f"{words}; what miscalibration costs there is within noise."
    loss, low, high = (f"{100 * limit:.2f}" for limit in _limits(cost))
    return f"{words}; miscalibration costs {loss} ({low} to {high}) true positives in 100 rows."


def nothing_to_gain(rows):
    """Return that no recalibrator helps, and what the best of them would save."""
    before, best = _best(rows)
    saved, low, high = _gains(best, before["log_loss"])
    return (
        f"None of {len(rows) - 1} recalibrators gains more than noise. The best, {best['name']}, would save "
        f"{saved:+.2f} % of the log-loss ({low:+.2f} to {high:+.2f} %)."
    )


def certificate_sentence(rows, of_classes):
    """Return one row of the promises as a sentence, that of 10 bins if there is one."""
    rows = [row for row in rows if row["conditional"] < 1]
    if not rows:
        return None
    row = next((row for row in rows if row["n_bins"] == 10), rows[-1])
    event = (
        "the frequency with which the predicted class is right"
        if of_classes
        else "the frequency of the event"
    )
    return (
        f"For example, with {row['n_bins']} bins each recalibrated probability lies within "
        f"{100 * row['conditional']:.2f} percentage points of {event} in its bin."
    )


def advice_words(model, segment=None):
    """Return the two paragraphs that follow the errors: segments and changes; advice, gain and cost."""
    return " ".join([*worst_segments(model, segment), *changes(model)]), " ".join(
        advice(model, segment)
    )


def worst_segments(model, segment):
    """Return which segments are off, the worst by name, and whether the average hides them."""
    rows = model["segments"]
    off = [row for row in rows if row["adjusted_pvalue"] < SIGNIFICANCE_LEVEL]
    if not off:
        return []
    biased = [row for row in off if row["bias_low"] > 0 or row["bias_high"] < 0]
    biased.sort(key=lambda row: -abs(row["bias"]))
    named = "; ".join(
        f"{row['segment']} {_bias(row['bias'])}" for row in biased[:_MOST_WORST]
    )
    worst = (
        ("" if not named else f": {named}")
        if len(biased) < 2
        else f". The worst: {named}"
    )
    verb = "is" if len(off) == 1 else "are"
    words = [
        f"By {segment}, {share_of(off, rows)} segments {verb} off by more than chance{worst}."
    ]
    overall = model["score_minus_frequency"]["estimate"]
    if biased and (
        abs(biased[0]["bias"]) > _HIDDEN * abs(overall)
        or any(row["bias"] * overall < 0 for row in biased)
    ):
        words.append(
            f"The average of all rows ({100 * overall:+.1f} points) hides how they differ."
        )
    return words


def changes(model):
    """Return since when the calibration of all rows, or of the segments that changed most clearly, is another one."""
    rows = model["changes"]
    # What changed most clearly: all rows together, or some segments.
    rows = (
        [row for row in rows if row["group"] is not None]
        if rows and rows[0]["group"] is not None
        else rows[:1]
    )
    return [
        f"Since {row['since']} {'the scores' if row['group'] is None else 'the scores of ' + row['group']} are "
        f"{_bias(row['bias_after'])} on average; before, they were {_bias(row['bias_before'])}."
        for row in rows[:_MOST_WORST]
    ]


def advice(model, segment):
    """Return what to do, what it gains and what it costs."""
    found = model["advice"]
    since = f" on the rows since {found['since']}" if found["since"] else ""
    if not model["recalibrators"]:
        return ["There are too few rows of one class to recalibrate."]
    if found["kind"] == "none":
        before, best = _best(model["recalibrators"])
        most = max(_gains(best, before["log_loss"])[2], 0.0)
        most = "" if since else f" (at most {most:.1g} % of the log-loss)"
        return [
            f"Leave the scores as they are: no recalibrator gains more than noise{since}{most}."
        ]
    name = found["recalibrator"]
    if name == "PriorShift" and "classes" in model:
        what = f"Shift the class frequencies{since} with PriorShift()"
    elif name == "PriorShift":
        what = (
            f"Shift the base rate{since}: PriorShift() adds one number to all log-odds"
        )
    elif found["segments"]:
        own = (
            "needs a map of its own"
            if len(found["segments"]) == 1
            else "need maps of their own"
        )
        whose = f"{listed(found['segments'])} {own}; the other segments share one"
        if len(found["segments"]) >= len(model["segments"]) - 1:
            whose = "each segment needs a map of its own"
        what = f"Recalibrate by {segment}{since} with {name}: {whose}"
    else:
        what = f"Recalibrate{since} with {name}()"
    gain, low, high = (f"{share:.2g}" for share in _gains(found, found["log_loss"]))
    unit = 10 ** (
        len(str(found["rows_needed"])) - 2
    )  # two digits of the number are enough
    needed = -(-found["rows_needed"] // unit) * unit
    return [
        f"{what}.",
        f"On rows that it was not fitted on, it lowers the log-loss by {gain} % ({low} to {high} %).",
        f"A fit to about {needed:,} labelled rows keeps nine tenths of that gain. Fit it again when the model changes "
        "or a monitor (skcalib.monitoring) raises an alarm.",
    ]


def monitor_sentence(rows):
    """Return when monitors raised an alarm, and when the change is likely to have been."""
    off = [row for row in rows if row["alarm"]]
    if not off:
        return "No monitor raised an alarm."
    named = "; ".join(
        f"{row['group']} in {row['alarm_time']}, the change at about {row['change_time']}"
        for row in off[:_MOST_WORST]
    )
    more = f"; and {len(off) - _MOST_WORST} more" * (len(off) > _MOST_WORST)
    return f"{len(off)} of {len(rows)} monitors raised an alarm: {named}{more}."


def pvalue_words(pvalue, smallest=0.0):
    """Return a p-value as papers print it, p = .31 or p < .001; the smallest that resampling can give is "at most"."""
    if pvalue < 0.001:
        return "p < .001"
    digits = (
        3 if pvalue < 0.0095 or 0.045 <= pvalue < 0.055 else 2
    )  # on which side of the level it lies
    relation = "≤" if pvalue <= smallest else "="
    return f"p {relation} " + f"{pvalue:.{digits}f}".removeprefix("0")


def _limits(interval):
    return interval["estimate"], interval["low"], interval["high"]


def _best(rows):
    """Return the candidate that changes nothing, and the best of the others."""
    before = next(row for row in rows if row["name"] == "as it is")
    return before, next(row for row in rows if row is not before)


def _gains(row, before):
    """Return a gain and its interval in percent of the log-loss before."""
    return [100 * row[key] / (before or 1) for key in ("gain", "gain_low", "gain_high")]


def _is_sure(interval):
    """Return whether a mean is above or below 0 at the level of the test, of which the interval is wider a level."""
    half = (interval["high"] - interval["low"]) / 2
    return abs(interval["estimate"]) > max(_TIMES_HALF_WIDTH * half, _TOO_LOW)


def _direction(model, *, is_shift):
    """Return one sentence on the direction in which the scores are off on average, if they are."""
    bias, sure = model["score_minus_frequency"], model["over_confidence"]
    if "classes" in model:
        if not is_shift:
            return "On average the model is as sure of its predicted classes as it should be."
        word = "sure of" if bias["estimate"] > 0 else "cautious about"
        return (
            f"The model is too {word} its predicted classes by {_points(bias)}: on average their probability is "
            f"{100 * model['mean_score']:.1f} %, and {100 * model['event_frequency']:.1f} % of them are right."
        )
    if is_shift:
        word = "high" if bias["estimate"] > 0 else "low"
        return f"Scores are too {word} by {_points(bias, 'on average ')}."
    if _is_sure(sure):
        word = "extreme" if sure["estimate"] > 0 else "cautious"
        often = "less" if sure["estimate"] > 0 else "more"
        return f"Scores are too {word}: the likelier outcome happens {often} often than predicted, by {_points(sure)}."
    return "Scores are right on average."


def share_of(some, rows):
    """Return how many of the rows some are, in words that a noun follows."""
    return (
        f"all {len(rows)}"
        if len(some) == len(rows) > 1
        else f"{len(some)} of {len(rows)}"
    )


def listed(names, most=_MOST_NAMED):
    """Return the first of some names, and how many more there are."""
    return ", ".join(names[:most]) + f" and {len(names) - most} more" * (
        len(names) > most
    )


def _decimals(largest):
    """Return a function that writes shares as percentages, with as many digits as the largest of them needs."""
    size = abs(largest)
    digits = next(
        (
            k
            for k, limit in enumerate((0.0095, 0.00095, 0.000095), start=1)
            if size >= limit
        ),
        4,
    )
    return lambda share: f"{100 * share:.{1 if size == 0 else digits}f}"


def _points(interval, when=""):
    low, high = sorted((abs(interval["low"]), abs(interval["high"])))
    shown = _decimals(max(low, high))
    return f"{shown(abs(interval['estimate']))} percentage points {when}({shown(low)} to {shown(high)})"


def _bias(bias):
    return f"too {'high' if bias > 0 else 'low'} by {100 * abs(bias):.1f} points"
