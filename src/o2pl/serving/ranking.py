"""Decisions among the actions of a request: one, or one per slot."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from o2pl.errors import InvalidInput, nearest
from o2pl.serving.batch_writes import DecisionRow
from o2pl.serving.control_assignment import Arm
from o2pl.serving.deciding import Drawn, set_text
from o2pl.serving.models import Served
from o2pl.serving.settings import Kind

_quoted = msgspec.json.Encoder().encode


class Offered(NamedTuple):
    """Actions of a request, with their features in JSON, in the order of the request."""

    shared: bytes  # shared features, without braces
    ids: list[str]
    texts: list[bytes]


class Ranked(NamedTuple):
    """A decision among the offered actions."""

    row: DecisionRow
    drawn: Drawn
    playable: Sequence[int]  # indices of the allowed actions


def check_ids(ids: Sequence[str], most: int) -> None:
    if not ids:
        raise InvalidInput("actions: found none, expected at least one")
    if len(ids) > most:
        raise InvalidInput(f"actions: found {len(ids)}, expected at most {most}")
    if len(set(ids)) < len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise InvalidInput(f"actions: found the id {twice!r} twice, expected unique ids")


def places_left(ids: Sequence[str], excluded: Sequence[str] | None) -> Sequence[int]:
    """Return the indices of the allowed actions."""
    if not excluded:
        return range(len(ids))
    gone = set(excluded)
    for one in excluded:
        if one not in ids:
            raise InvalidInput(f"excludedActions: found {one!r}, {nearest(one, list(ids))}")
    left = [place for place, one in enumerate(ids) if one not in gone]
    if not left:
        raise InvalidInput(f"excludedActions: found all {len(ids)} actions, expected at least one allowed action")
    return left


def ranked(
    served: Served, arm: Arm, offered: Offered, playable: Sequence[int], event_id: str, deferred: bool,
    own: int | None = None, slot: str = "", slot_features: bytes = b"",
) -> Ranked:  # fmt: skip
    """Decide among the offered actions. own: index of the application's own choice; None: the first allowed one."""
    application, acting = served.application, arm.acting
    if application.kind is not Kind.RANKED:
        raise InvalidInput(
            f"application {application.name!r}: found kind {application.kind.value!r}, expected 'ranked' for actions"
            " in the"
            " request"
        )
    everything = len(playable) == len(offered.ids)
    texts = offered.texts if everything else [offered.texts[place] for place in playable]
    ids = offered.ids if everything else [offered.ids[place] for place in playable]
    text = set_text((offered.shared, slot_features), texts)
    uniform = random.random()
    drawn = acting.ranked(text, len(ids), uniform)
    baseline = 0 if own is None else list(playable).index(own) if own in playable else None
    if arm.own and baseline is not None:
        drawn = acting.taught(drawn, baseline)
    assert drawn.probabilities is not None
    row = DecisionRow(
        application.id, event_id, slot, arm.at, text, _quoted(ids), drawn.action, None, drawn.propensity,
        drawn.probabilities.tobytes(), uniform, acting.exploration, acting.version, deferred, baseline, drawn.preferred,
        arm.experiment, arm.unit, arm.control,
    )  # fmt: skip
    return Ranked(row, drawn, playable)


class Slot(NamedTuple):
    """A slot to fill."""

    id: str
    features: bytes  # `slot_text`
    playable: Sequence[int]  # indices of its allowed actions
    own: int  # index of the application's own choice


def fill(
    served: Served, arm: Arm, offered: Offered, slots: Sequence[Slot], event_id: str, deferred: bool
) -> list[Ranked]:  # fmt: skip
    """Fill the slots in order; an action is used only once.

    Actions that would leave a later slot without an action are not played either.
    """
    made: list[Ranked] = []
    taken: set[int] = set()
    for number, slot in enumerate(slots):
        later = [each.playable for each in slots[number + 1 :]]
        left = [place for place in slot.playable if place not in taken and _can_fill(later, {*taken, place})]
        if not left:
            raise InvalidInput(f"slots: found no action for slot {slot.id!r}, expected enough actions for all slots")
        own = slot.own if arm.own or slot.own in left else None
        one = ranked(served, arm, offered, left, event_id, deferred, own, slot.id, slot.features)
        if slot.own not in left:
            one = one._replace(row=one.row._replace(baseline=None))
        made.append(one)
        assert one.drawn.action is not None
        taken.add(left[one.drawn.action])
    return made


def _can_fill(slots: Sequence[Sequence[int]], taken: set[int]) -> bool:
    """Return whether each slot can get a different action (augmenting paths)."""
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
