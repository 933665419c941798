"""Performance without labels: plain twins, refusals, and what the intervals hold."""

import math

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import t as student
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    log_loss,
    precision_score,
    recall_score,
)

from benchmarks.label_free import WORLDS, coverage, figures
from skcalib.binning import FixedEdges
from skcalib.monitoring import estimated_performance

ALL = (
    "accuracy",
    "event_frequency",
    "log_loss",
    "brier_score",
    "precision",
    "recall",
    "false_positive_rate",
)


def _samples(seed=0, n=400, m=300):
    rng = np.random.default_rng(seed)
    scores, new = rng.beta(2, 2, n), rng.beta(2, 3, m)
    return rng.random(n) < scores**1.3, scores, new, rng.random(m) < new**1.3


def _plain(y, s, t, threshold=0.5):
    """Return by metric the estimate and its standard error, sample by sample."""
    n, m = len(s), len(t)
    n_bins = math.ceil(2 * n ** (1 / 3))
    ordered = sorted(s)
    cuts = []
    for b in range(1, n_bins):
        at = b * n / n_bins
        below, above = ordered[math.ceil(at) - 1], ordered[math.ceil(at)]
        cuts.append((below + above) / 2)
    bins = [sum(c < v for c in cuts) * 2 + (v >= threshold) for v in s]
    new_bins = [sum(c < v for c in cuts) * 2 + (v >= threshold) for v in t]
    residual, variance = {}, {}
    for b in set(bins):
        rows = [i for i in range(n) if bins[i] == b]
        residual[b] = sum(y[i] - s[i] for i in rows) / len(rows)
        f = (sum(y[i] for i in rows) + 0.5) / (len(rows) + 1)
        variance[b] = f * (1 - f) / max(len(rows) - 1, 1)
    f = [
        min(max(v + residual.get(b, 0), 0), 1) for v, b in zip(t, new_bins, strict=True)
    ]
    terms = {
        "accuracy": [(0.0, 1.0) if v >= threshold else (1.0, -1.0) for v in t],
        "event_frequency": [(0.0, 1.0)] * m,
        "log_loss": [(-math.log(1 - v), math.log(1 - v) - math.log(v)) for v in t],
        "brier_score": [(v**2, 1 - 2 * v) for v in t],
    }
    out = {}
    for name, of_metric in terms.items():
        estimate = sum(a + b * e for (a, b), e in zip(of_metric, f, strict=True)) / m
        of_bin = {}
        for (_, slope), b in zip(of_metric, new_bins, strict=True):
            of_bin[b] = of_bin.get(b, 0) + slope / m
        var = sum(c**2 * variance[b] for b, c in of_bin.items())
        var += (
            sum(
                slope**2 * e * (1 - e)
                for (_, slope), e in zip(of_metric, f, strict=True)
            )
            / m**2
        )
        out[name] = estimate, math.sqrt(var)
    return out, f


def test_estimates_are_those_of_a_plain_twin():
    y, s, t, _ = _samples()
    s, t = np.clip(s, 0.05, 0.95), np.clip(t, 0.06, 0.94)  # keeps f inside (0, 1)
    found = estimated_performance(y, s, t)
    expected, f = _plain(y, s, t)
    assert 0 < min(f) < max(f) < 1
    for row, name in enumerate(found.metric):
        estimate, error = expected[name]
        assert found.estimate[row] == pytest.approx(estimate, rel=1e-12)
        assert found.low[row] == pytest.approx(estimate - 1.6448536269514722 * error)
        assert found.high[row] == pytest.approx(estimate + 1.6448536269514722 * error)


def test_ratios_are_means_over_expected_labels():
    y, s, t, _ = _samples(1)
    found = estimated_performance(y, s, t, metrics=ALL)
    value = dict(zip(found.metric, found.estimate, strict=True))
    # The expected labels, read off one sample at a time.
    f = np.array(
        [
            estimated_performance(y, s, [v], metrics="event_frequency").estimate[0]
            for v in t
        ]
    )
    above = t >= 0.5
    assert value["precision"] == pytest.approx(f[above].mean())
    assert value["recall"] == pytest.approx(f[above].sum() / f.sum())
    expected = (1 - f)[above].sum() / (1 - f).sum()
    assert value["false_positive_rate"] == pytest.approx(expected)


