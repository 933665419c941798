"""Limits for the event frequency at each score: `predict_interval`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skcalib._defaults import check_fitted
from skcalib._input.scalars import check_confidence_level
from skcalib._input.warn import warn
from skcalib._intervals.one_probability.lazy import NO_LIMITS
from skcalib._intervals.one_probability.normal import why_none
from skcalib._intervals.one_probability.samples import widened_limits
from skcalib._intervals.one_probability.states import has_few_events
from skcalib._rows.blocks import row_blocks

_ARRAYS_OF_LIMITS = 2  # of the size of the probabilities, while limits are computed


class IntervalMixin:
    """Adds `predict_interval` to the methods that say how their fit varies.

    The fit of such a method returns a `LimitsMaker`, from which `_limits` is made. The
    method defines ``_limits_at(level)``, which returns a function of validated scores
    (n, C), in which impossible classes are marked, and calibrated probabilities (n, K);
    of a method with a parameter `features`, also of these by name. That function
    returns the lower and the upper limits: (n, K) and (n, K), or (n,) and (n,) for the
    second of two classes.
    """

    # What the limits are computed from.
    _limits = NO_LIMITS

    def predict_interval(
        self, X: ArrayLike, confidence_level: float = 0.9
    ) -> np.ndarray:
        """Return limits for the event frequency at each score.

        The calibrated probability estimates how often the event happens among samples
        with this score. The limits say how far it may be off because the map was fitted
        to a finite number of samples. They are pointwise: each interval covers its own
        frequency at about the stated level, if the method's form is right.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1).

        Returns
        -------
        limits : ndarray of float64, shape (n, 2) or (n, n_classes, 2)
            Lower and upper limit of the frequency of the event, the second class; for
            more than two classes, of each class. They contain the calibrated
            probability.

        Raises
        ------
        ValueError
            If the method has no such limits (the message says why), if scores are
            invalid, or if their number of columns differs from that in `fit`.

        Warns
        -----
        UserWarning
            If there were fewer than ten events, or fewer than ten of the other label:
            the limits then cover less often than stated. Or if clusters leave the
            limits of a regression or a softmax unknown, which then are NaN: their
            variance has fewer than 4 degrees of freedom, or the rarer label is worth
            fewer than 20 independent samples.

        Notes
        -----
        Regressions on the log-odds (`PlattScaling`, `BetaCalibration`,
        `QuadraticScaling`, `TemperatureScaling`): for the limits alone, the curve is
        fitted once more to the labels 0 and 1, with Jeffreys' penalty [1]_ and without
        the ridge of the map; they are normal on the log-odds, with the larger one of
        two variances, the inverse curvature and the sandwich HC3 [2]_ (with weights the
        sandwich). Few samples say how a third parameter bends the ends of a steep
        curve: without weights and clusters, curves of three parameters take in profile
        limits of the penalised likelihood [3]_. In simulations with a curve of that
        form, limits of .9 cover .83 to .95. Limits cannot know that the form is wrong:
        those of a straight line cover .17 of a curve with plateaus at 10,000 samples,
        and those of a temperature nothing where all scores have the frequency .3.
        They take a learned floor as given, and cover .61 to .92 where the truth has a
        floor of .03, and .09 in the worst world of a search, where most scores are next
        to 1.

        With clusters, the variance of a regression or a softmax comes from the steps
        that the fit takes without one of them (CR3), with Satterthwaite's degrees of
        freedom [4]_: in simulations of 20 to 40 clusters, of which a few hold most
        samples, limits of .9 cover .81 to .90. Ten clusters mostly leave them NaN; the
        others cover .80 to .84.

        `VectorScaling`, `MatrixScaling`, `DirichletCalibration`, and temperatures of
        more than two classes or with `features`: the delta method on the log-odds of
        each class, about the fitted curve, with the larger of both variances.

        Coefficients of `features` are parameters like others; their ridge is taken as
        given. Limits of .9 cover .83 to .89 with 200 samples, those of temperatures .80
        to .82.

        Bins: Wilson's limits for the frequency among the samples of the score's bin.
        Inside a bin the frequency at one score may differ from it.

        `SplineCalibration`: limits from the posterior of the curve given its penalty,
        at most 1. They are stated, not guaranteed: .79 to .95 in simulations of smooth
        curves, .38 to .72 of plateaus.

        `StackedRecalibrator`: the root mean square, by the members' weights, of the
        distances from the stack's probability to the limits of each member; stated, not
        guaranteed: .86 to .98 in simulations of smooth curves, .66 to .82 where 100
        samples have plateaus or an S-shaped curve, .78 with 100 clusters of ten: the
        members' weights are taken as known. No fit is repeated: a bootstrap of the
        members would cost 25 fits or more. `Recalibrator`: the limits of the map
        that it tried, also where it keeps the scores. `PriorShift`: the probabilities
        at the limits of its `target_mean`, if that is an interval; limits of another
        level than the interval's are normal ones on the log-odds.

        `IsotonicCalibration` and `VennAbers`: all frequencies that the likelihood ratio
        does not reject for a curve that never falls [5]_, at the quantile of the
        chi-square law, which is careful where the curve rises. With ten clusters, those
        of .9 cover .77.

        Samples of a fit with weights were each seen once, whatever they weigh: weights
        that add up to the same total widen the limits the more they differ. The labels
        that `expand_soft_labels` makes of one sample are one cluster.

        References
        ----------
        .. [1] Firth (1993), Bias reduction of maximum likelihood estimates.
        .. [2] MacKinnon and White (1985), Some heteroskedasticity-consistent covariance
           matrix estimators with improved finite sample properties.
        .. [3] Heinze and Schemper (2002), A solution to the problem of separation in
           logistic regression.
        .. [4] Bell and McCaffrey (2002), Bias reduction in standard errors for linear
           regression with multi-stage samples.
        .. [5] Banerjee and Wellner (2001), Likelihood ratio tests for monotone
           functions.

        Examples
        --------
        Samples with score s are events with probability s.

        >>> import numpy as np
        >>> from skcalib import PlattScaling
        >>> rng = np.random.default_rng(0)
        >>> scores = rng.random(300)
        >>> platt = PlattScaling().fit(scores, rng.random(300) < scores)
        >>> platt.predict_interval([0.1, 0.5, 0.9]).round(2).tolist()
        [[0.04, 0.11], [0.38, 0.5], [0.85, 0.94]]
        """
        check_fitted(self)
        level = check_confidence_level(confidence_level)
        reason = self._why_no_limits()
        if reason:
            raise ValueError(self._no_interval(reason))
        warning = self._limits_warning()
        if warning:
            warn(warning)
        scores, features = self._read_rows(X)
        return self._limits_checked(scores, level, features)

    def _limits_warning(self):
        """Return what a warning says about the limits, else an empty text."""
        unknown = self._why_nan_limits()
        if unknown:
            return f"The limits are NaN: {unknown}."
        if has_few_events(self._limits.state):
            return (
                "The recalibrator was fitted to fewer than ten events, or to fewer than"
                " ten samples of the other label: the limits hold less often than"
                " stated."
            )
        return ""

    def _limits_checked(self, scores, level, features=None):
        """Return the limits (n, 2) or (n, K, 2) at scores (n, C) that were validated;
        `features` are (n, n_features) or None.
        """
        limits_at = self._limits_at(level)
        n_classes = len(self.classes_)
        shape = (len(scores), 2)
        if n_classes > 2:
            shape = (len(scores), n_classes, 2)
        limits = np.empty(shape)
        for rows in row_blocks(len(scores), _ARRAYS_OF_LIMITS * n_classes):
            columns = {}
            if features is not None:
                columns["features"] = features[rows]
            probabilities = self._predict_checked(scores[rows], **columns)
            marked_scores, _ = self._with_marks(scores[rows])
            limits[rows] = widened_limits(
                *limits_at(marked_scores, probabilities, **columns), probabilities
            )
        return limits

    def _why_no_limits(self):
        if self._has_limits():
            return ""
        return super()._why_no_limits()

    def _has_limits(self):
        """Return whether there are limits for one probability; make their state."""
        return self._limits.state is not None

    def _why_nan_limits(self):
        """Return why clusters leave the limits unknown, else an empty text."""
        return why_none(self._limits.state)
