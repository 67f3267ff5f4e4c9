"""Random Fourier features: a Gaussian kernel's feature space, sampled."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from o2pl import _core
from o2pl.protocols import Floats, State
from o2pl.storage import storable


@storable
@dataclass(frozen=True)
class Fourier:
    """√2 cos(ω·x + φ), ω ~ N(0, 1/bandwidth²), φ uniform: mean products tend to exp(-|x - x'|² / (2 bandwidth²))."""

    n_features: int = 100
    bandwidth: float = 1.0
    seed: int = 0

    def width(self, n_inputs: int, state: State | None = None) -> int:
        return self.n_features

    def init(self, n_inputs: int) -> State:
        generator = np.random.default_rng(self.seed)
        return {
            "frequencies": (generator.normal(size=(self.n_features, n_inputs)) / self.bandwidth).astype(np.float32),
            "phases": generator.uniform(0, 2 * math.pi, self.n_features).astype(np.float32),
        }

    def observe(self, state: State, rows: Floats) -> State:
        return state

    def transform(self, state: State, rows: Floats) -> Floats:
        return _core.cosines(_core.project(rows, state["frequencies"], state["phases"]))
