"""Lines of Vowpal Wabbit's `--json` as lines of its dsjson: features and labels beside each other.

    {"User": {"age": 31}, "_labelIndex": 1, "_label_Cost": -1, "_label_Probability": 0.8, "_multi": [{…}, {…}]}

Names of labels count without their case, as VW reads them. Members are copied as they are written, also repeated ones.
"""

from __future__ import annotations

import json
import re

from o2pl.errors import InvalidInput

Members = list[tuple[str, str]]  # a JSON object: names, and values as they are written
_decode = json.JSONDecoder().raw_decode
_string = json.decoder.scanstring  # type: ignore[attr-defined]
_blanks = re.compile(r"[ \t\r\n]*").match
_LABELS = {"cost": "_label_cost", "probability": "_label_probability", "action": "_label_Action"}
_SLOT = {"_label_cost": "_label_cost", "_a": "_a", "_p": "_p", "_id": "_id"}
MARKS = ("_multi", "_slots", "_label", "_label_Cost", "_label_Probability", "_label_Action", "_labelIndex", "_label_ca")


def vw_json_line_as_dsjson(line: str) -> str | None:
    """Return a line of `--json` as one of dsjson; None if it has neither labels nor actions of VW's, or is dsjson
    that has lost its `c`."""
    found = vw_json_line_members(line)
    names = {name for name, _ in found}
    if not names & set(MARKS) or ("_multi" not in names and "EventId" in names):
        return None
    label: dict[str, str] = {}
    features: Members = []
    outcomes = None
    for name, value in found:
        if name == "_label_ca" or name == "_labelIndex":
            label[name] = value
        elif name.lower() == "_label" or name.lower().startswith("_label_"):
            label |= _vw_json_line_label(name, value)
        elif name == "_multi":
            features.append((name, _vw_json_line_items(value, label)))
        elif name == "_slots":
            slots, outcomes = _vw_json_line_slots(value)
            features.append((name, slots))
        else:
            features.append((name, value))
    if outcomes is not None:
        return _vw_json_line_object([("c", _vw_json_line_object(features)), ("_outcomes", outcomes)])
    if label and "_multi" in names:
        if "_labelIndex" not in label:
            raise InvalidInput("found a label without _labelIndex, expected it to say which of _multi was taken")
        label["_label_Action"] = str(int(label["_labelIndex"]) + 1)
    return _vw_json_line_object([*label.items(), ("c", _vw_json_line_object(features))])


def vw_json_line_members(text: str) -> Members:
    """Return the members of a JSON object."""
    found: Members = []
    at = _blanks(text, 0).end()  # type: ignore[union-attr]
    if text[at : at + 1] != "{":
        raise InvalidInput("found no JSON object")
    at = _blanks(text, at + 1).end()  # type: ignore[union-attr]
    try:
        while text[at] != "}":
            name, at = _string(text, at + 1)
            start = _blanks(text, _blanks(text, at).end() + 1).end()  # type: ignore[union-attr]
            at = _decode(text, start)[1]
            found.append((name, text[start:at]))
            at = _blanks(text, at).end()  # type: ignore[union-attr]
            if text[at] == ",":
                at = _blanks(text, at + 1).end()  # type: ignore[union-attr]
    except (IndexError, json.JSONDecodeError):
        raise InvalidInput("found no complete JSON object") from None
    return found


def _vw_json_line_object(members: Members) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in members) + "}"


def _vw_json_line_label(name: str, value: str) -> dict[str, str]:
    """Return the fields of `_label_Cost` and the like, of `_label: {"Action": …}`, or of `_label: "1:0.5:0.8"`."""
    if name.lower() != "_label":
        field = name[len("_label_") :].lower()
        if field not in _LABELS:
            raise InvalidInput(f"found {name}, expected {', '.join(sorted(_LABELS.values()))} or _labelIndex")
        return {_LABELS[field]: value}
    content = json.loads(value)
    if isinstance(content, dict):
        return {
            key: text
            for inner, text in vw_json_line_members(value)
            for key, text in _vw_json_line_label(f"_label_{inner}", text).items()
        }
    parts = content.split(":") if isinstance(content, str) else []
    if len(parts) != len(_LABELS):
        raise InvalidInput(f"_label: found {value[:60]}, expected action:cost:probability")
    action, cost, probability = parts
    return {"_label_Action": action, "_label_cost": cost, "_label_probability": probability}


def _vw_json_line_items(text: str, label: dict[str, str]) -> str:
    """Return `_multi` without labels; that of the action that was taken is added to `label`."""
    if "_label" not in text:
        return text
    items = []
    for place, item in enumerate(_vw_json_line_elements(text)):
        kept: Members = []
        for name, value in vw_json_line_members(item):
            if name.lower().startswith("_label"):
                label |= _vw_json_line_label(name, value) | {"_labelIndex": str(place)}
            else:
                kept.append((name, value))
        items.append(_vw_json_line_object(kept))
    return f"[{','.join(items)}]"


def _vw_json_line_slots(text: str) -> tuple[str, str]:
    """Return `_vw_json_line_slots` without outcomes, and `_outcomes`."""
    slots, outcomes = [], []
    for slot in _vw_json_line_elements(text):
        members = vw_json_line_members(slot)
        lowered = [(_SLOT.get(name.lower(), name), value) for name, value in members]
        slots.append(
            _vw_json_line_object([(name, value) for name, value in lowered if name not in ("_label_cost", "_a", "_p")])
        )
        outcomes.append(_vw_json_line_object([(name, value) for name, value in lowered if name in _SLOT]))
    return f"[{','.join(slots)}]", f"[{','.join(outcomes)}]"


def _vw_json_line_elements(text: str) -> list[str]:
    """Return the elements of a JSON array as they are written."""
    at, found = _blanks(text, 1).end(), []  # type: ignore[union-attr]
    if text[:1] != "[":
        raise InvalidInput(f"found {text[:60]}, expected a list")
    while text[at] != "]":
        start, at = at, _decode(text, at)[1]
        found.append(text[start:at])
        at = _blanks(text, at).end()  # type: ignore[union-attr]
        if text[at] == ",":
            at = _blanks(text, at + 1).end()  # type: ignore[union-attr]
    return found


def is_vw_json_line_left_out(line: bytes) -> str | None:
    """Return what a line of a joined log is that holds no event; None for others."""
    if line.startswith(b"[CHECKPOINT"):
        return "checkpoint lines"
    if line.startswith(b"{") and b'"RewardValue"' in line and b'"c":' not in line:
        return "rewards without their event"
    return None
