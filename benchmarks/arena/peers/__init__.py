"""The peers: one file a library, with dicts ``BINARY`` and ``MULTICLASS`` from a name
to a function.

The function takes (probs_cal, labels_cal, probs_test) and returns probabilities. A file
imports its library at the top, so that one that is not installed is skipped by name.
"""

import importlib
import pkgutil
import warnings

__all__ = ["installed"]


def installed(kind):
    """Return the contenders of the peers that can be imported, as "library: method",
    and the names of the others.
    """
    found, missing = {}, []
    for module in pkgutil.iter_modules(__path__):
        library = module.name.replace("_", "-")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                contenders = getattr(
                    importlib.import_module(f"{__name__}.{module.name}"), kind.upper()
                )
        except ImportError:
            missing.append(library)
            continue
        found |= {
            f"{library}: {name}": _Quiet(fit_predict)
            for name, fit_predict in contenders.items()
        }
    return found, missing


class _Quiet:
    """A peer's warnings, those of its import included, are not ours to explain."""

    def __init__(self, fit_predict):
        self.fit_predict = fit_predict

    def __call__(self, *data):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.fit_predict(*data)
