"""Decisions whose reward has not come yet."""

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

PENDING = 10_000  # decisions whose contexts are kept at least
_READ = (ActionSets, SparseRows)  # `ActionSets | SparseRows` would be made anew in every call


class Pending:
    """The last `PENDING` decisions, and some of those before, as far as they have no reward. Threads may share it.

    `newest` takes decisions as they are made, and lets the oldest go when it is full. When one is asked for by its
    number, those in `newest` move to the dictionary.
    """

    def __init__(self) -> None:
        self.newest: deque[Decision] = deque(maxlen=PENDING)  # appending is atomic
        self._by_number: dict[int, Decision] = {}
        self._lock = threading.Lock()
        self._last: Decision | None = None  # that was moved

    def told(self, propensity: Any) -> Decision | None:
        """The newest decision, where this very number is its propensity: it was taken apart and told in parts."""
        try:
            newest: Decision | None = self.newest[-1]
        except IndexError:
            newest = self._last
        return newest if newest is not None and propensity is newest[1] else None

    def get(self, number: int) -> Decision | None:
        self._index()
        return self._by_number.get(number)

    def drop(self, number: int) -> bool:
        """Whether it was there; of several threads, one hears yes."""
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
        """From old to new."""
        self._index()
        return iter(list(self._by_number.values()))

    # -- files

    def rows(self, log: Log, reader: ContextReader) -> Log:
        """As rows of this log, which is empty; their rewards are 0."""
        numbers = {name: number for number, name in enumerate(log.action_names)}
        for decision in self:
            action = numbers.get(decision.action, decision.action)
            entry = decision.context if is_read(decision.context) else reader.entry(decision.context)
            append_row(log, entry, action, 0.0, decision.propensity, decision.number)
        return log

    def restore(self, rows: Interactions) -> None:
        """Of what `rows` made; contexts stay as the reader left them."""
        columns = zip(rows.actions.tolist(), rows.propensities.tolist(), rows.ids.tolist(), strict=True)
        for row, (action, propensity, number) in enumerate(columns):
            contexts = rows.contexts[row : row + 1]
            context = contexts[0] if isinstance(contexts, np.ndarray) else contexts
            action = rows.action_names[action] if rows.action_names else action
            self.newest.append(Decision(action, propensity).keep(context, number))


_ROUNDED = 1e-3  # by which an action may be rounded, as a share of 1 / density, the width of what is likely


def check_as_drawn(action: float, decision: Decision) -> None:
    """Refuses another real number than the one that the density was drawn with; one that was rounded may pass."""
    if abs(action - decision.action) * decision.propensity > _ROUNDED:
        raise InvalidInput(
            f"action: found {action:g} with the density of {decision.action:g}, which was drawn. An action that was"
            " clipped (or rounded much) afterwards has another density, or none at the ends: let the learner know the"
            " bounds (bounds=), and tell what it decided"
        )


def is_read(context: Any) -> bool:
    """Whether this is a context as a file kept it: a row that need not be read again."""
    return isinstance(context, _READ)


def append_row(log: Log, entry: Any, action: Any, reward: float, propensity: float, number: int | None) -> None:
    """One row, whose context is read, or as a reader's `entry` left it."""
    if is_read(entry):
        ids = None if number is None else np.array([number])
        log.extend_columns(entry, np.array([action]), np.array([reward]), np.array([propensity]), ids)
    else:
        log.append(entry, action, reward, propensity, number)
