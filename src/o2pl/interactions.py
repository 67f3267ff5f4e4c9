"""What was decided and what came of it: `Interactions`, the columns of a log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from o2pl.action_names import Names, are_words, check_names, names_in, numbers_of
from o2pl.contexts.frames import as_frame, is_frame
from o2pl.contexts.offers import kind_of_contexts, placed
from o2pl.contexts.readers import OfferReader
from o2pl.contexts.records import Records, are_records
from o2pl.decisions import check_ids, id_of, numbers_for
from o2pl.errors import InvalidInput
from o2pl.protocols import Array, Floats, Ints
from o2pl.rows import ActionSets, SparseRows
from o2pl.validation import (
    RewardRange,
    check_action_sets,
    check_actions,
    check_by_logger,
    check_column,
    check_contexts,
    check_continuous_actions,
    check_count,
    check_counted_from_zero,
    check_lengths,
    check_loggers,
    check_propensities,
    check_reward_range,
    check_rewards,
    check_sparse_rows,
    is_real,
    to_loss,
)

# Rows at a time: temporaries of 64 KiB stay in the cache; those of 128 KiB would go back to the system each time.
BLOCK = 1 << 13
_ANY_REWARD = (-float(np.finfo(np.float64).max), float(np.finfo(np.float64).max))

Columns = tuple[Any, Any, Any, Any]  # contexts, actions, rewards, propensities


@dataclass(frozen=True, eq=False)
class Interactions:
    """A log: one row per decision. The constructor checks every column; an error says which row is wrong.

    Parameters
    ----------
    contexts
        Numbers [n, d], a frame (pandas, polars, Arrow), dictionaries, action sets of dictionaries, pairs (user, items)
        or `Offer`s, `ActionSets` (one row of numbers per action) or `SparseRows`. Frames and dictionaries are kept as
        they are: every learner reads them in its own way.
    actions
        Whole numbers from 0, words, or real numbers if `continuous`. Words become their places in `action_names`. [n]
    rewards
        Within `reward_range`, if that is given. [n]
    propensities
        The probability (density, for continuous actions) with which each action was drawn, [n]. None: not known;
        such a log can be evaluated on, with estimates, but not learned from (see `estimate_propensities`).
    reward_range
        The lowest and the highest reward there can be; None: not known.
    n_actions
        K; it may count actions that were never played. None: as many as the log shows. Stays None for continuous
        actions and action sets.
    continuous
        Whether actions are real numbers. None: they are if one of them is not whole.
    loggers
        Who logged each row: names, or numbers from 0 if there are `logger_names`. [n]
    by_logger
        The propensity of the logged action under each of J loggers, in the order of `logger_names`. [n, J]
    logger_names
        None given: the names in `loggers`, in order.
    action_names
        What the actions are called. None given: if `actions` are words, those, in alphabetical order. A learner and a
        log that number actions differently are matched by these names.
    ids
        What each decision is known by, words or numbers, so that none is learned from twice. They are kept as numbers;
        `event_ids` has ids of o2pl as they were given. [n]
    context_names
        What the numbers of a context are called, where they have names; for messages.
    """

    contexts: Any
    actions: Array
    rewards: Floats
    propensities: Floats
    reward_range: RewardRange | None = None
    n_actions: int | None = None
    continuous: bool | None = None
    loggers: Any = None
    by_logger: Any = None
    logger_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    ids: Any = None
    context_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        contexts = _check_any_contexts(self.contexts)
        sets = isinstance(contexts, ActionSets) or (isinstance(contexts, Records) and contexts.sizes is not None)
        action_names = check_names(self.action_names) if len(self.action_names) else ()
        actions = check_column("action", placed(self.contexts, self.actions))
        if are_words(actions):
            action_names = action_names or names_in(actions)
            actions = numbers_of(actions, action_names)
        continuous = not sets and is_real(actions) if self.continuous is None else bool(self.continuous)
        if continuous and sets:
            raise InvalidInput("continuous: found True with action sets, expected actions that are numbers of items")
        stated = None if self.n_actions is None else check_count("n_actions", self.n_actions)
        if continuous or np.issubdtype(actions.dtype, np.floating):
            actions = check_continuous_actions(actions)  # names the row of a NaN
        if not continuous:
            actions = check_actions(actions, stated)
        ends = None if self.reward_range is None else check_reward_range(self.reward_range)
        rewards = check_rewards(self.rewards, ends or _ANY_REWARD)
        propensities = np.full(len(actions), np.nan)
        if self.propensities is not None:
            propensities = check_propensities(self.propensities, density=continuous)
        loggers, names = (None, ()) if self.loggers is None else check_loggers(self.loggers, self.logger_names)
        ids = None if self.ids is None else check_ids(self.ids)
        check_lengths(
            contexts=contexts, actions=actions, rewards=rewards, propensities=propensities, loggers=loggers, ids=ids
        )  # fmt: skip
        if sets:
            check_actions(actions, contexts.sizes)
        known = None
        if not (sets or continuous):
            if stated is None and not action_names:
                check_counted_from_zero(actions)
            known = max(stated or 0, int(actions.max(initial=-1)) + 1, len(action_names)) or None
        by_logger = self.by_logger
        if by_logger is not None:
            by_logger = check_by_logger(by_logger, propensities, loggers, len(names), continuous)
        columns = (contexts, actions, rewards, propensities)
        self._hold(*columns, ends, known, continuous, loggers, by_logger, names, action_names, ids, self.context_names)

    @classmethod
    def trusted(
        cls,
        contexts: Any,
        actions: Array,
        rewards: Floats,
        propensities: Floats,
        reward_range: RewardRange | None = None,
        n_actions: int | None = None,
        continuous: bool = False,
        ids: Ints | None = None,
        action_names: Names = (),
    ) -> Self:
        """Of columns that have been checked: nothing is looked at and nothing is copied."""
        columns = (contexts, actions, rewards, propensities)
        return cls._of(*columns, reward_range, n_actions, continuous, None, None, (), action_names, ids, ())

    @classmethod
    def _of(cls, *values: Any) -> Self:
        made = cls.__new__(cls)
        made._hold(*values)
        return made

    def _hold(self, *values: Any) -> None:
        self.__dict__.update(zip(_FIELDS, values, strict=True))

    def __len__(self) -> int:
        return len(self.actions)

    def __iter__(self) -> Iterator[Any]:
        """The four columns, so that `learner.fit(*log)` works too."""
        return iter((self.contexts, self.actions, self.rewards, self.propensities))

    def __getitem__(self, rows: slice | Ints) -> Self:
        """Some of the rows: a slice, or an array of row numbers. Range, number of actions and names stay."""
        if not isinstance(rows, slice):
            if np.ndim(rows) != 1:
                raise InvalidInput(f"rows: found {rows!r}, expected a slice or an array of row numbers")
            rows = np.arange(len(self))[np.asarray(rows) if len(rows) else slice(0)]
        some = (self.loggers, self.by_logger, self.ids)
        loggers, by_logger, ids = (None if column is None else column[rows] for column in some)
        known = (self.reward_range, self.n_actions, self.continuous)
        columns = (column[rows] for column in self)
        return self._of(
            *columns, *known, loggers, by_logger, self.logger_names, self.action_names, ids, self.context_names
        )

    @property
    def has_propensities(self) -> bool:
        return not (len(self) and bool(np.isnan(self.propensities[0])))

    def changed(self, **columns: Any) -> Self:
        """With other columns, which are checked."""
        kept = {} if self.has_propensities else {"propensities": None}
        return replace(self, **(kept | columns))

    @property
    def losses(self) -> Floats:
        """In [-1, 0], -1 for the best reward; minus the rewards where the range is not known. [n]"""
        return -self.rewards if self.reward_range is None else np.asarray(to_loss(self.rewards, self.reward_range))

    @property
    def total_loss(self) -> float:
        """Σ of the losses, block by block: a log may be larger than memory."""
        return float(sum(self[rows].losses.sum() for rows in self.blocks()))

    @property
    def slots(self) -> Ints | None:
        """The place in a list that each row was decided for, from 0; None where decisions stand alone. [n]"""
        return getattr(self.contexts, "slots", None)

    def blocks(self) -> Iterator[slice]:
        """Slices of at most `BLOCK` rows, one after another."""
        for start in range(0, len(self), BLOCK):
            yield slice(start, min(start + BLOCK, len(self)))

    @cached_property
    def action_scale(self) -> tuple[float, float]:
        """Mean and deviation of continuous actions."""
        return float(self.actions.mean()), float(self.actions.std()) or 1.0

    def with_ids(self) -> Self:
        """Where there are none, those that follow from the columns: the same log makes the same learner."""
        if self.ids is not None:
            return self
        columns = (self.actions, self.rewards, self.propensities)
        content = b"".join(np.ascontiguousarray(column).tobytes() for column in columns)
        known = {name: getattr(self, name) for name in _FIELDS} | {"ids": numbers_for(len(self), content)}
        return self._of(*known.values())

    @property
    def event_ids(self) -> list[str]:
        """The ids of o2pl's decisions, as `Decision.id` says them; of others, what stands for them. [n]"""
        return [] if self.ids is None else [id_of(number) for number in self.ids.tolist()]

    @property
    def named_actions(self) -> Array:
        """The actions by name; as numbers where they have none. [n]"""
        if len(self.action_names) < (self.n_actions or 0) or not self.action_names:
            return self.actions
        return np.array(self.action_names)[self.actions]

    def context_name(self, column: int) -> str:
        return self.context_names[column] if 0 <= column < len(self.context_names) else f"column {column}"

    def action_name(self, action: int | str) -> str:
        """What a number is called; a name stays as it is."""
        if isinstance(action, str):
            return action
        return self.action_names[action] if action < len(self.action_names) else str(action)


