from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from o2pl import InvalidInput
from o2pl.policies import Softmax, UniformMixture
from o2pl.storage import UnreadableFile, decode_from_storage, encode_for_storage, read_storage, write_storage


def test_a_file_brings_back_what_was_written_and_is_the_same_each_time(tmp_path: Path) -> None:
    arrays = {"theta": np.arange(6.0).reshape(2, 3), "none": np.empty((0, 2), np.float32)}
    for name in ("a", "b"):
        write_storage(tmp_path / name, {"kind": "toy"}, arrays)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    header, found = read_storage(tmp_path / "a")
    assert header["kind"] == "toy"
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_harmed_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_storage(path, {}, {"x": np.arange(100)})
    whole = path.read_bytes()
    for harmed in (b"", b"something else", whole[:-40], whole.replace(b'"version": 2', b'"version": 7')):
        path.write_bytes(harmed)
        with pytest.raises(UnreadableFile, match="file"):
            read_storage(path)


def test_a_missing_file_is_said_with_the_nearest_name(tmp_path: Path) -> None:
    write_storage(tmp_path / "model.o2pl", {}, {})
    for path, said in (
        (
            tmp_path / "modle.o2pl",
            r"modle.o2pl: found no file \(did you mean 'model.o2pl'\?\), expected a saved learner",
        ),
        (tmp_path / "other", "other: found no file, expected"),
        (tmp_path / "nowhere" / "model.o2pl", "found no folder '.*nowhere', expected a saved learner"),
        (tmp_path, "found a folder, expected a saved learner"),
    ):
        with pytest.raises(UnreadableFile, match=said):
            read_storage(path)
        with pytest.raises(FileNotFoundError):
            read_storage(path)


def test_a_damaged_compression_field_is_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_storage(path, {}, {"x": np.arange(100)})
    whole = path.read_bytes()
    for number in (9, 77, 8):  # methods that zipfile does not know, or that the bytes are not of
        harmed = bytearray(whole)
        for start, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
            at = harmed.find(start)
            while at >= 0:
                harmed[at + offset : at + offset + 2] = number.to_bytes(2, "little")
                at = harmed.find(start, at + 1)
        path.write_bytes(bytes(harmed))
        with pytest.raises(UnreadableFile, match="not a saved learner, or cut short"):
            read_storage(path)


@pytest.mark.parametrize(
    "value", [None, True, 3, 0.5, "x", (1, (2.0, "y")), [1, (2,)], UniformMixture(Softmax(3), 0.2)], ids=repr
)
def test_settings_come_back_as_they_were(value: Any) -> None:
    assert decode_from_storage(encode_for_storage(value)) == value


def test_arrays_keep_their_type_and_strangers_are_refused() -> None:
    array = np.array([[1, 2]], np.float32)
    back = decode_from_storage(encode_for_storage(array))
    np.testing.assert_array_equal(back, array)
    assert back.dtype == np.float32
    with pytest.raises(InvalidInput, match="cannot be saved"):
        encode_for_storage(object())
    with pytest.raises(UnreadableFile, match="does not have"):
        decode_from_storage({"object": "Nobody", "fields": {}})
