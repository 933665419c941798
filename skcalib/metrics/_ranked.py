"""The ranked probability score of classes that have an order, and its parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skcalib._cells.device_columns import DeviceColumns
from skcalib._cells.tasks import BinaryTask
from skcalib._input.device_scores import DeviceLabels, DeviceScores
from skcalib._input.labels import shown
from skcalib._input.scored_labels import check_scored_labels
from skcalib.binning import BaseBinning, PoolAdjacentViolators, check_binning
from skcalib.metrics._decomposition import (
    ScoreDecomposition,
    decomposed,
    expected_brier,
)


def ranked_probability_score(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    order: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Ranked probability score of classes that have an order, a proper score.

    For classes such as grades, stages or ratings, a forecast that misses by one class
    is better than one that misses by three. The score is the sum of the Brier scores of
    the K - 1 events "the class is above k". Smaller values are better.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1], with one column per class; each row sums to 1.
    order : array-like of shape (K,), default=None
        The labels from the lowest to the highest class. None means ascending numbers;
        it is required for more than two labels that are not numbers.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights: a sample with weight 2 counts twice.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    score : float
        Mean over samples, in [0, K - 1]. Divide by K - 1 for the normalised score. For
        two classes, it is the Brier score.

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], rows do not sum to 1, weights are negative or all
        zero, or `order` does not name each label once.

    See Also
    --------
    skcalib.metrics.ranked_probability_decomposition : Miscalibration, discrimination
        and uncertainty of this score.
    skcalib.metrics.get_scorer : The scorer "neg_ranked_probability_score".

    References
    ----------
    Epstein (1969), A scoring system for probability forecasts of ranked categories.
    Murphy (1971), A note on the ranked probability score.

    Examples
    --------
    A patient in stage 2 of 3. The cumulative probabilities .2 and .7 are compared with
    0 and 1: ``.2^2 + .3^2``.

    >>> from skcalib.metrics import ranked_probability_score
    >>> round(ranked_probability_score([2], [[0.2, 0.5, 0.3]], labels=[1, 2, 3]), 2)
    0.13

    Words are sorted alphabetically, so their order is given. The columns stay sorted:

    >>> y_proba = [[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]]  # high, low, medium
    >>> round(
    ...     ranked_probability_score(
    ...         ["medium", "low"],
    ...         y_proba,
    ...         labels=["high", "low", "medium"],
    ...         order=["low", "medium", "high"],
    ...     ),
    ...     3,
    ... )
    0.45
    """
    data = check_scored_labels(
        y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label, labels=labels
    )
    if isinstance(data.scores, DeviceScores):
        losses = _losses_on_device(data, order)
        return float(np.average(losses, weights=data.sample_weight))
    score = 0.0
    for task in _tasks_above(data, order):
        losses = (task.scores - task.labels) ** 2
        score += np.average(losses, weights=task.sample_weight)
    return float(score)


