"""A fit to a log that is there as a whole."""

from __future__ import annotations

from collections.abc import Callable

from o2pl.learners.engine import OFFLINE, Engine


def learn_offline(engine: Engine, rows: int, reach: Callable[[int], object]) -> None:
    """Solve to convergence on so many rows. `reach(n)` makes the engine's log n rows long.

    Members of a union are weighed on rows they have not learned from: the second half, then learned from too. One that
    has but a monitor beside it shows with less that it remembers more.
    """
    alone = sum(not member.watches for member in engine.members) == 1
    first = rows // (5 if alone else 2) if len(engine.members) > 1 else 0
    for place, upto in enumerate(sorted({first, rows} - {0})):
        reach(upto)
        if not place:
            engine.imitate()
        engine.learn(oracle=OFFLINE)
