"""Algorithm 1 with a softmax: the objective is not convex, so where a solver ends may depend on where it starts.

The parameters are bounded, |θ_i| ≤ `BOUND`, so that a minimum is attained. On a geometric schedule the whole history is
solved from several starts: θ = 0, the last solution, and points drawn evenly from the bounded set. One learner acts by
the best of them, the other knows the last solution only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.drawing import new_figure, tidy
from o2pl.objectives.pessimistic import Pessimistic, PolicyValue
from o2pl.policies import Softmax
from o2pl.policies.sampling import log_softmax
from o2pl.protocols import Floats
from o2pl.simulation.experiment import Cell, Columns, Experiment, Size, Unit
from o2pl.simulation.figures import STYLES
from o2pl.simulation.worlds import BernoulliTask, Margin
from o2pl.storage import decode_from_storage, encode_for_storage
from o2pl_reproduction.claims.intervals import mean, ratio
from o2pl_reproduction.claims.study import Claim, Study, at_least, at_most, between
from o2pl_reproduction.claims.summary import final_values, mean_and_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

BOUND = 10.0  # of every parameter
RANDOM = 8  # number of random starts
FIRST, GROWTH = 20, 1.25  # rows before the first solve, and growth between solves
ITERATIONS = 200
FRESH = 4000  # contexts for evaluating policies by their exact mean rewards
SAME = 1e-4  # objectives closer than this count as one minimum
SMALL = 1e-3  # of the objective, and of a value
WORLDS = {"margin": Margin(1.0), "logistic": BernoulliTask(features=5, n_actions=3)}
LEARNERS = {"several-starts": RANDOM, "one-start": 0}  # number of random starts; 0: only the last solution
PENALTIES = {"": 1.0, "-penalty-0.1": 0.1}  # λ; 1 is the paper's
COLUMNS = {
    "round": "int64",  # of a solve
    "objective": "double",  # the lowest that was found
    "gap_previous": "double",  # of the objective from this start to the lowest
    "gap_zero": "double",
    "gap_random": "double",  # mean over those starts
    "reached": "double",  # share of the random starts that reach the lowest objective
    "value": "double",  # mean reward of the policy of the lowest objective
    "value_worst": "double",  # of the highest
    "regret": "double",  # so far, against the best action
}


def cells(data: str | None) -> Sequence[Cell]:
    return [
        Cell(
            {"name": name, "world": encode_for_storage(world), "bound": BOUND, "growth": GROWTH, "first": FIRST},
            {"name": f"{learner}{ending}", "penalty": penalty, "random_starts": starts},
        )
        for name, world in WORLDS.items()
        for ending, penalty in PENALTIES.items()
        for learner, starts in LEARNERS.items()
    ]


def solve(value: PolicyValue, start: Floats, bound: float) -> tuple[float, Floats]:
    """Return a minimum within the bounds, by L-BFGS-B."""
    from scipy.optimize import minimize

    limits = [(-bound, bound)] * len(start)
    found = minimize(value, start, jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": ITERATIONS})
    return float(found.fun), np.asarray(found.x)


def solve_times(rounds: int, first: int, growth: float) -> list[int]:
    """Return the rounds after which the history is solved, including the last."""
    times = [min(first, rounds)]
    while times[-1] < rounds:
        times.append(min(rounds, max(times[-1] + 1, round(growth * times[-1]))))
    return times


def run_unit(unit: Unit) -> Columns:
    world: Any = decode_from_storage(unit.world["world"])
    chance, choice = np.random.SeedSequence(unit.seed).spawn(2)  # the same rounds for all learners
    generator, own = np.random.default_rng(chance), np.random.default_rng(choice)
    rounds, fresh = world.sample(unit.rounds, generator), world.sample(FRESH, generator)
    policy, bound = Softmax(world.n_actions), float(unit.world["bound"])
    objective = Pessimistic(unit.learner["penalty"], "theory", None, beta=getattr(world, "beta", 1.0))
    features, width = _with_constant(rounds.contexts), policy.n_params(rounds.contexts.shape[1] + 1)
    actions, propensities = np.empty(unit.rounds, np.int64), np.empty(unit.rounds)
    params: Floats = np.zeros(width)
    done, rows = 0, []
    regret = 0.0
    for t in solve_times(unit.rounds, unit.world["first"], unit.world["growth"]):
        part = slice(done, t)
        probabilities = np.exp(log_softmax(policy.scores(params, features[part])))
        below = probabilities.cumsum(axis=1) < own.random((t - done, 1))
        actions[part] = below.sum(axis=1).clip(max=world.n_actions - 1)  # rounding
        propensities[part] = probabilities[np.arange(t - done), actions[part]]
        played = np.arange(done, t)
        regret += float((rounds.best[part] - rounds.expected(played, actions[part])).sum())
        done = t
        log = Interactions(rounds.contexts[:t], actions[:t], rounds.table[np.arange(t), actions[:t]], propensities[:t])
        value = PolicyValue(policy, features[:t], objective.prepare(log))
        drawn = [own.uniform(-bound, bound, width) for _ in range(unit.learner["random_starts"])]
        starts = [params, *([np.zeros(width)] if drawn else []), *drawn]
        found = [solve(value, start, bound) for start in starts]
        rows.append({"round": t, **_compared(found, policy, fresh), "regret": regret})
        params = min(found, key=lambda each: each[0])[1]
    return {name: [row[name] for row in rows] for name in COLUMNS}


def _with_constant(contexts: Floats) -> Floats:
    return np.hstack([np.ones((len(contexts), 1)), contexts.astype(np.float64)])


def _compared(found: Sequence[tuple[float, Floats]], policy: Softmax, fresh: Any) -> dict[str, float]:
    """Compare where the starts ended: the last solution, θ = 0, and random ones."""
    objectives = np.array([objective for objective, _ in found])
    gaps = objectives - objectives.min()
    drawn = gaps[2:]
    features = _with_constant(fresh.contexts)
    values = [
        float((np.exp(log_softmax(policy.scores(found[place][1], features))) * fresh.expected_table).sum(axis=1).mean())
        for place in (int(gaps.argmin()), int(gaps.argmax()))
    ]
    return {
        "objective": float(objectives.min()),
        "gap_previous": float(gaps[0]),
        "gap_zero": float(gaps[1]) if len(gaps) > 1 else np.nan,
        "gap_random": float(drawn.mean()) if len(drawn) else np.nan,
        "reached": float((drawn < SAME).mean()) if len(drawn) else np.nan,
        "value": values[0],
        "value_worst": values[1],
    }


STARTS = Experiment(
    name="starts",
    summary="Algorithm 1 with a softmax on a bounded parameter set: the gap between starts of the solver.",
    sizes={"quick": Size(rounds=300, seeds=2), "full": Size(rounds=3000, seeds=10)},
    cells=cells,
    run=run_unit,
    columns=COLUMNS,
    headline="regret",
)


# -- results from the rows


def claims(rows: Table) -> Sequence[Claim]:
    """Return the claims at the last solve, on the whole history."""
    last = {name: final_values(rows, name) for name in COLUMNS}

    def own(key: str, text: str, measured: Any, bar: Any) -> Claim:
        return Claim(f"starts/{key}", text, measured, bar, "own", conditions=CONDITIONS)

    made = []
    for world in WORLDS:
        for ending, penalty in PENALTIES.items():
            several, one, where = (world, f"several-starts{ending}"), (world, f"one-start{ending}"), f"{world}{ending}"
            if several not in last["regret"]:
                continue
            setting = f"{world} world, λ = {penalty:g}"
            made += [
                own(
                    f"previous-{where}",
                    f"From the last solution the solver ends within {SMALL:g} of the lowest objective of ten starts "
                    f"({setting}): mean gap.",
                    mean(last["gap_previous"][several]),
                    at_most(SMALL),
                ),
                own(
                    f"reached-{where}",
                    f"Nine of ten starts drawn from the parameter set end at the lowest objective ({setting}): share.",
                    mean(last["reached"][several]),
                    at_least(0.9),
                ),
                own(
                    f"value-{where}",
                    "The policies of the best and of the worst start have the same value, within "
                    f"{10 * SMALL:g} ({setting}): mean gap.",
                    mean(last["value"][several] - last["value_worst"][several]),
                    between(-10 * SMALL, 10 * SMALL),
                ),
            ]
            if one in last["regret"]:
                made.append(
                    own(
                        f"regret-{where}",
                        f"Acting by the best of ten starts loses less than acting by one start ({setting}): regret of "
                        "one start over regret of ten.",
                        ratio(last["regret"][one], last["regret"][several]),
                        at_least(1.0),
                    )
                )
    return made


CONDITIONS = (
    f"parameters within ±{BOUND:g}, intercept and features as they are, L-BFGS-B of at most {ITERATIONS} iterations; "
    "the paper names no parameter set, solver or start"
)


def table(rows: Table) -> Sequence[Mapping[str, str]]:
    """Return a line per world and learner, at the last solve."""
    last = {name: final_values(rows, name) for name in COLUMNS}
    shown = {
        "gap from the last solution": "gap_previous",
        "gap from θ = 0": "gap_zero",
        "gap from random starts": "gap_random",
        "random starts at the lowest": "reached",
        "value, best start": "value",
        "value, worst start": "value_worst",
        "regret": "regret",
    }
    return [
        {"world": world, "learner": learner}
        | {label: _figure(last[name][world, learner]) for label, name in shown.items()}
        for world, learner in last["regret"]
    ]


def _figure(values: Floats) -> str:
    if np.isnan(values).all():
        return ""
    middle, error = mean_and_error(values)
    return f"{middle:.4g}" + ("" if np.isnan(error) else f" ± {error:.2g}")


def figures(rows: Table) -> Mapping[str, Figure]:
    """Draw the gap of the objective between starts, by the length of the history."""
    figure = new_figure(4.6 * len(WORLDS), 3.9)
    learner, world = np.asarray(rows["learner"]), np.asarray(rows["world"])
    names = {"gap_random": "random starts", "gap_zero": "θ = 0", "gap_previous": "the last solution"}
    for axes, each in zip(figure.subplots(1, len(WORLDS), squeeze=False)[0], WORLDS, strict=True):
        mine = (learner == "several-starts") & (world == each)
        at = np.unique(np.asarray(rows["round"])[mine])
        for (name, label), (colour, line) in zip(names.items(), STYLES, strict=False):
            values, when = np.asarray(rows[name])[mine], np.asarray(rows["round"])[mine]
            height = np.array([values[when == t].mean() for t in at])
            axes.plot(at, height, color=colour, linestyle=line, linewidth=2, marker=".", label=label)
        axes.set_xscale("log")
        axes.set_title(f"{each}, λ = 1", loc="left", fontsize=11)
        axes.set_xlabel("rows of the history")
        tidy(axes)
    figure.axes[0].set_ylabel("objective above the lowest of ten starts")
    figure.axes[0].legend(frameon=False, fontsize=9, title="solver starts at")
    figure.suptitle("Algorithm 1 with a softmax, |θ| ≤ 10: mean over seeds", x=0.01, ha="left", fontsize=10)
    return {"gaps": figure}


STARTS_STUDY = Study(
    experiment=STARTS,
    title="Algorithm 1 with a softmax: the gap between starts",
    claim="Algorithm 1 asks for a minimiser of its objective. With a softmax the objective is not convex, and the "
    "paper does not say how the minimiser is found.",
    settings=(
        (
            f"Softmax on an intercept and the features, every parameter within ±{BOUND:g}. b = 0, no L2, the theory's "
            "clip, λ = 1 (the paper's) and 0.1."
        ),
        "Worlds: margin (ν = 1, two actions) and logistic (5 features, 3 actions). T = 3,000, 10 seeds.",
        (
            f"The whole history is solved at {FIRST} rows and whenever it has grown by {GROWTH - 1:.0%}: from the last "
            f"solution, from θ = 0 and from {RANDOM} points drawn uniformly from the parameter set. The solution with "
            "the lowest objective acts. “One start” uses the last solution only."
        ),
        (
            f"A start reaches the lowest objective if it ends less than {SAME:g} above it. Values are exact mean "
            f"rewards over {FRESH:,} new contexts."
        ),
    ),
    claims=claims,
    figures=figures,
    table=table,
)
