"""From a call to a decision: the text that is stored, the probabilities of all actions, and the draw.

A decision is a pure function of the model, the text, the actions that could be played, the share of exploration that
the settings mix in, and one uniform number. All of them are stored, so it can be made again: `redecided`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from o2pl.contexts import DictionaryReader
from o2pl.errors import InvalidInput
from o2pl.features.hashing import Hashed
from o2pl.learners.decider import Decider
from o2pl.learners.set_texts import SetTexts, check_depth
from o2pl.policies.cells import Cells
from o2pl.policies.sampling import draw_one
from o2pl.protocols import Floats
from o2pl.serving.settings import Kind, Settings

_quoted = msgspec.json.Encoder().encode
_parsed = msgspec.json.Decoder().decode


class Drawn(NamedTuple):
    """What was decided."""

    action: int | None  # the place among the actions that could be played
    value: float | None  # where actions are real numbers
    propensity: float
    probabilities: Floats | None  # of all actions that could be played
    preferred: int | None = None  # what the policy would have answered, where the application chose


# -- texts


def inner(feature_object: bytes, what: str) -> bytes:
    """What stands between the braces of an object in JSON."""
    if not feature_object.startswith(b"{"):
        raise InvalidInput(f"{what}: found {feature_object[:40].decode(errors='replace')}, expected an object")
    return feature_object[1:-1].strip()


def joined(objects: Sequence[Any], what: str) -> bytes:
    """The features of several objects of JSON, as those of one, without its braces."""
    if len(objects) == 1:
        return inner(bytes(objects[0]), what)
    return b",".join(part for part in (inner(bytes(each), what) for each in objects) if part)


def action_text(action_id: str, objects: Sequence[Any]) -> bytes:
    """An action with its features; its id is one of them."""
    if len(objects) == 1:
        only = bytes(objects[0])
        if only[:2] == b'{"':  # most often: one object that begins with a key
            return b'{"id":%b,%b' % (_quoted(action_id), only[1:])
    features = joined(objects, "features of an action")
    return b'{"id":%b,%b}' % (_quoted(action_id), features) if features else b'{"id":%b}' % _quoted(action_id)


def slot_text(slot_id: str, objects: Sequence[Any]) -> bytes:
    """The place that an action is chosen for, as a feature that all actions share."""
    return b'"slot":' + action_text(slot_id, objects)


def set_text(shared: Sequence[bytes], actions: Sequence[bytes]) -> bytes:
    """`c` of dsjson. shared: features that all actions share, without braces."""
    if b"multi" in shared[0] and "_multi" in _parsed(b"{%b}" % shared[0]):
        raise InvalidInput(
            "context: found a feature called `_multi`, expected another name: the actions are stored there"
        )
    return b"{%b}" % b",".join([*(part for part in shared if part), b'"_multi":[%b]' % b",".join(actions)])


# -- decisions


class Acting:
    """What an application's decisions are drawn from: one version of its model with one share of exploration."""

    def __init__(self, kind: Kind, settings: Settings, version: int = 0, decider: Decider | None = None) -> None:
        """Version 0 is the uniform policy, as is a model that was made for other actions than the settings say."""
        if decider is not None and not _fits(kind, settings, decider):
            version, decider = 0, None
        self.kind, self.settings, self.version = kind, settings, version
        self.exploration = settings.exploration_percentage or 0.0 if version else 0.0
        self.decider = decider.exploring(self.exploration) if decider is not None and self.exploration else decider
        if kind is Kind.RANKED:
            self._texts = SetTexts(self.decider)
        elif kind is Kind.FIXED:
            self._reader = DictionaryReader(Hashed().bits)

    def try_out(self) -> None:
        """A first decision, of nobody: kernels are loaded or compiled now, not when somebody waits."""
        if self.kind is Kind.RANKED:
            self.ranked(b'{"user":"a","_multi":[{"id":"a","b":1},{"id":"b"}]}', 2, 0.5)
        elif self.kind is Kind.FIXED:
            self.fixed(b'{"a":"b"}', 0.5)
        elif self.decider is not None and self.decider.reader.schema is None:
            self.continuous(_quoted([0.0] * (self.decider.reader.width or 1)), 0.5)

    def ranked(self, text: bytes, n_actions: int, uniform: float) -> Drawn:
        """Of one action set, as `set_text` made it."""
        return _drawn(self._texts.probabilities(text, n_actions), uniform)

    def fixed(self, text: bytes, uniform: float, allowed: Sequence[int] | None = None) -> Drawn:
        """Of the actions that the settings name. allowed: the places of those that may be played; None: all."""
        context, K = _parsed(text), len(self.settings.actions)
        check_depth(context)
        if self.decider is None:
            self._reader.row(context)  # refuses what could not be learned from
            left = K if allowed is None else len(allowed)
            return _drawn(np.full(left, 1 / left), uniform)
        return _drawn(self.decider.among(context, np.arange(K) if allowed is None else np.array(allowed)), uniform)

    def continuous(self, text: bytes, uniform: float) -> Drawn:
        """A number within the bounds; its propensity is its density."""
        context = numbers_of(_parsed(text))
        if self.decider is None:
            low, high = self.settings.bounds or (0.0, 1.0)
            return Drawn(None, low + uniform * (high - low), 1 / (high - low), None)
        value, density = self.decider.decide(context, uniform)
        return Drawn(None, float(value), density, None)

    def taught(self, drawn: Drawn, own: int) -> Drawn:
        """The application's own choice in the place of the policy's: its propensity is 1."""
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
    """A list or an object of finite numbers, at least one."""
    values = list(context.values()) if isinstance(context, dict) else context
    fine = isinstance(values, list) and len(values) > 0
    if not fine or not all(type(value) in (int, float) and math.isfinite(value) for value in values):
        raise InvalidInput("context: expected a list or an object of finite numbers, at least one")
    return context


def redecided(acting: Acting, row: Any) -> Drawn:
    """A stored decision, made again. row: of `decisions`; acting: its model with its `exploration`."""
    context, uniform = bytes(row.context), float(row.uniform)
    if acting.kind is Kind.CONTINUOUS:
        return acting.continuous(context, uniform)
    if acting.kind is Kind.FIXED:
        names = acting.settings.actions
        drawn = acting.fixed(context, uniform, [names.index(name) for name in _parsed(row.actions)])
    else:
        drawn = acting.ranked(context, len(_parsed(row.actions)), uniform)
    return drawn if row.preferred is None else acting.taught(drawn, int(row.action))
