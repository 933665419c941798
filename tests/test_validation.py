"""The single gate: what it takes, and each line of the design's section "Errors"."""

import numpy as np
import pytest
from _catalog import every, metrics_, refused
from scipy import sparse
from sklearn.exceptions import DataConversionWarning, NotFittedError

from skcalib import (
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    ScalingBinning,
    TemperatureScaling,
)
from skcalib._input.scored_labels import check_scored_labels
from skcalib._input.scores import check_sample_weight, check_scores
from skcalib.binning import EqualMass, EqualWidth
from skcalib.metrics import calibration_error, expected_calibration_error

Y = np.array([0, 0, 1, 0, 1, 1, 0, 1])
SCORES = np.array([0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9])
Y3 = np.array([0, 1, 2, 0, 1, 2, 0, 1])
SCORES3 = np.array(
    [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7], [0.3, 0.4, 0.3]] * 2
)

everywhere = every("metric", metrics_())
with_labels = every("metric", metrics_("labels"))
with_weights = every("metric", metrics_("sample_weight"))


def _with(value, row=5, scores=SCORES):
    scores = np.array(scores, dtype=np.float64)
    scores[row] = value
    return scores


# --- One test a line of the design's section "Errors": metrics


@everywhere
@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
def test_metric_refuses_scores_that_are_not_finite(metric, value, word):
    with refused(ValueError, "y_proba", word, "row 5", "Drop"):
        metric(Y, _with(value))


@everywhere
@pytest.mark.parametrize("value", [-0.01, 1.01, 17.0])
def test_metric_refuses_scores_outside_the_unit_interval(metric, value):
    with refused(ValueError, "y_proba", "[0, 1]", "row 5", f"{value:.6g}", "expit"):
        metric(Y, _with(value))


@everywhere
def test_metric_refuses_rows_that_do_not_sum_to_one(metric):
    with refused(ValueError, "y_proba", "sum to 1", "row 3", "0.9", "softmax"):
        metric(Y3, _with([0.3, 0.3, 0.3], row=3, scores=SCORES3))
    with refused(ValueError, "y_proba", "sum to 1", "row 3"):
        metric(
            Y, _with([0.3, 0.3], row=3, scores=np.column_stack((1 - SCORES, SCORES)))
        )


@everywhere
@pytest.mark.parametrize("empty", [[], np.empty((0, 3)), np.empty((3, 0))])
def test_metric_refuses_empty_input(metric, empty):
    with refused(ValueError, "y_proba", "empty"):
        metric(np.zeros(len(empty)), empty)


@everywhere
def test_metric_refuses_other_lengths(metric):
    with refused(ValueError, "y_true has 7 rows", "y_proba has 8"):
        metric(Y[:7], SCORES)


@with_weights
def test_metric_refuses_weights_of_another_length(metric):
    with refused(ValueError, "sample_weight", "(8,)", "(7,)"):
        metric(Y, SCORES, sample_weight=np.ones(7))


@with_labels
def test_metric_of_one_class_needs_to_be_told_the_other(metric):
    with refused(
        ValueError, "y_true", "one class only ('yes')", "labels=[other, 'yes']"
    ):
        metric(["yes"] * 8, SCORES)


@with_labels
def test_a_positive_label_that_no_row_has_is_refused(metric):
    with refused(
        ValueError,
        "one class only ('yes')",
        "no row has pos_label='Yes'",
        "labels=['Yes', 'yes']",
    ):
        metric(["yes"] * 8, SCORES, pos_label="Yes")
    with refused(ValueError, "pos_label='Yes'", "'no', 'yes'"):
        metric(["yes", "no"] * 4, SCORES, pos_label="Yes")
    with refused(ValueError, "one class only (0)", "labels=[0, 1]"):
        metric(np.zeros(8), SCORES, pos_label=1)
    with refused(ValueError, "one class only ('yes')", "pos_label=1"):
        metric(["yes"] * 8, SCORES, pos_label=1)


