"""The basic bootstrap of a metric that is not of this library: rows or clusters of rows
are resampled.
"""

import numpy as np
from joblib import Parallel, delayed

from skcalib._progress import Progress
from skcalib._rows.blocks import weights_or_ones
from skcalib._rows.sorting import distinct_values


def basic_limits(
    metric,
    data,
    estimate,
    level,
    n_resamples,
    rng,
    *,
    cluster=None,
    stratify=False,
    n_jobs=None,
    verbose=False,
):
    """Return the limits of a metric by the basic bootstrap: the estimate plus the
    difference between the estimate and each quantile of the resampled metrics.

    Parameters
    ----------
    metric : callable
        ``metric(sample_weight=weights)`` returns the metric of all rows with these
        weights (n,), a float.
    data : ScoredLabels
        The validated rows; those of weight zero are not drawn.
    estimate : float
        The metric of the data.
    level : float
        Coverage.
    n_resamples : int
        Number of resamples.
    rng : RandomState
        Random numbers.
    cluster : ndarray of int, shape (n,), default=None
        Code of each row's cluster; clusters are drawn whole.
    stratify : bool, default=False
        Whether rows are drawn within their class.
    n_jobs : int, default=None
        Threads.
    verbose : bool, default=False
        Whether progress is written.

    Returns
    -------
    low, high : float
        The limits.
    """
    weights = _resampled_weights(data, n_resamples, rng, cluster, stratify)
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    values = parallel(delayed(metric)(sample_weight=weight) for weight in weights)
    progress = Progress("calibration_error_interval", verbose)
    resamples = list(progress.over(values, n_resamples, "resamples"))
    tail = (1 - level) / 2
    # A resample differs from the estimate as the estimate differs from the truth, so
    # the quantiles are mirrored at the estimate.
    lower_quantile, upper_quantile = np.quantile(resamples, [tail, 1 - tail])
    low = 2 * estimate - upper_quantile
    high = 2 * estimate - lower_quantile
    return float(low), float(high)


def _resampled_weights(data, n_resamples, rng, cluster, stratify):
    """Yield the weights (n,) of all rows in each resample: how often a row was drawn,
    times a factor.

    Weights count as repeated rows: as many rows are drawn as the weights add up to, in
    proportion to them. Clusters are drawn whole, as many as there are; `stratify` draws
    rows within their class.
    """
    n = len(data.scores)
    positive_rows = data.kept
    weight = weights_or_ones(data.sample_weight, n)
    if cluster is not None:
        names, cluster_of_row = distinct_values(cluster[positive_rows])
        equal_shares = np.full(len(names), 1 / len(names))
        for _ in range(n_resamples):
            times = rng.multinomial(len(names), equal_shares)  # of each cluster
            resampled = np.zeros(n)
            resampled[positive_rows] = times[cluster_of_row] * weight[positive_rows]
            yield resampled
        return
    # Sets of rows from each of which rows are drawn: all rows, or those of each class.
    strata = [positive_rows]
    if stratify:
        codes = data.labels[positive_rows]
        strata = [positive_rows[codes == code] for code in np.unique(codes)]
    for _ in range(n_resamples):
        resampled = np.zeros(n)
        for rows in strata:
            total = weight[rows].sum()
            n_draws = max(1, round(total))
            times = rng.multinomial(n_draws, weight[rows] / total)
            # The factor keeps the total weight of the stratum, which may be no integer.
            resampled[rows] = times * (total / n_draws)
        yield resampled
