"""scikit-learn's estimator checks over every recalibrator.

The checks of the meta-estimators stand in tests/test_recalibrated_classifier.py, tests/test_cross_fitting.py and
tests/test_decisions.py.
"""

import pytest
from _catalog import RECALIBRATORS, UNWEIGHTED, public_recalibrators
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from skcalib import PriorShift, SplineCalibration, StackedRecalibrator

_MORE_CLASSES = (
    "feeds two columns with three classes: a score a class is what a recalibrator takes"
)
_MORE_COLUMNS = "feeds more columns than classes: which class has no column label cannot be told without classes="
_NO_WEIGHTS = "passes weights to a method whose theory has none"
_MISSING_CLASSES = "feeds more columns than classes, and takes the frequencies of the classes from the labels"

# check -> why it cannot pass. Each runs all the same and must fail. What it would have verified is verified on scores
# in tests/test_base.py, under the name given here.
EXPECTED_FAILURES = {
    "check_classifiers_classes": _MORE_CLASSES,  # test_labels_of_any_type_give_the_same_probabilities
    "check_classifiers_train": _MORE_CLASSES,  # test_rows_sum_to_one, test_predict_is_the_most_probable_class
    "check_estimators_dtypes": _MORE_COLUMNS,  # test_containers_and_types_of_scores_give_the_same
    "check_estimators_fit_returns_self": _MORE_CLASSES,  # test_fit_returns_self_and_changes_no_parameter
    "check_estimators_nan_inf": _MORE_COLUMNS,  # tests/test_validation.py
    "check_estimators_overwrite_params": _MORE_CLASSES,  # test_fit_returns_self_and_changes_no_parameter
    "check_readonly_memmap_input": _MORE_CLASSES,  # test_read_only_memory
}
EXPECTED_FAILURES_WITHOUT_WEIGHTS = {
    "check_sample_weight_equivalence_on_dense_data": _NO_WEIGHTS,
    "check_all_zero_sample_weights_error": _NO_WEIGHTS,
    "check_classifiers_one_label_sample_weights": _NO_WEIGHTS,
    "check_sample_weights_list": _NO_WEIGHTS,
    "check_sample_weights_not_an_array": _NO_WEIGHTS,
    "check_sample_weights_not_overwritten": _NO_WEIGHTS,
    "check_sample_weights_pandas_series": _NO_WEIGHTS,
    "check_sample_weights_shape": _NO_WEIGHTS,
}

EXPECTED_FAILURES_OF = {
    PriorShift: dict.fromkeys(
        (
            "check_dtype_object",
            "check_estimators_pickle",
            "check_n_features_in_after_fitting",
            "check_pipeline_consistency",
            "check_positive_only_tag_during_fit",
            "check_sample_weight_equivalence_on_dense_data",
            "check_transformer_data_not_an_array",
            "check_transformer_general",
            "check_transformer_preserve_dtypes",
        ),
        _MISSING_CLASSES,
    ),
    StackedRecalibrator: {
        "check_sample_weight_equivalence_on_dense_data": "gives splits that name rows of weight 0, which count as none"
    },
    SplineCalibration: {
        "check_sample_weight_equivalence_on_dense_data": "asks for 7 digits of a class without a row, and gets 5"
    },
}

# One instance a class. The checks draw features around 0, so that the scores are logits.
ESTIMATORS = {
    type(one): clone(one).set_params(input="logit") for one in reversed(RECALIBRATORS)
}


@parametrize_with_checks(list(ESTIMATORS.values()))
def test_estimator_checks(estimator, check):
    # Not by `expected_failed_checks`: pytest takes seconds to format the tracebacks of as many expected failures.
    expected = EXPECTED_FAILURES | EXPECTED_FAILURES_OF.get(type(estimator), {})
    if isinstance(estimator, UNWEIGHTED):
        expected = expected | EXPECTED_FAILURES_WITHOUT_WEIGHTS
    if _name(check) in expected:
        with pytest.raises((ValueError, AssertionError)):
            check(estimator)
    else:
        check(estimator)


def _name(check):
    while hasattr(check, "func"):
        check = check.func
    return check.__name__


def test_every_recalibrator_is_in_the_catalog():
    assert {type(one) for one in RECALIBRATORS} == public_recalibrators(), (
        "add it to tests/_catalog.py"
    )
