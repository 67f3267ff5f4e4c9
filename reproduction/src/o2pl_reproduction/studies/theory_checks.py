"""The checks of the study `theory`: rows of measured values with the theory's reference.

A row is (kind, x, z, measured, reference, error, trials); what x and z are each check defines:

    crossing     x = u, z = v     share of paths with M_j ≥ u, S_j ≤ v at some j     the bound of Prop. B.1
    clipping     x = α, z = σ²    bias of clipping at α                              the lemma's σ²/(α - 1)
    radius       x = t, z = p     critical radius, numerically                       (α/t)^{1/(2+p)}
    rate         x = β, z = p     exponent of the regret that the recursion allows   that of Theorem 1
    heb          x = ν, z = 0     slope of log variance on log excess risk           β
    pair         x = excess risk, z = ν; measured: variance of the weights
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.objectives.weights import clip_weights, weight_of
from o2pl.protocols import Floats
from o2pl.simulation.description import Description
from o2pl.simulation.worlds import Margin, SingleContext
from o2pl.storage import decode_from_storage
from o2pl.theory import inequality, regret_exponent
from o2pl.theory.critical import critical_radius, radius_scale, recursion_regret
from o2pl.theory.heb import error_bound, error_bound_of_sample
from o2pl.theory.inequality import Step

if TYPE_CHECKING:
    from pyarrow import Table

# levels of Prop. B.1's bound at each variation v, and the length of a path
GRID = {"levels": (0.9, 0.7, 0.5, 0.2, 0.05), "v": (10.0, 30.0, 100.0), "steps": 300}
PATH_CLIP = 3.0  # of the paths of clipped weights
ALPHAS = (1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
ENTROPIES = (0.0, 0.5, 1.0, 1.5)
BETAS = (0.25, 0.5, 0.75, 1.0)
NUS = (0.5, 1.0, 2.0, 4.0, 8.0)
FLOOR = 0.1
HORIZON = 1e15  # of the recursion

ResultRow = tuple[str, float, float, float, float, float, int]


def bernoulli_step(M: Floats, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """X = b - p with b ~ Bernoulli(p), p falling in the martingale so far."""
    p = 0.5 - 0.4 * np.tanh(M / 4)
    return (generator.random(len(M)) < p) - p, np.zeros(len(M))


def signs_step(M: Floats, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Return X = ±1: S_j = j, all variation at the full bound."""
    return np.where(generator.random(len(M)) < 0.5, 1.0, -1.0), np.zeros(len(M))


