"""Values over many actions from their features: OBP's numbers, exact values, and features that cannot be used."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.adapters.inside import run_inside

from o2pl import Interactions, InvalidInput, evaluate_many_actions

K, GROUPS = 300, 6


def world(n: int, seed: int) -> tuple[Interactions, Any, Any, Any, float]:
    """Rewards depend on x and the action's group alone. Returns log, features, logger, policy and its value."""
    g, fixed = np.random.default_rng(seed), np.random.default_rng(0)
    groups = fixed.integers(GROUPS, size=K)
    effect = fixed.normal(size=(3, GROUPS))
    x = g.normal(size=(n, 3))
    means = 1 / (1 + np.exp(-x @ effect))[:, groups]
    q = np.exp(0.3 * fixed.normal(size=K))
    q = np.tile(q / q.sum(), (n, 1))
    pi = np.exp(6 * means + 1.5 * fixed.normal(size=K))
    pi /= pi.sum(axis=1, keepdims=True)
    actions = (q.cumsum(axis=1) < g.random(n)[:, None]).sum(axis=1).clip(max=K - 1)
    at = np.arange(n), actions
    rewards = (g.random(n) < means[at]) * 1.0
    return (
        Interactions(x, actions, rewards, q[at], (0, 1), K),
        groups[:, None],
        q,
        pi,
        float((pi * means).sum(1).mean()),
    )


@pytest.mark.peers
def test_on_obps_world_of_2000_actions() -> None:
    """MIPS is OBP's to 1e-9. OffCEM's squared error is below it and below a tenth of IPS's; intervals cover."""
    said = run_inside(
        "obp",
        """
        import importlib, json
        import numpy as np
        from benchmarks.peer_loops import _obp
        from o2pl import Interactions, evaluate_many_actions
        dataset = _obp("dataset")
        _obp("ope")
        theirs = importlib.import_module("obp.ope.estimators_embed").MarginalizedInverseProbabilityWeighting
        n, k = 1500, 2000
        world = dataset.SyntheticBanditDatasetWithActionEmbeds(
            n_actions=k, dim_context=5, n_cat_dim=3, n_cat_per_dim=10, reward_type="binary", beta=-1.0,
            reward_function=dataset.logistic_reward_function, random_state=1,
        )
        rows = []
        for _ in range(6):
            given = world.obtain_batch_bandit_feedback(n)
            best = given["expected_reward"].argmax(axis=1)
            pi = 0.95 * (np.arange(k) == best[:, None]) + 0.05 / k
            value = theirs(n_actions=k).estimate_policy_value(
                reward=given["reward"], action=given["action"], action_embed=given["action_embed"],
                pi_b=given["pi_b"], action_dist=pi[:, :, None], context=given["context"], p_e_a=given["p_e_a"],
                position=np.zeros(n, int),
            )
            log = Interactions(given["context"], given["action"], given["reward"], given["pscore"], (0, 1), k)
            found = evaluate_many_actions(
                log, pi, given["p_e_a"], logger=given["pi_b"][:, :, 0], shown=given["action_embed"]
            )
            ips, mips, offcem = found.estimates
            truth = (pi * given["expected_reward"]).sum(axis=1).mean()
            rows.append([truth, value, ips.value, mips.value, offcem.value, offcem.low, offcem.high])
        print(json.dumps(np.array(rows).tolist()))
        """,
    )
    truth, theirs, ips, mips, offcem, low, high = np.array(json.loads(said.splitlines()[-1])).T
    np.testing.assert_allclose(mips, theirs, rtol=1e-9, atol=1e-9)
    error = {name: ((one - truth) ** 2).mean() for name, one in (("ips", ips), ("mips", mips), ("offcem", offcem))}
    assert error["offcem"] < 0.1 * error["ips"]
    assert error["offcem"] <= error["mips"]
    assert ((low <= truth) & (truth <= high)).sum() >= 4  # of 6 at level .05: fewer with probability 2e-3


