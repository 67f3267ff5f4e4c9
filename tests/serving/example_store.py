"""A script: write down a small store of this version, for the tests of later ones.

    python tests/serving/example_store.py

Until the first release the tables may change under the same version: then run it again. Afterwards a change raises
`schema.VERSION`, adds a step to `migrations.STEPS`, and a file of its own here; the older files stay as they are.
"""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from o2pl.serving import schema
from o2pl.serving.applications import digest
from o2pl.serving.batch_writes import ActivationRow, DecisionRow, RewardRow
from o2pl.serving.store import Store

FOLDER = Path(__file__).parents[1] / "files" / "serving"
KEY = "a key of the example"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "o2pl.sqlite"
        with Store.open(file) as store:
            store.add_application("shop")
            with store.writing() as connection:
                connection.exec_driver_sql("DELETE FROM keys")
                connection.exec_driver_sql("UPDATE applications SET created_at = 1.0")
                row = {"digest": digest(KEY), "application_id": 1, "role": "write", "created_at": 1.0}
                connection.execute(schema.keys.insert().values(row))
            context = b'{"user":{"id":"u1"},"_multi":[{"id":"a"},{"id":"b"}]}'
            row = DecisionRow(1, "e1", "", 1000.0, context, b'["a","b"]', 1, None, 0.5, None, 0.7, 0.0, 0)
            store.add(
                [row, row._replace(event_id="e2"), RewardRow(1, "e1", "", 1.0, 1001.0), ActivationRow(1, "e1", 1.0)]
            )
            outcome = {"application_id": 1, "decision_id": 1, "reward": 1.0, "by_default": False, "joined_at": 1002.0}
            store.add_outcomes([outcome])
            store.add_model(1, b"a model", 1, 1)
            with store.writing() as connection:
                connection.exec_driver_sql("UPDATE models SET created_at = 1.0")
        raw = sqlite3.connect(file)
        text = "\n".join(raw.iterdump()) + "\n"
        raw.close()
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"version-{schema.VERSION}.sql").write_text(text)


if __name__ == "__main__":
    main()
