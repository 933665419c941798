"""What keeps probabilities away from 0 and 1 before they become log-odds: a learned floor, or a clipping constant."""

from dataclasses import KW_ONLY
from numbers import Real

import numpy as np

from skcalib._input.sklearn_private import Interval, StrOptions
from skcalib._rows.links import PROBABILITY_CLIP
from skcalib.recalibrators._attributes import within
from skcalib.recalibrators._base import BaseRecalibrator
from skcalib.recalibrators._floor import floored, learned_floor
from skcalib.recalibrators._maps import Clip, Expit, Log, LogNormalized, LogOdds, Rows, Scaled, Scores, Softmax


class ClippedRecalibrator(BaseRecalibrator):
    """Base of the methods that work on log-odds. It stands before the other base: ``(ClippedRecalibrator, ...)``.

    If a model predicts exactly 0 or 1 and is wrong (the votes of a forest, naive Bayes), the log-odds are 36 in the
    wrong direction. No slope serves that row and all the others: the floor makes the log-odds smaller.
    """

    _: KW_ONLY
    clip: [Interval(Real, 0, 0.5, closed="neither"), StrOptions({"auto"}), None] = "auto"

    _attributes = {"clip_": within(0, 0.5), "floor_": within(0, 0.5)}

    def _fit_inside(self, scores, codes, sample_weight, floor):
        self.floor_ = 0.0
        if self.clip != "auto":
            self.clip_ = PROBABILITY_CLIP if self.clip is None else float(self.clip)
        else:
            floor = learned_floor(scores, codes, sample_weight, self.input) if floor is None else floor
            self.floor_ = self.clip_ = floor
        # Logits in single precision stay so in a fit, which they make twice as fast, as without a floor.
        return self._inside(scores, scores.dtype if self.input == "logit" else np.float64)

    def _inside(self, scores, dtype=np.float64):
        if self.floor_ > 0:
            return floored(scores, self.floor_, self.input, dtype)
        if self.clip_ in (0, PROBABILITY_CLIP):  # log-odds do that themselves
            return scores
        return Rows(scores)(self._inside_node(Scores(scores.shape[1])))

    def _inside_node(self, scores):
        is_logit, is_one = self.input == "logit", scores.width == 1
        if self.floor_ > 0:
            probabilities = (Expit if is_one else Softmax)(scores, clip=False) if is_logit else scores
            lifted = Scaled(probabilities, 1 - len(self.classes_) * self.floor_, self.floor_)
            return (LogOdds if is_one else Log)(lifted) if is_logit else lifted
        if self.clip_ in (0, PROBABILITY_CLIP):
            return scores
        if not is_logit:
            return Clip(scores, self.clip_, 1 - self.clip_)
        low, high = float(np.log(self.clip_)), float(np.log1p(-self.clip_))
        return Clip(scores, low - high, high - low) if is_one else Clip(LogNormalized(scores), low, high)
