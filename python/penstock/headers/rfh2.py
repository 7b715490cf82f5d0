"""MQRFH2, "rules and formatting header 2": message properties in front of a body.

Programs without message handles, and JMS, send the properties of a message in this form:
MQMD.Format is ``MQHRF2``, the body begins with the header, and the header gives the format of the
rest of the body.

======  ===================  ==================================================================
offset  field                value
======  ===================  ==================================================================
0       StrucId              ``RFH`` and a blank
4       Version              2
8       StrucLength          of the whole header, a multiple of 4
12      Encoding             of the data behind the header, as MQMD.Encoding
16      CodedCharSetId       of the data behind the header; -2: as the header's own
20      Format               of the data behind the header, 8 characters
28      Flags                0
32      NameValueCCSID       1208 (UTF-8); 1200, 13488 or 17584 (UTF-16 in the integers' order)
36      NameValueLength      bytes of the folder that follows, a multiple of 4
40      NameValueData        a folder, blanks behind it: ``<usr><colour>red</colour></usr>``
...     ...                  more pairs of length and folder
======  ===================  ==================================================================

The byte order of the header's integers is given by what precedes it: MQMD.Encoding, or Encoding of
another MQRFH2 whose Format is ``MQHRF2``.

A property is an element of a folder. In folder ``usr`` its name is plain, ``colour``; in other
folders the name begins with the folder, ``jms.Dst``, and contains the groups,
``mq_usr.shop.colour``. If ``usr`` contains groups, which MQ does not allow, the name begins with
``usr.``. Values are text: types (attribute ``dt``) are ignored when read and not written, which
means a string. ``xsi:nil="true"`` is a null value. Of a repeated property the first one counts, as
with MQ's own calls.

Names are not checked when read; they are written by MQ's rules (:func:`check_name`).

Sources: "MQRFH2 - Rules and formatting header 2", "Property names", "Property name restrictions",
"Properties specified as MQRFH2 elements" and the pages below it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn
from xml.parsers import expat

from .._mqi_constants.descriptor import (
    MQCCSI_INHERIT,
    MQENC_INTEGER_MASK,
    MQENC_INTEGER_NORMAL,
    MQENC_INTEGER_REVERSED,
    MQENC_REVERSED,
)
from .._mqi_constants.reason_codes import MQRC_RFH_ERROR, MQRC_RFH_FORMAT_ERROR
from ..constants import ReasonCode
from ..errors import InvalidValue, MQError

__all__ = ["FORMAT", "MAX_NAME", "Header", "HeaderError", "build", "check_name", "parse"]

FORMAT = b"MQHRF2  "
"""Format of a message that begins with an MQRFH2."""
MAX_NAME = 4095
"""Characters of a property's name."""
Properties = dict[str, "str | None"]

_REASONS = {MQRC_RFH_ERROR: "MQRC_RFH_ERROR", MQRC_RFH_FORMAT_ERROR: "MQRC_RFH_FORMAT_ERROR"}
_FIXED = 36  # bytes
_NATIVE, _UTF8, _INHERIT = MQENC_REVERSED, 1208, MQCCSI_INHERIT
_UTF16 = (1200, 13488, 17584)
_ORDERS = {MQENC_INTEGER_NORMAL: ">", MQENC_INTEGER_REVERSED: "<"}
_INTEGERS = MQENC_INTEGER_MASK
_MOST_PROPERTIES = 104_857_600  # bytes: the highest MAXPROPL
_MOST_GROWTH = 16  # of names, which repeat their groups, against the folder they are made of
_MOST_FOLDERS = 4096  # of all headers of a message; each header counts as one
_LONGEST = MAX_NAME + len("usr.") + 1  # with the dot behind it
_BLANKS = " \t\r\n"
_NIL = ("true", "1")


class HeaderError(MQError, ValueError):
    """A header is not valid: 2334 (MQRC_RFH_ERROR) its fields, 2421 (MQRC_RFH_FORMAT_ERROR) one of
    its folders.
    """

    @property
    def reason_name(self) -> str:
        """``MQRC_RFH_ERROR`` or ``MQRC_RFH_FORMAT_ERROR``."""
        return _REASONS[self.reason]


