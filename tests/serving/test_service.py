"""The parts of a server, and bodies that are not UTF-8."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec import Raw, Struct
from tests.serving.rows import decision

from o2pl.serving.database import StoreUnavailable
from o2pl.serving.problems import Problem
from o2pl.serving.service import Route, Service, decoder, in_versions
from o2pl.serving.store import Store


class Body(Struct):
    part: Raw


def test_bytes_that_are_kept_as_they_are_must_be_utf8() -> None:
    decode = decoder(Body)
    assert bytes(decode('{"part":"é"}'.encode()).part) == '"é"'.encode()
    with pytest.raises(UnicodeDecodeError):
        decode(b'{"part":"\xff"}')


def test_a_decision_is_stored_once_and_nothing_after_the_stop(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "a.sqlite")
    store.add_application("shop")
    service = Service(store)

    async def twice() -> None:
        await service.refresh()
        served = service.models.of[1]
        assert await service.store_decision(served, decision("e"), "code") is None
        before = await service.store_decision(served, decision("e", uniform=0.1), "code")
        assert before is not None
        assert [row.uniform for row in before] == [0.7]
        with pytest.raises(Problem, match="already"):
            await service.store_decision(served, decision("e", context=b"{}"), "code")
        service.stop()
        with pytest.raises(StoreUnavailable):
            await service.store_decision(served, decision("f"), "code")

    asyncio.run(twice())
    with Store.open(tmp_path / "a.sqlite") as again:
        assert [row.event_id for row in again.decisions_after(1)] == ["e"]


def test_routes_in_versions() -> None:
    route = Route("GET", "/a", lambda call: None, "code", "says", tag="x")  # type: ignore[arg-type, return-value]
    one, two = in_versions([route], "/p", ["v1", "v2"], "v2")
    assert (one.path, one.documented, two.path, two.documented) == ("/p/v1/a", False, "/p/v2/a", True)
