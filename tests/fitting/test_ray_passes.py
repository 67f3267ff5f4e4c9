"""A real local Ray of two workers: the same objective as in one process, and a worker that is killed is replaced."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fitting.parquet_logs import write_parquet

import o2pl
from o2pl.errors import InvalidInput
from o2pl.fitting.fit_out_of_core import fit_out_of_core
from o2pl.fitting.pass_checkpoints import PassCheckpoints
from o2pl.fitting.passes import BlockPasses, Pass
from o2pl.fitting.ray_passes import RayPasses

pytestmark = pytest.mark.filterwarnings("ignore:.*not used as context. 'day' .key of the partitions")

LEARNER = o2pl.O2PL(policy="linear", l2=10.0, random_state=0)  # with a control variate, which workers map too


def on_ray(cluster: Any, made: list[RayPasses], said: list[str]) -> Any:
    def passes(log: Any, folder: Path, kept: Any, passed: Any) -> BlockPasses:
        made.append(RayPasses(log, folder, kept, passed, cluster, 2, said.append, stripe=500))
        return made[-1]

    return passes


def process(ray: Any, worker: Any) -> int:
    found: int = ray.get(worker.__ray_call__.remote(lambda shard: os.getpid()))
    return found


def test_a_worker_that_is_killed_is_replaced_and_the_values_stay(tmp_path: Path, ray_cluster: Any) -> None:
    log, ray = write_parquet(tmp_path / "log", 3000), ray_cluster[0]
    local, passes, made, said = list[Pass](), list[Pass](), list[RayPasses](), list[str]()
    expected = fit_out_of_core(
        log, PassCheckpoints(tmp_path / "local", "x"), candidates=[LEARNER], passed=local.append
    ).learner
    killed = []

    def kill_one(one: Pass) -> None:
        passes.append(one)
        if one.number == 3:
            killed.append(process(ray, made[0].workers[1]))
            os.kill(killed[0], signal.SIGKILL)

    found = fit_out_of_core(
        log, PassCheckpoints(tmp_path / "ray", "x"), candidates=[LEARNER], passed=kill_one,
        make_passes=on_ray(ray_cluster, made, said),
    ).learner  # fmt: skip
    assert said == ["worker 2 of 2 died: a new worker replaces it and reads its rows again"]
    processes = [process(ray, worker) for worker in made[0].workers]
    assert len({*processes, *killed, os.getpid()}) == 4
    assert passes[0].objective == pytest.approx(local[0].objective, rel=1e-6)
    assert passes[-1].objective == pytest.approx(local[-1].objective, rel=1e-6)
    contexts = o2pl.read_log(log).contexts
    assert np.abs(found.predict_proba(contexts) - expected.predict_proba(contexts)).max() < 1e-3


def test_a_worker_that_does_not_see_the_rows_says_so(tmp_path: Path, ray_cluster: Any) -> None:
    log, made = write_parquet(tmp_path / "log", 3000), list[RayPasses]()

    def gone(mapped: Any, folder: Path, kept: Any, passed: Any) -> BlockPasses:
        passes = on_ray(ray_cluster, made, [])(mapped, folder, kept, passed)
        shutil.move(tmp_path / "work" / "log", tmp_path / "elsewhere")  # before a worker has opened it
        return passes

    with pytest.raises(InvalidInput, match=r"worker 1 of 2: .* expected a disk that all workers share"):
        fit_out_of_core(log, PassCheckpoints(tmp_path / "work", "x"), candidates=[LEARNER], make_passes=gone)


def test_more_workers_than_cores_are_refused(tmp_path: Path, ray_cluster: Any) -> None:
    log = write_parquet(tmp_path / "log", 300)

    def many(mapped: Any, folder: Path, kept: Any, passed: Any) -> BlockPasses:
        return RayPasses(mapped, folder, kept, passed, ray_cluster, 64, print)

    with pytest.raises(
        InvalidInput, match="workers: found 64, expected at most 2, the number of cores of the Ray cluster"
    ):
        fit_out_of_core(log, PassCheckpoints(tmp_path / "work", "x"), candidates=[LEARNER], make_passes=many)
