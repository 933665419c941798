"""Multinomial logistic regression that starts from given logits and is held near them:
the engine of affine scaling.
"""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skcalib._guide import see
from skcalib._input.warn import warn
from skcalib._solvers.newton import line_search
from skcalib._solvers.penalised_log_loss import TOLERANCE, PenalisedLogLoss

_MAX_STEPS = 60
_WARM_TOLERANCE = 1e-7  # of the fit in single precision that gives the start
_WORTH_A_WARNING = 1e-9  # twice the loss that a fit leaves, in nats per row
# The same where there is only single precision, and what that resolves at best.
_WORTH_A_WARNING_IN_SINGLE = 1e-5
_SINGLE_TOLERANCE = 1e-12


# BLAS sometimes flags a product of finite single-precision numbers as invalid: the same
# fit passes when it is repeated. A product that is not finite is no step: the line
# search takes only what lowers the loss.
@np.errstate(invalid="ignore")
def fit_softmax_regression(
    affine_map,
    features,
    codes,
    sample_weight=None,
    *,
    centre,
    penalty,
    start=None,
    preconditioner=None,
    tolerance=TOLERANCE,
    is_impossible=None,
):
    """Return the parameters of an affine map of least log-loss, with a ridge that pulls
    them to a centre.

    Newton's method. With a strong enough ridge, most steps are made in single
    precision, and the last ones in double precision; conjugate gradients solve for the
    step, which takes only products of the Hessian with vectors. Otherwise the Hessian
    may be close to singular: it is then factorised, in double precision, unless there
    are too many parameters.

    Parameters
    ----------
    affine_map : type
        `DiagonalMap` or `MatrixMap`: what the parameters stand for.
    features : callable
        ``features(rows)`` returns the features of a slice of the rows as a new array
        (K + 1, n_rows), NumPy's or a tensor, of float64 where the device has it; the
        last one is 1.
    codes : array of shape (n,)
        Class of each row, where the features are.
    sample_weight : array of shape (n,), default=None
        Positive weights, where the features are.
    centre : ndarray of shape (n_parameters,)
        The point that the ridge pulls to.
    penalty : ndarray of shape (n_parameters,)
        Strength of the ridge ``penalty @ (parameters - centre)**2`` on the summed loss.
    start : ndarray of shape (n_parameters,), default=None
        Where to start; None means the centre.
    preconditioner : ndarray of shape (n_parameters, n_parameters), default=None
        Approximate inverse of the Hessian of the penalised log-loss per row, for
        conjugate gradients. It changes the number of steps and not what is found.
    tolerance : float, default=1e-16
        The fit ends when twice the loss that can still be gained, in nats per row, is
        at most this.
    is_impossible : array of bool, shape (n, K), default=None
        Classes that are impossible in their rows, and have no part in the softmax.

    Returns
    -------
    parameters : ndarray of shape (n_parameters,)
        Where the classes are separable and nothing penalises, a finite point of tiny
        loss.
    """
    loss = PenalisedLogLoss(
        affine_map,
        features,
        codes,
        sample_weight,
        centre,
        penalty,
        tolerance,
        is_impossible,
    )
    parameters = start
    if start is None:
        parameters = centre
    # The loss chooses single precision if the ridge keeps its Hessian well conditioned.
    # After most of the steps it is switched to double precision for the last ones.
    if loss.dtype == np.float32:
        loss.preconditioner = preconditioner
        parameters, _ = _minimised(loss, parameters, _WARM_TOLERANCE)
        if tolerance >= _WARM_TOLERANCE:
            return parameters
        loss.dtype = loss.last_dtype
    worth_a_warning = _WORTH_A_WARNING
    if loss.last_dtype == np.float32:  # of a device without double precision
        tolerance = max(tolerance, _SINGLE_TOLERANCE)
        worth_a_warning = _WORTH_A_WARNING_IN_SINGLE
    loss.take_first_step_in_single_precision()
    parameters, twice_loss_left = _minimised(loss, parameters, tolerance)
    if twice_loss_left > worth_a_warning:
        message = (
            f"The fit stopped with about {twice_loss_left / 2:.1g} nats per sample"
            " still to be gained"
        )
        if penalty.min() == 0:
            message += (
                ": without a ridge penalty, the optimum lies at infinity if classes are"
                " separable. A positive alpha makes it finite"
            )
        warn(f"{message}.{see('convergence')}", ConvergenceWarning)
    return parameters


def _minimised(loss, parameters, tolerance):
    """Return the minimum of a `PenalisedLogLoss` by Newton steps from `parameters`, and
    twice the loss that can still be gained, in nats per row: at most `tolerance`,
    unless rounding hides the gain.
    """
    current = loss.evaluate(parameters)
    for _ in range(_MAX_STEPS):
        if current <= tolerance:  # no loss is below 0
            return parameters, current
        # The decrement, gradient @ step, is about twice the loss that can be gained.
        step, decrement, residual = loss.newton_step()
        if decrement <= tolerance**0.5:
            # Close to the optimum the step can be taken without evaluating the loss:
            # log-loss is self-concordant (Bach 2010), which bounds what is left after
            # the step by the largest change of a logit.
            logit_change = loss.largest_logit_change(step)
            left_after_step = decrement * (residual + logit_change) ** 2
            if logit_change < 0.1 and left_after_step <= tolerance:
                return parameters - step, left_after_step
        # The loss cannot show a gain below its own rounding: a small step is taken
        # without it.
        if decrement <= max(tolerance, np.finfo(loss.dtype).eps * current):
            if loss.largest_logit_change(step) < 0.1:
                parameters = parameters - step
            break
        parameters, loss_there = line_search(loss.evaluate, parameters, step, current)
        if loss_there is None:  # no shorter step lowers the loss
            break
        current = loss_there
    return parameters, decrement
