"""Cells of the score: integers that grow with it, the same on every engine."""

from skcalib.engines._native import narwhals

__all__ = ["coarse_cell", "fine_cell", "half_width_bin"]

_RESOLUTION = 2**11  # of the coarse cells on each half
_MOST_HALVINGS = 9  # bands of the fine cells: the last one reaches below 2^-37


def coarse_cell():
    """Return the number of one of 2^12 cells of the column `score`, narrow near 0 and 1, where scores are dense.

    A square root is rounded correctly on every engine, and 1 - s is exact above 1/2: the number never falls, and is
    the same everywhere. The minimum has no effect on numbers; it keeps a NaN that DuckDB hides from a cast.
    """
    nw = narwhals()
    score = nw.col("score")
    low = (score.sqrt().sqrt() * _RESOLUTION).floor()
    high = 2 * _RESOLUTION - ((1 - score).sqrt().sqrt() * _RESOLUTION).floor()
    cell = nw.when(score <= 0.5).then(low).otherwise(high)
    return nw.min_horizontal(cell, nw.lit(2.0 * _RESOLUTION)).cast(nw.Int32)


def fine_cell(bits):
    """Return the number of one of about 2^bits cells of equal relative width in s, or in 1 - s above 1/2.

    With u the lesser of s and 1 - s, each band of u that spans a factor of 16 is scaled by a power of two, which is
    exact, and cut into cells of equal width.
    """
    nw = narwhals()
    resolution = bits - 7
    score = nw.col("score")
    least = nw.when(score <= 0.5).then(score).otherwise(1 - score)
    cell = _band(least, resolution, _MOST_HALVINGS)
    for band in reversed(range(_MOST_HALVINGS)):
        above = least >= 2.0 ** (-5 - 4 * band)
        cell = nw.when(above).then(_band(least, resolution, band)).otherwise(cell)
    mirrored = nw.when(score <= 0.5).then(cell).otherwise(2.0 ** (resolution + 5) - cell)
    return nw.min_horizontal(mirrored, nw.lit(2.0**31 - 1)).cast(nw.Int32)


def _band(least, resolution, band):
    return (least * 2.0 ** (resolution + 4 + 4 * band)).floor() - band * 2.0 ** (resolution + 4)


def half_width_bin(n_bins):
    """Return twice the number of the equal-width bin of the column `score`, plus the column `label`.

    The product s B may round across an edge k (1 / B), by one bin at most: the two comparisons put that right. By
    label the group-by has three sums less to make.
    """
    nw = narwhals()
    score = nw.col("score")
    # Not the literal 1 / B: some databases take one for a decimal. Ibis makes integers of floors.
    width = nw.lit(1.0).cast(nw.Float64) / nw.lit(float(n_bins))
    guess = nw.min_horizontal((score * float(n_bins)).floor().cast(nw.Float64), nw.lit(float(n_bins - 1)))
    too_high = ((score <= guess * width) & (guess > 0)).cast(nw.Float64)
    too_low = ((score > (guess + 1.0) * width) & (guess < n_bins - 1)).cast(nw.Float64)
    return ((guess - too_high + too_low) * 2.0 + nw.col("label")).cast(nw.Int32)
