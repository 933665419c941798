"""Bins that hold equal shares of the samples."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Literal

import numpy as np

from skcalib._rows.sorting import (
    FEWEST_ROWS,
    counting_pays,
    in_order,
    scores_near,
)
from skcalib.binning._base import (
    WEIGHT_TOLERANCE,
    BaseBinning,
    edges_above,
    resolve_n_bins,
)
from skcalib.binning._equal_width import EqualWidth


class EqualMass(BaseBinning):
    """Bins with equal shares of the samples (uniform-mass or quantile bins).

    Cut i of B is the smallest score whose cumulative weight reaches i W / B, where W is
    the total weight; the edge is the midpoint between this score and the next distinct
    one. Tied scores stay together, and equal cuts are merged, so the result may have
    fewer bins than requested.

    Parameters
    ----------
    n_bins : int, {"sqrt", "cube_root"} or callable, default=15
        Number of bins, or a rule for it: see `EqualWidth`.

    See Also
    --------
    skcalib.binning.EqualWidth : Bins of equal width.
    skcalib.binning.MinimumMass : Merges bins until each contains enough samples.
    skcalib.binning.InformationPreserving : The bins that lose the least information.

    References
    ----------
    Zadrozny and Elkan (2001), Obtaining calibrated probability estimates from decision
    trees and naive Bayesian classifiers. Kumar, Liang and Ma (2019), Verified
    uncertainty calibration.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.binning import EqualMass
    >>> EqualMass(2).bin_edges(np.array([0.1, 0.2, 0.4, 0.9])).round(6).tolist()
    [0.0, 0.3, 1.0]
    """

    needs_unit_interval = False
    _sorts_up_to = FEWEST_ROWS

    def __init__(
        self, n_bins: int | Literal["sqrt", "cube_root"] | Callable[[int], int] = 15
    ):
        self.n_bins = n_bins

    def _n_bins_for(self, n_rows, sample_weight):
        """Return the number of bins for `n_rows` samples with weights (n,) or None."""
        if sample_weight is not None:
            return resolve_n_bins(self.n_bins, n_rows, sample_weight)
        # Any number is accepted: where it exceeds that of the rows, each row has a bin.
        return resolve_n_bins(self.n_bins, n_rows, maximum=2**53)

    def _edges(self, scores, y, sample_weight):
        """Return the edges (n_bins + 1,) of bins of equal weight for scores (n,) in any
        order, with weights (n,) or None; `y` is not used.
        """
        is_weighted = sample_weight is not None
        n_bins = self._n_bins_for(len(scores), sample_weight)
        if not in_order(scores):
            find_cuts = partial(equal_mass_cuts, n_bins=n_bins)
            if counting_pays(scores, find_cuts, is_weighted=is_weighted):
                # Of many rows only the scores near the cuts are sorted. `weight_up_to`
                # has the weight of all rows up to each of them.
                near, weight_up_to = scores_near(scores, sample_weight, find_cuts)
                return edges_above(near, find_cuts(weight_up_to))
            if is_weighted:
                order = np.argsort(scores)
                scores = scores[order]
                sample_weight = sample_weight[order]
            else:
                scores = np.sort(scores)
        if is_weighted:
            last_of_bin = equal_mass_cuts(np.cumsum(sample_weight), n_bins)
        else:
            last_of_bin = last_ranks(len(scores), n_bins) - 1  # ranks begin at 1
        return edges_above(scores, last_of_bin)


def equal_mass_cuts(cumulative, n_bins):
    """Return where to cut sorted rows into bins of equal weight: for each bin but the
    last, the index of its last row.

    `cumulative` (n,) is the weight of the rows up to each row; integers are numbers of
    rows. Bin k, counted from 1, ends at the first row up to which the rows have at
    least k / n_bins of the total weight.
    """
    if cumulative.dtype.kind == "i":
        needed = last_ranks(int(cumulative[-1]), n_bins)
    else:
        needed = needed_shares(n_bins) * cumulative[-1]
    return np.searchsorted(cumulative, needed, side="left")


def needed_shares(n_bins):
    """Return the share of the weight (n_bins - 1,) up to which each bin but the last
    holds the rows: a little less than k / n_bins, so that the rounding of sums moves no
    cut.
    """
    return np.arange(1, n_bins) * (1 - WEIGHT_TOLERANCE) / n_bins


def last_ranks(n_rows, n_bins):
    """Return for each of `n_bins` bins but the last the rank of its last row among
    sorted rows, counted from 1. More bins than rows become one for each row.
    """
    n_bins = min(n_bins, n_rows)
    # k * n_rows / n_bins for bin k, rounded up: minus the floor of minus it
    return -(-np.arange(1, n_bins) * n_rows // n_bins)


def check_binning(
    binning: BaseBinning | int | None, default: BaseBinning | None = None
) -> BaseBinning:
    """Return the binning strategy for the user's `binning` argument.

    Parameters
    ----------
    binning : BaseBinning, int or None
        A strategy, a number of bins, or None for the default.
    default : BaseBinning, optional
        The strategy used if `binning` is None; ``EqualMass()`` if not given. A number
        of bins means equal-width bins if the default is `EqualWidth`, otherwise
        equal-mass bins.

    Returns
    -------
    strategy : BaseBinning
        The strategy.

    Raises
    ------
    TypeError
        If `binning` is of any other type.

    See Also
    --------
    skcalib.binning.BaseBinning : Base class for custom strategies.
    skcalib.binning.EqualMass : Bins with equal numbers of samples.

    Examples
    --------
    >>> from skcalib.binning import EqualWidth, check_binning
    >>> check_binning(20)
    EqualMass(n_bins=20)
    >>> check_binning(20, EqualWidth())
    EqualWidth(n_bins=20)
    """
    if isinstance(binning, BaseBinning):
        return binning
    if default is None:
        default = EqualMass()
    if binning is None:
        return default
    if isinstance(binning, Integral) and not isinstance(binning, bool):
        if type(default) is EqualWidth:
            return EqualWidth(int(binning))
        return EqualMass(int(binning))
    raise TypeError(
        "binning must be a strategy of skcalib.binning (such as EqualMass(15)), an int"
        f" or None, found {binning!r}."
    )
