"""Progress of a command: a bar or a counter on a terminal, occasional lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from o2pl.fitting.passes import Pass

_EVERY = 5.0  # seconds between lines without a terminal

Say = Callable[[str, int, int | None], None]  # description, parts done, parts in total (if known)


class Progress:
    """Progress callbacks of a fit."""

    def __init__(self, say: Say) -> None:
        self._say, self._passes = say, 0

    def told(self, name: str, done: int, total: int) -> None:
        """Report that a candidate is done."""
        self._say(f"{done} of {total} parts done ({name})", done, total)

    def read(self, rows: int, total: int) -> None:
        """Report the number of rows read."""
        self._say(f"{rows:,} of {total:,} rows read", rows, total)

    def passed(self, one: Pass) -> None:
        """Report a finished pass over all rows."""
        self._passes += 1
        self._say(f"{described_progress(one)} ({self._passes} passes in all)", self._passes, None)


def described_progress(one: Pass) -> str:
    said = f"solve {one.solve}, pass {one.number}: objective {one.objective:.6f}"
    if one.penalty is not None and one.clipped is not None:
        said += f", penalty {one.penalty:.6f}, weights clipped {one.clipped:.2%}"
    return said + (f", {one.rows / one.seconds:,.0f} rows/s" if one.seconds else ", from a checkpoint")


@contextmanager
def shown_progress(what: str = "fit") -> Iterator[Progress]:
    """Show progress while the context is open. what: description of the work."""
    from rich import progress
    from rich.console import Console

    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield Progress(_progress_lines(what))
        return
    columns = (progress.TextColumn("{task.description}"), progress.BarColumn(), progress.TimeRemainingColumn())
    with progress.Progress(*columns, console=screen) as bar:
        task = bar.add_task(what, total=None)

        def say(said: str, done: int, total: int | None) -> None:
            bar.update(task, description=said, completed=done, total=total)

        yield Progress(say)


def _progress_lines(what: str) -> Any:
    spoke = time.monotonic()

    def say(said: str, done: int, total: int | None) -> None:
        nonlocal spoke
        if time.monotonic() - spoke >= _EVERY or done == total:
            spoke = time.monotonic()
            typer.echo(f"{what}: {said}", err=True)

    return say


@contextmanager
def counted_progress(what: str) -> Iterator[Callable[[int], None]]:
    """Show a counter, if the output is a terminal."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    yield lambda done: typer.echo(f"\r{done:,} {what}", err=True, nl=False)
    typer.echo("\r\033[K", err=True, nl=False)
