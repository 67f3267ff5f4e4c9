"""Several members on one log: each is weighed by how well it did on rows before it learned from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from o2pl.interactions import Interactions
from o2pl.learners.decider import Decider
from o2pl.learners.member import STRETCH, MemberState
from o2pl.objectives.outcome import foretold_sums, played_log_odds
from o2pl.objectives.weights import clipped_sums, policy_weights
from o2pl.policies.sampling import equal_sets
from o2pl.protocols import Floats
from o2pl.rows import ActionSets

_ALONE = np.ones(1)


def progressive_gains(likelihoods: Floats, rows: Interactions, alpha: float, baseline: float) -> Floats:
    """Σ (min(w, α) - 1)(b - y) of each member; likelihoods: π_c(a_s|x_s), [M, n]"""
    residuals = rows.losses - baseline
    return np.array([-clipped_sums(policy_weights(own, rows.propensities), residuals, alpha)[0] for own in likelihoods])


def progressive_evidence(members: Sequence[MemberState], decider: Decider, rows: Interactions) -> Floats:
    """Σ log-likelihood of the rewards of these rows, of each member as it stood. [M]"""
    total = np.zeros(len(members))
    for start in range(0, len(rows), STRETCH):
        some = rows[start : start + STRETCH]
        total += evidence(foretold(members, decider, some), -some.losses)
    return total


def foretold(members: Sequence[MemberState], decider: Decider, rows: Interactions) -> Floats:
    """The log-odds of the rewards of these rows, as each member saw them. [M, n]"""
    scores, out = decider.scores(rows.contexts), np.empty((len(members), len(rows)))
    sets = isinstance(rows.contexts, ActionSets)
    offsets = rows.contexts.offsets if sets else equal_sets(len(rows), scores.shape[1] // max(len(rows), 1))
    competing = np.array([member.objective.competing for member in members])
    tau = np.array([member.params[-1] for member in members])
    played_log_odds(scores, offsets, rows.actions, competing, tau, out)
    return out


def evidence(z: Floats, rewards: Floats) -> Floats:
    """Σ log-likelihood of rewards, given the log-odds that members foretold. z [M, n]"""
    sums = np.empty((6, len(z)))
    foretold_sums(z, rewards, np.zeros(len(z)), np.ones(len(z)), sums)
    return np.asarray(sums[0])


def shares(gains: Floats, rate: float) -> Floats:
    """Exponential weights, in [0, 1], summing to 1."""
    if len(gains) == 1:
        return _ALONE
    powers = np.exp(rate * (gains - gains.max()))
    return np.asarray(powers / powers.sum())
