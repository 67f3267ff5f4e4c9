from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from o2pl.locks import FileLock

HOLDER = """
import sys
from o2pl.locks import FileLock
lock = FileLock(sys.argv[1])
print(lock.take(), flush=True)
sys.stdin.read()
"""
# Imports every module as where these are missing. Other packages may have them: on Windows they import something else.
WITHOUT_POSIX = """
import builtins, importlib, pkgutil
POSIX = {"fcntl", "grp", "posix", "pwd", "pty", "resource", "syslog", "termios", "tty"}
there = builtins.__import__
def without(name, here=None, *more, **named):
    if name in POSIX and (here or {}).get("__name__", "").partition(".")[0] == "o2pl":
        raise ModuleNotFoundError(f"{here['__name__']} imports {name}, which Windows does not have")
    return there(name, here, *more, **named)
builtins.__import__ = without
import o2pl
for found in pkgutil.walk_packages(o2pl.__path__, "o2pl."):
    if not found.name.startswith(("o2pl.adapters.", "o2pl.kernels.gpu_")):  # these need other libraries
        importlib.import_module(found.name)
"""


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    one, two = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")

    assert one.take()
    assert one.take()
    assert not two.take()
    assert one.take()
    assert not two.take()
    one.release()
    assert two.take()
    assert not one.take()
    two.release()
    two.release()
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]
    assert (tmp_path / "lock").stat().st_size == 0


def test_the_lock_goes_with_its_process(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path / "lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline() == b"True\n"
        assert not lock.take()
        holder.kill()
        holder.wait()
    assert lock.take()
    lock.release()


def test_the_lock_is_its_owners_alone(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert lock.take()
    lock.release()
    if os.name == "posix":
        assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_locked_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(b"a file with something in it, of more than a hundred bytes. " * 3)
    with pytest.raises(OSError, match="lock: cannot be locked: file is not a database"):
        FileLock(tmp_path / "lock").take()
    with pytest.raises(FileNotFoundError):
        FileLock(tmp_path / "missing" / "lock").take()


def test_no_module_needs_what_windows_does_not_have() -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT_POSIX], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
