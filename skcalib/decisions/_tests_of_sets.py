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
        """Return the samples; `clusters` are the user's cluster labels or None."""
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
        self.rows = rows
        self.sets = sets
        # Number of samples, and number of errors if all of them were accepted.
        self.n_all = len(rows.scores)
        self.all_wrong = int(np.count_nonzero(rows.is_error))
        # The `_Bets` of each guarantee that were computed so far.
        self._by_guarantee = {}

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
        """Return the largest p-value over several guarantees for each set, (n_sets,);
        with `without_errors`, the smallest possible p-value, that of a set without
        errors.
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
                guarantee_pvalue = bets.least if without_errors else bets.pvalue
            pvalue = np.maximum(pvalue, guarantee_pvalue)
        return pvalue

    def n_needed(self, guarantees, level):
        """Return the approximate number of samples required at the observed error
        rates, or None if no number would be sufficient.
        """
        if self.rows.clusters is None:
            counts = [
                (*self.counts(guarantee), guarantee.limit) for guarantee in guarantees
            ]
            return rows_needed(self.n_all, counts, level)
        # The log wealth that the best set reaches for all guarantees.
        smallest_growth = np.min(
            [self._bets(guarantee).growth for guarantee in guarantees], axis=0
        )
        growth = smallest_growth.max()
        needed_growth = -np.log(level)
        # Growth of a thousandth of what is needed may be chance alone.
        if growth < needed_growth / 1000:
            return None
        # 2 more, since the mean over the bets is a fraction of the wealth of the best.
        return max(self.n_all + 1, ceil(self.n_all * (needed_growth + 2) / growth))

    def _bets(self, guarantee):
        """Return the `_Bets` of a guarantee, which are computed once."""
        if guarantee not in self._by_guarantee:
            self._by_guarantee[guarantee] = self._computed_bets(guarantee)
        return self._by_guarantee[guarantee]

    def _computed_bets(self, guarantee):
        """Return the `_Bets` of a guarantee, from the numbers of accepted rows and of
        errors in each cluster.
        """
        clusters = self.rows.clusters
        largest = int(clusters.sizes.max())
        all_wrong = clusters.totals(self.rows.is_error)
        order = np.argsort(-self.rows.scores, kind="stable")
        code = clusters.code[order]
        wrong = self.rows.is_error[order]
        accepted = np.zeros(len(clusters.sizes))
        accepted_wrong = np.zeros(len(clusters.sizes))
        # By the number of accepted rows, since sets of equal size are equal: the three
        # fields of `_Bets`.
        by_size = np.empty((3, self.n_all + 1))
        before = 0
        for size in np.unique(self.sets.n_rows).tolist():
            # From strict to lenient, rows are only added to the sums of the clusters.
            added = slice(before, size)
            accepted += np.bincount(code[added], minlength=len(accepted))
            accepted_wrong += np.bincount(
                code[added], weights=wrong[added], minlength=len(accepted)
            )
            before = size
            trials, n_wrong = guarantee.counts(
                accepted, accepted_wrong, clusters.sizes, all_wrong
            )
            allowed = guarantee.limit * trials
            observed = log_wealths(n_wrong - allowed, largest, guarantee.limit)
            without_errors = log_wealths(-allowed, largest, guarantee.limit)
            by_size[:, size] = (
                bet_pvalue(observed),
                bet_pvalue(without_errors),
                observed.max(),
            )
        return _Bets(*by_size[:, self.sets.n_rows])


class _Bets(NamedTuple):
    """Results of bets against "this set breaks the guarantee", (n_sets,) each: the
    p-value, its smallest possible value, and the logarithm of the wealth of the best
    bet.
    """

    pvalue: np.ndarray
    least: np.ndarray
    growth: np.ndarray
