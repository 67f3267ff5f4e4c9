"""What is `Bandit`'s own; what all learners promise is in `test_o2pl.py` and `test_engine.py`, with its rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

import o2pl
from o2pl import Bandit, Member
from o2pl.engine.member import LINEAR, QUADRATIC
from o2pl.engine.member_weights import predicted_log_odds
from o2pl.errors import InvalidInput
from o2pl.features import Chain, Hashed, Intercept
from o2pl.objectives import Outcome, Pessimistic
from o2pl.policies import Softmax, ThresholdClass
from o2pl.policies.sampling import CountBonus, UniformExploration
from o2pl.storage import storable

K = 15


def rare(seed: int, rounds: int = 2500) -> tuple[Any, Any]:
    """One of K actions pays .3, the others .02: contexts [T, 8] lie about one centre for each."""
    generator = np.random.default_rng(seed)
    best = generator.integers(K, size=rounds)
    x = generator.normal(size=(K, 8))[best] + 0.5 * generator.normal(size=(rounds, 8))
    chances = np.full((rounds, K), 0.02)
    chances[np.arange(rounds), best] = 0.3
    return x.astype(np.float32), (generator.random((rounds, K)) < chances).astype(float)


def test_where_actions_are_many_and_rewards_rare_it_earns_more_than_o2pl() -> None:
    """Over seeds 100 to 107 it earned .054 more a round, with a standard error of .012."""
    more = []
    for seed in range(5):
        x, rewards = rare(seed)
        runs = [learner(K, random_state=seed).run((x, rewards)) for learner in (Bandit, o2pl.O2PL)]
        more.append(runs[0].mean_reward - runs[1].mean_reward)
    assert np.mean(more) > 0.02


# -- decisions


@pytest.mark.parametrize("policy", ["union", "hashed"])
@pytest.mark.parametrize("exploration", ["auto", 0.1])
def test_propensities_are_those_of_the_draws(policy: str, exploration: Any) -> None:
    """While it learns: each is the probability said before, and actions are as frequent as these add up to."""
    x, rewards = rare(7, 800)
    contexts: Any = x if policy == "union" else [{str(i): float(v) for i, v in enumerate(row)} for row in x]
    learner = Bandit(K, policy=policy, exploration=exploration, random_state=2)
    learner.update(contexts[0], 0, 0.0, 1 / K)
    total = np.zeros((2, K))  # played less expected, and its variance
    for t in range(1, 800):
        pi = learner.predict_proba(contexts[t : t + 1])[0]
        action, propensity = learner.act(contexts[t])
        assert propensity == pi[action]
        total += np.eye(K)[action] - pi, pi * (1 - pi)
        learner.update(contexts[t], action, rewards[t, action], propensity)
    assert stats.norm.sf(np.abs(total[0] / np.sqrt(total[1])).max()) > 1e-3 / K
    counts = np.bincount([learner.act(contexts[0]).action for _ in range(4000)], minlength=K)
    expected = 4000 * learner.predict_proba(contexts[:1])[0]
    usual = expected > 5
    counts, expected = (np.append(each[usual], each[~usual].sum() + 1e-9) for each in (counts, expected))
    assert stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), usual.sum()) > 1e-3
    if exploration != "auto":
        assert learner.predict_proba(contexts[:50]).min() >= exploration / K - 1e-12


# -- every kind of decision

ITEMS = np.random.default_rng(8).normal(size=(6, 3))
WORDS = [{"kind": f"k{k % 3}", "size": float(k)} for k in range(6)]
NAMES = [f"i{k}" for k in range(6)]
USER = np.array([0.3, -1.0])


@storable
@dataclass(frozen=True)
class Twice:
    """A feature map of somebody else."""

    def width(self, n_inputs: int, state: Any = None) -> int:
        return n_inputs

    def init(self, n_inputs: int) -> dict[str, Any]:
        return {}

    def observe(self, state: Any, rows: Any) -> Any:
        return state

    def transform(self, state: Any, rows: Any) -> Any:
        return 2 * rows


KINDS: dict[str, tuple[dict[str, Any], Any]] = {  # settings, and one decision of a learner
    "numbers": ({"n_actions": 4}, lambda learner: learner.act(USER)),
    "two actions": ({"n_actions": 2}, lambda learner: learner.act(USER)),
    "many actions": ({"n_actions": 13}, lambda learner: learner.act(USER)),
    "names": ({"actions": ["a", "b", "c"]}, lambda learner: learner.act(USER)),
    "words": ({"n_actions": 3}, lambda learner: learner.act({"kind": "k1", "size": 2.0})),
    "some excluded": ({"n_actions": 4}, lambda learner: learner.act(USER, exclude=[2])),
    "adapter members": (
        {"n_actions": 3, "policy": Member(Chain((Twice(), Intercept())), objective=Outcome(False))},
        lambda learner: learner.act(USER),
    ),
    "sets of numbers": ({}, lambda learner: learner.act(ITEMS)),
    "sets of words": ({"policy": "hashed actionwise"}, lambda learner: learner.act(WORDS)),
    "a user and items": ({}, lambda learner: learner.act(USER, ITEMS)),
    "items by id": ({}, lambda learner: learner.act(USER, ITEMS, ids=NAMES)),
    "words by id": ({}, lambda learner: learner.act({"kind": "u"}, WORDS, ids=NAMES)),
    "lists": ({}, lambda learner: learner.act(USER, ITEMS[:4], ids=NAMES[:4], slots=2)),
    "many at once": ({"n_actions": 3}, lambda learner: learner.act_many(USER[None])[0]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_propensities_are_frequencies_in_every_kind_of_decision(kind: str) -> None:
    """After 150 rounds, 2,000 decisions in one context: as frequent as they say, by a χ² test at level 1e-4."""
    settings, decide = KINDS[kind]
    generator, learner = np.random.default_rng(3), Bandit(random_state=4, **settings)
    for _ in range(150):
        decision = decide(learner)
        learner.update(decision, float(generator.random() < 0.4))
    said: dict[Any, float] = {}
    counts: Counter[Any] = Counter()
    for _ in range(2000):
        decision = decide(learner)
        played = tuple(decision.action) if isinstance(decision.action, list | tuple) else decision.action
        assert said.setdefault(played, decision.propensity) == decision.propensity
        counts[played] += 1
    assert len(said) > 1
    expected = 2000 * np.array([said[each] for each in counts])
    seen = np.array([*counts.values()])
    usual = expected > 5
    rest = [2000 - seen[usual].sum(), max(2000 - expected[usual].sum(), 1e-9)]
    seen, expected = np.append(seen[usual], rest[0]), np.append(expected[usual], rest[1])
    assert stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), max(usual.sum(), 1)) > 1e-4


@pytest.mark.parametrize("K", [2, 5, 12])
def test_actions_that_were_hardly_played_are_tried(K: int) -> None:
    """The log has only action 0, which pays .4: the others are worth a try; once they have paid less, no longer."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(60, 2))
    columns = (x, np.zeros(60, int), np.full(60, 0.4), np.full(60, 0.2))
    tried = Bandit(K, random_state=0).partial_fit(*columns).predict_proba(x)
    assert tried[:, 1:].sum(axis=1).min() > 0.15
    actions = generator.integers(0, K, 1200)
    rewards = np.where(actions == 0, 0.5, 0.1)
    known = Bandit(K, random_state=0).partial_fit(np.tile(x, (20, 1)), actions, rewards, np.full(1200, 1 / K))
    assert known.predict_proba(x)[:, 0].min() > 0.9


