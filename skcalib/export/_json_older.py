"""Documents of older schemas, brought to the shape of today's."""

# Classes of documents of any schema that have another name today.
RENAMED_CLASSES = {"CautiousRecalibrator": "Recalibrator"}
# What parameters and fitted attributes were called in documents of schema 1.
_RENAMED = {
    "ScalingBinning": {"scaler": "recalibrator"},
    "VennAbers": {"max_groups": "max_n_knots"},
    "GroupwiseRecalibrator": {"bundle": "merge_small_groups"},
    "StackedRecalibrator": {
        "temper": "likelihood_power",
        "identity_weight": "uncalibrated_weight",
    },
}
_RENAMED_ATTRIBUTES = {"ScalingBinning": {"scaler_": "recalibrator_"}}
# The values of fitted attributes that came later: what was done before.
_FITTED_BEFORE = {"floor_": 0.0, "temperature_": 1.0, "salt_": ""}
# Parameters that schema 2 got before its release: documents of it may lack them.
_ADDED_TO_SCHEMA_2 = {
    "BetaCalibration": {"alpha": 0.0, "features": None},
    "PlattScaling": {"features": None},
    "PriorShift": {"target_mean": None},
    "TemperatureScaling": {"features": None},
}
# What a fit needs no longer.
_DROPPED = {"_prediction_seed_", "spline_"}
# Attributes that only inform: what was read from schema 1 may lack them.
INFORMATION = frozenset({"gain_", "seconds_"})


def upgraded(data, defaults_and_attributes):
    """Return a document of schema 1 with current names, and with values for parameters
    and attributes that were added later.

    Parameters
    ----------
    data : dict, list or plain value
        A document, or a piece of one.
    defaults_and_attributes : callable
        From the name of a class to a dict of the defaults of its parameters, and the
        set of names of the attributes that a fit has: both empty for an unknown name.

    Returns
    -------
    data : dict, list or plain value
        The upgraded data; unchanged if nothing is missing.
    """
    if isinstance(data, list):
        return [upgraded(item, defaults_and_attributes) for item in data]
    if not isinstance(data, dict):
        return data
    data = {
        key: upgraded(value, defaults_and_attributes) for key, value in data.items()
    }
    if not isinstance(data.get("class"), str):
        return data
    name = RENAMED_CLASSES.get(data["class"], data["class"])
    defaults, attributes = defaults_and_attributes(name)
    if isinstance(data.get("parameters"), dict):
        missing = defaults | _ADDED_TO_SCHEMA_2.get(name, {})
        renamed = _RENAMED.get(name, {})
        data["parameters"] = _completed(data["parameters"], renamed, missing)
    if isinstance(data.get("fitted"), dict):
        data["fitted"] = _completed_fit(name, data, attributes)
    return data


def with_later_parameters(name, parameters):
    """Return the parameters of an object of the class `name`, a dict, together with
    those that early documents of schema 2 lack; anything but a dict is unchanged.
    """
    later = _ADDED_TO_SCHEMA_2.get(name)
    if later is None or not isinstance(parameters, dict):
        return parameters
    return later | parameters


def _completed(values, renamed, defaults):
    """Return the values under their current names (`renamed` maps old ones), and the
    defaults of those that are missing.
    """
    completed = dict(defaults)
    for name, value in values.items():
        completed[renamed.get(name, name)] = value
    return completed


def _zeros_like(array):
    """Return the JSON of zeros like the array `array` of a document; None if that is no
    array.
    """
    if not isinstance(array, dict) or not isinstance(array.get("array"), list):
        return None
    return {**array, "array": [0.0] * len(array["array"])}


def _without_dropped(attributes):
    """Return fitted attributes without those that a fit no longer has; the coefficients
    in `spline_` become an attribute.
    """
    if not isinstance(attributes, dict):
        return attributes
    kept = {name: data for name, data in attributes.items() if name not in _DROPPED}
    spline = attributes.get("spline_")
    if isinstance(spline, dict):
        kept.setdefault("spline_coefficients_", spline.get("coefficients"))
    return kept


def _number_or(value, default):
    """Return a value that is a number; else the default."""
    if isinstance(value, int | float):
        return value
    return default


def _completed_fit(name, data, attributes):
    """Return the fitted attributes in `data`, the dict of an object of the class
    `name`, with values for those added later. `attributes` names those of today.
    """
    fitted = _without_dropped(data["fitted"])
    parameters = data.get("parameters", {})
    before = {key: value for key, value in _FITTED_BEFORE.items() if key in attributes}
    if "alpha_" in attributes:
        before["alpha_"] = _number_or(parameters.get("alpha"), 1.0)
    if "class_pooling_" in attributes:
        before["class_pooling_"] = _number_or(parameters.get("class_pooling"), 0.0)
    if "gain_errors_" in attributes:
        # Standard errors of the gains, which were not computed.
        before["gain_errors_"] = _zeros_like(fitted.get("gains_"))
    # With K > 2 classes, an attribute that the binary problems have is not one of the
    # recalibrator.
    if isinstance(fitted.get("estimators_"), list):
        problems = [_without_dropped(problem) for problem in fitted["estimators_"]]
        fitted["estimators_"] = problems
        if problems and isinstance(problems[0], dict):
            for key in problems[0]:
                before.pop(key, None)
    return _completed(fitted, _RENAMED_ATTRIBUTES.get(name, {}), before)
