"""`evaluate` on logs whose answer is known, on every kind of action, and on logs that cannot answer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.evaluation.cases import LOGGER, MEANS, POLICY, dropped_log, log_of, policy

import o2pl
from o2pl import ActionSets, InvalidInput
from o2pl.data.interactions import Interactions
from o2pl.evaluation.estimators import EstimatorInput, estimate
from o2pl.evaluation.evaluate import Evaluation, evaluate
from o2pl.evaluation.evaluated_logs import as_evaluated_log
from o2pl.evaluation.reward_models import fit_rewards
from o2pl.evaluation.values import columns_for_values
from o2pl.learners.targets import as_target
from o2pl.objectives import Phi
from o2pl.theory.inequality import refutes


def found(name: str, result: Evaluation) -> Any:
    return next(one for one in result.estimates if one.name == name)


# -- right answers


def test_estimates_and_difference_hold_the_truth() -> None:
    result = evaluate(log_of(), policy, baseline="logged")
    truth, logged = POLICY @ MEANS, LOGGER @ MEANS
    for name in ("ips", "snips", "dr", "sndr", "switch-dr", "dr-shrinkage", "clipped"):
        one = found(name, result)
        assert one.low < truth < one.high, name
    assert result.headline == "dr"
    assert result.baseline is not None
    assert result.difference is not None
    assert result.baseline.low < logged < result.baseline.high
    assert result.difference.low < truth - logged < result.difference.high
    assert result.warnings == ()
    assert result.safe_to_deploy()
    assert result.verdict == "policy is better than logged, with 95% confidence"
    assert not evaluate(log_of(), "uniform", baseline=policy).safe_to_deploy()


def test_the_paired_difference_is_narrower_than_two_intervals() -> None:
    result = evaluate(log_of(), policy, baseline=lambda x: 0.9 * policy(x) + 0.1 / 3)
    assert result.difference is not None
    own = result.interval[1] - result.interval[0]
    assert result.difference.high - result.difference.low < 0.3 * own


def test_a_policy_against_itself_differs_by_nothing() -> None:
    result = evaluate(log_of(), policy, baseline=policy)
    assert result.difference is not None
    assert (result.difference.value, result.difference.low, result.difference.high) == (0, 0, 0)
    assert not result.safe_to_deploy()
    assert result.safe_to_deploy(tolerance=0.01)


def test_any_time_intervals_hold_the_truth_and_run() -> None:
    truth = POLICY @ MEANS
    for baseline, other in (("logged", LOGGER @ MEANS), ("uniform", MEANS.mean())):
        result = evaluate(log_of(), policy, baseline=baseline, at_any_time=True)
        assert result.headline == "any-time"
        assert result.interval[0] < truth < result.interval[1]
        assert result.difference is not None
        assert result.baseline is not None
        assert result.baseline.low < other < result.baseline.high
        assert 0 < result.difference.low < truth - other < result.difference.high
        assert result.difference_sequence is not None
        assert len(result.difference_sequence.lower) == 2000
        fixed = evaluate(log_of(), policy, baseline=baseline).difference
        assert fixed is not None
        assert result.difference.high - result.difference.low > fixed.high - fixed.low


def test_many_loggers_in_one_log() -> None:
    """Half of the rows from a logger that hardly plays what the policy likes: the mixture's weights are smaller."""
    g = np.random.default_rng(0)
    second = np.array([0.9, 0.08, 0.02])
    who = g.integers(2, size=4000)
    both = np.stack([LOGGER, second])
    actions = np.array([g.choice(3, p=both[j]) for j in who])
    rewards = (g.random(4000) < MEANS[actions]) * 1.0
    columns = {"loggers": np.array(["a", "b"])[who], "by_logger": both[:, actions].T}
    log = Interactions(g.normal(size=(4000, 1)), actions, rewards, both[who, actions], reward_range=(0, 1), **columns)
    result = evaluate(log, policy)
    balanced, ips = found("balanced", result), found("ips", result)
    assert balanced.low < POLICY @ MEANS < balanced.high
    assert balanced.high - balanced.low < 0.7 * (ips.high - ips.low)
    assert log.logger_names == ("a", "b")
    with pytest.raises(InvalidInput, match=r"by_logger, row 0: found .* expected its propensity"):
        Interactions(
            g.normal(size=(4000, 1)),
            actions,
            rewards,
            both[who, actions],
            loggers=who,
            by_logger=both[:, actions].T[:, ::-1],
        )


