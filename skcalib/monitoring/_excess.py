"""How far the residuals of a second sample exceed those of a first at equal scores.

The *excess* of a cell of neighbouring scores is the sum of the second sample's
residuals ``y - s`` about a line that is fitted to the residuals of both samples. It is
computed from the data, and drawn as if the calibration curve were the same in both.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from skcalib._cells.cells import Cells
from skcalib._errors.bin_free import range_of
from skcalib._inference.cluster_draws import MOST_CELLS, cluster_draws
from skcalib._inference.label_dependence import RowsInCells
from skcalib._inference.results import IntervalEstimate
from skcalib._input.label_weights import is_importance
from skcalib._intervals.influence import Influence
from skcalib._rows.blocks import weights_or_ones
from skcalib._rows.sorting import distinct_values, mid_rank_cells

_LEAST_ROWS_A_CELL = 20
_ONE_SCORE = 1e-13  # variance of the scores of a cell, below which they are equal
_TINY = 1e-9  # sums below it are 0 but for rounding; no divisor is smaller
_NO_DIFFERENCES = (
    "samples with neighbouring scores always have the same label, so the random"
    " variation of labels cannot be estimated"
)
# counts of cells with more are drawn as normal: NumPy's draws end at 10^9
_MOST_ROWS_DRAWN = 10**8


class Excess(NamedTuple):
    """Excess of the second sample in cells of neighbouring scores, with draws of it
    under an unchanged calibration curve.

    Parameters
    ----------
    excess : ndarray of shape (n_cells,)
        Sum of the second sample's residuals about a line fitted to both samples.
    weight : ndarray of shape (n_cells,)
        Increase in the excess if each residual of the second sample increases by 1. The
        sum of `excess` over the sum of `weight` is the mean difference of the residuals
        at equal scores.
    variance : ndarray of shape (n_cells,) or None
        Variance of `excess`; None means that it is estimated from the draws.
    drawn : ndarray of shape (n_resamples, n_cells)
        Draws of `excess`.
    influence : Influence or None
        Influence of each row on the mean difference, for rows in clusters; otherwise
        None.
    """

    excess: np.ndarray
    weight: np.ndarray
    variance: np.ndarray | None
    drawn: np.ndarray
    influence: Influence | None = None


def excess_test(sample, confidence_level):
    """Return a test of an unchanged calibration curve from an `Excess`: by how much the
    sum of residuals (label minus score) of the second sample exceeds, in each cell of
    neighbouring scores, what the curve of both samples together predicts.

    Returns
    -------
    statistic : float
        Kuiper's statistic: the range of the cumulative excess in the order of the
        scores, over the standard deviation of the sum.
    pvalue : float
        Share of the draws whose range is as large, the observed one included.
    shift : IntervalEstimate
        Mean difference of the residuals at equal scores, second sample minus first.
    """
    total_weight = sample.weight.sum()
    if total_weight <= 0:
        raise ValueError(
            "The data sets have no scores in common: no cell of neighbouring scores"
            " contains rows of both."
        )
    # The standard deviation of the sum of all excesses.
    if sample.variance is None:
        deviation = np.sqrt(np.mean(sample.drawn.sum(axis=1) ** 2))
    else:
        deviation = np.sqrt(sample.variance.sum())
    estimate = float(sample.excess.sum() / total_weight)
    reason = ""
    if deviation < _TINY:
        margin = np.nan
        reason = _NO_DIFFERENCES
    elif sample.influence is None:  # independent rows
        quantile = ndtri((1 + confidence_level) / 2)
        margin = float(quantile * deviation / total_weight)
    else:
        margin, reason = sample.influence.half_width(confidence_level)
    shift = IntervalEstimate(
        estimate, estimate - margin, estimate + margin, reason=reason
    )
    if deviation < _TINY:
        return 0.0, 1.0, shift
    # The cumulative excess: in the first row as observed, in the others as drawn.
    cumulative = np.cumsum(np.vstack((sample.excess, sample.drawn)), axis=1)
    observed, *drawn = range_of(cumulative)
    # Draws that reach the observed range, but for rounding.
    n_reached = np.count_nonzero(np.array(drawn) >= observed - 1e-9 * deviation)
    pvalue = (1 + n_reached) / (1 + len(drawn))
    return float(observed / deviation), float(pvalue), shift


class ResidualLines(NamedTuple):
    """Lines fitted to the residuals r = y - s of both samples, one in each cell of
    neighbouring scores s.

    They keep a cell that spans a gap between two groups of scores from comparing the
    low scores of one sample with the high scores of the other: only the difference
    between the samples at equal scores counts.

    Attributes
    ----------
    mean, slope, centre : ndarray of shape (n_cells,)
        The line is ``mean + slope * (s - centre)``, `mean` and `centre` the means of r
        and s over both samples. The slope is 0 if a cell has only one score.
    weight : ndarray of shape (n_cells,)
        Information on the difference between the samples at equal scores, as a number
        of rows: n0 n1 / (n0 + n1) minus the part explained by the scores.
    excess : ndarray of shape (n_cells,)
        Sum of the second sample's residuals about the line: `weight` times the mean
        difference of the samples at equal scores.
    share_slope : ndarray of shape (n_cells,)
        How the share of rows that belong to the second sample changes with the score:
        the slope of a regression of 0 (first sample) or 1 (second) on s. It is 0 where
        the scores of both samples have the same mean.
    """

    mean: np.ndarray
    slope: np.ndarray
    centre: np.ndarray
    weight: np.ndarray
    excess: np.ndarray
    share_slope: np.ndarray

    @classmethod
    def of_sums(cls, n, score, score_squared, residual, residual_score):
        """Fit the lines to the residuals r at scores s with weights w, from sums by
        sample and cell, of shape (2, n_cells) each.

        They are the sums of w (`n`), of w s (`score`), of w s^2 (`score_squared`), of
        w r (`residual`) and of w r s (`residual_score`).
        """
        size = np.maximum(n.sum(axis=0), _TINY)
        centre = score.sum(axis=0) / size
        mean = residual.sum(axis=0) / size
        # Least squares: the slope is the sum of products about the means over the sum
        # of squared scores about their mean.
        squares = score_squared.sum(axis=0) - size * centre**2
        has_line = squares > _ONE_SCORE * size  # else one score, but for rounding
        squares = np.where(has_line, squares, 1.0)
        products = residual_score.sum(axis=0) - size * centre * mean
        slope = np.where(has_line, products / squares, 0.0)
        # The same regression of 0 (first sample) or 1 (second sample) on the score: its
        # sum of products is that of the second sample's scores about the centre.
        centred_score = score[1] - n[1] * centre
        share_slope = np.where(has_line, centred_score / squares, 0.0)
        # The sum of squares of that 0 or 1 about its mean, and about the regression.
        weight_without_line = n[0] * n[1] / size
        weight = weight_without_line - share_slope * centred_score
        # A weight that the scores explain completely is 0 up to rounding.
        rounding = _TINY * np.maximum(weight_without_line, 1.0)
        weight = np.where(weight > rounding, weight, 0.0)
        # The sum of the residuals of the second sample about the line.
        excess = residual[1] - n[1] * mean - slope * centred_score
        excess = np.where(weight > 0, excess, 0)
        return cls(mean, slope, centre, weight, excess, share_slope)


class _PooledRows(NamedTuple):
    """The rows of both samples, one sample after the other, in their cells.

    Attributes
    ----------
    scores, labels, weight : ndarray of shape (n_rows,)
        Scores in [0, 1], boolean labels and positive weights.
    sample : ndarray of int, shape (n_rows,)
        0 for a row of the sample before, 1 for one of the sample after.
    cell : ndarray of int, shape (n_rows,)
        Cell of neighbouring scores, 0 to n_cells - 1, the same for both samples.
    n_cells : int
        Number of cells.
    """

    scores: np.ndarray
    labels: np.ndarray
    weight: np.ndarray
    sample: np.ndarray
    cell: np.ndarray
    n_cells: int

    @classmethod
    def of_samples(cls, before, after):
        """Pool the rows of two `Sample` objects and divide them into cells."""
        samples = (before.task, after.task)  # scores, labels and weights
        n_rows = [len(sample.scores) for sample in samples]
        scores = np.concatenate([rows.scores.astype(np.float64) for rows in samples])
        labels = np.concatenate([rows.labels for rows in samples])
        weights = []
        for rows in samples:
            weights.append(weights_or_ones(rows.sample_weight, len(rows.scores)))
        weight = np.concatenate(weights)
        # At least 20 rows per cell, and about as many rows per cell as cells.
        total = weight.sum()
        rows_per_cell = max(_LEAST_ROWS_A_CELL, total**0.5)
        n_wanted = max(1, int(total / rows_per_cell))
        if before.cluster is not None:  # no more than `cluster_draws` draws at once
            n_wanted = min(n_wanted, MOST_CELLS // 2)
        cell, n_cells = mid_rank_cells(scores, n_wanted, weight)
        sample = np.repeat(np.array([0, 1], dtype=np.int8), n_rows)
        return cls(scores, labels, weight, sample, cell.astype(np.int32), n_cells)

    @property
    def sample_cell(self):
        """Joint index of each row's sample and cell: 0 to n_cells - 1 in the sample
        before, n_cells to 2 n_cells - 1 in the sample after.
        """
        return self.cell + self.n_cells * (self.sample != 0)

    def total(self, values):
        """Return the sums (2, n_cells) of the rows' values, by sample and cell."""
        sums = np.bincount(self.sample_cell, values, 2 * self.n_cells)
        return sums.reshape(2, self.n_cells)


