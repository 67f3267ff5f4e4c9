"""Weights of members on one log: each is weighted by its performance on rows before it learned from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from o2pl import _core
from o2pl._core import played_log_odds, prediction_sums
from o2pl.data.interactions import Interactions
from o2pl.engine.change import Watch
from o2pl.engine.decider import Decider
from o2pl.engine.member import BLOCK_ROWS, MemberState
from o2pl.objectives.outcome import Outcome, outcome_log_likelihoods
from o2pl.objectives.terms import Totals
from o2pl.objectives.weights import policy_weights
from o2pl.policies.sampling import FAR
from o2pl.protocols import Floats

if TYPE_CHECKING:
    from o2pl.engine.engine import Engine

_ALONE = np.ones(1)
_NEWTON_STEPS = 20  # each of at most 1 in the level, .5 in the slope
_CALIBRATION_ROWS = 2000  # rows for calibrating a member without an outcome model
_RIDGE = 1e-3  # for constant rewards, which have no finite level


def progressive_gains(likelihoods: Floats, rows: Interactions, alpha: float, baseline: float) -> Floats:
    """Return Σ (min(w, α) - 1)(b - y) of each member. likelihoods: π_c(a_s|x_s), [M, n]."""
    residuals, own_weights = rows.losses - baseline, rows.effective_weights
    residuals = np.asarray(residuals if own_weights is None else residuals * own_weights, np.float64)
    return np.array(
        [-_core.clipped_sums(policy_weights(own, rows.propensities), residuals, alpha)[0] for own in likelihoods]
    )


def progressive_evidence(members: Sequence[MemberState], decider: Decider, rows: Interactions) -> Floats:
    """Return the log-likelihood of these rows' rewards under each member's current predictions. [M]"""
    total = np.zeros(len(members))
    for start in range(0, len(rows), BLOCK_ROWS):
        some = rows[start : start + BLOCK_ROWS]
        total += member_evidence(predicted_log_odds(members, decider, some), -some.losses, some.effective_weights)
    return total


def predicted_log_odds(members: Sequence[MemberState], decider: Decider, rows: Interactions) -> Floats:
    """Return each member's predicted log-odds of these rows' rewards. [M, n]"""
    competing = np.array([getattr(member.objective, "competing", True) for member in members])
    contexts, actions, out = rows.encoded, rows.actions, np.empty((len(members), len(rows)))
    if contexts.items is not None and not competing.any():  # predictions of other actions are not needed
        contexts, actions = contexts.alone(actions), np.zeros_like(actions)
    scores = decider.scores(contexts)
    offsets = contexts.ends(scores.shape[1])
    tau = np.array([member.params[-1] if member.objective.extra else 0.0 for member in members])
    played_log_odds(scores, offsets, actions, competing, tau, out)
    for own, member in zip(out, members, strict=True):
        if not member.objective.extra:
            level, slope = member.calibration
            own[:] = level + slope * np.clip(own, -FAR, FAR)
    return out


def calibrated_member(z: Floats, rewards: Floats) -> tuple[float, float]:
    """Calibrate log-odds as reward predictions: level c and slope s, arg min Σ CE(r, σ(c + s z)) + (s - 1)²/2.

    Policies that were not fitted to rewards are weighted through it: a sharp policy is not certain of a reward.
    Newton's method, from c = 0 and s = 1. z: log-odds of the actions played, [n]
    """
    c, s, sums = 0.0, 1.0, np.empty((6, 1))
    for _ in range(_NEWTON_STEPS):
        prediction_sums(z[None], rewards, np.array([c]), np.array([s]), sums)
        _, by_level, by_slope, h, hz, hzz = sums[:, 0]
        h, hzz, by_slope = h + _RIDGE, hzz + 1, by_slope + 1 - s
        determinant = h * hzz - hz * hz
        c += min(max((hzz * by_level - hz * by_slope) / determinant, -1.0), 1.0)
        s = max(s + min(max((h * by_slope - hz * by_level) / determinant, -0.5), 0.5), 0.0)
    return float(c), float(s)


def member_evidence(z: Floats, rewards: Floats, weights: Floats | None = None) -> Floats:
    """Return the log-likelihood of rewards under the members' predicted log-odds. z [M, n]; weights: of the rows"""
    if weights is not None:
        return np.asarray(outcome_log_likelihoods(z, rewards) @ weights)
    sums = np.empty((6, len(z)))
    prediction_sums(z, rewards, np.zeros(len(z)), np.ones(len(z)), sums)
    return np.asarray(sums[0])


def member_shares(gains: Floats, rate: float) -> Floats:
    """Return exponential weights in [0, 1] that sum to 1."""
    if len(gains) == 1:
        return _ALONE
    return _core.exponential_weights(gains, rate)


def weigh_members(engine: Engine, rows: Interactions, watching: bool) -> tuple[Floats, bool]:
    """Return the members' gains with how well each predicted new rows before learning from them.

    Also returns whether these rows show a change.
    """
    gains, objective, new = engine.gains, engine.spec.objective, rows[engine.learned :]
    if len(gains) == 1 or not len(new):
        return gains, False
    if isinstance(objective, Outcome):
        if engine.watch is not None and watching:
            return _weigh_watched_members(engine, new, engine.watch)
        return gains + progressive_evidence(engine.present, engine.decider, new), False
    alpha, baseline = objective.alpha(len(rows)), objective.level_of(Totals.of(rows))
    for start in range(0, len(new), BLOCK_ROWS):
        some = new[start : start + BLOCK_ROWS]
        likelihoods = engine.decider.member_likelihoods(some.contexts, some.actions)
        gains = gains + progressive_gains(likelihoods, some, alpha, baseline)
    return gains, False


def _weigh_watched_members(engine: Engine, new: Interactions, watch: Watch) -> tuple[Floats, bool]:
    gains = engine.gains
    for start in range(0, len(new), BLOCK_ROWS):
        some = new[start : start + BLOCK_ROWS]
        z, rewards = predicted_log_odds(engine.present, engine.decider, some), -some.losses
        gains = gains + member_evidence(z, rewards, some.effective_weights)
        if watch.observe_blocks(z, rewards, engine.learned + start):
            return gains, True
    return gains, False


def calibrate_members(engine: Engine, members: Sequence[MemberState]) -> None:
    """Calibrate members without an outcome model, after learning: relate their scores to the last rewards."""
    for member in members:
        member.calibration = (0.0, 1.0)
    if not members:
        return
    rows = engine.log[max(engine.base, engine.learned - _CALIBRATION_ROWS) : engine.learned].thinned()
    for member, z in zip(engine.present, predicted_log_odds(engine.present, engine.decider, rows), strict=True):
        if any(member is each for each in members):
            member.calibration = calibrated_member(z, -rows.losses)
