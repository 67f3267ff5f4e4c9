"""Users and items, end to end: what is learned of products, of items by id, and of what may not be played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import o2pl
from o2pl import O2PL, Bandit, Offer
from o2pl.engine.item_memory import NOTHING, ItemMemory, item_effects
from o2pl.policies.sampling import CountBonus, UniformExploration


def world(seed: int, rounds: int, items: int = 20, quality: float = 0.0) -> Any:
    """Users [n, 3], items [n, K, 3] of a pool of 60, their ids [n, K], chances [n, K], and uniform numbers."""
    generator = np.random.default_rng(seed)
    pool, taste = generator.normal(size=(60, 3)), 1.5 * generator.normal(size=(3, 3))
    own = quality * generator.normal(size=60)
    users = generator.normal(size=(rounds, 3))
    ids = np.stack([generator.choice(60, items, replace=False) for _ in range(rounds)])
    scores = np.einsum("ni,ij,nkj->nk", users, taste, pool[ids]) + own[ids] - 1
    return users, pool[ids], ids, 1 / (1 + np.exp(-scores)), generator.random((rounds, items))


def play(learner: Any, rounds: Any, **how: Any) -> Any:
    """The chances of what was played."""
    got = []
    for user, items, ids, chances, uniform in zip(*rounds, strict=True):
        named = {"ids": ids} if how.get("by_id") else {}
        decision = learner.act(user, items, **named)
        place = int(np.flatnonzero(ids == decision.action)[0]) if named else decision.action
        learner.update(decision, float(uniform[place] < chances[place]))
        got.append(chances[place])
    return np.array(got)


@pytest.mark.parametrize("kind", [Bandit, O2PL])
def test_whom_an_item_suits_is_learned_as_it_comes(kind: Any) -> None:
    rounds = world(0, 600 if kind is Bandit else 300)
    chances = rounds[3]
    got = play(kind(random_state=0), rounds)
    chance, best = chances.mean(), chances.max(axis=1).mean()
    assert (got[-150:].mean() - chance) / (best - chance) > (0.85 if kind is Bandit else 0.4)


def test_the_log_learns_the_same_as_the_loop_and_is_evaluated(tmp_path: Path) -> None:
    rounds = world(1, 500)
    learner = Bandit(exploration=0.2, random_state=0)
    play(learner, rounds)
    log = learner.log_
    pairs = list(zip(rounds[0], rounds[1], strict=True))
    again = Bandit(random_state=0).fit(pairs, log.actions, log.rewards, log.propensities)
    of_log = Bandit(random_state=0).fit(log)
    np.testing.assert_array_equal(again.predict_proba(pairs[:9]), of_log.predict_proba(pairs[:9]))
    grown = Bandit(random_state=0).partial_fit(log[:300]).partial_fit(log[300:])
    assert grown.score(log[:100]) > 0
    found = o2pl.evaluate(log[300:], Bandit(random_state=0).fit(log[:300]), baseline="uniform")
    assert found.difference is not None
    assert found.difference.low > 0.1
    assert of_log.predict(pairs[:5]).shape == (5,)
    of_log.save(tmp_path / "learner.o2pl")
    of_log.snapshot().save(tmp_path / "decider.o2pl")
    loaded, decider = o2pl.load(tmp_path / "learner.o2pl"), o2pl.load(tmp_path / "decider.o2pl")
    for pair in pairs[:20]:
        assert of_log.act(*pair) == loaded.act(*pair)
        assert decider.decide(pair, 0.3) == of_log.snapshot().decide(pair, 0.3)
    assert decider.act(*pairs[0], ids=list(range(20)), exclude=[3], slots=2).propensity > 0


@pytest.mark.parametrize("exploration", [0.1, 0.6])
def test_propensities_are_frequencies_without_what_is_excluded(exploration: float) -> None:
    """And they are those of the policy on the items that are left."""
    users, items, ids, *_ = rounds = world(2, 60, items=6)
    learner = Bandit(exploration=exploration, random_state=0)
    play(learner, rounds, by_id=True)
    names, gone = ids[0].tolist(), ids[0][[1, 4]].tolist()
    left = Offer(users[0], items[0], ids=names, exclude=gone)
    pi = dict(zip(left.actions, learner.predict_proba([left]), strict=True))
    counts = dict.fromkeys(left.actions, 0)
    for _ in range(2000):
        decision = learner.act(users[0], items[0], ids=names, exclude=gone)
        assert decision.propensity == pi[decision.action]
        counts[decision.action] += 1
    expected = np.array([2000 * pi[name] for name in left.actions])
    assert stats.chisquare(list(counts.values()), expected * 2000 / expected.sum()).pvalue > 1e-3
    smaller = learner.predict_proba([Offer(users[0], items[0][[0, 2, 3, 5]], ids=ids[0][[0, 2, 3, 5]])])
    np.testing.assert_array_equal(smaller, list(pi.values()))


@pytest.mark.parametrize("exploration", ["auto", 0.1])
def test_fixed_actions_without_some(exploration: Any) -> None:
    """Exactly the policy of those that are left; the actions in the log are the learner's own numbers."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(300, 2))
    learner = Bandit(4, exploration=exploration, random_state=0)
    learner.run((x, (generator.random((300, 4)) < 0.3 + 0.2 * (x[:, :1] > 0)).astype(float)))
    drawn = [learner.act(x[0], exclude=[1]) for _ in range(2000)]
    shares = {one.action: one.propensity for one in drawn}
    assert set(shares) <= {0, 2, 3}
    left = learner.snapshot().among(x[0], np.array([0, 2, 3]))
    assert left.sum() == pytest.approx(1, abs=1e-12)
    assert shares == {action: share for action, share in zip((0, 2, 3), left.tolist(), strict=True) if action in shares}
    counts = [sum(one.action == action for one in drawn) for action in shares]
    expected = np.array([2000 * share for share in shares.values()])
    assert stats.chisquare(counts, expected * 2000 / expected.sum()).pvalue > 1e-3
    if exploration != "auto":
        assert min(shares.values()) >= 0.1 / 3 - 1e-12
    learner.update(drawn[0], 1.0)
    assert learner.log_.actions[-1] == drawn[0].action
    with pytest.raises(o2pl.InvalidInput, match="exclude: found 4"):
        learner.act(x[0], exclude=[4])
    named = Bandit(actions=["news", "sport", "art"], random_state=0)
    taken = {named.act(x[0], exclude="sport") for _ in range(50)}
    assert taken == {("news", 0.5), ("art", 0.5)}
    with pytest.raises(o2pl.InvalidInput, match="exclude: found 'sprot', expected 'sport'"):
        named.act(x[0], exclude=["sprot"])
    with pytest.raises(o2pl.InvalidInput, match=r"expected act\(user, items, slots=3\)"):
        learner.act(x[0], slots=2)


