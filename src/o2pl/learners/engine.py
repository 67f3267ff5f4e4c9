"""The engine: members on one log, re-learned at checkpoints, acting as one mixture in between.

Everything that differs between learners is a part (`protocols.py`). Between two checkpoints nothing that decisions
depend on changes, so a stretch of rounds can be decided as one batch with exactly the decisions of one call per round.
Appending and learning are serialised; deciding reads the current `Decider`, which is replaced as a whole.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from o2pl.compiled.threads import one_blas_thread
from o2pl.contexts import ContextReader
from o2pl.decisions import Decision, id_of
from o2pl.errors import InvalidInput
from o2pl.features import Hashed
from o2pl.interactions import Interactions
from o2pl.kernels.registry import Problem
from o2pl.kernels.values import rows_of_features  # importing it registers the fused values
from o2pl.learners.changes import Change, Changed, Watch
from o2pl.learners.decider import ActingMember, Decider, restored
from o2pl.learners.finite_run import run_finite
from o2pl.learners.items import NOTHING, ItemMemory, remembered
from o2pl.learners.mean_reward import MeanReward
from o2pl.learners.member import LINEAR, STRETCH, Member, MemberState, Passes, Seen
from o2pl.learners.pending import Pending, append_row, check_as_drawn, is_read
from o2pl.learners.schedules import Schedule
from o2pl.learners.shared_columns import SharedColumns
from o2pl.learners.stream import UniformStream
from o2pl.learners.union import calibrated, evidence, foretold, progressive_evidence, progressive_gains, shares
from o2pl.log import Log
from o2pl.objectives.control import Control, ridge_baseline, ridge_control
from o2pl.objectives.outcome import Outcome
from o2pl.objectives.running_control import RunningControl
from o2pl.objectives.terms import Totals
from o2pl.oracles.lbfgs import LBFGS
from o2pl.policies.sampling import acting_numbers, check_explored
from o2pl.protocols import Array, Exploration, FeatureMap, Floats, Ints, Oracle, Policy, State
from o2pl.rows import ActionSets
from o2pl.validation import check_actions

_FAINT = 1e-4  # the weight of a member that hardly acts
_CALIBRATION_ROWS = 2000  # that say how a member without an outcome model is heard
OFFLINE = LBFGS(iterations=500, tolerance=1e-6)


class Rewards(NamedTuple):
    """What actions bring in the rounds of a simulation."""

    of: Callable[[Ints, Array], Floats]  # `actions` in rounds `rows`
    table: Floats | None = None  # of all actions, [T, K]


class Parts(NamedTuple):
    """What an engine is put together from."""

    members: Sequence[Member]
    policies: Sequence[Policy]  # of the members
    objective: Any  # an Objective
    schedule: Schedule  # of members without one of their own
    control: float | None  # the ridge of the control variate
    sharpness: float
    exploration: Exploration
    watch: tuple[Change, int] | None = None  # what is a change, and the place of the member that notices it
    device: str = "cpu"  # where objectives are evaluated


class Engine:
    """What is inside `O2PL`, `Bandit` and `GaussianO2PL`."""

    def __init__(self, parts: Parts, reader: ContextReader, log: Log, stream: UniformStream) -> None:
        self.parts, self.reader, self.log, self.stream = parts, reader, log, stream
        self.passes: Passes | None = None  # None: a log is learned from all at once, in this process
        self.lock = threading.RLock()
        self.pending = Pending()
        joins = [member.joins for member in parts.members]
        if joins[0] or any(later < earlier for earlier, later in pairwise(joins)):
            raise InvalidInput(f"policy: found members that join after {joins} rows, expected 0 first, then ascending")
        self.seen: list[Seen] = []
        self.members: list[MemberState] = []
        for member, policy in zip(parts.members, parts.policies, strict=True):
            schedule = member.schedule or parts.schedule
            seen = self._seen(member.features, schedule)
            self.members.append(MemberState.start(member, policy, parts.objective, seen, schedule, log.width))
            self.members[-1].device = parts.device
        self.columns = SharedColumns() if log.action_sets and not log.sparse and log.shared is None else None
        self.running: State | None = None  # of the control variate of sparse rows
        if parts.control is not None and log.sparse:
            self.running = RunningControl(parts.control, log.n_actions or 0).init()
        self.watch = None
        if parts.watch is not None:
            self.watch = Watch(*parts.watch)
            self.members[self.watch.place].watches = True
        self.gains = np.array([member.prior for member in parts.members if not member.joins])  # of those that joined
        self.learned = 0  # rows that the members' gains know of
        self._forgotten: Any = 0  # plays of the actions before the base
        self._mean_reward = MeanReward()  # since the base, as far as learned
        self.checkpoint = min(member.checkpoint for member in self.present)
        self._acting: tuple[Any, Any, Floats] = (None, None, np.empty(0))  # shares, exploration, both as numbers
        self.decider = self._decider()

    def _seen(self, features: FeatureMap, schedule: Schedule) -> Seen:
        """What these features have seen; one for all members that see the same rows through them.

        Hashed features are numbered as they come, whoever learns from them: one for all schedules.
        """
        for seen in self.seen:
            if seen.features == features and (seen.schedule == schedule or isinstance(features, Hashed)):
                return seen
        self.seen.append(Seen(features, schedule, features.init(self.log.width)))
        return self.seen[-1]

    @property
    def present(self) -> list[MemberState]:
        """The members that have joined, as of the last time they learned; at least one."""
        return self.members[: len(self.gains)]

    @property
    def weights(self) -> Floats:
        """Of the members that have joined, among each other."""
        return shares(self.gains, self.parts.objective.rate(self.learned - self.base))

    @property
    def base(self) -> int:
        """The row of the log that the members' history begins at; a change moves it."""
        return 0 if self.watch is None else self.watch.base

    @property
    def changes(self) -> list[Changed]:
        """That were noticed."""
        return [] if self.watch is None else list(self.watch.found)

    @property
    def effort(self) -> tuple[int, int]:
        """Solves so far, of all members, and evaluations of the objective in them."""
        solves, evaluations = np.sum([member.effort for member in self.members], axis=0)
        return int(solves), int(evaluations)

    # -- acting

    def decide(self, context: Any, allowed: Ints | None = None) -> Decision:
        """A decision that can be told its reward by its id: it is kept, with its context, until then.

        allowed: which of a fixed number of actions may be played; None: all.
        """
        uniform = self.stream.next()
        try:
            decision = self.decider.decide(context, uniform, allowed)
        except ValueError:
            self.stream.give_back(uniform)
            raise
        self.pending.newest.append(decision)
        return decision

    @property
    def acting(self) -> Floats:
        """How scores become the acting policy: `acting_numbers`."""
        return self._acting[2]

    def snapshot(self) -> Decider:
        """The acting policy of this moment, without the log; it does not change when the engine learns on."""
        return self.decider

    def _decider(self, before: Decider | None = None) -> Decider:
        log, parts = self.log, self.parts
        acting, counts = [], []
        for m in self.present:
            plan = None if log.sparse or log.shared is not None else m.seen.plan(log.width)
            own = m.acting(log.width)
            acting += [ActingMember(m.seen.features, m.seen.state, policy, params, plan) for policy, params in own]
            counts.append(len(own))
        self._mean_reward = self._mean_reward.extended(log, self.base, self.learned)
        explored = parts.exploration.at(log.plays(self.learned) - self._forgotten, self._mean_reward.value)
        weights = self.weights
        if len(acting) > len(weights):
            weights = np.repeat(weights / counts, counts)
        if self._acting[0] is not weights or self._acting[1] is not explored:
            numbers = acting_numbers(weights, parts.sharpness, check_explored(explored, log.n_actions))
            self._acting = weights, explored, numbers
        names, items, rule = log.action_names, self._remembered(), parts.exploration
        return Decider(acting, self._acting[2], parts.sharpness, self.reader, before, names, items, rule)

    def _remembered(self) -> ItemMemory:
        """Of items by id, from the rows since the base that have been learned from."""
        sets = self.log.contexts if self.log.action_sets else None
        if sets is None or sets.item_ids is None or self.learned <= self.base:
            return NOTHING
        best = self.present[int(np.argmax(self.weights))]
        return remembered(self.log[self.base : self.learned], best, self._mean_reward.value)

    def run(self, contexts: Any, rewards: Rewards) -> Interactions:
        """Rounds on given contexts, decided in stretches between checkpoints."""
        with self.lock, one_blas_thread(math.inf):
            start, done = len(self.log), 0
            self.log.reserve(len(contexts))
            if run_finite(self, contexts, rewards.table):
                return self.log[start:]
            while done < len(contexts):
                some = min(len(contexts) - done, self.checkpoint - len(self.log), STRETCH)
                stretch = contexts[done : done + some]
                actions, propensities = self.decider.sample(stretch, self.stream.take(some))
                self.log.extend_columns(
                    stretch, actions, rewards.of(np.arange(done, done + some), actions), propensities
                )
                done += some
                self.learn_if_due()
            return self.log[start:]

    # -- learning

    def append(self, context: Any, action: Any, reward: float, propensity: float, number: int | None = None) -> None:
        """One interaction; all but the context has been checked. number: of the decision, which is told once."""
        entry = context if is_read(context) else self.reader.entry(context)
        if self.log.action_sets and action >= entry.offsets[1]:
            check_actions([action], entry.sizes)  # says what is wrong
        if number is None:
            decision = self.pending.told(propensity)
            if decision is not None:
                if self.log.continuous:
                    check_as_drawn(action, decision)
                number = decision.number
        with self.lock:
            if number is not None and not self.pending.drop(number):
                self.check_new(number)
            append_row(self.log, entry, action, reward, propensity, number)
            if self.log.n >= self.checkpoint:
                self.learn_if_due()

    def wait_for(self, others: Pending) -> None:
        """Decisions of another learner whose rewards may be told here."""
        with self.lock:
            known = set(self.log.columns.ids.tolist()) if len(others) else set()
            self.pending.newest.extend(one for one in others if one.number not in known)

    def check_new(self, number: int, where: str = "update", instead: str = "") -> None:
        """Refuses a decision that had its reward."""
        rows = np.flatnonzero(self.log.columns.ids == number)
        if len(rows):
            raise InvalidInput(
                f"{where}: found decision {id_of(number)!r} again; it had its reward in row {rows[0]} of the log,"
                f" expected each decision once{instead}"
            )

    def extend(self, rows: Interactions) -> None:
        """Many interactions, checked; they are learned from when `learn` is called."""
        with self.lock:
            if rows.ids is not None:
                known = self.log.columns.ids[np.isin(self.log.columns.ids, rows.ids)]
                if len(known):
                    self.check_new(int(known[0]), "partial_fit", "; merge(log) takes what is new")
                for number in rows.ids.tolist() if len(self.pending) else ():
                    self.pending.drop(number)
            self.log.extend(rows)

    def begin_at(self, rows: Interactions, params: Floats) -> None:
        """Take over a log that has been learned from elsewhere, with what the only member learned from it."""
        (member,) = self.members
        self.log.extend(rows)
        member.seen.observe(self.log.columns)
        member.params = params
        self.settle(len(rows), self.members)

    def imitate(self) -> None:
        """Start from the logger where a policy can: far from it all weights are 0, and so is the gradient."""
        rows = self.log.columns
        for member in self.members:
            if hasattr(member.policy, "imitate"):
                policy: Any = member.policy
                state = member.seen.features.observe(member.seen.state, rows.contexts)
                member.params = policy.imitate(member.seen.features.transform(state, rows.contexts), rows.actions)

    def learn_if_due(self) -> None:
        n = len(self.log)
        if n >= self.checkpoint:
            self.learn(self.due(n))

    def due(self, n: int) -> list[MemberState]:
        """The members whose schedule says to learn at n rows."""
        return [m for m in self.members if m.joins <= n - self.base and m.checkpoint <= n]

    def learn(
        self, due: Sequence[MemberState] | None = None, oracle: Oracle | None = None, upto: int | None = None
    ) -> None:
        """Learn now: the members that are due, or all; with `oracle`, solve with it on the whole log.

        upto: so many rows of the log; None: all.
        """
        with self.lock:
            rows = self.log[: len(self.log) if upto is None else upto]
            if self.columns is not None and not self.columns.settled:
                self.columns.observe(rows.contexts[self.learned :])
            if self._weigh(rows, oracle is None):
                due = self._restart(len(rows))
            joined = [member for member in self.members if member.joins <= len(rows) - self.base]
            # A newcomer has the whole log to learn from: it starts with the gains of the best.
            priors = [member.prior for member in self.parts.members[len(self.gains) : len(joined)]]
            self.gains = np.concatenate([self.gains, self.gains.max() + np.array(priors)])
            due = joined if due is None else due
            for seen in self.seen:
                if any(member.seen is seen for member in due):
                    seen.observe(rows)
            first = {id(m): m.first(len(rows)) if oracle is None or m.watches else m.base for m in due}
            starts = set(first.values())
            many = self.watch is not None and len(rows) - self.learned > self.watch.change.memory
            with one_blas_thread(max((len(m.params) for m in due), default=0) * (len(rows) - min(starts, default=0))):
                self._observe_control(rows)
                shared: dict[Any, Any] = {}
                for start in sorted(starts):
                    window = rows[start:] if start else rows
                    own = [m for m in due if first[id(m)] == start]
                    weights = own[0].weights(len(rows)) if not oracle else None
                    control = self._control(window, start, weights, shared)
                    for member in own:
                        with_oracle = OFFLINE if member.watches and many else oracle
                        member.learn(window, start, control, shared, with_oracle, self.passes)
            self.settle(len(rows), due)

    def settle(self, n: int, due: Sequence[MemberState]) -> None:
        self.learned = n
        acting = zip(self.present, self.weights, strict=True)
        faint = {id(member) for member, weight in acting if weight < _FAINT}
        for member in due:
            member.known, member.checkpoint = n, member.after(n, id(member) in faint)
        self.checkpoint = min(member.checkpoint for member in self.present)
        self.decider = self._decider(self.decider)
        if isinstance(self.parts.objective, Outcome):
            self._calibrate([member for member in due if not member.objective.extra])

    def _calibrate(self, members: Sequence[MemberState]) -> None:
        """Those without an outcome model, which have just learned: what their scores say of the last rewards."""
        for member in members:
            member.heard = (0.0, 1.0)
        if not members:
            return
        rows = self.log[max(self.base, self.learned - _CALIBRATION_ROWS) : self.learned]
        for member, z in zip(self.present, foretold(self.present, self.decider, rows), strict=True):
            if any(member is each for each in members):
                member.heard = calibrated(z, -rows.losses)

    def _weigh(self, rows: Interactions, watching: bool) -> bool:
        """How well each member, as it stood, foretold rows it has not learned from; whether they tell of a change."""
        if len(self.gains) == 1 or self.learned == len(rows):
            return False
        objective = self.parts.objective
        if isinstance(objective, Outcome):
            if self.watch is not None and watching:
                return self._weigh_and_watch(rows, self.watch)
            self.gains = self.gains + progressive_evidence(self.present, self.decider, rows[self.learned :])
            return False
        alpha, baseline = objective.alpha(len(rows)), objective.level_of(Totals.of(rows))
        for start in range(self.learned, len(rows), STRETCH):
            new = rows[start : start + STRETCH]
            likelihoods = self.decider.member_likelihoods(new.contexts, new.actions)
            self.gains = self.gains + progressive_gains(likelihoods, new, alpha, baseline)
        return False

    def _weigh_and_watch(self, rows: Interactions, watch: Watch) -> bool:
        for start in range(self.learned, len(rows), STRETCH):
            new = rows[start : start + STRETCH]
            z, rewards = foretold(self.present, self.decider, new), -new.losses
            self.gains = self.gains + evidence(z, rewards)
            if watch.observe_blocks(z, rewards, start):
                return True
        return False

    def _restart(self, n: int) -> list[MemberState]:
        """All but the monitor begin anew at the base; those that have joined are due."""
        self._count_forgotten()
        for member in self.members:
            if not member.watches:
                member.restart(self.base, self.log.width)
        self.gains = np.array([member.prior for member in self.parts.members if member.joins <= n - self.base])
        return self.present

    def _count_forgotten(self) -> None:
        if self.base and self.log.n_actions is not None:
            self._forgotten = np.bincount(self.log[: self.base].actions, minlength=self.log.n_actions)

    # -- the control variate, one for all members that learn from the same rows

    def _observe_control(self, rows: Interactions) -> None:
        if self.running is None or self.parts.control is None:
            return
        known, member = len(self.running["predicted"]), self.members[0]
        new = rows[known:]
        control = RunningControl(self.parts.control, self.log.n_actions or 0)
        features = member.seen.features.transform(member.seen.state, new.contexts)
        self.running = control.observe(self.running, features, new.actions, new.losses, member.objective.numbers)

    def _control(self, rows: Interactions, start: int, weights: Floats | None, shared: dict[Any, Any]) -> Any:
        ridge = self.parts.control
        if ridge is None or isinstance(rows.contexts, ActionSets):
            return None
        objective = self.parts.objective
        if self.passes is not None and self.running is None and self.log.n_actions is not None:
            return self._control_in_passes(self.passes, rows, start, ridge)
        losses, baseline = rows.losses, objective.level(rows.losses, weights)
        if self.running is not None:
            control = RunningControl(ridge, self.log.n_actions or 0)
            return control.control(self.running, slice(start, start + len(rows)), rows.actions, baseline)
        seen = self._seen(LINEAR, self.members[0].schedule)
        seen.observe(self.log.columns)
        policy, log = self.members[0].policy, objective.prepare(rows)
        features = rows_of_features(Problem(policy, objective, LINEAR, seen.state, rows, start, log, None, shared))
        if self.log.n_actions is None:
            return ridge_baseline(features, losses, baseline, ridge)
        return ridge_control(features, rows.actions, losses, self.log.n_actions, baseline, ridge)

    def _control_in_passes(self, passes: Passes, rows: Interactions, start: int, ridge: float) -> Control:
        seen = self._seen(LINEAR, self.members[0].schedule)
        seen.observe(self.log.columns)
        problem = Problem(self.members[0].policy, None, LINEAR, seen.state, rows, start, None, None, {})
        baseline = self.parts.objective.level_of(Totals.of(rows))
        return passes.control(problem.featurise, rows, self.log.n_actions or 0, baseline, ridge)

    # -- saving

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        with self.lock:
            header = {
                "learned": self.learned,
                "checkpoints": [member.checkpoint for member in self.members],
                "seen": [seen.rows for seen in self.seen],
                "stream": self.stream.state(),
                "mean_reward": list(self._mean_reward),
                "heard": [member.heard for member in self.members],
                "known": [member.known for member in self.members],
            }
            arrays: dict[str, Array] = {"gains": self.gains, **self.log.state()}
            if len(self.pending):
                waiting = self.pending.rows(self.log.empty(), self.reader).state()
                arrays |= {f"pending.{name}": array for name, array in waiting.items()}
            if self.watch is not None:
                header["changes"], arrays["evidence"] = self.watch.state(), self.watch.seen
            for k, seen in enumerate(self.seen):
                kept = {name: array for name, array in seen.state.items() if not name.startswith("_")}
                arrays |= {f"seen{k}.{name}": array for name, array in kept.items()}
            for k, member in enumerate(self.members):
                arrays |= {f"member{k}.{name}": array for name, array in member.arrays().items()}
            if self.running is not None:
                arrays |= {f"control.{name}": array for name, array in self.running.items()}
            return header, arrays

    def restore(self, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        self.stream = UniformStream.restore(header["stream"])
        self.gains, self.learned = arrays["gains"], header["learned"]
        self.log.restore(arrays)
        self._mean_reward = MeanReward(*header.get("mean_reward", ()))  # older files: from the rows
        if waiting := _named(arrays, "pending."):
            log = self.log.empty()
            log.restore(waiting)
            self.pending.restore(log.columns)
        if len(header["seen"]) > len(self.seen):  # the control variate's features, where no member has the same
            self._seen(LINEAR, self.members[0].schedule)
        for k, (seen, rows) in enumerate(zip(self.seen, header["seen"], strict=True)):
            seen.state, seen.rows = restored(seen.features, _named(arrays, f"seen{k}.")), rows
        for k, (member, checkpoint) in enumerate(zip(self.members, header["checkpoints"], strict=True)):
            member.restore(_named(arrays, f"member{k}."))
            member.checkpoint = checkpoint
            member.heard = tuple(header["heard"][k]) if "heard" in header else (0.0, 1.0)
            member.known = header["known"][k] if "known" in header else self.learned
        if self.watch is not None:
            self.watch.restore(header["changes"], arrays["evidence"])
            for member in self.members:
                member.base = 0 if member.watches else self.base
            self._count_forgotten()
        if self.running is not None:
            self.running = _named(arrays, "control.")
        self.checkpoint = min(member.checkpoint for member in self.present)
        self.decider = self._decider()

    def __getstate__(self) -> dict[str, Any]:
        """A pickle or a copy is what a file would be; its log is in memory and its lock its own."""
        return {"parts": self.parts, "reader": self.reader, "log": self.log.empty(), "saved": self.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["parts"], state["reader"], state["log"], UniformStream(None))  # type: ignore[misc]  # made anew
        self.restore(*state["saved"])


def _named(arrays: dict[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
