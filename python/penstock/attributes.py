"""Attributes of objects, declared as data: keyword, selector, values, range, default.

Everything else follows from the rows: what ``define`` accepts, how a value is stored in the
attribute list of a definition (struct ps_attr of FORMAT.md), what ``display`` shows.
"""

from __future__ import annotations

import difflib
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from .constants import MAX_DEPTH, MAX_MESSAGE_LENGTH, MAX_PRIORITY, NAME_LENGTH, ReasonCode
from .errors import AttributeNameError, InvalidType, InvalidValue

Value = int | str | bool
_YES_NO: Mapping[str, int] = {"NO": 0, "YES": 1}
_INHIBIT: Mapping[str, int] = {"ENABLED": 0, "DISABLED": 1}
_EVENT: Mapping[str, int] = {"DISABLED": 0, "ENABLED": 1}
_FAMILY_INTEGER, _FAMILY_STRING = 1, 2  # ps_attr.kind
_HEAD = struct.Struct("<iHH")
_INTEGER = struct.Struct("<q")
_MOST = 999999999


class Attribute(NamedTuple):
    """One attribute of a type of object.

    words: allowed words and their stored numbers. length: of a character attribute, in bytes; 0 for
    numbers. stored_only: the engine keeps it and does not act on it. check: refuses a text.
    """

    keyword: str
    selector: int
    default: int | str = 0
    low: int = 0
    high: int = 0
    words: Mapping[str, int] | None = None
    length: int = 0
    stored_only: bool = True

    @property
    def flag(self) -> bool:
        """True when the values are YES and NO: shown as True and False."""
        return self.words is _YES_NO

    def rule(self) -> str:
        """What is allowed, for people."""
        if self.length:
            return f"text of at most {self.length} bytes"
        if self.words:
            return "one of " + ", ".join(self.words)
        return f"a number from {self.low} to {self.high}"

    def parse(self, value: object) -> int | str:
        """A Python value as it is stored. Raises InvalidValue or InvalidType with the rule."""
        if self.length:
            return self._parse_text(value)
        if self.words is not None:
            return self._parse_word(value)
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidType(self._reason(), self._refusal(value))
        if not self.low <= value <= self.high:
            raise InvalidValue(self._reason(), self._refusal(value))
        return value

    def show(self, stored: int | str) -> Value:
        """A stored value as ``display`` gives it."""
        if self.words is None:
            return stored
        if self.flag:
            return stored == 1
        return next((word for word, number in self.words.items() if number == stored), stored)

    def _parse_text(self, value: object) -> str:
        if not isinstance(value, str):
            raise InvalidType(self._reason(), self._refusal(value))
        if len(value.encode()) > self.length or not value.isprintable():
            raise InvalidValue(self._reason(), self._refusal(value))
        return value.rstrip(" ")

    def _parse_word(self, value: object) -> int:
        words = self.words or {}
        if isinstance(value, bool):
            if self.flag:
                return int(value)
            if words is _INHIBIT:
                return int(not value)
            if words is _EVENT:
                return int(value)
        elif isinstance(value, str):
            if value.upper() in words:
                return words[value.upper()]
            near = difflib.get_close_matches(value.upper(), words, 1)
            hint = f"; do you mean {near[0]}?" if near else ""
            raise InvalidValue(self._reason(), self._refusal(value) + hint)
        elif isinstance(value, int):
            if value in words.values():
                return value
            raise InvalidValue(self._reason(), self._refusal(value))
        raise InvalidType(self._reason(), self._refusal(value))

    def _refusal(self, value: object) -> str:
        return f"{self.keyword}: {value!r} is not {self.rule()}"

    def _reason(self) -> int:
        if self.words is _INHIBIT:
            return ReasonCode.INHIBIT_VALUE_ERROR
        return {
            "DEFPRTY": ReasonCode.PRIORITY_ERROR,
            "DEFPSIST": ReasonCode.PERSISTENCE_ERROR,
            "TRIGDPTH": ReasonCode.TRIGGER_DEPTH_ERROR,
            "TRIGMPRI": ReasonCode.TRIGGER_MSG_PRIORITY_ERR,
            "TRIGTYPE": ReasonCode.TRIGGER_TYPE_ERROR,
        }.get(self.keyword, ReasonCode.OPTIONS_ERROR)