def test_all_labels_known_give_the_metrics_themselves():
    y, s, t, y_new = _samples(2)
    found = estimated_performance(y, s, t, y_new=y_new, metrics=ALL)
    for name, value in figures(t, y_new).items():
        row = list(found.metric).index(name)
        assert found.estimate[row] == pytest.approx(value, abs=1e-9)
    assert found.n_known == len(t)
    assert found.change.n_after == len(t)
    predicted = t >= 0.5
    of_scikit_learn = [
        accuracy_score(y_new, predicted),
        y_new.mean(),
        log_loss(y_new, t),
        brier_score_loss(y_new, t),
        precision_score(y_new, predicted),
        recall_score(y_new, predicted),
        1 - recall_score(~y_new, ~predicted),
    ]
    assert found.estimate == pytest.approx(of_scikit_learn)


def test_known_labels_are_an_augmented_inverse_probability_estimate():
    y, s, t, y_new = _samples(3, m=200)
    rng = np.random.default_rng(0)
    pi = np.where(t > 0.5, 0.8, 0.4)
    known = rng.random(200) < pi
    labels = np.where(known, y_new.astype(float), np.nan)
    found = estimated_performance(
        y, s, t, y_new=labels, sampling_probability=pi, metrics="event_frequency"
    )
    f = np.array(
        [
            estimated_performance(y, s, [v], metrics="event_frequency").estimate[0]
            for v in t
        ]
    )
    u, v = y_new * known / pi, f * (known / pi - 1)
    share = np.cov(u, v, bias=True)[0, 1] / np.var(v)
    assert 0 < share < 1
    terms = u - share * v
    assert found.estimate[0] == pytest.approx(terms.mean())
    # Student's quantile for a variance that is estimated from terms of this kurtosis
    kurtosis = np.mean((terms - terms.mean()) ** 4) / terms.var() ** 2
    degrees = min(2 * 200 / max(kurtosis - 1, 2 / 3), 199)
    half = student.ppf(0.95, degrees) * terms.std(ddof=1) / math.sqrt(200)
    assert found.high[0] - found.estimate[0] == pytest.approx(half)


def test_unknown_labels_need_a_word():
    y, s, t, y_new = _samples()
    labels = y_new.astype(float)
    labels[::2] = np.nan
    with pytest.raises(ValueError, match="rarely a random sample"):
        estimated_performance(y, s, t, y_new=labels)
    with pytest.raises(ValueError, match="not both"):
        estimated_performance(
            y, s, t, y_new=labels, missing="at_random", sampling_probability=0.5
        )
    pi = np.full(300, 0.5)
    pi[3] = 0
    with pytest.raises(ValueError, match=r"in \(0, 1\], found 0.0 in row 3"):
        estimated_performance(y, s, t, y_new=labels, sampling_probability=pi)
    with pytest.raises(ValueError, match="pass y_new"):
        estimated_performance(y, s, t, missing="at_random")
    labels[1] = 7
    with pytest.raises(ValueError, match="unknown label 7.0 in row 1"):
        estimated_performance(y, s, t, y_new=labels, missing="at_random")
    with pytest.raises(ValueError, match="a label for each of the 300 rows"):
        estimated_performance(y, s, t, y_new=y_new[:5])


def test_few_known_labels_stand_beside_and_are_not_mixed():
    y, s, t, y_new = _samples()
    labels = np.full(300, np.nan)
    labels[:20] = y_new[:20]
    alone = estimated_performance(y, s, t)
    found = estimated_performance(y, s, t, y_new=labels, missing="at_random")
    assert list(found.metric[::2]) == list(alone.metric)
    assert found.estimate[::2].tolist() == alone.estimate.tolist()
    assert found.low[::2].tolist() == alone.low.tolist()
    assert found.metric[1] == "accuracy (known labels only)"
    assert found.estimate[3] == pytest.approx(y_new[:20].mean(), abs=0.05)
    assert np.isnan(found.low[1::2]).all()
    assert set(found.reason[1::2]) == {"only 20 labels are known"}
    assert found.change.n_after == 20
    assert "has changed, based on the labels known so far: p" in str(found)
    labels[20:40] = labels[:40] = 0
    found = estimated_performance(y, s, t, y_new=labels, missing="at_random")
    assert set(found.reason[1::2]) == {"only 0 of the 40 known labels are events"}
    assert found.change.pvalue < 0.01


