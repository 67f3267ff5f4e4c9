"""Base class of the learners: input checks, `fit`, simulation, evaluation, and files."""

from __future__ import annotations

import os
import sys
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import IO, Any, ClassVar, Self

import numpy as np

from o2pl.data.action_names import Names
from o2pl.data.interactions import Interactions, interactions_in, interactions_or_columns, new_interactions
from o2pl.data.kinds import ROW
from o2pl.data.offers import placed_in_offers
from o2pl.encode import Encoder
from o2pl.encode.encoder import encoder_makes_new_rows
from o2pl.engine.decider import Decider
from o2pl.engine.engine import Engine
from o2pl.engine.member import Member
from o2pl.engine.offline import imitate_offline, learn_offline
from o2pl.engine.refreshing import refresh
from o2pl.engine.simulation import Rewards, simulate
from o2pl.errors import InvalidInput
from o2pl.lazily import called_lazily
from o2pl.learners.forgetting import forget
from o2pl.learners.round_by_round import RoundByRound
from o2pl.protocols import Array, Floats
from o2pl.storage import UnreadableFile, decode_from_storage, read_storage
from o2pl.validation import (
    ANY_REWARD,
    LEAST_PROPENSITY,
    RewardRange,
    check_least_propensity,
    check_number,
    check_reward_range,
)

_BEGINNING = threading.Lock()  # threads that use a new learner concurrently must create one engine only


@dataclass(frozen=True)
class Run:
    """Result of a simulation, one entry per round."""

    actions: Array
    rewards: Floats
    propensities: Floats

    @property
    def mean_reward(self) -> float:
        return float(self.rewards.mean())


