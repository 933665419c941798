"""Labelled samples and new ones: event frequencies at new scores, and known labels."""

import numpy as np

from skcalib._cells.columns import binary_rows
from skcalib._input.classes import in_order_of
from skcalib._input.label_weights import label_weights, warn_of_counts
from skcalib._input.labels import check_groups, missing_values
from skcalib._input.scalars import check_option
from skcalib._input.scored_labels import check_scored_labels
from skcalib._input.scores import checked_scores
from skcalib._input.sklearn_private import num_samples
from skcalib._intervals.influence import Influence, Spread, cluster_codes
from skcalib._rows.blocks import effective_size, row_blocks, taken, weights_or_ones
from skcalib.binning import EqualMass, check_binning

# Known labels are mixed with the scores from so many on, and so many of the rarer kind.
_FEWEST_KNOWN = 30
_FEWEST_OF_A_KIND = 10
# Strata that estimate the probability of being labelled hold so many known labels.
_KNOWN_PER_STRATUM = 20


class LabelledSamples:
    """Labelled samples: scores of one event, whether it occurred, and weights.

    With more than two classes, the event is that the predicted class is correct.

    Attributes
    ----------
    scores, events : ndarray of shape (n,)
        Score of the event, and whether it occurred.
    weight : ndarray of shape (n,) or None
        Sample weights, with the meaning given by `weight_type`.
    cluster : ndarray of int, shape (n,), or None
        Codes of the clusters.
    classes : ndarray of shape (n_classes,)
        The labels. If there are two, the event is the second.
    lowest, highest : float
        Range of the scores.
    is_binary : bool
        Whether there are two classes.
    label_weights : LabelWeights or None
        What importance weights say about the labels; None if weights count samples.
    """

    def __init__(
        self, y_true, y_proba, sample_weight, weight_type, clusters, pos_label, labels
    ):
        data = check_scored_labels(
            y_true,
            y_proba,
            sample_weight=sample_weight,
            pos_label=pos_label,
            labels=labels,
            drop=False,
        )
        known = label_weights(
            data.labels,
            data.sample_weight,
            weight_type,
            data.classes,
            scores=data.scores,
        )
        is_used = data.kept  # of a weight above 0
        if data.sample_weight is not None:
            data = data.at(is_used)
        self.label_weights = taken(known, is_used)
        if known is None:
            warn_of_counts(data.labels, data.sample_weight)
        self.classes = data.classes
        self.is_binary = data.is_binary
        if data.is_binary:
            self.scores = data.scores
            self.events = data.labels
        else:
            # The event is "the predicted class is right".
            self.scores, self.events = next(binary_rows(data, "top_label"))
        self.weight = data.sample_weight
        self.cluster = None
        if clusters is not None:
            _, codes = check_groups(clusters, num_samples(y_true), name="clusters")
            self.cluster = cluster_codes(codes[is_used])
        self.lowest = self.scores.min()
        self.highest = self.scores.max()

    @property
    def is_importance(self):
        """Whether each sample was seen once, whatever its weight."""
        return self.label_weights is not None

    @property
    def has_unknown_weights(self):
        """Whether importance weights say nothing of the weight of the other label."""
        return self.is_importance and not self.label_weights.is_known

    def new_scores(self, y_proba_new):
        """Return the scores of the event (n_new,) and the predicted labels (n_new,),
        which are None for two classes.
        """
        # None stands for the other label where the data have the positive one alone.
        if None not in self.classes.tolist():
            y_proba_new = in_order_of(
                y_proba_new,
                np.sort(self.classes),
                name="y_proba_new",
                classes_name="the labels",
            )
        # From three columns on, the predicted class is returned, and its probability;
        # tensors on a device may stay there.
        scores, predicted, confidence = checked_scores(
            y_proba_new, name="y_proba_new", predict_from=3, may_stay=True
        )
        if not self.is_binary:
            if scores.shape[1] != len(self.classes):
                raise ValueError(
                    f"y_proba_new has {scores.shape[1]} columns and y_proba has"
                    f" {len(self.classes)}."
                )
            return confidence, self.classes[predicted]
        if scores.shape[1] > 2:
            raise ValueError(
                f"y_proba_new has {scores.shape[1]} columns, but y_proba is for one"
                " event."
            )
        if scores.shape[1] == 1:
            return scores[:, 0], None
        # `classes` has the positive class last, the columns are in sorted order.
        negative, positive = self.classes
        column_of_event = int(positive > negative)
        return scores[:, column_of_event], None