def excess_of_rows(before, after, weight_type, n_resamples, rng):
    """Return the `Excess` of two samples of rows, in cells of neighbouring scores.

    Parameters
    ----------
    before, after : Sample
        The samples; `task` holds scores, labels and weights, `cluster` the clusters or
        None.
    weight_type : {"frequency", "importance"}
        Meaning of the weights.
    n_resamples : int
        Number of draws.
    rng : numpy Generator
        Source of the random draws.
    """
    rows = _PooledRows.of_samples(before, after)
    weight = rows.weight
    residual = rows.labels - rows.scores
    lines = ResidualLines.of_sums(
        rows.total(weight),
        score=rows.total(weight * rows.scores),
        score_squared=rows.total(weight * rows.scores**2),
        residual=rows.total(weight * residual),
        residual_score=rows.total(weight * residual * rows.scores),
    )
    del residual  # as long as all rows, and not needed any more
    terms = _ExcessTerms.of_rows(rows, lines)
    importance = is_importance(weight_type)
    if before.cluster is None:
        return _independent_excess(rows, lines, terms, importance, n_resamples, rng)
    clusters = np.concatenate((before.cluster, after.cluster))
    _, cluster = distinct_values(clusters)
    return _clustered_excess(rows, lines, terms, importance, cluster, n_resamples, rng)


