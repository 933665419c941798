"""Sums by bin of each class against the rest, of scores that stay on a device."""

import numpy as np

from skcalib._cells.cells import rounded_down
from skcalib._input.tensors import as_array, has_float64
from skcalib._rows.blocks import weights_or_ones
from skcalib._rows.namespaces import differences, runs, sums_by_code


def sums_of_classes(data, edges, moments):
    """Return the sums by bin of each class against the rest, a list of K dicts from the
    fields of `BinStatistics` to arrays (n_bins,).

    Parameters
    ----------
    data : ScoredLabels
        Validated data, whose scores are `DeviceScores`.
    edges : list of K ndarray
        The edges of the bins of each class.
    moments : {0, 1, 2}
        The highest power of the scores that is summed on the device.
    """
    n_bins = max(map(len, edges)) - 1
    # The inner edges, (n_bins - 1, K): those that a class lacks are infinite, and its
    # last bins empty.
    cuts = np.full((n_bins - 1, len(edges)), np.inf)
    for k, edges_of_class in enumerate(edges):
        cuts[: len(edges_of_class) - 2, k] = edges_of_class[1:-1]
    sums = _sums_of_scores(data, cuts, moments)
    if not data.is_multilabel:
        sums |= _sums_of_labels(data, cuts)
    sums_by_class = []
    for k, edges_of_class in enumerate(edges):
        n_bins_of_class = len(edges_of_class) - 1
        sums_by_class.append(
            {name: values[:n_bins_of_class, k] for name, values in sums.items()}
        )
    return sums_by_class


def _sums_of_scores(data, cuts, moments):
    """Return sums by bin and class, a dict of arrays (n_bins, K): those that do not
    depend on the labels and, if a row may have several labels, those that do. `cuts`
    are the inner edges (n_bins - 1, K).
    """
    scores = data.scores
    xp = scores.xp
    shape = (len(cuts) + 1, cuts.shape[1])
    cuts = xp.asarray(rounded_down(cuts, scores.dtype), device=scores.device)
    names = ["count", "weighted_score", "weighted_score_squared"][: moments + 1]
    if data.sample_weight is not None:
        names += ["weight", "weight_squared"]
    if data.is_multilabel:
        names += ["weighted_label", "weighted_score_label"]
    sums = {name: np.zeros(shape) for name in names}
    zero = xp.asarray(0.0, dtype=cuts.dtype, device=scores.device)
    for rows, block in scores.blocks_to_add:
        weight = None
        if data.sample_weight is not None:
            weight = xp.asarray(
                data.sample_weight[rows].astype(scores.dtype), device=scores.device
            )[:, None]
        sums_by_bin = []
        for is_inside in _bins(xp, block, cuts):
            # What each score adds to each sum of the bin, (m, K): 0 if it lies outside.
            score = xp.where(is_inside, block, zero)
            count = xp.astype(is_inside, block.dtype)
            values = {"count": count, "weighted_score": score}
            if weight is not None:
                values["weighted_score"] = score * weight
                values["weight"] = count * weight
                values["weight_squared"] = values["weight"] * weight
            values["weighted_score_squared"] = values["weighted_score"] * score
            if data.is_multilabel:
                has_label = data.labels.tensor_of(rows)
                values["weighted_label"] = values.get("weight", count) * has_label
                values["weighted_score_label"] = values["weighted_score"] * has_label
            sums_of_bin = [
                xp.sum(values[name], axis=0, dtype=scores.sum_dtype) for name in names
            ]
            sums_by_bin.append(xp.stack(sums_of_bin))
        # All sums of the block are copied from the device at once.
        sums_of_block, _ = as_array(xp.stack(sums_by_bin, axis=1))
        for name, sums_of_name in zip(names, sums_of_block, strict=True):
            sums[name] += sums_of_name  # (n_bins, K)
    if data.sample_weight is None:
        sums["weight"] = sums["weight_squared"] = sums["count"]
    return sums


