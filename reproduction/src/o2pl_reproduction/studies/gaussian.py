"""One Gaussian policy N(θ, σ²), loss (a - y)² - 1, 15 rollouts: SCRM on the last batch against O2PL on all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.drawing import new_figure, tidy
from o2pl.features import Chain
from o2pl.learners import Exact, GaussianO2PL
from o2pl.policies import Gaussian
from o2pl.protocols import Floats
from o2pl.simulation.description import Description, built, described
from o2pl.simulation.experiment import Cell, Columns, Experiment, Size, Unit
from o2pl.simulation.figures import STYLES
from o2pl.simulation.rivals.crm import SCRM
from o2pl.simulation.worlds import GaussianExample
from o2pl.storage import decode_from_storage, encode_for_storage
from o2pl.validation import to_loss
from o2pl_reproduction.claims.intervals import Measurement, mean, median_ratio, of_means
from o2pl_reproduction.claims.study import Claim, Study, at_most, below
from o2pl_reproduction.studies.batches import best_scrm, gaussian, mean_and_deviation, rollouts

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

EXAMPLE = GaussianExample()
SCALE = 0.3  # σ of the policies
BATCH = 100  # rows of a rollout
SCRM_LAMBDAS = (0.0, 0.1, 0.3, 1.0, 2.0, 3.0)  # of SCRM, in units of the natural loss
PATHS_DRAWN = 25  # drawn one by one in the figure
LAST = 5  # rollouts over which a path's variation is summed
OPTIMUM = SCALE**2 + EXAMPLE.noise**2 - 1  # the least expected loss of the class, at θ = θ*
_O2PL = {
    "o2pl-surrogate": "O2PL, clipped risk alone",
    "o2pl-penalised": "O2PL, variance penalised",
    "o2pl-centred": "O2PL, penalised, b = mean loss",
    "o2pl-shifted": "O2PL, clipped risk, losses moved into [-1, 0]",
    "o2pl-paper": "O2PL, λ = 1 as printed",
}


def learners() -> dict[str, Description]:
    """Return the settings of every learner by name.

    O2PL scales losses by the reward range; b = the natural loss 0 on that scale leaves them as they are, which is what
    SCRM gets. b = 0 ("shifted") instead moves all of them below 0.
    """
    own: dict[str, Any] = {
        "scale": SCALE,
        "features": Chain(),
        "schedule": Exact(),
        "reward_range": EXAMPLE.reward_range,
    }
    zero = float(to_loss(0.0, EXAMPLE.reward_range))
    made: dict[str, Any] = {
        "o2pl-surrogate": GaussianO2PL(**own, control=None, l2=0.0, penalty=0.0, baseline=zero),
        "o2pl-penalised": GaussianO2PL(**own, control=None, l2=0.0, penalty=0.01, baseline=zero),
        "o2pl-centred": GaussianO2PL(**own, control=None, l2=0.0, penalty=0.01, baseline="mean"),
        "o2pl-shifted": GaussianO2PL(**own, control=None, l2=0.0, penalty=0.0, baseline=None),
        "o2pl-paper": GaussianO2PL(**own, control=None, l2=0.0, penalty=1.0, baseline=zero),
    }
    for penalty in SCRM_LAMBDAS:
        rival: dict[str, Any] = {"batch": BATCH, "growth": 1.0, "penalty": penalty, "l2": 0.0, "features": Chain()}
        made[f"scrm-{penalty:g}"] = SCRM(Gaussian(0.0, SCALE), **rival, reward_range=None, start=(EXAMPLE.start,))
    return {name: described(name, learner) for name, learner in made.items()}


def cells(data: str | None) -> Sequence[Cell]:
    world = {"name": "gaussian", "world": encode_for_storage(EXAMPLE), "batch": BATCH}
    return [Cell(world, settings) for settings in learners().values()]


def run_unit(unit: Unit) -> Columns:
    """Return θ and the exact expected loss (θ - θ*)² + σ² + noise² - 1 before the first rollout and after each."""
    world: GaussianExample = decode_from_storage(unit.world["world"])
    chance, choice = (np.random.default_rng(seed) for seed in np.random.SeedSequence(unit.seed).spawn(2))
    learner = built(unit.learner)
    batches = (world.sample(unit.world["batch"], chance) for _ in range(unit.rounds))
    logging = gaussian(world.logging_means, world.logging_scale, choice)
    context = np.ones((1, 1), np.float32)
    path = [world.start]
    for _ in rollouts(batches, logging, gaussian(learner.predict, SCALE, choice), learner.partial_fit):
        path.append(float(learner.predict(context)[0]))
    one = world.sample(1, np.random.default_rng(0))  # the expected loss is the same in every round
    losses = [float(one.policy_losses(np.arange(1), np.array([theta]), SCALE)[0]) for theta in path]
    return {"rollout": np.arange(len(path)), "theta": path, "loss": losses}


# -- results from the rows


def paths(rows: Table, column: str) -> dict[str, Floats]:
    """Return learner -> its column, [seeds, rollouts + 1]."""
    names, units, values = (np.asarray(rows[name]) for name in ("learner", "unit", column))
    return {
        str(name): np.stack([values[units == unit] for unit in np.unique(units[names == name])])
        for name in dict.fromkeys(names.tolist())
    }


def variation(thetas: Floats, last: int = LAST) -> Floats:
    """Return Σ |θ_m - θ_{m-1}| over the last rollouts of each path, [seeds]."""
    return np.asarray(np.abs(np.diff(thetas[:, -last - 1 :], axis=1)).sum(axis=1))


def excess(losses: Floats) -> Floats:
    """Return the final loss above the optimum of the class, [seeds]."""
    return losses[:, -1] - OPTIMUM


def final(losses: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return learner -> the loss after its last rollout, [seeds]."""
    return {name: each[:, -1] for name, each in losses.items()}