def test_metric_of_one_class_works_with_labels():
    truth = np.mean(1 - SCORES)  # one bin: all events
    found = expected_calibration_error(np.ones(8), SCORES, binning=1)
    assert found == pytest.approx(truth)
    found = expected_calibration_error(np.zeros(8, dtype=int), SCORES, binning=1)
    assert found == pytest.approx(np.mean(SCORES))
    assert expected_calibration_error(
        np.ones(8), SCORES, labels=[0, 1], binning=1
    ) == pytest.approx(truth)
    assert expected_calibration_error(
        ["yes"] * 8, SCORES, labels=["no", "yes"], binning=1
    ) == pytest.approx(truth)
    assert expected_calibration_error([True] * 8, SCORES, binning=1) == pytest.approx(
        truth
    )


@everywhere
def test_metric_refuses_more_classes_than_columns(metric):
    with refused(ValueError, "y_true has 3 classes", "y_proba", "one column per class"):
        metric(Y3, SCORES)
    with refused(ValueError, "y_true has 4 classes", "3 columns"):
        metric([0, 1, 2, 3] * 2, SCORES3)


@every("metric", metrics_("labels", many_classes=True))
def test_metric_refuses_to_guess_which_class_is_missing(metric):
    with refused(ValueError, "y_true has 2 classes (1, 2)", "3 classes", "labels="):
        metric(Y + 1, SCORES3)
    metric(Y, SCORES3)  # column numbers, as in `fit`
    metric(Y, SCORES3, labels=[0, 1, 2])


@with_labels
def test_metric_refuses_an_unknown_label(metric):
    with refused(ValueError, "y_true", "unknown label 2", "row 2", "labels are 0, 1"):
        metric(Y3, SCORES, labels=[0, 1])
    with refused(ValueError, "y_true", "unknown label 'c'", "row 3", "'a', 'b'"):
        metric(list("abacabab"), SCORES, labels=["a", "b"])


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([1, 0], ["sorted", "1, 0"]),
        ([0, 0], ["unique"]),
        ([0, 1, 2], ["names 3 labels", "2 classes"]),
        (["no", "yes"], ["a different type"]),
        (np.array([0, "a"], dtype=object), ["mixes", "int, str"]),
        (5, ["list of labels"]),
        ([[0, 1]], ["list of labels"]),
    ],
)
def test_metric_refuses_labels_that_are_no_sorted_list(labels, words):
    with refused(ValueError, "labels", *words):
        expected_calibration_error(Y, SCORES, labels=labels)


@with_weights
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (-1.0, ["not negative", "row 5", "-1.0"]),
        (np.nan, ["finite", "row 5", "nan"]),
        (np.inf, ["finite", "row 5", "inf"]),
        (1e200, ["out of range", "row 5", "Rescale"]),
    ],
)
def test_metric_refuses_weights_that_are_none(metric, value, words):
    with refused(ValueError, "sample_weight", *words):
        metric(Y, SCORES, sample_weight=_with(value, scores=np.ones(8)))


@with_weights
@pytest.mark.parametrize("weights", [0.0, 1e-200])
def test_metric_refuses_weights_without_weight(metric, weights):
    with refused(ValueError, "sample_weight", "row" if weights == 0 else "row 0"):
        metric(Y, SCORES, sample_weight=np.full(8, weights))


@pytest.mark.parametrize(
    "weights", [["1"] * 8, [1j] * 8, [None] * 7 + ["a"], [object()] * 8]
)
def test_weights_must_be_numbers(weights):
    with refused(ValueError, "sample_weight must be numbers"):
        check_sample_weight(weights, 8)
    with refused(ValueError, "sample_weight", "masked in row 0"):
        check_sample_weight(np.ma.masked_all(8), 8)


@pytest.mark.parametrize("method", ["debiased", "unbiased"])
def test_debiased_error_refuses_bins_of_one_row(method):
    # 8 bins of one row each; with 4 bins of two there is an answer.
    with refused(
        ValueError,
        "100.0 % of the weight",
        "fewer than two rows",
        "Use fewer bins",
        "plugin",
    ):
        calibration_error(Y, SCORES, binning=8, method=method)
    calibration_error(Y, SCORES, binning=4, method=method)


