"""Results of each learner in each world over seeds: means, errors, intervals, and a table for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.protocols import Floats

if TYPE_CHECKING:
    import pyarrow as pa


def final_values(rows: pa.Table, column: str) -> dict[tuple[str, str], Floats]:
    """Return (world, learner) -> the last value of `column` of each seed's unit."""
    units = np.asarray(rows["unit"])
    last = np.flatnonzero(np.append(units[1:] != units[:-1], True))  # units are contiguous
    found: dict[tuple[str, str], list[float]] = {}
    for row in last:
        key = (rows["world"][int(row)].as_py(), rows["learner"][int(row)].as_py())
        found.setdefault(key, []).append(rows[column][int(row)].as_py())
    return {key: np.array(values, np.float64) for key, values in found.items()}


def mean_and_error(values: Floats) -> tuple[float, float]:
    """Return the mean over seeds and its standard error; NaN for a single seed."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(values.mean()), float(error)


def percentile_interval(
    values: Floats, level: float = 0.95, seed: int = 0, resamples: int = 10_000
) -> tuple[float, float]:
    """Return a percentile bootstrap interval of the mean. Deterministic for the same values."""
    chosen = np.random.default_rng(seed).integers(len(values), size=(resamples, len(values)))
    low, high = np.quantile(values[chosen].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def screen_table(rows: pa.Table, column: str) -> Any:
    """Return a Rich table of means over seeds ± standard errors; the longer of worlds and learners is in rows."""
    from rich.table import Table

    finals = final_values(rows, column)
    worlds, learners = (list(dict.fromkeys(key[side] for key in finals)) for side in (0, 1))
    flat = len(worlds) <= len(learners)
    down, across = (learners, worlds) if flat else (worlds, learners)
    shown = Table()
    shown.add_column("learner" if flat else "world")
    for name in across:
        shown.add_column(name, justify="right")
    for one in down:
        keys = [(other, one) if flat else (one, other) for other in across]
        shown.add_row(one, *(_cell(finals.get(key)) for key in keys))
    return shown


def _cell(values: Floats | None) -> str:
    if values is None:
        return ""
    mean, error = mean_and_error(values)
    digits = 3 if abs(mean) < 10 else 1
    return f"{mean:.{digits}f}" + ("" if np.isnan(error) else f" ± {error:.{digits}f}")
