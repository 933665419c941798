"""Bias or error of each group as a forest plot: which groups are off, and which of them are more than noise."""

import numpy as np

from skcalib._input.scalars import check_option
from skcalib.displays._forest import draw_intervals, draw_zero, explain, forest_frame, name_rows, short_name
from skcalib.displays._frames import keep_inside, size_text
from skcalib.displays._predictions import FromEstimator
from skcalib.displays._style import colors, neutral
from skcalib.metrics import calibration_by_group

_WORDS = {
    "bias": "Mean score minus event frequency (percentage points)",
    "error": "Calibration error (percent)",
}


class GroupDisplay(FromEstimator):
    """Forest plot of the groups: the bias or the calibration error of each, with its interval.

    Groups whose bias stays significant after the adjustment for the number of groups are drawn in colour with a filled
    mark, the others in grey with an open one. Make it with `from_predictions`, `from_estimator` or `from_table`.

    Parameters
    ----------
    table : GroupCalibration
        The groups, as `calibration_by_group` returns them.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1).

    Attributes
    ----------
    ax_ : Axes
        The axes. The first group stands at the top.
    figure_ : Figure
        The figure.
    intervals_ : list of ErrorbarContainer
        Intervals and marks: those of the significant groups, then the others. A kind without groups is left out.
    legend_ : Legend or None
        The legend.

    See Also
    --------
    skcalib.metrics.calibration_by_group : The numbers.

    References
    ----------
    Zhao, Chen and Oymak (2020), On the role of dataset quality and heterogeneity in model confidence.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.displays import GroupDisplay
    >>> rng = np.random.default_rng(0)
    >>> y_proba, site = rng.random(3000), rng.choice(["east", "north", "west"], 3000)
    >>> y_true = rng.random(3000) < np.where(site == "north", y_proba**2, y_proba)
    >>> display = GroupDisplay.from_predictions(y_true, y_proba, site, random_state=0)
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['east', 'north', 'west']
    """

    def __init__(self, table, *, confidence_level=0.9):
        self.table = table
        self.confidence_level = confidence_level

    @classmethod
    def from_predictions(
        cls, y_true, y_proba, groups="predicted_class", *, confidence_level=0.9, ax=None, plot_options=None, **options
    ):
        """Compute the table of the groups and draw it.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_proba : array-like of shape (n,), (n, 2) or (n, K)
            Probabilities in [0, 1].
        groups : array-like of shape (n,) or "predicted_class", default="predicted_class"
            The group of each row.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1).
        ax : Axes, default=None
            Where to draw; None makes a figure.
        plot_options : dict, default=None
            Options of `plot`.
        **options : dict
            Other options of `calibration_by_group`, such as `order`.

        Returns
        -------
        display : GroupDisplay
            The drawn display.

        Raises
        ------
        ValueError
            For labels, probabilities or groups that do not fit together.
        """
        table = calibration_by_group(y_true, y_proba, groups, confidence_level=confidence_level, **options)
        return cls.from_table(table, confidence_level=confidence_level, ax=ax, **(plot_options or {}))

    @classmethod
    def from_table(cls, table, *, confidence_level=0.9, ax=None, **plot_options):
        """Draw a table that `calibration_by_group` has returned.

        Parameters
        ----------
        table : GroupCalibration
            The groups.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1).
        ax : Axes, default=None
            Where to draw; None makes a figure.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : GroupDisplay
            The drawn display.
        """
        return cls(table, confidence_level=confidence_level).plot(ax, **plot_options)

    def plot(
        self, ax=None, *, value="bias", significance_level=0.05, max_groups=60, legend=True, bar_kw=None, legend_kw=None
    ):
        """Draw the stored table.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None makes a figure that is high enough for all groups.
        value : {"bias", "error"}, default="bias"
            What is drawn. The error needs some rows per group; groups without one are left out.
        significance_level : float, default=0.05
            A group is drawn in colour where its adjusted p-value is below it.
        max_groups : int, default=60
            Most groups that are shown. Of more, those with the smallest p-values are shown.
        legend : bool, default=True
            Whether there is a legend.
        bar_kw, legend_kw : dict, default=None
            Keywords of the artists (`Axes.errorbar` and `legend`) that replace ours.

        Returns
        -------
        display : GroupDisplay
            Itself, with the artists as attributes.

        Raises
        ------
        ValueError
            If no group has the value asked for.
        """
        check_option(value, "value", ("bias", "error"))
        shown = self._shown(value, max_groups)
        frame = forest_frame(ax, len(shown))
        self.ax_, self.figure_ = frame.axes[0], frame.figure
        columns = (value, f"{value}_low", f"{value}_high")
        limits = np.stack([100 * getattr(self.table, name)[shown] for name in columns])
        significant = self.table.adjusted_pvalue[shown] < significance_level
        draw_zero(self.ax_)
        self.intervals_ = []
        kinds = (
            (significant, colors(2)[1], True, f"adjusted p < {significance_level:g}"),
            (~significant, neutral(0.6), False, "not significant"),
        )
        for chosen, color, filled, label in kinds:
            if chosen.any():
                heights = np.flatnonzero(chosen)
                options = {"filled": filled, "bar_kw": bar_kw}
                self.intervals_.append(draw_intervals(frame, heights, limits[:, chosen], label, color, "o", **options))
        size_text(frame)
        names = [short_name(str(self.table.group[i])) for i in shown]
        name_rows(frame, names, self.table.n[shown], self._words(value, len(shown)))
        if value == "error":
            self.ax_.set_xlim(left=0)
        self.legend_ = explain(frame, legend_kw) if legend else None
        keep_inside(frame)
        return self

    def _shown(self, value, max_groups):
        """Return the positions of the groups that are drawn, in the order of the table."""
        shown = np.flatnonzero(np.isfinite(getattr(self.table, value)))
        if len(shown) == 0:
            raise ValueError(f"No group has enough rows for its {value}: draw the bias, or larger groups.")
        if len(shown) > max_groups:
            shown = np.sort(shown[np.argsort(self.table.pvalue[shown], kind="stable")[:max_groups]])
        return shown

    def _words(self, value, n_shown):
        words = f"{_WORDS[value]}\n{100 * self.confidence_level:g} % intervals"
        left_out = len(self.table) - n_shown
        return words + f"; {left_out} of {len(self.table)} groups are not shown" * (left_out > 0)
