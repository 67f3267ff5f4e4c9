"""The rows of the bench, in the order of the page: the default learner first, then special settings, then the rest."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks import (
    bakeoff,
    capacity,
    evaluation,
    freshness,
    gpu,
    histories,
    items,
    large,
    logs,
    machine,
    memory,
    neighbour,
    policies,
    prices,
    rounds,
    serving,
    serving_start,
    sparse,
    startup,
)
from benchmarks.bars import MORE
from benchmarks.default import NAME, learner
from benchmarks.measure import Bench
from benchmarks.peers import PEERS
from o2pl import O2PL
from o2pl.simulation.worlds.response import RESPONSES

DEFAULT, SPECIAL, MORE_LOOPS = "The default learner", "Special settings", "Other libraries"
BATCHES, HISTORIES = "Batches", "Long histories"
LOGS, LARGE, GPU, EVALUATION = "Logs", "Logs larger than memory", "GPU", "Evaluation"
SERVING, CAPACITY, STARTUP, MACHINE = "The service", "Capacity", "Start-up", "The machine"
ELSEWHERE = {
    LARGE: "docs/scale.md",
    GPU: "docs/scale.md",
    CAPACITY: "docs/capacity.md",
}  # groups with a page of their own

LONG = 20_000  # rounds of the default's loops
LOOPS = ((4, 3, "≥ 20"), (20, 5, "≥ 12"), (64, 10, "≥ 10"))
O2PL_LOOPS = ((4, 3, "≥ 4"), (20, 5, "≥ 5"), (64, 10, "≥ 6"))
VW_LOOP = "VW, Python loop"
ACT = "`act` and `update` every round"
REWARDS = "`o2pl serve`: durable reward calls"
WORDS = "20 words of 100,000, K = 5, T = 5,000"
TINY = {"rounds": 120, "repeats": 1}
UNTAUGHT = {"learned": -1.0, **TINY}  # too few rounds to learn in
Rows = Iterator[tuple[str, Bench]]


def _default() -> Rows:
    """The learner with default settings."""
    loop = partial(rounds.loop, learner, rounds=LONG)
    for d, k, bar in LOOPS:
        what = f"{NAME}: {ACT}, d = {d}, K = {k}, T = {LONG:,}"
        yield f"default_loop_{d}x{k}", Bench(DEFAULT, what, VW_LOOP, partial(loop, d, k), bar + MORE, TINY)
    what = f"{NAME}: one decision (`act`) after 2,000 rounds, d = 20, K = 5, median"
    tiny = {"learn": 100, "decisions": 20, "repeats": 1}
    measure: Any = partial(rounds.act, learner, 20, 5)
    yield "default_act", Bench(DEFAULT, what, "VW, predict", measure, "value ≤ 1.5", tiny)
    what = f"{NAME}: `act_many` of 100,000 rows after 2,000 rounds, d = 20, K = 5, CPU time"
    measure = partial(rounds.many, learner, 20, 5)
    tiny = {"learn": 100, "decisions": 100, "repeats": 1}
    yield "many_20x5", Bench(DEFAULT, what, "its `predict_proba`", measure, "≤ 2", tiny)
    what = "README's first example in a new Python: CPU time"
    program = {"program": "pass", "repeats": 1}
    yield "start_first_use", Bench(DEFAULT, what, "`import numpy`", startup.first_use, "value ≤ 1", program)
    few = {"rounds": 40, "seeds": 1}
    for suffix, way, how, against, bar in (
        ("", "drivers", "`run`", "VW Greedy, own driver (`--cbify`)", "≤ 1.5"),
        ("_loop", "loops", ACT, "VW Greedy, Python loop", "≤ 1"),
    ):
        what = f"{NAME}: {how}, up to 5,000 rounds a set, CPU time, three seeds, the confirmation sets"
        yield f"bakeoff_cpu{suffix}", Bench(DEFAULT, what, against, partial(bakeoff.cpu, way, True), bar, few)


def _o2pl(n_actions: int, seed: int) -> O2PL:
    return O2PL(n_actions, random_state=seed)


def _special() -> Rows:
    """The paper's objective, and learners for other kinds of actions and contexts."""
    measure: Any
    for d, k, bar in O2PL_LOOPS:
        what = f"`O2PL(K)`: {ACT}, d = {d}, K = {k}, T = {LONG:,}"
        measure = partial(rounds.loop, _o2pl, d, k, rounds=LONG)
        yield f"loop_o2pl_{d}x{k}", Bench(SPECIAL, what, VW_LOOP, measure, bar + MORE, TINY)
    what = f'`Bandit(K, policy="hashed")`: {ACT}, {WORDS}'
    yield "loop_sparse", Bench(SPECIAL, what, VW_LOOP, sparse.loop, "≥ 5" + MORE, TINY)
    several = f"a user and {items.ITEMS} items as dictionaries"
    what = f'`Bandit(policy="hashed actionwise")`: `act(user, items)` and `update` every round, {several}, T = 5,000'
    yield "loop_items", Bench(SPECIAL, what, VW_LOOP, items.loop, "≥ 4" + MORE, TINY)
    what = f"the same: one decision among {several} after 2,000 rounds, median"
    tiny = {"learn": 100, "decisions": 20, "repeats": 1}
    yield "act_items", Bench(SPECIAL, what, "VW, text and predict", items.act, "value ≤ 15", tiny)
    for world in RESPONSES:
        what = f"`ContinuousBandit(bounds)`: {ACT}, a number between bounds, {world}, T = 3,000, CPU time"
        measure = partial(prices.loop, world)
        yield f"loop_continuous_{world}", Bench(SPECIAL, what, f"{VW_LOOP}, `--cats`", measure, "≥ 4" + MORE, TINY)
    what = f"`GaussianO2PL()`: {ACT}, real-valued action, d = 20, T = 3,000"
    yield "loop_gaussian", Bench(SPECIAL, what, f"{VW_LOOP}, `--cats`", policies.loop_gaussian, "≥ 4", TINY)
    what = f'`O2PL(policy="actionwise")`: {ACT}, sets of 5 to 20 actions, d = 20, T = 3,000'
    yield "loop_actionwise", Bench(SPECIAL, what, VW_LOOP, policies.loop_actionwise, "≥ 6", TINY)


