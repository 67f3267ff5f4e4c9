"""The candidate learners of `fit`, by the kind of log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from typing import Any

import numpy as np

from o2pl.data.frames import as_frame
from o2pl.data.interactions import Interactions
from o2pl.data.kinds import DICTIONARIES, MATRIX, OFFER
from o2pl.encode.schema import COMMON, Schema, schema_has_texts
from o2pl.engine.member import LINEAR, QUADRATIC
from o2pl.errors import InvalidInput
from o2pl.features import Hashed, Standardise, UserItems
from o2pl.learners import O2PL, Bandit, GaussianO2PL, Member
from o2pl.learners.base import BanditEstimator
from o2pl.objectives.outcome import Outcome
from o2pl.policies import ActionWise
from o2pl.validation import RewardRange

_PENALTIES, _L2 = (0.1, 1.0), (0.1, 10.0)  # λ and L2 of O2PL
_WIDE = 64  # largest number of columns for product features
_FIRST = 1000  # rows used to count the columns


@dataclass(frozen=True, eq=False)
class Candidate:
    """A learner without data, and its name in tables."""

    name: str
    learner: BanditEstimator

    def made(self) -> BanditEstimator:
        """Return a new learner with the same settings."""
        return type(self.learner)(**self.learner.get_params())


def candidates_for(log: Interactions, reward_range: RewardRange, seed: int = 0) -> tuple[Candidate, ...]:
    """Return the candidates: `Bandit`, its members one by one, and `O2PL` with several classes, penalties and L2."""
    known: dict[str, Any] = {"reward_range": reward_range, "random_state": seed}
    if log.continuous:
        return _gaussian_candidate_learners(log, known)
    kinds = _candidate_learner_kinds(log)
    if kinds[0] not in ("actionwise", "items", "hashed actionwise"):
        known["n_actions"] = log.n_actions
    found: list[Candidate] = []
    wide = _candidate_learner_width(log) > _WIDE
    for kind in kinds:
        found += _BANDITS[kind](known) if kind != "dense" or not wide else _wide_candidate_learners(known)
    classes = [name for kind in kinds for name in _CLASSES[kind] if name != "quadratic" or not wide]
    for policy, penalty, l2 in product(classes, _PENALTIES, _L2):
        name = f"o2pl {policy} λ={penalty:g} l2={l2:g}"
        found.append(Candidate(name, O2PL(policy=policy, penalty=penalty, l2=l2, **known)))
    return tuple(found)


_OF_ITEMS = {OFFER: "items", MATRIX: "actionwise", DICTIONARIES: "hashed actionwise"}


def _candidate_learner_kinds(log: Interactions) -> list[str]:
    """Return the policy classes that support these contexts."""
    if log.kind in _OF_ITEMS:
        return [_OF_ITEMS[log.kind]]
    if log.form in ("dense", "sparse"):
        return ["hashed" if log.form == "sparse" else "dense"]
    whole = log.form == "frame"
    columns = as_frame(log.contexts if whole else log.contexts[:_FIRST]).columns.values()
    if any(column.kind == "nested" for column in columns) or schema_has_texts(log.contexts):
        return ["hashed"]
    many = any(len(column.words) > COMMON for column in columns if column.kind == "word")
    return ["dense", "hashed"] if many or not whole else ["dense"]


def _candidate_learner_width(log: Interactions) -> int:
    """Return the number of columns if contexts are encoded as numeric rows."""
    if log.form == "frame":
        return Schema.learn(log.contexts[:_FIRST]).width
    if log.form == "records":
        return 0 if log.contexts.sizes is not None else len(as_frame(log.contexts[:_FIRST]).columns)
    return log.encoded.n_inputs if log.form == "dense" else 0


_CLASSES = {  # policy classes of O2PL
    "dense": ("linear", "quadratic"),
    "hashed": ("hashed",),
    "actionwise": ("actionwise",),
    "items": ("items",),
    "hashed actionwise": ("hashed actionwise",),
}


def _dense_candidate_learners(known: dict[str, Any]) -> list[Candidate]:
    found = [Candidate("bandit", Bandit(**known))]
    for name, features, l2 in (("linear", LINEAR, 3.0), ("quadratic", QUADRATIC, 10.0)):
        found += _member_candidate_learners(name, features, l2, known)
    return found


def _wide_candidate_learners(known: dict[str, Any]) -> list[Candidate]:
    """Return the candidates for many columns: no product features."""
    return [
        Candidate("bandit linear", Bandit(policy="linear", **known)),
        *_member_candidate_learners("linear", LINEAR, 3.0, known),
    ]


def _hashed_candidate_learners(known: dict[str, Any]) -> list[Candidate]:
    return [
        Candidate("bandit hashed", Bandit(policy="hashed", **known)),
        *_member_candidate_learners("hashed", Hashed(), 3.0, known),
    ]


def _member_candidate_learners(name: str, features: Any, l2: float, known: dict[str, Any]) -> list[Candidate]:
    """Return the members of `Bandit` as single candidates."""
    competing = Member(features, objective=Outcome(True))
    independent = Member(features, objective=Outcome(False, l2))
    return [
        Candidate(f"bandit {name} competing", Bandit(policy=competing, changes=None, **known)),
        Candidate(f"bandit {name} independent", Bandit(policy=independent, changes=None, **known)),
    ]


def _set_candidate_learners(name: str, features: Any, known: dict[str, Any]) -> list[Candidate]:
    strict = Member(features, ActionWise(), objective=Outcome(False, 10.0))
    return [
        Candidate(f"bandit {name}", Bandit(policy=name, **known)),
        Candidate(f"bandit {name} l2=10", Bandit(policy=strict, **known)),
    ]


_BANDITS: dict[str, Callable[[dict[str, Any]], list[Candidate]]] = {
    "dense": _dense_candidate_learners,
    "hashed": _hashed_candidate_learners,
    "actionwise": lambda known: _set_candidate_learners("actionwise", Standardise(), known),
    "items": lambda known: _set_candidate_learners("items", UserItems(), known),
    "hashed actionwise": lambda known: _set_candidate_learners("hashed actionwise", Hashed(), known),
}


def _gaussian_candidate_learners(log: Interactions, known: dict[str, Any]) -> tuple[Candidate, ...]:
    """Return Gaussian candidates around the mean of the logged actions, with their width or half of it."""
    centre, spread = log.action_scale
    found = []
    for share, penalty in product((1.0, 0.5), (0.1, 0.3)):
        learner = GaussianO2PL(centre=centre, scale=share * spread, penalty=penalty, **known)
        found.append(Candidate(f"gaussian scale={share * spread:.3g} λ={penalty:g}", learner))
    return tuple(found)


def some_candidate_learners(candidates: Sequence[Candidate], beginnings: Sequence[str]) -> tuple[Candidate, ...]:
    """Return the candidates whose names start with one of these prefixes."""
    names = [candidate.name for candidate in candidates]
    for beginning in beginnings:
        if not any(name.startswith(beginning) for name in names):
            near = get_close_matches(beginning, names, 1, 0.3)
            meant = f" (did you mean {near[0]!r}?)" if near else ""
            raise InvalidInput(f"candidates: found {beginning!r}, expected prefixes of: {', '.join(names)}{meant}")
    return tuple(one for one in candidates if one.name.startswith(tuple(beginnings)))


def named_candidate_learners(learners: Sequence[object]) -> tuple[Candidate, ...]:
    """Return candidates from user-supplied learners, named by their settings."""
    found = []
    for learner in learners:
        if isinstance(learner, Candidate):
            found.append(learner)
        elif isinstance(learner, BanditEstimator):
            found.append(Candidate(repr(learner), learner))
        else:
            raise InvalidInput(f"candidates: found {type(learner).__name__}, expected learners such as o2pl.Bandit()")
    names = [one.name for one in found]
    if not found or len(set(names)) < len(names):
        raise InvalidInput(f"candidates: found {names}, expected at least one, without duplicates")
    return tuple(found)


def guessed_range_for_candidate_learners(rewards: Any) -> RewardRange:
    """Return 0 to 1 if all rewards are within, else the observed range."""
    low, high = float(np.min(rewards)), float(np.max(rewards))
    return (0.0, 1.0) if low >= 0 and high <= 1 else (low, high if high > low else low + 1)
