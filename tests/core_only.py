"""A script: what must work, and what must be said, where only the core is installed. `test_core.py` runs it."""

from __future__ import annotations

import contextlib
import importlib
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import o2pl
from o2pl.cli import app
from o2pl.policies import Neural
from o2pl.simulation import worlds
from o2pl.simulation.engines import Ray
from o2pl.simulation.experiment import Cell, Experiment, Size
from o2pl.simulation.rivals import BoostedTrees, VowpalWabbit
from o2pl.simulation.runner import run
from o2pl.simulation.store import results
from o2pl.simulation.worlds.logged import logistic_logger

GENERATOR = np.random.default_rng(0)


def acts_and_learns() -> None:
    learner = o2pl.O2PL(n_actions=3, random_state=0)
    for context in GENERATOR.normal(size=(40, 3)):
        action, propensity = learner.act(context)
        learner.update(context, action, float(action == context.argmax()), propensity)
    contexts, actions = GENERATOR.normal(size=(300, 3)), GENERATOR.integers(3, size=300)
    log = (contexts, actions, (actions == contexts.argmax(axis=1)).astype(float), np.full(300, 1 / 3))
    learner.fit(*log)
    learner.save("model.o2pl")
    same = o2pl.load("model.o2pl")
    np.testing.assert_array_equal(same.predict(contexts), learner.predict(contexts))
    assert "in favour of" in str(same.explain(contexts[0]))
    assert "estimator" in str(o2pl.evaluate(o2pl.Interactions(*log), learner, baseline="uniform"))
    assert len(o2pl.read_log("model.o2pl")) == 300
    named = o2pl.Bandit(2, random_state=0)
    decision = named.act({"age": 31, "city": "Rome"})
    named.update({"age": 31, "city": "Rome"}, decision.action, 1.0, decision.propensity)


def every_command_has_its_help() -> None:
    names = list(typer.main.get_group(app).commands)
    assert {"fit", "evaluate", "demo"} <= set(names)
    for arguments in (["--help"], ["--version"], *([name, "--help"] for name in names)):
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, (arguments, done.output, done.exception)


EVERYTHING = "matplotlib, pyarrow, scikit-learn and scipy"
EXPERIMENTS_EXTRA = f"needs {EVERYTHING}: pip install 'o2pl[experiments]'"
SCIKIT_LEARN = "needs scikit-learn: pip install 'o2pl[experiments]'"
PYARROW = "needs pyarrow: pip install 'o2pl[experiments]'"
MATPLOTLIB = "needs matplotlib: pip install 'o2pl[plots]'"
LOGS = "reading Parquet and CSV needs pyarrow: pip install 'o2pl[logs]'"
RAY = "the engine 'ray' needs ray: pip install 'o2pl[ray]'"

