"""The fits of a stack's members: to all rows, and to each fold from what those have shown."""

import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
from sklearn.base import clone

from skcalib.recalibrators._head_start import HeadStart
from skcalib.recalibrators._matrix import AffineScaling
from skcalib.recalibrators._temperature import TemperatureScaling

# Weights are found from fits to folds: twice the loss that these leave, in nats a row.
_FOLD_TOLERANCE = 1e-10
_LONGEST_SILENCE = 9.0  # seconds, of a verbose fit


class MemberFits:
    """Fits members to the same rows, or to parts of them.

    Members that share a floor share their temperature, too. A member that takes a start has that of the fit to all
    rows; there it is the fit of an earlier member that differs in its ridge alone.

    Parameters
    ----------
    members : list of unfitted recalibrators
        Which take the scores.
    classes : ndarray of shape (n_classes,)
        Sorted labels.
    scores, codes, sample_weight : ndarrays of shape (n, C) and (n,), and one of shape (n,) or None
        The rows.
    uncalibrated : recalibrator
        What stands for a member that would see one class only.
    floor : float or None
        The learned floor that all members share.
    inverse_temperature : float or None
        Of all rows, above that floor.
    verbose : bool
        Whether a line is printed for each fit.

    Attributes
    ----------
    fitted : list of recalibrators
        The members fitted to all rows.
    seconds : ndarray of shape (n_members,)
        What those fits took.
    """

    def __init__(
        self, members, classes, scores, codes, sample_weight, *, uncalibrated, floor, inverse_temperature, verbose
    ):
        self.members, self.classes, self.uncalibrated, self.verbose = members, classes, uncalibrated, verbose
        self.scores, self.codes, self.sample_weight = scores, codes, sample_weight
        self.shared = HeadStart(floor, inverse_temperature)
        self.fitted, self.preconditioners, self.seconds = [], [], np.zeros(len(members))
        for index, member in enumerate(members):
            with self._timed("all rows", index, self.seconds):
                near = self._ridge_apart(member)
                preconditioner = None if near is None else self._preconditioner(member, near)
                start = self.shared._replace(near=near, preconditioner=preconditioner)
                self.fitted.append(self._fit(member, start, scores, codes, sample_weight))
                self.shared = self._told(self.shared, self.fitted[-1])
                if preconditioner is None and _takes_a_start(member):
                    preconditioner = self._preconditioner(member, self.fitted[-1])
                self.preconditioners.append(preconditioner)

    def to_fold(self, fold, name):
        """Return the members' probabilities of a fold's test rows, fitted to its training rows, and the seconds."""
        scores, codes, weight = self.scores[fold.train], self.codes[fold.train], fold.train_weight
        predicted, seconds = [], np.zeros(len(self.members))
        one_class = codes.min() == codes.max()
        shared = self.shared._replace(inverse_temperature=None, tolerance=_FOLD_TOLERANCE)
        for index, (member, near) in enumerate(zip(self.members, self.fitted, strict=True)):
            with self._timed(name, index, seconds):
                if one_class:
                    fitted = self._fit(self.uncalibrated, None, scores, codes, weight)
                else:
                    known = near if isinstance(near, (TemperatureScaling, AffineScaling)) else None
                    start = shared._replace(near=known, preconditioner=self.preconditioners[index])
                    fitted = self._fit(member, start, scores, codes, weight)
                    shared = self._told(shared, fitted)
                predicted.append(fitted.predict_proba(self.scores[fold.test]))
        return predicted, seconds

    def _fit(self, member, start, scores, codes, sample_weight):
        fitted = clone(member)
        if start is not None and getattr(fitted, "_works_on_log_odds", False):
            fitted._head_start = start
        return fitted.fit(scores, self.classes[codes], sample_weight=sample_weight)

    def _told(self, shared, fitted):
        """Return what the members share, and the temperature that one of them has found."""
        if shared.floor is None or type(fitted) is not TemperatureScaling or fitted.loss != "log":
            return shared
        return shared._replace(inverse_temperature=fitted.inverse_temperature_)

    def _ridge_apart(self, member):
        """Return a fitted member of the same kind that differs in its ridge alone, if there is one."""
        if not _takes_a_start(member):
            return None
        return next((one for one in self.fitted if _takes_a_start(one) and _map_of(one) == _map_of(member)), None)

    def _preconditioner(self, member, near):
        return member._inverse_curvature(near, self.scores, self.codes, self.sample_weight)

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


def _takes_a_start(member):
    return isinstance(member, AffineScaling) and member.alpha != "auto"


def _map_of(member):
    """Return what a member fits, whatever the ridge."""
    parameters = member.get_params(deep=False)
    return type(member), *((key, str(value)) for key, value in parameters.items() if not key.startswith("alpha"))
