"""Tuning of the wheel and of the offline studies: the same search, with the same budget, for every method.

    python -m o2pl_reproduction.studies.tuning [NAME ...]   # prints each choice, the next best and what lies at an edge

A method has dials. Its coarse grid has 27 settings, and 26 more lie around the best of these; the best twelve are
played on further seeds too, and the best mean over all seeds counts. If that of any method is then at the edge of what
it has tried, all methods get 26 more around theirs, up to twice. Reports use seeds from 0, the search others.

The grids stood before the first run. How many seeds and finalists there are, and what follows from an edge, was changed
after first runs on these seeds, for all methods alike.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from o2pl.simulation.experiment import Unit
from o2pl.simulation.units import crossed_units, play_unit
from o2pl.simulation.worlds import LOGGED_TASKS
from o2pl_reproduction.studies import offline, wheel, wheel_learners
from o2pl_reproduction.studies.offline_multiclass import SETS
from o2pl_reproduction.studies.offline_synthetic import TASKS
from o2pl_reproduction.studies.overlap import log_of, world

Setting = tuple[Any, ...]  # a value of each dial
SeedScores = dict[int, float]  # seed -> score; higher is better
MORE, ZOOMS, FINALISTS, FINALISTS_SHOWN = 26, 3, 12, 4


@dataclass(frozen=True)
class Dial:
    """Its values in the coarse grid, and the factors around the best of them; no factors: a choice, not a number."""

    name: str
    coarse: tuple[Any, ...]
    factors: tuple[float, ...] = ()
    highest: float = math.inf  # there is nothing beyond this

    def around(self, value: Any, power: float = 1.0) -> tuple[Any, ...]:
        if not self.factors:
            return self.coarse
        return tuple(float(f"{min(value * factor**power, self.highest):.3g}") for factor in self.factors)


@dataclass(frozen=True)
class TunedMethod:
    dials: tuple[Dial, ...]
    make: Callable[..., Any]  # dial values -> MakeLearner


@dataclass(frozen=True)
class Tuning:
    """Methods that are to get the same number of settings, on `seeds`, and the best few on `further` seeds too."""

    methods: Mapping[str, TunedMethod]
    score: Callable[[Any, int], float]  # of what makes the learner, with a seed
    seeds: Sequence[int]
    further: Sequence[int]


@dataclass(frozen=True)
class Choice:
    setting: Setting
    tried: dict[Setting, SeedScores]
    edges: tuple[str, ...]  # dials of which the setting has an outermost value that is clearly better than inner ones


# -- the search


def choose(tuning: Tuning) -> dict[str, Choice]:
    """Return method -> its chosen setting."""
    tried: dict[str, dict[Setting, SeedScores]] = {name: {} for name in tuning.methods}

    def play(name: str, settings: Iterable[Setting], seeds: Sequence[int]) -> None:
        for setting in settings:
            scores = tried[name].setdefault(setting, {})
            make = tuning.methods[name].make(*setting)
            scores.update({seed: tuning.score(make, seed) for seed in seeds if seed not in scores})

    for name, method in tuning.methods.items():
        play(name, itertools.product(*(dial.coarse for dial in method.dials)), tuning.seeds)
    for _ in range(ZOOMS):
        for name, method in tuning.methods.items():
            play(name, nearby(method.dials, tried[name]), tuning.seeds)
            first = {setting: {seed: scores[seed] for seed in tuning.seeds} for setting, scores in tried[name].items()}
            play(name, ranked(first)[:FINALISTS], tuning.further)
        if not any(edges(method.dials, tried[name]) for name, method in tuning.methods.items()):
            break
    return {
        name: Choice(ranked(tried[name])[0], tried[name], edges(method.dials, tried[name]))
        for name, method in tuning.methods.items()
    }


def nearby(dials: Sequence[Dial], tried: Mapping[Setting, SeedScores]) -> list[Setting]:
    """`MORE` settings around the best that are not among those tried: with finer steps if there are too few."""
    best, found = ranked(tried)[0], dict[Setting, None]()
    for finer in range(1, 1 + ZOOMS * len(tried)):
        grid = itertools.product(*(dial.around(value, 1 / finer) for dial, value in zip(dials, best, strict=True)))
        found |= {setting: None for setting in grid if setting not in tried}
        if len(found) >= MORE:
            break
    return list(found)[:MORE]


def ranked(tried: Mapping[Setting, SeedScores]) -> list[Setting]:
    """Return settings by mean score, best first; those with the most seeds come first."""
    return sorted(tried, key=lambda setting: (-len(tried[setting]), -mean(tried[setting])))


def mean(scores: SeedScores) -> float:
    return float(np.mean(list(scores.values())))


def edges(dials: Sequence[Dial], tried: Mapping[Setting, SeedScores]) -> tuple[str, ...]:
    """Dials of which the best has an outermost value, better than the best with an inner one by a standard error."""
    best, found = ranked(tried)[0], []
    for place, dial in enumerate(dials):
        values = [setting[place] for setting in tried]
        if not dial.factors or best[place] == dial.highest or min(values) < best[place] < max(values):
            continue
        inner = ranked({s: tried[s] for s in tried if min(values) < s[place] < max(values)})[0]
        gains = np.array([tried[best][seed] - tried[inner][seed] for seed in tried[best] if seed in tried[inner]])
        if gains.mean() > gains.std(ddof=1) / math.sqrt(len(gains)):
            found.append(dial.name)
    return tuple(found)


# -- tuned methods


def _steps(factor: float, reach: int) -> tuple[float, ...]:
    return tuple(factor**power for power in range(-reach, reach + 1))


WIDTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
RIDGE = Dial("ridge", (0.1, 1.0, 10.0), _steps(3, 1))
WHEEL_DIALS = {
    "o2pl": (
        Dial("level", (0.1, 0.3, 0.9), _steps(1.7, 1), highest=1.0),  # the baseline is minus this
        Dial("warm start", (15.0, 60.0, 240.0), _steps(2, 1)),
        Dial("sharpness", (3.0, 10.0, 30.0), _steps(1.8, 1)),
    ),
    "linucb": (Dial("α", (0.3, *WIDTHS, 3000.0), _steps(1.5, 4)), RIDGE),
    "lints": (Dial("v", (0.1, 0.3, *WIDTHS), _steps(1.5, 4)), RIDGE),
}
KINDS = Dial("link, level", (("ridge", "mean"), ("logistic", "mean"), ("ridge", 0.0)))
OFFLINE_L2 = Dial("l2", (1.0, 10.0, 100.0), _steps(3, 1))
DM_DIALS = (KINDS, Dial("l2", (0.01, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0), _steps(1.45, 4)))
OFFLINE_DIALS = {
    "o2pl": (
        Dial("penalty", (0.03, 0.3, 3.0), _steps(3, 1)),
        Dial("control", (1.0, 30.0, 1000.0), _steps(5, 1)),  # a ridge of 1000 and more leaves little of it
        OFFLINE_L2,
    ),
    "ipw-csc": (Dial("l2", tuple(float(f"{10 ** (power / 4):.3g}") for power in range(-12, 15)), _steps(1.09, 13)),),
    "dr": (OFFLINE_L2, Dial("clip", (5.0, 30.0, 180.0), _steps(2.5, 1)), Dial("model l2", (0.3, 3, 30), _steps(3, 1))),
    "dm-additive": DM_DIALS,
    "dm-arms": DM_DIALS,
}
TUNING_FLOORS = (0.03, 0.003)  # between those that `overlap` reports


def wheel_score(make: Any, seed: int, rounds: int = 10_000) -> float:
    world, learners = wheel.WHEELS[wheel.PAPER_WHEEL], {"candidate": make}
    (cell,) = crossed_units({wheel.PAPER_WHEEL: world}, learners)
    unit = Unit("wheel", 0, cell.world, cell.learner, rounds, seed)
    return -float(play_unit(world, learners, unit)["regret"][-1])


def offline_score(tasks: Mapping[str, Any], make: Any, seed: int, rounds: int = 2000) -> float:
    """Return the mean over tasks of the exact value of greedy deployment."""
    learners = {"candidate": make}
    units = [
        Unit("offline", 0, cell.world, cell.learner, rounds, seed) for cell in offline.crossed_tasks(tasks, learners)
    ]
    return float(np.mean([offline.run_unit(unit, learners)["value"][0] for unit in units]))


def _on_wheel(features: str) -> Tuning:
    methods = {
        name: TunedMethod(dials, partial(wheel_learners.METHODS[name], wheel_learners.FEATURES[features]))
        for name, dials in WHEEL_DIALS.items()
    }
    return Tuning(methods, wheel_score, range(2000, 2002), range(2002, 2006))


def _with_head_starts(features: str) -> Tuning:
    """The rivals with O2PL's uniform rounds and optimism: its own first two dials, and their width."""
    level, warm_start, _ = WHEEL_DIALS["o2pl"]
    methods = {}
    for name in wheel_learners.HEAD_STARTS[features]:
        tuned = wheel_learners.TUNED[features][name][0]
        width = Dial("width", (tuned / 10, tuned, 10 * tuned), _steps(3, 1))
        methods[name] = TunedMethod((level, warm_start, width), wheel_learners.head_start(name, features))
    return Tuning(methods, wheel_score, range(2000, 2002), range(2002, 2006))


