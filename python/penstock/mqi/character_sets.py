"""Coded character sets by their CCSID, and the conversion of text from one into another.

A CCSID is in the table when Python has its codec, or when a published table gives it: CODECS has
the former, DIFFERENCES the latter, as a few differences from code page 37. Others are not
converted.

Choices, where MQ's documents leave one:

* A character that the target does not have becomes its substitution character, U+001A there, as
  in MQ; a string that is not valid in its own character set is not converted at all.
* The new-line character of EBCDIC (X'15') becomes a line feed outside EBCDIC: NL_TO_LF, the default
  of ConvEBCDICNewline, applied to Unicode too.
* UTF-16 has the byte order of the integers of the encoding, and no byte order mark.

Sources: "Codeset names and CCSIDs", "Unicode conversion support", "CCSID values defined on IBM i",
"AllQueueManagers stanza of the mqs.ini file"; the registrations IBM1047 and IBM01140 to IBM01149 of
IANA's character sets, each of which differs from its older code page by the euro sign.
"""

from __future__ import annotations

import codecs
from functools import lru_cache

__all__ = ["CharacterSet", "character_set", "converted", "known_ccsids"]

UTF_16 = (1200, 13488, 17584)
_UTF_16_CODECS = {">": "utf-16-be", "<": "utf-16-le"}

# CCSID -> Python's codec
CODECS: dict[int, str] = {
    1208: "utf-8",
    # ASCII and ISO 8859
    367: "ascii", 813: "iso8859-7", 819: "latin-1", 912: "iso8859-2", 913: "iso8859-3",
    914: "iso8859-4", 915: "iso8859-5", 916: "iso8859-8", 920: "iso8859-9", 921: "iso8859-13",
    923: "iso8859-15", 1089: "iso8859-6",
    # personal computers
    437: "cp437", 737: "cp737", 775: "cp775", 850: "cp850", 852: "cp852", 855: "cp855",
    857: "cp857", 858: "cp858", 860: "cp860", 861: "cp861", 862: "cp862", 863: "cp863",
    865: "cp865", 866: "cp866", 869: "cp869",
    # Windows; those from 5346 on name the pages with the euro sign, which Python's pages have
    1250: "cp1250", 1251: "cp1251", 1252: "cp1252", 1253: "cp1253", 1254: "cp1254",
    1255: "cp1255", 1256: "cp1256", 1257: "cp1257", 1258: "cp1258", 5346: "cp1250",
    5347: "cp1251", 5348: "cp1252", 5349: "cp1253", 5350: "cp1254", 5351: "cp1255",
    5352: "cp1256", 5353: "cp1257", 5354: "cp1258",
    # Cyrillic
    878: "koi8-r", 1168: "koi8-u",
    # East Asia
    943: "cp932", 950: "cp950", 954: "euc_jp", 970: "euc_kr", 1363: "cp949", 1383: "gb2312",
    1386: "gbk", 5050: "euc_jp", 5488: "gb18030", 33722: "euc_jp",
    # EBCDIC
    37: "cp037", 273: "cp273", 424: "cp424", 500: "cp500", 875: "cp875", 1026: "cp1026",
    1140: "cp1140",
}  # fmt: skip
_EBCDIC = frozenset((37, 273, 424, 500, 875, 1026, 1140))

# CCSID -> where it differs from code page 37, in hexadecimal: byte:character
DIFFERENCES: dict[int, str] = {
    1047: "5F:5E AD:5B B0:AC BA:DD BB:A8 BD:5D",
    1142: "47:7D 4A:23 4F:21 5A:20AC 5B:C5 5F:5E 67:24 6A:F8 70:A6 7B:C6 7C:D8 80:40 9C:7B 9E:5B "
    "9F:5D A1:FC B0:A2 BA:AC BB:7C C0:E6 D0:E5 DC:7E",
    1143: "43:7B 47:7D 4A:A7 4F:21 51:60 5A:20AC 5B:C5 5F:5E 63:23 67:24 6A:F6 71:5C 79:E9 7B:C4 "
    "7C:D6 9F:5D A1:FC B0:A2 B5:5B BA:AC BB:7C C0:E4 CC:A6 D0:E5 DC:7E E0:C9 EC:40",
    1144: "44:7B 48:5C 4A:B0 4F:21 51:5D 54:7D 58:7E 5A:E9 5F:5E 6A:F2 79:F9 7B:A3 7C:A7 90:5B "
    "9F:20AC A1:EC B0:A2 B1:23 B5:40 BA:AC BB:7C C0:E0 CD:A6 D0:E8 DD:60 E0:E7",
    1145: "49:A6 4A:5B 5A:5D 69:23 6A:F1 7B:D1 9F:20AC A1:A8 B0:A2 BA:5E BB:21 BD:7E",
    1146: "4A:24 5B:A3 9F:20AC A1:AF B0:A2 B1:5B BA:5E BC:7E",
    1147: "44:40 48:5C 4A:B0 4F:21 51:7B 54:7D 5A:A7 5F:5E 6A:F9 79:B5 7B:A3 7C:E0 90:5B 9F:20AC "
    "A0:60 A1:A8 B0:A2 B1:23 B5:5D BA:AC BB:7C BD:7E C0:E9 D0:E8 DD:A6 E0:E7",
    1149: "4A:DE 4F:21 5A:C6 5F:D6 79:F0 7C:D0 8C:60 8E:7B 9C:7D 9E:5D 9F:20AC A1:F6 AC:40 AE:5B "
    "B0:A2 BA:AC BB:7C BE:5C C0:FE CC:7E D0:E6 E0:B4 EC:5E",
}
# The older page of each: without the euro sign, the currency sign in its place.
_WITHOUT_EURO = {277: 1142, 278: 1143, 280: 1144, 284: 1145, 285: 1146, 297: 1147, 871: 1149}
# The newer page of those that Python has.
_WITH_EURO = {1141: 273, 1148: 500}
_EURO, _CURRENCY = "\u20ac", "\xa4"
_NEW_LINE, _SUBSTITUTE = "\x85", "\x1a"
_SUBSTITUTES = "penstock.substitute"


