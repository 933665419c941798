"""Decisions: net benefit, costs, thresholds with a promise, beside plain twins and
where things break.
"""

import json
import pickle
from dataclasses import replace
from importlib.util import find_spec
from math import comb, inf

import numpy as np
import pytest
from _catalog import check_or_fail, refused
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skcalib import PlattScaling, RecalibratedClassifierCV
from skcalib._verdicts import rounded_up
from skcalib.decisions import (
    CertifiedThresholdClassifier,
    ExpectedCostClassifier,
    certified_routing,
    certified_threshold,
    mean_cost,
    net_benefit,
)
from skcalib.decisions._certified import shown_threshold
from skcalib.decisions._search import check_thresholds, most_errors
from skcalib.export import from_dict, to_dict

RNG = np.random.default_rng(0)
SCORES = RNG.random(600)
Y = RNG.random(600) < SCORES
COLUMNS = np.column_stack((1 - SCORES, SCORES))
PROMISES = {
    "error_when_answered": 0.2,
    "answered_and_wrong": 0.1,
    "precision": 0.8,
    "recall": 0.9,
    "false_positive_rate": 0.1,
}


# --- Net benefit ----------------------------------------------------------------------


def plain_net_benefit(y, s, t, weight, treats=None):
    treats = s >= t if treats is None else treats
    gains = [
        w * (1 if one else -t / (1 - t)) * treat
        for one, treat, w in zip(y, treats, weight, strict=True)
    ]
    return sum(gains) / sum(weight)


def test_net_benefit_by_hand():
    y, s = [1, 1, 0, 0, 0], [0.9, 0.3, 0.6, 0.2, 0.1]
    found = net_benefit(y, s, thresholds=[0.25, 0.5])
    assert found.net_benefit == pytest.approx([1 / 3, 0])
    assert found.n_treated.tolist() == [3, 2]
    against_all = net_benefit(y, s, thresholds=[0.25], reference="all")
    assert against_all.net_benefit == pytest.approx([1 / 3 - 0.2])
    standardised = net_benefit(y, s, thresholds=[0.25], standardize=True)
    assert standardised.net_benefit == pytest.approx([(1 / 3) / 0.4])
    # One event of five at t = 0 is worth the event frequency.
    assert net_benefit(y, s, thresholds=[0]).net_benefit == pytest.approx([0.4])


@pytest.mark.parametrize("reference", ["none", "all", "model"])
def test_net_benefit_beside_its_twin(reference):
    weight = RNG.integers(1, 4, 600)
    other = np.clip(SCORES + 0.2 * RNG.standard_normal(600), 0, 1)
    options = {"thresholds": [0.1, 0.37, 0.8], "sample_weight": weight}
    found = net_benefit(
        Y, SCORES, reference=other if reference == "model" else reference, **options
    )
    for t, value in zip(found.thresholds, found.net_benefit, strict=True):
        less = {
            "none": 0,
            "all": plain_net_benefit(Y, SCORES, t, weight, np.ones(600)),
            "model": 0,
        }[reference]
        less = plain_net_benefit(Y, other, t, weight) if reference == "model" else less
        assert value == pytest.approx(
            plain_net_benefit(Y, SCORES, t, weight) - less, abs=1e-12
        )


def test_weights_count_rows_and_order_does_not_matter():
    weight = RNG.integers(1, 4, 600)
    rows = RNG.permutation(np.repeat(np.arange(600), weight))
    weighted = net_benefit(
        Y, SCORES, sample_weight=weight, standardize=True, reference="all"
    )
    repeated = net_benefit(Y[rows], SCORES[rows], standardize=True, reference="all")
    for name, column in weighted.columns().items():
        if name == "reason":
            continue
        np.testing.assert_allclose(
            column, repeated.columns()[name], rtol=1e-10, err_msg=name
        )


