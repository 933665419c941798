"""Cells of the score: integers that grow with it, the same on every engine."""

import numpy as np

from skcalib.engines._native import narwhals

# Of the coarse cells a quarter are equally wide; others are narrow within 2^-7, 2^-13, 2^-20 of 0 and of 1.
_LINEAR_SHARE, _SHARES = 1 / 4, {2.0**-7: 3 / 8, 2.0**-13: 1 / 4, 2.0**-20: 1 / 8}
_LAST_BAND = 9  # of the fine cells: it reaches from 2^-37 down to 0


def coarse_cell(n_cells=2**12):
    """Return the number of one of about `n_cells` cells of the column `score`, narrow near 0 and 1.

    Sums, differences and quotients are rounded correctly on every engine, so that each part rises with the score: the
    number never falls, and is the same everywhere. A root or a logarithm would take several times as long.
    """
    score = narwhals().col("score")
    cell = score * (_LINEAR_SHARE * n_cells)
    for width, share in _SHARES.items():
        scale = share * n_cells / 2 * width
        cell = cell + (scale / (1 + width - score) - scale / (score + width))
    return cell.floor().cast(narwhals().Int32)


def fine_cell(bits, name="score"):
    """Return the number of one of about 2^bits cells of a column, narrow in relation to s, above 1/2 to 1 - s.

    With u the lesser of s and 1 - s, each band of u that spans a factor of 16 is scaled by a power of two, which is
    exact, and cut into cells of equal width. `fine_cell_bounds` is the same the other way round.
    """
    nw = narwhals()
    resolution = bits - 7
    score = nw.col(name)
    least = nw.when(score <= 0.5).then(score).otherwise(1 - score)
    cell = _band(least, resolution, _LAST_BAND)
    for band in reversed(range(_LAST_BAND)):
        above = least >= 2.0 ** (-5 - 4 * band)
        cell = nw.when(above).then(_band(least, resolution, band)).otherwise(cell)
    return nw.when(score <= 0.5).then(cell).otherwise(2.0 ** (resolution + 5) - cell).cast(nw.Int32)


def _band(least, resolution, band):
    return (least * 2.0 ** (resolution + 4 + 4 * band)).floor() - band * 2.0 ** (resolution + 4)


def fine_cell_bounds(bits):
    """Return the numbers of all fine cells with their least and greatest possible values, both ends included."""
    resolution = bits - 7
    numbers, lows, highs = [], [], []
    for band in range(_LAST_BAND + 1):
        scale = 2.0 ** -(resolution + 4 + 4 * band)
        part = np.arange(0 if band == _LAST_BAND else 2 ** (resolution - 1), 2 ** (resolution + 3) + (band == 0))
        numbers.append(part - band * 2 ** (resolution + 4))
        lows.append(part * scale)
        highs.append(np.minimum((part + 1) * scale, 0.5))
    number, low, high = map(np.concatenate, (numbers, lows, highs))
    mirrored = 2 ** (resolution + 5) - number
    return np.concatenate((number, mirrored)), np.concatenate((low, 1 - high)), np.concatenate((high, 1 - low))


def width_bin(n_bins):
    """Return the number of the equal-width bin, from 1, of the column `score`: 0 for 0, and rarely one too far.

    The product s B may round across an edge k (1 / B). The least and the greatest score of a bin tell.
    """
    nw = narwhals()
    integer = nw.Int8 if n_bins < 127 else nw.Int32  # groups by small integers are quicker
    return (nw.col("score") * float(n_bins)).ceil().cast(integer)
