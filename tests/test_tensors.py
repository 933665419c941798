"""Scores of other worlds: tensors by duck typing, logits of impossible classes, labels
that are distributions.
"""

import numpy as np
import pytest
from scipy.special import softmax

import skcalib
from skcalib import (
    ClasswiseTemperatureScaling,
    DirichletCalibration,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    PlattScaling,
    SplineCalibration,
    StackedRecalibrator,
    TemperatureScaling,
    VectorScaling,
    VennAbers,
    expand_soft_labels,
)
from skcalib.metrics import calibration_error, expected_calibration_error


class _Tensor:
    """What a tensor of a deep-learning library offers; NumPy cannot read it where it
    needs a gradient.
    """

    def __init__(self, values, dtype="float32", device="cuda", requires_grad=True):
        self.values, self.dtype, self.device, self.requires_grad = (
            values,
            f"torch.{dtype}",
            device,
            requires_grad,
        )

    def detach(self):
        return _Tensor(self.values, self.dtype[6:], self.device, False)

    def cpu(self):
        return _Tensor(self.values, self.dtype[6:], "cpu", self.requires_grad)

    def float(self):
        return _Tensor(
            self.values.astype(np.float32), "float32", self.device, self.requires_grad
        )

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad or self.device != "cpu" or self.dtype == "torch.bfloat16":
            raise TypeError("cannot be converted to a NumPy array")
        return np.asarray(self.values, dtype)


def _data(n=400, k=4, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, k)) * 2
    labels = (rng.random((n, 1)) > softmax(logits / 1.7, axis=1).cumsum(axis=1)).sum(
        axis=1
    )
    return logits, labels


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_tensors_are_read_wherever_they_live(dtype):
    logits, labels = _data()
    logits = logits.astype(np.float64 if dtype == "float64" else np.float32)
    y = _Tensor(labels, "int64", requires_grad=False)
    plain = TemperatureScaling(input="logit").fit(logits, labels)
    found = TemperatureScaling(input="logit").fit(_Tensor(logits, dtype), y)
    assert found.temperature_ == pytest.approx(plain.temperature_, rel=1e-6)
    np.testing.assert_allclose(
        found.predict_proba(_Tensor(logits, dtype)),
        plain.predict_proba(logits),
        atol=1e-6,
    )
    proba = plain.predict_proba(logits)
    assert calibration_error(y, _Tensor(proba, "float64")) == calibration_error(
        labels, proba
    )
    weight = np.arange(400) % 3
    assert PlattScaling(input="logit").fit(
        _Tensor(logits[:, 0], dtype),
        _Tensor(labels == 0, "bool"),
        _Tensor(weight, "int64"),
    ).slope_ == pytest.approx(
        PlattScaling(input="logit").fit(logits[:, 0], labels == 0, weight).slope_
    )


def test_rows_of_bfloat16_probabilities_may_miss_1_by_its_rounding():
    proba = np.full((50, 3), [0.3, 0.3, 0.41], dtype=np.float32)
    labels = np.arange(50) % 3
    with pytest.raises(ValueError, match="must sum to 1"):
        expected_calibration_error(labels, proba)
    assert expected_calibration_error(labels, _Tensor(proba, "bfloat16")) < 0.2


@pytest.mark.slow
def test_tensors_of_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    logits, labels = _data()
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        tensor = torch.tensor(logits, dtype=dtype, requires_grad=True)
        plain = tensor.detach().float().numpy()
        found = TemperatureScaling(input="logit").fit(tensor, torch.tensor(labels))
        assert found.temperature_ == pytest.approx(
            TemperatureScaling(input="logit").fit(plain, labels).temperature_, rel=1e-5
        )
        proba = torch.softmax(tensor, dim=1)
        assert 0 <= expected_calibration_error(torch.tensor(labels), proba) < 1


MASKED = [
    TemperatureScaling,
    VectorScaling,
    MatrixScaling,
    DirichletCalibration,
    ClasswiseTemperatureScaling,
    PlattScaling,
    HistogramBinning,
    IsotonicCalibration,
    SplineCalibration,
    VennAbers,
    StackedRecalibrator,
]


def _masked(n=300, seed=1):
    """Questions with two, three or four options: the others are impossible."""
    logits, _ = _data(n, seed=seed)
    n_options = np.random.default_rng(seed).integers(2, 5, n)
    logits[np.arange(4) >= n_options[:, None]] = -np.inf
    proba = softmax(logits / 1.7, axis=1)
    labels = (
        np.random.default_rng(seed + 1).random((n, 1)) > proba.cumsum(axis=1)
    ).sum(axis=1)
    return logits, labels


