"""Which columns are the labels and the scores, and which score columns make which
model: one column per model, or one column per class of a model.
"""

import re
from os.path import commonprefix
from typing import NamedTuple

import numpy as np

from skcalib._input.classes import classes_of_names
from skcalib._report._error import ReportError
from skcalib._report._values import names_of_vector

_ID_WORDS = (
    "id|ids|uuid|guid|key|patient|subject|person|participant|user|customer|client|candidate|applicant|borrower|debtor|"
    "account|household|student|player|team|match|game|device|machine|site|hospital|centre|center|session|visit|"
    "question|document|doc|url"
)
_ID = re.compile(
    rf"(?i:(?:.*[\W_])?(?:{_ID_WORDS})(?:[\W_]*(?:id|no|nr|number|name|code))?)|.*[a-z]I[dD]"
)
# Names of columns that are neither labels nor scores.
_OTHER_ROLE = re.compile(
    r"(?i)(?:.*[\W_])?(w|weights?|folds?|split|index|row|nr|no|row names)|unnamed.*"
)


def given_classes(arguments):
    """Return the classes of ``--classes``: separate arguments, or one with commas
    between them.
    """
    if arguments is None:
        return None
    names = arguments
    if len(arguments) == 1:
        names = arguments[0].split(",")
    names = tuple(name.strip() for name in names)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ReportError(
            f"--classes names {twice[0]!r} {names.count(twice[0])} times: name each"
            " class once."
        )
    if len(names) < 2:
        raise ReportError(
            f"--classes names {', '.join(names)}: at least two classes are needed."
        )
    return names


def score_models(specs, classes, header, others, file):
    """Return the score columns of each model, from the options ``--score`` and
    ``--classes``.

    Parameters
    ----------
    specs : sequence of str
        What ``--score`` was given: names of columns, or patterns such as ``p_*`` with
        one column per class.
    classes : tuple of str or None
        What ``--classes`` was given: the classes of the columns, in their order.
    header : list of str
        The columns of the file.
    others : sequence of str
        Columns for other purposes, which no pattern takes.
    file : str
        The name of the file, for messages.

    Returns
    -------
    models : dict of tuple of str
        The score columns of each model: one, or one per class.
    classes : tuple of str or None
        The class that belongs to each column; None means that a column is the
        probability of the event.
    """
    specs = list(dict.fromkeys(specs))
    patterns = [spec for spec in specs if "*" in spec and spec not in header]
    if not patterns and classes is None:
        return {spec: (spec,) for spec in specs}, None
    if not patterns and len(specs) == 1:
        return {specs[0]: (specs[0],)}, classes  # a column of lists
    if not patterns:
        # `named_by` is a part of the error message for another number of columns.
        columns = _by_class(specs, classes, named_by="--score was given")
        name = commonprefix(specs).rstrip("_-. ") or "scores"
        return {name: tuple(columns.values())}, classes
    if len(patterns) < len(specs):
        plain = next(spec for spec in specs if spec not in patterns)
        raise ReportError(
            f"--score {plain} is one column and --score '{patterns[0]}' is one column"
            " per class: use only one kind in a report."
        )
    # For each pattern, a dict from class to column.
    matched = {}
    for pattern in patterns:
        matched[pattern] = _matched(pattern, classes, header, others, file)
    classes = tuple(matched[patterns[0]])
    models = {}
    for pattern, columns in matched.items():
        if set(columns) != set(classes):
            raise ReportError(
                f"--score '{patterns[0]}' and --score '{pattern}' are for different"
                f" classes: {', '.join(classes)} and {', '.join(columns)}."
            )
        models[pattern] = tuple(columns[name] for name in classes)
    return models, classes


def renamed(models, names):
    """Return models, a dict by name, under the names of ``--name``; unchanged without
    any.
    """
    if not names:
        return models
    if len(names) != len(models) or len(set(names)) != len(names):
        raise ReportError(
            f"--name was given {len(names)} times ({shown(names)}) for {len(models)}"
            f" models ({shown(models)}): give each model a different name, in their"
            " order."
        )
    return dict(zip(names, models.values(), strict=True))


