"""SCRM against O2PL in batches: three worlds with a real-valued action, two classification sets with three actions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.drawing import new_figure, tidy
from o2pl.environments import Advertising, ContinuousRounds, ContinuousWorld, Pricing, Synthetic, TableRounds, Toy
from o2pl.environments.classification import class_rewards
from o2pl.experiments.batches import batch_sizes, best_scrm, categorical, gaussian, mean_and_deviation, rollouts
from o2pl.experiments.description import Description, built, described
from o2pl.experiments.experiment import Cell, Columns, Experiment, Size, Unit
from o2pl.experiments.figures import STYLES
from o2pl.experiments.study import Claim, Study, at_most
from o2pl.experiments.summary import final_values
from o2pl.extras import extra
from o2pl.learners import O2PL, Exact, GaussianO2PL
from o2pl.learners.member import LINEAR
from o2pl.learners.rivals.crm import SCRM
from o2pl.policies import Gaussian, Softmax
from o2pl.protocols import Floats
from o2pl.storage import decode, encode
from o2pl.validation import to_loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

# The world and the deviation of its policies. The paper has neither the deviations nor the length of Toy's weights; at
# 1.045 the best policy loses .458, as the paper's does.
CONTINUOUS: dict[str, tuple[Any, float]] = {
    "pricing": (Pricing(), 0.5),
    "advertising": (Advertising(), 0.3),
    "toy": (Toy(norm=1.045), 0.5),
}
DISCRETE = {"syn-5": 5, "syn-20": 20}
ENCODINGS = {"01": (0.0, 1.0), "10": (-1.0, 0.0)}  # the loss of the right class and of the others
SCHEMES = {"uniform": (1500, 1500), "doubling": (150, 240)}  # n0: continuous, discrete
BATCHES = (10, 5)  # M: continuous, discrete
SCRM_LAMBDAS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)  # of SCRM, in units of the natural loss
FIXED = "scrm-1"
TRAIN, LOGGER = 7500, 750  # rows of a classification set to learn from, of which the first train the logger
# (environment, scheme) -> the paper's SCRM and O2PL, mean and deviation
PAPER_RESULTS = {
    ("pricing", "uniform"): ((-5.355, 0.196), (-5.419, 0.269)),
    ("pricing", "doubling"): ((-5.184, 0.406), (-5.568, 0.036)),
    ("advertising", "uniform"): ((-0.692, 0.026), (-0.714, 0.003)),
    ("advertising", "doubling"): ((-0.676, 0.048), (-0.717, 0.002)),
    ("toy", "uniform"): ((-0.454, 0.002), (-0.457, 0.002)),
    ("toy", "doubling"): ((-0.458, 0.003), (-0.458, 0.003)),
    ("syn-5", "uniform"): ((0.534, 0.098), (0.230, 0.039)),
    ("syn-5", "doubling"): ((0.570, 0.162), (0.226, 0.036)),
    ("syn-20", "uniform"): ((0.451, 0.059), (0.301, 0.036)),
    ("syn-20", "doubling"): ((0.755, 0.109), (0.479, 0.193)),
}

# -- the table of units


def cells(data: str | None) -> Sequence[Cell]:
    found = []
    for scheme, (n0, n0_discrete) in SCHEMES.items():
        for name, (world, scale) in CONTINUOUS.items():
            batches = {"scheme": scheme, "first": n0, "count": BATCHES[0]}
            settings = {"name": f"{name}-{scheme}", "world": encode(world), "scale": scale, **batches}
            found += [Cell(settings, learner) for learner in _continuous_learners(world, scale)]
        for name, features in DISCRETE.items():
            for encoding, losses in ENCODINGS.items():
                batches = {"scheme": scheme, "first": n0_discrete, "count": BATCHES[1]}
                settings = {"name": f"{name}-{encoding}-{scheme}", "features": features, **batches}
                found += [Cell(settings, learner) for learner in _discrete_learners(losses)]
    return found


def _continuous_learners(world: ContinuousWorld, scale: float) -> Iterator[Description]:
    """Uncentred: b at the natural loss 0, so that losses enter as they are, as SCRM's do."""
    own: dict[str, Any] = {"scale": scale, "reward_range": world.reward_range, "schedule": Exact()}
    zero = float(to_loss(0.0, world.reward_range))
    yield described("o2pl", GaussianO2PL(**own))
    yield described("o2pl-uncentred", GaussianO2PL(**own, baseline=zero, control=None))
    for penalty in SCRM_LAMBDAS:
        yield described(f"scrm-{penalty:g}", SCRM(Gaussian(0.0, scale), penalty=penalty, reward_range=None))


