"""Compiled scanners of JSON text that hash its features like `DictionaryReader`.

CRC-32 is updated with each character, so names are never built: the state after `user` continues with `.age`, or with
`=` and a string. Every position is checked against the end of the text; -1 means "malformed, or use the slow path".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.compiled import compiled_apart, compiled_exactly, compiled_within
from o2pl.contexts.json_syntax import DEEPEST, after_space, byte_at, code_unit
from o2pl.protocols import Array, Floats, Ints

LARGEST = float(np.finfo(np.float32).max)


def _crc_table() -> Array:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1).astype(np.uint32)
    return table


_CRC = _crc_table()
_TENS = np.array([float(10**power) for power in range(23)])  # exact
_EXACT = np.uint64(2**53)  # smaller integers are exact doubles
_SPLIT = 134217729.0  # 2^27 + 1
NO_NAME = np.uint32(0xFFFFFFFF)  # the state of an empty name


# -- characters


@compiled_within
def crc(state: Any, byte: Any) -> Any:
    return np.uint32(_CRC[(state ^ np.uint32(byte)) & np.uint32(0xFF)] ^ (state >> np.uint32(8)))


@compiled_within
def hashed(data: Array, begin: int, end: int, state: Any) -> Any:
    """Return the state after these characters."""
    for i in range(begin, end):
        state = crc(state, byte_at(data, i))
    return state


@compiled_within
def mixed(state: Any) -> Any:
    """Return `name_hash` from the state after a name."""
    h = np.uint32(state ^ np.uint32(0xFFFFFFFF))
    h = np.uint32((h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    h = np.uint32((h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.uint32(h ^ (h >> np.uint32(16)))


@compiled_apart
def _text(data: Array, p: int, end: int, state: Any) -> tuple[int, Any]:
    """Scan a string after its opening quote. Returns the position after its end (-1: malformed) and the state."""
    while p < end:
        byte = byte_at(data, p)
        if byte == 34:
            return p + 1, state
        if byte != 92:
            state = crc(state, byte)
            p += 1
            continue
        if p + 1 >= end:
            return -1, state
        letter = data[p + 1]
        p += 2
        if letter == 34 or letter == 92 or letter == 47:
            state = crc(state, letter)
        elif letter == 98:
            state = crc(state, 8)
        elif letter == 102:
            state = crc(state, 12)
        elif letter == 110:
            state = crc(state, 10)
        elif letter == 114:
            state = crc(state, 13)
        elif letter == 116:
            state = crc(state, 9)
        elif letter == 117:
            code = code_unit(data, p, end)
            p += 4
            if 0xD800 <= code < 0xDC00 and p + 6 <= end and data[p] == 92 and data[p + 1] == 117:
                low = code_unit(data, p + 2, end)
                if 0xDC00 <= low < 0xE000:
                    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
                    p += 6
            if code < 0 or 0xD800 <= code < 0xE000:
                return -1, state
            if code < 0x80:
                state = crc(state, code)
            elif code < 0x800:
                state = crc(crc(state, 0xC0 | (code >> 6)), 0x80 | (code & 63))
            elif code < 0x10000:
                state = crc(crc(state, 0xE0 | (code >> 12)), 0x80 | ((code >> 6) & 63))
                state = crc(state, 0x80 | (code & 63))
            else:
                state = crc(crc(state, 0xF0 | (code >> 18)), 0x80 | ((code >> 12) & 63))
                state = crc(crc(state, 0x80 | ((code >> 6) & 63)), 0x80 | (code & 63))
        else:
            return -1, state
    return -1, state


@compiled_exactly
def _quotient(mantissa: Any, power: int) -> float:
    """Return mantissa / 10^power, correctly rounded, for mantissa < 10^19 and power ≤ 19.

    With q = hi / 10^power and the remainder of q, in doubles: the error is below 2^-104 of the result, and no such
    quotient is closer than 2^-98 to the midpoint between two doubles, unless it is the midpoint.
    """
    hi = float(mantissa)
    lo = float(np.int64(mantissa - np.uint64(hi)))
    tens = _TENS[power]
    if mantissa < _EXACT:
        return float(hi / tens)
    q = hi / tens
    # q · 10^power = product + error, exactly (Dekker): halves of 26 bits
    a = _SPLIT * q
    q_high = a - (a - q)
    q_low = q - q_high
    b = _SPLIT * tens
    t_high = b - (b - tens)
    t_low = tens - t_high
    product = q * tens
    error = ((q_high * t_high - product) + q_high * t_low + q_low * t_high) + q_low * t_low
    left = ((hi - product) + lo) - error
    return float(q + left / tens)


@compiled_apart
def number(data: Array, p: int, end: int) -> tuple[int, float]:
    """Scan a JSON number. Returns the position after it (-1: malformed or slow path) and the rounded number."""
    negative = data[p] == 45
    if negative:
        p += 1
    mantissa, digits, exponent, first = np.uint64(0), 0, 0, p
    while p < end and 48 <= byte_at(data, p) <= 57:
        mantissa = mantissa * np.uint64(10) + np.uint64(byte_at(data, p) - 48)
        digits += 1 if mantissa > 0 else 0
        p += 1
        if digits > 19:
            return -1, 0.0
    if p == first or (p > first + 1 and data[first] == 48):
        return -1, 0.0
    if p < end and data[p] == 46:
        p += 1
        first = p
        while p < end and 48 <= byte_at(data, p) <= 57:
            mantissa = mantissa * np.uint64(10) + np.uint64(byte_at(data, p) - 48)
            digits += 1 if mantissa > 0 else 0
            exponent -= 1
            p += 1
            if digits > 19:
                return -1, 0.0
        if p == first:
            return -1, 0.0
    if p < end and (data[p] == 101 or data[p] == 69):
        p += 1
        below = p < end and data[p] == 45
        if p < end and (data[p] == 45 or data[p] == 43):
            p += 1
        power, first = 0, p
        while p < end and 48 <= data[p] <= 57 and power < 1000:
            power = power * 10 + (data[p] - 48)
            p += 1
        if p == first:
            return -1, 0.0
        exponent += -power if below else power
    if mantissa == 0:
        return p, -0.0 if negative else 0.0
    if mantissa < _EXACT:
        if exponent < -22 or exponent > 22:
            return -1, 0.0
        value = _quotient(mantissa, -exponent) if exponent < 0 else float(mantissa) * _TENS[exponent]
    elif -19 <= exponent <= 0:
        value = _quotient(mantissa, -exponent)
    else:
        return -1, 0.0
    return p, -value if negative else value


# -- values


@compiled_apart
def scan_value(
    data: Array, p: int, end: int, state: Any, hashes: Array, values: Floats, n: int, states: Array, places: Ints
) -> tuple[int, int]:
    """Scan a value with this name state; write its features from n on. Returns the position after it (-1: slow) and n.

    states, places: work arrays, [`DEEPEST`] each.
    """
    depth = -1  # of the enclosing object (place -1) or list (place: index of the element)
    while True:
        p = after_space(data, p, end)
        if p >= end:
            return -1, n
        if depth >= 0:
            byte = data[p]
            if byte == 44:
                if places[depth] >= 0:
                    places[depth] += 1
                p += 1
                continue
            if byte == (93 if places[depth] >= 0 else 125):
                depth -= 1
                p += 1
                if depth < 0:
                    return p, n
                continue
            state = states[depth]
            if places[depth] < 0:
                if byte != 34:
                    return -1, n
                p, state = _text(data, p + 1, end, crc(state, 46))
                if p < 0:
                    return -1, n
                p = after_space(data, p, end)
                if p >= end or data[p] != 58:
                    return -1, n
                p = after_space(data, p + 1, end)
                if p >= end:
                    return -1, n
        byte = data[p]
        if byte == 123 or byte == 91:
            if depth + 1 >= DEEPEST or (byte == 91 and depth >= 0 and places[depth] >= 0):
                return -1, n
            depth += 1
            states[depth], places[depth] = state, -1 if byte == 123 else 0
            p += 1
            continue
        if byte == 34:
            p, state = _text(data, p + 1, end, crc(state, 61))
            if p < 0:
                return -1, n
            hashes[n], values[n] = mixed(state), 1
            n += 1
        elif byte == 116 or byte == 102 or byte == 110:
            length = 5 if byte == 102 else 4
            if p + length > end:
                return -1, n
            if byte != 110:
                state = crc(state, 61)
                for i in range(length):
                    state = crc(state, data[p + i])
                hashes[n], values[n] = mixed(state), 1
                n += 1
            p += length
        else:
            p, value = number(data, p, end)
            if p < 0 or abs(value) > LARGEST:
                return -1, n
            if depth >= 0 and places[depth] >= 0:
                state, place, power = crc(state, 91), places[depth], 1
                while power * 10 <= place:
                    power *= 10
                while power > 0:
                    state = crc(state, 48 + place // power % 10)
                    power //= 10
                state = crc(state, 93)
            hashes[n], values[n] = mixed(state), value
            n += 1
        if depth < 0:
            return p, n


@compiled_apart
def scan_key(data: Array, p: int, end: int, state: Any) -> tuple[int, Any]:
    """Scan a key from its opening quote. Returns the position of the value (-1: malformed) and the state."""
    p, state = _text(data, p + 1, end, state)
    if p < 0:
        return -1, state
    p = after_space(data, p, end)
    if p >= end or data[p] != 58:
        return -1, state
    p = after_space(data, p + 1, end)
    return (p if p < end else -1), state


@compiled_apart
def skip_value(data: Array, p: int, end: int) -> int:
    """Return the position after a skipped value; -1: malformed."""
    depth = 0
    while p < end:
        byte = data[p]
        if byte == 34:
            p += 1
            while p < end and data[p] != 34:
                p += 2 if data[p] == 92 else 1
            if p >= end:
                return -1
        elif byte == 123 or byte == 91:
            depth += 1
        elif byte == 125 or byte == 93:
            if depth == 0:
                return p
            depth -= 1
        elif byte == 44 and depth == 0:
            return p
        p += 1
        if depth == 0 and (byte == 34 or byte == 125 or byte == 93):
            return p
    return -1
