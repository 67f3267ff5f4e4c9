"""The same log fitted in memory, out of core, on Ray and on a GPU gives the same policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fitting.parquet_logs import write_parquet

import o2pl
from o2pl.fitting.candidate_learners import candidates_for
from o2pl.fitting.choice import fit
from o2pl.fitting.fit_out_of_core import fit_out_of_core
from o2pl.fitting.pass_checkpoints import PassCheckpoints
from o2pl.fitting.passes import BlockPasses
from o2pl.fitting.ray_passes import RayPasses
from o2pl.kernels import linear

pytestmark = pytest.mark.filterwarnings("ignore:.*not used as context. 'day' .key of the partitions")

# How far two policies' probabilities may be from each other: sums over rows are put together in another order.
TOLERANCES = {"bandit": 1e-4, "o2pl linear λ=0.1 l2=10": 1e-4}
# Where JAX computes, single precision rounds otherwise: solves end elsewhere within what is negligible.
ON_CARDS = {"bandit": 2e-2, "o2pl linear λ=0.1 l2=10": 5e-3}
DEVICES = {"in memory": "cpu", "plain XLA": "xla", "on a GPU": "gpu"}


def fitted(way: str, log: Path, name: str, work: Path, request: pytest.FixtureRequest) -> Any:
    """The policy that `o2pl fit` would save."""
    read = o2pl.read_log(log)
    (chosen,) = (one for one in candidates_for(read, (0.0, 1.0)) if one.name == name)
    if way in DEVICES:
        learner = fit(read, candidates=[chosen]).learner
        return type(learner)(**(learner.get_params() | {"device": DEVICES[way]})).fit(read)
    made: Any = None
    if way == "on Ray":
        cluster = request.getfixturevalue("ray_cluster")

        def made(mapped: Any, folder: Path, kept: Any, passed: Any) -> BlockPasses:
            return RayPasses(mapped, folder, kept, passed, cluster, 2, pytest.fail, stripe=1000)

    return fit_out_of_core(log, PassCheckpoints(work, "x"), candidates=[chosen], make_passes=made).learner


@pytest.mark.parametrize(
    "way",
    [
        "out of core",
        "on Ray",
        pytest.param("plain XLA", marks=pytest.mark.jax),
        pytest.param("on a GPU", marks=pytest.mark.gpu),
    ],
)
@pytest.mark.parametrize("name", TOLERANCES)
def test_the_same_log_gives_the_same_policy(
    name: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(linear, "BLOCK", 2**10)  # so that there are several blocks, and panels of them
    log = write_parquet(tmp_path / "log")
    contexts = o2pl.read_log(write_parquet(tmp_path / "fresh", 500, seed=1)).contexts
    expected = fitted("in memory", log, name, tmp_path / "none", request).predict_proba(contexts)
    found = fitted(way, log, name, tmp_path / "work", request).predict_proba(contexts)
    assert np.abs(found - expected).max() < (ON_CARDS if way in DEVICES else TOLERANCES)[name]
    assert (found.argmax(axis=1) == expected.argmax(axis=1)).mean() > 0.99