class ResidualCurve:
    """Event frequency at new scores: the score plus the mean residual of its bin.

    Parameters
    ----------
    labelled : LabelledSamples
        The samples from which the residuals are computed.
    new_scores : ndarray of shape (n_new,)
        Scores of the new samples.
    binning : BaseBinning, int or None
        Bins of the labelled scores; None means about 2 n^(1/3) equal-mass bins.
    threshold : float
        Decision threshold, which is an edge of a bin.

    Attributes
    ----------
    frequency : ndarray of shape (n_new,)
        Estimated probability of the event of each new sample.
    n_bins : int
        Number of bins.
    new_bins : ndarray of int, shape (n_new,)
        Bin of each new sample.
    smoothed : ndarray of shape (n_bins,)
        Event frequency of each bin after adding half an event and half a non-event, so
        that it is neither 0 nor 1.
    variance_of_bin : ndarray of shape (n_bins,)
        Variance of the mean residual of each bin, for independent samples.
    """

    def __init__(self, labelled, new_scores, binning, threshold):
        cuts = _cuts(labelled, binning, threshold)
        n_bins = len(cuts) + 1
        # Bin of each labelled sample, and sums over the labelled samples of each bin.
        bins = np.searchsorted(cuts, labelled.scores)
        weight = weights_or_ones(labelled.weight, len(bins))
        total = np.bincount(bins, weight, n_bins)
        events = np.bincount(bins, weight * labelled.events, n_bins)
        residual = np.bincount(
            bins, weight * (labelled.events - labelled.scores), n_bins
        )
        # The mean residual is added to scores of the bin. It is 0 in a bin without
        # labelled samples, which the threshold as an edge can make.
        mean_residual = np.divide(
            residual, total, out=np.zeros(n_bins), where=total > 0
        )
        # Bin and event frequency of each new sample, (n_new,).
        self.new_bins = np.searchsorted(cuts, new_scores)
        self.frequency = np.clip(new_scores + mean_residual[self.new_bins], 0, 1)
        self.n_bins = n_bins
        # The effective sample size of each bin, with w1 w0 in place of w^2 if the
        # weights of both labels are known. A frequency weight w stands for w samples of
        # weight 1, with w as the sum of their squares.
        squared_weight = weight
        if labelled.is_importance:
            squared_weight = weight * labelled.label_weights.other_or_same
        sum_of_squares = np.bincount(bins, squared_weight, n_bins)
        n_effective = effective_size(total, sum_of_squares)
        share = np.divide(events, total, out=np.full(n_bins, 0.5), where=total > 0)
        # Half an event and half a non-event are added (one pseudo-observation).
        smoothed = (share * n_effective + 0.5) / (n_effective + 1)
        # Variance of the mean residual of each bin, for independent samples. There is
        # one degree of freedom less, since the mean itself is estimated.
        degrees = np.maximum(n_effective - 1, 1)
        self.variance_of_bin = smoothed * (1 - smoothed) / degrees
        self.smoothed = smoothed
        # The labelled samples, and the bin of each, (n,).
        self._labelled = labelled
        self._bins = bins
        # For clusters and unknown weights, the influence (n,) of each labelled sample
        # on the mean residual of its bin: its deviation from the mean times the total
        # weight over that of the bin.
        self._influence = None
        if labelled.cluster is not None or labelled.has_unknown_weights:
            centred = labelled.events - labelled.scores - mean_residual[bins]
            if labelled.has_unknown_weights:
                # The deviation from the mean of the others in the bin (HC3), which a
                # heavy sample does not draw to itself.
                share = weight / total[bins]
                centred = centred / np.where(share < 1, 1 - share, 1.0)
            self._influence = centred * weight.sum() / total[bins]

    def spread_of_curve(self, slope):
        """Return the `Spread` (standard error and degrees of freedom) of the mean over
        new samples of ``slope * frequency``, where the frequency is estimated from the
        labelled samples; `slope` is (n_new,).
        """
        # How much the mean changes with the mean residual of each bin, (n_bins,).
        coefficient = np.bincount(self.new_bins, slope, self.n_bins) / len(slope)
        labelled = self._labelled
        binomial = np.sqrt(np.sum(coefficient**2 * self.variance_of_bin))
        if self._influence is None:
            return Spread(float(binomial), np.inf)
        influence = Influence(
            coefficient[self._bins] * self._influence,
            labelled.weight,
            labelled.is_importance,
            labelled.cluster,
        )
        if labelled.has_unknown_weights:
            # The variance comes from observed residuals, which needs enough events.
            reason = labelled.label_weights.reason(labelled.events)
            return Spread(np.nan, np.nan, reason) if reason else influence.spread()
        clustered = influence.spread()
        # The standard error is at least that of independent samples.
        error = np.maximum(binomial, clustered.standard_error)
        return clustered._replace(standard_error=float(error))

    def variance_of_labels(self, slope):
        """Return the variance of the mean of ``slope * label`` over the new samples,
        whose labels are independent given the scores; `slope` is (n_new,).
        """
        total = 0.0
        for rows in row_blocks(len(slope)):
            frequency = self.frequency[rows]
            # A frequency of 0 or 1 is smoothed: a bin without events among the labelled
            # samples does not rule out events among the new ones.
            frequency = np.where(
                (frequency > 0) & (frequency < 1),
                frequency,
                self.smoothed[self.new_bins[rows]],
            )
            total += np.sum(slope[rows] ** 2 * frequency * (1 - frequency))
        return total / len(slope) ** 2


