"""Simulated scores with a known truth: true errors against closed forms, samples
against their law, fits.
"""

from functools import partial

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import betainc, betaln, digamma, expit

from benchmarks.papers._curves import NoisyPlattCurve
from benchmarks.papers._known_models import roelofs_models
from skcalib import PlattScaling
from skcalib.binning import EqualMass, EqualWidth
from skcalib.metrics import calibration_error, expected_calibration_error
from skcalib.simulation import (
    CalibrationModel,
    GlmCurve,
    PlattCurve,
    PowerCurve,
    fit_calibration_curve,
    fit_score_distribution,
)
from skcalib.simulation._quadrature import ScoreLaw, _lobatto

PLUGIN = partial(calibration_error, norm=2, method="plugin", binning=EqualWidth(15))


def _beta_moment(a, b, r, q=0.0):
    """E S^r (1 - S)^q of Beta(a, b)."""
    return np.exp(betaln(a + r, b + q) - betaln(a, b))


# --- the quadrature ---


def test_nodes_of_five_points_in_closed_form():
    """Abramowitz and Stegun, 25.4.32: 0 and +-sqrt(3 / 7), weights 32/45, 49/90 and
    1/10.
    """
    nodes, weights = _lobatto(5)
    inner = np.sqrt(3 / 7)
    np.testing.assert_allclose(nodes, [-1, -inner, 0, inner, 1], rtol=2e-9, atol=1e-15)
    np.testing.assert_allclose(weights, [0.1, 49 / 90, 32 / 45, 49 / 90, 0.1])


@pytest.mark.parametrize("n_nodes", [3, 7, 11, 16])
def test_the_quadrature_is_real_and_exact_for_polynomials(n_nodes):
    """n Gauss-Lobatto nodes integrate x^k exactly up to k = 2 n - 3."""
    nodes, weights = _lobatto(n_nodes)
    assert nodes.dtype == weights.dtype == np.float64
    nodes = nodes / (1 - 1e-9)  # the ends were moved inside
    for power in range(2 * n_nodes - 2):
        exact = (1 - (-1) ** (power + 1)) / (power + 1)
        assert weights @ nodes**power == pytest.approx(exact, abs=1e-13)
    # one degree more is not integrated exactly
    power = 2 * n_nodes - 2
    assert abs(weights @ nodes**power - 2 / (power + 1)) > 1e-9


def test_no_roots_by_a_companion_matrix(monkeypatch):
    """NumPy 2.5 gives complex roots there."""

    def complex_roots(self):
        return np.zeros(self.degree(), dtype=np.complex128)

    monkeypatch.setattr(np.polynomial.Legendre, "roots", complex_roots)
    _lobatto.cache_clear()
    model = CalibrationModel(stats.uniform(), PowerCurve(2))
    # E |S - S^2| = 1/2 - 1/3
    assert model.true_calibration_error(norm=1) == pytest.approx(1 / 6, rel=1e-9)
    _lobatto.cache_clear()


# --- the true error ---


@pytest.mark.parametrize("d", [1, 2, 3.5])
def test_true_error_of_uniform_scores_and_a_power(d):
    # integral of (s - s^d)^2 = 1/3 - 2/(d + 2) + 1/(2 d + 1), and of s - s^d = 1/2 -
    # 1/(d + 1)
    model = CalibrationModel(stats.uniform(), PowerCurve(d))
    assert model.true_calibration_error() == pytest.approx(
        (1 / 3 - 2 / (d + 2) + 1 / (2 * d + 1)) ** 0.5, abs=1e-10
    )
    assert model.true_calibration_error(1) == pytest.approx(
        1 / 2 - 1 / (d + 1), abs=1e-10
    )
    # s - s^d is largest where d s^(d-1) = 1
    peak = d ** (-1 / (d - 1)) if d > 1 else 0.0
    assert model.true_calibration_error(np.inf) == pytest.approx(
        peak - peak**d, abs=1e-10
    )


