"""What keeps probabilities away from 0 and 1 before they become log-odds: a learned floor, or a clipping constant."""

from numbers import Real

import numpy as np
from scipy.special import log_softmax

from skcalib._input.sklearn_private import Interval, StrOptions
from skcalib._rows.links import PROBABILITY_CLIP
from skcalib.recalibrators._floor import floored, learned_floor
from skcalib.recalibrators._maps import Clip, Expit, Log, LogNormalized, LogOdds, Scaled, Softmax

# What the parameter `clip` may be, of the methods that declare `_works_on_log_odds`.
CLIP_CONSTRAINT = {"clip": [Interval(Real, 0, 0.5, closed="neither"), StrOptions({"auto"}), None]}


def set_clipping(recalibrator, scores, codes, sample_weight, floor=None):
    """Set `clip_` and `floor_` of a recalibrator: its `clip`, or the floor that is given or learned from the rows.

    If a model predicts exactly 0 or 1 and is wrong (the votes of a forest, naive Bayes), the log-odds are 36 in the
    wrong direction. No slope serves that row and all the others: the floor makes the log-odds smaller.
    """
    recalibrator.floor_ = 0.0
    if recalibrator.clip != "auto":
        recalibrator.clip_ = PROBABILITY_CLIP if recalibrator.clip is None else float(recalibrator.clip)
        return
    learned = learned_floor(scores, codes, sample_weight, recalibrator.input) if floor is None else floor
    recalibrator.floor_ = recalibrator.clip_ = learned


def inside(recalibrator, scores, dtype=np.float64):
    """Return the scores above the fitted floor, as `dtype`, or clipped at the constant of the fit."""
    if recalibrator.floor_ > 0:
        return floored(scores, recalibrator.floor_, recalibrator.input, dtype)
    if recalibrator.clip_ in (0, PROBABILITY_CLIP):  # log-odds do that themselves
        return scores
    return _clipped(scores, recalibrator.clip_, recalibrator.input)


def inside_node(recalibrator, scores):
    """Return the same as a node of the calibration map."""
    width, is_logit, floor = scores.width, recalibrator.input == "logit", getattr(recalibrator, "floor_", 0)
    if floor > 0:
        probabilities = (Expit if width == 1 else Softmax)(scores, clip=False) if is_logit else scores
        lifted = Scaled(probabilities, 1 - len(recalibrator.classes_) * floor, floor)
        return (LogOdds if width == 1 else Log)(lifted) if is_logit else lifted
    clip = getattr(recalibrator, "clip_", PROBABILITY_CLIP)
    if clip in (0, PROBABILITY_CLIP):
        return scores
    low, high = float(np.log(clip)), float(np.log1p(-clip))
    if not is_logit:
        return Clip(scores, clip, 1 - clip)
    return Clip(scores, low - high, high - low) if width == 1 else Clip(LogNormalized(scores), low, high)


def _clipped(scores, constant, input):
    """Return scores whose probabilities lie in [constant, 1 - constant]."""
    if input == "probability":
        return np.clip(scores.astype(np.float64), constant, 1 - constant)
    low, high = np.log(constant), np.log1p(-constant)
    if scores.shape[1] == 1:
        return np.clip(scores.astype(np.float64), low - high, high - low)
    return np.clip(log_softmax(scores.astype(np.float64), axis=1), low, high)
