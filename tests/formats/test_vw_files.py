"""VW's own test files of bandits, where they are: each is read, or refused by the right word; VW learns the same from
what is written."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest
from tests.formats.vw_logs import close, learned_apart

import o2pl
from o2pl import InvalidInput
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.files import read_file_tables, write_file_tables

ROOT = Path(__file__).parents[2]
FILES = ROOT.parent / "shared" / "data" / "vw"
REFUSED = {
    "0002_25.dat": "a number as of regression or classification",
    "b1848_dsjson_parser_regression.txt": r"found 1 decisions.* 1 that are to be skipped \(_skipLearn\)",
    "ccb_audit.dat": "found 4 decisions, 4 of them without a reward",
    "ccb_audit_multi.dat": "found 2 decisions, 2 of them without a reward",
    "ccb_data_parse_error.json": "line 57: found no complete JSON object",
    "cs_cb": "the costs of all actions .cost-sensitive classification.",
    "rcv1_raw_cb_small.fb": "found VW's flatbuffers, which are not read.*to_flatbuff",
    "slates_simple.txt": "found slates",
    "slates_simple_unlabeled.dsjson": "found slates",
    "slates_simple_w_interactions.txt": "found slates",
}
IN_JSON_ALONE = {"decisionservice.json", "cats_train.json", "cats_room_temp.json"}  # names with blanks
WITH_DROPS = {"cb_simple_pdrop.json", "ccb_simple_pdrop.json"}


def manifest() -> list[tuple[str, str]]:
    if not FILES.is_dir():
        return []
    with (FILES / "MANIFEST.csv").open() as file:
        return [(row["file"], row["flags of VW's own test"]) for row in csv.DictReader(file)]


@pytest.mark.parametrize(("name", "flags"), manifest())
def test_every_file_is_read_or_refused_by_the_right_word(name: str, flags: str) -> None:
    if name in REFUSED:
        with pytest.raises(InvalidInput, match=REFUSED[name]):
            o2pl.read_log(FILES / name)
        return
    log = o2pl.read_log(FILES / name)
    assert len(log) > 0
    assert log.continuous == ("--cats" in flags)
    assert (log.slots is not None) == ("ccb" in flags)
    assert log.has_propensities


@pytest.mark.parametrize(("name", "flags"), [each for each in manifest() if each[0] not in REFUSED])
def test_vw_learns_the_same_from_what_is_written(name: str, flags: str, tmp_path: Path) -> None:
    pytest.importorskip("vowpalwabbit")
    path = Path(shutil.copy(FILES / name, tmp_path))
    learner = " ".join(flag for flag in flags.split() if flag not in ("--json", "--dsjson"))
    learner = {"rcv1_cb_eval": "--cb 2 --eval", "cb_test_with_empty_shared_feature.ldf": "--cb_adf"}.get(name, learner)
    with path.open("rb") as file:
        start = file.read(1)
    as_json = "" if start != b"{" else " --json" if name == "cb_test.json" else " --dsjson"  # what the content is
    weights = learned_apart(path, learner + as_json)
    assert weights or name == "no_shared_features.json"  # whose cost is 0
    for ending in (".vw", ".dsjson"):
        if ending == ".vw" and name in IN_JSON_ALONE | WITH_DROPS:
            with pytest.raises(InvalidInput, match=r"VW's text: found .* write dsjson instead"):
                write_file_tables(tmp_path / "again.vw", read_file_tables(path, BadRows(name)))
            continue
        if ending == ".dsjson" and ("--cb 2" in learner or "--cb_explore 2" in learner):
            continue  # VW's dsjson has no numbered actions
        again, read_as = tmp_path / f"again{ending}", " --dsjson" if ending == ".dsjson" else ""
        write_file_tables(again, read_file_tables(path, BadRows(name)))
        assert close(learned_apart(again, learner + read_as), weights, 1e-5), ending
