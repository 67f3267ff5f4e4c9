"""Rows that need a GPU: objective and gradient of logs that lie on the card, a fit, and steps of a network.

Data are made on the card. Where JAX sees no GPU the rows are skipped, and the page keeps what was recorded last.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import Row, Skipped, of_pairs
from o2pl.errors import InvalidInput, MissingExtra

_SCALE = 8.0  # above the largest number that normal draws make
_REPEATS = 7


def _card() -> Any:
    """JAX and the name of its GPU, or `Skipped`."""
    from o2pl.kernels.gpu import find_gpu

    try:
        device = find_gpu("gpu")
    except (InvalidInput, MissingExtra) as reason:
        raise Skipped(str(reason)) from None
    import jax

    return jax, f"{device.device_kind}, JAX {jax.__version__}"


def _milliseconds(run: Callable[[], Any], calls: int) -> float:
    """Of one call among several in a row."""
    import jax

    start = time.perf_counter()
    for _ in range(calls):
        out = run()
    jax.block_until_ready(out)  # type: ignore[no-untyped-call]  # it has no types
    return 1e3 * (time.perf_counter() - start) / calls


def made(d: int, n_actions: int, rows: int, seed: int = 0) -> tuple[Any, ...]:
    """Contexts [rows, d], actions, rewards and 1 / propensities of a log, and weights: all on the card."""
    import jax
    import jax.numpy as jnp

    def make() -> Any:
        keys = jax.random.split(jax.random.PRNGKey(seed), 4)
        X = jax.random.normal(keys[0], (rows, d), jnp.float32)
        truth, other = jax.random.normal(jax.random.PRNGKey(99), (2, n_actions, d), jnp.float32) / np.float32(d**0.5)
        Z = jnp.dot(X, truth.T, precision="highest")
        logger = 0.8 * jax.nn.softmax(0.5 * Z, axis=1) + 0.2 / n_actions
        actions = jax.random.categorical(keys[1], jnp.log(logger)).astype(jnp.int8)
        played = jax.nn.one_hot(actions, n_actions, dtype=jnp.float32)
        likely = jax.nn.sigmoid((Z * played).sum(axis=1) - 1)
        rewards = (jax.random.uniform(keys[2], (rows,), jnp.float32) < likely).astype(jnp.float32)
        return X, actions, rewards, 1 / (logger * played).sum(axis=1), other

    return tuple(jax.jit(make)())


def value(d: int, n_actions: int, n: int, repeats: int = _REPEATS) -> Row:
    """The pessimistic objective's sums and both parts of its gradient, in milliseconds, beside plain JAX."""
    jax, card = _card()
    from o2pl.kernels.gpu_blocks import BLOCK, gpu_blocks
    from o2pl.kernels.gpu_parts import ObjectiveKind, Rows
    from o2pl.kernels.gpu_tiles import gpu_tile_halves, gpu_tiled, gpu_tiles_for
    from o2pl.policies.jax_helpers import jax_in_double

    jnp, kind, tiles = jax.numpy, ObjectiveKind(), gpu_tiles_for(d, False)
    each = tiles.rows * tiles.programs
    X, actions, rewards, inverse, W = made(d, n_actions, -(-n // each) * each)
    residuals = rewards.mean() - rewards
    alpha = np.float32(1 + np.log(np.e * n))
    high, low = gpu_tile_halves(X, np.full(d, _SCALE, np.float32))
    columns, fused = (actions, residuals, inverse, None, None), gpu_tiled(kind, n_actions, d, tiles)

    scaled = W * _SCALE

    def ours(weights: Any = scaled) -> Any:
        return fused(weights, alpha, np.int32(n), high, low, columns)

    def plain(W: Any, X: Any, actions: Any, residuals: Any, inverse: Any) -> Any:
        def objective(W: Any) -> Any:
            log_pi = jax.nn.log_softmax(X @ W.T, axis=1)
            own = (log_pi * jax.nn.one_hot(actions, n_actions, dtype=X.dtype)).sum(axis=1)
            centred = jnp.minimum(jnp.exp(own) * inverse, alpha) - 1
            return (centred * residuals).mean() + jnp.sqrt((centred**2).mean())

        return jax.value_and_grad(objective)(W)

    compiled = jax.jit(plain)

    counted = tuple(column[:n] for column in (X, actions, residuals, inverse))

    def theirs() -> Any:
        return compiled(W, *counted)

    found = [np.asarray(ours(scaled * share)[1], np.float64) * _SCALE for share in (1.0, 0.5)]
    jax.block_until_ready(theirs())
    pairs = [(_milliseconds(ours, 20), _milliseconds(theirs, 5)) for _ in range(repeats)]
    errors = []
    with jax_in_double():
        rows = -(-n // BLOCK) * BLOCK

        def whole(column: Any, kind: Any = jnp.float64) -> Any:
            filled = [(0, rows - n)] + [(0, 0)] * (column.ndim - 1)
            return jnp.pad(column[:n], filled).astype(kind)

        own = Rows(whole(actions, jnp.int8), whole(residuals), whole(inverse))
        for share, gradients in zip((1.0, 0.5), found, strict=True):
            exact = gpu_blocks(kind, n_actions)(
                (W * share).astype(jnp.float64), np.float64(alpha), np.int32(n), whole(X), tuple(own)
            )[1]
            apart = np.linalg.norm(gradients - np.asarray(exact), axis=(1, 2))
            errors.append(float((apart / np.linalg.norm(np.asarray(exact), axis=(1, 2))).max()))
    note = f"Relative error of the gradient against float64: {max(errors):.1e} (the larger part, at two weights)."
    return of_pairs(pairs, "ms")._replace(note=note, card=card)


def fit(n: int = 10**8, d: int = 20, n_actions: int = 5, repeats: int = 3) -> Row:
    """A fit of the pessimistic objective from 0, after loading, in seconds; beside plain XLA on the same card."""
    _, card = _card()
    from o2pl.engine.engine import OFFLINE
    from o2pl.kernels.gpu import GpuValue
    from o2pl.objectives.pessimistic import Pessimistic, PessimisticLog

    pieces = [made(d, n_actions, min(n, 10**7), seed)[:4] for seed in range(max(1, n // 10**7))]
    X, actions, rewards, inverse = (np.concatenate([np.asarray(piece[k]) for piece in pieces]) for k in range(4))
    objective, losses = Pessimistic(0.1, baseline="mean", l2=0.1), -rewards.astype(np.float64)
    log = PessimisticLog(
        actions.astype(np.int64), losses, 1 / inverse.astype(np.float64), objective.alpha(n), objective.phi(n),
        objective.level(losses), None, objective.l2,
    )  # fmt: skip
    took: dict[str, list[float]] = {"gpu": [], "xla": []}
    said: dict[str, str] = {}
    start = time.perf_counter()
    for device in took:
        function = GpuValue(log, X.__getitem__, d, n_actions, device)
        function(np.zeros(n_actions * d))  # compiled, and loaded
        said.setdefault("loading", f"{time.perf_counter() - start:.0f} s")
        for repeat in range(repeats + 1):
            began = time.perf_counter()
            found, _ = OFFLINE.step(function, np.zeros(n_actions * d), OFFLINE.init(n_actions * d))
            if repeat:  # the first warms up
                took[device].append(time.perf_counter() - began)
        said[device] = f"{found.evaluations} passes to a largest entry of {np.abs(function(found.params)[1]).max():.0e}"
        del function
    note = f"Fused: {said['gpu']}; plain: {said['xla']}. Loading from the host's memory takes {said['loading']}."
    pairs = list(zip(took["gpu"], took["xla"], strict=True))
    return of_pairs(pairs, "s")._replace(note=note, card=card)


def network(batch: int = 65_536, d: int = 64, n_actions: int = 10, hidden: int = 128, repeats: int = _REPEATS) -> Row:
    """Steps of a perceptron with two hidden layers, per second, beside its eight matrix products alone."""
    jax, card = _card()
    from o2pl.kernels.networks import Static, network_program
    from o2pl.policies import Neural

    jnp, steps = jax.numpy, 16
    policy = Neural(n_actions, (hidden, hidden))
    keys = jax.random.split(jax.random.PRNGKey(0), 6)
    x, z = (jax.random.normal(key, (batch, wide), jnp.float32) for key, wide in zip(keys, (d, n_actions), strict=False))
    h = jax.random.normal(keys[2], (batch, hidden), jnp.float32)
    first, second, last = (
        jax.random.normal(keys[3], shape, jnp.float32) for shape in ((d, hidden), (hidden, hidden), (hidden, n_actions))
    )
    columns = {
        "x": jax.random.normal(keys[4], (steps, batch, d), jnp.float32),
        "actions": jax.random.randint(keys[5], (steps, batch), 0, n_actions),
        "rewards": jnp.ones((steps, batch), jnp.float32),
    }
    start = jnp.asarray(np.append(policy.init(d), 0.0), jnp.float32)
    state, fixed = (start, jnp.zeros_like(start), jnp.zeros_like(start)), np.array([1, 1e-6, 1e-6], np.float32)
    run = network_program(Static(policy, True, True, 0, False, False))

    def ours() -> Any:
        return run(state, columns, np.full(steps, 1e-3, np.float32), np.float32(0), fixed)

    def products(x: Any, h: Any, z: Any, first: Any, second: Any, last: Any) -> Any:
        forward = x @ first, h @ second, h @ last
        return *forward, h.T @ z, z @ last.T, h.T @ h, h @ second.T, x.T @ h

    multiplied = jax.jit(products)

    def alone() -> Any:
        return multiplied(x, h, z, first, second, last)

    jax.block_until_ready((ours(), alone()))
    rates = [(1e3 * steps / _milliseconds(ours, 2), 1e3 / _milliseconds(alone, 20)) for _ in range(repeats)]
    return of_pairs(rates, "steps/s")._replace(card=card)


def online(rounds: int = 100_000, d: int = 64, n_actions: int = 10, repeats: int = 3) -> Row:
    """All re-learning of a network of two layers of 128 in an online run, in seconds, beside the same on the CPU."""
    _, card = _card()
    from o2pl.data.interactions import Interactions
    from o2pl.engine.schedules import SELDOM
    from o2pl.kernels.networks import NetworkValue
    from o2pl.objectives import Outcome
    from o2pl.oracles import Minibatch
    from o2pl.policies import Neural

    generator = np.random.default_rng(0)
    X = generator.normal(size=(rounds, d)).astype(np.float32)
    rewards = (generator.random(rounds) < 0.4).astype(float)
    rows = Interactions(
        X, generator.integers(n_actions, size=rounds), rewards, np.full(rounds, 1 / n_actions), (0, 1), n_actions
    )
    policy, objective, oracle = Neural(n_actions, (128, 128)), Outcome(), Minibatch()

    def relearned(device: str) -> float:
        params, at, start = np.append(policy.init(d), 0.0), 200, time.perf_counter()
        kept = oracle.init(len(params))
        while at < rounds:
            function = NetworkValue(policy, X[:at], objective.prepare(rows[:at]), objective.extra, device=device)
            found, kept = oracle.step(function, params, kept)
            params, at = found.params, SELDOM.after(at)
        return time.perf_counter() - start

    relearned("gpu")
    ours, theirs = [relearned("gpu") for _ in range(repeats)], relearned("cpu")
    row = of_pairs([(one, theirs) for one in ours], "s")
    return row._replace(card=card, ours=statistics.median(ours))