@dataclass(frozen=True)
class Header:
    """The contents of one MQRFH2, or of several in a row.

    Attributes:
        properties: name -> value, None = null.
        format: of the data behind them, without the blanks at its end.
        ccsid: of the data behind them.
        encoding: of the data behind them.
        length: bytes of all of them, which is the offset of the data.
    """

    properties: Properties
    format: str
    ccsid: int
    encoding: int
    length: int


def _wrong(text: str, reason: int = MQRC_RFH_ERROR) -> NoReturn:
    raise HeaderError(reason, text)


# ---- reading ----


def parse(body: Any, encoding: int, ccsid: int = _UTF8) -> Header:
    """Reads the MQRFH2 at the beginning of a body, and those that follow it.

    Args:
        body: bytes-like; as stored, of a message whose Format is MQHRF2.
        encoding: MQMD.Encoding.
        ccsid: MQMD.CodedCharSetId, for a header whose CodedCharSetId is -2.

    Raises:
        HeaderError: 2334, 2421: it is truncated or invalid; folders must be XML without
            declarations; headers and folders are 4,096 at most. No input raises another exception.
    """
    data = memoryview(body).cast("B")
    properties: Properties = {}
    at = folders = 0
    while True:
        order = _ORDERS.get(encoding & _INTEGERS)
        if order is None:
            _wrong(f"encoding {encoding} has no order of integers for the MQRFH2 at byte {at}")
        if len(data) - at < _FIXED:
            _wrong(
                f"{len(data) - at} bytes at byte {at} are no MQRFH2, which has at least {_FIXED}"
            )
        struc_id, version, length, encoding, inner, name, _, names = struct.unpack_from(
            f"{order}4s4i8s2i", data, at
        )
        if (struc_id, version) != (b"RFH ", 2):
            _wrong(f"StrucId {struc_id!r} and Version {version} at byte {at} are not b'RFH ' and 2")
        if length < _FIXED or length % 4 or length > len(data) - at:
            _wrong(
                f"StrucLength {length} at byte {at} is no multiple of 4 from {_FIXED} to the "
                f"{len(data) - at} bytes that there are"
            )
        folders = _read_folders(
            data[at + _FIXED : at + length], order, names, properties, _one_more(folders)
        )
        at += length
        ccsid = ccsid if inner == _INHERIT else inner
        if name != FORMAT:
            return Header(properties, _format(name), ccsid, encoding, at)


def _one_more(count: int) -> int:
    """One header or folder more; raises HeaderError 2334 when there are too many."""
    if count == _MOST_FOLDERS:
        _wrong(f"there are more than {_MOST_FOLDERS} headers and folders")
    return count + 1


def _format(raw: bytes) -> str:
    name = raw.rstrip(b" \0")
    if not all(0x20 <= byte < 0x7F for byte in name):
        _wrong(f"Format {raw!r} is not eight characters")
    return name.decode("ascii")


def _read_folders(data: memoryview, order: str, ccsid: int, into: Properties, count: int) -> int:
    """Reads the folders of a header; ``count`` were read before. Returns how many are read then."""
    if ccsid == _UTF8:
        codec = "utf-8"
    elif ccsid in _UTF16:
        codec = "utf-16-be" if order == ">" else "utf-16-le"
    else:
        _wrong(f"NameValueCCSID {ccsid} is none of 1208, {', '.join(map(str, _UTF16))}")
    at = 0
    while at < len(data):
        count = _one_more(count)
        [length] = struct.unpack_from(f"{order}i", data, at)
        at += 4
        if length < 0 or length % 4 or length > len(data) - at:
            _wrong(
                f"NameValueLength {length} is no multiple of 4 up to the {len(data) - at} bytes "
                "that there are"
            )
        try:
            text = str(data[at : at + length], codec)
        except UnicodeDecodeError as error:
            _wrong(f"a folder is not of CCSID {ccsid}: {error.reason}", MQRC_RFH_FORMAT_ERROR)
        _Folder(length, into).read(text)
        at += length
    return count


