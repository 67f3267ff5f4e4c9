"""Safe improvement: its parts against loops and twins, and its refusals at their stated rate."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.base import clone as sklearn_clone
from sklearn.linear_model import LogisticRegression
from tests.evaluation.cases import dropped_log

from o2pl.data.contexts import ActionSets
from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.evaluation.held_out import HeldOut
from o2pl.features import Chain, Intercept
from o2pl.learners import O2PL, load
from o2pl.learners.improvement_candidates import (
    improvement_candidate_columns,
    improvement_candidate_verdicts,
    random_loss_for_improvement_candidates,
)
from o2pl.learners.incumbent import SafeImprovement, clone_of_incumbent, improved_incumbent
from o2pl.learners.targets import as_target
from o2pl.objectives import Pessimistic
from o2pl.policies import Softmax, probabilities

K, D = 3, 4
TRUTH = np.random.default_rng(5).normal(size=(D, K))


def incumbent_log(n: int, seed: int, quality: float = 0.0, signal: float = 0.35, floor: float = 0.1) -> Any:
    """Means .5 + signal · (the best action by a linear rule, or not); the incumbent knows that rule to `quality`."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)).astype(np.float32)
    best = (X @ TRUTH).argmax(axis=1)
    means = np.full((n, K), 0.5 - signal / 2)
    means[np.arange(n), best] = 0.5 + signal / 2
    other = np.random.default_rng(6).normal(size=(D, K))
    logits = 3 * X @ (quality * TRUTH + (1 - quality) * other)
    q = np.exp(logits - logits.max(axis=1, keepdims=True))
    q = (1 - floor) * q / q.sum(axis=1, keepdims=True) + floor / K
    actions = (rng.random((n, 1)) > np.cumsum(q, axis=1)).sum(axis=1)
    rewards = (rng.random(n) < means[np.arange(n), actions]).astype(float)
    return X, actions, rewards, q[np.arange(n), actions], q, means


def test_the_loss_of_a_random_action_is_read_off_the_floor() -> None:
    _, _, rewards, propensities, _, means = incumbent_log(20000, 0, quality=1.0)
    total = weight = 0.0
    for reward, q in zip(rewards, propensities, strict=True):
        total, weight = total + reward / q, weight + 1 / q
    assert random_loss_for_improvement_candidates(-rewards, propensities) == pytest.approx(-total / weight)
    assert -random_loss_for_improvement_candidates(-rewards, propensities) == pytest.approx(means.mean(), abs=0.03)
    assert rewards.mean() > means.mean() + 0.1  # the incumbent is good, and the mean says so


def test_the_clone_is_scikit_learns_logistic_regression() -> None:
    X, actions, *_ = incumbent_log(400, 1)
    params = clone_of_incumbent(Softmax(K), X, actions)
    twin = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-8, max_iter=1000).fit(X, actions)
    assert np.allclose(probabilities(Softmax(K), params, X), twin.predict_proba(X), atol=2e-3)


def test_known_probabilities_make_a_nearer_clone() -> None:
    X, actions, _, _, _, _ = incumbent_log(300, 2)
    logits = X @ np.random.default_rng(3).normal(size=(D, K))
    pi = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    near = probabilities(Softmax(K), clone_of_incumbent(Softmax(K), X, actions, pi), X)
    assert np.abs(near - pi).mean() < 0.02


def test_rows_are_judged_by_policies_that_have_not_learned_from_them() -> None:
    X, actions, rewards, propensities, _, _ = incumbent_log(61, 7)
    rows = Interactions(X, actions, rewards, propensities, (0, 1))
    learned_from = []

    def learn(places: Any) -> Any:
        learned_from.append(set(places.tolist()))
        number = len(learned_from)
        return [
            lambda contexts: np.tile(np.eye(K)[number % K], (len(contexts), 1)),
            lambda x: np.full((len(x), K), 1 / K),
        ]

    held = improvement_candidate_columns(learn, rows, 4, seed=1)
    assert held.shape == (2, 20, 61)
    folds = [set(range(61)) - each for each in learned_from]
    assert sorted(s for fold in folds for s in fold) == list(range(61))  # each row is held out once
    for number, fold in enumerate(folds, 1):
        for s in fold:
            assert held[0, 5, s] == pytest.approx(float(actions[s] == number % K) / propensities[s])  # its weight
            assert held[1, -1, s] == pytest.approx(math.log(1 / K))
    np.testing.assert_allclose(held[1, 18], held[1, 0])  # the same policy, learned without another fold
    part = rows[np.array(sorted(folds[1]))]
    one = as_target(lambda x: np.tile(np.eye(K)[1], (len(x), 1)), part)  # learned without the first fold
    np.testing.assert_allclose(held[0, 18, sorted(folds[1])], HeldOut(part, 1 / 4).estimates(one))


