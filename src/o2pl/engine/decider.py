"""`Decider`: an immutable, thread-safe snapshot of the acting policy, without the log. It can be published."""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl import _core
from o2pl._core import Packed, Uncertainty, acting_rows, draw, draw_one, next_number
from o2pl.data.action_names import Names
from o2pl.data.contexts import ActionSets, Contexts, Row, are_sparse_contexts, as_contexts
from o2pl.data.decisions import Decision
from o2pl.data.kinds import offer_of
from o2pl.data.many_decisions import Decisions
from o2pl.data.offers import Offer, allowed_in_offer
from o2pl.encode import Encoder
from o2pl.engine.acting import ActingMember, packed_members, packed_offers, stacked_weights
from o2pl.engine.decider_files import decider_arguments_from_file, decider_file_content
from o2pl.engine.item_memory import NOTHING, ItemMemory
from o2pl.engine.list_decisions import list_decision_for_offer
from o2pl.engine.many import decide_many
from o2pl.engine.shortening import shortened
from o2pl.features.hashing import Hashed
from o2pl.features.user_items import item_inputs
from o2pl.kernels.registry import features_for_registered
from o2pl.lazily import called_lazily
from o2pl.policies.actionwise import ActionWise
from o2pl.policies.cells import Cells
from o2pl.policies.gaussian import Gaussian
from o2pl.policies.sampling import (
    acting_among,
    with_exploration,
)
from o2pl.policies.softmax import Softmax
from o2pl.policies.sparse import SparseSoftmax
from o2pl.protocols import Array, Exploration, Floats, Ints
from o2pl.storage import packed_storage, write_storage
from o2pl.validation import check_number

if TYPE_CHECKING:
    from o2pl.explaining import Coefficients, Explanation

_STRETCH = 2**14  # rows per block of scores


