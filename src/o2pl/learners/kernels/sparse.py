"""The kernels of the learner on sparse rows: deciding, logging, giving features their slots, objective and replay.

`Log.sparse_buffers` are written by `record` and read by the others. A *slot* is a feature that has weights, slot 0 the
constant; `slot_of` [2^bits] tells the slot of a feature, 0 where it has none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.compiled import compiled
from o2pl.features.hashing import expand, expanded_size
from o2pl.features.standardise import inverse_deviation, welford
from o2pl.learners.settings import baseline_at
from o2pl.objectives.penalty import phi
from o2pl.objectives.weights import clipped_moments, weight_cotangent
from o2pl.oracles.adam import adam_step
from o2pl.policies.sampling import draw_one
from o2pl.policies.sparse import acting_sparse, pad_weights, pull_to_sparse, scaled, sparse_softmax
from o2pl.protocols import Array, Floats, Ints

PenaltyNumbers = tuple[float, float, float, float, float]


@compiled
def decide(
    hashes: Array, values: Floats, n: int, segments: Ints, pairs: Ints, mask: Any, signed: bool,
    slot_of: Ints, scale: Floats, clip: Any, W: Floats, sharpness: float, exploration: float, uniform: float,
) -> tuple[int, float]:  # fmt: skip
    """Draw an action for a context as `Reader.read` left it, and tell its probability."""
    size = expanded_size(n, segments, pairs)
    indices, numbers, pi = np.empty(size, np.int32), np.empty(size, np.float32), np.empty(W.shape[1])
    expand(hashes, values, n, segments, pairs, mask, signed, 0, indices, numbers)
    acting_sparse(indices, numbers, 0, size, slot_of, scale, clip, W, sharpness, exploration, pi)
    action = draw_one(pi, uniform)
    return action, pi[action]


@compiled
def decide_rows(
    indices: Ints, values: Floats, offsets: Ints, slot_of: Ints, scale: Floats, clip: Any, W: Floats,
    sharpness: float, exploration: float, out: Floats,
) -> None:  # fmt: skip
    """out = the acting policy of every row, [n, K]."""
    for r in range(len(out)):
        first, last = offsets[r], offsets[r + 1]
        acting_sparse(indices, values, first, last, slot_of, scale, clip, W, sharpness, exploration, out[r])


@compiled
def record(
    hashes: Array, numbers: Floats, size: int, segments: Ints, pairs: Ints, mask: Any, signed: bool,
    indices: Ints, values: Floats, offsets: Ints, actions: Ints, losses: Floats, propensities: Floats, n: int,
    action: int, loss: float, propensity: float,
) -> int:  # fmt: skip
    """Write row n of the log; how many entries the log has then. -1, and nothing written, if there is no room."""
    if n == len(actions) or offsets[n] + expanded_size(size, segments, pairs) > len(values):
        return -1
    actions[n], losses[n], propensities[n] = action, loss, propensity
    end = expand(hashes, numbers, size, segments, pairs, mask, signed, offsets[n], indices, values)
    offsets[n + 1] = end
    return end


@compiled
def admit(
    indices: Ints, values: Floats, offsets: Ints, row: int, stop: int, slots: int,
    slot_of: Ints, feature: Ints, count: Floats, mean: Floats, squares: Floats, plain: Array, scale: Floats,
) -> tuple[int, int]:  # fmt: skip
    """Take in rows from `row` on: features that are new get slots, and slots their running scale.

    The number of slots, and the row that was reached: `stop`, or the first that might need more slots than there is
    room for. Values 0, 1 and -1 are indicators, and a slot that has held nothing else is left as it is.
    """
    while row < stop:
        if slots + offsets[row + 1] - offsets[row] > len(feature):
            break
        for j in range(offsets[row], offsets[row + 1]):
            f = indices[j]
            i = slot_of[f]
            if i == 0:
                i = slots
                slots += 1
                slot_of[f], feature[i] = i, f
            x = np.float64(values[j])
            count[i] += 1
            mean[i], squares[i] = welford(x, 1 / count[i], mean[i], squares[i])
            plain[i] = plain[i] and (x == 1 or x == 0 or x == -1)
            if not plain[i]:
                scale[i, 0], scale[i, 1] = mean[i], inverse_deviation(count[i], mean[i], squares[i])
        row += 1
    return slots, row


@compiled
def gather(
    indices: Ints, values: Floats, offsets: Ints, start: int, stop: int, slot_of: Ints, scale: Floats, clip: Any,
    out_slots: Ints, out_values: Floats, out_offsets: Ints,
) -> None:  # fmt: skip
    """The log's rows start to stop, which have been taken in, as slots and scaled values."""
    first = offsets[start]
    for j in range(first, offsets[stop]):
        i = slot_of[indices[j]]
        out_slots[j - first], out_values[j - first] = i, scaled(values[j], scale, i, clip)
    for row in range(start, stop + 1):
        out_offsets[row - start] = offsets[row] - first


@compiled
def outcomes(
    actions: Ints, losses: Floats, propensities: Floats, start: int, stop: int, baseline: float,
    predicted: Floats, played: Ints, residuals: Floats, inverse: Floats, control: Floats,
) -> None:  # fmt: skip
    """played = a (int32), residuals = y - b, inverse = 1/q of rows start to stop, single precision.

    With a control variate m, that of the log being b + predicted [n ≥, K], cut to [-1, 0]: residuals = y - m(x, a), and
    control = m - b [n, K].
    """
    for r in range(stop - start):
        s = start + r
        played[r] = actions[s]
        residuals[r] = losses[s] - baseline
        inverse[r] = 1 / propensities[s]
    for r in range(len(control)):
        for k in range(control.shape[1]):
            control[r, k] = min(max(predicted[start + r, k], -1 - baseline), -baseline)
        residuals[r] -= control[r, played[r]]


