"""The learner of the default rows: this class, with its default settings."""

from __future__ import annotations

from typing import Any

from o2pl import Bandit

DEFAULT = Bandit
NAME = f"`{DEFAULT.__name__}(K)`"


def learner(n_actions: int, seed: int) -> Any:
    return DEFAULT(n_actions, random_state=seed)
