"""What certified recalibrators share: asking for the certificate, and the refusals that concern them all."""

import copy
from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skcalib.guarantees import independent_bins_certificate

_DEFAULT_LEVEL = 0.9
# Parameters that may change after the fit: the state of a generator moves on, and a level can be asked for.
_NOT_PROMISED = ("random_state", "confidence_level")


class CertifiedMixin:
    """Mixin for binned recalibrators that the distribution-free theory covers.

    A class defines ``_issue_certificate(problems, **promise)`` for its fitted binary problems.
    """

    _derived = {"_fitted_params_": lambda self: copy.deepcopy(self._promised_params())}

    def certificate(self, confidence_level=None, kind="conditional", n_candidates=1, *, interval="theorem"):
        """Return what may be promised about the fitted probabilities, for any distribution of the rows.

        Parameters
        ----------
        confidence_level : float, default=None
            Probability of the promise; None means the constructor's `confidence_level` where there is one, else 0.9.
        kind : {"conditional", "marginal"}, default="conditional"
            A promise for all predicted probabilities at once, or for that of one random future row.
        n_candidates : int, default=1
            Number of candidates, fixed beforehand, among which this one was chosen on the same rows.
        interval : {"theorem", "clopper_pearson"}, default="theorem"
            What is known before any label is seen, or the sharper bound from the labels at hand.

        Returns
        -------
        certificate : CalibrationCertificate
            Tolerance, level, intervals by bin and assumptions; it prints as sentences. Its first assumption cannot be
            checked here: the scores must come from *one* model that was fitted on other rows.

        Raises
        ------
        ValueError
            Where the theory promises nothing, with the reason.

        References
        ----------
        Gupta and Ramdas (2021), Distribution-free calibration guarantees for histogram binning without sample
        splitting.
        """
        check_is_fitted(self)
        now, fitted = self._promised_params(), self._fitted_params_
        changed = [name for name in now if name not in fitted or not np.array_equal(now[name], fitted[name])]
        if changed:
            raise ValueError(f"No certificate: {', '.join(changed)} changed since the fit. Fit again.")
        problems = getattr(self, "estimators_", [self])
        if len(problems) > 1 and self.normalize:
            raise ValueError(
                "No certificate for one-vs-rest probabilities that were made to sum to 1: it is about each class's own "
                "probability. Fit with normalize=False."
            )
        level = getattr(self, "confidence_level", _DEFAULT_LEVEL) if confidence_level is None else confidence_level
        certificate = self._issue_certificate(
            problems, confidence_level=level, kind=kind, n_candidates=n_candidates, interval=interval
        )
        if len(self.classes_) > 2 and self.multiclass == "top_label":
            sentence = "The promise is about the probability of the predicted class, which the model alone decides."
            certificate = replace(certificate, assumptions=(*certificate.assumptions, sentence))
        return certificate

    def _fit_scores(self, scores, codes, sample_weight):
        super()._fit_scores(scores, codes, sample_weight)
        self._fitted_params_ = copy.deepcopy(self._promised_params())

    def _promised_params(self):
        """Return the parameters that a promise depends on, with those of a nested object and its type."""
        return {
            name: type(value) if hasattr(value, "get_params") else value
            for name, value in self.get_params().items()
            if name not in _NOT_PROMISED
        }


def certify_independent_bins(problems, edges, *, interval, **promise):
    """Return the certificate of bins that do not depend on the rows counted in them; `edges` says why."""
    return independent_bins_certificate(
        [part.bin_positives_ for part in problems],
        [part.bin_counts_ for part in problems],
        [part.bin_values_ for part in problems],
        edges=edges,
        interval="hoeffding" if interval == "theorem" else interval,
        **promise,
    )
