"""Folds of the calibration set, which depend on its rows alone."""

from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from skcalib._rows.links import PROBABILITY_CLIP, log_probability, two_class_log_odds

_SEED = 0
# Integer weights are dealt out copy by copy up to this total; rows stay whole beyond
# it.
_MOST_COPIES = 10_000_000
# Log-probabilities are told apart by cells of this width, which have no edge at 0.
_CELL, _EDGE = 2.0**-20, 0.2718


class Fold(NamedTuple):
    """Rows to fit to and rows to predict, with their weights (None where every row
    counts once).
    """

    train: np.ndarray
    train_weight: np.ndarray | None
    test: np.ndarray
    test_weight: np.ndarray | None


def cross_validation_folds(
    cv, scores, codes, sample_weight=None, input=None, stratified=True, seed=_SEED
):
    """Return the folds that `cv` stands for, which predict every row once.

    An int stands for random folds, the same for the same rows in any order. Integer
    weights are copies of a row, which the folds are dealt like rows: a row may then be
    in several folds with a part of its weight each.

    Parameters
    ----------
    cv : int, splitter, iterable of (train, test) or None
        At least two folds; None means 5.
    scores : ndarray of shape (n, C)
        Scores.
    codes : ndarray of int, shape (n,)
        Class of each row.
    sample_weight : ndarray of shape (n,), default=None
        Positive weights.
    input : {"probability", "logit"}, default=None
        What the scores are. If it is given, logits and their probabilities make the
        same folds.
    stratified : bool, default=True
        Whether an int deals out each class evenly. Frequencies in a fold are then those
        of the other rows, which rewards fitting their noise: with 4,000 rows of 100
        classes by .01 nats a row. False deals out evenly only the classes with so few
        rows that a fold may hold them all.
    seed : int, default=0
        Seed of random folds.

    Returns
    -------
    folds : list of Fold
        At most as many as asked for: a fold without rows is left out.

    Raises
    ------
    ValueError
        If a splitter does not predict every row exactly once, or names rows that are
        not there.
    """
    if cv is None or isinstance(cv, Integral):
        return _dealt_folds(
            cv or 5, scores, codes, sample_weight, input, stratified, seed
        )
    splits = [
        [row_indices(rows, len(codes)) for rows in split]
        for split in check_cv(cv).split(scores, codes)
    ]
    folds = [
        Fold(train, taken(sample_weight, train), test, taken(sample_weight, test))
        for train, test in splits
    ]
    times = np.bincount(
        np.concatenate([fold.test for fold in folds]), minlength=len(codes)
    )
    if (times != 1).any():
        row = int(np.argmax(times != 1))
        raise ValueError(
            f"cv must predict every row exactly once, but it predicts row {row}"
            f" {times[row]} times: {cv!r}."
        )
    return folds


def row_indices(rows, n_samples):
    """Return the rows of a split, a mask included, as indices from 0 on."""
    try:
        return np.arange(n_samples)[rows]
    except IndexError as error:
        raise ValueError(
            f"cv was made for another X than the one with {n_samples} rows: {error}. A"
            " list of splits belongs to one X, without rows of weight 0; inside a"
            " search or cross-validation give a splitter as cv."
        ) from None


def _dealt_folds(n_folds, scores, codes, sample_weight, input, stratified, seed):
    """Return random folds that depend on the rows alone, not on their order."""
    n_rows = len(codes)
    weight = np.ones(n_rows) if sample_weight is None else sample_weight
    copies = _copies(sample_weight, n_rows)
    stratum = codes
    if not stratified:
        # Only classes with so few rows that a fold may hold them all: one of two folds
        # holds all of 10 rows of a class in .002 of deals.
        is_rare = np.bincount(codes, copies) < 10
        stratum = np.where(is_rare[codes], codes, -1)

    # 1. The rows in an order by their content: rows that tie are the same, so that it
    # does not matter which of them comes first.
    cells = () if input is None else _cells(scores, input).T
    order = _order((weight, codes, *scores.T, *cells, stratum))

    # 2. Each copy of a row is shuffled within its stratum.
    dealt = np.repeat(order, copies[order])
    shuffle = check_random_state(seed).uniform(size=len(dealt))
    dealt = dealt[np.lexsort((shuffle, stratum[dealt]))]

    # 3. The copies are dealt out like cards. A row may then be in several folds, with a
    # share of its weight in each.
    folds = []
    for k in range(min(n_folds, len(dealt))):
        share = np.bincount(dealt[k::n_folds], minlength=n_rows) / copies
        train = np.flatnonzero(share < 1)
        test = np.flatnonzero(share)
        if sample_weight is None:
            folds.append(Fold(train, None, test, None))
        else:
            train_weight = (weight * (1 - share))[train]
            test_weight = (weight * share)[test]
            folds.append(Fold(train, train_weight, test, test_weight))
    return folds


def _copies(sample_weight, n_rows):
    """Return how many copies of each row are dealt out: its weight, where all are
    integers and not too many.
    """
    if (
        sample_weight is None
        or (sample_weight % 1 != 0).any()
        or sample_weight.sum() > _MOST_COPIES
    ):
        return np.ones(n_rows, dtype=np.intp)
    return sample_weight.astype(np.intp)


def _order(keys):
    """Return the order of rows by many keys, the last one first, as `np.lexsort` does.

    Four keys mostly leave no ties, and the others then change nothing: 200 keys of
    10,000 rows take 40 times as long.
    """
    last_keys = keys[-4:]
    order = np.lexsort(last_keys)
    if len(keys) == len(last_keys):
        return order
    is_tied = np.ones(max(len(order) - 1, 0), dtype=bool)
    for key in last_keys:
        is_tied &= key[order[1:]] == key[order[:-1]]
    return np.lexsort(keys) if is_tied.any() else order


def _cells(scores, input):
    """Return the cells of the rows' log-probabilities (n, K), of two classes of their
    log-odds (n, 1).

    Rounding hardly ever changes them.
    """
    limit = -np.log(PROBABILITY_CLIP)
    if scores.shape[1] <= 2:
        values = two_class_log_odds(scores, input)[:, None]
    elif input == "logit":
        values = log_softmax(scores.astype(np.float64), axis=1)
    else:
        values = log_probability(scores)
    return np.floor(np.clip(values, -limit, limit) / _CELL + _EDGE)


def taken(sample_weight, rows):
    """Return the weights of some rows, None where every row counts once."""
    return None if sample_weight is None else sample_weight[rows]
