"""Log files of several formats as Arrow tables; written atomically."""

from __future__ import annotations

import gzip
import json
import os
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from o2pl.errors import InvalidInput
from o2pl.extras import extra
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.dsjson import read_dsjson, write_dsjson
from o2pl.formats.json_columns import json_context_column, lists_as_json_columns
from o2pl.formats.mapping import Mapping, read_mapped
from o2pl.formats.vw_forms import is_vw_line
from o2pl.formats.vw_text import read_vw_text
from o2pl.formats.vw_writing import write_vw_text

SUFFIXES = {
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".csv": "csv",
    ".dsjson": "dsjson", ".json": "dsjson", ".jsonl": "dsjson", ".vw": "vw", ".txt": "vw", ".dat": "vw",
}  # fmt: skip
_KINDS = "Parquet, Arrow, CSV with a header, VW's dsjson or text, or a saved learner"
_BATCH = 1 << 16  # rows of Parquet per block
_LARGEST_EVENT = 1 << 28  # bytes of a flatbuffer


def kind_of_file(path: Path) -> str:
    """Return the format of a file by its content; a folder is Parquet."""
    if path.is_dir():
        return "parquet"
    if not path.is_file():
        raise InvalidInput(f"log: found no file {str(path)!r}, expected {_KINDS}")
    if zipfile.is_zipfile(path):
        return "learner"
    with opened_file(path) as file:
        start = file.read(1 << 16)
    if start[:4] == b"PAR1":
        return "parquet"
    if start[:6] == b"ARROW1":
        return "arrow"
    if b"\0" in start:
        raise InvalidInput(f"{path.name}: {_binary_file(start)}")
    first = next((line.strip() for line in start.splitlines() if line.strip()), b"")
    if not first:
        raise InvalidInput(f"{path.name}: found an empty file, expected {_KINDS}")
    if first.startswith(b"{"):
        return "dsjson"
    if first == b"[" or first.startswith((b"[{", b"[ {")):
        raise InvalidInput(
            f"{path.name}: found a JSON list, expected an object per line: `jq -c '.[]' {path.name} > log.jsonl`"
        )
    return "vw" if is_vw_line(first) else "csv"


def _binary_file(start: bytes) -> str:
    """Return what a binary file is, and what to do."""
    size, root = (int.from_bytes(start[at : at + 4], "little") for at in (0, 4))
    if start[:4] == b"VWFB":
        return (
            "found RL client's binary log, which is not read; expected its dsjson: `vw -d LOG --binary_parser -t"
            " --quiet` reads it, and the joiner of RL client writes it"
        )
    if 4 <= root < size < _LARGEST_EVENT:
        return (
            "found VW's flatbuffers, which are not read; expected the text or JSON that they were made from"
            " (`to_flatbuff -d LOG.txt --fb_out LOG.fb` makes them, and VW has no command for the way back)"
        )
    return f"found a binary file, expected {_KINDS}"


def kind_of_file_to_write(path: Path) -> str:
    """Return the format of a file to write, by its extension. Line-based formats may end in `.gz`."""
    suffix = (path.with_suffix("") if path.suffix == ".gz" else path).suffix
    if suffix not in SUFFIXES or (path.suffix == ".gz" and SUFFIXES[suffix] not in ("csv", "dsjson", "vw")):
        raise InvalidInput(
            f"{path.name}: found the file extension {path.suffix!r}, expected one of {', '.join(SUFFIXES)}"
        )
    return SUFFIXES[suffix]


def opened_file(path: Path) -> IO[bytes]:
    """Open a file for reading; gzip files are decompressed."""
    file = path.open("rb")
    if file.read(2) == b"\x1f\x8b":
        file.close()
        return gzip.open(path)  # type: ignore[return-value]  # it reads bytes
    file.seek(0)
    return file


# -- reading


