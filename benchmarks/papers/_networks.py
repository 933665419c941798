"""The networks in the data folder: probabilities to calibrate on and to test with, and
the paper's recalibrators.
"""

from functools import partial

import numpy as np

from skcalib import HistogramBinning, IsotonicCalibration, TemperatureScaling
from skcalib.binning import EqualWidth
from skcalib.metrics import calibration_error, sweep_calibration_error

__all__ = [
    "ERRORS",
    "RECALIBRATORS",
    "confidence",
    "fitted",
    "networks",
    "single_precision",
    "softmax",
]

# The three methods of Roelofs et al.
RECALIBRATORS = {
    "temperature": partial(TemperatureScaling, clip=None),
    "isotonic": IsotonicCalibration,
    "histogram": partial(HistogramBinning, EqualWidth(15), multiclass="top_label"),
}

# Top-label errors: of the confidence, given as one column.
ERRORS = {
    "EW": partial(calibration_error, norm=1, binning=EqualWidth(15), method="plugin"),
    "EM sweep": partial(sweep_calibration_error, norm=1),
}


def networks(data, *, vision_only=False):
    """Yield (name, calibration probabilities, labels, test probabilities, labels) of
    those with both sets.
    """
    for name in ("densenet40", "resnet50"):
        parts = []
        for part in ("val", "test"):
            with np.load(data / "vision" / f"cifar10_{name}_{part}.npz") as table:
                parts += [
                    softmax(table["logits"].astype(np.float64)),
                    table["labels"].astype(int),
                ]
        yield f"{name}_c10", *parts
    for file in () if vision_only else ("sst2", "clinc150"):
        with np.load(data / "text" / f"{file}.npz") as table:
            models = sorted(
                {key.split("/")[1] for key in table if key.startswith(file + "/")}
            )
            for model in models:
                keys = [
                    f"{file}/{model}/{kind}_{part}"
                    for part in ("cal", "test")
                    for kind in ("probs", "labels")
                ]
                yield f"{file}/{model}", *(table[key] for key in keys)


def confidence(probabilities, labels):
    """Return whether the predicted class is right, and its probability."""
    predicted = probabilities.argmax(axis=1)
    return labels == predicted, np.take_along_axis(
        probabilities, predicted[:, None], axis=1
    )[:, 0].astype(np.float64)


def fitted(make, scores, labels, test_scores, test_labels):
    """Return (correct, confidence) of the test rows, recalibrated on the calibration
    rows.
    """
    n_classes = scores.shape[1]
    classes = None if len(np.unique(labels)) == n_classes else np.arange(n_classes)
    return confidence(
        make(classes=classes).fit(scores, labels).predict_proba(test_scores),
        test_labels,
    )


def single_precision(data, name, part):
    """Return whether the predicted class is right, and its probability as Roelofs et
    al. computed it.

    Their code takes the exponential of the logits minus their log-sum-exp, all in
    single precision. A score above about 1 - 1e-6 is then exactly 1.
    """
    with np.load(data / "vision" / f"cifar10_{name}_{part}.npz") as table:
        logits, labels = table["logits"].astype(np.float32), table["labels"].astype(int)
    largest = logits.max(axis=1, keepdims=True)
    total = largest + np.log(np.exp(logits - largest).sum(axis=1, keepdims=True))
    return confidence(np.exp(logits - total), labels)


def softmax(logits):
    """Return probabilities of logits."""
    values = np.exp(logits - logits.max(axis=1, keepdims=True))
    return values / values.sum(axis=1, keepdims=True)
