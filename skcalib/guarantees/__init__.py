"""Guarantees for recalibrated models, for finite samples and any distribution."""

from skcalib.guarantees._certificate import (
    CalibrationCertificate,
    independent_bins_certificate,
    uniform_mass_certificate,
)
from skcalib.guarantees._finite_sample import (
    binning_mse_bound,
    classwise_temperature_bound,
    sample_split_epsilon,
)
from skcalib.guarantees._frequencies import (
    event_frequency_interval,
    grade_upper_limits,
    well_balanced_alpha,
)
from skcalib.guarantees._uniform_mass import (
    conditional_epsilon,
    expected_error_bound,
    marginal_epsilon,
    max_n_bins,
    min_n_samples,
)

__all__ = [
    "CalibrationCertificate",
    "binning_mse_bound",
    "classwise_temperature_bound",
    "conditional_epsilon",
    "event_frequency_interval",
    "expected_error_bound",
    "grade_upper_limits",
    "independent_bins_certificate",
    "marginal_epsilon",
    "max_n_bins",
    "min_n_samples",
    "sample_split_epsilon",
    "uniform_mass_certificate",
    "well_balanced_alpha",
]


def __dir__():
    """Return the public names, for completion in an editor or a notebook."""
    return sorted(__all__)
