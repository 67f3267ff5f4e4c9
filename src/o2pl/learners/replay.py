"""The engine of the paper's flat replay for one linear softmax."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numba import types

from o2pl.features import Chain, Intercept, Standardise
from o2pl.features.blocks import as_they_are
from o2pl.interactions import Decision, Interactions, Log
from o2pl.learners.kernels.replay import (
    FEATURE_CLIP,
    acting_rows,
    decide,
    handle_of,
    into_ring,
    learn,
    rounds,
    take,
)
from o2pl.learners.kernels.softmax import SoftmaxValue
from o2pl.learners.members import STRETCH, Member, MemberState
from o2pl.learners.schedules import Replay
from o2pl.learners.settings import Settings
from o2pl.learners.stream import UniformStream
from o2pl.oracles.lbfgs import LBFGS
from o2pl.protocols import Array, Floats
from o2pl.validation import check_actions, check_context


def is_flat(member: Member | MemberState) -> bool:
    """Whether a member's features are raw or standardised contexts, with or without an intercept."""
    maps = member.features.maps if isinstance(member.features, Chain) else (member.features,)
    return [type(each) for each in maps] in ([], [Standardise], [Intercept], [Standardise, Intercept])


@cache
def _compile_for_rows() -> None:
    """For rows of single and double precision; whatever else is given raises TypeError, instead of being compiled for.

    Looking at every context in Python would cost as much as the decision.
    """
    kernels: tuple[Any, Any] = decide, take
    handle, number, whole = types.int64[::1], types.float64, types.int64
    for row in (types.float32[::1], types.float64[::1]):
        kernels[0].compile((row, handle))
        kernels[1].compile((row, handle, whole, number, number, whole))
    for kernel in kernels:
        kernel.disable_compile()


class ReplaySoftmax:
    """An engine like `Online`, for `Replay` with one linear softmax."""

    def __init__(
        self,
        member: Member,
        n_actions: int,
        settings: Settings,
        update: Replay,
        log: Log,
        stream: UniformStream,
        sharpness: float,
        exploration: float,
    ) -> None:
        _compile_for_rows()
        self.settings, self.update, self.log, self.stream = member.settings(settings), update, log, stream
        maps = member.features.maps if isinstance(member.features, Chain) else (member.features,)
        scaler = next((each for each in maps if isinstance(each, Standardise)), None)
        feature_clip = math.inf if scaler is None else scaler.clip
        d, width, window = log.width, member.features.width(log.width), update.window
        own = [update.step_size, sharpness, exploration, feature_clip]
        self.numbers = np.concatenate([self.settings.numbers, own])
        self.sizes = {"inputs": d, "width": width, "actions": n_actions, "standardised": scaler is not None}
        self.sizes["settings"] = len(self.numbers)
        seen = (scaler or Standardise()).init(d)
        weights = np.zeros((3, n_actions, width), np.float32)
        self.arrays: dict[str, Array] = {
            **{name: seen[name] for name in ("count", "mean", "squares", "binary", "shift", "scale")},
            "W": weights[0],
            "first": weights[1],
            "second": weights[2],
            "total": np.zeros(1),
            "counters": np.array([0, update.after(0), 0]),
        }
        self._rest: dict[str, Array] = {  # what the settings and the log tell, and room to work in
            "numbers": self.numbers,
            "plan": np.array([window, update.every, update.steps, update.warm_start]),
            "ring": np.zeros((d, window), np.float32),
            "ring_actions": np.zeros(window, np.int32),
            "ring_losses": np.zeros(window),
            "ring_inverse": np.zeros(window, np.float32),
            "features": np.empty((width, window), np.float32),
            "P": np.empty((n_actions, window), np.float32),
            "D": np.empty((n_actions, window), np.float32),
            "room": np.empty((4, window), np.float32),
            "gradient": np.empty((n_actions, width), np.float32),
            "row": np.ones(width, np.float32),
            "pi": np.empty(n_actions),
        }
        self._bind()

    def _bind(self) -> None:
        """Tell the kernels where everything lies; again whenever something has moved."""
        log = dict(zip(("contexts", "actions", "losses", "propensities"), self.log.buffers(), strict=True))
        chance = {"uniforms": self.stream.numbers, "place": self.stream.place}
        self._known = {**log, **chance, **self.arrays, **self._rest}  # kept: a handle keeps nothing alive
        self._handle = handle_of(self._known, self.sizes)

    def probabilities(self, contexts: Floats) -> Floats:
        out = np.empty((len(contexts), self.sizes["actions"]))
        acting_rows(contexts, self._handle, out)
        return out

    def decide(self, context: Any) -> Decision:
        try:
            drawn = decide(context, self._handle)
        except TypeError:
            context = np.ascontiguousarray(check_context(context, self.log.width))
            drawn = decide(context, self._handle)
        if drawn[0] < 0:
            check_context(context, self.log.width)  # says what is wrong, if that is why
            self.stream.refill()
            drawn = decide(context, self._handle)
        return _decision(Decision, drawn)

    def append(self, context: Any, action: int, loss: float, propensity: float) -> None:
        log = self.log
        n = log.n
        if n == log.capacity:
            log.buffers(1)
            self._bind()
        if type(action) is not int:
            action = int(check_actions([action])[0])
        try:
            taken = take(context, self._handle, action, loss, propensity, n)
        except TypeError:
            row = np.ascontiguousarray(check_context(context, log.width))
            taken = take(row, self._handle, action, float(loss), float(propensity), n)
        if not taken:
            check_context(context, log.width)  # says what is wrong
        log.n = n + 1

    def extend(self, rows: Interactions) -> None:
        self.log.extend(rows)
        self._bind()

    def imitate(self) -> None:
        """Nothing to do: it starts where every weight is near 1."""

    def learn(self, oracle: LBFGS | None = None) -> None:
        learn(self._handle, self.log.n)
        if oracle is not None:
            self._solve(oracle)

    def _solve(self, oracle: LBFGS) -> None:
        """On the whole log, to the oracle's tolerance."""
        rows, W = self.log.columns, self.arrays["W"]
        clip = np.float32(self.numbers[FEATURE_CLIP])
        shift, scale, constant = self.arrays["shift"], self.arrays["scale"], W.shape[1] - self.log.width
        made = as_they_are(rows.contexts, shift=shift, scale=scale, clip=clip, intercept=constant)
        function = SoftmaxValue(made, len(W), self.settings.objective(rows), self.settings.l2)
        W[:] = oracle(function, W.reshape(-1).astype(np.float64)).params.reshape(W.shape)

    def run(self, contexts: Floats, losses: Any) -> Interactions:
        log, start = self.log, self.log.n
        log.buffers(len(contexts))
        self._bind()
        for first in range(0, len(contexts), STRETCH):
            some = contexts[first : first + STRETCH]
            table, uniforms = losses[first : first + STRETCH], self.stream.take(len(some))
            rounds(some, table, uniforms, self._handle, log.n)
            log.n += len(some)
        return log[start:]

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        return {"stream": self.stream.state()}, {**self.arrays, **self.log.state()}

    def restore(self, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        self.stream = UniformStream.restore(header["stream"])
        self.arrays = {name: np.array(arrays[name]) for name in self.arrays}
        self.log.restore(arrays)
        self._bind()
        into_ring(self._handle, 0, int(self.arrays["counters"][0]))


_decision = tuple.__new__  # the constructor of a named tuple, without its argument handling
