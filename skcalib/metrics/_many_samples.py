"""What many groups tell about their biases and calibration errors, in one pass."""

from functools import cached_property

import numpy as np

from skcalib._cells.binned_samples import BinnedSamples
from skcalib._cells.tasks import BinaryTask
from skcalib._errors.binned import (
    MAX_THIN_SHARE,
    BinnedError,
    has_thin_bins,
    resolved_method,
)
from skcalib._errors.error import error_root
from skcalib._inference.bias import half_pvalue
from skcalib._inference.event_counts import (
    RowsOfProblems,
    event_count_tails,
)
from skcalib._inference.few_outcomes import (
    MOST_OUTCOMES,
    SmallProblems,
    n_outcomes,
    rows_of,
)
from skcalib._inference.hypotheses import directions_of_samples
from skcalib._inference.inversion import limits_of_each
from skcalib._inference.shift_test import BiasTest, BiasTestsOfRows
from skcalib._input.scalars import as_numbers
from skcalib._rows.links import log_odds
from skcalib.metrics._group_sample import Sample, pvalue_of_sides


class Samples(list):
    """Some `Sample`, with arrays of what each tells."""

    @property
    def n(self):
        """Numbers of rows, ints unless a sample has weights; see `Sample.n`."""
        return np.array([sample.n for sample in self])

    @property
    def mean_score(self):
        """Mean score of each sample."""
        return np.array([sample.mean_score for sample in self])

    @property
    def event_frequency(self):
        """Share of the rows of each sample that are events."""
        return np.array([sample.event_frequency for sample in self])

    @property
    def is_independent(self):
        """Whether the rows of each sample do not depend on each other."""
        return np.array([sample.has_independent_rows for sample in self])

    @property
    def tests_of_independent(self):
        """The `BiasTestsOfRows` of the samples with independent rows."""
        return BiasTestsOfRows.of(
            [sample.bias_problem() for sample in self if sample.has_independent_rows]
        )

    def errors_with_limits(self, params, resampling, tail, progress):
        """Return the binned errors with their limits, (3, n_samples): rows for errors,
        lower limits and upper limits, NaN where bins have too few rows for a debiased
        error.

        Parameters
        ----------
        params : dict
            `norm` and `method` of the binned error.
        resampling : Resampling
            What is drawn for the limits.
        tail : float
            The probability that a limit is wrong.
        progress : Progress
            Writes how many samples are done.
        """
        is_debiased = resolved_method(**params) in ("debiased", "unbiased")
        has_error = []
        for k, sample in enumerate(self):
            if not (is_debiased and has_thin_bins(sample.statistics)):
                has_error.append(k)
        return _errors_one_by_one(self, has_error, params, resampling, tail, progress)


def _errors_one_by_one(samples, chosen, params, resampling, tail, progress):
    """Return the binned errors of samples with their limits, (3, n_samples): rows for
    errors, lower limits and upper limits; NaN for samples that are not at the positions
    `chosen`.

    `params` are `norm` and `method` of the error, `resampling` says what is drawn,
    `tail` is the probability that a limit is wrong, and `progress` writes how many
    samples are done.
    """
    errors = np.full((3, len(samples)), np.nan)
    has_limits = np.zeros(len(samples), dtype=bool)

    def hypotheses_of_samples():
        """Yield the `Hypotheses` of one sample after the other, and write its error
        into ``errors[0]``. `limits_of_each` takes them in blocks: those of all samples
        would need much memory.
        """
        for k in chosen:
            progress(f"errors of {k:,} of {len(samples):,} groups", k / len(samples))
            sample = samples[k]
            error, hypotheses = sample.error_and_hypotheses(params, resampling)
            errors[0, k] = error
            has_limits[k] = not sample.reason_without_limits
            yield hypotheses

    for k, limits in zip(
        chosen, limits_of_each(hypotheses_of_samples(), tail), strict=True
    ):
        if has_limits[k]:
            errors[1:, k] = limits
    return errors


