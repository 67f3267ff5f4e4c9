from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from toy_experiment import TOY, numbers

from o2pl.simulation import store
from o2pl.simulation.engines import attempt_in_engines
from o2pl.simulation.experiment import Options
from o2pl.simulation.runner import run
from o2pl.simulation.store import Busy, ResultStore

FULL = Options("full")


class Inline:
    """No processes: for tests of what is kept, not of how it is computed."""

    def compute(self, run: Any, units: Any) -> Iterator[Any]:
        for unit in units:
            yield unit, attempt_in_engines(run, unit)


@pytest.mark.parametrize("harm", ["cut", "flipped", "foreign", "other columns"])
def test_a_harmed_part_is_computed_again(tmp_path: Path, log: Any, harm: str) -> None:
    run(TOY, FULL, out=tmp_path, engine=Inline())
    before = (tmp_path / "toy.parquet").read_bytes()
    kept = ResultStore(tmp_path, TOY)
    path = kept.part(TOY.unit(5, FULL))
    content = bytearray(path.read_bytes())
    if harm == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif harm == "flipped":
        value = np.float64(pq.read_table(path)["value"][1].as_py()).tobytes()
        place = content.find(value)
        assert place > 0
        content[place] ^= 1
        path.write_bytes(content)
    elif harm == "foreign":
        path.write_bytes(kept.part(TOY.unit(6, FULL)).read_bytes())
    else:
        table = pq.read_table(path)
        pq.write_table(table.append_column("more", pa.array([0] * len(table))), path)
    assert run(TOY, FULL, out=tmp_path, engine=Inline()).computed == 1
    assert numbers(log).count(5) == 2
    assert (tmp_path / "toy.parquet").read_bytes() == before


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    def breaks_off(file: Any) -> None:
        file.write(b"half of")
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        store.store_whole(tmp_path / "new", breaks_off)
    assert not list(tmp_path.iterdir())  # no .partial either
    store.store_whole(tmp_path / "old", lambda file: file.write(b"all of it"))
    with pytest.raises(OSError, match="no space"):
        store.store_whole(tmp_path / "old", breaks_off)
    assert (tmp_path / "old").read_bytes() == b"all of it"


def test_two_runs_cannot_write_to_one_folder(tmp_path: Path) -> None:
    with ResultStore(tmp_path, TOY).locked(), pytest.raises(Busy, match="another run is writing there"):
        run(TOY, FULL, out=tmp_path, engine=Inline())
    assert run(TOY, FULL, out=tmp_path, engine=Inline()).computed == 12
