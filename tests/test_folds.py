"""Folds: each row once, stratified, random, the same whatever the order of the rows or
the way repeats are written.
"""

import numpy as np
import pytest
from _catalog import refused
from scipy.special import softmax
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit

from skcalib._fitting.folds import _is_sampled, _order, cross_validation_folds


def sample(n=103, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    return np.round(rng.dirichlet(np.ones(n_classes), n), 1), rng.integers(
        0, n_classes, n
    )


def contents(fold, scores, codes):
    """What a fold trains on and predicts: rows by content with their weight, in no
    order.
    """
    parts = []
    for rows, weight in (
        (fold.train, fold.train_weight),
        (fold.test, fold.test_weight),
    ):
        weight = np.ones(len(rows)) if weight is None else weight
        mass = {}
        for i, w in zip(rows, weight, strict=True):
            key = (*scores[i], codes[i])
            mass[key] = mass.get(key, 0) + w
        parts.append(mass)
    return parts


def test_every_row_is_predicted_once_by_the_fit_without_it():
    scores, codes = sample()
    folds = cross_validation_folds(5, scores, codes)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(103))
    for fold in folds:
        assert not set(fold.train) & set(fold.test)
        assert len(fold.train) + len(fold.test) == 103
        assert len(fold.test) in (20, 21)


def test_classes_are_spread_evenly():
    scores, codes = sample()
    counts = np.array(
        [
            np.bincount(codes[f.test], minlength=3)
            for f in cross_validation_folds(5, scores, codes)
        ]
    )
    assert (np.ptp(counts, axis=0) <= 1).all()


def test_order_of_the_rows_does_not_count():
    scores, codes = sample()
    order = np.random.default_rng(1).permutation(103)
    folds = (
        cross_validation_folds(5, scores, codes),
        cross_validation_folds(5, scores[order], codes[order]),
    )
    for one, other in zip(*folds, strict=True):
        assert contents(one, scores, codes) == contents(
            other, scores[order], codes[order]
        )


def test_integer_weights_are_repeated_rows():
    scores, codes = sample()
    weight = np.random.default_rng(2).integers(1, 5, 103)
    again = np.repeat(scores, weight, axis=0), np.repeat(codes, weight)
    folds = (
        cross_validation_folds(5, scores, codes, weight.astype(float)),
        cross_validation_folds(5, *again),
    )
    for one, other in zip(*folds, strict=True):
        for found, expected in zip(
            contents(one, scores, codes), contents(other, *again), strict=True
        ):
            assert found.keys() == expected.keys()
            np.testing.assert_allclose(
                [found[key] for key in expected], list(expected.values())
            )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logits_and_their_probabilities_make_the_same_folds(n_classes):
    # Scores with many ties in a column, which rounding breaks one way or the other.
    rng = np.random.default_rng(4)
    proba = rng.multinomial(20, np.full(n_classes, 1 / n_classes), 400) / 20
    codes = rng.integers(0, n_classes, 400)
    logits = np.log(np.clip(proba, 2**-52, 1)) + rng.normal(size=(400, 1))
    of = {
        "probability": proba,
        "logit": logits,
        "softmax": softmax(logits, axis=1),
        "float32": proba.astype(np.float32),
    }
    for name, scores in of.items():
        folds = cross_validation_folds(
            5, scores, codes, None, "logit" if name == "logit" else "probability"
        )
        expected = cross_validation_folds(5, proba, codes, None, "probability")
        for one, other in zip(folds, expected, strict=True):
            assert contents(one, proba, codes) == contents(other, proba, codes)


def test_rows_of_fractional_weight_stay_whole():
    scores, codes = sample()
    # a total far below the number of folds
    weight = np.random.default_rng(3).random(103) / 103
    folds = cross_validation_folds(5, scores, codes, weight)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(103))
    np.testing.assert_allclose(
        sum(fold.test_weight.sum() for fold in folds), weight.sum()
    )
    assert min(len(fold.test) for fold in folds) == 20


def test_folds_are_random_in_the_score():
    # Alternate folds along the score would copy the noise of one fold into the others.
    scores = np.linspace(0, 1, 400)[:, None]
    fold_of = np.empty(400)
    for k, fold in enumerate(
        cross_validation_folds(5, scores, np.zeros(400, dtype=int))
    ):
        fold_of[fold.test] = k
    runs = np.mean(fold_of[1:] == fold_of[:-1])
    assert 0.1 < runs < 0.3  # independent folds: 1/5


def test_fewer_rows_than_folds():
    scores, codes = sample(3)
    folds = cross_validation_folds(5, scores, codes)
    assert [len(fold.test) for fold in folds] == [1, 1, 1]


def test_splitters_and_lists_of_folds():
    scores, codes = sample()
    weight = np.arange(1.0, 104)
    splits = list(KFold(4).split(scores))
    for cv in (KFold(4), splits):
        folds = cross_validation_folds(cv, scores, codes, weight)
        for fold, (train, test) in zip(folds, splits, strict=True):
            np.testing.assert_array_equal(fold.train, train)
            np.testing.assert_array_equal(fold.test_weight, weight[test])


@pytest.mark.parametrize(
    "cv", [ShuffleSplit(3, random_state=0), RepeatedKFold(n_splits=3, n_repeats=2)]
)
def test_splitters_that_miss_or_repeat_rows_are_refused(cv):
    with refused(ValueError, "cv must test every row exactly once"):
        cross_validation_folds(cv, *sample())


