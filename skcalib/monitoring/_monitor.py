"""A monitor of calibration: likelihood ratios against the scores, which control their
false-alarm rate however often one looks.
"""

from array import array
from bisect import bisect_right
from dataclasses import dataclass
from itertools import product
from math import exp, log
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from skcalib._cells.statistics import BinStatistics
from skcalib._inference.results import ResultTable
from skcalib._input.labels import check_label_vector, encode_labels, zero_one
from skcalib._input.scalars import check_confidence_level, check_number, invalid
from skcalib._input.scores import check_scores
from skcalib._input.tensors import as_array
from skcalib._rows.links import clip_probability

_SHIFTS = (0.0, 0.13, -0.13, 0.4, -0.4, 1.2, -1.2)
_SLOPES = (1.0, 0.6, 1.5)
# A bet predicts the event with probability expit(slope z + shift), z the log-odds of
# the score.
_BETS = np.array([bet for bet in product(_SLOPES, _SHIFTS) if bet != (1.0, 0.0)]).T
_N_BETS = _BETS.shape[1]
_BLOCK_ROWS = 2048
_KEPT_BACK = 0.5  # with restarts, of the stake at first
_FIRST_ROWS = 10.0  # with restarts, rows after which the release slows down
_LARGEST_LOG = log(np.finfo(float).max)


@dataclass(frozen=True, eq=False, repr=False)
class MonitorHistory(ResultTable):
    """What a `CalibrationMonitor` has seen, batch by batch.

    Parameters
    ----------
    n_rows : ndarray of int
        Number of samples seen up to the end of each batch.
    n : ndarray of int
        Number of samples of the batch.
    mean_score, event_frequency : ndarray of float
        Means of the scores and of the labels of the batch.
    e_value : ndarray of float
        Evidence against calibration at the end of the batch.
    alarm : ndarray of bool
        Whether there had been an alarm by then.
    """

    n_rows: np.ndarray
    n: np.ndarray
    mean_score: np.ndarray
    event_frequency: np.ndarray
    e_value: np.ndarray
    alarm: np.ndarray


