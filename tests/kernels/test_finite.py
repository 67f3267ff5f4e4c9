"""Running sums of a finite class beside a plain loop, with a clip that rises."""

from __future__ import annotations

import numpy as np
import pytest

from o2pl.kernels.finite import ClassSums
from o2pl.objectives import Pessimistic


@pytest.mark.parametrize("clip", ["theory", 1.5, None])
@pytest.mark.parametrize("baseline", ["mean", None, -0.4])
def test_values_are_those_of_a_loop(clip: object, baseline: object) -> None:
    generator, J = np.random.default_rng(0), 6
    objective = Pessimistic(0.7, clip, baseline, p=0.5)
    likelihoods, losses = generator.random((120, J)), -generator.random(120)
    q, sums = generator.uniform(0.05, 1, 120), ClassSums(J)
    for n in range(1, 121):
        sums.add(likelihoods[n - 1 : n], losses[n - 1 : n], q[n - 1 : n], objective.numbers)
        if n in (1, 2, 40, 120):
            b, alpha = objective.level(losses[:n]), objective.alpha(n)
            expected = []
            for j in range(J):
                w = np.minimum(likelihoods[:n, j] / q[:n], alpha)
                expected.append(np.mean((w - 1) * (losses[:n] - b)) + objective.phi(n)(np.mean((w - 1) ** 2))[0])
            np.testing.assert_allclose(sums.values(b, objective.phi(n)), expected, rtol=1e-10)
    batches = ClassSums(J)
    for part in (slice(0, 1), slice(1, 70), slice(70, 120)):
        batches.add(likelihoods[part], losses[part], q[part], objective.numbers)
    np.testing.assert_array_equal(batches.sums, sums.sums)  # to the bit: a loaded learner begins anew
    assert batches.total == sums.total