def test_gains_and_verdicts_share_out_the_confidence() -> None:
    X, actions, rewards, propensities, q, means = incumbent_log(1200, 4, floor=0.4)
    rows = Interactions(X, actions, rewards, propensities, (0, 1))
    best = np.eye(K)[means.argmax(axis=1)]

    def learn(places: Any) -> Any:
        return [lambda x: np.eye(K)[(x @ TRUTH).argmax(axis=1)]] * 2

    for incumbent in (None, np.full((1200, K), 1 / K)):
        held = improvement_candidate_columns(learn, rows, 3, seed=0, incumbent=incumbent)
        first, second = improvement_candidate_verdicts(held, (0.3, 3.0), 0.9, rows, incumbent is not None)
        alone, _ = improvement_candidate_verdicts(held, (0.3, 3.0), 0.95, rows, incumbent is not None)
        other = q if incumbent is None else incumbent
        assert first[:3] == second[:3]
        assert first.deploy
        assert alone.lower < first.lower < ((best - other) * means).sum(axis=1).mean()
        assert first.said.startswith("the new policy is better than the incumbent, with 90% confidence")


def test_a_clone_is_used_only_if_it_acts_like_the_incumbent() -> None:
    """The incumbent is right by a rule that no linear policy has (XOR), and nothing is better."""
    g = np.random.default_rng(0)
    X = g.normal(size=(2000, 2)).astype(np.float32)

    def rule(contexts: Any) -> Any:
        right = (np.asarray(contexts)[:, 0] * np.asarray(contexts)[:, 1] > 0) * 1
        return np.where(np.arange(2) == right[:, None], 0.9, 0.1)

    q = rule(X)
    actions = (g.random(2000) > q[:, 0]) * 1
    rewards = (g.random(2000) < np.where(actions == q.argmax(axis=1), 0.7, 0.3)) * 1.0
    columns = (X, actions, rewards, q[np.arange(2000), actions])
    found = SafeImprovement(random_state=0).fit(*columns)
    assert not found.deploy_
    assert found.imitation_.behind > 0.2
    with pytest.raises(InvalidInput, match="a clone of the incumbent does not act like it"):
        found.predict_proba(X)
    for given in (None, q, rule):
        with pytest.raises(InvalidInput, match="Keep the incumbent itself"):
            O2PL.from_incumbent(*columns, incumbent=given, random_state=0)
    kept = SafeImprovement(random_state=0).fit(*columns, incumbent=rule)
    np.testing.assert_array_equal(kept.predict_proba(X), q)
    np.testing.assert_array_equal(kept.predict(X), q.argmax(axis=1))


def test_a_learner_that_stays_is_returned_itself() -> None:
    X, actions, rewards, propensities, _, _ = incumbent_log(1500, 3)
    old = O2PL(K, random_state=0).fit(X, actions, rewards, propensities)
    q = old.predict_proba(X)
    drawn = (q.cumsum(axis=1) < np.random.default_rng(1).random(1500)[:, None]).sum(axis=1).clip(max=K - 1)
    by_chance = (np.random.default_rng(2).random(1500) < 0.5) * 1.0
    again = O2PL.from_incumbent(X, drawn, by_chance, q[np.arange(1500), drawn], incumbent=old, random_state=0)
    assert again is old
    assert not again.improvement_.deploy


def test_a_deterministic_log_deploys_nothing() -> None:
    g = np.random.default_rng(0)
    X = g.normal(size=(900, 2)).astype(np.float32)
    actions = (X[:, 0] > 0) * 1
    rewards = (g.random(900) < np.where(actions == 1, 0.3, 0.6)) * 1.0
    found = SafeImprovement(random_state=0).fit(X, actions, rewards, np.ones(900))
    assert not found.deploy_
    assert "the log is deterministic" in found.verdict_.reason


