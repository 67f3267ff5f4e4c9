"""CRM (POEM) from one log, and SCRM from batches collected by its own policies.

Swaminathan & Joachims 2015; Zenati et al. 2023. Their objective and base class are in `counterfactual`.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

from numpy.typing import ArrayLike

from o2pl.data.decisions import Decision
from o2pl.data.log import Log
from o2pl.errors import InvalidInput
from o2pl.simulation.rivals.counterfactual import CounterfactualLearner
from o2pl.validation import check_contexts, check_count, check_number


class CRM(CounterfactualLearner):
    """POEM: clipped importance weights and a penalty on the empirical variance, minimised over one log.

    Parameters
    ----------
    policy
        `Softmax(n_actions)` or `Gaussian(...)`.
    penalty
        λ; of several, the one with the lowest estimated loss on held-out rows.
    clip
        M, the level at which importance weights are clipped, or None.
    tau
        τ of w = π / (q + τ π); 0 for plain weights.
    l2
        L2 penalty of the parameters, divided by 2n.
    validation
        Fraction of held-out rows, to choose among several penalties.
    features
        The feature map. Default: standardisation over the log and an intercept.
    reward_range
        Lowest and highest possible reward; None: the loss is the negative reward.
    loss_range
        The loss of the best and of the worst reward: (-1, 0), or (0, 1).
    start
        Initial parameters, such as the logging policy's. Default: those of the policy.
    random_state
        Seed, numpy Generator or None.
    """

    def fit(self, contexts: ArrayLike, actions: ArrayLike, rewards: ArrayLike, propensities: ArrayLike) -> Self:
        """Reset the learner, and solve on this log."""
        self._width = None
        batch = self._checked(contexts, actions, rewards, propensities)
        if not len(batch):
            raise InvalidInput("fit: found no rows, expected at least one")
        self._begin(batch.contexts.shape[1])
        self._seen = self.features.observe(self._begun(), batch.contexts)
        self._solve(batch)
        return self


@dataclass(eq=False, repr=False)
class SCRM(CounterfactualLearner):
    """Sequential CRM: act with the policy for a batch, then solve on it from the current parameters.

    Parameters
    ----------
    batch
        Rows of the first batch.
    growth
        Factor of the batch size: 1 for uniform batches, 2 for the doubling trick.
    memory
        "last": learn from the last batch only, as in the method's analysis; "all": from all batches, with the
        propensities they were logged with.
    policy, penalty, clip, tau, l2, validation, features, reward_range, loss_range, start, random_state
        As for `CRM`; the penalty is chosen again after each batch.
    """

    _: KW_ONLY
    batch: int = 100
    growth: float = 2.0
    memory: Literal["last", "all"] = "last"
    clip: float | None = None
    tau: float = 0.001

    def _begin(self, width: int) -> None:
        check_count("batch", self.batch)
        check_number("growth", self.growth, 1)
        if self.memory not in ("last", "all"):
            raise InvalidInput(f"memory: found {self.memory!r}, expected 'last' or 'all'")
        super()._begin(width)
        self._log = Log(width, continuous=not self._discrete, reward_range=None)
        self._batches, self._learned = 0, 0

    def act(self, context: ArrayLike) -> Decision:
        """Draw an action for a context. Returns it with its probability (density)."""
        rows = check_contexts([context], self._width)
        if self._width is None:
            self._begin(rows.shape[1])
        actions, propensities = self.sample(rows)
        return Decision(actions[0].item(), float(propensities[0]))

    def update(self, context: ArrayLike, action: Any, reward: float, propensity: float) -> Self:
        """Add one interaction to the current batch; when that is full, learn."""
        rows = self._append([context], [action], [reward], [propensity])
        if len(self._log) - self._learned >= math.ceil(self.batch * self.growth**self._batches):
            self._learn()
        return rows

    def partial_fit(self, contexts: ArrayLike, actions: ArrayLike, rewards: ArrayLike, propensities: ArrayLike) -> Self:
        """Add these rows, from any logging policy, as (the rest of) a batch, and learn."""
        self._append(contexts, actions, rewards, propensities)
        if len(self._log) > self._learned:
            self._learn()
        return self

    def _append(self, contexts: Any, actions: Any, rewards: Any, propensities: Any) -> Self:
        rows = self._checked(contexts, actions, rewards, propensities)
        if self._width is None:
            self._begin(rows.contexts.shape[1])
        self._log.extend(rows)
        return self

    def _learn(self) -> None:
        new = self._log[self._learned :]
        self._seen = self.features.observe(self._begun(), new.contexts)
        self._solve(new if self.memory == "last" else self._log.columns)
        self._learned = len(self._log)
        self._batches += 1
