"""The fits of a stack's members: to all rows, and to each fold from what those have shown."""

import sys
import threading
import time
from contextlib import contextmanager
from copy import copy

import numpy as np
from sklearn.base import clone

from skcalib.recalibrators._base import BaseRecalibrator

_LONGEST_SILENCE = 9.0  # seconds, of a verbose fit
# Parameters that a member may choose from all rows, as its attribute with an underscore. The folds keep the choice:
# it takes most of the time of a fit, and hardly differs between all rows and four fifths of them.
_CHOSEN = ("alpha", "class_pooling", "roughness_penalty")


class MemberFits:
    """Fits members to the same rows, or to parts of them.

    Parameters
    ----------
    members : list of unfitted recalibrators
        Which take the scores.
    classes : ndarray of shape (n_classes,)
        Sorted labels.
    scores, codes, sample_weight : ndarrays of shape (n, C) and (n,), and one of shape (n,) or None
        The rows.
    floor : float or None
        The learned floor that all members share; None if each learns its own.
    uncalibrated : recalibrator
        What stands for a member that would see one class only.
    verbose : bool
        Whether a line is printed for each fit.

    Attributes
    ----------
    fitted : list of recalibrators
        The members fitted to all rows.
    seconds : ndarray of shape (n_members,)
        What those fits took.
    """

    def __init__(self, members, classes, scores, codes, sample_weight, *, floor, uncalibrated, verbose):
        self.members, self.classes, self.floor = members, classes, floor
        self.uncalibrated, self.verbose = uncalibrated, verbose
        self.scores, self.codes, self.sample_weight = scores, codes, sample_weight
        self.fitted, self.seconds = [], np.zeros(len(members))
        for index, member in enumerate(members):
            with self._timed("all rows", index, self.seconds):
                if _is_plain(member):
                    member._validate_params()
                self.fitted.append(self._fit(clone(member), scores, codes, sample_weight))

    def to_fold(self, fold, name):
        """Return the members' probabilities of a fold's test rows, fitted to its training rows, and the seconds."""
        scores, codes = self.scores[fold.train], self.codes[fold.train]
        predicted, seconds = [], np.zeros(len(self.members))
        one_class = codes.min() == codes.max()
        for index, (member, on_all) in enumerate(zip(self.members, self.fitted, strict=True)):
            with self._timed(name, index, seconds):
                unfitted = clone(self.uncalibrated) if one_class else _with_choices(member, on_all)
                fitted = self._fit(unfitted, scores, codes, fold.train_weight)
                predict = fitted._predict_encoded if _is_plain(fitted) else fitted.predict_proba
                predicted.append(predict(self.scores[fold.test]))
        return predicted, seconds

    def _fit(self, member, scores, codes, sample_weight):
        """Fit a member; one of this library to the rows as they are, which the stack has validated."""
        if not _is_plain(member):
            return member.fit(scores, self.classes[codes], sample_weight=sample_weight)
        member.classes_, member.n_features_in_ = self.classes, scores.shape[1]
        return member._fit_encoded(scores, codes, sample_weight, self.floor)

    @contextmanager
    def _timed(self, name, index, seconds):
        """Set the seconds of a member, and print a line when it is done, and before where that takes long."""
        began, done = time.perf_counter(), threading.Event()
        if not self.verbose:
            yield
            seconds[index] = time.perf_counter() - began
            return
        shared = {"input": "probability", "classes": None}  # which would fill the line
        member = clone(self.members[index])
        member.set_params(**{key: shared[key] for key in shared.keys() & vars(member).keys()})

        def tell(state=""):
            print(
                f"[StackedRecalibrator] {name}: {member}{state}, {time.perf_counter() - began:.1f} s",
                file=sys.stderr,
                flush=True,
            )

        def keep_telling():
            while not done.wait(_LONGEST_SILENCE):
                tell(" is still being fitted")

        threading.Thread(target=keep_telling, daemon=True).start()
        try:
            yield
        finally:
            done.set()
        seconds[index] = time.perf_counter() - began
        tell()


def _is_plain(member):
    return isinstance(member, BaseRecalibrator) and type(member).fit is BaseRecalibrator.fit


def _with_choices(member, fitted):
    """Return a clone of a member that keeps what it has chosen in a fit to all rows."""
    # A fit of this library's sets attributes and leaves parameters alone: a copy does. Cloning reads signatures, which
    # takes a tenth of a stack's fit to 3,000 rows.
    unfitted = copy(member) if _is_plain(member) else clone(member)
    for name in _CHOSEN:
        chosen = getattr(fitted, f"{name}_", None)
        if getattr(member, name, 0) in ("auto", None) and isinstance(chosen, float):
            setattr(unfitted, name, chosen)
    return unfitted
