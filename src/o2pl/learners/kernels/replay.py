"""The paper's flat replay for a linear softmax, compiled: deciding, logging and learning without Python in between.

A call from Python pays for each array it hands over, more than a decision costs. So a learner's arrays are known by
their addresses, kept in one array, the handle; nothing is allocated in a round. `rounds`, a whole simulation, calls the
same `acting`, `write` and `learn` that one call per round does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.compiled import array_at, compiled
from o2pl.features.standardise import absorb, set_scale, standardise_row
from o2pl.learners.kernels.softmax import Work, softmax_objective
from o2pl.learners.settings import L2, baseline_at, clip_at, penalty_at
from o2pl.learners.stream import AHEAD
from o2pl.oracles.adam import adam_step
from o2pl.policies.sampling import draw_one
from o2pl.policies.softmax import acting_row
from o2pl.protocols import Array, Floats, Ints

# Places in the vector of settings, after those of `Settings.numbers`.
STEP_SIZE, SHARPNESS, EXPLORATION, FEATURE_CLIP = range(7, 11)
# Places in the vector of counters, and in the plan.
LEARNED, CHECKPOINT, STEPS = range(3)
WINDOW, EVERY, STEPS_AT_ONCE, WARM_START = range(4)

UNUSABLE, OUT_OF_CHANCE = -1, -2  # why there is no action: the context, or the numbers drawn ahead are used up

# The arrays that a handle knows, by name, and what they hold; sizes follow.
ARRAYS = (
    "contexts", "actions", "losses", "propensities",  # the log's buffers
    "count", "mean", "squares", "binary", "shift", "scale",  # of the standardisation
    "W", "first", "second",  # weights and Adam's moments, [K, width]
    "total", "counters", "numbers", "plan",  # Σ losses [1]; see above
    "ring", "ring_actions", "ring_losses", "ring_inverse",  # the window, feature-major, the newest row over the oldest
    "features", "P", "D", "room", "gradient", "row", "pi",  # to work in
    "uniforms", "place",  # chance, drawn ahead
)  # fmt: skip
(
    _CONTEXTS, _ACTIONS, _LOSSES, _PROPENSITIES, _COUNT, _MEAN, _SQUARES, _BINARY, _SHIFT, _SCALE, _W, _FIRST, _SECOND,
    _TOTAL, _COUNTERS, _NUMBERS, _PLAN, _RING, _RING_ACTIONS, _RING_LOSSES, _RING_INVERSE, _FEATURES, _P, _D, _ROOM,
    _GRADIENT, _ROW, _PI, _UNIFORMS, _PLACE,
) = range(len(ARRAYS))  # fmt: skip
SIZES = ("inputs", "width", "actions", "standardised", "settings")
_INPUTS, _WIDTH, _K, _STANDARDISED, _SETTINGS = range(len(ARRAYS), len(ARRAYS) + len(SIZES))


@compiled
def single(handle: Ints, place: int, shape: Any) -> Any:
    return array_at(handle[place], shape, np.float32)


@compiled
def double(handle: Ints, place: int, shape: Any) -> Any:
    return array_at(handle[place], shape, np.float64)


@compiled
def whole(handle: Ints, place: int, shape: Any) -> Any:
    return array_at(handle[place], shape, np.int64)


@compiled
def decide(context: Floats, handle: Ints) -> tuple[int, float]:
    """Draw an action and tell its probability; an action below 0 says why there is none. context [d]"""
    if len(context) != handle[_INPUTS] or not all_finite(context):
        return UNUSABLE, 0.0
    place = whole(handle, _PLACE, 1)
    if place[0] == AHEAD:
        return OUT_OF_CHANCE, 0.0
    pi = double(handle, _PI, handle[_K])
    acting(context, handle, pi)
    action = draw_one(pi, double(handle, _UNIFORMS, AHEAD)[place[0]])
    place[0] += 1
    return action, pi[action]


@compiled
def acting_rows(contexts: Floats, handle: Ints, out: Floats) -> None:
    """The acting policy for many contexts. contexts [n, d], out [n, K]"""
    for r in range(len(contexts)):
        acting(contexts[r], handle, out[r])


@compiled
def acting(context: Floats, handle: Ints, pi: Floats) -> None:
    """pi = the acting policy. context [d], pi [K]"""
    d, width, K = handle[_INPUTS], handle[_WIDTH], handle[_K]
    shift, scale = single(handle, _SHIFT, d), single(handle, _SCALE, d)
    W, numbers = single(handle, _W, (K, width)), double(handle, _NUMBERS, handle[_SETTINGS])
    row = single(handle, _ROW, width)  # its first entry is 1 where there is an intercept
    standardise_row(context, shift, scale, np.float32(numbers[FEATURE_CLIP]), row[width - len(shift) :])
    acting_row(row, W, numbers[SHARPNESS], pi)
    if numbers[EXPLORATION] > 0:
        for k in range(K):
            pi[k] = min((1 - numbers[EXPLORATION]) * pi[k] + numbers[EXPLORATION] / K, 1.0)


@compiled
def take(context: Floats, handle: Ints, action: int, loss: float, propensity: float, n: int) -> bool:
    """Write row n of the log and learn if it is time; False, and nothing written, if the context is unusable."""
    if len(context) != handle[_INPUTS] or not all_finite(context):
        return False
    write(context, handle, action, loss, propensity, n)
    if n + 1 >= whole(handle, _COUNTERS, 3)[CHECKPOINT]:
        learn(handle, n + 1)
    return True


@compiled
def write(context: Floats, handle: Ints, action: int, loss: float, propensity: float, n: int) -> None:
    contexts = single(handle, _CONTEXTS, (n + 1, handle[_INPUTS]))
    for i in range(len(context)):
        contexts[n, i] = context[i]
    whole(handle, _ACTIONS, n + 1)[n] = action
    double(handle, _LOSSES, n + 1)[n] = loss
    double(handle, _PROPENSITIES, n + 1)[n] = propensity


@compiled
def all_finite(row: Floats) -> bool:
    total = np.float32(0)
    for i in range(len(row)):
        total += np.float32(row[i]) * np.float32(0)  # 0 unless an entry is NaN, infinite or too large for float32
    return total == 0  # type: ignore[no-any-return]  # numpy's bool here, a plain one when compiled


@compiled
def into_ring(handle: Ints, start: int, n: int) -> None:
    """Rows start … n of the log go where the window keeps them."""
    d, window = handle[_INPUTS], whole(handle, _PLAN, 4)[WINDOW]
    contexts, actions = single(handle, _CONTEXTS, (n, d)), whole(handle, _ACTIONS, n)
    losses, propensities = double(handle, _LOSSES, n), double(handle, _PROPENSITIES, n)
    ring, ring_actions = single(handle, _RING, (d, window)), array_at(handle[_RING_ACTIONS], window, np.int32)
    ring_losses, ring_inverse = double(handle, _RING_LOSSES, window), single(handle, _RING_INVERSE, window)
    for s in range(max(start, n - window), n):
        slot = s % window
        for i in range(d):
            ring[i, slot] = contexts[s, i]
        ring_actions[slot], ring_losses[slot], ring_inverse[slot] = actions[s], losses[s], 1 / propensities[s]


@compiled
def learn(handle: Ints, n: int) -> None:
    """Absorb the rows since the last checkpoint, then Adam steps on the latest window; everything in place."""
    d, width, K = handle[_INPUTS], handle[_WIDTH], handle[_K]
    counters, plan = whole(handle, _COUNTERS, 3), whole(handle, _PLAN, 4)
    numbers, total = double(handle, _NUMBERS, handle[_SETTINGS]), double(handle, _TOTAL, 1)
    shift, scale = single(handle, _SHIFT, d), single(handle, _SCALE, d)
    if handle[_STANDARDISED]:
        contexts = single(handle, _CONTEXTS, (n, d))
        count, binary = double(handle, _COUNT, 1), array_at(handle[_BINARY], d, np.bool_)
        mean, squares = double(handle, _MEAN, d), double(handle, _SQUARES, d)
        absorb(contexts[counters[LEARNED] : n], count, mean, squares, binary)
        set_scale(count, mean, squares, binary, shift, scale)
    losses = double(handle, _LOSSES, n)
    for s in range(counters[LEARNED], n):
        total[0] += losses[s]
    into_ring(handle, counters[LEARNED], n)
    window = plan[WINDOW]
    m = min(n, window)
    features, ring = single(handle, _FEATURES, (width, m)), single(handle, _RING, (d, window))
    window_features(ring, shift, scale, np.float32(numbers[FEATURE_CLIP]), features)
    room = single(handle, _ROOM, (4, m))
    residuals, baseline = room[3], baseline_at(numbers, total[0], float(n))
    ring_losses = double(handle, _RING_LOSSES, m)
    for r in range(m):
        residuals[r] = ring_losses[r] - baseline
    W, first = single(handle, _W, (K, width)), single(handle, _FIRST, K * width)
    second, gradient = single(handle, _SECOND, K * width), single(handle, _GRADIENT, (K, width))
    P, D = single(handle, _P, (K, m)), single(handle, _D, (K, m))
    work = Work(P, D, room[0], room[1], room[2])
    played, inverse = array_at(handle[_RING_ACTIONS], m, np.int32), single(handle, _RING_INVERSE, m)
    alpha, penalty = clip_at(numbers, float(m)), penalty_at(numbers, float(m))
    for _ in range(plan[STEPS_AT_ONCE]):
        softmax_objective(
            W, features, played, residuals, inverse, np.float32(alpha), penalty, numbers[L2] / m, work, gradient,
        )  # fmt: skip
        counters[STEPS] += 1
        adam_step(W.reshape(-1), gradient.reshape(-1), first, second, counters[STEPS], numbers[STEP_SIZE])
    counters[LEARNED] = n
    counters[CHECKPOINT] = max(n + plan[EVERY], plan[WARM_START])


@compiled
def window_features(ring: Floats, shift: Floats, scale: Floats, clip: Any, features: Floats) -> None:
    """Standardised, after a constant 1 where there is room for it. ring [d, window], features [width, m]"""
    d, (width, m) = len(ring), features.shape
    features[0] = 1  # where there is no intercept, the loop writes over it
    for i in range(d):
        of_ring, out, middle, steepness = ring[i], features[width - d + i], shift[i], scale[i]
        for r in range(m):
            out[r] = min(max((of_ring[r] - middle) * steepness, -clip), clip)


@compiled
def rounds(new_contexts: Floats, table: Floats, uniforms: Floats, handle: Ints, n: int) -> None:
    """A whole run: table [T, K] holds the loss of every action. The log's buffers have room for T more rows."""
    pi, counters = double(handle, _PI, handle[_K]), whole(handle, _COUNTERS, 3)
    for t in range(len(new_contexts)):
        acting(new_contexts[t], handle, pi)
        action = draw_one(pi, uniforms[t])
        write(new_contexts[t], handle, action, table[t, action], pi[action], n)
        n += 1
        if n >= counters[CHECKPOINT]:
            learn(handle, n)


def handle_of(arrays: dict[str, Array], sizes: dict[str, int]) -> Ints:
    """The arrays must stay where they are."""
    return np.array([arrays[name].ctypes.data for name in ARRAYS] + [sizes[name] for name in SIZES], np.int64)
