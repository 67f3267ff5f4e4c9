"""Claims, figures and table of `safe-improvement`: where pessimism pays off.

Differences are paired (same set, incumbent, length and seed), averaged within a set, and given with bootstrap
intervals over sets. Harm is the fraction of runs that end more than .005 below the incumbent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from o2pl.drawing import new_figure, tidy
from o2pl.errors import InvalidInput
from o2pl.protocols import Floats
from o2pl.simulation.figures import STYLES
from o2pl_reproduction.claims.intervals import Measurement, binomial, mean, wider
from o2pl_reproduction.claims.study import Bar, Claim, Study, above, at_least, at_most
from o2pl_reproduction.claims.summary import percentile_interval
from o2pl_reproduction.studies.pessimism import Measure, Values, figure_of_arms, gain, penalty_alone
from o2pl_reproduction.studies.safe_improvement import ARMS, EXPERIMENT, LABELS, LOG_SIZES, LOGGERS, NAMED_ARMS

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

HARM = 0.005
SQUARE = ("clip-penalty", "clip", "penalty", "neither")
DRAWN = ("safe", "bold", "neither", "plain", "lcb", "dm", "clone")  # in the figure
POOR = tuple(name for name in LOGGERS if name != "good")
CONDITIONS = "settings chosen on other sets and other seeds"


VALUE = gain("value", "sets", HARM)
SPARED = Measure(
    "harm", "share of runs harmed without minus with", lambda own, other: mean(other - own, "sets"), 0.0, 0.01
)


class MeanInterval(NamedTuple):
    mean: float
    low: float
    high: float


def mean_interval(values: Floats, draws: int = 4000) -> MeanInterval:
    """Return the mean and its 95 % bootstrap interval."""
    return MeanInterval(float(values.mean()), *percentile_interval(values, resamples=draws))


class ResultRows:
    """The rows as arrays, selected by learner, incumbent and length."""

    def __init__(self, rows: Table) -> None:
        self.columns = {name: np.asarray(rows[name]) for name in rows.column_names}
        self.sizes = [n for n in LOG_SIZES if (self.columns["n"] == n).any()]

    def learners(self) -> list[str]:
        present = set(self.columns["learner"])
        return [name for name in LABELS if name in present]

    def chosen(self, learner: str, loggers: Sequence[str], sizes: Sequence[int]) -> dict[str, Any]:
        c = self.columns
        mask = (c["learner"] == learner) & np.isin(c["logger"], loggers) & np.isin(c["n"], sizes)
        order = np.lexsort([c[name][mask] for name in ("n", "seed", "logger", "set")])
        if not mask.any():
            raise InvalidInput(f"rows: found none of {learner} with {list(loggers)} at n in {list(sizes)}")
        return {name: column[mask][order] for name, column in c.items()}

    def by_set(self, learner: str, loggers: Sequence[str], sizes: Sequence[int], less: str | None = None) -> Floats:
        """Return the mean value of each data set, minus another learner's (or a column's: "incumbent_greedy")."""
        own = self.chosen(learner, loggers, sizes)
        values = own["value"]
        if less is not None:
            values = values - (own[less] if less in own else self.chosen(less, loggers, sizes)["value"])
        return np.array([values[own["set"] == name].mean() for name in np.unique(own["set"])])

    def harm(self, learner: str, loggers: Sequence[str], sizes: Sequence[int]) -> float:
        return float(np.mean(self.harmed(learner, loggers, sizes)[0]))

    def harmed(self, learner: str, loggers: Sequence[str], sizes: Sequence[int]) -> tuple[Any, Any]:
        """Return whether each run ended below the incumbent, and its data set."""
        own = self.chosen(learner, loggers, sizes)
        return own["value"] < own["incumbent"] - HARM, own["set"]

    def harm_by_set(self, learner: str, loggers: Sequence[str], sizes: Sequence[int]) -> Floats:
        hits, sets = self.harmed(learner, loggers, sizes)
        return np.array([hits[sets == name].mean() for name in np.unique(sets)])


def p_value(differences: Floats) -> float:
    """Return the p-value of Wilcoxon's signed-rank test over data sets that the differences are not above 0."""
    from scipy.stats import wilcoxon

    moved = differences[differences != 0]
    return float(wilcoxon(moved, alternative="greater").pvalue) if len(moved) else 1.0


