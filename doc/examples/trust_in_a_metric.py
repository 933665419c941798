"""Which calibration metric can be trusted with this many samples? Bias and power of
metrics for scores like yours.

On 1,500 held-out samples, the calibration error is .03. Is that due to the model or the
metric?
"""

from scipy import stats

from skcalib.metrics import (
    calibration_error,
    expected_calibration_error,
    get_scorer_names,
    kuiper_calibration_error,
)
from skcalib.simulation import (
    CalibrationModel,
    GlmCurve,
    PowerCurve,
    fit_calibration_curve,
    fit_score_distribution,
)

METRICS = {
    "expected_calibration_error": lambda y, p: expected_calibration_error(y, p, norm=2),
    "calibration_error": calibration_error,
}


def main(n_simulations=200):
    """Run the example. Return the fitted model of the scores, the model that they were
    drawn from, the bias of each metric and the power of the test.
    """
    print(
        "Scorers to choose from:",
        ", ".join(
            name for name in get_scorer_names() if name.endswith("calibration_error")
        ),
    )
    # A stand-in for your own model: only its scores and labels are used. The parameters
    # are those of a ResNet-110 on CIFAR-10 (Roelofs et al. 2022, Tables 1 and 2).
    network = CalibrationModel(
        stats.beta(2.7752, 0.0478), GlmCurve("logflip", "logflip", -0.24, 0.30)
    )
    scores, labels = network.sample(1500, random_state=0)

    fits = fit_calibration_curve(scores, labels)
    fitted = CalibrationModel(fit_score_distribution(scores), fits.curve)
    print(f"{fits.table[0].name} has the lowest AIC: {fitted}")
    errors = fitted.true_calibration_error(), network.true_calibration_error()
    print(f"True error of the fit: {errors[0]:.3f}, of the network: {errors[1]:.3f}")

    # With the same scores but calibrated, the mean of a metric is its bias.
    calibrated = CalibrationModel(fitted.score_distribution, PowerCurve(1))
    bias = calibrated.estimator_bias(
        METRICS, len(scores), n_simulations, random_state=0
    )
    for name, result in bias.items():
        print(
            f"{name}: mean {result.mean:.4f} for a calibrated model with"
            f" {len(scores):,} samples"
        )

    # Power: how often does the test detect a curve that is off by .02 at scores of .5?
    off = CalibrationModel(stats.beta(2, 2), GlmCurve("logit", "logit", 0.08, 1.0))
    metric = kuiper_calibration_error
    power = {
        n: off.detection_rate(metric, n, n_simulations, random_state=0)
        for n in (500, 5000, 50_000)
    }
    print(
        "Detected:",
        ", ".join(
            f"{rate:.0%} of data sets with {n:,} samples" for n, rate in power.items()
        ),
    )
    return fitted, network, bias, power


if __name__ == "__main__":
    main()
