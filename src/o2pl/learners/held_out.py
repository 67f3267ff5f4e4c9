"""Gains over the incumbent on held-out rows, and what they say of a policy: see `incumbent`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from o2pl.interactions import Interactions
from o2pl.objectives.weights import clip_weights, policy_weights
from o2pl.protocols import Floats, Ints
from o2pl.rows import ActionSets

Probabilities = Callable[[Any], Floats]  # contexts -> [n, K]; flat for action sets
Learn = Callable[[Ints], Sequence[Probabilities]]
Kept = Callable[[str, Callable[[], Floats]], Floats]  # returns the cached result of a name, or computes it


def computed(name: str, compute: Callable[[], Floats]) -> Floats:
    """Compute without a cache."""
    return compute()


def random_loss(losses: Floats, propensities: Floats) -> float:
    """Return the mean loss of an action drawn at random: Σ y/q / Σ 1/q (SNIPS)."""
    return float(np.average(losses, weights=1 / propensities))


def gains(likelihoods: Floats, rows: Interactions, alpha: float, baseline: float) -> Floats:
    """Return (min(w, α) - 1)(b - y) of each row, with losses y. Its mean is the policy's gain over the logging policy.

    The clipped part of a weight is counted at b. [n]
    """
    weights = policy_weights(likelihoods, rows.propensities)
    return np.asarray((clip_weights(weights, alpha) - 1) * (baseline - rows.losses))


def held_out_gains(
    learn: Learn, rows: Interactions, folds: int, alpha: float, seed: Any = None, kept: Kept = computed
) -> Floats:
    """Return the gain of each candidate in each row, learned without the row's fold. [candidates, n]

    `learn(places)` learns from those rows and returns the candidates as functions of contexts. `kept`: cache of earlier
    results.
    """
    n, losses = len(rows), rows.losses
    fold = np.random.default_rng(seed).permutation(n) % folds
    parts = []
    for left_out in range(folds):
        own, rest = np.flatnonzero(fold == left_out), np.flatnonzero(fold != left_out)
        test, baseline = rows[own], random_loss(losses[rest], rows.propensities[rest])

        def found(rest: Ints = rest, test: Interactions = test, baseline: float = baseline) -> Floats:
            played = [_of_actions(policy(test.contexts), test) for policy in learn(rest)]
            return np.stack([gains(each, test, alpha, baseline) for each in played])

        parts.append((own, kept(f"fold{left_out}", found)))
    held = np.empty((len(parts[0][1]), n))
    for own, values in parts:
        held[:, own] = values
    return held


def _of_actions(probabilities: Floats, rows: Interactions) -> Floats:
    """Return the probabilities of the played actions, [n]."""
    if isinstance(rows.contexts, ActionSets):
        return np.asarray(probabilities[rows.contexts.offsets[:-1] + rows.actions])
    return np.asarray(probabilities[np.arange(len(rows)), rows.actions])


def lower_bound(values: Floats, confidence: float) -> float:
    """Return a lower confidence bound of the mean, by the normal approximation: mean - z √(Var / n)."""
    deviation = float(values.std(ddof=1)) / math.sqrt(len(values))
    return float(values.mean()) - NormalDist().inv_cdf(confidence) * deviation


class Verdict(NamedTuple):
    """The evidence in the log about a policy. Gains are over the incumbent."""

    deploy: bool  # is the lower bound above 0?
    gain: float  # estimated on held-out rows
    lower: float  # lower bound, jointly valid for all candidates
    penalty: float  # λ of the policy, or another measure of its pessimism


def verdicts(held: Floats, pessimism: Sequence[float], confidence: float, scale: float = 1.0) -> tuple[Verdict, ...]:
    """Return the candidates' verdicts from their gains [candidates, n], in fractions of a reward range `scale`.

    The lower bounds hold jointly with this confidence (Bonferroni).
    """
    each = 1 - (1 - confidence) / len(held)
    found = []
    for level, values in zip(pessimism, held, strict=True):
        lower = lower_bound(values, each)
        found.append(Verdict(lower > 0, scale * float(values.mean()), scale * lower, float(level)))
    return tuple(found)
