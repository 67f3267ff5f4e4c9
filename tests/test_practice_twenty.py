"""Twenty more ordinary tasks of docs/practice.md, each written as a user would write it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import o2pl
from o2pl.adapters.sklearn import feedback
from o2pl.cli import app


def test_clicks_that_come_late() -> None:
    """As the guide says: all rewards are told when the waiting time is over. 60,000 decisions wait: none is lost."""
    generator = np.random.default_rng(0)
    site = o2pl.Bandit(actions=["news", "sport"], random_state=0)
    shown, clicked = [], set()
    for minute in range(60_000):
        likes_news = bool(generator.random() < 0.5)
        decision = site.act([float(likes_news)])
        shown.append((minute, decision.id))
        if generator.random() < (0.4 if (decision.action == "news") == likes_news else 0.1):
            clicked.add(decision.id)
    for _, due in shown:
        site.update(due, 1.0 if due in clicked else 0.0)
    early, late = site.log_.rewards[:5000], site.log_.rewards[-5000:]
    assert len(site.log_) == 60_000
    assert abs(early.mean() - late.mean()) < 4 * np.sqrt(2 * 0.25 / 5000)
    assert site.predict([[1.0], [0.0]]).tolist() == ["news", "sport"]


def test_the_first_visitor_is_on_a_tablet() -> None:
    generator = np.random.default_rng(0)
    devices, layouts = ["tablet", "phone", "desktop"], ["grid", "list", "wide"]
    page, right = o2pl.Bandit(actions=layouts, random_state=0), []
    for visit in range(1500):
        device = devices[0] if visit == 0 else devices[generator.integers(3)]
        decision = page.act({"device": device})
        page.update(decision, float(decision.action == layouts[devices.index(device)]))
        right.append(decision.action == layouts[devices.index(device)])
    assert page.predict([{"device": device} for device in devices]).tolist() == layouts
    assert np.mean(right[-500:]) > 0.97
    page.act({"device": "watch", "country": {"code": "IT"}, "tags": ["new"], "age": None})  # never seen: no error


def test_an_hour_as_a_word() -> None:
    generator = np.random.default_rng(0)
    page = o2pl.Bandit(actions=["a", "b", "c"], random_state=0)
    for _ in range(3000):
        hour = int(generator.integers(24))
        decision = page.act({"hour": str(hour)})
        page.update(decision, float("abc".index(decision.action) == hour % 3))
    hours = range(24)
    assert page.predict([{"hour": str(hour)} for hour in hours]).tolist() == ["abc"[hour % 3] for hour in hours]


def test_a_log_with_the_features_of_its_actions(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    rows = []
    for _ in range(1500):
        likes = ["red", "blue"][generator.integers(2)]
        offers = [{"colour": ["red", "blue", "green"][generator.integers(3)]} for _ in range(4)]
        shown = int(generator.integers(4))
        click = float(offers[shown]["colour"] == likes)
        rows.append(
            {"context": json.dumps({"likes": likes}), "actions": json.dumps(offers), "action": shown, "reward": click}
        )
    pd.DataFrame(rows).assign(propensity=0.25).to_parquet(tmp_path / "log.parquet")
    learner = o2pl.Bandit(random_state=0).fit(o2pl.read_log(tmp_path / "log.parquet", reward_range=(0, 1)))
    three = [{"colour": "green"}, {"colour": "blue"}, {"colour": "red"}]
    assert [learner.act({"likes": likes}, three).action for likes in ("red", "blue")] == [2, 1]


def test_a_log_in_folders_by_day(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    for day in ("2026-11-16", "2026-11-17"):
        (tmp_path / f"day={day}").mkdir()
        age, shown = generator.integers(18, 80, 500), generator.choice(["news", "sport"], 500)
        bought = (shown == np.where(age < 45, "sport", "news")).astype(float)
        frame = pd.DataFrame({"age": age, "action": shown, "reward": bought, "propensity": 0.5})
        frame.to_parquet(tmp_path / f"day={day}" / "part.parquet")
    with pytest.warns(UserWarning, match=r"not used as context: 'day' \(key of the partitions\)"):
        log = o2pl.read_log(tmp_path)
    learner = o2pl.Bandit(random_state=0).fit(log)
    assert learner.predict([{"age": 20}, {"age": 70}]).tolist() == ["sport", "news"]
    assert {feature.name for feature in learner.explain({"age": 20}).features} == {"age"}


def test_a_whole_sentence() -> None:
    generator = np.random.default_rng(0)
    said = {
        "billing": ["I want a refund for this invoice", "why was my card charged twice"],
        "technical": ["the app shows an error at login", "I cannot reset my password at all"],
    }
    desk = o2pl.Bandit(actions=list(said), random_state=0)
    for _ in range(300):
        team = list(said)[generator.integers(2)]
        decision = desk.act({"prompt": said[team][generator.integers(2)]})
        desk.update(decision, float(decision.action == team))
    new = [{"prompt": "Refund my card, please!"}, {"prompt": "an error when I reset it"}]
    assert desk.predict(new).tolist() == ["billing", "technical"]


def test_an_embedding_beside_words() -> None:
    generator = np.random.default_rng(0)
    direction, learner, right = generator.normal(size=384) / 10, o2pl.Bandit(2, random_state=0), []
    for visit in range(1500):
        kind = visit % 2
        embedding = generator.normal(size=384) / np.sqrt(384) + kind * direction
        decision = learner.act({"device": "phone", "embedding": embedding})
        learner.update(decision, float(decision.action == kind))
        right.append(decision.action == kind)
    assert np.mean(right[-300:]) > 0.85


def test_five_thousand_emails_a_night() -> None:
    generator = np.random.default_rng(0)
    mails = o2pl.Bandit(actions=["none", "discount", "news"], random_state=0)
    for _ in range(3):
        customers = pd.DataFrame(
            {"age": generator.integers(18, 80, 5000), "city": generator.choice(["Rome", "Oslo"], 5000)}
        )
        decisions = mails.act_many(customers)
        sent = pd.DataFrame(decisions.columns)
        wants = np.where(customers["city"] == "Oslo", "news", np.where(customers["age"] < 40, "discount", "none"))
        bought = (sent["action"] == wants).astype(float)
        mails.update_many(sent["id"], bought)
    assert bought.mean() > 0.9
    assert len(mails.log_) == 15_000


def test_decisions_in_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    age, shown = generator.integers(18, 80, 1000), generator.choice(["news", "sport"], 1000)
    bought = (shown == np.where(age < 45, "sport", "news")).astype(float)
    o2pl.Bandit(random_state=0).fit(pd.DataFrame({"age": age}), shown, bought, np.full(1000, 0.5)).save("model.o2pl")
    pd.DataFrame({"customer": range(200), "age": age[:200]}).to_csv("customers.csv", index=False)
    _typed("decide model.o2pl customers.csv --out tonight.csv")
    tonight = pd.read_csv("tonight.csv")
    assert list(tonight.columns) == ["customer", "age", "event_id", "action", "propensity"]
    tonight.assign(reward=1.0)[["event_id", "reward"]][::2].to_csv("bought.csv", index=False)
    _typed("join tonight.csv bought.csv --default 0 --out log.csv")
    log = o2pl.read_log("log.csv", context=["age"])
    assert (len(log), log.rewards.sum()) == (200, 100)


def test_no_context() -> None:
    generator = np.random.default_rng(0)
    machine, pays = o2pl.Bandit(5, random_state=0), [0.1, 0.2, 0.6, 0.3, 0.1]
    for _ in range(1500):
        decision = machine.act()
        machine.update(decision, float(generator.random() < pays[decision.action]))
    assert (machine.log_.actions[-500:] == 2).mean() > 0.9
    nothings: list[Any] = [None, {}, []]
    for nothing in nothings:
        assert 0 < machine.act(nothing).propensity <= 1


def test_an_action_comes_and_one_goes() -> None:
    generator = np.random.default_rng(0)
    page = o2pl.Bandit(actions=["news", "sport", "music"], random_state=0)

    def day(best: str) -> float:
        right = []
        for age in generator.uniform(18, 80, 1000):
            decision = page.act([age])
            page.update(decision, float(decision.action == ("news" if age > 50 else best)))
            right.append(page.log_.rewards[-1])
        return float(np.mean(right[-500:]))

    assert day("sport") > 0.9
    page.add_action("film")
    page.remove_action("sport")
    assert day("film") > 0.9
    assert page.predict([[30.0], [70.0]]).tolist() == ["film", "news"]
    assert len(page.log_) == 2000


def test_revenue_and_costs() -> None:
    generator = np.random.default_rng(0)
    shop = o2pl.Bandit(actions=["cheap", "dear"], random_state=0)  # no range is given: rewards are as they come
    ride = o2pl.Bandit(actions=["short", "long"], random_state=0)
    for _ in range(1500):
        rich = float(generator.integers(2))
        offer, route = shop.act([rich]), ride.act([rich])
        sold = 120 * (generator.random() < 0.1 + 0.4 * rich) if offer.action == "dear" else 25.0
        shop.update(offer, sold)
        ride.update(route, -generator.uniform(10, 20) - 20 * ((route.action == "short") == bool(rich)))
    assert shop.predict([[0.0], [1.0]]).tolist() == ["cheap", "dear"]
    assert ride.predict([[0.0], [1.0]]).tolist() == ["short", "long"]


def test_a_log_of_vw_with_one_line_per_decision(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    lines = []
    for _ in range(800):
        time, shown = ["morning", "evening"][generator.integers(2)], int(generator.integers(1, 3))
        lines.append(f"{shown}:{-float((shown == 1) == (time == 'morning'))}:0.5 | {time}")
    (tmp_path / "log.txt").write_text("\n".join(lines) + "\n")
    log = o2pl.read_log(tmp_path / "log.txt", reward_range=(0, 1))
    assert len(log) == 800
    found = o2pl.evaluate(log[400:], o2pl.Bandit(random_state=0).fit(log[:400]), baseline="logged")
    assert found.value > 0.9


def test_slots_and_numbers_in_logs_of_vw(tmp_path: Path) -> None:
    slots = "ccb shared | user\nccb action | a\nccb action | b\nccb slot 0:-1:0.6,1:0.4 |\nccb slot 1:0:1.0 |\n\n"
    (tmp_path / "slots.txt").write_text(slots * 5)
    assert len(o2pl.read_log(tmp_path / "slots.txt")) == 10  # two decisions each
    (tmp_path / "doses.txt").write_text("ca 2.5:-1:0.1 | x:1\nca 7.5:0:0.1 | x:2\n" * 5)
    doses = o2pl.read_log(tmp_path / "doses.txt")
    assert doses.continuous
    assert doses.actions.tolist() == [2.5, 7.5] * 5


def test_json_lines_of_our_own(tmp_path: Path) -> None:
    generator, lines = np.random.default_rng(0), []
    for _ in range(600):
        user, cars = {"young": bool(generator.integers(2))}, [{"kind": "sports"}, {"kind": "family"}]
        shown = int(generator.integers(2))
        lines.append({"user": user, "cars": cars, "at": shown, "sold": user["young"] == (shown == 0), "p": 0.5})
    (tmp_path / "sales.jsonl").write_text("\n".join(map(json.dumps, lines)))
    how = "context=$.user, items=$.cars[*], chosen=$.at, reward=$.sold, propensity=$.p"
    learner = o2pl.Bandit(random_state=0).fit(o2pl.read_log(tmp_path / "sales.jsonl", mapping=how))
    assert [learner.act({"young": young}, cars).action for young in (True, False)] == [0, 1]
    (tmp_path / "bad.jsonl").write_text(json.dumps({**lines[0], "p": "half"}))
    with pytest.raises(o2pl.InvalidInput, match=r"bad\.jsonl, line 1.*\$\.p.*half"):
        o2pl.read_log(tmp_path / "bad.jsonl", mapping=how)


def test_every_night_a_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    for day in range(3):
        age, shown = generator.integers(18, 80, 300), generator.choice(["news", "sport"], 300)
        bought = (shown == np.where(age < 45, "sport", "news")).astype(int)
        about = {"event_id": [f"{day}-{k}" for k in range(300)], "age": age, "action": shown, "reward": bought}
        pd.DataFrame(about).assign(propensity=0.5).to_csv(f"day{day}.csv", index=False)
    _typed("fit day0.csv --out model.o2pl --rewards 0,1 --candidates bandit")
    for day in (1, 2, 2):
        said = _typed(f"fit day{day}.csv --out model.o2pl --continue model.o2pl")
    assert "0 new rows; 300 were known" in said
    assert len(o2pl.load("model.o2pl").log_) == 900


def test_a_person_asks_to_be_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shop, of_person = o2pl.Bandit(2, random_state=0), []
    for visit in range(300):
        decision = shop.act({"user": {"id": f"u{visit % 10}"}})
        shop.update(decision, float(decision.action == visit % 2))
        of_person += [decision.id] if visit % 10 == 7 else []
    shop.save("shop.o2pl")
    assert shop.forget(of_person) == 30
    pd.DataFrame({"event_id": of_person}).to_csv("ids.csv", index=False)
    assert "30 decisions erased" in _typed("forget shop.o2pl --events ids.csv")
    again = o2pl.load("shop.o2pl")
    assert again.log_.event_ids == shop.log_.event_ids
    assert len(again.log_) == 270


def test_todays_rule_on_a_frame() -> None:
    generator = np.random.default_rng(0)
    visits = pd.DataFrame({"age": generator.integers(18, 80, 2000), "city": generator.choice(["Rome", "Oslo"], 2000)})
    shown = generator.choice(["news", "sport"], 2000)
    bought = (generator.random(2000) < np.where((shown == "sport") == (visits["age"] < 45), 0.6, 0.3)).astype(float)
    log = o2pl.Interactions(visits, shown, bought, np.full(2000, 0.5), reward_range=(0, 1))

    def by_row(rows: Any) -> Any:
        return ["sport" if row["age"] < 45 else "news" for row in rows]

    def by_column(people: Any) -> Any:
        sport = (np.asarray(people["age"]) < 45).astype(float)
        return np.stack([1 - sport, sport], axis=1)  # news, sport

    one, other = (o2pl.evaluate(log, rule, baseline="logged") for rule in (by_row, by_column))
    assert one.value == other.value
    assert abs(one.value - 0.6) < 0.05
    with pytest.raises(o2pl.InvalidInput, match="found 3 probabilities per row, expected 2"):
        o2pl.evaluate(log, lambda people: np.full((len(people), 3), 1 / 3))


def test_mistakes_are_said() -> None:
    learner = o2pl.Bandit(actions=["loan", "card"], reward_range=(0, 1), random_state=0)
    with pytest.raises(o2pl.InvalidInput, match="has seen no data"):
        learner.predict_proba([[1.0]])
    decision = learner.act({"age": 31})
    frame = pd.DataFrame({"age": [31, 40]})
    for call, said in [
        (lambda: learner.update(decision, -1), r"reward_range=\(-1, 1\) \(a cost\?"),
        (lambda: learner.update(decision, "1"), "expected numbers"),
        (lambda: learner.act(frame), "`act_many`, `predict` and `predict_proba` take the frame"),
        (lambda: learner.act({"agee": 31}), "did you mean 'age'"),
        (lambda: learner.act({"income": 31}), "expected only those of the first batch: age"),
        (lambda: learner.set_params(actions=["loan", "car"]), "for a learner that has learned with"),
        (lambda: o2pl.read_log("lgo.csv"), "found no file 'lgo.csv'"),
    ]:
        with pytest.raises(o2pl.InvalidInput, match=said):
            call()
    learner.update(decision, 1.0)  # nothing has changed
    assert len(learner.log_) == 1
    assert feedback(["loan", "card"], [1, 0], [0.5, 0.5]).shape == (2, 3)


def test_files_that_are_no_log_of_decisions(tmp_path: Path) -> None:
    files = {
        "a regression": ("1.5 | a:1 b:2\n", "as of regression"),
        "slates": ("slates shared 0.8 | u\nslates action 0 | a\nslates slot 0:0.6 |\n", "slates, one reward"),
        "all costs": ("1:1.0 2:0.0 | a\n", "cost-sensitive"),
        "a JSON list": ("[{}]\n", "expected an object per line"),
    }
    for name, (content, said) in files.items():
        (tmp_path / name).write_text(content)
        with pytest.raises(o2pl.InvalidInput, match=said):
            o2pl.read_log(tmp_path / name)


def test_the_page_has_all_tasks_and_the_tests_have_them_too() -> None:
    here = Path(__file__)
    typed = "".join((here.parent / name).read_text() for name in ("test_practice.py", here.name))
    tests = set(re.findall(r"^def test_(\w+)\(", typed, re.MULTILINE)) - {
        "the_page_has_all_tasks_and_the_tests_have_them_too"
    }
    page = (here.parents[1] / "docs/practice.md").read_text()
    rows = re.findall(r"^\| (.+?) \| .+ \| \[.+\]\((.+?)\) \|$", page, re.MULTILINE)
    named = {re.sub(r"\W+", "_", task.replace("'", "").lower()) for task, _ in rows}
    assert named == tests
    assert len(rows) == 35
    guide = (here.parents[1] / "docs/guide.md").read_text()
    assert "(practice.md)" in guide


def _typed(line: str) -> str:
    done = CliRunner().invoke(app, line.split())
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output
