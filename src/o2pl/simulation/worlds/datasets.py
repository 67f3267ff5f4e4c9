"""Classification data: from scikit-learn, from a folder of Parquet files, from OpenML.

A *source* is the location of a data set (a storable value); `load` returns the `Dataset`. Nominal columns become
one-hot, missing numbers the column's median, missing categories a separate category; `notes` list what was done.
"""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.extras import extra
from o2pl.protocols import Array, Floats, Ints
from o2pl.simulation.worlds.rounds import require_for_rounds
from o2pl.storage import storable
from o2pl.validation import check_contexts

FOLDER_VARIABLE = "O2PL_DATA"  # default folder of Parquet files
_KEPT = 8  # data sets cached in memory per kind of source


@dataclass(frozen=True, eq=False)
class Dataset:
    """A classification data set. It is also its own source."""

    name: str
    contexts: Floats  # [n, d], float32
    labels: Ints  # [n], from 0
    classes: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    def load(self) -> Dataset:
        return self


class Source(Protocol):
    def load(self) -> Dataset: ...


def make_dataset(X: object, y: object, name: str = "data", notes: Iterable[str] = ()) -> Dataset:
    """Build a data set from (X, y): numbers without missing values, and any labels; classes are sorted."""
    contexts, target = check_contexts(X), np.asarray(y)
    if target.shape != (len(contexts),):
        raise InvalidInput(f"{name}: found labels of shape {target.shape}, expected ({len(contexts)},)")
    classes, labels = np.unique(target, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInput(f"{name}: found {len(classes)} class(es), expected at least two")
    contexts = contexts.copy() if np.shares_memory(contexts, X) else contexts
    labels = labels.astype(np.int64)
    for shared in (contexts, labels):
        shared.flags.writeable = False  # data sets are cached and shared
    return Dataset(name, contexts, labels, tuple(str(c) for c in classes), tuple(notes))


# -- sources


@storable
@dataclass(frozen=True)
class Embedded:
    """A data set included in scikit-learn."""

    name: str

    def __post_init__(self) -> None:
        known = ("iris", "wine", "breast_cancer", "digits")
        require_for_rounds(self.name in known, "name", self.name, f"one of {known}")

    def load(self) -> Dataset:
        return _embedded_dataset(self.name)


@storable
@dataclass(frozen=True)
class Synthetic:
    """scikit-learn's `make_classification` with every feature informative; Syn-5 and Syn-20 have 5 and 20 features.

    (The paper names a `make_multiclass`, which does not exist, and does not give the other settings.)
    """

    features: int = 5
    classes: int = 3
    rows: int = 10000
    clusters: int = 2  # per class
    separation: float = 1.0
    seed: int = 0

    def load(self) -> Dataset:
        return _synthetic_dataset(self)


@storable
@dataclass(frozen=True)
class ParquetSet:
    """The file `<id>_<name>.parquet` of a folder (None: the environment variable O2PL_DATA)."""

    id: int
    folder: str | None = None

    def load(self) -> Dataset:
        folder = dataset_folder(self.folder)
        found = sorted(folder.glob(f"{self.id}_*.parquet"))
        if len(found) != 1:
            raise InvalidInput(f"{folder}: found {len(found)} files {self.id}_*.parquet, expected one")
        return _parquet_dataset(found[0])


@storable
@dataclass(frozen=True)
class OpenML:
    """A data set of openml.org by its number, downloaded once into scikit-learn's cache (or the folder `cache`)."""

    id: int
    cache: str | None = None

    def load(self) -> Dataset:
        return _openml_dataset(self.id, self.cache)


def dataset_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    given = folder or os.environ.get(FOLDER_VARIABLE)
    if not given:
        raise InvalidInput(
            f"data folder: found none, expected an argument or the environment variable {FOLDER_VARIABLE}"
        )
    path = Path(given)
    if not path.is_dir():
        raise InvalidInput(f"data folder: found {str(given)!r}, which is not a folder")
    return path


def read_dataset_manifest(folder: Path) -> dict[int, dict[str, str]]:
    """Return MANIFEST.csv by id, in order; empty if there is none."""
    path = folder / "MANIFEST.csv"
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as lines:
        return {int(row["id"]): row for row in csv.DictReader(lines)}


def catalogue(folder: str | os.PathLike[str] | None = None) -> dict[str, ParquetSet]:
    """Return the data sets of a folder by file name (such as "61_iris"), in the manifest's order, then by id."""
    path = dataset_folder(folder)
    order = {number: place for place, number in enumerate(read_dataset_manifest(path))}
    numbered = [(file.stem.split("_", 1)[0], file) for file in path.glob("*_*.parquet")]
    files = sorted((order.get(int(n), len(order)), int(n), file.stem) for n, file in numbered if n.isdigit())
    given = None if folder is None else str(folder)
    return {stem: ParquetSet(number, given) for _, number, stem in files}


# -- loaders


@lru_cache(maxsize=_KEPT)
def _embedded_dataset(name: str) -> Dataset:
    with extra("experiments", f"the data set {name!r}"):
        from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return make_dataset(X, y, name)


@lru_cache(maxsize=_KEPT)
def _synthetic_dataset(source: Synthetic) -> Dataset:
    with extra("experiments", "a synthetic data set"):
        from sklearn.datasets import make_classification

    X, y = make_classification(
        n_samples=source.rows,
        n_features=source.features,
        n_informative=source.features,
        n_redundant=0,
        n_classes=source.classes,
        n_clusters_per_class=source.clusters,
        class_sep=source.separation,
        random_state=source.seed,
    )
    return make_dataset(X, y, f"syn-{source.features}")


@lru_cache(maxsize=_KEPT)
def _parquet_dataset(path: Path) -> Dataset:
    with extra("experiments", "reading data sets"):
        import pyarrow.parquet as pq

    table = pq.read_table(path)
    if table.column_names[-1] != "target" or table.num_columns < 2:
        raise InvalidInput(f"{path.name}: found last column {table.column_names[-1]!r}, expected features and 'target'")
    columns = [_arrow_dataset_column(path.name, name, table.column(name)) for name in table.column_names[:-1]]
    target = table.column("target")
    kept = ~np.asarray(target.is_null().to_numpy())
    dataset = assemble_dataset(path.stem, columns, np.asarray(target.to_pylist(), dtype=object), kept)
    return _compared_dataset(dataset, read_dataset_manifest(path.parent).get(int(path.stem.split("_", 1)[0])))


def _compared_dataset(dataset: Dataset, row: dict[str, str] | None) -> Dataset:
    """Return the data set with a note if it differs from the manifest."""
    found = {"rows": len(dataset), "n_classes": len(dataset.classes)}
    differ = [f"{key} {found[key]}, manifest {row[key]}" for key in found if row and row.get(key) != str(found[key])]
    return Dataset(dataset.name, dataset.contexts, dataset.labels, dataset.classes, (*dataset.notes, *differ))


def _arrow_dataset_column(file: str, name: str, column: Any) -> SetColumn:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        column = column.dictionary_encode()
    if pa.types.is_dictionary(column.type):
        positions = column.combine_chunks().indices
        return SetColumn(name, positions.cast(pa.float64()).to_numpy(zero_copy_only=False), nominal=True)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return SetColumn(name, column.cast(pa.float64()).to_numpy())
    raise InvalidInput(f"{file}, column {name!r}: found type {kind}, expected numbers or categories")


@lru_cache(maxsize=_KEPT)
def _openml_dataset(number: int, cache: str | None) -> Dataset:
    from urllib.error import URLError

    with extra("experiments", "a data set of OpenML"):
        from sklearn.datasets import fetch_openml

    with warnings.catch_warnings(record=True) as caught:  # OpenML's warnings go into the notes
        warnings.simplefilter("always")
        try:  # liac-arff: does not need pandas
            bunch = fetch_openml(data_id=number, data_home=cache, as_frame=False, parser="liac-arff")
        except (URLError, OSError, ValueError) as error:
            raise InvalidInput(f"OpenML set {number}: could not be downloaded ({error})") from error
    X = bunch.data.toarray() if hasattr(bunch.data, "toarray") else np.asarray(bunch.data)
    columns = [
        SetColumn(n, X[:, i].astype(np.float64), n in bunch.categories) for i, n in enumerate(bunch.feature_names)
    ]
    if bunch.target is None or np.ndim(bunch.target) != 1:
        raise InvalidInput(f"OpenML set {number}: found no single target")
    kept = np.array([label is not None and label == label for label in bunch.target])  # None or NaN: missing
    name = f"{number}_{bunch.details['name']}"
    return assemble_dataset(name, columns, np.asarray(bunch.target), kept, [str(w.message) for w in caught])


# -- columns to contexts


@dataclass(frozen=True, eq=False)
class SetColumn:
    """Numbers or, for a nominal column, the indices of its categories; NaN is missing."""

    name: str
    values: Floats  # [n]
    nominal: bool = False


def assemble_dataset(
    name: str, columns: Sequence[SetColumn], target: Array, kept: Array, notes: Iterable[str] = ()
) -> Dataset:
    """Build a data set: one-hot encoding, imputation and notes. `kept` marks the rows with a target."""
    said = list(notes)
    if not kept.all():
        said.append(f"{int((~kept).sum())} rows without target dropped")
    blocks: list[Floats] = []
    empty, filled, own, nominal = [], [], [], []
    for column in columns:
        values = column.values[kept]
        missing = np.isnan(values)
        if column.nominal:
            nominal.append(column.name)
            own += [column.name] * bool(missing.any())
            blocks.append(_one_hot_dataset(values, missing))
        elif missing.all():
            empty.append(column.name)
        else:
            filled += [column.name] * bool(missing.any())
            blocks.append(np.where(missing, np.median(values[~missing]), values)[:, None])
    for names, text in (
        (nominal, "nominal columns one-hot"),
        (filled, "numeric columns with missing values, replaced by the median"),
        (own, "nominal columns with missing values, as a separate category"),
        (empty, "numeric columns without any value dropped"),
    ):
        if names:
            said.append(f"{len(names)} {text}: {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}")
    if not blocks:
        raise InvalidInput(f"{name}: found no column with values, expected at least one")
    return make_dataset(np.hstack(blocks), [str(label) for label in target[kept]], name, said)


def _one_hot_dataset(positions: Floats, missing: Array) -> Floats:
    """Return one column per occurring category, in order; missing last. [n, c]"""
    _, codes = np.unique(np.where(missing, np.inf, positions), return_inverse=True)
    return np.eye(int(codes.max()) + 1)[codes]
