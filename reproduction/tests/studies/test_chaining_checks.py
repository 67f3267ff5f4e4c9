from __future__ import annotations

import math

import numpy as np
import pytest

from o2pl.simulation.worlds import Margin
from o2pl.storage import encode_for_storage
from o2pl.theory.chaining import chained_deviation, lipschitz_entropy
from o2pl_reproduction.studies import chaining_checks as module
from o2pl_reproduction.studies.group_policies import GroupEvidence, GroupSchedule, fine_groups, joined, rare_groups

SMALL = {"p": 1.0, "beta": 0.5, "fine": 20, "rare": 6, "growth": 1.3, "n": (200, 1000), "sigmas": (1.0, 3.0)}


def test_brackets_are_narrow_and_hold_every_loss() -> None:
    settings = {"epsilons": (0.05, 0.8), "sigmas": (1.0, 2.0), **module.TRANSFER}
    rows = module.transfer(settings, 2000, np.random.default_rng(0))
    kinds = {kind: [row for row in rows if row[0] == kind] for kind in ("transfer", "transfer-log", "trapped")}
    assert [len(found) for found in kinds.values()] == [4, 4, 8]
    assert all(0 < width <= eps for _, eps, _, width, *_ in kinds["transfer-log"])
    assert all(share == 1 for _, _, _, share, *_ in kinds["trapped"])
    assert all(members == 200 for *_, members in kinds["transfer"])  # none of the shells is empty
    for coarse, fine in zip(kinds["transfer-log"], kinds["transfer"], strict=True):
        assert fine[3] < coarse[3]  # the paper's linear radius is the smaller


def test_the_cover_is_within_its_radius_and_no_larger_than_counted() -> None:
    settings, radius = {**module.TRANSFER, "slope": 2.0, "height": 1.0}, 0.3
    members = module.lipschitz_members(2000, settings, np.random.default_rng(1))
    points, steps = module.rounded(members, radius, 2.0)
    x = np.linspace(0, 1, 500)
    centres = (steps[:, np.searchsorted(points, x, side="right") - 1] + 0.5) * 2 * radius / 3
    assert np.abs(module.values_at(members, x) - centres).max() <= radius + 1e-9
    assert math.log(len(np.unique(steps, axis=0))) <= lipschitz_entropy(radius, 2.0, 1.0)


def test_the_least_constant_covers_and_a_smaller_one_does_not() -> None:
    generator = np.random.default_rng(2)
    groups = joined(rare_groups(0.5, 4, 0.1, 0.5), fine_groups(1.0, 0.5, 4, 0.5))
    evidence = GroupEvidence(groups)
    for _ in range(5):
        evidence.add(generator.random(8) < 0.5, 100, generator)
    penalty = GroupSchedule(0.5, 1.0).penalty(evidence.rounds)
    risks, variances = evidence.moments(penalty.alpha)
    off = risks - evidence.targets(penalty.alpha)
    found = module.least_constant(off, variances, penalty)
    ways = np.array(list(np.ndindex(*[2] * 8)))  # all 256 policies
    deviation = np.abs(off[ways, np.arange(8)].sum(axis=1))
    allowed = np.array([penalty(float(v))[0] for v in variances[ways, np.arange(8)].sum(axis=1)])
    assert found == pytest.approx((deviation / allowed).max(), rel=2e-3)
    assert module.least_constant(-off, variances, penalty) == found  # on either side


def test_a_small_run_reports_every_place_once() -> None:
    rows = module.chaining({**SMALL, "delta": 0.05}, 2000, np.random.default_rng(3))
    kinds = [row[0] for row in rows]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "penalty": 1,
        "useful": 1,
        "peeling": 2,
        "penalty-size": 2,
        "maximal": 4,
        "maximal-size": 4,
    }
    assert {row[6] for row in rows if row[0] == "maximal"} == {5}
    sizes = {(row[1], row[2]): row[3] / row[4] for row in rows if row[0] == "maximal-size"}
    assert all(0 <= ratio < 0.1 for ratio in sizes.values())
    assert max(sizes.values()) > 0
    assert all(row[3] == 0 for row in rows if row[0] in ("maximal", "peeling", "penalty"))


def test_the_bound_says_something_from_the_round_that_is_named() -> None:
    entropy = module.group_entropy(1.0, 400, 20)
    n = module.useful_from(entropy, 0.05)
    assert chained_deviation(1.0, 1.0, n, 0.05, entropy) == pytest.approx(1.0, rel=1e-6)
    assert entropy(1.0) == pytest.approx(math.log(2) * (20 + math.log(2) / 2))
    assert entropy(1e-9) == pytest.approx(math.log(2) * 420)


def test_the_worst_policies_reach_the_least_constant() -> None:
    rows = module.margin_ratios({"world": encode_for_storage(Margin(2.0))}, 20_000, np.random.default_rng(4))
    for kind, kappa, overlap, ratio, constant, *_ in rows:
        assert kappa == 2.0
        expected = 1.0 if kind == "margin-sharp" else ((1 - overlap) / 3) ** (1 / 3)
        assert ratio / constant == pytest.approx(expected, rel=0.03)
