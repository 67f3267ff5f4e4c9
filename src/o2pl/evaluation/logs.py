"""The log to evaluate on, however it is given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from o2pl.errors import InvalidInput
from o2pl.interactions import Interactions, log_in
from o2pl.learners.base import BanditEstimator
from o2pl.rows import SparseRows
from o2pl.validation import RewardRange, check_reward_range


def as_log(log: Any, reward_range: RewardRange | None = None) -> Interactions:
    """From `Interactions`, a learner (its own log), a `Log`, or contexts, actions, rewards and propensities.

    A `reward_range` takes the place of the log's own; rewards outside it are refused.
    """
    found = log.log_ if isinstance(log, BanditEstimator) else log_in(log)
    if found is None and isinstance(log, tuple | list) and len(log) == 4:
        found = Interactions(*log)
    if found is None:
        raise InvalidInput(
            f"log: found {_said(log)}, expected Interactions (such as read_log returns), a learner, a Log,"
            " or a tuple of four columns: contexts, actions, rewards, propensities"
        )
    if isinstance(found.contexts, SparseRows):
        raise InvalidInput("contexts: found sparse rows, expected rows of numbers or ActionSets to evaluate on")
    if not len(found):
        raise InvalidInput("log: found no rows, expected at least one")
    if reward_range is not None and check_reward_range(reward_range) != found.reward_range:
        found = replace(found, reward_range=reward_range)
    return found


def _said(log: Any) -> str:
    if isinstance(log, str):
        return f"the text {log!r}"
    kind = f"a {type(log).__name__}"
    return f"{kind} of {len(log)}" if isinstance(log, tuple | list) else kind
