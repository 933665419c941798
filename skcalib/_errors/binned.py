"""Binned errors: plugin, debiased, unbiased and label-binned, for any norm."""

from functools import cached_property

import numpy as np
from scipy.special import erf, gamma, hyp1f1

from skcalib._cells.cells import Cells
from skcalib._errors.power import Power
from skcalib._input.scalars import check_option, resolve_norm

# Share of the weight in bins with fewer than two rows beyond which a debiased error would be mostly left out.
_MAX_THIN_SHARE = 0.05
_METHODS = ("auto", "plugin", "debiased", "unbiased", "label_binned")
_POINTS = 512  # scores of a bin, and frequencies, between which a label-binned error is interpolated


class BinnedPower(Power):
    """The power of a binned error; see `calibration_error` for the parameters. `task` holds the rows.

    For an unbiased error the power of drawn labels takes the residual variance that labels drawn from s + d have; that
    of the observed labels takes theirs.
    """

    is_binned = True

    def __init__(self, cells, *, norm, method, task, is_value):
        super().__init__(cells, norm=norm)
        self.method, self.task, self.is_value = method, task, is_value
        if method in ("debiased", "unbiased"):
            usable = cells.weight >= 2
            self.n_rows, self.usable_share = (
                np.where(usable, cells.weight, 2),
                np.where(usable, self.share, 0),
            )
        self.is_sum_of_squares = norm == 2 and method in ("debiased", "unbiased")
        self.score_variance = cells.score_variance if method == "unbiased" else None

    @classmethod
    def of_task(cls, task, most=None, *, binning, norm, method):
        """See `Power`; the bins are as many as the strategy makes."""
        method = resolved_method(method, norm)
        bins = task.statistics(
            binning, moments=1 if most is None and method != "unbiased" else 2
        )
        if method in ("debiased", "unbiased"):
            _refuse_thin_bins(bins)
        cells = (
            bins if most is None and method != "label_binned" else Cells.of_bins(bins)
        )
        cells = (
            task.adjusted(cells) if most is not None or method == "unbiased" else cells
        )
        return cls(cells, task=task, norm=norm, method=method, is_value=most is None)

    @property
    def observed(self):
        """The power of the labels."""
        if (
            self.method == "label_binned" and self.is_value
        ):  # Roelofs et al.: mean over rows of |s_i - y_b|^p
            scores, labels, weight = self.task
            frequency = self.cells.event_frequency[self.cells.of_rows(scores)]
            return float(
                np.average(np.abs(scores - frequency) ** self.norm, weights=weight)
            )
        if self.method == "unbiased":
            return float(
                self._unbiased(self.cells.event_frequency, self.cells.residual_variance)
            )
        return super().observed

    def power(self, frequency):
        """See `Power`."""
        gap = frequency - self.scores
        if self.method == "plugin":
            return self.norm_of(np.abs(gap))
        if self.method == "label_binned":
            gaps = [
                np.interp(frequency[..., k], *table)
                for k, table in enumerate(self.gap_tables)
            ]
            return np.stack(gaps, axis=-1) @ self.share
        variance = frequency * (1 - frequency)
        if self.method == "unbiased":
            # Within a bin, labels drawn from s + d vary with the scores in the same way as calibrated ones.
            return self._unbiased(frequency, variance - self.score_variance)
        if self.norm == 2:
            terms = gap**2 - variance / (
                self.n_rows - 1
            )  # Kumar et al., Definition 5.2, misprint mended
        else:  # Kumar et al., Definition G.3
            terms = 2 * np.abs(gap) ** self.norm - absolute_moment(
                gap, variance / self.n_rows, self.norm
            )
        return terms @ self.usable_share

    def _unbiased(self, frequency, residual_variance):
        """Return the squares less the sample variance of y - s over the rows of the bin."""
        noise = np.maximum(residual_variance, 0) / (self.n_rows - 1)
        return ((frequency - self.scores) ** 2 - noise) @ self.usable_share

    def noiseless(self, frequency):
        """Return the plugin power of frequencies (m,) without noise, of a label-binned error its own."""
        if self.method == "label_binned":
            return float(self.power(frequency))
        return float(self.norm_of(np.abs(frequency - self.scores)))

    @cached_property
    def gap_tables(self):
        """For each bin (frequencies f, mean over its rows of |s - f|^p)."""
        order = np.argsort(self.task.scores)
        scores = self.task.scores[order].astype(np.float64)
        weight = (
            np.ones_like(scores)
            if self.task.sample_weight is None
            else self.task.sample_weight[order]
        )
        starts = np.flatnonzero(np.diff(self.cells.of_rows(scores))) + 1
        pieces = zip(np.split(scores, starts), np.split(weight, starts), strict=True)
        return [_gap_table(*piece, self.norm) for piece in pieces]


