"""How the bench runs other libraries: the child process, its clock, and what is said of those that are missing.

None of them is needed here: the child runs this Python, with a small stand-in for one of them.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from benchmarks import default, page, peer_environment, peers, rounds
from benchmarks.__main__ import measured
from benchmarks.data import logistic_bandit
from benchmarks.measure import Skipped, Told, rates, seconds
from benchmarks.peer_loops import LOOPS
from benchmarks.table import BENCH

STAND_IN = """
    import os, time

    class LinUCBDisjoint:
        def __init__(self, **_):
            self.told, self.asked = [], 0
        def pull(self, arms, context):
            print("not an answer")
            if len(self.told) != self.asked:
                raise RuntimeError("asked again before it was told")
            self.asked += 1
            if context[0] > 1e6:
                os._exit(3)
            return {choice}
        def update(self, arm, context, reward):
            self.told.append((arm, reward))
"""


@pytest.fixture
def river(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in that always takes the third action, and the Python it can be imported from."""
    _stand_in(tmp_path, monkeypatch, "arms[2]")


def _stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, choice: str) -> None:
    package = folder / "river"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "bandit.py").write_text(textwrap.dedent(STAND_IN).replace("{choice}", choice))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setattr(peers, "interpreter", lambda _: sys.executable)


@pytest.mark.usefixtures("river")
def test_a_child_works_on_our_columns_and_answers_with_its_own_seconds() -> None:
    contexts, rewards = logistic_bandit(200, 4, 3)
    with peers.Child("river", contexts=contexts, rewards=rewards) as child:
        start = time.perf_counter()
        said = child.ask("loop", rounds=150)
        took = time.perf_counter() - start
        assert said["mean"] == pytest.approx(rewards[:150, 2].mean())
        assert 0 < said["seconds"] < took
        row = rates(lambda: Told(0.5), lambda: Told(2.0), 100, "u", repeats=1, peer_work=10)
        assert (row.ours, row.peer) == (200, 5)
        assert isinstance(child.seconds("loop", rounds=20), Told)


def test_a_task_is_timed_by_our_clock_unless_it_tells() -> None:
    ticks = iter([1.0, 4.0])
    assert seconds(lambda: 7.0, lambda: next(ticks)) == 3.0


@pytest.mark.usefixtures("river")
def test_a_library_that_fails_or_dies_is_skipped_with_the_reason() -> None:
    contexts = np.full((3, 4), 1e7)
    with peers.Child("mabwiser", contexts=contexts, rewards=np.ones((3, 3))) as child:
        with pytest.raises(Skipped, match=r"mabwiser did not work: ModuleNotFoundError.*mabwiser"):
            child.ask("loop", rounds=3)
        with pytest.raises(Skipped, match="did not work"):  # and it still answers
            child.ask("loop", rounds=3)
    with peers.Child("river", contexts=contexts, rewards=np.ones((3, 3))) as child:
        for _ in range(2):
            with pytest.raises(Skipped, match="river did not work: its process ended with status 3"):
                child.ask("loop", rounds=3)


@pytest.mark.usefixtures("river")
def test_a_loop_that_has_not_learned_is_no_peer() -> None:
    with pytest.raises(Skipped, match="river has not learned"):
        rounds.peer(default.learner, "river", rounds=100)


def test_a_row_shows_what_the_peer_earned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contexts, rewards = logistic_bandit(100, 20, 5)
    knows = {float(context[0]): int(row.argmax()) for context, row in zip(contexts, rewards, strict=True)}
    _stand_in(tmp_path, monkeypatch, f"{knows}[context[0]]")
    name = "default_loop_20x5_river"
    monkeypatch.setitem(BENCH, name, BENCH[name]._replace(quick={"rounds": 100, "repeats": 2}))
    found = measured(BENCH[name], quick=True)
    assert found["peer_reward"] == pytest.approx(rewards.max(axis=1).mean())
    assert found["our_reward"] < found["peer_reward"]
    assert found["ratio"] > 0
    assert f"| {found['our_reward']:.4f} / {found['peer_reward']:.4f} |" in page.rendered({name: found})


def test_every_library_has_a_row_and_an_installation() -> None:
    assert set(LOOPS) | {"vw-estimators"} == set(peer_environment.INSTALLS)  # that one is for tests alone
    assert {f"default_loop_20x5_{name}" for name in LOOPS} <= set(BENCH)


def test_without_the_environment_a_row_says_what_makes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "ENVIRONMENT", tmp_path / "none")
    with pytest.raises(Skipped, match="coba is not installed: `make peers` makes"):
        peers.Child("coba")
    assert peers.versions() == {}


def test_what_did_not_install_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "ENVIRONMENT", tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "peers.json").write_text(json.dumps({"obp": "no compiler", "river": ""}))
    with pytest.raises(Skipped, match="obp did not install: no compiler"):
        peers.interpreter("obp")
    assert peers.interpreter("river") == str(tmp_path / "bin" / "python")


def test_the_versions_on_the_page_are_those_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    information = tmp_path / "lib" / version / "site-packages" / "river-9.8.7.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: river\nVersion: 9.8.7\n")
    monkeypatch.setattr(peers, "ENVIRONMENT", tmp_path)
    assert peers.versions() == {"river": "9.8.7"}
    assert page.about()["packages"]["river"] == "9.8.7"


def test_a_failed_installation_is_one_line(tmp_path: Path) -> None:
    pip = tmp_path / "python"
    pip.write_text("#!/bin/sh\necho 'a hint' >&2\necho 'ERROR: nothing of that name' >&2\necho 'more' >&2\nexit 1\n")
    pip.chmod(0o755)
    assert peer_environment.install(str(pip), "obp") == "ERROR: nothing of that name"
    pip.write_text("#!/bin/sh\nexit 0\n")
    assert peer_environment.install(str(pip), "obp") == ""


def test_the_constraints_are_versions_and_pin_every_library() -> None:
    lines = peer_environment.CONSTRAINTS.read_text().splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9.]+", line) for line in lines)
    pinned = {line.split("==")[0].lower() for line in lines}
    calls = (call for calls in peer_environment.INSTALLS.values() for call in calls)
    assert {name for call in calls for name in call if not name.startswith("--")} <= pinned
