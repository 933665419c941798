"""What a report measures on all rows of a model: errors, the test, and bins."""

import warnings
from functools import partial

from skcalib._report._samples import (
    CONFIDENCE_LEVEL,
    MEAN_ABSOLUTE,
    REPORT_BINNING,
    SIGNIFICANCE_LEVEL,
    records,
)
from skcalib.binning import EqualWidth, MinimumMass
from skcalib.metrics import (
    calibration_error,
    calibration_error_interval,
    calibration_slope_intercept,
    calibration_test,
    expected_calibration_error,
    maximum_calibration_error,
    reliability_curve,
)

N_RESAMPLES = 999  # draws of the test
N_DRAWS = 1000  # draws for the interval of an error
# Draws with clusters, of test and intervals: those of dependent labels take 50 times as
# long.
N_CLUSTER_DRAWS = 199
_FEWEST_IN_BIN = 50  # fewest rows of a bin of the maximum calibration error


def error_rows(event_rows, seed, classes):
    """Return calibration errors with their intervals as a list of dicts. The first is
    the mean absolute error, which the summary names. For one event (`classes` is None)
    calibration slope and intercept are added.
    """
    slope_options = {
        "confidence_level": CONFIDENCE_LEVEL,
        **event_rows.inference_options,
    }
    interval_options = _interval_options(event_rows, seed)
    # A bin with few rows must not decide the maximum error: bins are merged until each
    # has the weight of 50 rows. Importance weights may have any scale, so that the mean
    # weight is that of a row.
    min_weight = _FEWEST_IN_BIN
    if event_rows.weight_type == "importance":
        min_weight = _FEWEST_IN_BIN * event_rows.sample_weight.mean()
    kinds = {
        "mean absolute calibration error": MEAN_ABSOLUTE,
        "root mean square calibration error": {"norm": 2, "binning": REPORT_BINNING},
        "expected calibration error": {"metric": expected_calibration_error},
    }
    if event_rows.total_weight >= 2 * min_weight:  # else there would be one bin only
        metric = partial(
            maximum_calibration_error,
            binning=MinimumMass(EqualWidth(15), min_weight=min_weight),
        )
        kinds["maximum calibration error"] = {"metric": metric}
    errors = []
    for name, kind in kinds.items():
        interval = calibration_error_interval(
            event_rows.labels, event_rows.scores, **kind, **interval_options
        )
        estimate, low, high = interval
        reason = reason_outside(estimate, low, high, known=interval.reason)
        errors.append({"name": name, **interval._asdict(), "reason": reason})
    if classes is not None:
        # A calibration slope is defined for the log-odds of one event.
        return errors
    try:
        with warnings.catch_warnings():
            # The paragraph for papers reports scores of exactly 0 and 1.
            warnings.filterwarnings("ignore", ".*exactly 0 or 1", UserWarning)
            fit = calibration_slope_intercept(
                event_rows.labels, event_rows.scores, **slope_options
            )
    except ValueError:
        # One class only, separated classes, or equal scores: there is no slope of
        # maximum likelihood.
        return errors
    errors.append({"name": "calibration slope", **fit.slope._asdict()})
    errors.append({"name": "calibration in the large", **fit.intercept._asdict()})
    return errors


def mean_error(event_rows, seed):
    """Return the mean absolute calibration error with its interval."""
    options = _interval_options(event_rows, seed)
    interval = calibration_error_interval(
        event_rows.labels, event_rows.scores, **MEAN_ABSOLUTE, **options
    )
    return interval._asdict()


def _interval_options(event_rows, seed):
    """Return the arguments of `calibration_error_interval` besides the rows and the
    choice of an error, as a dict.
    """
    return {
        "random_state": seed,
        "n_resamples": N_DRAWS if event_rows.clusters is None else N_CLUSTER_DRAWS,
        "confidence_level": CONFIDENCE_LEVEL,
        **event_rows.inference_options,
    }


def reason_outside(estimate, low, high, known=""):
    """Return why an estimate lies outside of its interval, as text; None if it does
    not. `known` is the reason for an estimate above, if one is known already.
    """
    if estimate < low:
        return "the noise subtracted from the estimate is itself uncertain"
    if estimate > high:
        return known or "the estimate includes label noise"
    return None


def tested_calibration(event_rows, seed):
    """Return a dict on the resampling test of calibration by the mean absolute
    calibration error. It rejects exactly if the interval of that error excludes 0.
    """
    # Draws of dependent labels take long.
    n_resamples = N_RESAMPLES if event_rows.clusters is None else N_CLUSTER_DRAWS
    metric = partial(calibration_error, **MEAN_ABSOLUTE)
    options = {
        "metric": metric,
        "n_resamples": n_resamples,
        "random_state": seed,
        **event_rows.inference_options,
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = calibration_test(event_rows.labels, event_rows.scores, **options)
    few_events = any(str(one.message).startswith("clusters=") for one in caught)
    return {
        "name": "resampling test of the calibration error",
        **result._asdict(),
        "smallest_pvalue": 1 / (n_resamples + 1),
        "rejects": result.pvalue < SIGNIFICANCE_LEVEL,
        "few_events": few_events,  # for the dependence within clusters
    }


def bin_rows(event_rows):
    """Return the bins of the reliability diagram as a list of dicts."""
    bins = reliability_curve(
        event_rows.labels,
        event_rows.scores,
        binning=REPORT_BINNING,
        **event_rows.metric_options,
    )
    low, high = bins.interval(CONFIDENCE_LEVEL)
    means = {
        "mean_score": bins.mean_score,
        "event_frequency": bins.event_frequency,
        "low": low,
        "high": high,
    }
    return records(
        {"from": bins.edges[:-1], "to": bins.edges[1:], **means, "weight": bins.weight}
    )