@pytest.mark.parametrize(
    ("a", "b"),
    [(2.8, 0.05), (0.01, 5), (1e-3, 2e-3), (2.7, 1e-4), (200, 300), (1.1, 0.1)],
)
def test_true_error_of_extreme_beta_scores_and_a_power(a, b):
    # E (S - S^d)^2 in moments of the Beta distribution, here for d = 2.
    truth = (
        _beta_moment(a, b, 2) - 2 * _beta_moment(a, b, 3) + _beta_moment(a, b, 4)
    ) ** 0.5
    assert CalibrationModel(
        stats.beta(a, b), PowerCurve(2)
    ).true_calibration_error() == pytest.approx(truth, abs=1e-10)


@pytest.mark.parametrize(
    "name",
    ["resnet110_c10", "resnet110_c100", "resnet_wide32_c100", "resnet152_imgnet"],
)
def test_true_error_with_the_link_logflip(name):
    # s - T(s) = e^b0 (1 - s)^b1 - (1 - s): its square in moments E (1 - S)^q.
    model = roelofs_models()[name]
    (a, b), curve = model.score_distribution.args, model.calibration_curve
    scale, slope = np.exp(curve.intercept), curve.slope
    truth = (
        scale**2 * _beta_moment(a, b, 0, 2 * slope)
        - 2 * scale * _beta_moment(a, b, 0, 1 + slope)
        + _beta_moment(a, b, 0, 2)
    )
    assert model.true_calibration_error() == pytest.approx(truth**0.5, abs=1e-10)


# mpmath 1.4, 40 digits: Gauss-Legendre over u = (1 - s)^b above s = 1/2 and over v =
# s^a below, split at the scores at which T(s) = s.
HIGH_PRECISION = {
    "resnet110_SD_c10": (0.053185689606024, 0.10153211708456),
    "resnet_wide32_c10": (0.056237864457644, 0.10126454678655),
    "densenet40_c10": (0.059001187218708, 0.10371976253727),
    "resnet110_SD_c100": (0.13071379120088, 0.18518915762013),
    "densenet40_c100": (0.16437155469978, 0.23358884908586),
    "resnet110_c10": (0.058370534488014, 0.10708732031698),
    "densenet161_imgnet": (0.065022517207604, 0.068028169671888),
}


@pytest.mark.parametrize("name", HIGH_PRECISION)
def test_true_error_against_40_digits(name):
    model = roelofs_models()[name]
    for norm, truth in zip((1, 2), HIGH_PRECISION[name], strict=True):
        assert model.true_calibration_error(norm) == pytest.approx(truth, abs=1e-10)


def _error_by_density(a, b, curve, norm):
    """The plain twin: scipy's quad over u = (1 - s)^b and v = s^a, in which the density
    is bounded.
    """

    def upper(u):
        complement = u ** (1 / b)
        score = 1 - complement
        return abs(score - curve(score, complement)) ** norm * score ** (a - 1) / b

    def lower(v):
        score = v ** (1 / a)
        return abs(score - curve(score, 1 - score)) ** norm * (1 - score) ** (b - 1) / a

    pieces = [
        quad(function, 0, 0.5**power, epsabs=1e-13, limit=500)[0]
        for function, power in ((upper, b), (lower, a))
    ]
    return (sum(pieces) / np.exp(betaln(a, b))) ** (1 / norm)


@pytest.mark.parametrize("norm", [1, 1.5, 2, 4])
@pytest.mark.parametrize("b", [0.02, 0.3, 2.0])
def test_true_error_against_another_quadrature(b, norm):
    curve = GlmCurve("logit", "logflip", -0.3, -0.4)
    expected = _error_by_density(1.7, b, curve, norm)
    model = CalibrationModel(stats.beta(1.7, b), curve)
    assert model.true_calibration_error(norm) == pytest.approx(expected, abs=1e-8)


def test_true_error_of_a_calibrated_model_is_zero():
    for curve in (
        PowerCurve(1),
        GlmCurve("logit", "logit", 0, 1),
        GlmCurve("log", "log", 0, 1),
    ):
        for norm in (1, 2, 3, np.inf):
            assert (
                CalibrationModel(stats.beta(2, 0.04), curve).true_calibration_error(
                    norm
                )
                < 1e-10
            )


