"""The scale of rewards whose range nobody gave: what counts as 0 and as 1, and how much they vary.

While all rewards are from 0 to 1, that is their range. Then it is from the .5 % to the 99.5 % quantile of the rewards
so far (from the lowest to the highest, while these are equal), and what is beyond is clipped. Rewards that vary less
than 0 and 1 would say more per row: with the dispersion

    φ = Σ (r - m)² / Σ m (1 - m),  at most 1, over the last rows; m: the predicted reward

members are fitted with φ l2, and weighted with the rate of `Outcome.rate` over φ. The scale changes when range or φ
moves by a tenth; all members then learn again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from o2pl import _core
from o2pl.engine.mean_reward import MeanReward
from o2pl.engine.member_weights import predicted_log_odds
from o2pl.engine.uncertainty import curvature_for
from o2pl.objectives.outcome import Outcome
from o2pl.protocols import Floats
from o2pl.special import expit
from o2pl.validation import RewardRange

if TYPE_CHECKING:
    from o2pl.engine.engine import Engine

_BEYOND = 0.005  # fraction of the rewards beyond each end
_MOVED = 0.1  # of its width or value: a smaller move is none
_ROWS, _FEWEST = 2000, 30  # the last rows, and the fewest, from which φ is computed
_LEAST = 0.003  # of φ
_GROWTH = 1.05  # of the rows between two looks


class RewardScale(NamedTuple):
    """What rewards are counted in, and when to look at them again. It does not change."""

    low: float = 0.0
    high: float = 1.0
    dispersion: float = 1.0  # φ
    within: bool = True  # all rewards so far are from 0 to 1
    rows: int = 1  # number of rows at which to look again

    @property
    def ends(self) -> RewardRange:
        return self.low, self.high

    def looked(self, n: int) -> RewardScale:
        """Return the same scale after a look at n rows."""
        return self._replace(rows=max(n + 1, int(_GROWTH * n)))


def reward_quantile_range(rewards: Floats) -> RewardRange:
    """Return the range of rewards, of which one at least is not from 0 to 1."""
    n = len(rewards)
    first = int(_BEYOND * (n - 1))
    ordered = np.partition(rewards, (first, n - 1 - first))
    low, high = float(ordered[first]), float(ordered[n - 1 - first])
    if low == high:
        low, high = float(rewards.min()), float(rewards.max())
    if low == high:  # all are the same: 0 and 1 are the only other rewards that are known of
        low, high = min(low, 0.0), max(high, 1.0)
    return low, high


def new_scale(engine: Engine, n: int) -> RewardScale | None:
    """Return the scale for the first n rows; None if it has not moved, or if the range was given."""
    scale = engine.scale
    if scale is None or n < scale.rows:
        return None
    rewards = engine.log.rewards[:n]
    if scale.within and _core.within(rewards, 0.0, 1.0):
        engine.scale = scale.looked(n)
        return None
    low, high = reward_quantile_range(rewards)
    if scale.within or abs(low - scale.low) + abs(high - scale.high) >= _MOVED * (high - low):
        return RewardScale(low, high, scale.dispersion, within=False, rows=n + 1)
    scale = scale.looked(n)
    phi = _reward_dispersion(engine, n)
    if phi is not None and abs(phi - scale.dispersion) >= _MOVED * scale.dispersion:
        return scale._replace(dispersion=phi)
    engine.scale = scale
    return None


def _reward_dispersion(engine: Engine, n: int) -> float | None:
    """Return φ of the last of n rows, by what was learned last; None: too few."""
    first = max(engine.base, n - _ROWS)
    if n - first < _FEWEST or engine.learned <= engine.base:
        return None
    with engine.compiled.only_looked_at():
        rows = engine.log[first:n].thinned()
        m = engine.weights @ expit(predicted_log_odds(engine.present, engine.decider, rows))
    apart = float(((rows.fractions - m) ** 2).sum())
    return float(np.clip(apart / max(float((m * (1 - m)).sum()), 1e-9), _LEAST, 1.0))


def adopt_reward_scale(engine: Engine, scale: RewardScale) -> None:
    """Count rewards in another scale. What was learned in the old one is to be learned again."""
    engine.compiled.take_back(engine)
    engine.scale = scale
    engine.log.count_in(scale.ends)
    for member in engine.members:
        member.function = None
        if isinstance(member.objective, Outcome):
            member.objective = replace(member.objective, dispersion=scale.dispersion)
    engine.mean_reward, engine.curvature = MeanReward(), curvature_for(engine.spec, engine.log)
    engine.count_forgotten()
    engine.begin_compiled()


# -- files


def saved_scale(scale: RewardScale | None) -> dict[str, Any]:
    """Return what the header of a file keeps of it."""
    return {} if scale is None else {"scale": list(scale)}


def restore_scale(engine: Engine, header: dict[str, Any]) -> None:
    """Continue with the scale of a file; files in which the range was given have none."""
    if engine.scale is not None and "scale" in header:
        adopt_reward_scale(engine, RewardScale(*header["scale"]))
