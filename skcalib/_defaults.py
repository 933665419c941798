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
        """
        for name in {key.partition("__")[0] for key in params if "__" in key}:
            if name in self._default_objects and params.get(name, getattr(self, name)) is None:
                params[name] = self._default_objects[name]()
        return super().set_params(**params)

    def _resolved(self, name):
        """Return a fresh clone of the object in parameter `name`, or of its default where that is None."""
        value = getattr(self, name)
        return self._default_objects[name]() if value is None else clone(value, safe=False)
