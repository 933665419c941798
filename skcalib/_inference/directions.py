"""Directions: the deviations d of the event frequencies s + c d that an interval by test inversion goes through."""

import numpy as np
from scipy.ndimage import gaussian_filter1d

_WIDTHS = 1, 3  # bins over which the observed deviation is smoothed, for two more directions
_WINDOWS = 0.15, 0.5  # shares of the rows over which the residuals of scores are averaged


def directions_of(powers, cells):
    """Return the directions, the observed one first, for the powers of binary problems and all their cells.

    Scores stand for their neighbours: their residuals are averaged. The deviations of bins are taken as they are. An
    unbiased error of norm 2 needs no more, for it depends on the sum of their squares alone. Other errors also see how
    they are spread: a smoothed deviation is more even, a firm one, without what may be noise, less.
    """
    if not powers[0].is_binned:
        found = [np.concatenate([_averaged(power.cells, window) for power in powers]) for window in _WINDOWS]
        return found if np.any(found[0]) else [_of_the_size_of_noise(cells)]
    deviation = cells.deviation if np.any(cells.deviation) else _of_the_size_of_noise(cells)
    if powers[0].is_sum_of_squares:
        return [deviation]
    ends = np.cumsum([len(power.weight) for power in powers])[:-1]
    weight = 1 / (cells.variance + 0.25 / (cells.weight + 1) ** 2)  # finite also where no event is possible
    pieces = list(zip(np.split(deviation, ends), np.split(weight, ends), strict=True))
    smooth = [np.concatenate([_smoothed(*piece, width) for piece in pieces]) for width in _WIDTHS]
    square = deviation**2
    firm = np.divide(deviation * square, square + cells.variance, out=np.zeros_like(deviation), where=square > 0)
    return [deviation, *smooth, firm]


def _of_the_size_of_noise(cells):
    for deviation in (np.sqrt(cells.variance), (0.5 - cells.mean_score) / (cells.weight + 1)):
        if np.any(deviation):
            return deviation
    return np.ones(len(cells.weight))


def _smoothed(deviation, weight, width):
    """Return the weighted mean over neighbouring bins, Gaussian with a deviation of `width` bins."""
    weighted, total = (gaussian_filter1d(values, width, mode="constant") for values in (weight * deviation, weight))
    return weighted / total


def _averaged(cells, window):
    """Return the residuals averaged twice by a moving mean over a share of the rows, next to the ends over fewer."""
    deviation, total = cells.deviation, np.append(0.0, np.cumsum(cells.weight))
    middle = (total[1:] + total[:-1]) / 2
    low = np.maximum(middle - window / 2 * total[-1], 0)
    high = np.minimum(middle + window / 2 * total[-1], total[-1])
    for _ in range(2):
        sums = np.append(0.0, np.cumsum(cells.weight * deviation))
        deviation = (np.interp(high, total, sums) - np.interp(low, total, sums)) / (high - low)
    return deviation
