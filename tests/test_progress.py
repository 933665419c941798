"""Progress: lines on standard error of long work, and none that were not asked for."""

import inspect
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import skcalib
from skcalib import (
    CrossFittedClassifier,
    MulticalibratedRecalibrator,
    PlattScaling,
    RecalibratedClassifierCV,
)
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
    clock = iter([1.0, 1.5, 3.2, 3.3])
    monkeypatch.setattr(module, "monotonic", lambda: next(clock))
    progress = Progress("counting", True, begun=0.0)
    for number in range(4):
        progress(f"{number} of 4")
    assert capsys.readouterr().err.splitlines() == [
        "[counting] 0 of 4, 1 s",
        "[counting] 2 of 4, 3 s",
    ]


def test_a_line_says_how_long_the_rest_may_take(capsys, monkeypatch):
    clock = iter([3.0, 6.0, 9.0, 12.0])
    monkeypatch.setattr(module, "monotonic", lambda: next(clock))
    progress = Progress("counting", True, begun=0.0)
    assert list(progress.over("abcd", 4, "letters")) == list("abcd")
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first == "[counting] 1 of 4 letters, 3 s, about 9 s left"
    assert last == "[counting] 4 of 4 letters, 12 s, about 0 s left"


rng = np.random.default_rng(0)
scores = rng.random(300)
labels = rng.random(300) < scores
LONG_WORK = [
    partial(calibration_test, labels, scores, n_resamples=9, random_state=0),
    partial(
        calibration_test,
        labels,
        scores,
        metric=smooth_calibration_error,
        n_resamples=9,
        random_state=0,
    ),
    partial(
        calibration_test,
        labels,
        scores,
        metric=lambda y, s: np.mean(y - s),
        n_resamples=9,
        random_state=0,
    ),
    partial(calibration_error_interval, labels, scores, n_resamples=9, random_state=0),
    partial(
        calibration_by_group,
        labels,
        scores,
        np.arange(300) % 3,
        n_resamples=9,
        random_state=0,
    ),
    partial(recalibration_gain, labels, scores, recalibrator=PlattScaling()),
    partial(recalibration_gain, labels, scores, cv=2),
    partial(
        segment_calibration_test,
        labels,
        scores,
        np.c_[scores],
        n_resamples=9,
        random_state=0,
    ),
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
    assert (
        "[MulticalibratedRecalibrator] round 1 of at most 2" in capsys.readouterr().err
    )
    np.testing.assert_array_equal(shown.predict_proba(X), silent.predict_proba(X))


@pytest.mark.parametrize("options", [{}, {"ensemble": True}, {"ensemble": False}])
def test_cross_fitting_shows_its_fits(options, capsys):
    X = np.column_stack((scores, scores**2))
    makers = [
        partial(RecalibratedClassifierCV, GaussianNB(), PlattScaling(), cv=2, **options)
    ]
    for make in [*makers, partial(CrossFittedClassifier, GaussianNB(), cv=2)]:
        silent = make()
        silent = (
            silent.fit_transform(X, labels)
            if hasattr(silent, "fit_transform")
            else silent.fit(X, labels)
        )
        assert capsys.readouterr() == ("", "")
        shown = make(verbose=True)
        shown = (
            shown.fit_transform(X, labels)
            if hasattr(shown, "fit_transform")
            else shown.fit(X, labels)
        )
        captured = capsys.readouterr()
        assert captured.err.startswith(f"[{make.func.__name__}] 1 of ")
        assert "fits of the classifier" in captured.err
        if make.func is CrossFittedClassifier:
            np.testing.assert_array_equal(shown, silent)
        else:
            np.testing.assert_array_equal(
                shown.predict_proba(X), silent.predict_proba(X)
            )


def test_bin_counts_show_their_recalibrators(capsys):
    pytest.importorskip("matplotlib")
    display = import_module("skcalib.displays").BinCountDisplay
    display.from_predictions(labels, scores, n_bins=[2, 3], cv=2)
    assert capsys.readouterr() == ("", "")
    display.from_predictions(labels, scores, n_bins=[2, 3], cv=2, verbose=True)
    assert "[BinCountDisplay] 1 of 2 recalibrators" in capsys.readouterr().err


def test_whatever_runs_jobs_at_once_can_show_where_it_is():
    pytest.importorskip("matplotlib")
    names = (
        "metrics",
        "evaluation",
        "displays",
        "decisions",
        "guarantees",
        "simulation",
        "monitoring",
        "engines",
    )
    silent, n_found = [], 0
    for place in (skcalib, *(import_module(f"skcalib.{name}") for name in names)):
        for name in place.__all__:
            public = getattr(place, name)
            methods = vars(public) if inspect.isclass(public) else {}
            for one in (
                public,
                *(getattr(public, key) for key in methods if not key.startswith("_")),
            ):
                if not callable(one):
                    continue
                try:
                    parameters = inspect.signature(one).parameters
                except ValueError:
                    continue
                if "n_jobs" in parameters:
                    n_found += 1
                    silent += [f"{name}.{one.__name__}"] * ("verbose" not in parameters)
    assert n_found >= 10
    assert not silent
