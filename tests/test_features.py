"""Features beside the score: fits, ridge, refusals, exports, and the classifier around
them.
"""

import json
import re
import subprocess
from shutil import which

import numpy as np
import pytest
from _programs import required
from scipy.optimize import minimize
from scipy.special import expit, logit, logsumexp, softmax
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from skcalib import (
    BetaCalibration,
    CrossFittedClassifier,
    GroupwiseRecalibrator,
    IsotonicCalibration,
    MulticalibratedRecalibrator,
    OnlineRecalibrator,
    PlattScaling,
    RecalibratedClassifierCV,
    Recalibrator,
    ScalingBinning,
    StackedRecalibrator,
    TemperatureScaling,
)
from skcalib._fitting.side_features import STRENGTHS
from skcalib.export import (
    from_dict,
    to_dict,
    to_javascript,
    to_onnx,
    to_python,
    to_sql,
    to_sql_table,
)

# Methods whose features are added to the log-odds, and all with features.
ADDITIVE = {"platt": PlattScaling, "beta": BetaCalibration}
METHODS = {**ADDITIVE, "temperature": TemperatureScaling}


def _world(n, seed=0, effects=(0.6, 0.0)):
    """Return a table with a column of scores and one of each feature, labels, and the
    true log-odds; features have means and deviations of their own.
    """
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n, scale=1.5)
    u = rng.normal(size=(n, len(effects)))
    log_odds = 0.2 + 0.8 * z + u @ np.array(effects)
    y = (rng.random(n) < expit(log_odds)).astype(int)
    scales = 10.0 ** np.arange(len(effects))
    return np.column_stack((expit(z), 5 + scales * u)), y, log_odds


def _plain_fit(base, u, targets, strength, base_penalty, base_centre, bounds):
    """Minimise the penalised log-loss by a general method; return the coefficients and
    minus the logarithm of Laplace's marginal likelihood.
    """
    d = u.shape[1]
    X = np.column_stack((base, u))
    ridge = np.concatenate((base_penalty, np.full(d, strength)))
    centre = np.concatenate((base_centre, np.zeros(d)))

    def loss(coef):
        z = X @ coef
        gap = coef - centre
        value = np.sum(np.logaddexp(0, z) - targets * z) + ridge @ gap**2 / 2
        return value, X.T @ (expit(z) - targets) + ridge * gap

    start = np.maximum(centre, 0)
    found = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[*bounds, *[(None, None)] * d],
        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9},
    )
    p = expit(X @ found.x)
    hessian = (X * (p * (1 - p))[:, None]).T @ X + np.diag(ridge)
    evidence = found.fun + np.linalg.slogdet(hessian)[1] / 2
    if d:
        evidence -= d * np.log(strength) / 2
    return found.x, evidence


def _plain_probabilities(method, X, y, new):
    """Return the probabilities of `new` by a fit of our own to X: every strength, the
    one of largest marginal likelihood.
    """
    mean, deviation = X[:, 1:].mean(axis=0), X[:, 1:].std(axis=0)
    u, new_u = ((rows[:, 1:] - mean) / deviation for rows in (X, new))
    events = y.sum()
    targets = np.where(y == 1, (events + 1) / (events + 2), 1 / (len(y) - events + 2))

    def base_of(rows):
        s = rows[:, 0]
        if method == "platt":
            # standardised, as in the fit: the determinant depends on the scale by a
            # number that all strengths share
            return np.column_stack((logit(s), np.ones(len(s))))
        return np.column_stack((np.log(2 * s), -np.log(2 * (1 - s)), np.ones(len(s))))

    base = base_of(X)
    penalty, centre, bounds = np.zeros(2), np.zeros(2), [(None, None)] * 2
    if method == "beta":
        penalty, centre = np.array([1.0, 1, 0]), np.array([1.0, 1, 0])
        bounds = [(0, None), (0, None), (None, None)]
    best = None
    for strength in STRENGTHS:
        side = u if np.isfinite(strength) else u[:, :0]
        coef, evidence = _plain_fit(
            base, side, targets, strength, penalty, centre, bounds
        )
        if best is None or evidence < best[1]:
            best = (coef, evidence, strength)
    coef, _, strength = best
    side = new_u if np.isfinite(strength) else new_u[:, :0]
    return expit(np.column_stack((base_of(new), side)) @ coef), strength


