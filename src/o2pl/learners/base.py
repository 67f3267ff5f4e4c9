"""Base class of the learners: input checks, `act`, `update`, `fit`, simulation, evaluation, and files."""

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

_LISTS = (list, tuple)  # `list | tuple` would be rebuilt in every call
_ARRAY = np.ndarray
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


class BanditEstimator(Learned, ABC):
    """Base class. Parameters are stored unchanged; everything learned is in an engine, created at the first use."""

    _classes: ClassVar[dict[str, type[BanditEstimator]]] = {}
    _bounds: tuple[
        float, float, float, float, float, float
    ]  # lower and upper bounds of rewards, actions and propensities
    _places: dict[str, int] | None = None  # index of each action name
    reward_range: tuple[float, float]
    random_state: Any

    def __init_subclass__(cls) -> None:
        BanditEstimator._classes[cls.__name__] = cls

    # -- what differs between discrete and continuous actions

    _earlier: ClassVar[dict[str, Any]] = {}  # values of parameters that are missing in older files
    _action_type: ClassVar[type] = int
    _density: ClassVar[bool] = False

    @abstractmethod
    def _make_engine(self, width: int, n_actions: int | None, names: Names = ()) -> Engine:
        """Create an engine for contexts of this width and this number (or these names) of actions."""

    @abstractmethod
    def _new_reader(self, width: int | None) -> ContextReader:
        """Return the reader of contexts."""

    @abstractmethod
    def _check_actions(self, rows: Any, actions: Any) -> Array:
        """Return the checked actions of a batch, one per row."""

    def _known_actions(self) -> int | None:
        """Return the number of actions if it is known and the same for all contexts."""
        return None

    @abstractmethod
    def _action_bounds(self) -> tuple[float, float]:
        """Return (lowest, limit) with lowest ≤ action < limit. Needs an engine."""

    @abstractmethod
    def _rewards(self, rounds: int, rewards: Any) -> tuple[Rewards, int | None]:
        """Return the rewards of a simulation as a function, and the number of actions if they determine it."""

    # -- one decision at a time

    def act(
        self, context: Any, items: Any = None, *, ids: Any = None, exclude: Any = None, slots: int | None = None
    ) -> Decision:
        """Draw an action for a context and return it with its propensity.

        Parameters
        ----------
        context
            One context. With `items`, the user: a numeric row or a dictionary.
        items
            Items to choose from: a matrix with one row per item, or a list of dictionaries. The products of user and
            item features are learned too.
        ids
            Ids of the items, or the name of the field that contains them. The action is then an id.
        exclude
            Items (ids or indices) or actions that must not be chosen this time.
        slots
            Number of different items to choose, in order. The propensity is that of the whole list.

        Returns
        -------
        Decision
            Unpacks to (action, propensity); the propensity is a density for continuous actions.
        """
        if items is None and ids is None and exclude is None and slots is None and type(context) is not Offer:
            return (self._engine or self._begin(context)).decide(context)
        return self._act_among(context, items, ids, exclude, slots)

    def _act_among(self, context: Any, items: Any, ids: Any, exclude: Any, slots: int | None) -> Decision:
        raise InvalidInput(f"act: found items, `exclude` or `slots`, which {type(self).__name__} does not have")

    def _notice(self, contexts: Any) -> None:
        """Hook: look at the first contexts, for learners that choose their policy by them."""

    def _see(self, rows: Any) -> None:
        """Hook: look at the first rows after reading."""

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
        """Learn from one decision and its reward. Rewards may arrive late and in any order.

        Call `update(decision, reward)` with the decision that `act` returned, or its `id`. The learner keeps the
        contexts of at least the last 10,000 decisions without a reward. A second reward for the same decision is an
        error. Or call `update(context, action, reward, propensity)` with the propensity of the decision; for a user and
        items, `update(user, items, action, reward, propensity)`. A list takes one reward per slot, or one for the whole
        list.
        """
        if last is not None:
            context, action, reward, propensity = (context, action), reward, propensity, last
        if type(context) is not _ARRAY or type(action) is not self._action_type:  # otherwise it is no list
            several = isinstance(action, _LISTS) or (isinstance(action, _ARRAY) and action.ndim > 0)
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
        if not fine or type(place) is not self._action_type:  # `check` raises with the reason
            place = self._checked(_alone(context), [action], [reward], [propensity]).actions[0]
        engine.append(context, place, reward, propensity, number)
        return self

    def _decided(self, given: Any, action: Any, reward: Any) -> tuple[Any, Any, Any, Any, int]:
        """Return context, action, reward, propensity and number of a decision from the arguments of `update`."""
        if not isinstance(given, Decision | str) or (action is None) == (reward is None):
            raise InvalidInput(
                f"update: found {type(given).__name__} and {'no' if action is None and reward is None else 'a'} reward"
                " without a propensity, expected update(decision, reward)"
                " or update(context, action, reward, propensity)"
            )
        reward = action if reward is None else reward
        if isinstance(given, Decision):
            context = given.context
            if context is not None:  # from any learner, in any process
                return context, given.played, reward, given.propensity, given.number
        name = given.id if isinstance(given, Decision) else given
        number = number_of(name)
        kept = None if self._engine is None else self._engine.pending.get(number)
        if kept is None:
            if self._engine is not None:
                self._engine.check_new(number)
            raise InvalidInput(
                f"update: found no decision {name!r} that waits for a reward, expected what `act` returned or its id;"
                f" the contexts of {PENDING:,} decisions are kept, for older ones call"
                " update(context, action, reward, propensity)"
            )
        return kept.context, kept.action, reward, kept.propensity, number

    def _update_list(self, given: Any, actions: Any, rewards: Any, propensities: Any) -> Self:
        """Update all slots of a list, or none if one is invalid."""
        told = self._listed(given, actions, rewards, propensities)
        for context, action, reward, propensity, number in told:  # each as returned by `_decided`
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
        """Create an engine for rows from this reader."""
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
        """Return the reader for a log or four columns, which may be the first ones."""
        if self._engine is None:
            self._notice(next(iter(log_or_columns(*log))))
        return self._reader

    # -- batches

    def _checked(
        self,
        contexts: Any,
        actions: Any = None,
        rewards: Any = None,
        propensities: Any = None,
        reader: ContextReader | None = None,
    ) -> Interactions:
        """Check a log or four columns against this learner, and return them as one log."""
        given = log_or_columns(contexts, actions, rewards, propensities)
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
        rows = (reader or self._reader_for(*given)).rows(contexts)
        actions, names = self._numbered_actions(placed(contexts, actions), names, n_actions)
        checked = self._check_actions(rows, actions)
        ends = check_reward_range(self.reward_range)
        if not self._density:
            check_least_propensity(propensities)
        known = self._known_actions() if n_actions is None else n_actions
        return Interactions(
            rows, checked, rewards, propensities, ends, known, self._density, action_names=names, ids=ids,
            row_weights=row_weights,
        )  # fmt: skip

    def _numbered_actions(self, actions: Any, names: Names, n_actions: int | None) -> tuple[Any, Names]:
        """Convert actions to this learner's indices. Returns them and their names. names: action names of the log."""
        return actions, ()

    def partial_fit(
        self, contexts: Any, actions: Any = None, rewards: Any = None, propensities: Any = None, *,
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
        reader = self._reader_for(contexts, actions, rewards, propensities)
        self._add(self._checked(contexts, actions, rewards, propensities, reader), reader, at_most)
        return self

    def _add(self, batch: Interactions, reader: ContextReader, at_most: int | None = None) -> None:
        """Append rows from this reader to the log, and learn."""
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
        """Add the rows of another learner and learn from them. Rows are matched by id; none is added twice.

        `other` is a copy of this learner that continued in another process, the file of one, or a log with ids. Its
        rows are appended in their order. Its decisions without a reward can then be updated here.
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
                    "merge: found a learner that began with other columns or strings, expected a copy of this one:"
                    " save this learner, and load it in each process"
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
        """Learn offline: reset the learner, and solve to convergence on this log.

        Pass four columns, or one log as `contexts`: `Interactions` (from `read_log`, for example) or a `Log`.
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
        if self._engine is None:
            self._notice(contexts)
        reader = self._reader
        contexts = reader.rows(contexts)[:rounds]
        paid, n_actions = self._rewards(len(contexts), rewards)
        if self._engine is None:
            self._adopt(self._first_engine(reader, contexts, n_actions))
        done = self._begun().run(contexts, paid)
        return Run(done.named_actions, done.rewards, done.propensities)

    # -- evaluation

    def score(self, contexts: Any, actions: Any = None, rewards: Any = None, propensities: Any = None) -> float:
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

    def safe_to_deploy(self, baseline: Any = "logged", delta: float = 0.05, *, fresh: Any = None) -> DeployVerdict:
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
        if fresh is not None:
            self._begun()
            given = fresh.log_ if isinstance(fresh, BanditEstimator) else fresh
            return judge(self, self._checked(given), baseline, delta, next(iter(log_or_columns(given))))
        log = self.log_
        half = len(log) // 2
        if half == 0:
            raise InvalidInput(f"log: found {len(log)} rows, expected at least two, or `fresh` rows")
        trial = type(self)(**self.get_params()).fit(log[:half])
        return judge(trial, trial._checked(log[half:]), baseline, delta)


def _alone(context: Any) -> Any:
    """Return one context as a batch of one."""
    return context if is_read(context) else [context]


def load(path: str | os.PathLike[str] | IO[bytes], *, name: str = "") -> Any:
    """Load a saved learner or `Decider` from a path or an open file. name: file name for error messages."""
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
