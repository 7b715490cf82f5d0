"""MESSAGES and UNIT_PUTS blocks of a checkpoint: messages as columns (FORMAT.md, section 8)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import layout as L

_FIELDS = [
    (name, L.ffi.sizeof(kind))
    for name, kind, _ in L.fields("psc_message")
    if name not in ("zero", "due_us")
]
_WIDTHS = (0, 1, 2, 4, 8)


def messages_of(payload: bytes, count: int) -> npt.NDArray[Any]:
    """NumPy records of ``struct psc_message``. Raises ValueError with what is wrong.

    Nothing is allocated before the lengths are known to fit: ``count`` is at most the number of
    bytes.
    """
    at = L.size_of("psc_columns")
    if len(payload) < at or count < 1:
        raise ValueError(f"{count} messages in {len(payload)} bytes")
    header = L.overlay("psc_columns", payload)[0]
    bases, widths = list(header.base), L.raw(header.width)
    if any(L.raw(header.zero)):
        raise ValueError("zero bytes of the columns' header are not zero")
    if count > 1 and widths[0] == 0:
        raise ValueError(f"{count} messages of one number")
    _check_widths(bases, widths)
    due_width = int(header.due_width)
    if due_width not in (0, 8):
        raise ValueError(f"column due_us has width {due_width}")
    if len(payload) != at + sum(-(-count * width // 8) * 8 for width in (*widths, due_width)):
        raise ValueError(f"columns of {count} messages do not fill {len(payload)} bytes")
    out = np.zeros(count, dtype=L.dtype("psc_message"))
    for (name, size), base, width in zip(_FIELDS, bases, widths, strict=True):
        end = at + count * width
        values = _values(payload[at:end], base, width, size, name)
        at += -(-count * width // 8) * 8
        if any(payload[end:at]):
            raise ValueError(f"padding of column {name} is not zero")
        out[name] = values.astype(f"<u{size}").view(out.dtype[name])
    if due_width:
        out["due_us"] = np.frombuffer(payload[at:], dtype="<u8")
        if int(out["due_us"].max()) > L.DUE_MAX:
            raise ValueError("a value of column due_us is after the year 9999")
    out["first_lsn"] = out["lsn"] - out["first_lsn"]
    return out


def _check_widths(bases: list[int], widths: bytes) -> None:
    for (name, size), base, width in zip(_FIELDS, bases, widths, strict=True):
        wide = width not in _WIDTHS or width > size
        if wide or base >> 8 * size or (width == 8 and base):
            raise ValueError(f"column {name} has width {width} and base {base}")


def _values(column: bytes, base: int, width: int, size: int, name: str) -> npt.NDArray[np.uint64]:
    """Base and value of each message, or the base alone."""
    if width == 0:
        return np.full(1, base, dtype=np.uint64)
    values = np.frombuffer(column, dtype=f"<u{width}").astype(np.uint64)
    if int(values.max()) > (1 << 8 * size) - 1 - base:
        raise ValueError(f"a value of column {name} exceeds its field")
    sums: npt.NDArray[np.uint64] = values + np.uint64(base)
    return sums
