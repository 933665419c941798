"""Scores and labels from a model whose calibration error is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, overload

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from skcalib._errors.binned import check_norm
from skcalib._inference.results import ResultRecord
from skcalib._input.scalars import check_int, check_number
from skcalib._progress import Progress
from skcalib._verdicts import rounded
from skcalib.simulation._curves import PowerCurve
from skcalib.simulation._quadrature import ScoreLaw, expectation, supremum

# Number of batches into which the data sets of a parallel run are divided: enough for
# an even load and for progress to be seen.
_BATCHES = 64


@dataclass(frozen=True, eq=False, repr=False)
class EstimatorBias(ResultRecord):
    """Bias and variance of an estimator of the calibration error at one sample size:
    see `CalibrationModel.estimator_bias`.
    """

    bias: float
    standard_error: float
    variance: float
    mean: float
    true_error: float
    n_simulations: int

    def _sentences(self):
        return (
            f"Bias {rounded(self.bias)} (standard error"
            f" {rounded(self.standard_error)}): {self.n_simulations:,} simulations"
            f" average {rounded(self.mean)}, and the true error is"
            f" {rounded(self.true_error)}."
        )


class CalibrationModel:
    """Model with known calibration error: scores and their event probabilities.

    Parameters
    ----------
    score_distribution : frozen distribution from scipy.stats
        Distribution of the scores, with support inside [0, 1]; a discrete distribution
        represents a binned model.
    calibration_curve : callable
        Vectorised function T of scores (n,) that returns the event probabilities E[Y |
        s]. If it has an attribute ``accepts_complement = True``, it is called with a
        second argument, 1 - s, computed without cancellation. If the curve has many
        jumps, the scores at which they occur can be given as its attribute
        `breakpoints`.

    Raises
    ------
    TypeError
        If `score_distribution` cannot be sampled and inverted, or if
        `calibration_curve` is not callable.
    ValueError
        If the support extends beyond [0, 1]. Also raised later, by the methods, if the
        curve leaves [0, 1].

    See Also
    --------
    skcalib.simulation.fit_calibration_curve : Fits curves to scores and labels.
    skcalib.displays.EstimatorBiasDisplay : Plots the bias of estimators.

    Notes
    -----
    Scores are drawn as real numbers, and rounded to float64 only at the end. For
    Beta(2.8, 0.05), one in six scores is above 1 - 1e-16 and becomes exactly 1; the
    labels and the true error use the exact scores.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer (2022), Mitigating bias in calibration error
    estimation, Section 3.

    Examples
    --------
    For uniform scores and T(s) = s^2, the squared error is the integral of (s - s^2)^2,
    which is 1/30.

    >>> from scipy import stats
    >>> from skcalib.simulation import CalibrationModel, PowerCurve
    >>> model = CalibrationModel(stats.uniform(), PowerCurve(2))
    >>> round(30 * model.true_calibration_error() ** 2, 8)
    1.0
    >>> scores, y = model.sample(1000, random_state=0)
    >>> bool(abs(y.mean() - 1 / 3) < 0.05)
    True
    """

    def __init__(self, score_distribution: Any, calibration_curve: Callable[..., Any]):
        self.score_distribution = score_distribution
        self.calibration_curve = calibration_curve
        _check_distribution(score_distribution)
        if not callable(calibration_curve):
            raise TypeError(
                "calibration_curve must be a function of scores, found"
                f" {calibration_curve!r}."
            )
        # draws the scores, and computes expectations over them
        self._law = ScoreLaw(score_distribution)

    def __repr__(self):
        """Return the distribution with its arguments, and the curve."""
        distribution = self.score_distribution
        arguments = [f"{value:g}" for value in getattr(distribution, "args", ())]
        for name, value in getattr(distribution, "kwds", {}).items():
            arguments.append(f"{name}={value:g}")
        # a frozen distribution of SciPy knows its family as `dist`
        family = getattr(distribution, "dist", distribution)
        name = getattr(family, "name", type(distribution).__name__)
        return (
            f"CalibrationModel({name}({', '.join(arguments)}),"
            f" {self.calibration_curve!r})"
        )

    def sample(
        self,
        n: int,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw scores and labels.

        Parameters
        ----------
        n : int
            Number of samples.
        random_state : int, Generator, RandomState or None, default=None
            Seed for the random draws.

        Returns
        -------
        scores : ndarray of float64, shape (n,)
            Scores in [0, 1].
        y : ndarray of int, shape (n,)
            Labels, 1 if the event occurred.

        Raises
        ------
        ValueError
            If `n` is not a positive int, or if the curve leaves [0, 1].
        """
        check_int(n, "n")
        scores, y = self._sample(n, np.random.default_rng(_seed(random_state)))
        return scores, y.astype(np.int64)

    def true_calibration_error(self, norm: float = 2) -> float:
        """Return the true calibration error ``(E |S - T(S)|^p)^(1/p)``.

        The result is accurate to 1e-8 or better.

        Parameters
        ----------
        norm : float, default=2
            Exponent p >= 1, or ``np.inf`` for the supremum over the support. The
            default 2 is that of `calibration_error`.

        Returns
        -------
        error : float
            The error, in [0, 1]; it is 0 for a calibrated model.

        Raises
        ------
        ValueError
            If the curve leaves [0, 1], or if it has more jumps than can be resolved
            without its attribute `breakpoints`.
        """
        norm = check_norm(norm)
        breakpoints = getattr(self.calibration_curve, "breakpoints", None)
        if norm == np.inf:
            return supremum(self._law, self._gap, breakpoints)

        def power_of_gap(scores, complement):
            """Return |s - T(s)|^p of each score (m,), with its complement 1 - s."""
            return self._gap(scores, complement) ** norm

        # An error below 1e-10 need not be told from 0.
        power = expectation(self._law, power_of_gap, breakpoints, floor=1e-10**norm)
        return power ** (1 / norm)

    @overload
    def estimates(
        self,
        metric: Callable[..., float],
        n: int,
        n_simulations: int = ...,
        *,
        n_jobs: int | None = ...,
        verbose: bool = ...,
        random_state: int | np.random.Generator | np.random.RandomState | None = ...,
    ) -> np.ndarray: ...

    @overload
    def estimates(
        self,
        metric: Mapping[str, Callable[..., float]],
        n: int,
        n_simulations: int = ...,
        *,
        n_jobs: int | None = ...,
        verbose: bool = ...,
        random_state: int | np.random.Generator | np.random.RandomState | None = ...,
    ) -> dict[str, np.ndarray]: ...

    def estimates(
        self,
        metric: Callable[..., float] | Mapping[str, Callable[..., float]],
        n: int,
        n_simulations: int = 1000,
        *,
        n_jobs: int | None = None,
        verbose: bool = False,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> np.ndarray | dict[str, np.ndarray]:
        """Return a metric's values on independent data sets.

        Parameters
        ----------
        metric : callable or dict of callables
            Function ``metric(y_true, y_proba)`` that returns a number for boolean
            labels. All metrics in a dict receive the same data sets, so that their
            differences have little noise.
        n : int
            Number of samples in each simulated data set.
        n_simulations : int, default=1000
            Number of simulated data sets.
        n_jobs : int, default=None
            Number of parallel jobs. None means 1 unless a `joblib.parallel_config` says
            otherwise; -1 means all processors.
        verbose : bool, default=False
            Whether to write progress to standard error.
        random_state : int, Generator, RandomState or None, default=None
            Seed for the random draws.

        Returns
        -------
        estimates : ndarray of shape (n_simulations,), or a dict of them
            Values of the metric, in the order of the data sets.

        Raises
        ------
        ValueError
            If a count is not a positive int, or if a metric returns a value that is not
            finite.
        """
        check_int(n, "n")
        check_int(n_simulations, "n_simulations")
        metrics = _by_name(metric)
        # Each data set has a seed of its own, so that the number of jobs and the size
        # of the batches change nothing.
        seeds = np.random.SeedSequence(_seed(random_state)).spawn(n_simulations)
        batch_size = -(-n_simulations // _BATCHES)  # data sets, rounded up
        batches = []
        for start in range(0, n_simulations, batch_size):
            batches.append(seeds[start : start + batch_size])
        functions = list(metrics.values())
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
        results = parallel(
            delayed(self._evaluate)(functions, n, batch) for batch in batches
        )
        progress = Progress("simulation", verbose)
        # The values of each batch: (n_metrics, data sets of the batch).
        tables = list(progress.over(results, len(batches), "batches of samples"))
        values = dict(zip(metrics, np.concatenate(tables, axis=1), strict=True))
        if isinstance(metric, Mapping):
            return values
        return values[None]  # the name of a single metric

    @overload
    def estimator_bias(
        self,
        metric: Callable[..., float],
        n: int,
        n_simulations: int = ...,
        *,
        norm: float = ...,
        n_jobs: int | None = ...,
        verbose: bool = ...,
        random_state: int | np.random.Generator | np.random.RandomState | None = ...,
    ) -> EstimatorBias: ...

    @overload
    def estimator_bias(
        self,
        metric: Mapping[str, Callable[..., float]],
        n: int,
        n_simulations: int = ...,
        *,
        norm: float = ...,
        n_jobs: int | None = ...,
        verbose: bool = ...,
        random_state: int | np.random.Generator | np.random.RandomState | None = ...,
    ) -> dict[str, EstimatorBias]: ...

    def estimator_bias(
        self,
        metric: Callable[..., float] | Mapping[str, Callable[..., float]],
        n: int,
        n_simulations: int = 1000,
        *,
        norm: float = 2,
        n_jobs: int | None = None,
        verbose: bool = False,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> EstimatorBias | dict[str, EstimatorBias]:
        """Return the bias and variance of an estimator of the calibration error.

        Parameters
        ----------
        metric : callable or dict of callables
            ``metric(y_true, y_proba)``, which estimates the error of this `norm`.
        n : int
            Number of samples in each simulated data set.
        n_simulations : int, default=1000
            Number of simulated data sets.
        norm : float, default=2
            Norm of the true error with which the estimates are compared. The default 2
            is that of `calibration_error`.
        n_jobs : int, default=None
            Number of parallel jobs. None means 1 unless a `joblib.parallel_config` says
            otherwise; -1 means all processors.
        verbose : bool, default=False
            Whether to write progress to standard error.
        random_state : int, Generator, RandomState or None, default=None
            Seed for the random draws.

        Returns
        -------
        result : EstimatorBias, or a dict of them
            Named fields: `bias`, the mean of the estimates minus `true_error`, and its
            Monte Carlo `standard_error`; the `variance` of the estimates across data
            sets, and their `mean`; the model's `true_error`; and `n_simulations`.

        Raises
        ------
        ValueError
            If there are fewer than two simulations, or if the input is invalid (see
            `estimates`).

        Examples
        --------
        For a calibrated model, a binned plugin error can only be too large.

        >>> from scipy import stats
        >>> from skcalib.metrics import calibration_error
        >>> from skcalib.simulation import CalibrationModel, PowerCurve
        >>> model = CalibrationModel(stats.uniform(), PowerCurve(1))
        >>> def plugin(y_true, y_proba):
        ...     return calibration_error(y_true, y_proba, method="plugin")
        >>> result = model.estimator_bias(
        ...     plugin, n=200, n_simulations=50, random_state=0
        ... )
        >>> 0.08 < result.bias < 0.12
        True
        """
        check_int(n_simulations, "n_simulations", minimum=2)  # for a variance
        estimates = self.estimates(
            metric,
            n,
            n_simulations,
            n_jobs=n_jobs,
            verbose=verbose,
            random_state=random_state,
        )
        truth = self.true_calibration_error(norm)
        if isinstance(estimates, dict):
            return {name: _bias(values, truth) for name, values in estimates.items()}
        return _bias(estimates, truth)

    @overload
    def detection_rate(
        self,
        metric: Callable[..., float],
        n: int,
        n_simulations: int = ...,
        *,
        significance_level: float = ...,
        n_jobs: int | None = ...,
        verbose: bool = ...,
        random_state: int | np.random.Generator | np.random.RandomState | None = ...,
    ) -> float: ...

    @overload
    def detection_rate(
        self,
        metric: Mapping[str, Callable[..., float]],
        n: int,
        n_simulations: int = ...,
        *,
        significance_level: float = ...,
        n_jobs: int | None = ...,
        verbose: bool = ...,
        random_state: int | np.random.Generator | np.random.RandomState | None = ...,
    ) -> dict[str, float]: ...

    def detection_rate(
        self,
        metric: Callable[..., float] | Mapping[str, Callable[..., float]],
        n: int,
        n_simulations: int = 1000,
        *,
        significance_level: float = 0.05,
        n_jobs: int | None = None,
        verbose: bool = False,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> float | dict[str, float]:
        """Return how often a metric distinguishes the model from a calibrated one.

        The metric detects miscalibration if it exceeds the ``1 - significance_level``
        quantile of its values on data sets from the calibrated model, T(s) = s.

        Parameters
        ----------
        metric : callable or dict of callables
            ``metric(y_true, y_proba)``, where larger values are worse.
        n : int
            Number of samples in each simulated data set.
        n_simulations : int, default=1000
            Number of simulated data sets for each of the two models.
        significance_level : float, default=0.05
            Type I error rate, in (0, 1).
        n_jobs : int, default=None
            Number of parallel jobs. None means 1 unless a `joblib.parallel_config` says
            otherwise; -1 means all processors.
        verbose : bool, default=False
            Whether to write progress to standard error.
        random_state : int, Generator, RandomState or None, default=None
            Seed for the random draws.

        Returns
        -------
        rate : float, or a dict of them
            Fraction of simulations in which miscalibration is detected; for a
            calibrated model, this is the type I error rate.

        Raises
        ------
        ValueError
            If `significance_level` is not in (0, 1), or if the input is invalid (see
            `estimates`).

        References
        ----------
        Roelofs, Cain, Shlens and Mozer (2022), Mitigating bias in calibration error
        estimation, Section 5.4.
        """
        check_number(significance_level, "significance_level", above=0, below=1)
        calibrated = CalibrationModel(self.score_distribution, PowerCurve(1))
        metrics = _by_name(metric)
        seed_of_null, seed = np.random.default_rng(_seed(random_state)).spawn(2)
        options = {"n_jobs": n_jobs, "verbose": verbose}
        null = calibrated.estimates(
            metrics, n, n_simulations, random_state=seed_of_null, **options
        )
        values = self.estimates(metrics, n, n_simulations, random_state=seed, **options)
        # Of `n_simulations` null values at most a share `significance_level` is larger
        # than this one.
        rank = np.ceil((1 - significance_level) * n_simulations).astype(int) - 1
        rates = {}
        for name in metrics:
            critical = np.sort(null[name])[rank]
            rates[name] = float(np.mean(values[name] > critical))
        if isinstance(metric, Mapping):
            return rates
        return rates[None]  # the name of a single metric

    def _sample(self, n, rng):
        """Return n scores and boolean labels (n,), drawn by a
        `numpy.random.Generator`.
        """
        scores, complement = self._law.sample(n, rng)
        return scores, rng.random(n) < self._event_probability(scores, complement)

    def _evaluate(self, metrics, n, seeds):
        """Return the values (n_metrics, n_seeds) of metrics on samples of size n from
        each seed.
        """
        values = np.empty((len(metrics), len(seeds)))
        for column, seed in enumerate(seeds):
            scores, y = self._sample(n, np.random.default_rng(seed))
            values[:, column] = [metric(y, scores) for metric in metrics]
        if not np.isfinite(values).all():
            raise ValueError(
                f"The metric returned {values[~np.isfinite(values)][0]}: it must be"
                " finite on every data set."
            )
        return values

    def _gap(self, scores, complement):
        """Return the distance of each score (n,) from its true event probability.
        `complement` (n,) is 1 - score with all its digits.
        """
        return np.abs(scores - self._event_probability(scores, complement))

    def _event_probability(self, scores, complement):
        """Return the true event probability of each score (n,), checked. `complement`
        is 1 - score with all its digits, which a curve may ask for by
        `accepts_complement`.
        """
        curve = self.calibration_curve
        if getattr(curve, "accepts_complement", False):
            arguments = (scores, complement)
        else:
            arguments = (scores,)
        probability = np.asarray(curve(*arguments), dtype=np.float64)
        if probability.shape != scores.shape:
            raise ValueError(
                "calibration_curve must return one probability per score, found shape"
                f" {probability.shape} for {scores.shape}."
            )
        # Rounding may take a curve just beyond 0 or 1.
        valid = (probability >= -1e-12) & (probability <= 1 + 1e-12)
        if not valid.all():
            row = np.flatnonzero(~valid)[0]
            raise ValueError(
                "calibration_curve must stay in [0, 1], but it is"
                f" {probability[row]:.6g} at the score {scores[row]:.6g}."
            )
        return np.clip(probability, 0, 1)


def _bias(estimates, truth):
    """Return the `EstimatorBias` of estimates (n_simulations,) of a true error."""
    mean = estimates.mean()
    variance = estimates.var(ddof=1)
    return EstimatorBias(
        bias=float(mean - truth),
        standard_error=float(np.sqrt(variance / len(estimates))),
        variance=float(variance),
        mean=float(mean),
        true_error=float(truth),
        n_simulations=len(estimates),
    )


def _by_name(metric):
    """Return metrics by their names; one that stands alone has the name None."""
    if isinstance(metric, Mapping):
        return metric
    return {None: metric}


def _check_distribution(distribution):
    """Raise unless this is a frozen distribution of SciPy within [0, 1]."""
    for name in ("rvs", "ppf", "isf", "support"):
        if not hasattr(distribution, name):
            raise TypeError(
                "score_distribution must be a frozen distribution of scipy.stats, such"
                f" as scipy.stats.beta(2, 0.5): {distribution!r} has no {name}."
            )
    try:
        low, high = distribution.support()
    except TypeError:
        raise TypeError(
            "score_distribution must be frozen: specify its parameters, as in"
            f" scipy.stats.beta(2, 0.5). Found {distribution!r}."
        ) from None
    if not (low >= 0 and high <= 1):
        raise ValueError(
            f"score_distribution must have its support in [0, 1], found [{low:g},"
            f" {high:g}]."
        )


def _seed(random_state):
    """Return entropy for a SeedSequence: None, an int, or an int drawn from a
    generator.
    """
    if random_state is None or (
        isinstance(random_state, Integral) and random_state >= 0
    ):
        return random_state
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
