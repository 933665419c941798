"""The loss that is left after recalibration."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from skcalib._errors.proper_scores import LOSSES
from skcalib._fitting.gains import Design
from skcalib._fitting.wrapped import check_recalibrator
from skcalib._input.annotations import CrossValidation
from skcalib._input.scalars import check_option
from skcalib._input.scored_labels import check_scored_labels
from skcalib.evaluation._cross_validate import cross_fits
from skcalib.recalibrators import StackedRecalibrator


def refinement_loss(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    loss: Literal["log", "brier"] = "log",
    recalibrator: BaseEstimator | None = None,
    cv: CrossValidation | None = 5,
    sample_weight: ArrayLike | None = None,
    pos_label: int | float | bool | str | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Loss that remains after recalibration, which only a better model can reduce.

    A proper score is the sum of a calibration error, which recalibration removes, and
    the refinement loss. If a model will be recalibrated anyway, use the refinement loss
    for model selection and early stopping.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1] for data to which the model was not fitted.
    loss : {"log", "brier"}, default="log"
        "log" is the log-loss, in nats, of probabilities clipped to [2^-52, 1 - 2^-52];
        "brier" is (s - y)^2 for two classes, and its sum over the classes if there are
        more.
    recalibrator : estimator, default=None
        An object with ``fit(scores, y)`` and ``predict_proba(scores)``; None means
        ``StackedRecalibrator()``.
    cv : int, splitter, iterable of (train, test) or None, default=5
        Folds in which every sample is predicted once, as in `recalibration_gain`. None
        fits the recalibrator to the same samples on which it is evaluated. This option
        suits a map with one parameter, such as ``TemperatureScaling``, for comparing
        epochs: the optimism is the same in each epoch, and folds would only add noise.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights: a sample with weight 2 counts twice.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    loss : float
        Mean loss of the recalibrated probabilities, at least 0.

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], or weights are negative or all zero. Also raised
        if the splitter does not put each sample into exactly one test fold.
    TypeError
        If `recalibrator` does not have `fit` and `predict_proba`.

    See Also
    --------
    skcalib.evaluation.recalibration_gain : The calibration part, with an interval.
    skcalib.metrics.log_loss_decomposition : Decomposition of the log-loss by bins.

    Notes
    -----
    The refinement loss is the smallest loss over all maps of the scores. The smallest
    loss over the maps of one recalibrator is at least as large, so the result is an
    upper bound on the refinement loss, and the gain is a lower bound on the calibration
    error. Isotonic and stacked maps overfit with ``cv=None``.

    References
    ----------
    Berta, Holzmüller, Jordan and Bach (2025), Rethinking early stopping: refine, then
    calibrate.

    Examples
    --------
    Overconfident forecasts, whose log-odds are twice what they should be, rank the
    samples as well as the true probabilities, and have the same loss after
    recalibration:

    >>> import numpy as np
    >>> from skcalib import TemperatureScaling
    >>> from skcalib.evaluation import refinement_loss
    >>> from sklearn.metrics import log_loss
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(2000)
    >>> y = rng.random(2000) < truth
    >>> stretched = truth**2 / (truth**2 + (1 - truth) ** 2)
    >>> round(log_loss(y, truth), 3), round(log_loss(y, stretched), 3)
    (0.49, 0.553)
    >>> round(refinement_loss(y, stretched, recalibrator=TemperatureScaling()), 3)
    0.49
    """
    check_option(loss, "loss", tuple(LOSSES))
    data = check_scored_labels(
        y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label, labels=labels
    )
    if cv is None:  # one fit, to all samples
        all_samples = np.arange(len(data.scores))
        cv = [(all_samples, all_samples)]
    if recalibrator is None:
        recalibrator = StackedRecalibrator()
    fits = cross_fits(data.copied(), cv, Design(data.sample_weight))
    candidate = fits.candidate(check_recalibrator(recalibrator))
    return fits.mean_loss(candidate, loss)
