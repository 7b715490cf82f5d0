"""Definitions as ``display`` returns them, and the conversion of Python values to stored ones."""

from __future__ import annotations

from .._mqi_constants.selectors import MQCA_NAMES
from ..constants import ReasonCode
from ..errors import AttributeNameError, InvalidValue
from .attribute import Value

TYPE_CHECKING = False  # typing itself is not loaded: opening a queue needs this module
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .attribute import Attribute, Stored
    from .types import ObjectType

_templates: dict[tuple[str, str, int], dict[str, Value]] = {}


class Definition(dict[str, Value]):
    """A definition as ``display`` returns it: ``name``, ``type`` and attributes by keyword, in
    lower case; looked up in any case.
    """

    def __getitem__(self, keyword: str) -> Value:
        """The value of a keyword."""
        return super().__getitem__(keyword.lower())

    def __contains__(self, keyword: object) -> bool:
        """Whether the definition has the keyword."""
        return isinstance(keyword, str) and super().__contains__(keyword.lower())

    def get(self, keyword: str, default: Any = None) -> Any:
        """The value of a keyword, else the default."""
        return super().get(keyword.lower(), default)


def parse_all(
    kind: ObjectType, given: Mapping[str, object], platform: str = "zos"
) -> dict[int, Stored]:
    """Attributes by keyword, in any case, into stored values by selector.

    Raises:
        AttributeNameError: unknown or display-only keyword, or not of this platform.
        InvalidValue, InvalidType: an invalid value.
    """
    stored: dict[int, Stored] = {}
    for keyword, value in given.items():
        row = kind.attribute(keyword)
        if row.display_only:
            raise AttributeNameError(
                ReasonCode.SELECTOR_ERROR,
                f"{kind.name}: {keyword!r} is display-only and cannot be set",
            )
        if row.platform not in ("", platform):
            raise AttributeNameError(
                ReasonCode.SELECTOR_ERROR,
                f"{kind.name}: {keyword!r} is an attribute of platform z/OS",
            )
        if row.selector in stored:
            raise InvalidValue(ReasonCode.OPTIONS_ERROR, f"{keyword!r} is given twice")
        stored[row.selector] = row.parse(value, platform)
    return stored


def describe(
    kind: ObjectType,
    name: str,
    stored: Mapping[int, Stored],
    platform: str = "zos",
    computed: Mapping[str, Stored] | None = None,
) -> Definition:
    """A definition for ``display``; ``computed``: values of attributes that are not stored."""
    number = int(stored.get(kind.subtype.selector, 0)) if kind.subtype is not None else 0
    key = (kind.name, platform, number)
    template = _templates.get(key)
    if template is None:
        template = _templates[key] = _template(kind, stored, platform)
    shown = Definition(template)
    dict.__setitem__(shown, "name", name)
    rows = kind.by_selector
    for selector, value in stored.items():
        row = rows.get(selector)
        if row is not None:
            keyword = row.keyword.lower()
            if keyword in template:
                shown[keyword] = row.show(value) if row.words or row.many else value
    if computed:
        shown.update(computed)
    if kind.name == "NAMELIST":
        shown["namcount"] = len(names_of(stored))
    elif kind.name == "QMGR":
        shown["qmname"] = name
    return shown


def names_of(stored: Mapping[int, Stored]) -> list[str]:
    """The names of a namelist."""
    text = str(stored.get(MQCA_NAMES, ""))
    return text.split(",") if text else []


def _template(kind: ObjectType, stored: Mapping[int, Stored], platform: str) -> dict[str, Value]:
    """The attributes that are not stored but computed."""
    shown: dict[str, Value] = {"name": "", "type": kind.name}
    subtype = kind.subtype_of(stored)
    rows: list[Attribute] = [
        row for row in kind.attributes.values() if row.applies(platform, subtype)
    ]
    for row in rows:
        shown[row.keyword.lower()] = row.show(row.default)
    return shown
