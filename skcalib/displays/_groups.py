"""Bias or error of each group as a forest plot: which groups are off, and which of them are more than noise."""

import numpy as np

from skcalib._input.scalars import check_option
from skcalib.displays._frames import Frame, size_text
from skcalib.displays._predictions import FromEstimator
from skcalib.displays._style import (
    canonical_keywords,
    colors,
    format_count,
    matplotlib_text,
    neutral,
    require_matplotlib,
)
from skcalib.metrics import calibration_by_group

__all__ = ["GroupDisplay"]

_LONGEST_NAME = 28  # letters of a group's name that are shown
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
        Level of the intervals in the table.

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
            Level of the intervals.
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
            Level of the intervals in the table.
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
            What is drawn. The error needs some rows a group; groups without one are left out.
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
        frame = _frame(ax, len(shown))
        self.ax_, self.figure_ = frame.axes[0], frame.figure
        columns = (value, f"{value}_low", f"{value}_high")
        estimate, low, high = (100 * getattr(self.table, name)[shown] for name in columns)
        heights = np.arange(len(shown))
        significant = self.table.adjusted_pvalue[shown] < significance_level
        self.ax_.axvline(0, color=neutral(0.75), linewidth=1, linestyle=(0, (1, 1.5)))
        self.intervals_ = []
        kinds = (
            (significant, colors(2)[1], True, f"adjusted p < {significance_level:g}"),
            (~significant, neutral(0.6), False, "not significant"),
        )
        for chosen, color, filled, label in kinds:
            if chosen.any():
                lengths = np.maximum(0, np.stack((estimate - low, high - estimate)))[:, chosen]
                keywords = {"fmt": "o", "color": color, "markersize": 0.45 * frame.size, "elinewidth": 1.2}
                keywords |= {"markerfacecolor": color if filled else "none", "label": label}
                keywords |= canonical_keywords(bar_kw)
                bars = self.ax_.errorbar(estimate[chosen], heights[chosen], xerr=lengths, **keywords)
                self.intervals_.append(bars)
        size_text(frame)
        self._name_rows(frame, shown, f"{_WORDS[value]}\n{100 * self.confidence_level:g} % intervals")
        if value == "error":
            self.ax_.set_xlim(left=0)
        self.legend_ = None
        if legend:
            options = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2, "frameon": False}
            options |= {"fontsize": 0.85 * frame.size, "handletextpad": 0.3}
            options["ncols"] = 1 if frame.width < 4 else 2
            self.legend_ = self.ax_.legend(**{**options, **canonical_keywords(legend_kw)})
        return self

    def _shown(self, value, max_groups):
        """Return the positions of the groups that are drawn, in the order of the table."""
        shown = np.flatnonzero(np.isfinite(getattr(self.table, value)))
        if len(shown) == 0:
            raise ValueError(f"No group has enough rows for its {value}: draw the bias, or larger groups.")
        if len(shown) > max_groups:
            shown = np.sort(shown[np.argsort(self.table.pvalue[shown], kind="stable")[:max_groups]])
        return shown

    def _name_rows(self, frame, shown, words):
        names = [_short(str(self.table.group[i])) for i in shown]
        self.ax_.set_yticks(np.arange(len(shown)), names)
        self.ax_.set_ylim(len(shown) - 0.5, -0.5)  # the first group at the top
        left_out = len(self.table) - len(shown)
        if left_out:
            words += f"; {left_out} of {len(self.table)} groups are not shown"
        if frame.width < 4:
            words = words.replace(" (percentage points)", "\n(percentage points)")
        self.ax_.set_xlabel(words, size=frame.size)
        sizes = self.ax_.secondary_yaxis("right")
        sizes.set_yticks(np.arange(len(shown)), [format_count(self.table.n[i]) for i in shown])
        sizes.tick_params(labelsize=0.8 * frame.size, length=0, labelcolor=neutral(0.75))
        sizes.set_ylabel("Rows", size=frame.size, color=neutral(0.75))


def _short(name):
    return matplotlib_text(name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…")


def _frame(ax, n_groups):
    """Return axes with about two lines of text for each group, and text that fits there."""
    plt = require_matplotlib()
    base = plt.rcParams["font.size"]
    if ax is None:
        width = plt.rcParams["figure.figsize"][0]
        line = 1.7 * base / 72 * (1 if n_groups <= 30 else 0.75)
        figure, ax = plt.subplots(figsize=(width, 1.3 + line * n_groups), layout="constrained")
    box = ax.get_window_extent()
    width, height = box.width / ax.figure.dpi, box.height / ax.figure.dpi
    size = float(np.clip(min(base, 72 * height / n_groups / 1.25, base * width / 3), 0.4 * base, base))
    return Frame(np.array([ax], dtype=object), [[]], False, 1, size, width)
