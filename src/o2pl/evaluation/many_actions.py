"""Very many actions: the value of a policy from what actions have in common.

Every action has features e (a category, a brand), drawn from P(e|a) or fixed. If rewards depend on actions through
their features only, weights of features replace those of actions, and vary far less:

    w(x, e) = Σ_a π(a|x) P(e|a) / Σ_a q(a|x) P(e|a)

    mips      mean w r
    offcem    mean w (r - f(x, e)) + Σ_a π(a|x) f(x, a)      f(x, a) = Σ_e P(e|a) f(x, e), a cross-fitted ridge
                                                             regression on x, the features, and their products

The logger's probabilities of all actions are needed, not only those of the logged ones. What f does not explain and the
features do not carry is a bias that no interval contains.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.evaluation.calibration import propensity_calibration
from o2pl.evaluation.evaluated_logs import as_evaluated_log, numeric_evaluated_log
from o2pl.evaluation.gains import Gains, ends_of_gains, gains_of_weights
from o2pl.evaluation.intervals import check_interval_delta
from o2pl.evaluation.judgement import Judgement, judge
from o2pl.evaluation.results import Valued
from o2pl.evaluation.unusable import unusable_log
from o2pl.learners.targets import Target, as_target, with_target_names
from o2pl.objectives.weights import effective_sample_size
from o2pl.protocols import Array, Floats, Ints
from o2pl.validation import RewardRange

_CELLS = 4_000_000  # entries of a block of rows and actions
_WIDEST = 600  # columns of the regression, with products
_FOLDS = 5
_PENALTIES = (1.0, 10.0, 100.0, 1000.0)
IF_CARRIED = ", if rewards depend on actions only through their features"


class Features(NamedTuple):
    """Features of actions: P(e_d = c | a), [K, C, D], and what each row showed, [n, D]."""

    shares: Floats
    shown: Ints

    def likelihood(self, rows: slice) -> Floats:
        """Return P(e_s | a) of some rows and all actions. [m, K]"""
        found = np.ones((len(self.shown[rows]), len(self.shares)))
        for d in range(self.shares.shape[2]):
            found *= self.shares[:, self.shown[rows, d], d].T
        return found

    @property
    def of_actions(self) -> Floats:
        """Return the expected indicators of the features. [K, C D]"""
        return np.asarray(self.shares.reshape(len(self.shares), -1))

    def of_rows(self) -> Floats:
        """Return the indicators of what the rows showed. [n, C D]"""
        n, (_, count, dims) = len(self.shown), self.shares.shape
        found = np.zeros((n, count, dims))
        found[np.arange(n)[:, None], self.shown, np.arange(dims)] = 1.0
        return found.reshape(n, -1)


@dataclass(frozen=True, eq=False)
class ManyActions:
    """The result of `evaluate_many_actions`. `print` shows a table."""

    policy: str
    estimates: tuple[Valued, ...]  # ips, mips, offcem
    effective: dict[str, float]  # effective sample sizes of the weights of actions, and of features
    baseline: Valued | None
    difference: Valued | None
    judgement: Judgement | None
    delta: float
    rows: int

    @property
    def value(self) -> float:
        return self.estimates[-1].value

    @property
    def interval(self) -> tuple[float, float]:
        return self.estimates[-1].low, self.estimates[-1].high

    @property
    def verdict(self) -> str:
        if self.judgement is None:
            one = self.estimates[-1]
            return f"{self.policy} is worth {one.value:.4g} ({one.low:.4g} to {one.high:.4g}){IF_CARRIED}"
        return self.judgement.sentence(IF_CARRIED)

    def __str__(self) -> str:
        from rich.console import Console
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        for heading in ("", "value", "from", "to", ""):
            table.add_column(heading, justify="right" if heading else "left")
        others = [one for one in (self.baseline, self.difference) if one is not None]
        for one in (*self.estimates, *others):
            table.add_row(one.name, *(f"{number:.4f}" for number in (one.value, one.low, one.high)), one.says)
        written = io.StringIO()
        Console(file=written, width=110, color_system=None).print(table)
        sizes = ", ".join(f"{size:,.0f} by {name}" for name, size in self.effective.items())
        lines = [line.rstrip() for line in written.getvalue().splitlines()]
        lines += [
            "",
            f"n = {self.rows:,}; effective sample size {sizes}",
            f"intervals: {1 - self.delta:.0%}, fixed sample",
        ]
        return "\n".join([*lines, f"verdict: {self.verdict}"])


def evaluate_many_actions(
    log: object,
    policy: object,
    features: object,
    *,
    logger: object,
    shown: object = None,
    baseline: object = None,
    delta: float = 0.05,
    reward_range: RewardRange | None = None,
) -> ManyActions:
    """Estimate the value of a policy over very many actions from their features.

    features: one row per action, [K, D], of categories (numbers or strings); or the probabilities of C categories,
    [K, C, D], with `shown`, the categories that each row showed, [n, D]. logger: the policy that made the log, as for
    `evaluate`, with the probabilities of all actions. `baseline` as for `evaluate`; "logged" is the logger.
    """
    check_interval_delta(delta)
    given = with_target_names(as_evaluated_log(log, reward_range), policy, logger, baseline)
    if given.encoded.items is not None or given.continuous or not given.has_propensities:
        raise InvalidInput("log: found action sets, real-valued actions or no propensities, expected numbered actions")
    rows = numeric_evaluated_log(given.thinned())
    raw = given.thinned().contexts
    known = _many_actions_features(features, shown, rows)
    made = as_target(logger, rows, "logger", contexts=raw)
    named = [("policy", policy)] + (
        [] if baseline is None or _many_actions_logged(baseline) else [("baseline", baseline)]
    )
    targets = [as_target(one, rows, name, contexts=raw) for name, one in named]
    columns = _many_actions_columns(rows, known, made, targets)
    f_shown, f_policies = _many_actions_modelled(rows, known, columns.expected)
    first = (f_shown, f_policies[0])
    own: list[_Side] = [(1, columns.marginal[0])]

    def gains(sides: list[_Side], model: tuple[Floats, Floats] | None = None) -> Gains:
        return gains_of_weights(rows.rewards, rows.reward_range, sides, model=model)

    estimates = (
        _many_actions_weighted("ips", "weights of actions", columns.plain[0], rows, delta),
        _many_actions_weighted("mips", "weights of features", columns.marginal[0], rows, delta),
        _many_actions_valued("offcem", "weights of features, and a reward model of them", gains(own, first), delta),
    )
    effective = {
        "actions": effective_sample_size(columns.plain[0]), "features": effective_sample_size(columns.marginal[0])
    }  # fmt: skip
    if baseline is None:
        return ManyActions(targets[0].name, estimates, effective, None, None, None, delta, len(rows))
    if _many_actions_logged(baseline):
        name, alone, both = "logged", gains([(1, None)]), gains([*own, (-1, None)], first)
    else:
        name, other = targets[1].name, columns.marginal[1]
        alone = gains([(1, other)], (f_shown, f_policies[1]))
        both = gains([*own, (-1, other)], (f_shown, f_policies[0] - f_policies[1]))
    ends = ends_of_gains(both.sums, delta)
    judgement = judge(
        targets[0].name, name, ends.estimate, ends.low, ends.high, delta=delta, kind=ends.kind, rows=len(rows),
        effective=both.sums.effective, unsupported=both.sums.unsupported,
        doubt=unusable_log(rows, propensity_calibration(rows)),
    )  # fmt: skip
    return ManyActions(
        targets[0].name, estimates, effective, _many_actions_valued(name, "baseline", alone, delta),
        Valued("difference", "policy minus baseline", *ends[:3]), judgement, delta, len(rows),
    )  # fmt: skip


def _many_actions_logged(baseline: object) -> bool:
    return isinstance(baseline, str) and baseline == "logged"


def _many_actions_weighted(name: str, says: str, weights: Floats, log: Interactions, delta: float) -> Valued:
    """Return mean w r, with the interval of its terms."""
    found = _many_actions_valued(name, says, gains_of_weights(log.rewards, log.reward_range, [(1, weights)]), delta)
    value = float((weights * log.rewards).mean())
    return Valued(name, says, value, min(found.low, value), max(found.high, value))


def _many_actions_valued(name: str, says: str, gains: Gains, delta: float) -> Valued:
    return Valued(name, says, *ends_of_gains(gains.sums, delta)[:3])


# -- columns

_Side = tuple[int, Floats | None]  # sign and weights; None: the logger


class _ManyColumns(NamedTuple):
    plain: list[Floats]  # π(a|x)/q of each policy, [n]
    marginal: list[Floats]  # w(x, e), [n]
    expected: list[Floats]  # Σ_a π(a|x) of the actions' features, [n, C D]


def _many_actions_columns(log: Interactions, known: Features, logger: Target, targets: list[Target]) -> _ManyColumns:
    n, width = len(log), known.of_actions.shape[1]
    found = _ManyColumns(
        [np.empty(n) for _ in targets], [np.empty(n) for _ in targets], [np.empty((n, width)) for _ in targets]
    )
    for rows in _many_actions_blocks(n, len(known.shares)):
        made = logger.on(rows)
        if made.probabilities is None:
            raise InvalidInput("logger: found probabilities of the logged actions only, expected those of all actions")
        off = np.abs(made.played - log.propensities[rows]) > 1e-6
        if off.any():
            row = int(np.argmax(off))
            raise InvalidInput(
                f"logger, row {rows.start + row}: found {made.played[row]:.6g}, expected the logged propensity"
                f" {log.propensities[rows][row]:.6g}"
            )
        likely = known.likelihood(rows)
        below = np.einsum("nk,nk->n", made.probabilities, likely)
        for k, target in enumerate(targets):
            does = target.on(rows)
            if does.probabilities is None:
                raise InvalidInput(f"{target.name}: found probabilities of the logged actions only, expected all")
            table = does.probabilities[:, : len(known.shares)]
            found.plain[k][rows] = does.played / log.propensities[rows]
            found.marginal[k][rows] = np.einsum("nk,nk->n", table, likely) / below
            found.expected[k][rows] = table @ known.of_actions
    return found


def _many_actions_blocks(n: int, k: int) -> Iterator[slice]:
    size = max(1, _CELLS // k)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def _many_actions_features(given: object, shown: object, log: Interactions) -> Features:
    """Check the features and return them as probabilities of categories."""
    table, k = np.asarray(given), int(log.n_actions or 1)
    if table.ndim not in (2, 3) or not table.size:
        raise InvalidInput(f"features: found shape {table.shape}, expected one row per action, [K, D] or [K, C, D]")
    if len(table) != k:
        missing = log.action_name(len(table)) if len(table) < k else ""
        said = f": action {missing} has none" if missing else ""
        raise InvalidInput(f"features: found {len(table)} rows, expected one for each of {k} actions{said}")
    if table.ndim == 2:
        if shown is not None:
            raise InvalidInput(
                "shown: found categories of rows with fixed features, expected features [K, C, D] or none"
            )
        _check_many_actions_present(table, log)
        codes = np.stack([np.unique(column, return_inverse=True)[1] for column in table.T], axis=1)
        shares = np.zeros((k, int(codes.max()) + 1, codes.shape[1]))
        shares[np.arange(k)[:, None], codes, np.arange(codes.shape[1])] = 1.0
        return Features(shares, codes[log.actions])
    shares = table.astype(np.float64)
    wrong = (shares < 0).any(axis=1) | (np.abs(shares.sum(axis=1) - 1) > 1e-6)
    if wrong.any():
        action, d = (int(one) for one in np.argwhere(wrong)[0])
        raise InvalidInput(
            f"features, action {log.action_name(action)}, column {d}: found probabilities that sum to"
            f" {shares[action, :, d].sum():g}, expected 1"
        )
    seen = np.asarray(shown)
    if seen.shape != (len(log), shares.shape[2]):
        raise InvalidInput(f"shown: found shape {seen.shape}, expected {(len(log), shares.shape[2])}: a category each")
    outside = (seen < 0) | (seen >= shares.shape[1])
    if outside.any():
        row, d = (int(one) for one in np.argwhere(outside)[0])
        raise InvalidInput(f"shown, row {row}, column {d}: found {seen[row, d]}, expected 0 to {shares.shape[1] - 1}")
    return Features(shares, seen.astype(np.int64))


def _check_many_actions_present(table: Array, log: Interactions) -> None:
    """Reject missing features, by action and column."""
    gone = np.argwhere([[one is None or one != one for one in row] for row in table.tolist()])
    if len(gone):
        action, d = gone[0].tolist()
        raise InvalidInput(
            f"features, action {log.action_name(action)}, column {d}: found {table[action, d]}, expected a category"
        )


# -- reward model


def _many_actions_modelled(log: Interactions, known: Features, expected: list[Floats]) -> tuple[Floats, list[Floats]]:
    """Return f(x_s, e_s) and Σ_a π(a|x_s) f(x_s, a) of each policy, cross-fitted. f is linear in the features."""
    x = np.asarray(log.contexts, np.float64)
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-12)
    designs = [_many_actions_design(x, one) for one in (known.of_rows(), *expected)]
    fold = np.random.default_rng(0).permutation(len(log)) % _FOLDS
    found: list[Floats] = [np.empty(len(log)) for _ in designs]
    for k in range(_FOLDS):
        train, held = fold != k, fold == k
        weights, level = _many_actions_ridge(designs[0][train], log.rewards[train])
        for column, design in zip(found, designs, strict=True):
            column[held] = level + design[held] @ weights
    return found[0], found[1:]


def _many_actions_design(x: Floats, features: Floats) -> Floats:
    parts = [x, features]
    if x.shape[1] * features.shape[1] <= _WIDEST:
        parts.append((x[:, :, None] * features[:, None]).reshape(len(x), -1))
    return np.concatenate(parts, axis=1)


def _many_actions_ridge(design: Floats, rewards: Floats) -> tuple[Array, float]:
    """Return the weights, of the penalty that does best on the last quarter of the rows, and the level."""
    cut = 3 * len(rewards) // 4

    def solved(rows: slice, penalty: float) -> tuple[Array, float]:
        level, centre = float(rewards[rows].mean()), design[rows].mean(axis=0)
        centred = design[rows] - centre
        gram = centred.T @ centred + penalty * np.eye(design.shape[1])
        weights = np.linalg.solve(gram, centred.T @ (rewards[rows] - level))
        return weights, level - float(centre @ weights)

    def error(penalty: float) -> float:
        weights, level = solved(slice(0, cut), penalty)
        return float(((rewards[cut:] - level - design[cut:] @ weights) ** 2).mean())

    best = min(_PENALTIES, key=error) if len(rewards) > 8 else _PENALTIES[-1]
    return solved(slice(None), best)
