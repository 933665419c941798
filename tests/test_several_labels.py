"""Several labels per row (multilabel): each number is that of the labels one by one,
what may also be classes is refused, and drawn labels depend on each other as those of
the data do.
"""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import ndtr
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB

from skcalib._errors.error import ClassPowers
from skcalib._inference.label_dependence import drawn_labels, label_copula
from skcalib._input.scored_labels import check_scored_labels
from skcalib.binning import EqualMass, EqualWidth, PoolAdjacentViolators
from skcalib.evaluation import calibration_summary
from skcalib.metrics import (
    BinStatistics,
    brier_decomposition,
    calibration_error,
    calibration_error_interval,
    calibration_slope_intercept,
    calibration_test,
    expected_calibration_error,
    get_scorer,
    groupwise_calibration_error,
    kernel_calibration_error,
    maximum_calibration_error,
    reliability_curve,
)
from skcalib.metrics._registry import METRICS

NAMES = ["red", "round", "new"]
QUICK = {"n_resamples": 99, "random_state": 0}


def _tags(n=240, n_labels=3, correlation=0.5, seed=0):
    """Return calibrated labels (n, L) of a row that depend on each other, and their
    probabilities.
    """
    rng = np.random.default_rng(seed)
    y_proba = rng.beta(2, 4, size=(n, n_labels))
    deviate = np.sqrt(correlation) * rng.normal(size=(n, 1))
    deviate = deviate + np.sqrt(1 - correlation) * rng.normal(size=(n, n_labels))
    return (ndtr(deviate) < y_proba).astype(int), y_proba


def _one_by_one(metric, y_true, y_proba, **options):
    return np.array(
        [metric(y_true[:, k], y_proba[:, k], **options) for k in range(y_true.shape[1])]
    )


# The numbers
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", sorted(set(METRICS) - {"kernel_calibration_error", "maximum_error"})
)
def test_an_error_is_that_of_the_labels_one_by_one(name):
    y_true, y_proba = _tags()
    row = METRICS[name]
    options, single = {}, {}
    if name == "groupwise_calibration_error":
        options = single = {"groups": np.arange(240) % 2}
    if name == "calibration_error":
        single = {"squared": True}
    found = row.function(y_true, y_proba, **options)
    errors = _one_by_one(row.function, y_true, y_proba, **single)
    expected = errors.mean()
    if name == "calibration_error":
        expected = np.sqrt(max(expected, 0))
    elif name == "maximum_calibration_error":
        expected = errors.max()
    elif name == "two_bin_calibration_error":
        expected = errors.sum()
    elif name == "groupwise_calibration_error":
        # the larger of the means over labels, not the mean of the larger ones
        expected = max(
            _one_by_one(
                expected_calibration_error, y_true[group::2], y_proba[group::2]
            ).mean()
            for group in (0, 1)
        )
    assert found == pytest.approx(expected, abs=1e-12)


def test_a_curve_a_decomposition_and_sums_are_those_of_the_labels():
    y_true, y_proba = _tags()
    curves = reliability_curve(y_true, y_proba, binning=4)
    sums = BinStatistics.from_predictions(
        y_true,
        y_proba,
        np.linspace(0, 1, 5),
        multiclass="marginal",
        labels=["red", "round", "new"],
    )
    assert list(sums) == NAMES
    for k, curve in enumerate(curves):
        alone = reliability_curve(y_true[:, k], y_proba[:, k], binning=4)
        np.testing.assert_array_equal(curve.event_frequency, alone.event_frequency)
        alone = reliability_curve(y_true[:, k], y_proba[:, k], binning=EqualWidth(4))
        np.testing.assert_allclose(sums[NAMES[k]].weighted_label, alone.weighted_label)
    expected = np.mean(
        [brier_decomposition(y_true[:, k], y_proba[:, k]) for k in range(3)], axis=0
    )
    np.testing.assert_allclose(brier_decomposition(y_true, y_proba), expected)


def test_weights_repeat_rows_and_names_weigh_labels():
    y_true, y_proba = _tags()
    weight = np.random.default_rng(1).integers(0, 3, 240)
    found = expected_calibration_error(y_true, y_proba, sample_weight=weight)
    rows = np.repeat(np.arange(240), weight)
    repeated = expected_calibration_error(y_true[rows], y_proba[rows])
    assert found == pytest.approx(repeated, abs=1e-12)
    # two names out of the order of the alphabet, which arrays do not follow here
    errors = _one_by_one(expected_calibration_error, y_true, y_proba)[:2]
    for weights in ({"b": 0.75, "a": 0.25}, [0.75, 0.25]):
        found = expected_calibration_error(
            y_true[:, :2], y_proba[:, :2], labels=["b", "a"], class_weight=weights
        )
        assert found == pytest.approx(errors @ [0.75, 0.25], abs=1e-12)


