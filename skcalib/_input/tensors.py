"""Arrays of anything that NumPy reads, and of tensors wherever they live; and tensors
of the same kind again.
"""

import numpy as np
from sklearn import get_config

from skcalib._input.sklearn_private import array_api_compat, get_namespace_and_device

_PROCESSOR = 1  # DLPack's number of this kind of device
_NEEDED = ("astype", "clip", "concat", "cumulative_sum", "isdtype", "take")

# The names of the common types by their characters: NumPy puts `dtype.name` together
# anew each time, which takes several microseconds.
_NAMES = {char: np.dtype(char).name for char in "?bhilqBHILQefd"}


def as_array(values, name=None):
    """Return values as a NumPy array, and the name of the type that they had. Tensors
    on a GPU are copied to the processor, and bfloat16 becomes float32.

    With the `name` of the user's argument, masked values, which NumPy would use, are
    refused.
    """
    if type(values) is np.ndarray and values.dtype.char in _NAMES:
        return values, _NAMES[values.dtype.char]
    if name is not None and np.ma.is_masked(values):
        row = first_index(np.ma.getmaskarray(values))[0]
        raise ValueError(f"{name} is masked in row {row}: drop or fill such rows.")
    if _is_tensor(values):
        values = values.detach().cpu()  # without its gradient, wherever it lives
        # NumPy has no such type of its own.
        if str(getattr(values, "dtype", "")).endswith("bfloat16"):
            return np.asarray(values.float()), "bfloat16"
    array = np.asarray(_on_processor(values))
    if array.dtype.name == "bfloat16":  # of the package ml_dtypes, as JAX gives it
        return array.astype(np.float32), "bfloat16"
    return array, array.dtype.name


def tensor_on_processor(values):
    """Return a tensor on which scikit-learn dispatches to the array API as a NumPy
    array, and anything else unchanged.
    """
    if dispatched_namespace(values)[0] is None:
        return values
    array, _ = as_array(values)
    return array


def _on_processor(values):
    """Return an array of the array API as a NumPy array, and any other values
    unchanged.
    """
    if isinstance(values, np.ndarray):
        return values
    if _is_cupy(values):
        return values.get()
    if not hasattr(values, "__array_namespace__"):
        return values
    try:
        return np.from_dlpack(values)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
        pass  # it lives on another device
    # Devices by name are those of array-api-strict; other values are left to NumPy.
    xp = values.__array_namespace__()
    if not hasattr(xp, "Device"):
        return values
    return np.asarray(values.to_device(xp.Device("CPU_DEVICE")))


def off_processor(values):
    """Return the namespace and the device of a tensor that lives where NumPy cannot
    read it, such as on a GPU; None and None for anything else.
    """
    if array_api_compat is None or isinstance(values, np.ndarray):
        return None, None
    if not hasattr(values, "__dlpack_device__"):
        return None, None
    try:
        kind, _ = values.__dlpack_device__()
    except (BufferError, RuntimeError, ValueError):
        kind = None  # a device that DLPack does not know
    if kind == _PROCESSOR or not array_api_compat.is_array_api_obj(values):
        return None, None
    xp = array_api_compat.array_namespace(values)
    _refuse_incomplete(xp)
    return xp, array_api_compat.device(values)


def library_of(array):
    """Return the namespace of the library of an array, be it dispatched to or not."""
    if isinstance(array, np.ndarray):
        return np
    return array_api_compat.array_namespace(array)


def _refuse_incomplete(xp):
    """Raise if a namespace lacks functions of the standard that younger versions of it
    have added, or that libraries had under other names.
    """
    missing = [name for name in _NEEDED if not hasattr(xp, name)]
    if missing:
        raise TypeError(
            f"{xp.__name__} lacks {', '.join(missing)} of the array API standard"
            " 2023.12, so nothing can be computed on the device: update the library, or"
            " copy the tensors to the processor first."
        )


def chosen_samples(values, is_chosen):
    """Return the samples of an array-like (n, ...) that a mask (n,) of NumPy chooses. A
    tensor stays one: how much rounding of its scores is tolerated depends on its type.
    """
    if array_api_compat is not None and array_api_compat.is_array_api_obj(values):
        xp = array_api_compat.array_namespace(values)
        device = array_api_compat.device(values)
        positions = xp.asarray(np.flatnonzero(is_chosen), device=device)
        return xp.take(values, positions, axis=0)
    if not hasattr(values, "shape"):
        values, _ = as_array(values)
    return values[is_chosen]


