"""Backups that are restored again and again, and hostile files sent to a server: `make faults`, fifty times."""

from __future__ import annotations

import shutil
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from tests.serving import deciders
from tests.serving.clients import RANK, inside, key
from tests.serving.faults import times
from tests.serving.test_model_checks import body_of, parts_of
from tests.serving.worlds import decide, visits

from o2pl.serving.backup import back_up
from o2pl.serving.settings import Settings
from o2pl.serving.store import Store
from o2pl.serving.trainer import Trainer

RESTORES = times(4)
HOSTILE = times(5)
MODEL = "/personalizer/v1.0/model"
ACTIONS = {"actions": [{"id": name, "features": [{"x": 1}]} for name in "abc"]}


def test_a_store_that_is_restored_again_and_again_is_learned_whole(tmp_path: Path) -> None:
    """Under the same trainer or another one, with or without its state: every outcome once, none of a lost event."""
    database, state, g = tmp_path / "o2pl.sqlite", tmp_path / "state", np.random.default_rng(3)
    often = Settings(model_export_frequency=timedelta(microseconds=1))
    with Store.open(database) as store:
        store.add_application("page", settings=often)
        trainer = Trainer(store, state)
        kept = 0
        for k in range(RESTORES):
            size, lost = int(g.integers(5, 40)), int(g.integers(1, 60))
            decide(store, visits(size, g), g, f"kept{k}")
            if g.random() < 0.7:
                trainer.step(last=True)
            copy = tmp_path / f"copy{k}.sqlite"
            back_up(store, copy)
            decide(store, visits(lost, g), g, f"lost{k}")
            if g.random() < 0.7:
                trainer.step(last=True)
            kept += size
            for suffix in ("-wal", "-shm"):
                Path(f"{database}{suffix}").unlink(missing_ok=True)
            copy.replace(database)
            if g.random() < 0.5:
                if g.random() < 0.3:
                    shutil.rmtree(state, ignore_errors=True)
                trainer = Trainer(store, state)
            trainer.step(last=True)
            newest = store.model_versions(1, 1)[0]
            assert newest.rows == kept, k
            events = [row.event_id for row in store.decisions_after(1, limit=10**6)]
            assert len(events) == len(set(events)) == kept
            assert not any(event.startswith("lost") for event in events)


def spoiled(k: int, g: Any) -> bytes:
    """A policy with bytes, numbers or shapes changed at random, cut, or not one at all."""
    body = deciders.body_of(deciders.ranked())
    if k % 5 == 0:
        return bytes(g.integers(0, 256, int(g.integers(1, 4000)), dtype=np.uint8))
    if k % 5 == 1:
        return body[: int(g.integers(1, len(body)))]
    header, arrays = parts_of(body)
    names = [name for name, array in arrays.items() if array.size]
    name = names[int(g.integers(len(names)))]
    if k % 5 == 2:
        arrays[name] = arrays[name].reshape(-1)[: int(g.integers(arrays[name].size))]
    elif k % 5 == 3:
        arrays[name] = np.full(arrays[name].shape, np.nan) if arrays[name].dtype.kind == "f" else arrays[name] * 0 - 7
    else:
        header["members"] = {"object": "os.system", "fields": {"command": "true"}}
    return body_of(header, arrays)


def test_hostile_files_reach_no_neighbour(tmp_path: Path) -> None:
    g = np.random.default_rng(11)
    with inside(tmp_path) as shop:
        other = shop.store.add_application("other")
        assert shop.client.put(MODEL, content=deciders.body_of(deciders.ranked())).status_code == 204
        served = shop.client.get(MODEL).content
        over, statuses = threading.Event(), list[int]()

        def neighbour() -> None:
            with httpx.Client(base_url=shop.client.base_url, headers=key(other.write_key), timeout=60) as client:
                while not over.is_set():
                    statuses.append(client.post(RANK, json=ACTIONS).status_code)

        thread = threading.Thread(target=neighbour)
        thread.start()
        try:
            taken = 0
            for k in range(HOSTILE):
                answer = shop.client.put(MODEL, content=spoiled(k, g))
                may_be_fine = k % 5 in (2, 3)  # other numbers of the right shape, or fewer of them
                assert answer.status_code == 400 or (answer.status_code == 204 and may_be_fine), (k, answer.text)
                taken += answer.status_code == 204
                assert shop.client.post(RANK, json=ACTIONS).status_code == 201
                assert shop.client.get("/ready").status_code == 200
        finally:
            over.set()
            thread.join()
        assert set(statuses) == {201}
        if not taken:
            assert shop.client.get(MODEL).content == served
    with Store.open(tmp_path / "o2pl.sqlite") as store:  # and the next start reads what is stored
        assert store.served_version(1) >= 1
