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
    large,
    logs,
    machine,
    memory,
    policies,
    prices,
    rounds,
    serving,
    serving_start,
    sparse,
    startup,
    vw,
    widths,
)
from benchmarks.bars import MORE
from benchmarks.default import NAME, learner
from benchmarks.measure import Bench
from benchmarks.peers import DRIVERS, PEERS
from o2pl import O2PL
from o2pl.environments.response import RESPONSES

DEFAULT, SPECIAL, MORE_LOOPS = "The default learner", "Special settings", "More loops from Python"
SIMULATIONS, BATCHES, HISTORIES = "Whole simulations", "Batches", "Long histories"
LOGS, LARGE, GPU, EVALUATION = "Logs", "Logs larger than memory", "GPU", "Evaluation"
SERVING, STARTUP, MACHINE = "The service", "Start-up", "The machine"

LONG = 20_000  # rounds of the default's loops
LOOPS = ((4, 3, "≥ 4"), (20, 5, "≥ 4"), (64, 10, "≥ 4"))
O2PL_LOOPS = ((4, 3, "≥ 4"), (20, 5, "≥ 5"), (64, 10, "≥ 6"))
REPLAYS = ((4, 3, "≥ 10"), (20, 5, "≥ 8"), (64, 10, "≥ 8"))
RUNS = ((20, 5, 100_000), (64, 10, 30_000))
VW_LOOP, AHEAD = "VW, Python loop", "VW, Python loop, text made beforehand"
ACT = "`act` and `update` every round"
REWARDS = "`o2pl serve`: durable reward calls"
WORDS = "20 words of 100,000, K = 5, T = 5,000"
TINY = {"rounds": 120, "repeats": 1}
UNTAUGHT = {"learned": -1.0, **TINY}  # too few rounds to learn in
FEW = {"rows": 2000, "repeats": 1}
Rows = Iterator[tuple[str, Bench]]

# suffix of the row's name, schedule, bars on growth and on reward
SCHEDULES = (("", "near-exact", "≤ 1.1", "gap ≤ .005"), ("_default", "geometric", "", ""))


def _default() -> Rows:
    """The learner with default settings."""
    loop = partial(rounds.loop, learner, rounds=LONG)
    for d, k, bar in LOOPS:
        what = f"{NAME}: {ACT}, d = {d}, K = {k}, T = {LONG:,}"
        yield f"default_loop_{d}x{k}", Bench(DEFAULT, what, VW_LOOP, partial(loop, d, k), bar + MORE, TINY)
    what = f"{NAME}: one decision (`act`) after 2,000 rounds, d = 20, K = 5, median"
    tiny = {"learn": 100, "decisions": 20, "repeats": 1}
    yield "default_act", Bench(DEFAULT, what, "VW, predict", partial(rounds.act, learner, 20, 5), "value ≤ 8", tiny)
    what = "README's first example in a new Python: CPU time"
    program = {"program": "pass", "repeats": 1}
    yield "start_first_use", Bench(DEFAULT, what, "`import numpy`", startup.first_use, "value ≤ 1", program)
    few = {"rounds": 40, "seeds": 1}
    for suffix, way, how, against, bar in (
        ("", "drivers", "`run`", "VW Greedy, own driver (`--cbify`)", "≤ .5"),
        ("_loop", "loops", ACT, "VW Greedy, Python loop", "≤ 1"),
    ):
        what = f"{NAME}: {how}, up to 5,000 rounds a set, CPU time, three seeds"
        for name, folder, sets in (("", True, "the confirmation sets"), ("_embedded", False, "4 embedded sets")):
            group, held = (DEFAULT, bar) if folder else (HISTORIES, "")
            measure = partial(bakeoff.cpu, way, folder)
            yield f"bakeoff_cpu{suffix}{name}", Bench(group, f"{what}, {sets}", against, measure, held, few)
    what = f"{NAME}: `run`, up to 5,000 rounds a set, CPU time, three seeds, the confirmation sets; not like for like"
    measure = partial(bakeoff.cpu, "mixed", True)
    yield "bakeoff_cpu_mixed", Bench(HISTORIES, what, "VW Greedy, Python loop", measure, "", few)


