"""Folds of the calibration set, which depend on its rows alone."""

import math
from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from skcalib._input.tensors import as_array, like, namespace_of, widest_dtype
from skcalib._rows.blocks import taken, weights_or_ones
from skcalib._rows.links import PROBABILITY_CLIP, log_probability, two_class_log_odds
from skcalib._solvers.sums import cast, chosen, log_sum_exp

_SEED = 0
# Classes from which on "auto" does not stratify. Chosen where temperature scaling is
# right (`python -m benchmarks.few_rows_per_class`): with 10 to 20 classes and 5 to 50
# rows of each, plain folds take the stack's excess from .0180 to .0041. On subsets of
# CIFAR-100 they save .0019 with 15 and 20 classes, cost .0003 with 10 and .0012 with 3.
_MANY_CLASSES = 10
# Integer weights are dealt out copy by copy up to this total; rows stay whole beyond
# it.
_MOST_COPIES = 10_000_000
# Log-probabilities that fall into the same cell of this width count as equal. Edges of
# cells are shifted by this share of a cell, so that none is at 0.
_CELL = 2.0**-20
_EDGE = 0.2718


class Fold(NamedTuple):
    """The indices of the rows to fit to, `train` (n_train,), and of those to predict,
    `test` (n_test,), each with its weights, or None where every row counts once.
    """

    train: np.ndarray
    train_weight: np.ndarray | None
    test: np.ndarray
    test_weight: np.ndarray | None


def cross_validation_folds(
    cv,
    scores,
    codes,
    sample_weight=None,
    input=None,
    stratified=True,
    seed=_SEED,
    max_train_rows=None,
    importance=False,
    cluster=None,
):
    """Return the folds that `cv` stands for; each row is a test row once.

    An int stands for random folds. They depend on the contents of the rows and not on
    their order, nor on which of two labels counts as the event. A row of the integer
    weight w is dealt out as w copies, so that it may be in several folds with a part of
    its weight in each.

    Parameters
    ----------
    cv : int, splitter, iterable of (train, test) or None
        At least two folds; None means 5.
    scores : array of shape (n, C)
        Scores; for an int also a tensor: logits, or without `input` any scores.
    codes : array of int, shape (n,)
        Class of each row, where the scores are.
    sample_weight : array of shape (n,), default=None
        Positive weights, where the scores are.
    input : {"probability", "logit"}, default=None
        What the scores are. If it is given, logits and their probabilities make the
        same folds.
    stratified : bool or "auto", default=True
        Whether an int deals out each class evenly. Frequencies in a fold are then those
        of the other rows, which rewards fitting their noise: with 4,000 rows of 100
        classes by .01 nats a row. Otherwise rows are dealt out whatever their class,
        but no fold holds a class of two rows or more alone. "auto" stratifies up to 9
        classes.
    seed : int, default=0
        Seed of random folds.
    max_train_rows : int, default=None
        With an int as `cv`, about the largest number of training rows of a fold, in
        which each class keeps its share. All rows are test rows.
    importance : bool, default=False
        Whether a row was seen once whatever its weight: it is then never dealt out as
        copies.
    cluster : ndarray of int, shape (n,), default=None
        Code of each row's cluster, 0 to G - 1: all its rows lie in one fold. An int
        deals out clusters instead of rows, in random order and not stratified. A
        splitter gets the clusters as its `groups`.

    Returns
    -------
    folds : list of Fold
        At most as many as asked for: a fold without rows is left out.

    Raises
    ------
    ValueError
        If a splitter does not predict every row exactly once, names rows that are not
        there, or puts rows of one cluster on both sides of a split.
    """
    if cv is None or isinstance(cv, Integral):
        return _random_folds(
            cv or 5,
            _few_columns_off_device(scores),
            as_array(codes)[0],
            None if sample_weight is None else as_array(sample_weight)[0],
            input,
            stratified,
            seed,
            max_train_rows,
            importance,
            cluster,
        )
    n_rows = len(codes)
    folds = []
    for train, test in splits_of(check_cv(cv), scores, codes, cluster):
        train_weight = taken(sample_weight, train)
        test_weight = taken(sample_weight, test)
        folds.append(Fold(train, train_weight, test, test_weight))
    predicted_rows = np.concatenate([fold.test for fold in folds])
    n_predictions = np.bincount(predicted_rows, minlength=n_rows)
    if (n_predictions != 1).any():
        row = int(np.argmax(n_predictions != 1))
        raise ValueError(
            f"cv must test every row exactly once, but it tests row {row}"
            f" {n_predictions[row]} times: {cv!r}."
        )
    return folds