def _discrete_learners(losses: tuple[float, float]) -> Iterator[Description]:
    best, _ = losses
    yield described("o2pl", O2PL(3, policy="linear", schedule=Exact()))  # centred: the same for either encoding
    uncentred = O2PL.paper(3, penalty=0.1, l2=0.1, baseline=-1.0 - best)  # y - b ∈ {best, best + 1} for y ∈ {-1, 0}
    yield described("o2pl-uncentred", uncentred)
    for penalty in SCRM_LAMBDAS:
        yield described(f"scrm-{penalty:g}", SCRM(Softmax(3), penalty=penalty, loss_range=losses))


# -- one unit


def run_unit(unit: Unit) -> Columns:
    """The exact natural loss after each batch, by the learner's policy as it then stands."""
    sizes = batch_sizes(unit.world["scheme"], unit.world["first"], unit.world["count"], unit.rounds)
    after = _continuous(unit, sizes) if "scale" in unit.world else _discrete(unit, sizes)
    return {"batch": np.arange(1, len(sizes) + 1), "seen": np.cumsum(sizes), "loss": list(after)}


def _continuous(unit: Unit, sizes: Sequence[int]) -> Iterator[float]:
    world, scale = decode(unit.world["world"]), float(unit.world["scale"])
    chance, choice = (np.random.default_rng(seed) for seed in np.random.SeedSequence(unit.seed).spawn(2))
    value = valuation(world)
    learner = built(unit.learner)

    def learn(contexts: Floats, actions: Floats, rewards: Floats, propensities: Floats) -> None:
        if isinstance(learner, SCRM) and learner.start is None:  # at the logger, where O2PL starts of itself
            seen = LINEAR.observe(LINEAR.init(contexts.shape[1]), contexts)
            learner.start = learner.policy.imitate(LINEAR.transform(seen, contexts), actions)
        learner.partial_fit(contexts, actions, rewards, propensities)

    logging = gaussian(world.logging_means, world.logging_scale, choice)
    policy = gaussian(lambda contexts: learner.predict(contexts), scale, choice)
    for _ in rollouts((world.sample(size, chance) for size in sizes), logging, policy, learn):
        yield value(learner.predict, scale)


@lru_cache(maxsize=8)
def valuation(
    world: ContinuousWorld, rows: int = 4000, reference_rows: int = 1_000_000
) -> Callable[[Callable[[Floats], Floats], float], float]:
    """(means, scale) -> the exact mean natural loss of N(means(x), scale²), over a fixed sample of contexts.

    Contexts differ far more than policies do, so the loss of the best actions is a control variate: its mean over many
    more contexts, plus what the policy loses beyond it on `rows` of them.
    """
    many = world.sample(reference_rows, np.random.default_rng(1))
    some = world.sample(rows, np.random.default_rng(2))
    at = np.arange(rows)

    def best(rounds: ContinuousRounds) -> float:
        losses = rounds.expected_losses(np.arange(len(rounds)), world.best_actions(rounds.index))
        return float(losses.mean())

    shift = best(many) - best(some)
    return lambda means, scale: shift + float(some.policy_losses(at, means(some.contexts), scale).mean())


