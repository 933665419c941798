"""Tests of nested sets of accepted rows: a binomial for rows, bets for clusters."""

from math import ceil
from typing import NamedTuple

import numpy as np

from skcalib._input.labels import check_groups
from skcalib.decisions._cluster_bets import Clusters, bet_pvalue, log_wealths
from skcalib.decisions._search import AcceptedSets, binomial_pvalue, rows_needed


class DecidedRows(NamedTuple):
    """Scores that a threshold is put on, whether accepting a row is wrong, and clusters
    or None.
    """

    scores: np.ndarray
    wrong: np.ndarray
    clusters: Clusters | None = None

    @classmethod
    def checked(cls, scores, wrong, clusters):
        """Make rows of checked scores and of clusters as they are given."""
        if clusters is None:
            return cls(scores, wrong)
        _, code = check_groups(clusters, len(scores), name="clusters")
        return cls(scores, wrong, Clusters(code))

    @property
    def n_clusters(self):
        """The number of clusters, None where rows are independent."""
        return None if self.clusters is None else len(self.clusters.sizes)

    def sets(self, grid):
        """Return the sets that thresholds in increasing order accept."""
        return AcceptedSets.from_rows(self.scores, self.wrong, grid)


class SetTests:
    """P-values of "accepting this set breaks a goal", for nested sets.

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
        self.n_all = len(rows.scores)
        self.all_wrong = int(np.count_nonzero(rows.wrong))
        self._by_goal = {}

    def counts(self, goal):
        """Return the trials of each set, and the errors among them."""
        return goal.counts(
            self.sets.n_rows, self.sets.n_wrong, self.n_all, self.all_wrong
        )

    def pvalue(self, goals, *, without_errors=False):
        """Return the largest p-value of several goals for each set; with
        `without_errors` the least that could have been.
        """
        pvalue = np.zeros(len(self.sets.n_rows))
        for goal in goals:
            if self.rows.clusters is None:
                trials, n_wrong = self.counts(goal)
                if without_errors:
                    n_wrong = np.zeros_like(n_wrong)
                found = binomial_pvalue(n_wrong, trials, goal.limit)
            else:
                bets = self._bets(goal)
                found = bets.least if without_errors else bets.pvalue
            pvalue = np.maximum(pvalue, found)
        return pvalue

    def n_needed(self, goals, level):
        """Return about how many samples would do at the rates seen here, None where no
        number would.
        """
        if self.rows.clusters is None:
            counts = [(*self.counts(goal), goal.limit) for goal in goals]
            return rows_needed(self.n_all, counts, level)
        growth = np.min([self._bets(goal).growth for goal in goals], axis=0).max()
        wanted = -np.log(level)
        # Growth of a thousandth of what is needed may be chance alone.
        if growth < wanted / 1000:
            return None
        # The mean over the bets has a fraction of the wealth of the best.
        return max(self.n_all + 1, ceil(self.n_all * (wanted + 2) / growth))

    def _bets(self, goal):
        """Return p-values and growth of each set by bets; they are computed once."""
        if goal not in self._by_goal:
            self._by_goal[goal] = self._computed_bets(goal)
        return self._by_goal[goal]

    def _computed_bets(self, goal):
        """Return the `_Bets` of each set, from the numbers of accepted rows and of
        errors in each cluster.
        """
        clusters = self.rows.clusters
        largest = int(clusters.sizes.max())
        all_wrong = clusters.totals(self.rows.wrong)
        order = np.argsort(-self.rows.scores, kind="stable")
        code = clusters.code[order]
        wrong = self.rows.wrong[order]
        accepted = np.zeros(len(clusters.sizes))
        accepted_wrong = np.zeros(len(clusters.sizes))
        # By the number of accepted rows: sets of equal size are the same set.
        by_size = np.empty((3, self.n_all + 1))
        before = 0
        for size in np.unique(self.sets.n_rows).tolist():
            # From strict to lenient, rows are only added.
            added = slice(before, size)
            accepted += np.bincount(code[added], minlength=len(accepted))
            accepted_wrong += np.bincount(
                code[added], weights=wrong[added], minlength=len(accepted)
            )
            before = size
            trials, n_wrong = goal.counts(
                accepted, accepted_wrong, clusters.sizes, all_wrong
            )
            seen = log_wealths(n_wrong - goal.limit * trials, largest, goal.limit)
            best = log_wealths(-goal.limit * trials, largest, goal.limit)
            by_size[:, size] = bet_pvalue(seen), bet_pvalue(best), seen.max()
        return _Bets(*by_size[:, self.sets.n_rows])


class _Bets(NamedTuple):
    """Of each set: the p-value, the least that it could have been, and the growth of
    the best bet's logarithm.
    """

    pvalue: np.ndarray
    least: np.ndarray
    growth: np.ndarray
