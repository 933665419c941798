"""Scores on other scales than that of probabilities."""

import numpy as np
from scipy.special import expit, softmax

SCALES = ("percent", "probability", "logit", "odds", "decimal-odds")


def probabilities_on(scale, scores, name):
    """Return scores on a scale as probabilities.

    Parameters
    ----------
    scale : {"percent", "probability", "logit", "odds", "decimal-odds"}
        What the scores are: odds are p / (1 - p), decimal odds 1 / p.
    scores : ndarray of shape (n,) or (n, K)
        Scores of the event, or of K classes. NaN stays NaN.
    name : str
        The user's name of the scores, for messages.

    Returns
    -------
    probabilities : ndarray of the shape of `scores`
        Rows of K logits sum to 1, others as the scores have it.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scale == "percent":
        return scores / 100
    if scale == "logit":
        return softmax(scores, axis=1) if scores.ndim == 2 else expit(scores)
    if scale == "odds":
        _refuse_below(scores, 0, "odds", name)
        return 1 - 1 / (1 + scores)
    if scale == "decimal-odds":
        _refuse_below(scores, 1, "decimal odds", name)
        return 1 / scores
    return scores


def _refuse_below(scores, least, what, name):
    """Raise if a score is below the least one that is possible on its scale."""
    is_below = scores < least
    if not is_below.any():
        return
    row = int(np.argwhere(is_below)[0, 0])
    value = scores[is_below][0]
    raise ValueError(
        f"{name} must be {what} of {least} or more, but row {row} is {value:.6g}."
    )
