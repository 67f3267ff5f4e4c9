"""The lemmas behind the confidence bound, with the constants that their proofs give; simulated for the study `theory`.

Entropy transfer is checked on Lipschitz log-odds (p = 1), on arbitrary logs. The maximal inequality, peeling and the
penalty of Algorithm 1 are checked over all 2^G policies of `group_policies` at once, on logs that Algorithm 1 itself
has made, without overlap. Rows, as in `theory_checks`:

    transfer         x = ε, z = σ    widest bracket of a member with ρ̂ ≤ σ       ε (the cover has radius cε/(1+σ))
    transfer-log     the same for the radius ½ log(1 + ε/(1+σ)) of `bracket_radius`
    trapped          x = ε, z = σ    share of losses inside their bracket          1
    maximal          x = n, z = σ    share of paths with M > bound for some policy of ρ̂ ≤ σ      δ
    maximal-size     x = n, z = σ    95 % quantile of the largest M                the bound
    peeling          x = n, z = p    share of paths on which some policy exceeds its own bound   δ
    penalty          x = 0, z = p    share of paths on which |R̂ - R_α| > Φ for some policy, at some n     δ
    penalty-size     x = n, z = p    95 % quantile of the largest |R̂ - R_α| / Φ    1
    useful           x = p, z = σ    the least n at which the bound is below 1, the range of a loss
    margin           x = κ, z = c₀   largest variance / excess risk^β              the lemma's constant
    margin-sharp     the same                                                      the least constant
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from o2pl.objectives.weights import clip_weights
from o2pl.protocols import Floats
from o2pl.simulation.description import Description
from o2pl.simulation.worlds import Margin
from o2pl.storage import decode_from_storage, encode_for_storage
from o2pl.theory.chaining import (
    Entropy,
    bracket_radius,
    chained_deviation,
    margin_constant,
    peeled_class_deviation,
    peeled_radii,
    sharp_margin_constant,
)
from o2pl_reproduction.studies.group_policies import (
    DELTA,
    GroupEvidence,
    GroupSchedule,
    fine_groups,
    highest_within,
    joined,
    least,
    rare_groups,
    solving_rounds,
)
from o2pl_reproduction.studies.theory_checks import ResultRow

TRANSFER = {"slope": 4.0, "height": 3.0, "knots": 33, "rows": 400, "clip": 3.0}
EPSILONS = (0.05, 0.2, 0.8)
SIGMAS = (1.0, 2.0)
PS = (0.5, 1.0, 1.5)
PATHS: dict[str, Any] = {
    "beta": 0.5,
    "fine": 400,
    "rare": 20,
    "growth": 1.1,
    "n": (1000, 10_000, 100_000),
    "sigmas": (0.3, 1.0, 3.0),
}
SMALLEST = 0.05  # radius of the shells
KAPPAS = (0.5, 1.0, 2.0, 4.0, 8.0)
OVERLAPS = (0.05, 0.2)
PAPER_RADIUS = 1 / (math.e**2 - 1)  # c of the entropy transfer, for cε/(1+σ) ≤ 1


def cells() -> list[tuple[str, dict[str, Any]]]:
    return [
        ("transfer", {"name": "transfer", "epsilons": EPSILONS, "sigmas": SIGMAS, **TRANSFER}),
        *(("chaining", {"name": f"chaining-p-{p:g}", "p": p, "delta": DELTA, **PATHS}) for p in PS),
        *(
            ("margin-constant", {"name": f"margin-constant-{kappa:g}", "world": encode_for_storage(Margin(kappa))})
            for kappa in KAPPAS
        ),
    ]


# -- entropy transfer


def lipschitz_members(members: int, settings: Description, generator: np.random.Generator) -> Floats:
    """Return values at evenly spaced knots of random piecewise linear functions on [0, 1]. [members, knots]"""
    knots, height = settings["knots"], settings["height"]
    steps = generator.choice([-1.0, 0.0, 1.0], (members, knots - 1)) * settings["slope"] / (knots - 1)
    paths = np.cumsum(np.column_stack([generator.uniform(-height, height, members), steps]), axis=1)
    return np.asarray(np.clip(paths, -height, height))


def values_at(members: Floats, x: Floats) -> Floats:
    """Return the functions' values at x, [members, n]."""
    knots = members.shape[1]
    place = np.minimum((x * (knots - 1)).astype(np.int64), knots - 2)
    part = x * (knots - 1) - place
    return np.asarray(members[:, place] * (1 - part) + members[:, place + 1] * part)


