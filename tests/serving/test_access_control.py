"""Keys, and how often they may call."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.serving.clients import inside, key

from o2pl.serving.access_control import AccessGuard, Limits, head_of
from o2pl.serving.models import Models
from o2pl.serving.problems import Problem
from o2pl.serving.store import Store


def test_keys_come_by_either_header() -> None:
    length = (b"content-length", b"12")
    assert head_of([(b"ocp-apim-subscription-key", b"abc"), length]) == ("abc", 12, None, None)
    assert head_of([(b"authorization", b"bearer  abc")]) == ("abc", None, None, None)
    assert head_of([(b"authorization", b"Basic abc"), (b"content-length", b"-1")]) == (None, None, None, None)
    assert head_of([(b"x-api-key", b"abc"), (b"if-none-match", b' "a"')]) == ("abc", None, None, '"a"')
    assert head_of([(b"authorization", b"Bearer x"), (b"ocp-apim-subscription-key", b"y")]).key == "y"


def test_a_key_is_known_or_not(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.sqlite") as store:
        made = store.add_application("shop")
        models = Models(store)
        models.refresh()
        guard = AccessGuard(models, Limits())
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
        guard = AccessGuard(Models(store), Limits(rate=2, burst=3), clock=lambda: now)
        for _ in range(3):
            guard.admit((1, "write"))
        with pytest.raises(Problem) as refused:
            guard.admit((1, "write"))
        assert refused.value.status == 429
        assert dict(refused.value.headers)[b"retry-after"] == b"1"
        guard.admit((2, "write"))  # applications do not share a bucket
        now += 0.5
        guard.admit((1, "write"))
        with pytest.raises(Problem):
            guard.admit((1, "write"))
        now += 100
        for _ in range(3):
            guard.admit((1, "write"))
        with pytest.raises(Problem):
            guard.admit((1, "write"))
        free = AccessGuard(Models(store), Limits(rate=0), clock=lambda: now)
        for _ in range(10):
            free.admit((1, "write"))


def test_a_batch_counts_as_its_decisions(tmp_path: Path) -> None:
    now = 100.0
    with Store.open(tmp_path / "a.sqlite") as store:
        guard = AccessGuard(Models(store), Limits(rate=10, burst=100), clock=lambda: now)
        guard.admit((1, "write"), 99)
        with pytest.raises(Problem) as refused:
            guard.admit((1, "write"), 30)
        assert dict(refused.value.headers)[b"retry-after"] == b"3"
        guard.admit((1, "write"))
        with pytest.raises(Problem):
            guard.admit((1, "write"))
        now += 1000
        guard.admit((1, "write"), 1000)  # larger than the bucket: it is paid for afterwards
        now += 89
        with pytest.raises(Problem):
            guard.admit((1, "write"))
        now += 2
        guard.admit((1, "write"))


def test_all_keys_and_batches_of_an_application_share_its_limit(tmp_path: Path) -> None:
    fine = {"actions": [{"id": "a"}, {"id": "b"}]}
    with inside(tmp_path, limits=Limits(rate=1e-9, burst=100)) as shop:
        assert shop.client.post("/decide/batch", json={"decisions": [fine] * 90}).status_code == 200
        assert shop.client.post("/decide/batch", json={"decisions": [fine] * 20}).status_code == 429
        other = key(shop.store.add_key(shop.made.id, "write"))
        answers = [shop.client.post("/decide", json=fine, headers=other).status_code for _ in range(12)]
        assert answers == [200] * 9 + [429] * 3
        assert len(shop.decisions()) == 99
