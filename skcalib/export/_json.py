"""Fitted recalibrators as JSON and back: plain values only, so that reading executes
nothing.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from skcalib import binning, recalibrators
from skcalib._defaults import check_fitted
from skcalib._fitting.provenance import check_provenance
from skcalib._inference.results import IntervalEstimate
from skcalib._intervals.one_probability.lazy import NO_LIMITS, LazyLimits
from skcalib._rows.links import expit
from skcalib.decisions import CertifiedThreshold
from skcalib.export._json_older import (
    INFORMATION,
    RENAMED_CLASSES,
    upgraded,
    with_later_parameters,
)
from skcalib.export._json_values import (
    Defect,
    NotWritable,
    as_json,
    check_keys,
    described,
    from_json,
    tried,
)
from skcalib.export._json_whole import CHECKS, parameters_and_attributes, restore
from skcalib.export._segments import segment_items
from skcalib.maps import Scores, map_of
from skcalib.maps.checks import (
    array,
    count,
    flag,
    labels,
    names,
    numbers,
    positive,
    text,
    within,
)
from skcalib.recalibrated_classifier import RecalibratedClassifierCV
from skcalib.recalibrators._transformer import ProbabilityTransformer
from skcalib.recalibrators._uncalibrated import Uncalibrated

SCHEMA = 2

# The attribute with the fitted binary problems of a recalibrator of K > 2 classes.
_PROBLEMS = "estimators_"
_TOLERANCE = 1e-9  # of probabilities and their sums

# The checks of attributes that not every fit has. The temperature without a floor only
# informs, and those of features belong to a fit with features. The last three say why
# there is no certificate, what a search may have chosen, and from what the limits of
# `predict_interval` follow.
_OPTIONAL = {
    "feature_names_in_": names,
    "provenance_": check_provenance,
    "plain_temperature_": positive,
    "feature_coef_": numbers,
    "feature_mean_": numbers,
    "feature_penalty_": within(0, np.inf, infinite=True),
    "_has_wide_logits_": flag,
    "_group_column": text,
    "_has_one_cluster": array("b"),
    "_no_certificate": text,
    "_tuned": text,
    "_limits": LazyLimits.of_document,
}
_COMMON = {"n_features_in_": count, "classes_": labels, **_OPTIONAL}
# Requests for predictions, to check what was read, for each object in the document.
_MOST_REQUESTS = 20


def _public(module):
    """Return the public classes of a module by name, without bases."""
    classes = {}
    for name in module.__all__:
        public = getattr(module, name)
        if isinstance(public, type) and not name.startswith("Base"):
            classes[name] = public
    return classes


# Classes by their names: recalibrators, what a document may hold as a whole, and what
# may stand anywhere in it.
_RECALIBRATORS = {"Uncalibrated": Uncalibrated}
for _name, _kind in _public(recalibrators).items():
    if issubclass(_kind, ProbabilityTransformer):
        _RECALIBRATORS[_name] = _kind
_WHOLE = {**_RECALIBRATORS, **{kind.__name__: kind for kind in CHECKS}}
_CLASSES = {**_public(binning), **_WHOLE}


def to_dict(
    recalibrator: BaseEstimator | CertifiedThreshold | Mapping,
) -> dict[str, Any]:
    """Return a fitted recalibrator as plain values that `json.dumps` can write and
    `from_dict` can read.

    Parameters
    ----------
    recalibrator : recalibrator, RecalibratedClassifierCV, CertifiedThreshold, CalibrationMonitor or GroupMonitors
        A fitted recalibrator whose components, if any, also belong to this package. For
        a `RecalibratedClassifierCV`, only the recalibrators are written, not the
        classifiers. A certified threshold is written with its guarantee, and monitors
        with their evidence, so that a restarted service can continue. Dates in monitors
        are converted to strings. A dict that maps groups to recalibrators, as
        returned by `PredictionTable(by=...).fit`, is also accepted.

    Returns
    -------
    document : dict
        Nested dicts and lists of strings, numbers, booleans and None. The document
        contains the schema version, the public name of the class, its parameters and
        its fitted attributes. Numbers are exact, and labels keep their type.

    Raises
    ------
    ValueError
        If the recalibrator is not fitted, or contains a function, a random number
        generator, or an object whose class does not belong to this package. The message
        names the object.

    See Also
    --------
    skcalib.export.from_dict : Restores a recalibrator from the output of `to_dict`.
    skcalib.export.to_sql : Writes a recalibrator as an SQL expression.
    skcalib.export.to_onnx : Writes a recalibrator as an ONNX graph.

    Examples
    --------
    >>> import json
    >>> import numpy as np
    >>> from skcalib import PlattScaling
    >>> from skcalib.export import from_dict, to_dict
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(1000)
    >>> platt = PlattScaling().fit(
    ...     scores, np.where(rng.random(1000) < scores**2, "paid", "open")
    ... )
    >>> text = json.dumps(to_dict(platt))
    >>> from_dict(json.loads(text)).predict([0.5, 0.9]).tolist()
    ['open', 'paid']
    """  # noqa: E501
    if isinstance(recalibrator, Mapping):
        segments = []
        for segment, segment_recalibrator in segment_items(recalibrator):
            document = to_dict(segment_recalibrator)
            document.pop("schema")
            segments.append({"segment": segment, "map": document})
        return {"schema": SCHEMA, "segments": segments}
    name = type(recalibrator).__name__
    if type(recalibrator) is not _WHOLE.get(name):
        raise ValueError(
            f"{name} cannot be written as JSON: only recalibrators of this package can"
            " be written, not classes derived from them. For a pipeline, write the"
            " last step, `pipeline[-1]`."
        )
    if not isinstance(recalibrator, CertifiedThreshold):
        check_is_fitted(recalibrator)
    return {"schema": SCHEMA, **_Encoder().object(recalibrator, name)}


def from_dict(mapping: Mapping[str, Any]) -> Any:
    """Restore a recalibrator from the output of `to_dict`.

    Parameters
    ----------
    mapping : dict
        The output of `to_dict`, or the result of ``json.loads``.

    Returns
    -------
    recalibrator : recalibrator, RecalibratedClassifierCV, CertifiedThreshold, CalibrationMonitor or GroupMonitors
        The restored object. Its probabilities are bitwise identical to those of the
        original. A `RecalibratedClassifierCV` is restored without its classifiers: its
        `predict_proba` takes scores instead of features, as an array of shape (n, C)
        with scores for all classifiers, or of shape (n_classifiers, n, C) with the
        scores of each.

    Raises
    ------
    ValueError
        If the document is invalid, that is, if it has a newer schema, an unknown class,
        a missing, unknown or invalid attribute, or a state that does not predict
        probabilities. The message gives the position of the error. No code from the
        document is executed, and only classes from this package are instantiated.

    See Also
    --------
    skcalib.export.to_dict : Writes a recalibrator as plain JSON values.

    Examples
    --------
    A recalibrator fitted to 1,000 scores is stored as text and restored:

    >>> import json
    >>> import numpy as np
    >>> from skcalib import SplineCalibration
    >>> from skcalib.export import from_dict, to_dict
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(1000)
    >>> spline = SplineCalibration().fit(scores, rng.random(1000) < scores**2)
    >>> text = json.dumps(to_dict(spline))
    >>> read = from_dict(json.loads(text))
    >>> bool(np.array_equal(read.predict_proba(scores), spline.predict_proba(scores)))
    True

    A document written by a later version of the package is rejected:

    >>> document = json.loads(text)
    >>> document["schema"] = 1000
    >>> from_dict(document)
    Traceback (most recent call last):
    ...
    ValueError: The document has schema 1000, but this version of skcalib reads schemas up to 2: update skcalib.
    """  # noqa: E501
    if not isinstance(mapping, Mapping):
        raise ValueError(
            f"A document must be a dict, found {described(mapping)}. Parse a string"
            " with json.loads first."
        )
    if "schema" not in mapping:
        raise ValueError(
            "The document has no key 'schema': it was not written by to_dict."
        )
    schema = mapping["schema"]
    if isinstance(schema, bool) or not isinstance(schema, int) or schema < 1:
        raise ValueError(f"schema must be a positive integer, found {schema!r:.60}.")
    if schema > SCHEMA:
        raise ValueError(
            f"The document has schema {schema}, but this version of skcalib reads"
            f" schemas up to {SCHEMA}: update skcalib."
        )
    document = {key: value for key, value in mapping.items() if key != "schema"}
    if document.keys() == {"segments"}:
        return _segments(document["segments"], schema)
    try:
        if schema < SCHEMA:
            document = upgraded(document, _defaults_and_attributes)
        return _Decoder(document).whole(document)
    except Defect as error:
        raise ValueError(f"The document is not valid. {error}.") from None
    except RecursionError:
        raise ValueError(
            "The document is not valid: it is nested too deeply."
        ) from None
    except Exception as error:
        raise ValueError(f"The document is not valid: {error}.") from None


def _segments(written, schema):
    """Return a dict from segment to recalibrator, written as a list of dicts with the
    keys "segment" and "map"; raise a ValueError if it is not valid.
    """
    if not isinstance(written, list) or not written:
        raise ValueError("The document is not valid. segments must be a list.")
    maps = {}
    for number, item in enumerate(written):
        is_pair = isinstance(item, Mapping) and item.keys() == {"segment", "map"}
        if not is_pair or not isinstance(item["map"], Mapping):
            raise ValueError(
                f"The document is not valid. segments[{number}] must contain a group"
                " and its map."
            )
        segment = item["segment"]
        is_plain = segment is None or isinstance(segment, str | bool | int | float)
        # A map that is itself a dict of segments is refused as well.
        is_dict_of_segments = "segments" in item["map"]
        if not is_plain or segment in maps or is_dict_of_segments:
            raise ValueError(
                f"The document is not valid. segments[{number}] must name a group"
                f" that no other entry has, found {segment!r:.60}."
            )
        maps[segment] = from_dict({**item["map"], "schema": schema})
    return maps


class _Encoder:
    """Writes objects of this package as JSON; an object that occurs twice is written
    once, with a number as its id, and then referred to by this number.

    `written` holds the dict of each object that was written, by Python's `id`.
    """

    def __init__(self):
        self.written = {}

    def object(self, estimator, where):
        """Return an object of this package as JSON; messages call it `where`.

        It is a dict with its class, parameters and fitted attributes or, if it was
        written before, ``{"same": id}`` with the id of the dict written then.
        """
        if id(estimator) in self.written:
            first = self.written[id(estimator)]
            if "id" not in first:
                n_numbered = sum("id" in written for written in self.written.values())
                first["id"] = n_numbered + 1
            return {"same": first["id"]}
        written = {"class": type(estimator).__name__}
        self.written[id(estimator)] = written
        if type(estimator) in CHECKS:  # monitors and others that are no recalibrators
            parameters, attributes = parameters_and_attributes(estimator)
            written["parameters"] = self._values(parameters, where)
            if attributes:
                written["fitted"] = self._values(attributes, where)
            return written
        parameters = estimator.get_params(deep=False)
        attributes = dict(estimator.__getstate__())
        for name in parameters:
            attributes.pop(name, None)
        written["parameters"] = self._values(parameters, where)
        if attributes:
            written["fitted"] = self._fitted(estimator, attributes, where)
        return written

    def _fitted(self, estimator, attributes, where):
        """Return the fitted `attributes` as JSON by name, without those that are
        derived again on reading. The binary problems of K > 2 classes, which are
        removed from `attributes`, become the list of dicts `estimators_`.
        """
        check_fitted(estimator)
        if getattr(estimator, "n_rounds_", 0) > 0:
            raise ValueError(
                f"{where} cannot be written as JSON: it has {estimator.n_rounds_}"
                " rounds of corrections."
            )
        names_of_problem = estimator._part_attributes.keys()
        problems = attributes.pop(_PROBLEMS, None)
        # `_fitted_with_` holds the parameters at the fit, which are written anyway.
        derived = estimator._derived.keys() | {"_fitted_with_"}
        if problems is not None:
            # The recalibrator has them as lists with one entry per problem.
            derived |= names_of_problem
        stored = {}
        for name, value in attributes.items():
            if isinstance(value, IntervalEstimate):  # without limits, they are NaN
                value = tuple(None if np.isnan(item) else item for item in value)
            if name not in derived:
                stored[name] = value
        # the plain values from which `predict_interval` computes limits
        limits = stored.pop("_limits", NO_LIMITS).state
        if limits is not None:
            stored["_limits"] = limits
        unknown = stored.keys() - _checks(estimator).keys()
        if unknown:
            raise ValueError(
                f"{where} cannot be written: its class declares no check for"
                f" {min(unknown)}."
            )
        written = self._values(stored, where)
        if problems is not None:
            written[_PROBLEMS] = []
            for problem in problems:
                stored = {name: getattr(problem, name) for name in names_of_problem}
                written[_PROBLEMS].append(self._values(stored, where))
        return written

    def _values(self, values, where):
        """Return a dict of parameters or attributes as JSON."""
        return {name: self._value(value, where, name) for name, value in values.items()}

    def _value(self, value, where, name):
        """Return the value of one parameter or attribute as JSON; messages call it
        `name` and the object that has it `where`.
        """

        def nested(inner):
            """Return an object that the value is or contains as JSON, if its class is
            of this package.
            """
            if type(inner) is FrozenEstimator:
                return {"frozen": nested(inner.estimator)}
            if type(inner) is _CLASSES.get(type(inner).__name__):
                return self.object(inner, f"{type(inner).__name__} in {where}.{name}")
            raise NotWritable(described(inner))

        try:
            return as_json(value, nested)
        except NotWritable as error:
            raise ValueError(
                f"{where} cannot be written as JSON: {name} holds {error}. Only plain"
                " values and classes of this package are written."
            ) from None


class _Decoder:
    """Reads the objects of a document of schema 2. An object with an id is made where
    it, or a reference to it, is met first.

    Each fitted object is tried: it is asked for predictions, and it asks the objects
    inside it, each as often as it refers to it. References to objects with references
    could make a short document exponentially slow, so that requests are counted and
    limited.
    """

    def __init__(self, document):
        # By id: what the document holds of an object, and the object itself, which is
        # None while it is being made.
        self.written = {}
        self.made = {}
        self.n_objects = 0  # in the document
        # Number of requests for predictions that one request to an object causes, with
        # itself, by Python's `id` of the object.
        self.requests = {}
        # The same, as far as known, for each object that is being made: the last one is
        # inside the one before it, and so on. The first entry is for the document.
        self.requests_so_far = [0]
        self.n_requests = 0  # of all objects that were tried
        self._find_objects(document)

    def whole(self, document):
        """Return the fitted object that a document describes."""
        made = self.object(document, str(document.get("class", "document")))
        name = type(made).__name__
        # fitted recalibrators have `classes_`, and monitors `n_rows_`
        is_fitted = hasattr(made, "classes_") or hasattr(made, "n_rows_")
        is_threshold = isinstance(made, CertifiedThreshold)  # needs no fit
        if name not in _WHOLE or not (is_fitted or is_threshold):
            raise Defect(name, "must be a fitted recalibrator")
        return made

    def object(self, data, where):
        """Return the object that a piece of JSON describes: a dict with a class, a
        reference ``{"same": id}`` or ``{"frozen": object}`` for a `FrozenEstimator`.

        `where` is its place in the document, for messages.
        """
        if isinstance(data, dict) and data.keys() == {"frozen"}:
            return FrozenEstimator(self.object(data["frozen"], where))
        if isinstance(data, dict) and data.keys() == {"same"}:
            estimator = self._same(data["same"], where)
        else:
            check_keys(data, {"class", "parameters"}, {"fitted", "id"}, where)
            if "id" in data:
                estimator = self._same(data["id"], where)
            else:
                estimator = self._new_object(data, where)
        # The object around this one will ask it for predictions.
        self.requests_so_far[-1] += self.requests[id(estimator)]
        return estimator

    def _new_object(self, data, where):
        """Return a new object from a dict with its class, parameters and fitted
        attributes, and record how many requests for predictions it causes.
        """
        self.requests_so_far.append(1)  # one to the object itself
        cls = self._class(data["class"], where)
        estimator = self._unfitted(cls, data["parameters"], where)
        if "fitted" in data:
            self._restore(estimator, data["fitted"], where)
        self.requests[id(estimator)] = self.requests_so_far.pop()
        return estimator

    def _same(self, number, where):
        """Return the object with this id, made at the first reference; raise a `Defect`
        if it contains a reference to itself.
        """
        if not isinstance(number, int) or number not in self.written:
            raise Defect(
                where,
                f"refers to object {number!r:.60}, which is not in the document",
            )
        if number not in self.made:
            self.made[number] = None  # until it is made
            self.made[number] = self._new_object(self.written[number], where)
        if self.made[number] is None:
            raise Defect(where, f"is inside the object {number}, and refers to it")
        return self.made[number]

    def _find_objects(self, data):
        """Set `n_objects`, the number of objects in a piece of a document, and collect
        those with an id in `written`.
        """
        if isinstance(data, dict):
            if "class" in data:
                self.n_objects += 1
            if "id" in data:
                number = data["id"]
                is_integer = isinstance(number, int) and not isinstance(number, bool)
                if not is_integer or number in self.written:
                    raise Defect(
                        "id",
                        "must be a number that no other object has, found"
                        f" {number!r:.60}",
                    )
                self.written[number] = data
            data = list(data.values())
        if isinstance(data, list):
            for item in data:
                self._find_objects(item)

    def _class(self, name, where):
        """Return the class of this package with a name, or with the name that it had
        before.
        """
        current = name
        if isinstance(name, str):
            current = RENAMED_CLASSES.get(name, name)
        if not isinstance(name, str) or current not in _CLASSES:
            raise Defect(
                f"{where}.class", f"must be a class of this package, found {name!r:.80}"
            )
        return _CLASSES[current]

    def _unfitted(self, cls, parameters, where):
        """Return an unfitted object of a class with the document's parameters."""
        # A `RecalibratedClassifierCV` is written without parameters.
        wanted = set()
        if cls is not RecalibratedClassifierCV:
            wanted = set(inspect.signature(cls).parameters)
        parameters = with_later_parameters(cls.__name__, parameters)
        check_keys(parameters, wanted, set(), f"{where}.parameters")
        values = {}
        for name, written in parameters.items():
            values[name] = from_json(written, f"{where}.{name}", self.object)
        made = tried(lambda: cls(**values), where)
        if cls.__name__ in _RECALIBRATORS:
            tried(made._validate_params, where)
        return made

    def _restore(self, estimator, written, where):
        """Set the fitted attributes of an object from a dict with the JSON of each."""
        if type(estimator) in CHECKS:
            self._restore_other(estimator, written, where)
        elif type(estimator).__name__ in _RECALIBRATORS:
            self._restore_recalibrator(estimator, written, where)
        else:
            raise Defect(
                where, f"a {type(estimator).__name__} has no fitted attributes"
            )

    def _restore_other(self, estimator, written, where):
        """Set the attributes of an object that is no recalibrator, such as a monitor,
        from a dict with the JSON of each: each is checked alone, then all together.
        """
        checks = CHECKS[type(estimator)]
        check_keys(written, checks.keys(), set(), where)
        values = {}
        for name, data in written.items():
            values[name] = self._checked(data, checks[name], f"{where}.{name}")
        tried(lambda: restore(estimator, values), where)

    def _restore_recalibrator(self, estimator, written, where):
        """Set the attributes of a recalibrator from `written`, the JSON at the place
        `where`: each is checked alone, then all together, and finally the recalibrator
        is asked for predictions.
        """
        checks = _checks(estimator)
        has_problems = isinstance(written, dict) and _PROBLEMS in written
        wanted = checks.keys() - _OPTIONAL.keys()
        if has_problems:  # their attributes are then not those of the recalibrator
            wanted = (wanted - estimator._part_attributes.keys()) | {_PROBLEMS}
        optional = _OPTIONAL.keys() | (wanted & INFORMATION)
        check_keys(written, wanted - INFORMATION, optional, where)
        attributes = dict(written)
        problems = attributes.pop(_PROBLEMS, None)
        self._set(estimator, attributes, checks, where)
        if hasattr(estimator, "classes"):
            tried(lambda: _check_same_labels(estimator), where)
        if has_problems:
            self._restore_problems(estimator, problems, where)
        else:
            tried(estimator._check_attributes, where)
        # Attributes that follow from those of the document.
        for name, derive in estimator._derived.items():
            setattr(estimator, name, derive(estimator))
        estimator._remember_parameters()
        self.n_requests += self.requests_so_far[-1]
        if self.n_requests > _MOST_REQUESTS * self.n_objects:
            raise Defect(where, "refers to other objects too often")
        _check_predictions(estimator, where)

    def _restore_problems(self, estimator, written, where):
        """Set `estimators_`, the fitted binary problems of a recalibrator of K > 2
        classes, from a list of dicts: one per class, or a single one for top-label
        calibration.
        """
        n_classes = len(estimator.classes_)
        n_problems = n_classes
        if estimator.multiclass == "top_label":
            n_problems = 1
        is_list = isinstance(written, list)
        if n_classes < 3 or not is_list or len(written) != n_problems:
            raise Defect(
                f"{where}.{_PROBLEMS}",
                f"must be a list of {n_problems} parts for {n_classes} classes",
            )
        checks = estimator._part_attributes
        problems = []
        for i, attributes in enumerate(written):
            place = f"{where}.{_PROBLEMS}[{i}]"
            problem = estimator._binary_copy()  # an unfitted one
            check_keys(attributes, checks.keys(), set(), place)
            self._set(problem, attributes, checks, place)
            tried(problem._check_attributes, place)
            problems.append(problem)
        estimator._set_problems(problems)

    def _set(self, estimator, written, checks, where):
        """Set attributes of an object from a dict with the JSON of each, after its
        check.
        """
        for name, data in written.items():
            value = self._checked(data, checks[name], f"{where}.{name}")
            setattr(estimator, name, value)

    def _checked(self, data, check, where):
        """Return the value of a piece of JSON after `check`, which returns the value or
        raises.
        """
        value = from_json(data, where, self.object)
        return tried(lambda: check(value), where)


