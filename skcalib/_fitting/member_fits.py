"""The fits of a stack's members: to all rows, and to each fold from what those have
shown.
"""

from contextlib import contextmanager
from copy import copy
from functools import partial
from threading import Event, Thread
from time import perf_counter
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from skcalib.maps._calibration_map import part_map
from skcalib.maps._python_function import PythonFunction

_LONGEST_SILENCE = 9.0  # seconds, of a verbose fit
# Parameters that a member may choose from all rows, as its attribute with an
# underscore. The folds keep the choice: it takes most of the time of a fit, and hardly
# differs between all rows and four fifths of them.
_CHOSEN = ("alpha", "class_pooling", "roughness_penalty")


class Shortcuts(NamedTuple):
    """What a stack knows of the fit of a member beforehand. Only the floor changes the
    result.

    Attributes
    ----------
    floor : float or None
        Smallest probability, which all members share; None if each learns its own.
    near_fit : recalibrator or None
        One of the same class, fitted to similar rows: the steps of the optimiser begin
        at its parameters.
    same_rows_fit : recalibrator or None
        One of the same class, fitted to the same rows with another ridge: a temperature
        that both need is taken over.
    only_forecasts : bool
        Whether nothing but forecasts is asked of the fit.
    """

    floor: float | None
    near_fit: object
    same_rows_fit: object
    only_forecasts: bool


class StackFits:
    """The fits of all members of a stack: to all rows, and to those of each fold.

    Parameters
    ----------
    members : list of recalibrators
        Unfitted.
    unchanged : recalibrator
        An unfitted one, which serves where a fold has rows of one class alone.
    rows : tuple
        Scores, codes and weights of all rows, which are validated.
    folds : list of Fold
        The folds.
    classes : ndarray of shape (n_classes,)
        Labels of the columns.
    floor : float or None
        The floor that the members share; None if each learns its own.
    progress : Progress
        Where progress is reported.

    Attributes
    ----------
    fitted : list of recalibrators
        The members, fitted to all rows, which fits to the folds start from.
    seconds : ndarray of shape (n_members,)
        How long the fits of each member took.
    """

    def __init__(self, members, unchanged, rows, folds, *, classes, floor, progress):
        self.members = members  # unfitted
        self.unchanged = unchanged  # an unfitted recalibrator that changes nothing
        self.rows = rows  # (scores, codes, weights)
        self.folds = folds
        self.classes = classes
        self.floor = floor
        self.progress = progress
        # The members fitted to all rows: not fitted until `fit_to_all`.
        self.fitted = [clone(member) for member in members]
        self.seconds = np.zeros(len(members))

    def fit_to_all(self, numbers, starts_near):
        """Fit members to all rows, and put them into the list `fitted`.

        `numbers` are their positions in the list of members. With `starts_near` the
        optimisers start at the parameters of those that they replace.
        """
        unfitted = [clone(self.members[k]) for k in numbers]
        fitted = self._fitted(unfitted, numbers, self.rows, "all rows", starts_near)
        for k, member in zip(numbers, fitted, strict=True):
            self.fitted[k] = member

    def fit_to_first_fold(self):
        """Fit all members to the training rows of the first fold, before any is fitted
        to all rows; return them, and put them into the list `fitted`.
        """
        numbers = range(len(self.members))
        self.fitted = self.fitted_to_fold(0, numbers, starts_near=False)
        return self.fitted.copy()

    def fitted_to_fold(self, index, numbers, starts_near=True):
        """Return some members fitted to the training rows of a fold.

        `index` is the number of the fold, `numbers` are positions in the list of
        members. With `starts_near` the optimisers start at the parameters of the
        members in `fitted`, those fitted to all rows, and the parameters that these
        chose, such as an alpha, are not chosen again: such fits serve for the
        forecasts of the fold's test rows, and leave out all else.
        """
        scores, codes, _ = self.rows
        fold = self.folds[index]
        if np.ptp(codes[fold.train]) == 0:
            # From rows of one class nothing is learned: scores stay unchanged.
            unfitted = [clone(self.unchanged) for _ in numbers]
        elif starts_near:
            unfitted = [with_choices(self.members[k], self.fitted[k]) for k in numbers]
        else:
            unfitted = [clone(self.members[k]) for k in numbers]
        rows = scores[fold.train], codes[fold.train], fold.train_weight
        name = f"fold {index + 1} of {len(self.folds)}"
        return self._fitted(
            unfitted, numbers, rows, name, starts_near, only_forecasts=starts_near
        )

    def forecasts(self, index, fitted):
        """Return the list of probabilities that members fitted to fold number `index`
        give to its test rows.
        """
        scores, _, _ = self.rows
        test_scores = scores[self.folds[index].test]
        return [forecast(member, test_scores) for member in fitted]

    def _fitted(self, unfitted, numbers, rows, name, starts_near, only_forecasts=False):
        """Return the members `unfitted`, at the positions `numbers`, fitted to `rows`
        (scores, codes, weights), and add to `seconds`; reports of progress call the
        rows `name`.

        Optimisers start at the parameters in `fitted` if `starts_near`, else at the
        previous member's if its class is the same. `only_forecasts` leaves out what
        forecasts do not need.
        """
        scores, codes, sample_weight = rows
        previous = None
        fitted = []
        for place, (k, member) in enumerate(zip(numbers, unfitted, strict=True)):
            began = perf_counter()
            start = previous
            if starts_near:
                start = self.fitted[k]
            number = f"member {place + 1} of {len(unfitted)}"
            with self._reporting(f"{name}, {number}: {type(member).__name__}"):
                if is_plain(member):
                    shortcuts = self._shortcuts(member, start, previous, only_forecasts)
                    member._fit_member(
                        scores, codes, sample_weight, self.classes, shortcuts
                    )
                else:
                    y = self.classes[codes]
                    member = member.fit(scores, y, sample_weight=sample_weight)
            fitted.append(member)
            previous = member
            self.seconds[k] += perf_counter() - began
        return fitted

    def _shortcuts(self, member, start, previous, only_forecasts):
        """Return the `Shortcuts` of a member, what its fit takes from others. `start`,
        a fit to similar rows, and `previous`, a fit to the same rows, are left out if
        they are of another class.
        """
        if type(start) is not type(member):
            start = None
        # Members that learn floors of their own have different logits, and so
        # different temperatures.
        if type(previous) is not type(member) or self.floor is None:
            previous = None
        return Shortcuts(self.floor, start, previous, only_forecasts)

    @contextmanager
    def _reporting(self, message):
        """Report a message, and every nine seconds of the block that the fit goes
        on.
        """
        done = Event()

        def keep_reporting():
            """Report every nine seconds until the block is done."""
            while not done.wait(_LONGEST_SILENCE):
                self.progress(f"{message} is still being fitted")

        self.progress(message)
        if self.progress.verbose:
            Thread(target=keep_reporting, daemon=True).start()
        try:
            yield
        finally:
            done.set()


