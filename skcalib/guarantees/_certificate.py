"""The certificate: a guarantee about one recalibrated model, with its assumptions, and
the functions that issue it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import ceil
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from skcalib._input.scalars import as_numbers, check_confidence_level, check_option
from skcalib._verdicts import (
    conditions_words,
    count_words,
    fixed,
    level_words,
    sentences_html,
)
from skcalib.guarantees._frequencies import check_frequencies, event_frequency_interval
from skcalib.guarantees._uniform_mass import (
    check_count,
    check_rows_per_bin,
    uniform_mass_epsilon,
    union_level,
)

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationCertificate:
    """Guarantee about the probabilities of one recalibrated model.

    ``print`` explains it in words.

    Parameters
    ----------
    epsilon : float
        Tolerance: the largest difference between a predicted probability and the true
        event frequency.
    confidence_level : float
        Probability with which the guarantee holds, in (0, 1).
    kind : {"conditional", "marginal"}
        Whether the guarantee holds for all predicted probabilities simultaneously, or
        for that of one random future sample.
    n_samples : int
        Number of calibration samples on which the guarantee is based.
    n_bins : int or tuple of int
        Number of bins; one entry per problem if there are several.
    assumptions : tuple of str
        Conditions for the guarantee to hold, one sentence each.
    low, high : ndarray of shape (n_bins,) or tuple of such arrays
        Interval for the event frequency of each bin. Either all intervals hold
        simultaneously (conditional), or the interval for the bin of a random sample
        holds (marginal). One entry per problem if there are several.
    interval : str
        Name of the bound or interval, such as ``"Theorem 3"`` or ``"Clopper-Pearson"``.
    n_problems : int, default=1
        Number of binary problems that the guarantee covers jointly, such as the
        one-vs-rest problems of the classes.
    n_candidates : int, default=1
        Number of candidates from which the recalibrator was selected on the same
        samples.

    See Also
    --------
    skcalib.UniformMassBinning : Bins with a certificate.
    skcalib.HistogramBinning : Predicts the event frequency of each bin.
    skcalib.guarantees.conditional_epsilon : The tolerance that holds for all bins
        simultaneously.

    Examples
    --------
    >>> from skcalib.guarantees import independent_bins_certificate
    >>> certificate = independent_bins_certificate(
    ...     [20, 180], [200, 200], [0.1, 0.9], edges="fixed"
    ... )
    >>> print(certificate)
    With 90 % confidence, every predicted probability differs by at most 0.0503 from
    the true event frequency among samples that receive it.
    In repeated draws of calibration samples, this holds at least 90 % of the time.
    This is a conditional certificate based on Clopper-Pearson intervals, from 400
    calibration samples in 2 bins...
    """

    epsilon: float
    confidence_level: float
    kind: str
    n_samples: int
    n_bins: int | tuple[int, ...]
    assumptions: tuple[str, ...]
    low: np.ndarray | tuple[np.ndarray, ...]
    high: np.ndarray | tuple[np.ndarray, ...]
    interval: str
    n_problems: int = 1
    n_candidates: int = 1

    def __str__(self):
        """State the guarantee, where it comes from, and what it needs."""
        sizes = np.atleast_1d(self.n_bins)  # of each binary problem
        fewest = sizes.min()
        most = sizes.max()
        if fewest < most:
            bins = f"{fewest} to {most} bins"
        else:
            bins = "1 bin" if most == 1 else f"{most} bins"
        source = f"{count_words(self.n_samples)} calibration samples in {bins}"
        if self.n_candidates > 1:
            source += f", selected from among at most {self.n_candidates} candidates"
        if self.interval in _INTERVALS.values():
            basis = f"{self.interval} intervals"
        else:
            basis = f"{self.interval} of Gupta and Ramdas (2021)"
        title = f"This is a {self.kind} certificate based on {basis}, from {source}."
        return "\n".join([self._promise(), title, conditions_words(self.assumptions)])

    def __repr__(self):
        return str(self)

    def _repr_html_(self):
        return sentences_html(str(self))

    def to_frame(self) -> DataFrame:
        """Return the intervals for the bins as a pandas DataFrame.

        Returns
        -------
        frame : pandas.DataFrame
            One row per bin: the index of its binary problem (0 if there is only
            one), the index of the bin, and the limits of its event frequency.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        if find_spec("pandas") is None:
            raise ImportError(
                "CalibrationCertificate.to_frame needs pandas: pip install pandas."
            )
        from pandas import DataFrame

        lows = self.low
        highs = self.high
        if isinstance(self.low, np.ndarray):  # of a single problem
            lows = [self.low]
            highs = [self.high]
        sizes = [len(low) for low in lows]
        return DataFrame(
            {
                "problem": np.repeat(np.arange(len(sizes)), sizes),
                "bin": np.concatenate([np.arange(size) for size in sizes]),
                "low": np.concatenate(lows),
                "high": np.concatenate(highs),
            }
        )

    def _tolerance(self):
        """Return epsilon as text, rounded up so that the guarantee holds for it."""
        return fixed(ceil(self.epsilon * 1e4) / 1e4, 4)

    def _promise(self):
        """Return the guarantee as a sentence."""
        percent = level_words(self.confidence_level)
        # Phrases of the sentence, for "marginal" for instance "the probability
        # predicted for a random future row", "calibration samples and future rows,
        # taken together" and "in its bin".
        subject, draws, where = _PROMISES[self.kind]
        several = ""
        if self.n_problems > 1:
            several = f", for all {self.n_problems} classes together"
        return (
            f"With {percent} confidence, {subject} differs by at most"
            f" {self._tolerance()} from the true event frequency {where}{several}.\n"
            f"In repeated draws of {draws}, this holds at least {percent} of the time."
        )


