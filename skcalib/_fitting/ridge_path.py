"""The ridge that predicts best: a path of them, judged on rows that are left out; here
those of an affine map.
"""

from typing import Any, NamedTuple

import numpy as np

from skcalib._fitting.folds import cross_validation_folds
from skcalib._input.tensors import like, namespace_of, widest_dtype
from skcalib._solvers.leave_one_out import leave_one_out_loss, log_loss_hessian
from skcalib._solvers.newton import damped_solution
from skcalib._solvers.penalised_log_loss import MOST_KEPT, TOLERANCE
from skcalib._solvers.softmax_regression import fit_softmax_regression
from skcalib._solvers.sums import (
    blocks_of,
    cast,
    chosen,
    log_sum_exp,
    row_weights,
    true_entries,
    weighted_sums,
)

# Classes up to which every row is left out by one Newton step. That takes K^4
# operations a row: beyond, the first of five folds is left out.
_MOST_CLASSES_LEFT_OUT_ROW_BY_ROW = 16
# In nats, summed over the rows, of a weaker ridge. With 1 the choice lost to the
# strongest ridge where rows are few: Dirichlet calibration with 250 rows, .0002 in mean
# log-loss and .066 in the worst harm (55 experiments).
_LEAST_GAIN = 5.0
# With fewer rows per class the strongest ridge stays. Rows that are left out then
# praise weaker ones that lose on others: 50 rows of three classes, and the 20 rows
# of each of 150 classes of CLINC150.
_LEAST_ROWS_A_CLASS = 30
_SAMPLE = 1 << 24  # logits of the rows that decide where there are too many to keep
_MOST_PARAMETERS = 1000  # of a Hessian that is inverted
# A sample of about so many rows gives the curvature, if there are at least so many
# times as many.
_CURVATURE_ROWS = 10_000
_LEAST_STEP = 4
# Twice the loss that a fit may leave which only serves the choice: in nats per row, and
# in nats.
_ROUGH_TOLERANCE = 1e-7
_ROUGH_LOSS = 0.1
_FEW_LOGITS = 1 << 14


class AffineProblem(NamedTuple):
    """Rows to fit an affine map to, with a ridge toward temperature scaling.

    `affine_map` is `DiagonalMap` or `MatrixMap`; `logits` are (n, K); `reference` (n,)
    is subtracted from the logits of its row, and the difference is multiplied by
    `inverse_temperature`; `codes` (n,) are the classes; `sample_weight` is (n,) or
    None. All arrays are where the logits are, NumPy's or tensors on a device.
    """

    affine_map: type
    logits: Any
    reference: Any
    inverse_temperature: float
    codes: Any
    sample_weight: Any

    def features(self, rows):
        """Return the temperature-scaled logits above the reference, with a last row of
        ones, (K + 1, n_rows).
        """
        return affine_features(
            self.logits[rows, ...], self.reference[rows], self.inverse_temperature
        )

    def fit(self, penalty, start=None, preconditioner=None, tolerance=TOLERANCE):
        """Return the parameters (n_parameters,) of least log-loss with a ridge
        `penalty` (n_parameters,) toward temperature scaling.

        Steps begin at `start` (n_parameters,), by default at temperature scaling;
        `preconditioner` is an inverse Hessian of similar rows, or None; `tolerance` is
        twice the loss that may be left, in nats per row.
        """
        return fit_softmax_regression(
            self.affine_map,
            self.features,
            self.codes,
            self.sample_weight,
            centre=self.affine_map.identity(self.logits.shape[1]),
            penalty=penalty,
            start=start,
            preconditioner=preconditioner,
            tolerance=tolerance,
            is_impossible=self.is_impossible,
        )

    @property
    def is_impossible(self):
        """Which classes are impossible in their rows, booleans (n, K); None if none
        is.
        """
        xp = namespace_of(self.logits)
        if xp.min(self.logits) > -np.inf:
            return None
        return xp.isinf(self.logits)

    def inverse_curvature(self, parameters, penalty):
        """Return the inverse Hessian (n_parameters, n_parameters) of the mean log-loss
        plus ridge; None where it is too large to be inverted.
        """
        if len(penalty) > _MOST_PARAMETERS or self.is_impossible is not None:
            return None
        hessian = log_loss_hessian(
            self.affine_map,
            self.features,
            self.codes,
            self.sample_weight,
            parameters,
        )
        # A ridge ``penalty * x**2`` has the second derivative ``2 * penalty``.
        hessian = hessian + 2 * np.diag(penalty)
        # The Hessian above is of the summed loss. The mean loss has it divided by the
        # total weight, so that the inverse is multiplied by it.
        return _total(self) * damped_solution(hessian, np.eye(len(hessian)))

    def leave_one_out_loss(self, parameters, penalty):
        """Return the log-loss, summed over the rows, of each row by a fit to the
        others.
        """
        return leave_one_out_loss(
            self.affine_map,
            self.features,
            self.codes,
            self.sample_weight,
            parameters,
            penalty,
        )

    def log_loss(self, parameters):
        """Return the log-loss, summed over the rows."""
        xp = namespace_of(self.logits)
        weight = row_weights(self.sample_weight, self.logits)
        parameters = like(self.logits, parameters)
        loss = 0.0
        for rows in blocks_of(self.logits, *self.logits.shape):
            logits = self.affine_map.apply(parameters, self.features(rows))
            # Impossible classes have finite features (see `affine_features`): their
            # logits are set back to -inf.
            is_impossible = xp.isinf(self.logits[rows, ...].T)
            logits = xp.where(is_impossible, -np.inf, logits)
            true_logits = true_entries(logits.T, self.codes[rows])
            losses = log_sum_exp(logits, axis=0) - true_logits
            loss += weighted_sums(weight[rows], losses)[0]
        return float(loss)

    def taken(self, rows, sample_weight):
        """Return the problem of some of the rows, with weights of their own."""
        return self._replace(
            logits=chosen(self.logits, rows),
            reference=chosen(self.reference, rows),
            codes=chosen(self.codes, rows),
            sample_weight=like(self.logits, sample_weight),
        )


