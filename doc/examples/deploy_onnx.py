"""Join a classifier and its recalibrator into one ONNX graph. This works for any
converted model.
"""

import numpy as np
import onnx
import onnxruntime
import skl2onnx
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skcalib import MatrixScaling
from skcalib.export import to_onnx

X, y = make_classification(3000, n_informative=6, n_classes=3, random_state=0)
X = X.astype(np.float32)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, random_state=0)
X_calibration, X_test, y_calibration, y_test = train_test_split(
    X_rest, y_rest, random_state=0
)

classifier = LogisticRegression(max_iter=500).fit(X_train, y_train)
recalibrator = MatrixScaling().fit(
    classifier.predict_proba(X_calibration), y_calibration
)

# Both graphs need the same opset and IR version. Models from LightGBM (onnxmltools) or
# PyTorch (torch.onnx.export) are joined in the same way: in io_map, name the output
# with the probabilities, or with the logits for a recalibrator with input="logit".
model = skl2onnx.to_onnx(classifier, X[:1], options={"zipmap": False}, target_opset=17)
calibration = to_onnx(recalibrator, target_opset=17)
calibration.ir_version = model.ir_version
joined = onnx.compose.merge_models(
    model, calibration, io_map=[("probabilities", "scores")]
)

# Test before you deploy: compare both on the same samples.
session = onnxruntime.InferenceSession(
    joined.SerializeToString(), providers=["CPUExecutionProvider"]
)
(calibrated,) = session.run(["calibrated"], {"X": X_test})
largest_difference = np.abs(
    calibrated - recalibrator.predict_proba(classifier.predict_proba(X_test))
).max()
print(f"{len(X_test)} rows, largest difference {largest_difference:.1e}")
assert largest_difference < 1e-5
