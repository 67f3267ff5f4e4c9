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
            D = np.empty_like(P)  # ∂/∂logits
            if actions is None:
                logit_cotangent(P, np.ascontiguousarray(cotangent.T, P.dtype), D)
            else:
                played_logit_cotangent(P, actions, cotangent.astype(P.dtype), D)
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
    np.dot(W, phi, P)
    K, n = P.shape
    top, total = P[0].copy(), np.zeros(n, P.dtype)
    for k in range(1, K):
        for r in range(n):
            top[r] = max(top[r], P[k, r])
    for k in range(K):
        for r in range(n):
            e = exp(P[k, r] - top[r])
            P[k, r] = e
            total[r] += e
    for k in range(K):
        for r in range(n):
            P[k, r] /= total[r]


@compiled
def played_logit_cotangent(P: Floats, actions: Ints, cotangent: Floats, D: Floats) -> None:
    """D = c_s (1{a = a_s} - π(a|x_s)): the pullback of c·log π(a_s|x_s) to the logits. D may be P. [K, n]"""
    K, n = P.shape
    for k in range(K):
        for r in range(n):
            D[k, r] = -cotangent[r] * P[k, r]
    for r in range(n):
        D[actions[r], r] += cotangent[r]


@compiled
def logit_cotangent(P: Floats, C: Floats, D: Floats) -> None:
    """D = C - π Σ_a C_a: the pullback of all K log-probabilities to the logits. D may be P or C. [K, n]"""
    K, n = P.shape
    total = np.zeros(n, P.dtype)
    for k in range(K):
        for r in range(n):
            total[r] += C[k, r]
    for k in range(K):
        for r in range(n):
            D[k, r] = C[k, r] - P[k, r] * total[r]


@compiled
def acting_probabilities(features: Floats, W: Floats, sharpness: float, out: Floats) -> None:
    """out = π(·|x) with logits times `sharpness`. features [n, d], W [K, d], out [n, K]"""
    n, d = features.shape
    K = len(W)
    for r in range(n):
        top = -math.inf
        for k in range(K):
            logit = np.float32(0)
            for i in range(d):
                logit += W[k, i] * features[r, i]
            out[r, k] = sharpness * logit
            top = max(top, out[r, k])
        total = 0.0
        for k in range(K):
            out[r, k] = math.exp(out[r, k] - top)
            total += out[r, k]
        for k in range(K):
            out[r, k] /= total