class CalibrationMonitor(BaseEstimator):
    """Monitor that raises an alarm when a model loses its calibration.

    You may check it after every sample.

    Each sample updates twenty likelihood ratios, each comparing scores with shifted or
    stretched log-odds to the original scores. As long as the scores are calibrated, the
    mean of these ratios, the e-value, stays below ``1 / (1 - confidence_level)``
    forever with probability `confidence_level`. Samples may arrive one by one or in
    batches of any size, with the same result.

    Parameters
    ----------
    confidence_level : float, default=0.99
        Probability of no alarm, ever, as long as the scores are calibrated. The default
        is 0.99 because a monitor runs for a long time and is often one of many.
    average_run_length : float, default=None
        Lower bound on the average number of samples until the first false alarm. The
        evidence then restarts at every sample (an e-detector), which detects late
        changes sooner but gives false alarms in the long run. `confidence_level` is
        then not used.
    restarts : bool, default=False
        Whether to reserve half of the evidence for later starts, spread over all later
        samples. The level is maintained, and a change after thousands of samples is
        detected about twice as fast. Cannot be combined with `average_run_length`.
    classes : array-like, default=None
        The two labels, in sorted order: scores are the probability of the second. For K
        > 2 labels, scores have K columns, and the confidence of the predicted class is
        monitored. None means labels 0 and 1 or booleans.

    Attributes
    ----------
    e_value_ : float
        Evidence against calibration; with `average_run_length`, this is the e-detector.
    threshold_ : float
        The `e_value_` that triggers an alarm.
    alarm_ : bool
        Whether there has been an alarm. It persists until `fit`.
    alarm_row_ : int or None
        Row of the alarm, the first row being 0; the last row of its batch for a
        `BinStatistics`.
    change_row_ : int or None
        Estimated first row after the change, computed at the alarm.
    alarm_time_, change_time_ : object or None
        The times of these two rows; None without an alarm, or without `time`.
    n_rows_ : int
        Number of samples processed.
    history_ : MonitorHistory
        Table with one row for each batch: rows seen, mean score, event frequency,
        e-value and alarm.

    Raises
    ------
    ValueError
        In `fit` and `partial_fit`, if a score is missing or outside [0, 1], a label is
        not one of the classes, or lengths differ.

    See Also
    --------
    calibration_change : Two samples of fixed size.

    Notes
    -----
    Add a row only once its label would be known whatever its value. If events are
    reported at once and their absence after 30 days, give each sample to the monitor 30
    days after its score. In the order in which labels arrive, the early rows contain
    only events, which raises a false alarm.

    A monitor can be pickled, and continues after it is loaded. Watch segments, or each
    class by its column of scores, with a dict of monitors, and give each the confidence
    level ``1 - (1 - level) / n_monitors`` to control the level of all together.

    A likelihood ratio that starts at row 0 has become small by the time of a late
    change. With `restarts`, it has half of the weight. Of the other half, the share
    ``log(10) / log(10 + n)`` has not started after n rows; a ratio that starts at a row
    has the value 1 at that row. A mixture of likelihood ratios that start at fixed rows
    controls the level. Simulated with a shift of .3 or .6 in the log-odds at row 5,000
    and level .05, the median delay is 1,487 or 464 rows, and 2,975 or 1,105 without
    `restarts`. If the size of the shift is known, the same scheme needs 1,024 or 326
    rows.

    A batch of `BinStatistics` counts as one step on its bin means, which detects
    slightly less than one step for each sample; weights are rejected.

    References
    ----------
    Ville (1939), Etude critique de la notion de collectif. Shin, Ramdas and Rinaldo
    (2024), E-detectors: a nonparametric framework for sequential change detection.

    Examples
    --------
    The log-odds of the scores are too low from row 3,000 on:

    >>> import numpy as np
    >>> from skcalib.monitoring import CalibrationMonitor
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(0.1, 0.6, 6000)
    >>> y = rng.random(6000) < scores + 0.1 * (np.arange(6000) >= 3000)
    >>> monitor = CalibrationMonitor()
    >>> for month in range(6):
    ...     rows = slice(1000 * month, 1000 * (month + 1))
    ...     monitor = monitor.partial_fit(scores[rows], y[rows])
    >>> (
    ...     monitor.alarm_,
    ...     3000 < monitor.alarm_row_ < 4500,
    ...     abs(monitor.change_row_ - 3000) < 300,
    ... )
    (True, True, True)
    """

    e_value_: float
    threshold_: float
    alarm_: bool
    n_rows_: int
    # None until there is an alarm: a type checker that knew it would ask each reader of
    # an alarm for a check.
    alarm_row_: int | Any
    change_row_: int | Any

    def __init__(
        self,
        *,
        confidence_level: float = 0.99,
        average_run_length: float | None = None,
        restarts: bool = False,
        classes: ArrayLike | None = None,
    ):
        self.confidence_level = confidence_level
        self.average_run_length = average_run_length
        self.restarts = restarts
        self.classes = classes

    def fit(
        self,
        scores: ArrayLike | BinStatistics,
        y: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> Self:
        """Reset the monitor and process the first batch.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 2) or (n, K), or BinStatistics
            Probabilities.
        y : array-like of shape (n,), default=None
            Labels.
        time : scalar or array-like of shape (n,), default=None
            As in `partial_fit`.

        Returns
        -------
        self : CalibrationMonitor
            The monitor.
        """
        self._reset()
        return self.partial_fit(scores, y, time)

    def partial_fit(
        self,
        scores: ArrayLike | BinStatistics,
        y: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> Self:
        """Update with the next rows, in time order.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 2) or (n, K), or BinStatistics
            Probabilities; one row or many. A `BinStatistics` also holds the labels.
        y : array-like of shape (n,), default=None
            Labels. A batch may contain only one class.
        time : scalar or array-like of shape (n,), default=None
            Time of the samples: a name or a date for the batch, or one for each sample.
            It is used only to date the alarm and the change. Times are not saved when
            the monitor is written to JSON.

        Returns
        -------
        self : CalibrationMonitor
            The monitor.

        Raises
        ------
        ValueError
            If scores or labels are not valid, or for a `BinStatistics` with
            weights.
        """
        if not hasattr(self, "n_rows_"):
            self._reset()
        if isinstance(scores, BinStatistics):
            if time is not None and np.ndim(time) > 0:
                raise ValueError("time must be one name or date for a BinStatistics.")
            first_row = self.n_rows_
            self._see_statistics(scores, y)
            if time is not None and self.n_rows_ > first_row:
                self._times += [(first_row, time)]
            return self
        # A batch of the usual form needs no further check.
        batch = None
        if self.classes is None:
            batch = _plain_batch(scores, y)
        if batch is None:
            batch = self._checked_batch(scores, y)
        scores, events = batch
        times = runs_of_times(time, len(scores))
        self._times += [(self.n_rows_ + start, label) for start, label in times]
        for start in range(0, len(scores), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            self._advance(log_likelihood_ratios(scores[rows], events[rows]))
        self._record(len(scores), scores.sum(), np.count_nonzero(events))
        return self

    @property
    def alarm_time_(self):
        """Time of the row of the alarm; None without an alarm, or without times."""
        return time_of_row(getattr(self, "_times", ()), self.alarm_row_)

    @property
    def change_time_(self):
        """Time of the likely first row after the change; None without an alarm, or
        without times.
        """
        return time_of_row(getattr(self, "_times", ()), self.change_row_)

    @property
    def history_(self):
        """Table with one row for each batch: rows seen, mean score, event frequency,
        e-value and alarm.
        """
        if not hasattr(self, "n_rows_"):
            raise NotFittedError(
                "This CalibrationMonitor has not seen any rows yet: call partial_fit."
            )
        seen, n, score, events, e_value, alarm = map(np.array, self._batches)
        return MonitorHistory(
            seen, n, score / n, events / n, e_value, alarm.astype(bool)
        )

    def _reset(self):
        """Check the parameters and go back to the state before the first row."""
        check_confidence_level(self.confidence_level)
        if not isinstance(self.restarts, bool | np.bool_):
            raise invalid("restarts", "True or False", self.restarts)
        if self.restarts and self.average_run_length is not None:
            raise ValueError(
                "restarts=True has no meaning with average_run_length, which restarts"
                " at every row."
            )
        if self.average_run_length is None:
            self.threshold_ = 1 / (1 - self.confidence_level)
        else:
            self.threshold_ = check_number(
                self.average_run_length, "average_run_length", above=1
            )
        self._log_wealth = np.zeros(_N_BETS)  # of each bet, all rows
        # Of each bet, summed over the rows at which it starts.
        start = log(1 - _KEPT_BACK) if self.restarts else -np.inf
        self._log_detector = np.full(_N_BETS, start)
        self._lowest = np.zeros(_N_BETS)  # log wealth, and the first row after it
        self._lowest_end = np.zeros(_N_BETS, dtype=np.int64)
        self._batches = tuple(array(kind) for kind in "qqdqdb")
        self._times = []  # pairs of the first row of a time, and the time
        self.n_rows_ = 0
        self.alarm_ = False
        self.alarm_row_ = None
        self.change_row_ = None
        self.e_value_ = 1.0 if self.average_run_length is None else 0.0

    def _see_statistics(self, statistics, y):
        """Update with the sums of bins as if all their rows came at one time."""
        if y is not None:
            raise ValueError(
                "y has no meaning for a BinStatistics, which holds the labels: leave it"
                " out."
            )
        if not np.array_equal(statistics.weight, statistics.count):
            raise ValueError(
                "scores is a BinStatistics with weights, which the monitor does not"
                " take."
            )
        n_rows = int(statistics.count.sum())
        if n_rows == 0:
            return
        filled = statistics.count > 0
        scores = np.clip(statistics.mean_score[filled], 0, 1)
        events = statistics.weighted_label[filled]
        of_events = log_likelihood_ratios(scores, np.full(len(scores), True))
        of_others = log_likelihood_ratios(scores, np.full(len(scores), False))
        ratio = events @ of_events + (statistics.count[filled] - events) @ of_others
        self._advance(ratio[None], n_rows)
        self._record(n_rows, statistics.weighted_score.sum(), round(events.sum()))

    def _advance(self, ratios, n_each=1):
        """Add the log likelihood ratios (steps, bets) of steps, each of `n_each`
        rows.
        """
        sums = np.cumsum(ratios, axis=0) if len(ratios) > 1 else ratios
        wealth = self._log_wealth + sums
        if self.restarts:
            evidence = self._detector(
                sums, *_released(self.n_rows_, len(ratios), n_each)
            )
        elif self.average_run_length is not None:
            evidence = self._detector(sums, log(n_each), None)
        else:
            evidence = wealth
        if not self.alarm_:
            self._look_for_alarm(evidence, wealth, n_each)
        self._log_wealth = wealth[-1]
        self.n_rows_ += n_each * len(ratios)
        self.e_value_ = exp(min(_log_mean(evidence[-1]), _LARGEST_LOG))

    def _detector(self, sums, log_stakes, log_kept_back):
        """Return the logarithm of R <- (R + stake) LR after each step, and of what is
        not at stake yet.
        """
        before = np.vstack((np.zeros(_N_BETS), sums[:-1]))
        starts = log_stakes - before  # what starts at a step, less the sums before
        starts[0] = np.logaddexp(starts[0], self._log_detector)
        evidence = sums + np.logaddexp.accumulate(starts, axis=0)
        self._log_detector = evidence[-1]
        if log_kept_back is None:
            return evidence
        return np.logaddexp(evidence, log_kept_back)

    def _look_for_alarm(self, evidence, wealth, n_each):
        """Set the alarm at the first step at which the mean bet reaches the threshold,
        and the likely start of the change.
        """
        threshold = log(self.threshold_)
        alarm = None
        # the mean of the bets is at most their maximum, which is cheap
        if evidence.max() >= threshold:
            near = np.flatnonzero(evidence.max(axis=1) >= threshold)
            alarm = next(
                (step for step in near if _log_mean(evidence[step]) >= threshold), None
            )
        if alarm is not None:
            wealth = wealth[: alarm + 1]
        # The sum of a bet from 0 on leaves 0 where its cumulative sum is lowest, at the
        # last of such rows.
        last = len(wealth) - 1 - np.argmin(wealth[::-1], axis=0)
        lowest = wealth[last, np.arange(_N_BETS)]
        self._lowest_end = np.where(
            lowest <= self._lowest, self.n_rows_ + (last + 1) * n_each, self._lowest_end
        )
        self._lowest = np.minimum(lowest, self._lowest)
        if alarm is not None:
            self.alarm_ = True
            self.alarm_row_ = int(self.n_rows_ + (alarm + 1) * n_each - 1)
            self.change_row_ = int(
                self._lowest_end[np.argmax(wealth[-1] - self._lowest)]
            )

    def _record(self, n, score, events):
        values = self.n_rows_, n, float(score), int(events), self.e_value_, self.alarm_
        for column, value in zip(self._batches, values, strict=True):
            column.append(value)

    def _checked_batch(self, scores, y):
        """Return scores of the event and whether it happened, or raise."""
        scores = check_scores(scores, name="scores")
        y = check_label_vector(y, len(scores), name="y", scores_name="scores")
        if self.classes is not None:
            _, codes = encode_labels(
                y, scores.shape[1], self.classes, name="y", classes_name="classes"
            )
            if scores.shape[1] > 2:
                return scores.max(axis=1).astype(np.float64), codes == scores.argmax(
                    axis=1
                )
            events = codes == 1
        elif scores.shape[1] > 2:
            raise ValueError(
                f"scores has {scores.shape[1]} columns: name their labels with"
                " classes=."
            )
        elif (events := zero_one(y)) is None:
            raise ValueError(
                "y must hold 0 and 1 or booleans: name other labels with classes=."
            )
        return scores[:, -1].astype(np.float64), events


def runs_of_times(time, n_rows):
    """Return pairs of a row and a time wherever the time changes along a batch."""
    if time is None:
        return []
    if np.ndim(time) == 0:
        return [(0, time)]
    time = check_label_vector(time, n_rows, name="time", scores_name="scores")
    begins = np.append(True, time[1:] != time[:-1])
    return [(int(row), time[row]) for row in np.flatnonzero(begins)]


def time_of_row(times, row):
    """Return the time of a row from pairs of the first row of a time, and the time."""
    if row is None or not times:
        return None
    place = bisect_right(times, row, key=lambda pair: pair[0])
    return times[max(place - 1, 0)][1]


def log_likelihood_ratios(scores, events):
    """Return the log likelihood ratio of each bet against the score, in each sample.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores in [0, 1].
    events : ndarray of bool, shape (n,)
        Whether the event happened.

    Returns
    -------
    ratios : ndarray of shape (n, `N_BETS`)
        Their exponentials have the expectation 1 where the scores are calibrated.
    """
    clipped = clip_probability(scores)
    sign = 1.0 - 2.0 * events
    # minus the log-odds of what happened
    against = sign * (np.log(clipped) - np.log1p(-clipped))
    # log(q / p) = log(1 + exp(against)) - log(1 + exp(against of the bet))
    of_bets = against[:, None] * _BETS[0] + sign[:, None] * _BETS[1]
    return np.log1p(np.exp(against))[:, None] - np.log1p(np.exp(of_bets))


def _released(n_rows, n_steps, n_each):
    """Return the logarithms of the stakes that start at steps of `n_each` rows, and of
    those kept back after them.

    After n rows the share log(a) / log(a + n) of what was kept back at first still is:
    the differences add up to 1.
    """
    # a number is faster
    later = 0.0
    if n_steps > 1:
        later = n_each * np.arange(n_steps, dtype=np.float64)[:, None]
    before = _FIRST_ROWS + n_rows + later
    after = before + n_each
    kept_back = _KEPT_BACK * log(_FIRST_ROWS) / np.log(after)
    stakes = kept_back * np.log1p(n_each / before) / np.log(before)
    return np.log(stakes), np.log(kept_back)


def _plain_batch(scores, y):
    """Return a batch that is valid plain arrays, else None: general checks take longer
    than the monitor.
    """
    if isinstance(scores, list):
        scores, _ = as_array(scores)
        y, _ = as_array(y)
    if (
        type(scores) is not np.ndarray
        or type(y) is not np.ndarray
        or scores.shape != y.shape
        or scores.ndim != 1
    ):
        return None
    if (
        scores.dtype != np.float64
        or len(scores) == 0
        or not (scores.min() >= 0 and scores.max() <= 1)
    ):
        return None
    if y.dtype == np.bool_:
        return scores, y
    if y.dtype == np.int64 and y.min() >= 0 and y.max() <= 1:
        return (scores, y == 1)
    return None


def _log_mean(values):
    """Return the logarithm of the mean of exponentials."""
    largest = float(values.max())
    return largest + log(np.exp(values - largest).sum() / len(values))
