"""What `advise` advises: the steps on samples of known truth, and its code, which does
what it says; it agrees with the default method or says why not.
"""

import numpy as np
import pytest
from _catalog import refused
from scipy.special import expit

import skcalib
from skcalib import Recalibrator
from skcalib.evaluation import advise, cross_validate
from skcalib.evaluation._advice_search import UNCHANGED, Candidate, Samples, Search
from skcalib.monitoring import calibration_change

MONTHS = np.array([f"2025-{month:02d}" for month in range(1, 13)])


def _samples(n, seed=0):
    """Return log-odds, uniform numbers, groups and months."""
    rng = np.random.default_rng(seed)
    return (
        rng.normal(-0.5, 1.5, n),
        rng.random(n),
        rng.choice(list("ABCD"), n),
        rng.integers(0, 12, n),
    )


def _run(advice, **arguments):
    """Run the code of an advice, and return what it defines."""
    names = dict(arguments)
    exec(advice.code(), names)
    return names


def test_a_shift_is_advised_with_its_evidence_and_its_code():
    odds, uniform, *_ = _samples(1000)
    y, scores = uniform < expit(odds - 0.7), expit(odds)
    advice = advise(y, scores, random_state=0)
    assert advice.kind == "shift"
    (step,) = advice.steps
    assert (step.name, step.before, step.segments) == ("PriorShift", "uncalibrated", ())
    expected = cross_validate(
        y, scores, {"shift": skcalib.PriorShift()}, n_repeats=3, random_state=0
    )
    assert tuple(step.gain) == pytest.approx(
        tuple(expected.gain("uncalibrated", "shift"))
    )
    pvalue = expected.pvalue("uncalibrated", "shift", alternative="greater")
    assert step.pvalue == pytest.approx(pvalue)
    calibrated = _run(advice, y_true=y, y_proba=scores)["calibrated"]
    fitted = skcalib.PriorShift().fit(scores, y)
    np.testing.assert_allclose(calibrated, fitted.predict_proba(scores))
    assert str(advice).startswith(
        "Shift the base rate with PriorShift(): on held-out data, this "
        "reduces the log-loss by "
    )
    assert advice.columns()["pvalue"].tolist() == [step.pvalue]


def test_nothing_is_advised_for_calibrated_scores():
    odds, uniform, groups, _ = _samples(800)
    advice = advise(uniform < expit(odds), expit(odds), groups=groups)
    assert (advice.kind, advice.steps, advice.code()) == ("none", (), "")
    assert advice.gain is None
    assert str(advice).startswith("Leave the scores unchanged: no recalibrator is")


@pytest.mark.slow
def test_a_group_of_its_own_gets_a_map_and_the_others_keep_their_scores():
    odds, uniform, groups, _ = _samples(1000)
    y, scores = uniform < expit(odds + 1.2 * (groups == "B")), expit(odds)
    advice = advise(y, scores, groups={"site": groups})
    assert (advice.kind, advice.steps[-1].segments) == ("map_by_segment", ("B",))
    assert (advice.steps[-1].column, advice.steps[-1].others) == ("site", "unchanged")
    names = _run(advice, y_true=y, y_proba=scores, groups={"site": groups})
    is_b = groups == "B"
    np.testing.assert_array_equal(names["calibrated"][~is_b, 1], scores[~is_b])
    mapped = names["calibrated"][is_b, 1].mean()
    assert mapped == pytest.approx(y[is_b].mean(), abs=0.01)
    # the out-of-fold probabilities are those of the same maps
    np.testing.assert_allclose(advice.probabilities[~is_b], scores[~is_b])
    assert "uses neither groups nor times" in advice.default


@pytest.mark.slow
def test_a_change_of_one_group_is_found_and_only_later_samples_are_fitted():
    odds, uniform, groups, months = _samples(2000)
    is_off = (groups == "C") & (months >= 7)
    y, scores = uniform < expit(odds + 1.5 * is_off), expit(odds)
    given = {"groups": groups, "time": MONTHS[months]}
    advice = advise(y, scores, **given)
    assert (advice.kind, advice.since) == ("map_since", "2025-08")
    assert advice.steps[-1].segments == ("C",)
    change = advice.changes[0]
    assert (change.group, change.since) == ("C", "2025-08")
    # The shift is that of the library's own test, on the probabilities as advised for
    # all samples; the true probability of C is higher by 20 to 40 points.
    before = (groups == "C") & (months < 7)
    plain = calibration_change(
        y[before], scores[before], y[is_off], scores[is_off], random_state=0
    )
    assert change.shift.estimate == pytest.approx(plain.shift.estimate, abs=0.05)
    calibrated = _run(advice, y_true=y, y_proba=scores, **given)["calibrated"]
    assert calibrated[is_off, 1].mean() == pytest.approx(y[is_off].mean(), abs=0.02)
    # without a change none is found
    plain = advise(uniform < expit(odds), scores, **given)
    assert (plain.changes, plain.since) == ([], None)


