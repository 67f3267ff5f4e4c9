"""Other libraries, for real: each works in a child process of `.venv-peers`, since their pins and ours conflict.

`make peers` makes that environment (`peer_environment.py`); `peer_loops.py` is what the child runs, and its clock is
what counts. Both sides of a row get the same columns.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from benchmarks import peer_loops
from benchmarks.measure import Played, Skipped, Told
from benchmarks.peer_environment import REASONS
from o2pl.protocols import Array

ENVIRONMENT = Path(__file__).parents[1] / ".venv-peers"
PEERS = tuple(peer_loops.LOOPS)


def versions() -> dict[str, str]:
    """Of the peers that are installed; `about` of the page."""
    site = sysconfig.get_path("purelib", "venv", {"base": str(ENVIRONMENT), "platbase": str(ENVIRONMENT)})
    found = {each.name: each.version for each in importlib.metadata.distributions(path=[site])}
    return {name: found[name] for name in PEERS if name in found}


def interpreter(name: str) -> str:
    """The Python of the peers' environment; skipped, saying why, where it does not hold this one."""
    python = Path(sysconfig.get_path("scripts", "venv", {"base": str(ENVIRONMENT)})) / "python"
    if not (python.exists() and (ENVIRONMENT / REASONS).exists()):
        raise Skipped(f"{name} is not installed: `make peers` makes the environment that holds it, .venv-peers")
    if reason := json.loads((ENVIRONMENT / REASONS).read_text()).get(name):
        raise Skipped(f"{name} did not install: {reason}")
    return str(python)


class Child:
    """A process that runs one library's code on these columns, and tells how long that took."""

    def __init__(self, name: str, **columns: Array) -> None:
        self.name = name
        python = interpreter(name)
        self._folder = tempfile.TemporaryDirectory()
        for column, values in columns.items():
            np.save(Path(self._folder.name) / f"{column}.npy", values)
        self._process = subprocess.Popen(
            [python, str(peer_loops.__file__), self._folder.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # progress bars
            text=True,
        )

    def ask(self, task: str, **details: Any) -> dict[str, Any]:
        """The answer; skipped where the library fails."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has died: there will be no answer
            print(json.dumps({"task": task, "peer": self.name, **details}), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        said: dict[str, Any] = json.loads(line) if line else {}
        if "seconds" not in said:
            status = said.get("error") or f"its process ended with status {self._process.wait(5)}"
            raise Skipped(f"{self.name} did not work: {status}")
        return said

    def seconds(self, task: str, **details: Any) -> Told:
        return Told(self.ask(task, **details)["seconds"])

    def play(self, task: str, **details: Any) -> Played:
        said = self.ask(task, **details)
        return Played(said["mean"], said["seconds"])

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()