def test_scale_of_weights_does_not_matter_where_they_are_of_importance():
    options = {"thresholds": [0.2, 0.6], "weight_type": "importance"}
    weight = RNG.random(600)
    for clusters in (None, np.arange(600) // 3):
        first, second = (
            net_benefit(Y, SCORES, sample_weight=w, clusters=clusters, **options)
            for w in (weight, 7.5 * weight)
        )
        np.testing.assert_allclose(first.low, second.low, rtol=1e-9)
        np.testing.assert_allclose(first.high, second.high, rtol=1e-9)


def test_band_is_wider_than_intervals_and_repeats():
    interval, *bands = (
        net_benefit(Y, SCORES, simultaneous=some, random_state=0, n_resamples=200)
        for some in (False, True, True)
    )
    assert np.all(bands[0].high - bands[0].low > interval.high - interval.low)
    np.testing.assert_array_equal(bands[0].low, bands[1].low)


def test_net_benefit_is_a_murphy_loss_on_another_scale():
    t = np.array([0.1, 0.4, 0.7])
    found = net_benefit(Y, SCORES, thresholds=t)
    cost = [np.mean(t * (~Y & (SCORES >= t)) + (1 - t) * (Y & (SCORES < t))) for t in t]
    assert found.net_benefit == pytest.approx(Y.mean() - np.array(cost) / (1 - t))


def test_single_precision_treats_a_score_on_the_threshold():
    scores = np.round(SCORES, 1).astype(np.float32)
    for t in (0.1, 0.3, 0.7, 0.9):
        assert net_benefit(Y, scores, thresholds=[t]).n_treated[0] == np.sum(
            scores >= t
        )


def test_net_benefit_in_sentences():
    found = net_benefit(Y, SCORES)
    assert len(found) == 99
    if find_spec("pandas"):
        assert list(found.to_frame().columns) == [
            "thresholds",
            "net_benefit",
            "low",
            "high",
            "interventions_avoided",
            "n_treated",
            "reason",
        ]
    first = str(found).split("\n")[0]
    assert first.startswith("Net benefit compared with treating nobody: higher at 0.01")
    assert first.endswith("(90 % confidence at each threshold).")
    assert "<table>" in found._repr_html_()


def test_net_benefit_refuses():
    with refused(ValueError, "thresholds", "below 1", "entry 1 is 1"):
        net_benefit(Y, SCORES, thresholds=[0.5, 1.0])
    with refused(ValueError, "thresholds", "nan"):
        net_benefit(Y, SCORES, thresholds=[np.nan])
    with refused(ValueError, "3 columns", "the column of the event"):
        net_benefit(np.arange(30) % 3, np.full((30, 3), 1 / 3))
    with refused(ValueError, "reference", "'some'"):
        net_benefit(Y, SCORES, reference="some")
    with refused(ValueError, "one cluster"):
        net_benefit(Y, SCORES, clusters=np.zeros(600))
    with refused(ValueError, "no events", "standardised"):
        net_benefit(np.zeros(9), np.linspace(0, 1, 9), labels=[0, 1], standardize=True)
    with refused(ValueError, "lengths must agree"):
        net_benefit(Y, SCORES, reference=SCORES[:5])


# --- Costs ----------------------------------------------------------------------------

COSTS = [[0, 1, 0.2], [9, 0, 0.5]]


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    return train_test_split(X, np.array(["ill", "well"])[y], random_state=0)


def test_the_least_expected_cost_is_taken(cancer):
    X_train, X_test, y_train, _ = cancer
    actions = ["treat", "wait", "ask"]
    costs = np.array([[0, 9, 1], [1, 0, 0.3]])
    model = ExpectedCostClassifier(LogisticRegression(), costs, actions=actions).fit(
        X_train, y_train
    )
    given = (
        model.predict_proba(X_test),
        model.predict(X_test),
        model.expected_cost(X_test),
    )
    for row, action, cost in zip(*given, strict=True):
        expected = [
            sum(p * c for p, c in zip(row, column, strict=True)) for column in costs.T
        ]
        assert action == actions[int(np.argmin(expected))]
        assert cost == pytest.approx(min(expected))
    assert set(model.predict(X_test)) == set(actions)


def test_equal_costs_are_the_classifier(cancer):
    X_train, X_test, y_train, _ = cancer
    plain = LogisticRegression().fit(X_train, y_train)
    model = ExpectedCostClassifier(FrozenEstimator(plain), [[0, 1], [1, 0]]).fit(
        X_train, y_train
    )
    np.testing.assert_array_equal(model.predict(X_test), plain.predict(X_test))
    np.testing.assert_array_equal(
        model.predict_proba(X_test), plain.predict_proba(X_test)
    )


def test_costs_by_row(cancer):
    X_train, X_test, y_train, y_test = cancer

    def costs(X):
        by_row = np.zeros((len(X), 2, 2))
        by_row[:, 0, 1], by_row[:, 1, 0] = 1 + np.abs(X[:, 0]), 1
        return by_row

    model = ExpectedCostClassifier(LogisticRegression(), costs).fit(X_train, y_train)
    proba = model.predict_proba(X_test)
    treats = proba[:, 1] < proba[:, 0] * (1 + np.abs(X_test[:, 0]))
    np.testing.assert_array_equal(
        model.predict(X_test), np.where(treats, "ill", "well")
    )
    taken = model.predict(X_test)
    by_hand = np.mean(
        np.where(y_test == "ill", 1 + np.abs(X_test[:, 0]), 1) * (y_test != taken)
    )
    assert mean_cost(y_test, taken, costs(X_test)) == pytest.approx(by_hand)


def test_costs_in_a_search_and_a_pipeline(cancer):
    X_train, X_test, y_train, y_test = cancer
    costs = [[0, 9], [1, 0]]
    scorer = make_scorer(mean_cost, greater_is_better=False, cost_matrix=costs)
    model = make_pipeline(
        StandardScaler(), ExpectedCostClassifier(LogisticRegression(), costs)
    )
    grid = {"expectedcostclassifier__estimator__C": [0.01, 1]}
    search = GridSearchCV(model, grid, scoring=scorer).fit(X_train, y_train)
    plain = LogisticRegression().fit(X_train, y_train)
    assert mean_cost(y_test, search.predict(X_test), costs) < mean_cost(
        y_test, plain.predict(X_test), costs
    )
    assert cross_val_score(model, X_train, y_train, scoring=scorer).max() <= 0


def test_weights_reach_the_classifier(cancer):
    X_train, _, y_train, _ = cancer
    weight = RNG.random(len(y_train))
    plain = LogisticRegression().fit(X_train, y_train, sample_weight=weight)
    model = ExpectedCostClassifier(LogisticRegression(), [[0, 9], [1, 0]]).fit(
        X_train, y_train, sample_weight=weight
    )
    np.testing.assert_allclose(
        model.predict_proba(X_train), plain.predict_proba(X_train)
    )


def test_weights_are_routed(cancer):
    import sklearn

    X_train, _, y_train, _ = cancer
    weight = RNG.random(len(y_train))
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        by_cost = ExpectedCostClassifier(inner, [[0, 9], [1, 0]]).fit(
            X_train, y_train, sample_weight=weight
        )
        promised = CertifiedThresholdClassifier(inner, target=0.1, random_state=0)
        promised.fit(X_train, y_train, sample_weight=weight)
    plain = LogisticRegression().fit(X_train, y_train, sample_weight=weight)
    np.testing.assert_allclose(
        by_cost.predict_proba(X_train), plain.predict_proba(X_train)
    )
    train, _ = train_test_split(np.arange(len(y_train)), test_size=0.5, random_state=0)
    plain.fit(X_train[train], y_train[train], sample_weight=weight[train])
    np.testing.assert_allclose(
        promised.predict_proba(X_train), plain.predict_proba(X_train)
    )


def test_mean_cost_by_hand():
    assert mean_cost([0, 0, 1, 1], [0, 1, 0, 1], [[0, 1], [9, 0]]) == 10 / 4
    assert (
        mean_cost(
            [0, 0, 1, 1], [0, 1, 0, 1], [[0, 1], [9, 0]], sample_weight=[1, 1, 2, 0]
        )
        == 19 / 4
    )
    taken = ["ask", "no", "yes", "no"]
    assert mean_cost(
        [0, 0, 1, 1], taken, COSTS, actions=["no", "yes", "ask"]
    ) == pytest.approx((0.2 + 0 + 0 + 9) / 4)


def test_costs_refuse(cancer):
    X_train, _, y_train, _ = cancer
    for costs, *words in (
        ([[0, 1, 2], [1, 0, 2]], "(2, 2)", "(2, 3)", "actions="),
        ([[0, 1, 2], [1, 0, 2], [1, 2, 3]], "(2, 2)", "'ill', 'well'"),
        ([[0, np.nan], [1, 0]], "finite", "(0, 1)"),
        ([["a", 1], [1, 0]], "numbers"),
        ([1, 2], "(2, 2)", "(2,)"),
    ):
        with refused(ValueError, "cost_matrix", *words):
            ExpectedCostClassifier(LogisticRegression(), costs).fit(X_train, y_train)
    with refused(ValueError, "actions", "distinct"):
        ExpectedCostClassifier(
            LogisticRegression(), [[0, 1], [1, 0]], actions=["a", "a"]
        ).fit(X_train, y_train)
    with refused(ValueError, "Only binary", "3 classes"):
        ExpectedCostClassifier(LogisticRegression(), [[0, 1], [1, 0]]).fit(
            X_train, np.arange(len(X_train)) % 3
        )
    with refused(ValueError, "labels="):
        mean_cost([0, 0], [0, 1], [[0, 1], [9, 0]])
    with refused(ValueError, "'maybe' in row 1", "'no', 'yes'"):
        mean_cost([0, 1], ["no", "maybe"], [[0, 1], [9, 0]], actions=["no", "yes"])
    with refused(TypeError, "predict_proba"):
        ExpectedCostClassifier(StandardScaler(), [[0, 1], [9, 0]]).fit(X_train, y_train)


# --- Certified thresholds: the search -------------------------------------------------


def binomial(n, p, most):
    return sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(most + 1))