def _more_loops() -> Rows:
    """The default learner beside other libraries that are called every round."""
    for peer in PEERS:
        what, measure = f"{NAME}: {ACT}, d = 20, K = 5, T = 5,000", partial(rounds.peer, learner, peer)
        yield f"default_loop_20x5_{peer}", Bench(MORE_LOOPS, what, f"{peer} LinUCB", measure, quick=UNTAUGHT)


def _batches() -> Rows:
    what = "objective and gradient, linear softmax, two threads, n = 1,000,000, d = 20, K = 5"
    measure: Any = partial(machine.batch, d=20, n_actions=5, n=10**6)
    tiny = {"n": 2000, "repeats": 1}
    yield "batch_1e6x20x5", Bench(BATCHES, what, "C++", measure, "≤ 1.1", tiny, machine.THREADS)
    what = "objective and gradient, n = 1,000,000, 20 of 100,000 features, K = 5"
    measure = partial(sparse.batch, nonzeros=20, n_actions=5, n=10**6, slots=10**5)
    yield "sparse_batch_1e6x20x5", Bench(BATCHES, what, "C++", measure, quick={"n": 500, "slots": 300, "repeats": 1})


def _histories() -> Rows:
    what = "growth of CPU time with T, 1e4 to 1e6, linear policy, near-exact schedule"
    measure: Any = partial(histories.exact_growth, "near-exact")
    tiny: dict[str, Any] = {"sizes": (100, 200, 400), "repeats": 1}
    yield "exact_growth", Bench(HISTORIES, what, "linear cost", measure, "≤ 1.1", tiny)
    what = "mean reward at T = 5,000, linear policy, near-exact schedule, ten seeds"
    measure, tiny = partial(histories.exact_reward, "near-exact"), {"rounds": 60, "seeds": 1}
    yield "exact_reward", Bench(HISTORIES, what, "solving every round", measure, "gap ≤ .005", tiny)
    what = "memory that 1e6 rounds add to the process at its peak, d = 20, linear policy"
    tiny = {"rounds": 5000, "repeats": 1}
    yield "memory_1e6", Bench(HISTORIES, what, "the log's columns", memory.memory, "≤ 1.5", tiny)


def _logs() -> Rows:
    """A log that VW made (`--cb_explore_adf`): 1e5 events of ten actions with five words and five numbers each."""
    tiny = {"rows": 200, "repeats": 1}
    which = "1e5 events of VW's, 10 actions with 5 words and 5 numbers each"
    driver = "VW, own driver over the file, greedy, two threads each"
    for kind, called, bar in (("dsjson", "dsjson", "≥ 3"), ("text", "VW's text", "≥ 2")):
        what = f'`Bandit(policy="hashed actionwise").fit(read_log(file))` of {called}, {which}'
        yield f"learn_{kind}", Bench(LOGS, what, driver, partial(logs.learn, kind), bar + MORE, tiny, 2)


