"""What an engine saves, and how it continues from it. Format version 2 must keep loading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from o2pl.engine.acting import restored
from o2pl.engine.mean_reward import MeanReward
from o2pl.engine.member import LINEAR
from o2pl.engine.reward_scale import restore_scale, saved_scale
from o2pl.engine.stream import UniformStream
from o2pl.engine.uncertainty import restore_sums, saved_sums
from o2pl.protocols import Array

if TYPE_CHECKING:
    from o2pl.engine.engine import Engine


def engine_file_content(engine: Engine) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays of a file."""
    header = {
        "learned": engine.learned,
        "checkpoints": [member.checkpoint for member in engine.members],
        "seen": [seen.rows for seen in engine.seen],
        "stream": engine.stream.state(),
        "mean_reward": list(engine.mean_reward),
        "heard": [member.calibration for member in engine.members],
        "known": [member.known for member in engine.members],
        "added": [member.added for member in engine.members],
    }
    arrays: dict[str, Array] = {"gains": engine.gains, **engine.log.state()}
    if len(engine.pending):
        waiting = engine.pending.rows(engine.log.empty(), engine.encoder).state()
        arrays |= {f"pending.{name}": array for name, array in waiting.items()}
    if engine.watch is not None:
        header["changes"], arrays["evidence"] = engine.watch.state(), engine.watch.seen
    for k, seen in enumerate(engine.seen):
        kept = {name: array for name, array in seen.state.items() if not name.startswith("_")}
        arrays |= {f"seen{k}.{name}": array for name, array in kept.items()}
    for k, member in enumerate(engine.members):
        arrays |= {f"member{k}.{name}": array for name, array in member.arrays().items()}
    numbers, sums = saved_sums(engine.curvature)
    header, arrays = header | numbers | saved_scale(engine.scale), arrays | sums
    if engine.running is not None:
        arrays |= {f"control.{name}": array for name, array in engine.running.items()}
    return header, arrays


def restore_engine_from_file(engine: Engine, header: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Continue from the content of a file."""
    engine.stream = UniformStream.restore(header["stream"])
    engine.gains, engine.learned = arrays["gains"], header["learned"]
    engine.log.restore(arrays)
    restore_scale(engine, header)
    engine.mean_reward = MeanReward(*header.get("mean_reward", ()))  # older files: computed from the rows
    if waiting := _named_in_engine_file(arrays, "pending."):
        log = engine.log.empty()
        log.restore(waiting)
        engine.pending.restore(log.columns)
    if len(header["seen"]) > len(engine.seen):  # features of the control variate, if no member has the same
        engine.seen_by(LINEAR, engine.members[0].schedule)
    for k, (seen, rows) in enumerate(zip(engine.seen, header["seen"], strict=True)):
        seen.state, seen.rows = restored(seen.features, _named_in_engine_file(arrays, f"seen{k}.")), rows
    for k, (member, checkpoint) in enumerate(zip(engine.members, header["checkpoints"], strict=True)):
        member.restore(_named_in_engine_file(arrays, f"member{k}."))
        member.checkpoint = checkpoint
        member.calibration = tuple(header["heard"][k]) if "heard" in header else (0.0, 1.0)
        member.known = header["known"][k] if "known" in header else engine.learned
        member.added = header["added"][k] if "added" in header else None
    if engine.watch is not None:
        engine.watch.restore(header["changes"], arrays["evidence"])
        for member in engine.members:
            member.base = 0 if member.is_monitor else engine.base
        engine.count_forgotten()
    if engine.running is not None:
        engine.running = _named_in_engine_file(arrays, "control.")
    restore_sums(engine.curvature, header, arrays)
    engine.decider = engine.new_decider()
    engine.look_at_rows(engine.learned, solved=False)
    engine.begin_rounds()
    if engine.decider.knows_items:
        engine.look_at_items()


def _named_in_engine_file(arrays: dict[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
