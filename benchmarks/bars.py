"""What a bar says, and by how much a row misses it.

A bar is a limit on the ratio, `≥ 4`; on our number, `value ≤ 5`; or on the peer's number less ours, `gap ≤ .005`. With
`, more reward` our mean reward must be above the peer's too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MORE = ", more reward"
_BAR = re.compile(r"(gap |value |)([≥≤]) ([\d.]+)(, more reward)?")


def misses(bar: str, found: Mapping[str, Any]) -> list[str] | None:
    """By how much a stored row misses its bar, in words; empty where it meets it, None where nothing is to be met."""
    parsed = _BAR.fullmatch(bar)
    if parsed is None or "ratio" not in found:
        return None
    kind, sign, limit = parsed[1].strip(), parsed[2], float(parsed[3])
    value = found["ratio"]
    if kind:
        value = found["o2pl"] if kind == "value" else found["peer"] - found["o2pl"]
    said = []
    if value < limit if sign == "≥" else value > limit:
        said.append(f"by {value - limit:.4f}" if kind == "gap" else f"by a factor of {_factor(value, limit):.2f}")
    if parsed[4]:
        lead = found["our_reward"] - found["peer_reward"]
        if lead <= 0:
            said.append(f"by {abs(lead):.4f} in mean reward")
    return said


def _factor(value: float, limit: float) -> float:
    return max(value / limit, limit / value)


def met(bar: str, found: Mapping[str, Any]) -> bool | None:
    said = misses(bar, found)
    return None if said is None else not said
