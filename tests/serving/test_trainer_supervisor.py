"""The process beside the server is started again when it ends, and ends with the server."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from o2pl.serving import trainer_supervisor


def test_it_is_started_again_and_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "pids"
    script = (
        "import os, sys, time\n"
        f"open({str(place)!r}, 'a').write(f'{{os.getpid()}} {{os.environ[\"O2PL_DATABASE\"]}} {{sys.argv[1:]}}\\n')\n"
        f"time.sleep(60 if len(open({str(place)!r}).readlines()) > 2 else 0)\n"
    )
    monkeypatch.setattr(trainer_supervisor, "command", lambda arguments: [sys.executable, "-c", script, *arguments])
    monkeypatch.setattr(trainer_supervisor, "_FIRST", 0.01)

    async def run() -> None:
        task = asyncio.create_task(trainer_supervisor.supervise(["train", "--follow"], "secret"))
        while not place.exists() or len(place.read_text().splitlines()) < 3:
            await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    lines = place.read_text().splitlines()
    assert len(lines) == 3
    assert all(line.endswith("secret ['train', '--follow']") for line in lines)
    for line in lines:
        with pytest.raises(ProcessLookupError):
            os.kill(int(line.split()[0]), 0)
    assert "secret" not in " ".join(trainer_supervisor.command(["train"]))
