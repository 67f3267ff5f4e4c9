"""A service whose policy is worth exactly what its baseline is, and whose low rewards arrive late."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.guarantees.worlds import Case
from o2pl.serving.batch_writes import DecisionRow, RewardRow
from o2pl.serving.policy_guard import Guard
from o2pl.serving.reward_join import join
from o2pl.serving.store import Store

_ARMS, _EVERY = 3, 300.0  # seconds between the looks of the guard
_NAMES = json.dumps([f"a{k}" for k in range(_ARMS)]).encode()


@dataclass(frozen=True)
class GuardedWorld:
    """n decisions, one a second; graded rewards, those below `late` told after eight minutes, the others at once."""

    name: str
    says: str
    n: int
    late: float
    doors: tuple[str, ...] = ("service, guard",)
    only: bool = True
    equal: bool = True
    reward_range: tuple[float, float] = (0.0, 1.0)

    def case(self, seed: int) -> Case:
        return Case((seed, self.n, self.late), None, None, 0.0, 0.0, lambda policy: 0.0, lambda x: x)

    def truth(self) -> tuple[float, float]:
        return 0.0, 0.0


def withdrawn(seed: int, n: int, late: float) -> bool:
    """Let the guard look every five minutes. Returns whether it withdrew the policy."""
    g = np.random.default_rng([seed, n])
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "o2pl.sqlite") as store:
        store.add_application("page")
        store.add_model(1, b"uniform", 0, 0)
        rewards, times = g.beta(0.7, 1.3, n), np.arange(n) * 1.0
        told = times + np.where(rewards < late, 480.0, 2.0)
        store.add([_decision(k, float(times[k]), int(g.integers(_ARMS)), float(g.random())) for k in range(n)])
        order, known = np.argsort(told), 0
        guarding, application = Guard(store, 1), store.application("page")
        for now in np.arange(_EVERY, n + 3000, _EVERY):
            upto = int(np.searchsorted(told[order], now))
            some = order[known:upto].tolist()
            store.add([RewardRow(1, f"e{k}", "", float(rewards[k]), float(told[k])) for k in some])
            known = upto
            join(store, application, float(now))
            if guarding.look(application):
                return True
    return False


def _decision(k: int, at: float, action: int, u: float) -> DecisionRow:
    even = np.full(_ARMS, 1 / _ARMS)
    return DecisionRow(
        1, f"e{k}", "", at, b"{}", _NAMES, action, None, 1 / _ARMS, even.astype("<f8").tobytes(), u, 0.0, 1, baseline=0,
    )  # fmt: skip
