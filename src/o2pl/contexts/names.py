"""The hash of a feature's name, the same in every process, version and machine:

    mix(crc32(name in UTF-8)),    mix: the finaliser of MurmurHash3 for 32 bits.

The last bits of CRC-32 alone depend on how names differ (numbered names fill some indices and leave others out); mixed,
they collide as often as chance would. It is in Python's library, as fast as scikit-learn's murmurhash, and free of the
second that importing that takes.
"""

from __future__ import annotations

import zlib


def name_hash(name: str) -> int:
    """The 32-bit hash of a feature's name."""
    h = zlib.crc32(name.encode("utf-8", "surrogatepass"))
    h = (h ^ (h >> 16)) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & 0xFFFFFFFF
    return h ^ (h >> 16)
