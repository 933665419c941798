"""Bounds that every printed text keeps, whatever the truth is: an estimate lies inside
its limits or says why not, no loss falls by more than all of it, and a count stands
beside the share that it is.
"""

import re

_NUMBER = r"[+-]?\d[\d,]*(?:\.\d+)?"
# An estimate with its limits: "0.065 (90 %: 0.046 to 0.084)", "6.8 points too high
# (4.1 to 9.5)".
_INTERVAL = re.compile(
    rf"(?P<estimate>{_NUMBER})(?P<unit>(?: [a-z%]+){{0,4}})"
    rf" \((?:[\w ]*\d+(?:\.\d+)? %(?: CI| interval| for all groups"
    rf" together)?: )?(?P<low>{_NUMBER}) to"
    rf" (?P<high>{_NUMBER})(?P<reason>[^)]*)\)"
)
_OF_LOSS = re.compile(
    rf"(?:log-loss|Brier score)[^.;(]* by (?P<size>{_NUMBER}) %"
    rf"(?: \(\d+ %: (?P<low>{_NUMBER})(?: % lower)? to"
    rf" (?P<high>{_NUMBER})(?: %)?)?"
)
_RISES = re.compile(r"(?:raise|raises|higher) the $")
_COUNT = re.compile(
    rf"(?P<n>{_NUMBER}) (?:samples|rows) with (?P<events>{_NUMBER}) events"
    rf" \((?P<weighted>weighted )?(?P<share>{_NUMBER}) %"
)
_OUTSIDE = re.compile(r"outside (?:its|their) limits|label noise|noise of the labels")


def _number(text):
    return float(text.replace(",", ""))


def _unit(text):
    """Return what 1 in the last digit of a number is worth."""
    return 10.0 ** -len(text.partition(".")[2])


def faults(text):
    """Return the statements of a text that no samples could make true."""
    text = " ".join(text.split())
    found = []
    for match in _INTERVAL.finditer(text):
        estimate, low, high = (
            _number(match[name]) for name in ("estimate", "low", "high")
        )
        is_inside = low <= estimate <= high
        if low > high or not (is_inside or match["reason"] or _OUTSIDE.search(text)):
            found.append(match[0])
    for match in _OF_LOSS.finditer(text):
        # A loss may rise by more than all of it, but not fall.
        names = ["size", "low"]
        if not text.startswith(" higher", match.end()):
            names.append("high")
        sizes = [_number(match[name]) for name in names if match[name]]
        rises = _RISES.search(text[: match.start()])
        if max(sizes) > 100 and not rises:
            found.append(match[0])
    for match in _COUNT.finditer(text):
        share = 100 * _number(match["events"]) / _number(match["n"])
        slack = _unit(match["share"])
        if not match["weighted"] and abs(share - _number(match["share"])) > slack:
            found.append(match[0])
    return found
