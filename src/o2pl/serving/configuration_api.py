"""Personalizer's configuration API: settings, learning policy and model of an application."""

from __future__ import annotations

import hashlib
import shlex
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from o2pl.errors import InvalidInput, nearest
from o2pl.serving import imported_learners, training_batches, versions
from o2pl.serving.applications import change_settings
from o2pl.serving.model_checks import check_outside
from o2pl.serving.personalizer_api import PREFIX, VERSIONS
from o2pl.serving.problems import NO_CONTENT, Problem, Reply, as_json
from o2pl.serving.service import Call, Route, in_versions
from o2pl.serving.settings import MOST_CONTROL, Guardrail, MetricSettings, Settings, to_json

_SETTINGS, _POLICY = "InvalidServiceConfiguration", "InvalidPolicyConfiguration"
_UNSUPPORTED = ("logMirrorEnabled", "isAutoOptimizationEnabled")  # only False is supported
_IGNORED = (
    "logMirrorSasUri", "lastConfigurationEditDate", "autoOptimizationFrequency", "autoOptimizationStartDate",
)  # fmt: skip
_OF_POLICY = {"hash_bits": "hashBits", "random_state": "randomState"}  # learning settings by flag
_NAME = "o2pl"


class ServiceConfiguration(Struct, rename="camel"):
    """Settings of an application. Durations are ISO 8601, such as PT10M. Missing fields are unchanged."""

    reward_wait_time: Annotated[str | None, Meta(extra_json_schema={"examples": ["PT10M"]})] = None
    default_reward: float | None = None
    reward_aggregation: Annotated[str | None, Meta(extra_json_schema={"examples": ["earliest", "sum"]})] = None
    exploration_percentage: (
        Annotated[float, Meta(ge=0, le=1, description="Fraction of uniform decisions. null: 0.05.")] | None
    ) = None
    model_export_frequency: Annotated[str | None, Meta(extra_json_schema={"examples": ["PT5S"]})] = None
    log_retention_days: Annotated[int | None, Meta(description="-1: forever.")] = None
    learning_mode: Annotated[str | None, Meta(extra_json_schema={"examples": ["Online", "Apprentice"]})] = None
    reward_range: (
        Annotated[list[float], Meta(min_length=2, max_length=2, extra_json_schema={"examples": [[0, 1]]})] | None
    ) = None
    control_share: Annotated[float, Meta(ge=0, le=MOST_CONTROL, description="Fraction in the control group.")] = 0.0
    control_key: Annotated[str | None, Meta(extra_json_schema={"examples": ["user.id", "header:X-User"]})] = None
    control_period: Annotated[str | None, Meta(extra_json_schema={"examples": ["P1D"]})] = None
    control_version: Annotated[int | None, Meta(description="null: the application's own choice.")] = None
    metrics: dict[str, MetricSettings] | None = None
    reward_guardrail: Guardrail | None = None


class PolicyContract(Struct):
    """Settings of the learner."""

    name: Annotated[str, Meta(max_length=256)]
    arguments: Annotated[str, Meta(max_length=1024, extra_json_schema={"examples": ["--hash_bits 18"]})]


class ModelProperties(Struct, rename="camel"):
    """Properties of the served model."""

    creation_time: str | None
    last_modified_time: str | None
    version: int


class ServiceStatus(Struct, rename="camel"):
    """Status of the service."""

    service: str
    api_status: str
    api_status_message: str


# -- settings


async def settings(call: Call) -> Reply:
    return _shown(call.served.application.settings)


def _shown(found: Settings) -> Reply:
    body = as_json(200, msgspec.to_builtins(found))
    return Reply(200, body.body, (*body.headers, (b"etag", etag(found).encode())))


def etag(found: Settings) -> str:
    """Return the tag of these settings, for If-Match."""
    return f'"{hashlib.sha256(to_json(found).encode()).hexdigest()[:16]}"'


async def put_settings(call: Call) -> Reply:
    """Change the given settings; others are unchanged."""
    values = _object(call.body)
    for name in _UNSUPPORTED:
        if values.pop(name, False):
            raise InvalidInput(f"{name}: found true, expected false: this service does not support it")
    for name in _IGNORED:
        values.pop(name, None)
    return _shown(await _put(call, values))


async def _put(call: Call, values: dict[str, Any]) -> Settings:
    """Change the given settings as they are stored now. With If-Match: only if nobody has changed them since."""
    store, number, asked = call.service.store, call.served.application.id, call.if_match

    def change() -> Settings | None:
        with store.writing() as connection:
            return change_settings(connection, number, values, lambda now: asked in (None, "*", etag(now)))

    made = await call.service.blocking(change)
    if made is None:
        now = etag(await call.service.blocking(store.settings, number))
        raise Problem(
            412, "PreconditionFailed", f"If-Match: found {asked}, expected {now}: the settings were changed meanwhile;"
            " read them again", ((b"etag", now.encode()),),
        )  # fmt: skip
    await call.service.refresh()
    return made  # type: ignore[no-any-return]


def _object(body: bytes) -> dict[str, Any]:
    body.decode()
    found = msgspec.json.decode(body)
    if not isinstance(found, dict):
        raise InvalidInput(f"body: found a {type(found).__name__}, expected an object")
    return found


# -- how to learn


