"""Offline fit to a complete log."""

from __future__ import annotations

from typing import Any

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
            imitate(engine)
        engine.learn(oracle=OFFLINE)


def imitate(engine: Engine) -> None:
    """Start at the logging policy if possible: far from it, all weights and the gradient are 0."""
    rows = engine.log.columns
    for member in engine.members:
        if hasattr(member.policy, "imitate"):
            policy: Any = member.policy
            state = member.seen.features.observe(member.seen.state, rows.contexts)
            member.params = policy.imitate(member.seen.features.transform(state, rows.contexts), rows.actions)
