"""Labels that are distributions, as weighted rows with labels."""

import numpy as np

from skcalib._input.scores import check_scores
from skcalib._input.tensors import as_array
from skcalib._input.weights import check_sample_weight


def expand_soft_labels(scores, soft_labels, sample_weight=None):
    """Return rows of one label each, with weights, for labels that are given as distributions.

    A row that three of four annotators call an event becomes two rows with the same score: an event with weight .75
    and a non-event with weight .25. Any `fit`, metric or display takes the three arrays.

    Parameters
    ----------
    scores : array-like of shape (n,) or (n, K)
        Scores: probabilities or logits.
    soft_labels : array-like of shape (n,), (n, 2) or (n, K)
        The distribution of each row's label: the probability of the event, or one column for each class. Rows sum to 1.
    sample_weight : array-like of shape (n,), default=None
        Weights of the rows.

    Returns
    -------
    scores : ndarray of shape (m,) or (m, K)
        The scores, repeated for each label of positive probability.
    y : ndarray of int, shape (m,)
        Labels: column numbers of `soft_labels`, 0 and 1 for an event.
    sample_weight : ndarray of float64, shape (m,)
        The weight of each row times the probability of its label.

    Raises
    ------
    ValueError
        For distributions that do not sum to 1, or of another shape than the scores.

    See Also
    --------
    skcalib.TemperatureScaling : A fit to such rows.
    skcalib.metrics.calibration_error : A metric of such rows.

    Notes
    -----
    Estimates and fits are those of the distributions. The rows of one distribution are not independent, so that
    intervals and tests of the expanded rows need ``clusters``: ``np.arange(n)``, repeated as often as each row is.

    Examples
    --------
    Three rows, the second with annotators who disagree:

    >>> from skcalib import PlattScaling, expand_soft_labels
    >>> scores, y, weight = expand_soft_labels([0.2, 0.6, 0.9], [0.0, 0.75, 1.0])
    >>> y.tolist(), weight.tolist()
    ([0, 0, 1, 1], [1.0, 0.25, 0.75, 1.0])
    >>> PlattScaling().fit(scores, y, sample_weight=weight).classes_.tolist()
    [0, 1]
    """
    scores, _ = as_array(scores)
    soft = check_scores(soft_labels, name="soft_labels")
    if len(soft) != len(scores):
        raise ValueError(f"soft_labels has {len(soft)} rows but scores has {len(scores)}: their lengths must agree.")
    soft = soft.astype(np.float64)
    soft = np.column_stack((1 - soft[:, 0], soft[:, 0])) if soft.shape[1] == 1 else soft
    n_columns = scores.shape[1] if scores.ndim == 2 else 1
    if soft.shape[1] != max(n_columns, 2):
        raise ValueError(f"soft_labels has {soft.shape[1]} classes but the scores have {max(n_columns, 2)}.")
    weight = check_sample_weight(sample_weight, len(scores))
    row, label = np.nonzero(soft)
    value = soft[row, label] * (1.0 if weight is None else weight[row])
    return scores[row], label, value
