"""Thresholds that keep a promise with a wanted confidence: of one model, and of a small model before a large one."""

from math import ceil, inf, log, log1p
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, ndtr, ndtri
from scipy.stats import binom

from skcalib._cells.reductions import one_task
from skcalib._input.labels import check_label_vector, zero_one
from skcalib._input.scalars import (
    as_numbers,
    check_confidence_level,
    check_number,
    check_option,
)
from skcalib._input.scored_labels import check_one_event, check_scored_labels
from skcalib._input.scores import first_index
from skcalib._rows.sorting import sorted_rows
from skcalib.decisions._certified import (
    ANSWERS,
    FIXED,
    MODEL,
    PROMISES,
    CertifiedThreshold,
    deciding_scores,
)
from skcalib.guarantees._certificate import INDEPENDENT_ROWS

_POWER = 0.9  # predicted chance that the test at the start rejects
_ROUNDING = 1e-9  # of a limit such as 1 - .9
_GUIDED = 0.75  # share of the level for the start that the scores suggest; the rest is for the strictest possible one
_ORDERED = (
    "recall",
    "false_positive_rate",
)  # decided by an order statistic of one class's scores
_EXACT = "Exact for any number of rows and any distribution: {reason}."
_GUIDED_EXACTNESS = (
    "Exact given the scores, for the mean error probability of the accepted calibration rows. For new rows it is "
    "simulated, because where the search starts depends on the scores: in six worlds of 100 to 2,000 rows a promise "
    "with 90 % confidence was broken in at most 10 % of samples. With start= it is exact for new rows, too."
)
_MODELS = "Both models and the confidence were made on other rows, and both models were asked on each row."
_ASYMPTOTIC = (
    "Asymptotic: by the score test. Simulated, a level of .1 is at most .11 from 20 / max_loss rows on (here "
    "{needed:,.0f}; there are {n:,}), and at most .13 with fewer."
)


