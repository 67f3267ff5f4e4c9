"""Explanation of a decision: the difference between two actions in one context as a sum of terms.

A member's part is a sum of terms: log π_m(a) - log π_m(b) = Σ_k c_mk. What decides (`policies.sampling`) is a weighted
sum of these. `O2PL` draws from p ∝ exp(sharpness (log P + bonus)), P = Σ_m ρ_m π_m, and

    log P(a) - log P(b) = Σ_m w_m Σ_k c_mk,  w_m = ρ_m L(π_m(a), π_m(b)) / L(P(a), P(b)),  L(x, y) = (x - y) / log(x/y)

exactly, since P(a) - P(b) = Σ_m ρ_m (π_m(a) - π_m(b)). With one member w is 1; members that agree have w = ρ.

`Bandit` compares predicted rewards, Q = Σ_m ρ_m σ(z_m): their log-odds differ by Σ_m w_m Σ_k c_mk with

    w_m = ρ_m (σ(z_m(a)) - σ(z_m(b))) (1/L(Q(a), Q(b)) + 1/L(1 - Q(a), 1 - Q(b))) / (log π_m(a) - log π_m(b))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from o2pl._core import acting_rows
from o2pl.data.contexts import are_sparse_contexts
from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput, nearest
from o2pl.explaining.action_support import LogSupport, action_support_in
from o2pl.explaining.situation import Given, Situation, shown_situation, situation
from o2pl.explaining.terms import INTERCEPT, Compared, Term, hashed_terms, terms_of
from o2pl.features.hashing import Hashed
from o2pl.features.user_items import UserItems
from o2pl.policies.neural import is_neural
from o2pl.policies.sampling import LEAST_VARIANCE, ActingParts, acting_numbers, log_softmax, predicted
from o2pl.protocols import Explored, Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from o2pl.engine.decider import Decider

_NONE = np.empty(0)
ITEM = "the item itself"  # effect of an item (by id) beyond its features
WHOLE = "all inputs"  # the only term of a member whose scores cannot be decomposed


class Feature(NamedTuple):
    """Contribution of a feature: its own terms, and half of each product with another. All sum to the difference.

    For linear and quadratic members that is its Shapley value against the average context.
    """

    name: str
    value: str  # in this context, or of this item
    against: str  # value of the other item, for action sets
    adds: float
    alone: float  # the part without products with other features


class MemberPart(NamedTuple):
    """The contribution of one member."""

    name: str
    weight: float  # ρ, among the members
    counts: float  # w, the factor of its terms in the mixture
    difference: float  # log π(action) - log π(against): the sum of its terms
    terms: tuple[Term, ...]


@dataclass(frozen=True, repr=False)
class Explanation:
    """The explanation of `action` compared with `against`.

    `terms` (inputs, pairwise products, the intercept) sum to `difference`: for `Bandit` the difference of the two
    actions' predicted log-odds of a reward, for `O2PL` that of their log probabilities before exploration and
    sharpening. `features` has the same sum by feature. `O2PL` multiplies `difference + bonus` by `sharpness`; `Bandit`
    tries actions whose `deviation` leaves it open which is better. A fraction `epsilon` is uniform choice.
    """

    action: Any
    against: Any  # None if there is only one action
    probabilities: dict[Any, float]  # of the acting policy
    without_exploration: dict[Any, float]  # the same without bonus, uncertainty and ε
    difference: float
    terms: tuple[Term, ...]  # largest first; zero terms are omitted
    features: tuple[Feature, ...]  # largest first, without the intercept
    intercept: float
    bonus: float  # what exploration adds to `action`, minus that of `against`
    epsilon: float
    sharpness: float | None  # None: predictions are compared
    deviation: float | None  # T: how uncertain it is which is better, in log-odds; None: policies are compared
    members: tuple[MemberPart, ...]
    unknown: tuple[str, ...]  # hashed features that were not learned yet
    support: LogSupport | None  # None without a log

    @property
    def propensity(self) -> float:
        """The probability of `action`."""
        return self.probabilities[self.action]

    @property
    def exploring(self) -> float:
        """The share of decisions in this context that are exploration."""
        alone = self.without_exploration
        return max(0.0, 1 - math.fsum(min(p, alone[action]) for action, p in self.probabilities.items()))

    def __str__(self) -> str:
        from o2pl.explaining.explanation_report import explanation_text

        return explanation_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from o2pl.explaining.explanation_report import explanation_html

        return explanation_html(self)

    def figure(self, most: int = 12) -> Figure:
        """Draw bars of the `most` largest contributions. `.savefig("why.png")` saves the figure."""
        from o2pl.explaining.explanation_report import draw_explanation

        return draw_explanation(self, most)


def explanation_of(
    decider: Decider,
    given: Given,
    action: object = None,
    against: object = None,
    labels: Sequence[str] = (),
    log: Interactions | None = None,
) -> Explanation:
    """Explain a decision of a decider. labels: names of the members; log: the rows it has learned from."""
    if decider.continuous:
        raise InvalidInput(
            "explain: found a policy with real-valued actions, expected discrete actions;"
            " use coefficients() for the mean of a GaussianO2PL, and predict_reward(contexts, actions)"
            " for the expected rewards of a ContinuousBandit"
        )
    here = situation(decider, given)
    pi, acting, actions = here.probabilities, here.acting, here.actions
    logs = log_softmax(here.scores)  # log π_m, [M, K]
    mixture = _mixture_in_explanation(acting, logs) if acting.sharpness else predicted(here.scores, acting).mixed
    decided = mixture + here.effects
    order = np.lexsort((-(decided + acting.bonus), -pi)).tolist()
    first = order[0] if here.chosen is None else here.chosen
    if action is not None:
        first = _place_in_explanation(action, actions, "action")
    second = next((place for place in order if place != first), first)
    if against is not None:
        second = _place_in_explanation(against, actions, "against")
        if second == first:
            raise InvalidInput(f"against: found {against!r}, which is the action itself, expected another one")
    counted = _counted_in_explanation(here, (first, second), logs, mixture)
    members = _members_in_explanation(decider, here, (first, second), counted, logs, labels)
    terms = _mixed_in_explanation(members, float(here.effects[first] - here.effects[second]))
    features, intercept = _explanation_by_feature(
        terms, shown_situation(decider, here, first), shown_situation(decider, here, second) if here.sets else {}
    )  # fmt: skip
    support = None
    if log is not None:
        looked_at = sorted({first, second}) if here.sets else range(len(pi))
        named, places = [actions[k] for k in looked_at], [here.places[k] for k in looked_at]
        support = action_support_in(log, decider.members[0], here.rows, named, places)
    alone = np.empty(len(pi))
    plain = acting_numbers(acting.weights, acting.sharpness, Explored(0.0, here.effects, _NONE), acting.predicting)
    acting_rows(here.scores, np.array([0, len(pi)]), plain, alone)
    return Explanation(
        action=actions[first],
        against=actions[second] if second != first else None,
        probabilities=dict(zip(actions, pi.tolist(), strict=True)),
        without_exploration=dict(zip(actions, alone.tolist(), strict=True)),
        difference=math.fsum(term.adds for term in terms),
        terms=terms,
        features=features,
        intercept=intercept,
        bonus=float(acting.bonus[first] - acting.bonus[second]),
        epsilon=acting.epsilon,
        sharpness=acting.sharpness or None,
        deviation=None
        if acting.sharpness
        else _deviation_in_explanation(here.variance, decided + acting.bonus, first, second),
        members=members,
        unknown=_unknown_in_explanation(decider, here, (first, second)),
        support=support,
    )


def _place_in_explanation(given: object, actions: list[Any], what: str) -> int:
    given = given.item() if isinstance(given, np.generic) else given
    if given in actions and not isinstance(given, bool):
        return actions.index(given)
    if isinstance(given, str) and isinstance(actions[0], str):
        raise InvalidInput(f"{what}: found {given!r}, {nearest(given, actions)}")
    some = ", ".join(repr(one) for one in actions[:8]) + (", …" if len(actions) > 8 else "")
    raise InvalidInput(f"{what}: found {given!r}, expected one of {some}")


# -- members and their mixture


def _mixture_in_explanation(acting: ActingParts, logs: Floats) -> Floats:
    """Return log Σ_m ρ_m π_m. [K]"""
    with np.errstate(divide="ignore"):  # members may have weight 0
        return np.asarray(np.logaddexp.reduce(np.log(acting.weights)[:, None] + logs, axis=0))


def _deviation_in_explanation(variance: Floats | None, u: Floats, first: int, second: int) -> float:
    """Return T of `policies.sampling` for these two actions: the excess of the one that is behind."""
    ahead, behind = (first, second) if u[first] >= u[second] else (second, first)
    excess = 0.0 if variance is None else max(0.0, float(variance[behind] - variance[ahead]))
    return math.sqrt(excess + LEAST_VARIANCE)


def _counted_in_explanation(here: Situation, pair: tuple[int, int], logs: Floats, mixture: Floats) -> list[float]:
    """Return w of each member: the factor of its terms."""
    first, second = pair
    if here.acting.sharpness:
        whole = _log_mean_in_explanation(mixture[first], mixture[second])
        log_means = (_log_mean_in_explanation(own[first], own[second]) for own in logs)
        return [rho * math.exp(own - whole) for rho, own in zip(here.acting.weights.tolist(), log_means, strict=True)]
    found = predicted(here.scores, here.acting)
    win, lose = found.wins @ here.acting.weights, found.losses @ here.acting.weights  # Q and 1 - Q, [K]
    slope = math.exp(-_log_mean_in_explanation(*np.log(win[[first, second]]))) + math.exp(
        -_log_mean_in_explanation(*np.log(lose[[first, second]]))
    )
    apart, moved = logs[:, first] - logs[:, second], found.wins[first] - found.wins[second]
    steep = np.divide(moved, apart, out=np.zeros(len(apart)), where=np.abs(apart) > 1e-12)  # 0: they do not differ
    return [float(one) for one in here.acting.weights * slope * steep]


def _members_in_explanation(
    decider: Decider, here: Situation, pair: tuple[int, int], counted: Sequence[float], logs: Floats,
    labels: Sequence[str],
) -> tuple[MemberPart, ...]:  # fmt: skip
    first, second = pair
    places = (first, second) if here.sets else (here.places[first], here.places[second])
    compared = Compared(here.inputs, here.sets, *places, here.names)
    made = []
    for m, (member, weight) in enumerate(zip(decider.members, here.acting.weights.tolist(), strict=True)):
        terms = terms_of(member.policy, member, compared)
        if terms is None:
            terms = [Term(WHOLE, (WHOLE,), float(logs[m, first] - logs[m, second]))]
        name = labels[m] if m < len(labels) else member_name_in_explanation(member)
        difference = math.fsum(term.adds for term in terms)
        made.append(MemberPart(name, weight, counted[m], difference, _sorted_explanation(terms)))
    return tuple(made)


def member_name_in_explanation(member: Any) -> str:
    """Return the member's name, by its features."""
    if isinstance(member.features, Hashed):
        return "hashed"
    if is_neural(member.policy):
        return "neural"
    if isinstance(member.features, UserItems):
        return "user × items"
    if member.plan is None:
        return type(member.policy).__name__
    return "quadratic" if len(member.plan.product_shift) else "linear"