EXPERIMENT = Experiment(
    "none", "", {"quick": Size(1, 1)}, lambda data: [Cell({"name": "a"}, {"name": "b"})], print, {}, ""
)
COIN = worlds.make_dataset([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
DOORS: list[tuple[Callable[[], object], str]] = [
    (lambda: o2pl.read_log("log.csv"), LOGS),
    (lambda: o2pl.read_log("log.dsjson"), "reading dsjson needs pyarrow: pip install 'o2pl[logs]'"),
    (lambda: o2pl.read_log("log.vw"), "reading VW's text needs pyarrow: pip install 'o2pl[logs]'"),
    (lambda: o2pl.evaluate(o2pl.read_log("model.o2pl"), "uniform").figure(), f"drawing figures {MATPLOTLIB}"),
    (lambda: o2pl.load("model.o2pl").explain([0.0, 0.0, 0.0]).figure(), f"drawing figures {MATPLOTLIB}"),
    (
        lambda: o2pl.load("model.o2pl").coefficients().to_frame(),
        "to_frame needs pandas: pip install pandas. Without pandas, iterate over the rows",
    ),
    (worlds.Embedded("digits").load, "the data set 'digits' " + SCIKIT_LEARN),
    (worlds.Synthetic().load, SCIKIT_LEARN),
    (worlds.OpenML(61).load, SCIKIT_LEARN),
    (worlds.ParquetSet(1, ".").load, PYARROW),
    (lambda: worlds.Advertising().sample(5, GENERATOR), SCIKIT_LEARN),
    (lambda: logistic_logger(COIN, np.arange(4)), SCIKIT_LEARN),
    (lambda: importlib.import_module("o2pl.adapters.sklearn"), "learners in scikit-learn " + SCIKIT_LEARN),
    (lambda: VowpalWabbit(2).act([1.0]), "needs vowpalwabbit: pip install 'o2pl[vw]'"),
    (lambda: BoostedTrees(2).act([1.0]), "boosted trees as a rival " + SCIKIT_LEARN),
    (Ray, RAY),
    (lambda: run(EXPERIMENT, out="out"), f"running experiments {EXPERIMENTS_EXTRA}"),
    (lambda: results("out", "wheel"), PYARROW),
    (
        lambda: o2pl.Bandit(2, policy=Neural(), random_state=0).fit([[0.0], [1.0]], [0, 1], [0.0, 1.0], [0.5, 0.5]),
        "learning a neural policy needs jax: pip install 'o2pl[jax]'",
    ),
    (lambda: o2pl.Bandit(2, device="gpu").act([0.0]), "device='gpu' needs jax: pip install 'o2pl[jax]'"),
]


def every_door_names_its_extra() -> None:
    for door, message in DOORS:
        with pytest.raises(o2pl.MissingExtra, match=f"{re.escape(message)}$"):
            door()


SERVICE = (
    "the decision service needs fastapi, httptools, msgspec, prometheus-client, pyarrow, sqlalchemy and uvicorn:"
    " pip install 'o2pl[serve]'"
)
COMMANDS: dict[str, str] = {
    "evaluate log.csv --policy uniform": LOGS,
    "describe log.csv": LOGS,
    "fit log.csv --out fitted.o2pl": LOGS,
    "decide model.o2pl log.csv --out tonight.csv": LOGS,
    "join log.csv log.csv --out log.parquet": LOGS,
    "convert log.csv log.parquet": "writing Parquet and CSV needs pyarrow: pip install 'o2pl[logs]'",
    "evaluate model.o2pl --policy uniform --figure course.svg": f"drawing figures {MATPLOTLIB}",
    "explain model.o2pl --context 0,0,0 --figure why.png": f"drawing figures {MATPLOTLIB}",
    "fit model.o2pl --out again.o2pl --engine ray": RAY,
    "demo": f"the demo {EXPERIMENTS_EXTRA}",
    "app list": SERVICE,
    "export log.parquet": SERVICE,
    "serve": "the decision service needs fastapi, httptools, msgspec, prometheus-client, pyarrow, sqlalchemy and"
    " uvicorn: pip install 'o2pl[serve]'",
}


def commands_say_it_in_one_line() -> None:
    for command, message in COMMANDS.items():
        done = CliRunner().invoke(app, command.split())
        assert done.exit_code == 2, (command, done.output, done.exception)
        assert done.stdout == "", (command, done.stdout)
        assert done.stderr == f"o2pl: {message}\n", (command, done.stderr)


def evaluate_does_without_a_picture_that_nobody_asked_for() -> None:
    done = CliRunner().invoke(app, ["evaluate", "model.o2pl", "--policy", "uniform"])
    assert done.exit_code == 0, done.output
    assert "figure: not drawn; to draw it: pip install 'o2pl[plots]'" in done.stdout


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("log.csv").write_text("x,action,reward,propensity\n1,0,1,0.5\n")
        Path("log.dsjson").write_text("{}\n")
        Path("log.vw").write_text("|a x\n")
        Path("1_coin.parquet").write_bytes(b"never read")
        acts_and_learns()
        every_command_has_its_help()
        every_door_names_its_extra()
        commands_say_it_in_one_line()
        evaluate_does_without_a_picture_that_nobody_asked_for()
