"""Uniform-mass binning: Algorithms 1 and 2 of Gupta and Ramdas (2021), and what is
certified.
"""

import math
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skcalib import (
    HistogramBinning,
    PlattScaling,
    ScalingBinning,
    TemperatureScaling,
    UniformMassBinning,
)
from skcalib._rows.keys import row_keys
from skcalib.binning import EqualMass, EqualWidth, FixedEdges, UniqueScores
from skcalib.guarantees import conditional_epsilon, marginal_epsilon, max_n_bins


def algorithm_1(scores, labels, n_bins, keep_boundary=False):
    """Transcribe Algorithm 1 for distinct scores: the cuts, the bin means, and the
    predictor.
    """
    n = len(scores)
    order = sorted(range(n), key=lambda i: scores[i])
    s = [0.0] + [scores[i] for i in order] + [1.0]
    y = [None] + [labels[i] for i in order]
    a = [0] + [math.ceil(b * (n + 1) / n_bins) for b in range(1, n_bins)] + [n + 1]
    means = []
    for b in range(1, n_bins + 1):
        first = a[b - 1] + 1
        last = a[b] if keep_boundary and b < n_bins else a[b] - 1
        means.append(sum(y[first : last + 1]) / (last + 1 - first))

    def predict(score):
        return next(means[b - 1] for b in range(n_bins, 0, -1) if score >= s[a[b - 1]])

    return [s[i] for i in a[1:-1]], means, predict


