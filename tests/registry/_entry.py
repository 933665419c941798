"""What an entry of the registry holds."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Entry:
    """What the tests know of a public name.

    Parameters
    ----------
    job : str
        What it is for: the example or the page of the documentation that uses it. Of
        what users get and do not call, the public name that returns it.
    result : callable, default=None
        ``result(rows)`` is its frozen result for the `Rows` of ``registry/_rows.py``.
    results : callable, default=None
        In place of `result`, where there are several: ``results(rows)`` is a dict of
        them, by what they are of.
    not_frozen : str, default=None
        Why it has no frozen results.
    no_paper : str, default=None
        Why its docstring names no paper.
    """

    job: str
    result: Callable | None = None
    results: Callable | None = None
    not_frozen: str | None = None
    no_paper: str | None = None

    def frozen_results(self, rows):
        """Return the results that are frozen, by what they are of."""
        if self.result is not None:
            return {"": self.result(rows)}
        if self.results is not None:
            return self.results(rows)
        return {}


@dataclass(frozen=True)
class RecalibratorEntry(Entry):
    """What the tests know of a recalibrator.

    Parameters
    ----------
    instances : tuple of BaseRecalibrator
        Unfitted objects for the properties that recalibrators share: the defaults, and
        the options that make another path through the code. Empty for those that need
        more than scores and labels: they have tests of their own.
    two_classes, log_odds, three_classes : tuple of BaseRecalibrator
        Unfitted objects whose fits are frozen, for probabilities of two classes, for
        log-odds, and for probabilities of three classes. SQL, ONNX, JavaScript and JSON
        are compared with these fits.
    more_fits : callable, default=None
        ``more_fits(rows)`` yields more of them: fitted objects with their scores,
        groups and ids.
    takes_weights : bool, default=True
        Whether its theory has weights.
    fits_missing_class : bool, default=False
        Whether it fits with ``classes=`` where one of three classes has no row: its
        ``_needs_classes`` is "any" or "two". Checks of scikit-learn that have fewer
        classes than columns must fail where it does not.
    expected_failures : dict, default={}
        Checks of scikit-learn that cannot pass, with the reason.
    """

    instances: tuple = ()
    two_classes: tuple = ()
    log_odds: tuple = ()
    three_classes: tuple = ()
    more_fits: Callable | None = None
    takes_weights: bool = True
    fits_missing_class: bool = False
    expected_failures: dict = field(default_factory=dict)


@dataclass(frozen=True)
class MetricEntry(Entry):
    """What the tests know of a function of labels and probabilities.

    Parameters
    ----------
    options : dict, default={}
        What it cannot do without for the few rows of the tests.
    is_random : bool, default=False
        Whether it draws, so that rows in another order give another result.
    one_event : bool, default=False
        Whether it has no meaning for more than two classes.
    """

    options: dict = field(default_factory=dict)
    is_random: bool = False
    one_event: bool = False


@dataclass(frozen=True)
class DisplayEntry(Entry):
    """What the tests know of a display.

    Parameters
    ----------
    pictures : tuple of str
        Its pictures in ``doc/examples/look_book.py``, which are drawn at every size.
    no_finding : str, default=None
        Why no world of ``benchmarks.checks.result_truth`` makes its title false. A
        display whose title states a finding is simulated there instead.
    """

    pictures: tuple = ()
    no_finding: str | None = None
