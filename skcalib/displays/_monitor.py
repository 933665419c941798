"""The e-value of a monitor over time, with the alarm and the change point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from skcalib._verdicts import count_words
from skcalib.displays._finish import finish
from skcalib.displays._frames import frame_of_panels, pair_frame
from skcalib.displays._style import colors, curve_styles, reference_style, styled
from skcalib.displays._words import matplotlib_text
from skcalib.monitoring import CalibrationMonitor, GroupMonitors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D


_MOST_GROUPS = 12


class MonitorDisplay:
    """Evidence of a `CalibrationMonitor` against calibration, batch by batch.

    The dashed line is the evidence that triggers the alarm. A filled marker shows the
    alarm, and a vertical line the sample at which calibration seems to have changed.
    Create the display with `from_monitor`.

    Parameters
    ----------
    monitors : dict
        Maps names to monitors that have processed data; the name of a single monitor
        may be None.

    Attributes
    ----------
    ax_ : Axes or ndarray of Axes
        The axes, one per monitor.
    figure_ : Figure
        The figure.
    lines_ : list of Line2D
        The e-values, one line per monitor.
    threshold_lines_ : list of Line2D
        The lines at the evidence that triggers an alarm.
    alarms_, change_lines_ : list of Line2D
        The markers of the alarms and the lines at the change points, for the monitors
        that have them.
    legend_ : Legend or None
        The legend.

    See Also
    --------
    skcalib.monitoring.CalibrationMonitor : The monitor.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.displays import MonitorDisplay
    >>> from skcalib.monitoring import CalibrationMonitor
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(0.1, 0.6, 6000)
    >>> y = rng.random(6000) < scores + 0.1 * (np.arange(6000) >= 3000)
    >>> monitor = CalibrationMonitor()
    >>> for rows in np.split(np.arange(6000), 60):
    ...     monitor = monitor.partial_fit(scores[rows], y[rows])
    >>> display = MonitorDisplay.from_monitor(monitor, name="clicks")
    >>> np.asarray(display.alarms_[0].get_xdata()).tolist() == [monitor.alarm_row_]
    True
    """

    ax_: Any
    figure_: Figure
    lines_: list[Line2D]
    threshold_lines_: list[Line2D]
    alarms_: list[Line2D]
    change_lines_: list[Line2D]
    legend_: Legend | None

    def __init__(self, monitors: Mapping[Any, CalibrationMonitor]):
        self.monitors = dict(monitors)

    @classmethod
    def from_monitor(
        cls,
        monitor: CalibrationMonitor | Mapping[Any, CalibrationMonitor] | GroupMonitors,
        *,
        name: str | None = None,
        ax: Axes | np.ndarray | Sequence[Axes] | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw one monitor, or several monitors in one panel each.

        Parameters
        ----------
        monitor : CalibrationMonitor, dict of CalibrationMonitor or GroupMonitors
            Monitors that have processed data. A dict maps the names of groups to
            their monitors. If there are more than twelve groups, those with the most
            evidence are drawn.
        name : str, default=None
            Name of a single monitor in the title.
        ax : Axes or array of Axes, default=None
            Axes to draw on; None creates a figure.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : MonitorDisplay
            The drawn display.

        Raises
        ------
        TypeError
            If `monitor` has any other type.
        ValueError
            If there are no monitors.
        """
        if isinstance(monitor, GroupMonitors):
            by_group = monitor.monitors_
            worst = sorted(
                monitor.table_.group,
                key=lambda group: _evidence_rank(by_group[group]),
                reverse=True,
            )
            monitors = {group: by_group[group] for group in worst[:_MOST_GROUPS]}
        elif isinstance(monitor, dict):
            monitors = monitor
        else:
            monitors = {name: monitor}
        if not monitors:
            raise ValueError("There is no monitor to draw: the dict is empty.")
        for drawn in monitors.values():
            if not isinstance(drawn, CalibrationMonitor):
                raise TypeError(
                    "monitor must be a CalibrationMonitor, or a dict of monitors,"
                    f" found {drawn!r}."
                )
        return cls(monitors).plot(ax, **plot_options)

    def plot(
        self,
        ax: Axes | np.ndarray | Sequence[Axes] | None = None,
        *,
        legend: bool = True,
        line_kw: dict[str, Any] | None = None,
        threshold_kw: dict[str, Any] | None = None,
        alarm_kw: dict[str, Any] | None = None,
        change_kw: dict[str, Any] | None = None,
        legend_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the evidence collected so far.

        Parameters
        ----------
        ax : Axes or array of Axes, default=None
            Axes to draw on; None creates a figure.
        legend : bool, default=True
            Whether to draw a legend for the lines.
        line_kw, threshold_kw, alarm_kw, change_kw, legend_kw : dict, default=None
            Keyword arguments of the artists (`Axes.plot`, `Axes.axhline`, `Axes.plot`,
            `Axes.axvline` and `legend`) that override the defaults.

        Returns
        -------
        display : MonitorDisplay
            The display, with the artists as attributes.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If a monitor has not processed any data.
        """
        from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

        is_single = len(self.monitors) == 1
        if is_single:
            frame = pair_frame(ax)
        else:
            frame = frame_of_panels(ax, len(self.monitors))
        self.lines_ = []
        self.threshold_lines_ = []
        self.alarms_ = []
        self.change_lines_ = []
        # One to four ticks, each with room for twice the longest number. A digit is
        # about .6 of the size of the text wide.
        most_rows = max(
            monitor.history_.n_rows[-1] for monitor in self.monitors.values()
        )
        width_of_number = 0.6 * frame.size / 72 * len(str(most_rows))  # inches
        n_ticks = int(np.clip(frame.width / (2 * width_of_number), 1, 4))
        for panel, monitor in zip(frame.axes, self.monitors.values(), strict=True):
            self._draw_evidence(panel, monitor, monitor.history_, line_kw, threshold_kw)
            if monitor.alarm_:
                self._draw_alarm(panel, monitor, alarm_kw, change_kw)
            panel.xaxis.set_major_locator(MaxNLocator(n_ticks, integer=True))
            panel.yaxis.set_major_locator(LogLocator(numticks=5))
            panel.yaxis.set_minor_locator(NullLocator())
        named = {
            "alarm above this line": self.threshold_lines_,
            "alarm": self.alarms_,
            "likely start of the change": self.change_lines_,
        }
        keys = {label: artists[0] for label, artists in named.items() if artists}
        caption = None
        titles = None
        if is_single:
            ((name, monitor),) = self.monitors.items()
            caption = _captions(name, monitor)
        else:
            titles = [matplotlib_text(str(name)) for name in self.monitors]
        return finish(
            self,
            frame,
            keys,
            "Samples",
            "e-value",
            caption=caption,
            titles=titles,
            # Several panels in the user's axes have no room for a legend.
            legend=legend and (frame.is_own or is_single),
            with_curves=is_single,
            legend_kw=legend_kw,
        )

    def _draw_alarm(self, panel, monitor, alarm_kw, change_kw):
        """Mark where the alarm was raised, and where the change probably began."""
        color = colors(2)[1]
        style = styled(
            alarm_kw,
            color=color,
            marker="o",
            markersize=7,
            linestyle="none",
            zorder=4,
        )
        self.alarms_ += panel.plot([monitor.alarm_row_], [monitor.threshold_], **style)
        style = reference_style(change_kw, color=color)
        self.change_lines_.append(panel.axvline(monitor.change_row_, **style))

    def _draw_evidence(self, ax, monitor, history, line_kw, threshold_kw):
        """Draw the e-value of a monitor after each batch against the number of samples,
        on a logarithmic axis, with the threshold of its alarm.
        """
        # Before any row the e-value is 1. That of a monitor with an average run length
        # is 0, which a logarithmic axis cannot show: the first one takes its place.
        first = 1.0 if monitor.average_run_length is None else history.e_value[0]
        rows = np.append(0, history.n_rows)
        evidence = np.append(first, history.e_value)
        # An e-value may round to 0.
        drawn_evidence = np.maximum(evidence, 1e-12)
        (style,) = curve_styles(1)
        keywords = styled(line_kw, **style, label="e-value")
        self.lines_ += ax.plot(rows, drawn_evidence, **keywords)
        style = reference_style(threshold_kw, linestyle=(0, (4, 2)))
        self.threshold_lines_.append(ax.axhline(monitor.threshold_, **style))
        ax.set_yscale("log")
        # The threshold is always in view. Evidence of more than 10,000 times it, or
        # below .001, leaves the axes.
        highest = np.clip(evidence.max(), monitor.threshold_, 1e4 * monitor.threshold_)
        lowest = np.clip(evidence.min(), 1e-3, 1.0)
        ax.set_ylim(lowest / 2, 3 * highest)


def _evidence_rank(monitor):
    """Return a key that sorts monitors: alarms first, then by the e-value as a multiple
    of the threshold.
    """
    return monitor.alarm_, monitor.e_value_ / monitor.threshold_


def _captions(name, monitor):
    """Return captions for a single monitor, the longest first: its size, the alarm and
    the probable change.
    """
    size = f"{count_words(monitor.n_rows_)} samples"
    if name is not None:
        size = f"{matplotlib_text(str(name))}, {size}"
    if not monitor.alarm_:
        return [f"{size}\nno alarm"]
    alarm = f"alarm at sample {count_words(monitor.alarm_row_)}"
    change = f"change at sample {count_words(monitor.change_row_)}"
    return [f"{size}\n{alarm}, {change}", f"{size}\n{alarm}"]