def weights_step(M: Floats, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """X = (min(w, α) - 1) y of two actions, the logging policy leaning towards what made M large; y ∈ {-1, 0}."""
    q = np.stack([0.5 - 0.4 * np.tanh(M / 4), 0.5 + 0.4 * np.tanh(M / 4)])  # [2, n]
    weights = clip_weights(weight_of(np.array([[0.1], [0.9]]), q), PATH_CLIP) - 1
    losses = np.array([0.6, 0.3])  # P(y = -1)
    action = (generator.random(len(M)) < q[1]).astype(np.int64)
    hit = generator.random(len(M)) < losses[action]
    return -weights[action, np.arange(len(M))] * hit, -(q * weights * losses[:, None]).sum(axis=0)


PATH_STEPS: dict[str, Step] = {"bernoulli": bernoulli_step, "signs": signs_step, "weights": weights_step}
BOUNDS = {"bernoulli": 1.0, "signs": 1.0, "weights": max(PATH_CLIP - 1, 1.0)}  # B


def crossing(settings: Description, paths: int, generator: np.random.Generator) -> list[ResultRow]:
    step, bound = PATH_STEPS[settings["paths"]], BOUNDS[settings["paths"]]
    grid = [(float(inequality.deviation(v, bound, level)), v) for v in settings["v"] for level in settings["levels"]]
    u, v = (np.array(column) for column in zip(*grid, strict=True))
    shares = inequality.crossing_frequency(step, u, v, paths, settings["steps"], generator)
    bounds = inequality.crossing_bound(u, v, bound)
    return [("crossing", *at, float(a), float(b), 0.0, paths) for at, a, b in zip(grid, shares, bounds, strict=True)]


def extremal(alpha: float, n: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Return weights of 2α - 1 occasionally, otherwise just below 1; y = -1: the worst case."""
    rare = 0.02 / alpha
    low = (1 - rare * (2 * alpha - 1)) / (1 - rare)
    return np.where(generator.random(n) < rare, 2 * alpha - 1, low), np.full(n, -1.0)


def softmax_pair(alpha: float, n: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Ratios of two linear softmax policies over five actions; the loss depends on context and action."""
    x = generator.standard_normal((n, 3))
    ours, logging = (np.exp(x @ generator.normal(size=(3, 5))) for _ in range(2))
    ours, logging = ours / ours.sum(axis=1, keepdims=True), logging / logging.sum(axis=1, keepdims=True)
    actions = np.minimum((logging.cumsum(axis=1) < generator.random((n, 1))).sum(axis=1), 4)
    rows = np.arange(n)
    losses = -1 / (1 + np.exp(-x[:, 0] - actions + 2))
    return weight_of(ours[rows, actions], logging[rows, actions]), losses


WEIGHTS = {"extremal": extremal, "softmax": softmax_pair}


def clipping(settings: Description, amount: int, generator: np.random.Generator) -> list[ResultRow]:
    rows: list[ResultRow] = []
    for alpha in settings["alphas"]:
        w, y = WEIGHTS[settings["weights"]](alpha, 20 * amount, generator)
        bias = float(np.mean((clip_weights(w, alpha) - 1) * y - (w - 1) * y))
        variance = float(np.mean((w - 1) ** 2))
        rows.append(
            ("clipping", alpha, variance, bias, float(inequality.clipping_bias_bound(variance, alpha)), 0.0, len(w))
        )
    return rows


def radius(settings: Description, amount: int, generator: np.random.Generator) -> list[ResultRow]:
    p, alpha = settings["p"], settings["alpha"]
    times = np.geomspace(1e2, 1e10, 17)
    return [("radius", t, p, critical_radius(alpha, t, p), radius_scale(alpha, t, p), 0.0, 1) for t in times]


def rates(settings: Description, amount: int, generator: np.random.Generator) -> list[ResultRow]:
    rows: list[ResultRow] = []
    for beta in BETAS:
        for p in ENTROPIES:
            curve = recursion_regret(beta, p, settings["horizon"])
            rows.append(("rate", beta, p, curve.exponent(), regret_exponent(beta, p), 0.0, 1))
            if beta == 1 and p == 0:  # the power of log T: dR/dL = √R + L + R/L with L = log T, so R/L² -> 2.618
                late = curve.t >= settings["horizon"] ** 0.5
                power = np.polyfit(np.log(np.log(curve.t[late])), np.log(curve.regret[late]), 1)[0]
                rows.append(("log-power", beta, p, float(power), 2.0, 0.0, 1))
    return rows


def heb_margin(settings: Description, amount: int, generator: np.random.Generator) -> list[ResultRow]:
    """Thresholds near 0, the best one, on sampled contexts: each costs gap·|x| where it differs, and χ² there."""
    world: Margin = decode_from_storage(settings["world"])
    x = world.sample(amount, generator).contexts[:, 0].astype(np.float64)
    reach = np.geomspace(0.02, 0.5, 30) ** (1 / world.nu)  # P(|x| ≤ reach) from 2 % to 50 %
    differs = (x[:, None] > 0) & (x[:, None] <= reach)  # [n, J]
    excess = differs * x[:, None] * world.gap * (1 - 2 * FLOOR)
    variance = differs * (1 - 2 * FLOOR) ** 2 / (FLOOR * (1 - FLOOR))
    found = error_bound_of_sample(excess, variance, generator)
    slope: ResultRow = ("heb", world.nu, 0.0, found.slope, world.beta, found.error, amount)
    return [*_pairs(excess.mean(axis=0), variance.mean(axis=0), world.nu), slope]


def heb_single(settings: Description, amount: int, generator: np.random.Generator) -> list[ResultRow]:
    """Check the paper's example with one context, exactly."""
    world: SingleContext = decode_from_storage(settings["world"])
    theta = 1 - FLOOR - np.geomspace(1e-4, 1e-2, 30)
    excess = world.best_in_class(FLOOR) - np.array([world.value(each) for each in theta])
    variance = np.array([world.weight_variance(each, FLOOR) for each in theta])
    found = error_bound(excess, variance)
    return [*_pairs(excess, variance, 0.0), ("heb-single", 0.0, 0.0, found.slope, world.beta, found.error, 1)]


def _pairs(excess: Floats, variance: Floats, nu: float) -> list[ResultRow]:
    return [("pair", float(e), nu, float(v), 0.0, 0.0, 1) for e, v in zip(excess, variance, strict=True)]


CHECKS = {"crossing": crossing, "clipping": clipping, "radius": radius, "rates": rates}
CHECKS |= {"heb-margin": heb_margin, "heb-single": heb_single}


# -- reading rows


def pick(rows: Table, *kinds: str) -> list[dict[str, Any]]:
    return [row for row in rows.to_pylist() if row["kind"] in kinds]


def by_seed(rows: Table, kind: str, *columns: str) -> list[Floats]:
    """Columns of the checks of a kind, [seeds, places] each."""
    found = sorted(pick(rows, kind), key=lambda row: (row["seed"], row["world"], row["x"], row["z"]))
    seeds = len({row["seed"] for row in found})
    return [np.array([row[column] for row in found]).reshape(seeds, -1) for column in columns]


def pooled(rows: Table, kind: str) -> list[tuple[str, float, float, float, float, int]]:
    """Shares of all seeds together: (world, x, z, reference, share, trials)."""
    sums: dict[tuple[str, float, float, float], tuple[float, int]] = {}
    for row in pick(rows, kind):
        key = (row["world"], row["x"], row["z"], row["reference"])
        hits, trials = sums.get(key, (0.0, 0))
        sums[key] = hits + row["measured"] * row["trials"], trials + row["trials"]
    return [(*key, hits / n, n) for key, (hits, n) in sums.items()]
