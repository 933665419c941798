"""``python -m benchmarks.coming_from``: questions answered by skcalib and its peers.

``--record`` stores the answers in ``benchmarks/data/coming_from.csv``, from which
``python -m benchmarks.peer_pages`` generates the tables of ``doc/coming_from.md``. A
library that is not installed is listed and skipped, and its record is not changed:
``pip install ".[bench]" probcal calibre mcgrad`` installs all of them.
"""

import argparse
import csv
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np

import skcalib
from skcalib.binning import EqualMass, EqualWidth
from skcalib.metrics import (
    brier_decomposition,
    calibration_error,
    calibration_error_interval,
    calibration_slope_intercept,
    calibration_test,
    expected_calibration_error,
    groupwise_calibration_error,
    kuiper_calibration_error,
    segment_calibration_test,
    smooth_calibration_error,
    sweep_calibration_error,
)

RECORD = Path(__file__).parent / "data" / "coming_from.csv"


@dataclass(frozen=True)
class Difference:
    """A question, the answers of skcalib and of another library, and why they differ or
    agree.
    """

    peer: str  # the name of the distribution
    question: str
    ours: Callable
    theirs: Callable
    reason: str


# 1,000 rows with P(y = 1 | s) = s^1.6, the same with calibrated labels, and three
# calibrated classes.
_RNG = np.random.default_rng(0)
S = _RNG.random(1000)
Y = (_RNG.random(1000) < S**1.6).astype(int)
TWO = np.column_stack((1 - S, S))
P3 = _RNG.dirichlet([1, 1, 1], 1000)
Y3 = (_RNG.random((1000, 1)) > P3.cumsum(axis=1)).sum(axis=1)
Y_CALIBRATED = (_RNG.random(1000) < S).astype(int)
# 5,000 calibrated rows with five columns of four categories that are unrelated to the
# labels.
MANY_S = _RNG.beta(1, 3, 5000)
MANY_Y = (_RNG.random(5000) < MANY_S).astype(int)
MANY_X = _RNG.integers(0, 4, (5000, 5)).astype(str)
# Small cases: scores on the edges of bins.
EDGE_S, EDGE_Y = np.array([0.1, 0.2, 0.3, 0.6, 0.7, 0.9]), np.array([0, 0, 1, 0, 1, 1])
ONE_S, ONE_Y = np.array([1.0, 0.95]), np.array([0, 1])
FOUR_S, FOUR_Y = np.array([0.2, 0.4, 0.6, 0.8]), np.array([1, 0, 0, 1])
VOTES = np.repeat([0.0, 1.0], 50)
VOTED = np.r_[np.zeros(49), 1, np.ones(50)].astype(int)

_ON_EDGES = "6 scores on the edges of 10 bins, ECE"
_RIGHT_CLOSED = "skcalib's bins are (a, b]; those of the other library are [a, b)"


def _largest_difference(theirs, recalibrator, scores=S, y=Y):
    return np.abs(
        np.ravel(theirs) - recalibrator.fit(scores, y).predict_proba(scores)[:, 1]
    ).max()


def _moves(recalibrator, scores):
    return np.abs(recalibrator.fit(scores, Y).predict_proba(scores)[:, 1] - S).max()


# --- scikit-learn ---------------------------------------------------------------------


def _bayes():
    from sklearn.datasets import make_classification
    from sklearn.model_selection import train_test_split
    from sklearn.naive_bayes import GaussianNB

    X, y = make_classification(
        12_000,
        n_features=20,
        n_informative=2,
        n_redundant=10,
        weights=[0.7],
        flip_y=0.05,
        random_state=0,
    )
    X_train, X_rest, y_train, y_rest = train_test_split(
        X, y, train_size=2000, random_state=0
    )
    return GaussianNB().fit(X_train, y_train), *train_test_split(
        X_rest, y_rest, train_size=2000, random_state=0
    )


def _sklearn_log_loss(method):
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator
    from sklearn.metrics import log_loss

    model, X, X_test, y, y_test = _bayes()
    calibrated = CalibratedClassifierCV(FrozenEstimator(model), method=method).fit(X, y)
    return log_loss(y_test, calibrated.predict_proba(X_test))