def test_the_search_ends_lower_than_it_started() -> None:
    X, actions, rewards, propensities, _, _ = incumbent_log(300, 8)
    rows = Interactions(X, actions, rewards, propensities, (0, 1))
    settings = Pessimistic(1.0, "theory", random_loss_for_improvement_candidates(rows.losses, propensities), 1.0)
    start = clone_of_incumbent(Softmax(K), X, actions)
    params = improved_incumbent(Softmax(K), X, rows, settings, start)

    def value(theta: Any) -> Any:
        pi = np.exp(X.astype(float) @ theta.reshape(K, D).T)
        pi = (pi / pi.sum(axis=1, keepdims=True))[np.arange(300), actions]
        w = np.minimum(pi / propensities, settings.alpha(300))
        risk = np.mean((w - 1) * (-rewards - settings.baseline))
        return risk + settings.phi(300)(np.mean((w - 1) ** 2))[0] + theta @ theta / 600

    assert value(params) < value(start) - 1e-3
    for step in np.random.default_rng(0).normal(size=(20, K * D)):
        assert value(params) < value(params + 0.03 * step) + 1e-6  # a minimum near the start; there may be others


def test_a_poor_incumbent_is_replaced_by_a_better_policy() -> None:
    X, actions, rewards, propensities, _, _ = incumbent_log(1500, 9)
    found = SafeImprovement(random_state=0).fit(X, actions, rewards, propensities)
    there, _, _, _, q, means = incumbent_log(4000, 10)
    new, old = (found.predict_proba(there) * means).sum(axis=1).mean(), (q * means).sum(axis=1).mean()
    assert found.deploy_
    assert new > old + 0.05
    assert 0 < found.verdict_.lower < found.verdict_.gain
    assert found.verdict_ == max(found.verdicts_, key=lambda each: (each.deploy, each.pessimistic))
    assert [each.penalty for each in found.verdicts_] == [0.3, 1.0, 3.0]
    assert np.array_equal(found.predict(there), found.predict_proba(there).argmax(axis=1))


def test_where_nothing_can_be_gained_it_deploys_no_more_often_than_it_says() -> None:
    """All actions are worth the same, so that every deployment is a mistake: at most one in ten, level 1e-3."""
    deployed = 0
    for seed in range(60):
        X, actions, rewards, propensities, _, _ = incumbent_log(150, seed, signal=0.0)
        deployed += (
            SafeImprovement(K, penalties=(0.3, 3.0), random_state=seed).fit(X, actions, rewards, propensities).deploy_
        )
    assert binomtest(deployed, 60, 0.1, alternative="greater").pvalue > 1e-3


def test_a_refusal_leaves_a_clone_of_the_incumbent() -> None:
    X, actions, rewards, propensities, _, _ = incumbent_log(2000, 3, quality=1.0, floor=0.0)
    found = SafeImprovement(confidence=1 - 1e-12, random_state=0).fit(X, actions, 0 * rewards + 0.5, propensities)
    assert not found.deploy_
    assert found.verdict_.lower <= 0
    twin = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-8, max_iter=1000)
    features = np.hstack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones((2000, 1))])
    assert np.allclose(found.predict_proba(X), twin.fit(features, actions).predict_proba(features), atol=0.02)


def test_rewards_on_another_scale_scale_the_gains_and_change_nothing_else() -> None:
    X, actions, rewards, propensities, q, _ = incumbent_log(400, 11, floor=0.0)
    unit = SafeImprovement(K, random_state=1).fit(X, actions, rewards, propensities, incumbent=q)
    scaled = SafeImprovement(K, reward_range=(-2.0, 3.0), random_state=1)
    scaled.fit(X, actions, 5 * rewards - 2, propensities, incumbent=q)
    assert scaled.verdict_.gain == pytest.approx(5 * unit.verdict_.gain, rel=1e-6)
    assert scaled.verdict_.lower == pytest.approx(5 * unit.verdict_.lower, rel=1e-6)
    assert scaled.baseline_ == pytest.approx(5 * unit.baseline_ - 2)
    assert np.allclose(scaled.predict_proba(X), unit.predict_proba(X))
    again = sklearn_clone(unit).fit(X, actions, rewards, propensities, incumbent=q)
    assert again.verdicts_ == unit.verdicts_
    blind = SafeImprovement(K, random_state=1).fit(X, actions, rewards, propensities)
    assert blind.imitation_ != unit.imitation_  # the folds start from a clone of what was logged


