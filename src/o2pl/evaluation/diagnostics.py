"""Diagnostics of a log: weights, overlap, drift, and the error-bound exponent β near the best policy."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.objectives.weights import effective_sample_size
from o2pl.protocols import Floats, Ints
from o2pl.special import gammaincc

# -- weights


class Tail(NamedTuple):
    """The upper tail of the weights."""

    exponent: float  # P(w > t) ~ t^(-exponent); below 2 the variance is infinite, below 1 the mean. ∞: no tail
    error: float
    largest_share: float  # share of the largest weight in the sum


def diagnostics_of_weight_tail(weights: Floats) -> Tail:
    """Estimate the tail exponent by Hill's estimator from the √n largest weights (at least 10)."""
    top = float(weights.max())
    share = 1.0 if math.isinf(top) else top / float(weights.sum()) if top > 0 else math.nan
    k = max(10, math.isqrt(len(weights)))
    if len(weights) <= k or top == 0:
        return Tail(math.nan, math.nan, share)
    largest = np.partition(weights, len(weights) - k - 1)[-k - 1 :]
    threshold = float(largest[0])
    if threshold == 0:
        return Tail(0.0, math.nan, share)  # fewer than k rows have positive weight
    excess = float(np.mean(np.log(largest[1:] / threshold)))
    if excess < 1e-12:
        return Tail(math.inf, math.nan, share)
    return Tail(1 / excess, 1 / (excess * math.sqrt(k)), share)


class Clipping(NamedTuple):
    rows: float  # fraction of the rows with w > α
    weight: float  # fraction of the weight removed by clipping


def diagnostics_of_clip_fraction(weights: Floats, alpha: float) -> Clipping:
    over = weights > alpha
    total = float(weights.sum())
    lost = float((weights[over] - alpha).sum())
    return Clipping(float(over.mean()), 1.0 if math.isinf(total) else lost / total if total > 0 else 0.0)


# -- overlap


class ActionOverlap(NamedTuple):
    """One action in the log and under the policy."""

    action: str
    rows: int
    share: float  # fraction of the log's rows
    lowest: float  # smallest logged propensity; ∞ if it was never played
    mass: float  # mean π(a|x) over all rows
    effective: float  # effective sample size of its rows


def diagnostics_of_overlap(log: Interactions, mass: Floats | None, weights: Floats) -> tuple[ActionOverlap, ...]:
    """Return the overlap by action from π's mean probability of each, [K] or more; empty if that is unknown."""
    if mass is None:
        return ()
    found = []
    for action, share_of_policy in enumerate(mass):
        mine = log.actions == action
        own = weights[mine]
        lowest = float(log.propensities[mine].min()) if len(own) else math.inf
        share, name = len(own) / len(log), log.action_name(action)
        found.append(ActionOverlap(name, len(own), share, lowest, float(share_of_policy), effective_sample_size(own)))
    return tuple(found)


# -- drift


class Drift(NamedTuple):
    """Means over consecutive blocks of the log."""

    p_value: float  # of equal policy values in all blocks; nan: too few rows
    context_p_value: float  # of equal context means (Bonferroni over columns)
    column: int  # context column that changed most
    name: str  # its name
    means: Floats  # the policy's clipped value in each block, [B]
    errors: Floats


def diagnostics_of_drift(log: Interactions, values: Floats, *, stretches: int = 10, least: int = 50) -> Drift:
    """Test for equal means over at most `stretches` equal blocks of at least `least` rows (chi-square).

    `values` are the policy's row values. They have a constant mean as long as contexts and rewards keep their
    distribution, even if the logger learned. Rows must be in time order.
    """
    count = min(stretches, len(log) // least)
    if count < 2:
        return Drift(math.nan, math.nan, -1, "", np.zeros(0), np.zeros(0))
    edges = np.linspace(0, len(log), count + 1).astype(np.int64)
    p, means, errors = _diagnostics_of_equal_means(values[:, None], edges)
    contexts = log.contexts
    if log.encoded.items is not None:
        moved, column = math.nan, -1
    else:
        ps, _, _ = _diagnostics_of_equal_means(contexts, edges)
        column = int(np.argmin(ps))
        moved = min(1.0, float(ps[column]) * len(ps))
    return Drift(float(p[0]), moved, column, log.context_name(column), means[:, 0], errors[:, 0])


def _diagnostics_of_equal_means(columns: Floats, edges: Ints) -> tuple[Floats, Floats, Floats]:
    """Return p-values of equal means, [c], the means and their errors, [B, c]. Blocks share one variance."""
    sizes = np.diff(edges)[:, None]
    means = np.stack([columns[a:b].mean(axis=0, dtype=np.float64) for a, b in itertools.pairwise(edges)])
    pieces = zip(edges[:-1], edges[1:], means, strict=True)
    within = sum(((columns[a:b] - mean) ** 2).sum(axis=0, dtype=np.float64) for a, b, mean in pieces)
    variance = np.asarray(within) / (len(columns) - len(sizes))
    between = (sizes * (means - (sizes * means).sum(axis=0) / len(columns)) ** 2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(variance > 0, between / variance, np.where(between > 0, np.inf, 0.0))
    return gammaincc((len(sizes) - 1) / 2, statistic / 2), means, np.sqrt(variance / sizes)
