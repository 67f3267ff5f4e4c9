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

from o2pl.contexts.schema import Schema
from o2pl.errors import InvalidInput
from o2pl.evaluation.estimators import EstimatorInput, EstimatorSettings, Stream
from o2pl.evaluation.evaluate import evaluate
from o2pl.evaluation.intervals import SampleMoments, normal_from_moments
from o2pl.evaluation.logs import with_numbers
from o2pl.evaluation.results import Evaluation, Valued
from o2pl.evaluation.reward_models import RewardModel, fit_rewards
from o2pl.evaluation.values import columns_of, headline_of, wider
from o2pl.fitting.streaming import Read, named_alike, rows_of, sampled, scan
from o2pl.formats.bad import BadRows
from o2pl.formats.files import Part, parquet_parts, part_tables
from o2pl.interactions import Interactions
from o2pl.learners.targets import as_target, with_names
from o2pl.protocols import Floats, Ints
from o2pl.validation import RewardRange

ESTIMATES = ("ips", "snips", "clipped", "dm", "dr", "sndr")
_BASELINE, _DIFFERENCE = "baseline", "difference"


class Job(NamedTuple):
    """The data shared by all parts of a log."""

    policies: tuple[Any, ...]  # the policy and, if there is one, the baseline
    schema: Schema
    model: RewardModel  # of the sample's rewards
    settings: EstimatorSettings
    log: Interactions  # the sample: names and range
    left_out: Ints  # rows of the sample, excluded from the estimates
    bad: BadRows


class RowSums(NamedTuple):
    """Sums over some rows; `added` merges them."""

    streams: dict[str, Stream]  # the estimates, the baseline and the difference
    weights: Floats  # Σ w, Σ w²

    def added(self, other: RowSums) -> RowSums:
        if not self.streams or not other.streams:
            return other if not self.streams else self
        merged = {name: stream.merge(other.streams[name]) for name, stream in self.streams.items()}
        return RowSums(merged, self.weights + other.weights)


Spread = Callable[[Job, Sequence[Part]], Iterable[RowSums]]  # evaluates parts locally or remotely, results in order


def evaluate_out_of_core(
    path: Path,
    policy: Any,
    baseline: Any = None,
    *,
    reward_range: RewardRange | None = None,
    delta: float = 0.05,
    seed: int = 0,
    bad: BadRows | None = None,
    read: Read | None = None,
    spread: Spread | None = None,
) -> Evaluation:
    """Evaluate on a Parquet file or folder that is longer than a sample: `ESTIMATES`, and the difference by DR."""
    bad = bad or BadRows(path.name)
    found = scan(path, reward_range, bad, seed, read)
    sample = with_names(found.sample, policy, baseline)
    parts = parquet_parts(path, small=True)
    total = sum(part.rows for part in parts)
    if total < 2 * len(sample):
        raise InvalidInput(f"{path.name}: found {total:,} rows, expected at least twice the sample; use --in-memory")
    seen = evaluate(sample, policy, baseline=baseline, delta=delta, propensities="logged", seed=seed)
    schema = Schema.learn(sample.contexts)
    policies = (policy,) if baseline is None else (policy, baseline)
    model, settings = fit_rewards(with_numbers(sample), seed=seed), EstimatorSettings.theory(total)
    job = Job(policies, schema, model, settings, sample, sampled(total, seed), BadRows(bad.file, bad.limit))
    sums: RowSums | None = None
    for done, one in enumerate((spread or _here)(job, parts)):
        sums = one if sums is None else sums.added(one)
        if read is not None:
            read(parts[done].start + parts[done].rows, total)
    assert sums is not None
    return _put_together(seen, sums, delta, found.reward_range)


def _here(job: Job, parts: Sequence[Part]) -> Iterator[RowSums]:
    return (part_sums(job, part) for part in parts)


