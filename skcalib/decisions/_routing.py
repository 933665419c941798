"""When a small model may answer in place of a large one."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, ndtr
from scipy.stats import binom

from skcalib._input.classes import zero_one
from skcalib._input.labels import check_label_vector
from skcalib._input.scalars import check_confidence_level, check_number
from skcalib.decisions._certified import CertifiedThreshold, deciding_scores
from skcalib.decisions._cluster_bets import bet_pvalue, log_wealths
from skcalib.decisions._search import (
    AcceptedSets,
    Guarantee,
    Start,
    check_thresholds,
    most_lenient,
    rows_needed,
)
from skcalib.decisions._tests_of_sets import DecidedRows
from skcalib.decisions._threshold_search import (
    CLUSTERED,
    FIXED,
    found_at,
    none_found,
)
from skcalib.guarantees._certificate import INDEPENDENT_ROWS

_MODELS = (
    "Both models and the confidence were fitted to other data, and both models answered"
    " every sample."
)
_EXACT = (
    "The guarantee is exact for any number of samples and any distribution: it uses the"
    " unconditional p-value of the score statistic, the largest over all possible"
    " shares of samples that only the small model answers correctly."
)
_EXACT_CLUSTERS = (
    "The guarantee is exact for any number of clusters and any dependence within them:"
    " it uses betting against the losses of the clusters."
)
# A row is *lost* if only the large model answers it correctly, *gained* if only the
# small one does. The largest p-value over all shares of gains is computed on a grid of
# 0 and this number of shares from _FEWEST_GAINS up, then on a finer one around the
# worst.
_N_SHARES = 60
_FEWEST_GAINS = 1e-5
_N_BETWEEN = 15
_BETWEEN_SHARES = 2e-4  # allowance for a larger p-value between shares of the grid
_TIED = 1e-12  # difference of score statistics by rounding


def certified_routing(
    correct_small: ArrayLike,
    correct_large: ArrayLike,
    confidence: ArrayLike,
    *,
    max_loss: float,
    confidence_level: float = 0.9,
    thresholds: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
) -> CertifiedThreshold:
    r"""Find the confidence at or above which a small model may answer alone.

    Parameters
    ----------
    correct_small, correct_large : array-like of bool, shape (n,)
        Whether each model's answer is correct, on the same samples.
    confidence : array-like of shape (n,)
        Confidence of the small model, in [0, 1], which need not be calibrated.
    max_loss : float
        Largest loss of accuracy compared with the large model alone, strictly between 0
        and 1.
    confidence_level : float, default=0.9
        Probability with which the guarantee holds, in (0, 1).
    thresholds : array-like of float, default=None
        Candidate thresholds, fixed beforehand; None means the grid of
        `certified_threshold`.
    clusters : array-like of shape (n,), default=None
        Cluster of each sample; samples in the same cluster, such as questions about one
        document, may be dependent. The tests then use whole clusters, and many clusters
        are required.

    Returns
    -------
    certified : CertifiedThreshold
        The threshold, with the guarantee "routing": `accepted` is the share of samples
        that the small model answers, `n_wrong` is the net number of correct answers
        lost, and ``accepts(confidence)`` indicates which samples the small model
        answers.

    Raises
    ------
    ValueError
        If arguments differ in length, an answer is neither correct nor wrong, a
        confidence is outside [0, 1], or a number is out of range.

    See Also
    --------
    skcalib.decisions.certified_threshold : Limits the errors of one model.
    skcalib.decisions.certified_abstention : Abstains instead of using a large model.

    Notes
    -----
    At each threshold, let a be the number of correct answers that are lost if the small
    model answers (it is wrong and the large model is correct), and b the number that
    are gained. Let the loss D of a sample be +1, 0 or -1. In the score statistic of the
    hypothesis that D has mean :math:`\epsilon`, the variance is evaluated at the most
    likely share q of gains under the hypothesis [1]_:

    .. math:: z = \frac{a - b - n \epsilon}{\sqrt{n (2 q + \epsilon (1 - \epsilon))}}, \quad
       q = \frac{\sqrt{B^2 - 4 A C} - B}{2 A}, \quad A = 2 n,

    :math:`B = (2 n - a + b) \epsilon - a - b`, :math:`C = -b \epsilon (1 - \epsilon)`.
    The p-value from the normal approximation is too small for small samples: with 163
    samples and no loss, it is .0997 at :math:`\epsilon` = .01, where the exact p-value
    is .194. This function therefore uses the exact p-value: the largest probability,
    over all shares of gains, of a statistic no larger than z. The maximum is taken over
    76 shares, and .0002 is added for the shares in between.

    Thresholds are tested from strict to lenient, and the last threshold that passes is
    used. No correction for their number is needed. With `clusters`, the p-value is
    based on bets on the clusters' sums of :math:`D - \epsilon`; see
    `certified_threshold`.

    References
    ----------
    .. [1] Tango (1998), Equivalence test and confidence interval for the difference in
        proportions for the paired-sample design.

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
    """  # noqa: E501
    max_loss = check_number(max_loss, "max_loss", above=0, below=1)
    level = 1 - check_confidence_level(confidence_level)
    scores = deciding_scores(confidence, "routing")
    small = _answers(correct_small, "correct_small", len(scores))
    large = _answers(correct_large, "correct_large", len(scores))
    grid = check_thresholds(thresholds)
    # 1. For each threshold, the numbers of answers that are lost and gained if the
    # small model answers at or above it: lost where only the large model is right,
    # gained where only the small one is.
    rows = DecidedRows.checked(scores, large & ~small, clusters)
    lost = rows.sets(grid)
    gained = AcceptedSets.from_rows(scores, small & ~large, grid)
    n_wrong = lost.n_wrong - gained.n_wrong
    # 2. The p-value of each threshold: that more is lost on balance than `max_loss`.
    independent = INDEPENDENT_ROWS
    exactness = _EXACT
    if rows.clusters is None:
        pvalue = _pvalues(lost.n_wrong, gained.n_wrong, len(scores), max_loss, level)
    else:
        # 1 for a lost answer, -1 for one that is gained, else 0.
        loss = rows.is_error.astype(np.int64) - (small & ~large)
        pvalue = _cluster_pvalues(rows, lost, loss, max_loss)
        independent = CLUSTERED.format(most=rows.clusters.sizes.max())
        exactness = _EXACT_CLUSTERS
    fields = {
        "promise": "routing",
        "target": max_loss,
        "confidence_level": float(confidence_level),
        "n_samples": len(scores),
        "n_clusters": rows.n_clusters,
        "assumptions": (_MODELS, independent, FIXED, exactness),
    }
    # 3. One sequence of tests, from the strictest threshold on at the whole level.
    best = most_lenient(pvalue, lost.n_rows, [Start(0, level)])
    if best is not None:
        return found_at(fields, lost, best, [int(n_wrong[best])], float(pvalue[best]))
    # 4. Without a threshold: why, and how many rows would be enough.
    trials = np.full(len(n_wrong), len(scores))
    n_needed = rows_needed(len(scores), [(trials, n_wrong, max_loss)], level)
    # No number is sufficient if the observed rates themselves miss the target.
    reason = "rates" if n_needed is None else "margin"
    if pvalue[0] > level:
        # The tests begin where the small model answers nothing, and nothing is lost.
        reason = "few_rows"
    return none_found(fields, [Guarantee("routing", max_loss)], reason, n_needed)


def _answers(correct, name, n_rows):
    """Return whether each answer is correct as booleans (n_rows,), or raise an error
    that names the argument.
    """
    correct = check_label_vector(correct, n_rows, name=name, scores_name="confidence")
    is_correct = zero_one(correct)
    if is_correct is None:
        raise ValueError(f"{name} must be booleans, or 0 (wrong) and 1 (correct).")
    return is_correct


def score_statistic(lost, gained, n, max_loss):
    """Return the score statistic (Tango 1998, Statistics in Medicine 17) of the
    hypothesis that the mean loss is `max_loss`: negative if the observed loss is
    smaller, and about standard normal under the hypothesis.

    `lost` and `gained` are numbers of lost and gained answers among n; they may be
    arrays of one shape, which the result has, too.
    """
    # Under the hypothesis, a share q of the answers is gained, r = q + max_loss is
    # lost, and the rest 1 - q - r is the same. The likelihood is q^gained r^lost times
    # the power n - gained - lost of this rest. It is largest at the positive root of
    # 2 n q^2 + linear q - constant = 0.
    linear = (2 * n - (lost - gained)) * max_loss - (lost + gained)
    constant = gained * max_loss * (1 - max_loss)
    gain_share = (np.sqrt(linear**2 + 8 * n * constant) - linear) / (4 * n)
    # The loss of an answer is 1, 0 or -1. Its square has the mean 2 q + max_loss, so
    # that its variance is 2 q + max_loss - max_loss^2; here times n.
    variance = n * (2 * gain_share + max_loss * (1 - max_loss))
    return (lost - gained - n * max_loss) / np.sqrt(variance)


def unconditional_pvalue(statistic, n, max_loss):
    """Return the largest probability, over all shares of gains, of a score statistic at
    most this large if the mean loss is `max_loss`.

    A share of gains q fixes the share of losses, q + max_loss. The number of gains is
    binomial, and so is the number of losses among the other samples. Larger mean losses
    need not be considered: they make small statistics less probable, because the
    statistic increases with losses and decreases with gains (Barnard's convexity).
    """
    # Shares of gains and losses, q and q + max_loss, are at most 1 together.
    largest_share = (1 - max_loss) / 2
    grid = np.geomspace(_FEWEST_GAINS, largest_share, _N_SHARES)
    shares = np.append(0.0, grid)
    chances = [_chance(share, statistic, n, max_loss) for share in shares.tolist()]
    # Once more between the neighbours of the worst share.
    worst = int(np.argmax(chances))
    below = shares[max(worst - 1, 0)]
    above = shares[min(worst + 1, _N_SHARES)]
    between = np.linspace(below, above, _N_BETWEEN + 2)[1:-1]
    chances += [_chance(share, statistic, n, max_loss) for share in between.tolist()]
    # The largest probability may lie between two shares that were tried: a margin.
    return min(max(chances) + _BETWEEN_SHARES, 1.0)


def _chance(share, statistic, n, max_loss):
    """Return the probability of a score statistic of at most this value for n answers,
    if the share of gains is `share` and that of losses `share` + `max_loss`.
    """
    # Numbers of gains within eight standard deviations: others do not occur.
    spread = 8 * np.sqrt(n * share * (1 - share)) + 8
    first = max(0, int(n * share - spread))
    last = min(n, int(n * share + spread) + 1)
    gained = np.arange(first, last + 1)
    # For each number of gains, the statistic is small enough up to a number of losses.
    # Given the gains, the losses are binomial among the other answers.
    most_lost = _most_lost(statistic, gained, n, max_loss)
    loss_share = min((share + max_loss) / (1 - share), 1.0)
    probability_given_gains = bdtr(np.maximum(most_lost, 0), n - gained, loss_share)
    probability_given_gains[most_lost < 0] = 0.0
    return float(binom.pmf(gained, n, share) @ probability_given_gains)


def _most_lost(statistic, gained, n, max_loss):
    """Return the largest numbers of losses (m,), by bisection, for which the
    `score_statistic`, which grows with them, is at most `statistic`; -1 if it is larger
    even without a loss.
    """
    low = np.full(len(gained), -1)
    high = n - gained
    while np.any(low < high):
        middle = (low + high + 1) // 2
        statistic_there = score_statistic(middle, gained, n, max_loss)
        is_small = statistic_there <= statistic + _TIED
        low = np.where(is_small, middle, low)
        high = np.where(is_small, high, middle - 1)
    return low


def _pvalues(lost, gained, n, max_loss, level):
    """Return the p-value of each set of answers, (n_sets,): exact where it decides
    whether a set passes at `level`, else normal. `lost` and `gained` (n_sets,) count
    the right answers, among n rows, that a set loses and gains.

    The exact one grows with the statistic; bisection finds the critical one among those
    whose normal p-value passes.
    """
    statistic = score_statistic(lost, gained, n, max_loss)
    pvalue = ndtr(statistic)
    candidates = np.unique(statistic[pvalue <= level])
    # How many of the candidates pass lies between these two numbers.
    fewest_passing = 0
    most_passing = len(candidates)
    exact = {}  # the exact p-values that were computed, by statistic
    while fewest_passing < most_passing:
        middle = (fewest_passing + most_passing) // 2
        exact_pvalue = unconditional_pvalue(candidates[middle], n, max_loss)
        exact[candidates[middle]] = exact_pvalue
        if exact_pvalue <= level:
            fewest_passing = middle + 1
        else:
            most_passing = middle
    if fewest_passing < len(candidates):
        # These sets do not pass; how far their p-values are above the level does not
        # matter.
        pvalue[statistic >= candidates[fewest_passing]] = 1.0
    # The last set before the first failure is the result: its p-value, which is
    # printed, must be exact.
    failed = np.flatnonzero(pvalue > level)
    n_passed = failed[0] if len(failed) else len(pvalue)
    last_passed = n_passed - 1
    if last_passed >= 0:
        reported = exact.get(statistic[last_passed])
        if reported is None:
            reported = unconditional_pvalue(statistic[last_passed], n, max_loss)
        pvalue[statistic == statistic[last_passed]] = reported
    return pvalue


def _cluster_pvalues(rows, sets, loss, max_loss):
    """Return, for samples in clusters, the p-value of each set of answers, (n_sets,),
    for the hypothesis that the mean loss is at least `max_loss` if the small model
    answers the set: by bets against the clusters' sums of losses.

    `loss` (n,) of the small model's answer is 1 where it alone is wrong, -1 where the
    large one alone is, else 0; samples outside of a set lose nothing.
    """
    clusters = rows.clusters
    largest = int(clusters.sizes.max())
    # Sets are nested: those with the same number of rows are equal, and tested once, at
    # the position of the first of them.
    _, first, number = np.unique(sets.n_rows, return_index=True, return_inverse=True)
    pvalues = []
    for position in first.tolist():
        accepted = rows.scores >= sets.threshold[position].astype(rows.scores.dtype)
        # The loss of each cluster beyond the limit.
        excess = clusters.totals(accepted * loss) - max_loss * clusters.sizes
        # the logarithm of what bets of several sizes would have won against the
        # hypothesis, (n_bets,)
        log_wealth = log_wealths(excess, largest, max_loss)
        pvalues.append(bet_pvalue(log_wealth))
    return np.array(pvalues)[number]
