"""The built-in feature maps as one compiled pass, without a feature matrix of the log's size."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from o2pl import _core
from o2pl.features.basic import Chain, Intercept
from o2pl.features.quadratic import Quadratic, quadratic_scale
from o2pl.features.settled import Settled
from o2pl.features.standardise import Standardise
from o2pl.protocols import FeatureMap, Floats, State


class FeaturePlan(NamedTuple):
    """A constant 1, (x - shift) scale clipped to [-clip, clip], and products of these or of directions of them."""

    shift: Floats  # [d]
    scale: Floats  # [d]
    clip: float
    directions: Floats  # [d, m] factors of the products; [d, 0]: the d features themselves
    product_shift: Floats  # [p]; p = 0: no products
    product_scale: Floats  # [p]
    intercept: bool

    @property
    def width(self) -> int:
        return int(self.intercept + len(self.shift) + len(self.product_shift))


def feature_plan(features: FeatureMap, seen: State, n_inputs: int) -> FeaturePlan | None:
    """Return the plan of a feature map in this state; None for custom maps."""
    if isinstance(features, Settled):
        return feature_plan(features.features, features.inner(seen), n_inputs)
    maps = features.maps if isinstance(features, Chain) else (features,)
    if not has_feature_plan(features):
        return None
    parts = features.parts(seen) if isinstance(features, Chain) else [seen]
    shift, scale, clip = None, None, math.inf
    directions, of_products, intercept = np.empty((n_inputs, 0), np.float32), (_NONE, _NONE), False
    for each, own in zip(maps, parts, strict=True):
        if isinstance(each, Standardise):
            shift, scale, clip = own["shift"], own["scale"], each.clip
        elif isinstance(each, Quadratic):
            of_products = own["shift"], quadratic_scale(own, n_inputs)
            if len(own["directions"]) < n_inputs:
                directions = np.ascontiguousarray(own["directions"].T)
        else:
            intercept = True
    if shift is None or scale is None:
        shift, scale = np.zeros(n_inputs, np.float32), np.ones(n_inputs, np.float32)
    return FeaturePlan(shift, scale, clip, directions, *of_products, intercept)


def has_feature_plan(features: FeatureMap) -> bool:
    """Return whether a feature map has a plan."""
    maps = features.maps if isinstance(features, Chain) else (features,)
    return tuple(type(each) for each in maps) in _KNOWN


_NONE = np.empty(0, np.float32)
_KNOWN = {
    (*first, *second, *third)
    for first in ((), (Standardise,))
    for second in ((), (Quadratic,))
    for third in ((), (Intercept,))
}


def planned_features(plan: FeaturePlan, contexts: Floats) -> Floats:
    """Return the features of these rows, [n, width], single precision."""
    return _core.feature_rows(contexts.astype(np.float32, copy=False), *plan)