def _large() -> Rows:
    """Parquet of 1e7 rows, d = 20, K = 5."""
    which, tiny = "1e7 rows of Parquet, d = 20, K = 5", {"rows": 3000}
    what = f"`o2pl fit --out-of-core`, {which}, `{large.CANDIDATES}`: anonymous memory at its peak"
    yield "out_of_core_memory_1e7", Bench(LARGE, what, "the log's columns", large.memory, "value ≤ 1.5", tiny, 2)
    for name, rows in (("1e5", 10**5), ("1e6", 10**6), ("3e6", 3 * 10**6)):
        measure: Any = partial(large.memory, rows=rows, beside="in memory")
        several = what.replace("1e7 rows", f"{name} rows")
        yield f"out_of_core_memory_{name}", Bench(LARGE, several, "a fit in memory", measure, "", tiny, 2)
    what = f"objective and gradient, `Bandit`'s linear member, two threads: a memory-mapped copy of {which}"
    few = {**tiny, "repeats": 1}
    yield "out_of_core_1e7", Bench(LARGE, what, "the same rows in memory", large.passes, "≥ .5", few, 2)
    what = f"`o2pl fit --out-of-core`, {which}, `{large.CANDIDATES}`: from the files to a policy, two threads"
    for name, against, log, peer_rows, repeats, bar in (
        ("ipw", "OBP's `IPWLearner`, logistic, 1e5 rows in memory", "1e7", 10**5, 3, "≥ 10" + MORE),
        ("nn", "OBP's `NNPolicyLearner`, 2,000 rows in memory: a minute", "1e6", 2000, 1, "≥ 10"),
    ):
        sizes = {"rows": int(float(log)), "peer_rows": peer_rows, "repeats": repeats}
        measure = partial(large.against_obp, name, **sizes)
        small = {**few, "peer_rows": 500 if name == "ipw" else 20}
        several = what.replace("1e7 rows", f"{log} rows")
        yield f"fit_against_obp_{name}", Bench(LARGE, several, against, measure, bar, small, 2)
    what = "objective and gradient of 2e6 memory-mapped rows, d = 20, K = 5, by two workers of a local Ray"
    yield "ray_two_workers", Bench(LARGE, what, "one worker", large.on_ray, "≥ 1.5", few)


def _gpu() -> Rows:
    """On one card; measured where there is one."""
    for n, d, k, bar in ((10**7, 64, 10, "1.5"), (2 * 10**7, 20, 5, "1.2"), (10**6, 256, 26, "1.3")):
        what = f"objective and gradient, linear softmax, float32 data on the card, n = {n:,}, d = {d}, K = {k}"
        measure: Any = partial(gpu.value, d, k, n=n)
        name = f"gpu_{n:.0e}x{d}x{k}".replace("e+0", "e")
        yield name, Bench(GPU, what, "plain JAX, the same card", measure, f"value ≤ {bar}", {"n": 4096, "repeats": 1})
    what = "`O2PL`'s objective, fitted to convergence after loading, n = 100,000,000, d = 20, K = 5"
    tiny: dict[str, Any] = {"n": 10**5, "repeats": 1}
    yield "gpu_fit_1e8x20x5", Bench(GPU, what, "plain XLA, the same card", gpu.fit, "value ≤ 1", tiny)
    what = "a step of a network, two layers of 128, d = 64, K = 10, batch 65,536"
    tiny = {"batch": 256, "repeats": 1}
    yield "gpu_network_step", Bench(GPU, what, "its matrix products alone", gpu.network, "≥ .5", tiny)
    what = "all re-learning of that network in an online run of 100,000 rounds"
    tiny = {"rounds": 600, "repeats": 1}
    yield "gpu_network_online", Bench(GPU, what, "the CPU beside the card", gpu.online, "value ≤ 60", tiny)


def _evaluation() -> Rows:
    what = "rows of a log through IPS, SNIPS and DR with intervals"
    tiny = {"n": 5000, "peer_rows": 500}
    yield "evaluate_1e7", Bench(EVALUATION, what, "OBP's bootstrap", evaluation.speed, "≥ 20", tiny)
    few = {"n": 2000, "repeats": 1}
    what = "`evaluate` of 100 candidates on one log of 1e5 rows, K = 10: CPU time"
    yield "evaluate_candidates", Bench(EVALUATION, what, "ten candidates", evaluation.candidates, "≤ 2", few)


def _startup() -> Rows:
    what, once = "CPU time of `from o2pl import Bandit`", {"repeats": 1}
    yield "start_import", Bench(STARTUP, what, "importing numpy", startup.imported, "value ≤ .2", once)
    what = "an environment with o2pl and what it needs: MB"
    yield "install_size", Bench(STARTUP, what, "NumPy alone", startup.installed, "value ≤ 300")


def _serving() -> Rows:
    """One server process with SQLite, `wrk` on the same machine. Each call is on disk before it is answered."""
    rank = f"`o2pl serve`: durable rank calls, {serving.ACTIONS} actions of {serving.FEATURES} features"
    minimal = "a minimal FastAPI app: parse, one row, the same group commit"
    brief = {"seconds": 1.0, "repeats": 1, "learned": 20}
    for name, what, bar in (("rank", rank, "≥ 1.04"), ("reward", REWARDS, "≥ .6")):
        yield (
            f"serve_{name}",
            Bench(SERVING, f"{what}: calls per second", minimal, partial(serving.rate, name), bar, brief),
        )