def test_scores_beyond_the_labelled_ones_are_said_and_refused():
    y, s, t, _ = _samples()
    s = np.clip(s, 0.3, 0.7)
    found = estimated_performance(y, s, t)
    assert found.outside == np.mean((t < 0.3) | (t > 0.7)) > 0.05
    assert np.isnan(found.low).all()
    assert all(
        "lie outside the range of the labelled ones" in reason
        for reason in found.reason
    )
    inside = estimated_performance(y, s, np.clip(t, 0.3, 0.7))
    assert inside.outside == 0
    assert not np.isnan(inside.low).any()
    assert set(inside.reason) == {""}


def test_labels_of_any_kind_and_the_other_class():
    y, s, t, y_new = _samples()
    names = np.where(y, "yes", "no")
    by_name = estimated_performance(names, np.c_[1 - s, s], np.c_[1 - t, t])
    plain = estimated_performance(y, s, t)
    assert by_name.estimate == pytest.approx(plain.estimate, rel=1e-12)
    other = estimated_performance(
        names, np.c_[1 - s, s], np.c_[1 - t, t], pos_label="no"
    )
    assert other.estimate[1] == pytest.approx(1 - plain.estimate[1], abs=0.01)
    known = np.where(np.arange(300) % 2, np.where(y_new, "yes", "no"), None)
    found = estimated_performance(
        names, s, t, y_new=known, pos_label="yes", missing="at_random"
    )
    assert found.n_known == 150


def test_several_classes_are_about_the_predicted_class():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet([1, 1, 1], 3000), rng.dirichlet([2, 1, 1], 1000)
    y = (rng.random((3000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    y_new = (rng.random((1000, 1)) > q.cumsum(axis=1)).sum(axis=1)
    found = estimated_performance(y, p, q, y_new=y_new.astype(float))
    assert found.estimate[0] == np.mean(q.argmax(axis=1) == y_new)
    blind = estimated_performance(y, p, q)
    assert blind.low[0] < np.mean(q.argmax(axis=1) == y_new) < blind.high[0]
    assert blind.estimate[0] == blind.estimate[1]
    with pytest.raises(ValueError, match="is for one event"):
        estimated_performance(y, p, q, metrics="recall")
    with pytest.raises(ValueError, match="4 columns"):
        estimated_performance(y, p, rng.dirichlet(np.ones(4), 10))


def test_a_metric_of_ones_own():
    y, s, t, _ = _samples()

    def cost(scores, labels):
        return np.where(scores >= 0.2, 1.0, 10.0 * labels)

    found = estimated_performance(y, s, t, metrics=[cost, "event_frequency"])
    assert list(found.metric) == ["cost", "event_frequency"]
    assert found.low[0] < found.estimate[0] < found.high[0]
    # Its limits may be negative; those of the log-loss may not.
    found = estimated_performance(
        y, s, t, metrics=[lambda scores, labels: labels - 1.0, "log_loss"]
    )
    assert found.low[0] < found.estimate[0] < found.high[0] <= 0
    assert found.low[1] >= 0
    both = [lambda scores, labels: labels, lambda scores, labels: 1 - labels]
    found = estimated_performance(y, s, t, metrics=both)
    assert list(found.metric) == ["<lambda>", "<lambda> 2"]
    assert found.estimate.sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="finite values, one for each sample"):
        estimated_performance(y, s, t, metrics=[lambda scores, labels: 1.0])
    with pytest.raises(ValueError, match="metrics"):
        estimated_performance(y, s, t, metrics=["f1"])


def test_weights_count_samples_and_clusters_widen():
    y, s, t, _ = _samples()
    count = np.random.default_rng(1).integers(0, 4, len(y))
    options = {"binning": 5, "metrics": ALL}
    counted = estimated_performance(y, s, t, sample_weight=count, **options)
    repeated = estimated_performance(
        np.repeat(y, count), np.repeat(s, count), t, **options
    )
    assert counted.estimate == pytest.approx(repeated.estimate)
    assert counted.low == pytest.approx(repeated.low)
    scaled = [
        estimated_performance(
            y, s, t, sample_weight=w, weight_type="importance", binning=5
        ).high
        for w in (count, 0.3 * count)
    ]
    assert scaled[0] == pytest.approx(scaled[1])
    alone = estimated_performance(y, s, t, binning=5)
    paired = estimated_performance(
        np.repeat(y, 2),
        np.repeat(s, 2),
        t,
        binning=5,
        clusters=np.repeat(range(400), 2),
    )
    assert paired.high - paired.low == pytest.approx(alone.high - alone.low, rel=0.1)
    two = estimated_performance(y, s, t, clusters=np.arange(400) % 2)
    assert np.isnan(two.low).all()
    assert "at least 3 are" in two.reason[0]


def test_heavy_samples_are_left_out_of_their_own_bin():
    """Weights of 30 for a few samples at random: the residual of each sample is that
    about the mean of the others in its bin.
    """
    y, s, t, _ = _samples(n=300)
    weight = np.where(np.random.default_rng(4).random(300) < 0.1, 30.0, 1.0)
    found = estimated_performance(
        y,
        s,
        t,
        metrics="event_frequency",
        sample_weight=weight,
        weight_type="importance",
        binning=FixedEdges([0.0, 0.5, 1.0]),
        confidence_level=0.9,
    )
    forecasts = t.copy()
    terms = []  # what each sample adds to the estimate
    for is_old, is_new in ((s < 0.5, t < 0.5), (s >= 0.5, t >= 0.5)):
        residual, w = (y - s)[is_old], weight[is_old]
        forecasts[is_new] += w @ residual / w.sum()
        for k in range(len(w)):
            others = np.arange(len(w)) != k
            centred = residual[k] - w[others] @ residual[others] / w[others].sum()
            terms.append(is_new.mean() * w[k] / w.sum() * centred)
    assert 0 < forecasts.min() < forecasts.max() < 1
    terms = np.array(terms)
    square = np.sum(terms**2) * 300 / 299
    kurtosis = 300 * np.sum(terms**4) * (300 / 299) ** 2 / square**2
    variance = square + np.sum(forecasts * (1 - forecasts)) / len(t) ** 2
    degrees = 2 * 300 / (kurtosis - 1) * (variance / square) ** 2
    half_width = student.ppf(0.95, degrees) * np.sqrt(variance)
    assert found.estimate[0] == pytest.approx(forecasts.mean())
    assert found.high[0] - found.estimate[0] == pytest.approx(half_width)


def test_labels_known_by_a_design_that_looks_at_them():
    """Events are four times as likely to be known: their probabilities mend it."""
    rng = np.random.default_rng(0)
    y, s, t, y_new = _samples(n=1500, m=2000)
    pi = np.where(y_new, 0.4, 0.1)
    known = rng.random(2000) < pi
    found = estimated_performance(
        y,
        s,
        t,
        y_new=np.where(known, y_new.astype(float), np.nan),
        sampling_probability=np.where(known, pi, np.nan),
        confidence_level=0.999,
    )
    for name, value in figures(t, y_new).items():
        if name in found.metric:
            row = list(found.metric).index(name)
            assert found.low[row] <= value <= found.high[row]
    assert found.change.pvalue > 0.05
    careless = estimated_performance(
        y,
        s,
        t,
        y_new=np.where(known, y_new.astype(float), np.nan),
        missing="at_random",
        confidence_level=0.999,
    )
    assert careless.low[1] > y_new.mean()
    assert careless.change.pvalue < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[100] * 5, [150] * 2 + [10] * 30], ids=["5", "32"])
