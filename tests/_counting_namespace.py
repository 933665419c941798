"""Arrays on a device of array-api-strict that NumPy cannot read, and a count of what is
copied off it.
"""

from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest


def on_device(array, name="device1"):
    """Return an array on a device that is not the processor."""
    xp = pytest.importorskip("array_api_strict")
    return xp.asarray(np.asarray(array), device=xp.Device(name))


def off_device(tensor):
    """Return an array of array-api-strict, on whatever device, as NumPy's."""
    xp = pytest.importorskip("array_api_strict")
    return np.asarray(xp.asarray(tensor, device=xp.Device("CPU_DEVICE")))


class Copies(list):
    """The number of bytes of each copy off the device, in their order."""

    def refuse_more_than(self, n_samples, free=0):
        """Raise if a copy is larger than 8 n bytes, or all of them than 64 n. Copies of
        up to `free` bytes (parameters, gradients, sums by bin) are not counted.
        """
        counted = [size for size in self if size > free]
        assert max(counted, default=0) <= 8 * n_samples, (n_samples, counted)
        assert sum(counted) <= 64 * n_samples, (n_samples, counted)


@contextmanager
def counted_copies():
    """Give the `Copies` off devices of array-api-strict that are made inside.

    As on a GPU, NumPy and DLPack cannot read such a device: `to_device` and `asarray`
    copy, and are counted. Single numbers (`float`, `bool`) are not.
    """
    xp = pytest.importorskip("array_api_strict")
    processor = xp.Device("CPU_DEVICE")
    kind = type(xp.asarray(0.0))
    copies = Copies()
    to_device, asarray = kind.to_device, xp.asarray
    dlpack, dlpack_device = kind.__dlpack__, kind.__dlpack_device__

    def count(array, device):
        if device == processor and array.device != processor:
            copies.append(array._array.nbytes)

    def counting_to_device(self, device, /, stream=None):
        count(self, device)
        return to_device(self, device, stream=stream)

    def counting_asarray(values, /, *, device=None, **options):
        if isinstance(values, kind):
            count(values, device)
        return asarray(values, device=device, **options)

    def refusing_dlpack(self, **options):
        if self.device != processor:
            raise BufferError("not on the processor")
        return dlpack(self, **options)

    def device_of_dlpack(self):
        if self.device != processor:
            return (2, 0)  # a GPU
        return dlpack_device(self)

    with (
        patch.object(kind, "to_device", counting_to_device),
        patch.object(kind, "__dlpack__", refusing_dlpack),
        patch.object(kind, "__dlpack_device__", device_of_dlpack),
        patch.object(xp, "asarray", counting_asarray),
    ):
        yield copies


@contextmanager
def as_in_cupy():
    """Make arrays of array-api-strict refuse as those of CuPy do: only `get` copies
    them to the processor; NumPy, DLPack and `to_device` do not. `float` and `bool` read
    single numbers.
    """
    xp = pytest.importorskip("array_api_strict")
    kind = type(xp.asarray(0.0))

    def refusing(self, *args, **options):
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()`"
            " to construct a NumPy array explicitly."
        )

    with (
        patch.object(kind, "get", lambda self: self._array.copy(), create=True),
        patch.object(kind, "to_device", refusing),
        patch.object(kind, "__array__", refusing, create=True),
        patch.object(kind, "__dlpack__", refusing),
        patch.object(kind, "__dlpack_device__", lambda self: (2, 0)),
    ):
        yield
