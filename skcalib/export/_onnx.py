"""Calibration maps as ONNX graphs: scores of any float type in, float64 inside,
probabilities out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from sklearn.base import BaseEstimator

from skcalib._input.scalars import check_int, check_option
from skcalib._install import install
from skcalib.export._onnx_graph import ROUNDING, graph_of, graph_of_map
from skcalib.export._onnx_nodes import ML, TYPES
from skcalib.export._segments import map_of_segments, segment_items
from skcalib.export._writers import split_decision

# the oldest that has these operators, and the one that is taken where none is asked for
_OPSETS = (13, 17)


def to_onnx(
    recalibrator: BaseEstimator | Mapping | Any,
    *,
    dtype: Literal["float32", "float64"] = "float32",
    target_opset: int | None = None,
) -> Any:
    """Return a fitted recalibrator as an ONNX model.

    Parameters
    ----------
    recalibrator : recalibrator
        A fitted recalibrator that has a map: any recalibrator in this package except a
        `MulticalibratedRecalibrator` with rounds, a `UniformMassBinning` with
        ``randomize=True``, and a `GroupwiseRecalibrator` whose groups are computed by a
        function. It can also be a `CertifiedThresholdClassifier` that wraps such a
        recalibrator in a `FrozenEstimator`, or a dict that maps groups to
        recalibrators, as returned by `PredictionTable(by=...).fit`.
    dtype : {"float32", "float64"}, default="float32"
        Type of the input and of the output. The graph computes in float64 in both
        cases.
    target_opset : int, default=None
        Version of the ONNX operator set, at least 13; None means 17. Two graphs that
        are joined by `onnx.compose` must have the same version.

    Returns
    -------
    model : onnx.ModelProto
        The model, with the input ``scores`` (as many columns as in `fit`) and the
        output ``calibrated`` (one column per class). A `GroupwiseRecalibrator` whose
        groups are passed directly or taken from a column has a second input ``group``,
        which contains strings and has shape (n, 1); groups of other types must be
        passed as strings, and unknown groups use the pooled fit. A dict of maps also
        has this input, and returns NaN for unknown groups. A recalibrator with
        `features` has a second input ``features`` of shape (n, n_features), in the
        order of that parameter. A `CertifiedThresholdClassifier` has a second output
        ``decision`` of shape (n,), the label that `predict` returns. The metadata
        properties ``classes`` and ``provenance`` contain JSON.

    Raises
    ------
    ImportError
        If the onnx package is not installed (the extra ``onnx``).
    ValueError
        If the recalibrator cannot be written as a graph, or if an argument is invalid.

    See Also
    --------
    skcalib.export.register_skl2onnx_converters : Converts whole pipelines.
    skcalib.export.to_sql : Writes a recalibrator as an SQL expression.
    skcalib.export.to_dict : Writes a recalibrator as plain JSON values.

    Notes
    -----
    A graph cannot raise an error: rows that `predict_proba` rejects (NaN, scores out of
    range, probabilities that do not sum to 1, features that are not finite) give NaN,
    and are treated as below the decision threshold. In a decision, a probability that
    is below the threshold by at most 1e-12 is treated as equal to it. A logit of -inf
    in a row with finite logits means that the class is impossible, as in
    `predict_proba`.

    Examples
    --------
    >>> import numpy as np
    >>> import onnxruntime  # doctest: +SKIP
    >>> from skcalib import PlattScaling
    >>> from skcalib.export import to_onnx
    >>> fitted = PlattScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 0, 1, 1])
    >>> model = to_onnx(fitted)  # doctest: +SKIP
    >>> session = onnxruntime.InferenceSession(
    ...     model.SerializeToString()
    ... )  # doctest: +SKIP
    >>> scores = np.array([[0.25]], dtype=np.float32)
    >>> session.run(None, {"scores": scores})  # doctest: +SKIP
    """
    onnx = import_onnx()
    check_option(dtype, "dtype", ROUNDING)
    oldest, opset = _OPSETS
    if target_opset is not None:
        opset = check_int(
            target_opset,
            "target_opset",
            minimum=oldest,
            maximum=onnx.defs.onnx_opset_version(),
        )
    if isinstance(recalibrator, dict):
        as_map = map_of_segments(recalibrator)
        graph = graph_of_map(
            as_map, dtype, opset, "scores", "calibrated", "group", otherwise_nan=True
        )
        provenance = {}
        for segment, segment_recalibrator in segment_items(recalibrator):
            provenance[str(segment)] = getattr(
                segment_recalibrator, "provenance_", None
            )
    else:
        recalibrator, decision = split_decision(recalibrator)
        graph = graph_of(
            recalibrator,
            dtype,
            opset,
            group="group",
            decision=decision,
            features="features",
        )
        provenance = getattr(recalibrator, "provenance_", None)
    properties = {"classes": graph.as_map.classes.tolist(), "provenance": provenance}
    return _model(onnx, graph, dtype, opset, properties)


def import_onnx():
    """Return the optional onnx package."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise ImportError(
            f"to_onnx needs the package onnx: {install('onnx')}."
        ) from None
    return onnx


def _model(onnx, graph, dtype, opset, properties):
    """Return a graph as a model of the package `onnx`, which has checked it; the values
    of the dict `properties` are written as JSON.
    """
    helper = onnx.helper
    n_classes = len(graph.as_map.classes)
    protos = []  # the nodes as messages of Protocol Buffers
    for operator, inputs, output, attributes in graph.nodes:
        protos.append(
            helper.make_node(operator, inputs, [output], name=output, **attributes)
        )
    constants = {}
    for name, array in graph.constants.items():
        constants[name] = onnx.numpy_helper.from_array(array, name)
    tensor = helper.make_tensor_value_info  # describes an input or output
    float_type = TYPES[dtype]
    width = graph.as_map.scores.width
    inputs = [tensor(graph.name_in, float_type, ["n", width])]
    imports = [helper.make_opsetid("", opset)]
    if graph.as_map.group_key is not None:
        inputs.append(tensor(graph.group, onnx.TensorProto.STRING, ["n", 1]))
        imports.append(helper.make_opsetid(ML, 2))
    features = graph.as_map.features
    if features is not None:
        inputs.append(tensor(graph.name_features, float_type, ["n", features.width]))
    outputs = [tensor(graph.name_out, float_type, ["n", n_classes])]
    if graph.decision is not None:
        label_type = constants[graph.decision].data_type
        outputs.append(tensor("decision", label_type, ["n"]))
    proto = helper.make_graph(
        protos, "calibration", inputs, outputs, list(constants.values())
    )
    model = helper.make_model(
        proto,
        opset_imports=imports,
        ir_version=helper.find_min_ir_version_for(imports),
        producer_name="skcalib",
    )
    texts_by_name = {name: json.dumps(value) for name, value in properties.items()}
    helper.set_model_props(model, texts_by_name)
    onnx.checker.check_model(model, full_check=True)
    return model
