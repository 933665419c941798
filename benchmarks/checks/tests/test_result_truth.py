"""The truth table of printed results, certificates and titles, which `result_truth`
simulates: every class that prints sentences is in it, or has
a reason why no world makes its sentence false.
"""

import ast
from pathlib import Path

import pytest
from registry import DisplayEntry, entries_of
from scipy.stats import binom

import skcalib
from benchmarks.checks.result_truth import NAMES, SIZES, read, simulated

pytestmark = pytest.mark.slow
FOLDER = Path(skcalib.__file__).parent
# Classes whose sentences state what was computed from the samples, with the reason why
# no world makes these false.
OF_THE_SAMPLE = {
    "Advice": "the report's sentences on it are simulated by sentence_truth",
    "ReliabilityBand": "coverage of the band is simulated by test_monotone_band",
    "WeightDescription": "says what the weights are",
    "WorstThreshold": "a maximum over these samples, computed again in tests",
    "ScoreDecomposition": "parts that add up; simulated, but with no false world",
    "ValidationSampleSize": "supposes calibrated scores; simulated for these",
    "CalibrationByCluster": "simulated for clusters that differ by a known amount",
    "RecalibrationGains": "losses of these samples, with p-values of their intervals",
    "CrossValidatedRecalibrators": "losses of these samples; intervals in levels",
    "ErrorAutocorrelation": "samples of all worlds are independent; its level in tests",
    "EstimatedPerformance": "supposes stable frequencies; simulated for these",
    "BaseBinning": "says nothing",
    "CalibrationMonitor": "simulated as MonitorDisplay, which shows its alarm",
    "CurveFit": "says a fit to these samples",
    "CurveFits": "says which fit to these samples has the lowest AIC",
    "DescribedEstimator": "the base of those that say something",
    "EstimatorBias": "is a simulation",
    "GroupCalibrationByModel": "the sentences of GroupCalibration, model by model",
    "GroupDifferences": "the intervals of GroupCalibration, two by two",
    "GroupErrors": "the largest of these errors",
    "GroupMonitorTable": "simulated as MonitorDisplay, at the level of each group",
    "GroupMonitors": "the sentence of GroupMonitorTable",
    "MonitorHistory": "simulated as MonitorDisplay",
    "ProbabilityTransformer": "says what it was fitted to, and its gain",
    "RecalibratedClassifierCV": "says its recalibrator and the gain",
    "ResultRecord": "a base",
    "ResultTable": "a base",
    "UpdateTest": "p-values of these samples; its level is simulated by its tests",
    "ValidityShares": "a share of these samples",
    "Verification": "an upper limit, whose coverage is simulated by levels",
}
# Intervals at 90 %, guarantees at 90 % and prediction intervals from few clusters may
# miss twice as often as sentences at 95 %.
AT_90 = {
    "CalibrationTrend",
    "CalibrationChange: shift",
    "CalibrationSlopeIntercept",
    "CalibrationSlopeIntercept: off",
    "GroupCalibration: off",
    "GroupCalibration: worst",
    "IntervalEstimate: off",
    "ModelComparison: size",
    "EstimatedPerformance",
    "CertifiedThreshold",
    "CalibrationCertificate",
    "CalibrationByCluster: in a new cluster",
    "CalibrationByCluster: on average",
    "ReliabilityDisplay: error",
    "ChangeDisplay: shift",
    "NetBenefit: better than all",
    "NetBenefit: better than none",
    "NetBenefit: worse than all",
    "NetBenefit: worse than none",
}


def _printing_classes():
    """Return the classes of the package that say something in sentences."""
    found = set()
    for path in FOLDER.rglob("*.py"):
        if "_report" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            methods = {each.name for each in node.body if hasattr(each, "name")}
            if methods & {"__str__", "_sentences", "_state_sentence"}:
                found.add(node.name)
    return found


def _in_the_file():
    return {sentence.partition(":")[0] for sentence, *_ in read()}


def test_every_result_that_says_something_is_simulated():
    assert _printing_classes() - _in_the_file() <= set(OF_THE_SAMPLE)


def test_every_display_is_simulated_or_states_no_finding():
    for name, entry in entries_of(DisplayEntry).items():
        is_simulated = name.rpartition(".")[2] in _in_the_file()
        assert is_simulated == (entry.no_finding is None), name


# True in none of these worlds: printed by chance alone.
NEVER_TRUE = {"NetBenefit: worse than all"}


def test_every_sentence_is_printed_where_it_is_true():
    rows = read()
    assert {n for _, _, n, *_ in rows} == set(SIZES)
    assert {world for _, world, *_ in rows} == set(NAMES)
    for sentence in {sentence for sentence, *_ in rows}:
        if sentence not in NEVER_TRUE:
            assert sum(row[4] for row in rows if row[0] == sentence), sentence


def test_a_false_sentence_is_rare():
    """In each world and of each size, and over all worlds of a size together."""
    rows = read()
    for name, n in {(row[0], row[2]) for row in rows}:
        share = 0.1 if name in AT_90 else 0.05
        of_size = [row for row in rows if (row[0], row[2]) == (name, n)]
        total = sum(n_tables for _, _, _, n_tables, *_ in of_size)
        assert sum(row[5] for row in of_size) <= binom.isf(1e-3, total, share), (
            name,
            n,
        )
        for _, world, _, n_tables, _, false, _ in of_size:
            assert false <= binom.isf(1e-5, n_tables, share), (name, world, n)


def test_the_file_is_what_the_simulation_gives():
    known = [row for row in read() if row[1:3] == ("equal rival", 300)]
    assert simulated("equal rival", 300, SIZES[300]) == sorted(known)
