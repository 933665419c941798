"""Quantiles of the standard normal distribution, where the probabilities are."""

import numpy as np
from scipy.special import ndtri

from skcalib._rows.namespaces import placed

# Wichura (1988), Algorithm AS 241, PPND16: the quantile is q times a rational function
# of q^2 if q = p - 1/2 is in [-.425, .425], and else one of r = sqrt(-log(min(p, 1 -
# p))), up to 5 and above. Coefficients of the numerators and of the denominators, from
# the constant on.
_CENTRE = (
    (
        3.3871328727963666080e0,
        1.3314166789178437745e2,
        1.9715909503065514427e3,
        1.3731693765509461125e4,
        4.5921953931549871457e4,
        6.7265770927008700853e4,
        3.3430575583588128105e4,
        2.5090809287301226727e3,
    ),
    (
        1.0,
        4.2313330701600911252e1,
        6.8718700749205790830e2,
        5.3941960214247511077e3,
        2.1213794301586595867e4,
        3.9307895800092710610e4,
        2.8729085735721942674e4,
        5.2264952788528545610e3,
    ),
)
_TAIL = (
    (
        1.42343711074968357734e0,
        4.63033784615654529590e0,
        5.76949722146069140550e0,
        3.64784832476320460504e0,
        1.27045825245236838258e0,
        2.41780725177450611770e-1,
        2.27238449892691845833e-2,
        7.74545014278341407640e-4,
    ),
    (
        1.0,
        2.05319162663775882187e0,
        1.67638483018380384940e0,
        6.89767334985100004550e-1,
        1.48103976427480074590e-1,
        1.51986665636164571966e-2,
        5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ),
)
_FAR_TAIL = (
    (
        6.65790464350110377720e0,
        5.46378491116411436990e0,
        1.78482653991729133580e0,
        2.96560571828504891230e-1,
        2.65321895265761230930e-2,
        1.24266094738807843860e-3,
        2.71155556874348757815e-5,
        2.01033439929228813265e-7,
    ),
    (
        1.0,
        5.99832206555887937690e-1,
        1.36929880922735805310e-1,
        1.48753612908506148525e-2,
        7.86869131145613259100e-4,
        1.84631831751005468180e-5,
        1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ),
)


def normal_quantiles(xp, probabilities):
    """Return the normal quantiles of probabilities in double precision, an array of the
    namespace `xp`: SciPy's for NumPy, and on a device Wichura's, which agree to 1e-15.
    """
    if xp is np:
        return ndtri(probabilities)
    centred = probabilities - 0.5
    is_central = xp.abs(centred) <= 0.425
    square = 0.180625 - xp.where(is_central, centred, 0 * centred) ** 2
    central = centred * _ratio(_CENTRE, square)
    # No tail is asked for its quantile at 0, which is infinite, nor in the centre.
    tail = xp.where(centred < 0, probabilities, 1 - probabilities)
    is_certain = tail <= 0
    inside = xp.where(is_central | is_certain, xp.full_like(tail, 0.01), tail)
    root = xp.sqrt(-xp.log(inside))
    size = xp.where(root <= 5, _ratio(_TAIL, root - 1.6), _ratio(_FAR_TAIL, root - 5))
    size = xp.where(is_certain, placed(xp, np.array(np.inf), tail), size)
    return xp.where(is_central, central, xp.where(centred < 0, -size, size))


def _ratio(coefficients, values):
    """Return a quotient of two polynomials by their coefficients."""
    numerator, denominator = coefficients
    return _polynomial(numerator, values) / _polynomial(denominator, values)


def _polynomial(coefficients, values):
    """Return a polynomial by Horner's rule, for coefficients from the constant on."""
    total = 0.0 * values
    for coefficient in reversed(coefficients):
        total = total * values + coefficient
    return total