def _on_logs(tasks: Mapping[str, Any]) -> Tuning:
    methods = {name: TunedMethod(dials, offline.METHODS[name]) for name, dials in OFFLINE_DIALS.items()}
    return Tuning(methods, partial(offline_score, tasks), range(2000, 2005), range(2005, 2010))


TUNINGS: dict[str, Tuning] = {
    **{f"wheel-{features}": _on_wheel(features) for features in wheel_learners.FEATURES},
    **{f"wheel-{features}-head-start": _with_head_starts(features) for features in wheel_learners.HEAD_STARTS},
    "offline-synthetic": _on_logs(
        {name: LOGGED_TASKS[name] for name in TASKS} | {world(floor): log_of(floor) for floor in TUNING_FLOORS}
    ),
    "offline-multiclass": _on_logs({name: LOGGED_TASKS[name] for name in SETS}),
}


# -- the command


def lines(name: str, method: TunedMethod, choice: Choice) -> list[str]:
    """Return report lines: the choice, the number tried, edges, and the finalists with mean ± standard error."""
    edge = f", at an edge: {', '.join(choice.edges)}" if choice.edges else ""
    dials = ", ".join(dial.name for dial in method.dials)
    shown = [f"{name} ({dials}): {choice.setting}, of {len(choice.tried)}{edge}"]
    for setting in ranked(choice.tried)[:FINALISTS_SHOWN]:
        scores = np.array(list(choice.tried[setting].values()))
        error = scores.std(ddof=1) / math.sqrt(len(scores))
        shown.append(f"    {setting}  {scores.mean():.5g} ± {error:.2g} on {len(scores)} seeds")
    return shown


def main(names: Sequence[str]) -> None:
    if unknown := sorted(set(names) - set(TUNINGS)):
        sys.exit(f"error: found {', '.join(unknown)}, expected some of {', '.join(TUNINGS)}")
    for name in names or TUNINGS:
        print(name, flush=True)
        for method, choice in choose(TUNINGS[name]).items():
            print(*lines(method, TUNINGS[name].methods[method], choice), sep="\n", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
