"""Vowpal Wabbit on the bench's data, for real: its Python loop, its own driver on a file, one prediction."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

EXPLORE = "--cb_explore_adf --epsilon 0.05 --interactions sa --quiet"


def context_text(row: NDArray[Any]) -> str:
    return "shared |s " + " ".join(f"{i}:{x:.6g}" for i, x in enumerate(row.tolist()))


def context_texts(contexts: NDArray[Any]) -> list[str]:
    return [context_text(row) for row in contexts]


def python_loop(contexts: Sequence[Any], rewards: list[list[float]], seed: int = 0) -> float:
    """Predict, draw, learn, every round; the mean reward. Contexts are rows of numbers, or texts made beforehand."""
    from vowpalwabbit import LabelType, Workspace

    vw = Workspace(EXPLORE)
    plain = [f"|a a{k}" for k in range(len(rewards[0]))]
    uniforms = np.random.default_rng(seed).random(len(contexts)).tolist()
    total = 0.0
    for context, row, uniform in zip(contexts, rewards, uniforms, strict=True):
        text = context if isinstance(context, str) else context_text(context)
        total += one_round(vw, LabelType.CONTEXTUAL_BANDIT, [text, *plain], 1, row, uniform)
    vw.finish()
    return total / len(contexts)


def one_round(vw: Any, label: Any, lines: list[str], first: int, rewards: Sequence[float], uniform: float) -> float:
    """Predict, draw, learn; the reward. The actions' lines begin at `first`, and the one taken gets the label."""
    example = vw.parse(lines, label)
    pmf = vw.predict(example)
    vw.finish_example(example)
    below, action = 0.0, -1
    while below <= uniform and action + 1 < len(pmf):
        action += 1
        below += pmf[action]
    lines[first + action] = f"0:{-rewards[action]}:{pmf[action]} {lines[first + action]}"
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
            lines[actions[t]] = f"0:{-rewards[t, actions[t]]}:{1 / n_actions} {lines[actions[t]]}"
            file.write("\n".join([text, *lines]) + "\n\n")
    return path


def driver(path: Path) -> None:
    """VW's own C++ loop over the file, learning only."""
    from vowpalwabbit import Workspace

    vw = Workspace(f"{EXPLORE} -d {path}")
    vw.run_parser()
    vw.finish()


class Predictor:
    """One decision: parse and predict."""

    def __init__(self, text: str, n_actions: int) -> None:
        from vowpalwabbit import LabelType, Workspace

        self._vw, self._label = Workspace(EXPLORE), LabelType.CONTEXTUAL_BANDIT
        self._lines = [text, *(f"|a a{k}" for k in range(n_actions))]

    def __call__(self) -> None:
        example = self._vw.parse(self._lines, self._label)
        self._vw.predict(example)
        self._vw.finish_example(example)
