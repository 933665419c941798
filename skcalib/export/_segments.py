"""Maps by segment, as `PredictionTable(by=...).fit` returns them in a dict."""


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
        segment = getattr(segment, "item", lambda segment=segment: segment)()
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
