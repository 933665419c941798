"""Fitted recalibrators as trees of plain pieces: the one description that SQL, ONNX and expressions are written from.

`calibration_map` is the front. Below it stands one short function for each method, which reads the fitted attributes;
`_BINARY`, `_LOGITS` and `_OTHERS` name them. A new method takes one function and one row.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skcalib import recalibrators as methods
from skcalib._rows.links import PROBABILITY_CLIP
from skcalib.export._nodes import (
    Above,
    Affine,
    Centred,
    Choice,
    Clip,
    Columns,
    Expit,
    GroupOf,
    Largest,
    Log,
    LogNormalized,
    LogOdds,
    LogOddsAgainstRest,
    LogSides,
    Mixture,
    Normalized,
    OneColumn,
    Pieces,
    RowMax,
    Scaled,
    Scores,
    Softmax,
    Spread,
)
from skcalib.recalibrators._stacked import Uncalibrated

__all__ = ["CalibrationMap", "calibration_map", "classes_of_scores_alone", "score_width"]


@dataclass(frozen=True, eq=False)
class CalibrationMap:
    """A fitted calibration map as a tree of nodes.

    Attributes
    ----------
    scores : Scores
        Where the tree starts. Width 1 is the positive class's probability, or its log-odds; else one column per class.
    output : node
        Where it ends: the positive class's probability (width 1) for two classes, else the K probabilities.
    input : {"probability", "logit"}
        What the scores are.
    classes : ndarray of shape (n_classes,)
        Labels, in the order of the columns.
    """

    scores: Scores
    output: object
    input: str
    classes: np.ndarray

    @property
    def group_key(self):
        """The `GroupOf` that chooses between the maps of groups, None where there is none."""
        key = getattr(self.output, "key", None)
        return key if isinstance(key, GroupOf) else None


def calibration_map(recalibrator, *, n_columns=None):
    """Return what `predict_proba` does to valid scores as a `CalibrationMap`.

    Parameters
    ----------
    recalibrator : recalibrator
        A fitted recalibrator of this package.
    n_columns : int, default=None
        Number of columns of scores. None means 1 for two classes, whatever `fit` was given, else K. For two classes
        one column is the positive class's probability, or its log-odds.

    Returns
    -------
    map : CalibrationMap
        The map, as a tree of plain pieces.

    Raises
    ------
    ValueError
        If the method, or a part of it, has no such form: the message names it.
    """
    check_is_fitted(recalibrator)
    n_classes = len(recalibrator.classes_)
    scores = Scores(n_columns or (1 if n_classes == 2 else n_classes))
    if scores.width > 2 and scores.width != n_classes:
        raise ValueError(f"{type(recalibrator).__name__} has {n_classes} classes, found {n_columns} columns of scores.")
    return CalibrationMap(scores, _output(recalibrator, scores), recalibrator.input, recalibrator.classes_)


def _output(recalibrator, scores):
    """Return the node of the recalibrator's probabilities: of the positive class alone for two classes."""
    kind, two_classes = type(recalibrator), len(recalibrator.classes_) == 2
    if kind in _OTHERS:
        return _OTHERS[kind](recalibrator, scores)
    if kind in _BINARY:
        return _binary_output(recalibrator, scores) if two_classes else _many_class_output(recalibrator, scores)
    if kind in _LOGITS:
        of_two, of_many = _LOGITS[kind]
        if two_classes:
            return of_two(recalibrator, _log_odds(recalibrator, scores))
        return of_many(recalibrator, _logits(recalibrator, scores))
    raise ValueError(
        f"{kind.__name__} cannot be written outside Python: it has no form in SQL, ONNX or expressions. Write the "
        "recalibrator inside: of a pipeline `pipeline[-1]`, of a RecalibratedClassifierCV with one pair "
        "`model.calibrated_classifiers_[0].recalibrator`."
    )


# What methods are given: scores, kept from 0 and 1 as they were in the fit, on the scale that the method works on.


