"""`Decisions`: what `act_many` returns, with all that learning from them takes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np

from o2pl.data.decisions import Decision
from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.protocols import Array, Floats, Ints
from o2pl.validation import check_column


class Decisions(Sequence[Decision]):
    """The decisions of one call of `act_many`, one per context and in their order.

    A row number gives a `Decision`, a slice or an array of row numbers gives `Decisions`. `update_many(decisions,
    rewards)` needs nothing else.

    Attributes
    ----------
    actions
        Names of the actions, ids of items, or integers. [n]
    propensities
        The probability (density, for continuous actions) with which each action was drawn. [n]
    ids
        The id of each decision, as in `Decision.id`. [n]
    """

    def __init__(self, rows: Interactions, actions: Array) -> None:
        """rows: encoded contexts, played actions, propensities and ids; their rewards have no meaning."""
        self._rows, self.actions = rows, actions

    @property
    def propensities(self) -> Floats:
        return self._rows.propensities

    @cached_property
    def ids(self) -> list[str]:
        return self._rows.event_ids

    @property
    def numbers(self) -> Ints:
        """The ids as integers, [n]."""
        numbers: Ints = self._rows.ids
        return numbers

    @property
    def columns(self) -> dict[str, Any]:
        """Id, action and propensity as columns: `pandas.DataFrame(decisions.columns)`."""
        return {"id": self.ids, "action": self.actions.tolist(), "propensity": self.propensities.tolist()}

    def __len__(self) -> int:
        return len(self.actions)

    @overload
    def __getitem__(self, rows: int) -> Decision: ...
    @overload
    def __getitem__(self, rows: Any) -> Any: ...
    def __getitem__(self, rows: Any) -> Any:
        if not isinstance(rows, int | np.integer):
            return Decisions(self._rows[rows], self.actions[rows])
        row = range(len(self))[rows]
        contexts, action = self._rows.contexts, self.actions[row]
        action = action.item() if isinstance(action, np.generic) else action
        context = contexts[row] if self._rows.form == "dense" else contexts[row : row + 1]
        decision = Decision(action, float(self.propensities[row])).keep(context, int(self.numbers[row]))
        if self._rows.form != "dense" and not self._rows.action_names:
            decision.place = int(self._rows.actions[row])
        return decision

    def __repr__(self) -> str:
        return f"Decisions({len(self)}: {', '.join(map(str, self.actions[:5].tolist()))}{', …' * (len(self) > 5)})"

    def rewarded(self, rewards: object) -> Interactions:
        """Return the decisions with these rewards as a log; NaN: its reward is not known, its row is left out."""
        told = check_column("reward", rewards, np.float64)
        if len(told) != len(self):
            raise InvalidInput(
                f"rewards: found {len(told)} for {len(self)} decisions, expected one each; NaN: not known"
            )
        known = np.flatnonzero(~np.isnan(told))
        rows = self._rows if len(known) == len(self) else self._rows[known]
        return Interactions.trusted(
            rows.contexts, rows.actions, told[known], rows.propensities, None, rows.n_actions, bool(rows.continuous),
            rows.ids, rows.action_names,
        )  # fmt: skip
