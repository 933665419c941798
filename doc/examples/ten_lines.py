"""The first example of the README and of the site: a forest, recalibrated, judged on held-out rows."""

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from skcalib import RecalibratedClassifierCV, TemperatureScaling

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
forest = RandomForestClassifier(random_state=0).fit(X_train, y_train)
recalibrated = RecalibratedClassifierCV(forest, TemperatureScaling()).fit(X_train, y_train)
print([log_loss(y_test, model.predict_proba(X_test)) for model in (forest, recalibrated)])

from skcalib.displays import ReliabilityDisplay

models = {"random forest": forest, "recalibrated": recalibrated}
display = ReliabilityDisplay.from_estimator(models, X_test, y_test, layout="columns", random_state=0)

if __name__ == "__main__":
    from pathlib import Path

    display.figure_.savefig(Path(__file__).parents[1] / "pictures" / "ten_lines.png", dpi=100)