def certified_threshold(
    y_true,
    y_proba,
    *,
    promise,
    target,
    confidence_level=0.9,
    thresholds=None,
    start=None,
    pos_label=None,
    labels=None,
):
    r"""Threshold that keeps a promise with a wanted confidence: a limit for errors, or a floor for precision or recall.

    A threshold that is tuned on the data often breaks its own promise: in simulations of precision it did so in 6 to
    99 % of samples. This one is found by exact tests, so that the promise is kept for at least `confidence_level` of
    calibration samples.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1] of a model that was fitted on other rows. They need not be calibrated: the promise holds
        in any case, but calibrated ones accept more rows.
    promise : {"error_when_answered", "answered_and_wrong", "precision", "recall", "false_positive_rate"}
        "error_when_answered": the predicted class is given where its probability reaches the threshold, and at most
        `target` of these answers are wrong. "answered_and_wrong": at most `target` of all rows are answered wrongly.
        "precision", "recall": at least `target`, for the event predicted from the threshold on.
        "false_positive_rate": at most `target`.
    target : float
        The limit, strictly between 0 and 1.
    confidence_level : float, default=0.9
        Probability of the promise, in (0, 1).
    thresholds : array-like of float, default=None
        The thresholds to choose from, fixed beforehand. None is the same grid for all data: 0, 1, all of three digits
        from .1 to .9, and all of two digits of p below and of 1 - p above, down to 1e-9.
    start : float, or array-like of shape (m,), (m, 2) or (m, K), default=None
        Where the search begins. None lets the scores decide. A threshold, or probabilities of *other* rows, make the
        promise exact for new rows.
    pos_label : int, float, bool or str, default=None
        The label that one column of scores is the probability of, and the event of the last three promises.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    certified : CertifiedThreshold
        `threshold` and what was seen; ``print`` gives sentences, ``accepts(y_proba)`` the rows. If no threshold keeps
        the promise, `found` is False and the sentences say how many rows are needed.

    Raises
    ------
    ValueError
        If labels and probabilities do not fit together, the promise is about an event and there are more than two
        classes, `thresholds` or `start` are given for recall or the false positive rate, which use none, or an argument
        is out of range.

    See Also
    --------
    skcalib.decisions.CertifiedThresholdClassifier : The same as a classifier.
    skcalib.decisions.certified_routing : When a small model may answer instead of a large one.
    skcalib.displays.RiskCoverageDisplay : The picture.

    Notes
    -----
    Let :math:`n_l` rows lie at or above the threshold l, and :math:`e_l` of them be wrong. With the target
    :math:`\alpha` (one minus a precision) and :math:`\delta` = 1 - `confidence_level`, the p-value of l is
    :math:`P(\mathrm{Bin}(n_l, \alpha) \le e_l)`; for answered and wrong, :math:`n_l` is the number of all rows. The
    search goes from strict to lenient thresholds while the p-value is within :math:`\delta`. Nothing is corrected for
    the number of thresholds, because the first one that breaks the promise is tested at :math:`\delta`. A threshold
    passes only if also :math:`e_l \le n_l \alpha - 1`: then the p-value is valid for rows of different error
    probabilities, too [1]_.

    The scores may decide where the search begins, and the labels may not. With ``start=None``, 3/4 of
    :math:`\delta` are spent on the largest set that the scores expect to pass with a power of .9 (or the most there
    is), and 1/4 on the first one that is large enough to pass without an error. The more lenient result is taken.

    For recall, with :math:`n_1` events, the threshold is the k-th smallest score of the events, k the largest number
    with :math:`P(\mathrm{Bin}(n_1, 1 - r) \le k - 1) \le \delta`. The false positive rate is the same from above, on
    the rows without the event [2]_.

    References
    ----------
    .. [1] Hoeffding (1956), On the distribution of the number of successes in independent trials.
    .. [2] Tong, Feng and Li (2018), Neyman-Pearson classification algorithms and NP receiver operating characteristics.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.decisions import certified_threshold
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(2000)
    >>> y = rng.random(2000) < scores
    >>> print(certified_threshold(y, scores, promise="precision", target=0.8))
    Predict the event where its probability is at least 0.627.
    With 90 % confidence (right for at least 90 % of calibration samples), at least 80 % of the predicted events are
    events.
    Of 2,000 calibration rows, 743 are predicted to be events (37.1 %), and 132 of them are not.
    This holds provided that:
    - The probabilities come from one model that was fitted on other rows. ...
    """
    check_option(
        promise, "promise", tuple(name for name in PROMISES if name != "routing")
    )
    target = check_number(target, "target", above=0, below=1)
    level = 1 - check_confidence_level(confidence_level)
    if promise in _ORDERED and not (thresholds is None and start is None):
        raise ValueError(
            f"promise={promise!r} is decided by the scores of one class: leave thresholds and start out."
        )
    data, scores, wrong = scores_and_errors(y_true, y_proba, promise, pos_label, labels)
    descending = (
        data.is_binary
        and data.classes[0] is not None
        and data.classes[1] < data.classes[0]
    )
    promised = {
        "promise": promise,
        "target": target,
        "confidence_level": float(confidence_level),
    }
    promised |= {
        "n_samples": len(scores),
        "column": 0 if descending else 1,
    }  # where accepts() is given two columns
    if promise in _ORDERED:
        return _by_order(data, promised, level)
    limit = 1 - target if promise == "precision" else target
    return _by_search(
        scores, wrong, limit, check_thresholds(thresholds), start, promised, level
    )


