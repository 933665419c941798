"""JSON: what comes back predicts the same, bit by bit; what was changed into nonsense
is refused, and nothing runs.
"""

import copy
import json
import time

import numpy as np
import pytest
from _catalog import RECALIBRATORS, each_of, refused
from scipy.special import softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB

import skcalib
from skcalib._rows.links import rounded
from skcalib._rows.pooling import geometric_pool
from skcalib.binning import (
    EqualMass,
    FixedEdges,
    InformationPreserving,
    MinimumMass,
    MonotonicSweep,
    UniqueScores,
)
from skcalib.export import from_dict, to_dict, to_sql
from skcalib.export._json_older import INFORMATION

every_recalibrator = pytest.mark.parametrize("recalibrator", each_of(RECALIBRATORS))


def two_class_rows(n=150, seed=0):
    rng = np.random.default_rng(seed)
    scores = np.concatenate((rng.beta(0.5, 0.8, n), [0, 0, 1, 1]))
    return scores, rng.random(len(scores)) < scores**1.5


def many_class_rows(n=150, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, n_classes)) * 2
    y = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return logits, y


def there_and_back(fitted):
    text = json.dumps(to_dict(fitted), allow_nan=False)
    back = from_dict(json.loads(text))
    assert type(back) is type(fitted)
    assert json.dumps(to_dict(back)) == text
    return back


@every_recalibrator
def test_two_classes(recalibrator):
    scores, y = two_class_rows()
    fitted = clone(recalibrator).fit(scores, np.where(y, "yes", "no"))
    back = there_and_back(fitted)
    np.testing.assert_array_equal(
        back.predict_proba(scores), fitted.predict_proba(scores)
    )
    assert back.predict(scores).tolist() == fitted.predict(scores).tolist()
    assert str(back) == str(fitted)


@every_recalibrator
@pytest.mark.parametrize("input", ["probability", "logit"])
def test_many_classes(recalibrator, input):
    scores, y = many_class_rows()
    scores = scores if input == "logit" else softmax(scores, axis=1)
    fitted = clone(recalibrator).set_params(input=input).fit(scores, y)
    back = there_and_back(fitted)
    np.testing.assert_array_equal(
        back.predict_proba(scores), fitted.predict_proba(scores)
    )
    assert vars(back).keys() == vars(fitted).keys()


def test_float32_scores():
    scores, y = two_class_rows()
    for recalibrator in (
        skcalib.VennAbers(),
        skcalib.IsotonicCalibration(),
        skcalib.HistogramBinning(),
    ):
        fitted = recalibrator.fit(scores.astype(np.float32), y)
        back = there_and_back(fitted)
        np.testing.assert_array_equal(
            back.predict_proba(scores.astype(np.float32)),
            fitted.predict_proba(scores.astype(np.float32)),
        )


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "b"],
        [1, 2],
        [False, True],
        [1.0, 2.0],
        np.array(["x", "yy"], dtype=object),
        np.uint8([3, 200]),
    ],
)
def test_labels_keep_their_type(labels):
    scores, y = two_class_rows()
    labels = np.asarray(labels)
    fitted = skcalib.PlattScaling().fit(scores, labels[y.astype(int)])
    back = there_and_back(fitted)
    assert back.classes_.dtype == fitted.classes_.dtype
    assert back.classes_.tolist() == fitted.classes_.tolist()
    assert list(map(type, back.classes_.tolist())) == list(
        map(type, fitted.classes_.tolist())
    )


@pytest.mark.parametrize(
    "binning",
    [None, 7, EqualMass("sqrt"), FixedEdges([0, 0.2, 1]), MinimumMass(EqualMass(4), 20), MonotonicSweep(),  # noqa: E501
     UniqueScores(), InformationPreserving(max_loss=0.01)],
    ids=str,
)  # fmt: skip
def test_strategies_and_their_certificates(binning):
    scores, y = two_class_rows()
    fitted = skcalib.HistogramBinning(binning, sample_split=0.5, random_state=3).fit(
        scores, y
    )
    back = there_and_back(fitted)
    assert str(back) == str(fitted)
    assert _certificate(back) == _certificate(fitted)


def _certificate(fitted):
    try:
        return str(fitted.certificate())
    except ValueError as error:
        return str(error)


def test_parameters_that_changed_since_the_fit():
    fitted = skcalib.HistogramBinning(3).fit(*two_class_rows())
    with refused(ValueError, "HistogramBinning", "smoothing is now 1.0"):
        to_dict(fitted.set_params(smoothing=1.0))


