"""The kernel calibration error: whether all K probabilities of a row are right at once."""

import numpy as np
from scipy.sparse import csr_array

from skcalib._input.scalars import check_number, check_option, hint_at_keywords
from skcalib._input.scored_labels import check_scored_labels

_LANDMARKS = (
    512  # rows that stand for all in the median distance and in the draws of the test
)
_ROWS, _COLUMNS = 64, 512  # pairs of rows at a time: their distances fit the cache


@hint_at_keywords
def kernel_calibration_error(
    y_true,
    y_proba,
    *,
    bandwidth="median",
    sample_weight=None,
    pos_label=None,
    labels=None,
):
    """Squared kernel calibration error (SKCE): whether all K probabilities of a row are right at once.

    The mean over pairs of different rows i, j of ``exp(-TV(p_i, p_j) / bandwidth) <e_yi - p_i, e_yj - p_j>``. e_y is
    the indicator vector of the label, and TV half the l1 distance of two rows of probabilities. The error is signed.
    Its mean is 0 exactly for a model whose whole vector of probabilities is calibrated (canonical calibration).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels, of two rows or more.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1]; two classes are the columns (1 - s, s).
    bandwidth : float or "median", default="median"
        Distance at which the weight of a pair has fallen to 1/e; "median" is the median distance of the rows (of 512
        rows at equal steps in sorted order where there are more different ones; 1 where it is 0).
    sample_weight : array-like of shape (n,), default=None
        Weights, which count as repeated rows: copies of a row are pairs.
    pos_label : int, float, bool or str, default=None
        The event; None is the greater of two labels, the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    error : float
        Unbiased estimate of a square, so that it may be negative; at most 2.

    Raises
    ------
    ValueError
        For invalid input, a bandwidth that is not positive, and fewer than two rows.

    See Also
    --------
    skcalib.metrics.calibration_test : Takes it as `metric`; with draws of the labels it has a test, but no interval.
    skcalib.evaluation.recalibration_gain : Another canonical error, in units of log-loss.

    Notes
    -----
    All pairs are computed, at a cost of n^2 K / 2: 5 seconds of a processor for 100 classes and 10,000 rows. Its test
    draws one label a row; the kernel is then that of 512 landmark rows (Nyström), which is exact for up to as many
    different rows.

    References
    ----------
    Widmann, Lindsten and Zachariah (2019), Calibration tests in multi-class classification: a unifying framework.

    Examples
    --------
    Forecasts that are too sure: their log-odds are twice too large.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import kernel_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> round(kernel_calibration_error(y_true, y_proba), 4)
    0.0052

    Two equal rows, one label each way: <(.5, -.5), (-.5, .5)> = -.5.

    >>> from skcalib.metrics import kernel_calibration_error
    >>> kernel_calibration_error([0, 1], [[0.5, 0.5], [0.5, 0.5]])
    -0.5
    """
    data = check_scored_labels(
        y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label, labels=labels
    )
    proba, weight = _columns_and_weights(data)
    if weight.sum() <= 1:
        raise ValueError(
            f"y_true must hold two rows or more: pairs are compared, found a weight of {weight.sum():g}."
        )
    bandwidth = _bandwidth(bandwidth, *_landmarks(proba, weight))
    residual = -proba
    residual[np.arange(len(proba)), data.labels.astype(np.intp)] += 1
    columns, weighted, total = (
        np.ascontiguousarray(proba.T),
        weight[:, None] * residual,
        0.0,
    )
    for start in range(0, len(proba), _ROWS):
        rows, rest = (
            slice(start, start + _ROWS),
            range(start + _ROWS, len(proba), _COLUMNS),
        )
        for others, times in (
            (rows, 1),
            *((slice(first, first + _COLUMNS), 2) for first in rest),
        ):
            kernel = np.exp(
                _distances(columns[:, rows], columns[:, others]) / -bandwidth
            )
            total += times * np.sum(kernel * (weighted[rows] @ weighted[others].T))
    own = weight @ np.sum(residual**2, axis=1)
    return float((total - own) / (weight.sum() * (weight.sum() - 1)))