def _o2pl(n_actions: int, seed: int) -> O2PL:
    return O2PL(n_actions, random_state=seed)


def _special() -> Rows:
    """The paper's objective, learners for other kinds of actions and contexts, and the replay schedule."""
    measure: Any
    for d, k, bar in O2PL_LOOPS:
        what = f"`O2PL(K)`: {ACT}, d = {d}, K = {k}, T = {LONG:,}"
        measure = partial(rounds.loop, _o2pl, d, k, rounds=LONG)
        yield f"loop_o2pl_{d}x{k}", Bench(SPECIAL, what, VW_LOOP, measure, bar + MORE, TINY)
    what = f'`Bandit(K, policy="hashed")`: {ACT}, {WORDS}'
    yield "loop_sparse", Bench(SPECIAL, what, VW_LOOP, sparse.loop, "≥ 2" + MORE, TINY)
    measure = partial(sparse.loop, text_ahead=True)
    yield "loop_sparse_text_ahead", Bench(MORE_LOOPS, what, AHEAD, measure, quick=TINY)
    for world in RESPONSES:
        what = f"`ContinuousBandit(bounds)`: {ACT}, a number between bounds, {world}, T = 3,000, CPU time"
        measure = partial(prices.loop, world)
        yield f"loop_continuous_{world}", Bench(SPECIAL, what, f"{VW_LOOP}, `--cats`", measure, "≥ 1.5" + MORE, TINY)
    for suffix, schedule, group in (("", "geometric", SPECIAL), ("_replay", "replay", MORE_LOOPS)):
        bars = {"gaussian": "≥ 1.5", "sparse": "≥ 2"} if group == SPECIAL else {}
        what = f"`GaussianO2PL()`: {ACT}, real-valued action, d = 20, T = 3,000, {schedule} schedule"
        measure = partial(policies.loop_gaussian, schedule)
        against = f"{VW_LOOP}, `--cats`"
        yield f"loop_gaussian{suffix}", Bench(group, what, against, measure, bars.get("gaussian", ""), TINY)
        what = f'`O2PL(K, policy="hashed")`: {ACT}, {WORDS}, {schedule} schedule'
        measure = partial(sparse.loop, partial(sparse.hashed, learner=O2PL, schedule=schedule))
        name = f"loop_sparse{suffix or '_o2pl'}"
        yield name, Bench(group, what, VW_LOOP, measure, bars.get("sparse", ""), TINY)
        yield f"{name}_text_ahead", Bench(MORE_LOOPS, what, AHEAD, partial(measure, text_ahead=True), quick=TINY)
        what = f'`O2PL(policy="actionwise")`: {ACT}, sets of 5 to 20 actions, d = 20, T = 3,000, {schedule} schedule'
        measure = partial(policies.loop_actionwise, schedule)
        yield f"loop_actionwise{suffix}", Bench(group, what, VW_LOOP, measure, quick=TINY)
    for d, k, bar in REPLAYS:
        what, name = f"{_REPLAY}: {ACT}, d = {d}, K = {k}, T = 5,000", f"loop_{d}x{k}"
        yield name, Bench(SPECIAL, what, VW_LOOP, partial(rounds.loop, rounds.replay, d, k), bar, TINY)
        what = f"{_REPLAY}: {ACT}, d = {d}, K = {k}, T = {LONG:,}"
        measure = partial(rounds.loop_reference, d, k, rounds=LONG)
        yield f"{name}_cpp", Bench(MORE_LOOPS, what, "C++", measure, "≥ .5", TINY)
    what = f"{_REPLAY}: one decision (`act`), d = 64, K = 10"
    tiny = {"decisions": 20, **TINY}
    yield "act_latency", Bench(SPECIAL, what, "VW, text made beforehand", rounds.act_latency, "≥ 20", tiny)


_REPLAY = '`O2PL(K, policy="linear", schedule="replay")`'


