"""Keys, and how often they may call."""

from __future__ import annotations

from pathlib import Path

import pytest

from o2pl.serving.guarding import Guard, Limits, head_of
from o2pl.serving.models import Models
from o2pl.serving.problems import Problem
from o2pl.serving.store import Store


def test_keys_come_by_either_header() -> None:
    length = (b"content-length", b"12")
    assert head_of([(b"ocp-apim-subscription-key", b"abc"), length]) == ("abc", 12)
    assert head_of([(b"authorization", b"bearer  abc")]) == ("abc", None)
    assert head_of([(b"authorization", b"Basic abc"), (b"content-length", b"-1")]) == (None, None)
    assert head_of([(b"authorization", b"Bearer x"), (b"ocp-apim-subscription-key", b"y")]).key == "y"


def test_a_key_is_known_or_not(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.sqlite") as store:
        made = store.add_application("shop")
        models = Models(store)
        models.refresh()
        guard = Guard(models, Limits())
        for key, role in ((made.write_key, "write"), (made.read_key, "read")):
            caller = guard.caller(key)
            assert caller is not None
            assert (caller.role, caller.served.application.name) == (role, "shop")
            assert key not in repr(caller)
        for key in (None, "", "x", made.write_key[:-1], made.write_key + "x", "é", "\udcff"):
            assert guard.caller(key) is None
        reader = guard.caller(made.read_key)
        assert reader is not None
        guard.check_role(reader, "read")
        with pytest.raises(Problem, match="expected the write key"):
            guard.check_role(reader, "write")


def test_a_bucket_empties_and_fills(tmp_path: Path) -> None:
    now = 100.0
    with Store.open(tmp_path / "a.sqlite") as store:
        guard = Guard(Models(store), Limits(rate=2, burst=3), clock=lambda: now)
        for _ in range(3):
            guard.admit("a")
        with pytest.raises(Problem) as refused:
            guard.admit("a")
        assert refused.value.status == 429
        assert dict(refused.value.headers)[b"retry-after"] == b"1"
        guard.admit("b")  # keys do not share a bucket
        now += 0.5
        guard.admit("a")
        with pytest.raises(Problem):
            guard.admit("a")
        now += 100
        for _ in range(3):
            guard.admit("a")
        with pytest.raises(Problem):
            guard.admit("a")
        free = Guard(Models(store), Limits(rate=0), clock=lambda: now)
        for _ in range(10):
            free.admit("a")
