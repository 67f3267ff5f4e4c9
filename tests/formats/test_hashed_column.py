"""VW's text read to hashed features: the same features, bit for bit, as those of its JSON; the same rows and errors."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from o2pl import Bandit, InvalidInput, read_log
from o2pl.data.interactions import Interactions
from o2pl.data.records import Records
from o2pl.encode.dictionaries import DictionaryReader
from o2pl.encode.sets import dictionary_sets
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.describing import describe
from o2pl.formats.log_tables import log_of_log_table
from o2pl.formats.vw_forms import vw_form_of
from o2pl.formats.vw_text import read_vw_text

pytest.importorskip("msgspec")
pa: Any = pytest.importorskip("pyarrow")


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled readers, whatever the size."""
    monkeypatch.setattr("o2pl.formats.vw_text._LONG", -1)
    monkeypatch.setattr("o2pl.encode.sets._MANY", 0)


def read(text: bytes, hashed: bool) -> tuple[Any, dict[int, str] | list[Any]]:
    bad = BadRows("log", 1000)
    tables = list(read_vw_text(io.BytesIO(text), bad, hashed=hashed))
    return pa.concat_tables(tables, promote_options="default") if tables else None, bad.found


def bits(log: Interactions, signed: bool, interactions: Any = ()) -> Any:
    """All that a learner gets of the contexts, or the error."""
    try:
        sets = dictionary_sets(DictionaryReader(18, signed, interactions), log.contexts)
    except InvalidInput as error:
        return str(error)
    return [sets.offsets.tolist(), *(getattr(sets.values, name).tobytes() for name in ("indices", "values", "offsets"))]


def alike(text: bytes) -> int:
    """Compare both ways to read a text. Returns how many events were hashed as they were read."""
    if vw_form_of(text, "log") != "adf":
        return 0
    (quick, wrong), (plain, expected) = read(text, True), read(text, False)
    assert wrong == expected
    if plain is None or not plain.column("reward").is_valid().to_pylist().count(True):
        return 0
    for name in ("action", "reward", "propensity", "event_id"):
        assert quick.column(name).to_pylist() == plain.column(name).to_pylist()
    logs = log_of_log_table(quick, BadRows("log", 1000)), log_of_log_table(plain, BadRows("log", 1000))
    for signed in (False, True):
        assert bits(logs[0], signed) == bits(logs[1], signed)
    assert [repr(one) for one in logs[0].contexts] == [repr(one) for one in logs[1].contexts]
    assert repr(logs[0].contexts[0]) == repr(logs[1].contexts[0])
    assert logs[0].contexts.sizes.tolist() == logs[1].contexts.sizes.tolist()
    odd = np.arange(len(logs[0]))[::-2]
    for rows in (slice(1, None), slice(None, None, 2), odd, odd % 3 == 0 if len(odd) == len(logs[0]) else odd):
        if len(logs[0].contexts[rows]):
            assert bits(logs[0][rows], False) == bits(logs[1][rows], False)
    return 0 if "hashed" not in quick.column_names else len(quick) - int(quick.column("hashed").null_count)


usual_names = st.sampled_from(
    ["a", "b", "x=y", "12", "é", "日本", "_own", "a:b", "'t", "nb\u00a0sp", "shared", "w" * 30, "="]
)
usual_numbers = st.sampled_from(
    ["1", "-3", "0.10", "1e5", "2.5E-3", "-0", "-0.0", "0", "123456789012345678", "0.1234567890123456", "-1.5e+2"]
) | st.floats(-1e4, 1e4).map(lambda x: repr(round(x, 5)))
names = usual_names | st.text("ab_=é\\\"'.-\v", max_size=3)
numbers = usual_numbers | st.sampled_from(
    [".5", "+1", "007", "12345678901234567890", "0.12345678901234567890123", "1e-30", "3e38", "1e-400", "0.1e2000"]
)
blanks = st.sampled_from([" ", "  ", "\t", " \t "])


@st.composite
def lines(draw: Any, head: str, usual: bool) -> str:
    name, number = (usual_names, usual_numbers) if usual else (names, numbers)
    feature = st.builds(lambda one, value: one + value, name, st.just("") | number.map(lambda n: ":" + n))
    if usual:
        spaces = sorted(draw(st.lists(st.sampled_from(["", "A", "Bee", "é", "_hid", "C"]), min_size=1, unique=True)))
    else:
        spaces = draw(st.lists(st.just("") | names, min_size=1, max_size=4))
    text = head
    for space in spaces:
        text += draw(st.sampled_from(["", " "])) + "|" + space
        text += "".join(draw(blanks) + one for one in draw(st.lists(feature, max_size=4)))
    return text + draw(st.sampled_from(["", "", " ", "\r"]))


@st.composite
def texts(draw: Any) -> bytes:
    """A few events; most are usual, some unusual, some wrong."""
    out = ""
    for number in range(draw(st.integers(1, 4))):
        size, usual = draw(st.integers(1, 4)), draw(st.sampled_from([True, True, False]))
        played = draw(st.integers(0, size - 1))
        if draw(st.booleans()):
            head = draw(st.sampled_from(["shared ", f"shared 't{number}", f"'t{number} shared"]))
            out += draw(lines(head, usual)) + "\n"
        labels = ["0:-1:0.5 ", f"1:0.25:1 'tag{number}", " 0:2e-1:0.125"]
        for place in range(size):
            label = draw(st.sampled_from(labels)) if place == played else ""
            out += draw(lines(label, usual)) + "\n"
        out += draw(st.sampled_from(["\n", "\n\n", " \r\n", "\r\n\n"]))
    wrong = [(), (), (("0.5", "0"),), (("|A", "A"),), (("a:1", "a:x"),), (("|A", "|A:2"),)]
    for old, new in draw(st.sampled_from(wrong)):
        out = out.replace(old, new)
    return out.encode()


