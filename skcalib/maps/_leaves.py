"""Nodes without other nodes below them: scores, features and the key of a row."""

from dataclasses import dataclass

import numpy as np

from skcalib._rows.keys import row_keys
from skcalib.maps._node import Node, require_numpy


@dataclass(frozen=True, eq=False)
class Scores(Node):
    """The scores of a row: the input of a map.

    Parameters
    ----------
    width : int, default=1
        Number of scores: K for one score per class, or 1 for two classes if only the
        positive class's probability (or log-odds) is given.

    See Also
    --------
    skcalib.maps.CalibrationMap : Contains the scores that are the input of its tree.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scores
    >>> Rows([[0.2], [0.7]])(Scores()).tolist()
    [[0.2], [0.7]]
    """

    width: int = 1
    _is_input = True

    def __call__(self, rows):
        scores, _, _ = rows.inputs
        return scores


@dataclass(frozen=True, eq=False)
class Features(Node):
    """Numbers beside the scores of a row: a further input of a map.

    Parameters
    ----------
    names : tuple of str or int
        Name of the column of each feature; its position if columns have no names.

    See Also
    --------
    skcalib.maps.Scores : The input of every map.
    skcalib.PlattScaling : Its parameter `features` gives a map of this kind.

    Examples
    --------
    >>> from skcalib.maps import Features, Rows
    >>> Rows([[0.2]], features=[[61.0, 1.0]])(Features(("age", "smoker"))).tolist()
    [[61.0, 1.0]]
    """

    names: tuple[str | int, ...]
    _is_input = True

    @property
    def width(self):
        return len(self.names)

    def __call__(self, rows):
        """Return the numbers (n, width); raise a ValueError if the rows have none."""
        require_numpy(self, rows)
        shape = np.shape(rows.features)
        if len(shape) != 2 or shape[1] != self.width:
            raise ValueError(
                f"The map needs the features {list(self.names)} of each row: pass"
                f" features of shape (n, {self.width}), found {shape or None}."
            )
        return rows.features


@dataclass(frozen=True, eq=False)
class RowKey(Node):
    """A number in [0, 1) derived from the row's id, or random if the rows have no ids.

    Parameters
    ----------
    salt : str
        A string on which the number depends in addition to the id.

    See Also
    --------
    skcalib.UniformMassBinning : Breaks ties with this number.

    Examples
    --------
    >>> from skcalib.maps import RowKey, Rows
    >>> keys = Rows([[0.5], [0.5]], ids=["a", "a"])(RowKey("salt"))
    >>> bool(keys[0] == keys[1])
    True
    """

    salt: str
    width = 1

    def __call__(self, rows):
        """Return the numbers (n, 1), by which ties between equal scores are broken."""
        require_numpy(self, rows)
        scores, _, ids = rows.inputs  # scores, groups and ids
        if ids is None:
            # no id to derive a number from: a new random one in each call
            keys = np.random.default_rng().random(len(scores))
        else:
            keys = row_keys(self.salt, ids)
        return keys[:, None]
