"""Estimates of lists: OBP's and vw-estimators' own numbers, exact values, and what each assumes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.adapters.inside import run_inside
from tests.evaluation.test_list_evaluation import exact, logged, policy_of

from o2pl import InvalidInput, evaluate_lists
from o2pl.evaluation.list_estimators import LIST_ESTIMATORS, ListColumns, list_terms

N, L, K = 200, 3, 5


def tables(seed: int = 0) -> dict[str, Any]:
    """Slots with items of their own: probabilities of both policies for all items, and a table of predictions."""
    g = np.random.default_rng(seed)
    q, pi = (g.dirichlet(np.ones(K) * 2, (N, L)) for _ in range(2))
    action = np.array([[g.choice(K, p=q[i, s]) for s in range(L)] for i in range(N)])
    return {"q": q, "pi": pi, "action": action, "reward": (g.random((N, L)) < 0.3) * 1.0, "m": g.random((N, L, K))}


def columns(given: dict[str, Any]) -> ListColumns:
    at = np.arange(N)[:, None], np.arange(L)[None], given["action"]
    return ListColumns(
        given["reward"], given["pi"][at] / given["q"][at], np.ones((N, L), bool), given["m"][at],
        (given["pi"] * given["m"]).sum(axis=2),
    )  # fmt: skip


@pytest.mark.peers
def test_they_are_obps_on_the_same_inputs(tmp_path: Path) -> None:
    np.savez(tmp_path / "given.npz", **tables())
    said = run_inside(
        "obp",
        f"""
        import json
        import numpy as np
        from benchmarks.peer_loops import _obp
        ope = _obp("ope")
        given = np.load({str(tmp_path / "given.npz")!r})
        n, L = given["action"].shape
        at = np.arange(n)[:, None], np.arange(L)[None], given["action"]
        q, pi = given["q"][at], given["pi"][at]
        down, theirs = np.cumprod(q, axis=1).ravel(), np.cumprod(pi, axis=1).ravel()
        whole, wanted = np.repeat(q.prod(axis=1), L), np.repeat(pi.prod(axis=1), L)
        rows = dict(
            slate_id=np.repeat(np.arange(n), L), reward=given["reward"].ravel(), position=np.tile(np.arange(L), n)
        )
        cascade = dict(pscore_cascade=down, evaluation_policy_pscore_cascade=theirs)
        found = {{
            "list": ope.SlateStandardIPS(len_list=L).estimate_policy_value(
                pscore=whole, evaluation_policy_pscore=wanted, **rows
            ),
            "independent": ope.SlateIndependentIPS(len_list=L).estimate_policy_value(
                pscore_item_position=q.ravel(), evaluation_policy_pscore_item_position=pi.ravel(), **rows
            ),
            "cascade": ope.SlateRewardInteractionIPS(len_list=L).estimate_policy_value(**cascade, **rows),
            "cascade-dr": ope.SlateCascadeDoublyRobust(
                len_list=L, n_unique_action=given["m"].shape[2]
            ).estimate_policy_value(
                action=given["action"].ravel(), q_hat=given["m"].ravel(),
                evaluation_policy_action_dist=given["pi"].ravel(), **cascade, **rows
            ),
        }}
        print(json.dumps({{name: float(value) for name, value in found.items()}}))
        """,
    )
    theirs = json.loads(said.splitlines()[-1])
    assert len(theirs) == 4
    for name, value in theirs.items():
        assert L * list_terms(name, columns(tables())).mean() == pytest.approx(value, rel=1e-9, abs=1e-9), name


@pytest.mark.peers
def test_the_pseudo_inverse_is_that_of_vw_estimators(tmp_path: Path) -> None:
    np.savez(tmp_path / "given.npz", **tables(1))
    said = run_inside(
        "estimators",
        f"""
        import numpy as np
        from estimators.slates import pseudo_inverse
        given = np.load({str(tmp_path / "given.npz")!r})
        n, L = given["action"].shape
        at = np.arange(n)[:, None], np.arange(L)[None], given["action"]
        theirs = pseudo_inverse.Estimator()
        for q, pi, r in zip(given["q"][at], given["pi"][at], given["reward"].sum(axis=1)):
            theirs.add_example(q.tolist(), float(r), pi.tolist())
        print(repr(float(theirs.get())))
        """,
    )
    own = L * list_terms("pseudo-inverse", columns(tables(1))).mean()
    assert own == pytest.approx(float(said.splitlines()[-1]), rel=1e-9, abs=1e-9)


def test_each_is_unbiased_where_its_assumption_holds() -> None:
    """Slots with items of their own and rewards by item: all are unbiased; 3,000 lists, 4 standard errors."""
    g = np.random.default_rng(2)
    q, pi, quality = g.dirichlet(np.ones(K) * 3, L), g.dirichlet(np.ones(K), L), g.random((L, K))
    truth = float((pi * quality).sum(axis=1).mean())
    n = 3000
    action = np.stack([g.choice(K, n, p=q[s]) for s in range(L)], axis=1)
    at = np.arange(L), action
    rewards = (g.random((n, L)) < quality[at]) * 1.0
    model = np.full((L, K), 0.5)
    given = ListColumns(
        rewards, (pi / q)[at], np.ones((n, L), bool), model[at], np.tile((pi * model).sum(axis=1), (n, 1))
    )
    for name in LIST_ESTIMATORS:
        terms = list_terms(name, given)
        assert terms.mean() == pytest.approx(truth, abs=4 * terms.std() / np.sqrt(n)), name
    assert list_terms("independent", given).std() < list_terms("list", given).std()


def test_lists_of_several_lengths_end_where_they_end() -> None:
    short = ListColumns(
        np.array([[1.0, 0.0], [1.0, 9.0]]), np.array([[2.0, 3.0], [2.0, 7.0]]), np.array([[True, True], [True, False]])
    )
    np.testing.assert_allclose(list_terms("list", short), [6 / 2, 2.0])
    np.testing.assert_allclose(list_terms("cascade", short), [2 / 2, 2.0])
    np.testing.assert_allclose(list_terms("pseudo-inverse", short), [4 / 2, 2.0])
    with pytest.raises(InvalidInput, match="cascade-dr: found no reward model"):
        list_terms("cascade-dr", short)
    with pytest.raises(InvalidInput, match="estimators: found 'best', expected one of list, cascade"):
        list_terms("best", short)


def test_a_log_of_lists_has_them_all() -> None:
    """Slots of these lists do not depend on lower ones: the first three estimate the same value."""
    found = evaluate_lists(logged(1500, 3), policy_of(0.7), estimators=list(LIST_ESTIMATORS))
    truth = exact(0.7)[-1]
    named = {one.name: one for one in found.estimates}
    assert named["list"].value == pytest.approx(found.value, abs=0.02)
    for name in ("list", "cascade", "cascade-dr"):
        assert named[name].low < truth < named[name].high
    width = {name: one.high - one.low for name, one in named.items()}
    assert width["cascade-dr"] < width["cascade"] < width["list"]
    assert "pseudo-inverse" in str(found)
    with pytest.raises(InvalidInput, match="estimators: found 'ips', expected some of list, cascade"):
        evaluate_lists(logged(300, 3), policy_of(0.7), estimators=["ips"])
