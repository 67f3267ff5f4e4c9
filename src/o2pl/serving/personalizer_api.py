"""Azure AI Personalizer's API: rank, reward, activate; also for several slots."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from o2pl.errors import InvalidInput, nearest
from o2pl.serving.batch_writes import LONGEST_ID, ActivationRow, RewardRow, new_event_id
from o2pl.serving.batch_writes import Answer as Stored
from o2pl.serving.control_assignment import arm_of
from o2pl.serving.deciding import action_text, drawn_before, joined, slot_text
from o2pl.serving.models import Served
from o2pl.serving.problems import NO_CONTENT, Problem, Reply, as_json
from o2pl.serving.ranking import Offered, Slot, check_ids, fill, places_left, ranked
from o2pl.serving.service import Call, Route, decoder, in_versions

MOST_ACTIONS, MOST_SLOTS = 50, 50
PREFIX = "/personalizer"
VERSIONS = ("v1.0", "v1.1", "v1.1-preview.1", "v1.1-preview.2", "v1.1-preview.3", "")  # "": in ?api-version=
SEVERAL = "v1.1-preview.3"  # API version with several slots

Id = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
Features = Annotated[Raw, Meta(extra_json_schema={"type": "object", "examples": [{"type": "news", "length": 350}]})]
EventId = (
    Annotated[str, Meta(max_length=LONGEST_ID, description="Event id for later calls. If missing, one is generated.")]
    | None
)


Metrics = Annotated[dict[str, float], Meta(description="Further numbers by name, see the setting `metrics`.")] | None


class RankableAction(Struct):
    """An action to choose from."""

    id: Id
    features: list[Features] | None = None


class _Rankable(Struct, rename="camel"):
    actions: Annotated[
        list[RankableAction],
        Meta(
            description="In the order in which the application would show them; the first is the baseline.",
            extra_json_schema={"minItems": 1, "maxItems": MOST_ACTIONS},  # the error message is more specific
        ),
    ]
    context_features: Annotated[list[Features] | None, Meta(description="Features of the context.")] = None
    event_id: EventId = None
    defer_activation: Annotated[
        bool | None, Meta(description="If true, the event counts only after activation. Default: false.")
    ] = None


class RankRequest(_Rankable):
    """Request for one action."""

    excluded_actions: list[Id] | None = None


class SlotRequest(Struct, rename="camel"):
    """A slot to fill."""

    id: Id
    baseline_action: Annotated[Id, Meta(description="The action that the application would choose itself.")]
    features: list[Features] | None = None
    excluded_actions: list[Id] | None = None


class MultiSlotRankRequest(_Rankable):
    """Request for one action per slot."""

    slots: list[SlotRequest] = msgspec.field(default_factory=list)


class RankedAction(Struct):
    """An action and its probability."""

    id: str
    probability: float


class RankResponse(Struct, rename="camel"):
    """rewardActionId is the action to take. It is first in the ranking; the others follow by probability."""

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


class SlotResponse(Struct, rename="camel"):
    """The chosen action of a slot."""

    id: str
    reward_action_id: str


class MultiSlotRankResponse(Struct, rename="camel"):
    """One action per slot."""

    slots: list[SlotResponse]
    event_id: str


class RewardRequest(Struct):
    """The reward of an event."""

    value: Annotated[float, Meta(extra_json_schema={"examples": [1.0]})]
    metrics: Metrics = None


class SlotReward(Struct, rename="camel"):
    """The reward of a slot."""

    slot_id: Id
    value: float
    metrics: Metrics = None


class MultiSlotRewardRequest(Struct):
    """The rewards of some slots."""

    reward: list[SlotReward]


_rank_request, _several_request = decoder(RankRequest), decoder(MultiSlotRankRequest)
_reward_request, _several_rewards = decoder(RewardRequest), decoder(MultiSlotRewardRequest)


def offered(request: Any) -> Offered:
    """Return the actions and the shared features of a request, as they are stored."""
    actions: Sequence[RankableAction] = request.actions
    shared = joined(request.context_features or (), "contextFeatures")
    return Offered(shared, [a.id for a in actions], [action_text(a.id, a.features or ()) for a in actions])


async def rank(call: Call) -> Reply:
    request: RankRequest = _rank_request(call.body)
    given = offered(request)
    check_ids(given.ids, MOST_ACTIONS)
    playable = places_left(given.ids, request.excluded_actions)
    event_id = request.event_id or new_event_id()
    arm = arm_of(call.served, event_id, b"{%b}" % given.shared, call.headers)
    made = ranked(call.served, arm, given, playable, event_id, bool(request.defer_activation))
    before = await call.service.store_decision(call.served, made.row, "InvalidRankRequest")
    drawn = made.drawn if before is None else drawn_before(before[0])
    probabilities, chosen = drawn.probabilities, drawn.action
    assert probabilities is not None
    assert chosen is not None
    listed = [RankedAction(given.ids[place], p) for place, p in zip(playable, probabilities.tolist(), strict=True)]
    first = listed.pop(chosen)
    listed.sort(key=_probability, reverse=True)
    if len(playable) < len(given.ids):
        left = set(playable)
        listed += [RankedAction(one, 0.0) for place, one in enumerate(given.ids) if place not in left]
    return as_json(201, RankResponse([first, *listed], event_id, first.id))


def _probability(action: RankedAction) -> float:
    return action.probability


async def rank_slots(call: Call) -> Reply:
    request: MultiSlotRankRequest = _several_request(call.body)
    given = offered(request)
    check_ids(given.ids, MOST_ACTIONS)
    names = [slot.id for slot in request.slots]
    if not 1 <= len(names) <= min(MOST_SLOTS, len(given.ids)) or len(set(names)) < len(names):
        raise InvalidInput(
            f"slots: found {len(names)} with {len(set(names))} different ids, expected at least one, with unique ids,"
            " and no"
            f" more than the number of actions ({len(given.ids)}) or {MOST_SLOTS}"
        )
    own = [slot.baseline_action for slot in request.slots]
    if len(set(own)) < len(own):
        raise InvalidInput("slots: found a repeated baselineAction, expected a different one per slot")
    slots = [_slot(slot, given.ids) for slot in request.slots]
    event_id = request.event_id or new_event_id()
    arm = arm_of(call.served, event_id, b"{%b}" % given.shared, call.headers)
    made = fill(call.served, arm, given, slots, event_id, bool(request.defer_activation))
    before = await call.service.store_decision(call.served, tuple(one.row for one in made), "InvalidRankRequest")
    rows: Sequence[Any] = [one.row for one in made] if before is None else before
    chosen = [str(msgspec.json.decode(bytes(row.actions))[row.action]) for row in rows]
    answers = [SlotResponse(slot.id, name) for slot, name in zip(slots, chosen, strict=True)]
    return as_json(201, MultiSlotRankResponse(answers, event_id))


def _slot(slot: SlotRequest, ids: list[str]) -> Slot:
    if slot.baseline_action not in ids:
        raise InvalidInput(
            f"slot {slot.id!r}, baselineAction: found {slot.baseline_action!r}, {nearest(slot.baseline_action, ids)}"
        )
    if slot.baseline_action in (slot.excluded_actions or ()):
        raise InvalidInput(
            f"slot {slot.id!r}: found its baselineAction in its excludedActions, expected it to be allowed"
        )
    playable = places_left(ids, slot.excluded_actions)
    return Slot(slot.id, slot_text(slot.id, slot.features or ()), playable, ids.index(slot.baseline_action))


# -- rewards


def check_reward(served: Served, value: float) -> float:
    low, high = served.application.settings.reward_range
    if not (math.isfinite(value) and low <= value <= high):
        raise Problem(
            400, "InvalidRewardRequest",
            f"value: found {value}, expected a number from {low:g} to {high:g} (rewardRange); to widen the range: PUT"
            f' {PREFIX}/v1.0/configurations/service {{"rewardRange": [-1, 1]}}',
        )  # fmt: skip
    return value


def check_metrics(served: Served, metrics: dict[str, float] | None) -> str | None:
    """Return the metrics of a reward as they are stored."""
    if not metrics:
        return None
    known = served.application.settings.metrics
    for name, value in metrics.items():
        if name not in known:
            listed = f"expected {', '.join(known)}" if known else "expected none"
            raise Problem(
                400, "InvalidRewardRequest", f"metrics: found {name!r}, {listed} (setting metrics); to add it: PUT"
                f' {PREFIX}/v1.0/configurations/service {{"metrics": {{"{name}": {{"range": [0, 1]}}}}}}',
            )  # fmt: skip
        low, high = known[name].range
        if not low <= value <= high:
            raise Problem(
                400, "InvalidRewardRequest",
                f"metrics, {name}: found {value}, expected a number from {low:g} to {high:g} (its range)",
            )  # fmt: skip
    return msgspec.json.encode(metrics).decode()


async def reward(call: Call) -> Reply:
    request: RewardRequest = _reward_request(call.body)
    await store_rewards(call, call.event_id, [("", request.value, None, request.metrics)])
    return NO_CONTENT


async def reward_slots(call: Call) -> Reply:
    request: MultiSlotRewardRequest = _several_rewards(call.body)
    if not request.reward:
        raise InvalidInput("reward: found an empty list, expected at least one slotId with a value")
    await store_rewards(
        call, call.event_id, [(each.slot_id, each.value, None, each.metrics) for each in request.reward]
    )
    return NO_CONTENT


async def store_rewards(
    call: Call, event_id: str, given: Sequence[tuple[str, float, str | None, dict[str, float] | None]]
) -> None:  # fmt: skip
    """Store (slot, value, idempotency key, metrics) of one event. It is on disk when this returns."""
    now, number = time.time(), call.served.application.id
    served = call.served
    rows = [
        RewardRow(number, event_id, slot, check_reward(served, x), now, key, check_metrics(served, metrics))
        for slot, x, key, metrics in given
    ]
    answers = await call.service.write(rows)
    call.service.metrics.rewarded(call.served, sum(answer is Stored.STORED for answer in answers))
    for row, answer in zip(rows, answers, strict=True):
        if answer is Stored.UNKNOWN:
            raise unknown_event(event_id, row.slot)


def unknown_event(event_id: str, slot: str = "") -> Problem:
    where = f" and slot {slot!r}" if slot else ""
    return Problem(404, "ResourceNotFound", f"event: found no decision with the id {event_id!r}{where}")


async def activate(call: Call) -> Reply:
    await store_activation(call, call.event_id)
    return NO_CONTENT


async def store_activation(call: Call, event_id: str) -> None:
    (answer,) = await call.service.write([ActivationRow(call.served.application.id, event_id, time.time())])
    if answer is Stored.UNKNOWN:
        raise unknown_event(event_id)


_TAG, _COUNTS = "personalizer", "Activate a deferred event"
_ONE = [
    Route("POST", "/rank", rank, "InvalidRankRequest", "Choose one of the given actions")._replace(
        request=RankRequest, answer=RankResponse, status=201, tag=_TAG
    ),
    Route("POST", "/events/{eventId}/reward", reward, "InvalidRewardRequest", "Send the reward of an event")._replace(
        request=RewardRequest, status=204, tag=_TAG
    ),
    Route("POST", "/events/{eventId}/activate", activate, "InvalidEventIdToActivate", _COUNTS, status=204, tag=_TAG),
]
_SLOTS = [
    Route("POST", "/rank", rank_slots, "InvalidRankRequest", "Choose one action per slot")._replace(
        request=MultiSlotRankRequest, answer=MultiSlotRankResponse, status=201, tag=_TAG
    ),
    Route(
        "POST", "/events/{eventId}/reward", reward_slots, "InvalidRewardRequest", "Send the rewards of an event"
    )._replace(request=MultiSlotRewardRequest, status=204, tag=_TAG),
    Route("POST", "/events/{eventId}/activate", activate, "InvalidEventIdToActivate", _COUNTS, status=204, tag=_TAG),
]
_SEVERAL = [route._replace(path=f"/multislot{route.path}") for route in _SLOTS]
ROUTES = [
    *in_versions(_ONE, PREFIX, VERSIONS, VERSIONS[0]),
    *in_versions(_SEVERAL, PREFIX, VERSIONS[1:], SEVERAL),
]
