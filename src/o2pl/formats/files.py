"""Files of logs, of any make, as Arrow tables; written whole or not at all."""

from __future__ import annotations

import gzip
import os
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from o2pl.errors import InvalidInput
from o2pl.extras import extra
from o2pl.formats.bad import BadRows
from o2pl.formats.dsjson import read_dsjson, write_dsjson
from o2pl.formats.nested import flat_lists, json_contexts
from o2pl.formats.vw_text import read_vw_text, write_vw_text

SUFFIXES = {
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".csv": "csv",
    ".dsjson": "dsjson", ".json": "dsjson", ".jsonl": "dsjson", ".vw": "vw", ".txt": "vw", ".dat": "vw",
}  # fmt: skip
_KINDS = "Parquet, Arrow, CSV with a header, VW's dsjson or text, or a saved learner"
_BATCH = 1 << 16  # rows of Parquet at a time


def kind_of_file(path: Path) -> str:
    """By what is in it; of a folder, Parquet."""
    if path.is_dir():
        return "parquet"
    if not path.is_file():
        raise InvalidInput(f"log: found no file {str(path)!r}, expected {_KINDS}")
    if zipfile.is_zipfile(path):
        return "learner"
    with opened(path) as file:
        start = file.read(1 << 16)
    if start[:4] == b"PAR1":
        return "parquet"
    if start[:6] == b"ARROW1":
        return "arrow"
    first = next((line.strip() for line in start.splitlines() if line.strip()), b"")
    if not first:
        raise InvalidInput(f"{path.name}: found an empty file, expected {_KINDS}")
    if first.startswith(b"{"):
        return "dsjson"
    return "vw" if b"|" in first and (first.startswith((b"shared", b"|")) or b":" in first.split(b"|")[0]) else "csv"


def kind_of_suffix(path: Path) -> str:
    """Of a file that is to be written; `.gz` may follow where lines are written."""
    suffix = (path.with_suffix("") if path.suffix == ".gz" else path).suffix
    if suffix not in SUFFIXES or (path.suffix == ".gz" and SUFFIXES[suffix] not in ("csv", "dsjson", "vw")):
        raise InvalidInput(f"{path.name}: found the ending {path.suffix!r}, expected one of {', '.join(SUFFIXES)}")
    return SUFFIXES[suffix]


def opened(path: Path) -> IO[bytes]:
    """To read; what gzip made is unpacked."""
    file = path.open("rb")
    if file.read(2) == b"\x1f\x8b":
        file.close()
        return gzip.open(path)  # type: ignore[return-value]  # it reads bytes
    file.seek(0)
    return file


# -- reading


def read_tables(path: Path, bad: BadRows) -> Iterator[Any]:
    """Of any kind but a saved learner; rows that cannot be parsed are added to `bad`."""
    kind = kind_of_file(path)
    if kind in ("dsjson", "vw"):
        with opened(path) as file:
            yield from (read_dsjson if kind == "dsjson" else read_vw_text)(file, bad)
        return
    with extra("logs", "reading Parquet and CSV"):
        import pyarrow as pa
        from pyarrow import feather
    if kind == "parquet":
        yield from parquet_tables(path)
        return
    try:
        yield _read_csv(path, bad) if kind == "csv" else feather.read_table(path)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path.name}: expected {_KINDS} ({error})") from None


class Part(NamedTuple):
    """Some rows of a Parquet file; it can be sent to another process."""

    path: Path  # of the log
    fragment: Any
    schema: Any
    start: int  # the number of its first row, in the log
    rows: int


def parquet_parts(path: Path, *, small: bool = False) -> list[Part]:
    """Of a file or a folder of them, in order: its files; or, if they shall be small, their groups of rows."""
    with extra("logs", "reading Parquet and CSV"):
        import pyarrow as pa
    data, start, found = _dataset(path), 0, []
    for file in data.get_fragments():
        try:
            for fragment in file.split_by_row_group() if small else [file]:
                rows = fragment.count_rows()
                found.append(Part(path, fragment, data.schema, start, rows))
                start += rows
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, file.path, error) from None
    return found


def part_tables(part: Part) -> Iterator[Any]:
    """A few rows at a time; few of them are in memory at once."""
    import pyarrow as pa
    from pyarrow import dataset

    few: dict[str, Any] = {"batch_size": _BATCH, "batch_readahead": 2, "fragment_readahead": 1}
    # Read ahead of need, a file would be in memory as a whole.
    few["fragment_scan_options"] = dataset.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
    try:
        for batch in dataset.Scanner.from_fragment(part.fragment, schema=part.schema, **few).to_batches():
            if batch.num_rows:
                yield pa.Table.from_batches([batch])
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(part.path, part.fragment.path, error) from None