class BanditEstimator(RoundByRound, ABC):
    """Base class. Parameters are stored unchanged; everything learned is in an engine, created at the first use."""

    _classes: ClassVar[dict[str, type[BanditEstimator]]] = {}
    reward_range: Any
    random_state: Any

    def __init_subclass__(cls) -> None:
        BanditEstimator._classes[cls.__name__] = cls

    # -- what differs between discrete and continuous actions

    _earlier: ClassVar[dict[str, Any]] = {}  # values of parameters that are missing in older files
    _classes_of_policies: dict[str, tuple[Member, ...]] = {}  # noqa: RUF012  # members by the name of a policy; an older file sets its own
    _classes_before: ClassVar[dict[str, tuple[Member, ...]]] = {}  # those that had other members in older files
    _retired: ClassVar[tuple[str, ...]] = ()  # parameters of older files that no longer are
    _density: ClassVar[bool] = False

    @abstractmethod
    def _make_engine(self, encoder: Encoder, n_actions: int | None, names: Names = ()) -> Engine:
        """Create an engine for contexts from this encoder and this number (or these names) of actions."""

    @abstractmethod
    def _new_encoder(self, kind: str = ROW, **known: Any) -> Encoder:
        """Return an encoder of contexts of this kind. known: its `width`, `shared` and `schema`, from a file."""

    def _kind_of(self, contexts: object) -> str:
        """Return the kind of the first contexts, for learners that choose their policy by it."""
        return ROW

    @abstractmethod
    def _check_actions(self, encoder: Encoder, rows: Any, actions: Any) -> Array:
        """Return the checked actions of a batch, one per row."""

    def _known_actions(self, encoder: Encoder) -> int | None:
        """Return the number of actions if it is known and the same for all contexts."""
        return None

    @abstractmethod
    def _action_bounds(self, encoder: Encoder) -> tuple[float, float]:
        """Return (lowest, limit) with lowest ≤ action < limit. Needs an engine."""

    @abstractmethod
    def _rewards(self, encoder: Encoder, rounds: int, rewards: object) -> tuple[Rewards, int | None]:
        """Return the rewards of a simulation as a function, and the number of actions if they determine it."""

    def _ends(self) -> RewardRange | None:
        """Return the checked reward range; None: it follows the rewards."""
        return check_reward_range(self.reward_range)

    # -- the first use

    def _begin(self, contexts: object) -> Engine:
        with _BEGINNING:
            if self._engine is None:
                encoder = self._encoder_of(contexts)
                encoder.encode(contexts)
                self._adopt(self._make_engine(encoder, None))
            return self._begun()

    def _adopt(self, engine: Engine) -> None:
        ends = self._ends() or ANY_REWARD
        propensities = (sys.float_info.min, sys.float_info.max) if self._density else (LEAST_PROPENSITY, 1.0)
        self._bounds = (*ends, *self._action_bounds(engine.encoder), *propensities)
        names = engine.log.action_names
        self._places = {name: place for place, name in enumerate(names)} if names else None
        self._engine = engine

    def _encoder_of(self, contexts: object) -> Encoder:
        """Return the encoder of contexts, which may be the first ones."""
        return self._new_encoder(self._kind_of(contexts)) if self._engine is None else self._engine.encoder

    def _encoder_for(self, *log: object) -> Encoder:
        """Return the encoder of a log or four columns, which may be the first ones."""
        return self._encoder_of(next(iter(interactions_or_columns(*log))))

    # -- batches

    def _checked(
        self,
        contexts: Any,
        actions: Any = None,
        rewards: Any = None,
        propensities: Any = None,
        encoder: Encoder | None = None,
    ) -> Interactions:
        """Check a log or four columns against this learner, and return them as one log."""
        given = interactions_or_columns(contexts, actions, rewards, propensities)
        n_actions: int | None = None
        names: Names = ()
        ids = row_weights = None
        if isinstance(given, Interactions):
            n_actions, names, ids = given.n_actions, given.action_names, given.ids
            row_weights = given.row_weights
            if given.continuous != self._density:
                kinds = ("integers", "real numbers (continuous=True)")
                raise InvalidInput(
                    f"log: found actions that are {kinds[not self._density]}, expected {kinds[self._density]}"
                    f" for {type(self).__name__}"
                )
        contexts, actions, rewards, propensities = given
        encoder = encoder or self._encoder_of(contexts)
        rows = encoder.encode(contexts)
        actions, names = self._numbered_actions(encoder, placed_in_offers(contexts, actions), names, n_actions)
        checked = self._check_actions(encoder, rows, actions)
        ends = self._ends()
        if not self._density:
            check_least_propensity(propensities)
        known = self._known_actions(encoder) if n_actions is None else n_actions
        return Interactions(
            rows, checked, rewards, propensities, ends, known, self._density, action_names=names, ids=ids,
            row_weights=row_weights,
        )  # fmt: skip

    def _numbered_actions(
        self, encoder: Encoder, actions: object, names: Names, n_actions: int | None
    ) -> tuple[Any, Names]:
        """Convert actions to this learner's indices. Returns them and their names. names: action names of the log."""
        return actions, ()

    def partial_fit(
        self, contexts: object, actions: object = None, rewards: object = None, propensities: object = None, *,
        at_most: int | None = None,
    ) -> Self:  # fmt: skip
        """Add a batch to the log and learn from the whole log. The batch may come from any logging policy.

        Parameters
        ----------
        contexts, actions, rewards, propensities
            Four columns, or only `contexts`: a log (`Interactions` or `Log`).
        at_most
            Learn from at most this many rows: the new ones and a sample of the earlier ones. A call then costs the same
            for a log of any length; the schedule still sets when the whole log is learned from. Use it for small,
            frequent batches, as in a service.
        """
        encoder = self._encoder_for(contexts, actions, rewards, propensities)
        self._add(self._checked(contexts, actions, rewards, propensities, encoder), encoder, at_most)
        return self

    def _add(self, batch: Interactions, encoder: Encoder, at_most: int | None = None) -> None:
        """Append rows from this encoder to the log, and learn."""
        if not len(batch):
            return
        engine = self._engine or self._make_engine(encoder, batch.n_actions, batch.action_names)
        engine.extend(batch)
        if len(engine.log) == len(batch):
            imitate_offline(engine)
        if at_most is None:
            engine.learn()
        else:
            refresh(engine, at_most)
        self._adopt(engine)

    def forget(self, ids: object) -> int:
        """Erase decisions: their rows in the log, and all that was learned from them. Returns how many there were.

        The learner learns from the remaining rows again, which takes as long as `fit`. Names of hashed words are
        forgotten until they come again. `save` it, or the file still has what was erased; so do its copies.

        Parameters
        ----------
        ids
            Ids of decisions as in `log_.event_ids`, those of a log's own column, or decisions. Ids that are in neither
            the log nor among the decisions that wait are skipped; if all are, that is an error.
        """
        return forget(self, ids)

    def merge(self, other: Any) -> Self:
        """Add the rows of another learner and learn from them. Rows are matched by id; none is added twice.

        `other` is a copy of this learner that continued in another process, the file of one, or a log with ids. Its
        rows are appended in their order. Its decisions without a reward can then be updated here.
        """
        given = load(other) if isinstance(other, str | os.PathLike) else other
        theirs = given if isinstance(given, BanditEstimator) else None
        log = interactions_in(given) if theirs is None else theirs.log_
        if log is None or log.ids is None:
            found = f"a {type(given).__name__}" if log is None else "a log without ids"
            raise InvalidInput(f"merge: found {found}, expected a learner, its file, or a log with `ids`")
        encoder = self._encoder_for(log)
        if theirs is not None:
            schema = theirs._begun().encoder.schema
            if self._engine is not None and schema != encoder.schema:
                raise InvalidInput(
                    "merge: found a learner that began with other columns or strings, expected a copy of this one:"
                    " save this learner, and load it in each process"
                )
            encoder.schema = schema
        if self._engine is None:
            self._add(self._checked(new_interactions(log), encoder=encoder), encoder)
        else:
            with self._engine.lock:
                self._add(self._checked(new_interactions(log, self.log_.ids)), encoder)
        if theirs is not None:
            self._begun().wait_for(theirs._begun().pending)
        return self

    def fit(self, contexts: Any, actions: Any = None, rewards: Any = None, propensities: Any = None) -> Self:
        """Learn offline: reset the learner, and solve to convergence on this log.

        Pass four columns, or one log as `contexts`: `Interactions` (from `read_log`, for example) or a `Log`.
        """
        before, self._engine = self._engine, None
        try:
            encoder = self._encoder_for(contexts, actions, rewards, propensities)
            batch = self._checked(contexts, actions, rewards, propensities, encoder).with_ids()
            if not len(batch):
                raise InvalidInput("fit: found no rows, expected at least one")
            engine = self._make_engine(encoder, batch.n_actions, batch.action_names)
            given, *_ = interactions_or_columns(contexts, actions, rewards, propensities)
            engine.log.extend(batch, copy=not encoder_makes_new_rows(given))
            learn_offline(engine, engine.log)
        except ValueError:
            self._engine = before
            raise
        self._adopt(engine)
        return self

    def run(self, world: Any, rounds: int | None = None, *, seed: Any = None) -> Run:
        """Simulate many rounds, with exactly the decisions that calls of `act` and `update` in every round would give.

        Parameters
        ----------
        world
            An environment (with `sample(rounds, generator)`), or a pair of arrays: contexts [T, d] and the rewards of
            all actions [T, K]. For continuous actions, rewards are a function of rows and actions.
        rounds
            Number of rounds to sample from an environment.
        seed
            Seed of the environment.
        """
        if hasattr(world, "sample"):
            if rounds is None:
                raise InvalidInput("rounds: found None, expected a number of rounds to sample from the environment")
            stretch = world.sample(rounds, np.random.default_rng(seed))
            contexts, rewards = stretch.contexts, stretch.rewards
        elif isinstance(world, tuple | list) and len(world) == 2:
            contexts, rewards = world
        else:
            raise InvalidInput(
                f"world: found {type(world).__name__}, expected an environment with `sample`, or a pair:"
                " contexts and the rewards of all actions"
            )
        first = contexts[:1] if isinstance(contexts, list) else contexts  # as `act` meets them: one after the other
        encoder = self._encoder_of(first)
        encoder.encode(first)
        contexts = encoder.encode(contexts)[:rounds]
        paid, n_actions = self._rewards(encoder, len(contexts), rewards)
        if self._engine is None:
            self._adopt(self._make_engine(encoder, n_actions))
        done = simulate(self._begun(), contexts, paid)
        return Run(done.named_actions, done.rewards, done.propensities)

    # -- evaluation

    def score(
        self, contexts: object, actions: object = None, rewards: object = None, propensities: object = None
    ) -> float:
        """Estimate the mean reward of the acting policy on a log: Σ w r / Σ w with w = π(a|x)/q (SNIPS).

        The arguments are those of `fit`.
        """
        self._begun()
        batch = self._checked(contexts, actions, rewards, propensities)
        if not len(batch):
            raise InvalidInput("score: found no rows, expected at least one")
        weights = self._likelihoods(batch.contexts, batch.actions) / batch.propensities
        weights = weights if batch.row_weights is None else weights * batch.row_weights
        return float(np.average(batch.rewards, weights=weights))

    def safe_to_deploy(self, baseline: object = "logged", delta: float = 0.05, *, fresh: object = None) -> Any:
        """Test whether the policy is better than `baseline` with probability at least 1 - δ.

        Parameters
        ----------
        baseline
            As in `evaluate`: "logged" (the policy that made the log), "uniform", a learner, probabilities, the name of
            an action, or a function of contexts that returns their actions.
        delta
            Error probability δ.
        fresh
            A log that was not learned from: the verdict is then for the acting policy. None: a learner with the same
            settings learns from the first half of the log and is evaluated on the second half; the verdict is for that
            learner. The logging policy may have been learning. For a fixed policy, you may test again after every new
            row.

        Returns
        -------
        DeployVerdict
            True or false in conditions, with the reason.
        """
        return called_lazily("o2pl.evaluation.deploying", "safe_to_deploy")(self, baseline, delta, fresh)


