"""When a small model may answer instead of a large one: a threshold of its confidence with a promise."""

import numpy as np
from scipy.special import ndtr

from skcalib._input.labels import check_label_vector, zero_one
from skcalib._input.scalars import check_confidence_level, check_number
from skcalib.decisions._certified import FIXED, CertifiedThreshold, deciding_scores
from skcalib.decisions._thresholds import AcceptedSets, check_thresholds, default_thresholds, most_lenient, rows_needed
from skcalib.guarantees._certificate import INDEPENDENT_ROWS

_MODELS = "Both models and the confidence were made on other rows, and both models were asked on each row."
_ASYMPTOTIC = (
    "Asymptotic: by the score test. Simulated, a level of .1 is at most .11 from 20 / max_loss rows on (here "
    "{needed:,.0f}; there are {n:,}), and at most .13 with fewer."
)


def certified_routing(correct_small, correct_large, confidence, *, max_loss, confidence_level=0.9, thresholds=None):
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
    small = _answers(correct_small, len(scores), "correct_small")
    large = _answers(correct_large, len(scores), "correct_large")
    grid = default_thresholds() if thresholds is None else check_thresholds(thresholds)
    n = len(scores)
    lost = AcceptedSets.from_rows(scores, large & ~small, grid)
    gained = AcceptedSets.from_rows(scores, small & ~large, grid)
    net = lost.n_wrong - gained.n_wrong
    pvalue = _score_pvalue(lost.n_wrong, gained.n_wrong, n, max_loss)
    best = most_lenient(pvalue, lost.n_rows, [(0, level)])
    at = (0, 0, 1.0) if best is None else (lost.n_rows[best].item(), net[best].item(), pvalue[best].item())
    return CertifiedThreshold(
        threshold=np.inf if best is None else float(grid[::-1][best]),
        promise="routing",
        target=max_loss,
        confidence_level=float(confidence_level),
        n_samples=n,
        n_accepted=at[0],
        n_wrong=at[1],
        pvalue=at[2],
        assumptions=(_MODELS, INDEPENDENT_ROWS, FIXED, _ASYMPTOTIC.format(needed=np.ceil(20 / max_loss), n=n)),
        n_needed=rows_needed(n, np.full(len(net), n), net, max_loss, level) if best is None else None,
    )


def _answers(correct, n_samples, name):
    found = zero_one(check_label_vector(correct, n_samples, name=name, scores_name="confidence"))
    if found is None:
        raise ValueError(f"{name} must be booleans, or 0 (wrong) and 1 (correct).")
    return found


def _score_pvalue(lost, gained, n, max_loss):
    """Return the p-value of "the mean loss is at least `max_loss`" (Tango 1998)."""
    linear = (2 * n - (lost - gained)) * max_loss - (lost + gained)
    constant = gained * max_loss * (1 - max_loss)
    share = (np.sqrt(linear**2 + 8 * n * constant) - linear) / (4 * n)  # of gains, under the hypothesis
    return ndtr((lost - gained - n * max_loss) / np.sqrt(n * (2 * share + max_loss * (1 - max_loss))))
