"""The linear softmax's objective and gradient in one pass over the rows, put together from the parts that define them.

The rows come in blocks whose features are made on the spot and stay in the first caches. Φ' is known only when all
rows have been seen, so a gradient is summed in two parts, that of the losses and that of the weights. The sums of a
panel of blocks are one term: the result is the same however many threads the panels are shared between.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from o2pl.compiled import compiled, compiled_for_threads
from o2pl.features.blocks import BLOCK, Recipe, as_they_are, fill
from o2pl.learners.threads import side_by_side
from o2pl.objectives.penalty import Phi, phi
from o2pl.objectives.pessimistic import Pessimistic
from o2pl.objectives.weights import clipped_sums, split_cotangent, weight_cotangent
from o2pl.oracles.lbfgs import LBFGS
from o2pl.oracles.quasi_newton import CONVERGED, EVALUATIONS, VALUE, Curvature, Pairs, advance, begin, descend
from o2pl.policies.softmax import exponentials, pull_played_to_logits
from o2pl.protocols import Floats, Ints, Solution

PANEL = 64  # blocks whose sums are one term
HELD = 32 * 2**20  # bytes of features that are kept from one evaluation to the next
_NO_CONTROL = np.empty((0, 1, 0), np.float32)
RISK, VARIANCE, MODELLED = range(3)  # places of a panel's sums before those of the gradient

PhiNumbers = tuple[float, float, float, float, float]  # (α or 0, t, log 1/δ, p, scale)


class Problem(NamedTuple):
    """What stays as it is while one log is solved. Rows beyond the last, which fill up a block, weigh nothing."""

    made: Recipe
    n: int
    actions: Ints  # [blocks, rows of a block], int32: as wide as the floats they are compared beside
    residuals: Floats  # [blocks, rows of a block]
    inverse_propensities: Floats  # [blocks, rows of a block]
    control: Floats  # m(x, a), [blocks, K, rows of a block], or empty
    baseline: Any  # which m is taken relative to
    alpha: Any
    penalty: PhiNumbers
    shrink: float
    held: Floats  # [as many blocks as are kept, width, rows of a block]


class Work(NamedTuple):
    """Room to work in, for one block; for several, with one more dimension in front."""

    P: Floats  # [K, rows], π but for `scale`
    D: Floats  # [K, rows], ∂/∂logits
    scale: Floats  # [rows]
    weights: Floats
    mean: Floats


@compiled
def softmax_objective(
    W: Floats, features: Floats, actions: Ints, residuals: Floats, inverse_propensities: Floats, alpha: Any,
    penalty: PhiNumbers, shrink: float, work: Work, gradient: Floats,
) -> float:  # fmt: skip
    """V(π_W) + shrink |W|²/2 of rows whose features are there, [d, n]; the gradient goes to `gradient`. W [K, d]"""
    n = len(actions)
    _weigh(W, features, actions, inverse_propensities, work)
    risk, variance = clipped_sums(work.weights, residuals, alpha)
    pessimism, slope = phi(variance / n, penalty[0], penalty[1], penalty[2], penalty[3], penalty[4])
    weight_cotangent(work.weights, residuals, alpha, slope, n)
    pull_played_to_logits(work.P, work.scale, actions, work.weights, work.D)
    np.dot(work.D, features.T, gradient)
    return float(risk / n + pessimism + _shrunk(W, shrink, gradient))


@compiled
def _weigh(W: Floats, features: Floats, actions: Ints, inverse_propensities: Floats, work: Work) -> None:
    """The policy and its weights π(a_s|x_s) / q_s."""
    weights = work.weights
    exponentials(W, features, actions, work.P, work.scale, weights)
    for r in range(len(weights)):
        weights[r] *= inverse_propensities[r]


@compiled
def _pull_control(control: Floats, baseline: Any, n: int, work: Work) -> float:
    """Σ_s Σ_a π (m - b); π (m - Σ_a π m) / n, its part of ∂/∂logits, is added to D. [K, rows]"""
    P, scale, mean, D = work.P, work.scale, work.mean, work.D
    K, rows = P.shape
    for r in range(rows):
        mean[r] = 0
    for k in range(K):
        for r in range(rows):
            mean[r] += P[k, r] * scale[r] * (control[k, r] - baseline)
    share = np.float32(1 / n)
    for k in range(K):
        for r in range(rows):
            D[k, r] += P[k, r] * scale[r] * ((control[k, r] - baseline - mean[r]) * share)
    total = 0.0
    for r in range(rows):
        total += mean[r]
    return total


@compiled
def _shrunk(W: Floats, shrink: float, gradient: Floats) -> float:
    """shrink |W|²/2; its gradient is added."""
    size = 0.0
    for k in range(W.shape[0]):
        for i in range(W.shape[1]):
            gradient[k, i] += shrink * W[k, i]
            size += W[k, i] * W[k, i]
    return 0.5 * shrink * size


@compiled_for_threads
def panel_sums(W: Floats, problem: Problem, panel: int, first_time: bool, sums: Floats) -> None:
    """n R̂, n σ̂², the control's part and the gradient's two parts, of one panel's blocks. sums [3 + 2 K d]"""
    K, width = W.shape
    blocks, size = problem.actions.shape
    both = np.empty((2 * K, size), np.float32)  # ∂/∂logits for the losses and for the weights
    work = Work(
        np.empty((K, size), np.float32), both[:K], np.empty(size, np.float32), np.empty(size, np.float32),
        np.empty(size, np.float32),
    )  # fmt: skip
    features, gradient = np.empty((width, size), np.float32), np.empty((2 * K, width), np.float32)
    of_losses, of_weights = np.empty(size, np.float32), np.empty(size, np.float32)
    sums[:] = 0
    for b in range(panel * PANEL, min((panel + 1) * PANEL, blocks)):
        rows = min(size, problem.n - b * size)
        actions, residuals = problem.actions[b], problem.residuals[b]
        if b < len(problem.held) and not first_time:
            _copy(problem.held[b], features)
        else:
            fill(problem.made, b * size, rows, features)
            if b < len(problem.held):
                _copy(features, problem.held[b])
        _weigh(W, features, actions, problem.inverse_propensities[b], work)
        risk, variance = clipped_sums(work.weights[:rows], residuals[:rows], problem.alpha)
        split_cotangent(work.weights, residuals, problem.alpha, problem.n, of_losses, of_weights)
        pull_played_to_logits(work.P, work.scale, actions, of_weights, both[K:])
        pull_played_to_logits(work.P, work.scale, actions, of_losses, both[:K])
        sums[RISK] += risk
        sums[VARIANCE] += variance
        if problem.control.size:
            modelled = _pull_control(problem.control[b], problem.baseline, problem.n, work)
            sums[MODELLED] += modelled + (size - rows) * problem.baseline  # beyond the last row m is 0: m - b is not
        np.dot(both[:K], features.T, gradient[:K])
        np.dot(both[K:], features.T, gradient[K:])
        _add(sums[3:], gradient)


