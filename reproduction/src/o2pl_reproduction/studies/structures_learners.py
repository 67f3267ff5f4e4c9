"""The learners of `structures`: `Bandit` with its defaults, and rivals with settings chosen over all six structures.

Every rival that is tuned has four candidate settings, and one more where the best of those lay at the edge of its grid.
`structures_freeze` puts the best of them, by the mean share of the possible gain on the tuning half, into
structures_settings.json. On the worlds of the parts "one-hot" and "drift", whose rewards are those of the bake-off,
rivals play with the bake-off's settings.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from o2pl.engine.member import QUADRATIC
from o2pl.learners import O2PL, Bandit
from o2pl.simulation.rivals.bootstrap import BootstrapEnsemble
from o2pl.simulation.rivals.greedy import EpsilonGreedy, Uniform
from o2pl.simulation.rivals.inverse_gap import InverseGap
from o2pl.simulation.rivals.linear import LinTS, LinUCB
from o2pl.simulation.rivals.trees import BoostedTrees
from o2pl.simulation.rivals.vw import VowpalWabbit
from o2pl_reproduction.studies.bakeoff_learners import (
    PRODUCTS,
    Entrant,
    Given,
    Participant,
    candidates_of,
    frozen_learners,
    grid,
    participants_of,
)
from o2pl_reproduction.studies.wheel_learners import FEATURES, TUNED

FROZEN = Path(__file__).with_name("structures_settings.json")
TRIED = 4
# Settings that switch off `Bandit`'s change detection, for the learner "bandit-fixed". If `Bandit` has none,
# "bandit-fixed" is skipped.
WITHOUT_CHANGES: Given = {"changes": None} if "changes" in inspect.signature(Bandit).parameters else {}
VW_CANDIDATES: dict[str, tuple[Given, ...]] = {
    "greedy": grid(learning_rate=(0.2, 0.5, 1.0, 2.0)),
    "cover": grid(learning_rate=(0.1, 0.2, 0.5, 1.0, 2.0), options=("--psi 0.1",)),
    "bag": grid(learning_rate=(0.35, 1.0, 2.0, 4.0)),
    "regcb": grid(learning_rate=(0.1, 0.2, 0.5, 1.0, 2.0), options=("--mellowness 0.01",)),
}


def _vw(algorithm: str, **fixed: Any) -> Entrant:
    return Entrant(VowpalWabbit, "fair", {"algorithm": algorithm, **fixed}, VW_CANDIDATES[algorithm])


def _gaps(rule: str) -> Entrant:
    given = {
        "rule": rule,
        "features": QUADRATIC,
        "growth": 1.1,
        "l2": 3.0,
    }  # l2: that of the greedy logistic learner in the bake-off
    return Entrant(InverseGap, "fair", given, grid(gamma=(30.0, 100.0, 300.0, 1000.0)))


ENTRANTS: dict[str, Entrant] = {
    "bandit": Entrant(Bandit, "fair"),
    "o2pl": Entrant(O2PL, "fair"),
    **{f"vw-{algorithm}": _vw(algorithm) for algorithm in VW_CANDIDATES},
    **{f"vw-{algorithm}-quadratic": _vw(algorithm, features=PRODUCTS) for algorithm in VW_CANDIDATES},
    "ridge-greedy-quadratic": Entrant(
        EpsilonGreedy, "fair", {"features": QUADRATIC}, grid(l2=(3.0, 10.0, 30.0, 100.0, 300.0))
    ),
    "logistic-greedy-quadratic": Entrant(
        EpsilonGreedy, "fair", {"model": "logistic", "features": QUADRATIC}, grid(l2=(0.3, 1.0, 3.0, 10.0))
    ),
    "linucb": Entrant(LinUCB, "fair", {}, grid(alpha=(0.05, 0.1, 0.2, 0.5))),
    "lints": Entrant(LinTS, "fair", {}, grid(scale=(0.01, 0.02, 0.05, 0.1))),
    "squarecb": _gaps("square"),
    "fastcb": _gaps("fast"),
    "bootstrap": Entrant(
        BootstrapEnsemble, "fair", {"features": QUADRATIC, "growth": 1.1}, grid(l2=(0.3, 1.0, 3.0, 10.0))
    ),
    "boosted-trees": Entrant(
        BoostedTrees, "fair", {}, grid(epsilon=(0.02, 0.05)) + grid(epsilon=(0.1,), learning_rate=(0.1, 0.3))
    ),
    "uniform": Entrant(Uniform, "fair"),
}
OF_THE_BAKEOFF = (  # with the bake-off's settings: where rewards are one-hot
    "o2pl",
    "vw-greedy",
    "vw-cover",
    "vw-bag",
    "vw-regcb",
    "vw-greedy-quadratic",
    "ridge-greedy-quadratic",
    "logistic-greedy-quadratic",
    "linucb",
    "lints",
    "uniform",
)
UNDER_CHANGE = ("o2pl", "vw-greedy", "ridge-greedy-quadratic", "logistic-greedy-quadratic", "linucb")
SLOW = {  # with fewer seeds
    "vw-cover-quadratic": 3,
    "vw-bag-quadratic": 3,
    "vw-regcb-quadratic": 3,
    "squarecb": 3,
    "fastcb": 3,
    "bootstrap": 3,
    "boosted-trees": 3,
}
SLOWEST = "boosted-trees"  # plays under six structures only, on every other set


def bandits() -> list[Participant]:
    """Return `Bandit` with its defaults, and without change detection if it has one."""
    made = {"bandit": Entrant(Bandit, "fair")}
    if WITHOUT_CHANGES:
        made["bandit-fixed"] = Entrant(Bandit, "fair", WITHOUT_CHANGES)
    return participants_of(made, {})


def structure_learners(path: Path = FROZEN) -> list[Participant]:
    """Return all learners under six structures, with the settings frozen in the file."""
    return frozen_learners(path, ENTRANTS)


def bakeoff_learners(names: tuple[str, ...]) -> list[Participant]:
    return [each for each in frozen_learners() if each.description["name"] in names]


def wheel_learners() -> list[Participant]:
    """Return `Bandit`, and LinUCB on inputs and products, tuned for the wheel as in the study `wheel`."""
    alpha, ridge = TUNED["quadratic"]["linucb"]
    features = FEATURES["quadratic"]
    linucb = Entrant(LinUCB, "fair", {"alpha": alpha, "ridge": ridge, "features": features})
    return participants_of({"bandit": ENTRANTS["bandit"], "linucb-quadratic": linucb, "uniform": ENTRANTS["uniform"]})


def candidate_learners() -> list[Participant]:
    return candidates_of(ENTRANTS)
