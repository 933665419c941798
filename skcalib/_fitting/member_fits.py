"""The fits of a stack's members: to all rows, and to each fold from what those have
shown.
"""

from contextlib import contextmanager
from copy import copy
from threading import Event, Thread
from time import perf_counter
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from skcalib._progress import Progress

_LONGEST_SILENCE = 9.0  # seconds, of a verbose fit
# Parameters that a member may choose from all rows, as its attribute with an
# underscore. The folds keep the choice: it takes most of the time of a fit, and hardly
# differs between all rows and four fifths of them.
_CHOSEN = ("alpha", "class_pooling", "roughness_penalty")


class MemberFits(NamedTuple):
    """How members are fitted: the classes, the floor that they share (None if each
    learns its own), and where progress is reported.
    """

    classes: np.ndarray
    floor: float | None
    progress: Progress

    def fit(self, unfitted, scores, codes, sample_weight, name, near=None):
        """Return the list of members fitted to validated rows, and the seconds that
        each took (n_members,).

        `name` says in reports what is fitted. `near` is a list of the same members
        fitted to nearly the same rows, from which the fits may start. None means that
        each starts from the member before it, where that is of its kind.
        """
        fitted = []
        seconds = np.zeros(len(unfitted))
        for index, member in enumerate(unfitted):
            began = perf_counter()
            sibling = None
            if fitted:
                sibling = fitted[-1]
            start = sibling
            if near is not None:
                start = near[index]
            number = f"member {index + 1} of {len(unfitted)}"
            with self._reporting(f"{name}, {number}: {type(member).__name__}"):
                fitted_member = self._fit_member(
                    member, scores, codes, sample_weight, start, sibling
                )
            fitted.append(fitted_member)
            seconds[index] = perf_counter() - began
        return fitted, seconds

    def _fit_member(self, member, scores, codes, sample_weight, start, sibling):
        """Return a member fitted to validated rows.

        A member of this library whose `fit` would only validate them is fitted without
        it. `start` is a fitted recalibrator from which its steps may begin, `sibling`
        the member fitted before it to the same rows; either may be None, or of another
        class, and then does not count.
        """
        if not is_plain(member):
            y = self.classes[codes]
            return member.fit(scores, y, sample_weight=sample_weight)
        # The stack has validated the rows.
        member.classes_ = self.classes
        member.n_features_in_ = scores.shape[1]
        if hasattr(member, "_fit_from"):
            if type(start) is not type(member):
                start = None
            # With a floor that they share, both see the same logits.
            if type(sibling) is not type(member) or self.floor is None:
                sibling = None
            return member._fit_from(
                start, sibling, scores, codes, sample_weight, self.floor
            )
        return member._fit_encoded(scores, codes, sample_weight, self.floor)

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


class StackFits:
    """The fits of all members of a stack: to all rows, and to those of each fold.

    Parameters
    ----------
    fits : MemberFits
        How members are fitted.
    members : list of recalibrators
        Unfitted.
    unchanged : recalibrator
        An unfitted one, which serves where a fold has rows of one class alone.
    rows : tuple
        Scores, codes and weights of all rows, which are validated.
    folds : list of Fold
        The folds.

    Attributes
    ----------
    fitted : list of recalibrators
        The members, fitted to all rows, which fits to the folds start from.
    seconds : ndarray of shape (n_members,)
        How long the fits of each member took.
    """

    def __init__(self, fits, members, unchanged, rows, folds):
        self.fits = fits
        self.members = members
        self.unchanged = unchanged
        self.rows = rows
        self.folds = folds
        # not fitted until `fit_to_all`
        self.fitted = [clone(member) for member in members]
        self.seconds = np.zeros(len(members))

    def fit_to_all(self, numbers, starts_near):
        """Fit the members with these numbers to all rows; they may start from those in
        `fitted`, which they replace.
        """
        unfitted = [clone(self.members[k]) for k in numbers]
        found = self._fitted(unfitted, numbers, self.rows, "all rows", starts_near)
        for k, member in zip(numbers, found, strict=True):
            self.fitted[k] = member

    def fitted_to_fold(self, index, numbers, starts_near=True):
        """Return the members with these numbers fitted to the rows of a fold.

        Those that start near the ones in `fitted` keep the choices of these.
        """
        scores, codes, _ = self.rows
        fold = self.folds[index]
        if np.ptp(codes[fold.train]) == 0:  # of one class alone nothing is learned
            unfitted = [clone(self.unchanged) for _ in numbers]
        elif starts_near:
            unfitted = [with_choices(self.members[k], self.fitted[k]) for k in numbers]
        else:
            unfitted = [clone(self.members[k]) for k in numbers]
        rows = scores[fold.train], codes[fold.train], fold.train_weight
        name = f"fold {index + 1} of {len(self.folds)}"
        return self._fitted(unfitted, numbers, rows, name, starts_near)

    def forecasts(self, index, fitted):
        """Return what members fitted to a fold forecast for the rows left out."""
        scores, _, _ = self.rows
        test_scores = scores[self.folds[index].test]
        return [forecast(member, test_scores) for member in fitted]

    def _fitted(self, unfitted, numbers, rows, name, starts_near):
        """Return the list of members with these numbers, fitted to `rows`; add the
        seconds that it took to theirs.

        `unfitted` are the members to fit, `name` says which rows they are, for reports.
        With `starts_near` the steps may begin from the members in `fitted`.
        """
        near = None
        if starts_near:
            near = [self.fitted[k] for k in numbers]
        fitted, seconds = self.fits.fit(unfitted, *rows, name, near=near)
        self.seconds[numbers] += seconds
        return fitted


def is_plain(member):
    """Return whether a member is one of this library's that takes validated rows."""
    return getattr(member, "_takes_validated_rows", False)


def forecast(member, scores):
    """Return a fitted member's probabilities of validated scores."""
    if is_plain(member) and getattr(member, "_predicts_validated_rows", False):
        return member._predict_encoded(scores)
    return member.predict_proba(scores)


def with_choices(member, fitted):
    """Return an unfitted clone of a member whose automatic parameters are set to what
    `fitted`, its fit to all rows, has chosen. It is fitted for its forecasts alone.
    """
    # A fit of this library's sets attributes and leaves parameters alone: a copy does.
    # Cloning reads signatures, which takes a tenth of a stack's fit to 3,000 rows.
    if is_plain(member):
        unfitted = copy(member)
    else:
        unfitted = clone(member)
    if hasattr(unfitted, "_only_forecasts"):
        # its fit leaves out what forecasts do not need
        unfitted._only_forecasts = True
    for name in _CHOSEN:
        chosen = getattr(fitted, f"{name}_", None)
        is_automatic = getattr(member, name, 0) in ("auto", None)
        if is_automatic and isinstance(chosen, float):
            setattr(unfitted, name, chosen)
    return unfitted
