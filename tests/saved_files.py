"""Learners that are kept as files, one of each kind: every later version of o2pl must read them.

`python tests/saved_files.py NAME ...` writes these of the present version, without names all; older versions stay.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import o2pl
from o2pl.policies import ThresholdClass
from o2pl.storage import VERSION

FOLDER = Path(__file__).parent / "files" / "saved"
ROUNDS = 60


def row(generator: Any) -> Any:
    return generator.normal(size=2)


def number(generator: Any) -> Any:
    return generator.normal(size=1)


def items(generator: Any) -> Any:
    return generator.normal(size=(int(generator.integers(2, 5)), 2))


def items_by_id(generator: Any) -> Any:
    names = generator.choice(9, 4, replace=False)
    return o2pl.Offer(generator.normal(size=2), generator.normal(size=(4, 2)), ids=names.tolist())


def words(generator: Any) -> Any:
    return {"user": f"u{generator.integers(4)}", "hour": float(generator.integers(24))}


def lists_of_words(generator: Any) -> Any:
    return [words(generator) for _ in range(int(generator.integers(2, 4)))]


# Kinds whose files are of versions in which `Bandit` mixed policies, with a sharpness; no later version writes them.
SHARPENED = {"bandit", "bandit-hashed", "bandit-actionwise"}
KINDS: dict[str, tuple[Any, Any]] = {
    "bandit-uncertain": (lambda: o2pl.Bandit(3, changes=o2pl.Change(memory=20), random_state=1), row),
    "bandit-uncertain-words": (lambda: o2pl.Bandit(3, exploration=0.1, random_state=1), words),
    "bandit-items": (lambda: o2pl.Bandit(random_state=1), items_by_id),
    "bandit": (lambda: o2pl.Bandit(3, changes=o2pl.Change(memory=20), random_state=1), row),
    "bandit-hashed": (lambda: o2pl.Bandit(3, policy="hashed", changes=o2pl.Change(memory=20), random_state=1), words),
    "bandit-actionwise": (lambda: o2pl.Bandit(policy="actionwise", random_state=1), items),
    "union": (lambda: o2pl.O2PL(3, random_state=1), row),
    "exploring": (lambda: o2pl.O2PL(3, policy="linear", exploration=0.1, random_state=1), row),
    "replay": (lambda: o2pl.O2PL.paper_replay(3, random_state=1), row),
    "actionwise": (lambda: o2pl.O2PL(policy="actionwise", random_state=1), items),
    "hashed": (lambda: o2pl.O2PL(3, policy="hashed", random_state=1), words),
    "hashed-actionwise": (lambda: o2pl.O2PL(policy="hashed actionwise", random_state=1), lists_of_words),
    "thresholds": (lambda: o2pl.O2PL.paper(policy=ThresholdClass((-1.0, 0.0, 1.0), 0.1), random_state=1), number),
    "continuous": (lambda: o2pl.ContinuousBandit((-3, 3), exploration=0.05, random_state=1), row),
    "gaussian-bounds": (lambda: o2pl.GaussianO2PL(bounds=(-3, 3), heteroscedastic=True, random_state=1), row),
    "gaussian": (lambda: o2pl.GaussianO2PL(learn_scale=True, random_state=1), row),
}


def play(learner: Any, context: Any, generator: Any, rounds: int) -> list[tuple[float, float]]:
    """Rounds with rewards of chance; the decisions."""
    decisions = []
    for _ in range(rounds):
        given = context(generator)
        action, propensity = learner.act(given)
        learner.update(given, action, float(generator.random() < 0.5), propensity)
        decisions.append((float(action), float(propensity)))
    return decisions


def main(names: list[str]) -> None:
    """Files of the present version, and what their learners decide next."""
    folder = FOLDER / f"v{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    decisions = folder / "decisions.json"
    following = json.loads(decisions.read_text()) if decisions.exists() else {}
    for name in names or KINDS.keys() - SHARPENED:
        make, context = KINDS[name]
        learner, generator = make(), np.random.default_rng(0)
        play(learner, context, generator, ROUNDS)
        learner.save(folder / f"{name}.o2pl")
        learner.snapshot().save(folder / f"{name}-decider.o2pl")
        following[name] = play(learner, context, generator, 20)
    decisions.write_text(json.dumps(following, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