def parquet_tables(path: Path) -> Iterator[Any]:
    """Of a file or a folder of them, a few rows at a time."""
    for part in parquet_parts(path):
        yield from part_tables(part)


def parquet_size(path: Path) -> tuple[int, int]:
    """Rows and columns, from what the files say of themselves."""
    parts = parquet_parts(path)
    return sum(part.rows for part in parts), len(parts[0].schema) if parts else 0


def _dataset(path: Path) -> Any:
    with extra("logs", "reading Parquet and CSV"):
        import pyarrow as pa
        from pyarrow import dataset
    try:
        return dataset.dataset(path, format="parquet", partitioning="hive")
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"{path.name}: expected {_KINDS} ({error})") from None


def _unreadable(path: Path, file: str, error: Exception) -> InvalidInput:
    """Says which file of a log it is, and what to do."""
    name = Path(file).name if Path(file) == path else f"{path.name}/{os.path.relpath(file, path)}"
    return InvalidInput(
        f"{name}: found a file that cannot be read ({str(error).splitlines()[0]}), expected Parquet with the columns of"
        " the other files; write it again, or take it away, and run the same command again"
    )


def _read_csv(path: Path, bad: BadRows) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    with opened(path) as file:
        names = [name.strip().strip('"') for name in file.readline().decode("utf-8", "replace").split(",")]
    kept = ("context", "actions", "ranking", "probabilities", "event_id", "time", "rest", "slot_rest")
    texts = dict.fromkeys(kept, pa.string()) if "context" in names else {}  # a log that was converted: as it was
    wrong = []

    def unlike(row: Any) -> str:
        wrong.append((row.number, f"found {row.actual_columns} values, expected {row.expected_columns}"))
        return "skip"

    with opened(path) as file:
        table = csv.read_csv(
            file,
            read_options=csv.ReadOptions(use_threads=False),  # so that rows are numbered
            parse_options=csv.ParseOptions(invalid_row_handler=unlike),
            convert_options=csv.ConvertOptions(column_types=texts, strings_can_be_null=True),
        )
    for number, reason in wrong:
        bad.line(number, reason)
    return table.drop_columns([""]) if "" in table.column_names else table  # the number of the row, as pandas writes it


def read_table(path: Path, bad: BadRows) -> Any:
    """The whole file as one table."""
    tables = list(read_tables(path, bad))
    if not tables:
        raise InvalidInput(f"{path.name}: found no rows, expected at least one")
    import pyarrow as pa

    try:
        return pa.concat_tables(tables, promote_options="default")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidInput(f"{path.name}: found files with other columns ({error})") from None


# -- writing


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A name beside the target to write to; it takes the target's place when all is written, and else it is gone."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_tables(path: Path, tables: Iterable[Any]) -> int:
    """The format is that of the name's ending. The number of rows."""
    kind, rows = kind_of_suffix(path), 0

    def counted() -> Iterator[Any]:
        nonlocal rows
        for table in tables:
            rows += table.num_rows
            yield table

    with whole(path) as partial:
        if kind in ("dsjson", "vw"):
            write = write_dsjson if kind == "dsjson" else write_vw_text
            with (gzip.open if path.suffix == ".gz" else open)(partial, "wb") as file:
                for line in write(json_contexts(counted())):
                    file.write(line)
        else:
            _write_arrow(kind, partial, counted(), packed=path.suffix == ".gz")
    return rows


def _write_arrow(kind: str, path: Path, tables: Iterator[Any], packed: bool) -> None:
    with extra("logs", "writing Parquet and CSV"):
        import pyarrow as pa
        from pyarrow import csv, parquet
    first = next(tables, None)
    if first is None:
        raise InvalidInput("log: found no rows to write, expected at least one")
    if kind == "csv":
        first = flat_lists(first)
    with pa.OSFile(str(path), "wb") as raw:
        sink = pa.CompressedOutputStream(raw, "gzip") if packed else raw
        made = {"csv": csv.CSVWriter, "arrow": pa.ipc.new_file, "parquet": parquet.ParquetWriter}[kind]
        with made(sink, first.schema) as writer:
            write = writer.write if kind == "csv" else writer.write_table
            write(first)
            for table in tables:
                write((flat_lists(table) if kind == "csv" else table).cast(first.schema))
        if packed:
            sink.close()
