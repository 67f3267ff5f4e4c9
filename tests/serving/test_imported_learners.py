"""Imported learners and logs: learning goes on from them, and every version can still be learned again."""

from __future__ import annotations

import io
import json
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving import clients, deciders
from tests.serving.rows import decision, reward
from tests.serving.worlds import decide, visits

import o2pl
from o2pl import Interactions, InvalidInput
from o2pl.learners import load
from o2pl.serving import imported_learners, row_reads, training_batches, versions
from o2pl.serving.application_learner import learner_for, published
from o2pl.serving.erasure import forget
from o2pl.serving.imported_learners import Prepared
from o2pl.serving.settings import Kind, Settings
from o2pl.serving.store import Store
from o2pl.serving.trainer import Trainer
from o2pl.serving.training import rebuilt

BOTH = True
OFTEN = Settings(model_export_frequency=timedelta(microseconds=1))


def log_of(n: int, seed: int) -> Interactions:
    """Uniform decisions for the readers of `worlds`."""
    g = np.random.default_rng(seed)
    made = visits(n, g)
    actions = g.integers(3, size=n)
    rewards = [float(g.random() < means[k]) for (_, means), k in zip(made, actions, strict=True)]
    return Interactions([json.loads(text) for text, _ in made], actions, rewards, np.full(n, 1 / 3), (0.0, 1.0))


def taught(n: int = 600, **settings: Any) -> o2pl.Bandit:
    return o2pl.Bandit(reward_range=(0.0, 1.0), random_state=3, **settings).fit(log_of(n, 1))


def put(store: Store, found: Prepared, pinned: bool = False) -> int:
    with store.writing() as connection:
        return imported_learners.put(connection, 1, found, pinned)


def imported(store: Store, learner: Any) -> int:
    return put(store, imported_learners.of_file(store.application(1), learner, b""))


def earned(store: Store, seed: int = 9) -> float:
    """The mean of the expected rewards of what is served: .4 if it is uniform, .78 of the best."""
    g, decider = np.random.default_rng(seed), load(io.BytesIO(store.model_body(1, store.served_version(1))))
    made = visits(300, g)
    pi = decider.predict_proba([json.loads(text) for text, _ in made]).reshape(-1, 3)
    return float(np.mean([own @ means for own, (_, means) in zip(pi, made, strict=True)]))


def test_learning_goes_on_from_an_imported_learner(store: Store, tmp_path: Path) -> None:
    """One reward after the import changes what was imported by one reward."""
    store.add_application("page", settings=OFTEN)
    g, trainer = np.random.default_rng(0), Trainer(store, tmp_path / "state")
    decide(store, visits(30, g), g, "before")
    trainer.step(last=True)
    learner = taught()
    assert imported(store, learner) == 2
    assert store.served_version(1) == 2
    assert earned(store) > 0.72
    decide(store, visits(1, g), g, "one")
    assert trainer.step(last=True) == 1
    assert store.served_version(1) == 3
    assert earned(store) > 0.72  # from one row alone: .4
    assert len(trainer.training[1].learner.log_) == 601  # not the thirty from before
    assert len(learner.log_) == 600  # what was given is not changed
    (row,) = store.learned_rows(1, 30)
    learner.partial_fit([json.loads(bytes(row.context))], [row.action], [row.reward], [row.propensity], at_most=2**14)
    ours = trainer.training[1].learner.predict_proba(log_of(20, 4).contexts)
    assert np.allclose(ours, learner.predict_proba(log_of(20, 4).contexts), atol=1e-6)


