"""MQGMO_CONVERT: the data of a message in another character set and encoding of integers.

Converted are text (MQSTR), the headers MQDLH, MQXQH, MQMDE and MQRFH2, in any order and number, and
the trigger message (MQTM). A header describes what follows it; after the conversion it describes
the converted data. Names and values of an MQRFH2 stay in their own character set, whose integers
and UTF-16 take the new byte order.

All of a message is converted or nothing: with a reason below it is returned as it is, and every
CodedCharSetId and Encoding describes the unconverted data.

=====  =========================================================================================
2110   the format is blank, unknown, or the data is not as its format says
2111   the character set of the data is not known, or it is UTF-16 in a header
2112   its encoding has no order of integers, and there are integers or UTF-16
2115   the same of the character set that was asked for
2116   the same of the encoding that was asked for
2119   the data is not valid in its character set, or MQ's format is not converted here
2120   the converted data is longer than the buffer
2190   the text of a field of a header is longer than the field
=====  =========================================================================================

An identifier or encoding that nothing in the data needs is not looked at. Data of format blank
behind a header stays as it is, without a warning.

Sources: "Conversion processing", "Processing conventions", "MQFMT_NONE" of "Format (MQCHAR8)",
"MQRFH2 - Rules and formatting header 2", the pages of the reason codes.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, NoReturn

from .._engine import CharField, LongField, PartField, Structure, register_conversion
from ..headers.dlh import MQDLH
from . import constants as mq
from .character_sets import UTF_16, CharacterSet, character_set, converted
from .structures import MQMD, MQMDE, MQXQH

__all__ = ["convert_data"]

_ORDERS = {mq.MQENC_INTEGER_NORMAL: ">", mq.MQENC_INTEGER_REVERSED: "<"}
_LONG = 4  # bytes
_FORMAT = 8  # characters
_RFH2_FIXED = 36  # bytes
_UTF_8 = 1208


class _NotConverted(Exception):
    """A reason code and its text: the message is returned as it is."""

    def __init__(self, reason: int, text: str) -> None:
        super().__init__(reason, text)
        self.reason, self.text = reason, text


def _refuse(reason: int, text: str) -> NoReturn:
    raise _NotConverted(reason, text)


# ---- layouts ----


class _Layout(NamedTuple):
    """The fields of a header that depend on character set or encoding.

    Attributes:
        struc_id, versions: what it begins with.
        length: bytes.
        texts: (offset, size) of the character fields.
        numbers: offsets of the integers.
        inner: offset of the fields Encoding, CodedCharSetId and Format, in a row, that describe
            what follows; -1: nothing follows.
    """

    struc_id: str
    versions: tuple[int, ...]
    length: int
    texts: tuple[tuple[int, int], ...]
    numbers: tuple[int, ...]
    inner: int


def _fields(
    cls: type[Structure], length: int, base: int = 0
) -> tuple[list[tuple[int, int]], list[int]]:
    """Character fields and integers of a structure, those of its parts included."""
    texts: list[tuple[int, int]] = []
    numbers: list[int] = []
    for field in cls.layout.fields.values():
        at = base + field.offset
        if field.offset >= length:
            continue
        if isinstance(field, PartField):
            deeper = _fields(field.item, field.size, at)
            texts += deeper[0]
            numbers += deeper[1]
        elif isinstance(field, CharField):
            texts.append((at, field.size))
        elif isinstance(field, LongField):
            numbers.append(at)
    return texts, numbers


def _layout(cls: type[Structure], inner: int) -> _Layout:
    [(version, length)] = cls.layout.lengths.items()
    texts, numbers = _fields(cls, length)
    return _Layout(cls.layout.struc_id, (version,), length, tuple(texts), tuple(numbers), inner)


_RFH2 = _Layout("RFH", (2,), _RFH2_FIXED, ((0, 4), (20, _FORMAT)), (4, 8, 12, 16, 28, 32), 12)
_TRIGGER = _Layout(
    "TM", (1,), 684,
    ((0, 4), (8, 48), (56, 48), (104, 64), (172, 256), (428, 128), (556, 128)), (4, 168), -1,
)  # fmt: skip
_LAYOUTS = {
    mq.MQFMT_DEAD_LETTER_HEADER: _layout(MQDLH, MQDLH.Encoding.offset),
    mq.MQFMT_XMIT_Q_HEADER: _layout(MQXQH, MQXQH.MsgDesc.offset + MQMD.Encoding.offset),
    mq.MQFMT_MD_EXTENSION: _layout(MQMDE, MQMDE.Encoding.offset),
    mq.MQFMT_RF_HEADER_2: _RFH2,
    mq.MQFMT_TRIGGER: _TRIGGER,
}
_NOT_HERE = frozenset(
    (
        mq.MQFMT_ADMIN, mq.MQFMT_CICS, mq.MQFMT_COMMAND_1, mq.MQFMT_COMMAND_2,
        mq.MQFMT_DIST_HEADER, mq.MQFMT_EMBEDDED_PCF, mq.MQFMT_EVENT, mq.MQFMT_IMS,
        mq.MQFMT_IMS_VAR_STRING, mq.MQFMT_PCF, mq.MQFMT_REF_MSG_HEADER, mq.MQFMT_RF_HEADER,
        mq.MQFMT_WORK_INFO_HEADER,
    )
)  # fmt: skip


# ---- what describes data ----


class _Form:
    """A CCSID and an encoding, and the reason codes of those that are not usable."""

    __slots__ = ("ccsid", "encoding", "reasons", "whose")

    def __init__(self, ccsid: int, encoding: int, whose: str, reasons: tuple[int, int]) -> None:
        self.ccsid, self.encoding = ccsid, encoding
        self.whose, self.reasons = whose, reasons

    def characters(self, in_header: bool) -> CharacterSet:
        """The character set. Raises _NotConverted 2111 or 2115."""
        found = character_set(self.ccsid)
        if found is None:
            _refuse(self.reasons[0], f"CCSID {self.ccsid} {self.whose} is none that is converted")
        if found.is_wide and in_header:
            _refuse(
                self.reasons[0],
                f"CCSID {self.ccsid} {self.whose} has no single-byte characters for a header",
            )
        return found

    def order(self) -> str:
        """The byte order of integers. Raises _NotConverted 2112 or 2116."""
        found = _ORDERS.get(self.encoding & mq.MQENC_INTEGER_MASK)
        if found is None:
            _refuse(
                self.reasons[1], f"encoding {self.encoding} {self.whose} has no order of integers"
            )
        return found

    def order_of(self, characters: CharacterSet) -> str:
        """The byte order as far as the character set needs one."""
        return self.order() if characters.is_wide else "<"


def _source(ccsid: int, encoding: int) -> _Form:
    reasons = mq.MQRC_SOURCE_CCSID_ERROR, mq.MQRC_SOURCE_INTEGER_ENC_ERROR
    return _Form(ccsid, encoding, "of the message", reasons)


def _target(ccsid: int, encoding: int) -> _Form:
    reasons = mq.MQRC_TARGET_CCSID_ERROR, mq.MQRC_TARGET_INTEGER_ENC_ERROR
    return _Form(ccsid, encoding, "asked for", reasons)


# ---- the conversion ----


class _Conversion:
    """One message on its way.

    Attributes:
        parts: what is converted so far: headers, then data.
        text: the last part is text.
    """

    def __init__(self, target: _Form, whole: bool) -> None:
        self.target, self.whole = target, whole
        self.parts: list[bytes] = []
        self.text = False

    def run(self, data: bytes, name: str, source: _Form) -> bytes:
        """The converted data of a message of that format. Raises _NotConverted."""
        at = 0
        while name in _LAYOUTS and at < len(data):
            layout = _LAYOUTS[name]
            length, name, source = self.header(data, at, name, layout, source)
            at += length
        rest = data[at:]
        if rest and name == mq.MQFMT_STRING:
            self.text = True
            rest = self.string(rest, source)
        self.parts.append(rest)
        return b"".join(self.parts)

    def string(self, data: bytes, source: _Form) -> bytes:
        """The text of a message of format MQSTR."""
        target = self.target
        if source.ccsid == target.ccsid and (
            source.ccsid not in UTF_16 or source.encoding == target.encoding
        ):
            return data
        characters, wanted = source.characters(False), target.characters(False)
        orders = source.order_of(characters), target.order_of(wanted)
        try:
            return converted(data, characters, orders[0], wanted, orders[1], self.whole)
        except UnicodeDecodeError as error:
            _refuse(
                mq.MQRC_NOT_CONVERTED,
                f"byte {error.start} of the data is no character of CCSID {source.ccsid}",
            )

    def cut(self, made: bytes, limit: int) -> bytes:
        """The converted data, cut to a buffer; text at the end of a character."""
        front = sum(map(len, self.parts[:-1]))
        if not self.text or limit <= front:
            return made[:limit]
        characters = self.target.characters(False)
        order = self.target.order_of(characters)
        return made[:front] + characters.front(made[front:], limit - front, order)

    def header(
        self, data: bytes, at: int, name: str, layout: _Layout, source: _Form
    ) -> tuple[int, str, _Form]:
        """Converts a header. Returns its length, and the format and form of what follows it."""
        characters, order = source.characters(True), source.order()
        if len(data) - at < layout.length:
            _refuse(mq.MQRC_FORMAT_ERROR, f"{len(data) - at} bytes are no header of format {name}")
        raw = bytearray(data[at : at + layout.length])
        self.check_identity(raw, name, layout, characters, order)
        inner, follows = "", source
        if layout.inner >= 0:
            inner, follows = self.inner(raw, layout.inner, characters, order, source)
        length = layout.length
        tail = b""
        if layout is _RFH2:
            length, pairs_ccsid = _integer(raw, 8, order), _integer(raw, 32, order)
            tail = self.pairs(data[at:], length, pairs_ccsid, order)
        self.convert_fields(raw, layout, characters, order)
        if layout.inner >= 0:
            self.describe(raw, layout.inner, inner, follows, bool(data[at + length :]))
        elif len(data) - at != length:
            _refuse(mq.MQRC_FORMAT_ERROR, f"there is data behind a header of format {name}")
        self.parts.append(bytes(raw) + tail)
        return length, inner, follows

    def check_identity(
        self, raw: bytearray, name: str, layout: _Layout, characters: CharacterSet, order: str
    ) -> None:
        """StrucId and Version. Raises _NotConverted 2110."""
        struc_id = self.decoded(bytes(raw[:4]), characters)
        version = _integer(raw, 4, order)
        if struc_id != layout.struc_id.ljust(4) or version not in layout.versions:
            _refuse(
                mq.MQRC_FORMAT_ERROR,
                f"StrucId {struc_id!r} and Version {version} are no header of format {name}",
            )

    def inner(
        self, raw: bytearray, at: int, characters: CharacterSet, order: str, source: _Form
    ) -> tuple[str, _Form]:
        """Format and form of what follows a header; its CCSID may be the header's own."""
        encoding, ccsid = _integer(raw, at, order), _integer(raw, at + _LONG, order)
        end = at + 2 * _LONG
        name = self.decoded(bytes(raw[end : end + _FORMAT]), characters)
        if ccsid == mq.MQCCSI_INHERIT:
            ccsid = source.ccsid
        return name.split("\0", 1)[0].rstrip(" "), _source(ccsid, encoding)

    def describe(self, raw: bytearray, at: int, name: str, follows: _Form, has_data: bool) -> None:
        """Says in a converted header what follows it. Raises _NotConverted for what cannot be."""
        form = follows
        if name and has_data:
            _check_format(name)
            form = self.target
        struct.pack_into(f"{self.target.order()}2i", raw, at, form.encoding, form.ccsid)

    def convert_fields(
        self, raw: bytearray, layout: _Layout, characters: CharacterSet, order: str
    ) -> None:
        """Character fields and integers of a header, in their places."""
        wanted = self.target.characters(True)
        if order != self.target.order():
            for at in layout.numbers:
                raw[at : at + _LONG] = raw[at : at + _LONG][::-1]
        if characters.ccsid == wanted.ccsid:
            return
        for at, size in layout.texts:
            raw[at : at + size] = self.field(bytes(raw[at : at + size]), characters, wanted)

    def field(self, raw: bytes, characters: CharacterSet, wanted: CharacterSet) -> bytes:
        """A character field: what does not count in it gives way. Raises _NotConverted 2190."""
        text = self.decoded(raw, characters)
        made = wanted.encode(text, "<")
        if len(made) > len(raw):
            made = wanted.encode(text.split("\0", 1)[0].rstrip(" "), "<")
        if len(made) > len(raw):
            _refuse(
                mq.MQRC_CONVERTED_STRING_TOO_BIG,
                f"{text!r} has {len(made)} bytes in CCSID {wanted.ccsid}, its field {len(raw)}",
            )
        return made.ljust(len(raw), wanted.encode(" ", "<"))

    def decoded(self, raw: bytes, characters: CharacterSet) -> str:
        """Text of a header's field. Raises _NotConverted 2119."""
        try:
            return characters.decode(raw, "<")
        except UnicodeDecodeError:
            _refuse(mq.MQRC_NOT_CONVERTED, f"{raw!r} is no text of CCSID {characters.ccsid}")

    def pairs(self, data: bytes, length: int, ccsid: int, order: str) -> bytes:
        """NameValueLength and NameValueData of an MQRFH2 of that length."""
        if length < _RFH2_FIXED or length % _LONG or length > len(data):
            _refuse(mq.MQRC_FORMAT_ERROR, f"StrucLength {length} of an MQRFH2 is wrong")
        if ccsid != _UTF_8 and ccsid not in UTF_16:
            _refuse(mq.MQRC_FORMAT_ERROR, f"NameValueCCSID {ccsid} of an MQRFH2 is wrong")
        swap = order != self.target.order()
        made = []
        at = _RFH2_FIXED
        while at < length:
            size = _integer(data, at, order)
            end = at + _LONG + size
            if size < 0 or size % _LONG or end > length:
                _refuse(mq.MQRC_FORMAT_ERROR, f"NameValueLength {size} of an MQRFH2 is wrong")
            value = data[at + _LONG : end]
            if swap and ccsid in UTF_16:
                value = _swapped(value)
            made += [struct.pack(f"{self.target.order()}i", size), value]
            at = end
        return b"".join(made)


