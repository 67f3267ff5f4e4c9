"""One event as text and tables, for the dashboard."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from o2pl.engine.decider import Decider
from o2pl.errors import InvalidInput
from o2pl.serving.applications import Application
from o2pl.serving.events import DecisionDiffers, recomputed, why
from o2pl.serving.models import decider_of
from o2pl.serving.page_summary import action_names
from o2pl.serving.store import Store

_SHOWN = 8  # number of features shown


def tell_event(store: Store, application: Application, event_id: str) -> list[dict[str, Any]]:
    """Return one description per slot; empty if there is no such event."""
    found = store.event(application.id, event_id)
    rewards = {row.decision_id: row for row in found["outcomes"]}
    return [
        {**_told(row, rewards.get(row.id), found["activations"], application), **_explained(store, application, row)}
        for row in found["decisions"]
    ]


def _told(row: Any, outcome: Any, activations: Any, application: Application) -> dict[str, Any]:
    names = action_names(row.actions, application)
    played = None if row.action is None else names[row.action]
    told: dict[str, Any] = {
        "slot": row.slot,
        "said": " ".join([_decided(row, names, played), _rewarded(row, outcome, activations)]),
        "context": json.dumps(json.loads(bytes(row.context)), indent=1, ensure_ascii=False),
    }
    if row.probabilities is not None:
        shares = np.frombuffer(row.probabilities, "<f8").tolist()
        listed = [
            {"id": name, "probability": p, "played": place == row.action}
            for place, (name, p) in enumerate(zip(names, shares, strict=True))
        ]
        told["actions"] = sorted(listed, key=lambda each: -each["probability"])
    return told


def _decided(row: Any, names: list[str], played: str | None) -> str:
    who = f"Version {row.model_version}" if row.model_version else "The uniform policy (no model yet)"
    if played is None:
        return f"{who} chose {row.value:.6g}; its density was {row.propensity:.4g}."
    if row.preferred is not None:
        own = names[row.preferred]
        return f"The application's own choice, {played}, was returned; the policy would have chosen {own}."
    said = f"{who} chose {played} with probability {row.propensity:.1%}."
    if row.baseline is not None:
        said += (
            " The baseline is the same." if row.baseline == row.action else f" The baseline is {names[row.baseline]}."
        )
    return said


def _rewarded(row: Any, outcome: Any, activations: Any) -> str:
    if outcome is not None:
        return f"Its reward is {outcome.reward:g}{', the default' if outcome.by_default else ''}."
    if row.deferred and not activations:
        return "It was deferred and is not activated yet, so it does not count."
    return "It has no reward yet."


def _explained(store: Store, application: Application, row: Any) -> dict[str, Any]:
    """Return the explanation of the action compared with the most likely other one, or why there is none."""
    if not row.model_version:
        return {"note": "There was no model yet: all actions had the same probability."}
    try:
        decider = decider_of(store.model_body(application.id, row.model_version))
        again = _made_again(application, row, decider)
        found = why(application, row, decider, action_names(row.actions, application))
    except InvalidInput as error:
        return {"note": f"No explanation: {error}."}
    if found is None or found.against is None:
        return {"note": again}
    return {
        "featuresTitle": f"Features in favour of {found.action}, compared with {found.against}",
        "features": [{"name": _feature(each), "adds": each.adds} for each in found.features[:_SHOWN]],
        "note": (
            f"Differences by feature; products are split between their features. Their sum, {found.difference:+.3f}, is"
            f" {_summed(found, row.model_version)} {again}"
        ),
    }


def _summed(found: Any, version: int) -> str:
    if found.sharpness is None:
        return f"the difference of the log-odds of a reward that version {version} predicts. Exploration is added."
    return (
        f"that of log probabilities, which version {version} multiplies by {found.sharpness:g}; exploration is added."
    )


def _made_again(application: Application, row: Any, decider: Decider) -> str:
    try:
        recomputed(application, row, decider)
    except DecisionDiffers:
        return "The recomputed decision differs from the stored one: was it written by o2pl serve?"
    return "Recomputed from the stored data, it is identical, to the last digit."


def _feature(each: Any) -> str:
    name = each.name.removeprefix("shared.")
    return f"{name} = {each.value}" + (f", not {each.against}" if each.against not in ("", each.value) else "")
