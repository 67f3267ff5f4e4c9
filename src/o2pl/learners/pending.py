"""Decisions that wait for their reward."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from o2pl.contexts import ContextReader
from o2pl.decisions import Decision
from o2pl.errors import InvalidInput
from o2pl.interactions import Interactions
from o2pl.log import Log
from o2pl.rows import ActionSets, SparseRows

PENDING = 10_000  # minimum number of decisions whose contexts are kept
_READ = frozenset((ActionSets, SparseRows))


class Pending:
    """The last `PENDING` decisions (and some earlier ones) without a reward. Thread-safe.

    `newest` is a bounded queue of new decisions. When a decision is looked up by number, the queue is moved to the
    dictionary.
    """

    def __init__(self) -> None:
        self.newest: deque[Decision] = deque(maxlen=PENDING)  # appending is atomic
        self._by_number: dict[int, Decision] = {}
        self._lock = threading.Lock()
        self._last: Decision | None = None  # last decision that was moved

    def told(self, propensity: Any) -> Decision | None:
        """Return the newest decision if its propensity is this very object: the user has unpacked it."""
        try:
            newest: Decision | None = self.newest[-1]
        except IndexError:
            newest = self._last
        return newest if newest is not None and propensity is newest[1] else None

    def get(self, number: int) -> Decision | None:
        self._index()
        return self._by_number.get(number)

    def drop(self, number: int, told: Decision | None = None) -> bool:
        """Remove a decision. Returns whether it was there; True for exactly one of several threads.

        told: the decision, from `told`. It is probably still the newest one, which is removed without a look-up.
        """
        if told is not None:
            with self._lock:
                last = self.newest.pop() if self.newest else None
                if last is not None:
                    self._last = last
                    if last is told:
                        return True
                    self._by_number[last.number] = last
        self._index()
        return self._by_number.pop(number, None) is not None

    def _index(self) -> None:
        with self._lock:
            newest, known = self.newest, self._by_number
            while newest:
                decision = newest.popleft()
                known[decision.number] = self._last = decision
            if len(known) > 2 * PENDING:
                for number in list(itertools.islice(known, len(known) - PENDING)):
                    known.pop(number, None)

    def __len__(self) -> int:
        self._index()
        return len(self._by_number)

    def __iter__(self) -> Iterator[Decision]:
        """Iterate from old to new."""
        self._index()
        return iter(list(self._by_number.values()))

    # -- files

    def rows(self, log: Log, reader: ContextReader) -> Log:
        """Return the decisions as rows of this empty log, with reward 0."""
        numbers = {name: number for number, name in enumerate(log.action_names)}
        for decision in self:
            action = numbers.get(decision.action, decision.action)
            entry = decision.context if is_read(decision.context) else reader.entry(decision.context)
            append_row(log, entry, action, 0.0, decision.propensity, decision.number)
        return log

    def restore(self, rows: Interactions) -> None:
        """Restore the decisions from `rows`. Contexts stay encoded."""
        columns = zip(rows.actions.tolist(), rows.propensities.tolist(), rows.ids.tolist(), strict=True)
        for row, (action, propensity, number) in enumerate(columns):
            contexts = rows.contexts[row : row + 1]
            context = contexts[0] if isinstance(contexts, np.ndarray) else contexts
            action = rows.action_names[action] if rows.action_names else action
            self.newest.append(Decision(action, propensity).keep(context, number))


_ROUNDED = 1e-3  # tolerated rounding of an action, as a fraction of 1 / density


def check_as_drawn(action: float, decision: Decision) -> None:
    """Reject an action that differs from the drawn one, beyond rounding: its propensity would be wrong."""
    if abs(action - decision.action) * decision.propensity > _ROUNDED:
        raise InvalidInput(
            f"action: found {action:g} with the density of {decision.action:g}, which was drawn. An action that was"
            " clipped"
            " (or rounded a lot) afterwards has another density, or none at the bounds. Pass the bounds to the learner"
            " (bounds=), and play the action that it returns"
        )


def is_read(context: Any) -> bool:
    """Return whether a context is encoded already, as restored from a file."""
    return type(context) in _READ


def append_row(log: Log, entry: Any, action: Any, reward: float, propensity: float, number: int | None) -> None:
    """Append one row; its context is encoded, or comes from a reader's `entry`."""
    if is_read(entry):
        ids = None if number is None else np.array([number])
        log.extend_columns(entry, np.array([action]), np.array([reward]), np.array([propensity]), ids)
    else:
        log.append(entry, action, reward, propensity, number)
