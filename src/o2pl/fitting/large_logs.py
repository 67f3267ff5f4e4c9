"""Parquet logs larger than memory: scanned once, then copied to memory-mapped columns.

The first pass counts rows, actions and rewards, and takes a sample. The second pass writes the encoded numeric rows.
Both keep only a few batches of rows in memory.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from o2pl.data.action_names import Names, renumbered_by_action_names
from o2pl.data.contexts import as_contexts
from o2pl.data.interactions import Interactions
from o2pl.data.log import Log
from o2pl.engine.engine import Engine
from o2pl.errors import InvalidInput
from o2pl.fitting.candidate_learners import guessed_range_for_candidate_learners
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.files import parquet_file_size, parquet_file_tables
from o2pl.formats.log_tables import log_of_log_table
from o2pl.protocols import Ints
from o2pl.validation import RewardRange, check_counted_from_zero

SAMPLE = 100_000  # rows on which candidates are compared
_EXPECTED = "expected columns of numbers, strings, booleans or times, and discrete actions; otherwise use --in-memory"

Read = Callable[[int, int], None]  # rows so far, rows in total


@dataclass(frozen=True, eq=False)
class FirstPass:
    """The result of the first pass."""

    path: Path
    rows: int  # usable rows
    reward_range: RewardRange
    action_names: Names
    n_actions: int
    sample: Interactions  # in the order of the log


def scan_large_log(
    path: Path, ends: RewardRange | None, bad: BadRows, seed: int, read: Read | None = None
) -> FirstPass:
    """Scan and check all rows in one pass."""
    import pyarrow as pa

    total, _ = parquet_file_size(path)
    chosen = sampled_rows_of_large_log(total, seed)
    rows, start, actions, names = 0, 0, set[int](), set[str]()
    seen, dropped, kept = [np.inf, -np.inf], [np.inf, -np.inf], []
    for table in parquet_file_tables(path):
        bad.first = start
        batch = rows_of_large_log(table, bad, ends)
        first, last = np.searchsorted(chosen, (start, start + len(table)))
        if "drop_probability" in table.column_names and len(table):
            shares = table.column("drop_probability").fill_null(0.0).to_numpy()
            dropped = [min(dropped[0], shares.min()), max(dropped[1], shares.max())]
        kept.append(table.take(chosen[first:last] - start))
        rows, start = rows + len(batch), start + len(table)
        actions.update(np.unique(batch.actions).tolist())
        names.update(batch.action_names)
        seen = [min(seen[0], batch.rewards.min(initial=np.inf)), max(seen[1], batch.rewards.max(initial=-np.inf))]
        if read is not None:
            read(start, total)
    if dropped[0] < dropped[1]:
        raise InvalidInput(
            f"{path.name}: found drop probabilities from {dropped[0]:g} to {dropped[1]:g}, which need weights: expected"
            " a log that fits in memory; use --in-memory"
        )
    if not rows:
        raise InvalidInput(f"{path.name}: found no rows, expected at least one")
    reward_range = ends or guessed_range_for_candidate_learners(np.array(seen))
    if not names:
        check_counted_from_zero(np.resize(sorted(actions), rows if rows < SAMPLE else SAMPLE))
    sample = rows_of_large_log(
        pa.concat_tables(kept), BadRows(bad.file, total), reward_range
    )  # errors were reported already
    every, n_actions = tuple(sorted(names)), len(names) or max(actions) + 1
    return FirstPass(path, rows, reward_range, every, n_actions, named_alike_in_large_log(sample, every, n_actions))


def sampled_rows_of_large_log(total: int, seed: int) -> Ints:
    """Return the rows of the sample, in order."""
    if total <= SAMPLE:
        return np.arange(total)
    return np.sort(np.random.default_rng(seed).choice(total, SAMPLE, replace=False, shuffle=False))


def batches_of_large_log(found: FirstPass, bad: BadRows, read: Read | None = None) -> Iterator[Interactions]:
    """Yield all usable rows in batches, with consistent action indices."""
    start = 0
    for table in parquet_file_tables(found.path):
        bad.first, start = start, start + len(table)
        yield named_alike_in_large_log(
            rows_of_large_log(table, bad, found.reward_range), found.action_names, found.n_actions
        )
        if read is not None:
            read(start, found.rows)


def rows_of_large_log(table: Any, bad: BadRows, ends: RewardRange | None) -> Interactions:
    """Return the rows of a table; actions keep their integers or names."""
    if "context" in table.column_names or "actions" in table.column_names:
        raise InvalidInput(f"{bad.file}: found contexts as text or action sets, {_EXPECTED}")
    action = table.column("action") if "action" in table.column_names else None
    most = (
        int(np.max(action.to_numpy(), initial=-1)) + 1
        if action is not None and _whole_numbers_in_large_log(action)
        else None
    )
    found = log_of_log_table(table, bad, reward_range=ends, n_actions=max(most, 1) if most is not None else None)
    if found.continuous:
        raise InvalidInput(f"{bad.file}: found real-valued actions, {_EXPECTED}")
    return found


def _whole_numbers_in_large_log(column: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(column.type)) and column.null_count == 0


def named_alike_in_large_log(batch: Interactions, names: Names, n_actions: int) -> Interactions:
    actions = renumbered_by_action_names(batch.actions, batch.action_names, names) if names else batch.actions
    return Interactions.trusted(
        batch.contexts, actions, batch.rewards, batch.propensities, batch.reward_range, n_actions,
        ids=batch.ids, action_names=names,
    )  # fmt: skip


def begin_with_large_log(learner: Any, sample: Interactions) -> Engine:
    """Return the engine of a learner that starts with these contexts."""
    encoder = learner._encoder_for(sample)
    rows = encoder.encode(sample.contexts)
    if as_contexts(rows).kind != "dense":
        raise InvalidInput(f"log: found contexts that {learner!r} does not encode as numeric rows, {_EXPECTED}")
    engine: Engine = learner._make_engine(encoder, sample.n_actions, sample.action_names)
    return engine


def copy_large_log(
    found: FirstPass, learner: Any, engine: Engine, folder: Path, bad: BadRows, read: Read | None = None
) -> None:
    """Copy the encoded log to memory-mapped columns. On failure, the files are removed."""
    shutil.rmtree(folder, ignore_errors=True)
    log: Log | None = None
    try:
        log = engine.log.empty(folder)
        log.reserve(found.rows)
        for batch in batches_of_large_log(found, bad, read):
            log.extend(learner._checked(batch, encoder=engine.encoder))
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            raise no_room_for_large_log(folder, found.rows * bytes_per_row_of_large_log(engine.log)) from None
        raise


def bytes_per_row_of_large_log(log: Log) -> int:
    """Return the bytes per row in memory-mapped columns: contexts, action, reward, propensity, id."""
    return 4 * log.width + 4 * 8


def no_room_for_large_log(folder: Path, needed: int) -> InvalidInput:
    free = shutil.disk_usage(folder.parent).free
    return InvalidInput(
        f"{folder.parent}: found {free / 1e9:.1f} GB of free disk space, expected {needed / 1e9:.1f} GB for a copy of"
        " the log. Free some space, or choose an --out on another disk, and run the same command again"
    )