class _ExcessTerms(NamedTuple):
    """The excess of a cell as a sum over its rows, of weight times coefficient times
    residual.

    Attributes
    ----------
    coefficient : ndarray of shape (n_rows,)
        1 for a row of the second sample and 0 for one of the first, less what the
        regression of this on the score predicts. The sum of weight times its square is
        `ResidualLines.weight`.
    residual : ndarray of shape (n_rows,)
        Residual about the line of the row's cell.
    offset : ndarray of shape (n_rows,)
        Score minus the mean score of the row's cell.
    """

    coefficient: np.ndarray
    residual: np.ndarray
    offset: np.ndarray

    @classmethod
    def of_rows(cls, rows, lines):
        """Return the terms of `_PooledRows` from the `ResidualLines` of the cells."""
        cell = rows.cell
        # The excess of a cell is the sum of coefficient times residual about the line.
        offset = rows.scores - lines.centre[cell]
        about_line = rows.labels - rows.scores
        about_line -= lines.mean[cell]
        about_line -= lines.slope[cell] * offset
        n = rows.total(rows.weight)
        share_of_second = n[1] / n.sum(axis=0)
        slope = lines.share_slope[cell]
        coefficient = rows.sample - share_of_second[cell] - slope * offset
        coefficient[lines.weight[cell] == 0] = 0  # no scores in common
        return cls(coefficient, about_line, offset)


def _independent_excess(rows, lines, terms, importance, n_resamples, rng):
    """Return the `Excess` of independent rows, drawn with the second sample as a random
    part of both; draws are normal for importance or fractional weights and for cells
    with very many rows. `lines` are fitted in each cell, and `terms` hold what each row
    adds to an excess.
    """
    n = rows.total(rows.weight)
    size = n.sum(axis=0)
    variance, squared_residuals = _excess_variance(rows, lines, terms, importance)
    has_fractions = (rows.weight % 1).any()
    if importance or has_fractions or size.max() > _MOST_ROWS_DRAWN:
        drawn = rng.normal(0.0, np.sqrt(variance), (n_resamples, rows.n_cells))
        return Excess(lines.excess, lines.weight, variance, drawn)
    weighted_label = rows.weight * rows.labels
    events = rows.total(weighted_label).sum(axis=0)
    covariance = rows.total(weighted_label * terms.residual).sum(axis=0)
    # (n_resamples, n_cells)
    drawn = _hypergeometric_draws(
        n, events, covariance, squared_residuals, n_resamples, rng
    )
    # The draws take rows from a cell whatever their scores. Their variance is that of
    # n1 rows drawn without replacement from N = n0 + n1 rows, n0 n1 / (N (N - 1)) times
    # the squared residuals; they are scaled to the variance about a line.
    one_less = np.maximum(size - 1, _TINY)
    variance_drawn = n.prod(axis=0) / size / one_less * squared_residuals
    drawn *= np.sqrt(_quotient_or_zero(variance, variance_drawn))
    return Excess(lines.excess, lines.weight, variance, drawn)


