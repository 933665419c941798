"""Sums by bin of each of K classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from skcalib._input.labels import shown
from skcalib._verdicts import count_words

if TYPE_CHECKING:
    from pandas import DataFrame

    from skcalib._cells.statistics import BinStatistics


class ClassBinStatistics(Mapping):
    """Sums by bin of each class against the rest, as a mapping.

    ``BinStatistics.from_predictions(..., multiclass="marginal")`` returns it. Use ``+``
    to add the statistics of other samples. `calibration_by_group` accepts it like a
    dict, and every metric accepts the `BinStatistics` of one class.

    Parameters
    ----------
    statistics : mapping
        Maps the label of each class to its `BinStatistics`, in the order of the
        columns.

    See Also
    --------
    BinStatistics : The sums of one binary problem.
    calibration_by_group : Bias and error for each class, with intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import BinStatistics, expected_calibration_error
    >>> y_proba = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    >>> options = {"edges": [0, 0.5, 1], "multiclass": "marginal"}
    >>> batch = BinStatistics.from_predictions([0, 1, 2], y_proba, **options)
    >>> both = batch + BinStatistics.from_predictions([0, 2, 2], y_proba, **options)
    >>> {
    ...     label: round(expected_calibration_error(one), 3)
    ...     for label, one in both.items()
    ... }
    {0: 0.233, 1: 0.267, 2: 0.3}
    """

    def __init__(self, statistics: Mapping):
        self._by_class = dict(statistics)

    def __getitem__(self, label) -> BinStatistics:
        return self._by_class[label]

    def __iter__(self) -> Iterator:
        return iter(self._by_class)

    def __len__(self):
        return len(self._by_class)

    def __repr__(self):
        n_rows = 0
        if self:
            of_first_class = next(iter(self.values()))
            n_rows = sum(of_first_class.count)  # each class has all rows
        return f"{count_words(n_rows)} samples, binned for each of {len(self)} classes."

    def merge(self, other: ClassBinStatistics) -> ClassBinStatistics:
        """Return the statistics of both sets of samples; classes and edges must agree.

        Parameters
        ----------
        other : ClassBinStatistics
            Statistics of other samples.

        Returns
        -------
        merged : ClassBinStatistics
            Sums over both sets of samples.

        Raises
        ------
        ValueError
            If classes or edges differ.
        """
        if list(self) != list(other):
            raise ValueError(
                f"The classes differ: {shown(list(self))} and {shown(list(other))}."
                " Pass the same labels= for every batch."
            )
        merged = {}
        for label, statistics in self.items():
            merged[label] = statistics.merge(other[label])
        return ClassBinStatistics(merged)

    def __add__(self, other):
        if not isinstance(other, ClassBinStatistics):
            return NotImplemented
        return self.merge(other)

    def __radd__(self, other):
        # `sum` begins with 0 + batch
        if isinstance(other, int) and other == 0:
            return self
        return NotImplemented

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each bin of each class.

        Returns
        -------
        frame : pandas.DataFrame
            The column `class`, followed by the columns of ``BinStatistics.to_frame()``.
        """
        import pandas as pd

        frames = []
        for label, statistics in self.items():
            frame = statistics.to_frame()
            frame.insert(0, "class", label)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)
