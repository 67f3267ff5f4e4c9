"""The engine: members on one log, re-learned at checkpoints, acting as one mixture in between.

Everything that differs between learners is a part (`protocols.py`). Between two checkpoints nothing that decisions
depend on changes, so rounds between them can be decided as one batch, with exactly the decisions of one call per round.
Appending and learning hold a lock; deciding reads the current `Decider`, which is replaced atomically.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from o2pl import _core
from o2pl.data.contexts import is_encoded_context
from o2pl.data.decisions import Decision, decision_id_of
from o2pl.data.interactions import Interactions
from o2pl.data.log import Log, Tally
from o2pl.encode import Encoder
from o2pl.engine.change import Changed, Watch
from o2pl.engine.compiled import Compiled, compiled_learner, learned_field
from o2pl.engine.controlling import control_of, observe_control
from o2pl.engine.decider import Decider
from o2pl.engine.deciding import decider_of, look_at_items
from o2pl.engine.engine_files import engine_file_content, restore_engine_from_file
from o2pl.engine.item_memory import entry_has_ids
from o2pl.engine.lock import Turn
from o2pl.engine.mean_reward import MeanReward
from o2pl.engine.member import FeatureState, MemberState, Passes
from o2pl.engine.member_weights import calibrate_members, member_shares, weigh_members
from o2pl.engine.pending import Pending, append_pending_row, check_pending_as_drawn
from o2pl.engine.reward_scale import RewardScale, adopt_reward_scale, new_scale
from o2pl.engine.schedules import Schedule
from o2pl.engine.shared_columns import SharedColumns
from o2pl.engine.spec import Spec
from o2pl.engine.stream import UniformStream
from o2pl.engine.uncertainty import curvature_for, look_at_rows, look_before_solve, next_look
from o2pl.errors import InvalidInput
from o2pl.features import Hashed
from o2pl.objectives.outcome import Outcome
from o2pl.objectives.running_control import RunningControl
from o2pl.oracles.lbfgs import LBFGS
from o2pl.protocols import Array, Exploration, FeatureMap, Floats, Ints, Oracle, State
from o2pl.threads import one_blas_thread
from o2pl.validation import ANY_REWARD, check_actions

_FAINT = 1e-4  # members with a smaller weight hardly act
OFFLINE = LBFGS(iterations=500, tolerance=1e-6)


class Engine:
    """The engine of `O2PL`, `Bandit` and `GaussianO2PL`."""

    seen: list[FeatureState] = learned_field("seen")
    members: list[MemberState] = learned_field("members")
    gains: Floats = learned_field("gains")  # of the joined members
    learned: int = learned_field("learned")  # rows included in the members' gains
    watch: Watch | None = learned_field("watch")
    forgotten: Tally | None = learned_field("forgotten")  # plays and rewards of each action before the base
    curvature: _core.Curvature | None = learned_field("curvature")  # from it, how certain predictions are
    mean_reward: MeanReward = learned_field("mean_reward")  # of the rows since the base that were learned from

    def __init__(self, spec: Spec, encoder: Encoder, log: Log, stream: UniformStream) -> None:
        self.spec, self.encoder, self._log, self.stream = spec, encoder, log, stream
        self.passes: Passes | None = None  # None: learn from the log in memory, in this process
        self.lock = Turn()
        self.pending = Pending()
        self.compiled = Compiled(None)
        self.rounds: _core.Rounds | None = None  # what decides and appends in one call; None: other kinds of rows
        self.items_known = 0  # rows whose rewards are in the effects of their items
        self.scale = RewardScale() if spec.running_range else None  # None: the log's reward range was given
        joins = [member.joins for member in spec.members]
        if joins[0] or any(later < earlier for earlier, later in pairwise(joins)):
            raise InvalidInput(f"policy: found members that join after {joins} rows, expected 0 first, then ascending")
        self.seen, self.members = [], []
        for member, policy in zip(spec.members, spec.policies, strict=True):
            schedule = member.schedule or spec.schedule
            seen = self.seen_by(member.features, schedule)
            self.members.append(MemberState.start(member, policy, spec.objective, seen, schedule, log.width))
            self.members[-1].device = spec.device
        self.columns = SharedColumns() if log.action_sets and not log.sparse and log.shared is None else None
        self.running: State | None = None  # state of the control variate of sparse rows
        if spec.control is not None and log.sparse:
            self.running = RunningControl(spec.control, log.n_actions or 0).init()
        self.watch = None
        if spec.watch is not None:
            self.watch = Watch(*spec.watch)
            self.members[self.watch.place].is_monitor = True
        self.gains = np.array([member.prior for member in spec.members if not member.joins])
        self._shares: tuple[Any, float, Floats] = (None, 0.0, np.empty(0))  # gains, rate, and the weights they give
        self.learned = 0
        self.forgotten = None
        self.mean_reward, self.curvature = MeanReward(), curvature_for(spec, log)
        self.checkpoint = min(member.checkpoint for member in self.present)
        self._decider: Decider | None = self.new_decider()
        self.begin_rounds()

    def begin_rounds(self) -> None:
        """Let decisions on numeric rows and on dictionaries, or sets of them, and their rewards, take one call each."""
        columns, checkpoint = self.log.columns_in_place, self.checkpoint
        if columns is not None and self.log.reward_range is not None:
            waiting, ends = self.pending.waiting, self.log.reward_range if self.scale is None else ANY_REWARD
            self.rounds = _core.Rounds(Decision, self.stream, waiting, columns, ends, self.log.action_sets)
            self.lock.guard(self.rounds)
            if self.log.sparse and self.encoder.words is not None:
                self.encoder.words.read_in(self.rounds)
        self.begin_compiled()
        self.checkpoint, self.decider = checkpoint, self.decider

    def begin_compiled(self) -> None:
        """Learn in the compiled core from now on, if all parts are of it, with the log's range as it is."""
        self.compiled = Compiled(compiled_learner(self))

    def draw_from(self, stream: UniformStream) -> None:
        """Draw actions with these random numbers from now on."""
        self.stream = stream
        self.begin_rounds()

    def explore_by(self, rule: Exploration) -> None:
        """Explore by this rule from now on."""
        self.compiled.take_back(self)
        self.spec, self._decider = self.spec._replace(exploration=rule), None
        self.begin_rounds()

    @property
    def log(self) -> Log:
        """The interactions so far."""
        return self._log

    @log.setter
    def log(self, log: Log) -> None:
        self.compiled.take_back(self)
        self._log = log
        if self.scale is not None:
            log.count_in(self.scale.ends)
        self.begin_rounds()

    @property
    def decider(self) -> Decider:
        """The acting policy. It is replaced when the engine has learned."""
        decider = self._decider
        if decider is None:
            with self.lock, self.compiled.only_looked_at():  # all its parts are of one moment
                decider = self._decider = self.new_decider() if self._decider is None else self._decider
        return decider

    @decider.setter
    def decider(self, decider: Decider) -> None:
        self._decider = decider
        if self.rounds is not None:
            decider.decide_in(self.rounds)

    @property
    def checkpoint(self) -> int:
        """The number of rows at which to learn."""
        return self._checkpoint if self.rounds is None else self.rounds.checkpoint

    @checkpoint.setter
    def checkpoint(self, rows: int) -> None:
        self._checkpoint = rows
        if self.rounds is not None:
            self.rounds.checkpoint = rows

    def seen_by(self, features: FeatureMap, schedule: Schedule) -> FeatureState:
        """Return the state of these features, shared by all members with the same rows and features.

        Hashed features are numbered in order of appearance for all members: all schedules share one state.
        """
        for seen in self.seen:
            if seen.features == features and (seen.schedule == schedule or isinstance(features, Hashed)):
                return seen
        self.seen.append(FeatureState(features, schedule, features.init(self.log.width)))
        return self.seen[-1]

    @property
    def present(self) -> list[MemberState]:
        """Return the members that had joined when they last learned; at least one."""
        return self.members[: len(self.gains)]

    @property
    def weights(self) -> Floats:
        """The weights of the joined members; the same array until gains or rate change."""
        rate = self.spec.objective.rate(self.learned - self.base)
        rate = rate if self.scale is None else rate / self.scale.dispersion
        if self._shares[0] is not self.gains or self._shares[1] != rate:
            self._shares = self.gains, rate, member_shares(self.gains, rate)
        return self._shares[2]

    @property
    def base(self) -> int:
        """The row at which the members' history starts. A detected change moves it."""
        return 0 if self.watch is None else self.watch.base

    @property
    def changes(self) -> list[Changed]:
        """The detected changes."""
        return [] if self.watch is None else list(self.watch.found)

    @property
    def effort(self) -> tuple[int, int]:
        """The number of solves of all members so far, and of their evaluations of the objective."""
        solves, evaluations = np.sum([member.effort for member in self.members], axis=0)
        return int(solves), int(evaluations)

    # -- acting

    def decide(self, context: object, allowed: Ints | None = None) -> Decision:
        """Decide, and keep the decision with its context until its reward arrives by id.

        allowed: indices of the allowed actions, for a fixed number of actions; None: all.
        """
        uniform = self.stream.next()
        try:
            decision = self.decider.decide(context, uniform, allowed)
        except ValueError:
            self.stream.give_back(uniform)
            raise
        self.pending.keep(decision)
        return decision

    @property
    def acting(self) -> Floats:
        """Return how scores become the acting policy: see `acting_numbers`."""
        return self.decider.acting

    def snapshot(self) -> Decider:
        """Return the current acting policy without the log. It does not change when the engine learns."""
        return self.decider

    def new_decider(self, before: Decider | None = None) -> Decider:
        return decider_of(self, before)

    def sample(self, contexts: Any, uniforms: Floats) -> tuple[Array, Floats]:
        """Draw actions for the next rows of the log. Returns them and their probabilities (densities)."""
        if self.compiled.learns and self.rounds is not None and not self.log.sparse:
            return self.rounds.sample(contexts, uniforms)
        return self.decider.sample(contexts, uniforms)

    # -- learning

    def look_at_items(self) -> None:
        """Let rewards since the last solve move the effects of their items, by id."""
        look_at_items(self)

    def append(self, context: Any, action: Any, reward: float, propensity: float, number: int | None = None) -> None:
        """Append one interaction; everything but the context is checked. number: of the decision, for duplicates."""
        log, pending = self.log, self.pending
        entry = context if is_encoded_context(context) else self.encoder.entry(context)
        if log.action_sets and action >= entry.offsets[1]:
            check_actions([action], entry.sizes)  # raises with the reason
        if number is None:
            decision = pending.newest(context, action, propensity)
            if decision is not None:
                if log.continuous:
                    check_pending_as_drawn(action, decision)
                number = decision.number
        with self.lock:
            if number is not None and not pending.drop(number):
                self.check_new(number)
            append_pending_row(log, entry, action, reward, propensity, number)
            if log.n >= self.checkpoint:
                self.learn_if_due()
            if entry_has_ids(entry):
                self.look_at_items()

    def wait_for(self, others: Pending) -> None:
        """Accept rewards for decisions of another learner."""
        with self.lock:
            known = set(self.log.columns.ids.tolist()) if len(others) else set()
            for one in others.waiting.decisions():
                if one.number not in known:
                    self.pending.keep(one)
            for batch in others.batches:
                self.pending.keep_many(batch.left(self.log.columns.ids))

    def check_new(self, number: int, where: str = "update", instead: str = "") -> None:
        """Reject a decision that already has its reward."""
        rows = np.flatnonzero(self.log.columns.ids == number)
        if len(rows):
            raise InvalidInput(
                f"{where}: found decision {decision_id_of(number)!r} again; its reward is in row {rows[0]} of the log,"
                f" expected each decision once{instead}"
            )

    def extend(self, rows: Interactions) -> None:
        """Append checked interactions. They are learned from when `learn` is called."""
        with self.lock:
            if rows.ids is not None:
                known = self.log.columns.ids[np.isin(self.log.columns.ids, rows.ids)]
                if len(known):
                    self.check_new(int(known[0]), "partial_fit", "; merge(log) adds only new rows")
                for number in rows.ids.tolist() if len(self.pending) else ():
                    self.pending.drop(number)
            self.log.extend(rows)

    def begin_at(self, rows: Interactions, params: Floats) -> None:
        """Start from a log that was learned from elsewhere, with the parameters of the only member."""
        (member,) = self.members
        self.log.extend(rows)
        member.seen.observe(self.log.columns)
        member.params = params
        self.finish_learning(len(rows), self.members)

    def learn_if_due(self) -> None:
        with self.lock:
            n = len(self.log)
            if n < self.checkpoint:
                return
            solve_at = self.compiled.solve_at(self)
            if n >= solve_at and new_scale(self, n) is not None:
                self.learn()
            elif not self._learn_compiled():
                if n >= solve_at:
                    self.learn(self.due(n))
                else:
                    self.look_at_rows(n, solved=False)

    def _learn_compiled(self) -> bool:
        """Learn what is due in the compiled core. Returns False, and does nothing, if that takes other parts."""
        if self.rounds is None or self.passes is not None or not self.compiled.learn(self):
            return False
        self._decider = None
        self.compiled.act_in(self.rounds)
        return True

    def due(self, n: int) -> list[MemberState]:
        """Return the members whose schedule is due at n rows."""
        return [m for m in self.members if m.joins <= n - self.base and m.checkpoint <= n]

    def learn(
        self, due: Sequence[MemberState] | None = None, oracle: Oracle | None = None, upto: int | None = None
    ) -> None:
        """Learn now: the given members, or all that are due. With `oracle`, solve with it on the whole log.

        upto: number of rows of the log; None: all.
        """
        with self.lock:
            n = len(self.log) if upto is None else upto
            rows = self.log[:n]
            if self.columns is not None and not self.columns.settled:
                self.columns.observe(rows.contexts[self.learned :])
            scale = new_scale(self, n)
            self.gains, changed = weigh_members(self, rows, oracle is None)
            if changed:
                due = self._restart(n)
            if scale is not None:
                adopt_reward_scale(self, scale)
                rows, due = self.log[:n], None
            joined = [member for member in self.members if member.joins <= n - self.base]
            due = joined if due is None else due
            for seen in {id(member.seen): member.seen for member in due}.values():
                seen.observe(rows)
            if not changed and scale is None:
                look_before_solve(self, n)
            if len(joined) > len(self.gains):
                # A new member learns from the whole log: it starts with the gains of the best member.
                priors = [member.prior for member in self.spec.members[len(self.gains) : len(joined)]]
                self.gains = np.concatenate([self.gains, self.gains.max() + np.array(priors)])
            by_start: dict[int, list[MemberState]] = {}
            for m in due:
                by_start.setdefault(m.first(n) if oracle is None or m.is_monitor else m.base, []).append(m)
            many = self.watch is not None and n - self.learned > self.watch.change.memory
            with one_blas_thread(max((len(m.params) for m in due), default=0) * (n - min(by_start, default=0))):
                self.running = observe_control(self, rows)
                shared: dict[Any, Any] = {}
                for start, own in sorted(by_start.items()):
                    window = rows[start:] if start else rows
                    control = None
                    if self.spec.control is not None:
                        weights = own[0].weights(window, start, not oracle)
                        control = control_of(self, window, start, weights, shared)
                    for member in own:
                        with_oracle = OFFLINE if member.is_monitor and many else oracle
                        member.learn(window, start, control, shared, with_oracle, self.passes)
            self.finish_learning(n, due)

    def finish_learning(self, n: int, due: Sequence[MemberState]) -> None:
        self.learned = n
        weights = self.weights
        faint = [m for m, weight in zip(self.members, weights.tolist(), strict=False) if weight < _FAINT]
        for member in due:
            member.known, member.checkpoint = n, member.after(n, any(member is m for m in faint))
        self.decider = self.new_decider(self._decider)
        calibrated = [member for member in due if not member.objective.extra]
        if isinstance(self.spec.objective, Outcome) and calibrated:
            calibrate_members(self, calibrated)
            self.decider = self.new_decider(self._decider)
        self.look_at_rows(n, solved=True)

    def look_at_rows(self, n: int, solved: bool) -> None:
        """Let what explores know the rows up to n, and how it acts. solved: the members have just learned."""
        if look_at_rows(self, n, solved):
            self.decider = self.new_decider(self._decider)
        self.checkpoint = int(min([*(member.checkpoint for member in self.present), next_look(self)]))

    def _restart(self, n: int) -> list[MemberState]:
        """Restart all members but the monitor at the base. Returns the joined ones, which are due."""
        self.count_forgotten()
        for member in self.members:
            if not member.is_monitor:
                member.restart(self.base, self.log.width)
        self.gains = np.array([member.prior for member in self.spec.members if member.joins <= n - self.base])
        return self.present

    def count_forgotten(self) -> None:
        if self.base and self.log.n_actions is not None:
            before = self.log[: self.base]
            self.forgotten = Tally.nothing(self.log.n_actions).with_rows(before.actions, before.losses)

    # -- saving

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the header and the arrays of a file."""
        with self.lock:
            return engine_file_content(self)

    def restore(self, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Continue from the content of a file."""
        restore_engine_from_file(self, header, arrays)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle and copy like a file: the log is in memory, the lock is new."""
        return {"spec": self.spec, "encoder": self.encoder, "log": self.log.empty(), "saved": self.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["spec"], state["encoder"], state["log"], UniformStream(None))  # type: ignore[misc]
        self.restore(*state["saved"])
