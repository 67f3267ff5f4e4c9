"""A person's events go: from the tables, from the bytes of the file, from exported files; the trainer is told."""

from __future__ import annotations

from pathlib import Path

from tests.serving.rows import decision, joined, reward

import o2pl
from o2pl.formats.erasing import Where
from o2pl.serving.erasure import forget, refit_wanted
from o2pl.serving.export import export
from o2pl.serving.store import Store

BOTH = True  # databases


def filled(store: Store) -> None:
    for name in ("shop", "news"):
        application = store.add_application(name).id
        for k in range(12):
            context = b'{"user":{"id":"person%d"},"_multi":[{"id":"a"},{"id":"b"}]}' % (k % 3)
            slot = "top" if k == 1 else ""
            row = decision(f"e{k}", application, context=context, decided_at=60.0 * k, slot=slot)
            store.add([row, reward(f"e{k}", application=application, slot=slot)])
        joined(store, application)


def test_a_person_goes_from_everywhere(store: Store, tmp_path: Path) -> None:
    filled(store)
    shop = store.application("shop")
    kept, moved, lost = tmp_path / "log.parquet", tmp_path / "log.dsjson", tmp_path / "lost.parquet"
    for path in (kept, moved, lost):
        export(store, shop, path)
    moved = moved.rename(tmp_path / "moved.dsjson")
    lost.unlink()
    gone = forget(store, store.applications(), Where.parsed("user.id=person1"), files=[moved])
    assert gone.decisions == 8
    assert gone.files == {kept: 4, moved: 4}
    assert gone.missing == [tmp_path / "log.dsjson", lost]
    for application in (1, 2):
        left = store.decisions_after(application)
        assert [row.event_id for row in left] == [f"e{k}" for k in range(12) if k % 3 != 1]
        assert len(store.rewards_after(application)) == len(store.outcomes_after(application)) == 8
        with store.reading() as connection:
            assert refit_wanted(connection, application) == (1, [1, 4, 7, 10])
    for path in (kept, moved):
        assert len(o2pl.read_log(path, reward_range=(0, 1))) == 8
    if store.engine.dialect.name == "sqlite":
        everything = b"".join(path.read_bytes() for path in tmp_path.glob("o2pl.sqlite*"))
        assert b"person2" in everything
        assert b"person1" not in everything
    assert forget(store, store.applications(), Where.parsed("user.id=person1")).decisions == 0
    with store.reading() as connection:
        assert refit_wanted(connection, 1)[0] == 1  # nothing went: nothing to learn anew


def test_events_by_their_ids(store: Store, tmp_path: Path) -> None:
    filled(store)
    export(store, store.application("shop"), tmp_path / "log.parquet")
    gone = forget(store, [store.application("shop")], events=["e0", "e1", "nobody"])
    assert gone.decisions == 2
    assert gone.files == {tmp_path / "log.parquet": 2}  # e1 has a slot
    assert len(store.decisions_after(1)) == 10
    assert len(store.decisions_after(2)) == 12
