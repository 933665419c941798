"""Tables of `calibration_by_group`: the bias and the error of each group, and the
differences between groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from skcalib._inference.adjustment import holm
from skcalib._inference.results import ResultTable
from skcalib._verdicts import (
    Verdict,
    interval_words,
    level_words,
    pvalue_words,
    rounded,
    rounded_outwards,
)

if TYPE_CHECKING:
    from pandas import DataFrame

_LEVEL = 0.05  # below which the sentence on pairs says that two groups differ


@dataclass(frozen=True, eq=False, repr=False)
class GroupCalibration(ResultTable):
    """Table of `calibration_by_group`: arrays with one entry per group.

    Parameters
    ----------
    group : ndarray
        The groups.
    n : ndarray
        Number of samples; with frequency weights, the sum of the weights, and with
        importance weights, the effective sample size.
    mean_score, event_frequency : ndarray of float
        Means of the scores and of the labels.
    bias, bias_low, bias_high : ndarray of float
        Mean score minus event frequency, and its confidence interval; positive if the
        scores are too high.
    error, error_low, error_high : ndarray of float
        Calibration error and its confidence interval; NaN if a group is too small for a
        debiased error.
    pvalue, adjusted_pvalue : ndarray of float
        P-value of the hypothesis that the group is calibrated, computed from its number
        of events, without and with adjustment for the number of groups.
    bias_pvalue, adjusted_bias_pvalue : ndarray of float
        P-value of the hypothesis that the bias of the group is 0, regardless of its
        slope, without and with adjustment (Holm's method).
    binomial_pvalue, jeffreys_pvalue : ndarray of float
        P-values for k events among n independent rows that all have the mean score, as
        reported in validations of rating grades: ``P(X >= k)`` of the binomial
        distribution and ``P(Beta(k + 1/2, n - k + 1/2) <= score)`` for
        ``alternative="greater"``.
    reason : ndarray of str
        The reason why the bias of the group has no limits; an empty string if it has
        limits.
    """

    group: np.ndarray
    n: np.ndarray
    mean_score: np.ndarray
    event_frequency: np.ndarray
    bias: np.ndarray
    bias_low: np.ndarray
    bias_high: np.ndarray
    error: np.ndarray
    error_low: np.ndarray
    error_high: np.ndarray
    pvalue: np.ndarray
    adjusted_pvalue: np.ndarray
    bias_pvalue: np.ndarray
    adjusted_bias_pvalue: np.ndarray
    binomial_pvalue: np.ndarray
    jeffreys_pvalue: np.ndarray
    reason: np.ndarray
    alternative: str = "two-sided"
    confidence_level: float = 0.9
    # limits (2, n_groups) of the biases that hold for all groups together
    _limits_of_all: np.ndarray | None = None

    def _printed_columns(self):
        """Return the columns (a dict) without those that would make lines too long."""
        columns = self.columns()
        for name in ("pvalue", "bias_pvalue", "binomial_pvalue", "jeffreys_pvalue"):
            del columns[name]
        if not any(self.reason):
            del columns["reason"]
        return columns

    def _sentences(self):
        """Say how many groups are off, and which one is worst."""
        n = len(self)
        rejected = np.flatnonzero(self.adjusted_pvalue < 1 - self.confidence_level)
        n_unknown = np.count_nonzero(np.isnan(self.adjusted_pvalue))
        unknown = ""
        if n_unknown:
            unknown = f" {n_unknown} cannot be judged."
        if len(rejected) == 0:
            return f"{self._none_off()}{unknown}"
        verb = "is" if len(rejected) == 1 else "are"
        lead = f"{len(rejected)} of {n} groups {verb} off"
        low, high = self._limits_of_all[:, rejected]
        # Each bias is at least so large; 0 where the limits contain 0.
        least = np.maximum(low, -high)
        if np.nanmax(least, initial=0) > 0:
            worst = rejected[np.nanargmax(least)]
            return f"{lead}; worst: {self._bias_words(worst)}.{unknown}"
        clearest = rejected[np.argmin(self.adjusted_pvalue[rejected])]
        shown = pvalue_words(self.adjusted_pvalue[clearest])
        return (
            f"{lead}; clearest: {self.group[clearest]} (adjusted {shown}), although"
            f" none of them is detectably off on average.{unknown}"
        )

    def _level_words(self, of=""):
        """Return what names the limits that hold for all groups together; `of` follows
        the percentage.
        """
        level = f"{level_words(self.confidence_level)}{of}"
        return level if len(self) == 1 else f"{level} for all groups together"

    def _bias_words(self, k):
        """Return the bias of group k with the limits that hold for all groups."""
        low, high = self._limits_of_all[:, k]
        level = self._level_words()
        if self.alternative == "two-sided":
            judged = Verdict("off", self.bias[k], low, high, self.n[k], tolerance=0.0)
            size = judged.words(scale=100, unit="percentage points", level=level)
        else:
            # A one-sided test has one limit; the other is the largest possible bias.
            side = "high" if low > 0 else "low"
            least = 100 * max(low, -high)
            size = (
                f"{rounded(100 * abs(self.bias[k]))} percentage points too {side}"
                f" ({level}: at least {rounded(least)})"
            )
        return f"{self.group[k]}, {size}"

    def _none_off(self):
        """Return the sentence for a table in which no group is rejected."""
        n = len(self)
        lead = f"None of the {n} groups is detectably off on average"
        if n == 1:
            lead = f"The group {self.group[0]} is not detectably off on average"
        limits = np.abs(self._limits_of_all)
        if self.alternative != "two-sided" or np.all(np.isnan(limits)):
            return f"{lead}."
        most = rounded_outwards(100 * np.nanmax(limits))
        return (
            f"{lead}, but a bias of up to {most} percentage points is possible"
            f" ({self._level_words(' confidence')})."
        )

    def differences(self) -> GroupDifferences:
        """Compare the bias of each pair of groups.

        Returns
        -------
        table : GroupDifferences
            One row for each pair: `group, other, difference, low, high, pvalue,
            adjusted_pvalue`. The difference is the bias of the first group minus that
            of the second.

        Raises
        ------
        ValueError
            If the `alternative` of the table is not "two-sided", because the limits are
            then one-sided.

        Notes
        -----
        The limits of both biases are combined by MOVER [1]_: the distance from the
        difference to each of its limits is the square root of the sum of the two
        squared distances from which it is formed. The interval excludes 0 exactly when
        ``pvalue < 1 - confidence_level``. The p-values are adjusted over all pairs by
        Holm's method. Groups are assumed to be independent, which does not hold if a
        cluster has rows in several groups.

        References
        ----------
        .. [1] Zou and Donner (2008), Construction of confidence limits about effect
           measures: a general approach.
        """
        if self.alternative != "two-sided":
            raise ValueError(
                f"This table has alternative={self.alternative!r}, and one-sided"
                ' limits. To compare groups, create it with "two-sided".'
            )
        # The positions of both groups of each pair.
        first, second = np.triu_indices(len(self), 1)
        difference = self.bias[first] - self.bias[second]
        # Distances from each bias to its limits, and from each difference to its own:
        # the difference is lowest if the first bias is low and the second one high.
        below = self.bias - self.bias_low
        above = self.bias_high - self.bias
        lower = np.hypot(below[first], above[second])
        upper = np.hypot(above[first], below[second])
        # The p-value is that of a normal estimate whose interval reaches as far
        # towards 0.
        z = ndtri((1 + self.confidence_level) / 2)
        toward_zero = np.where(difference > 0, lower, upper)
        with np.errstate(divide="ignore", invalid="ignore"):
            pvalue = 2 * ndtr(-z * np.abs(difference) / toward_zero)
        # Two groups without any spread differ for certain (p = 0), or not at all.
        is_certain = toward_zero == 0
        pvalue[is_certain] = difference[is_certain] == 0
        adjusted = np.full(len(pvalue), np.nan)
        is_known = ~np.isnan(pvalue)
        adjusted[is_known] = holm(pvalue[is_known])
        return GroupDifferences(
            group=self.group[first],
            other=self.group[second],
            difference=difference,
            low=difference - lower,
            high=difference + upper,
            pvalue=pvalue,
            adjusted_pvalue=adjusted,
            confidence_level=self.confidence_level,
        )


@dataclass(frozen=True, eq=False, repr=False)
class GroupDifferences(ResultTable):
    """Table of ``GroupCalibration.differences``: arrays with one entry per pair.

    Parameters
    ----------
    group, other : ndarray
        The two groups.
    difference, low, high : ndarray of float
        Bias of `group` minus that of `other`, and its confidence interval.
    pvalue, adjusted_pvalue : ndarray of float
        P-value of the hypothesis that both groups have the same bias, without and with
        adjustment for the number of pairs by Holm's method. NaN where a bias has no
        limits.
    """

    group: np.ndarray
    other: np.ndarray
    difference: np.ndarray
    low: np.ndarray
    high: np.ndarray
    pvalue: np.ndarray
    adjusted_pvalue: np.ndarray
    confidence_level: float = 0.9

    def _sentences(self):
        """Say which pair differs most clearly."""
        n = len(self)
        if n == 0:
            return "There is only one group: nothing to compare."
        known = np.flatnonzero(~np.isnan(self.adjusted_pvalue))
        if len(known) == 0:
            return "No pair of groups can be compared."
        k = known[np.argmin(self.pvalue[known])]
        shown = pvalue_words(self.adjusted_pvalue[k])
        pair = f"{self.group[k]} and {self.other[k]}"
        size = interval_words(
            self.difference[k],
            self.low[k],
            self.high[k],
            scale=100,
            unit="points",
            level=level_words(self.confidence_level),
        )
        if self.adjusted_pvalue[k] < _LEVEL:
            return (
                f"The biases of {pair} differ by {size}, the clearest of {n} pairs"
                f" (adjusted {shown})."
            )
        return (
            f"No difference between groups is detectable; clearest of {n} pairs:"
            f" {pair}, {size} (adjusted {shown})."
        )


class GroupCalibrationByModel(dict):
    """Dict that maps model names to tables and can be converted to a single table."""

    def __str__(self):
        """Return what the table of each model says."""
        return "\n".join(
            f"{name}: {table._sentences()}" for name, table in self.items()
        )

    def __repr__(self):
        return str(self)

    def to_frame(self) -> DataFrame:
        """Return the tables, concatenated by row.

        Returns
        -------
        frame : pandas.DataFrame
            The column `model` and the columns of `GroupCalibration`.
        """
        import pandas as pd

        frames = []
        for name, table in self.items():
            frame = table.to_frame()
            frame.insert(0, "model", name)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def _repr_html_(self):
        """Return the tables as HTML for a notebook, each below its model's name."""
        html = ""
        for name, table in self.items():
            html += f"<p>{escape(str(name))}</p>{table._repr_html_()}"
        return html
