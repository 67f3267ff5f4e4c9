"""The coefficients of every action's score as a table, per unit of the input."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from o2pl.data.contexts import as_contexts
from o2pl.encode.feature_names import column_feature_names, entry_feature_names
from o2pl.errors import InvalidInput, MissingExtra
from o2pl.explaining.explanation import member_name_in_explanation
from o2pl.explaining.terms import INTERCEPT, dense_terms
from o2pl.features.hashing import Hashed
from o2pl.features.user_items import HEAD, UserItems
from o2pl.policies.actionwise import ActionWise
from o2pl.policies.gaussian import Gaussian
from o2pl.policies.sampling import acting_parts
from o2pl.policies.sparse import SparseSoftmax
from o2pl.protocols import Floats

if TYPE_CHECKING:
    from rich.table import Table

    from o2pl.engine.decider import Decider

_SHOWN = 20  # number of printed terms per member
_WIDE = 6  # largest number of action columns


class Row(NamedTuple):
    """One coefficient."""

    member: str
    weight: float
    action: Any
    term: str
    coefficient: float


class MemberTable(NamedTuple):
    """The coefficients of one member."""

    name: str
    weight: float  # among the members
    terms: list[str]
    values: Floats  # [terms, actions]


@dataclass(frozen=True, repr=False)
class Coefficients:
    """Coefficients of all members, score = Σ coefficient × term. Rows: (member, weight, action, term, coefficient).

    Coefficients are per unit of the input: the standardisation is undone. (Inputs more than five standard deviations
    from their mean are clipped first.) A term is the intercept, an input, a product of two inputs (`a × b`) or a square
    (`a²`). For items with features, all items share the weights. For real-valued actions, the score is their mean.
    """

    actions: tuple[Any, ...]
    members: tuple[MemberTable, ...]

    def __iter__(self) -> Iterator[Row]:
        for name, weight, terms, values in self.members:
            for term, of_actions in zip(terms, values.tolist(), strict=True):
                for action, value in zip(self.actions, of_actions, strict=True):
                    yield Row(name, weight, action, term, value)

    def __len__(self) -> int:
        return sum(member.values.size for member in self.members)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per coefficient."""
        try:
            import pandas as pd  # its stubs are a package of their own
        except ModuleNotFoundError:
            raise MissingExtra(
                "to_frame needs pandas: pip install pandas. Without pandas, iterate over the rows"
            ) from None
        return pd.DataFrame(list(self), columns=list(Row._fields))

    def __str__(self) -> str:
        from rich.console import Console

        written = io.StringIO()
        console = Console(file=written, width=110, color_system=None)
        self._print(console)
        return "\n".join(line.rstrip() for line in written.getvalue().splitlines())

    __repr__ = __str__

    def _print(self, console: Any) -> None:
        for place, member in enumerate(self.members):
            console.print("\n" * bool(place) + f"{member.name}, weight {member.weight:.3f}", highlight=False)
            console.print(self._table(member))
            left = max(len(member.terms) - _SHOWN, 0), max(len(self.actions) - _WIDE, 0)
            if any(left):
                console.print(f"{left[0]} smaller terms and {left[1]} more actions: see to_frame()", highlight=False)

    def _table(self, member: MemberTable) -> Table:
        """Return a table of the largest coefficients in order."""
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        table.add_column("term", overflow="fold")
        shown = self.actions[:_WIDE]
        for action in shown:
            table.add_column(str(action), justify="right", no_wrap=True)
        order = np.sort(np.argsort(-np.abs(member.values).max(axis=1), kind="stable")[:_SHOWN])
        for place in order.tolist():
            table.add_row(member.terms[place], *(f"{value:+.4g}" for value in member.values[place, : len(shown)]))
        return table

    def _repr_html_(self) -> str:
        from rich.console import Console

        console = Console(record=True, file=io.StringIO(), width=110)
        self._print(console)
        return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


