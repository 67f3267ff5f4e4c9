"""Algorithm 1 over a finite class, exactly and at every round, at a cost that does not grow with the history."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.interactions import Decision, Interactions, Log
from o2pl.learners.settings import Settings
from o2pl.learners.stream import UniformStream
from o2pl.oracles.exhaustive import ClassSums
from o2pl.policies.finite import FinitePolicies
from o2pl.policies.sampling import draw_rows
from o2pl.protocols import Array, Floats
from o2pl.validation import check_context


class FiniteOnline:
    """An engine like `Online`: the best member so far acts; before any row, the even mixture of all members."""

    def __init__(
        self,
        policies: FinitePolicies,
        settings: Settings,
        warm_start: int,
        log: Log,
        stream: UniformStream,
        sharpness: float,
        exploration: float,
    ) -> None:
        self.policies, self.settings, self.log, self.stream = policies, settings, log, stream
        self.warm_start, self.sharpness, self.exploration = warm_start, sharpness, exploration
        self.sums = ClassSums(policies.size)
        self.total = 0.0
        self.params = policies.init(log.width)

    def probabilities(self, contexts: Floats) -> Floats:
        own = self.policies.probabilities(self.params, contexts, self.sharpness)
        return (1 - self.exploration) * own + self.exploration / self.policies.n_actions

    def decide(self, context: Any) -> Decision:
        row = check_context(context, self.log.width)[None]
        actions, propensities = draw_rows(self.probabilities(row), np.array([self.stream.next()]))
        return Decision(int(actions[0]), float(propensities[0]))

    def append(self, context: Any, action: int, loss: float, propensity: float) -> None:
        row = check_context(context, self.log.width)[None]
        self.log.extend(Interactions(row, np.array([action]), np.array([loss]), np.array([propensity])))
        self.learn()

    def learn(self, oracle: Any = None) -> None:
        """Catch up with rows that were put into the log directly, then take the best member."""
        n = len(self.log)
        behind = int(self.sums.counts[0])
        if behind < n:
            rows = self.log[behind:]
            likelihoods = self.policies.likelihoods(rows.contexts, rows.actions)
            for s in range(len(rows)):
                self.total += float(rows.losses[s])
                alpha = self.settings.alpha(behind + s + 1)
                self.sums.add(likelihoods[s], float(rows.losses[s]), float(rows.propensities[s]), alpha)
        if n >= max(self.warm_start, 1):
            values = self.sums.values(self.settings.level(self.total, n), self.settings.phi(n))
            self.params = self.policies.vertex(int(np.argmin(values)))

    def run(self, contexts: Floats, losses: Any) -> Interactions:
        start = len(self.log)
        for row in range(len(contexts)):
            decision = self.decide(contexts[row])
            loss = losses(np.array([row]), np.array([decision.action]))[0]
            self.append(contexts[row], decision.action, float(loss), decision.propensity)
        return self.log[start:]

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        sums = {f"sums.{name}": array for name, array in self.sums.state().items()}
        header = {"stream": self.stream.state(), "total": self.total}
        return header, {"params": self.params, **sums, **self.log.state()}

    def restore(self, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        self.stream = UniformStream.restore(header["stream"])
        self.total = header["total"]
        self.params = arrays["params"]
        self.sums = ClassSums.restore({n.removeprefix("sums."): a for n, a in arrays.items() if n.startswith("sums.")})
        self.log.restore(arrays)