def _kept_inside(recalibrator, scores):
    if getattr(recalibrator, "floor_", 0) > 0:
        return _floored(recalibrator, scores)
    clip = getattr(recalibrator, "clip_", PROBABILITY_CLIP)
    if clip in (0, PROBABILITY_CLIP):
        return scores
    low, high = float(np.log(clip)), float(np.log1p(-clip))
    if recalibrator.input == "probability":
        return Clip(scores, clip, 1 - clip)
    if scores.width == 1:
        return Clip(scores, low - high, high - low)
    return Clip(LogNormalized(scores), low, high)


def _floored(recalibrator, scores):
    """Return scores whose probabilities are ``(1 - K * floor) * p + floor``."""
    floor, is_logit = recalibrator.floor_, recalibrator.input == "logit"
    if is_logit:
        probabilities = (Expit if scores.width == 1 else Softmax)(scores, clip=False)
    lifted = Scaled(probabilities if is_logit else scores, 1 - len(recalibrator.classes_) * floor, floor)
    return (LogOdds if scores.width == 1 else Log)(lifted) if is_logit else lifted


def _logits(recalibrator, scores):
    """Return one logit a column."""
    scores = _kept_inside(recalibrator, scores)
    return scores if recalibrator.input == "logit" else Log(scores)


def _log_odds(recalibrator, scores):
    """Return the log-odds of the positive class of two, from both columns if there are two."""
    if scores.width == 2:
        return _difference(_logits(recalibrator, scores))
    scores = _kept_inside(recalibrator, scores)
    return scores if recalibrator.input == "logit" else LogOdds(scores)


def _difference(logits):
    return Affine(logits, np.array([[-1.0, 1.0]]), np.zeros(1))


def _class_probabilities(recalibrator, scores):
    """Return K probabilities."""
    scores = _kept_inside(recalibrator, scores)
    return Softmax(scores, clip=False) if recalibrator.input == "logit" else scores


# Methods for one event: functions of the fitted recalibrator (or of one of its parts) and the score on its scale.


def _binary_output(recalibrator, scores):
    return _BINARY[type(recalibrator)](recalibrator, _binary_score(recalibrator, _kept_inside(recalibrator, scores)))


def _binary_score(recalibrator, scores):
    """Return the score of the positive class of two: of two probabilities the second, which alone is looked at."""
    if recalibrator.input == "probability":
        score = scores if scores.width == 1 else OneColumn(scores, 1)
        return LogOdds(score) if recalibrator._scale == "log_odds" else score
    score = scores if scores.width == 1 else _difference(scores)
    return Expit(score, clip=False) if recalibrator._scale == "probability" else score


def _many_class_output(recalibrator, scores):
    probabilities = _class_probabilities(recalibrator, scores)
    write, on_log_odds = _BINARY[type(recalibrator)], recalibrator._scale == "log_odds"
    on_scale = LogOddsAgainstRest(probabilities) if on_log_odds else probabilities
    if recalibrator.multiclass == "top_label":
        confidence = write(recalibrator.estimators_[0], RowMax(on_scale))
        return Spread(_inside(probabilities) if on_log_odds else probabilities, confidence)
    parts = Columns(tuple(write(part, OneColumn(on_scale, k)) for k, part in enumerate(recalibrator.estimators_)))
    return Normalized(parts) if recalibrator.normalize else parts


def _inside(probabilities):
    return Clip(probabilities, PROBABILITY_CLIP, 1 - PROBABILITY_CLIP)


def _platt(fitted, log_odds):
    return Expit(Scaled(log_odds, fitted.slope_, fitted.intercept_))


def _beta(fitted, log_odds):
    return Expit(Affine(LogSides(log_odds), np.array([[fitted.a_, fitted.b_]]), np.array([fitted.c_])))


