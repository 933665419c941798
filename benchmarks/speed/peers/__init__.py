"""The peers: one file a library, with a dict ``JOBS`` from the name of a job to a
`Contender`.

A file imports its library at the top, so that one that is not installed is skipped by
name.
"""

import importlib
import pkgutil
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Contender", "installed"]


class Contender(NamedTuple):
    """How a peer does a job.

    `run(problem)` is timed. `answer(result, problem)`, None for the job's own, is what
    is compared, outside the clock. `differs` says why its answer is another one, where
    that is known.
    """

    run: Callable
    answer: Callable | None = None
    differs: str = ""


def installed():
    """Return the jobs of each peer that can be imported, by name, and the names of the
    others.
    """
    found, missing = {}, []
    for module in pkgutil.iter_modules(__path__):
        name = module.name.replace("_", "-")
        try:
            found[name] = importlib.import_module(f"{__name__}.{module.name}").JOBS
        except ImportError:
            missing.append(name)
    return found, missing