def _our_log_loss(recalibrator):
    from sklearn.frozen import FrozenEstimator
    from sklearn.metrics import log_loss

    model, X, X_test, y, y_test = _bayes()
    calibrated = skcalib.RecalibratedClassifierCV(
        FrozenEstimator(model), recalibrator
    ).fit(X, y)
    return log_loss(y_test, calibrated.predict_proba(X_test))


def _sklearn_labels_one_and_two():
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator
    from sklearn.naive_bayes import GaussianNB

    model = GaussianNB().fit(S[:, None], Y + 1)
    fitted = CalibratedClassifierCV(FrozenEstimator(model), method="temperature").fit(
        S[:, None], Y + 1
    )
    return np.ptp(fitted.predict_proba(S[:, None])[:, 1])


def _our_labels_one_and_two():
    from sklearn.frozen import FrozenEstimator
    from sklearn.naive_bayes import GaussianNB

    model = GaussianNB().fit(S[:, None], Y + 1)
    fitted = skcalib.RecalibratedClassifierCV(
        FrozenEstimator(model), skcalib.TemperatureScaling()
    )
    return np.ptp(fitted.fit(S[:, None], Y + 1).predict_proba(S[:, None])[:, 1])


def _string_labels(scoring):
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score

    return cross_val_score(
        LogisticRegression(), S[:, None], np.where(Y == 1, "yes", "no"), scoring=scoring
    ).mean()


# --- the others -----------------------------------------------------------------------


def _netcal_ece(s, y, bins=15, **options):
    from netcal.metrics import ECE

    return ECE(bins, **options).measure(s, y)


def _netcal_temperature(dtype):
    from netcal.scaling import TemperatureScaling

    return np.abs(
        np.ravel(TemperatureScaling().fit_transform(S.astype(dtype), Y)) - S
    ).max()


def _netcal_logistic():
    from netcal.scaling import LogisticCalibration

    return _largest_difference(
        LogisticCalibration().fit_transform(S, Y),
        skcalib.PlattScaling(smooth_targets=False, clip=None),
    )


def _netcal_histogram():
    from netcal.binning import HistogramBinning

    return np.abs(HistogramBinning(10).fit_transform(EDGE_S, EDGE_Y) - EDGE_Y).max()


def _of(module, function, *args, pick=None, **options):
    """Return a call of ``module.function``, put off until it is asked for."""

    def call():
        value = getattr(__import__(module, fromlist=[function]), function)(
            *args, **options
        )
        return value if pick is None else pick(value)

    return call


def _uncertainty_calibration_low():
    from calibration import get_calibration_error_uncertainties

    np.random.seed(0)  # noqa: NPY002
    return get_calibration_error_uncertainties(S, Y_CALIBRATED)[0]


def _betacal(s, y):
    from betacal import BetaCalibration

    return BetaCalibration("abm").fit(s[:, None], y)


def _venn_abers(pick):
    from venn_abers import VennAbers

    peer, ours = VennAbers(), skcalib.VennAbers().fit(S, Y)
    peer.fit(TWO, Y)
    probabilities, interval = peer.predict_proba(TWO)
    if pick == "interval":
        return np.abs(interval - np.column_stack(ours.predict_pair(S))).max()
    return np.abs(probabilities[:, 1] - ours.predict_proba(S)[:, 1]).max()


def _probmetrics(name, recalibrator):
    from probmetrics.calibrators import get_calibrator

    calibrator = get_calibrator(name)
    calibrator.fit(TWO, Y)
    return _largest_difference(calibrator.predict_proba(TWO)[:, 1], recalibrator)


def _torchmetrics(s, y, norm):
    from torch import as_tensor
    from torchmetrics.functional.classification import binary_calibration_error

    return binary_calibration_error(as_tensor(s), as_tensor(y), n_bins=15, norm=norm)


def _model_diagnostics_miscalibration():
    from model_diagnostics.scoring import SquaredError, decompose

    return decompose(Y, S, scoring_function=SquaredError())["miscalibration"][0]


def _mcgrad_segments():
    import pandas as pd
    from mcgrad.metrics import MulticalibrationError

    columns = [f"c{k}" for k in range(MANY_X.shape[1])]
    frame = pd.DataFrame(MANY_X, columns=columns).assign(s=MANY_S, y=MANY_Y)
    return MulticalibrationError(
        frame, "y", "s", categorical_segment_columns=columns
    ).mce_pvalue


