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
        return member._predict_encoded(scores)
    return member.predict_proba(scores)


def with_choices(member, fitted):
    """Return an unfitted clone of a member whose automatic parameters are set to what
    `fitted`, its fit to all rows, has chosen.
    """
    # A fit of this library's sets attributes and leaves parameters alone: a copy does.
    # Cloning reads signatures, which takes a tenth of a stack's fit to 3,000 rows.
    if is_plain(member):
        unfitted = copy(member)
    else:
        unfitted = clone(member)
    for name in _CHOSEN:
        chosen = getattr(fitted, f"{name}_", None)
        is_automatic = getattr(member, name, 0) in ("auto", None)
        if is_automatic and isinstance(chosen, float):
            setattr(unfitted, name, chosen)
    return unfitted
