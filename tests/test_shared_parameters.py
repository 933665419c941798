"""A parameter that several public names share has one default and one position, or the
docstring says why it differs.
"""

import inspect
from collections import defaultdict
from importlib import import_module

import pytest
from _signatures import public_modules

# By parameter, each default besides the most frequent one, and words of its description
# that say what that default is for, wherever a name has it. They are few and short, so
# that a sentence can be worded anew. A parameter that is required has no default.
OTHER_DEFAULTS = {
    "alpha": {"None": ["smoothed targets"], "1.0": ["`class_pooling`"]},
    "bandwidth": {"'median'": ["median"]},
    "confidence_level": {
        "0.95": ["prediction"],
        "0.99": ["long"],
        "None": ["recalibrator", "constructor", "`monitor`"],
    },
    "cv": {"None": ["5 stratified"]},
    "groups": {"'predicted_class'": ["group"]},
    "interval": {
        "'theorem'": ["label"],
        "'clopper_pearson'": ["Clopper", "Hoeffding", "label", "interval"],
    },
    "kind": {
        "'heatmap'": ["estimator"],
        "'binary'": ["event"],
        "'marginal'": ["share of the"],
    },
    "max_bins": {"8": ["column"]},
    "method": {
        "'resampling'": ["resampling"],
        "'plugin'": ["Max-ECE", "as it is published"],
    },
    "metric": {"'auto'": ["title"]},
    "metrics": {
        "('log_loss', 'brier_score', 'squared_calibration_error')": ["names"],
        "('accuracy', 'event_frequency', 'log_loss', 'brier_score')": ["precision"],
    },
    "min_group_size": {"50": ["pooled"]},
    "multiclass": {"'ovr'": ["against the rest"]},
    "n_bins": {"15": ["rule"], "(2, 4, 8, 16, 32, 64)": ["`metrics`"]},
    "n_resamples": {
        "199": ["because", "since"],
        "999": ["p-value", "`calibration_test`"],
    },
    "n_samples": {"None": ["guarantee"]},
    "n_simulations": {"200": ["because", "since"]},
    "n_standard_errors": {"1.0": ["standard error"]},
    "name": {"'calibrate'": ["function"]},
    "norm": {"2": ["unbiased", "calibration_error`"]},
    "order": {"None": ["lowest"]},
    "reference": {"None": ["first"]},
    "simultaneous": {"True": ["all intervals"]},
    "statistics": {"None": ["several models"]},
    "target": {"0.05": ["errors"]},
    "threshold": {"0.5": ["event"]},
    "train_prior": {"'balanced'": ["no labels"]},
    "weight_type": {"None": ["`reliability_curve`", "decides by structure"]},
}
# Parameters that some names take by position and others by keyword alone: what comes
# first in one is an option of another. All others are the one or the other everywhere.
MAIN_OR_OPTION = {
    "alpha": "the first parameter of a ridge, an option of BetaCalibration",
    "ax": "what `plot` draws in, an option of what computes first",
    "base": "what a strategy starts from, an older name of the sweep error's binning",
    "binning": "the first parameter of what bins, an option of metrics",
    "classes": "the third argument of `partial_fit`, as in scikit-learn",
    "clusters": "the hospitals of calibration_by_cluster, an option elsewhere",
    "confidence_level": "the first question to a certificate, an option elsewhere",
    "default": "what check_binning gives for None",
    "edges": "the bins themselves, or how those of a certificate were made",
    "epsilon": "what bounds are asked about, an option of methods and pictures",
    "event": "whether an outcome happened in censored_labels, its name in a display",
    "groups": "what is judged or fitted apart, an option of errors and pictures",
    "ids": "of rows at prediction, a column in SQL",
    "kind": "a question to a certificate, an option elsewhere",
    "max_error": "what is asked for, an option of pictures",
    "max_loss": "of information by a strategy, or an option of routing",
    "metric": "what is simulated, an option of intervals and pictures",
    "min_group_size": "a parameter of the method, an option of the table",
    "n_bins": "what bounds and strategies are about, an option of pictures",
    "n_candidates": "a question to a certificate, an option where one is made",
    "n_samples": "what bounds are about, an option of pictures",
    "n_simulations": "of a simulation, an option of its picture",
    "name": "of a scorer; of a model, in pictures",
    "norm": "of a true error, an option of estimates",
    "random_state": "of a sample, an option elsewhere",
    "recalibrator": "what is applied or written, an option of evaluations",
    "recalibrators": "the members of a stack, those of a picture",
    "sample_weight": "the third argument of `fit`, as in scikit-learn",
    "scores": "the rows; the columns of a table",
    "statistics": "sums, or the numbers beside a picture",
    "table": "of groups, or the name of one in SQL",
    "time": "what trends, monitors and event times are about, an option of an advice",
    "thresholds": "those of a picture's numbers, an option of what computes them",
}


