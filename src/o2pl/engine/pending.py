"""Decisions that wait for their reward."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from o2pl import _core
from o2pl.data.contexts import is_encoded
from o2pl.data.decisions import Decision
from o2pl.data.interactions import Interactions
from o2pl.data.log import Log
from o2pl.encode import Encoder
from o2pl.errors import InvalidInput

PENDING = 10_000  # minimum number of decisions whose contexts are kept
_COMPARED = (dict, list, tuple, int, float, str, type(None))


class Pending:
    """The last `PENDING` decisions (and some earlier ones) without a reward. Thread-safe."""

    def __init__(self) -> None:
        self.waiting = _core.PendingDecisions(PENDING)

    def keep(self, decision: Decision) -> None:
        self.waiting.keep(decision.number, decision)

    def get(self, number: int) -> Decision | None:
        found: Decision | None = self.waiting.get(number)
        return found

    def drop(self, number: int) -> bool:
        """Remove a decision. Returns whether it was there; True for exactly one of several threads."""
        return self.waiting.drop(number)

    def newest(self, context: Any, action: Any, propensity: float) -> Decision | None:
        """Return the newest decision if it waits and consists of these parts: the user has unpacked it.

        A real-valued action may have been rounded: `check_as_drawn`.
        """
        found: Decision | None = self.waiting.newest()
        if found is None or found.propensity != propensity or not same_context(found.context, context):
            return None
        return found if found.played == action or isinstance(action, float) else None

    def __len__(self) -> int:
        return len(self.waiting)

    def __iter__(self) -> Iterator[Decision]:
        """Iterate from old to new."""
        return iter(self.waiting.decisions())

    # -- files

    def rows(self, log: Log, encoder: Encoder) -> Log:
        """Return the decisions as rows of this empty log, with reward 0."""
        numbers = {name: number for number, name in enumerate(log.action_names)}
        for decision in self:
            action = numbers.get(decision.action, decision.action)
            entry = decision.context if is_encoded(decision.context) else encoder.entry(decision.context)
            append_row(log, entry, action, 0.0, decision.propensity, decision.number)
        return log

    def restore(self, rows: Interactions) -> None:
        """Restore the decisions from `rows`. Contexts stay encoded."""
        columns = zip(rows.actions.tolist(), rows.propensities.tolist(), rows.ids.tolist(), strict=True)
        for row, (action, propensity, number) in enumerate(columns):
            context = rows.contexts[row : row + 1] if rows.form != "dense" else rows.contexts[row]
            action = rows.action_names[action] if rows.action_names else action
            self.keep(Decision(action, propensity).keep(context, number))


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


def same_context(one: Any, other: Any) -> bool:
    """Return whether two contexts are the same, as given or as encoded."""
    if is_encoded(one) and type(one) is type(other):
        return all(same_context(getattr(one, name), getattr(other, name)) for name in one.__dataclass_fields__)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    return type(one) is type(other) and isinstance(one, _COMPARED) and bool(one == other)


def append_row(log: Log, entry: Any, action: Any, reward: float, propensity: float, number: int | None) -> None:
    """Append one row; its context is encoded, or comes from a encoder's `entry`."""
    if is_encoded(entry):
        ids = None if number is None else np.array([number])
        log.extend_columns(entry, np.array([action]), np.array([reward]), np.array([propensity]), ids)
    else:
        log.append(entry, action, reward, propensity, number)
