"""LinUCB and LinTS: one ridge regression per action, with confidence from its covariance.

Action k has A_k = λI + Σ φφᵀ and u_k = Σ r φ over its rows; θ_k = A_k⁻¹ u_k predicts its reward, and
s_k = √(φᵀ A_k⁻¹ φ) is its uncertainty; an untried action has s = |φ| / √λ.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from o2pl import _core
from o2pl.data.decisions import Decision
from o2pl.engine.member import LINEAR
from o2pl.protocols import FeatureMap, Floats, Seed
from o2pl.simulation.rivals.discrete import DiscreteLearner
from o2pl.special import ndtri
from o2pl.validation import check_number


@dataclass(eq=False, repr=False)
class _Ridges(DiscreteLearner):
    """Base class of LinUCB and LinTS."""

    n_actions: int
    _: KW_ONLY
    ridge: float = 1.0
    features: FeatureMap = LINEAR
    random_state: Seed = None

    def _begin(self, width: int, n_features: int) -> None:
        ridge = check_number("ridge", self.ridge, 0, open_low=True)
        self._inverses = np.tile(np.eye(n_features) / ridge, (self.n_actions, 1, 1))  # A⁻¹, [K, d, d]
        self._weights = np.zeros((self.n_actions, n_features))  # θ, [K, d]

    def _learn(self, row: Floats, action: int, reward: float, propensity: float) -> None:
        self._observe(row)
        features = self._transform(row).astype(np.float64)
        _core.absorb_row(self._inverses[action], self._weights[action], features, reward)

    def _scores(self, features: Floats) -> tuple[Floats, Floats]:
        """Return the predicted reward and its standard deviation for each action, [K] each."""
        return _core.ridge_scores(self._inverses, self._weights, features)


@dataclass(eq=False, repr=False)
class LinUCB(_Ridges):
    """Plays the action with the highest φ·θ_k + α s_k (Li et al. 2010, disjoint models). Ties go to the first.

    Parameters
    ----------
    n_actions
        Number of actions K.
    alpha
        α, the width of the confidence bound.
    ridge
        λ > 0.
    features
        The feature map. Default: running standardisation and an intercept.
    random_state
        Not used: LinUCB is deterministic. Accepted so that all learners have the same signature.
    """

    _: KW_ONLY
    alpha: float = 0.2

    def _begin(self, width: int, n_features: int) -> None:
        check_number("alpha", self.alpha, 0)
        super()._begin(width, n_features)

    def _decide(self, features: Floats) -> Decision:
        means, deviations = self._scores(features)
        return Decision(int(np.argmax(means + self.alpha * deviations)), 1.0)


@dataclass(eq=False, repr=False)
class LinTS(_Ridges):
    """Thompson sampling: draw θ̃_k ~ N(θ_k, v² A_k⁻¹) for each action, take the best φ·θ̃_k (Agrawal & Goyal 2013).

    For one context, φ·θ̃_k ~ N(φ·θ_k, v² s_k²), independent over actions. So K normal numbers are drawn, not K vectors,
    and the probability that the chosen action is the best is a one-dimensional integral, computed by quadrature.

    Parameters
    ----------
    scale
        v, the width of the posterior; 0 is greedy.
    n_actions, ridge, features, random_state
        As for `LinUCB`; the random state is used.
    """

    _: KW_ONLY
    scale: float = 0.05

    def _begin(self, width: int, n_features: int) -> None:
        check_number("scale", self.scale, 0)
        super()._begin(width, n_features)

    def _decide(self, features: Floats) -> Decision:
        means, deviations = self._scores(features)
        deviations *= self.scale
        normals = ndtri(np.clip(self._stream.take(self.n_actions), 1e-16, 1 - 1e-16))
        action = int(np.argmax(means + deviations * normals))
        return Decision(action, _core.best_probability(means, deviations, action))
