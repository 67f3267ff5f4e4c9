"""How often things go wrong: a few times, or with `O2PL_FAULTS=50` so often."""

from __future__ import annotations

import os

_ASKED = int(os.environ.get("O2PL_FAULTS", "0"))
FULL = _ASKED > 0


def times(usual: int) -> int:
    """How often, if nothing else is asked for."""
    return _ASKED or usual
