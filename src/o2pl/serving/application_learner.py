"""The learner of an application, and the conversion of stored outcomes to rows of a log."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from o2pl.data.contexts import ActionSets
from o2pl.data.interactions import Interactions
from o2pl.data.kinds import DICTIONARIES
from o2pl.encode.json_sets import json_sets
from o2pl.engine.change import Change
from o2pl.engine.compacting import compact
from o2pl.engine.schedules import Geometric
from o2pl.errors import InvalidInput
from o2pl.features import Hashed
from o2pl.learners import Bandit, ContinuousBandit, Member
from o2pl.objectives.outcome import Outcome
from o2pl.policies.actionwise import ActionWise
from o2pl.protocols import Array
from o2pl.serving.applications import Application
from o2pl.serving.settings import Kind
from o2pl.validation import LEAST_PROPENSITY

HISTORY = 200_000  # newest outcomes that are learned from: bounds the time of a solve, and memory
AT_MOST = 2**14  # rows processed between two solves, see `learners.refreshing`
_EXPLORATION = 0.05  # default fraction of uniform decisions, so that other policies can be evaluated
_LOGGER = logging.getLogger("o2pl.serving")
_parsed = msgspec.json.Decoder().decode


def learner_for(application: Application) -> Any:
    """Return a new `Bandit` or `ContinuousBandit`."""
    settings = application.settings
    known: dict[str, Any] = {"reward_range": settings.reward_range, "random_state": settings.random_state}
    if application.kind is Kind.CONTINUOUS:
        return ContinuousBandit(bounds=settings.bounds, **known)
    features = Hashed(settings.hash_bits)
    known |= {"schedule": Geometric(window=HISTORY), "changes": Change()}
    if application.kind is Kind.FIXED:
        members = Member(features, objective=Outcome(True)), Member(features, objective=Outcome(False, 3.0), prior=-3.0)
        return Bandit(actions=settings.actions, policy=members, **known)
    # There are many products of users and items, mostly rare: they are regularised more than in `Bandit`.
    return Bandit(policy=Member(features, ActionWise(), objective=Outcome(False, 3.0)), **known)


def published(application: Application, learner: Any) -> bytes:
    """Return the acting policy of a learner for servers: compact, without contexts."""
    decider = compact(learner.snapshot())
    own = application.settings.exploration_percentage is None and application.kind is not Kind.CONTINUOUS
    return (decider.exploring(_EXPLORATION) if own else decider).to_bytes()


def learned_part(application: Application) -> str:
    """Return the settings that a learner depends on: if they change, it is retrained."""
    settings = application.settings
    return json.dumps([
        application.kind, settings.actions, settings.bounds, settings.reward_range, settings.hash_bits,
        settings.random_state,
    ])  # fmt: skip


def takes_whole_sets(application: Application, learner: Any) -> bool:
    """Return whether a learner is to see all actions of a context: one that came from a file, with other parts."""
    return application.kind is Kind.RANKED and learner.policy != learner_for(application).policy


def interactions(application: Application, rows: Sequence[Any], whole: bool = False) -> Interactions | None:
    """Convert `Store.learned_rows` to a log. Unusable rows are logged and skipped. Ids are those of the outcomes.

    whole: keep all actions of a context, see `takes_whole_sets`.
    """
    ranked = _whole if whole else _ranked
    read = {Kind.RANKED: ranked, Kind.FIXED: _fixed, Kind.CONTINUOUS: _continuous}[application.kind]
    try:
        return _log(application, rows, *read(application, rows)) if rows else None
    except (InvalidInput, ValueError, KeyError, TypeError, IndexError) as error:
        if len(rows) == 1:
            where = {"application": application.name, "event": rows[0].event_id, "reason": str(error)}
            _LOGGER.warning("an event cannot be learned from and is skipped", extra=where)
            return None
    half = len(rows) // 2  # bisect to find the invalid ones
    parts = [
        part for some in (rows[:half], rows[half:]) if (part := interactions(application, some, whole)) is not None
    ]
    return _joined(parts) if len(parts) == 2 else next(iter(parts), None)


def _log(application: Application, rows: Sequence[Any], contexts: Any, actions: Any) -> Interactions:
    low, high = application.settings.reward_range
    return Interactions(
        contexts, actions,
        np.clip([row.reward for row in rows], low, high),  # the reward range may have been narrowed since
        np.maximum([row.propensity for row in rows], LEAST_PROPENSITY),
        application.settings.reward_range,
        continuous=application.kind is Kind.CONTINUOUS,
        ids=np.array([row.id for row in rows], np.int64),
        n_actions=len(application.settings.actions) or None,
        action_names=application.settings.actions,
    )  # fmt: skip


def _ranked(application: Application, rows: Sequence[Any]) -> tuple[ActionSets, Array]:
    """Convert ranked rows with only the played action: the others do not affect the likelihood of its reward."""
    texts, actions = [bytes(row.context) for row in rows], np.array([row.action for row in rows], np.int64)
    hashed = json_sets(texts)
    if hashed is not None:
        sets = hashed.encoded((1 << application.settings.hash_bits) - 1, False, actions)
    else:
        whole = learner_for(application)._new_encoder(DICTIONARIES).encode([json.loads(text) for text in texts])
        if not (actions < whole.sizes).all():
            raise InvalidInput("action: found an index beyond the actions of its context")
        played = whole.values[whole.places(actions)]
        sets = ActionSets(played, np.arange(len(played) + 1))
    return sets, np.zeros(len(actions), np.int64)


def _whole(application: Application, rows: Sequence[Any]) -> tuple[list[Any], list[int]]:
    return [_parsed(bytes(row.context)) for row in rows], [row.action for row in rows]


def _fixed(application: Application, rows: Sequence[Any]) -> tuple[list[Any], list[int]]:
    places = {name: place for place, name in enumerate(application.settings.actions)}
    contexts = [_parsed(bytes(row.context)) for row in rows]
    return contexts, [places[_parsed(bytes(row.actions))[row.action]] for row in rows]


def _continuous(application: Application, rows: Sequence[Any]) -> tuple[Any, list[float]]:
    contexts: Any = [_parsed(bytes(row.context)) for row in rows]
    if not all(isinstance(one, dict) for one in contexts):
        contexts = np.array(contexts, np.float64)
    return contexts, [row.value for row in rows]


def _joined(parts: list[Interactions]) -> Interactions:
    one, two = parts
    contexts: Any = [*one.contexts, *two.contexts]
    if one.encoded.items is not None:
        contexts = _stacked(one.contexts, two.contexts)
    elif one.form == "dense":
        contexts = np.concatenate([one.contexts, two.contexts])
    columns = {name: np.concatenate([getattr(one, name), getattr(two, name)]) for name in _COLUMNS}
    return one.changed(contexts=contexts, **columns)


_COLUMNS = ("actions", "rewards", "propensities", "ids")


def _stacked(one: ActionSets, two: ActionSets) -> ActionSets:
    a, b = one.values, two.values
    rows = type(a)(
        np.concatenate([a.indices, b.indices]), np.concatenate([a.values, b.values]),
        np.concatenate([a.offsets, a.offsets[-1] + b.offsets[1:]]), a.width,
    )  # fmt: skip
    return ActionSets(rows, np.arange(len(rows) + 1))
