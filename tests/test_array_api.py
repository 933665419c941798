"""Tensors in, tensors out: with scikit-learn's `array_api_dispatch` the methods on K
logits keep the library, the device and the floating type.

SciPy decides at its import whether it takes tensors, so that this runs in a process of
its own. Libraries that are not installed are skipped.
"""

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from skcalib._input.tensors import as_array, as_given

CODE = """
import importlib
import sys

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

import skcalib

library, device = sys.argv[1:]
xp = importlib.import_module(library)
rng = np.random.default_rng(0)
logits = rng.normal(size=(300, 3))
y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
keep = {} if device == "none" else {"device": device}


class Linear(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.arange(3)
        return self

    def decision_function(self, X):
        assert type(X) is type(tensor)
        return 2 * X

    def predict(self, X):
        return np.asarray(X).argmax(axis=1)


methods = [
    skcalib.TemperatureScaling(input="logit"),
    skcalib.ClasswiseTemperatureScaling(input="logit"),
    skcalib.VectorScaling(input="logit"),
    skcalib.MatrixScaling(input="logit"),
    skcalib.DirichletCalibration(input="logit"),
    skcalib.EnsembleTemperatureScaling(input="logit"),
]
for dtype in ("float32", "float64"):
    tensor = xp.asarray(logits.astype(dtype), **keep)
    for method in methods:
        expected = method.fit(logits.astype(dtype), y).predict_proba(logits)
        with config_context(array_api_dispatch=True):
            fitted = method.fit(tensor, y)
            for found in (fitted.predict_proba(tensor), fitted.transform(tensor)):
                assert type(found) is type(tensor), type(found)
                assert found.dtype == tensor.dtype
                assert found.device == tensor.device
                found = np.asarray(found.cpu() if hasattr(found, "cpu") else found)
                np.testing.assert_allclose(found, expected, atol=1e-6)
            labels = fitted.predict(tensor)
            assert np.array_equal(labels, method.predict(logits))
        # without dispatch: NumPy, as always
        assert isinstance(fitted.predict_proba(tensor), np.ndarray)
    model = skcalib.RecalibratedClassifierCV(
        FrozenEstimator(Linear().fit(None, None)), skcalib.TemperatureScaling()
    )
    with config_context(array_api_dispatch=True):
        found = model.fit(tensor, y).predict_proba(tensor)
        assert type(found) is type(tensor)
        assert found.dtype == tensor.dtype
        assert found.device == tensor.device
        assert model.predict(tensor).shape == (300,)
print("agrees")
"""


def _check(library, device):
    done = subprocess.run(
        [sys.executable, "-c", CODE, library, device],
        capture_output=True,
        text=True,
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        check=False,
    )
    assert done.stdout == "agrees\n", done.stderr


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
def test_torch_on_the_processor():
    _check("torch", "cpu")


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
def test_torch_on_a_graphics_processor():
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a graphics processor")
    _check("torch", "cuda")


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("array_api_strict") is None, reason="needs array-api-strict"
)
def test_the_standard_alone():
    _check("array_api_strict", "none")


class _OfTheStandard:
    """An array that NumPy reads by DLPack alone."""

    def __init__(self, values):
        self._values = values

    def __array_namespace__(self, api_version=None):
        return np

    def __array__(self, dtype=None, copy=None):
        raise TypeError("implicit conversion")

    def __dlpack__(self, **options):
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()


def test_arrays_of_the_standard_are_read_by_dlpack():
    values = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    found, precision = as_array(_OfTheStandard(values))
    assert precision == "float32"
    assert np.shares_memory(found, values)


def test_without_dispatch_an_array_comes_back():
    array = np.ones((2, 2))
    assert as_given(array, _OfTheStandard(array)) is array
    assert as_given(array, [[1, 1]]) is array
