"""Confidence intervals for calibration errors by test inversion, many at a time: the
draws that their searches ask for are made together.
"""

import numpy as np

from skcalib._inference.count_draws import CountDraws
from skcalib._inference.limit_search import search_limits
from skcalib._inference.uniform_blocks import BLOCK


def inverted_limits(hypotheses, tail):
    """Return the lower and the upper limit of an error, each wrong with probability
    `tail`.
    """
    return next(limits_of_each([hypotheses], tail))


def limits_of_each(many, tail):
    """Yield the (lower, upper) limits for each of many `Hypotheses`, each limit wrong
    with probability `tail`.

    With many small problems most of the time would be spent on calls, not on numbers.
    So the problems are taken in groups whose numbers (draws times cells) fill a block,
    and the draws of a group are made together.
    """
    group = []
    n_counts = 0
    for hypotheses in many:
        group.append(hypotheses)
        n_counts += hypotheses.draw.n_draws * len(hypotheses.cells.weight)
        if n_counts >= BLOCK:
            yield from _limits_of_group(group, tail)
            group = []
            n_counts = 0
    yield from _limits_of_group(group, tail)


def _limits_of_group(group, tail):
    """Return a list with the (lower, upper) limits for each of several `Hypotheses`.

    Their searches advance together: in each turn every unfinished search, a generator
    of `search_limits`, says which draws it needs, and all are drawn in one pass.
    """
    limits = [None] * len(group)
    searches = [search_limits(hypotheses, tail) for hypotheses in group]
    # What each unfinished search is sent next, by its position: the `Drawn` that it
    # asked for, at first None, which starts a generator.
    answers = dict.fromkeys(range(len(group)))
    while answers:
        # 1. Continue each search. It asks for draws, or ends with its limits.
        requests = {}
        for k, answer in answers.items():
            try:
                requests[k] = searches[k].send(answer)
            except StopIteration as end:
                limits[k] = end.value
        # 2. Draw for all requests.
        frequencies = []
        for k, request in requests.items():
            frequencies.append(group[k].frequency(request.direction, request.c))
        blocks_of_each = _drawn_together(
            [group[k].draw for k in requests],
            frequencies,
            [request.c for request in requests.values()],
        )
        # 3. Compute what the searches look at.
        answers = {}
        for (k, request), blocks in zip(requests.items(), blocks_of_each, strict=True):
            answers[k] = group[k].drawn(
                blocks, request.c, with_distances=request.with_distances
            )
    return limits


def _drawn_together(draws, frequencies, factors):
    """Return the drawn event frequencies for each of several problems: a list with an
    iterable of blocks (draws, m) for each.

    If every problem is drawn as a single block, one call draws all.

    Parameters
    ----------
    draws : list of CountDraws or ClusterDraws
        What draws the numbers of events of each problem.
    frequencies : list of ndarray of shape (m,)
        Event probabilities of the cells of each problem; m may differ.
    factors : list of float
        The c of the hypothesis of each problem.
    """
    can_be_joined = len(draws) > 1
    for draw in draws:
        if not (isinstance(draw, CountDraws) and draw.is_one_block):
            can_be_joined = False
    if not can_be_joined:
        blocks_of_each = []
        for draw, frequency, c in zip(draws, frequencies, factors, strict=True):
            blocks_of_each.append(draw(frequency, c))
        return blocks_of_each
    n_cells = [len(frequency) for frequency in frequencies]
    joined = CountDraws.joined(draws)
    # a single block, with the cells of all problems side by side
    (drawn,) = joined(np.concatenate(frequencies), np.repeat(factors, n_cells))
    by_problem = np.split(drawn, np.cumsum(n_cells)[:-1], axis=1)
    return [[block] for block in by_problem]