def test_lists_and_masks_name_rows_and_those_of_another_X_are_refused():
    scores, codes, weight = (
        np.zeros((4, 1)),
        np.array([0, 1, 0, 1]),
        np.arange(1.0, 5.0),
    )
    mask = np.array([True, True, False, False])
    for splits in (
        [([0, 1], [2, 3]), ([2, 3], [0, 1])],
        [(mask, ~mask), (~mask, mask)],
    ):
        first, second = cross_validation_folds(splits, scores, codes, weight)
        assert first.train.tolist() == second.test.tolist() == [0, 1]
        assert first.test_weight.tolist() == [3, 4]
    with refused(ValueError, "cv was not made for this X", "4 rows", "weight 0"):
        cross_validation_folds([([0, 1], [2, 7])], scores, codes)


@pytest.mark.parametrize("distinct", [2, 5, 10**6])
def test_rows_are_ordered_by_all_keys(distinct):
    keys = np.random.default_rng(0).integers(0, distinct, (7, 300))
    np.testing.assert_array_equal(_order(tuple(keys)), np.lexsort(keys))
    np.testing.assert_array_equal(_order(tuple(keys[:3])), np.lexsort(keys[:3]))


def test_folds_that_are_not_stratified():
    rng = np.random.default_rng(5)
    counts = []
    # new scores, of as many events each time: the folds must not be the same at each
    for _ in range(40):
        scores, codes = rng.random((200, 1)), rng.permutation(np.repeat([0, 1], 100))
        folds = cross_validation_folds(5, scores, codes, stratified=False)
        assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(200))
        counts += [codes[fold.test].sum() for fold in folds]
        order = rng.permutation(200)
        again = cross_validation_folds(5, scores[order], codes[order], stratified=False)
        for one, other in zip(folds, again, strict=True):
            assert contents(one, scores, codes) == contents(
                other, scores[order], codes[order]
            )
    # hypergeometric: 40 of 200 rows, half of them events, have variance 40 / 4 * 160 /
    # 199
    assert np.var(counts) == pytest.approx(8.04, rel=0.3)


def test_a_class_of_few_rows_is_in_every_training_part_of_folds_that_are_not_stratified():  # noqa: E501
    for seed in range(30):
        scores, codes = (
            np.random.default_rng(seed).random((102, 1)),
            np.repeat([0, 1, 2], [50, 50, 2]),
        )
        for fold in cross_validation_folds(2, scores, codes, stratified=False):
            assert set(codes[fold.train]) == {0, 1, 2}


def test_a_class_of_two_rows_is_in_every_training_part():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        scores, codes = rng.random((60, 30)), np.repeat(np.arange(30), 2)
        folds = cross_validation_folds(5, scores, codes, stratified="auto")
        assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(60))
        for fold in folds:
            assert set(codes[fold.train]) == set(range(30))


def test_only_many_classes_are_dealt_out_whatever_the_class():
    """With 5 rows of each class stratified folds hold one of each."""
    for n_classes, is_stratified in ((9, True), (10, False)):
        codes = np.repeat(np.arange(n_classes), 5)
        scores = np.random.default_rng(0).random((len(codes), n_classes))
        folds = cross_validation_folds(5, scores, codes, stratified="auto")
        counts = [np.bincount(codes[fold.test], minlength=n_classes) for fold in folds]
        assert (np.ptp(counts) == 0) == is_stratified


def test_training_rows_are_limited_and_their_classes_in_proportion():
    rng = np.random.default_rng(0)
    scores, codes = rng.random((1000, 1)), np.repeat([0, 1], [900, 100])
    folds = cross_validation_folds(5, scores, codes, max_train_rows=200)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(1000))
    order = rng.permutation(1000)
    again = cross_validation_folds(5, scores[order], codes[order], max_train_rows=200)
    for fold, other in zip(folds, again, strict=True):
        assert not set(fold.train) & set(fold.test)
        assert np.bincount(codes[fold.train]).tolist() == [180, 20]
        assert contents(fold, scores, codes) == contents(
            other, scores[order], codes[order]
        )
    # copies of a row are limited alike
    weight = np.full(1000, 3.0)
    for fold in cross_validation_folds(5, scores, codes, weight, max_train_rows=200):
        assert fold.train_weight.sum() == pytest.approx(200, abs=2)


@pytest.mark.parametrize("stratified", [True, False])
@pytest.mark.parametrize("most", [150, 200, 300, 400])
def test_rows_to_fit_to_come_from_all_the_other_folds(most, stratified):
    """A step of 2 or 4 through the rows of four folds would always meet the same."""
    rng = np.random.default_rng(0)
    scores = rng.random((1000, 1))
    folds = cross_validation_folds(
        5, scores, np.arange(1000) % 2, max_train_rows=most, stratified=stratified
    )
    fold_of_row = np.empty(1000, dtype=int)
    for number, fold in enumerate(folds):
        fold_of_row[fold.test] = number
    for number, fold in enumerate(folds):
        counts = np.bincount(fold_of_row[fold.train], minlength=5)
        assert counts[number] == 0
        others = np.delete(counts, number)
        assert others.sum() <= most + 2
        assert others.max() - others.min() <= 3


@pytest.mark.parametrize("n_folds", [2, 3, 4, 5, 10])
@pytest.mark.parametrize("step", range(1, 16))
def test_a_sample_of_the_training_rows_comes_from_all_other_folds(n_folds, step):
    """With five folds, every fifth copy must not come from one of the four others."""
    n_others = n_folds - 1
    n_copies = 60 * step * n_others
    is_sampled = _is_sampled(n_copies, n_folds, most=n_copies // step)
    fold = np.arange(n_copies)[is_sampled] % n_others
    counts = np.bincount(fold, minlength=n_others)
    assert counts.sum() == pytest.approx(n_copies / step, abs=step)
    assert np.ptp(counts) <= 1
