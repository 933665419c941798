"""The kernel calibration error: whether all K probabilities of a row are right.

A mean over pairs of samples is no power of the event frequencies of cells: it has a
value and a test, and no interval.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from skcalib._cells.reductions import check_rows_or_bins, is_counted
from skcalib._input.scalars import check_number, check_option
from skcalib._rows.blocks import weights_or_ones
from skcalib.binning._base import WEIGHT_TOLERANCE

# rows that stand for all in the median distance and in the draws of the test
_LANDMARKS = 512
_ROWS, _COLUMNS = 64, 512  # pairs of rows at a time: their distances fit the cache


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelError:
    """The squared kernel calibration error; see `kernel_calibration_error`.

    Parameters
    ----------
    bandwidth : float or "median", default="median"
        Distance at which the weight of a pair has fallen to 1/e.
    """

    bandwidth: float | str = "median"

    # See `CalibrationError`.
    groups = None
    has_interval = False
    has_bins_of_labels = False

    def __post_init__(self):
        if isinstance(self.bandwidth, str):
            check_option(self.bandwidth, "bandwidth", ("median",))
        else:
            check_number(self.bandwidth, 'bandwidth other than "median"', above=0)

    def value(
        self, y_true, y_proba=None, *, sample_weight=None, pos_label=None, labels=None
    ):
        """Return the error of labels and probabilities."""
        data = check_rows_or_bins(
            y_true,
            y_proba,
            sample_weight=sample_weight,
            pos_label=pos_label,
            labels=labels,
        )
        rows = _KernelRows.of(data)
        # Pairs of a row with itself are left out: w of w^2 for a row that stands for w
        # rows, all for one that was seen once.
        self_pairs = rows.weight if is_counted(data.sample_weight) else rows.weight**2
        n_pairs = rows.weight.sum() ** 2 - self_pairs.sum()
        if not n_pairs > 0:
            raise ValueError(
                "y_true must hold two rows or more: pairs are compared, found a weight"
                f" of {rows.weight.sum():g}."
            )
        places = _Landmarks.of(rows.proba, rows.weight, self_pairs)
        residual = -rows.proba
        residual[np.arange(len(residual)), data.labels.astype(np.intp)] += 1
        total = _sum_over_pairs(
            rows.proba,
            rows.weight[:, None] * residual,
            places.bandwidth(self.bandwidth),
        )
        own = self_pairs @ np.sum(residual**2, axis=1)
        return float((total - own) / n_pairs)

    def drawn_statistics(self, data, draws, *, importance):
        """Return the error, up to a factor, of validated labels and of drawn ones.

        Parameters
        ----------
        data : ScoredLabels
            Rows of positive weight.
        draws : iterable of (labels, scores, weights)
            Drawn labels; the weights are a dict that holds `sample_weight`, or empty.
        importance : bool
            Whether the weights do not count rows.

        Returns
        -------
        statistics : list of float
            Of the labels, and of each draw.
        """
        rows = _KernelRows.of(data)
        proba = rows.proba
        places = _Landmarks.of(proba, rows.weight, rows.weight)
        bandwidth = places.bandwidth(self.bandwidth)
        features = places.features(proba, bandwidth)
        expected = (rows.weight[:, None] * proba).T @ features
        # |e_y - p|^2 |feature|^2 for each row and label
        distance = 1 - 2 * proba + np.sum(proba**2, axis=1, keepdims=True)
        pair_with_itself = np.sum(features**2, axis=1)[:, None] * distance

        def statistic(labels, sample_weight=None):
            """Return the sum over pairs of different rows of the kernel times both
            residuals, for labels drawn once or several times.
            """
            weight = weights_or_ones(sample_weight, len(labels))
            row = np.arange(len(labels)) % len(proba)
            labels = labels.astype(np.intp)
            counts = csr_array(
                (weight.astype(np.float32), (labels, row)),
                (proba.shape[1], len(proba)),
            )
            # The estimate has pairs of different rows only. An integer weight stands
            # for copies, which are different rows.
            self_weight = weight
            if importance:
                self_weight = weight**2
            square = np.sum((counts @ features - expected) ** 2)
            return float(square - self_weight @ pair_with_itself[row, labels])

        observed = statistic(data.labels, data.sample_weight)
        drawn = [statistic(labels, **weights) for labels, _, weights in draws]
        return [observed, *drawn]


@dataclass(frozen=True, eq=False)
class _KernelRows:
    """Probabilities (n, K) of two or more columns, and weights (n,)."""

    proba: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, data):
        """Return them for validated data."""
        if data.is_multilabel:
            raise ValueError(
                "kernel_calibration_error compares the probabilities of classes that"
                " exclude each other, and a y_true of several columns holds labels that"
                " do not: pass one column of y_true and of y_proba at a time."
            )
        proba = data.scores
        if data.is_binary:
            proba = np.column_stack((1 - proba, proba))
        weight = data.sample_weight
        if weight is None:
            weight = np.ones(len(proba))
        return cls(proba.astype(np.float64), weight)


@dataclass(frozen=True, eq=False)
class _Landmarks:
    """The different rows in sorted order; or 512 of them at equal steps of the weight.

    Parameters
    ----------
    proba : ndarray of shape (m, K)
        The samples.
    mass : ndarray of shape (m,)
        Their weights.
    self_pairs : ndarray of shape (m,)
        How much of ``mass**2`` are pairs of a row with itself.
    """

    proba: np.ndarray
    mass: np.ndarray
    self_pairs: np.ndarray

    @classmethod
    def of(cls, proba, weight, self_pairs):
        """Return the landmarks of samples (n, K)."""
        places, code = np.unique(proba, axis=0, return_inverse=True)
        code = code.ravel()
        mass = np.bincount(code, weight)
        if len(places) <= _LANDMARKS:
            return cls(places, mass, np.bincount(code, self_pairs))
        total = np.cumsum(mass)
        steps = (np.arange(_LANDMARKS) + 0.5) / _LANDMARKS * total[-1]
        taken, times = np.unique(np.searchsorted(total, steps), return_counts=True)
        return cls(places[taken], times.astype(np.float64), times.astype(np.float64))

    def bandwidth(self, bandwidth):
        """Return the number that a bandwidth is; the median is over pairs of samples,
        copies included, and 1 stands for a median of 0.
        """
        if not isinstance(bandwidth, str):
            return float(bandwidth)
        columns = np.ascontiguousarray(self.proba.T)
        first, second = np.triu_indices(len(self.proba), 1)
        # the pairs at one place, whose distance is 0, and those of two places
        distance = np.append(0.0, _distances(columns, columns)[first, second])
        within = np.sum(self.mass**2 - self.self_pairs) / 2
        pairs = np.append(within, self.mass[first] * self.mass[second])
        order = np.argsort(distance)
        total = np.cumsum(pairs[order])
        # The median of an even number of pairs is the mean of two. Weights that are no
        # integers reach the half up to rounding.
        half = total[-1] / 2 * np.array([1 - WEIGHT_TOLERANCE, 1 + WEIGHT_TOLERANCE])
        middle = np.minimum(np.searchsorted(total, half), len(order) - 1)
        return float(distance[order[middle]].mean()) or 1.0

    def features(self, proba, bandwidth):
        """Return features (n, .) whose products are the samples' kernel (Nyström)."""
        columns = np.ascontiguousarray(proba.T)
        landmarks = np.ascontiguousarray(self.proba.T)
        kernel = np.empty((len(proba), len(self.proba)))
        for start in range(0, len(proba), _ROWS):
            rows = slice(start, start + _ROWS)
            distance = _distances(columns[:, rows], landmarks)
            kernel[rows] = np.exp(distance / -bandwidth)
        of_landmarks = np.exp(_distances(landmarks, landmarks) / -bandwidth)
        values, vectors = np.linalg.eigh(of_landmarks)
        used = values > 1e-10 * values[-1]
        features = kernel @ (vectors[:, used] / np.sqrt(values[used]))
        return features.astype(np.float32)


