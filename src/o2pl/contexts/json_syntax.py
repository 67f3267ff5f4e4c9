"""Compiled checks of JSON text: where a string or a value ends.

Every position is checked against the end of the text; -1 means "malformed".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.compiled import compiled_apart, compiled_within
from o2pl.protocols import Array

DEEPEST = 64  # nested values


@compiled_within
def byte_at(data: Array, p: int) -> Any:
    """Return data[p] for p ≥ 0, in inner loops: a signed index is first compared with 0, for positions from the end."""
    return data[np.uint64(p)]


@compiled_within
def after_space(data: Array, p: int, end: int) -> int:
    while p < end and (data[p] == 32 or data[p] == 10 or data[p] == 13 or data[p] == 9):
        p += 1
    return p


@compiled_within
def _hex(byte: int) -> int:
    if 48 <= byte <= 57:
        return byte - 48
    if 97 <= byte <= 102:
        return byte - 87
    return byte - 55 if 65 <= byte <= 70 else -1


@compiled_within
def code_unit(data: Array, p: int, end: int) -> int:
    """Return the number of four hexadecimal digits, or -1."""
    if p + 4 > end:
        return -1
    code = 0
    for i in range(4):
        digit = _hex(data[p + i])
        if digit < 0:
            return -1
        code = code * 16 + digit
    return code


@compiled_apart
def after_string(data: Array, p: int, end: int) -> int:
    """Return the position after a string, from its opening quote; -1: malformed."""
    p += 1
    while p < end:
        byte = data[p]
        if byte == 34:
            return p + 1
        if byte < 32:
            return -1
        if byte == 92:
            if p + 1 >= end:
                return -1
            letter = data[p + 1]
            if letter == 117:
                if code_unit(data, p + 2, end) < 0:
                    return -1
                p += 4
            elif not (
                letter == 34 or letter == 92 or letter == 47 or letter == 98 or letter == 102 or letter == 110
                or letter == 114 or letter == 116
            ):  # fmt: skip
                return -1
            p += 1
        p += 1
    return -1


@compiled_within
def _after_key(data: Array, p: int, end: int) -> int:
    """Return the position after a key and its colon; -1: malformed."""
    p = after_space(data, p, end)
    if p >= end or data[p] != 34:
        return -1
    p = after_string(data, p, end)
    if p < 0:
        return -1
    p = after_space(data, p, end)
    return p + 1 if p < end and data[p] == 58 else -1


@compiled_within
def _after_digits(data: Array, p: int, end: int) -> int:
    """Return the position after one or more digits; -1: there is none."""
    first = p
    while p < end and 48 <= data[p] <= 57:
        p += 1
    return p if p > first else -1


@compiled_within
def _after_scalar(data: Array, p: int, end: int) -> int:
    """Return the position after true, false, null or a number; -1: malformed."""
    byte = data[p]
    if byte == 116:
        whole = p + 4 <= end and data[p + 1] == 114 and data[p + 2] == 117 and data[p + 3] == 101
        return p + 4 if whole else -1
    if byte == 102:
        whole = p + 5 <= end and data[p + 1] == 97 and data[p + 2] == 108 and data[p + 3] == 115 and data[p + 4] == 101
        return p + 5 if whole else -1
    if byte == 110:
        whole = p + 4 <= end and data[p + 1] == 117 and data[p + 2] == 108 and data[p + 3] == 108
        return p + 4 if whole else -1
    if byte == 45:
        p += 1
    first = p
    p = _after_digits(data, p, end)
    if p < 0 or (p > first + 1 and data[first] == 48):
        return -1
    if p < end and data[p] == 46:
        p = _after_digits(data, p + 1, end)
    if 0 <= p < end and (data[p] == 101 or data[p] == 69):
        p += 1
        if p < end and (data[p] == 45 or data[p] == 43):
            p += 1
        p = _after_digits(data, p, end)
    return p


@compiled_apart
def after_value(data: Array, p: int, end: int, objects: Array) -> int:
    """Return the position after a JSON value; -1: malformed or too deep. objects: work array, [`DEEPEST`] bools."""
    depth = 0
    while True:
        p = after_space(data, p, end)
        if p >= end:
            return -1
        byte = data[p]
        if byte == 123 or byte == 91:
            inner = after_space(data, p + 1, end)
            if inner >= end:
                return -1
            if data[inner] == (125 if byte == 123 else 93):
                p = inner + 1
            else:
                if depth >= len(objects):
                    return -1
                objects[depth] = byte == 123
                depth += 1
                p = _after_key(data, inner, end) if byte == 123 else inner
                if p < 0:
                    return -1
                continue
        else:
            p = after_string(data, p, end) if byte == 34 else _after_scalar(data, p, end)
            if p < 0:
                return -1
        while True:  # a value has ended: close enclosing ones
            if depth == 0:
                return p
            p = after_space(data, p, end)
            if p >= end:
                return -1
            byte = data[p]
            p += 1
            if byte == (125 if objects[depth - 1] else 93):
                depth -= 1
            elif byte != 44:
                return -1
            else:
                if objects[depth - 1]:
                    p = _after_key(data, p, end)
                    if p < 0:
                        return -1
                break