def rounded(members: Floats, radius: float, slope: float) -> tuple[Floats, Floats]:
    """The cover that `lipschitz_entropy` counts: points, and the multiples of 2/3 radius below the functions there."""
    step = 2 * radius / 3
    points = np.arange(math.ceil(slope / step)) * step / slope
    return points, np.floor(values_at(members, points) / step)


def transfer(settings: Description, amount: int, generator: np.random.Generator) -> list[ResultRow]:
    """Check a tenth of `amount` members; logging propensities are arbitrary: the proposition holds for every log."""
    n, slope, clip = settings["rows"], settings["slope"], settings["clip"]
    members = lipschitz_members(max(amount // 10, 10), settings, generator)
    x = np.asarray(generator.random(n))
    y = -generator.random(n)
    signs, logged = generator.choice([-1.0, 1.0], n), generator.uniform(0.05, 0.95, n)

    def weights(log_odds: Floats) -> Floats:
        return np.asarray(1 / (1 + np.exp(-signs * log_odds)) / logged)

    def losses(w: Floats) -> Floats:
        return np.asarray((clip_weights(w, clip) - 1) * y)

    own = losses(weights(values_at(members, x)))
    rho = np.sqrt(np.mean(own**2, axis=1))
    rows: list[ResultRow] = []
    for eps, sigma in itertools.product(settings["epsilons"], settings["sigmas"]):
        inside = rho <= sigma
        for kind, radius in (
            ("transfer", PAPER_RADIUS * eps / (1 + sigma)),
            ("transfer-log", bracket_radius(eps, sigma)),
        ):
            points, steps = rounded(members[inside], radius, slope)
            cell = np.searchsorted(points, x, side="right") - 1
            centre = weights((steps[:, cell] + 0.5) * 2 * radius / 3)
            low, high = losses(centre * math.exp(radius)), losses(centre * math.exp(-radius))
            width = np.sqrt(np.mean((high - low) ** 2, axis=1)).max(initial=0.0)
            rows.append((kind, eps, sigma, float(width), eps, 0.0, int(inside.sum())))
            trapped = (low <= own[inside] + 1e-12) & (own[inside] <= high + 1e-12)
            rows.append(("trapped", eps, sigma, float(trapped.mean()), 1.0, 0.0, int(inside.sum())))
    return rows


# -- maximal inequality, peeling, penalty


def group_entropy(p: float, fine: int, rare: int) -> Entropy:
    """Log N(ε, log Π) of the groups: the ways of a fine group are h_k apart, so one centre serves both if h_k ≤ 2ε."""
    return lambda eps: math.log(2) * (rare + min(fine, (math.log(2) / (2 * eps)) ** p))


def chaining(settings: Description, amount: int, generator: np.random.Generator) -> list[ResultRow]:
    """Simulate a 400th of `amount` paths of Algorithm 1; at each n, report the worst of all 2^G policies."""
    p, beta, delta = settings["p"], settings["beta"], settings["delta"]
    entropy = group_entropy(p, settings["fine"], settings["rare"])
    schedule, times = GroupSchedule(beta, p), [int(n) for n in settings["n"]]
    paths = max(amount // 400, 2)
    shape = paths, len(times)
    highest = np.empty((*shape, len(settings["sigmas"])))
    exceeds, constants = np.zeros(shape, np.bool_), np.empty(shape)
    bounds = {
        (n, sigma): chained_deviation(sigma, _envelope(schedule, n), n, delta, entropy)
        for n in times
        for sigma in settings["sigmas"]
    }
    shells = {
        n: [
            (radius, peeled_class_deviation(radius, _envelope(schedule, n), n, delta, entropy, SMALLEST))
            for radius in peeled_radii(_envelope(schedule, n), SMALLEST)
        ]
        for n in times
    }
    for path in range(paths):
        groups = joined(
            rare_groups(beta, settings["rare"], generator.random(), 0.5), fine_groups(p, beta, settings["fine"], 0.5)
        )
        evidence, ways = GroupEvidence(groups), np.zeros(len(groups.masses), np.bool_)
        at = np.union1d(solving_rounds(times[-1], settings["growth"]), times)
        for before, now in itertools.pairwise([0, *map(int, at)]):
            evidence.add(ways, now - before, generator)
            penalty = schedule.penalty(now)
            risks, variances = evidence.moments(penalty.alpha)
            _, ways = least(risks, variances, penalty)
            if now in times:
                place, squares = times.index(now), evidence.squares(penalty.alpha)
                off = risks - evidence.targets(penalty.alpha)
                highest[path, place] = [highest_within(off, squares, sigma) for sigma in settings["sigmas"]]
                exceeds[path, place] = any(highest_within(off, squares, r) > bound for r, bound in shells[now])
                constants[path, place] = least_constant(off, variances, penalty)
    rows: list[ResultRow] = [
        ("penalty", 0.0, p, float((constants > 1).any(axis=1).mean()), delta, 0.0, paths),
        ("useful", p, 1.0, useful_from(entropy, delta), 1.0, 0.0, 1),
    ]
    for place, n in enumerate(times):
        rows.append(("peeling", n, p, float(exceeds[:, place].mean()), delta, 0.0, paths))
        rows.append(("penalty-size", n, p, float(np.quantile(constants[:, place], 1 - delta)), 1.0, 0.0, paths))
        for column, sigma in enumerate(settings["sigmas"]):
            values, bound = highest[:, place, column], bounds[n, sigma]
            rows.append(("maximal", n, sigma, float((values > bound).mean()), delta, 0.0, paths))
            largest = max(0.0, float(np.quantile(values, 1 - delta, method="higher")))  # -∞: no policy has ρ̂ ≤ σ
            rows.append(("maximal-size", n, sigma, largest, bound, 0.0, paths))
    return rows


def _envelope(schedule: GroupSchedule, n: int) -> float:
    """B: the clipped losses (min(w, α) - 1) y are in [-(α - 1), 1]."""
    return max(schedule.penalty(n).alpha - 1, 1.0)


def least_constant(off: Floats, variances: Floats, penalty: Any) -> float:
    """Return the least C with |R̂ - R_α| ≤ C Φ(σ̂) for all 2^G policies, to a thousandth, by bisection."""
    low, high = 0.0, 8.0
    while high - low > 1e-3 * max(low, 0.1):
        middle = (low + high) / 2
        scaled = penalty._replace(scale=middle)
        if min(least(sign * off, variances, scaled)[0] for sign in (-1.0, 1.0)) < 0:
            low = middle
        else:
            high = middle
    return high


def useful_from(entropy: Entropy, delta: float, sigma: float = 1.0) -> float:
    """Return the least n at which the maximal inequality's bound, for B = 1, is below 1: before, it is vacuous."""
    low, high = 0.0, 60.0
    for _ in range(50):
        middle = (low + high) / 2
        if chained_deviation(sigma, 1.0, math.exp(middle), delta, entropy) > 1:
            low = middle
        else:
            high = middle
    return math.exp(high)


# -- the margin lemma's constant


def margin_ratios(settings: Description, amount: int, generator: np.random.Generator) -> list[ResultRow]:
    """Check policies that err where the gap is small, as often as allowed, and random others."""
    world: Margin = decode_from_storage(settings["world"])
    gaps = world.gap * np.abs(world.sample(amount, generator).contexts[:, 0].astype(np.float64))
    rows: list[ResultRow] = []
    for overlap in OVERLAPS:
        edges = np.quantile(gaps, np.linspace(0.2, 1.0, 17))
        wrong = [(1 - overlap) * (gaps <= edge) for edge in edges]
        wrong += [(1 - overlap) * generator.random() * (gaps <= edge) * generator.random(amount) for edge in edges]
        ratio = max(float(np.mean(q / (1 - q)) / np.mean(q * gaps) ** world.beta) for q in wrong)
        for kind, constant in (("margin", margin_constant), ("margin-sharp", sharp_margin_constant)):
            rows.append((kind, world.nu, overlap, ratio, constant(world.nu, 1.0, overlap), 0.0, amount))
    return rows


CHECKS = {"transfer": transfer, "chaining": chaining, "margin-constant": margin_ratios}