_CONDITIONS = (
    "θ* = 1, σ = .3, start 2.5 and 100 rows a rollout are not in the paper; losses enter O2PL as they are (b at the "
    "natural loss 0), clipped by the theory's schedule"
)
_PENALISED = "; λ = .01 of the reward range of 16.5"


def _steadiness(own: Floats, thetas: Mapping[str, Floats], losses: Mapping[str, Floats]) -> Measurement:
    """Return the mean variation over that of SCRM at λ̂, which is chosen again in every resample."""
    rivals = [name for name in thetas if name.startswith("scrm-")]
    ends = np.column_stack([losses[name][:, -1] for name in rivals])
    theirs = np.column_stack([variation(thetas[name]) for name in rivals])

    def figure(means: Floats) -> Floats:
        k = len(rivals)
        best = means[:, :k].argmin(axis=1)
        return np.asarray(means[:, -1] / means[np.arange(len(means)), k + best])

    return of_means(figure, np.column_stack([ends, theirs, own]))


def claims(rows: Table) -> Sequence[Claim]:
    thetas, losses = paths(rows, "theta"), paths(rows, "loss")
    best = best_scrm(final(losses))
    rivals = np.column_stack([each[:, -1] for name, each in losses.items() if name.startswith("scrm-")])
    found = []
    for name, conditions in (
        ("o2pl-surrogate", _CONDITIONS),
        ("o2pl-penalised", _CONDITIONS + _PENALISED),
        (
            "o2pl-paper",
            f"{_CONDITIONS}; λ = 1, nothing tuned; a path that hardly moves is steady, so steadiness is not a claim",
        ),
    ):
        if name not in thetas:
            continue
        kind, label = name.removeprefix("o2pl-"), _O2PL[name]
        own, ends = variation(thetas[name]), losses[name][:, -1]
        steady = f"{label}: its path varies over the last {LAST} rollouts by at most a quarter of SCRM's (at λ̂)"
        gap = of_means(lambda means: (means[:, :1] - means[:, 1:]).max(axis=1), np.column_stack([ends, rivals]))
        found += [
            Claim(
                f"gaussian/{key}-{kind}", said, measured, bar, "paper", paper, match=match, conditions=conditions,
            )
            for key, said, measured, bar, match, paper in (
                ("steady", f"{steady}, mean over seeds", _steadiness(own, thetas, losses), at_most(0.25), None,
                 "“stabilises”, in a figure"),
                ("steady-median", f"{steady}, median seed", median_ratio(own, variation(thetas[best])), at_most(0.25),
                 None, "“stabilises”, in a figure"),
                ("better", f"{label}: its final expected loss is below that of SCRM at λ̂ (difference)", gap, below(0.0),
                 at_most(0.01), "“improves learning”, in a figure"),
            )
            if name != "o2pl-paper" or key == "better"
        ]  # fmt: skip
        said = f"{label}: the final expected loss is within .01 of the optimum of the class"
        above = mean(excess(losses[name]))
        bar = at_most(0.01, "our prototype's number")
        found.append(Claim(f"gaussian/final-{kind}", said, above, bar, "own", conditions=conditions))
    return found


