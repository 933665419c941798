"""Many classes against the rest, each held near one map for all: partial pooling by a
ridge.
"""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike

from skcalib._fitting.partial_pooling import ClassProblems
from skcalib._input.sklearn_private import StrOptions
from skcalib.maps.checks import number
from skcalib.recalibrators._base import RIDGE
from skcalib.recalibrators._binary import BinaryRecalibrator
from skcalib.recalibrators._clipping import ClippedRecalibrator


class PartiallyPooledRecalibrator(ClippedRecalibrator, BinaryRecalibrator):
    """Base of the one-vs-rest methods that are logistic regressions on features of the
    log-odds.

    In addition to the hooks of `BinaryRecalibrator`, a subclass defines
    ``_fit_pooled(problems)``, which returns the `PooledMap` of a `ClassProblems`, and
    ``_set_map(coef, *ends)``, which sets the fitted attributes from the coefficients
    (d,) of one class.
    """

    _parameter_constraints = {
        **ClippedRecalibrator._parameter_constraints,
        **BinaryRecalibrator._parameter_constraints,
        "class_pooling": [RIDGE, StrOptions({"auto"})],
    }

    _scale = "log_odds"
    _attributes = {**ClippedRecalibrator._attributes, "class_pooling_": number}

    class_pooling_: float

    def __init__(
        self,
        *,
        class_pooling: float | Literal["auto"] = "auto",
        clip: float | Literal["auto"] | None = "auto",
        multiclass: Literal["ovr", "top_label"] = "ovr",
        normalize: bool = True,
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.class_pooling = class_pooling
        self.clip = clip
        self.multiclass = multiclass
        self.normalize = normalize
        self.input = input
        self.classes = classes

    @property
    def _pools_classes(self):
        """Whether the maps of several classes are held near a common one."""
        has_ridge = isinstance(self.class_pooling, str) or self.class_pooling > 0
        return has_ridge and self.multiclass == "ovr" and len(self.classes_) > 2

    @property
    def _needs_classes(self):
        """Which classes must occur in the rows of a fit: "all", any "two", or "any"."""
        # A class without rows uses the common map. A fit to rows of one class alone
        # would predict only 0 and 1.
        if self._pools_classes:
            return "two"
        return "all"

    def _start_fit(self, scores, codes, sample_weight, shortcuts):
        """Set `class_pooling_`, 0 where nothing is pooled, beside `clip_` and `floor_`;
        return the scores to fit to.
        """
        self.class_pooling_ = 0.0
        return super()._start_fit(scores, codes, sample_weight, shortcuts)

    def _fit_binary_problems(self, probabilities, codes, sample_weight):
        """Return recalibrators, one for each class against the rest, fitted to
        probabilities (n, K). A ridge of the strength `class_pooling` pulls each class's
        coefficients (d,) to those of one map of all problems together.
        """
        if not self._pools_classes:
            return super()._fit_binary_problems(probabilities, codes, sample_weight)
        # A softmax is 0 only for impossible classes.
        is_impossible = None
        if self.input == "logit" and probabilities.min() == 0:
            is_impossible = probabilities == 0
        problems = ClassProblems.of_classes(
            probabilities, codes, sample_weight, is_impossible
        )
        pooled = self._fit_pooled(problems)
        # `coefs`: the coefficients of each class, for the strength that predicts best
        # ("auto") or for the one given
        if isinstance(self.class_pooling, str):
            self.class_pooling_, coefs = problems.fit_path(pooled)
        else:
            self.class_pooling_ = float(self.class_pooling)
            coefs = problems.fit_near(pooled, self.class_pooling)
        estimators = []
        for coef in coefs:
            estimator = self._binary_copy()
            # `ends`, the range of log-odds of the fit, is empty if the map needs none.
            estimator._set_map(coef, *pooled.ends)
            estimators.append(estimator)
        return estimators
