"""A PostgreSQL server of the tests' own: in a temporary folder, without a network, gone
afterwards.
"""

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path


def programs():
    """Return the folder with initdb and pg_ctl, None where PostgreSQL is not
    installed.
    """
    found = shutil.which("pg_ctl")
    folders = (
        [Path(found).resolve().parent]
        if found
        else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    )
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@contextmanager
def server(folder):
    """Start a server with the programs of a folder; yield the arguments of
    `psycopg.connect`.
    """
    home = Path(tempfile.mkdtemp(prefix="pg"))
    # PostgreSQL does not run as root: Debian's package has a user for it.
    user = (
        {"user": "postgres", "group": "postgres", "extra_groups": []}
        if os.geteuid() == 0
        else {}
    )
    if user:
        shutil.chown(home, "postgres", "postgres")

    def run(program, *arguments):
        subprocess.run(
            [folder / program, *arguments],
            check=True,
            cwd=home,
            capture_output=True,
            timeout=120,
            **user,
        )

    try:
        run(
            "initdb",
            "-D",
            home / "data",
            "-U",
            "tester",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
        )
        options = (
            f"-c listen_addresses='' -c unix_socket_directories='{home}' -c fsync=off"
        )
        run(
            "pg_ctl",
            "-D",
            home / "data",
            "-w",
            "-l",
            home / "log",
            "-o",
            options,
            "start",
        )
        try:
            yield {"host": str(home), "user": "tester", "dbname": "postgres"}
        finally:
            run("pg_ctl", "-D", home / "data", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)
