from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from o2pl import InvalidInput
from o2pl.simulation.worlds import Classification, Embedded, OpenML, ParquetSet, Synthetic, catalogue, make_dataset
from o2pl.simulation.worlds.datasets import FOLDER_VARIABLE, _openml_dataset

# -- Parquet


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two small sets, with every kind of column and every kind of gap, and a manifest in an order of its own."""
    table = pa.table(
        {
            "size": pa.array([1.0, None, 9.0, 10.0, float("nan"), 2.0], pa.float32()),
            "count": pa.array([1, 2, 3, 4, 5, 6], pa.int64()),
            "colour": pa.array(["red", "blue", None, "red", "blue", "red"]).dictionary_encode(),
            "shape": pa.array(["round", "flat", "flat", "flat", "round", "flat"]),
            "flag": pa.array([True, False, True, True, False, False]),
            "empty": pa.array([None] * 6, pa.float64()),
            "target": pa.array(["b", "a", "b", None, "c", "a"], pa.large_string()),
        }
    )
    pq.write_table(table, tmp_path / "70_gaps.parquet")
    pq.write_table(pa.table({"x": [0.0, 1.0], "target": ["no", "yes"]}), tmp_path / "7_tiny.parquet")
    with (tmp_path / "MANIFEST.csv").open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["id", "name", "rows", "n_classes"])
        writer.writerow([70, "gaps", 6, 3])
        writer.writerow([7, "tiny", 2, 2])
    return tmp_path


def test_parquet_columns_become_contexts(folder: Path) -> None:
    data = ParquetSet(70, str(folder)).load()
    # Row 3 has no target. size: median of 1, 9, 2; colour: red, blue, missing; shape: round, flat.
    expected = [
        [1, 1, 1, 0, 0, 1, 0, 1],
        [2, 2, 0, 1, 0, 0, 1, 0],
        [9, 3, 0, 0, 1, 0, 1, 1],
        [2, 5, 0, 1, 0, 1, 0, 0],
        [2, 6, 1, 0, 0, 0, 1, 0],
    ]
    np.testing.assert_array_equal(data.contexts, np.array(expected, np.float32))
    np.testing.assert_array_equal(data.labels, [1, 0, 1, 2, 0])
    assert data.classes == ("a", "b", "c")
    said = " | ".join(data.notes)
    for part in ("1 rows without target", "2 nominal columns one-hot: colour, shape", "replaced by the median: size"):
        assert part in said
    for part in ("separate category: colour", "dropped: empty", "rows 5, manifest 6"):
        assert part in said
    assert ParquetSet(7, str(folder)).load().notes == ()


def test_chunks_with_different_dictionaries_are_one_column(tmp_path: Path) -> None:
    parts = [pa.array(values).dictionary_encode() for values in (["u", "v"], ["v", "w"], ["u", "u"])]
    table = pa.table({"letter": pa.chunked_array(parts), "target": ["0", "1", "0", "1", "0", "1"]})
    with pq.ParquetWriter(tmp_path / "1_chunks.parquet", table.schema) as writer:
        for start in (0, 2, 4):
            writer.write_table(table.slice(start, 2))
    data = ParquetSet(1, str(tmp_path)).load()
    np.testing.assert_array_equal(data.contexts.argmax(axis=1), [0, 1, 1, 2, 0, 0])


def test_the_catalogue_follows_the_manifest(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(catalogue(folder)) == ["70_gaps", "7_tiny"]
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    assert catalogue()["7_tiny"] == ParquetSet(7)
    assert ParquetSet(7).load().name == "7_tiny"
    assert Classification(ParquetSet(7)).n_actions == 2
    (folder / "MANIFEST.csv").unlink()
    assert list(catalogue()) == ["7_tiny", "70_gaps"]


def test_a_missing_folder_or_file_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    with pytest.raises(InvalidInput, match=FOLDER_VARIABLE):
        ParquetSet(7).load()
    with pytest.raises(InvalidInput, match="not a folder"):
        ParquetSet(7, str(folder / "nowhere")).load()
    with pytest.raises(InvalidInput, match=r"found 0 files 8_\*"):
        ParquetSet(8, str(folder)).load()
    pq.write_table(pa.table({"target": ["a"], "x": [0.0]}), folder / "9_turned.parquet")
    with pytest.raises(InvalidInput, match="last column 'x'"):
        ParquetSet(9, str(folder)).load()


@pytest.mark.skipif(FOLDER_VARIABLE not in os.environ, reason=f"{FOLDER_VARIABLE} names no folder of data sets")
def test_every_set_of_the_users_folder_loads() -> None:
    for name, source in catalogue().items():
        data = source.load()
        assert data.name == name
        assert np.isfinite(data.contexts).all()
        assert not [note for note in data.notes if "manifest" in note]


# -- OpenML, served from this machine

ARFF = b"""@relation pets
@attribute weight numeric
@attribute kind {cat, dog, 'guinea pig'}
@attribute tag numeric
@attribute class {tame, wild}
@data
4.0,cat,1,tame
?,dog,2,wild
1.0,'guinea pig',3,tame
12.0,?,4,wild
"""


def _responses(base: str) -> dict[str, bytes]:
    description = {
        "id": "4242",
        "name": "pets",
        "version": "1",
        "description": "pets",
        "format": "ARFF",
        "status": "active",
        "url": f"{base}/data/v1/download/1/pets.arff",
        "md5_checksum": hashlib.md5(ARFF).hexdigest(),
        "file_id": "1",
        "warning": "tags were made up",
    }
    kinds = (("weight", "numeric"), ("kind", "nominal"), ("tag", "numeric"), ("class", "nominal"))
    features = [
        {
            "index": str(i),
            "name": name,
            "data_type": kind,
            "is_target": str(name == "class").lower(),
            "is_ignore": "false",
            "is_row_identifier": str(name == "tag").lower(),
            "number_of_missing_values": "0",
        }
        for i, (name, kind) in enumerate(kinds)
    ]
    return {
        "/api/v1/json/data/4242": json.dumps({"data_set_description": description}).encode(),
        "/api/v1/json/data/features/4242": json.dumps({"data_features": {"feature": features}}).encode(),
        "/api/v1/json/data/qualities/4242": json.dumps(
            {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "4.0"}]}}
        ).encode(),
        "/data/v1/download/1/pets.arff": ARFF,
    }


@pytest.fixture
def openml(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A small OpenML on 127.0.0.1; yields the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = responses.get(self.path)
            self.send_response(412 if body is None else 200)
            content = gzip.compress(b'{"error": {"code": "111"}}' if body is None else body)
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # overrides http.server's
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    base = f"http://127.0.0.1:{server.server_port}"
    responses = _responses(base)
    for name in ("_DATA_INFO", "_DATA_FEATURES", "_DATA_QUALITIES"):
        address: str = getattr(__import__("sklearn.datasets._openml", fromlist=[name]), name)
        monkeypatch.setattr(f"sklearn.datasets._openml.{name}", address.replace("https://www.openml.org", base))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    _openml_dataset.cache_clear()
    yield asked
    server.shutdown()
    server.server_close()
    thread.join()
    _openml_dataset.cache_clear()


def test_openml_is_fetched_once_and_then_cached(openml: list[str], tmp_path: Path) -> None:
    data = OpenML(4242, str(tmp_path)).load()
    expected = [
        [4, 1, 0, 0, 0],
        [4, 0, 1, 0, 0],
        [1, 0, 0, 1, 0],
        [12, 0, 0, 0, 1],
    ]  # tag identifies rows: not a feature
    np.testing.assert_array_equal(data.contexts, np.array(expected, np.float32))
    assert data.classes == ("tame", "wild")
    np.testing.assert_array_equal(data.labels, [0, 1, 0, 1])
    assert data.name == "4242_pets"
    said = " | ".join(data.notes)
    for part in ("tags were made up", "replaced by the median: weight", "separate category: kind"):
        assert part in said
    assert len(openml) == 4
    _openml_dataset.cache_clear()
    again = OpenML(4242, str(tmp_path)).load()
    np.testing.assert_array_equal(again.contexts, data.contexts)
    assert len(openml) == 4  # the second time nothing was asked for


def test_an_unknown_openml_set_is_named(openml: list[str], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="OpenML set 999"):
        OpenML(999, str(tmp_path)).load()


# -- scikit-learn's own, and arrays


@pytest.mark.parametrize(
    ("name", "shape", "classes"),
    [("iris", (150, 4), 3), ("wine", (178, 13), 3), ("breast_cancer", (569, 30), 2), ("digits", (1797, 64), 10)],
)
def test_embedded_sets(name: str, shape: tuple[int, int], classes: int) -> None:
    data = Embedded(name).load()
    assert data.contexts.shape == shape
    assert len(data.classes) == classes
    assert data is Embedded(name).load()
    assert not data.contexts.flags.writeable  # handed out again and again


def test_synthetic_sets() -> None:
    data = Synthetic(features=20, rows=500).load()
    assert data.contexts.shape == (500, 20)
    assert len(data.classes) == 3
    other = Synthetic(features=20, rows=500, seed=1).load()
    assert not np.array_equal(data.contexts, other.contexts)


def test_any_arrays_make_a_data_set() -> None:
    X = np.arange(6, dtype=np.float32).reshape(3, 2)
    data = make_dataset(X, ["dog", "cat", "dog"])
    X[0, 0] = 99
    assert data.contexts[0, 0] == 0  # a copy
    assert data.classes == ("cat", "dog")
    np.testing.assert_array_equal(data.labels, [1, 0, 1])
    with pytest.raises(InvalidInput, match="1 class"):
        make_dataset(X, [1, 1, 1])
    with pytest.raises(InvalidInput, match="labels of shape"):
        make_dataset(X, [1, 0])
    with pytest.raises(InvalidInput, match="row 1"):
        make_dataset([[0.0], [float("nan")]], [0, 1])
    with pytest.raises(InvalidInput, match="name"):
        Embedded("mnist")