def _sum_over_pairs(proba, weighted, bandwidth):
    """Return the sum over all pairs of samples of the kernel times the product of their
    weighted residuals, in tiles of which each is computed once.
    """
    columns = np.ascontiguousarray(proba.T)

    def tile(rows, others):
        distance = _distances(columns[:, rows], columns[:, others])
        kernel = np.exp(distance / -bandwidth)
        return np.sum(kernel * (weighted[rows] @ weighted[others].T))

    total = 0.0
    for start in range(0, len(proba), _ROWS):
        rows = slice(start, start + _ROWS)
        total += tile(rows, rows)
        for first in range(start + _ROWS, len(proba), _COLUMNS):
            total += 2 * tile(rows, slice(first, first + _COLUMNS))
    return total


def _distances(first, second):
    """Return the total variation distances of the columns of (K, b) and (K, c), as 1
    less what two columns share.
    """
    shared = np.zeros((first.shape[1], second.shape[1]))
    smaller = np.empty_like(shared)
    for class_of_first, class_of_second in zip(first, second, strict=True):
        np.minimum(class_of_first[:, None], class_of_second, out=smaller)
        shared += smaller
    total = first.sum(axis=0)[:, None] + second.sum(axis=0)
    return np.maximum(total / 2 - shared, 0)
