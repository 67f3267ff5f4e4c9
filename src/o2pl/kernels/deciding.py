"""Decisions in one compiled call: contexts to features to scores to the acting policy to an action.

The members are packed into two arrays, since each array argument has a cost. Sums keep their order, in double
precision: a decision is bitwise the same alone and in a batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from o2pl.compiled import compiled_in_order, compiled_inlined, compiled_within
from o2pl.compiled.comparing import larger, smaller
from o2pl.contexts.readers import all_finite
from o2pl.features.plan import FeaturePlan
from o2pl.policies.cells import draw_number
from o2pl.policies.sampling import acting_row, draw_one
from o2pl.protocols import Floats, Ints

LANES = 8  # scores computed at a time; rows of weights are padded to a multiple of it
_INPUTS, _MEMBERS, _ACTIONS, _SETS, _WIDEST, _ROOM, _GROUPS = range(7)  # positions in the layout; then the members,
_AT, _FACTORS, _PROJECTED, _PRODUCTS, _INTERCEPT, _OWN = range(6)  # group by group; then those of each group, of `_OWN`
_HEAD, _EACH = 7, 6  # members
UNUSABLE = -1  # instead of an action: the context has a wrong length or a non-finite entry
_1, _2, _3, _4, _5, _6, _7 = (np.uint64(lane) for lane in range(1, LANES))
SCORES = -1.0  # instead of a uniform number: scores of any number of rows, no decision


class Packed:
    """Members with scores linear in planned features. Weights [K width]; K = 1 for sets and real-valued actions.

    Members with the same plan form a group: their features are computed once.
    """

    layout: Ints
    numbers: Floats
    _places: list[int]  # of the groups, among the numbers

    def __init__(
        self, plans: Sequence[FeaturePlan], weights: Sequence[Floats], sets: bool, before: Packed | None = None
    ) -> None:
        """sets: a decision is among rows. before: an earlier pack of the same members; unchanged parts are copied."""
        self._made_of = list(plans), list(weights)
        groups: dict[int, list[int]] = {}
        for member, plan in enumerate(plans):
            groups.setdefault(id(plan), []).append(member)
        members = [*groups.values()]
        firsts = [plans[own[0]] for own in members]
        self._shape = members, [_shape(plan) for plan in firsts], len(weights[0]), sets
        changed = [True] * len(plans)
        if before is not None and before._shape == self._shape:
            self.layout, self._places, self.numbers = before.layout, before._places, before.numbers.copy()
            known, of = before._made_of
            changed = [plans[m] is not known[m] or weights[m] is not of[m] for m in range(len(plans))]
        else:
            self._lay_out(len(plans))
        for place, own, plan in zip(self._places, members, firsts, strict=True):
            if any(changed[m] for m in own):
                self._write(place, plan, [weights[m] for m in own])

    def _lay_out(self, members: int) -> None:
        """Make the layout, and room for the numbers, from the shapes of the groups."""
        groups, shapes, size, sets = self._shape
        widths = [intercept + d + products for d, _, products, intercept in shapes]
        d, K, at = shapes[0][0], size // widths[0], 0
        room = max(K * members, *(m for _, m, _, _ in shapes)) + LANES
        head = [d, members, K, int(sets), max(widths), room, len(groups)]
        layout = [*head, *(member for own in groups for member in own)]
        self._places = []
        for own, width, (d, m, products, intercept) in zip(groups, widths, shapes, strict=True):
            layout += [at, m or d, int(m > 0), products, intercept, len(own)]
            self._places.append(at)
            at += 1 + 2 * d + d * _padded(m) + 2 * products + width * _padded(K * len(own))
        self.layout, self.numbers = np.array(layout), np.zeros(at)

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
        """Return the scores of all members, [M, n, K]. contexts [n, d]"""
        out = np.empty((self.layout[_MEMBERS], len(contexts), self.layout[_ACTIONS]))
        flat = contexts.astype(np.float64).reshape(-1)  # as contexts mostly come: one version of the kernel
        decide(flat, self.layout, self.numbers, out.reshape(-1), SCORES)
        return out


def _shape(plan: FeaturePlan) -> tuple[int, int, int, int]:
    """Return the numbers of inputs, of directions and of products, and whether there is an intercept."""
    return *plan.directions.shape, len(plan.product_shift), plan.intercept


def _padded(columns: int) -> int:
    """Round up to a multiple of LANES."""
    return -(-columns // LANES) * LANES


@compiled_within
def _products(row: Floats, width: int, numbers: Floats, at: int, groups: int, out: Floats) -> None:
    """Compute out = row · M. row [≥ width], numbers[at:]: M [width, groups, LANES], out [≥ groups LANES]"""
    step = np.uint64(groups * LANES)  # unsigned: Numba need not ask whether an index counts from the end
    for g in range(groups):
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        w = np.uint64(at + g * LANES)
        for i in range(width):
            x = row[i]
            s0 += x * numbers[w]
            s1 += x * numbers[w + _1]
            s2 += x * numbers[w + _2]
            s3 += x * numbers[w + _3]
            s4 += x * numbers[w + _4]
            s5 += x * numbers[w + _5]
            s6 += x * numbers[w + _6]
            s7 += x * numbers[w + _7]
            w += step
        to = out[g * LANES : (g + 1) * LANES]
        to[0], to[1], to[2], to[3], to[4], to[5], to[6], to[7] = s0, s1, s2, s3, s4, s5, s6, s7


@compiled_inlined
def _scores_of_row(
    context: Floats, layout: Ints, numbers: Floats, row: Floats, room: Floats, out: Floats, to: int
) -> None:
    """Compute the scores of all members, out[:, to : to + K]. row [widest] and room [room] are work arrays."""
    d, K, done, first_group = layout[_INPUTS], layout[_ACTIONS], 0, _HEAD + layout[_MEMBERS]
    for group in range(layout[_GROUPS]):
        own = first_group + _EACH * group
        at, factors, products = layout[own + _AT], layout[own + _FACTORS], layout[own + _PRODUCTS]
        first = layout[own + _INTERCEPT]
        clip = numbers[at]
        row[0] = 1.0  # overwritten by the loop if there is no intercept
        for i in range(d):  # in single precision, as stored in a log
            x = (np.float64(np.float32(context[i])) - numbers[at + 1 + i]) * numbers[at + 1 + d + i]
            row[first + i] = smaller(larger(x, -clip), clip)
        at += 1 + 2 * d
        width = first + d
        if products:
            multiplied = row[first:width]
            if layout[own + _PROJECTED]:
                groups = (factors + LANES - 1) // LANES
                _products(multiplied, d, numbers, at, groups, room)
                at += d * groups * LANES
                multiplied = room
            made, place = row[width:], 0
            less, times = numbers[at:], numbers[at + products :]
            for i in range(factors):
                x = multiplied[i]
                for j in range(i, factors):
                    made[place] = (x * multiplied[j] - less[place]) * times[place]
                    place += 1
            width += products
            at += 2 * products
        _products(row, width, numbers, at, (K * layout[own + _OWN] + LANES - 1) // LANES, room)
        for m in range(layout[own + _OWN]):
            member = out[layout[_HEAD + done]]
            for k in range(K):
                member[to + k] = room[m * K + k]
            done += 1


@compiled_in_order
def decide(contexts: Floats, layout: Ints, numbers: Floats, acting: Floats, uniform: float) -> tuple[int, float]:
    """Return an action and its probability; UNUSABLE as the action if the context is invalid.

    contexts: a row [d]; the rows of an action set, flat [K d]. With SCORES in place of a uniform number: any number of
    rows, whose scores [M, n, K] are written to `acting`. One kernel for all three: it takes seconds to compile.
    """
    d, M, K = layout[_INPUTS], layout[_MEMBERS], layout[_ACTIONS]
    n, deciding = 1, uniform >= 0
    if not deciding:
        n = len(acting) // (M * K)
    elif layout[_SETS]:
        n = len(contexts) // d
    if deciding and (n == 0 or len(contexts) != n * d or not all_finite(contexts)):
        return UNUSABLE, 0.0
    row, room, scores = np.empty(layout[_WIDEST]), np.empty(layout[_ROOM]), np.empty((M, n * K if deciding else K))
    for r in range(n):
        _scores_of_row(contexts[r * d :], layout, numbers, row, room, scores, r * K if deciding else 0)
        if not deciding:
            for m in range(M):
                for k in range(K):
                    acting[(m * n + r) * K + k] = scores[m, k]
    if not deciding:
        return UNUSABLE, 0.0
    pi = np.empty(n * K)
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
    row, room = np.empty(layout[_WIDEST]), np.empty(layout[_ROOM])
    scores, pi = np.empty((layout[_MEMBERS], layout[_ACTIONS])), np.empty(layout[_ACTIONS])
    _scores_of_row(context, layout, numbers, row, room, scores, 0)
    acting_row(scores, acting, pi)
    return draw_number(pi, uniform, within)
