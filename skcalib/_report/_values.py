"""Values of cells as numbers: decimal commas, percent signs, thousands separators,
and lists of numbers.

What fits two readings is refused, not guessed.
"""

import re
from decimal import Decimal
from json import dumps

import numpy as np

from skcalib._report._error import ReportError
from skcalib._verdicts import rounded

# Cells of numbers that mean "missing". In a column of words only an empty cell does:
# "NA" may be a country.
MISSING = (
    *("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None"),
)
PERCENT_SIGNS = "percent signs"  # in a note
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_NUMBER = re.compile(rf"[+-]?(?:\d+\.?\d*|\.\d+){_EXPONENT}|[+-]?inf(?:inity)?", re.I)
# Thousands separators besides comma and point: blanks of several kinds, apostrophes.
_GAP = "[ \u00a0\u202f\u2009'’]"
_WITH_COMMA = re.compile(
    rf"(?=.*\d)[+-]?(?:\d+|[1-9]\d{{0,2}}(?:(?:\.|{_GAP})\d{{3}})+)?(?:,\d+)?{_EXPONENT}"
)
_WITH_THOUSANDS = re.compile(
    rf"[+-]?(?:\d+|[1-9]\d{{0,2}}(?:(?:,|{_GAP})\d{{3}})+)(?:\.\d*)?"
)
_PERCENT_NAME = re.compile(r"%|(?<![a-z])(percent|pct)(?![a-z])", re.IGNORECASE)
_LIST = re.compile(r"\s*(?:DenseVector\()?[\[(](.*)[\])]\)?\s*", re.DOTALL)
_NUMPY_FLOAT = re.compile(r"np\.float\d+\(([^()]*)\)")  # as NumPy 2 writes them
_SPARSE = re.compile(r"\s*(?:SparseVector)?\((\d+),\s*\[(.*?)\],\s*\[(.*?)\]\)\s*")


def as_numbers(column, name, *, are_whole=False):
    """Return the values of a column as numbers, (n,) or (n, K) for lists of K numbers,
    with NaN for missing ones; a note on how they were written, or ""; and the line of
    Python that reads them, or "".

    Columns of numbers are returned as they are. `are_whole` says that the numbers are
    counts, in which a comma can only separate thousands.
    """
    if column.dtype.kind != "O":
        return column, "", ""
    column, replaced = _without_words(column)
    present = [value for value in column if value is not None]
    if not present:
        return np.full(len(column), np.nan), "", ""
    first = present[0]
    if isinstance(first, (list, tuple, np.ndarray, dict)):
        return _vectors(column, name, _plain_list), "", _code_of_lists(name, first)
    if any(isinstance(value, str) for value in present):
        first = next(value for value in present if isinstance(value, str))
        if _is_written_list(first):
            return (
                _vectors(column, name, _written_list),
                "",
                _code_of_lists(name, first),
            )
        return _numbers_of_texts(column, name, are_whole, replaced)
    if all(isinstance(value, (int, float, Decimal)) for value in present):
        numbers = [np.nan if value is None else float(value) for value in column]
        line = ""
        if replaced:
            code = f"df[{dumps(name, ensure_ascii=False)}]"
            line = f"{code} = {code}{replaced}.astype(float)"
        return np.array(numbers), "", line
    raise ReportError(
        f"column {name!r} holds {type(first).__name__} values, such as {first!s:.40}:"
        " it must hold numbers."
    )


def _is_written_list(text):
    """Return whether a text is a list of numbers, or a vector of Spark."""
    try:
        return [*map(float, _written_list(text))] != []
    except ValueError:
        return False


def _without_words(column):
    """Return a column with None for words that mean "missing", and the pandas code that
    replaces them, or "".
    """
    texts = {value for value in column if isinstance(value, str)}
    words = sorted(texts & set(MISSING))
    if not words:
        return column, ""
    is_word = [isinstance(value, str) and value in words for value in column]
    return np.where(is_word, None, column), f".replace({dumps(words)}, np.nan)"


