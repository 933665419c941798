"""The advice of a report in sentences."""

from skcalib._report._claims import claim
from skcalib._report._phrases import best_of, gains, listed
from skcalib._verdicts import interval_words, rounded, rounded_up


def advice(words, is_usable):
    """Return what to do, what it gains and what it costs."""
    model = words.model
    found = model["advice"]
    since = ""
    if found["since"]:
        since = f" on the samples since {found['since']}"
    if not model["recalibrators"]:
        return [claim("too few to recalibrate")]
    if found["needs_cluster"] is not None:
        return [claim("cluster first", column=found["needs_cluster"])]
    if found["kind"] == "none":
        before, best = best_of(model["recalibrators"])
        most = max(gains(best, before["log_loss"])[2], 0.0)
        if since or most >= 100:
            most = ""
        else:
            most = f" (it may save at most {rounded(most, 2)} % of the log-loss)"
        name = "leave" if is_usable else "no recalibrator"
        return [claim(name, subject=words.subject, since=since, most=most)]
    size = interval_words(*gains(found, found["log_loss"]), unit="%")
    steps = [_what_to_do(words, found, since, is_usable), claim("gain", size=size)]
    if found["rows_needed"] is not None:
        simpler = found["simpler"]
        if simpler == "as it is":
            simpler = f"the unchanged {words.subject}"
        number = rounded_up(found["rows_needed"])
        fewest = rounded_up(found["rows_needed_low"])
        if fewest != number:
            number = f"{fewest} to {number}"
        steps.append(claim("samples needed", number=number, simpler=simpler))
    return steps


def _what_to_do(words, found, since, is_usable):
    """Return the step that is advised; an option where the scores can be used."""
    name = found["recalibrator"]
    named = {"since": since, "Shift": "Shift", "Recalibrate": "Recalibrate"}
    if is_usable:
        named["Shift"] = "Optional: shift"
        named["Recalibrate"] = "Optional: recalibrate"
    if name == "PriorShift" and words.is_of_classes:
        return claim("shift classes", **named)
    if name == "PriorShift":
        return claim("shift", **named)
    if not found["segments"]:
        return claim("recalibrate", name=name, **named)
    n_segments = sum(
        row["column"] == found["column"] for row in words.model["segments"]
    )
    has_others = len(found["segments"]) < n_segments
    if found["others"] == "unchanged" and has_others:
        inner = name.split("(")[1]
        each = "each with its own fit"
        if len(found["segments"]) == 1:
            each = "fitted to its samples"
        return claim(
            "recalibrate segments",
            segments=listed(found["segments"]),
            name=inner,
            each=each,
            subject=words.subject,
            **named,
        )
    needs = "needs a map of its own"
    if len(found["segments"]) > 1:
        needs = "need maps of their own"
    whose = f"{listed(found['segments'])} {needs}; the other segments share one"
    if len(found["segments"]) >= n_segments - 1:
        whose = "each segment needs a map of its own"
    return claim(
        "recalibrate by segment",
        column=found["column"],
        name=name,
        whose=whose,
        **named,
    )
