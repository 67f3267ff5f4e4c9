"""Offline fit to a complete log."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.data.log import Log
from o2pl.engine.change import Changed
from o2pl.engine.engine import OFFLINE, Engine
from o2pl.protocols import ContinuousPolicy


def learn_offline(engine: Engine, log: Log) -> None:
    """Solve to convergence on this log, which becomes the engine's.

    Members of a union are weighted on rows they have not learned from: the second half, which is then learned from too.
    A member whose only companion is the monitor needs fewer rows for that.
    """
    rows, base = len(log), engine.base
    alone = sum(not member.is_monitor for member in engine.members) == 1
    first = base + (rows - base) // (5 if alone else 2) if len(engine.members) > 1 else base
    for place, upto in enumerate(sorted({first, rows} - {base})):
        engine.log = log.shortened(upto)
        if not place:
            imitate_offline(engine)
        engine.learn(oracle=OFFLINE)


def continue_offline(engine: Engine, rows: Interactions, before: Engine, kept: Any = None) -> None:
    """Let a new engine learn from these rows, and go on in place of an earlier one.

    Random numbers and decisions that wait are those of the earlier one, and so is the row from which members learn
    since a change. kept: which of the earlier rows these are, as booleans; None: all.
    """
    engine.log.extend(rows)
    engine.pending = before.pending
    if engine.watch is not None and before.watch is not None:
        left = None if kept is None else np.concatenate([[0], np.cumsum(kept)])

        def row_now(row: int) -> int:
            return row if left is None else int(left[row])

        engine.watch.found = [Changed(row_now(row), row_now(base), lead) for row, base, lead in before.watch.found]
        for member in engine.members:
            member.base = 0 if member.is_monitor else engine.base
        engine.learned = engine.base
        engine.count_forgotten()
    if len(rows):
        learn_offline(engine, engine.log)
    engine.draw_from(before.stream)


def imitate_offline(engine: Engine) -> None:
    """Start at the logging policy if possible: far from it, all weights and the gradient are 0."""
    rows = engine.log.columns
    for member in engine.members:
        if hasattr(member.policy, "imitate"):
            policy = cast(ContinuousPolicy, member.policy)
            state = member.seen.features.observe(member.seen.state, rows.contexts)
            member.params = policy.imitate(member.seen.features.transform(state, rows.contexts), rows.actions)
