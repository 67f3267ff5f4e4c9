"""Input checks. Each error names the row, what was found and what was expected. Nothing has changed by then."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.protocols import Array, Floats, Ints

RewardRange = tuple[float, float]
ANY_REWARD: RewardRange = (-float(np.finfo(np.float64).max), float(np.finfo(np.float64).max))
LEAST_PROPENSITY = 1e-12  # smaller probabilities are taken for mistakes: such actions are practically never drawn
_SOME_ROWS = 20  # with this many rows, it is no chance that an action never occurs
_AT_A_TIME = 2**14  # rows per block, to keep temporary arrays small


def check_reward_range(reward_range: object) -> RewardRange:
    return check_pair("reward_range", reward_range, "lowest", "highest")


def to_loss(reward: Any, reward_range: RewardRange) -> Any:
    """Convert rewards to losses in [-1, 0]; the best reward has loss -1. Rewards beyond the range count as its ends."""
    low, high = reward_range
    loss = low - np.clip(reward, low, high)
    return loss if high - low == 1 else loss / (high - low)


def to_reward(loss: Any, reward_range: RewardRange) -> Any:
    low, high = reward_range
    return low - loss * (high - low)


def _numbers(name: str, values: Any, dtype: Any) -> Array:
    try:
        given = np.asarray(values)
        if dtype is not None and _is_text(given):
            raise ValueError(f"found {str(given.flat[0])!r}, a string")
        with np.errstate(over="ignore"):  # overflow of float32 gives infinity, which is rejected below
            return given if dtype is None else given.astype(dtype, copy=False)
    except (TypeError, ValueError) as error:
        words = "context" in name and _has_words(values)
        instead = (
            '; for strings: use a dictionary or a data frame with named columns, or policy="hashed"' if words else ""
        )
        raise InvalidInput(f"{name}: expected numbers ({error}){instead}") from None


def _is_text(given: Array) -> bool:
    """Return whether an array begins with a string: "1" is no number."""
    return given.dtype.kind in "US" or (given.dtype == object and given.size > 0 and isinstance(given.flat[0], str))


def _has_words(values: object) -> bool:
    if isinstance(values, str):
        return True
    return isinstance(values, list | tuple | np.ndarray) and len(values) > 0 and any(map(_has_words, values[:20]))


def check_contexts(contexts: object, width: int | None = None) -> Floats:
    """Return contexts as float32 [n, d]; every entry must be finite."""
    rows = _numbers("contexts", contexts, np.float32)
    if rows.ndim == 3 and len(rows) == 1:
        raise InvalidInput(
            f"context: found a matrix of {rows.shape[1]} rows, expected one row; `act_many` decides for many, and items"
            " are given as `act(user, items)` or `Offer(user, items)`"
        )
    if rows.ndim != 2 or rows.shape[1] == 0 or (width is not None and rows.shape[1] != width):
        raise InvalidInput(f"contexts: found shape {rows.shape}, expected (rows, {width or 'features'})")
    _check_finite("context", rows, contexts)
    return rows


def check_context(context: object, width: int | None = None) -> Floats:
    """Return one context as float32 [d]; every entry must be finite."""
    row = _numbers("context", context, np.float32)
    if row.ndim != 1 or row.size == 0 or (width is not None and row.size != width):
        raise InvalidInput(f"context: found shape {row.shape}, expected ({width or 'features'},)")
    _check_finite("context", row[None], [context])
    return row


def _check_finite(name: str, rows: Floats, given: Any) -> None:
    if all(np.isfinite(rows[start : start + _AT_A_TIME]).all() for start in range(0, len(rows), _AT_A_TIME)):
        return
    row, column = (int(at[0]) for at in np.nonzero(~np.isfinite(rows)))
    raise InvalidInput(
        f"{name}, row {row}, feature {column}: found {given[row][column]}, expected a finite number"
        " (of magnitude below 3e38, the range of float32)"
    )


def check_rewards(rewards: object, reward_range: RewardRange) -> Floats:
    low, high = reward_range
    values = check_column("reward", rewards, np.float64)
    if not (
        len(values) == 0 or (values.min() >= low and values.max() <= high)
    ):  # no temporary arrays in the normal case
        fine = (values >= low) & (values <= high)
        found = values[int(np.argmin(fine))]
        known = f"({min(found, low):g}, {max(found, high):g})" if np.isfinite(found) else "(lowest, highest)"
        cost = " (a cost? costs are negative rewards, the best one is the highest)" if found < low == 0 else ""
        if reward_range == ANY_REWARD:
            _check_rows("reward", values, fine, "a finite number")
        other = f"; if other rewards are possible, say which: reward_range={known}{cost}" if found == found else ""
        _check_rows("reward", values, fine, f"a number in [{low:g}, {high:g}]{other}")
    return values


def check_propensities(propensities: object, density: bool = False) -> Floats:
    values = check_column("propensity", propensities, np.float64)
    fine = (values > 0) & (np.isfinite(values) if density else values <= 1)
    _check_rows("propensity", values, fine, "a finite density > 0" if density else "a probability in (0, 1]")
    return values


def check_row_weights(weights: object) -> Floats:
    values = check_column("row_weights", weights, np.float64)
    _check_rows("row_weights", values, (values > 0) & np.isfinite(values), "a finite number > 0")
    return values


def check_least_propensity(propensities: object) -> None:
    """Reject probabilities that are too small for an action that was actually drawn."""
    values = check_column("propensity", propensities, np.float64)
    small = (values > 0) & (values < LEAST_PROPENSITY)
    expected = f"at least {LEAST_PROPENSITY:g}: a drawn action is practically never less likely"
    _check_rows("propensity", values, ~small, expected)


def is_real(actions: Array) -> bool:
    """Return whether all values are finite and some are not integers."""
    return bool(np.issubdtype(actions.dtype, np.floating) and np.isfinite(actions).all() and (actions % 1 != 0).any())


def check_actions(actions: Any, n_actions: Any = None, name: str = "action") -> Array:
    """Check for integers in [0, n_actions); `n_actions` may differ by row."""
    given = check_column(name, actions)
    if not len(given):
        return np.empty(0, np.int64)
    whole = np.issubdtype(given.dtype, np.integer)
    values = given.astype(np.int64) if whole or np.issubdtype(given.dtype, np.floating) else given
    if values.dtype != np.int64 or not np.array_equal(values, given):
        raise InvalidInput(f"{name}s: found {given.dtype} values such as {given[0]!r}, expected integers from 0")
    fine = values >= 0 if n_actions is None else (values >= 0) & (values < n_actions)
    first = int(np.argmin(fine))
    limit = n_actions if n_actions is None or np.ndim(n_actions) == 0 else n_actions[first]
    expected = "an integer from 0" + ("" if limit is None else f" to {limit - 1}")
    if limit is not None and np.ndim(n_actions) == 0 and values.min() == 1 and values.max() == limit:
        expected += "; if actions are numbered from 1, subtract 1"
    _check_rows(name, values, fine, expected)
    return values


def check_counted_from_zero(actions: Ints) -> None:
    """Reject actions numbered from 1 in a log of some length; used if the number of actions is unknown."""
    if len(actions) < _SOME_ROWS or actions.min() != 1:
        return
    top = int(actions.max())
    if (np.bincount(actions)[1:] > 0).all():
        raise InvalidInput(
            f"actions: found numbers from 1 to {top} and never 0, expected numbers from 0: subtract 1;"
            " or, if there is an action 0 that was never played, pass n_actions"
        )


def check_continuous_actions(actions: object) -> Floats:
    values = check_column("action", actions, np.float64)
    _check_rows("action", values, np.isfinite(values), "a finite number")
    return values


def check_loggers(loggers: object, names: tuple[str, ...] = ()) -> tuple[Ints, tuple[str, ...]]:
    """Return the logger of each row as an integer [n], and the names. Without names, the values are the names."""
    given = check_column("logger", loggers)
    if names:
        return check_actions(given, len(names), "logger"), tuple(names)
    try:
        found, numbers = np.unique(given, return_inverse=True)
    except TypeError:  # mixed types cannot be sorted
        raise InvalidInput("loggers: found mixed types, expected all strings or all numbers") from None
    return numbers, tuple(str(name) for name in found)


def check_by_logger(given: object, propensities: Floats, loggers: Ints | None, n_loggers: int, density: bool) -> Floats:
    """Check the propensities under each of J loggers, [n, J]. The column of the row's logger equals its propensity."""
    if loggers is None:
        raise InvalidInput("by_logger: found without `loggers`, expected also `loggers`, the logger of each row")
    matrix = _numbers("by_logger", given, np.float64)
    if matrix.shape != (len(propensities), n_loggers):
        raise InvalidInput(f"by_logger: found shape {matrix.shape}, expected ({len(propensities)}, {n_loggers})")
    wrong = ~((matrix >= 0) & (np.isfinite(matrix) if density else matrix <= 1))
    if wrong.any():
        row, column = (int(at[0]) for at in np.nonzero(wrong))
        raise InvalidInput(
            f"by_logger, row {row}, logger {column}: found {matrix[row, column]}, expected a probability"
        )
    own = matrix[np.arange(len(propensities)), loggers]
    apart = np.abs(own - propensities) > 1e-6 * propensities
    if apart.any():
        row = int(np.argmax(apart))
        raise InvalidInput(
            f"by_logger, row {row}: found {own[row]} for the logger of the row,"
            f" expected its propensity {propensities[row]}"
        )
    return matrix