@compiled
def predict_losses(
    indices: Ints, values: Floats, offsets: Ints, actions: Ints, losses: Floats, start: int, stop: int,
    numbers: Floats, total: float, prior: float,
    slot_of: Ints, scale: Floats, clip: Any, model: Floats, spread: Floats, predicted: Floats,
) -> None:  # fmt: skip
    """Predict y - b for all actions of rows start to stop, each by what the rows before it taught.

    One linear model per action, learned by recursive least squares that keeps variances and no covariances: with error
    e = y - b - w x and variance v_j of weight j, g = v x / (1 + Σ v x²), w += g e, v -= g v x. An action never played
    predicts 0. model and spread [slots ≥, K] hold w and v, v = 0 standing for the prior's; predicted [n ≥, K].
    """
    K = model.shape[1]
    for s in range(start, stop):
        a, first, last = actions[s], offsets[s], offsets[s + 1]
        for k in range(K):
            predicted[s, k] = model[0, k]
        noise = np.float32(1)
        for j in range(first - 1, last):
            i = slot_of[indices[j]] if j >= first else 0  # first - 1 stands for the constant
            x = scaled(values[j], scale, i, clip) if i else np.float32(1)
            if spread[i, a] == 0:
                spread[i, a] = prior
            noise += spread[i, a] * x * x
            if i:
                for k in range(K):
                    predicted[s, k] += x * model[i, k]
        error = np.float32(losses[s] - baseline_at(numbers, total, float(s)) - predicted[s, a])
        total = running_sum(losses, s, s + 1, total)
        for j in range(first - 1, last):
            i = slot_of[indices[j]] if j >= first else 0
            x = scaled(values[j], scale, i, clip) if i else np.float32(1)
            gain = spread[i, a] * x / noise
            model[i, a] += gain * error
            spread[i, a] *= 1 - gain * x


@compiled
def running_sum(losses: Floats, start: int, stop: int, total: float) -> float:
    """Row by row: the same however rows are batched."""
    for s in range(start, stop):
        total += losses[s]
    return total


@compiled
def sparse_objective(
    params: Floats, slots: Ints, values: Floats, offsets: Ints,
    played: Ints, residuals: Floats, inverse: Floats, control: Floats,
    alpha: Any, penalty: PenaltyNumbers, shrink: float,
    W: Floats, P: Floats, weights: Floats, G: Floats, gradient: Floats,
) -> float:  # fmt: skip
    """V(π_W) + shrink |W|²/2, as `softmax_objective` of dense features; the gradient goes to `gradient`.

    params and gradient [slots, K]; W and G [slots, L] and P [n, L] are to work in, rows padded to L; weights [n].
    Two passes over the rows: the penalty's slope, which every row's cotangent needs, is known after the first.
    """
    n_slots, K = params.shape
    L = W.shape[1]
    flat_P, flat_G = P.reshape(-1), G.reshape(-1)
    pad_weights(params, W)
    sparse_softmax(W.reshape(-1), K, L, slots, values, offsets, flat_P)
    for r in range(len(weights)):
        weights[r] = P[r, played[r]] * inverse[r]
    risk, variance = clipped_moments(weights, residuals, alpha)
    pessimism, slope = phi(variance, penalty[0], penalty[1], penalty[2], penalty[3], penalty[4])
    weight_cotangent(weights, residuals, alpha, slope, len(weights))
    modelled = pull_to_sparse(flat_P, L, played, weights, control, slots, values, offsets, flat_G)
    size = 0.0
    for i in range(n_slots):
        for k in range(K):
            gradient[i, k] = G[i, k] + shrink * params[i, k]
            size += params[i, k] * params[i, k]
    return float(risk + pessimism + modelled + 0.5 * shrink * size)


@compiled
def replay_steps(
    slots: Ints, values: Floats, offsets: Ints, played: Ints, residuals: Floats, inverse: Floats, control: Floats,
    alpha: Any, penalty: PenaltyNumbers, shrink: float, place: Ints, L: int,
    weights: Floats, first: Floats, second: Floats, done: int, steps: int, step_size: float,
) -> None:  # fmt: skip
    """Adam steps on these rows. Only the features that occur in them move: a step costs O(nonzeros · K).

    slots are renumbered in place. place [slots ≥] holds zeros, and does so again afterwards. weights and both moments
    [slots ≥, K]; done: steps taken before.
    """
    used = np.empty(len(slots) + 1, np.int64)
    used[0] = 0
    m = 1
    for j in range(len(slots)):
        i = slots[j]
        if place[i] == 0:
            place[i], used[m] = m, i
            m += 1
        slots[j] = place[i]
    K, n = weights.shape[1], len(offsets) - 1
    own = np.empty((3, m, K), np.float32)
    for u in range(m):
        place[used[u]] = 0
        for k in range(K):
            own[0, u, k], own[1, u, k], own[2, u, k] = weights[used[u], k], first[used[u], k], second[used[u], k]
    W, G, P = np.zeros((m, L), np.float32), np.empty((m, L), np.float32), np.empty((n, L), np.float32)
    room, gradient = np.empty(n, np.float32), np.empty((m, K), np.float32)
    for step in range(done + 1, done + steps + 1):
        sparse_objective(
            own[0], slots, values, offsets, played, residuals, inverse, control, alpha, penalty, shrink,
            W, P, room, G, gradient,
        )  # fmt: skip
        flat = own.reshape(3, -1)
        adam_step(flat[0], gradient.reshape(-1), flat[1], flat[2], step, step_size)
    for u in range(m):
        for k in range(K):
            weights[used[u], k], first[used[u], k], second[used[u], k] = own[0, u, k], own[1, u, k], own[2, u, k]
