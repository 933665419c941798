"""Whether a recalibrator was fitted to the samples of a certificate."""

from sklearn.frozen import FrozenEstimator

from skcalib._rows.blocks import label_hash

# Maps of at most two parameters in all, for which a strict search was simulated.
_FEW_PARAMETERS = ("PlattScaling", "TemperatureScaling")
CROSS_FITTED = "cross-fitted"

OTHER_ROWS = (
    "The probabilities come from one model that was fitted to other data. The"
    " recalibrator was fitted to other labels, or to these in another order; a partial"
    " overlap is not detected."
)
SAME_ROWS = (
    "{method} was fitted to exactly these samples. The search therefore begins with the"
    " fewest samples that can pass, and tests every set of accepted samples at half of"
    " the level."
)
OF_CROSS_FITTING = (
    "The map and the threshold come from the same samples by cross-fitting. The"
    " guarantee was checked by simulation; it is not exact, because the map in use"
    " differs from those that were judged. After isotonic regression, a guarantee of"
    " 90 % precision with 90 % confidence was violated in at most 10.0 % of data sets."
)


def provenances(fitted):
    """Return a list of the provenances (dicts) of the recalibrators in a fitted object:
    a recalibrator, a pipeline, a recalibrated classifier, or a provenance itself.
    """
    while isinstance(fitted, FrozenEstimator):
        fitted = fitted.estimator
    if isinstance(fitted, dict):
        return [fitted]
    if hasattr(fitted, "provenance_"):
        return [fitted.provenance_]
    if hasattr(fitted, "steps"):
        _, last_step = fitted.steps[-1]
        return provenances(last_step)
    # A recalibrated classifier holds pairs of a classifier and its recalibrator.
    found = []
    for pair in getattr(fitted, "calibrated_classifiers_", ()):
        found += provenances(getattr(pair, "recalibrator", None))
    return found


def method_of_same_rows(fitted_on, codes):
    """Return the name of the method in `fitted_on` that was fitted to exactly these
    label codes (n,), or None.

    Raises
    ------
    ValueError
        If `fitted_on` has no provenance, or if a method with many parameters was fitted
        to the same rows.
    """
    found = provenances(fitted_on)
    if not found:
        raise ValueError(
            "fitted_on must be a fitted recalibrator, its provenance_, or"
            f" {CROSS_FITTED!r}, found {type(fitted_on).__name__}."
        )
    if not all("label_hash" in provenance for provenance in found):
        raise ValueError(
            "fitted_on was fitted by an earlier version, which did not store the order"
            " of the labels: fit it again."
        )
    hash_of_labels = label_hash(codes)
    methods = []
    for provenance in found:
        if provenance["label_hash"] == hash_of_labels:
            methods.append(provenance["method"])
    if not methods:
        return None
    method = methods[0]
    if method not in _FEW_PARAMETERS:
        raise ValueError(
            f"{method} was fitted to exactly these samples, so it looks better on"
            " them than on new ones. Fit it to one half of the rows and find the"
            " threshold on the other, or pass probabilities from cross-fitting with"
            f" fitted_on={CROSS_FITTED!r}."
        )
    return method
