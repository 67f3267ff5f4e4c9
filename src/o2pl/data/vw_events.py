"""Reads events of Vowpal Wabbit's text line by line: any event, or what is wrong with it. `vw_scan` is faster."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")  # of JSON
_KEPT = 20  # characters of a number that is kept as it is written: what kernels read
BLANKS = " \t\r"
_words = re.compile(f"[^{BLANKS}]+").findall
_STARTS = frozenset(b"|'s-0123456789")  # of a bar, a tag, `shared`, a label: no JSON object starts so
_SEED = "seed="  # a tag of this form seeds VW's sampling; it is no id


def is_vw_event(text: bytes) -> bool:
    """Return whether a context is an event of VW's text, not JSON."""
    return len(text) > 0 and text[0] in _STARTS and b"|" in text


def vw_event_json(text: bytes) -> bytes:
    """Return the features of an event as JSON."""
    lines = (line.strip(BLANKS) for line in text.decode().split("\n"))
    context: str = vw_event_row(1, [line for line in lines if line])["context"]
    return context.encode()


class BadLine(Exception):
    def __init__(self, line: int, reason: str) -> None:
        self.line, self.reason = line, reason


def vw_event_row(first: int, event: list[str]) -> dict[str, Any]:
    """Return the columns of an event. first: number of its first line."""
    shared: list[str] = []
    actions: list[str] = []
    chosen: tuple[int, float, float] | None = None
    tag = None
    for line, text in enumerate(event, first):
        words, own, features = head_of_vw_event(text, line)
        tag = tag if own is None else own
        if words[:1] == ["shared"]:
            if actions or shared:
                raise BadLine(
                    line, "found a second 'shared' (or one after actions), expected it once, before the actions"
                )
            _check_rest_of_vw_event(words[1:], line)
            shared = vw_event_members(features, line)
            continue
        if words:
            if chosen is not None:
                raise BadLine(line, f"found a second label, {words[0]!r}, expected one per event")
            chosen = (len(actions), *label_of_vw_event(words, line)[1:])
        actions.append(braced_vw_event(vw_event_members(features, line)))
    if not actions:
        raise BadLine(first, "found an event without actions, expected one line per action")
    action, cost, probability = chosen or (None, None, None)
    return row_of_vw_event(
        braced_vw_event([*shared, f'"_multi":[{",".join(actions)}]']), action, cost, probability, tag
    )


def row_of_vw_event(
    context: str, action: float | None, cost: float | None, propensity: float | None, tag: str | None, **others: Any
) -> dict[str, Any]:
    """Return the columns of a decision."""
    rest: dict[str, Any] = dict(others.pop("rest", {}))
    if tag is not None and tag.startswith(_SEED):
        rest["_tag"], tag = tag, None
    return {
        "context": context, "action": action, "reward": None if cost is None else 0.0 - cost, "propensity": propensity,
        "event_id": tag, "rest": json.dumps(rest) if rest else None, **others,
    }  # fmt: skip


# -- the part of a line before its first bar


def head_of_vw_event(text: str, line: int) -> tuple[list[str], str | None, str]:
    """Return the words before the first bar, the tag, and the features. A word that touches the bar is the tag."""
    head, bar, features = text.partition("|")
    if not bar:
        raise BadLine(line, f"found {text[:60]!r}, expected a label and features after a |")
    words = _words(head)
    touches = bool(head) and head[-1] not in BLANKS and not words[-1].startswith("'")
    if touches and (words[-1] in ("shared", "action", "slot") or _is_vw_event_label(words[-1])):
        raise BadLine(
            line, f"found '{words[-1]}|', which VW takes for a tag, expected a blank before the |: '{words[-1]} |'"
        )
    if touches:
        return words[:-1], words[-1], features
    tag = next((word[1:] for word in words if word.startswith("'")), None)
    return [word for word in words if not word.startswith("'")], tag, features


def label_of_vw_event(words: Sequence[str], line: int, *, density: bool = False) -> tuple[float, float, float]:
    """Return action, cost and probability (density: of a real-valued action) of the words of a label."""
    word = words[0]
    try:
        action, cost, probability = (_finite_in_vw_event(part) for part in word.split(":"))
    except ValueError:
        raise BadLine(line, _no_vw_event_label(words)) from None
    _check_rest_of_vw_event(words[1:], line)
    if not (probability > 0 and (density or probability <= 1)):
        expected = "a density above 0" if density else "one in (0, 1]"
        name = "density" if density else "probability"
        raise BadLine(line, f"label: found the {name} {probability:g}, expected {expected}")
    return action, cost, probability


def _check_rest_of_vw_event(words: Sequence[str], line: int) -> None:
    if words and _is_vw_event_label(words[0]):
        raise BadLine(line, f"found a second label, {words[0]!r}, expected one per decision")
    if words:
        raise BadLine(line, f"found {words[0]!r} before the |, expected one label, and a tag that starts with '")


def _no_vw_event_label(words: Sequence[str]) -> str:
    found, expected = " ".join(words)[:60], "expected action:cost:probability"
    if all(_vw_event_numbers(word, 1) for word in words):
        return f"found the label {found!r}, a number as of regression or classification, {expected}: a log of decisions"
    if len(words) > 1 and all(_vw_event_numbers(word, 2) for word in words):
        return (
            f"found the labels {found!r}, the costs of all actions (cost-sensitive classification), {expected}"
            " of the action that was taken: a log of decisions"
        )
    return f"found the label {found!r}, {expected}"


def _vw_event_numbers(word: str, parts: int) -> bool:
    try:
        return len([float(part) for part in word.split(":")]) == parts
    except ValueError:
        return False


def _is_vw_event_label(word: str) -> bool:
    return _vw_event_numbers(word, 3)


def _finite_in_vw_event(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


# -- features


def braced_vw_event(entries: Sequence[str]) -> str:
    return "{" + ",".join(entries) + "}"


def vw_event_members(features: str, line: int) -> list[str]:
    """Return the members of a JSON object, one per namespace; features without a namespace are members themselves."""
    spaces: dict[str, list[str]] = {}
    for part in features.split("|"):
        words = _words(part)
        named = part[:1] not in BLANKS  # neither a blank nor empty
        name, _, scale = words.pop(0).partition(":") if named else ("", "", "")
        spaces.setdefault(name, []).extend(_vw_event_feature(word, scale, line) for word in words)
    own = spaces.pop("", [])
    return own + [f"{json.dumps(name)}:{{{','.join(entries)}}}" for name, entries in spaces.items()]


def _vw_event_feature(word: str, scale: str, line: int) -> str:
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
