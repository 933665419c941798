"""Fitted recalibrators as JSON and back: plain values only, so that reading executes
nothing.
"""

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
from skcalib._rows.links import expit
from skcalib.decisions import CertifiedThreshold
from skcalib.export._json_older import INFORMATION, upgraded, with_late_parameters
from skcalib.export._json_values import (
    Defect,
    NotWritable,
    as_json,
    check_keys,
    described,
    from_json,
    tried,
)
from skcalib.export._json_whole import ADDED_LATER, CHECKS, restore, state
from skcalib.export._segments import segment_items
from skcalib.maps import Scores, map_of
from skcalib.maps.checks import count, flag, labels, names, positive, text
from skcalib.recalibrated_classifier import RecalibratedClassifierCV
from skcalib.recalibrators._transformer import ProbabilityTransformer
from skcalib.recalibrators._uncalibrated import Uncalibrated

SCHEMA = 2

_PARTS = "estimators_"  # the fitted binary problems of K > 2 classes
_TOLERANCE = 1e-9  # of probabilities and their sums

# The checks of attributes that not every fit has. The temperature without a floor only
# informs. The last two say why there is no certificate, and what a search may have
# chosen.
_OPTIONAL = {
    "feature_names_in_": names,
    "provenance_": check_provenance,
    "plain_temperature_": positive,
    "_has_wide_logits_": flag,
    "_group_column": text,
    "_no_certificate": text,
    "_tuned": text,
}
_COMMON = {"n_features_in_": count, "classes_": labels, **_OPTIONAL}
# Objects that probes may ask for predictions, for each object in the document.
_MOST_WORK = 20


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
        are converted to strings. A dict that maps segments to recalibrators, as
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
            document = upgraded(document, _shape_of)
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
    """Return a dict of recalibrators by segment, from the list that `to_dict` wrote;
    raise a ValueError if it is not valid.
    """
    if not isinstance(written, list) or not written:
        raise ValueError("The document is not valid. segments must be a list.")
    maps = {}
    for number, item in enumerate(written):
        is_pair = isinstance(item, Mapping) and item.keys() == {"segment", "map"}
        if not is_pair or not isinstance(item["map"], Mapping):
            raise ValueError(
                f"The document is not valid. segments[{number}] must contain a segment"
                " and its map."
            )
        segment = item["segment"]
        is_plain = segment is None or isinstance(segment, str | bool | int | float)
        # A map that holds segments itself is refused here too: segments have no parts.
        holds_segments = "segments" in item["map"]
        if not is_plain or segment in maps or holds_segments:
            raise ValueError(
                f"The document is not valid. segments[{number}] must name a segment"
                f" that no other entry has, found {segment!r:.60}."
            )
        maps[segment] = from_dict({**item["map"], "schema": schema})
    return maps