def plain_threshold(scores, wrong, target, level, start):
    """Walk down the thresholds from `start` while each passes; return the strictest
    that accepts the last rows.
    """
    chosen = None
    for t in [start, *check_thresholds(None)[::-1]]:
        if t > start:
            continue
        accepted = scores >= t
        n, errors = int(accepted.sum()), int(wrong[accepted].sum())
        if not (errors <= n * target - 1 and binomial(n, target, errors) <= level):
            break
        if chosen is None or n > (scores >= chosen).sum():
            chosen = t
    return chosen


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("digits", [1, 9])
def test_strict_search_beside_its_twin(seed, digits):
    rng = np.random.default_rng(seed)
    scores = rng.random(250).round(digits)
    event = rng.random(250) < scores**0.7
    for start in (0.97, 0.9):
        found = certified_threshold(
            event, scores, promise="precision", target=0.7, start=start
        )
        plain = plain_threshold(scores, ~event, 0.3, 0.1, start)
        assert found.threshold == (inf if plain is None else plain)
        assert found.found == (plain is not None)


def test_grid_is_fixed_and_fine_near_the_ends():
    grid = check_thresholds(None)
    assert np.all(np.diff(grid) > 0)
    assert grid[0] == 0
    assert grid[-1] == 1
    assert {0.1, 0.5, 0.873, 0.95, 0.9987, 1 - 1e-9, 1e-9, 0.0031} <= set(grid.tolist())
    inner = grid[1:-1]
    assert np.diff(np.log(inner / (1 - inner))).max() < 0.11
    assert 1 - grid[::-1] == pytest.approx(grid, abs=1e-15)


