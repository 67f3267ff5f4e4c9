"""Vowpal Wabbit on the bench's data, for real: its Python loop, its own driver on a file, one prediction.

VW learns as in the bake-off: costs 1 - reward in [0, 1], products of context and action, no features of the context
alone (they say nothing about which action is better), no forced exploration.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

GREEDY = "--cb_explore_adf --epsilon 0 --interactions sa --ignore_linear s"
AS_IT_COMES = "--cb_explore_adf --interactions sa"  # its default exploration is ε = 0.05
PLAYED = "--cb_explore_adf --epsilon 0"  # beside `--cbify`, which makes the features of the actions itself


def context_text(row: NDArray[Any]) -> str:
    return "shared |s " + " ".join(f"{i}:{x:.6g}" for i, x in enumerate(row.tolist()))


def context_texts(contexts: NDArray[Any]) -> list[str]:
    return [context_text(row) for row in contexts]


class Loop:
    """A VW that is called every round from Python. A context is a row of numbers, or its text made beforehand."""

    def __init__(self, n_actions: int, options: str = GREEDY) -> None:
        from vowpalwabbit import LabelType, Workspace

        self._vw, self._label = Workspace(f"{options} --quiet"), LabelType.CONTEXTUAL_BANDIT
        self._actions = [f"|a a{k}" for k in range(n_actions)]

    def decide(self, context: Any) -> Any:
        """Parse and predict: the probability of each action."""
        example = self._vw.parse(self._lines(context), self._label)
        pmf = self._vw.predict(example)
        self._vw.finish_example(example)
        return pmf

    def play(self, contexts: Any, rewards: list[list[float]], seed: int = 0) -> float:
        """Predict, draw, learn, every round; the mean reward."""
        uniforms = np.random.default_rng(seed).random(len(contexts)).tolist()
        total = 0.0
        for context, row, uniform in zip(contexts, rewards, uniforms, strict=True):
            total += one_round(self._vw, self._label, self._lines(context), 1, row, uniform)
        return total / len(contexts)

    def _lines(self, context: Any) -> list[str]:
        return [context if isinstance(context, str) else context_text(context), *self._actions]

    def finish(self) -> None:
        self._vw.finish()


def python_loop(contexts: Any, rewards: list[list[float]], seed: int = 0, options: str = GREEDY) -> float:
    """A new VW plays all rounds; the mean reward."""
    vw = Loop(len(rewards[0]), options)
    mean = vw.play(contexts, rewards, seed)
    vw.finish()
    return mean


def one_round(vw: Any, label: Any, lines: list[str], first: int, rewards: Sequence[float], uniform: float) -> float:
    """Predict, draw, learn; the reward. The actions' lines begin at `first`, and the one taken gets the label."""
    example = vw.parse(lines, label)
    pmf = vw.predict(example)
    vw.finish_example(example)
    below, action = 0.0, -1
    while below <= uniform and action + 1 < len(pmf):
        action += 1
        below += pmf[action]
    lines[first + action] = f"0:{1 - rewards[action]}:{pmf[action]} {lines[first + action]}"
    example = vw.parse(lines, label)
    vw.learn(example)
    vw.finish_example(example)
    return rewards[action]


def log_file(texts: list[str], rewards: NDArray[Any], folder: str) -> Path:
    """A uniform logger's rounds in VW's text format."""
    n_actions = rewards.shape[1]
    actions = np.random.default_rng(0).integers(n_actions, size=len(texts))
    path = Path(folder) / "log.vw"
    with path.open("w") as file:
        for t, text in enumerate(texts):
            lines = [f"|a a{k}" for k in range(n_actions)]
            lines[actions[t]] = f"0:{1 - rewards[t, actions[t]]}:{1 / n_actions} {lines[actions[t]]}"
            file.write("\n".join([text, *lines]) + "\n\n")
    return path


def class_file(contexts: NDArray[Any], labels: NDArray[Any], path: Path) -> None:
    """A classification set in VW's text format.

    Features have names: `--cbify` multiplies the numbers of features that have none, and those then collide.
    """
    with path.open("w") as file:
        for row, label in zip(contexts.tolist(), labels.tolist(), strict=True):
            file.write(f"{label + 1} |x {' '.join(f'f{i}:{x:.6g}' for i, x in enumerate(row) if x)}\n")


def driver(path: Path, rounds: int, options: str = GREEDY) -> float:
    """VW's own C++ loop over the file; the mean reward by VW's own account (of a log, an estimate from its weights)."""
    from vowpalwabbit import Workspace

    vw = Workspace(f"{options} -d {path} --quiet")
    vw.run_parser()
    loss = float(vw.get_sum_loss())
    vw.finish()
    return 1 - loss / rounds
