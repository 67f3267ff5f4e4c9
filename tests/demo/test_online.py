from __future__ import annotations

import numpy as np
import pytest

from o2pl.demo import online
from o2pl.demo.online import BANDIT, LEARNERS, UNIFORM, VW, Online, learn_online


def test_learners_meet_the_same_rounds_and_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    found = learn_online(300, 1, said.append)
    assert list(found.rewards) == list(LEARNERS)
    assert said == [f"{name} learns" for name in LEARNERS]
    assert found.mean(BANDIT) > found.mean(UNIFORM) + 0.2
    assert abs(found.mean(UNIFORM) - 0.1) < 0.07
    monkeypatch.setattr(online, "missing_extra", lambda name: ["vowpalwabbit"])
    monkeypatch.setattr(online, "LEARNERS", dict.fromkeys((VW, UNIFORM), LEARNERS[UNIFORM]))
    without = learn_online(300, 1, said.append)
    assert list(without.rewards) == [UNIFORM]
    np.testing.assert_array_equal(without.rewards[UNIFORM], found.rewards[UNIFORM])  # fixed seeds


def test_the_mean_so_far() -> None:
    found = Online({"a": np.array([[1.0, 0.0, 1.0]])})
    np.testing.assert_allclose(found.so_far("a"), [[1, 0.5, 2 / 3]])
