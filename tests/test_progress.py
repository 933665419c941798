"""Progress: lines on standard error of long work, and none that were not asked for."""

from functools import partial

import numpy as np
import pytest

from skcalib import MulticalibratedRecalibrator, PlattScaling
from skcalib import _progress as module
from skcalib._progress import Progress
from skcalib.evaluation import recalibration_gain
from skcalib.metrics import (
    calibration_by_group,
    calibration_error_interval,
    calibration_test,
    segment_calibration_test,
    smooth_calibration_error,
)


def test_a_line_says_who_what_and_for_how_long_but_not_too_often(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 1.5, 3.2, 3.3])
    monkeypatch.setattr(module, "monotonic", lambda: next(clock))
    progress = Progress("counting", True)
    for number in range(4):
        progress(f"{number} of 4")
    assert capsys.readouterr().err.splitlines() == ["[counting] 0 of 4, 1 s", "[counting] 2 of 4, 3 s"]


def test_a_line_says_how_long_the_rest_may_take(capsys, monkeypatch):
    clock = iter([0.0, 3.0, 6.0, 9.0, 12.0])
    monkeypatch.setattr(module, "monotonic", lambda: next(clock))
    assert list(Progress("counting", True).over("abcd", 4, "letters")) == list("abcd")
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first == "[counting] 1 of 4 letters, 3 s, about 9 s left"
    assert last == "[counting] 4 of 4 letters, 12 s, about 0 s left"


rng = np.random.default_rng(0)
scores = rng.random(300)
labels = rng.random(300) < scores
LONG_WORK = [
    partial(calibration_test, labels, scores, n_resamples=9, random_state=0),
    partial(calibration_test, labels, scores, metric=smooth_calibration_error, n_resamples=9, random_state=0),
    partial(calibration_test, labels, scores, metric=lambda y, s: np.mean(y - s), n_resamples=9, random_state=0),
    partial(calibration_error_interval, labels, scores, n_resamples=9, random_state=0),
    partial(calibration_by_group, labels, scores, np.arange(300) % 3, n_resamples=9, random_state=0),
    partial(recalibration_gain, labels, scores, recalibrator=PlattScaling()),
    partial(recalibration_gain, labels, scores, cv=2),
    partial(segment_calibration_test, labels, scores, np.c_[scores], n_resamples=9, random_state=0),
]


@pytest.mark.parametrize("run", LONG_WORK, ids=lambda run: run.func.__name__)
def test_long_work_shows_where_it_is_if_asked_to(run, capsys):
    silent = run()
    assert capsys.readouterr() == ("", "")
    shown = run(verbose=True)
    captured = capsys.readouterr()
    assert captured.err
    assert captured.out == ""
    assert repr(shown) == repr(silent)


def test_multicalibration_shows_its_rounds(capsys):
    X = np.column_stack((scores, rng.integers(0, 3, 300)))
    options = {"features": 1, "max_rounds": 2, "cv": 2, "random_state": 0}
    silent = MulticalibratedRecalibrator(**options).fit(X, labels)
    assert capsys.readouterr() == ("", "")
    shown = MulticalibratedRecalibrator(**options, verbose=True).fit(X, labels)
    assert "[MulticalibratedRecalibrator] round 1 of at most 2" in capsys.readouterr().err
    np.testing.assert_array_equal(shown.predict_proba(X), silent.predict_proba(X))
