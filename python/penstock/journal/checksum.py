"""CRC-32C and the keyed tag, written from FORMAT.md and independent of the C core.

CRC-32C is the Castagnoli polynomial, bits reflected, start and end inverted: ``b"123456789"`` gives
0xe3069283. A CRC is linear, so the CRC of any stretch follows from the register's value at its two
ends. :class:`Registers` computes that value at every eighth byte of a buffer with NumPy, in many
lanes at once; all records of a segment are then checked with a few vector operations. Small inputs
take a plain loop over 8-byte words, which costs less than starting NumPy.

*Register* here means the inner state without the inversions; its start value is ``0xffffffff``.
"""

from __future__ import annotations

import functools
import sys
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]
Buffer = bytes | bytearray | memoryview

_POLYNOMIAL = 0x82F63B78
_MASK = 0xFFFFFFFF
_SMALL = 16384  # bytes; below, the plain loop is faster
_SHORT = 2  # flag in byte 3 of a record
_LANES = 2048  # rows worked on together; their words stay in the second-level cache

if sys.byteorder != "little":  # the files are little-endian and are read in place
    raise ImportError("the journal reader needs a little-endian machine")


@functools.cache
def _byte_table() -> U32:
    """Register after one byte, for a register of zero."""
    value: U32 = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        value = np.where(value & 1, (value >> 1) ^ np.uint32(_POLYNOMIAL), value >> 1)
    return value.astype(np.uint32)


def _zero_byte(register: U32) -> U32:
    result: U32 = _byte_table()[register & 0xFF] ^ (register >> 8)
    return result


@functools.cache
def _word_tables() -> tuple[U32, U32, U32, U32]:
    """Register after an 8-byte word, by the word's four 16-bit parts, the lowest first."""
    pair = np.arange(65536, dtype=np.uint32)
    first = _byte_table()[pair & 0xFF]
    table = _byte_table()[(first ^ (pair >> 8)) & 0xFF] ^ (first >> 8)
    tables = [table]
    for _ in range(3):
        tables.append(_zero_byte(_zero_byte(tables[-1])))
    return tables[3], tables[2], tables[1], tables[0]


@functools.cache
def _small_tables() -> tuple[Sequence[int], ...]:
    words = tuple(array("I", table.tobytes()) for table in _word_tables())
    return (*words, array("I", _byte_table().tobytes()))


def _apply(operator: U32, register: U32) -> U32:
    """A linear operator, given as four tables for the register's bytes, applied to registers."""
    result: U32 = operator[0][register & 0xFF]
    result = result ^ operator[1][(register >> 8) & 0xFF]
    result ^= operator[2][(register >> 16) & 0xFF]
    result ^= operator[3][register >> 24]
    return result


@functools.cache
def _skip_words(exponent: int) -> U32:
    """Operator "2**exponent zero words follow"."""
    if exponent:
        half = _skip_words(exponent - 1)
        return np.stack([_apply(half, row) for row in half])
    rows = [np.arange(256, dtype=np.uint32) << np.uint32(8 * k) for k in range(4)]
    for _ in range(8):
        rows = [_zero_byte(row) for row in rows]
    return np.stack(rows)


@functools.cache
def _skip_each(count: int) -> U32:
    """Operators "j zero words follow" for j = 0 .. count-1, shape (count, 4, 256)."""
    rows = np.stack([np.arange(256, dtype=np.uint32) << np.uint32(8 * k) for k in range(4)])
    result = np.empty((count, 4, 256), dtype=np.uint32)
    for j in range(count):
        result[j] = rows
        rows = np.stack([_apply(_skip_words(0), row) for row in rows])
    return result


def _skip(register: U32, words: I64) -> U32:
    """Each register after its own number of zero words."""
    bits = int(words.max(initial=0)).bit_length()
    for k in range(bits):
        chosen = ((words >> k) & 1).astype(bool)
        if chosen.any():
            register = np.where(chosen, _apply(_skip_words(k), register), register)
    return register


def crc32c(data: Buffer, value: int = 0) -> int:
    """CRC-32C of ``data``; ``value`` is the CRC of what came before it."""
    size = len(data)
    register = ~value & _MASK
    view = memoryview(data)
    whole = size & ~7
    low, second, third, high, byte = _small_tables()
    if size > _SMALL:
        register = Registers(view[:whole]).run(register)
    else:
        for word in view[:whole].cast("Q"):
            word ^= register
            register = (
                low[word & 0xFFFF]
                ^ second[(word >> 16) & 0xFFFF]
                ^ third[(word >> 32) & 0xFFFF]
                ^ high[word >> 48]
            )
    for octet in view[whole:]:
        register = byte[(register ^ octet) & 0xFF] ^ (register >> 8)
    return ~register & _MASK


