"""How results look in a notebook and in a terminal: short, right, and with HTML that is
escaped.
"""

from html.parser import HTMLParser

import numpy as np
import pytest

from skcalib import metrics
from skcalib._inference.results import IntervalEstimate
from skcalib.guarantees import independent_bins_certificate
from skcalib.metrics import (
    brier_decomposition,
    calibration_by_group,
    calibration_error_interval,
    calibration_slope_intercept,
    calibration_test,
    segment_calibration_test,
)
from skcalib.monitoring import CalibrationMonitor, calibration_change

RNG = np.random.default_rng(0)
SCORES = RNG.random(300)
Y = RNG.random(300) < SCORES
NAMES = np.where(np.arange(300) % 2, "<b>north</b>", "a & b")
QUICK = {"n_resamples": 9, "random_state": 0}


def _results():
    columns = np.stack((NAMES, NAMES), axis=1).astype(object)
    return {
        "certificate": independent_bins_certificate(
            [20, 180], [200, 200], [0.1, 0.9], edges="fixed"
        ),
        "interval": calibration_error_interval(Y, SCORES, **QUICK),
        "test": calibration_test(Y, SCORES, **QUICK),
        "decomposition": brier_decomposition(Y, SCORES),
        "slope": calibration_slope_intercept(Y, SCORES),
        "groups": calibration_by_group(Y, SCORES, NAMES, **QUICK),
        "segments": segment_calibration_test(Y, SCORES, columns, **QUICK),
        "change": calibration_change(
            Y[:150], SCORES[:150], Y[150:], SCORES[150:], **QUICK
        ),
        "history": CalibrationMonitor().partial_fit(SCORES, Y).history_,
    }


RESULTS = _results()


class _Balanced(HTMLParser):
    """Collects the tags and the text, and fails where a tag is closed that is not
    open.
    """

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.words = [], set(), []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def _parsed(result):
    parser = _Balanced()
    parser.feed(result._repr_html_())
    parser.close()
    assert parser.open == []
    return parser


@pytest.mark.parametrize("name", RESULTS)
def test_html_is_whole_and_text_is_short(name):
    parser = _parsed(RESULTS[name])
    assert parser.tags <= {
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "p",
        "strong",
        "ul",
        "li",
    }
    text = repr(RESULTS[name])
    assert text == str(RESULTS[name])
    assert len(text.split("\n")) <= 14
    assert "array(" not in text
    assert "np.float64" not in text


def test_names_of_users_are_escaped():
    for name in ("groups", "segments"):
        parser = _parsed(RESULTS[name])
        assert "b" not in parser.tags
        assert any("<b>north</b>" in word for word in parser.words)


def test_intervals_say_what_they_are_and_stay_tuples():
    interval = IntervalEstimate(
        0.0123456, 0.0, 0.0234567, quantity="Error", confidence_level=0.9
    )
    assert repr(interval) == "Error: 0.012 (90 %: 0.000 to 0.023)."
    assert _parsed(interval).words == [
        repr(interval),
        "estimate",
        "low",
        "high",
        "0.0123",
        "0",
        "0.0235",
    ]
    assert interval == (0.0123456, 0.0, 0.0234567)
    slope = _parsed(RESULTS["slope"]).words
    assert slope[:4] == [str(RESULTS["slope"]), "estimate", "low", "high"]
    assert {"slope", "intercept"} <= set(slope)


def test_a_certificate_is_sentences():
    certificate = RESULTS["certificate"]
    assert repr(certificate).split("\n")[0] == (
        "With 90 % confidence, every predicted probability differs by at most 0.0503"
        " from the true event frequency among samples that receive it."
    )
    words = " ".join(_parsed(certificate).words)
    assert all(
        line.removeprefix("- ") in words for line in str(certificate).split("\n")
    )


def test_headlines_of_segments_and_change():
    segments, change = RESULTS["segments"], RESULTS["change"]
    assert repr(segments).startswith("No miscalibration is detectable in any of ")
    first, second = repr(change).split("\n")[:2]
    assert first.startswith("No change is detectable (p > 0.99): at equal scores")
    assert second == "150 samples before, 150 after."
    assert _parsed(change).words[0] == first


def test_results_that_were_tuples_unpack_in_order_and_have_a_frame():
    pytest.importorskip("pandas", reason="to_frame needs pandas")
    rng = np.random.default_rng(0)
    scores = rng.random(400)
    y = rng.random(400) < scores**2
    test = metrics.calibration_test(y, scores, n_resamples=49, random_state=0)
    statistic, pvalue = test
    assert (statistic, pvalue) == (test.statistic, test.pvalue) == test
    assert test[0] == statistic
    assert len({test, (statistic, pvalue)}) == 1
    assert test.to_frame().columns.tolist() == ["statistic", "pvalue"]
    assert "not calibrated (p = 0.02)" in str(test)
    parts = metrics.brier_decomposition(y, scores)
    miscalibration, discrimination, uncertainty = parts
    assert parts.score == miscalibration - discrimination + uncertainty
    assert len(parts.to_frame().columns) == 4
    worst = metrics.decision_calibration_error(y, scores, return_threshold=True)
    error, threshold = worst
    assert error == metrics.decision_calibration_error(y, scores)
    assert worst.to_frame().threshold[0] == threshold
    curve = metrics.validity_curve(y, scores, binning=5)
    epsilons, validity = curve
    assert curve.to_frame().validity.tolist() == validity.tolist()
    assert len(curve) == len(epsilons) == 6
    by_group = metrics.groupwise_calibration_error(
        y, scores, groups=np.arange(400) % 3, reduce=None
    )
    assert isinstance(by_group, dict)
    assert by_group.to_frame().group.tolist() == [0, 1, 2]
    segments = metrics.segment_calibration_test(
        y, scores, scores[:, None] > 0.5, n_resamples=9, random_state=0
    )
    statistic, pvalue, table = segments
    assert segments.to_frame().segment[0] == table.segment[0]
    for result in (test, parts, worst, curve, by_group, segments):
        assert "<table" in result._repr_html_()
