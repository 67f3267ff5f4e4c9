"""Minibatch steps of neural policies, many per call: JAX differentiates the loss and runs Adam.

The rows of a batch are gathered here, so the compiled program does not depend on the length of the log. The loss of a
batch is that of the objective's `partial` and `combine`, with Φ replaced by its tangent:

    pessimistic  mean [(min(w, α) - 1) e + slope (min(w, α) - 1)² + Σ_a π (m - b)] + l2 |θ|²/2n
    outcome      mean [log(1 + exp z) - r z] + l2 |θ|²/2n (+ level_l2 τ²/2n)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from o2pl.data.contexts import ActionSets, as_contexts
from o2pl.kernels.gpu import find_gpu
from o2pl.kernels.registry import MemberProblem
from o2pl.objectives.outcome import OutcomeLog
from o2pl.objectives.penalty import Tangent
from o2pl.objectives.pessimistic import PolicyValue
from o2pl.oracles.adam import FIRST, FLOOR, SECOND
from o2pl.policies.jax_helpers import jax_module, jax_padded
from o2pl.protocols import Floats, Ints

_AT_A_TIME = 64  # steps per call
_FEW = 4  # minimum padded set size: fewer programs are compiled
_LOW = -1e30  # score of a missing action


def network_value(problem: MemberProblem) -> NetworkValue:
    """Return the value of a policy with `apply` over discrete actions."""
    extra = problem.objective.extra
    return NetworkValue(problem.policy, problem.featurise(), problem.log, extra, device=problem.device)


@dataclass(frozen=True, eq=False)
class NetworkValue(PolicyValue):
    """`PolicyValue` with many Adam steps per call."""

    device: str = "cpu"

    def adam(
        self, params: Floats, first: Floats, second: Floats, batches: Ints, sizes: Floats, done: int
    ) -> tuple[Floats, Floats, Floats, float]:
        """Take one Adam step per batch of row numbers, in single precision."""
        static = self._static()
        fixed = self._fixed()
        state: Any = (params, first, second)
        value: Any = np.nan
        for start in range(0, len(batches), _AT_A_TIME):
            rows = batches[start : start + _AT_A_TIME]
            own, real = sizes[start : start + _AT_A_TIME].astype(np.float32), len(rows)
            if real < _AT_A_TIME:  # padding: steps of size 0, not counted
                rows = np.concatenate([rows, np.broadcast_to(rows[:1], (_AT_A_TIME - real, rows.shape[1]))])
                own = np.concatenate([own, np.full(_AT_A_TIME - real, -1, np.float32)])
            with jax_module().default_device(find_gpu(self.device)):
                state, value = network_program(static)(
                    state, self._columns(rows, static), own, np.float32(done + start), fixed
                )
        moved, one, two = (np.array(each) for each in state)
        return moved, one, two, float(value)

    def _static(self) -> Static:
        log, outcome = self.log, isinstance(self.log, OutcomeLog)
        widest = 0
        if as_contexts(self.features).items is not None:
            widest = jax_padded(int(self.features.sizes.max(initial=1)), _FEW)
        return Static(
            self.policy, outcome, bool(outcome and log.competing), widest,
            not outcome and log.control is not None, log.weights is not None,
        )  # fmt: skip

    def _fixed(self) -> Floats:
        """Return the constants of the loss: n / Σ weights, l2 / size; then level_l2 / size, or α, b and the tangent."""
        log = self.log
        head = [len(log.actions) / log.size, log.l2 / log.size]
        if isinstance(log, OutcomeLog):
            return np.array([*head, log.level_l2 / log.size], np.float32)
        assert isinstance(log.penalty, Tangent)  # `Minibatch` minimises the majorant
        at, value, slope = log.penalty
        baseline = log.baseline if log.control is not None else 0.0
        alpha = min(log.alpha, np.finfo(np.float32).max)
        return np.array([*head, alpha, baseline, slope, value - slope * at], np.float32)

    def _columns(self, rows: Ints, static: Static) -> dict[str, Any]:
        """Return the columns of these rows that the loss needs, [steps, batch, …]."""
        log = self.log
        columns: dict[str, Any] = {"actions": log.actions[rows].astype(np.int32)}
        if as_contexts(self.features).items is not None:
            columns |= _network_sets(self.features, rows, columns["actions"], static)
        else:
            columns["x"] = self.features[rows].astype(np.float32, copy=False)
        if static.weighed:
            columns["weights"] = log.weights[rows].astype(np.float32)
        if static.outcome:
            columns["rewards"] = log.rewards[rows].astype(np.float32)
            return columns
        with np.errstate(over="ignore"):
            inverse = np.minimum(1 / log.propensities[rows], np.finfo(np.float32).max)
        columns |= {"residuals": log.residuals[rows].astype(np.float32), "inverse": inverse.astype(np.float32)}
        if static.controlled:
            columns["control"] = np.moveaxis(log.control.by_action[:, rows], 0, -1).astype(np.float32)
        return columns


def _network_sets(sets: ActionSets, rows: Ints, actions: Ints, static: Static) -> dict[str, Any]:
    """Return the feature rows of all actions, padded to the largest set; for independent actions, the played one."""
    first, sizes = sets.offsets[rows], sets.sizes[rows]
    if static.outcome and not static.competing:
        values = sets.values[first + actions][..., None, :]
        return {"x": values.astype(np.float32, copy=False), "sizes": np.ones_like(actions), "actions": 0 * actions}
    places = np.minimum(np.arange(static.widest), sizes[..., None] - 1) + first[..., None]
    return {"x": sets.values[places].astype(np.float32, copy=False), "sizes": sizes.astype(np.int32)}


@dataclass(frozen=True)
class Static:
    """What a program is compiled for, in addition to shapes."""

    policy: Any
    outcome: bool
    competing: bool
    widest: int  # largest number of actions of a set; 0: fixed number
    controlled: bool
    weighed: bool


@lru_cache(maxsize=64)
def network_program(static: Static) -> Any:
    jax = jax_module()
    jnp = jax.numpy

    def scores(params: Any, batch: Any) -> Any:
        """Return the scores, [batch, K], and which of them exist."""
        x = batch["x"]
        if not static.widest:
            return static.policy.apply(params, x), True
        flat = static.policy.apply(params, x.reshape(-1, x.shape[-1])).reshape(x.shape[:-1])
        there = jnp.arange(x.shape[1]) < batch["sizes"][:, None]
        return jnp.where(there, flat, _LOW), there

    def outcome(params: Any, batch: Any) -> Any:
        """Return the losses of the rows, [batch]."""
        theta, tau = params[:-1], params[-1]
        f, there = scores(theta, batch)
        hit = jnp.arange(f.shape[1]) == batch["actions"][:, None]
        own = jnp.where(hit, f, 0).sum(axis=1)
        if not static.competing:
            z = own + jax.lax.stop_gradient(tau)
        else:
            rivals = jnp.where(hit | jnp.logical_not(there), _LOW, f)
            alone = rivals.max(axis=1) <= _LOW  # no other actions: their sum is that of one with score 0
            z = own - jnp.where(alone, 0, jax.nn.logsumexp(rivals, axis=1)) - tau
        return jax.nn.softplus(z) - batch["rewards"] * z

    def pessimistic(params: Any, batch: Any, alpha: Any, baseline: Any, slope: Any) -> Any:
        f, _ = scores(params, batch)
        log_pi = jax.nn.log_softmax(f, axis=1)
        hit = jnp.arange(f.shape[1]) == batch["actions"][:, None]
        weights = jnp.exp(jnp.where(hit, log_pi, 0).sum(axis=1)) * batch["inverse"]
        centred = jnp.where(weights < alpha, weights, alpha) - 1
        losses = centred * batch["residuals"] + slope * centred**2
        if static.controlled:
            losses += (jnp.exp(log_pi) * (batch["control"] - baseline)).sum(axis=1)
        return losses

    def loss(params: Any, batch: Any, fixed: Any) -> Any:
        share, shrink = fixed[0], fixed[1]
        theta = params
        if static.outcome:
            losses, theta = outcome(params, batch), params[:-1]
            level = 0.5 * fixed[2] * params[-1] ** 2 if static.competing else 0.0
        else:
            losses, level = pessimistic(params, batch, fixed[2], fixed[3], fixed[4]), fixed[5]
        if static.weighed:
            losses = losses * batch["weights"]
        return share * losses.mean() + 0.5 * shrink * theta @ theta + level

    def run(state: Any, columns: Any, sizes: Any, done: Any, fixed: Any) -> Any:
        def step(carry: Any, each: Any) -> Any:
            (params, first, second), count, last = carry
            batch, size = each
            value, gradient = jax.value_and_grad(loss)(params, batch, fixed)
            new_first, new_second = FIRST * first + (1 - FIRST) * gradient, SECOND * second + (1 - SECOND) * gradient**2
            at = count + 1
            rate, correction = size / (1 - FIRST**at), 1 / (1 - SECOND**at)
            moved = params - rate * new_first / (jnp.sqrt(new_second * correction) + FLOOR)
            real = size >= 0
            kept = [jnp.where(real, a, b) for a, b in ((moved, params), (new_first, first), (new_second, second))]
            return (tuple(kept), count + real, jnp.where(real, value, last)), None

        (state, _, value), _ = jax.lax.scan(step, (state, done, jnp.float32(0)), (columns, sizes))
        return state, value

    return jax.jit(run)
