"""WHERE(attribute operator value): the filter of DISPLAY."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import MQError
from ..objects import Attribute, Definition
from .faults import SyntaxFault
from .grammar import Parameter, Word
from .parser import near
from .words import BARE

_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "LT": operator.lt,
    "GT": operator.gt,
    "EQ": operator.eq,
    "NE": operator.ne,
    "LE": operator.le,
    "GE": operator.ge,
}
_GENERIC = ("LK", "NL")  # is like, is not like ABC*
_LIST = ("CT", "EX")  # contains, excludes
OPERATORS = (*_COMPARE, *_GENERIC, *_LIST)
Condition = Callable[[Definition], bool]


def condition(given: Parameter, known: Mapping[str, Attribute]) -> tuple[str, Condition]:
    """The attribute's keyword and the condition on a definition. An object without the attribute
    does not fulfil it.

    Raises:
        SyntaxFault: with the word that is wrong.
    """
    if given.values is None or len(given.values) != 3:
        raise SyntaxFault("WHERE needs an attribute, an operator and a value", given.at, "WHERE")
    keyword, sign, value = given.values
    row = known.get(keyword.value)
    if row is None:
        raise SyntaxFault(
            f"WHERE cannot compare it{near(keyword.value, known)}", keyword.at, keyword.written
        )
    allowed = operators(row)
    if sign.value not in allowed:
        raise SyntaxFault(
            f"{row.keyword} is compared with {', '.join(allowed)}", sign.at, sign.written
        )
    return row.keyword, _test(row, sign.value, value)


def operators(row: Attribute) -> tuple[str, ...]:
    """The operators that are valid for an attribute."""
    if row.many:
        return _LIST
    if row.is_text:
        return (*_COMPARE, *_GENERIC)
    if row.words and row.high < row.low:
        return ("EQ", "NE")
    return tuple(_COMPARE)


def _test(row: Attribute, sign: str, value: Word) -> Condition:
    key = row.keyword.lower()
    if sign in _LIST:
        wanted, inside = value.value, sign == "CT"

        def test_list(found: Definition) -> bool:
            has = found.get(key)
            return isinstance(has, list) and (wanted in has) is inside

        return test_list
    if sign in _GENERIC:
        return _like(key, value, sign == "LK")
    compare = _COMPARE[sign]
    limit = value.value if row.is_text else _number(row, value)

    def test(found: Definition) -> bool:
        has = found.get(key)
        if has is None:
            return False
        if type(has) is not type(limit):  # a word such as NOLIMIT against a number
            return sign == "NE"
        return compare(has, limit)

    return test


def _like(key: str, value: Word, wanted: bool) -> Condition:
    text = value.value
    if "*" in text[:-1]:
        raise SyntaxFault("* can only be the last character", value.at, value.written)
    prefix = text.rstrip("*")
    whole = not text.endswith("*")

    def test(found: Definition) -> bool:
        has = found.get(key)
        if has is None:
            return False
        return (has == text if whole else str(has).startswith(prefix)) is wanted

    return test


def _number(row: Attribute, value: Word) -> object:
    """The value as DISPLAY has it: a number, a word or a bool."""
    text = value.value
    if row.keyword in BARE and text in (row.keyword, f"NO{row.keyword}"):
        return text == row.keyword
    if not row.words:
        if not (text.isascii() and text.isdigit()):
            raise SyntaxFault("it is not a number", value.at, value.written)
        return int(text)
    try:
        return row.show(row.parse(text))
    except MQError as error:
        raise SyntaxFault(error.text, value.at, value.written) from error