def _discrete(unit: Unit, sizes: Sequence[int]) -> Iterator[float]:
    """The 0-1 loss of the likeliest class on the test rows; a data set of its own for each seed."""
    with extra("experiments", "a logger that is a logistic regression"):
        from sklearn.linear_model import LogisticRegression

    data = Synthetic(features=unit.world["features"], seed=unit.seed).load()
    chance, choice = (np.random.default_rng(seed) for seed in np.random.SeedSequence(unit.seed).spawn(2))
    order = chance.permutation(len(data))
    contexts, labels = data.contexts[order], data.labels[order]
    logger = LogisticRegression(max_iter=10000).fit(contexts[:LOGGER], labels[:LOGGER])
    table = class_rewards(labels, len(data.classes), 0.0)
    ends = np.cumsum(sizes)
    batches = (
        TableRounds(contexts[end - size : end], table[end - size : end], table[end - size : end])
        for size, end in zip(sizes, ends, strict=True)
    )
    learner = built(unit.learner)
    logging, policy = categorical(logger.predict_proba, choice), categorical(learner.predict_proba, choice)
    for _ in rollouts(batches, logging, policy, learner.partial_fit):
        yield float(np.mean(learner.predict(contexts[TRAIN:]) != labels[TRAIN:]))


# -- what the rows say

Finals = Mapping[tuple[str, str], Floats]


def final_losses(finals: Finals, world: str) -> dict[str, Floats]:
    """learner -> its final loss in one world, [seeds]."""
    return {learner: losses for (name, learner), losses in finals.items() if name == world}


def _worlds(finals: Finals) -> list[str]:
    return list(dict.fromkeys(world for world, _ in finals))


def _parts(world: str) -> tuple[str, str | None, str]:
    """ "syn-5-01-uniform" -> ("syn-5", "01", "uniform"); the encoding is None for continuous worlds."""
    name, _, scheme = world.rpartition("-")
    stem, _, encoding = name.rpartition("-")
    return (stem, encoding, scheme) if encoding in ENCODINGS else (name, None, scheme)


_LABELS = {"pricing": "Pricing", "advertising": "Advertising", "toy": "Toy", "syn-5": "Syn-5", "syn-20": "Syn-20"}
_LOSSES = {None: "", "01": ", losses {0, 1}", "10": ", losses {-1, 0}"}
_OPEN = {
    "pricing": "10 features of which 3 matter, policy deviation .5",
    "advertising": "policy deviation .3",
    "toy": "|w_env| = 1.045, policy deviation .5",
    "syn-5": "make_classification with its own set for each seed, a linear softmax from 0",
    "syn-20": "make_classification with its own set for each seed, a linear softmax from 0",
}
_PLAIN = "losses as they are (b at the loss 0), λ = .1, clip by the theory, one setting for all rows"
_CENTRED = (
    "the library's defaults (control variate, b the running mean of the losses, λ = .1), one setting for all rows"
)


def claims(rows: Table) -> Sequence[Claim]:
    """For each row: O2PL on losses as they are, which is the paper's own objective, and with the library's defaults."""
    finals = final_values(rows, "loss")
    found: list[Claim] = []
    for world in _worlds(finals):
        open_settings = _OPEN[_parts(world)[0]]
        found += _claims_of(finals, world, "o2pl-uncentred", "", f"{_PLAIN}; {open_settings}")
        found += _claims_of(finals, world, "o2pl", "-centred", f"{_CENTRED}; {open_settings}")
    return found


def _claims_of(finals: Finals, world: str, learner: str, suffix: str, conditions: str) -> Iterator[Claim]:
    if (world, learner) not in finals:
        return
    name, encoding, scheme = _parts(world)
    (scrm, _), (o2pl, _) = PAPER_RESULTS[name, scheme]
    loss = float(finals[world, learner].mean())
    gap = loss - float(finals[world, best_scrm(final_losses(finals, world))].mean())
    where = f"{_LABELS[name]}, {scheme} batches{_LOSSES[encoding]}"
    who = "O2PL with the library's defaults" if suffix else "O2PL"
    # The paper's losses are 0 and 1 here, though it states its method for losses in [-1, 0].
    paper = None if encoding == "10" else round(o2pl - scrm, 3)
    said = f"{where}: the final loss of {who} is at most SCRM's (at λ̂) + .01"
    yield Claim(f"scrm-table/{world}{suffix}", said, paper, *at_most(gap, 0.01), conditions)
    bars = {
        "pricing-uniform": at_most(loss, -5.55),
        "pricing-doubling": at_most(loss, -5.55),
        "advertising-uniform": (loss, "-0.71 ± 0.01", abs(loss + 0.71) <= 0.01),
    }
    if world in bars:
        said = f"{where}: the final loss of {who}"
        yield Claim(f"scrm-table/{world}-loss{suffix}", said, o2pl, *bars[world], conditions)


