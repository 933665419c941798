#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""The jobs of a contributor: ``nox -s tests``, ``slow``, ``docs`` and ``lint``.

``bash .ci/run`` runs all that continuous integration runs.
"""

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"


@nox.session
def tests(session):
    """Run the fast tests, or those named: ``nox -s tests -- tests/test_beta.py``."""
    session.install(".[plot,test]")
    session.run("pytest", *session.posargs)


@nox.session(default=False)
def slow(session):
    """Run simulations, and the checks of the checks."""
    session.install(".[plot,test]")
    session.run("pytest", "-m", "slow", *session.posargs)


@nox.session(default=False)
def docs(session):
    """Build the site into ``doc/_build``; a warning is an error."""
    session.install(".[doc]")
    session.run("sphinx-build", "-W", "-j", "auto", "-b", "html", "doc", "doc/_build")


@nox.session
def lint(session):
    """Check style and spelling."""
    session.install("ruff==0.17.*", "codespell>=2.3")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("codespell")


if __name__ == "__main__":
    nox.main()
