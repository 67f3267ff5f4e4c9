"""Noticing that the world has changed: a member with a short memory watches those with a long one.

Every block of rows adds the log-likelihood of its rewards, as each member foretold them, to what is forgotten slowly:

    D_i ← D_i e^(-rows/memory) + Σ log-likelihood of the block        D_monitor - max D_long > threshold: a change

While nothing changes the long memory knows more, and D_monitor lies below. After a change it is wrong and the monitor
soon right. Then the engine moves its base, the row its history begins at, to just before now: the long members begin
anew from there. Rows before the base stay in the log and are not learned from.

Rewards that rise and fall for all actions alike, by day and by night, are no change: which action is best stays. Nor is
it one that a member with many weights is too sure of what it plays, and a short memory is not. So each member is
heard with a level and a slope that follow the last rewards, m = σ(c + (1 + d) z), by a Newton step for each block:

    H_i ← H_i e^(-rows/block) + Σ m (1 - m) (1, z)(1, z)ᵀ,    (c, d)_i ← (c, d)_i + (H_i + I)⁻¹ Σ (r - m) (1, z)

c by at most 1 and d by at most 0.1, within ±1: who has been sure and is wrong all of a sudden shall be heard as that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from o2pl.features import Hashed, Standardise, UserItems
from o2pl.learners.member import LINEAR, Member
from o2pl.learners.schedules import Recent
from o2pl.objectives.outcome import Outcome, foretold_sums
from o2pl.oracles.lbfgs import LBFGS
from o2pl.policies.actionwise import ActionWise
from o2pl.protocols import Floats
from o2pl.storage import storable
from o2pl.validation import check_count, check_number

_PRIOR = -3.0  # of the monitor among the members: it acts too, once it has been right
_STEPS = LBFGS(iterations=2, tolerance=1e-5, memory=6)  # more of them notice no earlier
_SPARSE_STEPS = LBFGS(iterations=2, tolerance=2e-3, memory=2)  # of hashed features, which are many
_TURN = 0.1  # of the slope, in a block
_WINDOW = 4  # memories from which it learns
_NOTHING: Floats = np.zeros((6, 0))  # D, c, d and the three entries of H, of no members


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
        """Rows that are enough to begin with."""
        return max(1, self.memory // 2)

    @property
    def apart(self) -> int:
        return 2 * self.memory

    def monitor(self, like: Member, sets: bool) -> Member:
        """A linear member for contexts as those of `like`: independent actions, a short memory."""
        alike = isinstance(like.features, Hashed | UserItems)
        features = like.features if alike else Standardise() if sets else LINEAR
        oracle = _SPARSE_STEPS if isinstance(features, Hashed) else _STEPS
        return Member(
            features, ActionWise() if sets else None, objective=Outcome(False, 1.0 if sets else 3.0), joins=self.kept,
            prior=_PRIOR, oracle=oracle, schedule=Recent(self.block, _WINDOW * self.memory, float(self.memory)),
        )  # fmt: skip

    def watch(self, members: Sequence[Member], sets: bool) -> tuple[tuple[Member, ...], int]:
        """The members with the monitor among them, and its place: they join in order."""
        place = sum(member.joins <= self.kept for member in members)
        return (*members[:place], self.monitor(members[0], sets), *members[place:]), place

    def observe(self, state: Floats, z: Floats, rewards: Floats) -> Floats:
        """What is known after a block of rows. state [6, M]: `_NOTHING`; z: log-odds that were foretold, [M, n]"""
        rows, sums = len(rewards), np.empty(state.shape)
        foretold_sums(z, rewards, state[1], 1 + state[2], sums)
        by_level, by_slope = sums[1].copy(), sums[2].copy()
        sums[1:3] = 0
        state = np.exp(-rows * np.array([[1 / self.memory], [0], [0], *3 * [[1 / self.block]]])) * state + sums
        h, hz, hzz = state[3] + 1, state[4], state[5] + 1
        slope = np.clip((h * by_slope - hz * by_level) / (h * hzz - hz * hz), -_TURN, _TURN)
        slope = np.clip(state[2] + slope, -1, 1) - state[2]
        state[1:3] += np.clip((by_level - hz * slope) / h, -1, 1), slope
        return state


class Changed(NamedTuple):
    """A change that was noticed."""

    row: int  # of the log, at which it was noticed: so many rows had come
    base: int  # the first row that is learned from since
    evidence: float  # by how much the monitor was ahead, in log-likelihood


class Watch:
    """What a `Change` has seen. `place`: of the monitor among the members."""

    def __init__(self, change: Change, place: int) -> None:
        self.change, self.place = change, place
        self.seen = _NOTHING  # of the members that have joined, since the base
        self.found: list[Changed] = []

    @property
    def base(self) -> int:
        return self.found[-1].base if self.found else 0

    def observe(self, z: Floats, rewards: Floats, n: int) -> bool:
        """Whether a block, the last rows of n, tells of a change. z: log-odds of the present members, [M, rows]"""
        if len(z) <= self.place:
            return False
        long, known = np.arange(len(z)) != self.place, self.seen.shape[1]
        if known < len(z):  # newcomers begin with the best of the long members
            new = np.zeros((len(_NOTHING), len(z) - known))
            new[0] = self.seen[0, long[:known]].max() if known else 0
            self.seen = np.concatenate([self.seen, new], axis=1)
        self.seen = self.change.observe(self.seen, z, rewards)
        evidence = self.seen[0]
        ahead = float(evidence[self.place] - evidence[long].max())
        if ahead <= self.change.threshold or n - self.base <= self.change.apart:
            return False
        self.found.append(Changed(n, n - self.change.kept, ahead))
        self.seen = _NOTHING
        return True

    def observe_blocks(self, z: Floats, rewards: Floats, start: int) -> bool:
        """Whether rows that begin at `start` tell of a change; it is the first block that does which sets the base."""
        for first in range(0, len(rewards), self.change.block):
            block = slice(first, first + self.change.block)
            if self.observe(z[:, block], rewards[block], start + first + len(rewards[block])):
                return True
        return False

    def state(self) -> list[Any]:
        return [list(each) for each in self.found]

    def restore(self, found: list[Any], seen: Floats) -> None:
        self.found, self.seen = [Changed(*each) for each in found], seen
