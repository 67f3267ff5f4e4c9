"""The forms of Vowpal Wabbit's text, and the rows of those with a decision per line, or several per event.

2:-1:0.8 |User age:31            a line per decision among K actions, from 1 (`--cb K`)
ca 3.5:-1:0.2 |User age:31       a line per decision, a real number (`--cats`)
ccb shared |User age:31          several decisions per event, which ends with an empty line (`--ccb_explore_adf`)
ccb action |Item price:3
ccb slot 0:-1:0.8 |Place top
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from o2pl.data.vw_events import (
    BadLine,
    braced_vw_event,
    head_of_vw_event,
    label_of_vw_event,
    row_of_vw_event,
    vw_event_members,
)
from o2pl.errors import InvalidInput

_KEYWORDS = frozenset(("shared", "ccb", "ca", "slates"))
_NUMBERS = re.compile(r"[-+.]*[0-9][-+0-9.eE:,]*")  # a label, or what stands in its place
SLATES = (
    "found slates, one reward for choices in several slots together, which cannot be learned from; expected a cost for"
    " each slot, as in `ccb slot action:cost:probability |…` or _outcomes"
)
Rows = Iterator[tuple[int, list[dict[str, Any]] | BadLine]]


def is_vw_line(line: bytes) -> bool:
    """Return whether a line may be the first one of VW's text."""
    head, bar, _ = line.decode("utf-8", "replace").partition("|")
    words = [word for word in head.split() if not word.startswith("'")]
    return bool(bar) and (not words or words[0] in _KEYWORDS or bool(_NUMBERS.fullmatch(words[0])))


def vw_form_of(start: bytes, file: str) -> str:
    """Return the form of VW's text from its first lines: adf, cb, ca or ccb. Slates are an error."""
    labels: list[list[str]] = [[]]  # of each event
    lines = 0
    for line in start.decode("utf-8", "replace").split("\n"):
        if not line.strip():
            labels.append([])
            continue
        lines += 1
        words = line.partition("|")[0].split()
        first = words[0] if words else ""
        if first == "slates":
            raise InvalidInput(f"{file}: {SLATES}")
        if first in _KEYWORDS:
            return "adf" if first == "shared" else first
        if _NUMBERS.fullmatch(first):
            labels[-1].append(first)
    several = any(len(event) > 1 for event in labels) or (lines == 1 and any(labels))
    from_zero = all(label.startswith("0:") for event in labels for label in event)
    return "cb" if several and not from_zero else "adf"


def vw_rows_by_line(block: bytes, first: int, form: str) -> Rows:
    """Yield the decision of each line with its number, or what is wrong. form: cb or ca."""
    for number, line in enumerate(block.split(b"\n"), first):
        text = line.decode("utf-8", "replace").strip()
        if text:
            try:
                yield number, [_vw_line_row(text, number, form)]
            except BadLine as error:
                yield number, error


def _vw_line_row(text: str, line: int, form: str) -> dict[str, Any]:
    words, tag, features = head_of_vw_event(text, line)
    rest = {}
    if form == "ca":
        if words and words[0] != "ca":
            raise BadLine(line, f"found {text[:30]!r}, expected a line that starts with 'ca', as those before")
        label = label_of_vw_event(words[1:], line, density=True) if words[1:] else None
    else:
        if len(words) > 1 and words[0].isdecimal():  # `--cb K --eval`: the action of a policy to be evaluated
            rest["_eval"] = int(words.pop(0))
        label = label_of_vw_event(words, line) if words else None
        if label is not None and (label[0] < 1 or label[0] % 1):
            raise BadLine(line, f"label: found the action {label[0]:g}, expected an integer from 1")
    context = braced_vw_event(vw_event_members(features, line))
    if label is None:
        return row_of_vw_event(context, None, None, None, tag, rest=rest)
    action = label[0] if form == "ca" else int(label[0]) - 1
    return row_of_vw_event(context, action, label[1], label[2], tag, rest=rest)


# -- several slots


def vw_slot_rows(first: int, event: list[str]) -> list[dict[str, Any]]:
    """Return a row per slot of an event. first: number of its first line."""
    shared: list[str] | None = None
    actions: list[str] = []
    slots: list[str] = []
    labels: list[tuple[int, list[str]]] = []
    tag = None
    for line, text in enumerate(event, first):
        words, own, features = head_of_vw_event(text, line)
        tag = tag or own
        kind, own_members = " ".join(words[:2]), vw_event_members(features, line)
        if kind == "ccb shared" and shared is None and not actions and len(words) == 2:
            shared = own_members
        elif kind == "ccb action" and not slots and len(words) == 2:
            actions.append(braced_vw_event(own_members))
        elif kind == "ccb slot":
            labels.append((line, words[2:]))
            included = next((word for word in words[2:] if ":" not in word), None)
            limits = [] if included is None else [f'"_inc":[{included}]']
            slots.append(braced_vw_event([*limits, *own_members]))
        else:
            raise BadLine(
                line,
                f"found {text.partition('|')[0].strip()!r}, expected 'ccb shared' once, then a line 'ccb action' per"
                " action, then a line 'ccb slot' per slot",
            )
    if not actions or not slots:
        raise BadLine(first, f"found {len(actions)} actions and {len(slots)} slots, expected at least one of each")
    context = braced_vw_event([*(shared or []), f'"_multi":[{",".join(actions)}]', f'"_slots":[{",".join(slots)}]'])
    taken: list[int] = []
    rows = []
    for place, (line, words) in enumerate(labels):
        ranking, cost, chances, allowed = _vw_slot_label(words, line, len(actions))
        full = completed_vw_ranking(ranking, len(actions), allowed, taken)
        taken += ranking[:1]
        action, chance = (ranking[0], chances[0]) if ranking else (None, None)
        rows.append(
            row_of_vw_event(context, action, cost, chance, tag, slot=place, ranking=full, probabilities=chances)
        )
    return rows


def completed_vw_ranking(ranking: list[int], n_actions: int, allowed: list[int] | None, taken: list[int]) -> list[int]:
    """Return a ranking with what else the slot could choose: all actions, or those allowed, but those taken before."""
    if not ranking:
        return ranking
    free = range(n_actions) if allowed is None else allowed
    return ranking + [k for k in free if k not in taken and k not in ranking]


def _vw_slot_label(
    words: list[str], line: int, n_actions: int
) -> tuple[list[int], float | None, list[float], list[int] | None]:
    """Return the actions of `action:cost:probability,action:probability…`, cost, probabilities, and `_inc`."""
    labels = [word for word in words if ":" in word]
    lists = [word for word in words if ":" not in word]
    if len(labels) > 1 or len(lists) > 1:
        raise BadLine(line, f"found {' '.join(words)!r}, expected one label and one list of actions")
    allowed = [_vw_place(word, line, n_actions) for word in lists[0].split(",")] if lists else None
    if not labels:
        return [], None, [], allowed
    first, *others = labels[0].split(",")
    action, cost, probability = label_of_vw_event([first], line)
    ranking, chances = [_vw_place(f"{action:g}", line, n_actions)], [probability]
    for word in others:
        place, _, chance = word.partition(":")
        ranking.append(_vw_place(place, line, n_actions))
        try:
            chances.append(float(chance))
        except ValueError:
            raise BadLine(line, f"found {word!r}, expected action:probability") from None
    return ranking, cost, chances, allowed


def _vw_place(word: str, line: int, n_actions: int) -> int:
    if not word.isdecimal() or int(word) >= n_actions:
        raise BadLine(line, f"label: found the action {word!r}, expected an integer from 0 to {n_actions - 1}")
    return int(word)
