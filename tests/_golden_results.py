"""Results of each stable name on small rows, in `golden_results.json`: what a release
may not change in silence.

``python tests/freeze.py`` computes and writes them anew. That is needed where a result
changes on purpose, which the changelog then says.
"""

import json
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from registry import REGISTRY
from registry._rows import RESULTS_PATH as PATH
from registry._rows import frozen_rows

from skcalib import metrics


def plain(result):
    """Return a result as what JSON holds: numbers, texts, lists and dicts."""
    if isinstance(result, metrics.BinStatistics) or is_dataclass(result):
        named = {field.name: getattr(result, field.name) for field in fields(result)}
        return {
            name: plain(value)
            for name, value in named.items()
            if value is not None and name != "assumptions" and name[0] != "_"
        }
    if hasattr(result, "_asdict"):
        return {name: plain(value) for name, value in result._asdict().items()}
    if isinstance(result, dict):
        return {str(name): plain(value) for name, value in result.items()}
    if isinstance(result, (list, tuple, np.ndarray)):
        return [
            plain(one)
            for one in (result.tolist() if isinstance(result, np.ndarray) else result)
        ]
    if isinstance(result, np.generic):
        return result.item()
    return (
        result
        if result is None or isinstance(result, (bool, int, float, str))
        else repr(result)
    )


def results(names=REGISTRY):
    """Yield the results of public names: the name and what of it, and the result."""
    rows = frozen_rows()
    for name in names:
        for what, result in REGISTRY[name].frozen_results(rows).items():
            short = name.removeprefix("skcalib.")
            yield (f"{short}: {what}" if what else short), result


def leaves(value, path=""):
    """Yield the path and the value of each number and text."""
    if isinstance(value, (dict, list)):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(one, f"{path}/{key}")
    else:
        yield path, value


def assert_same(found, frozen):
    found, frozen = dict(leaves(found)), dict(leaves(frozen))
    assert found.keys() == frozen.keys()
    for path, value in frozen.items():
        exact = value is None or isinstance(value, str)
        assert (
            found[path] == value
            if exact
            else found[path] == pytest.approx(value, rel=1e-9, abs=1e-11, nan_ok=True)
        ), path


def write():
    """Compute all results, and write the file. Those that agree with it keep their
    digits, so that the diff shows what has changed.
    """
    stored = json.loads(PATH.read_text("utf-8"))
    lines = []
    for name, result in results():
        written = json.loads(json.dumps(plain(result)))
        frozen = stored["results"].get(name)
        if frozen is not None and agrees(written, frozen):
            written = frozen
        lines.append(f"{json.dumps(name)}: {json.dumps(written)}")
    text = ",\n".join(lines)
    PATH.write_text(
        f'{{"data": {json.dumps(stored["data"])},\n"results": {{\n{text}\n}}}}\n',
        "utf-8",
    )


def agrees(found, frozen):
    """Return whether two results are the same, to rounding."""
    try:
        assert_same(found, frozen)
    except AssertionError:
        return False
    return True
