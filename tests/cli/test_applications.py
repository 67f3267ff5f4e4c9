"""`o2pl app`, and what is wrong with commands on a store."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from o2pl.cli import app
from o2pl.serving.applications import Role, digest
from o2pl.serving.settings import Kind
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


def test_keys_are_listed_and_revoked_one_by_one() -> None:
    call("app", "add", "shop")
    more = call("app", "key", "shop").stdout.strip()
    lines = call("app", "keys", "shop").stdout.splitlines()
    assert [line.split()[1] for line in lines] == ["write", "read", "write"]
    assert more not in "".join(lines)
    assert "a write key of shop is revoked" in call("app", "revoke", "shop", digest(more)[:12]).stdout
    with Store.open("o2pl.sqlite") as store:
        assert store.role_of(more) is None
        assert len(store.keys()) == 2
    assert "found 0 keys" in call("app", "revoke", "shop", "", status=2).output
