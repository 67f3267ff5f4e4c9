"""Results on disk: one small Parquet file per finished unit, and the table assembled from them.

    out/wheel/4b1f….parquet     rows of one unit, named by the digest of its settings
    out/wheel/failed-17.txt     the traceback of a unit that failed
    out/wheel.parquet           all selected units by number: the same bytes on any engine
    out/wheel.seconds.parquet   seconds of each unit, not reproducible

A file appears under its name only when it is complete (written to a temporary file, flushed, renamed), and only the
process that holds the folder's lock writes. So after a crash, existing files are valid, and the rest is missing.
Each file also says which sources computed it (`sources`): rows of others are not taken for today's.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from o2pl.errors import InvalidInput
from o2pl.extras import extra, require_extra
from o2pl.locks import FileLock
from o2pl.simulation import sources
from o2pl.simulation.experiment import Columns, Experiment, Unit

if TYPE_CHECKING:
    from pyarrow import Table

_DIGEST, _SECONDS, _SETTINGS = b"o2pl.digest", b"o2pl.seconds", b"o2pl.settings"
_SOURCES = b"o2pl.sources"  # `digest_of_sources` of the ones that computed the rows
State = Literal["missing", "finished", "of other sources"]


class Busy(InvalidInput):
    """Raised if another run is writing to the same folder."""


class ResultStore:
    """The results of one experiment under `out`."""

    def __init__(self, out: str | os.PathLike[str], experiment: Experiment) -> None:
        require_extra("experiments", "running experiments")
        self.out = Path(out)
        self.experiment = experiment
        self.folder = self.out / experiment.name
        self.sources = sources.digest_of_sources(experiment.run)

    def part(self, unit: Unit) -> Path:
        return self.folder / f"{unit.digest}.parquet"

    def failure(self, unit: Unit) -> Path:
        return self.folder / f"failed-{unit.number}.txt"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the writer's lock; the system releases it when the process ends."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / "lock")
        if not lock.take():
            raise Busy(f"{self.folder}: another run is writing there; wait for it, or choose another --out")
        try:
            yield
        finally:
            lock.release()

    def state(self, unit: Unit) -> State:
        """Return whether this unit's rows exist and are valid, and whether today's sources computed them."""
        if not self.part(unit).exists():
            return "missing"
        try:
            schema = self._read_part(unit).schema
            if schema.metadata[_DIGEST] != unit.digest.encode() or not schema.equals(self._schema()):
                return "missing"
            return "finished" if schema.metadata.get(_SOURCES) == self.sources.encode() else "of other sources"
        except (OSError, ValueError, KeyError, TypeError):  # Arrow's errors are OSError and ValueError
            return "missing"

    def keep(self, unit: Unit, columns: Columns, seconds: float) -> None:
        """Store the rows of a finished unit."""
        import pyarrow as pa

        expected = self.experiment.columns
        if set(columns) != set(expected):
            raise InvalidInput(f"{unit.id}: found columns {sorted(columns)}, expected {sorted(expected)}")
        notes = {
            _DIGEST: unit.digest, _SETTINGS: unit.settings, _SECONDS: json.dumps(seconds), _SOURCES: self.sources,
        }  # fmt: skip
        table = pa.table([columns[name] for name in expected], schema=self._schema().with_metadata(notes))
        _store_table(table, self.part(unit))
        self.failure(unit).unlink(missing_ok=True)

    def keep_failure(self, unit: Unit, traceback: str) -> None:
        store_whole(self.failure(unit), lambda file: file.write(f"{unit.id} {unit.settings}\n\n{traceback}".encode()))

    def assemble(self, units: Sequence[Unit], name: str) -> Path:
        """Assemble `out/name.parquet` from the finished ones of `units`."""
        import pyarrow as pa

        tables, seconds = [], []
        for unit in units:
            rows = self._read_part(unit)
            seconds.append(json.loads(rows.schema.metadata[_SECONDS]))
            rows = rows.replace_schema_metadata(None)
            for place, (column, value) in enumerate(_stored_identity(unit).items()):
                kind = pa.int64() if isinstance(value, int) else pa.string()
                rows = rows.add_column(place, column, pa.repeat(pa.scalar(value, kind), len(rows)))
            tables.append(rows)
        path = self.out / f"{name}.parquet"
        _store_table(pa.concat_tables(tables), path)
        identities = pa.Table.from_pylist([_stored_identity(unit) for unit in units])
        _store_table(identities.append_column("seconds", pa.array(seconds, pa.float64())), _stored_seconds_path(path))
        return path

    def _schema(self) -> Any:
        import pyarrow as pa

        return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in self.experiment.columns.items()])

    def _read_part(self, unit: Unit) -> Table:
        import pyarrow.parquet as pq

        return pq.read_table(self.part(unit), page_checksum_verification=True)


def results(out: str | os.PathLike[str], name: str) -> Table:
    """Return the rows of an experiment (`wheel`) or of one unit (`wheel/17`) as a pyarrow Table.

    Every row has its unit (number, world, learner, seed, rounds and all settings as JSON) and the experiment's columns.
    The rows do not depend on when, where or on how many workers they were computed.
    """
    with extra("experiments", "reading results"):
        import pyarrow.parquet as pq

    path = Path(out) / f"{stored_table_name(name)}.parquet"
    if not path.exists():
        raise InvalidInput(f"{path}: not there; a run of {name!r} with this folder as `out` writes it")
    return pq.read_table(path)


def copy_stored_compactly(source: Path, target: Path) -> None:
    """Copy the rows with strong compression."""
    with extra("experiments", "reading results"):
        import pyarrow.parquet as pq

    rows = pq.read_table(source)
    store_whole(target, lambda file: pq.write_table(rows, file, compression="zstd", compression_level=19))


def seconds(out: str | os.PathLike[str], name: str) -> Table:
    """Return the seconds of each unit, including compilation and other load: not reproducible."""
    with extra("experiments", "reading results"):
        import pyarrow.parquet as pq

    return pq.read_table(_stored_seconds_path(Path(out) / f"{stored_table_name(name)}.parquet"))


def stored_table_name(name: str) -> str:
    """Return the table's file stem: `wheel` -> `wheel`, `wheel/17` -> `wheel-17`."""
    return name.replace("/", "-")


def _stored_seconds_path(path: Path) -> Path:
    return path.with_suffix(".seconds.parquet")


def _stored_identity(unit: Unit) -> dict[str, Any]:
    return {
        "unit": unit.number,
        "world": unit.world["name"],
        "learner": unit.learner["name"],
        "seed": unit.seed,
        "rounds": unit.rounds,
        "settings": unit.settings,
    }


def _store_table(table: Table, path: Path) -> None:
    import pyarrow.parquet as pq

    store_whole(path, lambda file: pq.write_table(table, file, write_page_checksum=True))


def store_whole(path: Path, content: Callable[[IO[bytes]], object]) -> None:
    """Write a file atomically."""
    beside = path.with_name(f"{path.name}.partial")
    try:
        with open(beside, "wb") as file:
            content(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    with contextlib.suppress(OSError):  # some systems cannot flush a folder; then only the name may be lost
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
