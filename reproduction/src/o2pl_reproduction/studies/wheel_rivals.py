"""LinUCB and LinTS with the head start that O2PL has on the wheel: uniform rounds first, and optimism."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from o2pl.data.decisions import Decision
from o2pl.engine.member import LINEAR
from o2pl.errors import InvalidInput
from o2pl.learners.params import Parameters
from o2pl.protocols import FeatureMap
from o2pl.simulation.rivals import UNIT, Range
from o2pl.simulation.rivals.linear import LinTS, LinUCB
from o2pl.validation import check_number, check_reward_range


@dataclass(eq=False, repr=False)
class HeadStart(Parameters):
    """`method` after `warm_start` uniform rounds; untried actions are predicted at `level`.

    The level is a fraction of the reward range, like O2PL's baseline: ridge regression shrinks to it, not to 0.

    Parameters
    ----------
    n_actions
        Number of actions K.
    method
        "linucb" or "lints".
    width
        α of LinUCB, v of LinTS.
    ridge, features, reward_range
        As for O2PL and its rivals.
    warm_start
        Rounds in which all actions are equally likely.
    level
        From 0, the lowest possible reward, to 1, the highest.
    random_state
        Seed or None.
    """

    n_actions: int
    method: str = "linucb"
    _: KW_ONLY
    width: float = 1.0
    ridge: float = 1.0
    features: FeatureMap = LINEAR
    warm_start: int = 0
    level: float = 0.0
    reward_range: Range = UNIT
    random_state: int | None = None
    _inner: Any = field(init=False, default=None)

    def act(self, context: ArrayLike) -> Decision:
        inner = self._begun()
        if self._learned >= self.warm_start:
            decision: Decision = inner.act(context)
            return decision
        return Decision(int(self._generator.integers(self.n_actions)), 1 / self.n_actions)

    def update(self, context: ArrayLike, action: Any, reward: float, propensity: float) -> Self:
        self._begun().update(context, action, reward - self._level, propensity)
        self._learned += 1
        return self

    def _begun(self) -> Any:
        if self._inner is None:
            if self.method not in ("linucb", "lints"):
                raise InvalidInput(f"method: found {self.method!r}, expected 'linucb' or 'lints'")
            check_number("warm_start", self.warm_start, 0)
            low, high = check_reward_range(self.reward_range)
            self._level = low + check_number("level", self.level, 0, 1) * (high - low)
            own, of_method = np.random.SeedSequence(self.random_state).spawn(2)
            self._generator, self._learned = np.random.default_rng(own), 0
            seed = int(of_method.generate_state(1)[0])
            shared: dict[str, Any] = {"ridge": self.ridge, "features": self.features, "random_state": seed}
            if self.method == "linucb":
                self._inner = LinUCB(self.n_actions, alpha=self.width, **shared)
            else:
                self._inner = LinTS(self.n_actions, scale=self.width, **shared)
        return self._inner
