"""The shipped maps as one compiled pass: a row's features made where they are used, without a matrix of the log's size.

Sums are taken in the order they are written, so a row's features are the same alone and in a batch.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from o2pl.compiled import compiled_in_order
from o2pl.features.basic import Chain, Intercept
from o2pl.features.quadratic import Quadratic, product_scale
from o2pl.features.settled import Settled
from o2pl.features.standardise import Standardise
from o2pl.protocols import FeatureMap, Floats, State


class FeaturePlan(NamedTuple):
    """(x - shift) scale cut to [-clip, clip], the products of these or of directions of them, a constant 1 in front."""

    shift: Floats  # [d]
    scale: Floats  # [d]
    clip: Any
    directions: Floats  # [d, m] of what is multiplied; [d, 0] if it is the d features themselves
    product_shift: Floats  # [p]; p = 0: no products
    product_scale: Floats  # [p]
    intercept: int  # 1: a constant 1 before the others

    @property
    def width(self) -> int:
        return int(self.intercept + len(self.shift) + len(self.product_shift))


def feature_plan(features: FeatureMap, seen: State, n_inputs: int) -> FeaturePlan | None:
    """Of a feature map that has seen what it has seen; None where it is not of the shipped kinds."""
    if isinstance(features, Settled):
        return feature_plan(features.features, features.inner(seen), n_inputs)
    maps = features.maps if isinstance(features, Chain) else (features,)
    if tuple(type(each) for each in maps) not in _KNOWN:
        return None
    parts = features.parts(seen) if isinstance(features, Chain) else [seen]
    none = np.empty(0, np.float32)
    shift, scale, clip = np.zeros(n_inputs, np.float32), np.ones(n_inputs, np.float32), math.inf
    directions, of_products, intercept = np.empty((n_inputs, 0), np.float32), (none, none), 0
    for each, own in zip(maps, parts, strict=True):
        if isinstance(each, Standardise):
            shift, scale, clip = own["shift"], own["scale"], each.clip
        elif isinstance(each, Quadratic):
            of_products = own["shift"], product_scale(own, n_inputs)
            if len(own["directions"]) < n_inputs:
                directions = np.ascontiguousarray(own["directions"].T)
        else:
            intercept = 1
    return FeaturePlan(shift, scale, np.float32(clip), directions, *of_products, intercept)


_KNOWN = {
    (*first, *second, *third)
    for first in ((), (Standardise,))
    for second in ((), (Quadratic,))
    for third in ((), (Intercept,))
}


def planned_features(plan: FeaturePlan, contexts: Floats) -> Floats:
    """The features of these rows. [n, width], single precision"""
    out = np.empty((len(contexts), plan.width), np.float32)
    _feature_rows(contexts, *plan, out)
    return out


@compiled_in_order
def _feature_rows(
    contexts: Floats, shift: Floats, scale: Floats, clip: Any, directions: Floats, product_shift: Floats,
    product_scale: Floats, intercept: int, out: Floats,
) -> None:  # fmt: skip
    d, m = directions.shape
    projected = np.empty(max(m, 1), np.float32)
    for r in range(len(contexts)):
        row, x = out[r], contexts[r]
        if intercept:
            row[0] = 1
        for i in range(d):
            row[intercept + i] = min(max((x[i] - shift[i]) * scale[i], -clip), clip)
        if len(product_shift) == 0:
            continue
        factors, at = row[intercept : intercept + d], intercept + d
        if m:
            for j in range(m):
                projected[j] = 0
            for i in range(d):
                for j in range(m):
                    projected[j] += factors[i] * directions[i, j]
            factors = projected
        place = 0
        for i in range(len(factors)):
            for j in range(i, len(factors)):
                row[at + place] = (factors[i] * factors[j] - product_shift[place]) * product_scale[place]
                place += 1
