"""The default recalibrator: it changes the scores only if that saves log-loss."""

from __future__ import annotations

from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import has_fit_parameter

from skcalib._fitting.cross_validation import CrossFits
from skcalib._fitting.folds import cross_validation_folds
from skcalib._fitting.gains import standard_error
from skcalib._fitting.member_fits import member_node
from skcalib._fitting.wrapped import (
    check_recalibrator,
    design_parameters,
    fitted_clone,
    tell,
)
from skcalib._inference.results import IntervalEstimate
from skcalib._input.annotations import CrossValidation
from skcalib._input.sklearn_private import HasMethods, Interval
from skcalib._input.warn import warn
from skcalib._intervals.one_probability.lazy import NO_LIMITS
from skcalib._rows.blocks import total_weight
from skcalib._rows.links import log_probability
from skcalib.maps.checks import check_same_classes, estimate, fitted
from skcalib.recalibrators._base import BaseRecalibrator
from skcalib.recalibrators._measured import MeasuredRecalibrator
from skcalib.recalibrators._stacked import StackedRecalibrator
from skcalib.recalibrators._uncalibrated import Uncalibrated

_LEVEL = 0.9


class Recalibrator(MeasuredRecalibrator):
    """Recalibrator of scores that is used only if it reduces the held-out log-loss.

    Otherwise the scores are returned unchanged. Without arguments it is a stack of
    recalibrators.

    This is the default recalibrator of `RecalibratedClassifierCV`.

    Parameters
    ----------
    recalibrator : recalibrator, default=None
        An object with ``fit(scores, y)`` and ``predict_proba(scores)``; None means
        `StackedRecalibrator`. Its parameters `input` and `classes` are set to the
        values given here.
    n_standard_errors : float, default=0.5
        Number of standard errors by which the mean gain must exceed 0. With 0, any gain
        is sufficient. With a larger number, a well-calibrated model is changed less
        often, but a badly calibrated one is left unchanged more often if there are few
        samples. With a negative number, the scores are recalibrated unless the original
        scores are better by more than that many standard errors.
    cv : int, splitter or iterable of (train, test), default=5
        Folds in which every sample is predicted once. An int gives random folds that
        depend only on the samples and are not stratified (see `recalibration_gain`). A
        `StackedRecalibrator` estimates its own gain, using its own folds.
    input : {"probability", "logit"}, default="probability"
        Scale of the scores. A single column of logits is the log-odds of the positive
        class.
    classes : array-like, default=None
        Labels of the columns; required if a class is missing from the calibration set.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    recalibrator_ : recalibrator
        The recalibrator fitted to all samples, whether or not it is used.
    gain_ : IntervalEstimate
        Named tuple (estimate, low, high): the reduction in out-of-fold log-loss, in
        nats per sample, with an approximate 90% interval. It estimates the mean gain
        over calibration sets, not the gain of this particular fit.
    chosen_ : recalibrator
        The recalibrator used for prediction: `recalibrator_`, or ``Uncalibrated()``,
        which returns the scores unchanged.

    Notes
    -----
    Even if the calibration set contains no event with a score of 0, new data may
    contain one; the log-loss of the original scores is then infinite. The mean gain
    used for the decision therefore includes one more sample than `gain_`, in which the
    true class is the one with the smallest of all scores (the rule of succession). This
    sample is omitted if the scores predict the right class for every sample.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range.

    See Also
    --------
    skcalib.RecalibratedClassifierCV : Fits the classifier as well.
    skcalib.evaluation.recalibration_gain : Estimates the gain alone.

    Examples
    --------
    Calibrated scores are left unchanged here; scores whose log-odds are twice as large
    as they should be are recalibrated:

    >>> import numpy as np
    >>> from skcalib import Recalibrator
    >>> rng = np.random.default_rng(0)
    >>> right = rng.random(1000)
    >>> y = rng.random(1000) < right
    >>> type(Recalibrator().fit(right, y).chosen_).__name__
    'Uncalibrated'
    >>> overconfident = right**2 / (right**2 + (1 - right) ** 2)
    >>> recalibrator = Recalibrator().fit(overconfident, y)
    >>> type(recalibrator.chosen_).__name__, recalibrator.gain_.low > 0
    ('StackedRecalibrator', True)
    """

    _parameter_constraints = {
        **BaseRecalibrator._parameter_constraints,
        "recalibrator": [HasMethods(["fit", "predict_proba"]), None],
        "n_standard_errors": [Interval(Real, None, None, closed="neither")],
        "cv": ["cv_object"],
    }

    _default_objects = {"recalibrator": StackedRecalibrator}
    _needs_classes = "two"
    _attributes = {"recalibrator_": fitted, "chosen_": fitted, "gain_": estimate}

    recalibrator_: BaseRecalibrator
    chosen_: BaseRecalibrator
    gain_: IntervalEstimate

    def __init__(
        self,
        recalibrator: BaseEstimator | None = None,
        *,
        n_standard_errors: float = 0.5,
        cv: CrossValidation | None = 5,
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.recalibrator = recalibrator
        self.n_standard_errors = n_standard_errors
        self.cv = cv
        self.input = input
        self.classes = classes

    @property
    def _keeps_decisions(self):
        return getattr(self.chosen_, "_keeps_decisions", False)

    @property
    def _warns_of_weights(self):
        """Whether the fit warns of weights that are no counts: a recalibrator that
        measures its gain does so itself.
        """
        return not has_fit_parameter(self._resolved("recalibrator"), "weight_type")

    def _fit_measured(self, scores, codes, design):
        """Fit the recalibrator to scores (n, C) and `codes` (n,), the columns of the
        labels, measure how much log-loss it saves on held-out rows, and use it if that
        gain is certain enough; otherwise leave scores unchanged. `design` holds weights
        and clusters.
        """
        recalibrator = check_recalibrator(self._resolved("recalibrator"))
        unchanged = Uncalibrated()
        for method in (recalibrator, unchanged):
            tell(method, input=self.input, classes=self.classes_)  # set parameters
        y = self.classes_[codes]
        unchanged.fit(scores, y)
        weight = design.sample_weight
        self.recalibrator_ = fitted_clone(
            recalibrator,
            scores,
            y,
            weight,
            **design_parameters(recalibrator, design.importance, design.cluster),
        )
        # A `StackedRecalibrator` has measured its gain in its fit.
        self.gain_ = getattr(self.recalibrator_, "gain_", None)
        if self.gain_ is None:
            self.gain_ = self._out_of_fold_gain(
                recalibrator, unchanged, scores, codes, design
            )
        # `chosen_` makes the forecasts.
        self.chosen_ = unchanged
        if self._gain_is_certain(unchanged, scores, codes, weight):
            self.chosen_ = self.recalibrator_

    def _gain_is_certain(self, unchanged, scores, codes, sample_weight):
        """Return whether the gain over the `unchanged` scores exceeds 0 by
        `n_standard_errors` standard errors that the rows determine.

        n rows cannot support a probability below 1 / n^2, such as votes of 0. If the
        scores contain one, and are wrong in some row, the gain includes an imagined row
        in which its event happens.
        """
        probabilities = unchanged.predict_proba(scores)
        n_rows = total_weight(sample_weight, len(scores))
        row, column = np.unravel_index(probabilities.argmin(), probabilities.shape)
        least = probabilities[row, column]
        is_supported = least * n_rows**2 >= 1
        all_right = (probabilities.argmax(axis=1) == codes).all()
        gain_of_imagined_row = 0.0  # in nats
        if not is_supported and not all_right:
            recalibrated = self.recalibrator_.predict_proba(scores[[row]])[0, column]
            gain_of_imagined_row = log_probability(recalibrated) - log_probability(
                least
            )
        # Sums over the rows and the imagined one: the gain, and its standard error. The
        # gain of the imagined row is added to both, because it is only imagined.
        gain = n_rows * self.gain_.estimate + gain_of_imagined_row
        error_of_rows = n_rows * standard_error(self.gain_, _LEVEL)
        error = np.hypot(error_of_rows, gain_of_imagined_row)
        return gain > self.n_standard_errors * error

    def _out_of_fold_gain(self, recalibrator, unchanged, scores, codes, design):
        """Return the log-loss that recalibrating saves on held-out rows, in nats per
        row, as an `IntervalEstimate`. `unchanged` forecasts without a fit; `codes` (n,)
        are the columns of the labels, and `design` holds weights and clusters.
        """
        folds = cross_validation_folds(
            self.cv,
            scores,
            codes,
            design.sample_weight,
            self.input,
            stratified=False,
            importance=design.importance,
            cluster=design.cluster,
        )
        before = unchanged.predict_proba(scores)
        fits = CrossFits(scores, codes, before, [folds], design, self.classes_)
        # forecasts of the held-out rows, without and with a fit to the other folds
        unchanged_forecasts = fits.uncalibrated()
        recalibrated = fits.candidate(recalibrator)
        gain = fits.gain(unchanged_forecasts, recalibrated, "log")
        return gain.interval(_LEVEL)

    @property
    def _limits(self):
        """The limits of the map that was tried."""
        return getattr(self.recalibrator_, "_limits", NO_LIMITS)

    def _why_no_limits(self):
        """Return why the recalibrator that was tried has no limits, else ""."""
        tried = self.recalibrator_
        if not isinstance(tried, BaseRecalibrator):
            return f"{type(tried).__name__} has none"
        return tried._why_no_limits()

    def _why_nan_limits(self):
        return self.recalibrator_._why_nan_limits()

    def _limits_at(self, level):
        # those of the map that was tried, also where the scores are kept: what is left
        # unchanged is not certain
        tried = self.recalibrator_
        limits_of_tried = tried._limits_at(level)

        def limits_at(scores, probabilities):
            """Return the limits at scores (n, C) by the recalibrator that was tried."""
            return limits_of_tried(scores, tried._predict_checked(scores))

        return limits_at

    def _map(self, scores):
        """Return the node of the probabilities from that of the scores."""
        return member_node(self.chosen_, scores)

    def _check_attributes(self):
        """Raise a ValueError unless the fitted attributes, which were read from a JSON
        document, are consistent with each other.
        """
        check_same_classes(self, self.recalibrator_, self.chosen_)


def renamed(name, module):
    """Return `Recalibrator` for the name that it had before, with a warning; raise the
    AttributeError of `module` for any other name.
    """
    if name != "CautiousRecalibrator":
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warn(
        "CautiousRecalibrator was renamed to Recalibrator. The old name will be removed"
        " in version 0.3.",
        FutureWarning,
    )
    return Recalibrator
