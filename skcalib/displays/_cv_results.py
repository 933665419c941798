"""Out-of-fold probabilities of the models that a cross-validation returned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from skcalib._input.classifier_scores import classifier_scores
from skcalib._input.sklearn_private import num_samples, safe_indexing


class OutOfFold(NamedTuple):
    """The samples that a cross-validation tested.

    Attributes
    ----------
    rows : ndarray of int, shape (n_tested,)
        Their places in X, in increasing order.
    probabilities : dict of ndarray by model, each of shape (n_tested, n_classes)
        What the model of each sample's fold says of it.
    folds : dict of ndarray by model, each of shape (n_tested,)
        The fold that tested each sample.
    classes : ndarray of shape (n_classes,)
        Labels of the columns.
    """

    rows: np.ndarray
    probabilities: dict
    folds: dict
    classes: np.ndarray


def out_of_fold(models: Mapping[str | None, Any], X: Any) -> OutOfFold:
    """Return the probabilities of each sample from the model that did not see it.

    Parameters
    ----------
    models : dict of cv_results by name
        Each as `cross_validate` returns it with its estimators and indices.
    X : array-like of shape (n, n_features)
        The samples that were cross-validated.

    Returns
    -------
    found : OutOfFold
        Probabilities, folds and labels.

    Raises
    ------
    ValueError
        If estimators or indices are missing, a row is tested twice, or two models were
        tested on other samples.
    """
    fold_of_rows = {}
    fitted = []
    for name, results in models.items():
        fold_of_rows[name] = _tested(results, num_samples(X))
        fitted += results["estimator"]
    for model in fitted:
        if not hasattr(model, "predict_proba"):
            raise ValueError(
                f"{type(model).__name__} has no predict_proba, but calibration needs"
                " probabilities: cross-validate RecalibratedClassifierCV(model)."
            )
    classes = np.unique(np.concatenate([model.classes_ for model in fitted]))
    first = next(iter(fold_of_rows.values()))
    rows = np.flatnonzero(first >= 0)  # -1 stands for a row that no fold tests
    probabilities = {}
    folds = {}
    for name, fold_of_row in fold_of_rows.items():
        if not np.array_equal(np.flatnonzero(fold_of_row >= 0), rows):
            first_name = next(iter(fold_of_rows))
            raise ValueError(
                f"The cross-validation of {name!r} did not test the same rows as that"
                f" of {first_name!r}: models must be compared on the same rows."
            )
        folds[name] = fold_of_row[rows]
        probabilities[name] = np.empty((len(rows), len(classes)))
        for fold, model in enumerate(models[name]["estimator"]):
            in_fold = folds[name] == fold
            # Whether rows must sum to 1 is known, and checked, only where the diagram
            # reads them: one-vs-rest probabilities need not.
            probabilities[name][in_fold] = classifier_scores(
                model,
                safe_indexing(X, rows[in_fold]),
                classes,
                "predict_proba",
                rows_sum_to_one=False,
            )
    return OutOfFold(rows, probabilities, folds, classes)


def _are_several(cv_results):
    """Return whether a mapping holds cross-validations by name, rather than the
    results of one.
    """
    if not isinstance(cv_results, Mapping) or len(cv_results) == 0:
        return False
    if "indices" in cv_results:
        return False
    return all(isinstance(results, Mapping) for results in cv_results.values())


def named_results(cv_results: Any, name: str | None) -> dict[str | None, Any]:
    """Return one cross-validation, or a dict of several, by name.

    Parameters
    ----------
    cv_results : dict
        What `cross_validate` returned, or a dict of such results by name.
    name : str or None
        Name of a single model; None means that of its class.

    Returns
    -------
    models : dict
        The cross-validations by name.

    Raises
    ------
    ValueError
        If there are no estimators or no indices, or there is a name besides several.
    """
    if not _are_several(cv_results):
        _check_keys(cv_results)
        if name is None:
            name = type(cv_results["estimator"][0]).__name__
        return {str(name): cv_results}
    if name is not None:
        raise ValueError(
            f"name={name!r} is for a single model; for several models, the keys of the"
            " dict are the names."
        )
    by_name = {}
    for model, results in cv_results.items():
        _check_keys(results)
        by_name[str(model)] = results
    return by_name


def _check_keys(cv_results):
    """Raise unless the results of one cross-validation hold estimators and folds."""
    if not isinstance(cv_results, Mapping):
        raise TypeError(
            "cv_results must be the result of cross_validate, or a dict of results by"
            f" name, found an object of class {type(cv_results).__name__}."
        )
    if not {"estimator", "indices"} <= cv_results.keys():
        raise ValueError(
            "cv_results lacks the estimators or the indices of the folds: call"
            " cross_validate(..., return_estimator=True, return_indices=True)."
        )


def _tested(cv_results, n_rows):
    """Return the number of the fold that tests each row (n_rows,), -1 for a row that
    only trains.
    """
    fold_of_row = np.full(n_rows, -1)
    for fold, test in enumerate(cv_results["indices"]["test"]):
        rows = np.asarray(test)
        if rows.max(initial=0) >= n_rows:
            raise ValueError(
                f"cv_results tests row {rows.max()}, but X has {n_rows} rows: pass the"
                " X and y that were cross-validated."
            )
        again = rows[fold_of_row[rows] >= 0]
        if len(again):
            raise ValueError(
                f"cv_results tests row {again.min()} in two folds, but a diagram counts"
                " each row once: use splits such as StratifiedKFold or"
                " TimeSeriesSplit."
            )
        fold_of_row[rows] = fold
    return fold_of_row
