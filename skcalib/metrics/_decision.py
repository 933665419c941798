"""The decision calibration error: what trusting the scores can cost."""

import numpy as np
from scipy.optimize import isotonic_regression

from skcalib._cells.reductions import check_rows_or_bins, one_task
from skcalib._errors.power import Error, Power, error_value
from skcalib._input.scalars import hint_at_keywords
from skcalib.binning import PoolAdjacentViolators, check_binning

_MOST_CELLS = 1 << 10  # that are recalibrated anew for each draw


class DecisionPower(Power):
    """The most that acting on the scores, in place of recalibrated ones, costs at any threshold."""

    refits = PoolAdjacentViolators

    def __init__(self, cells, *, rows, binning=None):
        super().__init__(cells)
        strategy, self._bin = check_binning(binning, PoolAdjacentViolators()), None
        if not isinstance(strategy, PoolAdjacentViolators):
            edges = strategy._edges_of(*rows.sorted_for(strategy))
            self._bin = np.unique(
                np.searchsorted(edges[1:-1], self.scores), return_inverse=True
            )[1]

    @classmethod
    def of_task(cls, task, most=None, **params):
        """See `Power`."""
        return super().of_task(
            task, None if most is None else min(most, _MOST_CELLS), rows=task, **params
        )

    def power(self, frequency):
        """See `Power`."""
        rows = np.reshape(frequency, (-1, len(self.scores)))
        return np.array(
            [self._costs(self._recalibrated(row)).max() for row in rows]
        ).reshape(frequency.shape[:-1])

    def worst(self):
        """Return the error of the labels and its threshold."""
        recalibrated = self._recalibrated(self.cells.event_frequency)
        costs = self._costs(recalibrated)
        cell = int(np.argmax(costs))
        score = float(self.scores[cell])
        return float(costs[cell]), score if recalibrated[cell] <= score else float(
            np.nextafter(score, 1)
        )

    def _recalibrated(self, frequency):
        if self._bin is None:
            return isotonic_regression(frequency, weights=self.weight).x
        return (
            np.bincount(self._bin, self.share * frequency)
            / np.bincount(self._bin, self.share)
        )[self._bin]

    def _costs(self, recalibrated):
        """Return the greater of the costs at each score and just above it; between scores the cost is convex in t."""
        order = np.argsort(recalibrated, kind="stable")
        value, share = recalibrated[order], self.share[order]
        first = np.searchsorted(value, self.scores)
        best = (
            _from(share * value)[first] - self.scores * _from(share)[first]
        )  # sum of (q - t) over q >= t
        found = (
            _from(self.share * recalibrated)[1:] - self.scores * _from(self.share)[1:]
        )  # over s > t
        return best - found + self.share * np.maximum(self.scores - recalibrated, 0)


def _from(values):
    """Return the sums from each place on, and 0."""
    return np.append(np.cumsum(values[::-1])[::-1], 0)


@hint_at_keywords
def decision_calibration_error(
    y_true,
    y_proba=None,
    *,
    binning=None,
    return_threshold=False,
    multiclass="auto",
    class_weight=None,
    sample_weight=None,
    pos_label=None,
    labels=None,
):
    """Decision calibration error: the most that trusting the scores can cost at any threshold.

    Somebody acts where the score reaches the threshold t at which acting breaks even. With the recalibrated score q in
    place of s the gain would be larger by the mean of ``(q - t)(1{q >= t} - 1{s >= t})``; the error is the maximum over
    t. It is at most the mean of ``|q - s|``.

    Parameters
    ----------
    y_true : array-like of shape (n,) or BinStatistics
        Labels; or the sums of bins with one distinct score each, in place of `y_true`, `y_proba` and all that
        describes rows.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    binning : BaseBinning, int or None, default=None
        Where q comes from: the event frequency of the bin of s. None is ``PoolAdjacentViolators()``, the isotonic fit;
        an int is a number of equal-mass bins. With coarse bins a calibrated model has an error above 0: one bin over
        calibrated uniform scores gives .0625.
    return_threshold : bool, default=False
        Whether the threshold at which the error is reached is returned as well.
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`; "marginal" is the mean over classes.
    class_weight : array-like of shape (K,) or dict, default=None
        See `calibration_error`.
    sample_weight : array-like of shape (n,), default=None
        Weights, which count as repeated rows.
    pos_label : int, float, bool or str, default=None
        The event; None is the greater of two labels, the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    error : float
        In [0, 1], in units of a false alarm plus a miss: a plugin error, which noise makes larger.
    threshold : float
        With `return_threshold`: the first of the worst thresholds, which is a score or the next number above one.

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score is missing or outside [0, 1], or
        weights are negative or all zero. For `return_threshold` with ``multiclass="marginal"``.

    See Also
    --------
    skcalib.decisions.net_benefit : The gain of a strategy at each threshold.
    skcalib.metrics.calibration_error_interval : An error with its interval.

    Notes
    -----
    Its interval and its test recalibrate each draw of the labels anew; with more than 1,024 different scores,
    neighbours are pooled there.

    References
    ----------
    Gupta and Ramdas (2021), Distribution-free calibration guarantees for histogram binning without sample splitting
    (Example 1). Hu and Wu (2024), Predict to minimize swap regret for all payoff-bounded tasks.

    Examples
    --------
    Forecasts that are too sure: their log-odds are twice too large.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import decision_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> error, threshold = decision_calibration_error(
    ...     y_true, y_proba, return_threshold=True
    ... )
    >>> round(error, 3), round(threshold, 2)
    (0.015, 0.12)

    Nine tenths of the rows have score .2 and event frequency .3: just above .2 each of them loses .3 - .2.

    >>> from skcalib.metrics import decision_calibration_error
    >>> y_true, y_proba = (
    ...     [1] * 27 + [0] * 63 + [1] * 6 + [0] * 4,
    ...     [0.2] * 90 + [0.8] * 10,
    ... )
    >>> error, threshold = decision_calibration_error(
    ...     y_true, y_proba, return_threshold=True
    ... )
    >>> round(error, 6), round(threshold, 6), threshold > 0.2
    (0.09, 0.2, True)
    """
    error = Error(
        DecisionPower,
        {"binning": binning},
        multiclass=multiclass,
        class_weight=class_weight,
    )
    rows = {"sample_weight": sample_weight, "pos_label": pos_label, "labels": labels}
    if not return_threshold:
        return error_value(error, y_true, y_proba, binning=binning, **rows)
    if multiclass == "marginal":
        raise ValueError(
            'return_threshold=True is for one problem, and multiclass="marginal" has one for each class.'
        )
    data = check_rows_or_bins(
        y_true, y_proba, binning=binning, multiclass=multiclass, **rows
    )
    return error.of_task(one_task(data, multiclass, pooled=True)).worst()