def test_bad_input_is_refused_and_what_was_learned_stays() -> None:
    X, actions, rewards, propensities, q, _ = incumbent_log(60, 12)
    learner = SafeImprovement(K, random_state=0).fit(X, actions, rewards, propensities)
    before = learner.predict_proba(X)
    for columns in (
        (X[:5], actions[:5], rewards[:5], propensities[:5]),
        (X, actions + 1, rewards, propensities),
        (X, actions, rewards + 1, propensities),
        (X, actions, rewards, 0 * propensities),
        (X[:-1], actions, rewards, propensities),
    ):
        with pytest.raises(InvalidInput):
            learner.fit(*columns)
    negative = q.copy()
    negative[4] = [1.5, -0.5, 0.0]
    for wrong in (q[:, :2], 2 * q, negative):
        with pytest.raises(InvalidInput, match="incumbent"):
            learner.fit(X, actions, rewards, propensities, incumbent=wrong)
    assert np.array_equal(learner.predict_proba(X), before)
    with pytest.raises(InvalidInput, match="4"):
        learner.predict_proba(X[:, :2])
    for settings in (
        {"confidence": 1.0},
        {"folds": 1},
        {"penalties": ()},
        {"penalties": (-1.0,)},
        {"l2": -1.0},
        {"sharpness": 0},
    ):
        with pytest.raises(InvalidInput, match=next(iter(settings)).removesuffix("ies")):
            SafeImprovement(K, **settings).fit(X, actions, rewards, propensities)
    with pytest.raises(AttributeError, match="call fit"):
        SafeImprovement(K).predict(X)


def test_it_takes_other_features() -> None:
    X, actions, rewards, propensities, _, _ = incumbent_log(120, 13)
    found = SafeImprovement(K, features=Chain((Intercept(),)), random_state=0).fit(X, actions, rewards, propensities)
    assert found.params_.shape == (K * (D + 1),)


def test_a_learner_takes_over_from_the_incumbent_and_goes_on(tmp_path: Path) -> None:
    X, actions, rewards, propensities, q, _ = incumbent_log(1500, 3)
    learner = O2PL.from_incumbent(X, actions, rewards, propensities, incumbent=q, random_state=0)
    twin = SafeImprovement(random_state=0).fit(X, actions, rewards, propensities, q)
    assert learner.improvement_ == twin.verdict_
    assert twin.deploy_
    np.testing.assert_allclose(learner.predict_proba(X[:50]), twin.predict_proba(X[:50]), atol=1e-5)
    assert len(learner.log_) == 1500
    learner.save(tmp_path / "a")
    same = load(tmp_path / "a")
    for x in X[:200]:  # far enough to learn again
        decision = learner.act(x)
        assert same.act(x) == decision
        for each in (learner, same):
            each.update(x, decision.action, 1.0, decision.propensity)
    assert len(same.log_) == 1700


def test_after_a_refusal_the_learner_acts_as_the_clone() -> None:
    X, actions, _, propensities, q, _ = incumbent_log(150, 4, quality=1.0)
    rewards = (np.random.default_rng(7).random(150) < 0.5).astype(float)  # nothing to be gained
    learner = O2PL.from_incumbent(X, actions, rewards, propensities, incumbent=q, confidence=0.99, random_state=0)
    assert not learner.improvement_.deploy
    twin = SafeImprovement(confidence=0.99, random_state=0).fit(X, actions, rewards, propensities, q)
    np.testing.assert_allclose(learner.predict_proba(X), twin.predict_proba(X), atol=1e-5)
    assert np.abs(learner.predict_proba(X) - q).mean() < 0.1


def sets_log(n: int, seed: int, good: Any) -> Any:
    """Pages of 2 to 4 items for two users, as dictionaries; each likes one kind. `good`: the incumbent knows it."""
    rng = np.random.default_rng(seed)
    liked = {"ann": "news", "bob": "sport"}
    pages, actions, rewards, propensities, known, matrices = [], [], [], [], [], []
    for _ in range(n):
        user = ["ann", "bob"][rng.integers(2)]
        kinds = [["news", "sport", "music"][rng.integers(3)] for _ in range(rng.integers(2, 5))]
        likes = np.array([kind == liked[user] for kind in kinds], float)
        logits = (1 if good else -1) * likes
        q = np.exp(logits) / np.exp(logits).sum()
        action = int(rng.choice(len(kinds), p=q))
        pages.append({"shared": {"user": user}, "actions": [{"kind": kind} for kind in kinds]})
        matrices.append(np.stack([likes, rng.normal(size=len(kinds))], axis=1))
        actions.append(action)
        rewards.append(float(rng.random() < 0.2 + 0.6 * likes[action]))
        propensities.append(q[action])
        known.append(q)
    return pages, matrices, np.array(actions), np.array(rewards), np.array(propensities), np.concatenate(known)