def check_lengths(**columns: Any) -> None:
    lengths = {name: len(column) for name, column in columns.items() if column is not None}
    if len(set(lengths.values())) != 1:
        raise InvalidInput(f"columns differ in length: {lengths}")


def check_column(name: str, values: object, dtype: object = None) -> Array:
    """Return a one-dimensional array, one value per row."""
    vector = _numbers(name, values, dtype)
    if vector.ndim != 1:
        raise InvalidInput(f"{name}: found shape {vector.shape}, expected one value per row")
    return vector


def _check_rows(name: str, values: Array, fine: Array, expected: str) -> None:
    if not fine.all():
        row = int(np.argmin(fine))
        raise InvalidInput(f"{name}, row {row}: found {values[row]}, expected {expected}")


def check_reward(reward: object, reward_range: RewardRange) -> None:
    low, high = reward_range
    if not (isinstance(reward, float | int | np.number) and low <= reward <= high):
        check_rewards([reward], reward_range)


def check_count(name: str, value: object) -> int:
    if not (isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1):
        raise InvalidInput(f"{name}: found {value!r}, expected an integer from 1")
    return int(value)


def check_number(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    below: float = math.inf,
    instead: str = "",
) -> float:
    """Check for a finite number in [low, high], or (low, high] with `open_low`, and < below. instead: alternatives."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(value)
    if not (number and (low < value if open_low else low <= value) and value <= high and value < below):
        limits = [(low, ">" if open_low else "≥"), (high, "≤"), (below, "<")]
        said = " and ".join(f"{sign} {limit:g}" for limit, sign in limits if math.isfinite(limit))
        raise InvalidInput(f"{name}: found {value!r}, expected {instead}a finite number{' ' * bool(said)}{said}")
    return float(value)


def check_pair(name: str, pair: Any, first: str = "best", second: str = "worst") -> tuple[float, float]:
    """Check for two finite numbers in increasing order; by default the values of the best and the worst reward."""
    try:
        low, high = (float(value) for value in pair)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name}: found {pair!r}, expected a pair ({first}, {second})") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(f"{name}: found {pair!r}, expected finite {first} < {second}")
    return low, high
