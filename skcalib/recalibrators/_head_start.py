"""What a stack knows before it fits a member, so that no two members learn the same."""

from typing import NamedTuple

import numpy as np

from skcalib._solvers.softmax_regression import TOLERANCE


class HeadStart(NamedTuple):
    """What is known of the rows of a fit, or of nearly the same rows: everything may be None.

    It saves time. Of what is found only the floor depends on it, and what is below the tolerance.
    """

    floor: float | None = None  # learned by the stack, for all members
    inverse_temperature: float | None = None  # of these rows, above that floor
    near: object | None = None  # the same kind of member, fitted to nearly the same rows
    preconditioner: np.ndarray | None = None  # the inverse curvature of the log-loss a row at `near`
    tolerance: float = TOLERANCE  # of twice the loss that a fit leaves, in nats a row