@pytest.mark.slow
def test_several_classes_labels_and_weights():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, (900, 3))
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = (proba.cumsum(axis=1) > rng.random((900, 1))).argmax(axis=1)
    names = np.array(["a", "b", "c"])
    sure = proba**2 / (proba**2).sum(axis=1, keepdims=True)
    advice = advise(names[codes], sure)
    assert (advice.kind, advice.steps[-1].name) == ("map", "TemperatureScaling")
    calibrated = _run(advice, y_true=names[codes], y_proba=sure)["calibrated"]
    np.testing.assert_allclose(calibrated.sum(axis=1), 1)
    # the event is the label that is named, and a weight of 2 is two samples
    odds, uniform, *_ = _samples(800)
    y = np.where(uniform < expit(odds + 1), "a", "b")
    weight = np.random.default_rng(1).integers(1, 4, 800)
    weighted = advise(y, expit(odds), pos_label="a", sample_weight=weight)
    assert weighted.kind == "shift"
    code = weighted.code()
    assert "np.asarray(y_true) == 'a'" in code
    names = _run(weighted, y_true=y, y_proba=expit(odds), sample_weight=weight)
    fitted = skcalib.PriorShift().fit(expit(odds), y == "a", weight)
    np.testing.assert_allclose(names["calibrated"], fitted.predict_proba(expit(odds)))


@pytest.mark.slow
def test_clusters_that_move_together_are_no_reason_to_recalibrate():
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(25), 80)
    odds = rng.normal(0, 1, 2000)
    apart = rng.normal(size=25)
    y = rng.random(2000) < expit(odds + (apart - apart.mean())[clusters] + 0.25)
    assert advise(y, expit(odds)).kind != "none"
    assert advise(y, expit(odds), clusters=clusters).kind == "none"


@pytest.mark.slow
def test_too_few_samples_or_too_few_equal_clusters_say_so():
    few = advise(np.arange(12) < 2, np.full(12, 0.3))
    assert (few.kind, few.code()) == ("none", "")
    assert str(few) == "There are too few samples of one class to recalibrate."
    clusters = np.arange(200) % 3
    rng = np.random.default_rng(0)
    few = advise(rng.random(200) < 0.5, rng.random(200), clusters=clusters)
    assert str(few) == "There are too few clusters to judge a recalibrator."
    # One cluster of 600 samples among eleven of 40: no gain has limits, so that no step
    # is accepted however large its gain is.
    clusters = np.repeat(np.arange(12), [600] + [40] * 11)
    odds = rng.normal(0, 1, 1040)
    y = rng.random(1040) < expit(odds)
    found = advise(y, expit(odds + 2), clusters=clusters)
    assert found.kind == "none"
    assert "nan" not in str(found)
    assert all(np.isnan(row["gain_low"]) for row in found.candidates[:1])


@pytest.mark.slow
@pytest.mark.parametrize("power", [1.0, 1.15, 2.0])
def test_it_agrees_with_the_default_method_or_says_why_not(power):
    rng = np.random.default_rng(3)
    truth = rng.beta(1, 2, 800)
    y = rng.random(800) < truth
    scores = truth**power / (truth**power + (1 - truth) ** power)
    advice = advise(y, scores)
    chosen = type(Recalibrator().fit(scores, y).chosen_).__name__
    advised = advice.steps[-1].name if advice.steps else "Uncalibrated"
    assert (chosen == advised) == (advice.default == "")
    if advice.default:
        assert advice.default in str(advice)
        assert "the default method" in advice.default


@pytest.mark.slow
def test_advice_is_reproducible_and_large_sets_are_sampled(monkeypatch):
    from skcalib.evaluation import _advise

    odds, uniform, groups, _ = _samples(900)
    y, scores = uniform < expit(0.6 * odds), expit(odds)
    first, second = (advise(y, scores, random_state=1) for _ in range(2))
    assert str(first) == str(second)
    monkeypatch.setattr(_advise, "_MOST_ROWS", 300)
    sampled = advise(y, scores, random_state=1)
    assert len(sampled.rows) == len(sampled.probabilities) == 300