def test_learners_real_actions_and_action_sets() -> None:
    g = np.random.default_rng(0)
    contexts = g.normal(size=(600, 2))
    actions = g.normal(size=600)
    density = np.exp(-(actions**2) / 2) / math.sqrt(2 * math.pi)
    rewards = np.exp(-((actions - 0.5) ** 2))
    half = slice(0, 300)
    gaussian = o2pl.GaussianO2PL(random_state=0).fit(contexts[half], actions[half], rewards[half], density[half])
    rest = Interactions(contexts[300:], actions[300:], rewards[300:], density[300:], reward_range=(0, 1))
    result = evaluate(rest, gaussian, baseline="logged")
    assert {"dr", "dm", "pessimistic"} <= {one.name for one in result.estimates}
    assert result.difference is not None
    assert result.difference.low > 0

    sizes = g.integers(2, 5, 600)
    sets = [g.normal(size=(k, 2)) for k in sizes]
    chosen = g.integers(sizes)
    paid = np.array([float(one[a, 0] > 0) for one, a in zip(sets, chosen, strict=True)])
    ranker = o2pl.O2PL(policy="actionwise", random_state=0).fit(sets[:300], chosen[:300], paid[:300], 1 / sizes[:300])
    rest = Interactions(ActionSets.of(sets[300:]), chosen[300:], paid[300:], 1 / sizes[300:], reward_range=(0, 1))
    result = evaluate(rest, ranker, baseline="uniform")
    assert result.value > 0.8
    assert result.safe_to_deploy()


def test_a_learners_own_log_is_evaluated_and_doubted() -> None:
    log = log_of(500)
    learner = o2pl.O2PL(3, random_state=0, reward_range=(0, 1)).fit(
        log.contexts, log.actions, log.rewards, log.propensities
    )
    result = evaluate(learner, learner, baseline="logged")
    assert "has learned from 100.0% of this log" in result.warnings[0]
    assert not result.safe_to_deploy()
    assert "no conclusion" in result.verdict
    assert evaluate(learner.log_, learner).doubt
    assert not evaluate(log_of(500, seed=9), learner).doubt
    early = o2pl.O2PL(3).fit(log.contexts[:20], log.actions[:20], log.rewards[:20], log.propensities[:20])
    assert "has learned from 4.0% of this log" in evaluate(log, early).warnings[0]
    assert not evaluate(log, early).doubt
    np.testing.assert_allclose(as_evaluated_log(learner).rewards, log.rewards)
    wide = o2pl.O2PL(3, random_state=0, reward_range=(-10, 10)).fit(
        log.contexts, log.actions, log.rewards, log.propensities
    )
    np.testing.assert_allclose(as_evaluated_log(wide).rewards, log.rewards, atol=1e-12)
    assert as_evaluated_log(wide).reward_range == (-10, 10)


# -- logs that cannot answer


def test_mass_where_the_log_has_none_widens_the_interval() -> None:
    keep = log_of().actions < 2
    full = log_of()
    columns = [column[keep] for column in (full.contexts, full.actions, full.rewards)]
    propensities = LOGGER[columns[1]] / LOGGER[:2].sum()
    log = Interactions(*columns, propensities, reward_range=(0, 1), n_actions=3)
    result = evaluate(log, policy)
    assert result.diagnostics.missing == pytest.approx(0.7)
    assert result.interval[0] < POLICY @ MEANS < result.interval[1]
    assert result.interval[1] - result.interval[0] > 0.7  # 0.7 of the policy could bring anything
    assert found("ips", result).low == 0
    assert any("Played by the policy but never logged: 2 (70.0% of the policy)" in one for one in result.warnings)
    unknown = evaluate(Interactions(*columns, propensities, n_actions=3), policy)
    assert unknown.interval == (-math.inf, math.inf)
    assert any("infinite: the reward range is unknown" in one for one in unknown.warnings)
    low, high = evaluate(log, policy, at_any_time=True).interval
    assert low < POLICY @ MEANS < high
    also = evaluate(log, np.pad(policy(log.contexts), ((0, 0), (0, 1))))  # a policy with an action more than the log
    assert also.value == pytest.approx(result.value)


def test_mass_missing_in_some_contexts_shows_in_the_mean_weight() -> None:
    g = np.random.default_rng(0)
    contexts = g.normal(size=(3000, 1))
    actions = np.where(contexts[:, 0] > 0, g.integers(2, size=3000), 0)
    q = np.where(contexts[:, 0] > 0, 0.5, 1.0)
    log = Interactions(contexts, actions, actions * 1.0, q, reward_range=(0, 1))
    result = evaluate(log, lambda x: np.tile([0.0, 1.0], (len(x), 1)))
    assert result.interval[0] <= 1.0 <= result.interval[1]
    assert any("of what the policy does is not in" in one for one in result.warnings)


