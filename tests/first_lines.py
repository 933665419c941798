"""The first line that each result and each fitted object prints, one below the other.

``python tests/first_lines.py`` prints them for the frozen rows of the registry: read
them as a person does who prints a result and then acts.
"""

import sys
import warnings
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

from _golden_results import results  # noqa: E402
from sklearn.naive_bayes import GaussianNB  # noqa: E402

import skcalib  # noqa: E402
from skcalib import decisions, evaluation, metrics, monitoring  # noqa: E402


def first_lines():
    """Yield the name of each result, and the first line of what it prints."""
    for name, result in results():
        is_plain = isinstance(result, (np.ndarray, np.generic, dict, list, float, str))
        if not is_plain and type(result).__str__ is not object.__str__:
            yield name, str(result).split("\n")[0]
    for name, printed in fitted_objects().items():
        yield name, str(printed).split("\n")[0]


def fitted_objects():
    """Return objects with a state, and results of typical samples, by name."""
    rng = np.random.default_rng(0)
    p = rng.beta(1, 2, 1500)
    y = (rng.random(1500) < p**1.3).astype(int)
    group = np.where(rng.random(1500) < 0.3, "north", "south")
    features = np.column_stack((p, rng.normal(size=1500)))
    measured = skcalib.Recalibrator(skcalib.PlattScaling()).fit(p, y)
    groups = monitoring.GroupMonitors()
    wrapped = skcalib.RecalibratedClassifierCV(
        GaussianNB(), recalibrator=skcalib.PlattScaling()
    )
    bins = skcalib.UniformMassBinning(epsilon=0.1).fit(p, y)
    certified = {"promise": "precision", "target": 0.7}
    few = decisions.certified_threshold(y[:50], p[:50], **certified)
    return {
        "monitor, calibrated": monitoring.CalibrationMonitor().partial_fit(p, y),
        "monitor, too low": monitoring.CalibrationMonitor().partial_fit(p**2, y),
        "group monitors": groups.partial_fit(p**2, y, group),
        "PlattScaling": skcalib.PlattScaling().fit(p, y),
        "Recalibrator": measured,
        "gain_": measured.gain_,
        "RecalibratedClassifierCV": wrapped.fit(features, y),
        "certificate": bins.certificate(),
        "certified_threshold": decisions.certified_threshold(y, p, **certified),
        "certified_threshold, few samples": few,
        "calibration_error_interval": metrics.calibration_error_interval(
            y, p, random_state=0
        ),
        "calibration_by_group": metrics.calibration_by_group(
            y, p, group, random_state=0
        ),
        "calibration_slope_intercept": metrics.calibration_slope_intercept(y, p),
        "compare": evaluation.compare(y, {"a": p, "b": p**1.2}, random_state=0),
        "net_benefit": decisions.net_benefit(y, p, thresholds=[0.1, 0.2, 0.5]),
    }


def main():
    """Print the listing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, line in first_lines():
            print(f"{name}\n    {line}")


if __name__ == "__main__":
    main()
