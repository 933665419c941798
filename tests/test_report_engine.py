"""What a report says of means is what the library's one engine says of them."""

import json
import re

import numpy as np
import pytest
from scipy.special import expit

from skcalib._report._forecasts import ReportTable
from skcalib._report._numbers import report_numbers
from skcalib._report._page import report_page
from skcalib._report._pictures import Picture
from skcalib._report._sections import comparisons


def _sites(sizes, scores_by_name=("p",), seed=1):
    """Return a table of sites, whose event frequencies differ, with right scores."""
    rng = np.random.default_rng(seed)
    site = np.repeat(np.arange(len(sizes)), sizes)
    odds = rng.normal(0, 1, len(site))
    effect = rng.normal(0, 0.7, len(sizes))[site]
    labels = rng.random(len(site)) < expit(odds + effect)
    scores = {}
    for k, name in enumerate(scores_by_name):
        scores[name] = expit(odds + 0.2 * k * rng.normal(size=len(site)))
    return ReportTable(
        "file", "y", "1", labels, scores, clusters=site, cluster_name="site"
    )


@pytest.mark.slow
def test_one_large_site_gives_no_limits_but_a_reason_everywhere():
    """One site of 600 rows among eleven of 40 is worth 2.9 of equal size."""
    table = _sites([600] + [40] * 11, ("p", "q"))
    numbers = report_numbers(table, seed=0, step=lambda what: None, thresholds=(0.5,))
    text = json.dumps(numbers, allow_nan=False)
    assert "unknown" not in text
    assert "nan" not in text
    for model in numbers["models"]:
        bias = model["score_minus_frequency"]
        assert (bias["low"], bias["high"]) == (None, None)
        assert "number of clusters is 2.9" in bias["reason"]
        assert model["verdicts"]["bias"]["kind"] == "cannot tell"
        assert (
            "the bias has no interval, because the effective number of"
            in model["summary"]
        )
        for score in model["proper_scores"]:
            assert score["low"] is None
            assert score["reason"] == bias["reason"]
        for row in model["decisions"]:
            assert row["treated"]["low"] is None
            assert row["treated"]["reason"] == bias["reason"]
        assert model["advice"]["kind"] == "none"
    assert (
        "no interval, because the effective number of clusters is"
        in comparisons(numbers["models"])[0]
    )
    assert not numbers["models"][1]["is_inferior"]
    pytest.importorskip("jinja2", reason="the page needs jinja2 (extra report)")
    page = report_page(numbers, {"reliability": Picture(b"<svg/>", "a diagram", "")})
    words = re.sub(r"<script.*</script>|<style.*</style>", "", page, flags=re.S)
    assert "unknown" not in words
    assert "would lower the log-loss by" in words or "would raise" in words
    assert "% (no interval)" in words.replace("\u00a0", " ")


@pytest.mark.slow
@pytest.mark.parametrize("largest", [40, 300])
def test_the_bias_of_unequal_sites_is_held_by_its_interval(largest):
    from skcalib._report._judged import judged_model

    missed = 0
    for seed in range(60):
        table = _sites([largest] + [40] * 11, seed=seed)
        error = {"estimate": 0.0, "low": 0.0, "high": 1.0}
        found = judged_model(table.event_rows("p"), error, 0.02, None)
        bias = found["score_minus_frequency"]
        # The scores are right on average over sites: by symmetry the bias is 0.
        missed += not bias["low"] <= 0 <= bias["high"]
    # 5 % and three standard errors of 60 draws
    assert missed / 60 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)
