"""The toy experiment as a study."""

from __future__ import annotations

from typing import Any

import numpy as np
from toy_experiment import TOY

from o2pl_reproduction.claims.intervals import Measurement, exact, mean
from o2pl_reproduction.claims.study import Claim, Effect, Study, above, at_least, at_most


def claims(rows: Any) -> list[Claim]:
    values = np.asarray(rows["value"])
    largest = float(np.nanmax(values))
    ours = "seeds & all"
    return [
        Claim("toy/large", "Squares add up <to much>.", exact(largest), at_least(1000), "paper", "200000"),
        Claim(
            "toy/set",
            "With a setting of ours.",
            exact(largest),
            at_least(1000),
            "recipe",
            literal=exact(0),
            conditions=ours,
        ),
        Claim("toy/weak", "They hardly grow.", exact(largest), above(0), "paper", effect=Effect(1e9), conditions=ours),
        Claim("toy/small", "They stay small.", exact(largest), at_most(1), "paper", "tiny"),
        Claim("toy/nothing", "Not a number.", Measurement(np.nan, np.nan, np.nan, "none"), at_most(1), "paper"),
        Claim("toy/few", "On average they are above 0.", mean(values[-1:]), above(0, "our prototype's number"), "own"),
    ]


def pictures(rows: Any) -> dict[str, Any]:
    from matplotlib.figure import Figure

    figure = Figure()
    figure.add_subplot().plot(np.asarray(rows["value"]))
    return {"values": figure}


def table(rows: Any) -> list[dict[str, str]]:
    return [{"rows": str(len(rows))}]


STUDY = Study(TOY, "A toy & its sums", "Sums grow.", "Nothing open.", claims, pictures, table, headline="toy/large")
