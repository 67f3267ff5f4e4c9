"""Effects of single items, by id: the reward beyond the prediction from features, and how certain it is.

For item i, with z the log-odds that the members predicted for its plays, m = σ(z + e), g = Σ (r - m), h = Σ m (1 - m):

    e_i ~ N(0, σ²),  E g² ≈ h + h² σ² at e = 0, so σ² = Σ (g² - h) / Σ h² over all items, if that is above 0
    e_i = the mode given its plays, by Newton's steps e ← e + (g - e/σ²) / (h + 1/σ²)

If the features explain all differences between items, σ² is near 0 and so are all effects. Between two solves every
reward moves its item: h ← h + m (1 - m), e ← e + (r - m) / (h + 1/s²), s = .6. An item is tried by how much less
certain it is than the best one (`policies.sampling`):

    s_i² = 1/(1/s² + h_i) + min(1, 2/d)/d Σ_j x̃_j²/B_j,   B_j = v_j (3 + Σ h x̃_j²/v_j)

x̃: the item's numeric features less their mean over the offer, of variance v; Σ over the played items.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from o2pl.data.contexts import ActionSets
from o2pl.data.interactions import Interactions
from o2pl.engine.member import BLOCK_ROWS, MemberState
from o2pl.objectives.outcome import Outcome
from o2pl.protocols import Exploration, Floats, Ints
from o2pl.special import expit

_STEPS = 4
_MOST = 4.0  # upper limit of σ²: two items then differ by odds of about e²
_PRIOR = 0.6**2  # s²
_ROWS = 3.0  # what is known of the features' weights before the first play, in units of h x̃²/v
_NONE = np.empty(0)


class ItemMemory(NamedTuple):
    """Statistics of the played items. Its arrays do not change."""

    codes: Ints  # in ascending order, [m]
    plays: Ints  # [m]
    effects: Floats  # e, on the log-odds of a reward, [m]
    mean_reward: Any = 0.5  # as in exploration rules
    curvature: Floats = _NONE  # h, [m]; older files have none
    spread: Floats = _NONE  # Σ h x̃², [d]; none of hashed features
    variance: Floats = _NONE  # v, [d]

    def places(self, codes: Ints) -> tuple[Ints, Any]:
        """Return the place of each item, and whether it is known."""
        if not len(self.codes):
            return np.zeros(len(codes), np.int64), np.zeros(len(codes), np.bool_)
        places = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return places, self.codes[places] == codes

    def of(self, codes: Ints) -> tuple[Ints, Floats]:
        """Return plays and effects of these items; 0 for new ones."""
        places, known = self.places(codes)
        if not known.any():
            return np.zeros(len(codes), np.int64), np.zeros(len(codes))
        return np.where(known, self.plays[places], 0), np.where(known, self.effects[places], 0.0)

    def added(self, codes: Ints, exploration: Exploration) -> Floats:
        """Return what is added to the log-odds: item effects, and the bonus of a rule for rarely played items."""
        plays, effects = self.of(codes)
        bonus = exploration.at(plays, float(np.ravel(self.mean_reward)[0])).bonus
        return np.where(codes >= 0, effects + bonus, 0.0) if len(bonus) else effects

    def uncertain(self, sets: ActionSets) -> Floats:
        """Return the variance of each item's log-odds, [total]; of items without an id that from their features."""
        codes = np.asarray(sets.item_ids)
        places, known = self.places(codes)
        h = np.zeros(len(codes))
        if len(self.curvature):
            h = np.where(known, self.curvature[places], 0.0)
        found = np.where(codes >= 0, 1 / (1 / _PRIOR + h), 0.0)
        if len(self.spread):
            d = len(self.spread)
            weights = 1 / (self.variance * _ROWS + self.spread)
            found += min(1.0, 2 / d) / d * (centred_items(sets) ** 2 @ weights)
        return np.asarray(found)

    def with_reward(self, code: int, x: Floats, z: float, reward: float) -> ItemMemory:
        """Return the memory after one more reward of an item. x: its centred features; z: predicted log-odds"""
        place = int(np.searchsorted(self.codes, code))
        memory = self
        if place == len(self.codes) or self.codes[place] != code:
            memory = self._replace(
                codes=np.insert(self.codes, place, code), plays=np.insert(self.plays, place, 0),
                effects=np.insert(self.effects, place, 0.0), curvature=np.insert(self.curvature, place, 0.0),
            )  # fmt: skip
        m = float(expit(np.array([z + memory.effects[place]]))[0])
        h, e, plays = memory.curvature.copy(), memory.effects.copy(), memory.plays.copy()
        h[place] += m * (1 - m)
        e[place] += (reward - m) / (h[place] + 1 / _PRIOR)
        plays[place] += 1
        spread = memory.spread + m * (1 - m) * x**2 if len(memory.spread) else memory.spread
        return memory._replace(plays=plays, effects=e, curvature=h, spread=spread)


