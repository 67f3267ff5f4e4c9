"""The commands on a store, as they are typed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.serving.rows import decision, reward
from typer.testing import CliRunner, Result

import o2pl
from o2pl.cli import app
from o2pl.serving.applications import Role
from o2pl.serving.settings import Kind, Settings
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


def test_applications_and_keys() -> None:
    lines = call("app", "add", "shop", "--rewards", "-1,1").stdout.splitlines()
    keys = {line.partition(":")[0]: line.split()[-1] for line in lines}
    call("app", "add", "banner", "--kind", "fixed", "--actions", "red, blue")
    call("app", "add", "price", "--kind", "continuous", "--bounds", "0,10")
    with Store.open("o2pl.sqlite") as store:
        assert store.role_of(keys["write key"]) == Role(1, "write")
        assert store.role_of(keys["read key"]) == Role(1, "read")
        assert store.application("shop").settings.reward_range == (-1.0, 1.0)
        assert (store.application("banner").kind, store.application("banner").settings.actions) == (
            Kind.FIXED, ("red", "blue"),
        )  # fmt: skip
        assert store.application("price").settings.bounds == (0.0, 10.0)
        key = call("app", "key", "shop", "--role", "read", "--replace").stdout.strip()
        assert store.role_of(key) == Role(1, "read")
        assert store.role_of(keys["read key"]) is None
        assert store.role_of(keys["write key"]) is not None
    listed = call("app", "list").stdout
    assert all(name in listed for name in ("shop", "banner", "price", "continuous", "-1 to 1"))
    assert keys["write key"] not in listed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["app", "add", "x", "--kind", "fxed"], "kind: found 'fxed', expected 'fixed'"),
        (["app", "add", "x", "--kind", "fixed", "--actions", "a"], "at least two"),
        (["app", "add", "x", "--kind", "continuous", "--bounds", "a,b"], "bounds: found 'a,b'"),
        (["app", "key", "x"], "found no file 'o2pl.sqlite'"),
        (["export", "x.parquet", "--database", "elsewhere.sqlite"], "found no file 'elsewhere.sqlite'"),
        (["forget", "--where", "user"], "found no file"),
        (["forget"], "neither --where nor --event"),
        (["backup", "x", "--database", "mysql://h/d"], "expected the path of a SQLite file or postgresql://"),
    ],
)
def test_what_is_wrong_is_one_line(arguments: list[str], said: str) -> None:
    done = call(*arguments, status=2)
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_database_that_cannot_be_reached_is_one_line() -> None:
    done = call("app", "list", "--database", "postgresql://u:secret@127.0.0.1:1/nothing", status=1)
    assert "refused" in done.stderr
    assert "secret" not in done.stderr


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


def test_which_application() -> None:
    call("app", "add", "shop")
    call("app", "add", "news")
    assert "found 2 applications (shop, news)" in call("export", "log.parquet", status=2).stderr
    assert "found 'shopp', expected 'shop'" in call("export", "log.parquet", "--app", "shopp", status=2).stderr