@pytest.mark.parametrize("kind", ["list", "sparse", "bool", "nested", "float32"])
def test_labels_and_probabilities_of_any_kind(kind):
    y_true, y_proba = _tags()
    expected = calibration_error(y_true, y_proba)
    if kind == "list":
        y_proba = [np.column_stack((1 - s, s)) for s in y_proba.T]
    elif kind == "sparse":
        y_true = csr_array(y_true)
    elif kind == "bool":
        y_true = y_true.astype(bool)
    elif kind == "nested":
        y_true, y_proba = y_true.tolist(), y_proba.tolist()
    else:
        y_true = y_true.astype(np.float32)
    assert calibration_error(y_true, y_proba) == expected


def test_names_are_those_of_columns():
    pd = pytest.importorskip("pandas")
    y_true, y_proba = _tags()
    y_frame = pd.DataFrame(y_true, columns=NAMES)
    frame = pd.DataFrame(y_proba, columns=NAMES)
    data = check_scored_labels(y_frame, y_proba, multilabel=True)
    assert data.classes.tolist() == NAMES
    data = check_scored_labels(y_true, frame, multilabel=True)
    assert data.classes.tolist() == NAMES
    assert check_scored_labels(
        y_true, y_proba, multilabel=True
    ).classes.tolist() == list(range(3))
    with pytest.raises(ValueError, match="in a different order"):
        calibration_error(y_frame, frame[NAMES[::-1]])


# What is refused
# --------------------------------------------------------------------------------------


def test_what_may_be_classes_is_refused():
    """One-hot rows and probabilities that sum to 1: nothing is guessed."""
    rng = np.random.default_rng(0)
    y_proba = rng.dirichlet(np.ones(3), 100)
    codes = rng.integers(0, 3, 100)
    with pytest.raises(ValueError, match=r"argmax\(axis=1\)"):
        calibration_error(np.eye(3)[codes], y_proba)
    asked = calibration_error(np.eye(3)[codes], y_proba, multiclass="marginal")
    of_classes = calibration_error(codes, y_proba, multiclass="marginal")
    assert asked == pytest.approx(of_classes, abs=1e-12)


def test_shapes_values_and_options_are_refused():
    y_true, y_proba = _tags()
    with pytest.raises(ValueError, match=r"shape \(240, 3\) and y_proba \(240, 2\)"):
        calibration_error(y_true, y_proba[:, :2])
    with pytest.raises(ValueError, match=r"must contain 0 and 1.*found 2 in row"):
        calibration_error(y_true + 1, y_proba)
    with pytest.raises(ValueError, match="missing value"):
        calibration_error(np.where(y_true == 1, None, 0), y_proba)
    for multiclass in ("top_label", "pooled"):
        with pytest.raises(ValueError, match="mutually exclusive"):
            calibration_error(y_true, y_proba, multiclass=multiclass)
    with pytest.raises(ValueError, match="pos_label"):
        calibration_error(y_true, y_proba, pos_label=1)
    for labels in (["a", "b"], ["a", "a", "b"]):
        with pytest.raises(ValueError, match="each of the 3 columns"):
            calibration_error(y_true, y_proba, labels=labels)
    with pytest.raises(ValueError, match="one class only"):
        calibration_error(y_true, [np.ones((240, 1))] * 3)
    with pytest.raises(ValueError, match="list of 2 arrays"):
        calibration_error(y_true, [np.ones((240, 2)) / 2] * 2)


@pytest.mark.parametrize(
    "function",
    [kernel_calibration_error, calibration_slope_intercept, calibration_summary],
)
def test_what_is_about_one_event_says_so(function):
    with pytest.raises(ValueError, match="one column of y_true and of y_proba"):
        function(*_tags())


def test_other_refusals():
    y_true, y_proba = _tags()
    with pytest.raises(ValueError, match="array of groups"):
        groupwise_calibration_error(y_true, y_proba)
    with pytest.raises(ValueError, match="mutually exclusive"):
        calibration_test(y_true, y_proba, metric=kernel_calibration_error, **QUICK)
    with pytest.raises(ValueError, match="needs one binary problem"):
        calibration_test(y_true, y_proba, method="spiegelhalter")


