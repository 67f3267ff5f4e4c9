"""Several members on one log: each is weighed by how well it did on rows before it learned from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from o2pl.interactions import Interactions
from o2pl.learners.decider import Decider
from o2pl.learners.member import STRETCH, MemberState
from o2pl.objectives.outcome import Outcome, log_likelihoods
from o2pl.objectives.weights import clipped_sums, policy_weights
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
        total += log_likelihoods(foretold(members, decider, some), -some.losses).sum(axis=1)
    return total


def foretold(members: Sequence[MemberState], decider: Decider, rows: Interactions) -> Floats:
    """The log-odds of the rewards of these rows, as each member saw them. [M, n]"""
    offsets: Any = rows.contexts.offsets if isinstance(rows.contexts, ActionSets) else None
    scores, out = decider.scores(rows.contexts), np.empty((len(members), len(rows)))
    for k, member in enumerate(members):
        own = scores[k] if offsets is not None else scores[k].reshape(len(rows), -1)
        assert isinstance(member.objective, Outcome)
        out[k] = member.objective.foretold(own, rows.actions, offsets, float(member.params[-1]))
    return out


def shares(gains: Floats, rate: float) -> Floats:
    """Exponential weights, in [0, 1], summing to 1."""
    if len(gains) == 1:
        return _ALONE
    powers = np.exp(rate * (gains - gains.max()))
    return np.asarray(powers / powers.sum())
