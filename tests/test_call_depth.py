"""How many calls lie between a public method and its arithmetic: each of them is one
more place that a reader has to open.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import skcalib
from skcalib import PlattScaling, RecalibratedClassifierCV
from skcalib.maps import LogOdds, Rows, Scaled, Scores

_PACKAGE = str(Path(skcalib.__file__).parent)


def depth_to(name, call):
    """Return how many functions of the package are on the stack when the one with the
    qualified `name` runs, itself included: the fewest of all its runs in ``call()``.
    """
    depths = []

    def look(frame, event, _):
        if event != "call" or frame.f_code.co_qualname != name:
            return
        depth = 0
        while frame is not None:
            depth += frame.f_code.co_filename.startswith(_PACKAGE)
            frame = frame.f_back
        depths.append(depth)

    call()  # what is imported or built once
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return min(depths)


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    scores = rng.random(500)
    return scores, rng.random(500) < scores


def test_a_fit_is_one_layer(samples):
    assert depth_to("fit_logistic", lambda: PlattScaling().fit(*samples)) <= 4


def test_a_fit_to_scores_of_a_classifier(samples):
    scores, y = samples
    model = RecalibratedClassifierCV(LogisticRegression(), PlattScaling())
    assert depth_to("fit_logistic", lambda: model.fit(scores[:, None], y)) <= 8


@pytest.mark.parametrize("node", ["LogOdds", "Scaled"])
def test_nodes_of_a_map_are_evaluated_one_after_the_other(samples, node):
    platt = PlattScaling().fit(*samples)
    depth = depth_to(f"{node}.__call__", lambda: platt.predict_proba(samples[0]))
    assert depth <= 5


def test_the_depth_of_a_call_is_counted():
    chain = Scaled(LogOdds(Scores()), 2.0)

    def evaluate():
        return Rows([[0.5]])(chain)

    assert depth_to("Rows.__call__", evaluate) == 1
    assert depth_to("Scaled.__call__", evaluate) == 2
    assert depth_to("LogOdds.__call__", evaluate) == 2  # and not inside of `Scaled`
    assert depth_to("LogOdds.__call__", lambda: chain.of(Rows([[0.5]]))) == 1
