"""Confidence intervals for calibration errors by test inversion, many at a time: the
draws that their searches ask for are made together.

The interval of an error holds the values that a test does not reject. Its terms:

cell
    A range of scores with one event frequency: a bin, or a distinct score.
power
    The p-th power of an error, p its norm, as a function of the event frequencies of
    the cells (`ErrorPower`).
hypothesis
    Supposed true event frequencies of the cells: their mean scores plus a number c
    times a direction. Scores are calibrated where c is 0, and the error grows with c.
draw
    Event frequencies of the cells under a hypothesis. The observed power is compared
    with the powers of many draws.
"""

import numpy as np

from skcalib._errors.binned import JoinedPowers, can_be_joined
from skcalib._inference.count_draws import CountDraws
from skcalib._inference.drawn_hypotheses import Drawn
from skcalib._inference.few_outcomes import SmallProblems, has_few_outcomes
from skcalib._inference.limit_search import search_limits
from skcalib._inference.uniform_blocks import BLOCK

# Joined hypotheses are joined anew where a smaller share of them is still in use.
_SHARE_IN_USE = 0.75


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
    """Return a list with the (lower, upper) limits for each of several `Hypotheses`,
    each limit wrong with probability `tail`.
    """
    with_few_outcomes = []
    others = []
    for k, hypotheses in enumerate(group):
        if has_few_outcomes(hypotheses):
            with_few_outcomes.append(k)
        else:
            others.append(k)
    limits = _searched_limits(group, others, tail)
    # Where there are few possible outcomes, all are gone through instead of drawn.
    if with_few_outcomes:
        problems = SmallProblems.of([group[k] for k in with_few_outcomes])
        powers = problems.limits(tail)
        for k, (low, high) in zip(with_few_outcomes, powers.T, strict=True):
            limits[k] = group[k].from_power(low), group[k].from_power(high)
    return [limits[k] for k in range(len(group))]


def _searched_limits(group, chosen, tail):
    """Return a dict with the (lower, upper) limits of the `Hypotheses` at the positions
    `chosen` in the group, found by a search each.

    The searches advance together: in each turn every unfinished one, a generator of
    `search_limits`, says which draws it needs, and all are drawn in one pass.
    """
    limits = {}
    searches = {k: search_limits(group[k], tail) for k in chosen}
    # The `Drawn` that each unfinished search asked for; None starts a generator.
    answers = dict.fromkeys(chosen)
    joined = None
    if len(chosen) > 1 and JoinedHypotheses.can_join([group[k] for k in chosen]):
        joined = JoinedHypotheses(group, chosen)
    while True:
        # 1. Continue each search. It asks for draws, or ends with its limits.
        requests = {}
        for k, answer in answers.items():
            try:
                requests[k] = searches[k].send(answer)
            except StopIteration as end:
                limits[k] = end.value
        if not requests:
            return limits
        # 2. Draw for all requests, and compute what the searches look at.
        if joined is None:
            answers = {k: _drawn(group[k], request) for k, request in requests.items()}
            continue
        if len(requests) < _SHARE_IN_USE * len(joined.members):
            # Searches that have ended are left out from time to time.
            joined = JoinedHypotheses(group, list(requests))
        answers = joined.drawn(requests)


def _drawn(hypotheses, request):
    frequency = hypotheses.frequency(request.direction, request.c)
    return hypotheses.drawn(frequency, request.c, with_distances=request.with_distances)


class JoinedHypotheses:
    """Several `Hypotheses` of one binned error each, whose draws and statistics are
    computed together.

    Parameters
    ----------
    group : list of Hypotheses
        Those that `can_join` has checked.
    members : list of int
        Positions of the hypotheses that are joined.
    """

    def __init__(self, group, members):
        joined = [group[k] for k in members]
        self.members = members  # positions in the group
        self._draw = CountDraws.joined([hypotheses.draw for hypotheses in joined])
        self._powers = JoinedPowers([hypotheses.power for hypotheses in joined])
        self._scores = [hypotheses.cells.mean_score for hypotheses in joined]
        self._sizes = [len(scores) for scores in self._scores]
        # The distance of drawn frequencies g from the scores s (see `Hypotheses.drawn`)
        # is g @ factor - s @ factor for each member. The second term is the same for
        # all draws.
        factors = []
        for hypotheses in joined:
            factors.append(hypotheses.cells.share * hypotheses.directions[0])
        self._factor = np.concatenate(factors)
        self._distance_of_scores = np.add.reduceat(
            np.concatenate(self._scores) * self._factor, self._powers.starts
        )

    @staticmethod
    def can_join(group):
        """Return whether the draws of several `Hypotheses` can be made together: all
        have a binned error, and draws that memory holds in one block.
        """
        for hypotheses in group:
            draw = hypotheses.draw
            if not (isinstance(draw, CountDraws) and draw.is_one_block):
                return False
        powers = [hypotheses.power for hypotheses in group]
        return None not in powers and can_be_joined(powers)

    def drawn(self, requests):
        """Return a dict of the `Drawn` (statistics, and distances from the scores) of
        some members, for a dict of `DrawRequest`; both have their positions as keys.
        """
        # All members are drawn together. Those whose search has ended have c = 0, so
        # that their direction does not matter.
        directions = []
        c_of_members = []
        for k, scores in zip(self.members, self._scores, strict=True):
            if k in requests:
                directions.append(requests[k].direction)
                c_of_members.append(requests[k].c)
            else:
                directions.append(scores)
                c_of_members.append(0.0)
        c = np.repeat(c_of_members, self._sizes)
        frequency = np.concatenate(self._scores) + c * np.concatenate(directions)
        # a single block, with the cells of all members side by side
        (block,) = self._draw(frequency.clip(0, 1), c)
        statistics = np.ascontiguousarray(self._powers.each(block).T)
        distances = None
        if any(request.with_distances for request in requests.values()):
            sums = np.add.reduceat(block * self._factor, self._powers.starts, axis=1)
            distances = np.ascontiguousarray((sums - self._distance_of_scores).T)
        answers = {}
        for position, k in enumerate(self.members):
            if k in requests:
                member_distances = None
                if requests[k].with_distances:
                    member_distances = distances[position]
                answers[k] = Drawn(statistics[position], member_distances)
        return answers