NOTHING = ItemMemory(np.empty(0, np.int64), np.empty(0, np.int64), _NONE)


def centred_items(sets: ActionSets) -> Floats:
    """Return the items' features less their mean over the offer. [total, d]"""
    values: Floats = np.asarray(sets.values, np.float64)
    if len(sets.offsets) == 2:
        return np.asarray(values - values.mean(axis=0))
    sizes = np.diff(sets.offsets)
    means = np.add.reduceat(values, sets.offsets[:-1]) / sizes[:, None]
    return np.asarray(values - np.repeat(means, sizes, axis=0))


def remembered_items(rows: Interactions, member: MemberState, mean_reward: float) -> ItemMemory:
    """Compute the item memory from these rows and the member's predictions. Without a reward model, effects are 0."""
    sets = rows.contexts
    played = sets.places(rows.actions)
    codes = sets.item_ids[played]
    own = codes >= 0
    found, items = np.unique(codes[own], return_inverse=True)
    plays = np.bincount(items, minlength=len(found))
    nothing = np.zeros(len(found))
    if not isinstance(member.objective, Outcome) or member.objective.competing or not len(found):
        return ItemMemory(found, plays, nothing, mean_reward, nothing)
    z = predicted_without_item_memory(rows, member)
    effects = item_effects(items, -rows.losses[own], z[own], len(found))
    m = expit(z[own] + effects[items])
    memory = ItemMemory(found, plays, effects, mean_reward, _totals_by_item(items, m * (1 - m), len(found)))
    if not isinstance(sets.values, np.ndarray):
        return memory
    x = centred_items(sets)
    return memory._replace(spread=(m * (1 - m)) @ x[played][own] ** 2, variance=np.maximum((x**2).mean(axis=0), 1e-12))


def entry_has_ids(entry: object) -> bool:
    """Return whether an encoded context names its items."""
    return getattr(entry, "item_ids", None) is not None


def told_item(memory: ItemMemory, row: Interactions, member: MemberState) -> ItemMemory:
    """Return the memory after the reward of one row of a log."""
    sets = row.contexts
    place = int(sets.places(row.actions)[0])
    code = -1 if sets.item_ids is None else int(sets.item_ids[place])
    known = isinstance(member.objective, Outcome) and not member.objective.competing
    if code < 0 or not known:
        return memory
    x = centred_items(sets)[place] if len(memory.spread) else _NONE
    return memory.with_reward(code, x, float(predicted_without_item_memory(row, member)[0]), float(-row.losses[0]))


def predicted_without_item_memory(rows: Interactions, member: MemberState) -> Floats:
    """Return the predicted log-odds of the rewards of the played items, without their effects. [n]"""
    z = np.empty(len(rows))
    for start in range(0, len(rows), BLOCK_ROWS):
        own = slice(start, start + BLOCK_ROWS)
        played = rows.contexts[own].played(rows.actions[own])
        alone = ActionSets(member.seen.features.transform(member.seen.state, played), np.arange(len(played) + 1))
        z[own] = member.policy.scores(member.own_params, alone) + member.params[-1]
    return z


def item_effects(items: Ints, rewards: Floats, z: Floats, n_items: int) -> Floats:
    """Return the effect e of each item. [n_items]"""

    def sums(effects: Any) -> tuple[Floats, Floats]:
        m = expit(z + effects)
        return _totals_by_item(items, rewards - m, n_items), _totals_by_item(items, m * (1 - m), n_items)

    g, h = sums(0.0)
    spread = float(np.clip((g @ g - h.sum()) / max(h @ h, 1e-12), 0.0, _MOST))
    effects = np.zeros(n_items)
    if spread == 0:
        return effects
    for _ in range(_STEPS):
        effects = effects + np.clip((g - effects / spread) / (h + 1 / spread), -1, 1)
        g, h = sums(effects[items])
    return effects


def _totals_by_item(items: Ints, values: Floats, n_items: int) -> Floats:
    """Return the sum of the values of each item. [n_items]"""
    return np.asarray(np.bincount(items, values, n_items), np.float64)