@compiled
def _copy(source: Floats, target: Floats) -> None:
    for i in range(source.shape[0]):
        for r in range(source.shape[1]):
            target[i, r] = source[i, r]


@compiled
def _add(total: Floats, part: Floats) -> None:
    flat = part.reshape(-1)
    for i in range(len(total)):
        total[i] += flat[i]


@compiled
def put_together(W: Floats, problem: Problem, sums: Floats, gradient: Floats) -> float:
    """The objective and its gradient from the sums of all panels. sums [panels, 3 + 2 K d]"""
    K, width = W.shape
    total = np.zeros(sums.shape[1])
    for panel in range(len(sums)):
        total += sums[panel]
    n, penalty = problem.n, problem.penalty
    pessimism, slope = phi(total[VARIANCE] / n, penalty[0], penalty[1], penalty[2], penalty[3], penalty[4])
    of_losses, of_weights = total[3 : 3 + K * width], total[3 + K * width :]
    for k in range(K):
        for i in range(width):
            gradient[k, i] = of_losses[k * width + i] + slope * of_weights[k * width + i]
    return float((total[RISK] + total[MODELLED]) / n + pessimism + _shrunk(W, problem.shrink, gradient))


@compiled
def one_panel(W: Floats, problem: Problem, first_time: bool, works: Work, gradient: Floats) -> float:
    """The objective of a log of one panel, all of whose features are kept; the gradient goes to `gradient`. [K, width]

    Probabilities are kept too, until Φ' is known: that saves the products with one of the gradient's two parts.
    """
    blocks, size = problem.actions.shape
    n, alpha, penalty = problem.n, problem.alpha, problem.penalty
    risk, variance, modelled = 0.0, 0.0, 0.0
    for b in range(blocks):
        rows = min(size, n - b * size)
        if first_time:
            fill(problem.made, b * size, rows, problem.held[b])
        work = Work(works.P[b], works.D[0], works.scale[b], works.weights[b], works.mean[0])
        _weigh(W, problem.held[b], problem.actions[b], problem.inverse_propensities[b], work)
        of_risk, of_variance = clipped_sums(work.weights[:rows], problem.residuals[b, :rows], alpha)
        risk += of_risk
        variance += of_variance
    pessimism, slope = phi(variance / n, penalty[0], penalty[1], penalty[2], penalty[3], penalty[4])
    part = gradient if blocks == 1 else np.empty_like(gradient)
    for b in range(blocks):
        work = Work(works.P[b], works.D[0], works.scale[b], works.weights[b], works.mean[0])
        weight_cotangent(work.weights, problem.residuals[b], alpha, slope, n)
        pull_played_to_logits(work.P, work.scale, problem.actions[b], work.weights, work.D)
        if problem.control.size:
            unseen = size - min(size, n - b * size)  # beyond the last row m is 0: m - b is not
            modelled += _pull_control(problem.control[b], problem.baseline, n, work) + unseen * problem.baseline
        np.dot(work.D, problem.held[b].T, part)
        if b == 0:
            gradient[:] = part
        else:
            gradient += part
    return float((risk + modelled) / n + pessimism + _shrunk(W, problem.shrink, gradient))