def kernel_statistics(data, draws, *, bandwidth="median"):
    """Return the error, up to a factor, of validated labels and of drawn ones (labels, scores, weights as a dict)."""
    proba, weight = _columns_and_weights(data)
    places, mass = _landmarks(proba, weight)
    bandwidth = _bandwidth(bandwidth, places, mass)
    columns, landmarks = np.ascontiguousarray(proba.T), np.ascontiguousarray(places.T)
    blocks = (
        columns[:, start : start + _ROWS] for start in range(0, len(proba), _ROWS)
    )
    kernel = np.concatenate(
        [np.exp(_distances(block, landmarks) / -bandwidth) for block in blocks]
    )
    values, vectors = np.linalg.eigh(
        np.exp(_distances(landmarks, landmarks) / -bandwidth)
    )
    used = values > 1e-10 * values[-1]
    features = (kernel @ (vectors[:, used] / np.sqrt(values[used]))).astype(
        np.float32
    )  # kernel = features features'
    expected = (weight[:, None] * proba).T @ features
    own = np.sum(features**2, axis=1)[:, None] * (
        1 - 2 * proba + np.sum(proba**2, axis=1, keepdims=True)
    )

    def statistic(labels, sample_weight=None):
        times = np.ones(len(labels)) if sample_weight is None else sample_weight
        row, labels = np.arange(len(labels)) % len(proba), labels.astype(np.intp)
        counts = csr_array(
            (times.astype(np.float32), (labels, row)),
            expected.shape[:1] + (len(proba),),
        )
        return float(
            np.sum((counts @ features - expected) ** 2) - times @ own[row, labels]
        )

    observed = statistic(data.labels, data.sample_weight)
    return [observed, *(statistic(labels, **given) for labels, _, given in draws)]


def _columns_and_weights(data):
    columns = (
        np.column_stack((1 - data.scores, data.scores))
        if data.is_binary
        else data.scores
    )
    return columns.astype(np.float64), np.ones(
        len(columns)
    ) if data.sample_weight is None else data.sample_weight


def _landmarks(proba, weight):
    """Return the different rows in sorted order with their weights, or 512 of them at equal steps of the weight."""
    places, code = np.unique(proba, axis=0, return_inverse=True)
    mass = np.bincount(code.ravel(), weight)
    if len(places) <= _LANDMARKS:
        return places, mass
    total = np.cumsum(mass)
    steps = (np.arange(_LANDMARKS) + 0.5) / _LANDMARKS * total[-1]
    taken, times = np.unique(np.searchsorted(total, steps), return_counts=True)
    return places[taken], times.astype(np.float64)


def _bandwidth(bandwidth, places, mass):
    """Return the number that it is; the median is over pairs of rows, copies included."""
    if not isinstance(bandwidth, str):
        return check_number(bandwidth, 'bandwidth other than "median"', above=0)
    check_option(bandwidth, "bandwidth", ("median",))
    columns = np.ascontiguousarray(places.T)
    first, second = np.triu_indices(len(places), 1)
    distance = np.append(0.0, _distances(columns, columns)[first, second])
    pairs = np.append(mass @ (mass - 1) / 2, mass[first] * mass[second])
    order = np.argsort(distance)
    total = np.cumsum(pairs[order])
    middle = [
        np.searchsorted(total, total[-1] / 2, side=side) for side in ("left", "right")
    ]
    return float(distance[order[np.minimum(middle, len(order) - 1)]].mean()) or 1.0


def _distances(first, second):
    """Return the total variation distances of the columns of (K, b) and (K, c), as 1 less what two columns share."""
    shared = np.zeros((first.shape[1], second.shape[1]))
    part = np.empty_like(shared)
    for one, other in zip(first, second, strict=True):
        np.minimum(one[:, None], other, out=part)
        shared += part
    return np.maximum((first.sum(axis=0)[:, None] + second.sum(axis=0)) / 2 - shared, 0)
