"""A saved learner goes on with new rows: yesterday's model, and the partition of today."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.learners.base import load
from o2pl.validation import RewardRange


class Continued(NamedTuple):
    """A learner that has learned from a log's new rows, and how many rows there were."""

    learner: Any
    new: int
    known: int  # rows that it had, or that came twice


def learner_to_continue(path: Path, ends: RewardRange | None) -> Any:
    """Return the learner of a file. ends: the reward range that was asked for; None: its own."""
    learner = load(path)
    if not hasattr(learner, "merge"):
        raise InvalidInput(
            f"{path.name}: found a policy without its log, expected a saved learner: `o2pl fit` of a log in memory"
        )
    own = learner.reward_range
    if ends is not None and (own is None or tuple(ends) != tuple(own)):
        known = "none, since it takes rewards as they come" if own is None else f"{own[0]:g},{own[1]:g}"
        raise InvalidInput(f"rewards: found {ends[0]:g},{ends[1]:g}, expected those of {path.name}: {known}")
    return learner


def continued(learner: Any, log: Interactions) -> Continued:
    """Let the learner learn from the rows that it does not have.

    Rows are told apart by id. A log without ids is recognised as a whole: the same file again has no new rows.
    """
    before = len(learner.log_)
    learner.merge(log.with_ids())
    new = len(learner.log_) - before
    return Continued(learner, new, len(log) - new)
