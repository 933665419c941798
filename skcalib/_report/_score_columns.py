"""The score columns of a file as probabilities: of any scale, of several classes or of
one event.
"""

from itertools import chain

import numpy as np

from skcalib._input.scales import probabilities_on
from skcalib._input.scores import check_scores
from skcalib._report._checks import checked_column, rescaled
from skcalib._report._columns import event_column, shown
from skcalib._report._error import ReportError
from skcalib._report._sources import literal
from skcalib._report._values import refuse_unclear_scale
from skcalib._verdicts import rounded

_TELLING_ROWS = 20  # with fewer rows it may be chance that all scores are large
_CONFIDENT = 0.5  # no probability of the more probable of two classes is smaller
# A smaller error of a row's sum is that of single precision, and gets no note.
_WORTH_A_NOTE = 1e-5


def to_probabilities(columns, models, classes, reading, percentages):
    """Turn the score columns of a scale into probabilities, in place, and return the
    lines of Python that do the same; without a scale raise unless they can be
    probabilities.

    `columns` are arrays by name, `models` maps a model's name to its columns' names;
    the columns `percentages` have been divided by 100 already.
    """
    names_of_models = list(dict.fromkeys(models.values()))
    names = list(dict.fromkeys(chain.from_iterable(names_of_models)))
    for name in names:
        if reading.scale is None:
            is_percentage = name in percentages
            refuse_unclear_scale(columns[name], name, is_percentage=is_percentage)
    if reading.scale in (None, "probability"):
        return []
    # Logits of K classes make one probability together.
    groups = [(name,) for name in names] if classes is None else names_of_models
    if reading.scale == "percent":
        _refuse_fractions(
            {g: columns[g[0]] for g in groups if len(g) == 1}, percentages
        )
    lines = []
    for group in groups:
        if reading.scale == "percent" and percentages.issuperset(group):
            continue
        scores = np.column_stack([columns[name] for name in group])
        if len(group) == 1:
            scores = scores[:, 0]
        probabilities = checked_column(
            shown(group), probabilities_on, reading.scale, scores, name="scores"
        )
        for name, column in zip(group, np.atleast_2d(probabilities.T), strict=True):
            columns[name] = column
        lines.append(_scale_code(reading.scale, group))
    return lines


def _refuse_fractions(scores, percentages):
    """Raise if some columns of percentages hold only numbers up to 1, which may be
    fractions, while others hold larger ones. Columns in `percentages`, whose cells have
    percent signs, are not checked; `scores` are arrays by a tuple of one name.
    """
    largest = {}
    for (name,), column in scores.items():
        if name not in percentages and np.isfinite(column).any():
            largest[name] = np.nanmax(column)
    fractions = [name for name, value in largest.items() if value <= 1]
    others = [name for name, value in largest.items() if value > 1]
    if fractions and others:
        raise ReportError(
            f"--scores percent is for all columns, but {fractions[0]!r} goes up to"
            f" {largest[fractions[0]]:.6g} and {others[0]!r} up to"
            f" {largest[others[0]]:.6g}: write them on one scale."
        )


def _scale_code(scale, names):
    """Return the line of Python that turns columns of a scale into probabilities."""
    chosen = f"df[{literal(names[0])}]"
    if len(names) > 1:
        chosen = f"df[{literal(list(names))}]"
    formula = {
        "percent": f"{chosen} / 100",
        "logit": f"1 / (1 + np.exp(-{chosen}))",
        "odds": f"1 - 1 / (1 + {chosen})",
        "decimal-odds": f"1 / {chosen}",
    }[scale]
    if scale == "logit" and len(names) > 1:
        exponentials = f"np.exp({chosen}.sub({chosen}.max(axis=1), axis=0))"
        formula = f"{exponentials}.pipe(lambda e: e.div(e.sum(axis=1), axis=0))"
    return f"{chosen} = {formula}"


def one_event(columns, models, classes, named_labels, normalise):
    """Return the models of two classes as models of one event, the labels of the event
    and of the non-events, and lines of Python; the scores of a row must sum to 1.

    The columns of the event are divided by the sum of the row, in place.
    """
    event = event_column(classes, *named_labels)
    lines = []
    event_models = {}
    for model, names in models.items():
        scores = np.column_stack([columns[name] for name in names])
        scores, worst = rescaled(scores, names, normalise)
        name = names[event]
        columns[name] = scores[:, event]
        event_models[model] = (name,)
        if worst > _WORTH_A_NOTE:
            pair = f"df[{literal(list(names))}].sum(axis=1)"
            lines.append(f"df[{literal(name)}] /= {pair}")
    return event_models, (classes[event], named_labels[1]), lines


def scores_by_model(columns, models, classes, notes, normalise=False):
    """Return a dict of the checked scores of each model, (n,) or (n, K) with `classes`.

    `models` holds the names of the score columns of each model: one, or one per class.
    Rows that do not sum to 1, because the file holds rounded numbers, are divided by
    their sum; `normalise` allows sums that are further off. Notes for the page are
    appended to `notes`.
    """
    scores = {}
    deviation = 0.0  # the largest distance of a row's sum from 1
    for model, names in models.items():
        checked = []
        for name in names:
            # Errors begin with the column's name, and call its values "scores".
            column = checked_column(name, check_scores, columns[name], name="scores")
            checked.append(column[:, 0])
        if classes is None:
            scores[model] = checked[0]
            if len(checked[0]) >= _TELLING_ROWS and checked[0].min() >= _CONFIDENT:
                notes.append(
                    f"No score of {names[0]!r} is below 0.5: if it is the probability"
                    " of the predicted class, give that of the event instead."
                )
            continue
        scores[model], worst = rescaled(np.column_stack(checked), names, normalise)
        deviation = max(deviation, worst)
    if deviation > _WORTH_A_NOTE:
        notes.append(
            "The scores of each row were divided by their sum, which differed from 1 by"
            f" at most {rounded(deviation, 1)}."
        )
    return scores