class _Folder:
    """One NameValueData while it is read. Elements: the added root, folder, groups, property.

    The root makes a declaration (DOCTYPE, and with it entities) an error of the syntax.
    """

    def __init__(self, size: int, into: Properties) -> None:
        self.into = into
        self.path: list[str] = []
        self.name_length = 0
        self.room = MAX_NAME + _MOST_GROWTH * size  # for the names of all properties
        self.text: list[str] = []
        self.is_leaf = self.is_nil = False

    def read(self, text: str) -> None:
        """Adds the properties. Raises HeaderError 2421."""
        content = text.removeprefix("\ufeff").rstrip(f"{_BLANKS}\0")
        if not content:
            return
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self.text.append
        try:
            parser.Parse(f"<root>{content}</root>", True)
        except expat.ExpatError as error:
            _wrong(f"a folder is not well-formed: {error}", MQRC_RFH_FORMAT_ERROR)

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self.text:
            self._no_text()
        self.path.append(name)
        if len(self.path) > 1:  # the root's name is in none
            self.name_length += len(name) + 1
        if self.name_length > _LONGEST:
            _wrong(f"a name has more than {MAX_NAME} characters", MQRC_RFH_FORMAT_ERROR)
        self.is_leaf = True
        self.is_nil = bool(attributes) and attributes.get("xsi:nil") in _NIL

    def _end(self, name: str) -> None:
        if self.is_leaf and len(self.path) > 2:
            self.room -= self.name_length
            if self.room < 0:
                _wrong("a folder's groups make too much of it", MQRC_RFH_FORMAT_ERROR)
            value = None if self.is_nil else "".join(self.text)
            self.into.setdefault(_name_of(self.path), value)
            self.text.clear()
        elif self.text:
            self._no_text()
        self.path.pop()
        self.name_length -= len(name) + 1
        self.is_leaf = False

    def _no_text(self) -> None:
        """Between elements there are blanks only."""
        text = "".join(self.text).strip(_BLANKS)
        if text:
            _wrong(f"text {text!r:.40} stands where a property should", MQRC_RFH_FORMAT_ERROR)
        self.text.clear()


def _name_of(path: list[str]) -> str:
    if path[1] == "usr" and len(path) == 3 and "." not in path[2]:
        return path[2]
    return ".".join(path[1:])


# ---- writing ----

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_WORDS = frozenset(
    ("NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE")
)
# Folders that MQ reads as properties, or for another purpose, without an attribute ``content``.
_KNOWN = frozenset(
    ("usr", "jms", "mcd", "mqext", "mqps", "mq_usr", "mqema", "mq_svc", "mqtt", "ibm",
     "sib", "sib_usr", "sib_context", "psc", "pscr")
)  # fmt: skip
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_Group = dict[str, Any]  # name -> value, or a group within


def check_name(name: str) -> None:
    """Checks the name of a property.

    Names are parts joined by dots; each begins with a letter or ``_``, followed by letters, digits
    and ``_``. A single part is a property of folder ``usr``; otherwise the first part is the
    folder.

    Raises:
        InvalidValue: 2513: more than 4,095 characters. 2442: another form; a word of selection
            strings (NULL, TRUE, FALSE, NOT, AND, OR, BETWEEN, LIKE, IN, IS, ESCAPE); names that
            begin with JMS or usr.JMS, or are in folder mq or Root, which belong to MQ; groups in
            usr; two dots behind mq, other than mq_usr.
    """
    _path_of(name)


@lru_cache(1024)
def _path_of(name: str) -> tuple[str, ...]:
    """Folder, groups and element of a name. Raises as check_name()."""
    if len(name) > MAX_NAME:
        raise InvalidValue(
            ReasonCode.PROPERTY_NAME_LENGTH_ERR,
            f"the name of a property, {name[:40]}..., has {len(name)} characters; {MAX_NAME} is "
            "the most",
        )
    rule = _broken_rule(name)
    if rule is not None:
        raise InvalidValue(ReasonCode.PROPERTY_NAME_ERROR, f"property {name!r:.80}: {rule}")
    path = name.split(".")
    return ("usr", name) if len(path) == 1 else tuple(path)


def _broken_rule(name: str) -> str | None:
    """The rule that a name breaks, or nothing."""
    path = name.split(".")
    plain = name.removeprefix("usr.")
    if not all(_is_name(part) for part in path):
        return "a name is of letters, digits and _, not a digit first, its parts joined by dots"
    if plain.startswith("JMS"):
        return "names that begin with JMS belong to JMS"
    if plain.upper() in _WORDS:
        return "it is a word of selection strings"
    if path[0] in ("mq", "Root"):
        return "folder mq and the descriptor's fields (Root) belong to the queue manager"
    if path[0] == "usr" and len(path) != 2:
        return "folder usr has no groups"
    if name[:2].lower() == "mq" and name[:6].lower() != "mq_usr" and len(path) > 2:
        return "what begins with mq has one dot at most"
    return None


