"""Fifteen ordinary tasks of docs/practice.md, each written as a user would write it."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import o2pl
from o2pl.adapters.sklearn import LoggedPolicy, feedback
from o2pl.evaluation.play import play
from o2pl.simulation.rivals.linear import LinUCB
from o2pl.simulation.rivals.vw import VowpalWabbit
from o2pl.simulation.worlds import WORLDS


def test_forty_changing_articles() -> None:
    generator = np.random.default_rng(0)
    taste = generator.normal(size=(8, 8)) / 3
    learner = o2pl.Bandit(random_state=0)
    earned, by_chance, best = [], [], []
    for _ in range(1000):
        user, articles = generator.normal(size=8), generator.normal(size=(40, 8))
        chances = 1 / (1 + np.exp(2 - user @ taste @ articles.T))
        decision = learner.act(user, articles)
        learner.update(decision, reward=float(generator.random() < chances[decision.action]))
        earned.append(chances[decision.action])
        by_chance.append(chances.mean())
        best.append(chances.max())
    chance = np.mean(by_chance)
    assert (np.mean(earned[-300:]) - chance) / (np.mean(best) - chance) > 0.8
    ids = [f"article-{k}" for k in range(40)]
    seen = ids[:30]
    action, propensity = learner.act(user, articles, ids=ids, exclude=seen)
    assert action in ids[30:]
    assert 0 < propensity <= 1


def test_three_slots() -> None:
    generator = np.random.default_rng(0)
    taste = generator.normal(size=(4, 4))
    learner = o2pl.Bandit(random_state=0)
    shown, by_chance = [], []
    for _ in range(500):
        user, articles = generator.normal(size=4), generator.normal(size=(10, 4))
        odds = user @ taste @ articles.T - 1
        decision = learner.act(user, articles, slots=3)
        rewards = generator.random(3) < 1 / (1 + np.exp(-(odds[decision.action] - [0, 1, 2])))
        learner.update(decision, rewards.astype(float))
        shown.append(odds[decision.action].mean())
        by_chance.append(odds.mean())
    actions, propensity = decision
    assert len(set(actions)) == 3
    assert propensity == np.prod(decision.propensities)
    assert np.mean(shown[-150:]) > np.mean(by_chance[-150:]) + 1


def test_why_this_action() -> None:
    generator = np.random.default_rng(0)
    n = 2000
    visits = pd.DataFrame(
        {
            "age": generator.integers(18, 80, n),
            "device": generator.choice(["phone", "desktop"], n),
            "hour": generator.integers(0, 24, n),
        }
    )
    young = visits.age < 45
    shown = generator.choice(["news", "sport"], n)
    chance = np.where(shown == "sport", 0.1 + 0.6 * young, 0.4)
    clicks = (generator.random(n) < chance).astype(float)
    learner = o2pl.Bandit(random_state=0).fit(visits, shown, clicks, np.full(n, 0.5))
    why = learner.explain({"age": 25, "device": "phone", "hour": 9})
    assert (why.action, why.against) == ("sport", "news")
    assert why.features[0].name == "age"
    assert why.features[0].adds > 5 * max(abs(other.adds) for other in why.features[1:])
    assert sum(feature.adds for feature in why.features) + why.intercept == pytest.approx(why.difference)
    assert why.support.actions["sport"].near_reward > 0.6
    assert "sport" in str(why)
    assert "age" in why._repr_html_()
    why.figure()
    table = learner.coefficients().to_frame()
    ages = table[table.term == "age"].pivot(index="member", columns="action", values="coefficient")
    assert (ages["sport"] < ages["news"]).all()


def test_a_frame_with_words_dollars_and_missing_values() -> None:
    generator = np.random.default_rng(0)
    n = 1500
    city = generator.choice(["Rome", "Oslo", "Bern"], n)
    income = np.round(generator.lognormal(10.8, 0.5, n), 2)  # dollars
    customers = pd.DataFrame(
        {
            "city": np.where(generator.random(n) < 0.1, None, city),
            "income": np.where(generator.random(n) < 0.2, np.nan, income),
            "joined": pd.to_datetime("2024-01-01") + pd.to_timedelta(generator.integers(0, 365, n), "D"),
            "member": generator.random(n) < 0.5,
        }
    )
    offers = np.array(["loan", "savings", "card"])
    shown = generator.choice(offers, n)
    best = np.where(city == "Oslo", "card", np.where(income > 50_000, "savings", "loan"))
    bought = (shown == best).astype(float)
    learner = o2pl.Bandit(random_state=0).fit(customers[:1000], shown[:1000], bought[:1000], np.full(1000, 1 / 3))
    known = customers[1000:].notna().all(axis=1).to_numpy()
    assert (learner.predict(customers[1000:])[known] == best[1000:][known]).mean() > 0.85
    backwards = customers[1000:][["member", "joined", "income", "city"]]  # columns in another order
    assert (learner.predict(backwards) == learner.predict(customers[1000:])).all()
    decision = learner.act({"city": "Oslo", "income": 41_000.0, "member": True})  # one field is missing altogether
    assert decision.action == "card"
    learner.update(decision, 1.0)
    with pytest.raises(o2pl.InvalidInput, match="incom"):
        learner.predict(customers.rename(columns={"income": "incom"}))


def test_late_rewards_out_of_order() -> None:
    generator = np.random.default_rng(0)
    learner = o2pl.Bandit(actions=["news", "sport", "music"], random_state=0)
    waiting: dict[str, float] = {}  # what a database would hold: the id, and the reward when it comes
    earned = []
    for _ in range(1500):
        context = generator.normal(size=3)
        decision = learner.act(context)
        reward = float(learner.actions_.index(decision.action) == context.argmax())
        earned.append(reward)
        if generator.random() < 0.9:  # some never come
            waiting[decision.id] = reward
        while len(waiting) > 50:  # rewards come 50 decisions late on average, in any order
            name = list(waiting)[generator.integers(len(waiting))]
            learner.update(name, waiting.pop(name))
    assert np.mean(earned[-300:]) > 0.9
    with pytest.raises(o2pl.InvalidInput, match="again; its reward is"):
        learner.update(learner.log_.event_ids[0], 1.0)


def test_a_csv_log_with_wrong_then_right_propensities(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    n = 6000
    age = generator.normal(40, 10, n)
    likes_sport = 1 / (1 + np.exp((age - 40) / 5))
    sport = generator.random(n) < 0.1 + 0.8 * likes_sport
    right = np.where(sport, 0.1 + 0.8 * likes_sport, 0.9 - 0.8 * likes_sport)
    reward = (generator.random(n) < np.where(sport == (age < 35), 0.6, 0.3)).astype(int)
    table = pd.DataFrame({"age": age, "action": np.where(sport, "sport", "news"), "reward": reward})
    table.assign(propensity=0.5).to_csv(tmp_path / "wrong.csv", index=False)
    table.assign(propensity=right).to_csv(tmp_path / "right.csv", index=False)

    def younger_than_35(people: Any) -> Any:
        return np.where(np.asarray(people)[:, 0] < 35, "sport", "news")

    wrong = o2pl.evaluate(o2pl.read_log(tmp_path / "wrong.csv"), younger_than_35, baseline="logged")
    assert wrong.why_estimated.startswith("the logged propensities do not match the actions")
    log = o2pl.read_log(tmp_path / "right.csv", reward_range=(0, 1))
    found = o2pl.evaluate(log, younger_than_35, baseline="logged")
    assert not found.doubt
    assert not found.why_estimated
    assert abs(found.value - 0.6) < 0.05
    assert found.safe_to_deploy()


def test_save_in_one_process_go_on_in_another(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    learner = o2pl.Bandit(actions=["red", "green"], random_state=0)
    for context in generator.normal(size=(100, 2)):
        learner.update(learner.act(context), float(context[0] > 0))
    waiting = learner.act([0.5, 0.5])
    learner.save(tmp_path / "learner.o2pl")
    code = f"""
