"""What stands in the way of a missed bar, from what else was measured in the same run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.internals import FEATURES_KEPT, REPLAY

Results = Mapping[str, Any]


def bound(name: str, results: Results) -> str:
    """A sentence or two: the row's own note, and what other rows say of it. Empty where nothing measured says it."""
    kind = name.split("_")[0]
    explain = {"loop": _loop, "run": _run, "batch": _batch, "seeds": _seeds}.get(kind)
    said = str(results[name].get("note", "")), "" if explain is None else explain(name.removesuffix("_cpp"), results)
    return " ".join(filter(None, said))


def _number(results: Results, row: str, side: str) -> float | None:
    found: float | None = results.get(row, {}).get(side)
    return found


def _loop(name: str, results: Results) -> str:
    reference, theirs = _number(results, f"{name}_cpp", "peer"), _number(results, name, "peer")
    if not (reference and theirs):
        return ""
    return f"The C++ reference called the same way stands at {reference / theirs:.1f} times VW."


def _run(name: str, results: Results) -> str:
    """The roofline of replay-Adam: a round pays for one evaluation on the window, two products at the rate of sgemm."""
    reference, theirs = _number(results, f"{name}_cpp", "peer"), _number(results, name, "peer")
    sgemm = _number(results, "machine_sgemm", "peer")
    if not (reference and theirs and sgemm):
        return ""
    d, k = map(int, name.removeprefix("run_").split("x"))
    products = REPLAY.steps / REPLAY.every * 4 * REPLAY.window * (d + 1) * k / (1e3 * sgemm)  # µs
    return (
        f"VW's driver takes {1e6 / theirs:.1f} µs a round; the matrix products of a round alone take {products:.2f} µs "
        f"at the rate of sgemm on one thread: the limit of replay-Adam here is {1e6 / theirs / products:.1f} times its "
        f"speed. The C++ reference stands at {reference / theirs:.1f} times."
    )


def _batch(name: str, results: Results) -> str:
    """The roofline: one read of the log at the rate of a copy, both products at the rate of sgemm."""
    sizes = name.removeprefix("batch_").removesuffix("_kept").split("x")
    if len(sizes) != 3:
        return ""
    n, d, k = map(float, sizes)
    ours, reference = _number(results, name, "o2pl"), _number(results, name, "peer")
    copy, sgemm = _number(results, "machine_copy", "o2pl"), _number(results, "machine_sgemm", "o2pl")
    if not (ours and reference and copy and sgemm):
        return ""
    read, multiply = 1e3 * n * (4 * d + 12) / (1e9 * copy), 1e3 * 4 * n * d * k / (1e9 * sgemm)
    return (
        f"Reading the log once at the machine's copy rate takes {read:.1f} ms, the two matrix products at its sgemm "
        f"rate {multiply:.1f} ms; ours takes {ours:.1f} ms, the reference {reference:.1f} ms.{_kept(name, results)}"
    )


def _kept(name: str, results: Results) -> str:
    kept = _number(results, f"{name}_kept", "ratio")
    if not kept:
        return ""
    return (
        f" Ours makes features beyond {FEATURES_KEPT // 2**20} MiB anew at every evaluation, to stay within "
        f"`memory_1e6`; with all of them kept, as the reference has them, it is at {kept:.2f}."
    )


def _seeds(name: str, results: Results) -> str:
    scaling = _number(results, "machine_sgemm", "ratio")
    return f"Two threads of this machine do {scaling:.2f} times the work of one (`machine_sgemm`)." if scaling else ""
