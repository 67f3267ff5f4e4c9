"""When a learner re-learns, and how hard it tries. Between two checkpoints its policy stands still."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from o2pl.errors import InvalidInput
from o2pl.oracles.lbfgs import LBFGS
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class Exact:
    """Algorithm 1 as written: solve on the whole history after every round. Costs O(T²)."""

    warm_start: int = 0
    oracle: LBFGS = LBFGS(iterations=100, tolerance=1e-5)

    def after(self, n: int) -> int:
        return max(n + 1, self.warm_start)


@storable
@dataclass(frozen=True)
class Geometric:
    """Solve on the whole history whenever it has grown by `growth`: about log T solves, near-linear cost.

    Rounds are cheap while the history is short, and matter most: below about `ease` rows the wait is shorter, by the
    factor n / (n + ease), and nearly every round is learned from at once. Without an `oracle` of its own a solve takes
    a few steps of L-BFGS: the one before has done most of the work.
    """

    growth: float = 1.15
    ease: float = 200.0
    warm_start: int = 0
    oracle: LBFGS | None = None

    def after(self, n: int) -> int:
        wait = (self.growth - 1) * n * n / (n + self.ease) if n else 0.0
        return max(n + max(1, math.ceil(wait)), self.warm_start)


@storable
@dataclass(frozen=True)
class Replay:
    """The paper's flat replay: after a warm start, every `every` rounds, `steps` of Adam on the last `window` rows."""

    window: int = 200
    every: int = 5
    steps: int = 5
    step_size: float = 0.005
    warm_start: int = 50

    def after(self, n: int) -> int:
        return max(n + self.every, self.warm_start)


Schedule = Exact | Geometric | Replay

# Within .005 of solving every round at near-linear cost (experiment `schedules`): every round up to about 150, then
# when the history has grown by 1 % (at 250 rows) to 5 %, and nearer to the minimum than a few steps come.
NEAR_EXACT = Geometric(growth=1.05, ease=1000.0, oracle=LBFGS(iterations=15, tolerance=1e-4))
_NAMED: dict[str, Schedule] = {
    "exact": Exact(),
    "near-exact": NEAR_EXACT,
    "geometric": Geometric(),
    "replay": Replay(),
}


def as_schedule(given: Any) -> Schedule:
    """A schedule by name, or as it is."""
    if isinstance(given, Schedule):
        return given
    if isinstance(given, str) and given in _NAMED:
        return _NAMED[given]
    raise InvalidInput(f"schedule: found {given!r}, expected one of {sorted(_NAMED)} or a schedule such as Geometric()")