def _capacity() -> Rows:
    """What docs/capacity.md is made from."""
    minimal = "a minimal FastAPI app: parse, one row, the same group commit"
    brief: dict[str, Any] = {"seconds": 1.0, "repeats": 1, "learned": 20}
    rank = f"`o2pl serve`: durable rank calls, {serving.ACTIONS} actions of {serving.FEATURES} features"
    slow, what = partial(serving.slowest, "rank"), f"{rank}: 99 of 100 are answered within"
    yield "serve_rank_p99", Bench(CAPACITY, what, minimal, slow, "value ≤ 20", brief)
    for lines in serving.CONNECTIONS:
        over = f"{lines} connection{'s' if lines > 1 else ''}"
        for name, call, bar in (("rank", rank, "≥ 2"), ("reward", REWARDS, "≥ 1.5")):
            per, measure = f"{call}, {over}: calls per second", partial(serving.rate, name, lines)
            bar = bar if lines < 256 else ""  # how far group commit carries
            yield f"serve_{name}_{lines}", Bench(CAPACITY, per, minimal, measure, bar, brief)
    what = f"rank over one connection, beside another application with {neighbour.BUSY}: 99 of 100 are answered within"
    yield "serve_neighbour", Bench(CAPACITY, what, "alone on the server", neighbour.slowed, "≤ 2", brief)
    what = "`o2pl train`: age of the newest event in the served parameters at its worst, 500 events/s for 10 minutes"
    brief = {"rate": 100, "seconds": 3.0, "texts": 50}
    yield "serve_freshness", Bench(CAPACITY, what, "one version every 5 s", freshness.freshness, "value ≤ 10", brief)
    brief, empty = {"events": 50, "repeats": 1}, "a store without events"
    what = "`o2pl serve`, 1e6 events in SQLite: seconds"
    yield "serve_start", Bench(CAPACITY, f"{what} until ready", empty, serving_start.ready, "value ≤ 5", brief)
    first = f"{what} until the first rank call is answered"
    yield "serve_first_rank", Bench(CAPACITY, first, empty, serving_start.first_rank, "value ≤ 10", brief)
    brief = {"seconds": 0.3, "repeats": 1, "events": 60, "most": 1, "learned": 20}
    for count in capacity.COUNTS:
        what = f"{rank}, {count} server process{'es' if count > 1 else ''} on one PostgreSQL: calls per second"
        against = "one process on PostgreSQL" if count > 1 else "one process on SQLite"
        yield f"capacity_calls_{count}", Bench(CAPACITY, what, against, partial(capacity.calls, count), "", brief)
    for which, what in (("rank", rank), ("reward", REWARDS)):
        measure = partial(capacity.cpu, which)
        yield f"capacity_cpu_{which}", Bench(CAPACITY, f"{what}: CPU time", "PostgreSQL for it", measure, "", brief)
    what = "bytes on disk of a decision with reward and outcome"
    sent, few = "the bodies of its calls", {"events": 100, "repeats": 1, "learned": 20}
    for kind, size, tiny in (("postgresql", capacity.postgres_bytes, brief), ("sqlite", capacity.sqlite_bytes, few)):
        yield f"capacity_bytes_{kind}", Bench(CAPACITY, f"{what}, {kind}", sent, size, "", tiny)
    what = "the trainer for 1e6 events: join, learn, sum and publish, CPU time"
    yield "capacity_training", Bench(CAPACITY, what, "from half as long a log", capacity.training, "", few)


def _machine() -> Rows:
    what, tiny = "float32 matrix product, two threads", {"size": 64, "repeats": 1}
    yield "machine_sgemm", Bench(MACHINE, what, "one thread", machine.sgemm, "", tiny, machine.THREADS)
    what, tiny = "memory copy, two threads", {"mebibytes": 1, "repeats": 1}
    yield "machine_copy", Bench(MACHINE, what, "one thread", machine.copy, "", tiny, machine.THREADS)


GROUPS = (
    DEFAULT, SPECIAL, MORE_LOOPS, BATCHES, HISTORIES, LOGS, LARGE, GPU, EVALUATION, SERVING, CAPACITY, STARTUP, MACHINE,
)  # fmt: skip
_PARTS = (
    _default, _special, _more_loops, _batches, _histories, _logs, _large, _gpu, _evaluation, _serving, _capacity,
    _startup, _machine,
)  # fmt: skip
BENCH: dict[str, Bench] = dict(
    sorted((row for part in _PARTS for row in part()), key=lambda row: GROUPS.index(row[1].group))
)
