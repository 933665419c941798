"""Ensemble temperature scaling: a mixture of the tempered forecast, the forecast itself and the uniform one."""

from typing import ClassVar

import numpy as np
from scipy.special import softmax

from skcalib._defaults import parameters
from skcalib._rows.links import log_probability
from skcalib._solvers.mixture import fit_mixture_weights
from skcalib.recalibrators._attributes import weights
from skcalib.recalibrators._map_forms import inside, normalized
from skcalib.recalibrators._map_forms import softmax as softmax_node
from skcalib.recalibrators._maps import Mixture, Scaled
from skcalib.recalibrators._temperature import TemperatureScaling


@parameters
class EnsembleTemperatureScaling(TemperatureScaling):
    """Ensemble temperature scaling: ``w1 softmax(logits / temperature) + w2 softmax(logits) + w3 / n_classes``.

    As with temperature scaling no decision changes. The third term keeps some probability for every class in every row.
    The temperature is fitted first, by log-loss, and then the weights.

    Parameters
    ----------
    clip : "auto", float or None, default="auto"
        What keeps probabilities away from 0 and 1 before they become log-odds. "auto" learns a floor f: a probability p
        becomes ``(1 - n_classes * f) * p + f``, which keeps the order of the scores. f is 0 unless a larger one, up to
        .1, gains over half a nat of log-likelihood. A number clips to [clip, 1 - clip], None to [2^-52, 1 - 2^-52].
    input : {"probability", "logit"}, default="probability"
        What the scores are. One column of logits is the log-odds of the positive class.
    classes : array-like, default=None
        Labels of the columns, for a calibration set in which a class is missing.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    provenance_ : dict
        Where the fit comes from: method, parameters, rows, events by class, versions, and a hash of the rows.
    clip_ : float
        The learned floor, or the clipping constant.
    floor_ : float
        The learned floor, 0 if there is none.
    temperature_ : float
        Of the first part: above 1 for an over-confident model.
    inverse_temperature_ : float
        ``1 / temperature_``.
    weights_ : ndarray of shape (3,)
        Weights of the tempered, the given and the uniform forecast, which sum to 1.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or not what `input` says, `y` has another length or only one class, or a
        parameter is out of its range.

    See Also
    --------
    skcalib.TemperatureScaling : One number for all logits.
    skcalib.StackedRecalibrator : A mixture of several recalibrators.

    References
    ----------
    Zhang, Kailkhura and Han (2020), Mix-n-Match: ensemble and compositional methods for uncertainty calibration in deep
    learning, Section 4.1.

    Examples
    --------
    A model that is sure in every row, and wrong in a tenth of them whatever the row:

    >>> import numpy as np
    >>> from skcalib import EnsembleTemperatureScaling
    >>> scores = np.repeat([0.001, 0.999], 100)
    >>> y = np.tile(np.arange(100) < 10, 2) ^ (scores > 0.5)
    >>> EnsembleTemperatureScaling().fit(scores, y).predict_proba([0.999]).round(3).tolist()
    [[0.1, 0.9]]
    """

    loss: ClassVar = "log"  # no parameter here

    _attributes = {"weights_": weights}

    def _fit_logits(self, logits, codes, sample_weight):
        super()._fit_logits(logits, codes, sample_weight)
        parts = np.stack(self._parts(logits.astype(np.float64)), axis=2)
        self.weights_ = fit_mixture_weights(parts[np.arange(len(codes)), codes], sample_weight)

    def _predict_logits(self, logits):
        parts = self._parts(logits.astype(np.float64))
        return log_probability(sum(weight * part for weight, part in zip(self.weights_, parts, strict=True)))

    def _map(self, logits):
        tempered, given, uniform = self.weights_.tolist()
        parts = softmax_node(Scaled(logits, self.inverse_temperature_), clip=False), softmax_node(logits, clip=False)
        return inside(normalized(inside(Mixture((tempered, given), parts, uniform / len(self.classes_)))))

    def _parts(self, logits):
        """Return the tempered, the given and the uniform forecast."""
        tempered = softmax(super()._predict_logits(logits), axis=1)
        return tempered, softmax(logits, axis=1), np.full_like(tempered, 1 / logits.shape[1])
