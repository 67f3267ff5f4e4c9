"""Reads events of Vowpal Wabbit's text line by line: any event, or what is wrong with it. `vw_scan` is faster."""

from __future__ import annotations

import json
import math
import re
from typing import Any

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")  # of JSON
_KEPT = 20  # characters of a number that is kept as it is written: what kernels read
BLANKS = " \t\r"
_words = re.compile(f"[^{BLANKS}]+").findall
_STARTS = frozenset(b"|'s-0123456789")  # of a bar, a tag, `shared`, a label: no JSON object starts so


def is_event(text: bytes) -> bool:
    """Return whether a context is an event of VW's text, not JSON."""
    return len(text) > 0 and text[0] in _STARTS and b"|" in text


def event_json(text: bytes) -> bytes:
    """Return the features of an event as JSON."""
    lines = (line.strip(BLANKS) for line in text.decode().split("\n"))
    context: str = event_row(1, [line for line in lines if line])["context"]
    return context.encode()


class BadLine(Exception):
    def __init__(self, line: int, reason: str) -> None:
        self.line, self.reason = line, reason


def event_row(first: int, event: list[str]) -> dict[str, Any]:
    """Return the columns of an event. first: number of its first line."""
    shared: list[str] = []
    actions: list[str] = []
    chosen: tuple[int, float, float] | None = None
    tag = None
    for line, text in enumerate(event, first):
        head, bar, features = text.partition("|")
        if not bar:
            raise BadLine(line, f"found {text[:60]!r}, expected a label and features after a |")
        words = _words(head)
        tag = next((word[1:] for word in words if word.startswith("'")), tag)
        words = [word for word in words if not word.startswith("'")]
        if words[:1] == ["shared"]:
            if actions or shared:
                raise BadLine(
                    line, "found a second 'shared' (or one after actions), expected it once, before the actions"
                )
            shared = _members(features, line)
            continue
        if words:
            if chosen is not None:
                raise BadLine(line, f"found a second label, {words[0]!r}, expected one per event")
            chosen = (len(actions), *_label(words[0], line))
        actions.append("{" + ",".join(_members(features, line)) + "}")
    if not actions:
        raise BadLine(first, "found an event without actions, expected one line per action")
    context = "{" + ",".join([*shared, f'"_multi":[{",".join(actions)}]']) + "}"
    action, cost, probability = chosen or (None, None, None)
    return {
        "context": context, "action": action, "reward": None if cost is None else 0.0 - cost,
        "propensity": probability, "tag": tag,
    }  # fmt: skip


def _label(word: str, line: int) -> tuple[float, float]:
    parts = word.split(":")
    try:
        _, cost, probability = (float(part) for part in parts)
    except ValueError:
        raise BadLine(line, f"found the label {word!r}, expected action:cost:probability") from None
    if not 0 < probability <= 1:
        raise BadLine(line, f"label: found the probability {probability:g}, expected one in (0, 1]")
    return cost, probability


def _members(features: str, line: int) -> list[str]:
    """Return the members of a JSON object, one per namespace; features without a namespace are members themselves."""
    spaces: dict[str, list[str]] = {}
    for part in features.split("|"):
        words = _words(part)
        named = part[:1] not in BLANKS  # neither a blank nor empty
        name, _, scale = words.pop(0).partition(":") if named else ("", "", "")
        spaces.setdefault(name, []).extend(_feature(word, scale, line) for word in words)
    own = spaces.pop("", [])
    return own + [f"{json.dumps(name)}:{{{','.join(entries)}}}" for name, entries in spaces.items()]


def _feature(word: str, scale: str, line: int) -> str:
    name, colon, value = word.rpartition(":")
    if not colon:
        name, value = word, "1"
    try:
        number = float(value)
        if scale:
            number *= float(scale)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BadLine(line, f"found the feature {word!r}, expected name or name:number")
    kept = not scale and len(value) <= _KEPT and _NUMBER.fullmatch(value)
    return f"{json.dumps(name)}:{value if kept else repr(number)}"
