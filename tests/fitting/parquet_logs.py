"""Small Parquet logs for the tests of fits out of core."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet


def write_parquet(folder: Path, n: int = 6000, files: int = 3, seed: int = 0) -> Path:
    """Numbers, words, booleans and missing values; actions that are words; one folder per day, as Hive has it."""
    rng = np.random.default_rng(seed)
    x, city, mobile = rng.normal(size=(n, 3)), rng.choice(["Rome", "Oslo", "Lima"], n), rng.random(n) < 0.3
    names = np.array(["blue", "green", "red"])
    action = rng.integers(3, size=n)
    z = np.stack([x[:, 0] + mobile, x[:, 1] - 1.0 * (city == "Rome"), 1.5 * (city == "Oslo") - x[:, 2]], axis=1)
    reward = rng.random(n) < 1 / (1 + np.exp(-z[np.arange(n), action]))
    gone = rng.random(n) < 0.1
    columns: dict[str, Any] = {f"x{k}": x[:, k].astype(np.float32) for k in range(2)}
    columns |= {"x2": pa.array(x[:, 2], mask=gone), "city": city, "mobile": mobile, "action": names[action]}
    table = pa.table(columns | {"reward": reward.astype(float), "propensity": np.full(n, 1 / 3)})
    for day, rows in enumerate(np.array_split(np.arange(n), files)):
        path = folder / f"day={day}"
        path.mkdir(parents=True, exist_ok=True)
        parquet.write_table(table.slice(rows[0], len(rows)), path / "rows.parquet")
    return folder