@pytest.mark.parametrize("target", [0.001, 0.01, 0.1, 0.5, 0.95])
def test_most_errors_beside_its_twin(target):
    from scipy.stats import binom

    n = np.unique(np.geomspace(1, 1e6, 300).astype(int))
    for level in (0.0025, 0.025, 0.075, 0.2):
        most = most_errors(n, target, level)
        assert np.all(binom.cdf(most, n, target) <= level)
        assert np.all(binom.cdf(most + 1, n, target) > level)


def test_fewest_rows():
    """At target .05 and level .1: 45 rows without an error, 77 with one, 105 with two,
    184 with five.
    """
    for n, errors in ((45, 0), (77, 1), (105, 2), (184, 5)):
        for rows, passes in ((n, True), (n - 1, False)):
            wrong = np.arange(rows) < errors
            found = certified_threshold(~wrong, np.full(rows, 0.9), promise="precision", target=0.95, start=0.9,  # noqa: E501
                                        labels=[False, True])  # fmt: skip
            assert found.found == passes


def test_rejects_only_where_the_statement_given_the_scores_is_exact():
    """With a level of .6 the binomial alone accepts e = n alpha; Hoeffding's bound
    holds up to n alpha - 1.
    """
    wrong = np.arange(20) < 2
    options = {
        "promise": "precision",
        "target": 0.9,
        "start": 0.5,
        "confidence_level": 0.3,
    }
    assert binomial(20, 0.1, 2) < 0.7
    assert not certified_threshold(~wrong, np.full(20, 0.5), **options).found
    assert certified_threshold(np.arange(20) >= 1, np.full(20, 0.5), **options).found


def test_labels_have_no_say_in_the_start():
    from skcalib.decisions._search import AcceptedSets, Guarantee, guided_starts

    grid = check_thresholds(None)
    starts = set()
    for seed in range(5):
        wrong = np.random.default_rng(seed).random(600) < 0.3
        sets = AcceptedSets.from_rows(SCORES, wrong, grid)
        starts.add(tuple(guided_starts([Guarantee("precision", 0.1)], sets, 600, 0.1)))
    assert len(starts) == 1


# --- Certified thresholds: the results ------------------------------------------------


@pytest.mark.parametrize("promise", PROMISES)
def test_what_is_said_is_what_was_seen(promise):
    found = certified_threshold(Y, COLUMNS, promise=promise, target=PROMISES[promise])
    accepted = found.accepts(SCORES)
    predicted = SCORES > 0.5
    wrong = {
        "recall": Y & ~accepted,
        "precision": ~Y & accepted,
        "false_positive_rate": ~Y & accepted,
    }.get(promise, (predicted != Y) & accepted)
    assert found.found
    assert (found.n_samples, found.n_accepted, found.n_wrong) == (
        600,
        accepted.sum(),
        wrong.sum(),
    )
    assert found.accepted == accepted.mean()
    assert found.pvalue <= 0.1
    np.testing.assert_array_equal(
        found.accepts(np.column_stack((1 - SCORES, SCORES))), accepted
    )
    said = str(found)
    assert shown_threshold(found.threshold) in said
    assert f"{found.n_accepted:,}" in said
    assert len(said.split()) <= 90
    assert "exact" in " ".join(found.assumptions)
    if find_spec("pandas"):
        assert found.to_frame().shape == (1, 14)
    assert said.split("\n")[0] in found._repr_html_()


def test_recall_by_hand():
    """50 events, recall .9: P(Bin(50, .1) <= 1) = .034, so that the second smallest
    score of an event is taken.
    """
    scores = np.concatenate((np.linspace(0.3, 0.95, 50), np.linspace(0, 0.6, 70)))
    y = np.arange(120) < 50
    found = certified_threshold(y, scores, promise="recall", target=0.9)
    assert found.threshold == np.sort(scores[:50])[1]
    assert found.pvalue == pytest.approx(binomial(50, 0.1, 1))
    assert found.n_wrong == 1
    # 21 events, 22 are needed
    few = certified_threshold(y[29:], scores[29:], promise="recall", target=0.9)
    assert not few.found
    assert few.n_needed == int(np.ceil(np.log(0.1) / np.log(0.9) * 91 / 21))