def test_parameters_of_all_kinds():
    scores, y = two_class_rows()
    for recalibrator in (
        skcalib.ClasswiseTemperatureScaling(max_deviation=np.inf),
        skcalib.PriorShift({"no": 0.25, "yes": 0.75}, np.array([0.5, 0.5])),
        skcalib.PlattScaling(classes=["no", "yes"]),
        skcalib.PlattScaling(classes=np.array(["no", "yes"])),
        skcalib.ScalingBinning(skcalib.BetaCalibration(), sample_split=(0.4, 0.3, 0.3)),
        skcalib.UniformMassBinning(3, randomize=True, random_state=0),
    ):
        fitted = recalibrator.fit(scores, np.where(y, "yes", "no"))
        back = there_and_back(fitted)
        options = (
            {"ids": range(len(scores))} if hasattr(recalibrator, "randomize") else {}
        )
        np.testing.assert_array_equal(
            back.predict_proba(scores, **options),
            fitted.predict_proba(scores, **options),
        )
    assert (
        there_and_back(
            skcalib.ClasswiseTemperatureScaling(max_deviation=np.inf).fit(scores, y)
        ).max_deviation
        == np.inf
    )


def test_infinities_are_texts():
    scores, y = two_class_rows()
    document = to_dict(
        skcalib.UniformMassBinning(3, input="logit").fit(9 * scores - 4, y)
    )
    assert document["fitted"]["bin_edges_"]["array"][0] == "-inf"
    assert document["fitted"]["bin_edges_"]["array"][-1] == "inf"


def test_groups():
    scores, y = two_class_rows()
    groups = np.array(["a", "b", "c", "small"])[np.arange(len(y)) % 3]
    groups[:5] = "small"
    fitted = skcalib.GroupwiseRecalibrator(min_group_size=20, shrinkage=5).fit(
        scores, y, groups=groups
    )
    back = there_and_back(fitted)
    np.testing.assert_array_equal(
        back.predict_proba(scores, groups=groups),
        fitted.predict_proba(scores, groups=groups),
    )
    assert back.recalibrators_["small"] is back.pooled_recalibrator_
    assert back.recalibrators_["a"] is not back.recalibrators_["b"]


def test_shared_objects_stay_shared_whatever_the_order_of_the_keys():
    scores, y = two_class_rows()
    groups = np.arange(len(y)) % 8
    fitted = skcalib.GroupwiseRecalibrator(
        min_group_size=60, merge_small_groups=True
    ).fit(scores, y, groups=groups)
    text = json.dumps(to_dict(fitted), sort_keys=True)
    back = from_dict(json.loads(text))
    for one in range(8):
        for other in range(8):
            shared = fitted.recalibrators_[one] is fitted.recalibrators_[other]
            assert (back.recalibrators_[one] is back.recalibrators_[other]) == shared


def test_names_of_columns():
    pandas = pytest.importorskip("pandas")
    scores, y = two_class_rows()
    table = pandas.DataFrame({"p": scores, "site": np.arange(len(y)) % 2})
    fitted = skcalib.GroupwiseRecalibrator(groups="site").fit(table, y)
    back = there_and_back(fitted)
    np.testing.assert_array_equal(
        back.predict_proba(table), fitted.predict_proba(table)
    )
    assert back.feature_names_in_.tolist() == ["p", "site"]


def test_multicalibration_without_rounds():
    scores, y = two_class_rows(400)
    X = np.column_stack((scores, np.arange(len(y)) % 2))
    fitted = skcalib.MulticalibratedRecalibrator(features=1, max_rounds=0).fit(X, y)
    back = there_and_back(fitted)
    np.testing.assert_array_equal(back.predict_proba(X), fitted.predict_proba(X))
    y = np.where(X[:, 1] == 1, y, ~y)
    corrected = skcalib.MulticalibratedRecalibrator(
        features=[1], max_rounds=2, cv=2, learning_rate=0.3
    ).fit(X, y)
    assert corrected.n_rounds_ > 0
    with refused(ValueError, "MulticalibratedRecalibrator", "rounds"):
        to_dict(corrected)
    with refused(ValueError, "MulticalibratedRecalibrator", "rounds"):
        to_sql(corrected)
    assert (
        to_sql(fitted).split(" /*")[0] == to_sql(fitted.recalibrator_).split(" /*")[0]
    )


