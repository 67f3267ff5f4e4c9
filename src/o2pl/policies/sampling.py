"""From scores to decisions: mixture, exploration, and the draw, the only random step.

`O2PL` mixes its members' policies π_m = softmax(scores_m) and sharpens the mixture:

    p = (1 - ε) softmax(sharpness (log Σ_m ρ_m π_m + bonus)) + ε share

`Bandit` mixes their predictions m_m of the reward, and tries actions that are less certain than the best one. u is the
log-odds of the mean prediction, s² its variance (`engine.uncertainty`), * the action with the largest u:

    u = logit Σ_m ρ_m m_m + bonus,   q_a = Φ(-(u_* - u_a)/T_a),   T_a² = max(0, s_a² - s_*²) + .05²
    p = (1 - ε) odds / Σ odds + ε share,   odds = q/(1 - q), at least 1e-12; 1 for the action *

It is the excess of an action's variance over that of the best one that is explored: playing the best one removes the
rest. Everything is computed element by element, so a row's result is the same alone and in a batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from o2pl import _core
from o2pl.data.contexts import offsets_of_equal_contexts
from o2pl.errors import InvalidInput
from o2pl.protocols import Exploration, Explored, Floats, Ints
from o2pl.storage import storable
from o2pl.validation import check_number

_NONE = np.empty(0)
_FEW, _DOUBT = 10, 8  # up to so many actions plays count in full; the largest m


@storable
@dataclass(frozen=True)
class UniformExploration:
    """Mixes in the uniform policy: every action keeps at least ε/K.

    Parameters
    ----------
    epsilon
        ε, the share of uniform choice, 0 to 1.
    """

    epsilon: float = 0.0

    def __post_init__(self) -> None:
        check_number("exploration", self.epsilon, 0, 1)

    @cached_property
    def _explored(self) -> Explored:
        return Explored(self.epsilon, _NONE, _NONE)

    def at(self, plays: Ints, mean_reward: float, rewards: Floats | None = None) -> Explored:
        return self._explored


@storable
@dataclass(frozen=True)
class CountBonus:
    """Explores rarely played actions: log π(a|x) gains K^¾ (1 - 2/K) strength u / √(plays of a + 1).

    u = min(1, 2 (1 - mean reward)): less where little is left to gain.

    Among many actions, a few plays in contexts that another action fits prove little: at first an action that fits one
    context of K is rewarded once in K plays. So with m = min(8, K - 10) > 0, plays without a reward count less:

        plays of a · (s + 1) / (s + 1 + m e^(-plays of a / K)),  s = sum of the rewards of a

    and the strength is (1 - m/40) of what it is among ten.

    Parameters
    ----------
    strength
        The factor of the bonus.
    epsilon
        ε, the share of uniform choice that is mixed in besides, 0 to 1.
    """

    strength: float = 1.0
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        check_number("strength", self.strength, 0)
        check_number("epsilon", self.epsilon, 0, 1)

    def at(self, plays: Ints, mean_reward: float, rewards: Floats | None = None) -> Explored:
        K, counted = len(plays), plays
        left = min(1.0, 2 * (1 - mean_reward))
        scale = self.strength * left * K**0.75 * (1 - 2 / K) if K > 2 else 0.0
        doubt = 0 if rewards is None else min(_DOUBT, K - _FEW)  # m
        if rewards is not None and doubt > 0:
            scale, hits = scale * (1 - doubt / 40), rewards + 1
            counted = plays * hits / (hits + doubt * np.exp(-plays / K))
        return Explored(self.epsilon, scale / np.sqrt(counted + 1.0), _NONE)


_ABSENT = -1e9  # the bonus of removed actions: probabilities are 0 below -1e8


@storable
@dataclass(frozen=True)
class Without:
    """Explores as `rule` does, and never plays the actions with these indices.

    Parameters
    ----------
    rule
        An exploration rule.
    removed
        Indices of the removed actions.
    """

    rule: Exploration
    removed: tuple[int, ...]

    def at(self, plays: Ints, mean_reward: float, rewards: Floats | None = None) -> Explored:
        epsilon, bonus, share = self.rule.at(plays, mean_reward, rewards)
        bonus = bonus.copy() if len(bonus) else np.zeros(len(plays))
        share = share.copy() if len(share) else np.full(len(plays), 1 / len(plays))
        removed = list(self.removed)
        bonus[removed], share[removed] = _ABSENT, 0.0
        return Explored(epsilon, bonus, share / share.sum())


_SUREST, FAR = 30.0, math.log(1e4 - 1)  # the largest log-odds of a prediction; those that are calibrated
BY_EXCESS = 0.0  # the sharpness of policies that mix predictions
_NO_PREDICTIONS: Floats = np.empty((0, 4))


def acting_numbers(
    shares: Floats, sharpness: float, explored: Explored, predicting: Floats = _NO_PREDICTIONS
) -> Floats:
    """Return how members' scores become the acting policy, for kernels: one array, since each argument costs 0.2 µs.

    shares: weights ρ of the members, [M], summing to 1. predicting: with `BY_EXCESS`, how scores predict rewards,
    [M, 4]: whether actions compete, τ, level and slope. m = σ(level + slope z), with z as in `objectives.outcome`.
    """
    return _core.acting_numbers(shares, sharpness, explored.epsilon, explored.bonus, explored.share, predicting)


_SHARPNESS, _EPSILON, _BONUS, _SHARE, _HEAD = range(5)  # positions in these numbers


def _bonus_at(acting: Floats, members: int) -> int:
    """Return the position of the bonus: after the weights, and what predictions take."""
    return _HEAD + members * (5 if acting[_SHARPNESS] == BY_EXCESS else 1)


LEAST_VARIANCE = 0.05**2  # of the difference of two predicted log-odds


class Predicted(NamedTuple):
    """The members' predicted rewards of the actions of one row."""

    wins: Floats  # m_m, [K, M]
    losses: Floats  # 1 - m_m, [K, M]
    mixed: Floats  # the log-odds of Σ_m ρ_m m_m, [K]


