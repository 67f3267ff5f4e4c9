"""Files that earlier versions saved are read, and their learners go on as they would have gone on then."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl import storage


def _kinds() -> Any:
    spec = importlib.util.spec_from_file_location("saved_files", Path(__file__).parent / "saved_files.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SAVED = _kinds()
VERSIONS = sorted(path.name for path in SAVED.FOLDER.iterdir())
FILES = [
    (version, name)
    for version in VERSIONS
    for name in json.loads((SAVED.FOLDER / version / "decisions.json").read_text())
]


def test_every_version_and_kind_has_its_file() -> None:
    assert [f"v{number}" for number in range(storage.OLDEST, storage.VERSION + 1)] == VERSIONS
    assert {name for version, name in FILES if version == f"v{storage.VERSION}"} == set(SAVED.KINDS)


@pytest.mark.parametrize(("version", "name"), FILES)
def test_a_saved_learner_goes_on(version: str, name: str) -> None:
    learner = o2pl.load(SAVED.FOLDER / version / f"{name}.o2pl")
    decider = o2pl.load(SAVED.FOLDER / version / f"{name}-decider.o2pl")
    assert isinstance(decider, o2pl.Decider)
    expected = json.loads((SAVED.FOLDER / version / "decisions.json").read_text())[name]
    _, context = SAVED.KINDS[name]
    generator = np.random.default_rng(0)
    for _ in range(SAVED.ROUNDS):  # as the file's learner saw them
        context(generator)
        generator.random()
    if name in SAVED.SHARPENED:  # a published policy acts as it did; the learner explores by another rule since
        action, propensity = expected[0]
        probabilities = decider.predict_proba([context(generator)])
        assert np.ravel(probabilities)[int(action)] == pytest.approx(propensity, rel=1e-3)
        assert len(learner.log_) == SAVED.ROUNDS
        for own, its in zip(learner.snapshot().members, decider.members, strict=True):
            np.testing.assert_array_equal(own.params, its.params)
        assert all(0 < propensity <= 1 for _, propensity in SAVED.play(learner, context, generator, 30))
        return
    given = context(np.random.default_rng(1))
    # The exploration rule of a learner is this version's; the decider has the one it was saved with.
    np.testing.assert_allclose(decider.decide(given, 0.5), learner.snapshot().decide(given, 0.5), rtol=1e-3)
    alike = max(1, learner._engine.checkpoint - len(learner._engine.log))  # later versions may solve at other times
    found = SAVED.play(learner, context, generator, len(expected))
    # Other processors may round the last bit of a solve otherwise.
    np.testing.assert_allclose(found[:alike], expected[:alike], rtol=1e-3, atol=1e-6)


def test_a_newer_file_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_STAMP", storage._STAMP | {"version": storage.VERSION + 1, "o2pl": "9.9"})
    path = tmp_path / "newer.o2pl"
    o2pl.O2PL(2).save(path)
    with pytest.raises(storage.UnreadableFile, match=r"written by o2pl 9\.9; .* install a newer o2pl"):
        o2pl.load(path)


def test_an_older_file_is_brought_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a change of the format would do it."""
    path = tmp_path / "older.o2pl"
    o2pl.O2PL(2).save(path)
    monkeypatch.setattr(storage, "VERSION", storage.VERSION + 1)

    def upgraded(header: Any, arrays: Any) -> Any:
        return header | {"params": header["params"] | {"n_actions": 5}}, arrays

    monkeypatch.setattr(storage, "UPGRADES", {storage.VERSION - 1: upgraded})
    assert o2pl.load(path).n_actions == 5
