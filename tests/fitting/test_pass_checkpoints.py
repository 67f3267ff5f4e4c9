"""What was found is kept, belongs to one piece of work, and damaged parts are computed again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import o2pl
from o2pl.data.records import Records
from o2pl.fitting.pass_checkpoints import PassCheckpoints, fingerprint, pass_checkpoint_stamps


def test_what_was_found_is_not_computed_again(tmp_path: Path) -> None:
    calls = []

    def compute() -> Any:
        calls.append(1)
        return np.arange(3.0)

    first = PassCheckpoints(tmp_path / "work", "a")
    assert (first.before, first.other) == (0, False)
    first("bandit λ=1, part 0", compute)
    again = PassCheckpoints(tmp_path / "work", "a")
    assert again.before == 1
    np.testing.assert_array_equal(again("bandit λ=1, part 0", compute), np.arange(3.0))
    assert len(calls) == 1
    again("bandit λ=1, part 1", compute)
    assert len(calls) == 2
    again.remove()
    assert not (tmp_path / "work").exists()


def test_parts_of_other_work_are_not_used(tmp_path: Path) -> None:
    PassCheckpoints(tmp_path / "work", "a")("x", lambda: np.zeros(1))
    other = PassCheckpoints(tmp_path / "work", "b")
    assert (other.before, other.other) == (0, True)
    assert other("x", lambda: np.ones(1)) == 1


def test_a_part_that_was_cut_short_is_computed_again(tmp_path: Path) -> None:
    work = PassCheckpoints(tmp_path / "work", "a")
    work("x", lambda: np.arange(100.0))
    (path,) = (tmp_path / "work").glob("*.npy")
    path.write_bytes(path.read_bytes()[:-9])
    np.testing.assert_array_equal(work("x", lambda: np.arange(5.0)), np.arange(5.0))
    np.testing.assert_array_equal(work("x", lambda: np.zeros(1)), np.arange(5.0))


def test_the_fingerprint_tells_logs_and_settings_apart() -> None:
    def log(reward: float = 1.0, word: str = "Rome") -> Any:
        contexts = [{"city": word}, {"city": "Oslo"}]
        return o2pl.Interactions(contexts, [0, 1], [reward, 0.0], [0.5, 0.5])

    same = fingerprint(log(), (None, 0.9))
    assert fingerprint(log(), (None, 0.9)) == same
    others = [
        fingerprint(log(0.5), (None, 0.9)),
        fingerprint(log(word="Bern"), (None, 0.9)),
        fingerprint(log(), (None, 0.8)),
        fingerprint(log(), ("logged", 0.9)),
    ]
    assert len({same, *others}) == 5
    values = np.empty(2, object)
    values[:] = [b'{"a":1}', b'{"a":2}']
    texts = Records(values)
    assert fingerprint(texts) != fingerprint(Records(values[::-1]))


def test_stamps_change_with_any_file(tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    file = tmp_path / "day=1" / "rows"
    file.write_bytes(b"a")
    before = pass_checkpoint_stamps(tmp_path)
    assert [(name, size) for name, size, _ in before] == [(str(Path("day=1", "rows")), 1)]
    assert pass_checkpoint_stamps(tmp_path) == before
    file.write_bytes(b"ab")
    assert pass_checkpoint_stamps(tmp_path) != before
    assert pass_checkpoint_stamps(file)[0][1] == 2