def _probcal_histogram():
    from probcal import HistogramBinningCalibrator

    return np.ravel(
        HistogramBinningCalibrator(5).fit(VOTES, VOTED).predict_proba(VOTES)
    ).min()


_INTERVAL = {"random_state": 0}
DIFFERENCES = [
    Difference(
        "scikit-learn",
        "naive Bayes, sigmoid, log-loss on held-out rows",
        lambda: _our_log_loss(skcalib.PlattScaling()),
        lambda: _sklearn_log_loss("sigmoid"),
        "Platt scaling works on log-odds in skcalib, and on the probabilities"
        " themselves in scikit-learn",
    ),
    Difference(
        "scikit-learn",
        "naive Bayes, isotonic, log-loss on held-out rows",
        lambda: _our_log_loss(skcalib.IsotonicCalibration()),
        lambda: _sklearn_log_loss("isotonic"),
        "the same",
    ),
    Difference(
        "scikit-learn",
        "naive Bayes, temperature, log-loss on held-out rows",
        lambda: _our_log_loss(skcalib.TemperatureScaling()),
        lambda: _sklearn_log_loss("temperature"),
        'skcalib learns a floor for scores of 0 and 1 (`clip="auto"`)',
    ),
    Difference(
        "scikit-learn",
        "temperature scaling, labels 1 and 2: range of the predictions",
        _our_labels_one_and_two,
        _sklearn_labels_one_and_two,
        "scikit-learn treats integer labels as positions, so its prediction is "
        "constant",
    ),
    Difference(
        "scikit-learn",
        'cross-validated Brier score, labels "no" and "yes"',
        lambda: -_string_labels(skcalib.metrics.get_scorer("neg_brier_score")),
        lambda: -_string_labels("neg_brier_score"),
        "scikit-learn's scorer does not know which label is the event",
    ),
    Difference(
        "netcal",
        _ON_EDGES,
        lambda: expected_calibration_error(EDGE_Y, EDGE_S, binning=EqualWidth(10)),
        lambda: _netcal_ece(EDGE_S, EDGE_Y, 10),
        _RIGHT_CLOSED,
    ),
    Difference(
        "netcal",
        "1,000 scores, ECE of 15 equal-width bins",
        lambda: expected_calibration_error(Y, S),
        lambda: _netcal_ece(S, Y),
        "the same",
    ),
    Difference(
        "netcal",
        "1,000 scores, ECE of 15 equal-mass bins",
        lambda: expected_calibration_error(Y, S, binning=EqualMass(15)),
        lambda: _netcal_ece(S, Y, equal_intervals=False),
        "edges are midpoints between two scores in skcalib, and quantiles in netcal",
    ),
    Difference(
        "netcal",
        "logistic calibration: largest difference between predictions",
        lambda: 0.0,
        _netcal_logistic,
        "the same as `PlattScaling(smooth_targets=False, clip=None)`, up to the "
        "precision of the solver",
    ),
    Difference(
        "netcal",
        "temperature scaling of float32 scores: largest change of a score",
        lambda: _moves(skcalib.TemperatureScaling(), S.astype(np.float32)),
        lambda: _netcal_temperature(np.float32),
        "in netcal, finite differences vanish in single precision, so the scores "
        "are returned unchanged",
    ),
    Difference(
        "netcal",
        "histogram binning of 6 scores on edges: largest distance from their labels",
        lambda: np.abs(
            skcalib.HistogramBinning(EqualWidth(10))
            .fit(EDGE_S, EDGE_Y)
            .predict_proba(EDGE_S)[:, 1]
            - EDGE_Y
        ).max(),
        _netcal_histogram,
        "skcalib has one rule for assigning scores to bins; in netcal, `fit` and "
        "`transform` use different rules",
    ),
    Difference(
        "uncertainty-calibration",
        _ON_EDGES,
        lambda: expected_calibration_error(EDGE_Y, EDGE_S, binning=EqualWidth(10)),
        _of("calibration", "get_ece", EDGE_S, EDGE_Y, num_bins=10),
        "the same",
    ),
    Difference(
        "uncertainty-calibration",
        "two columns, ECE",
        lambda: expected_calibration_error(Y, TWO),
        _of("calibration", "get_ece", TWO, Y),
        "two columns are read as the positive class in skcalib, and as the top "
        'label in uncertainty-calibration; `multiclass="top_label"` gives the same '
        "result",
    ),
    Difference(
        "uncertainty-calibration",
        "1,000 scores, debiased l2 error, 15 equal-mass bins",
        lambda: calibration_error(Y, S, method="debiased"),
        _of("calibration", "get_calibration_error", S, Y),
        "the same estimator with different bins: skcalib rounds the cuts i n / B up, "
        "and uncertainty-calibration puts the remaining rows into the first bins",
    ),
    Difference(
        "uncertainty-calibration",
        "3 calibrated classes, marginal debiased l2 error",
        lambda: calibration_error(Y3, P3, multiclass="marginal", method="debiased"),
        _of("calibration", "get_calibration_error", P3, Y3),
        "skcalib averages signed squares and clips the mean at 0; "
        "uncertainty-calibration first clips the square of each class",
    ),
    Difference(
        "uncertainty-calibration",
        "calibrated scores, 90 % interval for the l2 error, lower limit",
        lambda: calibration_error_interval(Y_CALIBRATED, S, **_INTERVAL).low,
        _uncertainty_calibration_low,
        "skcalib inverts a test; uncertainty-calibration resamples the plugin"
        " error 100 times. The [table of levels](levels.md) shows the"
        " coverage of both",
    ),
    Difference(
        "mapie",
        "4 scores, 2 bins, ECE",
        lambda: expected_calibration_error(FOUR_Y, FOUR_S, binning=EqualWidth(2)),
        _of(
            "mapie.metrics.calibration",
            "expected_calibration_error",
            FOUR_Y,
            FOUR_S,
            num_bins=2,
        ),
        "in MAPIE, `num_bins=k` creates k - 1 bins",
    ),
    Difference(
        "mapie",
        "1,000 scores, ECE, `num_bins=16` for 15 bins",
        lambda: expected_calibration_error(Y, S),
        _of(
            "mapie.metrics.calibration", "expected_calibration_error", Y, S, num_bins=16
        ),
        "the same",
    ),
    Difference(
        "mapie",
        "3 classes, `top_label_ece`, `num_bins=16`",
        lambda: groupwise_calibration_error(Y3, P3, reduce="mean"),
        _of("mapie.metrics.calibration", "top_label_ece", Y3, P3, num_bins=16),
        'the same: in MAPIE, "top-label" is the mean over predicted classes',
    ),
    Difference(
        "mapie",
        "calibrated scores, Spiegelhalter's p-value",
        lambda: calibration_test(Y_CALIBRATED, S, method="spiegelhalter").pvalue,
        _of("mapie.metrics.calibration", "spiegelhalter_p_value", Y_CALIBRATED, S),
        "two-sided in skcalib, one-sided in MAPIE, so underconfident scores pass "
        "the test of MAPIE",
    ),
    Difference(
        "mapie",
        "calibrated scores, Kuiper's p-value",
        lambda: calibration_test(Y_CALIBRATED, S, method="kuiper").pvalue,
        _of("mapie.metrics.calibration", "kuiper_p_value", Y_CALIBRATED, S),
        "the same",
    ),
    Difference(
        "betacal",
        "1,000 scores: largest difference between predictions",
        lambda: 0.0,
        lambda: _largest_difference(
            _betacal(S, Y).predict(S[:, None]),
            skcalib.BetaCalibration(alpha=0, smooth_targets=False),
        ),
        "the same maximum likelihood estimate; betacal's solver stops earlier",
    ),
    Difference(
        "venn-abers",
        "1,000 scores: largest difference between probabilities",
        lambda: 0.0,
        lambda: _venn_abers("probability"),
        "the same",
    ),
    Difference(
        "venn-abers",
        "1,000 scores: largest difference in the limits p0 and p1",
        lambda: 0.0,
        lambda: _venn_abers("interval"),
        "the same",
    ),
    Difference(
        "torchmetrics",
        "1,000 scores, ECE of 15 equal-width bins",
        lambda: expected_calibration_error(Y, S, binning=EqualWidth(15)),
        lambda: _torchmetrics(S, Y, "l1"),
        "the same, up to the precision of the tensors",
    ),
    Difference(
        "torchmetrics",
        "1,000 calibrated scores, root mean square error of 15 equal-width bins",
        lambda: calibration_error(Y_CALIBRATED, S, binning=EqualWidth(15)),
        lambda: _torchmetrics(S, Y_CALIBRATED, "l2"),
        "label noise is subtracted in skcalib, and included in TorchMetrics and "
        'with `method="plugin"`',
    ),
    Difference(
        "relplot",
        "1,000 scores, smooth ECE",
        lambda: smooth_calibration_error(Y, S),
        _of("relplot", "smECE", S, Y),
        "the fixed point is exact in skcalib, and within .001 in relplot",
    ),
    Difference(
        "relplot",
        "scores 1 and .95, labels 0 and 1, ECE of 10 bins",
        lambda: expected_calibration_error(ONE_Y, ONE_S, binning=EqualWidth(10)),
        _of("relplot.metrics", "binnedECE", ONE_S, ONE_Y, 10),
        "a score of 1 is in the last bin in skcalib, and in a bin of its own in "
        "relplot",
    ),
    Difference(
        "model-diagnostics",
        "1,000 scores, miscalibration of the Brier score (isotonic)",
        lambda: brier_decomposition(Y, S).miscalibration,
        _model_diagnostics_miscalibration,
        "the same",
    ),
    Difference(
        "probcal",
        _ON_EDGES,
        lambda: expected_calibration_error(EDGE_Y, EDGE_S, binning=EqualWidth(10)),
        _of("probcal.metrics", "ece", EDGE_Y, EDGE_S, n_bins=10, strategy="width"),
        _RIGHT_CLOSED,
    ),
    Difference(
        "probcal",
        "1,000 scores, debiased error of 15 equal-mass bins, norm 1",
        lambda: calibration_error(Y, S, norm=1),
        _of("probcal.metrics", "ece_debiased", Y, S),
        "probcal debiases each bin and clips it at 0 before averaging, so slightly "
        "miscalibrated bins count as 0",
    ),
    Difference(
        "probcal",
        "1,000 scores, sweep error",
        lambda: sweep_calibration_error(Y, S),
        _of("probcal.metrics", "ece_sweep", Y, S),
        "the same definition, but equal-mass bins with different edges",
    ),
    Difference(
        "probcal",
        "1,000 scores, smooth ECE",
        lambda: smooth_calibration_error(Y, S),
        _of("probcal.metrics", "smooth_ece", Y, S),
        "the kernel acts on [0, 1] in skcalib, as in the paper, and on log-odds in "
        "probcal",
    ),
    Difference(
        "probcal",
        "1,000 scores, Kuiper's error (ECCE)",
        lambda: kuiper_calibration_error(Y, S),
        _of("probcal.metrics", "ecce", Y, S, pick=lambda result: result.stat_max),
        "the same",
    ),
    Difference(
        "probcal",
        "1,000 scores, calibration slope",
        lambda: calibration_slope_intercept(Y, S).slope.estimate,
        _of("probcal.metrics", "calibration_slope", Y, S),
        "the same",
    ),
    Difference(
        "probcal",
        "histogram binning of votes, 1 event in 50 scores of 0: smallest prediction",
        lambda: (
            skcalib.HistogramBinning(5)
            .fit(VOTES, VOTED)
            .predict_proba(VOTES)[:, 1]
            .min()
        ),
        _probcal_histogram,
        "skcalib predicts event frequencies; probcal shrinks them toward 1/2 (Jeffreys "
        "prior), and `smoothing=1` in skcalib shrinks them toward the base rate",
    ),
    Difference(
        "calibre",
        _ON_EDGES,
        lambda: expected_calibration_error(EDGE_Y, EDGE_S, binning=EqualWidth(10)),
        _of("calibre", "expected_calibration_error", EDGE_Y, EDGE_S, n_bins=10),
        _RIGHT_CLOSED,
    ),
    Difference(
        "calibre",
        '1,000 scores, "mean calibration error"',
        lambda: calibration_error(Y, S, norm=1),
        _of("calibre", "mean_calibration_error", Y, S),
        "in calibre, this is the mean of |y - s|, which is large even for "
        "calibrated scores",
    ),
    Difference(
        "mcgrad",
        _ON_EDGES,
        lambda: expected_calibration_error(EDGE_Y, EDGE_S, binning=EqualWidth(10)),
        _of(
            "mcgrad.metrics", "expected_calibration_error", EDGE_Y, EDGE_S, num_bins=10
        ),
        _RIGHT_CLOSED,
    ),
    Difference(
        "mcgrad",
        "1,000 scores, Kuiper's error (`ecce`)",
        lambda: kuiper_calibration_error(Y, S),
        _of("mcgrad.metrics", "ecce", Y, S),
        "the same",
    ),
    Difference(
        "mcgrad",
        "calibrated scores, Kuiper's p-value (`ecce_pvalue`)",
        lambda: calibration_test(Y_CALIBRATED, S, method="kuiper").pvalue,
        _of("mcgrad.metrics", "ecce_pvalue", Y_CALIBRATED, S),
        "the same",
    ),
    Difference(
        "mcgrad",
        "5,000 calibrated rows, 5 uninformative columns: p-value of the worst segment",
        lambda: segment_calibration_test(MANY_Y, MANY_S, MANY_X, random_state=0).pvalue,
        _mcgrad_segments,
        "adjusted for the number of segments in skcalib, but not in MCGrad",
    ),
    Difference(
        "probmetrics",
        "temperature scaling: largest difference between predictions",
        lambda: 0.0,
        lambda: _probmetrics("temp-scaling", skcalib.TemperatureScaling()),
        "the same",
    ),
    Difference(
        "probmetrics",
        "temperature scaling with a mixture (`ts-mix`): largest difference from"
        " `TemperatureScaling`",
        lambda: 0.0,
        lambda: _probmetrics("ts-mix", skcalib.TemperatureScaling()),
        "probmetrics mixes the map with the uniform distribution, with a weight of "
        "about 1 / n",
    ),
    Difference(
        "probmetrics",
        "isotonic: largest difference between predictions",
        lambda: 0.0,
        lambda: _probmetrics("isotonic", skcalib.IsotonicCalibration()),
        "the same",
    ),
    Difference(
        "probmetrics",
        "Venn-Abers (`ivap`): largest difference between predictions",
        lambda: 0.0,
        lambda: _probmetrics("ivap", skcalib.VennAbers()),
        "the same",
    ),
]


