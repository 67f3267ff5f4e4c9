"""`o2pl demo`."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Self

import typer

from o2pl.extras import extra_install_command, missing_extra, require_extra

EXAMPLES = "`o2pl demo`, then open the page."


def demo(out: Annotated[Path, typer.Option(help="Folder for the page.")] = Path("out/demo")) -> None:
    """Show what o2pl does, in about a minute, and write a page with figures.

    Four steps on built-in data: compare `Bandit` with its rivals online; evaluate other policies from its log; improve
    a policy in production safely; serve decisions over HTTP. Prints the page's path.
    """
    require_extra("experiments", "the demo")
    from rich.console import Console

    from o2pl.demo.story import tell_story

    for name, what in (("vw", "Vowpal Wabbit"), ("serve", "the decision service")):
        if missing_extra(name):
            typer.echo(f"{what} is skipped; to include it: {extra_install_command(name)}", err=True)
    with Steps(Console(stderr=True)) as steps:
        path = tell_story(out, steps)
    typer.echo(f"page: {path}")


class Steps:
    """Progress lines with times: one updated line on a terminal, one line per step elsewhere."""

    def __init__(self, console: Any) -> None:
        self._console = console
        self._status = console.status("") if console.is_terminal else None
        self._what, self._began = "", 0.0

    def __call__(self, what: str) -> None:
        self._end()
        self._what, self._began = what, time.monotonic()
        if self._status is not None:
            self._status.update(f"{what} …")

    def _end(self) -> None:
        if self._what:
            seconds = time.monotonic() - self._began
            self._console.print(f"{self._what} ({seconds:.1f} s)", highlight=False, markup=False, soft_wrap=True)
            self._what = ""

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()
        if kind is None:
            self._end()