def distinct_problem(n, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    return scores, (rng.random(n) < scores**2).astype(int)


@pytest.mark.parametrize("keep_boundary", [False, True])
@pytest.mark.parametrize("n_bins", [5, 10, 31])
def test_equals_the_transcription_on_distinct_scores(n_bins, keep_boundary):
    scores, labels = distinct_problem(997)
    cuts, means, predict = algorithm_1(scores, labels, n_bins, keep_boundary)
    model = UniformMassBinning(n_bins, keep_boundary=keep_boundary).fit(scores, labels)
    np.testing.assert_array_equal(model.bin_edges_[1:-1], cuts)
    np.testing.assert_allclose(model.bin_values_, means, rtol=1e-12)
    # at the cuts themselves, too: the bins are left-closed
    new = np.concatenate((cuts, np.nextafter(cuts, 0), [0, 1], scores[:50]))
    np.testing.assert_allclose(
        model.predict_proba(new)[:, 1], [predict(s) for s in new], rtol=1e-12
    )


def test_five_rows_by_hand():
    # n = 5, B = 2: A_1 = ceil(6 / 2) = 3, so .5 cuts; .1, .2 -> (0 + 1) / 2 and .7, .9
    # -> 1. ZE adds the cut's 0 to the bin below.
    scores, labels = [0.1, 0.2, 0.5, 0.7, 0.9], [0, 1, 0, 1, 1]
    assert UniformMassBinning(2).fit(scores, labels).predict_proba([0.49, 0.5])[
        :, 1
    ].tolist() == [0.5, 1.0]
    kept = UniformMassBinning(2, keep_boundary=True).fit(scores, labels)
    np.testing.assert_allclose(kept.predict_proba([0.49, 0.5])[:, 1], [1 / 3, 1])
    assert kept.bin_counts_.tolist() == [3, 2]


def test_a_boundary_row_moves_a_value_by_no_more_than_the_certificate_allows():
    # Corollary 1: the kept row adds 1 / floor(n / B) at most, since a bin has floor(n /
    # B) - 1 rows inside.
    for n, n_bins in ((20, 10), (997, 31), (53, 7)):
        scores, labels = distinct_problem(n, seed=n)
        values = [
            UniformMassBinning(n_bins, keep_boundary=keep)
            .fit(scores, labels)
            .bin_values_
            for keep in (False, True)
        ]
        assert 0 < np.abs(values[1] - values[0]).max() <= 1 / (n // n_bins)


def test_a_boundary_row_among_ties():
    scores, labels = (
        np.repeat([0.1, 0.4, 0.9], [3, 4, 3]),
        [
            0,
            0,
            1,
            0,
            1,
            0,
            1,
            1,
            1,
            0,
        ],
    )
    model = UniformMassBinning(3, keep_boundary=True).fit(scores, labels)
    order = np.random.default_rng(0).permutation(10)
    again = UniformMassBinning(3, keep_boundary=True).fit(
        scores[order], np.array(labels)[order]
    )
    np.testing.assert_allclose(model.bin_values_, again.bin_values_)
    assert ((model.bin_values_ >= 0) & (model.bin_values_ <= 1)).all()


def test_randomized_equals_algorithm_1_without_ties():
    scores, labels = distinct_problem(400)
    # none of them equals a cut, where the bin would be drawn
    new = np.linspace(0, 1, 1001)
    plain = UniformMassBinning(7).fit(scores, labels).predict_proba(new)
    drawn = (
        UniformMassBinning(7, randomize=True, random_state=1)
        .fit(scores, labels)
        .predict_proba(new)
    )
    np.testing.assert_array_equal(plain, drawn)


def test_randomized_is_the_limit_of_small_perturbations():
    # Algorithm 2 with delta = 1e-6 added to the scores by the same keys that break the
    # ties.
    rng = np.random.default_rng(3)
    scores, labels = rng.integers(5, size=500) / 4, rng.integers(2, size=500)
    model = UniformMassBinning(8, randomize=True, random_state=5).fit(scores, labels)
    key = np.random.RandomState(5).random_sample(500)
    _, means, _ = algorithm_1((scores + 1e-6 * key) / 2, labels, 8)
    np.testing.assert_allclose(model.bin_values_, means, rtol=1e-12)


@pytest.mark.slow
def test_randomized_predictions_of_tied_scores_are_drawn_in_proportion():
    # 600 equal scores in 6 bins: a new row falls into each bin with probability near
    # 1/6
    labels = np.random.default_rng(0).integers(2, size=600)
    model = UniformMassBinning(6, randomize=True, random_state=0).fit(
        np.full(600, 0.3), labels
    )
    new = np.full(60_000, 0.3)
    drawn = model.predict_proba(new)[:, 1]
    shares = [np.mean(drawn == value) for value in np.unique(model.bin_values_)]
    multiplicity = [
        np.sum(model.bin_values_ == value) for value in np.unique(model.bin_values_)
    ]
    # standard deviation of a bin's share: sqrt(1/6 * 5/6 / 600) = .015 from the cuts
    # (they are drawn, too)
    np.testing.assert_allclose(shares, np.array(multiplicity) / 6, atol=0.06)
    # each call draws anew
    assert (drawn != model.predict_proba(new)[:, 1]).mean() > 0.5
    by_id = model.predict_proba(new, ids=range(60_000))
    np.testing.assert_array_equal(
        by_id[::-1], model.predict_proba(new, ids=range(60_000)[::-1])
    )
    np.testing.assert_array_equal(by_id[777], model.predict_proba([0.3], ids=[777])[0])
    again = clone(model).fit(np.full(600, 0.3), labels)
    np.testing.assert_array_equal(by_id, again.predict_proba(new, ids=range(60_000)))


def test_keys_are_those_of_the_formula():
    # The first 13 hexadecimal digits of md5(salt + ":" + id), divided by 16^13: printf
    # 'salt:17' | md5sum
    assert (
        row_keys("salt", [17, "17"]).tolist() == [int("e5ce2790bee3a", 16) / 16**13] * 2
    )


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([1.0, 2.0], "1.0.*row 0"),
        ([1, True], "True.*row 1"),
        ([1], "2 are needed"),
        ([1, None], "None.*row 1"),
    ],
)
def test_ids_of_other_types_are_refused(ids, words):
    model = UniformMassBinning(2, randomize=True, random_state=0).fit(
        [0.3] * 20, [0, 1] * 10
    )
    with pytest.raises(ValueError, match=f"ids must.*{words}"):
        model.predict_proba([0.3, 0.3], ids=ids)


