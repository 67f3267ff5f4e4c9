"""The page's numbers against the rows they are made of."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event, insert, select
from tests.serving.filled import fill

from o2pl.evaluation.sequences import confidence_sequence, difference_sequence
from o2pl.serving import gain_intervals, page_summary, schema
from o2pl.serving.settings import Kind, Settings
from o2pl.serving.store import Store

NOW = 1_800_000_000.0


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("summary") / "o2pl.sqlite") as store:
        fill(store, "news", minutes=24, per_minute=20, now=NOW)
        store.add_application("empty")
        yield store


def summarised(store: Store, name: str = "news", span: str = "hour", now: float = NOW) -> dict[str, Any]:
    application = store.application(name)
    with store.reading() as connection:
        return page_summary.summarise(connection, application, span, now)


def rows(store: Store, until: float) -> list[Any]:
    """Decided before, with their rewards, in order."""
    with store.reading() as connection:
        query = select(schema.decisions, schema.outcomes.c.reward).join(
            schema.outcomes, schema.outcomes.c.decision_id == schema.decisions.c.id
        )
        return connection.execute(
            query.where(schema.decisions.c.decided_at < until).order_by(schema.decisions.c.id)
        ).all()


def test_rewards_are_those_of_the_rows_up_to_the_first_open_minute(store: Store) -> None:
    found = summarised(store)
    last_known = (NOW // 60 - 3) * 60  # `fill` leaves decisions of the last four minutes open
    assert found["rewards"][-1]["at"] < last_known
    known = rows(store, last_known)
    reward, p = np.array([row.reward for row in known]), np.array([row.propensity for row in known])
    baseline = np.array([row.action == 0 for row in known]) / p
    assert found["total"]["rows"] == len(known)
    own = confidence_sequence(reward, 0.05, common=False).last
    assert found["total"]["reward"] == pytest.approx([reward.mean(), *own], abs=1e-4)
    gain = difference_sequence(reward, (0, 1), np.ones(len(p)), baseline, 0.05, moving=True).last
    expected = reward.mean() - (baseline * reward).sum() / baseline.sum()
    judged = found["total"]["gains"]["baseline"]
    assert [judged["value"], judged["low"], judged["high"]] == pytest.approx([expected, *gain], abs=1e-4)
    assert (judged["verdict"], judged["sign"]) == (("better", 1) if gain[0] > 0 else ("no difference shown", 0))
    assert judged["verdict"] in judged["says"] or "cannot be distinguished" in judged["says"]
    effective = found["overlap"]["uniform"]
    w = 1 / 6 / p
    assert effective["effective"] == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert effective["weight"] == pytest.approx(w.mean())
    in_first = [row for row in known if row.decided_at < found["rewards"][0]["at"] + 60]
    assert found["rewards"][0]["mean"] == pytest.approx(np.mean([row.reward for row in in_first]))


def test_actions_and_traffic_count_every_decision(store: Store) -> None:
    found = summarised(store)
    every = store.decisions_after(1, limit=10_000)
    counts = Counter(json.loads(row.actions)[row.action] for row in every)
    assert {each["id"]: each["count"] for each in found["actions"]["listed"]} == dict(counts.most_common(12))
    assert found["actions"]["others"] == len(every) - sum(n for _, n in counts.most_common(12))
    assert sum(point["decisions"] for point in found["traffic"]) == len(every) == found["state"]["decisions"]
    day = summarised(store, span="day")
    assert sum(point["decisions"] for point in day["traffic"]) * day["width"] == pytest.approx(len(every))
    joined = len(store.outcomes_after(1, limit=10_000))
    assert found["state"]["waiting"] == len(every) - joined
    assert found["state"]["learned"] == joined
    assert found["state"]["behind"] == 0


def test_what_is_older_than_the_span_is_left_out(store: Store) -> None:
    later = summarised(store, now=NOW + 50 * 60)
    assert len(later["traffic"]) == 10
    assert summarised(store, now=NOW + 70 * 60)["traffic"] == []
    assert len(summarised(store, span="month", now=NOW + 70 * 60)["traffic"]) >= 1


def minute_rows(pairs: list[tuple[int, int, int]]) -> list[Any]:
    """(minute, decisions, outcomes)"""

    class Row:
        def __init__(self, minute: int, decisions: int, outcomes: int) -> None:
            self.minute, self.decisions, self.outcomes = minute, decisions, outcomes

    return [Row(*pair) for pair in pairs]


def test_a_minute_with_open_decisions_holds_up_those_after_it_while_it_is_young() -> None:
    """Clicks are known at once and missing clicks after the wait: whole minutes only, in order."""
    rows = minute_rows([(100, 5, 5), (101, 5, 4), (102, 5, 5)])
    assert [row.minute for row in page_summary.settled(rows, now=103 * 60, wait=600)] == [100]
    old = 101 * 60 + 600 + 601  # the wait and a grace of ten minutes are over
    assert [row.minute for row in page_summary.settled(rows, old, 600)] == [100, 102]


def test_an_empty_application_has_an_empty_summary(store: Store) -> None:
    found = summarised(store, "empty")
    assert (found["rewards"], found["traffic"], found["overlap"]) == ([], [], {})
    assert found["total"] == {"rows": 0, "reward": None, "gains": {}}
    assert (found["state"]["version"], found["models"]["listed"]) == (0, [])
    json.dumps(found, allow_nan=False)
    with store.reading() as connection:
        assert page_summary.recent_events(connection, store.application("empty")) == []


def test_events_are_the_newest_first_with_their_reward(store: Store) -> None:
    with store.reading() as connection:
        found = page_summary.recent_events(connection, store.application("news"), 5)
    newest = store.decisions_after(1, limit=10_000)[-5:][::-1]
    assert [each["id"] for each in found] == [row.event_id for row in newest]
    assert [each["action"] for each in found] == [json.loads(row.actions)[row.action] for row in newest]
    assert {each["reward"] for each in found} <= {None, 1.0}  # no click is not known yet


def test_fixed_and_continuous_actions_have_their_names_and_values(tmp_path: Path) -> None:
    from tests.serving.filled import decision

    with Store.open(tmp_path / "o2pl.sqlite") as store:
        fixed = store.add_application("fixed", Kind.FIXED, Settings(actions=("news", "sport")))
        real = store.add_application("price", Kind.CONTINUOUS, Settings(bounds=(0, 10), reward_wait_time=timedelta(0)))
        store.add([decision(fixed.id, "a", actions=b'["news","sport"]', action=1, propensity=0.5)])
        store.add([decision(real.id, "b", value=2.5, propensity=0.1)])
        with store.reading() as connection:
            (one,) = page_summary.recent_events(connection, store.application("fixed"))
            (two,) = page_summary.recent_events(connection, store.application("price"))
    assert (one["action"], one["of"]) == ("sport", 2)
    assert (two["action"], two["of"], two["reward"]) == (2.5, None, None)


def test_an_apprentice_is_compared_with_the_application(tmp_path: Path) -> None:
    from tests.serving.filled import decision

    with Store.open(tmp_path / "o2pl.sqlite") as store:
        made = store.add_application("shop")
        assert summarised(store, "shop")["state"]["agreement"] is None
        own = {"actions": b'["a","b"]', "action": 0, "model_version": 1}
        store.add([decision(made.id, f"e{k}", preferred=int(k == 2), **own) for k in range(3)])
        store.add([decision(made.id, "uniform", preferred=1, **(own | {"model_version": 0}))])
        assert summarised(store, "shop")["state"]["agreement"] == {"rows": 3, "share": 2 / 3}


def test_one_can_go_back_to_versions_of_some_time_ago(tmp_path: Path) -> None:
    """Published every five seconds for two days: the newest five, the one that is held, and older ones by their age."""
    with Store.open(tmp_path / "o2pl.sqlite") as store:
        made = store.add_application("shop")
        rows = [
            {"application_id": made.id, "version": k + 1, "created_at": NOW - 2 * 86400 + 5 * k, "outcome_id": k,
             "rows": k, "body": b"model"}
            for k in range(2 * 86400 // 5)
        ]  # fmt: skip
        with store.writing() as connection:
            connection.execute(insert(schema.models), rows)
        store.pin(made.id, 17)
        found = summarised(store, "shop")["models"]
    ages = [round(NOW - each["at"]) for each in found["listed"]]
    assert ages == [5, 10, 15, 20, 25, 600, 3600, 6 * 3600, 86400, 2 * 86400 - 80]
    assert (found["served"], found["pinned"], found["listed"][-1]["version"]) == (17, 17, 17)


def test_a_month_of_minutes_and_many_decisions_are_summarised_without_reading_them_all(store: Store) -> None:
    """Statements never walk through all decisions or outcomes: SQLite's plan names an index or a range of ids."""
    statements: list[tuple[str, Any]] = []

    def heard(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        statements.append((statement, parameters))

    event.listen(store.engine, "before_cursor_execute", heard)
    try:
        summarised(store, span="month")
        with store.reading() as connection:
            page_summary.recent_events(connection, store.application("news"))
    finally:
        event.remove(store.engine, "before_cursor_execute", heard)
    asked = [(text, values) for text, values in statements if text.startswith("SELECT")]
    assert len(asked) > 5
    with store.reading() as connection:
        for text, values in asked:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values).all()
            walks = [row.detail for row in plan if row.detail.startswith("SCAN")]
            assert not any("decisions" in each or "outcomes" in each for each in walks), (text, walks)


def test_standing_of_all_minutes_adds_up(store: Store) -> None:
    every = store.minutes(1, 0, 2**40)
    total = sum((gain_intervals.unpack(row.standing) for row in every), gain_intervals.nothing())
    assert total[0, 0] == sum(row.outcomes for row in every)
