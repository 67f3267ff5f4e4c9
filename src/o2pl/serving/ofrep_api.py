"""The OpenFeature Remote Evaluation Protocol: a flag is an application, its variants are the actions.

`POST /ofrep/v1/evaluate/flags/{key}` decides for one evaluation; the call without a key, for clients that evaluate all
flags at once, decides for the one application of the access key.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from o2pl.errors import InvalidInput
from o2pl.serving.plain_api import DecideRequest, DecideResponse, OfferedAction, again, decided
from o2pl.serving.problems import Problem, Reply, as_json
from o2pl.serving.service import Call, Route, decoder
from o2pl.serving.settings import Kind, LearningMode

PATH = "/ofrep/v1/evaluate/flags"
_RESERVED, _CODE = "o2pl", "InvalidEvaluationRequest"

Attributes = Annotated[
    dict[str, Raw],
    Meta(extra_json_schema={"type": "object", "examples": [{"targetingKey": "user-7", "device": "phone"}]}),
]


class EvaluationRequest(Struct):
    """An evaluation context: its attributes are the features. The attribute `o2pl` has the options of the decision."""

    context: Attributes | None = None


class FlagOptions(Struct, rename="camel", forbid_unknown_fields=True):
    """What the attribute `o2pl` may have, as in /decide; an action may be its id alone."""

    actions: list[OfferedAction | str] | None = None
    excluded_actions: list[str] | None = None
    baseline_action: str | None = None
    event_id: Annotated[str, Meta(max_length=256)] | None = None
    defer_activation: bool | None = None


class FlagEvaluation(Struct, omit_defaults=True):
    """The value of a flag: the chosen variant. `eventId` of the metadata is for the reward."""

    key: str
    reason: str
    variant: str
    value: Annotated[Any, Meta(extra_json_schema={"examples": ["red", True, 7.5]})]
    metadata: Annotated[
        dict[str, str | float],
        Meta(extra_json_schema={"examples": [{"eventId": "e1", "propensity": 0.5, "modelVersion": 3}]}),
    ]
    cacheable: bool | UnsetType = UNSET


class EvaluationFailure(Struct, rename="camel"):
    """An error in the format of the protocol."""

    key: str
    error_code: str
    error_details: str


class BulkEvaluation(Struct):
    """The flags of the access key: one."""

    flags: list[FlagEvaluation | Annotated[Any, Meta(description="or an error")]]


_request, _options = decoder(EvaluationRequest), decoder(FlagOptions)


async def evaluate(call: Call) -> Reply:
    """Decide for one evaluation. `call.event_id` is the flag's key."""
    own = call.served.application.name
    if call.event_id != own:
        said = f"flag: found {call.event_id!r}, expected {own!r}, the application of this key"
        return as_json(404, EvaluationFailure(call.event_id, "FLAG_NOT_FOUND", said))
    try:
        made = await _evaluated(call, _request(call.body).context or {})
    except (InvalidInput, msgspec.DecodeError, UnicodeDecodeError, RecursionError, Problem) as error:
        return as_json(400, _failure(own, error))
    made.cacheable = False  # the next evaluation is another decision
    return as_json(200, made)


async def evaluate_all(call: Call) -> Reply:
    """Decide for the one flag of this key. A client that has a decision for this context keeps it: 304."""
    own = call.served.application.name
    try:
        context = _request(call.body).context or {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return as_json(400, _failure(own, error))
    tag = _tag(call, context)
    headers = ((b"etag", tag.encode()),)
    if tag in [each.strip() for each in (call.if_none_match or "").split(",")]:
        return Reply(304, headers=headers)
    try:
        found: Any = await _evaluated(call, context)
    except (InvalidInput, msgspec.DecodeError, RecursionError, Problem) as error:
        return as_json(200, BulkEvaluation([_failure(own, error)]))
    answer = as_json(200, BulkEvaluation([found]))
    return Reply(200, answer.body, (*answer.headers, *headers))


def _tag(call: Call, context: dict[str, Raw]) -> str:
    """The same for the same context, as long as the application and its actions are the same, whatever is learned."""
    application = call.served.application
    named = [application.id, application.settings.actions, application.settings.bounds, sorted(context.items())]
    return f'"{hashlib.sha256(msgspec.json.encode(named)).hexdigest()[:32]}"'


def _failure(key: str, error: Exception) -> EvaluationFailure:
    if isinstance(error, Problem) and error.status >= 500:
        raise error
    well_formed = isinstance(error, InvalidInput | msgspec.ValidationError)
    code = "INVALID_CONTEXT" if well_formed else "GENERAL" if isinstance(error, Problem) else "PARSE_ERROR"
    return EvaluationFailure(key, code, str(error))


async def _evaluated(call: Call, context: dict[str, Raw]) -> FlagEvaluation:
    served = call.served
    given = FlagOptions() if _RESERVED not in context else _options(bytes(context[_RESERVED]))
    features = {name: value for name, value in context.items() if name != _RESERVED}
    if served.application.kind is Kind.CONTINUOUS:
        features.pop("targetingKey", None)  # its contexts are numbers
    actions = [OfferedAction(each) if isinstance(each, str) else each for each in given.actions or ()]
    request = DecideRequest(
        Raw(msgspec.json.encode(features)), actions or None, given.excluded_actions, given.baseline_action,
        given.event_id, given.defer_activation,
    )  # fmt: skip
    made = decided(served, request, call.service.guard.limits.actions, call.headers)
    before = await call.service.store_decision(served, made.row, _CODE)
    response = made.response if before is None else again(before[0])
    reason = "TARGETING_MATCH" if response.model_version else "SPLIT"
    if served.application.settings.learning_mode is not LearningMode.ONLINE:
        reason = "DEFAULT"
    metadata: dict[str, str | float] = {
        "eventId": response.event_id, "propensity": response.propensity, "modelVersion": response.model_version,
    }  # fmt: skip
    return FlagEvaluation(served.application.name, reason, str(response.action), _value(response), metadata)


def _value(response: DecideResponse) -> Any:
    """Return the value of the variant: of the type that the names of all its alternatives have in JSON."""
    if isinstance(response.action, float):
        return response.action
    return flag_values(tuple(response.probabilities or (response.action,)))[response.action]


@lru_cache(maxsize=1024)
def flag_values(names: tuple[str, ...]) -> dict[str, Any]:
    """Return the values of variants by name: booleans, numbers or objects where all names are; otherwise the names."""
    values: dict[str, Any] = {}
    for name in names:
        try:
            values[name] = msgspec.json.decode(name)
        except (msgspec.DecodeError, RecursionError):
            return {each: each for each in names}
    kinds = {type(value) for value in values.values()}
    if kinds == {int, float}:
        return {name: float(value) for name, value in values.items()}
    return values if kinds in ({bool}, {int}, {float}, {dict}) else {each: each for each in names}


_TAG = "openfeature"
ROUTES = [
    Route(
        "POST", f"{PATH}/{{key}}", evaluate, _CODE, "Evaluate a flag (OFREP): choose a variant",
        request=EvaluationRequest, answer=FlagEvaluation, error=EvaluationFailure, tag=_TAG,
    ),
    Route(
        "POST", PATH, evaluate_all, _CODE, "Evaluate all flags of the key (OFREP)", request=EvaluationRequest,
        answer=BulkEvaluation, error=EvaluationFailure, tag=_TAG,
    ),
]  # fmt: skip