class Registers:
    """The register after each 8-byte word of a buffer whose size is a multiple of 8.

    The buffer is cut into rows; `inside` holds the register within a row started from zero,
    `before` the register at each row's start, carried through all rows before it.
    """

    def __init__(self, data: Buffer) -> None:
        words = np.frombuffer(data, dtype="<u8")
        self.row_words = 128 if words.size > 1 << 15 else 32
        rows = -(-words.size // self.row_words)
        self.words = words.size
        self.lanes = max(1, min(_LANES, rows))
        tiles = -(-rows // self.lanes)
        self.inside = np.empty((tiles, self.row_words, self.lanes), dtype=np.uint32)
        tile_words = self.lanes * self.row_words
        for t in range(tiles):
            part = words[t * tile_words : (t + 1) * tile_words]
            if part.size < tile_words:
                part = np.concatenate([part, np.zeros(tile_words - part.size, dtype="<u8")])
            columns = np.ascontiguousarray(part.reshape(self.lanes, self.row_words).T)
            self._run_tile(columns, self.inside[t])
        self.before = self._carry()

    def _run_tile(self, columns: npt.NDArray[np.uint64], out: U32) -> None:
        low, second, third, high = _word_tables()
        register = np.zeros(self.lanes, dtype=np.uint32)
        for j in range(self.row_words):
            parts = (columns[j] ^ register).view(np.uint16).reshape(-1, 4)
            register = low[parts[:, 0]]
            register ^= second[parts[:, 1]]
            register ^= third[parts[:, 2]]
            register ^= high[parts[:, 3]]
            out[j] = register

    def _carry(self) -> U32:
        last = self.inside[:, -1, :].reshape(-1).tolist()
        tables = [row.tolist() for row in _skip_words(self.row_words.bit_length() - 1)]
        first, second, third, fourth = tables
        before = np.zeros(len(last) + 1, dtype=np.uint32)
        register = 0
        for i, end in enumerate(last):
            register = end ^ (
                first[register & 0xFF]
                ^ second[(register >> 8) & 0xFF]
                ^ third[(register >> 16) & 0xFF]
                ^ fourth[register >> 24]
            )
            before[i + 1] = register
        return before

    def at(self, words: I64) -> U32:
        """Register after the first ``words[k]`` words, started from zero."""
        row, column = np.divmod(words, self.row_words)
        carried = self.before[row]
        skip = _skip_each(self.row_words)
        result: U32 = skip[column, 0, carried & 0xFF]
        result = result ^ skip[column, 1, (carried >> 8) & 0xFF]
        result ^= skip[column, 2, (carried >> 16) & 0xFF]
        result ^= skip[column, 3, carried >> 24]
        within = column > 0
        tile, lane = np.divmod(row[within], self.lanes)
        result[within] ^= self.inside[tile, column[within] - 1, lane]
        return result

    def run(self, register: int) -> int:
        """Register after the whole buffer, started from ``register``."""
        words = np.array([self.words], dtype=np.int64)
        started = _skip(np.array([register], dtype=np.uint32), words)
        return int(started[0] ^ self.at(words)[0])


def record_crc(record: Buffer, seed: int = 0) -> int:
    """CRC of one record; ``seed``: of a short one, the CRC of its COMMON record."""
    view = memoryview(record)
    return crc32c(view[12 if view[3] & _SHORT else 8 :], crc32c(view[:4], seed))


def _seed(view: memoryview, at: int) -> int:
    """What the CRC of the record at offset ``at`` starts from."""
    if not view[at + 3] & _SHORT:
        return 0
    common = at - int.from_bytes(view[at + 8 : at + 12], "little")
    return int.from_bytes(view[common + 4 : common + 8], "little")


def record_crcs(data: Buffer, starts: Sequence[int], lengths: Sequence[int]) -> Sequence[int]:
    """CRC of each record: its bytes 0..3, then 8..length-1; of a short one, from the CRC of its
    COMMON record on, its bytes 0..3, then 12..length-1.

    Starts and lengths are multiples of 8, lengths at least 24, and all lie inside ``data``, also
    the COMMON records.
    """
    if not starts:
        return []
    view = memoryview(data)
    if sum(lengths) <= _SMALL:
        return [
            record_crc(view[at : at + length], _seed(view, at))
            for at, length in zip(starts, lengths, strict=True)
        ]
    base = starts[0]
    end = starts[-1] + lengths[-1]
    registers = Registers(view[base:end])
    first = np.array(starts, dtype=np.int64)
    size = np.array(lengths, dtype=np.int64)
    word = (first - base) >> 3
    words = np.frombuffer(view, dtype="<u4")
    half = first >> 2
    heads = words[half]
    short = (heads >> 24 & _SHORT) != 0
    distance = np.where(short, words[half + 2], 0)
    seeds = np.where(short, words[half - (distance >> 2) + 1], 0).astype(np.uint32)
    register = heads ^ seeds ^ np.uint32(_MASK)
    for _ in range(4):
        register = _zero_byte(register)
    fourth = register ^ words[half + 3]  # a short record goes on with bytes 12..15
    for _ in range(4):
        fourth = _zero_byte(fourth)
    register = np.where(short, fourth, register).astype(np.uint32)
    begun = 1 + short.astype(np.int64)
    register = _skip(register ^ registers.at(word + begun), (size >> 3) - begun)
    register ^= registers.at(word + (size >> 3))
    result: Any = (register ^ np.uint32(_MASK)).tolist()
    return result  # type: ignore[no-any-return]


_C1 = 0x6A09E667F3BCC909
_C2 = 0xBB67AE8584CAA73B
_C3 = 0x3C6EF372FE94F82B
_M64 = (1 << 64) - 1


def _mix(a: int, b: int) -> int:
    product = (a & _M64) * (b & _M64)
    return (product ^ (product >> 64)) & _M64


def tag(identifier: Buffer, qm_id: bytes) -> int:
    """The keyed 64-bit tag of an identifier, as stored in checkpoints; never 0."""
    key = int.from_bytes(qm_id[:8], "little") ^ int.from_bytes(qm_id[8:16], "little")
    data = bytes(identifier)
    state = _mix(key ^ _C1, len(data) ^ _C2)
    whole = len(data) & ~15
    for at in range(0, whole, 16):
        left = int.from_bytes(data[at : at + 8], "little")
        right = int.from_bytes(data[at + 8 : at + 16], "little")
        state = _mix(left ^ _C1 ^ state, right ^ _C3)
    if whole < len(data):
        rest = data[whole:].ljust(16, b"\0")
        left = int.from_bytes(rest[:8], "little")
        right = int.from_bytes(rest[8:], "little")
        state = _mix(left ^ _C2 ^ state, right ^ _C1)
    return _mix(state ^ _C3, key ^ _C2) or 1
