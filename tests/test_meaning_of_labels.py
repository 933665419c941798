"""What labels mean: nothing is chosen by the alphabet without a word."""

import numpy as np
import pytest
from scipy.special import expit

from skcalib import HistogramBinning, PlattScaling, TemperatureScaling
from skcalib._input.scored_labels import check_scored_labels
from skcalib.export import to_sql
from skcalib.metrics import (
    brier_decomposition,
    calibration_error,
    expected_calibration_error,
    kuiper_calibration_error,
)
from skcalib.monitoring import calibration_change


@pytest.fixture
def loans():
    rng = np.random.default_rng(0)
    scores = rng.random(400)
    return np.where(rng.random(400) < scores, "default", "paid"), scores


@pytest.mark.parametrize("metric", [calibration_error, expected_calibration_error])
def test_the_alphabet_is_told(loans, metric):
    y, scores = loans
    with pytest.warns(UserWarning, match="is 'paid', the last label.*'default'"):
        metric(y, scores)
    assert metric(y, scores, pos_label="default") < 0.1
    assert metric(y, scores, labels=["default", "paid"]) > 0.3  # as it was told
    metric(y, 1 - scores)  # go up with "paid"


def test_a_change_tells_it_too(loans):
    y, scores = loans
    halves = y[:200], scores[:200], y[200:], scores[200:]
    with pytest.warns(UserWarning, match="is 'paid'.*pos_label='default'"):
        calibration_change(*halves, n_resamples=1, random_state=0)
    calibration_change(*halves, n_resamples=1, random_state=0, pos_label="default")
    columns = [np.column_stack((p, 1 - p)) for p in (scores[:200], scores[200:])]
    calibration_change(
        y[:200], columns[0], y[200:], columns[1], n_resamples=1, random_state=0
    )


def test_a_fit_tells_it_too(loans):
    y, scores = loans
    with pytest.warns(UserWarning, match="is 'paid'.*pass both columns"):
        PlattScaling().fit(scores, y)
    PlattScaling().fit(np.column_stack((scores, 1 - scores)), y)
    PlattScaling(classes=["default", "paid"]).fit(scores, y)


@pytest.mark.parametrize(
    "metric", [calibration_error, kuiper_calibration_error, brier_decomposition]
)
@pytest.mark.parametrize("dtype", [int, float, bool])
@pytest.mark.parametrize("label", [0, 1])
def test_a_batch_of_one_class(metric, dtype, label):
    scores = np.linspace(0.1, 0.9, 40)
    found = metric(np.full(40, label, dtype=dtype), scores)
    wanted = metric(np.full(40, label), scores, labels=[0, 1])
    assert found == wanted


def test_column_numbers_are_one_rule():
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.ones(4), 90)
    y = np.array([0, 2, 3])[np.arange(90) % 3]
    model = TemperatureScaling().fit(scores, y)
    assert model.classes_.tolist() == [0, 1, 2, 3]
    found = expected_calibration_error(y, scores)
    assert found == expected_calibration_error(y, scores, labels=range(4))


# --- the temperature, and where a fit comes from ---


def test_the_temperature_of_guo_whatever_the_floor():
    """With the floor .714 where 1 is right."""
    rng = np.random.default_rng(1)
    log_odds = rng.normal(scale=2, size=4000)
    y = rng.random(4000) < expit(log_odds)
    model = TemperatureScaling(input="logit", clip=0.05).fit(log_odds, y)
    assert model.temperature_ < 0.95
    assert model.plain_temperature_ == pytest.approx(1, abs=0.05)
    plain = TemperatureScaling(input="logit", clip=None).fit(log_odds, y)
    assert plain.plain_temperature_ == plain.temperature_
    # found from another start
    assert model.plain_temperature_ == pytest.approx(plain.temperature_, rel=1e-9)


class Loss:
    """A loss with fields that are nobody's business."""

    def __init__(self):
        self.dsn = "postgres://user:secret@host"
        self.itself = self

    def __call__(self, y_true, y_proba):
        return float(np.mean((y_true - y_proba[:, 1]) ** 2))


def test_fields_of_other_packages_stay_where_they_are():
    scores, y = np.linspace(0.1, 0.9, 30), np.arange(30) % 3 == 0
    model = TemperatureScaling(loss=Loss()).fit(scores, y.astype(int))
    assert model.provenance_["parameters"]["loss"] == "Loss"
    assert "secret" not in to_sql(model)


def test_long_doubles():
    scores, y = np.linspace(0.1, 0.9, 30), np.arange(30) % 3 == 0
    model = HistogramBinning(3, classes=np.array([0, 1], dtype=np.longdouble))
    model.fit(scores, y.astype(np.longdouble))
    assert model.provenance_["parameters"]["classes"] == [0.0, 1.0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, ">f8"])
@pytest.mark.parametrize("kind", [bool, np.int64, np.uint8, np.float64, ">i4"])
def test_vectors_and_columns_are_the_same_rows(dtype, kind):
    """Usual vectors are recognised at a look, a column is checked step by step."""
    rng = np.random.default_rng(0)
    for scores in (rng.random(50), np.array([-0.0, 0.5, 1.0]), np.array([0.3])):
        scores = scores.astype(dtype)
        y = (rng.random(len(scores)) < scores).astype(kind)
        usual = check_scored_labels(y, scores)
        checked = check_scored_labels(y, scores[:, None])
        for found, wanted in zip(usual[:4], checked[:4], strict=True):
            np.testing.assert_array_equal(found, wanted)
            assert np.asarray(found).dtype == np.asarray(wanted).dtype
        np.testing.assert_array_equal(np.signbit(usual.scores), False)


@pytest.mark.parametrize("wrong", [np.nan, -0.1, 1.1, np.inf])
def test_a_vector_with_a_wrong_score_is_no_usual_one(wrong):
    with pytest.raises(ValueError, match=r"row 1"):
        check_scored_labels(np.array([0, 1, 1]), np.array([0.2, wrong, 0.4]))
    with pytest.raises(ValueError, match=r"y_true has 2 rows but y_proba has 3"):
        check_scored_labels(np.array([0, 1]), np.array([0.2, 0.3, 0.4]))