import o2pl
learner = o2pl.load({str(tmp_path / "learner.o2pl")!r})
learner.update({waiting.id!r}, 1.0)
print(len(learner.log_), *learner.act([1.0, -1.0]))
"""
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    learner.update(waiting, 1.0)
    action, propensity = learner.act([1.0, -1.0])
    assert there == [str(len(learner.log_)), action, str(propensity)]


def test_against_linucb_and_vw() -> None:
    pytest.importorskip("vowpalwabbit")
    rounds = WORLDS["digits"].sample(1500, np.random.default_rng(1))
    learners = {
        "Bandit": o2pl.Bandit(10, random_state=0),
        "LinUCB": LinUCB(10),
        "VW": VowpalWabbit(10, "greedy", random_state=0),
    }
    earned = {name: play(learner, rounds).rewards.mean() for name, learner in learners.items()}
    assert min(earned.values()) > 0.3  # all three learn
    assert earned["Bandit"] > max(earned["LinUCB"], earned["VW"])


def test_inside_scikit_learn() -> None:
    generator = np.random.default_rng(0)
    n = 600
    x = generator.normal(size=(n, 3))
    actions = generator.integers(3, size=n)
    y = feedback(actions, (actions == x.argmax(axis=1)).astype(float), np.full(n, 1 / 3))
    pipeline = make_pipeline(StandardScaler(), LoggedPolicy(o2pl.O2PL(3, random_state=0)))
    search = GridSearchCV(pipeline, {"loggedpolicy__learner__policy": ["linear", "quadratic"]}, cv=2).fit(x, y)
    assert search.best_score_ > 0.8
    assert (search.predict(x) == x.argmax(axis=1)).mean() > 0.8
    assert clone(search.best_estimator_[-1].learner).get_params() == search.best_estimator_[-1].learner.get_params()


def test_no_propensities(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    n = 4000
    age = generator.normal(40, 10, n)
    sport = generator.random(n) < 1 / (1 + np.exp((age - 40) / 8))
    bought = (generator.random(n) < np.where(sport == (age < 45), 0.5, 0.2)).astype(int)
    table = pd.DataFrame({"age": age, "action": np.where(sport, "sport", "news"), "reward": bought})
    table.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(
        o2pl.InvalidInput, match="expected a column 'propensity'; for a log without propensities: need_prop"
    ):
        o2pl.read_log(tmp_path / "log.csv")
    log = o2pl.read_log(tmp_path / "log.csv", need_propensities=False, reward_range=(0, 1))
    learner = o2pl.Bandit(random_state=0).fit(o2pl.estimate_propensities(log[:2000]))
    assert learner.predict([{"age": 20.0}, {"age": 70.0}]).tolist() == ["sport", "news"]
    found = o2pl.evaluate(log[2000:], learner, baseline="logged")
    assert found.why_estimated
    assert abs(found.value - 0.5) < 0.06
    assert found.difference is not None
    assert found.difference.low > 0


def _works(path: Path, seed: int) -> None:
    """One of two processes: a copy of the learner goes on, and is saved under the process's own name."""
    learner = o2pl.load(path / "common.o2pl")
    generator = np.random.default_rng(seed)
    for context in generator.normal(size=(50, 2)):
        decision = learner.act(context)
        learner.update(decision, float(decision.action == (context[0] > 0)))
    learner.save(path / f"worker-{seed}.o2pl")


