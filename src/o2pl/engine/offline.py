"""Offline fit to a complete log."""

from __future__ import annotations

from o2pl.data.log import Log
from o2pl.engine.engine import OFFLINE, Engine


def learn_offline(engine: Engine, log: Log) -> None:
    """Solve to convergence on this log, which becomes the engine's.

    Members of a union are weighted on rows they have not learned from: the second half, which is then learned from too.
    A member whose only companion is the monitor needs fewer rows for that.
    """
    rows = len(log)
    alone = sum(not member.watches for member in engine.members) == 1
    first = rows // (5 if alone else 2) if len(engine.members) > 1 else 0
    for place, upto in enumerate(sorted({first, rows} - {0})):
        engine.log = log.shortened(upto)
        if not place:
            engine.imitate()
        engine.learn(oracle=OFFLINE)