@pytest.mark.parametrize("state", [True, False])
def test_versions_after_an_import_are_learned_again_bit_for_bit(store: Store, tmp_path: Path, state: bool) -> None:
    store.add_application("page", settings=OFTEN)
    folder = tmp_path / "state" if state else None
    g, trainer = np.random.default_rng(0), Trainer(store, folder)
    made: list[int] = []
    for name, learner in (("a", None), ("b", taught(80)), ("c", taught(50, policy="hashed actionwise"))):
        if learner is not None:
            made.append(imported(store, learner))
        for k, size in enumerate((17, 3, 40)):
            decide(store, visits(size, g), g, f"{name}{k}")
            trainer.step(last=True)
    served = store.model_body(1, store.served_version(1))
    for again in (Trainer(store), Trainer(store, folder)):
        again.step(last=True)
        training = again.training[1]
        assert published(training.application, training.learner) == served
    for row in store.model_versions(1):
        if row.version in made:
            with pytest.raises(InvalidInput, match="was not learned by this trainer"):
                rebuilt(store, store.application(1), row.version)
        else:
            assert rebuilt(store, store.application(1), row.version)[0] == store.model_body(1, row.version)
    assert len(store.model_versions(1)) == 11
    with store.writing() as connection:
        training_batches.delete_unusable(connection, 1)
        imported_learners.delete_unused(connection, 1)
        assert [imported_learners.body_of(connection, number) is not None for number in (1, 2)] == [True, True]


def test_a_log_is_learned_from_and_learned_on(store: Store) -> None:
    store.add_application("page", settings=OFTEN)
    g, trainer = np.random.default_rng(0), Trainer(store)
    assert put(store, imported_learners.of_log(store.application(1), log_of(600, 1))) == 1
    assert earned(store) > 0.72
    decide(store, visits(5, g), g, "five")
    trainer.step(last=True)
    assert len(trainer.training[1].learner.log_) == 605
    assert trainer.training[1].learner.policy == learner_for(store.application(1)).policy
    assert rebuilt(store, store.application(1), 2)[0] == store.model_body(1, 2)


def test_a_reset_forgets_what_was_imported(store: Store) -> None:
    store.add_application("page", settings=OFTEN)
    g, trainer = np.random.default_rng(0), Trainer(store)
    imported(store, taught(100))
    decide(store, visits(10, g), g, "a")
    trainer.step(last=True)
    with store.writing() as connection:  # as DELETE …/model does
        training_batches.reset(connection, 1)
        imported_learners.end(connection, 1)
        for row in versions.model_versions(connection, 1):
            versions.withdraw(connection, 1, row.version, "reset")
    assert store.served_version(1) == 0
    decide(store, visits(7, g), g, "b")
    for each in (trainer, Trainer(store)):
        each.step(last=True)
        assert len(each.training[1].learner.log_) == 7
    with store.writing() as connection:
        imported_learners.delete_unused(connection, 1)
        assert imported_learners.body_of(connection, 1) is not None  # versions can be learned again from it
        connection.exec_driver_sql("DELETE FROM trainings WHERE import_id IS NOT NULL")
        imported_learners.delete_unused(connection, 1)
        assert imported_learners.body_of(connection, 1) is None


def test_erased_events_are_forgotten_and_what_was_imported_stays(store: Store) -> None:
    store.add_application("page", settings=OFTEN)
    g, trainer = np.random.default_rng(0), Trainer(store)
    imported(store, taught(100))
    decide(store, visits(10, g), g, "a")
    trainer.step(last=True)
    forget(store, store.applications(), events=["a-0", "a-1"])
    trainer.step(last=True)
    assert len(trainer.training[1].learner.log_) == 108


