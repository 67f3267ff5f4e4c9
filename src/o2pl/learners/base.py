"""What `O2PL` and `GaussianO2PL` share: the door where everything is checked, logs in and out, and files."""

from __future__ import annotations

import os
import sys
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import IO, Any, ClassVar, Self, overload

import numpy as np

from o2pl.action_names import Names
from o2pl.contexts import ContextReader, Offer
from o2pl.contexts.offers import placed
from o2pl.contexts.readers import share_words
from o2pl.decisions import Decision, ListDecision, listed_ids, number_of
from o2pl.errors import InvalidInput
from o2pl.interactions import Interactions, log_in, log_or_columns, new_rows
from o2pl.kernels.registry import n_inputs
from o2pl.learners.decider import Decider
from o2pl.learners.engine import Engine, Rewards
from o2pl.learners.gate import DeployVerdict, judge
from o2pl.learners.learned import Learned
from o2pl.learners.offline import learn_offline
from o2pl.learners.pending import PENDING, is_read
from o2pl.learners.refreshing import refresh
from o2pl.protocols import Array, Floats
from o2pl.storage import UnreadableFile, decode, read
from o2pl.validation import LEAST_PROPENSITY, check_least_propensity, check_reward_range

_LISTS = (list, tuple)  # `list | tuple` would be made anew in every call
_BEGINNING = threading.Lock()  # two threads that use a new learner at once must make one engine


@dataclass(frozen=True)
class Run:
    """What a simulation did, one entry per round."""

    actions: Array
    rewards: Floats
    propensities: Floats

    @property
    def mean_reward(self) -> float:
        return float(self.rewards.mean())


