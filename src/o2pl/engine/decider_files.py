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
from o2pl.engine.shortening import restored_from_shortened
from o2pl.errors import InvalidInput
from o2pl.features.hashing import Hashed
from o2pl.features.plan import feature_plan
from o2pl.features.user_items import UserItems
from o2pl.policies.finite import FinitePolicies
from o2pl.protocols import Array, Exploration, Floats
from o2pl.storage import decode_from_storage, encode_for_storage

_PARTS = ("shift", "scale", "clip", "centre", "level", "spread", "optimism")  # of an `Uncertainty`


def decider_file_content(
    members: Sequence[ActingMember], acting: Floats, sharpness: float, encoder: Encoder, names: Names,
    items: ItemMemory | None, exploration: Exploration | None, uncertainty: Uncertainty | None,
) -> tuple[dict[str, Any], dict[str, Array]]:  # fmt: skip
    """Return the header and the arrays of a file with a decider of these parts. items: None without item effects"""
    header = {
        "class": "Decider",
        "sharpness": sharpness,
        "names": encode_for_storage(names),
        "reader": encode_for_storage(encoder.settings()),
        "exploration": encode_for_storage(exploration) if items is not None else None,
        "members": [[encode_for_storage(member.features), encode_for_storage(member.policy)] for member in members],
    }
    arrays: dict[str, Array] = {"acting": acting, **_decider_file_arrays(uncertainty)}
    if items is not None:
        arrays |= {f"items.{name}": np.asarray(array) for name, array in items._asdict().items()}
    for k, member in enumerate(members):
        seen = {f"seen.{name}": array for name, array in member.seen.items() if not name.startswith("_")}
        if k and member.seen is members[0].seen:
            seen = {}  # written once
        arrays |= {f"member{k}.{name}": array for name, array in ({"params": member.params} | seen).items()}
    return header, arrays


def decider_arguments_from_file(header: dict[str, Any], arrays: dict[str, Array]) -> tuple[Any, ...]:
    """Return the arguments of `Decider` from the content of a file."""
    arrays = restored_from_shortened(header, arrays)
    encoder, members = Encoder.of(*decode_from_storage(header["reader"])), list[ActingMember]()
    for k, (features, policy) in enumerate(
        (decode_from_storage(f), decode_from_storage(p)) for f, p in header["members"]
    ):
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
    _check_decider_file_parts(members, arrays["acting"], encoder)
    items = {name.removeprefix("items."): array for name, array in arrays.items() if name.startswith("items.")}
    memory, exploration = ItemMemory(**items) if items else NOTHING, decode_from_storage(header.get("exploration"))
    names = decode_from_storage(header.get("names")) or ()
    return (
        members,
        arrays["acting"],
        header["sharpness"],
        encoder,
        None,
        names,
        memory,
        exploration,
        _uncertainty_in_decider_file(arrays),
    )


def _check_decider_file_parts(members: Sequence[ActingMember], acting: Array, encoder: Encoder) -> None:
    """Check that the parts of a file belong together: the compiled core reads them by each other's sizes."""
    if not members:
        raise InvalidInput("model: found no members, expected one or more")
    K = getattr(members[0].policy, "n_actions", None)
    for k, member in enumerate(members):
        width = member.features.width(encoder.width or 0, member.seen)
        expected, found = member.policy.n_params(width), member.params
        finite = not isinstance(member.policy, FinitePolicies)  # whose own may be infinite
        fine = np.isfinite(found).all() if finite else not np.isnan(found).any()
        fits = found.ndim == 1 and found.dtype == np.float64 and bool(fine)
        if isinstance(member.features, Hashed):
            fits = (
                fits
                and len(found) <= expected
                and len(found) % (K or 1) == 0
                and _are_slots_of_decider_file(member, encoder)
            )
        elif member.plan is not None:
            fits = fits and len(found) == expected
        if not fits or getattr(member.policy, "n_actions", None) != K:
            raise InvalidInput(
                f"model: found {found.dtype} parameters {found.shape} of member {k}, expected {expected} numbers"
            )
    numbers = np.asarray(acting)
    head = 4 + len(members) * (5 if numbers.size and numbers[0] == 0 else 1)
    own = numbers[2:4].tolist() if numbers.size >= head else [-1, -1]
    fits = numbers.ndim == 1 and numbers.dtype == np.float64 and bool(np.isfinite(numbers).all())
    if not fits or any(each not in (0, K) for each in own) or numbers.size != head + sum(own):
        raise InvalidInput(f"model: found acting numbers {numbers.shape}, expected those of {len(members)} members")


def _are_slots_of_decider_file(member: ActingMember, encoder: Encoder) -> bool:
    """Return whether the slots of hashed features belong to rows of this encoder."""
    feature, scale = (np.asarray(member.seen[name]) for name in ("feature", "scale"))
    within = feature.ndim == 1 and feature.dtype == np.int32 and len(feature) > 0
    within = within and int(feature.min()) >= 0 and int(feature.max()) < 1 << member.features.bits
    alike = encoder.hashed is not None and encoder.hashed[0] == member.features.bits
    return bool(within and alike and scale.shape == (len(feature), 2) and scale.dtype == np.float32)


def _decider_file_arrays(uncertainty: Uncertainty | None) -> dict[str, Any]:
    """Return what a file keeps of it."""
    if uncertainty is None:
        return {}
    return {f"uncertainty.{name}": np.asarray(part) for name, part in zip(_PARTS, uncertainty.parts, strict=True)}


def _uncertainty_in_decider_file(arrays: dict[str, Any]) -> Uncertainty | None:
    """Return what `_decider_file_arrays` kept; None if it is not there."""
    if "uncertainty.level" not in arrays:
        return None
    shift, scale, clip, centre, level, spread, optimism = (arrays[f"uncertainty.{name}"] for name in _PARTS)
    return Uncertainty.from_parts(
        shift, scale, float(np.ravel(clip)[0]), centre, level, spread, float(np.ravel(optimism)[0])
    )
