"""Texts in contexts: split into words, in dictionaries, frames and logs; refused where columns are needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import o2pl
from o2pl.fitting.candidate_learners import candidates_for

TOPICS = {"billing": ["invoice", "Refund", "charge"], "technical": ["crash", "login", "password"]}
FILLERS = ["please", "my", "the", "I", "have", "a", "question", "about", "with"]


def tickets(n: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Sentences of eight words, one or two of which tell the team that answers it."""
    generator = np.random.default_rng(seed)
    teams = generator.choice(list(TOPICS), n).tolist()
    said = []
    for team in teams:
        words = generator.choice(FILLERS, 8)
        words[generator.choice(8, 2, replace=False)] = generator.choice(TOPICS[team], 2)
        said.append(" ".join(words) + "!")
    return said, teams


def shown(n: int) -> Any:
    return np.random.default_rng(1).choice(list(TOPICS), n)


@pytest.mark.parametrize("make", [o2pl.Bandit, o2pl.O2PL])
def test_a_sentence_is_its_words(make: Any) -> None:
    learner, right = make(actions=list(TOPICS), random_state=0), []
    for text, team in zip(*tickets(800), strict=True):
        decision = learner.act({"prompt": text, "language": "en"})
        learner.update(decision, float(decision.action == team))
        right.append(decision.action == team)
    assert np.mean(right[-200:]) > 0.9
    assert learner.predict([{"prompt": "a refund? yes", "language": "en"}])[0] == "billing"


def log_of(form: str, folder: Path, n: int = 600) -> o2pl.Interactions:
    said, teams = tickets(n)
    played = shown(n)
    about = {"action": played, "reward": (played == np.array(teams)).astype(float), "propensity": 0.5}
    if form == "json":
        pd.DataFrame({"context": [json.dumps({"prompt": text}) for text in said]} | about).to_parquet(
            folder / "log.parquet"
        )
    else:
        pd.DataFrame({"prompt": said} | about).to_csv(folder / "log.csv", index=False)
    return o2pl.read_log(next(folder.glob("log.*")), reward_range=(0, 1))


@pytest.mark.parametrize("form", ["frame", "json"])
def test_a_log_with_texts(form: str, tmp_path: Path) -> None:
    log = log_of(form, tmp_path)
    learner = o2pl.Bandit(random_state=0).fit(log)
    new, teams = tickets(200, seed=7)
    contexts: Any = pd.DataFrame({"prompt": new}) if form == "frame" else [{"prompt": text} for text in new]
    assert (learner.predict(contexts) == np.array(teams)).mean() > 0.95
    assert {each.name.split()[0] for each in candidates_for(log, (0, 1), 0)} <= {"bandit", "o2pl"}
    assert all("hashed" in each.name for each in candidates_for(log, (0, 1), 0))


@pytest.mark.parametrize("form", ["frame", "json"])
def test_policies_with_columns_refuse_texts(form: str, tmp_path: Path) -> None:
    log = log_of(form, tmp_path)
    for policy in ("quadratic", o2pl.Member(objective=o2pl.objectives.Outcome())):
        with pytest.raises(o2pl.InvalidInput, match=r"found texts .* expected policy='hashed'"):
            o2pl.Bandit(policy=policy).fit(log)
    with pytest.raises(o2pl.InvalidInput, match="such as an embedding"):
        o2pl.Bandit(2, policy="quadratic").act({"prompt": "a whole sentence"})


def test_categories_of_several_words_stay_categories() -> None:
    generator, n = np.random.default_rng(0), 300
    names = [f"Institute of Things number {k}" for k in range(8)]
    frame = pd.DataFrame({"school": generator.choice(names, n), "city": generator.choice(["New York", "Oslo"], n)})
    learner = o2pl.Bandit(2, random_state=0).fit(frame, generator.integers(2, size=n), np.ones(n), np.full(n, 0.5))
    assert "school=Institute of Things number 3" in learner.coefficients().to_frame().term.tolist()
    o2pl.Bandit(2, policy="quadratic").fit(frame, generator.integers(2, size=n), np.ones(n), np.full(n, 0.5))


def test_an_embedding_beside_words() -> None:
    generator = np.random.default_rng(0)
    direction, learner, right = generator.normal(size=384) / 10, o2pl.Bandit(2, random_state=0), []
    for t in range(1500):
        embedding: Any = generator.normal(size=384) / np.sqrt(384) + direction * (t % 2)
        context = {"device": ["phone", "desktop"][t % 3 == 0], "embedding": embedding if t % 5 else embedding.tolist()}
        decision = learner.act(context)
        learner.update(decision, float(decision.action == t % 2))
        right.append(decision.action == t % 2)
    assert np.mean(right[-300:]) > 0.85


def test_a_short_log_of_dictionaries_has_a_place_for_every_word(tmp_path: Path) -> None:
    devices, n = ["tablet", "phone", "desktop"], 60
    contexts = [{"device": devices[t // 4 % 3], "likes": ["news"]} for t in range(n)]
    played = [t % 2 for t in range(n)]
    rewards = [
        float(devices.index(context["device"]) % 2 == action) for context, action in zip(contexts, played, strict=True)
    ]
    for times in (1, 5):  # fewer and more rows than tell which strings there are
        log = o2pl.Interactions(contexts * times, played * times, rewards * times, [0.5] * n * times)
        learner = o2pl.Bandit(2, random_state=0).fit(log)
        assert learner.log_.form == "sparse"
        assert learner.predict([{"device": device} for device in devices]).tolist() == [0, 1, 0]


def test_embeddings_in_a_frame() -> None:
    generator, n = np.random.default_rng(0), 300
    direction, kind = generator.normal(size=16), generator.integers(2, size=n)
    embeddings = [list(generator.normal(size=16) + direction * (2 * each - 1)) for each in kind]
    frame = pd.DataFrame({"device": ["phone", "desktop"] * (n // 2), "embedding": embeddings})
    played = generator.integers(2, size=n)
    learner = o2pl.Bandit(2, random_state=0).fit(frame, played, (played == kind).astype(float), np.full(n, 0.5))
    assert (learner.predict(frame) == kind).mean() > 0.95