def test_a_decision_says_the_id_and_updates_take_it() -> None:
    users, items, ids, *_ = world(3, 5)
    learner = Bandit(random_state=0)
    words = [f"article {one}" for one in ids[0]]
    decision = learner.act(users[0], items[0], ids=words, exclude=words[:5])
    place = words.index(decision.action) - 5
    learner.update(decision, 1.0)
    other = Bandit(random_state=0)
    other.update(Offer(users[0], items[0], ids=words, exclude=words[:5]), decision.action, 1.0, decision.propensity)
    third = Bandit(random_state=0)
    third.update(decision, 1.0)  # in another process
    assert learner.predict([Offer(users[0], items[0], ids=words)])[0] in words
    plain = Bandit(random_state=0).update(users[0], items[0], place + 5, 1.0, decision.propensity)
    assert plain.log_.actions.tolist() == [place + 5]
    for one in (learner, other, third):
        assert one.log_.actions.tolist() == [place]
        assert one.log_.contexts.sizes.tolist() == [15]
    with pytest.raises(o2pl.InvalidInput, match="expected an id of an allowed item"):
        learner.update(Offer(users[0], items[0], ids=words, exclude=words[:5]), words[0], 1.0, 0.5)
    assert len(learner.log_) == 1


def test_items_that_pay_more_than_their_features_say() -> None:
    """Over seeds 30 to 35 the last 300 rounds paid .02 to .06 more with ids."""
    more = []
    for seed in range(3):
        rounds = world(seed, 900, quality=2.0)
        with_ids, without = (play(Bandit(random_state=0), rounds, by_id=ids)[-300:].mean() for ids in (True, False))
        more.append(with_ids - without)
    assert np.mean(more) > 0.01


def test_effects_are_the_mode_of_their_likelihood() -> None:
    generator = np.random.default_rng(0)
    items, z = generator.integers(40, size=4000), generator.normal(size=4000)
    true = generator.normal(size=40)
    rewards = (generator.random(4000) < 1 / (1 + np.exp(-(z + true[items])))).astype(float)
    found = item_effects(items, rewards, z, 40)
    assert np.corrcoef(found, true)[0, 1] > 0.9
    assert 0.7 < np.polyfit(true, found, 1)[0] < 1.1
    none = (generator.random(4000) < 1 / (1 + np.exp(-z))).astype(float)
    assert np.abs(item_effects(items, none, z, 40)).max() < 0.15


