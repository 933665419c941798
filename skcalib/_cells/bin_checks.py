"""What the fields of a `BinStatistics` must fulfil."""

import numpy as np

from skcalib._input.scalars import as_numbers

# By so much a mean may miss its limits: scores may have come in single precision.
_ROUNDING = 1e-6


def whole_numbers(values, name):
    """Return values as an array of int64, or raise where one is no whole number."""
    numbers = as_numbers(values, name)
    is_wrong = ~np.isfinite(numbers) | (numbers % 1 != 0) | (numbers < 0)
    if is_wrong.any():
        first = int(np.argmax(is_wrong))
        raise ValueError(
            f"{name} must hold whole numbers, found {numbers.ravel()[first]:g} in row"
            f" {first}."
        )
    return numbers.astype(np.int64)


def as_finite(values, name):
    """Return the field `name` as finite float64 (int64 for "count"), else raise a
    ValueError.
    """
    numbers = as_numbers(values, name)
    if name == "count":
        array = np.asarray(values)
        if array.dtype.kind not in "iu":
            raise ValueError(f"count must contain whole numbers, found {array.dtype}.")
        return array.astype(np.int64)
    if not np.isfinite(numbers).all():
        raise ValueError(
            f"{name} must be finite, found {numbers[~np.isfinite(numbers)][0]}."
        )
    return numbers


def check_edges(edges):
    """Return the edges (n_bins + 1,) if they increase within [0, 1], else raise; the
    first bin may be a point.
    """
    increase = (
        edges.ndim == 1
        and len(edges) > 1
        and edges[0] <= edges[1]
        and np.all(np.diff(edges[1:]) > 0)
    )
    if not (increase and edges[0] >= 0 and edges[-1] <= 1):
        raise ValueError(
            "edges must be at least two increasing numbers in [0, 1], found"
            f" {edges.tolist()}."
        )
    return edges


def check_consistency(statistics):
    """Raise a ValueError unless some rows could have the sums of a `BinStatistics`.

    Each condition holds for one row in its bin, and so for sums over rows.
    """
    # The sums in each bin of w, w s, w y, w s^2, w s y and w^2: w is the weight of a
    # row, s its score and y its label.
    count = statistics.count
    w = statistics.weight
    ws = statistics.weighted_score
    wy = statistics.weighted_label
    wss = statistics.weighted_score_squared
    wsy = statistics.weighted_score_label
    ww = statistics.weight_squared
    low = statistics.edges[:-1]
    high = statistics.edges[1:]
    slack = _ROUNDING * w

    def within(sums, lowest, highest):
        """Return whether sums lie between two limits up to rounding, (n_bins,) each."""
        return (lowest - slack <= sums) & (sums <= highest + slack)

    # The sum of squares is least where all scores are equal, and largest where
    # (s - low) (high - s) = 0 for each of them.
    least_square = np.divide(ws**2, w, out=np.zeros_like(w), where=w > 0)
    largest_square = (low + high) * ws - low * high * w
    # The scores of the events, and those of the other rows, lie in the bin as well.
    scores_of_events = within(wsy, low * wy, high * wy)
    scores_of_others = within(ws - wsy, low * (w - wy), high * (w - wy))
    # The squares of n weights that add up to w have a sum from w^2 / n, if they are
    # equal, to w^2, if one row has all of the weight.
    squares_are_enough = w**2 <= ww * count * (1 + _ROUNDING)
    squares_are_possible = ww <= w**2 * (1 + _ROUNDING)
    conditions = {
        "count must not be negative": count >= 0,
        "weight must be positive exactly where count is": (w > 0) == (count > 0),
        "weighted_score / weight must lie inside the bin": (
            within(ws, low * w, high * w)
        ),
        "weighted_label must lie between 0 and weight": within(wy, 0, w),
        "weighted_score_squared must be at least weighted_score^2 / weight, and"
        " a sum that scores inside the bin can have": within(
            wss, least_square, largest_square
        ),
        "weighted_score_label must be a sum that scores inside the bin can have": (
            scores_of_events & scores_of_others
        ),
        "weight_squared must lie between weight^2 / count and weight^2": (
            squares_are_enough & squares_are_possible
        ),
    }
    for condition, holds in conditions.items():
        if not holds.all():
            raise ValueError(
                f"BinStatistics: {condition}, but bin {int(np.argmin(holds))} violates"
                " this."
            )