@pytest.mark.parametrize("method", ADDITIVE)
@pytest.mark.parametrize("effects", [(0.6,), (0.3, 0.0, 0.0), (0.0, 0.0)])
def test_fit_is_the_penalised_regression_of_largest_evidence(method, effects):
    X, y, _ = _world(250, seed=3, effects=effects)
    new, _, _ = _world(50, seed=4, effects=effects)
    features = list(range(1, X.shape[1]))
    fitted = METHODS[method](features=features, clip=None).fit(X, y)
    expected, strength = _plain_probabilities(method, X, y, new)
    assert fitted.feature_penalty_ == strength
    np.testing.assert_allclose(fitted.predict_proba(new)[:, 1], expected, atol=2e-5)


@pytest.mark.parametrize("method", METHODS.values())
def test_infinite_penalty_is_the_fit_without_features(method):
    """Where no feature helps, the map is exactly that of the scores alone."""
    seeds = range(8)
    infinite = 0
    for seed in seeds:
        X, y, _ = _world(300, seed=seed, effects=(0.0,))
        fitted = method(features=[1]).fit(X, y)
        if np.isinf(fitted.feature_penalty_):
            infinite += 1
            assert fitted.feature_coef_.tolist() == [0.0]
            alone = method().fit(X[:, 0], y)
            np.testing.assert_allclose(
                fitted.predict_proba(X), alone.predict_proba(X[:, 0]), rtol=1e-12
            )
    assert infinite >= 3


def _cost(method, n, effects, runs):
    """Return the mean rise of the expected log-loss of new samples by features."""
    rises = []
    for seed in range(runs):
        X, y, _ = _world(n, seed=seed, effects=effects)
        new, _, log_odds = _world(4000, seed=10_000 + seed, effects=effects)
        losses = []
        features = list(range(1, X.shape[1]))
        for fitted, rows in (
            (method(features=features).fit(X, y), new),
            (method().fit(X[:, 0], y), new[:, 0]),
        ):
            p = fitted.predict_proba(rows)[:, 1]
            truth = expit(log_odds)
            losses.append(-np.mean(truth * np.log(p) + (1 - truth) * np.log(1 - p)))
        rises.append(losses[0] - losses[1])
    return np.mean(rises)


def _varying_temperatures(n, seed=0, effect=0.8):
    """Return a table of three logits and two features, of which the first changes the
    logarithm of the temperature, and labels.
    """
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 3), scale=2)
    u = rng.normal(size=(n, 2))
    true = logits * np.exp(-effect * u[:, :1]) / 1.5
    y = (true + rng.gumbel(size=true.shape)).argmax(axis=1)
    return np.column_stack((logits, 4 + u * [1, 10])), y


