"""Models side by side: values, paired differences, tables; plain twins of the jackknife
and of the variance.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from _catalog import refused
from scipy.special import ndtr
from scipy.stats import ttest_rel
from sklearn.metrics import roc_auc_score

from skcalib.binning import EqualMass
from skcalib.evaluation import compare
from skcalib.metrics import (
    calibration_error,
    calibration_error_interval,
    expected_calibration_error,
)
from skcalib.monitoring import calibration_change

SQUARE = "squared_calibration_error"


def _models(n=400, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    y = rng.random(n) < 1 / (1 + np.exp(-z))
    proba = {"good": z, "sure": 2 * z, "noisy": z + rng.normal(size=n)}
    return y, {name: 1 / (1 + np.exp(-logit)) for name, logit in proba.items()}


def _row(found, model, metric):
    (k,) = np.flatnonzero((found.model == model) & (found.metric == metric))
    return {name: column[k] for name, column in found.columns().items()}


def test_proper_scores_are_paired_t_tests():
    y, models = _models()
    found = compare(y, models, metrics=["brier_score", "log_loss"], random_state=0)
    for model in ("sure", "noisy"):
        losses = [(models[name] - y) ** 2 for name in (model, "good")]
        row = _row(found, model, "brier_score")
        assert row["estimate"] == pytest.approx(losses[0].mean(), abs=1e-12)
        assert row["difference"] == pytest.approx(
            losses[0].mean() - losses[1].mean(), abs=1e-12
        )
        assert row["pvalue"] == pytest.approx(
            ttest_rel(*losses).pvalue, rel=0.1, abs=1e-6
        )
    assert compare(y, models, metrics="log_loss").estimate[0] == pytest.approx(
        -np.mean(np.log(np.where(y, models["good"], 1 - models["good"]))), abs=1e-12
    )


def test_squares_are_means_over_pairs_with_the_jackknife():
    y, models = _models(60)
    found = compare(
        y,
        models,
        metrics=partial(calibration_error, squared=True, binning=4),
        n_resamples=19,
    )
    metric = found.metric[0]
    binned = {
        name: np.digitize(s, EqualMass(4).bin_edges(s)[1:-1], right=True)
        for name, s in models.items()
    }

    def square(name, rows):
        s, code, total = models[name], binned[name], 0.0
        for b in range(4):
            inside = [i for i in rows if code[i] == b]
            pairs = sum(
                (y[i] - s[i]) * (y[j] - s[j]) for i in inside for j in inside if i != j
            )
            total += len(inside) * pairs / (len(inside) * (len(inside) - 1))
        return total / len(rows)

    rows = list(range(60))
    without = np.array(
        [
            square("sure", rows[:i] + rows[i + 1 :])
            - square("good", rows[:i] + rows[i + 1 :])
            for i in rows
        ]
    )
    jackknife = 59 / 60 * np.sum((without - without.mean()) ** 2)
    kernel = np.zeros((60, 60))
    for name, sign in (("sure", 1), ("good", -1)):
        code, residual = binned[name], y - models[name]
        for b in range(4):
            inside = code == b
            r = np.where(inside, residual - residual[inside].mean(), 0)
            kernel += sign * np.outer(r, r) / (inside.sum() - 1) / 60
    np.fill_diagonal(kernel, 0)
    of_pairs = 2 * np.sum(kernel**2)
    variance = max(jackknife - of_pairs, of_pairs)
    row = _row(found, "sure", metric)
    assert row["estimate"] == pytest.approx(square("sure", rows), abs=1e-12)
    assert row["estimate"] == pytest.approx(
        calibration_error(y, models["sure"], squared=True, binning=4), abs=1e-12
    )
    assert row["difference"] == pytest.approx(
        square("sure", rows) - square("good", rows), abs=1e-12
    )
    width = (row["difference_high"] - row["difference_low"]) / 2
    # Student's quantile of 30 to 59 degrees
    assert width == pytest.approx(1.67 * np.sqrt(variance), rel=0.02)
    own = calibration_error_interval(
        y, models["sure"], metric=partial(calibration_error, squared=True, binning=4)
    )
    assert row["low"] <= own.estimate <= row["high"]


@pytest.mark.parametrize("multiclass", ["top_label", "marginal", "pooled"])
def test_many_classes(multiclass):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(300, 3))
    proba = [
        np.exp(c * logits) / np.exp(c * logits).sum(axis=1, keepdims=True)
        for c in (1, 3)
    ]
    y = np.array([rng.choice(3, p=row) for row in proba[0]])
    metric = partial(calibration_error, squared=True, binning=5, multiclass=multiclass)
    found = compare(
        y,
        dict(zip(("a", "b"), proba, strict=True)),
        metrics=["brier_score", metric],
        n_resamples=19,
    )
    values = [
        calibration_error(y, p, squared=True, binning=5, multiclass=multiclass)
        for p in proba
    ]
    # there pairs of one row are left out instead of their noise
    if multiclass != "pooled":
        np.testing.assert_allclose(found.estimate[2:], values, atol=1e-12)
    assert found.difference[3] == pytest.approx(values[1] - values[0], rel=0.02)
    assert np.all(found.pvalue[[1, 3]] < 0.01)


def test_integer_weights_are_repeated_rows_and_clusters_of_copies_one_row():
    y, models = _models(150)
    metrics = ["brier_score", SQUARE]
    weight = np.random.default_rng(1).integers(0, 3, 150)
    options = {"metrics": metrics, "n_resamples": 19, "random_state": 0}
    weighted = compare(y, models, sample_weight=weight, **options)
    again = compare(
        np.repeat(y, weight),
        {k: np.repeat(s, weight) for k, s in models.items()},
        **options,
    )
    for name in ("estimate", "difference", "difference_low", "pvalue"):
        np.testing.assert_allclose(
            getattr(weighted, name), getattr(again, name), rtol=1e-7, atol=1e-12
        )
    copies = compare(
        y.repeat(3),
        {k: s.repeat(3) for k, s in models.items()},
        clusters=np.arange(450) // 3,
        **options,
    )
    once = compare(y, models, **options)
    np.testing.assert_allclose(copies.difference, once.difference, atol=1e-3)
    np.testing.assert_allclose(copies.difference_high, once.difference_high, atol=2e-3)
    halves = compare(
        y,
        models,
        sample_weight=np.full(150, 0.5),
        weight_type="importance",
        **options,
    )
    np.testing.assert_allclose(halves.difference, once.difference, atol=1e-12)
    np.testing.assert_allclose(halves.difference_high, once.difference_high, rtol=0.02)


@pytest.mark.slow
def test_other_errors_are_squared_and_added_and_functions_bootstrapped():
    y, models = _models(300)
    pair = {name: models[name] for name in ("good", "sure")}
    options = {"n_resamples": 39, "random_state": 0}
    found = compare(
        y, pair, metrics=[expected_calibration_error, _one_minus_auc], **options
    )
    good, sure = (
        {
            name: value
            for name, value in _row(found, m, "expected_calibration_error").items()
        }
        for m in pair
    )
    one, other = (
        np.clip(row["estimate"], row["low"], row["high"]) for row in (sure, good)
    )
    assert sure["difference_low"] == pytest.approx(
        one - other - np.hypot(one - sure["low"], good["high"] - other), abs=1e-12
    )
    assert sure["difference"] == pytest.approx(
        sure["estimate"] - good["estimate"], abs=1e-12
    )
    auc = _row(found, "sure", "_one_minus_auc")
    assert auc["difference"] == 0  # the order is the same
    assert auc["pvalue"] == 1


def _one_minus_auc(y_true, y_proba, sample_weight=None):
    return 1 - roc_auc_score(y_true, y_proba, sample_weight=sample_weight)


def test_table_sentences_and_holm():
    y, models = _models()
    found = compare(y, models, reference="sure", random_state=0, n_resamples=19)
    assert list(found.columns()) == [
        *(
            "model",
            "metric",
            "estimate",
            "low",
            "high",
            "difference",
            "difference_low",
            "difference_high",
        ),
        *("pvalue", "adjusted_pvalue", "reason"),
    ]
    assert len(found) == 9
    first = found.pvalue[:3]
    assert first[1] == 1
    smaller, larger = sorted(first[[0, 2]])
    assert sorted(found.adjusted_pvalue[[0, 2]]) == pytest.approx(
        [min(2 * smaller, 1), max(2 * smaller, larger)]
    )
    text = str(found)
    assert "The log_loss of 'good' is lower than that of 'sure' by 0." in text
    assert len(text.split("\n")) == 6  # one line for each challenger and metric
    assert "(90 %: -" in text
    assert "'sure' has" not in text
    assert found._repr_html_().startswith(
        "<p><strong>The log_loss of &#x27;good&#x27; is lower"
    )
    pytest.importorskip("pandas")
    assert found.to_frame().shape == (9, 11)


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_columns_of_a_data_frame_are_models(package):
    frames = pytest.importorskip(package, reason=f"{package} is not installed")
    y, models = _models()
    models = {name: models[name] for name in ("good", "sure")}
    frame = frames.DataFrame(models)
    options = {"metrics": "brier_score", "random_state": 0}
    found, expected = compare(y, frame, **options), compare(y, models, **options)
    assert found.model.tolist() == expected.model.tolist()
    assert found.pvalue.tolist() == expected.pvalue.tolist()
    # A p-value below .001 is said to be so, and never 0.
    certain = replace(found, adjusted_pvalue=np.zeros(2))
    assert "adjusted p < 0.001" in str(certain)


def test_markdown_and_latex_have_the_best_in_bold():
    y, models = _models()
    models = {"a_b & c|d": models["good"], "sure": models["sure"]}
    found = compare(y, models, metrics="brier_score")
    lines = found.to_markdown().splitlines()
    assert lines[:2] == ["| model | brier_score |", "| --- | ---: |"]
    assert lines[2].startswith("| a_b & c\\|d | **0.")
    assert "**" not in lines[3]
    assert lines[3].endswith("* |")
    latex = found.to_latex()
    assert r"a\_b \& c|d & \textbf{0." in latex
    assert latex.startswith(r"\begin{tabular}{lr}")
    assert latex.count(r"\\") == 3


def test_refusals():
    y, models = _models(50)
    with refused(ValueError, "models", "one or more", "dict"):
        compare(y, {})
    with refused(ValueError, "reference", "'best'"):
        compare(y, models, reference="best")
    with refused(ValueError, "metrics", "'ece'", "brier_score"):
        compare(y, models, metrics=["ece"])
    with refused(ValueError, "metrics", "twice"):
        compare(y, models, metrics=["brier_score", "brier_score"])
    with refused(ValueError, "metrics", "empty"):
        compare(y, models, metrics=[])
    with refused(ValueError, "models['bad']", "y_proba"):
        compare(y, {"good": models["good"], "bad": models["good"] + 1})
    with refused(ValueError, "kernel_calibration_error", "no interval"):
        compare(y, models, metrics="kernel_calibration_error")


def test_calibration_change_on_the_same_rows_names_compare():
    y, models = _models(300)
    with pytest.warns(UserWarning, match="compare compares models on the same rows"):
        calibration_change(
            y, models["good"], y, models["sure"], n_resamples=19, random_state=0
        )
    calibration_change(
        y, models["good"], y[::-1], models["good"][::-1], n_resamples=19, random_state=0
    )


@pytest.mark.slow
def test_paired_test_has_power_where_an_unpaired_one_has_none():
    """A calibrated model against one that is 1.25 times too sure, 500 rows: see
    `doc/evidence/levels.md`.
    """
    paired = unpaired = 0
    for seed in range(100):
        y, models = _models(500, seed)
        z = np.log(models["good"] / (1 - models["good"]))
        pair = {"good": models["good"], "sure": 1 / (1 + np.exp(-1.4 * z))}
        found = compare(y, pair, metrics="brier_score")
        paired += found.pvalue[1] <= 0.05
        half = (found.high - found.low) / 2 / 1.645
        unpaired += abs(found.difference[1]) > 1.96 * np.hypot(*half)
    print(paired, unpaired)
    assert paired > unpaired + 20


# --- Weights and clusters of all kinds ------------------------------------------------


def _equally_good(rng, n, cluster=None):
    """Two calibrated models of y = 1{z + u + e > 0}, of which each knows z or u; with
    clusters both know and lack parts that rows of a cluster share.
    """
    z, u, e = rng.normal(size=(3, n))
    if cluster is not None:
        shared = rng.normal(size=(3, cluster.max() + 1))[:, cluster]
        z, u, e = np.sqrt(0.3) * shared + np.sqrt(0.7) * np.array([z, u, e])
    y = z + u + e > 0
    scores = {"z": ndtr(z / np.sqrt(2)), "u": ndtr(u / np.sqrt(2))}
    return y, scores


def _rejections(draw, n_samples=400):
    rejected = []
    for seed in range(n_samples):
        y, models, options = draw(np.random.default_rng(seed))
        found = compare(y, models, metrics="log_loss", **options)
        rejected.append(found.pvalue[1] <= 0.05)
    return np.mean(rejected)


@pytest.mark.parametrize("n_samples", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_sampling_weights_keep_the_level(n_samples):
    """One row in 50 stands for 50: as importance weights the level holds; as counts
    it is about .7.
    """

    def draw(weight_type):
        def sample(rng):
            y, models = _equally_good(rng, 500)
            weight = np.where(rng.random(500) < 0.02, 50, 1)
            return y, models, {"sample_weight": weight, "weight_type": weight_type}

        return sample

    assert _rejections(draw("importance"), n_samples) < 0.05 + 2.5 * np.sqrt(
        0.0475 / n_samples
    )
    assert _rejections(draw("frequency"), 30) > 0.4


@pytest.mark.slow
def test_unequal_clusters_keep_the_level():
    cluster = np.repeat(np.arange(32), [150] * 2 + [10] * 30)

    def sample(rng):
        y, models = _equally_good(rng, len(cluster), cluster)
        return y, models, {"clusters": cluster}

    assert _rejections(sample) < 0.077


def test_one_large_cluster_has_no_interval():
    cluster = np.repeat(np.arange(101), [400] + [2] * 100)
    y, models = _equally_good(np.random.default_rng(0), len(cluster), cluster)
    found = compare(
        y,
        models,
        metrics=["log_loss", "brier_score", SQUARE],
        clusters=cluster,
        n_resamples=19,
        random_state=0,
    )
    second = found.model == "u"
    assert np.isnan(found.difference_low[second]).all()
    assert np.isnan(found.pvalue[second]).all()
    assert all("effective number" in reason for reason in found.reason[second])
    assert "cannot be determined: the effective number of clusters is" in str(found)
    assert "nan" not in found.to_markdown()


def test_what_all_rows_determine_has_no_width():
    y, models = _models(60)
    same = {"first": models["good"], "second": models["good"].copy()}
    found = compare(y, same, metrics=["log_loss", "brier_score"])
    assert found.difference_high.tolist() == [0, 0, 0, 0]
    assert found.pvalue.tolist() == [1, 1, 1, 1]
    constant = compare(
        np.ones(30, dtype=int),
        {"a": np.full(30, 0.9), "b": np.full(30, 0.8)},
        metrics=["log_loss", "brier_score"],
        labels=[0, 1],
    )
    assert np.isnan(constant.difference_low[[1, 3]]).all()
    assert "the same amount in all samples" in constant.reason[1]
    # 30 losses of .01 do not say that no loss is .81
    assert constant.high[2] > 0.05
