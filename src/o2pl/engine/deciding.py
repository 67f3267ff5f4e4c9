"""The acting policy of what an engine has learned: a `Decider`, and what rewards since then change of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from o2pl.engine.acting import ActingMember, split
from o2pl.engine.decider import Decider
from o2pl.engine.item_memory import NOTHING, ItemMemory, remembered_items, told_item
from o2pl.engine.uncertainty import uncertainty_of
from o2pl.policies.sampling import BY_EXCESS, acting_numbers, check_explored
from o2pl.protocols import Floats

if TYPE_CHECKING:
    from o2pl.engine.engine import Engine
    from o2pl.engine.member import MemberState


def decider_of(engine: Engine, before: Decider | None = None) -> Decider:
    """Return the acting policy. before: an earlier one, whose unchanged parts are reused."""
    log, spec = engine.log, engine.spec
    acting, counts = [], []
    for m in engine.present:
        plan = None if log.sparse or log.shared is not None else m.seen.plan(log.width)
        own = m.acting(log.width)
        acting += [ActingMember(m.seen.features, m.seen.state, policy, params, plan) for policy, params in own]
        counts.append(len(own))
    engine.mean_reward = engine.mean_reward.extended(log, engine.base, engine.learned)
    tally = log.tally(engine.learned).since(engine.forgotten)
    explored = check_explored(spec.exploration.at(tally.plays, engine.mean_reward.value, tally.rewards), log.n_actions)
    numbers = acting_numbers(split(engine.weights, counts), spec.sharpness, explored, _predicting_when_deciding(engine))
    names, items, rule = log.action_names, _items_remembered_for_deciding(engine), spec.exploration
    unsure = uncertainty_of(engine)
    return Decider(acting, numbers, spec.sharpness, engine.encoder, before, names, items, rule, unsure)


def _predicting_when_deciding(engine: Engine) -> Floats:
    """Return how the members' scores predict rewards, for `acting_numbers`. [M, 4], or none"""
    if engine.spec.sharpness != BY_EXCESS:
        return np.empty((0, 4))
    made = []
    for m in engine.present:
        tau = m.params[-1] if m.objective.extra else 0.0
        made.append([getattr(m.objective, "competing", True), tau, *((0, 1) if m.objective.extra else m.calibration)])
    return np.array(made, np.float64)


# -- items by id


def _best_member_for_deciding(engine: Engine) -> MemberState:
    return engine.present[int(np.argmax(engine.weights))]


def _items_remembered_for_deciding(engine: Engine) -> ItemMemory:
    """Return the item memory from the rows since the base that were learned from."""
    sets = engine.log.contexts if engine.log.action_sets else None
    if sets is None or sets.item_ids is None or engine.learned <= engine.base:
        return NOTHING
    engine.items_known = engine.learned
    rows = engine.log[engine.base : engine.learned].thinned()
    return remembered_items(rows, _best_member_for_deciding(engine), engine.mean_reward.value)


def look_at_items(engine: Engine) -> None:
    """Let rewards since the last solve move the effects of their items."""
    with engine.compiled.only_looked_at():
        member, items = _best_member_for_deciding(engine), engine.decider.items
        for n in range(engine.items_known, len(engine.log)):
            items = told_item(items, engine.log[n : n + 1], member)
        engine.decider = engine.decider.with_items(items)
    engine.items_known = len(engine.log)