def _contract(found: Settings) -> PolicyContract:
    values = msgspec.to_builtins(found)
    return PolicyContract(_NAME, " ".join(f"--{flag} {values[name]}" for flag, name in _OF_POLICY.items()))


async def policy(call: Call) -> Reply:
    return as_json(200, _contract(call.served.application.settings))


async def put_policy(call: Call) -> Reply:
    call.body.decode()
    contract = msgspec.json.decode(call.body, type=PolicyContract)
    try:
        words = shlex.split(contract.arguments)
    except ValueError as error:
        raise InvalidInput(f"arguments: found {contract.arguments!r}, which cannot be parsed ({error})") from None
    if len(words) % 2:
        raise InvalidInput(f"arguments: found {contract.arguments!r}, expected pairs such as --hash_bits 18")
    values = {}
    for flag, value in zip(words[::2], words[1::2], strict=True):
        name = flag.removeprefix("--").replace("-", "_")
        if not flag.startswith("--") or name not in _OF_POLICY:
            raise InvalidInput(f"arguments: found {flag!r}, {nearest(name, list(_OF_POLICY))}")
        if not (value.isascii() and value.isdigit() and len(value) < 19):
            raise InvalidInput(f"arguments: found {flag} {value!r}, expected an integer")
        values[_OF_POLICY[name]] = int(value)
    return await _learn_by(call, values)


async def reset_policy(call: Call) -> Reply:
    defaults = msgspec.to_builtins(Settings())
    return await _learn_by(call, {name: defaults[name] for name in _OF_POLICY.values()})


async def _learn_by(call: Call, values: dict[str, Any]) -> Reply:
    return as_json(200, _contract(await _put(call, values)))


# -- the model


async def model(call: Call) -> Reply:
    version = call.served.acting.version
    if version == 0:
        raise Problem(
            404, "ResourceNotFound", "model: found no model yet; the first one is published after the first rewards"
        )
    body = await call.service.blocking(call.service.store.model_body, call.served.application.id, version)
    return Reply(200, body, ((b"content-type", b"application/octet-stream"),))


async def put_model(call: Call) -> Reply:
    """Import a learner, which is learned on with, or a policy, which is served until `DELETE …/model`."""
    service, application = call.service, call.served.application
    found = await service.blocking(check_outside, application, call.body)

    def publish() -> None:
        with service.store.writing() as connection:
            imported_learners.put(connection, application.id, found, pinned=found.learner is None)

    await service.blocking(publish)
    await service.refresh()
    return NO_CONTENT


async def reset_model(call: Call) -> Reply:
    """Forget what was learned: decisions are uniform, and learning begins anew with outcomes from now on."""
    service, number = call.service, call.served.application.id

    def reset() -> None:
        with service.store.writing() as connection:
            versions.pin(connection, number, None)
            training_batches.reset(connection, number)
            imported_learners.end(connection, number)
            for row in versions.model_versions(connection, number):
                if row.withdrawn is None:
                    versions.withdraw(connection, number, row.version, "reset through the API")

    await service.blocking(reset)
    await service.refresh()
    return NO_CONTENT


async def model_properties(call: Call) -> Reply:
    version = call.served.acting.version
    rows = await call.service.blocking(call.service.store.model_versions, call.served.application.id)
    times = {row.version: datetime.fromtimestamp(row.created_at, UTC).isoformat() for row in rows}
    return as_json(200, ModelProperties(times.get(min(times, default=0)), times.get(version), version))


async def status(call: Call) -> Reply:
    return as_json(200, ServiceStatus("o2pl", "Valid", "the service is ready"))


_SERVICE, _OF_LEARNING, _TAG, _MISSING = (
    "/configurations/service",
    "/configurations/policy",
    "settings",
    "ResourceNotFound",
)
_OWN = [
    Route("GET", _SERVICE, settings, _SETTINGS, "The settings of the application", "read", None, ServiceConfiguration),
    Route("PUT", _SERVICE, put_settings, _SETTINGS, "Change settings")._replace(
        request=ServiceConfiguration, answer=ServiceConfiguration
    ),
    Route("GET", _OF_LEARNING, policy, _POLICY, "The settings of the learner", "read", None, PolicyContract),
    Route("PUT", _OF_LEARNING, put_policy, _POLICY, "Change the settings of the learner")._replace(
        request=PolicyContract, answer=PolicyContract
    ),
    Route(
        "DELETE",
        _OF_LEARNING,
        reset_policy,
        _POLICY,
        "Reset the learner to its default settings",
        answer=PolicyContract,
    ),
    Route("GET", "/model", model, _MISSING, "The learned policy, as a file", "read", None, bytes),
    Route("PUT", "/model", put_model, "InvalidModelImportFormat", "Import a learner or a policy and serve it")._replace(
        request=bytes, status=204, large=True
    ),
    Route("DELETE", "/model", reset_model, "ModelResetFailed", "Withdraw the models, and learn anew", status=204),
    Route("GET", "/model/properties", model_properties, _MISSING, "Version and age of the model")._replace(
        role="read", answer=ModelProperties
    ),
    Route("GET", "/status", status, _MISSING, "Status of the service", "read", None, ServiceStatus),
]
ROUTES = in_versions([route._replace(tag=_TAG) for route in _OWN], PREFIX, VERSIONS, VERSIONS[0])
