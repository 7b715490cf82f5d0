"""The attribute list of a definition (struct ps_attr of FORMAT.md), to and from values by selector.

A list omits values that equal the attribute's ``default``, unless the attribute is declared
``always``: so the defaults of the tables are part of the format and never change. ``read`` gives
every attribute of a type its value, ``decode`` only what the list holds.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False  # typing itself is not loaded: opening a queue needs this module
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .attribute import Stored
    from .types import ObjectType

_FAMILY_INTEGER, _FAMILY_STRING = 1, 2  # ps_attr.kind
_HEAD = struct.Struct("<iHH")
_INTEGER = struct.Struct("<q")
_NUMBER = struct.Struct("<iHHq")


def encode(stored: Mapping[int, Stored]) -> bytes:
    """The attribute list with all these values."""
    parts: list[bytes] = []
    for selector in sorted(stored):
        value = stored[selector]
        if isinstance(value, str):
            raw = value.encode()
            parts += [_HEAD.pack(selector, _FAMILY_STRING, len(raw)), raw, bytes(-len(raw) % 8)]
        else:
            parts.append(_NUMBER.pack(selector, _FAMILY_INTEGER, 8, value))
    return b"".join(parts)


def decode(attrs: bytes) -> dict[int, Stored]:
    """Stored values by selector; those of an unknown kind are left out.

    Raises struct.error for a list that ends inside a value.
    """
    found: dict[int, Stored] = {}
    at, end = 0, len(attrs)
    unpack_head, unpack_integer = _HEAD.unpack_from, _INTEGER.unpack_from
    while at < end:
        selector, kind, length = unpack_head(attrs, at)
        at += 8
        if kind == _FAMILY_INTEGER:
            found[selector] = unpack_integer(attrs, at)[0]
        elif kind == _FAMILY_STRING:
            found[selector] = attrs[at : at + length].decode("utf-8", "replace")
        at += length + -length % 8
    return found


def read(kind: ObjectType, attrs: bytes) -> dict[int, Stored]:
    """The stored value of every attribute of a type."""
    return {**kind.defaults, **decode(attrs)}


def pruned(kind: ObjectType, stored: Mapping[int, Stored]) -> dict[int, Stored]:
    """The values that an attribute list has to hold: without those that equal the default."""
    defaults, always = kind.defaults, kind.always
    return {
        selector: value
        for selector, value in stored.items()
        if selector in always or defaults.get(selector) != value
    }