# -- claims


def share(hits: Any, sets: Any) -> Measurement:
    """Return a fraction of runs: exact binomial, widened by the bootstrap over data sets, whose runs are correlated."""
    by_set = np.array([hits[sets == name].mean() for name in np.unique(sets)])
    return wider(binomial(int(hits.sum()), len(hits)), mean(by_set, "sets"))


def claims(rows: Table) -> Sequence[Claim]:
    name, table = "safe-improvement", ResultRows(rows)
    everywhere, sizes = tuple(LOGGERS), table.sizes
    long = [n for n in sizes if n >= 1000] or sizes[-1:]

    def claim(key: str, text: str, measured: Measurement, bar: Bar) -> Claim:
        return Claim(f"{name}/{key}", text, measured, bar, "own", conditions=CONDITIONS)

    def gap(key: str, text: str, rival: str, loggers: Sequence[str], bar: Bar, at: Sequence[int] = sizes) -> Claim:
        return claim(key, f"{text} (mean difference).", mean(table.by_set("safe", loggers, at, rival), "sets"), bar)

    def of_arms(loggers: Sequence[str], where: str, key: str) -> list[Claim]:
        gained, harmed = arm_values(table, loggers)
        said = [(f"{name}/{key}", gained, VALUE, where), (f"{name}/{key}-harm", harmed, SPARED, where)]
        made = [claim for each in said for claim in (*ARMS.claims(*each), *penalty_alone(ARMS, *each))]
        return [each for each in made if not each.id.endswith("harm-negligible")]

    safe = table.chosen("safe", everywhere, sizes)
    too_high = safe["deployed"] & (safe["lower"] > safe["learned"] - safe["incumbent"])
    level, unpessimistic = at_least(-HARM), table.by_set("safe", ["good"], sizes, "neither")
    return [
        claim(
            "harm-good",
            "With a good incumbent and n ≥ 1000 safe improvement ends below it in at most one run of 20.",
            share(*table.harmed("safe", ["good"], long)),
            at_most(0.05),
        ),
        claim(
            "harm",
            "Over all incumbents and lengths safe improvement ends below the incumbent in at most one run of 20.",
            share(*table.harmed("safe", everywhere, sizes)),
            at_most(0.05),
        ),
        claim(
            "bound",
            "Safe improvement deploys a policy with a lower bound above its true gain in at most one run of 10, as its "
            "confidence says.",
            share(too_high, safe["set"]),
            at_most(0.1),
        ),
        claim(
            "pessimism-safe",
            "With a good incumbent safe improvement beats the same objective without penalty or clip (mean difference, "
            f"Wilcoxon's p over sets {p_value(unpessimistic):.2g}).",
            mean(unpessimistic, "sets"),
            above(0.0),
        ),
        *of_arms(["good"], " with a good incumbent", "good"),
        *of_arms(POOR, " with a mediocre, blind or swapped incumbent", "poor"),
        *_of_letter(table),
        *(
            gap(
                f"plain-{logger}",
                f"With a {logger} incumbent safe improvement does not lose to plain fitting",
                "plain",
                [logger],
                level,
            )
            for logger in LOGGERS
        ),
        gap(
            "lcb",
            "On average over all incumbents safe improvement beats the LCB best on average",
            "lcb",
            everywhere,
            above(0.0),
        ),
        gap(
            "lcb-good",
            "With a good incumbent safe improvement beats the LCB that is best there",
            "lcb-wide",
            ["good"],
            above(0.0),
        ),
        gap(
            "lcb-poor",
            "With the three other incumbents safe improvement is level with the LCB best on average",
            "lcb",
            POOR,
            level,
        ),
        gap(
            "lcb-guarded",
            "Safe improvement beats an LCB chosen and guarded in the same way",
            "lcb-guarded",
            everywhere,
            above(0.0),
        ),
        gap(
            "bold-poor",
            "With the three other incumbents the guard costs no more than .01 against λ = 0.3 unguarded",
            "bold",
            POOR,
            at_least(-0.01),
        ),
        gap(
            "beyond-exploration",
            "With a good incumbent and n ≥ 1000 safe improvement is worth more than the incumbent's most likely action",
            "incumbent_greedy",
            ["good"],
            above(0.0),
            long,
        ),
    ]