_FIELDS = tuple(field.name for field in fields(Interactions))


def _check_any_contexts(contexts: Any) -> Any:
    if is_frame(contexts):
        return as_frame(contexts)
    if are_records(contexts):
        return contexts if isinstance(contexts, Records) else Records.of(contexts)
    if not isinstance(contexts, ActionSets) and kind_of_contexts(contexts) == "offer":
        return OfferReader().rows(contexts)
    if isinstance(contexts, ActionSets):
        return check_action_sets(contexts)
    return check_sparse_rows(contexts) if isinstance(contexts, SparseRows) else check_contexts(contexts)


# -- a log as it is handed over


def replace_names(log: Interactions, names: tuple[str, ...]) -> Interactions:
    """The same rows, whose numbers are called so."""
    known = {name: getattr(log, name) for name in _FIELDS} | {"context_names": names}
    return Interactions._of(*known.values())


def new_rows(log: Interactions, known: Ints | None = None) -> Interactions:
    """Each decision once, in order, without those whose ids are known."""
    _, first = np.unique(log.ids, return_index=True)
    if known is not None:
        first = first[~np.isin(log.ids[first], known)]
    return log[np.sort(first)]


def log_in(given: Any) -> Interactions | None:
    """The log itself, or that of an object with `columns`, such as a `Log`; None where there is none."""
    columns = given if isinstance(given, Interactions) else getattr(given, "columns", None)
    return columns if isinstance(columns, Interactions) else None


def log_or_columns(
    contexts: Any, actions: Any = None, rewards: Any = None, propensities: Any = None
) -> Interactions | Columns:
    """What `fit(log)` or `fit(contexts, actions, rewards, propensities)` was given. Both unpack to four columns."""
    rest = {"actions": actions, "rewards": rewards, "propensities": propensities}
    missing = [name for name, column in rest.items() if column is None]
    log = log_in(contexts)
    if log is not None and len(missing) < len(rest):
        also = ", ".join(name for name in rest if name not in missing)
        raise InvalidInput(f"log: found a log and also {also}, expected the log alone, or the four columns")
    if log is not None:
        if not log.has_propensities:
            raise InvalidInput(
                "log: found no propensities, expected one per row; o2pl.estimate_propensities(log) gives estimates"
            )
        return log
    if not missing:
        return contexts, actions, rewards, propensities
    if len(missing) == len(rest) and isinstance(contexts, tuple | list) and len(contexts) == 4:
        first, second, third, fourth = contexts
        if fourth is not None:
            return first, second, third, fourth
        missing = ["propensities"]
    raise InvalidInput(
        f"log: found no {' and no '.join(missing)}, expected a log (Interactions) alone,"
        " or all four columns: contexts, actions, rewards, propensities"
    )