def _table(*rows: Attribute) -> dict[str, Attribute]:
    return {row.keyword: row for row in rows}


QLOCAL = _table(
    # what the engine acts on
    Attribute("MAXDEPTH", 15, 5000, 0, MAX_DEPTH, stored_only=False),
    Attribute("MAXMSGL", 13, 4194304, 0, MAX_MESSAGE_LENGTH, stored_only=False),
    Attribute("DEFPRTY", 6, 0, 0, MAX_PRIORITY, stored_only=False),
    Attribute("DEFPSIST", 5, 0, words=_YES_NO, stored_only=False),
    Attribute("MSGDLVSQ", 16, 0, words={"PRIORITY": 0, "FIFO": 1}, stored_only=False),
    Attribute("NPMCLASS", 78, 0, words={"NORMAL": 0, "HIGH": 10}, stored_only=False),
    Attribute("PUT", 10, 0, words=_INHIBIT, stored_only=False),
    Attribute("GET", 9, 0, words=_INHIBIT, stored_only=False),
    # what it keeps
    Attribute("DESCR", 2013, "", length=64),
    Attribute("DEFPRESP", 184, 1, words={"SYNC": 1, "ASYNC": 2}),
    Attribute("DEFREADA", 188, 0, words={"NO": 0, "YES": 1, "DISABLED": 2}),
    Attribute("DEFSOPT", 4, 2, words={"SHARED": 2, "EXCL": 4}),
    Attribute("SHARE", 23, 1, words=_YES_NO),
    Attribute("USAGE", 12, 0, words={"NORMAL": 0, "XMITQ": 1}),
    Attribute("BOTHRESH", 22, 0, 0, _MOST),
    Attribute("BOQNAME", 2019, "", length=NAME_LENGTH),
    Attribute("HARDENBO", 8, 1, words=_YES_NO),
    Attribute("RETINTVL", 21, _MOST, 0, _MOST),
    Attribute("TRIGGER", 24, 0, words=_YES_NO),
    Attribute("TRIGTYPE", 28, 1, words={"NONE": 0, "FIRST": 1, "EVERY": 2, "DEPTH": 3}),
    Attribute("TRIGDPTH", 29, 1, 1, _MOST),
    Attribute("TRIGMPRI", 26, 0, 0, MAX_PRIORITY),
    Attribute("TRIGDATA", 2023, "", length=64),
    Attribute("PROCESS", 2012, "", length=NAME_LENGTH),
    Attribute("INITQ", 2008, "", length=NAME_LENGTH),
    Attribute("QDEPTHHI", 40, 80, 0, 100),
    Attribute("QDEPTHLO", 41, 20, 0, 100),
    Attribute("QDPMAXEV", 42, 1, words=_EVENT),
    Attribute("QDPHIEV", 43, 0, words=_EVENT),
    Attribute("QDPLOEV", 44, 0, words=_EVENT),
    Attribute("QSVCINT", 54, _MOST, 0, _MOST),
    Attribute("QSVCIEV", 46, 0, words={"NONE": 0, "HIGH": 1, "OK": 2}),
    Attribute("DISTL", 34, 0, words=_YES_NO),
    Attribute(
        "PROPCTL", 190, 0, words={"COMPAT": 0, "NONE": 1, "ALL": 2, "FORCE": 3, "V6COMPAT": 4}
    ),
    Attribute("STREAMQ", 2138, "", length=NAME_LENGTH),
    Attribute("STRMQOS", 275, 0, words={"BESTEF": 0, "MUSTDUP": 1}),
)

# What only the engine sets: keyword -> selector of a stored text.
STAMPS: Mapping[str, int] = {"CRDATE": 2004, "CRTIME": 2005, "ALTDATE": 2027, "ALTTIME": 2028}

# Attributes by type of object.
TYPES: Mapping[str, Mapping[str, Attribute]] = {"QLOCAL": QLOCAL}


