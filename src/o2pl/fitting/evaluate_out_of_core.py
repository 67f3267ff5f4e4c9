"""`evaluate` for logs larger than memory: estimates are sums over rows, computed here or on a Ray cluster.

A sample gives the diagnostics, the test of the propensities and the reward model. The estimates use all other rows,
none of which the model has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.encode.schema import Schema
from o2pl.errors import InvalidInput
from o2pl.evaluation.estimators import EstimatorInput, EstimatorSettings, Stream
from o2pl.evaluation.evaluate import evaluate
from o2pl.evaluation.evaluated_logs import numeric_evaluated_log
from o2pl.evaluation.gains import GainSums, ends_of_gains, gains_of
from o2pl.evaluation.intervals import SampleMoments, normal_interval_from_moments
from o2pl.evaluation.results import Evaluation, Valued
from o2pl.evaluation.reward_models import RewardModel, fit_rewards
from o2pl.evaluation.support import Support, largest_supported_weight, support_of
from o2pl.evaluation.unshown import Side
from o2pl.evaluation.values import columns_for_values, headline_value, wider
from o2pl.fitting.large_logs import (
    Read,
    named_alike_in_large_log,
    rows_of_large_log,
    sampled_rows_of_large_log,
    scan_large_log,
)
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.files import ParquetPart, parquet_file_parts, parquet_part_tables
from o2pl.learners.targets import as_target, with_target_names
from o2pl.protocols import Floats, Ints
from o2pl.validation import RewardRange

ESTIMATES = ("ips", "snips", "clipped", "dm", "dr", "sndr")


class _Common(NamedTuple):
    """What the sums of all parts have in common, from the sample."""

    limit: float  # of weights
    floors: tuple[float, float]
    about: tuple[float, float]


class Job(NamedTuple):
    """The data shared by all parts of a log."""

    policies: tuple[Any, ...]  # the policy and, if there is one, the baseline
    schema: Schema
    model: RewardModel  # of the sample's rewards
    settings: EstimatorSettings
    support: Support | None
    frames: tuple[_Common, ...]  # of the value and, with a baseline, of its value and of the difference
    log: Interactions  # the sample: names and range
    left_out: Ints  # rows of the sample, excluded from the estimates
    bad: BadRows


class RowSums(NamedTuple):
    """Sums over some rows; `added` merges them."""

    streams: dict[str, Stream]  # the estimates
    weights: Floats  # Σ w, Σ w²
    gains: tuple[GainSums, ...]  # of the value and, with a baseline, of its value and of the difference

    def added(self, other: RowSums) -> RowSums:
        if not self.streams or not other.streams:
            return other if not self.streams else self
        merged = {name: stream.merge(other.streams[name]) for name, stream in self.streams.items()}
        gains = tuple(one.added(two) for one, two in zip(self.gains, other.gains, strict=True))
        return RowSums(merged, self.weights + other.weights, gains)


Spread = Callable[
    [Job, Sequence[ParquetPart]], Iterable[RowSums]
]  # evaluates parts locally or remotely, results in order


def evaluate_out_of_core(
    path: Path,
    policy: object,
    baseline: object = None,
    *,
    reward_range: RewardRange | None = None,
    delta: float = 0.05,
    seed: int = 0,
    bad: BadRows | None = None,
    read: Read | None = None,
    spread: Spread | None = None,
) -> Evaluation:
    """Evaluate on a Parquet file or folder that is longer than a sample: `ESTIMATES`, and the judgement."""
    bad = bad or BadRows(path.name)
    found = scan_large_log(path, reward_range, bad, seed, read)
    sample = with_target_names(found.sample, policy, baseline)
    parts = parquet_file_parts(path, small=True)
    total = sum(part.rows for part in parts)
    if total < 2 * len(sample):
        raise InvalidInput(f"{path.name}: found {total:,} rows, expected at least twice the sample; use --in-memory")
    seen = evaluate(sample, policy, baseline=baseline, delta=delta, propensities="logged", seed=seed)
    schema = Schema.learn(sample.contexts)
    policies = (policy,) if baseline is None else (policy, baseline)
    numbers = numeric_evaluated_log(sample)
    model, settings, support = fit_rewards(numbers, seed=seed), EstimatorSettings.theory(total), support_of(numbers)
    sides = _evaluated_sides(policies, numbers, sample.contexts, model)
    frames = tuple(_evaluation_frame(numbers, one, model, support) for one in _evaluated_comparisons(sides))
    left_out = sampled_rows_of_large_log(total, seed)
    job = Job(policies, schema, model, settings, support, frames, sample, left_out, BadRows(bad.file, bad.limit))
    sums: RowSums | None = None
    for done, one in enumerate((spread or _evaluate_parts_here)(job, parts)):
        sums = one if sums is None else sums.added(one)
        if read is not None:
            read(parts[done].start + parts[done].rows, total)
    assert sums is not None
    return _evaluation_put_together(seen, sums, delta, found.reward_range)


def _evaluate_parts_here(job: Job, parts: Sequence[ParquetPart]) -> Iterator[RowSums]:
    return (evaluated_part_sums(job, part) for part in parts)


def evaluated_part_sums(job: Job, part: ParquetPart) -> RowSums:
    """Return the sums over the rows of a part that are not in the sample."""
    sums, start = RowSums({}, np.zeros(2), ()), part.start
    bad = BadRows(job.bad.file, job.bad.limit)
    for table in parquet_part_tables(part):
        first, last = np.searchsorted(job.left_out, (start, start + len(table)))
        kept = np.setdiff1d(np.arange(len(table)), job.left_out[first:last] - start, assume_unique=True)
        bad.first, start = start, start + len(table)
        if len(kept):
            batch = rows_of_large_log(table.take(kept), bad, job.log.reward_range)
            sums = sums.added(
                _evaluated_batch_sums(
                    job, named_alike_in_large_log(batch, job.log.action_names, job.log.n_actions or 0)
                )
            )
    return sums


def _evaluated_sides(policies: Sequence[object], log: Interactions, contexts: object, model: RewardModel) -> list[Side]:
    named = zip(policies, ("policy", "baseline"), strict=False)
    targets = [as_target(one, log, name, contexts=contexts) for one, name in named]
    return [
        Side(target, one.inputs) for target, one in zip(targets, columns_for_values(log, targets, model), strict=True)
    ]


def _evaluated_comparisons(sides: Sequence[Side]) -> list[list[Side]]:
    """Return what is summed: the policy's value and, with a baseline, its value and the difference."""
    if len(sides) == 1:
        return [[sides[0]]]
    own, other = sides
    return [[own], [other], [own, other._replace(sign=-1)]]


