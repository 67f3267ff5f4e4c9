"""Step 3: a policy is in production. Can its log improve on it, and is the new policy safe to deploy?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from o2pl.demo.online import DIGITS
from o2pl.learners import SafeImprovement
from o2pl.simulation.rivals import OFFLINE_RIVALS
from o2pl.simulation.worlds.incumbents import IncumbentLog

INCUMBENT = IncumbentLog(DIGITS, logger_rows=60, flip=0.0)  # a rough classifier that explores a little
NAIVE = "ipw-csc"  # learning by importance weights only


@dataclass(frozen=True)
class Improvement:
    """The result from one log. Gains over the incumbent are exact, on held-out rows, in reward per decision."""

    rows: int
    deploy: bool  # o2pl's verdict
    promised: float  # lower bound of the gain, with 90 % confidence
    gain: float  # 0 if the incumbent stays
    naive: float  # gain of learning without pessimism, always deployed

    @property
    def kept(self) -> bool:
        """Whether the true gain is at least the promised one."""
        return not self.deploy or self.gain >= self.promised


def improve(sizes: Sequence[int], say: Callable[[str], None]) -> tuple[Improvement, ...]:
    """Learn from a log of each size, in rows; each has its own seed."""
    found = []
    for seed, rows in enumerate(sizes):
        say(f"SafeImprovement learns from {rows} rows")
        found.append(_improve(rows, seed))
    return tuple(found)


def _improve(rows: int, seed: int) -> Improvement:
    logged = INCUMBENT.log(rows, np.random.default_rng(seed))
    log = logged.interactions
    ours = SafeImprovement(random_state=seed).fit(log)
    naive = OFFLINE_RIVALS[NAIVE](INCUMBENT.n_actions, seed)
    naive.fit(log.contexts, log.actions, log.rewards, log.propensities)
    verdict, incumbent = ours.verdict_, logged.logger_value
    gain = logged.value(ours.predict_proba(logged.contexts)) - incumbent if verdict.deploy else 0.0
    return Improvement(
        len(log), verdict.deploy, verdict.lower, gain, logged.value(naive.predict_proba(logged.contexts)) - incumbent
    )
