"""The rows of the bench: what each measures, beside whom, and the bar it is held to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from benchmarks import evaluation, histories, machine, memory, policies, rounds, sparse, startup, widths
from benchmarks.measure import Row
from benchmarks.peers import DRIVERS, PEERS

LOOPS = ((4, 3, "≥ 10"), (20, 5, "≥ 15"), (64, 10, "≥ 10"))
RUNS = ((20, 5, 100_000), (64, 10, 30_000))

# suffix of the row's name, schedule, bars on growth and on reward
SCHEDULES = (("", "near-exact", "≤ 1.1", "gap ≤ .005"), ("_default", "geometric", "", ""))


class Bench(NamedTuple):
    group: str
    what: str
    against: str
    measure: Callable[[], Row]
    bar: str = ""  # on the ratio; "gap": on the peer's value less ours; "value": on ours. Empty: none


def _width(world: str, peer: str, bar: str) -> Bench:
    ours, theirs = peer.split(" / ")
    what = f"interval width at n = 10,000, {world}: {ours}"
    return Bench("Evaluation", what, theirs, partial(widths.ratio, world, peer, 10_000), bar)


def _table() -> dict[str, Bench]:
    rows: dict[str, Bench] = {}
    each_round, whole, history = "Every round from Python", "Whole simulations", "Whole histories"
    for d, k, bar in LOOPS:
        what, name = f"act and update, replay-Adam, d = {d}, K = {k}", f"loop_{d}x{k}"
        rows[name] = Bench(each_round, what, "VW, Python loop", partial(rounds.loop, d, k), bar)
        rows[f"{name}_cpp"] = Bench(each_round, what, "C++", partial(rounds.loop_reference, d, k), "≥ .5")
        if d > 4:
            ahead = partial(rounds.loop, d, k, text_ahead=True)
            rows[f"{name}_text_ahead"] = Bench(each_round, what, "VW, Python loop, text made beforehand", ahead)
    words = "act and update, 20 words of 100,000, K = 5"
    for name, schedule in (("loop_sparse", "geometric"), ("loop_sparse_replay", "replay")):
        what = f"{words}, {schedule} schedule"
        rows[name] = Bench(each_round, what, "VW, Python loop", partial(sparse.loop, schedule))
        ahead = partial(sparse.loop, schedule, text_ahead=True)
        rows[f"{name}_text_ahead"] = Bench(each_round, what, "VW, Python loop, text made beforehand", ahead)
    for peer in PEERS:
        what = "act and update, replay-Adam, d = 20, K = 5"
        rows[f"loop_20x5_{peer}"] = Bench(each_round, what, f"{peer} LinUCB", partial(rounds.peer, peer))
    rows["act_latency"] = Bench(each_round, "one decision, d = 64, K = 10", "VW", rounds.act_latency, "≥ 20")
    for schedule in ("replay", "geometric"):
        suffix = "" if schedule == "replay" else f"_{schedule}"
        for name, what, against, measure in (
            ("loop_actionwise", "sets of 5 to 20 actions, d = 20", "cb_explore_adf", policies.loop_actionwise),
            ("loop_gaussian", "real-valued action, d = 20", "cats", policies.loop_gaussian),
        ):
            what = f"act and update, {what}, {schedule}"
            rows[name + suffix] = Bench(each_round, what, f"VW, Python loop, {against}", partial(measure, schedule))
    for d, k, n in RUNS:
        what, name = f"`O2PL.run`, replay-Adam, d = {d}, K = {k}", f"run_{d}x{k}"
        rows[name] = Bench(whole, what, "VW, own driver", partial(rounds.run, d, k, rounds=n), "≥ 4")
        cpu, one_core = (partial(rounds.run, d, k, rounds=n, **{each: True}) for each in ("cpu", "one_core"))
        rows[f"{name}_cpu"] = Bench(whole, what, "VW, own driver, CPU time of both threads", cpu)
        rows[f"{name}_one_core"] = Bench(whole, what, "VW, own driver, all on one core", one_core)
        rows[f"{name}_cpp"] = Bench(whole, what, "C++", partial(rounds.run_reference, d, k, n), "≥ .5")
    for peer in DRIVERS:
        what, measure = "`O2PL.run`, replay-Adam, d = 20, K = 5", partial(rounds.peer, peer, "drive")
        rows[f"run_20x5_{peer}"] = Bench(whole, what, f"{peer} LinUCB, own driver", measure)
    for name, (n, d, k) in {"batch_1e6x20x5": (10**6, 20, 5), "batch_1e5x64x10": (10**5, 64, 10)}.items():
        what = f"objective and gradient, two threads, n = {n:,}, d = {d}, K = {k}"
        rows[name] = Bench("Batches", what, "C++", partial(machine.batch, n, d, k), "≤ 1.3")
        if n == 10**6:
            kept = partial(machine.batch, n, d, k, kept=True)
            rows[f"{name}_kept"] = Bench("Batches", f"{what}, all features kept", "C++", kept)
    for name, what, both in (
        ("batch_actionwise", "sets of 5 to 20 actions, 1e6 rows in all, d = 20", policies.both_actionwise),
        ("batch_gaussian", "real-valued action, n = 1e6, d = 20", policies.both_gaussian),
    ):
        what = f"objective and gradient, one thread, {what}"
        rows[name] = Bench("Batches", what, "C++", partial(policies.batch, both))
    what = "objective and gradient, one thread, n = 1,000,000, 20 of 100,000 features, K = 5"
    measure = partial(sparse.batch, 10**6, 20, 10**5, 5)
    rows["sparse_batch_1e6x20x5"] = Bench("Batches", what, "C++", measure)
    growth, reward = "growth of CPU time with T, 1e4 to 1e6, linear policy", "mean reward at T = 5,000, ten seeds"
    for suffix, schedule, growth_bar, gap_bar in SCHEDULES:
        grown, rewarded = (partial(each, schedule) for each in (histories.exact_growth, histories.exact_reward))
        rows[f"exact_growth{suffix}"] = Bench(history, f"{growth}, {schedule}", "linear cost", grown, growth_bar)
        every = "solving every round"
        rows[f"exact_reward{suffix}"] = Bench(history, f"{reward}, {schedule}", every, rewarded, gap_bar)
    seeds = "ten seeds of 1,000,000 rounds, replay-Adam, by two workers"
    rows["seeds_10"] = Bench(history, seeds, "one worker", histories.seeds_at_once, "≥ 1.8")
    peak = "what 1e6 rounds, d = 20, linear policy, add to the process at its peak"
    rows["memory_1e6"] = Bench(history, peak, "the log's columns", memory.memory, "≤ 2")
    cost = "CPU time of `O2PL()`, up to 5,000 rounds a set, three seeds"
    for name, folder, sets in (("bakeoff_cpu", True, "confirmation sets"), ("bakeoff_cpu_embedded", False, "4 sets")):
        measure = partial(histories.bakeoff_cpu, folder)
        rows[name] = Bench(history, f"{cost}, {sets}", "VW Greedy", measure, "≤ .5")
    estimators = "rows of a log through IPS, SNIPS and DR with intervals"
    rows["evaluate_1e7"] = Bench("Evaluation", estimators, "OBP's bootstrap", evaluation.speed, "≥ 20")
    rows["width_plugin"] = _width("clipped weights", "plugin / published plug-in", "≤ 1.02")
    rows["width_betting"] = _width("clipped weights", "betting / published betting", "≤ 1.02")
    rows["width_betting_off_policy"] = _width("off-policy", "betting / vw-estimators", "≤ 1.02")
    rows["width_realized_clipped"] = _width("clipped weights", "realized / plugin", "≤ 1.5")
    rows["width_realized_bernoulli"] = _width("Bernoulli(.95)", "realized / plugin", "≤ 1.5")
    for name, what, arguments, bar in (
        ("start_import", "CPU time of `import o2pl`", startup.IMPORT, "value ≤ .5"),
        ("start_help", "CPU time of `o2pl --help`", startup.HELP, "value ≤ .6"),
    ):
        rows[name] = Bench("Start-up", what, "importing numpy", partial(startup.startup, arguments), bar)
    first = "CPU time of a first `O2PL().run`, import and compiling included"
    rows["start_first_use"] = Bench("Start-up", first, "again, kernels on disk", startup.first_use)
    rows["machine_sgemm"] = Bench("Machine", "float32 matrix product, two threads", "one thread", machine.sgemm)
    rows["machine_copy"] = Bench("Machine", "memory copy, two threads", "one thread", machine.copy)
    return rows


BENCH = _table()


def met(bar: str, found: Mapping[str, Any]) -> bool | None:
    """Whether a stored row meets a bar; None where there is nothing to meet."""
    parsed = re.fullmatch(r"(gap |value |)([≥≤]) ([\d.]+)", bar)
    if parsed is None or "ratio" not in found:
        return None
    value = found["ratio"]
    if parsed[1]:
        value = found["o2pl"] if parsed[1] == "value " else found["peer"] - found["o2pl"]
    limit = float(parsed[3])
    return bool(value >= limit if parsed[2] == "≥" else value <= limit)
