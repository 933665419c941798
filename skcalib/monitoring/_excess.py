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
from skcalib._inference.count_draws import ClusterDraws, RowsInCells
from skcalib._inference.results import IntervalEstimate
from skcalib._intervals.influence import Influence
from skcalib._rows.blocks import weights_or_ones
from skcalib._rows.sorting import mid_rank_cells

_LEAST_ROWS_A_CELL = 20
_ONE_SCORE = 1e-13  # variance of the scores of a cell, below which they are equal
_NO_SPREAD = 1e-9  # of sums of residuals: they are equal, but for rounding
_NO_DIFFERENCES = (
    "the labels of neighbouring scores are all the same, which says nothing about how"
    " far they differ by chance"
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
    """Return Kuiper's statistic of an `Excess`, its p-value, and the mean difference of
    the residuals at equal scores as an `IntervalEstimate`.
    """
    total_weight = sample.weight.sum()
    if total_weight <= 0:
        raise ValueError(
            "The data sets have no scores in common: no cell of neighbouring scores"
            " contains rows of both."
        )
    # The standard deviation of the sum of all excesses.
    if sample.variance is None:
        scale = np.sqrt(np.mean(sample.drawn.sum(axis=1) ** 2))
    else:
        scale = np.sqrt(sample.variance.sum())
    estimate = float(sample.excess.sum() / total_weight)
    reason = ""
    if scale < _NO_SPREAD:
        margin = np.nan
        reason = _NO_DIFFERENCES
    elif sample.influence is None:
        quantile = ndtri((1 + confidence_level) / 2)
        margin = float(quantile * scale / total_weight)
    else:
        margin, reason = sample.influence.half_width(confidence_level)
    shift = IntervalEstimate(
        estimate, estimate - margin, estimate + margin, reason=reason
    )
    if scale < _NO_SPREAD:
        return 0.0, 1.0, shift
    # Kuiper's range of the cumulative excess, observed first and then drawn.
    sums = np.cumsum(np.vstack((sample.excess, sample.drawn)), axis=1)
    statistics = range_of(sums)
    observed = statistics[0]
    # Draws that reach the observed range, but for rounding.
    n_reached = np.count_nonzero(statistics[1:] >= observed - 1e-9 * scale)
    pvalue = (1 + n_reached) / len(statistics)
    return float(observed / scale), float(pvalue), shift


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
    tilt : ndarray of shape (n_cells,)
        Slope of the regression of "belongs to the second sample" on the score: 0 where
        the scores of both samples have the same mean.
    """

    mean: np.ndarray
    slope: np.ndarray
    centre: np.ndarray
    weight: np.ndarray
    excess: np.ndarray
    tilt: np.ndarray

    @classmethod
    def of_sums(cls, n, score, score_squared, residual, residual_score):
        """Fit the lines to sums by sample and cell, each of shape (2, n_cells): of the
        weights w, of w s, w s^2, w r and w r s.
        """
        size = np.maximum(n.sum(axis=0), _NO_SPREAD)
        centre = score.sum(axis=0) / size
        mean = residual.sum(axis=0) / size
        # Least squares: the slope is the sum of products about the means over the sum
        # of squared scores about their mean.
        squares = score_squared.sum(axis=0) - size * centre**2
        has_line = squares > _ONE_SCORE * size  # else one score, but for rounding
        squares = np.where(has_line, squares, 1.0)
        products = residual_score.sum(axis=0) - size * centre * mean
        slope = np.where(has_line, products / squares, 0.0)
        # The scores of the second sample less the common mean, summed; and the slope of
        # the regression of "belongs to the second sample" (0 or 1) on the score.
        moved = score[1] - n[1] * centre
        tilt = np.where(has_line, moved / squares, 0.0)
        weight_without_line = n[0] * n[1] / size
        weight = weight_without_line - tilt * moved
        # what is left of a weight that the scores explain in full is rounding
        rounding = _NO_SPREAD * np.maximum(weight_without_line, 1.0)
        weight = np.where(weight > rounding, weight, 0.0)
        # what the residuals of the second sample sum to beyond the common line
        excess = residual[1] - n[1] * mean - slope * moved
        excess = np.where(weight > 0, excess, 0)
        return cls(mean, slope, centre, weight, excess, tilt)


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
        """Pool two `Sample` objects that hold rows."""
        tasks = (before.task, after.task)
        scores = np.concatenate([task.scores.astype(np.float64) for task in tasks])
        labels = np.concatenate([task.labels for task in tasks])
        weight = np.concatenate(
            [weights_or_ones(task.weight, len(task.scores)) for task in tasks]
        )
        # At least 20 rows a cell, and about as many cells as rows a cell.
        total = weight.sum()
        rows_per_cell = max(_LEAST_ROWS_A_CELL, total**0.5)
        n_wanted = max(1, int(total / rows_per_cell))
        cell, n_cells = mid_rank_cells(scores, n_wanted, weight)
        sample = np.repeat([0, 1], [len(task.scores) for task in tasks])
        return cls(scores, labels, weight, sample, cell, n_cells)

    @property
    def sample_cell(self):
        """Joint index of each row's sample and cell: 0 to n_cells - 1 in the sample
        before, n_cells to 2 n_cells - 1 in the sample after.
        """
        return self.cell + self.n_cells * self.sample

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
    n = rows.total(weight)
    lines = ResidualLines.of_sums(
        n,
        score=rows.total(weight * rows.scores),
        score_squared=rows.total(weight * rows.scores**2),
        residual=rows.total(weight * residual),
        residual_score=rows.total(weight * residual * rows.scores),
    )
    # Each row's score from the mean of its cell, and its residual about the line.
    offset = rows.scores - lines.centre[rows.cell]
    residual = residual - lines.mean[rows.cell] - lines.slope[rows.cell] * offset
    # The excess of a cell is the sum of w times this coefficient times the residual.
    # The coefficient is what mean and score do not explain of "is of the second
    # sample" (0 or 1). The sum of w times its square is `lines.weight`.
    share_of_second = n[1] / n.sum(axis=0)
    tilt = lines.tilt[rows.cell]
    coefficient = rows.sample - share_of_second[rows.cell] - tilt * offset
    coefficient[lines.weight[rows.cell] == 0] = 0
    is_importance = weight_type == "importance"
    if before.cluster is not None:
        clusters = np.concatenate((before.cluster, after.cluster))
        _, cluster = np.unique(clusters, return_inverse=True)
        fitted = np.clip(rows.scores + lines.slope[rows.cell] * offset, 0, 1)
        drawn = _clustered_draws(rows, n, fitted, lines, cluster, n_resamples, rng)
        # The mean difference is the sum of all excesses over that of `lines.weight`. As
        # a weighted mean over the rows, which is what an influence is of, each row has
        # this factor in it.
        rows_per_weight = weight.sum() / max(lines.weight.sum(), _NO_SPREAD)
        influence = Influence(
            coefficient * residual * rows_per_weight, weight, is_importance, cluster
        )
        return Excess(lines.excess, lines.weight, None, drawn, influence)

    variance, squared_residuals = _excess_variance(
        rows, lines, coefficient, residual, is_importance
    )
    size = n.sum(axis=0)
    if is_importance or (weight % 1).any() or size.max() > _MOST_ROWS_DRAWN:
        drawn = rng.normal(0.0, np.sqrt(variance), (n_resamples, rows.n_cells))
    else:
        events = rows.total(weight * rows.labels).sum(axis=0)
        covariance = rows.total(weight * rows.labels * residual).sum(axis=0)
        drawn = _hypergeometric_draws(
            n, events, covariance, squared_residuals, n_resamples, rng
        )
        # Rows drawn without replacement from a cell, whatever their scores, give the
        # excess this variance. It becomes that about a line.
        one_less = np.maximum(size - 1, _NO_SPREAD)
        variance_drawn = n.prod(axis=0) / size / one_less * squared_residuals
        drawn *= np.sqrt(_quotient_or_zero(variance, variance_drawn))
    return Excess(lines.excess, lines.weight, variance, drawn)


def _excess_variance(rows, lines, coefficient, residual, is_importance):
    """Return the variance of each cell's excess for independent rows, and the sum of
    squared residuals about the line; both (n_cells,).

    Parameters
    ----------
    rows : _PooledRows
        The rows.
    lines : ResidualLines
        The lines of the cells.
    coefficient, residual : ndarray of shape (n_rows,)
        The excess of a cell is the sum of weight, coefficient and residual multiplied.
    is_importance : bool
        Whether each row was observed once, regardless of its weight.
    """
    size = rows.total(rows.weight).sum(axis=0)
    squared_residuals = rows.total(rows.weight * residual**2).sum(axis=0)
    # A frequency weight w stands for w rows, each with one residual; an importance
    # weight for one row, whose residual counts w times.
    row_squares = rows.weight
    squares = size
    if is_importance:
        row_squares = rows.weight**2
        squares = rows.total(row_squares).sum(axis=0)
    # The residuals were made smaller by the fit of a mean, and of a slope where there
    # is one: `squares / size` is the weight that each fitted number takes up.
    n_fitted = 1 + (lines.slope != 0)
    degrees = np.maximum(size - n_fitted * squares / size, _NO_SPREAD)
    variance_of_residual = squared_residuals / degrees
    squared_coefficients = rows.total(row_squares * coefficient**2).sum(axis=0)
    return variance_of_residual * squared_coefficients, squared_residuals


def _hypergeometric_draws(n, events, covariance, squared_residuals, n_resamples, rng):
    """Return drawn excesses (n_resamples, n_cells) of the second sample, whose rows in
    each cell are drawn without replacement from those of both.

    Within a cell the residuals are regressed on the labels (0 or 1). The part that the
    labels explain follows from the number of the second sample's events, which is
    hypergeometric; the sum of the rest is drawn as normal.

    Parameters
    ----------
    n : ndarray of shape (2, n_cells)
        Numbers of rows of both samples.
    events, covariance, squared_residuals : ndarray of shape (n_cells,)
        Sums over both samples: of the labels, of label times residual (the residuals of
        a cell sum to 0), and of the squared residual.
    n_resamples : int
        Number of draws.
    rng : numpy Generator
        Source of the random draws.
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
    one_less = np.maximum(size - 1, _NO_SPREAD)
    variance = n.prod(axis=0) / size / one_less * unexplained
    drawn += rng.normal(0.0, np.sqrt(variance), shape)
    return drawn


def _clustered_draws(rows, n, fitted, lines, cluster, n_resamples, rng):
    """Return excesses (n_resamples, n_cells) of labels of both samples that are drawn
    from the event frequencies of both, dependent within clusters.

    Parameters
    ----------
    rows : _PooledRows
        The rows.
    n : ndarray of shape (2, n_cells)
        Total weights of both samples.
    fitted : ndarray of shape (n_rows,)
        Each row's score plus what the line's slope adds, in [0, 1]: with the mean
        residual of its cell it is the event frequency on the line.
    lines : ResidualLines
        The lines of the cells.
    cluster : ndarray of int, shape (n_rows,)
        Code of each row's cluster.
    n_resamples : int
        Number of draws.
    rng : numpy Generator
        Seeds the draws.
    """
    sample_cell = rows.sample_cell
    in_cells = RowsInCells(
        sample_cell[:, None], fitted[:, None], rows.labels[:, None], rows.weight
    )
    # The draws of clusters take a RandomState.
    legacy_rng = np.random.RandomState(rng.integers(2**32))
    # Both samples have the mean residual of both: no change of the curve.
    deviation = np.tile(lines.mean, 2)
    count = n.ravel()
    total = np.bincount(sample_cell, rows.weight * fitted, n.size)
    mean_score = total / np.maximum(count, _NO_SPREAD)
    # The sums of labels are not needed: labels are drawn.
    no_labels = np.zeros(n.size)
    cells = Cells.of_scores(mean_score, count, no_labels)
    # Draws of the cells' event frequencies, for given expected ones.
    draws = ClusterDraws(cells, in_cells, deviation, cluster, n_resamples, legacy_rng)
    frequency = np.where(count > 0, np.clip(mean_score + deviation, 0, 1), 0.0)
    # frequencies less their expectation, by draw, sample and cell
    drawn = np.concatenate(list(draws(frequency))) - frequency
    drawn = drawn.reshape(n_resamples, *n.shape)
    difference = drawn[:, 1] - drawn[:, 0]
    weight_without_line = n.prod(axis=0) / n.sum(axis=0)
    excess = weight_without_line * difference
    # These draws know no line: their variance is in proportion to the weight without
    # one, and becomes that of the excess about the line.
    excess *= np.sqrt(_quotient_or_zero(lines.weight, weight_without_line))
    return excess


def excess_of_bins(before, after, weight_type, n_resamples, rng):
    """Return the `Excess` of two samples of which only bins are known. The draws are
    normal with the residual variance of the bin.

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

    def stacked(name):
        """Return a sum of both samples (2, n_bins)."""
        return np.stack(
            (getattr(before.statistics, name), getattr(after.statistics, name))
        )

    n = stacked("weight")
    squared_weight = n
    if weight_type == "importance":
        squared_weight = stacked("weight_squared")
    score = stacked("weighted_score")
    score_squared = stacked("weighted_score_squared")
    residual = stacked("weighted_label") - score
    residual_score = stacked("weighted_score_label") - score_squared
    lines = ResidualLines.of_sums(n, score, score_squared, residual, residual_score)
    rows = np.maximum(n, _NO_SPREAD)
    # sums of squared residuals about the mean of their bin and sample, (2, n_bins)
    squares = np.maximum(stacked("residual_square") - residual**2 / rows, 0)
    # The samples share the squared residuals of a bin in proportion to the variance
    # s (1 - s) that their scores predict: from a few events each sample's own squares
    # would be too uncertain.
    predicted = np.maximum(score - score_squared, 0)
    predicted = np.where(predicted.sum(axis=0) > 0, predicted, rows)
    squares = squares.sum(axis=0) * predicted / predicted.sum(axis=0)
    # Without a line the excess is this weight times the difference of both means. The
    # variance of a mean is that of a residual, squares / rows, times squared_weight /
    # rows^2.
    weight_without_line = n[0] * (n[1] / rows.sum(axis=0))
    variance_of_means = np.sum(squares * squared_weight / rows**3, axis=0)
    variance = weight_without_line**2 * variance_of_means
    # About the line it is smaller, as the weight is.
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
