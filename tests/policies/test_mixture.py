"""What every policy must do is in test_contracts; here, what is this one's own."""

from __future__ import annotations

import numpy as np
import pytest

from o2pl.data.contexts import ActionSets
from o2pl.policies import ActionWise, Softmax, UniformMixture
from o2pl.policies.likelihood import probabilities


def test_every_action_keeps_its_share() -> None:
    generator = np.random.default_rng(0)
    x, theta = generator.normal(size=(20, 2)), 50 * generator.normal(size=8)
    mixed, plain = UniformMixture(Softmax(4), 0.2), Softmax(4)
    found = probabilities(mixed, theta, x)
    np.testing.assert_allclose(found, 0.8 * probabilities(plain, theta, x) + 0.05)
    np.testing.assert_allclose(np.exp(mixed.forward(theta, x, np.empty(0))[0]), found, rtol=1e-6)
    sets = ActionSets.of([generator.normal(size=(k, 2)) for k in (1, 3)])
    assert probabilities(UniformMixture(ActionWise(), 0.3), theta[:2], sets).min() == pytest.approx(0.3 / 3)


@pytest.mark.parametrize("epsilon", [-0.1, 1.1])
def test_epsilon_is_a_probability(epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        UniformMixture(Softmax(2), epsilon)
