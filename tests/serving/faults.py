"""How often processes are killed: a few times, or with `O2PL_FAULTS=full` fifty times."""

from __future__ import annotations

import os

FULL = os.environ.get("O2PL_FAULTS") == "full"
