"""A number between bounds: `ContinuousBandit` with default settings beside VW's CATS, tuned, in five worlds.

`prices-tuning` plays CATS with every setting of a grid, on seeds from 5000; `prices` a good one for each world
(`TUNED`), on seeds from 7000. Every learner is called every round. Rewards are expected ones, given the actions.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.drawing import new_figure, tidy
from o2pl.evaluation.play import play_timed
from o2pl.learners import ContinuousBandit
from o2pl.learners.params import Parameters
from o2pl.protocols import Floats
from o2pl.simulation.description import OF_THE_RUN, built, described, needed_extra
from o2pl.simulation.experiment import Cell, Columns, Experiment, Size, Unit
from o2pl.simulation.figures import STYLES
from o2pl.simulation.rivals.cats import CATS, TUNED
from o2pl.simulation.units import checkpoints_of_unit
from o2pl.simulation.worlds.response import RESPONSES, Response
from o2pl.storage import decode_from_storage, encode_for_storage
from o2pl_reproduction.claims.intervals import mean
from o2pl_reproduction.claims.study import Claim, Study, above

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

TUNING_SEEDS, SEEDS = 5000, 7000  # the first ones
DIALS: dict[str, tuple[Any, ...]] = {
    "leaves": (4, 8, 16, 32, 64, 128),
    "bandwidth": (0.5, 1.0, 2.0, 4.0),  # in distances between leaves
    "learning_rate": (0.03, 0.1, 0.5, 2.0, 8.0),
}
COLUMNS = {
    "round": "int64",
    "reward": "double",  # the mean of what is expected of the actions so far
    "best": "double",  # of the best action of each round, and of the best single action
    "constant": "double",
    "cpu_seconds": "double",  # of `act` and `update` in the whole run
}


def _cell(name: str, world: Response, learner: str, made: Parameters, first_seed: int) -> Cell:
    place = {"name": name, "world": encode_for_storage(world), "first_seed": first_seed}
    return Cell(place, described(learner, made, OF_THE_RUN), needed_extra(made))


def cells(data: str | None) -> Sequence[Cell]:
    found = []
    for name, world in RESPONSES.items():
        found.append(_cell(name, world, "continuous", ContinuousBandit(world.bounds), SEEDS))
        found.append(_cell(name, world, "cats", CATS(world.bounds, **TUNED[name]), SEEDS))
        found.append(_cell(name, world, "cats-default", CATS(world.bounds), SEEDS))
    return found


def tuning_cells(data: str | None) -> Sequence[Cell]:
    settings = [dict(zip(DIALS, values, strict=True)) for values in itertools.product(*DIALS.values())]
    return [
        _cell(name, world, ":".join(f"{key}={value}" for key, value in each.items()), CATS(world.bounds, **each),
              TUNING_SEEDS)
        for name, world in RESPONSES.items()
        for each in settings
    ]  # fmt: skip


def run_unit(unit: Unit) -> Columns:
    world: Response = decode_from_storage(unit.world["world"])
    chance, choice = np.random.SeedSequence(unit.world["first_seed"] + unit.seed).spawn(2)  # all learners: same chance
    rounds = world.sample(unit.rounds, np.random.default_rng(chance))
    seed = int(choice.generate_state(1, np.uint64)[0])
    play_timed(built(unit.learner, reward_range=world.reward_range, random_state=0), rounds, 300)  # imports
    learner = built(unit.learner, reward_range=world.reward_range, random_state=seed)
    actions, seconds = play_timed(learner, rounds, unit.rounds)
    rows = np.arange(unit.rounds)
    at = checkpoints_of_unit(unit.rounds)
    means = np.cumsum(rounds.expected(rows, np.clip(actions, *world.bounds)))[at - 1] / at
    same = {"best": rounds.best.mean(), "constant": rounds.best_constant, "cpu_seconds": seconds}
    return {"round": at, "reward": means, **{name: [float(value)] * len(at) for name, value in same.items()}}


# -- results from the rows

_NAMES = {
    "continuous": "ContinuousBandit, default settings",
    "cats": "VW CATS, tuned",
    "cats-default": "VW CATS, 16 leaves",
}


def finals(rows: Table, column: str) -> dict[tuple[str, str], Floats]:
    """Return (world, learner) -> the last value of each seed."""
    found: dict[tuple[str, str], list[float]] = {}
    world, learner, unit, values = (np.asarray(rows[name]) for name in ("world", "learner", "unit", column))
    for each in np.unique(unit):
        last = np.flatnonzero(unit == each)[-1]
        found.setdefault((str(world[last]), str(learner[last])), []).append(float(values[last]))
    return {key: np.array(own) for key, own in found.items()}


def claims(rows: Table) -> Sequence[Claim]:
    rewards, found = finals(rows, "reward"), []
    for name in RESPONSES:
        if (name, "cats") not in rewards:
            continue
        lead = rewards[name, "continuous"] - rewards[name, "cats"]
        text = (
            f"{name}: ContinuousBandit with default settings earns more than CATS, tuned (mean lead; the least of "
            f"{len(lead)} seeds: {lead.min():+.3f})."
        )
        found.append(Claim(f"prices/{name}", text, mean(lead), above(0.0), "own"))
    return found


def table(rows: Table) -> Sequence[Mapping[str, str]]:
    rewards, best, constant, seconds = (finals(rows, name) for name in ("reward", "best", "constant", "cpu_seconds"))
    played = int(np.asarray(rows["round"]).max())
    return [
        {
            "world": world,
            "learner": _NAMES[learner],
            "mean reward": f"{own.mean():.3f} ± {own.std():.3f}",
            "worst seed": f"{own.min():.3f}",
            "best single action": f"{constant[world, learner].mean():.3f}",
            "best action": f"{best[world, learner].mean():.3f}",
            "CPU µs a round": f"{np.median(seconds[world, learner]) / played * 1e6:.0f}",
        }
        for (world, learner), own in rewards.items()
    ]


def figures(rows: Table) -> Mapping[str, Figure]:
    """Draw the mean reward so far by round: mean over seeds, and a band from the worst to the best."""
    columns = {name: np.asarray(rows[name]) for name in ("world", "learner", "round", "reward", "best", "constant")}
    played = [world for world in RESPONSES if (columns["world"] == world).any()]
    figure = new_figure(11.0, 3.4)
    axes = figure.subplots(1, len(played), sharex=True, squeeze=False)[0]
    for axis, world in zip(axes, played, strict=True):
        for (learner, label), (colour, style) in zip(_NAMES.items(), STYLES, strict=False):
            own = (columns["world"] == world) & (columns["learner"] == learner)
            if not own.any():
                continue
            at = np.unique(columns["round"][own])
            values = np.stack([columns["reward"][own & (columns["round"] == round_)] for round_ in at])
            axis.fill_between(at, values.min(axis=1), values.max(axis=1), color=colour, alpha=0.2, linewidth=0)
            axis.plot(at, values.mean(axis=1), color=colour, linestyle=style, label=label)
        here = columns["world"] == world
        axis.axhline(columns["best"][here].mean(), color="black", linewidth=1, label="best action of each round")
        axis.axhline(
            columns["constant"][here].mean(), color="0.5", linewidth=1, linestyle=":", label="best single action"
        )
        axis.set_title(world, loc="left", fontsize=11)
        axis.set_xlabel("round")
        tidy(axis)
    axes[0].set_ylabel("mean reward so far")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, loc="outside upper center", ncols=5)
    return {"prices": figure}


PRICES_TUNING = Experiment(
    name="prices-tuning",
    summary="Settings of VW's CATS in five worlds with a real-valued action.",
    sizes={"quick": Size(rounds=500, seeds=1), "full": Size(rounds=5000, seeds=2)},
    cells=tuning_cells,
    run=run_unit,
    columns=COLUMNS,
    headline="reward",
)
PRICES = Study(
    Experiment(
        name="prices",
        summary="A number between bounds: ContinuousBandit beside VW's CATS, tuned, in five worlds.",
        sizes={"quick": Size(rounds=1500, seeds=2), "full": Size(rounds=5000, seeds=10)},
        cells=cells,
        run=run_unit,
        columns=COLUMNS,
        headline="reward",
    ),
    title="A number between bounds",
    claim="ContinuousBandit with default settings earns more than VW's CATS, tuned, in each of five worlds.",
    settings=(
        (
            "Worlds: demand (a price from 5 to 20, sold or not), convex (a quadratic with noise), two-peaks (0/1 "
            "rewards near one of two settings), skewed (prices from 1 to 60, log-normal customers) and dose (benefit "
            "and harm)."
        ),
        (
            "CATS has the best of 48 settings in each world (leaves, bandwidth, learning rate), or of their "
            "neighbours where the best was at an edge, by two other seeds. ε = .05."
        ),
        "ContinuousBandit gets the bounds and the range of the rewards, nothing else.",
        "Rewards are expected rewards, given the actions. CPU time is that of `act` and `update`.",
    ),
    claims=claims,
    figures=figures,
    table=table,
)
