"""Piecewise maps of many pieces as a join: a row finds its piece by the cell of its score, and its group."""

from math import comb

import numpy as np

from skcalib.engines._cells import coarse_cell, coarse_place
from skcalib.engines._native import beside, nw
from skcalib.recalibrators._maps import Mixture, Pieces

_MOST_CASES = 64  # pieces of one CASE; more are joined
_LEAST_CELLS, _MOST_CELLS, _MOST_OF_ALL = 2**8, 2**16, 2**18  # of a map, and of the maps of all groups


def is_joined(*maps):
    """Return whether piecewise maps of one value in [0, 1] are too long for a CASE."""
    cuts = np.concatenate([node.cuts for node in maps])
    return len(cuts) >= _MOST_CASES and cuts.min() >= 0 and cuts.max() <= 1


def as_pieces(node):
    """Return a piecewise map, or a weighted sum of such maps of one value, as one; None for other nodes."""
    if isinstance(node, Pieces):
        return node
    parts = node.parts if isinstance(node, Mixture) else ()
    if not parts or any(not isinstance(part, Pieces) or part.of is not parts[0].of for part in parts):
        return None
    cuts = np.unique(np.concatenate([part.cuts for part in parts]))
    if not len(cuts):
        return None
    # The end of a new piece lies within an old one of each part: no digits are lost in moving the origin there.
    origins = np.append(cuts, cuts[-1])
    coefficients = np.zeros((len(origins), max(part.coefficients.shape[1] for part in parts)))
    coefficients[:, 0] = node.constant
    for weight, part in zip(node.weights, parts, strict=True):
        piece = np.append(np.searchsorted(part.cuts, cuts, side="left"), len(part.cuts))
        shift, old = origins - part.origins[piece], part.coefficients[piece]
        for power in range(old.shape[1]):
            for lower in range(power + 1):
                coefficients[:, lower] += weight * comb(power, lower) * old[:, power] * shift ** (power - lower)
    return Pieces(parts[0].of, cuts, origins, coefficients)


def joined(frame, name, maps, group=None):
    """Return the rows, each with its piece, and the names of the columns of the origin and the coefficients.

    Parameters
    ----------
    frame : narwhals LazyFrame
        The rows.
    name : str
        Column of the value, without NULL: a join loses it.
    maps : list of Pieces
        One map, or one per group.
    group : str, default=None
        Column of the number of the group, if there are several.
    """
    n_pieces = max(len(node.origins) for node in maps)
    n_cells = min(4 * n_pieces, max(n_pieces, _MOST_OF_ALL // len(maps)))
    n_cells = int(np.clip(n_cells, _LEAST_CELLS, _MOST_CELLS))
    n_coefficients = max(node.coefficients.shape[1] for node in maps)
    columns = [f"{name}_origin", *(f"{name}_{power}" for power in range(n_coefficients))]
    names = [f"{name}_cell", f"{name}_low", f"{name}_high", *columns]
    parts = [_by_cell(node, n_cells, n_coefficients) for node in maps]
    table = dict(zip(names, map(np.concatenate, zip(*parts, strict=True)), strict=True))
    keys = [f"{name}_cell"]
    if group is not None:
        table[group] = np.repeat(np.arange(len(maps)), [len(part[0]) for part in parts])
        keys.append(group)
    frame = frame.with_columns(coarse_cell(n_cells, name).alias(f"{name}_cell"))
    frame = frame.join(beside(frame, table), on=keys, how="inner")
    return frame.filter((nw.col(name) > nw.col(f"{name}_low")) & (nw.col(name) <= nw.col(f"{name}_high"))), columns


def _by_cell(node, n_cells, n_coefficients):
    """Return columns of the pieces of each cell: its number, the piece's ends, its origin and its coefficients.

    Of the few pieces that share a cell the ends choose. A piece has the cells from that of its least score on.
    """
    lower, upper = np.append(-1.0, node.cuts), np.append(node.cuts, 2.0)
    first, last = (np.floor(coarse_place(np.clip(ends, 0, 1), n_cells)) for ends in (lower, upper))
    n_own = (last - first + 1).astype(np.int64)
    piece = np.repeat(np.arange(len(n_own)), n_own)
    number = (first - np.cumsum(n_own) + n_own)[piece] + np.arange(len(piece))
    coefficients = np.zeros((len(piece), n_coefficients))
    coefficients[:, : node.coefficients.shape[1]] = node.coefficients[piece]
    return number.astype(np.int64), lower[piece], upper[piece], node.origins[piece], *coefficients.T.copy()
