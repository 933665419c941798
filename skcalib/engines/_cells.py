"""Cells of the score: integers that grow with it, the same on every engine."""

from skcalib.engines._native import nw

# Of the coarse cells a quarter are equally wide; others are narrow within 2^-7, 2^-13, 2^-20 of 0 and of 1.
_LINEAR_SHARE, _SHARES = 1 / 4, {2.0**-7: 3 / 8, 2.0**-13: 1 / 4, 2.0**-20: 1 / 8}
_LAST_BAND = 9  # of the fine cells: it reaches from 2^-37 down to 0


def coarse_place(score, n_cells):
    """Return a number that never falls with the score, an array or an expression: its floor is that of the cell.

    Sums, differences and quotients are rounded correctly on every engine, so that each part rises with the score, and
    the number is the same everywhere. A root or a logarithm would take several times as long.
    """
    place = score * (_LINEAR_SHARE * n_cells)
    for width, share in _SHARES.items():
        scale = share * n_cells / 2 * width
        place = place + (scale / (1 + width - score) - scale / (score + width))
    return place


def coarse_cell(n_cells=2**12, name="score"):
    """Return the number of one of about `n_cells` cells of a column, narrow near 0 and 1."""
    return coarse_place(nw.col(name), n_cells).floor().cast(nw.Int32)


def fine_cell(bits):
    """Return the number of one of about 2^bits cells of the score s, narrow in relation to s, above 1/2 to 1 - s.

    With u the lesser of s and 1 - s, each band of u that spans a factor of 16 is scaled by a power of two, which is
    exact, and cut into cells of equal width.
    """
    resolution = bits - 7
    score = nw.col("score")
    least = nw.when(score <= 0.5).then(score).otherwise(1 - score)
    cell = _band(least, resolution, _LAST_BAND)
    for band in reversed(range(_LAST_BAND)):
        above = least >= 2.0 ** (-5 - 4 * band)
        cell = nw.when(above).then(_band(least, resolution, band)).otherwise(cell)
    return nw.when(score <= 0.5).then(cell).otherwise(2.0 ** (resolution + 5) - cell).cast(nw.Int32)


def _band(least, resolution, band):
    return (least * 2.0 ** (resolution + 4 + 4 * band)).floor() - band * 2.0 ** (resolution + 4)


def width_bin(n_bins):
    """Return the number of the equal-width bin, from 1, of the column `score`: 0 for 0, and rarely one too far.

    The product s B may round across an edge k (1 / B). The least and the greatest score of a bin tell.
    """
    integer = nw.Int8 if n_bins < 127 else nw.Int32  # groups by small integers are quicker
    return (nw.col("score") * float(n_bins)).ceil().cast(integer)
