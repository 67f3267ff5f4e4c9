"""Linear softmax, one weight vector per action: π(a|x) ∝ exp(w_a · φ(x))."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from o2pl.compiled import compiled, exp
from o2pl.policies.sampling import draw_rows
from o2pl.protocols import Array, Floats, Ints, Pullback
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class Softmax:
    """Parameters: W [K, d], flattened."""

    n_actions: int

    def n_params(self, n_features: int) -> int:
        return self.n_actions * n_features

    def init(self, n_features: int) -> Floats:
        return np.zeros(self.n_params(n_features))

    def choices(self, features: Floats, actions: Array | None = None) -> float:
        return float(self.n_actions)

    def forward(self, params: Floats, features: Floats, actions: Array | None = None) -> tuple[Floats, Pullback]:
        phi = np.ascontiguousarray(features.T)  # feature-major [d, n]
        W = params.reshape(self.n_actions, -1).astype(phi.dtype)
        P = np.empty((self.n_actions, phi.shape[1]), phi.dtype)  # π, [K, n]
        softmax(W, phi, P)

        def pullback(cotangent: Floats) -> Floats:
            if actions is None:
                D = np.array(cotangent.T, P.dtype, order="C")  # becomes ∂/∂logits, [K, n]
                pull_to_logits(P, D)
            else:
                D = np.empty_like(P)
                pull_played_to_logits(P, np.ones_like(P[0]), actions, cotangent.astype(P.dtype), D)
            return (D @ phi.T).reshape(-1).astype(np.float64)

        log_prob = np.log(P.T if actions is None else P[actions, np.arange(P.shape[1])])
        return log_prob, pullback

    def probabilities(self, params: Floats, features: Floats, sharpness: float = 1.0) -> Floats:
        """π(·|x) with logits times `sharpness`, [n, K], double precision; a row's result is its own alone."""
        W = params.reshape(self.n_actions, -1).astype(features.dtype)
        out = np.empty((len(features), self.n_actions))
        acting_probabilities(np.ascontiguousarray(features), W, sharpness, out)
        return out

    def sample(self, params: Floats, features: Floats, uniforms: Floats) -> tuple[Ints, Floats]:
        return draw_rows(self.probabilities(params, features), uniforms)


@compiled
def softmax(W: Floats, phi: Floats, P: Floats) -> None:
    """P = softmax over actions of W phi. W [K, d], phi [d, n], P [K, n]; the loops run along the rows."""
    n = P.shape[1]
    scale, played = np.empty(n, P.dtype), np.empty(n, P.dtype)
    exponentials(W, phi, np.zeros(n, np.int32), P, scale, played)
    for k in range(len(P)):
        for r in range(n):
            P[k, r] *= scale[r]


@compiled
def exponentials(W: Floats, phi: Floats, actions: Ints, P: Floats, scale: Floats, played: Floats) -> None:
    """P = exp(W phi - its column's maximum), so that π = P scale, and played = π(a_s|x_s). P [K, n], scale, played [n]

    A comparison with the action vectorises, an indexed load does not.
    """
    np.dot(W, phi, P)
    K, n = P.shape
    top = played  # to begin with
    for r in range(n):
        scale[r], top[r] = 0, P[0, r]
    for k in range(1, K):
        for r in range(n):
            top[r] = max(top[r], P[k, r])
    for k in range(K):
        for r in range(n):
            P[k, r] = exp(P[k, r] - top[r])
            scale[r] += P[k, r]
    for r in range(n):
        scale[r] = 1 / scale[r]
        played[r] = 0
    for k in range(K):
        for r in range(n):
            played[r] += P[k, r] * scale[r] if actions[r] == k else np.float32(0)


@compiled
def pull_played_to_logits(P: Floats, scale: Floats, actions: Ints, cotangent: Floats, out: Floats) -> None:
    """out = c_s (1{a = a_s} - π(a|x_s)), π = P scale: ∂/∂logits of Σ c_s log π(a_s|x_s). [K, n]; out is not P."""
    K, n = P.shape
    for k in range(K):
        for r in range(n):
            hit = cotangent[r] if actions[r] == k else np.float32(0)
            out[k, r] = hit - cotangent[r] * (P[k, r] * scale[r])


@compiled
def pull_to_logits(P: Floats, C: Floats) -> None:
    """C, the cotangent of all K log-probabilities, becomes C - π Σ_a C_a: that of the logits. [K, n]"""
    K, n = P.shape
    total = np.zeros(n, P.dtype)
    for k in range(K):
        for r in range(n):
            total[r] += C[k, r]
    for k in range(K):
        for r in range(n):
            C[k, r] -= P[k, r] * total[r]


@compiled
def acting_row(features: Floats, W: Floats, sharpness: float, out: Floats) -> None:
    """out = π(·|x) with logits times `sharpness`, in double precision. features [d], W [K, d], out [K]"""
    K, d = W.shape
    top = -math.inf
    for k in range(K):
        logit = np.float32(0)
        for i in range(d):
            logit += W[k, i] * features[i]
        out[k] = sharpness * logit
        top = max(top, out[k])
    total = 0.0
    for k in range(K):
        out[k] = math.exp(out[k] - top)
        total += out[k]
    for k in range(K):
        out[k] /= total


@compiled
def acting_probabilities(features: Floats, W: Floats, sharpness: float, out: Floats) -> None:
    """`acting_row` for many rows: features [n, d], out [n, K]. A row's result is its own alone."""
    for r in range(len(features)):
        acting_row(features[r], W, sharpness, out[r])