def _matched(pattern, classes, header, others, file):
    """Return the names of the columns that match a pattern, by class: the user's
    `classes`, or the text that the star stands for. `others` are columns with another
    role.
    """
    if pattern.count("*") > 1:
        raise ReportError(
            f"--score '{pattern}' has {pattern.count('*')} stars: use exactly one, for"
            " the name of the class."
        )
    before, after = map(re.escape, pattern.split("*"))
    found = {}
    for name in header:
        match = re.fullmatch(f"{before}(.+){after}", name)
        if match and name not in others:
            found[match.group(1)] = name
    if not found:
        raise ReportError(
            f"{file} has no column like '{pattern}'; its columns are"
            f" {shown(header, most=12)}."
        )
    if len(found) < 2:
        raise ReportError(
            f"--score '{pattern}' matches only {shown(found.values())}, but each class"
            " needs a column. To use a single column, name it without a star."
        )
    if classes is None or set(classes) == set(found):
        return found
    return _by_class(found.values(), classes, named_by=f"--score '{pattern}' finds")


def _by_class(columns, classes, named_by):
    """Return a dict from each class of ``--classes`` to its column, in order; raise if
    the lists differ in length. `named_by` begins the clause that ends with the number
    of columns, as in "--score was given 3 columns".
    """
    if len(columns) != len(classes):
        raise ReportError(
            f"--classes names {len(classes)} classes ({shown(classes)}), but {named_by}"
            f" {len(columns)} columns ({shown(columns)}): name one class per column, in"
            " the order of the columns."
        )
    _check_order(list(columns), classes)
    return dict(zip(classes, columns, strict=True))


def shown(names, most=6):
    """Return the first `most` names as text, with an ellipsis for the rest."""
    names = list(map(str, names))
    return ", ".join(names[:most]) + ", ..." * (len(names) > most)


def _check_order(columns, classes):
    """Raise if the names of the columns are the classes, but in another order."""
    named = classes_of_names(columns, np.array(classes))
    if named is None:
        return
    in_order, positions = named
    class_of_column = np.empty(len(classes), dtype=object)
    class_of_column[positions] = in_order
    if class_of_column.tolist() != list(classes):
        raise ReportError(
            f"--classes names {shown(classes)}, but the columns are {shown(columns)}:"
            f" give --classes {','.join(class_of_column)}, in the order of the columns."
        )


class Taken(NamedTuple):
    """The columns that a report takes where the user names none.

    Attributes
    ----------
    label : str or None
        Column of the labels.
    scores : list of str
        Columns of the scores.
    note : str
        What was taken, for the user.
    """

    label: str | None
    scores: list
    note: str


def taken_columns(file, label, scores, others):
    """Return the columns of labels and scores of an `OpenedFile`, as `Taken`: those
    that the user names, and where one is missing, the only column that can be it.
    `others` are columns with another role.

    A column of labels holds 0 and 1, or two labels; one of scores holds numbers in
    [0, 1], some of them fractions. Weights, folds and ids are never taken.
    """
    header = file.header
    names = [
        name
        for name in header
        if name
        and header.count(name) == 1
        and not _OTHER_ROLE.fullmatch(name)
        and not is_identifier(name)
    ]
    given = [label, *scores, *others]
    columns = file.glance([name for name in names if name not in given])
    messages = []
    if label is None:
        found = [name for name in columns if _may_be_label(columns[name])]
        label = _only(found, "label", header, file.name)
        messages.append(f"{label} as the label")
    if not scores:
        found = [name for name in columns if _may_be_score(columns[name])]
        scores = [_only([n for n in found if n != label], "score", header, file.name)]
        messages.append(f"{scores[0]} as the score")
    return Taken(label, list(scores), f"Taken: {' and '.join(messages)}.")


def _may_be_label(column):
    """Return whether a column holds two distinct values, other than fractions."""
    values = _distinct(column)
    if len(values) != 2:
        return False
    numbers = [value for value in values if not isinstance(value, str)]
    return all(float(number).is_integer() for number in numbers)


def _may_be_score(column):
    """Return whether a column holds numbers in [0, 1], some of them fractions."""
    if column.dtype.kind != "f" or column.ndim != 1:
        return False
    known = column[~np.isnan(column)]
    is_inside = (known >= 0) & (known <= 1)
    return known.size > 0 and bool(is_inside.all()) and bool(np.any(known % 1 != 0))


def _distinct(column):
    """Return the distinct values of a column that are not missing, a list of at most
    three.
    """
    values = {}
    for value in column.tolist():
        if value is not None and value == value:
            values[value] = None
        if len(values) > 2:
            break
    return list(values)


