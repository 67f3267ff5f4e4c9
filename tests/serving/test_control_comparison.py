"""The service and its control group: what is counted, when, and what guardrails do."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.serving import deciders
from tests.serving.rows import decision, reward

from o2pl.serving import control_comparison
from o2pl.serving.control_assignment import experiment_of
from o2pl.serving.control_comparison import RunningComparison, compared
from o2pl.serving.gain_sequence import gain
from o2pl.serving.reward_join import join
from o2pl.serving.settings import Aggregation, Guardrail, Kind, LearningMode, MetricSettings, Settings
from o2pl.serving.store import Store
from o2pl.serving.trainer import Trainer

BOTH = True
START = 86400.0 * 20_000
KEYED = Settings(control_share=0.3, control_key="user.id", metrics={"complaint": MetricSettings(lower_is_better=True)})


def fill(
    store: Store, settings: Settings, n: int, seed: int, begin: float = START, seconds: float = 86400.0,
    gain: float = 0.0, harm: float = 0.0, prefix: str = "e",
) -> list[tuple[Any, Any]]:  # fmt: skip
    """Decisions of n/4 users with their rewards: the coin, and what it does."""
    g = np.random.default_rng(seed)
    name, rows = experiment_of(settings, Kind.RANKED), []
    groups = g.random(n // 4 + 1) < settings.control_share
    for k, user in enumerate(np.sort(g.integers(n // 4, size=n))):
        control, at = bool(groups[user]), begin + seconds * k / n
        made = decision(f"{prefix}{k}", decided_at=at, experiment=name, unit=f"u{user}", control=control)
        value = float(g.random() < 0.4 + gain * (not control))
        metrics = json.dumps({"complaint": float(g.random() < 0.2 + harm * (not control))})
        rows.append((made, reward(f"{prefix}{k}", value, received_at=at + 5, metrics=metrics)))
    store.add([row for row, _ in rows])
    store.add([row for _, row in rows])
    return rows


def state(store: Store) -> RunningComparison:
    with store.reading() as connection:
        found = compared(connection, store.application(1))
    assert found is not None
    return found


def test_each_key_counts_once_in_each_period(store: Store) -> None:
    store.add_application("page", settings=KEYED)
    trainer = Trainer(store)
    trainer.step(now=START + 10)  # it sees the comparison first
    days = [fill(store, KEYED, 200, day, START + 86400 * day, prefix=f"d{day}-") for day in range(2)]
    trainer.step(now=START + 86400 + 300, last=True)
    assert state(store).decisions == [0, 0]  # the first day's last reward may still come
    trainer.step(now=START + 86400 + 700, last=True)
    one = state(store)
    assert sum(one.decisions) == 200
    Trainer(store).step(now=START + 5 * 86400, last=True)  # another goes on
    both = state(store)
    units: list[dict[str, Any]] = [{}, {}]
    for day, rows in zip(units, days, strict=True):
        for made, told in rows:
            day.setdefault((made.unit, made.control), []).append((told.value, json.loads(told.metrics)["complaint"]))
    for place, control in enumerate((False, True)):
        values = [np.mean(seen, axis=0) for day in units for (_, own), seen in day.items() if own == control]
        assert both.sums["reward"].units[place] == len(values)
        assert both.sums["reward"].earned[place] == pytest.approx(sum(v[0] for v in values))
        assert both.sums["complaint"].earned[place] == pytest.approx(sum(v[1] for v in values))
    assert sum(both.decisions) == 400
    assert [point.at for point in both.points] == [START + 86400, START + 2 * 86400]
    reward_now = next(each for each in control_comparison.findings(both) if each.name == "reward")
    alone = gain(both.sums["reward"], 0.3, (0.0, 1.0), 0.025)  # both hold jointly
    assert (reward_now.low, reward_now.high, reward_now.confidence) == (alone.low, alone.high, 0.95)
    Trainer(store).step(now=START + 6 * 86400, last=True)
    assert state(store) == both


def test_events_without_a_key_count_within_minutes(store: Store) -> None:
    settings = Settings(control_share=0.3, reward_wait_time=timedelta(seconds=30))
    store.add_application("page", settings=settings)
    trainer = Trainer(store)
    trainer.step(now=START)
    fill(store, settings, 240, 0, START, 240.0)
    trainer.step(now=START + 200, last=True)
    assert sum(state(store).decisions) == 120  # whole minutes; in the third one, decisions wait for their rewards
    trainer.step(now=START + 1000, last=True)
    assert sum(state(store).decisions) == 240


def test_decisions_count_that_were_made_before_the_trainer_knew_of_the_comparison(store: Store) -> None:
    settings = Settings(control_share=0.3, reward_wait_time=timedelta(seconds=30))
    store.add_application("page", settings=settings)
    fill(store, settings, 240, 0, START, 240.0)
    Trainer(store).step(now=START + 1000, last=True)
    assert sum(state(store).decisions) == 240


def test_what_is_not_known_yet_and_what_is_not_compared_is_not_counted(store: Store) -> None:
    """Joining is behind; rows without an experiment, or of another one."""
    store.add_application("page", settings=KEYED)
    application = store.application("page")
    control_comparison.compare(store, application, START)
    fill(store, KEYED, 100, 0)
    for other in (None, "0ther"):
        store.add([decision(f"o{other}", decided_at=START + 5, experiment=other, unit="x", control=True)])
    later = START + 3 * 86400
    control_comparison.compare(store, application, later)
    assert state(store).decisions == [0, 0]
    join(store, application, later)
    control_comparison.compare(store, application, later)
    assert sum(state(store).decisions) == 100


def test_counting_in_many_rounds_is_counting_at_once(store: Store) -> None:
    store.add_application("page", settings=KEYED)
    Trainer(store).step(now=START)
    for day in range(3):
        fill(store, KEYED, 120, day, START + 86400 * day, prefix=f"d{day}-")
    for now in np.linspace(START, START + 4 * 86400, 9):
        Trainer(store).step(now=float(now), last=True)
    in_rounds = state(store)
    store.put_note(
        control_comparison.note_of(1),
        msgspec.json.encode(control_comparison.begun(in_rounds.experiment, KEYED, START)).decode(),
    )
    Trainer(store).step(now=START + 4 * 86400, last=True)
    assert state(store) == in_rounds


def test_metrics_are_aggregated_as_rewards_are(store: Store) -> None:
    wait = timedelta(minutes=10)
    for name, aggregation, expected in (("a", Aggregation.EARLIEST, 0.3), ("b", Aggregation.SUM, 0.8)):
        settings = Settings(
            control_share=0.5, metrics={"x": MetricSettings(), "y": MetricSettings(default=0.25)},
            reward_aggregation=aggregation, reward_wait_time=wait,
        )  # fmt: skip
        number = store.add_application(name, settings=settings).id
        made = decision("e", number, decided_at=START, experiment=experiment_of(settings, Kind.RANKED), unit="u")
        store.add([made._replace(control=False)])
        for k, (after, x) in enumerate(((1, 0.3), (2, 0.5), (4000, 1.0))):
            told = reward("e", 0.1, number, received_at=START + after, metrics=json.dumps({"x": x}))
            store.add([told._replace(idempotency_key=f"k{k}")])
        trainer = Trainer(store)
        trainer.step(now=START)
        trainer.step(now=START + 5000, last=True)
        with store.reading() as connection:
            found = compared(connection, store.application(number))
        assert found is not None
        assert found.sums["x"].earned[0] == pytest.approx(expected)
        assert found.sums["y"].earned[0] == 0.25  # none was sent


def test_other_settings_begin_another_comparison(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    store.add_application("page", settings=KEYED)
    Trainer(store).step(now=START)
    fill(store, KEYED, 120, 0)
    Trainer(store).step(now=START + 2 * 86400, last=True)
    assert sum(state(store).decisions) == 120
    store.put_settings(1, msgspec.structs.replace(KEYED, reward_guardrail=Guardrail.NONE))
    Trainer(store).step(now=START + 3 * 86400, last=True)
    assert sum(state(store).decisions) == 120  # the same one
    with caplog.at_level(logging.INFO):
        store.put_settings(1, msgspec.structs.replace(KEYED, control_share=0.2))
        Trainer(store).step(now=START + 4 * 86400, last=True)
    assert sum(state(store).decisions) == 0
    assert "a comparison ended: reward: " in caplog.text
    store.put_settings(1, msgspec.structs.replace(KEYED, control_share=0.0))
    Trainer(store).step(now=START + 5 * 86400, last=True)
    assert state(store).since == START + 4 * 86400  # the last one is kept


def worse(store: Store, settings: Settings, **what: float) -> Trainer:
    trainer = Trainer(store)
    trainer.step(now=START)
    for day in range(4):
        fill(store, settings, 2000, day, START + 86400 * day, prefix=f"d{day}-", **what)
        trainer.step(now=START + 86400 * (day + 1) + 700, last=True)
    return trainer


def test_a_guardrail_says_that_a_metric_is_worse(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    store.add_application("page", settings=KEYED)
    worse(store, KEYED, gain=0.15, harm=0.2)
    found = {each.name: each for each in control_comparison.findings(state(store))}
    assert (found["reward"].verdict, found["reward"].alert) == ("better", None)
    assert found["reward"].low <= 0.15 <= found["reward"].high
    assert (found["complaint"].verdict, found["complaint"].sign) == ("worse", -1)
    assert found["complaint"].low <= 0.2 <= found["complaint"].high
    assert "complaint: the service is worse than the control group" in (found["complaint"].alert or "")
    assert caplog.text.count("guardrail: complaint") == 1  # said once
    assert store.settings(1) == KEYED
    assert state(store).withdrawn is None


def test_what_is_tolerated_is_not_said(store: Store) -> None:
    settings = msgspec.structs.replace(
        KEYED, metrics={"complaint": MetricSettings(lower_is_better=True, tolerance=0.5)}
    )
    store.add_application("page", settings=settings)
    worse(store, settings, harm=0.2)
    found = {each.name: each for each in control_comparison.findings(state(store))}
    assert (found["complaint"].verdict, found["complaint"].alert) == ("worse", None)


def test_a_guardrail_withdraws_the_service(store: Store) -> None:
    settings = msgspec.structs.replace(KEYED, reward_guardrail=Guardrail.WITHDRAW)
    store.add_application("page", settings=settings)
    worse(store, settings, gain=-0.3)
    assert store.settings(1).learning_mode is LearningMode.APPRENTICE
    assert "reward: the service is worse than the control group" in (state(store).withdrawn or "")


def test_a_guardrail_returns_to_the_version_of_the_control_group(store: Store) -> None:
    body = deciders.body_of(deciders.ranked())
    settings = msgspec.structs.replace(KEYED, reward_guardrail=Guardrail.WITHDRAW, control_version=1)
    store.add_application("page", settings=settings)
    for _ in range(2):
        store.add_model(1, body, 0, 0)
    worse(store, settings, gain=-0.3)
    assert (store.served_version(1), store.settings(1).control_share) == (1, 0.0)
    assert {each.name for each in control_comparison.findings(state(store))} == {"reward", "complaint"}  # still said
