"""A control group: rows that were decided by something else, as a coin with a known chance p said.

Who decides is one more action. For the service as a whole there are two, the service with propensity 1 - p and control
with p. For another policy π on the service's rows there are K + 1: the service's own, with propensities (1 - p) q, and
"control" with p. Everything else is an ordinary evaluation: a reward model of each arm reduces the variance, the test
of the propensities looks for rows that were not assigned by a coin, and the difference is judged as everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from o2pl.data.frames import Frame
from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.learners.targets import as_target, with_target_names
from o2pl.protocols import Floats
from o2pl.validation import check_number

if TYPE_CHECKING:
    from o2pl.protocols import Array

CONTROL, SERVICE = "control", "the service"


class ControlArms(NamedTuple):
    """A log in which control is an action."""

    log: Interactions
    policies: list[Any]  # in its actions


def asks_for_control_group(log: Interactions, baseline: object, control: object) -> bool:
    """Return whether the baseline is a control group, not an action of that name."""
    named = isinstance(baseline, str) and baseline == CONTROL
    if control is not None and not (named or baseline is None):
        raise InvalidInput("control: found another baseline as well, expected baseline='control' or none")
    return control is not None or (named and CONTROL not in log.action_names)


def with_control_group(
    log: Interactions, policies: list[Any], control: Any = None, share: float | None = None, at_any_time: bool = False
) -> ControlArms:
    """Return the log with control as an action. control: a column of 0 and 1, or its name; share: the chance p."""
    log, member = _control_group_members(log, control)
    if share is None and at_any_time:
        raise InvalidInput(
            "control_share: found None, expected the chance of being in the control group, for at_any_time"
        )
    p = float(member.mean()) if share is None else check_number("control_share", share, 0.0, open_low=True, below=1.0)
    chance = np.where(member, p, 1 - p)
    if all(isinstance(one, str) and one == "logged" for one in policies):
        contexts = log.contexts
        if log.encoded.items is not None:
            shared = log.encoded.shared
            contexts = np.zeros((len(log), 1), np.float32) if shared is None else shared
        arms = Interactions(
            contexts, member.astype(np.int64), log.rewards, chance, log.reward_range, 2, False,
            action_names=(SERVICE, CONTROL), context_names=log.context_names, row_weights=log.row_weights,
        )  # fmt: skip
        return ControlArms(arms, [SERVICE for _ in policies])
    if log.encoded.items is not None or log.continuous or not log.has_propensities:
        raise InvalidInput(
            "control: found a policy for action sets, real-valued actions or a log without propensities, expected the"
            " policy 'logged': the service as a whole"
        )
    log = with_target_names(log, *policies)
    k = int(log.n_actions or 1)
    names = log.action_names if len(log.action_names) == k else tuple(str(action) for action in range(k))
    arms = log.changed(
        actions=np.where(member, k, log.actions), propensities=np.where(member, p, (1 - p) * log.propensities),
        n_actions=k + 1, action_names=(*names, CONTROL), by_logger=None,
    )  # fmt: skip
    return ControlArms(arms, [_extended_by_control_group(one, log, member) for one in policies])


def _control_group_members(log: Interactions, control: object) -> tuple[Interactions, Any]:
    """Return the log without the column of the group, and who is in it. [n]"""
    column = CONTROL if control is None else control
    if isinstance(column, str):
        known = log.contexts.columns if log.form == "frame" else {}
        if column not in known:
            names = ", ".join(known) or "which have no names"
            raise InvalidInput(
                f"control: found no column {column!r}, expected a column of 0 and 1 that says who is in the control"
                f" group: control=column, or one of the context's columns: {names}"
            )
        kept = {name: one for name, one in known.items() if name != column}
        given, log = np.asarray(log.contexts[column]), log.changed(contexts=_control_group_frame(kept, len(log)))
    else:
        given, column = np.asarray(column), CONTROL
    if given.shape != (len(log),):
        raise InvalidInput(f"{column}: found shape {given.shape}, expected one number per row ({len(log)})")
    wrong = np.flatnonzero([value not in (0, 1) for value in given.tolist()])
    if len(wrong):
        raise InvalidInput(f"{column}, row {wrong[0]}: found {given.tolist()[wrong[0]]!r}, expected 0 or 1")
    member = given.astype(bool)
    if member.all() or not member.any():
        raise InvalidInput(f"{column}: found only {int(member[0])}, expected some rows in the control group and others")
    return log, member


def _control_group_frame(columns: dict[str, Any], n: int) -> Frame | Array:
    return Frame(columns, n) if columns else np.zeros((n, 1), np.float32)


def _extended_by_control_group(policy: Any, log: Interactions, member: Any) -> Floats:
    """Return the policy in the log's actions and control, which it never takes, [n, K + 1]; [n] if that is unknown."""
    target = as_target(policy, log)
    found = [target.on(rows) for rows in log.blocks()]
    tables = [one.probabilities for one in found if one.probabilities is not None]
    if len(tables) < len(found):
        return np.where(member, 0.0, np.concatenate([one.played for one in found]))
    return np.pad(np.concatenate(tables), ((0, 0), (0, 1)))