@pytest.mark.parametrize(
    "name",
    ["BinCount", "CumulativeDifference", "DecisionCurve", "EstimatorBias", "Group"]
    + ["Murphy", "RiskCoverage", "Validity"],
)
def test_displays_of_one_event_say_so(name):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    from skcalib import displays

    draw = getattr(displays, f"{name}Display").from_predictions
    options = {"groups": np.arange(240) % 2} if name == "Group" else {}
    with pytest.raises(ValueError, match="one column of y_true and of y_proba"):
        draw(*_tags(), **options)


# Intervals and tests
# --------------------------------------------------------------------------------------


def test_the_dependence_of_labels_is_that_of_the_data():
    """Probabilities of 1/2 whose deviates have the correlation r: two labels are both
    there with probability 1/4 + arcsin(r) / (2 pi).
    """
    r = np.array([[1, 0.4, -0.3], [0.4, 1, 0], [-0.3, 0, 1]])
    rng = np.random.default_rng(0)
    deviates = rng.standard_normal((40_000, 3)) @ np.linalg.cholesky(r).T
    labels = deviates < 0
    scores = np.full(labels.shape, 0.5)
    root = label_copula(scores, labels, None)
    np.testing.assert_allclose(root @ root.T, r, atol=0.03)
    data = check_scored_labels(labels, scores, multilabel=True)
    (drawn,) = drawn_labels(data, 1, rng)
    both = (drawn.T.astype(float) @ drawn)[np.triu_indices(3, 1)] / 40_000
    expected = 1 / 4 + np.arcsin(r[np.triu_indices(3, 1)]) / (2 * np.pi)
    np.testing.assert_allclose(both, expected, atol=0.012)


def test_a_label_that_is_certain_depends_on_nothing():
    y_true, y_proba = _tags()
    y_proba[:, 0] = y_true[:, 0]
    root = label_copula(y_proba, y_true, None)
    assert np.isfinite(root).all()
    result = calibration_error_interval(y_true, y_proba, binning=4, **QUICK)
    assert 0 <= result.low <= result.high < 0.2


