"""A MariaDB server of the tests' own: in a temporary folder, without a network, gone
afterwards.
"""

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

_SECONDS_TO_START = 60


def programs():
    """Return the paths of mariadb-install-db and mariadbd, None where one is not
    installed.
    """
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
    found = [
        shutil.which(name, path=path) for name in ("mariadb-install-db", "mariadbd")
    ]
    return None if None in found else found


@contextmanager
def server(install, daemon):
    """Start a server with these programs; yield the arguments of `pymysql.connect`."""
    home = Path(tempfile.mkdtemp(prefix="maria"))
    user = []
    if os.geteuid() == 0:  # it does not run as root: Debian's package has a user
        shutil.chown(home, "mysql", "mysql")
        user = ["--user=mysql"]
    data = f"--datadir={home / 'data'}"
    socket = home / "socket"
    try:
        subprocess.run(
            [install, "--no-defaults", *user, data, "--skip-test-db"],
            check=True,
            capture_output=True,
            timeout=120,
        )
        running = subprocess.Popen(
            [
                daemon,
                "--no-defaults",
                *user,
                data,
                f"--socket={socket}",
                "--skip-networking",
                "--skip-grant-tables",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            begin = time.monotonic()
            while not socket.exists():
                if running.poll() is not None:
                    raise RuntimeError("MariaDB ended before it was ready")
                if time.monotonic() - begin > _SECONDS_TO_START:
                    raise RuntimeError("MariaDB did not start")
                time.sleep(0.1)
            yield {"unix_socket": str(socket), "user": "root"}
        finally:
            running.terminate()
            running.wait(timeout=60)
    finally:
        shutil.rmtree(home, ignore_errors=True)
