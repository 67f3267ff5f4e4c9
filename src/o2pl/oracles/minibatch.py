"""Adam on minibatches, for policies with many parameters and logs with many rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from o2pl import _core
from o2pl.protocols import Floats, Ints, Solution, State
from o2pl.storage import storable
from o2pl.validation import check_count, check_number


@storable
@dataclass(frozen=True)
class Minibatch:
    """Adam on batches of `batch` rows, drawn so that all rows are used equally often.

    Every row is used `passes` times, with at least `least` and at most `most` steps. The step size decays to 0 and
    restarts with the next solve; the moments are kept. A penalty that is not a sum over rows is replaced by its
    tangent, renewed `tangents` times: an upper bound, since the penalty is concave.
    """

    passes: float = 10.0
    batch: int = 128
    least: int = 128
    most: int = 1024
    step_size: float = 3e-3
    tangents: int = 4
    seed: int = 0
    plain = False

    def __post_init__(self) -> None:
        for name in ("batch", "least", "most", "tangents"):
            check_count(name, getattr(self, name))
        check_number("passes", self.passes, 0)
        check_number("step_size", self.step_size, 0, open_low=True)

    def init(self, n_params: int) -> State:
        moments = {name: np.zeros(n_params, np.float32) for name in ("first", "second")}
        return {**moments, "steps": np.zeros(1, np.int64)}

    def offline(self) -> Minibatch:
        """Return the settings for one solve on a whole log."""
        return replace(self, passes=4 * self.passes, least=8 * self.least, most=16 * self.most)

    def step(self, function: Any, params: Floats, state: State, negligible: float = 0.0) -> tuple[Solution, State]:
        """Take the steps of one solve. function: has `batch(params, rows)`, `majorant(params)`, and possibly `adam`."""
        rows = len(function.log.actions)
        steps = int(min(max(np.ceil(self.passes * rows / self.batch), self.least), self.most))
        done = int(state["steps"][0])
        batches = self._batches(rows, steps, done)
        sizes = self.step_size * (1 - np.arange(steps) / steps)
        theta, first, second = (np.array(a, np.float32) for a in (params, state["first"], state["second"]))
        value = np.nan
        for own in np.array_split(np.arange(steps), min(self.tangents, steps)):
            below = function.majorant(theta.astype(np.float64))
            adam = getattr(below, "adam", None)
            if adam is None:
                value = _minibatches_one_by_one(
                    below, theta, first, second, batches[own], sizes[own], done + int(own[0])
                )
            else:
                theta, first, second, value = adam(theta, first, second, batches[own], sizes[own], done + int(own[0]))
        kept = {"first": first, "second": second, "steps": np.array([done + steps])}
        return Solution(theta.astype(np.float64), value, True, steps), kept

    def _batches(self, rows: int, steps: int, done: int) -> Ints:
        """Return the rows of each step, [steps, batch]: consecutive random permutations of all rows."""
        generator = np.random.default_rng([self.seed, done, rows])
        needed, orders = steps * self.batch, []
        while needed > 0:
            orders.append(generator.permutation(rows)[:needed])
            needed -= rows
        return np.concatenate(orders).reshape(steps, self.batch)


def _minibatches_one_by_one(
    function: Any, params: Floats, first: Floats, second: Floats, batches: Ints, sizes: Floats, done: int
) -> float:
    """Take the steps in place. Returns the value of the last batch."""
    value = np.nan
    for k, (rows, size) in enumerate(zip(batches, sizes, strict=True)):
        value, gradient = function.batch(params.astype(np.float64), rows)
        _core.adam_step(params, gradient.astype(np.float32), first, second, done + k + 1, size)
    return float(value)
