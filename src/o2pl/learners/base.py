"""What `O2PL` and `GaussianO2PL` share: the door where rewards become losses, logs in and out, and files."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.interactions import Decision, Interactions
from o2pl.learners.gate import improvement_bound
from o2pl.learners.online import OFFLINE
from o2pl.learners.params import Parameters
from o2pl.protocols import Array, Floats, Ints
from o2pl.rows import SparseRows
from o2pl.storage import UnreadableFile, decode, encode, read, write
from o2pl.validation import RewardRange, check_batch, check_contexts, check_reward_range, to_loss, to_reward


@dataclass(frozen=True)
class Run:
    """What a simulation did, one entry per round."""

    actions: Array
    rewards: Floats
    propensities: Floats

    @property
    def mean_reward(self) -> float:
        return float(self.rewards.mean())


class BanditEstimator(Parameters, ABC):
    """Parameters are stored as they are given; everything learned lives in an engine that the first use makes."""

    _classes: ClassVar[dict[str, type[BanditEstimator]]] = {}
    _engine: Any = None
    _range: tuple[float, float]
    _bounds: tuple[float, float, float, float, float]  # of rewards, actions and propensities
    reward_range: tuple[float, float]
    random_state: Any

    def __init_subclass__(cls) -> None:
        BanditEstimator._classes[cls.__name__] = cls

    # -- what the two kinds of action differ in

    @abstractmethod
    def _make_engine(self, width: int, n_actions: int | None) -> Any:
        """An engine for contexts of this width."""

    @abstractmethod
    def _check_columns(self, contexts: Any, actions: Any) -> tuple[Any, Array]:
        """Contexts and actions of a batch, checked."""

    def _check_rows(self, contexts: Any, width: int | None) -> Any:
        """Contexts of a run, checked."""
        return check_contexts(contexts, width)

    @abstractmethod
    def _action_bounds(self) -> tuple[float, float]:
        """lowest ≤ action < limit, of an engine that has been made."""

    @abstractmethod
    def _losses(self, contexts: Floats, rewards: Any) -> Any:
        """The losses of a simulation as the engine asks for them: losses(rows, actions)."""

    @property
    def _density(self) -> bool:
        return False

    # -- one at a time

    def act(self, context: Any) -> Decision:
        """Draw an action for a context, with the probability (density) with which it was drawn."""
        decision: Decision = (self._engine or self._begin(context)).decide(context)
        return decision

    def update(self, context: Any, action: Any, reward: float, propensity: float) -> Self:
        """Learn from one interaction; the propensity is that of the `Decision`, however long ago it was made."""
        engine = self._engine
        if engine is None:
            self._checked([context], [action], [reward], [propensity])
            engine = self._begin(context)
        low, high, first, limit, top = self._bounds
        if not (low <= reward <= high and first <= action < limit and 0 < propensity <= top):
            self._checked([context], [action], [reward], [propensity])  # says what is wrong
        engine.append(context, action, (low - reward) / (high - low), propensity)
        return self

    def _begin(self, context: Any) -> Any:
        rows, _ = self._check_columns([context], None)
        self._adopt(self._make_engine(self._width(rows), None))
        return self._engine

    def _adopt(self, engine: Any) -> None:
        self._range = check_reward_range(self.reward_range)
        self._bounds = (*self._range, *self._action_bounds(), sys.float_info.max if self._density else 1.0)
        self._engine = engine

    @staticmethod
    def _width(contexts: Any) -> int:
        if isinstance(contexts, SparseRows):
            return contexts.width
        return int(getattr(contexts, "values", contexts).shape[1])

    # -- many at a time

    def _checked(self, contexts: Any, actions: Any, rewards: Any, propensities: Any) -> Interactions:
        rows, checked = self._check_columns(contexts, actions)
        return check_batch(rows, checked, rewards, propensities, check_reward_range(self.reward_range), self._density)

    def partial_fit(self, contexts: Any, actions: Any, rewards: Any, propensities: Any) -> Self:
        """Add a batch to the log, from whatever logger, and learn from the whole log."""
        batch = self._checked(contexts, actions, rewards, propensities)
        if not len(batch):
            return self
        engine = self._engine or self._make_engine(self._width(batch.contexts), self._most(batch.actions))
        engine.extend(batch)
        if len(engine.log) == len(batch):
            engine.imitate()
        engine.learn()
        self._adopt(engine)
        return self

    def fit(self, contexts: Any, actions: Any, rewards: Any, propensities: Any) -> Self:
        """Offline: forget what was learned, and solve to convergence on this log."""
        before, self._engine = self._engine, None
        try:
            batch = self._checked(contexts, actions, rewards, propensities)
            if not len(batch):
                raise InvalidInput("fit: found no rows, expected at least one")
            engine = self._make_engine(self._width(batch.contexts), self._most(batch.actions))
            # Members of a union are weighed on rows they have not learned from: the second half, then learned from too.
            half = len(batch) // 2 if len(getattr(engine, "members", ())) > 1 else 0
            for rows in (batch[:half], batch[half:]):
                if len(rows):
                    engine.extend(rows)
                    if len(engine.log) == len(rows):
                        engine.imitate()
                    engine.learn(OFFLINE)
        except ValueError:
            self._engine = before
            raise
        self._adopt(engine)
        return self

    def _most(self, actions: Array) -> int | None:
        return None

    def run(self, world: Any, rounds: int | None = None, *, seed: Any = None) -> Run:
        """A whole simulation, with exactly the decisions that `act` and `update` called every round would have made.

        `world` is an environment (`sample(rounds, generator)`, with `seed` for its generator) or a pair of arrays:
        contexts [T, d] and the rewards of all actions [T, K] (for continuous actions a function of rows and actions).
        """
        if hasattr(world, "sample"):
            if rounds is None:
                raise InvalidInput("rounds: found None, expected a number of rounds to sample from the environment")
            stretch = world.sample(rounds, np.random.default_rng(seed))
            contexts, rewards = stretch.contexts, stretch.rewards
        else:
            contexts, rewards = world
        contexts = self._check_rows(contexts, self._engine.log.width if self._engine else None)[:rounds]
        losses = self._losses(contexts, rewards)
        if self._engine is None:
            self._adopt(self._make_engine(self._width(contexts), getattr(losses, "n_actions", None)))
        done: Interactions = self._engine.run(contexts, losses)
        return Run(done.actions, to_reward(done.losses, self._range), done.propensities)

    # -- what has been learned

    @property
    def log_(self) -> Interactions:
        """The interactions so far."""
        columns: Interactions = self._begun().log.columns
        return columns

    @property
    def effort_(self) -> tuple[int, int]:
        """Solves so far, and evaluations of the objective in them; none where replay or a finite class learns."""
        solves, evaluations = getattr(self._begun(), "effort", (0, 0))
        return solves, evaluations

    @property
    def n_features_in_(self) -> int:
        return int(self._begun().log.width)

    def _begun(self) -> Any:
        if self._engine is None:
            raise AttributeError(f"this {type(self).__name__} has seen no data: call act, update, partial_fit or fit")
        return self._engine

    def score(self, contexts: Any, actions: Any, rewards: Any, propensities: Any) -> float:
        """Estimated mean reward of the acting policy on a log: Σ w r / Σ w with w = π(a|x)/q (self-normalised)."""
        self._begun()
        batch = self._checked(contexts, actions, rewards, propensities)
        weights = self._likelihoods(batch.contexts, batch.actions) / batch.propensities
        return float(np.average(to_reward(batch.losses, self._range), weights=weights))

    def safe_to_deploy(self, baseline: Any = "logged", delta: float = 0.05, *, fresh: Any = None) -> bool:
        """Whether, with probability ≥ 1 - δ, the policy is better than `baseline`: "logged", "uniform" or a learner.

        `fresh`: contexts, actions, rewards and propensities that have not been learned from; the answer is then for the
        acting policy. Without, the learner is its own judge: one like it learns from the first half of the log, and the
        answer is for that one, from the second half. Loggers may have learned; and of a policy that stays as it is, one
        may ask again with every `fresh` row that comes.
        """
        if fresh is not None:
            self._begun()
            return improvement_bound(self, self._checked(*fresh), baseline, delta) > 0
        log = self.log_
        half = len(log) // 2
        if half == 0:
            raise InvalidInput(f"log: found {len(log)} rows, expected at least two, or `fresh` ones")
        first = log[:half]
        trial = type(self)(**self.get_params())
        rewards = np.clip(to_reward(first.losses, self._range), *self._range)  # rounding may carry an end outside
        trial.fit(first.contexts, first.actions, rewards, first.propensities)
        return improvement_bound(trial, log[half:], baseline, delta) > 0

    @abstractmethod
    def _likelihoods(self, contexts: Any, actions: Array) -> Floats:
        """π(a|x) of the acting policy, [n]."""

    # -- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Everything, to one file that `o2pl.load` reads: the loaded learner goes on exactly as this one would."""
        params = self.get_params()
        if isinstance(params["random_state"], np.random.Generator):
            params["random_state"] = None  # its position is in the stream's state
        header: dict[str, Any] = {"class": type(self).__name__, "params": {n: encode(v) for n, v in params.items()}}
        arrays: dict[str, Array] = {}
        if self._engine is not None:
            state, arrays = self._engine.state()
            header |= {"engine": state, "width": self._engine.log.width, "n_actions": getattr(self, "n_actions_", None)}
        write(path, header, arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """A learner as it was saved."""
    header, arrays = read(path)
    known = BanditEstimator._classes
    if header.get("class") not in known:
        raise UnreadableFile(f"{path}: found a {header.get('class')!r}, expected one of {sorted(known)}")
    try:
        learner = known[header["class"]](**{n: decode(v) for n, v in header["params"].items()})
        if "engine" in header:
            engine = learner._make_engine(header["width"], header["n_actions"])
            engine.restore(header["engine"], arrays)
            learner._adopt(engine)
    except (KeyError, TypeError) as error:
        raise UnreadableFile(f"{path}: damaged ({error!r})") from error
    return learner


class LossTable:
    """The losses of all actions, made of the rewards where they are asked for."""

    def __init__(self, rewards: Floats, reward_range: RewardRange) -> None:
        self._rewards, self._range = rewards, reward_range  # [T, K]
        self.n_actions = rewards.shape[1]

    def __call__(self, rows: Ints, actions: Ints) -> Floats:
        return np.asarray(to_loss(self._rewards[rows, actions], self._range))

    def __getitem__(self, rows: slice) -> Floats:
        """Of all actions in these rounds, [m, K]."""
        return np.asarray(to_loss(self._rewards[rows], self._range))
