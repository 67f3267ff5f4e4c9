"""Many decisions in one call, and many rewards: the same as one call each, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from o2pl.data.contexts import as_contexts
from o2pl.data.decisions import decision_id_of, decision_numbers_for
from o2pl.data.interactions import Interactions
from o2pl.data.many_decisions import Decisions
from o2pl.data.offers import offered
from o2pl.engine.item_memory import entry_has_ids
from o2pl.errors import InvalidInput
from o2pl.protocols import Floats, Ints

if TYPE_CHECKING:
    from o2pl.engine.decider import Decider
    from o2pl.engine.engine import Engine


def decide_many(decider: Decider, contexts: object, rows: object, uniforms: Floats) -> Decisions:
    """Draw an action for each context, from one uniform number each. rows: the contexts, encoded."""
    played, propensities = decider.sample(rows, uniforms)
    if as_contexts(rows).items is not None:
        actions = offered(contexts, played.tolist())
    else:
        actions = np.array(decider.names)[played] if decider.names else played
    made = Interactions.trusted(
        rows, played, np.zeros(len(played)), propensities, None, decider.n_actions, decider.continuous,
        decision_numbers_for(len(played)), decider.names,
    )  # fmt: skip
    return Decisions(made, actions)


def check_many_once(numbers: Ints) -> None:
    """Reject decisions that occur twice in one call."""
    _, first = np.unique(numbers, return_index=True)
    if len(first) < len(numbers):
        again = int(np.setdiff1d(np.arange(len(numbers)), first)[0])
        before = int(np.flatnonzero(numbers == numbers[again])[0])
        raise InvalidInput(
            f"update_many: found decision {decision_id_of(int(numbers[again]))!r} in row {before} and in row"
            f" {again}, expected"
            " each decision once"
        )


def append_many(engine: Engine, rows: Interactions) -> None:
    """Append checked interactions with ids. Members learn at their checkpoints, as with one call of `append` each."""
    with engine.lock:
        check_many_once(rows.ids)
        known = np.flatnonzero(np.isin(rows.ids, engine.log.columns.ids))
        if len(known):
            engine.check_new(int(rows.ids[known[0]]), f"update_many, row {known[0]}")
        done = 0
        while done < len(rows):
            engine.learn_if_due()
            some = slice(done, done + min(len(rows) - done, engine.checkpoint - len(engine.log)))
            engine.log.extend(rows[some])
            engine.pending.drop_many(rows.ids[some])
            done = some.stop
        engine.learn_if_due()
        if entry_has_ids(rows.encoded):
            engine.look_at_items()
