"""Monitors of groups: one for each group that appears, at levels that hold for all of
them together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from skcalib._cells.statistics import BinStatistics
from skcalib._defaults import DefaultObjects, unchanged_if_refused
from skcalib._described import DescribedEstimator
from skcalib._inference.results import ResultTable
from skcalib._input.groups import refuse_measurements
from skcalib._input.labels import check_groups, check_label_vector
from skcalib._input.scalars import check_confidence_level
from skcalib._verdicts import count_words, joined, rounded
from skcalib.monitoring._monitor import CalibrationMonitor, time_of_row

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False, repr=False)
class GroupMonitorTable(ResultTable):
    """Table of the groups of `GroupMonitors`: one row per group, in the order in which
    the groups appeared.

    Parameters
    ----------
    group : ndarray
        The groups.
    n_rows : ndarray of int
        Number of rows in the group.
    e_value : ndarray of float
        Evidence that the group is not calibrated.
    alarm : ndarray of bool
        Whether there has been an alarm.
    alarm_row, change_row : ndarray of int or None
        Row of the alarm, and the estimated first row after the change, counted from 0
        within the samples of the group. None if there is no alarm.
    alarm_time, change_time : ndarray
        The times of these samples. None if there is no alarm or no times were given.
    """

    group: np.ndarray
    n_rows: np.ndarray
    e_value: np.ndarray
    alarm: np.ndarray
    alarm_row: np.ndarray
    alarm_time: np.ndarray
    change_row: np.ndarray
    change_time: np.ndarray
    # on which side the scores of each group have been since its change, in words
    _sides: tuple = ()

    def _sentences(self):
        """Say which groups have had an alarm, and since when."""
        n = len(self)
        found = np.flatnonzero(self.alarm)
        rows = count_words(self.n_rows.sum())
        if len(found) == 0:
            k = np.argmax(self.e_value)
            return (
                f"No alarm in {n} groups with {rows} samples; strongest evidence:"
                f" {self.group[k]} (e-value {rounded(self.e_value[k])})."
            )
        since = []
        for k in found:
            change = self.change_time[k]
            if change is None:
                change = f"sample {self.change_row[k]:,} of the group"
            side = self._sides[k] if self._sides else ""
            since.append(
                f"{self.group[k]} ({side and f'{side}, '}change near {change})"
            )
        return f"Alarm in {len(found)} of {n} groups: {joined(since)}."


class GroupMonitors(DescribedEstimator, DefaultObjects, BaseEstimator):
    """Calibration monitors for groups, which may appear at any time.

    Each group has its own `CalibrationMonitor`. The k-th group to appear is assigned
    the share ``6 / (pi k)^2`` of the error probability. These shares sum to 1, so the
    probability of any false alarm is at most ``1 - confidence_level``, for any number
    of groups.

    Parameters
    ----------
    monitor : CalibrationMonitor, default=None
        Monitor to clone for each group; None means ``CalibrationMonitor()``. A monitor
        with `average_run_length` has no level and is rejected.
    confidence_level : float, default=None
        Probability that no group has an alarm as long as all are calibrated; None means
        the level of `monitor`.

    Attributes
    ----------
    monitors_ : dict
        The monitor of each group, in the order in which the groups appeared.
    alarm_ : bool
        Whether any group has had an alarm.
    n_rows_ : int
        Number of samples processed, across all groups.

    Raises
    ------
    ValueError
        In `fit` and `partial_fit`, if samples are invalid; the whole batch is then
        ignored.

    See Also
    --------
    CalibrationMonitor : Monitor for a single group.
    skcalib.displays.MonitorDisplay : Plots the monitors.

    Notes
    -----
    A group that appears late needs more evidence: the tenth group has .6% of the error
    probability. If the groups are known beforehand, pass the important groups
    first, for example in a sorted first batch.

    Examples
    --------
    From June onwards, the scores of one country are too low:

    >>> import numpy as np
    >>> from skcalib.monitoring import GroupMonitors
    >>> rng = np.random.default_rng(0)
    >>> monitors = GroupMonitors()
    >>> for month in range(1, 13):
    ...     scores, country = (
    ...         rng.uniform(0.1, 0.6, 2000),
    ...         rng.choice(["FR", "IT"], 2000),
    ...     )
    ...     y = rng.random(2000) < scores + 0.2 * ((country == "IT") & (month >= 6))
    ...     monitors = monitors.partial_fit(
    ...         scores, y, country, time=f"2025-{month:02d}"
    ...     )
    >>> table = monitors.table_
    >>> dict(zip(table.group.tolist(), table.alarm_time.tolist()))
    {'FR': None, 'IT': '2025-06'}
    """

    _default_objects = {"monitor": CalibrationMonitor}

    monitors_: dict

    def __init__(
        self,
        monitor: CalibrationMonitor | None = None,
        *,
        confidence_level: float | None = None,
    ):
        self.monitor = monitor
        self.confidence_level = confidence_level

    def fit(
        self,
        scores: ArrayLike | Mapping,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> Self:
        """Reset the monitors and process the first batch.

        Parameters
        ----------
        scores, y, groups, time : array-like
            As in `partial_fit`.

        Returns
        -------
        self : GroupMonitors
            The monitors.
        """
        with unchanged_if_refused(self):
            self._reset()
            return self.partial_fit(scores, y, groups, time)

    def partial_fit(
        self,
        scores: ArrayLike | Mapping,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> Self:
        """Update with the next samples, in chronological order.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 2) or (n, K), or dict
            Probabilities; or a dict that maps groups to `BinStatistics`, which also
            contains labels and groups.
        y : array-like of shape (n,), default=None
            Labels.
        groups : array-like of shape (n,), default=None
            The group of each sample. New groups may appear in any batch, and batches
            need not contain every group. More than 30 distinct non-integer floats, over
            all batches, are treated as measurements and rejected.
        time : scalar or array-like of shape (n,), default=None
            Time of the samples: a name or a date for the batch, or one for each sample.
            It is used only to date alarms and changes.

        Returns
        -------
        self : GroupMonitors
            The monitors.

        Raises
        ------
        ValueError
            If samples are invalid; the whole batch is then ignored.
        """
        with unchanged_if_refused(self):
            if not hasattr(self, "monitors_"):
                self._reset()
            if isinstance(scores, dict):
                batches = self._batches_of_statistics(scores, y, groups, time)
            else:
                batches = self._batches_of_rows(scores, y, groups, time)
        # Invalid input was refused above: from here on the state is changed.
        for group, group_scores, events, times in batches:
            monitor = self.monitors_.get(group)
            if monitor is None:
                monitor = self._new_monitor()
                self.monitors_[group] = monitor
                self._times[group] = []
            # `times` and `known_times` are pairs (first row with a time, time): counted
            # from the start of the batch, and of all rows of the group.
            n_seen = getattr(monitor, "n_rows_", 0)
            known_times = self._times[group]
            for row, label in times:
                # A time may go on from the last batch.
                if not known_times or known_times[-1][1] != label:
                    known_times.append((n_seen + row, label))
            monitor.partial_fit(group_scores, events)
        return self

    @property
    def alarm_(self):
        """Whether any group has had an alarm."""
        return any(monitor.alarm_ for monitor in self._seen().values())

    @property
    def n_rows_(self):
        """Number of samples processed, across all groups."""
        return sum(monitor.n_rows_ for monitor in self._seen().values())

    @property
    def table_(self):
        """Table with one row per group (`GroupMonitorTable`)."""
        monitors = self._seen()
        columns = {"group": list(monitors)}
        for name in ("n_rows", "e_value", "alarm", "alarm_row", "change_row"):
            columns[name] = [
                getattr(monitor, f"{name}_") for monitor in monitors.values()
            ]
        for event in ("alarm", "change"):
            rows = columns[f"{event}_row"]  # None for a group without an alarm
            # Filled one by one: NumPy would stack times that are arrays themselves.
            times = np.empty(len(rows), dtype=object)
            for place, (group, row) in enumerate(zip(monitors, rows, strict=True)):
                times[place] = time_of_row(self._times[group], row)
            columns[f"{event}_row"] = np.array(rows, dtype=object)
            columns[f"{event}_time"] = times
        for name, column in columns.items():
            columns[name] = np.asarray(column)
        sides = tuple(monitor._side_words() for monitor in monitors.values())
        return GroupMonitorTable(**columns, _sides=sides)

    def to_frame(self) -> DataFrame:
        """Return the table of the groups as a pandas DataFrame.

        Returns
        -------
        frame : pandas.DataFrame
            The columns of `GroupMonitorTable`.

        Raises
        ------
        ImportError
            If pandas is not installed.
        sklearn.exceptions.NotFittedError
            If no samples have been processed.
        """
        return self.table_.to_frame()

    def _state_sentence(self):
        """Return which groups have had an alarm; nothing before any sample."""
        if not getattr(self, "monitors_", None):
            return ""
        return self.table_._sentences()

    def _reset(self):
        """Check the parameters and forget all groups."""
        template = self._resolved("monitor")
        if not isinstance(template, CalibrationMonitor):
            raise TypeError(
                f"monitor must be a CalibrationMonitor, found {template!r}."
            )
        if template.average_run_length is not None:
            raise ValueError(
                f"monitor has average_run_length={template.average_run_length!r}, and"
                " therefore no level that several groups could share: omit"
                " average_run_length, and use restarts=True to detect late changes"
                " sooner."
            )
        if self.confidence_level is None:
            level = template.confidence_level
        else:
            level = self.confidence_level
        check_confidence_level(level)
        self._error_probability = 1 - level
        # Labels are made events before the rows are split, so that the monitors of
        # groups see events only: the classes are kept here, and the monitor that is
        # cloned for each group has none.
        self._classes = template.classes
        self._template = template.set_params(classes=None)
        self.monitors_ = {}
        # By group: pairs (first row of a run of equal times, time).
        self._times = {}

    def _new_monitor(self):
        """Return the monitor of the next group, at its share of the error
        probability.
        """
        # The k-th group has the share 6 / (pi k)^2: all shares sum to 1.
        k = len(self.monitors_) + 1
        level = 1 - self._error_probability * 6 / (np.pi * k) ** 2
        return clone(self._template).set_params(confidence_level=level)

    def _seen(self):
        """Return the monitors by group, or raise if there are none yet."""
        if not getattr(self, "monitors_", None):
            raise NotFittedError(
                "These GroupMonitors have not processed any rows yet: call partial_fit."
            )
        return self.monitors_

    def _batches_of_rows(self, scores, y, groups, time):
        """Return a list with (group, scores, events, times) for each group of a batch,
        in the order of their first rows; `times` are pairs (row, time), one for the
        first of the group's rows with a time.
        """
        # A monitor that knows the classes, which those of the groups do not.
        checker = clone(self._template).set_params(classes=self._classes)
        scores, events = checker._checked_batch(scores, y)
        # Each row belongs to the group names[codes[row]].
        names, codes = check_groups(groups, len(scores), scores_name="scores")
        if names.dtype.kind == "f":
            seen = [name for name in self.monitors_ if isinstance(name, float)]
            refuse_measurements(np.unique([*seen, *names]), "groups")
        names = names.tolist()
        if np.ndim(time) > 0:
            time = check_label_vector(
                time, len(scores), name="time", scores_name="scores"
            )
        elif time is not None:
            time = np.full(len(scores), time, dtype=object)
        # Row numbers of each group: sorted by group, then cut where the group changes.
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order])) + 1
        rows_by_group = np.split(order, starts)
        by_first_row = sorted(rows_by_group, key=lambda rows: rows[0])
        batches = []
        for rows in by_first_row:
            name = names[codes[rows[0]]]
            batches.append(
                (name, scores[rows], events[rows], _starts_of_times(time, rows))
            )
        return batches

    def _batches_of_statistics(self, statistics, y, groups, time):
        """Return (group, `BinStatistics`, None, times) for each group whose bins hold
        rows. None stands for the events, which bins contain; `times` is [(0, time)], or
        empty without a time.
        """
        if y is not None or groups is not None:
            raise ValueError(
                "y and groups do not apply to a dict of BinStatistics, which contains"
                " both: omit them."
            )
        for group, bins in statistics.items():
            if not isinstance(bins, BinStatistics):
                raise TypeError(
                    f"scores[{group!r}] must be a BinStatistics, found {bins!r}."
                )
        if time is not None and np.ndim(time) > 0:
            raise ValueError(
                "time must be one name or date for a dict of BinStatistics."
            )
        times = []
        if time is not None:
            times = [(0, time)]
        batches = []
        for group, bins in statistics.items():
            if bins.count.sum() > 0:
                # A trial run: weights are refused before any monitor is updated.
                clone(self._template).partial_fit(bins)
                batches.append((group, bins, None, times))
        return batches


def _starts_of_times(times, rows):
    """Return (position in the indices `rows`, time) for the first row of each run of
    equal `times`, which are of the whole batch, or None.
    """
    if times is None:
        return []
    times = times[rows]
    is_first = np.append(True, times[1:] != times[:-1])
    return [(int(row), times[row]) for row in np.flatnonzero(is_first)]
