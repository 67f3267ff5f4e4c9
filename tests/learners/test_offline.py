"""A fit in two steps: members are weighed on rows that they have not learned from."""

from __future__ import annotations

import numpy as np

import o2pl
from o2pl.learners.offline import learn_offline


def test_a_union_learns_from_half_before_it_learns_from_all() -> None:
    rng = np.random.default_rng(0)
    log = o2pl.Interactions(
        rng.normal(size=(400, 2)), rng.integers(2, size=400), rng.integers(2, size=400), np.full(400, 0.5), (0, 1)
    )
    whole = o2pl.Bandit(2, random_state=0).fit(log)
    for learner, expected in ((o2pl.Bandit(2, random_state=0), [200, 400]), (o2pl.O2PL(2, policy="linear"), [400])):
        reader = learner._reader_for(log)
        rows = learner._checked(log, reader=reader)
        engine = learner._first_engine(reader, rows.contexts, 2)
        reached = []

        def reach(upto: int, engine=engine, rows=rows, reached=reached) -> None:
            reached.append(upto)
            engine.extend(rows[len(engine.log) : upto])

        learn_offline(engine, 400, reach)
        assert reached == expected
        assert engine.learned == 400
        if len(expected) == 2:
            learner._adopt(engine)
            np.testing.assert_array_equal(learner.predict_proba(log.contexts), whole.predict_proba(log.contexts))
