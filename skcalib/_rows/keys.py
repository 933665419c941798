"""A number in [0, 1) from a row's id, the same in every language: it breaks ties where
a draw is asked for.
"""

from hashlib import md5
from numbers import Integral

import numpy as np

HEX_DIGITS = 13  # 52 bits: each such number is a float64 exactly


def row_keys(salt, ids):
    """Return ``md5(salt + ":" + text of the id)`` by its first 13 hexadecimal digits,
    divided by 16**13 (n,).
    """
    hashes = np.empty(len(ids))
    for number, row_id in enumerate(ids):
        text = f"{salt}:{row_id}".encode()
        digits = md5(text, usedforsecurity=False).hexdigest()[:HEX_DIGITS]
        hashes[number] = int(digits, 16)
    return hashes / 16.0**HEX_DIGITS


def check_ids(ids, n_rows):
    """Return ids as an object array (n_rows,), or raise unless all are strings or
    integers: other types are written differently in different languages.
    """
    values = np.asarray(ids, dtype=object)
    if values.shape != (n_rows,):
        raise ValueError(
            f"ids must contain one id per row: {n_rows} are needed, found an array of"
            f" shape {values.shape}."
        )
    for row, value in enumerate(values):
        if isinstance(value, bool | np.bool_) or not isinstance(value, str | Integral):
            raise ValueError(
                f"ids must be strings or integers, found {value!r} in row {row}: other"
                " types are written differently in different languages. Convert them"
                " with str."
            )
    return values
