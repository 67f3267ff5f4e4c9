"""Estimators of the value of lists, one term per list: what each assumes of how slots depend on each other.

With w_l = π(a_l | remaining)/q_l, W_l = w_1 … w_l (W_0 = 1), a list of L slots with rewards r_l, and the reward model
m_l(a) of a slot:

    list             W_L Σ r_l                                          nothing
    cascade          Σ W_l r_l                                          lower slots do not change what happens above
    cascade-dr       Σ W_l (r_l - m_l(a_l)) + W_{l-1} Σ_a π(a) m_l(a)   the same; m only reduces the variance
    independent      Σ w_l r_l                                          a slot's reward depends on its own item alone
    pseudo-inverse   (1 + Σ (w_l - 1)) Σ r_l                            rewards of slots add up

The last two take slots as drawn independently: exact where each slot has items of its own, biased where slots share
items. The value of a list is the mean over its slots: terms are divided by L.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.evaluation.intervals import normal_interval
from o2pl.evaluation.results import Valued
from o2pl.evaluation.reward_models import fit_rewards
from o2pl.learners.targets import Target
from o2pl.objectives.weights import policy_weights
from o2pl.protocols import Array, Floats, Ints


class ListColumns(NamedTuple):
    """Columns of lists, one entry per slot; slots that a list does not have are marked. [n, L]"""

    rewards: Floats
    weights: Floats  # π(a_l | remaining)/q_l
    has: Array  # whether the list has the slot
    played: Floats | None = None  # m_l(a_l)
    expected: Floats | None = None  # Σ_a π(a | remaining) m_l(a)


def _list_products(columns: ListColumns) -> Floats:
    return np.asarray(np.cumprod(np.where(columns.has, columns.weights, 1.0), axis=1), np.float64)


def _list(columns: ListColumns) -> Floats:
    return np.asarray(_list_products(columns)[:, -1] * _list_sum(columns, columns.rewards))


def _list_cascade(columns: ListColumns) -> Floats:
    return _list_sum(columns, _list_products(columns) * columns.rewards)


def _list_cascade_dr(columns: ListColumns) -> Floats:
    if columns.played is None or columns.expected is None:
        raise InvalidInput("cascade-dr: found no reward model, expected its columns `played` and `expected`")
    down = _list_products(columns)
    above = np.concatenate([np.ones((len(down), 1)), down[:, :-1]], axis=1)
    return _list_sum(columns, down * (columns.rewards - columns.played) + above * columns.expected)


def _list_independent(columns: ListColumns) -> Floats:
    return _list_sum(columns, columns.weights * columns.rewards)


def _list_pseudo_inverse(columns: ListColumns) -> Floats:
    return np.asarray((1 + _list_sum(columns, columns.weights - 1)) * _list_sum(columns, columns.rewards))


def _list_sum(columns: ListColumns, values: Floats) -> Floats:
    return np.asarray(np.where(columns.has, values, 0.0).sum(axis=1))


LIST_ESTIMATORS: dict[str, tuple[str, Callable[[ListColumns], Floats]]] = {
    "list": ("product of all weights: assumes nothing", _list),
    "cascade": ("product of the weights down to the slot: lower slots do not change what happens above", _list_cascade),
    "cascade-dr": ("cascade with a reward model", _list_cascade_dr),
    "independent": ("a slot's own weight: its reward depends on its own item alone", _list_independent),
    "pseudo-inverse": ("1 + Σ (w - 1): rewards of slots add up", _list_pseudo_inverse),
}


def list_terms(name: str, columns: ListColumns) -> Floats:
    """Return the terms of an estimate; its value is their mean. [n]"""
    if name not in LIST_ESTIMATORS:
        raise InvalidInput(f"estimators: found {name!r}, expected one of {', '.join(LIST_ESTIMATORS)}")
    return np.asarray(LIST_ESTIMATORS[name][1](columns) / columns.has.sum(axis=1))


def list_columns(log: Interactions, starts: Ints, target: Target) -> ListColumns:
    """Return the columns of a policy on a log of lists, with a cross-fitted reward model."""
    model = fit_rewards(log)
    likely, played, expected = (np.empty(len(log)) for _ in range(3))
    for block in log.blocks():
        does = target.on(block)
        likely[block] = does.played
        played[block], table = model.table(block)
        value = model.expected(does, block, table)
        expected[block] = np.nan if value is None else value
    lengths = np.diff(np.append(starts, len(log)))
    has = np.arange(lengths.max()) < lengths[:, None]

    def slots(column: Floats, empty: float = 0.0) -> Floats:
        made = np.full(has.shape, empty)
        made[has] = column
        return made

    known = np.isfinite(expected).all()
    return ListColumns(
        slots(log.rewards), slots(policy_weights(likely, log.propensities), 1.0), has,
        slots(played) if known else None, slots(expected) if known else None,
    )  # fmt: skip


def list_estimates(
    log: Interactions, starts: Ints, target: Target, names: Sequence[str], delta: float
) -> tuple[Valued, ...]:
    """Return estimates with normal intervals at level 1 - δ each; no verdict comes from them."""
    columns = list_columns(log, starts, target)
    found = []
    for name in names:
        terms = list_terms(name, columns)
        finite = bool(np.isfinite(terms).all())
        ends = normal_interval(terms, delta) if finite else (-np.inf, np.inf)
        found.append(Valued(name, LIST_ESTIMATORS[name][0], float(terms.mean()) if finite else np.nan, *ends))
    return tuple(found)
