"""All that the bench uses of o2pl beyond its public names. Where a module moves, this file alone follows.

The objectives are those of a learner with the settings `SETTINGS`; rewards lie in [0, 1]. A C++ reference is handed
the same numbers: `terms` says which.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from o2pl.cluster import connected_cluster as connected_cluster
from o2pl.data.contexts import ActionSets, SparseRows
from o2pl.data.interactions import Interactions
from o2pl.data.log import Log as Log
from o2pl.engine import member
from o2pl.engine.member import LINEAR as LINEAR
from o2pl.features import Standardise
from o2pl.fitting.large_logs import begin_with_large_log as begin_with_large_log
from o2pl.fitting.large_logs import copy_large_log as copy_large_log
from o2pl.fitting.large_logs import scan_large_log as scan_large_log
from o2pl.fitting.passes import BlockPasses as BlockPasses
from o2pl.fitting.ray_passes import RayPasses as RayPasses
from o2pl.formats.bad_rows import BadRows as BadRows
from o2pl.formats.files import read_file_tables as read_file_tables
from o2pl.kernels import actionwise, dense, gaussian, registry
from o2pl.kernels.registry import MemberProblem as MemberProblem
from o2pl.kernels.registry import find_value as find_value
from o2pl.kernels.sparse import SparseValue
from o2pl.objectives import Pessimistic
from o2pl.objectives.outcome import Outcome as Outcome
from o2pl.policies import Softmax as Softmax
from o2pl.policies.gaussian import Gaussian
from o2pl.protocols import Floats, Ints, ValueAndGradient
from o2pl.simulation.rivals.cats import CATS as CATS
from o2pl.simulation.rivals.cats import TUNED as TUNED

SETTINGS = Pessimistic(penalty=0.1, baseline="mean", l2=0.1)


class Outcomes(NamedTuple):
    """The columns of a log but for the contexts: what was played, what it paid, and its logged propensity. [n] each"""

    actions: Any
    rewards: Floats
    propensities: Floats

    def log(self, contexts: Any) -> Interactions:
        continuous = bool(np.issubdtype(self.actions.dtype, np.floating))
        columns = contexts, self.actions, self.rewards, self.propensities
        return Interactions.trusted(*columns, (0.0, 1.0), continuous=continuous)


class Terms(NamedTuple):
    """What an objective is made of beside the policy."""

    residuals: Floats  # y - b, [n]
    penalty: Floats  # α, t, log 1/δ_t, λ
    shrink: float  # l2 / n


def terms(came: Outcomes) -> Terms:
    n = len(came.rewards)
    phi = SETTINGS.phi(n)
    residuals = SETTINGS.prepare(came.log(np.empty((n, 0)))).residuals
    return Terms(residuals, np.array([phi.alpha, phi.t, phi.log_inv_delta, phi.scale]), SETTINGS.l2 / n)


# -- objectives: a function of the parameters that gives the value and the gradient


def softmax_value(features: Floats, n_actions: int, came: Outcomes) -> ValueAndGradient:
    """Of a linear softmax, on features [n, d]."""
    log, (n, width) = SETTINGS.prepare(came.log(features)), features.shape
    rows = dense.dense_layout(log, features, dense.dense_plan(width), n_actions)
    return dense.dense_value(log, rows, n, width, n_actions)


def actionwise_value(items: Floats, offsets: Ints, came: Outcomes) -> ValueAndGradient:
    """Of shared weights over action sets: items [rows of all sets, d], set s from offsets[s] on."""
    log = SETTINGS.prepare(came.log(ActionSets(items, offsets)))
    return actionwise.actionwise_value(log, items, dense.dense_plan(items.shape[1]), offsets)


def gaussian_value(features: Floats, centre: float, scale: float, came: Outcomes) -> ValueAndGradient:
    """Of a ~ N(centre + θ·φ, scale²); the propensities are densities."""
    log = SETTINGS.prepare(came.log(features))
    return gaussian.gaussian_value(log, features, dense.dense_plan(features.shape[1]), Gaussian(centre, scale))


def sparse_value(
    indices: Ints, values: Floats, offsets: Ints, slots: int, n_actions: int, came: Outcomes
) -> ValueAndGradient:
    """Of a linear softmax on sparse rows: row s is (indices, values) from offsets[s] on, after the constant, slot 0."""
    first = offsets[:-1]
    rows = SparseRows(
        np.insert(indices, first, np.int32(0)),
        np.insert(values, first, np.float32(1)),
        offsets + np.arange(len(offsets)),
        slots,
    )
    return SparseValue(SETTINGS.prepare(came.log(rows)), rows, n_actions)


# -- what else is looked at


def standardised(contexts: Floats) -> Floats:
    """Standardised by the statistics of all rows, columns of 0 and 1 left as they are. [n, d]"""
    scaler = Standardise()
    seen = scaler.observe(scaler.init(contexts.shape[1]), contexts)
    return np.asarray(scaler.transform(seen, contexts))


def held_at_last_solve(run: Callable[[], object]) -> dict[str, int]:
    """Bytes held when the last solve of `run` begins, by the file that made them."""
    held: list[tracemalloc.Snapshot] = []
    find_value = registry.find_value

    def watched(problem: Any) -> Any:
        held[:] = [tracemalloc.take_snapshot()]
        return find_value(problem)

    tracemalloc.start()
    with patch.object(member, "find_value", watched):
        run()
    return {Path(each.traceback[0].filename).name: each.size for each in held[0].statistics("filename")}
