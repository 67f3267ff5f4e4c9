"""Where kernels are kept, and what is said while they are compiled.

Each case is a process of its own with a small kernel in a folder of its own, and an empty cache.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.serving import deciders

from o2pl import compiled, warm_up
from o2pl.serving.deciding import Acting
from o2pl.serving.models import decider_of
from o2pl.serving.settings import Kind, Settings

MODULE = """
    from o2pl.compiled import compiled

    @compiled
    def inner(x):
        return 2 * x

    @compiled
    def outer(x):
        return inner(x) + 1

    def work(x):
        return outer(x)
"""
USE = "import small; print(small.outer(3), small.outer(4.5))"
SAID = b"first use: compiling kernels"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "small.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / "temporary").mkdir()
    return tmp_path


def run(folder: Path, code: str = USE, terminal: bool = False, **variables: str) -> tuple[bytes, bytes]:
    """What it wrote to standard output and to standard error (a terminal, if asked for)."""
    source = Path(compiled.__file__).parents[2]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_CACHE")}
    environment |= {"PYTHONPATH": f"{source}{os.pathsep}{folder}", "TMPDIR": str(folder / "temporary"), **variables}
    ours, theirs = pty.openpty() if terminal else os.pipe()
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(ours, 4096):
            said += piece
    except OSError:  # a terminal that is closed
        pass
    os.close(ours)
    assert done.returncode == 0, said.decode()
    return done.stdout, said


def kept(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in {".nbi", ".nbc"})


def test_it_is_said_once_on_a_terminal_and_only_when_compiling(folder: Path) -> None:
    out, said = run(folder, terminal=True)
    assert out == b"7 10.0\n"
    assert said.count(SAID) == said.count(b"\n") == 1
    before = [(path, path.stat().st_mtime_ns) for path in kept(folder / "__pycache__")]
    assert len(before) == 6  # two kernels: an index and two forms each
    assert run(folder, terminal=True) == (out, b"")
    assert [(path, path.stat().st_mtime_ns) for path in kept(folder / "__pycache__")] == before


def test_elsewhere_only_a_log_hears_of_it(folder: Path) -> None:
    cache = {"NUMBA_CACHE_DIR": str(folder / "first")}
    assert run(folder, **cache) == (b"7 10.0\n", b"")
    assert kept(folder / "first")
    assert not kept(folder / "__pycache__")
    out, said = run(
        folder, f"import logging; logging.basicConfig(level='INFO'); {USE}", NUMBA_CACHE_DIR=str(folder / "b")
    )
    assert out == b"7 10.0\n"
    assert said.startswith(b"INFO:o2pl:" + SAID)
    assert said.count(b"\n") == 1


def test_a_worker_process_leaves_it_to_its_parent(folder: Path) -> None:
    code = (
        "import multiprocessing, small\n"
        "with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "    print(pool.map(small.work, [3]))"
    )
    assert run(folder, code, terminal=True) == (b"[7]\n", b"")
    assert kept(folder / "__pycache__")


def test_a_parent_says_it_for_its_workers(folder: Path) -> None:
    code = "import small; from o2pl import compiled; compiled.KERNELS[:] = [small.inner]; compiled.say_if_first()"
    assert SAID in run(folder, code, terminal=True)[1]
    run(folder)
    assert run(folder, code, terminal=True) == (b"", b"")


def test_kernels_of_other_sources_are_removed(folder: Path) -> None:
    """Kernels are compiled into those that call them, so all of a folder go when any source has changed."""
    run(folder)
    cache = folder / "__pycache__"
    fresh = kept(cache)
    (stamp,) = cache.glob("*.stamp")
    notes, stale = cache / "notes.txt", cache / "small.gone-99.py311.nbi"
    for path in (notes, stale):
        path.touch()
    before = [path.stat().st_mtime_ns for path in fresh]
    run(folder)  # the sources are the same: nothing is written, and nothing removed
    assert [path.stat().st_mtime_ns for path in fresh] == before
    assert stale.exists()
    stamp.rename(cache / "o2pl-0123456789ab.stamp")
    assert run(folder, terminal=True)[1].count(SAID) == 1  # compiled again
    assert list(cache.glob("*.stamp")) == [stamp]
    assert kept(cache) == fresh
    assert notes.exists()
    assert not stale.exists()


def test_every_kernels_source_is_in_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    kept_read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path) or kept_read(path))
    compiled.make_kernels()
    compiled._fingerprint.__wrapped__()
    ours = {Path(kernel.py_func.__code__.co_filename) for kernel in compiled.KERNELS}
    package = Path(compiled.__file__).parents[1]
    assert {path for path in ours if path.is_relative_to(package)} <= set(read)


def test_without_any_folder_kernels_work_and_it_says_so(folder: Path) -> None:
    (folder / "__pycache__").touch()  # a file where the folder should be
    out, said = run(folder, terminal=True, HOME="/dev/null", XDG_CACHE_HOME="/dev/null")
    assert out == b"7 10.0\n"
    assert b"no cache folder is writable" in said
    assert not kept(folder)


def test_calls_go_straight_to_numba() -> None:
    from numba.core.registry import CPUDispatcher

    compiled.make_kernels()
    assert compiled.KERNELS
    assert {type(kernel) for kernel in compiled.KERNELS} == {CPUDispatcher}


def test_numba_is_imported_by_the_first_call_of_a_kernel(folder: Path) -> None:
    code = """
        import gc, sys
        import o2pl.learners, small
        from small import inner
        learner = o2pl.Bandit(3)
        print("numba" in sys.modules, small.inner is inner, small.inner.__name__)
        waiting = type(inner)
        print(inner(3), type(inner).__name__, type(small.outer).__name__)
        print([each.__name__ for each in gc.get_objects() if type(each) is waiting])
        exec("from o2pl.compiled import compiled\\n@compiled\\ndef later(x): return inner(x) + 2")
        print(type(later).__name__)
    """
    out, _ = run(folder, textwrap.dedent(code))
    assert out.decode().splitlines() == ["False True inner", "6 CPUDispatcher CPUDispatcher", "[]", "CPUDispatcher"]


def test_garbage_collection_pauses_while_a_kernel_compiles(folder: Path) -> None:
    code = """
        import gc
        from o2pl import compiled
        compiled.make_kernels()
        from numba.core import event

        class Looks(event.Listener):
            def on_start(self, event): print("start", gc.isenabled())
            def on_end(self, event): print("end", gc.isenabled())

        event.register("numba:compile", Looks())
        import small
        small.inner(3)
        print(gc.isenabled())
        gc.disable()
        small.inner(3.5)
        print(gc.isenabled())
    """
    out, _ = run(folder, textwrap.dedent(code))
    assert out.decode().splitlines() == ["start False", "end True", "True", "start False", "end False", "False"]


def test_warming_up_compiles_what_the_defaults_need() -> None:
    import numpy as np

    import o2pl

    def forms() -> set[tuple[str, str]]:
        return {(repr(each.py_func), str(form)) for each in compiled.KERNELS for form in each.signatures}

    assert warm_up() > 0
    ready = forms()
    generator = np.random.default_rng(1)
    for width, n_actions, kind in ((1, 2, np.float64), (7, 5, np.float32), (40, 4, np.float64)):
        contexts = generator.normal(size=(120, width)).astype(kind)
        rewards = (generator.random((120, n_actions)) < 0.5).astype(kind)
        for settings in ({}, {"policy": "linear"}, {"policy": "linear", "schedule": "replay"}):
            learner = o2pl.O2PL(n_actions, random_state=0, **settings)
            learner.run((contexts, rewards))
            for context in contexts[:30].tolist():
                action, propensity = learner.act(context)
                learner.update(context, action, 0.5, propensity)
            o2pl.evaluate(learner, learner, baseline="uniform")
        for prices in (o2pl.GaussianO2PL(centre=5.0, random_state=0), o2pl.ContinuousBandit((5, 20), random_state=0)):
            for context in contexts[:60]:
                price = prices.act(context)
                prices.update(context, price.action, 0.5, price.propensity)
            prices.predict(contexts)
            prices.run((contexts, lambda rows, actions: np.full(len(rows), 0.5)))
    words = [{"name": f"n{k % 3}", "size": float(k)} for k in range(120)]
    sets = [generator.normal(size=(3 + k % 2, 5)) for k in range(120)]
    pages = [({"who": f"n{k % 3}"}, [{"what": letter} for letter in "xyz"[: 1 + k % 3]]) for k in range(120)]
    for policy, contexts in (("hashed", words), ("actionwise", sets), ("hashed actionwise", pages)):
        for kind in (o2pl.Bandit, o2pl.O2PL):
            learner = kind(4 if policy == "hashed" else None, policy=policy, random_state=0)
            for context in contexts:
                learner.update(learner.act(context), 0.5)
            learner.fit(contexts, np.zeros(120, int), np.full(120, 0.5), np.full(120, 0.5))
    for kind, settings, decider in (  # as a service acts by them
        (Kind.RANKED, Settings(exploration_percentage=0.1), deciders.ranked()),
        (Kind.FIXED, Settings(actions=("left", "middle", "right")), deciders.fixed()),
        (Kind.CONTINUOUS, Settings(bounds=(0.0, 10.0)), deciders.continuous()),
    ):
        for version, model in ((0, None), (1, decider_of(deciders.body_of(decider)))):
            Acting(kind, settings, version, model).try_out()
    assert forms() == ready
