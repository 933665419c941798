"""What few events say: how many independent events the samples are worth, and which
sums over samples are as likely as the observed one.

Without an event the residuals of the labels are a function of the scores, and their
spread says nothing about noise. So tests take the spread of labels that are drawn where
few events are expected, then the variance of such labels, and the observed spread only
where there are enough events to show it.
"""

import numpy as np

from skcalib._rows.blocks import effective_size, weights_or_ones

# With fewer events sums over labels are drawn; from here on they are normal.
FEWEST_FOR_NORMAL = 10.0
# From this number of events on, the observed spread is that of the labels.
FEWEST_FOR_SPREAD = 20.0
# Labels that are drawn for a sum, all draws together.
_MOST_LABELS = 4e6
_MOST_DRAWS = 9999
_FEWEST_DRAWS = 399
# Where more than this share of the labels is uncertain, each is drawn; below, only
# those are listed that are not the most probable ones of their rows.
_MANY_UNCERTAIN = 0.1
_LABELS_AT_ONCE = 1e6
# If a row is an event with a larger probability, few samples hold no row twice.
_LIKELY = 0.25


def effective_events(
    labels,
    weight=None,
    importance=False,
    cluster=None,
    residual=None,
    *,
    dependence_factor=1.0,
):
    """Return how many independent samples the rarer label is worth.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Labels, 0 or 1.
    weight : ndarray of shape (n,), default=None
        Positive weights; None means 1.
    importance : bool, default=False
        Whether a row was seen once whatever its weight: weights then are worth Kish's
        number of samples. False: weights count rows.
    cluster : ndarray of int, shape (n,), default=None
        Cluster of each row, 0 to G - 1: the number is divided by the design effect of
        the residuals, the variance of their sum from the sums of clusters over that of
        independent rows, where it is above 1.
    residual : ndarray of shape (n,), default=None
        Labels less what is expected of them; needed with clusters.
    dependence_factor : float, default=1.0
        What the excess of the design effect over 1 is multiplied by; above 1 the number
        is a cautious one.
    """
    weight = weights_or_ones(weight, len(labels))
    row_square = weight**2 if importance else weight
    fewest = np.inf
    for label in (0, 1):
        has_label = labels == label
        size = effective_size(weight[has_label].sum(), row_square[has_label].sum())
        fewest = min(fewest, size)
    if cluster is None:
        return float(fewest)
    # The variance of the sum of residuals, from the sums of clusters (n / (n - 1) for
    # their estimated mean), over that of independent rows.
    sums = np.bincount(cluster, weight * residual)
    independent_variance = np.sum(row_square * residual**2)
    if independent_variance == 0:
        return float(fewest)
    effect = sums @ sums * len(sums) / (len(sums) - 1) / independent_variance
    return float(fewest / (1 + dependence_factor * max(effect - 1, 0)))


def sums_of_drawn_labels(probability, values, copies, rng):
    """Return sums over rows of the values of their labels, (n_draws,), if labels are
    independent: 399 to 9,999 draws, the fewer the more labels are uncertain.

    Parameters
    ----------
    probability : ndarray of shape (n, K)
        Probabilities of the labels.
    values : ndarray of shape (n, K)
        What each label adds to the sum.
    copies : ndarray of shape (n,) or None
        How many samples each row stands for; None means 1.
    rng : numpy.random.Generator
        Random numbers.
    """
    n_rows = len(probability)
    copies = weights_or_ones(copies, n_rows)
    # 1. A sample has the most probable label of its row, unless another one is drawn
    # for it. It is drawn a Poisson number of times with mean -log(probability of that
    # label): the number is 0 with this probability.
    usual = probability.argmax(axis=1)[:, None]
    usual_value = np.take_along_axis(values, usual, axis=1)
    usual_probability = np.take_along_axis(probability, usual, axis=1)[:, 0]
    mean_number = -np.log(np.minimum(usual_probability, 1.0)) * copies
    expected = mean_number.sum()
    n_draws = int(np.clip(_MOST_LABELS / max(expected, 1), _FEWEST_DRAWS, _MOST_DRAWS))
    n_labels = copies.sum() * (probability.shape[1] - 1)
    is_whole = np.all(copies % 1 == 0)
    if is_whole and expected > _MANY_UNCERTAIN * n_labels:
        return _sums_of_all_labels(probability, values, copies, n_draws, rng)
    others = probability.copy()
    np.put_along_axis(others, usual, 0.0, axis=1)
    cumulative_others = np.cumsum(others, axis=1)
    added_value = values - usual_value
    sums = np.full(n_draws, float(copies @ usual_value[:, 0]))
    if expected == 0:
        return sums
    cumulative = np.cumsum(mean_number)
    at_once = max(int(1e7 / max(expected, 1)), 1)  # sums that memory holds together
    for start in range(0, n_draws, at_once):
        number = rng.poisson(expected, min(at_once, n_draws - start))
        draw = np.repeat(np.arange(len(number)), number)
        row = _rows_drawn(cumulative, len(draw), rng)
        # 2. The first draw of a sample, one of the copies of its row, decides.
        copy = np.floor(rng.random(len(row)) * copies[row])
        sample = (draw * (copies.max() + 1) + copy) * n_rows + row
        _, first = np.unique(sample, return_index=True)
        draw, row = draw[first], row[first]
        # 3. Its label is one of the others, in proportion to their probabilities.
        position = rng.random(len(row)) * cumulative_others[row, -1]
        label = np.sum(cumulative_others[row] <= position[:, None], axis=1)
        label = np.minimum(label, probability.shape[1] - 1)
        added = np.bincount(draw, added_value[row, label], len(number))
        sums[start : start + len(number)] += added
    return sums


