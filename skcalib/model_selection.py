"""Rules that choose which candidate of a hyperparameter search to refit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import get_scorer as get_sklearn_scorer

from skcalib._input.scalars import check_number
from skcalib._input.warn import warn
from skcalib.binning import BaseBinning, check_binning
from skcalib.metrics import get_scorer, get_scorer_names

__all__ = ["sharpest_within"]

_CALIBRATION = "squared_calibration_error"


def sharpest_within(
    max_error: float,
    *,
    objective: str | Callable[..., float] = "neg_brier_score",
    n_standard_errors: float = 1.0,
    binning: BaseBinning | int | None = None,
) -> SharpestWithin:
    """Return a rule that selects the best of the sufficiently calibrated candidates.

    Do not select by a calibration error alone, because a constant prediction minimises
    it. The rule requires an error of at most `max_error`, allowing for its standard
    error over the folds, and then selects by a proper scoring rule.

    Parameters
    ----------
    max_error : float
        Largest acceptable l2 calibration error, in (0, 1].
    objective : str or callable, default="neg_brier_score"
        Scorer to maximise among the candidates within the limit: a function, or a name
        known to `skcalib.metrics.get_scorer` or to scikit-learn.
    n_standard_errors : float, default=1.0
        A candidate is within the limit if its mean signed squared error over the folds
        plus this many standard errors is at most ``max_error**2``.
    binning : BaseBinning, int or None, default=None
        Bins for the unbiased error; None means ``EqualMass(15)``.

    Returns
    -------
    rule : SharpestWithin
        The rule, to be used as ``GridSearchCV(..., scoring=rule.scoring, refit=rule)``.

    Raises
    ------
    ValueError
        If `max_error` or `n_standard_errors` is out of range, or if the scorer does not
        exist.

    Warns
    -----
    UserWarning
        During the search, if no candidate is within the limit: the best-calibrated
        candidate is then selected.

    See Also
    --------
    skcalib.metrics.get_scorer : Returns a scorer by name.
    skcalib.ScalingBinning : A smooth map whose outputs are then binned.
    skcalib.displays.BinCountDisplay : Plots error and sharpness against the number of
        bins.

    Notes
    -----
    The folds were used for the selection, so verify the result on new samples, for
    example with `ScalingBinning.verify`.

    References
    ----------
    Kumar, Liang and Ma (2019), Verified uncertainty calibration, Figure 17.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from skcalib import CrossFittedClassifier, ScalingBinning
    >>> from skcalib.model_selection import sharpest_within
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> rule = sharpest_within(0.1)
    >>> search = GridSearchCV(
    ...     make_pipeline(CrossFittedClassifier(GaussianNB()), ScalingBinning()),
    ...     {"scalingbinning__binning__n_bins": [2, 5, 20]},
    ...     scoring=rule.scoring,
    ...     refit=rule,
    ... ).fit(X, y)
    >>> search.best_params_
    {'scalingbinning__binning__n_bins': 20}
    """
    check_number(max_error, "max_error", above=0, at_most=1)
    check_number(n_standard_errors, "n_standard_errors", at_least=0)
    check_binning(binning)
    if not callable(objective):
        if objective in get_scorer_names():
            objective = get_scorer(objective)
        else:
            objective = get_sklearn_scorer(objective)
    scoring = {
        "objective": objective,
        _CALIBRATION: get_scorer(f"neg_{_CALIBRATION}", binning=binning),
    }
    return SharpestWithin(max_error, n_standard_errors, scoring)


@dataclass(eq=False)
class SharpestWithin:
    """The rule that `sharpest_within` returns.

    Parameters
    ----------
    max_error, n_standard_errors
        See `sharpest_within`.
    scoring : dict
        The two scorers that the search must compute.
    """

    max_error: float
    n_standard_errors: float
    scoring: dict

    def __call__(self, cv_results):
        """Return the index of the best candidate that is within the limit of the error,
        or of the one with the least error if none is.

        `cv_results` is the `cv_results_` of a search with the rule's scorers; the
        search calls this as its `refit`.
        """
        if f"mean_test_{_CALIBRATION}" not in cv_results:
            raise ValueError(
                "The search must compute the rule's scorers: pass scoring=rule.scoring."
            )
        scores_of_folds = []
        for key, scores in cv_results.items():
            if key.startswith("split") and key.endswith(f"_test_{_CALIBRATION}"):
                scores_of_folds.append(scores)
        # The scorer gives negated squares of the error, (n_candidates, n_folds).
        squared_errors = -np.column_stack(scores_of_folds)
        n_folds = squared_errors.shape[1]
        if n_folds > 1:
            standard_error = squared_errors.std(axis=1, ddof=1) / np.sqrt(n_folds)
        else:
            standard_error = np.zeros(len(squared_errors))
        upper = squared_errors.mean(axis=1) + self.n_standard_errors * standard_error
        objective = cv_results["mean_test_objective"]
        usable = np.isfinite(upper) & np.isfinite(objective)
        if not usable.any():
            raise ValueError(
                "No candidate has a finite score in every fold: see the warnings of the"
                " search."
            )
        is_within = usable & (upper <= self.max_error**2)
        if is_within.any():
            return int(np.argmax(np.where(is_within, objective, -np.inf)))
        best = int(np.argmin(np.where(usable, upper, np.inf)))
        warn(
            f"No candidate is within max_error={self.max_error}: the best has an l2"
            f" calibration error of up to {np.sqrt(max(upper[best], 0)):.4f}"
            f" ({self.n_standard_errors} standard errors) and is used."
        )
        return best


def __dir__():
    """Return the public names, for completion in an editor or a notebook."""
    return sorted(__all__)
