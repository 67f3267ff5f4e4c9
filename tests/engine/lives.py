"""What learners live through in tests of the compiled core: worlds, and the ways to play them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import o2pl
from o2pl import Bandit, Change, CountBonus, Geometric, Member
from o2pl.engine.member import LINEAR, QUADRATIC
from o2pl.features import Chain, Hashed, Settled, Standardise
from o2pl.objectives.outcome import Outcome
from o2pl.oracles.lbfgs import LBFGS

ROUNDS = 260
HASHED = Hashed(bits=10)  # words collide
OTHERS = (
    Member(LINEAR, objective=Outcome(False, 2.0), prior=0.5, oracle=LBFGS(iterations=3, tolerance=1e-3, memory=2)),
    Member(Chain((Standardise(clip=1.0),)), objective=Outcome(True, 0.5), joins=20, schedule=Geometric(half_life=60)),
    Member(Settled(QUADRATIC), objective=Outcome(True), joins=40, schedule=Geometric(window=90)),
)
SETTINGS: dict[str, list[Any]] = {
    "shape": [(2, 1), (3, 4), (4, 30), (13, 3)],  # K and d; with 30 inputs, products of directions
    "policy": ["union", "linear", "quadratic", OTHERS],
    "schedule": ["geometric", "exact", "near-exact", Geometric(half_life=50), Geometric(window=80)],
    "changes": ["auto", None, Change(memory=40, threshold=3.0)],
    "rewards": [(0.0, 1.0), (-1.0, 3.0), (2.0, 3.0)],
    "range": ["given", None],  # None: that of the rewards so far
    "exploration": ["auto", 0.1, CountBonus(0.3)],
    "how": ["loop", "late", "run", "batches", "file", "unpacked"],
}


def world(K: int, d: int, low: float, high: float) -> tuple[Any, Any]:
    """Rows with a word and a large number, whose rewards are reversed at half time."""
    rng = np.random.default_rng(K + d)
    X = rng.normal(size=(ROUNDS, d)) * 10.0 ** rng.integers(-2, 3, d)
    X[:, 0] = X[:, 0] > 0
    best = (X[:, 0] > 0).astype(int) + (np.arange(ROUNDS) > ROUNDS // 2)
    rewards = rng.random((ROUNDS, K)) ** 2
    rewards[np.arange(ROUNDS), best % K] = 0.9
    return X, low + (high - low) * rewards


def dictionaries(K: int, d: int, low: float, high: float, numbers: bool) -> tuple[Any, Any]:
    """The same world in words, of which new ones come late; with numbers and lists, too."""
    X, rewards = world(K, d, low, high)
    rng, made = np.random.default_rng(d), []
    for t, row in enumerate(X):
        words = {f"f{j}": f"w{rng.integers(4 + t // 10)}" for j in range(d)}
        inner: dict[str, Any] = {"c": bool(row[0]), **({"x": float(row[-1]), "n": [t % 3, 2]} if numbers else {})}
        made.append({"a": words, "b": inner, "late" if t > 150 else "early": "yes"})
    return made, rewards


def played(learner: Any, how: str, contexts: Any, rewards: Any, folder: Path) -> list[Any]:
    """What it decides, with a look at its policy in between."""
    said: list[Any] = []
    if how == "run":
        for some in (slice(0, 100), slice(100, None)):
            found = learner.run((contexts[some], rewards[some]))
            said.append((found.actions.tolist(), found.propensities.tolist()))
        return said
    waiting = []
    for t, context in enumerate(contexts):
        if how == "file" and t == 130:
            learner.save(folder / "learner.o2pl")
            again = o2pl.load(folder / "learner.o2pl")
            learner = Listed(again) if isinstance(learner, Listed) else again
        decision = learner.act(context)
        said.append(tuple(decision))
        waiting.append((context, decision, rewards[t, decision.action]))
        if how == "batches" and len(waiting) == 7:
            rows, drawn, paid = zip(*waiting, strict=True)
            actions, propensities = zip(*drawn, strict=True)
            learner.partial_fit(given(rows), np.array(actions), np.array(paid), np.array(propensities))
            waiting = []
        elif how in ("loop", "file") or (how == "late" and len(waiting) > 5):
            learner.update(*waiting.pop(0)[1:])
        elif how == "unpacked":
            (_, (action, propensity), reward) = waiting.pop(0)
            learner.update(context, action, reward, propensity)
        if t in (90, 200):
            said.append(learner.predict_proba(contexts[:5]).tolist())
    said.append(learner.predict_proba(contexts[:5]).tolist())
    return [*said, [list(change) for change in learner.changes_], learner.effort_]


def given(rows: Any) -> Any:
    return np.array(rows) if isinstance(rows[0], np.ndarray) else list(rows)


class Listed:
    """A learner whose contexts are pairs of a user and items; without a user, lists of items."""

    def __init__(self, learner: Bandit) -> None:
        self.learner = learner

    def act(self, context: Any) -> Any:
        user, items = context
        return self.learner.act(items) if user is None else self.learner.act(user, items)

    def update(self, context: Any, *told: Any) -> None:
        if isinstance(context, tuple) and type(context) is tuple:
            context = context if context[0] is not None else context[1]
        self.learner.update(context, *told)

    def predict_proba(self, contexts: Any) -> Any:
        return self.learner.predict_proba([items if user is None else (user, items) for user, items in contexts])

    def partial_fit(self, contexts: Any, *columns: Any) -> None:
        self.learner.partial_fit([items if user is None else (user, items) for user, items in contexts], *columns)

    def run(self, world: Any) -> Any:
        contexts, rewards = world
        return self.learner.run(([items if user is None else (user, items) for user, items in contexts], rewards))

    def save(self, path: Path) -> None:
        self.learner.save(path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.learner, name)
