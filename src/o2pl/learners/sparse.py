"""A linear softmax on hashed features: the engine behind `O2PL(policy="hashed")`.

A solve costs O(nonzeros · K), whatever the number of bits: only features that occurred in the log have weights, in the
order in which they came (*slots*, after slot 0, the constant). Between two checkpoints nothing that decisions depend on
changes, so that a stretch of rounds is decided as one batch with the decisions of one call per round.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.features.hashing import Hashed, Reader, expanded_size
from o2pl.features.standardise import Standardise
from o2pl.interactions import Decision, Interactions, Log
from o2pl.lanes import padded
from o2pl.learners.kernels.sparse import (
    admit,
    decide,
    decide_rows,
    gather,
    outcomes,
    predict_losses,
    record,
    replay_steps,
    running_sum,
    sparse_objective,
)
from o2pl.learners.members import REMEMBERING, Member
from o2pl.learners.schedules import Replay, Schedule
from o2pl.learners.settings import Settings, clip_at, penalty_at
from o2pl.learners.stream import UniformStream
from o2pl.oracles.lbfgs import LBFGS
from o2pl.oracles.quasi_newton import Curvature, descend
from o2pl.policies.sampling import draw_rows
from o2pl.protocols import Array, Floats, Ints
from o2pl.rows import SparseRows
from o2pl.validation import check_actions

CLIP = np.float32(Standardise().clip)  # of standardised numbers
Outcomes = tuple[Ints, Floats, Floats, Floats]  # actions (int32), residuals, 1/q, control variate (float32; or empty)


Acting = tuple[Ints, Floats, Any, Floats, float, float]  # slot_of, scale, clip, weights, sharpness, exploration


class SparseValue:
    """The objective on sparse rows of slots, as a function of params [slots · K] that writes the gradient."""

    def __init__(self, rows: SparseRows, n_actions: int, came: Outcomes, numbers: Floats, l2: float) -> None:
        n, slots, L = len(rows), rows.width, padded(n_actions)
        self._shape = (slots, n_actions)
        self._fixed = (
            rows.indices, rows.values, rows.offsets, *came,
            np.float32(clip_at(numbers, float(n))), penalty_at(numbers, float(n)), l2 / n,
            np.zeros((slots, L), np.float32), np.empty((n, L), np.float32), np.empty(n, np.float32),
            np.empty((slots, L), np.float32),
        )  # fmt: skip

    def __call__(self, params: Floats, gradient: Floats) -> float:
        return sparse_objective(params.reshape(self._shape), *self._fixed, gradient.reshape(self._shape))

    def and_gradient(self, params: Floats) -> tuple[float, Floats]:
        gradient = np.empty_like(params)
        return self(params, gradient), gradient


class SparseOnline:
    """An engine like `Online`, for one linear softmax on `Hashed` features."""

    def __init__(
        self,
        member: Member,
        n_actions: int,
        settings: Settings,
        update: Schedule,
        log: Log,
        stream: UniformStream,
        sharpness: float,
        exploration: float,
    ) -> None:
        assert isinstance(member.features, Hashed)
        self.settings, self.update, self.log, self.stream = member.settings(settings), update, log, stream
        self.n_actions, self.sharpness, self.exploration = n_actions, float(sharpness), float(exploration)
        self.numbers = self.settings.numbers
        self.reader = Reader(member.features)
        self.slot_of = np.zeros(log.width, np.int32)
        self.slots = 1
        self.learned, self.checkpoint = 0, update.after(0)
        self.total = 0.0  # Σ losses of what was learned from
        self.steps = 0  # of Adam
        self.effort = (0, 0)  # solves, evaluations of the objective
        self.curvature: Curvature | None = None
        self.controlled = self.settings.control is not None
        self.predicted = np.empty((0, n_actions), np.float32)  # the control variate's losses of the log, and room
        self.of_slots: dict[str, Array] = {}  # arrays with an entry for every slot, and room for more
        self._make_room(1024)
        self._bind()

    def _make_room(self, capacity: int) -> None:
        K = self.n_actions
        moments = {"first": (K,), "second": (K,)} if isinstance(self.update, Replay) else {}
        model = {"model": (K,), "spread": (K,)} if self.controlled else {}
        floats = {"weights": (K,), "scale": (2,), **moments, **model}
        made: dict[str, Array] = {name: np.zeros((capacity, *shape), np.float32) for name, shape in floats.items()}
        made |= {name: np.zeros(capacity) for name in ("count", "mean", "squares")}
        made |= {"feature": np.zeros(capacity, np.int32), "plain": np.ones(capacity, np.bool_)}
        made["scale"][:, 1] = 1
        for name, array in self.of_slots.items():
            made[name][: self.slots] = array[: self.slots]
        self.of_slots = made
        self._place = np.zeros(capacity, np.int32)

    def _bind(self) -> None:
        """What the kernels are handed every round."""
        own = self.of_slots
        self._acting: Acting = (self.slot_of, own["scale"], CLIP, own["weights"], self.sharpness, self.exploration)
        self._buffers = self.log.sparse_buffers()

    # -- acting

    def probabilities(self, contexts: SparseRows) -> Floats:
        out = np.empty((len(contexts), self.n_actions))
        decide_rows(contexts.indices, contexts.values, contexts.offsets, *self._acting, out)
        return out

    def decide(self, context: Any) -> Decision:
        row = self.reader.read(context)
        return _decision(Decision, decide(*row, *self._acting, self.stream.next()))

    def run(self, contexts: SparseRows, losses: Any) -> Interactions:
        start, done = len(self.log), 0
        while done < len(contexts):
            some = min(len(contexts) - done, self.checkpoint - len(self.log))
            rows = np.arange(done, done + some)
            stretch = contexts[done : done + some]
            actions, propensities = draw_rows(self.probabilities(stretch), self.stream.take(some))
            self.log.extend(Interactions(stretch, actions, losses(rows, actions), propensities))
            done += some
            self.learn_if_due()
        self._bind()
        return self.log[start:]

    # -- learning

    def append(self, context: Any, action: int, loss: float, propensity: float) -> None:
        row, log = self.reader.read(context), self.log
        if type(action) is not int:
            action = int(check_actions([action])[0])
        if record(*row, *self._buffers, log.n, action, loss, propensity) < 0:
            self._buffers = log.sparse_buffers(1, expanded_size(*row[2:5]))
            record(*row, *self._buffers, log.n, action, loss, propensity)
        log.n += 1
        if log.n >= self.checkpoint:
            self.learn()

    def extend(self, rows: Interactions) -> None:
        self.log.extend(rows)
        self._buffers = self.log.sparse_buffers()

    def imitate(self) -> None:
        """Nothing to do: it starts where every weight is near 1."""

    def learn_if_due(self) -> None:
        if self.log.n >= self.checkpoint:
            self.learn()

    def learn(self, oracle: LBFGS | None = None) -> None:
        """Learn from the whole log now; with `oracle`, solve with it whatever the schedule says."""
        n = self.log.n
        self._buffers = self.log.sparse_buffers()
        self._absorb(self.learned, n)
        self.learned, self.checkpoint = n, self.update.after(n)
        if isinstance(self.update, Replay) and oracle is None:
            self._replay(self.update, max(0, n - self.update.window), n)
        else:
            self._solve(oracle)
        self._bind()

    def _absorb(self, row: int, stop: int) -> None:
        start = row
        while row < stop:
            own = self.of_slots
            of_slots = tuple(own[name] for name in ("feature", "count", "mean", "squares", "plain", "scale"))
            rows = (*self._buffers[:3], row, stop)
            self.slots, row = admit(*rows, self.slots, self.slot_of, *of_slots)
            if row < stop:
                need = self.slots + int(self._buffers[2][row + 1] - self._buffers[2][row])
                self._make_room(max(2 * len(self._place), need))
        if self.settings.control is not None:
            own = self.of_slots
            if len(self.predicted) < stop:
                grown = np.empty((max(2 * len(self.predicted), stop), self.n_actions), np.float32)
                grown[:start] = self.predicted[:start]
                self.predicted = grown
            indices, values, offsets, actions, losses, _ = self._buffers
            predict_losses(
                indices, values, offsets, actions, losses, start, stop,
                self.numbers, self.total, 1 / self.settings.control,
                self.slot_of, own["scale"], CLIP, own["model"], own["spread"], self.predicted,
            )  # fmt: skip
        self.total = running_sum(self._buffers[4], start, stop, self.total)

    def _window(self, start: int, stop: int) -> tuple[SparseRows, Outcomes]:
        """The log's rows start to stop, as slots, and what came of them."""
        indices, values, offsets, *came = self._buffers
        n, entries = stop - start, int(offsets[stop] - offsets[start])
        slots, scaled = np.empty(entries, np.int32), np.empty(entries, np.float32)
        ends = np.empty(n + 1, np.int64)
        scale = self.of_slots["scale"]
        gather(indices, values, offsets, start, stop, self.slot_of, scale, CLIP, slots, scaled, ends)
        played, residuals, inverse = np.empty(n, np.int32), np.empty(n, np.float32), np.empty(n, np.float32)
        baseline = self.settings.level(self.total, stop)
        control = np.empty((n if self.controlled else 0, self.n_actions), np.float32)
        found = (played, residuals, inverse, control)
        outcomes(came[0], came[1], came[2], start, stop, baseline, self.predicted, *found)
        return SparseRows(slots, scaled, ends, self.slots), found

    def _solve(self, oracle: LBFGS | None) -> None:
        rows, came = self._window(0, self.log.n)
        function = SparseValue(rows, self.n_actions, came, self.numbers, self.settings.l2)
        params = self.of_slots["weights"][: self.slots].reshape(-1)
        oracle = oracle or getattr(self.update, "oracle", None) or REMEMBERING
        found = descend(function.and_gradient, params, oracle, self._curvature(oracle.memory))
        params[:] = found.params
        self.effort = (self.effort[0] + 1, self.effort[1] + found.evaluations)

    def _curvature(self, memory: int) -> Curvature:
        """That of the last solve; along the weights of features that it did not know nothing has been learned."""
        size, before = self.slots * self.n_actions, self.curvature
        if before is None or len(before.inner) != memory:
            self.curvature = Curvature(memory, size)
        elif before.steps.shape[1] < size:
            self.curvature = Curvature(memory, size)
            known = before.steps.shape[1]
            self.curvature.steps[:, :known], self.curvature.changes[:, :known] = before.steps, before.changes
            self.curvature.inner, self.curvature.at = before.inner, before.at
        assert self.curvature is not None
        return self.curvature

    def _replay(self, update: Replay, start: int, stop: int) -> None:
        rows, came = self._window(start, stop)
        n, own = float(len(rows)), self.of_slots
        replay_steps(
            rows.indices, rows.values, rows.offsets, *came,
            np.float32(clip_at(self.numbers, n)), penalty_at(self.numbers, n), self.settings.l2 / n,
            self._place, padded(self.n_actions), own["weights"], own["first"], own["second"],
            self.steps, update.steps, update.step_size,
        )  # fmt: skip
        self.steps += update.steps

    # -- saving

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        header = {
            "learned": self.learned,
            "checkpoint": self.checkpoint,
            "slots": self.slots,
            "total": self.total,
            "steps": self.steps,
            "effort": list(self.effort),
            "stream": self.stream.state(),
        }
        arrays = {f"slots.{name}": array[: self.slots] for name, array in self.of_slots.items()}
        if self.curvature is not None:
            arrays |= {f"curvature.{name}": array for name, array in self.curvature.arrays().items()}
        if self.controlled:
            arrays["predicted"] = self.predicted[: self.learned]
        return header, {**arrays, **self.log.state()}

    def restore(self, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        self.learned, self.checkpoint, self.total = header["learned"], header["checkpoint"], header["total"]
        self.slots, self.steps = header["slots"], header["steps"]
        solves, evaluations = header["effort"]
        self.effort = (solves, evaluations)
        self.stream = UniformStream.restore(header["stream"])
        self.log.restore(arrays)
        self.of_slots = {}
        self._make_room(max(1024, self.slots))
        for name, array in self.of_slots.items():
            array[: self.slots] = arrays[f"slots.{name}"]
        feature = self.of_slots["feature"][1 : self.slots]
        self.slot_of[feature] = np.arange(1, self.slots)
        self.predicted = arrays.get("predicted", self.predicted)
        if "curvature.at" in arrays:
            self.curvature = Curvature(len(arrays["curvature.inner"]), arrays["curvature.steps"].shape[1])
            self.curvature.restore({name: arrays[f"curvature.{name}"] for name in self.curvature.arrays()})
        self._bind()


_decision = tuple.__new__  # the constructor of a named tuple, without its argument handling
