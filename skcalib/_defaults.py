"""Parameters that stand for a default object, hints where a parameter of another
library is given, and fits that are refused.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

# Parameters that may be set after a fit: no prediction depends on them.
_FREE_AFTER_FIT = {"random_state", "confidence_level", "n_jobs", "verbose"}


def check_fitted(estimator):
    """Raise a NotFittedError if an estimator is not fitted, and a ValueError if a
    parameter has changed since the fit: predictions would mix old and new values.
    """
    # By parameter, what `_remember_parameters` stored in the fit. Only a fit does that:
    # scikit-learn's check, which collects tags first, has nothing to add.
    snapshots = getattr(estimator, "_fitted_with_", {})
    if not snapshots:
        check_is_fitted(estimator)
    for name, snapshot in snapshots.items():
        change = _first_change(name, snapshot, getattr(estimator, name))
        if change is not None:
            name, fitted, now = change
            raise ValueError(
                f"{type(estimator).__name__} was fitted with {name}={fitted!r}, but"
                f" {name} is now {now!r}. Fit it again."
            )


class unchanged_if_refused:  # noqa: N801 (a context manager, named like a function)
    """Context that gives an estimator back the attributes that it had before, if its
    block raises an error.

    The block must set attributes anew: what it changes inside them stays changed.
    """

    # A generator with `contextlib.contextmanager` takes a tenth of the update of a
    # monitor with one row.
    __slots__ = ("attributes", "before")

    def __init__(self, estimator):
        self.attributes = vars(estimator)

    def __enter__(self):
        self.before = self.attributes.copy()

    def __exit__(self, error, *details):
        if error is not None:
            self.attributes.clear()
            self.attributes.update(self.before)


def _snapshot(value):
    """Return a pair that shows later whether a parameter has changed: its value (a copy
    of an array or a list), and a dict of the snapshots of what `set_params` changes in
    place inside an estimator or a list of estimators.
    """
    is_list = isinstance(value, (list, tuple))
    if is_list and any(hasattr(item, "get_params") for item in value):
        nested = {index: _snapshot(item) for index, item in enumerate(value)}
        return type(value)(value), nested
    # Edges or labels are copied. Other lists, such as splits, are arrays of unequal
    # lengths, which NumPy does not compare: they are not equal even to themselves.
    if isinstance(value, (np.ndarray, list)) and np.array_equal(value, value):
        return value.copy(), {}
    if not hasattr(value, "get_params") or isinstance(value, type):
        return value, {}
    nested = {}
    for name, param in value.get_params(deep=False).items():
        if name not in _FREE_AFTER_FIT:
            nested[name] = _snapshot(param)
    return value, nested


def _first_change(name, snapshot, now):
    """Return (name, old value, present value) of the first parameter that has changed
    since its `_snapshot`, or None. A parameter inside another is named
    ``outer__inner``.
    """
    remembered_value, nested = snapshot
    is_list = isinstance(now, (list, tuple))
    can_look_inside = bool(nested) and type(now) is type(remembered_value)
    if is_list and len(now) != len(nested):
        can_look_inside = False
    if not can_look_inside:
        if now is remembered_value or np.array_equal(now, remembered_value):
            return None
        return name, remembered_value, now
    for key, inner_snapshot in nested.items():
        present = now[key] if is_list else getattr(now, key, None)
        change = _first_change(f"{name}__{key}", inner_snapshot, present)
        if change is not None:
            return change
    return None


class DefaultObjects:
    """Mixin for estimators whose parameters default to other estimators.

    scikit-learn keeps mutable objects out of signatures, so the default is written
    ``None``. The class attribute ``_default_objects`` maps such a parameter to a
    function that makes its default object. ``_hints`` maps a parameter of another
    library's estimator to what to write here.
    """

    _default_objects = {}
    _hints = {}

    @classmethod
    @cache
    def _get_param_names(cls):
        # Reading a signature takes a fifth of a fit of bins to 1,000 rows, and three
        # functions of a fit ask for the names.
        return super()._get_param_names()

    @classmethod
    def _hint_at(cls, params, error):
        """Raise `error`, with what to write instead, if `params` has a name of another
        library.
        """
        # `_hints`, a class attribute, maps such names to what to write here.
        for name in cls._hints.keys() & params:
            if name not in cls._get_param_names():
                raise error(
                    f"{cls.__name__} has no parameter {name!r}: write"
                    f" {cls._hints[name]}."
                )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters.

        Parameters
        ----------
        deep : bool, default=True
            Whether to add the parameters of nested objects as ``name__nested``, those
            of a default object included.

        Returns
        -------
        params : dict
            Values by name.
        """
        params = super().get_params(deep=deep)
        if not deep:
            return params
        for name, make_default in self._default_objects.items():
            if params[name] is None:
                for key, value in make_default().get_params().items():
                    params[f"{name}__{key}"] = value
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, nested ones of a default object included.

        Parameters
        ----------
        **params : dict
            Parameters by name. Setting ``name__nested`` while ``name`` is None first
            installs the documented default object, so that ``binning__n_bins`` can be
            searched without naming a strategy.

        Returns
        -------
        self : object
            The estimator.

        Raises
        ------
        ValueError
            If there is no such parameter, or it holds a value without parameters, such
            as a number of bins.
        """
        self._hint_at(params, ValueError)
        # The parameters whose nested ones are set, if they have a default object.
        outer_names = {key.partition("__")[0] for key in params if "__" in key}
        for name in outer_names & set(self._default_objects):
            value = params.get(name, getattr(self, name))
            if value is None:
                params[name] = self._default_objects[name]()  # makes the object
            elif not hasattr(value, "set_params"):
                raise ValueError(
                    f"{name}={value!r} has no parameters to set: pass an object such as"
                    f" {self._default_objects[name]()!r}."
                )
        return super().set_params(**params)

    def _remember_parameters(self):
        """Store a `_snapshot` of each parameter that predictions depend on in the dict
        `_fitted_with_`, in which `check_fitted` looks them up.
        """
        # Some classes have no parameter `input`, but a property that reads that of an
        # object inside.
        names = {*self._get_param_names(), "input"}.difference(_FREE_AFTER_FIT)
        self._fitted_with_ = {}
        for name in sorted(names):
            if hasattr(self, name):
                self._fitted_with_[name] = _snapshot(getattr(self, name))

    def _resolved(self, name):
        """Return a clone of the object in the parameter `name`, or, if that is None,
        the default object, newly made.
        """
        value = getattr(self, name)
        if value is None:
            return self._default_objects[name]()
        # With `safe=False` what is no estimator, such as a number of bins, is copied.
        return clone(value, safe=False)


class ParameterHints(DefaultObjects):
    """`DefaultObjects` whose constructor also hints at parameters of other
    libraries.
    """

    def __init_subclass__(cls, **options):
        """Show the parameters of `__init__`, in place of those of `__new__` below, to
        `help`, editors and the reference.
        """
        super().__init_subclass__(**options)
        of_init = inspect.signature(cls.__init__)
        _, *parameters = of_init.parameters.values()
        cls.__signature__ = of_init.replace(parameters=parameters)

    def __new__(cls, *args, **params):
        """Make the object, unless a parameter has a hint: `__init__` would only say
        that it is unexpected.
        """
        cls._hint_at(params, TypeError)
        return super().__new__(cls)
