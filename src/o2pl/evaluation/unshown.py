"""Which of a policy's decisions the log hardly shows, and what they may earn: the same for every reward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.evaluation.estimators import EstimatorInput
from o2pl.evaluation.support import Support
from o2pl.learners.targets import PolicyRows, Target
from o2pl.protocols import Floats, Ints


class Model(Protocol):
    """A reward model: `RewardModel`, or `RunningRewards` for sequences."""

    def all_actions(self, rows: slice) -> Floats: ...
    def table(self, rows: slice) -> tuple[Floats, Floats | None]: ...
    def expected(self, does: PolicyRows, rows: slice, table: Floats | None) -> Floats | None: ...


class Side(NamedTuple):
    """A policy on the rows of a log, with its sign in the gain."""

    target: Target
    inputs: EstimatorInput  # its weights and the model's columns, in rewards
    sign: int = 1

    @property
    def logged(self) -> bool:
        return self.target.name == "logged"


class Unshown(NamedTuple):
    """The entries of the tables Σ sign π(a|x) that the log hardly shows, by blocks of rows."""

    parts: tuple[tuple[slice, int, Ints, Floats], ...]  # rows, width of the table (0: flat), places in it, and g there


class Hidden(NamedTuple):
    """What the log hardly shows, per row: Σ g m, Σ g⁺ and Σ g⁻ over those actions."""

    model: Floats
    more: Floats
    less: Floats


def unshown_of(log: Interactions, sides: Sequence[Side], limit: float, support: Support | None) -> Unshown | None:
    """Return it from the policies' tables; None: one of them has none."""
    if log.continuous or not sides:
        return Unshown(())
    if support is None:
        return None
    parts = []
    for rows in log.blocks():
        tables = [side.target.on(rows).probabilities for side in sides]
        given = [table for table in tables if table is not None]
        if len(given) < len(tables):
            return None
        width = max(table.shape[-1] for table in given)
        g = sum((side.sign * _padded_unshown(one, width) for side, one in zip(sides, given, strict=True)), np.zeros(1))
        places = np.flatnonzero(np.abs(g) > limit * _padded_unshown(support.propensities(log, rows), width))
        if len(places):
            parts.append((rows, width if g.ndim > 1 else 0, places, g.ravel()[places]))
    return Unshown(tuple(parts))


def hidden_in_unshown(log: Interactions, unshown: Unshown, model: Model, scaled: Callable[[Floats], Floats]) -> Hidden:
    """Return what it may earn. scaled: rewards as fractions of their range."""
    n = len(log)
    found = Hidden(np.zeros(n), np.zeros(n), np.zeros(n))
    for rows, width, places, g in unshown.parts:
        predicted = model.all_actions(rows)
        m = scaled(_padded_unshown(predicted, width or len(predicted), float(predicted.mean())).ravel()[places])
        owner = places // width if width else log.contexts[rows].owner[places]
        for column, values in zip(found, (g * m, np.maximum(g, 0.0), np.maximum(-g, 0.0)), strict=True):
            column[rows] = np.bincount(owner, values, len(column[rows]))
    return found


def _padded_unshown(table: Floats, width: int, value: float = 0.0) -> Floats:
    if table.ndim == 1 or table.shape[1] == width:
        return table
    return np.pad(table, ((0, 0), (0, width - table.shape[1])), constant_values=value)


def unshown_other_mass(log: Interactions, sides: Sequence[Side], limit: float, level: float) -> Hidden:
    """Return what policies without a table do besides the row's own action, where the log leaves no room for it."""
    n = len(log)
    found = Hidden(np.zeros(n), np.zeros(n), np.zeros(n))
    if log.continuous:
        return found
    for side in sides:
        rest = np.clip(1 - side.inputs.weights * log.propensities, 0.0, 1.0)
        rest = np.where(rest > limit * (1 - log.propensities) + 1e-9, rest, 0.0)
        found.model[:] += side.sign * level * rest
        (found.more if side.sign > 0 else found.less)[:] += rest
    return found