def _plain_temperature(X, y, new):
    """Return the probabilities of `new` by a fit of our own, and its strength."""
    mean, deviation = X[:, 3:].mean(axis=0), X[:, 3:].std(axis=0)
    u, new_u = ((rows[:, 3:] - mean) / deviation for rows in (X, new))

    def minus_evidence(side, strength):
        d = side.shape[1]
        features = np.column_stack((np.ones(len(y)), side))

        def loss(coef):
            z = np.exp(features @ coef)[:, None] * X[:, :3]
            of_rows = logsumexp(z, axis=1) - z[np.arange(len(y)), y]
            ridge = strength * coef[1:] @ coef[1:] / 2 if d else 0.0
            return of_rows.sum() + ridge

        found = minimize(loss, np.zeros(1 + d), method="BFGS", options={"gtol": 1e-6})
        z = np.exp(features @ found.x)[:, None] * X[:, :3]
        p = softmax(z, axis=1)
        curvature = np.array(
            [p_ @ z_**2 - (p_ @ z_) ** 2 for p_, z_ in zip(p, z, strict=True)]
        )
        hessian = (features * curvature[:, None]).T @ features
        if d:
            hessian[1:, 1:] += strength * np.eye(d)
        value = found.fun + np.linalg.slogdet(hessian)[1] / 2
        return found.x, value - (d * np.log(strength) / 2 if d else 0)

    fits = []
    for strength in STRENGTHS:
        is_finite = np.isfinite(strength)
        coef, value = minus_evidence(u if is_finite else u[:, :0], strength)
        fits.append((value, strength, np.append(coef, np.zeros(3 - len(coef)))))
    least, strength, _ = min(fits, key=lambda fit: fit[0])
    shares = [np.exp(least - value) for value, _, _ in fits]
    if np.isinf(strength):
        shares = [1.0] + [0.0] * (len(fits) - 1)
    coef = sum(
        share / sum(shares) * coef
        for share, (_, _, coef) in zip(shares, fits, strict=True)
    )
    factor = np.exp(coef[0] + new_u @ coef[1:])
    return softmax(factor[:, None] * new[:, :3], axis=1), strength


@pytest.mark.slow
@pytest.mark.parametrize("effect", [0.8, 0.0])
def test_temperature_is_the_mean_of_penalised_fits_by_their_evidence(effect):
    X, y = _varying_temperatures(300, effect=effect)
    new, _ = _varying_temperatures(40, seed=1)
    fitted = TemperatureScaling(features=[3, 4], input="logit").fit(X, y)
    expected, strength = _plain_temperature(X, y, new)
    assert fitted.feature_penalty_ == strength
    np.testing.assert_allclose(fitted.predict_proba(new), expected, atol=2e-5)
    # decisions stay, and the temperature is that at the mean of the features
    assert (fitted.predict(new) == new[:, :3].argmax(axis=1)).all()
    at_mean = np.concatenate((new[0, :3], fitted.feature_mean_))
    np.testing.assert_allclose(
        fitted.predict_proba(at_mean[None])[0],
        softmax(new[0, :3] / fitted.temperature_),
        rtol=1e-9,
    )
    if effect:
        assert fitted.feature_coef_[0] == pytest.approx(effect, abs=0.25)


def test_temperature_of_impossible_classes_and_of_certain_rows():
    X, y = _varying_temperatures(200)
    fitted = TemperatureScaling(features=[3], input="logit").fit(X[:, :4], y)
    new = X[:5, :4].copy()
    new[0, 1] = -np.inf
    probabilities = fitted.predict_proba(new)
    assert probabilities[0, 1] == 0
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    right = TemperatureScaling(features=[3], input="logit").fit(
        X[:, :4], X[:, :3].argmax(axis=1)
    )
    assert np.isinf(right.feature_penalty_)
    with pytest.raises(ValueError, match="features require loss='log'"):
        TemperatureScaling(features=[3], input="logit", loss="brier").fit(X[:, :4], y)


def test_useful_feature_pays():
    assert _cost(PlattScaling, 500, (0.6,), 5) < -0.02


@pytest.mark.slow
@pytest.mark.parametrize("method", ADDITIVE.values())
@pytest.mark.parametrize(
    ("n", "n_features", "most"),
    [
        (200, 1, 0.0015),
        (200, 10, 0.0025),
        (2000, 10, 0.001),
    ],
)
def test_useless_features_cost_little(method, n, n_features, most):
    runs = 75 if n == 200 else 12
    assert _cost(method, n, (0.0,) * n_features, runs) < most


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "n_features", "most"),
    [
        (200, 1, 0.0015),
        (200, 10, 0.0025),
        (2000, 10, 0.001),
    ],
)
def test_useless_features_of_a_temperature_cost_little(n, n_features, most):
    runs = 80 if n == 200 else 8
    assert _cost(TemperatureScaling, n, (0.0,) * n_features, runs) < most