def _cuts(labelled, binning, threshold):
    """Return the inner edges of the bins (n_bins - 1,), the threshold among them."""
    if binning is None:
        n_rows = len(labelled.scores)
        if labelled.weight is not None and not labelled.is_importance:
            n_rows = max(1, round(float(labelled.weight.sum())))
        # 2 n^(1/3), rounded up; the root of a cube may be too large by rounding.
        n_bins = int(np.ceil(2 * n_rows ** (1 / 3) - 1e-9))
        binning = EqualMass(n_bins)
    strategy = check_binning(binning)
    edges = strategy.bin_edges(labelled.scores, labelled.events, labelled.weight)
    cuts = edges[1:-1]
    if 0 < threshold <= 1:
        # Bins are right-closed, and a score equal to the threshold is above it.
        cuts = np.union1d(cuts, [np.nextafter(threshold, 0)])
    return cuts


class KnownLabels:
    """Labels of new samples: which are known, and with what probability.

    Parameters
    ----------
    y_new : array-like of shape (n_new,) or None
        Labels; unknown labels are missing values.
    scores : ndarray of shape (n_new,)
        Scores of the event.
    predicted : ndarray of shape (n_new,) or None
        Predicted labels, for more than two classes.
    labelled : LabelledSamples
        The labelled samples, for their classes.
    sampling_probability : float, array-like of shape (n_new,) or None
        Probability with which each label was requested.
    missing : {None, "at_random"}
        Whether labels are missing at random, given the score.

    Attributes
    ----------
    is_known : ndarray of bool, shape (n_new,)
        Whether the label is known.
    label : ndarray of shape (n_new,)
        1 for an event, 0 for a non-event or an unknown label.
    probability : ndarray of shape (n_new,)
        Probability that the label becomes known.
    sampled : bool
        Whether these probabilities were given rather than estimated.
    missing : {None, "at_random"}
        The parameter `missing`, unchanged.
    """

    def __init__(
        self, y_new, scores, predicted, labelled, sampling_probability, missing
    ):
        check_option(missing, "missing", (None, "at_random"))
        n_new = len(scores)
        self.missing = missing
        self.sampled = sampling_probability is not None
        # Of each new sample, (n_new,): whether its label is known, the label (1 for an
        # event, else 0), and the probability with which it became known.
        self.is_known = np.zeros(n_new, dtype=bool)
        self.label = np.zeros(n_new)
        self.probability = np.ones(n_new)
        if y_new is None:
            for name, value in (
                ("sampling_probability", sampling_probability),
                ("missing", missing),
            ):
                if value is not None:
                    raise ValueError(
                        f"{name} describes which labels of y_new are known: pass y_new."
                    )
            return
        values = np.asarray(y_new)
        if values.shape != (n_new,):
            raise ValueError(
                f"y_new must contain a label for each of the {n_new} rows of"
                f" y_proba_new, found shape {values.shape}."
            )
        self.is_known = ~missing_values(values)
        self._set_labels(values, predicted, labelled)
        if self.is_known.all():
            return
        if self.sampled and missing is not None:
            raise ValueError(
                "Give sampling_probability or missing='at_random', not both."
            )
        if self.sampled:
            self.probability = _checked_probability(sampling_probability, self.is_known)
        elif missing == "at_random":
            self.probability = _share_known(scores, self.is_known)
        else:
            raise ValueError(
                f"y_new is unknown in {np.sum(~self.is_known)} of {n_new} rows. Labels"
                " that arrive first are rarely a random sample: pass"
                " sampling_probability, or missing='at_random' if whether a label is"
                " known does not depend on the label."
            )

    def _set_labels(self, values, predicted, labelled):
        """Set the known labels as events: the positive class, or whether the predicted
        class is right.
        """
        rows = np.flatnonzero(self.is_known)
        found = values[rows]
        known_classes = set(labelled.classes.tolist())
        for row, label in zip(rows, found.tolist(), strict=True):
            if label not in known_classes:
                raise ValueError(
                    f"y_new has the unknown label {label!r} in row {row}; the labels"
                    f" are {labelled.classes.tolist()}."
                )
        if predicted is None:
            self.label[rows] = found == labelled.classes[1]
        else:
            self.label[rows] = found == predicted[rows]

    @property
    def are_enough(self):
        """Whether there are enough labels to be combined with the scores."""
        n_known = self.is_known.sum()
        events = self.label[self.is_known].sum()
        rarer = min(events, n_known - events)
        # If all are known, nothing is left for the scores to say.
        all_known = n_known == len(self.is_known)
        return n_known >= _FEWEST_KNOWN and (rarer >= _FEWEST_OF_A_KIND or all_known)

    @property
    def reason_for_few(self):
        """Why the known labels alone have no interval."""
        n_known = int(self.is_known.sum())
        if n_known < _FEWEST_KNOWN:
            return f"only {n_known} labels are known"
        events = int(self.label[self.is_known].sum())
        if 2 * events <= n_known:
            return f"only {events} of the {n_known} known labels are events"
        return f"only {n_known - events} of the {n_known} known labels are non-events"

    def filled(self, frequency):
        """Return each label's expectation (n_new,), corrected if the label is known:
        the mean is the augmented inverse-probability-weighted estimate of the event
        frequency. `frequency` (n_new,) is the expectation given the score alone.
        """
        residual = np.where(self.is_known, self.label - frequency, 0.0)
        return frequency + residual / self.probability


