"""What the writers of maps share: the walk over the nodes, and the decision of a
certified threshold around a map.
"""

from typing import NamedTuple

from sklearn.frozen import FrozenEstimator

from skcalib._defaults import check_fitted
from skcalib.decisions import CertifiedThresholdClassifier
from skcalib.decisions._certified import ANSWERS

# of a probability, in which ways out may differ: one at the threshold is at it
# everywhere
_ROUNDING = 1e-12
_NEVER = 2.0  # in place of an infinite threshold


class NodeWriter:
    """Base of what writes maps: `write` asks the method that is named after a node's
    class, once for each node.
    """

    format = None  # as errors name it

    def __init__(self):
        self.written = {}

    def write(self, node):
        """Return what a node is in this format."""
        if id(node) not in self.written:
            write = getattr(self, f"_write_{type(node).__name__}", self._write_other)
            # the node is held, so that its id stays its own
            self.written[id(node)] = self._kept(write(node)), node
        return self.written[id(node)][0]

    def _kept(self, written):
        """Return how others refer to what was written of a node."""
        return written

    def _write_other(self, node):
        raise TypeError(f"no {self.format} for {type(node).__name__}")

    def _write_RowKey(self, node):
        raise no_row_keys(f"{self.format} has no function for")


class Decision(NamedTuple):
    """From which probability on which label is given: of the event, or of the predicted
    class, else the last label.
    """

    threshold: float
    labels: list
    is_event: bool

    @property
    def otherwise(self):
        """The number of the label of rows below the threshold."""
        return 0 if self.is_event else len(self.labels) - 1


def split_decision(estimator):
    """Return the recalibrator, and the decision that is made by it: None for a
    recalibrator alone.
    """
    if not isinstance(estimator, CertifiedThresholdClassifier):
        return estimator, None
    check_fitted(estimator)
    inner, labels = estimator.estimator_, estimator.classes_.tolist()
    while isinstance(inner, FrozenEstimator):
        inner = inner.estimator
    is_event = estimator.promise not in ANSWERS
    labels += [] if is_event else [estimator._abstain_label()]
    if len({type(label) for label in labels}) > 1:
        raise ValueError(
            "abstain_label must be of the type of the classes outside Python, found"
            f" the labels {labels}."
        )
    return inner, Decision(
        float(min(estimator.threshold_ - _ROUNDING, _NEVER)), labels, is_event
    )


def no_row_keys(where):
    """Return the error for a map that needs `RowKey` where there is none."""
    return ValueError(
        "UniformMassBinning(randomize=True) takes a number from the md5 of a row's id,"
        f" which {where}. Write it with to_sql(..., ids='column') for DuckDB, Spark or"
        " PostgreSQL, or fit HistogramBinning(sample_split=0.5)."
    )