def test_learners_of_all_kinds_of_actions_are_learned_on(store: Store) -> None:
    g, now = np.random.default_rng(0), time.time()
    names = ("red", "blue", "green")
    store.add_application("colours", Kind.FIXED, Settings(actions=names))
    store.add_application("prices", Kind.CONTINUOUS, Settings(bounds=(0.0, 10.0)))
    colours = o2pl.Bandit(actions=list(names), random_state=0).fit(
        [{"likes": names[k % 3]} for k in range(90)], [names[k % 2] for k in range(90)],
        [float(k % 3 == k % 2) for k in range(90)], np.full(90, 0.5),
    )  # fmt: skip
    prices = o2pl.ContinuousBandit(bounds=(0.0, 10.0), random_state=0)
    prices.partial_fit(g.normal(size=(50, 2)), g.uniform(0, 10, 50), g.random(50), np.full(50, 0.1))
    with store.writing() as connection:
        for number, learner in ((1, colours), (2, prices)):
            application = store.application(number)
            imported_learners.put(connection, number, imported_learners.of_file(application, learner, b""), False)
    colour = decision("e", decided_at=now, context=b'{"likes":"red"}', actions=b'["red","blue"]', action=0)
    price = decision("e", 2, decided_at=now, context=b"[0.5,1.5]", actions=None, action=None, value=4.0)
    store.add([colour, price])
    store.add([reward("e", application=number, received_at=now) for number in (1, 2)])
    assert Trainer(store).step(last=True) == 2
    again = Trainer(store)
    again.step(last=True)
    assert [len(again.training[k].learner.log_) for k in (1, 2)] == [91, 51]


def test_what_cannot_be_learned_on_is_refused(store: Store) -> None:
    store.add_application("page")
    page = store.application(1)
    wrong: list[tuple[Any, str]] = [
        (o2pl.Bandit(), "has seen no data"),
        (o2pl.Bandit(reward_range=(-1.0, 1.0)).fit(log_of(20, 0)), "expected 0 to 1"),
        (o2pl.Bandit(2).partial_fit([[0.1]], [1], [1.0], [0.5]), "expected one for action sets"),
        (deciders.fixed(), "expected one for action sets"),
    ]
    for found, said in wrong:
        with pytest.raises(InvalidInput, match=said):
            imported_learners.of_file(page, found, b"")


def test_other_rewards_after_the_import_are_said_and_not_learned(store: Store) -> None:
    """The learner would read them as others."""
    store.add_application("page", settings=OFTEN)
    trainer, g = Trainer(store), np.random.default_rng(0)
    imported(store, taught(50))
    store.put_settings(1, Settings(reward_range=(-1.0, 1.0)))
    decide(store, visits(3, g), g, "a")
    assert trainer.step(last=True) == 0
    assert "expected -1 to 1 (rewardRange)" in (store.note(f"{row_reads.FAILED}1") or "")
    assert store.served_version(1) == 1


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_running_server_goes_on_from_what_is_sent_to_it(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    url = ""
    if database == "postgresql":
        postgres = request.getfixturevalue("postgres")
        postgres.empty()
        url = postgres.url
    learner = taught(300)
    learner.save(tmp_path / "learner.o2pl")
    model = "/personalizer/v1.0/model"
    with clients.server(tmp_path, database=url) as running, running.client() as client:
        client.put("/personalizer/v1.0/configurations/service", json={"modelExportFrequency": "PT0.1S"})
        body = (tmp_path / "learner.o2pl").read_bytes()
        assert client.put(model, content=body).status_code == 204
        assert client.put(model, content=body[:-900]).status_code == 400
        assert client.get(f"{model}/properties").json()["version"] == 1
        text, _ = visits(1, np.random.default_rng(0))[0]
        context = json.loads(text)
        actions = [{"id": one["id"], "features": {"topic": one["topic"]}} for one in context["_multi"]]
        made = client.post("/decide", json={"context": {"reader": context["reader"]}, "actions": actions}).json()
        assert made["modelVersion"] == 1
        assert max(made["probabilities"].values()) > 0.6
        assert client.post("/reward", json={"eventId": made["eventId"], "value": 1}).status_code == 204
        until = time.monotonic() + 120
        while (found := client.get(f"{model}/properties").json()["version"]) < 2 and time.monotonic() < until:
            time.sleep(0.1)
        assert found == 2
        again = client.post("/decide", json={"context": {"reader": context["reader"]}, "actions": actions}).json()
        assert max(again["probabilities"].values()) > 0.6
        assert client.delete(model).status_code == 204
        assert client.get(f"{model}/properties").json()["version"] == 0