def test_features_that_carry_the_rewards_make_it_unbiased() -> None:
    """40 logs: mean within 4 standard errors, intervals of OffCEM miss at most 7 times (probability 3e-3)."""
    missed, values = 0, []
    for seed in range(40):
        log, features, q, pi, truth = world(500, seed)
        found = evaluate_many_actions(log, pi, features, logger=q)
        values.append([one.value - truth for one in found.estimates])
        missed += not found.interval[0] <= truth <= found.interval[1]
    errors = np.array(values)
    assert missed <= 7
    assert (np.abs(errors.mean(axis=0)) < 4 * errors.std(axis=0) / np.sqrt(40)).all()
    spread = errors.std(axis=0)
    assert spread[2] < spread[1] < 0.5 * spread[0]


def test_the_difference_is_judged() -> None:
    log, features, q, pi, truth = world(2000, 1)
    found = evaluate_many_actions(log, pi, features, logger=q, baseline="logged")
    assert found.judgement is not None
    assert found.difference is not None
    assert found.judgement.verdict == "better"
    assert found.verdict.endswith("if rewards depend on actions only through their features")
    assert found.difference.low < truth - log.rewards.mean() < found.difference.high
    assert found.effective["features"] > 2 * found.effective["actions"]
    even = evaluate_many_actions(log, pi, features, logger=q, baseline="uniform")
    assert even.difference is not None
    assert even.difference.value == pytest.approx(found.difference.value, abs=0.1)
    assert "offcem" in str(even)
    assert "worth" in evaluate_many_actions(log, "uniform", features, logger=q).verdict
    alone = evaluate_many_actions(log, pi, features, logger=q)
    assert alone.value == found.value
    own = evaluate_many_actions(log, q, features, logger=q, baseline="uniform")
    assert own.judgement is not None
    assert own.judgement.verdict == "no difference shown"


def test_words_and_probabilities_of_categories() -> None:
    log, features, q, pi, _ = world(400, 2)
    words = np.array(["a", "b", "c", "d", "e", "f"])[features]
    same = evaluate_many_actions(log, pi, words, logger=q)
    numbers = evaluate_many_actions(log, pi, features, logger=q)
    assert same.value == pytest.approx(numbers.value)
    shares = np.zeros((K, GROUPS, 1))
    shares[np.arange(K), features[:, 0], 0] = 1.0
    drawn = evaluate_many_actions(log, pi, shares, logger=q, shown=features[log.actions])
    assert drawn.value == pytest.approx(numbers.value)


def test_what_is_missing_is_named() -> None:
    log, features, q, pi, _ = world(100, 3)

    def refused(said: str, table: Any = features, **changes: Any) -> None:
        with pytest.raises(InvalidInput, match=said):
            evaluate_many_actions(log, pi, table, **({"logger": q} | changes))

    refused(r"features: found 299 rows, expected one for each of 300 actions: action 299 has none", features[:-1])
    refused(r"features: found shape \(300,\)", features[:, 0])
    gap = features.astype(float)
    gap[7] = np.nan
    refused("features, action 7, column 0: found nan", gap)
    words = np.array([["a", "x"]] * K, object)
    words[3, 1] = None
    refused("features, action 3, column 1: found None, expected a category", words)
    shares = np.full((K, 2, 1), 0.5)
    refused(r"shown: found shape \(\), expected \(100, 1\)", shares)
    refused(
        "shown, row 3, column 0: found 2, expected 0 to 1", shares, shown=np.where(np.arange(100) == 3, 2, 0)[:, None]
    )
    shares[5] = 0.9
    drawn = np.zeros((100, 1), int)
    refused(r"features, action 5, column 0: found probabilities that sum to 1\.8", shares, shown=drawn)
    refused("logger, row 0: found 0.00333333, expected the logged propensity", logger="uniform")
    refused("logger: found probabilities of the logged actions only", logger=log.propensities)
    refused("shown: found categories of rows with fixed features", shown=np.zeros((100, 1), int))
    with pytest.raises(InvalidInput, match="policy: found probabilities of the logged actions only"):
        evaluate_many_actions(log, np.full(100, 0.5), features, logger=q)
