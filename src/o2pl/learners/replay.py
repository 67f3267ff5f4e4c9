"""The paper's flat replay for a linear softmax, compiled: deciding, logging and learning without Python in between.

`rounds` (a whole simulation) calls the same `select` and `learn` that one call per round does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from o2pl.compiled import compiled
from o2pl.features import Chain, Intercept, Standardise
from o2pl.features.standardise import absorb, set_scale, standardise
from o2pl.interactions import Decision, Interactions, Log
from o2pl.learners.kernels import softmax_objective
from o2pl.learners.members import Member
from o2pl.learners.settings import PRIOR_ROWS, Settings
from o2pl.learners.stream import UniformStream
from o2pl.learners.updates import Replay
from o2pl.oracles.adam import adam_step
from o2pl.policies.sampling import draw
from o2pl.policies.softmax import acting_probabilities
from o2pl.protocols import Array, Floats, Ints
from o2pl.theory.schedules import clip_level, log_inverse_confidence
from o2pl.validation import check_context, check_contexts

# Places in the vector of settings that the kernels read. NaN: by the theory's schedule (CLIP), by the mean (BASELINE).
CLIP, BETA, P, DELTA, PENALTY, BASELINE, L2, STEP_SIZE, SHARPNESS, EXPLORATION, FEATURE_CLIP = range(11)
# Places in the vector of counters.
LEARNED, CHECKPOINT, STEPS = range(3)
_NO_CONTROL = np.empty((0, 0), np.float32)


def is_flat(member: Member) -> bool:
    """Whether a member's features are raw or standardised contexts, with or without an intercept."""
    maps = member.features.maps if isinstance(member.features, Chain) else (member.features,)
    return [type(each) for each in maps] in ([], [Standardise], [Intercept], [Standardise, Intercept])


@compiled
def select(
    contexts: Floats, shift: Floats, scale: Floats, W: Floats, numbers: Floats, uniforms: Floats, out: Floats
) -> tuple[Ints, Floats]:
    """Draw an action for each context, [n, d]; out [n, K] holds the acting probabilities."""
    n, d = contexts.shape
    K, width = W.shape
    features = np.ones((n, width), np.float32)
    standardise(contexts, shift, scale, np.float32(numbers[FEATURE_CLIP]), features[:, width - d :])
    acting_probabilities(features, W, numbers[SHARPNESS], out)
    if numbers[EXPLORATION] > 0:
        for r in range(n):
            for k in range(K):
                out[r, k] = (1 - numbers[EXPLORATION]) * out[r, k] + numbers[EXPLORATION] / K
    return draw(out.reshape(-1), np.arange(0, n * K + 1, K), uniforms)


