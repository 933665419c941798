"""Binned errors: plugin, debiased, unbiased and label-binned, for any norm.

A *power* is the p-th power of an error, p its norm, as a function of the event
frequencies of the bins: of the observed ones for the error itself, and of drawn ones
for its test and its interval.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import erf, gamma, hyp1f1

from skcalib._cells.binned_samples import BinnedSamples
from skcalib._cells.cells import Cells
from skcalib._cells.columns import resolve_multiclass
from skcalib._cells.groups import group_codes, reduced, split_by_group
from skcalib._cells.reductions import one_task
from skcalib._errors.error import CalibrationError, ErrorPower, error_root
from skcalib._errors.sweep import SweepPower
from skcalib._guide import see
from skcalib._input.scalars import check_option, resolve_norm
from skcalib._input.scored_labels import check_scored_labels
from skcalib._rows.blocks import total_weight
from skcalib.binning import (
    BaseBinning,
    EqualMass,
    EqualWidth,
    MonotonicSweep,
    check_binning,
)
from skcalib.binning._last_rows import can_be_made_together

# Share of the weight in bins with fewer than two rows beyond which a debiased error
# would be mostly left out.
MAX_THIN_SHARE = 0.05
_METHODS = ("auto", "plugin", "debiased", "unbiased", "label_binned")
# A label-binned error is tabulated at this many frequencies, from this many scores of a
# bin.
_POINTS = 512


@dataclass(frozen=True, eq=False, kw_only=True)
class BinnedError(CalibrationError):
    """The binned error with its parameters; see `calibration_error` for them.

    `method` and `binning` are resolved when the object is made: "auto" and None stand
    for what they mean.
    """

    norm: float = 2
    binning: BaseBinning | int | None = None
    method: str = "auto"
    squared: bool = False

    def __post_init__(self):
        norm = check_norm(self.norm, method=self.method, squared=self.squared)
        binning = self.binning
        if not isinstance(binning, BaseBinning):
            binning = check_binning(binning, self._default_binning())
        self._set(norm=norm, method=resolved_method(self.method, norm), binning=binning)

    def _default_binning(self):
        """Return the bins that a `binning` of None stands for."""
        return EqualMass(15)

    @property
    def is_sweep(self):
        """Whether it is the sweep error, whose bins are found anew for drawn labels."""
        return self.method == "plugin" and isinstance(self.binning, MonotonicSweep)

    @property
    def has_bins_of_labels(self):
        """Whether its bins depend on the labels and are not found anew for drawn ones,
        as the sweep's are.
        """
        return self.binning.needs_labels and not self.is_sweep

    def of_task(self, task, most=None):
        """Return the p-th power of the error of a binary problem, an `ErrorPower`: a
        function of the event frequencies of its bins.

        With `most` None the power is only needed for the observed labels; an int means
        that it is also computed for drawn labels. The sweep error, whose bins are found
        anew for each draw, is then a function of the event frequencies of the distinct
        scores, pooled to at most `most`.
        """
        for_draws = most is not None
        if self.is_sweep and for_draws:
            return SweepPower(task.cells(most), norm=self.norm, base=self.binning.base)
        # 1. The bins. Sums of squared scores cost a pass over the rows. They are only
        # needed for the variances of residuals, of drawn labels and, with importance
        # weights (`label_weights`), of event frequencies.
        is_weighted_debiased = (
            self.method == "debiased" and task.label_weights is not None
        )
        needs_variances = self.method == "unbiased" or for_draws or is_weighted_debiased
        moments = 1
        if needs_variances:
            moments = 2
        bins = task.statistics(self.binning, moments=moments)
        if self.method in ("debiased", "unbiased"):
            _refuse_thin_bins(bins, self.binning)
        # 2. The bins as `Cells`, without empty bins, which have no frequency to draw.
        cells = bins
        if self.method == "label_binned" or for_draws:
            cells = Cells.of_bins(bins)
        if needs_variances:
            cells = task.adjusted(cells)
        # 3. The power.
        if self.method == "label_binned":
            return LabelBinnedPower(
                cells, norm=self.norm, task=task, is_exact=not for_draws
            )
        return self.power_of_sums(cells)

    def power_of_sums(self, cells):
        """Return the `ErrorPower` of a method that needs the sums of bins alone, for
        the `Cells` of bins.
        """
        return _POWERS[self.method](cells, norm=self.norm)

    def powers_of_samples(self, cells, n_bins):
        """Return the p-th powers (n_samples,) of the errors of several samples, by a
        method that needs the sums of bins alone: for the `Cells` of the bins of all
        samples, one sample after the other, and the number of bins of each.
        """
        power = self.power_of_sums(cells)
        first_bins = np.cumsum(n_bins) - n_bins
        if self.norm == np.inf:
            return np.maximum.reduceat(power.observed_of_bins, first_bins)
        # `share_of_bin` is the share of a bin in the weight of all samples. The factor
        # turns it into the share in the weight of its own sample.
        weight = np.add.reduceat(cells.weight, first_bins)
        share = power.share_of_bin * np.repeat(cells.total_weight / weight, n_bins)
        return np.add.reduceat(power.observed_of_bins * share, first_bins)

    def from_power(self, power):
        """Return the error for its p-th power: the p-th root, or with `squared` the
        power itself, a square that an unbiased estimate may make negative.
        """
        if self.squared:
            return float(power)
        return super().from_power(power)


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupwiseError(BinnedError):
    """The binned error in each group; see `groupwise_calibration_error`."""

    norm: float = 1
    method: str = "plugin"
    groups: object = "predicted_class"
    reduce: str | None = "max"

    def __post_init__(self):
        check_option(self.reduce, "reduce", ("max", "mean", "weighted", None))
        super().__post_init__()

    def _default_binning(self):
        """Return the bins that a `binning` of None stands for."""
        return EqualWidth(15)

    def value(
        self,
        y_true,
        y_proba=None,
        *,
        binning=None,
        sample_weight=None,
        pos_label=None,
        labels=None,
    ):
        """Return the errors of the groups as one number, or a dict from group to its
        error where `reduce` is None. The arguments are labels, probabilities, weights
        (n,), the positive label and the labels of the columns, None where they are not
        given; `binning` is not used, because the bins are a field.
        """
        errors, group_weights = self.by_group(
            y_true,
            y_proba,
            sample_weight=sample_weight,
            pos_label=pos_label,
            labels=labels,
        )
        if self.reduce is None:
            return errors
        values = np.array(list(errors.values()))
        return float(reduced(values, group_weights, self.reduce))

    def by_group(self, y_true, y_proba, *, sample_weight, pos_label, labels):
        """Return the error of each group by its name, and the weights of the groups."""
        data = check_scored_labels(
            y_true,
            y_proba,
            multiclass=self.multiclass,
            sample_weight=sample_weight,
            pos_label=pos_label,
            labels=labels,
            multilabel=True,
            drop=False,  # rows of weight zero have an entry in `groups`, too
        )
        # An invalid `multiclass` is refused here, so that no group is blamed for it.
        resolve_multiclass(self.multiclass, data, pooled=True)
        names, codes = group_codes(self.groups, data)
        errors = np.full(len(names), np.nan)
        weights = np.zeros(len(names))
        # 1. Small groups: the bins of all are made together.
        is_together = np.zeros(len(names), dtype=bool)
        if self._bins_can_be_made_together(data):
            n_rows = np.bincount(codes, minlength=len(names))
            is_together = (n_rows > 0) & (n_rows <= BinnedSamples.most_rows)
        rows = np.flatnonzero(is_together[codes])
        if len(rows):
            task = one_task(data.at(rows), self.multiclass, pooled=True)
            samples = BinnedSamples(task, codes[rows], self.binning)
            errors[is_together] = self._errors_of_samples(samples, names)
            weights[is_together] = samples.n
        # 2. The others, one by one, without rows of weight zero.
        others = data.kept[~is_together[codes[data.kept]]]
        for code, rows in split_by_group(others, codes):
            group = data.at(rows)
            try:
                # the p-th power of the group's error, for the norm p
                power = self.observed(group)
                errors[code] = self.from_power(power)
            except ValueError as error:
                raise _refusal_of_group(names, code, error) from error
            weights[code] = total_weight(group.sample_weight, len(group.scores))
        # 3. Groups without rows are left out.
        present = np.flatnonzero(weights > 0)
        by_name = zip(names[present].tolist(), errors[present].tolist(), strict=True)
        return dict(by_name), weights[present]

    def _bins_can_be_made_together(self, data):
        """Return whether the bins of many groups of validated data can be made in one
        pass: those of one binary problem without weights, whose sums are enough.
        """
        kind = resolve_multiclass(self.multiclass, data, pooled=True)
        return (
            data.sample_weight is None
            and kind in ("binary", "top_label")
            and self.method in _POWERS
            and can_be_made_together(self.binning)
        )

    def _errors_of_samples(self, samples, names):
        """Return the errors (n_samples,) of `BinnedSamples`, whose codes are positions
        in the `names` of the groups.
        """
        if self.method in ("debiased", "unbiased"):
            for k in np.flatnonzero(samples.thin_share > MAX_THIN_SHARE):
                try:
                    _refuse_thin_bins(samples.bins_of(k), self.binning)
                except ValueError as error:
                    raise _refusal_of_group(names, samples.codes[k], error) from error
        powers = self.powers_of_samples(samples.bins, samples.n_bins)
        return error_root(powers, self.norm)


def _refusal_of_group(names, code, error):
    """Return the ValueError that names the group of an error, by its position."""
    name = names[code : code + 1].tolist()[0]  # a Python, not a NumPy, scalar
    return ValueError(
        f"groups: the error of group {name!r} cannot be computed. {error}"
    )


class PluginPower(ErrorPower):
    """The power of the gaps between event frequencies and mean scores of bins, at face
    value; for its arguments and attributes see `ErrorPower`.
    """

    is_binned = True

    @property
    def share_of_bin(self):
        """The factors (m,) with which the powers of the bins are added up."""
        return self.share

    @property
    def observed_of_bins(self):
        """The `power_of_bins` (m,) of the observed labels."""
        return self.power_of_bins(self.cells.event_frequency)

    def power(self, frequency):
        """Return the p-th power (...) of the error for event frequencies (..., m) of
        the bins.
        """
        if self.norm == np.inf:
            return self.power_of_bins(frequency).max(axis=-1)
        return self.power_of_bins(frequency) @ self.share_of_bin

    def power_of_bins(self, frequency):
        """Return the p-th powers (..., m) of the gaps between the event frequencies
        (..., m) and mean scores of bins, for the norm p; for an infinite norm, the
        gaps.
        """
        gaps = np.abs(frequency - self.scores)
        if self.norm in (1, np.inf):
            return gaps
        return gaps**self.norm


class DebiasedPower(PluginPower):
    """The power of the gaps of bins less what label noise adds to it on average (Kumar,
    Liang and Ma 2019).

    Bins with fewer than two rows are left out.

    Attributes
    ----------
    n_rows : ndarray of shape (m,)
        Number of rows of each bin, or with importance weights of the independent ones
        that they are worth. At least 2, because 1 less is divided by.
    usable_share : ndarray of shape (m,)
        Share of each bin in the total weight; 0 for a bin that is left out.
    noise : ndarray of shape (m,) or None
        Variance of each event frequency, where it does not follow from `n_rows`.
    """

    def __init__(self, cells, *, norm):
        super().__init__(cells, norm=norm)
        # Importance weights are worth a number `trials` of independent rows.
        n_rows = cells.weight if cells.trials is None else cells.trials
        self.n_rows = np.maximum(n_rows, 2)
        self.usable_share = self.share * (cells.weight >= 2)
        self.noise = cells.noise
        self.is_sum_of_squares = norm == 2

    @property
    def share_of_bin(self):
        """The factors (m,) with which the powers of the bins are added up."""
        return self.usable_share

    def power_of_bins(self, frequency):
        """Return what each bin adds to the p-th power of the error (..., m), for event
        frequencies (..., m): that of its gap, less what label noise adds on average.
        """
        gap = frequency - self.scores
        variance = frequency * (1 - frequency)
        if self.norm == 2 and self.noise is not None:
            return gap**2 - self.noise
        if self.norm == 2:
            # Kumar, Liang and Ma, Definition 5.2; the print has (1 - f)^2 in place of
            # the variance f (1 - f)
            return gap**2 - variance / (self.n_rows - 1)
        # Definition G.3: the p-th power of the gap g less its expected excess. If the
        # observed frequency is taken for the true one, the excess is E|X|^p - |g|^p for
        # a normal X about g.
        noise = variance / self.n_rows
        if self.noise is not None:
            noise = np.broadcast_to(self.noise, gap.shape)
        expected = absolute_moment(gap, noise, self.norm)
        return 2 * np.abs(gap) ** self.norm - expected

    def noiseless(self, frequency):
        """Return the plugin power: frequencies (m,) without noise have no bias."""
        return float(self.norm_of(np.abs(frequency - self.scores)))


class UnbiasedPower(DebiasedPower):
    """The square less the sample variance of the residuals y - s in the bins.

    Observed labels have the variance that their residuals show. Of drawn labels only
    the frequencies are known: within a bin they vary with the scores in the same way as
    calibrated ones do.
    """

    @cached_property
    def score_variance(self):
        """Variance of the scores within each bin, (m,)."""
        return self.cells.score_variance

    @property
    def observed_of_bins(self):
        """The squared errors (m,) of the observed labels in the bins."""
        return self._unbiased(self.cells.deviation, self.cells.residual_variance)

    @property
    def observed(self):
        """The squared error of the observed labels."""
        return float(self.observed_of_bins @ self.usable_share)

    def power_of_bins(self, frequency):
        """Return the squared gaps of bins less the variances of their mean residuals
        (..., m), for event frequencies (..., m) of drawn labels.
        """
        residual_variance = frequency * (1 - frequency) - self.score_variance
        return self._unbiased(frequency - self.scores, np.maximum(residual_variance, 0))

    def _unbiased(self, gap, residual_variance):
        """Return the squared gaps (..., m) less the variances of the mean residuals of
        bins, which follow from the variances of residuals (..., m) unless known.
        """
        noise = self.noise
        if noise is None:
            noise = residual_variance / (self.n_rows - 1)  # unbiased: not n_rows
        return gap**2 - noise


# The power of each method that needs the sums of bins alone.
_POWERS = {
    "plugin": PluginPower,
    "debiased": DebiasedPower,
    "unbiased": UnbiasedPower,
}


class JoinedPowers:
    """The p-th powers of the errors of several binary problems, computed at once from
    the event frequencies of the bins of all problems, one problem after the other.

    Parameters
    ----------
    powers : list of PluginPower, DebiasedPower or UnbiasedPower
        The power of each problem. All are of one class and one finite norm; see
        `can_be_joined`.
    """

    def __init__(self, powers):
        first = powers[0]
        # One power object for the bins of all problems: it is used for what each bin
        # adds (`power_of_bins`), not for its sum.
        self._all_bins = Cells.joined([power.cells for power in powers])
        self._power_of_all = type(first)(self._all_bins, norm=first.norm)
        # The share of each bin in the weight of its own problem, and where the bins of
        # each problem begin.
        self.share = np.concatenate([power.share_of_bin for power in powers])
        self._n_bins = [len(power.weight) for power in powers]
        self.starts = np.cumsum([0, *self._n_bins[:-1]])

    def each(self, frequency):
        """Return the power of each problem (..., n_problems) for the event frequencies
        (..., m) of all bins.
        """
        powers = self._power_of_all.power_of_bins(frequency) * self.share
        return np.add.reduceat(powers, self.starts, axis=-1)

    def contributions(self, problem_weight):
        """Return a function of event frequencies whose values, one for each bin, add up
        to the weighted sum of the powers of all problems.

        A marginal error is such a sum. With its contributions bin by bin, the draws of
        bins without events need not be computed; see `CountDraws.sums`.

        Parameters
        ----------
        problem_weight : ndarray of shape (n_problems,)
            The weight of each problem in the sum.
        """
        factor = self.share * np.repeat(problem_weight, self._n_bins)

        def contribution(frequency, bins):
            """Return the contributions (..., m) of the bins at the indices `bins`, or
            of all bins for a slice, for their event frequencies (..., m).
            """
            power = self._power_of_all
            if not isinstance(bins, slice):
                power = type(power)(self._all_bins.at(bins), norm=power.norm)
            return power.power_of_bins(frequency) * factor[bins]

        return contribution


def can_be_joined(powers):
    """Return whether powers can be computed together, as `JoinedPowers` does."""
    first = powers[0]
    one_class = type(first) in (PluginPower, DebiasedPower, UnbiasedPower)
    return (
        one_class
        and first.norm != np.inf
        and all(type(power) is type(first) for power in powers)
    )


class LabelBinnedPower(PluginPower):
    """The mean over rows of |s_i - y_b|^p (Roelofs et al.), y_b the frequency of the
    row's bin.

    The reported error is the exact mean over the rows. Draws of labels interpolate, for
    each bin, a table of its mean at many frequencies.

    Parameters
    ----------
    cells : Cells
        The filled bins.
    norm : float
        The norm p.
    task : BinaryTask
        The rows.
    is_exact : bool
        How `observed` is computed. True: as the mean over the rows, for the reported
        error. False: from the interpolated tables, as `power` does for drawn labels, so
        that both have the same rounding when they are compared.
    """

    def __init__(self, cells, *, norm, task, is_exact):
        super().__init__(cells, norm=norm)
        self.task = task
        self.is_exact = is_exact

    @property
    def observed(self):
        """The p-th power of the error of the observed labels: the mean over the rows if
        `is_exact`, else the value of `power` at their event frequencies.
        """
        if not self.is_exact:
            return super().observed
        scores = self.task.scores
        frequency = self.cells.event_frequency[self.cells.cell_of(scores)]
        gaps = np.abs(scores - frequency) ** self.norm
        return float(np.average(gaps, weights=self.task.sample_weight))

    def power(self, frequency):
        """Return the p-th power (...) of the error for event frequencies (..., m) of
        the bins, interpolated in `gap_tables`.
        """
        means = np.empty(frequency.shape)
        for k, (grid, mean_at_grid) in enumerate(self.gap_tables):
            means[..., k] = np.interp(frequency[..., k], grid, mean_at_grid)
        return means @ self.share

    def noiseless(self, frequency):
        """Return the power for frequencies (m,) without noise."""
        return float(self.power(frequency))

    @cached_property
    def gap_tables(self):
        """For each bin, a grid of frequencies f and the mean over its rows of |s - f|^p
        at each of them.
        """
        order = np.argsort(self.task.scores)
        scores = self.task.scores[order].astype(np.float64)
        if self.task.sample_weight is None:
            weight = np.ones_like(scores)
        else:
            weight = self.task.sample_weight[order]
        # the rows of each bin stand together
        starts = np.flatnonzero(np.diff(self.cells.cell_of(scores))) + 1
        scores_of_bins = np.split(scores, starts)
        weights_of_bins = np.split(weight, starts)
        tables = []
        for bin_scores, bin_weight in zip(scores_of_bins, weights_of_bins, strict=True):
            tables.append(_gap_table(bin_scores, bin_weight, self.norm))
        return tables


def _gap_table(scores, weight, norm):
    """Return a grid of frequencies f and the mean of |s - f|^norm at each, over the
    samples of a bin with sorted scores (n,).
    """
    if len(scores) > _POINTS:
        # The mean needs no more than some hundred scores: neighbours are averaged.
        starts = np.linspace(0, len(scores), _POINTS, endpoint=False, dtype=np.intp)
        total = np.add.reduceat(weight, starts)
        scores = np.add.reduceat(weight * scores, starts) / total
        weight = total
    # all frequencies that a bin of up to 512 rows can have, 513 of a larger one
    n_trials = max(1, round(weight.sum()))
    grid = np.linspace(0, 1, min(n_trials, _POINTS) + 1)
    gaps = np.abs(scores - grid[:, None])  # (n_frequencies, n_scores)
    share = weight / weight.sum()
    return grid, gaps**norm @ share


def resolved_method(method, norm):
    """Return the method that "auto" means for a norm: the unbiased one for norm 2, the
    debiased one for other finite norms, the plugin for the maximum.
    """
    if method != "auto":
        return method
    if norm == 2:
        return "unbiased"
    if norm == np.inf:
        return "plugin"
    return "debiased"


def check_norm(norm, *, method="plugin", squared=False):
    """Return the norm as a number (inf for "max"), or raise where it does not go with
    the method or with `squared`.
    """
    check_option(method, "method", _METHODS)
    norm = resolve_norm(norm)
    if norm == np.inf and method not in ("auto", "plugin"):
        raise ValueError(
            f'norm=np.inf ("max") has no {method} form: use method="plugin".'
        )
    if norm != 2 and method == "unbiased":
        raise ValueError(
            f'method="unbiased" is defined only for norm=2, found norm={norm!r}.'
        )
    if norm != 2 and squared:
        raise ValueError(
            f"squared=True is defined only for norm=2, found norm={norm!r}."
        )
    return norm


def absolute_moment(mean, variance, order):
    """Return E|X|^order for normal X of this mean and variance (arrays of one shape);
    ``|mean|^order`` where the variance is zero.
    """
    is_noisy = variance > 0
    variance = np.where(is_noisy, variance, 1.0)
    if order == 1:
        # The folded normal mean: s sqrt(2 / pi) exp(-m^2 / (2 s^2)) + m erf(m / (s
        # sqrt(2))).
        spread = np.sqrt(2 * variance)
        at_zero = spread / np.sqrt(np.pi) * np.exp(-((mean / spread) ** 2))
        folded_mean = at_zero + mean * erf(mean / spread)
        return np.where(is_noisy, folded_mean, np.abs(mean))
    # Winkelbauer (2012): by Kummer's confluent hypergeometric function.
    # `error_root` refuses what has left the range of float64.
    with np.errstate(over="ignore", invalid="ignore"):
        moment = (
            (2 * variance) ** (order / 2)
            * (gamma((order + 1) / 2) / np.sqrt(np.pi))
            * hyp1f1(-order / 2, 0.5, -(mean**2) / (2 * variance))
        )
    return np.where(is_noisy, moment, np.abs(mean) ** order)


def has_thin_bins(statistics):
    """Return whether bins with fewer than two rows, which a debiased error leaves out,
    hold more than 5 % of the weight of a `BinStatistics`.
    """
    return _thin_share(statistics) > MAX_THIN_SHARE


def _thin_share(statistics):
    """Return the share of the weight in bins with fewer than two rows."""
    is_thin = statistics.weight < 2
    if np.count_nonzero(is_thin) == 0:
        return 0.0
    return statistics.share[is_thin].sum()


def _refuse_thin_bins(statistics, binning):
    """Raise a ValueError if more than 5 % of the weight of a `BinStatistics` lies in
    bins with fewer than two rows. `binning` is the strategy that made the bins.
    """
    share = _thin_share(statistics)
    if share <= MAX_THIN_SHARE:
        return
    cause = f"{100 * share:.1f} % of the weight lies"
    cure = 'Use fewer bins or method="plugin".'
    if not np.array_equal(statistics.weight, statistics.count):
        cure += (
            " Weights are treated as counts of repeated rows: if they are not counts,"
            " scale them to mean 1."
        )
    else:
        n_bins = getattr(binning, "n_bins", None)
        n_samples = int(statistics.count.sum())
        if isinstance(n_bins, int) and 1 < n_samples < 2 * n_bins:
            cause = f"{n_samples:,} samples are too few for {n_bins} bins: {cause}"
    raise ValueError(
        f"{cause} in bins with fewer than two rows (at most"
        f" {100 * MAX_THIN_SHARE:.0f} % can be left out). A debiased error needs two"
        f" rows in each bin. {cure}{see('too-few-for-bins')}"
    )
