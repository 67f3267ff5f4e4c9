"""The paper's flat replay for a linear softmax, compiled: deciding, logging and learning without Python in between.

`rounds` (a whole simulation) calls the same `decide`, `record` and `learn` that one call per round does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from o2pl.compiled import compiled
from o2pl.features import Chain, Intercept, Standardise
from o2pl.features.standardise import absorb, set_scale, standardise, standardise_row
from o2pl.interactions import Decision, Interactions, Log
from o2pl.learners.kernels import SoftmaxValue, softmax_objective
from o2pl.learners.members import Member, MemberState
from o2pl.learners.settings import L2, Settings, baseline_at, clip_at, penalty_at
from o2pl.learners.stream import UniformStream
from o2pl.learners.updates import Replay
from o2pl.oracles.adam import adam_step
from o2pl.oracles.lbfgs import LBFGS
from o2pl.policies.sampling import draw_one
from o2pl.policies.softmax import acting_row
from o2pl.protocols import Array, Floats, Ints
from o2pl.validation import check_actions, check_context

# Places in the vector of settings that the kernels read, after those of `Settings.numbers`.
STEP_SIZE, SHARPNESS, EXPLORATION, FEATURE_CLIP = range(7, 11)
# Places in the vector of counters.
LEARNED, CHECKPOINT, STEPS = range(3)
_NO_CONTROL = np.empty((0, 0), np.float32)


def is_flat(member: Member | MemberState) -> bool:
    """Whether a member's features are raw or standardised contexts, with or without an intercept."""
    maps = member.features.maps if isinstance(member.features, Chain) else (member.features,)
    return [type(each) for each in maps] in ([], [Standardise], [Intercept], [Standardise, Intercept])


@compiled
def decide(
    context: Floats, shift: Floats, scale: Floats, W: Floats, numbers: Floats, uniform: float, room: Floats, pi: Floats
) -> tuple[int, float]:
    """Draw an action and tell its probability; action -1 if the context is unusable.

    context [d]; room [width], whose first entry is 1 where there is an intercept; pi [K] holds the acting policy.
    """
    d = len(shift)
    if len(context) != d or not all_finite(context):
        return -1, 0.0
    K, width = W.shape
    standardise_row(context, shift, scale, np.float32(numbers[FEATURE_CLIP]), room[width - d :])
    acting_row(room, W, numbers[SHARPNESS], pi)
    if numbers[EXPLORATION] > 0:
        for k in range(K):
            pi[k] = min((1 - numbers[EXPLORATION]) * pi[k] + numbers[EXPLORATION] / K, 1.0)
    action = draw_one(pi, uniform)
    return action, pi[action]


@compiled
def record(
    context: Floats, action: int, loss: float, propensity: float,
    contexts: Floats, actions: Ints, losses: Floats, propensities: Floats, n: int,
) -> bool:  # fmt: skip
    """Write row n of the log; False, and nothing written, if the context is unusable."""
    if len(context) != contexts.shape[1] or not all_finite(context):
        return False
    for i in range(len(context)):
        contexts[n, i] = context[i]
    actions[n] = action
    losses[n] = loss
    propensities[n] = propensity
    return True


@compiled
def all_finite(row: Floats) -> bool:
    total = np.float32(0)
    for i in range(len(row)):
        total += np.float32(row[i]) * np.float32(0)  # 0 unless an entry is NaN, infinite or too large for float32
    return total == 0  # type: ignore[no-any-return]  # numpy's bool here, a plain one when compiled


