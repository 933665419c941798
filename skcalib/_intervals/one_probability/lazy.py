"""The state of the limits of a fit, made when it is first asked for."""

from functools import partial

from skcalib._intervals.one_probability.states import check_limits


class LazyLimits:
    """What the limits of a fitted map are computed from.

    Parameters
    ----------
    make : callable
        ``make()`` returns the `state`.

    Attributes
    ----------
    state : dict or None
        Plain values and small arrays by name (see `states`), None for a fit without
        limits. Pickles and copies hold it, and not what it is made of.
    """

    def __init__(self, make):
        self._make = make
        self._derived = None

    @classmethod
    def of_fit(cls, maker, cluster):
        """Return the limits of a fit from its `LimitsMaker` (``make(keep(cluster))`` is
        their state) and the clusters (n,) of its samples, or None.
        """
        kept = maker.keep(cluster)
        limits = cls(partial(maker.make, kept))
        # Else the fit would hold the codes of the clusters, which nothing else needs.
        if cluster is not None:
            limits._made()
        return limits

    @classmethod
    def of_state(cls, state):
        """Return the limits that have a state."""
        return cls(lambda: state)._made()

    @classmethod
    def of_document(cls, state):
        """Return the limits of a state that was read from a document; raise a
        ValueError unless it can be one.
        """
        return cls.of_state(check_limits(state))

    @property
    def state(self):
        return self._made()._state

    def derived(self, function):
        """Return ``function(state)``, which is the same function at each call and is
        called once.
        """
        if self._derived is None:
            self._derived = function(self.state)
        return self._derived

    def _made(self):
        """Make the state unless there is one; return self."""
        make = self._make
        if make is not None:
            self._state = make()
            self._make = None  # last: another thread would miss the state
        return self

    def __reduce__(self):
        return self.of_state, (self.state,)


NO_LIMITS = LazyLimits.of_state(None)
