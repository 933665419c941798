"""How a multicalibrated recalibrator has chosen its rounds: the gain on held-out rows
after each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skcalib._verdicts import rounded
from skcalib.displays._finish import finish
from skcalib.displays._frames import pair_frame
from skcalib.displays._style import (
    colors,
    curve_styles,
    error_bars,
    reference_style,
    styled,
)
from skcalib.displays._words import plural
from skcalib.recalibrators import MulticalibratedRecalibrator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D


class MulticalibrationDisplay:
    """Held-out gain of each round of corrections, and the chosen number of rounds.

    A gain is the cross-validated log-loss of the global map minus the log-loss after
    the rounds. The bars extend two standard errors below and above the gain; the round
    whose bar has the highest lower end is chosen, provided that this end is above 0.
    Create the display with `from_estimator`. `SegmentDisplay` shows the effect of the
    rounds on the worst groups.

    Parameters
    ----------
    gains, gain_errors : array-like of shape (n_tried,)
        Gain after each round tried, in nats per sample, and its standard error.
    n_rounds : int
        Number of rounds used.

    Attributes
    ----------
    ax_ : Axes
        The axes.
    figure_ : Figure
        The figure.
    line_ : Line2D
        The gains, with 0 before the first round.
    intervals_ : ErrorbarContainer
        The bars of two standard errors.
    chosen_ : Line2D
        The marker of the number of rounds used.
    legend_ : Legend or None
        The legend.

    See Also
    --------
    skcalib.MulticalibratedRecalibrator : The recalibrator.
    SegmentDisplay : The worst groups, before and after.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib import MulticalibratedRecalibrator
    >>> from skcalib.displays import MulticalibrationDisplay
    >>> rng = np.random.default_rng(0)
    >>> scores, site = rng.random(1000), rng.integers(0, 2, 1000)
    >>> y = rng.random(1000) < np.where(site == 1, np.sqrt(scores), scores**2)
    >>> fitted = MulticalibratedRecalibrator(features=1, max_rounds=3, cv=2).fit(
    ...     np.column_stack((scores, site)), y
    ... )
    >>> display = MulticalibrationDisplay.from_estimator(fitted)
    >>> np.asarray(display.chosen_.get_xdata()).tolist() == [fitted.n_rounds_]
    True
    """

    ax_: Axes
    figure_: Figure
    line_: Line2D
    intervals_: ErrorbarContainer
    chosen_: Line2D
    legend_: Legend | None

    def __init__(self, gains: ArrayLike, gain_errors: ArrayLike, n_rounds: int):
        self.gains = np.asarray(gains, dtype=np.float64)
        self.gain_errors = np.asarray(gain_errors, dtype=np.float64)
        self.n_rounds = n_rounds

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Axes | None = None, **plot_options: Any
    ) -> Self:
        """Draw the gains of a fitted recalibrator.

        Parameters
        ----------
        estimator : MulticalibratedRecalibrator or Pipeline that ends with one
            A fitted estimator for which at least one round was tried.
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : MulticalibrationDisplay
            The drawn display.

        Raises
        ------
        TypeError
            If `estimator` has any other type.
        ValueError
            If no round was tried (``max_rounds=0``).
        sklearn.exceptions.NotFittedError
            If `estimator` is not fitted.
        """
        last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
        if not isinstance(last, MulticalibratedRecalibrator):
            raise TypeError(
                "estimator must be a MulticalibratedRecalibrator or a Pipeline that"
                f" ends with one, found {type(last).__name__}."
            )
        check_is_fitted(last)
        if len(last.gains_) == 0:
            raise ValueError(
                "There are no gains to draw: max_rounds=0, so no round was tried."
            )
        return cls(last.gains_, last.gain_errors_, last.n_rounds_).plot(
            ax, **plot_options
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        legend: bool = True,
        line_kw: dict[str, Any] | None = None,
        interval_kw: dict[str, Any] | None = None,
        chosen_kw: dict[str, Any] | None = None,
        legend_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the stored results.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        legend : bool, default=True
            Whether to draw a legend for the bars and markers.
        line_kw, interval_kw, chosen_kw, legend_kw : dict, default=None
            Keyword arguments of the artists (`Axes.plot`, `Axes.errorbar`, `Axes.plot`
            and `legend`) that override the defaults.

        Returns
        -------
        display : MulticalibrationDisplay
            The display, with the artists as attributes.
        """
        from matplotlib.ticker import MaxNLocator

        frame = pair_frame(ax)
        (axes,) = frame.axes
        rounds = np.arange(len(self.gains) + 1)
        gains = np.append(0, self.gains)
        color, chosen_color = colors(2)
        zero = axes.axhline(0, **reference_style())
        # The global map, round 0, has no bar.
        low = self.gains - 2 * self.gain_errors
        high = self.gains + 2 * self.gain_errors
        self.intervals_ = error_bars(
            axes, rounds[1:], self.gains, low, high, color, interval_kw
        )
        (style,) = curve_styles(1, marked=True)
        (self.line_,) = axes.plot(
            rounds, gains, **styled(line_kw, **style, label="gain on held-out samples")
        )
        style = {
            "color": chosen_color,
            "marker": "D",
            "markersize": 7,
            "linestyle": "none",
            "zorder": 4,
        }
        (self.chosen_,) = axes.plot(
            [self.n_rounds], [gains[self.n_rounds]], **styled(chosen_kw, **style)
        )
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        keys = {
            "global map": zero,
            "2 standard errors": self.intervals_,
            "rounds used": self.chosen_,
        }
        labels = "Rounds after the global map", "Held-out gain (nats per sample)"
        return finish(
            self,
            frame,
            keys,
            *labels,
            legend=legend,
            caption=self._captions(gains),
            legend_kw=legend_kw,
        )

    def _captions(self, gains):
        """Return two captions about the rounds, the longer first. `gains` begins with
        the 0 of the global map.
        """
        tried = f"{len(self.gains)} {plural('round', len(self.gains))} tried"
        if self.n_rounds == 0:
            return [f"{tried}, none used:\nno gain beyond noise", "no round used"]
        used = f"{self.n_rounds} {plural('round', self.n_rounds)} used"
        gain = rounded(gains[self.n_rounds])
        return [f"{tried}, {self.n_rounds} used\ngain {gain} nats per sample", used]