def table(rows: Table) -> Sequence[Mapping[str, str]]:
    thetas, losses = paths(rows, "theta"), paths(rows, "loss")
    best = best_scrm(final(losses))
    return [
        {
            "learner": _O2PL.get(name, f"SCRM, λ = {name.removeprefix('scrm-')}{' (λ̂)' if name == best else ''}"),
            f"variation of θ, last {LAST}": f"{variation(thetas[name]).mean():.3f}",
            "its median": f"{np.median(variation(thetas[name])):.3f}",
            "final loss": "{:.4f} ± {:.4f}".format(*mean_and_deviation(losses[name][:, -1])),
            "above the optimum": f"{excess(losses[name]).mean():.4f}",
            "worst seed": f"{excess(losses[name]).max():.4f}",
        }
        for name in thetas
    ]


def figures(rows: Table) -> Mapping[str, Figure]:
    """Draw the loss by rollout (top: median and middle 80 % of seeds), and the paths θ_m (bottom) with their median."""
    thetas, losses = paths(rows, "theta"), paths(rows, "loss")
    best = best_scrm(final(losses))
    shown = {best: f"(a) SCRM, last batch, λ̂ = {best.removeprefix('scrm-')}"}
    shown |= {"o2pl-surrogate": "(b) O2PL, clipped risk", "o2pl-penalised": "(c) O2PL, penalised"}
    figure = new_figure(9.6, 6.0)
    axes = figure.subplots(2, len(shown), sharex=True, sharey="row")
    for column, ((name, title), (colour, _)) in enumerate(
        zip(shown.items(), (STYLES[1], STYLES[0], STYLES[2]), strict=True)
    ):
        if name not in thetas:
            continue
        above, below = axes[0, column], axes[1, column]
        rollout = np.arange(losses[name].shape[1])
        low, high = np.quantile(losses[name], [0.1, 0.9], axis=0)
        above.fill_between(rollout, low, high, color=colour, alpha=0.2, linewidth=0)
        above.plot(rollout, np.median(losses[name], axis=0), color=colour, linewidth=2)
        above.axhline(OPTIMUM, color="black", linewidth=1, linestyle=(0, (2, 2)))
        above.set_title(title, loc="left", fontsize=11)
        below.plot(rollout, thetas[name][:PATHS_DRAWN].T, color=colour, linewidth=0.7, alpha=0.35)
        below.plot(rollout, np.median(thetas[name], axis=0), color=colour, linewidth=2.5)
        below.axhline(EXAMPLE.target, color="black", linewidth=1, linestyle=(0, (2, 2)))
        below.set_xlabel("rollout")
    axes[0, 0].set_ylabel("expected loss (dashed: optimum)")
    axes[1, 0].set_ylabel("θ (dashed: θ*)")
    for each in axes.flat:
        tidy(each)
    return {"gaussian": figure}


GAUSSIAN = Study(
    Experiment(
        name="gaussian",
        summary="A Gaussian policy over 15 rollouts: loss and path of θ, SCRM against O2PL.",
        sizes={"quick": Size(rounds=15, seeds=10), "full": Size(rounds=15, seeds=100)},
        cells=cells,
        run=run_unit,
        columns={"rollout": "int64", "theta": "double", "loss": "double"},
        headline="loss",
    ),
    title="Loss evolution and optimisation paths of a Gaussian policy",
    claim="Training on the data of all deployed policies (O2PL) stabilises the path and improves learning, compared "
    "with training on those of the last one (SCRM).",
    settings=(
        "Policies N(θ, .3²), loss (a - y)² - 1 with y ~ N(1, .3²), from θ = 2.5, 15 rollouts of 100 rows.",
        (
            "SCRM solves locally from the current θ on the last batch: natural losses, floor τ = .001, λ̂ chosen in "
            "hindsight."
        ),
        (
            "O2PL solves from the current θ on all batches, with the densities of the policies that logged them. "
            "Losses are scaled to [-1, 0] by the range [-1, 15.5]. b at the natural loss 0 leaves them unshifted. "
            "With b = 0 (losses shifted below 0) O2PL stays near its data and is far from the optimum after 15 "
            "rollouts."
        ),
    ),
    claims=claims,
    figures=figures,
    table=table,
)