def part_sums(job: Job, part: Part) -> RowSums:
    """Return the sums over the rows of a part that are not in the sample."""
    sums, start = RowSums({}, np.zeros(2)), part.start
    bad = BadRows(job.bad.file, job.bad.limit)
    for table in part_tables(part):
        first, last = np.searchsorted(job.left_out, (start, start + len(table)))
        kept = np.setdiff1d(np.arange(len(table)), job.left_out[first:last] - start, assume_unique=True)
        bad.first, start = start, start + len(table)
        if len(kept):
            batch = rows_of(table.take(kept), bad, job.log.reward_range)
            sums = sums.added(_batch_sums(job, named_alike(batch, job.log.action_names, job.log.n_actions or 0)))
    return sums


def _batch_sums(job: Job, batch: Interactions) -> RowSums:
    numbers = replace(batch, contexts=job.schema.numbers(batch.contexts))
    named = zip(job.policies, ("policy", "baseline"), strict=False)
    targets = [as_target(one, numbers, name, contexts=batch.contexts) for one, name in named]
    model = replace(
        job.model, log=numbers, folds=np.zeros(len(batch), np.int8)
    )  # any fold is valid: these rows are new
    own, *others = (_modelled(one.inputs, model) for one in columns_of(numbers, targets, model))
    streams = {name: Stream(name, job.settings).add(own) for name in ESTIMATES}
    for other in others:
        streams[_BASELINE] = Stream("dr", job.settings).add(other)
        # DR is linear in weights and values, so the DR of the difference is the difference row by row.
        gap = own._replace(weights=own.weights - other.weights, expected=_expected(own) - _expected(other))
        streams[_DIFFERENCE] = Stream("dr", job.settings).add(gap)
    return RowSums(streams, np.array([own.weights.sum(), own.weights @ own.weights]))


def _modelled(columns: EstimatorInput, model: RewardModel) -> EstimatorInput:
    """For the logger itself, use m(x, a) as v(x): DR is then the reward."""
    if columns.expected is not None:
        return columns
    played = np.concatenate([model.played(rows) for rows in model.log.blocks()])
    return columns._replace(played=played, expected=played)


def _expected(columns: EstimatorInput) -> Floats:
    assert columns.expected is not None
    return columns.expected


def _put_together(seen: Evaluation, sums: RowSums, delta: float, ends: RewardRange) -> Evaluation:
    """Combine the diagnostics of the sample with the estimates from all other rows."""
    streams = sums.streams
    names = {_BASELINE: "" if seen.baseline is None else seen.baseline.name, _DIFFERENCE: _DIFFERENCE}
    says = {_BASELINE: "", _DIFFERENCE: "policy minus baseline"}
    missing, found = seen.diagnostics.missing, {}
    for name, stream in streams.items():
        value, error, n, one_more = stream.estimate()
        low, high = normal_from_moments(SampleMoments(n, value, error**2 * n), delta, one_more)
        if name == _DIFFERENCE and not stream.products.any():  # identical policies
            low = high = value
        one = Valued(names.get(name, name), says.get(name, stream.estimator.says), value, low, high)
        found[name] = wider(one, ends, missing if name != _BASELINE else 0.0, False)
    total, squares = sums.weights
    rows = streams[ESTIMATES[0]].n
    effective = float(total**2 / squares) if squares else 0.0
    diagnostics = replace(seen.diagnostics, n=rows, effective=effective, mean_weight=float(total / rows))
    estimates = tuple(found[name] for name in ESTIMATES)
    headline = headline_of({name: streams[name].estimate().error for name in ESTIMATES})
    note = (
        f"clipping, overlap, drift and the test of the propensities are from a sample of {seen.diagnostics.n:,} rows,"
        " on which the reward model was fitted; the estimates are from all other rows"
    )
    return replace(
        seen, estimates=estimates, headline=headline, baseline=found.get(_BASELINE),
        difference=found.get(_DIFFERENCE), diagnostics=diagnostics, warnings=(*seen.warnings, note),
    )  # fmt: skip


def on_ray(cluster: tuple[Any, dict[str, str]]) -> Spread:
    """Evaluate on a Ray cluster: one task per part; if a worker dies, another one repeats its task."""
    ray, variables = cluster

    def spread(job: Job, parts: Sequence[Part]) -> Iterator[RowSums]:
        remote = ray.remote(part_sums).options(num_cpus=1, max_retries=3, runtime_env={"env_vars": variables})
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