@pytest.mark.parametrize(
    "classifier",
    [LogisticRegression(), GaussianNB()],
    ids=["decisions", "probabilities"],
)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("ensemble", [False, True, "auto"])
def test_the_calibration_part_of_a_classifier(classifier, n_classes, ensemble):
    X, y = many_class_rows(300, n_classes)
    recalibrator = None if ensemble == "auto" else skcalib.PlattScaling()
    model = skcalib.RecalibratedClassifierCV(
        classifier, recalibrator, ensemble=ensemble, cv=3
    ).fit(X, y)
    back = there_and_back(model)
    assert back.classes_.tolist() == model.classes_.tolist()
    method = model.calibrated_classifiers_[0].response_method
    scores = [
        getattr(pair.estimator, method)(X).reshape(len(X), -1)
        for pair in model.calibrated_classifiers_
    ]
    if n_classes == 2:
        scores = [one[:, -1:] for one in scores]
    np.testing.assert_allclose(
        back.predict_proba(np.stack(scores)), model.predict_proba(X), rtol=0, atol=1e-9
    )
    assert back.predict(np.stack(scores)).tolist() == model.predict(X).tolist()
    recalibrators = [pair.recalibrator for pair in model.calibrated_classifiers_]
    of_all = [
        one.predict_proba(rounded(_given(scores[0], method))) for one in recalibrators
    ]
    if model.pooling_exponent_ is None:
        expected = np.mean(of_all, axis=0)
    else:
        expected = geometric_pool(of_all, model.pooling_exponent_)
    found = back.predict_proba(scores[0])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def _given(scores, method):
    return (
        np.hstack((1 - scores, scores))
        if method == "predict_proba" and scores.shape[1] == 1
        else scores
    )


def test_tampered_calibration_parts():
    X, y = many_class_rows(100, 2)
    document = to_dict(
        skcalib.RecalibratedClassifierCV(
            GaussianNB(), skcalib.PlattScaling(), ensemble=False
        ).fit(X, y)
    )
    for path in _places(document):
        if path:
            with pytest.raises(ValueError, match=r"\w"):
                from_dict(_changed(document, path, _nonsense({"class": "os.system"})))
    back = from_dict(document)
    with refused(ValueError, "scores instead of features", "(2, 5)"):
        back.predict_proba(np.ones((2, 5)))


def test_two_columns_of_one_classifier_are_not_the_scores_of_two():
    X, y = many_class_rows(300, 2)
    model = skcalib.RecalibratedClassifierCV(GaussianNB(), ensemble=True, cv=2).fit(
        X, y
    )
    back = there_and_back(model)
    first = model.calibrated_classifiers_[0].estimator.predict_proba(X)
    np.testing.assert_allclose(
        back.predict_proba(first), back.predict_proba(first[:, 1]), rtol=0, atol=1e-14
    )
    of_each = np.stack(
        [pair.estimator.predict_proba(X) for pair in model.calibrated_classifiers_]
    )
    np.testing.assert_allclose(
        back.predict_proba(of_each), model.predict_proba(X), rtol=0, atol=1e-15
    )


def _nested(depth, references):
    """Return a document of stacks, each with several references to the one below it."""
    scores, y = two_class_rows(60)
    stack = to_dict(
        skcalib.StackedRecalibrator(
            [skcalib.PlattScaling()], cv=2, uncalibrated_weight=0
        ).fit(scores, y)
    )
    document = copy.deepcopy(stack)
    inner = document
    for number in range(1, depth):
        below = {
            key: value for key, value in copy.deepcopy(stack).items() if key != "schema"
        } | {"id": number}
        inner["fitted"]["recalibrators_"] = [below] + [{"same": number}] * (
            references - 1
        )
        for name, value in (
            ("weights_", 1 / references),
            ("cv_log_loss_", 0.1),
            ("seconds_", 0.1),
        ):
            inner["fitted"][name]["array"] = [value] * references
        inner = below
    return document


def test_shared_objects_cost_no_more_than_the_text():
    from_dict(_nested(3, 2))
    from_dict(_nested(8, 1))
    start = time.process_time()
    with refused(ValueError, "StackedRecalibrator", "too often"):
        from_dict(_nested(30, 3))
    assert time.process_time() - start < 2