@compiled
def short_log(
    params: Floats, W: Floats, problem: Problem, first_time: bool, works: Work, gradient_of_W: Floats, gradient: Floats
) -> float:
    """`one_panel` at params [K d]; the gradient goes to `gradient` [K d]. The other arrays are to work in."""
    _to_matrix(params, W)
    value = one_panel(W, problem, first_time, works, gradient_of_W)
    K, d = W.shape
    for k in range(K):
        for i in range(d):
            gradient[k * d + i] = gradient_of_W[k, i]
    return value


@compiled
def _to_matrix(params: Floats, W: Floats) -> None:
    K, d = W.shape
    for k in range(K):
        for i in range(d):
            W[k, i] = params[k * d + i]


@compiled
def descend_short_log(
    params: Floats, pairs: Pairs, W: Floats, problem: Problem, first_time: bool, works: Work, gradient_of_W: Floats,
    iterations: int, tolerance: float,
) -> tuple[float, bool, int]:  # fmt: skip
    """L-BFGS in place on params [K d], all of it compiled; value, converged, evaluations."""
    descent = begin(params, pairs)
    done = False
    while not done:
        found = short_log(descent.there, W, problem, first_time, works, gradient_of_W, descent.gradient_there)
        first_time = False
        done = advance(descent, found, iterations, tolerance)
    return descent.numbers[VALUE], descent.counts[CONVERGED] == 1, descent.counts[EVALUATIONS]


class SoftmaxValue:
    """`policy_value` for a linear softmax, compiled: a function of the flat parameters for an oracle."""

    def __init__(self, features: Floats | Recipe, n_actions: int, objective: Pessimistic, l2: float) -> None:
        made = features if isinstance(features, Recipe) else as_they_are(features)
        penalty: Any = objective.penalty
        assert isinstance(penalty, Phi)
        n, width = len(objective.actions), made.width
        size = min(BLOCK, n)
        blocks = -(-n // size)
        panels, kept = -(-blocks // PANEL), min(blocks, HELD // (4 * width * size))
        control, baseline = _NO_CONTROL, 0.0
        if objective.control is not None:
            control, baseline = objective.control.blocks, float(np.asarray(objective.baseline))
        self._problem = Problem(
            made,
            n,
            _in_blocks(objective.actions, np.int32, blocks, size),
            _in_blocks(objective.residuals, np.float32, blocks, size),
            _in_blocks(1 / objective.propensities, np.float32, blocks, size),
            control,
            np.float32(baseline),
            np.float32(objective.alpha),
            phi_numbers(penalty),
            l2 / n,
            np.empty((kept, width, size), np.float32),
        )
        self._W, self._gradient = np.empty((2, n_actions, width), np.float32)
        self._first_time = True
        self._works: Work | None = None
        if panels == 1 and kept == blocks:
            matrices = np.empty((blocks + 1, n_actions, size), np.float32)
            columns = np.empty((2 * blocks + 1, size), np.float32)
            self._works = Work(matrices[1:], matrices[:1], columns[1 : blocks + 1], columns[blocks + 1 :], columns[:1])
        else:
            self._sums = np.empty((panels, 3 + 2 * n_actions * width))

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        first_time, self._first_time = self._first_time, False
        if self._works is not None:
            gradient = np.empty(len(params))
            fixed = self._W, self._problem, first_time, self._works, self._gradient
            return short_log(params, *fixed, gradient), gradient
        W, problem, sums = self._W, self._problem, self._sums
        _to_matrix(params, W)
        side_by_side(lambda panel: panel_sums(W, problem, panel, first_time, sums[panel]), len(sums))
        value = put_together(W, problem, sums, self._gradient)
        return value, self._gradient.reshape(-1).astype(np.float64)

    def descend(self, start: Floats, oracle: LBFGS, curvature: Curvature) -> Solution:
        """Minimise, within the oracle's iterations and tolerance."""
        if self._works is None:
            return descend(self, start, oracle, curvature)
        params, first_time, self._first_time = np.array(start, np.float64), self._first_time, False
        fixed = self._W, self._problem, first_time, self._works, self._gradient
        found = descend_short_log(params, curvature.pairs, *fixed, oracle.iterations, oracle.tolerance)
        return Solution(params, *found)


def _in_blocks(column: Any, dtype: Any, blocks: int, size: int) -> Any:
    """A column in rows of `size`, with zeros after its end. [blocks, size]"""
    if blocks == 1:
        return column.astype(dtype).reshape(1, size)
    out = np.zeros((blocks, size), dtype)
    out.reshape(-1)[: len(column)] = column
    return out


def phi_numbers(penalty: Phi) -> PhiNumbers:
    alpha = penalty.alpha if math.isfinite(penalty.alpha) else 0.0
    return alpha, float(penalty.t), penalty.log_inv_delta, float(penalty.p), float(penalty.scale)
