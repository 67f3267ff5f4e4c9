"""Effects of single items, by id: the number of plays, and the reward beyond the prediction from features.

For item i, with z the log-odds that the members predicted for its plays, m = σ(z + e), g = Σ (r - m), h = Σ m (1 - m):

    e_i ~ N(0, σ²),  E g² ≈ h + h² σ² at e = 0, so σ² = Σ (g² - h) / Σ h² over all items, if that is above 0
    e_i = the mode given its plays, by Newton's steps e ← e + (g - e/σ²) / (h + 1/σ²)

If the features explain all differences between items, σ² is near 0 and so are all effects.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from o2pl.data.contexts import ActionSets
from o2pl.data.interactions import Interactions
from o2pl.engine.member import STRETCH, MemberState
from o2pl.objectives.outcome import Outcome
from o2pl.protocols import Exploration, Floats, Ints
from o2pl.special import expit

_STEPS = 4
_MOST = 4.0  # upper limit of σ²: two items then differ by odds of about e²
_NONE = np.empty(0)


class ItemMemory(NamedTuple):
    """Statistics of the played items."""

    codes: Ints  # in ascending order, [m]
    plays: Ints  # [m]
    effects: Floats  # e, on the log-odds of a reward, [m]
    mean_reward: Any = 0.5  # as in exploration rules

    def of(self, codes: Ints) -> tuple[Ints, Floats]:
        """Return plays and effects of these items; 0 for new ones."""
        if not len(self.codes):
            return np.zeros(len(codes), np.int64), np.zeros(len(codes))
        places = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        known = self.codes[places] == codes
        return np.where(known, self.plays[places], 0), np.where(known, self.effects[places], 0.0)

    def added(self, codes: Ints, exploration: Exploration) -> Floats:
        """Return what is added to log π: item effects, and the bonus of rarely played items."""
        plays, effects = self.of(codes)
        bonus = exploration.at(plays, float(np.ravel(self.mean_reward)[0])).bonus
        return np.where(codes >= 0, effects + bonus, 0.0) if len(bonus) else effects


NOTHING = ItemMemory(np.empty(0, np.int64), np.empty(0, np.int64), _NONE)


def remembered(rows: Interactions, member: MemberState, mean_reward: float) -> ItemMemory:
    """Compute the item memory from these rows and the member's predictions. Without a reward model, effects are 0."""
    sets = rows.contexts
    codes = sets.item_ids[sets.places(rows.actions)]
    own = codes >= 0
    found, items = np.unique(codes[own], return_inverse=True)
    plays = np.bincount(items, minlength=len(found))
    if not isinstance(member.objective, Outcome) or member.objective.competing or not len(found):
        return ItemMemory(found, plays, np.zeros(len(found)), mean_reward)
    z = _predicted_log_odds(rows, member)
    return ItemMemory(found, plays, item_effects(items, -rows.losses[own], z[own], len(found)), mean_reward)


def _predicted_log_odds(rows: Interactions, member: MemberState) -> Floats:
    """Return the predicted log-odds of the rewards of the played items. [n]"""
    z = np.empty(len(rows))
    for start in range(0, len(rows), STRETCH):
        own = slice(start, start + STRETCH)
        played = rows.contexts[own].played(rows.actions[own])
        alone = ActionSets(member.seen.features.transform(member.seen.state, played), np.arange(len(played) + 1))
        z[own] = member.policy.scores(member.own_params, alone) + member.params[-1]
    return z


def item_effects(items: Ints, rewards: Floats, z: Floats, n_items: int) -> Floats:
    """Return the effect e of each item. [n_items]"""

    def sums(effects: Any) -> tuple[Floats, Floats]:
        m = expit(z + effects)
        return _totals(items, rewards - m, n_items), _totals(items, m * (1 - m), n_items)

    g, h = sums(0.0)
    spread = float(np.clip((g @ g - h.sum()) / max(h @ h, 1e-12), 0.0, _MOST))
    effects = np.zeros(n_items)
    if spread == 0:
        return effects
    for _ in range(_STEPS):
        effects = effects + np.clip((g - effects / spread) / (h + 1 / spread), -1, 1)
        g, h = sums(effects[items])
    return effects


def _totals(items: Ints, values: Floats, n_items: int) -> Floats:
    """Return the sum of the values of each item. [n_items]"""
    return np.asarray(np.bincount(items, values, n_items), np.float64)
