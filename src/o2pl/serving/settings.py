"""Settings of an application: Personalizer's names, and a few of our own."""

from __future__ import annotations

import math
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from o2pl.errors import InvalidInput, nearest
from o2pl.features.hashing import MOST_BITS

MOST_CONTROL, MOST_METRICS = 0.9, 20


class Kind(StrEnum):
    """The source of an application's actions."""

    RANKED = "ranked"  # in each request
    FIXED = "fixed"  # in the settings
    CONTINUOUS = "continuous"  # real numbers within the bounds of the settings


class Aggregation(StrEnum):
    """How the rewards of a decision that arrived in time are combined."""

    EARLIEST = "earliest"
    SUM = "sum"


class LearningMode(StrEnum):
    """Whose choice is returned."""

    ONLINE = "Online"  # the policy's
    APPRENTICE = "Apprentice"  # the application's own; the policy learns from it
    LOGGING_ONLY = "LoggingOnly"  # the application's own; nothing is learned


class Guardrail(StrEnum):
    """What is done when the service is worse than the control group."""

    NONE = "none"
    ALERT = "alert"  # said on the page, in the log and in the metrics
    WITHDRAW = "withdraw"  # what decides for the control group decides for all


class MetricSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A number that is sent with rewards and compared with the control group; it is not learned from."""

    range: tuple[float, float] = (0.0, 1.0)  # other values are rejected
    default: float = 0.0  # of a decision that got none in time
    lower_is_better: bool = False
    tolerance: float = 0.0  # by which the service may be worse before the guardrail acts
    guardrail: Guardrail = Guardrail.ALERT


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Settings of one application. Durations are ISO 8601 strings in JSON, such as `PT10M`."""

    reward_wait_time: Annotated[timedelta, Meta(description="How long a decision waits for its reward.")] = timedelta(
        minutes=10
    )
    default_reward: Annotated[float, Meta(description="The reward of a decision that got none in time.")] = 0.0
    reward_aggregation: Annotated[
        Aggregation,
        Meta(
            description="`earliest`: the first reward counts, and is learned at once. `sum`: the sum of all rewards,"
            " learned when the wait is over."
        ),
    ] = Aggregation.EARLIEST
    exploration_percentage: Annotated[
        float | None,
        Meta(description="Share of uniform choice, 0 to 1, on top of the learner's own exploration. `null`: 0.05."),
    ] = None
    model_export_frequency: Annotated[
        timedelta, Meta(description="The shortest time between two published model versions.")
    ] = timedelta(seconds=5)
    log_retention_days: Annotated[int, Meta(description="Days for which events are kept. -1: forever.")] = -1
    learning_mode: Annotated[
        LearningMode,
        Meta(
            description="`Online`: the policy decides. `Apprentice`: the application's own choice (the first action) is"
            " returned, and the policy learns from it. `LoggingOnly`: the same without learning."
        ),
    ] = LearningMode.ONLINE
    reward_range: Annotated[
        tuple[float, float], Meta(description="The lowest and the highest reward. Other rewards are rejected.")
    ] = (0.0, 1.0)
    actions: Annotated[tuple[str, ...], Meta(description="The names of the actions, of the kind `fixed` only.")] = ()
    bounds: Annotated[
        tuple[float, float] | None,
        Meta(description="The lowest and the highest action, of the kind `continuous` only."),
    ] = None
    hash_bits: Annotated[int, Meta(description="2^hashBits weights per model, 4 to 26.")] = 18
    random_state: Annotated[int, Meta(description="The seed of the learner.")] = 0
    control_share: Annotated[
        float, Meta(description="Fraction of decisions in the control group, 0 to 0.9. 0: there is none.")
    ] = 0.0
    control_key: Annotated[
        str | None,
        Meta(
            description="What stays in its group: a feature of the context such as `user.id`, or `header:X-User`."
            " `null`: each event is assigned for itself."
        ),
    ] = None
    control_period: Annotated[
        timedelta, Meta(description="How long a key stays in its group; it counts once per period.")
    ] = timedelta(days=1)
    control_version: Annotated[
        int | None,
        Meta(description="The model version that decides for the control group. `null`: the application's own choice."),
    ] = None
    metrics: Annotated[
        dict[str, MetricSettings],
        Meta(description="Further numbers that rewards may have, each with a range and a guardrail, by their names."),
    ] = {}
    reward_guardrail: Annotated[
        Guardrail,
        Meta(description="When the service earns less than the control group: `none`, `alert`, or `withdraw`."),
    ] = Guardrail.ALERT


def to_json(settings: Settings) -> str:
    return msgspec.json.encode(settings).decode()


def stored(text: str | bytes) -> Settings:
    """Parse settings that were checked when they were stored; limits may have changed since."""
    return msgspec.json.decode(text, type=Settings)


