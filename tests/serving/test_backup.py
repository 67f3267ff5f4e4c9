"""A backup is whole, and is made while others write."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from tests.serving.clients import RANK, server
from tests.serving.postgres import Postgres
from tests.serving.rows import decision, reward

from o2pl.errors import InvalidInput
from o2pl.serving.backup import back_up
from o2pl.serving.store import Store
from o2pl.serving.writer import Writer


def test_a_backup_under_load_is_one_moment(store: Store, tmp_path: Path) -> None:
    key = store.add_application("shop").write_key
    writer, stop = Writer(store), threading.Event()
    acknowledged = 0

    def write() -> None:
        nonlocal acknowledged
        while not stop.is_set():
            name = f"e{acknowledged}"
            writer.submit([decision(name, context=b"x" * 5000), reward(name)]).result()
            acknowledged += 1

    thread = threading.Thread(target=write)
    thread.start()
    while acknowledged < 20:
        pass
    before = acknowledged
    assert back_up(store, tmp_path / "copy.sqlite") > 20 * 5000
    after = acknowledged
    stop.set()
    thread.join()
    writer.stop()
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.sqlite"]
    with Store.open(tmp_path / "copy.sqlite") as copy:
        assert copy.role_of(key) is not None
        decided = [row.event_id for row in copy.decisions_after(1, limit=100_000)]
        rewarded = [row.event_id for row in copy.rewards_after(1, limit=100_000)]
    assert decided == rewarded == [f"e{k}" for k in range(len(decided))]  # whole transactions
    assert before <= len(decided) <= after + 1


def test_nothing_is_overwritten(store: Store, tmp_path: Path) -> None:
    (tmp_path / "copy.sqlite").write_text("precious")
    with pytest.raises(InvalidInput, match="already exists"):
        back_up(store, tmp_path / "copy.sqlite")
    assert (tmp_path / "copy.sqlite").read_text() == "precious"


def test_postgresql_has_its_own(postgres: Postgres, tmp_path: Path) -> None:
    postgres.empty()
    with Store.open(postgres.url) as store, pytest.raises(InvalidInput, match="pg_dump"):
        back_up(store, tmp_path / "copy.sqlite")


ACTIONS = [{"id": name, "features": [{"x": name}]} for name in "ab"]


def ask(client: httpx.Client, events: list[str]) -> None:
    for event in events:
        body = {"eventId": event, "actions": ACTIONS, "contextFeatures": [{"n": len(event)}]}
        chosen = client.post(RANK, json=body)
        assert chosen.status_code == 201
        value = float(chosen.json()["rewardActionId"] == "a")
        assert client.post(RANK.replace("rank", f"events/{event}/reward"), json={"value": value}).status_code == 204


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "o2pl.cli", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def learned(store: Store) -> int:
    found = store.model_versions(1, 1)
    return int(found[0].rows) if found else 0


@pytest.mark.parametrize("earlier", [False, True])
def test_a_running_service_is_backed_up_and_restored_to_any_moment(earlier: bool, tmp_path: Path) -> None:
    """By commands: backup while it serves and learns; the restored one serves with the same keys and learns on."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    copy = new / "o2pl.sqlite"
    first, second, third = ([f"{name}{k}" for k in range(25)] for name in ("first", "second", "third"))
    with server(old) as real, real.client() as client:
        ask(client, first)
        _wait(lambda: _rows(old) == 25)
        moment = datetime.now(UTC).isoformat()
        time.sleep(0.01)
        ask(client, second)
        done = command("backup", copy, "--database", old / "o2pl.sqlite", *(("--until", moment) if earlier else ()))
        assert done.returncode == 0, done.stderr
        ask(client, third)
    kept = first if earlier else first + second
    with Store.open(copy) as store:
        assert [row.event_id for row in store.decisions_after(1)] == kept
        assert [row.event_id for row in store.rewards_after(1)] == kept
        if earlier:
            assert 1 <= learned(store) <= 25
            assert all(row.created_at <= datetime.fromisoformat(moment).timestamp() for row in store.model_versions(1))
    with server(new) as restored, restored.client(real.write_key) as client:
        assert restored.write_key == ""  # no new application
        body = {"eventId": "first3", "actions": ACTIONS, "contextFeatures": [{"n": 6}]}
        assert client.post(RANK, json=body).status_code == 201  # the stored decision, asked for again
        ask(client, third)
        _wait(lambda: _rows(new) == len(kept) + 25)
    with Store.open(copy) as store:
        outcomes = store.outcomes_after(1)
        assert len(outcomes) == len({row.decision_id for row in outcomes}) == len(kept) + 25
        rewards = {row.event_id: row.value for row in store.rewards_after(1)}
        decisions = {row.id: row.event_id for row in store.decisions_after(1)}
        assert all(row.reward == rewards[decisions[row.decision_id]] for row in outcomes)


def _rows(folder: Path) -> int:
    with Store.open(folder / "o2pl.sqlite") as store:
        return learned(store)


def _wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)


@pytest.mark.parametrize("until", ["noon", "2026-11-19T12:00:00"])
def test_a_time_that_is_none_is_said(until: str, tmp_path: Path) -> None:
    Store.open(tmp_path / "o2pl.sqlite").close()
    done = command("backup", tmp_path / "a.sqlite", "--database", tmp_path / "o2pl.sqlite", "--until", until)
    assert done.returncode == 2
    assert "until: found" in done.stderr
    assert not (tmp_path / "a.sqlite").exists()
