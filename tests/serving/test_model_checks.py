"""What a client sends as a model is data: hostile files are refused, end nothing, and touch no neighbour."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving import deciders

from o2pl import InvalidInput
from o2pl.serving.applications import Application
from o2pl.serving.model_checks import check_outside, tried
from o2pl.serving.settings import Kind, Settings

SHOP = Application(1, "shop", Kind.RANKED, Settings(), None, 0.0)
SIDES = Application(2, "sides", Kind.FIXED, Settings(actions=("left", "middle", "right")), None, 0.0)
PRICES = Application(3, "prices", Kind.CONTINUOUS, Settings(bounds=(0.0, 10.0)), None, 0.0)


def parts_of(body: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        arrays = {
            name.removesuffix(".npy"): np.lib.format.read_array(io.BytesIO(archive.read(name)))
            for name in archive.namelist()
            if name.endswith(".npy")
        }
        return json.loads(archive.read("header.json")), arrays


def body_of(header: Any, arrays: dict[str, Any], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", how) as archive:
        archive.writestr("header.json", json.dumps(header))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
            archive.writestr(f"{name}.npy", buffer.getvalue())
    return held.getvalue()


@pytest.mark.parametrize(
    ("application", "make"), [(SHOP, deciders.ranked), (SIDES, deciders.fixed), (PRICES, deciders.continuous)]
)
def test_policies_of_the_application_are_taken(application: Application, make: Any) -> None:
    check_outside(application, deciders.body_of(make()))


def with_bits(header: Any, arrays: Any) -> None:
    """More bits in the reader than the features have: indices beyond the table of slots."""
    reader = json.dumps(header["reader"])
    assert "18" in reader
    header["reader"] = json.loads(reader.replace("18", "24"))


def with_function(header: Any, arrays: Any) -> None:
    header["exploration"] = {"function": "o2pl.demo.story:tell"}


def with_nan(header: Any, arrays: Any) -> None:
    arrays["member0.params"][3] = np.nan


def with_infinite(header: Any, arrays: Any) -> None:
    arrays["member0.params"][:] = np.inf


def with_few_params(header: Any, arrays: Any) -> None:
    arrays["member0.params"] = np.ones(10**6)


def with_far_feature(header: Any, arrays: Any) -> None:
    arrays["member0.seen.feature"][-1] = 2**30


def with_short_scale(header: Any, arrays: Any) -> None:
    arrays["member0.seen.scale"] = arrays["member0.seen.scale"][:2]


def with_long_bonus(header: Any, arrays: Any) -> None:
    arrays["acting"][2] = 1e9


def with_no_members(header: Any, arrays: Any) -> None:
    header["members"] = []


def with_unknown_type(header: Any, arrays: Any) -> None:
    header["members"][0][1] = {"object": "os.system", "fields": {}}


@pytest.mark.parametrize(
    "spoil",
    [
        with_bits, with_function, with_nan, with_infinite, with_few_params, with_far_feature, with_short_scale,
        with_long_bonus, with_no_members, with_unknown_type,
    ],
)  # fmt: skip
def test_spoiled_policies_are_refused_with_the_reason(spoil: Any) -> None:
    header, arrays = parts_of(deciders.body_of(deciders.ranked()))
    spoil(header, arrays)
    with pytest.raises(InvalidInput, match="model"):
        check_outside(SHOP, body_of(header, arrays))


def test_a_small_file_that_unpacks_to_gigabytes_is_refused_before_it_is_unpacked() -> None:
    header, arrays = parts_of(deciders.body_of(deciders.ranked()))
    held = io.BytesIO(body_of(header, arrays))
    with zipfile.ZipFile(held, "a", zipfile.ZIP_DEFLATED) as archive:
        for k in range(9):
            archive.writestr(f"zeros{k}.npy", bytes(64 * 2**20))
    assert len(held.getvalue()) < 2**20
    with pytest.raises(InvalidInput, match=r"unpacks to .* parts of 5.. MiB, expected at most"):
        check_outside(SHOP, held.getvalue())


def test_a_process_that_ends_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ends the trial ends only the trial."""
    monkeypatch.setattr("o2pl.serving.model_checks.sys.executable", "/bin/false")
    with pytest.raises(InvalidInput, match=r"ends the process that tries it \(status 1\)"):
        check_outside(SHOP, deciders.body_of(deciders.ranked()))


def test_changed_files_are_read_or_refused() -> None:
    """Bytes and numbers changed at random: either it decides with probabilities, or the reason is said."""
    body = deciders.body_of(deciders.ranked())
    generator, refused = np.random.default_rng(0), 0
    for k in range(150):
        header, arrays = parts_of(body)
        if k % 3 == 0:
            spoiled = bytearray(body)
            for place in generator.integers(0, len(body), 3):
                spoiled[place] = generator.integers(256)
            changed = bytes(spoiled)
        else:
            name = list(arrays)[generator.integers(len(arrays))]
            flat = arrays[name].reshape(-1)
            if k % 3 == 1 and len(flat):
                flat[generator.integers(len(flat))] = generator.choice([-1, 0, 10**6, 2**30])
            else:
                arrays[name] = arrays[name][: generator.integers(len(arrays[name]) + 1)]
            changed = body_of(header, arrays)
        try:
            tried(SHOP.kind, SHOP.settings, changed)
        except (InvalidInput, ValueError, IndexError, TypeError, KeyError, MemoryError):
            refused += 1
    assert 20 < refused < 150


def test_what_a_file_names_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planted.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    header, arrays = parts_of(deciders.body_of(deciders.ranked()))
    header["exploration"] = {"object": "CountBonus", "fields": {"strength": {"function": "planted:run"}}}
    with pytest.raises(InvalidInput, match="names a function"):
        tried(SHOP.kind, SHOP.settings, body_of(header, arrays))