def certified_routing(
    correct_small,
    correct_large,
    confidence,
    *,
    max_loss,
    confidence_level=0.9,
    thresholds=None,
):
    r"""Threshold of a small model's confidence from which it may answer instead of a large one.

    Parameters
    ----------
    correct_small, correct_large : array-like of bool, shape (n,)
        Whether each model's answer is correct, on the same rows.
    confidence : array-like of shape (n,)
        Confidence of the small model, in [0, 1]. It need not be calibrated.
    max_loss : float
        Largest loss of accuracy against the large model alone, strictly between 0 and 1.
    confidence_level : float, default=0.9
        Probability of the promise, in (0, 1).
    thresholds : array-like of float, default=None
        The thresholds to choose from, fixed beforehand; None is the grid of `certified_threshold`.

    Returns
    -------
    certified : CertifiedThreshold
        With the promise "routing": `accepted` is the share that the small model answers, `n_wrong` the number of
        answers lost on balance, and ``accepts(confidence)`` says which rows it answers.

    Raises
    ------
    ValueError
        If arguments differ in length, an answer is neither correct nor wrong, a confidence is outside [0, 1], or a
        number is out of range.

    See Also
    --------
    skcalib.decisions.certified_threshold : A limit for the errors of one model.

    Notes
    -----
    At each threshold, a rows that the small model would answer are lost (it is wrong and the large one right) and b are
    gained. The score test of the hypothesis that a loss D of +1, 0 or -1 a row has the mean :math:`\epsilon` takes its
    variance at the most likely share q of gains under the hypothesis [1]_:

    .. math:: z = \frac{a - b - n \epsilon}{\sqrt{n (2 q + \epsilon (1 - \epsilon))}}, \quad
       q = \frac{\sqrt{B^2 - 4 A C} - B}{2 A}, \quad A = 2 n,

    :math:`B = (2 n - a + b) \epsilon - a - b`, :math:`C = -b \epsilon (1 - \epsilon)`. Thresholds are tested from
    strict to lenient, the last one that passes is taken, and nothing is corrected for their number.

    References
    ----------
    .. [1] Tango (1998), Equivalence test and confidence interval for the difference in proportions for the
       paired-sample design.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.decisions import certified_routing
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.random(2000) ** 0.3
    >>> small, large = rng.random(2000) < confidence, rng.random(2000) < 0.9
    >>> certified = certified_routing(small, large, confidence, max_loss=0.02)
    >>> certified.threshold, round(certified.accepted, 3)
    (0.764, 0.585)
    """
    max_loss = check_number(max_loss, "max_loss", above=0, below=1)
    level = 1 - check_confidence_level(confidence_level)
    scores = deciding_scores(confidence, "routing")
    n, answers = len(scores), []
    for name, correct in (
        ("correct_small", correct_small),
        ("correct_large", correct_large),
    ):
        answers.append(
            zero_one(
                check_label_vector(correct, n, name=name, scores_name="confidence")
            )
        )
        if answers[-1] is None:
            raise ValueError(f"{name} must be booleans, or 0 (wrong) and 1 (correct).")
    small, large = answers
    grid = check_thresholds(thresholds)
    lost = AcceptedSets.from_rows(scores, large & ~small, grid)
    gained = AcceptedSets.from_rows(scores, small & ~large, grid)
    pvalue = score_pvalue(lost.n_wrong, gained.n_wrong, n, max_loss)
    promised = {
        "promise": "routing",
        "target": max_loss,
        "confidence_level": float(confidence_level),
        "n_samples": n,
    }
    asymptotic = _ASYMPTOTIC.format(needed=np.ceil(20 / max_loss), n=n)
    promised["assumptions"] = _MODELS, INDEPENDENT_ROWS, FIXED, asymptotic
    sets = lost._replace(n_wrong=lost.n_wrong - gained.n_wrong)
    return certified(
        promised, sets, np.full(len(grid), n), pvalue, [(0, level)], max_loss
    )


def score_pvalue(lost, gained, n, max_loss):
    """Return the p-value of "the mean loss is at least `max_loss`" (Tango 1998)."""
    linear = (2 * n - (lost - gained)) * max_loss - (lost + gained)
    constant = gained * max_loss * (1 - max_loss)
    share = (np.sqrt(linear**2 + 8 * n * constant) - linear) / (
        4 * n
    )  # of gains, under the hypothesis
    return ndtr(
        (lost - gained - n * max_loss)
        / np.sqrt(n * (2 * share + max_loss * (1 - max_loss)))
    )


def scores_and_errors(y_true, y_proba, promise, pos_label=None, labels=None):
    """Return the checked data, the score of each row that a threshold is put on, and whether accepting it is wrong."""
    kind = "top_label" if promise in ANSWERS and np.ndim(y_proba) == 2 else "auto"
    data = check_scored_labels(
        y_true, y_proba, multiclass=kind, pos_label=pos_label, labels=labels
    )
    if promise in ANSWERS:
        task = one_task(data, "top_label")
        return data, task.scores, ~task.labels
    check_one_event(data, f"promise={promise!r}")
    return data, data.scores, ~data.labels