def rows(only=""):
    """Yield (difference, answer of skcalib, answer of the other library or the error it
    raised) for the installed libraries.
    """
    for one in DIFFERENCES:
        if only and one.peer != only:
            continue
        if version(one.peer) is None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                theirs = float(one.theirs())
            except Exception as error:  # what the other library raises is its answer
                theirs = f"{type(error).__name__}"
            yield one, float(one.ours()), theirs


def version(peer):
    """Return the installed version of a distribution, or None."""
    try:
        return metadata.version(peer)
    except metadata.PackageNotFoundError:
        return None


def _text(value):
    if isinstance(value, str):
        return value
    if np.isnan(value):
        return "NaN"
    return f"{value:.4f}" if value == 0 or abs(value) >= 5e-5 else f"{value:.0e}"


def record(answers, path=RECORD):
    """Replace the answers of these libraries in the record.

    Parameters
    ----------
    answers : list of (Difference, float, float or str)
        What `rows` yields.
    path : Path
        The CSV file.
    """
    with path.open(encoding="utf-8", newline="") as file:
        head, *lines = csv.reader(file)
    asked = {one.peer for one, _, _ in answers}
    lines = [line for line in lines if line[0] not in asked]
    lines += [
        [one.peer, version(one.peer), one.question, _text(ours), _text(theirs)]
        for one, ours, theirs in answers
    ]
    place = {(one.peer, one.question): n for n, one in enumerate(DIFFERENCES)}
    lines.sort(key=lambda line: place[line[0], line[2]])
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *lines])


def main(argv=None):
    """Print the answers, library by library; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.coming_from", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "--only", default="", help="one library, by the name of its distribution"
    )
    parser.add_argument("--record", action="store_true", help=f"keep them in {RECORD}")
    options = parser.parse_args(argv)
    missing = {one.peer for one in DIFFERENCES if version(one.peer) is None}
    if missing:
        print(f"not installed: {', '.join(sorted(missing))}", file=sys.stderr)
    answers = []
    for one, ours, theirs in rows(options.only):
        if not answers or answers[-1][0].peer != one.peer:
            print(f"\n{one.peer} {version(one.peer)}")
        answers.append((one, ours, theirs))
        print(
            f"  {one.question}: {_text(ours)} here, {_text(theirs)} there"
            f" ({one.reason})"
        )
    if options.record:
        record(answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
