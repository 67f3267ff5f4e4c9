"""The measured part of docs/scale.md, and its picture: every number is a stored one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from o2pl.drawing import new_figure, tidy, write_figure

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
PICTURE = PAGE.parent / "images" / "scale.png"
BEGIN, END = "<!-- measured: written by benchmarks/scale_page.py -->", "<!-- end of what was measured -->"
SIZES = {"1e5": 1e5, "1e6": 1e6, "3e6": 3e6, "1e7": 1e7}
BUSY = 0.5  # as on the page of all rows

Results = Mapping[str, Any]


def measured(results: Results) -> str:
    """As Markdown."""
    return "\n".join([BEGIN, "", *_lines(results), "", END])


def _lines(results: Results) -> Iterator[str]:
    yield "![memory and speed of fits](images/scale.png)\n"
    yield "| measured | ours | beside | ratio (spread) |\n|---|---|---|---|"
    for name, what, form in (
        (
            "out_of_core_memory_1e7",
            "anonymous memory of a fit of 1e7 rows, d = 20, K = 5; the log's columns",
            "{:.2f} GiB",
        ),
        ("out_of_core_memory_3e6", "of 3e6 rows; a fit in memory", "{:.2f} GiB"),
        ("out_of_core_1e7", "a pass over 1e7 mapped rows; over rows in memory", "{:,.0f} rows/s"),
        ("ray_two_workers", "a pass by two workers of Ray; by one", "{:,.0f} rows/s"),
        ("fit_against_obp_ipw", "from files to a policy; OBP's `IPWLearner` on arrays", "{:,.0f} rows/s"),
        ("fit_against_obp_nn", "from files to a policy; OBP's `NNPolicyLearner` on arrays", "{:,.0f} rows/s"),
    ):
        found = results.get(name, {})
        if "ratio" in found:
            yield _line(what, form, found)
    on_card = {name: found for name, found in results.items() if "card" in found}
    for name, what, form in (
        ("gpu_1e7x64x10", "objective and gradient, n = 1e7, d = 64, K = 10; plain JAX", "{:.2f} ms"),
        ("gpu_fit_1e8x20x5", "a fit of 1e8 rows, d = 20, K = 5, after loading; plain XLA", "{:.2f} s"),
        ("gpu_network_step", "a step of a network; its matrix products alone", "{:,.0f} steps/s"),
    ):
        if name in on_card:
            yield _line(f"{what}, on one {on_card[name]['card']}, {on_card[name]['date']}", form, on_card[name])
    if on_card:
        yield "\nWhere no GPU is at hand, the page keeps what was recorded last."
    loads = (found.get("load", 0) for name, found in results.items() if name.startswith(("out_of", "ray_", "fit_")))
    if max(loads, default=0) > BUSY:
        yield (
            "\nThe machine was busy with other work when some of these were measured: ratios are of both sides by"
            "\nturns, and rates are lower than they could be. [All rows](benchmarks.md) say how busy."
        )


def _line(what: str, form: str, found: Mapping[str, Any]) -> str:
    ratio = f"{found['ratio']:.3g} ({found['low']:.3g}–{found['high']:.3g})"
    return f"| {what} | {form.format(found['o2pl'])} | {form.format(found['peer'])} | {ratio} |"


def draw(results: Results) -> Any:
    """Memory by the length of the log, and rows a second of a pass."""
    figure = new_figure(9, 3.2)
    left, right = figure.subplots(1, 2)
    found = {
        size: results[name]
        for key, size in SIZES.items()
        if "ratio" in results.get(name := f"out_of_core_memory_{key}", {})
    }
    left.plot(list(found), [row["o2pl"] for row in found.values()], marker="o", color="#0072B2", label="out of core")
    beside = {size: row["peer"] for size, row in found.items() if size != SIZES["1e7"]}
    left.plot(list(beside), list(beside.values()), marker="s", color="#6e6e6e", label="in memory")
    left.set(xscale="log", xlabel="rows", ylabel="memory at the peak, GiB", ylim=(0, None))
    left.legend(frameon=False)
    passes = {
        "in memory": ("out_of_core_1e7", "peer"),
        "out of core": ("out_of_core_1e7", "o2pl"),
        "Ray, one worker": ("ray_two_workers", "peer"),
        "Ray, two workers": ("ray_two_workers", "o2pl"),
    }
    shown = {
        label: results[name][side] / 1e6 for label, (name, side) in passes.items() if "ratio" in results.get(name, {})
    }
    colours = ["#6e6e6e", "#0072B2", "#009E73", "#009E73"]
    right.barh(list(shown), list(shown.values()), color=colours[: len(shown)])
    right.invert_yaxis()
    right.set_xlabel("million rows a second, one pass")
    for axes, grid in ((left, "both"), (right, "x")):
        tidy(axes, grid)  # type: ignore[arg-type]  # one of its three
    return figure


def write(results: Results) -> None:
    text = PAGE.read_text()
    before, after = text[: text.index(BEGIN)], text[text.index(END) + len(END) :]
    PAGE.write_text(before + measured(results) + after)
    write_figure(draw(results), PICTURE)
