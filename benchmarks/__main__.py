"""`make bench`: every row is measured now, side by side with its peer, and written to benchmarks/results.json.

`python -m benchmarks loop_20x5 act_latency` measures these alone; the others keep what they had.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Column, Table

from benchmarks import evaluation, peers, widths
from benchmarks.data import logistic_bandit
from benchmarks.measure import Row, rates, seconds
from o2pl import O2PL

ROUNDS = 5000


def replay(n_actions: int) -> O2PL:
    return O2PL(n_actions, policy="linear", update="replay", random_state=0)


def loop(d: int, n_actions: int, text_ahead: bool = False) -> Row:
    """act + update from Python every round, replay-Adam, against VW's Python loop on the same arrays.

    VW reads text, so its loop makes text of each context; with `text_ahead` that is done before the clock starts.
    """
    contexts, table = logistic_bandit(ROUNDS, d, n_actions)
    rewards = table.tolist()
    theirs: Any = peers.context_texts(contexts) if text_ahead else contexts

    def ours() -> None:
        learner = replay(n_actions)
        for context, row in zip(contexts, rewards, strict=True):
            action, propensity = learner.act(context)
            learner.update(context, action, row[action], propensity)

    return rates(ours, lambda: void(peers.python_loop(theirs, rewards)), ROUNDS, "rounds/s")


def run(d: int, n_actions: int, cpu: bool = False) -> Row:
    """`O2PL.run` with replay-Adam, against VW's own driver on a prepared log file (which parses in a second thread)."""
    rounds = 20 * ROUNDS
    contexts, rewards = logistic_bandit(rounds, d, n_actions)
    path = peers.log_file(peers.context_texts(contexts), rewards)
    clock, unit = (time.process_time, "rounds/CPU s") if cpu else (time.perf_counter, "rounds/s")

    def ours() -> None:
        replay(n_actions).run((contexts, rewards))

    return rates(ours, lambda: peers.driver(path), rounds, unit, repeats=5, clock=clock)


def act_latency() -> Row:
    """One decision at d = 64, K = 10, against VW's parse and predict."""
    contexts, rewards = logistic_bandit(ROUNDS, 64, 10)
    learner = replay(10)
    learner.run((contexts, rewards))
    predict = peers.Predictor(peers.context_texts(contexts[:1])[0], 10)

    def repeat(task: Callable[[], Any]) -> Callable[[], None]:
        return lambda: [task() for _ in range(2000)].clear()

    return rates(repeat(lambda: learner.act(contexts[0])), repeat(predict), 2000, "decisions/s")


def exact_growth() -> Row:
    """Cost exponent of the geometric schedule from T = 5,000 to 40,000; the peer is linear cost, 1. Lower is better."""
    sizes = [5000, 10000, 20000, 40000]
    contexts, rewards = logistic_bandit(sizes[-1], 20, 5)

    def cost(t: int) -> float:
        return seconds(lambda: void(linear("geometric").run((contexts[:t], rewards[:t]))), time.process_time)

    def exponent() -> float:
        return float(np.polyfit(np.log(sizes), np.log([cost(t) for t in sizes]), 1)[0])

    exponent()
    found = sorted(exponent() for _ in range(3))
    return Row(found[1], 1.0, found[1], found[0], found[2], "exponent of CPU time")


def exact_reward() -> Row:
    """Mean reward of the geometric schedule against solving every round, T = 5,000, five seeds."""
    pairs = []
    for seed in range(5):
        world = logistic_bandit(ROUNDS, 20, 5, seed)
        pairs.append([linear(update, seed).run(world).mean_reward for update in ("geometric", "exact")])
    ours, peer = np.mean(pairs, axis=0)
    ratios = [a / b for a, b in pairs]
    return Row(ours, peer, ours / peer, min(ratios), max(ratios), "mean reward")


def linear(update: str, seed: int = 0) -> O2PL:
    return O2PL(5, policy="linear", update=update, random_state=seed)


def void(_: Any) -> None:
    """Results of what is timed are not needed."""


BENCH: dict[str, tuple[Callable[[], Row], str]] = {
    "loop_20x5": (lambda: loop(20, 5), "≥ 10"),
    "loop_64x10": (lambda: loop(64, 10), "≥ 4"),
    "loop_20x5_text_ahead": (lambda: loop(20, 5, text_ahead=True), ""),
    "loop_64x10_text_ahead": (lambda: loop(64, 10, text_ahead=True), ""),
    "run_20x5": (lambda: run(20, 5), "≥ 3"),
    "run_20x5_cpu": (lambda: run(20, 5, cpu=True), ""),
    "act_latency": (act_latency, "≥ 20"),
    "exact_growth": (exact_growth, "≤ 1.3"),
    "exact_reward": (exact_reward, "gap ≤ .01"),
    "evaluate_1e7": (evaluation.speed, "≥ 20"),
    "width_plugin": (lambda: widths.ratio("clipped weights", "plugin / published plug-in", 10_000), "≤ 1.02"),
    "width_betting": (lambda: widths.ratio("clipped weights", "betting / published betting", 10_000), "≤ 1.02"),
    "width_betting_off_policy": (lambda: widths.ratio("off-policy", "betting / vw-estimators", 10_000), "≤ 1.02"),
    "width_realized_clipped": (lambda: widths.ratio("clipped weights", "realized / plugin", 10_000), "≤ 1.5"),
    "width_realized_bernoulli": (lambda: widths.ratio("Bernoulli(.95)", "realized / plugin", 10_000), "≤ 1.5"),
}


def main() -> None:
    console = Console() if sys.stdout.isatty() else Console(width=120)
    table = Table(Column("row", no_wrap=True), "o2pl", "peer", "ratio", "spread", "bar", "unit")
    file = Path(__file__).with_name("results.json")
    results: dict[str, dict[str, Any]] = json.loads(file.read_text()) if file.exists() else {}
    for name in sys.argv[1:] or BENCH:
        measure, bar = BENCH[name]
        with console.status(name):
            row = measure()
        results[name] = {"o2pl": float(row.ours), "peer": float(row.peer), "ratio": float(row.ratio)}
        results[name] |= {"low": row.low, "high": row.high, "unit": row.unit, "bar": bar}
        spread = f"{row.low:.2f}–{row.high:.2f}"
        table.add_row(name, short(row.ours), short(row.peer), f"{row.ratio:.3g}", spread, bar, row.unit)
    console.print(table)
    file.write_text(json.dumps({name: results[name] for name in BENCH if name in results}, indent=2) + "\n")


def short(value: float) -> str:
    return f"{value:,.0f}" if math.fabs(value) >= 100 else f"{value:.4f}"


if __name__ == "__main__":
    main()
