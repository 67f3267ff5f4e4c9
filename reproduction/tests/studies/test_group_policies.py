from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from o2pl.objectives.weights import clipped_moments
from o2pl.protocols import Floats
from o2pl_reproduction.studies.group_policies import (
    GroupEvidence,
    Groups,
    GroupSchedule,
    corners,
    fine_groups,
    highest_within,
    joined,
    least,
    rare_groups,
    solving_rounds,
)

SMALL = 8  # groups: 256 policies


def small_log(seed: int, ways: int = 6) -> GroupEvidence:
    """A few batches, each logged by another policy."""
    generator = np.random.default_rng(seed)
    groups = joined(rare_groups(0.5, SMALL // 2, 0.3, 0.5), fine_groups(1.0, 0.5, SMALL // 2, 0.5))
    evidence = GroupEvidence(groups)
    for _ in range(ways):
        evidence.add(generator.random(SMALL) < 0.5, int(generator.integers(20, 80)), generator)
    return evidence


def rows_of(evidence: GroupEvidence) -> tuple[Floats, Floats, Floats]:
    """The log written out: weights of the two ways [2, n] and losses [n]; and the groups [n]."""
    weights, losses, numbers = [], [], []
    for way, action, group in itertools.product(range(2), range(2), range(SMALL)):
        bad = int(-evidence.losses[way, action, group])
        count = int(evidence.counts[way, action, group])
        own = evidence.groups.chances[:, action, group] / evidence.groups.chances[way, action, group]
        weights += [own] * count
        losses += [-1.0] * bad + [0.0] * (count - bad)
        numbers += [group] * count
    idle = evidence.rounds - len(losses)
    weights += [np.ones(2)] * idle
    return np.array(weights).T, np.array(losses + [0.0] * idle), np.array(numbers + [0] * idle)


@pytest.mark.parametrize(
    "schedule", [GroupSchedule(0.5, 0.0), GroupSchedule(0.5, 1.0, 0.1), GroupSchedule(1.0, 0.0, 0.0)]
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_search_finds_the_best_of_all_policies(schedule: GroupSchedule, seed: int) -> None:
    """Each of the 256 policies by the library's own moments and penalty, row by row."""
    evidence = small_log(seed)
    penalty = schedule.penalty(evidence.rounds)
    weights, losses, numbers = rows_of(evidence)
    values = {}
    for ways in itertools.product((0, 1), repeat=SMALL):
        own = weights[np.array(ways)[numbers], np.arange(len(losses))]
        risk, variance = clipped_moments(own, losses, penalty.alpha)
        values[ways] = risk + penalty(variance)[0]
    value, found = least(*evidence.moments(penalty.alpha), penalty)
    assert value == pytest.approx(min(values.values()), abs=1e-12)
    assert values[tuple(int(way) for way in found)] == pytest.approx(value, abs=1e-12)
    assert len(set(np.round(list(values.values()), 12))) > 20


def test_nothing_seen_changes_nothing() -> None:
    parts = np.zeros((2, 5))
    parts[0, 2], variance = -0.1, np.zeros((2, 5))
    variance[0, 2] = 0.2
    found = corners(parts, variance)
    assert found.start.tolist() == [False, False, True, False, False]  # the smaller variance
    assert found.turned.tolist() == [2]
    assert found.ways(1).tolist() == [False] * 5


def test_no_policy_within_the_radius_is_above_the_hull() -> None:
    generator = np.random.default_rng(3)
    gain, square = generator.normal(size=(2, SMALL)), generator.random((2, SMALL))
    sums = np.array(
        [
            (gain[ways, range(SMALL)].sum(), square[ways, range(SMALL)].sum())
            for ways in map(list, itertools.product((0, 1), repeat=SMALL))
        ]
    )
    assert highest_within(gain, square, 0.9 * math.sqrt(sums[:, 1].min())) == -np.inf
    for radius in np.sqrt(np.linspace(sums[:, 1].min(), sums[:, 1].max(), 40)):
        within = sums[sums[:, 1] <= radius**2 + 1e-12, 0].max()
        assert highest_within(gain, square, radius) >= within - 1e-9
    hull = corners(-gain, square)
    for variance, risk in zip(hull.variance, hull.risk, strict=True):  # at the corners it is reached
        within = sums[sums[:, 1] <= variance + 1e-9, 0].max()
        assert within == pytest.approx(-risk)
        assert highest_within(gain, square, math.sqrt(variance) * (1 + 1e-9)) == pytest.approx(within, abs=1e-6)


def test_the_targets_are_the_conditional_means() -> None:
    """Over many logs, with a policy that changes with what was seen, R̂ - R_α is 0 on average: to 4 standard errors."""
    groups = joined(rare_groups(0.5, 3, 0.2, 0.5), fine_groups(1.0, 0.5, 3, 0.5))
    generator, off, size = np.random.default_rng(4), [], len(groups.masses)
    for _ in range(3000):
        evidence, ways = GroupEvidence(groups), np.zeros(size, np.bool_)
        for _ in range(4):
            evidence.add(ways, 15, generator)
            risks, _ = evidence.moments(3.0)
            ways = risks[1] < risks[0]
        off.append(evidence.moments(3.0)[0] - evidence.targets(3.0))
    mean, error = np.mean(off, axis=0), np.std(off, axis=0) / math.sqrt(len(off))
    assert (np.abs(mean) <= 4 * error + 1e-12).all()
    assert (error > 0).sum() >= size  # the logging way alone has no risk
    assert (evidence.squares(3.0) <= evidence.moments(3.0)[1]).all()


def worst_ratio(groups: Groups, beta: float) -> float:
    """Var(π*/π) / (excess risk)^β, the largest over nested sets of wrong groups, single ones, and sets by chance."""
    generator, size = np.random.default_rng(0), len(groups.masses)
    sets = [np.tri(size, dtype=np.bool_), ~np.tri(size, dtype=np.bool_)[:-1], np.eye(size, dtype=np.bool_)]
    wrong = np.concatenate([*sets, generator.random((500, size)) < generator.random((500, 1)) ** 3])
    wrong = wrong[wrong.any(axis=1)]
    return float(((wrong @ groups.variance) / (wrong @ groups.excess) ** beta).max())


@pytest.mark.parametrize("beta", [0.5, 0.75, 1.0])
def test_the_error_bound_holds_with_a_constant_that_does_not_grow(beta: float) -> None:
    for make in (lambda size: rare_groups(beta, size), lambda size: fine_groups(1.0, beta, size)):
        few, many = worst_ratio(make(15), beta), worst_ratio(make(60), beta)
        assert many < 1.3 * few
        assert worst_ratio(make(60), min(1.0, beta)) < 30
        if beta < 1:  # with a larger exponent it does not hold
            assert worst_ratio(make(60), beta + 0.2) > 1.5 * worst_ratio(make(15), beta + 0.2)


def test_floors_go_to_nothing_and_fine_weights_stay_below_two() -> None:
    rare, fine = rare_groups(0.5, 30), fine_groups(0.5, 1.0, 50)
    assert rare.chances[0, 1].min() < 1e-4
    assert rare.chances[1, 0].min() < 1e-4
    assert fine.weights.max() == pytest.approx(2.0)
    assert rare_groups(1.0, 30).chances[0, 1].min() == 0.25
    assert rare.masses.sum() == pytest.approx(1.0)
    apart = np.abs(np.log(fine.chances[1]) - np.log(fine.chances[0])).max(axis=0)
    for eps in (0.01, 0.03, 0.1):  # log N(ε) = log 2 · #{k: h_k > 2ε} ~ ε^-p
        assert (apart > 2 * eps).sum() == pytest.approx((math.log(2) / (2 * eps)) ** 0.5, abs=1)


def test_policies_are_solved_for_every_round_and_then_ever_less_often() -> None:
    at = solving_rounds(100_000, 1.05)
    assert at[:20].tolist() == list(range(1, 21))
    assert at[-1] == 100_000
    assert (np.diff(at) <= 0.05 * at[:-1] + 1).all()
    assert len(at) < 220
    assert solving_rounds(7, 1.05).tolist() == list(range(1, 8))
