"""Logs in Parquet or CSV, one row per decision; and the log inside a saved learner.

By default the columns `action`, `reward` and `propensity` are what they say, `logger` (if there) says who logged, a
column `propensity_<logger>` for every logger says how likely that one would have made the decision, and all others, in
the file's order, are the context.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.extras import extra
from o2pl.interactions import Interactions
from o2pl.learners.base import load
from o2pl.protocols import Array, Floats
from o2pl.validation import RewardRange


def read_log(
    path: str | os.PathLike[str],
    *,
    context: Sequence[str] | None = None,
    action: str = "action",
    reward: str = "reward",
    propensity: str = "propensity",
    logger: str = "logger",
    reward_range: RewardRange | None = None,
    n_actions: int | None = None,
    continuous: bool | None = None,
) -> Interactions:
    """A log to hand to `fit` or `evaluate`.

    Actions are whole numbers from 0, real numbers, or words; words are numbered in alphabetical order. `reward_range`
    says the lowest and highest reward there can be (a saved learner knows its own).
    """
    file = Path(path)
    if not file.is_file():
        raise InvalidInput(f"log: found no file {str(file)!r}, expected a Parquet or CSV file or a saved learner")
    if zipfile.is_zipfile(file):
        log: Interactions = load(file).log_
        return log
    table = _table(file)
    for name in (action, reward, propensity):
        if name not in table.column_names:
            raise InvalidInput(f"{file.name}: found columns {_named(table.column_names)}, expected one called {name!r}")
    who = table.column(logger).to_numpy() if logger in table.column_names else None
    names = [] if who is None else [str(one) for one in np.unique(who)]
    under = [f"{propensity}_{name}" for name in names]
    by_logger = _matrix(table, under, np.float64, file) if names and set(under) <= set(table.column_names) else None
    taken = {action, reward, propensity, logger, *(under if by_logger is not None else ())}
    chosen = [name for name in table.column_names if name not in taken] if context is None else list(context)
    if not chosen:
        raise InvalidInput(f"{file.name}: found no context columns, expected at least one (a constant one will do)")
    actions, action_names = _actions(table.column(action).to_numpy(), file, action)
    if not len(table):
        raise InvalidInput(f"{file.name}: found no rows, expected at least one")
    return Interactions(
        _matrix(table, chosen, np.float32, file),
        actions,
        _numbers(table, reward, file),
        _numbers(table, propensity, file),
        reward_range=reward_range,
        n_actions=n_actions,
        continuous=continuous,
        loggers=who,
        by_logger=by_logger,
        action_names=action_names,
    )


def _table(file: Path) -> Any:
    with extra("logs", "reading Parquet and CSV"):
        import pyarrow as pa
        from pyarrow import csv, parquet

    try:
        with file.open("rb") as opened:
            is_parquet = opened.read(4) == b"PAR1"
        if is_parquet:
            return parquet.read_table(file)
        return csv.read_csv(file, convert_options=csv.ConvertOptions(strings_can_be_null=True))
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file.name}: expected Parquet, CSV with a header, or a saved learner ({error})") from None


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "")


def _numbers(table: Any, name: str, file: Path) -> Floats:
    if name not in table.column_names:
        raise InvalidInput(f"{file.name}: found columns {_named(table.column_names)}, expected one called {name!r}")
    column = table.column(name).to_numpy()
    if column.dtype == bool:
        return np.asarray(column, np.float64)
    if not np.issubdtype(column.dtype, np.number):
        raise InvalidInput(f"{file.name}, column {name!r}: found values such as {column[0]!r}, expected numbers")
    return np.asarray(column)


def _matrix(table: Any, names: list[str], dtype: Any, file: Path) -> Floats:
    matrix = np.empty((len(table), len(names)), dtype)
    for place, name in enumerate(names):
        with np.errstate(over="ignore"):  # too large for float32: infinite, which is refused by name
            matrix[:, place] = _numbers(table, name, file)
    return matrix


def _actions(column: Array, file: Path, name: str) -> tuple[Array, tuple[str, ...]]:
    if np.issubdtype(column.dtype, np.number):
        return column, ()
    if not all(isinstance(one, str) for one in column.tolist()):
        raise InvalidInput(f"{file.name}, column {name!r}: found a missing or mixed value, expected numbers or words")
    found, numbers = np.unique(column.astype(str), return_inverse=True)
    return numbers.astype(np.int64), tuple(found.tolist())
