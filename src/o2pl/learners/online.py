"""Algorithm 1 and its schedules: members on one log, re-learned at checkpoints, acting as one mixture in between.

Between two checkpoints nothing that decisions depend on changes (features' statistics, parameters, shares), so a
stretch of rounds can be decided as one batch with exactly the decisions that one call per round would have made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.features.blocks import Recipe, recipe
from o2pl.interactions import Decision, Interactions, Log
from o2pl.learners.kernels.replay import all_finite
from o2pl.learners.members import LINEAR, STRETCH, Member, MemberState, shared_control
from o2pl.learners.schedules import Replay, Schedule
from o2pl.learners.settings import Settings
from o2pl.learners.single import ROWS, SingleSet, single
from o2pl.learners.stream import UniformStream
from o2pl.learners.threads import one_blas_thread
from o2pl.learners.union import progressive_gains, shares
from o2pl.oracles.lbfgs import LBFGS
from o2pl.policies.sampling import draw, draw_one, draw_rows
from o2pl.protocols import Array, Floats
from o2pl.rows import ActionSets
from o2pl.validation import check_action_sets, check_actions, check_context

OFFLINE = LBFGS(iterations=500, tolerance=1e-6)


class Online:
    """The engine inside `O2PL` and `GaussianO2PL`."""

    def __init__(
        self,
        members: Sequence[Member],
        policies: Sequence[Any],
        settings: Settings,
        update: Schedule,
        log: Log,
        stream: UniformStream,
        sharpness: float = 1.0,
        exploration: float = 0.0,
    ) -> None:
        self.members = [
            MemberState.start(member, policy, settings, log.width)
            for member, policy in zip(members, policies, strict=True)
        ]
        self.settings, self.update, self.log, self.stream = settings, update, log, stream
        self.sharpness, self.exploration = sharpness, exploration
        if any(later.joins < earlier.joins for earlier, later in pairwise(self.members)) or self.members[0].joins:
            found = [member.joins for member in self.members]
            raise InvalidInput(f"policy: found members that join after {found} rows, expected 0 first, then ascending")
        self.gains = np.zeros(sum(member.joins == 0 for member in self.members))  # of those that have joined
        self._weighed: tuple[Floats, Floats] = (self.gains, shares(self.gains))
        self.linear_seen = LINEAR.init(log.width)  # of the control variate's features, where no member has the same
        self.continuous = not hasattr(self.members[0].policy, "probabilities")
        self.single = single(self.members, log, sharpness, exploration)
        self.learned = 0  # rows that the members have learned from
        self.checkpoint = update.after(0)

    @property
    def present(self) -> list[MemberState]:
        """The members that have joined, as of the last time they learned; at least one."""
        return self.members[: len(self.gains)]

    @property
    def effort(self) -> tuple[int, int]:
        """Solves so far, of all members, and evaluations of the objective in them."""
        solves, evaluations = np.sum([member.effort for member in self.members], axis=0)
        return int(solves), int(evaluations)

    # -- acting

    def probabilities(self, contexts: Any) -> Floats:
        """The acting policy: the members' mixture, sharpened, with exploration. [n, K]; flat for action sets."""
        policies = [m.policy.probabilities(m.params, m.featurise(contexts), self.sharpness) for m in self.present]
        mixed: Floats = policies[0]
        if len(policies) > 1:
            mixed = sum(share * each for share, each in zip(self._shares(), policies, strict=True))
        if self.exploration:
            choices = self.members[0].policy.choices(contexts)
            mixed = (1 - self.exploration) * mixed + self.exploration / choices
        return np.minimum(mixed, 1.0)  # rounding may carry a sure action a hair above 1

    def _shares(self) -> Floats:
        """Of the members that have joined; they change when something was learned."""
        if self._weighed[0] is not self.gains:
            self._weighed = (self.gains, shares(self.gains))
        return self._weighed[1]

    def sample(self, contexts: Any, uniforms: Floats) -> tuple[Array, Floats]:
        if self.continuous:
            first = self.members[0]
            actions, densities = first.policy.sample(first.params, first.featurise(contexts), uniforms)
            return actions, densities
        mixed = self.probabilities(contexts)
        if isinstance(contexts, ActionSets):
            return draw(mixed, contexts.offsets, uniforms)
        return draw_rows(mixed, uniforms)

    def decide(self, context: Any) -> Decision:
        if self.single is not None and (decision := self.single.decide(context, self.stream)) is not None:
            return decision
        contexts = self._one(context)
        if self.continuous or self.log.action_sets:
            actions, propensities = self.sample(contexts, np.array([self.stream.next()]))
            return Decision(actions[0].item(), float(propensities[0]))
        pi = self.probabilities(contexts)[0]
        action = draw_one(pi, self.stream.next())
        return Decision(action, float(pi[action]))

    def _one(self, context: Any) -> Any:
        if self.log.action_sets:
            return check_action_sets([context], self.log.width)
        if self._usable(context):
            return context.astype(np.float32, copy=False)[None]
        return check_context(context, self.log.width)[None]

    def _usable(self, context: Any) -> bool:
        """Whether a context is a row of finite numbers as it stands; whatever else is looked at closely."""
        plain = isinstance(context, np.ndarray) and context.shape == (self.log.width,) and context.dtype in ROWS
        return plain and all_finite(context)

    def run(self, contexts: Floats, losses: Any) -> Interactions:
        """Rounds on given contexts; `losses(rows, actions)` tells what came of them. Stretches between checkpoints."""
        with one_blas_thread(math.inf):
            return self._run(contexts, losses)

    def _run(self, contexts: Floats, losses: Any) -> Interactions:
        start, done = len(self.log), 0
        self.log.buffers(len(contexts))  # at once: growing would leave the log's buffers half empty
        while done < len(contexts):
            some = min(len(contexts) - done, self.checkpoint - len(self.log), STRETCH)
            rows = np.arange(done, done + some)
            stretch = contexts[done : done + some]
            actions, propensities = self.sample(stretch, self.stream.take(some))
            self.log.extend(Interactions(stretch, actions, losses(rows, actions), propensities))
            done += some
            self.learn_if_due()
        return self.log[start:]

    # -- learning

    def append(self, context: Any, action: Any, loss: float, propensity: float) -> None:
        """One interaction; loss and propensity have been checked."""
        if self.single is None or not self.single.record(context, action, loss, propensity):
            self._append(context, action, loss, propensity)
        self.learn_if_due()

    def _append(self, context: Any, action: Any, loss: float, propensity: float) -> None:
        if type(action) is int and not (self.continuous or self.log.action_sets) and self._usable(context):
            self.log.append(context, action, loss, propensity)
            return
        contexts = self._one(context)
        if self.continuous:
            actions: Array = np.array([action], np.float64)
        else:
            actions = check_actions([action], len(contexts.values) if isinstance(contexts, ActionSets) else None)
        self.log.extend(Interactions(contexts, actions, np.array([loss]), np.array([propensity])))

    def extend(self, rows: Interactions) -> None:
        """Many interactions, checked; they are learned from when `learn` is called."""
        self.log.extend(rows)

    def begin_at(self, rows: Interactions, params: Floats) -> None:
        """Take over a log that has been learned from elsewhere, with what the only member learned from it."""
        (member,) = self.members
        self.log.extend(rows)
        member.observe(rows.contexts)
        member.params = params
        self.learned, self.checkpoint = len(rows), self.update.after(len(rows))

    def imitate(self) -> None:
        """Start from the logger where a policy can: far from it all weights are 0, and so is the gradient."""
        rows = self.log.columns
        for member in self.members:
            if hasattr(member.policy, "imitate"):
                seen = member.features.observe(member.seen, rows.contexts)
                member.params = member.policy.imitate(member.features.transform(seen, rows.contexts), rows.actions)

    def learn_if_due(self) -> None:
        if len(self.log) >= self.checkpoint:
            self.learn()

    def learn(self, oracle: LBFGS | None = None) -> None:
        """Learn from the whole log now; with `oracle`, solve with it whatever the schedule says."""
        if isinstance(self.single, SingleSet):  # nothing there calls BLAS
            self._learn(oracle)
            return
        rows = len(self.log)
        if isinstance(self.update, Replay) and oracle is None:
            rows = min(rows, self.update.window)
        with one_blas_thread(rows * max(len(member.params) for member in self.present)):
            self._learn(oracle)

    def _learn(self, oracle: LBFGS | None) -> None:
        rows = self.log.columns
        new = rows[self.learned :]
        self._score(new)
        joined = sum(member.joins <= len(rows) for member in self.members)
        # A newcomer has the whole log to learn from: it starts with the gains of the best.
        for newcomer in self.members[len(self.gains) : joined]:
            newcomer.observe(rows[: self.learned].contexts)
        self.gains = np.concatenate([self.gains, np.full(joined - len(self.gains), self.gains.max())])
        for member in self.present:
            member.observe(new.contexts)
        window = rows
        if isinstance(self.update, Replay) and oracle is None:
            window = rows[max(0, len(rows) - self.update.window) :]
        control = None
        if self.settings.control is not None:
            n_actions = None if self.continuous else self.members[0].policy.n_actions
            control = shared_control(self._linear(new, window.contexts), window, n_actions, self.settings)
        for member in self.present:
            function = member.function(window, control)
            if oracle is not None:
                member.solve(function, oracle)
            elif isinstance(self.update, Replay):
                member.replay(function, self.update)
            else:
                member.solve(function, self.update.oracle)
        self.learned = len(rows)
        self.checkpoint = self.update.after(len(rows))

    def _linear(self, new: Interactions, contexts: Floats) -> Recipe:
        """The control variate's features: a member's, where one has the same."""
        for member in self.present:
            if member.features == LINEAR:
                return recipe(LINEAR, member.seen, contexts)
        self.linear_seen = LINEAR.observe(self.linear_seen, new.contexts)
        return recipe(LINEAR, self.linear_seen, contexts)

    def _score(self, new: Interactions) -> None:
        """How well each member, as it stood, would have done on rows it has not learned from."""
        if len(self.gains) == 1 or not len(new):
            return
        n = len(self.log)
        alpha = self.settings.alpha(n)
        baseline = self.settings.level(float(np.sum(self.log.columns.losses)), n)
        likelihoods = [member.likelihoods(new, self.sharpness) for member in self.present]
        self.gains = self.gains + progressive_gains(likelihoods, new, alpha, baseline)

    # -- saving

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        header = {"learned": self.learned, "checkpoint": self.checkpoint, "stream": self.stream.state()}
        arrays: dict[str, Array] = {"gains": self.gains, **self.log.state()}
        arrays |= {f"linear.{name}": array for name, array in self.linear_seen.items()}
        for k, member in enumerate(self.members):
            arrays |= {f"member{k}.{name}": array for name, array in member.arrays().items()}
        return header, arrays

    def restore(self, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        self.learned, self.checkpoint = header["learned"], header["checkpoint"]
        self.stream = UniformStream.restore(header["stream"])
        self.gains = arrays["gains"]
        self.log.restore(arrays)
        self.linear_seen = {name: arrays[f"linear.{name}"] for name in self.linear_seen}
        for k, member in enumerate(self.members):
            prefix = f"member{k}."
            member.restore({n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)})