class Decider:
    """The acting policy: members' scores → mixture → exploration → draw. `acting`: see `acting_numbers`."""

    def __init__(
        self, members: Sequence[ActingMember], acting: Floats, sharpness: float, encoder: Encoder,
        before: Decider | None = None, names: Names = (), items: ItemMemory = NOTHING,
        exploration: Exploration | None = None, uncertainty: Uncertainty | None = None,
    ) -> None:  # fmt: skip
        """before: an earlier decider of the same members; unchanged parts are reused.

        items: item effects by id, and exploration of rarely played items. uncertainty: of predictions for numeric rows.
        """
        self.members, self.sharpness, self.encoder, self.names = tuple(members), sharpness, encoder, names
        self.acting, self.items, self._exploration = acting, items, exploration
        self._offers = packed_offers(self.members, encoder)
        self.uncertainty = uncertainty
        packed_before = None if before is None else before._packed
        self._packed: Packed | None = packed_members(self.members, encoder, packed_before, uncertainty)
        self.continuous = bool(self.members[0].policy.continuous)
        self._one = self._single()

    def __reduce__(self) -> Any:
        """Pickle and copy the parts; what is packed of them is packed again."""
        given = (
            [*self.members],
            self.acting,
            self.sharpness,
            self.encoder,
            None,
            self.names,
            self.items,
            self._exploration,
        )
        return _decider_with, (given, None if self.uncertainty is None else self.uncertainty.parts)

    def decide_in(self, rounds: _core.Rounds) -> None:
        """Let `rounds` make decisions on numeric rows, or sets of them; on others they are left to this decider."""
        policy, params = self.members[0].policy, self.members[0].params
        if self._one == self._within:
            rounds.decide_within(self._packed, self.acting, policy.numbers)
        elif self._one == self._number:
            rounds.decide_normal(self._packed, policy.centre, policy.split(params)[1])
        else:
            plain = self._one in (self._row, self._set)
            rounds.decide_by(self._packed if plain else None, self.acting, self.names or None)

    # -- one decision

    def decide(self, context: object, uniform: float, allowed: Ints | None = None) -> Decision:
        """Draw an action for a context from a uniform number in [0, 1). Returns it with its probability (density).

        allowed: indices of the allowed actions, for a fixed number of actions; None: all.
        """
        if allowed is not None:
            return self._among(context, allowed, uniform)
        if self._one is not None:
            drawn: Decision | None = self._one(context, uniform)
            if drawn is not None:
                return drawn
            if not self.encoder.items:  # a list, or a row with names
                drawn = self._one(self.encoder.entry(context), uniform)
                if drawn is not None:
                    return drawn.keep(context, drawn.number)
        actions, propensities = self.sample(self.encoder.encode_one(context), np.array([uniform]))
        action = self.names[actions[0]] if self.names else actions[0].item()
        return Decision(action, float(propensities[0])).keep(context)

    def _single(self) -> Any:
        """Return the fast path for a single context; None if only the batch path supports it."""
        policy = self.members[0].policy
        if self._offers is not None:
            return self._offer
        if self._packed is not None:
            kinds = {Softmax: self._row, ActionWise: self._set, Gaussian: self._number, Cells: self._within}
            return kinds[type(policy)]
        first, kinds_of = self.members[0], {type(member.policy) for member in self.members}
        alike = len(kinds_of) == 1 and all(member.seen is first.seen for member in self.members)
        if alike and isinstance(first.features, Hashed) and kinds_of <= {SparseSoftmax, ActionWise}:
            slots = first.features.slot_of(first.seen), first.seen["scale"]
            W = stacked_weights(self.members, getattr(policy, "n_actions", 1))  # of sets: one weight per slot
            self._hashed = _core.HashedMembers(*slots, W, len(self.members), self.uncertainty)
            return self._set_of_dictionaries if self.encoder.items else self._dictionary
        return None

    def _row(self, context: Any, uniform: float) -> Decision | None:
        # `Decision.keep`, inlined and with bytes instead of an array: a call would take 5 % of the time
        drawn = self._packed.decide(context, self.acting, uniform)  # type: ignore[union-attr]  # chosen with it
        if drawn is None:
            return None
        decision = _decision(Decision, (self.names[drawn[0]], drawn[1]) if self.names else drawn)
        decision.kept = next_number(), context.tobytes(), context.dtype
        return decision

    def _set(self, context: object, uniform: float) -> Decision | None:
        drawn = self._packed.decide(context, self.acting, uniform)  # type: ignore[union-attr]  # chosen with it
        return None if drawn is None else _decision(Decision, drawn).keep(context)

    def _offer(self, context: object, uniform: float) -> Decision:
        assert self._offers is not None
        sets = self.encoder.entry(context)
        slot = 0 if sets.slots is None else int(sets.slots[0])
        if sets.item_ids is not None or self.uncertainty is not None:
            return self._by_id(sets, uniform).keep(sets)
        drawn = _core.decide_item(slot, sets.shared, sets.values, self._offers.numbers, self.acting, uniform)
        return _decision(Decision, drawn).keep(sets)

    def _by_id(self, sets: ActionSets, uniform: float) -> Decision:
        pi = self._probabilities(sets)
        place = draw_one(pi, uniform)
        return Decision(place, float(pi[place]))

    def with_items(self, items: ItemMemory) -> Decider:
        """Return the same policy with another item memory; all else is shared."""
        made = copy.copy(self)  # its parts do not change
        made.items = items
        return made

    def __copy__(self) -> Decider:
        made = object.__new__(Decider)
        made.__dict__.update(self.__dict__)
        made._one = made._single()
        return made

    def exploring(self, share: float) -> Decider:
        """Return a decider that makes this fraction of its decisions uniformly at random."""
        acting = with_exploration(self.acting, check_number("share", share, 0, 1))
        return Decider(
            self.members, acting, self.sharpness, self.encoder, self, self.names, self.items, self._exploration,
            self.uncertainty,
        )  # fmt: skip

    @property
    def knows_items(self) -> bool:
        """Whether it has effects of single items by id."""
        return len(self.items.codes) > 0

    def effects(self, item_ids: Ints) -> Floats:
        """Return the item effects, which are added to log π: rewards beyond the prediction from features. [K]"""
        return np.zeros(len(item_ids)) if self._exploration is None else self.items.of(item_ids)[1]

    def among(self, context: object, allowed: Ints) -> Floats:
        """Return the acting policy restricted to the allowed actions; their probabilities only."""
        rows = self.encoder.encode_one(context)
        scores = np.ascontiguousarray(self.scores(rows).reshape(len(self.members), -1)[:, allowed])
        pi, ends = np.empty(len(allowed)), np.array([0, len(allowed)])
        variance, bonus = self.doubt(rows, allowed)
        acting_rows(scores, ends, acting_among(self.acting, len(self.members), allowed), pi, variance, bonus)
        return pi

    def doubt(self, rows: Any, allowed: Ints | slice = slice(None)) -> tuple[Floats | None, Floats | None]:
        """Return the variances of the predicted log-odds and the optimism, [n k] each; None without. See `sampling`."""
        contexts, first = as_contexts(rows), self.members[0]
        if contexts.item_ids is not None and self._exploration is not None:
            added = [
                self.items.added(own, self._exploration) for own in np.split(contexts.item_ids, contexts.offsets[1:-1])
            ]
            return self.items.uncertain(rows), np.concatenate(added)
        if self.uncertainty is None:
            return None, None
        if contexts.items is not None:
            return self._doubt_of_sets(contexts)
        own = contexts.own
        if are_sparse_contexts(own):
            laid = first.features.transform(first.seen, own)
            variance, bonus = self.uncertainty.at_slots(laid.indices, laid.values, laid.offsets)
        else:
            variance, bonus = self.uncertainty.at(np.ascontiguousarray(own, np.float32))
        return tuple(np.ascontiguousarray(each[:, allowed]).reshape(-1) for each in (variance, bonus))  # type: ignore[return-value]  # two

    def _doubt_of_sets(self, contexts: Contexts) -> tuple[Floats, Floats]:
        first, inputs = self.members[0], contexts.inputs
        assert self.uncertainty is not None
        if are_sparse_contexts(inputs):
            laid = first.features.transform(first.seen, inputs)
            return self.uncertainty.at_each_slots(laid.indices, laid.values, laid.offsets)
        return self.uncertainty.at_each(item_inputs(first.features, first.seen, inputs))

    def _among(self, context: object, allowed: Ints, uniform: float) -> Decision:
        pi = self.among(context, allowed)
        place = draw_one(pi, uniform)
        action = int(allowed[place])
        return Decision(self.names[action] if self.names else action, float(pi[place])).keep(context)

    def _number(self, context: object, uniform: float) -> Decision | None:
        score, member = self._packed.score(context), self.members[0]  # type: ignore[union-attr]  # chosen with it
        if score is None:
            return None
        (action,), (density,) = member.policy.sample(np.array([score]), member.params, np.array([uniform]))
        return Decision(float(action), float(density)).keep(context)

    def _within(self, context: Any, uniform: float) -> Decision | None:
        pi = self._packed.policy(context, self.acting)  # type: ignore[union-attr]  # chosen with it
        if pi is None:
            return None
        (action,), (density,) = self.members[0].policy.draw(pi[None], np.array([uniform]))
        decision = _decision(Decision, (float(action), float(density)))
        decision.kept = next_number(), context.tobytes(), context.dtype
        return decision

    def _dictionary(self, context: object, uniform: float) -> Decision:
        row: Row = self.encoder.entry(context)
        drawn = self._hashed.decide(*row, self.acting, uniform)
        decision = _decision(Decision, (self.names[drawn[0]], drawn[1]) if self.names else drawn)
        copy = self.encoder.copied(context)
        if copy is None:
            return decision.keep(context)
        decision.kept = next_number(), copy, None
        return decision

    def _set_of_dictionaries(self, context: object, uniform: float) -> Decision | None:
        sets = self.encoder.entry(context)
        if len(sets.offsets) != 2:
            return None
        if sets.item_ids is not None:
            return self._by_id(sets, uniform).keep(context)
        rows = sets.values
        drawn = self._hashed.decide_set(rows.indices, rows.values, rows.offsets, self.acting, uniform)
        return _decision(Decision, drawn).keep(context)

    def act(
        self, context: Any, items: Any = None, *, ids: Any = None, exclude: Any = None, slots: int | None = None
    ) -> Decision:
        """Like a learner's `act`, with its own random numbers."""
        if items is None and ids is None and exclude is None and slots is None and type(context) is not Offer:
            return self.decide(context, random.random())
        if items is None and not self.encoder.items:
            allowed = allowed_in_offer(self.n_actions or 0, exclude, names=self.names)
            return self.decide(context, random.random(), allowed)
        offer = offer_of(context, items, ids, exclude)
        return list_decision_for_offer(lambda sets: self.decide(sets, random.random()), self.encoder, offer, slots)

    def act_many(self, contexts: object) -> Decisions:
        """Like a learner's `act_many`, with its own random numbers; it keeps no decision."""
        rows = self.encoder.encode(contexts)
        return decide_many(self, contexts, rows, np.array([random.random() for _ in range(len(rows))]))

    # -- batches of checked rows

    def scores(self, rows: Any) -> Floats:
        """Return the scores of all members, flat: [M, n K], or [M, total] for action sets."""
        if self._offers is not None:
            return self._offers.scores(rows)
        if self._packed is not None:
            own = as_contexts(rows).own
            return self._packed.scores(np.ascontiguousarray(own, np.float32)).reshape(len(self.members), -1)
        made: list[Floats] = []
        features, of = None, None  # members with the same state share their features
        for m in self.members:
            if of is None or m.seen is not of.seen or m.features is not of.features:
                features, of = features_for_registered(m.features, m.seen, rows), m
            made.append(m.policy.scores(m.params, features).reshape(-1))
        return np.stack(made)

    def probabilities(self, rows: Any) -> Floats:
        """Return the acting policy's probabilities, [n, K]; flat, [total], for action sets."""
        parts = [self._probabilities(rows[start : start + _STRETCH]) for start in range(0, len(rows), _STRETCH)]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.empty((0, self.n_actions or 0))

    def predict_proba(self, contexts: object) -> Floats:
        """Return the acting policy's probabilities for raw contexts, like a learner's `predict_proba`."""
        return self.probabilities(self.encoder.encode(contexts))

    def predict_density(self, contexts: object, actions: object) -> Floats:
        """Return densities of real-valued actions for raw contexts, like a learner's `predict_density`."""
        return self.likelihoods(self.encoder.encode(contexts), np.asarray(actions, np.float64))

    def nodes(self, contexts: object) -> tuple[Floats, Floats]:
        """Return quadrature nodes [n, 2] and weights [2] of the policy, exact for quadratic functions of the action."""
        means, deviations = self.moments(self.encoder.encode(contexts))
        return np.stack([means - deviations, means + deviations], axis=1), np.full(2, 0.5)

    @property
    def actions_(self) -> Names:
        """The names of the actions; empty if they have none."""
        return self.names

    def _probabilities(self, rows: object) -> Floats:
        scores = self.scores(rows)
        out = np.empty(scores.shape[1])
        contexts = as_contexts(rows)
        acting_rows(scores, contexts.ends(scores.shape[1]), self.acting, out, *self.doubt(rows))
        return contexts.table(out)

    @property
    def cells(self) -> Cells | None:
        """The cells of a real-valued action within bounds, to which `probabilities` refer."""
        policy = self.members[0].policy
        return policy if isinstance(policy, Cells) else None

    @property
    def n_actions(self) -> int | None:
        return getattr(self.members[0].policy, "n_actions", None)

    def sample(self, rows: object, uniforms: Floats) -> tuple[Array, Floats]:
        """Draw one action per row from one uniform number each. Returns actions and probabilities (densities)."""
        cells = self.cells
        if cells is not None:
            return cells.draw(self.probabilities(rows), uniforms)
        if self.continuous:
            member = self.members[0]
            actions, densities = member.policy.sample(self.scores(rows)[0], member.params, uniforms)
            return actions, densities
        pi = self.probabilities(rows)
        return draw(np.ascontiguousarray(pi).reshape(-1), as_contexts(rows).ends(pi.size), uniforms)

    def means(self, rows: object) -> Floats:
        """Return the mean of real-valued actions, [n]."""
        return self.moments(rows)[0]

    def moments(self, rows: object) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of real-valued actions, [n] each."""
        cells = self.cells
        if cells is not None:
            return cells.moments(self.probabilities(rows))
        member = self.members[0]
        mean, deviation = member.policy.moments(self.scores(rows)[0], member.params)
        return np.asarray(mean), np.asarray(deviation)

    def likelihoods(self, rows: object, actions: Array) -> Floats:
        """Return π(a_s|x_s) of the acting policy, [n]."""
        cells = self.cells
        if cells is not None:
            return cells.density(self.probabilities(rows), actions)
        if self.continuous:
            member = self.members[0]
            return np.asarray(member.policy.density(self.scores(rows)[0], member.params, actions))
        return np.asarray(self.probabilities(rows)[as_contexts(rows).places(actions)])

    def member_likelihoods(self, rows: Any, actions: Ints) -> Floats:
        """Return π_m(a_s|x_s) of every member acting alone, without exploration. [M, n]"""
        out = np.empty((len(self.members), len(rows)))
        for start in range(0, len(rows), _STRETCH):
            own = slice(start, start + _STRETCH)
            scores = self.scores(rows[own])
            for m, each in enumerate(scores):
                ends = as_contexts(rows[own]).ends(len(each))
                _core.played_probabilities(each, ends, actions[own], self.sharpness, out[m, own])
        return out

    # -- explanations

    def explain(
        self, context: object, items: object = None, *, ids: object = None, exclude: object = None,
        action: object = None, against: object = None,
    ) -> Explanation:  # fmt: skip
        """Explain a decision like a learner's `explain`, without the support in the log: a decider has no log."""
        given = context, items, ids, exclude
        found: Explanation = called_lazily("o2pl.explaining.explanation", "explanation_of")(
            self, given, action, against
        )
        return found

    def coefficients(self, contexts: object = None) -> Coefficients:
        """Return the coefficients like a learner's `coefficients`."""
        found: Coefficients = called_lazily("o2pl.explaining.coefficients", "coefficients")(self, contexts=contexts)
        return found

    # -- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save to one file that `o2pl.load` reads. It contains no log."""
        write_storage(path, *self.content())

    def to_bytes(self) -> bytes:
        """Return the content of `save` as compressed bytes, with arrays in the smallest exact type."""
        return packed_storage(*shortened(*self.content()))

    def content(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the header and the arrays of a file."""
        memory = self.items if self.knows_items else None
        return decider_file_content(
            self.members, self.acting, self.sharpness, self.encoder, self.names, memory, self._exploration,
            self.uncertainty,
        )  # fmt: skip

    @classmethod
    def restore(cls, header: dict[str, Any], arrays: dict[str, Array]) -> Decider:
        """Restore from the content written by `save` or `to_bytes`."""
        return cls(*decider_arguments_from_file(header, arrays))


def _decider_with(given: tuple[Any, ...], parts: tuple[Any, ...] | None) -> Decider:
    arguments: list[Any] = [*given, None if parts is None else Uncertainty.from_parts(*parts)]
    return Decider(*arguments)


_decision = tuple.__new__  # the constructor of a named tuple, without its argument handling
