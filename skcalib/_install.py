"""How to install an optional extra: the one place that says it."""

_IS_RELEASED = False  # True once the package is on the package index


def install(extra):
    """Return the command that installs an extra of the package, such as ``"plot"``."""
    if _IS_RELEASED:
        return f'pip install "skcalib[{extra}]"'
    return f'pip install ".[{extra}]" in a clone of skcalib'
