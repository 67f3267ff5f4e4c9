"""The price of overlap: reward lost by `Bandit` against the error of estimates from its log.

A learner that is sure of its actions leaves a log with little to say about other policies. A floor ε/K under every
action helps. Two policies are evaluated from each log by SNIPS and compared with their
exact value on the same contexts: the uniform policy, and the policy of another `Bandit`, which learned
from rounds of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.drawing import new_figure, tidy
from o2pl.evaluation.play import play
from o2pl.learners import Bandit
from o2pl.protocols import Floats
from o2pl.simulation.description import OF_THE_RUN, built, described
from o2pl.simulation.experiment import Cell, Columns, Experiment, Size, Unit
from o2pl.simulation.units import world_of
from o2pl.simulation.worlds.structured import Structured
from o2pl.storage import encode_for_storage
from o2pl_reproduction.claims.intervals import mean, ratio
from o2pl_reproduction.claims.study import Claim, Study, at_most
from o2pl_reproduction.claims.summary import percentile_interval
from o2pl_reproduction.studies.structures_worlds import sets, structured

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

FIRST_SEED = 9000
SETTINGS: dict[str, dict[str, Any]] = {
    "default settings": {},
    "ε = 0.01": {"exploration": 0.01},
    "ε = 0.02": {"exploration": 0.02},
    "ε = 0.05": {"exploration": 0.05},
}
COLUMNS = {
    "reward": "double",  # the mean of what is expected of the actions taken
    "uniform": "double",  # the value of the uniform policy
    "uniform_snips": "double",  # and what the log says of it
    "uniform_weight": "double",  # mean of π/q: 1, were there overlap
    "near": "double",  # the same of a policy that another learner has learned
    "near_snips": "double",
    "near_weight": "double",
    "sure": "double",  # share of rounds with a propensity above .99
}


def cells(data: str | None) -> Sequence[Cell]:
    learners = [described(name, Bandit(2, **given), OF_THE_RUN) for name, given in SETTINGS.items()]
    worlds = {each.name: Structured(each.source, "noisy") for each in sets(data) if structured(each)}
    return [
        Cell({"name": name, "world": encode_for_storage(world), "first_seed": FIRST_SEED}, learner)
        for name, world in worlds.items()
        for learner in learners
    ]


def played(data: str | None) -> Sequence[str]:
    """Return the data sets of both halves of the folder (nothing is tuned), or the embedded ones."""
    found = [each for each in sets(data) if structured(each)]
    return [each.name for each in found if (each.half == "embedded") == (data is None)]


def run_unit(unit: Unit) -> Columns:
    world = world_of(unit)
    chance, choice, of_another = np.random.SeedSequence(unit.world["first_seed"] + unit.seed).spawn(3)
    rounds = world.sample(unit.rounds, np.random.default_rng(chance))
    of_the_run = {"n_actions": world.n_actions, "reward_range": world.reward_range}
    learner = built(unit.learner, **of_the_run, random_state=int(choice.generate_state(1, np.uint64)[0]))
    done = play(learner, rounds)
    another = Bandit(**of_the_run, random_state=int(of_another.generate_state(1, np.uint64)[0]))
    play(another, world.sample(unit.rounds, np.random.default_rng(of_another)))
    rows, means = np.arange(len(rounds)), rounds.expected_table
    found = {"reward": rounds.expected(rows, done.actions).mean(), "sure": np.mean(done.propensities > 0.99)}
    policies = {"uniform": np.full(means.shape, 1 / means.shape[1]), "near": another.predict_proba(rounds.contexts)}
    for name, pi in policies.items():
        weights = pi[rows, done.actions] / done.propensities
        found |= {
            name: (pi * means).sum(axis=1).mean(),
            f"{name}_snips": weights @ done.rewards / weights.sum(),
            f"{name}_weight": weights.mean(),
        }
    return {name: [float(found[name])] for name in COLUMNS}


# -- results from the rows


def by_set(rows: Table, value: Any) -> dict[str, Floats]:
    """Setting -> `value` of a row's columns, a mean over the seeds of each set, [sets]"""
    columns = {name: np.asarray(rows[name]) for name in ("world", "learner", *COLUMNS)}
    worlds, values = sorted(set(columns["world"])), value(columns)
    return {
        name: np.array([values[(columns["world"] == world) & (columns["learner"] == name)].mean() for world in worlds])
        for name in SETTINGS
    }