def test_false_positive_rate_is_recall_from_above():
    found = certified_threshold(Y, SCORES, promise="false_positive_rate", target=0.1)
    others = np.sort(SCORES[~Y])
    most = max(k for k in range(100) if binomial(len(others), 0.1, k) <= 0.1)
    assert found.n_wrong == most
    assert others[-most - 1] < found.threshold <= others[-most]
    tied = certified_threshold(
        Y, np.ones(600), promise="false_positive_rate", target=0.1
    )
    assert not tied.found
    assert tied.pvalue == 1


def test_classes_and_labels():
    y, proba = load_digits(return_X_y=True)[1], None
    proba = np.random.default_rng(0).dirichlet(np.full(10, 0.2), len(y))
    y = np.where(np.random.default_rng(1).random(len(y)) < 0.9, proba.argmax(axis=1), y)
    found = certified_threshold(y, proba, promise="error_when_answered", target=0.15)
    named = certified_threshold(
        np.array(list("abcdefghij"))[y],
        proba,
        promise="error_when_answered",
        target=0.15,
    )
    assert found == named
    wrong = proba.argmax(axis=1) != y
    assert found.n_wrong == (wrong & found.accepts(proba)).sum()
    with refused(ValueError, "one event", "10 columns"):
        certified_threshold(y, proba, promise="recall", target=0.9)


def test_the_event_may_be_the_first_column():
    proba = np.column_stack((SCORES, 1 - SCORES))
    y = np.where(Y, "a", "b")
    found = certified_threshold(
        y, proba, promise="precision", target=0.8, pos_label="a"
    )
    assert found.column == 0
    assert (
        found.threshold
        == certified_threshold(Y, SCORES, promise="precision", target=0.8).threshold
    )
    np.testing.assert_array_equal(found.accepts(proba), SCORES >= found.threshold)


def test_columns_of_a_table_are_found_by_name():
    pd = pytest.importorskip("pandas")
    y = np.where(Y, "ill", "healthy")  # sorted: healthy, ill
    proba = pd.DataFrame({"healthy": 1 - SCORES, "ill": SCORES})
    for event in ("healthy", "ill"):
        found = certified_threshold(
            y, proba, promise="precision", target=0.7, pos_label=event
        )
        assert found.found
        accepted = proba[event].to_numpy() >= found.threshold
        for columns in (["healthy", "ill"], ["ill", "healthy"]):
            for prefix in ("", "p_"):
                table = proba[columns].add_prefix(prefix)
                np.testing.assert_array_equal(found.accepts(table), accepted)
        np.testing.assert_array_equal(found.accepts(proba.to_numpy()), accepted)
        restored = from_dict(json.loads(json.dumps(to_dict(found))))
        np.testing.assert_array_equal(
            restored.accepts(proba[["ill", "healthy"]]), accepted
        )
        with refused(ValueError, "'dead' is not one of them"):
            found.accepts(proba.rename(columns={"healthy": "dead"}))


@pytest.mark.parametrize("classes", [("b", "a"), ("a",), ("a", "a"), ("a", "b", "c")])
def test_classes_of_a_certificate_are_two_sorted_labels(classes):
    found = certified_threshold(Y, SCORES, promise="precision", target=0.7)
    assert found.classes == (0, 1) or found.classes == (False, True)
    with refused(ValueError, "classes"):
        replace(found, classes=classes)


def test_single_precision_and_ties_on_the_grid():
    scores = RNG.integers(0, 11, 900) / 10
    y = RNG.random(900) < scores
    for dtype in (np.float64, np.float32):
        cast = scores.astype(dtype)
        found = certified_threshold(y, cast, promise="precision", target=0.75)
        assert found.threshold in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
        assert (
            found.n_accepted
            == np.sum(cast >= found.threshold)
            == found.accepts(cast).sum()
        )


def test_feeds_a_fixed_threshold(cancer):
    X_train, X_test, y_train, y_test = cancer
    X_fit, X_cal, y_fit, y_cal = train_test_split(
        X_train, y_train, test_size=0.5, random_state=0
    )
    model = LogisticRegression().fit(X_fit, y_fit)
    found = certified_threshold(
        y_cal, model.predict_proba(X_cal), promise="recall", target=0.9, pos_label="ill"
    )
    options = {
        "threshold": found.threshold,
        "pos_label": "ill",
        "response_method": "predict_proba",
    }
    fixed = FixedThresholdClassifier(FrozenEstimator(model), **options).fit(
        X_cal, y_cal
    )
    proba = model.predict_proba(X_test)
    np.testing.assert_array_equal(fixed.predict(X_test) == "ill", found.accepts(proba))


def test_independent_scores_make_it_strict():
    other = np.random.default_rng(5).random(500)
    found = certified_threshold(Y, SCORES, promise="precision", target=0.8, start=other)
    assert found.found
    assert "exact for any number of samples" in found.assumptions[-1]
    assert (
        "simulated"
        in certified_threshold(Y, SCORES, promise="precision", target=0.8).assumptions[
            -1
        ]
    )


