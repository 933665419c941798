"""Sums by bin of each class against the rest, of scores that stay on a device."""

import numpy as np

from skcalib._input.tensors import as_array
from skcalib._rows.blocks import weights_or_ones


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
    for k, of_class in enumerate(edges):
        cuts[: len(of_class) - 2, k] = of_class[1:-1]
    sums = _sums_of_scores(data, cuts, moments)
    if not data.is_multilabel:
        sums |= _sums_of_labels(data, cuts)
    return [
        {name: values[: len(of_class) - 1, k] for name, values in sums.items()}
        for k, of_class in enumerate(edges)
    ]


def _sums_of_scores(data, cuts, moments):
    """Return the sums by bin and class (n_bins, K) that do not depend on the labels, by
    name, and those of the labels where a row may have several. `cuts` are the inner
    edges (n_bins - 1, K).
    """
    scores = data.scores
    xp = scores.xp
    shape = (len(cuts) + 1, cuts.shape[1])
    cuts = _on_device(scores, cuts)
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
        by_bin = []
        for is_inside in _bins(xp, block, cuts):
            inside = xp.where(is_inside, block, zero)
            share = xp.astype(is_inside, block.dtype)
            values = {"count": share, "weighted_score": inside}
            if weight is not None:
                values["weighted_score"] = inside * weight
                values["weight"] = share * weight
                values["weight_squared"] = values["weight"] * weight
            values["weighted_score_squared"] = values["weighted_score"] * inside
            if data.is_multilabel:
                has_label = data.labels.tensor_of(rows)
                values["weighted_label"] = values.get("weight", share) * has_label
                values["weighted_score_label"] = values["weighted_score"] * has_label
            of_bin = [
                xp.sum(values[name], axis=0, dtype=scores.sum_dtype) for name in names
            ]
            by_bin.append(xp.stack(of_bin))
        found, _ = as_array(xp.stack(by_bin, axis=1))  # (n_names, n_bins, K)
        for name, values in zip(names, found, strict=True):
            sums[name] += values
    if data.sample_weight is None:
        sums["weight"] = sums["weight_squared"] = sums["count"]
    return sums


def sums_of_trials(data, cells):
    """Return the sums of `with_trials`, (n_cells,) each, for the pairs of a row and a
    class in `cells`: a row has one label.

    `data` are `ScoredLabels`, whose scores are `DeviceScores`.
    """
    scores = data.scores
    xp, dtype = scores.xp, scores.sum_dtype
    n_cells = len(cells.weight)
    cuts = _on_device(scores, cells.high[:-1, None])
    classes = xp.arange(scores.shape[1], device=scores.device)[None, :]
    sums = np.zeros((n_cells, 3))
    for rows, block in scores.blocks_to_add:
        codes = np.asarray(data.labels[rows], dtype=np.int64)
        is_label = classes == xp.asarray(codes, device=scores.device)[:, None]
        weight = scores.moved(weights_or_ones(data.sample_weight, len(scores))[rows])
        block = xp.astype(block, dtype)
        by_cell = []
        for cell, is_inside in enumerate(_bins(xp, block, cuts)):
            share = xp.astype(is_inside, dtype)
            probability = xp.sum(share * block, axis=1)
            n_pairs = xp.sum(share, axis=1)
            event = xp.astype(xp.any(is_inside & is_label, axis=1), dtype)
            mean = n_pairs * float(cells.deviation[cell])
            of_cell = (
                probability * (1 - probability),
                (event - probability - mean) ** 2,
                xp.astype(n_pairs > 0, dtype),
            )
            by_cell.append(xp.stack(of_cell) @ weight)
        found, _ = as_array(xp.stack(by_cell))
        sums += found
    return sums.T


def _on_device(scores, cuts):
    """Return cuts in the type of the scores, rounded down, so that each score stays on
    its side.
    """
    rounded = cuts.astype(scores.dtype)
    below = np.nextafter(rounded, scores.dtype.type(-np.inf))
    rounded = np.where(rounded > cuts, below, rounded)
    return scores.xp.asarray(rounded, device=scores.device)


def _bins(xp, block, cuts):
    """Yield which scores of a block (m, K) are in each bin, open below and closed
    above.
    """
    is_above = None
    for b in range(cuts.shape[0]):
        is_above_next = block > cuts[b, :]
        yield ~is_above_next if is_above is None else is_above & ~is_above_next
        is_above = is_above_next
    yield xp.ones_like(block, dtype=xp.bool) if is_above is None else is_above


def _sums_of_labels(data, cuts):
    """Return the sums by bin and class (n_bins, K) of the labels, of which each sample
    has one, by name.
    """
    n_bins = len(cuts) + 1
    n_classes = cuts.shape[1]
    score = data.scores.of_labels(data.labels).astype(np.float64)
    weight = weights_or_ones(data.sample_weight, len(score))
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
