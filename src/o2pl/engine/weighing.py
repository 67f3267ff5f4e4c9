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
from o2pl.protocols import Floats

if TYPE_CHECKING:
    from o2pl.engine.engine import Engine

_CALIBRATION_ROWS = 2000  # rows for calibrating a member without an outcome model


def weigh_members(engine: Engine, rows: Interactions, watching: bool) -> tuple[Floats, bool]:
    """Return the members' gains with how well each predicted new rows before learning from them.

    Also returns whether these rows show a change.
    """
    gains, objective, new = engine.gains, engine.spec.objective, rows[engine.learned :]
    if len(gains) == 1 or not len(new):
        return gains, False
    if isinstance(objective, Outcome):
        if engine.watch is not None and watching:
            return _watched(engine, new, engine.watch)
        return gains + progressive_evidence(engine.present, engine.decider, new), False
    alpha, baseline = objective.alpha(len(rows)), objective.level_of(Totals.of(rows))
    for start in range(0, len(new), STRETCH):
        some = new[start : start + STRETCH]
        likelihoods = engine.decider.member_likelihoods(some.contexts, some.actions)
        gains = gains + progressive_gains(likelihoods, some, alpha, baseline)
    return gains, False


def _watched(engine: Engine, new: Interactions, watch: Watch) -> tuple[Floats, bool]:
    gains = engine.gains
    for start in range(0, len(new), STRETCH):
        some = new[start : start + STRETCH]
        z, rewards = predicted_log_odds(engine.present, engine.decider, some), -some.losses
        gains = gains + evidence(z, rewards, some.effective_weights)
        if watch.observe_blocks(z, rewards, engine.learned + start):
            return gains, True
    return gains, False


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
