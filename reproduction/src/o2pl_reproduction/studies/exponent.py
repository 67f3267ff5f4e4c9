"""Growth of regret compared with the theory, in worlds whose margin sets the exponent.

In `Margin(ν)` the Hölderian exponent is β = ν/(ν + 1), and Theorem 1 (p = 0) gives regret of order T^ρ with
ρ = 2(1 - β)/(2(2 - β)) = 1/(ν + 2). The policy class is 1,000 floored thresholds, over which Algorithm 1 is solved
exactly at every round; regret is Σ_t [value of the best member - value of the member that acts], both exact, so that
the only randomness is the learner's path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from o2pl.kernels.finite import ClassSums
from o2pl.learners import O2PL
from o2pl.objectives.pessimistic import Pessimistic
from o2pl.policies import ThresholdClass
from o2pl.protocols import Floats, Ints
from o2pl.simulation.experiment import Cell, Columns, Experiment, Size, Unit
from o2pl.simulation.worlds import Margin
from o2pl.storage import decode_from_storage, encode_for_storage
from o2pl.theory import overlap_clip
from o2pl_reproduction.studies.pessimism import LearnerArms

NUS = (0.5, 1.0, 2.0, 4.0, 8.0)
PENALTY_SCALES = {"quarter": 0.25, "half": 0.5, "literal": 1.0}  # λ
LITERAL = "literal"  # the paper's
MAIN = "quarter"  # chosen, with the floor, on seeds from 1000 on
MEMBERS = 1000
FLOOR = 0.2
# Pessimism on its own. α = 1/floor is above every weight, (1 - floor)/floor at most: the clip should change nothing.
ARMS = LearnerArms(LITERAL, "Algorithm 1", penalty=1.0, clip=overlap_clip(FLOOR))
WITHOUT = ARMS.name(0.0, True)  # no penalty
SCALES = {**PENALTY_SCALES, WITHOUT: 0.0, ARMS.name(0.1, True): 0.1}
ARM_SEEDS, UNCLIPPED_SEEDS = 20, 5  # of the size's 40, as these take long
POINTS = 60  # of a curve
_CHUNK = 1000  # rows per block of all members' likelihoods


def cells(data: str | None) -> Sequence[Cell]:
    learners: list[tuple[dict[str, Any], int | None]] = [
        ({"name": name, "penalty": penalty, "clip": overlap_clip(FLOOR)}, None)
        for name, penalty in PENALTY_SCALES.items()
    ]
    for name, given in ARMS.settings().items():
        learners.append(({"name": name, **given}, UNCLIPPED_SEEDS if given["clip"] is None else ARM_SEEDS))
    return [
        Cell(
            {"name": f"nu-{nu:g}", "world": encode_for_storage(Margin(nu)), "members": MEMBERS, "floor": FLOOR},
            learner,
            seeds=seeds,
        )
        for nu in NUS
        for learner, seeds in learners
    ]


def thresholds(members: int, offset: float) -> tuple[float, ...]:
    """Return evenly spaced thresholds over (-1, 1), shifted by a fraction of the spacing: the best, 0, is excluded."""
    return tuple(float(place) for place in -1 + 2 / members * (np.arange(members) + offset))


def log_checkpoints(rounds: int) -> Ints:
    """Return about `POINTS` rounds, evenly spaced in log t, from 10 to the last."""
    return np.unique(np.round(np.geomspace(min(10, rounds), rounds, POINTS)).astype(np.int64))


def acting_values(learner: O2PL, values: Floats) -> Floats:
    """Return the exact value of the acting policy in each round, [T], from the learner's log and its members' values.

    A run does not store who acted, so its log is replayed. Before the first row, the uniform mixture of all acts.
    """
    log, policies = learner.log_, learner.policy
    objective = Pessimistic(
        learner.penalty, learner.clip, learner.baseline, p=learner.p, beta=learner.beta, delta=learner.delta
    )
    kept = ClassSums(policies.size)
    members = np.empty(len(log), np.int64)
    for first in range(0, len(log), _CHUNK):
        rows = log[first : first + _CHUNK]
        L = np.ascontiguousarray(policies.likelihoods(rows.contexts, rows.actions))
        kept.add(L, rows.losses, rows.propensities, objective.numbers, members[first : first + _CHUNK])
    return np.concatenate([[values.mean()], values[members[:-1]]])


def run_unit(unit: Unit) -> Columns:
    world: Margin = decode_from_storage(unit.world["world"])
    chance, choice = np.random.SeedSequence(unit.seed).spawn(2)  # the same rounds and thresholds for every penalty
    generator = np.random.default_rng(chance)
    policies = ThresholdClass(thresholds(unit.world["members"], generator.uniform(0.1, 0.9)), unit.world["floor"])
    rounds = world.sample(unit.rounds, generator)
    learner = O2PL.paper(
        policy=policies,
        penalty=unit.learner["penalty"],
        clip=unit.learner["clip"],
        beta=world.beta,
        random_state=int(choice.generate_state(1)[0]),
    )
    values = world.threshold_values(policies)
    learner.run((rounds.contexts, rounds.table))
    regret = np.cumsum(values.max() - acting_values(learner, values))
    at = log_checkpoints(unit.rounds)
    return {"nu": np.full(len(at), world.nu), "round": at, "regret": regret[at - 1]}


EXPERIMENT = Experiment(
    name="exponent",
    summary="The growth of regret against the margin's exponent, and against Theorem 1.",
    sizes={"quick": Size(rounds=5000, seeds=2), "full": Size(rounds=100_000, seeds=40)},
    cells=cells,
    run=run_unit,
    columns={"nu": "double", "round": "int64", "regret": "double"},
    headline="regret",
)
