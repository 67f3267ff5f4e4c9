"""Rivals: other algorithms to compare with, by name. A new rival is one row; the contract in `test_rivals` covers it.

Settings were chosen for 0/1 rewards on classification data sets with running standardisation, T = 1000. Exploration
widths are in units of the reward range.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Protocol, Self, TypeVar

from numpy.typing import ArrayLike

from o2pl.engine.member import QUADRATIC
from o2pl.features import Chain, Standardise
from o2pl.policies import Softmax
from o2pl.protocols import Array, Floats, Learner
from o2pl.simulation.rivals.bootstrap import BootstrapEnsemble
from o2pl.simulation.rivals.crm import CRM, SCRM
from o2pl.simulation.rivals.greedy import EpsilonGreedy, Uniform
from o2pl.simulation.rivals.inverse_gap import InverseGap
from o2pl.simulation.rivals.linear import LinTS, LinUCB
from o2pl.simulation.rivals.lower_bound import GuardedLowerBound, LowerBound, SelfNormalised
from o2pl.simulation.rivals.reductions import DirectMethod, DoublyRobust, IPWClassifier
from o2pl.simulation.rivals.trees import BoostedTrees
from o2pl.simulation.rivals.vw import VowpalWabbit

Range = tuple[float, float]
UNIT: Range = (0.0, 1.0)
PLAIN = Chain((Standardise(),))  # without intercept
RAW = Chain()
PENALTY_GRID = (0.0, 0.01, 0.1, 1.0, 10.0)  # λ


class BatchLearner(Protocol):
    """Learns from a complete log. A `Learner` also acts."""

    def fit(self, contexts: ArrayLike, actions: ArrayLike, rewards: ArrayLike, propensities: ArrayLike) -> Self: ...
    def predict(self, contexts: ArrayLike) -> Array: ...
    def predict_proba(self, contexts: ArrayLike) -> Floats: ...


L_co = TypeVar("L_co", covariant=True)


class MakeLearner(Protocol[L_co]):
    """Creates a learner for this number of actions and this seed."""

    def __call__(self, n_actions: int, seed: int | None, reward_range: Range = UNIT) -> L_co: ...


def seeded_rival(learner: Callable[..., L_co], **settings: object) -> MakeLearner[L_co]:
    """Return a factory of learners with a reward range and a seed."""

    def make(n_actions: int, seed: int | None, reward_range: Range = UNIT) -> L_co:
        return learner(n_actions, reward_range=reward_range, random_state=seed, **settings)

    return make


def seedless_rival(learner: Callable[..., L_co], **settings: object) -> MakeLearner[L_co]:
    """Return a factory of learners without a seed."""

    def make(n_actions: int, seed: int | None, reward_range: Range = UNIT) -> L_co:
        return learner(n_actions, reward_range=reward_range, **settings)

    return make


def _scaled_rival(learner: Callable[..., L_co], name: str, share: float, **settings: object) -> MakeLearner[L_co]:
    """Return a factory of learners whose setting `name` is this fraction of the reward range."""

    def make(n_actions: int, seed: int | None, reward_range: Range = UNIT) -> L_co:
        width = reward_range[1] - reward_range[0]
        return learner(n_actions, random_state=seed, **{name: share * width}, **settings)

    return make


def _softmax_rival(learner: Callable[..., L_co], **settings: object) -> MakeLearner[L_co]:
    """Return a factory of learners that take a policy class."""

    def make(n_actions: int, seed: int | None, reward_range: Range = UNIT) -> L_co:
        return learner(Softmax(n_actions), reward_range=reward_range, random_state=seed, **settings)

    return make


def _uniform_rival(n_actions: int, seed: int | None, reward_range: Range = UNIT) -> Uniform:
    return Uniform(n_actions, random_state=seed)


RIVALS: MappingProxyType[str, MakeLearner[Learner]] = MappingProxyType(
    {
        "uniform": _uniform_rival,
        "linucb": _scaled_rival(LinUCB, "alpha", 0.2),
        "linucb-no-intercept": _scaled_rival(LinUCB, "alpha", 0.2, features=PLAIN),
        "lints": _scaled_rival(LinTS, "scale", 0.05),
        "lints-no-intercept": _scaled_rival(LinTS, "scale", 0.05, features=PLAIN),
        "greedy-ridge": seeded_rival(EpsilonGreedy),
        "greedy-ridge-quadratic": seeded_rival(EpsilonGreedy, features=QUADRATIC, l2=10.0),
        "greedy-logistic": seeded_rival(EpsilonGreedy, model="logistic"),
        "greedy-logistic-quadratic": seeded_rival(EpsilonGreedy, model="logistic", features=QUADRATIC),
        "epsilon-greedy-ridge": seeded_rival(EpsilonGreedy, epsilon=0.05),
        "epsilon-greedy-logistic": seeded_rival(EpsilonGreedy, epsilon=0.05, model="logistic"),
        "squarecb": seeded_rival(InverseGap),
        "fastcb": seeded_rival(InverseGap, rule="fast"),
        "bootstrap": seeded_rival(BootstrapEnsemble),
        "boosted-trees": seeded_rival(BoostedTrees),
        "scrm-doubling": _softmax_rival(SCRM, batch=25, growth=2.0),
        "scrm-uniform": _softmax_rival(SCRM, batch=100, growth=1.0),
        "scrm-all-grid": _softmax_rival(SCRM, batch=25, growth=2.0, memory="all", penalty=PENALTY_GRID),
        "vw-greedy": seeded_rival(VowpalWabbit, algorithm="greedy"),
        "vw-cover": seeded_rival(VowpalWabbit, algorithm="cover"),
        "vw-bag": seeded_rival(VowpalWabbit, algorithm="bag", learning_rate=1.0),
        "vw-regcb": seeded_rival(VowpalWabbit, algorithm="regcb"),
        "vw-greedy-raw": seeded_rival(VowpalWabbit, algorithm="greedy", features=RAW),
        "vw-cover-raw": seeded_rival(VowpalWabbit, algorithm="cover", features=RAW),
        "vw-bag-raw": seeded_rival(VowpalWabbit, algorithm="bag", features=RAW, learning_rate=1.0),
        "vw-regcb-raw": seeded_rival(VowpalWabbit, algorithm="regcb", features=RAW),
    }
)

OFFLINE_RIVALS: MappingProxyType[str, MakeLearner[BatchLearner]] = MappingProxyType(
    {
        "ipw-csc": seedless_rival(IPWClassifier),
        "dm-additive": seedless_rival(DirectMethod, model="additive"),
        "dm-additive-logistic": seedless_rival(DirectMethod, model="additive", link="logistic"),
        "dm-arms": seedless_rival(DirectMethod),
        "dm-arms-logistic": seedless_rival(DirectMethod, link="logistic"),
        "dr": seeded_rival(DoublyRobust),
        "lcb": seedless_rival(LowerBound),
        "lcb-guarded": seeded_rival(GuardedLowerBound),
        "snips": seedless_rival(SelfNormalised),
        "crm": _softmax_rival(CRM),
        "crm-grid": _softmax_rival(CRM, penalty=PENALTY_GRID),
    }
)
