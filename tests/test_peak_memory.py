"""The peak memory of jobs on ten million samples, seen in fewer: bytes a sample."""

import tracemalloc

import numpy as np
import pytest

from skcalib.metrics import (
    calibration_error,
    decision_calibration_error,
    neighborhood_calibration_error,
    two_bin_calibration_error,
)
from skcalib.monitoring import estimated_performance

# Of ten million samples, 200 MB are allowed beside four times the input.
BESIDE_THE_INPUT = 200e6 / 1e7
SIZES = 200_000, 400_000


def peak(function, columns):
    tracemalloc.start()
    function(*columns)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


@pytest.mark.parametrize(
    "function",
    [
        calibration_error,
        decision_calibration_error,
        neighborhood_calibration_error,
        two_bin_calibration_error,
        estimated_performance,
    ],
)
def test_bytes_of_a_sample(function):
    most, input_bytes = [], []
    for n in SIZES:
        rng = np.random.default_rng(0)
        scores = rng.random(n)
        columns = [(rng.random(n) < scores**1.2).astype(np.int64), scores]
        if function is estimated_performance:
            columns.append(rng.beta(2, 3, n))
        function(*columns)  # loads what the first run needs
        most.append(peak(function, columns))
        input_bytes.append(sum(column.nbytes for column in columns))
    n_more = SIZES[1] - SIZES[0]
    grown = most[1] - most[0]
    assert grown < 4 * (input_bytes[1] - input_bytes[0]) + BESIDE_THE_INPUT * n_more