@pytest.mark.slow
def test_useless_features_of_a_temperature_of_three_classes_cost_little():
    rises = []
    for seed in range(40):
        X, y = _varying_temperatures(200, seed, effect=0)
        new, _ = _varying_temperatures(4000, 10_000 + seed, effect=0)
        truth = softmax(new[:, :3] / 1.5, axis=1)
        scaling = TemperatureScaling(input="logit").fit(X[:, :3], y)
        featured = TemperatureScaling(input="logit", features=[3, 4]).fit(X, y)
        before = np.log(scaling.predict_proba(new[:, :3]))
        after = np.log(featured.predict_proba(new))
        rises.append(np.mean(np.sum(truth * (before - after), axis=1)))
    assert np.mean(rises) < 0.0025


@pytest.mark.parametrize("method", METHODS.values())
def test_units_of_features_do_not_matter(method):
    X, y, _ = _world(300)
    fitted = method(features=[1, 2]).fit(X, y)
    scale, shift = np.array([1.0, 1e-6, 1e9]), np.array([0.0, -3.0, 1e5])
    moved = method(features=[1, 2]).fit(X * scale + shift, y)
    np.testing.assert_allclose(
        moved.predict_proba(X * scale + shift), fitted.predict_proba(X), rtol=1e-6
    )
    np.testing.assert_allclose(
        moved.feature_coef_ * scale[1:], fitted.feature_coef_, rtol=1e-5
    )


@pytest.mark.parametrize("method", METHODS.values())
def test_weights_are_repeated_rows(method):
    X, y, _ = _world(200)
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = method(features=[1, 2]).fit(X, y, sample_weight=weight)
    repeated = method(features=[1, 2]).fit(np.repeat(X, weight, 0), y.repeat(weight))
    assert weighted.feature_penalty_ == repeated.feature_penalty_
    np.testing.assert_allclose(
        weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-9
    )


@pytest.mark.parametrize("method", ADDITIVE.values())
def test_constant_features_and_equal_scores(method):
    X, y, _ = _world(200)
    X[:, 2] = 7.0
    fitted = method(features=[1, 2]).fit(X, y)
    assert fitted.feature_coef_[1] == 0
    alone = method(features=[1]).fit(X[:, :2], y)
    np.testing.assert_allclose(
        fitted.predict_proba(X), alone.predict_proba(X[:, :2]), atol=2e-3
    )
    X[:, 0] = 0.4
    assert np.isfinite(method(features=[1, 2]).fit(X, y).predict_proba(X)).all()


@pytest.mark.parametrize("method", ADDITIVE.values())
def test_separable_feature_stays_finite(method):
    X, y, _ = _world(100)
    X[:, 1] = y
    fitted = method(features=[1]).fit(X[:, :2], y)
    probabilities = fitted.predict_proba(X[:, :2])
    assert np.isfinite(probabilities).all()
    assert (probabilities.argmax(axis=1) == y).all()


@pytest.mark.parametrize("input_", ["probability", "logit"])
def test_two_columns_of_scores_are_one(input_):
    X, y, _ = _world(300)
    z = logit(X[:, 0])
    one, two = z, np.column_stack((-z / 2, z / 2))
    if input_ == "probability":
        one, two = expit(z), np.column_stack((expit(-z), expit(z)))
    first = PlattScaling(features=[-1], input=input_).fit(
        np.column_stack((one, X[:, 1])), y
    )
    second = PlattScaling(features=[-1], input=input_).fit(
        np.column_stack((two, X[:, 1])), y
    )
    np.testing.assert_allclose(
        first.predict_proba(np.column_stack((one, X[:, 1]))),
        second.predict_proba(np.column_stack((two, X[:, 1]))),
        rtol=1e-6,
    )