@pytest.mark.slow
@pytest.mark.parametrize("number", [10**400, -(10**400)])
def test_integers_beyond_the_range_of_floats(number):
    for document in _documents():
        for path in _places(document):
            if (
                path
                and isinstance(path[-1], str)
                and path[-1] not in ("schema", "class")
            ):
                with pytest.raises(ValueError, match=r"\w") as caught:
                    from_dict(
                        _changed(
                            document,
                            path,
                            _nonsense({"array": [number], "dtype": "float64"}),
                        )
                    )
                assert type(caught.value) is ValueError
    document = to_dict(skcalib.PlattScaling().fit(*two_class_rows()))
    document["fitted"]["slope_"] = number
    with refused(ValueError, "slope_"):
        from_dict(document)


def test_knots_that_do_not_increase():
    document = to_dict(skcalib.SplineCalibration(4).fit(*two_class_rows()))
    knots = document["fitted"]["knots_"]["array"]
    knots[1], knots[2] = knots[2], knots[1]
    with refused(ValueError, "SplineCalibration", "knots_", "increasing"):
        from_dict(document)


# What is not written.


def my_loss(y_true, y_proba):
    return float(np.mean((y_proba[:, 1] - y_true) ** 2))


class Mine(skcalib.PlattScaling):
    pass


class MyBins(EqualMass):
    pass


def test_what_cannot_be_written_is_named():
    scores, y = two_class_rows()
    with refused(ValueError, "Mine"):
        to_dict(Mine().fit(scores, y))
    with refused(ValueError, "TemperatureScaling", "loss", "my_loss"):
        to_dict(skcalib.TemperatureScaling(loss=my_loss).fit(scores, y))
    with refused(ValueError, "HistogramBinning", "binning", "MyBins"):
        to_dict(skcalib.HistogramBinning(MyBins(3)).fit(scores, y))
    with refused(ValueError, "EqualMass", "n_bins", "<lambda>"):
        to_dict(skcalib.HistogramBinning(EqualMass(lambda n: 3)).fit(scores, y))
    with refused(ValueError, "StackedRecalibrator", "recalibrators", "Mine"):
        to_dict(skcalib.StackedRecalibrator([Mine()], cv=2).fit(scores, y))
    with refused(ValueError, "StackedRecalibrator", "cv", "KFold"):
        to_dict(
            skcalib.StackedRecalibrator([skcalib.PlattScaling()], cv=KFold(2)).fit(
                scores, y
            )
        )
    with refused(ValueError, "HistogramBinning", "random_state", "RandomState"):
        to_dict(
            skcalib.HistogramBinning(3, random_state=np.random.RandomState(0)).fit(
                scores, y
            )
        )
    with refused(ValueError, "int"):
        to_dict(3)


# What is not read.


def test_schemas():
    document = to_dict(skcalib.PlattScaling().fit(*two_class_rows()))
    for schema, words in [
        (3, ["3", "newer", "update"]),
        (0, ["0"]),
        ("1", ["'1'"]),
        (True, ["True"]),
        (1.0, ["1.0"]),
    ]:
        with refused(ValueError, "schema", *words[:1]):
            from_dict({**document, "schema": schema})
    with refused(ValueError, "schema"):
        from_dict({key: value for key, value in document.items() if key != "schema"})
    for text in (json.dumps(document), None, [document]):
        with refused(ValueError, "dict"):
            from_dict(text)


def _documents():
    scores, y = two_class_rows(80)
    many, many_y = many_class_rows(80)
    groups = np.arange(len(y)) % 2
    stack = skcalib.StackedRecalibrator(
        [skcalib.SplineCalibration(4), skcalib.VennAbers(max_n_knots=4)], cv=2
    )
    return [
        to_dict(fitted)
        for fitted in (
            skcalib.PlattScaling().fit(scores, np.where(y, "yes", "no")),
            skcalib.HistogramBinning(3).fit(scores, y),
            skcalib.UniformMassBinning(3).fit(softmax(many, axis=1), many_y),
            skcalib.MatrixScaling(input="logit").fit(many, many_y),
            skcalib.ScalingBinning(binning=2).fit(scores, y),
            skcalib.GroupwiseRecalibrator(skcalib.QuadraticScaling()).fit(
                scores, y, groups=groups
            ),
            stack.fit(scores, y),
            skcalib.BetaCalibration(multiclass="top_label", classes=[0, 1, 2]).fit(
                softmax(many, axis=1), many_y
            ),
        )
    ]


def _places(data, path=()):
    """Yield the path to each piece of a document."""
    yield path
    items = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in items:
        yield from _places(value, (*path, key))


