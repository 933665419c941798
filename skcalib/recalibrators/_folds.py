"""Folds of the calibration set, which depend on its rows alone, and what recalibrating gains on the rows left out."""

from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, ndtri
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from skcalib._inference.results import IntervalEstimate
from skcalib._rows.links import PROBABILITY_CLIP, log_probability, two_class_log_odds
from skcalib.recalibrators._attributes import number

_SEED = 0
# Integer weights are dealt out copy by copy up to this total; rows stay whole beyond it.
_MOST_COPIES = 10_000_000
# Log-probabilities are told apart by cells of this width, which have no edge at 0.
_CELL, _EDGE = 2.0**-20, 0.2718


class Fold(NamedTuple):
    """Rows to fit to and rows to predict, with their weights (None where every row counts once)."""

    train: np.ndarray
    train_weight: np.ndarray | None
    test: np.ndarray
    test_weight: np.ndarray | None


def cross_validation_folds(
    cv, scores, codes, sample_weight=None, input=None, stratified=True
):
    """Return the folds that `cv` stands for, which predict every row once.

    An int stands for random folds, the same for the same rows in any order. Integer weights are copies of a
    row, which the folds are dealt like rows: a row may then be in several folds with a part of its weight each.

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
        What the scores are. If it is given, logits and their probabilities make the same folds.
    stratified : bool, default=True
        Whether an int deals out each class evenly. Frequencies in a fold are then those of the other rows, which
        rewards fitting their noise: with 4,000 rows of 100 classes by .01 nats a row. False deals out evenly only the
        classes with so few rows that a fold may hold them all.

    Returns
    -------
    folds : list of Fold
        At most as many as asked for: a fold without rows is left out.

    Raises
    ------
    ValueError
        If a splitter does not predict every row exactly once, or names rows that are not there.
    """
    if cv is None or isinstance(cv, Integral):
        return _dealt_folds(cv or 5, scores, codes, sample_weight, input, stratified)
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
            f"cv must predict every row exactly once, but it predicts row {row} {times[row]} times: {cv!r}."
        )
    return folds


def row_indices(rows, n_samples):
    """Return the rows of a split, a mask included, as indices from 0 on."""
    try:
        return np.arange(n_samples)[rows]
    except IndexError as error:
        raise ValueError(
            f"cv was made for another X than the one with {n_samples} rows: {error}. A list of splits belongs to one "
            "X, without rows of weight 0; inside a search or cross-validation give a splitter as cv."
        ) from None


def _dealt_folds(n_folds, scores, codes, sample_weight, input, stratified):
    weight = np.ones(len(codes)) if sample_weight is None else sample_weight
    whole = (
        sample_weight is None or (weight % 1 != 0).any() or weight.sum() > _MOST_COPIES
    )
    copies = np.ones(len(codes), dtype=np.intp) if whole else weight.astype(np.intp)
    cells = () if input is None else _cells(scores, input).T
    # One of two folds holds all of 10 rows of a class in .002 of deals.
    stratum = (
        codes
        if stratified
        else np.where((np.bincount(codes, copies) < 10)[codes], codes, -1)
    )
    order = _order(
        (weight, codes, *scores.T, *cells, stratum)
    )  # by content: rows that tie are the same
    dealt = np.repeat(order, copies[order])
    shuffle = check_random_state(_SEED).uniform(size=len(dealt))
    dealt = dealt[np.lexsort((shuffle, stratum[dealt]))]
    folds = []
    for k in range(min(n_folds, len(dealt))):
        share = np.bincount(dealt[k::n_folds], minlength=len(codes)) / copies
        train, test = np.flatnonzero(share < 1), np.flatnonzero(share)
        weights = (
            [None, None]
            if sample_weight is None
            else [(weight * (1 - share))[train], (weight * share)[test]]
        )
        folds.append(Fold(train, weights[0], test, weights[1]))
    return folds


def _order(keys):
    """Return the order of rows by many keys, the last one first, as `np.lexsort` does.

    Four keys mostly leave no ties, and the others then change nothing: 200 keys of 10,000 rows take 40 times as long.
    """
    few = keys[-4:]
    order = np.lexsort(few)
    tied = np.logical_and.reduce([key[order[1:]] == key[order[:-1]] for key in few])
    return np.lexsort(keys) if tied.any() and len(keys) > 4 else order


def _cells(scores, input):
    """Return the cells of the rows' log-probabilities (n, K), of two classes of their log-odds (n, 1).

    Rounding hardly ever changes them.
    """
    limit = -np.log(PROBABILITY_CLIP)
    if scores.shape[1] > 2:
        values = (
            log_softmax(scores.astype(np.float64), axis=1)
            if input == "logit"
            else log_probability(scores)
        )
    else:
        values = two_class_log_odds(scores, input)[:, None]
    return np.floor(np.clip(values, -limit, limit) / _CELL + _EDGE)


def taken(sample_weight, rows):
    return None if sample_weight is None else sample_weight[rows]


def estimate(value):
    """Check an estimate between its limits, of a state that is read."""
    if (
        not isinstance(value, tuple)
        or len(value) != 3
        or not number(value[1]) <= number(value[0]) <= number(value[2])
    ):
        raise ValueError(
            f"must be an estimate and the limits of its interval, found {value!r:.60}"
        )
    return IntervalEstimate(*map(float, value))


def gain_interval(gains, folds, sample_weight, level):
    """Return the mean out-of-fold gain and its interval, from what each row gains by the fit of each fold."""
    weight = (
        None
        if sample_weight is None
        else np.concatenate([fold.test_weight for fold in folds])
    )
    out_of_fold = np.concatenate(
        [gain[fold.test] for gain, fold in zip(gains, folds, strict=True)]
    )
    # Each row is used for fitting and for testing, in turns, so the noise of the fits counts twice. The noise of a
    # row's gain is the jackknife's, over the fits without one fold each.
    of_fits = np.average((len(folds) - 1) * gains.var(axis=0), weights=sample_weight)
    return row_gain_interval(out_of_fold, weight, level, of_fits)


def row_gain_interval(gains, sample_weight, level=0.9, variance_of_fits=0.0):
    """Return the mean of what rows gain out of fold and its interval, by default without the noise of the fits."""
    mean, total = (
        np.average(gains, weights=sample_weight),
        len(gains) if sample_weight is None else sample_weight.sum(),
    )
    variance = np.average((gains - mean) ** 2, weights=sample_weight) + variance_of_fits
    width = ndtri((1 + level) / 2) * np.sqrt(variance / max(total - 1, 1))
    return IntervalEstimate(*map(float, (mean, mean - width, mean + width)))


def standard_error(gain, level):
    """Return the standard error behind a gain's interval."""
    return (gain.high - gain.low) / (2 * ndtri((1 + level) / 2))