def _defaults_and_attributes(name):
    """Return the defaults of a class's parameters, as far as they are plain values, and
    the names of the attributes of its fits; both empty for an unknown name.
    """
    kind = _CLASSES.get(name)
    if kind is None or kind in CHECKS:
        return {}, set()
    defaults = {}
    for parameter in inspect.signature(kind).parameters.values():
        default = parameter.default
        if default is None or isinstance(default, bool | int | float | str):
            defaults[parameter.name] = default
    attributes = set()
    if issubclass(kind, ProbabilityTransformer):
        # those of the recalibrator, and of the binary problems it may consist of
        attributes = {*kind._attributes, *kind._part_attributes}
    return defaults, attributes


def _checks(estimator):
    """Return a dict of the checks of all attributes that a fitted recalibrator may
    have, without those that are derived.
    """
    return {**_COMMON, **estimator._attributes, **estimator._part_attributes}


def _check_same_labels(estimator):
    """Raise a ValueError if the parameter `classes` names other labels than
    `classes_`.
    """
    if estimator.classes is None:
        return
    if not np.array_equal(np.asarray(estimator.classes), estimator.classes_):
        raise ValueError(
            f"classes and classes_ differ: {estimator.classes!r} and"
            f" {estimator.classes_.tolist()}"
        )


