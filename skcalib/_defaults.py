"""Default objects: a parameter that is ``None`` stands for an object that is documented in the signature's place."""

from sklearn.base import clone


class DefaultObjects:
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