def load(
    path: str | os.PathLike[str] | IO[bytes], *, name: str = "", worker: int | None = None, outside: bool = False
) -> Any:
    """Load a saved learner or `Decider`.

    Parameters
    ----------
    path
        A path or an open file.
    name
        File name for error messages.
    worker
        None: the learner continues exactly like the saved one, with the same random numbers. Copies that decide side by
        side need random numbers of their own: give each another number, 0, 1, 2, ...
    outside
        The file is from somebody else: it may name no functions, and unpacks to at most 512 MiB.
    """
    if worker is not None:
        worker = int(check_number("worker", worker, 0))
    header, arrays = read_storage(path, name, outside)
    path = name or str(path)
    known = BanditEstimator._classes
    if header.get("class") not in (*known, "Decider"):
        raise UnreadableFile(f"{path}: found a {header.get('class')!r}, expected one of {sorted((*known, 'Decider'))}")
    try:
        if header["class"] == "Decider":
            if worker is not None:
                raise InvalidInput(
                    "worker: found a number for a Decider, which has random numbers of its own; expected None"
                )
            return Decider.restore(header, arrays)
        kind = known[header["class"]]
        given = {
            name: decode_from_storage(value) for name, value in header["params"].items() if name not in kind._retired
        }
        learner = kind(**{**kind._earlier, **given})
        if "engine" in header:
            of, shared = header.get("contexts", (ROW, None))
            schema = decode_from_storage(header.get("schema"))
            encoder = learner._new_encoder(of, width=header["width"], shared=shared, schema=schema)
            if "removed" in header:
                learner._removed = tuple(header["removed"])
            named = header["n_actions"], decode_from_storage(header.get("names")) or ()
            engine = learner._make_engine(encoder, *named)
            if len(engine.members) != len(header["engine"]["checkpoints"]):  # it keeps the members it was saved with
                learner._classes_of_policies = {**learner._classes_of_policies, **learner._classes_before}
                engine = learner._make_engine(encoder, *named)
            engine.restore(header["engine"], arrays)
            if worker is not None:
                engine.draw_from(engine.stream.of_worker(worker))
            learner._adopt(engine)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise UnreadableFile(f"{path}: damaged ({error!r})") from error
    return learner
