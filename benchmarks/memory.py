"""What a simulation adds to the process at its peak, beside the columns of its log, and what holds it.

`python -m benchmarks.memory grown ROUNDS` (MiB added, MiB of the columns), `python -m benchmarks.memory where ROUNDS`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.measure import Row, of_pairs

WIDTH, ACTIONS, BLOCK = 20, 5, 10_000


def peak() -> float:
    """The most memory this process has held, MiB.

    Linux says it of the process alone; `getrusage` there still knows what the parent held when it started us.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(each for each in status.read_text().splitlines() if each.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def grown(rounds: int) -> tuple[float, float]:
    """Of a run on arrays that are there before it starts: the log and all that learning from it takes.

    The columns are contexts (float32), actions, rewards and propensities (8 bytes each).
    """
    from o2pl import O2PL

    generator = np.random.default_rng(0)
    contexts, rewards = np.empty((rounds, WIDTH), np.float32), np.empty((rounds, ACTIONS))
    weights = generator.standard_normal((WIDTH, ACTIONS)).astype(np.float32)
    for start in range(0, rounds, BLOCK):  # in blocks: making the world must leave no peak behind
        some = slice(start, min(start + BLOCK, rounds))
        contexts[some] = generator.standard_normal(contexts[some].shape, np.float32)
        rewards[some] = generator.random(rewards[some].shape) < 1 / (1 + np.exp(-contexts[some] @ weights))
    small = slice(0, 1000)
    O2PL(ACTIONS, policy="linear", random_state=0).run((contexts[small], rewards[small]))  # compile
    before = peak()
    learner = O2PL(ACTIONS, policy="linear", random_state=0)
    learner.run((contexts, rewards))
    grew = peak() - before
    columns = sum(each.nbytes for each in learner.log_)
    return grew, columns / 1024**2


def where(rounds: int) -> str:
    """What is held at the last solve, by the file that made it, in multiples of the columns."""
    from benchmarks.data import logistic_bandit
    from benchmarks.internals import held_at_last_solve
    from o2pl import O2PL

    world = logistic_bandit(rounds, WIDTH, ACTIONS)
    O2PL(ACTIONS, policy="linear", random_state=0).run(world, 1000)  # compile
    held = held_at_last_solve(lambda: O2PL(ACTIONS, policy="linear", random_state=0).run(world))
    columns = rounds * (4 * WIDTH + 3 * 8)
    parts = ((size / columns, file) for file, size in held.items())
    return ", ".join(f"{share:.2f} by {file}" for share, file in parts if share >= 0.1)


def memory(rounds: int = 1_000_000, repeats: int = 2) -> Row:
    """Each repeat in a process of its own."""
    pairs = []
    for _ in range(repeats):
        mine, columns = map(float, _apart("grown", rounds).split())
        pairs.append((mine, columns))
    few = rounds // 5
    note = f"Held at the last solve of {few:,} rounds, in multiples of the columns: {_apart('where', few)}."
    return of_pairs(pairs, "MiB")._replace(note=note)


def _apart(what: str, rounds: int) -> str:
    """`what` of this module in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.memory", what, str(rounds)]
    root = Path(__file__).parents[1]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=root).stdout.strip()


if __name__ == "__main__":
    if sys.argv[1] == "grown":
        print(*grown(int(sys.argv[2])))
    else:
        print(where(int(sys.argv[2])))
