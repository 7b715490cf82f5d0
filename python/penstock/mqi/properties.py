"""MQGMO_NO_PROPERTIES and MQGMO_PROPERTIES_COMPATIBILITY, and PROPCTL of NONE and COMPAT for a get
without an option: a message without its properties.

The properties of a message are the folders of the MQRFH2 headers in front of its data that MQ reads
as properties: those of a known name, and those with the attribute ``content="properties"``. A
header whose folders all are such goes as a whole; one with other folders keeps these. What precedes
the data then describes what is left.

COMPATIBILITY takes properties away only if there is no folder ``mcd``, ``jms``, ``usr`` or
``mqext``; otherwise the message stays as it is.

A header that is not valid has no properties: the message stays as it is.

Sources: "MQGMO_NO_PROPERTIES" and "MQGMO_PROPERTIES_COMPATIBILITY" of "Options (MQLONG)" of MQGMO,
"Properties specified as MQRFH2 elements".
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple
from xml.parsers import expat

from .._engine import register_properties
from ..headers import rfh2
from . import constants as mq

if TYPE_CHECKING:
    from collections.abc import Iterator

    Described = tuple[int, int, bytes]  # Encoding, CodedCharSetId and Format of what follows

__all__ = ["without_properties"]

_FIXED = 36  # bytes of an MQRFH2 without folders
_DESCRIBED_AT = 12
_ORDERS = {mq.MQENC_INTEGER_NORMAL: ">", mq.MQENC_INTEGER_REVERSED: "<"}
_UTF_8 = 1208
_COMPATIBLE = frozenset(("mcd", "jms", "usr", "mqext"))
_PROPERTIES = _COMPATIBLE | {
    "mq", "mq_usr", "mqema", "mqps", "mqtt", "mq_svc", "sib", "sib_usr", "sib_context", "ibm",
}  # fmt: skip


class _Folder(NamedTuple):
    """A length and its NameValueData: the bytes of both, names of the folders, whether all are
    properties.
    """

    raw: bytes
    names: tuple[str, ...]
    properties: bool


class _Header(NamedTuple):
    """An MQRFH2: its fixed part, the order of its integers, what follows it, its folders."""

    fixed: bytes
    order: str
    described: Described
    folders: list[_Folder]


def without_properties(
    data: bytes, encoding: int, ccsid: int, compatible: bool
) -> tuple[bytes, int, int, bytes] | None:
    """The message without its properties.

    Args:
        data: all of it. encoding, ccsid: of its MQMD, whose Format is MQHRF2.
        compatible: by the rule of MQGMO_PROPERTIES_COMPATIBILITY.

    Returns:
        Data, Encoding, CodedCharSetId and Format for the MQMD; None: it stays as it is.
    """
    try:
        length = rfh2.parse(data, encoding, ccsid).length
        headers = list(_headers(data[:length], encoding, ccsid))
    except (rfh2.HeaderError, expat.ExpatError):
        return None
    folders = [each for header in headers for each in header.folders]
    if not any(each.properties for each in folders):
        return None
    if compatible and any(_COMPATIBLE.intersection(each.names) for each in folders):
        return None
    result: list[bytes] = [data[length:]]
    follows = headers[-1].described  # describes what result begins with
    for number in range(len(headers) - 1, -1, -1):
        header = headers[number]
        left = [each.raw for each in header.folders if not each.properties]
        if header.folders and not left:
            continue
        result.insert(0, _written(header, left, follows))
        follows = headers[number - 1].described if number else (encoding, ccsid, rfh2.FORMAT)
    return b"".join(result), *follows


def _headers(data: bytes, encoding: int, ccsid: int) -> Iterator[_Header]:
    """The headers of bytes that are valid ones."""
    at = 0
    while at < len(data):
        order = _ORDERS[encoding & mq.MQENC_INTEGER_MASK]
        _, _, length, encoding, inner, name, _, names = struct.unpack_from(
            f"{order}4s4i8s2i", data, at
        )
        ccsid = ccsid if inner == mq.MQCCSI_INHERIT else inner
        folders = list(_folders(data[at + _FIXED : at + length], order, names))
        yield _Header(data[at : at + _FIXED], order, (encoding, ccsid, name), folders)
        at += length


def _folders(data: bytes, order: str, ccsid: int) -> Iterator[_Folder]:
    codec = "utf-8" if ccsid == _UTF_8 else "utf-16-be" if order == ">" else "utf-16-le"
    at = 0
    while at < len(data):
        [length] = struct.unpack_from(f"{order}i", data, at)
        raw = data[at : at + 4 + length]
        at += len(raw)
        found = _elements(raw[4:].decode(codec))
        names = tuple(name for name, _ in found)
        known = all(name in _PROPERTIES or content == "properties" for name, content in found)
        yield _Folder(raw, names, bool(found) and known)


def _elements(text: str) -> list[tuple[str, str]]:
    """Name and attribute ``content`` of each folder in a NameValueData."""
    found: list[tuple[str, str]] = []
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        if depth == 1:
            found.append((name, attributes.get("content", "")))
        depth += 1

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    content = text.removeprefix("\ufeff").rstrip(" \t\r\n\0")
    parser.Parse(f"<root>{content}</root>", True)
    return found


def _written(header: _Header, folders: list[bytes], follows: Described) -> bytes:
    """A header with these folders, before what is described."""
    raw = bytearray(header.fixed)
    length = _FIXED + sum(map(len, folders))
    struct.pack_into(f"{header.order}3i8s", raw, _DESCRIBED_AT - 4, length, *follows)
    return bytes(raw) + b"".join(folders)


register_properties(without_properties)