def test_true_error_of_a_binned_model():
    # Gupta and Ramdas, Example 1: l1 = .9 .1 + .1 .2 = .11, l2^2 = .9 .01 + .1 .04 =
    # .013.
    scores = stats.rv_discrete(values=([0.2, 0.8], [0.9, 0.1]))
    model = CalibrationModel(scores, lambda s: np.where(s < 0.5, 0.3, 0.6))
    assert model.true_calibration_error(1) == pytest.approx(0.11)
    assert model.true_calibration_error(2) == pytest.approx(0.013**0.5)
    assert model.true_calibration_error(np.inf) == pytest.approx(0.2)
    drawn, y = model.sample(20_000, random_state=0)
    assert set(np.unique(drawn)) == {0.2, 0.8}
    assert y[drawn == 0.2].mean() == pytest.approx(0.3, abs=4 * (0.21 / 18_000) ** 0.5)


def test_true_error_sees_jumps():
    # T = .2 below .37 and .6 above: integral of (s - .2)^2 is (.17^3 + .2^3) / 3, of (s
    # - .6)^2 (.4^3 + .23^3) / 3.
    model = CalibrationModel(stats.uniform(), lambda s: np.where(s < 0.37, 0.2, 0.6))
    truth = (0.17**3 + 0.2**3 + 0.4**3 + 0.23**3) / 3
    assert model.true_calibration_error() == pytest.approx(truth**0.5, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("n_cells", [100, 1000])
def test_true_error_of_a_noisy_curve_with_and_without_its_breakpoints(n_cells):
    noisy, smooth = NoisyPlattCurve(2, 1, n_cells=n_cells), PlattCurve(2, 1)
    cells = zip(noisy.breakpoints[:-1], noisy.breakpoints[1:], strict=True)
    total = 0.0
    # 20 Gauss-Legendre nodes a cell, in which the curve is smooth
    for low, high in cells:
        nodes, weights = np.polynomial.legendre.leggauss(20)
        points = (low + high) / 2 + (high - low) / 2 * nodes
        total += weights @ (points - noisy(points)) ** 2 * (high - low) / 2 / 0.5
    scores = stats.uniform(0.25, 0.5)
    assert CalibrationModel(scores, noisy).true_calibration_error() == pytest.approx(
        total**0.5, abs=1e-10
    )
    unknown = CalibrationModel(scores, lambda s: noisy(s))
    assert unknown.true_calibration_error() == pytest.approx(total**0.5, abs=1e-8)
    assert np.abs(
        noisy(np.linspace(0.25, 0.75, 999)) - smooth(np.linspace(0.25, 0.75, 999))
    ) == pytest.approx(0.02)


@pytest.mark.slow
def test_a_curve_without_end_of_jumps_is_refused():
    model = CalibrationModel(stats.uniform(), lambda s: (np.sin(1e12 * s) + 1) / 2)
    with pytest.raises(ValueError, match="breakpoints"):
        model.true_calibration_error()


@pytest.mark.parametrize(
    "distribution",
    [
        stats.uniform(0.2, 0.3),
        stats.truncnorm(-1, 1, loc=0.5, scale=0.2),
        stats.beta(2, 3, 0.1, 0.5),
    ],
)
def test_true_error_of_other_distributions(distribution):
    low, high = distribution.support()
    truth = quad(
        lambda s: (s - s**2) ** 2 * distribution.pdf(s), low, high, epsabs=1e-14
    )[0]
    model = CalibrationModel(distribution, PowerCurve(2))
    assert model.true_calibration_error() == pytest.approx(truth**0.5, abs=1e-9)
    scores, _ = model.sample(1000, random_state=0)
    assert stats.kstest(scores, distribution.cdf).pvalue > 1e-4


# --- samples ---


def test_sample_has_the_law_of_the_scores_to_the_last_digit():
    a, b = 2.8, 0.05
    scores, complement = ScoreLaw(stats.beta(a, b)).sample(
        100_000, np.random.default_rng(0)
    )
    # E log(1 - S) = digamma(b) - digamma(a + b), about -21: half of it comes from
    # scores that round to 1.
    error = np.log(complement).std() / len(scores) ** 0.5
    assert np.log(complement).mean() == pytest.approx(
        digamma(b) - digamma(a + b), abs=4 * error
    )
    # A score rounds to 1 from 1 - 2^-54 on.
    at_one = betainc(b, a, 2.0**-54)
    assert np.mean(scores == 1) == pytest.approx(
        at_one, abs=4 * (at_one / len(scores)) ** 0.5
    )
    assert stats.kstest(complement, stats.beta(b, a).cdf).pvalue > 1e-4


def test_sample_gives_labels_by_the_curve():
    model = CalibrationModel(
        stats.beta(2.8, 0.05), GlmCurve("logit", "logflip", -0.3, -0.05)
    )
    scores, y = model.sample(200_000, random_state=1)
    assert scores.dtype == np.float64
    assert scores.min() >= 0
    assert scores.max() == 1
    assert set(np.unique(y)) == {0, 1}
    # Where the score reads 1 its complement still counts: T lies between expit(-.3 +
    # .05 * 37.4) and 1.
    complement = stats.beta(0.05, 2.8).ppf(
        np.linspace(0, betainc(0.05, 2.8, 2.0**-54), 20_001)[1:]
    )
    expected = expit(-0.3 - 0.05 * np.log(complement)).mean()
    at_one = scores == 1
    assert y[at_one].mean() == pytest.approx(
        expected, abs=4 * 0.3 / at_one.sum() ** 0.5
    )
    # so that labels drawn for a score of exactly 1 would have been caught
    assert expected < 0.97


@pytest.mark.parametrize(
    "random_state", [3, np.random.RandomState(3), np.random.default_rng(3), None]
)
def test_sample_takes_any_random_state(random_state):
    model = roelofs_models()["densenet40_c100"]
    scores, y = model.sample(50, random_state)
    assert scores.shape == y.shape == (50,)
    if isinstance(random_state, int):
        np.testing.assert_array_equal(model.sample(50, random_state)[0], scores)


# --- simulations ---


def test_estimator_bias_is_the_plain_loop():
    model = CalibrationModel(stats.uniform(), PowerCurve(2))
    result = model.estimator_bias(PLUGIN, n=100, n_simulations=30, random_state=5)
    values = []
    for seed in np.random.SeedSequence(5).spawn(30):
        rng = np.random.default_rng(seed)
        scores = stats.uniform().rvs(size=100, random_state=rng)
        y = rng.random(100) < scores**2
        gaps = 0.0
        for j in range(15):
            inside = (scores > j / 15) & (scores <= (j + 1) / 15)
            if inside.any():
                gaps += inside.mean() * (scores[inside].mean() - y[inside].mean()) ** 2
        values.append(gaps**0.5)
    truth = 30**-0.5  # integral of (s - s^2)^2 is 1/30
    assert result.mean == pytest.approx(np.mean(values))
    assert result.bias == pytest.approx(np.mean(values) - truth)
    assert result.variance == pytest.approx(np.var(values, ddof=1))
    assert result.standard_error == pytest.approx(np.std(values, ddof=1) / 30**0.5)
    assert result.true_error == pytest.approx(truth)


@pytest.mark.slow
def test_simulations_do_not_depend_on_the_number_of_jobs():
    model = roelofs_models()["resnet110_c10"]
    arguments = {"n": 60, "n_simulations": 20, "random_state": 0}
    np.testing.assert_array_equal(
        model.estimates(PLUGIN, **arguments, n_jobs=2),
        model.estimates(PLUGIN, **arguments),
    )
    together = model.estimates(
        {"a": PLUGIN, "b": expected_calibration_error}, **arguments
    )
    np.testing.assert_array_equal(together["a"], model.estimates(PLUGIN, **arguments))


def test_progress_goes_to_stderr_where_asked(capfd):
    model = CalibrationModel(stats.uniform(), PowerCurve(2))
    model.estimates(PLUGIN, 20, 10, random_state=0)
    assert capfd.readouterr() == ("", "")
    model.estimates(PLUGIN, 20, 10, random_state=0, verbose=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("[simulation] 1 of 10 batches of samples")


@pytest.mark.slow
def test_detection_rate():
    metric = partial(calibration_error, norm=2, method="plugin", binning=EqualMass(10))
    rate = {
        d: (
            CalibrationModel(stats.uniform(), PowerCurve(d)).detection_rate(
                metric, 200, 400, random_state=0
            )
        )
        for d in (1, 1.5, 2.5)
    }
    # threshold and rate each have a sampling error
    assert abs(rate[1] - 0.05) < 4 * (0.05 * 0.95 * 2 / 400) ** 0.5
    assert rate[1] < rate[1.5] < rate[2.5]
    assert rate[2.5] > 0.95
    strict = CalibrationModel(stats.uniform(), PowerCurve(1.5)).detection_rate(
        {"m": metric}, 200, 400, significance_level=0.01, random_state=0
    )
    assert strict["m"] < rate[1.5]


# Roelofs et al., Figure 4: bias in % of the equal-width l2 error for resnet110_c10,
# (bins, n).
FIGURE_4 = {(2, 200): -4.34, (16, 800): -1.12, (64, 400): 3.32}


@pytest.mark.slow
@pytest.mark.parametrize("cell", FIGURE_4)
def test_bias_of_the_paper(cell):
    n_bins, n = cell
    metric = partial(PLUGIN, binning=EqualWidth(n_bins))
    result = roelofs_models()["resnet110_c10"].estimator_bias(
        metric, n, 600, random_state=0
    )
    assert 100 * result.bias == pytest.approx(
        FIGURE_4[cell], abs=max(0.15, 300 * result.standard_error)
    )


# --- fits ---


def test_beta_fit_is_the_maximum_of_the_likelihood():
    scores = np.random.default_rng(0).beta(2, 5, 2000)
    a, b, _, _ = stats.beta.fit(scores, floc=0, fscale=1)
    assert fit_score_distribution(scores).args == pytest.approx((a, b), rel=1e-6)


@pytest.mark.parametrize(("a", "b"), [(2.8, 0.05), (0.03, 1.2), (0.05, 0.05)])
def test_beta_fit_of_scores_that_round_to_the_ends(a, b):
    estimates = []
    for seed in range(20):
        scores, _ = CalibrationModel(stats.beta(a, b), PowerCurve(1)).sample(
            2000, random_state=seed
        )
        assert ((scores == 1).sum() > 100) == (b < 0.1)
        estimates.append(fit_score_distribution(scores).args)
    mean, error = (
        np.mean(estimates, axis=0),
        np.std(estimates, axis=0, ddof=1) / 20**0.5,
    )
    # maximum likelihood is biased by 1/n
    assert (np.abs(mean - (a, b)) < 4 * error + 0.005 * np.array([a, b])).all()


def test_beta_fit_is_symmetric_and_knows_its_dtype():
    scores, _ = CalibrationModel(stats.beta(2.8, 0.05), PowerCurve(1)).sample(
        20_000, random_state=0
    )
    a, b = fit_score_distribution(scores).args
    assert fit_score_distribution(1 - scores).args == pytest.approx((b, a), rel=1e-6)
    for dtype in (np.float32, np.float16):
        assert fit_score_distribution(scores.astype(dtype)).args == pytest.approx(
            (a, b), rel=0.03
        )
    single = scores.astype(np.float32)
    same = fit_score_distribution(single.astype(np.float64), resolution=2.0**-25)
    assert same.args == pytest.approx(fit_score_distribution(single).args, rel=1e-6)


def test_a_few_exact_zeros_move_the_beta_fit_a_little():
    scores = np.random.default_rng(0).beta(2, 5, 5000)
    with_zeros = fit_score_distribution(np.append(scores, [0.0, 0.0]))
    assert with_zeros.args == pytest.approx(
        fit_score_distribution(scores).args, rel=0.1
    )


@pytest.mark.parametrize(
    "scores",
    [[0.3], [0.4, 0.4], [0, 1, 1], [0.2, 1.3], [np.nan, 0.5], [[0.3, 0.7]], ["a", "b"]],
)
def test_beta_fit_refuses(scores):
    with pytest.raises(ValueError, match="scores"):
        fit_score_distribution(scores)


def test_curve_fit_is_the_maximum_of_the_likelihood():
    scores, y = roelofs_models()["resnet110_c10"].sample(3000, random_state=0)
    table = {fit.name: fit for fit in fit_calibration_curve(scores, y).table}
    assert len(table) == 9
    clipped = np.clip(scores, 2.0**-52, 1 - 2.0**-52)
    for name, fit in table.items():
        curve = fit.curve
        probability = np.clip(curve(clipped), 1e-300, 1)
        log_likelihood = np.sum(
            np.where(
                y, np.log(probability), np.log1p(-np.minimum(probability, 1 - 1e-16))
            )
        )
        assert fit.log_likelihood == pytest.approx(log_likelihood, abs=1e-4)
        assert fit.aic == pytest.approx(2 * fit.n_parameters - 2 * fit.log_likelihood)
        if name == "constant_b0":
            continue

        def loss(coefficients, curve=curve, free=name[-5:]):
            intercept, slope = (
                coefficients if free == "b0_b1" else (0.0, coefficients[0])
            )
            try:
                values = GlmCurve(curve.link, curve.transform, intercept, slope)(
                    clipped
                )
            except ValueError:
                return np.inf
            values = np.clip(values, 1e-15, 1 - 1e-15)
            return -np.sum(np.where(y, np.log(values), np.log1p(-values)))

        start = (
            (curve.intercept, curve.slope) if name.endswith("b0_b1") else (curve.slope,)
        )
        found = minimize(
            loss,
            np.multiply(start, 1.05) - 1e-3,
            method="Nelder-Mead",
            options={"xatol": 1e-6},
        )
        assert fit.log_likelihood >= -found.fun - 1e-4  # nobody finds a better one
    platt = PlattScaling(smooth_targets=False).fit(scores, y)
    logistic = table["logit_logit_b0_b1"].curve
    assert (logistic.intercept, logistic.slope) == pytest.approx(
        (platt.intercept_, platt.slope_), rel=1e-4
    )


@pytest.mark.parametrize(
    "name",
    ["resnet110_c10", "resnet110_SD_c100", "resnet152_imgnet", "densenet161_imgnet"],
)
@pytest.mark.slow
def test_curve_fit_recovers_the_model(name):
    model = roelofs_models()[name]
    fits = fit_calibration_curve(*model.sample(100_000, random_state=0))
    truth = model.calibration_curve
    assert (fits.curve.link, fits.curve.transform) == (truth.link, truth.transform)
    assert fits.curve.intercept == pytest.approx(truth.intercept, abs=0.05)
    assert fits.curve.slope == pytest.approx(truth.slope, rel=0.05)
    assert [fit.aic for fit in fits.table] == sorted(fit.aic for fit in fits.table)


def test_curve_fit_takes_any_two_labels():
    scores, y = roelofs_models()["densenet161_imgnet"].sample(500, random_state=0)
    names = np.where(y == 1, "right", "a mistake")
    assert fit_calibration_curve(scores, names) == fit_calibration_curve(scores, y)


@pytest.mark.parametrize(
    ("scores", "y", "match"),
    [
        ([0.1, 0.2], [0, 0], "label|class"),
        ([0.1, 0.2], [0, 1, 1], "shape"),
        ([0.2, 0.2, 0.2], [0, 1, 1], "not all be equal"),
        ([0.1, 2.0], [0, 1], "scores"),
        ([0.1, 0.2, 0.3], [0, 1, 2], "classes"),
    ],
)
def test_curve_fit_refuses(scores, y, match):
    with pytest.raises(ValueError, match=match):
        fit_calibration_curve(scores, y)


# --- curves and refusals ---


def test_curves_at_the_ends():
    ends = np.array([0.0, 1.0])
    assert GlmCurve("logit", "logit", 0.3, 0.5)(ends).tolist() == [0, 1]
    assert GlmCurve("logit", "logflip", 0, -0.26)(ends).tolist() == [0.5, 1]
    assert GlmCurve("log", "log", np.log(0.5), 2)(ends).tolist() == [0, 0.5]
    assert GlmCurve("logflip", "logflip", 0, 2)(ends).tolist() == [0, 1]
    assert GlmCurve("logit", "logit", 0, 0)(ends).tolist() == [0.5, 0.5]
    # exp(.2) > 1 and 1 - exp(.2) < 0 without the clip
    assert GlmCurve("log", "log", 0.2, 1)(ends).tolist() == [0, 1]
    assert GlmCurve("logflip", "logflip", 0.2, 1)(ends).tolist() == [0, 1]


def test_curve_uses_the_exact_complement():
    # T = 1 - (1 - s)^.1 at 1 - s = 1e-30: .999, where the score alone says 1.
    curve = GlmCurve("logflip", "logflip", 0, 0.1)
    assert curve(1.0, 1e-30) == pytest.approx(1 - 1e-3)
    assert curve(1.0) == 1


def _model(curve):
    return CalibrationModel(stats.uniform(), curve)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: CalibrationModel(stats.beta, PowerCurve(1)), TypeError, "frozen"),
        (
            lambda: CalibrationModel([0.5], PowerCurve(1)),
            TypeError,
            "score_distribution",
        ),
        (
            lambda: CalibrationModel(stats.norm(), PowerCurve(1)),
            ValueError,
            r"support in \[0, 1\]",
        ),
        (lambda: _model(0.5), TypeError, "calibration_curve"),
        (lambda: _model(lambda s: 2 * s).sample(9), ValueError, r"stay in \[0, 1\]"),
        (
            lambda: _model(lambda s: 0.5).sample(9),
            ValueError,
            "one probability per score",
        ),
        (
            lambda: _model(lambda s: s * np.nan).true_calibration_error(),
            ValueError,
            "nan",
        ),
        (lambda: _model(PowerCurve(2)).true_calibration_error(0.5), ValueError, "norm"),
        (lambda: _model(PowerCurve(2)).sample(0), ValueError, "n must be"),
        (
            lambda: _model(PowerCurve(2)).estimates(PLUGIN, 10, 0),
            ValueError,
            "n_simulations",
        ),
        (
            lambda: _model(PowerCurve(2)).estimator_bias(PLUGIN, 10, 1),
            ValueError,
            "at least 2",
        ),
        (
            lambda: _model(PowerCurve(2)).estimates(lambda y, s: np.nan, 10, 3),
            ValueError,
            "finite",
        ),
        (
            lambda: _model(PowerCurve(2)).detection_rate(
                PLUGIN, 10, 3, significance_level=5
            ),
            ValueError,
            "significance",
        ),
        (lambda: PowerCurve(0), ValueError, "d must be"),
        (lambda: GlmCurve("probit", "log", 0, 1), ValueError, "link"),
        (lambda: GlmCurve("log", "log", np.nan, 1), ValueError, "finite"),
        (lambda: NoisyPlattCurve(2, 1, noise=0.4), ValueError, "noise"),
        (lambda: NoisyPlattCurve(2, 1, n_cells=0), ValueError, "n_cells"),
        (
            lambda: fit_score_distribution([0.2, 0.3], resolution=0.7),
            ValueError,
            "resolution",
        ),
    ],
)
def test_refusals(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_models_of_the_paper():
    models = roelofs_models()
    assert len(models) == 10
    assert models["resnet110_c10"].score_distribution.args == (2.7752, 0.0478)
    assert models["densenet40_c10"].calibration_curve == GlmCurve(
        "logit", "logflip", 0.0, -0.26
    )
    assert "beta(2.7752, 0.0478)" in repr(models["resnet110_c10"])
    scores = np.linspace(0, 1, 101)
    # overconfident networks: the curve rises, and ends below the score
    for model in models.values():
        probability = model.calibration_curve(scores)
        assert (np.diff(probability) >= 0).all()
        assert probability[95] < scores[95]


def test_scores_of_a_discrete_distribution():
    model = CalibrationModel(stats.bernoulli(0.25), lambda scores: 0.2 + 0.5 * scores)
    assert model.true_calibration_error() == pytest.approx(
        (0.75 * 0.2**2 + 0.25 * 0.3**2) ** 0.5, abs=1e-12
    )
