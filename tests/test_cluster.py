"""What workers are started with. A real cluster runs in experiments/test_engines and fitting/test_ray_passes."""

from __future__ import annotations

import os

import pytest

from o2pl.cluster import ONE_THREAD, cluster_environment, cores


def test_the_environment_is_as_it_was_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with cluster_environment(ONE_THREAD):
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def test_cores_are_those_that_this_process_may_use() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)