def predicted(scores: Floats, acting: ActingParts) -> Predicted:
    """Return what members predict from these scores, [M, K]. The compiled core has the same in `acting_rows`."""
    z = np.empty(scores.shape)
    for own, f, (competing, tau, level, slope) in zip(z, scores, acting.predicting, strict=True):
        if competing and len(f) > 1:  # logit π - τ; 1 - π is the sum of the others
            others = [np.logaddexp.reduce(np.delete(f, k)) for k in range(len(f))]
            own[:] = f - others - tau
        else:
            own[:] = f - tau if competing else f + tau
        own[:] = np.clip(own, -_SUREST, _SUREST)
        if (level, slope) != (0, 1):
            own[:] = level + slope * np.clip(own, -FAR, FAR)
    wins, losses = 1 / (1 + np.exp(-z.T)), 1 / (1 + np.exp(z.T))
    return Predicted(wins, losses, np.log(wins @ acting.weights) - np.log(losses @ acting.weights))


class ActingParts(NamedTuple):
    """The parts of `acting_numbers` for K actions."""

    sharpness: float
    epsilon: float
    weights: Floats  # ρ, [M]
    predicting: Floats  # [M, 4], or none
    bonus: Floats  # [K]; zeros without a bonus
    share: Floats  # distribution of exploration, [K]; 1/K if uniform


def acting_parts(acting: Floats, members: int, n_actions: int) -> ActingParts:
    """Split `acting_numbers` into its parts."""
    first = _bonus_at(acting, members)
    bonus: Floats = np.zeros(n_actions)
    share: Floats = np.full(n_actions, 1 / max(n_actions, 1))
    if acting[_BONUS] > 0:
        bonus, first = acting[first : first + n_actions], first + n_actions
    if acting[_SHARE] > 0:
        share = acting[first : first + n_actions]
    weights, predicting = acting[_HEAD : _HEAD + members], acting[_HEAD + members : _bonus_at(acting, members)]
    return ActingParts(
        float(acting[_SHARPNESS]), float(acting[_EPSILON]), weights, predicting.reshape(-1, 4), bonus, share
    )


