"""Offline fit to a complete log."""

from __future__ import annotations

from collections.abc import Callable

from o2pl.learners.engine import OFFLINE, Engine


def learn_offline(engine: Engine, rows: int, reach: Callable[[int], object]) -> None:
    """Solve to convergence on `rows` rows. `reach(n)` extends the engine's log to n rows.

    Members of a union are weighted on rows they have not learned from: the second half, which is then learned from too.
    A member whose only companion is the monitor needs fewer rows for that.
    """
    alone = sum(not member.watches for member in engine.members) == 1
    first = rows // (5 if alone else 2) if len(engine.members) > 1 else 0
    for place, upto in enumerate(sorted({first, rows} - {0})):
        reach(upto)
        if not place:
            engine.imitate()
        engine.learn(oracle=OFFLINE)
