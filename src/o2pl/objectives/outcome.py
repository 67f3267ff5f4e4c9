"""The outcome objective: fit the policy by a likelihood of the observed rewards.

With importance weights, a policy learns little about actions it hardly plays: a softmax has no gradient where π(a|x) is
near 0. Here the scores f predict the reward r ∈ [0, 1] of the played action; the gradient is bounded and does not
vanish:

    m(x, a) = σ(z),  z = f_a - log Σ_{b≠a} exp f_b - τ  competing actions: logit π(a|x), minus a learned level τ
                     z = f_a + τ                        independent actions: logistic models, τ the log-odds of b
    V = mean [-r log m - (1 - r) log(1 - m)] + l2 |θ|²/2n (+ level_l2 τ²/2n, competing),  b = (Σ r + 3)/(n + 3)

With c = m - r: ∂V/∂f_a = c/n, ∂V/∂f_b = -c π_b/(1 - π_a)/n (competing), ∂V/∂τ = ∓c/n. Propensities do not enter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from o2pl import _core
from o2pl.data.contexts import own_context_offsets
from o2pl.data.interactions import Interactions
from o2pl.objectives.terms import PRIOR_ROWS, Totals
from o2pl.policies.sampling import FAR
from o2pl.protocols import Array, Floats, Ints
from o2pl.special import expit
from o2pl.storage import storable
from o2pl.validation import check_number

_SURE = 1e-4  # distance of predictions from 0 and 1 when members are weighted
_ENDS = 0.01  # distance of b from 0 and 1
_NEGLIGIBLE = 0.03  # difference in the total log-likelihood that does not distinguish policies
_MANY = 8  # with more actions, each has fewer rows, and l2 decreases as 1/K


@storable
@dataclass(frozen=True)
class Outcome:
    """`competing`: one action's gain is another's loss. l2: of the weights, at K ≤ 8; it falls as 8/K beyond.

    Action sets share their weights, however many actions they have: there it stays. dispersion: φ; the variance of a
    reward is φ m (1 - m), so that both l2 count φ times. 0 and 1 have φ = 1, rewards that vary less have less.
    """

    competing: bool = True
    l2: float = 1.0
    level_l2: float = 0.3
    dispersion: float = 1.0
    extra = 1  # τ

    def __post_init__(self) -> None:
        check_number("l2", self.l2, 0)
        check_number("level_l2", self.level_l2, 0)
        check_number("dispersion", self.dispersion, 0, 1, open_low=True)

    def rate(self, n: int) -> float:
        """Return the rate of a union's exponential weights: tempered, so that no member is dropped too early."""
        return min(1.0, 3 / math.sqrt(n + 1))

    def decay(self, n_actions: int | None) -> float:
        """Return the weight decay. n_actions: None for action sets, which share their weights."""
        return self.dispersion * (self.l2 * min(1.0, _MANY / (n_actions or 2)))

    @property
    def level_decay(self) -> float:
        """The decay of τ."""
        return self.dispersion * self.level_l2

    def prepare(
        self, rows: Interactions, control: object = None, weights: Floats | None = None, totals: Totals | None = None
    ) -> OutcomeLog:
        """Prepare rows. totals: of the whole log, if these rows are a part of it; without weights."""
        sets = rows.encoded
        n_actions = rows.n_actions if sets.items is None else None
        return OutcomeLog(
            rows.actions, rows.fractions, self.competing, self.decay(n_actions), self.level_decay,
            sets.offsets, weights, totals,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class OutcomeLog:
    """A log prepared for the objective: everything that is constant while the policy changes."""

    actions: Array
    rewards: Floats  # fractions of their range, in [0, 1]
    competing: bool
    l2: float
    level_l2: float
    offsets: Ints | None = None  # of action sets
    weights: Floats | None = None  # of the rows; None: equal
    totals: Totals | None = None  # of the whole log, if this is a part of it

    @cached_property
    def size(self) -> float:
        return self._sums[0] if self.totals is None else self.totals.rows

    @cached_property
    def _sums(self) -> tuple[float, float]:
        """Σ weights, and Σ weighted rewards, added row by row."""
        return _core.weighted_sums(self.rewards, self.weights)

    @property
    def negligible(self) -> float:
        """Tolerance of a solve, in units of the value, a mean over rows."""
        return _NEGLIGIBLE / self.size

    @cached_property
    def level(self) -> float:
        """The log-odds of b."""
        total = self._sums[1] if self.totals is None else -self.totals.losses
        b = min(max((total + PRIOR_ROWS) / (self.size + PRIOR_ROWS), _ENDS), 1 - _ENDS)
        return float(_core.log_of(np.array([b / (1 - b)]))[0])

    def started(self, params: Floats) -> Floats:
        """Return initial parameters: τ of independent actions is the log-odds of b."""
        if self.competing:
            return params
        params = params.copy()
        params[-1] = self.level
        return params

    def partial(self, scores: Floats, rows: slice | Ints, extra: Floats) -> tuple[Floats, list[Floats]]:
        """Return Σ losses and Σ c, and the cotangents of the scores. extra: τ"""
        weigh: Any = 1.0 if self.weights is None else self.weights[rows]
        actions, rewards = self.actions[rows], self.rewards[rows]
        offsets = None
        if self.offsets is not None:
            offsets = own_context_offsets(self.offsets, rows)
        z, rivals = outcome_logits(scores, actions, offsets, self.competing, float(extra[0]))
        losses = np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z))) - rewards * z
        c = weigh * (expit(z) - rewards)
        if offsets is None:
            pulled = -rivals * c[:, None]
            pulled[np.arange(len(c)), actions] = c
        else:
            pulled = -rivals * np.repeat(c, np.diff(offsets))
            pulled[offsets[:-1] + actions] = c
        return np.array([np.sum(weigh * losses), c.sum()]), [pulled]

    def combine(self, params: Floats, sums: Floats, gradients: Sequence[Floats]) -> tuple[float, Floats]:
        """Return the objective and its gradient. params: weights, then τ."""
        theta, shrink = params[:-1], self.l2 / self.size
        of_level, gradient_of_level = self.of_level(float(params[-1]), float(sums[1]))
        value = float(sums[0]) / self.size + 0.5 * shrink * float(theta @ theta) + of_level
        return value, np.append(gradients[0] / self.size + shrink * theta, gradient_of_level)

    def of_level(self, tau: float, pulled: float) -> tuple[float, float]:
        """Return the contribution of τ to the value, and ∂V/∂τ. pulled: Σ c"""
        if not self.competing:
            return 0.0, 0.0
        return 0.5 * self.level_l2 * tau**2 / self.size, (-pulled + self.level_l2 * tau) / self.size


