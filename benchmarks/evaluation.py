"""`python -m benchmarks.evaluation`: IPS, SNIPS and DR with intervals over 1e7 rows, and what memory that takes.

The peer is OBP (0.5.7) where it is installed, else its algorithm as its documentation states it: the estimator's
value in every row, then the means of as many samples of n rows drawn with replacement, and their quantiles. Its
default is 10,000 resamples; 100 are timed here, so the ratio is 1/100th of what the default would give, nearly.
"""

from __future__ import annotations

import importlib
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Row, rates
from o2pl.evaluation.estimators import BLOCK, Estimate, Stream, Tuning, columns_of

Tables = dict[str, NDArray[Any]]
RESAMPLES = 100
NAMES = ("ips", "snips", "dr")


def tables(n: int, n_actions: int = 5, seed: int = 0) -> Tables:
    """A log and a policy as OBP wants them: probabilities and predicted rewards of all actions in every row."""
    generator = np.random.default_rng(seed)
    chances = generator.dirichlet(np.ones(n_actions), 1000)[generator.integers(1000, size=n)]
    return {
        "reward": (generator.random(n) < 0.3).astype(np.float64),
        "action": generator.integers(n_actions, size=n),
        "pscore": np.full(n, 1 / n_actions),
        "action_dist": chances,
        "predicted": generator.random((n, n_actions)),
    }


def ours(log: Tables, names: tuple[str, ...] = NAMES) -> list[Estimate]:
    """Block by block: weights, the model's two columns, the estimators' sums; the errors come with the sums."""
    n = len(log["reward"])
    streams = [Stream(name, Tuning.theory(n)) for name in names]
    for start in range(0, n, BLOCK):
        r, a, q, pi, m = (column[start : start + BLOCK] for column in log.values())
        columns = columns_of(r, a, q, pi, m if "dr" in names else None)
        for stream in streams:
            stream.add(columns)
    return [stream.estimate() for stream in streams]


def peer(log: Tables) -> list[Any]:
    try:
        obp = importlib.import_module("obp.ope")
    except ImportError:
        return bootstrap(log)
    common = {key: log[key] for key in ("reward", "action", "pscore")}
    common |= {"action_dist": log["action_dist"][:, :, None], "position": np.zeros(len(log["reward"]), int)}
    settings = {"n_bootstrap_samples": RESAMPLES, "random_state": 0}
    plain = (obp.InverseProbabilityWeighting(), obp.SelfNormalizedInverseProbabilityWeighting())
    model = {"estimated_rewards_by_reg_model": log["predicted"][:, :, None]}
    found = [one.estimate_interval(**common, **settings) for one in plain]
    return [*found, obp.DoublyRobust().estimate_interval(**common, **model, **settings)]


def bootstrap(log: Tables) -> list[Any]:
    """The row values of the three estimators, and quantiles of the means of resampled rows."""
    n = len(log["reward"])
    rows = np.arange(n)
    weights = log["action_dist"][rows, log["action"]] / log["pscore"]
    expected = np.average(log["predicted"], weights=log["action_dist"], axis=1)
    residuals = log["reward"] - log["predicted"][rows, log["action"]]
    found = []
    for values in (weights * log["reward"], weights * log["reward"] / weights.mean(), expected + weights * residuals):
        generator = np.random.RandomState(0)  # what the peer draws with
        means = [np.mean(generator.choice(values, size=n)) for _ in range(RESAMPLES)]
        found.append((np.mean(means), *np.percentile(means, [2.5, 97.5])))
    return found


def speed(n: int = 10_000_000, peer_rows: int = 100_000) -> Row:
    """Rows per second of the three estimators with intervals; the peer on fewer rows, which suits its cache."""
    log, small = tables(n), tables(peer_rows)
    scale = n / peer_rows
    row = rates(lambda: ours(log).clear(), lambda: peer(small).clear(), n, "rows/s", repeats=3)
    return row._replace(peer=row.peer / scale, ratio=row.ratio * scale, low=row.low * scale, high=row.high * scale)


def memory(n: int = 10_000_000) -> float:
    """Peak memory over the bytes of the columns, in a process of its own; what the imports took is left out."""
    code = (
        "import resource, numpy as np\n"
        "from benchmarks.evaluation import tables, ours\n"
        "ours(tables(1000))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"log = {{k: np.ones((n, *v.shape[1:]), v.dtype) * 0 + (v[:1] if v.ndim == 1 else 0.2) for n in [{n}]"
        " for k, v in tables(2).items()}\n"
        "log = {k: v.astype(t.dtype, copy=False) for (k, v), t in zip(log.items(), tables(2).values())}\n"
        "held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "ours(log)\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "size = sum(v.nbytes for v in log.values()) / 1024\n"
        "print((size + after - held) / size)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    start = time.perf_counter()
    row = speed()
    print(f"ours {row.ours:,.0f} rows/s, peer {row.peer:,.0f} rows/s with {RESAMPLES} resamples")
    print(f"ratio {row.ratio:.1f} ({row.low:.1f} to {row.high:.1f}), bar ≥ 20; {time.perf_counter() - start:.0f} s")
    print(f"memory {memory():.2f} times the columns, bar ≤ 3")
    print(f"peak of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
