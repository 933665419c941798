"""Calibration by group: a map for each predicted class, site, month or question set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from skcalib._defaults import check_fitted, unchanged_if_refused
from skcalib._fitting.provenance import provenance
from skcalib._fitting.wrapped import (
    check_recalibrator,
    class_parameters,
    refuse_features,
)
from skcalib._input.groups import refuse_measurements
from skcalib._input.labels import check_clusters, check_groups
from skcalib._input.scalars import check_confidence_level
from skcalib._input.scores import check_estimator_scores, check_sample_weight
from skcalib._input.sklearn_private import HasMethods, Interval
from skcalib._input.warn import warn
from skcalib._intervals.influence import cluster_codes
from skcalib._intervals.one_probability.samples import widened_limits
from skcalib._rows.keys import check_ids
from skcalib._rows.sorting import rows_by_code
from skcalib.maps import Choice, GroupOf, Largest, Mixture, Place, checks, map_of
from skcalib.recalibrators._base import BaseRecalibrator, decisions
from skcalib.recalibrators._certified_mixin import certify_groups, forbid_certificates
from skcalib.recalibrators._group_parts import PartRows, parts_of_groups
from skcalib.recalibrators._temperature import TemperatureScaling
from skcalib.recalibrators._transformer import RecalibratorOfColumns
from skcalib.recalibrators._uniform_mass import UniformMassBinning

if TYPE_CHECKING:
    # Imported for the type alone: a fit does not need it.
    from skcalib.guarantees import CalibrationCertificate

_PREDICTED_CLASS = "predicted_class"

_NO_CERTIFICATE = (
    "the fit serves several groups or is mixed with the pooled fit, so no guarantee"
    " holds for its own samples. Groups of at least min_group_size samples have a"
    " certificate with shrinkage=0 and merge_small_groups=False."
)


class GroupwiseRecalibrator(RecalibratorOfColumns):
    """Recalibrator that fits any method to each group of samples separately.

    A model may be calibrated on average, but overconfident for one class, site or month
    and underconfident for another. Groups with few samples use the pooled fit to all
    samples, or a mixture of both fits [1]_.

    Parameters
    ----------
    recalibrator : recalibrator, default=None
        The method, cloned for each group; None means `TemperatureScaling`. Its `input`
        and `classes` apply to the whole estimator.
    groups : "predicted_class", str, int, callable or None, default="predicted_class"
        Source of the groups: the class with the largest score, the column of `X` with
        this name or position (which is then not a score), or a function of `X` that
        returns one value per sample. Alternatively, pass an array as `groups` to `fit`
        and `predict_proba`; with ``groups=None``, this is required.
    min_group_size : float, default=50
        Groups with fewer samples (total weight) use the pooled fit, or are merged.
    shrinkage : float, default=0.0
        Probabilities are a weighted mean of the two fits: the group's fit has the
        weight n / (n + shrinkage), where n is the total weight of its samples, and the
        pooled fit has the remaining weight.
    merge_small_groups : bool, default=False
        Whether to merge small groups until they contain `min_group_size` samples in
        total. Groups with similar mean residuals of the pooled fit are merged; the
        residuals are first shrunk toward 0, as if the group contained `min_group_size`
        further samples without residuals. Groups with few samples may look similar by
        chance, so use a positive `shrinkage` as well.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    provenance_ : dict
        Provenance of the fit: method, parameters, number of samples, events per class,
        versions, and a hash of the samples.
    groups_ : ndarray of shape (n_groups,)
        Sorted groups seen in `fit`; all classes if groups are predicted classes.
    group_sizes_ : ndarray of shape (n_groups,)
        Total weight of the samples in each group.
    recalibrators_ : dict
        Maps each group to the fitted recalibrator that it uses: its own, that of the
        merged groups, or the pooled one.
    pooled_recalibrator_ : recalibrator
        The recalibrator fitted to all samples.
    n_features_in_ : int
        Number of columns of `X`, including the column of groups.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range. Also
        raised if no source of groups or more than one is given, or if a column does not
        exist.

    See Also
    --------
    ClasswiseTemperatureScaling : Temperatures by predicted class that stay near a
        shared one.
    skcalib.metrics.groupwise_calibration_error : Shows which groups are miscalibrated.

    Notes
    -----
    Inside a pipeline, name a column of the original data and pass it around the
    classifier, as in the example below; scikit-learn's scorers do not pass arrays to
    `predict_proba`. A group that was not seen in `fit` uses the pooled fit, with a
    warning. A group that lacks a class required by its method also uses the pooled fit,
    without a warning.

    ``GroupwiseRecalibrator(HistogramBinning(multiclass="top_label"))`` is the top-label
    histogram binning of [2]_, which is calibrated conditionally on the predicted class.

    References
    ----------
    .. [1] Zhao, Chen and Oymak (2020), On the role of dataset quality and heterogeneity
        in model confidence.
    .. [2] Gupta and Ramdas (2022), Top-label calibration and multiclass-to-binary
        reductions.

    Examples
    --------
    A score of 1/2 is followed by an event in 1 of 4 samples on Mondays and in 3 of 4 on
    Tuesdays:

    >>> import numpy as np
    >>> from skcalib import GroupwiseRecalibrator, HistogramBinning
    >>> scores, y = np.full(8, 0.5), [0, 0, 0, 1, 0, 1, 1, 1]
    >>> days = ["Monday"] * 4 + ["Tuesday"] * 4
    >>> groupwise = GroupwiseRecalibrator(HistogramBinning(binning=1), min_group_size=4)
    >>> groupwise.fit(scores, y, groups=days).predict_proba(
    ...     [0.5, 0.5], groups=["Monday", "Tuesday"]
    ... )[:, 1].tolist()
    [0.25, 0.75]

    The same method in a pipeline, with groups from a column of the data:

    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from skcalib import CrossFittedClassifier
    >>> X = np.column_stack(
    ...     (np.random.default_rng(0).normal(size=200), np.arange(200) % 2)
    ... )
    >>> model = make_pipeline(
    ...     CrossFittedClassifier(GaussianNB(), passthrough=1),
    ...     GroupwiseRecalibrator(groups=-1),
    ... )
    >>> model.fit(X, X[:, 0] + X[:, 1] > np.arange(200) / 100)[-1].group_sizes_.tolist()
    [100.0, 100.0]
    """

    _parameter_constraints = {
        "recalibrator": [HasMethods(["fit", "predict_proba"]), None],
        "groups": [str, Integral, callable, None],
        "min_group_size": [Interval(Real, 0, None, closed="left")],
        "shrinkage": [Interval(Real, 0, None, closed="left")],
        "merge_small_groups": ["boolean"],
    }

    _default_objects = {"recalibrator": TemperatureScaling}

    _attributes = {
        "groups_": checks.labels,
        "group_sizes_": checks.amounts,
        "pooled_recalibrator_": checks.fitted,
        "recalibrators_": checks.several(dict),
        "_given_groups": checks.flag,
        "_own_share": checks.shares,
    }

    groups_: np.ndarray
    group_sizes_: np.ndarray
    recalibrators_: dict
    pooled_recalibrator_: BaseRecalibrator

    def __init__(
        self,
        recalibrator: BaseEstimator | None = None,
        groups: str | int | Callable | None = "predicted_class",
        min_group_size: float = 50,
        shrinkage: float = 0.0,
        *,
        merge_small_groups: bool = False,
    ):
        self.recalibrator = recalibrator
        self.groups = groups
        self.min_group_size = min_group_size
        self.shrinkage = shrinkage
        self.merge_small_groups = merge_small_groups

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        clusters: ArrayLike | None = None,
    ) -> Self:
        """Fit the pooled calibration map and the maps of the groups.

        Parameters
        ----------
        X : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
            Scores, in the sorted order of the classes, and the column of groups if
            there is one.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), default=None
            Frequency weights: a sample with weight 2 counts twice.
        groups : array-like of shape (n,), default=None
            The group of each sample, instead of the predicted class; `predict_proba`
            then also requires groups.
        clusters : array-like of shape (n,), default=None
            Cluster of each sample: dependent samples (from the same patient or match)
            share a value. They are passed to the fits that take them, each with those
            of its samples, for `predict_interval`.

        Returns
        -------
        self : GroupwiseRecalibrator
            The fitted recalibrator.

        Raises
        ------
        ValueError
            If scores, labels, groups or clusters are inconsistent, or if a column is
            missing.
        """
        self._validate_params()
        with unchanged_if_refused(self):
            refuse_features(self._resolved("recalibrator"))
            vars(self).pop("_group_column", None)  # of an earlier fit to a table
            self._check_one_source(groups)
            y = self._with_counted_labels(y, sample_weight, X)
            keys = self._group_columns(groups)
            X, classes = self._in_class_order_with_columns(X, y, keys, "groups")
            scores, values = self._scores_and_values(X, groups, reset=True)
            codes = self._encoded(y, scores, classes)
            weight = check_sample_weight(sample_weight, len(scores))
            cluster = check_clusters(clusters, len(scores))
            if values is None:
                self.groups_ = self.classes_
                group = decisions(scores, self.input)
            else:
                self.groups_, group = check_groups(values, len(scores), scores_name="X")
                refuse_measurements(self.groups_, "groups")
            self._fit_groups(scores, codes, weight, group, cluster)
            self.provenance_ = provenance(self, scores, codes, weight)
        return self

    def _fit_groups(self, scores, codes, sample_weight, group, cluster):
        """Fit the pooled map and those of the groups to scores (n, C), codes, weights
        or None, the index in `groups_` of each row's group, and the codes of clusters
        or None, (n,) each.
        """
        y = self.classes_[codes]
        sizes = np.bincount(group, sample_weight, minlength=len(self.groups_))
        self.group_sizes_ = sizes.astype(np.float64)
        # 1. The fit to all rows, which small groups use.
        recalibrator = self._unfitted_recalibrator()
        rows = PartRows(scores, y, sample_weight, cluster, slice(None))
        if cluster is not None:
            cluster_codes(rows.clusters)  # one cluster of all rows is refused
        self.pooled_recalibrator_ = rows.fit(recalibrator)
        # 2. Parts: the groups of a part have one fit together. A large group is a part
        # of its own, small groups may be merged.
        residual_sums = None
        if self.merge_small_groups:
            residuals = self._residuals(scores, codes)
            if sample_weight is not None:
                residuals = sample_weight * residuals
            residual_sums = np.bincount(group, residuals, minlength=len(sizes))
        part_of_group = parts_of_groups(
            self.group_sizes_, self.min_group_size, residual_sums
        )
        # 3. The fits of the parts.
        rows_of_part = {}
        for part, rows in rows_by_code(part_of_group[group]):
            rows_of_part[part] = PartRows(scores, y, sample_weight, cluster, rows)
        self._fit_parts(recalibrator, part_of_group, rows_of_part)
        if cluster is not None:
            self._has_one_cluster = np.zeros(len(sizes), dtype=bool)
            for part, rows in rows_of_part.items():
                self._has_one_cluster[part_of_group == part] = rows.has_one_cluster

    def _fit_table(self, table):
        """Fit to a table with a column of groups, a `GroupedTable`; return self."""
        self._validate_params()
        if self.merge_small_groups:
            raise ValueError(
                "GroupwiseRecalibrator(merge_small_groups=True) cannot be fitted to a"
                " table: set it to False."
            )
        self._check_one_source(table.column)
        self.classes_ = np.array([0, 1])
        if self.classes is not None:
            self.classes_ = np.asarray(self.classes)
        self.n_features_in_ = 1
        self._group_column = table.column
        recalibrator = self._unfitted_recalibrator()
        self.pooled_recalibrator_ = table.fit_all(recalibrator)
        names, rows = table.rows_by_group(recalibrator)
        # The groups are sorted; `position` holds the place of each name among them.
        self.groups_, position = check_groups(names, len(names))
        refuse_measurements(self.groups_, "groups")
        rows_of_groups = [rows[i] for i in np.argsort(position)]
        self.group_sizes_ = np.array([rows.size for rows in rows_of_groups])
        part_of_group = parts_of_groups(self.group_sizes_, self.min_group_size)
        # A part is one group here; those that are too small have the number -1.
        rows_of_part = dict(zip(part_of_group.tolist(), rows_of_groups, strict=True))
        self._fit_parts(recalibrator, part_of_group, rows_of_part)
        self._remember_parameters()
        return self

    def _unfitted_recalibrator(self):
        """Return the recalibrator to be cloned, with the labels of the columns."""
        recalibrator = check_recalibrator(self._resolved("recalibrator"))
        recalibrator.set_params(**class_parameters(recalibrator, self.classes_))
        return recalibrator

    def fit_transform(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        clusters: ArrayLike | None = None,
    ) -> np.ndarray:
        """Fit the maps and return the calibrated probabilities of the same samples.

        Parameters
        ----------
        X : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
            Scores, and the column of groups if there is one.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), default=None
            Frequency weights: a sample with weight 2 counts twice.
        groups : array-like of shape (n,), default=None
            The group of each sample, instead of the predicted class.
        clusters : array-like of shape (n,), default=None
            Cluster of each sample, as in `fit`.

        Returns
        -------
        probabilities : ndarray of float64, shape (n, n_classes)
            Calibrated probabilities, with columns in the order of `classes_`.
        """
        self.fit(X, y, sample_weight, groups, clusters=clusters)
        return self.transform(X, groups)

    def predict_proba(
        self,
        X: ArrayLike,
        groups: ArrayLike | None = None,
        ids: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return calibrated probabilities, using the map of each sample's group.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores, and the column of groups if there is one.
        groups : array-like of shape (n,), default=None
            The group of each sample, if groups were passed to `fit`.
        ids : array-like of shape (n,), default=None
            For `UniformMassBinning(randomize=True)`: the ids of the samples (strings or
            integers).

        Returns
        -------
        probabilities : ndarray of float64, shape (n, n_classes)
            Calibrated probabilities, with columns in the order of `classes_`.

        Raises
        ------
        ValueError
            If groups are missing, or if scores are invalid or their number of columns
            differs from that in `fit`.
        TypeError
            If ids are passed to a recalibrator that does not accept them.
        """
        check_fitted(self)
        if ids is not None and not isinstance(
            self.pooled_recalibrator_, UniformMassBinning
        ):
            raise TypeError(
                "ids are for UniformMassBinning(randomize=True), not"
                f" {self.pooled_recalibrator_!r}."
            )
        scores, group = self._scores_and_codes(X, groups)
        if ids is not None:
            ids = check_ids(ids, len(scores))
        return self._predicted(scores, group, ids)

    def _scores_and_codes(self, X, groups):
        """Return the validated scores (n, C) of new samples, and the index in `groups_`
        of each sample's group (n,), -1 for groups unseen in `fit`.
        """
        scores, values = self._scores_and_values(X, groups, reset=False)
        if values is None:
            return scores, decisions(scores, self.input)
        return scores, self._known_groups(values, len(scores))

    def _predicted(self, scores, group, ids=None):
        """Return the probabilities (n, K) of validated scores (n, C) of samples with
        the codes `group` (n,); `ids` are (n,) or None.
        """

        def predicted(recalibrator, rows=slice(None)):
            """Return the probabilities (n_rows, K) that a recalibrator gives to some of
            the rows, a slice or indices; ids are passed on if there are any.
            """
            if ids is None:
                return recalibrator.predict_proba(scores[rows])
            return recalibrator.predict_proba(scores[rows], ids=ids[rows])

        probabilities = predicted(self.pooled_recalibrator_)
        recalibrators = list(self.recalibrators_.values())
        for code, rows in rows_by_code(group):
            # the code of a group that was not seen in fit is -1
            if code >= 0 and recalibrators[code] is not self.pooled_recalibrator_:
                # With `shrinkage`, probabilities are means of those of both maps.
                by_group = predicted(recalibrators[code], rows)
                by_all = probabilities[rows]
                share = self._own_share[code]
                probabilities[rows] = share * by_group + (1 - share) * by_all
        return probabilities

    def predict_interval(
        self,
        X: ArrayLike,
        confidence_level: float = 0.9,
        groups: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return limits for the event frequency at each score, in the sample's group.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores, and the column of groups if there is one.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1).
        groups : array-like of shape (n,), default=None
            The group of each sample, if groups were passed to `fit`.

        Returns
        -------
        limits : ndarray of float64, shape (n, 2) or (n, n_classes, 2)
            Lower and upper limit of the frequency of the event, the second class; for
            more than two classes, of each class. They contain the calibrated
            probability.

        Raises
        ------
        ValueError
            If groups are missing, if scores are invalid, or if the recalibrator has no
            limits.

        Warns
        -----
        UserWarning
            If the limits of some groups, which the message names, are NaN, as those of
            a group with only one cluster; or if they hold less often than stated.

        Notes
        -----
        The limits are those of the recalibrator that the group uses: its own, also with
        `shrinkage`, whose pull toward the pooled fit is no knowledge of the group.
        Those of merged groups, and of groups that use the pooled fit, are limits for
        the frequency among all samples to which that recalibrator was fitted.
        """
        check_fitted(self)
        level = check_confidence_level(confidence_level)
        scores, group = self._scores_and_codes(X, groups)
        probabilities = self._predicted(scores, group)
        shape = probabilities.shape
        if len(self.classes_) > 2:
            shape = (*shape, 2)
        limits = np.empty(shape)
        groups_by_warning = {}
        for code, rows in rows_by_code(group):
            limits[rows], warning = self._limits_of_group(code, scores[rows], level)
            if warning:
                groups_by_warning.setdefault(warning, []).append(code)
        for warning, codes in groups_by_warning.items():
            names = self.groups_[[code for code in codes if code >= 0]].tolist()
            if names:
                warning = f"In the groups {_first_six(names)}: {warning}"
            warn(warning)
        return widened_limits(*np.moveaxis(limits, -1, 0), probabilities)

    def _limits_of_group(self, code, scores, level):
        """Return the limits of the recalibrator that a group uses, (n, 2) or (n, K, 2),
        at scores (n, C), and what a warning says about them; the code -1 is for groups
        unseen in `fit`.
        """
        recalibrator = self.pooled_recalibrator_
        if code >= 0:
            recalibrator = self.recalibrators_[self.groups_[code].item()]
        reason = f"{type(recalibrator).__name__} has none"
        if isinstance(recalibrator, BaseRecalibrator):
            reason = recalibrator._why_no_limits()
        if reason:
            raise ValueError(self._no_interval(reason))
        limits = recalibrator._limits_checked(scores, level)
        has_one_cluster = getattr(self, "_has_one_cluster", None)
        is_pooled = recalibrator is self.pooled_recalibrator_
        if not is_pooled and has_one_cluster is not None and has_one_cluster[code]:
            return np.nan, "The limits are NaN: the group has only one cluster."
        return limits, recalibrator._limits_warning()

    def transform(
        self,
        X: ArrayLike,
        groups: ArrayLike | None = None,
        ids: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return what `predict_proba` returns, so that recalibrators can be chained.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores, and the column of groups if there is one.
        groups : array-like of shape (n,), default=None
            The group of each sample, if groups were passed to `fit`.
        ids : array-like of shape (n,), default=None
            For `UniformMassBinning(randomize=True)`: the ids of the samples (strings or
            integers).

        Returns
        -------
        probabilities : ndarray of float64, shape (n, n_classes)
            Calibrated probabilities, with columns in the order of `classes_`.
        """
        return self.predict_proba(X, groups, ids)

    def predict(
        self,
        X: ArrayLike,
        groups: ArrayLike | None = None,
        ids: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return the most probable class or, for top-label, the top-scoring class.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores, and the column of groups if there is one.
        groups : array-like of shape (n,), default=None
            The group of each sample, if groups were passed to `fit`.
        ids : array-like of shape (n,), default=None
            For `UniformMassBinning(randomize=True)`: the ids of the samples (strings or
            integers).

        Returns
        -------
        labels : ndarray of shape (n,)
            The first of the classes with the largest probability.
        """
        check_fitted(self)
        if getattr(self.pooled_recalibrator_, "_keeps_decisions", False):
            scores, _ = self._scores_and_values(X, groups, reset=False)
            return self.classes_[decisions(scores, self.input)]
        probabilities = self.predict_proba(X, groups, ids)
        return self.classes_[probabilities.argmax(axis=1)]

    def certificate(
        self,
        confidence_level: float | None = None,
        kind: Literal["conditional", "marginal"] = "conditional",
        n_candidates: int | BaseEstimator = 1,
        *,
        interval: Literal["theorem", "clopper_pearson"] = "theorem",
    ) -> CalibrationCertificate:
        """Return one certificate for all groups, which must have been fixed beforehand.

        Parameters
        ----------
        confidence_level : float, default=None
            Probability with which the guarantee holds, in (0, 1); None means the level
            of the recalibrator if it has one, otherwise 0.9.
        kind : {"conditional", "marginal"}, default="conditional"
            "conditional" is a guarantee that holds simultaneously for all predicted
            probabilities of all groups (by the union bound), and "marginal" is a
            guarantee for the predicted probability of a single random future sample.
        n_candidates : int or fitted search, default=1
            Number of candidates, fixed beforehand, from which this one was selected on
            the same samples.
        interval : {"theorem", "clopper_pearson"}, default="theorem"
            "theorem" is the bound known before any label is observed, and
            "clopper_pearson" is the tighter bound based on the observed labels.

        Returns
        -------
        certificate : CalibrationCertificate
            The certificate; its `low`, `high` and `n_bins` are tuples, in the order of
            `groups_`.

        Raises
        ------
        ValueError
            If a group does not have a separate fit, if group fits are mixed with the
            pooled fit, or if the recalibrator has no certificate.

        References
        ----------
        Gupta and Ramdas (2021), Distribution-free calibration guarantees for histogram
        binning without sample splitting.
        """
        check_fitted(self)
        refused = list(self._without_certificate())
        if refused:
            raise ValueError(
                f"No certificate for the groups {_first_six(refused)}:"
                f" {_NO_CERTIFICATE}"
            )
        recalibrators = list(self.recalibrators_.values())
        if not hasattr(recalibrators[0], "certificate"):
            raise ValueError(
                f"No certificate: {type(recalibrators[0]).__name__} has none;"
                " UniformMassBinning has one."
            )
        if confidence_level is None:
            confidence_level = getattr(recalibrators[0], "confidence_level", 0.9)
        return certify_groups(
            recalibrators,
            confidence_level,
            kind,
            n_candidates=n_candidates,
            interval=interval,
        )

    def _without_certificate(self):
        """Return the groups that no certificate covers, with their recalibrators: those
        that use the pooled fit, alone or in a mean with their own, or share a fit.
        """
        n_groups_by_id = Counter(map(id, self.recalibrators_.values()))
        without = {}
        # `share` is the weight of the group's own fit in its mean with the pooled one.
        groups_and_shares = zip(
            self.recalibrators_.items(), self._own_share, strict=True
        )
        for (group, recalibrator), share in groups_and_shares:
            is_pooled = recalibrator is self.pooled_recalibrator_
            is_merged = n_groups_by_id[id(recalibrator)] > 1
            if is_pooled or is_merged or share < 1:
                without[group] = recalibrator
        return without

    def _map(self, scores):
        """Return the map from scores to probabilities as a `Node`: for each row
        the map of its group, or the pooled map if the group was not seen in `fit`.
        """
        # the map of each group, in the order of `groups_`, and the pooled one
        cases, pooled = self._maps_of_groups(scores)
        # 1. Groups from a column, or given as an array.
        is_column = isinstance(self.groups, str) and self.groups != _PREDICTED_CLASS
        if self._given_groups or is_column:
            column = self.groups
            if self._given_groups:
                # A fit to a table knows the name of its column.
                column = getattr(self, "_group_column", None)
            numbers = {group: k for k, group in enumerate(self.groups_.tolist())}
            # The pooled map is the last case, for all other groups.
            key = GroupOf(column, numbers, len(cases))
            return Choice(key, (*cases, pooled))
        if self.groups != _PREDICTED_CLASS:
            raise ValueError(
                f"GroupwiseRecalibrator(groups={self.groups!r}) cannot be exported for"
                " use outside Python: pass the name of the group column."
            )
        # 2. The predicted class is the group: that of the largest score. With one score
        # it is the second class above a probability of 1/2, or log-odds of 0.
        if scores.width > 1:
            return Choice(Largest(scores), cases)
        tie = np.array([0.0 if self.input == "logit" else 0.5])
        return Choice(Place(scores, tie), cases)

    def _maps_of_groups(self, scores):
        """Return the maps of the groups, in the order of `groups_`, and the pooled map,
        as nodes.
        """
        # Each recalibrator has one node, by its Python `id`: several groups may share a
        # recalibrator.
        node_of = {}
        for recalibrator in (self.pooled_recalibrator_, *self.recalibrators_.values()):
            if id(recalibrator) not in node_of:
                node_of[id(recalibrator)] = map_of(recalibrator, scores)
        pooled = node_of[id(self.pooled_recalibrator_)]
        cases = []
        shares = self._own_share.tolist()
        for recalibrator, share in zip(
            self.recalibrators_.values(), shares, strict=True
        ):
            case = node_of[id(recalibrator)]
            # With `shrinkage` the case is the weighted mean of this map and the pooled
            # one.
            if case is not pooled and share < 1:
                case = Mixture((share, 1 - share), (case, pooled))
            cases.append(case)
        return tuple(cases), pooled

    def _check_attributes(self):
        """Raise a ValueError unless the fitted attributes, which were read from a JSON
        document, are consistent with each other.
        """
        checks.check_lengths(self, len(self.groups_), "group_sizes_", "_own_share")
        if hasattr(self, "_has_one_cluster"):
            checks.check_lengths(self, len(self.groups_), "_has_one_cluster")
        if list(self.recalibrators_) != self.groups_.tolist():
            raise ValueError(
                f"recalibrators_ must have the groups {self.groups_.tolist()} as keys"
            )
        checks.check_same_classes(
            self, self.pooled_recalibrator_, *self.recalibrators_.values()
        )
        # If a column of X holds the groups, X has one column more than the scores.
        has_source = self.groups not in (None, _PREDICTED_CLASS)
        takes_column = has_source and not self._given_groups
        width = self.pooled_recalibrator_.n_features_in_ + takes_column
        if self.n_features_in_ != width:
            raise ValueError(
                f"n_features_in_ must be {width}, found {self.n_features_in_}"
            )

    def _check_one_source(self, groups):
        """Set `_given_groups`, whether `fit` received an array of groups; raise a
        ValueError unless groups come from either it or the parameter `groups`.
        """
        if isinstance(self.groups, bool | np.bool_):
            raise ValueError(
                "groups must be a name, a position or a function, found"
                f" {self.groups!r}."
            )
        if groups is None and self.groups is None:
            raise ValueError(
                "groups is missing: with groups=None in the constructor, fit needs an"
                " array with the group of each row."
            )
        if groups is not None and self.groups not in (None, _PREDICTED_CLASS):
            raise ValueError(
                "groups come from two sources: the array passed to fit and the"
                f" parameter groups={self.groups!r}. Set the parameter to None, or"
                " omit the array."
            )
        self._given_groups = groups is not None

    def _group_columns(self, groups):
        """Return a list with the name or position of the column of X that holds the
        groups, empty if they come from elsewhere.
        """
        is_column = isinstance(self.groups, Integral | str)
        if groups is None and is_column and self.groups != _PREDICTED_CLASS:
            return [self.groups]
        return []

    def _scores_and_values(self, X, groups, *, reset):
        """Return the validated scores (n, C), and the group of each sample as given: in
        `groups`, in a column of X, or by the user's function; None if the predicted
        class is the group.
        """
        if self._given_groups and groups is None:
            raise ValueError(
                "groups is missing: the recalibrator was fitted with an array of"
                " groups and needs one here too. If no array can be passed, as in"
                " cross-validation, use a column of X as groups."
            )
        if not self._given_groups and groups is not None:
            raise ValueError(
                "groups was passed, but the recalibrator was fitted with"
                f" groups={self.groups!r}."
            )
        keys = self._group_columns(groups)
        if keys:
            scores, column = self._scores_and_columns(X, keys, "groups", reset=reset)
            return scores, np.asarray(column)[:, 0]
        scores = check_estimator_scores(self, X, input=self.input, reset=reset)
        if groups is None and callable(self.groups):
            groups = self.groups(X)
        return scores, groups

    def _known_groups(self, values, n_rows):
        """Return the index in `groups_` of each sample's group (n,); -1, with a
        warning, for groups unseen in `fit`.
        """
        distinct, inverse = check_groups(values, n_rows, scores_name="X")
        codes = {name: code for code, name in enumerate(self.recalibrators_)}
        code_of_distinct = np.array([codes.get(name, -1) for name in distinct.tolist()])
        code_of_row = code_of_distinct[inverse]
        is_unseen = code_of_distinct < 0
        if is_unseen.any():
            unseen = _first_six(distinct[is_unseen].tolist())
            n_unseen = np.count_nonzero(code_of_row < 0)
            rows_use = f"{n_unseen} rows use"
            if n_unseen == 1:
                rows_use = "1 row uses"
            warn(
                f"{rows_use} the pooled fit because of groups that were not seen in"
                f" fit: {unseen}."
            )
        return code_of_row

    def _residuals(self, scores, codes):
        """Return the residual of each row (n,) under the pooled fit. The outcome is the
        second of two classes or, for more, that the predicted class is right.
        """
        probabilities = self.pooled_recalibrator_.predict_proba(scores)
        if len(self.classes_) == 2:
            return (codes == 1) - probabilities[:, 1]
        is_right = codes == probabilities.argmax(axis=1)
        return is_right - probabilities.max(axis=1)

    def _fit_parts(self, recalibrator, part_of_group, rows_of_part):
        """Fit clones of a recalibrator to parts, sets of groups that are fitted
        together.

        Set `recalibrators_`, from each group to its own, and `_own_share` (n_groups,),
        its weight in the mean with the pooled one. Groups with the number -1 in
        `part_of_group`, and of a part whose rows lack a class, use the pooled fit.
        `rows_of_part` maps the others to a `PartRows`, or to what a table has in its
        place.
        """
        self.recalibrators_ = dict.fromkeys(
            self.groups_.tolist(), self.pooled_recalibrator_
        )
        self._own_share = np.zeros(len(self.groups_))
        vars(self).pop("_has_one_cluster", None)  # of an earlier fit
        for part in np.unique(part_of_group[part_of_group >= 0]).tolist():
            members = np.flatnonzero(part_of_group == part)
            names = self.groups_[members].tolist()
            rows = rows_of_part[part]
            lacks_class = rows.n_classes < len(self.classes_)
            try:
                fitted = rows.fit(recalibrator)
            except ValueError as error:
                if lacks_class:
                    continue
                raise ValueError(
                    f"groups: {', '.join(map(repr, names))} could not be fitted."
                    f" {error}"
                ) from error
            # A method that does not need every class may have learned fewer of them.
            has_all_classes = len(fitted.classes_) == len(self.classes_)
            if has_all_classes or not lacks_class:
                self.recalibrators_.update(dict.fromkeys(names, fitted))
                size = self.group_sizes_[members].sum()
                self._own_share[members] = size / (size + self.shrinkage)
        forbid_certificates(self.pooled_recalibrator_, _NO_CERTIFICATE)
        for uncovered in self._without_certificate().values():
            forbid_certificates(uncovered, _NO_CERTIFICATE)


def _first_six(names):
    """Return the first six names as text, with dots for any others."""
    shown = ", ".join(map(repr, names[:6]))
    if len(names) > 6:
        shown += ", ..."
    return shown