def test_coverage_with_clusters(sizes):
    """Few or unequal clusters of labelled samples, whose labels share a shift of .7 in
    log-odds; 200 samples, a standard error of .021.
    """
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    held = np.zeros(4)
    for _ in range(200):
        scores, new = rng.beta(2, 2, len(cluster)), rng.beta(2, 3, 2000)
        shift = rng.normal(0, 0.7, len(sizes))[cluster]
        y = rng.random(len(cluster)) < expit(logit(scores) + shift)
        y_new = rng.random(2000) < expit(logit(new) + rng.normal(0, 0.7, 2000))
        found = estimated_performance(y, scores, new, clusters=cluster)
        truth = [figures(new, y_new)[name] for name in found.metric]
        held += (found.low <= truth) & (truth <= found.high)
    assert (held / 200 > 0.83).all()


def test_it_says_what_it_assumes():
    pytest.importorskip("pandas", reason="to_frame needs pandas")
    y, s, t, y_new = _samples()
    text = str(estimated_performance(y, s, t))
    assert "The event frequency at a given score is the same" in text
    labels = np.where(np.arange(300) % 3 == 0, y_new.astype(float), np.nan)
    found = estimated_performance(y, s, t, y_new=labels, missing="at_random")
    assert "does not depend on the label itself" in str(found)
    assert "event frequency at a given score" not in " ".join(found.assumptions)
    assert list(found.to_frame().columns) == [
        "metric",
        "estimate",
        "low",
        "high",
        "reason",
    ]


