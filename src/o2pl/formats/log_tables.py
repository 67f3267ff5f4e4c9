"""Logs as tables, one row per decision: the meaning of the columns, and conversion to `Interactions`.

| column | content |
|---|---|
| `action` | the action: an integer from 0, a string, or a real number |
| `reward` | the reward |
| `propensity` | the probability (density, for real numbers) with which the action was drawn |
| `context` | features as JSON text; for action sets, `_multi` is a list of the features of each action, as in VW |
| all others | features by name, if there is no `context`; keys of partitions, ids and times are left out |
| `actions` | features of each action: a list of structures, or JSON text |
| `slot` | the slot of the decision, if an event has several; it is part of the context |
| `logger` | the logger; `propensity_<logger>` may hold the propensity under each logger |
| `event_id`, `time` | id and time of the decision |
| `ranking`, `probabilities` | all actions in ranked order, and their probabilities |
| `drop_probability`, `skip_learn`, `rest`, `slot_rest` | other fields of VW's dsjson; skipped rows are not read |
| `hashed` | only within `read_log`: hashed features of VW's logs; events of its text are not made JSON |
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from o2pl.data.decisions import check_decision_ids, decision_numbers_for
from o2pl.data.frames import Frame, arrow_table_of_frame, is_frame
from o2pl.data.interactions import Interactions
from o2pl.data.records import Records
from o2pl.errors import InvalidInput
from o2pl.extras import extra
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.context_columns import contexts_of, has_slot_columns, named_columns, slot_columns
from o2pl.formats.files import kind_of_file, read_file_table
from o2pl.formats.json_columns import with_lists_of_json_columns
from o2pl.formats.mapping import mapping_of
from o2pl.learners.base import load
from o2pl.protocols import Array, Floats, Ints
from o2pl.validation import RewardRange


def read_log(
    path: Any,
    *,
    context: Sequence[str] | None = None,
    action: str = "action",
    reward: str = "reward",
    propensity: str = "propensity",
    logger: str = "logger",
    reward_range: RewardRange | None = None,
    n_actions: int | None = None,
    continuous: bool | None = None,
    need_propensities: bool = True,
    skip_bad: int | BadRows = 0,
    mapping: str | None = None,
) -> Interactions:
    """Read a log for `fit` or `evaluate`.

    `path` is a Parquet, Arrow or CSV file, a folder of Parquet files, VW's dsjson or text, a saved learner (its own
    log), or a data frame: pandas, polars, Arrow. Actions are integers from 0, real numbers, or strings; strings are
    numbered in alphabetical order. `reward_range`: lowest and highest possible reward (a saved learner has its own). Up
    to `skip_bad` unusable rows are skipped. With `need_propensities=False` the log may have no propensities: `evaluate`
    then estimates them. `mapping` says where JSON lines of your own shape have what is needed:
    `"context=$.user, items=$.candidates[*], chosen=$.shown, reward=$.click, propensity=$.p"`.
    """
    asked = None if mapping is None else mapping_of(mapping)
    names = {"action": action, "reward": reward, "propensity": propensity, "logger": logger}
    if is_frame(path):
        if asked is not None:
            raise InvalidInput("mapping: found with a frame, expected a file of JSON lines")
        with extra("logs", "reading frames"):
            table = arrow_table_of_frame(path)
        bad = skip_bad if isinstance(skip_bad, BadRows) else BadRows("frame", skip_bad)
    else:
        file = Path(path)
        kind = kind_of_file(file)
        if kind == "learner" and asked is None:
            log: Interactions = load(file).log_
            return log
        bad = skip_bad if isinstance(skip_bad, BadRows) else bad_rows_of_log_table(file, kind, skip_bad)
        table = read_file_table(file, bad, asked)
    if not need_propensities and propensity not in table.column_names:
        del names["propensity"]
    found = log_of_log_table(
        table, bad, names, context, reward_range=reward_range, n_actions=n_actions, continuous=continuous
    )  # fmt: skip
    if bad is not skip_bad:  # a caller with its own `BadRows` says them itself
        for text in bad.notes:
            warnings.warn(text, stacklevel=2)
    return found


def bad_rows_of_log_table(path: str | os.PathLike[str], kind: str, limit: int) -> BadRows:
    return BadRows(Path(path).name, limit, header=kind == "csv")


_DROPPED = "drop_probability"  # pdrop of dsjson: the share of similar events that the logger dropped at random


def log_of_log_table(
    table: Any,
    bad: BadRows,
    names: dict[str, str] | None = None,
    context: Sequence[str] | None = None,
    **known: Any,
) -> Interactions:
    """Convert a log table. names: column names by role; without a propensity column, the log has no propensities."""
    called = names or {role: role for role in ("action", "reward", "propensity", "logger")}
    for role in ("action", "reward", "propensity"):
        if role in called and called[role] not in table.column_names:
            without = "; for a log without propensities: need_propensities=False" if role == "propensity" else ""
            there = named_columns(table.column_names)
            raise InvalidInput(f"{bad.file}: found columns {there}, expected a column {called[role]!r}{without}")
    if "context" in table.column_names and context is None:
        table = _log_table_with_rewards(table, called, bad)
    if not len(table):
        raise InvalidInput(f"{bad.file}: found no rows, expected at least one")
    table, numbers = _usable_rows_of_log_table(table, called, bad)
    row_weights = _row_weights_of_log_table(table)
    ids = _ids_of_log_table(table)
    who, by_logger, under = _loggers_of_log_table(table, called, bad)
    actions, action_names = _actions_of_log_table(table.column(called["action"]), bad, called["action"])
    contexts: Frame | Records
    if context is None and "context" in table.column_names and has_slot_columns(table):
        contexts, actions = slot_columns(with_lists_of_json_columns(table), actions)
    else:
        contexts = contexts_of(table, [*called.values(), *under], context, bad)
    propensities: Any = numbers[called["propensity"]] if "propensity" in called else None
    return Interactions(
        contexts,
        actions,
        numbers[called["reward"]],
        propensities,
        loggers=who,
        by_logger=by_logger,
        action_names=action_names,
        ids=ids,
        row_weights=row_weights,
        **known,
    )


def _log_table_with_rewards(table: Any, called: dict[str, str], bad: BadRows) -> Any:
    """Drop events without a reward, and events to be skipped."""
    from pyarrow import compute

    keep = compute.is_valid(table.column(called["reward"]))
    unlabelled = len(table) - compute.sum(keep).as_py() if len(table) else 0
    if "skip_learn" in table.column_names:
        keep = compute.and_(keep, compute.invert(compute.fill_null(table.column("skip_learn").cast("bool"), False)))
    if compute.all(keep).as_py():
        return table
    kept = table.filter(keep)
    if not len(kept):
        raise InvalidInput(
            f"{bad.file}: found {len(table)} decisions, {unlabelled} of them without a reward (a label of VW's) and"
            f" {len(table) - unlabelled} that are to be skipped (_skipLearn), expected some to learn from"
        )
    return kept


def _row_weights_of_log_table(table: Any) -> Floats | None:
    """Return how many decisions each row stands for, 1/(1 - pdrop); None if that is the same for all: it cancels."""
    if _DROPPED not in table.column_names:
        return None
    weights = 1 / (1 - np.nan_to_num(_numbers_in_log_table(table.column(_DROPPED))[0]))
    return None if np.ptp(weights) == 0 else weights


# -- rows that cannot be used


def _usable_rows_of_log_table(table: Any, called: dict[str, str], bad: BadRows) -> tuple[Any, dict[str, Floats]]:
    """Return the rows with action, reward and propensity, the last two as numbers. Others are added to `bad`."""
    wrong: dict[int, str] = {}
    numbers = {}
    for role, expected in (("reward", "a finite number"), ("propensity", "a number above 0")):
        if role not in called:
            continue
        name = called[role]
        values, texts = _numbers_in_log_table(table.column(name))
        numbers[name] = values
        fine = np.isfinite(values) & ((values > 0) | (role != "propensity"))
        for row in np.flatnonzero(~fine).tolist():
            found = repr(texts[row]) if texts is not None else f"{values[row]:g}"
            wrong.setdefault(row, f"column {name!r}: found {found}, expected {expected}")
    if _DROPPED in table.column_names:
        values, texts = _numbers_in_log_table(table.column(_DROPPED))
        given = np.asarray(table.column(_DROPPED).is_valid())
        for row in np.flatnonzero(given & ~((values >= 0) & (values < 1))).tolist():
            found = repr(texts[row]) if texts is not None else f"{values[row]:g}"
            wrong.setdefault(row, f"column {_DROPPED!r} (pdrop): found {found}, expected a number from 0 to below 1")
    missing = np.flatnonzero(~np.asarray(table.column(called["action"]).is_valid()))
    for row in missing.tolist():
        wrong.setdefault(row, f"column {called['action']!r}: found a missing value, expected a number or a string")
    for row, (name, first) in _repeated_in_log_table(table).items():
        wrong.setdefault(
            row, f"column 'event_id': found {name!r}, which is also in row {first}, expected each decision once"
        )
    if not wrong:
        return table, numbers
    for row in sorted(wrong):
        bad.row(row, wrong[row])
    keep = np.ones(len(table), bool)
    keep[list(wrong)] = False
    if not keep.any():
        raise InvalidInput(f"{bad.file}: found no usable row, expected at least one")
    import pyarrow as pa

    return table.filter(pa.array(keep)), {name: values[keep] for name, values in numbers.items()}


def _numbers_in_log_table(column: Any) -> tuple[Floats, list[Any] | None]:
    """Return the numbers (NaN if invalid), and the texts if the column has any."""
    import pyarrow as pa
    from pyarrow import types

    kind = column.type
    if types.is_boolean(kind):
        column = column.cast(pa.int8())
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return np.array(column.cast(pa.float64(), safe=False).to_numpy()), None
    if types.is_null(kind):
        return np.full(len(column), np.nan), None
    texts = column.to_pylist()
    return np.array([_number_in_log_table(text) for text in texts], np.float64), texts


def _number_in_log_table(text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        return float("nan")


def _decisions_of_log_table(table: Any) -> Any:
    """Return the id of each decision: event and slot; None without an id column."""
    from pyarrow import compute, types

    if "event_id" not in table.column_names or types.is_null(table.column("event_id").type):
        return None
    events = compute.cast(table.column("event_id"), "string")
    if not has_slot_columns(table):
        return events
    return compute.binary_join_element_wise(events, compute.cast(table.column("slot"), "string"), "/")


def _repeated_in_log_table(table: object) -> dict[int, tuple[str, int]]:
    """Return, for rows whose decision is in an earlier row, its id and that row."""
    from pyarrow import compute

    names = _decisions_of_log_table(table)
    if names is None or compute.count_distinct(names).as_py() == len(names) - names.null_count:
        return {}
    first: dict[str, int] = {}
    found = {}
    for row, name in enumerate(names.to_pylist()):
        if name is not None and first.setdefault(name, row) != row:
            found[row] = name, first[name]
    return found


def _ids_of_log_table(table: object) -> Ints | None:
    names = _decisions_of_log_table(table)
    if names is None or names.null_count == len(names):
        return None
    numbers = check_decision_ids(np.array(names.fill_null("").to_pylist()))
    missing = np.asarray(names.is_null())
    numbers[missing] = decision_numbers_for(int(missing.sum()))
    return numbers


# -- columns


def _loggers_of_log_table(table: Any, called: dict[str, str], bad: BadRows) -> tuple[Any, Floats | None, list[str]]:
    logger = called["logger"]
    if logger not in table.column_names:
        return None, None, []
    who = np.asarray(table.column(logger).to_pylist())
    under = [f"{called.get('propensity')}_{one}" for one in np.unique(who)]
    if not set(under) <= set(table.column_names):
        return who, None, []
    return who, np.column_stack([_numbers_in_log_table(table.column(name))[0] for name in under]), under


def _actions_of_log_table(column: Any, bad: BadRows, name: str) -> tuple[Array, tuple[str, ...]]:
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_integer(column.type) or types.is_floating(column.type):
        return np.asarray(column.to_numpy()), ()
    if not (types.is_string(column.type) or types.is_large_string(column.type)):
        raise InvalidInput(f"{bad.file}, column {name!r}: found {column.type}, expected numbers or strings")
    found, numbers = np.unique(np.array(column.cast(pa.string()).to_pylist()), return_inverse=True)
    return numbers.astype(np.int64), tuple(found.tolist())
