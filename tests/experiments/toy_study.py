"""The toy experiment as a study."""

from __future__ import annotations

from typing import Any

import numpy as np
from toy_experiment import TOY

from o2pl.experiments.study import Claim, Study, at_least, at_most


def claims(rows: Any) -> list[Claim]:
    largest = float(np.nanmax(np.asarray(rows["value"])))
    return [
        Claim("toy/large", "Squares add up <to much>.", 200_000.0, *at_least(largest, 1000)),
        Claim("toy/set", "With a setting of ours.", None, *at_least(largest, 1000), conditions="seeds & all"),
        Claim("toy/small", "They stay small.", "tiny", *at_most(largest, 1)),
        Claim("toy/nothing", "Not a number.", None, *at_most(np.nan, 1)),
    ]


def pictures(rows: Any) -> dict[str, Any]:
    from matplotlib.figure import Figure

    figure = Figure()
    figure.add_subplot().plot(np.asarray(rows["value"]))
    return {"values": figure}


STUDY = Study(
    TOY, "A toy & its sums", "Sums grow.", "Nothing open.", claims, pictures, lambda rows: [{"rows": str(len(rows))}]
)
