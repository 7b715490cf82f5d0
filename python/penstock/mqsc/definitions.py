"""DEFINE, ALTER, DELETE and CLEAR: checked in full before anything is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import MQError, UnknownObjectName
from ..objects import Attribute, ObjectType, object_type
from .faults import SyntaxFault
from .grammar import Parameter, Word
from .layout import pair_of
from .parser import Command
from .reply import Reply, done
from .words import BARE

if TYPE_CHECKING:
    from penstock import QueueManager

Action = Callable[[], Reply]
_FORCEABLE = ("QLOCAL", "QALIAS", "QREMOTE", "QMGR")
_TYPES = {"TOPIC": "LOCAL", "COMMINFO": "MULTICAST"}
OPTIONS = ("REPLACE", "NOREPLACE", "FORCE", "NOFORCE", "PURGE", "NOPURGE", "LIKE", "ALL", "WHERE")


class Parameters:
    """The parameters of a command, removed one by one; the rest are attributes or errors."""

    def __init__(self, command: Command, platform: str) -> None:
        """Copies the command's parameters."""
        self.command = command
        self.platform = platform
        self.left = dict(command.parameters)

    def flag(self, word: str) -> bool:
        """Removes ``WORD`` or ``NOWORD``; whether it was ``WORD``. Raises SyntaxFault."""
        given = [self.left.pop(w) for w in (word, f"NO{word}") if w in self.left]
        if len(given) > 1:
            raise SyntaxFault(
                f"{given[0].keyword} and {given[1].keyword} exclude each other",
                max(given[0].at, given[1].at),
                max(given, key=lambda p: p.at).keyword,
            )
        if given and given[0].values is not None:
            raise SyntaxFault(f"{given[0].keyword} takes no value", given[0].at, given[0].keyword)
        return bool(given) and given[0].keyword == word

    def word(self, keyword: str) -> Word | None:
        """Removes ``KEYWORD(value)``. Raises SyntaxFault."""
        given = self.left.pop(keyword, None)
        return None if given is None else one_value(given)

    def choice(self, keyword: str, words: tuple[str, ...]) -> str:
        """Removes ``KEYWORD(word)``; the word, the first one by default. Raises SyntaxFault."""
        word = self.word(keyword)
        if word is None:
            return words[0]
        if word.value not in words:
            raise SyntaxFault(f"{keyword} is one of {', '.join(words)}", word.at, word.written)
        return word.value

    def nothing_left(self) -> None:
        """Raises SyntaxFault when there are parameters that the command does not know."""
        for parameter in self.left.values():
            raise SyntaxFault(
                f"{self.command.verb} {self.command.noun} has no such parameter",
                parameter.at,
                parameter.keyword,
            )

    def attributes(self, kind: ObjectType) -> dict[str, Any]:
        """The remaining parameters as attributes of the Python API. Raises SyntaxFault."""
        self._take_implied(kind)
        found: dict[str, Any] = {}
        for keyword in BARE:
            if keyword in kind.attributes and {keyword, f"NO{keyword}"} & self.left.keys():
                found[keyword.lower()] = self.flag(keyword)
        for parameter in self.left.values():
            row = self._attribute(kind, parameter)
            if row.keyword.lower() in found:
                raise SyntaxFault(f"{row.keyword} is given twice", parameter.at, parameter.keyword)
            found[row.keyword.lower()] = self._value(row, parameter)
        return found

    def notes(self, kind: ObjectType, values: Mapping[str, Any]) -> list[str]:
        """What these attributes ask for that this release lacks."""
        found = []
        if kind.unbuilt:
            found.append(f"the {kind.noun} is kept only: this release has no {kind.unbuilt}")
        for row in kind.attributes.values():
            value = values.get(row.keyword.lower())
            if value is None or not row.unbuilt:
                continue
            stored = row.parse(value, self.platform)
            if row.asks_for_unbuilt(stored):
                pair = pair_of(row.keyword, row.show(stored))
                found.append(f"{pair} is kept only: this release has no {row.unbuilt}")
        return found

    def secrets(self, kind: ObjectType) -> list[str]:
        """Removes the values of secrets, which are not stored; what is to be said of them."""
        found = []
        for row in kind.attributes.values():
            given = self.left.get(row.keyword)
            if row.secret and given is not None and any(w.value for w in given.values or ()):
                del self.left[row.keyword]
                found.append(f"{row.keyword} is not kept: secrets are not stored")
        return found

    def _take_implied(self, kind: ObjectType) -> None:
        """Removes parameters with the only value that they can have. Raises SyntaxFault."""
        for keyword, allowed in _implied(kind, self.platform).items():
            word = self.word(keyword)
            if word is not None and word.value not in allowed:
                raise SyntaxFault(
                    f"{keyword} is {' or '.join(allowed) or 'blank'}", word.at, word.written
                )

    def _attribute(self, kind: ObjectType, parameter: Parameter) -> Attribute:
        """The attribute of a keyword. Raises SyntaxFault."""
        command = self.command
        if parameter.keyword in OPTIONS:
            raise SyntaxFault(
                f"{command.verb} {command.noun} has no such parameter",
                parameter.at,
                parameter.keyword,
            )
        try:
            row = kind.attribute(parameter.keyword)
        except MQError as error:
            raise SyntaxFault(error.text, parameter.at, parameter.keyword) from error
        rule = ""
        if row.display_only:
            rule = f"{row.keyword} is display-only and cannot be set"
        elif row.platform not in ("", self.platform):
            rule = f"{row.keyword} is an attribute of platform z/OS"
        elif row.keyword in BARE:
            rule = f"it is written {row.keyword} or NO{row.keyword}"
        if rule:
            raise SyntaxFault(rule, parameter.at, parameter.keyword)
        return row

    def _value(self, row: Attribute, parameter: Parameter) -> str | list[str]:
        """The value given for an attribute, checked. Raises SyntaxFault."""
        if row.many and parameter.values is not None:
            first = parameter.values[0] if parameter.values else Word("", parameter.at)
            names = [word.value for word in parameter.values]
            _check(row, names, self.platform, first)
            return names
        word = one_value(parameter)
        _check(row, word.value, self.platform, word)
        return word.value