def outcome_log_likelihoods(z: Floats, rewards: Floats) -> Floats:
    """Return the log-likelihood of each reward under predicted log-odds, as `prediction_sums` adds them up. [M, n]"""
    m = np.clip(expit(np.clip(z, -FAR, FAR)), _SURE, 1 - _SURE)
    return np.asarray(rewards * np.log(m) + (1 - rewards) * np.log1p(-m))


def outcome_logits(
    scores: Floats, actions: Ints, offsets: Ints | None, competing: bool, tau: float
) -> tuple[Floats, Floats]:
    """Return z of the played actions, [n], and π_b/(1 - π_a) of the others (0 for the played and independent ones).

    Sums are over the other actions only: 1 - π would lose precision for nearly certain actions.
    """
    f = scores.astype(np.float64)
    if offsets is None:
        played: Any = (np.arange(len(actions)), actions)
        own = f[played]
        if not competing or f.shape[1] == 1:
            return own + (tau if not competing else -tau), np.zeros_like(f)
        others = f.copy()
        others[played] = -np.inf
        top = others.max(axis=1, keepdims=True)
        powers = np.exp(others - top)
        total = powers.sum(axis=1, keepdims=True)
        return own - (top + np.log(total))[:, 0] - tau, powers / total
    played, sizes = offsets[:-1] + actions, np.diff(offsets)
    own = f[played]
    if not competing:
        return own + tau, np.zeros_like(f)
    others = f.copy()
    others[played] = -1e300  # a set of one has no other actions: their sum is that of one with score 0
    top = np.where(sizes > 1, np.maximum.reduceat(others, offsets[:-1]), 0.0)
    powers = np.exp(others - np.repeat(top, sizes))
    total = np.add.reduceat(powers, offsets[:-1])
    total = np.where(sizes > 1, total, 1.0)
    return own - (top + np.log(total)) - tau, powers / np.repeat(total, sizes)
