"""Calibration curves of the papers that no user of the package needs."""

from dataclasses import dataclass, field

import numpy as np

from skcalib.simulation import PlattCurve

__all__ = ["NoisyPlattCurve"]


@dataclass(frozen=True)
class NoisyPlattCurve:
    """``g(z; a, c) + h(z)``, with h of a fixed size and, on each cell of a fine grid, a
    random sign.

    A truth outside the scaling family that no smooth map can follow: recalibrating with
    `PlattCurve` leaves the error ``noise``, whereas in a bin the signs average out.

    Parameters
    ----------
    a, c : float
        Slope and intercept of `PlattCurve`.
    noise : float, default=0.02
        Size of h.
    low, high : float, default=0.25, 0.75
        The grid's ends. Scores beyond have the sign of the cell at the end.
    n_cells : int, default=100_000
        Number of cells of equal width.
    random_state : int, default=0
        Seed of the signs: equal curves have equal signs.

    Attributes
    ----------
    breakpoints : ndarray of shape (n_cells + 1,)
        Edges of the cells, where the curve jumps.

    Raises
    ------
    ValueError
        If the curve would leave [0, 1], or there are no cells.

    See Also
    --------
    skcalib.simulation.PlattCurve : A logistic calibration curve.
    skcalib.simulation.CalibrationModel : Scores and labels with a known error.

    References
    ----------
    Kumar, Liang and Ma (2019), Verified uncertainty calibration, Appendix E.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.papers._curves import NoisyPlattCurve
    >>> from skcalib.simulation import PlattCurve
    >>> scores = np.array([0.3, 0.5, 0.7])
    >>> deviation = NoisyPlattCurve(2, 1)(scores) - PlattCurve(2, 1)(scores)
    >>> np.abs(deviation).round(6).tolist()
    [0.02, 0.02, 0.02]
    """

    a: float
    c: float
    noise: float = 0.02
    low: float = 0.25
    high: float = 0.75
    n_cells: int = 100_000
    random_state: int = 0
    breakpoints: np.ndarray = field(init=False, repr=False, compare=False)
    _signs: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        if not 0 <= self.low < self.high <= 1 or self.n_cells < 1:
            raise ValueError(
                "The grid needs 0 <= low < high <= 1 and n_cells >= 1, found"
                f" {self.low}, {self.high}, {self.n_cells}."
            )
        ends = PlattCurve(self.a, self.c)([self.low, self.high])
        if not 0 <= self.noise <= min(ends.min(), 1 - ends.max()):
            raise ValueError(
                f"noise={self.noise} takes the curve, {ends.min():.4g} to"
                f" {ends.max():.4g}, out of [0, 1]."
            )
        signs = np.random.default_rng(self.random_state).choice(
            (-1.0, 1.0), size=self.n_cells
        )
        object.__setattr__(self, "_signs", signs)
        object.__setattr__(
            self, "breakpoints", np.linspace(self.low, self.high, self.n_cells + 1)
        )

    def __call__(self, scores):
        """Return the event probability at scores."""
        scores = np.asarray(scores, dtype=np.float64)
        cell = np.searchsorted(self.breakpoints[1:-1], scores, side="right")
        return PlattCurve(self.a, self.c)(scores) + self.noise * self._signs[cell]