def as_given(array, given):
    """Return an array of NumPy, or a tensor where `given` is, as a tensor like `given`:
    of its array library (namespace), on its device, and of its floating type.

    This is done only if scikit-learn dispatches to the array API
    (``config_context(array_api_dispatch=True)``); else the array is returned.
    """
    xp, device = dispatched_namespace(given)
    if xp is None:
        return array
    is_floating = xp.isdtype(given.dtype, "real floating")
    if not isinstance(array, np.ndarray):
        return xp.astype(array, given.dtype) if is_floating else array
    if is_floating and xp.finfo(given.dtype).bits <= 32:
        array = array.astype(np.float32)  # the device may have no other
    tensor = xp.asarray(array, device=device)
    if is_floating:
        tensor = xp.astype(tensor, given.dtype)
    return tensor


def dispatched_namespace(values):
    """Return the namespace and the device of a tensor on which scikit-learn dispatches
    to the array API; None and None for anything else.
    """
    is_tensor = hasattr(values, "__array_namespace__") or _is_tensor(values)
    is_tensor = is_tensor or _is_cupy(values)
    if isinstance(values, np.ndarray) or not is_tensor:
        return None, None
    if not get_config()["array_api_dispatch"]:
        return None, None
    xp, is_dispatched, device = get_namespace_and_device(values)
    if not is_dispatched:
        return None, None
    _refuse_incomplete(xp)
    return xp, device


def namespace_of(values):
    """Return the namespace that computes with an array: NumPy, or that of a tensor on
    which scikit-learn dispatches to the array API.
    """
    if isinstance(values, np.ndarray):
        return np
    found = _NAMESPACES.get(type(values))
    if found is None:
        found, _ = dispatched_namespace(values)
        _NAMESPACES[type(values)] = found
    return found


_NAMESPACES = {}  # by the type of the tensors: asking for one takes many microseconds


def like(array, values):
    """Return a NumPy array in the namespace of `array`, on its device, without float64
    where the device has none; a tensor, and None, stay as they are.
    """
    xp = namespace_of(array)
    if xp is np or not isinstance(values, np.ndarray):
        return values
    if values.dtype == np.float64:
        values = values.astype(widest_dtype(array), copy=False)
    return xp.asarray(values, device=array.device)


def widest_dtype(array):
    """Return the widest floating type of an array's device as NumPy's: float64, or
    float32 where there is none.
    """
    xp = namespace_of(array)
    if xp is np:
        return np.float64
    return np.float64 if has_float64(xp, array.device) else np.float32


def has_float64(xp, device):
    """Return whether a device of a namespace has float64."""
    # Namespaces of older versions of the array API standard do not tell their types.
    info = getattr(xp, "__array_namespace_info__", None)
    return info is None or "float64" in info().dtypes(device=device)


def _is_tensor(values):
    """Return whether values are a PyTorch tensor, by its methods."""
    return all(
        callable(getattr(values, name, None)) for name in ("detach", "cpu", "float")
    )


def _is_cupy(values):
    """Return whether values are an array of CuPy, by its methods."""
    return hasattr(values, "__dlpack__") and hasattr(values, "get")


def column_names(table):
    """Return the names of the columns of a table as a list, an empty one for arrays."""
    # `columns` of an Arrow table are its values; the names have another attribute.
    if hasattr(table, "column_names"):
        return list(table.column_names)
    columns = getattr(table, "columns", ())
    return [] if callable(columns) else list(columns)


def refuse_repeated_names(X, name="X"):
    """Raise for a table with two columns of the same name: it would be unclear which
    one is meant.
    """
    names = column_names(X)
    if len(set(names)) < len(names):
        repeated = next(column for column in names if names.count(column) > 1)
        raise ValueError(
            f"{name} has {names.count(repeated)} columns named {repeated!r}: rename"
            " them."
        )


def first_index(mask):
    """Return the index of the first True of a mask, row by row, as a tuple of ints."""
    return tuple(int(i) for i in np.unravel_index(np.argmax(mask), mask.shape))