def splits_of(splitter, X, y, cluster=None, groups=None):
    """Return the splits of a splitter, a list of pairs (train, test) of row indices.

    With clusters (n,), these are the groups of a splitter that takes some, unless there
    are `groups`; raise a ValueError if rows of one cluster are on both sides of a
    split.
    """
    if groups is None:
        groups = cluster
    params = {}
    if groups is not None and _takes_groups(splitter):
        params["groups"] = groups
    splits = []
    for train, test in splitter.split(X, y, **params):
        train = row_indices(train, len(y))
        test = row_indices(test, len(y))
        if cluster is not None and np.isin(cluster[train], cluster[test]).any():
            raise ValueError(
                "cv divides a cluster between the training and the test rows of a fold."
                " Use an int, or a splitter that keeps groups together, such as"
                " GroupKFold."
            )
        splits.append((train, test))
    return splits


def _takes_groups(splitter):
    """Return whether a splitter makes use of groups; a user's own is taken to do so."""
    if not hasattr(splitter, "get_metadata_routing"):
        return True
    requests = splitter.get_metadata_routing()
    return "groups" in requests.consumes("split", ["groups"])


def row_indices(rows, n_samples):
    """Return the rows of a split, given as indices or as a mask, as indices from 0
    on.
    """
    try:
        return np.arange(n_samples)[rows]
    except IndexError as error:
        raise ValueError(
            f"cv was not made for this X with {n_samples} rows: {error}. A list of"
            " splits is valid only for the X that it was made for, and only if no row"
            " has weight 0; inside a search or cross-validation, pass a splitter as cv."
        ) from None


def _turned(columns, sign):
    """Return columns (n_columns, n) of the scores of two classes, with the classes
    exchanged if `sign` is -1: two columns change places, one is negated.
    """
    if sign == 1:
        return columns
    if len(columns) == 2:
        return columns[::-1]
    return -columns


def _random_folds(
    n_folds,
    scores,
    codes,
    sample_weight,
    input,
    stratified,
    seed,
    max_train_rows,
    importance,
    cluster,
):
    """Return random folds that depend on the contents of the rows, not on their order:
    a list of `Fold`. The rows are sorted by content, shuffled with the seed and dealt
    out in turn.

    `scores` are (n, C), of the kind `input`; `codes` (n,) the classes; `sample_weight`
    (n,) or None, importance weights or counts of rows; `cluster` (n,) codes of rows
    that stay together, or None. `stratified`, True, False or "auto", deals out class by
    class; a fold is fitted to at most `max_train_rows`, or to all if that is None.
    """
    n_rows = len(codes)
    weight = weights_or_ones(sample_weight, n_rows)
    # The folds are the same whichever of two labels counts as the event: where it is
    # the frequent one the classes are exchanged (sign = -1) before the rows are sorted.
    # Scores are then negated, not subtracted from 1, in which tiny ones would be lost.
    sign = 1
    is_binary = scores.shape[1] <= 2 and codes.max() <= 1
    if is_binary and _is_event_frequent(scores, codes, weight, input):
        sign = -1
        codes = 1 - codes
    # A row of the integer weight w is dealt out as w copies of it.
    copies = _copies(None if importance else sample_weight, n_rows)
    if stratified == "auto":
        stratified = len(np.unique(codes)) < _MANY_CLASSES
    if stratified and cluster is None:
        stratum = codes
    else:
        stratum = np.zeros(n_rows, dtype=np.intp)

    # 1. The rows are sorted by stratum, then by rounded log-probabilities, scores,
    # classes and weights. Rows that tie are the same, so that it does not matter which
    # of them comes first.
    order = _order_by_content(scores, weight, codes, stratum, input, sign)

    # 2. The copies of the rows are shuffled within each stratum: `dealt` (n_copies,)
    # holds the row of each copy.
    dealt = _shuffled_copies(order, copies, stratum, seed)

    # 3. The copies, or the clusters, are dealt out to the folds in turn. What a row has
    # in a fold is the share of its copies there.
    if cluster is None:
        fold_of_copy = np.arange(len(dealt)) % n_folds
        if not stratified:
            _split_lone_classes(fold_of_copy, codes[dealt], n_folds)
    else:
        random_rank = check_random_state(seed).permutation(cluster.max() + 1)
        fold_of_copy = random_rank[cluster[dealt]] % n_folds
    folds = []
    for k in np.unique(fold_of_copy):
        test_share = _share_of_copies(dealt[fold_of_copy == k], copies)
        to_train = dealt[fold_of_copy != k]
        if max_train_rows is not None:
            to_train = to_train[_is_sampled(len(to_train), n_folds, max_train_rows)]
        train_share = _share_of_copies(to_train, copies)
        train = np.flatnonzero(train_share)
        test = np.flatnonzero(test_share)
        if sample_weight is None:
            folds.append(Fold(train, None, test, None))
        else:
            train_weight = (weight * train_share)[train]
            test_weight = (weight * test_share)[test]
            folds.append(Fold(train, train_weight, test, test_weight))
    return folds


