"""Decisions that wait for their reward."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from o2pl import _core
from o2pl.data.contexts import is_encoded_context
from o2pl.data.decisions import Decision
from o2pl.data.interactions import Interactions
from o2pl.data.log import Log
from o2pl.data.many_decisions import Decisions
from o2pl.encode import Encoder
from o2pl.errors import InvalidInput
from o2pl.protocols import Ints

PENDING = 100_000  # minimum number of single decisions whose contexts are kept
BATCHED = 1_000_000  # number of decisions of batches that are kept, beyond the last batch
_COMPARED = (dict, list, tuple, int, float, str, type(None))


class Batch:
    """Decisions of one call that wait for their rewards."""

    def __init__(self, decisions: Decisions) -> None:
        self.decisions, self._order = decisions, np.argsort(decisions.numbers)
        self._sorted, self._waits = decisions.numbers[self._order], np.ones(len(decisions), bool)

    def __len__(self) -> int:
        return int(self._waits.sum())

    def __iter__(self) -> Iterator[Decision]:
        return (self.decisions[row] for row in np.flatnonzero(self._waits).tolist())

    def left(self, known: Ints) -> Decisions:
        """Return the decisions that wait, without those of these numbers."""
        left: Decisions = self.decisions[np.flatnonzero(self._waits & ~np.isin(self.decisions.numbers, known))]
        return left

    def rows_of(self, numbers: Ints) -> Ints:
        """Return the rows of those of these decisions that wait here."""
        at = np.searchsorted(self._sorted, numbers)
        here = at < len(self._sorted)
        here[here] = self._sorted[at[here]] == numbers[here]
        rows = self._order[at[here]]
        return np.asarray(rows[self._waits[rows]])

    def drop(self, rows: Ints) -> None:
        self._waits[rows] = False


class Pending:
    """Decisions without a reward: the last `PENDING` of single calls and some earlier ones, and those of batches.

    A warning says when older ones are forgotten. Thread-safe.
    """

    def __init__(self) -> None:
        self.waiting = _core.PendingDecisions(PENDING)
        self.batches: list[Batch] = []

    def keep(self, decision: Decision) -> None:
        self.waiting.keep(decision.number, decision)

    def keep_many(self, decisions: Decisions) -> None:
        """Keep the decisions of one call. Of batches, the last `BATCHED` are kept; a warning says what is not."""
        if not len(decisions):
            return
        self.batches = [batch for batch in self.batches if len(batch)] + [Batch(decisions)]
        sizes = [len(batch) for batch in self.batches]
        while sum(sizes) > BATCHED and len(sizes) > 1:
            warnings.warn(
                f"act_many: {sum(sizes):,} decisions wait for a reward; the oldest batch of {sizes[0]:,} is forgotten,"
                " and its ids with it. Its rewards can still be told with its `Decisions`. Tell rewards of 0, too",
                stacklevel=3,
            )
            self.batches, sizes = self.batches[1:], sizes[1:]

    def batch_of(self, numbers: Ints) -> Decisions | None:
        """Return the decisions of these numbers, in their order, if they wait in one batch."""
        for batch in self.batches:
            rows = batch.rows_of(numbers)
            if len(rows) == len(numbers):
                found: Decisions = batch.decisions[rows]
                return found
        return None

    def get(self, number: int) -> Decision | None:
        found: Decision | None = self.waiting.get(number)
        if found is None and self.batches:
            for batch in self.batches:
                rows = batch.rows_of(np.array([number]))
                if len(rows):
                    return batch.decisions[int(rows[0])]
        return found

    def drop(self, number: int) -> bool:
        """Remove a decision. Returns whether it was there; True for exactly one of several threads."""
        return self.waiting.drop(number) or (bool(self.batches) and self.drop_many(np.array([number])) > 0)

    def drop_many(self, numbers: Ints) -> int:
        """Remove decisions. Returns the number of those that were in batches. Callers hold the engine's lock."""
        found = 0
        for batch in self.batches:
            rows = batch.rows_of(numbers)
            batch.drop(rows)
            found += len(rows)
        if found < len(numbers) and len(self.waiting):
            for number in numbers.tolist():
                self.waiting.drop(number)
        return found

    def newest(self, context: object, action: object, propensity: float) -> Decision | None:
        """Return the newest decision if it waits and consists of these parts: the user has unpacked it.

        A real-valued action may have been rounded: `check_pending_as_drawn`.
        """
        found: Decision | None = self.waiting.newest()
        if found is None or found.propensity != propensity or not same_context_pending(found.context, context):
            return None
        return found if found.played == action or isinstance(action, float) else None

    def __len__(self) -> int:
        return len(self.waiting) + sum(map(len, self.batches))

    def __iter__(self) -> Iterator[Decision]:
        """Iterate over batches, then over single decisions; each from old to new."""
        return chain(*self.batches, self.waiting.decisions())

    # -- files

    def rows(self, log: Log, encoder: Encoder) -> Log:
        """Return the decisions as rows of this empty log, with reward 0."""
        numbers = {name: number for number, name in enumerate(log.action_names)}
        for decision in self:
            action = numbers.get(decision.played, decision.played)
            entry = decision.context if is_encoded_context(decision.context) else encoder.entry(decision.context)
            append_pending_row(log, entry, action, 0.0, decision.propensity, decision.number)
        return log

    def restore(self, rows: Interactions) -> None:
        """Restore the decisions from `rows`. Contexts stay encoded; what is too much for single ones is a batch."""
        decisions = Decisions(rows, rows.named_actions)
        first = max(len(rows) - PENDING, 0)
        self.keep_many(decisions[:first])
        for decision in decisions[first:]:
            self.keep(decision)


_ROUNDED = 1e-3  # tolerated rounding of an action, as a fraction of 1 / density


def check_pending_as_drawn(action: float, decision: Decision) -> None:
    """Reject an action that differs from the drawn one, beyond rounding: its propensity would be wrong."""
    if abs(action - decision.action) * decision.propensity > _ROUNDED:
        raise InvalidInput(
            f"action: found {action:g} with the density of {decision.action:g}, which was drawn. An action that was"
            " clipped"
            " (or rounded a lot) afterwards has another density, or none at the bounds. Pass the bounds to the learner"
            " (bounds=), and play the action that it returns"
        )


def same_context_pending(one: Any, other: Any) -> bool:
    """Return whether two contexts are the same, as given or as encoded."""
    if is_encoded_context(one) and type(one) is type(other):
        return all(same_context_pending(getattr(one, name), getattr(other, name)) for name in one.__dataclass_fields__)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    return type(one) is type(other) and isinstance(one, _COMPARED) and bool(one == other)


def append_pending_row(
    log: Log, entry: object, action: object, reward: float, propensity: float, number: int | None
) -> None:
    """Append one row; its context is encoded, or comes from a encoder's `entry`."""
    if is_encoded_context(entry):
        ids = None if number is None else np.array([number])
        log.extend_columns(entry, np.array([action]), np.array([reward]), np.array([propensity]), ids)
    else:
        log.append(entry, action, reward, propensity, number)
