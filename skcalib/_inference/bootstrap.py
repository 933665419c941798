"""The basic bootstrap of a metric that is not of this library: rows or clusters of rows
are resampled.
"""

import numpy as np
from joblib import Parallel, delayed

from skcalib._progress import Progress
from skcalib._rows.blocks import weights_or_ones


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
    """Return the limits of the basic bootstrap: the resamples, mirrored at the
    estimate.

    Parameters
    ----------
    metric : callable
        Maps ``sample_weight=`` to a number.
    data : ScoredLabels
        The validated rows; those of weight zero are not drawn.
    estimate : float
        The metric.
    level : float
        Coverage.
    n_resamples : int
        Number of resamples.
    rng : RandomState
        Random numbers.
    cluster : ndarray of int, shape (n,), default=None
        Code of each row's cluster.
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
    drawn = parallel(delayed(metric)(sample_weight=weight) for weight in weights)
    progress = Progress("calibration_error_interval", verbose)
    resamples = list(progress.over(drawn, n_resamples, "resamples"))
    tail = (1 - level) / 2
    low, high = np.quantile(resamples, [tail, 1 - tail])
    return float(2 * estimate - high), float(2 * estimate - low)


def _resampled_weights(data, n_resamples, rng, cluster, stratify):
    """Yield the weight of each row in each resample.

    Rows are drawn within each stratum in proportion to their weights, as often as these
    add up to, because weights count as repeated rows. A cluster is drawn whole,
    whatever it holds.
    """
    n = len(data.scores)
    kept = data.kept
    weight = weights_or_ones(data.sample_weight, n)
    if cluster is not None:
        present, cluster_of_row = np.unique(cluster[kept], return_inverse=True)
        equal = np.full(len(present), 1 / len(present))
        for _ in range(n_resamples):
            times = rng.multinomial(len(present), equal)
            resampled = np.zeros(n)
            resampled[kept] = times[cluster_of_row] * weight[kept]
            yield resampled
        return
    strata = [kept]
    if stratify:
        codes = data.labels[kept]
        strata = [kept[codes == code] for code in np.unique(codes)]
    for _ in range(n_resamples):
        resampled = np.zeros(n)
        for rows in strata:
            total = weight[rows].sum()
            n_draws = max(1, round(total))
            times = rng.multinomial(n_draws, weight[rows] / total)
            resampled[rows] = times * (total / n_draws)
        yield resampled
