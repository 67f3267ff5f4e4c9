"""How the members of an engine are weighted on new rows, before they learn from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from o2pl.data.interactions import Interactions
from o2pl.engine.change import Watch
from o2pl.engine.member import STRETCH, MemberState
from o2pl.engine.union import calibrated, evidence, predicted_log_odds, progressive_evidence, progressive_gains
from o2pl.objectives.outcome import Outcome
from o2pl.objectives.terms import Totals

if TYPE_CHECKING:
    from o2pl.engine.engine import Engine

_CALIBRATION_ROWS = 2000  # rows for calibrating a member without an outcome model


def weigh_members(engine: Engine, rows: Interactions, watching: bool) -> bool:
    """Add how well each member predicted new rows before learning from them. Returns whether they show a change."""
    if len(engine.gains) == 1 or engine.learned == len(rows):
        return False
    objective = engine.spec.objective
    if isinstance(objective, Outcome):
        if engine.watch is not None and watching:
            return _weigh_and_watch(engine, rows, engine.watch)
        engine.gains = engine.gains + progressive_evidence(engine.present, engine.decider, rows[engine.learned :])
        return False
    alpha, baseline = objective.alpha(len(rows)), objective.level_of(Totals.of(rows))
    for start in range(engine.learned, len(rows), STRETCH):
        new = rows[start : start + STRETCH]
        likelihoods = engine.decider.member_likelihoods(new.contexts, new.actions)
        engine.gains = engine.gains + progressive_gains(likelihoods, new, alpha, baseline)
    return False


def _weigh_and_watch(engine: Engine, rows: Interactions, watch: Watch) -> bool:
    for start in range(engine.learned, len(rows), STRETCH):
        new = rows[start : start + STRETCH]
        z, rewards = predicted_log_odds(engine.present, engine.decider, new), -new.losses
        engine.gains = engine.gains + evidence(z, rewards, new.effective_weights)
        if watch.observe_blocks(z, rewards, start):
            return True
    return False


def calibrate_members(engine: Engine, members: Sequence[MemberState]) -> None:
    """Calibrate members without an outcome model, after learning: relate their scores to the last rewards."""
    for member in members:
        member.heard = (0.0, 1.0)
    if not members:
        return
    rows = engine.log[max(engine.base, engine.learned - _CALIBRATION_ROWS) : engine.learned].thinned()
    for member, z in zip(engine.present, predicted_log_odds(engine.present, engine.decider, rows), strict=True):
        if any(member is each for each in members):
            member.heard = calibrated(z, -rows.losses)