def _evaluation_frame(log: Interactions, sides: Sequence[Side], model: RewardModel, support: Support | None) -> _Common:
    found = gains_of(log, sides, model, support)
    logged = sum(side.sign for side in sides if side.logged)
    return _Common(
        largest_supported_weight(found.whole - logged), found.floors, (found.sums.lower.about, found.sums.upper.about)
    )


def _evaluated_batch_sums(job: Job, batch: Interactions) -> RowSums:
    numbers = replace(batch, contexts=job.schema.numbers(batch.contexts))
    model = replace(
        job.model, log=numbers, folds=np.zeros(len(batch), np.int8)
    )  # any fold is valid: these rows are new
    sides = _evaluated_sides(job.policies, numbers, batch.contexts, model)
    own = _evaluated_by_model(sides[0].inputs, model)
    streams = {name: Stream(name, job.settings).add(own) for name in ESTIMATES}
    sums = []
    for frame, some in zip(job.frames, _evaluated_comparisons(sides), strict=True):
        found = gains_of(numbers, some, model, job.support, limit=frame.limit)
        sums.append(replace(found, floors=frame.floors).sums_around(frame.about))
    return RowSums(streams, np.array([own.weights.sum(), own.weights @ own.weights]), tuple(sums))


def _evaluated_by_model(columns: EstimatorInput, model: RewardModel) -> EstimatorInput:
    """For the logger itself, use m(x, a) as v(x): DR is then the reward."""
    if columns.expected is not None:
        return columns
    played = np.concatenate([model.played(rows) for rows in model.log.blocks()])
    return columns._replace(played=played, expected=played)


def _evaluation_put_together(seen: Evaluation, sums: RowSums, delta: float, ends: RewardRange) -> Evaluation:
    """Combine the diagnostics of the sample with the estimates from all other rows."""
    missing, found = seen.diagnostics.missing, {}
    for name, stream in sums.streams.items():
        point, error, n, one_more = stream.estimate()
        low, high = normal_interval_from_moments(SampleMoments(n, point, error**2 * n), delta, one_more)
        found[name] = wider(Valued(name, stream.estimator.says, point, low, high), ends, missing, False)
    headline = headline_value({name: sums.streams[name].estimate().error for name in ESTIMATES})
    value, *others = (ends_of_gains(one, delta) for one in sums.gains)
    best = found[headline]
    found[headline] = replace(best, low=min(value.low, best.value), high=max(value.high, best.value))
    base, gap = None, None
    if others and seen.baseline is not None:
        base = Valued(seen.baseline.name, "", *others[0][:3])
        gap = Valued("difference", "policy minus baseline", *others[1][:3])
        if not sums.gains[2].felt[1]:  # identical policies
            gap = replace(gap, value=0.0, low=0.0, high=0.0)
    total, squares = sums.weights
    rows = int(sums.gains[0].rows)
    effective = float(total**2 / squares) if squares else 0.0
    diagnostics = replace(seen.diagnostics, n=rows, effective=effective, mean_weight=float(total / rows))
    note = (
        f"clipping, overlap, drift and the test of the propensities are from a sample of {seen.diagnostics.n:,} rows,"
        " on which the reward model was fitted; the estimates are from all other rows"
    )
    return replace(
        seen, estimates=tuple(found[name] for name in ESTIMATES), headline=headline, baseline=base, difference=gap,
        diagnostics=diagnostics, warnings=(*seen.warnings, note), kind=(others or [value])[-1].kind,
        unsupported=sums.gains[-1].unsupported,
    )  # fmt: skip


def evaluate_on_ray(cluster: tuple[Any, dict[str, str]]) -> Spread:
    """Evaluate on a Ray cluster: one task per part; if a worker dies, another one repeats its task."""
    ray, variables = cluster

    def spread(job: Job, parts: Sequence[ParquetPart]) -> Iterator[RowSums]:
        remote = ray.remote(evaluated_part_sums).options(num_cpus=1, max_retries=3, runtime_env={"env_vars": variables})
        given = ray.put(job)
        waiting = [remote.remote(given, part) for part in parts]
        for reference, part in zip(waiting, parts, strict=True):
            try:
                yield ray.get(reference)
            except ray.exceptions.WorkerCrashedError:
                raise InvalidInput(
                    f"{part.fragment.path}: its worker died four times, possibly out of memory; try fewer --workers"
                ) from None
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None

    return spread
