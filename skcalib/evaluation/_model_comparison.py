"""The table of a comparison of models: as sentences, as Markdown and as LaTeX."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from skcalib._inference.results import ResultTable
from skcalib._verdicts import (
    impossible_words,
    interval_words,
    level_words,
    pvalue_words,
    rounded,
)

# How LaTeX writes the characters that are special in it.
_LATEX = {
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "\\": r"\textbackslash{}",
    "~": r"\~{}",
    "^": r"\^{}",
}


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(ResultTable):
    """Table with one row per metric and model: its value and its difference from the
    reference. ``print`` describes the table in words.

    Parameters
    ----------
    model, metric : ndarray of shape (n_rows,)
        Names.
    estimate, low, high : ndarray of shape (n_rows,)
        The metric and its interval.
    difference, difference_low, difference_high : ndarray of shape (n_rows,)
        Value of the model minus that of the reference, with its interval; 0 for the
        reference.
    pvalue, adjusted_pvalue : ndarray of shape (n_rows,)
        Two-sided p-value of the hypothesis that the difference is 0, without and with
        adjustment over the models of a metric (Holm's method); 1 for the reference. NaN
        if the samples do not determine it.
    reason : ndarray of str, shape (n_rows,)
        The reason why limits of the metric or of the difference are NaN; an empty
        string if they are not.
    reference : str
        Name of the model with which the others are compared.
    confidence_level : float
        Coverage of each interval, in (0, 1).
    impossible : dict of ndarray of int
        By model, the positions of the samples that happened although their probability
        was 0, so that the log-loss is infinite. Empty if the log-loss is not compared.
    """

    _prints_table = False

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
    reason: np.ndarray
    reference: str
    confidence_level: float
    impossible: dict = field(default_factory=dict)

    def to_markdown(self):
        """Return a Markdown table, one row per model and one column per metric; the
        best value of a metric is in bold.

        Returns
        -------
        table : str
            A star marks an adjusted p-value of .05 or less for the difference from the
            reference.
        """

        def escaped(name):
            """Return a name with the column mark of Markdown escaped."""
            return name.replace("|", "\\|")

        head, *rows = self._table_texts("**{}**", escaped)
        n_metrics = len(head) - 1
        alignment = ["---", *["---:"] * n_metrics]
        lines = [head, alignment, *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def to_latex(self):
        """Return a LaTeX table (package booktabs), one row per model and one column per
        metric; the best value is in bold.

        Returns
        -------
        table : str
            A star marks an adjusted p-value of .05 or less for the difference from the
            reference.
        """

        def escaped(name):
            """Return a name with the special characters of LaTeX escaped."""
            return "".join(_LATEX.get(character, character) for character in name)

        head, *rows = self._table_texts(r"\textbf{{{}}}", escaped)
        header, *lines = [f"{' & '.join(line)} \\\\" for line in (head, *rows)]
        alignment = "l" + "r" * (len(head) - 1)
        return "\n".join(
            [
                f"\\begin{{tabular}}{{{alignment}}}",
                r"\toprule",
                header,
                r"\midrule",
                *lines,
                r"\bottomrule",
                r"\end{tabular}",
            ]
        )

    def _table_texts(self, bold, escaped):
        """Return the rows of a table, lists of texts: the header, then each model with
        its metrics.

        `bold` is a format for the best value of a metric, such as "**{}**"; `escaped`
        escapes special characters of a name.
        """
        models = list(dict.fromkeys(self.model.tolist()))
        metrics = list(dict.fromkeys(self.metric.tolist()))
        header = ["model", *map(escaped, metrics)]
        rows = {model: [escaped(model)] for model in models}
        # The lines of this result come metric by metric, with one for each model.
        for k, estimate in enumerate(self.estimate):
            text = rounded(estimate, 4)
            if not np.isnan(self.low[k]):
                text = interval_words(estimate, self.low[k], self.high[k])
            has_metric = self.metric == self.metric[k]
            if estimate == self.estimate[has_metric].min():
                text = bold.format(text)
            if self.adjusted_pvalue[k] <= 0.05:
                text += "*"
            rows[self.model[k]].append(text)
        return [header, *rows.values()]

    def _sentences(self):
        """Say for each metric and model whether it differs from the reference, or what
        it is for a single model.
        """
        sentences = []
        if set(self.model.tolist()) == {self.reference}:
            level = level_words(self.confidence_level)
            for metric, *interval in zip(
                self.metric, self.estimate, self.low, self.high, strict=True
            ):
                size = interval_words(*interval, level=level)
                sentences.append(f"The {metric} of '{self.reference}' is {size}.")
        for k, model in enumerate(self.model):
            if model != self.reference:
                sentences.append(self._sentence(k))
        for model, positions in self.impossible.items():
            if len(positions):
                sentences.append(f"'{model}': {impossible_words(len(positions))}")
        return "\n".join(sentences)

    def _sentence(self, k):
        """Return a sentence on whether the model of line k differs from the
        reference.
        """
        model = f"'{self.model[k]}'"
        reference = f"'{self.reference}'"
        metric = self.metric[k]
        difference = self.difference[k]
        low = self.difference_low[k]
        high = self.difference_high[k]
        pvalue = self.adjusted_pvalue[k]
        side = "lower" if difference < 0 else "higher"
        if np.isnan(low) and pvalue <= 0.05:
            return (
                f"{model} has a {side} {metric} than {reference}, adjusted"
                f" {pvalue_words(pvalue)}; by how much cannot be determined:"
                f" {self.reason[k]}."
            )
        if np.isnan(low):
            return (
                f"Whether {model} differs from {reference} in {metric} (difference"
                f" {rounded(difference)}) cannot be determined: {self.reason[k]}."
            )
        subject = model
        finding = f"does not differ detectably from {reference} in {metric}: difference"
        if pvalue <= 0.05 and low <= 0 <= high:
            # The test knows the law of few labels, which the interval approximates.
            finding = (
                f"differs from {reference} in {metric} according to the test, but not"
                " to the interval: difference"
            )
        elif pvalue <= 0.05:
            # Words say which is better, so that the size has no sign.
            subject = f"The {metric} of {model}"
            finding = f"is {side} than that of {reference} by"
            low, high = sorted((abs(low), abs(high)))
            difference = abs(difference)
        level = level_words(self.confidence_level)
        size = interval_words(difference, low, high, level=level)
        return f"{subject} {finding} {size}, adjusted {pvalue_words(pvalue)}."
