"""A reward model for sequences: rows are predicted from earlier rows only.

It is fitted again whenever the rows have doubled. The first rows get the middle of the reward range.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.evaluation.reward_models import RewardModel, fit_rewards
from o2pl.learners.targets import PolicyRows
from o2pl.protocols import Floats, Seed

_FIRST = 64  # rows before the first fit


@dataclass(frozen=True, eq=False)
class RunningRewards:
    """Reward models, each for the rows from its start on. Discrete actions."""

    log: Interactions
    starts: tuple[int, ...]
    models: tuple[RewardModel, ...]
    middle: float

    def _parts(self, rows: slice) -> Iterator[tuple[slice, RewardModel | None]]:
        edges = (0, *self.starts, len(self.log))
        for k, (start, end) in enumerate(itertools.pairwise(edges)):
            part = slice(max(start, rows.start), min(end, rows.stop))
            if part.start < part.stop:
                yield part, self.models[k - 1] if k else None

    def all_actions(self, rows: slice) -> Floats:
        """Return m(x_s, ·), [m, K]; flat for action sets."""
        return np.concatenate([self._all(part, model) for part, model in self._parts(rows)])

    def _all(self, part: slice, model: RewardModel | None) -> Floats:
        if model is not None:
            return model.all_actions(part)
        contexts = self.log.encoded[part]
        if contexts.items is not None:
            return np.full(int(contexts.offsets[-1]), self.middle)
        return np.full((part.stop - part.start, int(self.log.n_actions or 1)), self.middle)

    def table(self, rows: slice) -> tuple[Floats, Floats | None]:
        """Return m(x_s, a_s), [m], and m(x_s, ·)."""
        table, actions = self.all_actions(rows), self.log.actions[rows]
        return table[self.log.encoded[rows].places(actions)], table

    def expected(self, does: PolicyRows, rows: slice, table: Floats | None) -> Floats | None:
        """Return v(x_s), [m]; None if the policy is known only for the logged actions."""
        if does.probabilities is None or table is None:
            return None
        if self.log.encoded.items is not None:
            return self.log.encoded[rows].sums(does.probabilities * table)
        known = table.shape[1]
        value = np.einsum("nk,nk->n", does.probabilities[:, :known], table)
        return np.asarray(value + does.probabilities[:, known:].sum(axis=1) * self.middle)


def running_rewards(log: Interactions, seed: Seed = 0) -> RunningRewards | None:
    """Fit to the first 64, 128, 256, … rows; None for real-valued actions."""
    if log.continuous or log.reward_range is None:
        return None
    starts, models, nowhere = [], [], np.zeros(len(log), np.int8)
    start = _FIRST
    while start < len(log):
        model = fit_rewards(log[:start], folds=2, seed=seed)
        starts.append(start)
        models.append(replace(model, log=log, folds=nowhere))
        start *= 2
    return RunningRewards(log, tuple(starts), tuple(models), sum(log.reward_range) / 2)
