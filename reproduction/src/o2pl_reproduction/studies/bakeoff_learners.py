"""The learners of the bake-off as data: candidate settings, and the frozen settings.

Every learner that is tuned has `TRIED` candidate settings, and four more where the best of those lay at the edge of its
grid; VW's learners have up to eight more, with the other cost estimates (`--cb_type`) that VW lets them have. What the
paper fixes is not tuned. `bakeoff_freeze` puts the best of them into bakeoff_settings.json, and the bake-off takes them
from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from o2pl.engine.member import QUADRATIC
from o2pl.features import Chain, Quadratic, Standardise
from o2pl.learners import O2PL, Geometric, Replay
from o2pl.protocols import Learner
from o2pl.simulation.description import OF_THE_RUN, Description, decoded, described, needed_extra
from o2pl.simulation.rivals import RAW, UNIT, MakeLearner, Range
from o2pl.simulation.rivals.greedy import EpsilonGreedy, Uniform
from o2pl.simulation.rivals.linear import LinTS, LinUCB
from o2pl.simulation.rivals.vw import VowpalWabbit
from o2pl.storage import encode_for_storage
from o2pl_reproduction.studies.pessimism import LearnerArms

FROZEN = Path(__file__).with_name("bakeoff_settings.json")
TRIED = 8
Given = Mapping[str, Any]  # arguments of a learner's constructor


@dataclass(frozen=True)
class Entrant:
    """A learner of the bake-off: its factory, its protocol, and its candidate settings."""

    make: Callable[..., Any]
    protocol: Literal["fair", "published", "both"]
    fixed: Given = field(default_factory=dict)
    candidates: Sequence[Given] = ()  # empty: not tuned
    timed: bool = True  # False: CPU time is not measured, and it may use its fast path

    def maker(self, chosen: Given) -> MakeLearner[Learner]:
        def make(n_actions: int, seed: int | None, reward_range: Range = UNIT) -> Learner:
            learner: Learner = self.make(n_actions, random_state=seed, **{**self.fixed, **chosen})  # rewards are 0 or 1
            return learner

        return make


def grid(**values: Sequence[Any]) -> tuple[Given, ...]:
    return tuple(dict(zip(values, point, strict=True)) for point in product(*values.values()))


RATES = (0.05, 0.1, 0.2, 0.35, 0.5, 1.0, 2.0, 4.0)
FEW_RATES = (0.2, 0.5, 1.0, 2.0)
RIDGES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
DECAYS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
O2PL_CANDIDATES: tuple[Given, ...] = (
    {"control": 15.0},
    {"control": 15.0, "penalty": 0.0},
    {"control": 15.0, "penalty": 0.2},
    {"control": 15.0, "policy": "linear"},
    {"control": 15.0, "l2": 0.3, "sharpness": 12.0},
    {"control": 15.0, "sharpness": 8.0},
    {"control": 5.0},
    {"control": 15.0, "schedule": Geometric(growth=1.1, ease=300.0)},
)
PRODUCTS = Chain((Standardise(), Quadratic()))  # VW brings the constant
PUBLISHED: Given = {"features": RAW, "constant": False}  # raw features, `a,ax`, nothing tuned
# Pessimism on its own: what takes part as "o2pl" and "o2pl-book", with other penalties, with and without the clip.
BOOK = partial(O2PL.paper, schedule=Geometric())  # b = 0, λ = 1, the theory's schedules
DEFAULT_ARMS = LearnerArms("o2pl", "O2PL", penalty=0.1)
BOOK_ARMS = LearnerArms("o2pl-book", "O2PL as printed", penalty=1.0)


def _other_costs(rates: Sequence[float] = FEW_RATES, options: str = "") -> tuple[Given, ...]:
    """Return settings with VW's cost estimates other than the default, mtr. RegCB has no others."""
    return grid(learning_rate=rates, options=[f"{options} --cb_type {kind}".strip() for kind in ("ips", "dr")])


VW_CANDIDATES: dict[str, tuple[Given, ...]] = {
    "greedy": grid(learning_rate=RATES) + _other_costs(),
    "cover": (
        grid(learning_rate=FEW_RATES, options=("", "--psi 0.1"))
        + grid(learning_rate=(0.05, 0.1), options=("--psi 0.1", "--psi 0.01"))
        + _other_costs((0.05, 0.1, 0.2, 0.5), "--psi 0.1")
    ),
    "bag": grid(learning_rate=RATES) + _other_costs(),
    "regcb": (
        grid(learning_rate=FEW_RATES, options=("", "--mellowness 0.01"))
        + grid(learning_rate=(0.05, 0.1), options=("--mellowness 0.01", "--mellowness 0.001"))
    ),
}
# With products, of the options that are no numbers only those that did best without.
VW_PRODUCT_CANDIDATES: dict[str, tuple[Given, ...]] = {
    "greedy": VW_CANDIDATES["greedy"],
    "cover": grid(learning_rate=(0.1, *FEW_RATES), options=("--psi 0.1",)) + _other_costs((0.1, 0.2, 0.5), "--psi 0.1"),
    "bag": grid(learning_rate=(*FEW_RATES, 4.0)) + _other_costs((0.2, 0.5, 1.0)),
    "regcb": grid(learning_rate=FEW_RATES, options=("--mellowness 0.01", "--mellowness 0.001")),
}