def sums_of_trials(data, cells):
    """Return three sums over the trials in each cell, an array (3, n_cells): of w q (1
    - q), of w (e - q - m)^2, and of w.

    `data` are `ScoredLabels` of samples with one label each, on a device. A sample has
    a pair with each class, whose score lies in one of the `cells`. All its pairs in one
    cell are a trial: w is the weight of the sample, q the sum of the pairs' scores, e
    whether one of them is its label (1 or 0), and m the cell's deviation (event
    frequency minus score) times the number of pairs.
    """
    scores = data.scores
    xp, dtype = scores.xp, scores.sum_dtype
    n_cells = len(cells.weight)
    classes = xp.arange(scores.shape[1], device=scores.device)[None, :]
    sums = np.zeros((3, n_cells))
    for rows, block in scores.blocks_to_add:
        codes = np.asarray(data.labels[rows], dtype=np.int64)
        is_label = classes == xp.asarray(codes, device=scores.device)[:, None]
        row, cell, probability, n_pairs, event = _trials(xp, block, is_label, cells)
        weight = scores.moved(weights_or_ones(data.sample_weight, len(scores))[rows])
        weight = xp.take(weight, row)
        deviation = xp.take(scores.moved(cells.deviation), cell)
        residual = xp.astype(event, dtype) - probability
        residual = residual - xp.astype(n_pairs, dtype) * deviation
        columns = [
            weight * probability * (1 - probability),
            weight * residual**2,
            weight,
        ]
        sums_of_block, _ = as_array(sums_by_code(xp, cell, columns, n_cells))
        sums += sums_of_block
    return sums


def _trials(xp, block, is_label, cells):
    """Return the trials of a block of scores (m, K), arrays (n_trials,): the row and
    the cell of each, the sum of the scores of its pairs, their number, and whether one
    of them is the label; `is_label` (m, K) says this of each pair.
    """
    n_classes = block.shape[1]
    # The pairs of each row in the order of their scores: those in a cell are a run.
    order = xp.argsort(block, axis=1)
    starts_of_rows = xp.arange(block.shape[0], device=block.device) * n_classes
    order = xp.reshape(order + starts_of_rows[:, None], (-1,))
    ordered = xp.take(xp.reshape(block, (-1,)), order)
    cell = cells.cell_of(ordered)
    row = order // n_classes
    differs = (cell[1:] != cell[:-1]) | (row[1:] != row[:-1])
    is_first = xp.concat((xp.ones_like(differs[:1]), differs))
    _, last = runs(xp, is_first)
    before = xp.concat((xp.full_like(last[:1], -1), last[:-1]))
    # Sums up to each pair of the scores of its own row alone, so that nothing is lost
    # to a large total; and of the labels of all rows, which are counts.
    dtype = xp.float64 if has_float64(xp, block.device) else xp.float32
    by_row = xp.reshape(xp.astype(ordered, dtype), block.shape)
    up_to = xp.reshape(xp.cumulative_sum(by_row, axis=1), (-1,))
    row_of_trial = xp.take(row, last)
    start = xp.clip(before, 0, None)
    continues = (before >= 0) & (xp.take(row, start) == row_of_trial)
    probability = xp.take(up_to, last)
    sum_before = xp.take(up_to, start)
    probability = probability - xp.where(continues, sum_before, 0 * sum_before)
    labels = xp.astype(xp.take(xp.reshape(is_label, (-1,)), order), xp.int64)
    n_labels = xp.take(xp.cumulative_sum(labels), last)
    event = differences(xp, n_labels)
    return row_of_trial, xp.take(cell, last), probability, last - before, event


def _bins(xp, block, cuts):
    """Yield for each bin a mask (m, K) of the scores of a block that lie in it: above
    its lower edge, and up to its upper one. `cuts` (n_bins - 1, K) are the inner edges.
    """
    is_above_lower = xp.ones_like(block, dtype=xp.bool)  # the first bin has no limit
    for b in range(cuts.shape[0]):
        is_above_upper = block > cuts[b, :]
        yield is_above_lower & ~is_above_upper
        is_above_lower = is_above_upper
    yield is_above_lower


def _sums_of_labels(data, cuts):
    """Return a dict with the sums by bin and class (n_bins, K) of the weights of labels
    and of their weighted scores, for samples with one label each. `cuts` are the inner
    edges (n_bins - 1, K).
    """
    n_bins = len(cuts) + 1
    n_classes = cuts.shape[1]
    score = data.scores.of_labels(data.labels).astype(np.float64)
    weight = weights_or_ones(data.sample_weight, len(score))
    # the samples sorted by label, and where each class begins among them
    order = np.argsort(data.labels, kind="stable")
    starts = np.searchsorted(data.labels[order], np.arange(n_classes + 1))
    weighted_label = np.zeros((n_bins, n_classes))
    weighted_score_label = np.zeros((n_bins, n_classes))
    for k in range(n_classes):
        rows = order[starts[k] : starts[k + 1]]
        bins = np.searchsorted(cuts[:, k], score[rows])
        weighted = weight[rows] * score[rows]
        weighted_label[:, k] = np.bincount(bins, weight[rows], n_bins)
        weighted_score_label[:, k] = np.bincount(bins, weighted, n_bins)
    return dict(
        weighted_label=weighted_label, weighted_score_label=weighted_score_label
    )
