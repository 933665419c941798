"""Thresholds for one model, with a guarantee at a given confidence level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skcalib._cells.reductions import one_task
from skcalib._input.classes import zero_one
from skcalib._input.labels import check_label_vector
from skcalib._input.scalars import (
    check_confidence_level,
    check_number,
    check_option,
    invalid,
)
from skcalib._input.scored_labels import (
    ScoredLabels,
    check_one_event,
    check_scored_labels,
)
from skcalib._input.warn import warn
from skcalib.decisions._certified import (
    ANSWER_PROMISES,
    EVENT_PROMISES,
    ONE_MODEL_PROMISES,
    CertifiedThreshold,
    deciding_scores,
)
from skcalib.decisions._same_rows import (
    CROSS_FITTED,
    OF_CROSS_FITTING,
    OTHER_ROWS,
    SAME_ROWS,
    method_of_same_rows,
)
from skcalib.decisions._search import Guarantee, largest_error_rate
from skcalib.decisions._tests_of_sets import DecidedRows
from skcalib.decisions._threshold_search import (
    MODEL,
    threshold_by_order,
    threshold_by_search,
)

_PromiseName = Literal[
    "error_when_answered",
    "answered_and_wrong",
    "precision",
    "recall",
    "false_positive_rate",
    "accuracy",
]
# Rates that never rise from strict to lenient thresholds, or never fall.
_ORDERED = ("recall", "false_positive_rate")
# The assumption of `certified_abstention` about the model, printed with its result.
_MODEL_ALONE = "The answers come from one model that was not fitted to these samples."


def certified_threshold(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    promise: _PromiseName | Sequence[_PromiseName],
    target: float | Sequence[float],
    confidence_level: float = 0.9,
    thresholds: ArrayLike | None = None,
    start: float | ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    fitted_on: object = None,
    pos_label: object = None,
    labels: ArrayLike | None = None,
) -> CertifiedThreshold:
    r"""Find a threshold that meets a guarantee at a given confidence level.

    A threshold tuned on the data often violates the limit for which it was tuned: in
    simulations of precision, it did so in 4% to 99% of the data sets. The certified
    threshold is found by exact tests, so that the guarantee holds for at least a
    fraction `confidence_level` of all calibration sets.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1] of a model that was fitted to other data. The
        probabilities need not be calibrated: the guarantee holds regardless, but with
        calibrated probabilities more samples are accepted.
    promise : {"error_when_answered", "answered_and_wrong", "precision", "recall", "false_positive_rate", "accuracy"} or sequence of such
        "error_when_answered": the predicted class is returned if its probability
        reaches the threshold, and at most `target` of these answers are wrong.
        "answered_and_wrong": at most `target` of all samples are answered incorrectly.
        "precision", "recall", "accuracy": this rate is at least `target` if the event
        is predicted at or above the threshold. "false_positive_rate": this rate is at
        most `target`. If several guarantees are given, they hold simultaneously; they
        must all be about answers (the first two), or all about the event.
    target : float or sequence of float
        The limit, strictly between 0 and 1; one per guarantee.
    confidence_level : float, default=0.9
        Probability with which the guarantee holds, in (0, 1), or with which all
        guarantees hold simultaneously.
    thresholds : array-like of float, default=None
        Candidate thresholds, fixed beforehand. None means a fixed grid: 0; 1; all
        values from .1 to .9 with three decimal places; below .1, all values p with two
        significant digits, down to 1e-9; and above .9, the corresponding values 1 - p.
    start : float, or array-like of shape (m,), (m, 2) or (m, K), default=None
        Start of the search. None means that it depends on the scores. With a fixed
        threshold, or probabilities of *other* samples, the guarantee is exact for new
        samples.
    clusters : array-like of shape (n,), default=None
        Cluster of each sample; samples in the same cluster, such as visits by one
        patient, may be dependent. The tests then use whole clusters, and many clusters
        are required.
    fitted_on : fitted recalibrator, dict or {"cross-fitted"}, default=None
        The recalibrator that computed the probabilities, or its `provenance_`. If it
        was fitted to exactly these samples, the search is stricter, or an error is
        raised. Samples are recognised by the order of their labels. "cross-fitted"
        declares that each probability is out-of-fold, while the deployed map is fitted
        to all samples.
    pos_label : int, float, bool or str, default=None
        The label whose probability is given by a single column of scores. This label is
        also the event in guarantees about an event.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    certified : CertifiedThreshold
        The `threshold` and the evidence; ``print`` explains it, and
        ``accepts(y_proba)`` returns which samples it accepts. If no threshold meets the
        guarantee, `found` is False, and ``print`` gives the reason and, if there are
        too few samples, how many are required.

    Raises
    ------
    ValueError
        If labels and probabilities are inconsistent; if the guarantee is about an event
        and there are more than two classes; if several guarantees are not about the
        same decision; if `thresholds` or `start` is given for recall or the false
        positive rate alone, which do not use them; if `fitted_on` has more than two
        parameters and was fitted to the same samples; or if an argument is out of
        range.

    Warns
    -----
    UserWarning
        If labels are 0 and 1 or booleans, there is a single column of probabilities,
        and answers with a probability below 1/2 count as correct. If the labels
        indicate whether an answer was correct, use `certified_abstention`.

    See Also
    --------
    skcalib.decisions.certified_abstention : Threshold for answers that have a
        confidence score.
    skcalib.decisions.CertifiedThresholdClassifier : Classifier with such a threshold.
    skcalib.decisions.certified_routing : Threshold above which a small model answers
        instead of a large model.
    skcalib.displays.RiskCoverageDisplay : Plots the result.

    Notes
    -----
    Let :math:`n_l` be the number of samples at or above the threshold l, and
    :math:`e_l` the number of errors among them. With the target :math:`\alpha` (one
    minus a precision) and :math:`\delta` = 1 - `confidence_level`, the p-value of l is
    :math:`P(\mathrm{Bin}(n_l, \alpha) \le e_l)`; for "answered_and_wrong" and
    "accuracy", :math:`n_l` is the total number of samples. The search goes from strict
    to lenient thresholds as long as the p-value is at most :math:`\delta`. No
    correction for the number of thresholds is needed, because the first threshold that
    violates the guarantee is tested at level :math:`\delta`. A threshold passes only
    if, in addition, :math:`e_l \le n_l \alpha - 1`: then the p-value is also valid for
    samples with different error probabilities [1]_.

    The start of the search may depend on the scores, but not on the labels. With
    ``start=None``, 3/4 of :math:`\delta` is spent on a search from the largest set
    that, according to the scores, passes with probability .9 (or with the highest
    possible probability), and 1/4 on a search from the first set that is large enough
    to pass if it contains no errors. The more lenient of the two results is used. For
    accuracy alone, the search starts at 1/2.

    For a recall of at least r, with :math:`n_1` events, the threshold is the k-th
    smallest score of the events, where k is the largest number with
    :math:`P(\mathrm{Bin}(n_1, 1 - r) \le k - 1) \le \delta`. The threshold for the
    false positive rate is found in the same way from the largest scores of the
    non-events [2]_.

    Several guarantees share one sequence of thresholds; the p-value of a threshold is
    the largest of their p-values. Recall, for which lenient thresholds are better, has
    a separate sequence: each of the two sequences uses half of :math:`\delta`.

    With `clusters`, each accepted sample contributes 1 - :math:`\alpha` for an error
    and :math:`-\alpha` otherwise; :math:`X_g` is the sum of these terms over cluster g,
    divided by the size of the largest cluster. The p-value is the reciprocal of the
    mean, over 50 bets :math:`\lambda` from 0 to :math:`1 / (1 - \alpha)`, of
    :math:`\prod_g (1 - \lambda X_g)` [3]_.

    References
    ----------
    .. [1] Hoeffding (1956), On the distribution of the number of successes in
        independent trials.
    .. [2] Tong, Feng and Li (2018), Neyman-Pearson classification algorithms and NP
        receiver operating characteristics.
    .. [3] Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables
        by betting.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.decisions import certified_threshold
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(2000)
    >>> y = rng.random(2000) < scores
    >>> print(certified_threshold(y, scores, promise="precision", target=0.8))
    Predict the event where its probability is at least 0.627: with 90 % confidence, at
    least 80 % of the predicted events occur.
    Of 2,000 calibration samples, 743 (37.1 %) are predicted to be events, 132 of them
    wrongly.
    The guarantee holds for one model that was fitted to other data, and for independent
    samples from the population in which the model is used; .assumptions lists ...

    Precision and recall simultaneously:

    >>> both = certified_threshold(
    ...     y, scores, promise=["precision", "recall"], target=[0.7, 0.7]
    ... )
    >>> both.threshold, both.n_wrong
    (0.424, (314, 179))
    """  # noqa: E501
    guarantees = check_guarantees(promise, target)
    checked = scores_and_errors(
        y_true, y_proba, guarantees[0].promise, pos_label, labels
    )
    if np.ndim(y_proba) == 1:
        _hint_at_correctness(checked.data, guarantees[0].promise)
    return certify(
        checked,
        guarantees,
        target,
        confidence_level,
        thresholds=thresholds,
        start=start,
        clusters=clusters,
        fitted_on=fitted_on,
    )


def certify(
    checked,
    guarantees,
    target,
    confidence_level,
    *,
    thresholds=None,
    start=None,
    clusters=None,
    fitted_on=None,
):
    """Return the `CertifiedThreshold` for validated rows.

    Parameters
    ----------
    checked : ScoresAndErrors
        The rows.
    guarantees : list of Guarantee
        The guarantees.
    target : float or sequence of float
        The user's targets for them, which the result shows.
    confidence_level : float
        Probability with which all guarantees hold.
    thresholds : array-like or None
        Thresholds to test.
    start : float, array-like or None
        Where the tests start: a threshold, or scores of other samples.
    clusters : array-like or None
        Clusters of the samples, which may be dependent.
    fitted_on : object
        What tells whether the scores come from a map fitted to these rows.
    """
    # Probability with which the guarantee may fail.
    level = 1 - check_confidence_level(confidence_level)
    promises = [guarantee.promise for guarantee in guarantees]
    is_alone = len(guarantees) == 1
    # Recall alone, and the false positive rate alone, depend on the scores of one class
    # only: the threshold is an order statistic of them. With clusters the rows may be
    # dependent, and it is searched for, like that of other guarantees.
    is_ordered = is_alone and promises[0] in _ORDERED
    if is_ordered and not (thresholds is None and start is None):
        raise ValueError(
            f"promise={promises[0]!r} is determined by the scores of one class: omit"
            " thresholds and start."
        )
    rows = DecidedRows.checked(checked.scores, checked.is_error, clusters)
    if is_alone:
        # A list of one guarantee has a list of one target.
        promise = promises[0]
        shown_target = float(np.ravel(target)[0])
    else:
        promise = tuple(promises)
        shown_target = tuple(map(float, target))
    fields = {
        "promise": promise,
        "target": shown_target,
        "confidence_level": float(confidence_level),
        "n_samples": len(rows.scores),
        "column": _event_column(checked.data),
        "n_clusters": rows.n_clusters,
        "classes": _sorted_classes(checked.data, promises),
    }
    assumption, uses_same_rows = _assumption_about_map(fitted_on, checked.data.labels)
    if uses_same_rows:
        # A map fitted to these rows keeps the order of their scores or, if the labels
        # suggest it, reverses it. The tests must be valid for either order: each gets
        # half of the level (Bonferroni).
        level /= 2
    if uses_same_rows and start is not None:
        raise ValueError(
            "start does not apply if the recalibrator was fitted to the same rows:"
            " omit it."
        )
    if is_ordered and rows.clusters is None:
        return threshold_by_order(rows, guarantees[0], fields, level, assumption)
    return threshold_by_search(
        rows,
        guarantees,
        fields,
        level,
        thresholds,
        start,
        assumption,
        uses_same_rows=uses_same_rows,
    )


def _event_column(data):
    """Return which of two columns, 0 or 1, is that of the event. Columns are in the
    order of the labels; classes hold the event last, and None first if only it is
    known.
    """
    if not data.is_binary or data.classes[0] is None:
        return 1
    other, event = data.classes
    return 0 if event < other else 1


def _sorted_classes(data, promises):
    """Return both labels, sorted; None for guarantees about no event, and if only the
    event is known.
    """
    classes = data.classes.tolist()
    if promises[0] not in EVENT_PROMISES or None in classes:
        return None
    return tuple(sorted(classes))


def _assumption_about_map(fitted_on, labels):
    """Return the assumption about the map that made the scores, as a sentence, and
    whether it was fitted to these rows, which their `labels` (n,) show.
    """
    if fitted_on is None:
        return MODEL, False
    if isinstance(fitted_on, str) and fitted_on == CROSS_FITTED:
        return OF_CROSS_FITTING, False
    method = method_of_same_rows(fitted_on, labels)
    if method is None:
        return OTHER_ROWS, False
    return SAME_ROWS.format(method=method), True


def certified_abstention(
    correct: ArrayLike,
    confidence: ArrayLike,
    *,
    max_error: float,
    confidence_level: float = 0.9,
    thresholds: ArrayLike | None = None,
    start: float | ArrayLike | None = None,
    clusters: ArrayLike | None = None,
) -> CertifiedThreshold:
    """Find a confidence threshold for answering, with a guaranteed limit on errors.

    Parameters
    ----------
    correct : array-like of bool, shape (n,)
        Whether each answer is correct.
    confidence : array-like of shape (n,)
        Confidence in each answer, in [0, 1], which need not be calibrated.
    max_error : float
        Largest share of errors among the answers that are given, strictly between 0 and
        1.
    confidence_level : float, default=0.9
        Probability with which the guarantee holds, in (0, 1).
    thresholds : array-like of float, default=None
        Candidate thresholds, fixed beforehand; None means the grid of
        `certified_threshold`.
    start : float, or array-like of shape (m,), default=None
        Start of the search. None means that it depends on the confidences. With a fixed
        threshold, or confidences of *other* samples, the guarantee is exact for new
        samples.
    clusters : array-like of shape (n,), default=None
        Cluster of each sample; samples in the same cluster, such as questions about one
        document, may be dependent.

    Returns
    -------
    certified : CertifiedThreshold
        The threshold, with the guarantee "abstention"; ``accepts(confidence)``
        indicates which answers to give.

    Raises
    ------
    ValueError
        If arguments differ in length, an answer is neither correct nor wrong, a
        confidence is outside [0, 1], or a number is out of range.

    See Also
    --------
    skcalib.decisions.certified_threshold : Threshold for labels and class
        probabilities.
    skcalib.decisions.certified_routing : Uses the answer of another model instead of
        abstaining.

    Notes
    -----
    The search is that of `certified_threshold` for ``"error_when_answered"``. In
    `certified_threshold`, a score below 1/2 predicts the other of the two classes;
    here, it is a low confidence.

    References
    ----------
    Geifman and El-Yaniv (2017), Selective classification for deep neural networks.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.decisions import certified_abstention
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.random(2000)
    >>> correct = rng.random(2000) < confidence
    >>> certified = certified_abstention(correct, confidence, max_error=0.2)
    >>> certified.threshold, round(certified.accepted, 3)
    (0.627, 0.371)
    """
    max_error = check_number(max_error, "max_error", above=0, below=1)
    # Probability with which the guarantee may fail.
    level = 1 - check_confidence_level(confidence_level)
    # The confidences, checked, are themselves compared with the threshold.
    scores = deciding_scores(confidence, "abstention")
    correct = check_label_vector(
        correct, len(scores), name="correct", scores_name="confidence"
    )
    is_right = zero_one(correct)
    if is_right is None:
        raise ValueError("correct must be booleans, or 0 (wrong) and 1 (right).")
    rows = DecidedRows.checked(scores, ~is_right, clusters)
    fields = {
        "promise": "abstention",
        "target": max_error,
        "confidence_level": float(confidence_level),
        "n_samples": len(scores),
        "n_clusters": rows.n_clusters,
    }
    guarantees = [Guarantee("abstention", max_error)]
    return threshold_by_search(
        rows, guarantees, fields, level, thresholds, start, _MODEL_ALONE
    )


class ScoresAndErrors(NamedTuple):
    """Validated rows for the search of a threshold.

    Parameters
    ----------
    data : ScoredLabels
        The rows.
    scores : ndarray of shape (n,)
        Scores that are compared with the threshold.
    is_error : ndarray of bool, shape (n,)
        Whether accepting a row is an error.
    """

    data: ScoredLabels
    scores: np.ndarray
    is_error: np.ndarray


def scores_and_errors(y_true, y_proba, promise, pos_label=None, labels=None):
    """Return the `ScoresAndErrors` of the user's labels and probabilities: the scores
    (n,) that are compared with a threshold, and whether it is an error to accept a
    sample.

    For a guarantee about answers, to accept a row is to give the predicted class. For
    one about an event, it is to predict the event. `promise` is the guarantee's name.
    """
    multiclass = "auto"
    if promise in ANSWER_PROMISES and np.ndim(y_proba) == 2:
        multiclass = "top_label"
    data = check_scored_labels(
        y_true, y_proba, multiclass=multiclass, pos_label=pos_label, labels=labels
    )
    if promise in ANSWER_PROMISES:
        # The binary problem "is the predicted class right", with its probability.
        task = one_task(data, "top_label")
        return ScoresAndErrors(data, task.scores, ~task.labels)
    check_one_event(data, f"promise={promise!r}")
    return ScoresAndErrors(data, data.scores, ~data.labels)


def check_guarantees(promise, target):
    """Return a list of `Guarantee`, each a name with its largest error rate. `promise`
    is a name, such as "precision", with the number `target` that it promises, or a
    sequence of names with one of targets. Raise a ValueError unless they are valid, and
    all about answers or all about one event.
    """
    if isinstance(promise, str):
        check_option(promise, "promise", ONE_MODEL_PROMISES)
        target = check_number(target, "target", above=0, below=1)
        return [Guarantee(promise, largest_error_rate(promise, target))]
    if not isinstance(promise, Sequence | np.ndarray) or len(promise) == 0:
        raise invalid(
            "promise", f"one of {', '.join(ONE_MODEL_PROMISES)}, or a list", promise
        )
    if np.ndim(target) != 1 or len(target) != len(promise):
        raise invalid("target", f"a list of {len(promise)} numbers", target)
    if len(set(promise)) < len(promise):
        raise invalid("promise", "a list of different guarantees", promise)
    guarantees = []
    for name, limit in zip(promise, target, strict=True):
        check_option(name, "promise", ONE_MODEL_PROMISES)
        limit = check_number(limit, "target", above=0, below=1)
        guarantees.append(Guarantee(name, largest_error_rate(name, limit)))
    are_about_answers = {one.promise in ANSWER_PROMISES for one in guarantees}
    if len(are_about_answers) > 1:  # both True and False
        about_answers = ", ".join(ANSWER_PROMISES)
        about_event = ", ".join(EVENT_PROMISES)
        raise ValueError(
            f"promise must be all about answers ({about_answers}) or all about an event"
            f" ({about_event}), since one threshold makes one decision: found"
            f" {promise!r}."
        )
    return guarantees


def _hint_at_correctness(data, promise):
    """Warn if `y_true` may say whether each answer was right, where a guarantee about
    answers takes it for classes: labels are numbers or booleans, with a single column
    of scores, and a score below 1/2 counts as an answer for the other class.
    """
    if (
        promise not in ANSWER_PROMISES
        or np.asarray(data.classes).dtype.kind not in "biuf"
    ):
        return
    # A score below 1/2 predicts the other class, which is right without the event.
    other_is_right = (data.scores < 0.5) & ~data.labels
    if other_is_right.any():
        warn(
            f"promise={promise!r} treats y_true as classes:"
            f" {np.count_nonzero(other_is_right):,} rows with a score below 1/2 count"
            " as correct answers for the other class. If y_true says whether an answer"
            " was right, use certified_abstention. If it contains classes, pass both"
            " columns of probabilities."
        )
