"""Files of the service are its owner's; damaged ones are refused; unknown keys are counted and logged."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.serving.clients import inside, key, server
from tests.serving.rows import decision
from tests.serving.worlds import decide, visits

from o2pl import InvalidInput
from o2pl.cli.database import open_database_store
from o2pl.serving.applications import digest
from o2pl.serving.backup import back_up
from o2pl.serving.store import Store
from o2pl.serving.trainer import Trainer


@pytest.mark.skipif(sys.platform == "win32", reason="no such permissions")
def test_nobody_else_reads_the_files(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with Store.open(tmp_path / "o2pl.sqlite") as store:
            store.add_application("shop")
            g = np.random.default_rng(0)
            decide(store, visits(30, g), g, "a")
            Trainer(store, tmp_path / "state").step(last=True)
            back_up(store, tmp_path / "copy.sqlite")
            found = [*tmp_path.glob("*.sqlite*"), tmp_path / "state"]
            assert len(found) >= 4
            assert [path.name for path in found if stat.S_IMODE(path.stat().st_mode) & 0o077] == []
    finally:
        os.umask(before)


def test_a_damaged_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "o2pl.sqlite"
    with Store.open(file) as store:
        store.add_application("shop")
        store.add([decision(f"e{k}", context=b"{}" + b" " * 500) for k in range(500)])
    whole, size = file.read_bytes(), file.stat().st_size
    open_database_store(str(file))[0].close()
    damage = b"\x5a" * 8192
    file.write_bytes(whole[: size // 2] + damage + whole[size // 2 + 8192 :])
    with pytest.raises(InvalidInput, match=r"damaged file.*o2pl backup.*\.recover"):
        open_database_store(str(file))
    file.write_bytes(whole[:4096] + damage + whole[4096 + 8192 :])  # what every start reads
    with pytest.raises(InvalidInput, match=r"damaged file.*o2pl backup.*\.recover"):
        open_database_store(str(file))


def test_unknown_keys_are_counted_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with inside(tmp_path) as shop:
        for _ in range(5):
            assert shop.client.get("/metrics", headers=key("a-guess")).status_code == 401
        text = shop.client.get("/metrics", headers=key(shop.made.read_key)).text
        assert "o2pl_keys_refused_total 5.0" in text
    said = [record for record in caplog.records if record.message == "key missing, unknown or expired"]
    assert 1 <= len(said) <= 5
    assert said[0].__dict__["client"] == "127.0.0.1"
    assert "a-guess" not in caplog.text


@pytest.mark.skipif(sys.platform == "win32", reason="no journal")
def test_keys_are_in_no_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOURNAL_STREAM", "8:1")
    monkeypatch.chdir(tmp_path)
    with server(tmp_path, "--no-trainer") as real:
        lines = dict(line.split(": ") for line in (tmp_path / "o2pl.keys").read_text().splitlines())
        said = real.output.read_text()
        for name in ("write key", "read key"):
            assert lines[name].strip() not in said
        assert stat.S_IMODE((tmp_path / "o2pl.keys").stat().st_mode) == 0o600
        with real.client(lines["write key"].strip()) as client:
            assert client.get("/metrics").status_code == 200


def test_changes_of_settings_are_logged_with_whose_key(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "o2pl.serving")
    with inside(tmp_path) as shop:
        at = "/personalizer/v1.0/configurations/service"
        shop.client.get(at)
        shop.client.put(at, json={"defaultReward": 0.5})
        shop.client.put(at, json={"defaultReward": 7})
        shop.client.post("/decide", json={"actions": [{"id": "a"}]})
    said = [record.__dict__ for record in caplog.records if record.message == "administrative call"]
    own = digest(shop.made.write_key)[:12]
    assert [(one["application"], one["method"], one["status"], one["key"]) for one in said] == [
        ("shop", "PUT", 200, own), ("shop", "PUT", 400, own)
    ]  # fmt: skip
    assert shop.made.write_key not in caplog.text