def _log_mean_in_explanation(a: float, b: float) -> float:
    """Return log L(e^a, e^b) with L(x, y) = (x - y) / log(x/y), and L(x, x) = x."""
    apart = abs(a - b)
    if apart < 1e-6:
        return (a + b) / 2
    grown = apart + math.log(-math.expm1(-apart))  # log(e^apart - 1)
    return min(a, b) + grown - math.log(apart)


def _mixed_in_explanation(members: Sequence[MemberPart], effect: float) -> tuple[Term, ...]:
    """Return the members' terms, added up by name, and the item's own effect."""
    parts: dict[str, tuple[tuple[str, ...], list[float]]] = {}
    for member in members:
        for term in member.terms:
            parts.setdefault(term.name, (term.features, []))[1].append(member.counts * term.adds)
    mixed = [Term(name, features, math.fsum(adds)) for name, (features, adds) in parts.items()]
    return _sorted_explanation([*mixed, Term(ITEM, (ITEM,), effect)])


def _sorted_explanation(terms: Sequence[Term]) -> tuple[Term, ...]:
    return tuple(sorted((t for t in terms if t.adds or t.name == INTERCEPT), key=lambda term: -abs(term.adds)))


# -- by feature


def _explanation_by_feature(
    terms: Sequence[Term], values: dict[str, str], against: dict[str, str]
) -> tuple[tuple[Feature, ...], float]:
    """Return the features, largest first, and the intercept."""
    alone: dict[str, list[float]] = {}
    shared: dict[str, list[float]] = {}
    intercept = 0.0
    for term in terms:
        if not term.features:
            intercept += term.adds
        for name in term.features:
            group = alone if len(term.features) == 1 else shared
            group.setdefault(name, []).append(term.adds / len(term.features))
    found = []
    for name in dict.fromkeys([*alone, *shared]):
        own = math.fsum(alone.get(name, ()))
        adds = math.fsum([*alone.get(name, ()), *shared.get(name, ())])
        found.append(Feature(name, values.get(name, ""), against.get(name, ""), adds, own))
    return tuple(sorted(found, key=lambda feature: -abs(feature.adds))), intercept


def _unknown_in_explanation(decider: Decider, here: Situation, pair: tuple[int, int]) -> tuple[str, ...]:
    """Return the features of a hashed row for which no member has weights."""
    if not are_sparse_contexts(here.inputs):
        return ()
    found: dict[str, None] = {}
    for row in dict.fromkeys(pair) if here.sets else (0,):
        slots, _ = hashed_terms(decider.members[0], here.inputs[row : row + 1])
        found |= {one.name: None for one, slot in zip(here.names[row], slots, strict=True) if slot == 0}
    return tuple(found)