def test_debiased_error_leaves_out_at_most_a_twentieth():
    # 40 rows in (0, .5], one or two alone in bins of their own above
    scores = np.concatenate((np.full(40, 0.3), [0.8, 0.95]))
    labels = np.arange(42) % 2
    # 1 of 41
    calibration_error(
        labels, scores, binning=EqualWidth(10), sample_weight=np.r_[np.ones(41), 0]
    )
    calibration_error(labels, scores, binning=EqualWidth(10))  # 2 of 42 are 4.8 %
    with refused(ValueError, "5.1 % of the weight"):  # 2 of 39
        calibration_error(labels[3:], scores[3:], binning=EqualWidth(10))


@everywhere
@pytest.mark.parametrize(
    "scores", [["a"] * 8, ["0.5"] * 8, np.array(["0.5"] * 8, dtype=object)]
)
def test_metric_refuses_strings_for_scores(metric, scores):
    with refused(ValueError, "y_proba must be numbers"):
        metric(Y, scores)


@everywhere
def test_metric_refuses_sparse_and_complex_scores(metric):
    with refused(TypeError, "y_proba", "sparse", "toarray"):
        metric(Y, sparse.csr_array(SCORES[:, None]))
    with refused(ValueError, "y_proba", "Complex data not supported"):
        metric(Y, SCORES * 1j)
    with refused(TypeError, "y_true", "sparse"):
        metric(sparse.csr_array(Y[:, None]), SCORES)


@pytest.mark.parametrize(
    ("scores", "word"),
    [
        ([[0.1], [0.2, 0.3]], "rows of different lengths"),
        (0.5, "()"),
        (None, "()"),
        (np.zeros((2, 2, 2)), "(2, 2, 2)"),
        ([0.5, 10**400], "too large"),
        (np.ma.masked_array([0.5, 0.5], mask=[False, True]), "masked in row 1"),
    ],
)
def test_scores_are_numbers_in_one_or_two_dimensions(scores, word):
    with refused(ValueError, "y_proba", word):
        expected_calibration_error([0, 1], scores)
    with refused(ValueError, "X", word):
        PlattScaling().fit(scores, [0, 1])


@pytest.mark.parametrize(
    ("y_true", "words"),
    [
        ([0, 1, np.nan, 1, 0, 1, 0, 1], ["NaN", "row 2", "Drop"]),
        (["a", None, "b", "a", "a", "a", "a", "b"], ["missing value (NaN)", "row 1"]),
        ([0, 0.5, 0.3, 1, 0, 1, 0, 1], ["Unknown label type", "continuous", "0.3"]),
        (np.array([0, "a", 1, "b"] * 2, dtype=object), ["mixes", "int, str"]),
        # An indicator matrix is a shape of its own for metrics, not for recalibrators.
        (np.zeros((8, 2)), ["(8, 2)"]),
        (1, ["1d array", "()"]),
        (None, ["None"]),
        ([b"a", b"b"] * 4, ["Unknown label type", "b'a'"]),
        (
            np.array(["2020-01-01", "NaT"] * 4, dtype="datetime64[D]"),
            ["missing value (NaT)", "row 1"],
        ),
        (np.ma.masked_array(Y, mask=Y == 1), ["masked", "row 2"]),
    ],
)
def test_labels_are_known_classes_in_one_dimension(y_true, words):
    with refused(ValueError, "y_true", *words):
        expected_calibration_error(y_true, SCORES)
    with refused(ValueError, "y", *words):
        PlattScaling().fit(SCORES, y_true)


def test_a_column_of_labels_is_taken_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        model = PlattScaling().fit(SCORES, Y[:, None])
    np.testing.assert_array_equal(
        model.predict_proba(SCORES), PlattScaling().fit(SCORES, Y).predict_proba(SCORES)
    )


@pytest.mark.parametrize("pos_label", ["1", 2, np.nan, [1]])
def test_pos_label_is_one_of_the_labels(pos_label):
    with refused(ValueError, "pos_label"):
        expected_calibration_error(Y, SCORES, pos_label=pos_label)


