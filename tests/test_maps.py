"""Calibration maps as trees of plain pieces. `test_formats` compares those of every
recalibrator with `predict_proba`.
"""

import gc
import pickle
import weakref

import numpy as np
import pytest
from _catalog import RECALIBRATORS, each_of, refused
from scipy.special import softmax
from sklearn.base import clone

import skcalib
from skcalib import maps as nodes
from skcalib.maps import calibration_map

EXTREME = np.array(
    [
        0,
        5e-324,
        1e-300,
        2.0**-53,
        1e-15,
        0.1,
        0.25,
        0.5,
        np.nextafter(0.5, 1),
        0.75,
        1 - 2.0**-53,
        1,
    ]
)


def predicted(calibration_map, scores, groups=None, ids=None):
    """Return the probabilities (n, K) that the map says."""
    output = nodes.Rows(scores, groups, ids)(calibration_map.output)
    return (
        np.hstack((1 - output, output)) if len(calibration_map.classes) == 2 else output
    )


def _two_class_rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    scores = np.concatenate(
        (rng.beta(0.5, 0.8, n), np.round(rng.random(60), 1), [0, 0, 1, 1])
    )
    return scores, rng.random(len(scores)) < scores**1.5


def _many_class_rows(n=300, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, n_classes)) * 2
    y = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return logits, y


@pytest.mark.parametrize("input", ["probability", "logit"])
@pytest.mark.parametrize("center", [True, False])
def test_vector_scaling_of_two_columns(input, center):
    scores, y = _two_class_rows()
    columns = np.column_stack((1 - scores, scores))
    if input == "logit":
        columns = np.random.default_rng(3).normal(size=columns.shape) + columns
    fitted = skcalib.VectorScaling(0.1, center=center, input=input).fit(columns, y)
    both = calibration_map(fitted, n_columns=2)
    np.testing.assert_allclose(
        predicted(both, columns), fitted.predict_proba(columns), rtol=0, atol=1e-13
    )
    if input == "logit" and not center:
        with refused(ValueError, "VectorScaling(center=False)", "both columns"):
            calibration_map(fitted)