def fit_path(problem, penalties):
    """Fit an `AffineProblem` with several ridges, and return the index of the one that
    predicts best on rows left out, and the parameters (n_parameters,) fitted with it to
    all rows.

    `penalties` is a list of ridges (n_parameters,), the strongest first. A weaker one
    must predict clearly better to be taken. Every fit starts from the last.
    """
    n_classes = problem.logits.shape[1]
    # Too many logits to keep in memory: a sample chooses. Every parameter needs a
    # ridge, since a sample may be separable though the rows are not.
    if _n_logits(problem) > MOST_KEPT and min(penalties[0]) > 0:
        return _fit_path_on_sample(problem, penalties)
    penalties = ridges_to_try(penalties, _total(problem), n_classes)
    if len(penalties) == 1:
        parameters, _ = fit_ridge(problem, penalties[0])
        return 0, parameters
    # With few classes each row is left out in turn, by one Newton step, which knows
    # nothing of impossible classes.
    has_few_classes = n_classes <= _MOST_CLASSES_LEFT_OUT_ROW_BY_ROW
    if has_few_classes and problem.is_impossible is None:
        best, parameters = _best_fit(problem, penalties, problem.leave_one_out_loss)
        # The fits of the choice may have been rougher than a fit has to be.
        if _tolerance_of_choice(problem) > TOLERANCE:
            parameters = problem.fit(penalties[best], parameters)
        return best, parameters
    # With more classes one fold is left out.
    fold, *_ = cross_validation_folds(
        5, problem.logits, problem.codes, problem.sample_weight, "logit"
    )
    training = problem.taken(fold.train, fold.train_weight)
    held_out = problem.taken(fold.test, fold.test_weight)
    share = _total(held_out) / _total(problem)

    def held_out_loss(parameters, _):
        """Return the loss of the fold, scaled to the weight of all rows."""
        return held_out.log_loss(parameters) / share

    best, parameters = _best_fit(training, penalties, held_out_loss)
    return best, problem.fit(penalties[best], start=parameters)


def fit_ridge(problem, penalty, start=None, curvature=None):
    """Return the parameters (n_parameters,) of an `AffineProblem` fitted with one ridge
    `penalty` (n_parameters,), and the inverse Hessian that the fit used, or None.

    `start` (n_parameters,) and `curvature`, the inverse Hessian, may come from a fit to
    similar rows: they change the number of steps, and not what is found.
    """
    step = problem.codes.shape[0] // _CURVATURE_ROWS
    # Of many rows every `step`-th one is fitted first. From its optimum, and with its
    # inverse Hessian, the fit to all rows takes fewer passes over them: two thirds of
    # the time with 100,000 rows of ten classes.
    is_sampled = step >= _LEAST_STEP and curvature is None and min(penalty) > 0
    if is_sampled and len(penalty) <= _MOST_PARAMETERS:
        sampled = slice(None, None, step)
        sample = problem.taken(sampled, chosen(problem.sample_weight, sampled))
        # the ridge is on the summed loss: a share of the rows has a share of it
        sample_penalty = penalty * (_total(sample) / _total(problem))
        start = sample.fit(sample_penalty, start)
        curvature = sample.inverse_curvature(start, sample_penalty)
    return problem.fit(penalty, start, curvature), curvature