def test_one_row_one_action_and_no_weight() -> None:
    one = evaluate(log_of(1), policy, baseline="logged")
    assert one.interval == (0, 1)
    assert any(warning.startswith("With a single row") for warning in one.warnings)
    assert not one.safe_to_deploy()
    assert evaluate(log_of(1), policy, at_any_time=True).interval == (0, 1)
    single = log_of(actions=np.zeros(2000, int), propensities=np.ones(2000))
    result = evaluate(single, policy)
    assert any("only one action (0)" in warning for warning in result.warnings)
    assert result.interval[0] < POLICY @ MEANS < result.interval[1]
    never = evaluate(single, lambda x: np.tile([0.0, 0.0, 1.0], (len(x), 1)), baseline="logged")
    assert never.interval[0] <= 0
    assert never.interval[1] >= 1
    assert any(warning.startswith("snips could not be computed") for warning in never.warnings)
    assert all(math.isfinite(value.value) for value in never.estimates)


def test_weights_too_large_for_a_number() -> None:
    q = log_of().propensities.copy()
    q[5] = 1e-320
    result = evaluate(log_of(propensities=q), policy, baseline="logged")
    assert result.headline == "clipped"
    assert result.interval == (0, 1)
    assert any("importance weights overflowed" in warning for warning in result.warnings)
    assert result.difference is not None
    assert (result.difference.low, result.difference.high) == (-1, 1)
    assert result.judgement.verdict == "cannot be judged"
    assert all(not math.isnan(value) for one in result.estimates for value in (one.value, one.low, one.high))
    low, high = evaluate(log_of(propensities=q), policy, at_any_time=True).interval
    assert (low, high) == (0, 1)


def test_rewards_that_never_change_still_have_an_interval() -> None:
    result = evaluate(log_of(rewards=np.ones(2000)), "logged")
    assert result.value == 1
    assert 0.99 < result.interval[0] < result.interval[1] == 1
    assert evaluate(log_of(rewards=np.ones(2000)), policy, baseline="logged").judgement.verdict == "no difference shown"
    assert any("no variance" in warning for warning in result.warnings)


def test_estimates_outside_the_reward_range_are_flagged_and_intervals_cut() -> None:
    """One row of huge weight: DR is far below 0 there, and IPS, which is narrower, is quoted."""
    log = log_of(rewards=(np.arange(2000) % 100 == 1) * 1.0, propensities=np.r_[1e-5, log_of().propensities[1:]])
    result = evaluate(log, policy, baseline="logged")
    assert found("dr", result).value < 0
    assert any(
        warning.startswith("dr") and "outside the reward range, 0 to 1" in warning for warning in result.warnings
    )
    assert result.headline == "ips"
    assert all(0 <= one.low <= one.high <= 1 for one in result.estimates)
    assert any("of the total weight" in warning for warning in result.warnings)


