"""A real PostgreSQL server for tests: made in a folder of its own, killed and started again at will."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path


def binaries() -> Path | None:
    """The folder of `initdb` and `pg_ctl`; the newest, where there are several."""
    folders = [Path(found).resolve().parent for found in [shutil.which("pg_ctl")] if found]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -float(path.parent.name))
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


class Postgres:
    """One server on a free port of this machine. It refuses to run as root: then the user `postgres` runs it."""

    def __init__(self, folder: Path) -> None:
        self._binaries = folder
        self.folder = Path(tempfile.mkdtemp(prefix="o2pl-postgres-"))
        if os.getuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self._data = self.folder / "data"
        self._call("initdb", "--auth=trust", "--username=o2pl", "--encoding=UTF8", "--no-locale", "--no-sync")
        with (self._data / "postgresql.conf").open("a") as settings:
            settings.write(f"port = {self.port}\nlisten_addresses = '127.0.0.1'\n")
            settings.write(f"unix_socket_directories = '{self.folder}'\nmax_connections = 60\n")
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://o2pl@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        self._call("pg_ctl", "start", "--wait", "--silent", f"--log={self.folder / 'log'}")

    def kill(self) -> None:
        """As if the power went: no checkpoint, connections cut."""
        self._call("pg_ctl", "stop", "--mode=immediate", "--silent")

    def remove(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):  # it is down already
            self.kill()
        shutil.rmtree(self.folder)

    def empty(self) -> None:
        """No tables, no rows."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")

    def _call(self, name: str, *arguments: str) -> None:
        command = [str(self._binaries / name), "-D", str(self._data), *arguments]
        if os.getuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder)
