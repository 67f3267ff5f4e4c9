"""One policy class among those that learn from a log: its features, its policy, how it is solved."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from o2pl.features import Chain, Intercept, Quadratic, Standardise
from o2pl.features.blocks import Recipe, recipe
from o2pl.interactions import Interactions
from o2pl.learners.kernels.actionwise import ActionWiseValue
from o2pl.learners.kernels.gaussian import GaussianValue
from o2pl.learners.kernels.softmax import SoftmaxValue
from o2pl.learners.schedules import Replay
from o2pl.learners.settings import Settings
from o2pl.objectives.control import ridge_baseline, ridge_control
from o2pl.objectives.pessimistic import policy_value
from o2pl.oracles.adam import adam_step
from o2pl.oracles.lbfgs import LBFGS
from o2pl.oracles.quasi_newton import Curvature, descend
from o2pl.policies.actionwise import ActionWise
from o2pl.policies.gaussian import Gaussian
from o2pl.policies.softmax import Softmax
from o2pl.protocols import Array, FeatureMap, Floats, Ints, State, ValueAndGradient
from o2pl.rows import ActionSets
from o2pl.storage import storable

REMEMBERING = LBFGS(iterations=5, tolerance=1e-4, memory=6)  # where a solve knows the curvature from those before
FORGETFUL = LBFGS(iterations=15, tolerance=1e-4, memory=6)
STRETCH = 2**14  # rows whose features are made at a time, where they are not made block by block
LINEAR = Chain((Standardise(), Intercept()))
QUADRATIC = Chain((Standardise(), Quadratic(), Intercept()))


@storable
@dataclass(frozen=True)
class Member:
    """A policy class. `policy=None`: a linear softmax over the learner's actions; None elsewhere: as the learner.

    A rich class has little to say of a short log: it joins the others when the log has `joins` rows.
    """

    features: FeatureMap = LINEAR
    policy: Any = None
    penalty: float | None = None
    l2: float | None = None
    joins: int = 0

    def settings(self, shared: Settings) -> Settings:
        own = {name: value for name in ("penalty", "l2") if (value := getattr(self, name)) is not None}
        return replace(shared, **own)


@dataclass
class MemberState:
    """A member at work: what its features have seen, its parameters, and what its solver keeps."""

    features: FeatureMap
    policy: Any
    settings: Settings
    seen: State
    params: Floats
    adam: list[Floats] = field(default_factory=list)  # first moment, second moment, number of steps [1]
    converged: bool = True
    joins: int = 0
    curvature: Curvature | None = None  # what a solve leaves for the next
    effort: Ints = field(default_factory=lambda: np.zeros(2, np.int64))  # solves, evaluations of the objective

    @classmethod
    def start(cls, member: Member, policy: Any, shared: Settings, width: int) -> MemberState:
        params = policy.init(member.features.width(width))
        adam = [np.zeros_like(params), np.zeros_like(params), np.zeros(1)]
        seen = member.features.init(width)
        return cls(member.features, policy, member.settings(shared), seen, params, adam, joins=member.joins)

    def featurise(self, contexts: Any) -> Any:
        if isinstance(contexts, ActionSets):
            return ActionSets(self.features.transform(self.seen, contexts.values), contexts.offsets)
        return self.features.transform(self.seen, contexts)

    def observe(self, contexts: Any) -> None:
        rows = contexts.values if isinstance(contexts, ActionSets) else contexts
        for start in range(0, len(rows), STRETCH):
            self.seen = self.features.observe(self.seen, rows[start : start + STRETCH])

    def likelihoods(self, rows: Interactions, sharpness: float) -> Floats:
        """π(a_s|x_s) of the member as it would act, [n]."""
        parts = (rows[start : start + STRETCH] for start in range(0, len(rows), STRETCH))
        return np.concatenate([self._likelihoods(part, sharpness) for part in parts])

    def _likelihoods(self, rows: Interactions, sharpness: float) -> Floats:
        pi = self.policy.probabilities(self.params, self.featurise(rows.contexts), sharpness)
        if isinstance(rows.contexts, ActionSets):
            return np.asarray(pi[rows.contexts.offsets[:-1] + rows.actions])
        return np.asarray(pi[np.arange(len(rows)), rows.actions])

    def function(self, rows: Interactions, control: Any) -> ValueAndGradient:
        """The objective on these rows as a function of the parameters."""
        objective = self.settings.objective(rows, control)
        if isinstance(self.policy, Softmax):
            made = recipe(self.features, self.seen, rows.contexts)
            return SoftmaxValue(made, self.policy.n_actions, objective, self.settings.l2)
        features = self.featurise(rows.contexts)
        if type(self.policy) is ActionWise and objective.control is None:
            return ActionWiseValue(features, objective, self.settings.l2)
        if type(self.policy) is Gaussian:
            return GaussianValue(self.policy, features, objective, self.settings.l2)
        return policy_value(self.policy, features, objective, self.settings.l2)

    def solve(self, function: ValueAndGradient, oracle: LBFGS | None) -> None:
        """Minimise from where the parameters are."""
        if isinstance(function, SoftmaxValue):
            oracle = oracle or REMEMBERING
            found = function.descend(self.params, oracle, self._pairs(oracle.memory))
        elif isinstance(function, ActionWiseValue) and oracle is None:
            found = descend(function, self.params, FORGETFUL, self._pairs(FORGETFUL.memory))
        else:
            found = (oracle or FORGETFUL)(function, self.params)
        self.params, self.converged = found.params, found.converged
        self.effort += (1, found.evaluations)

    def _pairs(self, memory: int) -> Curvature:
        if self.curvature is None or len(self.curvature.inner) != memory:
            self.curvature = Curvature(memory, len(self.params))
        return self.curvature

    def replay(self, function: ValueAndGradient, update: Replay) -> None:
        first, second, steps = self.adam
        for _ in range(update.steps):
            steps[0] += 1
            adam_step(self.params, function(self.params)[1], first, second, int(steps[0]), update.step_size)

    def arrays(self) -> dict[str, Array]:
        curvature = {} if self.curvature is None else self.curvature.arrays()
        return {
            "params": self.params,
            "first": self.adam[0],
            "second": self.adam[1],
            "steps": self.adam[2],
            "effort": self.effort,
            **{f"seen.{name}": array for name, array in self.seen.items()},
            **{f"curvature.{name}": array for name, array in curvature.items()},
        }

    def restore(self, arrays: dict[str, Array]) -> None:
        self.params = arrays["params"]
        self.adam = [arrays["first"], arrays["second"], arrays["steps"]]
        self.effort = arrays["effort"]
        self.seen = {name: arrays[f"seen.{name}"] for name in self.seen}
        if "curvature.at" in arrays:
            self.curvature = Curvature(len(arrays["curvature.inner"]), len(self.params))
            self.curvature.restore({name: arrays[f"curvature.{name}"] for name in self.curvature.arrays()})


def shared_control(linear: Floats | Recipe, rows: Interactions, n_actions: int | None, settings: Settings) -> Any:
    """The control variate of a log, on its linear features: one for all members.

    With real-valued actions it is m(x), a baseline for each row that leaves the row's own loss out. A single baseline
    would reward a policy for turning its back on contexts that pay less than others: in a finite log it can step past
    the actions that were tried there, where all weights are 0.
    """
    if settings.control is None:
        return None
    baseline = settings.level(float(np.sum(rows.losses)), len(rows))
    if n_actions is None:
        return ridge_baseline(linear, rows.losses, baseline, settings.control)
    return ridge_control(linear, rows.actions, rows.losses, n_actions, baseline, settings.control)