def _more_loops() -> Rows:
    """The loops above beside VW in other ways, and beside other libraries."""
    default = partial(rounds.loop, learner, rounds=LONG)
    for d, k, _ in LOOPS[1:]:
        what = f"{NAME}: {ACT}, d = {d}, K = {k}, T = {LONG:,}"
        measure = partial(default, d, k, text_ahead=True)
        yield f"default_loop_{d}x{k}_text_ahead", Bench(MORE_LOOPS, what, AHEAD, measure, quick=TINY)
        measure = partial(default, d, k, options=vw.AS_IT_COMES)
        against = f"{VW_LOOP}, its default exploration (ε = .05)"
        yield f"default_loop_{d}x{k}_vw_default", Bench(MORE_LOOPS, what, against, measure, quick=TINY)
    for d, k, _ in REPLAYS[1:]:
        measure = partial(rounds.loop, rounds.replay, d, k, text_ahead=True)
        what = f"{_REPLAY}: {ACT}, d = {d}, K = {k}, T = 5,000"
        yield f"loop_{d}x{k}_text_ahead", Bench(MORE_LOOPS, what, AHEAD, measure, quick=TINY)
    for peer in PEERS:
        what, measure = f"{NAME}: {ACT}, d = 20, K = 5, T = 5,000", partial(rounds.peer, learner, peer)
        yield f"default_loop_20x5_{peer}", Bench(MORE_LOOPS, what, f"{peer} LinUCB", measure, quick=UNTAUGHT)


def _simulations() -> Rows:
    for peer in DRIVERS:
        what, measure = f"{NAME}: `run`, d = 20, K = 5, T = 5,000", partial(rounds.peer, learner, peer, "drive")
        yield (
            f"default_run_20x5_{peer}",
            Bench(SIMULATIONS, what, f"{peer} LinUCB, own driver", measure, quick=UNTAUGHT),
        )
    for d, k, n in RUNS:
        what, name = f"{_REPLAY}: `run`, d = {d}, K = {k}, T = {n:,}", f"run_{d}x{k}"
        run = partial(rounds.run, d, k, rounds=n)
        own = "VW, own driver on a uniform logger's file"
        yield name, Bench(SIMULATIONS, what, own, run, "≥ 4", TINY)
        yield f"{name}_cpu", Bench(SIMULATIONS, what, f"{own}, CPU time", partial(run, cpu=True), quick=TINY)
        yield f"{name}_one_core", Bench(SIMULATIONS, what, f"{own}, one core", partial(run, one_core=True), quick=TINY)
        yield (
            f"{name}_cpp",
            Bench(SIMULATIONS, what, "C++", partial(rounds.run_reference, d, k, rounds=n), "≥ .5", TINY),
        )


def _batches() -> Rows:
    for name, n, d, k in (("batch_1e6x20x5", 10**6, 20, 5), ("batch_1e5x64x10", 10**5, 64, 10)):
        what = f"objective and gradient, linear softmax, two threads, n = {n:,}, d = {d}, K = {k}"
        measure: Any = partial(machine.batch, d=d, n_actions=k, n=n)
        tiny = {"n": 2000, "repeats": 1}
        yield name, Bench(BATCHES, what, "C++", measure, "≤ 1.3", tiny, machine.THREADS)
        if n == 10**6:
            kept = partial(measure, kept=True)
            yield f"{name}_kept", Bench(BATCHES, f"{what}, all features kept", "C++", kept, "", tiny, machine.THREADS)
    for name, which, both in (
        ("batch_actionwise", "sets of 5 to 20 actions, 1e6 rows in all, d = 20", policies.both_actionwise),
        ("batch_gaussian", "real-valued action, n = 1e6, d = 20", policies.both_gaussian),
    ):
        what = f"objective and gradient, {which}"
        yield name, Bench(BATCHES, what, "C++", partial(policies.batch, both), quick=FEW)
    what = "objective and gradient, n = 1,000,000, 20 of 100,000 features, K = 5"
    measure = partial(sparse.batch, nonzeros=20, n_actions=5, n=10**6, slots=10**5)
    yield "sparse_batch_1e6x20x5", Bench(BATCHES, what, "C++", measure, quick={"n": 500, "slots": 300, "repeats": 1})


