"""The plain API: /decide, /reward and /activate, for all kinds of applications, single or in batches."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Raw, Struct, field

from o2pl.errors import InvalidInput, nearest
from o2pl.serving.batch_writes import Answer as Stored
from o2pl.serving.batch_writes import DecisionRow, RewardRow, check_entry, new_event_id
from o2pl.serving.control_assignment import Arm, Headers, arm_of
from o2pl.serving.deciding import Drawn, action_text, drawn_before, inner
from o2pl.serving.models import Served
from o2pl.serving.personalizer_api import (
    EventId,
    Id,
    Metrics,
    check_metrics,
    check_reward,
    store_activation,
    store_rewards,
    unknown_event,
)
from o2pl.serving.problems import NO_CONTENT, Detail, Problem, Reply, as_json, said
from o2pl.serving.ranking import Offered, check_ids, places_left, ranked
from o2pl.serving.service import Call, Route, decoder
from o2pl.serving.settings import Kind

_quoted = msgspec.json.Encoder().encode
_BREATH = 8  # decisions of a batch between two pauses
_CODE, _REWARD_CODE = "InvalidDecideRequest", "InvalidRewardRequest"

Object = Annotated[Raw, Meta(extra_json_schema={"type": "object", "examples": [{"colour": "red", "price": 12.5}]})]


def _nothing() -> Raw:
    return Raw(b"null")


class OfferedAction(Struct):
    """An action of a request."""

    id: Id
    features: Object = field(default_factory=_nothing)


class DecideRequest(Struct, rename="camel"):
    """Request for a decision. `actions` only for applications of kind ranked; others have them in their settings."""

    context: Annotated[
        Raw,
        Meta(
            description="An object of features; for real-valued actions, a list or an object of numbers.",
            extra_json_schema={"type": ["object", "array"], "examples": [{"age": 31, "city": "Rome"}]},
        ),
    ] = field(default_factory=_nothing)
    actions: list[OfferedAction] | None = None
    excluded_actions: list[Id] | None = None
    baseline_action: Annotated[
        Id | None, Meta(description="The baseline: the application's own choice. Default: the first action.")
    ] = None
    event_id: EventId = None
    defer_activation: bool | None = None


class DecideResponse(Struct, rename="camel", omit_defaults=True):
    """action: the chosen action. propensity: its probability; for real-valued actions, its density."""

    event_id: str
    action: str | float
    propensity: float
    model_version: int
    probabilities: dict[str, float] | None = None


class DecideBatchRequest(Struct):
    """Several decision requests."""

    decisions: list[DecideRequest]


class DecideResult(Struct, omit_defaults=True):
    """A decision, or an error."""

    decision: DecideResponse | None = None
    error: Detail | None = None


class DecideBatchResponse(Struct):
    """Results in the order of the request."""

    decisions: list[DecideResult]


class PlainRewardRequest(Struct, rename="camel"):
    """The reward of a decision."""

    event_id: Id
    value: Annotated[float, Meta(extra_json_schema={"examples": [1.0]})]
    slot: Annotated[str, Meta(max_length=256)] = ""
    idempotency_key: (
        Annotated[str, Meta(max_length=256, description="A second reward with the same key is ignored.")] | None
    ) = None
    metrics: Metrics = None


class RewardBatchRequest(Struct):
    """Several rewards."""

    rewards: list[PlainRewardRequest]


class RewardResult(Struct, omit_defaults=True):
    """Result of a reward: `stored`, `duplicate`, or an error."""

    result: str
    error: Detail | None = None


class RewardBatchResponse(Struct):
    """Results in the order of the request."""

    rewards: list[RewardResult]


class ActivateRequest(Struct, rename="camel"):
    """The event to activate."""

    event_id: Id


_decide, _decide_batch = decoder(DecideRequest), decoder(DecideBatchRequest)
_reward, _reward_batch = decoder(PlainRewardRequest), decoder(RewardBatchRequest)
_activate = decoder(ActivateRequest)


# -- decisions


class Made(NamedTuple):
    """A decision, and the answer once it is on disk."""

    row: DecisionRow
    response: DecideResponse


def decided(served: Served, request: DecideRequest, most: int, headers: Headers = ()) -> Made:
    """Decide for any kind of application."""
    kind = served.application.kind
    event_id, deferred = request.event_id or new_event_id(), bool(request.defer_activation)
    if kind is Kind.RANKED:
        return _ranked(served, request, event_id, deferred, most, headers)
    if request.actions is not None:
        raise InvalidInput(
            f"actions: not expected, since application {served.application.name!r} is of kind {kind.value}"
        )
    arm = arm_of(served, event_id, _text(request.context, b"{}"), headers)
    if kind is Kind.FIXED:
        return _fixed(served, arm, request, event_id, deferred)
    return _continuous(served, arm, request, event_id, deferred)


def _ranked(
    served: Served, request: DecideRequest, event_id: str, deferred: bool, most: int, headers: Headers
) -> Made:  # fmt: skip
    actions = request.actions or []
    ids = [action.id for action in actions]
    check_ids(ids, most)
    texts = [action_text(a.id, (_text(a.features, b"{}"),)) for a in actions]
    shared = inner(_text(request.context, b"{}"), "context")
    playable = places_left(ids, request.excluded_actions)
    own = None if request.baseline_action is None else _own(request.baseline_action, ids, playable)
    arm = arm_of(served, event_id, b"{%b}" % shared, headers)
    made = ranked(served, arm, Offered(shared, ids, texts), playable, event_id, deferred, own)
    return _answered(made.row, made.drawn, [ids[place] for place in playable])


def _own(name: str, ids: list[str], playable: Any) -> int:
    if name not in ids:
        raise InvalidInput(f"baselineAction: found {name!r}, {nearest(name, ids)}")
    if ids.index(name) not in playable:
        raise InvalidInput(f"baselineAction: found {name!r}, which is excluded; expected an allowed action")
    return ids.index(name)


def _fixed(served: Served, arm: Arm, request: DecideRequest, event_id: str, deferred: bool) -> Made:
    application, acting = served.application, arm.acting
    names, text = list(application.settings.actions), _text(request.context, b"{}")
    inner(text, "context")  # rejects anything but an object
    playable = places_left(names, request.excluded_actions)
    uniform = random.random()
    drawn = acting.fixed(text, uniform, playable)
    own = playable[0] if request.baseline_action is None else _own(request.baseline_action, names, playable)
    baseline = list(playable).index(own)
    if arm.own:
        drawn = acting.taught(drawn, baseline)
    listed = [names[place] for place in playable]
    row = _row(served, arm, event_id, text, drawn, uniform, deferred, _quoted(listed), baseline)
    return _answered(row, drawn, listed)


def _continuous(served: Served, arm: Arm, request: DecideRequest, event_id: str, deferred: bool) -> Made:
    if arm.own:
        raise InvalidInput("learningMode: found a mode without decisions, expected 'Online' for real-valued actions")
    if request.excluded_actions or request.baseline_action is not None:
        raise InvalidInput("excludedActions, baselineAction: not supported for real-valued actions")
    text, uniform = _text(request.context, b"[]"), random.random()
    drawn = arm.acting.continuous(text, uniform)
    return _answered(_row(served, arm, event_id, text, drawn, uniform, deferred), drawn, None)


def _text(given: Raw, nothing: bytes) -> bytes:
    text = bytes(given)
    return nothing if text == b"null" else text


def _row(
    served: Served, arm: Arm, event_id: str, text: bytes, drawn: Drawn, uniform: float, deferred: bool,
    actions: bytes | None = None, baseline: int | None = None,
) -> DecisionRow:  # fmt: skip
    pi, acting = drawn.probabilities, arm.acting
    return DecisionRow(
        served.application.id, event_id, "", arm.at, text, actions, drawn.action, drawn.value, drawn.propensity,
        None if pi is None else pi.tobytes(), uniform, acting.exploration, acting.version, deferred, baseline,
        drawn.preferred, arm.experiment, arm.unit, arm.control,
    )  # fmt: skip


def _answered(row: DecisionRow, drawn: Drawn, ids: list[str] | None) -> Made:
    if ids is None or drawn.probabilities is None or drawn.action is None:
        assert drawn.value is not None
        return Made(row, DecideResponse(row.event_id, drawn.value, drawn.propensity, row.model_version))
    shown = dict(zip(ids, drawn.probabilities.tolist(), strict=True))
    return Made(row, DecideResponse(row.event_id, ids[drawn.action], drawn.propensity, row.model_version, shown))


async def decide(call: Call) -> Reply:
    made = decided(call.served, _decide(call.body), call.service.guard.limits.actions, call.headers)
    before = await call.service.store_decision(call.served, made.row, _CODE)
    return as_json(200, made.response if before is None else again(before[0]))


def again(row: Any) -> DecideResponse:
    """Return the answer of a stored decision, whose request is sent again."""
    ids = None if row.actions is None else [str(name) for name in msgspec.json.decode(bytes(row.actions))]
    return _answered(row, drawn_before(row), ids).response


async def decide_many(call: Call) -> Reply:
    """Make several decisions. Valid ones are stored even if others are invalid."""
    requests, limits = _decide_batch(call.body).decisions, call.service.guard.limits
    _check_batch("decisions", len(requests), limits.batch)
    call.admit(len(requests))
    results: list[Any] = []
    for number, request in enumerate(requests):
        if number % _BREATH == _BREATH - 1:
            await asyncio.sleep(0)  # lets other calls run
        try:
            one = decided(call.served, request, limits.actions, call.headers)
            check_entry(one.row)
            results.append(one)
        except (InvalidInput, msgspec.DecodeError) as error:
            results.append(_detail(error, _CODE))
    made = [each for each in results if isinstance(each, Made)]
    stored = await call.service.write([each.row for each in made]) if made else []
    answers = iter(stored)
    listed = []
    for each in results:
        if isinstance(each, Detail):
            listed.append(DecideResult(error=each))
        elif next(answers) is Stored.STORED:
            listed.append(DecideResult(each.response))
        else:
            listed.append(await _before(call, each.row))
    call.service.metrics.decided(call.served, sum(answer is Stored.STORED for answer in stored))
    return as_json(200, DecideBatchResponse(listed))


async def _before(call: Call, row: DecisionRow) -> DecideResult:
    try:
        return DecideResult(again((await call.service.made_before(row, _CODE))[0]))
    except Problem as problem:
        return DecideResult(error=Detail(problem.code, str(problem)))


def _check_batch(name: str, size: int, most: int) -> None:
    if not 1 <= size <= most:
        raise InvalidInput(f"{name}: found {size}, expected 1 to {most}")


def _detail(error: Exception, code: str) -> Detail:
    problem = said(error, code)
    assert problem is not None
    return Detail(problem.code, str(problem))


# -- rewards


async def reward(call: Call) -> Reply:
    request: PlainRewardRequest = _reward(call.body)
    await store_rewards(
        call, request.event_id, [(request.slot, request.value, request.idempotency_key, request.metrics)]
    )
    return NO_CONTENT


async def reward_many(call: Call) -> Reply:
    """Store several rewards independently."""
    requests = _reward_batch(call.body).rewards
    _check_batch("rewards", len(requests), call.service.guard.limits.batch)
    call.admit(len(requests))
    now, number = time.time(), call.served.application.id
    results: list[Any] = []
    for each in requests:
        try:
            value = check_reward(call.served, each.value)
            metrics = check_metrics(call.served, each.metrics)
            row = RewardRow(number, each.event_id, each.slot, value, now, each.idempotency_key, metrics)
            check_entry(row)
            results.append(row)
        except (InvalidInput, Problem) as error:
            results.append(RewardResult("refused", _detail(error, _REWARD_CODE)))
    rows = [each for each in results if isinstance(each, RewardRow)]
    answers = iter(await call.service.write(rows) if rows else ())
    listed = [_result(each, next(answers)) if isinstance(each, RewardRow) else each for each in results]
    call.service.metrics.rewarded(call.served, sum(each.result == "stored" for each in listed))
    return as_json(200, RewardBatchResponse(listed))


def _result(row: RewardRow, answer: Stored) -> RewardResult:
    if answer is Stored.UNKNOWN:
        return RewardResult("refused", _detail(unknown_event(row.event_id, row.slot), _REWARD_CODE))
    return RewardResult(answer.value)


async def activate(call: Call) -> Reply:
    await store_activation(call, _activate(call.body).event_id)
    return NO_CONTENT


ROUTES = [
    Route(
        "POST", "/decide", decide, _CODE, "Choose an action: one of the given actions, one of the settings, or a"
        " number",
        request=DecideRequest, answer=DecideResponse,
    ),
    Route(
        "POST", "/decide/batch", decide_many, _CODE, "Make several decisions", request=DecideBatchRequest,
        answer=DecideBatchResponse,
    ),
    Route(
        "POST", "/reward", reward, _REWARD_CODE, "Send the reward of a decision", request=PlainRewardRequest, status=204
    ),
    Route(
        "POST", "/reward/batch", reward_many, _REWARD_CODE, "Send several rewards",
        request=RewardBatchRequest, answer=RewardBatchResponse,
    ),
    Route(
        "POST", "/activate", activate, "InvalidEventIdToActivate", "Activate a deferred decision",
        request=ActivateRequest, status=204,
    ),
]  # fmt: skip