def uniform_mass_certificate(
    positives: ArrayLike | Sequence[ArrayLike],
    counts: ArrayLike | Sequence[ArrayLike],
    predictions: ArrayLike | Sequence[ArrayLike],
    *,
    n_samples: int,
    confidence_level: float = 0.9,
    kind: Literal["conditional", "marginal"] = "conditional",
    keep_boundary: bool = False,
    n_candidates: int = 1,
    interval: Literal["clopper_pearson", "theorem"] = "clopper_pearson",
) -> CalibrationCertificate:
    r"""Return a certificate for uniform-mass binning without sample splitting.

    Parameters
    ----------
    positives : array-like of int, shape (n_bins,), or list of such
        Number of events among the samples strictly inside each bin: samples whose
        scores *are* the bin boundaries are always excluded. A list has one entry for
        each binary problem of a one-vs-rest recalibrator.
    counts : array-like of int, shape (n_bins,), or list of such
        Number of samples strictly inside each bin.
    predictions : array-like of shape (n_bins,), or list of such
        Probability that the recalibrator predicts in each bin: ``positives / counts``,
        or, with `keep_boundary`, the mean that includes a boundary sample.
    n_samples : int
        Number of calibration samples, at least two per bin.
    confidence_level : float, default=0.9
        Probability with which the guarantee holds, in (0, 1).
    kind : {"conditional", "marginal"}, default="conditional"
        Whether the guarantee is for all bins simultaneously ("conditional") or for the
        bin of one random future sample ("marginal").
    keep_boundary : bool, default=False
        Whether `predictions` include the samples at the boundaries.
    n_candidates : int, default=1
        Number of candidates, fixed beforehand, from which this recalibrator was
        selected on the same samples.
    interval : {"clopper_pearson", "theorem"}, default="clopper_pearson"
        ``"theorem"`` uses `conditional_epsilon` or `marginal_epsilon`, which are known
        before any label is observed. ``"clopper_pearson"`` uses the tighter tolerance
        based on the observed labels, which never exceeds that of the theorem.

    Returns
    -------
    certificate : CalibrationCertificate
        The guarantee, for all problems and candidates together.

    Raises
    ------
    ValueError
        If there are fewer than two samples per bin, the counts are not those of the
        samples strictly inside the bins (because of weights or ties), or an argument is
        out of range.

    See Also
    --------
    skcalib.guarantees.independent_bins_certificate : The certificate for bins that do
        not depend on the samples.
    skcalib.UniformMassBinning : Bins with a certificate.

    Notes
    -----
    Given the order statistics that bound the bins, the samples strictly inside a bin
    are independent draws from the distribution restricted to it, and rows of different
    bins are independent (Lemmas 1 and 2 of [1]_). Their number is fixed, so the events
    in bin b are binomial with its event frequency, and an exact interval at level
    ``1 - a_b`` covers that frequency. The tolerance is the largest distance between a
    prediction and an end of its interval.

    * Conditional: ``a_b = (1 - confidence_level) / (m K B)``, and by the union bound
      all intervals hold, for all K problems and m candidates. The event frequency at a
      prediction shared by several bins is a mixture of the frequencies of these bins,
      and is therefore also within the tolerance.
    * Marginal: ``a_b = (1 - confidence_level) / (m K)``. The bin of a future sample
      depends on its score and the boundaries, not on the labels inside, so the interval
      of this bin holds at level ``1 - a_b``. The guarantee concerns the event frequency
      in the bin. Unless two bins predict the same value, this is the event frequency
      among all samples with the same prediction.

    Since Hoeffding's inequality bounds the same binomial tails, the distance from a
    prediction to a limit never exceeds that of the theorem.

    References
    ----------
    .. [1] Gupta, C. and Ramdas, A. (2021). Distribution-free calibration guarantees for
        histogram binning without sample splitting. ICML.

    Examples
    --------
    With 1999 samples and 4 bins, each boundary is the score of one sample, and 499
    samples lie inside each bin.

    >>> import numpy as np
    >>> from skcalib.guarantees import uniform_mass_certificate
    >>> positives, counts = np.array([5, 100, 380, 490]), np.array([499, 499, 499, 499])
    >>> bins = positives, counts, positives / counts
    >>> for interval in "theorem", "clopper_pearson":
    ...     certificate = uniform_mass_certificate(
    ...         *bins, n_samples=1999, interval=interval
    ...     )
    ...     print(certificate.interval, round(certificate.epsilon, 4))
    Theorem 3 0.0663
    Clopper-Pearson 0.0456
    """
    problems = _check_problems(positives, counts, predictions)
    for _, inside, _ in problems:
        check_rows_per_bin(n_samples, len(inside))
        # One row lies on each of the B - 1 boundaries between B bins.
        if inside.sum() != n_samples + 1 - len(inside):
            raise ValueError(
                f"counts must add up to {n_samples + 1 - len(inside)}, the rows of"
                f" n_samples={n_samples} strictly inside the {len(inside)} bins, found"
                f" {inside.sum():g}. Ties between scores must be broken at random"
                " first."
            )
    assumptions = (
        _ONE_MODEL,
        INDEPENDENT_ROWS,
        "The number of bins was fixed before the labels of these samples were used.",
        "No two scores are equal, or ties were broken at random.",
    )
    check_option(interval, "interval", ("clopper_pearson", "theorem"))
    return _certificate(
        problems,
        interval,
        n_samples,
        assumptions,
        kind=kind,
        confidence_level=confidence_level,
        n_candidates=n_candidates,
        keep_boundary=bool(keep_boundary),
    )