def arm_values(table: ResultRows, loggers: Sequence[str]) -> tuple[Values, Values]:
    """Return arm -> its value over the incumbent, and the fraction of its runs that end below it, by data set."""
    present, own_names = set(table.columns["learner"]), {arm: name for name, arm in NAMED_ARMS.items()}
    learners = {arm: own_names.get(arm, arm) for arm in ARMS.names}
    played = {arm: learner for arm, learner in learners.items() if learner in present}
    gained = {arm: table.by_set(each, loggers, table.sizes, "incumbent") for arm, each in played.items()}
    return gained, {arm: table.harm_by_set(each, loggers, table.sizes) for arm, each in played.items()}


def _of_letter(table: ResultRows) -> list[Claim]:
    """Return the claims of the paper's objective as printed, started at a clone of the incumbent."""
    if "paper" not in table.learners():
        return []
    name, sizes, everywhere = "safe-improvement", table.sizes, tuple(LOGGERS)
    letter = "nothing was tuned: λ = 1, b = 0, clip by the theory, no l2"
    beyond = mean(table.by_set("paper", everywhere, sizes, "incumbent"), "sets")
    said = "The paper's objective as printed is worth more than the incumbent (mean difference, all incumbents)."
    harmed = share(*table.harmed("paper", everywhere, sizes))
    return [
        Claim(f"{name}/paper-letter", said, beyond, above(0.0), "own", conditions=letter),
        Claim(
            f"{name}/paper-letter-harm",
            "The paper's objective as printed ends below the incumbent in at most one run of 20.",
            harmed,
            at_most(0.05),
            "own",
            conditions=letter,
        ),
    ]


# -- figures


def figures(rows: Table) -> Mapping[str, Figure]:
    table = ResultRows(rows)
    made = {"safe-improvement": _curves(table), "safe-improvement-square": _square(table)}
    panels = [(replace(ARMS, label=f"{logger} incumbent"), arm_values(table, [logger])[0]) for logger in LOGGERS]
    title = "Pessimism alone: value gained by penalty and clip, all lengths (95 % intervals over sets)"
    said = "value gained over λ = 0 without a clip"
    return made | {"safe-improvement-pessimism": figure_of_arms(panels, said, title, measure=VALUE)}


def _curves(table: ResultRows) -> Figure:
    """Draw the gain over the incumbent (top) and harm (bottom) against n, one column per kind of incumbent."""
    figure = new_figure(11, 5.8)
    panels = figure.subplots(2, len(LOGGERS), sharex=True)
    x = np.arange(len(table.sizes))
    for column, logger in enumerate(LOGGERS):
        above, below = panels[:, column]
        for place, (name, (colour, line)) in enumerate(zip(DRAWN, STYLES, strict=True)):
            gains = [mean_interval(table.by_set(name, [logger], [n], "incumbent")) for n in table.sizes]
            mean, low, high = (np.array(part) for part in zip(*gains, strict=True))
            at = x + 0.03 * (place - len(DRAWN) / 2)
            style = {"color": colour, "linestyle": line, "linewidth": 2.4 if name == "safe" else 1.5}
            above.errorbar(at, mean, (mean - low, high - mean), elinewidth=0.8, label=LABELS[name], **style)
            below.plot(at, [table.harm(name, [logger], [n]) for n in table.sizes], marker="o", markersize=4, **style)
        greedy = [mean_interval(table.by_set("safe", [logger], [n], "incumbent_greedy")).mean for n in table.sizes]
        own = [mean_interval(table.by_set("safe", [logger], [n], "incumbent")).mean for n in table.sizes]
        dotted = {"color": "#7f7f7f", "linestyle": (0, (1, 1)), "linewidth": 1.5}
        above.plot(x, np.subtract(own, greedy), label="incumbent without its exploration", **dotted)
        above.axhline(0, color="#000000", linewidth=0.8)
        value = np.mean(table.chosen("safe", [logger], table.sizes)["incumbent"])
        above.set_title(f"{logger} incumbent ({value:.2f})", loc="left", fontsize=11)
        below.set_xticks(x, [f"{n:,}" for n in table.sizes])
        below.set_xlabel("logged rows")
        for panel in (above, below):
            tidy(panel)
    panels[0, 0].set_ylabel("value over the incumbent")
    panels[1, 0].set_ylabel(f"harm: more than {HARM:g} below")
    for panel in panels[1]:
        panel.set_ylim(-0.03, 1)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    figure.suptitle("Improving an incumbent from its own noisy log", x=0.01, ha="left", fontsize=11)
    return figure


