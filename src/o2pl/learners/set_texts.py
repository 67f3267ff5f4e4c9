"""Action sets as texts: what a service is asked, decided without a dictionary in between."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from o2pl.contexts import DictionaryReader, SetsReader
from o2pl.contexts.json_scan import DEEPEST
from o2pl.errors import InvalidInput
from o2pl.features.hashing import Hashed
from o2pl.kernels.set_texts import LARGE, WEIGHED, weigh_set
from o2pl.learners.decider import ActingMember, Decider
from o2pl.policies.actionwise import ActionWise
from o2pl.policies.sampling import acting_numbers
from o2pl.protocols import Array, Explored, Floats, Ints

MOST = 250_000  # features of one action set with all products: some milliseconds
_NONE = np.empty(0)


class SetTexts:
    """The acting policy on texts of action sets, `{"user": …, "_multi": [{…}, …]}`.

    Most texts are read and weighed in one compiled call. Those that are out of the ordinary are parsed, and go through
    the decider; those that are no action sets are refused.
    """

    def __init__(self, decider: Decider | None = None) -> None:
        """decider: of action sets of dictionaries; None: the uniform policy."""
        decider = _uniform() if decider is None else decider
        reader = decider.reader
        if not isinstance(reader, SetsReader) or not isinstance(reader.inner, DictionaryReader):
            raise InvalidInput("policy: found one of another kind, expected one of action sets of dictionaries")
        self.decider = decider
        first, inner = decider.members[0], reader.inner
        alike = all(isinstance(m.policy, ActionWise) and m.seen is first.seen for m in decider.members)
        self._numbers: tuple[Any, bool, Ints, Floats, Floats, Floats] | None = None
        if alike and isinstance(first.features, Hashed) and not inner.interactions:
            slots = first.features.slot_of(first.seen), first.seen["scale"]
            weights = _side_by_side(decider.members)
            self._numbers = (np.uint32(inner.width - 1), inner.signed, *slots, weights, decider.acting)

    def probabilities(self, text: bytes, n_actions: int) -> Floats:
        """Of the actions of one set, [K]. Refuses a text that is no set of K actions."""
        out = np.empty(n_actions)
        if self._numbers is not None and text:
            data: Array = np.frombuffer(text, np.uint8)
            found = weigh_set(data, *self._numbers, MOST, out)
            if found == WEIGHED:
                return out
            if found == LARGE:
                raise _too_large()
        return self._parsed(text, n_actions)

    def _parsed(self, text: bytes, n_actions: int) -> Floats:
        try:
            context = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"context: found text that is not JSON, or nested too deeply ({error})") from None
        check_depth(context)
        if not isinstance(context, dict) or "_multi" not in context:
            raise InvalidInput("context: found no `_multi`, expected an object with the list of actions in it")
        _check_size(context)
        found = self.decider.probabilities(self.decider.reader.row(context))
        if len(found) != n_actions:
            raise InvalidInput(f"context: found {len(found)} actions, expected {n_actions}")
        return found


def _check_size(context: dict[str, Any]) -> None:
    """Refuses what would make too many products, before they are made."""
    actions = context["_multi"] if isinstance(context["_multi"], list) else []
    shared = _values(value for name, value in context.items() if name != "_multi")
    if sum((shared + 1) * (_values([action]) + 1) for action in actions) > MOST + len(actions):
        raise _too_large()


def _values(parts: Iterable[Any]) -> int:
    """Words and numbers within objects and lists."""
    count, level = 0, list(parts)
    while level:
        inner = [each for each in level if isinstance(each, dict | list)]
        count += len(level) - len(inner)
        level = [part for each in inner for part in (each.values() if isinstance(each, dict) else each)]
    return count


def _too_large() -> InvalidInput:
    return InvalidInput(
        f"context: found more than {MOST:,} features, products of shared features with those of actions included;"
        " expected fewer features or fewer actions"
    )


def check_depth(context: Any) -> None:
    """Refuses objects and lists within each other deeper than kernels read them: what reads them may call itself."""
    level: list[Any] = [context]
    for _ in range(DEEPEST):
        inner = [each for each in level if isinstance(each, dict | list)]
        level = [part for each in inner for part in (each.values() if isinstance(each, dict) else each)]
        if not level:
            return
    raise InvalidInput(f"context: found more than {DEEPEST} objects or lists within each other, expected fewer")


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not a number in JSON")


def _side_by_side(members: Sequence[ActingMember]) -> Floats:
    """Weights of all members [slots, M]; one that has not learned of the newest slots has 0 there."""
    W = np.zeros((max(len(member.params) for member in members), len(members)))
    for m, member in enumerate(members):
        W[: len(member.params), m] = member.params
    return W


def _uniform() -> Decider:
    """Before anything is learned."""
    features, reader = Hashed(), SetsReader(DictionaryReader(Hashed().bits))
    member = ActingMember(features, features.init(0), ActionWise(), np.zeros(1), None)
    return Decider([member], acting_numbers(np.ones(1), 1.0, Explored(0.0, _NONE, _NONE)), 1.0, reader)
