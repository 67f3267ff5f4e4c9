"""Draws the pictures of concepts.md: `python docs/concepts_figures.py docs/images`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from o2pl.drawing import new_figure, tidy, write_figure
from o2pl.objectives.penalty import Phi
from o2pl.objectives.weights import clip_weights, weight_of

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#777777"


def clicks(age, sport):
    """The chance of a click. Younger readers prefer sport, older ones news."""
    return np.where(sport, 0.5 - 0.4 * age, 0.15 + 0.25 * age)


def logged(rows, shows_sport, generator):
    """A log: age in [0, 1], whether sport was shown, whether it was clicked, and the propensity of what was shown."""
    age = generator.random(rows)
    chance = shows_sport(age)
    sport = generator.random(rows) < chance
    return age, sport, generator.random(rows) < clicks(age, sport), np.where(sport, chance, 1 - chance)


def leaning(floor):
    """A logger that shows sport to the young, most of the time."""
    return lambda age: np.where(age < 0.4, 1 - floor, floor)


def leaning_more(age):
    """One that is the surer, the farther a reader is from 0.4."""
    return 1 / (1 + np.exp(12 * (age - 0.4)))


def probability(cut, age, sport):
    """Of what was shown, under the policy that shows sport below an age."""
    return ((age < cut) == sport).astype(float)


def true_value(cut):
    age = (np.arange(10_000) + 0.5) / 10_000
    return float(clicks(age, age < cut).mean())


def draw_propensity():
    """Averages of the rows where a policy agrees with the log, beside averages that are weighted."""
    age, sport, click, propensity = logged(4000, leaning(0.15), np.random.default_rng(1))
    figure = new_figure(7.2, 3.2)
    axes = figure.add_subplot()
    policies = ((1.0, "sport to everybody"), (0.0, "news to everybody"), (0.6, "sport below 0.6"))
    for place, (cut, name) in enumerate(policies):
        agrees = probability(cut, age, sport)
        weighted = weight_of(agrees, propensity) * click
        reach = 1.96 * weighted.std() / np.sqrt(len(weighted))
        axes.plot(true_value(cut), place, "|", color="black", markersize=22, markeredgewidth=2.5)
        axes.plot(click[agrees == 1].mean(), place + 0.14, "s", color=ORANGE)
        axes.errorbar(weighted.mean(), place - 0.14, xerr=reach, color=BLUE, marker="o", capsize=3)
        axes.annotate(name, (0.16, place), va="center")
    for text, colour, x in (
        ("truth", "black", 0.0),
        ("plain average", ORANGE, 0.1),
        ("weighted by 1/propensity", BLUE, 0.3),
    ):
        axes.annotate(text, (x, 1.04), xycoords="axes fraction", color=colour, fontweight="bold")
    axes.set_xlim(0.155, 0.42)
    axes.set_ylim(-0.5, 2.5)
    axes.set_yticks([])
    axes.set_xlabel("clicks per reader that the policy would earn")
    tidy(axes, "x")
    return figure


def draw_clipping():
    """Error of the estimate of one policy against the clip, over many logs with little overlap."""
    generator, cut = np.random.default_rng(2), 0.8
    clips = np.geomspace(1.5, 150, 25)
    estimates = np.empty((400, len(clips)))
    for one in range(len(estimates)):
        age, sport, click, propensity = logged(1000, leaning_more, generator)
        weights = weight_of(probability(cut, age, sport), propensity)
        estimates[one] = [(clip_weights(weights, alpha) * click).mean() for alpha in clips]
    bias, spread = np.abs(estimates.mean(axis=0) - true_value(cut)), estimates.std(axis=0)
    figure = new_figure(7.2, 3.4)
    axes = figure.add_subplot()
    both = np.hypot(bias, spread)
    for values, colour, style in ((bias, ORANGE, "--"), (spread, GREY, ":"), (both, BLUE, "-")):
        axes.plot(clips, values, style, color=colour, linewidth=2)
    for name, at, values, colour, beside in (
        ("bias", 4, bias, ORANGE, (-32, -12)), ("spread", 8, spread, GREY, (4, 8)),
        ("both together", 12, both, BLUE, (4, 8)),
    ):  # fmt: skip
        axes.annotate(
            name, (clips[at], values[at]), beside, textcoords="offset points", color=colour, fontweight="bold"
        )
    axes.set_xscale("log")
    axes.set_xlim(clips[0], clips[-1])
    axes.set_xticks([2, 5, 10, 20, 50, 100], ["2", "5", "10", "20", "50", "100"])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("clip: the largest weight that a row may have")
    axes.set_ylabel("error of the estimate")
    tidy(axes)
    return figure


BINS, ROWS, ALPHA = 8, 300, 20.0  # of the policies, and of the log that they are estimated on


def estimates_of(tables, log):
    """Spread of the weights, and estimated value, of policies that are a chance of sport for each range of ages."""
    age, sport, click, propensity = log
    chance = tables[:, np.minimum((age * BINS).astype(int), BINS - 1)]
    weights = clip_weights(weight_of(np.where(sport, chance, 1 - chance), propensity), ALPHA)
    estimate = click.mean() + ((weights - 1) * (click - click.mean())).mean(axis=1)
    return np.sqrt(((weights - 1) ** 2).mean(axis=1)), estimate


def draw_pessimism():
    """Many policies on one log: what their estimates are off by; and what the chosen ones earn, over many logs."""
    generator = np.random.default_rng(3)
    logger = leaning(0.03)((np.arange(BINS) + 0.5) / BINS)
    bold = generator.choice([0.05, 0.3, 1.0], (400, 1))  # a share of readers that are decided upon anew
    tables = np.where(generator.random((400, BINS)) < bold, generator.integers(0, 2, (400, BINS)), logger)
    middle = (np.arange(BINS) + 0.5) / BINS  # clicks are linear in age: a range earns what its middle earns
    truth = (tables * clicks(middle, True) + (1 - tables) * clicks(middle, False)).mean(axis=1)

    def penalty(spread):
        return np.array([Phi(ALPHA, ROWS, np.log(20), scale=0.3)(s**2)[0] for s in spread])

    def log():
        return logged(ROWS, lambda age: logger[np.minimum((age * BINS).astype(int), BINS - 1)], generator)

    spread, estimate = estimates_of(tables, log())
    figure = new_figure(9.6, 3.8)
    left, right = figure.subplots(1, 2)
    order = np.argsort(spread)
    left.plot(spread, estimate - truth, "o", color=BLUE, markersize=3, alpha=0.6)
    for side in (1, -1):
        left.plot(spread[order], side * penalty(spread[order]), color=ORANGE, linewidth=2)
    left.annotate("penalty", (0.03, 0.9), xycoords="axes fraction", color=ORANGE, fontweight="bold")
    left.set_xlabel("spread of the weights: how far a policy is from the log")
    left.set_ylabel("estimate minus truth")
    left.set_title("Estimates err more where the log says less", loc="left", fontsize=11)
    earned = {"highest estimate": [], "highest estimate less penalty": []}
    for _ in range(300):
        spread, estimate = estimates_of(tables, log())
        earned["highest estimate"].append(truth[np.argmax(estimate)])
        earned["highest estimate less penalty"].append(truth[np.argmax(estimate - penalty(spread))])
    edges = np.linspace(0.24, 0.38, 29)
    for (name, values), colour, height in zip(earned.items(), (GREY, ORANGE), (0.86, 0.94), strict=True):
        right.hist(values, edges, color=colour, alpha=0.55)
        right.axvline(np.mean(values), ymax=0.76, color=colour, linewidth=2)
        right.annotate(
            f"{name}: {np.mean(values):.3f} on average", (0.02, height), xycoords="axes fraction", color=colour
        )
    right.set_ylim(0, right.get_ylim()[1] * 1.35)
    right.set_yticks([])
    right.set_xlabel("what the chosen policy earns, over 300 logs")
    right.set_title("Which policy to choose?", loc="left", fontsize=11)
    tidy(left)
    tidy(right, "x")
    return figure


def draw_overlap():
    """Effective rows of new policies, (E w)²/E w², against how much their logger explored."""
    floors, age = np.geomspace(0.005, 0.5, 60), (np.arange(10_000) + 0.5) / 10_000
    figure = new_figure(7.2, 3.2)
    axes = figure.add_subplot()
    for cut, name, colour, at in (
        (0.45, "moves 5 % of the readers", BLUE, 22), (0.8, "moves 40 % of the readers", ORANGE, 30),
    ):  # fmt: skip
        sport = age < cut
        shares = []
        for floor in floors:
            chance = leaning(floor)(age)
            shares.append(1 / np.mean(weight_of(1.0, np.where(sport, chance, 1 - chance))))  # of actions that π plays
        axes.plot(floors, shares, color=colour, linewidth=2)
        axes.annotate(name, (floors[at], shares[at]), (-8, 12), textcoords="offset points", color=colour, ha="right")
    axes.set_xscale("log")
    axes.set_xticks([0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5], ["0.5 %", "1 %", "2 %", "5 %", "10 %", "20 %", "50 %"])
    axes.minorticks_off()
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    axes.set_xlabel("how often the logger played the action it liked less")
    axes.set_ylabel("effective rows")
    tidy(axes)
    return figure


FIGURES = {
    "concept-propensity": draw_propensity,
    "concept-clipping": draw_clipping,
    "concept-pessimism": draw_pessimism,
    "concept-overlap": draw_overlap,
}

if __name__ == "__main__":
    for name, draw in FIGURES.items():
        write_figure(draw(), Path(sys.argv[1]) / f"{name}.png")
