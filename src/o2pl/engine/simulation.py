"""Simulations of many rounds, in blocks between checkpoints; those of a finite class in one loop of the core."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from o2pl import _core
from o2pl.data.interactions import Interactions
from o2pl.engine.item_memory import entry_has_ids
from o2pl.engine.member import BLOCK_ROWS
from o2pl.engine.schedules import Exact
from o2pl.kernels.finite import FiniteValue
from o2pl.kernels.registry import features_for_registered
from o2pl.objectives.pessimistic import Pessimistic
from o2pl.oracles.exhaustive import Exhaustive
from o2pl.policies.finite import FinitePolicies
from o2pl.policies.sampling import UniformExploration
from o2pl.protocols import Array, Floats, Ints
from o2pl.threads import one_blas_thread

if TYPE_CHECKING:
    from o2pl.engine.engine import Engine

_CHUNK = 2_000_000  # likelihoods in memory at a time


class Rewards(NamedTuple):
    """The rewards of actions in the rounds of a simulation."""

    of: Callable[[Ints, Array], Floats]  # rewards of `actions` in rounds `rows`
    table: Floats | None = None  # of all actions, [T, K]


def simulate(engine: Engine, contexts: Any, rewards: Rewards) -> Interactions:
    """Play rounds on given contexts: the decisions are those of one call per round. Returns the new rows."""
    log = engine.log
    with engine.lock, one_blas_thread(math.inf):
        start, done, by_id = len(log), 0, entry_has_ids(contexts)  # every reward moves its item
        log.reserve(len(contexts))
        if simulate_finite(engine, contexts, rewards.table):
            return log[start:]
        while done < len(contexts):
            some = min(len(contexts) - done, engine.checkpoint - len(log), 1 if by_id else BLOCK_ROWS)
            stretch = contexts[done : done + some]
            actions, propensities = engine.sample(stretch, engine.stream.take(some))
            try:
                paid = rewards.of(np.arange(done, done + some), actions)
                log.extend_columns(stretch, actions, paid, propensities)
            except BaseException:
                engine.compiled.take_back(engine)  # it expects these rows next
                raise
            done += some
            engine.learn_if_due()
            if by_id:
                engine.look_at_items()
        return log[start:]


def simulate_finite(engine: Engine, contexts: Any, table: Floats | None) -> bool:
    """Simulate the rounds like `simulate`. Returns False, and does nothing, if the parts are not supported."""
    spec, policy = engine.spec, engine.spec.policies[0]
    if len(spec.policies) > 1 or not isinstance(policy, FinitePolicies):
        return False
    (member,) = engine.members
    usable = type(member.objective) is Pessimistic
    usable = usable and type(member.schedule) is Exact and type(member.oracle) is Exhaustive and spec.control is None
    if not usable or table is None or not isinstance(spec.exploration, UniformExploration):
        return False
    function = member.function if isinstance(member.function, FiniteValue) else FiniteValue()
    sums = function.sums_of(policy.size)
    warm_start, low, high = max(member.schedule.warm_start, 1), *(engine.log.reward_range or (-1.0, 0.0))
    params = member.params.copy()
    chunk = max(1, _CHUNK // (policy.size * policy.n_actions))
    for first in range(0, len(contexts), chunk):
        rows = contexts[first : first + chunk]
        L = np.ascontiguousarray(
            policy.all_likelihoods(features_for_registered(member.seen.features, member.seen.state, rows))
        )
        rewards = table[first : first + chunk]
        sums.reserve(len(rows) * policy.size)
        actions, propensities = np.empty(len(rows), np.int64), np.empty(len(rows))
        before = len(engine.log)
        sums.total = _core.finite_rounds(
            L, (low - rewards) / (high - low), engine.stream.take(len(rows)), params, engine.acting, warm_start,
            sums.sums, sums.heap, sums.counts, sums.total, member.objective.numbers, actions, propensities,
        )  # fmt: skip
        engine.log.extend_columns(rows, actions, rewards[np.arange(len(rows)), actions], propensities)
        solves = max(0, len(engine.log) - max(before, warm_start - 1))
        member.effort += (solves, solves * policy.size)
    member.params, member.function = params, function
    member.seen.observe(engine.log.columns)
    engine.finish_learning(len(engine.log), [member])
    return True
