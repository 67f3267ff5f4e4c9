"""Decisions of the service: the stored text, the probabilities of all actions, and the draw.

A decision is a pure function of the model, the text, the allowed actions, the exploration fraction of the settings, and
one uniform random number. All of them are stored, so it can be recomputed: `redecided`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from o2pl._core import draw_one
from o2pl.encode import Encoder
from o2pl.engine.decider import Decider
from o2pl.engine.set_texts import SetTexts, check_set_text_depth
from o2pl.errors import InvalidInput
from o2pl.features.hashing import Hashed
from o2pl.policies.cells import Cells
from o2pl.protocols import Floats
from o2pl.serving.settings import Kind, Settings

_quoted = msgspec.json.Encoder().encode
_parsed = msgspec.json.Decoder().decode


class Drawn(NamedTuple):
    """A drawn decision."""

    action: int | None  # index among the allowed actions
    value: float | None  # for real-valued actions
    propensity: float
    probabilities: Floats | None  # of all allowed actions
    preferred: int | None = None  # the policy's choice, if the application's own choice was returned


# -- texts


def inner(feature_object: bytes, what: str) -> bytes:
    """Return the text between the braces of a JSON object."""
    if not feature_object.startswith(b"{"):
        raise InvalidInput(f"{what}: found {feature_object[:40].decode(errors='replace')}, expected an object")
    return feature_object[1:-1].strip()


def joined(objects: Sequence[Any], what: str) -> bytes:
    """Merge the features of several JSON objects into one, without braces."""
    if len(objects) == 1:
        return inner(bytes(objects[0]), what)
    return b",".join(part for part in (inner(bytes(each), what) for each in objects) if part)


def action_text(action_id: str, objects: Sequence[Any]) -> bytes:
    """Return an action with its features; its id is one of them."""
    if len(objects) == 1:
        only = bytes(objects[0])
        if only[:2] == b'{"':  # common case: one object that starts with a key
            return b'{"id":%b,%b' % (_quoted(action_id), only[1:])
    features = joined(objects, "features of an action")
    return b'{"id":%b,%b}' % (_quoted(action_id), features) if features else b'{"id":%b}' % _quoted(action_id)


def slot_text(slot_id: str, objects: Sequence[Any]) -> bytes:
    """Return a slot as a feature shared by all actions."""
    return b'"slot":' + action_text(slot_id, objects)


def set_text(shared: Sequence[bytes], actions: Sequence[bytes]) -> bytes:
    """Return `c` of dsjson. shared: features shared by all actions, without braces."""
    if b"multi" in shared[0] and "_multi" in _parsed(b"{%b}" % shared[0]):
        raise InvalidInput(
            "context: found a feature called `_multi`, expected another name: it is reserved for the actions"
        )
    return b"{%b}" % b",".join([*(part for part in shared if part), b'"_multi":[%b]' % b",".join(actions)])


# -- decisions


class Acting:
    """The acting policy of an application: one model version with one exploration fraction."""

    def __init__(self, kind: Kind, settings: Settings, version: int = 0, decider: Decider | None = None) -> None:
        """Version 0 is the uniform policy; so is a model for actions other than those in the settings."""
        if decider is not None and not _fits(kind, settings, decider):
            version, decider = 0, None
        self.kind, self.settings, self.version = kind, settings, version
        self.policy = decider  # without the exploration of the settings
        self.exploration = settings.exploration_percentage or 0.0 if version else 0.0
        self.decider = decider.exploring(self.exploration) if decider is not None and self.exploration else decider
        if kind is Kind.RANKED:
            self._texts = SetTexts(self.decider)
        elif kind is Kind.FIXED:
            self._encoder = Encoder(hashed=Hashed().encoding)

    def try_out(self) -> None:
        """Make a dummy decision: what is imported or read at first is ready before the first call."""
        if self.kind is Kind.RANKED:
            self.ranked(b'{"user":"a","_multi":[{"id":"a","b":1},{"id":"b"}]}', 2, 0.5)
        elif self.kind is Kind.FIXED:
            self.fixed(b'{"a":"b"}', 0.5)
        elif self.decider is not None and self.decider.encoder.schema is None:
            self.continuous(_quoted([0.0] * (self.decider.encoder.width or 1)), 0.5)

    def ranked(self, text: bytes, n_actions: int, uniform: float) -> Drawn:
        """Decide on one action set from `set_text`."""
        return _drawn(self._texts.probabilities(text, n_actions), uniform)

    def fixed(self, text: bytes, uniform: float, allowed: Sequence[int] | None = None) -> Drawn:
        """Decide among the actions of the settings. allowed: indices of the allowed ones; None: all."""
        context, K = _parsed(text), len(self.settings.actions)
        check_set_text_depth(context)
        if self.decider is None:
            self._encoder.encode_one(context)  # rejects contexts that could not be learned from
            left = K if allowed is None else len(allowed)
            return _drawn(np.full(left, 1 / left), uniform)
        return _drawn(self.decider.among(context, np.arange(K) if allowed is None else np.array(allowed)), uniform)

    def continuous(self, text: bytes, uniform: float) -> Drawn:
        """Draw a number within the bounds; its propensity is its density."""
        context = numbers_of(_parsed(text))
        if self.decider is None:
            low, high = self.settings.bounds or (0.0, 1.0)
            return Drawn(None, low + uniform * (high - low), 1 / (high - low), None)
        value, density = self.decider.decide(context, uniform)
        return Drawn(None, float(value), density, None)

    def taught(self, drawn: Drawn, own: int) -> Drawn:
        """Replace the policy's choice by the application's own; its propensity is 1."""
        assert drawn.probabilities is not None
        sure = np.zeros(len(drawn.probabilities))
        sure[own] = 1
        return Drawn(own, None, 1.0, sure, preferred=drawn.action)


def _drawn(pi: Floats, uniform: float) -> Drawn:
    action = int(draw_one(pi, uniform))
    return Drawn(action, None, float(pi[action]), pi)


def _fits(kind: Kind, settings: Settings, decider: Decider) -> bool:
    if kind is Kind.FIXED:
        return tuple(decider.names) == settings.actions
    if kind is Kind.CONTINUOUS:
        cells = decider.cells
        return isinstance(cells, Cells) and tuple(cells.bounds) == settings.bounds
    return True


def numbers_of(context: Any) -> Any:
    """Check for a non-empty list or object of finite numbers."""
    values = list(context.values()) if isinstance(context, dict) else context
    fine = isinstance(values, list) and len(values) > 0
    if not fine or not all(type(value) in (int, float) and math.isfinite(value) for value in values):
        raise InvalidInput("context: expected a non-empty list or object of finite numbers")
    return context


def drawn_before(row: Any) -> Drawn:
    """Return the decision of a stored row."""
    pi = None if row.probabilities is None else np.frombuffer(bytes(row.probabilities), "<f8")
    return Drawn(row.action, row.value, row.propensity, pi, row.preferred)


def redecided(acting: Acting, row: Any) -> Drawn:
    """Recompute a stored decision. row: of `decisions`; acting: its model with its `exploration`."""
    context, uniform = bytes(row.context), float(row.uniform)
    if acting.kind is Kind.CONTINUOUS:
        return acting.continuous(context, uniform)
    if acting.kind is Kind.FIXED:
        names = acting.settings.actions
        drawn = acting.fixed(context, uniform, [names.index(name) for name in _parsed(row.actions)])
    else:
        drawn = acting.ranked(context, len(_parsed(row.actions)), uniform)
    return drawn if row.preferred is None else acting.taught(drawn, int(row.action))