def _vw(algorithm: str) -> Entrant:
    """Return a VW learner in the fair protocol: running standardisation, VW's constant, costs {0, 1}."""
    return Entrant(VowpalWabbit, "fair", {"algorithm": algorithm}, VW_CANDIDATES[algorithm])


def _vw_products(algorithm: str) -> Entrant:
    fixed = {"algorithm": algorithm, "features": PRODUCTS}
    return Entrant(VowpalWabbit, "fair", fixed, VW_PRODUCT_CANDIDATES[algorithm])


def _published(algorithm: str) -> Entrant:
    return Entrant(VowpalWabbit, "published", {"algorithm": algorithm, **PUBLISHED})


def _greedy(model: str, l2: Sequence[float], **fixed: Any) -> Entrant:
    return Entrant(EpsilonGreedy, "fair", {"model": model, **fixed}, grid(l2=l2))


ENTRANTS: dict[str, Entrant] = {
    "o2pl": Entrant(O2PL, "both", {}, O2PL_CANDIDATES),
    "o2pl-replay": Entrant(O2PL.paper_replay, "both"),  # as the paper has it
    "o2pl-replay-tuned": Entrant(
        O2PL.paper_replay,
        "both",
        {},
        grid(penalty=(0.1, 0.0), schedule=[Replay(step_size=size) for size in (0.005, 0.02, 0.05, 0.1)]),
    ),
    "o2pl-book": Entrant(BOOK, "both"),
    **{f"vw-{algorithm}": _vw(algorithm) for algorithm in VW_CANDIDATES},
    **{f"vw-{algorithm}-quadratic": _vw_products(algorithm) for algorithm in VW_PRODUCT_CANDIDATES},
    "vw-greedy-published": _published("greedy"),
    "vw-cover-published": _published("cover"),
    "vw-bag-published": _published("bag"),
    "vw-regcb-published": _published("regcb"),
    "ridge-greedy": _greedy("ridge", RIDGES),
    "ridge-greedy-quadratic": _greedy("ridge", RIDGES, features=QUADRATIC),
    "logistic-greedy": _greedy("logistic", DECAYS),
    "logistic-greedy-quadratic": _greedy("logistic", DECAYS, features=QUADRATIC),
    "linucb": Entrant(
        LinUCB,
        "fair",
        {},
        grid(alpha=(0.05, 0.1, 0.2, 0.5), ridge=(1.0, 10.0)) + grid(alpha=(0.05, 0.1, 0.2, 0.5), ridge=(0.3,)),
    ),
    "lints": Entrant(
        LinTS,
        "fair",
        {},
        grid(scale=(0.02, 0.05, 0.1, 0.2), ridge=(1.0, 10.0)) + grid(scale=(0.005, 0.01), ridge=(0.3, 1.0)),
    ),
    "uniform": Entrant(Uniform, "both"),
    **{name: Entrant(O2PL, "fair", given, timed=False) for name, given in DEFAULT_ARMS.settings().items()},
    **{name: Entrant(BOOK, "both", given, timed=False) for name, given in BOOK_ARMS.settings().items()},
}


# Of the published protocol, with no settings that were chosen on any set: these may be compared on all sets.
NOT_TUNED = frozenset(
    name for name, each in ENTRANTS.items() if each.protocol in ("published", "both") and not each.candidates
)


@dataclass(frozen=True)
class Participant:
    """A described learner of the table, and the extra it needs."""

    description: Description
    needs: str | None


def participant(name: str, make: MakeLearner[Any], **more: Any) -> Participant:
    learner = make(2, None)
    return Participant({**described(name, learner, OF_THE_RUN), **more}, needed_extra(learner))


def participants_of(
    entrants: Mapping[str, Entrant], chosen: Mapping[str, Given] = MappingProxyType({})
) -> list[Participant]:
    """Return all learners with their chosen settings; others keep the entrant's defaults."""
    return [
        participant(
            name,
            entrant.maker(decoded(chosen.get(name, {}))),
            protocol=entrant.protocol,
            **({} if entrant.timed else {"timed": False}),
        )
        for name, entrant in entrants.items()
    ]


def candidates_of(entrants: Mapping[str, Entrant]) -> list[Participant]:
    """Return all candidate settings of all tuned learners, as `vw-greedy:0`, `vw-greedy:1`, ..."""
    return [
        participant(
            f"{family}:{number}",
            entrant.maker(candidate),
            protocol=entrant.protocol,
            family=family,
            candidate=number,
            given={key: encode_for_storage(value) for key, value in candidate.items()},
        )
        for family, entrant in entrants.items()
        for number, candidate in enumerate(entrant.candidates)
    ]


def frozen_learners(path: Path = FROZEN, entrants: Mapping[str, Entrant] = ENTRANTS) -> list[Participant]:
    """Return all learners with the settings frozen in the file; O2PL with its defaults.

    A learner that should be tuned but is not in the file is skipped: untuned, it would look weaker than it is.
    """
    chosen = {name: entry["settings"] for name, entry in read_frozen(path).items() if name != "o2pl"}
    ready = {name: each for name, each in entrants.items() if name == "o2pl" or name in chosen or not each.candidates}
    return participants_of(ready, chosen)


def candidate_learners() -> list[Participant]:
    return candidates_of(ENTRANTS)


def read_frozen(path: Path = FROZEN) -> dict[str, Any]:
    """Return the frozen settings of each learner, with the number of candidates and their scores."""
    entries: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return entries