def _frame(X, names=("p", "age", "length")):
    """Return a data frame with these columns."""
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(X, columns=list(names))


@pytest.mark.parametrize("method", METHODS.values())
def test_names_and_positions_and_order(method):
    X, y, _ = _world(300)
    frame = _frame(X)
    named = method(features=["length", "age"]).fit(frame, y)
    placed = method(features=[2, 1]).fit(X, y)
    assert named.n_features_in_ == placed.n_features_in_ == 3
    assert named.feature_names_in_.tolist() == ["p", "age", "length"]
    np.testing.assert_array_equal(named.predict_proba(frame), placed.predict_proba(X))
    first = method(features="age").fit(frame[["age", "p"]], y)
    np.testing.assert_array_equal(
        first.predict_proba(frame[["age", "p"]]),
        method(features=1).fit(X[:, :2], y).predict_proba(X[:, :2]),
    )
    pl = pytest.importorskip("polars")
    polars = pl.DataFrame(dict(zip(frame.columns, X.T, strict=True)))
    np.testing.assert_array_equal(
        method(features=["length", "age"]).fit(polars, y).predict_proba(polars),
        named.predict_proba(frame),
    )


def test_booleans_and_integers_are_numbers():
    X, y, _ = _world(300)
    frame = _frame(X)
    frame["age"] = X[:, 1] > 5
    frame["length"] = np.round(X[:, 2]).astype("int32")
    plain = X.copy()
    plain[:, 1] = frame["age"]
    plain[:, 2] = frame["length"]
    np.testing.assert_allclose(
        PlattScaling(features=["age", "length"]).fit(frame, y).predict_proba(frame),
        PlattScaling(features=[1, 2]).fit(plain, y).predict_proba(plain),
        rtol=1e-12,
    )


def test_refused_by_name():
    X, y, _ = _world(60)
    frame = _frame(X)
    fitted = PlattScaling(features="age").fit(frame[["p", "age"]], y)
    holes = frame[["p", "age"]].copy()
    holes.loc[7, "age"] = np.nan
    texts = frame[["p", "age"]].astype({"age": str})
    with pytest.raises(ValueError, match="'age' has a missing value in row 7"):
        fitted.predict_proba(holes)
    cases = [
        (holes, "age", "features: column 'age' has a missing value in row 7"),
        (texts, "age", "column 'age' must contain numbers, found"),
        (frame.assign(age=np.inf), ["age"], "at most 1e.100 .*found inf in row 0"),
        (frame, ["weight"], "names the column 'weight', but X has the columns"),
        (frame, ["p", "age", "length"], "uses all 3 columns of X, so no scores"),
        (frame, [], "must be names or positions"),
        (frame, [True], "must be names or positions"),
        (X, "age", "X has no column names: give positions"),
        (X, [3], "asks for column 3, but X has 3 columns"),
    ]
    for table, features, message in cases:
        for method in METHODS.values():
            with pytest.raises(ValueError, match=message):
                method(features=features).fit(table, y)
    with pytest.raises(ValueError, match="features require loss='log'"):
        PlattScaling(features=[1, 2], loss="squared").fit(X, y)
    with pytest.raises(ValueError, match="no unique score leads"):
        fitted.inverse_transform([0.5])
    with pytest.raises(ValueError, match="fit_batches takes no features"):
        PlattScaling(features=1).fit_batches([(X[:, :2], y)])
    with pytest.raises(ValueError, match="clusters"):
        PlattScaling(features=1).fit(X[:, :2], y, clusters=y[1:])


@pytest.mark.parametrize("method", ADDITIVE.values())
def test_three_classes_are_refused(method):
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.dirichlet(np.ones(3), 90), rng.normal(size=90)))
    with pytest.raises(ValueError, match="is for two classes, found 3"):
        method(features=3).fit(X, np.arange(90) % 3)


