"""Support of an action in the log: plays and rewards in similar contexts.

The *near* rows of the log are the 5 % (at least 50 rows) whose contexts are most similar to this one, by the distance
of standardised inputs (for hashed features: of scaled values). The support counts how often the action was played
there, and its mean reward. It needs no model. For action sets, near rows are offers of similar items.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from o2pl.data.contexts import SparseRows, are_sparse_contexts, as_contexts
from o2pl.data.interactions import BLOCK, Interactions
from o2pl.features.hashing import Hashed
from o2pl.features.standardise import Standardise
from o2pl.policies.sparse import sparse_scores
from o2pl.protocols import Floats

_SHARE = 20  # one row in 20 is near
_LEAST = 50  # minimum number of near rows
_MOST = 100_000  # largest number of rows used, the last ones
FEW = 10  # with fewer near plays, the mean is not reliable
_SCALE = Standardise()


class ActionSupport(NamedTuple):
    """Support of one action. Rewards are NaN if it was not played."""

    plays: int  # in all rows
    reward: float  # mean reward
    near: int  # near rows, or offers of similar items
    near_plays: int  # plays of the action in them
    near_reward: float


class LogSupport(NamedTuple):
    """Support of the actions of an explanation."""

    rows: int  # rows used: those learned from, at most the last 100,000
    offers: bool  # whether rows are offers of items
    actions: dict[Any, ActionSupport]

    def says(self, action: object) -> str:
        """Return the support as a sentence."""
        own, called = self.actions[action], action if isinstance(action, str) else f"action {action}"
        what = f"the {own.near:,} {'most similar offers' if self.offers else 'most similar rows'}"
        if not own.near_plays:
            return f"{called} was never played in {what}"
        times = f"{own.near_plays:,} times" if own.near_plays > 1 else "once"
        few = "; too few to rely on" if own.near_plays < FEW else ""
        return f"{called} was played {times} in {what}, with a mean reward of {own.near_reward:.3g}{few}"


def action_support_in(
    log: Interactions, member: Any, rows: Any, actions: list[Any], places: list[int]
) -> LogSupport | None:
    """Return the actions' support. places: indices among all actions or in the set. member: for hashed features."""
    log = log[-_MOST:]
    if not len(log):
        return None
    if as_contexts(rows).items is not None:
        own, mask = log.encoded.inputs, np.zeros(int(log.encoded.offsets[-1]), bool)
        played = log.encoded.places(log.actions)
        mask[played] = True
        rewards: Floats = np.zeros(len(mask))
        rewards[played] = log.rewards
        items = rows.inputs
        near = [_action_support_near(own, items[place : place + 1], member) for place in places]
        masks = [mask] * len(places)
    else:
        one = _action_support_near(log.contexts, rows, member)
        near, masks, rewards = [one] * len(places), [log.actions == place for place in places], log.rewards
    found = {a: _action_support_counted(n, m, rewards) for a, n, m in zip(actions, near, masks, strict=True)}
    return LogSupport(len(log), as_contexts(rows).items is not None, found)


def _action_support_counted(near: Any, played: Any, rewards: Floats) -> ActionSupport:
    def mean(rows: Any) -> float:
        return float(rewards[rows].mean()) if rows.any() else float("nan")

    both = near & played
    return ActionSupport(int(played.sum()), mean(played), int(near.sum()), int(both.sum()), mean(both))


def _action_support_near(rows: Any, row: Any, member: Any) -> Any:
    """Return which rows are near, ties included. [n]"""
    distances = (
        _action_support_sparse_distances(rows, row, member)
        if are_sparse_contexts(rows)
        else _action_support_distances(rows, row)
    )
    wanted = min(len(distances), max(_LEAST, len(distances) // _SHARE))
    return distances <= np.partition(distances, wanted - 1)[wanted - 1]


def _action_support_distances(rows: Floats, row: Floats) -> Floats:
    """Return squared distances of standardised rows. [n]"""
    state = _SCALE.init(rows.shape[1])
    blocks = [slice(start, start + BLOCK) for start in range(0, len(rows), BLOCK)]
    for block in blocks:
        state = _SCALE.observe(state, rows[block])
    here = _SCALE.transform(state, np.ascontiguousarray(row, np.float32))
    return np.concatenate([((_SCALE.transform(state, rows[block]) - here) ** 2).sum(axis=1) for block in blocks])


def _action_support_sparse_distances(rows: SparseRows, row: SparseRows, member: Any) -> Floats:
    """Return |a|² + |b|² - 2 a·b of scaled rows. [n]"""
    features: Hashed = member.features
    here, there = features.transform(member.seen, row), features.transform(member.seen, rows)
    direction = np.zeros((there.width, 1))
    np.add.at(direction[:, 0], here.indices, here.values)
    owner = np.repeat(np.arange(len(there)), np.diff(there.offsets))
    norms = np.bincount(owner, there.values.astype(np.float64) ** 2, len(there))
    return norms + float((direction**2).sum()) - 2 * sparse_scores(there, direction)[:, 0]
