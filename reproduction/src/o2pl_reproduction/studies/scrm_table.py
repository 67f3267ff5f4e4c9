"""SCRM compared with O2PL in batches: three worlds with a real-valued action, two classification sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.engine.member import LINEAR
from o2pl.extras import extra
from o2pl.learners import O2PL, Exact, GaussianO2PL
from o2pl.policies import Gaussian, Softmax
from o2pl.protocols import Floats
from o2pl.simulation.description import Description, built, described
from o2pl.simulation.experiment import Cell, Columns, Experiment, Size, Unit
from o2pl.simulation.rivals.crm import SCRM
from o2pl.simulation.worlds import Advertising, ContinuousRounds, ContinuousWorld, Pricing, Synthetic, TableRounds, Toy
from o2pl.simulation.worlds.classification import classification_rewards
from o2pl.storage import decode_from_storage, encode_for_storage
from o2pl.validation import to_loss
from o2pl_reproduction.studies.batches import batch_sizes, categorical, gaussian, rollouts
from o2pl_reproduction.studies.pessimism import LearnerArms

if TYPE_CHECKING:
    pass

# The world and the standard deviation of its policies. The paper gives neither these nor the norm of Toy's weights; the
# report says how they were set.
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
ARMS = LearnerArms("o2pl-uncentred", "O2PL", 0.1)  # λ × clip, all else equal
TRAIN, LOGGER = 7500, 750  # rows of a classification set to learn from, of which the first train the logger

# -- the table of units


def cells(data: str | None) -> Sequence[Cell]:
    found = []
    for scheme, (n0, n0_discrete) in SCHEMES.items():
        for name, (world, scale) in CONTINUOUS.items():
            batches = {"scheme": scheme, "first": n0, "count": BATCHES[0]}
            settings = {"name": f"{name}-{scheme}", "world": encode_for_storage(world), "scale": scale, **batches}
            found += [Cell(settings, learner) for learner in _continuous_learners(world, scale)]
        for name, features in DISCRETE.items():
            for encoding, losses in ENCODINGS.items():
                batches = {"scheme": scheme, "first": n0_discrete, "count": BATCHES[1]}
                settings = {"name": f"{name}-{encoding}-{scheme}", "features": features, **batches}
                found += [Cell(settings, learner) for learner in _discrete_learners(losses)]
    return found


def _continuous_learners(world: ContinuousWorld, scale: float) -> Iterator[Description]:
    """Yield learners; uncentred: b at the natural loss 0, so that losses are unchanged, as in SCRM."""
    own: dict[str, Any] = {"scale": scale, "reward_range": world.reward_range, "schedule": Exact()}
    zero = float(to_loss(0.0, world.reward_range))
    yield described("o2pl", GaussianO2PL(**own))
    uncentred: dict[str, Any] = {**own, "baseline": zero, "control": None}
    yield described("o2pl-uncentred", GaussianO2PL(**uncentred))
    for penalty in SCRM_LAMBDAS:
        yield described(f"scrm-{penalty:g}", SCRM(Gaussian(0.0, scale), penalty=penalty, reward_range=None))
    for name, given in ARMS.settings().items():
        yield described(name, GaussianO2PL(**uncentred, **given))
    yield described("o2pl-paper", GaussianO2PL(**uncentred, penalty=1.0, l2=0.0))


def _discrete_learners(losses: tuple[float, float]) -> Iterator[Description]:
    best, _ = losses
    yield described("o2pl", O2PL(3, policy="linear", schedule=Exact()))  # centred: the same for either encoding
    as_they_are = {"baseline": -1.0 - best}  # y - b ∈ {best, best + 1} for y ∈ {-1, 0}
    yield described("o2pl-uncentred", O2PL.paper(3, penalty=0.1, l2=0.1, **as_they_are))
    for penalty in SCRM_LAMBDAS:
        yield described(f"scrm-{penalty:g}", SCRM(Softmax(3), penalty=penalty, loss_range=losses))
    for name, given in ARMS.settings().items():
        yield described(name, O2PL.paper(3, l2=0.1, **as_they_are, **given))
    yield described("o2pl-paper", O2PL.paper(3, **as_they_are))


# -- one unit


def run_unit(unit: Unit) -> Columns:
    """Return the exact natural loss of the learner's policy after each batch."""
    sizes = batch_sizes(unit.world["scheme"], unit.world["first"], unit.world["count"], unit.rounds)
    after = _continuous(unit, sizes) if "scale" in unit.world else _discrete(unit, sizes)
    return {"batch": np.arange(1, len(sizes) + 1), "seen": np.cumsum(sizes), "loss": list(after)}


def _continuous(unit: Unit, sizes: Sequence[int]) -> Iterator[float]:
    world, scale = decode_from_storage(unit.world["world"]), float(unit.world["scale"])
    chance, choice = (np.random.default_rng(seed) for seed in np.random.SeedSequence(unit.seed).spawn(2))
    value = valuation(world)
    learner = built(unit.learner)

    def learn(contexts: Floats, actions: Floats, rewards: Floats, propensities: Floats) -> None:
        if isinstance(learner, SCRM) and learner.start is None:  # at the logger, where O2PL starts by default
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
    """Return (means, scale) -> the exact mean natural loss of N(means(x), scale²), over a fixed sample of contexts.

    Contexts vary much more than policies, so the loss of the best actions is a control variate: its mean over many more
    contexts, plus the policy's excess loss on `rows` of them.
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
    """Yield the 0-1 loss of the most likely class on the test rows; each seed has its own data set."""
    with extra("experiments", "a logger that is a logistic regression"):
        from sklearn.linear_model import LogisticRegression

    data = Synthetic(features=unit.world["features"], seed=unit.seed).load()
    chance, choice = (np.random.default_rng(seed) for seed in np.random.SeedSequence(unit.seed).spawn(2))
    order = chance.permutation(len(data))
    contexts, labels = data.contexts[order], data.labels[order]
    logger = LogisticRegression(max_iter=10000).fit(contexts[:LOGGER], labels[:LOGGER])
    table = classification_rewards(labels, len(data.classes), 0.0)
    ends = np.cumsum(sizes)
    batches = (
        TableRounds(contexts[end - size : end], table[end - size : end], table[end - size : end])
        for size, end in zip(sizes, ends, strict=True)
    )
    learner = built(unit.learner)
    logging, policy = categorical(logger.predict_proba, choice), categorical(learner.predict_proba, choice)
    for _ in rollouts(batches, logging, policy, learner.partial_fit):
        yield float(np.mean(learner.predict(contexts[TRAIN:]) != labels[TRAIN:]))


_QUICK = ("o2pl", "o2pl-uncentred", FIXED, "scrm-3")
EXPERIMENT = Experiment(
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
)
