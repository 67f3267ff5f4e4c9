"""What the checks of `chaining_checks` say: claims, a figure and a table of the study `theory`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from o2pl.drawing import new_figure
from o2pl.simulation.figures import STYLES, label_figure
from o2pl.theory.chaining import margin_constant, sharp_margin_constant
from o2pl_reproduction.claims.intervals import Measurement, exact, greatest, greatest_share
from o2pl_reproduction.claims.study import Claim, at_least, at_most, between
from o2pl_reproduction.studies.chaining_checks import KAPPAS, OVERLAPS, PATHS, PS
from o2pl_reproduction.studies.group_policies import DELTA
from o2pl_reproduction.studies.theory_checks import by_seed, pick, pooled

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table


def claims(rows: Table) -> list[Claim]:
    widths = by_seed(rows, "transfer", "measured", "reference")
    trapped = by_seed(rows, "trapped", "measured")[0]
    sizes, bounds = by_seed(rows, "maximal-size", "measured", "reference")
    constants = by_seed(rows, "penalty-size", "measured")[0]
    margins = by_seed(rows, "margin", "measured", "reference")
    sharp = by_seed(rows, "margin-sharp", "measured", "reference")
    useful = [row["measured"] for row in pick(rows, "useful")]
    members = f"2^{PATHS['fine'] + PATHS['rare']} policies"
    return [
        Claim(
            "theory/entropy-transfer",
            "Entropy transfer: a cover of log Π makes brackets of the clipped losses as narrow as stated (the widest,"
            f" over ε); share of losses inside their bracket: {trapped.min():g}.",
            greatest(lambda means: means, widths[0] / widths[1]),
            at_most(1.0, "the paper's"),
            "paper",
            "1, for some constant c",
            conditions="Lipschitz log-odds, p = 1; c = 1/(e² - 1), from the proof.",
        ),
        Claim(
            "theory/maximal-inequality",
            f"Maximal inequality: of {members}, on logs that Algorithm 1 made without overlap, all stay below the bound"
            f" (largest share of runs that do not, over δ = {DELTA:g}).",
            _greatest_pooled(rows, "maximal"),
            at_most(1.0, "the paper's"),
            "paper",
            "1, up to a constant",
            conditions="The constants 208, 58 and 16 are those that the proof gives; the paper names none. At these n"
            " most of the bounds are above the range of a loss, and could not fail.",
        ),
        Claim(
            "theory/peeling",
            f"Peeling theorem: of {members}, each stays below the bound for its own realised variation (largest share"
            f" of runs in which one does not, over δ = {DELTA:g}).",
            _greatest_pooled(rows, "peeling"),
            at_most(1.0, "the paper's"),
            "paper",
            "1, up to a constant",
            conditions="The same constants; shells of ρ̂ from α - 1 down to 0.05. Most bounds could not fail.",
        ),
        Claim(
            "theory/chaining-loose",
            "The proof's constants are not far too large: the largest deviation of all policies (95 % quantile of"
            " runs) over the bound, at its largest.",
            greatest(lambda means: means, sizes / bounds),
            at_least(0.1),
            "own",
        ),
        Claim(
            "theory/chaining-useful",
            "With the proof's constants the maximal inequality says something within a million rounds: the least n at"
            f" which it is below the range of a loss, for all of p = {', '.join(f'{p:g}' for p in PS)}.",
            exact(max(useful)),
            at_most(1e6),
            "own",
        ),
        Claim(
            "theory/penalty-covers",
            f"Algorithm 1's penalty covers the deviation of all {members} at once (largest share of runs in which it"
            f" does not at some n, over δ = {DELTA:g}).",
            _greatest_pooled(rows, "penalty"),
            at_most(1.0, "the paper's"),
            "paper",
            "1, up to a constant",
            conditions="The paper proves it for a penalty times a constant that it does not name; Algorithm 1 has 1.",
        ),
        Claim(
            "theory/penalty-constant",
            "A quarter of Algorithm 1's penalty would cover as well: the constant that covers 95 % of the runs, largest"
            " over n and p.",
            greatest(lambda means: means, constants),
            at_most(0.25),
            "own",
        ),
        Claim(
            "theory/margin-constant",
            "The margin lemma holds with its constant: the variance of the weights over C (excess risk)^β, largest.",
            greatest(lambda means: means, margins[0] / margins[1]),
            at_most(1.0, "the paper's"),
            "paper",
            "1",
        ),
        Claim(
            "theory/margin-sharp",
            "The least constant is ((1 - c₀)/(κ + 1))^{1/(κ+1)} times the lemma's: the largest ratio to it.",
            greatest(lambda means: means, sharp[0] / sharp[1]),
            between(0.95, 1.05),
            "own",
            conditions="Our constant, proved for two actions; contexts are sampled: the ratio may exceed 1 by chance.",
        ),
    ]


def _greatest_pooled(rows: Table, kind: str) -> Measurement:
    found = pooled(rows, kind)
    hits, trials, bounds = zip(*((round(share * n), n, bound) for *_, bound, share, n in found), strict=True)
    return greatest_share(hits, trials, bounds, "runs")


def figure(rows: Table) -> Figure:
    """The largest deviation beside its bound, the penalty's least constant, and the margin lemma's."""
    drawing = new_figure(11.2, 3.9)
    sizes, penalties, margins = drawing.subplots(1, 3)
    for p, (colour, line) in zip(PS, STYLES, strict=False):
        mine = [r for r in pick(rows, "maximal-size") if r["z"] == 1.0 and r["world"] == f"chaining-p-{p:g}"]
        n = sorted({r["x"] for r in mine})
        for column, mark, label in (
            ("reference", "s", f"bound, p = {p:g}"),
            ("measured", "o", f"worst policy, p = {p:g}"),
        ):
            heights = [np.mean([r[column] for r in mine if r["x"] == at]) for at in n]
            sizes.plot(n, heights, color=colour, linestyle=line, marker=mark, linewidth=1.5, label=label)
        own = [r for r in pick(rows, "penalty-size") if r["z"] == p]
        heights = [np.mean([r["measured"] for r in own if r["x"] == at]) for at in n]
        penalties.plot(n, heights, color=colour, linestyle=line, marker="o", linewidth=1.5, label=f"p = {p:g}")
    label_figure(
        sizes, "Maximal inequality, policies with ρ̂ ≤ 1", "rounds n", "deviation of the worst policy", "loglog"
    )
    penalties.axhline(1.0, color="0.5", linewidth=1)
    penalties.annotate("Algorithm 1", (1, 1.0), (-4, -12), xycoords=("axes fraction", "data"),
                       textcoords="offset points", ha="right", color="0.35")  # fmt: skip
    penalties.set_ylim(0, 1.1)
    label_figure(penalties, "Penalty constant that covers 95 %", "rounds n", "constant", "log")
    for overlap, (colour, line) in zip(OVERLAPS, STYLES, strict=False):
        mine = [r for r in pick(rows, "margin") if r["z"] == overlap]
        ratios = [np.mean([r["measured"] / r["reference"] for r in mine if r["x"] == kappa]) for kappa in KAPPAS]
        least_needed = [
            sharp_margin_constant(kappa, 1.0, overlap) / margin_constant(kappa, 1.0, overlap) for kappa in KAPPAS
        ]
        margins.plot(
            KAPPAS, ratios, color=colour, marker="o", linestyle="none", label=f"worst policy, c₀ = {overlap:g}"
        )
        margins.plot(KAPPAS, least_needed, color=colour, linestyle=line, label="least constant")
    margins.axhline(1.0, color="0.5", linewidth=1)
    margins.annotate("the lemma's constant", (KAPPAS[0], 1.0), (0, 5), textcoords="offset points", color="0.35")
    margins.set_ylim(0, 1.15)
    label_figure(margins, "Margin lemma, relative to its constant", "margin exponent κ", "variance / bound", "log")
    margins.set_xticks(KAPPAS, [f"{kappa:g}" for kappa in KAPPAS])
    margins.minorticks_off()
    return drawing


def table(rows: Table) -> list[Mapping[str, str]]:
    """What the constants come to."""
    out: list[Mapping[str, str]] = []
    for world, n, sigma, *_ in pooled(rows, "maximal"):
        mine = [
            r for r in pick(rows, "maximal-size") if (r["world"], r["x"], r["z"]) == (world, n, sigma)
        ]  # fmt: skip
        found = float(np.mean([r["measured"] for r in mine]))
        p = world.removeprefix("chaining-p-")
        out.append(
            {
                "what": f"largest deviation, p = {p}, n = {n:,.0f}, ρ̂ ≤ {sigma:g} (its bound)",
                "measured": f"{found:.4f}" if found else "no such policy",
                "theory": f"{mine[0]['reference']:.3g}",
            }
        )
    return out