def _fit_path_on_sample(problem, penalties):
    """Return the index of the best of several ridges, and the parameters
    (n_parameters,) fitted with it, for more logits than fit into memory.

    Every step-th row chooses the ridge, which, as the precision of a prior, does not
    depend on the number of rows; all rows take part in the last fit, which starts from
    the sample's parameters.
    """
    step = -(-_n_logits(problem) // _SAMPLE)  # rounded up
    sampled = slice(None, None, step)
    sample = problem.taken(sampled, chosen(problem.sample_weight, sampled))
    best, start = fit_path(sample, penalties)
    share = _total(sample) / _total(problem)
    # With the inverse Hessian of the sample, rows are read less often: with 10 classes
    # in 143 products of a block in place of 359. The ridge is on the summed loss: a
    # share of the rows has a share of it.
    curvature = sample.inverse_curvature(start, penalties[best] * share)
    return best, problem.fit(penalties[best], start, curvature)


def _best_fit(problem, penalties, loss_of):
    """Return the index of the best of several ridges, and the parameters fitted with
    it, no more precisely than the choice needs. ``loss_of(parameters, penalty)`` is the
    loss on left-out rows.
    """
    tolerance = _tolerance_of_choice(problem)
    choice = RidgeChoice()
    fits = []
    parameters = None  # each fit starts from the last
    curvature = None
    for penalty in penalties:
        # The inverse Hessian at the first fit serves the weaker ridges: they take fewer
        # products, in .9 of the time with 10 classes.
        if len(fits) == 1:
            curvature = problem.inverse_curvature(parameters, penalty)
        parameters = problem.fit(penalty, parameters, curvature, tolerance)
        fits.append(parameters)
        choice.add(loss_of(parameters, penalty))
        if choice.is_done:
            break
    return choice.best, fits[choice.best]


def _tolerance_of_choice(problem):
    """Return the tolerance of fits that only serve the choice of a ridge; for few
    logits that of the last fit, which is then one of them.
    """
    if _n_logits(problem) < _FEW_LOGITS:
        return TOLERANCE
    return min(_ROUGH_TOLERANCE, _ROUGH_LOSS / _total(problem))


def ridges_to_try(ridges, total, n_classes):
    """Return the ridges to try, from a list with the strongest first: that one alone
    where there are fewer than 30 rows for each class, else all. `total` is the weight
    of the rows.
    """
    if total >= _LEAST_ROWS_A_CLASS * n_classes:
        return ridges
    return ridges[:1]


class RidgeChoice:
    """Which ridge predicts best, of several that are tried from the strongest to the
    weakest.

    A weaker one is taken only if its loss, summed over rows left out, is less by more
    than 5 nats than that of the one taken before.

    Attributes
    ----------
    best : int
        The ridge taken so far, as the number of its trial.
    is_done : bool
        Whether the loss has risen from one ridge to the next: weaker ones need not be
        tried.
    """

    def __init__(self):
        self.best = 0  # number of the ridge taken so far
        self.is_done = False  # whether weaker ridges need not be tried
        self._n_tried = 0
        self._least = np.inf  # loss of the best
        self._last = np.inf  # loss of the ridge tried last

    def add(self, loss):
        """Take account of the loss of the next ridge."""
        if loss < self._least - _LEAST_GAIN:
            self.best = self._n_tried
            self._least = loss
        self.is_done = loss > self._last
        self._last = loss
        self._n_tried += 1


def _total(problem):
    """Return the total weight of a problem's rows."""
    if problem.sample_weight is None:
        return problem.codes.shape[0]
    xp = namespace_of(problem.sample_weight)
    return float(xp.sum(problem.sample_weight))


def _n_logits(problem):
    n_rows, n_classes = problem.logits.shape
    return n_rows * n_classes


def affine_features(logits, reference, scale=1.0):
    """Return the features of an affine map: ``scale * (logits - reference)`` as float64
    (K + 1, n), with a last row of ones.

    `logits` are (n, K), `reference` is (n,). A device may have no float64: tensors have
    the widest type that there is.
    """
    xp = namespace_of(logits)
    if xp is not np:
        dtype = widest_dtype(logits)
        scaled = (cast(logits.T, dtype) - cast(reference, dtype)) * scale
        # An impossible class adds nothing to the logits of the others.
        scaled = xp.where(xp.isinf(scaled), xp.zeros_like(scaled), scaled)
        return xp.concat((scaled, xp.ones_like(scaled[:1, ...])))
    features = np.empty((logits.shape[1] + 1, len(logits)))
    np.subtract(logits.T, reference, out=features[:-1], dtype=np.float64)
    features[:-1] *= scale
    features[-1] = 1
    # An impossible class adds nothing to the logits of the others.
    if features.min() == -np.inf:
        features[np.isneginf(features)] = 0
    return features