def test_two_processes(tmp_path: Path) -> None:
    learner = o2pl.Bandit(2, random_state=0)
    learner.update(learner.act([0.0, 0.0]), 1.0)
    learner.save(tmp_path / "common.o2pl")
    workers = [multiprocessing.get_context("spawn").Process(target=_works, args=(tmp_path, seed)) for seed in (1, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for _ in range(2):  # the second time nothing is new
        for seed in (1, 2):
            learner.merge(tmp_path / f"worker-{seed}.o2pl")
        assert len(learner.log_) == 101
    assert len(set(learner.log_.event_ids)) == 101
    assert learner.predict([[2.0, 0.0], [-2.0, 0.0]]).tolist() == [1, 0]


def test_a_drifting_world() -> None:
    generator = np.random.default_rng(0)
    learner = o2pl.Bandit(2, random_state=0)
    earned = []
    for t in range(3000):
        context = generator.normal(size=3)
        decision = learner.act(context)
        reward = float(decision.action == (context[0] > 0) ^ (t >= 1500))  # from then on all is the other way round
        learner.update(decision, reward)
        earned.append(reward)
    assert np.mean(earned[1000:1500]) > 0.9
    assert np.mean(earned[-500:]) > 0.85
    assert [1500 < change.row < 2500 for change in learner.changes_] == [True]


def test_a_warm_start_from_history() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(2000, 4))
    history = generator.integers(4, size=1000)  # drawn at random
    bought = (history == x[:1000].argmax(axis=1)).astype(float)

    def first_rewards(learner: o2pl.Bandit) -> float:
        earned = 0.0
        for context in x[1000:1200]:
            decision = learner.act(context)
            reward = float(decision.action == context.argmax())
            learner.update(decision, reward)
            earned += reward / 200
        return earned

    cold = first_rewards(o2pl.Bandit(4, random_state=0))
    warm = first_rewards(o2pl.Bandit(4, random_state=0).fit(x[:1000], history, bought, np.full(1000, 0.25)))
    assert warm > 0.9
    assert warm > cold + 0.05


def test_an_any_time_gate_against_todays_rule() -> None:
    def today(contexts: Any) -> Any:
        return np.where(contexts[:, 0] < 20, "news", "sport")

    def is_better(learner: Any) -> Any:  # the one line
        return o2pl.evaluate(learner, "logged", baseline=today, at_any_time=True).safe_to_deploy()

    def after(rounds: int, exploration: float) -> o2pl.Bandit:
        generator = np.random.default_rng(0)
        learner = o2pl.Bandit(actions=["news", "sport"], exploration=exploration, random_state=0)
        for hour in generator.uniform(0, 24, size=(rounds, 1)):
            decision = learner.act(hour)
            learner.update(decision, float(decision.action == ("news" if hour < 12 else "sport")))
        return learner

    learner = after(3000, 0.05)
    verdict = is_better(learner)
    assert verdict
    assert 0 < verdict.bound < verdict.estimate < 0.5
    early = is_better(after(30, 0.05))
    assert not early
    assert early.reason
    unexplored = is_better(after(3000, 0.0))
    assert not unexplored
    assert "does not support" in unexplored.reason
    assert "exploration=0.05" in unexplored.reason


def test_a_price_within_bounds() -> None:
    generator = np.random.default_rng(0)
    customers = generator.normal(size=(3000, 2))
    would_pay = 12 + 2 * customers[:, 0] + generator.logistic(size=3000)
    shop = o2pl.ContinuousBandit(bounds=(5, 20), reward_range=(0, 20), random_state=0)
    earned = []
    for customer, most in zip(customers, would_pay, strict=True):
        price = shop.act(customer)
        assert 5 < price.action < 20
        paid = price.action if price.action < most else 0.0
        shop.update(price, paid)
        earned.append(paid)
    best_single_price = max(np.mean(p * (p < would_pay)) for p in np.linspace(5, 20, 151))
    assert np.mean(earned[-1000:]) > best_single_price + 0.3
    for first, best in ((-1.5, 7.2), (0.0, 9.8), (1.5, 12.6)):  # where p σ(12 + 2x - p) is largest
        assert abs(shop.predict([[first, 0.0]])[0] - best) < 1.5
    with pytest.raises(o2pl.InvalidInput, match="clipped"):
        shop.update(customers[0], 20.0, 0.0, 0.05)
    assert len(shop.log_) == 3000
