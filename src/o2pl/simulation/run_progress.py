"""Progress of a run: a bar on a terminal, occasional lines elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, Protocol, Self

from o2pl.simulation.engines import Failed, Outcome
from o2pl.simulation.experiment import Unit


class UnitProgress(Protocol):
    """Progress callbacks for finished units. A context manager, so that a bar is always removed."""

    def begin(self, name: str, missing: int, finished: int) -> None: ...
    def say(self, line: str) -> None: ...
    def ended(self, unit: Unit, outcome: Outcome) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...


class Silent:
    def begin(self, name: str, missing: int, finished: int) -> None:
        """Nothing to say."""

    def say(self, line: str) -> None:
        """Nobody listens."""

    def ended(self, unit: Unit, outcome: Outcome) -> None:
        """Nothing to say."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to take down."""


class Pace:
    """Rate of finished units and time left: unknown until enough units have finished.

    Time counts from the end of the first unit, which waits for workers to start. Units differ,
    so a tenth of them must have ended, and five or half of few.
    """

    def __init__(self, missing: int) -> None:
        self.missing, self.done = missing, 0
        self._enough = max(math.ceil(missing / 10), min(5, math.ceil(missing / 2))) + 1
        self._first = self._last = 0.0

    def ended(self, now: float) -> None:
        self.done += 1
        self._last = now
        if self.done == 1:
            self._first = now

    @property
    def rate(self) -> float | None:
        """Units per second; None if unknown."""
        seconds = self._last - self._first
        return (self.done - 1) / seconds if self.done >= self._enough and seconds > 0 else None

    @property
    def text(self) -> str:
        """Rate and time left as text; empty while unknown; no time left once all units have finished."""
        if self.rate is None:
            return ""
        left = self.missing - self.done
        return run_progress_speed(self.rate) + (
            f", about {run_progress_duration(left / self.rate)} left" if left else ""
        )


class Plain(Silent):
    """Prints lines, at most one per `every` seconds, and all failures."""

    def __init__(self, write: Callable[[str], Any], every: float = 10.0) -> None:
        self.write, self.every = write, every

    def begin(self, name: str, missing: int, finished: int) -> None:
        self.name, self.pace = name, Pace(missing)
        self.spoke = time.monotonic()
        self.write(run_progress_opening(name, missing, finished))

    def say(self, line: str) -> None:
        self.write(line)

    def ended(self, unit: Unit, outcome: Outcome) -> None:
        now = time.monotonic()
        self.pace.ended(now)
        if isinstance(outcome, Failed):
            self.write(run_progress_failure(unit, outcome))
        if now - self.spoke >= self.every or self.pace.done == self.pace.missing:
            self.spoke = now
            said = [f"{self.name}: {self.pace.done} of {self.pace.missing} units done", self.pace.text]
            self.write(", ".join(part for part in said if part))


class ProgressBar(Silent):
    """A Rich progress bar: units done, time so far, and rate and time left once they are known."""

    def __init__(self, console: Any) -> None:
        from rich import progress

        self.bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("units"),
            progress.TimeElapsedColumn(),
            progress.TextColumn("{task.fields[pace].text}"),
            console=console,
        )

    def begin(self, name: str, missing: int, finished: int) -> None:
        self.bar.console.print(run_progress_opening(name, missing, finished), highlight=False, markup=False)
        self.pace = Pace(missing)
        self.task = self.bar.add_task(name, total=missing, pace=self.pace)

    def say(self, line: str) -> None:
        self.bar.console.print(line, highlight=False, markup=False)

    def ended(self, unit: Unit, outcome: Outcome) -> None:
        self.pace.ended(time.monotonic())
        if isinstance(outcome, Failed):
            self.bar.console.print(run_progress_failure(unit, outcome), style="red", highlight=False, markup=False)
        self.bar.advance(self.task)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()


def run_progress_opening(name: str, missing: int, finished: int) -> str:
    before = f", {finished} done before" if finished else ""
    return f"{name}: {missing} unit{'' if missing == 1 else 's'} to compute{before}"


def run_progress_failure(unit: Unit, outcome: Failed) -> str:
    return f"failed: {unit.id} ({unit.learner['name']} on {unit.world['name']}, seed {unit.seed}): {outcome.reason}"


def run_progress_speed(rate: float) -> str:
    """Format units per second, or per minute if that is easier to read."""
    return f"{rate:.1f} units/s" if rate >= 1 else f"{60 * rate:.1f} units/min"


def run_progress_duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