def test_plays_are_counted_by_id() -> None:
    rounds = world(4, 40, items=5)
    rule = CountBonus(strength=0.1)
    learner = Bandit(exploration=rule, changes=None, random_state=0)
    play(learner, rounds, by_id=True)
    memory = learner._begun().decider.items
    log = learner.log_
    played = log.contexts.item_ids[log.contexts.offsets[:-1] + log.actions]
    codes, counts = np.unique(played, return_counts=True)
    np.testing.assert_array_equal(memory.codes, codes)
    np.testing.assert_array_equal(memory.plays, counts)
    asked = np.array([codes[0], 10**9, codes[-1], -1])
    plays, effects = memory.of(asked)
    assert plays.tolist() == [counts[0], 0, counts[-1], 0]
    expected = np.where(asked >= 0, effects + rule.at(plays, memory.mean_reward).bonus, 0)
    np.testing.assert_array_equal(memory.added(asked, rule), expected)
    np.testing.assert_array_equal(memory.added(asked, UniformExploration()), effects)
    assert NOTHING.of(asked)[0].tolist() == [0, 0, 0, 0]
    assert isinstance(memory, ItemMemory)


def test_every_reward_moves_its_item(tmp_path: Path) -> None:
    """One step of Newton's method from where the last solve left it; a published policy stays as it is."""
    rounds = world(4, 61, items=5)
    learner = Bandit(changes=None, random_state=0)
    play(learner, [part[:60] for part in rounds], by_id=True)
    engine = learner._begun()
    while len(engine.log) + 1 >= engine.checkpoint:  # no solve comes in between
        play(learner, [part[:1] for part in rounds], by_id=True)
    published, before = learner.snapshot(), engine.decider.items
    user, items, ids = (part[60] for part in rounds[:3])
    offer = Offer(user, items, ids=ids)
    was = published.predict_proba([offer])
    decision = learner.act(user, items, ids=ids)
    sets = engine.encoder.entry(offer)
    place = ids.tolist().index(decision.action)
    code = int(sets.item_ids[place])
    known = before.codes.tolist().index(code) if code in before.codes else None
    h, e = (0.0, 0.0) if known is None else (before.curvature[known], before.effects[known])
    z = float(engine.decider.scores(sets)[0][place] + engine.members[0].params[-1])
    learner.update(decision, 1.0)
    after = engine.decider.items
    now = after.codes.tolist().index(code)
    m = 1 / (1 + np.exp(-(z + e)))
    assert after.curvature[now] == pytest.approx(h + m * (1 - m), rel=1e-5)
    assert after.effects[now] == pytest.approx(e + (1 - m) / (h + m * (1 - m) + 1 / 0.36), rel=1e-5)
    x = items[place] - items.mean(axis=0)
    np.testing.assert_allclose(after.spread, before.spread + m * (1 - m) * x**2, rtol=1e-4)
    variance = after.uncertain(sets)
    d = items.shape[1]
    B = 3 * after.variance + after.spread
    features = min(1, 2 / d) / d * ((items - items.mean(axis=0)) ** 2 / B).sum(axis=1)
    _, played = after.places(sets.item_ids)
    own = np.where(played, after.curvature[after.places(sets.item_ids)[0]], 0.0)
    np.testing.assert_allclose(variance, 1 / (1 / 0.36 + own) + features, rtol=1e-5)
    np.testing.assert_array_equal(published.predict_proba([offer]), was)
    learner.save(tmp_path / "learner.o2pl")
    again = o2pl.load(tmp_path / "learner.o2pl")
    np.testing.assert_allclose(again._begun().decider.items.effects, after.effects, rtol=1e-12)
    assert again.act(user, items, ids=ids) == learner.act(user, items, ids=ids)