def lost(rows: Table) -> dict[str, Floats]:
    """Return the reward lost by a setting compared with `Bandit`'s defaults, [sets]."""
    earned = by_set(rows, lambda columns: columns["reward"])
    return {name: earned["default settings"] - own for name, own in earned.items()}


def error(rows: Table, policy: str) -> dict[str, Floats]:
    """Return |SNIPS - the policy's value|, [sets]."""
    return by_set(rows, lambda columns: np.abs(columns[f"{policy}_snips"] - columns[policy]))


def claims(rows: Table) -> Sequence[Claim]:
    name, cost, far, near = "overlap-price", lost(rows), error(rows, "uniform"), error(rows, "near")
    usual = far["default settings"]
    return [
        Claim(
            f"{name}/floor-is-cheap",
            "A floor of ε = 0.01 costs at most .01 of the mean reward.",
            mean(cost["ε = 0.01"], "sets"),
            at_most(0.01),
            "own",
        ),
        Claim(
            f"{name}/floor-helps",
            "It cuts the error of evaluating the uniform policy to half or less (ratio of mean errors).",
            ratio(far["ε = 0.01"], usual, "sets"),
            at_most(0.5),
            "own",
        ),
        Claim(
            f"{name}/near-needs-none",
            "Without a floor the error of evaluating another learner's policy is at most .05.",
            mean(near["default settings"], "sets"),
            at_most(0.05),
            "own",
        ),
    ]


def table(rows: Table) -> Sequence[Mapping[str, str]]:
    earned = by_set(rows, lambda columns: columns["reward"])
    weight, sure = (by_set(rows, lambda columns, name=name: columns[name]) for name in ("uniform_weight", "sure"))
    cost, far, near = lost(rows), error(rows, "uniform"), error(rows, "near")
    return [
        {
            "`Bandit`": name,
            "mean reward": f"{earned[name].mean():.3f}",
            "reward lost": "" if name == "default settings" else _with_interval(cost[name]),
            "error, uniform policy": _with_interval(far[name]),
            "its mean weight": f"{weight[name].mean():.2f}",
            "error, another learner's policy": _with_interval(near[name]),
            "propensities > .99": f"{sure[name].mean():.0%}",
        }
        for name in SETTINGS
    ]


def _with_interval(values: Floats) -> str:
    low, high = percentile_interval(values)
    return f"{values.mean():.3f} [{low:.3f}, {high:.3f}]"


def figures(rows: Table) -> Mapping[str, Figure]:
    figure = new_figure(6.4, 4.0)
    axes, cost, far, near = figure.subplots(), lost(rows), error(rows, "uniform"), error(rows, "near")
    for label, errors, colour, marker in (
        ("uniform policy", far, "#c0392b", "o"),
        ("another learner's policy", near, "#2471a3", "s"),
    ):
        x = [float(cost[name].mean()) for name in SETTINGS]
        y = [float(errors[name].mean()) for name in SETTINGS]
        axes.plot(x, y, marker, color=colour, label=label)
        if errors is far:
            for name, left, height in zip(SETTINGS, x, y, strict=True):
                axes.annotate(name, (left, height), (6, 4), textcoords="offset points", fontsize=9)
    axes.set(xlabel="mean reward lost", ylabel="error of the value that the log gives", ylim=(0, None))
    axes.margins(x=0.3)
    axes.legend(frameon=False, title="evaluated by SNIPS")
    tidy(axes)
    return {"overlap-price": figure}


OVERLAP_PRICE = Study(
    experiment=Experiment(
        name="overlap-price",
        summary="What it costs Bandit to leave a log that can evaluate other policies.",
        sizes={"quick": Size(1000, 2, datasets=("wine", "digits")), "full": Size(2000, 3, datasets=played)},
        cells=cells,
        run=run_unit,
        columns=COLUMNS,
        headline="reward",
    ),
    title="The price of overlap",
    claim="Our own question, not the paper's: what a log costs that can evaluate other policies, and what buys it.",
    settings=(
        (
            "Data: sets with three classes or more and at least 300 rows, of both halves (nothing is tuned here), T = "
            "min(n, 2000), 3 seeds from 9000. The reward is 1 with probability .5 for the right class and .1 for "
            "other actions."
        ),
        (
            "The other learner is another Bandit with default settings, after as many rounds of its own. Values are "
            "exact on the contexts of the log."
        ),
        "Intervals are bootstrap over sets. Quick: two embedded sets, which decide nothing.",
    ),
    claims=claims,
    figures=figures,
    table=table,
)
