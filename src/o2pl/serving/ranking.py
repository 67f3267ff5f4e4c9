"""Decisions among actions that come with the call: one, or one for each of several slots."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from o2pl.errors import InvalidInput, nearest
from o2pl.serving.deciding import Drawn, set_text
from o2pl.serving.entries import DecisionRow
from o2pl.serving.models import Served
from o2pl.serving.settings import Kind, LearningMode

_quoted = msgspec.json.Encoder().encode


class Offered(NamedTuple):
    """Actions of a call, with their features in JSON, in the order of the call."""

    shared: bytes  # features that all share, without braces
    ids: list[str]
    texts: list[bytes]


class Ranked(NamedTuple):
    """A decision among them."""

    row: DecisionRow
    drawn: Drawn
    playable: Sequence[int]  # places of the actions that could be played


def check_ids(ids: Sequence[str], most: int) -> None:
    if not ids:
        raise InvalidInput("actions: found none, expected at least one")
    if len(ids) > most:
        raise InvalidInput(f"actions: found {len(ids)}, expected at most {most}")
    if len(set(ids)) < len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise InvalidInput(f"actions: found the id {twice!r} twice, expected a different one for each")


def places_left(ids: Sequence[str], excluded: Sequence[str] | None) -> Sequence[int]:
    """The places of those that may be played."""
    if not excluded:
        return range(len(ids))
    gone = set(excluded)
    for one in excluded:
        if one not in ids:
            raise InvalidInput(f"excludedActions: found {one!r}, {nearest(one, list(ids))}")
    left = [place for place, one in enumerate(ids) if one not in gone]
    if not left:
        raise InvalidInput(f"excludedActions: found all {len(ids)}, expected at least one that may be played")
    return left


def ranked(
    served: Served, offered: Offered, playable: Sequence[int], event_id: str, deferred: bool,
    own: int | None = None, slot: str = "", slot_features: bytes = b"",
) -> Ranked:  # fmt: skip
    """own: the place of the application's own choice among all actions; None: the first that can be played."""
    application, acting = served
    if application.kind is not Kind.RANKED:
        raise InvalidInput(
            f"application {application.name!r}: found one of the kind {application.kind.value!r}, expected 'ranked' for"
            " actions that come with the call"
        )
    everything = len(playable) == len(offered.ids)
    texts = offered.texts if everything else [offered.texts[place] for place in playable]
    ids = offered.ids if everything else [offered.ids[place] for place in playable]
    text = set_text((offered.shared, slot_features), texts)
    uniform = random.random()
    drawn = acting.ranked(text, len(ids), uniform)
    baseline = 0 if own is None else list(playable).index(own) if own in playable else None
    if application.settings.learning_mode is not LearningMode.ONLINE and baseline is not None:
        drawn = acting.taught(drawn, baseline)
    assert drawn.probabilities is not None
    row = DecisionRow(
        application.id, event_id, slot, time.time(), text, _quoted(ids), drawn.action, None, drawn.propensity,
        drawn.probabilities.tobytes(), uniform, acting.exploration, acting.version, deferred, baseline, drawn.preferred,
    )  # fmt: skip
    return Ranked(row, drawn, playable)


class Slot(NamedTuple):
    """A place to fill."""

    id: str
    features: bytes  # `slot_text`
    playable: Sequence[int]  # places of the actions that it may take
    own: int  # the place of the application's own choice


def fill(served: Served, offered: Offered, slots: Sequence[Slot], event_id: str, deferred: bool) -> list[Ranked]:
    """Slot after slot; an action that one has taken is not there for the next.

    What would leave a later slot without an action is not played either.
    """
    made: list[Ranked] = []
    taken: set[int] = set()
    apprentice = served.application.settings.learning_mode is not LearningMode.ONLINE
    for number, slot in enumerate(slots):
        later = [each.playable for each in slots[number + 1 :]]
        left = [place for place in slot.playable if place not in taken and _can_fill(later, {*taken, place})]
        if not left:
            raise InvalidInput(f"slots: found no action for the slot {slot.id!r}, expected enough for all slots")
        own = slot.own if apprentice or slot.own in left else None
        one = ranked(served, offered, left, event_id, deferred, own, slot.id, slot.features)
        if slot.own not in left:
            one = one._replace(row=one.row._replace(baseline=None))
        made.append(one)
        assert one.drawn.action is not None
        taken.add(left[one.drawn.action])
    return made


def _can_fill(slots: Sequence[Sequence[int]], taken: set[int]) -> bool:
    """Whether each slot can get an action of its own (by augmenting paths)."""
    if not slots or min(len(each) for each in slots) >= len(slots) + len(taken):
        return True
    owner: dict[int, int] = {}

    def placed(slot: int, seen: set[int]) -> bool:
        for action in slots[slot]:
            if action not in taken and action not in seen:
                seen.add(action)
                if action not in owner or placed(owner[action], seen):
                    owner[action] = slot
                    return True
        return False

    return all(placed(slot, set()) for slot in range(len(slots)))
