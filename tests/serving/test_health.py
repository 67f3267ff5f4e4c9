"""A store that cannot be written, and learning that is behind, are seen from outside."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.serving.clients import inside, key
from tests.serving.rows import decision
from tests.serving.worlds import decide, visits

from o2pl.serving.health import Lag, LearningWatch, lag_of
from o2pl.serving.store import Store
from o2pl.serving.trainer import Trainer

BOTH = True
RULES = Path(__file__).parents[2] / "deploy" / "alerts.yml"


def lag(store: Store, later: float = 0.0) -> Lag:
    with store.reading() as connection:
        found = lag_of(connection, store.application(1), time.time() + later)
    return found._replace(seconds=round(found.seconds))


def test_how_far_learning_is_behind(store: Store) -> None:
    store.add_application("page")
    assert lag(store) == (0, 0)
    g = np.random.default_rng(0)
    decide(store, visits(30, g), g, "a")
    assert lag(store, 100) == (30, 100)  # rewards that nobody joined
    Trainer(store).step(last=True)
    assert lag(store, 100) == (0, 0)
    store.add([decision("b", decided_at=time.time())])
    assert lag(store, 599) == (0, 0)  # it waits for its reward
    assert lag(store, 702) == (0, 100)  # and nobody has given it the default one
    trained = Trainer(store)
    trained.step(time.time() + 702, last=True)
    assert lag(store, 702) == (0, 0)


def test_a_store_that_went_back_is_behind(store: Store, tmp_path: Path) -> None:
    """What was learned from another past of the store does not count."""
    store.add_application("page")
    g = np.random.default_rng(0)
    decide(store, visits(30, g), g, "a")
    Trainer(store).step(last=True)
    with store.writing() as connection:
        connection.exec_driver_sql("DELETE FROM meta WHERE name = 'learned:1'")
    assert lag(store).events == 30


def watched(store: Store, most: float = 0.0) -> list[str]:
    watch = LearningWatch(store, most)
    watch.look()
    return watch.problems()


def test_learning_that_is_behind_by_more_than_is_allowed(store: Store) -> None:
    store.add_application("page")
    store.add([decision("b", decided_at=time.time() - 1602)])
    assert watched(store) == []
    (said,) = watched(store, 600)
    assert re.fullmatch(r"learning is \d+ s behind, expected at most 600", said)
    store.put_note("learning-failed-1", "its settings")  # one application does not make all servers unready
    assert watched(store, 600) == []


def make_read_only(store: Store) -> Callable[[], None]:
    if store.engine.dialect.name == "sqlite":
        from sqlalchemy import event

        def only(raw: object, *_: object) -> None:
            raw.execute("PRAGMA query_only=ON")  # type: ignore[attr-defined]

        event.listen(store.engine, "checkout", only)

        def again(raw: object, *_: object) -> None:
            raw.execute("PRAGMA query_only=OFF")  # type: ignore[attr-defined]

        return lambda: event.listen(store.engine, "checkout", again)
    with store.writing() as connection:
        connection.exec_driver_sql("ALTER DATABASE postgres SET default_transaction_read_only = on")
    store.engine.dispose()

    def undo() -> None:
        with store.writing() as connection:
            connection.exec_driver_sql("SET TRANSACTION READ WRITE")
            connection.exec_driver_sql("ALTER DATABASE postgres RESET default_transaction_read_only")
        store.engine.dispose()

    return undo


def test_a_store_that_can_only_be_read_is_not_ready(store: Store) -> None:
    store.add_application("page")
    watch = LearningWatch(store)
    watch.look()
    assert watch.problems() == []
    undo = make_read_only(store)
    try:
        watch.look()
        assert watch.problems() == ["the database is away, full or read-only"]
    finally:
        undo()
    watch.look()
    assert watch.problems() == []


def test_ready_metrics_and_the_page_say_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with inside(tmp_path) as shop:
        shop.store.add([decision("b", decided_at=time.time() - 1602)])
        shop.service.watch.look()
        reader = key(shop.made.read_key)
        text = shop.client.get("/metrics", headers=reader).text
        found = dict(re.findall(r"^(o2pl_\w+)(?:{application=\"shop\"})? (\S+)$", text, re.M))
        assert (found["o2pl_store_writable"], found["o2pl_trainer_alive"]) == ("1.0", "0.0")
        assert 1000 <= float(found["o2pl_learning_lag_seconds"]) < 1200
        assert shop.client.get("/page/summary/hour", headers=reader).json()["state"]["lag"]["seconds"] > 900
        assert shop.client.get("/ready").json() == {"status": "ready", "problems": []}
        for path in tmp_path.glob("o2pl.sqlite*"):
            path.rename(tmp_path / f"aside-{path.name}")
        shop.service.watch.look()
        assert shop.client.get("/ready").status_code == 503
        assert "o2pl_store_writable 0.0" in shop.client.get("/metrics", headers=reader).text
        for path in tmp_path.glob("aside-*"):
            path.rename(tmp_path / path.name.removeprefix("aside-"))
        shop.service.watch.look()
        assert shop.client.get("/ready").status_code == 200
        named = set(re.findall(r"\bo2pl_[a-z_]+", RULES.read_text()))
        assert named
        assert named <= set(re.findall(r"\bo2pl_[a-z_]+", text))