def test_nothing_found_says_what_is_needed():
    found = certified_threshold(
        Y[:40], COLUMNS[:40], promise="error_when_answered", target=0.1
    )
    assert (found.found, found.threshold, found.n_accepted) == (False, inf, 0)
    assert found.n_needed > 40
    assert f"About {rounded_up(found.n_needed)} calibration samples are needed" in str(
        found
    )
    assert not found.accepts([0.0, 1.0]).any()
    noise = RNG.random(600) < 0.5
    hopeless = certified_threshold(
        noise, COLUMNS, promise="error_when_answered", target=0.1
    )
    assert hopeless.n_needed is None
    assert "a better model" in str(hopeless)


def test_needed_rows_are_about_right():
    found = certified_threshold(
        Y[:60], COLUMNS[:60], promise="error_when_answered", target=0.1
    )
    rng = np.random.default_rng(3)
    scores = rng.random(2 * found.n_needed)
    y = rng.random(len(scores)) < scores
    assert certified_threshold(
        y,
        np.column_stack((1 - scores, scores)),
        promise="error_when_answered",
        target=0.1,
    ).found


def test_thresholds_refuse():
    with refused(ValueError, "promise", "'harm'"):
        certified_threshold(Y, SCORES, promise="harm", target=0.1)
    with refused(ValueError, "target", "above 0"):
        certified_threshold(Y, SCORES, promise="recall", target=0)
    with refused(ValueError, "recall", "omit thresholds and start"):
        certified_threshold(Y, SCORES, promise="recall", target=0.9, start=0.5)
    with refused(ValueError, "strictest", "omit start"):
        certified_threshold(
            Y, COLUMNS, promise="answered_and_wrong", target=0.1, start=0.5
        )
    with refused(ValueError, "start", "at most 1"):
        certified_threshold(Y, SCORES, promise="precision", target=0.9, start=5)
    with refused(ValueError, "thresholds", "entry 1"):
        certified_threshold(
            Y, SCORES, promise="precision", target=0.9, thresholds=[0.5, -1]
        )
    with refused(ValueError, "no events"):
        certified_threshold(
            np.zeros(9),
            np.linspace(0, 1, 9),
            promise="recall",
            target=0.9,
            labels=[0, 1],
        )
    with pytest.raises(TypeError, match="sample_weight"):
        certified_threshold(
            Y, SCORES, promise="precision", target=0.9, sample_weight=np.ones(600)
        )
    with refused(ValueError, "3 columns", "one score per row"):
        certified_threshold(Y, SCORES, promise="precision", target=0.5).accepts(
            np.full((4, 3), 1 / 3)
        )


def _risk_above(promise, target, chance, wrong, accepted):
    """Return by how much new rows of these chances of an event, and of an error, break
    a promise.
    """
    n_accepted = max(accepted.sum(), 1)
    return {
        "error_when_answered": wrong[accepted].sum() / n_accepted - target,
        "answered_and_wrong": (
            wrong[accepted].mean() * accepted.mean() - target if accepted.any() else 0
        ),
        "precision": (1 - chance)[accepted].sum() / n_accepted - (1 - target),
        "recall": target - chance[accepted].sum() / chance.sum(),
        "false_positive_rate": (
            (1 - chance)[accepted].sum() / (1 - chance).sum() - target
        ),
    }[promise]


@pytest.mark.slow
@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_is_kept(promise):
    """Of 120 samples of a model that is too sure at most .1 + 3 standard errors break
    the promise on new rows.
    """
    rng = np.random.default_rng(1)
    new = rng.random(20_000)
    chance = np.clip(0.5 + 0.9 * (new - 0.5), 0, 1)
    target, broken = PROMISES[promise], 0
    for _ in range(120):
        scores = rng.random(250)
        y = rng.random(250) < 0.5 + 0.9 * (scores - 0.5)
        accepted = certified_threshold(
            y,
            np.column_stack((1 - scores, scores)),
            promise=promise,
            target=target,
        ).accepts(new)
        broken += (
            _risk_above(
                promise,
                target,
                chance,
                np.where(new > 0.5, 1 - chance, chance),
                accepted,
            )
            > 1e-9
        )
    assert broken <= 120 * 0.1 + 3 * np.sqrt(120 * 0.09)


# --- Routing --------------------------------------------------------------------------


def test_score_pvalue_beside_a_search_of_the_likelihood():
    from scipy.optimize import minimize_scalar

    from skcalib.decisions._routing import score_statistic

    n, lost, gained, limit = 400, 9, 6, 0.03

    def loss(q):  # of gains; losses have q + limit
        return -(
            gained * np.log(q)
            + lost * np.log(q + limit)
            + (n - lost - gained) * np.log(1 - 2 * q - limit)
        )

    q = minimize_scalar(
        loss, bounds=(1e-9, 0.4), method="bounded", options={"xatol": 1e-12}
    ).x
    z = (lost - gained - n * limit) / np.sqrt(n * (2 * q + limit - limit**2))
    from scipy.stats import norm

    assert score_statistic(lost, gained, n, limit) == pytest.approx(z, rel=1e-5)
    assert norm.cdf(z) < 0.2
    # Nothing lost or gained: the variance is that of the hypothesis alone.
    assert score_statistic(0, 0, n, limit) == pytest.approx(
        -np.sqrt(n * limit / (1 - limit))
    )