def _checked_probability(sampling_probability, is_known):
    """Return the probability (n_new,) with which each label was asked for, or raise; 1
    where it is not needed.
    """
    n_new = len(is_known)
    probability = np.asarray(sampling_probability, dtype=np.float64)
    if probability.shape not in ((), (n_new,)):
        raise ValueError(
            "sampling_probability must be a number or one for each row of y_proba_new,"
            f" found shape {probability.shape}."
        )
    probability = np.broadcast_to(probability, (n_new,))
    # Only those of known labels are needed.
    is_missing = np.isnan(probability) & ~is_known
    wrong = ~((probability > 0) & (probability <= 1)) & ~is_missing
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"sampling_probability must lie in (0, 1], found {probability[row]} in row"
            f" {row}."
        )
    return np.where(is_missing, 1.0, probability)


def _share_known(scores, is_known):
    """Return the share of known labels among new samples of similar score (n_new,): in
    strata of the scores with about equally many known labels.
    """
    n_strata = max(1, int(is_known.sum() // _KNOWN_PER_STRATUM))
    cuts = np.empty(0)
    if n_strata > 1:
        known_scores = np.sort(scores[is_known])
        # Number of known labels up to the end of each stratum but the last: the score
        # of the last of them is a cut.
        n_up_to_end = np.arange(1, n_strata) * len(known_scores) // n_strata
        cuts = np.unique(known_scores[n_up_to_end - 1])
    stratum = np.searchsorted(cuts, scores)
    n_known = np.bincount(stratum, is_known, len(cuts) + 1)
    n_all = np.bincount(stratum, minlength=len(cuts) + 1)
    share_of_stratum = n_known / np.maximum(n_all, 1)
    return share_of_stratum[stratum]
