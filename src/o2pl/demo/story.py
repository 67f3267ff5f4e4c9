"""The demo from end to end: four steps, then the page."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from o2pl.demo.improved import improve
from o2pl.demo.judged import judge
from o2pl.demo.online import learn_online
from o2pl.demo.page import page
from o2pl.demo.served import Running, serve_readers, served_demo
from o2pl.extras import missing_extra


@dataclass(frozen=True)
class StorySize:
    """The size of each step."""

    rounds: int = 1797  # all digits
    seeds: int = 3
    logs: tuple[int, ...] = (300, 300, 300, 1000, 1000, 1000)  # rows of each log of the incumbent
    calls: int = 3000  # of the service


def tell_story(out: Path, say: Callable[[str], None], size: StorySize | None = None) -> Path:
    """Run the steps and write the page. Returns its path. say: progress callback."""
    size = size or StorySize()
    began = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(1))  # small problems: BLAS threads would slow each other down
        running: Running | None = None
        if not missing_extra("serve"):
            running = stack.enter_context(served_demo())  # it starts in parallel with the other steps
        online = learn_online(size.rounds, size.seeds, lambda what: say(f"1/4 learn online: {what}"))
        judged = judge(size.rounds, lambda what: say(f"2/4 evaluate from a log: {what}"))
        improved = improve(size.logs, lambda what: say(f"3/4 improve an incumbent: {what}"))
        served = None
        if running is not None:
            served = serve_readers(running, size.calls, lambda what: say(f"4/4 decide over HTTP: {what}"))
    say("writing the page")
    path = out / "index.html"
    path.write_text(page(online, judged, improved, served, time.monotonic() - began), encoding="utf-8")
    return path