BAD = {
    "propensity 0": ({"propensities": np.r_[0.5, 0.0]}, "propensity, row 1: found 0.0"),
    "propensity missing": ({"propensities": np.r_[np.nan, 0.5]}, "propensity, row 0: found nan"),
    "propensity above 1": ({"propensities": np.r_[0.5, 1.5]}, "propensity, row 1: found 1.5"),
    "reward outside": ({"rewards": np.r_[0.5, 1.5]}, "reward, row 1: found 1.5"),
    "reward missing": ({"rewards": np.r_[0.5, np.nan]}, "reward, row 1: found nan"),
    "action too large": ({"actions": np.r_[0, 3]}, "action, row 1: found 3"),
    "lengths": ({"rewards": np.ones(3)}, "columns differ in length"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_columns(name: str) -> None:
    changes, message = BAD[name]
    with pytest.raises(InvalidInput, match=message):
        log_of(2, **changes)


def test_bad_settings() -> None:
    log = log_of(20)
    with pytest.raises(InvalidInput, match="reward_range: found None"):
        evaluate(log_of(20, reward_range=None), policy, at_any_time=True)
    with pytest.raises(InvalidInput, match="delta"):
        evaluate(log, policy, delta=0.0)
    with pytest.raises(InvalidInput, match="dr: found no played"):
        evaluate(log, "logged", estimators=["dr"])
    with pytest.raises(InvalidInput, match="baseline: found None"):
        evaluate(log, policy).safe_to_deploy()


def test_the_pessimistic_value_uses_the_learners_settings() -> None:
    """The clipped DR value less span · λ Φ(σ̂²), at the learner's clip, penalty and confidence."""
    log = log_of(400)
    other = log_of(300, seed=5)
    learner = o2pl.O2PL(3, clip=1.5, penalty=2.0, delta=0.2, reward_range=(0, 1), random_state=0)
    learner.fit(other.contexts, other.actions, other.rewards, other.propensities)
    result = evaluate(log, learner)
    assert result.diagnostics.clip == 1.5
    target = as_target(learner, log)
    modelled = columns_for_values(log, [target], fit_rewards(log))[0].inputs
    assert modelled.expected is not None
    assert modelled.played is not None
    cut = np.minimum(target.on(slice(0, 400)).played / log.propensities, 1.5)
    penalty, _ = Phi(1.5, 400.0, math.log(400 * 401 / 0.2), 0.0, 2.0)(float(np.mean((cut - 1) ** 2)))
    clipped = np.mean(modelled.expected + cut * (log.rewards - modelled.played))
    assert found("pessimistic", result).value == pytest.approx(clipped - penalty)


THIRD = np.array([0.0, 0.0, 1.0])


@pytest.mark.parametrize("at_any_time", [False, True])
def test_rows_that_the_logger_dropped_are_weighted(at_any_time: bool) -> None:
    """Rates of 0.8 and 0.1: weighted, the value is that of the whole log; counted once each, it is far from it."""
    weighted, once, truth = dropped_log(24_000)

    def judged(log: Any) -> Any:
        return evaluate(log, np.tile(THIRD, (len(log), 1)), baseline="logged", at_any_time=at_any_time)

    right, wrong = judged(weighted), judged(once)
    for name in ("ips", "snips", "dr", "sndr"):
        good, bad = (next(one for one in found.estimates if one.name == name) for found in (right, wrong))
        assert good.low < truth < good.high
        assert bad.high < truth - 0.1
    assert right.best.low < truth < right.best.high
    assert right.verdict.startswith("policy is better than logged")
    assert wrong.verdict.startswith("policy is worse than logged")
    assert right.diagnostics.mean_weight == pytest.approx(1, abs=0.05)
    assert right.diagnostics.effective < 0.7 * wrong.diagnostics.effective
    said = " ".join(right.warnings)
    assert "weight them by 1/(1 - pdrop)" in said
    assert ("Anytime-valid intervals, drift" in said) == at_any_time
    assert not any("pdrop" in one for one in wrong.warnings)


def test_weights_that_are_all_alike_change_nothing() -> None:
    weighted, once, _ = dropped_log(2000, constant=True)
    table = np.tile(THIRD, (len(once), 1))
    found, expected = (evaluate(log, table, baseline="logged") for log in (weighted, once))
    for mine, theirs in zip(found.estimates, expected.estimates, strict=True):
        assert (mine.value, mine.low, mine.high) == pytest.approx((theirs.value, theirs.low, theirs.high), rel=1e-9)
    assert found.difference is not None
    assert expected.difference is not None
    assert found.difference.low == pytest.approx(expected.difference.low, rel=1e-9)


def test_a_sensitivity_analysis_weights_the_rows() -> None:
    weighted, once, truth = dropped_log()
    for log, near in ((weighted, True), (once, False)):
        found = evaluate(log, np.tile(THIRD, (len(log), 1)), propensities="estimated").sensitivity
        assert found is not None
        assert (found.at(1.1).low < truth < found.at(1.1).high) == near


def test_intervals_of_weighted_rows_hold_at_their_rate() -> None:
    missed, z = 0, 1.2815515655446004  # of 80 %
    for seed in range(400):
        log, _, truth = dropped_log(800, seed)
        weights = 3.0 * (log.actions == 2)
        found = estimate("snips", EstimatorInput(log.rewards, weights, row_weights=log.row_weights))
        missed += abs(found.value - truth) > z * found.error
    assert not refutes(missed, 400, 0.22, 1e-3)  # by a normal approximation
    assert not refutes(400 - missed, 400, 1 - 0.16, 1e-3)  # not wider than it need be


def test_intervals_hold_where_rewards_are_rare() -> None:
    """A policy of 40 actions meets one click or none: the few rows that it chooses have hardly any variance."""
    held, decided = {"ips": 0, "dr": 0, "sndr": 0}, 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        contexts, directions = rng.normal(size=(2000, 3)), rng.normal(size=(3, 40))
        clicks = (rng.random(2000) < 0.005).astype(float)
        log = Interactions(contexts, rng.integers(40, size=2000), clicks, np.full(2000, 1 / 40), (0, 1))
        result = evaluate(log, lambda x, by=directions: np.argmax(np.asarray(x) @ by, axis=1), baseline="logged")
        for name in held:
            held[name] += found(name, result).low <= 0.005 <= found(name, result).high
        assert result.difference is not None
        decided += not result.difference.low <= 0 <= result.difference.high
        assert found("dr", result).high - found("dr", result).low < 0.2  # and they are not empty words
    assert held == {"ips": 8, "dr": 8, "sndr": 8}
    assert decided == 0