def _integer(raw: bytes | bytearray, at: int, order: str) -> int:
    return int(struct.unpack_from(f"{order}i", raw, at)[0])


def _swapped(data: bytes) -> bytes:
    """The bytes of each pair exchanged."""
    made = bytearray(data)
    made[::2], made[1::2] = data[1::2], data[::2]
    return bytes(made)


def _check_format(name: str) -> None:
    """Raises _NotConverted 2110 or 2119 for data of a format that is not converted."""
    if name in _LAYOUTS or name == mq.MQFMT_STRING:
        return
    if name in _NOT_HERE:
        _refuse(mq.MQRC_NOT_CONVERTED, f"format {name} is not converted here")
    _refuse(mq.MQRC_FORMAT_ERROR, f"format {name!r} is not known for conversion")


def convert_data(
    data: bytes,
    format: bytes,
    ccsid: int,
    encoding: int,
    to_ccsid: int,
    to_encoding: int,
    limit: int,
    truncated: bool,
    accept: bool,
) -> tuple[bytes | None, int, str]:
    """Converts the data of a message that was got.

    Args:
        data: not empty.
        format, ccsid, encoding: of the data, as in the MQMD; format in eight characters.
        to_ccsid, to_encoding: what was asked for.
        limit: bytes of the caller's buffer; -1: it grows.
        truncated: the data is the beginning of a longer message.
        accept: MQGMO_ACCEPT_TRUNCATED_MSG.

    Returns:
        the converted data, or None when it was not converted; the reason code, which is 2079 when
        it was cut to the buffer; the text of the reason.
    """
    name = format.decode("latin-1").rstrip(" ")
    work = _Conversion(_target(to_ccsid, to_encoding), not truncated)
    try:
        _check_format(name)
        made = work.run(data, name, _source(ccsid, encoding))
        if not 0 <= limit < len(made):
            return made, 0, ""
        text = f"{len(made)} bytes in CCSID {to_ccsid}, the buffer has {limit}"
        if not accept:
            return None, mq.MQRC_CONVERTED_MSG_TOO_BIG, text
        return work.cut(made, limit), mq.MQRC_TRUNCATED_MSG_ACCEPTED, text
    except _NotConverted as why:
        return None, why.reason, why.text


register_conversion(convert_data)
