"""Parameters that stand for a default object, and hints where a parameter of another library is given."""

import inspect
from dataclasses import dataclass, field

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

_FREE = {
    "random_state",
    "confidence_level",
    "n_jobs",
    "verbose",
}  # no forecast depends on them after a fit


def parameters(cls, positional=None):
    """Return an estimator's class with a constructor made of its fields, ``name: type = default``.

    Fields below ``_: KW_ONLY`` are given by name only. In the signature those of the class itself come first, then
    those of the nearest base. Where the type is a list, it holds the constraints that scikit-learn checks. With
    `positional` all but the fields of these names are given by name only.
    """
    constraints = {
        name: kind
        for name, kind in cls.__annotations__.items()
        if isinstance(kind, list)
    }
    cls._parameter_constraints = {
        **getattr(cls, "_parameter_constraints", {}),
        **constraints,
    }
    for name in positional or ():
        setattr(cls, name, field(default=vars(cls)[name], kw_only=False))
    cls = dataclass(
        cls, eq=False, repr=False, match_args=False, kw_only=positional is not None
    )
    names = [
        name for base in cls.__mro__ for name in getattr(base, "__annotations__", ())
    ]
    signature = inspect.signature(cls.__init__)
    given = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    given.sort(
        key=lambda one: (
            one.kind,
            names.index(one.name) if one.kind == one.KEYWORD_ONLY else 0,
        )
    )
    cls.__init__.__signature__ = signature.replace(
        parameters=given, return_annotation=signature.empty
    )
    return cls


def check_fitted(estimator):
    """Raise where an estimator is not fitted, and where a parameter changed since: forecasts would mix both."""
    check_is_fitted(estimator)
    for name, kept in getattr(estimator, "_fitted_with_", {}).items():
        if changed := _changed(name, kept, getattr(estimator, name)):
            name, fitted, now = changed
            raise ValueError(
                f"{type(estimator).__name__} was fitted with {name}={fitted!r}, and {name}={now!r} was set since. "
                "Fit again."
            )


def _kept(value):
    """Return a value and what it holds, by name, each in this form: `set_params` changes nested objects in place."""
    if isinstance(value, (list, tuple)) and any(
        hasattr(one, "get_params") for one in value
    ):
        return type(value)(value), {
            number: _kept(one) for number, one in enumerate(value)
        }
    if isinstance(value, (np.ndarray, list)) and np.array_equal(value, value):
        return (
            value.copy(),
            {},
        )  # edges or labels, which may be changed in place; a list of splits is not
    if not hasattr(value, "get_params") or isinstance(value, type):
        return value, {}
    params = value.get_params(deep=False).items()
    return value, {name: _kept(one) for name, one in params if name not in _FREE}


def _changed(name, kept, now):
    """Return the name, the kept and the present value of the first parameter that differs, or None."""
    value, inner = kept
    if (
        not inner
        or type(now) is not type(value)
        or isinstance(now, (list, tuple))
        and len(now) != len(inner)
    ):
        return (
            None if now is value or np.array_equal(now, value) else (name, value, now)
        )
    values = dict(enumerate(now)) if isinstance(now, (list, tuple)) else vars(now)
    found = (
        _changed(f"{name}__{key}", one, values.get(key)) for key, one in inner.items()
    )
    return next(filter(None, found), None)


class DefaultObjects:
    """Mixin for estimators whose parameters default to other estimators.

    scikit-learn keeps mutable objects out of signatures, so the default is written ``None``. The class attribute
    ``_default_objects`` maps such a parameter to a function that makes its default object. ``_hints`` maps a parameter
    of another library's estimator to what to write here.
    """

    _default_objects = {}
    _hints = {}

    @classmethod
    def _hint_at(cls, params, error):
        for name in cls._hints.keys() & params:
            if name not in cls._get_param_names():
                raise error(
                    f"{cls.__name__} has no parameter {name!r}: write {cls._hints[name]}."
                )

    def get_params(self, deep=True):
        """Return the parameters.

        Parameters
        ----------
        deep : bool, default=True
            Whether to add the parameters of nested objects as ``name__nested``, those of a default object included.

        Returns
        -------
        params : dict
            Values by name.
        """
        params = super().get_params(deep=deep)
        if deep:
            for name in [
                name for name in self._default_objects if params[name] is None
            ]:
                nested = self._default_objects[name]().get_params()
                params.update(
                    {f"{name}__{key}": value for key, value in nested.items()}
                )
        return params

    def set_params(self, **params):
        """Set parameters, nested ones of a default object included.

        Parameters
        ----------
        **params : dict
            Parameters by name. Setting ``name__nested`` while ``name`` is None first installs the documented default
            object, so that ``binning__n_bins`` can be searched without naming a strategy.

        Returns
        -------
        self : object
            The estimator.

        Raises
        ------
        ValueError
            If there is no such parameter, or it holds a value without parameters, such as a number of bins.
        """
        self._hint_at(params, ValueError)
        for name in {key.partition("__")[0] for key in params if "__" in key} & set(
            self._default_objects
        ):
            value = params.get(name, getattr(self, name))
            if value is None:
                params[name] = self._default_objects[name]()
            elif not hasattr(value, "set_params"):
                raise ValueError(
                    f"{name}={value!r} has no parameters of its own to set: give an object such as "
                    f"{self._default_objects[name]()!r}."
                )
        return super().set_params(**params)

    def _remember_parameters(self):
        """Keep the parameters of a fit, for `check_fitted`; `input` is that of a nested object in some classes."""
        names = {*self._get_param_names(), "input"}.difference(_FREE)
        self._fitted_with_ = {
            name: _kept(getattr(self, name))
            for name in sorted(names)
            if hasattr(self, name)
        }

    def _resolved(self, name):
        """Return a fresh clone of the object in parameter `name`, or of its default where that is None."""
        value = getattr(self, name)
        return (
            self._default_objects[name]() if value is None else clone(value, safe=False)
        )


class ParameterHints(DefaultObjects):
    """The same for classes with a constructor, which finds a parameter with a hint, too."""

    def __new__(cls, *args, **params):
        """Make the object; its constructor would only say that the parameter is unexpected."""
        cls._hint_at(params, TypeError)
        return super().__new__(cls)