def _quadratic(fitted, log_odds):
    """Write a parabola between the ends of the fitted range, and its tangents beyond them."""
    low, high = fitted.log_odds_range_
    parabola = np.polynomial.Polynomial([fitted.intercept_, fitted.slope_, fitted.curvature_])
    tangents = [(parabola(end), parabola.deriv()(end)) for end in (low, high)]
    if low == high:
        return Expit(_polynomials(log_odds, [], [low], tangents[:1]))
    return Expit(_polynomials(log_odds, [low, high], [low, 0, high], [tangents[0], parabola.coef, tangents[1]]))


def _spline(fitted, log_odds):
    """Write the cubic pieces, and the tangents at the outer knots."""
    spline = fitted.spline_
    ends = spline.x[[0, -1]]
    tangents = np.column_stack((spline(ends), spline(ends, 1)))
    origins = [ends[0], *spline.x[:-1], ends[1]]
    return Expit(_polynomials(log_odds, spline.x, origins, [tangents[0], *spline.c[::-1].T, tangents[1]]))


def _polynomials(score, cuts, origins, coefficients):
    """Return continuous pieces, each given by as many coefficients as it has."""
    table = np.zeros((len(coefficients), max(map(len, coefficients))))
    for row, given in zip(table, coefficients, strict=True):
        row[: len(given)] = given
    return Pieces(
        score, np.asarray(cuts, dtype=np.float64), np.asarray(origins, dtype=np.float64), table, continuous=True
    )


def _isotonic(fitted, score):
    """Write the line through each two neighbouring knots, from its right end; constant beyond the outer ones."""
    knots, values = fitted.score_knots_.astype(np.float64), fitted.probability_knots_
    with np.errstate(over="ignore"):
        slopes = np.diff(values) / np.diff(knots)
    slopes[~np.isfinite(slopes)] = 0  # knots as near as the smallest floats: hardly a score lies between them
    lines = np.column_stack((values[1:], slopes))
    return _polynomials(score, knots, [knots[0], *knots[1:], knots[-1]], [values[:1], *lines, values[-1:]])


def _binned(fitted, score):
    return _steps(score, fitted.bin_edges_[1:-1], fitted.bin_values_)


def _uniform_mass(fitted, score):
    if fitted.randomize:
        raise ValueError(
            "UniformMassBinning(randomize=True) cannot be written outside Python: it draws random numbers."
        )
    return _steps(score, _below(fitted.bin_edges_[1:-1]), fitted.bin_values_)


def _scaling_binning(fitted, score):
    return _binned(fitted, _output(fitted.recalibrator_, score))


def _venn_abers(fitted, score):
    """Write a step at each knot and one between each two; with groups a score is tied with the knot above it."""
    lower, upper, knots = fitted.lower_probability_, fitted.upper_probability_, fitted.score_knots_
    at_knots = _venn_abers_probability(lower[1:], upper[:-1])
    if fitted.max_n_knots is not None:
        return _steps(score, knots[:-1], at_knots)  # the last knot is infinite
    between = _venn_abers_probability(lower, upper)
    cuts = np.column_stack((_below(knots), knots)).ravel()
    return _steps(score, cuts, np.append(np.column_stack((between[:-1], at_knots)).ravel(), between[-1]))


def _venn_abers_probability(lower, upper):
    return upper / (1 - lower + upper)


def _below(cuts):
    """Return cuts that belong to the step above as those that belong to the step below: the floats next to them."""
    return np.nextafter(cuts.astype(np.float64), -np.inf)


