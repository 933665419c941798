"""Rows in the order of their scores, by one sort of plain numbers."""

import numpy as np

from skcalib._rows.blocks import row_blocks


def in_order(scores):
    """Return whether scores never fall. A few scores are looked at first: they mostly decide it."""
    rows = len(scores)
    return all(bool(np.all(scores[: end - 1] <= scores[1:end])) for end in (min(64, rows), rows) if end > 1)


def first_rows(ordered):
    """Return the first row of each distinct score, for scores in order."""
    return np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))[: len(ordered)]


def sorted_scores(scores):
    """Return the scores in order: a copy, or themselves where they are."""
    return scores if in_order(scores) else np.sort(scores)


def sorted_rows(scores, labels):
    """Return the scores in order, and the boolean labels that go with them (tied scores: False first).

    Floats from 0 up to 2 have the same order as their bits, and the highest two bits are 0. Shifted by one bit they
    leave room for the label. So one sort of integers orders scores and labels together.
    """
    bits = f"u{scores.itemsize}"
    if scores.view(bits).max() >= np.full(1, 2, scores.dtype).view(bits)[0]:  # negative, or 2 and more
        order = np.lexsort((labels, scores))
        return scores[order], labels[order]
    keys = scores.view(bits) << 1
    for rows in row_blocks(len(keys)):
        keys[rows] |= labels[rows]
    keys.sort()
    labels = np.empty(len(keys), dtype=bool)
    for rows in row_blocks(len(keys)):
        np.not_equal(keys[rows] & 1, 0, out=labels[rows])
        keys[rows] >>= 1
    return keys.view(scores.dtype), labels


def mid_rank_cells(scores, n_cells, weight=None):
    """Return the equal-mass cell of each score by its mid-rank, tied scores together, and how many cells are filled."""
    _, inverse = np.unique(scores, return_inverse=True)
    mass = np.bincount(inverse, weight)
    middle = np.cumsum(mass) - mass / 2
    filled, cells = np.unique(np.floor(n_cells * middle / mass.sum()), return_inverse=True)
    return cells[inverse], len(filled)
