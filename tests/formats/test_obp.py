"""OBP's dictionaries, both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import o2pl
from o2pl import InvalidInput
from o2pl.formats import from_obp, to_obp


def feedback(n: int = 50) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    pi_b = rng.dirichlet(np.ones(3), n)
    action = rng.integers(3, size=n)
    return {
        "n_rounds": n, "n_actions": 3, "context": rng.normal(size=(n, 2)), "action_context": np.eye(3),
        "action": action, "position": None, "reward": rng.integers(2, size=n), "expected_reward": None,
        "pi_b": pi_b[:, :, None], "pscore": pi_b[np.arange(n), action],
    }  # fmt: skip


def test_there_and_back() -> None:
    given = feedback()
    log = from_obp(given, reward_range=(0, 1))
    assert (log.n_actions, log.reward_range) == (3, (0, 1))
    made = to_obp(log, pi_b=given["pi_b"][:, :, 0])
    assert made.keys() == given.keys()
    for name, value in given.items():
        if value is None:
            assert made[name] is None
        else:
            np.testing.assert_allclose(made[name], value, rtol=1e-6)
    assert to_obp(log)["pi_b"] is None


def test_a_position_is_a_column_of_the_context() -> None:
    given = feedback() | {"position": np.arange(50) % 3}
    np.testing.assert_array_equal(from_obp(given).contexts[:, 2], given["position"])


def test_frames_become_numbers_and_the_rest_is_refused() -> None:
    log = o2pl.Interactions(pa.table({"city": ["a", "b"]}), [0, 1], [0.0, 1.0], [0.5, 0.5])
    assert to_obp(log)["context"].shape[0] == 2
    with pytest.raises(InvalidInput, match="found no 'pscore'"):
        from_obp(feedback() | {"pscore": None})
    with pytest.raises(InvalidInput, match=r"pi_b: found shape \(1, 2\), expected \(2, 2\)"):
        to_obp(log, pi_b=np.ones((1, 2)))
    with pytest.raises(InvalidInput, match="found real-valued actions"):
        to_obp(o2pl.Interactions(np.ones((2, 1)), [0.5, 1], [0, 1], [1, 1]))
    with pytest.raises(InvalidInput, match="found action sets"):
        to_obp(o2pl.Interactions([[{"a": 1}]], [0], [1.0], [1.0]))
