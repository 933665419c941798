"""Tests of nested sets of accepted rows: a binomial for rows, bets for clusters."""

from math import ceil
from typing import NamedTuple

import numpy as np

from skcalib._input.labels import check_groups
from skcalib.decisions._cluster_bets import Clusters, bet_pvalue, log_wealths
from skcalib.decisions._search import AcceptedSets, binomial_pvalue, rows_needed


class DecidedRows(NamedTuple):
    """Samples to which a threshold is applied.

    Attributes
    ----------
    scores : ndarray of shape (n,)
        Scores that are compared with the threshold.
    is_error : ndarray of bool, shape (n,)
        Whether accepting a sample is an error.
    clusters : Clusters or None
        The clusters; None for independent samples.
    """

    scores: np.ndarray
    is_error: np.ndarray
    clusters: Clusters | None = None

    @classmethod
    def checked(cls, scores, is_error, clusters):
        """Return the `DecidedRows` of scores (n,); `is_error` (n,) says whether to
        accept a sample is an error, and `clusters` (n,) are the user's cluster labels
        or None, which are checked.
        """
        if clusters is None:
            return cls(scores, is_error)
        _, code = check_groups(clusters, len(scores), name="clusters")
        return cls(scores, is_error, Clusters(code))

    @property
    def n_clusters(self):
        """Number of clusters; None if rows are independent."""
        return None if self.clusters is None else len(self.clusters.sizes)

    def sets(self, grid):
        """Return the `AcceptedSets` of increasing thresholds."""
        return AcceptedSets.from_rows(self.scores, self.is_error, grid)


class SetTests:
    """P-values of the hypothesis that accepting a set violates a guarantee, for nested
    sets.

    Parameters
    ----------
    rows : DecidedRows
        All samples.
    sets : AcceptedSets
        The sets, from strict to lenient.
    """

    def __init__(self, rows, sets):
        self.rows = rows  # `DecidedRows`: all samples
        self.sets = sets  # `AcceptedSets`: from strict to lenient thresholds
        # Number of samples, and number of errors if all of them were accepted.
        self.n_all = len(rows.scores)
        self.all_wrong = int(np.count_nonzero(rows.is_error))
        # The `_Bets` of each guarantee, if samples are in clusters: computed when they
        # are first needed.
        self._bets_of_guarantee = {}

    def counts(self, guarantee):
        """Return the numbers of trials and of errors of each set for a guarantee, each
        of shape (n_sets,).
        """
        return guarantee.counts(
            self.sets.n_rows, self.sets.n_wrong, self.n_all, self.all_wrong
        )

    def n_errors(self, guarantee):
        """Return the number of errors of each set for a guarantee, (n_sets,)."""
        _, errors = self.counts(guarantee)
        return errors

    def pvalue(self, guarantees, *, without_errors=False):
        """Return the largest p-value over several guarantees for each set, (n_sets,).

        `without_errors` returns the p-values that the sets would have without errors,
        the smallest possible ones.
        """
        pvalue = np.zeros(len(self.sets.n_rows))
        for guarantee in guarantees:
            if self.rows.clusters is None:
                trials, n_wrong = self.counts(guarantee)
                if without_errors:
                    n_wrong = np.zeros_like(n_wrong)
                guarantee_pvalue = binomial_pvalue(n_wrong, trials, guarantee.limit)
            else:
                bets = self._bets(guarantee)
                guarantee_pvalue = bets.pvalue
                if without_errors:
                    guarantee_pvalue = bets.least_pvalue
            pvalue = np.maximum(pvalue, guarantee_pvalue)
        return pvalue

    def n_needed(self, guarantees, level):
        """Return the approximate number of samples with which some set would pass for
        all guarantees at the observed error rates, or None if no number would be
        sufficient.
        """
        if self.rows.clusters is None:
            counts = []
            for guarantee in guarantees:
                trials, n_wrong = self.counts(guarantee)
                counts.append((trials, n_wrong, guarantee.limit))
            return rows_needed(self.n_all, counts, level)
        # A bet with the wealth 1 / level passes. The logarithm of the wealth grows in
        # proportion to the number of samples; for each set, the smallest over the
        # guarantees counts, and the set with the largest needs the fewest samples.
        log_wealth = np.min(
            [self._bets(guarantee).best_log_wealth for guarantee in guarantees], axis=0
        )
        best = log_wealth.max()
        needed = -np.log(level)
        # A thousandth of what is needed may be chance alone.
        if best < needed / 1000:
            return None
        # 2 more, since the mean over the bets is a fraction of the wealth of the best.
        return max(self.n_all + 1, ceil(self.n_all * (needed + 2) / best))

    def _bets(self, guarantee):
        """Return the `_Bets` of a guarantee, which are computed once."""
        if guarantee not in self._bets_of_guarantee:
            self._bets_of_guarantee[guarantee] = self._computed_bets(guarantee)
        return self._bets_of_guarantee[guarantee]

    def _computed_bets(self, guarantee):
        """Return the `_Bets` of a guarantee: for each set, bets against the hypothesis
        that it violates the guarantee, from the numbers of accepted rows and of errors
        in each cluster.
        """
        clusters = self.rows.clusters
        largest = int(clusters.sizes.max())
        all_wrong = clusters.totals(self.rows.is_error)
        order = np.argsort(-self.rows.scores, kind="stable")  # from strict to lenient
        code = clusters.code[order]
        wrong = self.rows.is_error[order]
        # Numbers of accepted rows and of errors among them, of each cluster.
        accepted = np.zeros(len(clusters.sizes))
        accepted_wrong = np.zeros(len(clusters.sizes))
        # Sets with equally many rows are the same and are computed once, in the order
        # of their sizes. A larger set only adds rows.
        sizes, size_of_set = np.unique(self.sets.n_rows, return_inverse=True)
        pvalue = np.empty(len(sizes))
        least_pvalue = np.empty(len(sizes))
        best_log_wealth = np.empty(len(sizes))
        n_before = 0
        for k, size in enumerate(sizes.tolist()):
            added = slice(n_before, size)
            accepted += np.bincount(code[added], minlength=len(accepted))
            accepted_wrong += np.bincount(
                code[added], weights=wrong[added], minlength=len(accepted)
            )
            n_before = size
            trials, n_wrong = guarantee.counts(
                accepted, accepted_wrong, clusters.sizes, all_wrong
            )
            allowed = guarantee.limit * trials
            observed = log_wealths(n_wrong - allowed, largest, guarantee.limit)
            without_errors = log_wealths(-allowed, largest, guarantee.limit)
            pvalue[k] = bet_pvalue(observed)
            least_pvalue[k] = bet_pvalue(without_errors)
            best_log_wealth[k] = observed.max()
        return _Bets(
            pvalue[size_of_set], least_pvalue[size_of_set], best_log_wealth[size_of_set]
        )


class _Bets(NamedTuple):
    """Bets against the hypotheses that sets violate a guarantee.

    Parameters
    ----------
    pvalue : ndarray of shape (n_sets,)
        P-values of the hypotheses.
    least_pvalue : ndarray of shape (n_sets,)
        P-values if the sets had no errors.
    best_log_wealth : ndarray of shape (n_sets,)
        Logarithm of the wealth of the best of the bets, which start with 1.
    """

    pvalue: np.ndarray
    least_pvalue: np.ndarray
    best_log_wealth: np.ndarray