def _sums_of_all_labels(probability, values, copies, n_draws, rng):
    """Return sums (n_draws,) as `sums_of_drawn_labels` does, drawing every label."""
    n_rows, n_classes = probability.shape
    sample = np.repeat(np.arange(n_rows), copies.astype(np.intp))
    # A sample has class k or a later one where its uniform number is above the
    # probability of all classes before, and its value then changes by a step.
    before = np.cumsum(probability, axis=1)[sample]
    steps = np.diff(values, axis=1)[sample]
    sums = np.full(n_draws, values[sample, 0].sum())
    at_once = max(int(_LABELS_AT_ONCE / len(sample)), 1)
    for start in range(0, n_draws, at_once):
        draws = slice(start, min(start + at_once, n_draws))
        uniform = rng.random((draws.stop - draws.start, len(sample)))
        for k in range(n_classes - 1):
            sums[draws] += (uniform > before[:, k]) @ steps[:, k]
    return sums


def sums_given_number_of_events(probability, values, n_events, copies, rng):
    """Return sums of the values of those rows that have the event, (n_draws,), if rows
    are independent and it is known how many events there are.

    A set of rows has a probability that is proportional to the product of its odds,
    whatever factor all odds have in common.

    Parameters
    ----------
    probability : ndarray of shape (n,)
        Probabilities of the event, in (0, 1), whose sum over all copies is `n_events`.
    values : ndarray of shape (n,)
        What an event in a row adds to the sum.
    n_events : int
        Number of events.
    copies : ndarray of shape (n,) or None
        How many samples each row stands for; None means 1.
    rng : numpy.random.Generator
        Random numbers.
    """
    copies = weights_or_ones(copies, len(probability))
    odds = probability / (1 - probability)
    share = odds * copies / np.sum(odds * copies)
    # 1. Rows drawn one after another have that law if all are different: samples of
    # rows are drawn until enough of them hold no row twice.
    if probability.max() <= _LIKELY:
        n_pairs = n_events * (n_events - 1) / 2
        # About exp(-collisions) of the samples hold no row twice, where `collisions` is
        # the expected number of pairs of equal rows.
        collisions = n_pairs * np.sum(share**2 / copies)
        n_samples = int(2 * _MOST_DRAWS * np.exp(collisions))
        rows = _rows_drawn(np.cumsum(share), n_samples * n_events, rng)
        copy = np.floor(rng.random(len(rows)) * copies[rows])
        identity = (rows + len(odds) * copy).reshape(n_samples, n_events)
        is_new = np.all(np.diff(np.sort(identity, axis=1), axis=1) > 0, axis=1)
        rows = rows.reshape(n_samples, n_events)[is_new][:_MOST_DRAWS]
        return values[rows].sum(axis=1)
    # 2. Where few rows have most of the odds, independent labels are drawn, and those
    # kept that have this number of events: one in eight or more.
    row = np.repeat(np.arange(len(odds)), np.maximum(copies, 1).astype(np.intp))
    n_draws = int(np.clip(_MOST_LABELS / len(row), 8 * _FEWEST_DRAWS, 4 * _MOST_DRAWS))
    at_once = max(int(1e7 / len(row)), 1)
    sums = []
    for start in range(0, n_draws, at_once):
        shape = (min(at_once, n_draws - start), len(row))
        events = rng.random(shape) < probability[row]
        has_number = np.count_nonzero(events, axis=1) == n_events
        sums.append(events[has_number] @ values[row])
    return np.concatenate(sums)


def two_sided_pvalue(drawn, observed):
    """Return the p-value of an observed sum among sums (n_draws,) drawn under the
    hypothesis: the share of all, the observed one included, that are as far from the
    mean of the drawn ones.
    """
    mean = drawn.mean()
    distance = abs(observed - mean)
    is_as_far = np.abs(drawn - mean) >= distance * (1 - 1e-9)  # but for rounding
    return float((1 + np.count_nonzero(is_as_far)) / (1 + len(drawn)))


def _rows_drawn(cumulative, n_rows, rng):
    """Return rows (n_rows,) drawn with the shares whose cumulative sums are given."""
    position = rng.random(n_rows) * cumulative[-1]
    rows = np.searchsorted(cumulative, position, side="right")
    return np.minimum(rows, len(cumulative) - 1)
