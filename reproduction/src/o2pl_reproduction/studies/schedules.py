"""Algorithm 1 at lower cost: occasional solves compared with solving on the whole history after every round.

Two experiments. `schedules` plays every schedule on the same rounds and compares regret with that of solving every
round; `schedule-costs` runs the fast ones for a hundred times as long and measures their cost. Lengths are multiples of
a size's `rounds`: a world of length 0.25 is played for a quarter of them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.drawing import new_figure, tidy
from o2pl.engine.schedules import as_schedule
from o2pl.evaluation.play import play
from o2pl.protocols import Environment, Floats
from o2pl.simulation.experiment import Cell, Columns, Experiment, Size, Unit
from o2pl.simulation.figures import STYLES
from o2pl.simulation.units import COLUMNS, crossed_units, o2pl, play_unit, world_of
from o2pl.simulation.worlds import WORLDS, BernoulliTask
from o2pl_reproduction.claims.intervals import Measurement, mean, of_means
from o2pl_reproduction.claims.study import Claim, Study, at_most
from o2pl_reproduction.claims.summary import final_values, percentile_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

BAR = 0.005  # of the mean reward, in units of the reward range
GROWTH = 1.1  # of CPU time, as a power of T
LOGISTIC = BernoulliTask(features=20)
REFERENCE = "exact"
LABELS = {"near-exact": "near-exact", "geometric": "geometric (default)", "replay": "replay", "exact": "every round"}
LEARNERS = {name: o2pl(policy="linear", schedule=as_schedule(name)) for name in LABELS}  # with their numbers
# Solving every round costs O(T²), which limits the length of the runs. Digits has 1,797 rows.
COMPARED: dict[str, tuple[Environment, float]] = {
    "logistic": (LOGISTIC, 0.25),
    "margin": (WORLDS["margin"], 1.0),
    "digits": (WORLDS["digits"], 0.1),
}
LENGTHS = {"short": 0.5, "ten-times": 5.0, "hundred-times": 50.0}
LONG = ("near-exact", "geometric")


def _lasting(cell: Cell, length: float, name: str) -> Cell:
    return replace(cell, world={**cell.world, "name": name, "length": length})


def _rounds(unit: Unit) -> int:
    return max(1, round(unit.rounds * float(unit.world["length"])))


def _world(unit: Unit) -> Any:
    """Return the unit's world; a logistic world has new coefficients for each seed, to compare over worlds too."""
    world = world_of(unit)
    return replace(world, seed=unit.seed) if isinstance(world, BernoulliTask) else world


# -- regret


def cells(data: str | None) -> Sequence[Cell]:
    return [
        _lasting(cell, length, name)
        for name, (world, length) in COMPARED.items()
        for cell in crossed_units({name: world}, LEARNERS)
    ]


def run_unit(unit: Unit) -> Columns:
    return play_unit(_world(unit), LEARNERS, replace(unit, rounds=_rounds(unit)))


SCHEDULES = Experiment(
    name="schedules",
    summary="Regret of schedules of solving against solving on the whole history after every round.",
    sizes={"quick": Size(rounds=1000, seeds=2), "full": Size(rounds=20_000, seeds=20)},
    cells=cells,
    run=run_unit,
    columns=COLUMNS,
    headline="regret",
)


def gaps(rows: Table) -> dict[tuple[str, str], Floats]:
    """Return (world, schedule) -> how much its mean expected reward is below that of solving every round, by seed."""
    regrets, rounds = final_values(rows, "regret"), final_values(rows, "round")
    return {
        (world, name): (regrets[world, name] - regrets[world, REFERENCE]) / rounds[world, REFERENCE]
        for world in COMPARED
        for name in LABELS
        if name != REFERENCE
    }


def claims(rows: Table) -> Sequence[Claim]:
    found = gaps(rows)
    return [
        Claim(
            f"schedules/{name}-{world}",
            f"Mean reward at most {BAR} below that of solving every round: {LABELS[name]}, {world}.",
            mean(found[world, name]),
            at_most(BAR),
            "own",
        )
        for name in LONG
        for world in COMPARED
    ]


def table(rows: Table) -> Sequence[Mapping[str, str]]:
    found, rounds = gaps(rows), final_values(rows, "round")
    shown = []
    for world in COMPARED:
        line = {"world": world, "T": f"{rounds[world, REFERENCE][0]:,.0f}"}
        for name, label in LABELS.items():
            if name != REFERENCE:
                low, high = percentile_interval(found[world, name])
                line[f"gap, {label}"] = f"{found[world, name].mean():+z.4f} [{low:+z.4f}, {high:+z.4f}]"
        shown.append(line)
    return shown


