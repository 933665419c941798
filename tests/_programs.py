"""Programs that some tests need, such as node or the server of PostgreSQL."""

import os

import pytest


def required(flag, found, reason):
    """Skip where something is missing, unless an environment variable says that it must
    be there.
    """
    if not found and os.environ.get(flag) != "1":
        pytest.skip(reason)
