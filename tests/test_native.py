"""The compiled core: its types for mypy are those of the extension, and every level of instructions can be chosen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import o2pl
from o2pl import _core

NATIVE = Path(__file__).parents[1] / "native"
LEVELS = ("plain", "avx2", "avx512")


def test_the_types_are_those_of_the_extension(tmp_path: Path) -> None:
    pytest.importorskip("nanobind", reason="needs nanobind, of the extra dev")
    written = ["-q", "-D", "-m", "o2pl._core", "-o", str(tmp_path / "_core.pyi")]
    subprocess.run(
        [sys.executable, "-m", "nanobind.stubgen", *written], check=True
    )  # a class that was pickled has grown
    committed = Path(o2pl.__file__).with_name("_core.pyi").read_text()
    assert (tmp_path / "_core.pyi").read_text() == committed, "src/o2pl/_core.pyi is old: run `make stubs`"


@pytest.mark.parametrize("asked", LEVELS)
def test_a_level_can_be_asked_for(asked: str) -> None:
    code = "from o2pl import _core; print(_core.level())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "O2PL_LEVEL": asked},
        capture_output=True,
        text=True,
        check=True,
    )
    found = done.stdout.strip()
    assert LEVELS.index(found) <= LEVELS.index(asked)  # a machine may not have it


@pytest.mark.parametrize("lock", [True, False])
def test_python_without_its_lock_is_refused_at_import(lock: bool) -> None:
    """A free-threaded Python whose lock was forced off; otherwise it turns the lock on for this import."""
    code = (
        f"import sys; sys._is_gil_enabled = lambda: {lock}; from o2pl import Bandit; print(Bandit(2).act([1.0]).action)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode == 0) == lock
    assert ("ImportError: o2pl: found a Python whose global interpreter lock is off" in done.stderr) != lock


LITTLE_MEMORY = """
import resource, sys
import numpy as np
from o2pl import O2PL, _core
from o2pl.kernels.dense import dense_plan

n, d = 100_000, 200  # what is asked for below is more than an allocator keeps at hand
X, zeros, ones = np.ones((n, d), np.float32), np.zeros(n, np.int64), np.ones(n)
line = b'{"_label_cost":-1,"_label_probability":0.5,"_label_Action":1,"_labelIndex":0,"a":[1,2],"p":[0.5,0.5],' \\
    b'"c":{"U":{"x":"' + b"y" * 2000 + b'"},"_multi":[{"I":{"a":1}},{"I":{"a":2}}]}}\\n'
block, text = line * 40_000, b"shared |s a b c\\n0:-1:.5 |a d e\\n|a f g\\n\\n" * 1_000_000
rewards, learner = np.ones((n, 3)), O2PL(3, policy="linear", random_state=0)
learner.run((X[:300], rewards[:300]))
value = _core.outcome_value(
    _core.dense_rows(X, dense_plan(d), zeros, ones, 0.0, None, None, 2, True, 1000, 0), True, float(n), 0.1, 0.1, 8
)
before = value(np.zeros(2 * d + 1))[0]
held = int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (held + 2**20 * int(sys.argv[1]),) * 2)
refused = 0
for work in (
    lambda: _core.dense_rows(X, dense_plan(d), zeros, ones, 0.0, None, None, 2, True, n, 2**40),
    lambda: _core.scan_dsjson(block, True),
    lambda: _core.feature_rows(X, *dense_plan(d)),
    lambda: _core.scan_vw_text(text),
    lambda: learner.run((X, rewards)),
):
    try:
        work()
    except MemoryError:
        refused += 1
