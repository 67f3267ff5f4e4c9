"""Actions by name, from the constructor to files, logs and evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import o2pl
from o2pl.cli import app
from o2pl.data.action_names import (
    action_names_in,
    are_action_names,
    check_action_names,
    numbers_of_action_names,
    places_of_action_names,
    renumbered_by_action_names,
)

G = np.random.default_rng(0)
N = 400
X = G.normal(size=(N, 3))
NAMES = ["news", "sport", "music"]
A = G.integers(3, size=N)
WORDS = np.array(NAMES)[A]
R = (X.argmax(axis=1) == A) * 1.0
Q = np.full(N, 1 / 3)


def test_words_and_numbers() -> None:
    assert action_names_in(["b", "a", "b"]) == ("a", "b")
    assert numbers_of_action_names(["b", "a"], ("a", "b")).tolist() == [1, 0]
    assert renumbered_by_action_names(np.array([0, 1]), ("x", "y"), ("y", "z", "x")).tolist() == [2, 0]
    assert places_of_action_names(("x", "q"), ("y", "x")).tolist() == [1, -1]
    assert [are_action_names(some) for some in (["a"], np.array(["a"], object), [1], [], np.ones(2))] == [
        True,
        True,
        *[False] * 3,
    ]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a", "b", "a"], "actions, place 2: found 'a' again, expected each name once"),
        ([1, 2], "actions, place 0: found 1, expected a string"),
        ("news", r"found 'news', expected a list of strings"),
        ([], "found no names"),
    ],
)
def test_bad_names(names: Any, said: str) -> None:
    with pytest.raises(o2pl.InvalidInput, match=said):
        check_action_names(names)
    with pytest.raises(o2pl.InvalidInput, match=said):
        o2pl.Bandit(actions=names).act(X[0])


@pytest.mark.parametrize("kind", [o2pl.Bandit, o2pl.O2PL])
def test_names_go_in_and_come_out(kind: Any, tmp_path: Path) -> None:
    """As the same learner with numbers, in every method."""
    named, numbered = kind(actions=NAMES, random_state=0), kind(3, random_state=0)
    for x in X[:60]:
        one, other = named.act(x), numbered.act(x)
        assert one == (NAMES[other.action], other.propensity)
        named.update(one, 0.5)
        numbered.update(x, other.action, 0.5, other.propensity)
    named.update(X[0], "sport", 1.0, 0.5)
    numbered.update(X[0], 1, 1.0, 0.5)
    named.partial_fit(X, WORDS, R, Q)
    numbered.partial_fit(X, A, R, Q)
    assert named.log_.named_actions.tolist() == [NAMES[a] for a in numbered.log_.actions]
    assert named.predict(X).tolist() == [NAMES[a] for a in numbered.predict(X)]
    np.testing.assert_array_equal(named.predict_proba(X), numbered.predict_proba(X))
    assert named.score(X, WORDS, R, Q) == numbered.score(X, A, R, Q)
    waiting = named.act(X[1])
    named.save(tmp_path / "model")
    again = o2pl.load(tmp_path / "model")
    again.update(waiting.id, 1.0)
    assert again.log_.named_actions[-1] == waiting.action
    assert (again.actions_, again.act(X[0])) == (tuple(NAMES), named.act(X[0]))
    named.snapshot().save(tmp_path / "policy")
    assert o2pl.load(tmp_path / "policy").decide(X[0], 0.5).action == named.snapshot().decide(X[0], 0.5).action in NAMES
    run = named.run((X, np.ones((N, 3))))
    assert set(run.actions) <= set(NAMES)
    hashed = kind(actions=NAMES, policy="hashed", random_state=0)
    assert hashed.act({"age": 3}).action in NAMES
    assert hashed.act({"age": [3, "x"]}).action in NAMES


def test_the_first_log_gives_the_names() -> None:
    learner = o2pl.O2PL(random_state=0).fit(X, WORDS, R, Q)
    assert learner.actions_ == ("music", "news", "sport")
    assert o2pl.O2PL(3, random_state=0).fit(o2pl.Interactions(X, WORDS, R, Q)).actions_ == learner.actions_
    assert set(learner.predict(X)) <= set(NAMES)
    log = o2pl.Interactions(X, WORDS, R, Q, reward_range=(0, 1))
    assert o2pl.O2PL.from_incumbent(log, random_state=0).act(X[0]).action in NAMES
    improved = o2pl.SafeImprovement(random_state=0).fit(log)
    assert improved.actions_ == learner.actions_
    assert set(improved.predict(X)) <= set(NAMES)


def test_another_numbering_is_matched_by_name() -> None:
    """The same log, numbered in three ways."""
    learner = o2pl.Bandit(actions=NAMES, random_state=0).fit(X[:200], WORDS[:200], R[:200], Q[:200])
    other = o2pl.Bandit(actions=[*reversed(NAMES), "never"], random_state=0).fit(X[:200], WORDS[:200], R[:200], Q[:200])
    logs = [
        o2pl.Interactions(X[200:], WORDS[200:], R[200:], Q[200:], reward_range=(0, 1), action_names=names)
        for names in (NAMES, NAMES[::-1], ["other", *NAMES])
    ]
    scores = [learner.score(log) for log in logs]
    assert scores[0] == scores[1] == scores[2] > 0.8
    values = [o2pl.evaluate(log, learner, baseline=other) for log in logs]
    np.testing.assert_allclose([one.value for one in values], values[0].value, rtol=1e-6)
    np.testing.assert_allclose([one.difference.value for one in values if one.difference], 0, atol=0.1)
    learned = o2pl.Interactions(X[:200], WORDS[:200], R[:200], Q[:200], reward_range=(0, 1))
    assert "learned from" in o2pl.evaluate(learned, learner).doubt


def test_what_is_refused_by_name() -> None:
    named = o2pl.Bandit(actions=NAMES, random_state=0).fit(X, WORDS, R, Q)
    numbered = o2pl.Bandit(3, random_state=0).fit(X, A, R, Q)
    words, numbers = o2pl.Interactions(X, WORDS, R, Q), o2pl.Interactions(X, A, R, Q)
    wrong = o2pl.Interactions(X, np.where(WORDS == "news", "newz", WORDS), R, Q)
    for call, said in (
        (lambda: named.update(X[0], "spotr", 1.0, 0.5), "action, row 0: found 'spotr', expected 'sport'"),
        (lambda: named.update(X[0], 1, 1.0, 0.5), "action, row 0: found 1, expected a name: 'news', 'sport', 'music'"),
        (lambda: named.partial_fit(numbers), "found .*, expected a name"),
        (lambda: named.partial_fit(wrong), "found 'newz', expected 'news'"),
        (
            lambda: numbered.partial_fit(words),
            "actions: found names, such as 'music', expected integers from 0 to 2",
        ),
        (lambda: o2pl.evaluate(numbers, named), "log: found actions that are numbers, expected names"),
        (lambda: o2pl.evaluate(words, numbered), "policy: found a policy whose actions are numbers, expected names"),
        (lambda: o2pl.evaluate(words, "uniform", baseline=numbered), "baseline: found a policy whose actions"),
        (lambda: o2pl.evaluate(words, "newss"), "policy: found 'newss', expected 'news'"),
        (lambda: o2pl.evaluate(words, object()), "policy: found a object, expected a learner"),
        (lambda: o2pl.Bandit(4, actions=NAMES).act(X[0]), "found 3 names .* for 4 actions"),
        (lambda: o2pl.Bandit(4).fit(words), "found 3 names .* for 4 actions"),
        (lambda: o2pl.Bandit(actions=NAMES, policy="actionwise").act(X), "names with action sets"),
    ):
        with pytest.raises(o2pl.InvalidInput, match=said):
            call()


def test_slips_of_logs_are_refused_by_name() -> None:
    with pytest.raises(o2pl.InvalidInput, match="numbers from 1 to 3 and never 0, expected numbers from 0: subtract 1"):
        o2pl.Bandit().fit(X, A + 1, R, Q)
    with pytest.raises(o2pl.InvalidInput, match="from 0 to 2; if actions are numbered from 1, subtract 1"):
        o2pl.Bandit(3).fit(X, A + 1, R, Q)
    assert o2pl.Bandit(4, random_state=0).fit(X, A + 1, R, Q).n_actions_ == 4  # action 0 was never played
    small = np.where(np.arange(N) == 7, 1e-13, Q)
    with pytest.raises(o2pl.InvalidInput, match="propensity, row 7: found 1e-13, expected at least 1e-12"):
        o2pl.Bandit(3).fit(X, A, R, small)
    log = o2pl.Interactions(X, A, R, small, reward_range=(0, 1))
    assert any("Row 7 has the propensity 1e-13, below 1e-12" in said for said in o2pl.evaluate(log, "uniform").warnings)
    learner = o2pl.Bandit(3, random_state=0)
    learner.act(X[0])
    with pytest.raises(o2pl.InvalidInput, match="found 1e-13, expected at least 1e-12"):
        learner.update(X[0], 1, 1.0, 1e-13)


def test_rules_of_ones_own() -> None:
    log = o2pl.Interactions(X, WORDS, R, Q, reward_range=(0, 1), action_names=NAMES)
    best = np.array(NAMES)[X.argmax(axis=1)]
    value = o2pl.evaluate(log, lambda rows: np.array(NAMES)[rows.argmax(axis=1)]).value
    assert value == o2pl.evaluate(log, lambda rows: rows.argmax(axis=1)).value > 0.9
    assert o2pl.evaluate(log, lambda rows: (rows.argmax(axis=1)[:, None] == np.arange(3)) * 1.0).value == value
    always = o2pl.evaluate(log, "sport")
    assert always.policy == "sport"
    assert abs(always.value - (best == "sport").mean()) < 0.1
    learner = o2pl.Bandit(actions=NAMES, random_state=0).fit(X, WORDS, R, Q)
    assert o2pl.evaluate(log, learner.snapshot()).value == o2pl.evaluate(log, learner).value


def test_the_command_line_matches_by_name(tmp_path: Path) -> None:
    learner = o2pl.Bandit(actions=NAMES, random_state=0).fit(X[:200], WORDS[:200], R[:200], Q[:200])
    learner.save(tmp_path / "model.o2pl")
    log = tmp_path / "log.csv"
    header, lines = "x0,x1,x2,action,reward,propensity\n", []
    for x, word, reward in zip(X[200:], WORDS[200:], R[200:], strict=True):
        lines.append(",".join([*map(repr, x.tolist()), str(word), str(reward), repr(1 / 3)]))
    log.write_text(header + "\n".join(lines))

    def call(*arguments: Any) -> str:
        result = CliRunner().invoke(app, [str(each) for each in arguments], env={"COLUMNS": "200"})
        assert result.exit_code == 0, result.output
        return result.output

    found = call(
        "evaluate", log, "--policy", tmp_path / "model.o2pl", "--baseline", "logged", "--rewards", "0,1",
        "--figure", tmp_path / "a.png",
    )  # fmt: skip
    assert "is better than logged" in found
    call("convert", tmp_path / "model.o2pl", tmp_path / "own.csv")
    own = o2pl.read_log(tmp_path / "own.csv")
    assert own.named_actions.tolist() == WORDS[:200].tolist()
    np.testing.assert_array_equal(own.ids, learner.log_.ids)
    assert len(learner.merge(own).log_) == 200  # nothing new
