"""Scores as sums of terms: a constant, the inputs, and their pairwise products.

A member's score of an action is a polynomial of its standardised inputs, z = clip((x - shift) scale):

    f = c + Σ_i l_i z_i + Σ_{i ≤ j} q_ij z_i z_j

z = 0 is the average context: numbers at their mean, indicators (columns of 0 and 1) at 0. A term measures how much it
moves the score away from there. c is the score of the average context.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from o2pl.data.contexts import SparseRows, are_sparse_contexts
from o2pl.features.hashing import CLIP
from o2pl.features.plan import FeaturePlan
from o2pl.features.standardise import Standardise
from o2pl.features.user_items import HEAD, UserItems
from o2pl.policies.actionwise import ActionWise
from o2pl.policies.gaussian import Gaussian
from o2pl.policies.softmax import Softmax
from o2pl.policies.sparse import SparseSoftmax
from o2pl.protocols import Floats, Ints, State

INTERCEPT = "intercept"


class Term(NamedTuple):
    """Contribution of one input, one product of two, or the intercept to a difference of scores."""

    name: str
    features: tuple[str, ...]  # its features: none, one or two
    adds: float


class Sight(NamedTuple):
    """A member's scaling of inputs, and the polynomials of its scores, one per weight vector (A in all)."""

    shift: Floats  # [d]
    scale: Floats  # [d]
    clip: float
    constant: Floats  # [A]
    linear: Floats  # [A, d]
    products: Floats  # [A, d, d], upper triangle with diagonal; [A, 0, 0] without products

    def standardised(self, row: Floats) -> Floats:
        """Return z of a row, [d], computed in single precision as when acting."""
        z = (np.asarray(row, np.float32) - self.shift) * self.scale
        return np.clip(z, -np.float32(self.clip), np.float32(self.clip)).astype(np.float64)

    def parts(self, action: int, row: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the constant [1], the linear terms [d] and the products [d, d] of one score."""
        z = self.standardised(row)
        products = self.products[action]
        squares = np.outer(z, z) if products.size else products
        return self.constant[action : action + 1], self.linear[action] * z, products * squares

    def per_unit(self) -> tuple[Floats, Floats, Floats]:
        """Return the coefficients of raw inputs: standardisation is undone (valid where nothing is clipped).

        q z_i z_j = q s_i s_j (x_i x_j - m_j x_i - m_i x_j + m_i m_j), s the scale and m the shift.
        """
        s, m = self.scale.astype(np.float64), self.shift.astype(np.float64)
        linear, constant = self.linear * s, self.constant - (self.linear * s) @ m
        products = self.products
        if products.shape[1]:
            products = products * np.outer(s, s)
            both = products + products.transpose(0, 2, 1)  # the diagonal counts twice: x² - 2 m x + m²
            linear = linear - both @ m
            constant = constant + (products @ m) @ m
        return constant, linear, products


def terms_of_plan(plan: FeaturePlan, weights: Floats) -> Sight:
    """Return the polynomials of fused features. weights [A, width]

    Products of directions D of the inputs are products of the inputs: (Dᵀz)ᵀ Q (Dᵀz) = zᵀ (D Q Dᵀ) z.
    """
    W = weights.astype(np.float64)
    d, first = len(plan.shift), plan.intercept
    constant = W[:, 0].copy() if plan.intercept else np.zeros(len(W))
    products = np.empty((len(W), 0, 0))
    if len(plan.product_shift):
        own = W[:, first + d :] * plan.product_scale.astype(np.float64)
        constant -= own @ plan.product_shift.astype(np.float64)
        m = plan.directions.shape[1] or d
        products = np.zeros((len(W), m, m))
        products[:, *np.triu_indices(m)] = own
        if plan.directions.shape[1]:
            D = plan.directions.astype(np.float64)
            whole = D @ products @ D.T
            products = np.triu(whole) + np.triu(whole.transpose(0, 2, 1), 1)
    return Sight(plan.shift, plan.scale, float(plan.clip), constant, W[:, first : first + d], products)


def user_items_terms(features: UserItems, state: State, weights: Floats) -> Sight:
    """Return the polynomials of users and items. The first column is the list slot, with one effect for all items."""
    head, cross = features.weights(state, weights.astype(np.float64))
    d, users = len(state["shift"]), features.shared
    products = np.zeros((1, 1 + d, 1 + d))
    products[0, 1 : 1 + users, 1 + users :] = cross
    linear = np.concatenate([[0.0], head[HEAD:]])[None]
    shift, scale = (np.concatenate([[0], state[name]]).astype(np.float32) for name in ("shift", "scale"))
    return Sight(shift, scale, Standardise().clip, head[:1].copy(), linear, products)


def dense_terms(member: Any) -> Sight | None:
    """Return a member's polynomials on numeric rows; None if its scores are not polynomials."""
    policy, params = member.policy, member.params
    if isinstance(member.features, UserItems):
        return user_items_terms(member.features, member.seen, params)
    if member.plan is None or not isinstance(policy, Softmax | ActionWise | Gaussian):
        return None
    if isinstance(policy, Gaussian):
        params = policy.split(params)[0]
    return terms_of_plan(member.plan, params.reshape(getattr(policy, "n_actions", 1), -1))


# -- the difference of two scores, term by term


class Compared(NamedTuple):
    """Two actions in one context."""

    inputs: Any  # rows of the context, [n, d] or SparseRows: one, or one per action of a set
    sets: bool
    first: int
    second: int
    names: Any  # a `Named` per column; for hashed rows per entry, row by row


@singledispatch
def terms_of(policy: object, member: object, compared: Compared) -> list[Term] | None:
    """Return the terms of a member's scores[first] - scores[second]; None if its scores cannot be decomposed.

    To support other policies, `@terms_of.register` a function for them, such as integrated gradients.
    """
    return None


@terms_of.register
def _(policy: Softmax, member: Any, compared: Compared) -> list[Term] | None:
    seen, row = dense_terms(member), compared.inputs[0]
    if seen is None:
        return None
    return _term_differences(compared.names, seen.parts(compared.first, row), seen.parts(compared.second, row))


@terms_of.register
def _(policy: ActionWise, member: Any, compared: Compared) -> list[Term] | None:
    rows = compared.inputs
    if are_sparse_contexts(rows):
        return _sparse_terms(member, compared, member.params[:, None], (0, 0))
    seen = dense_terms(member)
    if seen is None:
        return None
    return _term_differences(compared.names, seen.parts(0, rows[compared.first]), seen.parts(0, rows[compared.second]))


@terms_of.register
def _(policy: SparseSoftmax, member: Any, compared: Compared) -> list[Term] | None:
    W = member.params.reshape(-1, policy.n_actions)
    return _sparse_terms(member, compared, W, (compared.first, compared.second))


def _term_differences(names: Any, first: tuple[Floats, ...], second: tuple[Floats, ...]) -> list[Term]:
    constant, linear, products = (a - b for a, b in zip(first, second, strict=True))
    found = [Term(INTERCEPT, (), float(constant[0]))]
    found += [Term(one.name, one.features, float(adds)) for one, adds in zip(names, linear, strict=True)]
    for i, j in zip(*np.nonzero(products), strict=True):
        own, other = names[i], names[j]
        name = f"{own.name}²" if i == j else f"{own.name} × {other.name}"
        found.append(Term(name, tuple(dict.fromkeys(own.features + other.features)), float(products[i, j])))
    return found


def _sparse_terms(member: object, compared: Compared, W: Floats, columns: tuple[int, int]) -> list[Term]:
    """Return the terms of hashed rows, entries added up by name. W [slots, K]"""
    sets, rows = compared.sets, compared.inputs
    adds: dict[str, tuple[tuple[str, ...], float]] = {}
    for sign, place, column in zip((1, -1), (compared.first, compared.second), columns, strict=True):
        row = place if sets else 0
        slots, values = hashed_terms(member, rows[row : row + 1])
        known = (slots > 0) & (slots < len(W))
        parts = np.where(known, W[np.where(known, slots, 0), column] * values, 0.0)
        for named, part in zip(compared.names[row], parts.tolist(), strict=True):
            features, sum_so_far = adds.get(named.name, (named.features, 0.0))
            adds[named.name] = features, sum_so_far + sign * part
    constant = float(W[0, columns[0]] - W[0, columns[1]]) if len(W) else 0.0
    return [Term(INTERCEPT, (), constant), *(Term(name, *found) for name, found in adds.items())]


def hashed_terms(member: Any, row: SparseRows) -> tuple[Ints, Floats]:
    """Return the slots of a row's entries (0: not learned yet) and their scaled values."""
    slots = member.features.slot_of(member.seen)[row.indices]
    scale = member.seen["scale"]
    slots = np.where(slots < len(scale), slots, 0)
    values = (row.values - scale[slots, 0]) * scale[slots, 1]
    return slots, np.clip(values, -CLIP, CLIP).astype(np.float64)
