"""From scores to their cotangents, for JAX to trace: one definition for XLA's blocks and for the fused tiles.

Scores are Z [rows, columns], whose first K columns are actions. Each row has sums, such as its loss, and cotangents
D [rows, columns], one per part of the gradient. Rows that are not `inside` the log contribute 0. The result equals
`PessimisticLog.partial` and `OutcomeLog.partial`.

This file, `gpu_tiles` and `gpu_blocks` import only JAX.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

LOW = -1e30  # score of a missing action


class ObjectiveKind(NamedTuple):
    """The kind of an objective that programs are compiled for."""

    outcome: bool = False
    competing: bool = True  # for an outcome objective
    weighed: bool = False  # rows have weights
    controlled: bool = False  # there is a control variate

    @property
    def parts(self) -> int:
        """Number of parts of the gradient: the part of the variance is multiplied by Φ' later."""
        return 1 if self.outcome else 2

    @property
    def sums(self) -> int:
        return 2 if self.outcome else 3


class Rows(NamedTuple):
    """Columns of a log, one number per row; None if the kind does not need them."""

    actions: Any
    first: Any  # residuals, or rewards of an outcome objective
    second: Any = None  # 1 / propensities
    weights: Any = None
    control: Any = None  # m(x, a) - b, [rows, columns]


def gpu_parts(
    kind: ObjectiveKind, Z: Any, K: int, rows: Rows, inside: Any, numbers: Any
) -> tuple[list[Any], list[Any]]:
    """Return the sums of each row, [rows] each, and cotangents, [rows, columns] each. numbers: α, or τ"""
    columns = jax.lax.broadcasted_iota(jnp.int32, Z.shape, 1)
    Z = jnp.where(columns < K, Z, LOW)
    hit = columns == rows.actions[:, None]
    weigh = inside if rows.weights is None else jnp.where(inside, rows.weights, 0)
    if kind.outcome:
        return _gpu_outcome(kind, Z, K, hit, rows, weigh, numbers)
    return _gpu_pessimistic(kind, Z, hit, rows, weigh, numbers)


def _gpu_weighed(weigh: Any, values: Any) -> Any:
    return jnp.where(weigh, values, 0) if weigh.dtype == jnp.bool_ else weigh * values


def _gpu_pessimistic(
    kind: ObjectiveKind, Z: Any, hit: Any, rows: Rows, weigh: Any, alpha: Any
) -> tuple[list[Any], list[Any]]:
    powers = jnp.exp(Z - Z.max(axis=1)[:, None])
    pi = powers * (1 / powers.sum(axis=1))[:, None]
    ratios = jnp.where(hit, pi, 0).sum(axis=1) * rows.second
    centred = jnp.minimum(ratios, alpha) - 1
    live = jnp.where(ratios < alpha, ratios, 0)
    of_risk = _gpu_weighed(weigh, live * rows.first)
    of_variance = _gpu_weighed(weigh, 2 * live * (jnp.minimum(ratios, alpha) - 1))
    rest = jnp.where(hit, 1, 0) - pi
    sums = [_gpu_weighed(weigh, centred * rows.first), _gpu_weighed(weigh, centred * centred)]
    cotangents = [of_risk[:, None] * rest, of_variance[:, None] * rest]
    if not kind.controlled:
        return [*sums, jnp.zeros_like(sums[0])], cotangents
    mean = (pi * rows.control).sum(axis=1)
    cotangents[0] += _gpu_weighed(weigh[:, None], pi * (rows.control - mean[:, None]))
    return [*sums, _gpu_weighed(weigh, mean)], cotangents


def _gpu_outcome(
    kind: ObjectiveKind, Z: Any, K: int, hit: Any, rows: Rows, weigh: Any, tau: Any
) -> tuple[list[Any], list[Any]]:
    own, rewards = jnp.where(hit, Z, 0).sum(axis=1), rows.first
    if kind.competing and K > 1:
        rivals = jnp.where(hit, LOW, Z)
        top = rivals.max(axis=1)
        powers = jnp.exp(rivals - top[:, None])
        total = powers.sum(axis=1)
        z = own - top - jnp.log(total) - tau
    else:
        z = own + (tau if not kind.competing else -tau)
    m = 1 / (1 + jnp.exp(-z))
    c = _gpu_weighed(weigh, m - rewards)
    losses = jnp.maximum(z, 0) + jnp.log(1 + jnp.exp(-jnp.abs(z))) - rewards * z
    cotangent = jnp.where(hit, c[:, None], 0)
    if kind.competing and K > 1:
        cotangent = jnp.where(hit, cotangent, -powers * (c / total)[:, None])
    return [_gpu_weighed(weigh, losses), c], [cotangent]