assert value(np.zeros(2 * d + 1))[0] == before  # where no thread can be started, those that there are do the work
learner.update(learner.act(X[0]), 1.0)
print("refused", refused)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits its memory as Linux does")
@pytest.mark.parametrize("mebibytes", [4, 12])
def test_too_little_memory_is_an_error_and_no_abort(mebibytes: int) -> None:
    done = subprocess.run([sys.executable, "-c", LITTLE_MEMORY, str(mebibytes)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["refused", "5"]


def test_the_level_is_one_of_them() -> None:
    assert _core.level() in LEVELS


def fingerprints(**environment: str) -> str:
    script = str(Path(__file__).with_name("same_bits.py"))
    return subprocess.run(
        [sys.executable, script], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.skipif(_core.level() == "plain", reason="needs fused multiply-adds: without them, results differ")
def test_decisions_and_parameters_are_the_same_bits_at_every_level_with_any_number_of_threads() -> None:
    """Also with another BLAS: nothing that decides or learns by default is left to it."""
    one = fingerprints(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    assert one == fingerprints(
        OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2", OPENBLAS_CORETYPE="Haswell", O2PL_LEVEL="avx2"
    )


SAME_BITS = """
import hashlib
import numpy as np
from o2pl import _core

generator, made = np.random.default_rng(5), []
for n, d, m in ((1, 3, 1), (7, 21, 5), (33, 40, 17)):
    rows = generator.normal(size=(n, d)).astype(np.float32)
    directions = generator.normal(size=(m, d)).astype(np.float32)
    shift, scale = generator.normal(size=(2, d)).astype(np.float32)
    products = generator.normal(size=(2, m * (m + 1) // 2)).astype(np.float32)
    made.append(_core.project(rows, directions, shift[:1].repeat(m).astype(float)))
    made.append(_core.project(rows.astype(float), directions.astype(float)))
    columns = np.ascontiguousarray(directions.T)
    made.append(_core.feature_rows(rows, shift, scale, 1.5, columns, *products, True))
    nothing = np.empty((d - 2, 0), np.float32)
    made.append(_core.user_item_rows(rows, 1, 4, shift[1:], scale[1:], 2.0, nothing[:1], nothing))
    made += [np.zeros(1), np.zeros(d), np.zeros(d), np.ones(d, bool), shift, scale]
    _core.absorb(rows, *made[-6:])
    offsets = np.arange(n + 1) * 3
    columns = generator.integers(d, size=3 * n).astype(np.int32), rows.reshape(-1)[: 3 * n].copy(), offsets
    made += [_core.sparse_scores(*columns, directions.T.astype(float)), np.zeros((d, m))]
    _core.sparse_sums(*columns, made[-2], made[-1])
    model = np.zeros((2, d, m), np.float32)
    made += [model, np.zeros((n, m), np.float32)]
    actions, losses, inverse = generator.integers(min(m, 3), size=n), -generator.random(n), 1 / generator.random(n)
    numbers = np.array([2.0, 1.0, 0.0, 0.05, 1.0, np.nan, 0.0])
    _core.predict_losses(*columns, actions, losses, 0, numbers, 0.1, 0.0, *model, made[-1])
    none = np.empty(0, np.float32)
    plan = shift, scale, 1.5, np.empty((d, 0), np.float32), none, none, 1
    some, phi = generator.normal(size=d + 1), (3.0, 9.0, 2.0, 0.5, 1.0)
    zeros = np.zeros(3 * n, int), np.zeros(3 * n)
    sets = _core.dense_rows(rows.repeat(3, axis=0), plan, *zeros, 0.0, None, None, 1, False, 64, 0)
    value = _core.action_sets_value(sets, offsets, actions, losses, inverse, 3.0, 9.0, 0.1, phi, 1)
    made += value.sums(some)
    own = _core.dense_rows(rows, plan, np.zeros(n, int), losses, 0.0, None, None, 1, False, 16, 2**20)
    value = _core.gaussian_value(own, losses, losses, inverse, 3.0, 9.0, 0.1, phi, 0.7, True, 1)
    made.append(value(np.append(some, 0.2))[1])
    made.append(_core.ridge_baseline(rows, plan, losses, np.nan, 0.7))
    state = np.eye(d), np.zeros(d), generator.normal(size=(2, d)), np.ones(2)
    _core.learn_rows(rows.astype(float), losses, np.empty(0), 0, *state)
    made += state
    weights = generator.normal(size=(d + 1) * m + (m + 1) * 3)
    made += [_core.perceptron(rows, weights, np.array([d, m, 3]), kind) for kind in range(3)]
    made += [_core.cosines(rows), generator.normal(size=m), np.zeros(m), np.zeros(m)]
    _core.adam_step(made[-3], weights[:m].copy(), made[-2], made[-1], 3, 0.1)
    sums, heap, counts = np.zeros((5, m)), np.zeros((n * m, 3)), np.zeros(2, int)
    _core.add_rows(sums, heap, counts, np.exp(directions[:, :1].T.repeat(n, 0)), losses, 1 / inverse, numbers, 0.0)
    made += [sums, _core.class_values(sums, float(n), 0.1, *phi)]
    made += [*_core.ridge_scores(np.tile(np.eye(d), (m, 1, 1)), directions.astype(float), rows[0].astype(float))]
print(hashlib.sha256(b"".join(array.tobytes() for array in made)).hexdigest())
"""


def test_results_are_the_same_bits_at_every_level() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", SAME_BITS],
            env={**os.environ, "O2PL_LEVEL": level},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for level in LEVELS
    }
    assert len(found) == 1


def test_the_core_has_logarithms_of_its_own() -> None:
    """Those of the C library have other last bits on other systems."""
    called = re.compile(r"std::(log|log1p|log2|exp|expm1|pow|sin|cos|tan|tanh|erf|erfc|lgamma|tgamma|cbrt|hypot)\(")
    files = [path for path in NATIVE.rglob("*") if path.suffix in (".cpp", ".hpp", ".inl")]
    assert len(files) > 100
    assert [f"{path.name}: {found[0]}" for path in files for found in called.finditer(path.read_text())] == []


def test_a_converted_argument_that_may_be_missing_lives_as_long_as_the_call() -> None:
    """It was freed before its numbers were read: seen with arrays too large for NumPy's own cache."""
    offset = np.arange(100_000, dtype=np.float32)
    out = _core.project(np.ones((1, 1), np.float32), np.zeros((len(offset), 1), np.float32), offset)
    np.testing.assert_array_equal(out[0], offset)