def test_rare_events_have_ratios_only_where_samples_are_expected():
    rng = np.random.default_rng(0)
    s, t = rng.beta(1, 60, 3000), rng.beta(1, 60, 200)
    found = estimated_performance(rng.random(3000) < s, s, t, metrics=ALL)
    reason = dict(zip(found.metric, found.reason, strict=True))
    assert "expected in its denominator" in reason["recall"]
    assert np.isnan(found.low[ALL.index("precision")])
    assert reason["event_frequency"] == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(WORLDS))
def test_coverage_without_labels(name):
    found = coverage(WORLDS[name], 200, seed=1)
    for metric, (share, refused) in found.items():
        # 200 samples: a standard error of .021.
        assert share >= 0.83 or refused > 0.4, (metric, share)


@pytest.mark.slow
@pytest.mark.parametrize("n_known", [100, 500])
def test_coverage_with_a_few_labels(n_known):
    found = coverage(WORLDS["lower scores"], 80, seed=2, n_known=n_known)
    # .9 less three standard errors
    assert min(share for share, _ in found.values()) > 0.8


@pytest.mark.slow
def test_what_breaks_the_assumption_breaks_the_interval():
    moved = coverage(WORLDS["lower scores"], 60, seed=3, shift=0.05)
    assert moved["event_frequency"][0] < 0.1
    mix = coverage(WORLDS["lower scores"], 60, seed=5, new_share=0.7)
    assert mix["event_frequency"][0] < 0.1
    mended = coverage(WORLDS["lower scores"], 60, seed=6, new_share=0.7, n_known=200)
    assert mended["event_frequency"][0] > 0.8
    early = coverage(WORLDS["lower scores"], 40, seed=4, n_known=200, first_events=2.0)
    assert early["event_frequency"][0] < 0.2


def test_figures_that_labels_of_one_kind_leave_undefined_are_nan():
    scores = np.array([0.2, 0.9])
    found = figures(scores, np.array([True, True]))
    assert np.isnan(found.pop("false_positive_rate"))
    assert found == pytest.approx(
        {
            "accuracy": 0.5,
            "event_frequency": 1.0,
            "log_loss": -math.log(0.2 * 0.9) / 2,
            "brier_score": (0.8**2 + 0.1**2) / 2,
            "precision": 1.0,
            "recall": 0.5,
        }
    )
    assert np.isnan(figures(scores, np.array([False, False]))["recall"])


# --- Samples labelled at random: a straight line in place of the bins -----------------


def _plain_line(y, s, t, intercept_and_slope):
    """Return the estimate and its 90 % limits, one sample at a time; metrics are
    functions of a score that return A and B of A + B y.
    """
    n, m = len(s), len(t)
    z = [intercept_and_slope(v)[1] * label for v, label in zip(s, y, strict=True)]
    g = [intercept_and_slope(v)[1] * v for v in s]
    mean_z, mean_g = sum(z) / n, sum(g) / n
    square = sum((b - mean_g) ** 2 for b in g)
    slope = sum((b - mean_g) * a for a, b in zip(z, g, strict=True)) / square
    gap = sum(intercept_and_slope(v)[1] * v for v in t) / m - mean_g
    estimate = sum(intercept_and_slope(v)[0] for v in t) / m + mean_z + slope * gap
    rest = [a - mean_z - slope * (b - mean_g) for a, b in zip(z, g, strict=True)]
    variance = sum(r**2 for r in rest) / (n - 2)
    error = math.sqrt(variance * (1 / n + 1 / m + gap**2 / square))
    half = student.ppf(0.95, n - 2) * error
    return estimate, estimate - half, estimate + half


_LINEAR = {
    "accuracy": lambda v: (0.0, 1.0) if v >= 0.5 else (1.0, -1.0),
    "event_frequency": lambda v: (0.0, 1.0),
    "log_loss": lambda v: (-math.log(1 - v), math.log(1 - v) - math.log(v)),
    "brier_score": lambda v: (v**2, 1 - 2 * v),
}