def _by_order(data, promised, level):
    """Return the threshold of a promise about one class: an order statistic of its scores."""
    promise, target, scores = promised["promise"], promised["target"], data.scores
    is_recall = promise == "recall"
    own, limit = (
        np.sort(scores[data.labels == is_recall]),
        1 - target if is_recall else target,
    )
    name = "events" if is_recall else "rows without the event"
    exactness = _EXACT.format(
        reason=f"the threshold is an order statistic of the scores of the {name}"
    )
    if len(own) == 0:
        raise ValueError(
            f"y_true has no {name}: the {promise.replace('_', ' ')} cannot be seen on these rows."
        )
    most = most_errors(
        len(own), limit, level
    ).item()  # as many may lie on the wrong side of the threshold
    threshold = inf
    if most >= 0:
        above = scores if is_recall else scores[scores > own[-1 - most]]
        threshold = float(own[most] if is_recall else above.min(initial=inf))
    accepted = scores >= threshold
    wrong = (data.labels == is_recall) & (accepted != is_recall)
    return CertifiedThreshold(
        **promised,
        threshold=threshold,
        n_accepted=int(np.count_nonzero(accepted)),
        n_wrong=int(np.count_nonzero(wrong)),
        pvalue=float(bdtr(most, len(own), limit)) if threshold < inf else 1.0,
        n_needed=ceil(log(level) / log1p(-limit) * len(scores) / len(own))
        if most < 0
        else None,
        assumptions=(MODEL, INDEPENDENT_ROWS, FIXED, exactness),
    )


def _by_search(scores, wrong, limit, grid, start, promised, level):
    """Return the most lenient threshold that passes a binomial test."""
    of_all, at_number = (
        promised["promise"] == "answered_and_wrong",
        start is not None and np.ndim(start) == 0,
    )
    if of_all and start is not None:
        raise ValueError(
            "promise='answered_and_wrong' begins at the strictest threshold: leave start out."
        )
    if at_number:
        start = check_number(start, "start", at_least=0, at_most=1)
        grid = np.union1d(grid[grid < start], start)
    sets = AcceptedSets.from_rows(scores, wrong, grid)
    trials = np.full(len(grid), len(scores)) if of_all else np.maximum(sets.n_rows, 1)
    pvalue = np.where(
        sets.n_wrong <= trials * limit - 1 + _ROUNDING,
        bdtr(sets.n_wrong, trials, limit),
        1.0,
    )
    exactness = _EXACT.format(reason="the search begins where it was fixed beforehand")
    if start is None and not of_all:
        exactness = _GUIDED_EXACTNESS
    promised["assumptions"] = MODEL, INDEPENDENT_ROWS, FIXED, exactness
    starts = (
        [(0, level)]
        if of_all or at_number
        else _starts(sets, start, promised, limit, grid, level)
    )
    return certified(promised, sets, trials, pvalue, starts, limit)


def _starts(sets, other, promised, limit, grid, level):
    """Return two starts with their levels: the set that scores expect to pass, and the first that can."""
    n_rows, predicted = sets.n_rows, sets.predicted
    fewest = log((1 - _GUIDED) * level) / log1p(-limit)
    if other is not None:
        other = deciding_scores(other, promised["promise"], promised["column"])
        of_other = AcceptedSets.from_rows(other, np.zeros(len(other), dtype=bool), grid)
        n_rows, predicted = (
            np.rint(n_rows[-1] * (of_other.n_rows / len(other))).astype(np.int64),
            of_other.predicted,
        )
        fewest += 2 * fewest**0.5  # their number in these rows is not known beforehand
    enough = np.flatnonzero(n_rows >= fewest)
    return [
        (guided_start(n_rows, predicted, limit, _GUIDED * level), _GUIDED * level),
        (int(enough[0]) if len(enough) else None, (1 - _GUIDED) * level),
    ]


def check_thresholds(thresholds, *, below_one=False):
    """Return thresholds in increasing order, without repetition: numbers from 0 to 1.

    None is a grid for all data: steps of .001 from .1 to .9, and two digits of p below and of 1 - p above.
    """
    if thresholds is None:
        digits, unit = np.arange(10, 100), 10.0 ** np.arange(10, 2, -1)[:, None]
        thresholds = np.concatenate(
            (
                [0.0, 1.0],
                np.arange(100, 901) / 1000,
                *digits / unit,
                *(unit - digits) / unit,
            )
        )
    found = np.atleast_1d(as_numbers(thresholds, "thresholds"))
    if found.ndim != 1 or len(found) == 0:
        raise ValueError(
            f"thresholds must be a list of numbers, found the shape {found.shape}."
        )
    outside = ~((found >= 0) & ((found < 1) if below_one else (found <= 1)))
    if outside.any():
        entry, end = first_index(outside)[0], "below 1" if below_one else "at most 1"
        raise ValueError(
            f"thresholds must be at least 0 and {end}, but entry {entry} is {found[entry]:g}."
        )
    return np.unique(found)


