"""Maps by segment, as `PredictionTable(by=...).fit` returns them in a dict."""

import numpy as np

from skcalib.maps import CalibrationMap, Choice, GroupOf, calibration_map


def segment_items(maps):
    """Return the pairs of a segment and its recalibrator, or raise for other dicts.

    A segment is a text, a number, a boolean or None. Of a tuple of one the value.
    """
    if not maps:
        raise ValueError("A dict of maps by segment must hold at least one.")
    pairs = []
    for segment, recalibrator in maps.items():
        if isinstance(segment, tuple) and len(segment) == 1:
            (segment,) = segment
        if hasattr(segment, "item"):  # a scalar of NumPy
            segment = segment.item()
        if not (segment is None or isinstance(segment, str | bool | int | float)):
            raise ValueError(
                "A dict of maps is written for segments of one column: texts, numbers"
                f" or booleans, found {segment!r}."
            )
        pairs.append((segment, recalibrator))
    return pairs


def one_number_of_classes(pairs):
    """Return the number of classes of all the maps."""
    numbers = {len(recalibrator.classes_) for _, recalibrator in pairs}
    if len(numbers) > 1:
        raise ValueError(
            f"The maps of a dict must have the same classes, found {sorted(numbers)}"
            " classes."
        )
    return numbers.pop()


def map_of_segments(maps):
    """Return the map that chooses the one of the row's segment.

    The number of a segment that is in none of them is that of the segments. All must
    take the same scores of the same classes.
    """
    pairs = segment_items(maps)
    one_number_of_classes(pairs)
    parts = []
    for segment, recalibrator in pairs:
        if segment is None:
            raise ValueError(
                "A graph has texts for segments, and none for a missing one: leave the"
                " map of None out."
            )
        n_columns = getattr(recalibrator, "_score_width", None)
        part = calibration_map(recalibrator, n_columns=n_columns)
        if part.group_key is not None:
            raise ValueError("The maps of a dict cannot have groups of their own.")
        parts.append(part)
    first = parts[0]
    for part in parts[1:]:
        is_alike = (
            part.input == first.input
            and part.scores.width == first.scores.width
            and part._leaves_impossible_out == first._leaves_impossible_out
            and np.array_equal(part.classes, first.classes)
        )
        if not is_alike:
            raise ValueError(
                "The maps of a dict must take the same scores of the same classes to be"
                " one graph."
            )
    numbers = {segment: k for k, (segment, _) in enumerate(pairs)}
    key = GroupOf(None, numbers, len(parts))
    unmasked = Choice(key, (*(part.unmasked for part in parts), first.unmasked))
    output = unmasked
    if first._leaves_impossible_out:
        output = Choice(key, (*(part.output for part in parts), first.output))
    return CalibrationMap(first.scores, output, first.input, first.classes, unmasked)