def read_file_tables(
    path: Path, bad: BadRows, *, hashed: bool = False, mapping: Mapping | None = None
) -> Iterator[Any]:
    """Yield tables from any format but a saved learner. Rows that cannot be parsed are added to `bad`.

    hashed: features of VW's logs are hashed as they are read; contexts of its text are then not made JSON. mapping: of
    JSON lines of another shape than VW's.
    """
    kind = kind_of_file(path)
    if mapping is not None:
        if kind != "dsjson":
            raise InvalidInput(f"{path.name}: found another format than JSON lines, expected them with a mapping")
        with opened_file(path) as file:
            yield from read_mapped(file, mapping, bad)
        return
    if kind in ("dsjson", "vw"):
        with opened_file(path) as file:
            yield from (read_dsjson if kind == "dsjson" else read_vw_text)(file, bad, hashed=hashed)
        return
    with extra("logs", "reading Parquet and CSV"):
        import pyarrow as pa
        from pyarrow import feather
    if kind == "parquet":
        yield from parquet_file_tables(path)
        return
    try:
        yield _read_csv_file(path, bad) if kind == "csv" else feather.read_table(path)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path.name}: expected {_KINDS} ({error})") from None


class ParquetPart(NamedTuple):
    """A part of a Parquet log; it can be sent to another process."""

    path: Path  # path of the log
    fragment: Any
    schema: Any
    start: int  # number of its first row in the log
    rows: int


def parquet_file_parts(path: Path, *, small: bool = False) -> list[ParquetPart]:
    """Return the parts of a Parquet file or folder in order: its files or, if small, their row groups."""
    with extra("logs", "reading Parquet and CSV"):
        import pyarrow as pa
        from pyarrow import dataset
    data, start, found = _dataset_of_files(path), 0, []
    for file in data.get_fragments():
        keys = dataset.get_partition_keys(file.partition_expression)  # `day=2024-05-01/part.parquet`
        schema = (
            note_columns_of_file(data.schema, dict.fromkeys(keys, "key of the partitions")) if keys else data.schema
        )
        try:
            for fragment in file.split_by_row_group() if small else [file]:
                rows = fragment.count_rows()
                found.append(ParquetPart(path, fragment, schema, start, rows))
                start += rows
        except (pa.ArrowException, OSError) as error:
            raise _unreadable_file(path, file.path, error) from None
    return found


_NOT_CONTEXT = b"o2pl: not context"


def note_columns_of_file(schema: Any, reasons: dict[str, str]) -> Any:
    """Return the schema with a note of columns that are not context, and why; Parquet and Arrow files keep it."""
    note = json.dumps({**file_columns_not_context(schema), **reasons})
    return schema.with_metadata({**(schema.metadata or {}), _NOT_CONTEXT: note})


def file_columns_not_context(schema: Any) -> dict[str, str]:
    """Return the columns that are not context, and why: keys of partitions, and what was noted when it was written."""
    found: dict[str, str] = json.loads((schema.metadata or {}).get(_NOT_CONTEXT, b"{}"))
    return found


def parquet_part_tables(part: ParquetPart) -> Iterator[Any]:
    """Yield small tables of a part; few rows are in memory at a time."""
    import pyarrow as pa
    from pyarrow import dataset

    few: dict[str, Any] = {"batch_size": _BATCH, "batch_readahead": 2, "fragment_readahead": 1}
    # No read-ahead: it would load the whole file into memory.
    few["fragment_scan_options"] = dataset.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
    try:
        for batch in dataset.Scanner.from_fragment(part.fragment, schema=part.schema, **few).to_batches():
            if batch.num_rows:
                yield pa.Table.from_batches([batch]).replace_schema_metadata(part.schema.metadata)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable_file(part.path, part.fragment.path, error) from None


def parquet_file_tables(path: Path) -> Iterator[Any]:
    """Yield small tables of a Parquet file or folder."""
    for part in parquet_file_parts(path):
        yield from parquet_part_tables(part)


def parquet_file_size(path: Path) -> tuple[int, int]:
    """Return the numbers of rows and columns, from the files' metadata."""
    parts = parquet_file_parts(path)
    return sum(part.rows for part in parts), len(parts[0].schema) if parts else 0


