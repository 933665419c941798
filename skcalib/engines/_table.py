"""A table of predictions: labels, scores, weights and groups, wherever they live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from sklearn.base import BaseEstimator, clone

from skcalib._input.scalars import check_int
from skcalib.binning import BaseBinning
from skcalib.engines._apply import with_forecasts
from skcalib.engines._columns import binary_columns, marginal_columns, top_label_columns
from skcalib.engines._fit import GroupedTable, fitted
from skcalib.engines._native import hidden_nan
from skcalib.engines._statistics import binned, check_strategy
from skcalib.engines._weighted import exact_cumulative_error, pooled
from skcalib.metrics import (
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
)
from skcalib.recalibrators import GroupwiseRecalibrator

_LEAST_BITS, _MOST_BITS = 8, 24


@contextmanager
def clear_errors():
    """Turn errors of DuckDB, raised within the block, whose cause the user can remove
    into a ValueError that says how; let all others pass.
    """
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("duckdb", "_duckdb")):
            raise
        kind = type(error).__name__
        text = str(error)
        if "CSV" in text:
            # What is wrong, without the advice and the settings that follow.
            wrong = text.split("Error: ", 1)[-1]
            wrong = wrong.split("Possible ")[0].split("Column ")[0]
            shown = " ".join(wrong.split())
            raise ValueError(f"The file cannot be read: {shown}") from error
        if kind == "ConversionException" and "nan" in text.lower():
            raise hidden_nan() from error
        if "expression depth" in text.lower():
            raise ValueError(
                "DuckDB's max_expression_depth is too low for the expressions of"
                " calibration: SET max_expression_depth = 1000, which is its default."
            ) from error
        raise


class PredictionTable:
    """Predictions of one event with their labels, in any table that Narwhals supports.

    Lazy tables (DuckDB, Polars, Dask, Ibis, Spark) are not loaded into memory: only
    sums are retrieved.

    Parameters
    ----------
    data : native table
        DuckDB relation (see `scan`), Polars frame, pandas frame, pyarrow table, Dask,
        Ibis or Spark frame.
    label : str
        Column of the labels.
    score : str
        Column of the probabilities of the event, in [0, 1].
    weight : str, default=None
        Column of frequency weights: a row with weight 2 counts twice.
    by : str or list of str, default=None
        Columns of groups: results are then dicts with one entry per group. NULL is
        a separate group, with the key None; several columns give tuples.
    pos_label : object, default=None
        The label of the event. With None, the labels must be 0 and 1, or booleans.
    neg_label : object, default=None
        The label of the non-events, if there are more than two labels: rows with other
        labels are left out, and `invalid_rows` counts them. With None, more than two
        labels are an error.
    on_invalid : {"raise", "drop"}, default="raise"
        What to do with rows that lack a score, a label or a weight: "drop" omits them.
        Rows with values that are not valid, such as a score of 1.2, are an error under
        both; see `invalid_rows`.

    Raises
    ------
    TypeError
        If `data` is not a table that Narwhals supports.
    ValueError
        If a column does not exist or has the wrong type.

    See Also
    --------
    skcalib.engines.scan : Open Parquet and CSV files as a lazy table.
    skcalib.metrics.BinStatistics : The sums per bin.
    skcalib.export.to_sql : Write a recalibrator as an SQL expression.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skcalib.binning import EqualMass
    >>> from skcalib.engines import PredictionTable
    >>> from skcalib.metrics import calibration_error
    >>> log = pd.DataFrame({"p": [0.2, 0.4, 0.8, 0.9], "clicked": [0, 1, 1, 1]})
    >>> table = PredictionTable(log, label="clicked", score="p")
    >>> statistics = table.bin_statistics(EqualMass(2))
    >>> statistics.mean_score.round(3).tolist(), statistics.event_frequency.tolist()
    ([0.3, 0.85], [0.5, 1.0])
    """

    def __init__(
        self,
        data: Any,
        *,
        label: str,
        score: str,
        weight: str | None = None,
        by: str | Sequence[str] | None = None,
        pos_label: Any = None,
        neg_label: Any = None,
        on_invalid: Literal["raise", "drop"] = "raise",
    ):
        # Whether segments are the values of one column, which are then keys of results
        # themselves, in place of tuples.
        self._by_is_one_name = isinstance(by, str)
        # The user's arguments by name, for the text of the table.
        self._arguments = {
            "label": label,
            "score": score,
            "weight": weight,
            "by": by,
        }
        self._columns = binary_columns(
            data,
            label=label,
            score=score,
            weight=weight,
            by=by,
            pos_label=pos_label,
            neg_label=neg_label,
            on_invalid=on_invalid,
        )

    @classmethod
    def top_label(
        cls,
        data: Any,
        *,
        label: str,
        scores: Sequence[str],
        classes: Sequence,
        weight: str | None = None,
        by: str | Sequence[str] | None = None,
        on_invalid: Literal["raise", "drop"] = "raise",
    ) -> PredictionTable:
        """Return a table for the event that the predicted class is correct.

        Parameters
        ----------
        data : native table
            As for `PredictionTable`.
        label : str
            Column of the labels.
        scores : list of str
            Columns of the probabilities, one per class. Rows whose probabilities do not
            sum to 1 are invalid.
        classes : list
            The label that belongs to each column.
        weight, by, on_invalid : object
            As for `PredictionTable`.

        Returns
        -------
        table : PredictionTable
            The score is the largest probability of a row; the event is that the class
            with this probability (the first such class in case of ties) is the label.

        Raises
        ------
        ValueError
            If columns are missing or have the wrong type, or if `classes`
            does not have one entry per column.

        Examples
        --------
        >>> import pandas as pd
        >>> from skcalib.engines import PredictionTable
        >>> log = pd.DataFrame(
        ...     {
        ...         "cat": [0.7, 0.2],
        ...         "dog": [0.2, 0.2],
        ...         "fish": [0.1, 0.6],
        ...         "is": ["cat", "dog"],
        ...     }
        ... )
        >>> names = ["cat", "dog", "fish"]
        >>> table = PredictionTable.top_label(
        ...     log, label="is", scores=names, classes=names
        ... )
        >>> statistics = table.bin_statistics(1)
        >>> statistics.mean_score.round(3).tolist(), statistics.event_frequency.tolist()
        ([0.65], [0.5])
        """
        columns = top_label_columns(
            data,
            label=label,
            scores=scores,
            classes=classes,
            weight=weight,
            by=by,
            on_invalid=on_invalid,
        )
        arguments = {"label": label, "scores": scores, "weight": weight, "by": by}
        return cls._from_columns(columns, by, arguments)

    @classmethod
    def marginal(
        cls,
        data: Any,
        *,
        label: str,
        scores: Sequence[str],
        classes: Sequence,
        weight: str | None = None,
        by: str | Sequence[str] | None = None,
        on_invalid: Literal["raise", "drop"] = "raise",
    ) -> dict[Any, PredictionTable]:
        """Return one table for each class against the rest.

        Parameters
        ----------
        data : native table
            As for `PredictionTable`.
        label : str
            Column of the labels.
        scores : list of str
            Columns of the scores, one per class, each in [0, 1]. The scores of a row
            need not sum to 1.
        classes : list
            The label that belongs to each column.
        weight, by, on_invalid : object
            As for `PredictionTable`.

        Returns
        -------
        tables : dict of PredictionTable
            One table per class, in the order of `classes`.

        Raises
        ------
        ValueError
            If columns are missing or have the wrong type, or if `classes`
            does not have one entry per column.
        """
        columns = marginal_columns(
            data,
            label=label,
            scores=scores,
            classes=classes,
            weight=weight,
            by=by,
            on_invalid=on_invalid,
        )
        tables = {}
        for score, value in zip(scores, columns, strict=True):
            arguments = {
                "label": label,
                "score": score,
                "pos_label": value,
                "weight": weight,
                "by": by,
            }
            tables[value] = cls._from_columns(columns[value], by, arguments)
        return tables

    @classmethod
    def _from_columns(cls, columns, by, arguments):
        """Return a `PredictionTable` of `PredictionColumns`; `by` is the user's
        argument, `arguments` those that the text of the table shows.
        """
        table = object.__new__(cls)
        table._columns = columns
        table._by_is_one_name = isinstance(by, str)
        table._arguments = arguments
        return table

    def __repr__(self):
        """Return the engine of the table and the arguments that were given."""
        arguments = [f"{self._columns.frame.implementation}"]
        for name, value in self._arguments.items():
            if value is not None:
                arguments.append(f"{name}={value!r}")
        return f"PredictionTable({', '.join(arguments)})"

    @clear_errors()
    def invalid_rows(self) -> dict[str, int]:
        """Return the number of invalid rows by reason. A row is counted once, for the
        first reason that applies.

        Returns
        -------
        counts : dict of int
            Number of rows for each reason: `missing` (NULL or NaN in score, label or
            weight), `score` (outside [0, 1]), `label` (neither event nor non-event) and
            `weight` (negative or infinite).

        Raises
        ------
        ValueError
            If there are more than two labels, or labels that differ only in case or
            blanks, and no `neg_label`.
        """
        return self._columns.invalid_rows()

    @clear_errors()
    def bin_statistics(self, binning: BaseBinning | int | None = None) -> Any:
        """Return the sums over bins, from which every binned metric can be computed.

        Parameters
        ----------
        binning : EqualWidth, EqualMass, FixedEdges, UniqueScores, int or None, default=None
            Binning strategy; an int is the number of equal-mass bins, and None means
            ``EqualMass(15)``.

        Returns
        -------
        statistics : BinStatistics or dict of BinStatistics
            Edges and counts are exact; sums are exact up to rounding.

        Raises
        ------
        ValueError
            If the strategy is not supported, there are more than a million distinct
            scores with `UniqueScores`, rows are invalid, or the table has no valid row
            (with `by`, the dict is then empty).
        """  # noqa: E501
        return self._by_key(binned(self._columns, check_strategy(binning)))

    @clear_errors()
    def weighted_scores(self, bits: int = 20) -> Any:
        """Return the table as a small number of weighted rows, for metrics and plots
        that accept `sample_weight`.

        All rows of a cell are assigned the mean score of the cell. The width of a cell
        is at most 2^(8 - bits) relative to s or, above 1/2, relative to 1 - s, so that
        scores near 0 and 1 keep their log-odds. The sums of weights, events and scores
        are preserved.

        Parameters
        ----------
        bits : int, default=20
            Binary logarithm of the approximate number of cells per group, from 8 to
            24.

        Returns
        -------
        rows : WeightedScores or dict of WeightedScores
            Named tuples of arrays (n,) with at most two rows per cell: `y_true` (1 for
            events and 0 otherwise), the scores `y_proba` in [0, 1], and `sample_weight`
            (numbers of rows or sums of weights). Metrics and fits accept them in this
            order.

        Raises
        ------
        ValueError
            If `bits` is out of range, rows are invalid, or the table has no valid row.
        """
        check_int(bits, "bits", minimum=_LEAST_BITS, maximum=_MOST_BITS)
        return self._by_key(pooled(self._columns, bits))

    @clear_errors()
    def kuiper(self) -> Any:
        """Return the exact Kuiper calibration error of all rows; see
        `skcalib.metrics.kuiper_calibration_error`.

        Returns
        -------
        error : float or dict of float
            Error in [0, 1].

        Raises
        ------
        ValueError
            If rows are invalid, or the table has no valid row.
        """
        metric = kuiper_calibration_error
        return self._by_key(
            exact_cumulative_error(self._columns, metric, two_sided=True)
        )

    @clear_errors()
    def kolmogorov_smirnov(self) -> Any:
        """Return the exact Kolmogorov-Smirnov calibration error of all rows.

        Returns
        -------
        error : float or dict of float
            Error in [0, 1]; see `skcalib.metrics.kolmogorov_smirnov_calibration_error`.

        Raises
        ------
        ValueError
            If rows are invalid, or the table has no valid row.
        """
        metric = kolmogorov_smirnov_calibration_error
        return self._by_key(
            exact_cumulative_error(self._columns, metric, two_sided=False)
        )

    @clear_errors()
    def fit(self, recalibrator: BaseEstimator) -> Any:
        """Return a recalibrator fitted to the table.

        For isotonic calibration and histogram binning, the result equals that of a fit
        to all rows, up to rounding. Parametric methods are fitted to two scores per
        cell and label, which have the mean and the variance of the corresponding rows.
        Their probabilities differ from those of a fit to all rows by less than 1e-9,
        and the fit takes little memory even for many groups.

        Parameters
        ----------
        recalibrator : IsotonicCalibration, HistogramBinning or a parametric recalibrator
            An unfitted recalibrator, which is not changed. A `GroupwiseRecalibrator`
            around one of these is fitted to the groups of `by`, and its pooled map to
            all rows.

        Returns
        -------
        fitted : object or dict of objects
            A fitted clone; with `by`, a dict that maps groups to such clones, or a
            single `GroupwiseRecalibrator`. `apply` accepts either.

        Raises
        ------
        ValueError
            If `fit` does not support the recalibrator, if ``input="logit"``, if rows
            are invalid, or if the table has no valid row.
        """  # noqa: E501
        if type(recalibrator) is GroupwiseRecalibrator:
            return clone(recalibrator)._fit_table(GroupedTable(self._columns))
        return self._by_key(fitted(self._columns, recalibrator))

    @clear_errors()
    def apply(
        self,
        recalibrator: BaseEstimator | Mapping,
        *,
        output: str,
        default: BaseEstimator | None = None,
    ) -> Any:
        """Return the table with a recalibrator's predictions as an additional column.

        Lazy tables stay lazy. Databases and Spark receive the map as SQL, which agrees
        with `predict_proba` to within 1e-12. For Polars, Dask and tables in memory,
        `predict_proba` is called for each part. For maps by group, the distinct
        values of `by` are queried immediately.

        Parameters
        ----------
        recalibrator : recalibrator or dict
            A recalibrator fitted to probabilities, for two classes. A dict, as returned
            by `fit`, contains one for each group. A `GroupwiseRecalibrator` takes the
            groups from `by`; other groups, and NULL, use its pooled map.
        output : str
            Name of the new column. It is NULL if the score is missing or outside [0,
            1].
        default : recalibrator, default=None
            With a dict, the map for groups that are not in it. With None, their
            predictions are NULL.

        Returns
        -------
        table : native table
            Of the same kind as `data`, with all its rows and columns. The order of rows
            is not guaranteed.

        Raises
        ------
        ValueError
            If the table requires SQL and the recalibrator cannot be written in SQL, if
            it does not have two classes, if `output` is already a column, or if the key
            of a group cannot be a value of its column.

        Examples
        --------
        >>> import pandas as pd
        >>> from skcalib import HistogramBinning
        >>> from skcalib.engines import PredictionTable
        >>> log = pd.DataFrame({"p": [0.2, 0.4, 0.8, 0.9], "clicked": [0, 1, 1, 1]})
        >>> table = PredictionTable(log, label="clicked", score="p")
        >>> table.apply(table.fit(HistogramBinning(2)), output="calibrated")[
        ...     "calibrated"
        ... ].tolist()
        [0.5, 0.5, 1.0, 1.0]
        """
        if isinstance(recalibrator, dict) and self._by_is_one_name:
            # Inside, the key of a segment is always a tuple.
            recalibrator = {(key,): model for key, model in recalibrator.items()}
        return with_forecasts(self._columns, recalibrator, output, default)

    def _by_key(self, results):
        """Return what the user gets for results by segment, whose keys are tuples:
        without segments the only result, and a dict by value if `by` was given as one
        name.
        """
        if not self._columns.by:
            if not results:
                raise ValueError("The table has no valid row: see invalid_rows().")
            return results[()]
        if self._by_is_one_name:
            return {key: result for (key,), result in results.items()}
        return results