def test_pos_label_has_no_meaning_for_many_classes():
    with refused(ValueError, "pos_label=1", "3 columns"):
        expected_calibration_error(Y3, SCORES3, pos_label=1)


# --- The same lines: recalibrators


@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinit")]
)
def test_recalibrator_refuses_scores_that_are_not_finite(recalibrator, value, word):
    for input in ("probability", "logit"):
        recalibrator.set_params(input=input)
        with refused(ValueError, "X", word, "row 5"):
            recalibrator.fit(_with(value), Y)
        with refused(ValueError, "X", word, "row 5"):
            recalibrator.fit(SCORES, Y).predict_proba(_with(value))


def test_recalibrator_refuses_what_is_no_probability(recalibrator):
    for value in (-0.01, 1.01):
        with refused(
            ValueError, "X", "[0, 1]", "row 5", f"{value:.6g}", 'input="logit"'
        ):
            recalibrator.fit(_with(value), Y)
    with refused(ValueError, "X", "sum to 1", "row 3", 'input="logit"'):
        recalibrator.fit(_with([0.3, 0.3, 0.3], row=3, scores=SCORES3), Y3)


def test_recalibrator_refuses_logits_whose_squares_overflow():
    with refused(ValueError, "X", "1e+150", "row 5", "rescale"):
        PlattScaling(input="logit").fit(_with(1e150), Y)


def test_recalibrator_refuses_empty_input_and_other_lengths(recalibrator):
    with refused(ValueError, "X", "empty"):
        recalibrator.fit([], [])
    with refused(ValueError, "y has 7 rows", "X has 8"):
        recalibrator.fit(SCORES, Y[:7])


def test_recalibrator_refuses_one_class(recalibrator):
    with refused(ValueError, "y contains only the label 1", "classes=[0, 1]"):
        recalibrator.fit(SCORES, np.ones(8, dtype=int))


@pytest.mark.parametrize(
    ("recalibrator", "expected"),
    [
        (PlattScaling(), (8 + 1) / (8 + 2)),  # Platt's smoothed target
        (IsotonicCalibration(), 1.0),
        (HistogramBinning(), 1.0),
        (ScalingBinning(), (8 + 1) / (8 + 2)),
    ],
)
def test_recalibrator_of_one_class_fits_where_the_method_is_defined(
    recalibrator, expected
):
    recalibrator.set_params(classes=["no", "yes"]).fit(SCORES, ["yes"] * 8)
    np.testing.assert_allclose(
        recalibrator.predict_proba(SCORES)[:, 1], expected, atol=1e-9
    )


@pytest.mark.parametrize(
    "recalibrator",
    [
        TemperatureScaling(),
        PlattScaling(smooth_targets=False),
        PlattScaling(loss="squared"),
    ],
)
def test_recalibrator_of_one_class_is_refused_where_it_is_not(recalibrator):
    with refused(ValueError, type(recalibrator).__name__, "rows of", "class"):
        recalibrator.set_params(classes=["no", "yes"]).fit(SCORES, ["yes"] * 8)


def test_recalibrator_refuses_columns_and_classes_that_do_not_match(recalibrator):
    with refused(ValueError, "y has 3 classes", "one column"):
        recalibrator.fit(SCORES, Y3)
    with refused(ValueError, "y has 2 classes (1, 2)", "3 classes", "classes="):
        recalibrator.fit(SCORES3, np.asarray(Y) + 1)
    with refused(ValueError, "y has 4 classes", "3 columns"):
        recalibrator.fit(SCORES3, [0, 1, 2, 3] * 2)
    with refused(ValueError, "y has the unknown label 2 in row 2", "classes are 0, 1"):
        recalibrator.set_params(classes=[0, 1]).fit(SCORES, Y3)


