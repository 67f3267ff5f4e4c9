"""Decisions among items: one item, or a list of different items, slot by slot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from o2pl.data.decisions import Decision, ListDecision
from o2pl.data.offers import Offer
from o2pl.encode import Encoder
from o2pl.errors import InvalidInput


def list_decision_for_offer(
    decide: Callable[[Any], Decision], encoder: Encoder, offer: Offer, slots: int | None
) -> Decision:
    """Decide among the items of an offer. decide: decides on one action set.

    Each slot draws among the remaining items, so the propensity of a list is the product of its slots' propensities.
    """
    if slots is None:
        return _named_list_decision(decide(encoder.entry(offer)), offer)
    made: list[Decision] = []
    for slot in range(slots):
        left = offer.without([one.action for one in made], slot)
        made.append(_named_list_decision(decide(encoder.entry(left)), left))
    return ListDecision.of(made)


def _named_list_decision(decision: Decision, offer: Offer) -> Decision:
    """Return the decision with the chosen item's id, or its index among all items."""
    if offer.ids is None and offer.kept is None:
        return decision
    made = Decision(offer.action(decision.action), decision.propensity)
    made.kept, made.place = decision.kept, decision.action
    return made


def list_decision_rewards(rewards: Any, slots: int) -> list[float]:
    """Return one reward per slot. A single reward for the list is used for each slot."""
    if np.ndim(rewards) == 0:
        return [rewards] * slots
    if len(rewards) != slots:
        raise InvalidInput(f"rewards: found {len(rewards)}, expected one per slot ({slots}), or one for the whole list")
    return [float(reward) for reward in rewards]


def list_decision_propensities(propensities: Any, slots: int) -> list[float]:
    if np.ndim(propensities) == 0 or len(propensities) != slots:
        found = f"{propensities!r}" if np.ndim(propensities) == 0 else f"{len(propensities)}"
        raise InvalidInput(
            f"propensities: found {found}, expected one per slot ({slots}), as in `decision.propensities`"
        )
    return [float(one) for one in propensities]
