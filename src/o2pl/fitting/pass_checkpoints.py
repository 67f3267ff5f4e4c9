"""Checkpoints of long work in a folder, so that the same command can resume."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from o2pl.protocols import Array
from o2pl.version import __version__


class PassCheckpoints:
    """Cached arrays by name. Checkpoints of a run with other settings (another fingerprint) are removed."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder, stamp = folder, folder / "work.json"
        expected = {"fingerprint": fingerprint, "o2pl": __version__}
        self.other = folder.is_dir() and _read_pass_checkpoint(stamp) != expected
        if self.other:
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if not stamp.exists():
            _write_pass_checkpoint(stamp, json.dumps(expected).encode())
        self.before = len(list(folder.glob("*.npy")))

    def __call__(self, name: str, compute: Callable[[], Array]) -> Array:
        """Return the cached array; compute and store it if it is missing or unreadable."""
        path = self.folder / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.npy"
        try:
            with path.open("rb") as file:
                return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
        except (FileNotFoundError, ValueError, EOFError):
            found = compute()
        partial = path.with_suffix(f".{os.getpid()}.partial")
        with partial.open("wb") as file:
            np.lib.format.write_array(file, np.ascontiguousarray(found), allow_pickle=False)
        os.replace(partial, path)
        return found

    def remove_empty(self) -> None:
        """Remove the folder if it is empty."""
        if not any(self.folder.glob("*.npy")):
            self.remove()

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _read_pass_checkpoint(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def _write_pass_checkpoint(path: Path, content: bytes) -> None:
    partial = path.with_suffix(f".{os.getpid()}.partial")
    partial.write_bytes(content)
    os.replace(partial, path)


def pass_checkpoint_stamps(path: Path) -> list[tuple[str, int, int]]:
    """Return name, size and modification time of a file, or of all files of a folder, to detect changes."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [(str(file.relative_to(path)), *_pass_checkpoint_stamp(file)) for file in files if file.is_file()]


def _pass_checkpoint_stamp(file: Path) -> tuple[int, int]:
    state = file.stat()
    return state.st_size, state.st_mtime_ns


def fingerprint(*values: object) -> str:
    """Return a hash of the values that is the same in every process."""
    taken = hashlib.blake2b(digest_size=16)
    for value in values:
        _take_into_pass_checkpoint(taken, value)
    return taken.hexdigest()


def _take_into_pass_checkpoint(taken: Any, value: Any) -> None:
    if isinstance(value, np.ndarray) and value.dtype != object:
        taken.update(f"{value.dtype}{value.shape}".encode())
        taken.update(np.ascontiguousarray(value).data)
    elif isinstance(value, bytes):
        taken.update(b"%d:" % len(value))
        taken.update(value)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            taken.update(field.name.encode())
            _take_into_pass_checkpoint(taken, getattr(value, field.name))
    elif isinstance(value, dict):
        for key, item in value.items():
            _take_into_pass_checkpoint(taken, str(key).encode())
            _take_into_pass_checkpoint(taken, item)
    elif isinstance(value, list | tuple | np.ndarray):
        taken.update(b"[%d" % len(value))
        for item in value:
            _take_into_pass_checkpoint(taken, item)
    else:
        _take_into_pass_checkpoint(taken, repr(value).encode())