class AcceptedSets(NamedTuple):
    """The rows at or above each threshold, from strict to lenient.

    `n_rows` and `n_wrong` count them, `predicted` is the mean of 1 - s among them (0 where there are none).
    """

    threshold: np.ndarray
    n_rows: np.ndarray
    n_wrong: np.ndarray
    predicted: np.ndarray

    @classmethod
    def from_rows(cls, scores, wrong, thresholds):
        """Sum up rows: scores (n,), whether something is wrong with each, thresholds in increasing order."""
        ordered, wrong = sorted_rows(scores, wrong)
        thresholds = thresholds[::-1]
        # In the precision of the scores, as `scores >= float(threshold)` compares them.
        first = np.searchsorted(ordered, thresholds.astype(scores.dtype))
        n_rows, n_wrong = (
            len(scores) - first,
            np.append(np.cumsum(wrong[::-1])[::-1], 0)[first],
        )
        predicted = np.append(np.cumsum(1 - ordered[::-1], dtype=np.float64)[::-1], 0)[
            first
        ]
        return cls(thresholds, n_rows, n_wrong, predicted / np.maximum(n_rows, 1))


def most_errors(n_rows, target, level):
    """Return the largest c with P(Bin(n_rows, target) <= c) <= level, -1 where there is none."""
    quantile = binom.ppf(level, n_rows, target)
    return np.where(
        bdtr(quantile, n_rows, target) <= level, quantile, quantile - 1
    ).astype(int)


def guided_start(n_rows, predicted, target, level):
    """Return the position of the largest set that is expected to pass with a power of .9, None if none can pass.

    Where no set has this power it is the one that has most. The power is Phi((c + 1/2 - n r) / sqrt(n r (1 - r))), c
    the largest number of errors that passes and r the mean of 1 - s. Labels have no say in it.
    """
    sizes, at = np.unique(np.maximum(n_rows, 1), return_inverse=True)
    most = np.minimum(most_errors(sizes, target, level), np.floor(sizes * target - 1))[
        at
    ]
    mean = n_rows * predicted
    spread = np.sqrt(np.maximum(mean * (1 - predicted), np.finfo(np.float64).tiny))
    power = np.where(
        (n_rows > 0) & (most >= 0), ndtr((most + 0.5 - mean) / spread), 0.0
    )
    if not power.any():
        return None
    return int(np.argmax(n_rows == n_rows[power >= min(_POWER, power.max())].max()))


def certified(promised, sets, trials, pvalue, starts, limit):
    """Return the most lenient of the tested thresholds that passes; see `most_lenient` for the starts."""
    best = most_lenient(pvalue, sets.n_rows, starts)
    if best is None:
        needed = rows_needed(
            promised["n_samples"],
            trials,
            sets.n_wrong,
            limit,
            min(level for _, level in starts),
        )
        return CertifiedThreshold(
            **promised,
            threshold=np.inf,
            n_accepted=0,
            n_wrong=0,
            pvalue=1.0,
            n_needed=needed,
        )
    seen = {
        "threshold": sets.threshold,
        "n_accepted": sets.n_rows,
        "n_wrong": sets.n_wrong,
        "pvalue": pvalue,
    }
    return CertifiedThreshold(
        **promised, **{name: values[best].item() for name, values in seen.items()}
    )


def most_lenient(pvalue, n_rows, starts):
    """Return the position of the most lenient threshold that passes, None if there is none.

    From each start, a pair of a position (or None) and a level, the sequence goes on while p-values are within the
    level. The first hypothesis that is false is tested at this level, whatever comes after it: nothing is corrected
    for the number of thresholds. Of thresholds that accept the same rows the strictest is returned.
    """
    best = None
    for start, level in starts:
        if start is not None:
            failed = np.flatnonzero(pvalue[start:] > level)
            last = start + (failed[0] if len(failed) else len(pvalue) - start) - 1
            if last >= start and n_rows[last] > (0 if best is None else n_rows[best]):
                best = start + int(np.argmax(n_rows[start:] == n_rows[last]))
    return best


def rows_needed(n_samples, trials, n_wrong, target, level):
    """Return about how many rows pass a test with the error rates seen here, None where no rate is below the target."""
    rate = (n_wrong + 0.5) / (trials + 1)  # a few rows without an error say little
    below = (trials > 0) & (rate < target)
    if not below.any():
        return None
    fewest = np.log(level) / np.log1p(-target)
    needed = np.maximum(
        fewest, ndtri(level) ** 2 * target * (1 - target) / (target - rate[below]) ** 2
    )
    return max(n_samples + 1, int(np.ceil(np.min(needed * n_samples / trials[below]))))
