"""Which score columns make which model: one column per model, or one column per class of a model."""

import re
from os.path import commonprefix
from typing import NamedTuple

import numpy as np

from skcalib._report._reader import ReportError

_EXACT = 1e-9  # how far a row's sum may be off by the rounding of sums
_ROUNDED = 0.01  # how far a row's sum may be off where the scores of a file were rounded


class ScoreModel(NamedTuple):
    """A model's score columns.

    Parameters
    ----------
    name : str
        What the report calls it.
    columns : tuple of str
        One column, or one per class.
    classes : tuple of str or None
        The class that belongs to each column; None means that the column is the probability of the event.
    """

    name: str
    columns: tuple
    classes: tuple | None = None


def given_classes(arguments):
    """Return the classes of ``--classes``: separate arguments, or one with commas between them."""
    if arguments is None:
        return None
    names = arguments[0].split(",") if len(arguments) == 1 else arguments
    names = tuple(name.strip() for name in names)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ReportError(f"--classes names {twice[0]!r} {names.count(twice[0])} times: name each class once.")
    if len(names) < 3:
        raise ReportError(
            f"--classes names {', '.join(names)}: it takes three classes at least. For two give the column of the "
            "event with --score and its label with --positive."
        )
    return names


def score_models(specs, classes, header, others, path):
    """Return the models that the options stand for.

    Parameters
    ----------
    specs : sequence of str
        What ``--score`` was given: names of columns, or patterns such as ``p_*`` with one column per class.
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
    models : list of ScoreModel
        All of them with classes, or none.
    """
    specs = list(dict.fromkeys(specs))
    patterns = [spec for spec in specs if "*" in spec and spec not in header]
    if not patterns:
        if classes is None:
            return [ScoreModel(spec, (spec,)) for spec in specs]
        return [_checked(ScoreModel(_common_name(specs), tuple(specs), classes), "--score was given")]
    if len(patterns) < len(specs):
        plain = next(spec for spec in specs if spec not in patterns)
        raise ReportError(
            f"--score {plain} is one column and --score '{patterns[0]}' one column a class: give a report one kind."
        )
    models = [_matched(pattern, classes, header, others, path) for pattern in patterns]
    first = models[0]
    for model in models[1:]:
        if model.classes is None or first.classes is None or set(model.classes) != set(first.classes):
            raise ReportError(
                f"--score '{first.name}' and --score '{model.name}' are of other classes: "
                f"{', '.join(first.classes or first.columns)} and {', '.join(model.classes or model.columns)}."
            )
        if model.classes != first.classes:  # the same order for all
            columns = dict(zip(model.classes, model.columns, strict=True))
            models[models.index(model)] = model._replace(
                columns=tuple(columns[name] for name in first.classes), classes=first.classes
            )
    return models


def renamed(models, names):
    """Return models with the names of ``--name``, one a model; without any as they are."""
    if not names:
        return models
    if len(names) != len(models) or len(set(names)) != len(names):
        raise ReportError(
            f"--name was given {len(names)} times ({_shown(names)}) for {len(models)} models "
            f"({_shown([model.name for model in models])}): give each model a name of its own, in their order."
        )
    return [model._replace(name=name) for model, name in zip(models, names, strict=True)]


def class_codes(column, name, classes):
    """Return the position of each row's label among the classes."""
    values, inverse = _distinct(column)
    codes = np.empty(len(values), dtype=np.intp)
    for i, value in enumerate(values):
        matching = [k for k, text in enumerate(classes) if is_same(value, text)]
        if not matching:
            row = int(np.argmax(inverse == i))
            raise ReportError(
                f"column {name!r}: row {row} has the label {str(value)!r}, which is none of the classes "
                f"{_shown(classes)}. Name the classes with --classes, in the order of the score columns. "
                "Rows are counted from 0, the header not included."
            )
        codes[i] = matching[0]
    return codes[inverse]


def rescaled(scores, columns):
    """Return scores (n, K) whose rows sum to 1, and how far the worst row was off: rounded numbers are made up for."""
    total = scores.sum(axis=1, dtype=np.float64)
    off = np.abs(total - 1)
    row = int(off.argmax())
    if off[row] > _ROUNDED:
        raise ReportError(
            f"columns {_shown(columns)}: row {row} sums to {total[row]:.6g}, but the probabilities of a row must sum "
            "to 1. Rows are counted from 0, the header not included."
        )
    total[off <= _EXACT] = 1
    return scores / total[:, None], float(off[row])


def is_same(value, text):
    """Return whether a label is what the user typed: ``1`` is 1.0 as well."""
    if str(value) == text:
        return True
    if isinstance(value, bool):
        return text.lower() in (("true", "1", "yes") if value else ("false", "0", "no"))
    try:
        return not isinstance(value, str) and float(value) == float(text)
    except ValueError:
        return False


def _matched(pattern, classes, header, others, path):
    """Return the model of a pattern, its classes those of the option or what the star stands for."""
    if pattern.count("*") > 1:
        raise ReportError(f"--score '{pattern}' has {pattern.count('*')} stars: one stands for the name of the class.")
    before, after = map(re.escape, pattern.split("*"))
    found = {name: re.fullmatch(f"{before}(.+){after}", name) for name in header if name not in others}
    found = {name: match.group(1) for name, match in found.items() if match}
    if not found:
        raise ReportError(f"{path} has no column like '{pattern}'; its columns are {_shown(header, 12)}.")
    if len(found) < 3:
        raise ReportError(
            f"--score '{pattern}' finds {_shown(list(found))}, and classes take three columns at least. For two "
            "classes give the column of the event with --score and its label with --positive."
        )
    model = ScoreModel(pattern, tuple(found), tuple(found.values()))
    if classes is None or set(classes) == set(model.classes):
        return model
    return _checked(model._replace(classes=classes), f"--score '{pattern}' finds")


def _checked(model, found):
    if len(model.columns) != len(model.classes):
        raise ReportError(
            f"--classes names {len(model.classes)} classes ({_shown(model.classes)}), but {found} "
            f"{len(model.columns)} columns ({_shown(model.columns)}): name one class a column, in their order."
        )
    return model


def _common_name(columns):
    """Return what the names of a model's columns share, as its name."""
    return commonprefix(list(columns)).rstrip("_-. ") or "scores"


def _distinct(column):
    """Return distinct labels as Python objects, and the position of each row's among them."""
    if column.dtype.kind != "O":
        values, inverse = np.unique(column, return_inverse=True)
        return values.tolist(), inverse
    place = {}
    inverse = np.fromiter((place.setdefault(value, len(place)) for value in column.tolist()), np.intp, len(column))
    return list(place), inverse


def _shown(names, most=6):
    return ", ".join(map(str, names[:most])) + ", ..." * (len(names) > most)