def table(rows: Table) -> Sequence[Mapping[str, str]]:
    finals = final_values(rows, "loss")
    lines = []
    for world in _worlds(finals):
        name, encoding, scheme = _parts(world)
        best = best_scrm(final_losses(finals, world))
        scrm, o2pl = PAPER_RESULTS[name, scheme]
        lines.append(
            {
                "environment": _LABELS[name] + _LOSSES[encoding],
                "batches": scheme,
                "SCRM, λ = 1": _shown(finals.get((world, FIXED))),
                "SCRM, λ̂": f"{_shown(finals[world, best])} (λ̂ = {best.removeprefix('scrm-')})",
                "O2PL": _shown(finals.get((world, "o2pl-uncentred"))),
                "O2PL, defaults": _shown(finals.get((world, "o2pl"))),
                "paper, SCRM": "{:.3f} ± {:.3f}".format(*scrm),
                "paper, O2PL": "{:.3f} ± {:.3f}".format(*o2pl),
            }
        )
    return lines


def _shown(values: Floats | None) -> str:
    return "" if values is None else "{:.3f} ± {:.3f}".format(*mean_and_deviation(values))


def figures(rows: Table) -> Mapping[str, Figure]:
    """Final losses: continuous worlds, and classification sets by encoding; and the continuous losses by batch."""
    finals = final_values(rows, "loss")
    stems = list(dict.fromkeys(world.rpartition("-")[0] for world in _worlds(finals)))
    groups = {
        "scrm-table-continuous": [stem for stem in stems if stem in CONTINUOUS],
        "scrm-table-discrete": [stem for stem in stems if stem not in CONTINUOUS],
    }
    made = {name: _dots(finals, chosen) for name, chosen in groups.items() if chosen}
    if groups["scrm-table-continuous"]:
        made["scrm-table-batches"] = _curves(rows, finals, groups["scrm-table-continuous"])
    return made


def _methods(finals: Finals, world: str) -> dict[str, tuple[str, str]]:
    """label -> (learner, colour)"""
    best = best_scrm(final_losses(finals, world))
    return {
        "SCRM, λ = 1": (FIXED, STYLES[6][0]),
        "SCRM, λ̂": (best, STYLES[1][0]),
        "O2PL": ("o2pl-uncentred", STYLES[2][0]),
        "O2PL, defaults": ("o2pl", STYLES[0][0]),
    }


