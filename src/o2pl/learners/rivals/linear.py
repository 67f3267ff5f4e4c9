"""LinUCB and LinTS: one ridge regression per action, with confidence from its covariance.

Action k has A_k = λI + Σ φφᵀ and u_k = Σ r φ over its rows; θ_k = A_k⁻¹ u_k predicts its reward, and
s_k = √(φᵀ A_k⁻¹ φ) is its uncertainty; an untried action has s = |φ| / √λ.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np

from o2pl.compiled import compiled
from o2pl.decisions import Decision
from o2pl.learners.member import LINEAR
from o2pl.learners.rivals.discrete import DiscreteLearner
from o2pl.protocols import FeatureMap, Floats, Seed
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
        absorb_row(self._inverses[action], self._weights[action], features, reward)

    def _scores(self, features: Floats) -> tuple[Floats, Floats]:
        """Return the predicted reward and its standard deviation for each action, [K] each."""
        return linear_scores(self._inverses, self._weights, features.astype(np.float64))


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
        from scipy.special import ndtri  # imported here: scipy would double the time of `import o2pl`

        means, deviations = self._scores(features)
        deviations *= self.scale
        normals = ndtri(np.clip(self._stream.take(self.n_actions), 1e-16, 1 - 1e-16))
        action = int(np.argmax(means + deviations * normals))
        return Decision(action, best_probability(means, deviations, action))


@compiled
def absorb_row(inverse: Floats, weights: Floats, x: Floats, target: float) -> None:
    """Update in place for A += xxᵀ and u += y x (Sherman-Morrison).

    A⁻¹ -= A⁻¹x xᵀA⁻¹ / (1 + xᵀA⁻¹x);  θ += A⁻¹x (y - θ·x) / (1 + xᵀA⁻¹x), with the old A⁻¹.
    """
    d = len(x)
    direction = np.zeros(d)  # A⁻¹ x
    for i in range(d):
        for j in range(d):
            direction[i] += inverse[i, j] * x[j]
    predicted, leverage = 0.0, 0.0
    for i in range(d):
        predicted += weights[i] * x[i]
        leverage += direction[i] * x[i]
    gain = 1.0 / (1.0 + leverage)
    for i in range(d):
        weights[i] += gain * (target - predicted) * direction[i]
        for j in range(d):
            inverse[i, j] -= gain * direction[i] * direction[j]


@compiled
def linear_scores(inverses: Floats, weights: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Return x·θ_k and √(xᵀ A_k⁻¹ x) of each action, [K] each."""
    n_actions, d = weights.shape
    means, deviations = np.zeros(n_actions), np.zeros(n_actions)
    for k in range(n_actions):
        quadratic = 0.0
        for i in range(d):
            means[k] += weights[k, i] * x[i]
            inner = 0.0
            for j in range(d):
                inner += inverses[k, i, j] * x[j]
            quadratic += x[i] * inner
        deviations[k] = math.sqrt(max(quadratic, 0.0))
    return means, deviations


_POINTS, _SHARES = (array.copy() for array in np.polynomial.legendre.leggauss(16))
_FAR = 8.5  # standard deviations: a normal variable is beyond with probability below 1e-16
_KNOTS = (-_FAR, -3.0, 0.0, 3.0, _FAR)  # between these, in standard deviations, 16 points integrate Φ to 1e-9


@compiled
def best_probability(means: Floats, deviations: Floats, action: int) -> float:
    """Return P(X_k is the largest) for k = `action` and independent X_j ~ N(mean_j, deviation_j²).

    ∫ φ_k(z) Π_{j≠k} Φ_j(z) dz, by Gauss-Legendre quadrature between the knots of all actions, where the integrand is
    smooth.
    """
    mean, deviation = means[action], deviations[action]
    if deviation == 0.0:  # φ = 0 or v = 0: deterministic
        return 1.0
    low, high = mean - _FAR * deviation, mean + _FAR * deviation
    for j in range(len(means)):  # below this, another action is always larger
        if j != action:
            low = max(low, means[j] - _FAR * deviations[j])
    knots = np.empty(2 + len(_KNOTS) * len(means))
    knots[0], knots[1], size = low, high, 2
    sharpest = deviation
    for j in range(len(means)):
        if means[j] + _FAR * deviations[j] > low:  # otherwise it is always smaller
            sharpest = min(sharpest, deviations[j])
            for knot in _KNOTS:
                at = means[j] + knot * deviations[j]
                if low < at < high:  # insertion sort: there are few knots
                    place = size
                    while knots[place - 1] > at:
                        knots[place] = knots[place - 1]
                        place -= 1
                    knots[place] = at
                    size += 1
    total, start = 0.0, knots[0]
    for end in knots[1:size]:
        if end - start < sharpest and end < high:  # merge close knots
            continue
        half = 0.5 * (end - start)
        for node in range(len(_POINTS)):
            z = start + half * (1.0 + _POINTS[node])
            value = math.exp(-0.5 * ((z - mean) / deviation) ** 2)
            for j in range(len(means)):
                if j != action and means[j] + _FAR * deviations[j] > z:
                    value *= 0.5 * math.erfc((means[j] - z) / (deviations[j] * math.sqrt(2.0)))
            total += half * _SHARES[node] * value
        start = end
    return float(min(max(total / (deviation * math.sqrt(2.0 * math.pi)), 1e-300), 1.0))
