"""Bounded logs: drop rows that no member learns from any more."""

from __future__ import annotations

from o2pl.engine.change import Changed
from o2pl.engine.engine import Engine
from o2pl.engine.mean_reward import MeanReward
from o2pl.errors import InvalidInput


def trim_rows(engine: Engine, count: int) -> None:
    """Drop the first `count` rows of the log. What was learned stays; rows are counted from the new start.

    Rows that a member still learns from cannot be dropped: its schedule must have a window or a half-life.
    """
    with engine.lock:
        n = len(engine.log)
        if engine.learned < n:
            raise InvalidInput(f"log: found {n - engine.learned} rows that are not learned from yet; learn first")
        needed = min(member.first(n) for member in engine.members if member.joins <= n - engine.base)
        if not 0 <= count <= needed or engine.running is not None:
            raise InvalidInput(
                f"rows: found {count} to drop, expected at most {needed}: later rows are still learned from"
            )
        rows, log = engine.log[count:], engine.log.empty()
        log.reserve(len(rows))
        log.extend(rows)
        counted = engine.mean_reward
        engine.log, engine.learned = log, engine.learned - count
        for member in engine.members:
            member.checkpoint, member.known = member.checkpoint - count, max(member.known - count, 0)
            member.base = max(member.base - count, 0)
        for seen in engine.seen:
            seen.rows = max(seen.rows - count, 0)
        if engine.watch is not None:
            engine.watch.found = [
                Changed(max(row - count, 0), max(base - count, 0), evidence)
                for row, base, evidence in engine.watch.found
            ]
        if engine.scale is not None:
            engine.scale = engine.scale._replace(rows=max(engine.scale.rows - count, 1))
        engine.forgotten = None
        engine.count_forgotten()
        # keep the mean of all rewards so far, scaled to the remaining rows
        share = counted.total / max(counted.rows - counted.base, 1)
        engine.mean_reward = MeanReward(engine.base, len(log), share * (len(log) - engine.base))
        engine.checkpoint = min(member.checkpoint for member in engine.present)
        engine.decider = engine.new_decider(engine.decider)
