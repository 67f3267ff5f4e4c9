"""Base class of the learners with a real-valued action: checks of actions, and densities."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from o2pl.data.kinds import ROW
from o2pl.encode import Encoder
from o2pl.encode.schema import schema_has_texts
from o2pl.engine.simulation import Rewards
from o2pl.errors import InvalidInput
from o2pl.explaining.explained import Explainable
from o2pl.learners.base import BanditEstimator
from o2pl.protocols import Array, Floats
from o2pl.validation import check_continuous_actions, check_pair, check_reward_range, check_rewards

Bounds = tuple[float, float]


class ContinuousEstimator(Explainable, BanditEstimator):
    """Base class of learners with a real-valued action. Propensities are densities."""

    bounds: Bounds | None = None
    _action_type = float
    _density = True

    def predict_density(self, contexts: object, actions: object) -> Floats:
        """Return the density of each action under the acting policy, [n]."""
        rows = self._begun().encoder.encode(contexts)
        return self._likelihoods(rows, check_continuous_actions(_one_continuous_each(rows, actions)))

    def predict_moments(self, contexts: object) -> tuple[Floats, Floats]:
        """Return the exact mean and standard deviation of the acting policy's actions. [n], [n]"""
        return self._begun().decider.moments(self._begun().encoder.encode(contexts))

    def nodes(self, contexts: object) -> tuple[Floats, Floats]:
        """Return quadrature nodes and weights of the policy, exact for quadratic functions of the action."""
        return self._begun().decider.nodes(contexts)

    def _new_encoder(self, kind: str = ROW, **known: Any) -> Encoder:
        return Encoder(kind, **known)

    def _kind_of(self, contexts: object) -> str:
        if schema_has_texts(contexts):
            raise InvalidInput(
                f"contexts: found texts, which {type(self).__name__} would take for categories, expected categories of"
                " one or two words, or numbers, such as an embedding in columns of its own"
            )
        return ROW

    def _check_actions(self, encoder: Encoder, rows: Any, actions: Any) -> Array:
        checked = check_continuous_actions(_one_continuous_each(rows, actions))
        bounds = check_continuous_bounds(self.bounds)
        if bounds is not None:
            _check_continuous_within(checked, bounds)
        return checked

    def _action_bounds(self, encoder: Encoder) -> tuple[float, float]:
        bounds = check_continuous_bounds(self.bounds)
        if bounds is None:
            return -sys.float_info.max, math.inf
        return math.nextafter(bounds[0], math.inf), bounds[1]

    def _rewards(self, encoder: Encoder, rounds: int, rewards: object) -> tuple[Rewards, int | None]:
        if not callable(rewards):
            raise InvalidInput(f"rewards: found {type(rewards).__name__}, expected a function of rows and actions")
        ends = check_reward_range(self.reward_range)
        return Rewards(lambda rows, actions: check_rewards(rewards(rows, actions), ends)), None


def check_continuous_bounds(bounds: object) -> Bounds | None:
    return None if bounds is None else check_pair("bounds", bounds, "lowest action", "highest action")


def _one_continuous_each(rows: Any, actions: Any) -> Any:
    found = len(np.atleast_1d(actions))
    if found != len(rows):
        raise InvalidInput(f"actions: found {found}, expected one per context ({len(rows)})")
    return actions


def _check_continuous_within(actions: Floats, bounds: Bounds) -> None:
    """Check that actions are strictly within the bounds: clipped actions have a probability but no density."""
    low, high = bounds
    wrong = ~((low < actions) & (actions < high))
    if not wrong.any():
        return
    row = int(np.argmax(wrong))
    action, where = actions[row], f"actions between the bounds {low:g} and {high:g}"
    if action in (low, high):
        raise InvalidInput(
            f"action, row {row}: found {action:g}, which is one of the bounds, expected {where}. An action that was"
            " clipped"
            " (or rounded) to a bound has a probability but no density. Log the action before clipping, or"
            " drop such rows"
        )
    raise InvalidInput(f"action, row {row}: found {action:g}, expected {where}")