def _changed(document, path, change):
    """Return a document with a change at the end of a path; the rest it shares."""
    *outer, last = path
    changed = place = copy.copy(document)
    for key in outer:
        place[key] = copy.copy(place[key])
        place = place[key]
    change(place, last)
    return changed


def _nonsense(value):
    return lambda place, key: place.__setitem__(key, value)


def _rename(place, key):
    place[f"{key}x"] = place.pop(key)


@pytest.mark.slow
def test_tampered_documents_are_refused(monkeypatch):
    """Each piece of eight documents in turn is replaced by nonsense, taken away or
    renamed.
    """
    monkeypatch.setattr("builtins.eval", lambda *_: pytest.fail("executed"))
    nonsense = [
        float("nan"),
        float("inf"),
        {"class": "os.system", "parameters": {"command": "false"}},
        {"same": 99},
        [{"eval": "__import__('os')"}],
        {"type": "Popen"},
        {"array": [1, [2]], "dtype": "float64"},
        {"array": [0.5], "dtype": "O"},
        {"pairs": [[1]]},
        object(),
    ]
    n_refused = 0
    for document in _documents():
        for i, path in enumerate(_places(document)):
            if not path:
                continue
            changes = [_nonsense(nonsense[i % len(nonsense)])]
            if isinstance(path[-1], str):
                changes.append(_rename)
                # Documents may lack what only informs, and what came later, as older
                # ones do: the ridge of Beta, features, and the limits of a map.
                came_later = {"alpha", "features", "_limits"}
                may_lack = {"provenance_", *came_later, *INFORMATION}
                if path[-1] not in may_lack:
                    changes.append(lambda place, key: place.pop(key))
            for change in changes:
                tampered = _changed(document, path, change)
                with pytest.raises(ValueError, match=r"\w") as caught:
                    from_dict(tampered)
                assert type(caught.value) is ValueError
                n_refused += 1
    assert n_refused > 200


@pytest.mark.parametrize(
    ("place", "value", "where"),
    [
        ("bin_edges_", [0, 0.7, 0.5, 1], "bin_edges_"),
        ("bin_values_", [0.1, 1.5, 0.3], "bin_values_"),
        ("bin_values_", [0.1, 0.3], "bin_values_"),
        ("bin_counts_", [-1, 2, 3], "bin_counts_"),
        ("classes_", [1, 0], "classes_"),
        ("classes_", [0, 1, 2], "classes"),
    ],
)
def test_impossible_states_say_where(place, value, where):
    document = to_dict(skcalib.HistogramBinning(3).fit(*two_class_rows()))
    integer = place in ("bin_counts_", "classes_")
    document["fitted"][place] = {
        "array": value,
        "dtype": "int64" if integer else "float64",
    }
    with refused(ValueError, "HistogramBinning", where):
        from_dict(document)


def test_weights_that_do_not_sum_to_one_and_other_classes_inside():
    document = _documents()[6]
    document["fitted"]["weights_"]["array"][0] += 0.1
    with refused(ValueError, "StackedRecalibrator", "weights"):
        from_dict(document)
    document = _documents()[6]
    member = document["fitted"]["recalibrators_"][1]
    member["fitted"]["classes_"] = member["parameters"]["classes"] = {
        "array": [3, 4],
        "dtype": "int64",
    }
    with refused(ValueError, "StackedRecalibrator", "SplineCalibration", "classes"):
        from_dict(document)


def test_deep_nesting():
    inner = 1
    for _ in range(100_000):
        inner = [inner]
    document = to_dict(skcalib.PlattScaling().fit(*two_class_rows()))
    document["parameters"]["classes"] = inner
    with refused(ValueError, "deeply"):
        from_dict(document)


@pytest.mark.parametrize("gain", [[0.1, None, None], [None, None, None]])
def test_a_gain_without_limits_is_read(gain):
    scores, y = np.linspace(0.05, 0.95, 60), np.arange(60) % 3 == 0
    document = to_dict(skcalib.StackedRecalibrator().fit(scores, y))
    document["fitted"]["gain_"] = {"tuple": gain}
    again = from_dict(document)
    wanted = [np.nan if item is None else item for item in gain]
    np.testing.assert_array_equal(again.gain_, wanted)
    assert json.loads(json.dumps(to_dict(again)))["fitted"] == document["fitted"]
    for broken in ([None, 0.0, 0.1], [0.1, None, 0.2], ["0.1", None, None]):
        document["fitted"]["gain_"] = {"tuple": broken}
        with pytest.raises(ValueError, match="gain_"):
            from_dict(document)