def _shuffled_copies(order, copies, stratum, seed):
    """Return the row of each copy, (n_copies,): those of a stratum together, in random
    order. `order` (n,) are the rows, stratum by stratum; `copies` and `stratum` (n,)
    belong to each row.
    """
    ordered = np.repeat(order, copies[order])
    shuffle = check_random_state(seed).uniform(size=len(ordered))
    first_of_stratum = np.flatnonzero(np.diff(stratum[ordered])) + 1
    shuffled = []
    for copies_of_stratum in np.split(np.arange(len(ordered)), first_of_stratum):
        places = np.argsort(shuffle[copies_of_stratum], kind="stable")
        shuffled.append(copies_of_stratum[places])
    return ordered[np.concatenate(shuffled)]


def _share_of_copies(rows, copies):
    """Return the share of each row's copies (n,) that are among `rows`, the rows of
    some copies.
    """
    return np.bincount(rows, minlength=len(copies)) / copies


def _is_sampled(n_copies, n_folds, most):
    """Return which of a fold's training copies are fitted to, booleans (n_copies,):
    all, or if there are more than `most` every step-th one.

    Copies lie class by class, so that every step-th is a stratified sample. They come
    from the n_folds - 1 other folds in turn: the sample moves on after each round, else
    all of it might come from one fold.
    """
    step = int(max(-(-n_copies // most), 1))  # rounded up; `most` may be infinite
    # Copy k of round r is taken if (n_folds - 1 + shift) * r + k is a multiple of the
    # step. If the factor of r has no divisor in common with the step, this holds for
    # each fold k in one of `step` rounds.
    shift = 1
    while math.gcd(n_folds - 1 + shift, step) > 1:
        shift += 1
    place = np.arange(n_copies)
    n_rounds_before = place // (n_folds - 1)
    return (place + shift * n_rounds_before) % step == 0


def _split_lone_classes(fold_of_copy, codes, n_folds):
    """Move one copy of each class that lies in a single fold to the next, so that every
    fold trains on all classes. `fold_of_copy` (n_copies,) is changed in place.
    """
    # the copies in the order of their classes, and where each class starts there
    by_class = np.argsort(codes, kind="stable")
    first_of_class = np.flatnonzero(np.diff(codes[by_class], prepend=-1))
    folds = fold_of_copy[by_class]
    lowest = np.minimum.reduceat(folds, first_of_class)
    highest = np.maximum.reduceat(folds, first_of_class)
    # the first copy of each class whose copies are all in one fold
    moved = by_class[first_of_class[lowest == highest]]
    fold_of_copy[moved] = (fold_of_copy[moved] + 1) % n_folds


def _few_columns_off_device(scores):
    """Return one or two columns of a tensor as a NumPy array, and other scores as they
    are.
    """
    if scores.shape[1] > 2 or namespace_of(scores) is np:
        return scores
    columns = [as_array(scores[:, k])[0] for k in range(scores.shape[1])]
    return np.column_stack(columns)


def _is_event_frequent(scores, codes, weight, input):
    """Return whether the second of two classes has more weight than the first or, if
    the weights are equal, whether the scores expect it more often.
    """
    difference = weight[codes == 1].sum() - weight[codes == 0].sum()
    if difference == 0:
        difference = weight @ two_class_log_odds(scores, input or "probability")
    return difference > 0


def _copies(sample_weight, n_rows):
    """Return how many copies of each row are dealt out (n_rows,): its weight if all are
    integers of a small sum, else 1.
    """
    one_each = np.ones(n_rows, dtype=np.intp)
    if sample_weight is None or (sample_weight % 1 != 0).any():
        return one_each
    if sample_weight.sum() > _MOST_COPIES:
        return one_each
    return sample_weight.astype(np.intp)


def _order_by_content(scores, weight, codes, stratum, input, sign):
    """Return the indices (n,) that sort rows by their stratum, then by all else that is
    known of them: rounded logarithms of their scores, scores, class and weight.

    `scores` are (n, C), the other arrays (n,). `input` says whether scores are
    probabilities or logits; None leaves the logarithms out. With the `sign` -1 two
    classes are exchanged.
    """
    if namespace_of(scores) is not np:
        return _order_of_tensor(scores, weight, codes, stratum, input)
    # The last key counts first.
    columns = _turned(scores.T, sign)
    if input is not None:
        columns = (*columns, *_rounded_logarithms(scores, input, sign).T)
    return _order((weight, codes, *columns, stratum))


def _order(keys):
    """Return the indices (n,) that sort rows by keys (n,), the last of which counts
    first, as ``np.lexsort(keys)`` does. To save time, only rows that tie in the last
    two keys are sorted by all keys.
    """
    last_keys = keys[-2:]
    order = np.lexsort(last_keys)
    if len(keys) == len(last_keys) or len(order) < 2:
        return order
    # Sorting the tied rows by all keys leaves each run of ties in its places, because
    # the last two keys count first.
    places = _places_of_ties(order, last_keys)
    tied = order[places]
    order[places] = tied[np.lexsort([key[tied] for key in keys])]
    return order


def _order_of_tensor(scores, weight, codes, stratum, input):
    """Return the indices (n,) that sort rows by their stratum, then by all else that is
    known of them, for scores (n, K) that are a tensor, and logits if `input` is given.

    The scores stay on their device; `weight`, `codes` (the classes) and `stratum` are
    NumPy arrays (n,). Only rows that tie in the last two keys, which count first, are
    sorted by all keys.
    """
    xp = namespace_of(scores)
    # The keys that count first: the stratum, then the last column of scores, or of
    # their rounded logarithms.
    last_columns = scores if input is None else _rounded_logits(scores)
    last_key, _ = as_array(last_columns[:, -1])
    last_keys = (last_key, stratum)
    order = np.lexsort(last_keys)
    places = _places_of_ties(order, last_keys)
    if len(places) == 0:
        return order
    tied = order[places]
    scores = chosen(scores, tied)
    keys = [like(scores, weight[tied]), like(scores, codes[tied])]
    keys += [scores[:, k] for k in range(scores.shape[1])]
    if input is not None:
        rounded = _rounded_logits(scores)
        keys += [rounded[:, k] for k in range(rounded.shape[1])]
    keys.append(like(scores, stratum[tied]))
    # One stable sort for each key: the key of the last sort counts first.
    tied_order = like(scores, np.arange(len(tied)))
    for key in keys:
        by_key = xp.argsort(xp.take(key, tied_order, axis=0), stable=True)
        tied_order = xp.take(tied_order, by_key, axis=0)
    tied_order, _ = as_array(tied_order)
    order[places] = tied[tied_order]
    return order


def _places_of_ties(order, keys):
    """Return the places in `order` (n,) of the rows whose keys another row shares."""
    is_tied_with_next = np.ones(max(len(order) - 1, 0), dtype=bool)
    for key in keys:
        is_tied_with_next &= key[order[1:]] == key[order[:-1]]
    is_tied = np.zeros(len(order), dtype=bool)
    is_tied[1:] |= is_tied_with_next
    is_tied[:-1] |= is_tied_with_next
    return np.flatnonzero(is_tied)


def _rounded_logarithms(scores, input, sign=1):
    """Return the log-probabilities of rows (n, K), or the log-odds of two classes (n,
    1), rounded down to numbers of intervals of width 2^-20, as floats.

    A logarithm computed in several ways differs in the last digits, but nearly always
    lies in the same interval. Edges are shifted, so that none lies at a round number,
    as many scores do. Where the event is the frequent label, a `sign` of -1 turns the
    log-odds round: folds do not depend on which label is the event.
    """
    limit = -np.log(PROBABILITY_CLIP)
    if scores.shape[1] <= 2:
        values = sign * two_class_log_odds(scores, input)[:, None]
    elif input == "logit":
        values = log_softmax(scores.astype(np.float64), axis=1)
    else:
        values = log_probability(scores)
    return np.floor(np.clip(values, -limit, limit) / _CELL + _EDGE)


def _rounded_logits(logits):
    """Return the log-probabilities of logits (n, K), a tensor, rounded down to numbers
    of intervals of width 2^-20, as `_rounded_logarithms` does for NumPy.
    """
    xp = namespace_of(logits)
    logits = cast(logits, widest_dtype(logits))
    values = logits - log_sum_exp(logits, axis=1)[:, None]
    limit = -float(np.log(PROBABILITY_CLIP))
    return xp.floor(xp.clip(values, -limit, limit) / _CELL + _EDGE)