def _check_predictions(fitted, where):
    """Raise a `Defect` unless a recalibrator that was read has a calibration map and
    predicts probabilities, for moderate scores and for the largest ones. `where` is its
    place in the document.
    """
    n_classes = len(fitted.classes_)
    takes_columns = (
        recalibrators.GroupwiseRecalibrator,
        recalibrators.MulticalibratedRecalibrator,
    )
    if isinstance(fitted, takes_columns):
        return  # the recalibrators inside were checked, and get the same scores
    widths = (n_classes,)
    if n_classes == 2:
        widths = (1, 2)
    n_scores = fitted._score_width
    if n_classes < 2 or n_scores not in widths:
        raise Defect(where, f"has {n_classes} classes and {n_scores} columns of scores")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if not isinstance(fitted, recalibrators.OnlineRecalibrator):
            # The nodes of the map raise if their numbers are not finite. A
            # recalibrator that goes on learning has no map.
            tried(lambda: map_of(fitted, Scores(n_scores)), where)
        scores = _scores_to_try(fitted)
        features = None
        if getattr(fitted, "features", None) is None:
            probabilities = tried(lambda: fitted.predict_proba(scores), where)
        else:
            # the features have the names or positions of columns that are not at hand
            features = np.tile(fitted.feature_mean_, (len(scores), 1))
            scores = scores.reshape(-1, n_scores)
            probabilities = tried(
                lambda: fitted._predict_checked(scores, features=features), where
            )
        if not fitted._why_no_limits():
            scores = scores.reshape(-1, n_scores)
            tried(lambda: fitted._limits_checked(scores, 0.9, features), where)
    if probabilities.shape[1] != n_classes or not np.isfinite(probabilities).all():
        raise Defect(where, "does not predict one number for each class")
    if probabilities.min() < -_TOLERANCE or probabilities.max() > 1 + _TOLERANCE:
        raise Defect(where, "predicts probabilities outside [0, 1]")
    is_normalized = n_classes == 2 or getattr(fitted, "normalize", True)
    error_of_sums = np.abs(probabilities.sum(axis=1) - 1).max()
    if is_normalized and error_of_sums > _TOLERANCE * n_classes:
        raise Defect(where, "predicts probabilities that do not sum to 1")


def _scores_to_try(fitted):
    """Return the scores, (n,) or (n, C), that a recalibrator that was read is tried on:
    from the least to the largest, for each class in turn.
    """
    # At 40 a probability rounds to 1, and at 800 exp overflows.
    logits = np.concatenate(([-800, -40, 40, 800], np.linspace(-9, 9, 91)))
    if fitted._score_width == 1:
        if fitted.input == "probability":
            return expit(logits)
        return logits
    # one column of each row has the logit, the others 0
    rows = np.arange(len(logits))
    columns = np.zeros((len(logits), fitted._score_width))
    columns[rows, rows % fitted._score_width] = logits
    if fitted.input == "logit":
        return columns
    odds = np.exp(columns - columns.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)
