"""The basic bootstrap of a metric that is not of this library: rows or clusters of rows are resampled."""

from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from skcalib._progress import Progress


class BootstrapOptions(NamedTuple):
    """How to resample rows."""

    confidence_level: float
    n_resamples: int
    cluster: np.ndarray | None
    stratify: bool
    rng: np.random.RandomState
    n_jobs: int | None
    verbose: bool


def basic_limits(metric, data, estimate, options):
    """Return the limits of the basic bootstrap: the resamples, mirrored at the estimate.

    Parameters
    ----------
    metric : callable
        Maps ``sample_weight=`` to a number.
    data : ScoredLabels
        The validated rows; those of weight zero are not drawn.
    estimate : float
        The metric.
    options : BootstrapOptions
        How to resample.

    Returns
    -------
    low, high : float
        The limits.
    """
    weights = _resampled_weights(data, options)
    parallel = Parallel(n_jobs=options.n_jobs, prefer="threads", return_as="generator")
    drawn = parallel(delayed(metric)(sample_weight=weight) for weight in weights)
    progress = Progress("calibration_error_interval", options.verbose)
    resamples = list(progress.over(drawn, options.n_resamples, "resamples"))
    tail = (1 - options.confidence_level) / 2
    low, high = np.quantile(resamples, [tail, 1 - tail])
    return float(2 * estimate - high), float(2 * estimate - low)


def _resampled_weights(data, options):
    """Yield the weight of each row in each resample.

    Rows are drawn within each stratum in proportion to their weights, as often as these add up to, because weights
    count as repeated rows. A cluster is drawn whole, whatever it holds.
    """
    n, kept, rng = len(data.scores), data.kept, options.rng
    weight = np.ones(n) if data.sample_weight is None else data.sample_weight
    if options.cluster is not None:
        present, unit = np.unique(options.cluster[kept], return_inverse=True)
        for _ in range(options.n_resamples):
            times = rng.multinomial(len(present), np.full(len(present), 1 / len(present)))
            resampled = np.zeros(n)
            resampled[kept] = times[unit] * weight[kept]
            yield resampled
        return
    codes = data.labels[kept] if options.stratify else np.zeros(len(kept), dtype=np.intp)
    strata = [kept[codes == code] for code in np.unique(codes)]
    for _ in range(options.n_resamples):
        resampled = np.zeros(n)
        for rows in strata:
            total = weight[rows].sum()
            n_draws = max(1, round(total))
            resampled[rows] = rng.multinomial(n_draws, weight[rows] / total) * (total / n_draws)
        yield resampled
