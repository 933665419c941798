"""Entries of the guarantees."""

import numpy as np

from registry._entry import Entry
from skcalib import UniformMassBinning
from skcalib.guarantees import (
    binning_mse_bound,
    classwise_temperature_bound,
    conditional_epsilon,
    event_frequency_interval,
    expected_error_bound,
    grade_upper_limits,
    independent_bins_certificate,
    marginal_epsilon,
    max_n_bins,
    min_n_samples,
    sample_split_epsilon,
    uniform_mass_certificate,
    well_balanced_alpha,
)

_EVENTS = [3, 20, 50]
_COUNTS = [60, 60, 60]
_VALUES = np.divide(_EVENTS, _COUNTS)
_TEMPERATURES = {"bounds": (0.5, 2.0), "logit_range": 5.0}
_PLAN = "doc/examples/plan_labels.py"


def _certificate_of_a_fit(rows):
    # scores without ties, for a certificate needs distinct ones
    nudges = np.arange(len(rows.scores)) * np.where(rows.scores > 0.5, -1e-6, 1e-6)
    return UniformMassBinning(4).fit(rows.scores + nudges, rows.y).certificate()


def _with_and_without_boundary(bound):
    def results(rows):
        return {
            f"{keep}": bound(3000, 10, keep_boundary=keep) for keep in (False, True)
        }

    return results


def _of_each_kind(function, *arguments):
    def results(rows):
        return {
            kind: function(*arguments, kind=kind)
            for kind in ("conditional", "marginal")
        }

    return results


def _intervals(rows):
    return {
        interval: event_frequency_interval(_EVENTS, _COUNTS, interval=interval)
        for interval in ("clopper_pearson", "hoeffding", "wilson")
    }


ENTRIES = {
    "skcalib.guarantees.CalibrationCertificate": Entry(
        job="skcalib.guarantees.uniform_mass_certificate",
        result=_certificate_of_a_fit,
        no_paper="a result",
    ),
    "skcalib.guarantees.binning_mse_bound": Entry(
        job=_PLAN, result=lambda rows: binning_mse_bound(100)
    ),
    "skcalib.guarantees.classwise_temperature_bound": Entry(
        job="doc/evidence/reproductions.md",
        result=lambda rows: classwise_temperature_bound(
            10_000, 10, 0.1, **_TEMPERATURES
        ),
    ),
    "skcalib.guarantees.conditional_epsilon": Entry(
        job=_PLAN, results=_with_and_without_boundary(conditional_epsilon)
    ),
    "skcalib.guarantees.event_frequency_interval": Entry(job=_PLAN, results=_intervals),
    "skcalib.guarantees.expected_error_bound": Entry(
        job=_PLAN, result=lambda rows: expected_error_bound(2000, 10)
    ),
    "skcalib.guarantees.grade_upper_limits": Entry(
        job="doc/reporting.md",
        result=lambda rows: grade_upper_limits([0, 2, 1], [100, 400, 300]),
    ),
    "skcalib.guarantees.independent_bins_certificate": Entry(
        job=_PLAN,
        result=lambda rows: independent_bins_certificate(
            _EVENTS, _COUNTS, _VALUES, edges="split"
        ),
    ),
    "skcalib.guarantees.marginal_epsilon": Entry(
        job=_PLAN, results=_with_and_without_boundary(marginal_epsilon)
    ),
    "skcalib.guarantees.max_n_bins": Entry(
        job=_PLAN, results=_of_each_kind(max_n_bins, 5000, 0.1)
    ),
    "skcalib.guarantees.min_n_samples": Entry(
        job=_PLAN, results=_of_each_kind(min_n_samples, 10, 0.1)
    ),
    "skcalib.guarantees.sample_split_epsilon": Entry(
        job=_PLAN, result=lambda rows: sample_split_epsilon(1500, 1500, 10)
    ),
    "skcalib.guarantees.uniform_mass_certificate": Entry(
        job=_PLAN,
        result=lambda rows: uniform_mass_certificate(
            _EVENTS, _COUNTS, _VALUES, n_samples=182, kind="marginal"
        ),
    ),
    "skcalib.guarantees.well_balanced_alpha": Entry(
        job=_PLAN, result=lambda rows: well_balanced_alpha([20, 25, 30, 25])
    ),
}
