"""The ten networks of Roelofs et al. as models with a known calibration error."""

from scipy import stats

from skcalib.simulation import CalibrationModel, GlmCurve

# Roelofs et al., Tables 1 and 2: alpha, beta, link, transform, intercept, slope of the
# fit of least AIC.
_ROELOFS_FITS = {
    "resnet110_c10": (2.7752, 0.0478, "logflip", "logflip", -0.24, 0.30),
    "resnet110_SD_c10": (2.1714, 0.0394, "logit", "logflip", -0.27, -0.33),
    "resnet_wide32_c10": (2.3806, 0.0379, "logit", "logit", 0.0, 0.26),
    "densenet40_c10": (1.9824, 0.0397, "logit", "logflip", 0.0, -0.26),
    "resnet110_c100": (1.1823, 0.1081, "logflip", "logflip", -0.11, 0.28),
    "resnet110_SD_c100": (1.1233, 0.1147, "logit", "logit", -0.88, 0.49),
    "resnet_wide32_c100": (1.0611, 0.0650, "logflip", "logflip", -0.15, 0.21),
    "densenet40_c100": (1.0805, 0.0808, "logit", "logit", -0.97, 0.34),
    "resnet152_imgnet": (1.1359, 0.2069, "logflip", "logflip", -0.12, 0.58),
    "densenet161_imgnet": (1.1928, 0.2206, "log", "log", -0.05, 1.27),
}


def roelofs_models():
    """Return the ten models that Roelofs et al. fitted to networks on CIFAR-10,
    CIFAR-100 and ImageNet.

    Returns
    -------
    models : dict of CalibrationModel
        By the name of the network and the data set.

    See Also
    --------
    skcalib.simulation.CalibrationModel : Scores and labels with a known error.
    skcalib.simulation.fit_calibration_curve : Fits curves to scores and labels.

    Notes
    -----
    The paper prints two digits of the coefficients and four of the Beta parameters; the
    links have the least AIC.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer (2022), Mitigating bias in calibration error
    estimation, Tables 1 and 2.

    Examples
    --------
    >>> from benchmarks.papers._known_models import roelofs_models
    >>> models = roelofs_models()
    >>> len(models), round(models["resnet110_c10"].true_calibration_error(), 4)
    (10, 0.1071)
    """
    return {
        name: CalibrationModel(stats.beta(alpha, beta), GlmCurve(*curve))
        for name, (alpha, beta, *curve) in _ROELOFS_FITS.items()
    }