@pytest.mark.parametrize("numbers", [False, True])
def test_action_sets_have_incumbents_too(numbers: bool, tmp_path: Path) -> None:
    pages, matrices, actions, rewards, propensities, known = sets_log(1500, 0, good=False)
    contexts = matrices if numbers else pages
    sets = ActionSets.of(matrices) if numbers else pages
    learner = O2PL.from_incumbent(Interactions(sets, actions, rewards, propensities), random_state=0)
    assert learner.policy == ("actionwise" if numbers else "hashed actionwise")
    assert learner.improvement_.deploy
    assert len(learner.improvements_) == 3
    other = sets_log(500, 1, good=False)
    fresh = other[1 if numbers else 0]
    liked = [matrix[choice, 0] for matrix, choice in zip(other[1], learner.predict(fresh), strict=True)]
    possible = [matrix[:, 0].max() for matrix in other[1]]
    assert np.mean(liked) > 0.95 * np.mean(possible)
    learner.save(tmp_path / "learner.o2pl")
    again = load(tmp_path / "learner.o2pl")
    np.testing.assert_array_equal(again.predict_proba(fresh), learner.predict_proba(fresh))
    with_known = SafeImprovement(random_state=0).fit(contexts, actions, rewards, propensities, known)
    assert with_known.deploy_
    known[0] += 0.1
    with pytest.raises(InvalidInput, match="incumbent, row 0"):
        SafeImprovement().fit(contexts, actions, rewards, propensities, known)
    with pytest.raises(InvalidInput, match="incumbent: found shape"):
        SafeImprovement().fit(contexts, actions, rewards, propensities, known[:-1])


def test_where_nothing_is_better_the_incumbent_of_action_sets_stays_and_its_clone_acts_like_it() -> None:
    pages, _, actions, _, propensities, known = sets_log(1500, 2, good=True)
    by_chance = (np.random.default_rng(0).random(1500) < 0.5).astype(float)
    found = SafeImprovement(random_state=0).fit(pages, actions, by_chance, propensities)
    assert not found.deploy_
    assert np.abs(found.predict_proba(pages) - known).mean() < 0.03
    assert len(found.predict(pages)) == len(pages)


def test_dictionaries_may_be_hashed() -> None:
    X, actions, rewards, propensities, *_ = incumbent_log(1500, 3)
    rows = [dict(zip("abcd", map(float, x), strict=True)) for x in X]
    hashed = SafeImprovement(policy="hashed", random_state=0).fit(rows, actions, rewards, propensities)
    dense = SafeImprovement(random_state=0).fit(rows, actions, rewards, propensities)
    assert (hashed.policy_, dense.policy_) == ("hashed", "linear")
    assert np.abs(hashed.predict_proba(rows) - dense.predict_proba(rows)).mean() < 1e-3  # float32, sharpened
    with pytest.raises(InvalidInput, match="policy: found 'quadratic'"):
        SafeImprovement(policy="quadratic").fit(rows, actions, rewards, propensities)


def test_folds_that_were_kept_are_not_computed_again() -> None:
    X, actions, rewards, propensities, *_ = incumbent_log(400, 4)
    store, computed = {}, []

    def kept(name: Any, compute: Any) -> Any:
        if name not in store:
            computed.append(name)
            store[name] = compute()
        return store[name]

    first = SafeImprovement(random_state=0).fit(X, actions, rewards, propensities, kept=kept)
    del store["fold1"]
    again = SafeImprovement(random_state=0).fit(X, actions, rewards, propensities, kept=kept)
    assert computed == ["fold0", "fold1", "fold2", "fold1"]
    assert first.verdicts_ == again.verdicts_


def test_rows_that_stand_for_different_numbers_of_decisions_are_refused() -> None:
    weighted, _, _ = dropped_log(400)
    with pytest.raises(InvalidInput, match="log: found rows that stand for different numbers of decisions"):
        SafeImprovement().fit(weighted)
    SafeImprovement().fit(weighted.thinned())
