from __future__ import annotations

import numpy as np
import pytest

from o2pl import _core
from o2pl.objectives import Phi, Tangent, phi


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0, 1.9])
def test_penalty_is_concave_in_the_variance_and_its_slope_right(p: float) -> None:
    variances = np.geomspace(1e-6, 1e3, 200)
    penalty = Phi(3.0, 50.0, 4.0, p, 0.8)
    for v in variances:
        slow = (penalty(v * (1 + 1e-6))[0] - penalty(v * (1 - 1e-6))[0]) / (2e-6 * v)
        assert penalty(v)[1] == pytest.approx(slow, rel=1e-4)
    slopes = [penalty(v)[1] for v in variances]
    assert np.all(np.diff(slopes) < 0)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_a_tangent_touches_and_lies_above(p: float) -> None:
    penalty = Phi(3.0, 50.0, 4.0, p, 0.8)
    line = Tangent(0.5, *penalty(0.5))
    assert line(0.5) == penalty(0.5)
    for v in np.geomspace(1e-8, 1e4, 100):
        assert line(v)[0] >= penalty(v)[0] - 1e-12


def test_the_p_0_convention_never_falls_below_the_papers_bound() -> None:
    t, log_inv_delta = 100.0, 3.0
    for sigma in np.geomspace(1e-6, np.e, 50):
        bound = sigma * np.sqrt(np.log(np.e / sigma)) / np.sqrt(t)
        rest = sigma * np.sqrt(log_inv_delta / t) + (2.0 / t) + 2.0 * log_inv_delta / t
        assert phi(sigma**2, Phi(2.0, t, log_inv_delta, 0.0, 1.0))[0] >= bound + rest - 1e-12
    tiny = 1e-7
    found = phi(tiny**2, Phi(0.0, t, 0.0, 0.0, 1.0))[0]
    assert found == pytest.approx(tiny * np.sqrt(np.log(np.e / tiny) / t), rel=1e-6)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_without_clipping_the_terms_of_alpha_are_left_out(p: float) -> None:
    assert Phi(np.inf, 50.0, 4.0, p, 0.8)(0.3) == Phi(0.0, 50.0, 4.0, p, 0.8)(0.3)


@pytest.mark.parametrize("alpha", [3.0, np.inf])
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0, 1.9])
def test_the_compiled_penalties_are_the_same(p: float, alpha: float) -> None:
    variances, penalty = np.append(0, np.geomspace(1e-20, 1e6, 27)), Phi(alpha, 50.0, 4.0, p, 0.8)
    np.testing.assert_allclose(_core.penalties(variances, *penalty), [penalty(v)[0] for v in variances], rtol=1e-12)