def test_wrappers_of_scores_alone_refuse_features():
    """A position must never be taken for a column of scores."""
    X, y, _ = _world(100)
    inner = PlattScaling(features=[1])
    scores = np.column_stack((1 - X[:, 0], X[:, 0]))
    wrappers = [
        (GroupwiseRecalibrator(inner, groups=1), X[:, :2]),
        (MulticalibratedRecalibrator(inner, features=1), X[:, :2]),
        (ScalingBinning(inner), scores),
        (StackedRecalibrator([inner]), scores),
        (Recalibrator(inner), scores),
        (
            RecalibratedClassifierCV(
                LogisticRegression(), make_pipeline(IsotonicCalibration(), inner)
            ),
            X,
        ),
    ]
    for wrapper, rows in wrappers:
        with pytest.raises(ValueError, match=r"PlattScaling.*features=\[1\]"):
            wrapper.fit(rows, y)
    online = OnlineRecalibrator(FrozenEstimator(inner.fit(X[:, :2], y)))
    with pytest.raises(ValueError, match=r"PlattScaling\(features=\[1\]\)"):
        online.fit(X[:, 0], y)


def test_failed_fit_keeps_the_earlier_one():
    X, y, _ = _world(200)
    fitted = PlattScaling(features=[1, 2]).fit(X, y)
    before = fitted.predict_proba(X)
    broken = X.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match="missing value in row 3"):
        fitted.fit(broken, y)
    np.testing.assert_array_equal(fitted.predict_proba(X), before)
    alone = fitted.set_params(features=None).fit(X[:, 0], y)
    assert not hasattr(alone, "feature_coef_")
    expected = PlattScaling().fit(X[:, 0], y).predict_proba(X[:, 0])
    np.testing.assert_array_equal(alone.predict_proba(X[:, 0]), expected)


@pytest.fixture(scope="module", params=list(METHODS))
def exported(request):
    """A fit with two features by name, its table, and its probabilities."""
    X, y, _ = _world(400)
    X[0, 0], X[1, 0] = 0.0, 1.0
    frame = _frame(X)
    fitted = METHODS[request.param](features=["age", "length"]).fit(frame, y)
    return fitted, frame, fitted.predict_proba(frame)


def test_json(exported):
    fitted, frame, probabilities = exported
    document = json.loads(json.dumps(to_dict(fitted)))
    np.testing.assert_array_equal(
        from_dict(document).predict_proba(frame), probabilities
    )
    for change in (
        {"feature_coef_": None},
        {"feature_mean_": {"array": [1.0], "dtype": "float64"}},
    ):
        name = next(iter(change))
        broken = json.loads(json.dumps(document))
        if change[name] is None:
            del broken["fitted"][name]
        else:
            broken["fitted"][name] = change[name]
        with pytest.raises(ValueError, match="not valid"):
            from_dict(broken)
    without = json.loads(json.dumps(document))
    without["parameters"]["features"] = None
    with pytest.raises(ValueError, match="not valid"):
        from_dict(without)


def test_python(exported):
    fitted, frame, probabilities = exported
    module = {}
    exec(to_python(fitted), module)
    calibrate = module["calibrate"]
    found = [calibrate(s, list(u)) for s, *u in frame.to_numpy()]
    np.testing.assert_allclose(found, probabilities[:, 1], atol=1e-12)
    for features in (None, [1.0], [1.0, np.nan], [1.0, "2"], "12", [1.0, 1e200], 3.0):
        assert np.isnan(calibrate(0.5, features))