@compiled
def learn(
    contexts: Floats, actions: Ints, losses: Floats, propensities: Floats, n: int,
    count: Floats, mean: Floats, squares: Floats, binary: Array, shift: Floats, scale: Floats, standardised: bool,
    ring: Floats, W: Floats, first: Floats, second: Floats, total: Floats, counters: Ints, numbers: Floats, plan: Ints,
) -> None:  # fmt: skip
    """Absorb the rows since the last checkpoint, then Adam steps on the latest window; everything in place.

    contexts … propensities: buffers whose first n rows are the log. total [1]: Σ losses. plan: window, every, steps,
    warm start.
    """
    d, width = contexts.shape[1], W.shape[1]
    if standardised:
        absorb(contexts[counters[LEARNED] : n], count, mean, squares, binary)
        set_scale(count, mean, squares, binary, shift, scale)
    for s in range(counters[LEARNED], n):
        total[0] += losses[s]
    window = plan[0]
    m = min(n, window)
    start = n - m
    for s in range(max(counters[LEARNED], start), n):
        for i in range(d):
            ring[i, s % window] = contexts[s, i]  # feature-major, the newest row over the oldest
    features = np.empty((width, m), np.float32)
    features[0] = 1  # where there is no intercept, the loop writes over it
    clip = np.float32(numbers[FEATURE_CLIP])
    for i in range(d):
        for r in range(m):
            features[width - d + i, r] = min(max((ring[i, r] - shift[i]) * scale[i], -clip), clip)
    baseline = baseline_at(numbers, total[0], float(n))
    played, residuals, inverse = np.empty(m, np.int32), np.empty(m, np.float32), np.empty(m, np.float32)
    slot = start % window
    for s in range(start, n):
        played[slot] = actions[s]
        residuals[slot] = losses[s] - baseline
        inverse[slot] = 1 / propensities[s]
        slot = slot + 1 if slot + 1 < window else 0
    alpha, penalty = clip_at(numbers, float(m)), penalty_at(numbers, float(m))
    gradient = np.empty_like(W)
    pi, room = np.empty((W.shape[0], m), np.float32), np.empty((3, m), np.float32)
    for _ in range(plan[2]):
        softmax_objective(
            W, features, played, residuals, inverse, _NO_CONTROL, np.float32(alpha), penalty, numbers[L2] / m,
            pi, room, gradient,
        )  # fmt: skip
        counters[STEPS] += 1
        adam_step(
            W.reshape(-1),
            gradient.reshape(-1),
            first.reshape(-1),
            second.reshape(-1),
            counters[STEPS],
            numbers[STEP_SIZE],
        )
    counters[LEARNED] = n
    counters[CHECKPOINT] = max(n + plan[1], plan[3])


@compiled
def rounds(
    new_contexts: Floats, table: Floats, uniforms: Floats,
    contexts: Floats, actions: Ints, losses: Floats, propensities: Floats, n: int,
    count: Floats, mean: Floats, squares: Floats, binary: Array, shift: Floats, scale: Floats, standardised: bool,
    ring: Floats, W: Floats, first: Floats, second: Floats, total: Floats, counters: Ints, numbers: Floats, plan: Ints,
) -> None:  # fmt: skip
    """A whole run: table [T, K] holds the loss of every action. The buffers have room for T more rows."""
    room, pi = np.ones(W.shape[1], np.float32), np.empty(W.shape[0])
    for t in range(len(new_contexts)):
        action, propensity = decide(new_contexts[t], shift, scale, W, numbers, uniforms[t], room, pi)
        record(new_contexts[t], action, table[t, action], propensity, contexts, actions, losses, propensities, n)
        n += 1
        if n >= counters[CHECKPOINT]:
            learn(
                contexts, actions, losses, propensities, n, count, mean, squares, binary, shift, scale, standardised,
                ring, W, first, second, total, counters, numbers, plan,
            )  # fmt: skip