def _gap_table(scores, weight, norm):
    if len(scores) > _POINTS:
        starts = np.linspace(0, len(scores), _POINTS, endpoint=False, dtype=np.intp)
        total = np.add.reduceat(weight, starts)
        scores, weight = np.add.reduceat(weight * scores, starts) / total, total
    n_trials = max(1, round(weight.sum()))
    grid = np.linspace(
        0, 1, min(n_trials, _POINTS) + 1
    )  # all frequencies that a small bin can have
    return grid, np.abs(scores - grid[:, None]) ** norm @ (weight / weight.sum())


def resolved_method(method, norm):
    """Return the method that "auto" means for a norm: of norm 2 the unbiased one, of others the nearest to it."""
    return (
        method
        if method != "auto"
        else {2: "unbiased", np.inf: "plugin"}.get(norm, "debiased")
    )


def check_norm(norm, *, method="plugin", squared=False):
    """Return the number that a norm is, or raise where it does not go with the method."""
    check_option(method, "method", _METHODS)
    norm = resolve_norm(norm)
    if norm == np.inf and method not in ("auto", "plugin"):
        raise ValueError(
            f'norm=np.inf ("max") has no {method} form: use method="plugin".'
        )
    if norm != 2 and method == "unbiased":
        raise ValueError(
            f'method="unbiased" is defined for norm=2, found norm={norm!r}.'
        )
    if norm != 2 and squared:
        raise ValueError(f"squared=True is defined for norm=2, found norm={norm!r}.")
    return norm


def absolute_moment(mean, variance, order):
    """Return E|N(mean, variance)|^order in closed form; ``|mean|^order`` where the variance is zero."""
    noisy = variance > 0
    variance = np.where(noisy, variance, 1.0)
    if order == 1:
        spread = np.sqrt(2 * variance)
        folded = spread / np.sqrt(np.pi) * np.exp(-((mean / spread) ** 2)) + mean * erf(
            mean / spread
        )
        return np.where(noisy, folded, np.abs(mean))
    with np.errstate(over="ignore", invalid="ignore"):  # see `error_root`
        moment = (
            (2 * variance) ** (order / 2)
            * (gamma((order + 1) / 2) / np.sqrt(np.pi))
            * hyp1f1(-order / 2, 0.5, -(mean**2) / (2 * variance))
        )
    return np.where(noisy, moment, np.abs(mean) ** order)


def has_thin_bins(statistics):
    """Return whether too much weight lies in bins with fewer than two rows for a debiased error."""
    return statistics.share[statistics.weight < 2].sum() > _MAX_THIN_SHARE


def _refuse_thin_bins(statistics):
    """Raise where too much weight lies in bins with fewer than two rows, by weight, which are left out."""
    if has_thin_bins(statistics):
        share = statistics.share[statistics.weight < 2].sum()
        raise ValueError(
            f"{100 * share:.1f} % of the weight lies in bins with fewer than two rows (at most "
            f"{100 * _MAX_THIN_SHARE:.0f} % can be left out): a debiased error needs two rows in each bin. Use fewer "
            'bins or method="plugin". Weights count as repeated rows: scale them to mean 1 if they are not.'
        )
