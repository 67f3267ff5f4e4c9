"""Oracles: minimisers with `init` and `step`, whose state is kept between steps; calling one solves once."""

from o2pl.oracles.adam import Adam
from o2pl.oracles.exhaustive import Exhaustive
from o2pl.oracles.lbfgs import LBFGS
from o2pl.oracles.minibatch import Minibatch
from o2pl.oracles.recursive import Recursive

__all__ = ["LBFGS", "Adam", "Exhaustive", "Minibatch", "Recursive"]