def test_samples_labelled_at_random_give_a_tuned_difference():
    rng = np.random.default_rng(5)
    t = rng.beta(2, 2, 900)
    y_new = rng.random(900) < t**1.3
    s, y = t[:120], y_new[:120]
    found = estimated_performance(y, s, t)
    for row, name in enumerate(found.metric):
        expected = _plain_line(y, s, t, _LINEAR[name])
        limits = [column[row] for column in (found.estimate, found.low, found.high)]
        assert limits == pytest.approx(expected, rel=1e-10)
    assert "do not differ detectably" in str(found)
    # A ratio is linearised around the bins: nearly the same as with them.
    ratios = estimated_performance(y, s, t, metrics=ALL[4:])
    binned = estimated_performance(y, s, t, metrics=ALL[4:], binning=6)
    assert ratios.estimate == pytest.approx(binned.estimate, abs=0.03)
    assert np.all(ratios.high - ratios.low < 1.1 * (binned.high - binned.low))
    # Weights count samples.
    count = rng.integers(0, 3, 120)
    counted = estimated_performance(y, s, t, sample_weight=count)
    repeated = estimated_performance(np.repeat(y, count), np.repeat(s, count), t)
    assert counted.low == pytest.approx(repeated.low, rel=1e-10)
    # Other scores, and `binning`, keep the bins.
    for other in (
        estimated_performance(y, s, t**2),
        estimated_performance(y, s, t, binning=6),
    ):
        assert "do not differ" not in str(other)


def test_useless_scores_cost_nothing_and_fifty_labels_always_have_limits():
    rng = np.random.default_rng(0)
    n_with_limits = 0
    for _ in range(150):
        scores, labels = rng.random(1000), rng.random(50) < 0.1
        if not 0 < labels.sum() < 50:
            continue
        found = estimated_performance(labels, scores[:50], scores)
        assert not np.isnan(found.low).any()
        n_with_limits += 1
    assert n_with_limits > 100
    labels = rng.random(200) < 0.6
    found = estimated_performance(
        labels, scores[:200], scores, metrics="event_frequency"
    )
    alone = 2 * 1.6525 * labels.std(ddof=1) / math.sqrt(200)  # t with 198 degrees
    # A slope that noise gives, and 1,000 new samples: sqrt(1 + 200 / 1,000).
    assert found.high[0] - found.low[0] == pytest.approx(alone * 1.2**0.5, rel=0.02)


def test_a_perfect_line_settles_nothing():
    rng = np.random.default_rng(0)
    verdict = (rng.random(500) < 0.5).astype(float)
    labelled = verdict[:60]
    metrics = ("accuracy", "event_frequency")
    found = estimated_performance(labelled, labelled, verdict, metrics=metrics)
    assert np.all(found.low < found.high)
    assert "do not differ" not in str(
        estimated_performance(verdict[:5], verdict[:5], verdict)
    )


_RANDOM_LABELS = {  # scores and event frequencies of a population, labels at random
    "score": lambda rng, n: _with_labels(rng, rng.beta(0.8, 0.5, n)),
    "verdict": lambda rng, n: _verdicts(rng, n),
    "noise": lambda rng, n: (rng.random(n), rng.random(n) < 0.64),
    "rare": lambda rng, n: _with_labels(rng, rng.beta(1, 19, n)),
}


def _with_labels(rng, scores):
    return scores, rng.random(len(scores)) < scores


def _verdicts(rng, n):
    labels = rng.random(n) < 0.64
    return (rng.random(n) < np.where(labels, 0.85, 0.25)).astype(float), labels


@pytest.mark.slow
@pytest.mark.parametrize("world", _RANDOM_LABELS)
@pytest.mark.parametrize("n", [50, 200])
def test_coverage_of_samples_labelled_at_random(world, n):
    """300 tables of 5,000 new samples: a standard error of .017."""
    rng = np.random.default_rng(n)
    held, widths, of_labels = [], [], []
    for _ in range(300):
        scores, labels = _RANDOM_LABELS[world](rng, n + 5000)
        if not 0 < labels[:n].sum() < n:
            continue
        found = estimated_performance(
            labels[:n], scores[:n], scores[n:], metrics="event_frequency"
        )
        held.append(found.low[0] <= labels[n:].mean() <= found.high[0])
        widths.append(found.high[0] - found.low[0])
        of_labels.append(2 * 1.6525 * labels[:n].std(ddof=1) / math.sqrt(n))
    assert not np.isnan(widths).any()
    assert 0.84 < np.mean(held) < 0.97
    most = {"score": 0.85, "verdict": 0.85, "noise": 1.05, "rare": 1.07}[world]
    assert np.mean(widths) < most * np.mean(of_labels)