def test_a_sharpness_is_refused_with_what_replaces_it() -> None:
    with pytest.raises(InvalidInput, match=r"sharpness: found 30, expected nothing: .* exploration=0\.05"):
        Bandit(3, sharpness=30)
    with pytest.raises(InvalidInput, match="sharpness"):
        Bandit(3).set_params(sharpness=30)


@pytest.mark.parametrize(
    ("n_actions", "given", "rule"),
    [
        (11, "auto", CountBonus()),
        (11, 0.1, CountBonus(epsilon=0.1)),
        (20, np.float64(0.1), CountBonus(epsilon=0.1)),
        (10, "auto", UniformExploration(0.0)),
        (10, 0.1, UniformExploration(0.1)),
        (11, UniformExploration(0.1), UniformExploration(0.1)),
        (3, CountBonus(2.0), CountBonus(2.0)),
        (None, "auto", UniformExploration(0.0)),
        (None, 0.1, UniformExploration(0.1)),
    ],
)
def test_exploration(n_actions: int | None, given: Any, rule: Any) -> None:
    """A bonus for few plays is for many actions; among few, what is uncertain is tried."""
    assert Bandit(exploration=given)._exploration(n_actions) == rule


# -- members


def test_members_begin_at_their_priors_and_gain_by_what_they_predicted() -> None:
    """Before it has learned, a member says .5 of independent actions and 1/K of competing ones."""
    x, rewards = rare(1, 200)
    learner = Bandit(3, random_state=0)  # learns after one row
    learner.update(x[0], 1, 0.8, 1 / 3)
    competing, half = (np.log(1 / 3), np.log(2 / 3)), (np.log(0.5), np.log(0.5))
    expected = [r * 0.8 + s * 0.2 for r, s in (competing, half, half)]
    engine = learner._engine
    np.testing.assert_allclose(engine.gains, np.array([0, -3, -1]) + expected)
    learner.run((x, rewards[:, :3]))
    assert len(engine.gains) == 6  # with the quadratic ones, and the one that watches for changes
    assert engine.acting[4:10].sum() == pytest.approx(1)


def test_a_newcomer_begins_at_the_best_and_its_prior() -> None:
    first = Member(LINEAR, objective=Outcome(), prior=0.5)
    late = Member(QUADRATIC, objective=Outcome(), prior=-2.0, joins=40)
    x, rewards = rare(2, 40)
    learner = Bandit(3, policy=(first, late), schedule="exact", random_state=0)
    learner.run((x[:39], rewards[:39, :3]))
    assert learner._engine.gains.tolist() == [0.5]  # one alone is not weighed
    learner.run((x[39:], rewards[39:, :3]))
    np.testing.assert_allclose(learner._engine.gains, [0.5, -1.5])