def _numbers_of_texts(column, name, are_whole, replaced):
    """Return the texts of a column as numbers, (n,); a note on how they were written,
    or ""; and the line of Python that reads them. Raise for what is no number, or may
    be two. `are_whole` says whether whole numbers are expected, `replaced` is the
    Python that replaced words for missing values.
    """
    import pandas as pd

    codes, values = pd.factorize(column)
    kinds = {type(value) for value in values}
    if kinds != {str}:
        raise ReportError(
            f"column {name!r} mixes text and numbers, such as"
            f" {next(value for value in values if isinstance(value, str))!r} and"
            f" {next(value for value in values if not isinstance(value, str))!r}: write"
            " all of them as numbers."
        )
    texts = [value.strip() for value in values]
    are_percent = [text.endswith("%") for text in texts]
    notes = []
    code = f"df[{dumps(name, ensure_ascii=False)}]"
    assigned = f"{code} = {code}{replaced}"
    if any("\u2212" in text for text in texts):
        notes.append("minus signs (U+2212)")
        assigned += r'.str.replace("\u2212", "-")'
        texts = [text.replace("\u2212", "-") for text in texts]
    divisor = 1
    if any(are_percent):
        if not all(are_percent):
            plain = texts[are_percent.index(False)]
            signed = texts[are_percent.index(True)]
            raise ReportError(
                f"column {name!r} holds numbers with and without a percent sign, such"
                f" as {signed!r} and {plain!r}: use one format for the whole column."
            )
        texts = [text.rstrip("% \u00a0\u202f") for text in texts]
        divisor = 100
        notes.append(PERCENT_SIGNS)
        assigned += '.str.rstrip("% \\u00a0\\u202f")'
    style = _style(texts, codes, name, are_whole)
    if style == "comma":
        notes.append("decimal commas")
        texts = [re.sub(rf"\.|{_GAP}", "", text).replace(",", ".") for text in texts]
        assigned += r'.str.replace(r"[^\d,eE+-]", "", regex=True).str.replace(",", ".")'
    elif style == "thousands":
        notes.append("thousands separators")
        texts = [re.sub(rf",|{_GAP}", "", text) for text in texts]
        assigned += r'.str.replace(r"[^\d.eE+-]", "", regex=True)'
    # The code of a missing value is -1: it gets the last entry, NaN.
    numbers = np.array([*map(float, texts), np.nan])[codes] / divisor
    assigned += ".astype(float)" + " / 100" * (divisor == 100)
    note = f"Numbers of {name}: read with {' and '.join(notes)}." if notes else ""
    return numbers, note, assigned


def _style(texts, codes, name, are_whole):
    """Return how the distinct texts of a column write numbers: "plain", "comma"
    (decimal) or "thousands" (with separators); raise if none or two fit. `codes` (n,)
    are the rows' positions among them.
    """
    if all(map(_NUMBER.fullmatch, texts)):
        return "plain"
    has_comma = all(text and _WITH_COMMA.fullmatch(text) for text in texts)
    has_thousands = all(map(_WITH_THOUSANDS.fullmatch, texts))
    if has_thousands and (are_whole or not has_comma):
        return "thousands"
    if has_comma and not has_thousands:
        return "comma"
    if has_comma and not any("," in text for text in texts):
        return "thousands"  # separated by blanks or apostrophes
    raise _no_style(texts, codes, name, is_unclear=has_comma)


def _no_style(texts, codes, name, is_unclear):
    """Return the error for a column that fits none of the styles, or two
    (`is_unclear`). `texts` are its distinct cells, `codes` (n_rows,) tells which one a
    row has.
    """
    if is_unclear:
        unclear = next(text for text in texts if "," in text)
        return ReportError(
            f"column {name!r} holds numbers such as {unclear!r}, in which the comma may"
            " be a decimal comma or separate thousands: write decimal points and no"
            " separators."
        )
    wrong = [number for number, text in enumerate(texts) if not _is_number(text)]
    if not wrong:  # each is a number, but in a style of its own
        others = [text for text in texts if ("," in text) != ("," in texts[0])]
        others = others or texts[1:]
        return ReportError(
            f"column {name!r} holds numbers in several styles, such as {texts[0]!r} and"
            f" {others[0]!r}: write decimal points and no separators."
        )
    is_wrong = np.isin(codes, wrong)
    row = int(is_wrong.argmax())
    return ReportError(
        f"column {name!r} holds {texts[codes[row]]!r} in row {row}, which is not a"
        f" number ({np.count_nonzero(is_wrong):,} of {len(codes):,} rows are not):"
        " correct such cells, or leave them empty and give --missing drop. Rows are"
        " counted from 0, without the header."
    )


def _is_number(text):
    """Return whether a text is a number in any of the styles."""
    styles = (_NUMBER, _WITH_COMMA, _WITH_THOUSANDS)
    return bool(text) and any(style.fullmatch(text) for style in styles)


def numbered_labels(column):
    """Return labels that are numbers written as text, with None for words such as "NA",
    which mean that a label is missing; labels without such words are unchanged.
    """
    if column.dtype.kind != "O":
        return column
    texts = {value for value in column if value is not None}
    if not all(isinstance(text, str) for text in texts) or not texts & set(MISSING):
        return column
    known = {text: None for text in texts & set(MISSING)}
    for text in texts - set(MISSING):
        if not _NUMBER.fullmatch(text):
            return column
        number = float(text)
        known[text] = int(number) if number.is_integer() else number
    return np.array([known.get(value) for value in column], dtype=object)


