"""
Save a recalibrator as JSON or ONNX, without pickle
===================================================

A fitted recalibrator consists of a few numbers. `to_dict` returns them as plain JSON,
which later versions of this package can read and which cannot execute code. `to_onnx`
returns a graph for runtimes outside Python. Both give the same probabilities.
"""

# %%
# Fit a spline to scores that are too extreme.
import json

import numpy as np
from scipy.special import expit, logit

from skcalib import SplineCalibration

rng = np.random.default_rng(0)
scores = rng.beta(0.5, 0.5, 5000)
y = rng.random(5000) < expit(0.6 * logit(scores) - 0.3)
recalibrator = SplineCalibration().fit(scores, y)

# %%
# JSON: the restored recalibrator predicts the same, bit for bit.
from skcalib.export import from_dict, to_dict

text = json.dumps(to_dict(recalibrator))
again = from_dict(json.loads(text))
print(
    f"{len(text)} characters; equal:"
    f" {np.array_equal(again.predict_proba(scores), recalibrator.predict_proba(scores))}"  # noqa: E501
)

# %%
# ONNX: the graph takes the score and returns both probabilities.
import onnxruntime

from skcalib.export import to_onnx

graph = to_onnx(recalibrator, dtype="float32")
session = onnxruntime.InferenceSession(
    graph.SerializeToString(), providers=["CPUExecutionProvider"]
)

grid = np.linspace(0, 1, 401)
(found,) = session.run(
    ["calibrated"], {"scores": grid.astype(np.float32)[:, np.newaxis]}
)
expected = recalibrator.predict_proba(grid)
print(f"largest difference {np.abs(found - expected).max():.1e}")

# %%
# Draw the calibration map as computed by Python and by the graph.
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
ax.plot(grid, expected[:, 1], label="predict_proba")
ax.plot(grid[::20], found[::20, 1], "o", label="ONNX, float32")
ax.plot([0, 1], [0, 1], color="grey", linestyle="--", label="no change")
ax.set(xlabel="Score", ylabel="Calibrated probability", aspect="equal")
ax.legend(frameon=False)

# %%
# **See also:** :doc:`/deploying`. Reference: `to_dict`, `from_dict`, `to_onnx`.
