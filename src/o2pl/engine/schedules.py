"""Schedules: when a member learns, from which rows, and how exactly. Its policy is constant between checkpoints."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.oracles.adam import Adam
from o2pl.oracles.lbfgs import LBFGS
from o2pl.protocols import Floats
from o2pl.storage import storable
from o2pl.validation import check_count, check_number

_FORGOTTEN = 10  # half-lives after which a row is dropped


@storable
@dataclass(frozen=True)
class Exact:
    """Algorithm 1 as written: solve on the whole history after every round. Costs O(T²).

    Parameters
    ----------
    warm_start
        Rows before the first solve.
    oracle
        The solver.
    """

    warm_start: int = 0
    oracle: LBFGS | None = LBFGS(iterations=100, tolerance=1e-5)

    def after(self, n: int) -> int:
        return max(n + 1, self.warm_start)

    def start(self, n: int) -> int:
        return 0

    def weights(self, n: int) -> Floats | None:
        return None


@storable
@dataclass(frozen=True)
class Geometric:
    """Solve whenever the history has grown by `growth`: about log T solves, near-linear cost.

    Early rounds are cheap and matter most, so the first waits are shorter. A long history changes little when it grows,
    so later waits are longer.

    Parameters
    ----------
    growth
        The factor by which the history grows between two solves.
    ease
        With n rows the wait is shorter by the factor n / (n + ease): nearly every early round is learned from at once.
    later
        With n rows the wait is longer by the factor 1 + n / later, up to `longest`.
    longest
        The largest growth between two solves.
    warm_start
        Rows before the first solve.
    oracle
        The solver. None: a few steps of L-BFGS, since the solve before has done most of the work.
    window
        Learn from the last `window` rows only, for worlds that change. None: from all rows.
    half_life
        A row counts half as much as one `half_life` rows later, for worlds that change. None: rows do not fade. Both
        `window` and `half_life` limit the wait to that of a history of the rows that count.
    """

    growth: float = 1.15
    ease: float = 200.0
    later: float = 2000.0
    longest: float = 1.6
    warm_start: int = 0
    oracle: LBFGS | None = None
    window: int | None = None
    half_life: float | None = None

    def __post_init__(self) -> None:
        check_number("growth", self.growth, 1)
        check_number("longest", self.longest, 1)
        check_number("later", self.later, 0, open_low=True)
        if self.window is not None:
            check_count("window", self.window)
        if self.half_life is not None:
            check_number("half_life", self.half_life, 0, open_low=True)

    def after(self, n: int) -> int:
        rows = min(n, self._counting) if self.forgets else n
        share = max(self.growth - 1, min((self.growth - 1) * (1 + rows / self.later), self.longest - 1))
        wait = share * rows * rows / (rows + self.ease) if rows else 0.0
        return max(n + max(1, math.ceil(wait)), self.warm_start)

    @property
    def forgets(self) -> bool:
        return self.window is not None or self.half_life is not None

    @property
    def _counting(self) -> float:
        """Return the sum of the row weights: Σ 2^(-s/h) ≈ h/ln 2."""
        return self._reach if self.half_life is None else min(self._reach, self.half_life / math.log(2))

    @property
    def _reach(self) -> float:
        """Return the number of rows that are learned from."""
        forgotten = math.inf if self.half_life is None else _FORGOTTEN * self.half_life
        return min(math.inf if self.window is None else self.window, math.ceil(min(forgotten, 2**62)))

    def start(self, n: int) -> int:
        return max(0, n - int(min(self._reach, n)))

    def weights(self, n: int) -> Floats | None:
        return None if self.half_life is None else fading_schedule_weights(n - self.start(n), self.half_life)


@lru_cache(maxsize=4)
def fading_schedule_weights(rows: int, half_life: float) -> Floats:
    """Return exponentially decaying weights: 1 for the last row, 1/2 for the row `half_life` rows earlier."""
    weights = np.asarray(0.5 ** (np.arange(rows)[::-1] / half_life))
    weights.flags.writeable = False  # the array is cached
    return weights


@storable
@dataclass(frozen=True)
class Recent:
    """Learn every `every` rows from the last `window`, with decay `half_life`. For change detection.

    On a long log the waits grow to three times as many rows.
    """

    every: int
    window: int
    half_life: float
    oracle: LBFGS | None = None
    warm_start = 0

    def after(self, n: int) -> int:
        return n + min(max(self.every, n // 25), 3 * self.every)

    def start(self, n: int) -> int:
        return max(0, n - self.window)

    def weights(self, n: int) -> Floats | None:
        return fading_schedule_weights(n - self.start(n), self.half_life)


@storable
@dataclass(frozen=True)
class Replay:
    """The paper's flat replay: after a warm start, every `every` rounds, `steps` of Adam on the last `window` rows.

    Parameters
    ----------
    window
        How many of the last rows are learned from.
    every
        Rounds between two times of learning.
    steps
        Steps of Adam each time.
    step_size
        The step size of Adam.
    warm_start
        Rows before the first step.
    """

    window: int = 200
    every: int = 5
    steps: int = 5
    step_size: float = 0.005
    warm_start: int = 50

    def after(self, n: int) -> int:
        return max(n + self.every, self.warm_start)

    def start(self, n: int) -> int:
        return max(0, n - self.window)

    def weights(self, n: int) -> Floats | None:
        return None

    @property
    def oracle(self) -> Adam:
        return Adam(self.steps, self.step_size)


Schedule = Exact | Geometric | Replay | Recent


def next_solve_of_schedule(schedule: Schedule, rows: int, faint: bool, added: int | None) -> int:
    """Return the number of rows at which a member learns next.

    faint: it has little weight, and waits until the history has doubled. added: the number of rows when an action was
    added, which is learned about as often as a new learner would from then on.
    """
    after = schedule.after(rows)
    if faint and isinstance(schedule, Geometric) and not schedule.forgets:
        return max(after, 2 * rows)
    return after if added is None or rows < added else min(after, added + schedule.after(rows - added))


# Within .005 of solving every round, at near-linear cost (experiment `schedules`): every round up to about 150, then
# whenever the history has grown by 1 % (at 250 rows) to 5 %, and closer to the minimum than a few steps.
NEAR_EXACT = Geometric(growth=1.05, ease=1000.0, longest=1.0, oracle=LBFGS(iterations=15, tolerance=1e-4))
# For networks: a solve is expensive, and warm starts help less.
SELDOM = Geometric(growth=1.2, ease=0.0, longest=1.2)
_NAMED: dict[str, Schedule] = {
    "exact": Exact(),
    "near-exact": NEAR_EXACT,
    "geometric": Geometric(),
    "replay": Replay(),
}


def as_schedule(given: object) -> Schedule:
    """Return a schedule given by name; a schedule is returned unchanged."""
    if isinstance(given, Schedule):
        return given
    if isinstance(given, str) and given in _NAMED:
        return _NAMED[given]
    raise InvalidInput(f"schedule: found {given!r}, expected one of {sorted(_NAMED)} or a schedule such as Geometric()")
