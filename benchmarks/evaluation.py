"""`python -m benchmarks.evaluation`: IPS, SNIPS and DR with intervals over 1e7 rows, and what memory that takes.

The peer is OBP in the peers' environment, where that is there; else its algorithm as its documentation states it, and
the row says so: the estimator's value in every row, then the means of as many samples of n rows drawn with replacement,
and their quantiles. OBP's default is 10,000 resamples; 100 are timed here, so the ratio is 1/100th of what the default
would give, nearly.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import peers
from benchmarks.measure import Row, Skipped, Task, of_pairs, rates
from o2pl.data.interactions import BLOCK, Interactions
from o2pl.evaluation.estimators import Estimate, EstimatorSettings, Stream, estimator_input
from o2pl.evaluation.evaluate import evaluate

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
    streams = [Stream(name, EstimatorSettings.theory(n)) for name in names]
    for start in range(0, n, BLOCK):
        r, a, q, pi, m = (column[start : start + BLOCK] for column in log.values())
        columns = estimator_input(r, a, q, pi, m if "dr" in names else None)
        for stream in streams:
            stream.add(columns)
    return [stream.estimate() for stream in streams]


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

    def beside(peer: Task) -> Row:
        return rates(lambda: ours(log).clear(), peer, n, "rows/s", repeats=3, peer_work=peer_rows)

    try:
        with peers.Child("obp", **small) as child:
            values = child.ask("evaluate", resamples=RESAMPLES)["values"]
            row = beside(lambda: child.seconds("evaluate", resamples=RESAMPLES))
    except Skipped as reason:
        return beside(lambda: bootstrap(small).clear())._replace(note=f"Its algorithm, written again: {reason}.")
    means = ", ".join(
        f"{name} {value[0]:.4f} and {mine.value:.4f}"
        for name, value, mine in zip(NAMES, values, ours(small), strict=True)
    )
    return row._replace(note=f"OBP's values and ours on the peer's {peer_rows:,} rows: {means}.")


def softmax_log(n: int, n_actions: int = 10, d: int = 10) -> tuple[Interactions, NDArray[Any]]:
    """A log with contexts, and the probabilities of a policy in its rows."""
    generator = np.random.default_rng(0)
    contexts = generator.normal(size=(n, d)).astype(np.float32)
    logger, policy = (_softmax(contexts @ generator.normal(0, 0.5, (d, n_actions))) for _ in range(2))
    logger = 0.8 * logger + 0.2 / n_actions
    actions = (logger.cumsum(axis=1) < generator.random(n)[:, None]).sum(axis=1).clip(max=n_actions - 1)
    rewards = (generator.random(n) < 0.3 / (1 + np.exp(-contexts[:, 0] * (actions % 2)))).astype(np.float64)
    propensities = logger[np.arange(n), actions]
    return Interactions(contexts, actions, rewards, propensities, (0.0, 1.0), n_actions), policy


def _softmax(scores: NDArray[Any]) -> NDArray[Any]:
    shares = np.exp(scores)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def whole(n: int = 1_000_000, repeats: int = 3) -> Row:
    """CPU seconds of `evaluate` with all its estimators, tests and a baseline; beside a tenth of the rows."""
    sides = [softmax_log(rows) for rows in (n, n // 10)]

    def task(log: Interactions, policy: NDArray[Any]) -> float:
        start = time.process_time()
        evaluate(log, policy, baseline="logged")
        return time.process_time() - start

    task(*sides[1])
    return of_pairs([(task(*sides[0]), task(*sides[1])) for _ in range(repeats)], "CPU s")


def candidates(n: int = 100_000, repeats: int = 3) -> Row:
    """CPU seconds of 100 candidates on one log, beside ten; the policies' own time is outside."""
    log, policy = softmax_log(n)
    played = policy[np.arange(n), log.actions]
    generator = np.random.default_rng(1)
    given = {f"policy {k}": np.clip(played * generator.uniform(0.8, 1.2, n), 0, 1) for k in range(100)}

    def task(count: int) -> float:
        start = time.process_time()
        evaluate(log, dict(list(given.items())[:count]))
        return time.process_time() - start

    task(10)
    return of_pairs([(task(100), task(10)) for _ in range(repeats)], "CPU s")


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
