"""A service beside its control group, looked at every day: A/A runs, and one whose gain is known.

The real path: units are assigned as the service does, rows are stored, joined and compared; only HTTP is left out.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from benchmarks.guarantees.worlds import Case
from o2pl.serving.applications import Application
from o2pl.serving.batch_writes import DecisionRow, RewardRow
from o2pl.serving.control_assignment import arm_of, experiment_of
from o2pl.serving.control_comparison import RunningComparison, compare, findings
from o2pl.serving.deciding import Acting
from o2pl.serving.models import Served
from o2pl.serving.reward_join import join
from o2pl.serving.settings import Guardrail, Kind, MetricSettings, Settings
from o2pl.serving.store import Store

_DAY, _START = 86400.0, 86400.0 * 20_000
_LATE = 1200.0  # seconds after midnight when one looks


@dataclass(frozen=True)
class ControlledWorld:
    """n decisions on so many days, of users who return and differ; a look every day."""

    name: str
    says: str
    n: int
    days: int
    share: float
    mean: float  # of the reward, 0 or 1
    gain: float = 0.0
    users: int = 0  # 0: each event is assigned for itself
    spread: float = 0.0  # of users, and of the days
    metrics: int = 0
    doors: tuple[str, ...] = ("service, control group",)
    only: bool = True
    reward_range: tuple[float, float] = (0.0, 1.0)

    @property
    def equal(self) -> bool:
        return self.gain == 0

    def case(self, seed: int) -> Case:
        return Case((self, seed), None, None, None, self.gain, lambda policy: 0.0, lambda x: x)

    def truth(self) -> tuple[float, float]:
        return self.gain, 0.0


class Looked(NamedTuple):
    """What was said at any of the looks."""

    better: bool
    worse: bool
    missed: bool
    estimate: float


def looked(world: ControlledWorld, seed: int) -> Looked:
    settings = Settings(
        control_share=world.share, control_key="user.id" if world.users else None, reward_guardrail=Guardrail.NONE,
        metrics={f"m{k}": MetricSettings(guardrail=Guardrail.NONE) for k in range(world.metrics)},
        reward_wait_time=timedelta(minutes=10),
    )  # fmt: skip
    g = np.random.default_rng([seed, world.n, world.days])
    likes = np.clip(world.mean + world.spread * g.normal(size=max(world.users, 1)), 0.0, 1.0 - world.gain)
    better = worse = missed = False
    estimate = 0.0
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "o2pl.sqlite") as store:
        store.add_application("page", settings=settings)
        application = store.application("page")
        compare(store, application, _START)
        for day in range(world.days):
            _fill(store, application, world, likes, day, seed, g)
            now = _START + (day + 1) * _DAY + _LATE
            join(store, application, now)
            state = compare(store, application, now)
            assert isinstance(state, RunningComparison)
            for one in findings(state):
                gain = world.gain if one.name == "reward" else 0.0
                missed = missed or not one.low <= gain <= one.high
                better, worse = better or one.sign > 0, worse or one.sign < 0
                estimate = one.gain if one.name == "reward" else estimate
    return Looked(better, worse, missed, estimate)


def _fill(
    store: Store, application: Application, world: ControlledWorld, likes: np.ndarray, day: int, seed: int,
    g: np.random.Generator,
) -> None:  # fmt: skip
    """Write a day of decisions and rewards. Users are other ones in every run, so that the hash is another coin."""
    settings = application.settings
    served = Served(application, Acting(Kind.RANKED, settings), experiment=experiment_of(settings, Kind.RANKED))
    rows: list[DecisionRow | RewardRow] = []
    told: list[DecisionRow | RewardRow] = []
    tide = world.spread * np.sin(day)  # days differ too
    for k in range(world.n // world.days):
        user, event = int(g.integers(max(world.users, 1))), f"{seed}-{day}-{k}"
        at = _START + day * _DAY + 60.0 + k * 3500.0 / (world.n // world.days)
        context = msgspec.json.encode({"user": {"id": f"{seed}-{user}"}})
        arm = arm_of(served, event, context, (), at)
        chance = min(max(likes[user] + 0.3 * tide, 0.0), 1.0 - world.gain) + world.gain * (not arm.control)
        metrics = {f"m{m}": float(g.random() < 0.1 * (m + 1)) for m in range(world.metrics)}
        rows.append(DecisionRow(
            1, event, "", at, b"{}", b'["a","b"]', 0, None, 0.5, None, 0.5, 0.0, 1, experiment=arm.experiment,
            unit=arm.unit, control=arm.control,
        ))  # fmt: skip
        sent = json.dumps(metrics) if metrics else None
        told.append(RewardRow(1, event, "", float(g.random() < chance), at + 5, None, sent))
    store.add(rows)
    store.add(told)
