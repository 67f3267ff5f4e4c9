"""How far a run is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, Self

from o2pl.experiments.engines import Failed, Outcome
from o2pl.experiments.experiment import Unit


class Progress(Protocol):
    """Told of every unit as it ends. A context, so that a bar is taken down whatever happens."""

    def begin(self, name: str, missing: int, finished: int) -> None: ...
    def ended(self, unit: Unit, outcome: Outcome) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...


class Silent:
    def begin(self, name: str, missing: int, finished: int) -> None:
        """Nothing to say."""

    def ended(self, unit: Unit, outcome: Outcome) -> None:
        """Nothing to say."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to take down."""


class Plain(Silent):
    """Lines, at most one every `every` seconds but for failures."""

    def __init__(self, write: Callable[[str], Any], every: float = 10.0) -> None:
        self.write, self.every = write, every

    def begin(self, name: str, missing: int, finished: int) -> None:
        self.name, self.missing, self.done = name, missing, 0
        self.started = self.spoke = time.monotonic()
        self.write(opening(name, missing, finished))

    def ended(self, unit: Unit, outcome: Outcome) -> None:
        self.done += 1
        if isinstance(outcome, Failed):
            self.write(failure(unit, outcome))
        now = time.monotonic()
        if now - self.spoke >= self.every or self.done == self.missing:
            self.spoke = now
            rate = self.done / max(now - self.started, 1e-9)
            left = duration((self.missing - self.done) / rate)
            self.write(f"{self.name}: {self.done} of {self.missing} units done, {speed(rate)}, {left} left")


class Bar(Silent):
    """A Rich bar: units done, rate and time left."""

    def __init__(self, console: Any) -> None:
        from rich import progress

        class Rate(progress.ProgressColumn):
            def render(self, task: progress.Task) -> str:
                rate = task.finished_speed or task.speed
                return speed(rate) if rate else ""

        self.bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("units"),
            Rate(),
            progress.TimeRemainingColumn(elapsed_when_finished=True),
            console=console,
            speed_estimate_period=600,
        )

    def begin(self, name: str, missing: int, finished: int) -> None:
        self.bar.console.print(opening(name, missing, finished), highlight=False, markup=False)
        self.task = self.bar.add_task(name, total=missing)

    def ended(self, unit: Unit, outcome: Outcome) -> None:
        if isinstance(outcome, Failed):
            self.bar.console.print(failure(unit, outcome), style="red", highlight=False, markup=False)
        self.bar.advance(self.task)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()


def opening(name: str, missing: int, finished: int) -> str:
    before = f", {finished} done before" if finished else ""
    return f"{name}: {missing} unit{'' if missing == 1 else 's'} to compute{before}"


def failure(unit: Unit, outcome: Failed) -> str:
    return f"failed: {unit.id} ({unit.learner['name']} on {unit.world['name']}, seed {unit.seed}): {outcome.reason}"


def speed(rate: float) -> str:
    """Units per second, or per minute where that is easier to read."""
    return f"{rate:.1f} units/s" if rate >= 1 else f"{60 * rate:.1f} units/min"


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