def _implied(kind: ObjectType, platform: str) -> dict[str, tuple[str, ...]]:
    """Parameters of DEFINE and ALTER that are no attributes, with their only values."""
    found: dict[str, tuple[str, ...]] = {}
    if kind.name in _TYPES:
        found["TYPE"] = (_TYPES[kind.name],)
    if platform == "zos":
        found["CMDSCOPE"] = ("",)
        if "QSGDISP" not in kind.attributes:
            found["QSGDISP"] = ("QMGR",)
    return found


def one_value(parameter: Parameter) -> Word:
    """The only value of a parameter; ``()`` is a blank one. Raises SyntaxFault."""
    values = parameter.values
    if values is None or len(values) > 1:
        location = (parameter.at, parameter.keyword) if values is None else (
            values[1].at, values[1].written
        )  # fmt: skip
        raise SyntaxFault(f"{parameter.keyword} needs one value in brackets", *location)
    return values[0] if values else Word("", parameter.at)


def _check(row: Attribute, value: object, platform: str, word: Word) -> None:
    try:
        row.parse(value, platform)
    except MQError as error:
        raise SyntaxFault(error.text, word.at, word.written or row.keyword) from error


def kind_of(command: Command, platform: str) -> ObjectType:
    """The type of object of the command's noun. Raises SyntaxFault when this platform lacks it."""
    try:
        return object_type(command.subject.kinds[0], platform)
    except MQError as error:
        raise SyntaxFault(error.text, command.noun_at, command.noun) from error


def name_of(kind: ObjectType, word: Word) -> str:
    """The name, generic or not, when an object of the type can have it. Raises SyntaxFault."""
    try:
        if word.value != "*":
            kind.check_name(word.value.removesuffix("*"))
        return word.value
    except MQError as error:
        raise SyntaxFault(error.text, word.at, word.written) from error


def prepare(manager: QueueManager, command: Command) -> Action:
    """Checks the command; the returned call does the work. Raises SyntaxFault."""
    kind = kind_of(command, manager.platform)
    name = name_of(kind, command.name) if command.name else ""
    given = Parameters(command, manager.platform)
    return _PREPARE[command.verb](manager, command, kind, name, given)


def _title(command: Command) -> str:
    return command.subject.title.capitalize()


def _define(
    manager: QueueManager, command: Command, kind: ObjectType, name: str, given: Parameters
) -> Action:
    replace = given.flag("REPLACE")
    like = given.word("LIKE")
    model = name_of(kind, like) if like is not None else None
    secrets = given.secrets(kind)
    values = given.attributes(kind)
    notes = given.notes(kind, values) + secrets

    def run() -> Reply:
        manager.define(kind.name, name, like=model, replace=replace, **values)
        found = manager.display(kind.name, name) if model is not None else []
        copied = given.notes(kind, found[0]) + secrets if found else notes
        return done(command.subject.created, f"{_title(command)} created.", copied)

    return run


def _alter(
    manager: QueueManager, command: Command, kind: ObjectType, name: str, given: Parameters
) -> Action:
    force = kind.name in _FORCEABLE and given.flag("FORCE")
    secrets = given.secrets(kind)
    values = given.attributes(kind)
    notes = given.notes(kind, values) + secrets

    def run() -> Reply:
        manager.alter(kind.name, name or manager.name, force=force, **values)
        return done(command.subject.changed, f"{_title(command)} changed.", notes)

    return run


def _delete(
    manager: QueueManager, command: Command, kind: ObjectType, name: str, given: Parameters
) -> Action:
    purge = kind.name == "QLOCAL" and given.flag("PURGE")
    ignored = given.choice("IGNSTATE", ("NO", "YES")) == "YES"
    records = given.choice("AUTHREC", ("NO", "YES")) == "YES"
    notes = ["AUTHREC(YES) has no effect: authority records stay"] if records else []
    identity = {}
    if kind.name == "QCLUSTER":
        word = given.word("CLUSQMGR")
        if word is None:
            raise SyntaxFault("DELETE QCLUSTER needs CLUSQMGR", command.noun_at, command.noun)
        identity["clusqmgr"] = word.value
    if kind.name == "CHANNEL" and given.choice("CHLTABLE", ("QMGRTAB", "CLNTTAB")) == "CLNTTAB":
        identity["chltype"] = "CLNTCONN"
    given.nothing_left()

    def run() -> Reply:
        try:
            manager.delete(kind.name, name, purge=purge, **identity)
        except UnknownObjectName:
            if not ignored:
                raise
        return done(command.subject.deleted, f"{_title(command)} deleted.", notes)

    return run


def _clear(
    manager: QueueManager, command: Command, kind: ObjectType, name: str, given: Parameters
) -> Action:
    given.nothing_left()

    def run() -> Reply:
        manager.clear(name)
        return done("AMQ8022", "Queue cleared.")

    return run


_PREPARE = {"DEFINE": _define, "ALTER": _alter, "DELETE": _delete, "CLEAR": _clear}