def test_sql(exported):
    duckdb = pytest.importorskip("duckdb")
    fitted, frame, probabilities = exported
    sql = to_sql(fitted, score="p", dialect="duckdb")
    connection = duckdb.connect()
    connection.register("rows", frame.assign(i=range(len(frame))))
    query = f"SELECT {sql} FROM rows ORDER BY i"
    found = np.array([row[0] for row in connection.execute(query).fetchall()])
    np.testing.assert_allclose(found, probabilities[:, 1], atol=1e-12)
    for bad in ("NULL", "'NaN'::DOUBLE", "'inf'::DOUBLE"):
        query = f"SELECT {sql} FROM (SELECT 0.5 AS p, {bad} AS age, 1.0 AS length)"
        assert connection.execute(query).fetchone() == (None,)


def test_sql_needs_names():
    X, y, _ = _world(100)
    fitted = PlattScaling(features=[1, 2]).fit(X, y)
    with pytest.raises(ValueError, match="the names of the columns are not known"):
        to_sql(fitted)
    with pytest.raises(ValueError, match="use to_sql"):
        to_sql_table(fitted)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_onnx(exported, dtype):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    fitted, frame, probabilities = exported
    model = to_onnx(fitted, dtype=dtype)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    scores = frame[["p"]].to_numpy(dtype)
    features = frame[["age", "length"]].to_numpy(dtype).copy()
    features[5, 1] = np.nan
    (found,) = session.run(None, {"scores": scores, "features": features})
    assert np.isnan(found[5]).all()
    rows = np.arange(len(found)) != 5
    tolerance = {"float32": 1e-5, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(found[rows], probabilities[rows], atol=tolerance)


def test_javascript(exported):
    required("SKCALIB_REQUIRE_NODE", which("node"), "needs node")
    fitted, frame, probabilities = exported
    rows = json.dumps(frame.to_numpy()[:50].tolist())
    bad = ("undefined", "[1]", "[1, NaN]", "[1, '2']", "[1, null]", "5")
    calls = ",".join(f"Number.isNaN(calibrate(0.5, {features}))" for features in bad)
    program = (
        f"{to_javascript(fitted)}console.log(JSON.stringify("
        f"[{rows}.map(r => calibrate(r[0], Float64Array.from(r.slice(1)))), [{calls}]]"
        "))"
    )
    done = subprocess.run(
        ["node", "-"], input=program, capture_output=True, text=True, check=True
    )
    found, are_nan = json.loads(done.stdout)
    np.testing.assert_allclose(found, probabilities[:50, 1], atol=1e-12)
    assert are_nan == [True] * len(bad)


def test_three_classes_are_written_alike():
    X, y = _varying_temperatures(200)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c", "length", "age"])
    fitted = TemperatureScaling(features=["length", "age"], input="logit")
    probabilities = fitted.fit(frame, y).predict_proba(frame)
    document = json.loads(json.dumps(to_dict(fitted)))
    np.testing.assert_array_equal(
        from_dict(document).predict_proba(frame), probabilities
    )
    module = {}
    exec(to_python(fitted), module)
    found = [module["calibrate"](row[:3], row[3:]) for row in X.tolist()]
    np.testing.assert_allclose(found, probabilities, atol=1e-12)
    duckdb = pytest.importorskip("duckdb")
    texts = to_sql(fitted, score=["a", "b", "c"], dialect="duckdb")
    connection = duckdb.connect()
    connection.register("rows", frame.assign(i=range(len(frame))))
    query = f"SELECT {', '.join(texts)} FROM rows ORDER BY i"
    found = connection.execute(query).fetchall()
    np.testing.assert_allclose(found, probabilities, atol=1e-12)
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    model = to_onnx(fitted, dtype="float64")
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (found,) = session.run(None, {"scores": X[:, :3], "features": X[:, 3:]})
    np.testing.assert_allclose(found, probabilities, atol=1e-12)


def test_maps_of_segments_refuse_features():
    X, y, _ = _world(100)
    maps = {"north": PlattScaling(features=[1, 2]).fit(X, y)}
    for write in (to_javascript, to_python):
        with pytest.raises(ValueError, match="'north' takes features"):
            write(maps)


def test_tables_refuse_features():
    pytest.importorskip("narwhals")
    from skcalib.engines import PredictionTable

    X, y, _ = _world(100)
    frame = _frame(X).assign(y=y)
    table = PredictionTable(frame, label="y", score="p")
    with pytest.raises(ValueError, match="features='age'"):
        table.fit(PlattScaling(features="age"))
    fitted = PlattScaling(features=["age", "length"]).fit(_frame(X), y)
    with pytest.raises(ValueError, match="gets only scores"):
        table.apply(fitted, output="q")


def _patients(n=600):
    """Return a table of three columns, of which the model uses two badly."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) * [1, 1, 10] + [0, 0, 60]
    y = rng.random(n) < expit(X[:, 0] + 0.15 * (X[:, 2] - 60))
    return X, np.where(y, "ill", "well")


class _Blind(LogisticRegression):
    """Logistic regression that does not look at the last column."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(np.asarray(X)[:, :2], y, sample_weight)

    def predict_proba(self, X):
        return super().predict_proba(np.asarray(X)[:, :2])

    def decision_function(self, X):
        return super().decision_function(np.asarray(X)[:, :2])


@pytest.mark.slow
@pytest.mark.parametrize("ensemble", ["auto", True, False])
@pytest.mark.parametrize("method", ADDITIVE.values())
def test_features_of_the_model_inside_the_classifier(ensemble, method):
    X, y = _patients()
    model = RecalibratedClassifierCV(_Blind(), method(features=[2]), ensemble=ensemble)
    model.fit(X, y)
    probabilities = model.predict_proba(X)
    for pair in model.calibrated_classifiers_:
        # the features follow the scores: a second column of scores is the model's
        (position,) = pair.recalibrator.features
        assert position == pair.recalibrator.n_features_in_ - 1
        assert pair.recalibrator.feature_coef_[0] < -0.05  # of "well"
    frame = _frame(X, ("a", "b", "age"))
    named = RecalibratedClassifierCV(
        _Blind(), method(features=["age"]), ensemble=ensemble
    ).fit(frame, y)
    np.testing.assert_allclose(named.predict_proba(frame), probabilities, rtol=1e-9)
    assert (named.predict(frame) == model.predict(X)).all()
    recalibrator = named.calibrated_classifiers_[0].recalibrator
    assert recalibrator.feature_names_in_.tolist() == ["score", "age"]
    assert '"age"' in to_sql(recalibrator)
    with pytest.raises(ValueError, match="takes features besides the scores"):
        to_dict(named)


def test_pair_of_the_classifier_is_the_fit_to_its_table():
    """The twin: the same cross-fitted scores and columns through a pipeline."""
    X, y = _patients(300)
    model = RecalibratedClassifierCV(
        LinearSVC(random_state=0), PlattScaling(features=2), ensemble=False, cv=5
    ).fit(X, y)
    pipeline = make_pipeline(
        CrossFittedClassifier(LinearSVC(random_state=0), passthrough=2, cv=5),
        PlattScaling(features=-1, input="logit"),
    ).fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(X), pipeline.predict_proba(X), rtol=1e-7
    )


def test_clusters_and_weights_inside_the_classifier():
    X, y = _patients(300)
    clusters = np.arange(300) // 3
    weight = np.random.default_rng(0).integers(1, 3, 300)
    model = RecalibratedClassifierCV(_Blind(), PlattScaling(features=2))
    model.fit(X, y, sample_weight=weight, clusters=clusters)
    assert np.isfinite(model.predict_proba(X)).all()


def test_name_that_occurs_twice_is_refused():
    X, y = _patients(100)
    frame = _frame(X, ("a", "b", "score"))
    model = RecalibratedClassifierCV(LinearSVC(), PlattScaling(features="score"))
    message = re.escape("features gives several columns the same name")
    with pytest.raises(ValueError, match=message):
        model.fit(frame, y)
