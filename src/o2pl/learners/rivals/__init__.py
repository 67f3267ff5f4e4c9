"""What O2PL is compared with, by name. Adding a rival is one row; the contract in `test_rivals` then holds for it.

Settings were chosen for 0/1 rewards on classification sets with running standardisation, T = 1000; widths of
exploration are in units of the reward range.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Protocol

from o2pl.features import Chain, Standardise
from o2pl.learners.members import QUADRATIC
from o2pl.learners.rivals.crm import CRM, SCRM
from o2pl.learners.rivals.greedy import EpsilonGreedy, Uniform
from o2pl.learners.rivals.linear import LinTS, LinUCB
from o2pl.learners.rivals.lower_bound import GuardedLowerBound, LowerBound, SelfNormalised
from o2pl.learners.rivals.reductions import DirectMethod, DoublyRobust, IPWClassifier
from o2pl.learners.rivals.vw import VowpalWabbit
from o2pl.policies import Softmax
from o2pl.protocols import Learner

Range = tuple[float, float]
UNIT: Range = (0.0, 1.0)
PLAIN = Chain((Standardise(),))  # without intercept
RAW = Chain()
PENALTIES = (0.0, 0.01, 0.1, 1.0, 10.0)  # the grid of λ


class Recipe(Protocol):
    """A learner that acts: for this many actions, from this seed."""

    def __call__(self, n_actions: int, seed: Any, reward_range: Range = UNIT) -> Learner: ...


class OfflineRecipe(Protocol):
    """A learner with `fit(contexts, actions, rewards, propensities)`, `predict` and `predict_proba`."""

    def __call__(self, n_actions: int, seed: Any, reward_range: Range = UNIT) -> Any: ...


def _linucb(**settings: Any) -> Recipe:
    def make(n_actions: int, seed: Any, reward_range: Range = UNIT) -> LinUCB:
        width = reward_range[1] - reward_range[0]
        return LinUCB(n_actions, random_state=seed, alpha=0.2 * width, **settings)

    return make


def _lints(**settings: Any) -> Recipe:
    def make(n_actions: int, seed: Any, reward_range: Range = UNIT) -> LinTS:
        width = reward_range[1] - reward_range[0]
        return LinTS(n_actions, random_state=seed, scale=0.05 * width, **settings)

    return make


def _with_range(learner: Any, **settings: Any) -> Any:
    """A recipe for a learner that is told the reward range."""

    def make(n_actions: int, seed: Any, reward_range: Range = UNIT) -> Any:
        return learner(n_actions, reward_range=reward_range, random_state=seed, **settings)

    return make


def _seedless(learner: Any, **settings: Any) -> OfflineRecipe:
    def make(n_actions: int, seed: Any, reward_range: Range = UNIT) -> Any:
        return learner(n_actions, reward_range=reward_range, **settings)

    return make


def _softmax(learner: Any, **settings: Any) -> Any:
    """A recipe for a learner that takes its policy class."""

    def make(n_actions: int, seed: Any, reward_range: Range = UNIT) -> Any:
        return learner(Softmax(n_actions), reward_range=reward_range, random_state=seed, **settings)

    return make


def _uniform(n_actions: int, seed: Any, reward_range: Range = UNIT) -> Uniform:
    return Uniform(n_actions, random_state=seed)


RIVALS: MappingProxyType[str, Recipe] = MappingProxyType(
    {
        "uniform": _uniform,
        "linucb": _linucb(),
        "linucb-no-intercept": _linucb(features=PLAIN),
        "lints": _lints(),
        "lints-no-intercept": _lints(features=PLAIN),
        "greedy-ridge": _with_range(EpsilonGreedy),
        "greedy-ridge-quadratic": _with_range(EpsilonGreedy, features=QUADRATIC, l2=10.0),
        "greedy-logistic": _with_range(EpsilonGreedy, model="logistic"),
        "greedy-logistic-quadratic": _with_range(EpsilonGreedy, model="logistic", features=QUADRATIC),
        "epsilon-greedy-ridge": _with_range(EpsilonGreedy, epsilon=0.05),
        "epsilon-greedy-logistic": _with_range(EpsilonGreedy, epsilon=0.05, model="logistic"),
        "scrm-doubling": _softmax(SCRM, batch=25, growth=2.0),
        "scrm-uniform": _softmax(SCRM, batch=100, growth=1.0),
        "scrm-all-grid": _softmax(SCRM, batch=25, growth=2.0, memory="all", penalty=PENALTIES),
        "vw-greedy": _with_range(VowpalWabbit, algorithm="greedy"),
        "vw-cover": _with_range(VowpalWabbit, algorithm="cover"),
        "vw-bag": _with_range(VowpalWabbit, algorithm="bag", learning_rate=1.0),
        "vw-regcb": _with_range(VowpalWabbit, algorithm="regcb"),
        "vw-greedy-raw": _with_range(VowpalWabbit, algorithm="greedy", features=RAW),
        "vw-cover-raw": _with_range(VowpalWabbit, algorithm="cover", features=RAW),
        "vw-bag-raw": _with_range(VowpalWabbit, algorithm="bag", features=RAW, learning_rate=1.0),
        "vw-regcb-raw": _with_range(VowpalWabbit, algorithm="regcb", features=RAW),
    }
)

OFFLINE_RIVALS: MappingProxyType[str, OfflineRecipe] = MappingProxyType(
    {
        "ipw-csc": _seedless(IPWClassifier),
        "dm-additive": _seedless(DirectMethod, model="additive"),
        "dm-additive-logistic": _seedless(DirectMethod, model="additive", link="logistic"),
        "dm-arms": _seedless(DirectMethod),
        "dm-arms-logistic": _seedless(DirectMethod, link="logistic"),
        "dr": _with_range(DoublyRobust),
        "lcb": _seedless(LowerBound),
        "lcb-guarded": _with_range(GuardedLowerBound),
        "snips": _seedless(SelfNormalised),
        "crm": _softmax(CRM),
        "crm-grid": _softmax(CRM, penalty=PENALTIES),
    }
)