def refuse_points_beside_commas(column, name):
    """Raise if numbers that were read with points may be separated thousands: if all
    are 1 or more with three decimals at most, in a file with decimal commas.
    """
    if column.dtype.kind != "f" or column.ndim != 1:
        return
    known = column[np.isfinite(column)]  # neither missing nor infinite
    # Whole numbers without a point would be integers, unless one is missing.
    has_points = np.any(known != np.floor(known)) or known.size == column.size > 0
    if has_points and known.min() >= 1 and np.allclose(known * 1000 % 1, 0):
        raise ReportError(
            f"column {name!r} holds numbers such as {known[0]:.3f}, while another"
            f" column has decimal commas: the points in {name!r} may separate"
            " thousands. Use the same format for all numbers."
        )


def refuse_unclear_scale(column, name, *, is_percentage):
    """Raise if scores are no probabilities, or if their name says that they are
    percentages and their cells do not (`is_percentage`): what they are is asked, never
    guessed.
    """
    if column.dtype.kind not in "iuf":
        return
    known = column[np.isfinite(column)]
    if known.size == 0:
        return
    is_outside = (known < 0) | (known > 1)
    if not is_outside.any():
        is_called_one = _PERCENT_NAME.search(name) is not None
        if is_called_one and not is_percentage and np.any(known > 0):
            raise ReportError(
                f"column {name!r} is named like a percentage, but its values lie"
                f" between {known.min():.6g} and {known.max():.6g}: state their scale"
                " with --scores percent or --scores probability."
            )
        return
    with np.errstate(invalid="ignore"):
        outside = (column < 0) | (column > 1)
    row, *_ = np.argwhere(outside)[0].tolist()
    example = column[outside][0]
    few = ""
    if is_outside.sum() < 0.05 * known.size:
        few = f"; {is_outside.sum():,} of {known.size:,} are outside"
    raise ReportError(
        f"column {name!r}: scores must be probabilities in [0, 1], but row {row} is"
        f" {_outside(example)} (they range from {_outside(known.min())} to"
        f" {_outside(known.max())}{few})."
        " Correct them, or state their scale with --scores percent, logit, odds (p / (1"
        " - p)) or decimal-odds (1 / p). Rows are counted from 0, without the"
        " header."
    )


def _outside(value):
    """Return a number as text that is not rounded to 0 or 1."""
    text = rounded(float(value), 6)
    return str(float(value)) if text in ("0", "1") else text


def _vectors(column, name, numbers_of):
    """Return lists of numbers as an array (n, K), with NaN for a missing list;
    `numbers_of` turns a cell into a list.
    """
    rows = []
    for row, cell in enumerate(column):
        if cell is None:
            rows.append(None)
            continue
        try:
            rows.append([float(value) for value in numbers_of(cell)])
        except (TypeError, ValueError, KeyError) as error:
            raise ReportError(
                f"column {name!r}: row {row} holds {str(cell)[:40]!r}, which is not a"
                " list of numbers."
            ) from error
    lengths = {len(values) for values in rows if values is not None}
    if len(lengths) > 1:
        raise ReportError(
            f"column {name!r} holds lists of {min(lengths)} to {max(lengths)} numbers:"
            " each row needs one for every class."
        )
    (length,) = lengths
    if length < 2:
        raise ReportError(
            f"column {name!r} holds lists of {length} number{'s' * (length != 1)}: two"
            " or more are needed, one for every class."
        )
    missing = [np.nan] * length
    return np.array([missing if values is None else values for values in rows])


def _plain_list(cell):
    """Return a list of numbers, or the vector of Spark, a record, as a list."""
    if not isinstance(cell, dict):
        return list(cell)
    if cell.get("indices") is None:
        return list(cell["values"])
    return _dense(int(cell["size"]), cell["indices"], cell["values"])


def _written_list(cell):
    """Return a written list such as "[0.1, 0.9]", or the vector of Spark, as a list."""
    sparse = _SPARSE.fullmatch(cell)
    if sparse:
        size, indices, values = sparse.groups()
        return _dense(int(size), map(int, indices.split(",")), values.split(","))
    found = _LIST.fullmatch(_NUMPY_FLOAT.sub(r"\1", cell))
    if not found:
        raise ValueError
    return re.split(r"[,;\s]+", found[1].strip("[]() \n"))


def _dense(size, indices, values):
    """Return a sparse vector as a list of all its numbers."""
    numbers = [0.0] * size
    for index, value in zip(indices, values, strict=True):
        numbers[index] = value
    return numbers


def names_of_vector(name, length):
    """Return the names that a report gives the numbers of a column of lists."""
    return tuple(f"{name}[{k}]" for k in range(length))


def _code_of_lists(name, first):
    """Return the line of Python that spreads lists over columns named as in the report;
    `first` is one of the lists.
    """
    column = f"df[{dumps(name, ensure_ascii=False)}]"
    if isinstance(first, str):
        column += r'.str.findall(r"[-\d.eE+]+")'
    elif isinstance(first, dict):
        column += '.str["values"]'
    before = dumps(f"{name}[", ensure_ascii=False)
    return (
        f"df = df.join(pd.DataFrame({column}.tolist()).astype(float)"
        f'.add_prefix({before}).add_suffix("]"))'
    )