@pytest.mark.parametrize("clusters", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_and_tests(clusters, weighted):
    y_true, y_proba = _tags(correlation=0.3)
    options = dict(QUICK)
    if clusters:
        options["clusters"] = np.arange(240) // 4
    if weighted:
        options["sample_weight"] = np.random.default_rng(0).integers(1, 3, 240)
    y_bad = np.column_stack((y_true[:, :2], np.ones(240, dtype=int)))
    metric = {"metric": maximum_calibration_error, "binning": 3}
    result = calibration_error_interval(y_bad, y_proba, **metric, **options)
    # all rows have the last label: its largest gap is 1 less its lowest third
    weight = options.get("sample_weight")
    alone = maximum_calibration_error(
        y_bad[:, 2], y_proba[:, 2], sample_weight=weight, binning=3
    )
    assert result.estimate == alone
    assert 0.6 < result.low <= result.high <= 1
    # Weights count rows, which these rows are not: the test with them rejects more.
    for metric, n_draws in ((expected_calibration_error, 99), (_in_blocks, 19)):
        options["n_resamples"] = n_draws
        least = 1 / (1 + n_draws)
        if not (weighted and metric is _in_blocks):
            found = calibration_test(y_true, y_proba, metric=metric, **options)
            assert found.pvalue > least
        found = calibration_test(y_bad, y_proba, metric=metric, **options)
        assert found.pvalue == least


def _in_blocks(y_true, y_proba, *, sample_weight=None):
    """An error in bins of the labels: draws are made row by row."""
    return calibration_error(
        y_true,
        y_proba,
        norm=1,
        method="plugin",
        binning=PoolAdjacentViolators(),
        sample_weight=sample_weight,
    )


def test_a_label_alone_has_the_interval_of_its_column():
    """Certain labels beside it, whose weight is 0, change nothing but the draws."""
    y_true, y_proba = _tags(600, 2)
    y_proba[:, 1] = y_true[:, 1]
    options = {"binning": 5, "n_resamples": 999, "random_state": 0}
    found = calibration_error_interval(
        y_true, y_proba, class_weight=[1.0, 0.0], **options
    )
    alone = calibration_error_interval(y_true[:, 0], y_proba[:, 0], **options)
    assert found.estimate == alone.estimate
    assert found.high == pytest.approx(alone.high, abs=0.004)


@pytest.mark.slow
def test_the_level_where_labels_depend_on_each_other():
    """Eight labels of which one tells much about the others: the test rejects 1 in 20
    of calibrated samples. Drawn independently, labels reject twice as many and more.
    """
    rejected = 0
    for seed in range(100):
        y_true, y_proba = _tags(300, 8, correlation=0.6, seed=seed)
        result = calibration_test(
            y_true,
            y_proba,
            metric=expected_calibration_error,
            n_resamples=99,
            random_state=seed,
        )
        rejected += result.pvalue <= 0.05
    assert rejected <= 11  # of 5, with two and a half standard deviations


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_intervals_cover_where_labels_depend_on_each_other(correlation):
    """Ten labels, all predicted too high: what their deviations have in common makes
    the error uncertain. Of 60 samples fewer than 47 have a chance of .4 %.
    """
    covered = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        scores = rng.beta(2, 4, size=(100, 10))
        truth = scores**1.5
        common = np.sqrt(correlation) * rng.normal(size=(100, 1))
        own = np.sqrt(1 - correlation) * rng.normal(size=(100, 10))
        labels = ndtr(common + own) < truth
        found = calibration_error_interval(
            labels,
            scores,
            metric=expected_calibration_error,
            binning=EqualMass(10),
            n_resamples=99,
            random_state=seed,
        )
        # without noise: each row is an event and a non-event, weighted by its chances
        rows = {"binning": EqualMass(10), "labels": [0, 1]}
        rows["sample_weight"] = np.concatenate((1 - truth, truth))
        expected = np.mean(
            [
                expected_calibration_error(
                    np.repeat([0, 1], 100),
                    np.tile(scores[:, k], 2),
                    **rows | {"sample_weight": rows["sample_weight"][:, k]},
                )
                for k in range(10)
            ]
        )
        covered += found.low <= expected <= found.high
    assert covered >= 47


# Scorers and pictures
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        MultiOutputClassifier(GaussianNB()),
        OneVsRestClassifier(LogisticRegression()),
        RandomForestClassifier(5, max_depth=3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_scorers(model):
    X, tags = make_multilabel_classification(200, n_classes=3, random_state=0)
    model.fit(X, tags)
    proba = model.predict_proba(X)
    if isinstance(proba, list):
        proba = np.column_stack([part[:, 1] for part in proba])
    expected = -expected_calibration_error(tags, proba)
    found = get_scorer("neg_expected_calibration_error")(model, X, tags)
    assert found == pytest.approx(expected, abs=1e-12)
    made = make_scorer(
        expected_calibration_error,
        response_method="predict_proba",
        greater_is_better=False,
    )
    assert made(model, X, tags) == pytest.approx(expected, abs=1e-12)
    scores = cross_val_score(
        model, X, tags, scoring=get_scorer("neg_calibration_error"), cv=2
    )
    assert np.isfinite(scores).all()


def test_a_label_that_a_fold_lacks_has_probability_zero():
    X, tags = make_multilabel_classification(60, n_classes=3, random_state=0)
    tags[:40, 1] = 0
    model = MultiOutputClassifier(GaussianNB()).fit(X[:40], tags[:40])
    found = get_scorer("neg_expected_calibration_error")(model, X[40:], tags[40:])
    proba = [part[:, -1] for part in model.predict_proba(X[40:])]
    proba[1] = np.zeros(20)
    expected = expected_calibration_error(tags[40:], np.column_stack(proba))
    assert found == pytest.approx(-expected, abs=1e-12)


@pytest.mark.slow
def test_a_diagram_has_a_panel_for_each_label():
    plt = pytest.importorskip("matplotlib.pyplot", reason="needs matplotlib")
    from skcalib.displays import ReliabilityDisplay
    from skcalib.displays._reliability_curves import CurveMaker

    y_true, y_proba = _tags()
    clusters = np.arange(240) // 4
    display = ReliabilityDisplay.from_predictions(
        y_true, y_proba, labels=NAMES, clusters=clusters, metric=None
    )
    assert display.kind == "multilabel"
    titles = [axes.get_title(loc="left").split("\n")[0] for axes in display.ax_]
    assert titles == ["label red", "label round", "label new"]
    for k, curve in enumerate(display.curves):
        numbers = CurveMaker(metric=None).from_predictions(
            y_true[:, k], {None: y_proba[:, k]}, clusters=clusters
        )
        np.testing.assert_array_equal(curve.bars, numbers["curves"][0].bars)
    with pytest.raises(ValueError, match="separate panels"):
        ReliabilityDisplay.from_predictions(y_true, y_proba, groups=np.arange(240) % 2)
    plt.close("all")


def test_one_number_for_each_label():
    data = check_scored_labels(*_tags(), multilabel=True)
    powers = ClassPowers.of(data, METRICS["expected_calibration_error"].error())
    assert powers.n_tasks == 3
