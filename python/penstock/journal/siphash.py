"""SipHash-2-4, written from FORMAT.md and independent of the C core.

One message at a time in plain integers, or many of one size in NumPy's lanes: a segment of small
batches has thousands of headers.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

_LANES = 16  # messages of one size; with fewer the plain loop is faster
_M64 = (1 << 64) - 1
_START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


def _padded(data: bytes) -> bytes:
    """Whole words, the last one with the size as its highest byte."""
    size = len(data)
    return data + bytes(7 - size % 8) + bytes((size & 255,))


def _rounds(a: int, b: int, c: int, d: int, count: int) -> tuple[int, int, int, int]:
    mask = _M64
    for _ in range(count):
        a = a + b & mask
        c = c + d & mask
        b = (b << 13 & mask | b >> 51) ^ a
        d = (d << 16 & mask | d >> 48) ^ c
        a = a << 32 & mask | a >> 32
        c = c + b & mask
        a = a + d & mask
        b = (b << 17 & mask | b >> 47) ^ c
        d = (d << 21 & mask | d >> 43) ^ a
        c = c << 32 & mask | c >> 32
    return a, b, c, d


def siphash(key: bytes, data: bytes) -> int:
    """The 64-bit hash of ``data`` under a key of 16 bytes."""
    low, high = struct.unpack("<QQ", key)
    a, b, c, d = low ^ _START[0], high ^ _START[1], low ^ _START[2], high ^ _START[3]
    for word in memoryview(_padded(data)).cast("Q"):
        a, b, c, d = _rounds(a, b, c, d ^ word, 2)
        a ^= word
    a, b, c, d = _rounds(a, b, c ^ 0xFF, d, 4)
    return a ^ b ^ c ^ d


def _lanes(key: bytes, messages: Sequence[bytes]) -> list[int]:
    """The hashes of messages of one size."""
    words = np.frombuffer(b"".join(map(_padded, messages)), dtype="<u8").reshape(len(messages), -1)
    low, high = struct.unpack("<QQ", key)
    u64 = np.uint64
    one = np.ones(len(messages), dtype=np.uint64)
    a, b, c, d = (one * u64(k ^ s) for k, s in zip((low, high, low, high), _START, strict=True))
    for column in words.T:
        a, b, c, d = _rounds_of_lanes(a, b, c, d ^ column, 2)
        a = a ^ column
    a, b, c, d = _rounds_of_lanes(a, b, c ^ u64(0xFF), d, 4)
    result: list[int] = (a ^ b ^ c ^ d).tolist()
    return result


def _rounds_of_lanes(a: Any, b: Any, c: Any, d: Any, count: int) -> tuple[Any, Any, Any, Any]:
    """As _rounds; sums and shifts of NumPy's words wrap by themselves."""
    u64 = np.uint64
    for _ in range(count):
        a = a + b
        c = c + d
        b = (b << u64(13) | b >> u64(51)) ^ a
        d = (d << u64(16) | d >> u64(48)) ^ c
        a = a << u64(32) | a >> u64(32)
        c = c + b
        a = a + d
        b = (b << u64(17) | b >> u64(47)) ^ c
        d = (d << u64(21) | d >> u64(43)) ^ a
        c = c << u64(32) | c >> u64(32)
    return a, b, c, d


def siphash_each(key: bytes, messages: Sequence[bytes]) -> list[int]:
    """The hashes of all messages, in their order."""
    by_size: dict[int, list[int]] = defaultdict(list)
    for i, message in enumerate(messages):
        by_size[len(message)].append(i)
    result = [0] * len(messages)
    for places in by_size.values():
        chosen = [messages[i] for i in places]
        many = len(chosen) >= _LANES
        found = _lanes(key, chosen) if many else [siphash(key, m) for m in chosen]
        for i, value in zip(places, found, strict=True):
            result[i] = value
    return result