def independent_bins_certificate(
    positives: ArrayLike | Sequence[ArrayLike],
    counts: ArrayLike | Sequence[ArrayLike],
    predictions: ArrayLike | Sequence[ArrayLike],
    *,
    edges: Literal["split", "fixed"],
    confidence_level: float = 0.9,
    kind: Literal["conditional", "marginal"] = "conditional",
    n_candidates: int = 1,
    interval: Literal["clopper_pearson", "hoeffding"] = "clopper_pearson",
) -> CalibrationCertificate:
    """Return a certificate for bins that do not depend on the samples inside them.

    Parameters
    ----------
    positives : array-like of int, shape (n_bins,), or list of such
        Number of events in each bin, among the samples used to estimate the
        frequencies. A list has one entry for each binary problem of a one-vs-rest
        recalibrator.
    counts : array-like of int, shape (n_bins,), or list of such
        Number of samples in each bin.
    predictions : array-like of shape (n_bins,), or list of such
        Probability that the recalibrator predicts in each bin.
    edges : {"split", "fixed"}
        Source of the edges: other samples ("split") or no data at all ("fixed").
    confidence_level : float, default=0.9
        Probability with which the guarantee holds, in (0, 1).
    kind : {"conditional", "marginal"}, default="conditional"
        Whether the guarantee is for all bins simultaneously ("conditional") or for the
        bin of one random future sample ("marginal").
    n_candidates : int, default=1
        Number of candidates, fixed beforehand, from which this recalibrator was
        selected on the same samples.
    interval : {"clopper_pearson", "hoeffding"}, default="clopper_pearson"
        Interval for each bin. Hoeffding's interval depends only on the counts and is
        never narrower than the Clopper-Pearson interval.

    Returns
    -------
    certificate : CalibrationCertificate
        The guarantee, for all problems and candidates together.

    Raises
    ------
    ValueError
        If there are fewer than two samples per bin on average, the counts are not whole
        numbers (weights), or an argument is out of range.

    See Also
    --------
    sample_split_epsilon : The guarantee of a sample split, before any data are
        observed.

    Notes
    -----
    Given the scores, the counts are fixed, and the numbers of events in the bins are
    independent binomial variables. The other steps are as in
    `uniform_mass_certificate`. A bin without samples has the interval [0, 1], so that
    the tolerance is at least 0.5.

    References
    ----------
    Clopper and Pearson (1934), The use of confidence or fiducial limits illustrated in
    the case of the binomial. Hoeffding (1963), Probability inequalities for sums of
    bounded random variables.

    Examples
    --------
    >>> from skcalib.guarantees import independent_bins_certificate
    >>> certificate = independent_bins_certificate(
    ...     [10, 90], [100, 100], [0.1, 0.9], edges="split", kind="marginal"
    ... )
    >>> round(certificate.epsilon, 4), certificate.interval
    (0.0637, 'Clopper-Pearson')
    """
    problems = _check_problems(positives, counts, predictions)
    check_option(interval, "interval", ("clopper_pearson", "hoeffding"))
    _, first_counts, _ = problems[0]
    n_samples = int(first_counts.sum())
    for _, rows, _ in problems:
        if rows.sum() != n_samples:
            raise ValueError(
                f"counts must have the same sum for every class, found {rows.sum():g}"
                f" and {n_samples}."
            )
        check_rows_per_bin(n_samples, len(rows))
    check_option(edges, "edges", tuple(_EDGES))
    assumptions = (_ONE_MODEL, INDEPENDENT_ROWS, _EDGES[edges])
    return _certificate(
        problems,
        interval,
        n_samples,
        assumptions,
        kind=kind,
        confidence_level=confidence_level,
        n_candidates=n_candidates,
    )


