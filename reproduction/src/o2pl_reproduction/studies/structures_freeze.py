"""Freeze the settings of the rivals of `structures`: from the rows of `structures-tuning`, the best of each.

o2pl-reproduction run structures-tuning --full --data DIR --out OUT
python -m o2pl_reproduction.studies.structures_freeze OUT    # writes structures_settings.json, which `structures` reads
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from o2pl.errors import InvalidInput, MissingExtra
from o2pl_reproduction.studies.bakeoff_freeze import write_frozen
from o2pl_reproduction.studies.structures_learners import ENTRANTS, FROZEN

MEASURE = "share"  # fraction of the possible gain; its mean over data sets and structures decides


def main(arguments: Sequence[str]) -> None:
    if len(arguments) not in (1, 2):
        sys.exit(
            "usage: python -m o2pl_reproduction.studies.structures_freeze OUT [FILE]"
            "  (OUT holds structures-tuning.parquet)"
        )
    path = Path(arguments[1]) if len(arguments) == 2 else FROZEN
    try:
        entries = write_frozen(arguments[0], path, "structures-tuning", ENTRANTS, MEASURE)
    except (InvalidInput, MissingExtra) as error:
        sys.exit(f"error: {error}")
    for name, entry in entries.items():
        print(f"{name:28s} {entry[MEASURE]:.4f}  {json.dumps(entry['settings'])}")


if __name__ == "__main__":
    main(sys.argv[1:])
