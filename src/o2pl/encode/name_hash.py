"""The hash of a feature's name, the same in every process, version and machine:

    mix(crc32(name in UTF-8)),    mix: the finaliser of MurmurHash3 for 32 bits.

The last bits of CRC-32 alone depend on how names differ (numbered names fill some indices and skip others); after
mixing they collide as often as random numbers. CRC-32 is in Python's standard library, as fast as scikit-learn's
murmurhash, and needs no slow import.
"""

from __future__ import annotations

import zlib


def name_hash(name: str) -> int:
    """Return the 32-bit hash of a feature's name."""
    h = zlib.crc32(name.encode("utf-8", "surrogatepass"))
    h = (h ^ (h >> 16)) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & 0xFFFFFFFF
    return h ^ (h >> 16)
