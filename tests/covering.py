"""Covering arrays: few rows of settings in which every two values of two settings meet."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np


def covering(factors: dict[str, Sequence[Any]], seed: int = 0) -> list[dict[str, Any]]:
    """Few rows in which every two values of two factors meet: greedy, each row the best of some candidates."""
    generator, names = np.random.default_rng(seed), list(factors)
    missing = pairs_of(factors)
    rows = []
    while missing:
        candidates = []
        for _ in range(20):
            forced = dict(
                sorted(missing)[generator.integers(len(missing))]
            )  # a set's own order differs from run to run
            row = {name: forced.get(name, int(generator.integers(len(factors[name])))) for name in names}
            for name in generator.permutation([name for name in names if name not in forced]):
                tried = [{**row, name: value} for value in range(len(factors[name]))]
                row = max(tried, key=lambda each: len(pairs_in(each, names) & missing))
            candidates.append(row)
        best = max(candidates, key=lambda each: len(pairs_in(each, names) & missing))
        missing -= pairs_in(best, names)
        rows.append({name: factors[name][best[name]] for name in names})
    return rows


def pairs_of(factors: dict[str, Sequence[Any]]) -> set[Any]:
    return {
        ((one, a), (two, b))
        for one, two in itertools.combinations(factors, 2)
        for a in range(len(factors[one]))
        for b in range(len(factors[two]))
    }


def pairs_in(row: dict[str, int], names: list[str]) -> set[Any]:
    return {((one, row[one]), (two, row[two])) for one, two in itertools.combinations(names, 2)}
