"""Recomputation and explanation of stored decisions, bit for bit."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import numpy as np

from o2pl.engine.decider import Decider
from o2pl.errors import InvalidInput
from o2pl.explaining import Explanation
from o2pl.serving.applications import Application
from o2pl.serving.deciding import Acting, Drawn, redecided
from o2pl.serving.models import decider_of
from o2pl.serving.settings import Kind
from o2pl.serving.store import Store


class DecisionDiffers(InvalidInput):
    """Raised if a recomputed decision differs from the stored one."""


class Explained(NamedTuple):
    """One decision of an event, explained."""

    row: Any  # row of `decisions`
    names: list[str]  # of the allowed actions
    drawn: Drawn  # recomputed, identical
    explanation: Explanation | None  # None: no model yet, or a real-valued action
    outcome: Any  # row of `outcomes`; None: not known yet


def explain_event(
    store: Store, application: Application, event_id: str, action: str | None = None, against: str | None = None
) -> list[Explained]:
    """Explain an event, one result per slot. action, against: ids; None: the chosen and the most likely other one."""
    found = store.event(application.id, event_id)
    if not found["decisions"]:
        raise InvalidInput(f"event: found no event {event_id!r} in {application.name!r}, expected a stored event id")
    outcomes = {row.decision_id: row for row in found["outcomes"]}
    made = []
    for row in found["decisions"]:
        decider = _decider(store, application, row)
        drawn = recomputed(application, row, decider)
        names = [str(name) for name in json.loads(bytes(row.actions))] if row.actions is not None else []
        spoke = why(application, row, decider, names, action, against)
        made.append(Explained(row, names, drawn, spoke, outcomes.get(row.id)))
    return made


def _decider(store: Store, application: Application, row: Any) -> Decider | None:
    return decider_of(store.model_body(application.id, row.model_version)) if row.model_version else None


def recomputed(application: Application, row: Any, decider: Decider | None) -> Drawn:
    """Recompute the decision of this row from its model, context, actions and random number. A difference is an error.

    decider: the model of its version; None: version 0. Only the values stored in the row count: settings may have
    changed.
    """
    known: dict[str, Any] = {"exploration_percentage": row.exploration or None}
    if application.kind is Kind.FIXED and decider is not None:
        known["actions"] = tuple(decider.names)
    if application.kind is Kind.CONTINUOUS and decider is not None and decider.cells is not None:
        known["bounds"] = tuple(decider.cells.bounds)
    settings = msgspec.structs.replace(application.settings, **known)
    drawn = redecided(Acting(application.kind, settings, row.model_version, decider), row)
    same = (drawn.action, drawn.value, drawn.propensity) == (row.action, row.value, row.propensity)
    if row.probabilities is not None:
        again = b"" if drawn.probabilities is None else np.asarray(drawn.probabilities, "<f8").tobytes()
        same = same and again == bytes(row.probabilities)
    if not same:
        raise DecisionDiffers(
            f"event {row.event_id!r}: the recomputed decision differs from the stored one"
            f" ({drawn.action if drawn.value is None else drawn.value} with {drawn.propensity!r}, stored"
            f" {row.action if row.value is None else row.value} with {row.propensity!r}); was it written by o2pl serve?"
        )
    return drawn


def why(
    application: Application, row: Any, decider: Decider | None, names: list[str], action: str | None = None,
    against: str | None = None,
) -> Explanation | None:  # fmt: skip
    """Explain an action of this row, with the names of the allowed actions; None if there is no explanation."""
    if decider is None or application.kind is Kind.CONTINUOUS or len(names) < 2:
        return None
    asked = {"action": names[row.action] if action is None else action, "against": against}
    for name, one in asked.items():
        if one is not None and one not in names:
            raise InvalidInput(f"{name}: found {one!r}, expected one of {', '.join(names[:8])}")
    context = json.loads(bytes(row.context))
    acting = decider.exploring(row.exploration) if row.exploration else decider
    if application.kind is Kind.FIXED:
        left = [name for name in decider.names if name not in names]
        return acting.explain(context, exclude=left or None, action=asked["action"], against=asked["against"])
    places = {name: None if one is None else names.index(one) for name, one in asked.items()}
    found = acting.explain(context, action=places["action"], against=places["against"])
    return replace(
        found, action=names[found.action], against=None if found.against is None else names[found.against],
        probabilities={names[k]: p for k, p in found.probabilities.items()},
        without_exploration={names[k]: p for k, p in found.without_exploration.items()},
    )  # fmt: skip