def check_explored(explored: Explored, n_actions: int | None) -> Explored:
    """Check the result of an exploration rule: kernels would read beyond arrays that are too short."""
    check_number("epsilon of the exploration rule", explored.epsilon, 0, 1)
    for name, values in (("bonus", explored.bonus), ("share", explored.share)):
        if len(values) not in (0, n_actions):
            expected = "none, since the number of actions varies" if n_actions is None else f"none or {n_actions}"
            raise InvalidInput(f"{name} of the exploration rule: found {len(values)} numbers, expected {expected}")
        if len(values) and not _core.all_finite(np.asarray(values, np.float64)):
            raise InvalidInput(f"{name} of the exploration rule: found {values}, expected finite numbers")
    if len(explored.share) and not (min(explored.share) >= 0 and abs(sum(explored.share) - 1) < 1e-9):
        raise InvalidInput(
            f"share of the exploration rule: found {explored.share}, expected probabilities that sum to 1"
        )
    return explored


def with_exploration(acting: Floats, share: float) -> Floats:
    """Return `acting_numbers` with an additional fraction of exploration."""
    numbers = acting.copy()
    numbers[_EPSILON] = 1 - (1 - acting[_EPSILON]) * (1 - share)
    return numbers


def acting_among(acting: Floats, members: int, allowed: Ints) -> Floats:
    """Return `acting_numbers` restricted to the allowed actions."""
    first = _bonus_at(acting, members)
    kept = [acting[:first]]
    for place in (_BONUS, _SHARE):
        of_all, first = acting[first : first + int(acting[place])], first + int(acting[place])
        if len(of_all):
            own = of_all[allowed]
            if place == _BONUS and own.max() <= _ABSENT:
                raise InvalidInput("exclude: found all actions that were not removed, expected at least one allowed")
            if place == _SHARE:  # renormalise over the allowed actions
                own = own / own.sum() if own.sum() > 0 else np.full(len(own), 1 / len(own))
            kept.append(own)
    numbers = np.concatenate(kept)
    for place in (_BONUS, _SHARE):
        numbers[place] = len(allowed) if acting[place] else 0
    return numbers


def mix_uniform(probabilities: Any, epsilon: float, share: Any) -> Any:
    """Return (1 - ε) p + ε share, for one probability or for arrays. share: 1/K for uniform exploration.

    The result is at most 1 despite rounding. `native/core/acting.cpp` has the same for one row.
    """
    return np.minimum((1 - epsilon) * probabilities + epsilon * share, 1.0)


def sample_rows(probabilities: Floats, uniforms: Floats) -> tuple[Ints, Floats]:
    """Apply `draw` to a matrix [n, K]."""
    return _core.draw(
        np.ascontiguousarray(probabilities).reshape(-1), offsets_of_equal_contexts(*probabilities.shape), uniforms
    )


def sharpened_before_sampling(probabilities: Floats, sharpness: float) -> Floats:
    """Return π^s, normalised: the policy with s times the scores of π. [n, K]"""
    with np.errstate(divide="ignore"):  # log 0 = -∞: the action is never taken
        return np.exp(log_softmax(sharpness * np.log(probabilities)))


def log_softmax(scores: Floats, offsets: Ints | None = None) -> Floats:
    """Return log probabilities in double precision: of each row [n, K], or of each set of flat scores [total]."""
    values = scores.astype(np.float64)
    if offsets is None:
        values -= values.max(axis=1, keepdims=True)
        return np.asarray(values - np.log(np.exp(values).sum(axis=1, keepdims=True)))
    sizes, starts = np.diff(offsets), offsets[:-1]
    values -= np.repeat(np.maximum.reduceat(values, starts), sizes)
    return np.asarray(values - np.repeat(np.log(np.add.reduceat(np.exp(values), starts)), sizes))


def pull_to_scores(log_pi: Floats, cotangent: Floats, offsets: Ints | None = None) -> Floats:
    """Apply the pullback of `log_softmax`: log π = scores - log Σ exp scores, so c becomes c - π Σ_a c_a."""
    if offsets is None:
        return np.asarray(cotangent - np.exp(log_pi) * cotangent.sum(axis=1, keepdims=True))
    totals = np.repeat(np.add.reduceat(cotangent, offsets[:-1]), np.diff(offsets))
    return np.asarray(cotangent - np.exp(log_pi) * totals)
