"""Tensors in, tensors out: with scikit-learn's `array_api_dispatch` the methods on K
logits keep the library, the device and the floating type.

SciPy decides at its import whether it takes tensors, so that this runs in a process of
its own. Libraries that are not installed are skipped.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from skcalib._input.tensors import as_array, as_given

CODE = """
import importlib
import sys
from contextlib import nullcontext

import numpy as np
from _counting_namespace import counted_copies
from scipy.special import softmax
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

import skcalib
import skcalib.recalibrators._base as base

library, *devices = sys.argv[1:]
xp = importlib.import_module(library)
rng = np.random.default_rng(0)
TOLERANCES = {"float32": 1e-6, "float64": 1e-12}
# of a fit where the tensor is, against one of NumPy
# The number of columns, and whether some classes are impossible.
CASES = ((1, False), (2, False), (2, True), (5, False), (5, True))
FIT_TOLERANCES = {"float32": 1e-4, "float64": 1e-8}


class Linear(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.arange(3)
        return self

    def decision_function(self, X):
        assert type(X) is type(tensor)
        return 2 * X

    def predict(self, X):
        return as_numpy(X).argmax(axis=1)


def as_numpy(array):
    if hasattr(array, "cpu"):
        return array.cpu().numpy()
    if library == "array_api_strict":
        array = array.to_device(xp.Device("CPU_DEVICE"))
    return np.asarray(array)


def methods(input):
    return [
        skcalib.TemperatureScaling(input=input),
        skcalib.TemperatureScaling(clip=1e-3, input=input),
        skcalib.ClasswiseTemperatureScaling(input=input),
        skcalib.VectorScaling(input=input),
        skcalib.VectorScaling(center=False, clip=None, input=input),
        skcalib.MatrixScaling(input=input),
        skcalib.DirichletCalibration(input=input),
        skcalib.EnsembleTemperatureScaling(input=input),
        skcalib.PlattScaling(input=input),
        skcalib.PlattScaling(input=input, multiclass="top_label"),
        skcalib.BetaCalibration(input=input),
        skcalib.SplineCalibration(input=input),
        skcalib.PriorShift("balanced", input=input),
    ]


def data(n_columns, is_masked):
    logits = 3 * rng.normal(size=(300, n_columns))
    all_logits = logits
    if n_columns == 1:
        all_logits = np.column_stack((np.zeros(300), logits))
    y = (all_logits / 1.5 + rng.gumbel(size=all_logits.shape)).argmax(axis=1)
    y[::17] = (y[::17] + 1) % all_logits.shape[1]  # for which a floor is learned
    if is_masked:
        # impossible classes, none of which is a row's own
        rows = np.arange(0, 300, 5)
        columns = (y[rows] + 1) % n_columns
        logits[rows, columns] = np.where(rows % 2, -np.inf, -900.0)
    return logits, y


counted = counted_copies if library == "array_api_strict" else nullcontext


def no_numpy(*arguments):
    raise AssertionError("scores leave the device")


for device in devices:
    place = device
    if library == "array_api_strict":
        try:
            place = xp.Device(device)
        except ValueError:  # a version without it
            continue
    dtypes = list(TOLERANCES)[: 1 if device == "no_float64" else 2]
    # Devices take the same way: each case on the first one, on others every third
    # method of the extremes.
    is_first = device == devices[0]
    for n_columns, is_masked in CASES if is_first else CASES[::4]:
        logits, y = data(n_columns, is_masked)
        inputs = {"logit": logits}
        if n_columns > 1 and not is_masked:
            inputs["probability"] = softmax(logits, axis=1)
        if n_columns == 5:
            inputs["probability"] = softmax(np.maximum(logits, -50), axis=1)
        for input, scores in inputs.items():
            for method in methods(input)[:: 1 if is_first else 3]:
                for dtype in dtypes:
                    given = scores.astype(dtype)
                    tensor = xp.asarray(given, device=place)
                    expected = method.fit(given, y).predict_proba(given)
                    with config_context(array_api_dispatch=True):
                        fitted = method.fit(tensor, y)
                        as_given, base.as_given = base.as_given, no_numpy
                        with counted() as copies:
                            results = [
                                fitted.predict_proba(tensor),
                                fitted.transform(tensor),
                            ]
                        assert not copies
                        base.as_given = as_given
                        labels = fitted.predict(tensor)
                    same_map = fitted.predict_proba(given)
                    for found in results:
                        assert type(found) is type(tensor), type(found)
                        assert found.dtype == tensor.dtype
                        assert found.device == tensor.device
                        found = as_numpy(found)
                        np.testing.assert_allclose(
                            found, same_map, rtol=0, atol=TOLERANCES[dtype]
                        )
                        np.testing.assert_allclose(
                            found, expected, rtol=0, atol=FIT_TOLERANCES[dtype]
                        )
                        assert np.array_equal(found == 0, expected == 0)
                    assert np.array_equal(labels, method.predict(given))
                    # without dispatch: NumPy, as always
                    if device != "device1":
                        assert isinstance(fitted.predict_proba(tensor), np.ndarray)
    # What is refused is refused as ever, and what is repaired is a tensor as well.
    temperature = skcalib.TemperatureScaling().fit(softmax(logits, axis=1), y)
    dtype = dtypes[-1]
    off = softmax(logits, axis=1) + {"float32": 1e-5, "float64": 1e-8}[dtype]
    off = off.astype(dtype)
    with config_context(array_api_dispatch=True):
        for wrong, words in ((np.nan, "NaN"), (1.5, "in [0, 1]"), (0.5, "sum to 1")):
            try:
                bad = off.copy()
                bad[7, 1] = wrong
                temperature.predict_proba(xp.asarray(bad, device=place))
            except ValueError as error:
                assert words in str(error), error
            else:
                raise AssertionError(words)
        found = temperature.predict_proba(xp.asarray(off, device=place))
        expected = temperature.predict_proba(off)
        found = as_numpy(found)
        np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCES[dtype])
    logits, y = data(3, False)
    for dtype in dtypes:
        tensor = xp.asarray(logits.astype(dtype), device=place)
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


# Where the process finds the helpers of the tests, and what the tests import.
PATHS = [str(Path(__file__).parent), *filter(None, sys.path)]


def _check(library, *devices):
    done = subprocess.run(
        [sys.executable, "-c", CODE, library, *devices],
        capture_output=True,
        text=True,
        env=os.environ | {"SCIPY_ARRAY_API": "1", "PYTHONPATH": os.pathsep.join(PATHS)},
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
    """On a second device, whose arrays NumPy does not read unasked, on the first one,
    and on one without double precision.
    """
    _check("array_api_strict", "device1", "CPU_DEVICE", "no_float64")


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