def test_recalibrator_refuses_weights_that_are_none(weighted_recalibrator):
    for value in (-1.0, np.nan, np.inf, 1e200):
        with refused(ValueError, "sample_weight", "row 5"):
            weighted_recalibrator.fit(SCORES, Y, _with(value, scores=np.ones(8)))
    with refused(ValueError, "sample_weight", "zero in every row"):
        weighted_recalibrator.fit(SCORES, Y, np.zeros(8))
    with refused(ValueError, "sample_weight", "(8,)", "(7,)"):
        weighted_recalibrator.fit(SCORES, Y, np.ones(7))


@pytest.mark.parametrize(
    "recalibrator", [HistogramBinning(20), ScalingBinning(binning=20)]
)
def test_fewer_rows_than_bins_make_fewer_bins(recalibrator):
    assert recalibrator.fit(SCORES, Y).n_bins_ == 8


@pytest.mark.parametrize(
    "recalibrator",
    [HistogramBinning(), ScalingBinning(), IsotonicCalibration(), PlattScaling()],
)
def test_identical_scores_are_one_bin(recalibrator):
    # The base rate is 1/2; Platt's targets (5/6, 1/6) have the same mean.
    recalibrator.fit(np.full(8, 0.3), Y)
    np.testing.assert_allclose(
        recalibrator.predict_proba([0.3]), [[0.5, 0.5]], atol=1e-9
    )
    assert getattr(recalibrator, "n_bins_", 1) == 1


@everywhere
def test_identical_scores_have_an_answer(metric):
    if metric.__name__ == "calibration_slope_intercept":
        with refused(ValueError, "y_proba"):
            metric(Y, np.full(8, 0.3))
    else:
        metric(Y, np.full(8, 0.3))


def test_recalibrator_refuses_strings_sparse_and_complex_scores(recalibrator):
    for scores in (["a"] * 8, ["0.5"] * 8, np.array(["0.5"] * 8, dtype=object)):
        with refused(ValueError, "X must be numbers"):
            recalibrator.fit(scores, Y)
    with refused(TypeError, "X", "sparse", "toarray"):
        recalibrator.fit(sparse.csr_array(SCORES[:, None]), Y)
    with refused(ValueError, "X", "Complex data not supported"):
        recalibrator.fit(SCORES * 1j, Y)


def test_recalibrator_refuses_another_width_in_prediction(recalibrator):
    recalibrator.fit(np.column_stack((1 - SCORES, SCORES)), Y)
    for method in ("predict_proba", "predict", "transform"):
        with refused(ValueError, "X has 3 features", "expecting 2 features"):
            getattr(recalibrator, method)(SCORES3)
        with refused(ValueError, "X has 1 features", "expecting 2 features", "Reshape"):
            getattr(recalibrator, method)(SCORES)


def test_recalibrator_says_when_it_is_not_fitted(recalibrator):
    for method in ("predict_proba", "predict", "transform"):
        with pytest.raises(NotFittedError, match=type(recalibrator).__name__):
            getattr(recalibrator, method)(SCORES)
    with pytest.raises(NotFittedError):
        recalibrator.get_feature_names_out()


# --- What the gate takes


@pytest.mark.parametrize(
    ("dtype", "refused_by", "taken"),
    [("float16", 2e-2, 5e-3), ("float32", 2e-3, 5e-4), ("float64", 2e-6, 5e-7)],
)
def test_rounding_is_tolerated_by_precision(dtype, refused_by, taken):
    scores = np.array([0.0, 0.25, 1.0], dtype=dtype)
    taken_scores = check_scores(
        scores + np.array([-taken, 0, taken], dtype=dtype), name="y_proba"
    )
    assert taken_scores.min() == 0
    assert taken_scores.max() == 1
    for off in (-refused_by, 1 + refused_by):
        with refused(ValueError, "y_proba", "row 1"):
            check_scores(np.array([0.5, off], dtype=dtype), name="y_proba")
    rows = np.array([[0.25, 0.75], [0.25, 0.75]], dtype=dtype)
    rows[1, 0] += dtype_step(dtype, taken)
    np.testing.assert_allclose(
        check_scores(rows, name="y_proba").sum(axis=1), 1, atol=1e-6
    )
    rows[1, 0] += dtype_step(dtype, 2 * refused_by)
    with refused(ValueError, "y_proba", "row 1"):
        check_scores(rows, name="y_proba")


