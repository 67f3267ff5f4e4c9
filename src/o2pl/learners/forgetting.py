"""`forget`: rows of a log, and what was learned from them, are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.data.decisions import Decision, ListDecision, check_decision_ids, decision_id_of, listed_decision_ids
from o2pl.data.many_decisions import Decisions
from o2pl.engine.offline import continue_offline
from o2pl.errors import InvalidInput
from o2pl.protocols import Ints

if TYPE_CHECKING:
    from o2pl.learners.base import BanditEstimator


def forget(learner: BanditEstimator, given: object) -> int:
    """Let a learner forget these decisions. Returns the number of rows and of waiting decisions that are gone."""
    before, numbers = learner._begun(), _numbers_to_forget(given)
    with before.lock:
        rows = before.log.columns
        gone, waiting = np.isin(rows.ids, numbers), [n for n in numbers.tolist() if before.pending.get(n) is not None]
        if not gone.any() and not waiting:
            some = decision_id_of(int(numbers[0])) if len(numbers) else "none"
            raise InvalidInput(
                f"forget: found no decision with these {len(numbers)} ids, such as {some!r}, among {len(rows):,} rows"
                f" and {len(before.pending):,} decisions that wait; expected ids as in `log_.event_ids`, or those of a"
                " log's own column"
            )
        for number in waiting:
            before.pending.drop(number)
        if gone.any():
            before.encoder.forget_names()
            engine = learner._make_engine(before.encoder, before.log.n_actions, before.log.action_names)
            continue_offline(engine, rows[np.flatnonzero(~gone)], before, ~gone)
            learner._adopt(engine)
    return int(gone.sum()) + len(waiting)


def _numbers_to_forget(given: Any) -> Ints:
    """Return the numbers of one or many decisions: ids, or what `act` and `act_many` return. [n]"""
    if isinstance(given, Decisions):
        return given.numbers
    each = [given] if isinstance(given, str | int | np.integer | Decision | ListDecision) else list(given)
    ids: list[Any] = []
    for one in each:
        name = one.id if isinstance(one, Decision | ListDecision) else one
        ids += listed_decision_ids(name) or [name]
    return np.unique(check_decision_ids(ids)) if ids else np.empty(0, np.int64)