_ONE_MODEL = (
    "The scores come from one model that was fitted to other samples; out-of-fold"
    " scores of several models do not qualify."
)
INDEPENDENT_ROWS = (
    "The calibration samples are independent draws from one distribution, and future"
    " samples come from the same distribution."
)
_EDGES = {
    "fixed": "The bin edges were fixed before these samples were seen.",
    "split": (
        "The bin edges come from samples other than those counted here, with a number"
        " of bins fixed beforehand."
    ),
}
# By kind, phrases of the sentence: what differs from an event frequency, of what the
# confidence is a share, and among which rows the frequency is meant.
_PROMISES = {
    "conditional": (
        "every predicted probability",
        "calibration samples",
        "among samples that receive it",
    ),
    "marginal": (
        "the probability predicted for a random future sample",
        "calibration and future samples together",
        "in its bin",
    ),
}
_INTERVALS = {"clopper_pearson": "Clopper-Pearson", "hoeffding": "Hoeffding"}
_THEOREMS = {
    ("conditional", False): "Theorem 3",
    ("conditional", True): "Corollary 1",
    ("marginal", False): "Theorem 4",
    ("marginal", True): "Theorem 4 with the boundary term of Corollary 1",
}


def _certificate(
    problems,
    interval,
    n_samples,
    assumptions,
    *,
    kind,
    confidence_level,
    n_candidates,
    keep_boundary=False,
):
    """Return the `CalibrationCertificate` of binary problems, triples (n_bins,) of
    numbers of events, of rows, and predictions. The error probability is divided by the
    number of problems and candidates (union bound). `interval` is that of a bin's
    frequency or, with one width for all bins, "theorem" (Gupta and Ramdas).
    """
    check_option(kind, "kind", tuple(_PROMISES))
    n_candidates = check_count(n_candidates, "n_candidates")
    # What the certificate calls its source.
    if interval == "theorem":
        name = _THEOREMS[kind, keep_boundary]
    else:
        name = _INTERVALS[interval]
    level = union_level(confidence_level, len(problems) * n_candidates)
    limits = []
    epsilons = []
    for problem in problems:
        if interval == "theorem":
            low, high, epsilon = _limits_by_theorem(
                problem, n_samples, level, kind, keep_boundary
            )
        else:
            low, high, epsilon = _limits_by_interval(problem, interval, level, kind)
        low.flags.writeable = False
        high.flags.writeable = False
        limits.append((low, high))
        epsilons.append(epsilon)
    # Arrays for one problem, tuples of arrays for several.
    if len(problems) == 1:
        ((low, high),) = limits
        n_bins = len(low)
    else:
        low, high = zip(*limits, strict=True)
        n_bins = tuple(map(len, low))
    return CalibrationCertificate(
        epsilon=max(epsilons),
        confidence_level=check_confidence_level(confidence_level),
        kind=kind,
        n_samples=int(n_samples),
        n_bins=n_bins,
        assumptions=(*assumptions, _selection(n_candidates)),
        low=low,
        high=high,
        interval=name,
        n_problems=len(problems),
        n_candidates=n_candidates,
    )


