"""The e-value of a monitor over time, with the alarm and the change point."""

import numpy as np

from skcalib.displays._frames import finish, frame_of_panels, pair_frame
from skcalib.displays._style import CURVE, colors, format_count, matplotlib_text, reference_style, styled
from skcalib.monitoring import CalibrationMonitor, GroupMonitors

_MOST_GROUPS = 12


class MonitorDisplay:
    """The evidence of a `CalibrationMonitor` against calibration, batch by batch.

    The dashed line is the evidence that raises the alarm. A full mark shows the alarm, and a vertical line the row at
    which the scores seem to have changed. Make it with `from_monitor`.

    Parameters
    ----------
    monitors : dict
        Monitors that have seen rows, by name; the name of a single one may be None.

    Attributes
    ----------
    ax_ : Axes or ndarray of Axes
        The axes, one per monitor.
    figure_ : Figure
        The figure.
    lines_ : list of Line2D
        The e-values, one line a monitor.
    threshold_lines_ : list of Line2D
        The evidence that is an alarm.
    alarms_, change_lines_ : list of Line2D
        The alarms and the change points of the monitors that have them.
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
    >>> int(display.alarms_[0].get_xdata()[0]) == monitor.alarm_row_
    True
    """

    def __init__(self, monitors):
        self.monitors = dict(monitors)

    @classmethod
    def from_monitor(cls, monitor, *, name=None, ax=None, **plot_options):
        """Draw one monitor, or several by name, each in a panel.

        Parameters
        ----------
        monitor : CalibrationMonitor, dict of such or GroupMonitors
            Monitors that have seen rows. A dict has one for each segment, by name. Of more than twelve groups those
            with the most evidence are drawn.
        name : str, default=None
            Name of a single monitor in the title.
        ax : Axes or array of Axes, default=None
            Where to draw; None makes a figure.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : MonitorDisplay
            The drawn display.

        Raises
        ------
        TypeError
            If it is no monitor.
        ValueError
            If there is none.
        """
        if isinstance(monitor, GroupMonitors):
            table = monitor.table_  # what counts is the evidence against the group's own threshold
            worst = sorted(table.group, key=lambda group: _evidence(monitor.monitors_[group]), reverse=True)
            monitor = {group: monitor.monitors_[group] for group in worst[:_MOST_GROUPS]}
        monitors = monitor if isinstance(monitor, dict) else {name: monitor}
        if not monitors:
            raise ValueError("There is no monitor to draw: the dict is empty.")
        for one in monitors.values():
            if not isinstance(one, CalibrationMonitor):
                raise TypeError(f"monitor must be a CalibrationMonitor, or a dict of such, found {one!r}.")
        return cls(monitors).plot(ax, **plot_options)

    def plot(
        self, ax=None, *, legend=True, line_kw=None, threshold_kw=None, alarm_kw=None, change_kw=None, legend_kw=None
    ):
        """Draw what the monitors have seen so far.

        Parameters
        ----------
        ax : Axes or array of Axes, default=None
            Where to draw; None makes a figure.
        legend : bool, default=True
            Whether the lines are explained.
        line_kw, threshold_kw, alarm_kw, change_kw, legend_kw : dict, default=None
            Keywords of the artists (`Axes.plot`, `Axes.axhline`, `Axes.plot`, `Axes.axvline` and `legend`) that
            replace the defaults.

        Returns
        -------
        display : MonitorDisplay
            Itself, with the artists as attributes.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If a monitor has not seen any row.
        """
        histories = {name: monitor.history_ for name, monitor in self.monitors.items()}
        n_panels = len(histories)
        frame = pair_frame(ax) if n_panels == 1 else frame_of_panels(ax, n_panels)
        self.lines_, self.threshold_lines_, self.alarms_, self.change_lines_ = [], [], [], []
        for panel, (name, history) in zip(frame.axes, histories.items(), strict=True):
            monitor = self.monitors[name]
            self._draw_evidence(panel, monitor, history, line_kw, threshold_kw)
            self._draw_alarm(panel, monitor, alarm_kw, change_kw)
        self._name_axes(frame, histories)
        keys = {}
        explained = legend and (frame.is_own or n_panels == 1)  # inside one of several panels there is no room
        for artist in [*self.threshold_lines_[:1], *self.alarms_[:1], *self.change_lines_[:1]] if explained else ():
            keys[artist.get_label()] = artist
        caption = _captions(*next(iter(self.monitors.items()))) if n_panels == 1 else None
        options = {"caption": caption, "with_curves": n_panels == 1, "legend_kw": legend_kw}
        first = frame.axes[0]
        self.legend_ = finish(frame, keys, first.get_xlabel(), first.get_ylabel(), **options)
        self.figure_ = frame.figure
        self.ax_ = frame.axes if n_panels > 1 else frame.axes[0]
        return self

    def _draw_evidence(self, ax, monitor, history, line_kw, threshold_kw):
        first = 1.0 if monitor.average_run_length is None else history.e_value[0]
        rows, evidence = np.append(0, history.n_rows), np.append(first, history.e_value)
        style = {"color": colors(1)[0], "linewidth": 1.6, "gid": CURVE, "label": "e-value"}
        self.lines_ += ax.plot(rows, np.maximum(evidence, 1e-12), **styled(line_kw, **style))
        style = reference_style(threshold_kw, linestyle=(0, (4, 2)), label="alarm above this line")
        self.threshold_lines_.append(ax.axhline(monitor.threshold_, **style))
        ax.set_yscale("log")
        # The threshold is always seen; evidence far beyond it, or far below 1, leaves the axes.
        top = max(3 * min(evidence.max(), 1e4 * monitor.threshold_), 3 * monitor.threshold_)
        ax.set_ylim(min(max(evidence.min(), 1e-3), 1.0) / 2, top)

    def _draw_alarm(self, ax, monitor, alarm_kw, change_kw):
        if not monitor.alarm_:
            return
        color = colors(2)[1]
        style = {"color": color, "marker": "o", "markersize": 7, "linestyle": "none", "zorder": 4, "label": "alarm"}
        self.alarms_ += ax.plot([monitor.alarm_row_], [monitor.threshold_], **styled(alarm_kw, **style))
        style = reference_style(change_kw, color=color, label="likely start of the change")
        self.change_lines_.append(ax.axvline(monitor.change_row_, **style))

    def _name_axes(self, frame, histories):
        from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

        last_row = (len(histories) - 1) // frame.n_columns
        longest = 0.6 * frame.size / 72 * len(str(max(history.n_rows[-1] for history in histories.values())))
        most_ticks = max(1, min(4, int(frame.width / (2 * longest))))
        for i, (panel, name) in enumerate(zip(frame.axes, histories, strict=True)):
            panel.xaxis.set_major_locator(MaxNLocator(most_ticks, integer=True))
            panel.yaxis.set_major_locator(LogLocator(numticks=5))
            panel.yaxis.set_minor_locator(NullLocator())
            panel.set_xlabel("Rows" if i // frame.n_columns == last_row else "", size=frame.size)
            panel.set_ylabel("e-value" if i % frame.n_columns == 0 else "", size=frame.size)
            if len(histories) > 1:
                panel.set_title(matplotlib_text(str(name)), fontsize=0.9 * frame.size, loc="left")


def _evidence(monitor):
    """Return what sorts monitors: those with an alarm first, then by the e-value over the threshold."""
    return monitor.alarm_, monitor.e_value_ / monitor.threshold_


def _captions(name, monitor):
    """Return what is written about a single monitor, in words for more and less room."""
    size = f"{format_count(monitor.n_rows_)} rows"
    first = size if name is None else f"{matplotlib_text(str(name))}, {size}"
    if not monitor.alarm_:
        return [f"{first}\nno alarm"]
    alarm = f"alarm at row {format_count(monitor.alarm_row_)}"
    return [f"{first}\n{alarm}, change at row {format_count(monitor.change_row_)}", f"{first}\n{alarm}"]