def _substitute(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return _SUBSTITUTE * (error.end - error.start), error.end


codecs.register_error(_SUBSTITUTES, _substitute)


class CharacterSet:
    """A coded character set.

    Attributes:
        ccsid: its number.
        is_ebcdic: it has EBCDIC's control characters.
        is_wide: the characters of names have two bytes, in the order of the encoding's integers.
    """

    __slots__ = ("_codec", "_encode_table", "_table", "ccsid", "is_ebcdic", "is_wide")

    def __init__(self, ccsid: int, codec: str, table: str) -> None:
        """A set of Python's codec, or of a table of its 256 characters."""
        self.ccsid = ccsid
        self.is_wide = ccsid in UTF_16
        self.is_ebcdic = bool(table) or ccsid in _EBCDIC
        self._codec, self._table = codec, table
        self._encode_table = codecs.charmap_build(table) if table else None

    def _name(self, order: str) -> str:
        return _UTF_16_CODECS[order] if self.is_wide else self._codec

    def decode(self, data: bytes, order: str, whole: bool = True) -> str:
        """Text of bytes; not ``whole``: a character that the end cuts is left out.

        Args:
            order: ``>`` or ``<``, of the integers; used by wide sets only.

        Raises:
            UnicodeDecodeError: the bytes are no text of this set.
        """
        if self._table:
            return codecs.charmap_decode(data, "strict", self._table)[0]
        if whole:
            return data.decode(self._name(order))
        return codecs.getincrementaldecoder(self._name(order))().decode(data)

    def encode(self, text: str, order: str) -> bytes:
        """Bytes of text, the substitution character for characters that the set does not have."""
        if self._table:
            return codecs.charmap_encode(text, _SUBSTITUTES, self._encode_table)[0]
        return text.encode(self._name(order), _SUBSTITUTES)

    def front(self, data: bytes, length: int, order: str) -> bytes:
        """The first bytes of text of this set, at most ``length``, as whole characters."""
        return self.encode(self.decode(data[:length], order, whole=False), order)


def _table_of(ccsid: int) -> str:
    """The 256 characters of a set that Python lacks; an empty string when there is no table."""
    if ccsid in _WITHOUT_EURO:
        return _table_of(_WITHOUT_EURO[ccsid]).replace(_EURO, _CURRENCY)
    everything = bytes(range(256))
    if ccsid in _WITH_EURO:
        return everything.decode(CODECS[_WITH_EURO[ccsid]]).replace(_CURRENCY, _EURO)
    if ccsid not in DIFFERENCES:
        return ""
    table = list(everything.decode("cp037"))
    for pair in DIFFERENCES[ccsid].split():
        at, _, character = pair.partition(":")
        table[int(at, 16)] = chr(int(character, 16))
    return "".join(table)


def known_ccsids() -> list[int]:
    """Every CCSID of the table."""
    return sorted({*UTF_16, *CODECS, *DIFFERENCES, *_WITHOUT_EURO, *_WITH_EURO})


@lru_cache(256)
def character_set(ccsid: int) -> CharacterSet | None:
    """The character set of a CCSID; None for one that is not in the table."""
    if ccsid in UTF_16 or ccsid in CODECS:
        return CharacterSet(ccsid, CODECS.get(ccsid, ""), "")
    table = _table_of(ccsid)
    return CharacterSet(ccsid, "", table) if table else None


def converted(
    data: bytes,
    source: CharacterSet,
    source_order: str,
    target: CharacterSet,
    target_order: str,
    whole: bool = True,
) -> bytes:
    """Text of one character set in another one; arguments as for :meth:`CharacterSet.decode`.

    Raises:
        UnicodeDecodeError: the bytes are no text of the source.
    """
    text = source.decode(data, source_order, whole)
    if source.is_ebcdic and not target.is_ebcdic:
        text = text.replace(_NEW_LINE, "\n")
    return target.encode(text, target_order)
