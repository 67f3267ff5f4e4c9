"""Vowpal Wabbit's CATS for a real-valued action between bounds, using the `vowpalwabbit` package (extra `vw`).

Each round parses two VW text examples, as in its Python tutorials: one to decide, one to learn.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from o2pl.data.decisions import Decision
from o2pl.engine.stream import UniformStream
from o2pl.extras import extra
from o2pl.learners.params import Parameters
from o2pl.protocols import Seed
from o2pl.validation import check_context, check_count, check_number, check_pair, check_reward, check_reward_range

# Good settings for each world of `RESPONSES`, by the mean reward of two seeds from 5000, 5,000 rounds: the best of all
# with 8 to 64 leaves and rates from .1 to 2, and of neighbours beyond, where that was at an edge.
TUNED: dict[str, dict[str, Any]] = {
    "demand": {"leaves": 32, "bandwidth": 0.5, "learning_rate": 8.0},
    "convex": {"leaves": 8, "bandwidth": 1.0, "learning_rate": 0.1},
    "two-peaks": {"leaves": 8, "bandwidth": 0.5, "learning_rate": 0.03},
    "skewed": {"leaves": 64, "bandwidth": 0.5, "learning_rate": 2.0},
    "dose": {"leaves": 8, "bandwidth": 1.0, "learning_rate": 0.03},
}


@dataclass(eq=False, repr=False)
class CATS(Parameters):
    """A tree over `leaves` discrete actions, smoothed: actions are uniform within a bandwidth around the chosen one.

    Parameters
    ----------
    bounds
        Lowest and highest action.
    leaves
        Number of discrete actions.
    bandwidth
        Half-width of the played interval, in units of the distance between discrete actions.
    epsilon
        Fraction of decisions drawn uniformly between the bounds.
    learning_rate
        Learning rate of VW.
    interactions
        Whether to add products of features.
    reward_range
        Lowest and highest possible reward.
    random_state
        Seed, numpy Generator or None; draws VW's own seed.
    """

    bounds: tuple[float, float]
    _: KW_ONLY
    leaves: int = 16
    bandwidth: float = 1.0
    epsilon: float = 0.05
    learning_rate: float = 0.5
    interactions: bool = False
    reward_range: tuple[float, float] = (0.0, 1.0)
    random_state: Seed = None
    _vw = None  # the workspace, created at first use

    def arguments(self) -> str:
        """Return VW's command line, without the seed."""
        low, high = check_pair("bounds", self.bounds, "lowest action", "highest action")
        leaves = check_count("leaves", self.leaves)
        width = check_number("bandwidth", self.bandwidth, 0, open_low=True) * (high - low) / leaves
        rate = check_number("learning_rate", self.learning_rate, 0, open_low=True)
        # all digits: a rounded bandwidth is another policy
        given = f"--cats {leaves} --bandwidth {width!r} --min_value {low!r} --max_value {high!r}"
        products = " --interactions ss" if self.interactions else ""
        return f"{given} --epsilon {check_number('epsilon', self.epsilon, 0, 1):g} --learning_rate {rate:g}{products}"

    def act(self, context: Any) -> Decision:
        vw = self._begun()
        example = vw.parse(_cats_text(context), self._label)
        action, density = vw.predict(example)
        vw.finish_example(example)
        return Decision(float(action), float(density))

    def update(self, context: Any, action: float, reward: float, propensity: float) -> CATS:
        vw, (low, high) = self._begun(), self._range
        check_reward(reward, self._range)
        example = vw.parse(
            f"ca {action}:{(high - reward) / (high - low)}:{propensity} {_cats_text(context)}", self._label
        )
        vw.learn(example)
        vw.finish_example(example)
        return self

    def _begun(self) -> Any:
        if self._vw is None:
            with extra("vw", "Vowpal Wabbit as a rival"):
                import vowpalwabbit
            self._label, self._range = vowpalwabbit.LabelType.CONTINUOUS, check_reward_range(self.reward_range)
            seed = int(UniformStream(self.random_state).next() * 2**31)
            self._vw = vowpalwabbit.Workspace(f"{self.arguments()} --random_seed {seed} --quiet")
        return self._vw


def _cats_text(context: object) -> str:
    row = context if isinstance(context, np.ndarray) else check_context(context)
    return "|s " + " ".join(f"{i}:{x:.6g}" for i, x in enumerate(row.tolist()))