def _steps(score, cuts, values):
    """Return a step function, without the steps that no score reaches or that are as high as the one before."""
    cuts, values = np.asarray(cuts, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if len(cuts):
        values = values[np.concatenate(([True], np.diff(cuts) > 0, [True]))]
        cuts = np.unique(cuts)
    rises = np.diff(values) != 0
    values = values[np.append(True, rises)]
    return Pieces(score, cuts[rises], np.zeros(len(values)), values[:, None])


# Methods for K logits: functions of the fitted recalibrator and the log-odds of two classes, or the logits of K.


def _temperature_of_two(fitted, log_odds):
    return Expit(Scaled(log_odds, fitted.inverse_temperature_))


def _temperature(fitted, logits):
    return Softmax(Scaled(logits, fitted.inverse_temperature_))


def _classwise_of_two(fitted, log_odds):
    by_class = [(0, inverse) for inverse in fitted.inverse_temperature_]
    return Expit(_polynomials(log_odds, [0], [0, 0], by_class))


def _classwise(fitted, logits):
    return Choice(Largest(logits), tuple(Softmax(Scaled(logits, inverse)) for inverse in fitted.inverse_temperature_))


def _ensemble_of_two(fitted, log_odds):
    tempered, given, uniform = fitted.weights_
    parts = Expit(Scaled(log_odds, fitted.inverse_temperature_), clip=False), Expit(log_odds, clip=False)
    return _inside(Mixture((tempered, given), parts, uniform / 2))


def _ensemble(fitted, logits):
    tempered, given, uniform = fitted.weights_
    parts = Softmax(Scaled(logits, fitted.inverse_temperature_), clip=False), Softmax(logits, clip=False)
    return _inside(Normalized(_inside(Mixture((tempered, given), parts, uniform / logits.width))))


def _vector_of_two(fitted, log_odds):
    (of_rest, of_event), step = fitted.coef_, np.diff(fitted.intercept_)
    if fitted.center:  # the centred logits are minus and plus half the log-odds
        return Expit(Scaled(log_odds, (of_rest + of_event) / 2, step[0]))
    if fitted.n_features_in_ == 1:  # the logits are 0 and the log-odds
        return Expit(Scaled(log_odds, of_event, step[0]))
    if isinstance(log_odds, Affine):  # the difference of two columns
        return Expit(Affine(log_odds.of, np.array([[-of_rest, of_event]]), step))
    if fitted.input == "logit":
        raise ValueError(
            "VectorScaling(center=False) of two columns of logits is no function of one score: give both columns."
        )
    return Expit(Affine(LogSides(log_odds), np.array([[of_event, of_rest]]), step))


def _vector(fitted, logits):
    logits = Centred(logits) if fitted.center else logits
    return Softmax(Scaled(logits, fitted.coef_, fitted.intercept_))


def _matrix_of_two(fitted, log_odds):
    slope = np.diff(fitted.coef_, axis=0)[0] @ [-0.5, 0.5]
    return Expit(Scaled(log_odds, slope, np.diff(fitted.intercept_)[0]))


def _matrix(fitted, logits):
    return Softmax(Affine(Centred(logits), fitted.coef_, fitted.intercept_))


def _dirichlet_of_two(fitted, log_odds):
    of_rest, of_event = np.diff(fitted.coef_, axis=0)[0]  # coefficients of log(1 - p) and log(p)
    return Expit(Affine(LogSides(log_odds), np.array([[of_event, -of_rest]]), np.diff(fitted.intercept_)))


def _dirichlet(fitted, logits):
    return Softmax(Affine(LogNormalized(logits), fitted.coef_, fitted.intercept_))


def _prior_shift_of_two(fitted, log_odds):
    return Expit(Scaled(log_odds, 1.0, np.diff(_log_ratios(fitted))[0]))


def _prior_shift(fitted, logits):
    return Softmax(Scaled(logits, 1.0, _log_ratios(fitted)))


def _log_ratios(fitted):
    return np.log(np.maximum(fitted.target_prior_, np.finfo(np.float64).tiny)) - np.log(fitted.train_prior_)


def _uncalibrated_of_two(fitted, log_odds):
    return _inside(log_odds.of) if isinstance(log_odds, LogOdds) else Expit(log_odds)


def _uncalibrated(fitted, logits):
    return Softmax(logits)


# Recalibrators made of others: functions of the fitted recalibrator and the scores.


def _stacked(fitted, scores):
    used = [(float(w), member) for w, member in zip(fitted.weights_, fitted.recalibrators_, strict=True) if w > 0]
    weights, members = zip(*used, strict=True)
    mixture = Mixture(weights, tuple(_output(member, scores) for member in members))
    return mixture if len(fitted.classes_) == 2 else Softmax(Scaled(Log(mixture), 1 / fitted.temperature_))


def _groupwise(fitted, scores):
    pooled = _output(fitted.pooled_recalibrator_, scores)
    written = {id(fitted.pooled_recalibrator_): pooled}  # groups may share a recalibrator
    cases = []
    for group, share in zip(fitted.groups_.tolist(), fitted._own_share.tolist(), strict=True):
        recalibrator = fitted.recalibrators_[group]
        own = written.setdefault(id(recalibrator), None) or _output(recalibrator, scores)
        written[id(recalibrator)] = own
        mixed = own is not pooled and share < 1
        cases.append(Mixture((share, 1 - share), (own, pooled)) if mixed else own)
    return Choice(*_group_choice(fitted, scores, cases, pooled))


def _multicalibrated(fitted, scores):
    if fitted.n_rounds_ > 0:
        raise ValueError(
            f"MulticalibratedRecalibrator cannot be written outside Python: it made {fitted.n_rounds_} rounds of "
            "corrections by trees. Only one without rounds can."
        )
    return _output(fitted.recalibrator_, scores)


def _group_choice(fitted, scores, cases, pooled):
    """Return the key that tells a row's group, and the cases that it chooses from."""
    if fitted._given_groups or (isinstance(fitted.groups, str) and fitted.groups != "predicted_class"):
        column = None if fitted._given_groups else fitted.groups
        numbers = {group: number for number, group in enumerate(fitted.groups_.tolist())}
        return GroupOf(column, numbers, len(cases)), (*cases, pooled)
    if fitted.groups != "predicted_class":
        raise ValueError(
            f"GroupwiseRecalibrator(groups={fitted.groups!r}) cannot be written outside Python: give the column of the "
            "groups by its name."
        )
    if scores.width > 1:
        return Largest(scores), tuple(cases)
    return Above(scores, 0.0 if fitted.input == "logit" else 0.5), tuple(cases)


_BINARY = {
    methods.BetaCalibration: _beta,
    methods.HistogramBinning: _binned,
    methods.IsotonicCalibration: _isotonic,
    methods.PlattScaling: _platt,
    methods.QuadraticScaling: _quadratic,
    methods.ScalingBinning: _scaling_binning,
    methods.SplineCalibration: _spline,
    methods.UniformMassBinning: _uniform_mass,
    methods.VennAbers: _venn_abers,
}
_LOGITS = {
    methods.ClasswiseTemperatureScaling: (_classwise_of_two, _classwise),
    methods.DirichletCalibration: (_dirichlet_of_two, _dirichlet),
    methods.EnsembleTemperatureScaling: (_ensemble_of_two, _ensemble),
    methods.MatrixScaling: (_matrix_of_two, _matrix),
    methods.PriorShift: (_prior_shift_of_two, _prior_shift),
    methods.TemperatureScaling: (_temperature_of_two, _temperature),
    methods.VectorScaling: (_vector_of_two, _vector),
    Uncalibrated: (_uncalibrated_of_two, _uncalibrated),
}
_OTHERS = {
    methods.GroupwiseRecalibrator: _groupwise,
    methods.MulticalibratedRecalibrator: _multicalibrated,
    methods.StackedRecalibrator: _stacked,
}


def classes_of_scores_alone():
    """Return the classes of recalibrators that have a map and take scores alone, but for a column of groups."""
    return [kind for kind in (*_BINARY, *_LOGITS, *_OTHERS) if kind is not methods.MulticalibratedRecalibrator]


def score_width(recalibrator):
    """Return how many columns of scores `fit` was given, columns of groups and features not counted."""
    for name in ("pooled_recalibrator_", "recalibrator_"):
        recalibrator = getattr(recalibrator, name, recalibrator)
    return recalibrator.n_features_in_
