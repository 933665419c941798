"""The kernel calibration error: whether all K probabilities of a row are right.

A mean over pairs of samples is no power of the event frequencies of cells: it has a
value and a test, and no interval.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist, pdist

from skcalib._cells.binned import check_rows_or_bins
from skcalib._cells.tasks import is_counted
from skcalib._errors.device_kernel import (
    DevicePairSum,
    sorted_distinct,
    sums_of_pairs,
)
from skcalib._input.device_scores import DeviceScores
from skcalib._input.scalars import check_number, check_option
from skcalib._rows.blocks import weights_or_ones
from skcalib.binning._base import WEIGHT_TOLERANCE

# So many rows stand for all in the median distance and in the draws of the test.
_LANDMARKS = 512
# 64 rows are paired with 512 others at a time: their distances fit the cache.
_ROWS, _COLUMNS = 64, 512


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelError:
    """The squared kernel calibration error; see `kernel_calibration_error`.

    Parameters
    ----------
    bandwidth : float or "median", default="median"
        Distance at which the weight of a pair has fallen to 1/e.
    """

    bandwidth: float | str = "median"

    # What tests and intervals ask of any error, as of a `CalibrationError`.
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
        """Return the error of labels and probabilities, as `kernel_calibration_error`
        takes them: the mean over pairs of different rows of the kernel times the
        product of the residuals e_y - p, where e_y is 1 in the column of the label.
        """
        data = check_rows_or_bins(
            y_true,
            y_proba,
            sample_weight=sample_weight,
            pos_label=pos_label,
            labels=labels,
        )
        _refuse_several_labels(data)
        weight = weights_or_ones(data.sample_weight, len(data.scores))
        # The weight of the pairs of a row with itself, which are left out. A row that
        # stands for w rows has w of them among its w^2 pairs; one that was seen once,
        # with an importance weight, has no other pairs.
        self_pairs = weight**2
        if is_counted(data.sample_weight):
            self_pairs = weight
        n_pairs = weight.sum() ** 2 - self_pairs.sum()
        if not n_pairs > 0:
            raise ValueError(
                "The kernel error compares pairs of samples, so it needs at least two"
                f" samples, but the total weight is {weight.sum():g}."
            )
        codes = data.labels.astype(np.intp)
        # If the bandwidth is the median distance of two rows, it is found from at most
        # 512 rows that stand for all, the landmarks.
        if isinstance(data.scores, DeviceScores):
            bandwidth = self.bandwidth
            if isinstance(bandwidth, str):
                landmarks = _Landmarks.on_device(data.scores, weight, self_pairs)
                bandwidth = landmarks.bandwidth(bandwidth)
            total, squares = sums_of_pairs(data.scores, codes, weight, bandwidth)
        else:
            proba = _KernelRows.of(data).proba
            landmarks = _Landmarks.of(proba, weight, self_pairs)
            bandwidth = landmarks.bandwidth(self.bandwidth)
            residual = -proba
            residual[np.arange(len(residual)), codes] += 1
            total = _sum_over_pairs(proba, weight[:, None] * residual, bandwidth)
            squares = np.sum(residual**2, axis=1)
        return float((total - self_pairs @ squares) / n_pairs)

    def drawn_statistics(self, data, draws):
        """Return the sum over pairs of different rows of kernel times product of
        residuals, the error up to a factor, for observed labels and for drawn ones.

        Parameters
        ----------
        data : ScoredLabels
            Rows of positive weight.
        draws : iterable of (labels, scores, weights)
            Drawn labels, their scores, which are not used, and a dict that holds
            `sample_weight` or is empty.

        Returns
        -------
        statistics : list of float
            The sum for the observed labels, then that for each draw.
        """
        rows, features = self._rows_with_features(data)
        pair_sum = _PairSum.of_rows(rows, features, data.label_weights is not None)
        observed = pair_sum.of_labels(data.labels, data.sample_weight)
        drawn = [pair_sum.of_labels(labels, **weights) for labels, _, weights in draws]
        return [observed, *drawn]

    def drawn_on_device(self, data, resampling):
        """Return what `drawn_statistics` does, for rows without weights whose scores
        are `DeviceScores`. Labels are drawn on the device, with the same numbers.
        """
        weight = np.ones(len(data.scores))
        landmarks = _Landmarks.on_device(data.scores, weight, weight)
        bandwidth = landmarks.bandwidth(self.bandwidth)
        pair_sum = DevicePairSum(
            data.scores, landmarks.proba, landmarks.inverse_root(bandwidth), bandwidth
        )
        statistics = [pair_sum.of_labels(data.labels)]
        draws = range(resampling.n_draws)
        for _ in resampling.progress.over(draws, resampling.n_draws, "draws"):
            uniform = resampling.rng.random_sample(len(data.scores))
            statistics.append(pair_sum.of_drawn_labels(uniform))
        return statistics

    def multiplied_statistics(self, data, unit, n_draws, rng):
        """Return what `drawn_statistics` does where labels cannot be drawn: the sum
        over pairs of different rows for the observed labels, then for each of `n_draws`
        wild bootstraps, in which the residuals of a unit are multiplied by a random
        sign.

        `unit` (n,) holds codes of rows or clusters from 0 on.
        """
        rows, features = self._rows_with_features(data)
        residual = -rows.proba
        residual[np.arange(len(residual)), data.labels.astype(np.intp)] += 1
        residual *= rows.weight[:, None]
        # The pair of a row with itself, which is left out, has the same product with
        # either sign.
        self_pairs = np.sum(residual**2, axis=1) @ np.sum(features**2, axis=1)
        statistics = [np.sum((residual.T @ features) ** 2) - self_pairs]
        for _ in range(n_draws):
            sign = 2.0 * rng.randint(0, 2, unit.max() + 1)[unit] - 1
            total = (sign[:, None] * residual).T @ features
            statistics.append(np.sum(total**2) - self_pairs)
        return statistics

    def _rows_with_features(self, data):
        """Return the `_KernelRows` of `ScoredLabels`, and the features of the rows (n,
        n_features), whose products are the kernel of two rows.
        """
        rows = _KernelRows.of(data)
        landmarks = _Landmarks.of(rows.proba, rows.weight, rows.weight)
        bandwidth = landmarks.bandwidth(self.bandwidth)
        return rows, landmarks.features(rows.proba, bandwidth)


@dataclass(frozen=True, eq=False)
class _KernelRows:
    """Probabilities (n, K) of two or more columns, and weights (n,)."""

    proba: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, data):
        """Return the probabilities and weights of `ScoredLabels`: those of two classes
        as two columns, weights of None as 1.
        """
        _refuse_several_labels(data)
        proba = np.asarray(data.scores)
        if data.is_binary:
            proba = np.column_stack((1 - proba, proba))
        weight = weights_or_ones(data.sample_weight, len(proba))
        return cls(proba.astype(np.float64), weight)


def _refuse_several_labels(data):
    """Raise for `ScoredLabels` with several labels per row."""
    if data.is_multilabel:
        raise ValueError(
            "kernel_calibration_error requires mutually exclusive classes, but y_true"
            " has several labels per row: pass one column of y_true and of y_proba at a"
            " time."
        )


@dataclass(frozen=True, eq=False)
class _PairSum:
    """The sum over pairs of different rows of kernel times product of residuals, as a
    function of the labels.

    The kernel of two rows is the product of their features. So the sum over all pairs,
    those of a row with itself included, is the square of one sum over rows: of residual
    e_y - p times feature, a matrix (K, n_features).

    Parameters
    ----------
    proba : ndarray of shape (n, K)
        Probabilities of the rows.
    features : ndarray of shape (n, n_features)
        Features of the rows; see `_Landmarks.features`.
    expected : ndarray of shape (K, n_features)
        Weighted sum over rows of p times feature.
    self_pair : ndarray of shape (n, K)
        What the pair of a row with itself adds if its label is y: |e_y - p|^2 times
        |feature|^2.
    importance : bool
        Whether each row was seen once, whatever its weight.
    """

    proba: np.ndarray
    features: np.ndarray
    expected: np.ndarray
    self_pair: np.ndarray
    importance: bool

    @classmethod
    def of_rows(cls, rows, features, importance):
        """Return the `_PairSum` of `_KernelRows` with features (n, n_features)."""
        proba = rows.proba
        expected = (rows.weight[:, None] * proba).T @ features
        # |e_y - p|^2 = 1 - 2 p_y + |p|^2
        square_of_residual = 1 - 2 * proba + np.sum(proba**2, axis=1, keepdims=True)
        square_of_feature = np.sum(features**2, axis=1)[:, None]
        self_pair = square_of_feature * square_of_residual
        return cls(proba, features, expected, self_pair, importance)

    def of_labels(self, labels, sample_weight=None):
        """Return the sum as a float, for labels of the n rows as column numbers: one
        label for each, (n,), or several draws one after the other, (n_draws n,), with
        weights for all of them or None.
        """
        n_rows, n_classes = self.self_pair.shape
        weight = weights_or_ones(sample_weight, len(labels))
        row = np.arange(len(labels)) % n_rows
        labels = labels.astype(np.intp)
        # The weight of each label of each row, (K, n): of several draws, they add up.
        counts = csr_array(
            (weight.astype(np.float32), (labels, row)), (n_classes, n_rows)
        )
        expected = self.expected
        if self.importance:
            # The weight of a row is that of its drawn label.
            expected = (weight[:, None] * self.proba).T @ self.features
        square = np.sum((counts @ self.features - expected) ** 2)
        # Pairs of a row with itself are taken out. An integer weight stands for copies,
        # which are different rows: w of their w^2 pairs are such.
        self_weight = weight
        if self.importance:
            self_weight = weight**2
        return float(square - self_weight @ self.self_pair[row, labels])


@dataclass(frozen=True, eq=False)
class _Landmarks:
    """Distinct rows of probabilities that stand for all samples: all of them in sorted
    order, or 512 at equal steps of the cumulative weight.

    Parameters
    ----------
    proba : ndarray of shape (m, K)
        The landmarks.
    mass : ndarray of shape (m,)
        Weight of the samples that each stands for.
    self_pairs : ndarray of shape (m,)
        Weight of the pairs of a sample with itself among the mass^2 pairs of each.
    """

    proba: np.ndarray
    mass: np.ndarray
    self_pairs: np.ndarray

    @classmethod
    def of(cls, proba, weight, self_pairs):
        """Return the landmarks of samples: the distinct rows of their probabilities (n,
        K), or 512 of these if there are more. `weight` (n,) are the weights of the
        samples, `self_pairs` (n,) those of the pairs of a sample with itself.
        """
        distinct, code = np.unique(proba, axis=0, return_inverse=True)
        code = code.ravel()
        mass = np.bincount(code, weight)
        if len(distinct) <= _LANDMARKS:
            return cls(distinct, mass, np.bincount(code, self_pairs))
        chosen, times = cls._at_steps(mass)
        return cls(distinct[chosen], mass=times, self_pairs=times)

    @classmethod
    def on_device(cls, scores, weight, self_pairs):
        """Return the landmarks of `DeviceScores` (n, K), which alone are copied from
        the device: the distinct rows, or 512 of these. `weight` and `self_pairs` (n,)
        are the weights of the samples and of their pairs with themselves.
        """
        order, code = sorted_distinct(scores)
        _, first = np.unique(code, return_index=True)
        mass = np.bincount(code, weight[order])
        if len(mass) <= _LANDMARKS:
            chosen = np.arange(len(mass))
            self_pairs = np.bincount(code, self_pairs[order])
        else:
            chosen, mass = cls._at_steps(mass)
            self_pairs = mass
        proba = np.asarray(scores[order[first[chosen]]], dtype=np.float64)
        return cls(proba, mass=mass, self_pairs=self_pairs)

    @staticmethod
    def _at_steps(mass):
        """Return which of the distinct rows, of weights (m,), are the 512 landmarks,
        and how often each is chosen.
        """
        # The rows at which the cumulative weight reaches 512 equal steps. Heavy rows
        # are chosen several times, and each time count as a sample of weight 1.
        cumulative = np.cumsum(mass)
        steps = (np.arange(_LANDMARKS) + 0.5) / _LANDMARKS * cumulative[-1]
        chosen = np.searchsorted(cumulative, steps)
        chosen, times = np.unique(chosen, return_counts=True)
        return chosen, times.astype(np.float64)

    def bandwidth(self, bandwidth):
        """Return a bandwidth as a number. For "median" it is the median distance of
        pairs of different samples, copies included, or 1 where that is 0.
        """
        if not isinstance(bandwidth, str):
            return float(bandwidth)
        first, second = np.triu_indices(len(self.proba), 1)
        # Distances and numbers of pairs: first of all pairs of samples at the same
        # landmark, whose distance is 0, then of those at two landmarks. `mass` is the
        # weight at each landmark, `self_pairs` that of pairs of a sample with itself.
        distance = np.append(0.0, pdist(self.proba, "cityblock") / 2)
        n_within = np.sum(self.mass**2 - self.self_pairs) / 2
        n_pairs = np.append(n_within, self.mass[first] * self.mass[second])
        order = np.argsort(distance)
        cumulative = np.cumsum(n_pairs[order])
        # The median of an even number of pairs is the mean of two. Weights that are no
        # integers reach the half up to rounding.
        tolerance = np.array([1 - WEIGHT_TOLERANCE, 1 + WEIGHT_TOLERANCE])
        half = cumulative[-1] / 2 * tolerance
        middle = np.minimum(np.searchsorted(cumulative, half), len(order) - 1)
        return float(distance[order[middle]].mean()) or 1.0

    def features(self, proba, bandwidth):
        """Return features (n, n_features) of probabilities (n, K), whose products are
        the kernel exp(-distance / bandwidth), by Nyström's approximation: exact where
        the landmarks are all distinct rows.
        """
        kernel = _kernel(proba, self.proba, bandwidth)
        return (kernel @ self.inverse_root(bandwidth)).astype(np.float32)

    def inverse_root(self, bandwidth):
        """Return the inverse root (m, n_features) of the landmarks' kernel, without the
        directions that are 0 but for rounding.
        """
        kernel = _kernel(self.proba, self.proba, bandwidth)
        eigenvalues, eigenvectors = np.linalg.eigh(kernel)
        is_used = eigenvalues > 1e-10 * eigenvalues[-1]
        return eigenvectors[:, is_used] / np.sqrt(eigenvalues[is_used])


def _sum_over_pairs(proba, weighted_residual, bandwidth):
    """Return the sum over all ordered pairs of samples of exp(-distance / bandwidth)
    times the product of their `weighted_residual` (n, K). Tiles fit the cache; those
    above the diagonal count twice.
    """

    def sum_of_tile(rows, others):
        """Return the sum over the pairs of one sample of the slice `rows` and one of
        the slice `others`.
        """
        kernel = _kernel(proba[rows], proba[others], bandwidth)
        products = weighted_residual[rows] @ weighted_residual[others].T
        return np.sum(kernel * products)

    total = 0.0
    for start in range(0, len(proba), _ROWS):
        rows = slice(start, start + _ROWS)
        total += sum_of_tile(rows, rows)
        for first in range(start + _ROWS, len(proba), _COLUMNS):
            total += 2 * sum_of_tile(rows, slice(first, first + _COLUMNS))
    return total


def _kernel(first, second, bandwidth):
    """Return exp(-distance / bandwidth) (b, c) of the rows of probabilities (b, K) and
    (c, K). Their total variation distance is half the sum of |p - q|.
    """
    kernel = cdist(first, second, "cityblock")
    kernel /= -2 * bandwidth
    return np.exp(kernel, out=kernel)
