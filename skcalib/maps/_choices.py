"""One of several nodes for each row, and the keys that select it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skcalib._rows.namespaces import (
    chosen_entries,
    chosen_rows,
    inverse_permutation,
    largest_columns,
)
from skcalib._rows.sorting import rows_by_code
from skcalib.maps._class_functions import Softmax
from skcalib.maps._node import Node, NodeOf, Rows, require, require_numpy
from skcalib.maps._value_functions import Scaled


class Largest(NodeOf):
    """Key of a `Choice`: the column of the largest value, the first in case of ties.

    Parameters
    ----------
    of : Node
        The values.

    See Also
    --------
    skcalib.maps.Choice : Selects one of several nodes by a key.

    Examples
    --------
    >>> from skcalib.maps import Largest, Rows, Scores
    >>> Largest(Scores(3)).number(Rows([[0.2, 0.5, 0.3]])).tolist()
    [1]
    """

    def number(self, rows: Rows) -> np.ndarray:
        """Return the index of the case that applies to each row.

        Parameters
        ----------
        rows : Rows
            The rows.

        Returns
        -------
        number : ndarray of int, shape (n,)
            Index of the case for each row.
        """
        return largest_columns(rows.xp, rows(self.of))


@dataclass(frozen=True, eq=False)
class Place(NodeOf):
    """Key of a `Choice`: the number of cuts that lie below the value.

    Parameters
    ----------
    of : Node
        A node with one value.
    cuts : ndarray of shape (n_cases - 1,)
        The cuts, which must be strictly increasing.

    See Also
    --------
    skcalib.maps.Choice : Selects one of several nodes by a key.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.maps import Place, Rows, Scores
    >>> Place(Scores(), np.array([0.5])).number(Rows([[0.2], [0.5], [0.7]])).tolist()
    [0, 0, 1]
    """

    cuts: np.ndarray

    def _check(self):
        require((np.diff(self.cuts) > 0).all(), self, "cuts that increase")

    def number(self, rows: Rows) -> np.ndarray:
        """Return the index of the case that applies to each row.

        Parameters
        ----------
        rows : Rows
            The rows.

        Returns
        -------
        number : ndarray of int, shape (n,)
            Index of the case for each row.
        """
        values = rows(self.of)[:, 0]
        if rows.xp is np:
            return self.cuts.searchsorted(values)
        # PyTorch warns if numbers are not next to each other: they are copied.
        values = rows.xp.asarray(values, copy=True)
        return rows.xp.searchsorted(rows.constant(self.cuts), values)


@dataclass(frozen=True, eq=False)
class GroupOf(Node):
    """Key of a `Choice`: the number assigned to the row's group.

    Parameters
    ----------
    column : str or None
        Name of the column of groups; None if groups are passed as an argument.
    cases : dict
        The number of each group (a string, an integer, a boolean or a float).
    otherwise : int
        The number for all other groups.

    See Also
    --------
    skcalib.maps.Choice : Selects one of several nodes by a key.

    Examples
    --------
    >>> from skcalib.maps import GroupOf, Rows
    >>> key = GroupOf("site", {"north": 0, "south": 1}, 2)
    >>> key.number(Rows([[0.5], [0.5]], groups=["south", "west"])).tolist()
    [1, 2]
    """

    column: str | None
    cases: dict
    otherwise: int

    def number(self, rows: Rows) -> np.ndarray:
        """Return the index of the case that applies to each row.

        Parameters
        ----------
        rows : Rows
            The rows, with groups.

        Returns
        -------
        number : ndarray of int, shape (n,)
            Index of the case for each row.
        """
        require_numpy(self, rows)
        _, groups, _ = rows.inputs  # scores, groups and ids
        numbers = [self.cases.get(group, self.otherwise) for group in groups]
        return np.array(numbers, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Choice(Node):
    """The values of one of several nodes of equal width, selected by a key.

    Parameters
    ----------
    key : Largest, Place or GroupOf
        The key that selects the node for each row.
    cases : tuple of Node
        The nodes.

    See Also
    --------
    skcalib.GroupwiseRecalibrator : Fits one map for each group.

    Examples
    --------
    >>> from skcalib.maps import Choice, GroupOf, Rows, Scaled, Scores
    >>> scores = Scores()
    >>> key = GroupOf(None, {"north": 0}, 1)
    >>> by_site = Choice(key, (Scaled(scores, 2.0), scores))
    >>> Rows([[0.25], [0.25]], groups=["north", "west"])(by_site).tolist()
    [[0.5], [0.25]]
    """

    key: Largest | Place | GroupOf
    cases: tuple[Node, ...]

    @property
    def width(self):
        return self.cases[0].width

    @property
    def _sources(self):
        return self.key._sources  # each case is evaluated on its own rows alone

    @cached_property
    def _slopes(self):
        """The slopes (n_cases,) of cases that are softmaxes of multiples of the same
        logits; None for others.
        """
        slopes = []
        for case in self.cases:
            slope = _slope(case, self.cases[0])
            if slope is None:
                return None
            slopes.append(slope)
        return np.array(slopes)

    def _check(self):
        require(
            all(case.width == self.width for case in self.cases),
            self,
            "cases of one width",
        )

    def __call__(self, rows):
        """Return the values (n, width), for each row those of the node that its key
        selects.
        """
        number = self.key.number(rows)  # (n,), the index of each row's node
        if number.shape[0] == 1:
            return rows(self.cases[int(number[0])])
        if self._slopes is not None:
            # one softmax, of logits with the slope of each row's case
            slopes = chosen_entries(rows.xp, rows.constant(self._slopes), number)
            softmax = self.cases[0]
            return softmax.of_logits(rows(softmax.of.of) * slopes[:, None], rows)
        # Each node is evaluated only on the rows that select it. The values, joined in
        # the order of the nodes, are then put back into the order of the rows.
        chosen = []
        values = []
        for k, selected in _rows_by_case(number, len(self.cases), rows.xp):
            chosen.append(selected)
            values.append(rows.at(selected)(self.cases[k]))
        if not chosen:
            return rows(self.cases[0])  # no rows
        if len(chosen) == 1:
            return values[0]
        joined = rows.xp.concat(values)
        order = inverse_permutation(rows.xp, rows.xp.concat(chosen))
        return chosen_rows(rows.xp, joined, order)


def _slope(case, first):
    """Return the slope of a `case` that is a `Softmax` of `Scaled` values and differs
    from the case `first` in this slope alone; None for other cases.
    """
    if not isinstance(case, Softmax) or not isinstance(case.of, Scaled):
        return None
    scaled = case.of
    if not isinstance(scaled.slope, float) or np.any(scaled.intercept):
        return None
    if case is first:
        return scaled.slope
    is_alike = (case.clip, case.possible) == (first.clip, first.possible)
    if not is_alike or scaled.of is not first.of.of:
        return None
    return scaled.slope


def _rows_by_case(number, n_cases, xp):
    """Yield each case that occurs and the indices of its rows, by the number (n,) of
    each row's case.
    """
    if xp is np:
        yield from rows_by_code(number)
        return
    for k in range(n_cases):
        (selected,) = xp.nonzero(number == k)
        if selected.shape[0] > 0:
            yield k, selected
