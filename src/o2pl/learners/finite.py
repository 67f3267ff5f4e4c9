"""Algorithm 1 over a finite class, exactly and at every round, at a cost that does not grow with the history."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.compiled import compiled
from o2pl.interactions import Decision, Interactions, Log
from o2pl.learners.settings import Settings, baseline_at, clip_at, penalty_at
from o2pl.learners.stream import UniformStream
from o2pl.oracles.exhaustive import ClassSums, add_row, class_values
from o2pl.policies.finite import FinitePolicies
from o2pl.policies.sampling import draw_one, draw_rows
from o2pl.protocols import Array, Floats, Ints
from o2pl.validation import check_actions, check_context

_CHUNK = 2_000_000  # likelihoods that a run holds at a time
NOBODY = -1  # no member acts yet: the even mixture of all does


@compiled
def best_member(sums: Floats, n: float, total: float, numbers: Floats) -> int:
    values = class_values(sums, n, baseline_at(numbers, total, n), penalty_at(numbers, n))
    return int(np.argmin(values))


@compiled
def acting_member(L: Floats, member: int, exploration: float, out: Floats) -> None:
    """out = π(·|x) of the member that acts, mixed with the uniform policy. L [K, J], out [K]"""
    K, J = L.shape
    for k in range(K):
        own = 0.0
        if member == NOBODY:
            for j in range(J):
                own += L[k, j] / J
        else:
            own = L[k, member]
        out[k] = min((1 - exploration) * own + exploration / K, 1.0)


@compiled
def finite_rounds(
    L: Floats, table: Floats, uniforms: Floats, start: int, member: int,
    sums: Floats, heap: Floats, counts: Ints, total: Floats, numbers: Floats, warm_start: int, exploration: float,
    actions: Ints, propensities: Floats,
) -> int:  # fmt: skip
    """Rounds of a run: L [m, K, J], every action under every member; table [m, K] of losses. Returns who acts next."""
    m, K, _ = L.shape
    pi = np.empty(K)
    for r in range(m):
        acting_member(L[r], member, exploration, pi)
        action = draw_one(pi, uniforms[r])
        actions[r], propensities[r] = action, pi[action]
        n = start + r + 1
        total[0] += table[r, action]
        add_row(sums, heap, counts, L[r, action], table[r, action], pi[action], clip_at(numbers, float(n)))
        if n >= warm_start:
            member = best_member(sums, float(n), total[0], numbers)
    return member


class FiniteOnline:
    """An engine like `Online`: the best member so far acts, as it is; before any row, the even mixture of all."""

    def __init__(
        self,
        policies: FinitePolicies,
        settings: Settings,
        warm_start: int,
        log: Log,
        stream: UniformStream,
        exploration: float,
    ) -> None:
        self.policies, self.settings, self.log, self.stream = policies, settings, log, stream
        self.warm_start, self.exploration = warm_start, exploration
        self.numbers = settings.numbers
        self.sums = ClassSums(policies.size)
        self.total = np.zeros(1)  # Σ losses
        self.member = NOBODY

    def probabilities(self, contexts: Floats) -> Floats:
        L = np.ascontiguousarray(self.policies.all_likelihoods(contexts))  # [n, K, J]
        out = np.empty(L.shape[:2])
        for r in range(len(L)):
            acting_member(L[r], self.member, self.exploration, out[r])
        return out

    def decide(self, context: Any) -> Decision:
        pi = self.probabilities(check_context(context, self.log.width)[None])
        actions, propensities = draw_rows(pi, np.array([self.stream.next()]))
        return Decision(int(actions[0]), float(propensities[0]))

    def append(self, context: Any, action: int, loss: float, propensity: float) -> None:
        row = check_context(context, self.log.width)[None]
        self.extend(Interactions(row, check_actions([action]), np.array([loss]), np.array([propensity])))
        self.learn()

    def extend(self, rows: Interactions) -> None:
        likelihoods = self.policies.likelihoods(rows.contexts, rows.actions)  # refuses contexts it does not know
        start = self.log.n
        self.log.extend(rows)
        for s in range(len(rows)):
            loss, propensity = float(rows.losses[s]), float(rows.propensities[s])
            self.total += loss
            self.sums.add(likelihoods[s], loss, propensity, self.settings.alpha(start + s + 1))

    def imitate(self) -> None:
        """Nothing to do: every member is tried anyway."""

    def learn(self, oracle: Any = None) -> None:
        """Take the best member; no oracle is needed."""
        n = len(self.log)
        if n >= max(self.warm_start, 1):
            self.member = best_member(self.sums.sums, float(n), float(self.total[0]), self.numbers)

    def run(self, contexts: Floats, losses: Any) -> Interactions:
        start, size = self.log.n, self.policies.size
        chunk = max(1, _CHUNK // (size * self.policies.n_actions))
        for first in range(0, len(contexts), chunk):
            rows = contexts[first : first + chunk]
            table = losses[first : first + chunk]
            L = np.ascontiguousarray(self.policies.all_likelihoods(rows))
            self.sums.reserve(len(rows) * size)
            actions, propensities = np.empty(len(rows), np.int64), np.empty(len(rows))
            self.member = finite_rounds(
                L, table, self.stream.take(len(rows)), self.log.n, self.member,
                self.sums.sums, self.sums.heap, self.sums.counts, self.total, self.numbers, self.warm_start,
                self.exploration, actions, propensities,
            )  # fmt: skip
            self.log.extend(Interactions(rows, actions, table[np.arange(len(rows)), actions], propensities))
            self.sums.alpha = self.settings.alpha(self.log.n)
        return self.log[start:]

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        sums = {f"sums.{name}": array for name, array in self.sums.state().items()}
        return {"stream": self.stream.state(), "member": self.member}, {"total": self.total, **sums, **self.log.state()}

    def restore(self, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        self.stream = UniformStream.restore(header["stream"])
        self.member, self.total = header["member"], arrays["total"]
        self.sums = ClassSums.restore({n.removeprefix("sums."): a for n, a in arrays.items() if n.startswith("sums.")})
        self.log.restore(arrays)