def test_ids_are_routed_through_a_pipeline():
    scores = np.full(40, 0.3)
    with sklearn.config_context(enable_metadata_routing=True):
        model = UniformMassBinning(
            4, randomize=True, random_state=0
        ).set_predict_proba_request(ids=True)
        pipeline = make_pipeline(TemperatureScaling(), model).fit(
            scores, np.arange(40) % 2
        )
        found = pipeline.predict_proba(scores, ids=range(40))
        np.testing.assert_array_equal(
            found, pipeline.predict_proba(scores[::-1], ids=range(40)[::-1])[::-1]
        )


@pytest.mark.slow
def test_the_promise_holds_for_rows_that_are_served_one_at_a_time():
    # Three scores, four bins: a bin holds rows of two scores, and promises their mean.
    # With one key for all rows each score falls into one bin only, and is off by up to
    # the distance of the scores.
    rng = np.random.default_rng(0)
    frequency = np.array([0.1, 0.5, 0.9])
    scores = rng.choice(frequency, 16_000)
    model = UniformMassBinning(4, randomize=True, random_state=1).fit(
        scores, rng.random(16_000) < scores
    )
    promised = model.certificate().epsilon
    served = rng.choice(frequency, 1_500)

    def largest_error(ids):
        found = np.array(
            [
                model.predict_proba([p], ids=[one])[0, 1]
                for p, one in zip(served, ids, strict=True)
            ]
        )
        return max(
            abs(served[found == value].mean() - value) for value in np.unique(found)
        )

    assert promised < 0.03
    # the error of a mean of some 350 rows
    assert largest_error(range(1_500)) < promised + 0.015
    assert largest_error(["the same"] * 1_500) > 0.1


