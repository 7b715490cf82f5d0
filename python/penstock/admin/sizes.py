"""Sizes as text, in the units that Linux and Spark count in: ``64M`` is 64 MiB."""

from __future__ import annotations

_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def parse_size(text: str) -> int:
    """Bytes of ``1048576``, ``64k``, ``64 MiB``, ``2GB``, ``1g``: units are powers of 1024.

    Raises:
        ValueError: it is no size; the text says what one looks like.
    """
    word = text.strip().lower()
    for ending in ("ib", "b"):
        if word.endswith(ending) and (ending == "b" or word[-3:-2] in "kmgt"):
            word = word.removesuffix(ending)
            break
    unit = word[-1:] if word[-1:] in _UNITS else ""
    digits = word.removesuffix(unit).strip()
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
        raise ValueError(f"{text!r} is no size in bytes, such as 1048576, 64M or 1G")
    return int(digits) << _UNITS[unit]
