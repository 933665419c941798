"""Converters for skl2onnx: a pipeline that ends with a recalibrator becomes one
graph.
"""

from __future__ import annotations

import numpy as np

from skcalib import recalibrators
from skcalib.cross_fitting import CrossFittedClassifier
from skcalib.export._onnx_graph import graph_of
from skcalib.maps import has_map
from skcalib.recalibrators._uncalibrated import Uncalibrated

# What skl2onnx lets callers choose for classifiers.
_CLASSIFIER_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "nocl": [True, False],
    "output_class_labels": [True, False],
}


def register_skl2onnx_converters() -> None:
    """Register converters for this package's estimators with skl2onnx.

    After this call, `skl2onnx.to_onnx` converts a recalibrator, or a `Pipeline` of a
    `CrossFittedClassifier` and a recalibrator, in one step. The registration applies to
    the current process. Like any classifier, a recalibrator then has two outputs:
    labels and probabilities.

    Raises
    ------
    ImportError
        If the skl2onnx package is not installed.

    See Also
    --------
    to_onnx : Writes the graph of a recalibrator alone, without skl2onnx.

    Notes
    -----
    The classifier inside a `CrossFittedClassifier` is converted by its own converter,
    which computes in float32 for float32 input. The classifier must have
    `predict_proba`. Columns that are passed through are not converted.

    Examples
    --------
    >>> import skl2onnx  # doctest: +SKIP
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from skcalib import CrossFittedClassifier, PlattScaling
    >>> from skcalib.export import register_skl2onnx_converters
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> pipeline = make_pipeline(CrossFittedClassifier(GaussianNB()), PlattScaling())
    >>> pipeline = pipeline.fit(X, y)
    >>> register_skl2onnx_converters()  # doctest: +SKIP
    >>> model = skl2onnx.to_onnx(pipeline, X[:1])  # doctest: +SKIP
    """
    try:
        from skl2onnx import update_registered_converter
        from skl2onnx.common.shape_calculator import (
            calculate_linear_classifier_output_shapes,
        )
    except ImportError:
        raise ImportError(
            "register_skl2onnx_converters needs the package skl2onnx: pip install"
            " skl2onnx."
        ) from None
    classes = [Uncalibrated]
    for name in recalibrators.__all__:
        public = getattr(recalibrators, name)
        if isinstance(public, type) and has_map(public):
            classes.append(public)
    for cls in classes:
        update_registered_converter(
            cls,
            f"Skcalib{cls.__name__}",
            calculate_linear_classifier_output_shapes,
            _convert_recalibrator,
            options=_CLASSIFIER_OPTIONS,
        )
    update_registered_converter(
        CrossFittedClassifier,
        "SkcalibCrossFittedClassifier",
        _shape_of_scores,
        _convert_cross_fitted,
    )


def _convert_recalibrator(scope, operator, container):
    """Add the nodes of a recalibrator to the graph that skl2onnx builds, which passes
    its scope (for unique names), the operator (with the recalibrator, inputs and
    outputs) and the container of nodes.
    """
    from onnx import TensorProto

    recalibrator = operator.raw_operator
    opset = container.target_opset
    scores = operator.inputs[0]
    label = operator.outputs[0]
    probabilities = operator.outputs[1]
    is_double = type(scores.type).__name__ == "DoubleTensorType"
    graph = graph_of(
        recalibrator,
        "float64" if is_double else "float32",
        opset,
        scores=scores.full_name,
        calibrated=probabilities.full_name,
    )
    column = _predicted_column(graph, recalibrator, probabilities.full_name)
    types = {"float64": TensorProto.DOUBLE, "int64": TensorProto.INT64}
    for name, array in graph.constants.items():
        container.add_initializer(
            name, types[array.dtype.name], array.shape, array.ravel().tolist()
        )
    for operator_name, inputs, output, attributes in graph.nodes:
        container.add_node(
            operator_name,
            inputs,
            [output],
            op_version=opset,
            name=scope.get_unique_operator_name(operator_name),
            **attributes,
        )
    _add_labels(scope, container, recalibrator.classes_, column, label.full_name)


def _predicted_column(graph, recalibrator, probabilities):
    """Add nodes for the index (n,) of the class that `predict` returns, that of the
    largest score or, as the method has it, of the `probabilities`; return their
    output's name.
    """
    # A groupwise recalibrator does as its pooled one does.
    inner = getattr(recalibrator, "pooled_recalibrator_", recalibrator)
    if not inner._keeps_decisions:
        return graph.add("ArgMax", probabilities, axis=1, keepdims=0)
    if graph.as_map.scores.width > 1:
        return graph.add("ArgMax", graph.scores, axis=1, keepdims=0)
    tie = 0.5  # the score at which both classes are equally probable
    if graph.as_map.input == "logit":
        tie = 0.0
    # 1 if the score is above it, else 0; 7 is int64 in ONNX
    column = graph.add("Cast", graph.add("Greater", graph.scores, tie), to=7)
    return graph.add("Reshape", column, [-1])


def _add_labels(scope, container, classes, column, output):
    """Add the nodes that give the label of each row's class, whose index (n,) is named
    `column`.
    """
    from onnx import TensorProto

    name = scope.get_unique_variable_name("classes")
    if classes.dtype.kind in "UO":
        kind = TensorProto.STRING
        labels = [str(label).encode() for label in classes]
    else:
        kind = TensorProto.INT64
        labels = classes.astype(np.int64).tolist()
    container.add_initializer(name, kind, [len(classes)], labels)
    node = scope.get_unique_operator_name("Gather")
    container.add_node(
        "Gather",
        [name, column],
        [output],
        op_version=container.target_opset,
        name=node,
        axis=0,
    )


def _shape_of_scores(operator):
    """Set the type of the output of a `CrossFittedClassifier`: that of the input, with
    one column per class.
    """
    variable = operator.inputs[0]
    operator.outputs[0].type = type(variable.type)(
        [variable.type.shape[0], len(operator.raw_operator.classes_)]
    )


def _convert_cross_fitted(scope, operator, container):
    """Add the nodes of the classifier inside a `CrossFittedClassifier`, by its own
    converter, to the graph that skl2onnx builds; `scope` and `container` are those of
    skl2onnx, and `operator` has the classifier, inputs and outputs.
    """
    from skl2onnx.algebra.onnx_operator import OnnxSubEstimator
    from skl2onnx.algebra.onnx_ops import OnnxIdentity

    fitted = operator.raw_operator
    opset = container.target_opset
    if fitted.response_method_ != "predict_proba" or fitted.passthrough is not False:
        raise ValueError(
            "A CrossFittedClassifier can be converted only with scores from"
            " predict_proba and without passthrough columns, found response_method"
            f" {fitted.response_method_!r} and passthrough={fitted.passthrough!r}."
        )
    model = OnnxSubEstimator(fitted.estimator_, operator.inputs[0], op_version=opset)
    probabilities = model[1]  # after the labels
    output = OnnxIdentity(
        probabilities, op_version=opset, output_names=operator.outputs[:1]
    )
    output.add_to(scope, container)
