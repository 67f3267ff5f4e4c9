"""Rewards beyond the ends count as the ends, and what that costs is said."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.evaluation.cases import LOGGER, POLICY, policy

from o2pl import Bandit, Interactions, InvalidInput, evaluate


def revenue(n: int, seed: int = 0, **changes: object) -> Interactions:
    """Pareto rewards, whose variance is infinite, of a scale that the action sets."""
    g = np.random.default_rng(seed)
    actions = g.choice(3, n, p=LOGGER)
    rewards = (1 + actions) * g.pareto(1.8, n)
    return Interactions(g.normal(size=(n, 2)), actions, rewards, LOGGER[actions], n_actions=3, **changes)


def mean_below(high: float) -> float:
    """E min(r, high) under the policy: ∫_0^high P(r > t) dt with P(r > t) = (1 + t/s)^-1.8."""
    return float(sum(p * s * (1 - (1 + high / s) ** -0.8) / 0.8 for p, s in zip(POLICY, (1, 2, 3), strict=True)))


def test_intervals_are_of_the_truncated_reward() -> None:
    """At level .05 about 3 of 60 logs miss; 10 or more with probability 1e-3. For any time too."""
    missed = [0, 0]
    for seed in range(60):
        for k, any_time in enumerate((False, True)):
            found = evaluate(revenue(500, seed), policy, truncate=(0, 20), at_any_time=any_time)
            low, high = found.interval
            missed[k] += not low <= mean_below(20) <= high
    assert missed[0] < 10
    assert missed[1] < 10


def test_what_is_cut_is_counted_and_estimated() -> None:
    log = revenue(20_000, 1)
    found = evaluate(log, policy, baseline="logged", truncate=(0, 20))
    said = found.warnings[0]
    assert f"{int((log.rewards > 20).sum()):,} of 20,000 rows" in said
    numbers = re.search(r"about ([+-][\d.e-]+) ± ([\d.e-]+)", said)
    assert numbers is not None
    weights = POLICY[log.actions] / log.propensities
    assert float(numbers[1]) == pytest.approx(float((weights * np.maximum(log.rewards - 20, 0)).mean()), rel=1e-3)
    assert found.judgement.verdict == "better"


def test_ends_that_cannot_be_used() -> None:
    log = revenue(100)
    within = log.changed(rewards=log.rewards > 1, reward_range=(0, 1))
    with pytest.raises(InvalidInput, match=r"truncate: found 0 to 2 for rewards that are from 0 to 1 already"):
        evaluate(within, policy, truncate=(0, 2))
    with pytest.raises(InvalidInput, match="truncate: found"):
        evaluate(revenue(100), policy, truncate=(2, 1))
    with pytest.raises(InvalidInput, match="truncate: found several policies, metrics or a reward_range"):
        evaluate(revenue(100), policy, truncate=(0, 20), reward_range=(0, 1e9))
    said = evaluate(revenue(300), policy, truncate=(-1e6, 1e6)).warnings[0]
    assert said == "Rewards beyond -1e+06 to 1e+06 count as these ends: 0 of 300 rows."


# -- learners without a given range


def costs(n: int, seed: int = 0) -> Interactions:
    g = np.random.default_rng(seed)
    x, actions = g.normal(size=(n, 2)), g.choice(3, n, p=LOGGER)
    return Interactions(x, actions, -(1 + actions) * g.pareto(2.5, n), LOGGER[actions], n_actions=3)


def test_what_a_learner_has_clipped_is_said() -> None:
    log = costs(4000)
    learner = Bandit(3, random_state=0).fit(log[:2000])
    low, high = learner.reward_range_
    later = log[2000:]
    beyond = int(((later.rewards < low) | (later.rewards > high)).sum())
    assert 5 < beyond < 60
    found = evaluate(later, learner, baseline="uniform")
    (said,) = [one for one in found.warnings if "clipped" in one]
    assert f"clipped to {low:g} to {high:g}" in said
    assert f"{beyond} of the 2,000 rewards of this log are beyond" in said
    assert found.value < later.rewards.max()
    inside = later[np.flatnonzero((later.rewards >= low) & (later.rewards <= high))]
    for known, rows in ((learner, inside), (learner.snapshot(), later), (Bandit(3).fit(bits := clicks(300)), bits)):
        assert not any("clipped" in one for one in evaluate(rows, known).warnings)


def clicks(n: int) -> Interactions:
    g = np.random.default_rng(0)
    return Interactions(g.normal(size=(n, 2)), g.integers(3, size=n), g.integers(2, size=n) * 1.0, np.full(n, 1 / 3))


def test_a_bound_on_a_policy_needs_a_range() -> None:
    log = costs(600)
    learner = Bandit(3, random_state=0).fit(log[:300])
    for asked in (learner.safe_to_deploy, lambda: learner.safe_to_deploy(fresh=log[300:])):
        with pytest.raises(
            InvalidInput, match=r"reward_range: found None .* Bandit\(reward_range=\(lowest, highest\)\)"
        ):
            asked()
    ranged = log.changed(reward_range=(-1e4, 0.0))
    assert not learner.safe_to_deploy(fresh=ranged[300:])
    assert not Bandit(3, random_state=0).fit(clicks(300)).safe_to_deploy()  # 0 to 1: as known as ever
