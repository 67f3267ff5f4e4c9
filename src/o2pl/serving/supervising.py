"""The trainer as a process beside the server: started again when it ends, stopped with the server."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import sys
import time
from collections.abc import Sequence

_LOGGER = logging.getLogger("o2pl.serving")
_FIRST, _LONGEST = 1.0, 30.0  # seconds before it is started again; twice as long each time
_SOUND = 60.0  # seconds after which it counts as having worked
_PATIENCE = 10.0  # seconds to end in

# On Linux a child is told when its parent has gone, also where that was killed.
_CHILD = (
    "import sys\n"
    "if sys.platform == 'linux':\n"
    "    import ctypes\n"
    "    ctypes.CDLL(None).prctl(1, 15)\n"
    "from o2pl.cli import main\n"
    "main()\n"
)


def has_trainer() -> bool:
    return importlib.util.find_spec("o2pl.serving.trainer") is not None


def command(arguments: Sequence[str]) -> list[str]:
    """Of this package, in the Python that runs now."""
    return [sys.executable, "-c", _CHILD, *arguments]


async def supervise(arguments: Sequence[str], database: str) -> None:
    """Until it is cancelled. The database goes by the environment: others may see the arguments of a process."""
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
        _LOGGER.error("trainer ended; it is started again", extra={"status": status, "in_seconds": wait})
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
