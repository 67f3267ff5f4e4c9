"""Supervises the trainer process of a server: restarts it when it ends, stops it with the server."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import sys
import time
from collections.abc import Sequence

_LOGGER = logging.getLogger("o2pl.serving")
_FIRST, _LONGEST = 1.0, 30.0  # seconds before a restart; doubled each time
_SOUND = 60.0  # seconds of running after which the delay is reset
_PATIENCE = 10.0  # seconds to stop in

# On Linux the child gets a signal when its parent ends, even if that was killed, or was killed already.
_CHILD = (
    "import os, sys\n"
    "if sys.platform == 'linux':\n"
    "    import ctypes\n"
    "    ctypes.CDLL(None).prctl(1, 15)\n"
    "    if os.getppid() != int(sys.argv.pop(1)):\n"
    "        sys.exit()\n"
    "from o2pl.cli import main\n"
    "main()\n"
)


def has_trainer() -> bool:
    return importlib.util.find_spec("o2pl.serving.trainer") is not None


def command(arguments: Sequence[str]) -> list[str]:
    """Return the command line of this package in the current Python."""
    return [sys.executable, "-c", _CHILD, *([str(os.getpid())] if sys.platform == "linux" else []), *arguments]


async def supervise(arguments: Sequence[str], database: str) -> None:
    """Run until cancelled. The database URL is passed by environment: other users can see process arguments."""
    wait = _FIRST
    while True:
        began = time.monotonic()
        child = await asyncio.create_subprocess_exec(
            *command(arguments), env={**os.environ, "O2PL_DATABASE": database}, stdin=asyncio.subprocess.DEVNULL
        )
        _LOGGER.info("trainer started", extra={"pid": child.pid})
        try:
            status = await child.wait()
        except asyncio.CancelledError:
            await _stop(child)
            raise
        wait = _FIRST if time.monotonic() - began > _SOUND else min(2 * wait, _LONGEST)
        _LOGGER.error("trainer ended; restarting it", extra={"status": status, "in_seconds": wait})
        await asyncio.sleep(wait)


async def _stop(child: asyncio.subprocess.Process) -> None:
    if child.returncode is not None:
        return
    child.terminate()
    try:
        await asyncio.wait_for(child.wait(), _PATIENCE)
    except TimeoutError:
        child.kill()
        await child.wait()
