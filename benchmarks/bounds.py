"""What stands in the way of a missed bar, from what else was measured in the same run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Results = Mapping[str, Any]


def bound(name: str, results: Results) -> str:
    """A sentence or two: the row's own note, and what other rows say of it. Empty where nothing measured says it."""
    said = str(results[name].get("note", "")), _batch(name, results) if name.startswith("batch_") else ""
    return " ".join(filter(None, said))


def _number(results: Results, row: str, side: str) -> float | None:
    found: float | None = results.get(row, {}).get(side)
    return found


def _batch(name: str, results: Results) -> str:
    """The roofline: one read of the log at the rate of a copy, both products at the rate of sgemm."""
    n, d, k = map(float, name.removeprefix("batch_").split("x"))
    ours, reference = _number(results, name, "o2pl"), _number(results, name, "peer")
    copy, sgemm = _number(results, "machine_copy", "o2pl"), _number(results, "machine_sgemm", "o2pl")
    if not (ours and reference and copy and sgemm):
        return ""
    read, multiply = 1e3 * n * (4 * d + 12) / (1e9 * copy), 1e3 * 4 * n * d * k / (1e9 * sgemm)
    return (
        f"Reading the log once at the machine's copy rate takes {read:.1f} ms, the two matrix products at its sgemm "
        f"rate {multiply:.1f} ms; ours takes {ours:.1f} ms, the reference {reference:.1f} ms."
    )
