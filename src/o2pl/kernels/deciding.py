"""Decisions in one compiled call: contexts to features to scores to the acting policy to an action.

The members are packed into two arrays, since each array argument has a cost. Sums keep their order, in double
precision: a decision is bitwise the same alone and in a batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from o2pl.compiled import compiled_in_order, compiled_within
from o2pl.contexts.readers import all_finite
from o2pl.features.plan import FeaturePlan
from o2pl.policies.cells import draw_number
from o2pl.policies.sampling import acting_row, draw_one
from o2pl.protocols import Floats, Ints

LANES = 8  # scores computed at a time; rows of weights are padded to a multiple of it
_INPUTS, _MEMBERS, _ACTIONS, _WIDEST, _GROUPS = range(5)  # positions in the layout; then the members, group by group;
_AT, _FACTORS, _PROJECTED, _PRODUCTS, _INTERCEPT, _OWN = range(6)  # then those of each group, of `_OWN` members
_HEAD, _EACH = 5, 6
UNUSABLE = -1  # instead of an action: the context has a wrong length or a non-finite entry


class Packed:
    """Members with scores linear in planned features. Weights [K width]; K = 1 for sets and real-valued actions.

    Members with the same plan form a group: their features are computed once.
    """

    layout: Ints
    numbers: Floats
    _places: list[int]  # of the groups, among the numbers

    def __init__(self, plans: Sequence[FeaturePlan], weights: Sequence[Floats], before: Packed | None = None) -> None:
        """before: an earlier pack of the same members; unchanged parts are copied."""
        self._made_of = list(plans), list(weights)
        groups: dict[int, list[int]] = {}
        for member, plan in enumerate(plans):
            groups.setdefault(id(plan), []).append(member)
        firsts = [plans[own[0]] for own in groups.values()]
        self._shape = [*groups.values()], [_shape(plan) for plan in firsts], len(weights[0])
        known = before is not None and before._shape == self._shape
        if before is not None and known:
            self.layout, self._places, self.numbers = before.layout, before._places, before.numbers.copy()
        else:
            self._lay_out(len(plans))
        for place, own, plan in zip(self._places, groups.values(), firsts, strict=True):
            if before is None or not known or any(self._changed(m, before) for m in own):
                self._write(place, plan, [weights[m] for m in own])

    def _lay_out(self, members: int) -> None:
        """Make the layout, and room for the numbers, from the shapes of the groups."""
        groups, shapes, size = self._shape
        widths = [intercept + d + products for d, _, products, intercept in shapes]
        d, K, at = shapes[0][0], size // widths[0], 0
        layout = [d, members, K, max(widths), len(groups), *(member for own in groups for member in own)]
        self._places = []
        for own, width, (d, m, products, intercept) in zip(groups, widths, shapes, strict=True):
            layout += [at, m or d, int(m > 0), products, intercept, len(own)]
            self._places.append(at)
            at += 1 + 2 * d + d * _padded(m) + 2 * products + width * _padded(K * len(own))
        self.layout, self.numbers = np.array(layout), np.zeros(at)

    def _changed(self, member: int, before: Packed) -> bool:
        (plans, weights), (known, of) = self._made_of, before._made_of
        return plans[member] is not known[member] or weights[member] is not of[member]

    def _write(self, at: int, plan: FeaturePlan, weights: Sequence[Floats]) -> None:
        (d, m), p, numbers = plan.directions.shape, len(plan.product_shift), self.numbers
        numbers[at], at = plan.clip, at + 1
        numbers[at : at + d], numbers[at + d : at + 2 * d] = plan.shift, plan.scale
        at += 2 * d
        if p:
            numbers[at : at + d * _padded(m)].reshape(d, _padded(m))[:, :m] = plan.directions
            at += d * _padded(m)
            numbers[at : at + p], numbers[at + p : at + 2 * p] = plan.product_shift, plan.product_scale
            at += 2 * p
        width = plan.width
        K = len(weights[0]) // width
        columns = numbers[at : at + width * _padded(K * len(weights))].reshape(width, -1)
        for k, W in enumerate(weights):
            columns[:, k * K : (k + 1) * K] = W[: K * width].reshape(K, width).T

    def scores(self, contexts: Floats) -> Floats:
        """Return the scores of all members, [M, n, K]."""
        out = np.empty((self.layout[_MEMBERS], len(contexts), self.layout[_ACTIONS]))
        scores_of_rows(contexts, self.layout, self.numbers, out)
        return out


def _shape(plan: FeaturePlan) -> tuple[int, int, int, int]:
    """Return the numbers of inputs, of directions and of products, and whether there is an intercept."""
    return *plan.directions.shape, len(plan.product_shift), plan.intercept


def _padded(columns: int) -> int:
    """Round up to a multiple of LANES."""
    return -(-columns // LANES) * LANES


@compiled_within
def _single(context: Floats) -> Floats:
    """Convert to single precision, as stored in a log: only one version of the kernels is compiled."""
    out = np.empty(len(context), np.float32)
    for i in range(len(context)):
        out[i] = context[i]
    return out


@compiled_within
def _products(row: Floats, M: Floats, out: Floats) -> None:
    """Compute out = row · M. row [m], M [m, groups, LANES], out [groups, LANES]"""
    for g in range(M.shape[1]):
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        for i in range(len(row)):
            x, w = row[i], M[i, g]
            s0 += x * w[0]
            s1 += x * w[1]
            s2 += x * w[2]
            s3 += x * w[3]
            s4 += x * w[4]
            s5 += x * w[5]
            s6 += x * w[6]
            s7 += x * w[7]
        to = out[g]
        to[0], to[1], to[2], to[3], to[4], to[5], to[6], to[7] = s0, s1, s2, s3, s4, s5, s6, s7


@compiled_within
def _scores_of_row(context: Floats, layout: Ints, numbers: Floats, row: Floats, room: Floats, out: Floats) -> None:
    """Compute the scores of all members, out [M, K]. row [widest] and room [≥ padded] are work arrays."""
    d, K, done, first_group = layout[_INPUTS], layout[_ACTIONS], 0, _HEAD + layout[_MEMBERS]
    for group in range(layout[_GROUPS]):
        own = first_group + _EACH * group
        at, factors, products = layout[own + _AT], layout[own + _FACTORS], layout[own + _PRODUCTS]
        first = layout[own + _INTERCEPT]
        clip, shift, scale = numbers[at], numbers[at + 1 : at + 1 + d], numbers[at + 1 + d : at + 1 + 2 * d]
        at += 1 + 2 * d
        row[0] = 1.0  # overwritten by the loop if there is no intercept
        for i in range(d):
            x = (np.float64(context[i]) - shift[i]) * scale[i]
            row[first + i] = min(max(x, -clip), clip)
        width = first + d
        if products:
            multiplied = row[first:width]
            if layout[own + _PROJECTED]:
                groups = (factors + LANES - 1) // LANES
                size = d * groups * LANES
                directions = numbers[at : at + size].reshape(d, groups, LANES)
                _products(multiplied, directions, room[: groups * LANES].reshape(groups, LANES))
                at += size
                multiplied = room[:factors]
            made, place = row[width : width + products], 0
            less, times = numbers[at : at + products], numbers[at + products : at + 2 * products]
            for i in range(factors):
                x = multiplied[i]
                for j in range(i, factors):
                    made[place] = (x * multiplied[j] - less[place]) * times[place]
                    place += 1
            width += products
            at += 2 * products
        groups = (K * layout[own + _OWN] + LANES - 1) // LANES
        W = numbers[at : at + width * groups * LANES].reshape(width, groups, LANES)
        _products(row[:width], W, room[: groups * LANES].reshape(groups, LANES))
        for m in range(layout[own + _OWN]):
            to = out[layout[_HEAD + done]]
            for k in range(K):
                to[k] = room[m * K + k]
            done += 1


@compiled_within
def _room(layout: Ints) -> int:
    most, first_group = layout[_ACTIONS] * layout[_MEMBERS], _HEAD + layout[_MEMBERS]
    for group in range(layout[_GROUPS]):
        most = max(most, layout[first_group + _EACH * group + _FACTORS])
    return int(most) + LANES


@compiled_in_order
def scores_of_rows(contexts: Floats, layout: Ints, numbers: Floats, out: Floats) -> None:
    """Compute the scores of rows. contexts [n, d], out [M, n, K]"""
    M, n, K = out.shape
    row, room, scores = np.empty(layout[_WIDEST]), np.empty(_room(layout)), np.empty((M, K))
    for r in range(n):
        _scores_of_row(contexts[r], layout, numbers, row, room, scores)
        for m in range(M):
            for k in range(K):
                out[m, r, k] = scores[m, k]


@compiled_in_order
def decide_row(context: Floats, layout: Ints, numbers: Floats, acting: Floats, uniform: float) -> tuple[int, float]:
    """Return an action for a row [d] and its probability; UNUSABLE as the action if the context is invalid."""
    if len(context) != layout[_INPUTS] or not all_finite(context):
        return UNUSABLE, 0.0
    row, room = np.empty(layout[_WIDEST]), np.empty(_room(layout))
    scores, pi = np.empty((layout[_MEMBERS], layout[_ACTIONS])), np.empty(layout[_ACTIONS])
    _scores_of_row(_single(context), layout, numbers, row, room, scores)
    acting_row(scores, acting, pi)
    action = draw_one(pi, uniform)
    return action, pi[action]


@compiled_in_order
def decide_number(
    context: Floats, layout: Ints, numbers: Floats, acting: Floats, uniform: float, within: Floats
) -> tuple[float, float]:
    """Return an action within bounds, in one of K cells, and its density, or 0. within: numbers of `Cells`"""
    if len(context) != layout[_INPUTS] or not all_finite(context):
        return 0.0, 0.0
    row, room = np.empty(layout[_WIDEST]), np.empty(_room(layout))
    scores, pi = np.empty((layout[_MEMBERS], layout[_ACTIONS])), np.empty(layout[_ACTIONS])
    _scores_of_row(_single(context), layout, numbers, row, room, scores)
    acting_row(scores, acting, pi)
    return draw_number(pi, uniform, within)


@compiled_in_order
def decide_set(context: Floats, layout: Ints, numbers: Floats, acting: Floats, uniform: float) -> tuple[int, float]:
    """Like `decide_row`, for an action set [K, d]."""
    M, K = layout[_MEMBERS], len(context)
    if K == 0 or context.shape[1] != layout[_INPUTS] or not all_finite(context.reshape(-1)):
        return UNUSABLE, 0.0
    row, room = np.empty(layout[_WIDEST]), np.empty(_room(layout))
    one, scores, pi = np.empty((M, 1)), np.empty((M, K)), np.empty(K)
    for k in range(K):
        _scores_of_row(_single(context[k]), layout, numbers, row, room, one)
        for m in range(M):
            scores[m, k] = one[m, 0]
    acting_row(scores, acting, pi)
    action = draw_one(pi, uniform)
    return action, pi[action]


@compiled_in_order
def score_row(context: Floats, layout: Ints, numbers: Floats) -> float:
    """Return the score of a row [d] for one member with K = 1; NaN if the context is invalid."""
    if len(context) != layout[_INPUTS] or not all_finite(context):
        return np.nan
    out = np.empty((1, 1))
    _scores_of_row(_single(context), layout, numbers, np.empty(layout[_WIDEST]), np.empty(_room(layout)), out)
    return float(out[0, 0])