def _clustered_excess(rows, lines, terms, importance, cluster, n_resamples, rng):
    """Return the `Excess` of rows with cluster codes (n_rows,), drawn with dependence
    within clusters.
    """
    drawn = _clustered_draws(rows, lines, terms.offset, cluster, n_resamples, rng)
    # The mean difference is the sum of all excesses over that of `lines.weight`. As a
    # weighted mean over the rows, as `Influence` has it, it is the mean of coefficient
    # times residual times this factor.
    rows_per_weight = rows.weight.sum() / max(lines.weight.sum(), _TINY)
    influence = Influence(
        terms.coefficient * terms.residual * rows_per_weight,
        rows.weight,
        importance,
        cluster,
    )
    # The variance is estimated from the draws.
    return Excess(lines.excess, lines.weight, None, drawn, influence)


def _excess_variance(rows, lines, terms, importance):
    """Return the variance of each cell's excess for independent rows, and the sum of
    squared residuals about its line, (n_cells,) each. With `importance` each row was
    observed once, whatever its weight.
    """
    size = rows.total(rows.weight).sum(axis=0)
    squared_residuals = rows.total(rows.weight * terms.residual**2).sum(axis=0)
    # A frequency weight w stands for w rows, each with one residual; an importance
    # weight for one row, whose residual counts w times: w and w^2 in a sum of squares.
    squared_weight = rows.weight**2 if importance else rows.weight
    sum_of_squares = rows.total(squared_weight).sum(axis=0)
    # Degrees of freedom: the rows less one for the mean, and one for the slope if there
    # is one. A row's average share of the squared weights stands for one row.
    n_fitted = 1 + (lines.slope != 0)
    degrees = np.maximum(size - n_fitted * sum_of_squares / size, _TINY)
    if importance:
        # A weight may say something about the label, and so about the residual.
        squares = (rows.weight * terms.coefficient * terms.residual) ** 2
        variance = rows.total(squares).sum(axis=0) * size / degrees
        return variance, squared_residuals
    variance_of_residual = squared_residuals / degrees
    squared_coefficients = rows.total(squared_weight * terms.coefficient**2)
    variance = variance_of_residual * squared_coefficients.sum(axis=0)
    return variance, squared_residuals


def _hypergeometric_draws(n, events, covariance, squared_residuals, n_resamples, rng):
    """Return draws (n_resamples, n_cells) of the excess of the second sample in each
    cell: the sum of its residuals less the expected one, if its rows are drawn without
    replacement from those of both samples, `n` (2, n_cells).

    Within a cell the residuals are regressed on the labels. The part that the labels
    explain follows from the number of events, which is hypergeometric; the sum of the
    rest is drawn as normal. `events`, `covariance` (of label times residual) and
    `squared_residuals` (n_cells,) are sums over the cell.
    """
    size = n.sum(axis=0)
    # Sum of squares of the labels about their mean, and the regression's slope: how
    # much the residual of an event is larger than that of a non-event.
    label_squares = events * (size - events) / size
    slope = _quotient_or_zero(covariance, label_squares)
    shape = (n_resamples, len(size))
    n_events = rng.hypergeometric(
        events.astype(np.int64),
        (size - events).astype(np.int64),
        n[1].astype(np.int64),
        shape,
    )
    # The explained part: the second sample's events beyond their expected number.
    drawn = slope * (n_events - n[1] * events / size)
    # The rest: the regression's residual sum of squares S, and from it the variance of
    # a sum of n1 rows that are drawn without replacement from N = n0 + n1 rows,
    # n0 n1 / (N (N - 1)) S.
    unexplained = np.maximum(squared_residuals - slope * covariance, 0)
    one_less = np.maximum(size - 1, _TINY)
    variance = n.prod(axis=0) / size / one_less * unexplained
    drawn += rng.normal(0.0, np.sqrt(variance), shape)
    return drawn


