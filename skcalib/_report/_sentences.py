"""What the numbers of a report say, in sentences that a person can act on."""

__all__ = ["SIGNIFICANCE_LEVEL", "comparison_sentence", "pvalue_words", "segment_sentence", "summary_sentence"]

SIGNIFICANCE_LEVEL = 0.05


def summary_sentence(model, n_rows):
    """Return what is wrong with a model's scores, whether that is more than noise, and what to do."""
    error, test = model["errors"][0], model["test"]
    found = "more than noise" if test["rejects"] else "no more than noise can be"
    pvalue = pvalue_words(test["pvalue"], test["smallest_pvalue"])
    words = [
        _direction(model),
        f"The calibration error is {_percent(error['estimate'])} ({_percent(error['low'])[:-2]} to "
        f"{_percent(error['high'])}), {found} at n = {n_rows:,.0f} ({pvalue}).",
        _advice(model),
    ]
    return " ".join(filter(None, words))


def comparison_sentence(models):
    """Return which of two models has the lower Brier score, and by how much; None for one model."""
    if len(models) < 2:
        return None
    lines = []
    for other in models[1:]:
        difference = other["brier_difference"]
        better, worse = (models[0], other) if difference["estimate"] > 0 else (other, models[0])
        low, high = sorted((abs(difference["low"]), abs(difference["high"])))
        if difference["low"] <= 0 <= difference["high"]:
            lines.append(
                f"The rows do not tell the Brier scores of {models[0]['name']} and {other['name']} apart (difference "
                f"{abs(difference['estimate']):.4f}, {difference['low']:+.4f} to {difference['high']:+.4f})."
            )
        else:
            lines.append(
                f"{better['name']} has a lower Brier score than {worse['name']}, by {abs(difference['estimate']):.4f} "
                f"({low:.4f} to {high:.4f})."
            )
    return " ".join(lines)


def segment_sentence(rows):
    """Return how many segments are off, and how many a calibrated model would show by chance."""
    n = len(rows)
    significant = [row for row in rows if row["adjusted_pvalue"] < SIGNIFICANCE_LEVEL]
    alone = sum(row["pvalue"] < SIGNIFICANCE_LEVEL for row in rows)
    chance = SIGNIFICANCE_LEVEL * n
    words = (
        f"Of {n} segments {alone} {'has' if alone == 1 else 'have'} scores that are too high or too low by more than "
        f"chance allows for one segment (p < .05). About {chance:.2g} of {n} would for a calibrated model."
    )
    if not significant:
        return f"{words} After the adjustment for their number none is left."
    names = ", ".join(row["segment"] for row in significant[:5]) + ", ..." * (len(significant) > 5)
    return f"{words} After the adjustment for their number {len(significant)} of them remain: {names}."


def pvalue_words(pvalue, smallest=0.0):
    """Return a p-value as papers print it, p = .31 or p < .001; the smallest that resampling can give is "at most"."""
    if pvalue < 0.001:
        return "p < .001"
    digits = 3 if pvalue < 0.0095 else 2
    relation = "≤" if pvalue <= smallest else "="
    return f"p {relation} " + f"{pvalue:.{digits}f}".removeprefix("0")


def _direction(model):
    """Return one sentence on the direction in which the scores are off on average, if they are."""
    bias, sure = model["score_minus_frequency"], model["over_confidence"]
    if not bias["low"] <= 0 <= bias["high"]:
        word = "high" if bias["estimate"] > 0 else "low"
        return f"Scores are too {word} by {_points(bias['estimate'])} on average ({_limits(bias)})."
    if not sure["low"] <= 0 <= sure["high"]:
        word = "extreme" if sure["estimate"] > 0 else "cautious"
        often = "less" if sure["estimate"] > 0 else "more"
        return (
            f"Scores are too {word}: the likelier outcome happens {often} often than predicted, by "
            f"{_points(sure['estimate'])} ({_limits(sure)})."
        )
    return "Scores are right on average."


def _advice(model):
    """Return whether to recalibrate, with what, and what that gains."""
    rows = {row["name"]: row for row in model["recalibrators"]}
    before = rows.get("as it is")
    if before is None:
        return "There are too few rows of one class to recalibrate."
    best = model["recalibrators"][0]
    if best["name"] == "as it is" or best["gain_low"] <= 0:
        return "No recalibrator gains more than noise: leave the scores as they are."
    score, whole, keys = "log-loss", before["log_loss"], ("gain", "gain_low", "gain_high")
    if best["brier_gain_low"] > 0 and before["brier"] > 0:
        score, whole, keys = "Brier score", before["brier"], ("brier_gain", "brier_gain_low", "brier_gain_high")
    gain, low, high = (100 * best[key] / whole for key in keys)
    return f"Recalibrate with {best['name']}: it would lower the {score} by {gain:.2g} % ({low:.2g} to {high:.2g} %)."


def _percent(share):
    return f"{100 * share:.1f} %"


def _points(share):
    return f"{100 * abs(share):.1f} percentage points"


def _limits(interval):
    low, high = sorted((abs(interval["low"]), abs(interval["high"])))
    return f"{100 * low:.1f} to {100 * high:.1f}"
