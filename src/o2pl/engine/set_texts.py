"""Decisions on action sets as JSON text, without building dictionaries: the fast path of the service."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from o2pl import _core
from o2pl.data.kinds import DICTIONARIES
from o2pl.encode import Encoder
from o2pl.engine.acting import ActingMember, stacked_weights
from o2pl.engine.decider import Decider
from o2pl.errors import InvalidInput
from o2pl.features.hashing import Hashed
from o2pl.policies.actionwise import ActionWise
from o2pl.policies.sampling import acting_numbers
from o2pl.protocols import Explored, Floats

MOST = 250_000  # limit of features of one action set, products included: a few milliseconds
_WEIGHED, _TOO_LARGE = 1, 2  # of `HashedMembers.policy_of_text`
_NONE = np.empty(0)


class SetTexts:
    """The acting policy on JSON texts of action sets, `{"user": …, "_multi": [{…}, …]}`.

    Most texts are parsed and scored in one call of the compiled core. Unusual ones are parsed by `json` and scored by
    the decider. Texts that are no action sets are an error.
    """

    def __init__(self, decider: Decider | None = None) -> None:
        """decider: a policy for action sets of dictionaries; None: the uniform policy."""
        decider = _uniform_for_set_text() if decider is None else decider
        encoder = decider.encoder
        words = encoder.words
        if not encoder.items or words is None:
            raise InvalidInput("policy: found another kind of policy, expected one for action sets of dictionaries")
        self.decider = decider
        first = decider.members[0]
        alike = all(isinstance(m.policy, ActionWise) and m.seen is first.seen for m in decider.members)
        self._members: _core.HashedMembers | None = None
        self._how: tuple[int, bool, Floats] = words.width - 1, words.signed, decider.acting
        if alike and isinstance(first.features, Hashed) and not words.interactions:
            slots = first.features.slot_of(first.seen), first.seen["scale"]
            weights = stacked_weights(decider.members, 1)  # of sets: one weight per slot
            self._members = _core.HashedMembers(*slots, weights, len(decider.members), decider.uncertainty)

    def probabilities(self, text: bytes, n_actions: int) -> Floats:
        """Return the probabilities of the actions of one set, [K]. A text that is no set of K actions is an error."""
        out = np.empty(n_actions)
        if self._members is not None:
            found = self._members.policy_of_text(text, *self._how, MOST, out)
            if found == _WEIGHED:
                return out
            if found == _TOO_LARGE:
                raise _set_text_too_large()
        return self._parsed(text, n_actions)

    def _parsed(self, text: bytes, n_actions: int) -> Floats:
        try:
            context = json.loads(text, parse_constant=_refuse_set_text)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"context: found text that is not JSON, or nested too deeply ({error})") from None
        check_set_text_depth(context)
        if not isinstance(context, dict) or "_multi" not in context:
            raise InvalidInput("context: found no `_multi`, expected an object with the list of actions under that key")
        _check_set_text_size(context)
        found = self.decider.probabilities(self.decider.encoder.encode_one(context))
        if len(found) != n_actions:
            raise InvalidInput(f"context: found {len(found)} actions, expected {n_actions}")
        return found


def _check_set_text_size(context: dict[str, Any]) -> None:
    """Reject a context with too many feature products before they are formed."""
    actions = context["_multi"] if isinstance(context["_multi"], list) else []
    shared = _values_in_set_texts(value for name, value in context.items() if name != "_multi")
    if sum((shared + 1) * (_values_in_set_texts([action]) + 1) for action in actions) > MOST + len(actions):
        raise _set_text_too_large()


def _values_in_set_texts(parts: Iterable[object]) -> int:
    """Count the strings and numbers within objects and lists."""
    count, level = 0, list(parts)
    while level:
        inner = [each for each in level if isinstance(each, dict | list)]
        count += len(level) - len(inner)
        level = [part for each in inner for part in (each.values() if isinstance(each, dict) else each)]
    return count


def _set_text_too_large() -> InvalidInput:
    return InvalidInput(
        f"context: found more than {MOST:,} features, including products of shared and action features;"
        " expected fewer features or fewer actions"
    )


def check_set_text_depth(context: object) -> None:
    """Reject objects and lists nested deeper than the kernels read: some readers are recursive."""
    level: list[Any] = [context]
    for _ in range(_core.DEEPEST_JSON):
        inner = [each for each in level if isinstance(each, dict | list)]
        level = [part for each in inner for part in (each.values() if isinstance(each, dict) else each)]
        if not level:
            return
    raise InvalidInput(f"context: found more than {_core.DEEPEST_JSON} nested objects or lists, expected fewer")


def _refuse_set_text(name: str) -> float:
    raise ValueError(f"{name} is not a number in JSON")


def _uniform_for_set_text() -> Decider:
    """Return the uniform policy, used before anything is learned."""
    features = Hashed()
    encoder = Encoder(DICTIONARIES, items=True, hashed=features.encoding)
    member = ActingMember(features, features.init(0), ActionWise(), np.zeros(1), None)
    return Decider([member], acting_numbers(np.ones(1), 1.0, Explored(0.0, _NONE, _NONE)), 1.0, encoder)