def from_json(text: str | bytes, kind: Kind = Kind.RANKED) -> Settings:
    """Parse and check settings; missing values get their defaults."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"settings: found invalid JSON ({error}), expected an object") from None
    if not isinstance(found, dict):
        raise InvalidInput(f"settings: found {type(found).__name__}, expected an object")
    return made(found, kind)


def made(values: dict[str, Any], kind: Kind = Kind.RANKED) -> Settings:
    """Return settings from the values of a JSON object."""
    known = Settings.__struct_encode_fields__
    for name in values:
        if name not in known:
            raise InvalidInput(f"settings: found {name!r}, {nearest(name, known)}")
    try:
        settings = msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        text = str(error).replace(" - at `$.", ", field `")
        raise InvalidInput(f"settings: {text[:1].lower()}{text[1:]}") from None
    check(settings, kind)
    return settings


def changed(settings: Settings, values: dict[str, Any], kind: Kind) -> Settings:
    """Return settings with some values replaced, in JSON form."""
    return made({**msgspec.to_builtins(settings), **values}, kind)


def check(settings: Settings, kind: Kind) -> None:
    low, high = settings.reward_range
    explored = settings.exploration_percentage
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(f"rewardRange: found [{low}, {high}], expected two finite numbers, the lower one first")
    if not low <= settings.default_reward <= high:
        raise InvalidInput(
            f"defaultReward: found {settings.default_reward}, expected a number from {low} to {high} (rewardRange)"
        )
    if explored is not None and not 0 <= explored <= 1:
        raise InvalidInput(f"explorationPercentage: found {explored}, expected a number from 0 to 1")
    if settings.reward_wait_time < timedelta(0):
        raise InvalidInput("rewardWaitTime: found a negative duration, expected one such as PT10M")
    if settings.model_export_frequency <= timedelta(0):
        raise InvalidInput("modelExportFrequency: found a duration that is not positive, expected one such as PT5S")
    if settings.log_retention_days < -1:
        raise InvalidInput(
            f"logRetentionDays: found {settings.log_retention_days}, expected a number of days, or -1 for forever"
        )
    if not 4 <= settings.hash_bits <= MOST_BITS:
        raise InvalidInput(f"hashBits: found {settings.hash_bits}, expected a number from 4 to {MOST_BITS}")
    if settings.random_state < 0:
        raise InvalidInput(f"randomState: found {settings.random_state}, expected 0 or more")
    _check_actions(settings, kind)
    _check_control(settings, kind)


def _check_control(settings: Settings, kind: Kind) -> None:
    share, period = settings.control_share, settings.control_period
    if not 0 <= share <= MOST_CONTROL:
        raise InvalidInput(f"controlShare: found {share}, expected a number from 0 to {MOST_CONTROL}")
    if not timedelta(minutes=1) <= period <= timedelta(days=366):
        raise InvalidInput("controlPeriod: found a duration below a minute or above a year, expected one such as P1D")
    if settings.control_version is not None and settings.control_version < 0:
        raise InvalidInput(f"controlVersion: found {settings.control_version}, expected a model version, or 0: uniform")
    if share and kind is Kind.CONTINUOUS and settings.control_version is None:
        raise InvalidInput(
            "controlVersion: found none, expected a model version (0: uniform decisions), since calls for real-valued"
            " actions name no choice of the application's own"
        )
    kept = settings.log_retention_days
    if share and settings.control_key and 0 <= kept * 86400 < (period + settings.reward_wait_time).total_seconds():
        raise InvalidInput(
            f"controlPeriod: found {period}, expected less than logRetentionDays ({kept}): a key counts when its period"
            " is over"
        )
    if settings.control_key is not None and not settings.control_key.removeprefix("header:"):
        raise InvalidInput("controlKey: found no name, expected a feature such as 'user.id', or 'header:X-User'")
    if len(settings.metrics) > MOST_METRICS:
        raise InvalidInput(f"metrics: found {len(settings.metrics)}, expected at most {MOST_METRICS}")
    for name, metric in settings.metrics.items():
        _check_metric(name, metric)


def _check_metric(name: str, metric: MetricSettings) -> None:
    low, high = metric.range
    if not name or len(name) > 64 or not name.isprintable() or name == "reward":
        raise InvalidInput(f"metrics: found the name {name!r}, expected 1 to 64 characters, and not 'reward'")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(
            f"metrics, {name}: found the range [{low}, {high}], expected two numbers, the lower one first"
        )
    if not low <= metric.default <= high:
        raise InvalidInput(f"metrics, {name}: found the default {metric.default}, expected one from {low} to {high}")
    if not 0 <= metric.tolerance < math.inf:
        raise InvalidInput(f"metrics, {name}: found the tolerance {metric.tolerance}, expected a number from 0")


def _check_actions(settings: Settings, kind: Kind) -> None:
    """Check what each kind of application says of its actions."""
    bounds = settings.bounds
    if kind is Kind.FIXED and len(settings.actions) < 2:
        raise InvalidInput(f"actions: found {len(settings.actions)}, expected the names of at least two fixed actions")
    if len(set(settings.actions)) < len(settings.actions):
        raise InvalidInput("actions: found a name twice, expected different names")
    if settings.actions and kind is not Kind.FIXED:
        raise InvalidInput(f"actions: found in an application of kind '{kind}', expected only for kind 'fixed'")
    if kind is Kind.CONTINUOUS and bounds is None:
        raise InvalidInput("bounds: found none, expected the lowest and highest action, such as [0, 10]")
    if bounds is not None:
        if kind is not Kind.CONTINUOUS:
            raise InvalidInput(f"bounds: found in an application of kind '{kind}', expected only for kind 'continuous'")
        if not (math.isfinite(bounds[0]) and math.isfinite(bounds[1]) and bounds[0] < bounds[1]):
            raise InvalidInput(f"bounds: found {list(bounds)}, expected two finite numbers, the lower one first")