def test_offline_too_the_members_that_can_tell_the_actions_apart_take_over() -> None:
    """The better action is the sign of a product, to which the linear members are blind."""
    x = np.random.default_rng(2).normal(size=(800, 2))
    better = (x[:, 0] * x[:, 1] <= 0).astype(int)
    actions = np.random.default_rng(3).integers(2, size=800)
    learner = Bandit(2).fit(x, actions, (actions == better).astype(float), np.full(800, 0.5))
    assert learner._engine.acting[4:6].sum() < 0.05
    assert np.mean(learner.predict(x) == better) > 0.9


@pytest.mark.parametrize("policy", [Softmax(3), Hashed(), Member()])
def test_members_without_an_objective_have_the_outcome(policy: Any) -> None:
    learner = Bandit(3, policy=policy, changes=None)
    learner.act({"a": 1.0} if isinstance(policy, Hashed) else [1.0, 2.0])
    assert [type(member.objective) for member in learner._engine.members] == [Outcome]


def test_pessimistic_members_stand_beside_those_that_model_rewards() -> None:
    """The pessimistic member alone sees the product that decides, and takes over."""
    x = np.random.default_rng(2).normal(size=(1500, 2))
    better = (x[:, 0] * x[:, 1] <= 0).astype(int)
    rewards = np.eye(2)[better] * 0.8 + 0.1
    pessimistic = Member(QUADRATIC, objective=Pessimistic(penalty=0.1, baseline="mean", l2=0.1))
    policy = (Member(objective=Outcome()), pessimistic)
    learner = Bandit(2, policy=policy, exploration=0.1, random_state=0)
    run = learner.run((x, rewards))
    assert run.rewards[-500:].mean() > 0.8
    assert learner._engine.weights[1] > 0.9  # of competing, pessimistic, monitor
    engine, (level, slope) = learner._engine, learner._engine.members[1].calibration
    rows = learner.log_[: engine.learned]  # to which it was calibrated; the last ones came later
    engine.members[1].calibration = (0.0, 1.0)
    z, rewards = (
        np.clip(predicted_log_odds(engine.present, engine.decider, rows)[1], -9.21, 9.21),
        rows.rewards,
    )

    def loss(c: float, s: float) -> float:
        return float(np.sum(np.logaddexp(0, c + s * z) - rewards * (c + s * z)) + (s - 1) ** 2 / 2)

    assert 0 < slope < 1  # rewards are less sure than its decisions
    for c, s in ((0.01, 0.0), (-0.01, 0.0), (0.0, 0.01), (0.0, -0.01)):
        assert loss(level, slope) < loss(level + c, slope + s) - 1e-3


def test_pessimistic_members_alone_are_refused() -> None:
    with pytest.raises(o2pl.InvalidInput, match="policy: found no member with an outcome objective"):
        Bandit(3, policy=Member(objective=Pessimistic())).act([1.0])
    with pytest.raises(o2pl.InvalidInput, match=r"penalty: found 0\.5 for a member with an outcome objective"):
        Bandit(3, policy=Member(penalty=0.5)).act([1.0])
    with pytest.raises(o2pl.InvalidInput, match="objective: found Outcome with ThresholdClass"):
        Bandit(2, policy=ThresholdClass((0.0, 1.0), 0.1)).act([1.0])


def test_bad_settings_are_refused() -> None:
    for wrong in (2.0, "often", -0.1):
        with pytest.raises(o2pl.InvalidInput, match=r'exploration: found .*, expected "auto", a rule'):
            Bandit(3, exploration=wrong).act([1.0])
    with pytest.raises(o2pl.InvalidInput, match="policy: found 'fourier', expected one of"):
        Bandit(3, policy="fourier").act([1.0])


# -- edges


def test_rewards_of_any_range_make_the_same_decisions() -> None:
    x, rewards = rare(3, 300)
    plain = Bandit(K, random_state=3).run((x, rewards))
    scaled = Bandit(K, random_state=3, reward_range=(-30, 10)).run((x, 40 * rewards - 30))
    np.testing.assert_array_equal(plain.actions, scaled.actions)


@pytest.mark.parametrize("policy", ["union", "linear", "quadratic"])
def test_one_action_one_row_and_no_data(policy: str) -> None:
    learner = Bandit(1, policy=policy).partial_fit([[1.0]], [0], [0.5], [1.0])
    assert learner.act([1.0]) == (0, 1.0)
    assert Bandit(4, policy=policy).act([1.0, 2.0]).propensity == 0.25
    for reward in (0.0, 1.0):
        always = Bandit(2, policy=policy).fit(np.ones((50, 2)), np.zeros(50, int), np.full(50, reward), np.ones(50))
        assert np.isfinite(always.predict_proba([[1.0, 1.0], [1e6, -1e6]])).all()
    assert Bandit(policy="actionwise").act([[1.0], [2.0]]).propensity == 0.5
