"""`GaussianO2PL`, the object users hold for continuous actions."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from o2pl.action_names import Names
from o2pl.learners.continuous import ContinuousEstimator
from o2pl.learners.engine import Engine, Parts
from o2pl.learners.member import LINEAR, Member
from o2pl.learners.schedules import as_schedule
from o2pl.learners.stream import UniformStream
from o2pl.log import Log
from o2pl.objectives.pessimistic import Pessimistic
from o2pl.policies import Gaussian
from o2pl.policies.sampling import UniformExploration
from o2pl.protocols import FeatureMap, Floats
from o2pl.validation import check_number, check_reward_range


@dataclass(eq=False, repr=False)
class GaussianO2PL(ContinuousEstimator):
    """Online pessimistic policy learning for a real-valued action: a ~ N(centre + θ·φ(x), scale²).

    Parameters
    ----------
    centre, scale
        Mean and deviation of the actions before anything is learned; the scale stays unless `learn_scale`.
    learn_scale
        Learn the deviation too.
    features
        The feature map; standardised contexts and an intercept unless said otherwise.
    control
        The ridge of a linear model of the losses given the context, which takes the place of the baseline; or None.
    schedule, reward_range, penalty, clip, baseline, l2, p, beta, delta, random_state
        As for `O2PL`.
    """

    _: KW_ONLY
    centre: float = 0.0
    scale: float = 1.0
    learn_scale: bool = False
    features: FeatureMap = LINEAR
    schedule: Any = "geometric"
    reward_range: tuple[float, float] = (0.0, 1.0)
    penalty: float = 0.1
    clip: float | str | None = "theory"
    baseline: float | str | None = "mean"
    control: float | None = 15.0
    l2: float = 0.1
    p: float = 0.0
    beta: float = 1.0
    delta: float = 0.05
    random_state: Any = None

    def predict(self, contexts: Any) -> Floats:
        """The mean action of each context, [n]."""
        return self._begun().decider.means(self._reader.rows(contexts))

    def nodes(self, contexts: Any) -> tuple[Floats, Floats]:
        """Gauss-Hermite: exact for polynomials of degree ≤ 9 in the action."""
        places, shares = np.polynomial.hermite_e.hermegauss(5)
        return self.predict(contexts)[:, None] + self.scale_ * places, shares / shares.sum()

    @property
    def scale_(self) -> float:
        """The deviation with which it acts now."""
        params = self._begun().members[0].params
        return float(np.exp(params[-1])) if self.learn_scale else self.scale

    def _make_engine(self, width: int, n_actions: int | None, names: Names = ()) -> Engine:
        check_number("centre", self.centre)
        check_number("scale", self.scale, 0, open_low=True)
        if self.control is not None:
            check_number("control", self.control, 0, open_low=True, instead="None or ")
        objective = Pessimistic(
            self.penalty, self.clip, self.baseline, self.l2, p=self.p, beta=self.beta, delta=self.delta
        )
        policy, schedule = Gaussian(self.centre, self.scale, self.learn_scale), as_schedule(self.schedule)
        parts = Parts([Member(self.features)], [policy], objective, schedule, self.control, 1.0, UniformExploration())
        log = Log(width, continuous=True, reward_range=check_reward_range(self.reward_range))
        return Engine(parts, self._new_reader(width), log, UniformStream(self.random_state))