@pytest.mark.parametrize("kind", MASKED, ids=lambda kind: kind.__name__)
def test_impossible_classes_stay_impossible(kind):
    logits, labels = _masked()
    found = kind(input="logit").fit(logits, labels).predict_proba(logits)
    assert (found[np.isneginf(logits)] == 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)
    # A large finite mask means the same.
    masked = np.where(np.isneginf(logits), -1e4, logits)
    other = kind(input="logit").fit(masked, labels).predict_proba(masked)
    tolerance = 5e-4 if kind is StackedRecalibrator else 1e-12
    np.testing.assert_allclose(found, other, rtol=0, atol=tolerance)


@pytest.mark.parametrize("kind", MASKED, ids=lambda kind: kind.__name__)
def test_logits_are_known_up_to_a_constant_a_row(kind):
    logits, labels = _masked()
    constant = np.random.default_rng(2).choice([-100.0, 0.0, 100.0], len(logits))[
        :, None
    ]
    expected, found = (
        kind(input="logit").fit(rows, labels).predict_proba(rows)
        for rows in (logits, logits + constant)
    )
    # The weights of a mixture are found to 1e-4.
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=5e-4 if kind is StackedRecalibrator else 1e-9
    )


def test_temperature_of_masked_logits_is_that_of_the_options_alone():
    """The log-likelihood over the options of each row, maximised on a grid."""
    logits, labels = _masked(600)
    grid = np.linspace(0.3, 1.2, 901)
    rows = np.arange(600)
    losses = [
        -np.log(softmax(beta * logits, axis=1)[rows, labels]).mean() for beta in grid
    ]
    found = TemperatureScaling(input="logit", clip=None).fit(logits, labels)
    assert found.inverse_temperature_ == pytest.approx(
        grid[np.argmin(losses)], abs=1e-3
    )


def test_two_columns():
    logits = np.array([[0.0, -np.inf], [-np.inf, 2.0], [0.0, 1.0], [1.0, 0.0]] * 5)
    found = (
        PlattScaling(input="logit").fit(logits, [0, 1, 1, 0] * 5).predict_proba(logits)
    )
    assert found[:2].tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("logits", "words"),
    [
        (
            [[0.0, 1, -np.inf], [1, 0, 2], [0, 1, 2]],
            "y has a class in row 0 that is impossible according to its logit",
        ),
        (
            [[0.0, 1, 2], [-np.inf, -np.inf, -np.inf], [0, 1, 2]],
            "only infinite values in row 1",
        ),
        ([[0.0, 1, np.inf], [1, 0, 2], [0, 1, 2]], "infinity in row 0"),
        ([[0.0, -np.inf, 1], [1, 0, np.nan], [0, 1, 2]], "NaN in row 1"),
        ([[0.0, -np.inf, 1e200], [1, 0, 1], [0, 1, 2]], "the logit 1e\\+200 in row 0"),
    ],
)
def test_wrong_logits(logits, words):
    with pytest.raises(ValueError, match=words):
        TemperatureScaling(input="logit").fit(logits, [2, 0, 1])
    with pytest.raises(ValueError, match="only infinite values"):
        PlattScaling(input="logit").fit([0.1, -np.inf, 2.0, 3.0], [0, 1, 0, 1])


# --- labels that are distributions ---


def test_expanded_rows_have_the_expected_estimates():
    """A fit to distributions is the fit to many labels drawn from them: its limit is a
    weighted likelihood.
    """
    logits, _ = _data(200)
    soft = softmax(logits / 2.5, axis=1)
    scores, y, weight = expand_soft_labels(logits, soft)
    assert len(y) == 800
    assert weight.sum() == pytest.approx(200)
    found = TemperatureScaling(input="logit", clip=None).fit(
        scores, y, sample_weight=weight
    )
    assert found.temperature_ == pytest.approx(2.5, rel=1e-6)
    proba = softmax(logits / 2.5, axis=1)[:, 0]
    scores, y, weight = expand_soft_labels(proba, proba)
    assert expected_calibration_error(y, scores, sample_weight=weight) == pytest.approx(
        0, abs=1e-12
    )


def test_hard_labels_are_themselves():
    logits, labels = _data(50)
    scores, y, weight = expand_soft_labels(logits, np.eye(4)[labels], np.arange(1, 51))
    np.testing.assert_array_equal(scores, logits)
    np.testing.assert_array_equal(y, labels)
    np.testing.assert_array_equal(weight, np.arange(1, 51))


def test_wrong_distributions():
    with pytest.raises(
        ValueError, match="rows of soft_labels must sum to 1, but row 1"
    ):
        expand_soft_labels(np.zeros((2, 3)), [[0.2, 0.3, 0.5], [0.2, 0.3, 0.4]])
    with pytest.raises(ValueError, match="soft_labels has 1 rows but scores has 2"):
        expand_soft_labels([0.1, 0.2], [0.3])
    with pytest.raises(
        ValueError, match="soft_labels has 3 classes but the scores have 2"
    ):
        expand_soft_labels([0.1], [[0.2, 0.3, 0.5]])
    assert "expand_soft_labels" in skcalib.__all__
