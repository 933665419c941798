"""The networks in the data folder: probabilities to calibrate on and to test with, and recalibrators for them."""

from functools import partial

import numpy as np

from skcalib import HistogramBinning, IsotonicCalibration, TemperatureScaling, VectorScaling
from skcalib.binning import EqualMass, EqualWidth
from skcalib.metrics import calibration_error, sweep_calibration_error

__all__ = ["ERRORS", "RECALIBRATORS", "confidence", "networks", "recalibrated_errors"]

RECALIBRATORS = {
    "temperature": TemperatureScaling,
    "vector": VectorScaling,
    "isotonic": IsotonicCalibration,
    "histogram": partial(HistogramBinning, EqualWidth(15), multiclass="top_label"),
}

# Top-label errors: of the confidence, given as one column.
ERRORS = {
    "EW": partial(calibration_error, norm=1, binning=EqualWidth(15), method="plugin"),
    "EM sweep": partial(sweep_calibration_error, norm=1),
    "EW, l2": partial(calibration_error, norm=2, binning=EqualWidth(15), method="plugin"),
    "EM sweep, l2": partial(sweep_calibration_error, norm=2),
    "EM debiased, l2": partial(calibration_error, norm=2, binning=EqualMass(15)),
}


def networks(data, *, vision_only=False):
    """Yield (name, calibration probabilities, labels, test probabilities, labels) of those with both sets."""
    for name in ("densenet40", "resnet50"):
        parts = []
        for part in ("val", "test"):
            with np.load(data / "vision" / f"cifar10_{name}_{part}.npz") as table:
                parts += [_softmax(table["logits"].astype(np.float64)), table["labels"].astype(int)]
        yield f"{name}_c10", *parts
    for file in () if vision_only else ("sst2", "clinc150"):
        with np.load(data / "text" / f"{file}.npz") as table:
            models = sorted({key.split("/")[1] for key in table if key.startswith(file + "/")})
            for model in models:
                keys = [f"{file}/{model}/{kind}_{part}" for part in ("cal", "test") for kind in ("probs", "labels")]
                yield f"{file}/{model}", *(table[key] for key in keys)


def confidence(probabilities, labels):
    """Return whether the predicted class is right, and its probability."""
    predicted = probabilities.argmax(axis=1)
    return labels == predicted, np.take_along_axis(probabilities, predicted[:, None], axis=1)[:, 0].astype(np.float64)


def recalibrated_errors(data, **options):
    """Return the errors on the test rows: {network: {recalibrator: {error: value}}}, "uncalibrated" included."""
    found = {}
    for name, scores, labels, test_scores, test_labels in networks(data, **options):
        classes = np.arange(scores.shape[1])
        predicted = {"uncalibrated": test_scores}
        for method, make in RECALIBRATORS.items():
            model = make(classes=None if len(np.unique(labels)) == len(classes) else classes)
            predicted[method] = model.fit(scores, labels).predict_proba(test_scores)
        found[name] = {
            method: {error: metric(*confidence(values, test_labels)) for error, metric in ERRORS.items()}
            for method, values in predicted.items()
        }
    return found


def _softmax(logits):
    values = np.exp(logits - logits.max(axis=1, keepdims=True))
    return values / values.sum(axis=1, keepdims=True)
