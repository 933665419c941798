"""Which calibration metric can be trusted with this many samples? Bias and power of
metrics for scores like yours.

A held-out sample of 1,500 rows says "calibration error .03". Is that the model or the
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
    """Do the job, and return the model of one's scores, the bias of each metric and the
    power of the test.
    """
    print(
        "Scorers to choose from:",
        ", ".join(
            name for name in get_scorer_names() if name.endswith("calibration_error")
        ),
    )
    # It stands for your own model: its scores and labels are all we see. The numbers
    # are those of a ResNet-110 on CIFAR-10 (Roelofs et al. 2022, Tables 1 and 2).
    network = CalibrationModel(
        stats.beta(2.7752, 0.0478), GlmCurve("logflip", "logflip", -0.24, 0.30)
    )
    scores, labels = network.sample(1500, random_state=0)

    fits = fit_calibration_curve(scores, labels)
    fitted = CalibrationModel(fit_score_distribution(scores), fits.curve)
    print(f"{fits.table[0].name} has the least AIC: {fitted}")
    errors = fitted.true_calibration_error(), network.true_calibration_error()
    print(f"True error of the fit: {errors[0]:.3f}, of the network: {errors[1]:.3f}")

    # The same scores, calibrated: what a metric shows then is its bias.
    calibrated = CalibrationModel(fitted.score_distribution, PowerCurve(1))
    bias = calibrated.estimator_bias(
        METRICS, len(scores), n_simulations, random_state=0
    )
    for name, result in bias.items():
        print(
            f"{name}: a calibrated model shows {result.mean:.4f} on {len(scores):,}"
            " rows"
        )

    # And the other way round: a curve that is off by .02 at scores of .5. How often is
    # that seen?
    off = CalibrationModel(stats.beta(2, 2), GlmCurve("logit", "logit", 0.08, 1.0))
    metric = kuiper_calibration_error
    power = {
        n: off.detection_rate(metric, n, n_simulations, random_state=0)
        for n in (500, 5000, 50_000)
    }
    print(
        "Detected:",
        ", ".join(f"{rate:.0%} of samples of {n:,} rows" for n, rate in power.items()),
    )
    return fitted, network, bias, power


if __name__ == "__main__":
    main()
