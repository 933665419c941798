"""P-values of several tests together."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skcalib._inference.adjustment import holm
from skcalib._input.scalars import as_numbers


def adjust_pvalues(pvalues: ArrayLike) -> np.ndarray:
    """Adjust p-values for the number of tests, by Holm's method.

    The probability that any true hypothesis has an adjusted p-value of at most a level
    is at most that level, whatever the dependence of the tests.

    Parameters
    ----------
    pvalues : array-like of shape (m,)
        P-values in [0, 1]. NaN stands for a test that could not be made.

    Returns
    -------
    adjusted : ndarray of shape (m,)
        The k-th smallest p-value, multiplied by m - k + 1, and at least the adjusted
        p-value before it; at most 1. NaN remains NaN and does not count as a test.

    Raises
    ------
    ValueError
        If a p-value lies outside [0, 1].

    See Also
    --------
    skcalib.metrics.calibration_by_group : Adjusts the p-values of groups itself.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure.

    Examples
    --------
    Three tests: .01 is multiplied by 3, .02 by 2.

    >>> from skcalib.evaluation import adjust_pvalues
    >>> adjust_pvalues([0.5, 0.01, 0.02]).tolist()
    [0.5, 0.03, 0.04]
    """
    pvalues = as_numbers(pvalues, "pvalues")
    is_known = ~np.isnan(pvalues)
    known = pvalues[is_known]
    if pvalues.ndim != 1 or (known < 0).any() or (known > 1).any():
        raise ValueError(
            f"pvalues must be (m,) numbers from 0 to 1, found {pvalues!r:.80}."
        )
    adjusted = np.full(len(pvalues), np.nan)
    adjusted[is_known] = holm(known)
    return adjusted
