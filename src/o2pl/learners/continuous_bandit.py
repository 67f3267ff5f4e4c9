"""`ContinuousBandit`, the recommended learner for real-valued actions: a price, a dose, a bid."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from o2pl.data.action_names import Names
from o2pl.data.log import Log
from o2pl.encode import Encoder
from o2pl.engine.engine import Engine
from o2pl.engine.member import LINEAR, QUADRATIC, Member
from o2pl.engine.schedules import Geometric, as_schedule
from o2pl.engine.spec import Spec
from o2pl.engine.stream import UniformStream
from o2pl.errors import InvalidInput
from o2pl.features import Settled
from o2pl.learners.continuous import Bounds, ContinuousEstimator, check_continuous_bounds
from o2pl.learners.discrete import discrete_exploration
from o2pl.objectives.squares import LeastSquares
from o2pl.policies.cells import Cells
from o2pl.policies.curve import Curve
from o2pl.protocols import Exploration, FeatureMap, Floats
from o2pl.validation import check_count, check_reward_range, to_reward

_FEW = 9  # up to this many inputs, products are added: the cost per row is quadratic in the number of terms
_RATIO = 10.0  # ratio of the bounds from which actions are compared on a log scale
_OFTEN = Geometric(growth=1.25, ease=100.0)  # a checkpoint costs more than the rows it learns from
_FINE = 8  # grid points per cell in the search for the best action


@dataclass(eq=False, repr=False)
class ContinuousBandit(ContinuousEstimator):
    """A contextual bandit for a real-valued action within bounds: the recommended learner.

    It learns the reward as a curve over the action, whose shape depends on the context, and acts near its maximum:
    widely while little is known, then more and more narrowly. The propensity is the exact density of the played action.

    Parameters
    ----------
    bounds
        Lowest and highest action. All actions are between them.
    spacing
        "linear"; "log": actions are compared by their ratio, as for prices from 1 to 100; "auto": "log" if both bounds
        are positive and differ by a factor of 10 or more.
    features
        The feature map. "auto": standardised contexts and, with up to nine columns, their products.
    schedule
        When to learn, as for `O2PL`.
    reward_range
        Lowest and highest possible reward.
    exploration
        ε: the fraction of decisions drawn uniformly between the bounds. Every density is at least ε times the uniform.
    cells
        Number of cells: the density is piecewise constant on them. No decision is narrower than one cell.
    random_state
        Seed, numpy Generator or None.
    """

    bounds: Bounds | None = None
    _: KW_ONLY
    spacing: str = "auto"
    features: FeatureMap | str = "auto"
    schedule: Any = "geometric"
    reward_range: tuple[float, float] = (0.0, 1.0)
    exploration: float | Exploration = 0.0
    cells: int = 32
    random_state: Any = None

    def predict(self, contexts: object) -> Floats:
        """Return the action with the highest expected reward for each context, [n]."""
        places = self.cells * _FINE
        policy, params, features = self._parts(self._begun().encoder.encode(contexts))
        best = policy.along(params, features, places).argmax(axis=1)
        return policy.cells.actions((best + 0.5) / places)

    def predict_reward(self, contexts: object, actions: object) -> Floats:
        """Return the estimated mean reward of each action, [n]."""
        rows = self._begun().encoder.encode(contexts)
        policy, params, features = self._parts(rows)
        shares, _ = policy.forward(params, features, self._check_actions(self._begun().encoder, rows, actions))
        return np.asarray(to_reward(-shares, self.reward_range))

    def _parts(self, rows: object) -> tuple[Curve, Floats, Floats]:
        """Return the policy, its parameters and the features of these rows."""
        member: Any = self._begun().members[0]
        return member.policy, member.params, member.seen.features.transform(member.seen.state, rows)

    # -- building the engine

    def _cells(self) -> Cells:
        bounds = check_continuous_bounds(self.bounds)
        if bounds is None:
            raise InvalidInput("bounds: found None, expected the lowest and the highest action, such as (5, 20)")
        if self.spacing not in ("auto", "linear", "log"):
            raise InvalidInput(f'spacing: found {self.spacing!r}, expected "auto", "linear" or "log"')
        wide = bounds[0] > 0 and bounds[1] / bounds[0] >= _RATIO
        log = wide if self.spacing == "auto" else self.spacing == "log"
        return Cells(bounds, check_count("cells", self.cells), log)

    def _make_engine(self, encoder: Encoder, n_actions: int | None, names: Names = ()) -> Engine:
        features: Any = self.features
        width = encoder.width or 0
        if isinstance(features, str):
            if features != "auto":
                raise InvalidInput(f'features: found {features!r}, expected "auto" or a feature map')
            features = Settled(QUADRATIC if width <= _FEW else LINEAR)
        exploration = discrete_exploration(self.exploration)
        policy = Curve(self._cells(), width)
        schedule = _OFTEN if self.schedule == "geometric" else as_schedule(self.schedule)
        spec = Spec(
            [Member(features)], [policy], LeastSquares(), schedule, None, 1.0, exploration
        )  # fmt: skip
        log = Log(width, continuous=True, reward_range=check_reward_range(self.reward_range))
        return Engine(spec, encoder, log, UniformStream(self.random_state))