class _Encoder:
    """Writes recalibrators; one that occurs twice is written once and then referred to
    by a number, its id.

    `written` holds the dict of each object that was written, by Python's `id`.
    """

    def __init__(self):
        self.written = {}

    def object(self, estimator, where):
        """Return an object of this package as JSON; `where` is how errors name it."""
        if id(estimator) in self.written:
            # An object that occurs twice is written once, with a number to refer to.
            first = self.written[id(estimator)]
            if "id" not in first:
                n_numbered = sum("id" in written for written in self.written.values())
                first["id"] = n_numbered + 1
            return {"same": first["id"]}
        written = {"class": type(estimator).__name__}
        self.written[id(estimator)] = written
        if type(estimator) in CHECKS:
            # Of classes with a list of checks, such as monitors, `state` says what is
            # written.
            parameters, attributes = state(estimator)
            written["parameters"] = self._values(parameters, where)
            if attributes:
                written["fitted"] = self._values(attributes, where)
            return written
        parameters = estimator.get_params(deep=False)
        attributes = dict(vars(estimator))
        for name in parameters:
            attributes.pop(name, None)
        written["parameters"] = self._values(parameters, where)
        if attributes:
            written["fitted"] = self._fitted(estimator, attributes, where)
        return written

    def _fitted(self, estimator, attributes, where):
        """Return the fitted attributes of a recalibrator by name, as JSON, without
        those that are derived from others.

        `attributes` are all of them; `where` is how errors name the recalibrator.
        """
        check_fitted(estimator)
        if getattr(estimator, "n_rounds_", 0) > 0:
            raise ValueError(
                f"{where} cannot be written as JSON: it has {estimator.n_rounds_}"
                " rounds of corrections."
            )
        part_names = estimator._part_attributes.keys()
        parts = attributes.pop(_PARTS, None)
        derived = estimator._derived.keys() | {"_fitted_with_"}
        if parts is not None:
            derived |= part_names  # lists of what the parts hold
        stored = {}
        for name, value in attributes.items():
            if name not in derived:
                stored[name] = value
        unknown = stored.keys() - _checks(estimator).keys()
        if unknown:
            raise ValueError(
                f"{where} cannot be written: its class declares no check for"
                f" {min(unknown)}."
            )
        written = self._values(stored, where)
        if parts is not None:
            written[_PARTS] = []
            for part in parts:
                stored = {name: vars(part)[name] for name in part_names}
                written[_PARTS].append(self._values(stored, where))
        return written

    def _values(self, values, where):
        """Return a dict of parameters or attributes as JSON."""
        return {name: self._value(value, where, name) for name, value in values.items()}

    def _value(self, value, where, name):
        """Return one parameter or attribute of this name as JSON."""

        def nested(inner):
            """Return an object inside the value as JSON, if it is of this package."""
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
    """Reads recalibrators of schema 2. An object with an id is made where it, or a
    reference to it, is met first.

    Each object is probed once. A probe asks the objects inside for predictions, each as
    often as it is referred to: references to objects with references would cost
    exponentially much, so that the work is counted and limited.

    Attributes
    ----------
    written : dict
        From the id of an object to what the document holds of it.
    made : dict
        From the id of an object to the object itself; None while it is being made.
    n_objects : int
        Number of objects in the document.
    cost : dict
        From Python's `id` of an object to the number of objects that a probe asks.
    inner_costs : list of int
        For each object that is being made, the outermost first, the cost so far.
    work : int
        Sum of the costs of all probes so far.
    """

    def __init__(self, document):
        self.written = {}
        self.made = {}
        self.n_objects = 0
        self.cost = {}
        self.inner_costs = [0]
        self.work = 0
        self._find_objects(document)

    def whole(self, document):
        """Return the fitted object that a document stands for."""
        made = self.object(document, str(document.get("class", "document")))
        name = type(made).__name__
        # fitted recalibrators have `classes_`, and monitors `n_rows_`
        is_fitted = hasattr(made, "classes_") or hasattr(made, "n_rows_")
        is_threshold = isinstance(made, CertifiedThreshold)  # needs no fit
        if name not in _WHOLE or not (is_fitted or is_threshold):
            raise Defect(name, "must be a fitted recalibrator")
        return made

    def object(self, data, where):
        """Return the estimator that a dict stands for; `where` is its place in the
        document, for messages.
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
                estimator = self._object(data, where)
        self.inner_costs[-1] += self.cost[id(estimator)]
        return estimator

    def _object(self, data, where):
        """Return the estimator of a dict with a class, and set its cost: the number of
        objects, itself included, that predict where it is probed.
        """
        self.inner_costs.append(1)
        kind = self._class(data["class"], where)
        estimator = self._unfitted(kind, data["parameters"], where)
        if "fitted" in data:
            self._restore(estimator, data["fitted"], where)
        self.cost[id(estimator)] = self.inner_costs.pop()
        return estimator

    def _same(self, number, where):
        """Return the object that the document has under a number: made once, at the
        first reference.
        """
        if not isinstance(number, int) or number not in self.written:
            raise Defect(
                where,
                f"refers to the object {number!r:.60}, which is not in the document",
            )
        if number not in self.made:
            self.made[number] = None  # while it is made
            self.made[number] = self._object(self.written[number], where)
        if self.made[number] is None:
            raise Defect(where, f"is inside the object {number}, and refers to it")
        return self.made[number]

    def _find_objects(self, data):
        """Count the objects of a document, and collect those with a number."""
        if isinstance(data, dict):
            self.n_objects += "class" in data
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
        """Return the class of this package with a name."""
        if not isinstance(name, str) or name not in _CLASSES:
            raise Defect(
                f"{where}.class", f"must be a class of this package, found {name!r:.80}"
            )
        return _CLASSES[name]

    def _unfitted(self, cls, parameters, where):
        """Return an unfitted object of a class with the parameters that are written."""
        # A `RecalibratedClassifierCV` is written without parameters.
        wanted = set()
        if cls is not RecalibratedClassifierCV:
            wanted = set(inspect.signature(cls).parameters)
        parameters = with_late_parameters(cls.__name__, parameters)
        check_keys(parameters, wanted, set(), f"{where}.parameters")
        values = {}
        for name, written in parameters.items():
            values[name] = from_json(written, f"{where}.{name}", self.object)
        made = tried(lambda: cls(**values), where)
        if cls.__name__ in _RECALIBRATORS:
            tried(made._validate_params, where)
        return made

    def _restore(self, estimator, written, where):
        """Set the fitted attributes of an estimator from what is written of them.

        Each is checked by itself, then all together, then by what they predict.
        """
        if type(estimator) in CHECKS:
            checks = CHECKS[type(estimator)]
            optional = checks.keys() & ADDED_LATER
            check_keys(written, checks.keys() - optional, optional, where)
            values = {}
            for name, data in written.items():
                values[name] = self._checked(data, checks[name], f"{where}.{name}")
            tried(lambda: restore(estimator, values), where)
            return
        if type(estimator).__name__ not in _RECALIBRATORS:
            raise Defect(
                where, f"a {type(estimator).__name__} has no fitted attributes"
            )
        checks = _checks(estimator)
        in_parts = isinstance(written, dict) and _PARTS in written
        wanted = checks.keys() - _OPTIONAL.keys()
        if in_parts:
            wanted = (wanted - estimator._part_attributes.keys()) | {_PARTS}
        optional = _OPTIONAL.keys() | (wanted & INFORMATION)
        check_keys(written, wanted - INFORMATION, optional, where)
        attributes = dict(written)
        parts = attributes.pop(_PARTS, None)
        self._set(estimator, attributes, checks, where)
        if "classes" in vars(estimator):
            tried(lambda: _check_same_labels(estimator), where)
        if in_parts:
            self._restore_parts(estimator, parts, len(estimator.classes_), where)
        else:
            tried(estimator._check_attributes, where)
        for name, derive in estimator._derived.items():
            setattr(estimator, name, derive(estimator))
        estimator._remember_parameters()
        # A probe asks all objects inside the estimator for predictions. References let
        # a short document ask for very many: their sum is limited.
        self.work += self.inner_costs[-1]
        if self.work > _MOST_WORK * self.n_objects:
            raise Defect(where, "refers to other objects too often")
        _probe(estimator, where)

    def _restore_parts(self, estimator, written, n_classes, where):
        """Set the fitted binary problems: one for each class, or one for top-label."""
        n_parts = n_classes
        if estimator.multiclass == "top_label":
            n_parts = 1
        if n_classes < 3 or not isinstance(written, list) or len(written) != n_parts:
            raise Defect(
                f"{where}.{_PARTS}",
                f"must be a list of {n_parts} parts for {n_classes} classes",
            )
        parts = [estimator._binary_copy() for _ in written]
        for i, (part, attributes) in enumerate(zip(parts, written, strict=True)):
            place = f"{where}.{_PARTS}[{i}]"
            check_keys(attributes, estimator._part_attributes.keys(), set(), place)
            self._set(part, attributes, estimator._part_attributes, place)
            tried(part._check_attributes, place)
        estimator.estimators_ = parts
        estimator._collect_attributes()

    def _set(self, estimator, written, checks, where):
        """Set attributes from a dict of what is written of them, after their checks."""
        for name, data in written.items():
            value = self._checked(data, checks[name], f"{where}.{name}")
            setattr(estimator, name, value)

    def _checked(self, data, check, where):
        """Return the value of a piece of JSON as its check returns it."""
        value = from_json(data, where, self.object)
        return tried(lambda: check(value), where)


def _shape_of(name):
    """Return a dict of the plain defaults of the parameters of the class with a name,
    and the set of the names of the attributes that a fit of it has.
    """
    kind = _CLASSES.get(name)
    if kind is None or kind in CHECKS:
        return {}, set()
    # Only plain values are defaults: an object would have to be written as one.
    defaults = {}
    for parameter in inspect.signature(kind).parameters.values():
        default = parameter.default
        if default is None or isinstance(default, bool | int | float | str):
            defaults[parameter.name] = default
    attributes = set()
    if issubclass(kind, ProbabilityTransformer):
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


def _probe(fitted, where):
    """Raise a `Defect` unless a recalibrator has a calibration map and predicts
    probabilities, for small scores and for the largest ones.
    """
    n_classes = len(fitted.classes_)
    takes_columns = (
        recalibrators.GroupwiseRecalibrator,
        recalibrators.MulticalibratedRecalibrator,
    )
    if isinstance(fitted, takes_columns):
        return  # their members were probed, and take the scores as they are
    widths = (n_classes,)
    if n_classes == 2:
        widths = (1, 2)
    if n_classes < 2 or fitted.n_features_in_ not in widths:
        raise Defect(
            where,
            f"has {n_classes} classes and {fitted.n_features_in_} columns of scores",
        )
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if not isinstance(fitted, recalibrators.OnlineRecalibrator):
            # The nodes of the map raise if their numbers are not finite. A
            # recalibrator that goes on learning has no map.
            tried(lambda: map_of(fitted, Scores(fitted.n_features_in_)), where)
        scores = _probe_scores(fitted)
        probabilities = tried(lambda: fitted.predict_proba(scores), where)
    if probabilities.shape[1] != n_classes or not np.isfinite(probabilities).all():
        raise Defect(where, "does not predict one number for each class")
    if probabilities.min() < -_TOLERANCE or probabilities.max() > 1 + _TOLERANCE:
        raise Defect(where, "predicts probabilities outside [0, 1]")
    is_normalized = n_classes == 2 or getattr(fitted, "normalize", True)
    error_of_sums = np.abs(probabilities.sum(axis=1) - 1).max()
    if is_normalized and error_of_sums > _TOLERANCE * n_classes:
        raise Defect(where, "predicts probabilities that do not sum to 1")


def _probe_scores(fitted):
    """Return scores (n,) or (n, C) that a recalibrator is tried with: the middle, both
    ends, and each class in turn.
    """
    # At 40 a probability rounds to 1, and at 800 exp overflows.
    logits = np.concatenate(([-800, -40, 40, 800], np.linspace(-9, 9, 91)))
    if fitted.n_features_in_ == 1:
        if fitted.input == "probability":
            return expit(logits)
        return logits
    # one column of each row has the logit, the others 0
    rows = np.arange(len(logits))
    columns = np.zeros((len(logits), fitted.n_features_in_))
    columns[rows, rows % fitted.n_features_in_] = logits
    if fitted.input == "logit":
        return columns
    odds = np.exp(columns - columns.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)
