"""`Spec`, what an engine is made of. A learner chooses it; it does not change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from o2pl.engine.change import Change
from o2pl.engine.member import Member
from o2pl.engine.schedules import Schedule
from o2pl.protocols import Exploration, Policy


class Spec(NamedTuple):
    """The members of an engine, when they learn, how they act, and how a change is detected."""

    members: Sequence[Member]
    policies: Sequence[Policy]  # of the members
    objective: Any  # an Objective
    schedule: Schedule  # of members that have none
    control: float | None  # ridge of the control variate
    sharpness: float  # of a mixture of policies; `BY_EXCESS`: predictions are mixed, see `policies.sampling`
    exploration: Exploration
    watch: tuple[Change, int] | None = None  # change detection, and the index of the monitor
    device: str = "cpu"  # where objectives are evaluated
    running_range: bool = False  # nobody gave a reward range: it follows the rewards, see `engine.reward_scale`
