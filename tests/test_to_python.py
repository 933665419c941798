"""Recalibrators as functions of the standard library."""

import ast
import math

import numpy as np
import pytest
from _catalog import refused
from sklearn.frozen import FrozenEstimator

from skcalib import (
    GroupwiseRecalibrator,
    HistogramBinning,
    PlattScaling,
    TemperatureScaling,
)
from skcalib.decisions import CertifiedThresholdClassifier
from skcalib.export import to_python


def made(recalibrator, name="calibrate"):
    """Return the function that the text defines."""
    module = {}
    exec(to_python(recalibrator, name=name), module)
    return module[name]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    scores = rng.random(2000)
    return scores, (rng.random(2000) < scores**2).astype(int)


def test_only_the_standard_library_is_imported(rows):
    tree = ast.parse(to_python(PlattScaling().fit(*rows)))
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    modules = [alias.name for node in imported for alias in node.names]
    modules += [
        node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    ]
    assert modules == ["math", "bisect"]


def test_extreme_log_odds_do_not_overflow():
    rng = np.random.default_rng(0)
    log_odds = 2 * rng.normal(size=500)
    y = rng.random(500) < 1 / (1 + np.exp(-log_odds / 2))
    for recalibrator in (PlattScaling(input="logit"), TemperatureScaling()):
        recalibrator.set_params(input="logit")
        recalibrator.fit(log_odds, y)
        calibrate = made(recalibrator)
        for extreme in (-1e9, -800.0, 800.0, 1e9):
            expected = recalibrator.predict_proba([extreme])[0, 1]
            assert calibrate(extreme) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "score", [math.nan, -0.1, 1.1, None, "0.5", True, math.inf, [0.5]]
)
def test_what_is_no_score_gives_nan(rows, score):
    assert math.isnan(made(PlattScaling().fit(*rows))(score))


def test_rows_of_many_classes():
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.ones(3), 300)
    recalibrator = TemperatureScaling().fit(scores, np.arange(300) % 3)
    calibrate = made(recalibrator)
    expected = recalibrator.predict_proba(scores[:1])[0]
    for row in (scores[0], tuple(scores[0]), scores[0].tolist()):
        np.testing.assert_allclose(calibrate(row), expected, atol=1e-12)
    for wrong in ([0.5, 0.5], [0.5, 0.4, 0.2], [0.5, math.nan, 0.5], 0.5, "abc"):
        assert np.isnan(calibrate(wrong)).tolist() == [True] * 3


def test_impossible_classes_get_0():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(300, 3))
    recalibrator = TemperatureScaling(input="logit")
    recalibrator.fit(logits, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1))
    new = np.array([[1.0, -np.inf, 0.0], [1.0, 0.5, -1e4], [0.0, -np.inf, -np.inf]])
    found = [made(recalibrator)(row) for row in new.tolist()]
    np.testing.assert_allclose(found, recalibrator.predict_proba(new), atol=1e-12)


@pytest.mark.parametrize("promise", ["precision", "error_when_answered"])
def test_a_decision_is_its_label(rows, promise):
    scores, y = rows
    recalibrator = HistogramBinning().fit(scores[:1000], y[:1000])
    held_out = scores[1000:, None]
    decider = CertifiedThresholdClassifier(
        FrozenEstimator(recalibrator), promise=promise, target=0.4
    ).fit(held_out, y[1000:])
    decide = made(decider)
    found = [decide(score) for score in held_out[:200, 0]]
    assert found == decider.predict(held_out[:200]).tolist()
    assert decide(1.5) is None


def test_groups_and_segments(rows):
    scores, y = rows
    groups = np.where(np.arange(2000) % 2, "north", "south")
    of_groups = GroupwiseRecalibrator(PlattScaling()).fit(scores, y, groups=groups)
    calibrate = made(of_groups)
    expected = of_groups.predict_proba(scores[:9], groups=groups[:9])[:, 1]
    found = [calibrate(*row) for row in zip(scores[:9], groups[:9], strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    unseen = of_groups.pooled_recalibrator_.predict_proba([0.25])[0, 1]
    assert calibrate(0.25, "east") == pytest.approx(unseen, abs=1e-12)
    assert math.isnan(calibrate(0.25, None))

    maps = {
        (True,): PlattScaling().fit(*rows),
        ("it's",): HistogramBinning().fit(*rows),
    }
    by_segment = made(maps)
    for segment, recalibrator in maps.items():
        expected = recalibrator.predict_proba([0.3])[0, 1]
        assert by_segment(0.3, *segment) == pytest.approx(expected, abs=1e-12)
    assert math.isnan(by_segment(0.3, "unseen"))


@pytest.mark.parametrize("name", ["", "a b", "1a", "lambda", None])
def test_names_are_names_of_python(rows, name):
    with refused(ValueError, "name"):
        to_python(PlattScaling().fit(*rows), name=name)