class ReplaySoftmax:
    """An engine like `Online`, for `Replay` with one linear softmax."""

    def __init__(
        self,
        member: Member,
        n_actions: int,
        settings: Settings,
        update: Replay,
        log: Log,
        stream: UniformStream,
        sharpness: float,
        exploration: float,
    ) -> None:
        self.settings, self.update, self.log, self.stream = member.settings(settings), update, log, stream
        maps = member.features.maps if isinstance(member.features, Chain) else (member.features,)
        scaler = next((each for each in maps if isinstance(each, Standardise)), None)
        feature_clip = math.inf if scaler is None else scaler.clip
        own = [update.step_size, sharpness, exploration, feature_clip]
        self.numbers = np.concatenate([self.settings.numbers, own])
        self.plan = np.array([update.window, update.every, update.steps, update.warm_start])
        seen = (scaler or Standardise()).init(log.width)
        weights = np.zeros((3, n_actions, member.features.width(log.width)), np.float32)
        self.arrays: dict[str, Array] = {
            **{name: seen[name] for name in ("count", "mean", "squares", "binary", "shift", "scale")},
            "ring": np.zeros((log.width, update.window), np.float32),
            "W": weights[0],
            "first": weights[1],
            "second": weights[2],
            "total": np.zeros(1),
            "counters": np.array([0, update.after(0), 0]),
        }
        self.standardised = scaler is not None
        self._bind()

    def _bind(self) -> None:
        a = self.arrays
        self._learner_args: Any = (
            a["count"], a["mean"], a["squares"], a["binary"], a["shift"], a["scale"], self.standardised,
            a["ring"], a["W"], a["first"], a["second"], a["total"], a["counters"], self.numbers, self.plan,
        )  # fmt: skip
        self._shift, self._scale, self._W = a["shift"], a["scale"], a["W"]
        self._room = np.ones(a["W"].shape[1], np.float32)
        self._pi = np.empty(len(a["W"]))
        self._counters = a["counters"]
        self._checkpoint = int(self._counters[CHECKPOINT])
        self._buffers = self.log.buffers()

    def probabilities(self, contexts: Floats) -> Floats:
        out = np.empty((len(contexts), len(self._pi)))
        for r in range(len(contexts)):
            decide(contexts[r], self._shift, self._scale, self._W, self.numbers, 0.0, self._room, out[r])
        return out

    def decide(self, context: Any) -> Decision:
        if not isinstance(context, np.ndarray) or context.dtype not in _ROWS or context.ndim != 1:
            context = check_context(context)
        uniform = self.stream.next()
        drawn = decide(context, self._shift, self._scale, self._W, self.numbers, uniform, self._room, self._pi)
        if drawn[0] < 0:
            self.stream.unread()
            check_context(context, self.log.width)  # says what is wrong
        return _decision(Decision, drawn)

    def append(self, context: Any, action: int, loss: float, propensity: float) -> None:
        log = self.log
        n = log.n
        if n == log.capacity:
            self._buffers = log.buffers(1)
        if not isinstance(context, np.ndarray) or context.dtype not in _ROWS or context.ndim != 1:
            context = check_context(context)
        if type(action) is not int:
            action = int(check_actions([action])[0])
        if not record(context, action, loss, propensity, *self._buffers, n):
            check_context(context, log.width)  # says what is wrong
        log.n = n + 1
        if n + 1 >= self._checkpoint:
            self.learn()

    def extend(self, rows: Interactions) -> None:
        self.log.extend(rows)
        self._buffers = self.log.buffers()

    def imitate(self) -> None:
        """Nothing to do: it starts where every weight is near 1."""

    def learn(self, oracle: LBFGS | None = None) -> None:
        learn(*self._buffers, self.log.n, *self._learner_args)
        self._checkpoint = int(self._counters[CHECKPOINT])
        if oracle is not None:
            self._solve(oracle)

    def _solve(self, oracle: LBFGS) -> None:
        """On the whole log, to the oracle's tolerance."""
        rows, W = self.log.columns, self.arrays["W"]
        features = np.ones((len(rows), W.shape[1]), np.float32)
        clip = np.float32(self.numbers[FEATURE_CLIP])
        shift, scale = self.arrays["shift"], self.arrays["scale"]
        standardise(rows.contexts, shift, scale, clip, features[:, W.shape[1] - self.log.width :])
        function = SoftmaxValue(features, len(W), self.settings.objective(rows), self.settings.l2)
        W[:] = oracle(function, W.reshape(-1).astype(np.float64)).params.reshape(W.shape)

    def run(self, contexts: Floats, losses: Any) -> Interactions:
        log, start = self.log, self.log.n
        self._buffers = log.buffers(len(contexts))
        rounds(contexts, losses.table, self.stream.take(len(contexts)), *self._buffers, start, *self._learner_args)
        self._checkpoint = int(self._counters[CHECKPOINT])
        log.n += len(contexts)
        return log[start:]

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        return {"stream": self.stream.state()}, {**self.arrays, **self.log.state()}

    def restore(self, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        self.stream = UniformStream.restore(header["stream"])
        self.arrays = {name: arrays[name] for name in self.arrays}
        self.log.restore(arrays)
        self._bind()


_decision = tuple.__new__  # the constructor of a named tuple, without its argument handling
_ROWS = (np.dtype(np.float32), np.dtype(np.float64))  # such rows go to the kernels as they are, which check the rest