def _limits_by_theorem(problem, n_samples, level, kind, keep_boundary):
    """Return the lower and upper limits (n_bins,) of the event frequencies, and the
    tolerance, the same for all bins, which needs no labels. `problem` holds numbers of
    events, of rows, and predictions, (n_bins,) each.
    """
    _, rows, predicted = problem
    epsilon = uniform_mass_epsilon(n_samples, len(rows), level, kind, keep_boundary)
    low = np.clip(predicted - epsilon, 0.0, 1.0)
    high = np.clip(predicted + epsilon, 0.0, 1.0)
    return low, high, epsilon


def _limits_by_interval(problem, interval, level, kind):
    """Return the lower and upper limits (n_bins,) of the event frequencies, and the
    tolerance: the largest distance of a prediction from an end.
    """
    events, rows, predicted = problem
    low, high = event_frequency_interval(
        events,
        rows,
        confidence_level=level,
        simultaneous=kind == "conditional",
        interval=interval,
    )
    return low, high, float(np.maximum(predicted - low, high - predicted).max())


def _selection(n_candidates):
    """Return the assumption about a choice among recalibrators, as a sentence."""
    if n_candidates == 1:
        return (
            "This recalibrator was not selected from among several on these samples"
            " (otherwise, pass the number of candidates as n_candidates)."
        )
    return (
        "This recalibrator was selected on these samples from among at most"
        f" {n_candidates} candidates, all fixed beforehand; the guarantee allows for"
        " that selection."
    )


def _check_problems(positives, counts, predictions):
    """Return a list of validated ``(positives, counts, predictions)``, arrays (n_bins,)
    of each binary problem. The arguments are arrays for one problem, or lists of them.
    """
    columns = [positives, counts, predictions]
    # Numbers in place of arrays: a single problem, which becomes a list of one.
    if len(counts) and np.ndim(counts[0]) == 0:
        columns = [[column] for column in columns]
    problems = []
    for events, rows, predicted in zip(*columns, strict=True):
        events, rows = check_frequencies(events, rows)
        predicted = as_numbers(predicted, "predictions")
        if rows.ndim != 1 or predicted.shape != rows.shape:
            raise ValueError(
                "positives, counts and predictions need one entry per bin, found"
                f" shapes {events.shape}, {rows.shape} and {predicted.shape}."
            )
        if (events % 1).any() or (rows % 1).any():
            raise ValueError(
                "positives and counts must be whole numbers: the theory of"
                " certificates does not cover weights."
            )
        outside = ~((predicted >= 0.0) & (predicted <= 1.0))
        if outside.any():
            where = np.flatnonzero(outside)[0]
            raise ValueError(
                f"predictions must lie in [0, 1], found {predicted[where]} in bin"
                f" {where}."
            )
        problems.append((events, rows, predicted))
    if not problems:
        raise ValueError(
            "counts is empty: a certificate needs at least one binary problem."
        )
    return problems
