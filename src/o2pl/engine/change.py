"""Change detection: a member with a short memory is compared with the members with a long memory.

Each block of rows adds the log-likelihood of its rewards, as each member predicted them, to a discounted sum:

    D_i ← D_i e^(-rows/memory) + Σ log-likelihood of the block        D_monitor - max D_long > threshold: a change

While nothing changes, the long memory knows more and D_monitor is lower. After a change the long memory is wrong and
the monitor is soon right. Then the engine moves its base, the row at which its history starts, to just before now, and
the long members restart from there. Rows before the base stay in the log but are not learned from.

Rewards that rise and fall equally for all actions, for example by time of day, are not a change: the best action stays
the same. Overconfidence of a member with many weights, compared with the short memory, is not a change either. So each
member is calibrated by a level and a slope that follow the last rewards, m = σ(c + (1 + d) z), by one Newton step per
block:

    H_i ← H_i e^(-rows/block) + Σ m (1 - m) (1, z)(1, z)ᵀ,    (c, d)_i ← (c, d)_i + (H_i + I)⁻¹ Σ (r - m) (1, z)

c by at most 1 and d by at most 0.1, within ±1: a member that was confident and is suddenly wrong must remain visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from o2pl import _core
from o2pl.engine.member import LINEAR, Member
from o2pl.engine.schedules import Recent
from o2pl.features import Hashed, Standardise, UserItems
from o2pl.objectives.outcome import Outcome
from o2pl.oracles.lbfgs import LBFGS
from o2pl.policies.actionwise import ActionWise
from o2pl.protocols import Floats
from o2pl.storage import storable
from o2pl.validation import check_count, check_number

_PRIOR = -3.0  # log prior of the monitor among the members: it also acts once its predictions are good
_STEPS = LBFGS(iterations=2, tolerance=1e-5, memory=6)  # more steps do not detect changes earlier
_SPARSE_STEPS = LBFGS(iterations=2, tolerance=2e-3, memory=2)  # for hashed features, which are many
_WINDOW = 4  # window of the monitor, in units of its memory
_NOTHING: Floats = np.zeros((6, 0))  # D, c, d and the three entries of H, for no members


@storable
@dataclass(frozen=True)
class Change:
    """How a change of the world is detected: a member with a short memory, the monitor, predicts rewards better.

    Parameters
    ----------
    memory
        The half-life of the monitor in rows. The monitor joins after half as many rows, and as many are kept when a
        change is detected. It retrains every third of them, on a long log every `memory` rows. Changes are more than
        twice as many rows apart. A shorter memory reacts sooner and detects only larger changes.
    threshold
        How much better the monitor must have predicted the last rewards: a difference of log-likelihoods.
    """

    memory: int = 300
    threshold: float = 15.0

    def __post_init__(self) -> None:
        check_count("memory", self.memory)
        check_number("threshold", self.threshold, 0)

    @property
    def block(self) -> int:
        return max(1, self.memory // 3)

    @property
    def kept(self) -> int:
        """The number of rows to restart from."""
        return max(1, self.memory // 2)

    @property
    def apart(self) -> int:
        return 2 * self.memory

    def monitor(self, like: Member, sets: bool) -> Member:
        """Return a linear member for the same contexts as `like`: independent actions, a short memory."""
        alike = isinstance(like.features, Hashed | UserItems)
        features = like.features if alike else Standardise() if sets else LINEAR
        oracle = _SPARSE_STEPS if isinstance(features, Hashed) else _STEPS
        return Member(
            features, ActionWise() if sets else None, objective=Outcome(False, 1.0 if sets else 3.0), joins=self.kept,
            prior=_PRIOR, oracle=oracle, schedule=Recent(self.block, _WINDOW * self.memory, float(self.memory)),
        )  # fmt: skip

    def watch(self, members: Sequence[Member], sets: bool) -> tuple[tuple[Member, ...], int]:
        """Return the members including the monitor, sorted by `joins`, and the monitor's index."""
        place = sum(member.joins <= self.kept for member in members)
        return (*members[:place], self.monitor(members[0], sets), *members[place:]), place

    def observe(self, state: Floats, z: Floats, rewards: Floats) -> Floats:
        """Return the state after a block of rows. state [6, M], initially `_NOTHING`; z: predicted log-odds, [M, n]"""
        new = state.copy()
        _core.watch(new, z, rewards, float(self.memory), float(self.block))
        return new


class Changed(NamedTuple):
    """A detected change."""

    row: int  # number of rows in the log when it was detected
    base: int  # first row that is learned from since then
    evidence: float  # the monitor's lead in log-likelihood


class Watch:
    """The state of change detection. `place`: index of the monitor among the members."""

    def __init__(self, change: Change, place: int) -> None:
        self.change, self.place = change, place
        self.seen = _NOTHING  # for the joined members, since the base
        self.found: list[Changed] = []

    @property
    def base(self) -> int:
        return self.found[-1].base if self.found else 0

    def observe(self, z: Floats, rewards: Floats, n: int) -> bool:
        """Return whether a block (the last of n rows) shows a change. z: log-odds of the joined members, [M, rows]"""
        if len(z) <= self.place:
            return False
        known = self.seen.shape[1]
        if known < len(z):  # new members start with the score of the best long member
            new = np.zeros((len(_NOTHING), len(z) - known))
            new[0] = self._lead(self.seen[0].tolist())[1] if known else 0
            self.seen = np.concatenate([self.seen, new], axis=1)
        self.seen = self.change.observe(self.seen, z, rewards)
        monitor, long = self._lead(self.seen[0].tolist())
        ahead = monitor - long
        if ahead <= self.change.threshold or n - self.base <= self.change.apart:
            return False
        self.found.append(Changed(n, n - self.change.kept, ahead))
        self.seen = _NOTHING
        return True

    def _lead(self, scores: list[float]) -> tuple[float, float]:
        """Return the score of the monitor, and the best of the long members. scores: of the joined members"""
        return scores.pop(self.place), max(scores)

    def observe_blocks(self, z: Floats, rewards: Floats, start: int) -> bool:
        """Return whether rows from `start` on show a change. The first such block sets the base."""
        for first in range(0, len(rewards), self.change.block):
            block = slice(first, first + self.change.block)
            if self.observe(z[:, block], rewards[block], start + first + len(rewards[block])):
                return True
        return False

    def state(self) -> list[Any]:
        return [list(each) for each in self.found]

    def restore(self, found: list[Any], seen: Floats) -> None:
        self.found, self.seen = [Changed(*each) for each in found], seen