def test_routing():
    rng = np.random.default_rng(0)
    confidence = rng.random(3000)
    small, large = rng.random(3000) < 0.5 + confidence / 2, rng.random(3000) < 0.9
    found = certified_routing(small, large, confidence, max_loss=0.02)
    accepted = found.accepts(confidence)
    assert 0.2 < found.accepted < 0.8
    assert (
        found.n_wrong
        == (large & ~small & accepted).sum() - (small & ~large & accepted).sum()
    )
    routed = np.where(accepted, small, large)
    assert routed.mean() > large.mean() - 0.02
    assert "exact for any number of samples" in found.assumptions[-1]
    with refused(ValueError, "correct_large", "booleans"):
        certified_routing(small, confidence, confidence, max_loss=0.02)
    with refused(ValueError, "correct_small", "lengths"):
        certified_routing(small[:3], large, confidence, max_loss=0.02)
    with refused(ValueError, "confidence", "[0, 1]"):
        certified_routing(small, large, confidence - 5, max_loss=0.02)
    assert not certified_routing(
        small[:30], large[:30], confidence[:30], max_loss=0.02
    ).found


# --- The classifier -------------------------------------------------------------------


def test_abstains_below_the_threshold(cancer):
    X_train, X_test, y_train, y_test = cancer
    model = CertifiedThresholdClassifier(
        LogisticRegression(), target=0.05, random_state=0
    ).fit(X_train, y_train)
    y_pred, proba = model.predict(X_test), model.predict_proba(X_test)
    sure = proba.max(axis=1) >= model.threshold_
    np.testing.assert_array_equal(
        y_pred[sure], model.classes_[proba.argmax(axis=1)][sure]
    )
    assert set(y_pred[~sure]) <= {"abstain"}
    assert np.mean(y_pred[sure] != y_test[sure]) <= 0.05
    assert model.certificate_.n_samples == 213
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict(X_test), y_pred
    )
    assert clone(model).get_params()["target"] == 0.05


def test_labels_for_abstaining(cancer):
    X_train, X_test, y_train, _ = cancer
    codes = (y_train == "well").astype(int)
    frozen = LogisticRegression().fit(X_train[:200], codes[:200])
    rest, rest_y = X_train[200:], codes[200:]

    def fitted(y=rest_y, estimator=None, **options):
        estimator = FrozenEstimator(frozen) if estimator is None else estimator
        return CertifiedThresholdClassifier(estimator, target=0.03, **options).fit(
            rest, y
        )

    assert set(fitted().predict(X_test)) == {-1, 0, 1}
    assert set(fitted(abstain_label="?").predict(X_test)) == {"?", 0, 1}
    assert fitted().certificate_.n_samples == len(rest)
    with refused(ValueError, "abstain_label", "False, True"):
        fitted(rest_y == 1, LogisticRegression())
    with refused(ValueError, "abstain_label", "-1, 1"):
        fitted(2 * rest_y - 1, LogisticRegression())
    with refused(ValueError, "abstain_label", "found 1"):
        fitted(abstain_label=1)


@pytest.mark.parametrize(
    ("promise", "target"),
    [("precision", 0.9), ("recall", 0.9), ("false_positive_rate", 0.1)],
)
def test_promises_about_the_event(cancer, promise, target):
    X_train, X_test, y_train, _ = cancer
    model = CertifiedThresholdClassifier(
        LogisticRegression(), promise=promise, target=target, random_state=0
    )
    y_pred = model.fit(X_train, y_train).predict(X_test)
    assert set(y_pred) == {"ill", "well"}
    np.testing.assert_array_equal(
        y_pred == "well", model.predict_proba(X_test)[:, 1] >= model.threshold_
    )


def test_nothing_found_warns_and_abstains(cancer):
    X_train, X_test, y_train, _ = cancer
    model = CertifiedThresholdClassifier(
        LogisticRegression(), target=0.01, random_state=0
    )
    with pytest.warns(
        UserWarning,
        match=r"No threshold was found: with these 50 .*samples are needed",
    ):
        model.fit(X_train[:100], y_train[:100])
    assert set(model.predict(X_test)) == {"abstain"}


@pytest.mark.slow
def test_lives_in_pipelines_and_searches(cancer):
    pandas = pytest.importorskip("pandas")
    X_train, X_test, y_train, y_test = cancer
    inner = CertifiedThresholdClassifier(
        RecalibratedClassifierCV(LogisticRegression(), PlattScaling()),
        target=0.1,
        random_state=0,
    )
    model = make_pipeline(StandardScaler(), inner)
    assert cross_val_score(model, X_train, y_train, cv=3).mean() > 0.8
    grid = {"certifiedthresholdclassifier__target": [0.1, 0.2]}
    search = GridSearchCV(model, grid, cv=3).fit(X_train, y_train)
    assert search.score(X_test, y_test) > 0.8
    frame = pandas.DataFrame(X_train, columns=[f"x{i}" for i in range(30)])
    inner.fit(frame, y_train)
    assert inner.feature_names_in_.tolist() == list(frame.columns)


