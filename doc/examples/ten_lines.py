"""First example of the README and the site, evaluated on held-out data."""

from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from skcalib import RecalibratedClassifierCV

X, progression = load_diabetes(return_X_y=True)
y = progression > 140  # faster than in half of the patients
parts = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
X_train, X_test, y_train, y_test = parts
trees = HistGradientBoostingClassifier()
for model in (trees, CalibratedClassifierCV(trees), RecalibratedClassifierCV(trees)):
    y_proba = model.fit(X_train, y_train).predict_proba(X_test)
    print(f"{log_loss(y_test, y_proba):.3f}  {type(model).__name__}")

from skcalib.displays import ReliabilityDisplay

shown = {"boosted trees": trees, "recalibrated": model}
options = {"layout": "columns", "random_state": 0}
display = ReliabilityDisplay.from_estimator(shown, X_test, y_test, **options)

if __name__ == "__main__":
    from pathlib import Path

    display.figure_.savefig(
        Path(__file__).parents[1] / "pictures" / "ten_lines.png", dpi=200
    )