def _only(found, role, header, name):
    """Return the one name that was found for a role, "label" or "score", or raise."""
    if len(found) == 1:
        return found[0]
    what = {
        "label": "0 and 1, or two labels",
        "score": "numbers between 0 and 1",
    }[role]
    which = f"several columns hold {what}: {shown(found, most=12)}"
    if not found:
        which = f"no column holds {what}; its columns are {shown(header, most=12)}"
    raise ReportError(
        f"{name}: name the column of the {role}s with --{role}, since {which}."
    )


def spread_lists(columns, models, classes, labels):
    """Return models whose scores are lists in one column as models with a column for
    each class, and the classes.

    Parameters
    ----------
    columns : dict of ndarray
        The columns by name; one of shape (n, K) is replaced by its K columns.
    models : dict of tuple of str
        The names of the score columns of each model.
    classes : tuple of str or None
        The classes of ``--classes``.
    labels : ndarray of shape (n,)
        The labels, which tell the classes if these are 0 to K - 1, or 1 to K.
    """
    spread = {}
    lengths = {}
    for model, names in models.items():
        (name, *others) = names
        if others or columns[name].ndim == 1:
            spread[model] = names
            continue
        lists = columns[name]
        lengths[model] = lists.shape[1]
        spread[model] = names_of_vector(name, lists.shape[1])
        for k, part in enumerate(spread[model]):
            columns[part] = lists[:, k]
    if not lengths:
        if classes is not None and any(len(names) == 1 for names in models.values()):
            (name,) = next(names for names in models.values() if len(names) == 1)
            raise ReportError(
                f"--classes names {len(classes)} classes, but {name!r} is one column of"
                " numbers: give one column per class, as in --score 'p_*'."
            )
        return models, classes
    if len(lengths) < len(models) or len(set(lengths.values())) > 1:
        raise ReportError(
            f"the models {shown(models)} have lists of different lengths: make a"
            " separate report for each."
        )
    n_classes = next(iter(lengths.values()))
    if classes is None:
        classes = _numbered_classes(labels, n_classes, next(iter(lengths)))
    if len(classes) != n_classes:
        raise ReportError(
            f"--classes names {len(classes)} classes ({shown(classes)}), but each list"
            f" holds {n_classes} scores."
        )
    return spread, classes


def _numbered_classes(labels, n_classes, name):
    """Return the classes of lists of scores as texts if the labels number them from 0
    or 1; raise if not.
    """
    values = _distinct_numbers(labels)
    # Numbers from 1 are told from numbers from 0 by the last one, which must occur.
    for first in (0, 1):
        numbers = range(first, first + n_classes)
        if (
            values
            and set(values) <= set(numbers)
            and (first == 0 or n_classes in values)
        ):
            return tuple(map(str, numbers))
    raise ReportError(
        f"column {name!r} holds lists of {n_classes} scores, whose order the labels do"
        " not show: name the classes in their order with --classes, as in --classes"
        " no,yes."
    )


def _distinct_numbers(labels):
    """Return the distinct whole numbers among labels, a list; empty if there are others
    than these.
    """
    values = {value for value in labels.tolist() if value is not None}
    try:
        numbers = {float(value) for value in values}
    except (TypeError, ValueError):
        return []
    numbers = {number for number in numbers if number == number}
    return [int(n) for n in numbers] if all(map(float.is_integer, numbers)) else []


def event_column(classes, positive, negative):
    """Return the position of the event among two classes: the class of ``--positive``,
    else 1 of 0 and 1, or True of False and True. Raise for other classes.
    """
    if positive is not None:
        for k, name in enumerate(classes):
            if is_same_text(name, positive):
                return k
        raise ReportError(
            f"--positive {positive} is not one of the classes {shown(classes)}."
        )
    if negative is not None:
        raise ReportError(
            f"--negative {negative} names the class of the non-events: also name that"
            " of the event with --positive."
        )
    texts = [name.strip().lower() for name in classes]
    for event, other in (("1", "0"), ("1", "-1"), ("true", "false")):
        if sorted(texts) == sorted((event, other)):
            return texts.index(event)
    raise ReportError(
        f"the two columns are those of the classes {shown(classes)}: say with"
        f" --positive which one is the event, as in --positive {classes[1]}."
    )


def is_same_text(name, text):
    """Return whether two texts are the same label: the same text, or number."""
    try:
        return name == text or float(name) == float(text)
    except ValueError:
        return False


def is_identifier(name):
    """Return whether the name of a column looks like that of ids, as "patient_id"."""
    return _ID.fullmatch(name) is not None
