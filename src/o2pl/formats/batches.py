"""Batches of decisions as tables: contexts in, decisions out, rewards joined later. The result is a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from o2pl.data.many_decisions import Decisions
from o2pl.engine.decider import Decider
from o2pl.engine.many import decide_many
from o2pl.errors import InvalidInput
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.context_columns import contexts_of, named_columns
from o2pl.formats.files import note_columns_of_file
from o2pl.formats.json_columns import ROLES
from o2pl.protocols import Floats

_DECIDED = ("event_id", "action", "propensity", "reward")  # columns that a table of contexts may not have
_BESIDE = "beside the context"


def decided_batch(
    decider: Decider, table: Any, bad: BadRows, context: Sequence[str] | None = None, seed: int | None = None
) -> Any:
    """Return a table of contexts with the columns `event_id`, `action` and `propensity`.

    context: its feature columns. None: the columns that the policy was learned from, if they have names; else all.
    Columns that are no features stay, and are noted as such.
    """
    for name in _DECIDED:
        if name in table.column_names:
            raise InvalidInput(f"{bad.file}: found a column {name!r}, expected contexts only: rename or remove it")
    learned = getattr(decider.encoder.schema, "fields", ())
    if context is None and learned and not decider.encoder.items:
        context = [field.name for field in learned]
    contexts = contexts_of(table, [], context, bad)
    rows = decider.encoder.encode(contexts)
    decisions: Decisions = decide_many(decider, contexts, rows, np.random.default_rng(seed).random(len(rows)))
    import pyarrow as pa

    for name, column in (
        ("event_id", decisions.ids),
        ("action", decisions.actions),
        ("propensity", decisions.propensities),
    ):
        table = table.append_column(name, pa.array(column))
    if context is not None:
        beside = [name for name in table.column_names if name not in (*context, *ROLES)]
        table = table.replace_schema_metadata(
            note_columns_of_file(table.schema, dict.fromkeys(beside, _BESIDE)).metadata
        )
    return table


class JoinedDecisions(NamedTuple):
    """Decisions with their rewards, and what has none."""

    table: Any
    told: int  # decisions with a reward
    untold: int  # decisions without one: the default, or left out
    others: int  # rewards of decisions that are not in the table


def joined_batches(
    decisions: Any, rewards: Any, names: tuple[str, str], id_name: str = "event_id", reward_name: str = "reward",
    default: float | None = None, several: str = "refuse",
) -> JoinedDecisions:  # fmt: skip
    """Join a table of decisions with one of rewards, by the decisions' ids. names: of both files, for messages.

    default: the reward of decisions that have none; None: they are left out. several: "refuse", or "sum" or "max" of
    the rewards of one decision.
    """
    import pyarrow as pa

    for table, file, name in (
        (decisions, names[0], "event_id"),
        (rewards, names[1], id_name),
        (rewards, names[1], reward_name),
    ):
        if name not in table.column_names:
            raise InvalidInput(f"{file}: found columns {named_columns(table.column_names)}, expected a column {name!r}")
    ids = _texts_of_batch(decisions, "event_id", names[0])
    places = {name: row for row, name in enumerate(ids)}
    if len(places) < len(ids):
        row = next(row for row, name in enumerate(ids) if places[name] != row)
        raise InvalidInput(f"{names[0]}, row {row}: found decision {ids[row]!r} again, expected each decision once")
    column = rewards.column(reward_name).cast(pa.float64()).to_pylist()
    found, others = np.full(len(ids), np.nan), 0
    for row, (name, reward) in enumerate(zip(_texts_of_batch(rewards, id_name, names[1]), column, strict=True)):
        if reward is None or not np.isfinite(reward):
            raise InvalidInput(f"{names[1]}, row {row}: found {reward} in {reward_name!r}, expected a number")
        place = places.get(name)
        if place is None:
            others += 1
        elif np.isnan(found[place]):
            found[place] = reward
        elif several == "refuse":
            raise InvalidInput(
                f"{names[1]}, row {row}: found a second reward of decision {name!r}, expected one; if several belong to"
                " a decision, say what counts: several='sum' or 'max'"
            )
        else:
            found[place] = found[place] + reward if several == "sum" else max(found[place], reward)
    return _batch_with_rewards(decisions, found, default, others)


def _batch_with_rewards(decisions: Any, found: Floats, default: float | None, others: int) -> JoinedDecisions:
    import pyarrow as pa

    none = np.isnan(found)
    if default is not None:
        found[none] = default
    if "reward" in decisions.column_names:
        decisions = decisions.drop_columns(["reward"])
    table = decisions.append_column("reward", pa.array(found))
    if default is None:
        table = table.filter(pa.array(~none))
    return JoinedDecisions(table, int((~none).sum()), int(none.sum()), others)


def _texts_of_batch(table: Any, name: str, file: str) -> list[str]:
    import pyarrow as pa

    column = table.column(name).cast(pa.string())
    texts: list[str] = column.to_pylist()
    if column.null_count:
        row = next(row for row, text in enumerate(texts) if text is None)
        raise InvalidInput(f"{file}, row {row}: found no {name!r}, expected the id of a decision")
    return texts