def ranked_probability_decomposition(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    order: ArrayLike | None = None,
    binning: BaseBinning | int | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> ScoreDecomposition:
    """Decompose the ranked probability score of classes that have an order.

    The score is miscalibration - discrimination + uncertainty. Each part is the sum of
    the parts of the Brier scores of the K - 1 events "the class is above k". With
    isotonic blocks (CORP, the default), they add up to `ranked_probability_score`; with
    other bins, to the score of the bin means.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1], with one column per class; each row sums to 1.
    order : array-like of shape (K,), default=None
        The labels from the lowest to the highest class. None means ascending numbers;
        it is required for more than two labels that are not numbers.
    binning : BaseBinning, int or None, default=None
        Binning strategy for each of the K - 1 events; an int is the number of
        equal-mass bins, and None means ``PoolAdjacentViolators()``.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights: a sample with weight 2 counts twice.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    decomposition : ScoreDecomposition
        `miscalibration`, `discrimination` and `uncertainty`, in this order when
        unpacked, and the `score` that they add up to.

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], rows do not sum to 1, weights are negative or all
        zero, or `order` does not name each label once.

    See Also
    --------
    skcalib.metrics.ranked_probability_score : The score itself.
    skcalib.metrics.brier_decomposition : The same decomposition for one event.

    Notes
    -----
    Each event is recalibrated by itself, so the recalibrated probabilities need not be
    those of one distribution over the classes.

    References
    ----------
    Candille and Talagrand (2005), Evaluation of probabilistic prediction systems for a
    scalar variable. Dimitriadis, Gneiting and Jordan (2021), Stable reliability
    diagrams for probabilistic classifiers.

    Examples
    --------
    Overconfident forecasts of four grades: the log-odds are twice what they should be.

    >>> import numpy as np
    >>> from skcalib.metrics import ranked_probability_decomposition
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet([1, 2, 2, 1], size=2000)
    >>> grade = (rng.random((2000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    >>> overconfident = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    >>> parts = ranked_probability_decomposition(grade, overconfident)
    >>> [round(part, 2) for part in parts]
    [0.02, 0.09, 0.52]
    """
    strategy = check_binning(binning, PoolAdjacentViolators())
    data = check_scored_labels(
        y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label, labels=labels
    )
    parts = np.zeros(3)
    for task in _tasks_above(data, order):
        parts += decomposed(expected_brier, task, strategy)
    name = "Ranked probability score"
    if not isinstance(strategy, PoolAdjacentViolators):
        name += " of the bin means"
    return ScoreDecomposition(*parts.tolist())._named(name)


def _tasks_above(data, order):
    """Yield the `BinaryTask` of the event "the class is above k" for each class k but
    the highest, from the lowest on, for validated `ScoredLabels`.
    """
    columns = _columns_in_order(data.classes, order)
    if data.is_binary:
        # The parts are the same for either class.
        scores = data.scores.astype(np.float64)
        yield BinaryTask(scores, data.labels, data.sample_weight)
        return
    if isinstance(data.scores, DeviceScores) and data.scores.has_float64:
        yield from _tasks_on_device(data, columns)
        return
    rank_of_label = _ranks(columns)[data.labels]
    above = 1.0
    for k, column in enumerate(columns[:-1]):
        # Rounding of the sum may lead out of [0, 1] by little.
        above = above - data.scores[:, column].astype(np.float64)
        scores = np.clip(above, 0, 1)
        yield BinaryTask(scores, rank_of_label > k, data.sample_weight)


def _tasks_on_device(data, columns):
    """Yield the tasks of `_tasks_above` for `DeviceScores`, which stay on their
    device.
    """
    scores = data.scores
    xp = scores.xp
    rank_of_label = scores.moved(_ranks(columns)[data.labels])[:, None]
    above = 1.0
    for k, column in enumerate(columns[:-1].tolist()):
        probability = scores.columns(slice(column, column + 1))  # (n, 1)
        above = above - xp.astype(probability, scores.sum_dtype)
        is_above = xp.astype(rank_of_label > k, scores.sum_dtype)
        event = data._replace(
            scores=scores.with_values(xp.clip(above, 0, 1)),
            labels=DeviceLabels(xp, scores.device, is_above),
        )
        yield from DeviceColumns(event).tasks()


def _losses_on_device(data, order):
    """Return the score of each sample (n,), for `ScoredLabels` of classes whose scores
    are `DeviceScores`.
    """
    scores = data.scores
    xp = scores.xp
    columns = _columns_in_order(data.classes, order)
    rank_of_label = scores.moved(_ranks(columns)[data.labels])
    lower = xp.asarray(columns[:-1], device=scores.device)  # all but the highest class
    ranks = scores.moved(np.arange(len(columns) - 1))

    def of_block(block, rows):
        """Return the scores (m,) of a block of samples: the squared distance of both
        distribution functions, summed over the classes.
        """
        ordered = xp.astype(xp.take(block, lower, axis=1), scores.sum_dtype)
        above = xp.clip(1 - xp.cumulative_sum(ordered, axis=1), 0, 1)
        is_above = xp.astype(rank_of_label[rows, None] > ranks, scores.sum_dtype)
        return xp.sum((above - is_above) ** 2, axis=1)

    return scores.per_row(of_block)


def _ranks(columns):
    """Return the rank (K,) of the class of each column, for the columns in order."""
    ranks = np.empty(len(columns), dtype=np.intp)
    ranks[columns] = np.arange(len(columns))
    return ranks


def _columns_in_order(classes, order):
    """Return the columns of the classes (K,) from the lowest to the highest class, by
    the user's `order` of the labels; None takes numbers in their order.
    """
    if order is None:
        if len(classes) > 2 and not isinstance(classes.tolist()[0], (int, float)):
            raise ValueError(
                f"The order of the labels {shown(classes)} is unknown: pass order=, the"
                " labels from the lowest to the highest."
            )
        return np.arange(len(classes))
    position = {label: k for k, label in enumerate(classes.tolist())}
    named = np.asarray(order).tolist()
    if set(named) != set(position) or len(named) != len(position):
        raise ValueError(
            f"order must name each of the labels {shown(classes)} once, found"
            f" {named!r}."
        )
    return np.array([position[label] for label in named])