def _histories() -> Rows:
    for suffix, schedule, growth_bar, gap_bar in SCHEDULES:
        what = f"growth of CPU time with T, 1e4 to 1e6, linear policy, {schedule} schedule"
        measure: Any = partial(histories.exact_growth, schedule)
        tiny: dict[str, Any] = {"sizes": (100, 200, 400), "repeats": 1}
        yield f"exact_growth{suffix}", Bench(HISTORIES, what, "linear cost", measure, growth_bar, tiny)
        what = f"mean reward at T = 5,000, linear policy, {schedule} schedule, ten seeds"
        measure, tiny = partial(histories.exact_reward, schedule), {"rounds": 60, "seeds": 1}
        yield f"exact_reward{suffix}", Bench(HISTORIES, what, "solving every round", measure, gap_bar, tiny)
    what = "ten seeds of 1,000,000 rounds, replay schedule, by two workers"
    tiny = {"seeds": 2, **TINY}
    yield "seeds_10", Bench(HISTORIES, what, "one worker", histories.seeds_at_once, "≥ 1.8", tiny)
    what = "memory that 1e6 rounds add to the process at its peak, d = 20, linear policy"
    tiny = {"rounds": 5000, "repeats": 1}
    yield "memory_1e6", Bench(HISTORIES, what, "the log's columns", memory.memory, "≤ 2", tiny)


def _logs() -> Rows:
    """A log that VW made (`--cb_explore_adf`): 1e5 events of ten actions with five words and five numbers each."""
    tiny = {"rows": 200, "repeats": 1}
    which = "1e5 events of VW's, 10 actions with 5 words and 5 numbers each"
    for kind, called in (("dsjson", "dsjson"), ("text", "VW's text")):
        for suffix, cpu, clock in (("", False, ", two threads each"), ("_cpu", True, ", CPU time")):
            bar, threads = ("≥ 1", 2) if not cpu else ("", 1)
            driver = f"VW, own driver over the file{clock}"
            measure: Any = partial(logs.read, kind, cpu)
            what = f"{called} to columns, {which}"
            yield f"read_{kind}{suffix}", Bench(LOGS, what, driver, measure, bar, tiny, threads)
            what = f'`Bandit(policy="hashed actionwise").fit(read_log(file))` of {called}, {which}'
            measure = partial(logs.learn, kind, cpu)
            held = bar and bar + MORE
            yield f"learn_{kind}{suffix}", Bench(LOGS, what, f"{driver}, greedy", measure, held, tiny, threads)


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
    what = "`evaluate`, all estimators, tests and a baseline, 1e6 rows, d = 10, K = 10: CPU time"
    few = {"n": 2000, "repeats": 1}
    yield "evaluate_1e6x10", Bench(EVALUATION, what, "1e5 rows", evaluation.whole, "value ≤ 3", few)
    what = "`evaluate` of 100 candidates on one log of 1e5 rows, K = 10: CPU time"
    yield "evaluate_candidates", Bench(EVALUATION, what, "ten candidates", evaluation.candidates, "≤ 2", few)
    for name, world, peer, bar in (
        ("width_plugin", "clipped weights", "plugin / published plug-in", "≤ 1.02"),
        ("width_betting", "clipped weights", "betting / published betting", "≤ 1.02"),
        ("width_betting_off_policy", "off-policy", "betting / vw-estimators", "≤ 1.02"),
        ("width_realized_clipped", "clipped weights", "realized / plugin", "≤ 1.5"),
        ("width_realized_bernoulli", "Bernoulli(.95)", "realized / plugin", "≤ 1.5"),
    ):
        ours, theirs = peer.split(" / ")
        what = f"width of a confidence interval at n = 10,000, {world}: {ours}"
        measure = partial(widths.ratio, world, peer, n=10_000)
        yield name, Bench(EVALUATION, what, theirs, measure, bar, {"n": 200})


def _startup() -> Rows:
    for name, what, arguments, bar in (
        ("start_import", "CPU time of `from o2pl import Bandit`", startup.IMPORT, "value ≤ .5"),
        ("start_help", "CPU time of `o2pl --help`", startup.HELP, "value ≤ .6"),
    ):
        measure = partial(startup.startup, arguments)
        yield name, Bench(STARTUP, what, "importing numpy", measure, bar, {"repeats": 1})