def _clustered_draws(rows, lines, offset, cluster, n_resamples, rng):
    """Return drawn excesses (n_resamples, n_cells) under an unchanged curve: labels of
    both samples are drawn with the event frequencies on the common `lines`, dependent
    within clusters. `offset` (n_rows,) is the score minus the mean of its cell.
    """
    n = rows.total(rows.weight)  # (2, n_cells), as all arrays by sample and cell
    # `cluster_draws` takes scores and one deviation of the event frequency per cell and
    # sample. On the line s + mean + slope (s - centre), the deviation is `mean` and the
    # rest stands in for the score.
    in_place_of_score = rows.scores + lines.slope[rows.cell] * offset
    in_place_of_score = np.clip(in_place_of_score, 0, 1)
    # A sample may have no rows in a cell: only cells with rows are drawn.
    has_rows = np.bincount(rows.sample_cell, minlength=n.size) > 0
    number = np.cumsum(has_rows) - 1
    cell = number[rows.sample_cell]
    deviation = np.tile(lines.mean, 2)[has_rows]  # the same in both samples
    in_cells = RowsInCells(
        cell[:, None],
        in_place_of_score[:, None],
        rows.labels[:, None],
        rows.weight,
    )
    count = n.ravel()[has_rows]
    mean_score = np.bincount(cell, rows.weight * in_place_of_score) / count
    # The sums of labels are not needed: labels are drawn.
    cells = Cells.of_scores(mean_score, count, np.zeros(len(count)))
    # The draws of clusters take a RandomState.
    legacy_rng = np.random.RandomState(rng.integers(2**32))
    draws = cluster_draws(cells, in_cells, deviation, cluster, n_resamples, legacy_rng)
    # Event frequencies of the cells: expected, and drawn less expected.
    expected = np.clip(mean_score + deviation, 0, 1)
    drawn = np.zeros((n_resamples, n.size))
    drawn[:, has_rows] = np.concatenate(list(draws(expected))) - expected
    drawn = drawn.reshape(n_resamples, *n.shape)
    difference = drawn[:, 1] - drawn[:, 0]  # second sample minus first
    weight_without_line = n.prod(axis=0) / n.sum(axis=0)
    excess = weight_without_line * difference
    # No line is fitted to the draws: their variance is in proportion to the weight
    # without a line, and is scaled to that of the excess about a line.
    excess *= np.sqrt(_quotient_or_zero(lines.weight, weight_without_line))
    return excess


def excess_of_bins(before, after, weight_type, n_resamples, rng):
    """Return the `Excess` of two samples of which only sums by bin are known, with the
    bins as cells. The draws are normal with the residual variance of the bin.

    Parameters
    ----------
    before, after : Sample
        The samples, whose `statistics` have the same edges.
    weight_type : {"frequency", "importance"}
        Meaning of the weights.
    n_resamples : int
        Number of draws.
    rng : numpy Generator
        Source of the random draws.
    """
    # Sums by sample and bin, (2, n_bins), with the residual r = y - s.
    sums = (before.statistics, after.statistics)
    n = np.stack([s.weight for s in sums])
    squared_weight = n
    if is_importance(weight_type):
        squared_weight = np.stack([s.weight_squared for s in sums])
    score = np.stack([s.weighted_score for s in sums])
    score_squared = np.stack([s.weighted_score_squared for s in sums])
    residual = np.stack([s.weighted_label for s in sums]) - score
    label_score = np.stack([s.weighted_score_label for s in sums])
    residual_score = label_score - score_squared
    residual_squared = np.stack([s.residual_square for s in sums])
    lines = ResidualLines.of_sums(n, score, score_squared, residual, residual_score)
    rows = np.maximum(n, _TINY)  # as a divisor
    # Sums of squared residuals about the mean residual of their bin and sample.
    squares = np.maximum(residual_squared - residual**2 / rows, 0)
    # The samples share the squared residuals of a bin in proportion to the variance
    # s (1 - s) that their scores predict: from a few events each sample's own squares
    # would be too uncertain.
    predicted = np.maximum(score - score_squared, 0)
    predicted = np.where(predicted.sum(axis=0) > 0, predicted, rows)
    squares = squares.sum(axis=0) * predicted / predicted.sum(axis=0)
    # Without a line the excess is n0 n1 / (n0 + n1) times the difference of the mean
    # residuals. The variance of a mean is that of a residual, squares / rows, times
    # squared_weight / rows^2.
    weight_without_line = n[0] * (n[1] / rows.sum(axis=0))
    variance_of_means = np.sum(squares * squared_weight / rows**3, axis=0)
    variance = weight_without_line**2 * variance_of_means
    # About the line the variance is smaller in the same proportion as the weight.
    variance *= _quotient_or_zero(lines.weight, weight_without_line)
    drawn = rng.normal(0.0, np.sqrt(variance), (n_resamples, len(variance)))
    return Excess(lines.excess, lines.weight, variance, drawn)


def _quotient_or_zero(numerator, denominator):
    """Return the quotient of two arrays (n_cells,), 0 where the denominator is not
    positive.
    """
    return np.divide(
        numerator,
        denominator,
        out=np.zeros(len(denominator)),
        where=denominator > 0,
    )
