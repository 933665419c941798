"""Models side by side on the same rows: proper scores and calibration errors, with paired differences."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack
from scipy.special import ndtr, ndtri, stdtr, stdtrit
from sklearn.utils import check_random_state

from skcalib._cells.reductions import binary_tasks
from skcalib._errors.binned import BinnedPower, resolved_method
from skcalib._errors.power import ClassPowers
from skcalib._errors.proper_scores import LOSSES, brier_score, log_loss
from skcalib._inference.adjustment import holm
from skcalib._inference.bootstrap import basic_limits
from skcalib._inference.influence import cluster_codes, half_width, standard_error
from skcalib._inference.results import IntervalEstimate, ResultTable
from skcalib._input.labels import check_groups
from skcalib._input.scalars import check_confidence_level, check_int
from skcalib._input.scored_labels import check_scored_labels
from skcalib.metrics import calibration_error_interval
from skcalib.metrics._interval import unwrapped_metric
from skcalib.metrics._table import metric_of, scorers

_FEW = 1e-9  # pairs of different units in a bin, as a share of all, below which there are none
_LATEX = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\~{}",
    "^": r"\^{}",
}


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(ResultTable):
    """A row for each metric and model: its value, and its difference to the reference. Printing it gives sentences.

    Parameters
    ----------
    model, metric : ndarray of shape (n_rows,)
        Names.
    estimate, low, high : ndarray of shape (n_rows,)
        The metric and its interval.
    difference, difference_low, difference_high : ndarray of shape (n_rows,)
        Value of the model minus that of the reference, with its interval; 0 for the reference.
    pvalue, adjusted_pvalue : ndarray of shape (n_rows,)
        Two-sided p-value of "the difference is 0", and the same adjusted (Holm) over the models of a metric; 1 for the
        reference.
    reference : str
        Name of the model that the others are compared with.
    confidence_level : float
        Coverage of each interval, in (0, 1).
    """

    model: np.ndarray
    metric: np.ndarray
    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    difference: np.ndarray
    difference_low: np.ndarray
    difference_high: np.ndarray
    pvalue: np.ndarray
    adjusted_pvalue: np.ndarray
    reference: str
    confidence_level: float

    def to_markdown(self):
        """Return a Markdown table, one row per model and one column per metric; the best value of a metric is bold.

        Returns
        -------
        table : str
            A star marks an adjusted p-value of .05 or less for the difference to the reference.
        """
        head, *rows = self._cells("**{}**", lambda name: name.replace("|", "\\|"))
        lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def to_latex(self):
        """Return a LaTeX table (package booktabs), one row per model and one column per metric; the best value is bold.

        Returns
        -------
        table : str
            A star marks an adjusted p-value of .05 or less for the difference to the reference.
        """
        head, *rows = self._cells(
            r"\textbf{{{}}}",
            lambda name: "".join(_LATEX.get(mark, mark) for mark in name),
        )
        lines = [f"{' & '.join(line)} \\\\" for line in (head, *rows)]
        begin = f"\\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}"
        return "\n".join(
            [
                begin,
                r"\toprule",
                lines[0],
                r"\midrule",
                *lines[1:],
                r"\bottomrule",
                r"\end{tabular}",
            ]
        )

    def _cells(self, bold, name):
        """Return the texts of a table by model and metric."""
        models, metrics = (
            list(dict.fromkeys(getattr(self, axis).tolist()))
            for axis in ("model", "metric")
        )
        table = [["model", *map(name, metrics)], *([name(model)] for model in models)]
        numbers = self.estimate, self.low, self.high, self.adjusted_pvalue
        for k, (estimate, low, high, pvalue) in enumerate(zip(*numbers, strict=True)):
            text = f"{estimate:.4g} ({low:.4g} to {high:.4g})"
            best = self.estimate[self.metric == self.metric[k]].min()
            star = "*" if pvalue <= 0.05 else ""
            table[1 + k % len(models)].append(
                (bold.format(text) if estimate == best else text) + star
            )
        return table

    def __str__(self):
        level, said = f"{100 * self.confidence_level:g} %", []
        rows = zip(*self.columns().values(), strict=True)
        for model, metric, *_, difference, low, high, _, pvalue in rows:
            if model == self.reference:
                continue
            verdict = "lower" if difference < 0 else "higher"
            seen = (
                f"has a {verdict} {metric} than"
                if pvalue <= 0.05
                else f"is not seen to differ in {metric} from"
            )
            numbers = (
                f"{level} interval {low:.3g} to {high:.3g}, adjusted p = {pvalue:.2g}"
            )
            said.append(
                f"{model} {seen} {self.reference} (difference {difference:.3g}, {numbers})."
            )
        return " ".join(said)


def compare(
    y_true,
    models,
    *,
    metrics=("log_loss", "brier_score", "squared_calibration_error"),
    reference=None,
    confidence_level=0.9,
    n_resamples=999,
    sample_weight=None,
    clusters=None,
    pos_label=None,
    labels=None,
    random_state=None,
):
    """Compare models on the same rows: proper scores and calibration errors with paired differences.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    models : dict
        From names to probabilities of these rows, of shape (n,), (n, 2) or (n, K); two or more. A
        recalibrated model is one, with its probabilities for rows that the recalibrator was not fitted to.
    metrics : sequence of str and callable, default=("log_loss", "brier_score", "squared_calibration_error")
        Names (those of `get_scorer_names` without ``neg_``), metrics of this library, and functions ``metric(y_true,
        y_proba, sample_weight=...)``; a `functools.partial` sets options. Smaller is better.
    reference : str, default=None
        The model that the others are compared with; None is the first.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1).
    n_resamples : int, default=999
        Number of draws behind the interval of an error, and of resamples behind a function of your own.
    sample_weight : array-like of shape (n,), default=None
        Weights: integers count rows, others stand for more or fewer (`weight_type` "importance").
    clusters : array-like of shape (n,), default=None
        Rows that are not independent (of one patient or match) have the same entry.
    pos_label : int, float, bool or str, default=None
        The event; None is the greater of two labels, the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    comparison : ModelComparison
        A table with a row for each metric and model: `model, metric, estimate, low, high, difference, difference_low,
        difference_high, pvalue, adjusted_pvalue`. A difference is the model minus the reference. P-values are adjusted
        (Holm) over the models of a metric. `to_frame`, `to_markdown` and `to_latex` write it; `print` says it.

    Raises
    ------
    ValueError
        For fewer than two models, an unknown reference or metric, an error without an interval (the kernel error), and
        labels, probabilities or weights that do not fit together: the message names the model.

    See Also
    --------
    skcalib.displays.ComparisonDisplay : The differences as a picture.
    skcalib.monitoring.calibration_change : Other rows, before and after.

    Notes
    -----
    The proper scores are means over rows. The test of a difference is that of the mean of the rows' (or clusters')
    differences, with a Student quantile.

    The signed square, "squared_calibration_error", is a mean of r_i r_j over pairs of rows in a bin, r = y - s (of
    different clusters, with `clusters`). The variance of the difference is the jackknife's, less what the pairs alone
    contribute, which the jackknife counts twice. Where both models are calibrated the test still rejects less often
    than it may.

    Other errors of this library are compared by square-and-add of their two intervals, as if the models were
    independent: conservative, the more so the more alike the models are. The p-value belongs to the normal law behind
    the interval. Where an estimate lies above its own interval the difference is that of the intervals' ends. A
    function of your own gets a paired basic bootstrap.

    Level .05 of equally good models and power beside an unpaired test stand in the guide, "Do the promises hold?".

    References
    ----------
    Diebold and Mariano (1995), Comparing predictive accuracy. Arvesen (1969), Jackknifing U-statistics. Zou and Donner
    (2008), Construction of confidence limits about effect measures.

    Examples
    --------
    The second model is too sure by a factor of 2 in log-odds:

    >>> import numpy as np
    >>> from skcalib.evaluation import compare
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(1000)
    >>> y_true, sure = rng.random(1000) < s, s**2 / (s**2 + (1 - s) ** 2)
    >>> found = compare(y_true, {"calibrated": s, "sure": sure}, metrics="brier_score")
    >>> (
    ...     found.model.tolist(),
    ...     found.difference.round(3).tolist(),
    ...     bool(found.adjusted_pvalue[1] < 0.001),
    ... )
    (['calibrated', 'sure'], [0.0, 0.012], True)
    >>> print(found.to_markdown())
    | model | brier_score |
    | --- | ---: |
    | calibrated | **0.166 (0.1561 to 0.176)** |
    | sure | 0.1783 (0.164 to 0.1925)* |
    """
    level, given = (
        check_confidence_level(confidence_level),
        {"pos_label": pos_label, "labels": labels},
    )
    check_int(n_resamples, "n_resamples")
    given = {
        name: one
        for name, one in {"sample_weight": sample_weight, **given}.items()
        if one is not None
    }
    data, reference = _check_models(y_true, models, reference, given)
    cluster = (
        None
        if clusters is None
        else check_groups(clusters, len(data[reference].scores), name="clusters")[1]
    )
    weight = data[reference].sample_weight
    options = {
        "weight_type": "importance"
        if weight is not None and np.any(weight % 1)
        else "frequency"
    }
    options |= {
        "clusters": cluster,
        "confidence_level": level,
        "n_resamples": n_resamples,
    }
    options["random_state"] = check_random_state(random_state).randint(2**31)
    rows, table = _Rows(y_true, models, data, reference, given, options), []
    others = np.array([name != reference for name in models])
    for label, metric in _check_metrics(metrics).items():
        found = rows.compared(metric)
        adjusted = np.ones(len(models))
        adjusted[others] = holm(np.array([pvalue for *_, pvalue in found])[others])
        table += zip(
            models,
            [label] * len(models),
            *zip(*found, strict=True),
            adjusted,
            strict=True,
        )
    return ModelComparison(
        *map(np.array, zip(*table, strict=True)),
        reference=reference,
        confidence_level=level,
    )


def _check_models(y_true, models, reference, given):
    if (
        not isinstance(models, dict)
        or len(models) < 2
        or any(not isinstance(name, str) for name in models)
    ):
        raise ValueError(
            f"models must be a dict from names (str) to probabilities, two or more, found {models!r:.80}."
        )
    reference = next(iter(models)) if reference is None else reference
    if reference not in models:
        raise ValueError(
            f"reference must be one of the models {list(models)}, found {reference!r}."
        )
    data = {}
    for name, y_proba in models.items():
        try:
            data[name] = check_scored_labels(y_true, y_proba, drop=False, **given)
        except (TypeError, ValueError) as error:
            text = f"models[{name!r}]: {error}"
            raise (TypeError if isinstance(error, TypeError) else ValueError)(
                text
            ) from None
    return data, reference


def _check_metrics(metrics):
    """Return the metrics by the names that the table gives them."""
    known = {
        name.removeprefix("neg_"): partial(metric, **options)
        for name, (metric, options) in scorers().items()
    }
    found = {}
    for metric in (
        [metrics] if isinstance(metrics, str) or callable(metrics) else metrics
    ):
        if isinstance(metric, str):
            if metric not in known:
                raise ValueError(
                    f"metrics: there is no {metric!r}. The names are {', '.join(sorted(known))}."
                )
            name, metric = metric, known[metric]
        else:
            function, params = unwrapped_metric(metric, {})
            options = ", ".join(
                f"{option}={value!r}" for option, value in params.items()
            )
            name = getattr(
                function, "__name__", type(function).__name__
            ) + f"({options})" * bool(options)
        if name in found:
            raise ValueError(f"metrics holds {name!r} twice.")
        found[name] = metric
    if not found:
        raise ValueError("metrics is empty: name one, for example 'brier_score'.")
    return found


class _Rows(NamedTuple):
    """The rows of all models, and how they are compared: the arguments of metrics, and those of intervals."""

    y_true: object
    models: dict
    data: dict
    reference: str
    given: dict
    options: dict

    def compared(self, metric):
        """Return (estimate, low, high, difference, low, high, pvalue) of each model."""
        own, difference = self._method(metric)
        none = 0.0, 0.0, 0.0, 1.0
        return [
            (*own[name], *(none if name == self.reference else difference(name)))
            for name in self.models
        ]

    def _method(self, metric):
        """Return (estimate, low, high) by model, and what gives (difference, low, high, pvalue) of a model."""
        function, params = unwrapped_metric(metric, {})
        row, level = metric_of(function), self.options["confidence_level"]
        if function in (log_loss, brier_score):
            loss = LOSSES["log" if function is log_loss else "brier"]
            means = {name: self._losses(loss, data) for name, data in self.data.items()}
            widths = {
                name: half_width(influence, level, *units)
                for name, (_, influence, units, _) in means.items()
            }
            own = {
                name: (mean, mean - widths[name], mean + widths[name])
                for name, (mean, *_) in means.items()
            }
        elif row is None:
            return self._bootstrapped(partial(function, **params))
        else:
            given, error = (
                {"metric": metric, **self.given, **self.options},
                row.error(params),
            )
            own = {
                name: calibration_error_interval(self.y_true, s, **given)
                for name, s in self.models.items()
            }
            if not _is_mean_over_pairs(error):
                return own, lambda name: _with_pvalue(
                    *square_and_add(own[name], own[self.reference]), level
                )
            means = {name: self._pairs(error, data) for name, data in self.data.items()}
            own = {
                name: (means[name][0], *limits) for name, (_, *limits) in own.items()
            }
        return own, lambda name: _paired(means[name], means[self.reference], level)

    def _bootstrapped(self, metric):
        """Compare a function of labels and probabilities that is no error of the library by a basic bootstrap."""
        values = {
            name: partial(metric, self.y_true, y_proba, **self.given)
            for name, y_proba in self.models.items()
        }
        level, base = self.options["confidence_level"], values[self.reference]

        def interval(function):
            estimate, rng = (
                float(function()),
                check_random_state(self.options["random_state"]),
            )
            options = level, self.options["n_resamples"], rng
            limits = basic_limits(
                function,
                self.data[self.reference],
                estimate,
                *options,
                cluster=self.options["clusters"],
            )
            return IntervalEstimate(estimate, *limits)

        def difference(name):
            found = interval(lambda **weight: values[name](**weight) - base(**weight))
            return _with_pvalue(found, found.estimate, level)

        return {
            name: interval(function) for name, function in values.items()
        }, difference

    def _kept(self, data):
        """Return the rows of positive weight, and their clusters."""
        kept, cluster = data.kept, self.options["clusters"]
        return data.at(kept), None if cluster is None else cluster[kept]

    def _losses(self, loss, data):
        """Return the mean loss, what each row adds to it, weights and units, and None: it is no mean over pairs."""
        data, cluster = self._kept(data)
        losses = loss(data.scores, data.labels)
        mean = float(np.average(losses, weights=data.sample_weight))
        units = (
            data.sample_weight,
            cluster_codes(cluster, self.options["weight_type"], len(losses)),
        )
        return mean, losses - mean, units, None

    def _pairs(self, error, data):
        """Return the signed square as a mean over pairs of units in a bin, its influence by the jackknife, and sums."""
        data, unit = self._kept(data)
        if unit is None:
            if (
                data.sample_weight is not None
                and self.options["weight_type"] == "frequency"
            ):  # each copy is a unit
                data = data.at(
                    np.repeat(
                        np.arange(len(data.scores)), data.sample_weight.astype(np.intp)
                    )
                )
                data = data._replace(sample_weight=None)
            unit = np.arange(len(data.scores))
        names, unit = np.unique(unit, return_inverse=True)
        tasks = binary_tasks(data, error.multiclass, pooled=True)
        parts = [
            _mean_over_pairs(task, np.repeat(unit, task.n_columns), len(names), error)
            for task in tasks
        ]
        *values, sums = zip(*parts, strict=True)
        classes = ClassPowers.of(data, error)
        whole, influence = (
            classes.combine(np.stack(value, axis=-1)) for value in values
        )
        weights = [1.0] if classes.weight is None else np.sqrt(classes.weight)
        sums = hstack(
            [root * one for root, one in zip(weights, sums, strict=True)], format="csr"
        )
        return float(whole), influence, (None, np.arange(len(names))), sums


def square_and_add(one, other):
    """Return the interval of the difference of two independent estimates, and its centre.

    An estimate that lies above its own interval counts as the interval's end: there it has no label noise.
    """
    (estimate, low, high), (base, base_low, base_high) = one, other
    first, second = min(max(estimate, low), high), min(max(base, base_low), base_high)
    below, above = (
        np.hypot(first - low, base_high - second),
        np.hypot(high - first, second - base_low),
    )
    centre = first - second
    return IntervalEstimate(
        estimate - base, float(centre - below), float(centre + above)
    ), centre


def _with_pvalue(difference, centre, level):
    """Return a difference, its limits, and the p-value of the normal law behind the interval on the side of 0."""
    reach = centre - difference.low if centre > 0 else difference.high - centre
    z = abs(centre) / reach * ndtri((1 + level) / 2) if reach > 0 else np.inf
    return *difference, float(2 * ndtr(-z)) if centre else 1.0


def _paired(one, other, level):
    """Return the difference of two means with its limits and p-value, by what each unit of rows adds to it."""
    (estimate, influence, units, sums), (base, of_base, _, of_reference) = one, other
    difference, (error, freedom) = (
        estimate - base,
        standard_error(influence - of_base, *units),
    )
    if (
        sums is not None
    ):  # the jackknife counts the part of the variance that is of pairs twice
        of_pairs = _variance_of_pairs(sums, of_reference)
        error = np.sqrt(max(error**2 - of_pairs, of_pairs))
    width = stdtrit(freedom, (1 + level) / 2) * error
    pvalue = (
        2 * stdtr(freedom, -abs(difference) / error) if error > 0 else difference == 0
    )
    return difference, difference - width, difference + width, float(pvalue)


def _is_mean_over_pairs(error):
    """Return whether an error is the unbiased signed square."""
    if (
        error is None
        or error.power is not BinnedPower
        or error.groups is not None
        or not error.squared
    ):
        return False
    return resolved_method(error.params["method"], error.norm) == "unbiased"


def _mean_over_pairs(task, unit, n_units, error):
    """Return sum over bins of (share) x (mean of r_i r_j over pairs of rows of different units), r = y - s.

    Beside it stand the influences of the units, what the sum would change without one of them, times n_units - 1; and
    sums x (n_units, n_bins) of centred residuals whose products x_i x_j are the terms of the pairs.
    """
    strategy = error.params["binning"]
    edges = strategy._edges_of(*task.sorted_for(strategy))
    n_bins, weight = (
        len(edges) - 1,
        np.ones(len(unit)) if task.sample_weight is None else task.sample_weight,
    )
    code = np.searchsorted(edges[1:-1], task.scores)
    cells, index = np.unique(unit * n_bins + code, return_inverse=True)
    residual = task.labels - task.scores.astype(np.float64)
    mass, total = np.bincount(index, weight), np.bincount(index, weight * residual)
    moments = np.stack((mass, total, mass**2, total**2))
    unit, code = np.divmod(cells, n_bins)
    of_bins = np.stack([np.bincount(code, moment, n_bins) for moment in moments])
    terms = _terms(*of_bins)
    change = np.bincount(
        unit, terms[code] - _terms(*(of_bins[:, code] - moments)), n_units
    )
    without = (terms.sum() - change) / (weight.sum() - np.bincount(unit, mass, n_units))
    pairs, held = of_bins[0] ** 2 - of_bins[2], np.maximum(of_bins[0], 1e-300)
    scale = np.sqrt(
        np.divide(held, pairs, out=np.zeros(n_bins), where=pairs > _FEW * held**2)
        / weight.sum()
    )
    centred = scale[code] * (total - mass * (of_bins[1] / held)[code])
    sums = csr_array((centred, (unit, code)), (n_units, n_bins))
    return terms.sum() / weight.sum(), (n_units - 1) * (without.mean() - without), sums


def _variance_of_pairs(one, other):
    """Return 2 sum over i != j of (x_i x_j - z_i z_j)^2, the variance of a difference of means over pairs alone."""
    pairs = (one, one, 1), (other, other, 1), (one, other, -2)
    squares = sum(sign * (a.T @ b).power(2).sum() for a, b, sign in pairs)
    own = one.power(2).sum(axis=1) - other.power(2).sum(axis=1)
    return float(max(2 * (squares - own @ own), 0.0))


def _terms(mass, total, squared_mass, squares):
    """Return mass x (mean product of two different units of a bin), 0 where there is one unit only."""
    pairs = mass**2 - squared_mass
    some = pairs > _FEW * mass**2
    return np.where(some, mass * (total**2 - squares) / np.where(some, pairs, 1), 0)
