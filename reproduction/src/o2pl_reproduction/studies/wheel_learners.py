"""Learners of the wheel: O2PL, LinUCB and LinTS on the same features, tuned equally, and untuned learners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.features import Chain, Fourier, Intercept, Quadratic, Standardise
from o2pl.learners import O2PL, Bandit, Geometric, Member, Replay
from o2pl.protocols import FeatureMap, Floats, Learner, State
from o2pl.simulation.rivals import PLAIN, RIVALS, UNIT, MakeLearner, Range, seeded_rival
from o2pl.simulation.rivals.linear import LinTS, LinUCB
from o2pl.simulation.units import o2pl
from o2pl.storage import storable
from o2pl_reproduction.studies.pessimism import LearnerArms
from o2pl_reproduction.studies.wheel_rivals import HeadStart


@storable
@dataclass(frozen=True)
class Radial:
    """(x₁, x₂) -> x₁, x₂, x₁x₂, |x|, |x|²: enough to separate the rim from the rest, and its quadrants."""

    def width(self, n_inputs: int, state: State | None = None) -> int:
        if n_inputs != 2:
            raise InvalidInput(f"Radial: found {n_inputs} inputs, expected 2")
        return 5

    def init(self, n_inputs: int) -> State:
        return {}

    def observe(self, state: State, rows: Floats) -> State:
        return state

    def transform(self, state: State, rows: Floats) -> Floats:
        first, second = rows[:, 0], rows[:, 1]
        radius = np.hypot(first, second)
        return np.stack([first, second, first * second, radius, radius**2], axis=1)


FEATURES: dict[str, FeatureMap] = {
    "no-intercept": PLAIN,
    "linear": Chain((Standardise(), Intercept())),
    "quadratic": Chain((Standardise(), Quadratic(), Intercept())),
    "radial": Chain((Radial(), Standardise(), Intercept())),
    "fourier": Chain((Standardise(), Fourier(n_features=50), Intercept())),
}


def _o2pl(
    features: FeatureMap, level: float, warm_start: float, sharpness: float, **given: Any
) -> MakeLearner[Learner]:
    schedule = Geometric(warm_start=round(warm_start))
    return o2pl(policy=Member(features), schedule=schedule, baseline=-level, sharpness=sharpness, **given)


def _linucb(features: FeatureMap, alpha: float, ridge: float) -> MakeLearner[Learner]:
    def make(n_actions: int, seed: int | None, reward_range: Range = UNIT) -> LinUCB:
        return LinUCB(n_actions, alpha=alpha, ridge=ridge, features=features, random_state=seed)

    return make


def _lints(features: FeatureMap, scale: float, ridge: float) -> MakeLearner[Learner]:
    def make(n_actions: int, seed: int | None, reward_range: Range = UNIT) -> LinTS:
        return LinTS(n_actions, scale=scale, ridge=ridge, features=features, random_state=seed)

    return make


def _with_head_start(
    method: str, ridge: float, features: FeatureMap, level: float, warm_start: float, width: float
) -> MakeLearner[Learner]:
    given: dict[str, Any] = {"ridge": ridge, "features": features, "width": width}
    return seeded_rival(partial(HeadStart, method=method), level=level, warm_start=round(warm_start), **given)


METHODS: dict[str, Callable[..., MakeLearner[Learner]]] = {"o2pl": _o2pl, "linucb": _linucb, "lints": _lints}
# (level, warm start, sharpness), (α, ridge), (v, ridge): chosen by `tuning`, which lists the candidates.
TUNED: dict[str, dict[str, tuple[float, ...]]] = {
    "no-intercept": {"o2pl": (0.529, 30, 54.0), "linucb": (36.7, 0.3), "lints": (6.67, 1.11)},
    "linear": {"o2pl": (0.9, 60, 54.0), "linucb": (20.0, 3.33), "lints": (4.5, 0.0333)},
    "quadratic": {"o2pl": (0.9, 120, 30.0), "linucb": (3.0, 0.1), "lints": (4.5, 0.1)},
    "radial": {"o2pl": (1.0, 120, 5.4), "linucb": (300.0, 0.1), "lints": (10.0, 10.0)},
    "fourier": {"o2pl": (0.3, 120, 5.4), "linucb": (1.33, 3.0), "lints": (1.01, 0.3)},
}
# (level, warm start, width) of the rivals with O2PL's head start, the ridge as above: chosen by `tuning` too.
HEAD_STARTS: dict[str, dict[str, tuple[float, ...]]] = {
    "linear": {"linucb": (0.3, 15, 20.0), "lints": (0.1, 30, 1.35)},
}
PRINTED, BOOK = "paper-replay-printed", "paper-book"
BEST = "quadratic"  # O2PL's lowest mean when tuning
# Pessimism on its own: these learners with other penalties, with and without the clip.
ARMS = {
    "o2pl": LearnerArms("o2pl", "O2PL, linear, tuned", penalty=0.1),
    "o2pl-default": LearnerArms("o2pl-default", "O2PL's default", penalty=0.1),
    BOOK: LearnerArms(BOOK, "Algorithm 1 as printed", penalty=1.0),
}


def name_of(method: str, features: str) -> str:
    return method if features == "linear" else f"{method}-{features}"


def head_start(method: str, features: str) -> Callable[..., MakeLearner[Learner]]:
    """Return (level, warm start, width) -> the rival with O2PL's head start and its ridge."""
    return partial(_with_head_start, method, TUNED[features][method][1], FEATURES[features])


def _arm(learner: str, given: Mapping[str, Any]) -> MakeLearner[Learner]:
    if learner == "o2pl":
        return _o2pl(FEATURES["linear"], *TUNED["linear"]["o2pl"], **given)
    return o2pl(**given) if learner == "o2pl-default" else o2pl(O2PL.paper, schedule=Geometric(), **given)


LEARNERS: dict[str, MakeLearner[Learner]] = {
    **{
        name_of(method, features): make(FEATURES[features], *TUNED[features][method])
        for features in FEATURES
        for method, make in METHODS.items()
    },
    "linucb-textbook": _linucb(PLAIN, 1.0, 1.0),  # the paper does not say its widths: α = v = 1, nothing tuned
    "lints-textbook": _lints(PLAIN, 1.0, 1.0),
    "linucb-untuned": _linucb(FEATURES["linear"], 1.0, 1.0),  # with the intercept that O2PL's default has
    "lints-untuned": _lints(FEATURES["linear"], 1.0, 1.0),
    "o2pl-default": o2pl(),
    PRINTED: o2pl(O2PL.paper_replay),  # the paper's benchmark variant, nothing added
    BOOK: o2pl(O2PL.paper, schedule=Geometric()),  # Algorithm 1: b = 0, λ = 1, the theory's schedules
    "paper-replay": o2pl(O2PL.paper_replay, schedule=Replay(warm_start=200)),  # with fewer it may never see the rim
    "bandit": seeded_rival(Bandit),
    **{
        f"{name_of(method, features)}-head-start": head_start(method, features)(*settings)
        for features, methods in HEAD_STARTS.items()
        for method, settings in methods.items()
    },
    "uniform": RIVALS["uniform"],
    **{name: _arm(learner, given) for learner, arms in ARMS.items() for name, given in arms.settings().items()},
}