def _square(table: ResultRows) -> Figure:
    """Draw clip × penalty: value over the incumbent and harm, all lengths, one square per kind of incumbent."""
    figure = new_figure(11, 2.9)
    panels = figure.subplots(1, len(LOGGERS))
    for panel, logger in zip(panels, LOGGERS, strict=True):
        cells = [mean_interval(table.by_set(name, [logger], table.sizes, "incumbent")) for name in SQUARE]
        mean = np.array([cell.mean for cell in cells]).reshape(2, 2)
        spread = max(float(np.abs(mean).max()), 1e-9)
        panel.imshow(mean, cmap="RdBu", vmin=-1.6 * spread, vmax=1.6 * spread)
        for place, (name, cell) in enumerate(zip(SQUARE, cells, strict=True)):
            harm = table.harm(name, [logger], table.sizes)
            text = f"{cell.mean:+.3f}\n[{cell.low:+.3f}, {cell.high:+.3f}]\nharm {harm:.2f}"
            panel.text(place % 2, place // 2, text, ha="center", va="center", fontsize=8)
        panel.set_xticks([0, 1], ["penalty", "none"])
        panel.set_yticks([0, 1], ["clip", "none"])
        panel.set_title(f"{logger} incumbent", loc="left", fontsize=11)
    figure.suptitle("Clip × penalty: value over the incumbent, all lengths", x=0.01, ha="left", fontsize=11)
    return figure


# -- table


def table(rows: Table) -> Sequence[Mapping[str, str]]:
    """Return the mean value [95 % interval over data sets] and harm, by incumbent and length."""
    found = ResultRows(rows)
    shown = [
        _reference("the incumbent", found, "incumbent"),
        _reference("its most likely action", found, "incumbent_greedy"),
    ]
    for name in found.learners():
        line = {"learner": LABELS[name]}
        for logger in LOGGERS:
            for n in found.sizes:
                mean, low, high = mean_interval(found.by_set(name, [logger], [n]))
                harm = found.harm(name, [logger], [n])
                line[f"{logger}, {n}"] = f"{mean:.3f} [{low:.3f}, {high:.3f}], {harm:.2f}"
        shown.append(line)
    return shown


def _reference(label: str, found: ResultRows, column: str) -> Mapping[str, str]:
    line = {"learner": label}
    for logger in LOGGERS:
        for n in found.sizes:
            own = found.chosen(found.learners()[0], [logger], [n])
            means = [own[column][own["set"] == name].mean() for name in np.unique(own["set"])]
            line[f"{logger}, {n}"] = f"{np.mean(means):.3f}"
    return line


SAFE_IMPROVEMENT = Study(
    experiment=EXPERIMENT,
    title="Safe improvement: where pessimism should pay",
    claim="The paper's bounds speak of policies that the log supports; improving a policy in production from its own "
    "log is where that should matter. The paper has no such experiment.",
    settings=(
        (
            "Data: sets of --data with at least 900 rows, odd positions of the manifest (without a folder: two "
            "embedded sets). Rewards are 0/1, flipped with probability .2. Logs have 300, 1,000 and 4,000 "
            "rows; sets with fewer than six tenths of that many rows are left out."
        ),
        (
            "Incumbents: logistic regressions with logits × 2 and a floor of .1/K, fitted on 400 rows (good), on 20 "
            "rows (mediocre), on 400 rows with two thirds of the features hidden (blind), on 400 rows with half of "
            "the classes mislabelled (swapped)."
        ),
        "All policies and models are linear.",
        (
            "Tuning: all settings were chosen on thirteen sets of even positions and seeds from 1000. O2PL had about "
            "70 objectives and 100 rules of choice, LCB 90 settings and 16 rules for its guarded form, DR 24, the "
            "others 3 to 5."
        ),
        (
            "Safe improvement and the guarded LCB may keep the incumbent. All others always deploy their most likely "
            "action."
        ),
        ("The claim on the bound was corrected once, after seed 0 had been seen: it counts only the runs that deploy."),
    ),
    claims=claims,
    figures=figures,
    table=table,
    headline="safe-improvement/good-pessimism",
)