def test_classifier_refuses(cancer):
    X_train, _, y_train, _ = cancer
    with refused(ValueError, "promise", "'routing'"):
        CertifiedThresholdClassifier(LogisticRegression(), promise="routing").fit(
            X_train, y_train
        )
    with refused(ValueError, "promise='recall'", "Only binary"):
        CertifiedThresholdClassifier(LogisticRegression(), promise="recall").fit(
            X_train, np.arange(len(X_train)) % 3
        )
    rare = np.arange(len(X_train)) == 0
    with refused(ValueError, "only one class", "FrozenEstimator"):
        for seed in range(9):
            CertifiedThresholdClassifier(
                LogisticRegression(),
                promise="precision",
                target=0.1,
                random_state=seed,
                test_size=0.9,
            ).fit(X_train, rare)


# --- scikit-learn's checks ------------------------------------------------------------

_ABSTAINS = (
    "predicts a label that is no class where the promise does not hold: abstaining is"
    " no class"
)
# check -> why it cannot pass.
EXPECTED = {
    "check_classifiers_train": _ABSTAINS,
}


@parametrize_with_checks(
    [ExpectedCostClassifier(LogisticRegression(), [[0, 1], [1, 0]])]
)
def test_checks_of_costs(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:No threshold was found")
@parametrize_with_checks(
    [
        CertifiedThresholdClassifier(
            LogisticRegression(), abstain_label=-9, random_state=0
        )
    ]
)
def test_checks_of_promises(estimator, check):
    check_or_fail(check, estimator, EXPECTED)


def test_calibrated_probabilities_cost_least():
    costs, rng = [[0, 1], [5, 0]], np.random.default_rng(0)
    scores = rng.random(4000)
    y = (rng.random(4000) < scores**2).astype(int)
    by_score = (scores >= 1 / 6).astype(int)
    by_probability = (scores**2 >= 1 / 6).astype(int)
    assert mean_cost(y, by_probability, costs) < mean_cost(y, by_score, costs)


@pytest.mark.slow
def test_the_guide_says_what_the_library_does():
    pytest.importorskip("matplotlib")
    import re
    from pathlib import Path

    text = (Path(__file__).parents[1] / "doc" / "which_threshold.md").read_text("utf-8")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(block, names)
    for name in ("by_cost", "by_argmax", "by_everybody"):
        shown = re.search(rf"^{name} = .*# (\d*\.\d+)$", text, flags=re.M).group(1)
        assert names[name] == pytest.approx(float(shown), abs=6e-3)
    assert names["found"].net_benefit[0] == pytest.approx(0.308, abs=5e-4)
    against_all = names["against_all"]
    shown = against_all.net_benefit[0], against_all.low[0], against_all.high[0]
    assert shown == pytest.approx((0.025, 0.010, 0.033), abs=1e-3)
    shown = re.search(r"```text\n(.*?)```", text, re.S)[1]
    assert str(names["certified"]).split() == shown.split()
    assert names["certified"].found
    assert names["careful"].certificate_.found
    assert names["routing"].found
    np.testing.assert_array_equal(
        names["fixed"].predict(names["X_test"]),
        names["certified"].accepts(names["y_proba"]),
    )


def test_json_keeps_a_certified_threshold():
    import json

    from skcalib.export import from_dict, to_dict

    for y, columns in ((Y, COLUMNS), (Y[:40], COLUMNS[:40])):
        for promise, target in (
            *PROMISES.items(),
            (["precision", "recall"], [0.7, 0.6]),
        ):
            found = certified_threshold(y, columns, promise=promise, target=target)
            text = json.dumps(to_dict(found), allow_nan=False)
            read = from_dict(json.loads(text))
            assert read == found
            assert str(read) == str(found)
            np.testing.assert_array_equal(read.accepts(SCORES), found.accepts(SCORES))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("threshold", -0.5),
        ("threshold", "0.5"),
        ("promise", "harm"),
        ("reason", "weather"),
        ("n_clusters", 0),
        ("target", 1.5),
        ("confidence_level", 90),
        ("n_samples", 0),
        ("n_accepted", 601),
        ("n_wrong", 0.5),
        ("pvalue", 2),
        ("assumptions", "none"),
        ("n_needed", -1),
        ("column", 2),
        ("more", 1),
    ],
)
def test_json_refuses_what_no_certified_threshold_is(field, value):
    from skcalib.export import from_dict, to_dict

    document = to_dict(certified_threshold(Y, SCORES, promise="precision", target=0.8))
    with refused(ValueError, "The document is not valid", field):
        from_dict({**document, "parameters": {**document["parameters"], field: value}})
    if field != "more":
        missing = {
            name: one for name, one in document["parameters"].items() if name != field
        }
        with refused(ValueError, "The document is not valid", field):
            from_dict({**document, "parameters": missing})
