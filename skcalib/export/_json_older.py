"""Documents of older schemas, brought to the shape of today's."""

from skcalib._rows.links import PROBABILITY_CLIP

# What parameters were called in documents of schema 1.
_RENAMED = {
    "ScalingBinning": {"scaler": "recalibrator"},
    "VennAbers": {"max_groups": "max_n_knots"},
    "GroupwiseRecalibrator": {"bundle": "merge_small_groups"},
    "StackedRecalibrator": {
        "temper": "likelihood_power",
        "identity_weight": "uncalibrated_weight",
    },
    "QuadraticScaling": {"strength": "alpha"},
    "VectorScaling": {"strength": "alpha"},
    "MatrixScaling": {"strength": "alpha"},
    "DirichletCalibration": {"strength": "alpha"},
}
_RENAMED_ATTRIBUTES = {
    "ScalingBinning": {"scaler_": "recalibrator_"},
    "StackedRecalibrator": {"identity_weight_": "uncalibrated_weight_"},
}
_RENAMED_CLASSES = {"Identity": "Uncalibrated", "_Identity": "Uncalibrated"}
# The values of parameters that came later, where what they mean today by default is
# not what was done before.
_BEFORE = {
    "clip": None,
    "class_pooling": 0.0,
    "alpha": 1.0,
    "merge_small_groups": False,
    "likelihood_power": 1.0,
    "uncalibrated_weight": 0.0,
}
# The same for fitted attributes.
_FITTED_BEFORE = {
    "clip_": PROBABILITY_CLIP,
    "floor_": 0.0,
    "class_pooling_": 0.0,
    "temperature_": 1.0,
    "salt_": "",
}
# Parameters that schema 2 got before its release: documents of it may lack them.
_ADDED_TO_SCHEMA_2 = {"BetaCalibration": {"alpha": 0.0}}
# What a fit needs no longer.
_DROPPED = {"_prediction_seed_", "spline_"}
# Attributes that only inform: what was read from schema 1 may lack them.
INFORMATION = frozenset({"gain_", "cv_log_loss_", "seconds_"})


def upgraded(data, parameters_of):
    """Return a document of schema 1 with current names, and with values for parameters
    and attributes that were added later.

    Parameters
    ----------
    data : dict, list or plain value
        A document, or a part of one.
    parameters_of : callable
        From the name of a class to the defaults of its parameters, and the names of the
        attributes that a fit must have: both empty for an unknown name.

    Returns
    -------
    data : dict, list or plain value
        The upgraded data; unchanged if nothing is missing.
    """
    if isinstance(data, list):
        return [upgraded(item, parameters_of) for item in data]
    if not isinstance(data, dict):
        return data
    data = {key: upgraded(value, parameters_of) for key, value in data.items()}
    if not isinstance(data.get("class"), str):
        return data
    name = _RENAMED_CLASSES.get(data["class"], data["class"])
    data["class"] = name
    defaults, attributes = parameters_of(name)
    if isinstance(data.get("parameters"), dict):
        data["parameters"] = _completed(
            data["parameters"],
            _RENAMED.get(name, {}),
            defaults | _common(defaults) | _ADDED_TO_SCHEMA_2.get(name, {}),
        )
    if isinstance(data.get("fitted"), dict):
        data["fitted"] = _completed_fit(name, data, attributes)
    return data


def with_late_parameters(name, parameters):
    """Return the parameters of an object, including those added in later schemas."""
    late = _ADDED_TO_SCHEMA_2.get(name)
    if late is None or not isinstance(parameters, dict):
        return parameters
    return late | parameters


def _common(defaults):
    """Return the values, before they existed, of those parameters in `defaults` that
    came later.
    """
    return {name: value for name, value in _BEFORE.items() if name in defaults}


def _completed(values, renamed, defaults):
    """Return a dict with the values under their names of today, and the defaults of
    those that it lacks. `renamed` is a dict from old names to new ones.
    """
    values = {renamed.get(name, name): value for name, value in values.items()}
    return defaults | values


def _like(array):
    """Return the JSON of an array of zeros as long as one in a document, None if there
    is no array.
    """
    if not isinstance(array, dict) or not isinstance(array.get("array"), list):
        return None
    return {**array, "array": [0.0] * len(array["array"])}


def _without_dropped(attributes):
    """Return attributes without those that a fit needs no longer."""
    if not isinstance(attributes, dict):
        return attributes
    today = {name: data for name, data in attributes.items() if name not in _DROPPED}
    spline = attributes.get("spline_")
    if isinstance(spline, dict):
        today.setdefault("spline_coefficients_", spline.get("coefficients"))
    return today


def _number_or(value, default):
    """Return a value that is a number; else the default."""
    if isinstance(value, int | float):
        return value
    return default


def _completed_fit(name, data, attributes):
    """Return the fitted attributes of a document of the class `name`, with those that
    came later; `attributes` are the names of those that a fit must have.
    """
    fitted = _without_dropped(data["fitted"])
    parameters = data.get("parameters", {})
    # the values, before they existed, of attributes that came later
    before = {key: value for key, value in _FITTED_BEFORE.items() if key in attributes}
    if name == "VectorScaling" or "alpha_" in attributes:
        before["alpha_"] = _number_or(parameters.get("alpha"), 1.0)
    if "class_pooling_" in attributes:
        before["class_pooling_"] = _number_or(parameters.get("class_pooling"), 0.0)
    if "gain_errors_" in attributes:
        before["gain_errors_"] = _like(fitted.get("gains_"))
    # An attribute that the binary problems hold is not one of the recalibrator.
    if isinstance(fitted.get("estimators_"), list):
        problems = [_without_dropped(problem) for problem in fitted["estimators_"]]
        fitted["estimators_"] = problems
        if problems and isinstance(problems[0], dict):
            for key in problems[0]:
                before.pop(key, None)
    return _completed(fitted, _RENAMED_ATTRIBUTES.get(name, {}), before)
