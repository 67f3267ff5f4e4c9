"""`Interactions`: the columns of a log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from o2pl import _core
from o2pl.data.action_names import Names, action_names_in, are_action_names, check_action_names, numbers_of_action_names
from o2pl.data.contexts import ActionSets, Contexts, SparseRows, as_contexts, check_action_sets, check_sparse_rows
from o2pl.data.decisions import check_decision_ids, decision_id_of, decision_numbers_for
from o2pl.data.frames import Frame, as_frame, is_frame
from o2pl.data.kinds import kind_of_contexts
from o2pl.data.offer_rows import sets_of_offers
from o2pl.data.offers import placed_in_offers
from o2pl.data.records import Records, are_records
from o2pl.errors import InvalidInput
from o2pl.protocols import Array, Floats, Ints
from o2pl.validation import (
    ANY_REWARD,
    RewardRange,
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
    check_row_weights,
    is_real,
    to_loss,
)

# Rows per block: temporary arrays of 64 KiB stay in the cache; 128 KiB would be returned to the system each time.
BLOCK = 1 << 13

Columns = tuple[Any, Any, Any, Any]  # contexts, actions, rewards, propensities


@dataclass(frozen=True, eq=False)
class Interactions:
    """A log: one row per decision. The constructor checks every column; errors name the row.

    Parameters
    ----------
    contexts
        Numbers [n, d], a data frame (pandas, polars, Arrow), dictionaries, action sets of dictionaries, pairs (user,
        items) or `Offer`s, `ActionSets` (one numeric row per action) or `SparseRows`. Data frames and dictionaries are
        stored unchanged: each learner encodes them itself.
    actions
        Integers from 0, strings, or real numbers if `continuous`, [n]. Strings become indices into `action_names`.
    rewards
        Rewards, [n]; within `reward_range` if it is given.
    propensities
        The probability (density, for continuous actions) with which each action was drawn, [n]. None: unknown. A log
        without propensities can be used for evaluation with estimates, but not for learning (see
        `estimate_propensities`).
    reward_range
        Lowest and highest possible reward. None: unknown.
    n_actions
        Number of actions K; it may include actions that were never played. None: taken from the log. It stays None for
        continuous actions and action sets.
    continuous
        Whether actions are real numbers. None: True if any action is not an integer.
    loggers
        The logger of each row: names, or integers from 0 if `logger_names` is given. [n]
    by_logger
        The propensity of the logged action under each of J loggers, in the order of `logger_names`. [n, J]
    logger_names
        Names of the loggers. None: the sorted names in `loggers`.
    action_names
        Names of the actions. None: if `actions` are strings, these strings in alphabetical order. If a learner and a
        log number actions differently, they are matched by name.
    ids
        Id of each decision, strings or integers, so that no decision is learned from twice. They are stored as
        integers; `event_ids` returns o2pl's ids in their original form. [n]
    context_names
        Names of the context columns, if they have any; used in messages.
    row_weights
        How many decisions each row stands for, [n]: 1/(1 - pdrop) if the logger dropped similar ones at random with
        probability pdrop. Only ratios matter. None: one each. Estimates and learners weight the rows by it.
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
    row_weights: Any = None

    def __post_init__(self) -> None:
        contexts = _check_interaction_contexts(self.contexts)
        sets = isinstance(contexts, ActionSets) or (isinstance(contexts, Records) and contexts.sizes is not None)
        action_names = check_action_names(self.action_names) if len(self.action_names) else ()
        actions = check_column("action", placed_in_offers(self.contexts, self.actions))
        if are_action_names(actions):
            action_names = action_names or action_names_in(actions)
            actions = numbers_of_action_names(actions, action_names)
        continuous = not sets and is_real(actions) if self.continuous is None else bool(self.continuous)
        if continuous and sets:
            raise InvalidInput("continuous: found True with action sets, expected actions that are item indices")
        stated = None if self.n_actions is None else check_count("n_actions", self.n_actions)
        if continuous or np.issubdtype(actions.dtype, np.floating):
            actions = check_continuous_actions(actions)  # the error names the row of a NaN
        if not continuous:
            actions = check_actions(actions, stated)
        ends = None if self.reward_range is None else check_reward_range(self.reward_range)
        rewards = check_rewards(self.rewards, ends or ANY_REWARD)
        propensities = np.full(len(actions), np.nan)
        if self.propensities is not None:
            propensities = check_propensities(self.propensities, density=continuous)
        loggers, names = (None, ()) if self.loggers is None else check_loggers(self.loggers, self.logger_names)
        ids = None if self.ids is None else check_decision_ids(self.ids)
        row_weights = None if self.row_weights is None else check_row_weights(self.row_weights)
        check_lengths(
            contexts=contexts, actions=actions, rewards=rewards, propensities=propensities, loggers=loggers, ids=ids,
            row_weights=row_weights,
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
        known_names = (names, action_names, ids, self.context_names)
        self._hold(*columns, ends, known, continuous, loggers, by_logger, *known_names, row_weights)

    @classmethod
    def trusted(
        cls,
        contexts: object,
        actions: Array,
        rewards: Floats,
        propensities: Floats,
        reward_range: RewardRange | None = None,
        n_actions: int | None = None,
        continuous: bool = False,
        ids: Ints | None = None,
        action_names: Names = (),
        row_weights: Floats | None = None,
    ) -> Self:
        """Build a log from columns that are checked already: no checks, no copies."""
        made = cls.__new__(cls)
        made._hold(
            contexts, actions, rewards, propensities, reward_range, n_actions, continuous, None, None, (), action_names,
            ids, (), row_weights,
        )  # fmt: skip
        return made

    @classmethod
    def _of(cls, *values: object) -> Self:
        made = cls.__new__(cls)
        made._hold(*values)
        return made

    def _hold(self, *values: object) -> None:
        self.__dict__.update(zip(_FIELDS, values, strict=True))

    def __len__(self) -> int:
        return len(self.actions)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the four columns, so that `learner.fit(*log)` works."""
        return iter((self.contexts, self.actions, self.rewards, self.propensities))

    def __getitem__(self, rows: slice | Ints) -> Self:
        """Select rows by a slice or an array of row numbers. Reward range, number of actions and names are kept."""
        if not isinstance(rows, slice):
            if np.ndim(rows) != 1:
                raise InvalidInput(f"rows: found {rows!r}, expected a slice or an array of row numbers")
            rows = np.arange(len(self))[np.asarray(rows) if len(rows) else slice(0)]
        loggers, by_logger, ids, weights = self.loggers, self.by_logger, self.ids, self.row_weights
        return self._of(
            self.contexts[rows], self.actions[rows], self.rewards[rows], self.propensities[rows],
            self.reward_range, self.n_actions, self.continuous, None if loggers is None else loggers[rows],
            None if by_logger is None else by_logger[rows], self.logger_names, self.action_names,
            None if ids is None else ids[rows], self.context_names, None if weights is None else weights[rows],
        )  # fmt: skip

    @property
    def has_propensities(self) -> bool:
        return not (len(self) and bool(np.isnan(self.propensities[0])))

    def changed(self, **columns: Any) -> Self:
        """Return a copy with some columns replaced. The new columns are checked."""
        kept = {} if self.has_propensities else {"propensities": None}
        return replace(self, **(kept | columns))

    @property
    def effective_weights(self) -> Floats | None:
        """The row weights, scaled to sum to their effective number of rows (Σ w)²/Σ w²; None: one each. [n]"""
        w = self.row_weights
        return None if w is None or not len(w) else w * (w.sum() / (w @ w))

    def of_unknown_range(self) -> Self:
        """Return the same log without a reward range."""
        known = {name: getattr(self, name) for name in _FIELDS} | {"reward_range": None}
        return self._of(*known.values())

    def thinned(self) -> Self:
        """Return `thinned_rows` as a log without row weights, for methods that count each row once."""
        if self.row_weights is None:
            return self
        some = self[self.thinned_rows()]
        some.__dict__["row_weights"] = None
        return some

    def thinned_rows(self) -> Ints:
        """Return rows drawn so that each decision is equally likely to be among them: row s with chance w_s / max w.

        Slots of one list stay together; the same log gives the same rows.
        """
        if self.row_weights is None:
            return np.arange(len(self))
        of_list = np.arange(len(self)) if self.slots is None else np.cumsum(self.slots == 0) - 1
        chances = self.row_weights / self.row_weights.max()
        return np.flatnonzero(np.random.default_rng(0).random(len(self))[of_list] < chances)

    @property
    def losses(self) -> Floats:
        """The losses in [-1, 0], -1 for the best reward; the negative rewards if the range is unknown. [n]"""
        return losses_of(self.rewards, self.reward_range)

    @property
    def fractions(self) -> Floats:
        """The rewards as fractions of their range, [n]; the column itself if the range is 0 to 1 and none is beyond."""
        as_they_are = self.reward_range == (0.0, 1.0) and _core.within(self.rewards, 0.0, 1.0)
        return self.rewards if as_they_are else -self.losses

    @property
    def total_loss(self) -> float:
        """Return the sum of the losses, computed in blocks: a log may be larger than memory."""
        return total_loss_of_interactions(self.rewards, self.reward_range)

    @cached_property
    def encoded(self) -> Contexts:
        """The contexts as rows, if they are encoded; others, such as data frames, stay what they are."""
        return as_contexts(self.contexts)

    @property
    def kind(self) -> str:
        """The kind of the contexts: see `data.kinds`."""
        return kind_of_contexts(self.contexts)

    @property
    def form(self) -> str:
        """What the contexts are: "frame", "records" (dictionaries, or sets of them), or rows: see `Contexts.kind`."""
        if isinstance(self.contexts, Frame):
            return "frame"
        return "records" if isinstance(self.contexts, Records) else self.encoded.kind

    @property
    def slots(self) -> Ints | None:
        """The list slot of each row, from 0, [n]; None if decisions are not parts of lists."""
        return getattr(self.contexts, "slots", None)

    def blocks(self) -> Iterator[slice]:
        """Yield consecutive slices of at most `BLOCK` rows."""
        for start in range(0, len(self), BLOCK):
            yield slice(start, min(start + BLOCK, len(self)))

    @cached_property
    def action_scale(self) -> tuple[float, float]:
        """Return mean and standard deviation of continuous actions."""
        return float(self.actions.mean()), float(self.actions.std()) or 1.0

    def with_ids(self) -> Self:
        """Return a log with ids. Missing ids are derived from the columns: equal logs give equal learners."""
        if self.ids is not None:
            return self
        columns = (self.actions, self.rewards, self.propensities)
        content = b"".join(np.ascontiguousarray(column).tobytes() for column in columns)
        known = {name: getattr(self, name) for name in _FIELDS} | {"ids": decision_numbers_for(len(self), content)}
        return self._of(*known.values())

    @property
    def event_ids(self) -> list[str]:
        """Return the ids, [n]: o2pl's as in `Decision.id`; other ids as their hash in the same form."""
        return [] if self.ids is None else [decision_id_of(number) for number in self.ids.tolist()]

    @property
    def named_actions(self) -> Array:
        """Return the actions by name, or as integers if they have no names. [n]"""
        if len(self.action_names) < (self.n_actions or 0) or not self.action_names:
            return self.actions
        return np.array(self.action_names)[self.actions]

    def context_name(self, column: int) -> str:
        return self.context_names[column] if 0 <= column < len(self.context_names) else f"column {column}"

    def action_name(self, action: int | str) -> str:
        """Return the name of an action index; a name is returned unchanged."""
        if isinstance(action, str):
            return action
        return self.action_names[action] if action < len(self.action_names) else str(action)


_FIELDS = tuple(field.name for field in fields(Interactions))


def losses_of(rewards: Floats, reward_range: RewardRange | None) -> Floats:
    """Return `Interactions.losses` of these rewards."""
    return -rewards if reward_range is None else np.asarray(to_loss(rewards, reward_range))


def total_loss_of_interactions(rewards: Floats, reward_range: RewardRange | None) -> float:
    """Return the sum of the losses of these rewards, computed in blocks."""
    if len(rewards) <= BLOCK:
        return float(losses_of(rewards, reward_range).sum())
    blocks = (rewards[start : start + BLOCK] for start in range(0, len(rewards), BLOCK))
    return float(sum(losses_of(block, reward_range).sum() for block in blocks))


def _check_interaction_contexts(contexts: Any) -> Any:
    if is_frame(contexts):
        return as_frame(contexts)
    if are_records(contexts):
        return contexts if isinstance(contexts, Records) else Records.of(contexts)
    if not isinstance(contexts, ActionSets) and kind_of_contexts(contexts) == "offer":
        return sets_of_offers(contexts)
    if isinstance(contexts, ActionSets):
        return check_action_sets(contexts)
    return check_sparse_rows(contexts) if isinstance(contexts, SparseRows) else check_contexts(contexts)


# -- logs as arguments


def interactions_with_names(log: Interactions, names: tuple[str, ...]) -> Interactions:
    """Return the same rows with other action names."""
    known = {name: getattr(log, name) for name in _FIELDS} | {"context_names": names}
    return Interactions._of(*known.values())


def new_interactions(log: Interactions, known: Ints | None = None) -> Interactions:
    """Return each decision once, in order, without those whose ids are in `known`."""
    _, first = np.unique(log.ids, return_index=True)
    if known is not None:
        first = first[~np.isin(log.ids[first], known)]
    return log[np.sort(first)]


def interactions_in(given: object) -> Interactions | None:
    """Return the log, or the columns of an object such as `Log`; None if `given` is neither."""
    columns = given if isinstance(given, Interactions) else getattr(given, "columns", None)
    return columns if isinstance(columns, Interactions) else None


def interactions_or_columns(
    contexts: object, actions: object = None, rewards: object = None, propensities: object = None
) -> Interactions | Columns:
    """Return the four columns from either `fit(log)` or `fit(contexts, actions, rewards, propensities)`."""
    rest = {"actions": actions, "rewards": rewards, "propensities": propensities}
    missing = [name for name, column in rest.items() if column is None]
    log = interactions_in(contexts)
    if log is not None and len(missing) < len(rest):
        also = ", ".join(name for name in rest if name not in missing)
        raise InvalidInput(f"log: found a log and also {also}, expected only the log, or the four columns")
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
        f"log: found no {' and no '.join(missing)}, expected either a log (Interactions)"
        " or all four columns: contexts, actions, rewards, propensities"
    )
