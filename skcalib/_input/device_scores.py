"""Scores of K classes on a device that NumPy cannot read, such as a GPU: they are
checked and reduced there, and only n numbers, or those of bins, are copied.
"""

from functools import cached_property

import numpy as np

from skcalib._input.limits import MAX_MAGNITUDE, ROUNDING
from skcalib._input.tensors import as_array, has_float64, library_of, off_processor
from skcalib._rows.namespaces import (
    clipped,
    entries_of_columns,
    row_softmax,
    true_positions,
)

_BLOCK_ELEMENTS = 1 << 24  # scores of a block: few calls, and bounded temporaries
# Rows that are added together in single precision, on a device without double.
_ROWS_IN_SINGLE = 1 << 12


def device_scores(values, *, input="probability", rows_sum_to_one=True):
    """Return valid probabilities (n, K), or the softmax of valid logits, as
    `DeviceScores`.

    The result is None for values that NumPy can read, for those that are not K real
    columns, and for those that may be invalid: NumPy then has to check them, so that
    each error has one place.

    Parameters
    ----------
    values : tensor of shape (n, K), or DeviceScores
        Scores as the user gave them, or those that were validated before.
    input : {"probability", "logit"}, default="probability"
        What the scores are.
    rows_sum_to_one : bool, default=True
        Whether the sums of rows are checked.
    """
    if isinstance(values, DeviceScores):
        return values
    xp, device = off_processor(values)
    if xp is None or values.ndim != 2 or values.shape[0] == 0 or values.shape[1] < 2:
        return None
    if not xp.isdtype(values.dtype, "real floating"):
        return None
    name = str(values.dtype).rpartition(".")[2]
    if hasattr(values, "detach"):
        values = values.detach()  # without its gradient
    scores = DeviceScores(xp, device, values, is_logit=input == "logit")
    if scores.is_logit:
        is_valid = all(_are_logits(xp, block) for block in scores.given)
    else:
        tolerances = ROUNDING.get(name, ROUNDING["float64"])
        is_valid = scores.check_probabilities(
            *tolerances, rows_sum_to_one=rows_sum_to_one
        )
    return scores if is_valid else None


def _are_logits(xp, logits):
    """Return whether logits (m, K) are valid: of moderate size, or -inf beside a finite
    one.
    """
    # The largest of a row is NaN if there is a NaN, and -inf if no class is possible.
    largest = xp.max(logits, axis=1)
    is_valid = xp.all(xp.isfinite(largest))
    if float(xp.finfo(logits.dtype).max) > MAX_MAGNITUDE:  # not in single precision
        is_valid = is_valid & xp.all(largest <= MAX_MAGNITUDE)
        is_valid = is_valid & xp.all((logits >= -MAX_MAGNITUDE) | xp.isinf(logits))
    return bool(is_valid)


