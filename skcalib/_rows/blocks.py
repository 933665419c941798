"""Work in blocks of rows that are small enough for the cache."""

_BLOCK_ELEMENTS = 1 << 16


def row_blocks(n_rows, n_columns=1, *, at_least=1):
    """Return slices of rows: blocks that fit the cache for this number of columns, of `at_least` rows or more."""
    size = max(_BLOCK_ELEMENTS // n_columns, at_least)
    return [slice(start, start + size) for start in range(0, n_rows, size)]