def test_new_items_are_tried() -> None:
    """Of items that come while others are known, nearly all are shown within their first 300 visits: without, 81 %."""
    shown = []
    for seed in range(2):
        generator = np.random.default_rng(70 + seed)
        pool, quality = generator.normal(size=(60, 3)), 0.7 * generator.normal(size=60) - 1.2
        taste, learner = 0.3 * generator.normal(size=(3, 3)), Bandit(random_state=seed)
        live, first, born = list(range(12)), dict[int, int](), dict[int, int]()
        for t in range(1200):
            if t and t % 30 == 0 and 12 + t // 30 <= 59:
                live[t // 30 % 12] = 11 + t // 30
                born[11 + t // 30] = t
            user, items = generator.normal(size=3), pool[live]
            decision = learner.act(user, items, ids=live)
            chance = 1 / (1 + np.exp(-(quality[decision.action] + user @ taste @ pool[decision.action])))
            learner.update(decision, float(generator.random() < chance))
            first.setdefault(decision.action, t)
        shown += [one in first and first[one] - t < 300 for one, t in born.items() if t <= 900]
    assert np.mean(shown) > 0.9


def test_an_incumbent_is_improved() -> None:
    """The logger prefers what few like; its log shows that, and what is better."""
    users, items, _, chances, uniforms = world(6, 1500, items=5)
    generator = np.random.default_rng(0)
    likely = np.exp(-0.5 * items[:, :, 0])
    likely = 0.7 * likely / likely.sum(axis=1, keepdims=True) + 0.3 / 5
    actions = np.array([generator.choice(5, p=p) for p in likely])
    rows = np.arange(len(users))
    pairs = list(zip(users, items, strict=True))
    rewards = (uniforms[rows, actions] < chances[rows, actions]).astype(float)
    log = o2pl.Interactions(pairs, actions, rewards, likely[rows, actions], (0, 1))
    better = O2PL.from_incumbent(log, random_state=0)
    assert better.improvement_.deploy
    played = better.predict_proba(pairs).reshape(-1, 5)
    assert (played * chances).sum(axis=1).mean() > (likely * chances).sum(axis=1).mean() + 0.05
    better.update(better.act(*pairs[0]), 1.0)
    found = o2pl.SafeImprovement(random_state=0).fit(log)
    assert found.predict(pairs[:3]).shape == (3,)
    described = str(o2pl.describe(log, "log"))
    assert "3 numbers for the user, and 3 for each item" in described
    assert 'policy="items"' in described


def test_items_alone_with_the_policy_of_users_and_items() -> None:
    generator = np.random.default_rng(0)
    learner = Bandit(policy="items", random_state=0)
    for _ in range(200):
        items = generator.normal(size=(4, 2))
        decision = learner.act(items)
        learner.update(decision, float(items[decision.action, 1] > 0))
    assert learner.log_.contexts.shared.shape == (200, 0)
    assert learner.predict([np.array([[0.0, -2.0], [0.0, 2.0]])]).tolist() == [1]


def test_a_user_of_another_width_or_none_is_refused_and_nothing_changes() -> None:
    users, items, *_ = rounds = world(5, 30)
    learner = Bandit(random_state=0)
    play(learner, rounds)
    before = len(learner.log_)
    for user, some, message in (
        (users[0][:2], items[0], "found 2 features of the user, expected 3|found shape"),
        (users[0], items[0][:, :2], r"items: found shape \(20, 2\)"),
        (None, items[0], "found 0 features of the user, expected 3"),
    ):
        with pytest.raises(o2pl.InvalidInput, match=message):
            learner.act(user, some)
    assert len(learner.log_) == before
    alone = Bandit(random_state=0)
    alone.update(items[0], alone.act(items[0]).action, 1.0, 0.05)
    with pytest.raises(o2pl.InvalidInput, match="expected only items"):
        alone.act(users[0], items[0])
    with pytest.raises(o2pl.InvalidInput, match="'linear' with a user and items"):
        Bandit(policy="linear").act(users[0], items[0])
    with pytest.raises(o2pl.InvalidInput, match="GaussianO2PL does not have"):
        o2pl.GaussianO2PL().act(users[0], items[0])


def test_users_and_items_with_names(tmp_path: Path) -> None:
    """A row with names and a frame; the column of ids is no feature."""
    pd = pytest.importorskip("pandas")
    generator = np.random.default_rng(0)
    learner, got = Bandit(random_state=0), []
    for _ in range(120):
        user = pd.Series({"age": float(generator.integers(18, 80)), "city": ["Rome", "Oslo"][generator.integers(2)]})
        skus, kinds = generator.permutation(50)[:6], generator.permutation(list("aaabbb"))
        items = pd.DataFrame({"sku": skus, "price": generator.random(6), "kind": kinds})
        decision = learner.act(user, items, ids="sku")
        liked = kinds[skus.tolist().index(decision.action)] == ("a" if user["city"] == "Rome" else "b")
        learner.update(decision, float(liked))
        got.append(liked)
    assert np.mean(got[-40:]) > 0.8
    assert learner.feature_names_in_ == ("age", "city", "price", "kind")
    learner.save(tmp_path / "named.o2pl")
    assert o2pl.load(tmp_path / "named.o2pl").act(user, items, ids="sku") == learner.act(user, items, ids="sku")
    with pytest.raises(o2pl.InvalidInput, match="column 'kind': found none"):
        learner.act(user, items.drop(columns=["kind"]), ids="sku")