class DeviceScores:
    """Probabilities (n, K) that stay on their device.

    They take the place of an array in `ScoredLabels`. What a result needs of them is
    computed in their library, block by block, and returned as NumPy arrays: the
    predicted classes, the scores of the labels, sums by bin. A function that needs all
    of them calls ``np.asarray``, which copies them.

    Parameters
    ----------
    xp, device : module and device
        Where they live.
    values : tensor of shape (n, K)
        Probabilities, or logits to which the softmax is applied (`is_logit`).
    """

    ndim = 2

    def __init__(self, xp, device, values, *, is_logit=False):
        self.xp = xp
        self.device = device
        self.is_logit = is_logit
        self._values = values
        self._positions = None  # of the chosen rows, None for all
        self._divisor = None  # of all rows (n,): see `check_probabilities`
        self._clips = False  # whether some scores are outside [0, 1] by rounding
        # the columns that `of_labels` was last called with, and what it returned
        self._last_of_labels = (None, None)
        bits = xp.finfo(values.dtype).bits
        self.dtype = np.dtype(np.float64 if bits == 64 else np.float32)
        self._dtype = xp.float64 if bits == 64 else xp.float32
        self.has_float64 = has_float64(xp, device)
        self.sum_dtype = xp.float64 if self.has_float64 else xp.float32

    @property
    def shape(self):
        """The numbers of rows and of columns."""
        return len(self), self._values.shape[1]

    @property
    def size(self):
        """The number of scores."""
        return len(self) * self._values.shape[1]

    def __len__(self):
        if self._positions is None:
            return self._values.shape[0]
        return len(self._positions)

    def __getitem__(self, rows):
        """Return the scores of some rows (a slice, a mask, or positions), which stay on
        the device; or those of class k, ``[:, k]``, as an array of NumPy.
        """
        if isinstance(rows, tuple):
            _, k = rows
            return self.column(range(self.shape[1])[k])
        if _are_all(rows, len(self)):
            return self  # with what was copied already
        if self._positions is None:
            positions = np.arange(len(self))[rows]
        else:
            positions = self._positions[rows]
        chosen = type(self)(self.xp, self.device, self._values, is_logit=self.is_logit)
        chosen._divisor = self._divisor
        chosen._clips = self._clips
        chosen._positions = positions
        return chosen

    def __array__(self, dtype=None, copy=None):
        """Copy all scores, some columns at a time."""
        if copy is False:
            raise ValueError(
                "Scores on a device can be read only as a copy: use copy=None."
            )
        scores = np.empty(self.shape, dtype=dtype or self.dtype)
        for k in range(self.shape[1]):
            scores[:, k] = self.column(k)
        return scores

    def _of_rows(self, values, rows):
        """Return the entries of a tensor (n, ...) for a slice of the chosen rows."""
        if self._positions is None:
            return values[rows, ...]
        positions = self.xp.asarray(self._positions[rows], device=self.device)
        return self.xp.take(values, positions, axis=0)

    def _slices(self, most_rows=None):
        """Yield slices of rows that are small enough for temporary tensors, and have no
        more than `most_rows`.
        """
        n_rows = max(_BLOCK_ELEMENTS // self.shape[1], 1)
        if most_rows is not None:
            n_rows = min(n_rows, most_rows)
        for start in range(0, len(self), n_rows):
            yield slice(start, min(start + n_rows, len(self)))

    def _given(self, rows):
        """Return the values of a slice of rows as they were given, in float32 or
        float64.
        """
        return self.xp.astype(
            self._of_rows(self._values, rows), self._dtype, copy=False
        )

    @property
    def given(self):
        """The values as they were given, as tensors of some rows each."""
        return map(self._given, self._slices())

    @property
    def blocks(self):
        """The slices of some rows each, with their scores as a tensor (m, K)."""
        return ((rows, self.tensor_of(rows)) for rows in self._slices())

    def blocks_of(self, most_rows):
        """The slices of at most `most_rows` rows, with their scores (m, K)."""
        return ((rows, self.tensor_of(rows)) for rows in self._slices(most_rows))

    @property
    def blocks_to_add(self):
        """Pairs of a slice of rows and the tensor (m, K) of their scores, in blocks
        whose columns can be added up in `sum_dtype`: few rows on a device without
        double precision.
        """
        most = None
        if not self.has_float64:
            most = _ROWS_IN_SINGLE
        return self.blocks_of(most)

    def columns(self, columns):
        """Return a slice of columns of all rows as one tensor (n, m)."""
        parts = [block[:, columns] for _, block in self.blocks]
        return parts[0] if len(parts) == 1 else self.xp.concat(parts)

    def tensor_of(self, rows):
        """Return the scores of a slice of rows as a tensor (m, K)."""
        block = self._given(rows)
        if self.is_logit:
            block = clipped(self.xp, row_softmax(self.xp, block))
        if self._clips:
            block = self.xp.clip(block, 0, 1)
        if self._divisor is not None:
            divisor = self._of_rows(self._divisor, rows)
            block = block / self.xp.astype(divisor, self._dtype)[:, None]
        return block

    def with_values(self, values):
        """Return other scores (n, K), a tensor, as `DeviceScores` of the same
        device.
        """
        return DeviceScores(self.xp, self.device, values)

    def times_rows(self, factors):
        """Return the scores times a factor for each row (n,) of NumPy, as a tensor."""
        factors = self.xp.astype(self.moved(factors), self._dtype)
        return self.columns(slice(None)) * factors[:, None]

    def moved(self, values):
        """Return numbers of NumPy (m,) as a tensor of the type in which sums are
        computed.
        """
        dtype = np.float64 if self.has_float64 else np.float32
        return self.xp.asarray(values.astype(dtype), device=self.device)

    def check_probabilities(self, tolerance, kept, *, rows_sum_to_one):
        """Return whether probabilities are inside [0, 1], and the sums of their rows 1,
        up to `tolerance`; set how valid ones are corrected whenever they are read.

        Values are clipped to [0, 1], and rows whose sum differs from 1 by more than
        `kept` are divided by it.
        """
        xp = self.xp
        totals = []
        for block in self.given:
            low, high = float(xp.min(block)), float(xp.max(block))
            if not (low >= -tolerance and high <= 1 + tolerance):  # NaN, too
                return False
            if low < 0 or high > 1:
                self._clips = True
                block = xp.clip(block, 0, 1)
            if rows_sum_to_one:
                totals.append(xp.sum(block, axis=1, dtype=self.sum_dtype))
        if not rows_sum_to_one:
            return True
        total = totals[0] if len(totals) == 1 else xp.concat(totals)
        difference = xp.abs(total - 1)
        worst = float(xp.max(difference))
        if worst > kept:
            is_near = difference <= kept
            self._divisor = xp.where(is_near, xp.ones_like(total), total)
        return worst <= tolerance

    def per_row(self, reduce, dtype=np.float64):
        """Return numbers of the rows (n,): what ``reduce(block, rows)`` makes of the
        scores of a block (m, K) and the slice of its rows.
        """
        result = np.empty(len(self), dtype)
        for rows, block in self.blocks:
            result[rows], _ = as_array(reduce(block, rows))
        return result

    def column(self, k):
        """Return the scores of a class (n,)."""
        return self.per_row(lambda block, rows: block[:, k], self.dtype)

    @cached_property
    def top_label(self):
        """The predicted class of each row (n,), the first of the largest scores, and
        its score (n,).
        """
        xp = self.xp
        confidence = np.empty(len(self), self.dtype)
        predicted = np.empty(len(self), np.intp)
        for rows, block in self.blocks:
            # half of the bytes of the library's own integers
            of_block = xp.astype(xp.argmax(block, axis=1), xp.int32)
            predicted[rows], _ = as_array(of_block)
            confidence[rows], _ = as_array(xp.max(block, axis=1))
        return predicted, confidence

    def of_labels(self, codes):
        """Return the score of each row's label (n,), for its column `codes` (n,)."""
        known_codes, known = self._last_of_labels
        if known_codes is not None and np.array_equal(known_codes, codes):
            return known
        xp = self.xp

        def chosen(block, rows):
            """Return the scores (m,) of the labels of a slice of rows."""
            columns = np.asarray(codes[rows], dtype=np.int64)
            columns = xp.asarray(columns, device=self.device)
            return entries_of_columns(xp, block, columns)

        found = self.per_row(chosen, self.dtype)
        self._last_of_labels = (codes, found)
        return found

    @cached_property
    def sums_of_squares(self):
        """The sum of the squared scores of each row (n,), as float64."""
        return self.per_row(
            lambda block, rows: self.xp.sum(
                self.xp.astype(block, self.sum_dtype) ** 2, axis=1
            )
        )

    @cached_property
    def sums(self):
        """The sum of the scores of each row (n,), as float64."""
        return self.per_row(
            lambda block, rows: self.xp.sum(block, axis=1, dtype=self.sum_dtype)
        )

    @property
    def sum_to_one(self):
        """Whether the rows sum to 1, up to the rounding of the scores."""
        refused, _ = ROUNDING[self.dtype.name]
        return bool(np.all(np.abs(self.sums - 1) <= refused))

    @cached_property
    def largest_brier(self):
        """The largest Brier score that a row could have with another label: the label
        with the smallest probability, for which it is sum p^2 - 2 min p + 1.
        """
        xp = self.xp
        largest = 0.0
        for _, block in self.blocks:
            block = xp.astype(block, self.sum_dtype)
            squares = xp.sum(block**2, axis=1) - 2 * xp.min(block, axis=1)
            largest = max(largest, float(xp.max(squares)) + 1)
        return largest


class DeviceLabels(DeviceScores):
    """Whether each row has each of several labels, (n, L), on a device: `DeviceScores`
    of 0 and 1, which become booleans where they are copied.
    """

    def __init__(self, xp, device, values, *, is_logit=False):
        super().__init__(xp, device, values, is_logit=is_logit)
        self.dtype = np.dtype(bool)

    @classmethod
    def beside(cls, scores, y_true):
        """Return labels (n, L) beside `DeviceScores` of the same shape; None for those
        that NumPy has to read, because they are not numbers or may be invalid.
        """
        if getattr(y_true, "shape", None) != scores.shape:
            return None
        xp = scores.xp
        namespace, _ = off_processor(y_true)
        if namespace is not xp:
            return None
        is_one = y_true
        if not xp.isdtype(y_true.dtype, "bool"):
            if not xp.isdtype(y_true.dtype, ("integral", "real floating")):
                return None
            is_one = y_true == 1
            if not xp.all(is_one | (y_true == 0)):
                return None
        return cls(xp, scores.device, xp.astype(is_one, scores._dtype))


def _are_all(rows, n):
    """Return whether rows, a slice, mask or positions, are all of n in their order."""
    if isinstance(rows, slice):
        return rows.indices(n) == (0, n, 1)
    if not isinstance(rows, np.ndarray) or len(rows) != n:
        return False
    if rows.dtype == bool:
        return bool(rows.all())
    return np.array_equal(rows, np.arange(n))


def scores_of_labels(scores, codes):
    """Return the score of each row's label (n,), for scores (n, K) of NumPy or on a
    device, and the columns `codes` (n,) of the labels.
    """
    if isinstance(scores, DeviceScores):
        return scores.of_labels(codes)
    return scores[np.arange(len(codes)), codes]


def sums_of_squares(scores):
    """Return the sum of the squared scores of each row (n,), as float64."""
    if isinstance(scores, DeviceScores):
        return scores.sums_of_squares
    scores = scores.astype(np.float64)
    return np.vecdot(scores, scores)


def sums_of_rows(scores):
    """Return the sum of the scores of each row (n,)."""
    if isinstance(scores, DeviceScores):
        return scores.sums
    return scores.sum(axis=1)


def impossible_rows(scores, labels):
    """Return the positions of the samples whose label had the probability 0, for scores
    (n,) of boolean labels, which may be tensors, or (n, K) of column indices: their
    log-loss is infinite.
    """
    if scores.ndim == 1:
        xp = library_of(scores)
        score_of_label = xp.where(labels, scores, 1 - scores)
        return true_positions(xp, score_of_label == 0)
    return np.flatnonzero(scores_of_labels(scores, labels) == 0)
