"""Incremental learning between two solves, at a cost that does not grow with the log.

A member is at θ₀, near the minimum of its objective on the n rows it knows, where the gradient is about 0. Now there
are k new rows. A sample S of m of the known rows is enough to estimate the curvature (w = n/m each):

    V(θ) ≈ [Σ_S w ℓ_s(θ) + Σ_new ℓ_s(θ) + l2 |θ|²/2] / (n + k) - <g, θ>,   g = ∇[Σ_S w ℓ_s + l2 |θ|²/2](θ₀) / (n + k)

The last term removes the sample's own gradient at θ₀: it is noise, since the gradient of all known rows is about 0. So
at θ₀ only new rows pull; known rows hold the parameters in place by their curvature. A few L-BFGS steps follow. The
schedule still sets when the whole log is solved.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.engine.member import MemberState
from o2pl.errors import InvalidInput
from o2pl.objectives.outcome import Outcome
from o2pl.oracles.lbfgs import LBFGS
from o2pl.protocols import Floats, Ints
from o2pl.threads import one_blas_thread
from o2pl.validation import check_count

if TYPE_CHECKING:
    from o2pl.engine.engine import Engine

_LEAST = 100  # smallest at_most, in rows; half of them are old
_STEPS = 5  # minimum number of steps: new features have little curvature and are far from the minimum
_GOLDEN = 0.6180339887498949  # fractional parts of its multiples fill [0, 1) evenly


def refresh(engine: Engine, at_most: int) -> None:
    """Learn from the new rows: for every at_most/2 of them, a member processes `at_most` rows.

    Members that are due by their schedule are solved. So are those with at most `at_most` rows of history, and those
    that cannot learn incrementally. New rows are taken in blocks, so that a change within them is detected.
    """
    if check_count("at_most", at_most) < _LEAST:
        raise InvalidInput(f"at_most: found {at_most}, expected at least {_LEAST} rows")
    with engine.lock:
        stretch = at_most // 2 if engine.watch is None else engine.watch.change.memory
        while engine.learned < len(engine.log):
            n = min(engine.learned + stretch, len(engine.log))
            engine.learn(engine.due(n), upto=n)
        rows = engine.log.columns
        stale = [member for member in engine.present if member.known < len(rows)]
        long = [
            member
            for member in stale
            if len(rows) - member.first(len(rows)) > at_most and _takes_part_in_refresh(member, rows)
        ]
        for seen in {id(member.seen): member.seen for member in long}.values():
            seen.observe(rows)
        with one_blas_thread(at_most * max((len(member.params) for member in long), default=0)):
            for member in long:
                _refresh_step(member, rows, at_most)
        rest = [member for member in stale if member not in long]
        if rest:
            engine.learn(rest)
        elif long:
            engine.finish_learning(len(rows), [])


def _takes_part_in_refresh(member: MemberState, rows: Interactions) -> bool:
    """Return whether the member can learn incrementally: a sum over equally weighted rows, iterative steps."""
    plain = isinstance(member.objective, Outcome) and isinstance(member.oracle, LBFGS)
    return plain and member.weights(rows[: member.known], 0) is None


def _refresh_step(member: MemberState, rows: Interactions, at_most: int) -> None:
    """Learn the rows that are new to the member, at most `at_most` / 2 at a time."""
    start = member.first(len(rows))
    member.widen(rows.encoded.n_inputs)
    for known in range(max(member.known, start), len(rows), at_most // 2):
        new = np.arange(known, min(known + at_most // 2, len(rows)))
        old, weight = _refresh_sample(start, known, at_most - len(new))
        weights = np.concatenate([np.full(len(old), weight), np.ones(len(new))])
        some = rows[np.concatenate([old, new])]
        log = member.objective.prepare(some, None, weights)
        begin = log.started(member.params)
        function = member.value(log, some, 0, {})
        tilt: Floats = np.zeros(len(begin))
        if len(old):
            before = rows[old]
            _, tilt = member.value(member.objective.prepare(before, None, weights[: len(old)]), before, 0, {})(begin)
            tilt *= -(known - start) / log.size
        assert isinstance(member.oracle, LBFGS)
        oracle = _finer_for_refresh(member.oracle, len(new) / log.size)
        found, member.kept = oracle.step(_Tilted(function, tilt), begin, member.kept, log.negligible)
        member.params, member.known = found.params, int(new[-1]) + 1
        member.effort += (1, found.evaluations + 1)


def _refresh_sample(start: int, stop: int, size: int) -> tuple[Ints, float]:
    """Return `size` evenly spread rows from `start` to `stop`, and how many rows each stands for. Deterministic."""
    n = stop - start
    if n <= size:
        return np.arange(start, stop), 1.0
    places = (np.arange(size) + (stop * _GOLDEN) % 1) * (n / size)
    return start + np.minimum(places.astype(np.int64), n - 1), n / size


class _Tilted:
    """A function plus a linear term."""

    incremental = False

    def __init__(self, function: Any, tilt: Floats) -> None:
        self._function, self._tilt = function, tilt

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        value, gradient = self._function(params)
        return value + float(self._tilt @ params), gradient + self._tilt


def _finer_for_refresh(oracle: LBFGS, share: float) -> LBFGS:
    """Return an oracle with a finer tolerance: as exact for the new rows as a solve is for all rows."""
    return replace(oracle, iterations=max(oracle.iterations, _STEPS), tolerance=oracle.tolerance * share)
