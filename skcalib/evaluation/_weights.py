"""What sample weights say about the labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from numpy.typing import ArrayLike

from skcalib._inference.results import ResultRecord
from skcalib._input.classes import positive_class
from skcalib._input.label_weights import (
    FEWEST_EVENTS,
    label_weights,
    looks_like_counts,
    weight_of_each_label,
)
from skcalib._input.labels import check_label_vector
from skcalib._input.scores import check_sample_weight
from skcalib._verdicts import count_words, rounded


@dataclass(frozen=True, eq=False, repr=False)
class WeightDescription(ResultRecord):
    """What sample weights mean; unpacks in the order of its fields.

    Parameters
    ----------
    weight_type : {"frequency", "importance"}
        Meaning of the weights: the one that was given, else that of their structure.
    form : {"counts", "constant", "label", "declared", "observed"}
        Where variances come from. "counts": a weight of 2 means two samples.
        "constant": all weights are equal. "label": each label has one weight.
        "declared": the caller gave the weight of each label. "observed": the weight
        that a sample would have with the other label is unknown.
    without_event, with_event : float or None
        Weight of all samples without and with the event, where each label has one.
    """

    weight_type: str
    form: str
    without_event: float | None = None
    with_event: float | None = None

    def _sentences(self):
        """Say how the weights are treated."""
        if self.form == "counts":
            return "The weights count samples."
        if self.form == "constant":
            return "All weights are equal: each sample counts once."
        if self.form == "declared":
            return "The weight that each sample has with either label is known."
        if self.form == "label":
            return (
                f"Samples with the event have weight {rounded(self.with_event)}, all"
                f" others {rounded(self.without_event)}: the weights are treated as"
                " importance weights that correct for sampling by label."
            )
        return (
            "The weights are importance weights that may depend on the label: intervals"
            " are based on the observed residuals and need at least"
            f" {count_words(FEWEST_EVENTS)} effective events."
        )


def describe_weights(
    y_true: ArrayLike,
    sample_weight: ArrayLike,
    *,
    weight_type: Literal["frequency", "importance"] | Mapping | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> WeightDescription:
    """Tell what sample weights mean for intervals and tests.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two classes.
    sample_weight : array-like of shape (n,)
        Weights.
    weight_type : {"frequency", "importance"} or dict, default=None
        Meaning of the weights, as in the other functions; a dict gives the weight of
        each of the two labels, a number or an array of shape (n,). None decides by
        structure: whole numbers count samples, unless they are one number for each
        label in at least 20 samples; other weights are of importance.
    pos_label : label, default=None
        The event; None means the greater of the two labels.
    labels : array-like of shape (2,), default=None
        The two labels, if `y_true` may lack one.

    Returns
    -------
    description : WeightDescription
        `weight_type`, `form`, `without_event` and `with_event`; as text, a sentence.

    Raises
    ------
    ValueError
        If labels or weights are invalid, or if a dict does not agree with the weights.

    See Also
    --------
    skcalib.censored_labels : Weights for outcomes that are not known for all samples.
    skcalib.metrics.calibration_slope_intercept : Takes weights and `weight_type`.

    Notes
    -----
    Let w1 and w0 be the weights of a sample with and without the event. The weighted
    residual w (y - s) of a calibrated score s has the variance w1 w0 s (1 - s), which
    is w^2 s (1 - s) only if the label does not change the weight. If w1 and w0 are
    known, tests use this variance, and drawn labels have the probability ``s w0 / (s w0
    + (1 - s) w1)``, as in the sample. Otherwise, the observed squares take its place.
    Samples of fixed numbers of each label (case-control studies) vary less: intervals
    are then too wide rather than too narrow.

    Examples
    --------
    All events are kept, and one of 20 other samples:

    >>> from skcalib.evaluation import describe_weights
    >>> y_true = [1] * 10 + [0] * 30
    >>> found = describe_weights(y_true, [1] * 10 + [20] * 30)
    >>> found.weight_type, found.form
    ('importance', 'label')
    """
    y_true = check_label_vector(
        y_true, len(sample_weight), name="y_true", scores_name="sample_weight"
    )
    weight = check_sample_weight(sample_weight, len(y_true))
    is_event, classes, _ = positive_class(y_true, 1, pos_label, labels)
    if weight_type is None:
        weight_type = "importance"
        if looks_like_counts(is_event, weight):
            weight_type = "frequency"
    known = label_weights(is_event, weight, weight_type, classes)
    if known is None:
        return WeightDescription("frequency", "counts")
    if known.form != "label":
        return WeightDescription("importance", known.form)
    is_used = weight > 0
    without_event, with_event = weight_of_each_label(is_event[is_used], weight[is_used])
    return WeightDescription("importance", known.form, without_event, with_event)