def dtype_step(dtype, step):
    return np.array(step, dtype=dtype)


def test_a_row_within_rounding_keeps_its_scores():
    # .1 + .2 + .7 misses 1 by an ulp: dividing would move .1 off the edge of a bin.
    row = np.array([[0.1, 0.2, 0.7]])
    np.testing.assert_array_equal(check_scores(row, name="y_proba"), row)


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (np.array([0, 1], dtype=np.uint8), np.float64),
        ([0, 1], np.float64),
        ([False, True], np.float64),
        (np.array([0, 1], dtype=object), np.float64),
        (np.array([0, 1], dtype=np.float16), np.float32),
        (np.array([0, 1], dtype=np.float32), np.float32),
        (np.array([0, 1], dtype=np.longdouble), np.float64),
        (np.array([0, 1], dtype=">f8"), np.float64),
    ],
)
def test_scores_of_any_number_type(given, dtype):
    scores = check_scores(given, name="y_proba")
    assert scores.dtype == dtype
    np.testing.assert_array_equal(scores, [[0.0], [1.0]])


@pytest.mark.parametrize(
    ("y_true", "pos_label", "labels"),
    [
        (Y.astype(bool), None, None),
        (Y.astype(float), None, None),
        (Y.astype(np.uint8), None, None),
        (Y.astype(object), None, None),
        (2 * Y - 1, None, None),
        (Y + 1, 2, None),
        (Y + 1, None, None),
        (np.array(["no", "yes"])[Y], None, None),
        (np.array(["yes", "no"])[Y], "no", None),
        (Y + 1, None, [1, 2]),
        (np.array(["no", "yes"])[Y], "yes", None),
        (np.array(["no", "yes"], dtype=object)[Y], "yes", None),
        (np.array(["no", "yes"])[Y], None, ["no", "yes"]),
        (np.array(["yes", "no"])[Y], "no", ["no", "yes"]),
        (np.array(["yes", "no"])[Y], "no", np.array(["no", "yes"], dtype=object)),
    ],
)
def test_labels_of_any_type(y_true, pos_label, labels):
    data = check_scored_labels(y_true, SCORES, pos_label=pos_label, labels=labels)
    np.testing.assert_array_equal(data.labels, Y == 1)
    np.testing.assert_array_equal(data.scores, SCORES)


@pytest.mark.parametrize("pos_label", [0, 1])
def test_two_columns_hold_the_positive_class_by_its_label(pos_label):
    columns = np.column_stack((1 - SCORES, SCORES))
    data = check_scored_labels(Y, columns, pos_label=pos_label)
    np.testing.assert_array_equal(data.scores, columns[:, pos_label])
    np.testing.assert_array_equal(data.labels, pos_label == Y)
    one = check_scored_labels(Y, columns[:, [pos_label]], pos_label=pos_label)
    np.testing.assert_array_equal(one.scores, data.scores)
    np.testing.assert_array_equal(one.labels, data.labels)


def test_rows_of_weight_zero_are_gone():
    weights = np.array([1.0, 0, 2, 0, 0, 1, 1, 0])
    data = check_scored_labels(Y, SCORES, sample_weight=weights)
    np.testing.assert_array_equal(data.scores, SCORES[weights > 0])
    np.testing.assert_array_equal(data.sample_weight, weights[weights > 0])


@everywhere
def test_containers_give_the_same(metric):
    expected = metric(Y, SCORES)
    for container in (
        list,
        tuple,
        np.asfortranarray,
        lambda values: np.asarray(values)[::1],
    ):
        _assert_same(metric(container(Y), container(SCORES)), expected)
    _assert_same(metric(Y, SCORES[:, None]), expected)
    _assert_same(metric(Y, np.column_stack((1 - SCORES, SCORES))), expected)


