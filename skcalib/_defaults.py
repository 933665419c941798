"""Parameters that stand for a default object, and hints where a parameter of another library is given."""

import functools

from sklearn.base import clone


class ParameterHints:
    """Mixin for estimators that name the way where a parameter of another library's estimator is given.

    The class attribute ``_hints`` maps such a parameter to what to write here.
    """

    _hints = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls._hints and "__init__" in vars(cls):
            cls.__init__ = _hinting(cls.__init__)


def _hinting(init):
    """Return the same constructor, signature included, that first looks for parameters with a hint."""

    @functools.wraps(init)
    def hinting(self, *args, **params):
        for name in self._hints.keys() & params.keys():
            raise TypeError(f"{type(self).__name__} has no parameter {name!r}: write {self._hints[name]}.")
        init(self, *args, **params)

    return hinting


class DefaultObjects(ParameterHints):
    """Mixin for estimators whose parameters default to other estimators.

    scikit-learn keeps mutable objects out of signatures, so the default is written ``None``. The class attribute
    ``_default_objects`` maps such a parameter to a function that makes its default object.
    """

    _default_objects = {}

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
            If the parameter holds a value without parameters, such as a number of bins.
        """
        for name in {key.partition("__")[0] for key in params if "__" in key} & set(self._default_objects):
            value = params.get(name, getattr(self, name))
            if value is None:
                params[name] = self._default_objects[name]()
            elif not hasattr(value, "set_params"):
                raise ValueError(
                    f"{name}={value!r} has no parameters of its own to set: give an object such as "
                    f"{self._default_objects[name]()!r}."
                )
        return super().set_params(**params)

    def _resolved(self, name):
        """Return a fresh clone of the object in parameter `name`, or of its default where that is None."""
        value = getattr(self, name)
        return self._default_objects[name]() if value is None else clone(value, safe=False)