class Definition(dict[str, Value]):
    """What ``display`` shows of an object: ``name``, ``type`` and attributes by keyword, in lower
    case; looked up in any case.
    """

    def __getitem__(self, keyword: str) -> Value:
        """The value of a keyword."""
        return super().__getitem__(keyword.lower())

    def __contains__(self, keyword: object) -> bool:
        """Whether there is such a keyword."""
        return isinstance(keyword, str) and super().__contains__(keyword.lower())

    def get(self, keyword: str, default: Any = None) -> Any:
        """The value of a keyword, else the default."""
        return super().get(keyword.lower(), default)


def check_type(kind: str) -> str:
    """The type of object in upper case. Raises InvalidValue with what there is."""
    if not isinstance(kind, str):
        raise InvalidType(
            ReasonCode.OBJECT_TYPE_ERROR, f"an object type is a str, not {type(kind).__name__}"
        )
    if kind.upper() not in TYPES:
        raise InvalidValue(
            ReasonCode.OBJECT_TYPE_ERROR,
            f"{kind!r} is no type of object that can be defined: {', '.join(TYPES)}",
        )
    return kind.upper()


def parse_all(kind: str, given: Mapping[str, object]) -> dict[int, int | str]:
    """Attributes by keyword, in any case, into stored values by selector.

    Raises:
        AttributeNameError: unknown keyword, with the nearest known one.
        InvalidValue, InvalidType: the value does not fit.
    """
    table = TYPES[kind]
    stored: dict[int, int | str] = {}
    for keyword, value in given.items():
        attribute = table.get(keyword.upper())
        if attribute is None:
            near = difflib.get_close_matches(keyword.upper(), table, 1)
            hint = f"; do you mean {near[0].lower()}?" if near else ""
            raise AttributeNameError(
                ReasonCode.SELECTOR_ERROR, f"{kind} has no attribute {keyword!r} to set{hint}"
            )
        if attribute.selector in stored:
            raise InvalidValue(ReasonCode.OPTIONS_ERROR, f"{keyword!r} is given twice")
        stored[attribute.selector] = attribute.parse(value)
    return stored


def defaults(kind: str) -> dict[int, int | str]:
    """Stored values that a definition has where none are given."""
    return {row.selector: row.default for row in TYPES[kind].values()}


def encode(stored: Mapping[int, int | str]) -> bytes:
    """The attribute list of a definition."""
    parts: list[bytes] = []
    for selector in sorted(stored):
        value = stored[selector]
        if isinstance(value, str):
            raw = value.encode()
            padding = bytes(-len(raw) % 8)
            parts += [_HEAD.pack(selector, _FAMILY_STRING, len(raw)), raw, padding]
        else:
            parts += [_HEAD.pack(selector, _FAMILY_INTEGER, 8), _INTEGER.pack(value)]
    return b"".join(parts)


def decode(attrs: bytes) -> dict[int, int | str]:
    """Stored values by selector; those of an unknown kind are left out.

    Raises ObjectDamaged's ValueError cousin, struct.error, for a list that ends inside a value.
    """
    return dict(_items(attrs))


def _items(attrs: bytes) -> Iterator[tuple[int, int | str]]:
    at = 0
    while at < len(attrs):
        selector, kind, length = _HEAD.unpack_from(attrs, at)
        at += _HEAD.size
        if kind == _FAMILY_INTEGER:
            yield selector, _INTEGER.unpack_from(attrs, at)[0]
        elif kind == _FAMILY_STRING:
            yield selector, attrs[at : at + length].decode("utf-8", "replace")
        at += length + -length % 8


def describe(kind: str, name: str, stored: Mapping[int, int | str]) -> Definition:
    """A definition for ``display``."""
    shown = Definition(name=name, type=kind)
    for row in TYPES[kind].values():
        shown[row.keyword.lower()] = row.show(stored.get(row.selector, row.default))
    for keyword, selector in STAMPS.items():
        shown[keyword.lower()] = stored.get(selector, "")
    return shown


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a name fits a full name or a generic one (``ABC*``, ``*``)."""
    if pattern.endswith("*"):
        prefix = pattern[:-1]
        return lambda name: name.startswith(prefix)
    return lambda name: name == pattern