@pytest.mark.parametrize("clip", [0.01, "auto"])
@pytest.mark.parametrize("input", ["probability", "logit"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_clipping(clip, input, n_classes):
    rng = np.random.default_rng(4)
    y = rng.integers(n_classes, size=400)
    sure = np.where(rng.random(400) < 0.9, y, rng.integers(n_classes, size=400))
    scores = np.eye(n_classes)[sure]
    scores = scores if input == "probability" else 50 * scores
    for recalibrator in (
        skcalib.TemperatureScaling(clip=clip),
        skcalib.PlattScaling(clip=clip),
    ):
        fitted = recalibrator.set_params(input=input).fit(scores, y)
        as_map = calibration_map(fitted, n_columns=n_classes)
        np.testing.assert_allclose(
            predicted(as_map, scores), fitted.predict_proba(scores), rtol=0, atol=1e-13
        )


@pytest.mark.parametrize("merge", [False, True])
def test_groups_that_are_given(merge):
    scores, y = _two_class_rows()
    groups = np.array(["a", "b", "b", "o'c", "d"])[np.arange(len(scores)) % 5]
    groups[:3] = "rare"
    recalibrator = skcalib.GroupwiseRecalibrator(
        skcalib.PlattScaling(),
        shrinkage=20,
        min_group_size=70,
        merge_small_groups=merge,
    )
    fitted = recalibrator.fit(scores, y, groups=groups)
    as_map = calibration_map(fitted)
    assert as_map.group_key.column is None
    new = np.tile(EXTREME, 6)
    new_groups = np.repeat([*fitted.groups_, "unknown"], len(EXTREME))
    with pytest.warns(UserWarning, match="unknown"):
        expected = fitted.predict_proba(new, groups=new_groups)
    np.testing.assert_allclose(
        predicted(as_map, new[:, None], new_groups), expected, rtol=0, atol=1e-13
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_groups_by_predicted_class(n_classes):
    logits, y = _many_class_rows(n_classes=n_classes)
    scores = softmax(logits, axis=1)
    fitted = skcalib.GroupwiseRecalibrator(
        skcalib.HistogramBinning(binning=3), min_group_size=20
    ).fit(scores, y)
    as_map = calibration_map(fitted, n_columns=n_classes)
    assert as_map.group_key is None
    np.testing.assert_allclose(
        predicted(as_map, scores), fitted.predict_proba(scores), rtol=0, atol=1e-13
    )


def test_what_has_no_form_is_refused_by_name():
    class Mine(skcalib.PlattScaling):
        def _predict_binary(self, scores):
            return 1 - super()._predict_binary(scores)

    scores, y = _two_class_rows()
    with refused(ValueError, "Mine"):
        calibration_map(Mine().fit(scores, y))
    with refused(ValueError, "Mine"):
        calibration_map(skcalib.StackedRecalibrator([Mine()], cv=2).fit(scores, y))
    with refused(ValueError, "GroupwiseRecalibrator", "name"):
        table = np.column_stack((scores, np.arange(len(y)) % 2))
        calibration_map(skcalib.GroupwiseRecalibrator(groups=1).fit(table, y))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("multiclass", ["ovr", "top_label"])
def test_randomised_bins(n_classes, multiclass):
    logits, y = _many_class_rows(n_classes=n_classes)
    scores = softmax(logits, axis=1).round(1)
    scores[:, -1] = 1 - scores[:, :-1].sum(axis=1)
    fitted = skcalib.UniformMassBinning(
        4, randomize=True, random_state=0, multiclass=multiclass
    ).fit(scores, y)
    ids = [f"row {k}" for k in range(len(scores))]
    as_map = calibration_map(fitted, n_columns=n_classes)
    np.testing.assert_array_equal(
        predicted(as_map, scores, ids=ids), fitted.predict_proba(scores, ids=ids)
    )


def test_nodes_check_themselves():
    score = nodes.Scores(1)
    for make, words in [
        (lambda: nodes.Scaled(score, np.nan), "slope"),
        (lambda: nodes.Scaled(nodes.Scores(3), np.ones(2)), "3"),
        (lambda: nodes.Affine(score, np.ones((2, 2)), np.zeros(2)), "shape"),
        (lambda: nodes.Affine(score, np.full((2, 1), np.inf), np.zeros(2)), "coef"),
        (
            lambda: nodes.Pieces(
                score, np.array([0.5, 0.5]), np.zeros(3), np.zeros((3, 1))
            ),
            "increase",
        ),
        (
            lambda: nodes.Pieces(score, np.array([0.5]), np.zeros(1), np.zeros((1, 1))),
            "piece",
        ),
        (lambda: nodes.Place(score, np.array([0.5, 0.4])), "increase"),
        (lambda: nodes.Mixture((0.5,), (score, score)), "weight"),
        (lambda: nodes.Mixture((0.5, 0.5), (score, nodes.Scores(2))), "width"),
        (
            lambda: nodes.Choice(
                nodes.Largest(nodes.Scores(2)), (score, nodes.Scores(2))
            ),
            "width",
        ),
    ]:
        with pytest.raises(ValueError, match=words):
            make()


def test_a_choice_evaluates_each_case_on_its_own_rows():
    seen = []

    class Recording(nodes.OneColumn):
        def __call__(self, rows):
            seen.append(rows.inputs[0][:, 0].tolist())
            return super().__call__(rows)

    score = nodes.Scores(1)
    choice = nodes.Choice(
        nodes.Place(score, np.array([0.5])), (Recording(score, 0), Recording(score, 0))
    )
    assert nodes.Rows([[0.1], [0.9], [0.5]])(choice).tolist() == [[0.1], [0.9], [0.5]]
    assert seen == [[0.1, 0.5], [0.9]]


def test_steps_that_no_score_reaches_are_left_out():
    scores, y = _two_class_rows()
    fitted = skcalib.VennAbers().fit(scores, y)
    pieces = calibration_map(fitted).output
    assert isinstance(pieces, nodes.Pieces)
    assert np.all(np.diff(pieces.cuts) > 0)
    assert len(pieces.coefficients) == len(pieces.origins) == len(pieces.cuts) + 1


@pytest.mark.parametrize("input", ["probability", "logit"])
def test_a_new_fit_or_a_changed_attribute_builds_a_new_map(input):
    """The map is kept between predictions, and never beyond a change of its method."""
    scores, y = _two_class_rows()
    if input == "logit":
        scores = 4 * scores - 2
    model = skcalib.PlattScaling(input=input, clip=None).fit(scores, y)
    before = model.predict_proba(scores)
    fresh = skcalib.PlattScaling(input=input, clip=None).fit(scores, ~y)
    expected = fresh.predict_proba(scores)
    assert not np.allclose(before, expected)
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.predict_proba(scores), before)
    assert vars(copied).keys() == vars(model).keys()
    np.testing.assert_array_equal(model.fit(scores, ~y).predict_proba(scores), expected)
    # and without a fit, also past `__setattr__`
    model.slope_ = copied.slope_
    vars(model)["intercept_"] = copied.intercept_
    np.testing.assert_array_equal(model.predict_proba(scores), before)


def test_a_kept_map_keeps_no_recalibrator():
    class Mine(skcalib.PlattScaling):
        def _predict_binary(self, scores):
            return 1 - super()._predict_binary(scores)

    scores, y = _two_class_rows()
    for kind in (skcalib.PlattScaling, Mine, skcalib.VennAbers):
        model = kind().fit(scores, y)
        model.predict_proba(scores)
        reference = weakref.ref(model)
        del model
        gc.collect()
        assert reference() is None, kind


@pytest.mark.parametrize("multiclass", ["ovr", "top_label"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_methods_without_a_map_predict_by_their_hooks(n_classes, multiclass):
    """What a user's hook changes is what comes out, alone and inside a stack."""

    class Mirrored(skcalib.PlattScaling):
        def _predict_binary(self, scores):
            return 1 - super()._predict_binary(-scores)

    logits, y = _many_class_rows(n_classes=n_classes)
    scores = softmax(logits, axis=1)
    plain = skcalib.PlattScaling(multiclass=multiclass).fit(scores, y)
    mine = Mirrored(multiclass=multiclass).fit(scores, y)
    for problem in (mine, *getattr(mine, "estimators_", [])):
        problem.intercept_ = np.negative(problem.intercept_)
    # 1 - 1 / (1 + exp(-(slope * -z - intercept))) is Platt's own map
    np.testing.assert_allclose(
        mine.predict_proba(scores), plain.predict_proba(scores), rtol=0, atol=1e-14
    )
    stack = skcalib.StackedRecalibrator(
        [Mirrored(multiclass=multiclass)], uncalibrated_weight=0, cv=2
    ).fit(scores, y)
    (member,) = stack.recalibrators_
    expected = member.predict_proba(scores)
    if n_classes > 2:
        expected = softmax(np.log(expected) / stack.temperature_, axis=1)
    np.testing.assert_allclose(stack.predict_proba(scores), expected, atol=1e-12)


def test_hooks_on_logits():
    class Shifted(skcalib.TemperatureScaling):
        def _predict_logits(self, logits):
            return super()._predict_logits(logits) + np.arange(logits.shape[1])

    for n_classes in (2, 4):
        logits, y = _many_class_rows(n_classes=n_classes)
        logits[::5, 0] = -np.inf
        y[::5] = 1
        model = Shifted(input="logit", clip=None).fit(logits, y)
        scaled = logits * model.inverse_temperature_ + np.arange(n_classes)
        np.testing.assert_allclose(
            model.predict_proba(logits), softmax(scaled, axis=1), rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("recalibrator", each_of(RECALIBRATORS))
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_row_has_the_same_probabilities_alone(recalibrator, n_classes):
    """Neither the other rows of a block, nor their impossible classes, change a row."""
    logits, y = _many_class_rows(n_classes=n_classes)
    fitted = clone(recalibrator).set_params(input="logit").fit(logits, y)
    expected = fitted.predict_proba(logits)
    others = logits.copy()
    others[1::2, 0] = -np.inf
    # five classes or more are multiplied as matrices, which rounds by the rows
    tolerance = 0 if n_classes == 2 else 1e-15
    np.testing.assert_allclose(
        fitted.predict_proba(others)[::2], expected[::2], rtol=0, atol=tolerance
    )
    np.testing.assert_allclose(
        fitted.predict_proba(logits[:1]), expected[:1], rtol=0, atol=tolerance
    )
