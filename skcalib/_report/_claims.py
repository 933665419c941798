"""The sentences of a summary, by name.

The numbers of a report list the names of those that it prints.
`tests/test_report_claims.py` has for each of them worlds in which it is true and worlds
in which it is false.
"""

from typing import NamedTuple

CLAIMS = {
    # What is worst, and what to do.
    "do not use the segment": (
        "Do not use the {subject} of {segment} as they are: {size}{since}."
    ),
    "nor these segments": "Nor those of {segments}.",
    "check more segments": "Check {segments} before use.",
    "check the segment": (
        "Check {segment} before use: its {subject} are {size}{since}."
    ),
    "others are fine": "The other {others} fine to within {limit} points.",
    "others cannot be told": "For {which} the samples cannot tell{needed}.",
    "segments cannot be told": (
        "For {number} of {n} segments the samples cannot tell{needed}."
    ),
    "do not use": "Do not use the {subject} as they are: {size} on average{since}.",
    "check": (
        "The {subject} are {size} on average{since}; {n} samples do not tell whether"
        " this is more than {tolerance} points."
    ),
    "do not take at face value": (
        "Do not take single {subject} at face value: their mean absolute calibration"
        " error is {size}{direction}."
    ),
    "check the error": (
        "Check single {subject} before use: their mean absolute calibration error is"
        " between {low} and {high} points."
    ),
    "usable": (
        "The {subject} can be used as they are: right on average to within {limit}"
        " points, with a mean absolute calibration error of at most {error} points."
    ),
    "right on average": (
        "The {subject} are right on average to within {limit} points. Whether single"
        " ones are, {n} samples cannot tell: the mean absolute calibration error may be"
        " {error} points{needed}."
    ),
    "cannot tell": (
        "{n} samples cannot tell whether the {subject} are right on average to within"
        " {tolerance} points: the bias lies between {low} and {high} points. Keep the"
        " {subject} until {needed} samples are at hand."
    ),
    "repeated key": (
        "This holds only if samples of the same {column} are independent; if they are"
        " not, say --cluster {column}."
    ),
    "tolerance too large": (
        "Events are rarer ({frequency}) than this tolerance can judge: say --tolerance"
        " {smaller}."
    ),
    # The evidence.
    "means": "{What} is {mean}, and {frequency} {of}{bias}.",
    "error": (
        "The mean absolute calibration error{of} is {size}; the test of calibration"
        " gives {pvalue}."
    ),
    "nothing but the shift": (
        "Apart from this shift, no miscalibration is detectable."
    ),
    "below the bias": "It is below the bias because label noise is subtracted from it.",
    "too extreme": (
        "The likelier outcome happens less often than predicted, by {size}: the scores"
        " are too extreme."
    ),
    "too cautious": (
        "The likelier outcome happens more often than predicted, by {size}: the scores"
        " are too cautious."
    ),
    "classes off": (
        "{share} classes {have} an error that chance does not explain{names}. The"
        " largest is that of class {first}{size}{bias}."
    ),
    "no class off": "No class of {n} has an error that chance does not explain.",
    "segments off": "By {column}, {share} segments {are} off{names}.",
    "average hides": (
        "The average of all samples ({bias} points) hides how they differ."
    ),
    "changed": (
        "Since {since} {whose} are {after} on average; before, they were {before}."
    ),
    "trend": (
        "From {first} to {last} the bias has moved by {size} ({pvalue} for no trend)."
    ),
    "dependent": (
        "The errors of samples that follow each other in time are alike"
        " (autocorrelation {size}): intervals are too short and p-values too small."
        " Samples of one day or one case belong together: say --cluster."
    ),
    # The advice.
    "too few to recalibrate": (
        "There are too few samples of one class to recalibrate."
    ),
    "cluster first": (
        "No recalibration is advised before --cluster {column} is given: its values"
        " repeat, so that a map would be judged on samples of the same {column} that it"
        " was fitted to."
    ),
    "leave": (
        "Leave the {subject} unchanged: no recalibrator is measurably better{since}"
        "{most}."
    ),
    "no recalibrator": (
        "No recalibrator is measurably better{since}{most}, so none is advised."
    ),
    "shift classes": "{Shift} the class frequencies{since} with PriorShift().",
    "shift": (
        "{Shift} the base rate{since}: PriorShift() adds one number to all log-odds."
    ),
    "recalibrate": "{Recalibrate}{since} with {name}().",
    "recalibrate segments": (
        "{Recalibrate} {segments}{since} with {name}(), {each}; the other segments keep"
        " their {subject}."
    ),
    "recalibrate by segment": (
        "{Recalibrate} by {column}{since} with {name}: {whose}."
    ),
    "gain": (
        "On held-out samples this lowers the log-loss by {size}. Fit it again when the"
        " model changes or a monitor (skcalib.monitoring) raises an alarm."
    ),
    "samples needed": (
        "It takes about {number} labelled samples to keep nine tenths of what it gains"
        " over {simpler}."
    ),
}


class Claim(NamedTuple):
    """A sentence, and its name in `CLAIMS`."""

    name: str
    text: str


def claim(name, /, **words):
    """Return a sentence with these words in it."""
    text = CLAIMS[name].format(**words)
    return Claim(name, text[0].upper() + text[1:])