class _Result:
    """Losses and p-values of candidates."""

    def __init__(self, losses, pvalues):
        self.losses, self.pvalues = losses, pvalues

    def mean_loss(self, name):
        return self.losses[name]

    def pvalue(self, before, after, alternative):
        return self.pvalues[before, after]

    def gain(self, before, after):
        return self.losses[before] - self.losses[after]


def test_a_less_simple_candidate_with_a_higher_loss_is_never_chosen():
    """Spline ahead of isotonic and stack; isotonic's interval is so wide that it is not
    significantly worse than the stack, which once made it the advice.
    """
    losses = {"none": 1.0, "spline": 0.8, "isotonic": 0.85, "stack": 0.79}
    pvalues = {("none", "spline"): 0.001, ("none", "isotonic"): 0.001}
    pvalues |= {("spline", "stack"): 0.3, ("none", "stack"): 0.001}
    candidates = [Candidate(name, None) for name in losses]
    weight = np.ones(2)  # weighted samples are not divided again
    samples = Samples(weight, weight, weight, None, "frequency", {}, None, 0)

    def path():
        search = Search(samples)
        search.result = _Result(losses, pvalues)
        search._known_evidence = {}
        return [candidate.key for candidate in search._accepted(candidates)]

    assert path() == ["none", "spline"]
    # A step that is not measurable is skipped, and a later one compared with nothing.
    pvalues["none", "spline"] = 0.3
    assert path() == ["none", "stack"]


def test_a_close_decision_is_taken_with_more_divisions_of_which_none_is_fitted_twice(
    monkeypatch,
):
    odds, uniform, *_ = _samples(300)
    y, scores = uniform < expit(odds - 0.4), expit(odds)
    monkeypatch.setattr("skcalib.evaluation._advice_search._CLOSE_FROM", -1)
    monkeypatch.setattr("skcalib.evaluation._advice_search._CLOSE_TO", 2)
    n_fits = 0
    fit = skcalib.PriorShift.fit

    def counted_fit(self, *args, **kwargs):
        nonlocal n_fits
        n_fits += 1
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(skcalib.PriorShift, "fit", counted_fit)
    search = Search(Samples(scores, y, None, None, "frequency", {}, None, 3))
    search.result = search.samples.cross_validated({"shift": skcalib.PriorShift()})
    search._known_evidence = {}
    search._divided = {}
    shift = Candidate("shift", skcalib.PriorShift)
    gain, pvalue = search.evidence(UNCHANGED, shift)
    assert n_fits == 12 * 5
    plain = cross_validate(
        y, scores, {"shift": skcalib.PriorShift()}, n_repeats=12, random_state=3
    )
    assert tuple(gain) == pytest.approx(tuple(plain.gain("uncalibrated", "shift")))
    expected = plain.pvalue("uncalibrated", "shift", alternative="greater")
    assert pvalue == pytest.approx(expected, rel=1e-9)
    probabilities = search._divided[12].probabilities["shift"]
    np.testing.assert_allclose(probabilities, plain.probabilities["shift"])
    # Six divisions are enough if the decision is no longer close with them.
    known_pvalue = search.result.pvalue("uncalibrated", "shift", alternative="greater")
    pvalue_of_six = search._divided[6].pvalue(
        "uncalibrated", "shift", alternative="greater"
    )
    assert known_pvalue != pvalue_of_six
    middle = (known_pvalue + pvalue_of_six) / 2
    if known_pvalue < pvalue_of_six:
        monkeypatch.setattr("skcalib.evaluation._advice_search._CLOSE_TO", middle)
    else:
        monkeypatch.setattr("skcalib.evaluation._advice_search._CLOSE_FROM", middle)
    search._known_evidence = {}
    assert search.evidence(UNCHANGED, shift)[1] == pvalue_of_six


def test_refusals():
    y, scores = np.arange(20) % 2, np.linspace(0.1, 0.9, 20)
    with refused(ValueError, "time", "19"):
        advise(y, scores, time=np.arange(19))
    with refused(ValueError, "groups"):
        advise(y, scores, groups=np.arange(19))
    with refused(ValueError, "tolerance"):
        advise(y, scores, tolerance=0)
    with refused(ValueError, "weight_type"):
        advise(y, scores, weight_type="other", sample_weight=np.ones(20))
