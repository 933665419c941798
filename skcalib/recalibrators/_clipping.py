"""What keeps probabilities away from 0 and 1 before they become log-odds: a learned
floor, or a clipping constant.
"""

from __future__ import annotations

from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skcalib._fitting.floor import floored, learned_floor
from skcalib._input.sklearn_private import Interval, StrOptions
from skcalib._input.tensors import namespace_of
from skcalib._rows.links import (
    PROBABILITY_CLIP,
)
from skcalib.maps import (
    Clip,
    Expit,
    Log,
    LogNormalized,
    LogOdds,
    Rows,
    Scaled,
    Scores,
    Softmax,
)
from skcalib.maps.checks import within
from skcalib.recalibrators._base import BaseRecalibrator


class ClippedRecalibrator(BaseRecalibrator):
    """Base of the methods that work on log-odds. It precedes the other base:
    ``(ClippedRecalibrator, ...)``.

    If a model predicts exactly 0 or 1 and is wrong (the votes of a forest, naive
    Bayes), the log-odds are 36 in the wrong direction. No slope fits both this row and
    all the others; the floor reduces such log-odds.
    """

    _parameter_constraints = {
        **BaseRecalibrator._parameter_constraints,
        "clip": [Interval(Real, 0, 0.5, closed="neither"), StrOptions({"auto"}), None],
    }

    _attributes = {"clip_": within(0, 0.5), "floor_": within(0, 0.5)}

    clip_: float
    floor_: float

    def __init__(
        self,
        *,
        clip: float | Literal["auto"] | None = "auto",
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.clip = clip
        self.input = input
        self.classes = classes

    def _start_fit(self, scores, codes, sample_weight, shortcuts):
        """Set `clip_` and `floor_` from `clip`; return the scores (n, C), kept away
        from 0 and 1.

        They are clipped to [clip, 1 - clip], or for "auto" ``(1 - K * floor) * p +
        floor``. The floor is learned here, or by a stack for all its members.
        """
        self.floor_ = 0.0
        if self.clip is None:
            self.clip_ = PROBABILITY_CLIP
        elif self.clip != "auto":
            self.clip_ = float(self.clip)
        else:
            floor = None
            if shortcuts is not None:
                floor = shortcuts.floor
            if floor is None:
                floor = learned_floor(scores, codes, sample_weight, self.input)
            self.floor_ = floor
            self.clip_ = floor
        # A fit to logits in single precision takes half the time of one in double
        # precision, so that logits keep their type.
        dtype = np.float64
        if self.input == "logit":
            dtype = scores.dtype
        return self._clipped(scores, dtype)

    def _clipped(self, scores, dtype=np.float64):
        """Return scores (n, C) with probabilities raised by `floor_`, or clipped at
        `clip_` if it is 0; logits of -inf, of impossible classes, stay.
        """
        # The smallest clipping constant is applied wherever log-odds are computed.
        if self.floor_ == 0 and self.clip_ in (0, PROBABILITY_CLIP):
            return scores
        if self.floor_ > 0:
            clipped = floored(scores, self.floor_, self.input, dtype)
        else:
            node = self._clipped_node(Scores(scores.shape[1]))
            clipped = Rows(scores)(node)
        is_impossible = self._impossible_classes(scores)
        if is_impossible is None:
            return clipped
        return namespace_of(clipped).where(is_impossible, -np.inf, clipped)

    def _clipped_node(self, scores):
        """Return the expression in `skcalib.maps` for the clipped scores: the
        computation of `_clipped` for a node `scores`.
        """
        if self.floor_ > 0:
            return self._floored_node(scores)
        if self.clip_ in (0, PROBABILITY_CLIP):
            return scores
        if self.input == "probability":
            return Clip(scores, self.clip_, 1 - self.clip_)
        # log-probabilities within [log(clip), log(1 - clip)], or log-odds within their
        # difference
        low = float(np.log(self.clip_))
        high = float(np.log1p(-self.clip_))
        if scores.width == 1:
            return Clip(scores, low - high, high - low)
        return Clip(LogNormalized(scores), low, high)

    def _floored_node(self, scores):
        """Return the node of scores whose probabilities p are raised to ``(1 - K *
        floor) * p + floor``; log-odds and logits are converted, and converted back.
        """
        slope = 1 - len(self.classes_) * self.floor_
        if self.input == "probability":
            return Scaled(scores, slope, self.floor_)
        if scores.width == 1:
            return LogOdds(Scaled(Expit(scores, clip=False), slope, self.floor_))
        return Log(Scaled(Softmax(scores, clip=False), slope, self.floor_))