def coefficients(decider: Decider, labels: Sequence[str] = (), contexts: object = None) -> Coefficients:
    """Return the coefficients of a decider's policy. contexts: examples that restore the names of hashed features."""
    weights = acting_parts(decider.acting, len(decider.members), decider.n_actions or 0).weights
    numbered: tuple[Any, ...] = tuple(range(decider.n_actions or 0)) or ("all",)
    tables, actions = [], decider.names or numbered
    words = _words_of_coefficients(decider, contexts)
    for m, (member, weight) in enumerate(zip(decider.members, weights.tolist(), strict=True)):
        name = labels[m] if m < len(labels) else member_name_in_explanation(member)
        if isinstance(member.features, Hashed):
            terms, values = _hashed_coefficients(member, words)
        else:
            terms, values = _dense_coefficients(decider, member)
        tables.append(MemberTable(name, weight, terms, values))
    return Coefficients(actions, tuple(tables))


def _dense_coefficients(decider: Decider, member: Any) -> tuple[list[str], Floats]:
    seen = dense_terms(member)
    if seen is None:
        raise InvalidInput(
            f"coefficients: found {type(member.policy).__name__} on {type(member.features).__name__}, whose scores are"
            " not"
            " sums over inputs and their products; expected linear or quadratic members"
        )
    constant, linear, products = seen.per_unit()
    if isinstance(member.policy, Gaussian):
        constant = constant + member.policy.centre
    names = [one.name for one in column_feature_names(decider.encoder, linear.shape[1])]
    rows, columns = np.triu_indices(products.shape[1])
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    terms = [INTERCEPT, *names, *(f"{names[i]}²" if i == j else f"{names[i]} × {names[j]}" for i, j in pairs)]
    values = np.concatenate([constant[:, None], linear, products[:, rows, columns]], axis=1).T
    if isinstance(member.features, UserItems):  # products are of users and items; list slots have their own intercepts
        some = [place for place, own in enumerate(values) if place == 0 or own.any()]
        terms, values = [terms[place] for place in some], values[some]
        levels = {f"slot {place}": member.params[place] for place in range(1, HEAD) if member.params[place]}
        terms, values = [*terms, *levels], np.concatenate([values, np.array([*levels.values()]).reshape(-1, 1)])
    return terms, values


def _words_of_coefficients(decider: Decider, contexts: Any) -> dict[int, str]:
    """Return the names of hashed features by index: those known to the reader, and those in the given contexts."""
    encoder = decider.encoder
    if encoder.words is None:
        return {}
    found: dict[int, str] = {}
    for hashed, (path, word) in encoder.words.words().items():
        found[hashed & (encoder.words.width - 1)] = path if word is None else f"{path}={word}"
    for context in () if contexts is None else contexts:
        rows = as_contexts(encoder.encode_one(context)).own
        indices, names = rows.indices, entry_feature_names(encoder, context)
        found |= dict(zip(indices.tolist(), (one.name for row in names for one in row), strict=True))
    return found


def _hashed_coefficients(member: Any, words: dict[int, str]) -> tuple[list[str], Floats]:
    """Return coefficients per unit. The presence of a number is a separate term, w · (0 - mean) / deviation."""
    policy = member.policy
    if not isinstance(policy, SparseSoftmax | ActionWise):
        raise InvalidInput(f"coefficients: found {type(policy).__name__}, expected SparseSoftmax or ActionWise")
    W = member.params.reshape(-1, getattr(policy, "n_actions", 1)).astype(np.float64)
    index, scale = member.seen["feature"][: len(W)], member.seen["scale"][: len(W)].astype(np.float64)
    terms, values = [INTERCEPT], [W[0]]
    for slot in range(1, len(index)):
        name = words.get(int(index[slot]), f"feature {index[slot]}")
        shift, by = scale[slot]
        terms.append(name)
        values.append(W[slot] * by)
        if shift * by:
            terms.append(f"{name} is there")
            values.append(-W[slot] * shift * by)
    return terms, np.array(values)