@everywhere
def test_pandas_gives_the_same(metric):
    pandas = pytest.importorskip("pandas")
    expected = metric(Y, SCORES)
    index = [7, 7, 3, 1, 0, 99, -1, 5]
    frame = pandas.DataFrame({"no": 1 - SCORES, "yes": SCORES}, index=index)
    for y_true in (
        pandas.Series(Y, index=index),
        pandas.Series(Y == 1, index=index, dtype="boolean"),
    ):
        _assert_same(metric(y_true, frame["yes"]), expected)
        _assert_same(metric(y_true, frame), expected)
    _assert_same(
        metric(pandas.Series(Y, dtype="Int64"), frame["yes"].astype("Float64")),
        expected,
    )


@everywhere
def test_polars_gives_the_same(metric):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"no": 1 - SCORES, "yes": SCORES})
    _assert_same(metric(polars.Series(Y), frame["yes"]), metric(Y, SCORES))
    _assert_same(metric(polars.Series(Y), frame), metric(Y, SCORES))


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "string", "object", "category"])
def test_missing_labels_of_pandas_are_named(dtype):
    pandas = pytest.importorskip("pandas")
    values = {"Int64": [1, None], "boolean": [True, None]}.get(dtype, ["yes", None])
    with refused(ValueError, "y_true", "row 1"):
        expected_calibration_error(pandas.Series(values, dtype=dtype), [0.2, 0.3])


def test_number_of_bins_must_be_one():
    for wanted in (0, 2.5, True, lambda n: 0.5, "many"):
        with refused(
            ValueError, "n_bins", repr(wanted) if not callable(wanted) else "0.5"
        ):
            expected_calibration_error(Y, SCORES, binning=EqualMass(wanted))
    for binning in (2.5, True, "quantile", EqualMass):
        with refused(TypeError, "binning"):
            expected_calibration_error(Y, SCORES, binning=binning)
        with pytest.raises((TypeError, ValueError), match="binning"):
            HistogramBinning(binning).fit(SCORES, Y)


def _assert_same(found, expected):
    if isinstance(expected, (int, float)):
        assert found == pytest.approx(expected, abs=1e-12)
    elif hasattr(expected, "weighted_score"):
        np.testing.assert_allclose(found.weighted_score, expected.weighted_score)
    elif isinstance(expected, dict):
        assert found == pytest.approx(expected)
    else:
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("off", [0, 1e-7, 5e-4])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_largest_scores_are_those_of_the_rows_as_they_are_used(dtype, off, order):
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.ones(7), 30_000) * (
        1 + rng.choice([0, off * (dtype == np.float32)], (30_000, 1))
    )
    given = np.asarray(scores, dtype=dtype, order=order)
    data = check_scored_labels(
        rng.integers(0, 7, 30_000), given, sample_weight=rng.integers(0, 2, 30_000)
    )
    np.testing.assert_array_equal(data.predicted, data.scores.argmax(axis=1))
    np.testing.assert_array_equal(data.confidence, data.scores.max(axis=1))
    np.testing.assert_allclose(data.scores.sum(axis=1, dtype=np.float64), 1, atol=2e-6)
    part = data.at(np.arange(5))
    lengths = [len(array) for array in part if array is not None]
    assert lengths == [5, 5, 5, 7, 5, 5]


@everywhere
def test_labels_of_the_other_byte_order(metric):
    for dtype in (np.int32, np.int64, np.float64, np.int16):
        swapped = Y.astype(np.dtype(dtype).newbyteorder())
        _assert_same(metric(swapped, SCORES), metric(Y.astype(dtype), SCORES))


def test_a_float32_row_that_misses_one_by_more_than_rounding_is_normalised():
    # 1e-6 is the limit: a row within it stays as it is, a row beyond it is divided by
    # its sum
    for excess, is_kept in ((5e-7, True), (4e-6, False)):
        scores = np.array([[0.5, 0.5 + excess], [0.25, 0.75]], dtype=np.float32)
        found = check_scores(scores, name="X")
        assert np.array_equal(found, scores) == is_kept
        assert abs(found.sum(axis=1, dtype=np.float64) - 1).max() < 1e-6