@compiled
def learn(
    contexts: Floats, actions: Ints, losses: Floats, propensities: Floats, n: int,
    count: Floats, mean: Floats, squares: Floats, binary: Array, shift: Floats, scale: Floats, standardised: bool,
    W: Floats, first: Floats, second: Floats, total: Floats, counters: Ints, numbers: Floats, plan: Ints,
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
    m = min(n, plan[0])
    start = n - m
    features = np.ones((width, m), np.float32)
    clip = np.float32(numbers[FEATURE_CLIP])
    for i in range(d):
        for r in range(m):
            features[width - d + i, r] = min(max((contexts[start + r, i] - shift[i]) * scale[i], -clip), clip)
    baseline = numbers[BASELINE]
    if math.isnan(baseline):
        baseline = (total[0] - PRIOR_ROWS) / (n + PRIOR_ROWS)
    residuals, inverse = np.empty(m, np.float32), np.empty(m, np.float32)
    for r in range(m):
        residuals[r] = losses[start + r] - baseline
        inverse[r] = 1 / propensities[start + r]
    alpha = numbers[CLIP]
    if math.isnan(alpha):
        alpha = clip_level(float(m), numbers[BETA], numbers[P])
    penalty = (
        alpha if alpha < math.inf else 0.0,
        float(m),
        log_inverse_confidence(float(m), numbers[DELTA]),
        numbers[P],
        numbers[PENALTY],
    )
    gradient = np.empty_like(W)
    room, weights = np.empty((W.shape[0], m), np.float32), np.empty(m, np.float32)
    played = actions[start:n]
    for _ in range(plan[2]):
        softmax_objective(
            W, features, played, residuals, inverse, _NO_CONTROL, np.float32(alpha), penalty, numbers[L2] / m,
            room, weights, gradient,
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
    W: Floats, first: Floats, second: Floats, total: Floats, counters: Ints, numbers: Floats, plan: Ints,
) -> None:  # fmt: skip
    """A whole run: table [T, K] holds the loss of every action. The buffers have room for T more rows."""
    out = np.empty((1, W.shape[0]))
    for t in range(len(new_contexts)):
        row = new_contexts[t : t + 1]
        chosen, propensity = select(row, shift, scale, W, numbers, uniforms[t : t + 1], out)
        contexts[n] = row[0]
        actions[n] = chosen[0]
        losses[n] = table[t, chosen[0]]
        propensities[n] = propensity[0]
        n += 1
        if n >= counters[CHECKPOINT]:
            learn(
                contexts, actions, losses, propensities, n, count, mean, squares, binary, shift, scale, standardised,
                W, first, second, total, counters, numbers, plan,
            )  # fmt: skip


@compiled
def _all_finite(row: Floats) -> bool:
    total = np.float32(0)
    for i in range(len(row)):
        total += row[i] * np.float32(0)  # 0 unless an entry is NaN or infinite
    return bool(total == 0)


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
        s = self.settings
        self.numbers = np.array([
            math.nan if s.clip == "theory" else s.alpha(1), s.beta, s.p, s.delta, s.penalty,
            math.nan if s.baseline == "mean" else s.level(0.0, 0), s.l2, update.step_size, sharpness, exploration,
            math.inf if scaler is None else scaler.clip,
        ])  # fmt: skip
        self.plan = np.array([update.window, update.every, update.steps, update.warm_start])
        seen = (scaler or Standardise()).init(log.width)
        weights = np.zeros((3, n_actions, member.features.width(log.width)), np.float32)
        self.arrays: dict[str, Array] = {
            **{name: seen[name] for name in ("count", "mean", "squares", "binary", "shift", "scale")},
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
            a["W"], a["first"], a["second"], a["total"], a["counters"], self.numbers, self.plan,
        )  # fmt: skip
        self._policy_args = (a["shift"], a["scale"], a["W"], self.numbers)
        self._counters = a["counters"]
        self._room = np.empty((1, len(a["W"])))
        self._uniform = np.empty(1)

    def probabilities(self, contexts: Floats) -> Floats:
        out = np.empty((len(contexts), len(self.arrays["W"])))
        select(contexts, *self._policy_args, np.zeros(len(contexts)), out)
        return out

    def decide(self, context: Any) -> Decision:
        row = self._row(context)
        self._uniform[0] = self.stream.next()
        actions, propensities = select(row[None], *self._policy_args, self._uniform, self._room)
        return Decision(int(actions[0]), float(propensities[0]))

    def _row(self, context: Any) -> Floats:
        row = np.asarray(context, np.float32) if isinstance(context, np.ndarray) else check_context(context)
        if row.shape != (self.log.width,) or not _all_finite(row):
            check_context(context, self.log.width)  # says what is wrong
        return row

    def append(self, context: Any, action: int, loss: float, propensity: float) -> None:
        row = self._row(context)
        n = len(self.log)
        contexts, actions, losses, propensities = self.log.buffers(1)
        contexts[n] = row
        actions[n] = action
        losses[n] = loss
        propensities[n] = propensity
        self.log.advance(1)
        self.learn_if_due()

    def learn_if_due(self) -> None:
        if len(self.log) >= self._counters[CHECKPOINT]:
            self.learn()

    def learn(self, oracle: Any = None) -> None:
        learn(*self.log.buffers(0), len(self.log), *self._learner_args)

    def run(self, contexts: Floats, losses: Any) -> Interactions:
        table = losses.table
        start = len(self.log)
        rounds(
            check_contexts(contexts, self.log.width), table, self.stream.take(len(contexts)),
            *self.log.buffers(len(contexts)), start, *self._learner_args,
        )  # fmt: skip
        self.log.advance(len(contexts))
        return self.log[start:]

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        return {"stream": self.stream.state()}, {**self.arrays, **self.log.state()}

    def restore(self, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        self.stream = UniformStream.restore(header["stream"])
        self.arrays = {name: arrays[name] for name in self.arrays}
        self.log.restore(arrays)
        self._bind()
