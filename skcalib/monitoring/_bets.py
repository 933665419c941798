"""Bets against scores: probabilities moved or stretched on the log-odds, and what they win."""

from itertools import product

import numpy as np

from skcalib._rows.links import clip_probability

_SHIFTS = (0.0, 0.13, -0.13, 0.4, -0.4, 1.2, -1.2)
_SLOPES = (1.0, 0.6, 1.5)
# A bet predicts the event with probability expit(slope z + shift), z the log-odds of the score.
_BETS = np.array([bet for bet in product(_SLOPES, _SHIFTS) if bet != (1.0, 0.0)]).T
N_BETS = _BETS.shape[1]


def log_likelihood_ratios(scores, events):
    """Return the log likelihood ratio of each bet against the score, in each row.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores in [0, 1].
    events : ndarray of bool, shape (n,)
        Whether the event happened.

    Returns
    -------
    ratios : ndarray of shape (n, `N_BETS`)
        Their exponentials have the expectation 1 where the scores are calibrated.
    """
    clipped = clip_probability(scores)
    sign = 1.0 - 2.0 * events
    against = sign * (np.log(clipped) - np.log1p(-clipped))  # minus the log-odds of what happened
    # log(q / p) = log(1 + exp(against)) - log(1 + exp(against of the bet))
    of_bets = against[:, None] * _BETS[0]
    of_bets += sign[:, None] * _BETS[1]
    np.exp(of_bets, out=of_bets)
    np.log1p(of_bets, out=of_bets)
    return np.subtract(np.log1p(np.exp(against))[:, None], of_bets, out=of_bets)
