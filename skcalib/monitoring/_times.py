"""The times of samples: numbers, or dates in years."""

import re

import numpy as np

from skcalib._input.tensors import as_array

_DAYS_PER_YEAR = 365.25
_ISO_DATE = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?)?")


def moments(time, n_samples):
    """Return times as floats (n_samples,), and the name of their unit: years for dates,
    else the unit of the numbers.
    """
    values, _ = as_array(time)
    if values.shape != (n_samples,):
        raise ValueError(
            f"time must have one value for each of {n_samples} samples, found shape"
            f" {values.shape}."
        )
    if values.dtype.kind in "fiu":
        numbers = values.astype(np.float64)
        if not np.isfinite(numbers).all():
            row = int(np.argmin(np.isfinite(numbers)))
            raise ValueError(f"time is missing or infinite in row {row}.")
        return numbers, "unit of time"
    if values.dtype.kind != "M":
        values = _dates(values)
    if np.isnat(values).any():
        raise ValueError(f"time is missing in row {int(np.argmax(np.isnat(values)))}.")
    first = values.min()
    days = (values - first) / np.timedelta64(1, "D")
    return days / _DAYS_PER_YEAR, "year"


def _dates(values):
    """Return datetime64 (n,) of objects or texts whose text is an ISO date."""
    times = []
    for row, value in enumerate(values.tolist()):
        text = str(value)
        match = _ISO_DATE.match(text)
        if not match:
            raise ValueError(
                f"time must contain numbers or dates as YYYY-MM-DD, but row {row} is"
                f" {text!r}: strings have no order."
            )
        # Without the zone of an aware datetime, which is too small a difference.
        times.append(match[0])
    try:
        return np.array(times, dtype="datetime64[us]")
    except ValueError as error:
        raise ValueError(
            f"time contains a date that does not exist: {error}."
        ) from error
