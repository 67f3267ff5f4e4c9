"""`GaussianO2PL`: the paper's learner for continuous actions."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from o2pl.data.action_names import Names
from o2pl.data.log import Log
from o2pl.encode import Encoder
from o2pl.engine.engine import Engine
from o2pl.engine.member import LINEAR, Member
from o2pl.engine.schedules import as_schedule
from o2pl.engine.spec import Spec
from o2pl.engine.stream import UniformStream
from o2pl.errors import InvalidInput
from o2pl.features import Standardise
from o2pl.learners.continuous import Bounds, ContinuousEstimator, check_continuous_bounds
from o2pl.objectives.pessimistic import Pessimistic
from o2pl.policies import Gaussian, NeuralGaussian
from o2pl.policies.sampling import UniformExploration
from o2pl.policies.truncated import NARROWEST, WIDEST, Truncated
from o2pl.protocols import FeatureMap, Floats
from o2pl.validation import check_number, check_reward_range


@dataclass(eq=False, repr=False)
class GaussianO2PL(ContinuousEstimator):
    """Online pessimistic policy learning for a real-valued action: a ~ N(centre + θ·φ(x), scale²).

    It uses the paper's objective. For online decisions that maximise reward, start with `ContinuousBandit`.

    Parameters
    ----------
    bounds
        Lowest and highest action, or None. The normal distribution is truncated and normalised: all actions are between
        the bounds, and the propensity is their exact density.
    distribution
        "normal", or "log-normal" (for prices): log a is normal; centre and scale then refer to log a.
    centre, scale
        Mean and standard deviation of the actions before learning. None: the middle of the bounds, or 0; a sixth of
        their distance, or 1.
    learn_scale
        Learn the standard deviation too. None: if there are bounds.
    heteroscedastic
        Learn a standard deviation that depends on the context.
    policy
        "linear", "neural" (a network instead of θ·φ, extra `jax`), or your own `NeuralGaussian`, which replaces the
        settings above.
    features
        The feature map. Default: standardised contexts and an intercept.
    control
        Ridge of a linear model of the losses given the context, which replaces the baseline; or None.
    schedule, reward_range, penalty, clip, baseline, l2, p, beta, delta, random_state
        As for `O2PL`.
    """

    _: KW_ONLY
    bounds: Bounds | None = None
    distribution: str = "normal"
    centre: float | None = None
    scale: float | None = None
    learn_scale: bool | None = None
    heteroscedastic: bool = False
    policy: Any = "linear"
    features: FeatureMap | None = None
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

    def predict(self, contexts: object) -> Floats:
        """Return the mean action for each context, [n]."""
        return self._begun().decider.means(self._begun().encoder.encode(contexts))

    def nodes(self, contexts: object) -> tuple[Floats, Floats]:
        """Return quadrature nodes and weights. Gauss-Hermite for a normal policy: exact up to degree 9."""
        if not isinstance(self._policy(), Gaussian):
            return super().nodes(contexts)
        places, shares = np.polynomial.hermite_e.hermegauss(5)
        return self.predict(contexts)[:, None] + self.scale_ * places, shares / shares.sum()

    @property
    def scale_(self) -> float:
        """The current standard deviation before truncation; for "log-normal", that of log a."""
        policy, params = self._policy(), self._begun().members[0].params
        if isinstance(policy, Gaussian):
            return policy.split(params)[1]
        normal = policy.normal if isinstance(policy, NeuralGaussian) else policy
        if normal.heteroscedastic:
            raise AttributeError("scale_: it depends on the context; call predict_moments(contexts)")
        return normal.scale * float(np.exp(np.clip(params[-1], NARROWEST, WIDEST) if normal.learn_scale else 0.0))

    def _policy(self) -> Gaussian | Truncated | NeuralGaussian:
        if isinstance(self.policy, NeuralGaussian):
            return self.policy
        if self.policy not in ("linear", "neural"):
            raise InvalidInput(f"policy: found {self.policy!r}, expected 'linear', 'neural' or a NeuralGaussian")
        bounds = check_continuous_bounds(self.bounds)
        if self.distribution not in ("normal", "log-normal"):
            raise InvalidInput(f'distribution: found {self.distribution!r}, expected "normal" or "log-normal"')
        log = self.distribution == "log-normal"
        centre, scale = 0.0, 1.0
        if bounds is not None:
            if log and bounds[0] <= 0:
                raise InvalidInput(f"bounds: found {bounds!r} for a log-normal policy, expected a lowest action > 0")
            low, high = (math.log(end) for end in bounds) if log else bounds
            centre, scale = (low + high) / 2, (high - low) / 6
        centre = centre if self.centre is None else check_number("centre", self.centre)
        scale = scale if self.scale is None else check_number("scale", self.scale, 0, open_low=True)
        learned = bounds is not None if self.learn_scale is None else self.learn_scale
        if bounds is None and not log and not self.heteroscedastic and self.policy == "linear":
            return Gaussian(centre, scale, learned)
        normal = Truncated(centre, scale, learned, self.heteroscedastic, bounds, log)
        return normal if self.policy == "linear" else NeuralGaussian(normal)

    def _make_engine(self, encoder: Encoder, n_actions: int | None, names: Names = ()) -> Engine:
        if self.control is not None:
            check_number("control", self.control, 0, open_low=True, instead="None or ")
        objective = Pessimistic(
            self.penalty, self.clip, self.baseline, self.l2, p=self.p, beta=self.beta, delta=self.delta
        )
        policy, schedule = self._policy(), as_schedule(self.schedule)
        features = self.features
        if features is None:
            features = Standardise() if isinstance(policy, NeuralGaussian) else LINEAR
        spec = Spec([Member(features)], [policy], objective, schedule, self.control, 1.0, UniformExploration())
        log = Log(encoder.width or 0, continuous=True, reward_range=check_reward_range(self.reward_range))
        return Engine(spec, encoder, log, UniformStream(self.random_state))
