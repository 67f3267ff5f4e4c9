"""One context from the policy's view: the available actions, their scores and probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from o2pl._core import acting_rows
from o2pl.data.contexts import are_sparse_contexts, as_contexts, is_encoded_context
from o2pl.data.decisions import Decision, ListDecision
from o2pl.data.kinds import offer_of
from o2pl.data.offers import allowed_in_offer
from o2pl.encode.feature_names import column_feature_names, entry_feature_names, shown_feature_values
from o2pl.errors import InvalidInput
from o2pl.policies.sampling import ActingParts, acting_among, acting_parts
from o2pl.protocols import Floats, Ints

if TYPE_CHECKING:
    from o2pl.engine.decider import Decider

Given = tuple[Any, Any, Any, Any]  # context, items, ids, exclude: arguments of `act`


class Situation(NamedTuple):
    """The K allowed actions in one context."""

    rows: Any  # the encoded context, one row
    names: Any  # of the columns; for hashed rows of the entries, row by row
    actions: list[Any]  # names
    places: list[int]  # indices among all actions, or in the set
    scores: Floats  # [M, K]
    acting: ActingParts  # its bonus is only that of exploration
    effects: Floats  # item effects by id, on log π, [K]
    variance: Floats | None  # of the predicted log-odds, [K]; None: all the same
    probabilities: Floats  # [K]
    chosen: int | None  # the action of a decision

    @property
    def sets(self) -> bool:
        return as_contexts(self.rows).items is not None

    @property
    def inputs(self) -> Any:
        """The inputs of the feature map: one row, or one per action."""
        return as_contexts(self.rows).inputs


def situation(decider: Decider, given: Given) -> Situation:
    """Return the situation of a context or a decision."""
    context, items, ids, exclude = given
    decision = context if isinstance(context, Decision) else None
    if isinstance(decision, ListDecision):
        raise InvalidInput("explain: found a list, expected the decision for one slot: decision.decisions[0]")
    if decision is not None:
        if decision.context is None:
            raise InvalidInput(
                "explain: found a decision without a context, expected one that `act` returned, or a context"
            )
        context = decision.context
    sets = decider.encoder.items
    offer = None
    if sets and not is_encoded_context(context):
        context = offer = offer_of(context, items, ids, exclude)
    elif items is not None or ids is not None:
        raise InvalidInput("explain: found items or `ids`, expected them only for a learner that chooses among items")
    rows: Any = context if is_encoded_context(context) else decider.encoder.encode_one(context)
    if len(rows) != 1:
        raise InvalidInput(f"explain: found {len(rows)} contexts, expected one")
    scores = np.ascontiguousarray(decider.scores(rows).reshape(len(decider.members), -1))
    places: Ints = np.arange(scores.shape[1])
    effects: Floats = np.zeros(len(places))
    numbers = decider.acting
    if sets:
        actions = list(places) if offer is None else offer.actions
        if rows.item_ids is not None:
            effects = decider.effects(rows.item_ids)
    else:
        if exclude is not None:
            places = allowed_in_offer(len(places), exclude, names=decider.names)
            numbers = acting_among(numbers, len(decider.members), places)
            scores, effects = np.ascontiguousarray(scores[:, places]), effects[places]
        actions = [decider.names[place] for place in places] if decider.names else places.tolist()
    actions = [int(one) if isinstance(one, np.integer) else one for one in actions]
    chosen = None
    if decision is not None and sets and isinstance(decision.played, int):
        chosen = decision.played
        actions[chosen] = decision.action  # the ids of the others are not stored
    elif decision is not None:
        if decision.action not in actions:
            raise InvalidInput(f"explain: found the action {decision.action!r}, expected one of the allowed actions")
        chosen = actions.index(decision.action)
    probabilities = np.empty(len(places))
    variance, optimism = decider.doubt(rows, places)
    acting_rows(scores, np.array([0, len(places)]), numbers, probabilities, variance, optimism)
    acting = acting_parts(numbers, len(decider.members), len(places))
    acting = acting._replace(bonus=acting.bonus - effects + (0 if optimism is None else optimism))
    names = _names_in_situation(decider, rows, context)
    return Situation(rows, names, actions, places.tolist(), scores, acting, effects, variance, probabilities, chosen)


def _names_in_situation(decider: Decider, rows: object, context: object) -> Any:
    contexts = as_contexts(rows)
    if are_sparse_contexts(contexts.own):
        return entry_feature_names(decider.encoder, context)
    return column_feature_names(decider.encoder, contexts.n_inputs)


def shown_situation(decider: Decider, here: Situation, place: int) -> dict[str, str]:
    """Return the feature values of an action's row, formatted for display."""
    row = place if here.sets else 0
    if not are_sparse_contexts(here.inputs):
        return shown_feature_values(decider.encoder, here.inputs[row])
    found: dict[str, list[str]] = {}
    for named in here.names[row]:
        if len(named.features) == 1:
            found.setdefault(named.features[0], []).append(named.value)
    return {name: ", ".join(words) for name, words in found.items()}
