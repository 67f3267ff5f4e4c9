"""The report of a reproduction, from stored rows only: one page that works offline, `summary.json`, `claims.md`.

out/wheel.parquet   the rows of a study
out/made.json       when, at which size and on what the rows of each study were made
out/summary.json    claims, verdicts and tables; of a study without rows, those that it held before are kept
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from o2pl.errors import InvalidInput
from o2pl.extras import require_extra
from o2pl.simulation import figures
from o2pl.simulation.store import copy_stored_compactly, results, store_whole
from o2pl_reproduction.claims.intervals import LEVEL, Measurement
from o2pl_reproduction.claims.study import VERDICTS, Bar, Claim, Effect, Study
from o2pl_reproduction.reports import markdown, page
from o2pl_reproduction.reports.headlines import headline_lines


@dataclass(frozen=True)
class Section:
    """The results of a study from its rows; or, without rows, from an earlier summary."""

    study: Study
    claims: Sequence[Claim]
    pictures: Mapping[str, Path]  # figure's name -> PNG
    table: Sequence[Mapping[str, str]]
    made: Mapping[str, Any]  # size, date, version, machine, number of seeds, a note
    has_rows: bool = True

    @property
    def name(self) -> str:
        return self.study.experiment.name


def build(out: str | os.PathLike[str], studies: Sequence[Study]) -> list[Section]:
    """Write figures, `index.html`, `summary.json` and `claims.md` under `out` for the studies with rows."""
    require_extra("experiments", "making the report")
    folder = Path(out)
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    made, before = read_made(folder), _before(folder)
    sections = []
    for study in studies:
        name = study.experiment.name
        about = {key: value for key, value in made.get(name, {}).items() if key != "seeds"}
        if (folder / f"{name}.parquet").exists():
            sections.append(_section(study, folder, about))
        elif any(claim["experiment"] == name for claim in before["claims"]):
            longer = tuple(
                f"{each.experiment.name}-" for each in studies if each.experiment.name.startswith(f"{name}-")
            )
            sections.append(_kept(study, folder, before, longer))
    summary = json.dumps(summary_json(sections), indent=1, ensure_ascii=False) + "\n"
    _write_text(folder / "summary.json", summary)
    _write_text(folder / "index.html", page.page(sections))
    stored = {claim.id: claim for section in sections for claim in section.claims}
    _write_text(folder / "claims.md", markdown.markdown(sections, headline_lines(stored, studies)))
    return sections


def publish(out: str | os.PathLike[str], folder: str | os.PathLike[str], studies: Sequence[Study]) -> list[Section]:
    """Copy the rows of `out` to `folder`, compressed, and build the report there; other studies are unchanged."""
    source, target = Path(out), Path(folder)
    here = [study.experiment.name for study in studies if (source / f"{study.experiment.name}.parquet").exists()]
    if not here:
        raise InvalidInput(
            f"{source}: found the rows of no study, expected those of `o2pl-reproduction reproduce --out {source}`"
        )
    target.mkdir(parents=True, exist_ok=True)
    made, theirs = read_made(target), read_made(source)
    for name in here:
        copy_stored_compactly(source / f"{name}.parquet", target / f"{name}.parquet")
        made[name] = theirs.get(name, {})
    write_made(target, made)
    return build(target, studies)


def _section(study: Study, folder: Path, about: Mapping[str, Any]) -> Section:
    name = study.experiment.name
    rows = results(folder, name)
    pictures = {
        key: figures.save_figure(figure, folder / "figures" / f"{name}-{key}")[0]
        for key, figure in study.figures(rows).items()
    }
    made = {**about, "seeds": len(rows["seed"].unique())}
    return Section(study, study.claims(rows), pictures, study.table(rows), made)


def _kept(study: Study, folder: Path, before: Mapping[str, Any], longer: tuple[str, ...]) -> Section:
    """`longer`: how the figures of studies begin whose names begin with this one's."""
    name = study.experiment.name
    claims = [claim_of(claim) for claim in before["claims"] if claim["experiment"] == name]
    found = sorted((folder / "figures").glob(f"{name}-*.png"))
    pictures = {path.stem.removeprefix(f"{name}-"): path for path in found if not path.stem.startswith(longer)}
    table = before.get("tables", {}).get(name, [])
    return Section(study, claims, pictures, table, before.get("made", {}).get(name, {}), has_rows=False)


# -- made.json


def read_made(folder: Path) -> dict[str, dict[str, Any]]:
    """Return study -> when, at which size and on what machine its rows were made."""
    path = folder / "made.json"
    made: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    return made


def write_made(folder: Path, made: Mapping[str, Mapping[str, Any]]) -> None:
    _write_text(folder / "made.json", json.dumps(made, indent=1, ensure_ascii=False) + "\n")


def _write_text(path: Path, text: str) -> None:
    store_whole(path, lambda file: file.write(text.encode()))


# -- summary.json


def summary_json(sections: Sequence[Section]) -> dict[str, Any]:
    """Return the claims as JSON values; non-finite numbers are null."""
    claims = [claim for section in sections for claim in section.claims]
    counts = Counter(claim.verdict for claim in claims)
    return {
        "made": {section.name: {**section.made, "rows": section.has_rows} for section in sections},
        "counts": {verdict: counts[verdict] for verdict in VERDICTS},
        "claims": [claim_json(claim) for claim in claims],
        "tables": {section.name: [dict(line) for line in section.table] for section in sections},
    }


def claim_json(claim: Claim) -> dict[str, Any]:
    return {
        "id": claim.id,
        "experiment": claim.experiment,
        "claim": claim.claim,
        "whose": claim.whose,
        "paper": claim.paper,
        "effect": asdict(claim.effect) if claim.effect else None,
        "measured": _finite(claim.measured.value),
        "interval": [_finite(claim.measured.low), _finite(claim.measured.high)],
        "level": LEVEL,
        "method": claim.measured.method,
        "bar": _bar_json(claim.bar),
        "match": _bar_json(claim.match) if claim.match else None,
        "literal": None if claim.literal is None else _estimate_json(claim.literal),
        "verdict": claim.verdict,
        "reason": claim.reason,
        "conditions": claim.conditions,
    }


def claim_of(stored: Mapping[str, Any]) -> Claim:
    """Return a stored claim; its verdict is recomputed."""
    literal = stored["literal"]
    return Claim(
        stored["id"],
        stored["claim"],
        _estimate(stored["measured"], stored["interval"], stored["method"]),
        _bar(stored["bar"]),
        stored["whose"],
        stored["paper"],
        Effect(**stored["effect"]) if stored["effect"] else None,
        None if literal is None else _estimate(literal["value"], literal["interval"], literal["method"]),
        _bar(stored["match"]) if stored["match"] else None,
        stored["conditions"],
    )


def _estimate_json(found: Measurement) -> dict[str, Any]:
    ends = [_finite(found.low), _finite(found.high)]
    return {"value": _finite(found.value), "interval": ends, "method": found.method}


def _estimate(value: float | None, interval: Sequence[float | None], method: str) -> Measurement:
    low, high = interval
    return Measurement(
        math.nan if value is None else value,
        -math.inf if low is None else low,
        math.inf if high is None else high,
        method,
    )


def _bar_json(bar: Bar) -> dict[str, Any]:
    return {"sense": bar.sense, "numbers": list(bar.numbers), "source": bar.source}


def _bar(stored: Mapping[str, Any]) -> Bar:
    return Bar(stored["sense"], tuple(stored["numbers"]), stored["source"])


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _before(folder: Path) -> dict[str, Any]:
    path = folder / "summary.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"claims": []}
    return found
