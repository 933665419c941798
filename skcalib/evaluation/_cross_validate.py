"""Recalibrators side by side, each judged on the samples that it was not fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from skcalib import recalibrators as catalogue
from skcalib._cells.binned import counted_rows
from skcalib._errors.proper_scores import LOSSES
from skcalib._fitting.cross_validation import CrossFits
from skcalib._fitting.folds import cross_validation_folds
from skcalib._fitting.gains import Design
from skcalib._fitting.wrapped import check_recalibrator
from skcalib._inference.results import IntervalEstimate, ResultTable
from skcalib._input.annotations import CrossValidation
from skcalib._input.device_scores import DeviceScores
from skcalib._input.groups import refuse_measurements
from skcalib._input.label_weights import is_importance
from skcalib._input.labels import check_groups
from skcalib._input.scalars import check_confidence_level, check_int, check_option
from skcalib._input.scored_labels import check_scored_labels
from skcalib._intervals.influence import cluster_codes
from skcalib._progress import Progress
from skcalib._verdicts import interval_words, level_words, rounded
from skcalib.recalibrators._tensor_rows import fits_tensors

UNCALIBRATED = "uncalibrated"
_LEVEL = 0.9
# The library's recalibrators that are compared by default, the simplest first.
_OF_TWO_CLASSES = (
    catalogue.PriorShift,
    catalogue.TemperatureScaling,
    catalogue.PlattScaling,
    catalogue.BetaCalibration,
    catalogue.SplineCalibration,
    catalogue.IsotonicCalibration,
    catalogue.StackedRecalibrator,
)
_OF_MORE_CLASSES = (
    catalogue.PriorShift,
    catalogue.TemperatureScaling,
    catalogue.VectorScaling,
    catalogue.DirichletCalibration,
    catalogue.StackedRecalibrator,
)
# With more classes, a matrix takes too long to fit,
_MOST_CLASSES_OF_MATRIX = 20
# and with more scores of more than two classes a stack.
_MOST_SCORES_OF_STACK = 30_000


def kinds_to_compare(n_samples, n_columns):
    """Return the classes of the library's recalibrators that can be fitted in time to
    scores (n_samples, n_columns), the simplest first.
    """
    if n_columns == 1:
        return list(_OF_TWO_CLASSES)
    kinds = list(_OF_MORE_CLASSES)
    if n_columns > _MOST_CLASSES_OF_MATRIX:
        kinds.remove(catalogue.DirichletCalibration)
    if n_samples * n_columns > _MOST_SCORES_OF_STACK:
        kinds.remove(catalogue.StackedRecalibrator)
    return kinds


_NAMES_OF_LOSSES = {"log": "log-loss", "brier": "Brier score"}


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidatedRecalibrators(ResultTable):
    """Out-of-fold probabilities and losses of several recalibrators on the same folds.

    Each entry of a dict belongs to a recalibrator, by its name; "uncalibrated" stands
    for the scores as they are. ``print`` says which one is best.

    Parameters
    ----------
    probabilities : dict of ndarray of shape (n,) or (n, K)
        Out-of-fold probability of the event, or of each class. NaN for samples of
        weight 0.
    losses : dict of dict of ndarray of shape (n,)
        By loss ("log", in nats, or "brier") and by recalibrator: the out-of-fold loss
        of each sample. The Brier score is (s - y)^2 for two classes, and its sum over
        the classes if there are more. NaN for samples of weight 0.
    losses_by_fit : dict of dict of ndarray of shape (n_fits, n)
        The loss of each sample under each fit, including the samples that it was fitted
        to. There is one fit for each of the `folds`.
    folds : list of Fold
        Named tuples (train, train_weight, test, test_weight): positions of samples, and
        their weights or None, for each fit.
    """

    _prints_table = False

    probabilities: dict
    losses: dict
    losses_by_fit: dict
    folds: list
    _fits: CrossFits = field(repr=False)
    _candidates: dict = field(repr=False)
    _rows: _Rows = field(repr=False)

    @property
    def best(self):
        """Name of the recalibrator with the lowest mean log-loss; of equally good ones,
        the first.
        """
        return min(self._candidates, key=self.mean_loss)

    def mean_loss(self, name: str, loss: Literal["log", "brier"] = "log") -> float:
        """Return the weighted mean of the out-of-fold losses of a recalibrator.

        Parameters
        ----------
        name : str
            Name of the recalibrator.
        loss : {"log", "brier"}, default="log"
            The loss.

        Returns
        -------
        loss : float
            The mean loss.
        """
        check_option(loss, "loss", tuple(LOSSES))
        return self._fits.mean_loss(self._candidate(name), loss)

    def gain(
        self,
        before: str,
        after: str,
        loss: Literal["log", "brier"] = "log",
        *,
        confidence_level: float = _LEVEL,
    ) -> IntervalEstimate:
        """Return by how much one recalibrator's out-of-fold loss is lower than
        another's.

        Parameters
        ----------
        before, after : str
            Names of two recalibrators, "uncalibrated" for the scores as they are.
        loss : {"log", "brier"}, default="log"
            The loss.
        confidence_level : float, default=0.9
            Coverage of the interval, in (0, 1).

        Returns
        -------
        gain : IntervalEstimate
            Named tuple (estimate, low, high): the mean loss of `before` minus that of
            `after`, above 0 if `after` is better. The limits are NaN if the samples do
            not determine them; `reason` then says why.

        Raises
        ------
        ValueError
            If a name or the loss is unknown.
        """
        level = check_confidence_level(confidence_level)
        names = {"after": after, "before": before}
        return self._gain(before, after, loss).interval(level, loss=loss, **names)

    def pvalue(
        self,
        before: str,
        after: str,
        loss: Literal["log", "brier"] = "log",
        *,
        alternative: Literal["two-sided", "greater"] = "two-sided",
    ) -> float:
        """Return the p-value of the hypothesis that two recalibrators have the same
        expected loss.

        Parameters
        ----------
        before, after : str
            Names of two recalibrators.
        loss : {"log", "brier"}, default="log"
            The loss.
        alternative : {"two-sided", "greater"}, default="two-sided"
            "greater" tests whether the gain is above 0: `after` has the lower loss.

        Returns
        -------
        pvalue : float
            From the same distribution as the interval of `gain`; NaN if the samples do
            not determine it.

        Raises
        ------
        ValueError
            If a name or an option is unknown.
        """
        check_option(alternative, "alternative", ("two-sided", "greater"))
        return self._gain(before, after, loss).pvalue(alternative)

    def extended(
        self,
        recalibrators: Mapping[str, BaseEstimator],
        *,
        groups: ArrayLike | None = None,
    ) -> CrossValidatedRecalibrators:
        """Fit further recalibrators on the same folds.

        Parameters
        ----------
        recalibrators : dict
            Recalibrators by names that are not in use yet.
        groups : array-like of shape (n,), default=None
            Group of each sample, for recalibrators whose `fit` takes `groups`.

        Returns
        -------
        extended : CrossValidatedRecalibrators
            A result with the recalibrators of this one and the further ones.

        Raises
        ------
        ValueError
            If a name is in use, or a recalibrator cannot be fitted.
        """
        return self._extended(recalibrators, groups)

    def _extended(self, recalibrators, groups, known=None):
        """Return the result with further recalibrators, a dict, and the group (n,) of
        each sample or None. The fits in `known`, a result that `_divided` has divided
        into this one, are taken over.
        """
        _check_names(recalibrators, self._candidates)
        groups = self._rows.values_of(groups, "groups")
        known_candidates = {} if known is None else known._candidates
        candidates = dict(self._candidates)
        for name, recalibrator in recalibrators.items():
            candidates[name] = self._fits.candidate(
                recalibrator, groups, known=known_candidates.get(name)
            )
        return _result(self._fits, candidates, self._rows)

    def _divided(self, n_repeats, random_state):
        """Return a result without recalibrators for `n_repeats` divisions into folds:
        those of this result, and further ones of the seed `random_state`.
        """
        first = self._fits.divisions
        divisions = _divisions(
            len(first[0]),
            n_repeats,
            self._fits.scores,
            self._fits.codes,
            self._fits.design,
            random_state,
        )
        fits = replace(self._fits, divisions=[*first, *divisions[len(first) :]])
        return _result(fits, {UNCALIBRATED: fits.uncalibrated()}, self._rows)

    def columns(self):
        """Return the columns of the table, with a row for each recalibrator.

        Returns
        -------
        columns : dict
            `recalibrator` (its name), `log_loss` and `brier_score`, and for each the
            gain over the uncalibrated scores with its 90% interval: `log_gain,
            log_gain_low, log_gain_high` and `brier_gain, brier_gain_low,
            brier_gain_high`. `reason` says why limits are NaN.
        """
        names = list(self._candidates)
        columns = {"recalibrator": np.array(names)}
        reason = [""] * len(names)
        for loss, column in (("log", "log_loss"), ("brier", "brier_score")):
            gains = [self.gain(UNCALIBRATED, name, loss) for name in names]
            columns[column] = np.array([self.mean_loss(name, loss) for name in names])
            estimates, low, high = np.array(gains).T
            columns[f"{loss}_gain"] = estimates
            columns[f"{loss}_gain_low"] = low
            columns[f"{loss}_gain_high"] = high
            for k, gain in enumerate(gains):
                if np.isnan(gain.low):
                    reason[k] = gain.reason
        columns["reason"] = np.array(reason)
        return columns

    def __len__(self):
        return len(self._candidates)

    def _sentences(self):
        """Say which recalibrator is best and by how much, then what each gains."""
        best = self.best
        lines = [self._first_line(best)]
        for name in self._candidates:
            gain = self.gain(UNCALIBRATED, name)
            is_told = name in (UNCALIBRATED, best)
            if not is_told and not np.isnan(gain.estimate):
                lines.append(f"{name} gains {_words(gain)}.")
        return "\n".join(lines)

    def _first_line(self, best):
        """Return the sentence about the best recalibrator."""
        if best == UNCALIBRATED:
            others = [name for name in self._candidates if name != UNCALIBRATED]
            closest = min(others, key=self.mean_loss)
            gain = self.gain(closest, UNCALIBRATED)
            if np.isnan(gain.estimate):
                return f"No recalibrator can be compared: {gain.reason}."
            return (
                "No recalibrator has a lower log-loss on held-out data than the"
                f" uncalibrated scores; that of {closest}, the closest, is higher by"
                f" {_words(gain)}."
            )
        gain = self.gain(UNCALIBRATED, best)
        sentence = (
            f"{best} has the lowest log-loss on held-out data,"
            f" {rounded(self.mean_loss(best))} nats per sample: it gains"
            f" {_words(gain)} over the uncalibrated scores"
        )
        if gain.low <= 0:
            sentence += ", which chance alone could produce"
        return f"{sentence}."

    def _candidate(self, name):
        """Return the `Candidate` of a name, or raise."""
        if name not in self._candidates:
            raise ValueError(
                f"Unknown recalibrator {name!r}. The available ones are"
                f" {list(self._candidates)}."
            )
        return self._candidates[name]

    def _gain(self, before, after, loss):
        """Return the `Gain` of one candidate over another, given by their names."""
        check_option(loss, "loss", tuple(LOSSES))
        return self._fits.gain(self._candidate(before), self._candidate(after), loss)


class _Rows(NamedTuple):
    """Where the samples of positive weight, which alone are used, stand among all
    samples: `n_samples` is the number of all, `kept` holds positions.
    """

    n_samples: int
    kept: np.ndarray

    def values_of(self, argument, name):
        """Return the value of each used sample in an argument (n,) of the user, such as
        its group; None for None. `name` is that of the argument.
        """
        if argument is None:
            return None
        names, codes = check_groups(argument, self.n_samples, name=name)
        if name == "groups":
            refuse_measurements(names, name)
        return names[codes[self.kept]]

    def expanded(self, values):
        """Return an array of the used samples as one of all, NaN for the others."""
        shape = (self.n_samples, *values.shape[1:])
        expanded = np.full(shape, np.nan)
        expanded[self.kept] = values
        return expanded


def cross_validate(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    recalibrators: Mapping[str, BaseEstimator] | None = None,
    *,
    cv: CrossValidation | None = 5,
    n_repeats: int = 1,
    groups: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    weight_type: Literal["frequency", "importance"] | dict = "frequency",
    random_state: int | np.random.RandomState | None = None,
    labels: ArrayLike | None = None,
    pos_label: float | str | None = None,
    verbose: bool = False,
) -> CrossValidatedRecalibrators:
    """Compare recalibrators on samples to which they were not fitted.

    Each recalibrator is fitted to all folds but one and predicts the remaining fold, on
    the same folds as all others. The uncalibrated scores are always compared as well.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1] for data to which the model was not fitted.
    recalibrators : dict, default=None
        Maps names to objects with ``fit(scores, y)`` and ``predict_proba(scores)``.
        None means `PriorShift`, `TemperatureScaling`, `PlattScaling`,
        `BetaCalibration`, `SplineCalibration`, `IsotonicCalibration` and
        `StackedRecalibrator` for two classes; for more, `PriorShift`,
        `TemperatureScaling`, `VectorScaling`, `DirichletCalibration` (up to 20 classes)
        and `StackedRecalibrator` (up to 30,000 scores).
    cv : int, splitter or iterable of (train, test), default=5
        Folds in which every sample is predicted once. An int gives random folds that
        depend only on the samples and on `random_state`. They are not stratified, which
        would bias gains upwards.
    n_repeats : int, default=1
        How often the samples are divided into folds, with an int as `cv`. Losses and
        probabilities are means over the divisions.
    groups : array-like of shape (n,), default=None
        Group of each sample, passed to the recalibrators whose `fit` takes `groups`,
        such as `GroupwiseRecalibrator`.
    clusters : array-like of shape (n,), default=None
        Cluster of each sample: dependent samples (from the same patient or match) share
        a value, and lie in the same fold.
    sample_weight : array-like of shape (n,), default=None
        Weights; see `weight_type`.
    weight_type : {"frequency", "importance"} or dict, default="frequency"
        Meaning of the weights. "frequency": a weight of 2 means two identical samples.
        "importance": each sample was observed once and represents more or less than one
        (to correct for the sampling design).
        A dict gives the weight that each sample would have with each of two labels,
        a number or an array; see `skcalib.evaluation.describe_weights`.
    random_state : int, RandomState instance or None, default=None
        Seed for the folds. None means the folds of `recalibration_gain`, the same in
        each call.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    verbose : bool, default=False
        Whether to write lines to standard error about the progress.

    Returns
    -------
    result : CrossValidatedRecalibrators
        ``probabilities[name]`` and ``losses[loss][name]`` are out-of-fold probabilities
        and losses; ``gain(before, after, loss="log")`` is a difference in mean loss
        with its 90% interval. `to_frame` gives a table; ``print`` says which
        recalibrator is best and by how much.

    Raises
    ------
    ValueError
        If labels, scores, weights or clusters are inconsistent, if a splitter does not
        put each sample into exactly one test fold, or splits a cluster.
    TypeError
        If a recalibrator does not have `fit` and `predict_proba`.

    Warns
    -----
    UserWarning
        If weights are not integers and ``weight_type="frequency"``.

    See Also
    --------
    recalibration_gain : The gain of one recalibrator.
    compare : Compares models that need no fit.
    skcalib.StackedRecalibrator : Mixes several recalibrators.

    Notes
    -----
    The variance of a mean gain is that of a mean of one term per sample, as in
    `compare`, plus the jackknife variance over the fits. If scores were right so far,
    the samples may lack rare labels: the variance that the gain would have with labels
    drawn from the probabilities `before` replaces the first one if it is more than four
    times as large. If the training samples of a fold have only one class, its scores
    are left unchanged and limits are NaN.

    A sample with the integer frequency weight w is dealt out to the folds as w copies
    (with ``n_repeats=1``): its probability and its loss are means over these. With
    ``weight_type="importance"``, multiplying all weights by one factor changes nothing.

    The best of several recalibrators looks better than it is: its gain is the largest
    of several, and its interval does not account for the choice.

    References
    ----------
    Bröcker (2009), Reliability, sufficiency, and the decomposition of proper scores.

    Examples
    --------
    Overconfident forecasts: the log-odds are twice what they should be.

    >>> import numpy as np
    >>> from skcalib import IsotonicCalibration, TemperatureScaling
    >>> from skcalib.evaluation import cross_validate
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(1000)
    >>> y_true = rng.random(1000) < truth
    >>> y_proba = truth**2 / (truth**2 + (1 - truth) ** 2)
    >>> result = cross_validate(
    ...     y_true,
    ...     y_proba,
    ...     {"temperature": TemperatureScaling(), "isotonic": IsotonicCalibration()},
    ... )
    >>> result.best, result.gain("uncalibrated", "temperature").low > 0
    ('temperature', True)
    >>> len(result.folds), result.probabilities["isotonic"].shape
    (5, (1000,))
    """
    fits, candidates, rows = cross_validated(
        y_true,
        y_proba,
        recalibrators,
        cv=cv,
        n_repeats=n_repeats,
        groups=groups,
        clusters=clusters,
        sample_weight=sample_weight,
        weight_type=weight_type,
        random_state=random_state,
        labels=labels,
        pos_label=pos_label,
        verbose=verbose,
    )
    return _result(fits, candidates, rows)


def cross_validated(
    y_true,
    y_proba,
    recalibrators,
    *,
    cv,
    n_repeats=1,
    groups=None,
    clusters,
    sample_weight,
    weight_type,
    random_state=None,
    labels,
    pos_label,
    verbose,
    loss_names=tuple(LOSSES),
):
    """Return the `CrossFits` of the user's samples, the `Candidate` of each
    recalibrator by its name, and the `_Rows` that tell which samples count.

    `loss_names` are the losses that are computed; the other parameters are the user's,
    those of `cross_validate`.
    """
    if recalibrators is not None:
        _check_names(recalibrators, [UNCALIBRATED])
    check_int(n_repeats, "n_repeats")
    data = check_scored_labels(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
        drop=False,
    )
    rows = _Rows(len(data.scores), data.kept)
    groups = rows.values_of(groups, "groups")
    clusters = rows.values_of(clusters, "clusters")
    data = counted_rows(data, weight_type).at(rows.kept)
    known = data.label_weights  # of importance weights, None for others
    if known is not None:
        # Recalibrators that smooth or penalise take weights for numbers of rows.
        known = known.scaled(known.row_factor)
        data = data._replace(sample_weight=known.weight, label_weights=known)
    cluster = None
    if clusters is not None:
        cluster = cluster_codes(clusters)
    design = Design(data.sample_weight, is_importance(weight_type), cluster)
    fits_on_device = False
    if recalibrators is not None and get_config()["array_api_dispatch"]:
        fits_on_device = all(map(fits_tensors, recalibrators.values()))
    if not fits_on_device:
        data = data.copied()
    fits = cross_fits(data, cv, design, n_repeats, random_state, loss_names)
    if recalibrators is None:
        kinds = kinds_to_compare(*fits.scores.shape)
        recalibrators = {kind.__name__: kind() for kind in kinds}
    progress = Progress("cross_validate", verbose)
    candidates = {UNCALIBRATED: fits.uncalibrated()}
    for name, recalibrator in recalibrators.items():

        def show_progress(done, name=name):
            """Report a fit of this recalibrator."""
            progress(f"{name}: {done}")

        candidates[name] = fits.candidate(recalibrator, groups, show_progress)
    return fits, candidates, rows


def cross_fits(
    data, cv, design, n_repeats=1, random_state=None, loss_names=tuple(LOSSES)
):
    """Return the `CrossFits` of validated samples.

    Parameters
    ----------
    data : ScoredLabels
        The samples.
    design : Design
        Their weights and clusters.
    cv : int, splitter or iterable
        The folds, or how many.
    n_repeats : int, default=1
        How often the samples are divided into folds.
    random_state : int, RandomState or None
        Seed of the divisions.
    loss_names : tuple of str
        The losses that are computed.
    """
    codes = data.labels.astype(np.intp)
    if isinstance(data.scores, DeviceScores):
        columns = data.scores.columns(slice(None))
    else:
        columns = data.scores.reshape(len(codes), -1)
    return CrossFits(
        columns,
        codes,
        data.scores,
        _divisions(cv, n_repeats, columns, codes, design, random_state),
        design,
        # A single column of scores is about two classes.
        np.arange(max(columns.shape[1], 2)),
        data.label_weights,
        loss_names,
    )


def _check_names(recalibrators, names_in_use):
    """Raise unless `recalibrators` is a dict from new names to recalibrators."""
    if not isinstance(recalibrators, Mapping) or not recalibrators:
        raise ValueError(
            "recalibrators must be a dict from names to recalibrators, found"
            f" {recalibrators!r:.80}."
        )
    for name, recalibrator in recalibrators.items():
        if not isinstance(name, str):
            raise ValueError(
                f"recalibrators must have names of type str, found {name!r}."
            )
        if name in names_in_use:
            raise ValueError(f"recalibrators: the name {name!r} is already in use.")
        check_recalibrator(recalibrator, f"recalibrators[{name!r}]")


def _divisions(cv, n_repeats, columns, codes, design, random_state):
    """Return `n_repeats` divisions of the samples into folds, a list of lists of
    `Fold`. `columns` (n, n_columns) are the scores, `codes` (n,) the labels; `cv` and
    `random_state` are the user's.
    """
    is_number = cv is None or isinstance(cv, Integral)
    if n_repeats > 1 and not is_number:
        raise ValueError(f"n_repeats={n_repeats} needs an int as cv, found {cv!r:.80}.")
    first_seed = 0  # that of `recalibration_gain`
    if isinstance(random_state, Integral):
        first_seed = int(random_state)
    elif random_state is not None:
        first_seed = int(check_random_state(random_state).randint(2**31))
    divisions = []
    for k in range(n_repeats):
        seed = first_seed
        if k > 0:
            seed = int(np.random.default_rng([first_seed, k]).integers(2**31))
        folds = cross_validation_folds(
            cv,
            columns,
            codes,
            design.sample_weight,
            # With equal event frequencies in all folds the gain would be too large.
            stratified=False,
            seed=seed,
            # Losses are averaged over divisions row by row: rows then stay whole.
            importance=design.importance or n_repeats > 1,
            cluster=design.cluster,
        )
        divisions.append(folds)
    return divisions


def _result(fits, candidates, rows):
    """Return the public result of a cross-validation from its `CrossFits`, each
    `Candidate` by name, and the `_Rows`: numbers are given for all samples of the user,
    NaN for those of weight zero.
    """
    probabilities = {}
    losses = {loss: {} for loss in LOSSES}
    losses_by_fit = {loss: {} for loss in LOSSES}
    for name, candidate in candidates.items():
        probabilities[name] = rows.expanded(np.asarray(candidate.probabilities))
        for loss in LOSSES:
            losses[loss][name] = rows.expanded(fits.losses(candidate, loss))
            by_fit = candidate.losses[loss]
            losses_by_fit[loss][name] = rows.expanded(by_fit.T).T
    folds = []
    for fold in fits.folds:
        train = rows.kept[fold.train]
        # positions among all samples
        folds.append(fold._replace(train=train, test=rows.kept[fold.test]))
    return CrossValidatedRecalibrators(
        probabilities, losses, losses_by_fit, folds, fits, candidates, rows
    )


def _words(gain):
    """Return a gain as text, with its interval or the reason why there is none."""
    if np.isnan(gain.low):
        return f"{rounded(gain.estimate)} ({gain.reason})"
    return interval_words(*gain, level=level_words(_LEVEL))