@pytest.mark.parametrize(
    "scores",
    [np.full(30, 0.3), np.arange(30) // 10 / 4, np.r_[np.zeros(15), np.ones(15)]],
)
def test_ties_without_randomization_ignore_the_order_of_rows(scores):
    labels = np.random.default_rng(1).integers(2, size=30)
    order = np.random.default_rng(2).permutation(30)
    model = UniformMassBinning(4).fit(scores, labels)
    shuffled = UniformMassBinning(4).fit(scores[order], labels[order])
    np.testing.assert_allclose(
        model.predict_proba(scores), shuffled.predict_proba(scores), rtol=1e-12
    )
    assert np.isfinite(model.bin_values_).all()


def test_one_distinct_score_makes_one_bin():
    model = UniformMassBinning(5).fit(np.full(20, 0.4), np.arange(20) % 4 == 0)
    assert model.n_bins_ == 1
    assert model.predict_proba([0.1, 0.4, 0.9])[:, 1].tolist() == [0.25] * 3


@pytest.mark.parametrize(
    ("n", "n_bins", "expected"), [(1, 10, 1), (7, 5, 3), (19, 10, 9), (20, 10, 10)]
)
def test_few_rows_make_fewer_bins(n, n_bins, expected):
    scores = np.linspace(0.1, 0.9, n)
    model = UniformMassBinning(n_bins, classes=[0, 1]).fit(scores, np.arange(n) % 2)
    assert model.n_bins_ == expected
    assert model.bin_counts_.sum() == n + 1 - expected


def test_epsilon_chooses_the_most_bins_that_meet_it():
    scores, labels = distinct_problem(5000)
    model = UniformMassBinning(epsilon=0.1).fit(scores, labels)
    assert model.n_bins_ == max_n_bins(5000, 0.1)
    assert (
        model.certificate().epsilon
        <= 0.1
        < conditional_epsilon(5000, model.n_bins_ + 1)
    )
    with pytest.raises(ValueError, match="epsilon=0.001 cannot be guaranteed"):
        UniformMassBinning(epsilon=0.001).fit(scores, labels)
    with pytest.raises(ValueError, match="n_bins=5 or epsilon=0.1"):
        UniformMassBinning(5, epsilon=0.1).fit(scores, labels)


def test_epsilon_of_one_vs_rest_holds_for_all_classes_together():
    rng = np.random.default_rng(0)
    scores, labels = rng.dirichlet(np.ones(3), size=3000), rng.integers(3, size=3000)
    model = UniformMassBinning(epsilon=0.12, normalize=False).fit(scores, labels)
    certificate = model.certificate()
    assert certificate.epsilon <= 0.12
    # the union bound over 3 classes: each at level 1 - .1 / 3
    assert certificate.epsilon == pytest.approx(
        conditional_epsilon(3000, model.n_bins_[0], confidence_level=1 - 0.1 / 3)
    )
    assert certificate.n_problems == 3
    assert "for all 3 classes together" in str(certificate)


def test_log_odds_give_the_bins_of_their_probabilities():
    scores, labels = distinct_problem(300)
    model = UniformMassBinning(6).fit(scores, labels)
    logit = UniformMassBinning(6, input="logit").fit(
        np.log(scores / (1 - scores)), labels
    )
    np.testing.assert_array_equal(model.bin_values_, logit.bin_values_)
    assert logit.bin_edges_[[0, -1]].tolist() == [-np.inf, np.inf]


# ------------------------------------------------------------------------- certificates


def test_certificates_have_the_theorems_tolerance():
    scores, labels = distinct_problem(2900)
    # formulas: Corollary 1 at (2900, .1, 10) is .0992; Theorem 3 with m = 289:
    # sqrt(log(200) / 578) = .09574
    assert UniformMassBinning(10, keep_boundary=True).fit(
        scores, labels
    ).certificate().epsilon == pytest.approx(0.0992, abs=5e-5)
    model = UniformMassBinning(10).fit(scores, labels)
    assert model.certificate().epsilon == pytest.approx(math.sqrt(math.log(200) / 578))
    marginal = model.certificate(kind="marginal", confidence_level=0.95)
    assert marginal.epsilon == pytest.approx(
        marginal_epsilon(2900, 10, confidence_level=0.95)
    )
    chosen = model.certificate(n_candidates=4)
    assert chosen.epsilon == pytest.approx(
        conditional_epsilon(2900, 10, confidence_level=1 - 0.1 / 4)
    )
    assert (
        model.certificate(interval="clopper_pearson").epsilon
        < model.certificate().epsilon
    )


def test_constructor_level_is_the_certificates_default():
    scores, labels = distinct_problem(500)
    model = UniformMassBinning(5, confidence_level=0.99).fit(scores, labels)
    assert model.certificate().confidence_level == 0.99
    assert model.certificate(0.8).confidence_level == 0.8


@pytest.mark.parametrize(
    "model",
    [
        HistogramBinning(EqualMass(5), sample_split=0.5),
        HistogramBinning(EqualWidth(5)),
        HistogramBinning(FixedEdges([0, 0.3, 1])),
    ],
)
def test_bins_that_do_not_depend_on_their_rows_are_certified(model):
    scores, labels = distinct_problem(2000)
    model = clone(model).fit(scores, labels)
    certificate = model.certificate()
    # Hoeffding for the smallest bin, union over the bins
    expected = math.sqrt(
        math.log(2 * model.n_bins_ / 0.1) / (2 * model.bin_counts_.min())
    )
    assert certificate.epsilon == pytest.approx(expected)
    assert model.certificate(interval="clopper_pearson").epsilon < certificate.epsilon


def test_assumptions_are_printed():
    scores, labels = distinct_problem(500)
    certificate = UniformMassBinning(5).fit(scores, labels).certificate()
    text = str(certificate)
    assert len(text.split()) <= 90
    assert "The guarantee holds for one model that was fitted to other data" in text
    assert f"all {len(certificate.assumptions)} conditions" in text
    assumptions = " ".join(certificate.assumptions)
    assert "one model that was fitted to other samples" in assumptions
    assert "not selected from among several" in assumptions
    three = np.random.default_rng(0).dirichlet(np.ones(3), size=300)
    model = UniformMassBinning(5, multiclass="top_label").fit(three, np.arange(300) % 3)
    assert "of the predicted class" in " ".join(model.certificate().assumptions)


def test_ties_that_forbid_a_certificate_are_announced():
    scores, labels = distinct_problem(100)
    tied, three = (
        scores.round(1),
        np.random.default_rng(0).dirichlet(np.ones(3), size=100).round(1),
    )
    three /= three.sum(axis=1, keepdims=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        UniformMassBinning(5).fit(scores, labels)
        UniformMassBinning(5, randomize=True).fit(tied, labels)
    for rows, y in ((tied, labels), (three, np.arange(100) % 3)):
        with pytest.warns(UserWarning, match="no certificate.*randomize=True"):
            UniformMassBinning(5, normalize=False).fit(rows, y)


def test_refusals_give_the_reason():
    scores, labels = distinct_problem(100)
    weight = np.ones(100)
    three = np.random.default_rng(0).dirichlet(np.ones(3), size=100)
    three_labels = np.arange(100) % 3
    refused = [
        (
            lambda: UniformMassBinning(5).fit(scores, labels, sample_weight=weight),
            "does not support sample_weight",
        ),
        (
            lambda: UniformMassBinning(51).fit(scores, labels).certificate(),
            "100 rows are fewer than two for each",
        ),
        (
            lambda: UniformMassBinning(5).fit(scores.round(1), labels).certificate(),
            "scores are tied.*randomize=True",
        ),
        (
            lambda: UniformMassBinning(5).fit(three, three_labels).certificate(),
            "normalize=False",
        ),
        (
            lambda: HistogramBinning(5).fit(scores, labels).certificate(),
            "edges of EqualMass.*depend on the rows",
        ),
        (
            lambda: HistogramBinning(UniqueScores()).fit(scores, labels).certificate(),
            "edges of UniqueScores",
        ),
        (
            lambda: (
                HistogramBinning(EqualWidth(5))
                .fit(scores, labels, weight)
                .certificate()
            ),
            "sample_weight",
        ),
        (
            lambda: (
                HistogramBinning(EqualWidth(5), smoothing=1)
                .fit(scores, labels)
                .certificate()
            ),
            "smoothing=1",
        ),
        (
            lambda: HistogramBinning(EqualWidth(51)).fit(scores, labels).certificate(),
            "51",
        ),
        (
            lambda: (
                HistogramBinning(EqualWidth(5)).fit(three, three_labels).certificate()
            ),
            "normalize=False",
        ),
    ]
    for call, reason in refused:
        with pytest.raises(ValueError, match=reason):
            call()
    for model in (PlattScaling(), ScalingBinning()):  # no theory, no method
        assert not hasattr(model, "certificate")


@pytest.mark.parametrize(
    ("model", "change", "named"),
    [
        (UniformMassBinning(5), {"randomize": True}, "randomize"),
        (UniformMassBinning(5), {"keep_boundary": True, "n_bins": 4}, "keep_boundary"),
        (
            HistogramBinning(EqualWidth(5), smoothing=1.0),
            {"smoothing": 0.0},
            "smoothing",
        ),
        (HistogramBinning(EqualMass(5)), {"sample_split": 0.5}, "sample_split"),
        (HistogramBinning(EqualMass(5)), {"binning": EqualWidth(5)}, "binning"),
        (
            HistogramBinning(EqualMass(5)),
            {"binning": FixedEdges([0, 0.5, 1])},
            "binning",
        ),
        (HistogramBinning(EqualWidth(5)), {"binning__n_bins": 4}, "binning__n_bins"),
        (
            HistogramBinning(FixedEdges(np.array([0, 0.5, 1]))),
            {"binning__edges": np.array([0, 0.4, 1])},
            "edges",
        ),
    ],
)
def test_no_certificate_for_parameters_that_were_not_fitted(model, change, named):
    scores, y = distinct_problem(200)
    model = clone(model).fit(scores, y).set_params(**change)
    with pytest.raises(
        ValueError,
        match=f"was fitted with .*{named} is now .*. Fit it again.",
    ):
        model.certificate()


def test_parameters_that_are_set_to_what_they_were_change_nothing():
    scores, y = distinct_problem(200)
    rule = lambda n: 4  # noqa: E731
    for binning in (EqualMass(rule), FixedEdges([0, 0.5, 1])):
        model = HistogramBinning(
            binning, sample_split=0.5, random_state=np.random.RandomState(0)
        ).fit(scores, y)
        promised = model.certificate().epsilon
        model.set_params(binning=clone(binning), random_state=1, classes=None)
        assert model.certificate().epsilon == promised
    model = UniformMassBinning(5).fit(scores, y).set_params(confidence_level=0.95)
    assert model.certificate().confidence_level == 0.95
