"""Maps by segment, as `PredictionTable(by=...).fit` returns them in a dict."""

import numpy as np

from skcalib.maps import CalibrationMap, Choice, GroupOf, calibration_map


def segment_items(maps):
    """Return a list of pairs (segment, recalibrator) from a dict; raise a ValueError if
    it is empty or has other keys.

    A segment is a string, a number, a boolean or None; a tuple of length one means its
    entry.
    """
    if not maps:
        raise ValueError("A dict of maps by group must contain at least one map.")
    pairs = []
    for segment, recalibrator in maps.items():
        if isinstance(segment, tuple) and len(segment) == 1:
            (segment,) = segment
        if hasattr(segment, "item"):  # a scalar of NumPy
            segment = segment.item()
        if not (segment is None or isinstance(segment, str | bool | int | float)):
            raise ValueError(
                "A dict of maps needs groups from a single column (strings, numbers or"
                f" booleans), found {segment!r}."
            )
        pairs.append((segment, recalibrator))
    return pairs


def check_no_features(pairs):
    """Raise a ValueError if a recalibrator of the pairs (segment, recalibrator) takes
    features besides the score.
    """
    for segment, recalibrator in pairs:
        if getattr(recalibrator, "features", None) is not None:
            raise ValueError(
                f"The map of the group {segment!r} takes features besides the score:"
                " write it alone, or write the dict with to_sql."
            )


def one_number_of_classes(pairs):
    """Return the number of classes of the recalibrators in pairs (segment,
    recalibrator); raise a ValueError if they differ.
    """
    numbers = {len(recalibrator.classes_) for _, recalibrator in pairs}
    if len(numbers) > 1:
        raise ValueError(
            f"The maps of a dict must have the same classes, found {sorted(numbers)}"
            " classes."
        )
    return numbers.pop()


def map_of_segments(maps):
    """Return a `CalibrationMap` that applies to each row the map of its segment, from a
    dict of recalibrators by segment.

    All must take the same scores of the same classes. Rows of a segment that is not in
    the dict have a case of their own, whose index is the number of segments.
    """
    pairs = segment_items(maps)
    one_number_of_classes(pairs)
    check_no_features(pairs)
    segment_maps = []
    for segment, recalibrator in pairs:
        if segment is None:
            raise ValueError(
                "An ONNX graph stores groups as strings, and none represents a missing"
                " value: omit the map for None."
            )
        n_columns = getattr(recalibrator, "_score_width", None)
        segment_map = calibration_map(recalibrator, n_columns=n_columns)
        if segment_map.group_key is not None:
            raise ValueError(
                "A recalibrator in a dict of recalibrators cannot itself have groups."
            )
        segment_maps.append(segment_map)
    first = segment_maps[0]
    for other in segment_maps[1:]:
        is_alike = (
            other.input == first.input
            and other.scores.width == first.scores.width
            and other._leaves_impossible_out == first._leaves_impossible_out
            and np.array_equal(other.classes, first.classes)
        )
        if not is_alike:
            raise ValueError(
                "The maps of a dict must have the same scores and classes to form one"
                " graph."
            )
    index_of_segment = {segment: k for k, (segment, _) in enumerate(pairs)}
    key = GroupOf(None, index_of_segment, len(segment_maps))
    # The case of unknown segments needs some map; writers put NaN in its place.
    cases = [*segment_maps, first]
    # The output of a map gives 0 to classes that are impossible in a row; `unmasked` is
    # the same map without this.
    unmasked = Choice(key, tuple(case.unmasked for case in cases))
    output = unmasked
    if first._leaves_impossible_out:
        output = Choice(key, tuple(case.output for case in cases))
    return CalibrationMap(first.scores, output, first.input, first.classes, unmasked)