def _curves(rows: Table, world: str) -> dict[str, tuple[Floats, Floats]]:
    """Return schedule -> rounds [m], and regret by seed and round, [seeds, m]."""
    here = rows.filter(np.asarray(rows["world"]) == world)
    learners, seeds, at = (np.asarray(here[name]) for name in ("learner", "seed", "round"))
    regret, found = np.asarray(here["regret"]), {}
    for name in LABELS:
        mine = [(learners == name) & (seeds == seed) for seed in np.unique(seeds)]
        found[name] = (at[mine[0]], np.stack([regret[each] for each in mine]))
    return found


def figures(rows: Table) -> Mapping[str, Figure]:
    """Draw what each schedule loses compared with solving every round, in each world."""
    figure = new_figure(10.8, 3.9)
    for axes, world in zip(figure.subplots(1, len(COMPARED)), COMPARED, strict=True):
        curves = _curves(rows, world)
        at, exact = curves[REFERENCE]
        for name, (colour, line) in zip(LONG, STYLES, strict=False):
            extra = curves[name][1] - exact
            mean = extra.mean(axis=0)
            error = extra.std(axis=0, ddof=1) / np.sqrt(len(extra)) if len(extra) > 1 else 0 * mean
            axes.fill_between(at, mean - 2 * error, mean + 2 * error, color=colour, alpha=0.18, linewidth=0)
            axes.plot(at, mean, color=colour, linestyle=line, linewidth=2, label=LABELS[name])
        axes.plot(at, BAR * at, color="#666666", linestyle=":", linewidth=1.2, label=f"{BAR} a round")
        axes.axhline(0, color="#000000", linewidth=0.8)
        axes.set_title(world, loc="left", fontsize=11)
        axes.set_xlabel("round")
        axes.set_xlim(0, at[-1])
        tidy(axes)
    figure.axes[0].set_ylabel("regret above that of solving every round")
    figure.axes[0].legend(frameon=False, fontsize=9, loc="upper left")
    figure.suptitle("Mean over seeds ± 2 standard errors, on the same rounds", x=0.01, ha="left", fontsize=10)
    return {"schedules": figure}


SCHEDULES_STUDY = Study(
    experiment=SCHEDULES,
    title="Schedules of solving: regret",
    claim=(
        "Algorithm 1 calls its oracle on the whole history after every round, which costs O(T²); the paper leaves open"
        " how that can be avoided. Solving on a geometric schedule, from where the last solve ended, loses little."
    ),
    settings=(
        "Linear policy, our default objective. All schedules of a seed meet the same rounds. 20 seeds.",
        (
            "Worlds: logistic (20 features, 5 actions, new coefficients for every seed, T = 5,000); margin (ν = 1, T "
            "= 20,000); digits (all 1,797 rows)."
        ),
        "Gaps are between mean expected rewards, which are less noisy than rewards.",
        (
            "Every round: up to 100 iterations of L-BFGS, to a gradient of 1e-5. Near-exact: growth 1.05, ease 1,000, "
            "up to 15 iterations, chosen on seeds from 1000. Geometric: growth 1.15, ease 200, 5 iterations. Replay: "
            "the paper's schedule."
        ),
    ),
    claims=claims,
    figures=figures,
    table=table,
)


# -- cost


def cost_cells(data: str | None) -> Sequence[Cell]:
    learners = {name: LEARNERS[name] for name in LONG}
    return [
        _lasting(cell, length, name)
        for name, length in LENGTHS.items()
        for cell in crossed_units({name: LOGISTIC}, learners)
    ]


def run_cost_unit(unit: Unit) -> Columns:
    world, make, rounds = _world(unit), LEARNERS[unit.learner["name"]], _rounds(unit)
    stretch = world.sample(rounds, np.random.default_rng([unit.seed, 1]))
    play(make(world.n_actions, unit.seed), stretch, min(rounds, 100))  # imports
    learner: Any = make(world.n_actions, unit.seed)
    start = time.process_time()
    done = play(learner, stretch)
    spent = time.process_time() - start
    solves, evaluations = learner.effort_
    counted = {"solves": [solves], "evaluations": [evaluations]}
    return {"round": [rounds], "cpu_seconds": [spent], **counted, "mean_reward": [float(done.rewards.mean())]}


