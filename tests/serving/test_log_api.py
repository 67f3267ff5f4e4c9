"""Personalizer's calls about the log: of one application only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.serving.clients import Inside, inside, key

PREFIX = "/personalizer/v1.0"
ACTIONS = [{"id": name, "features": [{"topic": name}]} for name in ("news", "sports")]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Inside]:
    with inside(tmp_path) as found:
        yield found


def test_deleting_the_log_touches_no_other_application(shop: Inside) -> None:
    other = shop.store.add_application("other")
    for application, headers in ((shop.made, {}), (other, key(other.write_key))):
        assert shop.client.post(f"{PREFIX}/rank", json={"actions": ACTIONS}, headers=headers).status_code == 201
        assert len(shop.store.decisions_after(application.id)) == 1
    assert shop.client.delete(f"{PREFIX}/logs", headers=key(shop.made.read_key)).status_code == 403
    assert shop.client.delete(f"{PREFIX}/logs").status_code == 204
    assert not shop.decisions()
    assert len(shop.store.decisions_after(other.id)) == 1