def _public_callables():
    """Return functions, constructors and methods by their public paths.

    Results are made by the library alone, and nodes of maps have fields that are named
    as in other languages: neither is called with options.
    """
    found = {}
    classes = set()
    for module_name in public_modules():
        if module_name == "skcalib.maps":
            continue
        module = import_module(module_name)
        for name in module.__all__:
            public = getattr(module, name)
            if not callable(public) or public in classes:
                continue
            path = f"{module_name}.{name}"
            if not inspect.isclass(public):
                found[path] = public
                continue
            classes.add(public)
            if not _is_result(public):
                found[path] = public
            for method, function in _methods(public):
                found[f"{path}.{method}"] = function
    return found


def _is_result(public):
    parameters = inspect.signature(public).parameters.values()
    is_made_by_keyword = any(
        parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters
    )
    return hasattr(public, "__dataclass_fields__") and not is_made_by_keyword


def _methods(public):
    for name in dir(public):
        member = inspect.getattr_static(public, name)
        function = getattr(member, "__func__", member)
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        if inspect.unwrap(function).__module__.startswith("skcalib."):
            yield name, function


def _parameters(function):
    for parameter in inspect.signature(function).parameters.values():
        is_variadic = parameter.kind in (
            parameter.VAR_KEYWORD,
            parameter.VAR_POSITIONAL,
        )
        if parameter.name not in ("self", "cls") and not is_variadic:
            yield parameter


CALLABLES = _public_callables()


def _by_default():
    """Return, for each parameter, the paths that have each default."""
    found = defaultdict(lambda: defaultdict(list))
    for path, function in CALLABLES.items():
        for parameter in _parameters(function):
            if parameter.default is not parameter.empty:
                found[parameter.name][repr(parameter.default)].append(path)
    return found


def test_a_shared_parameter_has_one_default_or_a_reason():
    by_default = _by_default()
    unexplained = {}
    for name, defaults in by_default.items():
        usual = set(defaults) - set(OTHER_DEFAULTS.get(name, ()))
        if len(usual) != 1:
            unexplained[name] = {key: defaults[key] for key in sorted(usual)}
    assert not unexplained, "give one default, or words of the docstring why"
    for name, others in OTHER_DEFAULTS.items():
        gone = set(others) - set(by_default[name])
        assert not gone, f"no {name} has the default {gone}: take it out"


@pytest.mark.parametrize("name", OTHER_DEFAULTS)
def test_the_reason_stands_in_the_docstring(name):
    pytest.importorskip("numpydoc")
    by_default = _by_default()[name]
    for default, reasons in OTHER_DEFAULTS[name].items():
        for path in by_default[default]:
            description = _description(CALLABLES[path], name).lower()
            assert any(reason.lower() in description for reason in reasons), (
                f"{path} does not say why {name} is {default}: {description}"
            )


def _description(function, name):
    from numpydoc.docscrape import ClassDoc, FunctionDoc

    read = ClassDoc if inspect.isclass(function) else FunctionDoc
    for parameter in read(function)["Parameters"]:
        if name in parameter.name.split(", "):
            return " ".join(" ".join(parameter.desc).split())
    return ""


def test_shared_parameters_stand_in_one_order():
    """Of any two parameters that can be given by position, one comes first
    everywhere.
    """
    orders = defaultdict(list)
    for path, function in CALLABLES.items():
        names = [
            parameter.name
            for parameter in _parameters(function)
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ]
        for index, first in enumerate(names):
            for second in names[index + 1 :]:
                orders[first, second].append(path)
    both_ways = {pair: orders[pair] for pair in orders if pair[::-1] in orders}
    assert not both_ways


def test_a_shared_parameter_is_positional_everywhere_or_nowhere():
    kinds = defaultdict(lambda: defaultdict(list))
    for path, function in CALLABLES.items():
        for parameter in _parameters(function):
            kinds[parameter.name][parameter.kind is parameter.KEYWORD_ONLY].append(path)
    mixed = {name: dict(kinds[name]) for name in kinds if len(kinds[name]) == 2}
    new = {name: mixed[name] for name in mixed.keys() - MAIN_OR_OPTION.keys()}
    assert not new, "make it the same everywhere, or say in MAIN_OR_OPTION why not"
    assert sorted(MAIN_OR_OPTION.keys() - mixed.keys()) == [], "take these out"
