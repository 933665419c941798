"""scikit-learn's estimator checks over every recalibrator.

The checks of the meta-estimators stand in tests/test_recalibrated_classifier.py,
tests/test_cross_fitting.py and tests/test_decisions.py.
"""

import pytest
from _catalog import COMPOSED, check_or_fail
from registry import RecalibratorEntry, entries_of
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import skcalib

_MORE_CLASSES = (
    "feeds two columns with three classes: a score a class is what a recalibrator takes"
)
_MORE_COLUMNS = (
    "feeds more columns than classes: which class has no column label cannot be told"
    " without classes="
)

# check -> why it cannot pass; the registry holds those of one recalibrator. Each runs
# all the same and must fail. What it would have verified is verified on scores in
# tests/test_base.py, under the name given here.
EXPECTED_FAILURES = {
    # test_labels_of_any_type_give_the_same_probabilities
    "check_classifiers_classes": _MORE_CLASSES,
    # test_rows_sum_to_one, test_predict_is_the_most_probable_class
    "check_classifiers_train": _MORE_CLASSES,
    # test_containers_and_types_of_scores_give_the_same
    "check_estimators_dtypes": _MORE_COLUMNS,
    # test_fit_returns_self_and_changes_no_parameter
    "check_estimators_fit_returns_self": _MORE_CLASSES,
    "check_estimators_nan_inf": _MORE_COLUMNS,  # tests/test_validation.py
    # test_fit_returns_self_and_changes_no_parameter
    "check_estimators_overwrite_params": _MORE_CLASSES,
    "check_readonly_memmap_input": _MORE_CLASSES,  # test_read_only_memory
}

# Those of a recalibrator that needs rows of every class, and is given more columns than
# classes. tests/test_base.py verifies them on scores of all classes.
_NEEDS_EVERY_CLASS = (
    "check_dtype_object",
    "check_estimators_pickle",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_sample_weight_equivalence_on_dense_data",
    "check_transformer_data_not_an_array",
    "check_transformer_general",
    "check_transformer_preserve_dtypes",
)

# One instance a class. The checks draw features around 0, so that the scores are
# logits.
ENTRIES = {
    type(entry.instances[0]): entry
    for entry in entries_of(RecalibratorEntry).values()
    if entry.instances
}
ESTIMATORS = [
    clone(entry.instances[0]).set_params(input="logit") for entry in ENTRIES.values()
]


# Each of these has its base class in common with a method that is not among them.
RELATIVES = (
    skcalib.BetaCalibration,
    skcalib.DirichletCalibration,
    skcalib.EnsembleTemperatureScaling,
    skcalib.QuadraticScaling,
    skcalib.ScalingBinning,
    skcalib.SplineCalibration,
    skcalib.UniformMassBinning,
    skcalib.VectorScaling,
)


@parametrize_with_checks(
    [one for one in ESTIMATORS if not isinstance(one, (*COMPOSED, *RELATIVES))]
)
def test_estimator_checks(estimator, check):
    _check(estimator, check)


@pytest.mark.slow
@parametrize_with_checks(
    [one for one in ESTIMATORS if isinstance(one, (*COMPOSED, *RELATIVES))]
)
def test_estimator_checks_of_compositions_and_relatives(estimator, check):
    _check(estimator, check)


def _check(estimator, check):
    entry = ENTRIES[type(estimator)]
    expected = {*EXPECTED_FAILURES, *entry.expected_failures}
    if not entry.fits_missing_class:
        expected |= {*_NEEDS_EVERY_CLASS}
    check_or_fail(check, estimator, expected)