def _is_name(part: str) -> bool:
    """A Java identifier that is an XML name."""
    if _IDENTIFIER.fullmatch(part) is None:
        return False
    try:
        expat.ParserCreate().Parse(f"<{part}/>", True)
    except expat.ExpatError:
        return False
    return True


def build(
    properties: Mapping[str, str | None],
    format: str = "",
    ccsid: int = _UTF8,
    encoding: int = _NATIVE,
    *,
    own_encoding: int = _NATIVE,
) -> bytes:
    """Makes the header for a body of a format; MQMD.Format becomes ``MQHRF2``.

    Args:
        properties: name -> value, None = null.
        format, ccsid, encoding: of the body.
        own_encoding: of the header, for MQMD.Encoding; MQMD.CodedCharSetId must be 1208.

    Raises:
        InvalidValue: 2442, 2513: a name: see check_name(), or it is a group, or a duplicate. 2466:
            a value has characters that XML does not have. 2478: it is longer than 100 MiB.
        HeaderError: 2334: a field is out of range, or there are more than 4,095 folders.
    """
    order = _ORDERS.get(own_encoding & _INTEGERS)
    if order is None:
        _wrong(f"encoding {own_encoding} has no order of integers")
    pairs: list[bytes] = []
    count = _one_more(0)
    for folder, group in _tree(properties).items():
        count = _one_more(count)
        data = _xml(folder, group).encode()
        data += b" " * (-len(data) % 4)
        pairs += [struct.pack(f"{order}i", len(data)), data]
    length = _FIXED + sum(map(len, pairs))
    if length > _MOST_PROPERTIES:
        raise InvalidValue(
            ReasonCode.PROPERTIES_TOO_BIG,
            f"the properties of a message come to {length} bytes; {_MOST_PROPERTIES} is the most",
        )
    try:
        name = format.encode("ascii").ljust(8)
        fixed = struct.pack(f"{order}4s4i8s2i", b"RFH ", 2, length, encoding, ccsid, name, 0, _UTF8)
    except (UnicodeEncodeError, struct.error) as error:
        _wrong(f"format {format!r:.40}, ccsid {ccsid} or encoding {encoding}: {error}")
    if len(name) > 8:
        _wrong(f"format {format!r:.40} has more than 8 characters")
    return b"".join((fixed, *pairs))


def _tree(properties: Mapping[str, str | None]) -> dict[str, _Group]:
    """Folder -> its properties and groups."""
    tree: dict[str, _Group] = {}
    for name, value in properties.items():
        *groups, last = _path_of(name)
        node: Any = tree
        for group in groups:
            node = node.setdefault(group, {})
            if not isinstance(node, dict):
                break
        if not isinstance(node, dict) or last in node:
            raise InvalidValue(
                ReasonCode.PROPERTY_NAME_ERROR,
                f"property {name!r:.80}: another one has this name, or is a group in it or over it",
            )
        if value is not None and _NOT_XML.search(value):
            raise InvalidValue(
                ReasonCode.PROP_VALUE_NOT_CONVERTED,
                f"property {name!r:.80}: {value!r:.40} has characters that XML does not have",
            )
        node[last] = value
    return tree


def _xml(folder: str, group: _Group) -> str:
    mark = "" if folder in _KNOWN else " content='properties'"
    made = [f"<{folder}{mark}>"]
    open_groups = [(folder, iter(group.items()))]
    while open_groups:
        inside, rest = open_groups[-1]
        for name, value in rest:
            if isinstance(value, dict):
                made.append(f"<{name}>")
                open_groups.append((name, iter(value.items())))
                break
            if value is None:
                made.append(f"<{name} xsi:nil='true'></{name}>")
            else:
                made.append(f"<{name}>{value.translate(_ESCAPES)}</{name}>")
        else:
            made.append(f"</{inside}>")
            open_groups.pop()
    return "".join(made)
