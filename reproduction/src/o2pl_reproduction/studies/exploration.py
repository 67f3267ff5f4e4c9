"""How `Bandit` explores: arms that differ by little, items that come and go, and the wheel; beside its rivals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.drawing import new_figure, tidy
from o2pl.evaluation.play import play
from o2pl.protocols import Floats
from o2pl.simulation.description import OF_THE_RUN, described
from o2pl.simulation.experiment import Cell, Columns, Experiment, Size, Unit
from o2pl.simulation.figures import STYLES
from o2pl.simulation.units import world_of
from o2pl.simulation.worlds import Wheel
from o2pl.storage import encode_for_storage
from o2pl_reproduction.claims.intervals import Measurement, binomial, least, mean, median_ratio, ratio
from o2pl_reproduction.claims.study import Claim, Study, at_least, at_most
from o2pl_reproduction.claims.summary import final_values, mean_and_error
from o2pl_reproduction.studies.exploration_learners import (
    BANDITS,
    OF_ARMS,
    OF_WHEEL,
    RIVALS_OF_ITEMS,
    BanditOfItems,
    item_descriptions,
)
from o2pl_reproduction.studies.exploration_worlds import Arms, Page, Visits

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

FIRST_SEED = 31_000
LATE, SOON = 500, 300  # the last rounds of a run; visits within which a new item should be shown
ARMS = {
    "two-arms": Arms((0.5, 0.6)),
    "five-arms": Arms((0.3, 0.35, 0.4, 0.45, 0.5)),
    "two-arms-noise": Arms((0.5, 0.6), noise=4),
}
PAGES = {  # world and visits
    "weak-features": (Page(every=25, taste=0.15, quality=0.9, level=-2.0), 1200),
    "strong-features": (Page(), 2400),
    "eight-at-once": (Page(live=24, every=200, leaving=8, features=6, level=-1.5, taste=0.3), 2400),
}
WHEEL = "wheel"
ROUNDS = {**dict.fromkeys(ARMS, 5000), **{name: visits for name, (_, visits) in PAGES.items()}, WHEEL: 10_000}
SEEDS = {**dict.fromkeys(ARMS, 200), **dict.fromkeys(PAGES, 50), WHEEL: 50}
COLUMNS = {
    "reward": "double",  # the mean of what is expected of the actions taken
    "regret": "double",  # Σ (what is expected of the best action - of the action taken)
    "wrong": "double",  # 1: the action most played in the last 500 rounds is not the best one
    "shown": "double",  # fraction of the new items that were chosen within 300 visits
    "sure": "double",  # fraction of the rounds with a propensity above .99, of `Bandit`
}


def cells(data: str | None) -> Sequence[Cell]:
    of_items = item_descriptions()
    made = []
    for name, world in {**ARMS, WHEEL: Wheel(), **{name: page for name, (page, _) in PAGES.items()}}.items():
        about = {"name": name, "world": encode_for_storage(world), "most": ROUNDS[name], "first_seed": FIRST_SEED}
        if name in PAGES:
            made += [Cell(about, learner, seeds=SEEDS[name]) for learner in of_items]
            continue
        learners = OF_WHEEL if name == WHEEL else OF_ARMS
        own = [described(learner, make(2, None), OF_THE_RUN) for learner, make in learners.items()]
        made += [Cell(about, learner, seeds=SEEDS[name]) for learner in own]
    return made


def run_unit(unit: Unit) -> Columns:
    world, name = world_of(unit), str(unit.learner["name"])
    rounds = min(unit.rounds, int(unit.world["most"]))
    chance, choice = np.random.SeedSequence(int(unit.world["first_seed"]) + unit.seed).spawn(2)
    sampled = world.sample(rounds, np.random.default_rng(chance))
    seed = int(choice.generate_state(1, np.uint64)[0])
    if isinstance(sampled, Visits):
        return _visited(sampled, _of_items(name, sampled, seed), name in BANDITS)
    makers = OF_WHEEL if isinstance(world, Wheel) else OF_ARMS
    unit.check_learner(described(name, makers[name](2, None), OF_THE_RUN))
    done = play(makers[name](world.n_actions, seed, world.reward_range), sampled)
    rows, means = np.arange(rounds), sampled.expected_table
    earned, best = means[rows, done.actions], means.max(axis=1)
    late = slice(-min(LATE, rounds), None)
    most = np.bincount(done.actions[late], minlength=world.n_actions).argmax()
    found = {
        "reward": earned.mean(),
        "regret": (best - earned).sum(),
        "wrong": float(most != means.mean(axis=0).argmax()) if isinstance(world, Arms) else np.nan,
        "shown": np.nan,
        "sure": np.mean(done.propensities > 0.99) if name in BANDITS else np.nan,
    }
    return {column: [float(found[column])] for column in COLUMNS}


def _of_items(name: str, visits: Visits, seed: int) -> Any:
    if name in RIVALS_OF_ITEMS:
        return RIVALS_OF_ITEMS[name](len(visits.items), visits.users.shape[1], seed)
    return BanditOfItems(BANDITS[name](None, seed))  # type: ignore[arg-type]  # items: no number of actions


def _visited(visits: Visits, learner: Any, is_bandit: bool) -> Columns:
    """Let a learner of items choose at every visit."""
    n, first = len(visits), np.full(len(visits.items), -1)
    earned, propensities = np.empty(n), np.empty(n)
    for t in range(n):
        user, shown = visits.users[t], visits.shown[t]
        place, propensities[t] = learner.choose(user, shown, visits.items[shown])
        item, earned[t] = int(shown[place]), visits.chances[t, place]
        learner.learn(user, item, float(visits.uniforms[t] < earned[t]))
        first[item] = t if first[item] < 0 else first[item]
    new = (visits.born > 0) & (visits.born <= n - SOON)
    soon = (first >= 0) & (first - visits.born < SOON)
    found = {
        "reward": earned.mean(),
        "regret": (visits.chances.max(axis=1) - earned).sum(),
        "wrong": np.nan,
        "shown": soon[new].mean() if new.any() else np.nan,
        "sure": np.mean(propensities > 0.99) if is_bandit else np.nan,
    }
    return {column: [float(found[column])] for column in COLUMNS}


# -- results from the rows

Runs = dict[str, dict[tuple[str, str], Floats]]  # column -> (world, learner) -> the figure of each seed


def runs_of(rows: Table) -> Runs:
    return {column: final_values(rows, column) for column in COLUMNS}


def _wrong(runs: Runs, world: str) -> Measurement:
    ended = runs["wrong"][world, "bandit"]
    return binomial(int(ended.sum()), len(ended))


def _least_gain(runs: Runs) -> Measurement:
    """Return the least difference in mean reward between `Bandit` and ε = .05 over the worlds of items."""
    reward = runs["reward"]
    here = [world for world in PAGES if (world, "bandit") in reward]
    gains = np.column_stack([reward[world, "bandit"] - reward[world, "bandit-0.05"] for world in here])
    return least(lambda means: means, gains)


def claims(rows: Table) -> Sequence[Claim]:
    runs = runs_of(rows)
    regret, shown = runs["regret"], runs["shown"]

    def own(key: str, text: str, measured: Measurement, bar: Any) -> Claim:
        return Claim(f"exploration/{key}", text, measured, bar, "own")

    made = []
    for world, bar, says in (
        ("two-arms", 1.2, "Two arms of rates .5 and .6, a constant context"),
        ("five-arms", 1.15, "Five arms of rates from .3 to .5, a constant context"),
        ("two-arms-noise", 1.5, "Two arms of rates .5 and .6, contexts of noise"),
    ):
        if (world, "bandit") not in regret:
            continue
        if world == "two-arms":
            text = (
                "Two arms of rates .5 and .6, a constant context: Bandit ends on the worse arm in at most 1 % of runs."
            )
            made.append(own("two-arms-wrong", text, _wrong(runs, world), at_most(0.01)))
        measured = ratio(regret[world, "bandit"], regret[world, "thompson"], "runs")
        made.append(own(world, f"{says}: Bandit's regret over Thompson sampling's.", measured, at_most(bar)))
    for world in PAGES:
        if (world, "bandit") in shown:
            text = f"Items that come and go ({world}): Bandit shows 95 % of new items in their first {SOON} visits."
            made.append(own(f"shown-{world}", text, mean(shown[world, "bandit"]), at_least(0.95)))
    if any((world, "bandit") in shown for world in PAGES):
        text = "In none of these worlds does Bandit earn less than with ε = 0.05: least difference of mean rewards."
        made.append(own("items-reward", text, _least_gain(runs), at_least(0.0)))
    if (WHEEL, "bandit") in regret:
        both = regret[WHEEL, "bandit"], regret[WHEEL, "linucb"]
        text = "The wheel: Bandit's {} regret over that of LinUCB with α = 1."
        made.append(own("wheel-median", text.format("median"), median_ratio(*both), at_most(1.0)))
        made.append(own("wheel-mean", text.format("mean"), ratio(*both), at_most(1.0)))
    return made


def table(rows: Table) -> Sequence[Mapping[str, str]]:
    runs = runs_of(rows)
    return [
        {
            "world": world,
            "learner": learner,
            "mean reward": _figure(runs["reward"][world, learner]),
            "regret": _figure(runs["regret"][world, learner]),
            "median regret": f"{np.median(runs['regret'][world, learner]):,.1f}",
            "ends on a wrong arm": _share(runs["wrong"][world, learner]),
            f"new items shown in {SOON} visits": _share(runs["shown"][world, learner]),
            "propensities > .99": _share(runs["sure"][world, learner]),
            "runs": str(len(runs["regret"][world, learner])),
        }
        for world, learner in runs["regret"]
    ]


def _figure(values: Floats) -> str:
    middle, error = mean_and_error(values)
    return f"{middle:,.4g}" + ("" if np.isnan(error) else f" ± {error:.2g}")


def _share(values: Floats) -> str:
    return "" if np.isnan(values).all() else f"{values.mean():.1%}"


LABELS = {
    "bandit": "Bandit",
    "bandit-0.02": "Bandit, ε = 0.02",
    "bandit-0.05": "Bandit, ε = 0.05",
    "thompson": "Thompson sampling",
    "linucb": "LinUCB, α = 1",
    "lints": "LinTS, v = 1",
    "epsilon-greedy": "ε-greedy, ε = 0.05",
}


def figures(rows: Table) -> Mapping[str, Figure]:
    runs = runs_of(rows)
    worlds = [world for world in (*ARMS, WHEEL) if (world, "bandit") in runs["regret"]]
    made = {}
    if worlds:
        made["regret"] = _regrets(runs, worlds)
    if pages := [world for world in PAGES if (world, "bandit") in runs["shown"]]:
        made["items"] = _items(runs, pages)
    return made


def _regrets(runs: Runs, worlds: Sequence[str]) -> Figure:
    """Draw the regret of every run: from the least to the greatest of each learner."""
    figure = new_figure(3.6 * len(worlds), 3.9)
    for axes, world in zip(figure.subplots(1, len(worlds), squeeze=False)[0], worlds, strict=True):
        for (learner, label), (colour, line) in zip(LABELS.items(), STYLES, strict=True):
            if (world, learner) in runs["regret"]:
                values = np.sort(runs["regret"][world, learner])
                axes.plot(
                    (np.arange(len(values)) + 0.5) / len(values), values, color=colour, linestyle=line, label=label
                )
        axes.set_yscale("log")
        axes.set_title(f"{world}, {ROUNDS[world]:,} rounds", loc="left", fontsize=11)
        axes.set_xlabel("runs, by regret")
        tidy(axes, "y")
    figure.axes[0].set_ylabel("regret of a run")
    known = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(known.values(), known.keys(), frameon=False, fontsize=9, loc="outside lower center", ncols=len(known))
    return figure


def _items(runs: Runs, pages: Sequence[str]) -> Figure:
    """Draw reward by the fraction of new items that are shown soon."""
    figure = new_figure(3.6 * len(pages), 3.9)
    for axes, world in zip(figure.subplots(1, len(pages), squeeze=False)[0], pages, strict=True):
        for (learner, label), (colour, _) in zip(LABELS.items(), STYLES, strict=True):
            if (world, learner) in runs["shown"]:
                (x, dx), (y, dy) = (mean_and_error(runs[name][world, learner]) for name in ("shown", "reward"))
                axes.errorbar(x, y, 2 * dy, 2 * dx, "o", color=colour, label=label)
        axes.axvline(0.95, color="0.6", linewidth=1)
        axes.set_title(world, loc="left", fontsize=11)
        axes.set_xlabel(f"fraction of new items shown in {SOON} visits")
        tidy(axes)
    figure.axes[0].set_ylabel("mean reward, ± 2 standard errors")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=9, loc="outside lower center", ncols=len(labels))
    return figure


EXPLORATION = Experiment(
    name="exploration",
    summary="How Bandit explores: close arms, items that come and go, and the wheel.",
    sizes={"quick": Size(rounds=600, seeds=2), "full": Size(rounds=10_000, seeds=200)},
    cells=cells,
    run=run_unit,
    columns=COLUMNS,
    headline="regret",
)

EXPLORATION_STUDY = Study(
    experiment=EXPLORATION,
    title="How Bandit explores",
    claim="Our own question, not the paper's: Bandit explores where its predictions are uncertain. Does it find the "
    "best arm, try new items and find rare rewards, and what does that cost?",
    settings=(
        (
            "Arms: rewards 0 and 1, T = 5,000, 200 runs. Two arms of rates .5 and .6 in a constant context, and in "
            "contexts of four standard normal numbers that say nothing; five arms of rates .3, .35, .4, .45 and .5."
        ),
        (
            "Items: pages whose items are replaced, 50 runs; rewards 0 and 1 of a logistic model with a random level "
            "for each item and products of user and item features. “weak-features”: 12 items, a new one every 25 "
            "visits, 1,200 visits. “strong-features”: 12 items, a new one every 30 visits, 2,400 visits. "
            "“eight-at-once”: 24 items, eight new ones every 200 visits, 2,400 visits. The first two resemble worlds "
            "in which the rule was designed, with other seeds; the third was added for this study."
        ),
        "Wheel: δ = 0.95, as in the study `wheel`, T = 10,000, 50 runs.",
        (
            "Thompson sampling draws from a Beta posterior for each arm or item and does not look at contexts. LinUCB "
            "(α = 1) and LinTS (v = 1) are disjoint ridge regressions on standardised contexts with an intercept; for "
            "items by id, on the user. ε-greedy has logistic models (the wheel: ridge). Nothing is tuned here."
        ),
        "A run ends on the arm that is played most in its last 500 rounds. All seeds are from 31,000 on.",
    ),
    claims=claims,
    figures=figures,
    table=table,
)
