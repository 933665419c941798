"""Which score columns make which model: one column per model, or one column per class
of a model.
"""

import re
from os.path import commonprefix

import numpy as np

from skcalib._input.classes import classes_of_names
from skcalib._report._reader import ReportError


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
    if len(names) < 3:
        raise ReportError(
            f"--classes names {', '.join(names)}: at least three classes are needed."
            " For two, pass the column of the event with --score and its label with"
            " --positive."
        )
    return names


def score_models(specs, classes, header, others, path):
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
    path : Path
        The file, for messages.

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
        matched[pattern] = _matched(pattern, classes, header, others, path)
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


def _matched(pattern, classes, header, others, path):
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
            f"{path} has no column like '{pattern}'; its columns are"
            f" {shown(header, most=12)}."
        )
    if len(found) < 3:
        raise ReportError(
            f"--score '{pattern}' finds {shown(found.values())}, but at least three"
            " columns are needed. For two classes, pass the column of the event with"
            " --score and its label with --positive."
        )
    if classes is None or set(classes) == set(found):
        return found
    return _by_class(found.values(), classes, named_by=f"--score '{pattern}' finds")


def _by_class(columns, classes, named_by):
    """Return a dict from each class of ``--classes`` to its column; both are lists in
    the same order. Raise if they differ in length.

    `named_by` is the beginning of a clause in the error message that goes on with the
    number of columns, as in "--score was given 3 columns".
    """
    if len(columns) != len(classes):
        raise ReportError(
            f"--classes names {len(classes)} classes ({shown(classes)}), but {named_by}"
            f" {len(columns)} columns ({shown(columns)}): name one class per column, in"
            " their order."
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
