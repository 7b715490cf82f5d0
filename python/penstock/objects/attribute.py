"""One attribute of a type of object, as data: keyword, selector, values, and who may change it.

The rows determine everything else: the arguments of DEFINE and ALTER, the output of DISPLAY, the
selectors of MQINQ and MQSET, the help text. A *stored* value is the one in the attribute list of a
definition (struct ps_attr of FORMAT.md): an int, or a str; a list of names is one str, joined by
commas.
"""

from __future__ import annotations

from ..constants import NAME_CHARACTERS, ReasonCode
from ..errors import InvalidType, InvalidValue
from ..names import nearest

TYPE_CHECKING = False  # typing itself is not loaded: opening a queue needs this module
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

Stored = int | str
Value = int | str | bool | list[str]

YES_NO: Mapping[str, int] = {"NO": 0, "YES": 1}
INHIBIT: Mapping[str, int] = {"ENABLED": 0, "DISABLED": 1}
EVENT: Mapping[str, int] = {"DISABLED": 0, "ENABLED": 1}
_HEXADECIMAL = frozenset("0123456789ABCDEFabcdef")


class Attribute:
    """One attribute of a type of object.

    A number has a range (low to high), words that stand for numbers, or both (KAINT: 0 to 99999 or
    AUTO). A text has a length in bytes; ``name``: it is blank or the name of an object; ``many``:
    the most items of a list; ``choices``: the words that an item can be; ``hexadecimal``: the text
    is digits and A to F. A ``secret`` is never stored: only a blank is accepted.

    Attributes:
        keyword: MQSC's keyword; ``synonyms``: others for it.
        selector: MQIA_*, MQCA_*, MQIACH_* or MQCACH_*.
        help: one line for users.
        default: stored value of an object that has none; ``default_zos``: what the shipped
            definitions have on platform z/OS.
        inquirable, settable: by MQINQ, by MQSET.
        platform: "zos" when it exists there only, else ""; ``zos_words``: words for there.
        kinds: subtypes (of a channel: CHLTYPE) that have it; empty: every object of the type.
        kind_defaults: the default for some of these subtypes.
        resolution: name resolution reads it: handles that went through the old value get 2041.
        force: ALTER in use needs FORCE: "open" (a handle), "inputs" (two or more for input),
            "messages" (a handle or a message); "" never.
        display_only: cannot be set; ``fixed``: set by DEFINE and never changed.
        computed: the source of a value that is not stored: "name", "type", "count", or a key of
            the queue's status.
        always: stored even when it equals the default, because the engine reads it.
        unbuilt: the function that this release lacks and a value asks for, "" for none;
            ``inactive``: stored values besides the default that do not ask for it.
        reason: reason code for an invalid value.
    """

    __slots__ = (
        "always",
        "choices",
        "computed",
        "default",
        "default_zos",
        "display_only",
        "fixed",
        "force",
        "help",
        "hexadecimal",
        "high",
        "inactive",
        "inquirable",
        "keyword",
        "kind_defaults",
        "kinds",
        "length",
        "low",
        "many",
        "name",
        "platform",
        "reason",
        "resolution",
        "secret",
        "selector",
        "settable",
        "synonyms",
        "unbuilt",
        "words",
        "zos_words",
    )  # fmt: skip

    def __init__(
        self,
        keyword: str,
        selector: int,
        help: str,
        default: Stored = 0,
        *,
        low: int = 0,
        high: int = -1,
        words: Mapping[str, int] | None = None,
        length: int = 0,
        name: bool = False,
        many: int = 0,
        choices: Sequence[str] = (),
        hexadecimal: bool = False,
        secret: bool = False,
        synonyms: Sequence[str] = (),
        default_zos: Stored | None = None,
        inquirable: bool = True,
        settable: bool = False,
        platform: str = "",
        zos_words: Sequence[str] = (),
        kinds: Sequence[str] = (),
        kind_defaults: Mapping[str, Stored] | None = None,
        resolution: bool = False,
        force: str = "",
        display_only: bool = False,
        fixed: bool = False,
        computed: str = "",
        always: bool = False,
        unbuilt: str = "",
        inactive: Sequence[Stored] = (),
        reason: int = ReasonCode.OPTIONS_ERROR,
    ) -> None:
        """Declares the attribute."""
        self.keyword, self.selector, self.help, self.default = keyword, selector, help, default
        self.low, self.high, self.words = low, high, words or {}
        self.length, self.name, self.many = length, name, many
        self.choices, self.hexadecimal, self.secret = tuple(choices), hexadecimal, secret
        self.synonyms = tuple(synonyms)
        self.default_zos = default if default_zos is None else default_zos
        self.inquirable, self.settable = inquirable, settable
        self.platform, self.zos_words = platform, tuple(zos_words)
        self.kinds, self.kind_defaults = tuple(kinds), kind_defaults or {}
        self.resolution, self.force = resolution, force
        self.display_only, self.fixed, self.computed = display_only, fixed, computed
        self.always, self.reason = always, reason
        self.unbuilt, self.inactive = unbuilt, tuple(inactive)

    def with_changes(self, **changes: Any) -> Attribute:
        """A copy with other values of some fields."""
        copy = Attribute.__new__(Attribute)
        for field in self.__slots__:
            setattr(copy, field, changes.get(field, getattr(self, field)))
        return copy

    def __repr__(self) -> str:
        """``<Attribute MAXDEPTH 15>``."""
        return f"<Attribute {self.keyword} {self.selector}>"

    @property
    def flag(self) -> bool:
        """True when the values are YES and NO: shown as True and False."""
        return self.words is YES_NO

    @property
    def separator(self) -> str:
        """What stands between the items of a stored list: no item can contain it."""
        return "," if self.name or self.choices else "\n"

    @property
    def is_text(self) -> bool:
        """True for a character attribute (MQCA_*)."""
        return self.length > 0

    def asks_for_unbuilt(self, stored: Stored) -> bool:
        """Whether a stored value asks for a function that this release lacks."""
        return bool(self.unbuilt) and stored != self.default and stored not in self.inactive

    def default_on(self, platform: str, kind: str = "") -> Stored:
        """The shipped default on a platform ("unix", "zos"), for a subtype."""
        if kind in self.kind_defaults:
            return self.kind_defaults[kind]
        return self.default_zos if platform == "zos" else self.default

    def applies(self, platform: str, kind: str = "") -> bool:
        """Whether an object on a platform has the attribute; ``kind``: its subtype."""
        return self.platform in ("", platform) and (not self.kinds or kind in self.kinds)

    def words_on(self, platform: str) -> Mapping[str, int]:
        """The words allowed on a platform."""
        if platform == "zos" or not self.zos_words:
            return self.words
        return {word: n for word, n in self.words.items() if word not in self.zos_words}

    def rule(self, platform: str = "zos") -> str:
        """The allowed values as text for users."""
        if self.secret:
            return "blank; secrets are not stored"
        if self.choices:
            return "a list out of " + ", ".join(self.choices)
        if self.many:
            return f"a list of at most {self.many} {'names' if self.name else 'texts'}"
        if self.name:
            return f"a name of at most {self.length} characters out of A-Z a-z 0-9 . _ / %"
        if self.hexadecimal:
            return f"text of at most {self.length} hexadecimal digits"
        if self.length:
            return f"text of at most {self.length} bytes"
        words = ", ".join(self.words_on(platform))
        if self.high < self.low:
            return f"one of {words}"
        return f"a number from {self.low} to {self.high}" + (f" or {words}" if words else "")

    def parse(self, value: object, platform: str = "zos") -> Stored:
        """A Python value as it is stored.

        Raises:
            InvalidValue, InvalidType: with the value, the rule and the attribute's reason code.
        """
        if self.many:
            return self._parse_names(value)
        if self.length:
            return self._parse_text(value)
        if isinstance(value, str) and value.isascii() and value.isdigit() and self.high >= self.low:
            value = int(value)
        if isinstance(value, bool):
            return self._parse_bool(value)
        if isinstance(value, str):
            return self._parse_word(value, platform)
        if not isinstance(value, int):
            raise InvalidType(self.reason, self._refusal(value, platform))
        if not self.low <= value <= self.high and value not in self.words_on(platform).values():
            raise InvalidValue(self.reason, self._refusal(value, platform))
        return value

    def show(self, stored: Stored) -> Value:
        """A stored value as ``display`` gives it."""
        if self.many:
            return str(stored).split(self.separator) if stored else []
        if not self.words:
            return stored
        if self.flag:
            return stored == 1
        for word, number in self.words.items():
            if number == stored:
                return word
        return stored

    def _parse_bool(self, value: bool) -> int:
        if self.words is YES_NO or self.words is EVENT:
            return int(value)
        if self.words is INHIBIT:
            return int(not value)
        raise InvalidType(self.reason, self._refusal(value))

    def _parse_word(self, value: str, platform: str) -> int:
        words = self.words_on(platform)
        if value.upper() in words:
            return words[value.upper()]
        hint = nearest(value.upper(), words)
        if value.upper() in self.words:
            hint = f"; {value.upper()} is for platform z/OS"
        kind = InvalidValue if words else InvalidType
        raise kind(self.reason, self._refusal(value, platform) + hint)

    def _parse_text(self, value: object) -> str:
        if not isinstance(value, str):
            raise InvalidType(self.reason, self._refusal(value))
        text = value.rstrip(" ")
        if self.secret and text:
            raise InvalidValue(self.reason, f"{self.keyword}: its value is not {self.rule()}")
        if len(text.encode("utf-8", "replace")) > self.length or not text.isprintable():
            raise InvalidValue(self.reason, self._refusal(value))
        if self.name and not NAME_CHARACTERS.issuperset(text):
            raise InvalidValue(ReasonCode.OBJECT_NAME_ERROR, self._refusal(value))
        if self.choices and text and text.upper() not in self.choices:
            raise InvalidValue(
                self.reason, self._refusal(value) + nearest(text.upper(), self.choices)
            )
        if self.hexadecimal and not _HEXADECIMAL.issuperset(text):
            raise InvalidValue(self.reason, self._refusal(value))
        return text.upper() if self.choices or self.hexadecimal else text

    def _parse_names(self, value: object) -> str:
        if isinstance(value, str):
            value = value.split(",") if self.separator == "," else [value]
        if not isinstance(value, (list, tuple)):
            raise InvalidType(self.reason, self._refusal(value))
        names = [self._parse_text(name) for name in value]
        names = [name for name in names if name]
        if len(names) > self.many:
            raise InvalidValue(
                self.reason, f"{self.keyword}: {len(names)} names are not {self.rule()}"
            )
        return self.separator.join(names)

    def _refusal(self, value: object, platform: str = "zos") -> str:
        return f"{self.keyword}: {value!r} is not {self.rule(platform)}"
