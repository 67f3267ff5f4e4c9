"""A log as people keep it: rewards as they are, and who logged what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.evaluation.estimators import BLOCK
from o2pl.interactions import Interactions, Log
from o2pl.learners.base import BanditEstimator
from o2pl.protocols import Array, Floats, Ints
from o2pl.rows import ActionSets, SparseRows
from o2pl.validation import (
    RewardRange,
    check_action_sets,
    check_actions,
    check_contexts,
    check_continuous_actions,
    check_propensities,
    check_reward_range,
    check_rewards,
    to_reward,
)


@dataclass(frozen=True, eq=False)
class RewardLog:
    """Columns that have been checked; `RewardLog.of` makes one."""

    contexts: Any  # [n, d], or ActionSets of length n
    actions: Array  # [n], whole numbers or, if `continuous`, real ones
    rewards: Floats  # [n]
    propensities: Floats  # [n]
    reward_range: RewardRange | None = None  # the lowest and highest reward there can be; None: not known
    n_actions: int | None = None  # K; None for continuous actions and action sets
    continuous: bool = False
    loggers: Ints | None = None  # which of J loggers made the row, [n]
    by_logger: Floats | None = None  # the propensity of the logged action under each logger, [n, J]
    logger_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        contexts: Any,
        actions: Any,
        rewards: Any,
        propensities: Any,
        *,
        reward_range: RewardRange | None = None,
        n_actions: int | None = None,
        continuous: bool | None = None,
        loggers: Any = None,
        by_logger: Any = None,
        action_names: tuple[str, ...] = (),
    ) -> RewardLog:
        """Checked columns. Actions that are not whole numbers make a log of continuous actions, unless `continuous`
        says so; `n_actions` may count actions that were never played."""
        if isinstance(contexts, SparseRows):
            raise InvalidInput("contexts: found sparse rows, expected rows of numbers or ActionSets to evaluate on")
        sets = isinstance(contexts, ActionSets)
        rows: Any = check_action_sets(contexts) if sets else check_contexts(contexts)
        if continuous is None:
            continuous = not sets and _is_real(actions)
        real = continuous or np.issubdtype(np.asarray(actions).dtype, np.floating)
        checked: Array = check_continuous_actions(actions) if real else actions
        if not continuous:
            checked = check_actions(checked, n_actions)
        if reward_range is not None:
            reward_range = check_reward_range(reward_range)
        numbers = check_rewards(rewards, reward_range or (-np.finfo(np.float64).max, np.finfo(np.float64).max))
        chances = check_propensities(propensities, density=continuous)
        names: tuple[str, ...] = ()
        if loggers is not None:
            found, loggers = np.unique(np.asarray(loggers), return_inverse=True)
            names = tuple(str(name) for name in found)
        lengths = {"contexts": len(rows), "actions": len(checked), "rewards": len(numbers)}
        lengths |= {"propensities": len(chances)} | ({} if loggers is None else {"loggers": len(loggers)})
        if len(set(lengths.values())) != 1:
            raise InvalidInput(f"columns differ in length: {lengths}")
        if not len(checked):
            raise InvalidInput("log: found no rows, expected at least one")
        if sets and (checked >= rows.sizes).any():
            check_actions(actions, rows.sizes)  # says which row
        if by_logger is not None:
            by_logger = _check_by_logger(by_logger, chances, loggers, len(names), continuous)
        if not (sets or continuous):
            n_actions = max(n_actions or 0, int(checked.max()) + 1, len(action_names))
        known = None if sets or continuous else n_actions
        columns = (rows, checked, numbers, chances)
        return cls(*columns, reward_range, known, continuous, loggers, by_logger, names, action_names)

    def __len__(self) -> int:
        return len(self.actions)

    def blocks(self) -> Iterator[slice]:
        for start in range(0, len(self), BLOCK):
            yield slice(start, min(start + BLOCK, len(self)))

    @cached_property
    def action_scale(self) -> tuple[float, float]:
        """Mean and deviation of continuous actions."""
        return float(self.actions.mean()), float(self.actions.std()) or 1.0

    def action_name(self, action: int) -> str:
        return self.action_names[action] if action < len(self.action_names) else str(action)


def as_log(log: Any, reward_range: RewardRange | None = None) -> RewardLog:
    """From a `RewardLog`, a learner (its own log), `Interactions` or a `Log` (rewards in [0, 1] unless said)."""
    if isinstance(log, RewardLog):
        return log
    if isinstance(log, BanditEstimator):
        reward_range, log = check_reward_range(log.reward_range), log.log_
    if isinstance(log, Log):
        log = log.columns
    if not isinstance(log, Interactions):
        raise InvalidInput(f"log: found a {type(log).__name__}, expected a RewardLog, Interactions, a Log or a learner")
    ends = reward_range or (0.0, 1.0)
    rewards = np.clip(to_reward(log.losses, ends), *ends)  # rounding may carry an end a hair outside
    real = bool(np.issubdtype(log.actions.dtype, np.floating))
    return RewardLog.of(log.contexts, log.actions, rewards, log.propensities, reward_range=ends, continuous=real)


def _is_real(actions: Any) -> bool:
    given = np.asarray(actions)
    return bool(np.issubdtype(given.dtype, np.floating) and np.isfinite(given).all() and (given % 1 != 0).any())


def _check_by_logger(given: Any, chances: Floats, loggers: Any, n_loggers: int, density: bool) -> Floats:
    if loggers is None:
        raise InvalidInput("by_logger: found propensities under each logger, expected also `loggers`, who logged what")
    matrix = np.asarray(given, np.float64)
    if matrix.shape != (len(chances), n_loggers):
        raise InvalidInput(f"by_logger: found shape {matrix.shape}, expected ({len(chances)}, {n_loggers})")
    wrong = ~((matrix >= 0) & (np.isfinite(matrix) if density else matrix <= 1))
    if wrong.any():
        row, column = (int(at[0]) for at in np.nonzero(wrong))
        raise InvalidInput(
            f"by_logger, row {row}, logger {column}: found {matrix[row, column]}, expected a probability"
        )
    own = matrix[np.arange(len(chances)), loggers]
    apart = np.abs(own - chances) > 1e-6 * chances
    if apart.any():
        row = int(np.argmax(apart))
        raise InvalidInput(
            f"by_logger, row {row}: found {own[row]} for the logger of the row, expected its propensity {chances[row]}"
        )
    return matrix
