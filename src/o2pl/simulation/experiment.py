"""An experiment: a table of units, a function that computes one unit, and its result columns.

A *cell* is a world with a learner. A *unit* is a cell with a horizon and a seed. Units are numbered seed by seed,

    number = seed · (number of cells) + cell,

so that selecting seeds, learners or data sets skips numbers but never changes them: `wheel/17` is always the same
world, learner and seed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import o2pl
from o2pl.errors import InvalidInput, nearest
from o2pl.extras import missing_extra
from o2pl.simulation.description import Description

Columns = Mapping[str, Any]  # column name -> one value per row


@dataclass(frozen=True)
class Cell:
    """A world and a learner, described; `needs` names an extra of o2pl.

    `seeds`: no more than the first so many of the size's seeds, for what takes long; others only where asked for.
    """

    world: Description
    learner: Description
    needs: str | None = None
    seeds: int | None = None

    @property
    def available(self) -> bool:
        return self.needs is None or not missing_extra(self.needs)


@dataclass(frozen=True)
class Unit:
    """One run: everything it depends on, and its number in the experiment's table."""

    experiment: str
    number: int
    world: Description
    learner: Description
    rounds: int
    seed: int
    data: str | None = None  # folder of the data sets; not a setting
    needs: str | None = None

    @property
    def id(self) -> str:
        return f"{self.experiment}/{self.number}"

    @property
    def settings(self) -> str:
        """Everything that the rows depend on, as JSON."""
        parts = {"world": self.world, "learner": self.learner, "rounds": self.rounds, "seed": self.seed}
        return json.dumps(parts, sort_keys=True, ensure_ascii=False)

    @property
    def digest(self) -> str:
        """Hash that identifies the results of this unit; it depends on the settings and the version of o2pl."""
        content = f"{self.experiment} {o2pl.__version__} {self.settings}"
        return hashlib.sha256(content.encode()).hexdigest()[:20]

    def check_learner(self, here: Description) -> None:
        """Reject a unit whose learner has other settings in this version."""
        if here != self.learner:
            raise InvalidInput(
                f"{self.id}: found other settings here, expected {self.learner}: another version of o2pl?"
            )


@dataclass(frozen=True)
class Size:
    """How much of the table is run, and for how long. None: all learners, all data sets.

    `datasets` may depend on the data folder (or None, where there is no folder).
    """

    rounds: int
    seeds: int
    learners: tuple[str, ...] | None = None
    datasets: tuple[str, ...] | Callable[[str | None], Sequence[str]] | None = None


@dataclass(frozen=True)
class Options:
    """The user's selection; None: set by the size."""

    size: str = "quick"
    rounds: int | None = None
    seeds: Sequence[int] | None = None
    learners: Sequence[str] | None = None
    datasets: Sequence[str] | None = None
    data: str | None = None


@dataclass(frozen=True)
class Experiment:
    """An experiment. `cells` gets the data folder (or None); `run` must be a top-level function (workers import it)."""

    name: str
    summary: str
    sizes: Mapping[str, Size]
    cells: Callable[[str | None], Sequence[Cell]]
    run: Callable[[Unit], Columns]
    columns: Mapping[str, str]  # name -> Arrow type, such as "int64" or "double"
    headline: str  # column whose last value summarises a unit

    def size(self, options: Options) -> Size:
        if options.size not in self.sizes:
            raise InvalidInput(f"size: found {options.size!r}, expected one of {sorted(self.sizes)}")
        return self.sizes[options.size]

    def units(self, options: Options) -> list[Unit]:
        """Return the selected units, by number. Learners whose extra is missing are skipped unless named."""
        size, cells = self.size(options), self.cells(options.data)
        learners = self._chosen("learners", options.learners, size.learners, [c.learner["name"] for c in cells])
        by_size = size.datasets(options.data) if callable(size.datasets) else size.datasets
        datasets = self._chosen("datasets", options.datasets, by_size, [c.world["name"] for c in cells])
        numbers = [
            seed * len(cells) + place
            for seed in (range(size.seeds) if options.seeds is None else sorted(set(options.seeds)))
            for place, cell in enumerate(cells)
            if cell.learner["name"] in learners and cell.world["name"] in datasets
            if cell.available or options.learners is not None
            if cell.seeds is None or seed < cell.seeds or options.seeds is not None
        ]
        return [self._unit(number, cells, options) for number in numbers]

    def unit(self, number: int, options: Options) -> Unit:
        """Return one unit of the table, independently of the selection."""
        cells = self.cells(options.data)
        seeds = options.seeds if options.seeds is not None else range(max(size.seeds for size in self.sizes.values()))
        last = (max(seeds, default=0) + 1) * len(cells) - 1
        if not 0 <= number <= last:
            raise InvalidInput(
                f"{self.name}: found unit {number}, expected a number from 0 to {last}"
                f" ({len(cells)} worlds and learners, {max(seeds, default=0) + 1} seeds; --seeds 0-99 for more)"
            )
        return self._unit(number, cells, options)

    def left_out(self, options: Options) -> dict[str, str]:
        """Return the learners that are skipped because their extra is missing, with that extra."""
        if options.learners is not None:
            return {}
        wanted = self.size(options).learners
        cells = self.cells(options.data)
        without = {str(c.learner["name"]): str(c.needs) for c in cells if not c.available}
        return {name: extra for name, extra in without.items() if wanted is None or name in wanted}

    def _unit(self, number: int, cells: Sequence[Cell], options: Options) -> Unit:
        seed, place = divmod(number, len(cells))
        rounds = self.size(options).rounds if options.rounds is None else options.rounds
        if rounds < 1:
            raise InvalidInput(f"rounds: found {rounds}, expected a number from 1")
        cell = cells[place]
        return Unit(self.name, number, cell.world, cell.learner, rounds, seed, options.data, cell.needs)

    def _chosen(
        self, what: str, asked: Sequence[str] | None, by_size: Sequence[str] | None, known: Sequence[str]
    ) -> set[str]:
        for name in asked or ():
            if name not in known:
                raise InvalidInput(f"{what}: found {name!r} for {self.name}, {nearest(name, known)}")
        chosen = asked if asked is not None else by_size
        return set(known if chosen is None else chosen)
