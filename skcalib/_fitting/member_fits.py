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
    learns its own), and who is told.
    """

    classes: np.ndarray
    floor: float | None
    progress: Progress

    def fit(self, unfitted, scores, codes, sample_weight, name, near=None):
        """Return the members fitted to rows, those of this library to the rows as they
        are, and the seconds of each.

        Members may start from those of `near`, fitted to nearly the same rows. None
        means that each starts from the member before it, where that is of its kind.
        """
        fitted = []
        seconds = np.zeros(len(unfitted))
        for index, member in enumerate(unfitted):
            began = perf_counter()
            kind = type(member).__name__
            sibling = fitted[-1] if fitted else None
            start = sibling if near is None else near[index]
            with self._told(f"{name}, member {index + 1} of {len(unfitted)}: {kind}"):
                fitted.append(
                    self._fit_member(
                        member, scores, codes, sample_weight, start, sibling
                    )
                )
            seconds[index] = perf_counter() - began
        return fitted, seconds

    def _fit_member(self, member, scores, codes, sample_weight, start, sibling):
        """Fit a member: one of this package, with nothing of its own to check, past the
        checks.
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
    def _told(self, what):
        """Tell what is being fitted, and again while it takes long."""
        done = Event()

        def keep_telling():
            while not done.wait(_LONGEST_SILENCE):
                self.progress(f"{what} is still being fitted")

        self.progress(what)
        if self.progress.verbose:
            Thread(target=keep_telling, daemon=True).start()
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
    """Return a clone of a member that keeps what it has chosen in a fit to all rows."""
    # A fit of this library's sets attributes and leaves parameters alone: a copy does.
    # Cloning reads signatures, which takes a tenth of a stack's fit to 3,000 rows.
    unfitted = copy(member) if is_plain(member) else clone(member)
    for name in _CHOSEN:
        chosen = getattr(fitted, f"{name}_", None)
        if getattr(member, name, 0) in ("auto", None) and isinstance(chosen, float):
            setattr(unfitted, name, chosen)
    return unfitted
