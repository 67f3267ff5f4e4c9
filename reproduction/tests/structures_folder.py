"""A folder of small classification sets, for the tests of `structures`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

# As the manifest has them: rows and classes. Positions from 0: even ones are for tuning, odd ones for confirmation.
SETS = {
    "7_seven": (400, 3),
    "3_three": (320, 4),
    "9_nine": (300, 2),
    "1_one": (299, 3),
    "5_five": (300, 3),
    "2_two": (40, 2),
    "28_optdigits": (350, 3),
    "44_spambase": (60, 2),
}


def write_sets(folder: Path) -> str:
    generator = np.random.default_rng(0)
    for stem, (rows, classes) in SETS.items():
        labels = np.arange(rows) % classes
        columns = {"x": labels + 0.3 * generator.normal(size=rows), "z": generator.normal(size=rows), "target": labels}
        pq.write_table(pa.table(columns), folder / f"{stem}.parquet")
    lines = [f"{stem.split('_')[0]},{stem.split('_')[1]},{rows},{k}" for stem, (rows, k) in SETS.items()]
    (folder / "MANIFEST.csv").write_text("\n".join(["id,name,rows,n_classes", *lines]) + "\n")
    return str(folder)
