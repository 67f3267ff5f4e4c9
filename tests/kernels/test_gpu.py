"""Objectives where JAX computes, beside the plain parts; the fused tiles run in Pallas's interpreter here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.kernels import gpu, registry
from o2pl.kernels.gpu import GpuValue, check_gpu, check_gpu_room, find_gpu, gpu_bytes_needed
from o2pl.objectives import Outcome, Pessimistic, PolicyValue, ridge_control
from o2pl.policies import Softmax

jax = pytest.importorskip("jax")
gpu_tiles = pytest.importorskip("o2pl.kernels.gpu_tiles")
WITHOUT_GPU = jax.devices()[0].platform == "cpu"
OBJECTIVES = {
    "pessimistic": Pessimistic(0.3, baseline="mean", l2=0.2),
    "clipped": Pessimistic(1.0, clip=1.7, p=0.5),
    "competing": Outcome(True),
    "independent": Outcome(False, 3.0),
}


def a_problem(objective: Any, n: int, d: int, K: int, weighed: bool, control: bool) -> tuple[Any, Any, Any]:
    """Features of very different sizes, the log, and parameters."""
    generator = np.random.default_rng(n)
    X = (generator.normal(size=(n, d)) * np.exp(2 * generator.normal(size=d))).astype(np.float32)
    actions, propensities = generator.integers(K, size=n), generator.uniform(0.05, 1, n)
    rows = Interactions(X, actions, generator.random(n), propensities, (0, 1), K)
    variate = None
    if control:
        variate = ridge_control(X / X.std(axis=0), actions, rows.losses, K, objective.level(rows.losses), 5.0)
    log = objective.prepare(rows, variate, generator.uniform(0.1, 1, n) if weighed else None)
    W = generator.normal(size=(K, d)) / np.abs(X).max(axis=0)
    return X, log, np.append(W.reshape(-1), np.full(objective.extra, 0.3))


def far(found: tuple[float, Any], expected: tuple[float, Any]) -> tuple[float, float]:
    """How far off the value is, and the gradient as a share of its length."""
    apart = np.linalg.norm(found[1] - expected[1]) / np.linalg.norm(expected[1])
    return abs(found[0] - expected[0]), float(apart)


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("control", [False, True])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_plain_xla_and_tiles_are_the_parts(name: str, control: bool, weighed: bool) -> None:
    objective = OBJECTIVES[name]
    if control and isinstance(objective, Outcome):
        pytest.skip("an outcome objective has no control variate")
    n, d, K = 3000, 7, 5
    X, log, params = a_problem(objective, n, d, K, weighed, control)
    expected = PolicyValue(Softmax(K), X.astype(np.float64), log, objective.extra)(params)
    double = GpuValue(log, X.__getitem__, d, K, "xla", dtype=np.float64)(params)
    assert max(far(double, expected)) < 1e-10
    single = GpuValue(log, X.__getitem__, d, K, "xla")(params)
    assert max(far(single, expected)) < 2e-6
    tiles = GpuValue(log, X.__getitem__, d, K, "xla", interpret=True)
    value, gradient = far(tiles(params), expected)
    assert value < 2e-7
    assert gradient < 1e-3


@pytest.mark.parametrize(("d", "K"), [(1, 1), (3, 2), (20, 5), (64, 10), (130, 17)])
def test_tiles_of_every_shape(d: int, K: int) -> None:
    X, log, params = a_problem(OBJECTIVES["pessimistic"], 700, d, K, False, False)
    expected = PolicyValue(Softmax(K), X.astype(np.float64), log)(params)
    value, gradient = far(GpuValue(log, X.__getitem__, d, K, "xla", interpret=True)(params), expected)
    assert value < 1e-6
    assert gradient < 3e-3 or K == 1  # so few rows leave some of the rounding; of one action there is no gradient


def test_a_log_in_several_pieces_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    X, log, params = a_problem(OBJECTIVES["pessimistic"], 70_000, 3, 4, False, True)
    whole = GpuValue(log, X.__getitem__, 3, 4, "xla", dtype=np.float64)
    assert len(whole._pieces) == 1
    monkeypatch.setattr(gpu, "_MOST", 2**17)
    cut = GpuValue(log, X.__getitem__, 3, 4, "xla", dtype=np.float64)
    assert len(cut._pieces) == 3
    assert max(far(cut(params), whole(params))) < 1e-12


def test_members_with_the_same_features_have_them_in_common() -> None:
    X, log, _ = a_problem(OBJECTIVES["competing"], 500, 3, 4, False, False)
    held: dict[Any, Any] = {}
    one, two = (GpuValue(log, X.__getitem__, 3, 4, "xla", held=held) for _ in range(2))
    assert one._pieces[0].X[0] is two._pieces[0].X[0]


@pytest.mark.parametrize("make", [o2pl.O2PL, o2pl.Bandit])
def test_a_learner_where_jax_computes_ends_where_one_of_kernels_does(make: Any) -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(800, 4))
    actions = generator.integers(3, size=800)
    rewards = (generator.random(800) < 1 / (1 + np.exp(-2 * X[np.arange(800), actions]))).astype(float)
    log = X, actions, rewards, np.full(800, 1 / 3)
    for policy in ("linear", "quadratic"):
        there = make(3, policy=policy, device="xla", random_state=0).fit(*log)
        here = make(3, policy=policy, random_state=0).fit(*log)
        assert np.abs(there.predict_proba(X) - here.predict_proba(X)).max() < 2e-2
        assert np.abs(there.predict_proba(X) - here.predict_proba(X)).mean() < 1e-3


@pytest.mark.skipif(not WITHOUT_GPU, reason="there is a GPU")
def test_without_a_gpu_it_says_what_to_do() -> None:
    with pytest.raises(InvalidInput, match=r"JAX sees no GPU here \(it has: cpu\).*device='cpu'"):
        find_gpu("gpu")
    with pytest.raises(InvalidInput, match="JAX sees no GPU"):
        o2pl.O2PL(2, policy="linear", device="gpu").act([0.0, 1.0])


def test_a_card_without_room_is_said_before_anything_is_copied() -> None:
    class Small:
        def memory_stats(self) -> dict[str, int]:
            return {"bytes_limit": 2**30, "bytes_in_use": 2**29}

    check_gpu_room(Small(), 1000, 64, 10, True)
    with pytest.raises(InvalidInput, match=r"10,000,000 rows of 64 features needs 5\.3 GiB .* 0\.5 GiB free"):
        check_gpu_room(Small(), 10**7, 64, 10, True)
    assert gpu_bytes_needed(10, 4, 3, True) > gpu_bytes_needed(10, 4, 3, False)


def test_unknown_devices_and_policies_without_a_kernel_are_refused() -> None:
    with pytest.raises(InvalidInput, match="device: found 'tpu', expected 'cpu', 'gpu'"):
        check_gpu("tpu")
    learner = o2pl.O2PL(policy="actionwise", device="xla")
    with pytest.raises(InvalidInput, match="device: found 'xla' with ActionWise on sets contexts"):
        learner.act([[0.0, 1.0], [1.0, 0.0]])


def test_without_triton_there_are_no_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gpu_tiles.fits_gpu_tiles(20, 5, 1.0)
    monkeypatch.setattr(gpu_tiles, "triton", None)
    assert not gpu_tiles.fits_gpu_tiles(20, 5, 1.0)


def test_what_is_registered_for_cards() -> None:
    found = {key[:3] for key in registry.VALUES if key[3] == "card" and key[0] is Softmax}
    assert found == {(Softmax, Pessimistic, "dense"), (Softmax, Outcome, "dense")}


@pytest.mark.gpu
def test_tiles_on_a_gpu() -> None:
    X, log, params = a_problem(OBJECTIVES["pessimistic"], 400_000, 20, 5, False, True)
    there = GpuValue(log, X.__getitem__, 20, 5, "gpu")
    assert there.tiled
    value, gradient = far(there(params), PolicyValue(Softmax(5), X.astype(np.float64), log)(params))
    assert value < 1e-6
    assert gradient < 1e-3
