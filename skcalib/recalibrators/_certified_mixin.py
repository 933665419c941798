"""What certified recalibrators share: asking for the certificate, and the refusals that
concern them all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from skcalib._defaults import check_fitted

if TYPE_CHECKING:
    # Imported for the type alone: a fit does not need it.
    from skcalib.guarantees import CalibrationCertificate

_DEFAULT_LEVEL = 0.9
# parameters that no search chooses
_NEVER_TUNED = {"input", "classes", "random_state", "confidence_level"}


class CertifiedMixin:
    """Mixin for binned recalibrators that the distribution-free theory covers.

    A class that uses it defines ``_issue_certificate(problems, **options)`` for its
    fitted binary problems.
    """

    # Why an estimator around this one rules a certificate out, as a sentence; None if
    # none does.
    _no_certificate = None
    # Names of the parameters that `set_params` has set, joined by commas.
    _tuned = ""

    def certificate(
        self,
        confidence_level: float | None = None,
        kind: Literal["conditional", "marginal"] = "conditional",
        n_candidates: int | BaseEstimator = 1,
        *,
        interval: Literal["theorem", "clopper_pearson"] = "theorem",
    ) -> CalibrationCertificate:
        """Return the guarantee for the fitted probabilities, for any distribution.

        Parameters
        ----------
        confidence_level : float, default=None
            Probability with which the guarantee holds, in (0, 1); None means the
            constructor's `confidence_level` if it has one, otherwise 0.9.
        kind : {"conditional", "marginal"}, default="conditional"
            "conditional" is a guarantee that holds simultaneously for all predicted
            probabilities, and "marginal" is a guarantee for the predicted probability
            of a single random future sample.
        n_candidates : int or fitted search, default=1
            Number of candidates, fixed beforehand, from which this one was selected on
            the same samples. For a fitted scikit-learn search, the number of its
            candidates is used.
        interval : {"theorem", "clopper_pearson"}, default="theorem"
            "theorem" is the bound known before any label is observed, and
            "clopper_pearson" is the tighter bound based on the observed labels.

        Returns
        -------
        certificate : CalibrationCertificate
            Tolerance, level, intervals by bin and assumptions; ``print`` explains it in
            words. Its first assumption cannot be checked here: the scores must come
            from *one* model that was fitted to other samples.

        Raises
        ------
        ValueError
            If the theory gives no guarantee. The message states the reason.

        References
        ----------
        Gupta and Ramdas (2021), Distribution-free calibration guarantees for histogram
        binning without sample splitting.
        """
        check_fitted(self)
        if self._no_certificate:
            raise ValueError(f"No certificate: {self._no_certificate}")
        problems = getattr(self, "estimators_", [self])
        if len(problems) > 1 and self.normalize:
            raise ValueError(
                "No certificate for one-vs-rest probabilities that were normalised to"
                " sum to 1: a certificate is for each class's own probability. Fit with"
                " normalize=False."
            )
        if confidence_level is None:
            confidence_level = getattr(self, "confidence_level", _DEFAULT_LEVEL)
        if hasattr(n_candidates, "cv_results_"):
            n_candidates = len(n_candidates.cv_results_["params"])
        certificate = self._issue_certificate(
            problems,
            confidence_level=confidence_level,
            kind=kind,
            n_candidates=n_candidates,
            interval=interval,
        )
        if self._tuned and n_candidates == 1:
            # The last assumption is that this recalibrator was not chosen by means of
            # these rows. A sentence that names the parameters set by `set_params`
            # takes its place.
            sentence = (
                f"No search chose {self._tuned} on these samples. (set_params set it,"
                " which may have been a search: if so, pass n_candidates=search, and"
                " the guarantee allows for it.)"
            )
            certificate = replace(
                certificate, assumptions=(*certificate.assumptions[:-1], sentence)
            )
        if len(self.classes_) > 2 and self.multiclass == "top_label":
            sentence = (
                "The guarantee is for the probability of the predicted class; the model"
                " alone decides which class that is."
            )
            certificate = replace(
                certificate, assumptions=(*certificate.assumptions, sentence)
            )
        return certificate

    def set_params(self, **params: Any) -> Self:
        """Set parameters.

        A certificate lists those that were set, because a search may have chosen them.

        Parameters
        ----------
        **params : dict
            Parameters by name, including nested ones of a default object.

        Returns
        -------
        self : object
            The estimator.

        Raises
        ------
        ValueError
            If there is no such parameter.
        """
        # `_tuned` holds the names of the parameters set so far, separated by commas.
        names = {*params}
        if self._tuned:
            names.update(self._tuned.split(", "))
        names = names.difference(_NEVER_TUNED)
        if names:
            self._tuned = ", ".join(sorted(names))
        return super().set_params(**params)

    def _start_fit(self, scores, codes, sample_weight, shortcuts):
        """Allow certificates again, and remember the parameters of the fit; return the
        scores (n, C) that the bins are fitted to.
        """
        vars(self).pop("_no_certificate", None)  # a reason against them, if there was
        self._remember_parameters()
        return super()._start_fit(scores, codes, sample_weight, shortcuts)

    def _forbid_certificate(self, reason):
        """Issue no certificate until the next fit, for a reason that is a sentence."""
        self._no_certificate = reason


def certify_independent_bins(problems, edges, *, interval, **options):
    """Return the certificate of bins that do not depend on the samples counted in them.

    `problems` are the fitted recalibrators of the binary problems. `edges` says why
    their bins are independent: "split" if they come from other samples, "fixed" if they
    were given. `interval` and `options` are the arguments of `certificate`.
    """
    # imported here: fits do not need it
    from skcalib.guarantees import independent_bins_certificate

    if interval == "theorem":
        interval = "hoeffding"
    return independent_bins_certificate(
        [problem.bin_positives_ for problem in problems],
        [problem.bin_counts_ for problem in problems],
        [problem.bin_values_ for problem in problems],
        edges=edges,
        interval=interval,
        **options,
    )


def certify_groups(recalibrators, level, kind, **options):
    """Return one certificate, at the confidence level `level`, for the fitted
    recalibrators of all groups.

    The groups must have been fixed beforehand. A "conditional" guarantee (`kind`) is
    for all predicted probabilities: each group gets the higher level at which the union
    bound gives `level` for all groups together. A "marginal" guarantee is for the
    probability of one random future sample. It belongs to one group only, so that each
    group keeps `level`. `options` holds the other arguments of `certificate`.
    """
    from skcalib.guarantees._uniform_mass import union_level

    level_of_each = level
    if kind == "conditional":
        level_of_each = union_level(level, len(recalibrators))
    certificates = []
    for recalibrator in recalibrators:
        certificates.append(recalibrator.certificate(level_of_each, kind, **options))
    assumptions_of_groups = (
        (
            "The groups were fixed before these samples were seen, and every future"
            " sample belongs to one of them."
        ),
        f"The guarantee holds for all {len(certificates)} groups together.",
    )

    def entries_of_all(name):
        """Return the field `name` of all certificates as one tuple, with an entry for
        each binary problem of each certificate.

        The field of a certificate is a tuple of entries, or a single entry if it has
        one problem.
        """
        entries = []
        for certificate in certificates:
            if certificate.n_problems == 1:
                entries.append(getattr(certificate, name))
            else:
                entries += getattr(certificate, name)
        return tuple(entries)

    # The tolerance of all groups together is the largest one.
    return replace(
        max(certificates, key=lambda certificate: certificate.epsilon),
        confidence_level=level,
        n_samples=sum(certificate.n_samples for certificate in certificates),
        assumptions=(*certificates[0].assumptions, *assumptions_of_groups),
        n_bins=entries_of_all("n_bins"),
        low=entries_of_all("low"),
        high=entries_of_all("high"),
    )


def forbid_certificates(recalibrator, reason):
    """Make a fitted recalibrator, and those inside it, refuse to issue certificates,
    for a reason that is given as a sentence.
    """
    if isinstance(recalibrator, CertifiedMixin):
        recalibrator._forbid_certificate(reason)
    for inner in _inner_recalibrators(recalibrator):
        forbid_certificates(inner, reason)


def _inner_recalibrators(recalibrator):
    """Yield the fitted recalibrators inside a pipeline, a wrapper, a stack or a
    recalibrator of groups. A frozen recalibrator belongs to the user, and yields
    nothing.
    """
    if isinstance(recalibrator, FrozenEstimator):
        return
    if isinstance(recalibrator, Pipeline):
        yield from recalibrator.named_steps.values()
    for name in ("recalibrator_", "pooled_recalibrator_"):
        if hasattr(recalibrator, name):
            yield getattr(recalibrator, name)
    members = getattr(recalibrator, "recalibrators_", [])
    if isinstance(members, dict):
        members = members.values()
    yield from members


def forbid_certificates_of_pairs(pairs, estimator):
    """Forbid certificates for pairs of a classifier and its recalibrator, unless one
    frozen classifier gave all scores.

    `estimator` is the unfitted classifier of the pairs.
    """
    if len(pairs) > 1:
        reason = (
            f"forecasts are averaged over {len(pairs)} classifiers, each with its"
            " recalibrator."
        )
    else:
        reason = (
            "it was fitted to out-of-fold scores of several classifiers, and"
            " recalibrates those of another classifier."
        )
    if len(pairs) > 1 or not isinstance(estimator, FrozenEstimator):
        for pair in pairs:
            forbid_certificates(
                pair.recalibrator,
                f"{reason} A guarantee needs one FrozenEstimator and data that it was"
                " not fitted to.",
            )