def _dataset_of_files(path: Path) -> Any:
    with extra("logs", "reading Parquet and CSV"):
        import pyarrow as pa
        from pyarrow import dataset
    try:
        return dataset.dataset(path, format="parquet", partitioning="hive")
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"{path.name}: expected {_KINDS} ({error})") from None


def _unreadable_file(path: Path, file: str, error: Exception) -> InvalidInput:
    """Return an error that names the file of the log, and what to do."""
    name = Path(file).name if Path(file) == path else f"{path.name}/{os.path.relpath(file, path)}"
    return InvalidInput(
        f"{name}: cannot be read ({str(error).splitlines()[0]}), expected Parquet with the columns of the other files."
        " Write it again or remove it, and rerun the same command"
    )


def _read_csv_file(path: Path, bad: BadRows) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    with opened_file(path) as file:
        names = [name.strip().strip('"') for name in file.readline().decode("utf-8", "replace").split(",")]
    kept = ["event_id"]  # an id such as 1e999 is not a number
    if "context" in names:  # a converted log: keep the text
        kept += ["context", "actions", "ranking", "probabilities", "time", "rest", "slot_rest"]
    texts = dict.fromkeys(kept, pa.string())
    wrong = []

    def unlike(row: Any) -> str:
        wrong.append((row.number, f"found {row.actual_columns} values, expected {row.expected_columns}"))
        return "skip"

    with opened_file(path) as file:
        table = csv.read_csv(
            file,
            read_options=csv.ReadOptions(use_threads=False),  # so that row numbers are known
            parse_options=csv.ParseOptions(invalid_row_handler=unlike),
            convert_options=csv.ConvertOptions(column_types=texts, strings_can_be_null=True),
        )
    for number, reason in wrong:
        bad.line(number, reason)
    return table.drop_columns([""]) if "" in table.column_names else table  # the index column of pandas


def read_file_table(path: Path, bad: BadRows, mapping: Mapping | None = None) -> Any:
    """Return the whole file as one table, for `log_of_table`."""
    tables = list(read_file_tables(path, bad, hashed=True, mapping=mapping))
    if not tables:
        raise InvalidInput(f"{path.name}: found no rows, expected at least one")
    import pyarrow as pa

    try:
        return pa.concat_tables(tables, promote_options="default")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidInput(f"{path.name}: found files with different columns ({error})") from None


# -- writing


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to the target. It replaces the target on success and is removed on failure."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_file_tables(path: Path, tables: Iterable[Any]) -> int:
    """Write tables in the format of the file extension. Returns the number of rows."""
    kind, rows = kind_of_file_to_write(path), 0

    def counted() -> Iterator[Any]:
        nonlocal rows
        for table in tables:
            rows += table.num_rows
            yield table

    with whole_file(path) as partial:
        if kind in ("dsjson", "vw"):
            write = write_dsjson if kind == "dsjson" else write_vw_text
            with (gzip.open if path.suffix == ".gz" else open)(partial, "wb") as file:
                for line in write(json_context_column(counted(), numbered=kind == "vw")):
                    file.write(line)
        else:
            _write_arrow_file(kind, partial, counted(), packed=path.suffix == ".gz")
    return rows


def _write_arrow_file(kind: str, path: Path, tables: Iterator[Any], packed: bool) -> None:
    with extra("logs", "writing Parquet and CSV"):
        import pyarrow as pa
        from pyarrow import csv, parquet
    first = next(tables, None)
    if first is None:
        raise InvalidInput("log: found no rows to write, expected at least one")
    if kind == "csv":
        first = lists_as_json_columns(first)
    with pa.OSFile(str(path), "wb") as raw:
        sink = pa.CompressedOutputStream(raw, "gzip") if packed else raw
        made = {"csv": csv.CSVWriter, "arrow": pa.ipc.new_file, "parquet": parquet.ParquetWriter}[kind]
        with made(sink, first.schema) as writer:
            write = writer.write if kind == "csv" else writer.write_table
            write(first)
            for table in tables:
                write((lists_as_json_columns(table) if kind == "csv" else table).cast(first.schema))
        if packed:
            sink.close()