class SmallSamples:
    """What `Samples` is, for samples of independent rows without weights in bins of
    equal mass: the sums of all bins are made in one pass, without a `Sample` for each.

    Parameters
    ----------
    task : BinaryTask
        The n rows of all samples, without weights.
    codes : ndarray of int, shape (n,)
        The sample of each row.
    binning : EqualMass
        The bins of each sample.
    """

    def __init__(self, task, codes, binning):
        self._binning = binning
        self._samples = BinnedSamples(task, codes, binning)
        self.codes = self._samples.codes
        self.n = self._samples.n
        self.first = self._samples.first

    def __len__(self):
        return len(self.n)

    def __getitem__(self, k):
        samples = self._samples
        rows = slice(samples.starts[k], samples.starts[k] + samples.n[k])
        task = BinaryTask(samples.scores[rows], samples.labels[rows], None)
        return Sample(task.statistics(self._binning), task, binning=self._binning)

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    @cached_property
    def mean_score(self):
        """Mean score of each sample."""
        return self._samples.sums(self._samples.bins.weighted_score) / self.n

    @cached_property
    def event_frequency(self):
        """Share of the rows of each sample that are events."""
        return self._samples.sums(self._samples.bins.weighted_label) / self.n

    @property
    def is_independent(self):
        """Whether the rows of each sample do not depend on each other."""
        return np.ones(len(self), dtype=bool)

    @property
    def tests_of_independent(self):
        """The `BiasTestsOfRows` of the samples."""
        mean_square = self._samples.sums(self._samples.bins.residual_square) / self.n
        mean = self.event_frequency - self.mean_score
        scores = as_numbers(self._samples.scores, "scores")
        return BiasTestsOfRows(
            RowsOfProblems(log_odds(scores), np.ones(len(scores)), self.n),
            self._samples.sums(self._samples.bins.weighted_label),
            np.maximum(mean_square - mean**2, 0),
        )

    def errors_with_limits(self, params, resampling, tail, progress):
        """Return the binned errors with their limits, (3, n_samples): rows for errors,
        lower limits and upper limits, NaN where bins have too few rows.

        `params` are `norm` and `method` of the error, `resampling` says what is drawn,
        `tail` is the probability that a limit is wrong, and `progress` writes how many
        samples are done.
        """
        error = BinnedError(binning=None, **params)
        has_error = np.ones(len(self), dtype=bool)
        if error.method in ("debiased", "unbiased"):
            # These errors are undefined if too many rows are alone in their bins.
            has_error = self._samples.thin_share <= MAX_THIN_SHARE
        # With few possible numbers of events by bin, limits are computed by summation
        # over all of them, without draws. Other samples take the general way.
        n_bins = self._samples.n_bins
        outcomes = n_outcomes(rows_of(self._samples.bins), n_bins)
        is_summed = has_error & (outcomes <= MOST_OUTCOMES)
        is_summed &= error.norm != np.inf and error.method != "label_binned"
        others = np.flatnonzero(has_error & ~is_summed).tolist()
        errors = _errors_one_by_one(self, others, params, resampling, tail, progress)
        if not is_summed.any():
            return errors
        progress(f"errors of {np.count_nonzero(is_summed):,} small groups")
        bins = self._samples.bins.at(np.repeat(is_summed, n_bins))
        sizes = n_bins[is_summed]
        observed = error.powers_of_samples(bins, sizes)
        power = error.power_of_sums(bins)
        problems = SmallProblems(
            bins,
            sizes,
            type(power),
            error.norm,
            directions_of_samples(bins, sizes, power.is_sum_of_squares),
        )
        # p-th powers, for the norm p, of the errors and of both limits
        powers = np.array([observed, *problems.limits(tail)])
        errors[:, is_summed] = error_root(powers, error.norm)
        return errors


class BiasTests:
    """Tests for each sample whether its bias, mean score minus event frequency, is 0.

    Parameters
    ----------
    samples : Samples or SmallSamples
        The samples.
    alternative : {"two-sided", "greater", "less"}, default="two-sided"
        "greater" means a greater event frequency than the scores predict, hence a bias
        below 0; "less" means a smaller one.
    """

    def __init__(self, samples, alternative="two-sided"):
        self._samples = samples
        self._alternative = alternative
        # Samples of independent rows are tested together, the others one by one.
        self._is_independent = samples.is_independent  # (n_samples,)
        self._independent = None
        if self._is_independent.any():
            self._independent = samples.tests_of_independent

    def at(self, confidence_level):
        """Return the tests at a level, that of the interval or, for a one-sided
        alternative, of its one limit.

        Returns
        -------
        tests : BiasTest
            P-values and limits, arrays (n_samples,).
        reasons : list of str
            Why there are no limits; empty where there are.
        """
        level = confidence_level
        if self._alternative != "two-sided":
            # A limit of level L is that of a two-sided interval of level 2 L - 1, which
            # leaves out 1 - L on either side.
            level = 2 * confidence_level - 1
        # Rows: the fields of `BiasTest`.
        two_sided = np.empty((4, len(self._samples)))
        reasons = [""] * len(self._samples)
        if self._independent is not None:
            two_sided[:, self._is_independent] = self._independent.at(level)
        for k in np.flatnonzero(~self._is_independent):
            two_sided[:, k], reasons[k] = self._samples[k].bias_test(level)
        if self._alternative == "two-sided":
            return BiasTest(*two_sided), reasons
        has_limits = np.array([not reason for reason in reasons])
        return self._one_sided(two_sided, has_limits), reasons

    def _one_sided(self, two_sided, has_limits):
        """Return the one-sided `BiasTest` for the fields of `two_sided` tests, (4,
        n_samples); `has_limits` (n_samples,) says which samples have limits.
        """
        mean_score = self._samples.mean_score
        bias = mean_score - self._samples.event_frequency
        is_greater = self._alternative == "greater"
        is_on_side = bias < 0 if is_greater else bias > 0
        pvalue, low, high, bias_pvalue = two_sided
        one_sided = half_pvalue(pvalue, is_on_side)
        if self._independent is not None:
            # Rows are independent: the tails of the number of events are known.
            one_sided[self._is_independent] = pvalue_of_sides(
                *event_count_tails(self._independent.rows, self._independent.events),
                self._alternative,
            )
        # `pvalue` tests calibration: the labels then have the variance s (1 - s).
        # `bias_pvalue` tests a bias of 0, and allows for residuals that vary more:
        # where they do not vary more than under calibration, both tests are the same.
        one_sided_bias = np.where(
            bias_pvalue == pvalue,
            one_sided,
            half_pvalue(bias_pvalue, is_on_side),
        )
        # The other limit is the bias if the event frequency were 1, or 0.
        if is_greater:
            low = np.where(has_limits, mean_score - 1, low)
        else:
            high = np.where(has_limits, mean_score, high)
        return BiasTest(
            np.where(has_limits, one_sided, pvalue),
            low,
            high,
            np.where(has_limits, one_sided_bias, bias_pvalue),
        )
