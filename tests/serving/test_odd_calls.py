"""Calls that few make: HEAD, numbers beyond all versions, and several at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from tests.serving.clients import inside

from o2pl.cli.serve import _first_application_to_serve
from o2pl.serving.store import Store

BOTH = True
SETTINGS = "/personalizer/v1.0/configurations/service"


def test_head_is_get_without_a_body(tmp_path: Path) -> None:
    with inside(tmp_path) as shop:
        for path in ("/", "/health", "/metrics", SETTINGS):
            found, whole = shop.client.head(path), shop.client.get(path)
            assert (found.status_code, found.content) == (200, b"")
            if path != "/metrics":
                assert found.headers["content-length"] == str(len(whole.content))
        assert shop.client.head("/decide").status_code == 405
        assert httpx.head(f"{shop.client.base_url}{SETTINGS}").status_code == 401


@pytest.mark.parametrize("version", [1e20, 10**20, -1, 2**31])
def test_versions_that_cannot_be(tmp_path: Path, version: float) -> None:
    with inside(tmp_path) as shop:
        assert shop.client.post("/page/serve", json={"version": version}).status_code == 400


def test_models_that_are_published_at_the_same_time(store: Store) -> None:
    store.add_application("shop")
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda k: store.add_model(1, b"model", k, k), range(40)))
    assert sorted(made) == list(range(1, 41))


def test_servers_that_start_at_once_share_the_first_application(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def faster() -> list[object]:
        """Another server adds its application between this look and what follows."""
        monkeypatch.undo()
        store.add_application("default")
        return []

    monkeypatch.setattr(store, "applications", faster)
    assert _first_application_to_serve(store) is None
    assert len(store.applications()) == 1
