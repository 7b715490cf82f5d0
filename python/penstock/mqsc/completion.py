"""Completion of a command that is being typed: verbs, nouns, names, attributes, words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ..objects import Attribute
from .guide import attributes_of
from .layout import quoted
from .where import OPERATORS
from .words import BARE, LATER_VERBS, NOUN_OF, NOUNS, VERB_OF, VERBS

_TOKEN = re.compile(r"'(?:[^']|'')*'?|[()]|[^\s,()']+|[\s,]+")
_PLAIN = re.compile(r"[A-Z0-9._/%]+")
_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "DEFINE": {
        "LIKE": "start from this definition",
        "REPLACE": "change a definition that exists",
        "NOREPLACE": "a name that exists is an error",
    },
    "ALTER": {"FORCE": "also when it is in use", "NOFORCE": "not when it is in use"},
    "DELETE": {"PURGE": "with its messages", "NOPURGE": "only when it is empty"},
    "DISPLAY": {
        "ALL": "all attributes",
        "WHERE": "only what fulfils a condition",
        "TYPE": "only one type",
    },
}
_NAMED_BY: Mapping[str, tuple[str, ...]] = {
    "PROCESS": ("PROCESS",),
    "CLUSNL": ("NAMELIST",),
    "CFSTRUCT": ("CFSTRUCT",),
    "CLUSTER": (),
}
_QUEUES = ("QLOCAL", "QALIAS", "QREMOTE", "QMODEL")

# (types of object, beginning of the name) -> names
Names = Callable[[tuple[str, ...], str], Iterable[str]]


class Suggestion(NamedTuple):
    """A possible word, and a line about it."""

    word: str
    about: str = ""


class _Typed:
    """The tokens before the cursor."""

    def __init__(self, text: str) -> None:
        self.words: list[str] = []  # outside brackets
        self.values: list[str] | None = None  # in the open bracket
        self.partial = ""  # the word under the cursor
        for match in _TOKEN.finditer(text):
            self._take(match.group())

    def _take(self, token: str) -> None:
        if token == "(":
            self._commit()
            self.values = []
        elif token == ")":
            self._commit()
            self.values = None
        elif token.isspace() or not token.strip(" \t,"):
            self._commit()
        else:
            self.partial = token

    def _commit(self) -> None:
        if self.partial:
            (self.words if self.values is None else self.values).append(self.partial.upper())
        self.partial = ""


def suggest(text: str, names: Names, platform: str = "zos") -> tuple[int, list[Suggestion]]:
    """The completions of a text.

    Args:
        text: the command up to the cursor, continuation lines joined.
        names: returns names of objects.
        platform: "unix" or "zos".

    Returns:
        the number of characters at the end of the text that a word replaces, and the words, sorted.
    """
    typed = _Typed(text)
    found = _possible(typed, names, platform)
    begin = typed.partial.upper().lstrip("'")
    fitting = [one for one in found if one.word.upper().lstrip("'").startswith(begin)]
    return len(typed.partial), sorted(fitting)


def _possible(typed: _Typed, names: Names, platform: str) -> list[Suggestion]:
    """All words possible here, before they are filtered by the typed prefix."""
    words, values = typed.words, typed.values
    if not words:
        usable = {verb for row in NOUNS.values() for verb in row.verbs}
        return [Suggestion(verb) for verb in VERBS if verb in usable or verb not in LATER_VERBS]
    verb = VERB_OF.get(words[0], "")
    if len(words) == 1:
        return [
            Suggestion(noun, row.title)
            for noun, row in NOUNS.items()
            if verb in row.verbs and values is None
        ]
    noun = NOUN_OF.get(words[1], "")
    if noun not in NOUNS or verb not in NOUNS[noun].verbs:
        return []
    if values is None:
        return _parameters(verb, noun, words[2:], platform)
    kinds = NOUNS[noun].kinds or (("QLOCAL",) if noun == "QSTATUS" else ())
    prefix = typed.partial.strip("'")
    if len(words) == 2 or words[-1] == "LIKE":
        return [] if values or not kinds else _names(names, kinds, prefix)
    known = attributes_of(noun, platform)
    if words[-1] == "WHERE":
        return _condition(known, values)
    if words[-1] in ("TYPE", "QTYPE"):
        return [Suggestion(kind) for kind in NOUNS[noun].kinds]
    row = known.get(words[-1])
    return [] if row is None else _values(row, names, prefix, platform)


def _parameters(verb: str, noun: str, given: list[str], platform: str) -> list[Suggestion]:
    """The parameters that are still missing."""
    found = [Suggestion(word, about) for word, about in _OPTIONS.get(verb, {}).items()]
    if verb in ("DEFINE", "ALTER", "DISPLAY"):
        for row in attributes_of(noun, platform).values():
            if verb == "DISPLAY":
                found.append(Suggestion(row.keyword, row.help))
            elif row.keyword in BARE:
                found += [Suggestion(row.keyword, row.help), Suggestion(f"NO{row.keyword}")]
            elif not row.display_only:
                found.append(Suggestion(f"{row.keyword}(", row.help))
    return [one for one in dict.fromkeys(found) if one.word.rstrip("(") not in given]


def _condition(known: Mapping[str, Attribute], values: list[str]) -> list[Suggestion]:
    if not values:
        return [Suggestion(row.keyword, row.help) for row in known.values()]
    if len(values) == 1:
        return [Suggestion(sign) for sign in OPERATORS]
    row = known.get(values[0])
    return [Suggestion(word) for word in (row.words if row else ())]


def _values(row: Attribute, names: Names, prefix: str, platform: str) -> list[Suggestion]:
    """Words of an attribute, or names of the objects that it can name."""
    if row.words:
        return [Suggestion(word) for word in row.words_on(platform)]
    if row.name:
        return _names(names, _NAMED_BY.get(row.keyword, _QUEUES), prefix)
    return []


def _names(names: Names, kinds: tuple[str, ...], prefix: str) -> list[Suggestion]:
    if not kinds:
        return []
    found = {*names(kinds, prefix), *names(kinds, prefix.upper())}
    return [Suggestion(name if _PLAIN.fullmatch(name) else quoted(name)) for name in found]
