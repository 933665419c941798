"""The averaged two-bin error: sums of residuals on both sides of every threshold."""

from dataclasses import dataclass

import numpy as np

from skcalib._cells.device_columns import cells_in_place
from skcalib._errors.error import CalibrationError, ErrorPower
from skcalib._rows.namespaces import as_double, sums_up_to


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoBinError(CalibrationError):
    """The averaged two-bin error; see `two_bin_calibration_error`."""

    def __post_init__(self):
        if self.multiclass not in ("auto", "marginal"):
            raise ValueError(
                "multiclass must be 'auto' or 'marginal' (each class against the rest),"
                f" found {self.multiclass!r}: for a top-label or pooled error, the"
                " scores themselves decide which event is judged, so misreported scores"
                " can lower it."
            )

    def reduction(self, data):
        """Return the `multiclass` option by which validated data become binary
        problems: "marginal", each class against the rest, for more than two classes.
        """
        if data.is_binary:
            return self.multiclass
        return "marginal"

    def class_weights(self, classes):
        """Return weights of 1 for the classes (K,): their errors are summed."""
        return np.ones(len(classes))

    def of_task(self, task, most=None):
        """Return the `TwoBinPower` of a binary problem, from its distinct scores; with
        `most`, from at most that many cells (see `CalibrationError.of_task`).
        """
        return TwoBinPower(cells_in_place(task, most))

    def from_power(self, power):
        """Return the power itself, a mean of squares: a root would reward a lie."""
        return float(power)


class TwoBinPower(ErrorPower):
    """The mean over thresholds q in [0, 1] of the squared sums of s - y over the rows
    below q and over those from q on (Hartline, Hu and Wu).
    """

    def __init__(self, cells):
        super().__init__(cells)
        # threshold_share[k], k = 0, ..., m, is the share of the thresholds in [0, 1]
        # that have k scores below them: the sums change at the scores only.
        xp = self.cells.xp
        scores = as_double(xp, self.scores)
        zero = xp.zeros_like(scores[:1])
        ends = xp.concat((zero, scores, zero + 1))
        self.threshold_share = ends[1:] - ends[:-1]

    @property
    def observed(self):
        """The error of the observed labels."""
        xp = self.cells.xp
        if xp is np:
            return super().observed
        excess = self.share * (self.scores - self.cells.event_frequency)
        below = sums_up_to(xp, excess)
        above = below[-1:] - below
        return float((below**2 + above**2) @ self.threshold_share)

    def power(self, frequency):
        """Return the error (...) for event frequencies (..., m) of the cells."""
        # The sums over the k scores below a threshold, k = 0, ..., m, and over the
        # others: (..., m + 1), in few arrays, since each is as long as the cells.
        below = np.zeros((*frequency.shape[:-1], len(self.scores) + 1))
        excess = np.subtract(self.scores, frequency, out=below[..., 1:])
        excess *= self.share
        np.cumsum(excess, axis=-1, out=excess)
        above = below[..., -1:] - below
        below *= below
        above *= above
        below += above
        return below @ self.threshold_share
