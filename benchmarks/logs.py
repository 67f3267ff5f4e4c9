"""Logs of Vowpal Wabbit: reading its dsjson and its text beside its own driver, and learning from them.

The log is VW's own work: it learns from a tenth of the rounds, logged by chance, and its probabilities
(`--cb_explore_adf`) make the decisions of all others. An action has five words and five numbers, and there is nothing
that actions share, so that both sides have the same features.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.internals import BadRows, read_file_tables
from benchmarks.measure import Row, rates
from o2pl import Bandit, read_log
from o2pl.protocols import Floats, Ints

ACTIONS, WORDS, NUMBERS, VOCABULARY = 10, 5, 5, 50
EXPLORE = "--cb_explore_adf --epsilon 0.2"
HELD_OUT = 5_000  # rounds of which all rewards are known, to judge policies by


class VWLog(NamedTuple):
    """Files of one log, and fresh rounds with the chance of a reward of each action. [n, K]"""

    dsjson: Path
    text: Path
    rows: int
    fresh: Path  # text, without labels
    fresh_contexts: list[dict[str, Any]]
    means: Floats


class _World:
    """Rewards are logistic in the words and numbers of the action."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator
        self.of_words = generator.normal(size=(WORDS, VOCABULARY))
        self.of_numbers = generator.normal(size=NUMBERS)

    def rounds(self, n: int) -> tuple[Ints, Floats, Floats]:
        """Words [n, K, 5], numbers [n, K, 5] and chances [n, K]."""
        words = self.generator.integers(VOCABULARY, size=(n, ACTIONS, WORDS))
        numbers = np.round(self.generator.normal(size=(n, ACTIONS, NUMBERS)), 4)
        scores = self.of_words[np.arange(WORDS), words].sum(axis=2) + numbers @ self.of_numbers
        return words, numbers, 1 / (1 + np.exp(2 - scores))


def _context(words: Any, numbers: Any) -> dict[str, Any]:
    items = []
    for own, values in zip(words, numbers, strict=True):
        features = {f"f{i}": f"w{word}" for i, word in enumerate(own)} | {f"n{i}": v for i, v in enumerate(values)}
        items.append({"Item": features})
    return {"_multi": items}


def _text(context: dict[str, Any], label: tuple[int, float, float] | None = None) -> str:
    """As VW makes it of the JSON: a word is its key and itself."""
    lines = []
    for place, item in enumerate(context["_multi"]):
        own = [f"{k}{v}" if isinstance(v, str) else f"{k}:{v}" for k, v in item["Item"].items()]
        head = f"0:{label[1]}:{label[2]} " if label is not None and label[0] == place else ""
        lines.append(f"{head}|Item {' '.join(own)}")
    return "\n".join(lines) + "\n\n"


def _event(context: dict[str, Any], pmf: Floats, action: int, cost: float, number: int) -> str:
    order = [action, *(k for k in range(ACTIONS) if k != action)]
    return json.dumps(
        {
            "_label_cost": cost,
            "_label_probability": float(pmf[action]),
            "_label_Action": action + 1,
            "_labelIndex": action,
            "Timestamp": "2024-05-01T12:00:00.0000000Z",
            "Version": "1",
            "EventId": f"event{number:08d}",
            "a": [k + 1 for k in order],
            "c": context,
            "p": [float(pmf[k]) for k in order],
            "VWState": {"m": "model"},
        },
        separators=(",", ":"),
    )


def _pmfs(path: Path, model: Path) -> Floats:
    """VW's probabilities of all actions, [n, K]."""
    from vowpalwabbit import Workspace

    out = path.with_suffix(".predictions")
    vw = Workspace(f"{EXPLORE} -i {model} -t -d {path} -p {out} --quiet")
    vw.run_parser()
    vw.finish()
    rows = []
    for line in out.read_text().split("\n"):
        if line:
            pairs = sorted((int(k), float(p)) for k, p in (part.split(":") for part in line.split(",")))
            rows.append([p for _, p in pairs])
    found = np.array(rows)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


@cache
def vw_log(rows: int = 100_000, seed: int = 0) -> VWLog:
    """Files in a folder that goes away with the process."""
    from vowpalwabbit import Workspace

    generator = np.random.default_rng(seed)
    world = _World(generator)
    folder = Path(tempfile.mkdtemp(prefix="o2pl-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    first, pmf = max(rows // 10, 10), np.full(ACTIONS, 1 / ACTIONS)
    with (folder / "first.vw").open("w") as file:
        words, numbers, means = world.rounds(first)
        for context, chance in zip(map(_context, words.tolist(), numbers.tolist()), means, strict=True):
            action = int(generator.integers(ACTIONS))
            file.write(_text(context, (action, -float(generator.random() < chance[action]), 1 / ACTIONS)))
    model = folder / "first.model"
    vw = Workspace(f"{EXPLORE} -d {folder / 'first.vw'} -f {model} --quiet")
    vw.run_parser()
    vw.finish()
    words, numbers, means = world.rounds(rows)
    contexts = [_context(*both) for both in zip(words.tolist(), numbers.tolist(), strict=True)]
    asked = folder / "asked.vw"
    asked.write_text("".join(_text(context) for context in contexts))
    with (folder / "log.dsjson").open("w") as dsjson, (folder / "log.vw").open("w") as text:
        for number, (context, pmf, chance) in enumerate(zip(contexts, _pmfs(asked, model), means, strict=True)):
            action = int(generator.choice(ACTIONS, p=pmf))
            cost = -float(generator.random() < chance[action])
            dsjson.write(_event(context, pmf, action, cost, number) + "\n")
            text.write(_text(context, (action, cost, float(pmf[action]))))
    words, numbers, means = world.rounds(min(HELD_OUT, rows))
    fresh = [_context(*both) for both in zip(words.tolist(), numbers.tolist(), strict=True)]
    (folder / "fresh.vw").write_text("".join(_text(context) for context in fresh))
    return VWLog(folder / "log.dsjson", folder / "log.vw", rows, folder / "fresh.vw", fresh, means)


def _drive(path: Path, options: str) -> None:
    from vowpalwabbit import Workspace

    vw = Workspace(f"{options} -d {path} --quiet")
    vw.run_parser()
    vw.finish()


def learn(kind: str, rows: int = 100_000, repeats: int = 5) -> Row:
    """Rows a second from the file to a policy, beside VW's own driver; and the mean reward of both on fresh rounds."""
    log = vw_log(rows)
    path, flag = (log.dsjson, "--dsjson") if kind == "dsjson" else (log.text, "")
    model = path.with_suffix(".model")
    learned: list[Any] = []

    def ours() -> None:
        found = read_log(path, reward_range=(0, 1))
        learned[:] = [Bandit(policy="hashed actionwise", random_state=0).fit(found)]

    options = f"--cb_explore_adf --epsilon 0 {flag} -f {model}"
    row = rates(ours, lambda: _drive(path, options), rows, "rows/s", repeats)
    n, fresh = len(log.means), log.fresh_contexts
    if kind == "text":  # words have other names there
        tables = read_file_tables(log.fresh, BadRows(log.fresh.name))
        fresh = [json.loads(text) for table in tables for text in table.column("context").to_pylist()]
    mine = float(log.means[np.arange(n), learned[0].predict(fresh)].mean())
    theirs = float((log.means * _pmfs(log.fresh, model)).sum(axis=1).mean())
    return row._replace(rewards=(mine, theirs))