COSTS = Experiment(
    name="schedule-costs",
    summary="CPU time, solves and evaluations of the objective of schedules of solving, to 1e6 rounds.",
    sizes={"quick": Size(rounds=1000, seeds=1), "full": Size(rounds=20_000, seeds=10)},
    cells=cost_cells,
    run=run_cost_unit,
    columns={
        "round": "int64",
        "cpu_seconds": "double",
        "solves": "int64",
        "evaluations": "int64",
        "mean_reward": "double",
    },
    headline="cpu_seconds",
)


def costs(rows: Table, column: str) -> dict[str, tuple[Floats, Floats]]:
    """Return schedule -> T [lengths], and `column` by length and seed, [lengths, seeds]."""
    values, rounds = final_values(rows, column), final_values(rows, "round")
    return {
        name: (
            np.array([rounds[length, name][0] for length in LENGTHS]),
            np.stack([values[length, name] for length in LENGTHS]),
        )
        for name in LONG
    }


def growth(rounds: Floats, spent: Floats) -> Measurement:
    """Return the slope of log mean cost against log T."""
    x = np.log(rounds) - np.log(rounds).mean()

    def slope(*means: Floats) -> Floats:
        return np.asarray(np.log(np.column_stack(means)) @ x / (x @ x))

    return of_means(slope, *spent)


def cost_claims(rows: Table) -> Sequence[Claim]:
    return [
        Claim(
            f"schedule-costs/{name}",
            f"CPU time grows hardly faster than T: {LABELS[name]} (slope of log CPU time against log T).",
            growth(*found),
            at_most(GROWTH),
            "own",
        )
        for name, found in costs(rows, "cpu_seconds").items()
    ]


def cost_table(rows: Table) -> Sequence[Mapping[str, str]]:
    spent, solves, evaluations, reward = (
        costs(rows, column) for column in ("cpu_seconds", "solves", "evaluations", "mean_reward")
    )
    return [
        {
            "schedule": LABELS[name],
            "T": f"{at:,.0f}",
            "CPU s, median (range)": f"{np.median(each):.2f} ({each.min():.2f}-{each.max():.2f})",
            "solves": f"{np.median(solves[name][1][place]):,.0f}",
            "evaluations": f"{np.median(evaluations[name][1][place]):,.0f}",
            "mean reward": f"{reward[name][1][place].mean():.4f}",
        }
        for name in LONG
        for place, (at, each) in enumerate(zip(*spent[name], strict=True))
    ]


def cost_figures(rows: Table) -> Mapping[str, Figure]:
    """Draw CPU time and solves against T, one dot per seed; dotted: proportional to T."""
    figure = new_figure(9.6, 4.0)
    panels = {"cpu_seconds": "CPU seconds", "solves": "solves"}
    for axes, (column, title) in zip(figure.subplots(1, 2), panels.items(), strict=True):
        for (name, (at, values)), (colour, line) in zip(costs(rows, column).items(), STYLES, strict=False):
            label = LABELS[name]
            if column == "cpu_seconds":
                label += f": T^{growth(at, values).value:.2f}"
                axes.plot(at, np.median(values[0]) * at / at[0], color="#666666", linestyle=":", linewidth=1.2)
            axes.plot(at, np.median(values, axis=1), color=colour, linestyle=line, linewidth=2, label=label)
            axes.plot(np.repeat(at, values.shape[1]), values.reshape(-1), "o", color=colour, markersize=4, alpha=0.7)
        axes.set_xscale("log")
        if column == "cpu_seconds":
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set_title(title, loc="left", fontsize=11)
        axes.set_xlabel("rounds T")
        tidy(axes)
        axes.legend(frameon=False, fontsize=9, loc="upper left")
    return {"costs": figure}


COSTS_STUDY = Study(
    experiment=COSTS,
    title="Schedules of solving: cost",
    claim="Full-history pessimistic learning for 1e6 rounds: its cost is about linear in T.",
    settings=(
        ("Linear policy, the logistic world of `schedules` (20 features, 5 actions), T = 1e4, 1e5 and 1e6, ten seeds."),
        (
            "CPU time is that of the run alone, after compilation. The whole log is kept uncompressed (d + 4 numbers "
            "per row, 112 MB at T = 1e6)."
        ),
    ),
    claims=cost_claims,
    figures=cost_figures,
    table=cost_table,
)
