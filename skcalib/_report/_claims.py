"""What a report claims: the sentences of its summary and sections, by name.

The JSON document of a report lists the names of those that its summary prints, as
"claims". `benchmarks.checks.sentence_truth` simulates worlds in which each of them is
true and worlds in which it is false.
"""

import re

_ONE_POINT = re.compile(r"(?<![\d.,])1 points")

CLAIMS = {
    # What is worst, and what to do.
    "do not use the segment": (
        "Do not use the {subject} of {segment} as they are: they are {size}{since}."
    ),
    "nor these segments": "Nor should you use those of {segments}.",
    "check more segments": "Also check these before use: {segments}.",
    "check the segment": (
        "Check the {subject} of {segment} before use: they are {size}{since}."
    ),
    "others are fine": "The other {others} fine to within {limit} points.",
    "others cannot be told": (
        "{Others} shown to be off, but the samples do not show whether {which}"
        " right to within {tolerance} points{needed}."
    ),
    "segments cannot be told": (
        "{none}for {number}, the data are inconclusive{needed}."
    ),
    "periods cannot be told": (
        "{none}for {number}, the data are inconclusive{needed}."
    ),
    "do not use": (
        "Do not use the {subject} as they are: they are {size} on average{since}."
    ),
    "check": (
        "The {subject} are {size} on average{since}; {n} samples are too few to tell"
        " whether this is more than {tolerance} points{needed}."
    ),
    "do not take at face value": (
        "Do not use the {subject} as they are: their mean absolute calibration error"
        " is {size}{direction}."
    ),
    "slope": (
        "The calibration slope is {slope}: {apart}high {subject} are {high} and low"
        " ones {low}."
    ),
    "check the error": (
        "Check the {subject} before use: their mean absolute calibration error is"
        " between {low} and {high} points ({level}){needed}."
    ),
    "usable": (
        "The {subject} can be used as they are: they are right on average to within"
        " {limit} points, with a mean absolute calibration error of at most {error}"
        " points."
    ),
    "right on average": (
        "The {subject} are right on average to within {limit} points. {n} samples are"
        " too few to tell whether they are right at every score: the mean absolute"
        " calibration error may be {tolerance} points or more{needed}."
    ),
    "cannot tell": (
        "{n} samples are too few to tell whether the {subject} are right on average to"
        " within {tolerance} points: {limits}. {then}."
    ),
    # What else may do harm.
    "impossible": "{happened} Rely on the Brier score.",
    "period off": "In {period}, the {subject} are {size}{others}.",
    "few events": (
        "Only {number} of {n} samples {what}: all numbers here are rough, and a few"
        " more such samples could change them considerably."
    ),
    "late labels": (
        "Before refitting, look for the cause: late or missing labels, or a change in"
        " the population, in the product or treatment, in the data, or in the"
        " definition of the event."
    ),
    "repeated key": (
        "No verdict yet: {n} samples share {values} values of {column}. Run the report"
        " again with --cluster {column}."
    ),
    "tolerance too large": (
        "The {subject} are {bias}{ratio}. {What} are rare ({frequency}), so an"
        " error of {tolerance} points would be large in comparison: use a smaller"
        " tolerance, such as --tolerance {smaller} (in points)."
    ),
    # The evidence.
    "means": "{What} is {mean}, and {frequency} {of}{bias}.",
    "error": (
        "The mean absolute calibration error{of} is {size}; the test of calibration"
        " gives {pvalue}."
    ),
    "error of unknown uncertainty": (
        "The mean absolute calibration error is estimated at {size} points; its"
        " uncertainty can be estimated only with --cluster {column}."
    ),
    "nothing but the shift": (
        "Apart from this shift, no miscalibration is detectable."
    ),
    "below the bias": (
        "The mean absolute calibration error is below the bias because label noise is"
        " subtracted from it."
    ),
    "too extreme": (
        "The likelier outcome happens less often than predicted, by {size}: the scores"
        " are too extreme."
    ),
    "too cautious": (
        "The likelier outcome happens more often than predicted, by {size}: the scores"
        " are too cautious."
    ),
    "classes off": (
        "{share} classes {have} an error larger than chance explains{names}. The"
        " largest is that of class {first}{size}{bias}."
    ),
    "no class off": "None of the {n} classes has an error larger than chance explains.",
    "segments off": "By {column}, {share} groups {are} off{names}.",
    "average hides": (
        "The average over all samples ({bias}) hides the differences between groups."
    ),
    "changed": (
        "From {since} on, {whose} are {after} on average; before, they were {before} on"
        " average."
    ),
    "trend": (
        "From {first} to {last}, a straight line fitted to the bias {rises} by {size};"
        " the test of no trend gives {pvalue}."
    ),
    "dependent": (
        "Consecutive samples have similar errors: intervals are too short by a factor"
        " of about {factor}, and p-values are too small. If samples of one day or one"
        " case belong together, name their column with --cluster."
    ),
    # The advice.
    "too few to recalibrate": (
        "There are too few samples of one class to recalibrate."
    ),
    "cluster first": (
        "No recalibration is recommended without --cluster {column}: values of {column}"
        " repeat, so a recalibrator would be judged on samples that share their"
        " {column} with those it was fitted to."
    ),
    "leave": (
        "Leave the {subject} unchanged: no recalibrator is measurably better{since}"
        "{most}."
    ),
    "no recalibrator": (
        "No recalibrator is measurably better{since}{most}, so none is recommended."
        " More labelled samples may change this."
    ),
    "shift classes": "{Shift} the class frequencies with PriorShift(){since}.",
    "shift": (
        "{Shift} the base rate with PriorShift(){since}: it adds the same number to all"
        " log-odds."
    ),
    "recalibrate": "{Recalibrate} with {name}(){since}.",
    "recalibrate segments": (
        "{Recalibrate} {segments} with {name}(), {each}; the other groups keep their"
        " {subject}."
    ),
    "recalibrate by segment": (
        "{Recalibrate} by {column} with {name}{since}: {whose}."
    ),
    "gain": (
        "On held-out samples{which}, {clip}the log-loss is lower by {size}{brier}. Fit"
        " the recalibrator again when the model changes or a monitor"
        " (skcalib.monitoring) raises an alarm."
    ),
    "error left fine": (
        "{This} leaves a mean absolute calibration error of at most {limit}"
        " points{suggested}."
    ),
    "error left": (
        "{This} leaves a mean absolute calibration error of {size}, more than the"
        " tolerance of {tolerance} points{better}."
    ),
    "error left unclear": (
        "{This} leaves a mean absolute calibration error of {size}, which may"
        " exceed the tolerance of {tolerance} points{better}. To find out, run the"
        " report on the recalibrated scores of new samples."
    ),
    "samples needed": (
        "About {number} labelled samples are needed to achieve nine tenths of its"
        " possible gain over {simpler}."
    ),
    # The sections of the page.
    "not told apart": (
        "There is no case for replacing {first} with {name}: the difference between"
        " their Brier scores, {size}, is not detectable."
    ),
    "worse than the first": (
        "Keep {first} rather than {name}: the Brier score of {name} is higher (worse)"
        " by {size}."
    ),
    "better than the first": (
        "Prefer {name} to {first}: its Brier score is lower (better) by {size}."
    ),
    "one segment": "There is only one group.",
    "segments": "{counts}.",
    "periods": "{counts}.",
    "other classes": (
        "The other {n} classes{between}; {off} more than chance explains."
    ),
    "better than both": (
        "At a threshold of {threshold} %, acting on the scores is better than treating"
        " all samples or none{cost}."
    ),
    "worse than one": (
        "At a threshold of {threshold} %, treating {other} would be better than acting"
        " on the scores{cost}."
    ),
    "not better than one": (
        "At a threshold of {threshold} %, the samples do not show that acting on the"
        " scores is better than treating {other}{cost}."
    ),
    "nothing to gain": (
        "No recalibrator is measurably better. The best, {name}, would"
        " {change} the log-loss by {size}{clip}."
    ),
    "guarantee": (
        "For example, with {n_bins} bins, each recalibrated probability lies within"
        " {epsilon} points of {event} in its bin."
    ),
    "no alarm": "No monitor raised an alarm.",
    "alarm": "{which} raised an alarm{names}.",
}


class Claim(str):
    """A sentence that knows its name in `CLAIMS` and the words that were put into it.

    Attributes
    ----------
    name : str
        The key in `CLAIMS`.
    words : dict of str
        What stands in its gaps.
    """

    __slots__ = ("name", "words")

    @property
    def text(self):
        """The sentence alone."""
        return str(self)


def claim(name, /, **words):
    """Return a sentence of a report as a `Claim`: the template ``CLAIMS[name]``, whose
    placeholders such as "{size}" are replaced by the keyword arguments.
    """
    text = CLAIMS[name].format(**words)
    # A sentence begins with a capital, but the name of a model stays as the user spells
    # it.
    if not CLAIMS[name].startswith("{name}"):
        text = text[0].upper() + text[1:]
    text = _ONE_POINT.sub("1 point", text)  # for "1 points"
    sentence = Claim(text)
    sentence.name = name
    sentence.words = words
    return sentence
