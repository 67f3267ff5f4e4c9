"""File format of saved learners: a zip of a JSON header and plain arrays. Versioned, checksummed, no pickle."""

from __future__ import annotations

import importlib
import io
import json
import lzma
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from types import FunctionType
from typing import IO, Any

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.protocols import Array
from o2pl.version import __version__

FORMAT = "o2pl"
MOST_OUTSIDE, _MOST_ENTRIES = 512 * 2**20, 10_000  # limits of a file from outside, unpacked: bytes and parts
VERSION = 2  # version of written files; versions from OLDEST on can be read
OLDEST = 2

# Migrations from version v to v + 1: (header, arrays) -> (header, arrays). A format change adds one, and a file of the
# old version in `tests/files/saved`.
Upgrade = Callable[[dict[str, Any], dict[str, Array]], tuple[dict[str, Any], dict[str, Array]]]
UPGRADES: dict[int, Upgrade] = {}


class UnreadableFile(InvalidInput):
    """Raised for a file that is not a saved learner, is damaged, or has an unsupported version."""


class MissingFile(UnreadableFile, FileNotFoundError):
    """Raised where there is no file of that name."""


_STAMP = {"format": FORMAT, "version": VERSION, "o2pl": __version__}


def write_storage(path: str | os.PathLike[str], header: Mapping[str, object], arrays: Mapping[str, Array]) -> None:
    """Write a temporary file and rename it: after a crash, the old or the new file exists, never a partial one."""
    target = Path(path)
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        _storage_archive(partial, header, arrays, zipfile.ZIP_STORED)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def packed_storage(header: Mapping[str, object], arrays: Mapping[str, Array]) -> bytes:
    """Return the content of the file that `write_storage` writes, as compressed bytes."""
    held = io.BytesIO()
    _storage_archive(held, header, arrays, zipfile.ZIP_DEFLATED)
    return held.getvalue()


def _storage_archive(file: Any, header: Mapping[str, Any], arrays: Mapping[str, Array], compression: int) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(_storage_entry("header.json"), json.dumps({**_STAMP, **header}), compression)
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(_storage_entry(f"{name}.npy"), buffer.getvalue(), compression)


def _storage_entry(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name)  # no time stamp: equal learners give equal files


