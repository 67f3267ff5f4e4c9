"""`o2pl export`, `o2pl backup`, `o2pl forget` and `o2pl retain`: the life of a log."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.serving.rows import decision, reward
from typer.testing import CliRunner, Result

import o2pl
from o2pl.cli import app
from o2pl.serving.settings import Settings
from o2pl.serving.store import Store


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("O2PL_DATABASE", raising=False)


def call(*arguments: str, status: int = 0) -> Result:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == status, (done.output, done.exception)
    return done


def test_the_life_of_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("O2PL_DATABASE", "mine.sqlite")
    now = time.time()
    with Store.open("mine.sqlite") as store:
        application = store.add_application("shop", settings=Settings(log_retention_days=7)).id
        for k in range(8):
            context = b'{"user":{"id":%d},"_multi":[{"id":"a"},{"id":"b"}]}' % (k % 4)
            row = decision(f"e{k}", application, context=context, decided_at=now - k * 2 * 86400)
            store.add([row, reward(f"e{k}", application=application, received_at=row.decided_at + 1)])
        store.add([decision("new", application, decided_at=now)])
    done = call("export", "log.parquet")
    assert "8 rows: log.parquet" in done.stdout
    assert "1 decisions have no outcome yet" in done.stderr
    assert len(o2pl.read_log("log.parquet", reward_range=(0, 1))) == 8
    assert "copy.sqlite" in call("backup", "copy.sqlite").stdout
    done = call("forget", "--where", "user.id=3")
    assert "2 decisions erased" in done.stdout
    assert "2 rows erased from" in done.stdout
    done = call("retain", "--days", "11", "--archive", "old")
    assert "shop: kept 11 days; 1 decisions and 0 models deleted" in done.stdout
    assert "shop: kept 7 days; 2 decisions and 0 models deleted" in call("retain").stdout
    with Store.open("mine.sqlite") as store, Store.open("copy.sqlite") as copy:
        assert [row.event_id for row in store.decisions_after(1)] == ["e0", "e1", "e2", "new"]
        assert len(copy.decisions_after(1)) == 9
    assert len(list(Path("old").glob("*.parquet"))) == 1
