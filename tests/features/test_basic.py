from __future__ import annotations

import numpy as np
from tests.features.cases import rows

from o2pl.features import Chain, Intercept, Standardise


def test_a_chain_is_its_maps_one_after_another() -> None:
    x = rows()
    chain = Chain((Standardise(), Intercept()))
    state = chain.observe(chain.init(4), x)
    alone = Standardise().observe(Standardise().init(4), x)
    np.testing.assert_array_equal(chain.transform(state, x)[:, 1:], Standardise().transform(alone, x))
    np.testing.assert_array_equal(chain.transform(state, x)[:, 0], 1)
