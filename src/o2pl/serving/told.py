"""One event in words and tables, as the page tells it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from o2pl.serving.applications import Application
from o2pl.serving.store import Store
from o2pl.serving.summary import action_names


def tell_event(store: Store, application: Application, event_id: str) -> list[dict[str, Any]]:
    """One for each slot; none where there is no such event."""
    found = store.event(application.id, event_id)
    rewards = {row.decision_id: row for row in found["outcomes"]}
    return [_told(row, rewards.get(row.id), found["activations"], application) for row in found["decisions"]]


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
    who = f"Version {row.model_version}" if row.model_version else "Uniform choice, before the first model,"
    if played is None:
        return f"{who} answered {row.value:.6g}; the density there was {row.propensity:.4g}."
    if row.preferred is not None:
        own = names[row.preferred]
        return f"The application's own choice, {played}, was answered; the policy would have chosen {own}."
    said = f"{who} chose {played} with probability {row.propensity:.1%}."
    if row.baseline is not None:
        said += " So would the baseline." if row.baseline == row.action else f" The baseline is {names[row.baseline]}."
    return said


def _rewarded(row: Any, outcome: Any, activations: Any) -> str:
    if outcome is not None:
        return f"It is learned with the reward {outcome.reward:g}{', the default' if outcome.by_default else ''}."
    if row.deferred and not activations:
        return "It was deferred and is not activated, so it does not count."
    return "Its reward is open."