ODD = b"shared |_two a |U x:2\n0:1:0.5 |I a:3 |_gone b:1\n| _x:2 y\n\n"


@given(texts())
@example(ODD)
@example(b"0:1:0.5 |a x:1e39\n|a y\n\n0:1:0.5 |b z\n\n")
@example(b"|a x x:2 |b x\n0:1:1 | a a a:1|A\n|\n")
@example(b"|a x |b y |a z\n0:1:1 |c\n")
@example(b"0:1:1 | Item:3 loose |Item x\n")
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_as_from_json(text: bytes) -> None:
    alike(text)


def test_usual_events_are_hashed_as_they_are_read() -> None:
    usual = (
        "shared 'é |User age:31 _x city=Rome|Page x:-2.5e-1\r\n|Item é:1e5 | \n0:-1:0.8 'tag |Item\tw:3 = 12:0.5\n\n"
    )
    assert alike(usual.encode() * 5) == 0  # features without a namespace after one with a name
    usual = usual.replace("| \n", "\n")
    assert alike(usual.encode()) == 1
    usual = usual.replace("'é ", "").replace("'tag ", "")  # ids that repeat are errors
    assert alike(usual.encode() * 5) == 5
    unusual = b'0:1:0.5 |a "quoted" |b:2 x\n|a y\n\n'
    assert alike(usual.encode() * 2 + unusual + usual.encode() + unusual) == 3
    assert alike(b'0:1:0.5 |a "quoted" x\n|a y\n\n' + usual.encode()) == 1
    assert alike(b"0:1:0.5 |a back\\slash\n|a y\n\n" + usual.encode()) == 1
    assert alike(ODD) == 1
    assert alike(b"|\n0:1:1 |\n\n") == 1
    assert alike(b"0:1:1 |\n\n" * 50) == 50
    assert alike(b"\xff|a x\n0:1:1 |b\n\n" + usual.encode()) == 0  # not UTF-8


def test_text_that_was_cut_short() -> None:
    text = b"shared |u a:1.5 b\n0:-1:0.25 |i c:-2e1 d\n|i e\n\n0:1:1 |i f\n|j g:3\n\n"
    for end in range(1, len(text)):
        alike(text[:end])


def test_products_of_chosen_namespaces_are_made_of_dictionaries() -> None:
    text = b"shared |u a:1.5\n0:-1:0.25 |i c:-2e1 d\n|i e\n\n0:1:1 |i f\n|j g:3\n\n"
    logs = [log_of_log_table(read(text, hashed)[0], BadRows("log")) for hashed in (True, False)]
    found = [bits(log, False, (("u", "i"),)) for log in logs]
    assert found[0] == found[1]


def test_learners_and_descriptions_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    text = ""
    for k in range(400):
        x, played = generator.normal(size=4).round(4), k % 3
        lines = [f"|Item price:{x[place]} kind=k{place}" for place in range(3)]
        lines[played] = f"0:{-float(x[played] > 0)}:0.25 {lines[played]}"
        text += "\n".join([f"shared |User mood:{x[3]} id=u{k % 7}", *lines]) + "\n\n"
    path = tmp_path / "log.vw"
    path.write_text(text)
    log = read_log(path, reward_range=(0, 1))
    monkeypatch.setattr("o2pl.formats.vw_text._LONG", 1 << 60)
    monkeypatch.setattr("o2pl.formats.context_columns.json_sets", lambda texts: None)
    plain = read_log(path, reward_range=(0, 1))
    assert isinstance(log.contexts, Records)
    assert log.contexts.hashed is not None
    assert plain.contexts.hashed is None
    assert str(describe(log)) == str(describe(plain))
    learners = [Bandit(policy="hashed actionwise", random_state=0).fit(each) for each in (log, plain)]
    probabilities = [learner.predict_proba(list(plain.contexts)[:50]) for learner in learners]
    assert np.array_equal(*probabilities)
    assert np.ptp(probabilities[0]) > 0.5


def test_a_column_of_the_same_name_is_left_alone() -> None:
    columns = {"context": ['{"_multi":[{"a":1},{}]}'], "action": [0], "reward": [1.0], "propensity": [0.5]}
    log = log_of_log_table(pa.table(columns | {"hashed": ["x"]}), BadRows("log"))
    assert log.contexts[0] == {"_multi": [{"a": 1}, {}]}
    assert log.contexts.sizes.tolist() == [2]


def test_errors_do_not_name_the_column() -> None:
    table = read(b"0:1:0.5 |a x\n|a y\n\n", True)[0]
    assert "hashed" in table.column_names
    with pytest.raises(InvalidInput, match="found columns context, action, reward, propensity, event_id, expected"):
        log_of_log_table(table, BadRows("log"), context=["age"])