def _dots(finals: Finals, stems: Sequence[str]) -> Figure:
    """A panel for each environment: a dot for each seed, mean and deviation; hollow diamonds are the paper's means."""
    columns = 3 if stems[0] in CONTINUOUS else 2
    lines = -(-len(stems) // columns)
    figure = new_figure(10.2, 0.8 + 3.0 * lines)
    panels = figure.subplots(lines, columns, sharey=True, squeeze=False).flat
    for axes, stem in zip(panels, stems, strict=False):
        ticks, labels = [], []
        name, encoding, _ = _parts(f"{stem}-")
        for block, scheme in enumerate(SCHEMES):
            world = f"{stem}-{scheme}"
            if world not in _worlds(finals):
                continue
            for place, (label, (learner, colour)) in enumerate(_methods(finals, world).items()):
                y = -(5.0 * block + place)
                ticks.append(y)
                labels.append(f"{label} · {scheme}")
                if (world, learner) not in finals:
                    continue
                mean, deviation = mean_and_deviation(finals[world, learner])
                axes.plot(finals[world, learner], np.full(len(finals[world, learner]), y), ".", color=colour, alpha=0.3)
                axes.errorbar(mean, y, xerr=np.nan_to_num(deviation), fmt="o", color=colour, capsize=3, linewidth=2)
                paper = {"SCRM, λ̂": 0, "O2PL": 1}.get(label)
                if paper is not None and encoding != "10":
                    axes.plot(
                        PAPER_RESULTS[name, scheme][paper][0],
                        y,
                        "D",
                        markerfacecolor="none",
                        color="black",
                        markersize=8,
                    )
        axes.set_yticks(ticks, labels)
        axes.locator_params(axis="x", nbins=4)
        axes.set_title(_LABELS[name] + _LOSSES[encoding], loc="left", fontsize=11)
        axes.set_xlabel("final loss" if encoding is None else "final 0-1 loss")
        tidy(axes, "x")
    note = "large dot and bar: mean ± deviation over seeds; small dots: seeds; diamond: the paper's mean"
    figure.supxlabel(note, fontsize=10)
    return figure


def _curves(rows: Table, finals: Finals, stems: Sequence[str]) -> Figure:
    """Loss after each batch: mean over seeds, band from the lowest to the highest."""
    worlds, learners, batch, loss = (np.asarray(rows[name]) for name in ("world", "learner", "batch", "loss"))
    figure = new_figure(3.4 * len(stems), 5.8)
    panels = figure.subplots(len(SCHEMES), len(stems), squeeze=False)
    for (row, column), axes in np.ndenumerate(panels):
        stem, scheme = stems[column], list(SCHEMES)[row]
        world = f"{stem}-{scheme}"
        axes.set_title(f"{_LABELS[stem]}, {scheme}", loc="left", fontsize=11)
        tidy(axes)
        if world not in _worlds(finals):
            continue
        for (label, (learner, colour)), (_, line) in zip(_methods(finals, world).items(), STYLES, strict=False):
            mine = (worlds == world) & (learners == learner)
            if not mine.any():
                continue
            x = np.unique(batch[mine])
            y = np.stack([loss[mine & (batch == at)] for at in x])  # [batches, seeds]
            axes.fill_between(x, y.min(axis=1), y.max(axis=1), color=colour, alpha=0.15, linewidth=0)
            axes.plot(x, y.mean(axis=1), color=colour, linestyle=line, linewidth=2, label=label)
    for axes in panels[:, 0]:
        axes.set_ylabel("expected loss")
    for axes in panels[-1]:
        axes.set_xlabel("batch")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


_QUICK = ("o2pl", "o2pl-uncentred", FIXED, "scrm-3")
SCRM_TABLE = Study(
    Experiment(
        name="scrm-table",
        summary="SCRM against O2PL in uniform and doubling batches: Pricing, Advertising, Toy, Syn-5 and Syn-20.",
        sizes={
            "quick": Size(rounds=10_000, seeds=2, learners=_QUICK),
            "full": Size(rounds=200_000, seeds=20),
        },
        cells=cells,
        run=run_unit,
        columns={"batch": "int64", "seen": "int64", "loss": "double"},
        headline="loss",
    ),
    title="SCRM and O2PL in batches",
    claim="Across continuous and discrete environments, with uniform and with doubling batches, O2PL matches or "
    "outperforms SCRM.",
    settings="Continuous: 10 batches from n0 = 1500 (uniform) or 150 (doubling); discrete: 5 from 1500 or 240; the "
    "first by the logging policy, the others by the policy as it stands; `rounds` bounds the rows of all batches. "
    "Losses are exact expectations in natural units (discrete: 0-1 loss of the likeliest class on 2,500 test rows), "
    "mean ± deviation over seeds. SCRM: τ = .001, natural losses, λ̂ the best of a grid in hindsight, from the logger "
    "(continuous) or from 0 (discrete), as O2PL. O2PL learns from all batches, at one fixed λ. With the library's "
    "defaults a linear model of the loss given the context takes the place of b: a single mean would let a solve leave "
    "the data of contexts that pay below it, where all weights vanish. Toy's logger is already the best policy: O2PL's "
    "pessimism keeps it. O2PL on losses as they are stands first since one of 20 seeds of the defaults of the time ran "
    "away on Advertising; both settings have a claim in every row.",
    claims=claims,
    figures=figures,
    table=table,
)
