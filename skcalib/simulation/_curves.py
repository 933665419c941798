"""Calibration curves: the event probability as a known function of the score."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, xlogy

from skcalib._input.scalars import as_numbers, check_number, check_option

_SCALES = ("logit", "log", "logflip")


@dataclass(frozen=True)
class GlmCurve:
    """Calibration curve of a generalised linear model for the event given the score.

    ``link(T(s)) = intercept + slope * transform(s)``.

    Parameters
    ----------
    link, transform : {"logit", "log", "logflip"}
        Scales of the event probability and of the score; "logflip" means
        ``log(1 - x)``.
    intercept, slope : float
        Coefficients of the linear predictor.

    Raises
    ------
    ValueError
        If `link` or `transform` is not one of these, or if a coefficient is not finite.

    See Also
    --------
    skcalib.simulation.fit_calibration_curve : Fits curves to scores and labels.
    skcalib.simulation.CalibrationModel : Scores and labels with a known error.

    Notes
    -----
    The inverses of the links "log" and "logflip" leave [0, 1] if the linear predictor
    is positive; the predictor is therefore clipped at 0. A slope of 0 gives a constant
    curve, even at scores of 0 and 1.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer (2022), Mitigating bias in calibration error
    estimation.

    Examples
    --------
    With equal scales, slope 1 and intercept 0, the model is calibrated.

    >>> from skcalib.simulation import GlmCurve
    >>> GlmCurve("logflip", "logflip", 0, 1)([0.0, 0.25, 1.0]).round(6).tolist()
    [0.0, 0.25, 1.0]
    """

    link: str
    transform: str
    intercept: float
    slope: float
    # Tells `CalibrationModel` to pass 1 - s as well, with all its digits.
    accepts_complement: ClassVar[bool] = True

    def __post_init__(self):
        """Check the fields."""
        for name in ("link", "transform"):
            check_option(getattr(self, name), name, _SCALES)
        check_number(self.intercept, "intercept")
        check_number(self.slope, "slope")

    def __call__(self, scores, complement=None):
        """Return the event probability at scores; 1 - s may be passed to avoid
        cancellation.
        """
        scores = as_numbers(scores, "scores")
        if complement is None:
            complement = 1 - scores
        else:
            complement = np.asarray(complement, dtype=np.float64)
        # slope * log(score); `xlogy` makes it 0 for a slope of 0 also at a score of 0.
        log_score = xlogy(self.slope, scores)
        log_complement = xlogy(self.slope, complement)
        if self.transform == "log":
            predictor = self.intercept + log_score
        elif self.transform == "logflip":
            predictor = self.intercept + log_complement
        else:
            predictor = self.intercept + (log_score - log_complement)
        # The inverse of the link.
        if self.link == "logit":
            return expit(predictor)
        predictor = np.minimum(predictor, 0)  # the logarithm of a probability
        if self.link == "log":
            return np.exp(predictor)
        return np.abs(np.expm1(predictor))  # 1 - exp(predictor), never -0.0


@dataclass(frozen=True)
class PowerCurve:
    """The calibration curve ``T(s) = s^d``; the model is calibrated for d = 1.

    Scores are too high if d is larger than 1, and too low if it is smaller.

    Parameters
    ----------
    d : float
        Exponent, which must be positive.

    Raises
    ------
    ValueError
        If `d` is not positive and finite.

    See Also
    --------
    skcalib.simulation.PlattCurve : A logistic calibration curve.
    skcalib.simulation.CalibrationModel : Scores and labels with a known error.

    Examples
    --------
    >>> from skcalib.simulation import PowerCurve
    >>> PowerCurve(2)([0.0, 0.5, 1.0]).tolist()
    [0.0, 0.25, 1.0]
    """

    d: float

    def __post_init__(self):
        check_number(self.d, "d", above=0)

    def __call__(self, scores):
        """Return the event probability at scores."""
        return as_numbers(scores, "scores") ** self.d


@dataclass(frozen=True)
class PlattCurve:
    """The calibration curve of Kumar et al.: a sigmoid of the log-odds.

    ``g(z; a, c) = sigmoid(a log(z / (1 - z)) + c)``.

    Parameters
    ----------
    a, c : float
        Slope and intercept on the log-odds scale.

    See Also
    --------
    skcalib.simulation.PowerCurve : The curve ``s**d``.
    skcalib.simulation.CalibrationModel : Scores and labels with a known error.

    References
    ----------
    Kumar, Liang and Ma (2019), Verified uncertainty calibration.

    Examples
    --------
    >>> from skcalib.simulation import PlattCurve
    >>> PlattCurve(1, 0)([0.25, 0.5]).round(6).tolist()
    [0.25, 0.5]
    """

    a: float
    c: float
    accepts_complement: ClassVar[bool] = True

    def __call__(self, scores, complement=None):
        """Return the event probability at scores; 1 - s may be passed to avoid
        cancellation.
        """
        curve = GlmCurve("logit", "logit", intercept=self.c, slope=self.a)
        return curve(scores, complement)