def _serving() -> Rows:
    """One server process with SQLite, `wrk` on the same machine. Each call is on disk before it is answered."""
    rank = f"`o2pl serve`: durable rank calls, {serving.ACTIONS} actions of {serving.FEATURES} features"
    minimal = "a minimal FastAPI app: parse, one row, the same group commit"
    brief = {"seconds": 1.0, "repeats": 1, "learned": 20}
    for name, what, bars in (("rank", rank, ("≥ .6", "value ≥ 1500")), ("reward", REWARDS, ("≥ .6", "value ≥ 2500"))):
        measure = partial(serving.rate, name)
        yield f"serve_{name}", Bench(SERVING, f"{what}: calls per second", minimal, measure, bars[0], brief)
        held = "calls per second, held to a number"
        yield f"serve_{name}_rate", Bench(SERVING, f"{what}: {held}", minimal, measure, bars[1], brief)
    slow, what = partial(serving.slowest, "rank"), f"{rank}: 99 of 100 are answered within"
    yield "serve_rank_p99", Bench(SERVING, what, minimal, slow, "value ≤ 20", brief)
    what = "`o2pl train`: age of the newest event in the served parameters at its worst, 500 events/s for 10 minutes"
    brief = {"rate": 100, "seconds": 3.0, "texts": 50}
    yield "serve_freshness", Bench(SERVING, what, "one version every 5 s", freshness.freshness, "value ≤ 10", brief)
    brief, empty = {"events": 50, "repeats": 1}, "a store without events"
    what = "`o2pl serve`, 1e6 events in SQLite: seconds"
    yield "serve_start", Bench(SERVING, f"{what} until ready", empty, serving_start.ready, "value ≤ 5", brief)
    first = f"{what} until the first rank call is answered"
    yield "serve_first_rank", Bench(SERVING, first, empty, serving_start.first_rank, "value ≤ 10", brief)


def _capacity() -> Rows:
    """What docs/capacity.md is made from."""
    brief = {"seconds": 0.3, "repeats": 1, "events": 60, "most": 1, "learned": 20}
    rank = f"`o2pl serve`: durable rank calls, {serving.ACTIONS} actions of {serving.FEATURES} features"
    for count in capacity.COUNTS:
        what = f"{rank}, {count} server process{'es' if count > 1 else ''} on one PostgreSQL: calls per second"
        against = "one process on PostgreSQL" if count > 1 else "one process on SQLite"
        yield f"capacity_calls_{count}", Bench(SERVING, what, against, partial(capacity.calls, count), "", brief)
    for which, what in (("rank", rank), ("reward", REWARDS)):
        measure = partial(capacity.cpu, which)
        yield f"capacity_cpu_{which}", Bench(SERVING, f"{what}: CPU time", "PostgreSQL for it", measure, "", brief)
    what = "bytes on disk of a decision with reward and outcome"
    sent, few = "the bodies of its calls", {"events": 100, "repeats": 1, "learned": 20}
    for kind, size, tiny in (("postgresql", capacity.postgres_bytes, brief), ("sqlite", capacity.sqlite_bytes, few)):
        yield f"capacity_bytes_{kind}", Bench(SERVING, f"{what}, {kind}", sent, size, "", tiny)
    what = "the trainer for 1e6 events: join, learn, sum and publish, CPU time"
    yield "capacity_training", Bench(SERVING, what, "from half as long a log", capacity.training, "", few)


def _machine() -> Rows:
    what, tiny = "float32 matrix product, two threads", {"size": 64, "repeats": 1}
    yield "machine_sgemm", Bench(MACHINE, what, "one thread", machine.sgemm, "", tiny, machine.THREADS)
    what, tiny = "memory copy, two threads", {"mebibytes": 1, "repeats": 1}
    yield "machine_copy", Bench(MACHINE, what, "one thread", machine.copy, "", tiny, machine.THREADS)


GROUPS = (
    DEFAULT, SPECIAL, MORE_LOOPS, SIMULATIONS, BATCHES, HISTORIES, LOGS, LARGE, GPU, EVALUATION, SERVING, STARTUP,
    MACHINE,
)  # fmt: skip
_PARTS = (
    _default, _special, _more_loops, _simulations, _batches, _histories, _logs, _large, _gpu, _evaluation, _serving,
    _capacity, _startup, _machine,
)  # fmt: skip
BENCH: dict[str, Bench] = dict(
    sorted((row for part in _PARTS for row in part()), key=lambda row: GROUPS.index(row[1].group))
)
