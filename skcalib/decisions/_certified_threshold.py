"""Thresholds for one model, with a guarantee at a given confidence level."""

from collections.abc import Sequence
from math import ceil, inf, log, log1p
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from skcalib._cells.reductions import one_task
from skcalib._input.labels import check_label_vector, zero_one
from skcalib._input.scalars import (
    check_confidence_level,
    check_number,
    check_option,
    invalid,
)
from skcalib._input.scored_labels import check_one_event, check_scored_labels
from skcalib._input.warn import warn
from skcalib.decisions._certified import (
    ANSWERS,
    EVENTS,
    OF_ONE_MODEL,
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
from skcalib.decisions._search import (
    AcceptedSets,
    Goal,
    check_thresholds,
    guided_starts,
    insured_level,
    limit_of,
    most_errors,
    most_lenient,
)
from skcalib.decisions._tests_of_sets import DecidedRows, SetTests
from skcalib.guarantees._certificate import INDEPENDENT_ROWS

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
# Rates that the strictest threshold cannot break: their sequence starts there.
_FROM_STRICTEST = ("answered_and_wrong", "false_positive_rate")
# Rates of sets of rows with the highest scores of one event. (Which class is predicted,
# and which rows are above 1/2, depends on more than their order.)
_OF_ONE_ORDER = {"precision", "recall", "false_positive_rate"}
_ACCURACY_STARTS = 0.5  # the most accurate threshold, if scores are right

MODEL = (
    "The probabilities come from one model that was fitted on other rows. A"
    " recalibrator that was fitted on these rows is noticed with fitted_on= only, and"
    " does harm: in simulations with 90 % confidence, a precision of 90 % was broken"
    " after Platt's map of the same rows in up to 17.8 % of samples, after"
    " isotonic regression in up to 35.8 %. Fit the recalibrator on one half of the"
    " rows, and find the threshold on the other."
)
FIXED = (
    "The guarantee, its target and the thresholds were fixed before the labels of these"
    " rows were seen."
)
_EXACT = "Exact for any number of rows and any distribution: {reason}."
_FIXED_START = "the search begins where it was fixed beforehand"
_GUIDED_EXACTNESS = (
    "Exact given the scores, for the mean error probability of the accepted calibration"
    " rows. For new rows it is simulated, because where the search starts depends on"
    " the scores: in six worlds of 100 to 2,000 rows a guarantee with 90 % confidence"
    " was broken in at most 10.4 % of samples. With start= it is exact for new rows,"
    " too."
)
CLUSTERED = (
    "The clusters are independent draws from one distribution, from which future"
    " clusters come, too, and none has more than {most:,} rows, as the largest here."
)
_EXACT_IN_EITHER_ORDER = (
    "Exact given the scores before the map: it keeps the order of the rows or reverses"
    " it, and each order has half of the level."
)
_NOT_EXACT = (
    "The tests are exact for a map that does not depend on these labels; with a map of"
    " these labels nothing is proved."
)
_MODEL_ALONE = "The answers come from one model that was not fitted to these rows."


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
    r"""Threshold that meets a guarantee at a given confidence level.

    A threshold tuned on the data often violates the limit that it was tuned for: in
    simulations of precision, it did so in 6 to 99 % of data sets. This threshold is
    found by exact tests, so that the guarantee holds for a share of at least
    `confidence_level` of calibration sets.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1] of a model that was fitted to other data. They need not
        be calibrated: the guarantee always holds, but calibrated ones accept more
        samples.
    promise : {"error_when_answered", "answered_and_wrong", "precision", "recall", "false_positive_rate", "accuracy"} or sequence of such
        "error_when_answered": the predicted class is returned if its probability
        reaches the threshold, and at most `target` of these answers are wrong.
        "answered_and_wrong": at most `target` of all samples are answered wrongly.
        "precision", "recall", "accuracy": at least `target`, if the event is predicted
        at or above the threshold. "false_positive_rate": at most `target`. Several
        guarantees hold at once if given together; they must all be about answers (the
        first two), or all about the event.
    target : float or sequence of float
        The limit, strictly between 0 and 1; one per guarantee.
    confidence_level : float, default=0.9
        Probability with which the guarantee holds, in (0, 1), or with which all
        guarantees hold together.
    thresholds : array-like of float, default=None
        The thresholds to choose from, fixed beforehand. None means a fixed grid: 0, 1,
        all values with three digits from .1 to .9, and all values of p (below) and 1 -
        p (above) with two significant digits, down to 1e-9.
    start : float, or array-like of shape (m,), (m, 2) or (m, K), default=None
        Where the search begins. None means that this depends on the scores. A fixed
        threshold, or probabilities of *other* samples, makes the guarantee exact for
        new samples.
    clusters : array-like of shape (n,), default=None
        Cluster of each sample; samples of one cluster, such as visits by one patient,
        may be dependent. Whole clusters are then tested, and many of them are needed.
    fitted_on : fitted recalibrator, dict or {"cross-fitted"}, default=None
        The recalibrator that computed the probabilities, or its `provenance_`: if it
        was fitted to exactly these samples, the search is stricter, or an error is
        raised. Samples are recognised by the order of their labels. "cross-fitted"
        declares that each probability is out-of-fold, while the deployed map is fitted
        to all samples.
    pos_label : int, float, bool or str, default=None
        The label whose probability a single column of scores contains, and the event in
        guarantees about an event.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    certified : CertifiedThreshold
        The `threshold` and the evidence; ``print`` explains it, and
        ``accepts(y_proba)`` returns which samples it accepts. If no threshold meets the
        guarantee, `found` is False and ``print`` says why, and, if too few samples are
        the reason, how many are needed.

    Raises
    ------
    ValueError
        If labels and probabilities are inconsistent; if the guarantee is about an event
        and there are more than two classes; if several guarantees are not about the
        same decision; if `thresholds` or `start` are given for recall or the false
        positive rate alone, which do not use them; if `fitted_on` has more than two
        parameters and was fitted to the same samples; or if an argument is out of
        range.

    Warns
    -----
    UserWarning
        If labels are 0 and 1 or booleans, there is a single column of probabilities,
        and answers below 1/2 count as right: if the labels say whether an answer was
        right, use `certified_abstention`.

    See Also
    --------
    skcalib.decisions.certified_abstention : The same for answers with a confidence.
    skcalib.decisions.CertifiedThresholdClassifier : The same as a classifier.
    skcalib.decisions.certified_routing : When a small model may answer instead of a
        large one.
    skcalib.displays.RiskCoverageDisplay : Draws the result.

    Notes
    -----
    Let :math:`n_l` rows lie at or above the threshold l, and :math:`e_l` of them be
    wrong. With the target :math:`\alpha` (one minus a precision) and :math:`\delta` =
    1 - `confidence_level`, the p-value of l is
    :math:`P(\mathrm{Bin}(n_l, \alpha) \le e_l)`; for answered and wrong, and for
    accuracy, :math:`n_l` is the number of all samples. The search goes from strict to
    lenient thresholds while the p-value is within :math:`\delta`. No correction for the
    number of thresholds is needed, because the first one that breaks the guarantee is
    tested at :math:`\delta`. A threshold passes only if, in addition,
    :math:`e_l \le n_l \alpha - 1`: then the p-value is also valid for rows with
    different error probabilities [1]_.

    Where the search begins may depend on the scores, but not on the labels. With
    ``start=None``, 3/4 of :math:`\delta` are spent on the largest set that is expected
    from the scores to pass with a power of .9 (or the highest possible power), and 1/4
    on the first set that is large enough to pass without an error. The more lenient
    result is taken. Accuracy alone begins at 1/2.

    For recall, with :math:`n_1` events, the threshold is the k-th smallest score of the
    events, where k is the largest number with :math:`P(\mathrm{Bin}(n_1, 1 - r) \le k -
    1) \le \delta`. The false positive rate is treated in the same way from above, with
    the samples without the event [2]_.

    Several guarantees share one sequence of thresholds, whose p-value is the largest of
    theirs. Recall, for which lenient thresholds are better, has a separate sequence:
    each of the two sequences has half of :math:`\delta`.

    With `clusters`, the sum over the accepted rows of each cluster, of 1 - :math:`\alpha`
    for an error and :math:`-\alpha` otherwise, is divided by the size of the largest
    cluster to :math:`X_g`. The p-value is the inverse of the mean, over 50 bets
    :math:`\lambda` from 0 to :math:`1 / (1 - \alpha)`, of
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
    Predict the event where its probability is at least 0.627. With 90 % confidence
    (right for at least 90 % of calibration samples), at least 80 % of the predicted
    events are events. Of 2,000 calibration rows, 743 are predicted to be events
    (37.1 %), and 132 of them are not. This holds provided that:
    - The probabilities come from one model that was fitted on other rows. ...

    Precision and recall at once:

    >>> both = certified_threshold(
    ...     y, scores, promise=["precision", "recall"], target=[0.7, 0.7]
    ... )
    >>> both.threshold, both.n_wrong
    (0.424, (314, 179))
    """  # noqa: E501
    goals = check_goals(promise, target)
    checked = scores_and_errors(y_true, y_proba, goals[0].promise, pos_label, labels)
    if np.ndim(y_proba) == 1:
        _hint_at_correctness(checked[0], goals[0].promise)
    return certify(
        checked,
        goals,
        target,
        confidence_level,
        thresholds=thresholds,
        start=start,
        clusters=clusters,
        fitted_on=fitted_on,
    )


def certify(
    checked,
    goals,
    target,
    confidence_level,
    *,
    thresholds=None,
    start=None,
    clusters=None,
    fitted_on=None,
):
    """Return the certified threshold of what `scores_and_errors` returned."""
    data, scores, wrong = checked
    level = 1 - check_confidence_level(confidence_level)
    promises = [goal.promise for goal in goals]
    is_alone = len(goals) == 1
    is_ordered = is_alone and promises[0] in _ORDERED
    if is_ordered and not (thresholds is None and start is None):
        raise ValueError(
            f"promise={promises[0]!r} is decided by the scores of one class: leave"
            " thresholds and start out."
        )
    is_descending = (
        data.is_binary
        and data.classes[0] is not None
        and data.classes[1] < data.classes[0]
    )
    rows = DecidedRows.checked(scores, wrong, clusters)
    if is_alone:
        promise = promises[0]
        shown_target = float(np.ravel(target)[0])
    else:
        promise = tuple(promises)
        shown_target = tuple(map(float, target))
    fields = {
        "promise": promise,
        "target": shown_target,
        "confidence_level": float(confidence_level),
        "n_samples": len(scores),
        # where accepts() is given two columns
        "column": 0 if is_descending else 1,
        "n_clusters": rows.n_clusters,
    }
    model, is_strict = _relation_to_map(fitted_on, data.labels)
    if is_strict:
        # The map keeps the order of the rows or reverses it, as the labels say: each of
        # the two orders gets half of the level.
        level /= 2
    if is_strict and start is not None:
        raise ValueError(
            "start has no meaning where the recalibrator was fitted to the same rows:"
            " leave it out."
        )
    if is_ordered and rows.clusters is None:
        return _by_order(rows, goals[0], fields, level, model)
    return _by_search(
        rows, goals, fields, level, thresholds, start, model, is_strict=is_strict
    )


def _relation_to_map(fitted_on, labels):
    """Return what is assumed about the map that made the scores, and whether it was
    fitted to the same rows.
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
    """Confidence threshold for answering, with a guaranteed limit on errors.

    Parameters
    ----------
    correct : array-like of bool, shape (n,)
        Whether each answer is right.
    confidence : array-like of shape (n,)
        Confidence in each answer, in [0, 1]. It need not be calibrated.
    max_error : float
        Largest share of errors among the given answers, strictly between 0 and 1.
    confidence_level : float, default=0.9
        Probability with which the guarantee holds, in (0, 1).
    thresholds : array-like of float, default=None
        The thresholds to choose from, fixed beforehand; None means the grid of
        `certified_threshold`.
    start : float, or array-like of shape (m,), default=None
        Where the search begins. None means that this depends on the confidences. A
        fixed threshold, or confidences of *other* samples, makes the guarantee exact
        for new samples.
    clusters : array-like of shape (n,), default=None
        Cluster of each sample; samples of one cluster, such as questions about one
        document, may be dependent.

    Returns
    -------
    certified : CertifiedThreshold
        With the promise "abstention"; ``accepts(confidence)`` returns which answers are
        given.

    Raises
    ------
    ValueError
        If arguments differ in length, an answer is neither right nor wrong, a
        confidence is outside [0, 1], or a number is out of range.

    See Also
    --------
    skcalib.decisions.certified_threshold : For labels and probabilities of classes.
    skcalib.decisions.certified_routing : Another model answers instead of abstaining.

    Notes
    -----
    The search is that of `certified_threshold` for ``"error_when_answered"``. In
    `certified_threshold`, a score below 1/2 means the other of the two classes; here,
    it is a low confidence.

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
    level = 1 - check_confidence_level(confidence_level)
    scores = deciding_scores(confidence, "abstention")
    right = zero_one(
        check_label_vector(
            correct, len(scores), name="correct", scores_name="confidence"
        )
    )
    if right is None:
        raise ValueError("correct must be booleans, or 0 (wrong) and 1 (right).")
    rows = DecidedRows.checked(scores, ~right, clusters)
    fields = {
        "promise": "abstention",
        "target": max_error,
        "confidence_level": float(confidence_level),
        "n_samples": len(scores),
        "n_clusters": rows.n_clusters,
    }
    goals = [Goal("abstention", max_error)]
    return _by_search(rows, goals, fields, level, thresholds, start, _MODEL_ALONE)


def scores_and_errors(y_true, y_proba, promise, pos_label=None, labels=None):
    """Return the checked data, the score of each sample that a threshold is put on, and
    whether accepting it is wrong.
    """
    multiclass = "auto"
    if promise in ANSWERS and np.ndim(y_proba) == 2:
        multiclass = "top_label"
    data = check_scored_labels(
        y_true, y_proba, multiclass=multiclass, pos_label=pos_label, labels=labels
    )
    if promise in ANSWERS:
        task = one_task(data, "top_label")
        return data, task.scores, ~task.labels
    check_one_event(data, f"promise={promise!r}")
    return data, data.scores, ~data.labels


def check_goals(promise, target):
    """Return the goals: a promise and a target, or a sequence of each."""
    if isinstance(promise, str):
        check_option(promise, "promise", OF_ONE_MODEL)
        target = check_number(target, "target", above=0, below=1)
        return [Goal(promise, limit_of(promise, target))]
    if not isinstance(promise, Sequence | np.ndarray) or len(promise) == 0:
        raise invalid(
            "promise", f"one of {', '.join(OF_ONE_MODEL)}, or a list", promise
        )
    if np.ndim(target) != 1 or len(target) != len(promise):
        raise invalid("target", f"a list of {len(promise)} numbers", target)
    if len(set(promise)) < len(promise):
        raise invalid("promise", "a list of different guarantees", promise)
    goals = []
    for name, limit in zip(promise, target, strict=True):
        check_option(name, "promise", OF_ONE_MODEL)
        limit = check_number(limit, "target", above=0, below=1)
        goals.append(Goal(name, limit_of(name, limit)))
    kinds = {goal.promise in ANSWERS for goal in goals}
    if len(kinds) > 1:
        raise ValueError(
            f"promise must be all about answers ({', '.join(ANSWERS)}) or all about an"
            f" event ({', '.join(EVENTS)}), since one threshold makes one decision:"
            f" found {promise!r}."
        )
    return goals


def _hint_at_correctness(data, promise):
    """Warn where labels may say whether an answer was right, and a low score then
    counts as another answer.
    """
    if promise not in ANSWERS or np.asarray(data.classes).dtype.kind not in "biuf":
        return
    other_is_right = (data.scores < 0.5) & ~data.labels
    if other_is_right.any():
        warn(
            f"promise={promise!r} takes y_true as classes:"
            f" {np.count_nonzero(other_is_right):,} rows with a score below 1/2 count"
            " as right answers, of the other class. If y_true says whether an answer"
            " was right, use certified_abstention. If it holds classes, pass both"
            " columns of probabilities."
        )


def _by_order(rows, goal, fields, level, model):
    """Return the threshold of a guarantee about one class: an order statistic of its
    scores.
    """
    scores = rows.scores
    is_recall = goal.promise == "recall"
    of_class = ~rows.wrong if is_recall else rows.wrong
    name = "events" if is_recall else "rows without the event"
    class_scores = np.sort(scores[of_class])
    if len(class_scores) == 0:
        raise ValueError(
            f"y_true has no {name}: the {goal.promise.replace('_', ' ')} cannot be seen"
            " on these rows."
        )
    # As many may lie on the wrong side of the threshold.
    most = most_errors(len(class_scores), goal.limit, level).item()
    threshold = inf
    if most >= 0 and is_recall:
        threshold = float(class_scores[most])
    elif most >= 0:
        above = scores[scores > class_scores[-1 - most]]
        threshold = float(above.min(initial=inf))
    accepted = scores >= threshold
    is_wrong_side = of_class & (accepted != is_recall)
    reason = None
    n_needed = None
    if most < 0:
        reason = "few_rows"
        share = len(class_scores) / len(scores)
        n_needed = ceil(log(level) / log1p(-goal.limit) / share)
    elif threshold == inf:
        reason = "rates"
    pvalue = 1.0
    if reason is None:
        pvalue = float(bdtr(most, len(class_scores), goal.limit))
    exactness = _EXACT.format(
        reason=f"the threshold is an order statistic of the scores of the {name}"
    )
    if model is OF_CROSS_FITTING:
        exactness = _NOT_EXACT
    elif model not in (MODEL, OTHER_ROWS):
        exactness = _EXACT_IN_EITHER_ORDER
    return CertifiedThreshold(
        **fields,
        threshold=threshold,
        n_accepted=int(np.count_nonzero(accepted)),
        n_wrong=int(np.count_nonzero(is_wrong_side)),
        pvalue=pvalue,
        n_needed=n_needed,
        reason=reason,
        assumptions=(model, INDEPENDENT_ROWS, FIXED, exactness),
    )


def _by_search(
    rows, goals, fields, level, thresholds, start, model, *, is_strict=False
):
    """Return the most lenient threshold that passes the tests of all goals."""
    promises = [goal.promise for goal in goals]
    if is_strict and thresholds is None:
        # A map that keeps the order of the rows does not choose among these sets.
        thresholds = rows.scores
    grid = check_thresholds(thresholds)
    from_strictest = set(promises) <= {*_FROM_STRICTEST, "recall"}
    if from_strictest and start is not None:
        raise ValueError(
            f"promise={fields['promise']!r} begins at the strictest threshold: leave"
            " start out."
        )
    is_guided = start is None and not from_strictest
    if start is None and promises == ["accuracy"]:
        # The largest threshold up to 1/2: fixed beforehand, too.
        start = grid[max(np.searchsorted(grid, _ACCURACY_STARTS, "right") - 1, 0)]
        is_guided = False
    if start is not None and np.ndim(start) == 0:
        start = check_number(start, "start", at_least=0, at_most=1)
        grid = np.union1d(grid[grid < start], start)
        from_strictest = True
    strict_goals, recall_goals = _by_direction(goals)
    if strict_goals and recall_goals:
        level /= 2
    tests = SetTests(rows, rows.sets(grid))
    starts = [(0, level)]
    if strict_goals and not from_strictest:
        other_scores = None
        if start is not None:
            other_scores = deciding_scores(start, promises[0], fields.get("column", 1))
        starts = _guided(tests, strict_goals, level, other_scores)
    if strict_goals and is_strict and is_guided:
        least = tests.pvalue(strict_goals, without_errors=True)
        can_pass = np.flatnonzero(least <= level)
        first = int(can_pass[0]) if len(can_pass) > 0 else None
        starts = [(first, level)]
    in_one_order = thresholds is rows.scores and set(promises) <= _OF_ONE_ORDER
    exactness = _exactness_of_search(is_strict, in_one_order, is_guided, model)
    independent = INDEPENDENT_ROWS
    if rows.clusters is not None:
        independent = CLUSTERED.format(most=rows.clusters.sizes.max())
    fields = fields | {"assumptions": (model, independent, FIXED, exactness)}
    return _found(tests, goals, starts, fields)


def _exactness_of_search(is_strict, in_one_order, is_guided, model):
    """Return what is said about the exactness of the level."""
    if is_strict and in_one_order:
        return _EXACT_IN_EITHER_ORDER
    if is_strict or model is OF_CROSS_FITTING:
        return _NOT_EXACT
    if is_guided:
        return _GUIDED_EXACTNESS
    return _EXACT.format(reason=_FIXED_START)


def _guided(tests, goals, level, other):
    """Return the starts that the scores of the samples, or of other samples,
    suggest.
    """
    sets = tests.sets
    if other is not None:
        nothing_wrong = np.zeros(len(other), dtype=bool)
        of_other = AcceptedSets.from_rows(other, nothing_wrong, sets.threshold[::-1])
        share = of_other.n_rows / len(other)
        n_rows = np.rint(tests.n_all * share).astype(np.int64)
        sets = of_other._replace(n_rows=n_rows)
    clusters = tests.rows.clusters
    if clusters is None:
        return guided_starts(
            goals, sets, tests.n_all, level, of_other_rows=other is not None
        )
    least = tests.pvalue(goals, without_errors=True)
    return guided_starts(
        goals,
        sets,
        tests.n_all,
        level,
        rows_per_unit=clusters.rows_per_unit,
        can_pass=least <= insured_level(level),
    )


def _found(tests, goals, starts, fields):
    """Return the most lenient threshold that passes for all goals, or why there is
    none.
    """
    sets = tests.sets
    strict_goals, recall_goals = _by_direction(goals)
    level = max(level for _, level in starts)
    strict_pvalue = tests.pvalue(strict_goals)
    recall_pvalue = tests.pvalue(recall_goals)
    best = None
    strictest = None
    if strict_goals:
        best = most_lenient(strict_pvalue, sets.n_rows, starts)
    if recall_goals:
        total = sum(level for _, level in starts)
        strictest = _strictest(recall_pvalue, sets.n_rows, total)
    if not strict_goals:
        best = strictest
    pvalue = np.maximum(strict_pvalue, recall_pvalue)
    if strict_goals and recall_goals and best is not None:
        pvalue = np.minimum(2 * pvalue, 1.0)
        if strictest is None:
            best = None
        elif sets.n_rows[best] < sets.n_rows[strictest]:
            return none_found(fields, goals, "together")
    if best is not None:
        n_wrong = [int(tests.counts(goal)[1][best]) for goal in goals]
        return found_at(fields, sets, best, n_wrong, float(pvalue[best]))
    least = tests.pvalue(goals, without_errors=True)
    n_needed = tests.n_needed(goals, min(level for _, level in starts))
    if least.min() > level:
        return none_found(fields, goals, "few_rows", n_needed)
    if (pvalue <= level).any():
        begins = "start" if len(starts) > 1 else "sequence"
        return none_found(fields, goals, begins)
    reason = "rates" if n_needed is None else "margin"
    return none_found(fields, goals, reason, n_needed)


def _by_direction(goals):
    """Return the goals that are tested from strict to lenient, and recall, which
    lenient thresholds keep.
    """
    strict_goals = [goal for goal in goals if goal.promise != "recall"]
    recall_goals = [goal for goal in goals if goal.promise == "recall"]
    return strict_goals, recall_goals


def _strictest(pvalue, n_rows, level):
    """Return the position of the strictest set that passes, None if there is none.

    The sets are tested from lenient to strict, and the first failure ends that.
    """
    failed = np.flatnonzero(pvalue[::-1] > level)
    n_passed = failed[0] if len(failed) else len(pvalue)
    if n_passed == 0:
        return None
    last_passed = len(pvalue) - n_passed
    # of sets of the same rows the first
    return int(np.argmax(n_rows == n_rows[last_passed]))


def found_at(fields, sets, best, n_wrong, pvalue):
    """Return the certified threshold at a position among the sets."""
    return CertifiedThreshold(
        **fields,
        threshold=float(sets.threshold[best]),
        n_accepted=int(sets.n_rows[best]),
        n_wrong=tuple(n_wrong) if len(n_wrong) > 1 else n_wrong[0],
        pvalue=pvalue,
    )


def none_found(fields, goals, reason, n_needed=None):
    """Return the result that accepts no row, with the reason."""
    return CertifiedThreshold(
        **fields,
        threshold=inf,
        n_accepted=0,
        n_wrong=(0,) * len(goals) if len(goals) > 1 else 0,
        pvalue=1.0,
        reason=reason,
        n_needed=n_needed,
    )
