"""A context typed by a person: JSON, the path of a JSON file, or the values of a row."""

from __future__ import annotations

import csv
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from o2pl.data.offers import Offer
from o2pl.encode.encoder import Encoder
from o2pl.encode.schema import Field, Schema
from o2pl.errors import InvalidInput

_EXPECTED = (
    "expected JSON, such as '{\"age\": 31}' or '[0.5, 2]', the path of a JSON file,"
    " or the values of a row: 31,Rome,phone"
)
_OFFER = {"user", "items", "ids", "exclude"}


def context_from_text(text: str, encoder: Encoder) -> Any:
    """Return the context from JSON, the path of a JSON file, or the values of a row."""
    if text.lstrip().startswith(("{", "[")):
        return _from_json(text, "context")
    path = Path(text)
    if path.suffix == ".json" or (len(text) < 256 and path.is_file()):
        if not path.is_file():
            raise InvalidInput(f"context: found no file {text!r}, {_EXPECTED}")
        return _from_json(path.read_text(), path.name)
    return _from_values(next(csv.reader([text], skipinitialspace=True), []), encoder)


def _from_json(text: str, where: str) -> Any:
    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{where}: found invalid JSON ({error}), {_EXPECTED}") from None
    if isinstance(given, dict) and "items" in given and set(given) <= _OFFER:
        more = {name: given[name] for name in ("ids", "exclude") if name in given}
        return Offer(_numbers_from_text(given.get("user")), _numbers_from_text(given["items"]), **more)
    return _numbers_from_text(given)


def _numbers_from_text(given: object) -> Any:
    """Return lists of numbers as arrays."""
    if isinstance(given, list) and given and not any(isinstance(part, dict | str) for part in given):
        try:
            return np.array(given, np.float64)
        except (TypeError, ValueError):
            return given
    return given


def _from_values(values: list[str], encoder: Encoder) -> Any:
    schema = encoder.schema
    if not isinstance(schema, Schema):
        try:
            return np.array([float(value) for value in values])
        except ValueError:
            raise InvalidInput(f"context: found {','.join(values)!r}, {_EXPECTED}") from None
    if len(values) != len(schema.fields):
        names = ", ".join(field.name for field in schema.fields)
        raise InvalidInput(f"context: found {len(values)} values, expected {len(schema.fields)}: {names}")
    return {field.name: _value_from_text(field, text) for field, text in zip(schema.fields, values, strict=True)}


def _value_from_text(field: Field, text: str) -> bool | float | str | datetime | None:
    """Convert text to the column's type; an empty text is a missing value."""
    if not text:
        return None
    if field.kind in ("word", "empty", "nested"):
        return text
    if field.kind == "bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return datetime.fromisoformat(text) if field.kind == "time" else float(text)
    except ValueError:
        expected = "a date or time" if field.kind == "time" else "a number"
        raise InvalidInput(f"context, {field.name}: found {text!r}, expected {expected}") from None
