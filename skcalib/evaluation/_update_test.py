"""Which update of a model's probabilities pays: a closed test of nested models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2

from skcalib._cells.reductions import one_task
from skcalib._inference.results import ResultTable
from skcalib._input.columns import numeric_columns
from skcalib._input.scored_labels import check_one_event, check_scored_labels
from skcalib._input.warn import warn
from skcalib._rows.links import log_odds
from skcalib._solvers.logistic import fit_logistic, location_scale, logistic_loss
from skcalib._verdicts import pvalue_words
from skcalib.metrics._slope import not_estimable

_LEVEL = 0.05  # of the closed test
_EVENTS_PER_COEFFICIENT = 10
# The advice to take each step, by its name.
_ADVICE = {
    "none": "Keep the probabilities as they are",
    "intercept": "Update the intercept alone",
    "slope": "Update the intercept and the slope",
    "features": "Update the intercept, the slope and the feature coefficients",
}
# What the last step does, where a simpler one is chosen.
_LAST_STEP = {
    "slope": "updating the intercept and the slope",
    "features": "updating the intercept, the slope and the feature coefficients",
}


@dataclass(frozen=True, eq=False, repr=False)
class UpdateTest(ResultTable):
    """Table with one row per step of an update, each with a test against the last.

    Parameters
    ----------
    step : ndarray of str, shape (n_steps,)
        "none", "intercept", "slope" and, if features are given, "features".
    log_likelihood : ndarray of shape (n_steps,)
        Log-likelihood of the samples, in nats, at its maximum.
    statistic : ndarray of shape (n_steps,)
        Twice the log-likelihood of the last step minus that of this step.
    degrees_of_freedom : ndarray of int, shape (n_steps,)
        Coefficients that the last step has in addition to those of this step.
    pvalue : ndarray of shape (n_steps,)
        p-value of the hypothesis that the last step adds nothing to this one; 1 for the
        last step.
    chosen : str
        The first step that is not rejected at the level .05.
    """

    step: np.ndarray
    log_likelihood: np.ndarray
    statistic: np.ndarray
    degrees_of_freedom: np.ndarray
    pvalue: np.ndarray
    chosen: str

    def _sentences(self):
        """Say which step was chosen, and the p-values that decided it."""
        steps = self.step.tolist()
        k = steps.index(self.chosen)
        advice = _ADVICE[self.chosen]
        last = steps[-1]
        # The p-value of a step tests the hypothesis that the last step adds nothing.
        if k == len(steps) - 1:
            simpler = pvalue_words(self.pvalue[:-1].max())
            return f"{advice}: every simpler step is rejected (largest {simpler})."
        found = f"{_LAST_STEP[last]} brings no detectable improvement"
        sentence = f"{advice}: {found} ({pvalue_words(self.pvalue[k])})."
        if k > 0:
            before = pvalue_words(self.pvalue[k - 1])
            sentence += f" The simpler step '{steps[k - 1]}' is rejected ({before})."
        return sentence


def update_test(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    features: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> UpdateTest:
    """Closed test of how much to update: intercept, slope, or features, or nothing.

    The steps are nested logistic regressions of the labels on the log-odds of the
    probabilities: ``logit(s)``, ``a + logit(s)``, ``a + b logit(s)`` and
    ``a + b logit(s) + c'u`` with features u. Each is compared with the last one by a
    likelihood-ratio test, and the first step that is not rejected at the level .05 is
    chosen [1]_. Since a larger step is looked at only if all smaller ones are rejected,
    a step that suffices is passed over with probability .05 at most, in large samples.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,) or (n, 2)
        Probabilities in [0, 1], for data to which the model was not fitted.
    features : array-like or DataFrame of shape (n, n_features), default=None
        Numbers without missing values, such as ages. None leaves out the last step.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (2,), default=None
        The sorted labels of the columns.

    Returns
    -------
    result : UpdateTest
        Table of the steps with their likelihoods and p-values; `chosen` is the step to
        take.

    Raises
    ------
    ValueError
        If labels and scores differ in length, if there are more than two classes, if
        the labels or the scores are all equal, or if a feature is missing or is no
        number.

    Warns
    -----
    UserWarning
        If there are fewer than ten samples of the rarer label per coefficient: the
        test then rejects too often.

    See Also
    --------
    skcalib.PlattScaling : Fits the last two steps, with a ridge on the features.
    recalibration_gain : What an update gains on held-out data.
    skcalib.metrics.calibration_slope_intercept : Slope and intercept with intervals.

    Notes
    -----
    Likelihood ratios need independent samples that each count once, so there are no
    weights and no clusters. The test says which effects are real and not which update
    predicts best: a ridge may make a feature useful that this test does not find.

    References
    ----------
    .. [1] Vergouwe, Nieboer, Oostenbrink, Debray, Murray, Kattan, Koffijberg, Moons and
       Steyerberg (2017), A closed testing procedure to select an appropriate method for
       updating prediction models, Statistics in Medicine.

    Examples
    --------
    Probabilities that are right on average, but ignore an effect of age:

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.evaluation import update_test
    >>> rng = np.random.default_rng(0)
    >>> z, age = rng.normal(size=1000), rng.uniform(40, 80, 1000)
    >>> died = rng.random(1000) < expit(z + 0.05 * (age - 60))
    >>> update_test(died, expit(z), features=age).chosen
    'features'
    >>> update_test(died, expit(z)).chosen == "features"
    False
    """
    data = check_scored_labels(y_true, y_proba, pos_label=pos_label, labels=labels)
    check_one_event(data, "update_test")
    task = one_task(data, "auto")
    reasons = list(not_estimable(task).values())
    if reasons:
        raise ValueError(reasons[0])
    events = task.labels.astype(np.float64)
    z = log_odds(task.scores)
    score_columns = [np.ones(len(z)), z]
    n_coefficients = [0, 1, 2]
    names = ["none", "intercept", "slope"]
    likelihoods = [
        _log_likelihood(np.zeros((len(z), 1)), events, offset=z),
        _log_likelihood(np.ones((len(z), 1)), events, offset=z),
        _log_likelihood(np.column_stack(score_columns), events),
    ]
    if features is not None:
        further_features = numeric_columns(features, name="features")
        if len(further_features) != len(z):
            raise ValueError(
                f"features has {len(further_features)} rows, but y_true has {len(z)}."
            )
        columns = np.column_stack((*score_columns, _standardized(further_features)))
        names.append("features")
        # The rank counts coefficients without columns that others determine.
        n_coefficients.append(int(np.linalg.matrix_rank(columns)))
        likelihoods.append(_log_likelihood(columns, events))
    _warn_of_few_events(events, n_coefficients[-1])
    likelihoods = np.array(likelihoods)
    statistic = np.maximum(2 * (likelihoods[-1] - likelihoods), 0.0)
    # Likelihood ratio tests of each step against the last one.
    extra_coefficients = n_coefficients[-1] - np.array(n_coefficients)
    pvalue = np.ones(len(names))
    is_smaller = extra_coefficients > 0
    pvalue[is_smaller] = chi2.sf(statistic[is_smaller], extra_coefficients[is_smaller])
    return UpdateTest(
        step=np.array(names),
        log_likelihood=likelihoods,
        statistic=statistic,
        degrees_of_freedom=extra_coefficients,
        pvalue=pvalue,
        chosen=names[int(np.argmax(pvalue > _LEVEL))],
    )


def _standardized(features):
    """Return features (n, d) with mean 0 and standard deviation 1; constant features
    become 0.
    """
    columns = []
    for column in features.T:
        mean, deviation = location_scale(column, None)
        columns.append((column - mean) / deviation)
    return np.column_stack(columns)


def _log_likelihood(columns, events, offset=None):
    """Return the largest log-likelihood of a logistic regression of events on columns
    (n, d), with an offset of the log-odds (n,) or None.
    """

    def features(rows):
        """Return the columns of some rows, (d, n_rows)."""
        return np.ascontiguousarray(columns[rows].T)

    coef = fit_logistic(features, events, offset=offset)
    none = np.zeros(len(coef))
    loss, _ = logistic_loss(
        features, events, None, coef, centre=none, penalty=none, offset=offset
    )
    return -loss


def _warn_of_few_events(events, n_coefficients):
    """Warn if the rarer label has fewer than ten samples per coefficient."""
    rarer = int(min(events.sum(), len(events) - events.sum()))
    if rarer < _EVENTS_PER_COEFFICIENT * n_coefficients:
        warn(
            f"The rarer label has {rarer} samples for {n_coefficients} coefficients."
            f" With fewer than {_EVENTS_PER_COEFFICIENT} per coefficient, the closed"
            " test rejects too often."
        )
