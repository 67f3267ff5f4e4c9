"""What a decider saves, and how it is restored. Format version 2 must keep loading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from o2pl._core import Uncertainty
from o2pl.data.action_names import Names
from o2pl.encode import Encoder
from o2pl.engine.acting import ActingMember, restored
from o2pl.engine.item_memory import NOTHING, ItemMemory
from o2pl.engine.shortening import lengthened
from o2pl.features.hashing import Hashed
from o2pl.features.plan import feature_plan
from o2pl.features.user_items import UserItems
from o2pl.protocols import Array, Exploration, Floats
from o2pl.storage import decode, encode

_PARTS = ("shift", "scale", "clip", "centre", "level", "spread", "optimism")  # of an `Uncertainty`


def content_of(
    members: Sequence[ActingMember], acting: Floats, sharpness: float, encoder: Encoder, names: Names,
    items: ItemMemory | None, exploration: Exploration | None, uncertainty: Uncertainty | None,
) -> tuple[dict[str, Any], dict[str, Array]]:  # fmt: skip
    """Return the header and the arrays of a file with a decider of these parts. items: None without item effects"""
    header = {
        "class": "Decider",
        "sharpness": sharpness,
        "names": encode(names),
        "reader": encode(encoder.settings()),
        "exploration": encode(exploration) if items is not None else None,
        "members": [[encode(member.features), encode(member.policy)] for member in members],
    }
    arrays: dict[str, Array] = {"acting": acting, **_arrays_of(uncertainty)}
    if items is not None:
        arrays |= {f"items.{name}": np.asarray(array) for name, array in items._asdict().items()}
    for k, member in enumerate(members):
        seen = {f"seen.{name}": array for name, array in member.seen.items() if not name.startswith("_")}
        if k and member.seen is members[0].seen:
            seen = {}  # written once
        arrays |= {f"member{k}.{name}": array for name, array in ({"params": member.params} | seen).items()}
    return header, arrays


def arguments_from(header: dict[str, Any], arrays: dict[str, Array]) -> tuple[Any, ...]:
    """Return the arguments of `Decider` from the content of a file."""
    arrays = lengthened(header, arrays)
    encoder, members = Encoder.of(*decode(header["reader"])), list[ActingMember]()
    for k, (features, policy) in enumerate((decode(f), decode(p)) for f, p in header["members"]):
        kept = {n.split(".", 2)[2]: a for n, a in arrays.items() if n.startswith(f"member{k}.seen.")}
        same = [
            known for known in members
            if known.features == features and all(np.array_equal(kept[n], known.seen[n]) for n in kept)
        ]  # fmt: skip
        if same:  # shared features: computed once, their state is written once
            seen, plan = same[0].seen, same[0].plan
        else:
            seen = restored(features, kept)
            dense = not isinstance(features, Hashed | UserItems)
            plan = feature_plan(features, seen, encoder.width or 0) if dense else None
        members.append(ActingMember(features, seen, policy, arrays[f"member{k}.params"], plan))
    items = {name.removeprefix("items."): array for name, array in arrays.items() if name.startswith("items.")}
    memory, exploration = ItemMemory(**items) if items else NOTHING, decode(header.get("exploration"))
    names = decode(header.get("names")) or ()
    return (
        members,
        arrays["acting"],
        header["sharpness"],
        encoder,
        None,
        names,
        memory,
        exploration,
        _uncertainty_in(arrays),
    )


def _arrays_of(uncertainty: Uncertainty | None) -> dict[str, Any]:
    """Return what a file keeps of it."""
    if uncertainty is None:
        return {}
    return {f"uncertainty.{name}": np.asarray(part) for name, part in zip(_PARTS, uncertainty.parts, strict=True)}


def _uncertainty_in(arrays: dict[str, Any]) -> Uncertainty | None:
    """Return what `_arrays_of` kept; None if it is not there."""
    if "uncertainty.level" not in arrays:
        return None
    shift, scale, clip, centre, level, spread, optimism = (arrays[f"uncertainty.{name}"] for name in _PARTS)
    return Uncertainty.from_parts(
        shift, scale, float(np.ravel(clip)[0]), centre, level, spread, float(np.ravel(optimism)[0])
    )
