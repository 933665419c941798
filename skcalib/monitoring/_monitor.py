"""A monitor of calibration: likelihood ratios against the scores, which control their
false-alarm rate however often one looks.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass
from itertools import product
from math import exp, log
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from skcalib._cells.statistics import BinStatistics
from skcalib._defaults import unchanged_if_refused
from skcalib._described import DescribedEstimator
from skcalib._inference.results import ResultTable
from skcalib._input.classes import (
    encode_labels,
    in_class_order,
    unique_labels,
    zero_one,
)
from skcalib._input.labels import (
    check_label_vector,
    no_vector,
    several_labels_shape,
    shown,
)
from skcalib._input.scalars import check_confidence_level, check_number, invalid
from skcalib._input.scores import checked_scores, refuse_swapped
from skcalib._input.tensors import as_array
from skcalib._rows.links import clip_probability
from skcalib._verdicts import count_words, level_words, rounded

if TYPE_CHECKING:
    from pandas import DataFrame

# A bet predicts the event with probability expit(slope z + shift), z the log-odds of
# the score. Slope 1 with shift 0 is the score itself, and no bet.
_SLOPES = (1.0, 0.6, 1.5)
_SHIFTS = (0.0, 0.13, -0.13, 0.4, -0.4, 1.2, -1.2)
_BETS = [bet for bet in product(_SLOPES, _SHIFTS) if bet != (1.0, 0.0)]
_BET_SLOPES, _BET_SHIFTS = np.array(_BETS).T  # each (_N_BETS,)
_N_BETS = len(_BETS)
_BLOCK_ROWS = 2048  # rows whose likelihood ratios are held in memory at a time
# With restarts, the share of the capital that is not at stake from the first row on: it
# is released over time, for bets that start later.
_KEPT_BACK = 0.5
_FIRST_ROWS = 10.0  # with restarts, rows after which the release slows down
# From how many standard deviations on the sentence says on which side scores are.
_CLEAR = 3
_LARGEST_LOG = log(np.finfo(float).max)


@dataclass(frozen=True, eq=False, repr=False)
class MonitorHistory(ResultTable):
    """History of a `CalibrationMonitor`, with one row per batch.

    Parameters
    ----------
    n_rows : ndarray of int
        Number of samples processed by the end of each batch.
    n : ndarray of int
        Number of samples in the batch.
    mean_score, event_frequency : ndarray of float
        Means of the scores and of the labels in the batch.
    e_value : ndarray of float
        Evidence against calibration at the end of the batch.
    alarm : ndarray of bool
        Whether there had been an alarm by the end of the batch.
    """

    n_rows: np.ndarray
    n: np.ndarray
    mean_score: np.ndarray
    event_frequency: np.ndarray
    e_value: np.ndarray
    alarm: np.ndarray

    def _sentences(self):
        """Say how many samples were seen, and whether there was an alarm."""
        n_batches = len(self)
        batches = "1 batch" if n_batches == 1 else f"{n_batches:,} batches"
        state = "no alarm"
        if self.alarm[-1]:
            rows = count_words(self.n_rows[np.argmax(self.alarm)])
            state = f"alarm within the first {rows} samples"
        return (
            f"{batches} with {count_words(self.n_rows[-1])} samples: {state}, e-value"
            f" {rounded(self.e_value[-1])}."
        )


def alarm_words(
    alarm_row, change_row, *, n_rows, e_value, threshold, level="", side="", times=()
):
    """Return the sentence on the state of a monitor.

    Parameters
    ----------
    alarm_row, change_row : int or None
        Samples of the alarm and after the change, counted from 0.
    n_rows : int
        Number of samples processed.
    e_value, threshold : float
        The evidence, and where it raises the alarm.
    level : str, default=""
        What qualifies the alarm: "confidence level 99 %".
    side : str, default=""
        What the scores were after the change: "too high".
    times : tuple, default=()
        Times of the alarm and of the change, if they are known.
    """
    if alarm_row is None:
        return (
            f"No alarm in {count_words(n_rows)} samples{level and f' ({level})'}: the"
            f" evidence against calibration is {rounded(e_value)}, below the alarm"
            f" threshold of {rounded(threshold)}."
        )
    alarm, change = f"sample {alarm_row:,}", f"sample {change_row:,}"
    if times and times[0] is not None:
        alarm, change = f"{alarm} ({times[0]})", f"{change} ({times[1]})"
    finding = f": {side}; the" if side else ": the"
    alarm += level and f" ({level})"
    return f"Alarm at {alarm}{finding} change lies near {change}."


class CalibrationMonitor(DescribedEstimator, BaseEstimator):
    """Monitor that raises an alarm when a model loses its calibration.

    It may be checked after every sample.

    Each sample updates twenty likelihood ratios, each comparing scores with shifted or
    stretched log-odds to the original scores. As long as the scores are calibrated, the
    mean of these ratios, the e-value, stays below ``1 / (1 - confidence_level)`` at all
    times with probability `confidence_level`. Samples may arrive one by one or in
    batches of any size, with the same result.

    Parameters
    ----------
    confidence_level : float, default=0.99
        Probability that there is never an alarm as long as the scores are calibrated.
        The default is 0.99 because a monitor runs for a long time and is often one of
        many.
    average_run_length : float, default=None
        Lower bound on the average number of samples until the first false alarm. If
        given, the evidence restarts at every sample (an e-detector), which detects late
        changes sooner but gives false alarms in the long run; `confidence_level` is not
        used.
    restarts : bool, default=False
        Whether to reserve half of the evidence for later starts, spread over all later
        samples. The level is maintained, and a change after thousands of samples is
        detected about twice as fast. This option cannot be combined with
        `average_run_length`.
    classes : array-like, default=None
        The two labels, in sorted order: scores are probabilities of the second label.
        For K > 2 labels, scores have K columns, and the confidence of the predicted
        class is monitored. None means labels 0 and 1 or booleans.

    Attributes
    ----------
    e_value_ : float
        Evidence against calibration; with `average_run_length`, this is the e-detector.
    threshold_ : float
        The `e_value_` that triggers an alarm.
    alarm_ : bool
        Whether there has been an alarm. It persists until `fit`.
    alarm_row_ : int or None
        Sample of the alarm, counted from 0; for a `BinStatistics`, the last sample of
        its batch.
    change_row_ : int or None
        Estimated first sample after the change, computed at the alarm.
    alarm_time_, change_time_ : object or None
        The times of these two samples; None if there is no alarm or no times were
        given.
    n_rows_ : int
        Number of samples processed.
    history_ : MonitorHistory
        Table with one row per batch: rows processed so far, mean score, event
        frequency, e-value and alarm.

    Raises
    ------
    ValueError
        In `fit` and `partial_fit`, if a score is missing or outside [0, 1], a label is
        not one of the classes, or the lengths differ.

    See Also
    --------
    calibration_change : Compares two data sets of fixed sizes.

    Notes
    -----
    Add a sample only when its label would be known regardless of its value. If events
    are reported immediately but non-events only after 30 days, pass each sample to the
    monitor 30 days after it was scored. If labels are added in the order in which they
    arrive, the first samples contain only events, which causes a false alarm.

    A monitor can be pickled, and continues to work after it is loaded. To monitor
    groups, or the column of scores of each class, use a dict of monitors. Give each
    of them the confidence level ``1 - (1 - level) / n_monitors`` to control the joint
    error rate.

    By the time of a late change, a likelihood ratio that starts at sample 0 has become
    small. With `restarts`, this ratio has half of the weight, and the other half is
    spread over ratios that start later. After n samples, a share of
    ``log(10) / log(10 + n)`` of this other half has not yet started. Each ratio has the
    value 1 at the sample at which it starts. A mixture of likelihood ratios that start
    at fixed samples controls the level. In simulations with a shift of .3 or .6 in the
    log-odds at sample 5,000 and level .05, the median delay is 1,487 or 464 samples,
    and 2,975 or 1,105 without `restarts`. If the size of the shift is known, the same
    scheme needs 1,024 or 326 samples.

    A batch of `BinStatistics` counts as one step with its bin means, which gives
    slightly less power than one step for each sample. Weights are rejected. For a log
    that keeps some of the samples of one label, pass the probabilities that its samples
    have: ``s w0 / (s w0 + (1 - s) w1)`` for the weights w1 with and w0 without the
    event.

    References
    ----------
    Ville (1939), Etude critique de la notion de collectif. Shin, Ramdas and Rinaldo
    (2024), E-detectors: a nonparametric framework for sequential change detection.

    Examples
    --------
    From sample 3,000 onwards, the log-odds of the scores are too low:

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
        with unchanged_if_refused(self):
            self._reset()
            return self.partial_fit(scores, y, time)

    def partial_fit(
        self,
        scores: ArrayLike | BinStatistics,
        y: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> Self:
        """Update with the next samples, in chronological order.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 2) or (n, K), or BinStatistics
            Probabilities of one or more samples. A `BinStatistics` also contains the
            labels.
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
            If scores or labels are invalid, or if a `BinStatistics` has weights.
        """
        with unchanged_if_refused(self):
            if not hasattr(self, "n_rows_"):
                self._reset()
            if isinstance(scores, BinStatistics):
                self._see_statistics(scores, y, time)
            else:
                self._see_rows(scores, y, time)
        return self

    @property
    def alarm_time_(self):
        """Time of the alarm; None if there is no alarm or no times were given."""
        self._check_seen()
        return time_of_row(getattr(self, "_times", ()), self.alarm_row_)

    @property
    def change_time_(self):
        """Time of the estimated first row after the change; None if there is no alarm
        or no times were given.
        """
        self._check_seen()
        return time_of_row(getattr(self, "_times", ()), self.change_row_)

    @property
    def history_(self):
        """Table with one row per batch: rows processed so far, mean score, event
        frequency, e-value and alarm.
        """
        self._check_seen()
        # `_batches` has a column per quantity, with an entry for each batch.
        columns = map(np.array, self._batches)
        n_rows, n, sum_of_scores, n_events, e_value, alarm = columns
        return MonitorHistory(
            n_rows=n_rows,
            n=n,
            mean_score=sum_of_scores / n,
            event_frequency=n_events / n,
            e_value=e_value,
            alarm=alarm.astype(bool),
        )

    def to_frame(self) -> DataFrame:
        """Return the history as a pandas DataFrame.

        Returns
        -------
        frame : pandas.DataFrame
            The columns of `MonitorHistory`.

        Raises
        ------
        ImportError
            If pandas is not installed.
        sklearn.exceptions.NotFittedError
            If no samples have been processed.
        """
        return self.history_.to_frame()

    def _state_sentence(self):
        """Return whether there has been an alarm; nothing before any sample."""
        if not hasattr(self, "n_rows_"):
            return ""
        level = ""
        if self.average_run_length is None:
            level = f"confidence level {level_words(self.confidence_level)}"
        return alarm_words(
            self.alarm_row_,
            self.change_row_,
            n_rows=self.n_rows_,
            e_value=self.e_value_,
            threshold=self.threshold_,
            level=level,
            side=self._side_words(),
            times=(self.alarm_time_, self.change_time_) if self.alarm_ else (),
        )

    def _side_words(self):
        """Return on which side the scores have been in the batches that end after the
        change; nothing without an alarm, or if it is not clear.
        """
        if not self.alarm_:
            return ""
        n_rows, n, sum_of_scores, n_events, *_ = map(np.array, self._batches)
        later = n_rows > self.change_row_  # batches that end after the change
        excess = np.sum(sum_of_scores[later] - n_events[later])
        mean_score = sum_of_scores[later] / n[later]
        deviation = np.sqrt(np.sum(n[later] * mean_score * (1 - mean_score)))
        if abs(excess) <= _CLEAR * deviation:
            return ""
        return "scores too high" if excess > 0 else "scores too low"

    def _check_seen(self):
        """Raise a NotFittedError if no rows have been processed."""
        if not hasattr(self, "n_rows_"):
            raise NotFittedError(
                "This CalibrationMonitor has not processed any rows yet: call"
                " partial_fit."
            )

    def _reset(self):
        """Check the parameters and go back to the state before the first row."""
        check_confidence_level(self.confidence_level)
        if not isinstance(self.restarts, bool | np.bool_):
            raise invalid("restarts", "True or False", self.restarts)
        if self.restarts and self.average_run_length is not None:
            raise ValueError(
                "restarts=True cannot be combined with average_run_length, with which"
                " the monitor restarts at every row."
            )
        if self.average_run_length is None:
            self.threshold_ = 1 / (1 - self.confidence_level)
        else:
            self.threshold_ = check_number(
                self.average_run_length, "average_run_length", above=1
            )
        # A bet is an alternative forecast; its wealth is the product of its likelihood
        # ratios against the scores. Here (_N_BETS,) the log wealth since the first row:
        self._log_wealth = np.zeros(_N_BETS)
        # and the log of the wealth of each bet summed over all rows at which it was
        # started so far. With restarts a part of the capital is at stake at first.
        at_first = log(1 - _KEPT_BACK) if self.restarts else -np.inf
        self._log_detector = np.full(_N_BETS, at_first)
        # For the change point: the lowest log wealth of each bet so far, and the first
        # row after it.
        self._lowest = np.zeros(_N_BETS)
        self._lowest_end = np.zeros(_N_BETS, dtype=np.int64)
        # One growing column for each field of `history_`: rows seen, rows of the batch,
        # sum of scores, number of events, e-value, alarm (q for integers, d for floats,
        # b for booleans).
        self._batches = tuple(array(typecode) for typecode in "qqdqdb")
        self._times = []  # pairs of the first row of a time, and the time
        self.n_rows_ = 0
        self.alarm_ = False
        self.alarm_row_ = None
        self.change_row_ = None
        self.e_value_ = 1.0 if self.average_run_length is None else 0.0

    def _see_rows(self, scores, y, time):
        """Update with rows: `scores`, labels `y` and `time` or None, as the user gave
        them.
        """
        # Arrays of floats and of 0 and 1 are checked at once, which is faster.
        batch = None
        if self.classes is None:
            batch = _plain_batch(scores, y)
        if batch is None:
            batch = self._checked_batch(scores, y)
        scores, events = batch
        # Pairs (first row with this time, time).
        times = []
        for row, label in starts_of_times(time, len(scores)):
            times.append((self.n_rows_ + row, label))
        for start in range(0, len(scores), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            self._advance(log_likelihood_ratios(scores[rows], events[rows]))
        # Invalid input was refused above: from here on the history is extended.
        n_events = np.count_nonzero(events)
        self._append_to_history(len(scores), scores.sum(), n_events)
        self._times.extend(times)

    def _see_statistics(self, statistics, y, time):
        """Update with a `BinStatistics` as if all its rows came at one time, each with
        the mean score of its bin. `y` must be None: bins contain the labels. `time` is
        one for all rows, or None.
        """
        if time is not None and np.ndim(time) > 0:
            raise ValueError("time must be one name or date for a BinStatistics.")
        if y is not None:
            raise ValueError(
                "y does not apply to a BinStatistics, which contains the labels: omit"
                " it."
            )
        if not np.array_equal(statistics.weight, statistics.count):
            raise ValueError(
                "scores is a BinStatistics with weights, which the monitor does not"
                " support."
            )
        n_rows = int(statistics.count.sum())
        if n_rows == 0:
            return
        filled = statistics.count > 0
        scores = np.clip(statistics.mean_score[filled], 0, 1)
        events = statistics.weighted_label[filled]
        non_events = statistics.count[filled] - events
        if_event = log_likelihood_ratios(scores, np.full(len(scores), True))
        if_no_event = log_likelihood_ratios(scores, np.full(len(scores), False))
        # All rows are one step: the sum of their log ratios, (1, _N_BETS).
        log_ratio = events @ if_event + non_events @ if_no_event
        first_row = self.n_rows_
        self._advance(log_ratio[None], rows_per_step=n_rows)
        self._append_to_history(
            n_rows, statistics.weighted_score.sum(), round(events.sum())
        )
        if time is not None:
            self._times.append((first_row, time))

    def _advance(self, log_ratios, rows_per_step=1):
        """Update the evidence (the wealth of bets on alternative forecasts, of three
        kinds), the e-value and the alarm with the log likelihood ratios (n_steps,
        _N_BETS) of the next steps.
        """
        n_steps = len(log_ratios)
        # A sum of log ratios is the log of the product by which a bet's wealth grows.
        sums = np.cumsum(log_ratios, axis=0) if n_steps > 1 else log_ratios
        log_wealth = self._log_wealth + sums
        if self.restarts:
            # Bets start at all steps, with stakes that share a capital of 1.
            log_stakes, log_kept_back = _log_stakes(
                self.n_rows_, n_steps, rows_per_step
            )
            log_of_bets = self._log_sum_of_bets(sums, log_stakes)
            log_evidence = np.logaddexp(log_of_bets, log_kept_back)
        elif self.average_run_length is not None:
            # Each row starts a bet of its own, with a stake of 1 (Shiryaev-Roberts).
            log_evidence = self._log_sum_of_bets(sums, log(rows_per_step))
        else:
            # All bets start at the first row.
            log_evidence = log_wealth
        if not self.alarm_:
            self._look_for_alarm(log_evidence, log_wealth, rows_per_step)
        self._log_wealth = log_wealth[-1]
        self.n_rows_ += rows_per_step * n_steps
        # The mean over the bets, at most the largest float.
        self.e_value_ = exp(min(_log_mean_exp(log_evidence[-1]), _LARGEST_LOG))

    def _log_sum_of_bets(self, sums, log_stakes):
        """Return the log of the wealth R of each bet, summed over the steps at which it
        was started, after each step: (n_steps, _N_BETS).

        `sums` are cumulative log likelihood ratios S, `log_stakes` a number or
        (n_steps, 1). A bet started before step i has the wealth stake_i exp(S_t -
        S_(i-1)), so that R_t = (R_(t-1) + stake_t) exp(S_t - S_(t-1)).
        """
        # log(stake_i) - S_(i-1) for each start i.
        before = np.vstack((np.zeros(_N_BETS), sums[:-1]))
        starts = log_stakes - before
        # The wealth of bets from earlier steps is a further stake on the first step.
        starts[0] = np.logaddexp(starts[0], self._log_detector)
        log_sum = sums + np.logaddexp.accumulate(starts, axis=0)
        self._log_detector = log_sum[-1]
        return log_sum

    def _look_for_alarm(self, log_evidence, log_wealth, rows_per_step):
        """Set the alarm if the mean of the evidence (n_steps, _N_BETS) over the bets
        reaches the threshold, and estimate the first row after the change by the wealth
        (n_steps, _N_BETS) of bets since the first row: a bet gains from the change on.
        """
        log_threshold = log(self.threshold_)
        alarm_step = None
        # The mean over the bets is at most their maximum, which is cheap to compute.
        if log_evidence.max() >= log_threshold:
            is_near = log_evidence.max(axis=1) >= log_threshold
            for step in np.flatnonzero(is_near):
                if _log_mean_exp(log_evidence[step]) >= log_threshold:
                    alarm_step = step
                    break
        if alarm_step is not None:
            log_wealth = log_wealth[: alarm_step + 1]
        # As in CUSUM, the likely change under a bet is the row after its log wealth
        # was lowest. That is the last of equally low steps: argmin, which finds the
        # first, searches the reversed steps.
        lowest_step = len(log_wealth) - 1 - np.argmin(log_wealth[::-1], axis=0)
        lowest = log_wealth[lowest_step, np.arange(_N_BETS)]
        row_after = self.n_rows_ + (lowest_step + 1) * rows_per_step
        self._lowest_end = np.where(lowest <= self._lowest, row_after, self._lowest_end)
        self._lowest = np.minimum(lowest, self._lowest)
        if alarm_step is not None:
            self.alarm_ = True
            row_after_alarm = self.n_rows_ + (alarm_step + 1) * rows_per_step
            self.alarm_row_ = int(row_after_alarm - 1)
            # The bet that has gained most since its change names the row.
            best_bet = np.argmax(log_wealth[-1] - self._lowest)
            self.change_row_ = int(self._lowest_end[best_bet])

    def _append_to_history(self, n, sum_of_scores, n_events):
        """Add a batch of `n` rows to the columns of `history_`."""
        entries = (
            self.n_rows_,
            n,
            float(sum_of_scores),
            int(n_events),
            self.e_value_,
            self.alarm_,
        )
        for column, entry in zip(self._batches, entries, strict=True):
            column.append(entry)

    def _checked_batch(self, scores, y):
        """Return the score of the event (n,) and whether it happened (n,), or raise.

        With more than two classes the event is "the predicted class is right" and its
        score that of the predicted class.
        """
        classes = self.classes
        if classes is not None:
            scores, classes = in_class_order(
                scores,
                y,
                classes,
                name="scores",
                y_name="y",
                labels_name="classes",
            )
        shape = several_labels_shape(y)
        if shape is not None:
            cure = "For several labels per row, use one monitor for each."
            raise no_vector(y, "y", "scores", shape, cure)
        scores, predicted, confidence = checked_scores(
            scores, name="scores", predict_from=3, may_stay=True
        )
        y = check_label_vector(y, len(scores), name="y", scores_name="scores")
        refuse_swapped(y, scores, name="y", scores_name="scores")
        if classes is not None:
            _, codes = encode_labels(
                y, scores.shape[1], classes, name="y", classes_name="classes"
            )
            if scores.shape[1] > 2:
                return confidence.astype(np.float64), codes == predicted
            events = codes == 1
        else:
            if scores.shape[1] > 2:
                raise ValueError(
                    f"scores has {scores.shape[1]} columns: name their labels with"
                    " classes=."
                )
            events = zero_one(y)
            if events is None:
                raise ValueError(
                    "y must contain 0 and 1, or booleans: name other labels, sorted,"
                    f" with classes=. Found {shown(unique_labels(y, 'y')[0])}."
                )
        return scores[:, -1].astype(np.float64), events


def starts_of_times(time, n_rows):
    """Return pairs (row, time), one for the first row of each run of equal times in a
    batch of `n_rows` rows. `time` is (n_rows,), one time for all rows, or None.
    """
    if time is None:
        return []
    if np.ndim(time) == 0:
        return [(0, time)]
    time = check_label_vector(time, n_rows, name="time", scores_name="scores")
    is_first = np.append(True, time[1:] != time[:-1])
    return [(int(row), time[row]) for row in np.flatnonzero(is_first)]


def time_of_row(times, row):
    """Return the time of a row, or None if the row is None or there are no times.
    `times` are the pairs (first row, time) of `starts_of_times`, in the order of rows.
    """
    if row is None or not times:
        return None
    n_begun = bisect_right(times, row, key=lambda pair: pair[0])
    _, time = times[max(n_begun - 1, 0)]
    return time


def log_likelihood_ratios(scores, events):
    """Return the log-likelihood ratio of each bet against the score, per sample. A bet
    is an alternative forecast of the event that is computed from the score.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores in [0, 1].
    events : ndarray of bool, shape (n,)
        Whether the event occurred.

    Returns
    -------
    ratios : ndarray of shape (n, _N_BETS)
        Log-likelihood ratios. Their exponentials have expectation 1 if the scores are
        calibrated.
    """
    clipped = clip_probability(scores)
    log_odds = np.log(clipped) - np.log1p(-clipped)
    # A log-odds z gives the event the probability 1 / (1 + exp(-z)), and a non-event
    # 1 / (1 + exp(z)): what happened has 1 / (1 + exp(sign z)).
    sign = 1.0 - 2.0 * events  # -1 for an event, 1 for a non-event
    signed = sign * log_odds
    # A bet forecasts the log-odds slope * z + shift in place of z: (n, _N_BETS).
    signed_of_bets = signed[:, None] * _BET_SLOPES + sign[:, None] * _BET_SHIFTS
    # The likelihood ratio is q / p, with the probabilities q by the bet and p by the
    # score of what happened.
    minus_log_p = np.log1p(np.exp(signed))
    minus_log_q = np.log1p(np.exp(signed_of_bets))
    return minus_log_p[:, None] - minus_log_q


def _log_stakes(n_rows, n_steps, rows_per_step):
    """Return the logarithms of the stakes with which bets start at each of the next
    steps, and of the capital that is kept for later bets: (n_steps, 1), or numbers for
    one step.

    After n rows, `_KEPT_BACK` log(a) / log(a + n) of the capital, a = 10, is kept. A
    stake is the decrease of this number during its step, so that all stakes add up to
    the capital. `n_rows` rows came before.
    """
    # Rows between the first step and each step, (n_steps, 1).
    later = 0.0
    if n_steps > 1:  # else a number, which is faster than an array
        later = rows_per_step * np.arange(n_steps, dtype=np.float64)[:, None]
    # a + n before and after each step.
    before = _FIRST_ROWS + n_rows + later
    after = before + rows_per_step
    kept_back = _KEPT_BACK * log(_FIRST_ROWS) / np.log(after)
    # The decrease is in proportion to 1 / log(before) - 1 / log(after), which equals
    # log(after / before) / (log(before) log(after)); a log1p keeps its digits.
    stakes = kept_back * np.log1p(rows_per_step / before) / np.log(before)
    return np.log(stakes), np.log(kept_back)


def _plain_batch(scores, y):
    """Return scores and events as arrays if they are valid floats in [0, 1] and
    booleans or 0 and 1, else None: for small batches the general checks would take
    longer than the monitor.
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
    if scores.dtype != np.float64 or len(scores) == 0:
        return None
    # A NaN fails both comparisons.
    if not (scores.min() >= 0 and scores.max() <= 1):
        return None
    if y.dtype == np.bool_:
        return scores, y
    if y.dtype == np.int64 and y.min() >= 0 and y.max() <= 1:
        return scores, y == 1
    return None


def _log_mean_exp(log_terms):
    """Return the logarithm of the mean of exp(log_terms), without overflow."""
    largest = float(log_terms.max())
    return largest + log(np.exp(log_terms - largest).sum() / len(log_terms))