def is_plain(member):
    """Return whether a member is one of this library's that takes validated rows."""
    return getattr(member, "_takes_validated_rows", False)


def forecast(member, scores):
    """Return a fitted member's probabilities of validated scores."""
    if is_plain(member) and getattr(member, "_predicts_validated_rows", False):
        return member._predict_checked(scores)
    return member.predict_proba(scores)


def member_node(member, scores):
    """Return the node, a part of a map, that computes a fitted member's probabilities
    from the node `scores`; of two classes, that of the second. It is the member's own
    map, or a function of Python for a member that has none.
    """
    try:
        return part_map(member, scores)
    except ValueError as error:
        n_classes = len(member.classes_)
        if n_classes > 2:
            width = n_classes
        else:
            width = 1
        function = partial(_last_columns, member, width)
        return PythonFunction(scores, function, width, str(error))


def _last_columns(member, width, scores, is_impossible):
    """Return the last `width` columns of a fitted member's probabilities."""
    return forecast(member, scores)[:, -width:]


def with_choices(member, fitted):
    """Return an unfitted clone of a member in which the parameters "auto" and None of
    `_CHOSEN`, such as alpha, have the values that `fitted`, its fit to all rows, chose.

    It is to be fitted for its forecasts alone.
    """
    # A copy is enough for members of this library, whose fits set attributes and leave
    # parameters as they are. `clone` reads signatures, which takes a tenth of a stack's
    # fit to 3,000 rows.
    if is_plain(member):
        unfitted = copy(member)
    else:
        unfitted = clone(member)
    for name in _CHOSEN:
        chosen = getattr(fitted, f"{name}_", None)
        # The default 0, no automatic value, is for members without this parameter.
        is_automatic = getattr(member, name, 0) in ("auto", None)
        if is_automatic and isinstance(chosen, float):
            setattr(unfitted, name, chosen)
    return unfitted