class BanditEstimator(Learned, ABC):
    """Parameters are stored as they are given; everything learned lives in an engine that the first use makes."""

    _classes: ClassVar[dict[str, type[BanditEstimator]]] = {}
    _bounds: tuple[float, float, float, float, float, float]  # of rewards, actions and propensities
    _places: dict[str, int] | None = None  # of the actions' names
    reward_range: tuple[float, float]
    random_state: Any

    def __init_subclass__(cls) -> None:
        BanditEstimator._classes[cls.__name__] = cls

    # -- what the two kinds of action differ in

    _earlier: ClassVar[dict[str, Any]] = {}  # parameters that older files do not name, and what they meant then
    _action_type: ClassVar[type] = int
    _density: ClassVar[bool] = False

    @abstractmethod
    def _make_engine(self, width: int, n_actions: int | None, names: Names = ()) -> Engine:
        """An engine for contexts of this width, and so many actions or those of these names, as data showed."""

    @abstractmethod
    def _new_reader(self, width: int | None) -> ContextReader:
        """What reads contexts."""

    @abstractmethod
    def _check_actions(self, rows: Any, actions: Any) -> Array:
        """Actions of a batch, one for each of these rows, checked."""

    def _known_actions(self) -> int | None:
        """How many there are, where that is known and the same for all contexts."""
        return None

    @abstractmethod
    def _action_bounds(self) -> tuple[float, float]:
        """lowest ≤ action < limit, of an engine that has been made."""

    @abstractmethod
    def _rewards(self, rounds: int, rewards: Any) -> tuple[Rewards, int | None]:
        """The rewards of a simulation as the engine asks for them, and the number of actions, if they tell."""

    # -- one at a time

    def act(
        self, context: Any, items: Any = None, *, ids: Any = None, exclude: Any = None, slots: int | None = None
    ) -> Decision:
        """Draw an action for a context, with the probability (density) with which it was drawn.

        `act(user, items)` chooses among items: a row of numbers or a dictionary, and a matrix of one row per item or a
        list of dictionaries. The products of both are learned. `ids`: what the items are called, or the name of their
        field that says it; the action is then an id. `exclude`: items (ids, or places), or actions, that may not be
        played this time. `slots`: so many different items, in order; the propensity is that of the whole list.
        """
        if items is None and ids is None and exclude is None and slots is None and type(context) is not Offer:
            return (self._engine or self._begin(context)).decide(context)
        return self._act_among(context, items, ids, exclude, slots)

    def _act_among(self, context: Any, items: Any, ids: Any, exclude: Any, slots: int | None) -> Decision:
        raise InvalidInput(f"act: found items, `exclude` or `slots`, which {type(self).__name__} does not have")

    def _notice(self, contexts: Any) -> None:
        """Learners that choose their policy by the contexts they begin with look at them here."""

    def _see(self, rows: Any) -> None:
        """And here at what a reader made of them."""

    @overload
    def update(self, decision: Decision | str, reward: float, /) -> Self: ...
    @overload
    def update(self, decision: Decision | str, /, *, reward: float) -> Self: ...
    @overload
    def update(self, context: Any, action: Any, reward: float, propensity: float) -> Self: ...
    @overload
    def update(self, user: Any, items: Any, action: Any, reward: float, propensity: float, /) -> Self: ...
    def update(
        self, context: Any, action: Any = None, reward: Any = None, propensity: Any = None, last: Any = None
    ) -> Self:
        """Learn from one decision and its reward, however long ago it was made, in any order.

        `update(decision, reward)`, with what `act` returned or its `id`; of the last decisions without a reward, at
        least 10,000, the learner keeps the contexts. A decision is told once: a second reward is refused. Or
        `update(context, action, reward, propensity)`, the propensity being that of the decision; of a user and items,
        `update(user, items, action, reward, propensity)`. A list takes a reward for each slot, or one for the whole.
        """
        if last is not None:
            context, action, reward, propensity = (context, action), reward, propensity, last
        several = isinstance(action, _LISTS) or (isinstance(action, np.ndarray) and action.ndim > 0)
        if several or isinstance(context, ListDecision) or listed_ids(context):
            return self._update_list(context, action, reward, propensity)
        number = None
        if propensity is None:
            context, action, reward, propensity, number = self._decided(context, action, reward)
        engine = self._engine
        if engine is None:
            self._checked(_alone(context), [action], [reward], [propensity])
            engine = self._begin(context)
        if type(context) is Offer:
            context, action = engine.reader.entry(context), context.place(action)
        low, high, first, limit, lowest, top = self._bounds
        try:
            place: Any = action if self._places is None else self._places.get(action)
            fine = low <= reward <= high and first <= place < limit and lowest <= propensity <= top
        except (TypeError, ValueError):
            fine, place = False, None
        if not fine or type(place) is not self._action_type:  # or says what is wrong
            place = self._checked(_alone(context), [action], [reward], [propensity]).actions[0]
        engine.append(context, place, reward, propensity, number)
        return self

    def _decided(self, given: Any, action: Any, reward: Any) -> tuple[Any, Any, Any, Any, int]:
        """Context, action, reward, propensity and number of a decision, given as `update` is."""
        if not isinstance(given, Decision | str) or (action is None) == (reward is None):
            raise InvalidInput(
                f"update: found {type(given).__name__} and {'no' if action is None and reward is None else 'a'} reward"
                " without a propensity, expected update(decision, reward)"
                " or update(context, action, reward, propensity)"
            )
        reward = action if reward is None else reward
        if isinstance(given, Decision) and given.context is not None:  # of any learner, in any process
            return given.context, given.played, reward, given.propensity, number_of(given.id)
        name = given.id if isinstance(given, Decision) else given
        number = number_of(name)
        kept = None if self._engine is None else self._engine.pending.get(number)
        if kept is None:
            if self._engine is not None:
                self._engine.check_new(number)
            raise InvalidInput(
                f"update: found no decision {name!r} that waits for its reward, expected what `act` returned or its id;"
                f" the contexts of {PENDING:,} decisions are kept, of older ones say"
                " update(context, action, reward, propensity)"
            )
        return kept.context, kept.action, reward, kept.propensity, number

    def _update_list(self, given: Any, actions: Any, rewards: Any, propensities: Any) -> Self:
        """Slot by slot, all or none."""
        told = self._listed(given, actions, rewards, propensities)
        for context, action, reward, propensity, number in told:  # each as `_decided` has it
            self._checked(_alone(context), [action], [reward], [propensity])
            if number is not None and self._engine is not None:
                self._engine.check_new(number)
        for context, action, reward, propensity, number in told:
            (self._engine or self._begin(context)).append(context, action, reward, propensity, number)
        return self

    def _listed(self, given: Any, actions: Any, rewards: Any, propensities: Any) -> list[tuple[Any, ...]]:
        raise InvalidInput(f"update: found a list of actions, which {type(self).__name__} does not have")

    def _begin(self, context: Any) -> Engine:
        with _BEGINNING:
            if self._engine is None:
                contexts = _alone(context)
                self._notice(contexts)
                reader = self._reader
                self._adopt(self._first_engine(reader, reader.rows(contexts), None))
            return self._begun()

    def _first_engine(self, reader: ContextReader, rows: Any, n_actions: int | None, names: Names = ()) -> Engine:
        """An engine for rows that this reader read, and for what it has seen of their columns."""
        self._see(rows)
        engine = self._make_engine(n_inputs(rows), n_actions, names)
        engine.reader.schema = reader.schema
        share_words(engine.reader, reader)
        return engine

    def _adopt(self, engine: Engine) -> None:
        ends = check_reward_range(self.reward_range)
        propensities = (sys.float_info.min, sys.float_info.max) if self._density else (LEAST_PROPENSITY, 1.0)
        self._bounds = (*ends, *self._action_bounds(), *propensities)
        names = engine.log.action_names
        self._places = {name: place for place, name in enumerate(names)} if names else None
        self._engine = engine

    @property
    def _reader(self) -> ContextReader:
        return self._new_reader(None) if self._engine is None else self._engine.reader

    def _reader_for(self, *log: Any) -> ContextReader:
        """Of a log, or four columns, that may be the first."""
        if self._engine is None:
            self._notice(next(iter(log_or_columns(*log))))
        return self._reader

    # -- many at a time

    def _checked(
        self,
        contexts: Any,
        actions: Any = None,
        rewards: Any = None,
        propensities: Any = None,
        reader: ContextReader | None = None,
    ) -> Interactions:
        """One log, or four columns, as a log of this learner's range."""
        given = log_or_columns(contexts, actions, rewards, propensities)
        n_actions: int | None = None
        names: Names = ()
        ids = None
        if isinstance(given, Interactions):
            n_actions, names, ids = given.n_actions, given.action_names, given.ids
            if given.continuous != self._density:
                kinds = ("integers", "real numbers (continuous=True)")
                raise InvalidInput(
                    f"log: found actions that are {kinds[not self._density]}, expected {kinds[self._density]}"
                    f" for {type(self).__name__}"
                )
        contexts, actions, rewards, propensities = given
        rows = (reader or self._reader_for(*given)).rows(contexts)
        actions, names = self._numbered_actions(placed(contexts, actions), names, n_actions)
        checked = self._check_actions(rows, actions)
        ends = check_reward_range(self.reward_range)
        if not self._density:
            check_least_propensity(propensities)
        known = self._known_actions() if n_actions is None else n_actions
        return Interactions(
            rows, checked, rewards, propensities, ends, known, self._density, action_names=names, ids=ids
        )  # fmt: skip

    def _numbered_actions(self, actions: Any, names: Names, n_actions: int | None) -> tuple[Any, Names]:
        """Actions as this learner numbers them, and their names, if they have any. names: those of a log."""
        return actions, ()

    def partial_fit(
        self, contexts: Any, actions: Any = None, rewards: Any = None, propensities: Any = None, *,
        at_most: int | None = None,
    ) -> Self:  # fmt: skip
        """Add a batch to the log, from whatever logger, and learn from the whole log.

        The batch is four columns, or one log: `Interactions` or a `Log`. `at_most`: go through so many rows only, the
        new ones and a sample of those before, so that a call costs the same on a log of any length; the whole log is
        learned from when the schedule says so. For learners that are told a little often, such as services.
        """
        reader = self._reader_for(contexts, actions, rewards, propensities)
        self._add(self._checked(contexts, actions, rewards, propensities, reader), reader, at_most)
        return self

    def _add(self, batch: Interactions, reader: ContextReader, at_most: int | None = None) -> None:
        """Rows that this reader read: log them, and learn."""
        if not len(batch):
            return
        engine = self._engine or self._first_engine(reader, batch.contexts, batch.n_actions, batch.action_names)
        engine.extend(batch)
        if len(engine.log) == len(batch):
            engine.imitate()
        if at_most is None:
            engine.learn()
        else:
            refresh(engine, at_most)
        self._adopt(engine)

    def merge(self, other: Any) -> Self:
        """Take over what another learner was told, and learn from it: rows by their ids, none twice.

        `other` is a copy of this learner that went on in another process, the file of one, or a log with ids. Rows are
        added in its order, after those that are here; decisions that wait there for a reward may be told here.
        """
        given = load(other) if isinstance(other, str | os.PathLike) else other
        theirs = given if isinstance(given, BanditEstimator) else None
        log = log_in(given) if theirs is None else theirs.log_
        if log is None or log.ids is None:
            found = f"a {type(given).__name__}" if log is None else "a log without ids"
            raise InvalidInput(f"merge: found {found}, expected a learner, its file, or a log with `ids`")
        reader = self._reader_for(log)
        if theirs is not None:
            schema = theirs._begun().reader.schema
            if self._engine is not None and schema != reader.schema:
                raise InvalidInput(
                    "merge: found a learner that began with other columns or words, expected a copy of this one:"
                    " save it, and load it in each process"
                )
            reader.schema = schema
        if self._engine is None:
            self._add(self._checked(new_rows(log), reader=reader), reader)
        else:
            with self._engine.lock:
                self._add(self._checked(new_rows(log, self.log_.ids)), reader)
        if theirs is not None:
            self._begun().wait_for(theirs._begun().pending)
        return self

    def fit(self, contexts: Any, actions: Any = None, rewards: Any = None, propensities: Any = None) -> Self:
        """Offline: forget what was learned, and solve to convergence on this log.

        The log is four columns, or one object: `Interactions` (such as `read_log` returns) or a `Log`.
        """
        before, noticed, self._engine = self._engine, self._noticed, None
        try:
            reader = self._reader_for(contexts, actions, rewards, propensities)
            batch = self._checked(contexts, actions, rewards, propensities, reader).with_ids()
            if not len(batch):
                raise InvalidInput("fit: found no rows, expected at least one")
            engine = self._first_engine(reader, batch.contexts, batch.n_actions, batch.action_names)
            learn_offline(engine, len(batch), lambda upto: engine.extend(batch[len(engine.log) : upto]))
        except ValueError:
            self._engine, self._noticed = before, noticed
            raise
        self._adopt(engine)
        return self

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
        elif isinstance(world, tuple | list) and len(world) == 2:
            contexts, rewards = world
        else:
            raise InvalidInput(
                f"world: found {type(world).__name__}, expected an environment with `sample`, or a pair:"
                " contexts and the rewards of all actions"
            )
        if self._engine is None:
            self._notice(contexts)
        reader = self._reader
        contexts = reader.rows(contexts)[:rounds]
        paid, n_actions = self._rewards(len(contexts), rewards)
        if self._engine is None:
            self._adopt(self._first_engine(reader, contexts, n_actions))
        done = self._begun().run(contexts, paid)
        return Run(done.named_actions, done.rewards, done.propensities)

    # -- what it is worth

    def score(self, contexts: Any, actions: Any = None, rewards: Any = None, propensities: Any = None) -> float:
        """Estimated mean reward of the acting policy on a log: Σ w r / Σ w with w = π(a|x)/q (self-normalised).

        The log is given as to `fit`.
        """
        self._begun()
        batch = self._checked(contexts, actions, rewards, propensities)
        if not len(batch):
            raise InvalidInput("score: found no rows, expected at least one")
        weights = self._likelihoods(batch.contexts, batch.actions) / batch.propensities
        return float(np.average(batch.rewards, weights=weights))

    def safe_to_deploy(self, baseline: Any = "logged", delta: float = 0.05, *, fresh: Any = None) -> DeployVerdict:
        """Whether, with probability ≥ 1 - δ, the policy is better than `baseline`. True or false, with the reason.

        `baseline` is what `evaluate` takes: "logged" (whoever made the log), "uniform", a learner, probabilities, the
        name of an action, or a rule: a function of contexts that gives the action of each.

        `fresh`: a log that has not been learned from; the answer is then for the acting policy. Without, the learner is
        its own judge: one like it learns from the first half of the log, and the answer is for that one, from the
        second half. Loggers may have learned; and of a policy that stays as it is, one may ask again with every `fresh`
        row.
        """
        if fresh is not None:
            self._begun()
            given = fresh.log_ if isinstance(fresh, BanditEstimator) else fresh
            return judge(self, self._checked(given), baseline, delta, next(iter(log_or_columns(given))))
        log = self.log_
        half = len(log) // 2
        if half == 0:
            raise InvalidInput(f"log: found {len(log)} rows, expected at least two, or `fresh` ones")
        trial = type(self)(**self.get_params()).fit(log[:half])
        return judge(trial, trial._checked(log[half:]), baseline, delta)


def _alone(context: Any) -> Any:
    """One context as the only one."""
    return context if is_read(context) else [context]


def load(path: str | os.PathLike[str] | IO[bytes], *, name: str = "") -> Any:
    """A learner as it was saved, or a `Decider`; from a path or an open file. name: of the file, in messages."""
    header, arrays = read(path, name)
    path = name or str(path)
    known = BanditEstimator._classes
    if header.get("class") not in (*known, "Decider"):
        raise UnreadableFile(f"{path}: found a {header.get('class')!r}, expected one of {sorted((*known, 'Decider'))}")
    try:
        if header["class"] == "Decider":
            return Decider.restore(header, arrays)
        kind = known[header["class"]]
        learner = kind(**{**kind._earlier, **{n: decode(v) for n, v in header["params"].items()}})
        if "engine" in header:
            learner._noticed = tuple(header.get("contexts", learner._noticed))
            engine = learner._make_engine(header["width"], header["n_actions"], decode(header.get("names")) or ())
            engine.reader.schema = decode(header.get("schema"))
            engine.restore(header["engine"], arrays)
            learner._adopt(engine)
    except (KeyError, TypeError) as error:
        raise UnreadableFile(f"{path}: damaged ({error!r})") from error
    return learner