def read_storage(
    path: str | os.PathLike[str] | IO[bytes], name: str = "", outside: bool = False
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays, verified by the archive's checksums. name: file name for messages.

    outside: the file is from somebody else. It is data only: it may not name functions, and unpacks to a limited size.
    """
    source, path = path, name or str(path)
    if isinstance(source, str | os.PathLike) and not Path(source).is_file():
        raise MissingFile(f"{path}: found {_instead_of_storage(Path(source))}, expected a saved learner")
    try:
        with zipfile.ZipFile(source) as archive:
            if outside:
                _check_storage_sizes(path, archive)
            header = json.loads(archive.read("header.json"))
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                found = header.get("format") if isinstance(header, dict) else header
                raise UnreadableFile(f"{path}: found format {str(found)[:40]!r}, expected {FORMAT!r}")
            _check_storage_version(path, header)
            if outside:
                _refuse_functions(path, header)
            arrays = {
                name.removesuffix(".npy"): np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)
                for name in archive.namelist()
                if name.endswith(".npy")
            }
    except (
        zipfile.BadZipFile, KeyError, ValueError, EOFError, NotImplementedError, zlib.error, RecursionError,
        RuntimeError, struct.error, lzma.LZMAError,
    ) as error:  # fmt: skip
        if isinstance(error, UnreadableFile):
            raise
        raise UnreadableFile(f"{path}: not a saved learner, or cut short ({error})") from error
    for version in range(header["version"], VERSION):
        header, arrays = UPGRADES[version](header, arrays)
    return header, arrays


def _check_storage_sizes(path: str | os.PathLike[str], archive: zipfile.ZipFile) -> None:
    """Refuse a file before anything of it is unpacked: a small one may hold gigabytes."""
    entries = archive.infolist()
    total = sum(entry.file_size for entry in entries)
    if total > MOST_OUTSIDE or len(entries) > _MOST_ENTRIES:
        raise UnreadableFile(
            f"{path}: unpacks to {len(entries):,} parts of {total / 2**20:,.0f} MiB, expected at most {_MOST_ENTRIES:,}"
            f" parts of {MOST_OUTSIDE / 2**20:,.0f} MiB"
        )
    if len({entry.filename for entry in entries}) < len(entries):
        raise UnreadableFile(f"{path}: has a part twice, expected different names")


def _refuse_functions(path: str | os.PathLike[str], header: dict[str, Any]) -> None:
    """Refuse settings that name functions: to read them would import a module of the file's choice."""
    level: list[Any] = [header]
    while level:
        if any(isinstance(each, dict) and "function" in each for each in level):
            raise UnreadableFile(
                f"{path}: names a function, which a file from elsewhere may not; expected settings and numbers only"
            )
        parts = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        level = [part for each in parts for part in each]


def _instead_of_storage(path: Path) -> str:
    """Return what is where a file was expected, and what may be meant."""
    if path.is_dir():
        return "a folder"
    if not path.parent.is_dir():
        return f"no folder {str(path.parent)!r}"
    close = get_close_matches(path.name, [each.name for each in path.parent.iterdir() if each.is_file()], 1)
    return "no file" + (f" (did you mean {close[0]!r}?)" if close else "")


def _check_storage_version(path: str | os.PathLike[str], header: dict[str, Any]) -> None:
    found = header.get("version")
    if isinstance(found, int) and OLDEST <= found <= VERSION:
        return
    by = f", written by o2pl {header['o2pl']}" if "o2pl" in header else ""
    if isinstance(found, int) and found > VERSION:
        raise UnreadableFile(
            f"{path}: found file version {found}{by}; this is o2pl {__version__}, which reads up to {VERSION}:"
            " install a newer o2pl"
        )
    raise UnreadableFile(f"{path}: found file version {found!r}{by}, expected {OLDEST} to {VERSION}")


_KNOWN: dict[str, type] = {}


def storable(cls: type) -> type:
    """Class decorator: allow instances of this frozen dataclass in saved headers, by class name."""
    _KNOWN[cls.__name__] = cls
    return cls


def encode_for_storage(value: object) -> Any:
    """Encode settings as JSON: plain values, sequences, arrays and storable dataclasses."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": str(value.dtype)}
    if isinstance(value, tuple | list):
        return {type(value).__name__: [encode_for_storage(item) for item in value]}
    if is_dataclass(value) and type(value).__name__ in _KNOWN:
        content = {field.name: encode_for_storage(getattr(value, field.name)) for field in fields(value)}
        return {"object": type(value).__name__, "fields": content}
    if isinstance(value, FunctionType):
        return {"function": _storage_name(value)}
    raise InvalidInput(f"cannot be saved: {value!r} of type {type(value).__name__}")


def _storage_name(function: FunctionType) -> str:
    """Return the import path of a function: files contain no code."""
    module, name = function.__module__, function.__qualname__
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not function or module == "__main__":
        raise InvalidInput(
            f"cannot be saved: the function {name} of {module} cannot be imported from there; define it at the top"
            " level of a"
            " module (a file) and import it"
        )
    return f"{module}:{name}"


def _imported_from_storage(where: str) -> FunctionType:
    module, _, name = where.partition(":")
    try:
        if module.partition(".")[0] in sys.stdlib_module_names:
            raise ImportError(f"{module} is a module of Python")
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise UnreadableFile(
            f"settings name the function {name!r} of the module {module!r}, which cannot be imported ({error}); make"
            " that"
            " module importable, as it was where the file was saved"
        ) from error
    if not isinstance(found, FunctionType):
        raise UnreadableFile(f"settings name {where!r} as a function, found a {type(found).__name__}")
    return found


def decode_from_storage(value: object) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.array(value["array"], dtype=value["dtype"])
    if "function" in value:
        return _imported_from_storage(value["function"])
    if "tuple" in value:
        return tuple(decode_from_storage(item) for item in value["tuple"])
    if "list" in value:
        return [decode_from_storage(item) for item in value["list"]]
    if value.get("object") not in _KNOWN:
        raise UnreadableFile(f"settings name {value.get('object')!r}, which this o2pl does not have")
    return _KNOWN[value["object"]](**{name: decode_from_storage(item) for name, item in value["fields"].items()})
